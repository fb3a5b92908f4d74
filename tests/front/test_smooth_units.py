"""gelu and silu far to the left, where they are small products of tiny numbers; their slopes, and all their names."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import twofold as tf


def m_gelu(x):
    return mp.mpf(x) * mp.erfc(-mp.mpf(x) / mp.sqrt(2)) / 2


def m_gelu_slope(x):
    x = mp.mpf(x)
    return mp.erfc(-x / mp.sqrt(2)) / 2 + x * mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def m_silu(x):
    return mp.mpf(x) / (1 + mp.exp(-mp.mpf(x)))


def m_silu_slope(x):
    p = 1 / (1 + mp.exp(-mp.mpf(x)))
    return p * (1 + mp.mpf(x) * (1 - p))


TAILS = {
    "gelu": (tf.nn.gelu, m_gelu, m_gelu_slope, {"float32": (-12.5, -1.5), "float64": (-37.0, -1.5)}),
    "silu": (tf.nn.silu, m_silu, m_silu_slope, {"float32": (-80.0, -2.0), "float64": (-700.0, -2.0)}),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", TAILS)
def test_the_left_tail_and_its_slope(name, dtype):
    function, value, slope, ranges = TAILS[name]
    x = np.linspace(*ranges[dtype], 200).astype(dtype)
    given = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(given)
        y = function(given)
    epsilon = float(np.finfo(dtype).eps)
    with mp.workprec(200):
        for exact, got in ((value, y), (slope, tape.gradient(y, given))):
            want = [exact(float(v)) for v in x]
            worst = max(abs(mp.mpf(float(g)) / w - 1) for g, w in zip(got.numpy(), want, strict=True))
            assert worst < 8 * epsilon


def test_figures():
    np.testing.assert_allclose(tf.nn.gelu([-5.0, -6.0]).numpy(), [-1.43325787e-06, -5.91952727e-09], rtol=1e-6)
    x = tf.constant(-713.0, tf.float64)
    with mp.workprec(200):
        assert abs(mp.mpf(float(tf.nn.silu(x))) / m_silu(-713.0) - 1) < 1e-15


@pytest.mark.parametrize("name", TAILS)
def test_limits(name):
    function = TAILS[name][0]
    for dtype in (tf.float16, tf.bfloat16, tf.float32, tf.float64):
        got = function(tf.constant([np.inf, -1e4, 0.0, 1e4, np.nan], dtype)).numpy().astype(np.float64)
        np.testing.assert_array_equal(got[:3], [np.inf, 0, 0])
        assert got[3] == np.array(tf.constant(1e4, dtype).numpy(), np.float64)
        assert np.isnan(got[4])
        x = tf.constant([np.inf, -1e4, 1e4], dtype)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        np.testing.assert_array_equal(tape.gradient(y, x).numpy().astype(np.float64), [1, 0, 1])


def test_all_names_are_one_formula():
    x = tf.constant(np.linspace(-9, 9, 101, dtype=np.float32))
    want = tf.nn.gelu(x, approximate=False).numpy()
    for f in (tf.keras.activations.gelu, lambda v: tf.keras.ops.gelu(v, approximate=False),
              tf.keras.layers.Activation("gelu"), tf.function(tf.nn.gelu)):
        np.testing.assert_array_equal(f(x).numpy(), want)
    want = tf.nn.silu(x).numpy()
    for f in (tf.keras.activations.silu, tf.keras.ops.silu, tf.keras.ops.swish, tf.keras.layers.Activation("silu"),
              tf.function(tf.nn.swish)):
        np.testing.assert_array_equal(f(x).numpy(), want)
