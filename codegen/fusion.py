"""Which nodes of a graph run as one kernel.

In: a graph of native nodes that the backend supports. Out: units (`units.py`) in an order that respects every
dependence: groups of elementwise ops and reductions over one index space, and single structured nodes.

A node joins the unit at which its last operand is made, when that is a group over the same space, or a later group
that reads what it reads; else it begins a new group. So grouping is linear in the size of the graph, and no cycle can
come about: a group only reads what units before it make. Views are no nodes here: they are layouts of what they view.

Inside a group a value is *full* (one element for each of the space), or *outer* (one for each combination of the
dimensions that are not reduced): what reductions give and what is computed from it. Groups that reduce short rows go
over them in several passes, so that a softmax or a layer norm written out is one kernel.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.dims import DimLike, Shape
from twofold.ir.op import Op
from twofold.ir.passes.views import order_of

from . import loop_info, slots, updates
from .backend import Backend
from .layout import Layout, NotAView, contiguous
from .operands import Memory, Run, Slot
from .plan_placer import PlanPlacer
from .units import About, Apart, FusionItem, Group, Grouping, Single, Source, by_rows, is_inline

__all__ = ["fuse", "resume"]

_LIMIT = 400  # items of one kernel: what compiles in linear time
_NEAR = 4  # groups of one space that a node is offered to
_MOVED = Group(-1, ())
_Refusal: TypeAlias = tuple[str, Sequence[About]]  # why an item cannot be in a group: a text, and its operands


def fuse(graph: g.Graph, backend: Backend, loop: loop_info.LoopInfo | None = None,
         steady: Collection[g.Value] = ()) -> Grouping:
    """The units of `graph` on a backend; `loop` is the one that the graph is the body of, `steady` are inputs that stay
    the same in many runs."""
    return _GraphFuser(backend, loop, steady).fuse(graph)


def resume(grouping: Grouping, backend: Backend) -> _GraphFuser:
    """A fuser that can put further items into the groups of `grouping`."""
    fuser = _GraphFuser(backend)
    fuser.units, fuser.sources, fuser.slots = grouping.units, grouping.sources, grouping.slots
    fuser.apart, fuser.moving = grouping.apart, False
    for unit in grouping.units:
        if isinstance(unit, Group):
            fuser.spaces.setdefault(unit.space, []).append(unit)
            for value in (*unit.full, *unit.outer, *[s.base for s in unit.into.values()]):
                fuser.made_at[value] = unit.at
        else:
            for value in unit.outs:
                fuser.made_at[value] = unit.at
    return fuser


class _GraphFuser:
    def __init__(self, backend: Backend, loop: loop_info.LoopInfo | None = None,
                 steady: Collection[g.Value] = ()) -> None:
        self.backend, self.loop, self.steady = backend, loop or loop_info.LoopInfo(), steady
        self.packed: set[g.Value] = set()  # worth packing once for many runs
        self.pieces: dict[g.Value, Source] = {}  # copies of a piece of another value
        self.slots: dict[g.Value, Slot] = {}
        self.changing: set[g.Value] = set()  # values that may be changed in place
        self.checked: set[g.Node] = set()  # writers of items whose places have been checked
        self.within: set[tuple[g.Value, DimLike, DimLike, DimLike]] = set()  # indices that have been checked
        self.reported: set[Memory] = set()  # what messages of failed checks read: in memory of its own, never in a slot
        self.units: list[Group | Single] = []  # _MOVED where a group was that moved
        self.sources: dict[g.Value, Source] = {}
        self.made_at: dict[g.Value, int] = {}
        self.spaces: dict[Shape, list[Group]] = {}
        self.moving = True  # whether groups may still move behind others
        self.orders: dict[g.Value, tuple[int, ...]] = {}  # in which values are wanted
        self.apart: list[Apart] = []
        self.refusal: _Refusal = ("", ())  # why an item could not be in the group tried last

    def fuse(self, graph: g.Graph) -> Grouping:
        for value in graph.inputs:
            self.own(value, -1)
        self.changing = slots.changed_in_place(graph)
        slots.checked_first(self)
        self.orders = _orders(graph)
        for node in graph.nodes:
            self.node(node)
        units = [unit for unit in self.units if unit is not _MOVED]
        units = updates.early(graph, units, {v for slot in self.slots.values() for v in (slot.base, slot.index)})
        for at, unit in enumerate(units):
            unit.at = at
        return Grouping(units, self.sources, self.slots, self.apart, self.packed, self.pieces)

    def own(self, value: g.Value, at: int) -> None:
        """`value` has memory of its own."""
        self.sources[value] = Source(value, contiguous(value.dims))
        self.made_at[value] = at

    def node(self, node: g.Node) -> None:
        op = node.op
        if op in (g.CONSTANT, g.SIZE):
            self.own(node.outputs[0], -1)
        elif isinstance(op, g.Construct):
            self.single(node)
        elif op.view is not None:
            self.view(node, op)
        elif op.body is not None:
            shape = node.outputs[0].dims
            sources = [Source(s.base, s.layout.broadcast_to(shape)) for s in self.inputs(node)]
            self.place(FusionItem(op.name, sources, node.outputs, node.attrs, op.body, None, node))
        elif op.reduction is not None:
            self.reduce(node, op)
        else:
            self.single(node)

    def inputs(self, node: g.Node) -> list[Source]:
        return [self.sources[v] for v in node.inputs]

    def single(self, node: g.Node) -> None:
        sources = self.inputs(node)
        if node.regions:
            unseen = loop_info.analyse(node).filled if node.op is g.WHILE else ()
            sources = [self.nowhere(s) if n in unseen else self.in_memory(s) for n, s in enumerate(sources)]
        lower = None if node.regions else self.backend.lowered(node)
        if lower is None:
            self.unit(node, sources, node.outputs)
        else:
            lower(PlanPlacer(self, node))

    def unit(self, node: g.Node, sources: list[Source], outs: list[g.Value],
             runs: Sequence[Run] = ()) -> None:
        """A unit that is no group; its results have memory of their own."""
        unit = Single(len(self.units), node, sources, outs, list(runs))
        self.units.append(unit)
        self.reported.update(w.value for run in runs if run.detail is not None for w, _ in run.detail.arrays)
        self.note_reads(unit, sources)
        for s in sources:
            if self.made_at.get(s.base, -1) >= 0:
                self.apart.append(Apart(s.base, unit, "{} reads whole operands", (node.op.name,)))
        for value in outs:
            self.own(value, unit.at)

    def absorb(self, group: Group, sources: Sequence[Source]) -> None:
        """Takes over elementwise groups of the same space that make operands and that nobody else reads."""
        if not self.moving or group.into:
            return
        for s in sources:
            at = self.made_at.get(s.base, -1)
            other = self.units[at] if at >= 0 else None
            if not isinstance(other, Group) or other is group or other.axes is not None or other.read or other.into or \
                    other.space != group.space or len(other.items) + len(group.items) >= _LIMIT or \
                    not all(_walks(t.layout, group.space) for t in sources if t.base in other.full):
                continue
            group.items = other.items + group.items
            group.full = {**other.full, **group.full}
            group.reads |= other.reads
            self.units[at] = _MOVED
            self.spaces[other.space].remove(other)
            for value in other.full:
                self.made_at[value] = group.at

    def note_reads(self, reader: Group | Single, sources: Sequence[Source]) -> None:
        """Notes in the groups that make operands that somebody else reads them."""
        for s in sources:
            at = self.made_at.get(s.base, -1)
            maker = self.units[at] if at >= 0 else None
            if isinstance(maker, Group) and maker is not reader:
                maker.read = True

    @staticmethod
    def nowhere(source: Source) -> Source:
        """The source of an operand whose dtype and shape are read, and never its elements."""
        return Source(g.Value(source.layout.shape, source.base.dtype), contiguous(source.layout.shape))

    def in_memory(self, source: Source) -> Source:
        """`source` itself where it is all of a value's memory, row-major, else a copy of it."""
        whole = source.layout.is_contiguous() and dm.numel(source.layout.shape) == dm.numel(source.base.dims)
        if whole and not is_inline(source.base):
            return source
        copy = g.Value(source.layout.shape, source.base.dtype)
        self.place(FusionItem("copy", [source], [copy], {}, lambda s, x: x, None, None))
        if source.layout.is_dense():
            self.pieces[copy] = source
        return self.sources[copy]

    def view(self, node: g.Node, op: Op) -> None:
        source, out = self.sources[node.inputs[0]], node.outputs[0]
        try:
            layout = self.viewed(op, node, source.layout)
        except NotAView:
            copy = g.Value(source.layout.shape, source.base.dtype)
            self.place(FusionItem("copy", [source], [copy], {}, lambda s, x: x, None, node))
            source = self.sources[copy]
            layout = self.viewed(op, node, source.layout)
        self.sources[out] = Source(source.base, layout)

    @staticmethod
    def viewed(op: Op, node: g.Node, layout: Layout) -> Layout:
        view = op.view(layout, **node.attrs)  # type: ignore[misc]
        return Layout(node.outputs[0].dims, view.strides, view.offset)

    def reduce(self, node: g.Node, op: Op) -> None:
        attrs = {k: v for k, v in node.attrs.items() if k not in ("axis", "keepdims")}
        rank, axis = len(node.inputs[0].dims), node.attrs["axis"]
        chosen = range(rank) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        axes = tuple(sorted({a % rank for a in chosen})) if rank else ()
        item = FusionItem(op.name, self.inputs(node), node.outputs, attrs, None, op.reduction, node)
        self.place(item, axes)

    # -- joining ----------------------------------------------------------------------------------
    def place(self, item: FusionItem, axes: tuple[int, ...] | None = None, after: int = -1) -> None:
        """Puts an item into a group; `axes` are those that it reduces.

        Args:
            after: number of a unit that must have run before, whatever the operands are.
        """
        space = item.sources[0].layout.shape if item.reduction is not None else item.outs[0].dims
        last = max((self.made_at.get(s.base, -1) for s in item.sources), default=-1)
        if after >= last:  # a group that makes an operand would do, one that must come before would not
            last = after
        makers = [(s.base, at) for s in item.sources if (at := self.made_at.get(s.base, -1)) >= 0]
        units = {at: self.units[at] for _, at in makers}
        refusals: dict[int, _Refusal] = {}
        self.settle(item, axes, space, last, after, refusals)
        latest = next((base for base, at in makers if at == last), None)
        for base, at in makers:
            text, about = refusals.get(at) or _not_offered(units[at], at, last, latest)
            self.apart.append(Apart(base, item, text, about))

    def settle(self, item: FusionItem, axes: tuple[int, ...] | None, space: Shape, last: int, after: int,
               refusals: dict[int, _Refusal]) -> None:
        """Finds the group for an item, and notes which units could not take it, and why."""
        for group in self.offered(space, last, item):
            if group.at <= after:
                continue
            if self.join(group, item, axes):
                return
            refusals[group.at] = self.refusal
        if after < 0 and self.moving and self.behind(item, axes):
            return
        group = Group(len(self.units), space)
        self.units.append(group)
        self.spaces.setdefault(space, []).append(group)
        if not self.join(group, item, axes):
            raise AssertionError(f"{item.name} does not fit a group of its own")

    def behind(self, item: FusionItem, axes: tuple[int, ...] | None) -> bool:
        """Puts an item into a group that makes one of its operands, which moves behind the others' for that.

        So an update waits for a number that is computed late. Only a group that nobody reads yet can move.
        """
        for source in item.sources:
            at = self.made_at.get(source.base, -1)
            group = self.units[at] if at >= 0 else None
            if not isinstance(group, Group) or group.read or group.into:
                continue
            group.at = len(self.units)
            self.units.append(group)
            if self.join(group, item, axes):
                self.units[at] = _MOVED
                for value in (*group.full, *group.outer):
                    self.made_at[value] = group.at
                return True
            self.units.pop()
            group.at = at
        return False

    def offered(self, space: Shape, last: int, item: FusionItem) -> list[Group]:
        groups = []
        if last >= 0:
            unit = self.units[last]
            if isinstance(unit, Group):
                groups.append(unit)
        reads = {s.base for s in item.sources if not is_inline(s.base)}
        for group in reversed(self.spaces.get(space, [])[-_NEAR:]):
            if group.at > last and not reads.isdisjoint(group.reads):
                groups.append(group)
        return groups

    def refuse(self, text: str, *about: About) -> bool:
        """Notes why an item cannot be in a group; gives False."""
        self.refusal = text, about
        return False

    def join(self, group: Group, item: FusionItem, axes: tuple[int, ...] | None) -> bool:
        """Puts `item` into `group` if it may be there, else notes why not."""
        if len(group.items) >= _LIMIT:
            return self.refuse("it has as many ops as a kernel may, {}", _LIMIT)
        if item.reduction is not None:
            return self.join_reduction(group, item, axes or ())
        dims = item.outs[0].dims
        if item.into is not None and group.axes is not None:
            return self.refuse("a kernel that reduces writes no parts of larger arrays")
        if dims != group.space:
            self.refuse("the next loops over {}, this over {}", dims, group.space)
        if dims == group.space and (first := self.full_pass(group, item)) is not None:
            for value in item.outs:
                group.full[value] = first
            self.enter(group, item)
            return True
        if item.into is not None:
            return False
        if group.rowwise and _same(dims, group.unreduced) and (last := self.outer_pass(group, item)) is not None:
            for value in item.outs:
                group.outer.add(value)
                group.passes[value] = last
            self.enter(group, item)
            return True
        return False

    def join_reduction(self, group: Group, item: FusionItem, axes: tuple[int, ...]) -> bool:
        space = item.sources[0].layout.shape
        if group.into:
            return self.refuse("a kernel that writes parts of larger arrays does not reduce")
        if space != group.space:
            return self.refuse("the next loops over {}, this over {}", space, group.space)
        if group.axes is not None and group.axes != axes:
            return self.refuse("the next reduces axes {}, this {}", axes, group.axes)
        first = self.full_pass(group, item)
        if first is None:
            return False
        if first and not by_rows(space, axes):
            return self.refuse("a reduction ends before its result is used")
        if group.axes is None and not axes:
            return (not group.items or self.refuse("the next reduces no axes")) and self.trivial(group, item)
        group.axes = axes
        for value in item.outs:
            group.outer.add(value)
            group.passes[value] = first + 1
        self.enter(group, item)
        return True

    def trivial(self, group: Group, item: FusionItem) -> bool:
        """A reduction of no axes: of each element alone, in a group of its own."""
        group.axes = ()
        for value in item.outs:
            group.outer.add(value)
            group.passes[value] = 1
        self.enter(group, item)
        return True

    def full_pass(self, group: Group, item: FusionItem) -> int | None:
        """The pass in which an item over the whole space can run; None where it cannot be in the group."""
        first = 0
        for source in item.sources:
            base = source.base
            if base in group.full:
                if not _walks(source.layout, group.space):
                    self.refuse("the next reads it in another order")
                    return None
                first = max(first, group.full[base])
            elif base in group.outer:
                if not group.rowwise or not self.spread(group, source.layout):
                    self.refuse("the next does not repeat a row's result along the row" if group.rowwise else
                                "a reduction ends before its result is used")
                    return None
                first = max(first, group.passes[base])
            elif self.made_at.get(base, -1) >= group.at:
                self.refuse("the next also reads what {} gives, which is made later", base)
                return None
        return first

    def outer_pass(self, group: Group, item: FusionItem) -> int | None:
        """The pass after which an item with one element for a row can run; None where it cannot be in the group."""
        last = 0
        for source in item.sources:
            base = source.base
            if base in group.full:
                self.refuse("the next has a value for a row, and reads one for each element")
                return None
            if base in group.outer:
                if not source.layout.is_contiguous() or not _same(source.layout.shape, group.unreduced):
                    self.refuse("the next reads it in another order")
                    return None
                last = max(last, group.passes[base])
            elif self.made_at.get(base, -1) >= group.at:
                self.refuse("the next also reads what {} gives, which is made later", base)
                return None
        return last

    @staticmethod
    def spread(group: Group, layout: Layout) -> bool:
        """Whether `layout`, over the space, repeats a row's one value along the row."""
        assert group.axes is not None
        first = len(group.space) - len(group.axes)
        want = contiguous(group.space[:first])
        strides = zip(layout.strides, (*want.strides, *[0] * len(group.axes)), group.space, strict=True)
        return layout.offset == 0 and layout.shape == group.space and all(
            a == b or dm.is_exactly(d, 1) for a, b, d in strides)

    def enter(self, group: Group, item: FusionItem) -> None:
        self.absorb(group, item.sources)
        group.items.append(item)
        group.reads.update(s.base for s in item.sources)
        self.note_reads(group, item.sources)
        for value in item.outs:
            self.own(value, group.at)
        if item.into is not None:
            group.into[item.outs[0]] = item.into


def _not_offered(unit: Group | Single, at: int, last: int, latest: g.Value | None) -> _Refusal:
    """Why an item was not offered to a unit that makes an operand; `latest` is the operand that is made last."""
    if not isinstance(unit, Group):
        return "{} gives its result as a whole", (unit.node.op.name,)
    if at < last and latest is not None:
        return "the next also reads what {} gives, which is made later", (latest,)
    return "the next has to wait for a kernel in between", ()


def _orders(graph: g.Graph) -> dict[g.Value, tuple[int, ...]]:
    """The orders of axes in which values are wanted that nothing but one transpose reads."""
    uses: dict[g.Value, int] = dict.fromkeys(graph.outputs, 2)
    turned: dict[g.Value, tuple[int, ...]] = {}
    for node in graph.nodes:
        for value in node.inputs:
            uses[value] = uses.get(value, 0) + 1
        if node.op.name == "transpose":
            turned[node.inputs[0]] = order_of(node)
    return {value: order for value, order in turned.items() if uses[value] == 1}


def _walks(layout: Layout, space: Sequence[DimLike]) -> bool:
    """Whether `layout` goes over the elements of `space` in their order."""
    return layout.shape == tuple(space) and layout.is_contiguous()


def _same(a: Sequence[DimLike], b: Sequence[DimLike]) -> bool:
    """Whether two shapes differ in axes of size 1 at most."""
    return [d for d in a if not dm.is_exactly(d, 1)] == [d for d in b if not dm.is_exactly(d, 1)]
