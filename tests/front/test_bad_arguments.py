"""Calls with values that no argument should be: an error of the library's, with the function and the user's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import twofold as tf

X = tf.ones([4, 4, 3])
LOOPED: list[Any] = []
LOOPED.append(LOOPED)

CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "pad": (lambda: tf.pad([1, 2], [[1, 1]], mode=3), "pad: .*`mode` = 3"),
    "cond of a vector": (lambda: tf.cond(tf.constant([True, False]), lambda: 1, lambda: 2), r"shape \(2,\).*tf.cond"),
    "cond of a list": (lambda: tf.cond([True, False], lambda: 1, lambda: 2), r"shape \(2,\).*tf.cond"),
    "cond of an array": (lambda: tf.cond(np.array([1, 0]), lambda: 1, lambda: 2), r"shape \(2,\).*tf.cond"),
    "cond of nothing": (lambda: tf.cond(tf.zeros([0]), lambda: 1, lambda: 2), r"shape \(0,\).*tf.cond"),
    "case": (lambda: tf.case([([True, False], lambda: 1)], default=lambda: 2), r"shape \(2,\).*tf.case"),
    "while_loop": (lambda: tf.while_loop(lambda i: tf.constant([True, False]), lambda i: i + 1, [tf.constant(0)]),
                   r"shape \(2,\)"),
    "axes": (lambda: tf.reduce_sum(tf.ones([2, 2]), axis=[0, 5]), "reduce_sum: axis 5 is out of range"),
    "axes of norm": (lambda: tf.norm(tf.ones([2, 2]), axis=[0, 5]), "norm.*"),
    "resize_with_pad": (lambda: tf.image.resize_with_pad(X, 2, 2, method="none"), "resize_with_pad: .*'none'"),
    "resize_with_pad of a list": (lambda: tf.image.resize_with_pad(X, 2, 2, method=[1]), "resize_with_pad: .*method"),
    "unravel_index of a scalar": (lambda: tf.unravel_index(5, 3), "unravel_index: dims must be a vector"),
    "unravel_index of floats": (lambda: tf.unravel_index([1.5], [3]), "unravel_index: indices must be integers"),
    "non_max_suppression": (lambda: tf.image.non_max_suppression([[0.0, 0.0, 1.0, 1.0]], [0.5, 0.6], 2),
                            "non_max_suppression: boxes must have four numbers for each score"),
    "an integer of 64 bits": (lambda: tf.constant(2**63), "constant: .*does not fit in 64 bits"),
    "an integer for a dtype": (lambda: tf.constant(2**64, tf.int32), "constant: .*"),
    "a list that contains itself": (lambda: tf.constant(LOOPED), "constant: .*contains itself"),
    "polygamma": (lambda: tf.math.polygamma(2.0**63, [1.0]), "polygamma: a must be a whole number from 0 to 170"),
    "dynamic_partition": (lambda: tf.dynamic_partition([1.0], [0], 2**31), "dynamic_partition: num_partitions must be"),
    "an endless range": (lambda: tf.reduce_prod([1.0], range(2**40)), "reduce_prod: .*integers"),
}


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("mode", ["eager", "traced"])
def test_the_error_tells(name: str, mode: str) -> None:
    call, told = CASES[name]
    with pytest.raises((tf.errors.OpError, ValueError, TypeError), match=told) as caught:
        (call if mode == "eager" else tf.function(call))()
    assert not getattr(caught.value, "from_inside", False) or name == "a list that contains itself"
    assert "At test_bad_arguments.py:" in str(caught.value)


def test_layers_refuse_before_they_run() -> None:
    with pytest.raises(ValueError, match="CenterCrop takes an image"):
        tf.keras.layers.CenterCrop(2, 2)(tf.ones([4, 4]))
    with pytest.raises(ValueError, match="at most"):
        tf.keras.layers.AdaptiveMaxPooling3D(2**31)


def test_numpy_functions_in_a_function() -> None:
    """A universal function of NumPy has no signature to read: it is called as it is, with a warning."""
    x = np.array([0.5, 1.5], np.float32)
    for fn in (np.sin, np.add):
        given = [x] * fn.nin
        with pytest.warns(RuntimeWarning, match="NumPy was asked to read it"):
            found = tf.function(fn)(*map(tf.constant, given))
        np.testing.assert_allclose(found, fn(*given))


@pytest.mark.parametrize("data", [[object()], [None], {"a": 1}, [[1, [2, 3]]], [2**70], "text", 3, [len, 1.5]])
def test_assertions_show_any_data_in_both_modes(data: Any) -> None:
    told = []
    for call in (lambda c: tf.debugging.Assert(c, data), tf.function(lambda c: tf.debugging.Assert(c, data))):
        call(tf.constant(True))
        with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed:") as caught:
            call(tf.constant(False))
        told.append(str(caught.value).splitlines()[0].rpartition("Assert: ")[2])
    assert told[0] == told[1]
