"""Reductions: sums, products, extremes, truth, and where the extremes are.

16-bit floats are added up in float32 and rounded once, integers in 64 bits and wrapped, as our own reductions do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import Dim
from twofold.ir.dtypes import DType

from .export_scalars import Scalars, saturated
from .export_table import meaning
from .export_writer import Ref, Writer, require_real

Axes = Any


def _axes(node: g.Node, axis: Axes) -> list[int]:
    rank = len(node.inputs[0].dims)
    chosen = range(rank) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return sorted(a % rank for a in chosen)


def reduced(w: Writer, kind: str, x: Ref, axes: Sequence[int], keepdims: bool) -> Ref:
    """The reduction `kind` of ONNX over some axes; over none it leaves `x` as it is."""
    if not axes:
        return x
    return w.op(kind, x, w.ints(axes), keepdims=int(keepdims))


@meaning("reduce_sum", "reduce_prod")
def sums(w: Writer, node: g.Node, x: Ref, *, axis: Axes, keepdims: bool) -> Ref:
    """Sums and products."""
    require_real(x.dtype)
    kind = "ReduceSum" if node.op.name == "reduce_sum" else "ReduceProd"
    wide = w.cast(x, x.dtype.compute)
    return w.cast(reduced(w, kind, wide, _axes(node, axis), keepdims), x.dtype)


@meaning("reduce_mean")
def mean(w: Writer, node: g.Node, x: Ref, *, axis: Axes, keepdims: bool) -> Ref:
    """Of integers the sum in 64 bits, divided toward zero; the mean of none is 0."""
    require_real(x.dtype)
    axes = _axes(node, axis)
    if not x.dtype.is_integer:
        return w.cast(_average(w, node, w.cast(x, x.dtype.compute), axes, keepdims), x.dtype)
    wide = dt.uint64 if x.dtype.is_unsigned else dt.int64
    total = reduced(w, "ReduceSum", w.cast(x, wide), axes, keepdims)
    count = dm.numel([node.inputs[0].dims[a] for a in axes])
    s = Scalars(w)
    return w.cast(s.ref(s.idiv(s.value(total), s.value(w.scalar_size(count, wide)))), x.dtype)


def _average(w: Writer, node: g.Node, x: Ref, axes: Sequence[int], keepdims: bool) -> Ref:
    """The mean of floats; of none it is NaN, which runtimes do not all make of `ReduceMean`."""
    sizes = [node.inputs[0].dims[a] for a in axes]
    if not any(isinstance(d, Dim) or d == 0 for d in sizes):
        return reduced(w, "ReduceMean", x, axes, keepdims)
    return w.op("Div", reduced(w, "ReduceSum", x, axes, keepdims), w.scalar_size(dm.numel(sizes), x.dtype))


@meaning("reduce_max", "reduce_min")
def extreme(w: Writer, node: g.Node, x: Ref, *, axis: Axes, keepdims: bool) -> Ref:
    """NaN where one of them is; where there are no elements, the end of the dtype's range."""
    kind = "ReduceMax" if node.op.name == "reduce_max" else "ReduceMin"
    axes = _axes(node, axis)
    sizes = [node.inputs[0].dims[a] for a in axes]
    if 0 in sizes:
        worst = (-math.inf if kind == "ReduceMax" else math.inf) if x.dtype.is_floating else \
            x.dtype.min if kind == "ReduceMax" else x.dtype.max
        return w.op("Expand", w.constant(worst, x.dtype), w.shape(node.outputs[0].dims))
    if x.dtype is dt.uint64:
        return _unsigned_extreme(w, kind, x, axes, keepdims)
    result = reduced(w, kind, x, axes, keepdims)
    if not x.dtype.is_floating or not axes:
        return result
    # runtimes differ in what they make of NaN
    nans = w.cast(w.op("IsNaN", w.cast(x, x.dtype.compute), dtype=dt.bool_), dt.int32)
    any_nan = w.cast(reduced(w, "ReduceMax", nans, axes, keepdims), dt.bool_)
    return w.op("Where", any_nan, w.constant(math.nan, x.dtype), result, dtype=x.dtype)


def _unsigned_extreme(w: Writer, kind: str, x: Ref, axes: Sequence[int], keepdims: bool) -> Ref:
    """With the highest bit turned over, the order of uint64 is that of int64."""
    turn = w.constant(-(1 << 63), dt.int64)
    turned = w.op("BitwiseXor", w.cast(x, dt.int64), turn)
    return w.cast(w.op("BitwiseXor", reduced(w, kind, turned, axes, keepdims), turn), dt.uint64)


@meaning("reduce_any", "reduce_all")
def truth(w: Writer, node: g.Node, x: Ref, *, axis: Axes, keepdims: bool) -> Ref:
    """By the extremes of 0 and 1; false, or true, where there are none."""
    is_any = node.op.name == "reduce_any"
    axes = _axes(node, axis)
    if not axes:
        return x
    # a sum of the elements that decide, which is 0 over none of them
    deciding = w.cast(x if is_any else w.op("Not", x), dt.int64)
    some = w.op("Greater", reduced(w, "ReduceSum", deciding, axes, keepdims), w.constant(0, dt.int64), dtype=dt.bool_)
    return some if is_any else w.op("Not", some)


@meaning("count_nonzero")
def count_nonzero(w: Writer, node: g.Node, x: Ref, *, axis: Axes, keepdims: bool, dtype: DType) -> Ref:
    """A sum of ones."""
    require_real(x.dtype)
    s = Scalars(w)
    counts = x if x.dtype.is_bool else s.ref(s.ne(s.value(x), 0))
    return w.cast(reduced(w, "ReduceSum", w.cast(counts, dt.int64), _axes(node, axis), keepdims), dtype)


@meaning("reduce_logsumexp")
def logsumexp(w: Writer, node: g.Node, x: Ref, *, axis: Axes, keepdims: bool) -> Ref:
    """With the largest element taken out, so that nothing overflows; runtimes do not all do that themselves."""
    axes = _axes(node, axis)
    if not axes:
        return x
    dtype, x = x.dtype, w.cast(x, x.dtype.compute)
    zero = w.constant(0, x.dtype)
    if 0 in [node.inputs[0].dims[a] for a in axes]:
        return w.op("Expand", w.constant(-math.inf, dtype), w.shape(node.outputs[0].dims))
    largest = w.op("ReduceMax", x, w.ints(axes), keepdims=1)
    infinite = w.op("IsInf", largest, dtype=dt.bool_)
    base = w.op("Where", infinite, zero, largest, dtype=x.dtype)
    total = w.op("ReduceSum", w.op("Exp", w.op("Sub", x, base)), w.ints(axes), keepdims=1)
    value = w.op("Add", w.op("Log", total), base)
    if not keepdims:
        value = w.op("Squeeze", value, w.ints(axes))
    return w.cast(value, dtype)


@meaning("reduce_euclidean_norm")
def norm(w: Writer, node: g.Node, x: Ref, *, axis: Axes, keepdims: bool) -> Ref:
    """Integers in float64, cut to an integer."""
    require_real(x.dtype)
    wide = w.cast(x, dt.float64 if x.dtype.is_integer else x.dtype.compute)
    total = reduced(w, "ReduceSum", w.op("Mul", wide, wide), _axes(node, axis), keepdims)
    return saturated(w, w.op("Sqrt", total), x.dtype)


@meaning("centred_variance")
def variance(w: Writer, node: g.Node, x: Ref, *, axis: Axes, keepdims: bool) -> Ref:
    """The mean square less the square of the mean."""
    axes, wide = _axes(node, axis), w.cast(x, x.dtype.compute)
    average = _average(w, node, wide, axes, keepdims)
    squares = _average(w, node, w.op("Mul", wide, wide), axes, keepdims)
    rest = w.op("Sub", squares, w.op("Mul", average, average))
    return w.cast(w.op("Max", rest, w.constant(0, wide.dtype)), x.dtype)


@meaning("argmax", "argmin")
def argmax(w: Writer, node: g.Node, x: Ref, *, axis: int, output_type: DType) -> Ref:
    """The first of equal ones, the first NaN if there is one."""
    kind = "ArgMax" if node.op.name == "argmax" else "ArgMin"
    at = axis % len(node.inputs[0].dims)

    def place(values: Ref, kind: str) -> Ref:
        return w.op(kind, values, dtype=dt.int64, axis=at, keepdims=0)
    if x.dtype.is_bool:
        return w.cast(place(w.cast(x, dt.int32), kind), output_type)
    if x.dtype is dt.uint64:
        x = w.op("BitwiseXor", w.cast(x, dt.int64), w.constant(-(1 << 63), dt.int64))
    if not x.dtype.is_floating:
        return w.cast(place(x, kind), output_type)
    nans = w.cast(w.op("IsNaN", w.cast(x, x.dtype.compute), dtype=dt.bool_), dt.int32)
    some = w.cast(w.op("ReduceMax", nans, w.ints([at]), keepdims=0), dt.bool_)
    chosen = w.op("Where", some, place(nans, "ArgMax"), place(x, kind), dtype=dt.int64)
    return w.cast(chosen, output_type)
