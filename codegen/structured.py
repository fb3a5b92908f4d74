"""Lowerings of structured ops: which kernels of `codegen/kernels` a node becomes, and what they get.

The kernels are those of eager execution, so results agree to the bit. Here are the ops whose kernels need no plan of
the runtime's; windows and random draws are in `structured_windows.py`, matrix products and convolutions in
`runtime/lowerings.py`. What a lowering may do to a plan is `placer.py`'s affair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike
from twofold.ir.dtypes import DType

from . import slots
from .backend import Backend, lowering
from .kernels import indexing, scan, segment, softmax, stacks
from .layout import Layout, contiguous
from .operands import Argument, Detail, Rows, Run, Within, Work
from .placer import Placer, moved_back
from .plan_placer import PlanPlacer
from .units import Source

__all__ = ["install", "place_softmax", "place_cross_entropy"]

_WORK = 16  # of an element of a softmax, in simple operations
_PLAIN = {1: dt.uint8, 2: dt.uint16, 4: dt.uint32, 8: dt.uint64, 16: dt.uint64}


def install() -> None:
    """Does nothing: importing the module registers its lowerings."""


# -- softmax ------------------------------------------------------------------------------------------
@lowering("softmax", "log_softmax")
def _softmax(p: Placer) -> None:
    place_softmax(p, by_team=False)


def place_softmax(p: Placer, by_team: bool) -> None:
    """Places a softmax or its logarithm, a row a thread or a team of threads."""
    compute, axis, rank = p.out.dtype.compute, p.attrs["axis"], len(p.out.dims)
    x = p.dense(p.last(p.operands[0], axis), compute)
    out = p.target(compute, x.layout.shape) if axis % rank == rank - 1 else g.Value(x.layout.shape, compute)
    *rows, length = x.layout.shape
    kernel = p.kernel(softmax.rows, compute, p.node.op.name == "log_softmax", *_teams(by_team))
    count, spans = dm.numel(rows), {out: length} if x.layout.offset != 0 else {out: length, x.base: length}
    how = () if by_team else (Rows(count, 1, 1, spans),)
    p.fill([out], Run(kernel, [out, p.at(x), length], count, length * _WORK, rows=how))
    p.give(out, contiguous(out.dims).transpose(moved_back(rank, axis)))


@lowering("sparse_cross_entropy")
def _cross_entropy(p: Placer) -> None:
    place_cross_entropy(p, by_team=False)


def place_cross_entropy(p: Placer, by_team: bool) -> None:
    """Places cross entropies with labels that are numbers of classes, a row a thread or a team of threads."""
    compute = p.out.dtype.compute
    x, labels = p.dense(p.operands[0], compute), p.dense(p.operands[1])
    out, length = p.target(compute), x.layout.shape[-1]
    kernel = p.kernel(softmax.cross_entropy, compute, labels.base.dtype, *_teams(by_team))
    p.fill([out], Run(kernel, [out, p.at(x), p.at(labels), length], dm.numel(out.dims), length * _WORK))
    p.give(out)


def _teams(by_team: bool) -> tuple[bool, ...]:
    """What kernels of softmax take for that after all else, by which those that are compiled are known."""
    return (True,) if by_team else ()


# -- gather and scatter -------------------------------------------------------------------------------
def _units(dtype: DType) -> tuple[DType, int]:
    """A plain type that moves elements of `dtype`, and how many of it make one."""
    return _PLAIN[dtype.size], 2 if dtype.size == 16 else 1


def _index_detail(indices: Source, size: DimLike) -> Detail:
    return Detail("index", ((Within(indices.base, indices.layout.offset), indices.layout.shape),), (size,))


def _axis_sizes(p: Placer, dims: Sequence[DimLike], indices: Sequence[DimLike]) -> tuple[DimLike, ...]:
    """Of a tensor that is indexed along an axis: batch, outer, axis and row; and the number of indices of a batch."""
    axis = p.attrs["axis"] % len(dims)
    batch = p.attrs["batch_dims"] % (len(indices) + 1)
    return (dm.numel(dims[:batch]), dm.numel(dims[batch:axis]), dims[axis], dm.numel(dims[axis + 1:]),
            dm.numel(indices[batch:]))


def _gather_run(p: Placer, x: Source, index: Argument, index_type: DType, sizes: Sequence[DimLike],
                detail: Detail | None) -> Run:
    lead, outer, size, row, count = sizes
    unit, factor = _units(x.base.dtype)
    groups, row = lead * outer, row * factor
    flat = not isinstance(groups, Dim) and groups == 1
    safe = not isinstance(size, Dim) and size > 0 and flat  # index 0 exists
    single = safe and not isinstance(row, Dim) and row == 1
    kernel = p.kernel(indexing.gather_rows, unit, index_type, flat, single)
    return Run(kernel, [p.out, p.at(x), index, outer, size, count, row], groups * count, row + 1, detail)


@lowering("gather")
def _gather(p: Placer) -> None:
    if isinstance(p, PlanPlacer) and slots.read(p):
        return
    x, indices = p.dense(p.operands[0]), p.index(p.operands[1])
    sizes = _axis_sizes(p, x.layout.shape, indices.layout.shape)
    p.fill([p.out], _gather_run(p, x, p.at(indices), indices.base.dtype, sizes, _index_detail(indices, sizes[2])))


@lowering("gather_nd")
def _gather_nd(p: Placer) -> None:
    x, indices = p.dense(p.operands[0]), p.index(p.operands[1])
    dims, shape = x.layout.shape, indices.layout.shape
    batch = p.attrs["batch_dims"] % max(len(shape), 1)
    inner = batch + shape[-1]
    places, linear = _linear(p, indices, dims[batch:inner])
    sizes = (dm.numel(dims[:batch]), 1, dm.numel(dims[batch:inner]), dm.numel(dims[inner:]), dm.numel(shape[batch:-1]))
    p.fill([p.out], linear, _gather_run(p, x, places, dt.int64, sizes, None))


def _linear(p: Placer, indices: Source, dims: Sequence[DimLike]) -> tuple[Work, Run]:
    """The row-major numbers of the places that `indices` names in a box of `dims`, and what computes them."""
    *shape, depth = indices.layout.shape
    count = dm.numel(shape)
    places = Work(dt.int64, count)
    detail = Detail("coordinates", ((Within(indices.base, indices.layout.offset), indices.layout.shape),), tuple(dims))
    kernel = p.kernel(indexing.linear_index, indices.base.dtype)
    return places, Run(kernel, [places, p.at(indices), depth, *dims], count, depth + 1, detail)


def _joins(p: Placer, start: Callable[[DType], g.Value], updates: Source, mode: str,
           runs: Callable[[], tuple[list[Run], Argument, DType]], sizes: Sequence[DimLike],
           detail: Detail | None) -> None:
    """Joins updates into what `start` gives. 16-bit floats are joined in float32, save where nothing is computed."""
    lead, outer, size, row, count = sizes
    plain = mode == "update"
    dtype = p.out.dtype if plain else p.out.dtype.compute
    values = p.dense(updates, dtype)
    whole = start(dtype)
    before, index, index_type = runs()
    unit, factor = _units(dtype) if plain else (dtype, 1)
    kernel = p.kernel(indexing.scatter_rows, unit, index_type, mode)
    arguments: list[Argument] = [whole, p.at(values), index, outer, size, count, row * factor]
    p.change(whole, *before, Run(kernel, arguments, lead * outer * row * factor, count, detail))
    p.give(whole)


@lowering("scatter_add")
def _scatter_add(p: Placer) -> None:
    base, indices, updates = p.operands
    index = p.index(indices)
    sizes = _axis_sizes(p, base.layout.shape, indices.layout.shape)
    _joins(p, lambda dtype: p.carry(base, dtype), updates, "add", lambda: ([], p.at(index), index.base.dtype), sizes,
           _index_detail(index, sizes[2]))


def _joins_at(p: Placer, start: Callable[[DType], g.Value], indices: Source, updates: Source, mode: str) -> None:
    index = p.index(indices)
    shape, dims = index.layout.shape, p.out.dims
    depth = shape[-1]
    sizes = (1, 1, dm.numel(dims[:depth]), dm.numel(dims[depth:]), dm.numel(shape[:-1]))

    def before() -> tuple[list[Run], Argument, DType]:
        places, linear = _linear(p, index, dims[:depth])
        return [linear], places, dt.int64
    _joins(p, start, updates, mode, before, sizes, None)


@lowering("scatter_nd")
def _scatter_nd(p: Placer) -> None:
    indices, updates = p.operands
    _joins_at(p, p.zeros, indices, updates, "add")


@lowering("tensor_scatter")
def _tensor_scatter(p: Placer) -> None:
    if isinstance(p, PlanPlacer) and slots.write(p):
        return
    x, indices, updates = p.operands
    _joins_at(p, lambda dtype: p.carry(x, dtype), indices, updates, p.attrs["mode"])


@lowering("range", handles=lambda node, backend: node.attrs["size"] is not None)
def _range(p: Placer) -> None:
    first, _, delta = p.operands
    first, delta = p.dense(first), p.dense(delta)
    kernel = p.kernel(indexing.ramp, p.out.dtype)
    p.fill([p.out], Run(kernel, [p.out, p.at(first), p.at(delta)], dm.numel(p.out.dims), 1))


# -- results put together from parts ------------------------------------------------------------------
@lowering("concat")
def _concat(p: Placer) -> None:
    whole = contiguous(p.out.dims)
    axis = p.attrs["axis"] % len(p.out.dims)
    begin: DimLike = 0
    for source in p.operands:
        size = source.layout.shape[axis]
        p.part(p.out, _box(whole, axis, begin, size), source)
        begin = begin + size


def _box(layout: Layout, axis: int, begin: DimLike, size: DimLike) -> Layout:
    """The part of `layout` that has `size` elements from `begin` on along `axis`."""
    shape = (*layout.shape[:axis], size, *layout.shape[axis + 1:])
    return Layout(shape, layout.strides, layout.offset + begin * layout.strides[axis])


@lowering("pad")
def _pad(p: Placer) -> None:
    x, value = p.operands
    inside = contiguous(p.out.dims)
    for axis, ((before, after), size) in enumerate(zip(p.attrs["paddings"], x.layout.shape, strict=True)):
        for begin, width in ((0, before), (before + size, after)):
            if isinstance(width, Dim) or width:
                p.part(p.out, _box(inside, axis, begin, width), value)
        inside = _box(inside, axis, before, size)
    p.part(p.out, inside, x)


@lowering("strided_slice_assign")
def _assign(p: Placer) -> None:
    x, value = p.operands
    whole = p.carry(x)
    key = (*[slice(*e) if type(e) is tuple else e for e in p.attrs["spec"]], Ellipsis)
    p.part(whole, contiguous(p.out.dims)[key], value, after=whole)


# -- stacks of loops ----------------------------------------------------------------------------------
def _is_full(node: g.Node, backend: Backend) -> bool:
    """Whether a stack has its full length. One of unknown length that is added to may have to grow all the same."""
    (length,), (after,) = node.inputs[0].dims, node.outputs[0].dims
    return length == after and not (isinstance(after, Dim) and node.attrs["add"])


@lowering("push", handles=_is_full)
def _push(p: Placer) -> None:
    """A stack of full length; one that has to grow is Python's."""
    if isinstance(p, PlanPlacer) and slots.write(p):
        return
    _, value, at = p.operands
    add, dtype = p.attrs["add"], p.out.dtype
    unit = dtype if add or dtype.size > 8 else _PLAIN[dtype.size]
    value, at = p.dense(value), p.dense(at)
    whole = p.carry(p.operands[0])
    count = dm.numel(value.layout.shape)
    p.change(whole, Run(stacks.push(unit, add), [whole, p.at(value), p.at(at), dm.numel(p.out.dims)], count, 1))


@lowering("pop")
def _pop(p: Placer) -> None:
    if isinstance(p, PlanPlacer) and slots.read_stack(p):
        return
    stack, at = p.dense(p.operands[0]), p.dense(p.operands[1])
    dtype = p.out.dtype
    unit = dtype if dtype.size > 8 else _PLAIN[dtype.size]
    arguments: list[Argument] = [p.out, p.at(stack), p.at(at), dm.numel(stack.layout.shape)]
    p.fill([p.out], Run(stacks.pop(unit), arguments, dm.numel(p.out.dims), 1))


# -- scans and segments -------------------------------------------------------------------------------
@lowering(*scan.SCANS)
def _scan(p: Placer) -> None:
    name, shape = p.node.op.name, p.out.dims
    axis = p.attrs["axis"] % len(shape)
    length, inner, outer = shape[axis], dm.numel(shape[axis + 1:]), dm.numel(shape[:axis])
    alone = not isinstance(inner, Dim) and inner == 1
    flags = bool(p.attrs.get("exclusive", False)), bool(p.attrs["reverse"])
    kernel = p.kernel(scan.lines if alone else scan.tiles, name, p.out.dtype, *flags)
    operands = [p.dense(s) for s in p.operands]
    total = outer if alone else outer * dm.ceil_div(inner, scan.TILE)
    weight = length * p.weight(kernel) * (1 if alone else scan.TILE)
    arguments: list[Argument] = [p.out, *[p.at(s) for s in operands], length, inner]
    p.fill([p.out], Run(kernel, arguments, total, weight))


@lowering(*[f"unsorted_segment_{kind}" for kind in segment.COMBINE])
def _segments(p: Placer) -> None:
    kind = p.node.op.name.removeprefix("unsorted_segment_")
    data, ids = (p.dense(s) for s in p.operands)
    dtype, rows = p.out.dtype, dm.numel(ids.layout.shape)
    segments, columns = p.out.dims[0], dm.numel(p.out.dims[1:])
    kernel = p.kernel(segment.join, kind, dtype, ids.base.dtype, False, False)
    acc = p.out if dtype.compute is dtype else Work(dtype.compute, dm.numel(p.out.dims))
    weight = (rows + segments) * p.weight(kernel) * (columns if not isinstance(columns, Dim) and
                                                     columns < segment.TILE else segment.TILE)
    arguments = [p.out, acc, p.at(data), p.at(ids), rows, segments, columns]
    p.fill([p.out], Run(kernel, arguments, dm.ceil_div(columns, segment.TILE), weight))
