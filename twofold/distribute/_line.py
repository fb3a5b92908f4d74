"""`Line`: the exchanges of a process with others, which one thread makes, one after another.

Whoever needs an exchange begins it and may compute until its results are needed. The thread makes them in the order in
which they were begun. That is the same in all processes, since these run the same program: so no two of them can wait
for one another. A program that is not the same is an error: before each exchange the processes compare what they are
about to exchange.

What the thread runs is `_transport.py`'s. Where a transport cannot be used by a thread of its own, exchanges are made
when they are begun.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import queue
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from twofold._front.together import locks

from ._transport import Add, Group

__all__ = ["Line", "Task", "of"]


class Task:
    """Something that the thread does, and its result.

    Args:
        about: what it is, which must be the same text in all processes; empty for what is no exchange.
        call: does it.
        offer: gives what this process tells the others beside that, a number up to 255, when they have come to it.
    """

    def __init__(self, about: str, call: Callable[[], Any], offer: Callable[[], int] = int) -> None:
        self.about, self._call, self.offer = about, call, offer
        self.awaited = False  # whether somebody does nothing but wait for it
        self._done = locks.Lock()
        self._done.acquire()
        self._result: Any = None
        self._error: BaseException | None = None

    def run(self, before: Callable[[Task], None]) -> None:
        """Does it, an exchange after `before` was called with it."""
        try:
            if self.about:
                before(self)
            self._result = self._call()
        except BaseException as error:  # noqa: BLE001 - whoever waits raises it
            self._error = error
        finally:
            del self._call  # and with it what is exchanged
            self._done.release()

    def wait(self) -> Any:
        """Its result, when it is there. An interrupt ends the waiting; the task is done all the same.

        Raises:
            BaseException: what has gone wrong with it.
        """
        self.awaited = True
        with self._done:
            if self._error is not None:
                raise self._error
            return self._result


class Line(Group):
    """A group of processes whose exchanges one thread makes.

    Attributes:
        offers: what all processes told of the exchange that is made, see `Task`.
        gpus: those of the processes, where some exchange began on one (`_gpus.py`).
        broken: of what exchanges are not made any more: others may wait for the end of one that has failed here.
        closing: what is called when the program ends, after all exchanges.
    Args:
        group: makes one.
    """

    def __init__(self, group: Group) -> None:
        self._group = group
        self.rank, self.size = group.rank, group.size
        self.offers: list[int] = []
        self.gpus: Any = None
        self.broken: Exception | None = None
        self.closing: list[Callable[[], None]] = []
        self._tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
        self._starting = locks.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, about: str, call: Callable[[Group], Any], offer: Callable[[], int] = int) -> Task:
        """Begins an exchange.

        Args:
            about: what is exchanged: a text that is the same in all processes.
            call: makes it, with the group.
            offer: see `Task`.
        """
        task = Task(about, lambda: call(self._group), offer)
        if not self._group.concurrent or self._thread is threading.current_thread():
            task.run(self._compare)
        else:
            if self._thread is None:
                self._start()
            self._tasks.put(task)
        return task

    def sum(self, rows: np.ndarray, add: Add) -> np.ndarray:
        total: np.ndarray = self.begin(f"a sum of {rows.dtype}{list(rows.shape)}",
                                       lambda group: group.sum(rows, add)).wait()
        return total

    def gather(self, value: np.ndarray) -> list[np.ndarray]:
        arrays: list[np.ndarray] = self.begin(f"a join of {value.dtype}", lambda group: group.gather(value)).wait()
        return arrays

    def broadcast(self, value: Any) -> Any:
        return self.begin("what the first process has", lambda group: group.broadcast(value)).wait()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="twofold exchanges", daemon=True)
                thread.start()
                self._thread = thread
                atexit.register(self._finish)

    def _work(self) -> None:
        while True:
            self._tasks.get().run(self._compare)

    def _finish(self) -> None:
        """Waits for what was begun and nobody waited for: others have begun it, too."""
        last = Task("", lambda: [close() for close in self.closing])
        self._tasks.put(last)
        last.wait()

    def _compare(self, task: Task) -> None:
        """Has all processes know that they are at the same exchange, when all have come to it.

        Raises:
            RuntimeError: they are not, in all of them. Exception: what has broken the line.
        """
        if self.broken is not None:
            raise self.broken
        marks = self._group.marks(_mark(task.about) + bytes([task.offer()]), lambda: task.awaited)
        self.offers = [mark[-1] for mark in marks]
        if len({mark[:-1] for mark in marks}) > 1:
            texts = self._group.texts(task.about)
            shown = "\n".join(f"  process {n}: {text}" for n, text in enumerate(texts))
            raise RuntimeError("Processes have come to different exchanges; all must come to the same ones in the same "
                               f"order.\n{shown}")


@functools.lru_cache(4096)
def _mark(about: str) -> bytes:
    """A few bytes that stand for a text."""
    return hashlib.blake2b(about.encode(), digest_size=16).digest()


@functools.cache
def of(group: Group) -> Group:
    """A group whose exchanges one thread makes; itself where it is of one process."""
    return group if group.size == 1 else Line(group)
