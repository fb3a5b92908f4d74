"""What GPUs do, from when to when: for profiles, and for pages that show what kernels take.

While a `Timeline` watches, whatever is handed in on a GPU's streams has events of the driver's before and behind it,
and kernels are launched one by one, so that each has times of its own. Events tell times against one another alone: at
first, and then again and again, one of them is known on the host's clock. What is handed in is the affair of
`cuda_device.py` and `cuda_program.py`, which ask here whether somebody watches.
"""

from __future__ import annotations

import ctypes
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from . import locks
from .cuda_driver import Driver

if TYPE_CHECKING:
    import threading

    from twofold.codegen.plan import Step

__all__ = ["STREAMS", "Launched", "Span", "Timeline", "start", "stop", "watching"]

STREAMS = "work", "copies"  # what the streams of a GPU are for
_ANCHOR = 100_000_000  # nanoseconds after which times are told from a later event: they are float32, in milliseconds
_OPEN = 4096  # spans that wait for their times before it is looked whether they have them
_NOT_READY = 600  # CUDA_ERROR_NOT_READY


class TimedGpu(Protocol):
    """The part of a `cuda_device.Gpu` that is asked for here."""

    index: int
    driver: Driver
    lock: threading.RLock
    recording: ctypes.c_void_p

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: object) -> None: ...

    def make_current(self) -> None:
        """Has the driver's calls of this thread be about it."""

    def stream_name(self, stream: ctypes.c_void_p) -> str:
        """What a stream is for."""


class Launched(NamedTuple):
    """A kernel that was launched.

    Attributes:
        step: that it is of.
        grid, block: how many blocks there were, and the threads of each.
        registers, shared: of a thread, and bytes of a block.
    """

    step: Step
    grid: int
    block: int
    registers: int
    shared: int


class Span(NamedTuple):
    """Something that a GPU did.

    Attributes:
        gpu: its number.
        stream: what its stream is for, one of `STREAMS`.
        what: a kernel, or a copy in words.
        size: the bytes of a copy; 0 for a kernel.
        begin, end: nanoseconds of `time.perf_counter_ns`.
    """

    gpu: int
    stream: str
    what: Launched | str
    size: int
    begin: int
    end: int


class _PendingSpan(NamedTuple):
    """A span whose events may lie ahead."""

    gpu: TimedGpu
    stream: str
    what: Launched | str
    size: int
    first: ctypes.c_void_p
    last: ctypes.c_void_p


class Timeline:
    """What the GPUs do while it watches."""

    def __init__(self) -> None:
        self._lock = locks.RLock()
        self._anchors: dict[TimedGpu, tuple[ctypes.c_void_p, int]] = {}  # an event, and when that was
        self._open: deque[_PendingSpan] = deque()
        self._spans: list[Span] = []
        self._ended: dict[tuple[int, str], int] = {}  # when the last span of a stream ended

    @contextmanager
    def span(self, gpu: TimedGpu, stream: ctypes.c_void_p, what: Launched | str, size: int = 0) -> Iterator[None]:
        """Times what the block hands in on a stream of a GPU that is current."""
        with gpu.lock, self._lock:  # nobody records a graph meanwhile
            if gpu not in self._anchors:
                self._anchors[gpu] = _anchor(gpu)
        first = _recorded(gpu, stream)
        try:
            yield
        finally:
            last = _recorded(gpu, stream)
            with self._lock:
                self._open.append(_PendingSpan(gpu, gpu.stream_name(stream), what, size, first, last))
                if len(self._open) > _OPEN:
                    self._settle("cuEventQuery")

    def take(self) -> list[Span]:
        """What was done since this was last asked, in the order in which it was handed in, once it is done. What a GPU
        had before it when it failed is not there."""
        with self._lock:
            self._settle("cuEventSynchronize")
            spans, self._spans = self._spans, []
            return spans

    def close(self) -> None:
        """Forgets all, and gives the driver its events back."""
        with self._lock:
            for one in self._open:
                _forget(one.gpu, one.first, one.last)
            for gpu, (event, _) in self._anchors.items():
                _forget(gpu, event)
            self._open.clear()
            self._anchors.clear()

    def _settle(self, ask: str) -> None:
        """Gives spans their times, up to the first that is not done, as a function of the driver's tells."""
        while self._open:
            one = self._open[0]
            with one.gpu:
                status = one.gpu.driver.status(ask, one.last)
            if status == _NOT_READY:
                return
            self._open.popleft()
            if status:
                _forget(one.gpu, one.first, one.last)
            else:
                self._close(one)

    def _close(self, one: _PendingSpan) -> None:
        gpu = one.gpu
        anchor, known = self._anchors[gpu]
        begin = known + _between(gpu, anchor, one.first)
        end = begin + _between(gpu, one.first, one.last)
        key = (gpu.index, one.stream)
        begin = max(begin, self._ended.get(key, begin))  # times are rounded, and a stream does one thing after another
        end = self._ended[key] = max(begin, end)
        self._spans.append(Span(gpu.index, one.stream, one.what, one.size, begin, end))
        if begin - known > _ANCHOR:
            self._anchors[gpu] = (one.first, begin)
            _forget(gpu, anchor, one.last)
        else:
            _forget(gpu, one.first, one.last)


_watching: list[Timeline] = []


def watching() -> Timeline | None:
    """The timeline that is to be told, which is the one that began last; None where nobody watches."""
    return _watching[-1] if _watching else None


def start(timeline: Timeline) -> None:
    """Has a timeline watch from now on."""
    _watching.append(timeline)


def stop(timeline: Timeline) -> None:
    """Has it watch no more."""
    _watching.remove(timeline)


def _recorded(gpu: TimedGpu, stream: ctypes.c_void_p) -> ctypes.c_void_p:
    """An event of now on a stream."""
    event = ctypes.c_void_p()
    gpu.driver.cuEventCreate(ctypes.byref(event), 0)
    gpu.driver.cuEventRecord(event, stream)
    return event


def _anchor(gpu: TimedGpu) -> tuple[ctypes.c_void_p, int]:
    """An event, and when that was: on a stream that has nothing else to do, so that it is at once."""
    before = time.perf_counter_ns()
    event = _recorded(gpu, gpu.recording)
    gpu.driver.cuEventSynchronize(event)
    return event, (before + time.perf_counter_ns()) // 2


def _between(gpu: TimedGpu, first: ctypes.c_void_p, last: ctypes.c_void_p) -> int:
    """Nanoseconds between two events."""
    milliseconds = ctypes.c_float()
    with gpu:
        gpu.driver.cuEventElapsedTime(ctypes.byref(milliseconds), first, last)
    return int(milliseconds.value * 1e6)


def _forget(gpu: TimedGpu, *events: ctypes.c_void_p) -> None:
    gpu.make_current()
    for event in events:
        gpu.driver.status("cuEventDestroy_v2", event)
