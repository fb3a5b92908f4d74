"""Linear operators: every method beside NumPy on the dense matrix, in both modes, with batches and gradients."""

import numpy as np
import pytest

import twofold as tf

L = tf.linalg
HINTS = ("is_non_singular", "is_self_adjoint", "is_positive_definite", "is_square")
RNG = np.random.default_rng(7)


def real(*shape):
    return RNG.normal(size=shape)


def heavy(x):
    """Square matrices with a diagonal that keeps them from being singular."""
    return x + 4 * np.eye(x.shape[-1])


def definite(x):
    return x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(x.shape[-1])


def around(kernel):
    """The matrix of the convolution with a kernel, around each axis."""
    rows = [np.roll(kernel, place, range(kernel.ndim)).ravel() for place in np.ndindex(kernel.shape)]
    return np.stack(rows, 1)


def blocks(a, b, below=0.0):
    made = np.zeros([a.shape[i] + b.shape[i] for i in range(2)])
    made[:a.shape[0], :a.shape[1]], made[a.shape[0]:, a.shape[1]:] = a, b
    made[a.shape[0]:, :a.shape[1]] = below
    return made


FULL, TRIANGLE, SMALL = heavy(real(3, 3)), heavy(real(2, 3, 3)), heavy(real(2, 2, 2))
KERNEL = real(3, 1, 2)
KERNEL[0, 0] += 9.0
BANDS = np.array([[1.0, 2, 9], [5, 6, 7], [9, 3, 4]])
TRIDIAGONAL = np.array([[5.0, 1, 0], [3, 6, 2], [0, 4, 7]])

#: operators, and the dense matrix that each stands for, made by NumPy
CASES = {
    "full": (lambda: L.LinearOperatorFullMatrix(FULL), FULL),
    "full complex": (lambda: L.LinearOperatorFullMatrix(FULL + 1j * FULL.T), FULL + 1j * FULL.T),
    "full wide": (lambda: L.LinearOperatorFullMatrix(TRIANGLE[:, :2]), TRIANGLE[:, :2]),
    "full definite": (lambda: L.LinearOperatorFullMatrix(definite(FULL), is_self_adjoint=True,
                                                         is_positive_definite=True), definite(FULL)),
    "diag": (lambda: L.LinearOperatorDiag(TRIANGLE[:, 0]), np.stack([np.diag(d) for d in TRIANGLE[:, 0]])),
    "diag complex": (lambda: L.LinearOperatorDiag(FULL[0] + 1j), np.diag(FULL[0] + 1j)),
    "diag definite": (lambda: L.LinearOperatorDiag(np.abs(FULL[0]), is_positive_definite=True),
                      np.diag(np.abs(FULL[0]))),
    "identity": (lambda: L.LinearOperatorIdentity(3, [2], tf.float64), np.stack([np.eye(3)] * 2)),
    "scaled identity": (lambda: L.LinearOperatorScaledIdentity(3, np.array([2.0, -3.0])),
                        np.array([2.0, -3.0])[:, None, None] * np.eye(3)),
    "scaled identity complex": (lambda: L.LinearOperatorScaledIdentity(3, np.array(2.0 - 1j)), (2 - 1j) * np.eye(3)),
    "zeros": (lambda: L.LinearOperatorZeros(3, batch_shape=[2], dtype=tf.float64), np.zeros((2, 3, 3))),
    "zeros wide": (lambda: L.LinearOperatorZeros(2, 3, dtype=tf.float64, is_square=False, is_self_adjoint=False),
                   np.zeros((2, 3))),
    "lower triangular": (lambda: L.LinearOperatorLowerTriangular(TRIANGLE), np.tril(TRIANGLE)),
    "lower triangular complex": (lambda: L.LinearOperatorLowerTriangular(FULL + 1j * FULL.T),
                                 np.tril(FULL + 1j * FULL.T)),
    "householder": (lambda: L.LinearOperatorHouseholder(FULL[0]),
                    np.eye(3) - 2 * np.outer(FULL[0], FULL[0]) / (FULL[0] @ FULL[0])),
    "householder complex": (lambda: L.LinearOperatorHouseholder(FULL[0] + 1j * FULL[1]), np.eye(3) - 2 * np.outer(
        FULL[0] + 1j * FULL[1], FULL[0] - 1j * FULL[1]) / (FULL[0] @ FULL[0] + FULL[1] @ FULL[1])),
    "adjoint": (lambda: L.LinearOperatorAdjoint(L.LinearOperatorFullMatrix(FULL + 1j * FULL.T)),
                np.conj(FULL + 1j * FULL.T).T),
    "inversion": (lambda: L.LinearOperatorInversion(L.LinearOperatorFullMatrix(FULL)), np.linalg.inv(FULL)),
    "composition": (lambda: L.LinearOperatorComposition([
        L.LinearOperatorFullMatrix(FULL), L.LinearOperatorLowerTriangular(TRIANGLE)]), FULL @ np.tril(TRIANGLE)),
    "composition of others": (lambda: L.LinearOperatorComposition([
        L.LinearOperatorFullMatrix(FULL[1:]), L.LinearOperatorFullMatrix(FULL[:, :2])]), FULL[1:] @ FULL[:, :2]),
    "kronecker": (lambda: L.LinearOperatorKronecker([
        L.LinearOperatorFullMatrix(FULL), L.LinearOperatorDiag(SMALL[:, 0] + 3), L.LinearOperatorFullMatrix(SMALL[0])]),
        np.stack([np.kron(np.kron(FULL, np.diag(SMALL[i, 0] + 3)), SMALL[0]) for i in range(2)])),
    "kronecker wide": (lambda: L.LinearOperatorKronecker([
        L.LinearOperatorFullMatrix(FULL[:2]), L.LinearOperatorFullMatrix(SMALL)]),
        np.stack([np.kron(FULL[:2], SMALL[i]) for i in range(2)])),
    "kronecker definite": (lambda: L.LinearOperatorKronecker([
        L.LinearOperatorDiag(np.array([1.0, 2.0]), is_positive_definite=True), L.LinearOperatorFullMatrix(
            definite(FULL), is_self_adjoint=True, is_positive_definite=True)]),
        np.kron(np.diag([1, 2]), definite(FULL))),
    "block diagonal": (lambda: L.LinearOperatorBlockDiag([
        L.LinearOperatorFullMatrix(SMALL), L.LinearOperatorDiag(FULL[0])]),
        np.stack([blocks(SMALL[i], np.diag(FULL[0])) for i in range(2)])),
    "block diagonal wide": (lambda: L.LinearOperatorBlockDiag([
        L.LinearOperatorFullMatrix(FULL[:2]), L.LinearOperatorFullMatrix(SMALL[0])], is_square=None),
        blocks(FULL[:2], SMALL[0])),
    "block lower triangular": (lambda: L.LinearOperatorBlockLowerTriangular([
        [L.LinearOperatorFullMatrix(SMALL)],
        [L.LinearOperatorFullMatrix(FULL[:, :2]), L.LinearOperatorLowerTriangular(TRIANGLE[0])]]),
        np.stack([blocks(SMALL[i], np.tril(TRIANGLE[0]), FULL[:, :2]) for i in range(2)])),
    "low rank update": (lambda: L.LinearOperatorLowRankUpdate(
        L.LinearOperatorFullMatrix(TRIANGLE), FULL[:, :2], SMALL[0, 0], TRIANGLE[0, :, 1:]),
        TRIANGLE + FULL[:, :2] @ np.diag(SMALL[0, 0]) @ TRIANGLE[0, :, 1:].T),
    "low rank update definite": (lambda: L.LinearOperatorLowRankUpdate(
        L.LinearOperatorDiag(np.abs(FULL[0]), is_positive_definite=True), FULL[:, :2]),
        np.diag(np.abs(FULL[0])) + FULL[:, :2] @ FULL[:, :2].T),
    "low rank update complex": (lambda: L.LinearOperatorLowRankUpdate(
        L.LinearOperatorDiag(FULL[0] + 1j), FULL[:, :1] + 2j, [2 - 1j]), np.diag(FULL[0] + 1j) + (2 - 1j) * (
            FULL[:, :1] + 2j) @ (FULL[:, :1] - 2j).T),
    "permutation": (lambda: L.LinearOperatorPermutation([[1, 2, 0], [1, 0, 2]], tf.float64),
                    np.eye(3)[np.array([[1, 2, 0], [1, 0, 2]])]),
    "permutation of one": (lambda: L.LinearOperatorPermutation([2, 0, 1], tf.float64), np.eye(3)[[2, 0, 1]]),
    "toeplitz": (lambda: L.LinearOperatorToeplitz(np.array([5.0, 2.0, 3.0]), np.array([[7.0, 1.0, 4.0], [0, 2, 2]])),
                 np.array([[[5.0, 1, 4], [2, 5, 1], [3, 2, 5]], [[5, 2, 2], [2, 5, 2], [3, 2, 5]]])),
    "toeplitz complex": (lambda: L.LinearOperatorToeplitz(np.array([5.0, 2j]), np.array([5.0, 1 + 1j])),
                         np.array([[5.0, 1 + 1j], [2j, 5]])),
    **{f"tridiagonal {form}": (lambda form=form: L.LinearOperatorTridiag({
        "compact": BANDS, "sequence": [*BANDS], "matrix": TRIDIAGONAL}[form], form), TRIDIAGONAL)
       for form in ("compact", "sequence", "matrix")},
    "circulant": (lambda: L.LinearOperatorCirculant(np.fft.fft(KERNEL[:, 0, 0]), tf.float64), around(KERNEL[:, 0, 0])),
    "circulant real spectrum": (lambda: L.LinearOperatorCirculant(KERNEL[:, 0, 0], tf.complex128),
                                around(np.fft.ifft(KERNEL[:, 0, 0]))),
    "circulant of two axes": (lambda: L.LinearOperatorCirculant2D(np.fft.fft2(KERNEL[:, 0]), tf.complex128),
                              around(KERNEL[:, 0] + 0j)),
    "circulant of three axes": (lambda: L.LinearOperatorCirculant3D(np.fft.fftn(KERNEL)[None], tf.float64),
                                around(KERNEL)[None]),
    "tridiagonal complex": (lambda: L.LinearOperatorTridiag(BANDS[None] * (1 + 1j)), TRIDIAGONAL[None] * (1 + 1j)),
}


def answers(op, x, y):
    """What an operator says: `x` has as many rows as the operator columns, `y` as many as it has rows."""
    said = {"matmul": op.matmul(x), "adjoint product": op.matmul(y, adjoint=True), "matvec": op.matvec(x[:, 0]),
            "adjoint_arg": op.matmul(tf.linalg.adjoint(x), adjoint_arg=True), "@": op @ x,
            "adjoint matvec": op.matvec(y[:, 0], adjoint=True), "to_dense": op.to_dense(),
            "diag_part": op.diag_part(), "trace": op.trace(), "add_to_tensor": op.add_to_tensor(y[:, :1]),
            "H": op.H.to_dense(), "H product": op.H @ y, "shape": op.shape_tensor(), "batch": op.batch_shape_tensor(),
            "rank": op.tensor_rank_tensor(), "columns": op.domain_dimension_tensor(),
            "rows": op.range_dimension_tensor()}
    if op.is_square:
        said |= {"det": op.determinant()}
    if op.is_square and op.is_non_singular is not False:
        said |= {"log det": op.log_abs_determinant(), "solve": op.solve(y), "solvevec": op.solvevec(y[:, 0]),
                 "adjoint solve": op.solve(y, adjoint=True), "adjoint solvevec": op.solvevec(y[:, 0], adjoint=True),
                 "solve adjoint_arg": op.solve(tf.linalg.adjoint(y), adjoint_arg=True), "cond": op.cond(),
                 "inverse": op.inverse().to_dense(), "inverse of H": op.H.inverse().matmul(y)}
    if op.is_self_adjoint:
        said |= {"eigvals": op.eigvals()}
    if op.is_self_adjoint and op.is_positive_definite:
        said |= {"cholesky": op.cholesky().to_dense()}
    return said


def expected(dense, x, y):
    """What NumPy says of the matrix."""
    h = np.conj(np.swapaxes(dense, -1, -2))
    told = {"matmul": dense @ x, "adjoint product": h @ y, "matvec": dense @ x[:, 0], "adjoint_arg": dense @ x,
            "@": dense @ x, "adjoint matvec": h @ y[:, 0], "to_dense": dense,
            "diag_part": np.diagonal(dense, axis1=-2, axis2=-1), "trace": np.trace(dense, axis1=-2, axis2=-1),
            "add_to_tensor": dense + y[:, :1], "H": h, "H product": h @ y, "shape": dense.shape,
            "batch": dense.shape[:-2], "rank": dense.ndim, "columns": dense.shape[-1], "rows": dense.shape[-2]}
    if dense.shape[-1] == dense.shape[-2]:
        told["det"] = np.linalg.det(dense)
        if np.all(np.abs(told["det"]) > 1e-9):
            inverse, back = np.linalg.inv(dense), np.linalg.inv(h)
            told |= {"log det": np.log(np.abs(told["det"])), "solve": inverse @ y, "solvevec": inverse @ y[:, 0],
                     "adjoint solve": back @ y, "adjoint solvevec": back @ y[:, 0], "solve adjoint_arg": inverse @ y,
                     "cond": np.linalg.cond(dense), "inverse": inverse, "inverse of H": back @ y}
        if np.allclose(dense, h):
            told["eigvals"] = np.linalg.eigvalsh(dense)
            if (told["eigvals"] > 0).all():
                told["cholesky"] = np.linalg.cholesky(dense)
    return told


def operands(name):
    op, dense = CASES[name][0](), np.asarray(CASES[name][1])
    x, y = (np.random.default_rng(3).normal(size=(size, 2)).astype(dense.dtype) for size in dense.shape[:-3:-1])
    return op, dense, x, y


@pytest.mark.parametrize("name", CASES)
def test_every_method_beside_numpy(name):
    op, dense, x, y = operands(name)
    assert op.shape == dense.shape
    assert (op.tensor_rank, op.batch_shape, op.domain_dimension, op.range_dimension) == (
        dense.ndim, dense.shape[:-2], dense.shape[-1], dense.shape[-2])
    assert op.is_square is (dense.shape[-1] == dense.shape[-2])
    told = expected(dense, x, y)
    for question, answer in answers(op, tf.constant(x), tf.constant(y)).items():
        answer = np.asarray(answer)
        if question == "eigvals":
            answer = np.sort(answer, axis=-1)
        np.testing.assert_allclose(answer, told[question], 1e-9, 1e-9, err_msg=question)


@pytest.mark.parametrize("name", CASES)
def test_functions_take_operators_and_give_the_bits_of_eager_calls(name):
    op, _, x, y = operands(name)
    x, y = tf.constant(x), tf.constant(y)

    @tf.function
    def asked(op, x, y):
        said = {"product": op.matmul(x), "adjoint": op.matmul(y, adjoint=True), "dense": op.to_dense()}
        if op.is_square and op.is_non_singular is not False:
            said |= {"solve": op.solve(y), "log det": op.log_abs_determinant()}
        return said, op

    said, same = asked(op, x, y)
    assert type(same) is type(op)
    assert [getattr(same, hint) for hint in HINTS] == [getattr(op, hint) for hint in HINTS]
    eager = asked.python_function(op, x, y)[0]
    for question, answer in said.items():
        assert answer.numpy().tobytes() == eager[question].numpy().tobytes(), question
    np.testing.assert_array_equal(same.to_dense(), op.to_dense())


def definite_diag(x):
    return L.LinearOperatorDiag(x[0] * x[0] + 1.0)


@pytest.mark.parametrize("make", [L.LinearOperatorFullMatrix, L.LinearOperatorLowerTriangular, definite_diag])
def test_gradients_of_solve_and_log_abs_determinant(make):
    matrix, rhs = FULL, np.ones((3, 1))

    @tf.function
    def value(x):
        op = make(x)
        return tf.reduce_sum(op.solve(rhs) ** 2) + op.log_abs_determinant()

    x = tf.constant(matrix)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = value(x)
    differences = np.zeros((3, 3))
    for place in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[place] = 1e-6
        differences[place] = (value(tf.constant(matrix + step)) - value(tf.constant(matrix - step))) / 2e-6
    np.testing.assert_allclose(tape.gradient(y, x), differences, 1e-6, 1e-7)


def test_tapes_take_operators_and_their_variables():
    weights = tf.Variable(FULL[0])
    with tf.GradientTape() as tape:
        op = L.LinearOperatorDiag(weights)
        y = op.log_abs_determinant()
    assert [v.name for v in op.trainable_variables] == [weights.name]
    np.testing.assert_allclose(tape.gradient(y, weights), 1 / FULL[0])
    op = L.LinearOperatorDiag(FULL[0])
    with tf.GradientTape() as tape:
        tape.watch(op)
        y = op.log_abs_determinant()
    np.testing.assert_allclose(tape.gradient(y, op).diag, 1 / FULL[0])


DIAG, TRIL = L.LinearOperatorDiag([1.0, 2.0]), L.LinearOperatorLowerTriangular([[1.0, 0.0], [2.0, 3.0]])
SAME, MATRIX = L.LinearOperatorIdentity(2), L.LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("make, kind", [
    (lambda: DIAG @ DIAG, "Diag"), (lambda: DIAG.inverse(), "Diag"), (lambda: DIAG.H, "Diag"),
    (lambda: DIAG @ TRIL, "LowerTriangular"), (lambda: TRIL @ DIAG, "LowerTriangular"),
    (lambda: TRIL @ TRIL, "LowerTriangular"), (lambda: TRIL.inverse(), "LowerTriangular"),
    (lambda: SAME @ MATRIX, "FullMatrix"), (lambda: MATRIX @ SAME, "FullMatrix"), (lambda: DIAG.solve(DIAG), "Diag"),
    (lambda: L.LinearOperatorScaledIdentity(2, 3.0) @ DIAG, "Diag"),
    (lambda: DIAG @ L.LinearOperatorScaledIdentity(2, 3.0), "Diag"), (lambda: MATRIX @ DIAG, "Composition"),
    (lambda: MATRIX.inverse(), "Inversion"), (lambda: MATRIX.inverse().inverse(), "FullMatrix"),
    (lambda: L.LinearOperatorKronecker([DIAG, MATRIX]).inverse(), "Kronecker"),
    (lambda: L.LinearOperatorBlockDiag([DIAG, MATRIX]).H, "BlockDiag"),
    (lambda: L.LinearOperatorCirculant([1.0, 2.0]).matmul(L.LinearOperatorCirculant([1.0, 2.0])), "Circulant"),
    (lambda: L.LinearOperatorPermutation([1, 2, 0]).inverse(), "Permutation"),
    (lambda: L.LinearOperatorToeplitz([1.0, 2.0], [1.0, 3.0]).H, "Toeplitz"),
    (lambda: MATRIX.H, "Adjoint"),
    (lambda: MATRIX.H.H, "FullMatrix"), (lambda: MATRIX.solve(DIAG), "Composition"),
])
def test_products_and_inverses_are_operators_as_simple_as_they_can_be(make, kind):
    assert type(make()).__name__ == f"LinearOperator{kind}"


def test_products_of_operators_beside_products_of_matrices():
    operators = [DIAG, TRIL, SAME, MATRIX, L.LinearOperatorScaledIdentity(2, 3.0), MATRIX.H, TRIL.inverse()]
    for left in operators:
        for right in operators:
            a, b = left.to_dense().numpy(), right.to_dense().numpy()
            np.testing.assert_allclose((left @ right).to_dense(), a @ b, 1e-6)
            np.testing.assert_allclose(left.matmul(right, adjoint=True, adjoint_arg=True).to_dense(), a.T @ b.T, 1e-6)
            np.testing.assert_allclose(left.solve(right).to_dense(), np.linalg.solve(a, b), 1e-5, 1e-5)


@pytest.mark.parametrize("make, error, text", [
    (lambda: L.LinearOperatorDiag([1.0], is_square=False), ValueError, "Only square diagonal operators"),
    (lambda: L.LinearOperatorDiag([1.0], is_self_adjoint=False), ValueError, "always self adjoint"),
    (lambda: L.LinearOperatorDiag([1, 2]), TypeError, "floating dtype"),
    (lambda: L.LinearOperatorDiag(1.0), ValueError, "at least 1 dimension"),
    (lambda: L.LinearOperatorFullMatrix([1.0, 2.0]), ValueError, "at least 2 dimensions"),
    (lambda: L.LinearOperatorFullMatrix([[1.0]], is_non_singular=True, is_square=False), ValueError, "always square"),
    (lambda: L.LinearOperatorFullMatrix([[1.0]], is_positive_definite=True, is_non_singular=False), ValueError,
     "always non-singular"),
    (lambda: L.LinearOperatorFullMatrix([[1.0]], is_square=False).is_square, ValueError, "the operator was square"),
    (lambda: L.LinearOperatorFullMatrix([[1.0]], is_square="no"), TypeError, "True, False or None"),
    (lambda: L.LinearOperatorFullMatrix([[1.0, 2.0]]).solve([[1.0]]), NotImplementedError, "not be square"),
    (lambda: L.LinearOperatorFullMatrix([[1.0, 2.0]]).determinant(), NotImplementedError, "Determinant"),
    (lambda: L.LinearOperatorFullMatrix([[1.0, 2.0]]).inverse(), ValueError, "non square"),
    (lambda: L.LinearOperatorFullMatrix([[1.0]], is_non_singular=False).solve([[1.0]]), NotImplementedError,
     "singular"),
    (lambda: L.LinearOperatorFullMatrix([[1.0]], is_non_singular=False).inverse(), ValueError, "singular"),
    (lambda: MATRIX.matmul([[1.0]]), ValueError, "Dimensions 2 and 1 are not compatible"),
    (lambda: MATRIX.matvec(np.ones(2)), TypeError, "float32. Found: float64"),
    (lambda: MATRIX.matmul([1.0, 2.0]), ValueError, "rank at least 2"),
    (lambda: MATRIX @ L.LinearOperatorIdentity(3), ValueError, "Dimensions 2 and 3"),
    (lambda: MATRIX.eigvals(), NotImplementedError, "Only self-adjoint"),
    (lambda: MATRIX.cholesky(), ValueError, "Cholesky"),
    (lambda: MATRIX.assert_self_adjoint(), tf.errors.InvalidArgumentError, "not equal to its adjoint"),
    (lambda: MATRIX.assert_positive_definite(), tf.errors.InvalidArgumentError, "not positive definite"),
    (lambda: L.LinearOperatorFullMatrix([[1.0, 1.0], [1.0, 1.0]]).assert_non_singular(),
     tf.errors.InvalidArgumentError, "Singular matrix"),
    (lambda: L.LinearOperatorDiag([0.0, 1.0]).assert_non_singular(), tf.errors.InvalidArgumentError, "zero values"),
    (lambda: L.LinearOperatorDiag([-1.0]).assert_positive_definite(), tf.errors.InvalidArgumentError, "not positive"),
    (lambda: L.LinearOperatorDiag([1j]).assert_self_adjoint(), tf.errors.InvalidArgumentError, "not self-adjoint"),
    (lambda: L.LinearOperatorIdentity(-2), ValueError, "non-negative"),
    (lambda: L.LinearOperatorIdentity(2.0), TypeError, "integer type"),
    (lambda: L.LinearOperatorIdentity(2, is_self_adjoint=False), ValueError, "always self adjoint"),
    (lambda: L.LinearOperatorZeros(2, 3), ValueError, "is_square=True"),
    (lambda: L.LinearOperatorZeros(2, is_non_singular=True), ValueError, "always singular"),
    (lambda: L.LinearOperatorZeros(2).inverse(), ValueError, "singular"),
    (lambda: L.LinearOperatorZeros(2).assert_positive_definite(), tf.errors.InvalidArgumentError, "non-positive"),
    (lambda: L.LinearOperatorHouseholder([1.0], is_positive_definite=True), ValueError, "non-positive definite"),
    (lambda: L.LinearOperatorComposition([]), ValueError, "non-empty list"),
    (lambda: L.LinearOperatorComposition([MATRIX, L.LinearOperatorIdentity(2, dtype=tf.float64)]), TypeError,
     "the same dtype"),
    (lambda: L.LinearOperatorComposition([MATRIX, L.LinearOperatorIdentity(3)]), ValueError, "not compatible"),
    (lambda: L.LinearOperatorInversion(L.LinearOperatorZeros(2)), ValueError, "no inverse"),
    (lambda: L.LinearOperatorBlockLowerTriangular([[DIAG], [DIAG]]), ValueError, "Row 2 has 1"),
    (lambda: L.LinearOperatorBlockLowerTriangular([[DIAG], [L.LinearOperatorDiag([1.0]), DIAG]]), ValueError,
     "Dimensions 1 and 2"),
    (lambda: L.LinearOperatorPermutation([0, 0]), ValueError, "unique integers"),
    (lambda: L.LinearOperatorPermutation([0.0]), TypeError, "integer dtype"),
    (lambda: L.LinearOperatorToeplitz([1.0], [1.0, 2.0]), ValueError, "Expected square matrix"),
    (lambda: L.LinearOperatorTridiag([[1.0]]), ValueError, "Expected 3 diagonals"),
    (lambda: L.LinearOperatorTridiag([[1.0]], "rows"), ValueError, "diagonals_format"),
    (lambda: L.LinearOperatorLowRankUpdate(DIAG, [[1.0]]), ValueError, "Dimensions 1 and 2"),
    (lambda: L.LinearOperatorLowRankUpdate(DIAG, np.ones((2, 1))), TypeError, "float64"),
    (lambda: L.LinearOperatorCirculant([1.0], is_self_adjoint=False), ValueError, "self-adjoint"),
    (lambda: L.LinearOperatorCirculant([1 + 0j, 2j]).assert_hermitian_spectrum(), tf.errors.InvalidArgumentError,
     "not Hermitian"),
    (lambda: L.LinearOperatorCirculant([1.0, 0.0]).assert_non_singular(), tf.errors.InvalidArgumentError, "zero"),
    (lambda: L.LinearOperatorAdjoint([[1.0]]), TypeError, "Expected a LinearOperator"),
    (lambda: L.LinearOperatorAdjoint(DIAG, is_self_adjoint=False), ValueError, "contradicts"),
])
def test_errors(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_what_holds_is_asserted_without_an_error():
    good = L.LinearOperatorFullMatrix(definite(FULL))
    for op in (good, L.LinearOperatorDiag([1.0, 2.0]), L.LinearOperatorIdentity(2), good.H, good.inverse(),
               L.LinearOperatorScaledIdentity(2, 3.0), L.LinearOperatorLowerTriangular([[1.0]])):
        op.assert_non_singular()
        op.assert_positive_definite()
    for op in (L.LinearOperatorDiag([1.0, 2.0]), L.LinearOperatorIdentity(2), L.LinearOperatorZeros(2)):
        op.assert_self_adjoint()


def test_sizes_that_are_not_known_when_a_function_is_traced():
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float64), tf.TensorSpec([None], tf.float64)])
    def asked(matrix, diagonal):
        op = L.LinearOperatorFullMatrix(matrix)
        both = op @ L.LinearOperatorDiag(diagonal) @ L.LinearOperatorIdentity(tf.shape(diagonal)[0], dtype=tf.float64)
        return both.to_dense(), both.shape_tensor(), both.matvec(diagonal), op.inverse().to_dense(), op.trace()

    dense, sizes, product, inverse, trace = asked(FULL, FULL[0])
    np.testing.assert_allclose(dense, FULL * FULL[0])
    assert sizes.numpy().tolist() == [3, 3]
    np.testing.assert_allclose(product, FULL @ FULL[0] ** 2)
    np.testing.assert_allclose(inverse, np.linalg.inv(FULL))
    np.testing.assert_allclose(trace, np.trace(FULL))


def test_conjugate_gradients_take_operators():
    op = L.LinearOperatorFullMatrix(definite(FULL), is_self_adjoint=True, is_positive_definite=True)
    found = L.experimental.conjugate_gradient(op, tf.constant(FULL[0]), tol=1e-12)
    np.testing.assert_allclose(found.x, np.linalg.solve(definite(FULL), FULL[0]), 1e-8)


def test_operators_of_blocks_take_lists_of_blocks():
    x = [np.float32([[1.0], [2.0]]), np.float32([[3.0], [4.0]])]
    below = L.LinearOperatorBlockLowerTriangular([[DIAG], [TRIL, MATRIX]])
    for method in (below.matmul, below.solve):
        np.testing.assert_allclose(tf.concat(method(x), 0), method(np.concatenate(x)))
        np.testing.assert_allclose(tf.concat(method(x, adjoint=True), 0), method(np.concatenate(x), adjoint=True))
    op = L.LinearOperatorBlockDiag([DIAG, MATRIX])
    for method, alone in ((op.matmul, (DIAG.matmul, MATRIX.matmul)), (op.solve, (DIAG.solve, MATRIX.solve))):
        for got, part, block in zip(method(x), x, alone, strict=True):
            np.testing.assert_array_equal(got, block(part))
    for method, alone in ((op.matvec, (DIAG.matvec, MATRIX.matvec)), (op.solvevec, (DIAG.solvevec, MATRIX.solvevec))):
        for got, part, block in zip(method([p[:, 0] for p in x]), x, alone, strict=True):
            np.testing.assert_array_equal(got, block(part[:, 0]))


# What TensorFlow 2.21 gives for `to_dense` of the same arguments.
@pytest.mark.parametrize("make, dense", [
    (lambda: L.LinearOperatorPermutation([1, 2, 0]), [[0, 1, 0], [0, 0, 1], [1, 0, 0]]),
    (lambda: L.LinearOperatorTridiag([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]), [[4, 1, 0], [8, 5, 2], [0, 9, 6]]),
    (lambda: L.LinearOperatorCirculant([1.0, 2.0, 3.0]), [
        [2, -0.5 + 0.28867513j, -0.5 - 0.28867513j], [-0.5 - 0.28867513j, 2, -0.5 + 0.28867513j],
        [-0.5 + 0.28867513j, -0.5 - 0.28867513j, 2]]),
    (lambda: L.LinearOperatorCirculant([1.0, 2.0, 2.0], tf.float32),
     np.full((3, 3), -0.33333334) + 2 * np.eye(3)),
])
def test_matrices_are_those_of_tensorflow(make, dense):
    np.testing.assert_allclose(make().to_dense(), dense, 1e-6, 1e-6)


@pytest.mark.parametrize("name", CASES)
def test_parts_of_batches_are_those_of_the_dense_matrices(name):
    op, dense, _, _ = operands(name)
    for keys in ((), (tf.newaxis, ...), *((-1, slice(None, 1), (..., 0)) if dense.ndim > 2 else ())):
        part = op[keys]
        own = keys if isinstance(keys, tuple) else (keys,)
        wanted = dense[(*own, *([] if Ellipsis in own else [...]), slice(None), slice(None))]
        assert type(part) is type(op) and part.shape == wanted.shape
        np.testing.assert_allclose(part.to_dense(), wanted, 1e-9, 1e-9)


def test_parts_of_operators_whose_parameters_broadcast_and_in_functions():
    kronecker = L.LinearOperatorKronecker([L.LinearOperatorDiag(np.ones([3, 1, 2])),
                                           L.LinearOperatorDiag(np.arange(8.0).reshape(4, 2))])
    assert kronecker.batch_shape == [3, 4]
    np.testing.assert_array_equal(kronecker[2, 1:3].to_dense(), kronecker.to_dense()[2, 1:3])

    @tf.function
    def row(op, n):
        return op[n].to_dense()
    op = L.LinearOperatorLowRankUpdate(L.LinearOperatorDiag(np.ones([2, 3])), np.ones([3, 1]))
    np.testing.assert_array_equal(row(op, tf.constant(1)), op.to_dense()[1])
    with pytest.raises(IndexError, match="2 indices for a batch of 1 axis"):
        op[0, 0]

    class Twice(L.LinearOperator):
        def _shape(self):
            return tf.TensorShape([3, 2, 2])

        def _matmul(self, x, adjoint=False, adjoint_arg=False):
            return 2 * x
    with pytest.raises(NotImplementedError, match="does not say which axes"):
        Twice(tf.float32)[0]
