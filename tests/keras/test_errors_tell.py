"""Errors of layers name the layer and the user's line, and nothing raw comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import twofold as tf

layers = tf.keras.layers
CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "constructor": (lambda: layers.UpSampling1D("\0"), "UpSampling1D: "),
    "constructor's check": (lambda: layers.Dense("a"), "Dense: Invalid value for argument `units`"),
    "call": (lambda: layers.Dense(2)("abc"), "Dense: "),
    "inner op": (lambda: layers.Dense(2)(tf.ones([2, 2], tf.complex64)), "Dense, in matmul: dtypes differ"),
    "rank": (lambda: layers.Softmax()(tf.constant(2.5)), "Softmax, in softmax: x has rank 0"),
}


@pytest.mark.parametrize("name", list(CASES))
def test_the_layer_is_named(name: str) -> None:
    call, told = CASES[name]
    with pytest.raises((tf.errors.OpError, ValueError, TypeError)) as caught:
        call()
    assert str(caught.value).startswith(told)
    assert "At test_errors_tell.py:" in str(caught.value)


def test_a_users_own_layer_raises_its_own_error() -> None:
    class Own(layers.Layer):
        def __init__(self, fails: bool) -> None:
            super().__init__()
            if fails:
                raise KeyError("mine")

        def call(self, x: Any) -> Any:
            return [][1]
    with pytest.raises(KeyError, match="mine"):
        Own(True)
    with pytest.raises(IndexError) as caught:
        Own(False)(tf.ones([2]))
    assert type(caught.value) is IndexError
