"""Plans on a GPU: each step is a launch, and launches that follow one another become one graph of the driver's.

A plan's sizes, and with them grids and arguments, are computed once for each set of sizes (`_SizedPlan`); a call fills
in where its arrays lie. What a call does again with the same arrays' places (`_LaunchSequence`) is recorded as a graph,
which takes the driver as long as one launch: a training loop gets the same memory again and again. Branches and loops
are the host's: it reads the flag that decides.

A step that can fail has a status word. It is read when the program has run, and before anything that could leave memory
if the step has failed: where the host reads a flag or the place of an item, and behind steps that check integers and
leave them for others to find their places by.
"""

from __future__ import annotations

import ctypes
import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from twofold.codegen.operands import Argument, Library, Memory, PartialResults, Slot, Within, Work, bytes_of
from twofold.codegen.plan import Branch, Copy, Plan, RowBlocks, Step, Tree, While, parts_of
from twofold.codegen.statements import Kernel
from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike

from . import cuda_timeline, locks
from .cuda_code import LoadedKernel, function
from .cuda_device import Allocation, DeviceArray, Gpu
from .cuda_timeline import Launched
from .failures import failure

if TYPE_CHECKING:
    from .cuda_driver import Driver

__all__ = ["CudaProgram"]

_SIZES = 64  # sets of sizes whose launches are kept
_GRAPHS = 8  # graphs of a sequence, for different memory
_WORTH = 3  # launches from which a graph is
_OWN_THREAD = 1  # CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: what other threads do meanwhile is theirs


class _BufferPlace(NamedTuple):
    """Memory of a run: the number of a buffer (`_CudaRun.bases`), and the byte in it."""

    buffer: int
    offset: int


class _SlotPlace(NamedTuple):
    """Memory whose place an index on the GPU decides: `base`, and bytes further on for each unit of the index."""

    base: _BufferPlace | _SlotPlace
    stride: int
    at: _BufferPlace | _SlotPlace
    wide: bool  # whether the index has 64 bits


class _KernelLaunch(NamedTuple):
    """One launch of a step, but for addresses."""

    function: LoadedKernel
    grid: int
    block: int
    total: int
    status: int  # the number of its status word
    words: Sequence[_BufferPlace | _SlotPlace | int]
    step: Step


class _DeviceCopy(NamedTuple):
    """Bytes that are copied from one place to another."""

    to: _BufferPlace | _SlotPlace
    source: _BufferPlace | _SlotPlace
    size: int


def _told(one: _KernelLaunch | _DeviceCopy) -> tuple[Launched | str, int]:
    """A launch or a copy as timelines tell of it, and the bytes that it copies."""
    if isinstance(one, _DeviceCopy):
        return "copy on the GPU", one.size
    takes = one.function.resources
    return Launched(one.step, one.grid, one.block, takes.registers, takes.shared), 0


class _LaunchSequence:
    """Launches and copies that follow one another, and the graphs that have been recorded of them.

    Attributes:
        work: what is done.
        buffers: whose addresses it depends on.
        graphs: by these addresses and that of the status words; None for those that came up once.
        checked: whether what follows must not run if something in it has failed.
    """

    def __init__(self, work: list[_KernelLaunch | _DeviceCopy], checked: bool = False) -> None:
        self.work, self.checked = work, checked
        places = [p for one in work for p in (one.words if isinstance(one, _KernelLaunch) else (one.to, one.source))]
        self.buffers = sorted({p.buffer for p in places if isinstance(p, _BufferPlace)})
        self.steady = len(work) >= _WORTH and not any(isinstance(p, _SlotPlace) for p in places)
        self.graphs: OrderedDict[tuple[int, ...], _RecordedGraph | None] = OrderedDict()

    def graph(self, run: _CudaRun) -> _RecordedGraph | None:
        """The graph for the memory of a run, recorded when that comes up a second time."""
        if not self.steady:
            return None
        key = (0 if run.status is None else run.status.address, *[run.bases[n] for n in self.buffers])
        known = key in self.graphs
        graph = self.graphs[key] = self.graphs.get(key) or (_RecordedGraph(run, self) if known else None)
        self.graphs.move_to_end(key)
        while len(self.graphs) > _GRAPHS:
            self.graphs.popitem(last=False)
        return graph


class _RecordedGraph:
    """A graph of the driver's."""

    def __init__(self, run: _CudaRun, line: _LaunchSequence) -> None:
        self.gpu, self.handle = run.gpu, ctypes.c_void_p()
        driver, graph = run.driver, ctypes.c_void_p()
        driver.cuStreamBeginCapture_v2(self.gpu.recording, _OWN_THREAD)
        try:
            for one in line.work:
                run.hand_in(one, self.gpu.recording)
        finally:
            driver.cuStreamEndCapture(self.gpu.recording, ctypes.byref(graph))
        try:
            driver.cuGraphInstantiateWithFlags(ctypes.byref(self.handle), graph, 0)
        finally:
            driver.cuGraphDestroy(graph)

    def __del__(self) -> None:
        if self.handle:
            self.gpu.driver.status("cuCtxSetCurrent", self.gpu.context)
            self.gpu.driver.status("cuGraphExecDestroy", self.handle)


class CudaProgram:
    """A plan that runs on one GPU."""

    def __init__(self, plan: Plan, gpu: Gpu) -> None:
        self.plan, self.gpu = plan, gpu
        self._lock = locks.RLock()
        self._sized: OrderedDict[tuple[int, ...], _SizedPlan] = OrderedDict()
        self._constants: list[DeviceArray] | None = None
        self.checks = any(step.codes for step in plan.steps)

    @property
    def donated(self) -> dict[int, int]:
        """Output number -> the number of the input whose memory it takes."""
        return self.plan.donated

    def __call__(self, arrays: Sequence[DeviceArray], sizes: dict[str, int]) -> list[DeviceArray]:
        """The outputs for arrays of any device. Those whose memory an output takes are overwritten, if they are here.

        Raises:
            NodeFailure: a check failed.
            ResourceExhaustedError: there is not enough memory.
        """
        plan, gpu = self.plan, self.gpu
        here = [gpu.here(a) for a in arrays]
        sized = self.sized(sizes)
        outs = []
        for n, (shape, value) in enumerate(zip(sized.shapes, plan.graph.outputs, strict=True)):
            donor = plan.donated.get(n)
            outs.append(gpu.empty(shape, value.dtype.np) if donor is None else here[donor].reshape(shape))
        arena = gpu.allocate(sized.scratch)
        status = gpu.allocate(8 * max(len(plan.steps), 1)) if self.checks else None
        _CudaRun(self, sized, [*here, *outs, *self.constants()], arena, status).run()
        return outs

    def sized(self, sizes: dict[str, int]) -> _SizedPlan:
        """The launches for some sizes."""
        key = tuple([sizes[s] for s in self.plan.symbols])
        with self._lock:
            known = self._sized.get(key)
            if known is None:
                known = self._sized[key] = _SizedPlan(self.plan, self.gpu, {s: sizes[s] for s in self.plan.symbols})
                if len(self._sized) > _SIZES:
                    self._sized.popitem(last=False)
            else:
                self._sized.move_to_end(key)
            return known

    def constants(self) -> list[DeviceArray]:
        """The plan's constants on the GPU."""
        with self._lock:
            if self._constants is None:
                self._constants = [self.gpu.copy_to(c) for c in self.plan.constants]
            return self._constants

    def launches(self, sizes: dict[str, int]) -> Sequence[_KernelLaunch]:
        """The launches of all steps, for those who tell of the program; none where a size is not among those given."""
        if not sizes.keys() >= set(self.plan.symbols):
            return []
        return [launch for launches in self.sized(sizes).launches for launch in launches]


class _SizedPlan:
    """A plan with numbers for its sizes.

    Attributes:
        shapes: of the outputs.
        scratch: bytes of the arena.
        launches: of each step.
        tests: where the flags of the plan's branches and loops lie, by identity.
        lines: of each of the plan's trees, by identity: its launches and copies, as far as they follow one another, and
            its branches and loops.
    """

    def __init__(self, plan: Plan, gpu: Gpu, sizes: dict[str, int]) -> None:
        self.plan, self.gpu, self.sizes = plan, gpu, sizes
        self.shapes = [tuple(dm.evaluate(v.dims, sizes)) for v in plan.graph.outputs]
        self.arena = len(plan.graph.inputs) + len(self.shapes) + len(plan.constants)  # the number of its buffer
        self.scratch = self.number(plan.arena)
        self.launches = [self._launches(n, step) for n, step in enumerate(plan.steps)]
        self.tests: dict[int, _BufferPlace | _SlotPlace] = {}
        self.lines: dict[int, list[_LaunchSequence | Branch | While]] = {}
        self._split(plan.tree)

    def number(self, size: DimLike) -> int:
        return size.evaluate(self.sizes) if isinstance(size, Dim) else int(size)

    def place(self, of: Memory, offset: int = 0) -> _BufferPlace | _SlotPlace:
        """Where byte `offset` of some memory lies."""
        memory = self.plan.memory_of(of)
        if isinstance(memory, Slot):
            return self._slot(memory, offset)
        number = self.plan.buffers.get(memory)
        if number is not None:
            return _BufferPlace(number, offset)
        return _BufferPlace(self.arena, self.number(self.plan.offsets[memory]) + offset)

    def _slot(self, slot: Slot, offset: int) -> _SlotPlace:
        size = slot.base.dtype.size
        base = self.place(slot.base, self.number(slot.offset) * size + offset)
        index = self.place(slot.index, self.number(slot.skip) * slot.index.dtype.size)
        return _SlotPlace(base, self.number(slot.stride) * size, index, slot.index.dtype.size == 8)

    def _word(self, argument: Argument) -> _BufferPlace | _SlotPlace | int:
        if isinstance(argument, Within):
            return self.place(argument.value, self.number(argument.offset) * argument.value.dtype.size)
        if isinstance(argument, (g.Value, PartialResults, Work)):
            return self.place(argument)
        if isinstance(argument, (Kernel, Library)):
            raise NotImplementedError(f"{argument.name}: a kernel of another backend")
        return self.number(argument)

    def _launches(self, number: int, step: Step) -> list[_KernelLaunch]:
        launches = []
        for part in parts_of(step):
            total = self.number(part.total)
            if total > 0:
                assert isinstance(part.kernel, Kernel)
                made = function(self.gpu, part.kernel, len(part.arguments))
                words = [self._word(a) for a in part.arguments]
                launches.append(_KernelLaunch(made, *made.shape(total), total, number, words, step))
        return launches

    def _split(self, tree: Tree) -> None:
        """Makes the lines of a tree, and of those in it."""
        lines: list[_LaunchSequence | Branch | While] = []
        work: list[_KernelLaunch | _DeviceCopy] = []
        for part in tree:
            if isinstance(part, int):
                work += self.launches[part]
                step = self.plan.steps[part]
                if step.codes and any(memory.dtype.is_integer for memory in step.written()):
                    lines.append(_LaunchSequence(work, checked=True))
                    work = []
            elif isinstance(part, Copy):
                size = self.number(bytes_of(part.to))
                work += [_DeviceCopy(self.place(part.to), self.place(part.source), size)] if size else []
            else:
                assert not isinstance(part, RowBlocks)  # which begin at products of a processor
                lines += [_LaunchSequence(work), part]
                work = []
                self.tests[id(part)] = self.place(part.test)
                for inner in (part.then, part.otherwise) if isinstance(part, Branch) else (part.before, part.body):
                    self._split(inner)
        self.lines[id(tree)] = [*lines, _LaunchSequence(work)]


class _CudaRun:
    """One run of a program."""

    def __init__(self, program: CudaProgram, sized: _SizedPlan, buffers: Sequence[DeviceArray],
                 arena: Allocation, status: Allocation | None) -> None:
        self.program, self.sized, self.gpu, self.status = program, sized, program.gpu, status
        self.driver: Driver = program.gpu.driver
        self.bases = [*[b.address for b in buffers], arena.address]

    def run(self) -> None:
        """Hands all of it in, and reads the status words, if there are any.

        Raises:
            NodeFailure: a check failed.
        """
        with self.gpu.lock, self.gpu:
            if self.status is not None:
                self.driver.cuMemsetD8Async(self.status.address, 0xFF, self.status.size, self.gpu.stream)
            self.tree(self.program.plan.tree)
        self.check()

    def tree(self, tree: Tree) -> None:
        for part in self.sized.lines[id(tree)]:
            if isinstance(part, _LaunchSequence):
                self.line(part)
            elif isinstance(part, Branch):
                self.tree(part.then if self.holds(part) else part.otherwise)
            else:
                self.tree(part.before)
                while self.holds(part):
                    self.tree(part.body)
                    self.tree(part.before)

    def line(self, line: _LaunchSequence) -> None:
        timeline = cuda_timeline.watching()
        graph = line.graph(self) if timeline is None else None
        if graph is not None:
            self.driver.cuGraphLaunch(graph.handle, self.gpu.stream)
        elif timeline is None:
            for one in line.work:
                self.hand_in(one, self.gpu.stream)
        else:
            for one in line.work:
                with timeline.span(self.gpu, self.gpu.stream, *_told(one)):
                    self.hand_in(one, self.gpu.stream)
        if line.checked:
            self.check()

    def hand_in(self, one: _KernelLaunch | _DeviceCopy, stream: ctypes.c_void_p) -> None:
        """Has a stream do a launch or a copy."""
        if isinstance(one, _DeviceCopy):
            self.driver.cuMemcpyDtoDAsync_v2(self.address(one.to), self.address(one.source), one.size, stream)
            return
        status = 0 if self.status is None else self.status.address + 8 * one.status
        words = (ctypes.c_int64 * (2 + len(one.words)))(one.total, status, *map(self.word, one.words))
        first = ctypes.addressof(words)
        parameters = (ctypes.c_void_p * len(words))(*range(first, first + 8 * len(words), 8))
        self.driver.cuLaunchKernel(one.function.handle, one.grid, 1, 1, one.block, 1, 1, 0, stream,
                                   ctypes.addressof(parameters), None)

    def word(self, word: _BufferPlace | _SlotPlace | int) -> int:
        return word if isinstance(word, int) else self.address(word)

    def address(self, place: _BufferPlace | _SlotPlace) -> int:
        if isinstance(place, _BufferPlace):
            return self.bases[place.buffer] + place.offset
        self.check()  # of the index, which a step before this may have found to be none
        index = self.read(self.address(place.at), np.dtype(np.int64 if place.wide else np.int32), 1)[0]
        return self.address(place.base) + int(index) * place.stride

    def holds(self, part: Branch | While) -> bool:
        """The flag that decides."""
        self.check()
        return bool(self.read(self.address(self.sized.tests[id(part)]), np.dtype(bool), 1)[0])

    def read(self, address: int, dtype: np.dtype, count: int) -> np.ndarray:
        """Elements on the host, after all that was handed in before."""
        return self.gpu.read(address, dtype, (count,))

    def check(self) -> None:
        """Raises the failure of the first step that has one."""
        if self.status is None:
            return
        steps = self.program.plan.steps
        codes = self.read(self.status.address, np.dtype(np.int64), len(steps)) + 1
        for number in np.flatnonzero(codes).tolist():
            raise failure(steps[number], int(codes[number]), self.sized.sizes, self.array)

    def array(self, within: Within, shape: tuple[int, ...]) -> np.ndarray:
        """The array that begins at a place in memory."""
        dtype = within.value.dtype
        at = self.address(self.sized.place(within.value, self.sized.number(within.offset) * dtype.size))
        return self.read(at, dtype.np, math.prod(shape)).reshape(shape)
