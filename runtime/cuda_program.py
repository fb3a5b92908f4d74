"""Plans on a GPU: each step is a launch, and launches that follow one another become one graph of the driver's.

A plan's sizes, and with them grids and arguments, are computed once for each set of sizes (`SizedProgram`), and so is
what follows of them and of constants: most loops become launches one behind another (`cuda_unrolled.py`). A call hands
all of it in as sequences (`cuda_work.py`). Small branches and loops that depend on data are launches, too
(`cuda_flow.py`), others are the host's: it reads the flag that decides.

A step that can fail has a status word. The host reads it when the program has run, and together with whatever it reads
before to decide by: flags, and indices of items. Kernels need no such care, since each checks what it takes for places
itself (`codegen/kernels/indexing.py`): behind a step that has failed they compute something, which nobody sees. Since
that may overwrite what the message shows, the program runs again then, step by step, as the plan has it; no input was
overwritten.
"""

from __future__ import annotations

import functools
import math
from array import array
from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import numpy as np

from twofold.codegen.operands import Within
from twofold.codegen.plan import Plan
from twofold.ir import dims as dm
from twofold.ir.errors import InternalError, OpError
from twofold.ir.recent import Recent

from . import cuda_timeline, locks
from .cuda_device import Allocation, DeviceArray, Gpu, array_of, whole_units
from .cuda_driver import CudaError
from .cuda_flow import FlowLaunches
from .cuda_launch import RowError
from .cuda_places import BufferPlace, Place, PlanPlaces, slots_of
from .cuda_unrolled import HostBranch, Lines, as_planned, running, unrolled
from .cuda_work import (
    DeviceFill,
    DeviceWork,
    KernelLaunch,
    LaunchSequence,
    StepsHandedIn,
    launch_of,
    ops_of,
    told,
)
from .failures import failure

__all__ = ["CudaProgram", "SizedProgram"]

_SIZES = 64  # sets of sizes whose launches are kept


class CudaProgram:
    """A plan that runs on one GPU."""

    def __init__(self, plan: Plan, gpu: Gpu) -> None:
        self.plan, self.gpu = plan, gpu
        self._lock = locks.RLock()
        self._sized: Recent[tuple[int, ...], SizedProgram] = Recent(_SIZES)
        self._constants: list[DeviceArray] | None = None
        self._flows = FlowLaunches(plan, gpu)

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
                known = self._sized.remember(key, SizedProgram(
                    self.plan, self.gpu, self.constants(), {s: sizes[s] for s in self.plan.symbols}, self._flows))
            else:
                self._sized.move_to_end(key)
            return known

    def constants(self) -> list[DeviceArray]:
        """The plan's constants on the GPU."""
        with self._lock:
            if self._constants is None:
                self._constants = [self.gpu.copy_to(c) for c in self.plan.constants]
            return self._constants

    def told(self, sizes: dict[str, int]) -> SizedProgram | None:
        """The program for some sizes, for those who tell of it; None where a size is not among those given."""
        return self.sized(sizes) if sizes.keys() >= set(self.plan.symbols) else None


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
        lines: what there is to do, and what the host decides.
        can_fail: whether a check of that can fail.
        decisions: who decides its branches and loops.
        status: where the status words of the steps lie, behind the arena; None where nothing can fail.
    """

    def __init__(self, plan: Plan, gpu: Gpu, constants: list[DeviceArray], sizes: dict[str, int],
                 flows: FlowLaunches) -> None:
        self.plan, self.gpu, self.sizes = plan, gpu, sizes
        self.launcher, self._told = gpu.launcher, StepsHandedIn(plan.steps)
        outputs = plan.graph.outputs
        arena = len(plan.graph.inputs) + len(outputs) + len(constants)  # the number of its buffer
        self.places = PlanPlaces(plan, sizes, arena)
        self._outs = [_Output(tuple(dm.evaluate(v.dims, sizes)), v.dtype.np) for v in outputs]
        self._constants = constants  # which live as long
        self._fixed = [c.address for c in constants]
        scratch = self.places.number(plan.arena)
        self.status: BufferPlace | None = None
        if any(step.codes for step in plan.steps):
            self.status = BufferPlace(arena, -(-scratch // 8) * 8)
            scratch = self.status.offset + 8 * len(plan.steps)
        self._sizes = [whole_units(out.nbytes) for out in self._outs]
        self._sizes += [whole_units(scratch)] if scratch else []
        self._has_arena = bool(scratch)
        self._launches = [self._of_step(number) for number in range(len(plan.steps))]
        self.lines, self.can_fail, self.decisions = unrolled(
            self.places, self._launches, self._begin(), self._sequence,
            functools.partial(flows.launch, places=self.places, status=self.status))
        # All that there is to do, where the host decides nothing.
        self._only: LaunchSequence | None = None
        if not self.lines:
            self._only = self._sequence([])
        elif len(self.lines) == 1 and isinstance(self.lines[0], LaunchSequence) and not self.lines[0].slots:
            self._only = self.lines[0]

    def _of_step(self, number: int) -> list[KernelLaunch]:
        at, step = self.status, self.plan.steps[number]
        status = None if at is None else BufferPlace(at.buffer, at.offset + 8 * number)
        return [launch_of(self.gpu, step, part, status, self.places) for part in running(step, self.places)]

    def _begin(self) -> list[DeviceWork]:
        return [] if self.status is None else [DeviceFill(self.status, 8 * len(self.plan.steps))]

    def _sequence(self, work: list[DeviceWork]) -> LaunchSequence:
        return LaunchSequence(work, self.places.arena + 1)

    @functools.cached_property
    def careful_lines(self) -> Lines:
        """Line by line what the plan says, for a run that tells of a failed check."""
        return as_planned(self.places, self._launches, self._begin(), self._sequence)

    def launched(self) -> list[KernelLaunch]:
        """The launches that there may be, those of a step in several rounds once."""
        run = [one for one in _work_of(self.lines) if isinstance(one, KernelLaunch)]
        first: dict[tuple[int, int], KernelLaunch] = {}
        for one in run:
            first.setdefault((id(one.step), id(one.function)), one)
        return list(first.values())

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
                if self.can_fail:
                    _CudaRun(self, bases).check()
            else:
                self._decide(_CudaRun(self, bases), self.lines)
        except _Failed:
            self._decide(_CudaRun(self, bases, careful=True), self.careful_lines)
            raise InternalError(None, None, f"{self.plan.graph.name}: a check has failed on GPU:{gpu.index}, and holds "
                                            "when it runs again") from None

    def _decide(self, run: _CudaRun, lines: Lines) -> None:
        """Has a run hand all of it in."""
        with self.gpu.lock, self.gpu:
            run.lines(lines)
        run.check()

    def hand_in(self, line: LaunchSequence, bases: array[int], only: int | None = None) -> None:
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

    def _refused(self, one: DeviceWork, error: OpError) -> OpError:
        """The error for work that the driver refuses."""
        if error.op is not None or not isinstance(error, CudaError) or not isinstance(one, KernelLaunch):
            return error
        [told] = ops_of([one.step]) or [one.step.name]
        op = one.step.nodes[0].op.name if one.step.nodes else None
        return CudaError(f"{told}: the kernel {one.step.name} cannot be run on GPU:{self.gpu.index}: {error}",
                         error.status, op)


def _work_of(lines: Lines) -> Iterator[DeviceWork]:
    for line in lines:
        if isinstance(line, LaunchSequence):
            yield from line.work
        else:
            for inner in line[1:]:
                yield from _work_of(inner)


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
        self._may_fail = sized.can_fail or careful
        self._indices: dict[Place, int] = {}  # of the slots of what is handed in next

    def lines(self, lines: Lines) -> None:
        for line in lines:
            if isinstance(line, LaunchSequence):
                self.line(line)
            elif isinstance(line, HostBranch):
                self.lines(line.then if self.holds(line.test) else line.otherwise)
            else:
                self.lines(line.before)
                while self.holds(line.test):
                    self.lines(line.body)
                    self.lines(line.before)

    def line(self, line: LaunchSequence) -> None:
        bases = self.bases
        if line.slots:
            self._read_indices(line)
            bases = array("q", [*bases, *map(self.address, line.slots)])
        timeline = cuda_timeline.watching()
        if timeline is None and not self._careful:
            self.sized.hand_in(line, bases)
            return
        for number, one in enumerate(line.work):
            with nullcontext() if timeline is None else timeline.span(self.gpu, self.gpu.stream, *told(one)):
                self.sized.hand_in(line, bases, only=number)
            if self._careful and isinstance(one, KernelLaunch) and one.step.codes:
                self.check()

    # -- what the host reads ----------------------------------------------------------------------
    def holds(self, test: Place) -> bool:
        """The flag that decides."""
        self._read_indices(test)
        return bool(self.decided([(self.address(test), np.dtype(bool))])[0])

    def address(self, place: Place) -> int:
        """The address of a place, whose indices have been read."""
        if isinstance(place, BufferPlace):
            return self.bases[place.buffer] + place.offset
        return self.address(place.base) + self._indices[place.at] * place.stride

    def _read_indices(self, of: LaunchSequence | Place) -> None:
        """Reads the indices of the slots of a line, or of a place, the outer ones first."""
        self._indices.clear()
        slots = list(of.slots) if isinstance(of, LaunchSequence) else [of]
        left = {place.at: place.wide for slot in slots for place in slots_of(slot)}
        while left:
            ready = [at for at in left if all(slot.at in self._indices for slot in slots_of(at))]
            dtypes = [np.dtype(np.int64 if left.pop(at) else np.int32) for at in ready]
            values = self.decided([(self.address(at), dtype) for at, dtype in zip(ready, dtypes, strict=True)])
            self._indices.update(zip(ready, map(int, values), strict=True))

    def decided(self, places: Sequence[tuple[int, np.dtype]]) -> list[np.generic]:
        """What lies at some addresses, once it is known that no step has failed that it may come from.

        Raises:
            NodeFailure, _Failed: a check failed.
        """
        wanted = [(address, dtype, (1,)) for address, dtype in places]
        count, status = len(self.sized.plan.steps), self.sized.status if self._may_fail else None
        if status is not None:
            wanted.append((self.address(status), np.dtype(np.int64), (count,)))
        values = self.gpu.read_all(wanted)
        if status is not None:
            self._tell(values.pop() + 1)
        return [value[0] for value in values]

    def check(self) -> None:
        """Raises an error if a step has failed."""
        if self._may_fail:
            self.decided([])

    def _tell(self, codes: np.ndarray) -> None:
        for number in np.flatnonzero(codes).tolist():
            if not self._careful:
                raise _Failed
            raise failure(self.sized.plan.steps[number], int(codes[number]), self.sized.sizes, self.array)

    def array(self, within: Within, shape: tuple[int, ...]) -> np.ndarray:
        """The array that begins at a place in memory."""
        dtype = within.value.dtype
        places = self.sized.places
        place = places.place(within.value, places.number(within.offset) * dtype.size)
        return self.gpu.read(self.address(place), dtype.np, shape)
