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


def made_and_handed_on(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """What a round made is read there and, in some rounds, given to the next."""
    v, w = tf.sin(b), b
    for i in tf.range(n):
        u = tf.sin(v) * b
        w = tf.exp(u) * u * w
        if i % 2 == 0:
            v = u
    return used(v, w, b)


def handed_on_by_either_side(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Under one name or another."""
    v, x = tf.sin(b), b
    for i in tf.range(n):
        u = tf.sin(v) * b
        w = tf.exp(u) * u
        if i % 2 == 0:
            v, x = u, w
        else:
            v, x = tf.cos(w), u
    return used(v, x, b)


def made_on_a_side_of_a_round(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """A side of a side hands on what the side made and reads."""
    y = w = b
    for i in tf.range(3):
        if n > 0:
            u = tf.sin(y)
            z = u if i > n else tf.cos(y)
            w = tf.exp(u) * u * z
            y = z
        else:
            w = y * y
    return used(y, w, b)


def made_on_a_side(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """The same without rounds."""
    y = b
    if n > 0:
        u = tf.sin(b)
        z = u if n > 1 else tf.cos(b)
        y = z
        w = tf.exp(u) * u * z
    else:
        w = b
    return used(y, w, b)


def handed_on_by_no_rounds(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """A loop within a side gives back what the side made where there is no round."""
    v = tf.sin(b)
    y = v
    if n > 0:
        u = tf.exp(v) * v
        y = u
        for _ in tf.range(n - 1):
            y = y * v
        w = u * u * v
    else:
        w = b
    return used(y, w, v, b)


def of_sizes_and_handed_on(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Of several sizes."""
    v, w = tf.sin(b), b
    for i in tf.range(n):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(v, tf.TensorShape([None]))])
        u = v[1:] * tf.cos(v[:-1])
        w = w * tf.reduce_sum(tf.exp(u) * u) * 0.1
        if i % 2 == 0:
            v = u
        else:
            v = tf.concat([u * u, v[:2]], 0)
    return used(v, w, b)


FUNCTIONS = [made_and_handed_on, handed_on_by_either_side, made_on_a_side_of_a_round, made_on_a_side,
             handed_on_by_no_rounds, of_sizes_and_handed_on, in_all_rounds, by_inner_rounds,
             in_some_rounds, forgotten_in_the_last_round, one_round_late, two_rounds_late, exchanged_in_some_rounds,
             two_names_of_what_a_round_made, of_changing_size, until_it_is_large, by_a_side_of_a_side,
             by_a_side_of_a_round, by_one_side_alone]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_second_order(f: Function) -> None:
    """All placements of `tf.function` in turns: each takes a second to compile."""
    b, g = numbers(200) * 0.1, placements(f, 2)[FUNCTIONS.index(f) % 4]
    for n in map(tf.constant, (0, 1, 2, 3, 5)):
        assert_bits(g(b, n), derived(f, 2)(b, n))


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


def grown_by_products(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """What a round begins with, and what it makes of that, are read by gradients of all orders, in sizes that grow."""
    v = w = b
    for _ in tf.range(n):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(v, tf.TensorShape([None]))])
        u = v * v
        w = w * tf.reduce_sum(u * v * tf.cos(v) * u) * 0.1
        v = tf.concat([tf.sin(u) * v * u, v[:3] * v[:3] * v[:3]], 0)
    return tf.reduce_sum(v * v * v) + tf.reduce_sum(w * w)


def mapped_and_scanned(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    b = b[:n + 2]
    u = tf.map_fn(lambda e: tf.tanh(e * e * b[0]) * e, b)
    return tf.reduce_sum(tf.scan(lambda s, e: tf.tanh(s * e) * e, b)) + tf.reduce_sum(u * u)


def of_a_tape(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """The gradient of a loop, in a function whose gradients are taken."""
    with tf.GradientTape() as tape:
        tape.watch(b)
        y = tf.sin(b)
        for _ in tf.range(n):
            y = tf.tanh(y * b) * y + b[0]
    d = tape.gradient(y, b)
    return tf.reduce_sum(d * d * y) + tf.reduce_sum(d)


@pytest.mark.parametrize(("f", "outside"), [
    (by_inner_rounds, True), (made_and_handed_on, False)])
def test_third_order(f: Function, outside: bool) -> None:
    """What several gradients read of a round is on one stack, whose cotangents add up in one order, with the tapes
    outside of the compiled function or inside."""
    b, third = numbers(40) * 0.7, derived(compiled(f), 3) if outside else compiled(derived(f, 3))
    for n in map(tf.constant, (1, 2, 3)):
        assert_bits(third(b, n), derived(f, 3)(b, n))


@pytest.mark.parametrize("f", [made_anew, mapped_and_scanned], ids=lambda f: f.__name__)
def test_third_order_is_right(f: Function) -> None:
    """Beside differences of second derivatives in float64."""
    b, step = tf.cast(numbers(5) * 0.5, tf.float64), 1e-4
    third, second, n = derived(compiled(f), 3)(b, tf.constant(3)), derived(f, 2), tf.constant(3)
    for i, slope in enumerate(third.numpy()):
        e = np.eye(5)[i] * step
        difference = tf.reduce_sum(second(b + e, n) - second(b - e, n)) / (2.0 * step)
        np.testing.assert_allclose(slope, difference, rtol=1e-4, atol=1e-6)
