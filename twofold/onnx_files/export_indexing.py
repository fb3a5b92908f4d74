"""Ops that pick or write elements at places given as data.

An index out of range is an error here; what a runtime makes of it is the runtime's affair: most raise, and count
negative ones from the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import DimLike

from .export_table import meaning
from .export_writer import NoMeaning, Ref, Writer, require_real


def places(w: Writer, indices: Ref) -> Ref:
    """Indices of a dtype that ONNX takes."""
    return indices if indices.dtype is dt.int32 else w.cast(indices, dt.int64)


@meaning("gather")
def gather(w: Writer, node: g.Node, x: Ref, indices: Ref, *, axis: int, batch_dims: int) -> Ref:
    """`Gather`, or where axes are shared `GatherND` with the axis moved behind them."""
    rank, places_rank = (len(v.dims) for v in node.inputs)
    at, batch = axis % rank, batch_dims % (places_rank + 1)
    if batch == 0:
        return w.op("Gather", x, places(w, indices), axis=at)
    front = _moved(w, x, rank, at, batch)
    column = w.op("Unsqueeze", w.cast(indices, dt.int64), w.ints([places_rank]))
    taken = w.op("GatherND", front, column, batch_dims=batch)
    if at == batch:
        return taken
    own, between = places_rank - batch, at - batch
    order = [*range(batch), *range(batch + own, batch + own + between), *range(batch, batch + own),
             *range(batch + own + between, rank - 1 + own)]
    return w.op("Transpose", taken, perm=order)


def _moved(w: Writer, x: Ref, rank: int, at: int, to: int) -> Ref:
    """`x` with axis `at` at place `to`, before it."""
    if at == to:
        return x
    return w.op("Transpose", x, perm=[*range(to), at, *range(to, at), *range(at + 1, rank)])


@meaning("scatter_add")
def scatter_add(w: Writer, node: g.Node, base: Ref, indices: Ref, updates: Ref, *, axis: int, batch_dims: int) -> Ref:
    """With the axis moved behind the shared ones."""
    if 0 in node.inputs[2].dims:
        return base
    rank, places_rank = len(node.inputs[0].dims), len(node.inputs[1].dims)
    at, batch = axis % rank, batch_dims % (places_rank + 1)
    own, between = places_rank - batch, at - batch
    front = _moved(w, base, rank, at, batch)
    coordinates = w.op("Unsqueeze", w.cast(indices, dt.int64), w.ints([places_rank]))
    if batch:
        coordinates = _with_batch(w, coordinates, node.inputs[1].dims, batch)
    if between:
        order = [*range(batch), *range(batch + between, batch + between + own), *range(batch, batch + between),
                 *range(batch + between + own, rank - 1 + own)]
        updates = w.op("Transpose", updates, perm=order)
    dims = node.inputs[0].dims
    moved = [*dims[:batch], dims[at], *[d for n, d in enumerate(dims) if n >= batch and n != at]]
    added = combined(w, front, target(w, moved, batch + 1), coordinates, updates, "add")
    if not between:
        return added
    return w.op("Transpose", added, perm=[*range(batch), *range(batch + 1, at + 1), batch, *range(at + 1, rank)])


def _with_batch(w: Writer, coordinates: Ref, dims: Sequence[DimLike], batch: int) -> Ref:
    """Coordinates that begin with the numbers of their own batch axes."""
    shape = w.shape([*dims, 1])
    columns = []
    for axis in range(batch):
        numbers = w.op("Range", w.constant(0, dt.int64), w.scalar_size(dims[axis]), w.constant(1, dt.int64))
        along = [dims[axis] if a == axis else 1 for a in range(len(dims) + 1)]
        columns.append(w.op("Expand", w.reshaped(numbers, along), shape))
    return w.op("Concat", *columns, coordinates, axis=-1)


@dataclass(frozen=True)
class Target:
    """What is scattered into.

    Attributes:
        whole: its shape, as a vector.
        axes: the sizes of the axes that coordinates name, each as a vector of one.
        rest: how many elements there are at a place.
    """

    whole: Ref
    axes: Sequence[Ref]
    rest: DimLike


def target(w: Writer, dims: Sequence[DimLike], depth: int) -> Target:
    """A tensor of this shape, of which coordinates name the first `depth` axes."""
    return Target(w.shape(dims), [w.size(d) for d in dims[:depth]], dm.numel(dims[depth:]))


def combined(w: Writer, x: Ref, into: Target, coordinates: Ref, updates: Ref, reduction: str) -> Ref:
    """`x` with updates added (or "mul", "max", "min") at coordinates; 16-bit floats are added up in float32.

    This is `ScatterElements` over rows: in the `ScatterND` of onnxruntime, threads that add to one place lose updates.
    """
    dtype = x.dtype
    x, updates = w.cast(x, dtype.compute), w.cast(updates, dtype.compute)
    row = _row_numbers(w, coordinates, into.axes)
    if into.rest != 1:
        row = w.op("Expand", row, w.shape([1, into.rest]))
    rows, more = w.reshaped(x, [-1, into.rest]), w.reshaped(updates, [-1, into.rest])
    made = w.op("ScatterElements", rows, row, more, axis=0, reduction=reduction)
    return w.cast(w.op("Reshape", made, into.whole), dtype)


def _row_numbers(w: Writer, coordinates: Ref, axes: Sequence[Ref]) -> Ref:
    """Coordinates as numbers of rows in row-major order, one below the other."""
    if len(axes) == 1:
        return w.op("Reshape", coordinates, w.ints([-1, 1]))
    steps = [w.ints([1])]
    for size in reversed(axes[1:]):
        steps.insert(0, _times(w, steps[0], size))
    flat = w.op("Reshape", coordinates, w.ints([-1, len(axes)]))
    known = [w.value_of(s) for s in steps]
    factors = w.op("Concat", *steps, axis=0) if any(k is None for k in known) else \
        w.ints([int(k.item()) for k in known if k is not None])
    return w.op("ReduceSum", w.op("Mul", flat, factors), w.ints([1]), keepdims=1)


def _times(w: Writer, a: Ref, b: Ref) -> Ref:
    x, y = w.value_of(a), w.value_of(b)
    return w.op("Mul", a, b) if x is None or y is None else w.ints([int(x.item()) * int(y.item())])


@meaning("gather_nd")
def gather_nd(w: Writer, node: g.Node, x: Ref, indices: Ref, *, batch_dims: int) -> Ref:
    """`GatherND`."""
    dims = node.inputs[1].dims
    batch = batch_dims % max(len(dims), 1)
    if dims[-1] == 0:
        extra = len(dims) - 1 - batch
        shape = [*node.inputs[0].dims[:batch], *[1] * extra, *node.inputs[0].dims[batch:]]
        return w.op("Expand", w.reshaped(x, shape), w.shape(node.outputs[0].dims))
    return w.op("GatherND", x, w.cast(indices, dt.int64), batch_dims=batch)


def _require_coordinates(dims: Sequence[DimLike]) -> None:
    if dims[-1] == 0:
        raise NoMeaning("ONNX scatters at one coordinate at least", "write to the whole tensor without indices")


@meaning("scatter_nd")
def scatter_nd(w: Writer, node: g.Node, indices: Ref, updates: Ref, *, shape: Sequence[DimLike]) -> Ref:
    """Zeros to which updates are added."""
    _require_coordinates(node.inputs[0].dims)
    none = w.op("Expand", w.constant(0, updates.dtype), w.shape(shape))
    if 0 in node.inputs[1].dims:
        return none
    depth = int(node.inputs[0].dims[-1])  # type: ignore[arg-type]
    return combined(w, none, target(w, shape, depth), w.cast(indices, dt.int64), updates, "add")


@meaning("tensor_scatter")
def tensor_scatter(w: Writer, node: g.Node, x: Ref, indices: Ref, updates: Ref, *, mode: str) -> Ref:
    """Several updates of one place are combined; of those that replace it, which one stays is the runtime's choice."""
    _require_coordinates(node.inputs[1].dims)
    if 0 in node.inputs[2].dims:
        return x
    if mode == "sub":
        wide = w.cast(updates, updates.dtype.compute)
        updates = w.cast(w.op("Sub", w.constant(0, wide.dtype), wide), updates.dtype)
    indices = w.cast(indices, dt.int64)
    if mode == "update":
        return w.op("ScatterND", x, indices, updates)
    into = target(w, node.inputs[0].dims, int(node.inputs[1].dims[-1]))  # type: ignore[arg-type]
    return combined(w, x, into, indices, updates, "add" if mode == "sub" else mode)


@meaning("nonzero")
def nonzero(w: Writer, node: g.Node, x: Ref) -> Ref:
    """`NonZero` gives a row for each axis."""
    require_real(x.dtype)
    counts = x if x.dtype.is_bool else w.op("Not", w.op("Equal", w.cast(x, x.dtype.compute),
                                                        w.constant(0, x.dtype.compute), dtype=dt.bool_))
    if not node.inputs[0].dims:
        count = w.op("Reshape", w.cast(counts, dt.int64), w.ints([1]))
        return w.op("Expand", w.constant(np.zeros((1, 0)), dt.int64), w.op("Concat", count, w.ints([0]), axis=0))
    return w.op("Transpose", w.op("NonZero", counts, dtype=dt.int64), perm=[1, 0])
