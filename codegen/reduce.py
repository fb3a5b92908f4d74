"""Reduction kernels: one order of combination, three ways to walk memory.

The order is fixed (`ir.scalar.Reduction`): chunks of CHUNK elements, LANES lanes in a chunk, a halving tree over the
lanes (`lanes.py`), a balanced tree over the chunks. A chunk is reduced by `rows`, one output after another, where
elements of the reduced dimension are neighbours (or nothing better is possible); or by `columns`, many outputs side by
side, where elements of the kept dimension are. Either ends in results, when there is one chunk, or in accumulators
("partial"), which `tree` joins.

All three are row kernels for `schedule.grid`: they take a range of outputs along one dimension. The reduced elements
lie along one dimension too; which dimensions those are is decided in `runtime/geometry.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from twofold.ir import dtypes as dt
from twofold.ir.data_class import data_class
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Reduction, Scalar, ScalarBuilder
from twofold.ir.types import Attrs

from . import lanes as order
from .lanes import LANES
from .loop import Cell, Kernel, LoopBuilder, TeamBuilder
from .target import CACHES

__all__ = ["CHUNK", "LANES", "ReductionSpec", "Accumulators", "OwnAccumulators", "rows", "columns", "tree"]

CHUNK = 4096
_TILE = CACHES.nearest // LANES  # bytes of accumulators of a lane for columns reduced side by side
_BANDS = 4  # elements of a lane taken at once, so that its accumulators travel less
_LEVELS = 64  # of the tree over chunks


@data_class(frozen=True, eq=False)
class ReductionSpec:
    """A reduction for given dtypes and attributes."""

    name: str
    reduction: Reduction
    in_dtypes: tuple[DType, ...]
    out_dtypes: tuple[DType, ...]
    attrs: Attrs

    @property
    def acc_dtypes(self) -> tuple[DType, ...]:
        return self.reduction.acc_dtypes(self.in_dtypes)

    def instruction_count(self) -> int:
        """How many instructions an element costs."""
        s, r = ScalarBuilder(), self.reduction
        xs = tuple(s.new(d.compute) for d in self.in_dtypes)
        own = r.element(s, self.in_dtypes, xs, s.new(dt.int64), self.attrs)
        r.join(s, tuple(s.new(d) for d in self.acc_dtypes), own)
        return len(s.instrs)


class Accumulators:
    """Accumulators in the kernel's stack memory, `size` of each kind (`lanes.LaneAccumulators`)."""

    def __init__(self, b: LoopBuilder, spec: ReductionSpec, size: int) -> None:
        self.b, self.spec = b, spec
        self.memory = [b.scratch(d, size) for d in spec.acc_dtypes]

    def clear(self, at: Scalar) -> None:
        self.set(at, self.spec.reduction.start(self.b, self.spec.in_dtypes))

    def get(self, at: Scalar) -> tuple[Scalar, ...]:
        return tuple(self.b.load(p, at) for p in self.memory)

    def set(self, at: Scalar, values: Sequence[Scalar]) -> None:
        for p, v in zip(self.memory, values, strict=True):
            self.b.store(p, at, v)

    def take(self, at: Scalar, xs: Sequence[Scalar], index: Scalar) -> None:
        """An element joins the accumulators `at`."""
        r, spec = self.spec.reduction, self.spec
        own = r.element(self.b, spec.in_dtypes, tuple(xs), index, spec.attrs)
        self.set(at, r.join(self.b, self.get(at), own))

    def take_all(self, at: Scalar, elements: Sequence[tuple[Sequence[Scalar], Scalar]]) -> None:
        """Elements, each with its number, join the accumulators `at` one after another."""
        r, spec = self.spec.reduction, self.spec
        acc = self.get(at)
        for xs, index in elements:
            acc = r.join(self.b, acc, r.element(self.b, spec.in_dtypes, tuple(xs), index, spec.attrs))
        self.set(at, acc)

    def fold(self, at: Scalar, other: Scalar) -> None:
        """The accumulators at `other` join those `at`."""
        self.set(at, self.spec.reduction.join(self.b, self.get(at), self.get(other)))


class OwnAccumulators(Accumulators):
    """The accumulators of one lane, in registers of a thread of a team (`lanes.TeamAccumulators`)."""

    def __init__(self, b: TeamBuilder, spec: ReductionSpec) -> None:
        self.b, self.team, self.spec, self.memory = b, b, spec, []
        self.cells = _cells(b, spec.reduction.start(b, spec.in_dtypes))

    def get(self, at: Scalar) -> tuple[Scalar, ...]:
        return _values(self.cells)

    def set(self, at: Scalar, values: Sequence[Scalar]) -> None:
        _assign(self.cells, values)

    def further(self, n: int) -> tuple[Scalar, ...]:
        return tuple(self.team.further(v, n) for v in _values(self.cells))

    def join(self, values: Sequence[Scalar]) -> None:
        _assign(self.cells, self.spec.reduction.join(self.b, _values(self.cells), tuple(values)))


class _ReduceKernel:
    """A kernel of `rows` or `columns` being recorded: its arguments, and the loads and stores that both need."""

    def __init__(self, spec: ReductionSpec, kind: str, mask: str, partial: bool, b: LoopBuilder | None = None) -> None:
        self.b = b = b or LoopBuilder(f"{spec.name} {kind} {mask}{' partial' if partial else ''}")
        self.spec, self.partial = spec, partial
        out_dtypes = spec.acc_dtypes if partial else spec.out_dtypes
        self.outs = [b.pointer(f"out{n}", d) for n, d in enumerate(out_dtypes)]
        self.ins = [b.pointer(f"in{n}", d) for n, d in enumerate(spec.in_dtypes)]
        self.position = b.integer()  # among the operands: the number of the first element
        self.total = b.integer()

    def store(self, at: Sequence[Scalar], acc: tuple[Scalar, ...]) -> None:
        """Puts accumulators, or the results they give, into the outputs."""
        b, spec = self.b, self.spec
        values = acc if self.partial else spec.reduction.result(b, acc, self.total, spec.attrs)
        for p, a, v in zip(self.outs, at, values, strict=True):
            b.store(p, a, b.cast(v, p.dtype))

    def load(self, at: Sequence[Scalar]) -> list[Scalar]:
        return [self.b.load(p, a) for p, a in zip(self.ins, at, strict=True)]


def _offset(base: Scalar | None, i: Scalar, letter: str, step: Scalar | None) -> Scalar:
    """Element number `i` from `base` for an operand that moves as its mask letter says."""
    b = i.builder
    moved = b.const(0, dt.int64) if letter == "s" else i if letter == "v" or step is None else i * step
    return moved if base is None else base + moved


def rows(spec: ReductionSpec, mask: str, partial: bool, by_team: bool = False) -> Kernel:
    """Reduces a chunk for each output in the range.

    args: addresses of the outputs (or accumulators) and inputs; the number of the chunk's first element; the number of
    elements in all; how far that first number moves from one output to the next; the stride of every output and input
    from one output to the next; the stride along the reduced dimension of each `g` input, less 1. Strides count
    elements.

    Args:
        mask: how each input moves along the reduced dimension: `v` stride 1, `s` stride 0, `g` any.
        by_team: whether a team of threads reduces each chunk together.
    """
    team = TeamBuilder(f"{spec.name} rows by teams {mask}{' partial' if partial else ''}") if by_team else None
    f = _ReduceKernel(spec, "rows", mask, partial, team)
    b = f.b
    advance = b.integer()
    out_steps = [b.integer() for _ in f.outs]
    in_steps = [b.integer() for _ in f.ins]
    steps = [b.stride() if letter == "g" else None for letter in mask]
    memory = [Accumulators(b, spec, LANES) for _ in range(0 if by_team else 2)]
    with b.for_(b.start, b.stop) as o:
        first = f.position + o * advance
        count = b.minimum(f.total - first, CHUNK)
        bases = [o * s for s in in_steps]

        def element(i: Scalar) -> list[Scalar]:
            return f.load([_offset(base, i, m, s) for base, m, s in zip(bases, mask, steps, strict=True)])

        def take(lane: Scalar, i: Scalar, into: Sequence[Accumulators]) -> None:
            into[0].take(lane, element(i), first + i)

        if team is None:
            lanes, ends = memory
            order.sweep(b, [lanes], [ends], count, take)
            f.store([o * s for s in out_steps], ends.get(b.const(0, dt.int64)))
        else:
            own = OwnAccumulators(team, spec)
            order.sweep_by_team(team, [own], count, take)
            with b.if_(b.eq(team.lane(), 0)):
                f.store([o * s for s in out_steps], own.get(team.lane()))
    return b.finish()


def columns(spec: ReductionSpec, mask: str, partial: bool) -> Kernel:
    """Reduces a chunk for all outputs in the range, side by side.

    args: addresses of the outputs (or accumulators) and inputs; the number of the chunk's first element; the number of
    elements in all; each input's stride along the reduced dimension; each `g` input's stride from one output to the
    next, less 1. Outputs are neighbours. Strides count elements.

    Args:
        mask: how each input moves from one output to the next: `v` stride 1, `s` stride 0, `g` any.
    """
    f = _ReduceKernel(spec, "columns", mask, partial)
    b = f.b
    down = [b.integer() for _ in f.ins]
    steps = [b.stride() if letter == "g" else None for letter in mask]
    tile = _tile(spec)
    lanes = Accumulators(b, spec, LANES * tile)
    count = b.minimum(f.total - f.position, CHUNK)
    used = b.maximum(b.minimum(count, LANES), 1)
    with b.for_(b.start, b.stop, tile) as left:
        width = b.minimum(b.stop - left, tile)
        with b.for_(0, used) as lane, b.for_(0, width) as c:
            lanes.clear(lane * tile + c)

        def take(i: Scalar, rows_at_once: int) -> None:
            numbers = [i + LANES * k for k in range(rows_at_once)]
            row, bases = b.and_(i, LANES - 1) * tile, [[n * d for d in down] for n in numbers]
            with b.for_(0, width) as c:
                places = [[_offset(base, left + c, m, s) for base, m, s in zip(own, mask, steps, strict=True)]
                          for own in bases]
                lanes.take_all(row + c, [(f.load(at), f.position + n) for at, n in zip(places, numbers, strict=True)])

        together = _BANDS * LANES
        many = b.idiv(count, together) * together
        with b.for_(0, many, together) as band, b.for_(0, LANES) as lane:
            take(band + lane, _BANDS)
        with b.for_(many, count) as i:
            take(i, 1)
        with b.for_(0, 5) as level:
            half = b.shr(b.const(LANES // 2, dt.int64), level)
            with b.for_(0, b.minimum(used - half, half)) as lane, b.for_(0, width) as c:
                lanes.fold(lane * tile + c, (lane + half) * tile + c)
        with b.for_(0, width) as c:
            f.store([left + c] * len(f.outs), lanes.get(c))
    return b.finish()


def _tile(spec: ReductionSpec) -> int:
    """How many columns are reduced side by side: a power of two."""
    size = sum(d.size for d in spec.acc_dtypes)
    return 1 << (_TILE // size).bit_length() - 1


def tree(spec: ReductionSpec) -> Kernel:
    """Joins the accumulators of chunks into results, for each output in the range.

    args: addresses of the outputs and of the accumulators; the number of elements; the number of chunks; the stride of
    accumulators from one chunk to the next. Those of one chunk and all outputs are neighbours, as outputs are.

    The tree splits at the largest power of two below its size. It is built from left to right: a stack holds complete
    trees of falling size, as the digits of the number of chunks seen.
    """
    b = LoopBuilder(f"{spec.name} tree")
    outs = [b.pointer(f"out{n}", d) for n, d in enumerate(spec.out_dtypes)]
    accs = [b.pointer(f"acc{n}", d) for n, d in enumerate(spec.acc_dtypes)]
    total, chunks, step = (b.integer() for _ in range(3))
    stack, r = Accumulators(b, spec, _LEVELS), spec.reduction
    with b.for_(b.start, b.stop) as o:
        depth = b.local(0)
        with b.for_(0, chunks) as chunk:
            at = o + chunk * step
            joined = _cells(b, [b.load(p, at) for p in accs])
            with _while_odd(b, chunk):
                top = depth.get() - 1
                _assign(joined, r.join(b, stack.get(top), _values(joined)))
                depth.set(top)
            stack.set(depth.get(), _values(joined))
            depth.set(depth.get() + 1)
        last = depth.get() - 1
        joined = _cells(b, stack.get(last))
        with b.for_(last - 1, -1, -1) as level:
            _assign(joined, r.join(b, stack.get(level), _values(joined)))
        for p, v in zip(outs, r.result(b, _values(joined), total, spec.attrs), strict=True):
            b.store(p, o, b.cast(v, p.dtype))
    return b.finish()


@contextmanager
def _while_odd(b: LoopBuilder, number: Scalar) -> Iterator[None]:
    """Repeats once for each 1 that `number` ends in."""
    left = b.local(number)
    with b.for_(0, _LEVELS):
        b.break_(b.eq(b.and_(left.get(), 1), 0))
        yield
        left.set(b.shr(left.get(), 1))


def _cells(b: LoopBuilder, values: Sequence[Scalar]) -> list[Cell]:
    return [b.local(v) for v in values]


def _values(cells: Sequence[Cell]) -> tuple[Scalar, ...]:
    return tuple(c.get() for c in cells)


def _assign(cells: Sequence[Cell], values: Sequence[Scalar]) -> None:
    for cell, value in zip(cells, values, strict=True):
        cell.set(value)
