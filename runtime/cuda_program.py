"""Plans on a GPU: each step is a launch, and launches that follow one another become one graph of the driver's.

A plan's sizes, and with them grids and arguments, are computed once for each set of sizes (`SizedProgram`); a call
fills in where its arrays lie, and machine code hands all of it in (`cuda_launch.py`). What a call does again with the
same arrays' places (`_LaunchSequence`) is recorded as a graph, which takes the driver as long as one launch: a training
loop gets the same memory again and again. Branches and loops are the host's: it reads the flag that decides.

A step that can fail has a status word. The host reads it when the program has run, and together with whatever it reads
before to decide by: flags, and indices of items. Kernels need no such care, since each checks what it takes for places
itself (`codegen/kernels/indexing.py`): behind a step that has failed they compute something, which nobody sees. Since
that may overwrite what the message shows, the program runs again then, step by step; no input was overwritten.
"""

from __future__ import annotations

import ctypes
import math
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import NamedTuple, TypeAlias

import numpy as np

from twofold.codegen.operands import Argument, Library, Memory, PartialResults, Slot, Within, Work, bytes_of
from twofold.codegen.plan import Branch, Copy, Plan, RowBlocks, Step, Tree, While, parts_of
from twofold.codegen.statements import Kernel
from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike
from twofold.ir.errors import InternalError, OpError

from . import cuda_timeline, locks
from .cuda_code import LoadedKernel, function
from .cuda_device import Allocation, DeviceArray, Gpu, array_of, whole_units
from .cuda_driver import CudaError
from .cuda_launch import Launcher, LaunchRows, LaunchWord, RowError, copy_row, fill_row, kernel_row
from .cuda_timeline import Launched
from .failures import failure

__all__ = ["CudaProgram", "SizedProgram"]

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


def _slots_of(place: _BufferPlace | _SlotPlace) -> Iterator[_SlotPlace]:
    """The slots that decide where a place is, the outermost last."""
    if isinstance(place, _SlotPlace):
        yield from _slots_of(place.base)
        yield from _slots_of(place.at)
        yield place


class _KernelLaunch(NamedTuple):
    """One launch of a step, but for addresses."""

    function: LoadedKernel
    grid: int
    block: int
    words: Sequence[_BufferPlace | _SlotPlace | int]
    step: Step


def _ops_of(steps: Iterable[Step]) -> list[str]:
    """The ops of each step, with the user's line."""
    told = []
    for step in steps:
        names = ", ".join(dict.fromkeys(node.op.name for node in step.nodes))
        line = next((str(node.loc) for node in step.nodes if node.loc is not None), "")
        told += [f"{names} ({line})" if line else names] if names else []
    return told


class _StepsHandedIn(NamedTuple):
    """What a program computes, for errors; it holds no memory of the GPU."""

    steps: Sequence[Step]

    def ops(self) -> list[str]:
        """The ops of the steps, each with the user's line."""
        return _ops_of(self.steps)


class _DeviceCopy(NamedTuple):
    """Bytes that are copied from one place to another."""

    to: _BufferPlace | _SlotPlace
    source: _BufferPlace | _SlotPlace
    size: int


class _DeviceFill(NamedTuple):
    """Bytes that become 0xFF."""

    to: _BufferPlace | _SlotPlace
    size: int


_Work: TypeAlias = "_KernelLaunch | _DeviceCopy | _DeviceFill"


def _told(one: _Work) -> tuple[Launched | str, int]:
    """Work as timelines tell of it, and the bytes that it copies."""
    if not isinstance(one, _KernelLaunch):
        return "copy on the GPU" if isinstance(one, _DeviceCopy) else "fill", one.size
    takes = one.function.resources
    return Launched(one.step, one.grid, one.block, takes.registers, takes.shared), 0


class _LaunchSequence:
    """Work that is handed in at once, and the graphs that have been recorded of it.

    Attributes:
        work: what is done.
        rows: it as machine code takes it.
        slots: the places in it that indices decide, whose addresses follow those of the buffers.
        buffers: whose addresses it depends on.
        graphs: by these addresses; None for those that came up once.
    """

    def __init__(self, work: list[_Work], buffers: int) -> None:
        """Args:
            buffers: how many a run has.
        """
        self.work, self._buffers = work, buffers
        self.slots: dict[_SlotPlace, int] = {}
        self.rows = LaunchRows([self._row(one) for one in work])
        places = [p for one in work for p in _places(one)]
        self.buffers = sorted({p.buffer for p in places if isinstance(p, _BufferPlace)})
        self.steady = len(work) >= _WORTH and not self.slots
        self.graphs: OrderedDict[tuple[int, ...], _RecordedGraph | None] = OrderedDict()

    def _row(self, one: _Work) -> list[int]:
        words = [self._word(place) for place in _places(one)]
        if isinstance(one, _KernelLaunch):
            return kernel_row(one.function.handle.value or 0, one.grid, one.block, words)
        if isinstance(one, _DeviceCopy):
            return copy_row(words[0], words[1], one.size)
        return fill_row(words[0], one.size)

    def _word(self, place: _BufferPlace | _SlotPlace | int) -> LaunchWord:
        if isinstance(place, int):
            return LaunchWord(place)
        if isinstance(place, _BufferPlace):
            return LaunchWord(place.offset, place.buffer)
        return LaunchWord(0, self.slots.setdefault(place, self._buffers + len(self.slots)))

    def graph(self, launcher: Launcher, gpu: Gpu, bases: array[int]) -> _RecordedGraph | None:
        """The graph for buffers at these addresses, recorded when they come up a second time."""
        key = tuple([bases[n] for n in self.buffers])
        graph = self.graphs.get(key)
        if graph is None:
            known = key in self.graphs
            graph = self.graphs[key] = _RecordedGraph(launcher, gpu, self.rows, bases) if known else None
            if len(self.graphs) > _GRAPHS:
                self.graphs.popitem(last=False)
        self.graphs.move_to_end(key)
        return graph


def _places(one: _Work) -> Sequence[_BufferPlace | _SlotPlace | int]:
    """The arguments of work."""
    if isinstance(one, _KernelLaunch):
        return one.words
    return [one.to, one.source] if isinstance(one, _DeviceCopy) else [one.to]


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


class CudaProgram:
    """A plan that runs on one GPU."""

    def __init__(self, plan: Plan, gpu: Gpu) -> None:
        self.plan, self.gpu = plan, gpu
        self._lock = locks.RLock()
        self._sized: OrderedDict[tuple[int, ...], SizedProgram] = OrderedDict()
        self._constants: list[DeviceArray] | None = None

    @property
    def donated(self) -> dict[int, int]:
        """Output number -> the number of the input whose memory it takes."""
        return {}

    def __call__(self, arrays: Sequence[DeviceArray], sizes: dict[str, int]) -> list[DeviceArray]:
        """The outputs for arrays of any device.

        Raises:
            NodeFailure: a check failed.
            ResourceExhaustedError: there is not enough memory.
        """
        here = self.gpu.here
        return self.sized(sizes)([here(a) for a in arrays])

    def sized(self, sizes: dict[str, int]) -> SizedProgram:
        """The program for some sizes."""
        key = tuple([sizes[s] for s in self.plan.symbols])
        with self._lock:
            known = self._sized.get(key)
            if known is None:
                known = self._sized[key] = SizedProgram(self.plan, self.gpu, self.constants(),
                                                        {s: sizes[s] for s in self.plan.symbols})
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


class _Output:
    """What the array of an output of a program is made of."""

    __slots__ = ("shape", "dtype", "size", "nbytes")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.shape, self.dtype = shape, dtype
        self.size = math.prod(shape)
        self.nbytes = self.size * dtype.itemsize


class SizedProgram:
    """A program with numbers for its sizes.

    Attributes:
        launches: of each step.
        tests: where the flags of the plan's branches and loops lie, by identity.
        lines: of each of the plan's trees, by identity: its launches and copies, as far as they follow one another, and
            its branches and loops.
        status: where the status words of the steps lie, behind the arena; None where nothing can fail.
    """

    def __init__(self, plan: Plan, gpu: Gpu, constants: list[DeviceArray], sizes: dict[str, int]) -> None:
        self.plan, self.gpu, self.sizes = plan, gpu, sizes
        self.launcher, self._told = gpu.launcher, _StepsHandedIn(plan.steps)
        outputs = plan.graph.outputs
        self.arena = len(plan.graph.inputs) + len(outputs) + len(constants)  # the number of its buffer
        self._outs = [_Output(tuple(dm.evaluate(v.dims, sizes)), v.dtype.np) for v in outputs]
        self._constants = constants  # which live as long
        self._fixed = [c.address for c in constants]
        scratch = self.number(plan.arena)
        self.status: _BufferPlace | None = None
        if any(step.codes for step in plan.steps):
            self.status = _BufferPlace(self.arena, -(-scratch // 8) * 8)
            scratch = self.status.offset + 8 * len(plan.steps)
        self._sizes = [whole_units(out.nbytes) for out in self._outs]
        self._sizes += [whole_units(scratch)] if scratch else []
        self._has_arena = bool(scratch)
        self.launches = [self._launches(n, step) for n, step in enumerate(plan.steps)]
        self.tests: dict[int, _BufferPlace | _SlotPlace] = {}
        self.lines: dict[int, list[_LaunchSequence | Branch | While]] = {}
        self._split(plan.tree, [] if self.status is None else [_DeviceFill(self.status, 8 * len(plan.steps))])
        first, *more = self.lines[id(plan.tree)]
        # All that there is to do, where the host decides nothing.
        self._only = first if isinstance(first, _LaunchSequence) and not first.slots and not more else None

    # -- running ----------------------------------------------------------------------------------
    def __call__(self, inputs: Sequence[DeviceArray]) -> list[DeviceArray]:
        """The outputs for inputs on this GPU; see `CudaProgram.__call__`."""
        gpu, sizes = self.gpu, self._sizes
        memory = gpu.take(sizes)
        outs = [array_of(Allocation(gpu, address, size), out.shape, out.dtype, out.size, out.nbytes)
                for out, address, size in zip(self._outs, memory, sizes, strict=False)]
        arena = memory[-1] if self._has_arena else 0
        bases = array("q", [*[a.address for a in inputs], *[a.address for a in outs], *self._fixed, arena])
        try:
            self._run(bases)
        finally:
            if self._has_arena:
                gpu.give_back(arena, sizes[-1])  # for what is handed in behind this
        return outs

    def _run(self, bases: array[int]) -> None:
        """Hands all of it in, and reads the status words, if there are any.

        Raises:
            NodeFailure: a check failed.
        """
        only, gpu = self._only, self.gpu
        try:
            if only is not None and cuda_timeline.watching() is None:
                with gpu.lock:
                    self.hand_in(only, bases)
                if self.status is not None:
                    _CudaRun(self, bases).check()
            else:
                self._decide(_CudaRun(self, bases))
        except _Failed:
            self._decide(_CudaRun(self, bases, careful=True))
            raise InternalError(None, None, f"{self.plan.graph.name}: a check has failed on GPU:{gpu.index}, and holds "
                                            "when it runs again") from None

    def _decide(self, run: _CudaRun) -> None:
        """Has a run hand all of it in."""
        with self.gpu.lock, self.gpu:
            run.tree(self.plan.tree)
        run.check()

    def hand_in(self, line: _LaunchSequence, bases: array[int], only: int | None = None) -> None:
        """Hands in work for buffers at some addresses, those of its slots included.

        Args:
            only: the number of the one piece of work that is handed in; all by default.
        Raises:
            InternalError: the driver refuses it.
        """
        self.gpu.handed.append(self._told)
        try:
            graph = line.graph(self.launcher, self.gpu, bases) if line.steady and only is None else None
            if graph is not None:
                self.launcher.launch(graph.address, self.gpu.stream)
            elif line.work:
                self.launcher.hand_in(line.rows, bases, self.gpu.stream, only)
        except RowError as refused:
            raise self._refused(line.work[refused.row], refused.error) from None

    def _refused(self, one: _Work, error: OpError) -> OpError:
        """The error for work that the driver refuses."""
        if error.op is not None or not isinstance(error, CudaError) or not isinstance(one, _KernelLaunch):
            return error
        [told] = _ops_of([one.step]) or [one.step.name]
        op = one.step.nodes[0].op.name if one.step.nodes else None
        return CudaError(f"{told}: the kernel {one.step.name} cannot be run on GPU:{self.gpu.index}: {error}",
                         error.status, op)

    # -- what is handed in ------------------------------------------------------------------------
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
        at = self.status
        status = 0 if at is None else _BufferPlace(at.buffer, at.offset + 8 * number)
        launches = []
        for part in parts_of(step):
            total = self.number(part.total)
            if total > 0:
                assert isinstance(part.kernel, Kernel)
                made = function(self.gpu, part.kernel, len(part.arguments))
                words = [self._word(a) for a in part.arguments]
                launches.append(_KernelLaunch(made, *made.shape(total), [total, status, *words], step))
        return launches

    def _split(self, tree: Tree, work: list[_Work]) -> None:
        """Makes the lines of a tree, which begins with some work, and of those in it."""
        lines: list[_LaunchSequence | Branch | While] = []
        for part in tree:
            if isinstance(part, (int, Copy)):
                for one in self.launches[part] if isinstance(part, int) else self._copy(part):
                    if work and any(isinstance(p, _SlotPlace) for p in _places(one)):
                        lines.append(self._sequence(work))  # which may compute the index of the place
                        work = []
                    work.append(one)
            else:
                assert not isinstance(part, RowBlocks)  # which begin at products of a processor
                lines += [self._sequence(work), part]
                work = []
                self.tests[id(part)] = self.place(part.test)
                for inner in (part.then, part.otherwise) if isinstance(part, Branch) else (part.before, part.body):
                    self._split(inner, [])
        self.lines[id(tree)] = [*lines, self._sequence(work)] if work or not lines else lines

    def _copy(self, part: Copy) -> list[_DeviceCopy]:
        size = self.number(bytes_of(part.to))
        return [_DeviceCopy(self.place(part.to), self.place(part.source), size)] if size else []

    def _sequence(self, work: list[_Work]) -> _LaunchSequence:
        return _LaunchSequence(work, self.arena + 1)


class _Failed(Exception):
    """A check failed in a run that was not careful."""


class _CudaRun:
    """One run of a program whose way the host decides, or that may fail."""

    def __init__(self, sized: SizedProgram, bases: array[int], careful: bool = False) -> None:
        """Args:
            bases: the addresses of its buffers.
            careful: whether status words are read behind every step that can fail, while all is there that the message
                of a failure shows.
        """
        self.sized, self.gpu, self.bases, self._careful = sized, sized.gpu, bases, careful
        self._indices: dict[_BufferPlace | _SlotPlace, int] = {}  # of the slots of what is handed in next

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
        bases = self.bases
        if line.slots:
            self._read_indices(line)
            bases = array("q", [*bases, *map(self.address, line.slots)])
        timeline = cuda_timeline.watching()
        if timeline is None and not self._careful:
            self.sized.hand_in(line, bases)
            return
        for number, one in enumerate(line.work):
            with nullcontext() if timeline is None else timeline.span(self.gpu, self.gpu.stream, *_told(one)):
                self.sized.hand_in(line, bases, only=number)
            if self._careful and isinstance(one, _KernelLaunch) and one.step.codes:
                self.check()

    # -- what the host reads ----------------------------------------------------------------------
    def holds(self, part: Branch | While) -> bool:
        """The flag that decides."""
        place = self.sized.tests[id(part)]
        self._read_indices(place)
        return bool(self.decided([(self.address(place), np.dtype(bool))])[0])

    def address(self, place: _BufferPlace | _SlotPlace) -> int:
        """The address of a place, whose indices have been read."""
        if isinstance(place, _BufferPlace):
            return self.bases[place.buffer] + place.offset
        return self.address(place.base) + self._indices[place.at] * place.stride

    def _read_indices(self, of: _LaunchSequence | _BufferPlace | _SlotPlace) -> None:
        """Reads the indices of the slots of a line, or of a place, the outer ones first."""
        self._indices.clear()
        slots = list(of.slots) if isinstance(of, _LaunchSequence) else [of]
        left = {place.at: place.wide for slot in slots for place in _slots_of(slot)}
        while left:
            ready = [at for at in left if all(slot.at in self._indices for slot in _slots_of(at))]
            dtypes = [np.dtype(np.int64 if left.pop(at) else np.int32) for at in ready]
            values = self.decided([(self.address(at), dtype) for at, dtype in zip(ready, dtypes, strict=True)])
            self._indices.update(zip(ready, map(int, values), strict=True))

    def decided(self, places: Sequence[tuple[int, np.dtype]]) -> list[np.generic]:
        """What lies at some addresses, once it is known that no step has failed that it may come from.

        Raises:
            NodeFailure, _Failed: a check failed.
        """
        wanted = [(address, dtype, (1,)) for address, dtype in places]
        status, count = self.sized.status, len(self.sized.plan.steps)
        if status is not None:
            wanted.append((self.address(status), np.dtype(np.int64), (count,)))
        values = self.gpu.read_all(wanted)
        if status is not None:
            self._tell(values.pop() + 1)
        return [value[0] for value in values]

    def check(self) -> None:
        """Raises an error if a step has failed."""
        if self.sized.status is not None:
            self.decided([])

    def _tell(self, codes: np.ndarray) -> None:
        for number in np.flatnonzero(codes).tolist():
            if not self._careful:
                raise _Failed
            raise failure(self.sized.plan.steps[number], int(codes[number]), self.sized.sizes, self.array)

    def array(self, within: Within, shape: tuple[int, ...]) -> np.ndarray:
        """The array that begins at a place in memory."""
        dtype = within.value.dtype
        place = self.sized.place(within.value, self.sized.number(within.offset) * dtype.size)
        return self.gpu.read(self.address(place), dtype.np, shape)
