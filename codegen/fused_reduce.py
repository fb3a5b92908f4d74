"""Kernels of groups that reduce axes of any length in one pass, and what they share with those of short rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TypeAlias

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike
from twofold.ir.scalar import Scalar

from . import lanes, reduce
from .fused_base import FusedBuilder, FusedKernel, GroupKernel
from .layout import Dimensions, Layout, contiguous, merged
from .operands import Argument, PartialResults
from .units import FusionItem, Group, Source

__all__ = ["Contributions", "Reduce", "Reducing", "ReductionItem", "accumulators"]

_TILE = 64  # columns that are reduced side by side


class ReductionItem:
    """A reduction item as `reduce.py` sees it."""

    def __init__(self, item: FusionItem) -> None:
        assert item.reduction is not None
        self.item = item
        self.spec = reduce.ReductionSpec(item.name, item.reduction, tuple(s.base.dtype for s in item.sources),
                                tuple(v.dtype for v in item.outs), item.attrs)


Contributions: TypeAlias = dict[ReductionItem, list[Scalar]]  # the elements that each reduction takes at a place


class Reducing(GroupKernel):
    """The base of kernels with reductions: elements of a row at a place."""

    def __init__(self, group: Group, stored: Sequence[g.Value], overwrites: dict[g.Value, g.Value]) -> None:
        super().__init__(group, stored, overwrites)
        self.specs = [ReductionItem(item) for item in group.items if item.reduction is not None]
        axes = group.axes or ()
        self.reduced = [n for n in range(len(group.space)) if n in axes]
        self.unreduced = [n for n in range(len(group.space)) if n not in axes]
        self.count = dm.numel([group.space[n] for n in self.reduced])
        self.outputs = dm.numel(group.unreduced)
        self.cost = sum(s.spec.instruction_count() for s in self.specs) + 4 * len(group.items)

    def over(self, layout: Layout, axes: Sequence[int]) -> Layout:
        """The part of `layout`, over the space, that some of its axes have."""
        return Layout(tuple([layout.shape[a] for a in axes]), tuple([layout.strides[a] for a in axes]), 0)

    def places(self, sources: Sequence[Source], axes: Sequence[int],
               position: Scalar) -> dict[tuple[g.Value, Layout], Scalar]:
        """For each source, how far element `position` of the box of `axes` lies from its beginning."""
        b = self.b
        layouts = [self.over(s.layout, axes) for s in sources]
        dims = merged([self.group.space[a] for a in axes], [la.strides for la in layouts])
        coords = b.split(position, [d for d, _ in dims])
        return {(s.base, s.layout): b.affine(None, coords, [steps[n] for _, steps in dims])
                for n, s in enumerate(sources)}

    def begins(self, sources: Sequence[Source], row: Scalar) -> dict[tuple[g.Value, Layout], Scalar]:
        """Where each source's row number `row` begins."""
        at = self.places(sources, self.unreduced, row)
        return {(s.base, s.layout): at[s.base, s.layout] + self.b.number(s.layout.offset) for s in sources}

    def take(self, specs: Sequence[ReductionItem], element: Callable[[Scalar], Contributions], first: Scalar | int,
             lane: Scalar, i: Scalar, into: Sequence[reduce.Accumulators]) -> None:
        """Has a lane of each of some reductions take what element number i of a chunk contributes (`lanes.sweep`).

        Args:
            first: the number of the chunk's first element.
        """
        contributions = element(i)
        for spec, own in zip(specs, into, strict=True):
            own.take(lane, contributions[spec], i if isinstance(first, int) else first + i)

    def operands(self, item: FusionItem, env: dict[g.Value, Scalar], load: Callable[[Source], Scalar]) -> list[Scalar]:
        values = []
        for s in item.sources:
            value = env.get(s.base)
            if value is None:
                value = self.constant(s.base)
            values.append(load(s) if value is None else value)
        return values


def accumulators(b: FusedBuilder, specs: Sequence[ReductionItem], size: int) -> list[reduce.Accumulators]:
    """So many accumulators for each of some reductions."""
    return [reduce.Accumulators(b, s.spec, size) for s in specs]


class Reduce(Reducing):
    """Reductions of any length in one pass: by rows, or side by side where neighbours are not reduced together."""

    def kernels(self) -> list[FusedKernel]:
        self.sources = self.external(self.group.items)
        self.wanted = {s.base for spec in self.specs for s in spec.item.sources} & self.group.full.keys()
        self.full_stored = [v for v in self.stored if v in self.group.full]
        self.items = self.needed([*self.wanted, *self.full_stored])
        self.chunks = dm.ceil_div(self.count, reduce.CHUNK) if isinstance(self.count, Dim) or self.count else 1
        if isinstance(self.chunks, Dim):
            self.chunks = dm.maximum(self.chunks, 1)
        self.whole = not isinstance(self.chunks, Dim) and self.chunks == 1
        self.partials = {} if self.whole else {
            s: [PartialResults(d, self.chunks * self.outputs) for d in s.spec.acc_dtypes] for s in self.specs}
        first = self.columns() if self.beside() else self.rows()
        return [first] if self.whole else [first, *[kernel for s in self.specs for kernel in self.trees(s)]]

    def beside(self) -> bool:
        """Whether neighbours in memory belong to different outputs."""
        if not self.unreduced or not self.reduced or self.unreduced[-1] < self.reduced[-1]:
            return False
        width = self.group.space[self.unreduced[-1]]
        wide = [s.layout.strides for s in self.sources] or [contiguous(self.group.space).strides]
        return any(st[self.unreduced[-1]] == 1 for st in wide) and (isinstance(width, Dim) or width >= 8)

    def element(self, at: dict[tuple[g.Value, Layout], Scalar], out: Scalar) -> Contributions:
        """The elements that each reduction takes at a place; stores the values of the whole space that others read, at
        `out`."""
        b = self.b
        env: dict[g.Value, Scalar] = {}

        def load(s: Source) -> Scalar:
            return b.load(b.memory(s.base), at[s.base, s.layout])

        for item in self.items:
            for value, result in zip(item.outs, self.compute(item, self.operands(item, env, load)), strict=True):
                env[value] = result
        for v in self.full_stored:
            b.store(b.memory(v), out, env[v])
        return {s: self.operands(s.item, env, load) for s in self.specs}

    def dense(self) -> Source:
        """A row-major source over the whole space, for the places at which values of the space are stored."""
        return Source(self.group.items[0].outs[0], contiguous(self.group.space))

    def rows(self) -> FusedKernel:
        b = self.b
        dense = self.dense()
        every = [*self.sources, dense]
        own, ends = (accumulators(b, self.specs, reduce.LANES) for _ in range(2))
        chunks = b.number(self.chunks)
        with b.for_(b.start, b.stop) as task:
            row = task if self.whole else b.idiv(task, chunks)
            chunk = b.const(0, dt.int64) if self.whole else task - row * chunks
            first = chunk * reduce.CHUNK
            count = b.minimum(b.number(self.count) - first, reduce.CHUNK)
            begins = self.begins(every, row)

            def at_place(along: dict[tuple[g.Value, Layout], Scalar]) -> Contributions:
                at = {k: begins[k] + along[k] for k in begins}
                return self.element(at, at[dense.base, dense.layout])

            def element(i: Scalar) -> Contributions:
                return at_place(self.places(every, self.reduced, first + i))

            walk = _Walk.over(self, every, first)
            block = None if walk is None else functools.partial(self.take_block, walk, at_place, first)
            lanes.sweep(b, own, ends, count, functools.partial(self.take, self.specs, element, first), block)
            zero = b.const(0, dt.int64)
            for spec, end in zip(self.specs, ends, strict=True):
                self.finish(spec, end.get(zero), row, chunk)
        total = self.outputs if self.whole else self.outputs * self.chunks
        return b.done(self.group.items, total, 1 + self.share() * (1 + self.cost // 8))

    def take_block(self, walk: _Walk, at_place: Callable[..., Contributions], first: Scalar, block: Scalar,
                   into: Sequence[reduce.Accumulators]) -> None:
        """The same for the next LANES elements of a walk, from number `block` on."""
        def take(lane: Scalar, contributions: Contributions) -> None:
            for spec, own in zip(self.specs, into, strict=True):
                own.take(lane, contributions[spec], first + block + lane)
        walk.block(at_place, take)

    def share(self) -> DimLike:
        """About how many elements a chunk has."""
        return self.count // self.chunks if isinstance(self.count, Dim) else min(self.count, reduce.CHUNK)

    def finish(self, spec: ReductionItem, acc: tuple[Scalar, ...], row: Scalar, chunk: Scalar) -> None:
        b = self.b
        if self.whole:
            results = spec.spec.reduction.result(b, acc, b.number(self.count), spec.spec.attrs)
            for out, result in zip(spec.item.outs, results, strict=True):
                if out in self.stored:
                    b.store(b.memory(out), row, b.cast(result, out.dtype))
            return
        at = chunk * b.number(self.outputs) + row
        for memory, value in zip(self.partials[spec], acc, strict=True):
            b.store(b.memory(memory), at, value)

    def columns(self) -> FusedKernel:
        """A task is a chunk of up to _TILE neighbouring outputs."""
        b, inner = self.b, self.unreduced[-1]
        dense = self.dense()
        every = [*self.sources, dense]
        width = self.group.space[inner]
        tiles = dm.ceil_div(width, _TILE)
        lanes = accumulators(b, self.specs, reduce.LANES * _TILE)
        rest = [a for a in self.unreduced if a != inner]
        with b.for_(b.start, b.stop) as task:
            upper, tile = self.parts(task, tiles)
            chunk, box = self.parts(upper, dm.numel([self.group.space[a] for a in rest]), swap=True)
            left = tile * _TILE
            across = b.minimum(b.number(width) - left, _TILE)
            first = chunk * reduce.CHUNK
            count = b.minimum(b.number(self.count) - first, reduce.CHUNK)
            outer = self.places(every, rest, box)
            begins = {(s.base, s.layout): b.affine(outer[s.base, s.layout] + b.number(s.layout.offset), [left],
                                                   [s.layout.strides[inner]]) for s in every}
            used = b.maximum(b.minimum(count, reduce.LANES), 1)
            with b.for_(0, used) as lane, b.for_(0, across) as c:
                for own in lanes:
                    own.clear(lane * _TILE + c)
            with b.for_(0, count) as i:
                along = self.places(every, self.reduced, first + i)
                starts = {k: begins[k] + along[k] for k in begins}
                slot = b.and_(i, reduce.LANES - 1) * _TILE
                with b.for_(0, across) as c:
                    at = {(s.base, s.layout): b.affine(starts[s.base, s.layout], [c], [s.layout.strides[inner]])
                          for s in every}
                    contributions = self.element(at, at[dense.base, dense.layout])
                    for spec, own in zip(self.specs, lanes, strict=True):
                        own.take(slot + c, contributions[spec], first + i)
            with b.for_(0, 5) as level:
                half = b.shr(b.const(reduce.LANES // 2, dt.int64), level)
                with b.for_(0, b.minimum(used - half, half)) as lane, b.for_(0, across) as c:
                    for own in lanes:
                        own.fold(lane * _TILE + c, (lane + half) * _TILE + c)
            with b.for_(0, across) as c:
                row = box * b.number(width) + left + c
                for spec, own in zip(self.specs, lanes, strict=True):
                    self.finish(spec, own.get(c), row, chunk)
        total = dm.numel([self.group.space[a] for a in rest]) * tiles * self.chunks
        across_all = _TILE if isinstance(width, Dim) else min(width, _TILE)
        return b.done(self.group.items, total, 1 + self.share() * across_all * (1 + self.cost // 8) // 4)

    def parts(self, position: Scalar, size: DimLike, swap: bool = False) -> tuple[Scalar, Scalar]:
        """position // size and position % size."""
        b = self.b
        if dm.is_exactly(size, 1):
            return position, b.const(0, dt.int64)
        n = b.number(size)
        above = b.idiv(position, n)
        return above, position - above * n

    def trees(self, spec: ReductionItem) -> list[FusedKernel]:
        """The kernels that join the accumulators of chunks into results."""
        return [self.tree(spec, self.partials[spec], self.chunks)]

    def tree(self, spec: ReductionItem, partials: Sequence[PartialResults], chunks: DimLike) -> FusedKernel:
        """Joins so many accumulators of each output into results: `reduce.tree`."""
        kernel = reduce.tree(spec.spec)
        arguments: list[Argument] = [*spec.item.outs, *partials, self.count, chunks, self.outputs]
        return FusedKernel(kernel, arguments, self.outputs, 4 * spec.spec.instruction_count(), self.group.items)


class _Walk:
    """Goes over the reduced elements of some sources, which lie in rows of known length, LANES at a time."""

    @classmethod
    def over(cls, kernel: Reducing, sources: Sequence[Source], first: Scalar) -> _Walk | None:
        """From element `first` on; None where elements lie in one row, or rows may be shorter than LANES."""
        space = [kernel.group.space[a] for a in kernel.reduced]
        dims = merged(space, [kernel.over(s.layout, kernel.reduced).strides for s in sources])
        if len(dims) < 2 or isinstance(dims[-1][0], Dim) or dims[-1][0] < reduce.LANES:
            return None
        return cls(kernel.b, [(s.base, s.layout) for s in sources], dims, first)

    def __init__(self, b: FusedBuilder, keys: list[tuple[g.Value, Layout]], dims: Dimensions,
                 first: Scalar) -> None:
        self.b, self.keys, self.size = b, keys, b.number(dims[-1][0])
        self.outer, self.steps = dims[:-1], dims[-1][1]
        row = b.idiv(first, self.size)
        self.row, self.place = b.local(row), b.local(first - row * self.size)
        self.here = [b.local(v) for v in self.begins(row)]
        self.next = [b.local(v) for v in self.begins(row + 1)]

    def begins(self, row: Scalar) -> list[Scalar]:
        """Where a row begins in each source."""
        coords = self.b.split(row, [d for d, _ in self.outer])
        return [self.b.affine(None, coords, [steps[n] for _, steps in self.outer]) for n in range(len(self.keys))]

    def block(self, element: Callable[..., Contributions],
              take: Callable[[Scalar, Contributions], None]) -> None:
        """Hands LANES elements to `take`, each with its number among them, and moves on."""
        b, place = self.b, self.place.get()
        here, following = ([c.get() for c in cells] for cells in (self.here, self.next))
        inside = b.le(place + reduce.LANES, self.size)
        with b.if_(inside), b.for_(0, reduce.LANES) as lane:
            at = [b.affine(h, [place + lane], [s]) for h, s in zip(here, self.steps, strict=True)]
            take(lane, element(dict(zip(self.keys, at, strict=True))))
        with b.if_(b.not_(inside)), b.for_(0, reduce.LANES) as lane:
            i = place + lane
            over = b.ge(i, self.size)
            at = [b.affine(b.select(over, f, h), [b.select(over, i - self.size, i)], [s])
                  for h, f, s in zip(here, following, self.steps, strict=True)]
            take(lane, element(dict(zip(self.keys, at, strict=True))))
        self.place.set(place + reduce.LANES)
        with b.if_(b.ge(place + reduce.LANES, self.size)):
            self.place.set(place + reduce.LANES - self.size)
            row = self.row.get() + 1
            self.row.set(row)
            for own, value in zip(self.here, following, strict=True):
                own.set(value)
            for own, value in zip(self.next, self.begins(row + 1), strict=True):
                own.set(value)
