"""Cotangents of values whose sizes or rounds are not known add up in the order of plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from placements import Function, assert_bits, compiled, derived, numbers, placements

import twofold as tf

ANY = tf.TensorShape([None])


def grown(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    v = b
    for _ in tf.range(n):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(v, ANY)])
        v = tf.concat([tf.sin(v), b * tf.reduce_sum(v)], 0)
    return tf.reduce_sum(v * v) + tf.reduce_sum(tf.cos(b) * b * b)


def grown_from_nothing(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    v, w = b[:0], tf.sin(b)
    for _ in tf.range(n):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(v, ANY)])
        v = tf.concat([tf.sin(v) * v, w * tf.reduce_sum(v + 1.0)], 0)
    return tf.reduce_sum(v * v) + tf.reduce_sum(tf.cos(w) * b * w)


def shortened(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    v, u = b, tf.sin(b)
    for _ in tf.range(n):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(v, ANY)])
        v = v[1:] * tf.cos(v[:-1]) * u[0]
        u = u * b * b
    return tf.reduce_sum(v * tf.exp(v)) + tf.reduce_sum(tf.cos(b) * b * u)


def two_names(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Both are the argument before the loop, and one becomes the other."""
    v, u = b, b
    for i in tf.range(n):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(v, ANY), (u, ANY)])
        u = v
        if i > 0:
            v = tf.concat([v, b * tf.cos(u[0])], 0)
        else:
            v = tf.sin(v) * tf.reduce_sum(u)
    return tf.reduce_sum(v * tf.exp(v) * v) + tf.reduce_sum(tf.cos(u) * u * u) + tf.reduce_sum(tf.cos(b) * b * b)


def some_rounds(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    u, v = tf.sin(b), b
    for _ in tf.range(n):
        u, v = v * tf.sin(u), tf.tanh(u) * b
    return tf.reduce_sum(u * v) + tf.reduce_sum(tf.exp(b) * b)


def while_small(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    u = b
    while tf.reduce_max(u) < tf.cast(n, tf.float32):
        u = tf.sin(u) * b * u + u + 0.7
    return tf.reduce_sum(u * tf.tanh(u) * b)


SIZES = [grown, grown_from_nothing, shortened, two_names]
ROUNDS = [some_rounds, while_small]


@pytest.mark.parametrize("f, order", [*[(f, 1) for f in SIZES + ROUNDS], *[(f, 2) for f in ROUNDS]])
def test_placements(f: Function, order: int) -> None:
    b, every = numbers(200) * 0.1, placements(f, order)
    for n in map(tf.constant, (0, 1, 3)):
        wanted = derived(f, order)(b, n)
        for g in every:
            assert_bits(g(b, n), wanted)


@pytest.mark.parametrize("f", SIZES)
def test_second_order_of_sizes(f: Function) -> None:
    """Last bits may differ: see docs/limits.md."""
    b = numbers(200) * 0.1
    wanted, around = derived(f, 2), derived(compiled(f), 2)
    for n in map(tf.constant, (0, 1, 3)):
        np.testing.assert_allclose(around(b, n).numpy(), wanted(b, n).numpy(), rtol=1e-4, atol=1e-5)
