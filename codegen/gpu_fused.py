"""Kernels of fused groups on a GPU: a thread for each element of a map, or for a few neighbours; a warp for each row
that is reduced, or gone over in passes; a block for columns side by side.

What the elements are is computed as on processors (`fused.py`), and so is the order of reductions (`gpu_reduce.py`).
Values between the passes over a row are computed again, rather than kept, unless they are stored in any case: then a
thread finds them where it has put them itself, since each thread of a warp has the same elements in every pass.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike
from twofold.ir.scalar import Scalar

from . import gpu_reduce, lanes, reduce
from .fused_base import FusedBuilder, FusedKernel
from .fused_map import Map
from .fused_reduce import Contributions, Reduce, ReductionItem
from .fused_rows import RowPasses
from .layout import Dimensions, Layout, contiguous, merged
from .loop import TEAM, Pointer, TeamBuilder
from .operands import Argument, PartialResults
from .reduce import OwnAccumulators
from .target import Caches
from .units import FusionItem, Group, Source

__all__ = ["FusedTeamBuilder", "NeighbourMap", "divides", "kernels_of"]

_BYTES = 16  # that a thread loads at once
_MOST = 4  # neighbours of a thread
_PASSES = 1  # of blocks that join accumulators, where the number of chunks is not known
_MANY = TEAM * 64  # outputs from which a thread for each fills a GPU


def kernels_of(group: Group, stored: Sequence[g.Value], overwrites: dict[g.Value, g.Value],
               caches: Caches) -> list[FusedKernel]:
    """The kernels that compute a group; arguments are as of `fused.kernels_of`."""
    if group.axes is None:
        return [_ElementMap(group, stored, overwrites, caches).kernel()]
    if group.rowwise:
        return [_WarpPasses(group, stored, overwrites).kernel()]
    return _TeamReduce(group, stored, overwrites).kernels()


class FusedTeamBuilder(FusedBuilder, TeamBuilder):
    """A builder of kernels of groups that teams of threads run."""


class NeighbourMap(Map):
    """Elementwise items, of which a thread computes a few neighbours."""

    def near(self, memory: Sequence[Pointer], steps: Sequence[DimLike], count: int) -> Scalar:
        """Whether memory begins so that `count` neighbours are aligned, where there are any."""
        b = self.b
        near = b.const(True, dt.bool_)
        for pointer, step in zip(memory, steps, strict=True):
            if step == 1:
                near = b.and_(near, b.aligned(b.at(pointer, 0), pointer.dtype.size * count))
        return near

    def neighbours(self, places: Sequence[Scalar], steps: Sequence[DimLike], sources: Sequence[Source],
                   items: list[FusionItem], near: Scalar | None, there: Sequence[Scalar | None],
                   given: Sequence[Mapping[tuple[g.Value, Layout], Scalar]]) -> None:
        """Computes and stores neighbours.

        Args:
            places: of operands, and then of results, the first one's element.
            steps: of these from one neighbour to the next; that of results is 1.
            near: whether what moves by 1 can be loaded and stored as vectors; None if never.
            there: for each neighbour whether there is one; None where there is in any case.
            given: for each neighbour the values of operands that are not loaded.
        """
        b, count = self.b, len(there)
        memory = self.places_of(sources)
        cells = [[b.local(b.const(0, s.base.dtype)) for _ in range(1 if step == 0 else count)]
                 for s, step in zip(sources, steps, strict=False)]

        def load(vectors: bool) -> None:
            for own, pointer, at, step in zip(cells, memory, places, steps, strict=False):
                if vectors and step == 1:
                    vector = b.load(pointer, at, count, aligned=True)
                    for lane, cell in enumerate(own):
                        cell.set(b.extract(vector, lane))
                    continue
                for lane, (cell, exists) in enumerate(zip(own, [None] * count if vectors else there, strict=False)):
                    with self.where(exists):
                        cell.set(b.load(pointer, b.affine(at, [b.const(lane, dt.int64)], [step]) if lane else at))

        def store(vectors: bool) -> None:
            for v, pointer, at in zip(self.stored, memory[len(sources):], places[len(sources):], strict=True):
                if vectors:
                    b.store(pointer, at, b.pack([env[v] for env in every]), aligned=True)
                    continue
                for lane, (env, exists) in enumerate(zip(every, there, strict=True)):
                    with self.where(exists):
                        b.store(pointer, at + lane, env[v])

        self.either(near, load)
        every = []
        for lane, known in enumerate(given):
            loaded = {(s.base, s.layout): own[lane if len(own) > 1 else 0].get()
                      for s, own in zip(sources, cells, strict=True)}
            every.append(self.compute_items(items, {**loaded, **known}))
        self.either(near, store)

    def places_of(self, sources: Sequence[Source]) -> list[Pointer]:
        """The memory of operands, and of results."""
        return [*[self.b.memory(s.base) for s in sources], *[self.b.memory(v) for v in self.stored]]

    def either(self, near: Scalar | None, record: Callable[[bool], None]) -> None:
        """Records something with vectors where `near` holds, and without them where not."""
        if near is None:
            record(False)
            return
        with self.b.if_(near):
            record(True)
        with self.b.else_():
            record(False)

    def where(self, exists: Scalar | None) -> AbstractContextManager[None]:
        """A block for what is done where an element exists."""
        return nullcontext() if exists is None else self.b.if_(exists)


class _ElementMap(NeighbourMap):
    """Elementwise items, an element or a few neighbours an iteration."""

    def kernel(self) -> FusedKernel:
        b, space = self.b, self.group.space
        items = self.needed(self.stored)
        sources = self.external(items)
        parts = [self.group.into.get(v) for v in self.stored]
        layouts = [*[s.layout for s in sources], *[contiguous(space) if p is None else p.layout for p in parts]]
        dims = merged(space, [la.strides for la in layouts]) or [(1, (0,) * len(layouts))]
        dtypes = [*[s.base.dtype for s in sources], *[v.dtype for v in self.stored]]
        count = _neighbours(dims, layouts, max(d.size for d in dtypes), any(d.is_complex for d in dtypes))
        with b.for_(b.start, b.stop) as number:
            coords = b.split(number * count if count > 1 else number, [d for d, _ in dims])
            places = [self.affine_place(n, dims, coords, sources) for n in range(len(layouts))]
            if count > 1:
                steps = dims[-1][1]
                near = self.near(self.places_of(sources), steps, count)
                self.neighbours(places, steps, sources, items, near, [None] * count, [{}] * count)
            else:
                loaded = {(s.base, s.layout): b.load(b.memory(s.base), at)
                          for s, at in zip(sources, places, strict=False)}
                self.put(places[len(sources):], self.compute_items(items, loaded))
        return b.done(self.group.items, dm.numel(space) if count == 1 else dm.numel(space) // count,
                      1 + self.instructions() // 8)

    def affine_place(self, n: int, dims: Dimensions, coords: list[Scalar], sources: list[Source]) -> Scalar:
        """The element of an operand, or of a result after all operands, at coordinates."""
        at = self.b.affine(None, coords, [steps[n] for _, steps in dims])
        offset = self.begin(at, sources[n].layout.offset if n < len(sources) else 0)
        assert offset is not None
        return offset

    def put(self, places: Sequence[Scalar], env: dict[g.Value, Scalar]) -> None:
        """Stores the results of an element."""
        for v, at in zip(self.stored, places, strict=True):
            self.b.store(self.b.memory(v), at, env[v])


def _neighbours(dims: Dimensions, layouts: Sequence[Layout], size: int, complex: bool) -> int:
    """How many neighbours a thread takes: those that fill vectors, if all of them are whole and where they may be
    aligned.

    Args:
        dims: of all operands and results, which have these layouts.
        size: bytes of the largest element.
    """
    *outer, (last, steps) = dims
    count = 1 if complex or 1 not in steps or any(step not in (0, 1) for step in steps) else min(_MOST, _BYTES // size)
    apart = [ways[n] for _, ways in outer for n, step in enumerate(steps) if step == 1]
    begins = [la.offset for la, step in zip(layouts, steps, strict=True) if step == 1]
    while count > 1 and not all(divides(count, n) for n in (last, *apart, *begins)):
        count //= 2
    return max(count, 1)


def divides(count: int, size: DimLike) -> bool:
    if isinstance(size, Dim):
        return all(factor % count == 0 for _, factor in size.terms)
    return size % count == 0


class _WarpPasses(RowPasses):
    """Rows gone over in several passes, a row a warp."""

    def __init__(self, group: Group, stored: Sequence[g.Value], overwrites: dict[g.Value, g.Value]) -> None:
        super().__init__(group, stored, overwrites)
        self.b = self.team = FusedTeamBuilder(self.name, overwrites, group.into)

    def kernel(self) -> FusedKernel:
        b = self.team
        self.sources = self.external(self.group.items)
        self.row_sources = {(s.base, s.layout) for s in self.sources if s.layout.shape != self.group.space}
        self.ready = set()
        last = max((self.group.passes[v] for v in self.group.outer), default=0)
        with b.for_(b.start, b.stop) as row:
            self.at = self.begins([s for s in self.sources if (s.base, s.layout) not in self.row_sources], row)
            self.row, self.env = row, {}
            for number in range(last + 1):
                self.one_pass(number)
            self.store_row()
        return b.done(self.group.items, self.outputs, 1 + self.length * (1 + self.cost // 8))

    def sweep(self, specs: Sequence[ReductionItem], element: Callable[[Scalar], Contributions]) -> None:
        """Reduces the row; the results are those of all threads."""
        b, own = self.team, [OwnAccumulators(self.team, s.spec) for s in specs]
        lanes.sweep_by_team(b, own, self.length, functools.partial(self.take, specs, element, 0))
        for spec, acc in zip(specs, own, strict=True):
            self.conclude(spec, tuple([b.leading(v) for v in acc.get(b.lane())]))

    def worth_keeping(self, value: g.Value, number: int) -> bool:
        """Whether a value is stored in any case: there is no other memory."""
        return value in self.stored

    def store_row(self) -> None:
        b = self.team
        values = [(v, b.leading(self.env[v])) for v in self.stored if v in self.group.outer]  # all have read theirs
        with b.if_(b.eq(b.lane(), 0)):
            for v, value in values:
                b.store(b.memory(v), self.row, value)
        rest = [v for v in self.stored if v in self.group.full and v not in self.ready]
        if not rest:
            return
        items = self.needed(rest, self.ready)
        with b.for_(b.lane(), self.length, TEAM) as i:
            env, _ = self.full_values(items, i)
            for v in rest:
                b.store(b.memory(v), self.row * b.number(self.count) + i, env[v])


class _TeamReduce(Reduce):
    """Reductions of any length in one pass: a chunk of a row a warp, or of columns side by side a block."""

    def __init__(self, group: Group, stored: Sequence[g.Value], overwrites: dict[g.Value, g.Value]) -> None:
        super().__init__(group, stored, overwrites)
        self.b = self.team = FusedTeamBuilder(self.name, overwrites, group.into)

    def rows(self) -> FusedKernel:
        b, dense = self.team, self.dense()
        every = [*self.sources, dense]
        with b.for_(b.start, b.stop) as task:
            row, chunk = self.parts(task, self.chunks)
            first = chunk * reduce.CHUNK
            count = b.minimum(b.number(self.count) - first, reduce.CHUNK)
            begins = self.begins(every, row)

            def element(i: Scalar) -> Contributions:
                along = self.places(every, self.reduced, first + i)
                at = {k: begins[k] + along[k] for k in begins}
                return self.element(at, at[dense.base, dense.layout])

            own = [OwnAccumulators(b, s.spec) for s in self.specs]
            lanes.sweep_by_team(b, own, count, functools.partial(self.take, self.specs, element, first))
            with b.if_(b.eq(b.lane(), 0)):
                for spec, acc in zip(self.specs, own, strict=True):
                    self.finish(spec, acc.get(row), row, chunk)
        return b.done(self.group.items, self.outputs * self.chunks, 1 + self.share() * (1 + self.cost // 8))

    def columns(self) -> FusedKernel:
        b, inner, dense = self.team, self.unreduced[-1], self.dense()
        b.threads = gpu_reduce.THREADS
        every = [*self.sources, dense]
        width = self.group.space[inner]
        tiles = dm.ceil_div(width, gpu_reduce.COLUMNS)
        rest = [a for a in self.unreduced if a != inner]
        boxes = dm.numel([self.group.space[a] for a in rest])
        with b.for_(b.start, b.stop) as task:
            upper, tile = self.parts(task, tiles)
            chunk, box = self.parts(upper, boxes, swap=True)
            column = tile * gpu_reduce.COLUMNS + b.lane()
            there = b.lt(column, b.number(width))
            first = chunk * reduce.CHUNK
            count = b.minimum(b.number(self.count) - first, reduce.CHUNK)
            outer = self.places(every, rest, box)
            begins = {(s.base, s.layout): b.affine(outer[s.base, s.layout] + b.number(s.layout.offset), [column],
                                                   [s.layout.strides[inner]]) for s in every}

            def take(i: Scalar, into: Sequence[OwnAccumulators]) -> None:
                with b.if_(there):  # others come to barriers alone
                    along = self.places(every, self.reduced, first + i)
                    at = {k: begins[k] + along[k] for k in begins}
                    contributions = self.element(at, at[dense.base, dense.layout])
                    for spec, acc in zip(self.specs, into, strict=True):
                        acc.take(i, contributions[spec], first + i)

            own = gpu_reduce.sweep_columns(b, [s.spec for s in self.specs], count, take)
            with b.if_(b.and_(there, b.lt(b.thread(), TEAM))):
                for spec, acc in zip(self.specs, own, strict=True):
                    self.finish(spec, acc.get(column), box * b.number(width) + column, chunk)
        weight = 1 + self.share() * gpu_reduce.COLUMNS * (1 + self.cost // 8)
        return b.done(self.group.items, boxes * tiles * self.chunks, weight)

    def trees(self, spec: ReductionItem) -> list[FusedKernel]:
        """Blocks join the accumulators of many chunks, before a warp joins what is left of an output."""
        kernels: list[FusedKernel] = []
        partials, chunks = self.partials[spec], self.chunks
        while len(kernels) < _PASSES if isinstance(chunks, Dim) else chunks > gpu_reduce.JOINED // TEAM:
            above = dm.ceil_div(chunks, gpu_reduce.JOINED)
            joined = [PartialResults(d, above * self.outputs) for d in spec.spec.acc_dtypes]
            weight = spec.spec.instruction_count() * gpu_reduce.JOINED
            kernels.append(FusedKernel(gpu_reduce.blocks(spec.spec), [*joined, *partials, chunks, self.outputs],
                                       above * self.outputs, weight, self.group.items))
            partials, chunks = joined, above
        return [*kernels, self.tree(spec, partials, chunks)]

    def tree(self, spec: ReductionItem, partials: Sequence[PartialResults], chunks: DimLike) -> FusedKernel:
        """Joins the accumulators of chunks into results."""
        many = not isinstance(self.outputs, Dim) and self.outputs >= _MANY
        few = not isinstance(chunks, Dim) and chunks <= gpu_reduce.FEW_CHUNKS
        kernel = gpu_reduce.short_tree(spec.spec) if many and few else gpu_reduce.tree(spec.spec)
        arguments: list[Argument] = [*spec.item.outs, *partials, self.count, chunks, self.outputs]
        return FusedKernel(kernel, arguments, self.outputs, 4 * spec.spec.instruction_count(), self.group.items)
