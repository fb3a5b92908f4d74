"""Function-style gradients under `tf.contrib.eager`, by arguments and by variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from derivatives import CLOSE, f64, gradient

import twofold as tf
import twofold.contrib.eager as tfe
from twofold.contrib.eager.python import tfe as tfe_of_python


def floats(tensors: Any) -> list[float | None]:
    return [None if t is None else float(t) for t in tensors]


def square(x: Any) -> Any:
    return tf.multiply(x, x)


def test_the_ways_to_the_module() -> None:
    assert tfe is tf.contrib.eager is tfe_of_python
    assert tfe.Variable is tf.Variable and tfe.GradientTape is tf.GradientTape
    assert tfe.custom_gradient is tf.custom_gradient
    assert tfe.executing_eagerly() and tfe.in_eager_mode()
    assert tfe.num_gpus() == len(tf.config.list_logical_devices("GPU"))
    assert any("CPU:0" in name for name in tfe.list_devices())
    tfe.enable_eager_execution()


def test_orders_of_square() -> None:
    grad = tfe.gradients_function(square)
    gradgrad = tfe.gradients_function(lambda x: grad(x)[0])
    gradgradgrad = tfe.gradients_function(lambda x: gradgrad(x)[0])
    assert [floats(g(3.0)) for g in (grad, gradgrad, gradgradgrad)] == [[6.0], [2.0], [None]]


def test_abs() -> None:
    grad = tfe.gradients_function(lambda x: x if x > 0.0 else -x)
    assert floats(grad(3.0)) + floats(grad(-3.0)) == [1.0, -1.0]


def test_arguments_of_every_kind() -> None:
    seen: list[Any] = []

    def f(x: Any, y: Any, z: Any) -> Any:
        seen.extend([x, y, z])
        return x * tf.reduce_sum(y) * z
    gradients = tfe.gradients_function(f)(2.0, np.float32([1.0, 2.0]), tf.Variable(4.0))
    assert all(isinstance(t, tf.Tensor) for t in seen)
    assert [g.numpy().tolist() for g in gradients] == [12.0, [8.0, 8.0], 6.0]


def test_integers_have_no_derivative() -> None:
    assert floats(tfe.gradients_function(square)(3)) == [None]
    assert floats(tfe.gradients_function(lambda n, x: tf.cast(n, tf.float32) * x)(3, 2.0)) == [None, 3.0]


def test_against_differences() -> None:
    def f(x: Any) -> Any:
        return tf.reduce_sum(tf.exp(tf.sin(x)) * x)
    x = [0.2, -0.7, 1.9]
    np.testing.assert_allclose(tfe.gradients_function(f)(f64(x))[0], gradient(f, x), **CLOSE)


def test_value_and_gradients() -> None:
    value, grads = tfe.value_and_gradients_function(lambda x, y: x * x * y)(3.0, 2.0)
    assert float(value) == 18.0
    assert floats(grads) == [12.0, 9.0]
    pair, _ = tfe.value_and_gradients_function(lambda x: (x, [x * x]))(3.0)
    assert float(pair[0]) == 3.0 and float(pair[1][0]) == 9.0


def test_params() -> None:
    def f(x: Any, y: Any, z: Any = 1.0) -> Any:
        return x * y * y * z
    assert floats(tfe.gradients_function(f, params=["y"])(3.0, 2.0)) == [12.0]
    assert floats(tfe.gradients_function(f, params=[1, 0])(3.0, 2.0)) == [12.0, 4.0]
    assert floats(tfe.gradients_function(f, params=("z", "x"))(3.0, 2.0, 1.0)) == [12.0, 4.0]
    assert floats(tfe.gradients_function(f)(3.0, 2.0)) == [4.0, 12.0]


def test_arguments_left_out_of_params_stay_as_they_are() -> None:
    def f(x: Any, mode: str) -> Any:
        return x * x if mode == "square" else x
    assert floats(tfe.gradients_function(f, params=[0])(3.0, "square")) == [6.0]


@pytest.mark.parametrize(("params", "message"), [
    (["x", 0], "must be all strings or all integers"),
    (["w"], "'w', which is none of the 1 arguments"),
    ([1], "1, which is none of the 1 arguments"),
    ([-1], "-1, which is none of the 1 arguments"),
])
def test_bad_params(params: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tfe.gradients_function(lambda x: x, params=params)(1.0)


def test_the_same_tensor_as_two_arguments() -> None:
    x, v = tf.constant(3.0), tf.Variable(3.0)
    f = tfe.gradients_function(lambda x, y: x * y * y)
    assert floats(f(x, x)) == [9.0, 18.0]
    assert floats(f(v, v)) == [9.0, 18.0]
    # What the function reads of the variable itself is no argument.
    assert floats(tfe.gradients_function(lambda x: x * v)(v)) == [3.0]


def test_dy_weights_the_result() -> None:
    f = tfe.gradients_function(lambda x: x * x)
    assert f(tf.constant([1.0, 2.0]), dy=tf.constant([1.0, 10.0]))[0].numpy().tolist() == [2.0, 40.0]


def test_errors() -> None:
    def nothing(x: Any) -> Any:
        return None
    for make in (tfe.gradients_function, tfe.value_and_gradients_function, tfe.implicit_gradients,
                 tfe.implicit_value_and_gradients):
        with pytest.raises(ValueError, match="function that returns None; .* value from nothing"):
            make(nothing)(1.0)
    with pytest.raises(ValueError, match="keyword arguments; got x"):
        tfe.gradients_function(square)(x=1.0)
    with pytest.raises(ValueError, match="No trainable variables were accessed"):
        tfe.implicit_gradients(square)(1.0)


def test_implicit_gradients() -> None:
    w, b, other = tf.Variable(5.0), tf.Variable(10.0), tf.Variable(0.0)
    still = tf.Variable(1.0, trainable=False)

    def loss(model: dict[str, Any], x: Any, *, shift: float) -> Any:
        other.value()
        return (model["b"] + model["w"] * x) * still + shift
    with_variables = tfe.implicit_gradients(loss)({"w": w, "b": b}, 3.0, shift=1.0)
    assert [v is u for (_, v), u in zip(with_variables, (w, b, other), strict=True)] == [True] * 3
    assert floats(g for g, _ in with_variables) == [3.0, 1.0, None]
    value, pairs = tfe.implicit_value_and_gradients(loss)({"w": w, "b": b}, 3.0, shift=1.0)
    assert float(value) == 26.0
    assert floats(g for g, _ in pairs) == [3.0, 1.0, None]


def test_higher_orders_by_variables() -> None:
    w = tf.Variable(2.0)
    first = tfe.implicit_gradients(lambda: w * w * w)
    assert floats(g for g, _ in tfe.implicit_gradients(lambda: first()[0][0])()) == [12.0]


def test_custom_gradients_are_used() -> None:
    @tfe.custom_gradient
    def log1pexp(x: Any) -> Any:
        e = tf.exp(x)
        return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))
    grad = tfe.gradients_function(log1pexp)
    assert floats(grad(0.0)) + floats(grad(100.0)) == [0.5, 1.0]
