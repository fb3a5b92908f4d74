"""Functions that reduce axes, with NumPy's semantics; the dtypes are as given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf

__all__ = ["filled", "largest", "place", "running", "smallest", "truth", "variance"]


def largest(x: Any, axis: Any, keepdims: bool) -> Any:
    """The largest element; of bools, whether any is true."""
    reduce = tf.reduce_any if x.dtype.is_bool else tf.reduce_max
    return reduce(x, axis=axis, keepdims=keepdims)


def smallest(x: Any, axis: Any, keepdims: bool) -> Any:
    """The smallest element; of bools, whether all are true."""
    reduce = tf.reduce_all if x.dtype.is_bool else tf.reduce_min
    return reduce(x, axis=axis, keepdims=keepdims)


def truth(reduce: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction of whether elements are not 0."""
    return lambda x, axis, keepdims: reduce(tf.cast(x, tf.bool), axis=axis, keepdims=keepdims)


def filled(x: Any, value: float) -> Any:
    """A tensor with a number in place of NaN."""
    return tf.where(tf.math.is_nan(x), tf.constant(value, x.dtype), x) if x.dtype.is_floating else x


def place(find: Callable[..., Any], x: Any, axis: int | None, keepdims: bool, dtype: Any) -> Any:
    """The place of an extreme: along an axis, or among all elements."""
    if axis is not None:
        position = find(x, axis=axis, output_type=dtype)
        return tf.expand_dims(position, axis) if keepdims else position
    position = find(tf.reshape(x, [-1]), axis=0, output_type=dtype)
    return tf.reshape(position, [1] * x.ndim) if keepdims else position


def running(compute: Callable[..., Any], x: Any, axis: int | None) -> Any:
    """What adds up or multiplies all elements up to each, along an axis or the flat tensor."""
    return compute(tf.reshape(x, [-1]), axis=0) if axis is None else compute(x, axis=axis)


def variance(x: Any, axis: Any, keepdims: bool, less: float) -> Any:
    """The mean of squared distances from the mean of floating or complex numbers.

    Args:
        less: by how much the number of elements that the squares are divided by is less.
    """
    if not less:
        return tf.math.reduce_variance(x, axis=axis, keepdims=keepdims)
    apart = tf.abs(x - tf.reduce_mean(x, axis=axis, keepdims=True))
    squares = tf.reduce_sum(tf.square(apart), axis=axis, keepdims=keepdims)
    count = tf.cast(tf.size(x), squares.dtype) / tf.cast(tf.maximum(tf.size(squares), 1), squares.dtype)
    return squares / tf.maximum(count - tf.constant(less, squares.dtype), tf.zeros((), squares.dtype))
