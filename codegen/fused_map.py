"""Kernels of groups that reduce nothing: every element on its own, by rows or by tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike
from twofold.ir.scalar import Scalar

from . import loop, squares
from .fused_base import FusedKernel, GroupKernel, spans_of
from .layout import Dimensions, Layout, contiguous, merged
from .operands import Rows
from .target import Caches
from .units import FusionItem, Group, Source

__all__ = ["Map"]

_FEW = 4  # elements of a row that are written out
_SHORT = 32  # elements of a row below which beginning and ending a loop costs as much as they do


def _turned(dims: Dimensions, tall: int) -> int | None:
    """The dimension along which an operand has neighbours that are apart along the last one, if both are long."""
    size, steps = dims[-1]
    for operand, step in enumerate(steps):
        if step in (0, 1, -1) or (not isinstance(size, Dim) and size < tall):
            continue
        for n, (length, ways) in enumerate(dims[:-1]):
            if ways[operand] in (1, -1) and (isinstance(length, Dim) or length >= tall // 2):
                return n
    return None


def _rows(space: Sequence[DimLike], each: int, places: Sequence[tuple[g.Value, Layout]]) -> list[Rows]:
    """How a kernel whose range counts the elements of `space`, so many `each` time, goes over rows, which the first
    axes number, one that is no single one or more of them; `places` are where its elements lie in memory."""
    first = next((n for n, size in enumerate(space) if isinstance(size, Dim) or size != 1), None)
    if first is None:
        return []
    end = next(n for n in reversed(range(len(space) + 1)) if dm.numel(space[n:]) == each)
    return [Rows(dm.numel(space[:axes]), 1, dm.numel(space[axes:end]), spans_of(places, axes))
            for axes in range(first + 1, max(len(space), first + 2)) if axes <= end]


def _short(space: Sequence[DimLike], length: DimLike) -> int:
    """The length of rows where they are short, and those of the last axis, which others may go over one by one; else
    0."""
    last = next((size for size in reversed(space) if isinstance(size, Dim) or size != 1), None)
    return 0 if isinstance(length, Dim) or length > _SHORT or length != last else length


def _is_interleaved(dims: Dimensions, operands: int) -> bool:
    """Whether rows have few elements, which lie apart in operands whose neighbours lie in rows beside each other."""
    (size, steps), (_, falls) = dims[-1], dims[-2]
    apart = [n for n in range(operands) if steps[n] not in (0, 1)]
    return not isinstance(size, Dim) and size <= _FEW and bool(apart) and all(falls[n] == 1 for n in apart)


class Map(GroupKernel):
    """Elementwise items over one space.

    Args:
        caches: what tiles are cut for, in which rows are taken together where an operand is transposed.
    """

    def __init__(self, group: Group, stored: Sequence[g.Value], overwrites: dict[g.Value, g.Value],
                 caches: Caches) -> None:
        super().__init__(group, stored, overwrites)
        self.caches = caches

    def kernel(self) -> FusedKernel:
        space = self.group.space
        items = self.needed(self.stored)
        sources = self.external(items)
        dense = contiguous(space)
        parts = [self.group.into.get(v) for v in self.stored]
        layouts = [*[s.layout for s in sources], *[dense if p is None else p.layout for p in parts]]
        dims = merged(space, [la.strides for la in layouts])
        total = dm.numel(space)
        each, short = 1, 0  # elements of an iteration; of a row that is one
        if len(dims) < 2:
            steps = dims[0][1] if dims else (0,) * len(layouts)
            self.rows(None, steps, sources, items, self.b.start, self.b.stop)
        elif (down := _turned(dims, self.caches.tile[0])) is not None:
            return self.tiles(dims, down, sources, items)
        elif short := _short(space, dims[-1][0]):
            each, total = short, dm.numel([size for size, _ in dims[:-1]])
            if _is_interleaved(dims, len(sources)):
                self.interleaved(dims, short, sources, items)
                each = 1  # what is written out is counted so
            else:
                self.short_rows(dims, sources, items)
        else:
            self.boxes(dims, sources, items)
        weight = each * (1 + self.instructions() // 8)
        kernel = self.b.done(self.group.items, total, weight)
        written = [v if p is None else p.base for v, p in zip(self.stored, parts, strict=True)]
        kernel.rows = _rows(space, short or 1, list(zip([*[s.base for s in sources], *written], layouts, strict=True)))
        return kernel

    def instructions(self) -> int:
        return loop.instruction_count(self.b._blocks[0])

    def short_rows(self, dims: Dimensions, sources: list[Source], items: list[FusionItem]) -> None:
        """Rows of the last dimension, whose length is known; the range counts rows."""
        b, outer = self.b, dims[:-1]
        with b.for_(b.start, b.stop) as row:
            coords = b.split(row, [size for size, _ in outer])
            starts = [b.affine(None, coords, [steps[n] for _, steps in outer]) for n in range(len(dims[0][1]))]
            self.rows(starts, dims[-1][1], sources, items, b.const(0, dt.int64), b.number(dims[-1][0]))

    def interleaved(self, dims: Dimensions, length: int, sources: list[Source], items: list[FusionItem]) -> None:
        """Rows of a few elements that lie apart in operands: an iteration writes a row, so that LLVM makes vectors of
        neighbouring rows, which are shuffled before they are stored."""
        b = self.b
        long, outer = b.number(dims[-2][0]), [d for d, _ in dims[:-2]]
        first = b.idiv(b.start, long)
        with b.for_(first, b.idiv(b.stop + (long - 1), long)) as line:
            begin = line * long
            coords = b.split(line, outer) if outer else []
            starts = [b.affine(None, coords, [steps[n] for _, steps in dims[:-2]]) if outer else None
                      for n in range(len(dims[0][1]))]
            bases = [self.begin(start, s.layout.offset) for start, s in zip(starts, sources, strict=False)]
            with b.for_(b.maximum(b.start - begin, 0), b.minimum(b.stop - begin, long)) as i:
                for place in range(length):
                    index = [i, b.const(place, dt.int64)]
                    loaded = {(s.base, s.layout): b.load(b.memory(s.base), b.affine(
                        bases[n], index, [dims[-2][1][n], dims[-1][1][n]])) for n, s in enumerate(sources)}
                    env = self.compute_items(items, loaded)
                    for n, v in enumerate(self.stored, len(sources)):
                        b.store(b.memory(v), b.affine(starts[n], index, [dims[-2][1][n], dims[-1][1][n]]),
                                env[v])

    def boxes(self, dims: Dimensions, sources: list[Source], items: list[FusionItem]) -> None:
        """Rows of the last dimension; the range counts elements, and may begin and end inside a row."""
        b = self.b
        length = b.number(dims[-1][0])
        outer = [d for d, _ in dims[:-1]]
        first = b.idiv(b.start, length)
        with b.for_(first, b.idiv(b.stop + (length - 1), length)) as row:
            begin = row * length
            lo, hi = b.maximum(b.start - begin, 0), b.minimum(b.stop - begin, length)
            coords = b.split(row, outer)
            starts = [b.affine(None, coords, [steps[n] for _, steps in dims[:-1]]) for n in range(len(dims[0][1]))]
            self.rows(starts, dims[-1][1], sources, items, lo, hi)

    def tiles(self, dims: Dimensions, down: int, sources: list[Source],
              items: list[FusionItem]) -> FusedKernel:
        """Tiles of dimension `down` and the last: what a row of one touches is still in the cache for the next row.

        Operands whose neighbours lie along `down` are turned before, where their elements fill vectors.
        """
        b, inner, (tall, wide) = self.b, len(dims) - 1, self.caches.tile
        steps, falls = dims[inner][1], dims[down][1]
        turned = [n for n, s in enumerate(sources)
                  if falls[n] == 1 and steps[n] not in (0, 1) and squares.turnable(s.base.dtype)][:squares.MOST]
        if turned:
            tall = squares.height([sources[n].base.dtype for n in turned], self.caches.line)
        outer = [n for n in range(inner) if n != down]
        height, width = b.number(dims[down][0]), b.number(dims[inner][0])
        counts = [*[dims[n][0] for n in outer], dm.ceil_div(dims[inner][0], wide), dm.ceil_div(dims[down][0], tall)]
        buffers = {n: b.scratch(sources[n].base.dtype.compute, tall * wide) for n in turned}
        with b.for_(b.start, b.stop) as tile:
            *coords, strip, top = b.split(tile, counts)
            left, above = strip * wide, top * tall
            right, below = b.minimum(left + wide, width), b.minimum(above + tall, height)
            for n, buffer in buffers.items():
                start = b.affine(None, [*coords, above, left], [dims[d][1][n] for d in (*outer, down, inner)])
                offset = self.begin(start, sources[n].layout.offset)
                place = b.at(b.memory(sources[n].base), 0 if offset is None else offset)
                squares.turn(b, sources[n].base.dtype, place, b.number(steps[n], stride=True), buffer, (tall, wide),
                             right - left, below - above)
            turning = loop.instruction_count(b._blocks[-1])
            with b.for_(above, below) as row:
                starts = [b.affine(None, [*coords, row], [dims[d][1][n] for d in (*outer, down)])
                          for n in range(len(dims[0][1]))]
                elsewhere = {n: (buffer, (row - above) * wide - left) for n, buffer in buffers.items()}
                self.rows(starts, steps, sources, items, left, right, elsewhere)
        weight = wide * tall * (1 + len(turned) + (self.instructions() - turning) // 8)
        return b.done(self.group.items, dm.numel(counts), weight)

    def rows(self, starts: list[Scalar] | None, steps: Sequence[DimLike], sources: list[Source],
             items: list[FusionItem], lo: Scalar, hi: Scalar,
             turned: Mapping[int, tuple[loop.Pointer, Scalar]] | None = None) -> None:
        """Elements lo to hi of a row in which operand n begins at starts[n] and moves by steps[n]; those in `turned`
        lie elsewhere, element by element from the place that is given there on."""
        b, turned = self.b, turned or {}
        bases = [self.begin(None if starts is None else starts[n], s.layout.offset) for n, s in enumerate(sources)]
        outs = [None if starts is None else starts[len(sources) + n] for n in range(len(self.stored))]
        fixed = {n: b.load(b.memory(s.base), 0 if (base := bases[n]) is None else base)
                 for n, s in enumerate(sources) if steps[n] == 0}
        with b.for_(lo, hi) as i:
            loaded: dict[tuple[g.Value, Layout], Scalar] = {}
            for n, s in enumerate(sources):
                if n in turned:
                    buffer, start = turned[n]
                    value = b.load(buffer, start + i)
                elif n in fixed:
                    value = fixed[n]
                else:
                    value = b.load(b.memory(s.base), b.affine(bases[n], [i], [steps[n]]))
                loaded[s.base, s.layout] = value
            env = self.compute_items(items, loaded)
            for n, v in enumerate(self.stored):
                b.store(b.memory(v), b.affine(outs[n], [i], [steps[len(sources) + n]]), env[v])

    def begin(self, start: Scalar | None, offset: DimLike) -> Scalar | None:
        if offset == 0:
            return start
        at = self.b.number(offset)
        return at if start is None else start + at

    def compute_items(self, items: list[FusionItem],
                      loaded: dict[tuple[g.Value, Layout], Scalar]) -> dict[g.Value, Scalar]:
        env: dict[g.Value, Scalar] = {}
        for item in items:
            values = []
            for s in item.sources:
                value = env.get(s.base)
                if value is None:
                    value = self.constant(s.base)
                values.append(loaded[s.base, s.layout] if value is None else value)
            for out, result in zip(item.outs, self.compute(item, values), strict=True):
                env[out] = result
        return env
