"""Sorting and what rests on it. NaN sorts as infinity does, so that it is among the largest, as it is here."""

from __future__ import annotations

import math

from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import DimLike
from twofold.ir.dtypes import DType

from .export_table import meaning
from .export_writer import Ref, Writer, require_real


def _ordered(w: Writer, node: g.Node, x: Ref, count: DimLike, descending: bool) -> Ref:
    """int64 numbers of the `count` first elements of the last axis in order; of equal ones the first comes first."""
    rank = len(node.inputs[0].dims)
    if x.dtype.is_bool:
        x = w.cast(x, dt.int32)
    elif x.dtype is dt.uint64:
        x = w.op("BitwiseXor", w.cast(x, dt.int64), w.constant(-(1 << 63), dt.int64))
    elif x.dtype.is_floating:
        x = w.cast(x, x.dtype.compute)
        x = w.op("Where", w.op("IsNaN", x, dtype=dt.bool_), w.constant(math.inf, x.dtype), x, dtype=x.dtype)
    return w.several("TopK", [x, w.size(count)], [None, dt.int64], axis=rank - 1, largest=int(descending), sorted=1)[1]


@meaning("argsort")
def argsort(w: Writer, node: g.Node, x: Ref, *, descending: bool) -> Ref:
    """`TopK` of all elements, which keeps the order of equal ones."""
    return w.cast(_ordered(w, node, x, node.inputs[0].dims[-1], descending), dt.int32)


@meaning("sort")
def sort(w: Writer, node: g.Node, x: Ref, *, descending: bool) -> Ref:
    """The elements in that order."""
    order = _ordered(w, node, x, node.inputs[0].dims[-1], descending)
    return w.op("GatherElements", x, order, axis=len(node.inputs[0].dims) - 1)


@meaning("top_k")
def top_k(w: Writer, node: g.Node, x: Ref, *, k: DimLike, index_type: DType) -> tuple[Ref, Ref]:
    """`TopK`."""
    order = _ordered(w, node, x, k, True)
    values = w.op("GatherElements", x, order, axis=len(node.inputs[0].dims) - 1)
    return values, w.cast(order, index_type)


@meaning("unique")
def unique(w: Writer, node: g.Node, x: Ref, *, out_idx: DType) -> tuple[Ref, Ref, Ref]:
    """`Unique` in order of first appearance."""
    require_real(x.dtype)
    given = w.cast(x, dt.int64) if x.dtype.is_bool else w.cast(x, x.dtype.compute)
    values, _, inverse, counts = w.several("Unique", [given], [None, dt.int64, dt.int64, dt.int64], sorted=0)
    return w.cast(values, x.dtype), w.cast(inverse, out_idx), w.cast(counts, out_idx)


@meaning("first_equal")
def first_equal(w: Writer, node: g.Node, x: Ref) -> Ref:
    """`Unique` tells where each number is first, and which number is where."""
    given = w.cast(x, dt.int64)
    _, first, inverse = w.several("Unique", [given], [None, dt.int64, dt.int64], sorted=0)
    return w.cast(w.op("Gather", first, inverse, axis=0), dt.int32)


@meaning("searchsorted")
def searchsorted(w: Writer, node: g.Node, rows: Ref, values: Ref, *, side: str, out_type: DType) -> Ref:
    """How many elements of the row come before each value."""
    last = len(node.inputs[0].dims) - 1
    dtype = rows.dtype.compute
    row = w.op("Unsqueeze", w.cast(rows, dtype), w.ints([last]))
    column = w.op("Unsqueeze", w.cast(values, dtype), w.ints([last + 1]))
    before = w.op("Less" if side == "left" else "LessOrEqual", row, column, dtype=dt.bool_)
    if dtype.is_floating:  # NaN is behind all else
        none = w.op("IsNaN", column, dtype=dt.bool_)
        if side == "left":
            none = w.op("And", none, w.op("Not", w.op("IsNaN", row, dtype=dt.bool_)))
        before = w.op("Or", before, none)
    return w.cast(w.op("ReduceSum", w.cast(before, dt.int64), w.ints([last + 1]), keepdims=0), out_type)


@meaning("invert_permutation")
def invert_permutation(w: Writer, node: g.Node, x: Ref) -> Ref:
    """The numbers of the places, scattered to them."""
    count = node.inputs[0].dims[0]
    numbers = w.op("Range", w.constant(0, dt.int64), w.scalar_size(count), w.constant(1, dt.int64))
    return w.op("ScatterElements", x, w.cast(x, dt.int64), w.cast(numbers, x.dtype), axis=0)
