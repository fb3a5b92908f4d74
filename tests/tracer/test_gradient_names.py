"""A value with several names has one sum of cotangents: names that control flow gives are known when it runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from placements import Function, assert_bits, compiled, derived, numbers, placements, two_placements

import twofold as tf


def again(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """A name for what a name was given to before."""
    v = tf.sin(b)
    if n > 0:
        v = b
    y = tf.cos(v)
    if n > 1:
        y = v
    return y * b * tf.exp(b) * y + v * y


def together(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Both names are read within a branch."""
    y = b if n > 0 else tf.sin(b)
    if n < 2:
        z = b * y * tf.exp(b) * y * tf.cos(b)
    else:
        z = b + y
    return z * b * y


def two_of_one(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Two names of a value that is not read itself."""
    y = b if n > 0 else tf.sin(b)
    z = b if n > 1 else tf.cos(b)
    v = tf.exp(b)
    if n < 3:
        v = y * z * tf.tanh(y) * z * v
    return v * y * z


def in_rounds(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Both names go into a loop, one is carried."""
    y = b if n > 0 else tf.sin(b)
    v = y
    for _ in tf.range(2):
        v = tf.sin(v) * b + y * tf.cos(v) * v
    return v * b * y


def counted(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Without rounds, what the loop gives is what went in."""
    v = b
    for _ in tf.range(n):
        v = tf.sin(v) * b * v
    return v * b * tf.exp(v) * v + tf.cos(b) * v


def two_counted(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    u, v = b, b
    for _ in tf.range(n):
        u, v = tf.sin(v) * u, tf.cos(u) * b
    return u * v * b * tf.exp(v) * u + tf.cos(b) * v


def while_known(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """A loop that ends by values, within another."""
    v = tf.sin(b)
    for _ in tf.range(2):
        w = v
        while tf.reduce_sum(tf.abs(w)) < 10.0 * tf.cast(n, tf.float32):
            w = w * 2.0 + b
        v = tf.tanh(w) * v + w
    return v * b


def called_twice(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """A call with one tensor for two arguments."""
    helper = tf.function(lambda x, y: tf.tanh(y) * x + y * y * x)
    v = tf.sin(b)
    if n > 0:
        v = helper(v, v) * v
    return v * b


def array(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Items that are written and read, in loops and outside, and used under other names."""
    items, v = tf.TensorArray(tf.float32, size=3), tf.sin(b)
    for i in tf.range(3):
        items = items.write(i, v)
        v = tf.tanh(v) * b + v
    w = v
    for i in tf.range(3):
        r = items.read(i)
        w = w * r * tf.cos(r) + r * v
    return w * b * items.read(0) * items.read(2) + tf.reduce_sum(items.stack(), 0) * items.read(1) * w


def growing(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    items, v = tf.TensorArray(tf.float32, size=0, dynamic_size=True), tf.sin(b)
    for i in tf.range(3):
        items = items.write(i, v)
        v = tf.tanh(v) * b + v * items.read(i)
    items = items.write(1, v * b)
    return tf.reduce_sum(items.gather([0, 2, 1]) * v, 0) * v * items.read(1) * tf.exp(b)


def unstacked(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    items = tf.TensorArray(tf.float32, size=4).unstack(tf.reshape(tf.sin(b), [4, 10]))
    w = items.read(0)
    for i in tf.range(4):
        w = w * items.read(i) + tf.cos(items.read(3 - i)) * w
    parts = tf.concat([b[5:], items.read(1), items.concat()[3:8]], 0)
    return tf.concat([w, b], 0) * parts * tf.reduce_sum(items.stack() * tf.reshape(b, [4, 10]))


def within(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """A branch within a branch gives back what is used besides, and so does a loop without rounds."""
    y, z = tf.sin(b), tf.cos(b)
    if n < 2:
        if n < 1:
            y = b
        else:
            z = y
        for _ in tf.range(n):
            z = z * y
    else:
        z = b * y
    return y * z * b * tf.exp(y) * z + tf.tanh(b) * y * z


def become_one(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Two variables of a loop that are one tensor after a round."""
    u, v = tf.sin(b), tf.cos(b)
    for _ in tf.range(n):
        w = u * v * b * tf.exp(u) * v
        u, v = w, w
    return u * v * b * u


def as_cells(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Only one of two that are one tensor is a result, and nothing is wanted of what they began with."""
    state, last = tf.zeros_like(b), tf.zeros_like(b)
    for _ in tf.range(n):
        state = tf.tanh(state * b + b)
        last = state
    return last * b


def become_outside(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """A variable that becomes what no round changes, and one that becomes what another began with."""
    u, v, first = tf.sin(b), tf.cos(b), tf.tanh(b)
    w = first
    for _ in tf.range(n):
        w, u, v = tf.sin(w) * u * v * u, v * b * u, first
    return u * v * w * first * u * v


def sometimes(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Variables that only some rounds change, and that are exchanged."""
    u, v, w = b, tf.cos(b), b
    for i in tf.range(4):
        if i == n:
            u = tf.sin(u) * w + v
        elif i > n:
            u, v = v, u
        else:
            w = u
        v = v * u * w * v + u * tf.exp(w) * w
    return u * v * w * b * u


def nested_rounds(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    u, v = b, tf.sin(b)
    for i in tf.range(3):
        for j in tf.range(n):
            if j == i:
                u = v
            v = v * u * tf.cos(v) * u
        if i == 1:
            v = u
        u = tf.tanh(u) * v * u
    return u * v * b * u


def best(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """What was best so far, read in each round."""
    x, kept = tf.sin(b), b
    for i in tf.range(4):
        if i != n:
            kept = x
        x = tf.sin(x * kept) + kept * b * x
    return kept * x * b * kept


def sized_by_a_call(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Decorated helpers whose results have sizes that they make, read in a branch and handed to one another."""
    def helper(x: tf.Tensor) -> tf.Tensor:
        items = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(2):
            items = items.write(i, tf.sin(x[:20]))
        return tf.reshape(items.stack(), [-1]) * items.read(1)[0]
    helper = tf.function(helper, fallback=False)
    u = helper(b)
    v = helper(u) * u
    if n > 0:
        v = tf.cos(u) * v
    return v * u * b


def replaced_in_all_rounds(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """The loop replaces the value by what it computes from its other name, which a side gave back."""
    s = b if n > 1 else tf.sin(b)
    v = b
    for _ in tf.range(2):
        v = s * tf.cos(s)
    return v * v


def replaced_in_rounds(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    s = b if n > 1 else tf.sin(b)
    v = b
    for _ in tf.range(n):
        v = s * tf.cos(s)
    return v * v


def replaced_by_another(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """The same, with the other name replaced in each round, too."""
    s = b if n > 1 else tf.sin(b)
    v, u = b, s
    for _ in tf.range(2):
        v = tf.cos(u) * u
        u = tf.tanh(u)
    return v * v


def replaced_by_two(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    s = b if n > 0 else tf.sin(b)
    t = s if n > 1 else tf.exp(b)
    v, w = b, s
    for _ in tf.range(2):
        v = t * tf.cos(t) + s
        w = t * t
    return v * w


def inner(watched: Any, f: Function, sources: Any = None) -> Any:
    """The gradient of `f()` by what is watched, or by `sources`, from a tape that begins here."""
    with tf.GradientTape() as tape:
        tape.watch(watched)
        y = f()
    return tape.gradient(y, watched if sources is None else sources, unconnected_gradients="zero")


def chosen_before_a_tape(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """The tape reads what it watches by a name that a branch has given before, and the other way round."""
    t = tf.switch_case(n, [lambda: b, lambda: tf.sin(b), lambda: b * b])
    p, q = inner(b, lambda: t * tf.cos(t) * b * t), inner(t, lambda: tf.sin(b) * t * b)
    return p * t + q * b


def sources_before_a_tape(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Sources that are another name of what is watched, on some sides."""
    t = b if n > 0 else tf.sin(b)
    u = t if n > 1 else tf.cos(b)
    v = u
    for _ in tf.range(3 - n):
        v = v * b
    p, q, r = inner(u, lambda: t * u * v * b * tf.exp(v), [b, t, v])
    return p * tf.cos(q) + r * u + inner([t, v], lambda: t * b * u)[1] * v


def rounds_before_a_tape(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    t, u, v = tf.cos(b), b, b
    while tf.reduce_sum(tf.abs(t)) < 10.0 * tf.cast(n, tf.float32):
        t, u = t * 2.0, t
    for _ in tf.range(n // 2):
        v, u = tf.sin(v) * b, v
    return inner(u, lambda: t * u * v * tf.exp(b) * u, b) * u + inner(b, lambda: t * u * tf.sin(v) * b) * v


def two_results_before_a_tape(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Both are what a side made."""
    def made() -> list[tf.Tensor]:
        return [tf.sin(b)] * 2
    t, u = tf.cond(n > 1, made, lambda: [b, tf.cos(b)])
    return inner(u, lambda: t * u * tf.cos(t), t) * u


def tape_within_rounds(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Of what was named outside of rounds and sides, and read there before it was watched."""
    t, u = b if n > 1 else tf.sin(b), tf.exp(b)
    s = tf.zeros_like(b)
    for i in tf.range(2):
        w = u * t
        if i < n:
            s += inner(b, lambda: tf.cos(t) * b * t)
        s = s * t + inner(u, lambda: tf.cond(n > 2, lambda: u * t, lambda: u * u)) * w
    return s * b


def watched_late(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """By a persistent tape that records the branches for what else it follows."""
    with tf.GradientTape(persistent=True) as tape:
        t = b if n > 1 else tf.sin(b)
        c = tf.cos(b)
        tape.watch(c)
        u = t if n > 0 else c * b
        tape.watch(t)
        v = t * u * b * c
        tape.watch(u)
        w = v * u * t
    p, q = tape.gradient(w, [t, c], unconnected_gradients="zero")
    return p * q * tape.gradient(v, b, unconnected_gradients="zero") + tape.gradient(w, u) * b


def sources_that_are_names(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Gradients by names that the tape has seen made, with what was read by other names, also before."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(b)
        c = tf.sin(b) * b
        d = tf.cos(c)
        t = c if n > 1 else tf.cos(b)
        u = t
        for _ in tf.range(n):
            u = u * b
        y = d * c * b * tf.exp(u)
    p, q = [tape.gradient(y, s, unconnected_gradients="zero") for s in (c, t)]
    return p * q + tape.gradient(y, u) * b


def tape_around_a_tape(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    t = b if n > 1 else tf.sin(b)

    def first() -> tf.Tensor:
        s = t if n > 0 else b
        return inner(b, lambda: tf.cos(t) * b * s * t)
    return inner(t, first, b) * t


def sources_of_late_branches(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Whether the source depends on what is watched is known of a branch by the names of what it reads."""
    t = b
    if n < 2:
        t = tf.sin(b)
    with tf.GradientTape() as tape:
        tape.watch(t)
        v = b
        for _ in tf.range(n % 2):
            v = v * t
        if n > 2:
            v = tf.cos(v)
        z = v * t * b
    p, q = tape.gradient(z, [b, v], unconnected_gradients="zero")
    return p * v + q * t


def named_after_a_tape(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Targets and sources that branches and loops choose from what the tape has seen."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(b)
        u = tf.sin(b) * b
        v = u * u
    t = v if n > 1 else u
    s = u
    for _ in tf.range(n):
        s = b
    p = tape.gradient(t, b)
    q, r = tape.gradient([t, v], [s, b], unconnected_gradients="zero")
    return p * q * r


def jacobian_after_a_tape(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    c = b[:3]
    with tf.GradientTape() as tape:
        tape.watch(c)
        u = tf.sin(c) * c
    t = c if n > 1 else u
    return tape.jacobian(t, c) @ c[:, None]


def source_of_a_side(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """A source that a side computes by a loop, some rounds of which hand on what they get."""
    q = b
    with tf.GradientTape() as tape:
        tape.watch(b)
        if n > 0:
            s = u = tf.sin(b)
            for i in tf.range(3):
                if i < n:
                    s = s * s * b
            q = tf.cumsum(s * u)
        z = tf.maximum(q, b * 0.5)
    p, r = tape.gradient(z, [q, b], unconnected_gradients="zero")
    return p * r * b


def named_between(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """While the tape does not record."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(b)
        with tape.stop_recording():
            t = b if n > 1 else tf.sin(b)
        u = tf.cos(t) * b * t
    s = u
    for _ in tf.range(n):
        s = s * b
    with tape:
        v = s * t * b
    p, q = [tape.gradient(v, x, unconnected_gradients="zero") for x in (b, t)]
    return p * s + q * b


def call_before_a_tape(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """A decorated helper gives back an argument, on a side, and another result."""
    @tf.function
    def helper(x: tf.Tensor, n: tf.Tensor) -> Any:
        y = tf.sin(x)
        return tf.cond(n > 1, lambda: x, lambda: y), y, x
    t, u, v = helper(b, n)
    return inner([b, u], lambda: t * u * v * tf.cos(b))[0] * t + inner(t, lambda: t * u * v, u)


def variable_before_a_tape(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """A variable's value, which only one side replaces, under the name that it had before."""
    w = kept
    w.assign(tf.cos(b))
    t = tf.convert_to_tensor(w)
    if n > 0:
        w.assign(tf.sin(b))
    return inner([w], lambda: t * t * w)[0] * b


kept = tf.Variable(tf.zeros([40]), trainable=False)
BEFORE_TAPES = [chosen_before_a_tape, sources_before_a_tape, rounds_before_a_tape, two_results_before_a_tape,
                tape_within_rounds, watched_late, sources_that_are_names, tape_around_a_tape, call_before_a_tape,
                variable_before_a_tape, sources_of_late_branches, named_after_a_tape, jacobian_after_a_tape,
                source_of_a_side, named_between]

CASES = [*BEFORE_TAPES, replaced_in_all_rounds, replaced_in_rounds, replaced_by_another, replaced_by_two,
         sized_by_a_call, become_one, as_cells, become_outside, sometimes, nested_rounds, best, array, growing,
         unstacked, within, again, together, two_of_one, in_rounds, counted, two_counted, while_known, called_twice]


def one_side(x: tf.Tensor, y: tf.Tensor, n: tf.Tensor) -> Any:
    """Results that are an argument, or another result, on a side."""
    u = x if n > 0 else tf.sin(y)
    v = u if n > 1 else tf.cos(x) * y
    return u, v, y if n > 2 else x * y


def no_round(x: tf.Tensor, y: tf.Tensor, n: tf.Tensor) -> Any:
    """The same, without rounds."""
    u = v = x
    for _ in tf.range(n):
        y, v, u = y * tf.sin(x), x * v, tf.tanh(v)
    return u, v, y


@pytest.mark.parametrize("helper, order", [(one_side, 1), (one_side, 2), (no_round, 1)])
@pytest.mark.parametrize("same", [False, True])
def test_results_that_are_arguments(helper: Function, same: bool, order: int) -> None:
    """A decorated helper in a plain function under plain tapes."""
    def program(helper: Function) -> Function:
        def f(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
            c = b if same else tf.tanh(b)
            u, v, w = helper(b, c, n)
            return u * b * v * tf.exp(b) * u + v * w * c + w * u * c
        return f
    b = numbers(40)
    plain, traced = derived(program(helper), order), derived(program(compiled(helper)), order)
    for n in map(tf.constant, range(4)):
        assert_bits(traced(b, n), plain(b, n))


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_placements(f: Function) -> None:
    b, some = numbers(40), two_placements(f, CASES.index(f))
    for n in map(tf.constant, range(4)):
        wanted = derived(f)(b, n)
        for g in some:
            assert_bits(g(b, n), wanted)


def grown_and_read(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    items, v = tf.TensorArray(tf.float32, size=0, dynamic_size=True), tf.cos(b)
    for i in tf.range(3):
        items = items.write(i, v)
        v = items.read(i) * v
    return items.stack()


def grown_in_a_branch(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    items, v = tf.TensorArray(tf.float32, size=0, dynamic_size=True), tf.cos(b)
    for i in tf.range(n + 1):
        items = items.write(i, v)
        v = tf.sin(v) * b
    joined = tf.reshape(items.stack(), [-1])
    if n > 1:
        joined = tf.square(joined)
    return joined * items.read(0)[1]


@pytest.mark.parametrize("f", [grown_and_read, grown_in_a_branch], ids=lambda f: f.__name__)
def test_second_order_of_arrays_that_grow(f: Function) -> None:
    b, every = numbers(4), placements(f, 2)
    for n in map(tf.constant, range(3)):
        wanted = derived(f, 2)(b, n)
        for g in every:
            np.testing.assert_allclose(g(b, n), wanted, rtol=1e-5)


def chosen(b: tf.Tensor, n: tf.Tensor) -> list[tf.Tensor]:
    y = b if n > 0 else tf.sin(b)
    z = y if n > 1 else tf.cos(b)
    return [y, b, z, y, z]


def looped(b: tf.Tensor, n: tf.Tensor) -> list[tf.Tensor]:
    y = z = b
    for _ in tf.range(tf.maximum(n - 1, 0)):
        y, z = z * 2.0, y
    return [y, b, z, y, z]


@pytest.mark.parametrize("f", [chosen, looped], ids=lambda f: f.__name__)
@pytest.mark.parametrize("which", [(0,), (2,), (1, 0), (0, 3), (2, 1, 0), (4, 2, 3, 1)], ids=str)
@pytest.mark.parametrize("used", [False, True])
def test_targets_that_are_names(f: Function, which: tuple[int, ...], used: bool) -> None:
    """What a target, or a use of a result, begins with counts for the value that it is another name of."""
    def derived(f: Function) -> Function:
        def gradient(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
            with tf.GradientTape() as tape:
                tape.watch(b)
                values = f(b, n)
                targets = [tf.square(values[k]) if used else values[k] for k in which]
            return tape.gradient(targets, b, output_gradients=[b + float(k) for k in which])
        return gradient

    every = [compiled(derived(f)), derived(compiled(f)), compiled(derived(compiled(f)))]
    b = tf.constant(np.linspace(-1.0, 2.0, 5, dtype=np.float32))
    for n in range(4):
        expected = derived(f)(b, tf.constant(n))
        for gradient in every:
            np.testing.assert_array_equal(gradient(b, tf.constant(n)), expected)


def replaced(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> Any:
    """By a loop that surely runs, by one that may, by a branch, and what is computed from it."""
    q = r = s = x
    for _ in tf.range(1):
        q = tf.tanh(v)
    for _ in tf.range(n):
        r = tf.sin(v)
    if n > 1:
        s = tf.cos(v) * r
    t = s * 2.0
    return q * r * s * t, [q, r, s, t]


def handed_on(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> Any:
    """Variables of nested loops and branches that are connected after some rounds, and no longer after others."""
    q, r, s = x, v, v
    for i in tf.range(4):
        if i == n:
            q, r = r, q
        for _ in tf.range(tf.maximum(i - n, 0)):
            s = r * s
            r = tf.sin(v)
    return q * r * s, [q, r, s, q * s]


def on_a_side(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> Any:
    """Results of a branch in a call, one of which is never connected."""
    @tf.function
    def helper(a: tf.Tensor, b: tf.Tensor) -> Any:
        if n > 0:
            return tf.sin(a), tf.cos(b), tf.tanh(b)
        return tf.exp(b), tf.sin(b), a
    q, r, s = helper(x, v)
    return q * r * s, [q, r, s, q * s, r * 2.0]


@pytest.mark.parametrize("f", [replaced, handed_on, on_a_side], ids=lambda f: f.__name__)
def test_sources_that_were_replaced(f: Function) -> None:
    """What is computed from nothing that is watched is unconnected, where only running tells that, too."""
    def gradient(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> Any:
        with tf.GradientTape() as around:
            around.watch(v)  # what another tape follows does not count
            with tf.GradientTape() as tape:
                tape.watch(x)
                y, sources = f(x, v, n)
            return tape.gradient(y, sources, unconnected_gradients="zero")

    traced = compiled(gradient)
    x, v = [tf.constant(np.linspace(0.1, 1.0, 5, dtype=np.float32) + k) for k in range(2)]
    tf.config.run_functions_eagerly(True)
    wanted = [gradient(x, v, tf.constant(n)) for n in range(4)]
    tf.config.run_functions_eagerly(False)
    for n in range(4):
        for a, b in zip(wanted[n], traced(x, v, tf.constant(n)), strict=True):
            assert a.numpy().tobytes() == b.numpy().tobytes(), n


def test_results_of_a_compiled_function_that_are_not_connected() -> None:
    helper = compiled(lambda a, b: (tf.sin(a), tf.cos(b)))
    x, v = tf.constant([1.0]), tf.constant([2.0])
    with tf.GradientTape(persistent=True) as around:
        around.watch(v)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            p, q = helper(x, v)
            z = p * q
    assert tape.gradient(z, q) is None and around.gradient(z, p) is None
    assert tape.gradient(z, p) == q and around.gradient(z, q) == p


def not_taken(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """What only sides that are not taken read, one of them within another, and what is infinite before them."""
    y, z, w = -v, v, v * 2.0
    large = tf.exp(x * 200.0)
    if n > 0:
        y = tf.sin(x) * -0.0
    if n > 1:
        z = large * x
        if n > 2:
            w = tf.tanh(x) * z
    return y * w + z * -0.0


def no_rounds(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """The same for loops."""
    y, z, w = -v, x, v * 2.0
    large = tf.exp(x * 200.0)
    for i in tf.range(2):
        for _ in tf.range(n):
            y = tf.sin(x) * -0.0
        if i < n - 1:
            w = y * tf.tanh(large)
    while tf.reduce_sum(z) < 5.0 * tf.cast(n, tf.float32):
        z = tf.square(v) + 4.0
    return -y * w + z * v


def in_some_rounds(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Variables of which the last rounds need nothing, or nothing but what is not watched."""
    y, z, w = x, v, tf.sin(x)
    for i in tf.range(3):
        z, y = y * -v, z
        if i == n:
            y = -v
            w = tf.exp(z)
        else:
            z = -w
    return y * -0.0 + z * v


def replaced_in_rounds(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    y, first = x, v * 2.0
    for _ in tf.range(n):
        y = first
    return y * v


@pytest.mark.parametrize("f", [not_taken, no_rounds, in_some_rounds, replaced_in_rounds], ids=lambda f: f.__name__)
def test_what_did_not_run_has_no_part(f: Function) -> None:
    """Signs of zeros are those of plain Python, and infinities before have no part, either."""
    def gradient(f: Function) -> Function:
        def gradient(x: tf.Tensor, v: tf.Tensor, n: tf.Tensor) -> Any:
            with tf.GradientTape() as tape:
                tape.watch([x, v])
                y = f(x, v, n)
            return tape.gradient(y, [x, v], unconnected_gradients="zero")
        return gradient

    x, v = [tf.constant(np.linspace(-1.0, 1.0, 5, dtype=np.float32) + k) for k in range(2)]
    for n in range(4):
        wanted = gradient(f)(x, v, tf.constant(n))
        for g in (gradient(compiled(f)), compiled(gradient(f)), compiled(gradient(compiled(f)))):
            for a, b in zip(wanted, g(x, v, tf.constant(n)), strict=True):
                np.testing.assert_array_equal(a, b)
                np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


def in_a_branch(x: tf.Tensor, y: tf.Tensor, n: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    if n > 0:
        x = tf.sin(x)
        y = x
    return x, y


def in_rounds(x: tf.Tensor, y: tf.Tensor, n: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    for _ in tf.range(n):
        x = tf.sin(x)
        y = x
    return x, y


def in_a_branch_of_a_round(x: tf.Tensor, y: tf.Tensor, n: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    for _ in tf.range(n):
        if x[0] > 0.1:
            x = tf.sin(x)
            y = x
    return x, y


in_a_helper = tf.function(in_a_branch)


@pytest.mark.parametrize("one_value", [in_a_branch, in_rounds, in_a_branch_of_a_round, in_a_helper],
                         ids=["branch", "rounds", "branch of a round", "helper"])
@pytest.mark.parametrize("used", [0, 1])
def test_of_two_names_one_decides_and_the_other_is_used(one_value: Function, used: int) -> None:
    """What only decides has no sum of cotangents that the other could share."""
    def program(x: tf.Tensor, y: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
        names = one_value(x, y, n)
        return names[used] * 2.0 if tf.reduce_max(names[1 - used]) > 0.1 else names[used] * 3.0

    def derived(f: Function) -> Function:
        def gradient(x: tf.Tensor, y: tf.Tensor, n: tf.Tensor) -> Any:
            with tf.GradientTape() as tape:
                tape.watch((x, y))
                z = f(x, y, n)
            return tape.gradient(z, (x, y), unconnected_gradients="zero")
        return gradient

    x, y = tf.constant([1.0, 2.0, 3.0]), tf.constant([1.0, 1.25, 1.5])
    for gradient in (derived(compiled(program)), compiled(derived(program))):
        for n in map(tf.constant, range(3)):
            np.testing.assert_array_equal(gradient(x, y, n), derived(program)(x, y, n))


def of_two(a: tf.Tensor, b: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return b, tf.cond(a[0] < a[1], lambda: b, lambda: a)


helper_of_two = compiled(of_two)


def called_on_a_side_of_a_side(y: tf.Tensor, helper: Function) -> tf.Tensor:
    v, w = tf.sigmoid(y), y
    if tf.reduce_max(y) > 0.1:
        if v[0] < v[1]:
            u, s = helper(v, y)
            v = u * tf.reduce_sum(s * s) * 0.1
        w = y - v
    return tf.reduce_sum(tf.where(w > y, w, y * 0.5)) + tf.reduce_sum(v * v)


def test_names_of_what_a_side_calls() -> None:
    """A side that calls a decorated helper, which gives back arguments, does the ops of the helper."""
    gradient = compiled(derived(lambda y: called_on_a_side_of_a_side(y, helper_of_two)))
    wanted = derived(lambda y: called_on_a_side_of_a_side(y, of_two))
    for seed in range(12):
        y = numbers(12, seed)
        assert_bits(gradient(y), wanted(y))


def doubled(b: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return b * b, b


helper_doubled = compiled(doubled)


def read_under_two_names(y: tf.Tensor, helper: Function) -> tf.Tensor:
    """No round changes what the helper gives back, which is what the loop begins with and reads itself."""
    v, u = helper(y)
    s, t = y, v
    for _ in tf.range(2):
        v = v * u[0]
        s = t
        t = tf.cos(y)
    return tf.reduce_sum(s * y) + tf.reduce_sum(v)


def test_of_an_operand_that_is_there_twice() -> None:
    wanted = derived(lambda y: read_under_two_names(y, doubled))
    for gradient in placements(lambda y: read_under_two_names(y, helper_doubled), 1):
        assert_bits(gradient(numbers(12)), wanted(numbers(12)))
