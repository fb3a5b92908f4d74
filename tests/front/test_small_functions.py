"""Small functions of tf.math and tf.nn, against formulas and SciPy."""

import numpy as np
import pytest
from scipy import special

import twofold as tf

X = np.array([[0.5, 2.0, 3.5], [1.0, 4.0, 0.25]])


def test_orders():
    for values, steps, strict in (([1, 2, 2], True, False), ([1, 2, 3], True, True), ([2, 1], False, False),
                                  ([], True, True), ([[1, 2], [3, 4]], True, True), ([[1, 4], [3, 5]], False, False)):
        values = np.array(values, np.int32)
        assert bool(tf.math.is_non_decreasing(values)) is steps
        assert bool(tf.math.is_strictly_increasing(values)) is strict


def test_lbeta():
    np.testing.assert_allclose(tf.math.lbeta(X), special.gammaln(X).sum(1) - special.gammaln(X.sum(1)), rtol=1e-12)


def test_largest_and_smallest():
    values, places = tf.nn.approx_max_k(X.astype(np.float32), 2)
    assert (values.numpy().tolist(), places.numpy().tolist()) == ([[3.5, 2.0], [4.0, 1.0]], [[2, 1], [1, 0]])
    values, places = tf.math.approx_min_k(X.astype(np.float32), 1)
    assert (values.numpy().tolist(), places.numpy().tolist()) == ([[0.5], [0.25]], [[0], [2]])
    with pytest.raises(ValueError, match="last one"):
        tf.nn.approx_max_k(X.astype(np.float32), 1, 0)
    with pytest.raises(TypeError, match="float32"):
        tf.nn.approx_max_k(X, 1)


def test_losses_of_batches():
    losses, weights = tf.constant(X), [1.0, 0.5]
    expected = (X * np.array([[1.0], [0.5]])).sum()
    assert float(tf.nn.compute_average_loss(losses, weights)) == expected / 2
    assert float(tf.nn.compute_average_loss(losses, weights, global_batch_size=8)) == expected / 8
    compiled = tf.function(tf.nn.compute_average_loss, input_signature=[tf.TensorSpec([None, 3], tf.float64)])
    assert float(compiled(X)) == X.sum() / 2
    assert float(tf.nn.scale_regularization_loss(X)) == X.sum()
    actual = tf.nn.batch_norm_with_global_normalization(X, 1.0, 4.0, 0.5, 3.0, 0.0, True)
    np.testing.assert_allclose(actual, (X - 1) / 2 * 3 + 0.5)


def test_polygamma_of_a_tensor_of_orders():
    """As TensorFlow: elementwise, NaN for what is no order, no gradient by the order; traced scalars, too."""
    a, x = tf.constant([[0.0], [1.0], [2.0], [3.5], [-1.0]]), tf.constant([1.0, 2.5])
    with tf.GradientTape() as tape:
        tape.watch([a, x])
        y = tf.math.polygamma(a, x)
        orders = y[:3]
    by_order, by_x = tape.gradient(orders, [a, x])
    want = np.stack([special.polygamma(n, x.numpy().astype(np.float64)) for n in range(4)])
    np.testing.assert_allclose(y[:3].numpy(), want[:3], rtol=1e-6)
    assert np.isnan(y[3:].numpy()).all()
    assert by_order is None
    np.testing.assert_allclose(by_x.numpy(), want[1:].sum(0), rtol=1e-6)
    np.testing.assert_array_equal(tf.function(tf.math.polygamma)(a, x).numpy(), y.numpy())
    np.testing.assert_array_equal(tf.function(tf.math.polygamma)(tf.constant(2.0), x).numpy(), y[2].numpy())
    np.testing.assert_array_equal(tf.math.polygamma(2, x).numpy(), y[2].numpy())
    for wrong in (2.0**63, 171, -1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="0 to 170"):
            tf.math.polygamma(wrong, x)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (2, 3, 7), (1, 4)], ids=str)
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_singular_vectors_are_orthonormal_and_give_the_matrix(shape, full, dtype):
    rng = np.random.default_rng(0)
    a = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype == "complex128" else 0)
    s, u, v = [x.numpy() for x in tf.linalg.svd(a, full_matrices=full)]
    few = s.shape[-1]
    assert u.shape == (*shape[:-1], shape[-2] if full else few) and v.shape == (*shape[:-2], shape[-1],
                                                                               shape[-1] if full else few)
    np.testing.assert_allclose(u[..., :few] * s[..., None, :] @ np.conj(v[..., :few].swapaxes(-1, -2)), a, atol=1e-12)
    for vectors in (u, v):
        product = np.conj(vectors.swapaxes(-1, -2)) @ vectors
        np.testing.assert_allclose(product, np.broadcast_to(np.eye(vectors.shape[-1]), product.shape), atol=1e-12)
    np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), rtol=1e-12)
