"""Second derivatives of values that rounds and sides hand on unchanged: one value has one sum, whoever reads it."""

from __future__ import annotations

import pytest
from placements import Function, assert_bits, derived, numbers, placements

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


@pytest.mark.parametrize("f", [in_all_rounds, by_inner_rounds, until_it_is_large, by_a_side_of_a_side,
                               by_a_side_of_a_round, by_one_side_alone], ids=lambda f: f.__name__)
def test_second_order(f: Function) -> None:
    b = numbers(200) * 0.1
    for n in map(tf.constant, (0, 1, 2, 3)):
        wanted = derived(f, 2)(b, n)
        for g in placements(f, 2):
            assert_bits(g(b, n), wanted)
