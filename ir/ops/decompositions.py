"""Decompositions: QR, singular values, eigenvalues, the pseudoinverse and the matrix exponential.

LAPACK in NumPy does the work, on stacks of matrices in the last two axes. Gradients: QR after Walter & Lehmann (2018)
and, for wide matrices, Roberts & Roberts, "QR and LQ decomposition matrix backpropagation algorithms" (2020);
eigenvectors of Hermitian matrices after Giles (2008), of others after Boeddeker et al., "On the computation of
complex-valued gradients with application to statistically optimum beamforming" (2017), section 4.9; singular vectors
after Townsend (2016), with the phase term of Wan & Zhang (2019); the pseudoinverse after Golub & Pereyra (1973).
Vectors are unique only up to a phase, and only where values differ: gradients are those of functions that do not depend
on the choice. Where values meet, up to rounding, their vectors get nothing from each other, and the vectors of singular
values that vanish nothing from outside, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import grad, matrices, ops, rules
from twofold.ir.dims import DimLike
from twofold.ir.dtypes import DType
from twofold.ir.errors import DTypeError, InvalidArgumentError, UnimplementedError, op_error
from twofold.ir.matrices import adjoint, diag, masked, product
from twofold.ir.op import Op, primitive
from twofold.ir.spec import spec
from twofold.ir.types import AnyTensor, Cotangents, Results, Spec

from .linalg import factorise, require_matrices

__all__ = ["qr", "svd", "self_adjoint_eig", "eig", "pinv", "matrix_exponential"]

_NOT_FINITE = "SVD did not converge: the input holds a NaN or an infinity."


def _sum(*terms: AnyTensor | None) -> AnyTensor:
    """The terms that are there, added up."""
    there = [t for t in terms if t is not None]
    total = there[0]
    for t in there[1:]:
        total = ops.add(total, t)
    return total


def _columns(v: AnyTensor) -> AnyTensor:
    """`v` [.., n] as a factor for the columns of a matrix."""
    return ops.expand_dims(v, axis=-2)


def _like(v: AnyTensor, x: Spec) -> AnyTensor:
    return ops.cast(v, dtype=x.dtype) if v.dtype is not x.dtype else v


# -- QR -------------------------------------------------------------------------------------------------
def _qr_infer(op: Op, x: Spec, *, full_matrices: bool) -> tuple[Spec, Spec]:
    require_matrices(op, (x,), square=False)
    *batch, m, n = x.dims
    k = m if full_matrices else dm.minimum(m, n)
    return spec((*batch, m, k), x.dtype), spec((*batch, k, n), x.dtype)


def _qr_vjp(ct: Sequence[AnyTensor | None], out: Sequence[AnyTensor], x: AnyTensor, *,
            full_matrices: bool) -> Cotangents:
    (q, r), (ct_q, ct_r) = out, ct
    m, n = x.dims[-2:]
    if dm.require(m, ">=", n):
        if full_matrices and not dm.require_eq(m, n):
            raise op_error(UnimplementedError, "qr",
                           "the gradient for full_matrices=True needs as many columns as rows or more.")
        return (_tall_qr(q, r, ct_q, ct_r),)
    batch = len(x.dims) - 2
    u, right = (_part(r, batch, 0, m), _part(x, batch, m, n - m))
    ct_u, ct_v = (None, None) if ct_r is None else (_part(ct_r, batch, 0, m), _part(ct_r, batch, m, n - m))
    through = None if ct_v is None else product(right, ct_v, right=True)
    ct_q = _sum(ct_q, through) if ct_q is not None or through is not None else None
    left = _tall_qr(q, u, ct_q, ct_u)
    rest = grad.zeros_like(right) if ct_v is None else product(q, ct_v)
    return (ops.concat(left, rest, axis=len(x.dims) - 1),)


def _part(x: AnyTensor, batch: int, begin: DimLike, count: DimLike) -> AnyTensor:
    """Columns [begin, begin + count)."""
    return ops.slice_(x, begin=(0,) * (batch + 1) + (begin,), size=(*x.dims[:-1], count))


def _tall_qr(q: AnyTensor, r: AnyTensor, ct_q: AnyTensor | None, ct_r: AnyTensor | None) -> AnyTensor:
    """(ct_q + q herm(M)) R^-H with M = R ct_r^H - ct_q^H q, of which the lower triangle is copied to the upper."""
    size = r.dims[-1]
    m = _sum(None if ct_r is None else product(r, ct_r, right=True),
             None if ct_q is None else ops.negative(product(ct_q, q, left=True)))
    below = masked(m, matrices.lower_mask(size, size, strictly=True))
    middle = matrices.diag_part(m)
    middle = _like(ops.real(middle), m) if m.dtype.is_complex else middle
    inner = _sum(ct_q, product(q, _sum(below, adjoint(below), diag(middle))))
    return adjoint(ops.matrix_triangular_solve(r, adjoint(inner), lower=False, adjoint=False))


def _qr_host(x: np.ndarray, full_matrices: bool) -> tuple[np.ndarray, np.ndarray]:
    q, r = np.linalg.qr(x, "complete" if full_matrices else "reduced")
    return q, r


@primitive(infer=_qr_infer, vjp=_qr_vjp, saves=("x", "out"), host=_qr_host)
def qr(x: AnyTensor, *, full_matrices: bool = False) -> tuple[AnyTensor, AnyTensor]:
    """Unitary Q and upper triangular R with Q R = x.

    Args:
        x: matrices [.., m, n], float32, float64 or complex.
        full_matrices: Q is m by m, else m by min(m, n).
    Raises:
        ShapeError: rank below 2. DTypeError: another dtype.
    """


# -- singular values ------------------------------------------------------------------------------------
def _svd_infer(op: Op, x: Spec, *, full_matrices: bool, compute_uv: bool) -> Spec | tuple[Spec, Spec, Spec]:
    require_matrices(op, (x,), square=False)
    *batch, m, n = x.dims
    k = dm.minimum(m, n)
    values = spec((*batch, k), x.dtype.real_dtype)
    if not compute_uv:
        return values
    return (values, spec((*batch, m, m if full_matrices else k), x.dtype),
            spec((*batch, n, n if full_matrices else k), x.dtype))


def _svd_vjp(ct: Results, out: Results, x: AnyTensor, *, full_matrices: bool, compute_uv: bool) -> Cotangents:
    if not compute_uv:
        _, u, v = ops.svd(x, full_matrices=False, compute_uv=True)
        return (product(ops.multiply(u, _columns(_like(ct, x))), v, right=True),)
    ct_s, ct_u, ct_v = ct
    s, u, v = out
    if full_matrices and not dm.require_eq(*x.dims[-2:]):
        if ct_u is not None or ct_v is not None:
            raise op_error(UnimplementedError, "svd", "the gradient of singular vectors needs full_matrices=False.")
        s, u, v = ops.svd(x, full_matrices=False, compute_uv=True)
    return (_svd_gradient(s, u, v, ct_s, ct_u, ct_v),)


def _svd_gradient(s: AnyTensor, u: AnyTensor, v: AnyTensor, ct_s: AnyTensor | None, ct_u: AnyTensor | None,
                  ct_v: AnyTensor | None) -> AnyTensor:
    values = _like(s, u)
    terms: list[AnyTensor | None] = [] if ct_s is None else [diag(_like(ct_s, u))]
    if ct_u is None and ct_v is None:
        return product(product(u, _sum(*terms)), v, right=True)
    inverse = _like(_inverse(s, _rounding(s)), u)
    gaps = _like(_square_gaps(s), u)
    outer = []
    if ct_u is not None:
        p = product(u, ct_u, left=True)
        turned = ops.multiply(ops.multiply(gaps, ops.subtract(p, adjoint(p))), _columns(values))
        terms += [turned, _phase(p, inverse)]
        outer.append(_outside(u, v, ct_u, inverse))
    if ct_v is not None:
        p = product(v, ct_v, left=True)
        turned = ops.multiply(ops.expand_dims(values, axis=-1), ops.multiply(gaps, ops.subtract(p, adjoint(p))))
        terms.append(turned)
        rest = _outside(v, u, ct_v, inverse)
        outer.append(None if rest is None else adjoint(rest))
    return _sum(product(product(u, _sum(*terms)), v, right=True), *outer)


def _gaps(values: AnyTensor) -> AnyTensor:
    """1 / (values[j] - values[i]), and 0 where that is 0 up to rounding, as on the diagonal."""
    gap = ops.subtract(_columns(values), ops.expand_dims(values, axis=-1))
    return _inverse(gap, ops.expand_dims(_rounding(values), axis=-1))


def _square_gaps(values: AnyTensor) -> AnyTensor:
    """1 / (values[j]**2 - values[i]**2), and 0 where that is 0 up to rounding."""
    total = ops.add(_columns(values), ops.expand_dims(values, axis=-1))
    return ops.multiply(_gaps(values), _inverse(total, ops.expand_dims(_rounding(values), axis=-1)))


def _rounding(values: AnyTensor) -> AnyTensor:
    """The most that rounding may leave of 0 among eigenvalues or singular values [.., n]: [.., 1]."""
    largest = ops.reduce_max(ops.abs(values), axis=(-1,), keepdims=True)
    epsilon = float(np.finfo(values.dtype.np).eps)
    return ops.multiply(ops.multiply(largest, epsilon), grad.scalar(values.dims[-1], largest))


def _inverse(x: AnyTensor, rounding: AnyTensor) -> AnyTensor:
    """1 / x, and 0 where |x| is at most `rounding`."""
    none = ops.less_equal(ops.abs(x), rounding)
    return ops.where(none, grad.scalar(0, x), ops.divide(grad.scalar(1, x), ops.where(none, grad.scalar(1, x), x)))


def _phase(p: AnyTensor, inverse: AnyTensor) -> AnyTensor | None:
    """The imaginary diagonal of `p` over the singular values: what is left of the choice of phases."""
    if not p.dtype.is_complex:
        return None
    imaginary = ops.imag(matrices.diag_part(p))
    return diag(ops.multiply(ops.complex(grad.zeros_like(imaginary), imaginary), inverse))


def _outside(u: AnyTensor, v: AnyTensor, ct_u: AnyTensor, inverse: AnyTensor) -> AnyTensor | None:
    """(1 - u u^H) ct_u / s v^H: nothing where `u` is square."""
    if u.dims[-1] is u.dims[-2] or dm.decide_eq(u.dims[-1], u.dims[-2]):
        return None
    free = ops.subtract(ct_u, product(u, product(u, ct_u, left=True)))
    return product(ops.multiply(free, _columns(inverse)), v, right=True)


def _adjoint(m: np.ndarray) -> np.ndarray:
    return np.conj(m.swapaxes(-1, -2))


def _svd_host(x: np.ndarray, full_matrices: bool, compute_uv: bool) -> np.ndarray | tuple[np.ndarray, ...]:
    def decompose(m: np.ndarray) -> np.ndarray | tuple[np.ndarray, ...]:
        wide = m.shape[-2] < m.shape[-1]
        m = _adjoint(m) if wide else m  # LAPACK takes up to 200 times as long for wide matrices as for tall ones
        if not compute_uv:
            return np.linalg.svd(m, compute_uv=False)
        u, s, vh = np.linalg.svd(m, full_matrices=full_matrices)
        return (s, _adjoint(vh), u) if wide else (s, u, _adjoint(vh))
    return factorise("svd", decompose, x, _NOT_FINITE)


@primitive(infer=_svd_infer, vjp=_svd_vjp, saves=("x", "out"), host=_svd_host)
def svd(x: AnyTensor, *, full_matrices: bool = False, compute_uv: bool = True) -> Results:
    """Singular values s, largest first, and with `compute_uv` the vectors: x = u diag(s) v^H.

    Args:
        x: matrices [.., m, n], float32, float64 or complex.
        full_matrices: `u` is m by m and `v` n by n, else they have min(m, n) columns.
    Returns:
        (s, u, v), or s alone.
    Raises:
        InvalidArgumentError: an element is not finite. ShapeError: rank below 2. DTypeError: another dtype.
    """


# -- eigenvalues ----------------------------------------------------------------------------------------
def _eigh_infer(op: Op, x: Spec, *, compute_v: bool) -> Spec | tuple[Spec, Spec]:
    require_matrices(op, (x,))
    values = spec(x.dims[:-1], x.dtype.real_dtype)
    return (values, spec(x.dims, x.dtype)) if compute_v else values


def _eigh_vjp(ct: Results, out: Results, x: AnyTensor, *, compute_v: bool) -> Cotangents:
    """v (diag(ct_e) + gaps * (v^H ct_v)) v^H, folded onto the lower triangle: the other one is not read."""
    if compute_v:
        (e, v), (ct_e, ct_v) = out, ct
    else:
        e, v = ops.self_adjoint_eig(x, compute_v=True)
        ct_e, ct_v = ct, None
    turned = None if ct_v is None else ops.multiply(_like(_gaps(e), v), product(v, ct_v, left=True))
    inner = _sum(None if ct_e is None else diag(_like(ct_e, v)), turned)
    whole = product(product(v, inner), v, right=True)
    folded = matrices.scale_diagonal(ops.add(whole, adjoint(whole)), 0.5)
    size = x.dims[-1]
    return (masked(folded, matrices.lower_mask(size, size)),)


def _eigh_host(x: np.ndarray, compute_v: bool) -> np.ndarray | tuple[np.ndarray, ...]:
    def decompose(m: np.ndarray) -> np.ndarray | tuple[np.ndarray, ...]:
        return tuple(np.linalg.eigh(m)) if compute_v else np.linalg.eigvalsh(m)
    return factorise("self_adjoint_eig", decompose, x,
                     "Self-adjoint eigen decomposition was not successful. The input might not be valid.")


@primitive(infer=_eigh_infer, vjp=_eigh_vjp, saves=("x", "out"), host=_eigh_host)
def self_adjoint_eig(x: AnyTensor, *, compute_v: bool = True) -> Results:
    """Eigenvalues e of Hermitian matrices, smallest first, and with `compute_v` vectors: x v = v diag(e).

    Args:
        x: Hermitian matrices, float32, float64 or complex; only the lower triangle is read.
    Returns:
        (e, v), or e alone.
    Raises:
        InvalidArgumentError: an element is not finite. ShapeError: not square. DTypeError: another dtype.
    """


def _complex_of(dtype: DType) -> DType:
    return dt.complex64 if dtype.real_dtype is dt.float32 else dt.complex128


def _eig_infer(op: Op, x: Spec, *, compute_v: bool) -> Spec | tuple[Spec, Spec]:
    require_matrices(op, (x,))
    dtype = _complex_of(x.dtype)
    values = spec(x.dims[:-1], dtype)
    return (values, spec(x.dims, dtype)) if compute_v else values


def _eig_vjp(ct: Results, out: Results, x: AnyTensor, *, compute_v: bool) -> Cotangents:
    """v^-H (diag(ct_e) + conj(gaps) * (v^H ct_v - v^H v diag(re diag(v^H ct_v)))) v^H: columns keep their length 1."""
    if compute_v:
        (e, v), (ct_e, ct_v) = out, ct
    else:
        e, v = ops.eig(x, compute_v=True)
        ct_e, ct_v = ct, None
    turned = None
    if ct_v is not None:
        moved = product(v, ct_v, left=True)
        stretched = ops.cast(ops.real(matrices.diag_part(moved)), dtype=v.dtype)
        free = ops.subtract(moved, ops.multiply(product(v, v, left=True), _columns(stretched)))
        turned = ops.multiply(ops.conj(_gaps(e)), free)
    inner = _sum(None if ct_e is None else diag(ct_e), turned)
    whole = ops.matrix_solve(v, product(inner, adjoint(v)), adjoint=True)
    return (whole if x.dtype.is_complex else ops.real(whole),)


def _eig_host(x: np.ndarray, compute_v: bool) -> np.ndarray | tuple[np.ndarray, ...]:
    dtype = np.result_type(x.dtype, np.complex64)
    problem = "Eigen decomposition was not successful. The input might not be valid."
    if not compute_v:
        return factorise("eig", np.linalg.eigvals, x, problem).astype(dtype)
    return tuple(part.astype(dtype) for part in factorise("eig", np.linalg.eig, x, problem))


@primitive(infer=_eig_infer, vjp=_eig_vjp, saves=("x", "out"), host=_eig_host)
def eig(x: AnyTensor, *, compute_v: bool = True) -> Results:
    """Eigenvalues e of any square matrices, and with `compute_v` vectors of length 1: x v = v diag(e). Complex.

    Args:
        x: square matrices, float32, float64 or complex.
    Returns:
        (e, v), or e alone; in no particular order.
    Raises:
        InvalidArgumentError: an element is not finite. ShapeError: not square. DTypeError: another dtype.
    """


# -- functions of matrices ------------------------------------------------------------------------------
def _pinv_infer(op: Op, x: Spec, rcond: Spec) -> Spec:
    require_matrices(op, (x, rcond), square=False)
    if rcond.dtype is not x.dtype.real_dtype:
        raise rules.fail(op, (x, rcond), f"rcond has dtype {rcond.dtype.name}; expected {x.dtype.real_dtype.name}.",
                         DTypeError)
    *batch, m, n = x.dims
    shared = dm.broadcast_shapes(tuple(batch), rcond.dims)
    if len(shared) != len(batch):
        raise rules.fail(op, (x, rcond), "rcond has more axes than there are batch axes.")
    return spec((*batch, n, m), x.dtype)


def _pinv_vjp(ct: AnyTensor, out: AnyTensor, x: AnyTensor, rcond: Spec) -> Cotangents:
    """d P = -P dx P + P P^H dx^H (1 - x P) + (1 - P x) dx^H P^H P."""
    first = ops.negative(product(product(out, ct, left=True), out, right=True))
    spread = product(product(ct, out, left=True), out, right=True)  # ct^H P P^H
    second = ops.subtract(spread, product(x, product(out, spread)))
    gathered = product(product(out, out, left=True), ct, right=True)  # P^H P ct^H
    third = ops.subtract(gathered, product(product(gathered, out), x))
    return _sum(first, second, third), None


@primitive(infer=_pinv_infer, vjp=_pinv_vjp, saves=("x", "out"),
           host=lambda x, rcond: factorise("pinv", lambda m: np.linalg.pinv(m, rcond), x, _NOT_FINITE))
def pinv(x: AnyTensor, rcond: AnyTensor) -> AnyTensor:
    """The Moore-Penrose pseudoinverse; singular values up to `rcond` times the largest count as zero.

    Args:
        x: matrices [.., m, n], float32, float64 or complex.
        rcond: real, a scalar or one for every matrix.
    Returns:
        [.., n, m]. Its gradient is that at constant rank.
    Raises:
        InvalidArgumentError: an element is not finite. ShapeError: shapes do not fit. DTypeError: another dtype.
    """


def _square(op: Op, x: Spec) -> Spec:
    require_matrices(op, (x,))
    return spec(x.dims, x.dtype)


def _exponential_vjp(ct: AnyTensor, out: Spec, x: AnyTensor) -> Cotangents:
    """The Frechet derivative at x^H in direction ct: the corner of exp [[x^H, ct], [0, x^H]] (Mathias 1996)."""
    rank, size, flipped = len(x.dims), x.dims[-1], adjoint(x)
    above = ops.concat(flipped, ct, axis=rank - 1)
    below = ops.concat(grad.zeros_like(x), flipped, axis=rank - 1)
    whole = ops.matrix_exponential(ops.concat(above, below, axis=rank - 2))
    return (ops.slice_(whole, begin=(0,) * (rank - 1) + (size,), size=tuple(x.dims)),)


_PADE = (64764752532480000., 32382376266240000., 7771770303897600., 1187353796428800., 129060195264000.,
         10559470521600., 670442572800., 33522128640., 1323241920., 40840800., 960960., 16380., 182., 1.)
_THETA = 5.371920351148152


def _exponential_host(x: np.ndarray) -> np.ndarray:
    """Scaling and squaring with the Pade approximant of degree 13 (Higham, SIAM J. Matrix Anal. 26, 2005)."""
    if x.size == 0:
        return np.array(x)
    wide = x.astype(np.result_type(x.dtype, np.float64), order="C")
    norm = np.abs(wide).sum(axis=-2).max(axis=-1)
    if not np.all(np.isfinite(norm)):
        raise op_error(InvalidArgumentError, "matrix_exponential", "the input holds a NaN or an infinity.")
    squarings = np.maximum(0, np.ceil(np.log2(norm / _THETA))).astype(np.int64)
    a = wide / np.exp2(squarings)[..., None, None]
    one = np.eye(x.shape[-1], dtype=wide.dtype)
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    c = _PADE
    odd = a @ (a6 @ (c[13] * a6 + c[11] * a4 + c[9] * a2) + c[7] * a6 + c[5] * a4 + c[3] * a2 + c[1] * one)
    even = a6 @ (c[12] * a6 + c[10] * a4 + c[8] * a2) + c[6] * a6 + c[4] * a4 + c[2] * a2 + c[0] * one
    result = np.linalg.solve(even - odd, even + odd)
    for step in range(int(squarings.max(initial=0))):
        result = np.where((squarings > step)[..., None, None], result @ result, result)
    return result.astype(x.dtype)


@primitive(infer=_square, vjp=_exponential_vjp, saves=("x",), host=_exponential_host)
def matrix_exponential(x: AnyTensor) -> AnyTensor:
    """The matrix exponential of square matrices.

    Args:
        x: square matrices, float32, float64 or complex; computed in double precision and rounded once.
    Raises:
        InvalidArgumentError: an element is not finite. ShapeError: not square. DTypeError: another dtype.
    """
