"""Parts of variables that are assigned under indices known only when a traced function runs, as NumPy assigns them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import twofold as tf

KEYS: list[Callable[[Any, Any], Any]] = [
    lambda i, j: i, lambda i, j: -i - 1, lambda i, j: (i, j), lambda i, j: (i, 2), lambda i, j: (slice(None), j),
    lambda i, j: slice(i, None), lambda i, j: slice(None, j), lambda i, j: slice(None, i, 2),
    lambda i, j: (Ellipsis, j - 1), lambda i, j: (i, slice(1, None)), lambda i, j: (slice(None, None, -1), i),
    lambda i, j: slice(i, j, -1), lambda i, j: (1, slice(i, None), slice(None, j)),
]


@pytest.mark.parametrize("key", range(len(KEYS)))
@pytest.mark.parametrize("how, sign", [("assign", None), ("assign_add", 1), ("assign_sub", -1)])
def test_what_numpy_assigns(key: int, how: str, sign: int | None) -> None:
    first = np.random.default_rng(0).normal(size=(6, 5, 3))
    v, place = tf.Variable(first), KEYS[key]

    @tf.function(fallback=False)
    def step(i: Any, j: Any, c: Any) -> Any:
        part = v[place(i, j)]
        getattr(part, how)(part * 2 + c)
        return part * 1

    want = first.copy()
    for i, j, c in ((2, 1, 0.5), (1, 2, 0.25)):
        part = want[place(i, j)].copy()
        want[place(i, j)] = part * 2 + c if sign is None else part + sign * (part * 2 + c)
        np.testing.assert_array_equal(step(tf.constant(i), tf.constant(j), tf.constant(c, tf.float64)), part)
    np.testing.assert_array_equal(v, want)


def test_in_a_loop_beside_other_reads() -> None:
    v = tf.Variable(np.random.default_rng(1).normal(size=(200, 300)))
    want = v.numpy().copy()

    @tf.function(fallback=False)
    def run(n: Any) -> Any:
        for i in tf.range(n):
            v.assign(v - v[i] * 0.5)
            v[i].assign(v[i + 1][::-1])
        return tf.transpose(v)

    for i in range(4):
        want = want - want[i] * 0.5
        want[i] = want[i + 1][::-1]
    np.testing.assert_array_equal(run(tf.constant(4)), want.T)
    np.testing.assert_array_equal(v, want)


@pytest.mark.parametrize("place", [6, -7])
def test_a_place_outside_is_an_error(place: int) -> None:
    v = tf.Variable(tf.ones([6, 2]))

    @tf.function(fallback=False)
    def step(i: Any) -> None:
        v[i].assign([2.0, 3.0])

    with pytest.raises(tf.errors.InvalidArgumentError):
        step(tf.constant(place))
    np.testing.assert_array_equal(v, np.ones([6, 2]))


def test_a_value_that_does_not_fit_is_an_error() -> None:
    v = tf.Variable(tf.ones([6, 2]))
    with pytest.raises(ValueError, match="3"):
        tf.function(lambda i: v[i].assign([1.0, 2.0, 3.0]))(tf.constant(1))
