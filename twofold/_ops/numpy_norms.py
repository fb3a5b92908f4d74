"""Norms of vectors and matrices with NumPy's orders, of floating or complex tensors."""

from __future__ import annotations

from typing import Any

import twofold as tf

from .numpy_arrays import moved

__all__ = ["matrix_norm", "vector_norm"]


def vector_norm(x: Any, order: Any, axis: Any, keepdims: bool) -> Any:
    """The norms of vectors along axes, of an order; None is 2."""
    if order == 0:
        return tf.reduce_sum(tf.cast(tf.not_equal(x, 0), tf.math.real(x).dtype), axis=axis, keepdims=keepdims)
    if order == -float("inf"):
        return tf.reduce_min(tf.abs(x), axis=axis, keepdims=keepdims)
    if order is None or (order != float("inf") and order > 0):
        return tf.norm(x, "euclidean" if order is None else order, axis=axis, keepdims=keepdims)
    if order == float("inf"):
        return tf.reduce_max(tf.abs(x), axis=axis, keepdims=keepdims)
    size = tf.abs(x)
    power = tf.constant(order, size.dtype)
    return tf.pow(tf.reduce_sum(tf.pow(size, power), axis=axis, keepdims=keepdims), 1 / power)


def matrix_norm(x: Any, order: Any, axes: tuple[int, int], keepdims: bool) -> Any:
    """The norms of matrices in two axes: those of columns, rows or singular values.

    Raises:
        ValueError: there is no norm of that order.
    """
    if order in (1, -1, float("inf"), -float("inf")):
        along = 0 if order in (1, -1) else 1
        sums = tf.reduce_sum(tf.abs(x), axis=axes[along], keepdims=True)
        reduce = tf.reduce_max if order > 0 else tf.reduce_min
        result = reduce(sums, axis=axes[1 - along], keepdims=True)
        return result if keepdims else tf.squeeze(result, list(axes))
    if order not in ("nuc", 2, -2):
        raise ValueError(f"Invalid `ord` argument for matrices. Received: ord={order!r}")
    values = tf.linalg.svd(moved(x, axes, (-2, -1)), compute_uv=False)
    reduce = {"nuc": tf.reduce_sum, 2: tf.reduce_max, -2: tf.reduce_min}[order]
    result = reduce(values, axis=-1)
    for axis in sorted(axes) if keepdims else ():
        result = tf.expand_dims(result, axis)
    return result
