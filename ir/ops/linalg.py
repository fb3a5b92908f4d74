"""Linear algebra: determinants, inverses, systems of equations and the Cholesky factor.

LAPACK in NumPy does the work, on stacks of matrices in the last two axes. Gradients: Giles, "Collected matrix
derivative results for forward and reverse mode algorithmic differentiation" (2008); Cholesky after Murray,
"Differentiation of the Cholesky decomposition" (2016). The other factorisations are in `decompositions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import grad, matrices, ops, rules
from twofold.ir.errors import InvalidArgumentError, op_error
from twofold.ir.matrices import adjoint, product
from twofold.ir.op import Op, primitive
from twofold.ir.spec import spec
from twofold.ir.types import AnyTensor, Attr, Cotangents, Spec

__all__ = ["cholesky", "matrix_inverse", "matrix_solve", "matrix_triangular_solve", "matrix_determinant",
           "log_matrix_determinant"]

SUPPORTED = frozenset({dt.float32, dt.float64}) | dt.COMPLEX


_Factors = TypeVar("_Factors")  # the results of a factorisation: an array, or several


def require_matrices(op: Op, operands: Sequence[Spec], which: int = 0, square: bool = True) -> None:
    """Raise unless operand `which` holds (square) matrices of a dtype that LAPACK takes."""
    rules.require_dtype(op, operands, which, SUPPORTED)
    rules.require_rank(op, operands, which, 2)
    dims = operands[which].dims
    if square and not dm.require_eq(dims[-1], dims[-2]):
        name = op.params[which]
        raise rules.fail(op, operands, f"Input matrix must be square: {name} has shape [{','.join(map(str, dims))}].")


def factorise(op: str, fn: Callable[[np.ndarray], _Factors], x: np.ndarray, problem: str) -> _Factors:
    """`fn(x)`; a failure of LAPACK becomes InvalidArgumentError of `op` saying `problem`."""
    try:
        return fn(x)
    except np.linalg.LinAlgError as e:
        raise op_error(InvalidArgumentError, op, problem) from e


def _square(op: Op, x: Spec, **attrs: Attr) -> Spec:
    require_matrices(op, (x,))
    return spec(x.dims, x.dtype)


# -- Cholesky -------------------------------------------------------------------------------------------
def _cholesky_vjp(ct: AnyTensor, out: AnyTensor, x: Spec) -> Cotangents:
    """L^-H phi(L^H ct) L^-1, made Hermitian; phi keeps the lower triangle and halves its diagonal."""
    size = x.dims[-1]
    inner = matrices.scale_diagonal(product(out, ct, left=True), 0.5)
    inner = matrices.masked(inner, matrices.lower_mask(size, size))
    left = ops.matrix_triangular_solve(out, inner, lower=True, adjoint=True)
    both = adjoint(ops.matrix_triangular_solve(out, adjoint(left), lower=True, adjoint=True))
    return (ops.multiply(ops.add(both, adjoint(both)), grad.scalar(0.5, ct)),)


def _cholesky_host(x: np.ndarray) -> np.ndarray:
    return factorise("cholesky", np.linalg.cholesky, x,
                     "Cholesky decomposition was not successful. The input might not be valid.")


@primitive(infer=_square, vjp=_cholesky_vjp, saves=("out",), host=_cholesky_host)
def cholesky(x: AnyTensor) -> AnyTensor:
    """The lower triangular L with L L^H = x.

    Args:
        x: Hermitian positive definite matrices, float32, float64 or complex; only the lower triangle is read.
    Raises:
        InvalidArgumentError: a matrix is not positive definite. ShapeError: not square. DTypeError: another dtype.
    """


# -- inverse and solve ----------------------------------------------------------------------------------
def _inverse_vjp(ct: AnyTensor, out: AnyTensor, x: Spec, *, adjoint: bool) -> Cotangents:
    if adjoint:  # out = x^-H
        return (ops.negative(product(product(out, ct, right=True), out)),)
    return (ops.negative(product(product(out, ct, left=True), out, right=True)),)


def _inverse_host(x: np.ndarray, adjoint: bool) -> np.ndarray:
    inverse = factorise("matrix_inverse", np.linalg.inv, x, "Input is not invertible.")
    return np.conj(inverse.swapaxes(-1, -2)) if adjoint else inverse


@primitive(infer=_square, vjp=_inverse_vjp, saves=("out",), host=_inverse_host)
def matrix_inverse(x: AnyTensor, *, adjoint: bool = False) -> AnyTensor:
    """The inverse of square matrices, or with `adjoint` that of their adjoints.

    Args:
        x: square matrices, float32, float64 or complex.
    Raises:
        InvalidArgumentError: a matrix is singular. ShapeError: not square. DTypeError: another dtype.
    """


def _solve_infer(op: Op, matrix: Spec, rhs: Spec, **attrs: Attr) -> Spec:
    operands = (matrix, rhs)
    rules.same_dtype(op, operands)
    require_matrices(op, operands)
    rules.require_rank(op, operands, 1, 2)
    if not dm.require_eq(matrix.dims[-1], rhs.dims[-2]):
        raise rules.fail(op, operands, f"Input matrix and rhs are incompatible: {matrix.dims[-1]} equations but "
                         f"{rhs.dims[-2]} rows on the right.")
    try:
        batch = dm.broadcast_shapes(matrix.dims[:-2], rhs.dims[:-2])
    except dm.BroadcastError as e:
        raise rules.fail(op, operands, "batch shapes, all axes but the last two, do not broadcast.") from e
    return spec((*batch, *rhs.dims[-2:]), rhs.dtype)


def _solve_vjp(ct: AnyTensor, out: AnyTensor, matrix: AnyTensor, rhs: Spec, *, adjoint: bool) -> Cotangents:
    return _solved(lambda: ops.matrix_solve(matrix, ct, adjoint=not adjoint), out, matrix, rhs, adjoint)


def _solved(solve: Callable[[], AnyTensor], out: AnyTensor, matrix: Spec, rhs: Spec, adjoint: bool,
            keep: Callable[[AnyTensor], AnyTensor] = lambda m: m) -> Cotangents:
    """Cotangents of a system: `solve()` for the right side; minus its outer product with `out` for the matrix."""
    y = solve()

    def for_matrix() -> AnyTensor:
        outer = product(out, y, right=True) if adjoint else product(y, out, right=True)
        return grad.unbroadcast(ops.negative(keep(outer)), matrix)
    return for_matrix, lambda: grad.unbroadcast(y, rhs)


def _adjoint_array(x: np.ndarray) -> np.ndarray:
    return np.conj(x.swapaxes(-1, -2))


def _solve_host(matrix: np.ndarray, rhs: np.ndarray, adjoint: bool) -> np.ndarray:
    a = _adjoint_array(matrix) if adjoint else matrix
    return factorise("matrix_solve", lambda m: np.linalg.solve(m, rhs), a, "Input matrix is not invertible.")


@primitive(infer=_solve_infer, vjp=_solve_vjp, saves=("matrix", "out"), host=_solve_host)
def matrix_solve(matrix: AnyTensor, rhs: AnyTensor, *, adjoint: bool = False) -> AnyTensor:
    """The X with matrix X = rhs, or with `adjoint` matrix^H X = rhs.

    Args:
        matrix: square matrices, float32, float64 or complex.
        rhs: of the same dtype, [.., rows, columns]; batch axes broadcast.
    Raises:
        InvalidArgumentError: a matrix is singular. ShapeError: shapes do not fit. DTypeError: another dtype.
    """


# -- triangular systems ---------------------------------------------------------------------------------
_BLOCK = 32  # rows solved one after another; above, halves are eliminated by matrix products


def _triangular_vjp(ct: AnyTensor, out: AnyTensor, matrix: AnyTensor, rhs: Spec, *, lower: bool,
                    adjoint: bool) -> Cotangents:
    size = matrix.dims[-1]

    def keep(outer: AnyTensor) -> AnyTensor:
        if lower:
            return matrices.masked(outer, matrices.lower_mask(size, size))
        strictly_lower = matrices.lower_mask(size, size, strictly=True)
        return ops.where(strictly_lower, grad.scalar(0, outer), outer)
    return _solved(lambda: ops.matrix_triangular_solve(matrix, ct, lower=lower, adjoint=not adjoint), out, matrix, rhs,
                   adjoint, keep)


def _triangular_host(matrix: np.ndarray, rhs: np.ndarray, lower: bool, adjoint: bool) -> np.ndarray:
    matrix = np.ascontiguousarray(matrix)  # a product's bits may depend on where its operands lie
    a = _adjoint_array(matrix) if adjoint else matrix
    if np.any(np.diagonal(a, axis1=-2, axis2=-1) == 0):
        raise op_error(InvalidArgumentError, "matrix_triangular_solve", "Input matrix is not invertible.")
    batch = np.broadcast_shapes(a.shape[:-2], rhs.shape[:-2])
    out = np.array(np.broadcast_to(rhs, (*batch, *rhs.shape[-2:])), order="C")
    _substitute(a, out, lower != adjoint)
    return out


def _substitute(a: np.ndarray, x: np.ndarray, lower: bool) -> None:
    """Overwrites `x` by the solution: blocked forward or backward substitution (Golub & Van Loan, 3.1)."""
    size = a.shape[-1]
    if size > _BLOCK:
        half = size // 2
        first, last = (slice(0, half), slice(half, size)) if lower else (slice(half, size), slice(0, half))
        _substitute(a[..., first, first], x[..., first, :], lower)
        x[..., last, :] -= a[..., last, first] @ x[..., first, :]
        _substitute(a[..., last, last], x[..., last, :], lower)
        return
    for i in range(size) if lower else reversed(range(size)):
        solved = slice(0, i) if lower else slice(i + 1, size)
        x[..., i, :] -= (a[..., i:i + 1, solved] @ x[..., solved, :])[..., 0, :]
        x[..., i, :] /= a[..., i, i, None]


@primitive(infer=_solve_infer, vjp=_triangular_vjp, saves=("matrix", "out"), host=_triangular_host)
def matrix_triangular_solve(matrix: AnyTensor, rhs: AnyTensor, *, lower: bool = True,
                            adjoint: bool = False) -> AnyTensor:
    """The X with matrix X = rhs where only a triangle of `matrix` counts; with `adjoint` matrix^H X = rhs.

    Args:
        matrix: square matrices, float32, float64 or complex; its other triangle is not read.
        rhs: of the same dtype, [.., rows, columns]; batch axes broadcast.
        lower: which triangle counts.
    Raises:
        InvalidArgumentError: a diagonal holds a zero. ShapeError: shapes do not fit. DTypeError: another dtype.
    """


# -- determinants ---------------------------------------------------------------------------------------
def _scalars(op: Op, x: Spec) -> Spec:
    require_matrices(op, (x,))
    return spec(x.dims[:-2], x.dtype)


def _as_matrix(v: AnyTensor) -> AnyTensor:
    return ops.expand_dims(v, axis=(-2, -1))


def _determinant_vjp(ct: AnyTensor, out: AnyTensor, x: AnyTensor) -> Cotangents:
    factor = ops.multiply(ct, grad.conj(out))
    return (ops.multiply(_as_matrix(factor), ops.matrix_inverse(x, adjoint=True)),)


@primitive(infer=_scalars, vjp=_determinant_vjp, saves=("x", "out"), host=np.linalg.det)
def matrix_determinant(x: AnyTensor) -> AnyTensor:
    """The determinant of square matrices.

    Args:
        x: square matrices, float32, float64 or complex.
    Raises:
        ShapeError: not square. DTypeError: another dtype. The gradient raises InvalidArgumentError at a singular one.
    """


def _two_scalars(op: Op, x: Spec) -> tuple[Spec, Spec]:
    one = _scalars(op, x)
    return one, one


def _log_determinant_vjp(ct: Sequence[AnyTensor | None], out: Sequence[AnyTensor], x: AnyTensor) -> Cotangents:
    """With t = trace(x^-1 dx): d log|det| = Re t, d sign = i sign Im t."""
    ct_sign, ct_log = ct
    inverse = ops.matrix_inverse(x, adjoint=True)
    if not x.dtype.is_complex:  # the sign is constant
        return (grad.zeros_like(x) if ct_log is None else ops.multiply(_as_matrix(ct_log), inverse),)
    parts = []
    if ct_log is not None:
        parts.append(ops.cast(ops.real(ct_log), dtype=x.dtype))
    if ct_sign is not None:
        turn = ops.imag(ops.multiply(grad.conj(ct_sign), out[0]))
        parts.append(ops.complex(grad.zeros_like(turn), ops.negative(turn)))
    factor = parts[0] if len(parts) == 1 else ops.add(*parts)
    return (ops.multiply(_as_matrix(factor), inverse),)


def _log_determinant_host(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sign, log = np.linalg.slogdet(x)
    return sign, np.asarray(log, x.dtype)


@primitive(infer=_two_scalars, vjp=_log_determinant_vjp, saves=("x", "out"), host=_log_determinant_host)
def log_matrix_determinant(x: AnyTensor) -> tuple[AnyTensor, AnyTensor]:
    """Sign and logarithm of the absolute value of the determinant of square matrices, both of the dtype of `x`.

    Args:
        x: square matrices, float32, float64 or complex.
    Raises:
        ShapeError: not square. DTypeError: another dtype. The gradient raises InvalidArgumentError at a singular one.
    """
