"""A short loop of known length as instructions on whole vectors: a lane for each round, and no loop.

Reductions and rows of kernels are full of such loops. LLVM would make vectors of most of them too, at a multiple of
the time. The instructions, and with them the bits of each lane, are those that the loop would have had.

Taken are loops in which every round reads and writes neighbours of what the round before does, or what is the same in
all rounds, and no round reads what another one writes. All others stay loops, for LLVM's vectoriser.
"""

from __future__ import annotations

from typing import Protocol

from llvmlite import ir

from twofold.ir.dtypes import DType
from twofold.ir.scalar import Instr, Scalar

from . import llvm_ops, llvm_vectors
from . import target as targets
from .statements import For, Load, Pointer, Statement, Store, uses
from .value_types import Address, Vector

__all__ = ["KernelEmitter", "written"]

_MOST = 8  # vectors that a value may take
_I64 = ir.IntType(64)
_ON_LANES = frozenset((
    "const", "add", "sub", "mul", "div", "neg", "abs", "fma", "sqrt", "floor", "ceil", "trunc", "rint", "copysign",
    "and", "or", "xor", "not", "shl", "shr", "eq", "ne", "lt", "le", "gt", "ge", "select", "cast", "bitcast"))
_Place = tuple[tuple[tuple[int, bool], ...], int]  # values added and subtracted, and a number: what round 0 has


class AccessScopes(Protocol):
    """Which accesses of a kernel meet no others (`llvm_cpu.py`)."""

    def mark(self, access: ir.Instruction, ptr: Pointer) -> None:
        """Tells LLVM so of an access to `ptr`."""


class KernelEmitter(Protocol):
    """Writes the kernel around the loop (`llvm_cpu.py`)."""

    b: ir.IRBuilder
    fn: ir.Function
    values: dict[int, ir.Value]

    @property
    def scopes(self) -> AccessScopes:
        """Of the kernel."""

    def address(self, ptr: Pointer, index: ir.Value) -> ir.Value:
        """Where an element lies."""

    def statement(self, statement: Statement) -> None:
        """Writes one statement."""


def written(emitter: KernelEmitter, loop: For, first: int, count: int) -> bool:
    """Writes `loop`, of `count` rounds from index `first` on, if it can be written so; says whether it was."""
    rounds = _Rounds(loop, first, count, emitter.values)
    if not rounds.fit():
        return False
    _LaneWriter(emitter, loop, rounds, count).write()
    return True


class _Rounds:
    """How the rounds of a loop depend on one another.

    Attributes:
        places: values that are one more in each round, by id.
        varying: the ids of all others that differ from round to round.
    """

    def __init__(self, loop: For, first: int, count: int, outside: dict[int, ir.Value]) -> None:
        self.loop, self.count, self.outside = loop, count, outside
        self.places: dict[int, _Place] = {loop.index.id: ((), first)}
        self.varying: set[int] = set()
        self.numbers: dict[int, int] = {}  # constants
        self.touched: dict[tuple[int | None, str], list[tuple[Pointer, _Place | None, bool]]] = {}

    def fit(self) -> bool:
        """Whether the rounds can be lanes."""
        return self.loop.step == 1 and all(self.takes(s) for s in self.loop.body) and \
            all(self.apart(accesses) for accesses in self.touched.values()) and self.suits()

    def takes(self, statement: Statement) -> bool:
        match statement:
            case Instr(op=op, out=out, args=args):
                self.note(statement)
                fused = op != "fma" or targets.current().fused
                return not self.differs(out) or (op in _ON_LANES and fused and not any(
                    v.dtype.is_complex or isinstance(v.dtype, (Vector, Address)) for v in (out, *args)))
            case Load(out=out, ptr=ptr, index=index, mask=None) if ptr.at is None:
                place = self.places.get(index.id)
                self.touch(ptr, place, False)
                if place is not None:
                    self.varying.add(out.id)
                return index.id not in self.varying and not _is_half(ptr.dtype)
            case Store(ptr=ptr, index=index, mask=None) if ptr.at is None:
                self.touch(ptr, self.places.get(index.id), True)
                return index.id in self.places and not _is_half(ptr.dtype)
        return False

    def differs(self, value: Scalar) -> bool:
        return value.id in self.varying or value.id in self.places

    def note(self, instr: Instr) -> None:
        """Notes whether the result is a place, or differs from round to round in another way."""
        if instr.op == "const":
            if instr.out.dtype.is_integer:
                self.numbers[instr.out.id] = int(instr.const)
            return
        if not any(self.differs(a) for a in instr.args):
            return
        place = self.moved(instr) if instr.op in ("add", "sub") and instr.out.dtype.name == "int64" else None
        if place is None:
            self.varying.add(instr.out.id)
        else:
            self.places[instr.out.id] = place

    def moved(self, instr: Instr) -> _Place | None:
        """The place that a sum or difference of a place and what all rounds share is."""
        x, y = instr.args
        if instr.op == "add" and y.id in self.places:
            x, y = y, x
        if x.id not in self.places or self.differs(y):
            return None
        terms, number = self.places[x.id]
        minus = instr.op == "sub"
        added = self.outside.get(y.id)
        step = added.constant if isinstance(added, ir.Constant) else self.numbers.get(y.id)
        if step is not None:
            return terms, number - step if minus else number + step
        return tuple(sorted((*terms, (y.id, minus)))), number

    def touch(self, ptr: Pointer, place: _Place | None, stores: bool) -> None:
        root = ptr.base or ptr
        self.touched.setdefault((root.slot, root.name), []).append((ptr, place, stores))

    def apart(self, accesses: list[tuple[Pointer, _Place | None, bool]]) -> bool:
        """Whether no round touches what another one stores."""
        stores = [(ptr, place) for ptr, place, is_store in accesses if is_store]
        for ptr, place in stores:
            for other, there, _ in accesses:
                if place is None or there is None or other.dtype is not ptr.dtype or there[0] != place[0] or \
                        0 < abs(there[1] - place[1]) < self.count:
                    return False
        return True

    def suits(self) -> bool:
        """Whether a value of all lanes fits in a few vectors, and their number is one that memory is accessed with."""
        values = [v for s in self.loop.body for v in (*uses(s), *_out(s)) if self.differs(v)]
        memory = [ptr.dtype for accesses in self.touched.values() for ptr, place, _ in accesses if place is not None]
        width = targets.current().vector_bits // 8
        lanes = lanes_for(self.count)
        plain = lanes == self.count or (targets.current().masks and all(d.size >= 4 for d in memory))
        size = max((v.dtype.compute.size for v in values if v.id not in self.places), default=8)
        return plain and lanes * size <= _MOST * width


def lanes_for(count: int) -> int:
    """The power of two that is not below."""
    return 1 << (count - 1).bit_length()


def _out(statement: Statement) -> tuple[Scalar, ...]:
    return (statement.out,) if isinstance(statement, (Instr, Load)) else ()


def _is_half(dtype: DType) -> bool:
    return dtype.is_floating and dtype.size == 2


class _LaneWriter:
    """Writes the rounds of one loop."""

    def __init__(self, emitter: KernelEmitter, loop: For, rounds: _Rounds, count: int) -> None:
        self.emitter, self.loop, self.rounds = emitter, loop, rounds
        self.b, self.module = emitter.b, emitter.fn.module
        self.count, self.lanes = count, lanes_for(count)
        self.vectors: dict[int, ir.Value] = {}

    def write(self) -> None:
        emitter, rounds = self.emitter, self.rounds
        emitter.values[self.loop.index.id] = _I64(rounds.places[self.loop.index.id][1])
        for s in self.loop.body:
            match s:
                case Store(ptr=ptr, index=index, value=value):
                    self.store(ptr, emitter.values[index.id], self.vector(value))
                case Load(out=out, ptr=ptr, index=index) if out.id in rounds.varying:
                    self.vectors[out.id] = self.load(ptr, emitter.values[index.id])
                case Instr(op=op, out=out, args=args) if out.id in rounds.varying:
                    at = tuple([self.vector(a) for a in args])
                    self.vectors[out.id] = llvm_ops.emit(self.b, op, at, args[-1].dtype, out.dtype)
                case _:
                    emitter.statement(s)  # what all rounds share, and the places of round 0

    def vector(self, value: Scalar) -> ir.Value:
        """All lanes of a value."""
        vector = self.vectors.get(value.id)
        if vector is None:
            vector = llvm_vectors.splat(self.b, self.emitter.values[value.id], self.lanes)
            if value.id in self.rounds.places:
                vector = self.b.add(vector, ir.Constant(vector.type, list(range(self.lanes))))
            self.vectors[value.id] = vector
        return vector

    # -- memory -----------------------------------------------------------------------------------
    def load(self, ptr: Pointer, index: ir.Value) -> ir.Value:
        b, address = self.b, self.emitter.address(ptr, index)
        kind = llvm_ops.Lanes(llvm_ops.llvm_type(ptr.dtype, memory=True), self.lanes)
        elements = llvm_vectors.load(b, address, kind, ptr.dtype.size, None if self.has_room(ptr, index) else self.mask)
        self.emitter.scopes.mark(elements, ptr)
        return b.icmp_unsigned("!=", elements, elements.type(0)) if ptr.dtype.is_bool else elements

    def store(self, ptr: Pointer, index: ir.Value, value: ir.Value) -> None:
        b, address = self.b, self.emitter.address(ptr, index)
        if ptr.dtype.is_bool:
            value = b.zext(value, llvm_ops.Lanes(llvm_ops.llvm_type(ptr.dtype, memory=True), self.lanes))
        if self.mask is not None and self.has_room(ptr, index):
            value = b.select(self.mask, value, b.load(address, typ=value.type, align=ptr.dtype.size))
        mask = None if self.has_room(ptr, index) else self.mask
        done = llvm_vectors.store(b, value, address, ptr.dtype.size, mask)
        self.emitter.scopes.mark(done, ptr)

    def has_room(self, ptr: Pointer, index: ir.Value) -> bool:
        """Whether the lanes that are no rounds lie in the kernel's own memory too. LLVM makes registers of memory that
        is accessed without masks."""
        return ptr.slot is None and ptr.base is None and isinstance(index, ir.Constant) and \
            index.constant + self.lanes <= ptr.size

    @property
    def mask(self) -> ir.Constant | None:
        """The lanes that are rounds; None where all are."""
        if self.lanes == self.count:
            return None
        return ir.Constant(ir.VectorType(ir.IntType(1), self.lanes), [int(n < self.count) for n in range(self.lanes)])
