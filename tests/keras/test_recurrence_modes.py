"""Gradients of recurrent layers: op by op and compiled, known sizes and unknown, the same bits; and by differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import twofold as tf

LAYERS: dict[str, Callable[[], Any]] = {
    "lstm": lambda: tf.keras.layers.LSTM(5, return_sequences=True),
    "gru": lambda: tf.keras.layers.GRU(5),
    "simple": lambda: tf.keras.layers.SimpleRNN(5),
    "backwards": lambda: tf.keras.layers.LSTM(5, go_backwards=True),
    "own activation": lambda: tf.keras.layers.LSTM(5, activation="softsign"),
    "stacked": lambda: tf.keras.layers.RNN([tf.keras.layers.LSTMCell(4), tf.keras.layers.GRUCell(5)]),
}
X = np.random.default_rng(0).normal(size=(3, 7, 4)).astype(np.float32)


def gradients_of(layer: Any, masked: bool) -> Callable[[Any], list[Any]]:
    def gradients(x: Any) -> list[Any]:
        mask = x[:, :, 0] > -0.8 if masked else None
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_mean(tf.square(layer(x, mask=mask)))
        return [loss, *tape.gradient(loss, [x, *layer.trainable_variables])]
    return gradients


@pytest.mark.parametrize("name, masked", [*[(name, False) for name in LAYERS], ("lstm", True), ("stacked", True)])
def test_bits(name: str, masked: bool) -> None:
    tf.keras.utils.set_random_seed(0)
    layer = LAYERS[name]()
    layer(X)
    gradients, x = gradients_of(layer, masked), tf.constant(X)
    want = [g.numpy() for g in gradients(x)]
    for shape in ([3, 7, 4],) if masked else ([3, 7, 4], [None, None, 4]):
        compiled = tf.function(gradients, input_signature=[tf.TensorSpec(shape)])
        for got, expected in zip(compiled(x), want, strict=True):
            assert got.numpy().tobytes() == expected.tobytes()
        shorter = tf.constant(X[:2, :1])
        for got, expected in zip(compiled(shorter) if shape[0] is None else [], gradients(shorter), strict=False):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", ["lstm", "gru", "simple", "stacked"])
def test_differences(name: str) -> None:
    tf.keras.utils.set_random_seed(0)
    tf.keras.backend.set_floatx("float64")
    try:
        layer = LAYERS[name]()
        x = tf.constant(X.astype(np.float64))
        layer(x)
    finally:
        tf.keras.backend.set_floatx("float32")
    compiled = tf.function(gradients_of(layer, False))
    slope = compiled(x)[1].numpy()
    for at in ((0, 0, 0), (1, 3, 2), (2, 6, 3)):
        step = np.zeros_like(X, np.float64)
        step[at] = 1e-6
        difference = float(compiled(x + step)[0]) - float(compiled(x - step)[0])
        np.testing.assert_allclose(slope[at], difference / 2e-6, rtol=1e-5, atol=1e-9)
