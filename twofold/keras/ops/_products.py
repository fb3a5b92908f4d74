"""Products of vectors, matrices and tensors, and functions made of these, with NumPy's names."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._ops import numpy_products as _shared

from ..keras_ops import operation
from ..operands import floating, same, tensor

__all__ = [
    "corrcoef", "correlate", "cross", "dot", "einsum", "inner", "kron", "matmul", "outer", "tensordot", "trace", "vdot",
]


@operation("numpy")
def matmul(x1: Any, x2: Any) -> Any:
    """The product of matrices; leading axes broadcast.

    Args:
        x1: [..., n, k], or a vector [k], which is a row.
        x2: [..., k, m], or a vector [k], which is a column.
    Returns:
        [..., n, m]; the axis of a vector is left out. Products of int8 are int32.

    >>> import twofold as tf
    >>> tf.keras.ops.matmul([[1, 2], [3, 4]], [1, 1]).numpy().tolist()
    [3, 7]
    """
    x1, x2 = tensor(x1), tensor(x2)
    small = x1.dtype == x2.dtype == tf.int8
    x1, x2 = same(x1, x2, at_least=tf.int32 if small else None)
    return _shared.matmul(x1, x2)


@operation("numpy")
def dot(x1: Any, x2: Any) -> Any:
    """The sums of products along the last axis of `x1` and the last but one of `x2`, or its only one.

    Args:
        x1, x2: tensors; with a number the product is elementwise.

    >>> import twofold as tf
    >>> tf.keras.ops.dot([1, 2], [3, 4]).numpy().tolist()
    11
    """
    return _shared.dot(*same(tensor(x1), tensor(x2)))


@operation("numpy")
def inner(x1: Any, x2: Any) -> Any:
    """The sums of products along the last axes.

    >>> import twofold as tf
    >>> tf.keras.ops.inner([[1, 2], [3, 4]], [1, 1]).numpy().tolist()
    [3, 7]
    """
    return _shared.inner(*same(tensor(x1), tensor(x2)))


@operation("numpy")
def vdot(x1: Any, x2: Any) -> Any:
    """The sum of the products of all elements, those of `x1` conjugated.

    >>> import twofold as tf
    >>> tf.keras.ops.vdot([[1, 2]], [[3], [4]]).numpy().tolist()
    11
    """
    return _shared.vdot(*same(tensor(x1), tensor(x2)))


@operation("numpy")
def outer(x1: Any, x2: Any) -> Any:
    """The products of all elements of one tensor with all of another: [size of x1, size of x2].

    >>> import twofold as tf
    >>> tf.keras.ops.outer([1, 2], [3, 4]).numpy().tolist()
    [[3, 4], [6, 8]]
    """
    return _shared.outer(*same(tensor(x1), tensor(x2)))


@operation("numpy")
def tensordot(x1: Any, x2: Any, axes: Any = 2) -> Any:
    """The sums of products along axes of two tensors.

    Args:
        x1, x2: tensors.
        axes: how many, the last of x1 and the first of x2; or the axes of each, as two sequences.

    >>> import twofold as tf
    >>> tf.keras.ops.tensordot([[1, 2]], [[3], [4]], axes=1).numpy().tolist()
    [[11]]
    """
    x1, x2 = same(tensor(x1), tensor(x2))
    return _shared.tensordot(x1, x2, axes)


@operation("numpy", tensors="operands")
def einsum(subscripts: str, *operands: Any, **kwargs: Any) -> Any:
    """Sums of products, told by the letters of the axes (Einstein's convention).

    Args:
        subscripts: such as "ij,jk->ik".
        operands: tensors; their dtypes meet. Products of int8 are int32.
        kwargs: `optimize`, accepted for what it means to Keras; other arguments are of `tf.einsum`.

    >>> import twofold as tf
    >>> tf.keras.ops.einsum("ij->j", [[1, 2], [3, 4]]).numpy().tolist()
    [4, 6]
    """
    tensors = [tensor(x) for x in operands]
    small = all(x.dtype == tf.int8 for x in tensors)
    summed = [_shared.summed(x) for x in same(*tensors, at_least=tf.int32 if small else None)]
    return tf.cast(tf.einsum(subscripts, *[x for x, _ in summed], **kwargs), summed[0][1])


@operation("numpy")
def kron(x1: Any, x2: Any) -> Any:
    """Kronecker's product: `x2` in the place of each element of `x1`, times that element.

    >>> import twofold as tf
    >>> tf.keras.ops.kron([1, 10], [1, 2]).numpy().tolist()
    [1, 2, 10, 20]
    """
    return _shared.kron(*same(tensor(x1), tensor(x2)))


@operation("numpy")
def cross(x1: Any, x2: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """The vector product of vectors of two or three numbers; of two numbers each, its third component.

    Args:
        x1, x2: tensors; the axes that are not of vectors broadcast.
        axisa, axisb, axisc: the axis of vectors in x1, in x2 and in the result.
        axis: the three of them at once.

    >>> import twofold as tf
    >>> tf.keras.ops.cross([1, 0, 0], [0, 1, 0]).numpy().tolist()
    [0, 0, 1]
    """
    x1, x2 = same(tensor(x1), tensor(x2))
    return _shared.cross(x1, x2, axisa, axisb, axisc, axis)


@operation("numpy")
def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The sums of diagonals; arguments as for `diagonal`. Small integers are added as int32 or uint32.

    >>> import twofold as tf
    >>> tf.keras.ops.trace([[1, 2], [3, 4]]).numpy().tolist()
    5
    """
    from ._picking import diagonal
    from ._reductions import sum
    return sum(diagonal(x, offset, axis1, axis2), axis=-1)


@operation("numpy")
def correlate(x1: Any, x2: Any, mode: str = "valid") -> Any:
    """The sums of products of two vectors, one moved along the other.

    Args:
        x1, x2: vectors.
        mode: "valid" where one is all beside the other, "same" for as many as the longer has, "full" for all.
    Raises:
        ValueError: the mode is another, or these are no vectors.

    >>> import twofold as tf
    >>> tf.keras.ops.correlate([1.0, 2.0, 3.0], [0.0, 1.0], "full").numpy().tolist()
    [1.0, 2.0, 3.0, 0.0]
    """
    if mode not in ("valid", "same", "full"):
        raise ValueError(f'mode must be "valid", "same" or "full"; got {mode!r}.')
    x1, x2 = (floating(x) for x in same(tensor(x1), tensor(x2)))
    if x1.ndim != 1 or x2.ndim != 1 or x1.shape[0] is None or x2.shape[0] is None:
        raise ValueError(f"correlate needs vectors of known sizes; got shapes {x1.shape} and {x2.shape}.")
    long, short, turned = x1, x2, False
    if x1.shape[0] < x2.shape[0]:
        long, short, turned = x2, x1, True
    k = short.shape[0]
    more = {"valid": (0, 0), "same": (k // 2, k - 1 - k // 2), "full": (k - 1, k - 1)}[mode]
    if turned:
        more = more[::-1]
    windows = tf.signal.frame(tf.pad(long, [more]), k, 1)
    sums = tf.reduce_sum(windows * short, axis=1)
    return tf.reverse(sums, [0]) if turned else sums


@operation("numpy")
def corrcoef(x: Any) -> Any:
    """The correlations of the rows of a matrix with each other.

    >>> import twofold as tf
    >>> tf.keras.ops.corrcoef([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]).numpy().round(3).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    x = floating(x)
    rows = x if x.ndim == 2 else tf.reshape(x, [1, -1])
    apart = rows - tf.reduce_mean(rows, axis=1, keepdims=True)
    products = tf.matmul(apart, apart, transpose_b=True)
    sizes = tf.sqrt(tf.linalg.diag_part(products))
    correlations = tf.clip_by_value(products / sizes[:, tf.newaxis] / sizes, -1.0, 1.0)
    return correlations if x.ndim == 2 else tf.reshape(correlations, [])


