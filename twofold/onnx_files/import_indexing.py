"""ONNX ops that take elements at places or put them there: gathers, scatters, slices, selections."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold.ir.dims import Dim

from .import_reductions import one_axis
from .import_table import Call, on_sizes, op
from .import_values import Value, int_list, known_array, open_list, sizes_of, tensor_of

__all__ = ["places_from_front"]


def places_from_front(indices: Value, size: Any) -> Any:
    """Indices as a tensor, those below 0 counted from the end of an axis of a size."""
    if isinstance(indices, np.ndarray):
        if indices.dtype.kind == "i" and indices.size and indices.min() < 0:
            if not isinstance(size, Dim):
                return tf.constant(np.where(indices < 0, indices + size, indices).astype(indices.dtype))
        else:
            return tf.constant(indices)
    x = tensor_of(indices)
    if x.dtype.kind == "u":
        return x
    whole = tf.cast(tensor_of(sizes_of((size,), tf.int64))[0], x.dtype)
    return tf.where(x < 0, x + whole, x)


@op("Gather", static=(1,))
def _gather(call: Call, x: Any, indices: Value) -> Any:
    axis = one_axis(call, call.attr("axis", 0), len(x.dims))
    return tf.gather(x, places_from_front(indices, x.dims[axis]), axis=axis)


@on_sizes("Gather")
def _gathered_sizes(call: Call, x: np.ndarray, indices: np.ndarray) -> Any:
    if indices.dtype == object or x.dtype != object:
        return NotImplemented
    return np.take(x, indices, axis=call.attr("axis", 0))


def _coordinates(dims: Sequence[Any], axis: int, places: Any) -> Any:
    """The places of all elements of `dims`, but with `places` along an axis; in the last axis."""
    rank = len(dims)
    each = []
    for i, d in enumerate(dims):
        line = places if i == axis else tf.reshape(tf.range(d, dtype=places.dtype), [d if j == i else 1 for j in
                                                                                     range(rank)])
        each.append(tf.broadcast_to(line, dims))
    return tf.stack(each, axis=-1)


@op("GatherElements", static=(1,))
def _gather_elements(call: Call, x: Any, indices: Value) -> Any:
    axis = one_axis(call, call.attr("axis", 0), len(x.dims))
    places = places_from_front(indices, x.dims[axis])
    return tf.gather_nd(x, _coordinates(places.dims, axis, places))


def _nd_from_front(x: Any, indices: Any, batch: int = 0) -> Any:
    """Coordinates in the last axis of `indices`, none below 0."""
    depth = indices.dims[-1]
    whole = tf.cast(tensor_of(sizes_of(x.dims[batch:batch + depth], tf.int64)), indices.dtype)
    return tf.where(indices < 0, indices + whole, indices)


@op("GatherND")
def _gather_nd(call: Call, x: Any, indices: Any) -> Any:
    batch = call.attr("batch_dims", 0)
    return tf.gather_nd(x, _nd_from_front(x, indices, batch), batch_dims=batch)


def _scattered(call: Call, x: Any, places: Any, updates: Any) -> Any:
    """`x` with updates combined into it at coordinates in the last axis of `places`."""
    how = call.attr("reduction", "none")
    named = {"none": tf.tensor_scatter_nd_update, "add": tf.tensor_scatter_nd_add, "max": tf.tensor_scatter_nd_max,
             "min": tf.tensor_scatter_nd_min}
    if how in named:
        return named[how](x, places, updates)
    if how != "mul":
        raise call.fail(f"there is no reduction {how!r}")
    depth = places.dims[-1]
    steps = [math.prod(x.dims[i + 1:depth]) for i in range(depth)]
    strides = tf.cast(tensor_of(sizes_of(steps, tf.int64)), places.dtype)
    flat = tf.reshape(tf.reduce_sum(places * strides, axis=-1), (math.prod(places.dims[:-1]),))
    rows = tf.reshape(updates, (math.prod(places.dims[:-1]), *x.dims[depth:]))
    factors = tf.math.unsorted_segment_prod(rows, flat, math.prod(x.dims[:depth]))
    return x * tf.reshape(factors, x.dims)


@op("ScatterND")
def _scatter_nd(call: Call, x: Any, indices: Any, updates: Any) -> Any:
    return _scattered(call, x, _nd_from_front(x, indices), updates)


@op("Scatter", "ScatterElements", static=(1,))
def _scatter_elements(call: Call, x: Any, indices: Value, updates: Any) -> Any:
    axis = one_axis(call, call.attr("axis", 0), len(x.dims))
    places = places_from_front(indices, x.dims[axis])
    return _scattered(call, x, _coordinates(places.dims, axis, places), updates)


@op("TensorScatter")
def _tensor_scatter(call: Call, past: Any, update: Any, start: Any = None) -> Any:
    """Each example's update written from its own place on along an axis, around its end where that is circular."""
    axis = one_axis(call, call.attr("axis", -2), len(past.dims))
    size, count, batch = past.dims[axis], update.dims[axis], past.dims[0]
    first = tf.zeros((batch,), tf.int64) if start is None else start
    rank = len(past.dims)
    along = tf.reshape(tf.range(count, dtype=tf.int64), [count if i == axis else 1 for i in range(rank)])
    places = tf.reshape(first, (batch, *(1,) * (rank - 1))) + along
    if call.attr("mode", "linear") == "circular":
        places = tf.math.floormod(places, tf.cast(tensor_of(sizes_of((size,), tf.int64))[0], tf.int64))
    places = tf.broadcast_to(places, update.dims)
    return tf.tensor_scatter_nd_update(past, _coordinates(update.dims, axis, places), update)


# -- slices -------------------------------------------------------------------------------------------
@op("Slice", since=10, static=(1, 2, 3, 4))
def _slice(call: Call, x: Any, starts: Value, ends: Value, axes: Value = None, steps: Value = None) -> Any:
    begins, stops = open_list(starts, "starts"), open_list(ends, "ends")
    which = range(len(begins)) if axes is None else int_list(axes, "axes")
    by = [1] * len(begins) if steps is None else int_list(steps, "steps")
    return _sliced(call, x, begins, stops, [one_axis(call, a, len(x.dims)) for a in which], by)


@op("Slice")
def _older_slice(call: Call, x: Any) -> Any:
    begins = call.need("starts")
    axes = call.attr("axes") or range(len(begins))
    return _sliced(call, x, begins, call.need("ends"), [one_axis(call, a, len(x.dims)) for a in axes],
                   [1] * len(begins))


def _sliced(call: Call, x: Any, begins: Sequence[Any], ends: Sequence[Any], axes: Sequence[int],
            steps: Sequence[Any]) -> Any:
    key: list[Any] = [slice(None)] * len(x.dims)
    if not len(begins) == len(ends) == len(axes) == len(steps) or len({*axes}) != len(axes):
        raise call.fail(f"{len(begins)} starts, {len(ends)} ends and {len(steps)} steps for axes {list(axes)}")
    for begin, end, axis, step in zip(begins, ends, axes, steps, strict=True):
        if step == 0:
            raise call.fail("a step is 0")
        key[axis] = slice(_clipped(begin), _clipped(end), step)
    return x[tuple(key)]


def _clipped(bound: Any) -> Any:
    """Numbers that stand for an end, brought to where sizes are."""
    return max(min(bound, 1 << 40), -(1 << 40)) if type(bound) is int else bound


@on_sizes("Slice")
def _sliced_sizes(call: Call, x: np.ndarray, *rest: np.ndarray) -> Any:
    if any(r.dtype == object for r in rest) or x.dtype != object:
        return NotImplemented
    given = [r.tolist() for r in rest]
    if call.version < 10:
        given = [call.need("starts"), call.need("ends"), call.attr("axes") or list(range(len(call.need("starts"))))]
    begins, ends, axes, steps = [*given, None, None, None, None][:4]
    key: list[Any] = [slice(None)] * x.ndim
    for i, (begin, end) in enumerate(zip(begins or (), ends or (), strict=True)):
        key[axes[i] if axes else i] = slice(begin, end, steps[i] if steps else 1)
    return x[tuple(key)]


# -- selections ---------------------------------------------------------------------------------------
@op("Compress", static=(1,))
def _compress(call: Call, x: Any, condition: Value) -> Any:
    axis = call.attr("axis")
    if axis is None:
        x, axis = tf.reshape(x, (math.prod(x.dims),)), 0
    axis = one_axis(call, axis, len(x.dims))
    if isinstance(condition, np.ndarray):
        places: Any = tf.constant(np.flatnonzero(condition).astype(np.int64))
    else:
        places = tf.reshape(tf.where(tensor_of(condition)), (-1,))
    return tf.gather(x, places, axis=axis)


@op("NonZero")
def _nonzero(call: Call, x: Any) -> Any:
    """The coordinates of elements that are not 0, an axis in each row."""
    if not x.dims:
        x = tf.reshape(x, (1,))
        return tf.transpose(tf.where(x))[:0]
    return tf.transpose(tf.where(x))


@op("OneHot", static=(1,))
def _one_hot(call: Call, indices: Any, depth: Value, values: Any) -> Any:
    """Indices from -depth on; those beyond the range have no place."""
    axis = call.attr("axis", -1)
    count = int(known_array(depth, "depth").item())
    places = indices if indices.dtype.is_integer else tf.cast(indices, tf.int64)
    if places.dtype.kind == "i":
        places = tf.where(places < 0, places + tf.constant(count, places.dtype), places)
    hot = tf.one_hot(tf.cast(places, tf.int64), count, on_value=True, off_value=False, axis=axis, dtype=tf.bool)
    return tf.where(hot, values[1], values[0])


@op("ReverseSequence")
def _reverse_sequence(call: Call, x: Any, lengths: Any) -> Any:
    return tf.reverse_sequence(x, lengths, seq_axis=call.attr("time_axis", 0), batch_axis=call.attr("batch_axis", 1))


@op("Unique")
def _unique(call: Call, x: Any) -> Any:
    """Distinct elements, or slices along an axis; where each was first, which one each is, and how often it is."""
    axis = call.attr("axis")
    if axis is None:
        values, slices = tf.reshape(x, (math.prod(x.dims),)), None
        keys = values
    else:
        axis = one_axis(call, axis, len(x.dims))
        slices = tf.reshape(tf.transpose(x, (axis, *(i for i in range(len(x.dims)) if i != axis))), (x.dims[axis], -1))
        keys = _numbered(slices)
    distinct, which, counts = tf.unique_with_counts(keys, out_idx=tf.int64)
    first = tf.math.unsorted_segment_min(tf.range(keys.dims[0], dtype=tf.int64), which, distinct.dims[0])
    if call.attr("sorted", 1):
        order = tf.argsort(distinct, stable=True)
        rank = tf.cast(tf.math.invert_permutation(order), tf.int64)
        first, counts, which = tf.gather(first, order), tf.gather(counts, order), tf.gather(rank, which)
    y = tf.gather(values, first) if axis is None else tf.gather(x, first, axis=axis)
    return y, first, which, counts


def _numbered(rows: Any) -> Any:
    """For each row how many rows are smaller, by their first elements that differ."""
    a, b = rows[:, None, :], rows[None, :, :]
    differs = tf.not_equal(a, b)
    first = tf.logical_and(differs, tf.equal(tf.cumsum(tf.cast(differs, tf.int32), axis=-1), 1))
    larger = tf.reduce_any(tf.logical_and(first, a > b), axis=-1)
    return tf.reduce_sum(tf.cast(larger, tf.int64), axis=1)


