"""Functions of matrices (`tf.keras.ops.linalg`): factors, inverses, norms, systems of equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.api import listed
from twofold._front.namespace import publish
from twofold._ops.numpy_norms import matrix_norm, vector_norm

from ..keras_ops import operation
from ..operands import axes_of, floating, same, tensor

__all__ = [
    "cholesky", "cholesky_inverse", "det", "eig", "eigh", "inv", "jvp", "lstsq", "lu_factor", "matrix_rank", "norm",
    "pinv", "qr", "slogdet", "solve", "solve_triangular", "svd",
]


def _adjoint(x: Any) -> Any:
    return tf.linalg.adjoint(x)


@operation("linalg")
def cholesky(x: Any, upper: bool = False) -> Any:
    """The triangular factor L of Hermitian positive definite matrices L Lᴴ.

    Args:
        x: [..., n, n].
        upper: whether to return Lᴴ.
    Raises:
        tf.errors.InvalidArgumentError: a matrix is not positive definite.

    >>> import twofold as tf
    >>> tf.keras.ops.cholesky([[4.0, 2.0], [2.0, 2.0]]).numpy().tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    factor = tf.linalg.cholesky(floating(x))
    return _adjoint(factor) if upper else factor


@operation("linalg")
def cholesky_inverse(x: Any, upper: bool = False) -> Any:
    """The inverse of the matrix whose triangular factor is given.

    Args:
        x: what `cholesky` gives, [..., n, n].
        upper: whether it is the upper one.

    >>> import twofold as tf
    >>> tf.keras.ops.cholesky_inverse([[2.0, 0.0], [0.0, 1.0]]).numpy().tolist()
    [[0.25, 0.0], [0.0, 1.0]]
    """
    x = floating(x)
    unit = tf.eye(tf.shape(x)[-1], dtype=x.dtype)
    return tf.linalg.cholesky_solve(_adjoint(x) if upper else x, tf.broadcast_to(unit, tf.shape(x)))


@operation("linalg")
def det(x: Any) -> Any:
    """The determinants of square matrices [..., n, n].

    >>> import twofold as tf
    >>> tf.keras.ops.det([[2.0, 1.0], [0.0, 3.0]]).numpy().tolist()
    6.0
    """
    return tf.linalg.det(floating(x))


@operation("numpy")
def slogdet(x: Any) -> Any:
    """The signs of determinants, and the logarithms of their sizes.

    >>> import twofold as tf
    >>> [float(t) for t in tf.keras.ops.slogdet([[-1.0]])]
    [-1.0, 0.0]
    """
    return tuple(tf.linalg.slogdet(floating(x)))


@operation("linalg")
def inv(x: Any) -> Any:
    """The inverses of square matrices [..., n, n].

    Raises:
        tf.errors.InvalidArgumentError: a matrix has none.

    >>> import twofold as tf
    >>> tf.keras.ops.inv([[2.0, 0.0], [0.0, 4.0]]).numpy().tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return tf.linalg.inv(floating(x))


@operation("linalg")
def eig(x: Any) -> Any:
    """The eigenvalues and eigenvectors of square matrices, complex.

    Returns:
        [..., n] and [..., n, n], whose columns are the vectors.

    >>> import twofold as tf
    >>> tf.keras.ops.eig([[2.0, 0.0], [0.0, 2.0]])[0].numpy().tolist()
    [(2+0j), (2+0j)]
    """
    return tuple(tf.linalg.eig(floating(x)))


@operation("linalg")
def eigh(x: Any) -> Any:
    """The eigenvalues, rising, and eigenvectors of Hermitian matrices.

    Returns:
        [..., n] and [..., n, n], whose columns are the vectors.

    >>> import twofold as tf
    >>> tf.keras.ops.eigh([[3.0, 0.0], [0.0, 2.0]])[0].numpy().tolist()
    [2.0, 3.0]
    """
    return tuple(tf.linalg.eigh(floating(x)))


@operation("linalg")
def lu_factor(x: Any) -> Any:
    """The triangular factors of square matrices in one matrix, and the row of them that each row becomes.

    Args:
        x: [..., n, n].
    Raises:
        tf.errors.InvalidArgumentError: a matrix is singular.

    >>> import twofold as tf
    >>> tf.keras.ops.lu_factor([[1.0, 2.0], [4.0, 4.0]])[0].numpy().tolist()
    [[4.0, 4.0], [0.25, 1.0]]
    """
    factors, order = tf.linalg.lu(floating(x))
    return factors, tf.argsort(order, axis=-1)


@operation("linalg")
def qr(x: Any, mode: str = "reduced") -> Any:
    """The factors of matrices: Q with orthonormal columns, and R, upper triangular.

    Args:
        x: [..., n, m].
        mode: "reduced", or "complete" for a square Q.
    Raises:
        ValueError: the mode is another.

    >>> import twofold as tf
    >>> tf.keras.ops.qr(tf.ones([3, 2]), mode="complete")[0].shape
    TensorShape([3, 3])
    """
    if mode not in ("reduced", "complete"):
        raise ValueError("`mode` argument value not supported. Expected one of {'reduced', 'complete'}. Received: "
                         f"mode={mode}")
    return tuple(tf.linalg.qr(floating(x), full_matrices=mode == "complete"))


@operation("linalg", "SVD")
def svd(x: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """The singular value decomposition U diag(S) Vᴴ.

    Args:
        x: [..., n, m].
        full_matrices: whether U and V are square.
        compute_uv: whether they are returned.
    Returns:
        U, S (falling) and Vᴴ, or S alone.

    >>> import twofold as tf
    >>> tf.keras.ops.svd([[3.0, 0.0], [0.0, 4.0]], compute_uv=False).numpy().tolist()
    [4.0, 3.0]
    """
    x = floating(x)
    if not compute_uv:
        return tf.linalg.svd(x, full_matrices=full_matrices, compute_uv=False)
    s, u, v = tf.linalg.svd(x, full_matrices=full_matrices)
    return u, s, _adjoint(v)


@operation("linalg")
def solve(a: Any, b: Any) -> Any:
    """The solutions x of systems of linear equations a x = b.

    Args:
        a: [..., n, n].
        b: [..., n, m], or vectors [..., n].
    Raises:
        tf.errors.InvalidArgumentError: a matrix is singular.

    >>> import twofold as tf
    >>> tf.keras.ops.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0]).numpy().tolist()
    [1.0, 0.5]
    """
    a, b = same(a, b, at_least=float)
    if b.ndim == a.ndim - 1:
        return tf.squeeze(tf.linalg.solve(a, tf.expand_dims(b, -1)), -1)
    return tf.linalg.solve(a, b)


@operation("linalg")
def solve_triangular(a: Any, b: Any, lower: bool = False) -> Any:
    """The solutions x of a x = b, of which one triangle of a counts.

    Args:
        a: [..., n, n].
        b: [..., n, m], or vectors [..., n].
        lower: whether it is the lower triangle.

    >>> import twofold as tf
    >>> tf.keras.ops.solve_triangular([[2.0, 0.0], [1.0, 1.0]], [2.0, 2.0], lower=True).numpy().tolist()
    [1.0, 1.0]
    """
    a, b = same(a, b, at_least=float)
    if b.ndim == a.ndim - 1:
        return tf.squeeze(tf.linalg.triangular_solve(a, tf.expand_dims(b, -1), lower=lower), -1)
    return tf.linalg.triangular_solve(a, b, lower=lower)


@operation("linalg", tensors="a b")
def lstsq(a: Any, b: Any, rcond: float | None = None) -> Any:
    """The vectors x for which a x is nearest to b, the shortest if there are several.

    Args:
        a: [n, m].
        b: [n, k], or a vector [n].
        rcond: which part of the largest singular value a smaller one counts as 0 below; by default the precision of
            the dtype times the larger of n and m.

    >>> import twofold as tf
    >>> tf.keras.ops.lstsq([[1.0], [1.0]], [1.0, 3.0]).numpy().round(4).tolist()
    [2.0]
    """
    import numpy as np
    a, b = same(a, b, at_least=float)
    if rcond is None:
        rcond = float(np.finfo(a.dtype.as_numpy_dtype).eps) * max(n or 1 for n in a.shape.as_list())
    column = b.ndim == 1
    solution = tf.matmul(tf.linalg.pinv(a, rcond=rcond), tf.expand_dims(b, -1) if column else b)
    return tf.squeeze(solution, -1) if column else solution


@operation("linalg")
def pinv(x: Any, rcond: float | None = None) -> Any:
    """The pseudoinverses of matrices (Moore and Penrose).

    Args:
        x: [..., n, m].
        rcond: which part of the largest singular value a smaller one counts as 0 below.

    >>> import twofold as tf
    >>> tf.keras.ops.pinv([[2.0, 0.0], [0.0, 0.0]]).numpy().round(4).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    return tf.linalg.pinv(floating(x), rcond)


@operation("linalg")
def matrix_rank(x: Any, tol: float | None = None) -> Any:
    """How many singular values of matrices [..., n, m] are above a bound, as int32.

    >>> import twofold as tf
    >>> int(tf.keras.ops.matrix_rank([[1.0, 1.0], [1.0, 1.0]]))
    1
    """
    return tf.linalg.matrix_rank(floating(x), tol)


# -- norms ----------------------------------------------------------------------------------------
@operation("linalg")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norms of vectors, or of matrices.

    Args:
        x: a tensor.
        ord: for vectors a number, inf or -inf; for matrices "fro", "nuc", 1, -1, 2, -2, inf or -inf. None is the root
            of the sum of squares.
        axis: the axis of the vectors, or the two of the matrices; by default all of x is one.
        keepdims: whether reduced axes stay, of size 1.
    Raises:
        ValueError: there is no such norm.

    >>> import twofold as tf
    >>> tf.keras.ops.norm([[3.0, 4.0], [6.0, 8.0]], axis=1).numpy().tolist()
    [5.0, 10.0]
    """
    x = floating(x)
    axes = axes_of(axis, x.ndim)
    if ord is None or (axis is None and ord in ("fro", 2) and (x.ndim == 1) == (ord == 2)):
        return vector_norm(x, None, list(axes), keepdims)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"Invalid `ord` argument for vector norm. Received: ord={ord!r}")
        return vector_norm(x, ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ValueError(f"Invalid axis values. Received: axis={axis} for a tensor of rank {x.ndim}.")
    if ord == "fro":
        return vector_norm(x, None, list(axes), keepdims)
    return matrix_norm(x, ord, (axes[0], axes[1]), keepdims)


@operation("linalg", "JVP")
def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """The result of a function, and its derivative along a direction.

    Args:
        fun: a function of tensors that gives a tensor or a structure; with `has_aux` and something else besides.
        primals: its arguments, a tuple or list.
        tangents: the direction: a tensor for each of them.
        has_aux: whether the function returns a pair, of which only the first part is differentiated.
    Returns:
        The result and its derivative along the direction; with `has_aux` the other part besides.

    >>> import twofold as tf
    >>> [float(t) for t in tf.keras.ops.jvp(lambda x: x * x, (tf.constant(3.0),), (tf.constant(1.0),))]
    [9.0, 6.0]
    """
    primals = [floating(x) for x in listed(primals, "primals")]
    tangents = listed(tangents, "tangents")
    if len(tangents) != len(primals):
        raise ValueError(f"tangents must be as many as primals, {len(primals)}; got {len(tangents)}.")
    tangents = [tensor(t, x.dtype) for t, x in zip(tangents, primals, strict=True)]
    # the gradient is linear in the upstream gradient, and its own gradient there is the derivative asked for
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(primals)
            returned = fun(*primals)
            outputs, aux = returned if has_aux else (returned, None)
        flat = tf.nest.flatten(outputs)
        upstream = [tf.zeros_like(y) for y in flat]
        outer.watch(upstream)
        gradients = inner.gradient(flat, primals, output_gradients=upstream,
                                   unconnected_gradients=tf.UnconnectedGradients.ZERO)
    changes = outer.gradient(gradients, upstream, output_gradients=tangents,
                             unconnected_gradients=tf.UnconnectedGradients.ZERO)
    changed = tf.nest.pack_sequence_as(outputs, changes)
    return (outputs, changed, aux) if has_aux else (outputs, changed)


publish(__name__)
