"""Triangular factors, roots and logarithms of matrices, and systems of few diagonals, of `tf.linalg`.

`twofold/linalg.py` re-exports them. The ops are in `ir/ops/factorisations.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from twofold._front.api import ints, public, tensor
from twofold._ops.array_indexing import gather
from twofold._ops.array_joining import stack, unstack
from twofold._ops.linalg_diag import diag
from twofold._ops.sorting import invert_permutation
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import grad, matrices, ops
from twofold.ir.errors import InvalidArgumentError, UnimplementedError, op_error

__all__ = ["banded_triangular_solve", "conjugate_gradient", "eigh_tridiagonal", "logm", "lu", "lu_matrix_inverse",
           "lu_reconstruct", "lu_solve", "sqrtm", "tridiagonal_matmul", "tridiagonal_solve"]


# -- triangular factors -----------------------------------------------------------------------------------
class Qr(NamedTuple):
    """What `tf.linalg.qr` gives."""

    q: Any
    r: Any


class LogMatrixDeterminant(NamedTuple):
    """What `tf.linalg.slogdet` gives."""

    sign: Any
    log_abs_determinant: Any


class Lu(NamedTuple):
    """What `tf.linalg.lu` gives: the factors in one matrix, and the order of the rows."""

    lu: Any
    p: Any


@public
def lu(input: Any, output_idx_type: Any = dt.int32, name: str | None = None) -> Lu:
    """Factors of square matrices with rows in another order: `L @ U = input[p]`.

    Args:
        input: square matrices [.., n, n], float32, float64 or complex.
        output_idx_type: int32 or int64, the dtype of `p`.
        name: has no effect.
    Returns:
        `(lu, p)`: U on and above the diagonal of `lu`, and below it L, which has ones on its diagonal; and the order
        [.., n] of the rows of `input`.
    Raises:
        tf.errors.InvalidArgumentError: a matrix is singular or not square, or another dtype.

    >>> import twofold as tf
    >>> lu, p = tf.linalg.lu([[1.0, 2.0], [4.0, 4.0]])
    >>> lu.numpy().tolist(), p.numpy().tolist()
    ([[4.0, 4.0], [0.25, 1.0]], [1, 0])
    """
    index = dt.as_dtype(output_idx_type)
    if index not in (dt.int32, dt.int64):
        raise op_error(InvalidArgumentError, "lu", f"output_idx_type must be int32 or int64; got {index.name}.")
    return Lu(*ops.lu(tensor(input), index_dtype=index))


def _factors(lower_upper: Any) -> tuple[Any, Any]:
    """L with its ones, and U."""
    size = lower_upper.dims[-1]
    below = matrices.lower_mask(size, size, strictly=True)
    lower = ops.where(matrices.diagonal_mask(size, size), grad.scalar(1, lower_upper),
                      matrices.masked(lower_upper, below))
    return lower, ops.where(below, grad.scalar(0, lower_upper), lower_upper)


def _in_order(x: Any, order: Any) -> Any:
    """The rows of matrices in the orders [.., n]; batch axes broadcast."""
    batch = dm.broadcast_shapes(x.dims[:-2], order.dims[:-1])
    x = ops.broadcast_to(x, shape=(*batch, *x.dims[-2:]))
    order = ops.broadcast_to(order, shape=(*batch, order.dims[-1]))
    return gather(x, order, axis=len(batch), batch_dims=len(batch))


def _inverse_order(order: Any) -> Any:
    return invert_permutation(order) if len(order.dims) == 1 else ops.argsort(order)


@public
def lu_solve(lower_upper: Any, perm: Any, rhs: Any, validate_args: bool = False, name: str | None = None) -> Any:
    """The X with A X = rhs, from the factors of A.

    Args:
        lower_upper, perm: what `tf.linalg.lu(A)` gives.
        rhs: matrices [.., n, columns] of the dtype of A; batch axes broadcast.
        validate_args: has no effect: arguments are always checked.
        name: has no effect.
    Returns:
        Tensor [.., n, columns].
    Raises:
        tf.errors.InvalidArgumentError: shapes do not fit or dtypes differ.

    >>> import twofold as tf
    >>> tf.linalg.lu_solve(*tf.linalg.lu([[2.0, 0.0], [4.0, 4.0]]), rhs=[[2.0], [8.0]]).numpy().tolist()
    [[1.0], [1.0]]
    """
    lower_upper = tensor(lower_upper)
    lower, upper = _factors(lower_upper)
    right = _in_order(tensor(rhs, hint=lower_upper.dtype), tensor(perm))
    inner = ops.matrix_triangular_solve(lower, right, lower=True, adjoint=False)
    return ops.matrix_triangular_solve(upper, inner, lower=False, adjoint=False)


@public
def lu_reconstruct(lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None) -> Any:
    """The matrices that were factored.

    Args:
        lower_upper, perm: what `tf.linalg.lu` gives.
        validate_args: has no effect: arguments are always checked.
        name: has no effect.
    Returns:
        Tensor like `lower_upper`.
    Raises:
        tf.errors.InvalidArgumentError: shapes do not fit.

    >>> import twofold as tf
    >>> tf.linalg.lu_reconstruct(*tf.linalg.lu([[2.0, 0.0], [4.0, 4.0]])).numpy().tolist()
    [[2.0, 0.0], [4.0, 4.0]]
    """
    lower, upper = _factors(tensor(lower_upper))
    return _in_order(ops.matmul(lower, upper), _inverse_order(tensor(perm)))


@public
def lu_matrix_inverse(lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None) -> Any:
    """The inverses of the matrices that were factored.

    Args:
        lower_upper, perm: what `tf.linalg.lu` gives.
        validate_args: has no effect: arguments are always checked.
        name: has no effect.
    Returns:
        Tensor like `lower_upper`.
    Raises:
        tf.errors.InvalidArgumentError: shapes do not fit.

    >>> import twofold as tf
    >>> tf.linalg.lu_matrix_inverse(*tf.linalg.lu([[2.0, 0.0], [4.0, 4.0]])).numpy().tolist()
    [[0.5, 0.0], [-0.5, 0.25]]
    """
    lower_upper = tensor(lower_upper)
    size = lower_upper.dims[-1]
    one = ops.cast(matrices.diagonal_mask(size, size), dtype=lower_upper.dtype)
    return lu_solve(lower_upper, perm, one)


# -- functions of matrices --------------------------------------------------------------------------------
@public
def sqrtm(input: Any, name: str | None = None) -> Any:
    """The principal square roots of matrices.

    Args:
        input: square matrices, float32, float64 or complex.
        name: has no effect.
    Returns:
        Tensor like `input`; NaN for a real matrix whose root is not real.
    Raises:
        tf.errors.InvalidArgumentError: not square, another dtype, or an element that is not finite.

    >>> import twofold as tf
    >>> tf.linalg.sqrtm([[4.0, 5.0], [0.0, 9.0]]).numpy().tolist()
    [[2.0, 1.0], [0.0, 3.0]]
    """
    return ops.matrix_square_root(tensor(input))


@public
def logm(input: Any, name: str | None = None) -> Any:
    """The principal logarithms of complex matrices; not differentiable, as in TensorFlow.

    Args:
        input: square matrices, complex64 or complex128.
        name: has no effect.
    Returns:
        Tensor like `input`; NaN for a singular matrix.
    Raises:
        tf.errors.InvalidArgumentError: not square, another dtype, or an element that is not finite.

    >>> import twofold as tf
    >>> tf.math.real(tf.linalg.logm(tf.constant([[1 + 0j, 0], [0, 1]]))).numpy().tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    return ops.matrix_logarithm(tensor(input))


# -- few diagonals ----------------------------------------------------------------------------------------
def _compact(op: str, diagonals: Any, form: str) -> Any:
    """Three diagonals [.., 3, n]: above, main and below, each beside the rows that it is in."""
    if form == "compact":
        return tensor(diagonals)
    if form == "sequence":
        if not isinstance(diagonals, (tuple, list)) or len(diagonals) != 3:
            raise ValueError(f"{op}: Expected diagonals to be a sequence of length 3.")
        main = tensor(diagonals[1])
        above, below = (tensor(d, hint=main.dtype) for d in (diagonals[0], diagonals[2]))
        return stack([_padded(above, main, after=True), main, _padded(below, main, after=False)], axis=-2)
    if form == "matrix":
        matrix = tensor(diagonals)
        if len(matrix.dims) < 2 or not dm.require_eq(matrix.dims[-1], matrix.dims[-2]):
            raise op_error(InvalidArgumentError, op, "expected square matrices.", [("diagonals", matrix)])
        return stack([_beside(matrix, 1), matrices.diag_part(matrix), _beside(matrix, -1)], axis=-2)
    raise ValueError(f"{op}: Unrecognized diagonals_format: {form}")


def _padded(x: Any, main: Any, after: bool) -> Any:
    """A diagonal with the element that does not count: those with n - 1 elements get a 0."""
    if dm.require_eq(x.dims[-1], main.dims[-1]):
        return x
    zero = ops.fill(grad.scalar(0, x), shape=(*x.dims[:-1], 1))
    return ops.concat(*((x, zero) if after else (zero, x)), axis=len(x.dims) - 1)


def _beside(matrix: Any, by: int) -> Any:
    """The diagonal above (1) or below (-1) the main one, by rows, with a 0 where a row has none."""
    size = matrix.dims[-1]
    numbers = ops.range_(0, size, 1, size=size)
    mask = ops.equal(ops.add(ops.expand_dims(numbers, axis=1), by), numbers)
    return ops.reduce_sum(matrices.masked(matrix, mask), axis=(len(matrix.dims) - 1,))


@public
def tridiagonal_solve(diagonals: Any, rhs: Any, diagonals_format: str = "compact", transpose_rhs: bool = False,
                      conjugate_rhs: bool = False, name: str | None = None, partial_pivoting: bool = True,
                      perturb_singular: bool = False) -> Any:
    """The X with A X = rhs for matrices A of three diagonals.

    Args:
        diagonals: by the format: "compact", [.., 3, n], the diagonals above, on and below the main one, of which the
            last element of the first and the first of the last do not count; "sequence", three tensors, the outer ones
            with n - 1 elements or so; "matrix", [.., n, n], whose other elements do not count.
        rhs: [.., n] or [.., n, columns], of the same dtype and batch: float32, float64 or complex.
        diagonals_format: see `diagonals`.
        transpose_rhs: take the transposed `rhs`.
        conjugate_rhs: take the conjugated one.
        name: has no effect.
        partial_pivoting: whether rows change places, for accuracy.
        perturb_singular: not supported.
    Returns:
        Tensor of the shape of `rhs`, with columns as they were taken; not finite where a matrix is singular.
    Raises:
        ValueError: an unknown format. tf.errors.InvalidArgumentError: shapes do not fit or dtypes differ.
        tf.errors.UnimplementedError: `perturb_singular`.

    >>> import twofold as tf
    >>> tf.linalg.tridiagonal_solve([[1.0, 0.0], [2.0, 2.0], [0.0, 1.0]], [3.0, 3.0]).numpy().tolist()
    [1.0, 1.0]
    """
    if perturb_singular:
        raise op_error(UnimplementedError, "tridiagonal_solve", "perturb_singular is not supported.")
    diagonals = _compact("tridiagonal_solve", diagonals, diagonals_format)
    rhs = tensor(rhs, hint=diagonals.dtype)
    vector = len(rhs.dims) == len(diagonals.dims) - 1
    rhs = grad.conj(rhs) if conjugate_rhs else rhs
    if vector:
        rhs = ops.expand_dims(rhs, axis=-1)
    elif transpose_rhs:
        rhs = matrices.transposed(rhs)
    x = ops.tridiagonal_solve(diagonals, rhs, partial_pivoting=bool(partial_pivoting))
    return ops.squeeze(x, axis=(-1,)) if vector else x


@public
def tridiagonal_matmul(diagonals: Any, rhs: Any, diagonals_format: str = "compact", name: str | None = None) -> Any:
    """The product of matrices of three diagonals by `rhs`.

    Args:
        diagonals, diagonals_format: as for `tf.linalg.tridiagonal_solve`.
        rhs: [.., n, columns], of the same dtype.
        name: has no effect.
    Returns:
        Tensor [.., n, columns].
    Raises:
        ValueError: an unknown format. tf.errors.InvalidArgumentError: shapes do not fit or dtypes differ.

    >>> import twofold as tf
    >>> tf.linalg.tridiagonal_matmul([[1.0, 0.0], [2.0, 2.0], [0.0, 1.0]], [[1.0], [1.0]]).numpy().tolist()
    [[3.0], [3.0]]
    """
    diagonals = _compact("tridiagonal_matmul", diagonals, diagonals_format)
    rhs = tensor(rhs, hint=diagonals.dtype)
    if len(diagonals.dims) < 2 or len(rhs.dims) < 2:
        raise op_error(InvalidArgumentError, "tridiagonal_matmul", "the operands must have rank 2 or more.",
                       [("diagonals", diagonals), ("rhs", rhs)])
    above, main, below = (ops.expand_dims(d, axis=-1) for d in unstack(diagonals, axis=-2))
    zero = ops.fill(grad.scalar(0, rhs), shape=(*rhs.dims[:-2], 1, rhs.dims[-1]))
    axis, rows = len(rhs.dims) - 2, rhs.dims[-2]
    def part(begin: int) -> Any:
        return ops.slice_(rhs, begin=(*(0,) * axis, begin, 0), size=(*rhs.dims[:-2], rows - 1, rhs.dims[-1]))
    following, before = ops.concat(part(1), zero, axis=axis), ops.concat(zero, part(0), axis=axis)
    return ops.add(ops.add(ops.multiply(above, following), ops.multiply(main, rhs)), ops.multiply(below, before))


@public
def eigh_tridiagonal(alpha: Any, beta: Any, eigvals_only: bool = True, select: str = "a", select_range: Any = None,
                     tol: Any = None, name: str | None = None) -> Any:
    """Eigenvalues, and vectors if wanted, of a Hermitian matrix of three diagonals.

    Args:
        alpha: the main diagonal [n], float32, float64 or complex with imaginary parts 0.
        beta: the diagonal above it [n - 1], of the same dtype; below it is its conjugate.
        eigvals_only: whether vectors are left out.
        select: "a" for all; "v" for those in the interval `(select_range[0], select_range[1]]`; "i" for those numbered
            `select_range[0]` to `select_range[1]`, both included.
        select_range: two numbers, see `select`.
        tol: has no effect: values are as exact as the dtype.
        name: has no effect.
    Returns:
        The eigenvalues, ascending, real; or `(values, vectors)`, the vectors in columns.
    Raises:
        ValueError: an unknown `select`, or a range that is none.
        tf.errors.InvalidArgumentError: shapes do not fit or dtypes differ.

    >>> import twofold as tf
    >>> tf.linalg.eigh_tridiagonal([2.0, 2.0], [0.0]).numpy().tolist()
    [2.0, 2.0]
    """
    if select not in ("a", "v", "i"):
        raise ValueError(f"eigh_tridiagonal: 'select' must have a value in {{'a', 'i', 'v'}}; got {select!r}.")
    alpha = tensor(alpha)
    beta = tensor(beta, hint=alpha.dtype)
    if len(alpha.dims) != 1 or len(beta.dims) != 1:
        raise op_error(InvalidArgumentError, "eigh_tridiagonal", "the diagonals must have rank 1.",
                       [("alpha", alpha), ("beta", beta)])
    matrix = ops.add(diag(alpha), ops.add(diag(beta, k=1), diag(grad.conj(beta), k=-1)))
    if eigvals_only:
        values, vectors = ops.self_adjoint_eig(matrix, compute_v=False), None
    else:
        values, vectors = ops.self_adjoint_eig(matrix, compute_v=True)
    if select != "a":
        values, vectors = _selected(values, vectors, select, select_range)
    return values if vectors is None else (values, vectors)


def _selected(values: Any, vectors: Any, select: str, select_range: Any) -> tuple[Any, Any]:
    from twofold._ops.array_indexing import boolean_mask

    if select_range is None:
        raise ValueError(f"eigh_tridiagonal: for select={select!r}, select_range must be given.")
    if select == "i":
        low, high = ints(select_range, "select_range")
        if low > high:
            raise ValueError(f"eigh_tridiagonal: select_range must ascend; got {(low, high)}.")
        chosen = slice(low, high + 1)
        return values[chosen], None if vectors is None else vectors[:, chosen]
    low, high = (tensor(v, hint=values.dtype) for v in select_range)
    inside = ops.logical_and(ops.greater(values, low), ops.less_equal(values, high))
    return boolean_mask(values, inside), None if vectors is None else boolean_mask(vectors, inside, axis=1)


@public
def banded_triangular_solve(bands: Any, rhs: Any, lower: bool = True, adjoint: bool = False,
                            name: str | None = None) -> Any:
    """The X with A X = rhs for triangular matrices A of a few diagonals.

    Args:
        bands: [.., k, n], the diagonals by rows: of a lower triangle the main one first, of an upper one it is the
            last. Float32, float64 or complex.
        rhs: [.., n, columns], of the same dtype.
        lower: which triangle it is.
        adjoint: solve with the adjoint of A.
        name: has no effect.
    Returns:
        Tensor [.., n, columns].
    Raises:
        tf.errors.InvalidArgumentError: shapes do not fit, dtypes differ, or a zero on the main diagonal.

    >>> import twofold as tf
    >>> tf.linalg.banded_triangular_solve([[1.0, 2.0], [0.0, 1.0]], [[1.0], [5.0]]).numpy().tolist()
    [[1.0], [2.0]]
    """
    bands = tensor(bands)
    if len(bands.dims) < 2:
        raise op_error(InvalidArgumentError, "banded_triangular_solve", "bands must have rank 2 or more.",
                       [("bands", bands)])
    count, size = bands.dims[-2:]
    columns = ops.range_(0, size, 1, size=size)
    # element (i, j) of the matrix is in band i - j of a lower triangle, and in band count - 1 + i - j of an upper one
    band = ops.subtract(ops.expand_dims(columns, axis=1), columns)
    band = band if lower else ops.add(band, count - 1)
    inside = ops.logical_and(ops.greater_equal(band, 0), ops.less(band, count))
    matrix = grad.zeros_like(ops.matmul(bands, bands, adjoint_a=True))
    for number, row in enumerate(unstack(bands, axis=-2)):
        matrix = ops.where(ops.equal(band, number), ops.expand_dims(row, axis=-1), matrix)
    return ops.matrix_triangular_solve(matrices.masked(matrix, inside), tensor(rhs, hint=bands.dtype),
                                       lower=bool(lower), adjoint=bool(adjoint))


# -- systems by products alone ----------------------------------------------------------------------------
class CGState(NamedTuple):
    """Where the method of conjugate gradients is: rounds, solution, residual, direction, and the residual's square."""

    i: Any
    x: Any
    r: Any
    p: Any
    gamma: Any


@public
def conjugate_gradient(operator: Any, rhs: Any, preconditioner: Any = None, x: Any = None, tol: Any = 1e-5,
                       max_iter: Any = 20, name: str | None = "conjugate_gradient") -> CGState:
    """The x with A x = rhs, by the method of conjugate gradients (Hestenes & Stiefel, 1952).

    Args:
        operator: what has `matvec(vectors)`, the product by A, and says by `is_self_adjoint` and
            `is_positive_definite` that A is that: a `LinearOperator`.
        rhs: floating tensor [.., n].
        preconditioner: what has `matvec`, the product by a guess of the inverse of A.
        x: where to begin; by default 0.
        tol: rounds end where the residual is below this part of `rhs`, of all vectors.
        max_iter: or after so many.
        name: has no effect.
    Returns:
        `(i, x, r, p, gamma)`: how many rounds there were, the solution, the residual, the last direction, and the
        residual's square, by the preconditioner.
    Raises:
        ValueError: A is not said to be self-adjoint and positive definite.

    >>> import twofold as tf
    >>> class Twice:
    ...     is_self_adjoint = is_positive_definite = True
    ...     def matvec(self, x):
    ...         return 2.0 * x
    >>> tf.linalg.experimental.conjugate_gradient(Twice(), tf.constant([2.0, 4.0])).x.numpy().tolist()
    [1.0, 2.0]
    """
    from twofold._front.control_flow import while_loop
    from twofold._ops.linalg_norms import norm
    from twofold._ops.math_reductions import reduce_any, reduce_sum

    if not (operator.is_self_adjoint and operator.is_positive_definite):
        raise ValueError("conjugate_gradient: Expected a self-adjoint, positive definite operator.")
    rhs = tensor(rhs)

    def dot(a: Any, b: Any) -> Any:
        return reduce_sum(ops.multiply(grad.conj(a), b), axis=-1)

    def times(scale: Any, vectors: Any) -> Any:
        return ops.multiply(ops.expand_dims(scale, axis=-1), vectors)

    def improved(r: Any) -> Any:
        return r if preconditioner is None else preconditioner.matvec(r)
    limit = ops.multiply(norm(rhs, axis=-1), tensor(tol, rhs.dtype.real_dtype))
    if x is None:
        # the product brings the operator's batch axes
        x = grad.zeros_like(operator.matvec(rhs))
        r = ops.add(x, rhs)
    else:
        x = tensor(x, rhs.dtype)
        r = ops.subtract(rhs, operator.matvec(x))
        x = ops.add(x, grad.zeros_like(r))
    p = improved(r)

    def goes_on(i: Any, x: Any, r: Any, p: Any, gamma: Any) -> Any:
        return ops.logical_and(ops.less(i, max_iter), reduce_any(ops.greater(norm(r, axis=-1), limit)))

    def step(i: Any, x: Any, r: Any, p: Any, gamma: Any) -> tuple[Any, ...]:
        z = operator.matvec(p)
        alpha = ops.divide(gamma, dot(p, z))
        x, r = ops.add(x, times(alpha, p)), ops.subtract(r, times(alpha, z))
        q = improved(r)
        following = dot(r, q)
        return ops.add(i, 1), x, r, ops.add(q, times(ops.divide(following, gamma), p)), following
    return CGState(*while_loop(goes_on, step, [tensor(0), x, r, p, dot(r, p)]))
