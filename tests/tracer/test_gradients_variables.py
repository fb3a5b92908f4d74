"""Variables among the targets of a gradient: the same in functions as in plain Python, read or not, assigned or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import twofold as tf

START = [1.0, 2.0]


def read(v: Any) -> Any:
    with tf.GradientTape() as tape:
        y = v * v
    return tape.gradient([v, y], v)


def alone(v: Any) -> Any:
    with tf.GradientTape() as tape:
        v * v
    return tape.gradient(v, v)


def watched(v: Any) -> Any:
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(v)
    return tape.gradient(v, v, output_gradients=tf.constant([3.0, 4.0]))


def assigned(v: Any) -> Any:
    with tf.GradientTape() as tape:
        y = v * v
        v.assign(y + 1.0)
        z = v * 3.0
    return tape.gradient([v, z, y], v)


def twice(v: Any) -> Any:
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            y = v * v * v
        first = tape.gradient([v, y], v)
    return outer.gradient([first, v], v)


def in_a_loop(v: Any) -> Any:
    total = tf.zeros([2])
    for i in tf.range(3):
        with tf.GradientTape() as tape:
            y = v * v * tf.cast(i, tf.float32)
        total += tape.gradient([v, y], v)
    return total


def by_a_branch(v: Any) -> Any:
    with tf.GradientTape() as tape:
        y = v * v if tf.reduce_sum(v) > 0.0 else v
    return tape.gradient([v, y], v)


@pytest.mark.parametrize(("step", "expected"), [
    (read, [3.0, 5.0]), (alone, [1.0, 1.0]), (watched, [3.0, 4.0]), (assigned, [6.0, 8.0]), (twice, [7.0, 13.0]),
    (in_a_loop, [9.0, 15.0]), (by_a_branch, [3.0, 5.0])], ids=lambda x: x.__name__ if callable(x) else "")
@pytest.mark.parametrize("staged", [False, True])
def test_a_variable_is_a_target_that_depends_on_itself(step: Callable[[Any], Any], expected: list[float],
                                                       staged: bool) -> None:
    v = tf.Variable(START)
    np.testing.assert_array_equal((tf.function(step) if staged else step)(v), expected)
