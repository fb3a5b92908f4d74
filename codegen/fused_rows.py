"""Kernels of groups that reduce short rows: several passes over each row, so that maps in the kernel may use the result
of a reduction."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import Dim
from twofold.ir.scalar import Scalar

from . import lanes, loop, reduce
from .fused_base import FusedKernel, spans_of
from .fused_reduce import Contributions, Reducing, ReductionItem, accumulators
from .layout import Layout, contiguous, merged
from .operands import Rows
from .units import FusionItem, Source

__all__ = ["RowPasses"]

_COSTLY = 8  # instructions from which a value that two passes need is kept rather than computed again


class RowPasses(Reducing):
    """Short rows, each gone over in several passes: reductions, what follows from them, and what that gives."""

    @property
    def length(self) -> int:
        """The elements of a row, which are known where rows are gone over so."""
        assert not isinstance(self.count, Dim)
        return self.count

    def kernel(self) -> FusedKernel:
        b = self.b
        self.sources = self.external(self.group.items)
        self.row_sources = {(s.base, s.layout) for s in self.sources if s.layout.shape != self.group.space}
        self.spilled: dict[g.Value, loop.Pointer] = {}
        self.ready: set[g.Value] = set()
        last = max((self.group.passes[v] for v in self.group.outer), default=0)
        every = (accumulators(b, self.specs, reduce.LANES) for _ in range(2))
        self.lanes = dict(zip(self.specs, zip(*every, strict=True), strict=True))
        with b.for_(b.start, b.stop) as row:
            wide = [s for s in self.sources if (s.base, s.layout) not in self.row_sources]
            self.at = self.begins(wide, row)
            self.row = row
            self.env: dict[g.Value, Scalar] = {}
            for number in range(last + 1):
                self.one_pass(number)
            self.store_row()
        kernel = b.done(self.group.items, self.outputs, 1 + self.length * (1 + self.cost // 8))
        kernel.rows = (Rows(self.outputs, 1, 1, spans_of(self.touched(), len(self.unreduced))),)
        return kernel

    def touched(self) -> list[tuple[g.Value, Layout]]:
        """What is read and written, with the places of its elements as the space has them."""
        space = self.group.space
        single = (*self.group.unreduced, *[1] * len(self.reduced))
        reads = [(s.base, s.layout.reshape(single) if (s.base, s.layout) in self.row_sources else s.layout)
                 for s in self.sources]
        return [*reads, *[(v, contiguous(single if v in self.group.outer else space)) for v in self.stored]]

    def one_pass(self, number: int) -> None:
        specs = [s for s in self.specs if self.group.passes[s.item.outs[0]] == number + 1]
        if specs:
            self.reduce_row(specs, number)
        for item in self.group.items:
            if item.reduction is None and item.outs[0] in self.group.outer and \
                    self.group.passes[item.outs[0]] == number + bool(specs) and item.outs[0] not in self.env:
                self.outer_item(item)

    def outer_item(self, item: FusionItem) -> None:
        values = self.operands(item, self.env, self.load_for_row)
        for value, result in zip(item.outs, self.compute(item, values), strict=True):
            self.env[value] = result

    def load_for_row(self, source: Source) -> Scalar:
        b = self.b
        layout = source.layout
        dims = merged(layout.shape, [layout.strides])
        coords = b.split(self.row, [d for d, _ in dims])
        at = b.affine(b.number(layout.offset), coords, [steps[0] for _, steps in dims])
        return b.load(b.memory(source.base), at)

    def reduce_row(self, specs: list[ReductionItem], number: int) -> None:
        b = self.b
        wanted = {s.base for spec in specs for s in spec.item.sources} & self.group.full.keys()
        items = self.needed(wanted, self.ready)
        keep = [v for item in items for v in item.outs if self.worth_keeping(v, number)]

        def element(i: Scalar) -> Contributions:
            env, load = self.full_values(items, i)
            for v in keep:
                b.store(self.spill(v), self.spill_at(v, i), env[v])
            return {spec: self.operands(spec.item, env, load) for spec in specs}

        self.sweep(specs, element)
        self.ready.update(keep)

    def sweep(self, specs: Sequence[ReductionItem], element: Callable[[Scalar], Contributions]) -> None:
        """Reduces the row."""
        own, ends = (list(each) for each in zip(*[self.lanes[s] for s in specs], strict=True))
        lanes.sweep(self.b, own, ends, self.length, functools.partial(self.take, specs, element, 0))
        zero = self.b.const(0, dt.int64)
        for spec in specs:
            self.conclude(spec, self.lanes[spec][1].get(zero))

    def conclude(self, spec: ReductionItem, acc: tuple[Scalar, ...]) -> None:
        """Makes the results of a reduction known, from its accumulators."""
        b = self.b
        results = spec.spec.reduction.result(b, acc, b.number(self.count), spec.spec.attrs)
        for value, result in zip(spec.item.outs, results, strict=True):
            self.env[value] = b.rounded(b.cast(result, value.dtype), value.dtype)

    def full_values(self, items: list[FusionItem],
                    i: Scalar) -> tuple[dict[g.Value, Scalar], Callable[[Source], Scalar]]:
        b = self.b
        wide = [s for s in self.sources if (s.base, s.layout) not in self.row_sources]
        along = self.places(wide, self.reduced, i)
        env = dict(self.env)

        def load(s: Source) -> Scalar:
            if s.base in self.ready:
                return b.load(self.spill(s.base), self.spill_at(s.base, i))
            return b.load(b.memory(s.base), self.at[s.base, s.layout] + along[s.base, s.layout])

        for item in items:
            for value, result in zip(item.outs, self.compute(item, self.operands(item, env, load)), strict=True):
                env[value] = result
        return env, load

    def worth_keeping(self, value: g.Value, number: int) -> bool:
        """Whether a value is costly and a later pass needs it, so that it is kept in memory."""
        item = next(i for i in self.group.items if value in i.outs)
        b = loop.LoopBuilder("cost")
        assert item.body is not None
        item.body(b, *[b.new(s.base.dtype.compute) for s in item.sources], **item.attrs)
        costly = loop.instruction_count(b._blocks[0]) > _COSTLY
        later = {s.base for i in self.group.items for s in i.sources
                 if (self.group.passes[i.outs[0]] - 1 if i.reduction is not None else
                     self.group.full.get(i.outs[0], 0)) > number}
        return value in self.stored or (costly and value in later)

    def spill(self, value: g.Value) -> loop.Pointer:
        if value in self.stored:
            return self.b.memory(value)
        if value not in self.spilled:
            self.spilled[value] = self.b.scratch(value.dtype, self.length)
        return self.spilled[value]

    def spill_at(self, value: g.Value, i: Scalar) -> Scalar:
        return self.row * self.b.number(self.count) + i if value in self.stored else i

    def store_row(self) -> None:
        b = self.b
        for v in self.stored:
            if v in self.group.outer:
                b.store(b.memory(v), self.row, self.env[v])
        rest = [v for v in self.stored if v in self.group.full and v not in self.ready]
        if not rest:
            return
        items = self.needed(rest, self.ready)
        with b.for_(0, self.length) as i:
            env, _ = self.full_values(items, i)
            for v in rest:
                b.store(b.memory(v), self.row * b.number(self.count) + i, env[v])
