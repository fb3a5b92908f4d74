"""Second derivatives of values that rounds and sides hand on unchanged: one value has one sum, whoever reads it."""

from __future__ import annotations

import numpy as np
import pytest
from placements import Function, assert_bits, compiled, derived, numbers, placements

import twofold as tf


def used(*values: tf.Tensor) -> tf.Tensor:
    """A number for which each value is read several times, in turns."""
    return tf.add_n([tf.reduce_sum(tf.cos(v) * v) for v in (*values, *reversed(values))])


def in_all_rounds(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    v, u = b * b, tf.sin(b)
    for _ in tf.range(n):
        v, u = u * u * b, u
    return used(v, u, b)


def by_inner_rounds(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    v, u = b * b, tf.sin(b)
    for _ in tf.range(n):
        for _ in tf.range(2):
            v, u = u * u * b[0] + v, u
    return used(v, u, b)


def in_some_rounds(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    v, u = b * b, tf.sin(b)
    for i in tf.range(n):
        if i == 1:
            u = tf.cos(u) * b
        v = v * u * u
    return used(v, u, b)


def forgotten_in_the_last_round(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Values stay for two rounds each, and the last of them is not read after the loop."""
    v, u = b * b, tf.sin(b)
    for i in tf.range(n):
        v = v * u * u + tf.cos(u)
        if i % 2 == 1 or i == n - 1:
            u = tf.cos(v) * u
    return used(v, b)


def one_round_late(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    v, u = tf.sin(b), b
    for _ in tf.range(n):
        v = u
        u = tf.tanh(v)
    return used(v, u, b)


def two_rounds_late(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Each round reads a value under three names that it has in turn."""
    u, v, w = b, tf.sin(b), tf.cos(b)
    for _ in tf.range(n):
        u, v, w = v, w, u * v * w * u + tf.sin(v) * w
    return used(w, b)


def exchanged_in_some_rounds(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    u, v, w = b, tf.sin(b), b * b
    for i in tf.range(n):
        w = w * u * v * u
        if i != 1:
            u, v = v, tf.cos(u) * u
    return used(u, w, b)


def two_names_of_what_a_round_made(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    u, v, w = b, tf.sin(b), b * b
    for i in tf.range(n):
        w = w * u * v * u * v + tf.sin(u)
        v = tf.cos(w) * v
        u = v if i % 2 == 0 else u
    return used(w, u, b)


def of_changing_size(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    u, v, w = b, tf.sin(b), b * b
    for i in tf.range(n):
        tf.autograph.experimental.set_loop_options(
            shape_invariants=[(x, tf.TensorShape([None])) for x in (u, v)])
        w = w * tf.reduce_sum(u * u) * 0.1 + tf.reduce_sum(tf.sin(v) * v)
        if i != 1:
            u, v = v, u[1:] * v[:tf.shape(u)[0] - 1]
    return used(w, v, b)


def until_it_is_large(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """What one round reads is a result under another name after it."""
    x, y, i = b, tf.cos(b), tf.constant(0)
    while i < n and tf.reduce_sum(y) < 500.0:
        y = x
        x = x / (tf.square(x) + 1.0)
        i = i + 1
    return tf.reduce_sum(x * x) + tf.reduce_sum(tf.sin(y))


def by_a_side_of_a_side(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    v = tf.sin(b)
    if n > 0:
        u = v if n > 1 else b
        v = v * u * u + tf.sin(u) * b
    return used(v, b)


def by_a_side_of_a_round(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    v = tf.sin(b)
    for i in tf.range(n):
        u = v if i > 1 else b
        v = v * u * u + tf.sin(u) * b
    return used(v, b)


def by_one_side_alone(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """The other side makes a value, which is handed on itself."""
    v, y = tf.sin(b), b
    for i in tf.range(n):
        y, z = tf.cond(i > 0, lambda v=v: (v, b), lambda v=v: (tf.sin(v), v))
        v = v * y * z * y * z
    return used(v, y, b)


FUNCTIONS = [in_all_rounds, by_inner_rounds, in_some_rounds, forgotten_in_the_last_round, one_round_late,
             two_rounds_late, exchanged_in_some_rounds, two_names_of_what_a_round_made, of_changing_size,
             until_it_is_large, by_a_side_of_a_side, by_a_side_of_a_round, by_one_side_alone]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_second_order(f: Function) -> None:
    b = numbers(200) * 0.1
    for n in map(tf.constant, (0, 1, 2, 3, 5)):
        wanted = derived(f, 2)(b, n)
        for g in placements(f, 2):
            assert_bits(g(b, n), wanted)


def made_anew(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """What a round gives is read by the gradient of the round, and by that of the next."""
    v = tf.sin(b)
    for _ in tf.range(n):
        v = tf.tanh(v * b)
    return tf.reduce_sum(v * v * b)


def kept_for_a_round(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    v, u = tf.sin(b), b
    for _ in tf.range(n):
        v = u
        u = tf.tanh(v) * b
    return tf.reduce_sum(v * u)


def grown_in_some_rounds(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    u, w = tf.cos(b), b
    for i in tf.range(n):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(u, tf.TensorShape([None]))])
        if i % 2 == 0:
            u = tf.concat([u * tf.sin(u), u[:1] * u[:1]], 0)
        w = w * tf.reduce_sum(u * u) * 0.1
    return tf.reduce_sum(w * w * w)


@pytest.mark.parametrize("f", [made_anew, kept_for_a_round, grown_in_some_rounds], ids=lambda f: f.__name__)
def test_third_order(f: Function) -> None:
    """Up to last bits: what the gradient of a gradient puts in the place of a smaller sum counts once."""
    b, gradient = tf.cast(numbers(8) * 0.3, tf.float64), derived(compiled(f), 3)
    for n in map(tf.constant, (0, 1, 3)):
        np.testing.assert_allclose(gradient(b, n), derived(f, 3)(b, n), rtol=1e-9)
