"""Cotangents add up in one order, wherever tapes and decorators stand: gradients of plain Python have the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from placements import Function, assert_bits, compiled, derived, numbers, placements

import twofold as tf


def branch(b: tf.Tensor) -> tf.Tensor:
    if tf.reduce_max(b) > 0.0:
        v = b + b
    else:
        v = b * b
    return tf.reduce_sum(tf.sin(v)) + tf.reduce_sum(tf.cos(3.0 * b))


def products(b: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.sin(b * b) * b) + tf.reduce_sum(tf.exp(b * b))


def loop(b: tf.Tensor) -> tf.Tensor:
    """What goes into the first round is read in every round and afterwards."""
    y = b
    for _ in tf.range(3):
        y = tf.sin(y) * b + tf.cos(y)
    return tf.reduce_sum(y * b) + tf.reduce_sum(tf.exp(b) * b)


def idle(b: tf.Tensor) -> tf.Tensor:
    y = b * 2.0
    for _ in tf.range(0):
        y = tf.sin(y) * b + tf.cos(y)
    return tf.reduce_sum(y * b) + tf.reduce_sum(tf.exp(b) * b)


def two_names(b: tf.Tensor) -> tf.Tensor:
    """Two carried values that are one tensor in the first round, read by a branch of each round."""
    u = v = b
    for _ in tf.range(3):
        w = tf.cond(tf.reduce_sum(b) > 0.0, lambda u=u, v=v: tf.sin(u) * v, lambda u=u, v=v: u * tf.cos(v))
        u, v = u * v + b, w
    return tf.reduce_sum(u * b) + tf.reduce_sum(v * tf.sin(b))


def mapped(b: tf.Tensor) -> tf.Tensor:
    rows = tf.map_fn(lambda r: tf.sin(r) * r + tf.reduce_sum(b), tf.reshape(b, [10, -1]))
    return tf.reduce_sum(rows * 3.0) + tf.reduce_sum(tf.exp(b) * b)


def scanned(b: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.scan(lambda s, e: tf.sin(s) * e + b[0], b) * b) + tf.reduce_sum(tf.exp(b) * b)


@pytest.mark.parametrize("f", [branch, products, loop, idle, mapped, scanned])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_first_order(f: Function, sign: float) -> None:
    b = numbers() * sign
    wanted = derived(f)(b)
    for g in (*placements(f, 1), derived(compiled(f), persistent=True)):
        assert_bits(g(b), wanted)


def passed_on(b: tf.Tensor) -> tf.Tensor:
    """A side gives back what goes on under its old name."""
    y = b
    if tf.reduce_sum(b) < 1e6:
        z = tf.sin(b)
    else:
        z, y = b, b * 2.0
    return tf.reduce_sum(y * tf.exp(b) + b * y * z + tf.cos(b) * tf.sin(y))


def powers(b: tf.Tensor) -> tf.Tensor:
    u, v = tf.sin(b), b
    for _ in tf.range(3):
        u, v = v * tf.sin(u), tf.tanh(u) * b
    return tf.reduce_sum(u * v) + tf.reduce_sum(tf.exp(b) * b)


def nested(b: tf.Tensor) -> tf.Tensor:
    y = tf.sin(b)
    for _ in tf.range(2):
        if tf.reduce_sum(y) > 0.0:
            z = y
            for _ in tf.range(2):
                z = tf.tanh(z) * y
            y = z * b + y
        else:
            y = y * y + b
    return tf.reduce_sum(y * b)


def assert_derivatives_have_the_same_bits(f: Function) -> None:
    """First and second ones."""
    b = numbers()
    for order in (1, 2):
        wanted = derived(f, order)(b)
        for g in placements(f, order):
            assert_bits(g(b), wanted)


@pytest.mark.parametrize("f", [passed_on, powers, nested])
def test_names_and_rounds(f: Function) -> None:
    assert_derivatives_have_the_same_bits(f)


def replaced(b: tf.Tensor) -> tf.Tensor:
    """A variable of a loop of which only the last round's value counts."""
    v = tf.sin(b)
    for _ in tf.range(3):
        v = tf.sigmoid(b)
    return tf.reduce_sum(v * v)


def added(b: tf.Tensor) -> tf.Tensor:
    """What no round changes gets the cotangent of a round's result as it is, first in the last round."""
    s, e, y = b, tf.cos(b), tf.sin(b)
    for _ in tf.range(3):
        s = s * e + y
    return tf.reduce_sum(s * s * b)


def captured(b: tf.Tensor) -> tf.Tensor:
    """The tensor whose slices are taken is used in each round as a whole, too."""
    rows = tf.reshape(b, [10, -1])
    return tf.reduce_sum(tf.map_fn(lambda r: r * tf.reduce_sum(tf.sin(rows)) + rows[0], rows) * rows)


def given_back(b: tf.Tensor) -> tf.Tensor:
    """A map gives what it did not compute."""
    y = tf.sin(b)
    return tf.reduce_sum(tf.map_fn(lambda r: y, tf.reshape(b, [10, -1])) * tf.reshape(b, [10, -1])[:, :1] * b)


@pytest.mark.parametrize("f", [captured, given_back, scanned, mapped])
def test_slices_are_values_of_their_own(f: Function) -> None:
    assert_derivatives_have_the_same_bits(f)


def test_a_cotangent_that_is_handed_on_begins_a_sum_of_its_own() -> None:
    """It is used by other ops, too, and gradients of the gradient tell these uses from those of the sum."""
    def program(b: tf.Tensor) -> tf.Tensor:
        x, y = tf.sin(b), tf.cos(b)
        return tf.reduce_sum(tf.square(x * b + y) * y + y * b)
    assert_derivatives_have_the_same_bits(program)


@pytest.mark.parametrize("f", [branch, products, mapped, scanned, loop, replaced, passed_on, powers, nested, added])
@pytest.mark.parametrize("helper", [False, True])
def test_second_order(f: Function, helper: bool) -> None:
    """Also where a tape differentiates what a compiled function computed by a tape of its own, or by a helper's."""
    b = numbers()
    wanted = derived(f, 2)(b)
    for g in [] if helper else placements(f, 2):
        assert_bits(g(b), wanted)
    gradient = compiled(derived(f))
    outer = compiled(lambda b: gradient(b)) if helper else gradient
    before = outer(b)
    assert_bits(derived(outer)(b), wanted)
    assert_bits(compiled(derived(outer))(b), wanted)
    assert_bits(derived(outer.get_concrete_function(b))(b), wanted)
    assert_bits(outer(b), before)


def test_gradients_within_regions_are_differentiated_again() -> None:
    """The gradient of a loop, taken within a branch or a round that a tape of the same function follows."""
    def of_a_loop(b: tf.Tensor) -> tf.Tensor:
        return derived(loop)(b)

    def in_a_branch(b: tf.Tensor) -> tf.Tensor:
        v = of_a_loop(b) if tf.reduce_sum(b) < 1e6 else b
        return tf.reduce_sum(v * b)

    def in_rounds(b: tf.Tensor) -> tf.Tensor:
        v = b
        for _ in tf.range(2):
            v = v * 0.1 * of_a_loop(b)
        return tf.reduce_sum(v * b)
    b = numbers()
    for f in (in_a_branch, in_rounds):
        assert_bits(compiled(derived(f))(b), derived(f)(b))
        assert_bits(derived(compiled(f))(b), derived(f)(b))


def test_concrete_functions_in_functions_that_a_tape_follows() -> None:
    b = numbers()
    concrete = compiled(derived(loop)).get_concrete_function(b)
    outer = compiled(lambda b: concrete(b))
    outer(b)
    for _ in range(3):
        assert_bits(derived(outer)(b), derived(loop, 2)(b))
    assert outer.experimental_get_tracing_count() == 2


def test_two_names_of_one_tensor() -> None:
    """The gradient of one of them was lost."""
    b = numbers()
    wanted = derived(two_names)(b)
    for derivative in (compiled(derived(two_names))(b), derived(compiled(two_names))(b)):
        np.testing.assert_allclose(derivative, wanted, rtol=1e-5, atol=1e-5)


HELPERS: list[Function] = [
    lambda b: tf.sin(b) * b, lambda b: tf.where(b > 0.0, b, b * b), lambda b: b,
    lambda b: tf.stop_gradient(b) * b, lambda b: tf.cond(b[0] > 0.0, lambda: b * b, lambda: tf.sin(b) * b)]


@pytest.mark.parametrize("helper", HELPERS)
@pytest.mark.parametrize("order", [1, 2])
def test_decorated_helpers(helper: Function, order: int) -> None:
    """In a plain function under plain tapes: its gradient continues the sums so far."""
    def program(h: Function) -> Function:
        def f(b: tf.Tensor) -> tf.Tensor:
            return tf.reduce_sum(h(b) * b + tf.cos(b)) + tf.reduce_sum(h(h(b)) * tf.exp(b))
        return f
    b = numbers()
    assert_bits(derived(program(compiled(helper)), order)(b), derived(program(helper), order)(b))


def test_one_tensor_for_two_arguments() -> None:
    def helper(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        return tf.sin(a) * b + a * tf.cos(b) * a
    b = numbers()
    fast = compiled(helper)
    assert_bits(derived(lambda b: fast(b, b))(b), derived(lambda b: helper(b, b))(b))
    assert_bits(derived(compiled(lambda b: fast(b, b)))(b), derived(lambda b: helper(b, b))(b))


def test_a_result_that_is_an_argument() -> None:
    def helper(a: tf.Tensor) -> Any:
        return a, tf.sin(a)
    fast = compiled(helper)

    def program(h: Function) -> Function:
        def f(b: tf.Tensor) -> tf.Tensor:
            same, other = h(b)
            return tf.reduce_sum(same * other + b * same + tf.exp(b) * same)
        return f
    b = numbers()
    assert_bits(derived(program(fast))(b), derived(program(helper))(b))


class TestAssignments:
    """What was assigned to a variable carries no gradient to what was assigned."""

    @staticmethod
    def placements(make: Callable[[], tuple[Function, Any]]) -> list[list[Any]]:
        """The gradients by the argument and the variable, in all placements of the tape and the decorator."""
        def taped(f: Function, w: Any) -> Function:
            def gradient(a: tf.Tensor) -> Any:
                with tf.GradientTape() as tape:
                    tape.watch(a)
                    y = f(a)
                return tape.gradient(y, [a, w], unconnected_gradients="zero")
            return gradient
        derivatives = []
        for inside in (lambda f: f, compiled):
            for outside in (lambda f: f, compiled):
                f, w = make()
                derivatives.append(outside(taped(inside(f), w))(numbers(20)))
        return derivatives

    def check(self, make: Callable[[], tuple[Function, Any]]) -> list[Any]:
        plain, *others = self.placements(make)
        for other in others:
            assert_bits(other, plain)
        return plain

    def test_read_afterwards(self) -> None:
        def make() -> tuple[Function, Any]:
            w = tf.Variable(tf.ones([20]))

            def f(a: tf.Tensor) -> tf.Tensor:
                w.assign_add(-0.5 * a)
                return a + w
            return f, w
        by_a, by_w = self.check(make)
        assert by_a.numpy().tolist() == by_w.numpy().tolist() == [1.0] * 20

    def test_read_before_and_afterwards(self) -> None:
        def make() -> tuple[Function, Any]:
            w = tf.Variable(tf.ones([20]))

            def f(a: tf.Tensor) -> tf.Tensor:
                before = tf.sin(w) * a + w
                w.assign(tf.cos(a) * w)
                after = w * w * a
                w.assign_sub(a)
                return before + after + tf.exp(w * 0.1) * tf.square(w)
            return f, w
        self.check(make)

    def test_in_branches_and_loops(self) -> None:
        def make() -> tuple[Function, Any]:
            w = tf.Variable(tf.ones([20]))

            def f(a: tf.Tensor) -> tf.Tensor:
                total = w * a
                if tf.reduce_sum(a) > -100.0:
                    w.assign(a * 0.5)
                    total = total + w * w
                for _ in tf.range(3):
                    total = total + tf.sin(w) * a
                    w.assign_add(0.1 * total)
                return total * tf.square(w)
            return f, w
        self.check(make)

    def test_after_the_call(self) -> None:
        """What a compiled function assigned is what is read afterwards."""
        w = tf.Variable(tf.ones([20]))
        a = numbers(20)
        f = compiled(lambda a: w.assign(a * 2.0).value() * 3.0)
        with tf.GradientTape() as tape:
            tape.watch(a)
            y = f(a) + w * a
        by_a, by_w = tape.gradient(y, [a, w])
        assert_bits(by_a, 2.0 * a)
        assert_bits(by_w, 3.0 + a)


@pytest.mark.parametrize("pick", [
    lambda p, a, w: tf.cond(p, lambda: w, lambda: a), lambda p, a, w: tf.cond(p, lambda: [w, a], lambda: [a, w])[0],
    lambda p, a, w: tf.case([(p, lambda: w)], default=lambda: a),
    lambda p, a, w: tf.switch_case(tf.cast(p, tf.int32), [lambda: a, lambda: w])])
def test_a_function_that_gives_a_variable_gives_a_value_of_its_own(pick: Function) -> None:
    def make() -> tuple[Function, Any]:
        w = tf.Variable(numbers(20, 1))

        def f(a: tf.Tensor) -> tf.Tensor:
            v = pick(tf.reduce_max(w) > 0.0, a, w)
            return tf.sin(v) * v + tf.cos(w) * w * v + tf.exp(v * 0.1) * a
        return f, w
    TestAssignments().check(make)


class TestLoopsThatHandNothingOn:
    """A loop whose rounds have no gradient gives, without rounds, what went in, with its gradient."""

    @staticmethod
    def stopped(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
        v = b
        for _ in tf.range(n):
            v = tf.stop_gradient(v)
        return v

    @staticmethod
    def of_no_round(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
        v = b
        for _ in tf.range(0):
            v = tf.stop_gradient(v)
        return v if n == 0 else tf.stop_gradient(v)

    @staticmethod
    def conditional(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
        v, i = tf.sin(b), 0
        while i < n:
            v, i = tf.ones_like(v), i + 1
        return v

    @staticmethod
    def data_dependent(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
        v = b * 0.5
        m = tf.cast(n, tf.float32)
        while m > 0.5:
            v, m = tf.stop_gradient(v * b), m * 0.5
        return v

    @staticmethod
    def exchanged(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
        v, w = b, b * 3.0
        for _ in tf.range(n):
            v, w = tf.stop_gradient(w), tf.stop_gradient(v)
        return v * w

    @staticmethod
    def nested(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
        v = b
        for _ in tf.range(2):
            for _ in tf.range(n):
                v = tf.stop_gradient(v)
            v = v * 2.0
        return v

    @pytest.mark.parametrize("name, order", [
        ("stopped", 1), ("of_no_round", 1), ("conditional", 1), ("data_dependent", 1), ("exchanged", 1), ("nested", 1),
        ("stopped", 2)])
    def test_placements(self, name: str, order: int) -> None:
        """How many rounds there are is known only when the loop runs, but for `of_no_round`."""
        carried, b = getattr(self, name), numbers(20)

        def f(b: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
            return tf.reduce_sum(carried(b, n) * b * b)
        every = placements(f, order)
        for n in map(tf.constant, (0, 1, 3)):
            wanted = derived(f, order)(b, n)
            for h in every:
                assert_bits(h(b, n), wanted)

    @pytest.mark.parametrize("rounds, factor", [(0, 2.0), (2, 1.0)])
    def test_values(self, rounds: int, factor: float) -> None:
        """By hand: the gradient of b * b, or of b times a constant."""
        b = numbers(20)
        f = compiled(lambda b, n: tf.reduce_sum(self.stopped(b, n) * b))
        derivative = compiled(derived(lambda b: f(b, tf.constant(rounds))))(b)
        np.testing.assert_array_equal(derivative.numpy(), factor * b.numpy())

    def test_known_rounds_stay_unconnected(self) -> None:
        f = compiled(lambda b: tf.reduce_sum(self.stopped(b, 3)))
        assert derived(f)(numbers()) is None


class TestOneCotangentForResults:
    """Results of a construct that are added up have one tensor as their cotangent."""

    @staticmethod
    def branch(b: tf.Tensor) -> tf.Tensor:
        if tf.reduce_max(b) > 0.0:
            v, w = tf.exp(b), tf.sin(b)
        else:
            v, w = b, tf.cos(b) * b
        return v + w

    @staticmethod
    def handed_back(b: tf.Tensor) -> tf.Tensor:
        if tf.reduce_max(b) > 0.0:
            v, w, u = tf.tanh(b), b, tf.sin(b) * b
        else:
            v, w, u = b * 2.0, tf.cos(b) * b, b
        return v + w + u

    @staticmethod
    def loop(b: tf.Tensor) -> tf.Tensor:
        v, w = b, tf.cos(b)
        for _ in tf.range(2):
            v, w = tf.sin(v) * w, tf.tanh(w)
        return v + w

    @staticmethod
    def call(b: tf.Tensor) -> tf.Tensor:
        v, w = tf.function(lambda b: (tf.sin(b), b * b))(b)
        return v + w

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    @pytest.mark.parametrize("name", ["branch", "handed_back", "loop", "call"])
    def test_placements(self, name: str, sign: float) -> None:
        f, b = getattr(self, name), tf.abs(numbers(20)) * sign
        wanted = derived(f)(b)
        for g in placements(f, 1):
            assert_bits(g(b), wanted)
