"""The placer of plans: kernels and copies that a lowering asks for become units of a graph's grouping.

What brings operands to what a kernel reads are copy items, which fuse with the kernels that compute the operands. What
lowerings may ask for is said in `placer.py`; which items share a kernel is `fusion.py`'s affair.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike
from twofold.ir.dtypes import DType
from twofold.ir.scalar import ScalarBody

from .backend import Backend
from .layout import Layout, contiguous
from .loop_info import LoopInfo
from .operands import Memory, Run, Slot
from .placer import Placer, same
from .units import FusionItem, Source

__all__ = ["Fuser", "PlanPlacer"]

# Packing takes about as long as the products of some forty rows: for so many, and for so few elements, it is all one.
_MANY, _LARGE = 1 << 10, 1 << 14


class Fuser(Protocol):
    """The grouping of a graph that is being put together (`fusion.py`), as lowerings see it.

    Attributes:
        backend: that the plan is for.
        loop: what is known of the loop whose body the graph is.
        slots: values that lie inside of others, at places that an index decides.
        changing: values that may be changed in place.
        checked: writers of items whose places have been checked.
        within: indices that have been checked: whose memory they are, from which element on, how many, and the size of
            the axis.
        reported: what messages of failed checks read.
        sources: where the elements of every value so far lie.
        made_at: the number of the unit after which a value is there.
        orders: the orders of axes in which values are wanted.
        steady: inputs that stay the same in many runs.
        packed: values that are worth packing once for many runs, if they stay the same.
    """

    backend: Backend
    loop: LoopInfo
    slots: dict[g.Value, Slot]
    changing: set[g.Value]
    checked: set[g.Node]
    within: set[tuple[g.Value, DimLike, DimLike, DimLike]]
    reported: set[Memory]
    sources: dict[g.Value, Source]
    made_at: dict[g.Value, int]
    orders: dict[g.Value, tuple[int, ...]]
    steady: Collection[g.Value]
    packed: set[g.Value]

    def place(self, item: FusionItem, axes: tuple[int, ...] | None = None, after: int = -1) -> None:
        """Puts an item into a group, one behind unit number `after`."""

    def unit(self, node: g.Node, sources: list[Source], outs: list[g.Value], runs: Sequence[Run] = ()) -> None:
        """Adds a unit that is no group."""

    def own(self, value: g.Value, at: int) -> None:
        """Notes that a value has memory of its own, from unit number `at` on."""


class PlanPlacer(Placer):
    """The placer that puts kernels and copies into a plan."""

    def __init__(self, fuser: Fuser, node: g.Node) -> None:
        super().__init__(node, [fuser.sources[v] for v in node.inputs])
        self.fuser = fuser

    def by_tensor_cores(self) -> bool:
        return self.fuser.backend.by_tensor_cores(self.node)

    def in_memory(self, source: Source) -> Source:
        base = source.base
        sized = base.node is not None and base.node.op is g.SIZE
        return self.copy(source) if sized else source

    def lasting(self, source: Source) -> Source:
        dense = self.dense(source)
        return self.copy(dense) if dense.base in self.fuser.slots else dense

    def item(self, sources: Sequence[Source], out: g.Value, body: ScalarBody, name: str = "part") -> Source:
        self.fuser.place(FusionItem(name, list(sources), [out], {}, body, None, self.node))
        return Source(out, contiguous(out.dims))

    def is_fixed(self, source: Source) -> bool:
        return source.base in self.fuser.loop.fixed

    def is_steady(self, source: Source) -> bool:
        return source.base in self.fuser.steady

    def packs(self, source: Source, rows: DimLike, elements: DimLike) -> None:
        if not isinstance(elements, Dim) and elements >= _LARGE and (isinstance(rows, Dim) or rows <= _MANY):
            self.fuser.packed.add(source.base)

    def is_checked(self, indices: Source, size: DimLike, now: bool) -> bool:
        layout = indices.layout
        key = indices.base, layout.offset, dm.numel(layout.shape), size
        if key in self.fuser.within:
            return True
        if now:
            self.fuser.within.add(key)
        return False

    def fill(self, outs: Sequence[g.Value], *runs: Run) -> None:
        reads = {v: Source(v, contiguous(v.dims)) for run in runs for v in run.values() if v not in outs}
        self.fuser.unit(self.node, list(reads.values()), list(outs), list(runs))

    def product(self, out: g.Value, left: Source, right: Source, layout: Layout | None = None) -> None:
        runs = self.fuser.backend.product(self, out, self.in_memory(left), self.in_memory(right), layout)
        self.fill([out], *runs)

    def wanted_order(self) -> tuple[int, ...] | None:
        return self.fuser.orders.get(self.out) if self.fuser.backend.reorders else None

    def give(self, value: g.Value, layout: Layout | None = None) -> None:
        source = Source(value, layout or contiguous(self.out.dims))
        if value is self.out:
            return
        if value.dtype is self.out.dtype:
            self.fuser.sources[self.out] = source
        else:
            self.fuser.place(FusionItem("cast", [source], [self.out], {}, same, None, self.node))

    def part(self, whole: g.Value, layout: Layout, source: Source, after: g.Value | None = None,
             name: str = "part") -> None:
        repeated = Source(source.base, source.layout.broadcast_to(layout.shape))
        self._write(whole, layout, [repeated], same, -1 if after is None else self.fuser.made_at[after], name)

    def zeros(self, dtype: DType | None = None, dims: Sequence[DimLike] | None = None) -> g.Value:
        whole = self.target(dtype, dims)
        self._write(whole, contiguous(whole.dims), [], lambda s: s.const(0, whole.dtype), -1, "zeros")
        return whole

    def _write(self, whole: g.Value, layout: Layout, sources: list[Source], body: ScalarBody, after: int,
               name: str) -> None:
        part = g.Value(layout.shape, whole.dtype)
        item = FusionItem(name, sources, [part], {}, body, None, self.node, Source(whole, layout))
        self.fuser.place(item, after=after)
        at = self.fuser.made_at
        self.fuser.own(whole, max(at.get(whole, -1), at[part]))
