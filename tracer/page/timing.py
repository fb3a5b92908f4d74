"""How long each kernel of a graph takes: the same programs, whose entries read the clock around every step. On a GPU
events of the driver's stand around every launch.

A timed program is compiled for the purpose and kept nowhere; programs that run otherwise carry no clock. Nothing that
the function would change is changed: graphs are pure, and variables get no new values. What Python runs, and draws
from random streams, do happen.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from twofold.codegen import llvm_module, planner, program
from twofold.codegen.backend import Backend
from twofold.eager import executing
from twofold.ir import graph as g
from twofold.ir.dims import DimLike
from twofold.ir.errors import UnimplementedError
from twofold.runtime import cuda_timeline, system
from twofold.runtime.compiled import Native
from twofold.runtime.cpu import cpu
from twofold.runtime.description import ProgramCode, describe
from twofold.runtime.program import Timeable

from ..kernels import PlannedKernel

__all__ = ["measure"]

_ENOUGH = 0.25  # seconds of runs
_RUNS = 3, 200  # the least and the most


def measure(graph: g.Graph, kernels: Sequence[PlannedKernel], arrays: Sequence[np.ndarray],
            backend: Backend = cpu) -> dict[g.Node, float]:
    """Sets the `seconds` of kernels: the median of some runs.

    Args:
        graph: as it runs.
        kernels: of the graph, on the backend.
        arrays: memory for each of its inputs.
        backend: where it runs.
    Returns:
        The seconds of the nodes that Python runs, likewise.
    Raises:
        InvalidArgumentError: a check of the function fails for these arrays.
    """
    host = _TimedHost(backend)
    whole = host.region(graph)
    executing.execute(whole, arrays)  # a first run also links what is shared
    steps: dict[tuple[g.Graph, int, int], list[int]] = {}
    nodes: dict[g.Node, list[float]] = {}
    begin = time.perf_counter()
    for run in range(_RUNS[1]):
        if run >= _RUNS[0] and time.perf_counter() - begin > _ENOUGH:
            break
        host.clear()
        executing.execute(whole, arrays)
        for key, spent in host.counts():
            steps.setdefault(key, []).append(spent)
        for node, seconds in host.spent.items():
            nodes.setdefault(node, []).append(seconds)
    for kernel in kernels:
        medians = [statistics.median(steps[key]) for key in kernel.steps if key in steps]
        kernel.seconds = sum(medians) * 1e-9 if medians else None
    return {node: statistics.median(samples) for node, samples in nodes.items()}


class _TimedHost(executing.Host):
    """Runs nodes that need Python, regions with clocks, and notes what nodes take."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self.spent: dict[g.Node, float] = {}
        self.timed: dict[g.Graph, Timeable[_TimedProgram | _TimedOnGpu]] = {}

    def __call__(self, node: g.Node, arrays: list[np.ndarray], sizes: dict[str, DimLike]) -> Sequence[np.ndarray]:
        start = time.perf_counter()
        results = super().__call__(node, arrays, sizes)
        self.spent[node] = self.spent.get(node, 0.0) + time.perf_counter() - start
        return results

    def begin(self, node: g.Node, arrays: list[np.ndarray], sizes: dict[str, DimLike]
              ) -> Callable[[], Sequence[np.ndarray]]:
        end = super().begin(node, arrays, sizes)

        def timed() -> Sequence[np.ndarray]:
            start = time.perf_counter()
            results = end()
            self.spent[node] = self.spent.get(node, 0.0) + time.perf_counter() - start
            return results
        return timed

    def region(self, graph: g.Graph) -> Timeable[_TimedProgram | _TimedOnGpu]:
        timeable = self.timed.get(graph)
        if timeable is None:
            timeable = self.timed[graph] = Timeable(graph, self, self.backend, self._program)
        return timeable

    def _program(self, graph: g.Graph) -> _TimedProgram | _TimedOnGpu:
        return _TimedProgram(graph) if self.backend.is_host else _TimedOnGpu(graph, self.backend)

    def clear(self) -> None:
        """Sets all times to 0."""
        self.spent.clear()
        for region in self.timed.values():
            for native in region.natives:
                ctypes.memset(native.counts, 0, ctypes.sizeof(native.counts))

    def counts(self) -> list[tuple[tuple[g.Graph, int, int], int]]:
        """Nanoseconds by graph, number of the program in it, and step."""
        return [((graph, n, at), spent) for graph, region in self.timed.items()
                for n, native in enumerate(region.natives) for at, spent in enumerate(native.counts)]


class _TimedProgram(Native):
    """A program that counts nanoseconds of its steps in `counts`."""

    __slots__ = ("counts", "_longer")

    def __init__(self, graph: g.Graph) -> None:
        lowered = program.compile_graph(graph, cpu, "entry", timed=True)
        code = llvm_module.machine_code(lowered.module, quick=lowered.plan.is_long)
        lines = {id(node): n for n, node in enumerate(graph.walk())}
        super().__init__(graph, describe(lowered.plan, lambda node: lines.get(id(node))), ProgramCode([code]))
        self.counts = (ctypes.c_int64 * max(len(lowered.plan.steps), 1))()
        clock = system.c_function("clock_gettime")
        if clock is None:
            raise UnimplementedError(None, None, "Kernels are not timed on this system: it has no `clock_gettime`.")
        self._longer = (ctypes.c_int64 * (len(self._table) + 2))(*self._table, clock, ctypes.addressof(self.counts))
        self.words += ctypes.addressof(self._longer) - ctypes.addressof(self._table)


class _TimedOnGpu:
    """A program on a GPU that counts nanoseconds of its steps in `counts`."""

    donated: dict[int, int] = {}

    def __init__(self, graph: g.Graph, backend: Backend) -> None:
        plan = planner.plan(graph, backend)
        self._program, self._number = backend.compile(plan), {step: n for n, step in enumerate(plan.steps)}
        self.counts = (ctypes.c_int64 * max(len(plan.steps), 1))()

    def __call__(self, arrays: Sequence[Any], sizes: dict[str, int]) -> list[Any]:
        timeline = cuda_timeline.Timeline()
        cuda_timeline.start(timeline)
        try:
            results = self._program(arrays, sizes)
            spans = timeline.take()
        finally:
            cuda_timeline.stop(timeline)
            timeline.close()
        for span in spans:
            step = None if isinstance(span.what, str) else span.what.step
            parts = () if step is None else step.inside or (step,)  # those of one kernel are taken to take the same
            for number in [self._number[part] for part in parts if part in self._number]:
                self.counts[number] += (span.end - span.begin) // len(parts)
        return results
