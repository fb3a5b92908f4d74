"""Integers that decide how an op is put together: tensors of them are taken, or refused, alike in both modes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import twofold as tf

PICTURE, ROW = tf.reshape(tf.range(16.0), [1, 4, 4, 1]), tf.reshape(tf.range(6.0), [1, 6, 1])
FILTER = tf.ones([2, 2, 1, 1])
SETTINGS: dict[str, Callable[[Any], Any]] = {
    "max_pool2d": lambda n: tf.nn.max_pool2d(PICTURE, 2, n, "SAME"),
    "max_pool2d size": lambda n: tf.nn.max_pool2d(PICTURE, n, 2, "SAME"),
    "avg_pool1d": lambda n: tf.nn.avg_pool1d(ROW, 2, n, "SAME"),
    "pool": lambda n: tf.nn.pool(PICTURE, [2, 2], "MAX", dilations=n),
    "conv2d": lambda n: tf.nn.conv2d(PICTURE, FILTER, n, "VALID"),
    "conv2d dilations": lambda n: tf.nn.conv2d(PICTURE, FILTER, 1, "VALID", dilations=n),
    "conv2d_transpose": lambda n: tf.nn.conv2d_transpose(PICTURE, FILTER, [1, 4, 4, 1], n),
    "depthwise_conv2d": lambda n: tf.nn.depthwise_conv2d(PICTURE, FILTER, [1, n, n, 1], "SAME"),
    "extract_patches": lambda n: tf.image.extract_patches(PICTURE, [1, n, n, 1], [1] * 4, [1] * 4, "VALID"),
    "crop_and_resize": lambda n: tf.image.crop_and_resize(PICTURE, [[0.0, 0.0, 1.0, 1.0]], [0], [n, n]),
    "shuffle": lambda n: tf.shape(tf.random.shuffle([1, 2], seed=n)),
    "uniform": lambda n: tf.shape(tf.random.uniform([2], seed=n)),
    "create_rng_state": lambda n: tf.convert_to_tensor(tf.random.create_rng_state(n)),
    "polygamma": lambda n: tf.math.polygamma(n, [1.0, 2.0]),
    "fill": lambda n: tf.fill(n, 1.0), "reshape": lambda n: tf.reshape([1.0], n),
    "reduce_sum": lambda n: tf.reduce_sum([[1.0, 2.0]], axis=n),
    "dice": lambda n: tf.keras.losses.dice([[1.0, 1.0]], [[1.0, 0.0]], axis=n),
    "repeat": lambda n: tf.repeat([1, 2], n), "initializer": lambda n: tf.compat.v1.ones_initializer()(n),
    "tensordot": lambda n: tf.tensordot([[1.0]], [[2.0]], n),
}
VALUES: dict[str, Callable[[], Any]] = {
    "one": lambda: tf.constant(1), "zero": lambda: tf.constant(0), "minus one": lambda: tf.constant(-1),
    "two of them": lambda: tf.constant([1, 2]), "a variable": lambda: tf.Variable([1, 2]),
    "text": lambda: tf.constant("s"), "a float": lambda: tf.constant(2.5), "a truth": lambda: tf.constant(True),
    "no floats": lambda: tf.zeros([0]), "no integers": lambda: tf.zeros([0], tf.int32),
}
_REFUSED = (tf.errors.OpError, ValueError, TypeError)


def outcome(call: Callable[[Any], Any], value: Any) -> Any:
    """The result's elements as text; or that the call was refused, with the user's line."""
    try:
        return str(np.asarray(call(value)).tolist())  # in which NaN is like NaN
    except _REFUSED as error:
        assert "test_settings.py" in str(error), "the user's line"
        return "refused"


@pytest.mark.parametrize("name", SETTINGS)
def test_both_modes_take_and_refuse_the_same(name: str) -> None:
    for what, make in VALUES.items():
        eager = outcome(SETTINGS[name], make())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a function runs eagerly
            compiled = outcome(tf.function(SETTINGS[name]), make())
        assert compiled == eager, what


@pytest.mark.parametrize("name", ["reduce_sum", "fill", "max_pool2d", "tensordot", "repeat"])
def test_datasets_and_bytes_are_no_integers(name: str) -> None:
    for value in (tf.data.Dataset.range(2), b"\1", "ab"):
        for call in (SETTINGS[name], tf.function(SETTINGS[name])):
            with pytest.raises((TypeError, ValueError), match=name):
                call(value)
