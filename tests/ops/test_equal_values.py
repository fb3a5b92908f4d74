"""Gradients of eigenvectors, singular vectors and norms where values are equal or vanish: finite, 0 where undecided.
Equal elements that are sorted keep their order."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf

TURN = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
MATRICES = {
    "one": np.eye(4), "zero": np.zeros((4, 4)), "ones": np.ones((4, 4)), "turned one": TURN @ TURN.T,
    "pairs": np.diag([2.0, 2.0, 5.0, 5.0]), "turned pairs": TURN @ np.diag([2.0, 2.0, 5.0, 5.0]) @ TURN.T,
    "singular": np.diag([3.0, 1.0, 0.0, 0.0]), "tiny": 1e-15 * np.diag([1.0, 2.0, 3.0, 4.0]),
}
VECTORS = {"eigh": lambda x: tf.linalg.eigh(x)[1], "svd u": lambda x: tf.linalg.svd(x)[1],
           "svd v": lambda x: tf.linalg.svd(x)[2]}


def gradient(function, x):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x).numpy()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("name", VECTORS)
def test_gradients_are_finite(name, matrix, dtype):
    x = MATRICES[matrix].astype(dtype)
    got = gradient(VECTORS[name], x)
    assert np.isfinite(got).all()
    if matrix in ("one", "zero"):
        np.testing.assert_array_equal(got, np.zeros_like(got))
    for shape in ((6, 4), (4, 6)):
        if name != "eigh":
            assert np.isfinite(gradient(VECTORS[name], np.resize(x, shape))).all()
    np.testing.assert_array_equal(gradient(tf.function(VECTORS[name]), x), got)


@pytest.mark.parametrize("matrix", ["turned pairs", "singular", "pairs"])
def test_what_does_not_depend_on_the_choice_has_its_gradient(matrix):
    """f(x) = sum of w * v g(e) v^H, whose gradient exists though e has equal values, by differences."""
    weights = np.random.default_rng(1).normal(size=(4, 4))
    weights += weights.T

    def whole(x):
        e, v = tf.linalg.eigh(x)
        return tf.reduce_sum(weights * tf.matmul(v * e * e * e, v, transpose_b=True))

    x, step = MATRICES[matrix], 1e-5
    got = gradient(whole, x)
    want = np.zeros_like(x)
    for i in range(4):
        for j in range(i + 1):
            move = np.zeros_like(x)
            move[i, j] = move[j, i] = step
            want[i, j] = float(whole(tf.constant(x + move)) - whole(tf.constant(x - move))) / (2 * step)
    # equal values give each other nothing: what is left of the derivative is that between different ones
    e, v = np.linalg.eigh(x)
    inner = v.T @ weights @ v
    missing = np.where(np.isclose(e[:, None], e), 3 * e * e * inner, 0) * (1 - np.eye(4))
    lost = v @ missing @ v.T
    lost = np.tril(lost + lost.T) - np.diag(np.diag(lost))
    np.testing.assert_allclose(got + lost, want, rtol=1e-6, atol=1e-6)


def test_scale_does_not_matter():
    x = np.diag([1.0, 2.0, 4.0]) + 0.1
    for factor in (1e-12, 1e12):
        got = gradient(VECTORS["eigh"], x * factor) * factor
        np.testing.assert_allclose(got, gradient(VECTORS["eigh"], x), rtol=1e-6)


@pytest.mark.parametrize("order", ["euclidean", 1, 2, 2.5, 3, np.inf])
def test_norms_of_zero_vectors(order):
    x = np.array([[0.0, 0.0], [3.0, 4.0]])
    got = gradient(lambda v: tf.norm(v, order, axis=1), x)
    assert np.isfinite(got).all()
    np.testing.assert_array_equal(got[0], [0, 0])
    np.testing.assert_array_equal(tf.norm(x, order, axis=1).numpy()[0], 0)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_zeros_of_both_signs_keep_their_order(dtype, descending):
    """They are equal, and told apart by their bits; with Python's stable sort."""
    x = np.random.default_rng(0).choice([-1.0, -0.0, 0.0, 2.0], (3, 200))
    want = [sorted(row, reverse=descending) for row in x.tolist()]
    got = tf.cast(tf.sort(tf.cast(x, dtype), direction="DESCENDING" if descending else "ASCENDING"), "float64")
    assert got.numpy().tobytes() == np.array(want).tobytes()
