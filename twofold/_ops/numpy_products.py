"""Products of vectors, matrices and tensors with NumPy's semantics, of two tensors of one dtype."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import listed

from .numpy_arrays import moved
from .numpy_operands import axes_of, shape_of

__all__ = ["contracted", "cross", "dot", "inner", "kron", "matmul", "outer", "summed", "tensordot", "vdot"]


def summed(x: Any) -> tuple[Any, Any]:
    """A tensor in a dtype whose products can be summed, and its own: bools are multiplied as int32."""
    return (tf.cast(x, tf.int32) if x.dtype.is_bool else x), x.dtype


def contracted(x1: Any, x2: Any, axes: Any) -> Any:
    """The sums of products along axes; of bools, whether one of them is true."""
    x1, own = summed(x1)
    return tf.cast(tf.tensordot(x1, summed(x2)[0], axes), own)


def matmul(x1: Any, x2: Any) -> Any:
    """The product of matrices; a vector first is a row, and second a column."""
    x1, own = summed(x1)
    x2, _ = summed(x2)
    row, column = x1.ndim == 1, x2.ndim == 1
    x1 = tf.expand_dims(x1, 0) if row else x1
    x2 = tf.expand_dims(x2, 1) if column else x2
    product = tf.matmul(x1, x2)
    product = tf.squeeze(product, -1) if column else product
    return tf.cast(tf.squeeze(product, -1 if column else -2) if row else product, own)


def dot(x1: Any, x2: Any) -> Any:
    """The sums of products along the last axis and the last but one, or the only one."""
    if not x1.ndim or not x2.ndim:
        return tf.logical_and(x1, x2) if x1.dtype.is_bool else x1 * x2
    return contracted(x1, x2, [[x1.ndim - 1], [max(x2.ndim - 2, 0)]])


def inner(x1: Any, x2: Any) -> Any:
    """The sums of products along the last axes."""
    if not x1.ndim or not x2.ndim:
        return tf.logical_and(x1, x2) if x1.dtype.is_bool else x1 * x2
    return contracted(x1, x2, [[x1.ndim - 1], [x2.ndim - 1]])


def vdot(x1: Any, x2: Any) -> Any:
    """The sum of the products of all elements, those of `x1` conjugated."""
    x1, x2 = (tf.reshape(x, [-1]) for x in (x1, x2))
    return contracted(tf.math.conj(x1) if x1.dtype.is_complex else x1, x2, 1)


def outer(x1: Any, x2: Any) -> Any:
    """The products of all elements of one tensor with all of another."""
    column, row = tf.reshape(x1, [-1, 1]), tf.reshape(x2, [1, -1])
    return tf.logical_and(column, row) if x1.dtype.is_bool else column * row


def tensordot(x1: Any, x2: Any, axes: Any) -> Any:
    """The sums of products along axes of two tensors."""
    if not isinstance(axes, int):
        first, second = (tuple(a) if isinstance(a, (list, tuple)) else (a,) for a in listed(axes, "axes"))
        axes = [list(axes_of(first, x1.ndim)), list(axes_of(second, x2.ndim))]
    return contracted(x1, x2, axes)


def kron(x1: Any, x2: Any) -> Any:
    """Kronecker's product: `x2` in the place of each element of `x1`, times that element."""
    rank = max(x1.ndim, x2.ndim)
    first = [1] * (rank - x1.ndim) + list(shape_of(x1))
    second = [1] * (rank - x2.ndim) + list(shape_of(x2))
    apart = tf.reshape(x1, [n for size in first for n in (size, 1)])
    within = tf.reshape(x2, [n for size in second for n in (1, size)])
    products = tf.logical_and(apart, within) if x1.dtype.is_bool else apart * within
    return tf.reshape(products, [a * b for a, b in zip(first, second, strict=True)])


def cross(x1: Any, x2: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """The vector product of vectors of two or three numbers; of two numbers each, its third component."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x1, x2 = moved(x1, axisa, -1), moved(x2, axisb, -1)
    sizes = x1.shape[-1], x2.shape[-1]
    if not set(sizes) <= {2, 3}:
        raise ValueError(f"cross needs vectors of 2 or 3 numbers; got sizes {sizes[0]} and {sizes[1]}.")
    whole = [x if x.shape[-1] == 3 else tf.pad(x, [[0, 0]] * (x.ndim - 1) + [[0, 1]]) for x in (x1, x2)]
    shape = tf.broadcast_dynamic_shape(tf.shape(whole[0]), tf.shape(whole[1]))
    product = tf.linalg.cross(tf.broadcast_to(whole[0], shape), tf.broadcast_to(whole[1], shape))
    return product[..., 2] if sizes == (2, 2) else moved(product, -1, axisc)
