"""Variances of numbers far from 0: what the rounding of the mean adds is taken off again."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf

WAYS = {
    "reduce_variance": lambda x: tf.math.reduce_variance(x, axis=1),
    "reduce_std": lambda x: tf.square(tf.math.reduce_std(x, axis=1)),
    "moments": lambda x: tf.nn.moments(x, [1])[1],
    "complex": lambda x: tf.math.reduce_variance(tf.complex(x, x), axis=1) / 2,
    "keras": lambda x: tf.keras.ops.var(x, axis=1),
    "keras moments": lambda x: tf.keras.ops.moments(x, [1])[1],
}


@pytest.mark.parametrize("mode", [lambda f: f, tf.function], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", WAYS)
def test_far_from_zero(name, mode):
    rng = np.random.default_rng(0)
    for dtype, offsets in ((np.float32, (0, 1e2, 1e4, 3e5)), (np.float64, (0, 1e8, 1e12))):
        for offset in offsets:
            x = (rng.normal(size=(50, 1000)) + offset).astype(dtype)
            exact = x.astype(np.longdouble) - offset  # exact, as numbers near one another are
            want = exact.var(axis=1)
            got = mode(WAYS[name])(x).numpy()
            error = np.abs(got / want - 1).max() / np.finfo(dtype).eps
            assert error < 4, (name, dtype, offset, float(error))


@pytest.mark.parametrize("seed", range(4))
def test_many_numbers_far_from_zero(seed):
    """Squares of multiples of a power of two leave more small remainders than large ones: sums lose a little."""
    x = (np.random.default_rng(seed).normal(size=100_000) + 1e4).astype(np.float32)
    want = x.astype(np.float64).var()
    for mode in (lambda f: f, tf.function):
        assert abs(mode(tf.math.reduce_variance)(x).numpy() / want - 1) < 6 * np.finfo(np.float32).eps


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_numbers_have_none(dtype):
    rng = np.random.default_rng(1)
    for value in rng.normal(size=20) * 1e5:
        x = np.full((3, 1001), value, dtype)
        variance = tf.math.reduce_variance(x, axis=1).numpy()
        assert (variance >= 0).all()
        assert (variance <= (np.finfo(dtype).eps * value) ** 2 * 1e-3).all()
        assert np.isfinite(tf.math.reduce_std(x, axis=1).numpy()).all()


def test_layers_see_it():
    x = (np.random.default_rng(2).normal(size=(64, 256)) + 1e4).astype(np.float32)
    exact = x.astype(np.float64)
    want = (exact - exact.mean(1, keepdims=True)) / np.sqrt(exact.var(1, keepdims=True) + 1e-3)
    got = tf.keras.layers.LayerNormalization()(x).numpy()
    assert np.abs(got - want).max() < 2e-3  # the mean itself is rounded to 5e-4
    assert np.abs(got.std(1) - want.std(1)).max() < 1e-5
    assert np.isnan(tf.math.reduce_variance(tf.zeros([2, 0]), axis=1).numpy()).all()
    assert np.isnan(tf.math.reduce_variance([1.0, np.inf]).numpy())
