"""What queues hold: elements, which wait to be taken, and the threads that wait for elements or for room.

Those who put wait for one another, and so do those who take: whoever came first is served first. What one puts or takes
by many goes element by element, so that it may be more than there is room for.
"""

from __future__ import annotations

import abc
import heapq
import itertools
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from twofold.ir.errors import CancelledError, OutOfRangeError
from twofold.runtime.locks import Condition

__all__ = ["Elements", "InOrder", "Prioritised", "Shuffled"]

Element = tuple[Any, ...]  # an array for each component


class Elements(abc.ABC):
    """The elements of a queue.

    Args:
        kind: the class of the queue, which errors name.
        capacity: how many there can be; without end if it is negative.
    """

    def __init__(self, kind: str, capacity: int) -> None:
        self._kind, self._capacity = kind, capacity
        self._changed = Condition()
        self._putting: deque[object] = deque()
        self._taking: deque[object] = deque()
        self._closed = self._cancelled = False

    @abc.abstractmethod
    def __len__(self) -> int:
        """How many elements there are."""

    @abc.abstractmethod
    def _add(self, element: Element) -> None:
        """Puts an element."""

    @abc.abstractmethod
    def _next(self) -> Element:
        """Takes an element."""

    def _kept(self) -> int:
        """How many elements stay as long as more may come."""
        return 0

    @property
    def closed(self) -> bool:
        """Whether nothing more can be put."""
        return self._closed

    @contextmanager
    def _turn(self, waiting: deque[object]) -> Iterator[None]:
        """A block for whoever came first."""
        ticket = object()
        with self._changed:
            waiting.append(ticket)
            try:
                while waiting[0] is not ticket:
                    self._changed.wait()
                yield
            finally:
                waiting.remove(ticket)
                self._changed.notify_all()

    def put(self, elements: list[Element]) -> None:
        """Puts elements, and waits for room.

        Raises:
            CancelledError: the queue is closed, or was while this waited and those who wait were cancelled.
        """
        if self._closed:
            raise CancelledError(None, "QueueEnqueue", f"{self._kind} is closed.")
        with self._turn(self._putting):
            for element in elements:
                while 0 <= self._capacity <= len(self) and not self._cancelled:
                    self._changed.wait()
                if self._cancelled:
                    raise CancelledError(None, "QueueEnqueue", f"{self._kind} is closed.")
                self._add(element)
                self._changed.notify_all()

    def take(self, count: int, up_to: bool = False) -> list[Element]:
        """Takes elements, and waits for them.

        Args:
            count: how many.
            up_to: whether they may be fewer, but one, once the queue is closed.
        Raises:
            OutOfRangeError: the queue is closed, and there are too few. These stay.
        """
        taken: list[Element] = []
        with self._turn(self._taking):
            try:
                while len(taken) < count:
                    while len(self) <= self._kept() and not self._at_end():
                        self._changed.wait()
                    if not len(self):
                        break
                    taken.append(self._next())
                    self._changed.notify_all()
                if len(taken) == count or up_to and taken:
                    result, taken = taken, []
                    return result
                raise OutOfRangeError(None, "QueueDequeue", f"{self._kind} is closed and has insufficient elements "
                                                            f"(requested {count}, current size {len(taken)})")
            finally:
                self._give_back(taken)

    def _at_end(self) -> bool:
        return self._closed and (self._cancelled or not self._putting)

    def _give_back(self, taken: list[Element]) -> None:
        for element in taken:
            self._add(element)

    def close(self, cancel: bool) -> None:
        """Lets nothing more be put; those who wait for room are cancelled if that is asked for."""
        with self._changed:
            self._closed = True
            self._cancelled |= cancel
            self._changed.notify_all()


class InOrder(Elements):
    """Elements in the order in which they came."""

    def __init__(self, kind: str, capacity: int) -> None:
        super().__init__(kind, capacity)
        self._elements: deque[Element] = deque()

    def __len__(self) -> int:
        return len(self._elements)

    def _add(self, element: Element) -> None:
        self._elements.append(element)

    def _next(self) -> Element:
        return self._elements.popleft()

    def _give_back(self, taken: list[Element]) -> None:
        self._elements.extendleft(reversed(taken))


class Prioritised(Elements):
    """Elements whose first component is the lowest number first; those with one number in the order they came."""

    def __init__(self, kind: str, capacity: int) -> None:
        super().__init__(kind, capacity)
        self._elements: list[tuple[int, int, Element]] = []
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._elements)

    def _add(self, element: Element) -> None:
        heapq.heappush(self._elements, (int(element[0]), next(self._numbers), element))

    def _next(self) -> Element:
        return heapq.heappop(self._elements)[2]


class Shuffled(Elements):
    """Elements in random order, of which some stay to be chosen from.

    Args:
        kind, capacity: as for others.
        kept: how many.
        draws: has a method `next` that gives random words.
    """

    def __init__(self, kind: str, capacity: int, kept: int, draws: Any) -> None:
        super().__init__(kind, capacity)
        self._elements: list[Element] = []
        self._least, self._draws = kept, draws

    def __len__(self) -> int:
        return len(self._elements)

    def _kept(self) -> int:
        return self._least

    def _add(self, element: Element) -> None:
        self._elements.append(element)

    def _next(self) -> Element:
        at = self._draws.next() % len(self._elements)
        element, self._elements[at] = self._elements[at], self._elements[-1]
        self._elements.pop()
        return element
