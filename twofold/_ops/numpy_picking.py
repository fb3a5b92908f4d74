"""Functions that pick elements: by places, diagonals and conditions; and differences. The dtypes are as given."""

from __future__ import annotations

from typing import Any

import twofold as tf

from .numpy_arrays import moved
from .numpy_operands import axis_of, shape_of, size_of

__all__ = ["band", "counted_from_front", "diagonal", "differences", "places", "selected", "taken", "taken_along"]


def counted_from_front(indices: Any, count: Any) -> Any:
    """Places of which negative ones count from the end."""
    return tf.where(indices < 0, indices + tf.cast(count, indices.dtype), indices)


def places(indices: Any) -> Any:
    """Integers in a dtype that picks elements."""
    return indices if indices.dtype in (tf.int32, tf.int64) else tf.cast(indices, tf.int32)


def taken(x: Any, indices: Any, axis: int | None) -> Any:
    """Elements, or slices, at some places; negative ones count from the end."""
    indices = places(indices)
    if axis is None:
        x, axis = tf.reshape(x, [-1]), 0
    return tf.gather(x, counted_from_front(indices, size_of(x, axis)), axis=axis)


def taken_along(x: Any, indices: Any, axis: int | None) -> Any:
    """For each line along an axis, the elements at places of its own."""
    indices = places(indices)
    if axis is None:
        x, indices, axis = tf.reshape(x, [-1]), tf.reshape(indices, [-1]), 0
    if x.ndim != indices.ndim:
        raise ValueError("`x` and `indices` must have the same number of dimensions, but receive shapes "
                         f"{x.shape} and {indices.shape}.")
    axis = axis_of(axis, x.ndim)
    x, indices = moved(x, axis, -1), moved(indices, axis, -1)
    lines = tf.broadcast_dynamic_shape(tf.shape(x)[:-1], tf.shape(indices)[:-1])
    x = tf.broadcast_to(x, tf.concat([lines, tf.shape(x)[-1:]], 0))
    indices = tf.broadcast_to(indices, tf.concat([lines, tf.shape(indices)[-1:]], 0))
    taken = tf.gather(x, counted_from_front(indices, size_of(x, -1)), axis=-1, batch_dims=x.ndim - 1)
    return moved(taken, -1, axis)


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonals of two axes, along a last axis."""
    x = moved(x, (axis1, axis2), (-2, -1))
    rows, columns = x.shape[-2], x.shape[-1]
    if rows is not None and columns is not None and not -rows < offset < columns:
        return tf.zeros([*shape_of(x)[:-2], 0], x.dtype)
    return tf.linalg.diag_part(x, k=offset)


def band(x: Any, k: int, lower: bool) -> Any:
    """Matrices with 0 above, or below, diagonal `k`."""
    rows, columns = tf.range(size_of(x, -2)), tf.range(size_of(x, -1))
    apart = columns[tf.newaxis, :] - rows[:, tf.newaxis]
    kept = apart <= k if lower else apart >= k
    return tf.where(kept, x, tf.zeros((), x.dtype)) if not x.dtype.is_bool else tf.logical_and(kept, x)


def differences(x: Any, n: int, axis: int) -> Any:
    """How far each element is from the one before, `n` times; whether it differs, for bools."""
    if n < 0 or not x.ndim:
        raise ValueError(f"diff needs n >= 0 and a tensor with an axis; got n={n} and shape {x.shape}.")
    before = (slice(None),) * axis_of(axis, x.ndim)
    size = x.shape[axis]
    for _ in range(n if size is None else min(n, size)):  # then no elements are left
        high, low = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = tf.not_equal(high, low) if x.dtype.is_bool else high - low
    return x


def selected(conditions: Any, choices: Any, default: Any) -> Any:
    """Elements of the first choice whose condition is true, and a default where none is."""
    result = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = tf.where(condition, choice, result)
    return result
