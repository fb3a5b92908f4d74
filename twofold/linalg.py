"""Linear algebra (`tf.linalg`), under TensorFlow's names: products, equations, determinants and decompositions.

Matrices lie in the last two axes and the axes before them are a batch. Contractions by name are in
`_ops/linalg_einsum.py`, norms in `_ops/linalg_norms.py`, diagonals in `_ops/linalg_diag.py`, triangular factors and few
diagonals in `_ops/linalg_factors.py`; the ops themselves in `ir/ops/products.py`, `ir/ops/linalg.py`,
`ir/ops/decompositions.py` and `ir/ops/factorisations.py`. Linear operators are in `_linear/`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from twofold._front.api import public, public_op, tensor
from twofold._front.namespace import publish
from twofold._front.precision import precision_arg
from twofold._ops.array_creation import eye
from twofold._ops.clip import global_norm
from twofold._ops.linalg_diag import band_part, diag, diag_part, set_diag, tensor_diag, tensor_diag_part
from twofold._ops.linalg_einsum import einsum, tensordot
from twofold._ops.linalg_factors import (
    LogMatrixDeterminant,
    Qr,
    banded_triangular_solve,
    conjugate_gradient,
    eigh_tridiagonal,
    logm,
    lu,
    lu_matrix_inverse,
    lu_reconstruct,
    lu_solve,
    sqrtm,
    tridiagonal_matmul,
    tridiagonal_solve,
)
from twofold._ops.linalg_norms import l2_normalize, norm, normalize
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import grad, matrices, ops
from twofold.ir.errors import InvalidArgumentError, op_error

#: the classes of operators, which are loaded when they are first asked for, by their modules in `_linear/`
_OPERATORS = {
    "LinearOperator": "base", "LinearOperatorAdjoint": "combined", "LinearOperatorBlockDiag": "blocks",
    "LinearOperatorBlockLowerTriangular": "blocks",
    "LinearOperatorCirculant": "circulants", "LinearOperatorCirculant2D": "circulants",
    "LinearOperatorCirculant3D": "circulants", "LinearOperatorComposition": "combined",
    "LinearOperatorDiag": "matrices", "LinearOperatorFullMatrix": "matrices", "LinearOperatorHouseholder": "matrices",
    "LinearOperatorIdentity": "identities", "LinearOperatorInversion": "combined", "LinearOperatorKronecker": "blocks",
    "LinearOperatorLowRankUpdate": "updates", "LinearOperatorLowerTriangular": "matrices",
    "LinearOperatorPermutation": "patterns", "LinearOperatorScaledIdentity": "identities",
    "LinearOperatorToeplitz": "patterns", "LinearOperatorTridiag": "patterns", "LinearOperatorZeros": "identities"}

__all__ = ["adjoint", "band_part", "banded_triangular_solve", "cholesky", "cholesky_solve", "cross", "det", "diag",
           "diag_part", "eig", "eigh", "eigh_tridiagonal", "eigvals", "eigvalsh", "einsum", "experimental", "expm",
           "eye", "global_norm", "inv", "l2_normalize", "logdet", "logm", "lstsq", "lu", "lu_matrix_inverse",
           "lu_reconstruct", "lu_solve", "matmul", "matrix_rank", "matrix_transpose", "matvec", "norm", "normalize",
           "pinv", "qr", "set_diag", "slogdet", "solve", "sqrtm", "svd", "tensor_diag", "tensor_diag_part", "tensordot",
           "trace", "triangular_solve", "tridiagonal_matmul", "tridiagonal_solve", *_OPERATORS]


def __getattr__(name: str) -> Any:
    module = _OPERATORS.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module
    return getattr(import_module(f"twofold._linear.{module}"), name)


# -- products and transposes ------------------------------------------------------------------------------
@public_op(ops.matmul)
def matmul(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, adjoint_a: bool = False,
           adjoint_b: bool = False, a_is_sparse: bool = False, b_is_sparse: bool = False, output_type: Any = None,
           name: str | None = None, *, precision: str | None = None) -> Any:
    """Product of the matrices in the last two axes of `a` and `b`; the axes before them broadcast.

    Args:
        a, b: numeric tensors of one dtype, of rank 2 or more.
        transpose_a, transpose_b: multiply by the transposed matrix.
        adjoint_a, adjoint_b: multiply by the conjugated and transposed matrix.
        a_is_sparse, b_is_sparse: hints without effect.
        output_type: dtype of the result. Products and sums are those of the wider dtype: `a` and `b`, which may
            then be int8 and uint8, are converted before.
        name: has no effect.
        precision: "fast" has GPUs compute products of floats on their tensor cores, as `docs/numerics.md` says, and
            those of the gradient; "exact" to the bit. By default as the layer around says: fast for 16-bit floats in
            layers of a mixed policy, else exact. Processors compute either alike.
    Returns:
        Tensor [batch, rows, columns]. 16-bit floats are summed in float32 and rounded once; integers wrap.
    Raises:
        tf.errors.InvalidArgumentError: a rank below 2, shapes that do not fit, dtypes that differ.

    >>> import twofold as tf
    >>> a = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> tf.matmul(a, a, transpose_b=True).numpy().tolist()
    [[5.0, 11.0], [11.0, 25.0]]
    """
    kind = None if output_type is None else dt.as_dtype(output_type)
    if kind is dt.int32:
        a, b = tensor(a), tensor(b)
        if a.dtype is dt.int8 and b.dtype is dt.int8:
            return ops.int8_matmul(a, b, transpose_a=bool(transpose_a or adjoint_a),
                                   transpose_b=bool(transpose_b or adjoint_b))
    if kind is not None:
        a, b = _before(a, kind), _before(b, kind)
    if transpose_a or transpose_b or adjoint_a or adjoint_b or precision is not None:
        result = ops.matmul(a, b, transpose_a=bool(transpose_a), transpose_b=bool(transpose_b),
                            adjoint_a=bool(adjoint_a), adjoint_b=bool(adjoint_b),
                            **precision_arg("matmul", precision))
    else:  # without attributes the plan is found quicker
        result = ops.matmul(a, b)
    return result if kind is None else ops.cast(result, dtype=kind)


def _before(x: Any, kind: Any) -> Any:
    """An operand whose products have a result of dtype `kind`: converted, if that is a wider dtype of its sort."""
    x = tensor(x)
    wider = kind.size > x.dtype.size and (
        kind.is_integer and x.dtype.is_integer or kind.is_floating and x.dtype.is_floating
        or kind.is_complex and x.dtype.is_complex)
    return ops.cast(x, dtype=kind) if wider else x


@public
def matvec(a: Any, b: Any, transpose_a: bool = False, adjoint_a: bool = False, a_is_sparse: bool = False,
           b_is_sparse: bool = False, name: str | None = None, *, precision: str | None = None) -> Any:
    """Product of matrices `a` and vectors in the last axis of `b`.

    Args:
        a: numeric tensor [.., m, n].
        b: of the same dtype, [.., n].
        transpose_a, adjoint_a: multiply by the transposed, or conjugated and transposed, matrix.
        a_is_sparse, b_is_sparse: hints without effect.
        name: has no effect.
        precision: as for `tf.matmul`.
    Returns:
        Tensor [.., m].
    Raises:
        tf.errors.InvalidArgumentError: shapes do not fit or dtypes differ.

    >>> import twofold as tf
    >>> tf.linalg.matvec(tf.constant([[1, 2], [3, 4]]), tf.constant([1, 1])).numpy().tolist()
    [3, 7]
    """
    column = ops.expand_dims(tensor(b), axis=-1)
    product = ops.matmul(a, column, transpose_a=bool(transpose_a), adjoint_a=bool(adjoint_a),
                         **precision_arg("matvec", precision))
    return ops.squeeze(product, axis=-1)


def _matrix(x: Any, op: str) -> Any:
    x = tensor(x)
    if len(x.dims) < 2:
        raise op_error(InvalidArgumentError, op, "the operand must have rank 2 or more.", [("tensor", x)])
    return x


@public
def matrix_transpose(a: Any, name: str | None = "matrix_transpose", conjugate: bool = False) -> Any:
    """`a` with its last two axes exchanged.

    Args:
        a: tensor of rank 2 or more.
        name: has no effect.
        conjugate: whether complex elements are conjugated too.
    Returns:
        Tensor of the same dtype.
    Raises:
        tf.errors.InvalidArgumentError: the rank is below 2.

    >>> import twofold as tf
    >>> tf.linalg.matrix_transpose(tf.constant([[1, 2, 3], [4, 5, 6]])).numpy().tolist()
    [[1, 4], [2, 5], [3, 6]]
    """
    a = _matrix(a, "matrix_transpose")
    return matrices.adjoint(a) if conjugate else matrices.transposed(a)


@public
def adjoint(matrix: Any, name: str | None = None) -> Any:
    """The conjugated and transposed matrices.

    Args:
        matrix: tensor of rank 2 or more.
        name: has no effect.
    Returns:
        Tensor of the same dtype.
    Raises:
        tf.errors.InvalidArgumentError: the rank is below 2.

    >>> import twofold as tf
    >>> tf.linalg.adjoint(tf.constant([[1 + 1j, 2]])).numpy().tolist()
    [[(1-1j)], [(2-0j)]]
    """
    return matrices.adjoint(_matrix(matrix, "adjoint"))


@public
def trace(x: Any, name: str | None = None) -> Any:
    """The sum of the main diagonal.

    Args:
        x: numeric tensor of rank 2 or more.
        name: has no effect.
    Returns:
        Tensor of the batch's shape.
    Raises:
        tf.errors.InvalidArgumentError: the rank is below 2, or the dtype is not numeric.

    >>> import twofold as tf
    >>> tf.linalg.trace(tf.constant([[1, 2], [3, 4]])).numpy().item()
    5
    """
    x = _matrix(x, "trace")
    return ops.reduce_sum(diag_part(x), axis=(-1,))


@public
def cross(a: Any, b: Any, name: str | None = None) -> Any:
    """The cross product of vectors of three elements in the last axis.

    Args:
        a, b: real tensors of one dtype and shape [.., 3].
        name: has no effect.
    Returns:
        Tensor of the same shape.
    Raises:
        tf.errors.InvalidArgumentError: shapes differ or do not end in 3; dtypes differ.

    >>> import twofold as tf
    >>> tf.linalg.cross(tf.constant([1, 0, 0]), tf.constant([0, 1, 0])).numpy().tolist()
    [0, 0, 1]
    """
    a = tensor(a, hint=b.dtype if hasattr(b, "dims") else None)
    b = tensor(b, hint=a.dtype)
    sizes = list(zip(a.dims, b.dims, strict=False))
    if len(a.dims) != len(b.dims) or not a.dims or not all(dm.require_eq(m, n) for m, n in sizes) \
            or not dm.require_eq(a.dims[-1], 3):
        raise op_error(InvalidArgumentError, "cross", "operands must have one shape that ends in 3.",
                       [("a", a), ("b", b)])
    axis = len(a.dims) - 1
    ahead, behind = np.array([1, 2, 0], np.int32), np.array([2, 0, 1], np.int32)

    def turned(x: Any, order: np.ndarray) -> Any:
        return ops.gather(x, order, axis=axis)
    return ops.subtract(ops.multiply(turned(a, ahead), turned(b, behind)),
                        ops.multiply(turned(a, behind), turned(b, ahead)))


# -- equations ------------------------------------------------------------------------------------------
@public
def cholesky(input: Any, name: str | None = None) -> Any:
    """The lower triangular L with L L^H = input.

    LAPACK does it; the gradient is that of Murray (2016), "Differentiation of the Cholesky decomposition".

    Args:
        input: Hermitian positive definite matrices, float32, float64 or complex; the upper triangle is not read.
        name: has no effect.
    Returns:
        Tensor like `input`.
    Raises:
        tf.errors.InvalidArgumentError: a matrix is not positive definite or not square, or the dtype is another.

    >>> import twofold as tf
    >>> tf.linalg.cholesky(tf.constant([[4.0, 2.0], [2.0, 5.0]])).numpy().tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    return ops.cholesky(input)


@public
def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Any:
    """The X with A X = rhs, from the Cholesky factor of A.

    Args:
        chol: what `tf.linalg.cholesky(A)` gives.
        rhs: of the same dtype, [.., rows, columns].
        name: has no effect.
    Returns:
        Tensor of the shape of `rhs`.
    Raises:
        tf.errors.InvalidArgumentError: shapes do not fit, dtypes differ, or the factor has a zero on its diagonal.

    >>> import twofold as tf
    >>> chol = tf.linalg.cholesky(tf.constant([[4.0, 0.0], [0.0, 9.0]]))
    >>> tf.linalg.cholesky_solve(chol, tf.constant([[4.0], [18.0]])).numpy().tolist()
    [[1.0], [2.0]]
    """
    chol = tensor(chol, hint=rhs.dtype if hasattr(rhs, "dims") else None)
    half = ops.matrix_triangular_solve(chol, rhs, lower=True, adjoint=False)
    return ops.matrix_triangular_solve(chol, half, lower=True, adjoint=True)


@public
def inv(input: Any, adjoint: bool = False, name: str | None = None) -> Any:
    """The inverse of square matrices. `tf.linalg.solve` is faster and more accurate for solving equations.

    Args:
        input: square matrices, float32, float64 or complex.
        adjoint: whether the inverse of the adjoint is wanted.
        name: has no effect.
    Returns:
        Tensor like `input`.
    Raises:
        tf.errors.InvalidArgumentError: a matrix is singular or not square, or the dtype is another.

    >>> import twofold as tf
    >>> tf.linalg.inv(tf.constant([[2.0, 0.0], [0.0, 4.0]])).numpy().tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return ops.matrix_inverse(input, adjoint=bool(adjoint))


@public
def solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Any:
    """The X with matrix X = rhs.

    Args:
        matrix: square matrices, float32, float64 or complex.
        rhs: of the same dtype, [.., rows, columns]; batch axes broadcast.
        adjoint: solve with the adjoint of `matrix`.
        name: has no effect.
    Returns:
        Tensor [.., rows, columns].
    Raises:
        tf.errors.InvalidArgumentError: a matrix is singular, shapes do not fit, dtypes differ.

    >>> import twofold as tf
    >>> tf.linalg.solve(tf.constant([[2.0, 0.0], [0.0, 4.0]]), tf.constant([[2.0], [4.0]])).numpy().tolist()
    [[1.0], [1.0]]
    """
    return ops.matrix_solve(matrix, rhs, adjoint=bool(adjoint))


@public
def triangular_solve(matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None) -> Any:
    """The X with matrix X = rhs, where only one triangle of `matrix` counts.

    Args:
        matrix: square matrices, float32, float64 or complex; the other triangle is not read.
        rhs: of the same dtype, [.., rows, columns]; batch axes broadcast.
        lower: which triangle counts.
        adjoint: solve with the adjoint of that triangle.
        name: has no effect.
    Returns:
        Tensor [.., rows, columns].
    Raises:
        tf.errors.InvalidArgumentError: a zero on a diagonal, shapes do not fit, dtypes differ.

    >>> import twofold as tf
    >>> a = tf.constant([[2.0, 9.0], [1.0, 1.0]])
    >>> tf.linalg.triangular_solve(a, tf.constant([[2.0], [3.0]])).numpy().tolist()
    [[1.0], [2.0]]
    """
    return ops.matrix_triangular_solve(matrix, rhs, lower=bool(lower), adjoint=bool(adjoint))


@public
def lstsq(matrix: Any, rhs: Any, l2_regularizer: Any = 0.0, fast: bool = True, name: str | None = None) -> Any:
    """The X for which matrix X is nearest to rhs.

    With `fast`, from the normal equations by Cholesky: quick, for well-conditioned matrices of full rank; with fewer
    rows than columns, the smallest X. Otherwise by the pseudoinverse: the smallest X whatever the rank.

    Args:
        matrix: [.., m, n], float32, float64 or complex.
        rhs: of the same dtype, [.., m, k].
        l2_regularizer: weight of the square of X beside that of the residual; for `fast` only.
        fast: which way.
        name: has no effect.
    Returns:
        Tensor [.., n, k].
    Raises:
        tf.errors.InvalidArgumentError: shapes do not fit, dtypes differ, or `fast` meets a singular matrix.

    >>> import twofold as tf
    >>> line = tf.constant([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> tf.linalg.lstsq(line, tf.constant([[1.0], [3.0], [5.0]])).numpy().round(3).tolist()
    [[1.0], [2.0]]
    """
    matrix = _matrix(matrix, "lstsq")
    if not fast:
        return ops.matmul(pinv(matrix), rhs)
    rows, columns = matrix.dims[-2:]
    tall = dm.require(rows, ">=", columns)
    gram = matrices.product(matrix, matrix, left=True) if tall else matrices.product(matrix, matrix, right=True)
    size = columns if tall else rows
    weight = tensor(l2_regularizer, gram.dtype)
    shift = ops.where(matrices.diagonal_mask(size, size), weight, grad.scalar(0, gram))
    chol = ops.cholesky(ops.add(gram, shift))
    if tall:
        return cholesky_solve(chol, ops.matmul(matrix, rhs, adjoint_a=True))
    return ops.matmul(matrix, cholesky_solve(chol, rhs), adjoint_a=True)


@public
def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Any:
    """The Moore-Penrose pseudoinverse, by singular values.

    Its gradient is that of Golub & Pereyra (1973), for matrices near `a` of the same rank.

    Args:
        a: matrices [.., m, n], float32, float64 or complex.
        rcond: singular values up to this share of the largest count as zero; by default 10 max(m, n) eps.
        validate_args: has no effect; arguments are always checked.
        name: has no effect.
    Returns:
        Tensor [.., n, m].
    Raises:
        tf.errors.InvalidArgumentError: shapes or dtypes do not fit, or an element is not finite.

    >>> import twofold as tf
    >>> tf.linalg.pinv(tf.constant([[2.0, 0.0], [0.0, 4.0], [0.0, 0.0]])).numpy().round(4).tolist()
    [[0.5, 0.0, 0.0], [0.0, 0.25, 0.0]]
    """
    a = _matrix(a, "pinv")
    real = a.dtype.real_dtype
    if rcond is None:
        rcond = 10 * max(int(d) for d in a.dims[-2:]) * float(np.finfo(real.np).eps) if real.is_floating else 0.0
    return ops.pinv(a, tensor(rcond, real))


@public
def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Any:
    """How many singular values are larger than `tol`.

    Args:
        a: matrices [.., m, n], float32, float64 or complex.
        tol: by default eps * max(m, n) times the largest singular value.
        validate_args: has no effect; arguments are always checked.
        name: has no effect.
    Returns:
        int32 tensor of the batch's shape.
    Raises:
        tf.errors.InvalidArgumentError: the rank is below 2, the dtype is another, or an element is not finite.

    >>> import twofold as tf
    >>> tf.linalg.matrix_rank(tf.constant([[1.0, 2.0], [2.0, 4.0]])).numpy().item()
    1
    """
    a = _matrix(a, "matrix_rank")
    values = ops.svd(a, full_matrices=False, compute_uv=False)
    if tol is None:
        factor = max(int(d) for d in a.dims[-2:]) * float(np.finfo(values.dtype.np).eps)
        tol = ops.multiply(ops.reduce_max(values, axis=(-1,), keepdims=True), grad.scalar(factor, values))
    return ops.count_nonzero(ops.greater(values, tol), axis=(-1,), dtype=dt.int32)


# -- determinants ---------------------------------------------------------------------------------------
@public
def det(input: Any, name: str | None = None) -> Any:
    """The determinant of square matrices.

    Args:
        input: square matrices, float32, float64 or complex.
        name: has no effect.
    Returns:
        Tensor of the batch's shape. Its gradient needs an inverse, and raises where there is none.
    Raises:
        tf.errors.InvalidArgumentError: not square, or another dtype.

    >>> import twofold as tf
    >>> tf.linalg.det(tf.constant([[2.0, 0.0], [0.0, 4.0]])).numpy().item()
    8.0
    """
    return ops.matrix_determinant(input)


@public
def slogdet(input: Any, name: str | None = None) -> LogMatrixDeterminant:
    """Sign of the determinant, and logarithm of its absolute value.

    Args:
        input: square matrices, float32, float64 or complex.
        name: has no effect.
    Returns:
        `sign` and `log_abs_determinant`, tensors of the batch's shape and the same dtype; 0 and -inf for a singular
        matrix.
    Raises:
        tf.errors.InvalidArgumentError: not square, or another dtype.

    >>> import twofold as tf
    >>> sign, log = tf.linalg.slogdet(tf.constant([[0.0, 1.0], [1.0, 0.0]]))
    >>> sign.numpy().item(), log.numpy().item()
    (-1.0, 0.0)
    """
    return LogMatrixDeterminant(*ops.log_matrix_determinant(input))


@public
def logdet(matrix: Any, name: str | None = None) -> Any:
    """The logarithm of the determinant of Hermitian positive definite matrices, by Cholesky.

    Args:
        matrix: such matrices, float32, float64 or complex.
        name: has no effect.
    Returns:
        Real tensor of the batch's shape.
    Raises:
        tf.errors.InvalidArgumentError: a matrix is not positive definite or not square, or the dtype is another.

    >>> import twofold as tf
    >>> tf.linalg.logdet(tf.constant([[1.0, 0.0], [0.0, 1.0]])).numpy().item()
    0.0
    """
    diagonal = matrices.diag_part(ops.cholesky(matrix))
    real = ops.real(diagonal) if diagonal.dtype.is_complex else diagonal
    return ops.multiply(ops.reduce_sum(ops.log(real), axis=(-1,)), grad.scalar(2, real))


# -- decompositions -------------------------------------------------------------------------------------
@public
def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> Qr:
    """Unitary Q and upper triangular R with Q R = input.

    Args:
        input: matrices [.., m, n], float32, float64 or complex.
        full_matrices: whether Q is m by m, else m by min(m, n).
        name: has no effect.
    Returns:
        The pair (Q, R), with the names `q` and `r`.
        Gradients need full rank; source: Walter & Lehmann (2018), Roberts & Roberts (2020).
    Raises:
        tf.errors.InvalidArgumentError: rank below 2, or another dtype.

    >>> import twofold as tf
    >>> q, r = tf.linalg.qr(tf.constant([[3.0, 1.0], [4.0, 2.0]]))
    >>> tf.matmul(q, r).numpy().round(4).tolist()
    [[3.0, 1.0], [4.0, 2.0]]
    """
    return Qr(*ops.qr(input, full_matrices=bool(full_matrices)))


@public
def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """Singular values, and vectors with tensor = u diag(s) v^H.

    Args:
        tensor: matrices [.., m, n], float32, float64 or complex.
        full_matrices: whether `u` is m by m and `v` n by n, else both have min(m, n) columns.
        compute_uv: whether vectors are wanted.
        name: has no effect.
    Returns:
        (s, u, v), or s alone; s is real, largest first. Gradients of vectors need singular values that differ;
        source: Townsend (2016), Wan & Zhang (2019).
    Raises:
        tf.errors.InvalidArgumentError: rank below 2, another dtype, or an element that is not finite.

    >>> import twofold as tf
    >>> tf.linalg.svd(tf.constant([[0.0, 2.0], [3.0, 0.0]]), compute_uv=False).numpy().tolist()
    [3.0, 2.0]
    """
    return ops.svd(tensor, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv))


@public
def eigh(tensor: Any, name: str | None = None) -> tuple[Any, Any]:
    """Eigenvalues and eigenvectors of Hermitian matrices.

    Args:
        tensor: Hermitian matrices, float32, float64 or complex; the upper triangle is not read.
        name: has no effect.
    Returns:
        The pair (e, v): e is real, smallest first; column v[.., :, i] goes with e[.., i]. Gradients of vectors need
        eigenvalues that differ, and lie in the lower triangle; source: Giles (2008).
    Raises:
        tf.errors.InvalidArgumentError: not square, another dtype, or an element that is not finite.

    >>> import twofold as tf
    >>> e, v = tf.linalg.eigh(tf.constant([[2.0, 0.0], [0.0, 1.0]]))
    >>> e.numpy().tolist()
    [1.0, 2.0]
    """
    e, v = ops.self_adjoint_eig(tensor, compute_v=True)
    return e, v


@public
def eigvalsh(tensor: Any, name: str | None = None) -> Any:
    """Eigenvalues of Hermitian matrices, smallest first.

    Args:
        tensor: Hermitian matrices, float32, float64 or complex; the upper triangle is not read.
        name: has no effect.
    Returns:
        Real tensor [.., n].
    Raises:
        tf.errors.InvalidArgumentError: not square, another dtype, or an element that is not finite.

    >>> import twofold as tf
    >>> tf.linalg.eigvalsh(tf.constant([[2.0, 0.0], [0.0, 1.0]])).numpy().tolist()
    [1.0, 2.0]
    """
    return ops.self_adjoint_eig(tensor, compute_v=False)


@public
def eig(tensor: Any, name: str | None = None) -> tuple[Any, Any]:
    """Eigenvalues and eigenvectors of square matrices. They have no gradient.

    Args:
        tensor: square matrices, float32, float64 or complex.
        name: has no effect.
    Returns:
        The pair (e, v), both complex; column v[.., :, i] goes with e[.., i].
    Raises:
        tf.errors.InvalidArgumentError: not square, another dtype, or an element that is not finite.

    >>> import twofold as tf
    >>> e, v = tf.linalg.eig(tf.constant([[0.0, -1.0], [1.0, 0.0]]))
    >>> sorted(e.numpy().imag.tolist())
    [-1.0, 1.0]
    """
    e, v = ops.eig(tensor, compute_v=True)
    return e, v


@public
def eigvals(tensor: Any, name: str | None = None) -> Any:
    """Eigenvalues of square matrices. They have no gradient.

    Args:
        tensor: square matrices, float32, float64 or complex.
        name: has no effect.
    Returns:
        Complex tensor [.., n].
    Raises:
        tf.errors.InvalidArgumentError: not square, another dtype, or an element that is not finite.

    >>> import twofold as tf
    >>> sorted(tf.linalg.eigvals(tf.constant([[2.0, 0.0], [0.0, 1.0]])).numpy().real.tolist())
    [1.0, 2.0]
    """
    return ops.eig(tensor, compute_v=False)


@public
def expm(input: Any, name: str | None = None) -> Any:
    """The matrix exponential.

    Scaling and squaring with a Pade approximant (Higham, SIAM J. Matrix Anal. Appl. 26, 2005), in double precision.

    Args:
        input: square matrices, float32, float64 or complex.
        name: has no effect.
    Returns:
        Tensor like `input`.
    Raises:
        tf.errors.InvalidArgumentError: not square, another dtype, or an element that is not finite.

    >>> import twofold as tf
    >>> tf.linalg.expm(tf.constant([[0.0, 1.0], [0.0, 0.0]])).numpy().tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return ops.matrix_exponential(input)


class experimental:
    """`tf.linalg.experimental`: the method of conjugate gradients."""

    conjugate_gradient = staticmethod(conjugate_gradient)


publish(__name__)
