"""The base of kernels of fused groups: a loop builder that takes values and sizes as arguments; items at a place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.data_class import data_class
from twofold.ir.dims import Dim, DimLike
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from . import loop
from .layout import Layout, row_span
from .operands import Argument, PartialResults, Rows, Within
from .units import FusionItem, Group, Source, is_inline, scalar_constant

__all__ = ["GroupKernel", "FusedBuilder", "FusedKernel", "spans_of"]


@data_class(eq=False)
class FusedKernel:
    """A kernel with what fills its args array: memory for each pointer, then integers."""

    kernel: loop.Kernel
    arguments: list[Argument]
    total: DimLike
    weight: DimLike  # of one iteration, in simple operations
    items: list[FusionItem]  # what failed checks refer to, by the number before the colon of a code
    rows: Sequence[Rows] = ()


class FusedBuilder(loop.LoopBuilder):
    """A loop builder that knows which item it records, and takes sizes as arguments."""

    def __init__(self, name: str, overwrites: dict[g.Value, g.Value], into: dict[g.Value, Source]) -> None:
        super().__init__(name)
        self.owner = 0
        self._into = into
        self.arguments: dict[int, Argument] = {}
        self._sizes: dict[tuple[Dim, bool], Scalar] = {}
        self._memory: dict[g.Value | PartialResults, loop.Pointer] = {}
        self._overwrites = overwrites

    def check(self, cond: Scalar, code: str) -> None:
        super().check(cond, f"{self.owner}:{code}")

    def memory(self, of: g.Value | PartialResults) -> loop.Pointer:
        """The pointer to a value's memory."""
        of = self._overwrites.get(of, of)  # type: ignore[arg-type]
        pointer = self._memory.get(of)
        if pointer is None:
            part = self._into.get(of)
            place = of if part is None else Within(part.base, part.layout.offset)
            self.arguments[self.next_slot] = place
            pointer = self._memory[of] = self.pointer(f"m{self.next_slot}", of.dtype)
        return pointer

    def number(self, size: DimLike, stride: bool = False) -> Scalar:
        """A size as a value: a constant, or an argument; a stride is passed less 1 (`LoopBuilder.stride`)."""
        if not isinstance(size, Dim):
            return self.const(size, dt.int64)
        key = (size, stride)
        if key not in self._sizes:
            self.arguments[self.next_slot] = size - 1 if stride else size
            self._sizes[key] = self.late_integer()
        return self._sizes[key] + 1 if stride else self._sizes[key]

    def affine(self, base: Scalar | None, coords: Sequence[Scalar], strides: Sequence[DimLike]) -> Scalar:
        """base + sum of coords * strides."""
        total = base
        for coord, stride in zip(coords, strides, strict=True):
            if stride == 0:
                continue
            part = coord if stride == 1 else coord * self.number(stride, stride=True)
            total = part if total is None else total + part
        return self.const(0, dt.int64) if total is None else total

    def split(self, position: Scalar, sizes: Sequence[DimLike]) -> list[Scalar]:
        """The coordinates, in a box of `sizes`, of its element number `position`."""
        coords: list[Scalar] = []
        for size in reversed(sizes[1:]):
            n = self.number(size)
            above = self.idiv(position, n)
            coords.append(position - above * n)
            position = above
        return [position, *coords[::-1]] if sizes else []

    def rounded(self, value: Scalar, dtype: DType) -> Scalar:
        """`value` as memory of `dtype` would hold it."""
        value = self.cast(value, dtype) if value.dtype is not dtype.compute and not _halved(value, dtype) else value
        if dtype.size == 2 and dtype.is_floating:
            cell = self.scratch(dtype, 1)
            self.store(cell, 0, value)
            return self.load(cell, 0)
        return value

    def done(self, items: list[FusionItem], total: DimLike, weight: DimLike) -> FusedKernel:
        arguments = [self.arguments[n] for n in range(self.next_slot)]
        return FusedKernel(self.finish(), arguments, total, weight, items)


def _halved(value: Scalar, dtype: DType) -> bool:
    return dtype.size == 2 and dtype.is_floating and value.dtype is dt.float64


class GroupKernel:
    """The base of the kernels of a group: operands from outside, and the computation of items at a place."""

    def __init__(self, group: Group, stored: Sequence[g.Value], overwrites: dict[g.Value, g.Value]) -> None:
        self.group, self.stored = group, list(stored)
        self.name = _name(group)
        self.b = FusedBuilder(self.name, overwrites, group.into)
        self.inside = group.full.keys() | group.outer
        self.cost = max(1, len(group.items))

    def external(self, items: Iterable[FusionItem]) -> list[Source]:
        """The operands from outside that lie in memory, each once."""
        sources: dict[tuple[g.Value, Layout], Source] = {}
        for item in items:
            for s in item.sources:
                if s.base not in self.inside and not is_inline(s.base):
                    sources.setdefault((s.base, s.layout), s)
        return list(sources.values())

    def constant(self, base: g.Value) -> Scalar | None:
        if base.node is not None and base.node.op is g.SIZE:
            return self.b.cast(self.b.number(base.node.attrs["size"]), base.dtype)
        value = scalar_constant(base)
        return None if value is None else self.b.const(value, base.dtype)

    def compute(self, item: FusionItem, values: Sequence[Scalar]) -> list[Scalar]:
        """The results of a map item."""
        b = self.b
        b.owner = self.group.items.index(item) if len(self.group.items) < 64 else self.numbers()[item]
        computed = item.body(b, *values, **item.attrs)  # type: ignore[misc]
        results = tuple(computed) if isinstance(computed, (tuple, list)) else (computed,)
        return [b.rounded(r, v.dtype) for r, v in zip(results, item.outs, strict=True)]

    def numbers(self) -> dict[FusionItem, int]:
        return {item: n for n, item in enumerate(self.group.items)}

    def needed(self, wanted: Iterable[g.Value], ready: Iterable[g.Value] = ()) -> list[FusionItem]:
        """The map items over the whole space that `wanted` need, in order, where `ready` are there already."""
        want, have = set(wanted), set(ready)
        items = []
        for item in reversed(self.group.items):
            if item.reduction is None and item.outs[0] in self.group.full and not want.isdisjoint(item.outs):
                if have.issuperset(item.outs):
                    continue
                items.append(item)
                want.update(s.base for s in item.sources)
        return items[::-1]


def spans_of(places: Iterable[tuple[g.Value, Layout]], axes: int) -> dict[g.Value, DimLike]:
    """The elements of a row of each value that is read or written in one way, where rows are numbered by the first
    axes of the layouts."""
    spans: dict[g.Value, set[DimLike | None]] = {}
    for value, layout in places:
        spans.setdefault(value, set()).add(row_span(layout, axes))
    return {value: span for value, ways in spans.items() if len(ways) == 1 and (span := next(iter(ways))) is not None}


def _name(group: Group) -> str:
    names = [item.name for item in group.items]
    return "_".join(names[:4]) + (f"_and_{len(names) - 4}" if len(names) > 4 else "")
