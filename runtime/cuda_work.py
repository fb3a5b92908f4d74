"""What a program hands in to a GPU: launches, copies and fills, and sequences of them, which become graphs of the
driver's.

A call fills in where its arrays lie, and machine code hands all of a sequence in (`cuda_launch.py`). What a call does
again with the same arrays' places is recorded as a graph, which takes the driver as long as one launch: a training loop
gets the same memory again and again. What is handed in, and in which order, is not decided here.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from twofold.codegen.plan import Step
from twofold.codegen.statements import Kernel
from twofold.ir.recent import Recent

from .cuda_code import LoadedKernel, function
from .cuda_device import Gpu
from .cuda_launch import Launcher, LaunchRows, LaunchWord, copy_row, fill_row, kernel_row
from .cuda_places import BufferPlace, Place, PlanPlaces, SlotPlace
from .cuda_timeline import Launched

__all__ = ["KernelLaunch", "DeviceCopy", "DeviceFill", "DeviceWork", "LaunchSequence", "StepsHandedIn", "LEADING",
           "launch_of", "ops_of", "places_of", "told"]

LEADING = 2  # words of a launch before the arguments of its step: its range, and where its status word lies
_GRAPHS = 8  # graphs of a sequence, for different memory
_NODES = 8192  # of all graphs of a sequence together: the driver takes time and memory for each
_WORTH = 3  # launches from which a graph is
_OWN_THREAD = 1  # CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: what other threads do meanwhile is theirs


class KernelLaunch(NamedTuple):
    """One launch of a step, but for addresses."""

    function: LoadedKernel
    grid: int
    block: int
    words: Sequence[Place | int]
    step: Step


def launch_of(gpu: Gpu, step: Step, part: Step, status: Place | None, places: PlanPlaces) -> KernelLaunch:
    """The launch of a part of a step, which runs an iteration or more.

    Args:
        status: where the status word of the step lies.
    """
    assert isinstance(part.kernel, Kernel)
    total, made = places.number(part.total), function(gpu, part.kernel, len(part.arguments))
    words = [total, 0 if status is None else status, *map(places.word, part.arguments)]
    return KernelLaunch(made, *made.shape(total), words, step)


class DeviceCopy(NamedTuple):
    """Bytes that are copied from one place to another."""

    to: Place
    source: Place
    size: int


class DeviceFill(NamedTuple):
    """Bytes that become 0xFF."""

    to: Place
    size: int


DeviceWork: TypeAlias = KernelLaunch | DeviceCopy | DeviceFill


def places_of(one: DeviceWork) -> Sequence[Place | int]:
    """The arguments of work."""
    if isinstance(one, KernelLaunch):
        return one.words
    return [one.to, one.source] if isinstance(one, DeviceCopy) else [one.to]


def told(one: DeviceWork) -> tuple[Launched | str, int]:
    """Work as timelines tell of it, and the bytes that it copies."""
    if not isinstance(one, KernelLaunch):
        return "copy on the GPU" if isinstance(one, DeviceCopy) else "fill", one.size
    takes = one.function.resources
    return Launched(one.step, one.grid, one.block, takes.registers, takes.shared), 0


def ops_of(steps: Iterable[Step]) -> list[str]:
    """The ops of each step, with the user's line."""
    ops = []
    for step in steps:
        names = ", ".join(dict.fromkeys(node.op.name for node in step.nodes))
        line = next((str(node.loc) for node in step.nodes if node.loc is not None), "")
        ops += [f"{names} ({line})" if line else names] if names else []
    return ops


class StepsHandedIn(NamedTuple):
    """What a program computes, for errors; it holds no memory of the GPU."""

    steps: Sequence[Step]

    def ops(self) -> list[str]:
        """The ops of the steps, each with the user's line."""
        return ops_of(self.steps)


class LaunchSequence:
    """Work that is handed in at once, and the graphs that have been recorded of it.

    Attributes:
        work: what is done.
        rows: it as machine code takes it.
        slots: the places in it that indices decide, whose addresses follow those of the buffers.
        buffers: whose addresses it depends on.
        steady: whether graphs are recorded of it.
        graphs: by these addresses; None for those that came up once.
    """

    def __init__(self, work: Sequence[DeviceWork], buffers: int) -> None:
        """Args:
            buffers: how many a run has.
        """
        self.work, self._buffers = work, buffers
        self.slots: dict[SlotPlace, int] = {}
        once = {id(one): one for one in work}  # rounds of a loop share what they have in common
        rows = {number: self._row(one) for number, one in once.items()}
        self.rows = LaunchRows([rows[id(one)] for one in work])
        self.buffers = sorted({p.buffer for one in once.values() for p in places_of(one) if isinstance(p, BufferPlace)})
        self.steady = len(work) >= _WORTH and not self.slots
        self.graphs: Recent[tuple[int, ...], _RecordedGraph | None] = Recent(
            min(_GRAPHS, max(2, _NODES // max(len(work), 1))))

    def _row(self, one: DeviceWork) -> list[int]:
        words = [self._word(place) for place in places_of(one)]
        if isinstance(one, KernelLaunch):
            return kernel_row(one.function.handle.value or 0, one.grid, one.block, words)
        if isinstance(one, DeviceCopy):
            return copy_row(words[0], words[1], one.size)
        return fill_row(words[0], one.size)

    def _word(self, place: Place | int) -> LaunchWord:
        if isinstance(place, int):
            return LaunchWord(place)
        if isinstance(place, BufferPlace):
            return LaunchWord(place.offset, place.buffer)
        return LaunchWord(0, self.slots.setdefault(place, self._buffers + len(self.slots)))

    def graph(self, launcher: Launcher, gpu: Gpu, bases: array[int]) -> _RecordedGraph | None:
        """The graph for buffers at these addresses, recorded when they come up a second time."""
        key = tuple([bases[n] for n in self.buffers])
        graph = self.graphs.get(key)
        if graph is None:
            known = key in self.graphs
            graph = self.graphs.remember(key, _RecordedGraph(launcher, gpu, self.rows, bases) if known else None)
        self.graphs.move_to_end(key)
        return graph


class _RecordedGraph:
    """A graph of the driver's."""

    def __init__(self, launcher: Launcher, gpu: Gpu, rows: LaunchRows, bases: array[int]) -> None:
        self.gpu, self.handle = gpu, ctypes.c_void_p()
        driver, graph = gpu.driver, ctypes.c_void_p()
        with gpu:
            driver.cuStreamBeginCapture_v2(gpu.recording, _OWN_THREAD)
            try:
                launcher.hand_in(rows, bases, gpu.recording)
            finally:
                driver.cuStreamEndCapture(gpu.recording, ctypes.byref(graph))
            try:
                driver.cuGraphInstantiateWithFlags(ctypes.byref(self.handle), graph, 0)
            finally:
                driver.cuGraphDestroy(graph)
        self.address = self.handle.value or 0

    def __del__(self) -> None:
        if self.handle:
            self.gpu.make_current()
            self.gpu.driver.status("cuGraphExecDestroy", self.handle)
