"""Gradients through branches, loops, calls and custom gradients: of graphs, of tapes in a trace, of compiled functions.

Oracles: central differences in float64, and the eager tape over the same Python function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from gradients import check_orders, same

import twofold as tf
from twofold.ir.autodiff import vjp
from twofold.ir.verify import verify
from twofold.tracer.function import trace

Tensors = list[Any]


def f64(value: Any) -> tf.Tensor:
    return tf.constant(value, tf.float64)


def chosen(x: Any) -> Tensors:
    return [tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sin(x) * x, lambda: tf.exp(x))]


def chosen_of_two(x: Any, y: Any) -> Tensors:
    """Both sides take one operand more than the other; one operand goes on outside."""
    return [tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sin(x) * y, lambda: tf.exp(x)) * y]


def counted(x: Any) -> Tensors:
    return list(tf.while_loop(lambda i, v: i < 5, lambda i, v: (i + 1, tf.sin(v) * x), [tf.constant(0), x]))


def until(x: Any, w: Any) -> Tensors:
    """A loop that values end, over a captured matrix."""
    def body(i: Any, v: Any) -> Any:
        return i + 1, tf.matmul(v, w) + tf.square(v)
    return [tf.while_loop(lambda i, v: tf.reduce_sum(v) < 100.0, body, [tf.constant(0), x])[1] * 2]


def newton(a: Any) -> Tensors:
    """Square roots, to a tolerance: the number of rounds depends on the values."""
    def body(x: Any) -> Any:
        return ((x + a / x) / 2,)
    return list(tf.while_loop(lambda x: tf.reduce_max(tf.abs(x * x - a)) > 1e-12, body, [tf.identity(a)]))


def nested(x: Any) -> Tensors:
    """A loop with a loop and a branch with a loop in it."""
    def outer(i: Any, v: Any) -> Any:
        u = tf.while_loop(lambda j, u: j < i, lambda j, u: (j + 1, tf.sin(u) + x), [tf.constant(0), v])[1]
        return i + 1, tf.cond(tf.reduce_sum(u) > 0, lambda: u * x, lambda: tf.while_loop(
            lambda k, z: k < 2, lambda k, z: (k + 1, tf.exp(-z * z)), [tf.constant(0), u])[1])
    return list(tf.while_loop(lambda i, v: i < 4, outer, [tf.constant(0), tf.identity(x)]))


def growing(x: Any) -> Tensors:
    """A carried value that is longer in each round."""
    def body(i: Any, v: Any) -> Any:
        return i + 1, tf.concat([v, tf.sin(v[-1:]) * x[:1]], 0)
    return [tf.square(tf.while_loop(lambda i, v: i < 4, body, [tf.constant(0), x],
                                    shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])])[1])]


def selected(x: Any) -> Tensors:
    """Sizes that values decide, known inside of a side only."""
    return [tf.cond(tf.reduce_sum(x) > 0, lambda: tf.reduce_sum(tf.square(tf.boolean_mask(tf.exp(x), x > 0.15))),
                    lambda: tf.reduce_sum(x * x * x))]


def shuffled(x: Any, y: Any) -> Tensors:
    """Carried values that change places; a result that nothing depends on."""
    return list(tf.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, b, tf.sin(a) * b),
                              [tf.constant(0), tf.identity(x), tf.identity(y)])[1:])


def never(x: Any) -> Tensors:
    return list(tf.while_loop(lambda v: tf.reduce_sum(v) < -100.0, lambda v: (tf.sin(v),), [tf.identity(x)]))


def broken_off(x: Any) -> Tensors:
    """`break` and `continue`, as conversion writes them: carried flags."""
    def body(i: Any, done: Any, v: Any) -> Any:
        done = tf.reduce_sum(v) > 3.0
        skip = tf.equal(i % 2, 1)
        return i + 1, done, tf.cond(tf.logical_or(done, skip), lambda: v, lambda: v * v + x)
    return list(tf.while_loop(lambda i, done, v: tf.logical_and(i < 8, tf.logical_not(done)), body,
                              [tf.constant(0), tf.constant(False), tf.identity(x)]))


@tf.custom_gradient
def softplus(x: Any) -> Any:
    e = tf.exp(x)
    return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))


@tf.custom_gradient
def odd(x: Any, y: Any) -> Any:
    return x * y, lambda dy: (dy * y * 0.5 * x, dy * tf.sin(x))


def custom(x: Any) -> Tensors:
    return [tf.cond(tf.reduce_sum(x) > 0, lambda: softplus(x) * x, lambda: odd(x, x)) + odd(x, x)]


def custom_loop(x: Any, y: Any) -> Tensors:
    return list(tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, odd(v, y) + softplus(v)),
                              [tf.constant(0), tf.identity(x)]))


def recomputed(x: Any) -> Tensors:
    f = tf.recompute_grad(lambda x: tf.exp(tf.sin(x)) * x)
    return [tf.cond(tf.reduce_sum(x) > 0, lambda: f(x), lambda: tf.grad_pass_through(tf.round)(x) * x)]


TRUE = [  # gradients that are derivatives
    (chosen, [f64([1.0, 2.0])]), (chosen, [f64([-1.0, -2.0])]),
    (chosen_of_two, [f64([1.0, 2.0]), f64([3.0, 4.0])]), (chosen_of_two, [f64([-1.0, -2.0]), f64([3.0, 4.0])]),
    (counted, [f64([0.3, 0.5])]), (until, [f64(np.full((2, 2), 0.3)), f64(np.eye(2) * 0.9)]),
    (newton, [f64([2.0, 3.0])]), (nested, [f64([0.3, 0.5])]), (nested, [f64([-0.3, -0.5])]),
    (growing, [f64([0.3, 0.5])]),
    (selected, [f64([0.1, 0.2, 0.3])]), (selected, [f64([-0.1, -0.2, 0.1])]),
    (shuffled, [f64([0.3]), f64([0.7])]), (never, [f64([0.3])]), (broken_off, [f64([0.3, 0.9])]),
    (recomputed, [f64([0.3, 0.6])])]
OTHER = [(custom, [f64([1.0, 2.0])]), (custom, [f64([-1.0, -2.0])]),
         (custom_loop, [f64([1.0, 2.0]), f64([0.3, 0.4])]), (recomputed, [f64([-0.3, -1.6])])]


def named(cases: Sequence[tuple[Callable[..., Any], Any]]) -> list[Any]:
    return [pytest.param(f, given, id=f"{f.__name__}-{n}") for n, (f, given) in enumerate(cases)]


def open_specs(given: Sequence[Any]) -> list[tf.TensorSpec]:
    return [tf.TensorSpec([None] * len(x.dims), x.dtype) for x in given]


def derived(f: Callable[..., Any], order: int) -> Callable[..., Any]:
    """The gradient of the sum of all results, taken `order` times by tapes."""
    def gradient(*xs: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(xs)
            results = f(*xs)
        return tape.gradient(results, list(xs))
    return derived(gradient, order - 1) if order else f


@pytest.mark.parametrize("sizes", ["known", "unknown"])
@pytest.mark.parametrize(("f", "given"), named(TRUE))
def test_graph(f: Callable[..., Any], given: list[Any], sizes: str) -> None:
    check_orders(f, given, open_specs(given) if sizes == "unknown" else None)


def agree(results: Sequence[Any], wanted: Sequence[Any], exact: bool) -> None:
    """Bits, or nearly so; what eager execution finds unconnected may be zero: a loop may run no round."""
    for a, b in zip(results, wanted, strict=True):
        if exact:
            assert same(a, b), f"{a} is not {b}"
        else:
            np.testing.assert_allclose(a, np.zeros_like(a) if b is None else b, rtol=1e-11)


@pytest.mark.parametrize(("order", "sizes"), [(1, "known"), (2, "unknown")])
@pytest.mark.parametrize(("f", "given"), named(TRUE + OTHER))
def test_tape_in_trace(f: Callable[..., Any], given: list[Any], order: int, sizes: str) -> None:
    g = derived(f, order)
    wanted = g(*given)
    specs = open_specs(given) if sizes == "unknown" else [tf.TensorSpec(x.shape, x.dtype) for x in given]
    verify(trace(lambda *xs: g(*xs), specs).graph)
    compiled = tf.function(g, input_signature=specs, fallback=False)
    agree(compiled(*given), wanted, exact=order == 1 and f is not custom)  # there one sum is made elsewhere


@pytest.mark.parametrize(("order", "sizes"), [(1, "known"), (2, "unknown")])
@pytest.mark.parametrize(("f", "given"), named(TRUE + OTHER))
def test_tape_over_function(f: Callable[..., Any], given: list[Any], order: int, sizes: str) -> None:
    specs = open_specs(given) if sizes == "unknown" else None
    compiled = tf.function(f, input_signature=specs, fallback=False)
    agree(derived(compiled, order)(*given), derived(f, order)(*given), exact=order == 1)


def test_third_order() -> None:
    x = f64([0.3, 0.5])
    for f in (chosen, counted):
        wanted = derived(f, 3)(x)
        agree(derived(tf.function(f), 3)(x), wanted, exact=False)
        agree(tf.function(derived(f, 3))(x), wanted, exact=False)


def test_order_split_between_function_and_tape() -> None:
    x = f64([0.3, 0.5])
    for f in (chosen, counted, nested):
        agree(derived(tf.function(derived(f, 1)), 1)(x), derived(f, 2)(x), exact=False)


def doubling(x: Any) -> Tensors:
    """A loop whose value has twice as many elements in each round, which a branch makes in two ways."""
    def body(i: Any, v: Any) -> Any:
        longer = tf.cond(tf.reduce_sum(v) > 1.0, lambda: tf.reshape(tf.reshape(v, [2, -1]) * x[1], [-1]),
                         lambda: v * x[0])
        return i + 1, tf.concat([v, longer], 0)
    return [tf.square(tf.while_loop(lambda i, v: i < 3, body, [tf.constant(0), x],
                                    shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])])[1])]


def masked(x: Any) -> Tensors:
    """A loop whose value grows by as many elements as are positive."""
    def body(i: Any, v: Any) -> Any:
        return i + 1, tf.concat([v, tf.boolean_mask(v, v > 0.0) * x[0]], 0)
    return [tf.sin(tf.while_loop(lambda i, v: i < 2, body, [tf.constant(0), x],
                                 shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])])[1])]


@pytest.mark.parametrize("f", [growing, doubling, masked])
def test_gradients_of_gradients_of_loops_that_grow(f: Callable[..., Any]) -> None:
    """Sizes of loops get names of their own where a function is written into another, with what was assumed of them."""
    x = f64([0.6, 0.5, 0.3, -0.2])
    wanted = derived(f, 2)(x)
    inner, whole = tf.function(f, fallback=False), tf.function(derived(f, 1), fallback=False)
    within = tf.function(derived(inner, 1), fallback=False)
    for g in (derived(whole, 1), tf.function(derived(whole, 1), fallback=False),
              tf.function(derived(within, 1), fallback=False)):
        agree(g(x), wanted, exact=False)


def test_unconnected_is_none() -> None:
    @tf.function
    def f(x: Any, y: Any) -> Any:
        return tf.sin(x), tf.cos(y), tf.stop_gradient(x) * 2.0

    x, y = f64(1.0), f64(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        a, b, c = f(x, y)
    assert [g is None for g in tape.gradient(a, [x, y])] == [False, True]
    assert [g is None for g in tape.gradient(b, [x, y])] == [True, False]
    assert tape.gradient(c, [x, y]) == [None, None]
    np.testing.assert_array_equal(tape.gradient(a, x), np.cos(1.0))


def test_variables_and_what_is_captured() -> None:
    v, w, c = tf.Variable(f64([1.0, 2.0])), tf.Variable(f64(0.5)), f64([3.0, 4.0])

    def f(x: Any) -> Any:
        w.assign_add(1.0)
        return tf.cond(tf.reduce_sum(x) > 0, lambda: v * x * w, lambda: v + c) * c

    compiled = tf.function(f)
    for x in (f64([1.0, 2.0]), f64([-1.0, -2.0])):
        gradients = []
        for g in (f, compiled):
            w.assign(0.5)
            with tf.GradientTape() as tape:
                tape.watch([x, c])
                y = g(x)
            gradients.append(tape.gradient(y, [x, v, w, c]))
            assert float(w) == 1.5
        # one side has no part of w: eager execution has no gradient then, the compiled branch a gradient of 0
        for a, b in zip(*gradients, strict=True):
            np.testing.assert_array_equal(0.0 if a is None else a, b)


def test_effects_happen_once() -> None:
    calls = []

    def seen(x: Any) -> Any:
        calls.append(1)
        return x

    @tf.function
    def f(x: Any) -> Any:
        def body(i: Any, v: Any) -> Any:
            noise = tf.random.normal([2], dtype=tf.float64)
            tf.numpy_function(seen, [i], tf.int32)
            return i + 1, tf.cond(i > 0, lambda: v * noise, lambda: v * tf.random.normal([2], dtype=tf.float64))
        return tf.while_loop(lambda i, v: i < 3, body, [tf.constant(0), x])[1]

    x = f64([1.0, 2.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        g = tape.gradient(y, x)
    assert len(calls) == 3
    np.testing.assert_allclose(g * x, y, rtol=1e-14)  # the draws are the same: y is linear in x
    assert outer.gradient(g, x) is None or not np.any(outer.gradient(g, x))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(tape.gradient(y, x) * x, y, rtol=1e-14)
    assert len(calls) == 6


def test_gradient_that_fails_does_so_when_it_is_asked_for() -> None:
    @tf.custom_gradient
    def f(x: Any) -> Any:
        def grad(dy: Any) -> Any:
            raise NotImplementedError("no gradient here")
        return x * 2, grad

    compiled = tf.function(lambda x: f(x))
    x = f64(3.0)
    assert float(compiled(x)) == 6.0
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(NotImplementedError, match="no gradient here"):
            tape.gradient(compiled(x), x)


def test_accumulators_agree_with_eager() -> None:
    x, t = f64([0.3, 0.5]), f64([1.0, -2.0])
    for f in (chosen, counted, nested, custom):
        tangents = []
        for g in (f, tf.function(f)):
            with tf.autodiff.ForwardAccumulator(x, t) as acc:
                y = g(x)
            tangents.append(acc.jvp(y[-1]))
        np.testing.assert_allclose(tangents[0], tangents[1], rtol=1e-12)


def test_calls_are_differentiated_as_what_they_run() -> None:
    inner = tf.function(lambda x: tf.sin(x) * x)

    def f(x: Any) -> Any:
        for _ in range(3):
            x = inner(x)
        return [x]
    check_orders(f, [f64([0.4, 0.9])])
    graph = trace(f, [tf.TensorSpec([2], tf.float64)]).graph
    both = vjp(graph, [True])
    assert [n.op.name for n in both.forward.nodes] == ["sin", "multiply"] * 3
    assert not any(n.regions for n in both.backward().graph.nodes)


def test_known_trips_have_stacks_of_full_length() -> None:
    def f(x: Any) -> Any:
        return [tf.while_loop(lambda i, v: i < 7, lambda i, v: (i + 1, tf.sin(v)), [tf.constant(0), x],
                              maximum_iterations=7)[1]]
    graph = vjp(trace(f, [tf.TensorSpec([3], tf.float64)]).graph, [True]).forward
    loop = next(n for n in graph.nodes if n.op.name == "while")
    assert (21,) in [v.dims for v in loop.outputs]
    check_orders(f, [f64([0.4, 0.9, 1.2])])
