"""Ops that arrange elements: reshape, transpose, axes of size 1, broadcasting, joining, ranges, and shapes as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike

from .export_table import meaning
from .export_writer import Ref, Writer


def dims_of(node: g.Node) -> tuple[DimLike, ...]:
    """The shape of the first result."""
    return node.outputs[0].dims


@meaning("reshape", "expand_dims", "squeeze")
def reshape(w: Writer, node: g.Node, x: Ref, **attrs: Any) -> Ref:
    """All three: the shape of the result is known by its graph."""
    if node.op.name == "expand_dims":
        axes = attrs["axis"] if isinstance(attrs["axis"], tuple) else (attrs["axis"],)
        return w.op("Unsqueeze", x, w.ints([a % len(dims_of(node)) for a in axes])) if axes else x
    if node.op.name == "squeeze" and attrs["axis"]:
        axes = attrs["axis"] if isinstance(attrs["axis"], tuple) else (attrs["axis"],)
        return w.op("Squeeze", x, w.ints([a % len(node.inputs[0].dims) for a in axes]))
    return w.reshaped(x, dims_of(node))


@meaning("transpose")
def transpose(w: Writer, node: g.Node, x: Ref, *, perm: Sequence[int] | None) -> Ref:
    """With axes counted from 0."""
    rank = len(dims_of(node))
    order = tuple(range(rank))[::-1] if perm is None else tuple([p % rank for p in perm])
    return x if order == tuple(range(rank)) else w.op("Transpose", x, perm=list(order))


@meaning("broadcast_to", "fill")
def broadcast_to(w: Writer, node: g.Node, x: Ref, *, shape: Any) -> Ref:
    """`Expand`, which needs no axes in front."""
    return x if node.inputs[0].dims == dims_of(node) else w.op("Expand", x, w.shape(dims_of(node)))


@meaning("concat")
def concat(w: Writer, node: g.Node, *values: Ref, axis: int) -> Ref:
    """Joined along an axis."""
    if len(values) == 1:
        return w.op("Identity", values[0])
    return w.op("Concat", *values, axis=axis % len(dims_of(node)))


@meaning("pad")
def pad(w: Writer, node: g.Node, x: Ref, value: Ref, *, paddings: Sequence[tuple[DimLike, DimLike]]) -> Ref:
    """By a constant."""
    if not paddings:
        return x
    amounts = w.shape([*[b for b, _ in paddings], *[a for _, a in paddings]])
    return w.op("Pad", x, amounts, value)


@meaning("range")
def range_(w: Writer, node: g.Node, start: Ref, limit: Ref, delta: Ref, *, size: DimLike | None) -> Ref:
    """start + i * delta; where the number is known, from it."""
    dtype = start.dtype
    if size is None:
        if dtype.is_floating and dtype is not dt.float64:
            start, limit, delta = [w.cast(v, dt.float64) for v in (start, limit, delta)]
        return w.cast(w.op("Range", start, limit, delta), dtype)
    counted = dt.int64 if dtype.is_integer else dtype.compute
    numbers = w.op("Range", w.constant(0, dt.int64), w.scalar_size(size), w.constant(1, dt.int64))
    steps, by, first = w.cast(numbers, counted), w.value_of(delta), w.value_of(start)
    if by is None or by != 1:
        steps = w.op("Mul", steps, w.cast(delta, counted))
    elif first is not None and first == 0:
        return w.cast(steps, dtype)
    return w.cast(w.op("Add", w.cast(start, counted), steps), dtype)


@meaning("shape")
def shape(w: Writer, node: g.Node, x: Ref, *, out_type: dt.DType) -> Ref:
    """Sizes as a vector."""
    dims = node.inputs[0].dims
    if any(isinstance(d, Dim) for d in dims):
        return w.cast(w.op("Shape", x, dtype=dt.int64), out_type)
    return w.constant(list(dims), out_type)


@meaning("size")
def size(w: Writer, node: g.Node, x: Ref, *, out_type: dt.DType) -> Ref:
    """How many elements there are."""
    return w.cast(w.op("Size", x, dtype=dt.int64), out_type)
