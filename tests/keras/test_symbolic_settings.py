"""A KerasTensor in the place of a setting is refused by name: it has no value that could decide anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import twofold as tf

ops, ONES = tf.keras.ops, tf.ones([1, 4, 4, 4])
SETTINGS: dict[str, Callable[[Any], Any]] = {
    "cumsum": lambda x: tf.cumsum(tf.ones([3]), reverse=x), "reduce_sum": lambda x: tf.reduce_sum(ONES, keepdims=x),
    "local_response_normalization": lambda x: tf.nn.local_response_normalization(ONES, x),
    "hsplit": lambda x: ops.hsplit(tf.ones([4, 4]), x),
    "logspace": lambda x: ops.logspace(0.0, 1.0, 5, endpoint=x), "jvp": lambda x: ops.jvp(
        tf.sin, (ONES,), (ONES,), has_aux=x),
    "verify": lambda x: tf.verify(np.float64, tf.ones([3])), "add": lambda x: tf.keras.Sequential([x]).add(np.sin),
    "tuple": lambda x: tf.compat.v1.tuple(x),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_function_and_the_line_are_named(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^(Sequential\.)?{name}\b.*") as caught:
        SETTINGS[name](tf.keras.Input([3]))
    assert "At test_symbolic_settings.py:" in str(caught.value)


@pytest.mark.parametrize("name", ["cumsum", "reduce_sum", "hsplit", "logspace"])
def test_what_it_says_is_of_models_and_not_of_functions(name: str) -> None:
    with pytest.raises(TypeError, match="A KerasTensor has no value, it stands for a tensor of a functional") as caught:
        SETTINGS[name](tf.keras.Input([3]))
    assert "tf.function" not in str(caught.value)


def test_a_layer_that_asks_for_a_value_is_told_its_line() -> None:
    class Asks(tf.keras.layers.Layer):
        def call(self, inputs: Any) -> Any:
            return tf.constant(inputs.numpy())

    with pytest.raises(TypeError, match=r"(?s)A KerasTensor has no value.*\.numpy\(\) was called.*in call\(\)"):
        Asks()(tf.keras.Input([3]))
