"""`twofold.array_api.linalg`: factors, inverses, products and norms of matrices."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import twofold as tf
from twofold._front.api import listed, public
from twofold._front.namespace import publish
from twofold._ops import numpy_norms as _norms
from twofold._ops import numpy_picking as _picking
from twofold._ops import numpy_products as _products
from twofold._ops.numpy_arrays import moved
from twofold._ops.numpy_operands import axes_of

from ._rules import operand, operands
from ._statistics import sum as _sum

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
    "trace", "vecdot", "vector_norm",
]


class EighResult(NamedTuple):
    """Eigenvalues in rising order, and their vectors in columns."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """A unitary and an upper triangular factor."""

    Q: Any
    R: Any


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its size."""

    sign: Any
    logabsdet: Any


class SVDResult(NamedTuple):
    """Left singular vectors in columns, singular values in falling order, right vectors in rows."""

    U: Any
    S: Any
    Vh: Any


# -- products -------------------------------------------------------------------------------------
@public
def matmul(x1: Any, x2: Any, /) -> Any:
    """The product of matrices; a vector first is a row, and second a column.

    >>> import twofold.array_api as xp
    >>> xp.linalg.matmul(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 1])).numpy().tolist()
    [3, 7]
    """
    x1, x2 = operands(x1, x2)
    if not x1.ndim or not x2.ndim:
        raise ValueError("matmul: tensors without axes cannot be multiplied as matrices.")
    return _products.matmul(x1, x2)


@public
def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """The sums of products along axes of two tensors.

    Args:
        x1, x2: tensors.
        axes: how many, the last of x1 and the first of x2; or the axes of each, as two sequences.

    >>> import twofold.array_api as xp
    >>> xp.linalg.tensordot(xp.asarray([[1, 2]]), xp.asarray([[3], [4]]), axes=1).numpy().tolist()
    [[11]]
    """
    x1, x2 = operands(x1, x2)
    return _products.tensordot(x1, x2, axes)


@public
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The sums of products of vectors along an axis, those of `x1` conjugated; the others broadcast.

    Raises:
        ValueError: the vectors have different sizes.

    >>> import twofold.array_api as xp
    >>> xp.linalg.vecdot(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 1])).numpy().tolist()
    [3, 7]
    """
    x1, x2 = operands(x1, x2)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: sizes differ along axis {axis} of shapes {x1.shape} and {x2.shape}.")
    first = tf.math.conj(x1) if x1.dtype.is_complex else x1
    return tf.reduce_sum(moved(first, axis, -1) * moved(x2, axis, -1), axis=-1)


@public
def outer(x1: Any, x2: Any, /) -> Any:
    """The products of all elements of one vector with all of another.

    >>> import twofold.array_api as xp
    >>> xp.linalg.outer(xp.asarray([1, 2]), xp.asarray([3, 4])).numpy().tolist()
    [[3, 4], [6, 8]]
    """
    return _products.outer(*operands(x1, x2))


@public
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The vector product of vectors of three numbers along an axis; the others broadcast.

    Raises:
        ValueError: they are not of three numbers.

    >>> import twofold.array_api as xp
    >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0])).numpy().tolist()
    [0, 0, 1]
    """
    x1, x2 = operands(x1, x2)
    if not x1.shape[axis] == x2.shape[axis] == 3:
        raise ValueError(f"cross: vectors must have 3 numbers; got shapes {x1.shape} and {x2.shape}, axis {axis}.")
    a, b = tf.unstack(moved(x1, axis, -1), axis=-1), tf.unstack(moved(x2, axis, -1), axis=-1)
    parts = [a[i] * b[j] - a[j] * b[i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return moved(tf.stack(parts, axis=-1), -1, axis)


@public
def matrix_transpose(x: Any, /) -> Any:
    """Matrices with rows and columns exchanged.

    >>> import twofold.array_api as xp
    >>> xp.linalg.matrix_transpose(xp.asarray([[1, 2], [3, 4]])).numpy().tolist()
    [[1, 3], [2, 4]]
    """
    return tf.linalg.matrix_transpose(operand(x))


@public
def matrix_power(x: Any, n: int, /) -> Any:
    """Square matrices multiplied `n` times, or their inverses where it is negative.

    >>> import twofold.array_api as xp
    >>> xp.linalg.matrix_power(xp.asarray([[1.0, 1.0], [0.0, 1.0]]), 3).numpy().tolist()
    [[1.0, 3.0], [0.0, 1.0]]
    """
    x = operand(x) if n >= 0 else inv(x)
    result, power = tf.broadcast_to(tf.eye(x.shape[-1], dtype=x.dtype), tf.shape(x)), abs(n)
    while power:
        if power & 1:
            result = tf.matmul(result, x)
        power >>= 1
        x = tf.matmul(x, x) if power else x
    return result


# -- parts ----------------------------------------------------------------------------------------
@public
def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of matrices, along a last axis.

    >>> import twofold.array_api as xp
    >>> xp.linalg.diagonal(xp.asarray([[1, 2], [3, 4]]), offset=1).numpy().tolist()
    [2]
    """
    return _picking.diagonal(operand(x), offset, -2, -1)


@public
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of diagonals.

    >>> import twofold.array_api as xp
    >>> int(xp.linalg.trace(xp.asarray([[1, 2], [3, 4]])))
    5
    """
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


# -- factors and inverses -------------------------------------------------------------------------
@public
def cholesky(x: Any, /, *, upper: bool = False) -> Any:
    """The triangular factor L of Hermitian positive definite matrices L Lᴴ, or Lᴴ.

    >>> import twofold.array_api as xp
    >>> xp.linalg.cholesky(xp.asarray([[4.0, 2.0], [2.0, 2.0]])).numpy().tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    factor = tf.linalg.cholesky(operand(x))
    return tf.linalg.adjoint(factor) if upper else factor


@public
def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """Unitary and upper triangular factors of matrices.

    Args:
        x: matrices.
        mode: "reduced", or "complete" for a square unitary factor.
    Raises:
        ValueError: the mode is another.

    >>> import twofold.array_api as xp
    >>> xp.linalg.qr(xp.asarray([[1.0], [0.0]])).Q.shape
    TensorShape([2, 1])
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f'qr: mode must be "reduced" or "complete"; got {mode!r}.')
    return QRResult(*tf.linalg.qr(operand(x), full_matrices=mode == "complete"))


@public
def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular values and vectors: x = U diag(S) Vh.

    Args:
        x: matrices.
        full_matrices: whether U and Vh are square.

    >>> import twofold.array_api as xp
    >>> xp.linalg.svd(xp.asarray([[3.0, 0.0], [0.0, 4.0]])).S.numpy().tolist()
    [4.0, 3.0]
    """
    values, left, right = tf.linalg.svd(operand(x), full_matrices=full_matrices)
    return SVDResult(left, values, tf.linalg.adjoint(right))


@public
def svdvals(x: Any, /) -> Any:
    """Singular values, in falling order.

    >>> import twofold.array_api as xp
    >>> xp.linalg.svdvals(xp.asarray([[3.0, 0.0], [0.0, 4.0]])).numpy().tolist()
    [4.0, 3.0]
    """
    return tf.linalg.svd(operand(x), compute_uv=False)


@public
def eigh(x: Any, /) -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices.

    >>> import twofold.array_api as xp
    >>> xp.linalg.eigh(xp.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.numpy().tolist()
    [1.0, 2.0]
    """
    values, vectors = tf.linalg.eigh(operand(x))
    return EighResult(tf.math.real(values), vectors)


@public
def eigvalsh(x: Any, /) -> Any:
    """Eigenvalues of Hermitian matrices.

    >>> import twofold.array_api as xp
    >>> xp.linalg.eigvalsh(xp.asarray([[2.0, 0.0], [0.0, 1.0]])).numpy().tolist()
    [1.0, 2.0]
    """
    return tf.math.real(tf.linalg.eigvalsh(operand(x)))


@public
def det(x: Any, /) -> Any:
    """Determinants.

    >>> import twofold.array_api as xp
    >>> float(xp.linalg.det(xp.asarray([[3.0, 0.0], [0.0, 2.0]])))
    6.0
    """
    return tf.linalg.det(operand(x))


@public
def slogdet(x: Any, /) -> SlogdetResult:
    """The signs of determinants, and the logarithms of their sizes.

    >>> import twofold.array_api as xp
    >>> [float(t) for t in xp.linalg.slogdet(xp.asarray([[1.0, 0.0], [0.0, -1.0]]))]
    [-1.0, 0.0]
    """
    sign, log = tf.linalg.slogdet(operand(x))
    return SlogdetResult(sign, tf.math.real(log))


@public
def inv(x: Any, /) -> Any:
    """Inverses of square matrices.

    Raises:
        tf.errors.InvalidArgumentError: a matrix has none.

    >>> import twofold.array_api as xp
    >>> xp.linalg.inv(xp.asarray([[2.0, 0.0], [0.0, 4.0]])).numpy().tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return tf.linalg.inv(operand(x))


@public
def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """Pseudoinverses of matrices.

    Args:
        x: matrices.
        rtol: singular values up to this share of the largest count as 0; by default max(rows, columns) * eps.

    >>> import twofold.array_api as xp
    >>> xp.linalg.pinv(xp.asarray([[2.0], [0.0]])).numpy().tolist()
    [[0.5, 0.0]]
    """
    x = operand(x)
    return tf.linalg.pinv(x, rcond=tf.cast(_share(x) if rtol is None else rtol, x.dtype.real_dtype))


def _share(x: Any) -> float:
    return max(x.shape[-1], x.shape[-2]) * float(np.finfo(x.dtype.real_dtype.as_numpy_dtype).eps)


@public
def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """How many singular values matrices have that are not 0.

    Args:
        x: matrices.
        rtol: singular values up to this share of the largest count as 0; by default max(rows, columns) * eps.

    >>> import twofold.array_api as xp
    >>> int(xp.linalg.matrix_rank(xp.asarray([[1.0, 2.0], [2.0, 4.0]])))
    1
    """
    x = operand(x)
    values = svdvals(x)
    share = tf.cast(_share(x) if rtol is None else rtol, values.dtype)
    largest = tf.reduce_max(values, axis=-1, keepdims=True)
    return tf.math.count_nonzero(values > largest * share[..., tf.newaxis], axis=-1, dtype=tf.int32)


@public
def solve(x1: Any, x2: Any, /) -> Any:
    """What multiplied by square matrices `x1` gives `x2`: matrices, or a vector.

    >>> import twofold.array_api as xp
    >>> xp.linalg.solve(xp.asarray([[2.0, 0.0], [0.0, 4.0]]), xp.asarray([2.0, 4.0])).numpy().tolist()
    [1.0, 1.0]
    """
    x1, x2 = operands(x1, x2)
    is_vector = x2.ndim == 1
    right = x2[:, tf.newaxis] if is_vector else x2
    batch = tf.broadcast_dynamic_shape(tf.shape(x1)[:-2], tf.shape(right)[:-2])
    left = tf.broadcast_to(x1, tf.concat([batch, tf.shape(x1)[-2:]], 0))
    solved = tf.linalg.solve(left, tf.broadcast_to(right, tf.concat([batch, tf.shape(right)[-2:]], 0)))
    return tf.squeeze(solved, -1) if is_vector else solved


# -- norms ----------------------------------------------------------------------------------------
@public
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norms of matrices.

    Args:
        x: matrices.
        keepdims: whether the two axes stay, of size 1.
        ord: "fro", "nuc", 1, -1, 2, -2, inf or -inf.
    Raises:
        ValueError: there is no such norm.

    >>> import twofold.array_api as xp
    >>> float(xp.linalg.matrix_norm(xp.asarray([[3.0, 4.0]])))
    5.0
    """
    x = operand(x)
    axes = (x.ndim - 2, x.ndim - 1)
    if ord == "fro":
        return _norms.vector_norm(x, None, list(axes), keepdims)
    return _norms.matrix_norm(x, ord, axes, keepdims)


@public
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norms of vectors along axes; all of `x` is one by default.

    Args:
        x: a tensor.
        axis: the axis or axes of the vectors.
        keepdims: whether they stay, of size 1.
        ord: a number, inf or -inf.

    >>> import twofold.array_api as xp
    >>> float(xp.linalg.vector_norm(xp.asarray([3.0, 4.0])))
    5.0
    """
    x = operand(x)
    axes = axes_of(tuple(listed(axis, "axis")) if isinstance(axis, (list, tuple)) else axis, x.ndim)
    kept = [n for n in range(x.ndim) if n not in axes]
    sizes = [x.shape[n] for n in kept]
    vectors = tf.reshape(tf.transpose(x, [*kept, *axes]), [*sizes, math.prod(x.shape[n] for n in axes)])
    norms = tf.math.real(_norms.vector_norm(vectors, None if ord == 2 else ord, -1, False))
    return tf.reshape(norms, [1 if n in axes else x.shape[n] for n in range(x.ndim)]) if keepdims else norms


publish(__name__)
