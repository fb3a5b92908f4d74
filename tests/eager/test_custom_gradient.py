"""`tf.custom_gradient`, `tf.recompute_grad`, `tf.grad_pass_through` and `tf.stop_gradient`."""

from __future__ import annotations

import gc
import inspect
import traceback
import tracemalloc
from typing import Any

import numpy as np
import pytest
from derivatives import CLOSE, f64, jacobian

import twofold as tf
from twofold.runtime import native


def derivative(f: Any, x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


@tf.custom_gradient
def log1pexp(x: Any) -> Any:
    """log(1 + exp(x)), stable."""
    e = tf.exp(x)
    return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))


@tf.custom_gradient
def clip_gradient_by_norm(x: Any, norm: Any) -> Any:
    y = tf.identity(x)

    def grad_fn(dresult: Any) -> Any:
        return [tf.clip_by_norm(dresult, norm), None]
    return y, grad_fn


# -- custom_gradient --------------------------------------------------------------------------------
def test_replaces_the_gradient() -> None:
    assert float(derivative(log1pexp, tf.constant(0.0))) == 0.5
    assert float(derivative(log1pexp, tf.constant(100.0))) == 1.0


def test_outside_tapes_it_is_a_plain_function() -> None:
    assert float(log1pexp(0.0)) == pytest.approx(np.log(2.0), rel=1e-6)
    assert (log1pexp.__name__, log1pexp.__doc__) == ("log1pexp", "log(1 + exp(x)), stable.")
    assert list(inspect.signature(log1pexp).parameters) == ["x"]


def test_higher_orders_differentiate_the_gradient_function() -> None:
    def slope(x: Any) -> Any:
        return derivative(log1pexp, x)

    def bend(x: Any) -> Any:
        return derivative(slope, x)
    s = 1 / (1 + np.exp(-0.7))
    np.testing.assert_allclose(slope(f64(0.7)), s, rtol=1e-14)
    np.testing.assert_allclose(bend(f64(0.7)), s * (1 - s), rtol=1e-13)
    np.testing.assert_allclose(derivative(bend, f64(0.7)), s * (1 - s) * (1 - 2 * s), rtol=1e-12)


def test_arguments_that_are_numbers() -> None:
    v = tf.Variable([3.0, 4.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(clip_gradient_by_norm(v * 2.0, 0.5) * [3.0, 4.0])
    np.testing.assert_allclose(tape.gradient(loss, v), [0.6, 0.8], rtol=1e-6)


def test_a_variable_may_be_an_argument() -> None:
    v = tf.Variable(100.0)
    with tf.GradientTape() as tape:
        y = log1pexp(v)
    assert float(tape.gradient(y, v)) == 1.0


@tf.custom_gradient
def scaled(x: Any, *, scale: Any = None, offset: Any = None, mode: str = "up") -> Any:
    def grad_fn(dy: Any) -> Any:
        return dy * 10.0, dy * 20.0
    return (x * scale if mode == "up" else x / scale), grad_fn


def test_keyword_tensors_get_gradients() -> None:
    x, s = tf.constant(2.0), tf.constant(3.0)
    for scale in (s, tf.Variable(3.0)):
        with tf.GradientTape() as tape:
            tape.watch([x, scale])
            y = scaled(x, mode="up", scale=scale)
        assert float(y) == 6.0
        assert [float(g) for g in tape.gradient(y, [x, scale])] == [10.0, 20.0]


def test_keyword_gradients_follow_the_signature() -> None:
    @tf.custom_gradient
    def f(x: Any, a: Any, b: Any) -> Any:
        return x + a + b, lambda dy: (dy, dy * 2.0, dy * 3.0)
    x, a, b = (tf.constant(v) for v in (1.0, 2.0, 3.0))
    for call in (lambda: f(x, a, b), lambda: f(x, b=b, a=a), lambda: f(b=b, a=a, x=x)):
        with tf.GradientTape() as tape:
            tape.watch([x, a, b])
            y = call()
        assert [float(g) for g in tape.gradient(y, [x, a, b])] == [1.0, 2.0, 3.0]


def test_keywords_without_gradients_may_have_an_entry() -> None:
    x = tf.constant([3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = clip_gradient_by_norm(x=x, norm=1.0)
    np.testing.assert_allclose(tape.gradient(y, x), [2 ** -0.5] * 2, rtol=1e-6)


def test_structures_of_arguments_and_results() -> None:
    @tf.custom_gradient
    def f(pair: Any, x: Any) -> Any:
        a, b = pair["a"], pair["b"]

        def grad_fn(dproduct: Any, dsum: Any) -> Any:  # in the order of the sorted keys
            return {"a": dsum * 1.0, "b": dproduct * 10.0}, dsum + dproduct
        return {"sum": a + b, "product": [a * b * x]}, grad_fn
    a, b, x = (tf.constant(v) for v in (2.0, 3.0, 5.0))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([a, b, x])
        results = f({"a": a, "b": b}, x)
    assert float(results["sum"]) == 5.0 and float(results["product"][0]) == 30.0
    assert [float(g) for g in tape.gradient(results, [a, b, x])] == [1.0, 10.0, 2.0]
    # A result that the target does not depend on gives zeros.
    assert [float(g) for g in tape.gradient(results["sum"], [a, b, x])] == [1.0, 0.0, 1.0]


def test_one_gradient_may_be_none_a_number_or_an_array() -> None:
    @tf.custom_gradient
    def f(x: Any, y: Any, z: Any) -> Any:
        return x * y * z, lambda dy: [None, 7.0, np.float64(8.0)]
    x, y, z = (tf.constant(v) for v in (1.0, 2.0, 3.0))
    with tf.GradientTape() as tape:
        tape.watch([x, y, z])
        result = f(x, y, z)
    dx, dy, dz = tape.gradient(result, [x, y, z])
    assert dx is None
    assert (float(dy), dy.dtype) == (7.0, tf.float32)
    assert float(dz) == 8.0


def test_a_result_that_is_an_argument() -> None:
    f = tf.custom_gradient(lambda x: (x, lambda dy: dy * 5.0))
    assert float(derivative(lambda x: f(x) * x, tf.constant(2.0))) == 12.0


def test_nested() -> None:
    @tf.custom_gradient
    def outer(x: Any) -> Any:
        y = log1pexp(x)
        return y * y, lambda dy: dy * 2.0 * y * derivative(log1pexp, x)
    x = 0.3
    y, s = np.log1p(np.exp(x)), 1 / (1 + np.exp(-x))
    np.testing.assert_allclose(derivative(outer, f64(x)), 2 * y * s, rtol=1e-14)
    second = derivative(lambda x: derivative(outer, x), f64(x))
    np.testing.assert_allclose(second, 2 * s * s + 2 * y * s * (1 - s), rtol=1e-13)


def test_a_gradient_function_may_have_a_custom_gradient() -> None:
    @tf.custom_gradient
    def f(x: Any) -> Any:
        @tf.custom_gradient
        def slope(dy: Any, x: Any) -> Any:
            return dy * 3.0 * x * x, lambda ddy: (ddy * 3.0 * x * x, ddy * dy * 1000.0)
        return x * x * x, lambda dy: slope(dy, x)
    x = tf.constant(2.0)
    assert float(derivative(f, x)) == 12.0
    assert float(derivative(lambda x: derivative(f, x), x)) == 1000.0


def test_methods() -> None:
    class Layer:
        factor = 3.0

        @tf.custom_gradient
        def call(self, x: Any) -> Any:
            return x * self.factor, lambda dy: dy * 100.0
    assert float(derivative(Layer().call, tf.constant(1.0))) == 100.0


def test_decorator_with_brackets() -> None:
    @tf.custom_gradient()
    def f(x: Any) -> Any:
        return x, lambda dy: dy * 2.0
    assert float(derivative(f, tf.constant(1.0))) == 2.0


def test_variables() -> None:
    w, still = tf.Variable(2.0), tf.Variable(1.0, trainable=False)

    @tf.custom_gradient
    def f(x: Any) -> Any:
        def grad_fn(dy: Any, variables: Any = None) -> Any:
            assert [v is w for v in variables] == [True]
            return dy * 10.0, [dy * 20.0]
        return x * w * w * still, grad_fn
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x) + w
    dx, dw = tape.gradient(y, [x, w])
    assert (float(y), float(dx), float(dw)) == (14.0, 10.0, 21.0)


def test_variables_errors() -> None:
    w = tf.Variable(2.0)
    f = tf.custom_gradient(lambda x: (x * w, lambda dy: dy))
    with pytest.raises(TypeError, match=r"must accept keyword argument 'variables'.*Variable:0"):
        f(tf.constant(1.0))
    few = tf.custom_gradient(lambda x: (x * w, lambda dy, variables=None: (dy, [])))
    with pytest.raises(ValueError, match="Must return gradient for each variable"):
        derivative(few, tf.constant(1.0))
    unpaired = tf.custom_gradient(lambda x: (x * w, lambda dy, variables=None: dy))
    with pytest.raises(ValueError, match="Must return gradients of inputs and of variables"):
        derivative(unpaired, tf.constant(1.0))


@pytest.mark.parametrize("given", [[], [1.0, 2.0, 3.0]])
def test_wrong_number_of_gradients(given: list[float]) -> None:
    f = tf.custom_gradient(lambda x, y: (x * y, lambda dy: given))
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x, x)
    with pytest.raises(ValueError, match=rf"expected to return 2 gradients.*returned {len(given)}"):
        tape.gradient(y, x)


def test_the_function_must_return_a_pair() -> None:
    with pytest.raises(TypeError, match=r"must return a pair \(result, grad_fn\)"):
        tf.custom_gradient(lambda x: x)(tf.constant(1.0))


def test_errors_show_the_users_frames() -> None:
    @tf.custom_gradient
    def f(x: Any) -> Any:
        raise KeyError("mine")
    with pytest.raises(KeyError) as error:
        f(1.0)
    others = {frame.filename for frame in traceback.extract_tb(error.tb)} - {__file__}
    assert bool(others) != native.available()  # plain Python cannot leave frames out


# -- recompute_grad ---------------------------------------------------------------------------------
def test_recomputed_gradients_are_the_same() -> None:
    w = tf.Variable(f64([0.5, -1.0]))

    def f(x: Any, *, shift: Any) -> Any:
        return tf.exp(tf.sin(w * x) + shift) * x, tf.reduce_sum(x * x)
    x, shift = f64([1.0, 2.0]), f64(0.25)

    def run(f: Any) -> Any:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, shift])
            y, z = f(x, shift=shift)
            first = tape.gradient([y, z], [x, shift, w])
        second = tape.gradient(first, [x, shift, w])
        return [y, z, *first, *second]
    for plain, again in zip(run(f), run(tf.recompute_grad(f)), strict=True):
        np.testing.assert_allclose(again, plain, rtol=1e-14)


def test_recomputing_under_forward_mode() -> None:
    f = tf.recompute_grad(lambda x: tf.exp(tf.sin(x)) * x)
    x, v = f64([1.0, 2.0]), f64([0.5, -1.0])
    with tf.autodiff.ForwardAccumulator(x, v) as acc:
        y = f(x)
    np.testing.assert_allclose(acc.jvp(y), jacobian(f, x) @ v.numpy(), **CLOSE)


def test_recomputing_keeps_no_intermediate_values() -> None:
    def f(x: Any) -> Any:
        for _ in range(20):
            x = tf.sin(x)
        return x

    def held(f: Any) -> int:
        x = tf.ones([20_000])
        with tf.GradientTape() as tape:
            tape.watch(x)
            gc.collect()
            tracemalloc.start()
            y = f(x)
            size, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert tape.gradient(y, x).shape == (20_000,)
        return size
    held(f)
    assert held(f) > 15 * 80_000
    assert min(held(tf.recompute_grad(f)) for _ in range(3)) < 2 * 80_000  # a table of the process may double once


def test_recomputing_runs_the_function_once_more_and_only_for_gradients() -> None:
    runs = []

    def f(x: Any) -> Any:
        runs.append(1)
        return x * x
    again = tf.recompute_grad(f)
    again(tf.constant(1.0))
    assert len(runs) == 1
    derivative(again, tf.constant(1.0))
    assert len(runs) == 3


def test_recomputed_arguments_without_a_part_in_the_result() -> None:
    f = tf.recompute_grad(lambda x, y: x * 2.0)
    x, y = tf.constant(1.0), tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = f(x, y)
    dx, dy = tape.gradient(z, [x, y])
    assert float(dx) == 2.0 and dy is None


# -- passing and stopping ---------------------------------------------------------------------------
def test_grad_pass_through() -> None:
    w = tf.Variable(3.0)
    f = tf.grad_pass_through(lambda x: tf.round(x) * w)
    x = tf.constant(1.7)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x) * 5.0
    dx, dw = tape.gradient(y, [x, w])
    assert (float(y), float(dx), dw) == (30.0, 5.0, None)


def test_stop_gradient() -> None:
    x = tf.constant(3.0)
    assert float(derivative(lambda x: x * tf.stop_gradient(x), x)) == 3.0
    assert derivative(tf.stop_gradient, x) is None


def test_signatures_are_those_of_the_functions():
    class Layer:
        def __call__(self, y, z=2):
            return y, lambda g: g

        @tf.function(input_signature=[tf.TensorSpec([])])
        def method(self, inputs):
            return inputs

    for fn, expected in [(tf.custom_gradient(Layer()), "(y, z=2)"), (Layer().method, "(inputs)"),
                         (Layer.method, "(self, inputs)"), (tf.function(lambda x, y=1: x), "(x, y=1)")]:
        assert str(inspect.signature(fn)) == expected
        assert inspect.getfullargspec(fn).args == list(inspect.signature(fn).parameters)
    assert "input_signature" not in str(inspect.signature(type(Layer.method)))
