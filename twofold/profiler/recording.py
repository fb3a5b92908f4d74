"""One profile: what ran from when to when, and the trace it is written as.

Ops are timed at the single door of eager execution, which native shortcuts leave to Python while a profile is under
way; compiled functions where they are called. What a GPU did are rows of a process of the GPU's name, by its own clock
(`runtime/cuda_timeline.py`). The file is in the Trace Event Format that Chrome, Perfetto and TensorBoard read
("complete" events, times in microseconds). Perfetto takes events of one thread that overlap without being one inside
the other for damage, and no number of a thread beyond 32 bits: so times are whole nanoseconds, and threads are told by
the system's numbers.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
import platform
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from twofold._formats import replacing as _replacing
from twofold.eager.executing import backend_for
from twofold.eager.tensor import Tensor
from twofold.ir import graph as g
from twofold.ir.op import interpreter, set_default_interpreter
from twofold.runtime import cuda_timeline, native
from twofold.runtime.cuda_timeline import Span
from twofold.tracer import watching
from twofold.tracer.kernels import title_of
from twofold.tracer.page import timing, whole
from twofold.tracer.trace import location

__all__ = ["Recording"]

# To measure kernels, the arguments of one call of each function are kept: always of the first function, and of others
# while all that is kept has no more bytes than this.
_KEPT = 1 << 28
_numbers = itertools.count()
_PROCESSES = 22  # bits of the numbers that Linux gives to processes


class Recording:
    """A profile under way.

    Args:
        logdir: where its trace is written.
        devices: whether it is about GPUs, too.
    """

    def __init__(self, logdir: str, devices: bool = True) -> None:
        self._logdir = logdir
        self._timeline = cuda_timeline.Timeline() if devices else None
        self._origin = time.perf_counter_ns()
        self._events: list[tuple[str, str, int, int, int, dict[str, Any]]] = []
        self._calls: list[tuple[int, int, int, Any]] = []  # begin, end, thread and what was called
        self._inputs: dict[Any, list[np.ndarray]] = {}  # of a call of each traced function
        self._kept = 0  # bytes of them
        self._names: dict[int, str] = {}

    def now(self) -> int:
        """Nanoseconds since the profile began."""
        return time.perf_counter_ns() - self._origin

    def add(self, name: str, kind: str, begun: int, more: dict[str, Any]) -> None:
        """Note what began at `begun` and ends now."""
        thread = threading.get_native_id()
        self._names.setdefault(thread, threading.current_thread().name)
        self._events.append((name, kind, begun, self.now(), thread, more))

    def start(self) -> None:
        """Be told from now on."""
        self._eager = interpreter()
        set_default_interpreter(_Timed(self._eager, self))
        native.change_tracers(1)
        watching.start(self._called)
        if self._timeline is not None:
            cuda_timeline.start(self._timeline)

    def stop(self) -> None:
        """Be told no more."""
        if self._timeline is not None:
            cuda_timeline.stop(self._timeline)
        watching.stop(self._called)
        native.change_tracers(-1)
        set_default_interpreter(self._eager)

    def _called(self, traced: Any, inputs: Sequence[Any]) -> Callable[[], None]:
        line = location()
        given = [*inputs, *traced.captures]
        arrays = [x._memory if isinstance(x, Tensor) else x._current()._memory for x in given]
        on_host = backend_for(arrays) is None
        if on_host and traced not in self._inputs:
            more_bytes = sum(a.nbytes for a in arrays)
            if self._kept + more_bytes <= _KEPT or not self._inputs:
                self._inputs[traced] = arrays
                self._kept += more_bytes
        more = {"line": str(line), "arguments": ", ".join(_short(x) for x in given)}
        begun = self.now()

        def ended() -> None:
            self.add(traced.graph.name, "function", begun, more)
            if on_host:  # a GPU tells of its kernels itself
                self._calls.append((begun, self.now(), threading.get_native_id(), traced))
        return ended

    def drop(self) -> None:
        """Give back what it holds on GPUs."""
        if self._timeline is not None:
            self._timeline.close()

    # -- writing ----------------------------------------------------------------------------------
    def write(self) -> Path:
        """Write the trace; the path of its file."""
        events = [_complete(name, kind, begin, end, thread, more)
                  for name, kind, begin, end, thread, more in self._events]
        shares = {traced: _kernels(traced, arrays) for traced, arrays in self._inputs.items()}
        for begin, end, thread, traced in self._calls:
            events += _inside(begin, end, thread, shares.get(traced, []))
        names = [{"ph": "M", "name": "thread_name", "pid": os.getpid(), "tid": thread, "args": {"name": name}}
                 for thread, name in self._names.items()]
        names.append({"ph": "M", "name": "process_name", "pid": os.getpid(), "args": {"name": "twofold"}})
        spans = [] if self._timeline is None else self._timeline.take()
        self.drop()
        names += _gpu_names(spans)
        events += [_of_gpu(span, self._origin) for span in spans]
        stamp = time.strftime("%Y_%m_%d_%H_%M_%S")
        folder = Path(self._logdir) / "plugins" / "profile" / f"{stamp}_{next(_numbers)}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{platform.node() or 'host'}.trace.json.gz"
        content = json.dumps({"displayTimeUnit": "ns", "traceEvents": [*names, *events]}).encode()
        _replacing.replace(path, gzip.compress(content, mtime=0))
        return path


class _Timed:
    """Eager execution, which notes every op."""

    def __init__(self, eager: Any, recording: Recording) -> None:
        self._eager, self._recording = eager, recording

    def __getattr__(self, name: str) -> Any:
        return getattr(self._eager, name)

    def apply(self, op: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Run an op."""
        recording = self._recording
        begun = recording.now()
        try:
            return self._eager.apply(op, inputs, attrs)
        finally:
            recording.add(op.name, "op", begun, {"line": str(location()), "operands": ", ".join(map(_short, inputs))})


def _short(x: Any) -> str:
    spec = getattr(x, "dims", None)
    return f"{x.dtype.name}{list(spec)}" if spec is not None else type(x).__name__


def _complete(name: str, kind: str, begin: int, end: int, thread: int, more: dict[str, Any],
              process: int | None = None) -> dict[str, Any]:
    return {"ph": "X", "name": name, "cat": kind, "ts": begin / 1000, "dur": (end - begin) / 1000,
            "pid": os.getpid() if process is None else process, "tid": thread, "args": more}


def _process_of(gpu: int) -> int:
    """A number for a GPU that no process of the system has."""
    return os.getpid() + ((gpu + 1) << _PROCESSES)


def _row_of(stream: str) -> int:
    """The number of a stream's row in the process of its GPU, from 1."""
    return 1 + cuda_timeline.STREAMS.index(stream)


def _gpu_names(spans: Sequence[Span]) -> list[dict[str, Any]]:
    """What the rows of GPUs are called: a GPU is a process, and a stream a thread of it."""
    names = []
    for gpu in sorted({span.gpu for span in spans}):
        pid = _process_of(gpu)
        names.append({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": f"/device:GPU:{gpu}"}})
        names += [{"ph": "M", "name": "thread_name", "pid": pid, "tid": _row_of(stream),
                   "args": {"name": f"stream of {stream}"}}
                  for stream in sorted({span.stream for span in spans if span.gpu == gpu})]
    return names


def _of_gpu(span: Span, origin: int) -> dict[str, Any]:
    """A kernel or a copy on a GPU."""
    where = span.begin - origin, span.end - origin, _row_of(span.stream)
    if isinstance(span.what, str):
        return _complete(span.what, "copy", *where, {"bytes": span.size}, _process_of(span.gpu))
    nodes = span.what.step.nodes
    lines = dict.fromkeys(str(node.loc) for node in nodes if node.loc is not None)
    more = {"lines": ", ".join(lines), "kernel": span.what.step.name, "blocks": span.what.grid,
            "threads": span.what.block, "registers": span.what.registers, "shared": span.what.shared}
    return _complete(title_of(nodes) or span.what.step.name, "kernel", *where, more, _process_of(span.gpu))


def _kernels(traced: Any, arrays: list[np.ndarray]) -> list[tuple[str, float, dict[str, Any]]]:
    """Name, seconds and description of each kernel of a function, in order; none where it cannot be run again."""
    compiled, kernels, _ = whole.compiled_kernels(traced.graph, traced.fast_math)
    if any(g.effect_of(node) is not None for node in compiled.walk()):
        return []
    timing.measure(compiled, kernels, arrays)
    return [(k.title, k.seconds, {"lines": ", ".join(map(str, k.lines)), "seconds": k.seconds})
            for k in kernels if k.seconds]


def _inside(begin: int, end: int, thread: int, kernels: Sequence[tuple[str, float, dict[str, Any]]]
            ) -> list[dict[str, Any]]:
    """The kernels of a call, one after another; they fill it at most."""
    total = sum(seconds for _, seconds, _ in kernels) * 1e9
    scale = min(1.0, (end - begin) / total) if total else 1.0
    events, past = [], 0.0
    for name, seconds, more in kernels:
        start, past = past, past + seconds * 1e9 * scale
        events.append(_complete(name, "kernel", begin + int(start), min(begin + int(past), end), thread, more))
    return events
