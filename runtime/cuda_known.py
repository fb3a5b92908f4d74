"""What is known of the memory of a plan before it runs: numbers that follow from constants and sizes, such as counters.

`Knowledge` holds single numbers by where they lie, as far as somebody asks for them. A `ScalarKernel` computes what a
kernel of one iteration leaves there, by the reference's instructions (`ir/reference.py`), so with the bits of the GPU;
what depends on anything unknown is unknown itself. Numbers of 16 bits are not kept, nor is NaN, with bits of its own.
Liveness is the plan's affair: who reads memory gets what was last written to it, so what is known goes by the owner of
memory, although owners share the arena. Which kernels run, and what follows of flags, is `cuda_unrolled.py`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from twofold.codegen.operands import Argument, Memory, Slot, bytes_of, memory_in
from twofold.codegen.plan import Step
from twofold.codegen.statements import (
    TEAM_OPS,
    VECTOR_OPS,
    Check,
    For,
    If,
    IntegerArgument,
    Kernel,
    Load,
    Statement,
    Store,
    blocks,
    uses,
    walk,
)
from twofold.codegen.value_types import lanes_of
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir import reference
from twofold.ir.dims import Dim
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Instr

from .cuda_places import PlanPlaces

__all__ = ["Knowledge", "ScalarKernel", "scalar_kernel"]

_LONG = 256  # statements of a kernel that is not looked into
_MOST_COPIED = 512  # bytes of a constant of which a copy is looked at
_KEPT = frozenset((dt.float32, dt.float64))  # and integers and bools
_Numbers: TypeAlias = dict[int, np.ndarray]  # by the byte of their owner; all have one width
_Spot: TypeAlias = tuple[Memory, int]  # the owner of memory, and a byte in it


class Knowledge:
    """The numbers that are known at one moment.

    Attributes:
        places: of the plan.
        asked: the owners of memory that somebody asks for; of others nothing is known.
    """

    def __init__(self, places: PlanPlaces, asked: set[Memory]) -> None:
        self.places, self.asked = places, asked
        plan = places.plan
        first = len(plan.graph.inputs) + len(plan.graph.outputs)
        self._constants: dict[Memory, np.ndarray] = {
            owner: plan.constants[number - first] for owner, number in plan.buffers.items() if number >= first}
        self._numbers: dict[Memory, _Numbers] = {}

    # -- where ------------------------------------------------------------------------------------
    def spot(self, of: Memory, offset: int = 0) -> _Spot | None:
        """The owner of some memory, and where byte `offset` of it lies there; None where an unknown index decides, or
        one that leads out of the array: the check of that index has failed."""
        place = self.places.plan.memory_of(of)
        if not isinstance(place, Slot):
            return place, offset
        number, size = self.places.number, place.base.dtype.size
        at = self.spot(place.index, number(place.skip) * place.index.dtype.size)
        index = None if at is None else self.load(at, place.index.dtype)
        if index is None:
            return None
        first = (number(place.offset) + int(index) * number(place.stride)) * size
        if not 0 <= first <= number(bytes_of(place.base)) - number(bytes_of(of)):
            return None
        return self.spot(place.base, first + offset)

    # -- what -------------------------------------------------------------------------------------
    def load(self, spot: _Spot, dtype: DType) -> np.ndarray | None:
        """The number there, if it is known."""
        owner, at = spot
        constant = self._constants.get(owner)
        if constant is not None:
            size = dtype.size
            raw = constant.reshape(-1).view(np.uint8)[at:at + size]
            return raw.view(dtype.np).reshape(()) if raw.size == size and _is_kept(dtype) else None
        number = self._numbers.get(owner, {}).get(at)
        if number is None or number.dtype.itemsize != dtype.size:
            return None
        return number if number.dtype == dtype.np else number.view(dtype.np)

    def flag(self, test: g.Value) -> bool | None:
        """The flag that decides, if it is known."""
        spot = self.spot(test)
        flag = None if spot is None else self.load(spot, dt.bool_)
        return None if flag is None else bool(flag)

    def store(self, spot: _Spot, number: np.ndarray | None, dtype: DType) -> None:
        """Notes that a number is written, None for an unknown one."""
        owner, at = spot
        if owner not in self.asked:
            return
        numbers = self._numbers.setdefault(owner, {})
        width = next(iter(numbers.values())).dtype.itemsize if numbers else dtype.size
        if width != dtype.size or at % width:  # it may be parts of several
            numbers.clear()
        if number is None or at % dtype.size or number.dtype != dtype.np or not _is_kept(dtype) or number != number:
            numbers.pop(at, None)
        else:
            numbers[at] = number

    def forget(self, owner: Memory) -> None:
        """Notes that something unknown is written there."""
        self._numbers.pop(owner, None)

    def copy(self, to: g.Value, source: g.Value) -> None:
        """Notes that the whole of one value is copied to another's memory."""
        owner = self.places.owner(to)
        if owner not in self.asked:
            return
        here, there = self.spot(source), self.spot(to)
        if here is None or there is None:
            self.forget(owner)
            return
        size, first = self.places.number(bytes_of(to)), there[1]
        copied = self._numbers_in(here, size, to.dtype)
        self._numbers[owner] = {at: number for at, number in self._numbers.get(owner, {}).items()
                                if not first <= at < first + size}
        for at, number in copied.items():
            self.store((owner, first + at), number, to.dtype)

    def _numbers_in(self, spot: _Spot, size: int, dtype: DType) -> dict[int, np.ndarray | None]:
        """The numbers that are known of so many bytes, by their byte there."""
        owner, start = spot
        if owner in self._constants:
            places = range(0, size if size <= _MOST_COPIED else 0, dtype.size)
            return {at: self.load((owner, start + at), dtype) for at in places}
        return {at - start: number for at, number in self._numbers.get(owner, {}).items() if start <= at < start + size}

    # -- moments ----------------------------------------------------------------------------------
    def taken(self) -> dict[Memory, _Numbers]:
        """What is known now, to come back to."""
        return {owner: dict(numbers) for owner, numbers in self._numbers.items() if numbers}

    def back(self, moment: dict[Memory, _Numbers]) -> None:
        """Comes back to a moment, once."""
        self._numbers = moment

    def meet(self, other: dict[Memory, _Numbers]) -> None:
        """Keeps what is the same at another moment."""
        for owner, numbers in list(self._numbers.items()):
            there = other.get(owner, {})
            self._numbers[owner] = {at: number for at, number in numbers.items()
                                    if at in there and _same(number, there[at])}


def _is_kept(dtype: DType) -> bool:
    return dtype.np.kind in "iub" or dtype in _KEPT


def _same(x: np.ndarray, y: np.ndarray) -> bool:
    return x.dtype == y.dtype and x.tobytes() == y.tobytes()


class ScalarKernel:
    """A kernel of one iteration, as far as it matters to what is asked for.

    Attributes:
        reads, writes: the owners of memory that it loads numbers from, and stores some to.
    """

    def __init__(self, part: Step, places: PlanPlaces, body: list[Statement], numbers: _Numbers) -> None:
        """Args:
            body: what it does, without loops.
            numbers: the values that are known already.
        """
        self._memory = [memory_in(a) for a in part.arguments]
        self._first = [0 if m is None else places.number(m[1]) * m[0].dtype.size for m in self._memory]
        self._body = self._folded(part, places, body, numbers)
        self._constants = numbers
        self.reads, self.writes = (self._owners(kind, places) for kind in (Load, Store))

    def _owners(self, kind: type[Load] | type[Store], places: PlanPlaces) -> set[Memory]:
        slots = {s.ptr.slot for s in walk(self._body) if isinstance(s, kind)}
        touched = [self._memory[slot] for slot in slots if slot is not None]
        return {places.owner(memory[0]) for memory in touched if memory is not None}

    @staticmethod
    def _folded(part: Step, places: PlanPlaces, body: list[Statement], numbers: _Numbers) -> list[Statement]:
        """The statements but those that give the same in every run, whose values become known."""
        left: list[Statement] = []
        for statement in body:
            if isinstance(statement, IntegerArgument):
                argument: Argument = part.arguments[statement.index]
                assert isinstance(argument, (int, Dim))
                numbers[statement.out.id] = np.asarray(places.number(argument), np.int64)
            elif isinstance(statement, Instr) and all(a.id in numbers for a in statement.args):
                numbers[statement.out.id] = reference.apply(statement, numbers)
            elif isinstance(statement, If):
                inner = [ScalarKernel._folded(part, places, b, numbers) for b in (statement.body, statement.otherwise)]
                left.append(If(statement.cond, *inner))
            else:
                left.append(statement)
        return left

    def keep(self, owners: set[Memory], places: PlanPlaces) -> None:
        """Leaves out what matters to none of these owners of memory, and to no check."""
        asked = {n for n, memory in enumerate(self._memory)
                 if memory is not None and places.owner(memory[0]) in owners}
        self._body = _needed(self._body, asked, set())

    def run(self, known: Knowledge) -> bool:
        """Notes what it writes; gives whether a check of it may fail."""
        return self._block(self._body, dict(self._constants), known)

    def _block(self, block: Sequence[Statement], values: _Numbers, known: Knowledge) -> bool:
        fails = False
        for statement in block:
            if isinstance(statement, Instr):
                if all(a.id in values for a in statement.args):
                    values[statement.out.id] = np.asarray(reference.apply(statement, values))
            elif isinstance(statement, Load):
                spot = self._spot(statement, values, known)
                number = None if spot is None else known.load(spot, statement.ptr.dtype)
                if number is not None:
                    values[statement.out.id] = number
            elif isinstance(statement, Store):
                self._store(statement, values, known)
            elif isinstance(statement, Check):
                fails = fails or not values.get(statement.cond.id, False)
            else:
                assert isinstance(statement, If)
                fails = self._either(statement, values, known) or fails
        return fails

    def _either(self, statement: If, values: _Numbers, known: Knowledge) -> bool:
        cond = values.get(statement.cond.id)
        if cond is not None:
            return self._block(statement.body if cond else statement.otherwise, values, known)
        inside = [s for block in blocks(statement) for s in walk(block)]
        for store in inside:
            if isinstance(store, Store):
                self._forget(store, known)
        return any(isinstance(s, Check) for s in inside)

    def _spot(self, access: Load | Store, values: _Numbers, known: Knowledge) -> _Spot | None:
        slot, index = access.ptr.slot, values.get(access.index.id)
        assert slot is not None
        memory = self._memory[slot]
        if memory is None or index is None:
            return None
        return known.spot(memory[0], self._first[slot] + int(index) * access.ptr.dtype.size)

    def _store(self, store: Store, values: _Numbers, known: Knowledge) -> None:
        spot = self._spot(store, values, known)
        if spot is None:
            self._forget(store, known)
        else:
            known.store(spot, values.get(store.value.id), store.ptr.dtype)

    def _forget(self, store: Store, known: Knowledge) -> None:
        assert store.ptr.slot is not None
        memory = self._memory[store.ptr.slot]
        if memory is not None:
            known.forget(known.places.owner(memory[0]))


def scalar_kernel(part: Step, places: PlanPlaces) -> ScalarKernel | None:
    """The kernel of a part of a step that runs one iteration, if what it does is plain enough."""
    kernel = part.kernel
    if not isinstance(kernel, Kernel) or kernel.team > 1 or kernel.scratch or places.number(part.total) != 1:
        return None
    body: list[Statement] = []
    numbers: _Numbers = {kernel.start.id: np.asarray(0), kernel.stop.id: np.asarray(1)}
    for statement in kernel.body:
        if isinstance(statement, For):
            if statement.lo is not kernel.start or statement.hi is not kernel.stop or statement.step != 1:
                return None
            numbers[statement.index.id] = np.asarray(0)
            body += statement.body
        else:
            body.append(statement)
    plain = len(body) <= _LONG and all(_is_plain(s, part) for s in walk(body))
    return ScalarKernel(part, places, body, numbers) if plain else None


def _is_plain(statement: Statement, part: Step) -> bool:
    if isinstance(statement, Instr):
        values = (statement.out, *statement.args)
        return statement.op not in TEAM_OPS | VECTOR_OPS and not any(lanes_of(v.dtype) for v in values)
    if isinstance(statement, (Load, Store)):
        value = statement.out if isinstance(statement, Load) else statement.value
        return statement.ptr.slot is not None and statement.mask is None and not lanes_of(value.dtype)
    if isinstance(statement, IntegerArgument):
        return memory_in(part.arguments[statement.index]) is None
    return isinstance(statement, (Check, If))


def _needed(body: Iterable[Statement], asked: set[int], values: set[int]) -> list[Statement]:
    """The statements that checks need, and stores to some arguments; `values` gets the numbers of what they read."""
    left: list[Statement] = []
    for statement in reversed(list(body)):
        if isinstance(statement, If):
            inner = [_needed(block, asked, values) for block in (statement.body, statement.otherwise)]
            if any(inner):
                values.add(statement.cond.id)
                left.append(If(statement.cond, *inner))
            continue
        out = statement.out.id if isinstance(statement, (Instr, Load)) else None
        stored = isinstance(statement, Store) and statement.ptr.slot in asked
        if stored or isinstance(statement, Check) or (out is not None and out in values):
            values.update(v.id for v in uses(statement))
            left.append(statement)
    return left[::-1]

