"""Streams whose items are made ahead by threads: prefetching, and functions that run on several items at once.

Threads see a shared desk and never the stream that users hold: when the stream is dropped, the desk closes, threads
leave after what they are at, and with them the streams that they read. Errors are items: they are raised where the item
would have come out. What threads make waits in bounded space. A thread starts only when making an item takes long
enough to be worth handing over (`WORTH`); until then items are made in place, with the same results.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from twofold._front.together import locks

from ._stream import Stream

__all__ = ["AUTOTUNE", "WORTH", "cores", "mapped_in_parallel", "prefetched", "room_of"]

AUTOTUNE = -1
WORTH = 100e-6  # seconds: handing an item from thread to thread takes a part of that
_BLOCK = 64  # items at most that a thread takes at once
_AHEAD = 2  # items that AUTOTUNE makes ahead

Steps = tuple[Callable[[Any], Any], Callable[[Any], Any]] | None

_desks: weakref.WeakSet[Any] = weakref.WeakSet()


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Failure:
    """An error in the place of an item."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def raised(self) -> None:
        """Raise the error, once, with the frames where it came from."""
        error, self.error = self.error, None  # type: ignore[assignment]
        try:
            raise error
        finally:
            del error


class _Pace:
    """How long items take, for the decision whether threads are worth while; the first does not count."""

    __slots__ = ("calls", "slow")

    def __init__(self) -> None:
        self.calls = self.slow = 0

    def took(self, seconds: float) -> bool:
        """Note a time; whether it is time for threads."""
        self.calls += 1
        if self.calls == 1:
            return False
        self.slow = self.slow + 1 if seconds > WORTH else 0
        return self.slow >= 2 or seconds > 20 * WORTH


class _Desk:
    """The state that a stream shares with its threads.

    Attributes:
        changed: notified when an item is there, or room for one, or the desk closes.
        reading: held while the input is read, so that items are numbered in order.
        begin: what is done with an item while it is its turn.
    """

    def __init__(self, source: Stream, room: int, begin: Callable[[Any], Any] | None = None) -> None:
        self.source: Stream | None = source
        self.room, self.begin = room, begin
        self.changed = locks.Condition()
        self.reading = locks.Lock()
        self.closed = self.ended = self.paused = False
        self.busy = 0  # threads that are at an item
        self.number = 0  # of the next block
        self.items: deque[Any] = deque()  # in the order in which they go out
        self.waiting: dict[int, list[Any]] = {}  # blocks whose turn has not come
        self.turn = 0  # the block whose items go out next
        self.held = 0  # items that have been read and have not gone out
        _desks.add(self)

    def close(self) -> None:
        """Let the threads leave."""
        with self.changed:
            self.closed = True
            self.items.clear()
            self.waiting.clear()
            self.changed.notify_all()
        if self.reading.acquire(blocking=False):
            self.source = None
            self.reading.release()

    def may_begin(self) -> bool:
        """Wait until there is room; whether there is something to do."""
        with self.changed:
            while not self.closed and not self.ended and (self.paused or self.held >= self.room):
                self.changed.wait()
            if self.closed or self.ended:
                return False
            self.busy += 1
            return True

    def read(self, most: int) -> tuple[int, list[Any]]:
        """The next items of the input, as a numbered block; fewer where the input is slow."""
        with self.reading:
            items: list[Any] = []
            source = self.source
            until = time.perf_counter() + WORTH
            most = max(1, min(most, self.room - self.held))
            while source is not None and not self.closed and len(items) < most:
                try:
                    item = source.next()
                except BaseException as error:  # noqa: BLE001 - it is raised where the item would come out
                    items.append(_Failure(error))
                    break
                if item is None:
                    self.ended, self.source = True, None
                    break
                items.append(item if self.begin is None else _tried(self.begin, item))
                if time.perf_counter() > until:
                    break
            if self.closed:
                self.source = None
            with self.changed:
                number, self.number = self.number, self.number + 1
                self.held += len(items)
            return number, items

    def hand_in(self, number: int, made: list[Any], ordered: bool) -> None:
        """Hand in the results for a block."""
        with self.changed:
            self.busy -= 1
            if not self.closed:
                if ordered:
                    self.waiting[number] = made
                    while self.turn in self.waiting:
                        self.items.extend(self.waiting.pop(self.turn))
                        self.turn += 1
                else:
                    self.items.extend(made)
            self.changed.notify_all()

    def next(self) -> Any:
        """The next item; None when there are no more."""
        with self.changed:
            while not self.items:
                if self.ended and not self.busy and not self.waiting:
                    return None
                self.changed.wait()
            item = self.items.popleft()
            self.held -= 1
            self.changed.notify_all()
        if type(item) is _Failure:
            item.raised()
        return item

    def fail(self, error: BaseException) -> None:
        """End the stream with an unforeseen error, so that no thread waits for ever."""
        with self.changed:
            self.busy -= 1
            self.ended = True
            self.waiting.clear()
            self.items.append(_Failure(error))
            self.held += 1
            self.changed.notify_all()

    def pause(self) -> None:
        """Wait until no thread is at an item."""
        with self.changed:
            self.paused = True
            while self.busy:
                self.changed.wait()

    def go_on(self) -> None:
        """After `pause`."""
        with self.changed:
            self.paused = False
            self.changed.notify_all()


def _work(desk: _Desk, fn: Callable[[Any], Any] | None, ordered: bool) -> None:
    """The loop of a thread, until the input ends or the desk closes."""
    most = 1
    while desk.may_begin():
        try:
            number, items = desk.read(most)
            begin = time.perf_counter()
            made: list[Any] = []
            for item in items:
                made.append(item if fn is None or type(item) is _Failure else _tried(fn, item))
                if desk.closed:
                    break
            spent = (time.perf_counter() - begin) / max(1, len(items))
            most = min(_BLOCK, int(2 * WORTH / spent) + 1) if spent > 0 else _BLOCK
        except BaseException as error:  # noqa: BLE001 - such as no memory: the consumer is to know
            desk.fail(error)
            return
        desk.hand_in(number, made, ordered)
        item, made, items = None, [], []


def _tried(fn: Callable[[Any], Any], item: Any) -> Any:
    try:
        return fn(item)
    except BaseException as error:  # noqa: BLE001 - it is raised where the item would come out
        return _Failure(error)


class _Ahead(Stream):
    """Items that threads make ahead, once that is worth while."""

    def __init__(self, source: Stream, fn: Callable[[Any], Any] | None, threads: int, room: int,
                 ordered: bool, steps: Steps = None) -> None:
        self.input: Stream = source
        self.begin: Callable[[Any], Any] | None = None if steps is None else steps[0]
        self.rest: Callable[[Any], Any] | None = fn if steps is None else steps[1]
        self.fn, self.threads, self.room, self.ordered = fn, threads, room, ordered
        self.pace = _Pace()
        self.desk: _Desk | None = None
        self.process = os.getpid()

    def __del__(self) -> None:
        desk = getattr(self, "desk", None)
        if desk is not None:
            desk.close()

    def next(self) -> Any:
        if self.desk is not None:
            if os.getpid() != self.process:
                raise RuntimeError("this iterator's threads are in the process that it was made in: make an iterator "
                                   "of the dataset in this process.")
            return self.desk.next()
        begin = time.perf_counter()
        item = self.input.next()
        if self.fn is not None:
            begin = time.perf_counter()
            item = None if item is None else self.fn(item)
        if self.pace.took(time.perf_counter() - begin) and item is not None:
            self._hire()
        return item

    def _hire(self) -> None:
        """Start the threads."""
        self.desk = _Desk(self.input, self.room, self.begin)
        self._staff()

    def _staff(self) -> None:
        for number in range(self.threads):
            name = f"tf.data {'prefetch' if self.fn is None else 'map'} {number}"
            threading.Thread(target=_work, args=(self.desk, self.rest, self.ordered), name=name, daemon=True).start()

    def save(self) -> Any:
        desk = self.desk
        if desk is None:
            return {"input": self.input.save(), "items": [], "ended": False, "hired": False}
        desk.pause()
        try:
            items = list(desk.items)
            for number in sorted(desk.waiting):
                items += desk.waiting[number]
            for item in items:
                if type(item) is _Failure:
                    raise item.error
            ended = desk.ended
            return {"input": None if desk.source is None else desk.source.save(), "items": items, "ended": ended,
                    "hired": True}
        finally:
            desk.go_on()

    def load(self, state: Any) -> None:
        if self.desk is not None:
            raise RuntimeError("the stream has begun: load into a new one")
        if state["input"] is not None:
            self.input.load(state["input"])
        if state["hired"]:
            self.desk = _Desk(self.input, self.room, self.begin)
            self.desk.items.extend(state["items"])
            self.desk.held = len(self.desk.items)
            if state["ended"]:
                self.desk.ended, self.desk.source = True, None
            else:
                self._staff()


def room_of(buffer_size: int) -> int:
    """How many items a buffer holds that a user asks for."""
    return _AHEAD if buffer_size == AUTOTUNE else max(1, buffer_size)


def prefetched(source: Stream, room: int) -> Stream:
    """The items of a stream, made ahead by a thread, `room` of them at most."""
    return _Ahead(source, None, 1, room_of(room), True)


def mapped_in_parallel(source: Stream, fn: Callable[[Any], Any], threads: int, ordered: bool,
                       steps: Steps = None, room: int | None = None) -> Stream:
    """The results of a function for the items of a stream, on several threads; in order, or as they are ready.

    Args:
        room: how many wait at most; by default as many as threads can use.
        steps: for a function with a state, such as a stream of random numbers: what it does with one item after
            another, and what with what came of that.
    """
    return _Ahead(source, fn, max(1, threads), max(4, 2 * threads) if room is None else room, ordered, steps)


def _close_all() -> None:
    """At the end of the process: threads that wait leave; those in the middle of something are daemons."""
    for desk in list(_desks):
        desk.close()


atexit.register(_close_all)
