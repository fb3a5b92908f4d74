"""Floats of 8 bits: what keeps and moves them, in both modes, and what refuses them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import twofold as tf

SMALL = {tf.dtypes.experimental.float8_e5m2: ml_dtypes.float8_e5m2,
         tf.dtypes.experimental.float8_e4m3fn: ml_dtypes.float8_e4m3fn}
# What TensorFlow 2.21 gives for these numbers.
NUMBERS = [1.0, 1e9, float("nan"), 300.0, -0.0, 0.07, -1e-9, 449.0, 1.0625, 1.125, 2**-9, 3e-6]
ROUNDED = {"float8_e5m2": [1.0, np.inf, np.nan, 320.0, -0.0, 0.0625, -0.0, 448.0, 1.0, 1.0, 0.001953125, 0.0],
           "float8_e4m3fn": [1.0, np.nan, np.nan, 288.0, -0.0, 0.0703125, -0.0, 448.0, 1.0, 1.125, 0.001953125, 0.0]}
MOVES = {
    "reshape": (lambda x: tf.reshape(x, [2, 3]), lambda x: x.reshape(2, 3)),
    "slice": (lambda x: x[1::2], lambda x: x[1::2]),
    "element": (lambda x: x[2], lambda x: x[2]), "turn": (lambda x: x[::-1], lambda x: x[::-1]),
    "transpose": (lambda x: tf.transpose(tf.reshape(x, [2, 3])), lambda x: x.reshape(2, 3).T),
    "concat": (lambda x: tf.concat([x, x[:2]], 0), lambda x: np.concatenate([x, x[:2]])),
    "stack": (lambda x: tf.stack([x, x]), lambda x: np.stack([x, x])),
    "tile": (lambda x: tf.tile(x, [2]), lambda x: np.tile(x, 2)),
    "gather": (lambda x: tf.gather(x, [3, 3]), lambda x: x[[3, 3]]),
    "broadcast": (lambda x: tf.broadcast_to(x, [2, 6]), lambda x: np.broadcast_to(x, (2, 6))),
    "pad": (lambda x: tf.pad(x, [[1, 0]]), lambda x: np.concatenate([x[:1] * 0, x])),
    "cond": (lambda x: tf.cond(tf.size(x) > 3, lambda: x, lambda: x[::-1]), lambda x: x),
    "bits": (lambda x: tf.bitcast(x, tf.uint8), lambda x: x.view(np.uint8)),
    "constant": (lambda x: tf.concat([x, tf.constant([2.5, -8.0], x.dtype)], 0),
                 lambda x: np.concatenate([x, np.array([2.5, -8.0], x.dtype)])),
}


def bits(value) -> list:
    array = np.ascontiguousarray(value)
    return [array.dtype.name, array.shape, array.view(np.uint8).ravel().tolist()]


@pytest.mark.parametrize("dtype", SMALL, ids=lambda d: d.name)
def test_conversion(dtype) -> None:
    numbers = np.array(NUMBERS, np.float32)
    for convert in (lambda: tf.cast(numbers, dtype), tf.function(lambda: tf.cast(tf.constant(numbers), dtype))):
        small = convert()
        assert small.dtype is dtype and small.dtype.is_floating and small.numpy().dtype == SMALL[dtype]
        back = tf.cast(small, tf.float32).numpy()
        np.testing.assert_array_equal(back, np.array(ROUNDED[dtype.name], np.float32), strict=True)
        assert np.signbit(back[4]) and np.signbit(back[6])
    whole = tf.cast(tf.cast([1.9, -3.0, np.nan], dtype), tf.int32)
    assert whole.numpy().tolist() == [1 if dtype.name[-1] == "n" else 2, -3, 0]
    assert tf.cast(tf.cast([1, 0], dtype), tf.bool).numpy().tolist() == [True, False]
    assert tf.cast(tf.constant([1.5], tf.bfloat16), dtype).numpy().tolist() == [1.5]


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("dtype", SMALL, ids=lambda d: d.name)
def test_moves(dtype, name) -> None:
    move, oracle = MOVES[name]
    array = np.array([1.0, 2.5, -0.07, 300.0, -0.0, np.nan], np.float32).astype(SMALL[dtype])
    expected = bits(oracle(array))
    assert bits(move(tf.constant(array))) == expected
    assert bits(tf.function(move)(tf.constant(array))) == expected
    assert bits(tf.function(lambda: move(tf.constant(array)))()) == expected


@pytest.mark.parametrize("dtype", SMALL, ids=lambda d: d.name)
def test_variables_are_saved(dtype, tmp_path) -> None:
    module = tf.Module()
    module.w = tf.Variable(tf.cast([0.3, -5.0], dtype))

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def scaled(x):
        module.w.assign(module.w[::-1])
        return x * tf.cast(module.w, tf.float32), tf.constant([2.5], dtype)
    module.scaled = scaled
    tf.saved_model.save(module, tmp_path / "m")
    path = tf.train.Checkpoint(w=module.w).save(tmp_path / "c")
    again = tf.Variable(tf.zeros([2], dtype))
    tf.train.Checkpoint(w=again).restore(path).assert_consumed()
    loaded = tf.saved_model.load(tmp_path / "m")
    assert bits(loaded.w) == bits(module.w) == bits(again)
    for actual, expected in zip(loaded.scaled([1.0, 2.0]), scaled(tf.constant([1.0, 2.0])), strict=True):
        assert bits(actual) == bits(expected)


def test_arithmetic_is_refused_and_no_gradient_passes() -> None:
    x = tf.cast([1.0], tf.dtypes.experimental.float8_e5m2)
    for fn in (lambda: x + x, lambda: tf.exp(x), lambda: tf.matmul(x[None], x[None])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="float8_e5m2"):
            fn()
    with tf.GradientTape() as tape:
        y = tf.constant([1.0])
        tape.watch(y)
        z = tf.cast(tf.cast(y, x.dtype), tf.float32)
    assert tape.gradient(z, y) is None
