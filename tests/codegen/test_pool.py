"""Gradients of pooling whose windows share no pixel, against NumPy: few taps, which are written out, and many."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf
from twofold.codegen.kernels import pool
from twofold.ir import ops


@pytest.mark.parametrize("channels", [1, 32, 70])
@pytest.mark.parametrize("window", [(2, 2), (3, 4)], ids=str)
def test_the_first_largest_element_of_a_window_gets_its_gradient(window, channels):
    """Of equal ones, of NaNs and of zeros of both signs, too."""
    assert (np.prod(window) <= pool.FEW) == (window == (2, 2))
    rng, (tall, wide) = np.random.default_rng(0), window
    x = rng.choice(np.array([-1, -0.0, 0.0, 2, np.nan], np.float32), (2, 3 * tall, 2 * wide, channels))
    ct = rng.normal(size=(2, 3, 2, channels)).astype(np.float32)
    apart = x.reshape(2, 3, tall, 2, wide, channels).transpose(0, 1, 3, 5, 2, 4).reshape(2, 3, 2, channels, -1)
    expected = np.zeros_like(apart)
    np.put_along_axis(expected, apart.argmax(-1)[..., None], ct[..., None] + 0, -1)  # argmax takes NaN for the largest
    expected = expected.reshape(2, 3, 2, channels, tall, wide).transpose(0, 1, 4, 2, 5, 3).reshape(x.shape)
    how = {"ksize": window, "strides": window, "dilations": (1, 1), "padding": "VALID"}
    for gradient in (ops.max_pool_grad, tf.function(ops.max_pool_grad)):
        np.testing.assert_array_equal(gradient(tf.constant(ct), tf.constant(x), **how).numpy(), expected)
