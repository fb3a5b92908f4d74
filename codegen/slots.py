"""Items of arrays that are used where they lie: reading one in a loop is a view, writing one fills its place.

A slot is memory inside of another value's, at a place that an integer tensor names while the program runs. The entry
computes its address for every kernel that gets it. An index that might be out of range is checked by a kernel of its
own, before anything uses the slot. The lowerings of gather, scatter and stacks ask here first (`read`, `write`); where
they get no slot, they copy. What is known of loops is `loop_info.py`'s.
"""

from __future__ import annotations

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import DimLike

from . import loop_info
from .kernels import checks, indexing, stacks
from .layout import Layout, contiguous
from .operands import Detail, Run, Slot, Within
from .plan_placer import Fuser, PlanPlacer
from .units import Source, is_inline

__all__ = ["changed_in_place", "checked_first", "read", "read_stack", "write"]

_INDEX = (dt.int32, dt.int64)
_CHANGING = ("tensor_scatter", "scatter_add", "scatter_nd", "strided_slice_assign", "push")


def changed_in_place(graph: g.Graph) -> set[g.Value]:
    """Values whose memory a node of `graph` may take over to change it: items of them are copied when they are read."""
    changed = set()
    for node in graph.nodes:
        if node.op.name in _CHANGING and node.inputs:
            value = node.inputs[0]
            while value is not None and value not in changed:
                changed.add(value)
                maker = value.node
                viewed = maker is not None and not isinstance(maker.op, g.Construct) and maker.op.view is not None
                value = maker.inputs[0] if viewed and maker is not None else None  # type: ignore[assignment]
    return changed


# -- reading ------------------------------------------------------------------------------------------
def read(p: PlanPlacer) -> bool:
    """Puts `gather(x, i)` of one item along the first axis into a plan as a view, if it may be one."""
    x, indices = p.operands
    rank = len(p.node.inputs[0].dims)
    if p.node.inputs[1].dims != () or p.attrs["axis"] % max(rank, 1) != 0 or _stays_apart(p, x):
        return False
    if indices.base in p.fuser.slots:
        return False
    size, stride = x.layout.shape[0], x.layout.strides[0]
    rest = Layout(x.layout.shape[1:], x.layout.strides[1:], 0)
    place = p.fuser.loop.place(p.node.inputs[1])
    detail = Detail("index", ((Within(indices.base, indices.layout.offset), ()),), (size,))
    return _seen(p, x, place, size, stride, rest, (dm.numel(rest.shape), indexing.OUT_OF_RANGE, detail))


def read_stack(p: PlanPlacer) -> bool:
    """Puts `pop(stack, at)` into a plan as a view, if it may be one."""
    x, dims = p.operands[0], tuple(p.attrs["dims"])
    if _stays_apart(p, x) or not x.layout.is_dense():
        return False
    limit = x.layout.shape[0] - dm.numel(dims) + 1
    place = p.fuser.loop.place(p.node.inputs[1])
    return _seen(p, x, place, limit, 1, contiguous(dims), (1, stacks.OUTSIDE, None))


def _stays_apart(p: PlanPlacer, x: Source) -> bool:
    """Whether items of `x` must be copied: a node changes `x` in place, or `x` does not lie in memory."""
    return x.base in p.fuser.changing or is_inline(x.base)


def _seen(p: PlanPlacer, x: Source, place: loop_info.Affine, limit: DimLike, stride: DimLike, layout: Layout,
          check: tuple[DimLike, str, Detail | None]) -> bool:
    """Makes the result a view of the memory of `x`; the place, times `stride`, is less than `limit` if all is well, or
    if what is checked, which comes first in `check`, has no elements."""
    fuser = p.fuser
    inside = fuser.loop.within(place, limit - 1)
    if not inside:  # as the graph computes it: a number that overflowed on the way has been noticed
        place = loop_info.Affine(loop_info.root(p.node.inputs[1]), 1, 0)
    index = fuser.sources.get(place.value)
    if index is None or index.base in fuser.slots or place.value.dtype not in _INDEX or is_inline(index.base):
        return False
    seen = g.Value(layout.shape, p.out.dtype, p.node, 0, p.out.name)
    fuser.slots[seen] = Slot(x.base, index.base, index.layout.offset, stride * place.factor,
                             x.layout.offset + stride * place.more)
    fuser.unit(p.node, [index, x], [seen], [] if inside else [_check(index, limit, *check)])
    fuser.sources[p.out] = Source(seen, layout)
    return True


def _check(index: Source, limit: DimLike, row: DimLike, text: str, detail: Detail | None) -> Run:
    arguments = [Within(index.base, index.layout.offset), limit, row]
    return Run(checks.within(index.base.dtype, text), arguments, 1, 1, detail)


# -- writing ------------------------------------------------------------------------------------------
def checked_first(fuser: Fuser) -> None:
    """Checks the indices of items that rounds write in place and that are inputs of the body, before all else."""
    for writer in fuser.loop.writers.values():
        item = loop_info.written(writer)
        assert item is not None
        index, limit = loop_info.root(item.place), _limit(writer, item)
        inside = fuser.loop.within(fuser.loop.place(item.place), limit - 1)
        if index.node is None and index.dtype in _INDEX and not inside:
            source = fuser.sources[index]
            fuser.unit(writer, [source], [], [_check(source, limit, 1, *_words(writer, source, limit))])
            fuser.checked.add(writer)


def _limit(writer: g.Node, item: loop_info.Written) -> DimLike:
    """The first index that is too large."""
    length: DimLike = writer.inputs[0].dims[0]
    return length - item.step + 1 if writer.op is g.PUSH else length


def _words(writer: g.Node, index: Source, limit: DimLike) -> tuple[str, Detail | None]:
    if writer.op is g.PUSH:
        return stacks.OUTSIDE, None
    shape = writer.inputs[1].dims
    return indexing.OUT_OF_RANGE, Detail("coordinates", ((Within(index.base, index.layout.offset), shape),), (limit,))


def write(p: PlanPlacer) -> bool:
    """Lowers a node that writes an item of an array, if it may change the array of a loop in place: the item is
    computed in its slot, or copied there."""
    fuser, writer = p.fuser, p.node
    if writer not in fuser.loop.writers.values():
        return False
    item = loop_info.written(writer)
    assert item is not None
    whole, source, limit = writer.inputs[0], p.operands[item.operand], _limit(writer, item)
    place = fuser.loop.place(item.place)
    ready = fuser.loop.within(place, limit - 1)
    if not ready:
        place, ready = loop_info.Affine(loop_info.root(item.place), 1, 0), writer in fuser.checked
    index = fuser.sources[place.value]
    if place.value.dtype not in _INDEX or is_inline(index.base) or index.base in fuser.slots:
        index, ready = p.index(p.in_memory(index)), False
    stride = 1 if writer.op is g.PUSH else dm.numel(whole.dims[1:])
    slot = Slot(whole, index.base, index.layout.offset, stride * place.factor, stride * place.more)
    if ready and _may_lie_there(p, source, index):
        fuser.slots[source.base] = slot
    else:
        there = g.Value(source.layout.shape, p.out.dtype, writer, 0, p.out.name)
        fuser.slots[there] = slot
        if ready:
            fuser.own(there, fuser.made_at.get(index.base, -1))
        else:
            fuser.unit(writer, [index], [there], [_check(index, limit, 1, *_words(writer, index, limit))])
        p.part(there, contiguous(source.layout.shape), source, after=there)
    fuser.sources[p.out] = Source(whole, contiguous(whole.dims))
    return True


def _may_lie_there(p: PlanPlacer, source: Source, index: Source) -> bool:
    """Whether an item may be made in a slot: it is all of a value that is made after its place is known."""
    base, made_at, layout = source.base, p.fuser.made_at, source.layout
    whole = layout.is_contiguous() and dm.numel(layout.shape) == dm.numel(base.dims) and base.dtype is p.out.dtype
    last = made_at.get(base, -1)
    free = base not in p.fuser.slots and base not in p.fuser.reported
    return whole and free and last > made_at.get(index.base, -1)
