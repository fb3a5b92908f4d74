"""Requests wait, are joined where their function allows it, and run in threads.

All that decides happens in the event loop's thread; threads only run models. A request begins as soon as a thread is
free, so requests gather while all threads are at work; a window makes them wait for others besides. Requests are joined
along axis 0 if all other sizes agree, up to a number of rows, in the order in which they came. Nothing is padded. If a
joined call fails, or does not give a row for each row, its requests run one by one, so that none suffers from another.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .metrics import Metrics
from .servable import Arrays, Function

__all__ = ["Runner", "run_joined"]


@dataclass(eq=False)
class _Waiting:
    """A request.

    Attributes:
        arrays: for the inputs.
        result: what it waits for.
        since: when it came, by the loop's clock.
        rows: how many; 0 where it cannot be joined.
        form: the other sizes, which have to agree.
    """

    arrays: Arrays
    result: asyncio.Future[list[np.ndarray[Any, Any]]]
    since: float
    rows: int
    form: tuple[Any, ...]


@dataclass(eq=False)
class _Line:
    """The requests that wait for one function."""

    function: Function
    model: str
    waiting: deque[_Waiting] = field(default_factory=deque)
    timer: asyncio.TimerHandle | None = None


class Runner:
    """Runs functions for requests.

    Args:
        workers: threads.
        rows: up to how many rows requests are joined.
        window: seconds that a request may wait for others.
    """

    def __init__(self, workers: int, rows: int, window: float, metrics: Metrics) -> None:
        self.rows, self.window, self.metrics = rows, window, metrics
        self.free = self.workers = workers
        self.pool = ThreadPoolExecutor(workers, "twofold-serve")
        self.lines: dict[Function, _Line] = {}  # those in which somebody waits, in the order of their turns

    async def run(self, model: str, function: Function, arrays: Arrays) -> list[np.ndarray[Any, Any]]:
        """The results for arrays; whoever is cancelled meanwhile is left out."""
        loop = asyncio.get_running_loop()
        rows = _common_rows(arrays) if function.joins else 0
        request = _Waiting(arrays, loop.create_future(), loop.time(), rows, tuple([a.shape[1:] for a in arrays]))
        line = self.lines.get(function)
        if line is None:
            line = self.lines[function] = _Line(function, model)
        line.waiting.append(request)
        self._start()
        return await request.result

    def close(self) -> bool:
        """Ends the threads; whether none is at work any more."""
        self.pool.shutdown(wait=False, cancel_futures=True)
        return self.free == self.workers

    # -- in the event loop's thread ---------------------------------------------------------------
    def _start(self) -> None:
        """Starts calls while threads are free; each line has a turn before any has its second."""
        turns = len(self.lines)
        while self.free and turns:
            function, line = next(iter(self.lines.items()))
            del self.lines[function]
            batch = self._batch(line)
            if line.waiting:
                self.lines[function] = line
            turns -= 1
            if batch:
                self._submit(line, batch)
                turns = len(self.lines)

    def _batch(self, line: _Line) -> list[_Waiting]:
        """The requests of the next call; none where they wait for more."""
        while line.waiting and line.waiting[0].result.done():  # its client waits no longer
            line.waiting.popleft()
        if not line.waiting:
            return []
        first = line.waiting[0]
        joined, rows = [first], first.rows
        for request in list(line.waiting)[1:] if first.rows else ():
            if request.result.done() or request.form != first.form or not request.rows:
                continue
            if rows + request.rows > self.rows:
                break
            joined.append(request)
            rows += request.rows
        if first.rows and rows < self.rows and len(joined) == len(line.waiting) and self._waits(line, first):
            return []
        chosen = set(map(id, joined))
        line.waiting = deque([r for r in line.waiting if id(r) not in chosen])
        return joined

    def _waits(self, line: _Line, first: _Waiting) -> bool:
        """Whether the window of the first request is still open; then its end is waited for."""
        loop = asyncio.get_running_loop()
        left = first.since + self.window - loop.time()
        if left <= 0:
            return False
        if line.timer is not None:
            line.timer.cancel()
        line.timer = loop.call_later(left, self._start)
        return True

    def _submit(self, line: _Line, batch: Sequence[_Waiting]) -> None:
        self.free -= 1
        self.metrics.calls.labels(line.model).inc()
        self.metrics.joined.labels(line.model).observe(len(batch))
        if batch[0].rows:
            self.metrics.rows.labels(line.model).observe(sum(r.rows for r in batch))
        call = asyncio.get_running_loop().run_in_executor(
            self.pool, run_joined, line.function.run, [r.arrays for r in batch], [r.rows for r in batch])
        call.add_done_callback(lambda done: self._finished(batch, done))

    def _finished(self, batch: Sequence[_Waiting], done: asyncio.Future[Any]) -> None:
        self.free += 1
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        outcomes = done.result() if error is None else [error] * len(batch)
        for request, outcome in zip(batch, outcomes, strict=True):
            if request.result.done():
                continue
            if isinstance(outcome, BaseException):
                request.result.set_exception(outcome)
            else:
                request.result.set_result(outcome)
        self._start()


def _common_rows(arrays: Arrays) -> int:
    """The rows of all arrays; 0 where they have not one number of them."""
    counts = {a.shape[0] if a.ndim else 0 for a in arrays}
    return counts.pop() if len(counts) == 1 else 0


def run_joined(run: Callable[[Arrays], list[np.ndarray[Any, Any]]], requests: Sequence[Arrays], rows: Sequence[int]
               ) -> list[Any]:
    """For each request its results, or the error that it brought about."""
    if len(requests) > 1:
        try:
            return _split(run([np.concatenate(parts) for parts in zip(*requests, strict=True)]), rows)
        except BaseException:  # noqa: BLE001  whichever request brought it about: each runs alone and has its own
            pass
    return [_outcome(run, arrays) for arrays in requests]


def _split(results: Arrays, rows: Sequence[int]) -> list[Any]:
    """The rows of each request.

    Raises:
        ValueError: there is not a row for each.
    """
    if any(a.ndim == 0 or len(a) != sum(rows) for a in results):
        raise ValueError("the results do not have a row for each row")
    parts, start = [], 0
    for count in rows:
        parts.append([a[start:start + count] for a in results])
        start += count
    return parts


def _outcome(run: Callable[[Arrays], list[np.ndarray[Any, Any]]], arrays: Arrays) -> Any:
    try:
        return run(arrays)
    except BaseException as error:  # noqa: BLE001  the request's task raises it
        plain = isinstance(error, Exception) and not isinstance(error, StopIteration)
        return error if plain else RuntimeError(type(error).__name__)  # no other may reach an event loop
