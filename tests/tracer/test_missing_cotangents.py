"""What did not run has no part in gradients: ops, branches, loops and calls before it are handed nothing.

Signs of zeros are those of plain Python, and infinities before what did not run give no NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import twofold as tf

Function = Callable[..., Any]


def compiled(f: Function) -> Function:
    return tf.function(f, fallback=False)


def derived(f: Function, persistent: bool = False) -> Function:
    """The gradients of `f` by its first two arguments, zeros where they are unconnected."""
    def gradient(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> Any:
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch([x, v])
            y = f(x, v, n)
        return tape.gradient(y, [x, v], unconnected_gradients="zero")
    return gradient


def numbers() -> list[tf.Tensor]:
    return [tf.constant(np.linspace(-1.0, 1.0, 5, dtype=np.float32) + k) for k in range(2)]


def assert_bits(results: Any, wanted: Any) -> None:
    for a, b in zip(tf.nest.flatten(results), tf.nest.flatten(wanted), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.signbit(a) & ~np.isnan(a), np.signbit(b) & ~np.isnan(b))


def sides(x: tf.Tensor, v: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Results of a branch, of which a later one needs some or others."""
    if tf.reduce_sum(v) > 0.0:
        y, z, w = tf.sin(v), tf.exp(x * 200.0), v * tf.cos(x)
    else:
        y, z, w = tf.cos(v), tf.exp(x), x
    return y, z, w


def rounds(x: tf.Tensor, v: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    y, z, w = v, x * 100.0, x
    for _ in tf.range(2):
        y, z, w = tf.sin(y), tf.exp(z), w * tf.cos(y)
    return y, z, w


def open_rounds(x: tf.Tensor, v: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The number of rounds is not known, and the last of them replaces what the others made."""
    y, z, w = v, x * 100.0, x
    for i in tf.range(tf.cast(tf.reduce_max(v), tf.int32)):
        y, z = tf.sin(y), tf.exp(z * 2.0)
        if i == 1:
            w = tf.cos(y)
    return y, z, w


def pieces(x: tf.Tensor, v: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Results of one op."""
    y, z, w = tf.unstack(tf.stack([tf.sin(v), tf.exp(x * 200.0), -x]))
    return y, z, w


@tf.custom_gradient
def own_rule(x: tf.Tensor, v: tf.Tensor) -> Any:
    return (v * 2.0, tf.exp(x * 200.0), x * v), lambda a, b, c: (b * -3.0, a * 2.0 + c * x)


@pytest.mark.parametrize("several, call", [
    (sides, False), (sides, True), (rounds, False), (open_rounds, False), (open_rounds, True), (pieces, False),
    (own_rule, False)])
def test_of_several_results_some_are_used(several: Function, call: bool) -> None:
    inner = compiled(several) if call else several

    def program(several: Function) -> Function:
        def f(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
            y, z, w = several(x, v)
            u = -v
            if n > 0:
                u = y * -0.0
            if n > 1:
                u = u + z * tf.sin(z)
            if n > 2:
                u = w * u
            return u
        return f

    x, v = numbers()
    for n in map(tf.constant, range(4)):
        wanted = derived(program(several))(x, v, n)
        f = program(inner)
        for g in (derived(f), derived(compiled(f)), compiled(derived(f))):
            assert_bits(g(x, v, n), wanted)


def on_a_side(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    y = tf.cos(v)
    if n > 0:
        y = x * v
    return y


def in_rounds(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    for _ in tf.range(n):
        v = tf.sin(v) * x
    return v


def passed_on(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    y, z = tf.tanh(x), v
    if n > 0:
        y, z = v, y
    return y * 2.0, z


@pytest.mark.parametrize("helper", [on_a_side, in_rounds, passed_on], ids=lambda f: f.__name__)
@pytest.mark.parametrize("order", [1, 2])
def test_what_a_call_did_not_use_reaches_no_op_before_it(helper: Function, order: int) -> None:
    """Under plain tapes, also through calls, functions with gradients of their own and ops of several results."""
    inner = compiled(helper)

    def program(helper: Function) -> Function:
        def f(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
            z, w = tf.unstack(tf.stack([tf.exp(x * 200.0), tf.sin(v)]))
            y = helper(own_rule(z, w)[0] * tf.square(z), w, n)
            y = y if isinstance(y, tf.Tensor) else helper(tf.exp(y[0]), y[1], n)[1]
            return y * v
        return f

    x, v = numbers()
    wanted, f = program(helper), program(inner)
    for k in range(order):
        wanted, f = derived(wanted), derived(f, persistent=k == 1)
    for n in map(tf.constant, (0, 2, 0, 1)):
        assert_bits(f(x, v, n), wanted(x, v, n))


def test_what_a_call_did_not_use_has_zeros() -> None:
    """None is for what a call depends on whatever runs."""
    x, v = numbers()
    f = compiled(on_a_side)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, v])
        z = tf.exp(x)
        y = f(z, v, tf.constant(0))
        other = tf.sin(x)
    assert_bits(tape.gradient(y, [x, z]), [tf.zeros_like(x)] * 2)
    assert tape.gradient(y, other) is None
    assert_bits(tape.jacobian(y, x), tf.zeros([5, 5]))


def replaced_first(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """What goes into the first round is replaced there, and read in the others."""
    y = tf.sin(v)
    for _ in tf.range(2):
        x = 0.2 - y
        y = x * v
    return y * x


def one_of_two(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    y, z, w = sides(x * 0.01, v)
    if n > 0:
        y = w * z
    if n > 1:
        y = y * w
    return y


def some_rounds(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    w = v
    for i in tf.range(3):
        if i < n:
            w = tf.sin(x) * w
        else:
            w = -w
    return w


def one_round_reads(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """What each round computes, and one reads."""
    u = x
    for i in tf.range(3):
        w = -v
        if i == n:
            u = u * tf.sin(w) * 0.0
    return u


def one_round_reads_the_last(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """What a round got from the one before, and what it hands on."""
    u, w = x, tf.identity(v)
    for i in tf.range(3):
        if i == n:
            u = u * tf.sin(w) * 0.0
        w = tf.stop_gradient(tf.tanh(w)) - v
        if i == n + 1:
            u = u * tf.exp(w)
    return u


def rounds_of_their_own_number(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    u, w = x, tf.identity(v)
    while n < 4:
        z = tf.tanh(w)
        if n == 1:
            u = u * tf.sin(-z) * w * 0.0
        w = tf.stop_gradient(z) - v
        n += 1
    return u


def rounds_of_other_sizes(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    u, w = x, v
    for i in tf.range(3):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(w, tf.TensorShape([None]))])
        z = -w
        if i == n:
            u = u * tf.reduce_sum(tf.sin(z)) * 0.0
        w = tf.concat([tf.stop_gradient(w), -v[:2]], 0)
    return u


def rounds_within_rounds(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    u = x
    for i in tf.range(2):
        y = -v
        for j in tf.range(2):
            w = -y
            if i + j == n:
                u = u * tf.sin(w) * tf.cos(y) * 0.0
    return u


SOME_READ = [one_round_reads, one_round_reads_the_last, rounds_of_their_own_number, rounds_of_other_sizes,
             rounds_within_rounds]


SECOND = [replaced_first, one_of_two, on_a_side, in_rounds, some_rounds, *SOME_READ]


@pytest.mark.parametrize("f", SECOND, ids=lambda f: f.__name__)
def test_second_order(f: Function) -> None:
    """`tf.function` around the function, its gradient or all, in turns: each takes a second to compile."""
    x, v = numbers()
    placed = (derived(derived(compiled(f))), derived(compiled(derived(f))), compiled(derived(derived(f))))
    g = placed[SECOND.index(f) % 3]
    for n in map(tf.constant, range(3)):
        assert_bits(g(x, v, n), derived(derived(f))(x, v, n))


@pytest.mark.parametrize("f", [one_of_two, some_rounds, in_rounds], ids=lambda f: f.__name__)
def test_graphs_that_run_op_by_op(f: Function) -> None:
    """Those with effects do under tapes of tapes: what chooses between sums hands its gradient to the one it took."""
    def program(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
        one = tf.numpy_function(lambda: np.float32(1.0), [], tf.float32)
        one.set_shape([])
        return f(x, v, n) * one

    x, v = numbers()
    for n in map(tf.constant, range(3)):
        wanted = derived(derived(f))(x, v, n)
        assert_bits(derived(compiled(derived(program)), persistent=True)(x, v, n), wanted)
