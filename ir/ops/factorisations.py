"""Triangular factors, square roots and logarithms of matrices, and tridiagonal systems.

NumPy does the work on stacks of matrices in the last two axes; the Schur form is `ir/schur.py`'s. Gradients: of the
factors after de Hoog, Anderssen & Lukas, "Differentiation of matrix functionals using triangular factorization" (2011);
of the root a Sylvester equation by Kronecker products, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import grad, matrices, ops, rules
from twofold.ir.dtypes import DType
from twofold.ir.errors import InvalidArgumentError, op_error
from twofold.ir.matrices import adjoint, masked, product
from twofold.ir.op import Op, primitive
from twofold.ir.spec import spec
from twofold.ir.types import AnyTensor, Cotangents, Spec

from .linalg import SUPPORTED, factorise, require_matrices

__all__ = ["lu", "matrix_logarithm", "matrix_square_root", "tridiagonal_solve"]


# -- triangular factors ---------------------------------------------------------------------------------
def _lu_infer(op: Op, x: Spec, *, index_dtype: DType) -> tuple[Spec, Spec]:
    require_matrices(op, (x,))
    return spec(x.dims, x.dtype), spec(x.dims[:-1], index_dtype)


def _lu_vjp(ct: Sequence[AnyTensor | None], out: Sequence[AnyTensor], x: Spec, *, index_dtype: DType) -> Cotangents:
    """P^T L^-H (phi(L^H dL) + psi(dU U^H)) U^-H; phi keeps what is below the diagonal, psi the rest."""
    (factors, order), (ct_factors, _) = out, ct
    if ct_factors is None:
        return (None,)
    size = x.dims[-1]
    below = matrices.lower_mask(size, size, strictly=True)
    lower = ops.where(matrices.diagonal_mask(size, size), grad.scalar(1, factors), masked(factors, below))
    upper = ops.where(below, grad.scalar(0, factors), factors)
    for_lower = product(lower, masked(ct_factors, below), left=True)
    for_upper = product(ops.where(below, grad.scalar(0, factors), ct_factors), upper, right=True)
    inner = ops.where(below, for_lower, for_upper)
    inner = ops.matrix_triangular_solve(lower, inner, lower=True, adjoint=True)
    inner = adjoint(ops.matrix_triangular_solve(upper, adjoint(inner), lower=False, adjoint=False))
    # row i of the factors is row order[i] of x
    numbers = ops.cast(ops.range_(0, size, 1, size=size), dtype=index_dtype)
    picks = ops.cast(ops.equal(ops.expand_dims(order, axis=-1), numbers), dtype=x.dtype)
    return (product(picks, inner, left=True),)


def _lu_host(x: np.ndarray, index_dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    factors = np.array(x, order="C")
    *batch, size, _ = x.shape
    order = np.broadcast_to(np.arange(size), (*batch, size)).copy()
    for k in range(size):
        _exchange_rows(factors, order, k)
        pivot = factors[..., k, k]
        if np.any(pivot == 0):
            raise op_error(InvalidArgumentError, "lu", "Input is not invertible.")
        factors[..., k + 1:, k] /= pivot[..., None]
        factors[..., k + 1:, k + 1:] -= factors[..., k + 1:, k, None] * factors[..., None, k, k + 1:]
    return factors, order.astype(index_dtype.np)


def _exchange_rows(factors: np.ndarray, order: np.ndarray, k: int) -> None:
    """Brings the row whose element in column `k` is largest to row `k`."""
    best = k + np.argmax(np.abs(factors[..., k:, k]), axis=-1)[..., None]
    for values, place in ((factors, best[..., None]), (order, best)):
        axis = -2 if values is factors else -1
        first = values[..., k:k + 1, :] if axis == -2 else values[..., k:k + 1]
        chosen, before = np.take_along_axis(values, place, axis), first.copy()
        np.put_along_axis(values, place, before, axis)
        first[...] = chosen


@primitive(infer=_lu_infer, vjp=_lu_vjp, saves=("out",), host=_lu_host)
def lu(x: AnyTensor, *, index_dtype: DType = dt.int32) -> tuple[AnyTensor, AnyTensor]:
    """L and U in one matrix, without the ones of L's diagonal, and the order P with L U = x[P].

    Args:
        x: square matrices, float32, float64 or complex.
        index_dtype: int32 or int64, that of the order.
    Raises:
        InvalidArgumentError: a matrix is singular. ShapeError: not square. DTypeError: another dtype.
    """


# -- functions of matrices ------------------------------------------------------------------------------
def _square(op: Op, x: Spec) -> Spec:
    require_matrices(op, (x,))
    return spec(x.dims, x.dtype)


def _by_schur(op: str, function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """A function of each matrix by that of its triangular Schur form, complex128."""
    from .. import schur

    out = np.empty(x.shape, np.complex128)
    for place in np.ndindex(x.shape[:-2]):
        q, t = factorise(op, schur.schur, x[place], "the input holds a NaN or an infinity.")
        with np.errstate(all="ignore"):
            out[place] = q @ function(t) @ q.conj().T
    return out


def _root_vjp(ct: AnyTensor, out: AnyTensor, x: Spec) -> Cotangents:
    """The X with S^H X + X S^H = ct."""
    *batch, size, _ = x.dims
    one = ops.cast(matrices.diagonal_mask(size, size), dtype=x.dtype)
    flipped = adjoint(out)

    def kronecker(a: AnyTensor, b: AnyTensor) -> AnyTensor:
        rank = len(a.dims)
        wide = ops.expand_dims(ops.expand_dims(a, axis=rank - 1), axis=rank + 1)
        rank = len(b.dims)
        tall = ops.expand_dims(ops.expand_dims(b, axis=rank - 2), axis=rank)
        return ops.multiply(wide, tall)
    whole = ops.add(kronecker(flipped, one), kronecker(one, matrices.transposed(flipped)))
    whole = ops.reshape(whole, shape=(*batch, size * size, size * size))
    solved = ops.matrix_solve(whole, ops.reshape(ct, shape=(*batch, size * size, 1)), adjoint=False)
    return (ops.reshape(solved, shape=tuple(x.dims)),)


def _root_host(x: np.ndarray) -> np.ndarray:
    from ..schur import triangular_root

    root = _by_schur("matrix_square_root", triangular_root, x)
    if x.dtype.kind == "c":
        return root.astype(x.dtype)
    size = np.abs(root).max(axis=(-1, -2), initial=0.0)
    real = np.abs(root.imag).max(axis=(-1, -2), initial=0.0) <= 1e-6 * size
    return np.where(real[..., None, None], root.real, np.nan).astype(x.dtype)


@primitive(infer=_square, vjp=_root_vjp, saves=("out",), host=_root_host)
def matrix_square_root(x: AnyTensor) -> AnyTensor:
    """The matrices whose square is `x`, with eigenvalues in the right half of the plane.

    Args:
        x: square matrices, float32, float64 or complex; computed in double precision and rounded once. The root of a
            real matrix with a negative eigenvalue is not real: NaN.
    Raises:
        InvalidArgumentError: an element is not finite. ShapeError: not square. DTypeError: another dtype.
    """


def _logarithm_infer(op: Op, x: Spec) -> Spec:
    rules.require_dtype(op, (x,), 0, dt.COMPLEX)
    return _square(op, x)


def _logarithm_host(x: np.ndarray) -> np.ndarray:
    from ..schur import triangular_logarithm

    return _by_schur("matrix_logarithm", triangular_logarithm, x).astype(x.dtype)


@primitive(infer=_logarithm_infer, vjp=None, host=_logarithm_host)
def matrix_logarithm(x: AnyTensor) -> AnyTensor:
    """The matrices whose exponential is `x`, with eigenvalues no further than pi from the real axis.

    Args:
        x: square complex matrices; computed in double precision and rounded once. NaN for a singular one.
    Raises:
        InvalidArgumentError: an element is not finite. ShapeError: not square. DTypeError: another dtype.
    """


# -- tridiagonal systems --------------------------------------------------------------------------------
def _tridiagonal_infer(op: Op, diagonals: Spec, rhs: Spec, *, partial_pivoting: bool) -> Spec:
    operands = (diagonals, rhs)
    rules.same_dtype(op, operands)
    for which in (0, 1):
        rules.require_dtype(op, operands, which, SUPPORTED)
        rules.require_rank(op, operands, which, 2)
    if not dm.require_eq(diagonals.dims[-2], 3):
        raise rules.fail(op, operands, f"expected 3 diagonals, got {diagonals.dims[-2]}.")
    if not dm.require_eq(diagonals.dims[-1], rhs.dims[-2]):
        raise rules.fail(op, operands, f"the diagonals have {diagonals.dims[-1]} elements but there are "
                         f"{rhs.dims[-2]} rows on the right.")
    if len(diagonals.dims) != len(rhs.dims) or not all(
            dm.require_eq(a, b) for a, b in zip(diagonals.dims[:-2], rhs.dims[:-2], strict=True)):
        raise rules.fail(op, operands, "batch shapes, all axes but the last two, differ.")
    return spec(rhs.dims, rhs.dtype)


def _moved(x: AnyTensor, axis: int, by: int) -> AnyTensor:
    """`x` a place up (-1) or down (1) along an axis, with zeros in the place that is left."""
    begin, size = [0] * len(x.dims), list(x.dims)
    begin[axis], size[axis] = (1 if by < 0 else 0), x.dims[axis] - 1
    kept = ops.slice_(x, begin=tuple(begin), size=tuple(size))
    size[axis] = 1
    zeros = ops.fill(grad.scalar(0, x), shape=tuple(size))
    return ops.concat(*((kept, zeros) if by < 0 else (zeros, kept)), axis=axis)


def _row(x: AnyTensor, number: int) -> AnyTensor:
    """A diagonal, [.., 1, n]."""
    rank = len(x.dims)
    return ops.slice_(x, begin=(*(0,) * (rank - 2), number, 0), size=(*x.dims[:-2], 1, x.dims[-1]))


def _tridiagonal_vjp(ct: AnyTensor, out: AnyTensor, diagonals: AnyTensor, rhs: Spec, *,
                     partial_pivoting: bool) -> Cotangents:
    """The adjoint system for the right side; minus its outer product with `out` for the diagonals."""
    last = len(diagonals.dims) - 1
    above, main, below = (_row(diagonals, n) for n in range(3))
    flipped = grad.conj(ops.concat(_moved(below, last, -1), main, _moved(above, last, 1), axis=last - 1))
    y = ops.tridiagonal_solve(flipped, ct, partial_pivoting=partial_pivoting)

    def for_diagonals() -> AnyTensor:
        parts = [ops.reduce_sum(ops.multiply(y, grad.conj(x)), axis=(last,))
                 for x in (_moved(out, last - 1, -1), out, _moved(out, last - 1, 1))]
        return ops.negative(ops.concat(*[ops.expand_dims(p, axis=-2) for p in parts], axis=last - 1))
    return for_diagonals, lambda: y


def _tridiagonal_host(diagonals: np.ndarray, rhs: np.ndarray, partial_pivoting: bool) -> np.ndarray:
    """Elimination row by row; with pivoting the two rows that can be next change places, and a third diagonal fills."""
    size = rhs.shape[-2]
    above, main, below = (diagonals[..., n, :].copy() for n in range(3))
    x, second = rhs.copy(), np.zeros_like(above)
    above[..., -1:] = 0
    with np.errstate(all="ignore"):
        for i in range(size - 1):
            rows = [np.stack([main[..., i], above[..., i], second[..., i]]),
                    np.stack([below[..., i + 1], main[..., i + 1], above[..., i + 1]])]
            rights = [x[..., i, :].copy(), x[..., i + 1, :].copy()]
            if partial_pivoting:
                swap = np.abs(rows[1][0]) > np.abs(rows[0][0])
                rows = [np.where(swap, rows[1], rows[0]), np.where(swap, rows[0], rows[1])]
                swap = swap[..., None]
                rights = [np.where(swap, rights[1], rights[0]), np.where(swap, rights[0], rights[1])]
            factor = rows[1][0] / rows[0][0]
            main[..., i], above[..., i], second[..., i] = rows[0]
            main[..., i + 1] = rows[1][1] - factor * rows[0][1]
            above[..., i + 1] = rows[1][2] - factor * rows[0][2]
            x[..., i, :], x[..., i + 1, :] = rights[0], rights[1] - factor[..., None] * rights[0]
        for i in reversed(range(size)):
            if i + 1 < size:
                x[..., i, :] -= above[..., i, None] * x[..., i + 1, :]
            if i + 2 < size:
                x[..., i, :] -= second[..., i, None] * x[..., i + 2, :]
            x[..., i, :] /= main[..., i, None]
    return x


@primitive(infer=_tridiagonal_infer, vjp=_tridiagonal_vjp, saves=("diagonals", "out"), host=_tridiagonal_host,
           traits=("total",))
def tridiagonal_solve(diagonals: AnyTensor, rhs: AnyTensor, *, partial_pivoting: bool = True) -> AnyTensor:
    """The X with A X = rhs for matrices A of three diagonals; NaN or infinite where one is singular.

    Args:
        diagonals: [.., 3, n], float32, float64 or complex: above the main one, whose last element does not count; the
            main one; below it, whose first element does not count.
        rhs: of the same dtype and batch, [.., n, columns].
        partial_pivoting: whether rows change places, for accuracy.
    Raises:
        ShapeError: shapes do not fit. DTypeError: another dtype.
    """
