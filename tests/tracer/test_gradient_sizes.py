"""Cotangents of values whose sizes or rounds are not known add up in the order of plain Python."""

from __future__ import annotations

import pytest
from placements import Function, assert_bits, compiled, derived, numbers, placements, two_placements

import twofold as tf

ANY = tf.TensorShape([None])


def used(*values: tf.Tensor) -> tf.Tensor:
    """A number for which each value is read several times, in turns."""
    return tf.add_n([tf.reduce_sum(tf.cos(v) * v) for v in (*values, *reversed(values))])


# -- loops --------------------------------------------------------------------------------------------
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


def read_twice(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """What a round made is read there and in the next, and is as large as its number tells."""
    v, w = tf.sin(b), b
    for i in tf.range(n):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(v, ANY), (w, ANY)])
        u = v[i:] * tf.exp(v[i:]) * w[0]
        w = tf.concat([u * tf.cos(u), v[:2] * v[1:3]], 0)
        v = u
    return used(v, w, b)


def exchanged(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Several variables, of which each becomes another in some rounds."""
    u, v, w = b, tf.cos(b), b[3:]
    for i in tf.range(n):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(u, ANY), (v, ANY), (w, ANY)])
        u, v, w = v, w, u
        if i % 2 == 0:
            w = tf.concat([w * tf.sin(w), v[:4] * u[0] * v[:4]], 0)
    return used(u, v, w, b)


def replaced(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """One becomes the other, and sides of a branch read one of them each."""
    v, u = b, tf.tanh(b[:7])
    for _ in tf.range(n):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(v, ANY), (u, ANY)])
        v = u
    return tf.reduce_sum(tf.cos(u) * u) if n < 0 else tf.reduce_sum(v * v * v)


def made_anew(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Rounds give a size that is known, and was another before."""
    v = tf.cos(b[2:])
    for _ in tf.range(n):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(v, ANY)])
        v = tf.reverse(tf.ensure_shape(b, [200]), [0]) * b[0]
    return tf.reduce_sum(tf.sin(v) * v)


def in_rounds_of_rounds(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    v = b
    for _ in tf.range(2):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(v, ANY)])
        u = v
        for _ in tf.range(n):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(u, ANY)])
            u = u[1:] * tf.sin(u[:-1]) * v[0]
        v = tf.concat([u, v[-5:] * tf.cos(v[-5:])], 0)
    return used(v, b)


def while_long(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """How many rounds there are is known by the size alone."""
    v, w = b, tf.sin(b)
    while tf.size(v) > 200 - 20 * n:
        tf.autograph.experimental.set_loop_options(shape_invariants=[(v, ANY), (w, ANY)])
        w = tf.tanh(v) * v * w
        v, w = v[17:] * tf.cos(v[17:]) * w[0], w[17:]
    return used(v, w, b)


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


def taken_over(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """One value takes the size of another, which that one keeps."""
    v, u = b * b, tf.sin(b[3:])
    for _ in tf.range(n):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(v, ANY), (u, ANY)])
        v, u = u * u * b[0], u
    return tf.reduce_sum(tf.cos(v) * v) + tf.reduce_sum(tf.cos(b) * b)


def taken_from_outside(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Values take a size that is unknown and the same in all rounds, as it is and in part."""
    b = tf.boolean_mask(b, b > -0.1)
    v, u, w = b[5:] * b[0], b[1:], b[7:]
    for _ in tf.range(n):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(v, ANY), (u, ANY), (w, ANY)])
        v, u, w = tf.sin(b) * v[0], b * tf.reduce_sum(w), tf.concat([u[:4], b * v[1]], 0)
    return used(v, u, w, b)


LOOPS = [grown, grown_from_nothing, shortened, two_names, read_twice, exchanged, in_rounds_of_rounds, replaced,
         made_anew, while_long, some_rounds, while_small, taken_over, taken_from_outside]


# -- branches -----------------------------------------------------------------------------------------
def one_side(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """One gives back what is used besides."""
    y = b[2:] * b[0] if n > 0 else b
    return used(y, b)


def one_of_two(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """The same, of something that was computed."""
    v = tf.sin(b)
    y = v
    if n > 0:
        y = tf.concat([v, v * b], 0)
    return used(v, y, b)


def both_sides(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    v = tf.concat([b[:7], tf.sin(b)], 0)
    y = v if n > 0 else b
    return used(b, y, v)


def two_results(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Two names for one value, of two branches."""
    y = b if n > 0 else tf.sin(b[1:])
    z = b if n > 1 else tf.cos(b[2:])
    return used(y, z, b)


def two_names_of_one(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Two results of one branch."""
    if n > 0:
        y = z = b
    else:
        y = tf.cos(b[4:])
        z = tf.concat([y, y], 0)
    return used(z, y, b)


def two_made_as_one(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Two results of one branch that are one value that it makes."""
    if n > 0:
        y = tf.sin(b)
        z = y
    else:
        y, z = tf.cos(b[4:]), b[:9] * b[3:12]
    return used(z, y, b)


def two_given_back(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    v = tf.sin(b[3:])
    if n > 0:
        y, z = v, b
    else:
        y, z = b, v
    return used(y, b, z, v)


def helper(x: tf.Tensor, y: tf.Tensor, n: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    if n > 0:
        return x, tf.sin(y[1:]) * y[1:]
    return x[3:] * x[0], y


decorated = compiled(helper)


def in_a_helper(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    y, z = helper(b, tf.cos(b), n)
    return used(y, z, b)


def in_a_decorated_helper(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    v = tf.cos(b)
    y, z = decorated(b, v, n)
    return used(y, z, v, b)


def helpers_in_turn(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    v = tf.cos(b)
    y, z = decorated(b, v, n)
    y, z = decorated(z, y, n - 1)
    return used(y, z, v, b)


def one_for_two_arguments(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    y, z = decorated(b, b, n)
    return used(y, z, b)


def of_known_sides(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Which side is taken is known once the call is inlined."""
    v = tf.cos(b)
    y, z = decorated(b, v, tf.constant(1))
    u, w = decorated(z, y, tf.constant(0))
    return used(w, u, y, v, z, b)


def called_on_a_side(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    y = b
    if n < 2:
        y, z = decorated(tf.sin(b), b, n)
        y = y * tf.reduce_sum(z)
    return used(y, b)


def in_rounds(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """A side of each round gives back what the round began with."""
    y = b
    for i in tf.range(3):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(y, ANY)])
        if i >= n:
            y = y[1:] * y[:-1] * b[0]
    return used(y, b)


def read_in_rounds(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """What a branch before the loop gave is read in each round, under two names."""
    y, v = b if n > 0 else b[5:], tf.sin(b)
    for _ in tf.range(2):
        v = v * b * tf.reduce_sum(y * tf.cos(y)) * 0.01 + tf.exp(b)
    return used(v, y, b)


def branches_of_rounds(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """What a branch of a round gives back is read in the round alone."""
    v = tf.sin(b)
    for i in tf.range(3):
        y = v
        if i > n:
            y = v[i:] * b[0]
        v = v * tf.reduce_sum(y * tf.exp(y) * y) * 0.1 + tf.cos(v) * v
    return used(v, b)


def nested(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    v = tf.sin(b)
    y, z = v, b
    if n < 2:
        if n < 1:
            y = b
        else:
            z = y[2:]
        y = y * tf.reduce_sum(z * z)
    else:
        z = v
    return used(y, z, v, b)


def nested_names(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """The outer branch gives back what the inner one gave back."""
    y = b[7:]
    if n > 0:
        z = b
        if n > 1:
            z = tf.exp(b[1:] * 0.1)
        y = z
    return used(y, b)


def one_after_another(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    y = b if n > 0 else b[1:]
    z = y if n > 1 else tf.sin(y)[:30]
    return used(z, y, b)


def three_after_another(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    y = b if n > 0 else b[1:]
    u = tf.cos(y) * y
    z = y if n < 3 else tf.sin(y)[:30]
    w = z if n > 1 else u
    return used(w, u, z, y, b)


def between_two(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """A later branch reads both names."""
    y = b if n > 0 else tf.sin(b[1:])
    z = tf.exp(b) * b
    if n < 2:
        z = z * tf.reduce_sum(y * y) * b * tf.reduce_sum(tf.cos(y))
    return used(z, b, y)


def a_name_on_each_side(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Sides of a later branch read one name each."""
    y = b if n > 0 else tf.sin(b[1:])
    z = tf.exp(b) * tf.reduce_sum(y) if n > 0 else b
    u = z if n > 2 else tf.cos(z)
    total = tf.reduce_sum(tf.cos(b) * b) if n < 2 else tf.reduce_sum(y * y * y)
    return total + (tf.reduce_sum(u * u) if n < 3 else tf.reduce_sum(tf.sin(z) * z))


def by_tf_cond(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    v = b * b
    y = tf.cond(n > 0, lambda: v, lambda: tf.sin(v[3:]))
    z = tf.cond(n > 1, lambda: v, lambda: y)
    return used(z, v, y, b)


def of_another_rank(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Matrices, whose second sizes differ alone."""
    m = tf.reshape(b, [20, 10])
    y = m if n > 0 else tf.sin(m[:, 2:]) * m[:, :1]
    return used(y, m) + tf.reduce_sum(b * b * b)


def of_many_sides(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    v = tf.sin(b)
    y = tf.switch_case(n, [lambda: b, lambda: v[1:], lambda: v, lambda: tf.concat([b, v], 0)])
    return used(y, v, b)


def gradients_of_branches(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """A tape of its own, whose gradient is used under two names."""
    with tf.GradientTape() as tape:
        tape.watch(b)
        y = b if n > 0 else b[1:] * b[:-1]
        total = tf.reduce_sum(tf.sin(y) * y) + tf.reduce_sum(b * b * b)
    d = tape.gradient(total, b)
    z = d if n > 1 else d[4:]
    return used(z, d, b)


BRANCHES = [one_side, one_of_two, both_sides, two_results, two_names_of_one, two_made_as_one, two_given_back,
            in_a_helper, in_a_decorated_helper, helpers_in_turn, one_for_two_arguments, of_known_sides,
            called_on_a_side, in_rounds, read_in_rounds, nested_names, one_after_another, three_after_another,
            between_two, a_name_on_each_side, by_tf_cond, of_another_rank, of_many_sides, gradients_of_branches, nested,
            branches_of_rounds]


def check(f: Function, placed: list[Function], order: int, rounds: tuple[int, ...], count: int = 200) -> None:
    """Requires the bits of plain Python of the derivative of `f` in some placements."""
    b = numbers(count) * 0.1
    for n in map(tf.constant, rounds):
        wanted = derived(f, order)(b, n)
        for g in placed:
            assert_bits(g(b, n), wanted)


def second_in_turn(functions: list[Function], f: Function) -> list[Function]:
    """One placement of the second derivative: around `f`, around all or around both, in turns, since each takes a
    second to compile."""
    around, _, around_all, around_both = placements(f, 2)
    return [(around, around_all, around_both)[functions.index(f) % 3]]


@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_loops(f: Function) -> None:
    check(f, two_placements(f, LOOPS.index(f)), 1, (0, 1, 3))


@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_second_order_of_loops(f: Function) -> None:
    check(f, second_in_turn(LOOPS, f), 2, (0, 1, 3))


@pytest.mark.parametrize("f", [taken_over], ids=lambda f: f.__name__)
def test_third_order(f: Function) -> None:
    """Sizes keep their meaning from order to order, and are known where only some results count."""
    b, gradient = numbers(12) * 0.5, derived(compiled(f), 3)
    for n in map(tf.constant, (0, 1, 3)):
        assert_bits(gradient(b, n), derived(f, 3)(b, n))


@pytest.mark.parametrize("f", BRANCHES, ids=lambda f: f.__name__)
def test_branches(f: Function) -> None:
    check(f, two_placements(f, BRANCHES.index(f)), 1, (0, 1, 2, 3))


@pytest.mark.parametrize("f", BRANCHES, ids=lambda f: f.__name__)
def test_second_order_of_branches(f: Function) -> None:
    check(f, second_in_turn(BRANCHES, f), 2, (0, 1, 2, 3))


def results(x: tf.Tensor, y: tf.Tensor, n: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    u = x if n > 0 else tf.sin(y[1:])
    v = u if n > 1 else tf.cos(x) * y
    return u, v, y if n > 2 else x[4:] * y[4:]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("same", [False, True])
def test_a_decorated_helper_under_plain_tapes(same: bool, order: int) -> None:
    """Its results are arguments, or one another, of sizes that only running tells."""
    def program(helper: Function) -> Function:
        def f(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
            u, v, w = helper(b, b if same else tf.tanh(b), n)
            return used(u, b, v, w)
        return f
    b = numbers(40)
    plain, traced = derived(program(results), order), derived(program(compiled(results)), order)
    for n in map(tf.constant, range(4)):
        assert_bits(traced(b, n), plain(b, n))


def test_what_a_side_that_does_not_run_assumes_of_sizes() -> None:
    """A helper there has an array that grows, whose size is assumed to be known."""
    @compiled
    def helper(a: tf.Tensor) -> tf.Tensor:
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(3):
            array = array.write(i, a[:4])
        v = tf.reshape(array.stack(), [-1])
        return tf.abs(v) * a + v

    def f(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(tf.cos(b[2:])) if n > 0 else tf.reduce_sum(helper(b) * b)
    check(f, placements(f, 1), 1, (0, 1), 12)


def test_output_gradients_of_sizes_that_are_not_known():
    @tf.function(input_signature=[tf.TensorSpec([None, 2])] * 2)
    def gradient(x, weights):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        return tape.gradient(y, x, output_gradients=weights)

    assert gradient(tf.ones([3, 2]), 3 * tf.ones([3, 2])).numpy().tolist() == [[6.0, 6.0]] * 3
    with pytest.raises(ValueError, match=r"output_gradients has shape \(4, 2\) for a target of shape \(3, 2\)"):
        gradient(tf.ones([3, 2]), tf.ones([4, 2]))
