"""Lowerings of structured ops: which kernels of `codegen/kernels` a node becomes, and what they get.

The kernels are those of eager execution, so results agree to the bit. Here are the ops whose kernels need no plan of
the runtime's; windows are in `structured_windows.py`, random draws in `structured_draws.py`, matrix products and
convolutions in `runtime/lowerings.py`. What a lowering may do to a plan is `placer.py`'s affair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.data_class import data_class
from twofold.ir.dims import Dim, DimLike
from twofold.ir.dtypes import DType

from . import slots
from .backend import Backend, lowering
from .kernels import equal, indexing, order, scan, segment, softmax, sparse, stacks
from .layout import Layout, contiguous
from .operands import Argument, Detail, Rows, Run, Within, Work
from .placer import Placer, moved_back
from .plan_placer import PlanPlacer
from .units import Source

__all__ = ["install", "place_softmax", "place_cross_entropy", "Indexed", "place_gather", "place_scatter", "place_order",
           "place_sparse_dots"]

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
    p.is_checked(labels, length, now=True)
    kernel = p.kernel(softmax.cross_entropy, compute, labels.base.dtype, *_teams(by_team))
    p.fill([out], Run(kernel, [out, p.at(x), p.at(labels), length], dm.numel(out.dims), length * _WORK))
    p.give(out)


def _teams(by_team: bool) -> tuple[bool, ...]:
    """What kernels of rows take for that after all else, by which those that are compiled are known."""
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


@data_class(frozen=True, eq=False)
class Indexed:
    """What a gather reads, or a scatter writes: `memory` is [lead, outer, size, row] and its slices [lead, outer,
    count, row], and every group of `outer` has `count` indices.

    Attributes:
        memory: x of a gather, the result of a scatter.
        slices: the result of a gather, the updates of a scatter.
        index, index_type: where the indices are, and of which type.
        unit: of the elements that move; for a gather and for updates a plain type of their size.
        sizes: lead, outer, size, row in units, count.
        detail: what a failed check tells.
        indices: the operand that the indices are, where it is one.
    """

    memory: Argument
    slices: Argument
    index: Argument
    index_type: DType
    unit: DType
    sizes: tuple[DimLike, DimLike, DimLike, DimLike, DimLike]
    detail: Detail | None
    indices: Source | None = None


def _gathered(p: Placer, of: Indexed) -> list[Run]:
    lead, outer, size, row, count = of.sizes
    groups = lead * outer
    flat = dm.is_exactly(groups, 1)
    single = dm.is_exactly(row, 1)
    whole = not isinstance(outer, Dim) and not isinstance(row, Dim) and bool(outer) and bool(row)
    known = of.indices is not None and p.is_checked(of.indices, size, now=whole)  # empty rows need no check
    kernel = p.kernel(indexing.gather_rows, of.unit, of.index_type, flat, single, *(True,) * known)
    arguments = [of.slices, of.memory, of.index, outer, size, count, row]
    return [Run(kernel, arguments, groups * count, row + 1, of.detail)]


@lowering("gather", "gather_nd")
def _gather(p: Placer) -> None:
    place_gather(p, _gathered)


def place_gather(p: Placer, runs: Callable[[Placer, Indexed], list[Run]]) -> None:
    """Places a gather, by the runs that a backend has for it."""
    if p.node.op.name == "gather" and isinstance(p, PlanPlacer) and slots.read(p):
        return
    x, indices = p.dense(p.operands[0]), p.index(p.operands[1])
    dims, shape = x.layout.shape, indices.layout.shape
    unit, factor = _units(x.base.dtype)
    before: list[Run] = []
    index: Argument = p.at(indices)
    index_type, detail, source = indices.base.dtype, None, None
    if p.node.op.name == "gather":
        lead, outer, size, row, count = _axis_sizes(p, dims, shape)
        detail, source = _index_detail(indices, size), indices
    else:
        batch = p.attrs["batch_dims"] % max(len(shape), 1)
        inner = batch + shape[-1]
        index, linear = _linear(p, indices, dims[batch:inner])
        before, index_type = [linear], dt.int64
        lead, outer, size, row, count = (dm.numel(dims[:batch]), 1, dm.numel(dims[batch:inner]), dm.numel(dims[inner:]),
                                         dm.numel(shape[batch:-1]))
    of = Indexed(p.at(x), p.out, index, index_type, unit, (lead, outer, size, row * factor, count), detail, source)
    p.fill([p.out], *before, *runs(p, of))


def _linear(p: Placer, indices: Source, dims: Sequence[DimLike]) -> tuple[Work, Run]:
    """The row-major numbers of the places that `indices` names in a box of `dims`, and what computes them."""
    count = dm.numel(indices.layout.shape[:-1])
    places = Work(dt.int64, count)
    kernel = p.kernel(indexing.linear_index, indices.base.dtype, len(dims))
    return places, Run(kernel, [places, p.at(indices), *dims], count, len(dims) + 1, _coordinates(indices, dims))


def _coordinates(indices: Source, dims: Sequence[DimLike]) -> Detail:
    return Detail("coordinates", ((Within(indices.base, indices.layout.offset), indices.layout.shape),), tuple(dims))


def _scattered(p: Placer, of: Indexed, mode: str) -> list[Run]:
    lead, outer, size, row, count = of.sizes
    kernel = p.kernel(indexing.scatter_rows, of.unit, of.index_type, mode)
    arguments = [of.memory, of.slices, of.index, outer, size, count, row]
    return [Run(kernel, arguments, lead * outer * row, count)]


@lowering("scatter_add", "scatter_nd", "tensor_scatter")
def _scatter(p: Placer) -> None:
    place_scatter(p, _scattered, checked_first=True)


def place_scatter(p: Placer, runs: Callable[[Placer, Indexed, str], list[Run]], checked_first: bool) -> None:
    """Places a scatter, by the runs that a backend has for it. 16-bit floats are joined in float32, save where nothing
    is computed.

    Args:
        checked_first: whether indices are checked by a run before, after which the runs cannot fail, so that they may
            write to memory that must not change if one is wrong; else the runs check them.
    """
    name = p.node.op.name
    if name == "tensor_scatter" and isinstance(p, PlanPlacer) and slots.write(p):
        return
    indices, updates = p.operands if name == "scatter_nd" else p.operands[1:]
    mode = p.attrs["mode"] if name == "tensor_scatter" else "add"
    unit, factor = _units(p.out.dtype) if mode == "update" else (p.out.dtype.compute, 1)
    indices = p.index(indices)
    values = p.dense(updates, p.out.dtype if mode == "update" else unit)
    dtype = values.base.dtype
    before: list[Run] = []
    index: Argument = p.at(indices)
    index_type, detail, dims, shape = indices.base.dtype, None, p.out.dims, indices.layout.shape
    if name == "scatter_add":
        lead, outer, size, row, count = _axis_sizes(p, dims, shape)
        detail = _index_detail(indices, size)
        if checked_first:
            before = _checks(p, indices, lead * count, size, outer * row, detail)
    elif checked_first and shape[-1] == 1:
        lead, outer, size, row, count = 1, 1, dims[0], dm.numel(dims[1:]), dm.numel(shape[:-1])
        before = _checks(p, indices, count, size, 1, _coordinates(indices, dims[:1]))
    else:
        depth = shape[-1]
        index, linear = _linear(p, indices, dims[:depth])
        before, index_type = [linear], dt.int64
        lead, outer, size, row, count = 1, 1, dm.numel(dims[:depth]), dm.numel(dims[depth:]), dm.numel(shape[:-1])
    if checked_first and before:
        p.fill([], *before)
        before = []
    whole = p.zeros(dtype) if name == "scatter_nd" else p.carry(p.operands[0], dtype)
    of = Indexed(whole, p.at(values), index, index_type, unit, (lead, outer, size, row * factor, count), detail)
    p.change(whole, *before, *runs(p, of, mode))
    p.give(whole)


def _checks(p: Placer, indices: Source, count: DimLike, size: DimLike, row: DimLike, detail: Detail) -> list[Run]:
    """What checks indices into an axis of that size, each of which names `row` elements, unless that has been done."""
    if p.is_checked(indices, size, now=not isinstance(row, Dim) and bool(row)):
        return []
    kernel = p.kernel(indexing.indices_within, indices.base.dtype)
    return [Run(kernel, [p.at(indices), size, row], count, 1, detail)]


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
    alone = dm.is_exactly(inner, 1)
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


@lowering("sparse_matmul")
def _sparse_matmul(p: Placer) -> None:
    rows, columns = (p.index(s) for s in p.operands[:2])
    values, dense = (p.dense(s) for s in p.operands[2:])
    (count,), (inner, width), size = values.layout.shape, dense.layout.shape, p.out.dims[0]
    checks = [run for indices, limit in ((rows, size), (columns, inner))
              for run in _checks(p, indices, count, limit, 1, _index_detail(indices, limit))]
    if checks:
        p.fill([], *checks)
    index, blocks = rows.base.dtype, dm.ceil_div(count, sparse.BLOCK)
    flags = Work(dt.int64, blocks)
    order = Run(p.kernel(sparse.ordered, index), [flags, p.at(rows), count], blocks, sparse.BLOCK)
    arguments = [p.out, flags, *map(p.at, (rows, columns, values, dense)), count, blocks, inner, width]
    work = width + dm.ceil_div(count * width, size + 1)  # of a row, whose zeros are written, too
    p.fill([p.out], order, Run(p.kernel(sparse.product, p.out.dtype, index), arguments, size, work))


@lowering("sparse_dots")
def _sparse_dots(p: Placer) -> None:
    place_sparse_dots(p, by_team=False)


def place_sparse_dots(p: Placer, by_team: bool) -> None:
    """Places dot products of pairs of rows, a pair a thread or a team of threads."""
    rows, columns = (p.index(s) for s in p.operands[:2])
    left, right = (p.dense(s) for s in p.operands[2:])
    (count,), (most, width), inner = p.out.dims, left.layout.shape, right.layout.shape[0]
    checks = [run for indices, limit in ((rows, most), (columns, inner))
              for run in _checks(p, indices, count, limit, 1, _index_detail(indices, limit))]
    if checks:
        p.fill([], *checks)
    arguments = [p.out, *map(p.at, (rows, columns, left, right)), most, inner, width]
    kernel = p.kernel(sparse.dots, p.out.dtype, rows.base.dtype, *_teams(by_team))
    p.fill([p.out], Run(kernel, arguments, count, width))


@lowering("first_equal")
def _first_equal(p: Placer) -> None:
    x, (count,) = p.dense(p.operands[0]), p.out.dims
    size = 2 * count + 1
    arguments: list[Argument] = [p.out, Work(dt.int32, size), p.at(x), count, size]
    p.fill([p.out], Run(p.kernel(equal.first, x.base.dtype), arguments, 1, 16 * count))


# -- order --------------------------------------------------------------------------------------------
def place_order(p: Placer, runs: Callable[[Placer, Source, bool, Argument | None], tuple[list[Run], Argument]],
                by_elements: bool) -> None:
    """Places sorting, by the runs that a backend has for it. The processor of this process has none: NumPy sorts.

    Args:
        runs: `runs(p, x, descending, indices)` gives what finds the indices that sort the rows of x, and where these
            are: at `indices`, or in memory of the step's own.
        by_elements: whether ranges of what picks elements count these, rather than rows.
    """
    x = p.dense(p.operands[0])
    name, (values, *places) = p.node.op.name, p.node.outputs
    descending = name == "top_k" or p.attrs["descending"]
    if name == "argsort":
        p.fill([p.out], *runs(p, x, descending, p.out)[0])
        return
    before, indices = runs(p, x, descending, None)
    *rows, count = values.dims
    kernel = p.kernel(order.pick, _units(values.dtype)[0], places[0].dtype if places else None, by_elements)
    arguments = [values, *places, p.at(x), indices, count, x.layout.shape[-1]]
    total, each = (dm.numel(values.dims), 1) if by_elements else (dm.numel(rows), count)
    p.fill([values, *places], *before, Run(kernel, arguments, total, each))
