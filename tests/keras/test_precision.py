"""Hyperparameters keep their digits in float64: activations, losses, layers, initializers, optimizers, schedules."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf

X = np.linspace(-3.1, 3.3, 41)
A = tf.keras.activations
ACTIVATIONS = {
    "leaky_relu": (lambda x: A.leaky_relu(x, 0.1), np.where(X > 0, X, 0.1 * X)),
    "relu": (lambda x: A.relu(x, 0.1, 2.7, 0.3), np.where(X > 0.3, np.minimum(X, 2.7), 0.1 * (X - 0.3))),
    "elu": (lambda x: A.elu(x, 0.1), np.where(X > 0, X, 0.1 * np.expm1(X))),
    "celu": (lambda x: A.celu(x, 0.1), np.maximum(X, 0) + np.minimum(0, 0.1 * np.expm1(X / 0.1))),
    "soft_shrink": (lambda x: A.soft_shrink(x, 0.1), np.sign(X) * np.maximum(np.abs(X) - 0.1, 0)),
    "hard_shrink": (lambda x: A.hard_shrink(x, 0.1), np.where(np.abs(X) > 0.1, X, 0)),
    "threshold": (lambda x: A.threshold(x, 0.1, 0.7), np.where(X > 0.1, X, 0.7)),
    "squareplus": (lambda x: A.squareplus(x, 0.1), (X + np.sqrt(X * X + 0.1)) / 2),
    "hard_sigmoid": (A.hard_sigmoid, np.clip(X / 6 + 0.5, 0, 1)),
    "hard_silu": (A.hard_silu, X * np.clip(X / 6 + 0.5, 0, 1)),
    "sparse_sigmoid": (A.sparse_sigmoid, np.clip((X + 1) / 2, 0, 1)),
    "mish": (A.mish, X * np.tanh(np.log1p(np.exp(X)))),
    "layer elu": (tf.keras.layers.ELU(0.1, dtype="float64"), np.where(X > 0, X, 0.1 * np.expm1(X))),
    "layer leaky": (tf.keras.layers.LeakyReLU(0.1, dtype="float64"), np.where(X > 0, X, 0.1 * X)),
    "layer relu": (tf.keras.layers.ReLU(2.7, 0.1, 0.3, dtype="float64"),
                   np.where(X > 0.3, np.minimum(X, 2.7), 0.1 * (X - 0.3))),
    "rescaling": (tf.keras.layers.Rescaling(0.1, 0.3, dtype="float64"), X * 0.1 + 0.3),
    "unit": (lambda x: tf.keras.layers.LayerNormalization(epsilon=0.1, dtype="float64")(x[tf.newaxis])[0],
             (X - X.mean()) / np.sqrt(X.var() + 0.1)),
    "batch": (lambda x: tf.keras.layers.BatchNormalization(epsilon=0.1, dtype="float64")(x[:, tf.newaxis])[:, 0],
              X / np.sqrt(1.1)),
    "regularizer": (lambda x: tf.keras.regularizers.L1L2(0.1, 0.3)(x), 0.1 * np.abs(X).sum() + 0.3 * (X * X).sum()),
    "constant": (lambda x: x * tf.keras.initializers.Constant(0.1)([], dtype="float64"), X * 0.1),
    "identity": (lambda x: x * tf.keras.initializers.Identity(0.1)([1, 1], dtype="float64")[0], X * 0.1),
    "huber": (lambda x: tf.keras.losses.huber(x * 0, x, 0.1),
              np.where(np.abs(X) <= 0.1, X * X / 2, 0.1 * np.abs(X) - 0.005).mean()),
    "smoothing": (lambda x: tf.keras.losses.binary_crossentropy(tf.ones_like(x), x, True, 0.1),
                  (np.log1p(np.exp(X)) - 0.95 * X).mean()),
    "focal": (lambda x: tf.keras.losses.binary_focal_crossentropy(tf.ones_like(x), x, True, 0.3, 1.7, True),
              (0.3 * (1 - 1 / (1 + np.exp(-X))) ** 1.7 * np.log1p(np.exp(-X))).mean()),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_digits(name):
    function, want = ACTIVATIONS[name]
    got = function(tf.constant(X))
    assert got.dtype == tf.float64
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-14, atol=1e-15)


def stepped(optimizer, steps=3):
    v = tf.Variable(np.array([1.0, -2.0]))
    for n in range(steps):
        optimizer.apply([tf.constant(np.array([0.3, -0.7]) * (n + 1))], [v])
    return v.numpy()


def test_optimizers():
    """With a rate that float32 holds; the others are rounded with it, as `learning_rate` is a float32 variable."""
    rate, momentum = 0.25, 0.9
    v, m = np.array([1.0, -2.0]), np.zeros(2)
    for n in range(3):
        m = momentum * m - rate * np.array([0.3, -0.7]) * (n + 1)
        v = v + m
    np.testing.assert_allclose(stepped(tf.keras.optimizers.SGD(rate, momentum)), v, rtol=1e-15)
    v, m, s = np.array([1.0, -2.0]), np.zeros(2), np.zeros(2)
    for n in range(3):
        g = np.array([0.3, -0.7]) * (n + 1)
        m, s = m + (g - m) * (1 - 0.9), s + (g * g - s) * (1 - 0.999)
        v = v - m * (rate * np.sqrt(1 - 0.999 ** (n + 1)) / (1 - 0.9 ** (n + 1))) / (np.sqrt(s) + 1e-7)
    np.testing.assert_allclose(stepped(tf.keras.optimizers.Adam(rate)), v, rtol=1e-14)
    v, s = np.array([1.0, -2.0]), np.zeros(2)
    for n in range(3):
        g = np.array([0.3, -0.7]) * (n + 1)
        s = 0.9 * s + (1 - 0.9) * g * g
        v = v - rate * g / np.sqrt(s + 1e-7)
    np.testing.assert_allclose(stepped(tf.keras.optimizers.RMSprop(rate)), v, rtol=1e-14)
    v = np.array([1.0, -2.0])
    for n in range(3):
        g = np.array([0.3, -0.7]) * (n + 1)
        v = v - v * 0.1 * rate - rate * np.clip(g, -0.9, 0.9)
    np.testing.assert_allclose(stepped(tf.keras.optimizers.SGD(rate, weight_decay=0.1, clipvalue=0.9)), v, rtol=1e-14)
