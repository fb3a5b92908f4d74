"""Functions that make tensors with NumPy's semantics, of dtypes that are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.api import one_size

from .numpy_arrays import moved
from .numpy_operands import size_of
from .numpy_picking import diagonal

__all__ = ["arange", "diag", "eye", "geometric", "spread", "tri", "vander"]


def arange(start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    """Numbers at equal distances, up to a last one that is not among them."""
    if dtype in (tf.int32, tf.int64, tf.float32, tf.float64):
        return tf.range(start, stop, step, dtype=dtype)
    return tf.cast(tf.range(start, stop, step, dtype=tf.float32 if dtype.is_floating else tf.int64), dtype)


def spread(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int,
           through: Callable[[Any], Any] | None = None) -> tuple[Any, Any]:
    """Numbers at equal distances between floating tensors, and the distance.

    Args:
        dtype: that of the result.
        axis: the new axis of the result.
        through: what the numbers go through before they are cast.
    Raises:
        ValueError: num is negative.
    """
    if num < 0:
        raise ValueError(f"`num` must be a non-negative integer. Received: num={num}")
    computed = start.dtype
    pieces = num - 1 if endpoint else num
    step = (stop - start) / tf.cast(pieces, computed) if pieces else (stop - start) * tf.constant(
        float("nan"), computed)
    start, stop = start + tf.zeros_like(step), stop + tf.zeros_like(step)
    places = tf.range(num, dtype=tf.int32)
    last = tf.reshape(tf.equal(places, num - 1) if endpoint and num > 1 else places < 0, [num] + [1] * step.ndim)
    places = tf.reshape(tf.cast(places, computed), [num] + [1] * step.ndim)
    numbers = tf.where(last, stop, start + places * step if pieces else start + places * tf.zeros_like(places))
    numbers = numbers if through is None else through(numbers)
    if axis != 0 and numbers.ndim > 1:
        numbers = moved(numbers, 0, axis)
    return tf.cast(tf.floor(numbers) if dtype.is_integer else numbers, dtype), step


def geometric(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int) -> Any:
    """Numbers of equal ratios between floating tensors of one sign."""
    return spread(tf.math.log(tf.abs(start)), tf.math.log(tf.abs(stop)), num, endpoint, dtype, axis,
                  lambda x: tf.sign(start) * tf.exp(x))[0]


def _apart(rows: Any, columns: Any) -> Any:
    """How far each place of a matrix is to the right of the main diagonal."""
    return tf.range(rows if columns is None else columns)[tf.newaxis, :] - tf.range(rows)[:, tf.newaxis]


def _in_reach(k: Any) -> Any:
    """The number of a diagonal, of those beyond any matrix one that int32 holds."""
    return min(max(k, -2**31), 2**31 - 1) if isinstance(k, int) else k


def tri(rows: Any, columns: Any, k: Any, dtype: Any) -> Any:
    """A matrix of ones up to diagonal `k`, and zeros above it."""
    return tf.cast(_apart(rows, columns) <= _in_reach(k), dtype)


def eye(rows: Any, columns: Any, k: Any, dtype: Any) -> Any:
    """A matrix of ones on diagonal `k`, and zeros elsewhere."""
    return tf.cast(tf.equal(_apart(rows, columns), _in_reach(k)), dtype)


def diag(x: Any, k: int) -> Any:
    """A matrix with a vector on diagonal `k`; of a matrix, that diagonal.

    Raises:
        ValueError: it is neither.
    """
    if x.ndim == 1:
        return tf.linalg.diag(x, k=k)
    if x.ndim != 2:
        raise ValueError(f"`x` must be 1d or 2d. Received: x.shape={x.shape}")
    return diagonal(x, k)


def vander(x: Any, count: Any, increasing: bool) -> Any:
    """The powers of each element of a vector, in a row.

    Raises:
        ValueError: it is no vector.
    """
    if x.ndim != 1:
        raise ValueError(f"Input tensor must be 1-dimensional. Received: x.shape={x.shape}")
    length = size_of(x, 0)
    count = length if count is None else one_size(count, "N")
    powers = tf.math.cumprod(tf.broadcast_to(x[:, tf.newaxis], [length, count]), axis=1, exclusive=True)
    return powers if increasing else tf.reverse(powers, [1])
