"""Products of vectors, matrices and tensors; polynomials."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import public
from twofold._ops import numpy_picking as _picking
from twofold._ops import numpy_products as _shared

from ._reductions import sum as _sum
from ._rules import meeting, promoted, same, tensor

__all__ = ["cross", "dot", "einsum", "inner", "kron", "matmul", "outer", "polyval", "tensordot", "trace", "vdot"]


@public
def matmul(x1: Any, x2: Any) -> Any:
    """The product of matrices; leading axes broadcast.

    Args:
        x1: [..., n, k], or a vector [k], which is a row.
        x2: [..., k, m], or a vector [k], which is a column.
    Returns:
        [..., n, m]; the axis of a vector is left out.

    >>> import twofold as tf
    >>> tf.experimental.numpy.matmul([[1, 2], [3, 4]], [1, 1]).numpy().tolist()
    [3, 7]
    """
    return _shared.matmul(*same(x1, x2))


@public
def dot(a: Any, b: Any) -> Any:
    """The sums of products along the last axis of `a` and the last but one of `b`, or its only one.

    >>> import twofold as tf
    >>> tf.experimental.numpy.dot([1, 2], [3, 4]).numpy().tolist()
    11
    """
    return _shared.dot(*same(a, b))


@public
def inner(a: Any, b: Any) -> Any:
    """The sums of products along the last axes.

    >>> import twofold as tf
    >>> tf.experimental.numpy.inner([[1, 2], [3, 4]], [1, 1]).numpy().tolist()
    [3, 7]
    """
    return _shared.inner(*same(a, b))


@public
def vdot(a: Any, b: Any) -> Any:
    """The sum of the products of all elements, those of `a` conjugated.

    >>> import twofold as tf
    >>> tf.experimental.numpy.vdot([[1, 2]], [[3], [4]]).numpy().tolist()
    11
    """
    return _shared.vdot(*same(a, b))


@public
def outer(a: Any, b: Any) -> Any:
    """The products of all elements of one tensor with all of another: [size of a, size of b].

    >>> import twofold as tf
    >>> tf.experimental.numpy.outer([1, 2], [3, 4]).numpy().tolist()
    [[3, 4], [6, 8]]
    """
    return _shared.outer(*same(a, b))


@public
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """The sums of products along axes of two tensors.

    Args:
        a, b: tensors.
        axes: how many, the last of `a` and the first of `b`; or the axes of each, as two sequences.

    >>> import twofold as tf
    >>> tf.experimental.numpy.tensordot([[1, 2]], [[3], [4]], axes=1).numpy().tolist()
    [[11]]
    """
    a, b = same(a, b)
    return _shared.tensordot(a, b, axes)


@public
def kron(a: Any, b: Any) -> Any:
    """Kronecker's product: `b` in the place of each element of `a`, times that element.

    >>> import twofold as tf
    >>> tf.experimental.numpy.kron([1, 10], [1, 2]).numpy().tolist()
    [1, 2, 10, 20]
    """
    return _shared.kron(*same(a, b))


@public
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """The vector product of vectors of two or three numbers; of two numbers each, its third component.

    Args:
        a, b: tensors; the axes that are not of vectors broadcast.
        axisa, axisb, axisc: the axis of vectors in a, in b and in the result.
        axis: the three of them at once.

    >>> import twofold as tf
    >>> tf.experimental.numpy.cross([1, 0, 0], [0, 1, 0]).numpy().tolist()
    [0, 0, 1]
    """
    a, b = same(a, b)
    return _shared.cross(a, b, axisa, axisb, axisc, axis)


@public
def einsum(subscripts: str, *operands: Any, **kwargs: Any) -> Any:
    """Sums of products, told by the letters of the axes (Einstein's convention).

    Args:
        subscripts: such as "ij,jk->ik".
        operands: tensors; their dtypes meet.
        kwargs: `casting="safe"` and `optimize`, as `tf.einsum` takes it.
    Raises:
        ValueError: `casting` is another.

    >>> import twofold as tf
    >>> tf.experimental.numpy.einsum("ij->j", [[1, 2], [3, 4]]).numpy().tolist()
    [4, 6]
    """
    casting, optimize = kwargs.pop("casting", "safe"), kwargs.pop("optimize", False)
    if casting != "safe":
        raise ValueError(f'einsum: casting must be "safe"; got {casting!r}.')
    if kwargs:
        raise TypeError(f"einsum: unknown arguments {', '.join(kwargs)}.")
    tensors = promoted(operands, meeting(*operands))
    return tf.einsum(subscripts, *tensors, optimize="optimal" if optimize is True else optimize or "greedy")


@public
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """The sums of diagonals.

    Args:
        a: a tensor of two axes or more.
        offset: how far above the main diagonal.
        axis1, axis2: the axes.
        dtype: the dtype in which the elements are added.

    >>> import twofold as tf
    >>> tf.experimental.numpy.trace([[1, 2], [3, 4]]).numpy().tolist()
    5
    """
    x = tensor(a)
    whole = dtype is None and not offset and x.dtype.is_integer  # which keep their dtype, as in TensorFlow
    return _sum(_picking.diagonal(x, offset, axis1, axis2), -1, x.dtype if whole else dtype)


@public
def polyval(p: Any, x: Any) -> Any:
    """The value of a polynomial at `x`.

    Args:
        p: its coefficients, the highest power first.
        x: a tensor.

    >>> import twofold as tf
    >>> tf.experimental.numpy.polyval([1, 2], 3).numpy().tolist()
    5
    """
    p, x = same(p, x)
    return tf.math.polyval(tf.unstack(p) if p.ndim else [p], x)
