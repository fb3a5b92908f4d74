"""Functions that sort, search and find distinct elements, with NumPy's semantics; the dtypes are as given."""

from __future__ import annotations

from typing import Any

import twofold as tf

__all__ = ["contained", "distinct", "order_along", "ordered_along", "placed", "sortable"]


def sortable(x: Any) -> Any:
    """A tensor in a dtype that has an order: bools as int8."""
    return tf.cast(x, tf.int8) if x.dtype.is_bool else x


def ordered_along(x: Any, axis: int | None) -> Any:
    """The elements in rising order along an axis; of the flat tensor, if it is None."""
    if axis is None:
        x, axis = tf.reshape(x, [-1]), -1
    return tf.cast(tf.sort(sortable(x), axis=axis), x.dtype)


def order_along(x: Any, axis: int | None) -> Any:
    """The places of the elements in rising order, as int32; equal ones stay in order."""
    if axis is None:
        x, axis = tf.reshape(x, [-1]), -1
    return tf.argsort(sortable(x), axis=axis, stable=True)


def placed(ordered: Any, values: Any, side: str) -> Any:
    """Where values would go into a sorted vector, as int32."""
    places = tf.searchsorted(ordered, tf.reshape(values, [-1]), side=side)
    return tf.reshape(places, tf.shape(values))


def contained(x1: Any, x2: Any) -> Any:
    """Whether each element of a tensor is among those of another of its dtype."""
    ordered, flat = tf.sort(tf.reshape(sortable(x2), [-1])), tf.reshape(sortable(x1), [-1])
    count = tf.searchsorted(ordered, flat, side="right") - tf.searchsorted(ordered, flat, side="left")
    return tf.reshape(count > 0, tf.shape(x1))


def distinct(x: Any) -> tuple[Any, Any, Any, Any]:
    """Of a vector: the distinct elements in rising order, their first places, where each element is, the counts."""
    if x.dtype.is_complex:
        return _distinct_pairs(x)
    order = tf.argsort(sortable(x), stable=True)
    ordered = tf.gather(x, order)
    ends = tf.ones_like(ordered[:1], tf.bool)
    new = tf.concat([ends, tf.not_equal(ordered[1:], ordered[:-1])], 0)
    numbers = tf.cumsum(tf.cast(new, tf.int32)) - 1
    starts = tf.cast(tf.where(new)[:, 0], tf.int32)
    count = tf.shape(x)[0]
    inverse = tf.scatter_nd(order[:, tf.newaxis], numbers, tf.shape(x))
    counts = tf.concat([starts[1:], count[tf.newaxis]], 0) - starts if x.shape[0] != 0 else starts
    return tf.gather(ordered, starts), tf.gather(order, starts), inverse, counts


def _distinct_pairs(x: Any) -> tuple[Any, Any, Any, Any]:
    """`distinct` of complex numbers, in the order of their real parts, and then of the others."""
    parts = [tf.cast(distinct(part)[2], tf.int64) for part in (tf.math.real(x), tf.math.imag(x))]
    _, first, inverse, counts = distinct(parts[0] * tf.shape(x, tf.int64)[0] + parts[1])
    return tf.gather(x, first), first, inverse, counts
