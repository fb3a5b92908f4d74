"""Windows: those of pooling with a fractional ratio, and gradients of convolutions by their names."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf

X = np.random.default_rng(0).normal(size=(2, 11, 14, 3)).astype(np.float32)


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("pseudo", [False, True])
@pytest.mark.parametrize("name", ["max", "avg"])
def test_windows_are_reduced(name, pseudo, overlapping):
    pool = getattr(tf.nn, f"fractional_{name}_pool")
    tf.random.set_seed(1)
    for ratio, sizes in ((1.5, (7, 9)), ([1.0, 2.0, 1.4, 1.0], (5, 10)), ([1.2, 1.75], (9, 8))):
        y, rows, columns = pool(X, ratio, pseudo, overlapping)
        for axis, sequence, count in ((1, rows, sizes[0]), (2, columns, sizes[1])):
            numbers = sequence.numpy()
            assert sequence.dtype is tf.int64
            assert (numbers[0], numbers[-1], len(numbers)) == (0, X.shape[axis], count + 1)
            least = X.shape[axis] // count
            assert set(np.diff(numbers)) <= ({least, least + 1} if not pseudo else {least, least + 1, least + 2})
        reduce = {"max": np.max, "avg": np.mean}[name]
        wanted = np.stack([np.stack([
            reduce(X[:, a:b + overlapping, c:d + overlapping].astype(np.float64), axis=(1, 2))
            for c, d in zip(columns[:-1].numpy(), columns[1:].numpy(), strict=True)], 1)
            for a, b in zip(rows[:-1].numpy(), rows[1:].numpy(), strict=True)], 1)
        np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_draws_follow_seeds_and_have_gradients():
    def drawn(call):
        tf.random.set_seed(4)
        return call()
    pool = lambda: tf.nn.fractional_max_pool(X, 1.5, seed=2).row_pooling_sequence  # noqa: E731
    np.testing.assert_array_equal(drawn(pool), drawn(tf.function(pool)))
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y, _, _ = tf.nn.fractional_avg_pool(x, 1.5)
    assert abs(float(tf.reduce_sum(tape.gradient(y, x))) - y.numpy().size) < 1e-2
    with pytest.raises(ValueError, match="should be >= 1.0"):
        tf.nn.fractional_max_pool(X, 0.5)


def test_gradients_of_a_convolution_are_its_adjoints():
    """TensorFlow has the names and no kernels for processors: what a linear function's adjoint owes is tested."""
    rng = np.random.default_rng(1)
    x, f, ct = (rng.normal(size=s) for s in ((2, 6, 7, 3), (2, 3, 3, 2), (2, 6, 6, 2)))
    around = [0, 0, 1, 0, 0, 1, 0, 0]
    y = tf.nn.conv2d(x, f, 1, [[0, 0], [1, 0], [0, 1], [0, 0]])
    settings = {"strides": [1, 1, 1, 1], "padding": "EXPLICIT", "explicit_paddings": around}
    for call, with_x, with_f in ((tf.conv2d_backprop_input_v2, np.zeros_like(x), f),
                                 (tf.conv2d_backprop_filter_v2, x, np.zeros_like(f))):
        gradient = call(with_x, with_f, ct, **settings).numpy()
        other = x if gradient.shape == x.shape else f
        np.testing.assert_allclose((gradient * other).sum(), (ct * y.numpy()).sum(), rtol=1e-12)
