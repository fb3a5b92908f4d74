"""Variables that are None before a staged loop which reads them: what plain Python gives, round for round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import twofold as tf


def total(x: Any, n: Any) -> Any:
    y = None
    for _ in tf.range(n):
        if y is None:
            y = x * 2.0
        else:
            y = y + tf.sin(x)
    return y


def in_one_expression(x: Any, n: Any) -> Any:
    y = None
    for i in tf.range(n):
        y = x if y is None else y * 2.0 + tf.cast(i, tf.float32)
    return y


def best(x: Any, n: Any) -> Any:
    largest = None
    for i in tf.range(n):
        value = tf.sin(x + tf.cast(i, tf.float32))
        if largest is None or tf.reduce_sum(value) > tf.reduce_sum(largest):
            largest = value
    return largest


def while_it_holds(x: Any, n: Any) -> Any:
    y, rounds = None, tf.constant(0)
    while rounds < n:
        if y is not None:
            x = x * 0.5 + y
        y = x
        rounds += 1
    return y


def one_behind(x: Any, n: Any) -> Any:
    last = before = None
    for i in tf.range(n):
        before = x if last is None else last
        last = x * tf.cast(i, tf.float32)
    return before + last


def with_break(x: Any, n: Any) -> Any:
    y = None
    for i in tf.range(n):
        y = x if y is None else y * 2.0 + x
        if i > 1:
            break
    return y


def pairs(x: Any, n: Any) -> Any:
    state = None
    for _ in tf.range(n):
        state = (x, x * 2.0) if state is None else (state[1], state[0] + state[1])
    return state[0] - 3.0 * state[1]


def nested(x: Any, n: Any) -> Any:
    outer = None
    for i in tf.range(n):
        inner = None
        for j in tf.range(i + 1):
            inner = x if inner is None else inner + tf.cast(j, tf.float32)
        outer = inner if outer is None else outer * 0.5 + inner
    return outer


def rows(x: Any, n: Any) -> Any:
    y = None
    for row in tf.data.Dataset.from_tensor_slices([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).take(tf.cast(n, tf.int64)):
        y = row * x if y is None else y + row
    return y


PROGRAMS: list[Callable[..., Any]] = [total, in_one_expression, best, while_it_holds, one_behind, with_break, pairs,
                                      nested, rows]


@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_python(program: Callable[..., Any]) -> None:
    x = tf.constant([0.5, -2.0])
    known = {n: tf.function(lambda x, n=n: program(x, n)) for n in (1, 4)}
    compiled = tf.function(program)
    for n in (1, 2, 4):
        expected = program(x, tf.constant(n))
        np.testing.assert_array_equal(compiled(x, tf.constant(n)), expected)
        if n in known:
            np.testing.assert_array_equal(known[n](x), expected)
    assert compiled.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p is not rows])
def test_gradients(program: Callable[..., Any]) -> None:
    def gradient(x: tf.Tensor, n: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = program(x, n)
        return tape.gradient(y, x)
    x, n = tf.constant([0.5, -2.0]), tf.constant(3)
    expected = gradient(x, n)
    np.testing.assert_array_equal(tf.function(gradient)(x, n), expected)
    compiled = tf.function(program)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = compiled(x, n)
    np.testing.assert_array_equal(tape.gradient(y, x), expected)


def test_without_a_round_there_is_no_value() -> None:
    with pytest.raises(UnboundLocalError, match="'y' where it is not associated with a value"):
        tf.function(total)(tf.constant([1.0]), tf.constant(0))


def test_what_the_first_round_cannot_do_is_an_error() -> None:
    @tf.function
    def f(x: tf.Tensor) -> Any:
        y = None
        for _ in tf.range(3):
            y = y + x
        return y
    with pytest.raises(TypeError, match="NoneType"):
        f(tf.constant(1.0))


def test_a_limit_of_rounds() -> None:
    @tf.function
    def five(x: tf.Tensor) -> Any:
        y = None
        while tf.reduce_sum(x) > 0.0:
            tf.autograph.experimental.set_loop_options(maximum_iterations=5)
            y = x if y is None else y + x
        return y

    @tf.function
    def one(x: tf.Tensor) -> Any:
        y = None
        while tf.reduce_sum(x) > 0.0:
            tf.autograph.experimental.set_loop_options(maximum_iterations=1)
            y = x if y is None else y + x
        return y
    assert float(five(tf.constant(1.0))) == 5.0 and float(one(tf.constant(1.0))) == 1.0
