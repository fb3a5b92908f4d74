"""Kernels of fused groups for GPUs: the elements of maps, and the lanes of reductions, are threads.

An iteration of a map is one element, so that neighbouring threads have neighbouring elements. Rows belong to warps,
whose threads are the lanes of the one order of reductions (`lanes.py`); where neighbours in memory are of different
outputs, a block takes some outputs side by side, each with all of its lanes. Every element is computed as in the
processor's kernels (`fused_map.py`, `fused_rows.py`, `fused_reduce.py`), which these are variants of, with equal bits.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.dims import Dim
from twofold.ir.scalar import Scalar

from . import lanes, loop, reduce
from .fused_base import FusedBuilder, FusedKernel
from .fused_map import Map
from .fused_reduce import Contributions, Reduce, ReductionItem
from .fused_rows import RowPasses
from .layout import contiguous, merged
from .operands import PartialResults
from .target import CACHES
from .units import Group

__all__ = ["kernels_of"]

_THREADS, _EACH = 256, 16  # of a block that joins accumulators, and how many each thread takes
_JOINED = _THREADS * _EACH
_FEW = 64  # accumulators that one thread joins
_PASSES = 2  # of blocks, where the number of chunks is not known
_SIDE_BY_SIDE = 8  # outputs that a block reduces: their neighbours fill what memory hands out at once, 32 bytes


def kernels_of(group: Group, stored: Sequence[g.Value], overwrites: dict[g.Value, g.Value]) -> list[FusedKernel]:
    """The kernels that compute a group on a GPU; arguments as for `fused.kernels_of`."""
    if group.axes is None:
        return [_ElementMap(group, stored, overwrites, CACHES).kernel()]
    if group.rowwise:
        return [_WarpRows(group, stored, overwrites).kernel()]
    return _LaneReduce(group, stored, overwrites).kernels()


class _ElementMap(Map):
    """Elementwise items: an iteration is an element."""

    def kernel(self) -> FusedKernel:
        b, space = self.b, self.group.space
        items = self.needed(self.stored)
        sources = self.external(items)
        dense = contiguous(space)
        parts = [self.group.into.get(v) for v in self.stored]
        layouts = [*[s.layout for s in sources], *[dense if p is None else p.layout for p in parts]]
        dims = merged(space, [la.strides for la in layouts])
        with b.for_(b.start, b.stop) as n:
            coords = b.split(n, [d for d, _ in dims])
            at = [b.affine(None, coords, [steps[k] for _, steps in dims]) for k in range(len(layouts))]
            loaded = {(s.base, s.layout): b.load(b.memory(s.base), at[k] if s.layout.offset == 0 else
                                                 at[k] + b.number(s.layout.offset)) for k, s in enumerate(sources)}
            env = self.compute_items(items, loaded)
            for k, v in enumerate(self.stored):
                b.store(b.memory(v), at[len(sources) + k], env[v])
        return b.done(self.group.items, dm.numel(space), 1 + self.instructions() // 8)


class FusedTeamBuilder(FusedBuilder, loop.TeamBuilder):
    """A builder of fused kernels whose iterations belong to teams of threads."""


class _WarpRows(RowPasses):
    """Short rows, each gone over by a warp in several passes."""

    builder = FusedTeamBuilder

    def kernel(self) -> FusedKernel:
        b = self.b
        self.begin_group()
        assert isinstance(b, FusedTeamBuilder)
        self.own = {spec: reduce.OwnAccumulators(b, spec.spec) for spec in self.specs}
        with b.for_(b.start, b.stop) as row:
            self.one_row(row)
        return b.done(self.group.items, self.outputs, 1 + self.length * (1 + self.cost // 8) // loop.TEAM)

    def sweep(self, specs: list[ReductionItem], take: lanes.Take[reduce.Accumulators]) -> list[tuple[Scalar, ...]]:
        b, own = self.b, [self.own[s] for s in specs]
        assert isinstance(b, FusedTeamBuilder)
        lanes.sweep_by_team(b, own, self.length, take)
        return [tuple([b.leading(v) for v in each.get(b.lane())]) for each in own]

    def worth_keeping(self, value: g.Value, number: int) -> bool:
        """Only what is stored in any case: each thread reads what it has written itself."""
        return value in self.stored and super().worth_keeping(value, number)

    def store_row(self) -> None:
        b = self.b
        assert isinstance(b, FusedTeamBuilder)
        with b.if_(b.eq(b.lane(), 0)):
            self.store_outer()
        self.store_rest(b.lane(), loop.TEAM)


class _LaneReduce(Reduce):
    """Reductions of any length in one pass: a warp for a chunk of a row, or a block for chunks side by side."""

    builder = FusedTeamBuilder

    def rows(self) -> FusedKernel:
        b = self.b
        assert isinstance(b, FusedTeamBuilder)
        dense = self.dense()
        every = [*self.sources, dense]
        own = [reduce.OwnAccumulators(b, spec.spec) for spec in self.specs]
        with b.for_(b.start, b.stop) as task:
            row, chunk = self.parts(task, self.chunks)
            first = chunk * reduce.CHUNK
            count = b.minimum(b.number(self.count) - first, reduce.CHUNK)
            begins = self.begins(every, row)

            def element(i: Scalar) -> Contributions:
                along = self.places(every, self.reduced, first + i)
                at = {k: begins[k] + along[k] for k in begins}
                return self.element(at, at[dense.base, dense.layout])

            lanes.sweep_by_team(b, own, count, functools.partial(self.take, self.specs, element, first))
            with b.if_(b.eq(b.lane(), 0)):
                for spec, each in zip(self.specs, own, strict=True):
                    self.finish(spec, each.get(b.lane()), row, chunk)
        total = self.outputs if self.whole else self.outputs * self.chunks
        return b.done(self.group.items, total, 1 + self.share() * (1 + self.cost // 8) // loop.TEAM)

    def trees(self, spec: ReductionItem) -> list[FusedKernel]:
        """Blocks join many accumulators each, until one thread can join what is left of an output."""
        kernels: list[FusedKernel] = []
        partials, chunks = self.partials[spec], self.chunks
        while isinstance(chunks, Dim) and len(kernels) < _PASSES or not isinstance(chunks, Dim) and chunks > _FEW:
            above = dm.ceil_div(chunks, _JOINED)
            joined = [PartialResults(d, above * self.outputs) for d in spec.spec.acc_dtypes]
            kernel = join_blocks(spec.spec)
            kernels.append(FusedKernel(kernel, [*joined, *partials, chunks, self.outputs], above * self.outputs,
                                       spec.spec.instruction_count() * _JOINED // _THREADS, self.group.items))
            partials, chunks = joined, above
        return [*kernels, self.tree(spec, partials, chunks)]

    def columns(self) -> FusedKernel:
        """A block has a chunk of `_SIDE_BY_SIDE` neighbouring outputs, with a thread for each lane of each."""
        b, inner = self.b, self.unreduced[-1]
        assert isinstance(b, FusedTeamBuilder)
        b.threads = reduce.LANES * _SIDE_BY_SIDE
        dense = self.dense()
        every = [*self.sources, dense]
        width = self.group.space[inner]
        tiles = dm.ceil_div(width, _SIDE_BY_SIDE)
        own = [reduce.SharedAccumulators(b, spec.spec, b.threads) for spec in self.specs]
        rest = [a for a in self.unreduced if a != inner]
        thread = b.thread()
        lane, column = b.shr(thread, _SIDE_BY_SIDE.bit_length() - 1), b.and_(thread, _SIDE_BY_SIDE - 1)
        with b.for_(b.start, b.stop) as task:
            upper, tile = self.parts(task, tiles)
            chunk, box = self.parts(upper, dm.numel([self.group.space[a] for a in rest]), swap=True)
            at_column = tile * _SIDE_BY_SIDE + column
            inside = b.lt(at_column, b.number(width))
            first = chunk * reduce.CHUNK
            count = b.minimum(b.number(self.count) - first, reduce.CHUNK)
            outer = self.places(every, rest, box)
            begins = {(s.base, s.layout): b.affine(outer[s.base, s.layout] + b.number(s.layout.offset), [at_column],
                                                   [s.layout.strides[inner]]) for s in every}
            for each in own:
                each.clear(thread)
            with b.if_(inside), b.for_(lane, count, reduce.LANES) as i:
                along = self.places(every, self.reduced, first + i)
                at = {k: begins[k] + along[k] for k in begins}
                contributions = self.element(at, at[dense.base, dense.layout])
                for spec, each in zip(self.specs, own, strict=True):
                    each.take(thread, contributions[spec], first + i)
            half = reduce.LANES // 2
            for each in own:
                each.publish(thread)
            while half:
                b.barrier()
                with b.if_(b.and_(b.lt(lane, half), b.gt(count, lane + half))):
                    for each in own:
                        each.fold(thread, thread + half * _SIDE_BY_SIDE)
                half //= 2
            with b.if_(b.and_(inside, b.eq(lane, 0))):
                row = box * b.number(width) + at_column
                for spec, each in zip(self.specs, own, strict=True):
                    self.finish(spec, each.get(thread), row, chunk)
        total = dm.numel([self.group.space[a] for a in rest]) * tiles * self.chunks
        return b.done(self.group.items, total, 1 + self.share() * (1 + self.cost // 8) // reduce.LANES)


def join_blocks(spec: reduce.ReductionSpec) -> loop.Kernel:
    """Joins up to _JOINED accumulators of chunks that follow one another into one, in the order of `reduce.tree`: each
    pair that begins at an even place, then each pair of these, and so on; one that has no partner goes up as it is.

    An iteration, by a block of threads, is such a part of an output; parts of one output are apart as its chunks are.

    args: addresses of the results and of the accumulators; the number of chunks; the number of outputs, by which
    chunks are apart.
    """
    b = loop.TeamBuilder(f"{spec.name} blocks", _THREADS)
    outs = [b.pointer(f"out{n}", d) for n, d in enumerate(spec.acc_dtypes)]
    accs = [b.pointer(f"acc{n}", d) for n, d in enumerate(spec.acc_dtypes)]
    chunks, outputs = b.integer(), b.integer()
    own, thread = reduce.SharedAccumulators(b, spec, _THREADS), b.thread()
    with b.for_(b.start, b.stop) as part:
        group = b.idiv(part, outputs)
        output = part - group * outputs
        first = group * _JOINED + thread * _EACH

        def joined(into: reduce.OwnAccumulators, at: Scalar, count: int) -> None:
            """Leaves the accumulators from `at` on, of which there is one at least, joined in `into`."""
            if count == 1:
                into.set(at, [b.load(p, at * outputs + output) for p in accs])
                return
            joined(into, at, count // 2)
            with b.if_(b.lt(at + count // 2, chunks)):
                right = reduce.OwnAccumulators(b, spec)
                joined(right, at + count // 2, count // 2)
                into.join(right.get(at))

        with b.if_(b.lt(first, chunks)):
            joined(own, first, _EACH)
        own.publish(thread)
        apart = 1
        while apart < _THREADS:
            b.barrier()
            with b.if_(b.and_(b.eq(b.and_(thread, 2 * apart - 1), 0), b.lt(first + apart * _EACH, chunks))):
                own.fold(thread, thread + apart)
            apart *= 2
        with b.if_(b.eq(thread, 0)):
            for p, value in zip(outs, own.get(thread), strict=True):
                b.store(p, part, value)
    return b.finish()
