"""Reductions of rows that belong together by a number of their own, and counting into bins."""

from __future__ import annotations

import math
from typing import Any

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import DimLike

from .export_indexing import Target, combined
from .export_table import meaning
from .export_writer import Ref, Writer, require_real

_REDUCTIONS = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}


def _start(kind: str, dtype: dt.DType) -> complex:
    """What a segment begins with."""
    if kind in ("sum", "prod"):
        return int(kind == "prod")
    if dtype.is_floating:
        return -math.inf if kind == "max" else math.inf
    return dtype.min if kind == "max" else dtype.max


def _segments(w: Writer, node: g.Node, data: Ref, ids: Ref, count: Ref, empty: complex) -> Ref:
    """Rows by segment: `count`, a vector of one size, of them. Rows with negative ids go to one more, which is cut off.
    """
    require_real(data.dtype)
    kind = node.op.name.rpartition("_")[2]
    dtype, head = data.dtype, len(node.inputs[1].dims)
    rest = node.inputs[0].dims[head:]
    ids = w.cast(ids, dt.int64)
    outside = w.op("Less", ids, w.constant(0, dt.int64), dtype=dt.bool_)
    ids = w.op("Where", outside, count, ids, dtype=dt.int64)
    rows = w.op("Concat", w.op("Add", count, w.ints([1])), w.shape(rest), axis=0) if rest else \
        w.op("Add", count, w.ints([1]))
    begin = w.op("Expand", w.constant(_start(kind, dtype), dtype), rows)
    result = combined(w, begin, Target(rows, [count], dm.numel(rest)), ids, data, _REDUCTIONS[kind])
    if kind in ("max", "min") and (dtype.is_floating or empty == 0):
        result = _where_empty(w, result, ids, count, len(rest), empty)
    return w.op("Slice", result, w.ints([0]), count, w.ints([0]))


def _where_empty(w: Writer, result: Ref, ids: Ref, count: Ref, rest: int, empty: complex) -> Ref:
    """The result with `empty` in segments that have no rows."""
    none = w.op("Expand", w.constant(0, dt.int64), w.op("Add", count, w.ints([1])))
    flat = w.op("Reshape", ids, w.ints([-1]))
    ones = w.op("Expand", w.constant(1, dt.int64), w.op("Shape", flat, dtype=dt.int64))
    taken = w.op("ScatterElements", none, flat, ones, axis=0)
    some = w.op("Greater", taken, w.constant(0, dt.int64), dtype=dt.bool_)
    if rest:
        some = w.op("Unsqueeze", some, w.ints(range(1, rest + 1)))
    return w.op("Where", some, result, w.constant(empty, result.dtype), dtype=result.dtype)


@meaning("unsorted_segment_sum", "unsorted_segment_prod", "unsorted_segment_max", "unsorted_segment_min")
def unsorted(w: Writer, node: g.Node, data: Ref, ids: Ref, *, num_segments: DimLike) -> Ref:
    """With ids in any order; the end of the range where a segment has no rows."""
    kind = node.op.name.rpartition("_")[2]
    empty = data.dtype.min if kind == "max" else data.dtype.max if kind == "min" else int(kind == "prod")
    return _segments(w, node, data, ids, w.size(num_segments), empty)


@meaning("sparse_matmul")
def sparse_matmul(w: Writer, node: g.Node, rows: Ref, columns: Ref, values: Ref, dense: Ref, *, size: DimLike) -> Ref:
    """Rows of the dense matrix, times the elements, added up by row."""
    products = w.op("Mul", w.op("Gather", dense, columns, axis=0), w.op("Unsqueeze", values, w.ints([1])))
    shape = w.shape(node.outputs[0].dims)
    begin = w.op("Expand", w.constant(0, values.dtype), shape)
    into = Target(shape, [w.size(size)], node.outputs[0].dims[1])
    return combined(w, begin, into, w.cast(rows, dt.int64), products, "add")


@meaning("sparse_dots")
def sparse_dots(w: Writer, node: g.Node, rows: Ref, columns: Ref, left: Ref, right: Ref) -> Ref:
    """Rows of both matrices, multiplied and added up."""
    products = w.op("Mul", w.op("Gather", left, rows, axis=0), w.op("Gather", right, columns, axis=0))
    return w.op("ReduceSum", products, w.ints([1]), keepdims=0)


@meaning("segment_sum", "segment_prod", "segment_max", "segment_min")
def in_order(w: Writer, node: g.Node, data: Ref, ids: Ref) -> Ref:
    """As many segments as the last id says; 0, or 1 for products, where one has no rows."""
    return _segments(w, node, data, ids, _above_largest(w, ids), int(node.op.name.endswith("prod")))


def _above_largest(w: Writer, values: Ref) -> Ref:
    """The largest of some numbers plus one, as a vector of one; 0 where there are none."""
    flat = w.op("Reshape", w.cast(values, dt.int64), w.ints([-1]))
    most = w.op("ReduceMax", w.op("Concat", w.ints([-1]), flat, axis=0), w.ints([0]), keepdims=1)
    return w.op("Add", most, w.ints([1]))


@meaning("bincount")
def bincount(w: Writer, node: g.Node, values: Ref, weights: Ref, *, minlength: Any, maxlength: Any) -> Ref:
    """Weights added up by value, along the last axis; values beyond the last bin go to one more, which is cut off."""
    dims = node.inputs[0].dims
    bins = w.op("Max", _above_largest(w, values), w.size(minlength))
    if maxlength is not None:
        bins = w.op("Min", bins, w.size(maxlength))
    places = w.op("Min", w.cast(values, dt.int64), bins)
    more = w.op("Add", bins, w.ints([1]))
    coordinates, into = places, Target(more, [more], 1)
    if len(dims) == 2:
        numbers = w.op("Range", w.constant(0, dt.int64), w.scalar_size(dims[0]), w.constant(1, dt.int64))
        rows = w.op("Expand", w.reshaped(numbers, [dims[0], 1, 1]), w.shape([*dims, 1]))
        coordinates = w.op("Concat", rows, w.op("Unsqueeze", places, w.ints([2])), axis=-1)
        into = Target(w.op("Concat", w.size(dims[0]), more, axis=0), [w.size(dims[0]), more], 1)
    none = w.op("Expand", w.constant(0, weights.dtype), into.whole)
    added = combined(w, none, into, coordinates, weights, "add")
    return w.op("Slice", added, w.ints([0]), bins, w.ints([len(dims) - 1]))
