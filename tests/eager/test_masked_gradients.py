"""What was not taken does not come back: a cotangent of 0 gives a gradient of 0, be the derivative infinite or NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.special as sp

import twofold as tf
from twofold.autodiff import ForwardAccumulator

INF, NAN = np.inf, np.nan


class Singular(NamedTuple):
    """A function, its first two derivatives, where it is smooth, and where its derivatives are infinite or NaN."""

    f: Callable[[Any], Any]
    first: Callable[[Any], Any]
    second: Callable[[Any], Any]
    good: float
    bad: tuple[float, ...]


def numbers(value: float) -> Any:
    return tf.constant(value, tf.float64)


ROOT_PI = np.sqrt(np.pi)
INVERSE_ERF = ROOT_PI / 2 * np.exp(sp.erfinv(0.3) ** 2)
INVERSE_NORMAL = np.sqrt(2 * np.pi) * np.exp(sp.ndtri(0.3) ** 2 / 2)

FUNCTIONS: dict[str, Singular] = {
    "sqrt": Singular(tf.sqrt, lambda x: x**-0.5 / 2, lambda x: -(x**-1.5) / 4, 4.0, (0.0, -1.0, INF)),
    "rsqrt": Singular(tf.math.rsqrt, lambda x: -(x**-1.5) / 2, lambda x: 0.75 * x**-2.5, 4.0, (0.0, -1.0, INF)),
    "reciprocal": Singular(tf.math.reciprocal, lambda x: -(x**-2), lambda x: 2 * x**-3, 4.0, (0.0, INF)),
    "divide, below": Singular(lambda x: 3.0 / x, lambda x: -3 * x**-2, lambda x: 6 * x**-3, 4.0, (0.0, INF)),
    "divide, both": Singular(lambda x: (x + 1.0) / x, lambda x: -(x**-2), lambda x: 2 * x**-3, 4.0, (0.0,)),
    "divide, above": Singular(lambda x: x / numbers(0.5), lambda x: 2.0, lambda x: 0.0, 4.0, (0.0, INF, NAN)),
    "divide_no_nan": Singular(lambda x: tf.math.divide_no_nan(numbers(1.0), x), lambda x: -(x**-2), lambda x: 2 * x**-3,
                              4.0, (0.0, 1e-320)),
    "pow 0.5": Singular(lambda x: x**0.5, lambda x: x**-0.5 / 2, lambda x: -(x**-1.5) / 4, 4.0, (0.0, -1.0)),
    "pow -1": Singular(lambda x: x**-1.0, lambda x: -(x**-2), lambda x: 2 * x**-3, 4.0, (0.0,)),
    "pow of 2": Singular(lambda x: tf.pow(numbers(2.0), x), lambda x: 2**x * np.log(2), lambda x: 2**x * np.log(2) ** 2,
                         3.0, (1e5, INF)),
    "log": Singular(tf.math.log, lambda x: 1 / x, lambda x: -(x**-2), 4.0, (0.0, -1.0)),
    "log1p": Singular(tf.math.log1p, lambda x: 1 / (x + 1), lambda x: -((x + 1) ** -2), 4.0, (-1.0, -2.0)),
    "square": Singular(lambda x: tf.square(1.0 / x), lambda x: -2 * x**-3, lambda x: 6 * x**-4, 4.0, (0.0,)),
    "multiply": Singular(lambda x: x * tf.math.log(x), lambda x: np.log(x) + 1, lambda x: 1 / x, 4.0, (0.0, -1.0)),
    "expm1": Singular(tf.math.expm1, np.exp, np.exp, 2.0, (1e5, INF)),
    "sinh": Singular(tf.sinh, np.cosh, np.sinh, 2.0, (1e5, -1e5, INF)),
    "cosh": Singular(tf.cosh, np.sinh, np.cosh, 2.0, (1e5, -1e5, INF)),
    "sin": Singular(tf.sin, np.cos, lambda x: -np.sin(x), 2.0, (INF,)),
    "cos": Singular(tf.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), 2.0, (INF,)),
    "tan": Singular(tf.tan, lambda x: 1 + np.tan(x) ** 2, lambda x: 2 * np.tan(x) * (1 + np.tan(x) ** 2), 1.0,
                    (np.pi / 2, INF)),
    "asin": Singular(tf.asin, lambda x: (1 - x * x) ** -0.5, lambda x: x * (1 - x * x) ** -1.5, 0.3, (1.0, -1.0, 2.0)),
    "acos": Singular(tf.acos, lambda x: -((1 - x * x) ** -0.5), lambda x: -x * (1 - x * x) ** -1.5, 0.3,
                     (1.0, -1.0, 2.0)),
    "acosh": Singular(tf.acosh, lambda x: (x * x - 1) ** -0.5, lambda x: -x * (x * x - 1) ** -1.5, 2.0, (1.0, 0.5)),
    "asinh": Singular(tf.asinh, lambda x: (x * x + 1) ** -0.5, lambda x: -x * (x * x + 1) ** -1.5, 2.0, (INF, -INF)),
    "atanh": Singular(tf.atanh, lambda x: 1 / (1 - x * x), lambda x: 2 * x / (1 - x * x) ** 2, 0.3, (1.0, -1.0, 2.0)),
    "erfinv": Singular(tf.math.erfinv, lambda x: INVERSE_ERF, lambda x: 2 * sp.erfinv(x) * INVERSE_ERF**2, 0.3,
                       (1.0, -1.0, 2.0)),
    "ndtri": Singular(tf.math.ndtri, lambda x: INVERSE_NORMAL, lambda x: sp.ndtri(x) * INVERSE_NORMAL**2, 0.3,
                      (0.0, 1.0, 2.0)),
    "lgamma": Singular(tf.math.lgamma, sp.digamma, lambda x: sp.polygamma(1, x), 2.5, (0.0, -1.0, -2.0)),
    "digamma": Singular(tf.math.digamma, lambda x: sp.polygamma(1, x), lambda x: sp.polygamma(2, x), 2.5,
                        (0.0, -1.0, -2.0)),
    "xlogy": Singular(lambda x: tf.math.xlogy(numbers(3.0), x), lambda x: 3 / x, lambda x: -3 * x**-2, 4.0,
                      (0.0, -1.0)),
    "xlogy, both": Singular(lambda x: tf.math.xlogy(x, x), lambda x: np.log(x) + 1, lambda x: 1 / x, 4.0, (0.0, -1.0)),
    "xlog1py": Singular(lambda x: tf.math.xlog1py(x, x), lambda x: np.log1p(x) + x / (1 + x),
                        lambda x: 1 / (1 + x) + (1 + x) ** -2, 4.0, (-1.0, -2.0)),
    "xdivy": Singular(lambda x: tf.math.xdivy(numbers(3.0), x), lambda x: -3 * x**-2, lambda x: 6 * x**-3, 4.0, (0.0,)),
    "atan2": Singular(lambda x: tf.atan2(x, 2.0 * x + 1.0), lambda x: 1 / (x * x + (2 * x + 1) ** 2),
                      lambda x: -(10 * x + 4) / (5 * x * x + 4 * x + 1) ** 2, 1.0, (1e160,)),
    "floormod": Singular(lambda x: tf.math.floormod(numbers(5.0), x), lambda x: -2.0, lambda x: 0.0, 2.2, (0.0,)),
    "nested roots": Singular(lambda x: tf.sqrt(tf.sqrt(x)), lambda x: x**-0.75 / 4, lambda x: -3 / 16 * x**-1.75, 4.0,
                             (0.0, -1.0)),
    "log of a root": Singular(lambda x: tf.math.log(tf.sqrt(x)), lambda x: 0.5 / x, lambda x: -0.5 * x**-2, 4.0,
                              (0.0, -1.0)),
    "root of a quotient": Singular(lambda x: tf.sqrt(1.0 / x), lambda x: -(x**-1.5) / 2, lambda x: 0.75 * x**-2.5, 4.0,
                                   (0.0,)),
    "complex abs": Singular(lambda x: tf.abs(tf.complex(x, x)), lambda x: np.sqrt(2), lambda x: 0.0, 2.0, (0.0,)),
    "complex angle": Singular(lambda x: tf.math.angle(tf.complex(x, 2.0 * x + 1.0)),
                              lambda x: -1 / (x * x + (2 * x + 1) ** 2),
                              lambda x: (10 * x + 4) / (5 * x * x + 4 * x + 1) ** 2, 1.0, (1e160,)),
    "complex root": Singular(lambda x: tf.math.real(tf.sqrt(tf.complex(x, tf.zeros_like(x)))), lambda x: x**-0.5 / 2,
                             lambda x: -(x**-1.5) / 4, 4.0, (0.0,)),
    "complex log": Singular(lambda x: tf.math.real(tf.math.log(tf.complex(x, tf.zeros_like(x)))), lambda x: 1 / x,
                            lambda x: -(x**-2), 4.0, (0.0,)),
}
CASES = [pytest.param(case, id=name) for name, case in FUNCTIONS.items()]


def two_orders(f: Callable[[Any], Any], x: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values of an elementwise function and of its first two derivatives."""
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        first = inner.gradient(y, x)
    return y.numpy(), first.numpy(), outer.gradient(first, x, unconnected_gradients="zero").numpy()


def operands(case: Singular) -> tuple[Any, np.ndarray]:
    """Where the function is smooth and where it is not, and which is which."""
    x = np.array([case.good, *case.bad, case.good])
    return tf.constant(x), np.isin(np.arange(x.size), (0, x.size - 1))


@pytest.mark.parametrize("case", CASES)
def test_where_masks_value_and_both_derivatives(case: Singular) -> None:
    x, taken = operands(case)
    value, first, second = two_orders(lambda x: tf.where(taken, case.f(x), 0.25), x)
    assert (value[~taken] == 0.25).all()
    for gradient, derivative in ((first, case.first), (second, case.second)):
        np.testing.assert_array_equal(gradient[~taken], 0.0)
        np.testing.assert_allclose(gradient[taken], derivative(case.good), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("case", CASES)
def test_where_keeps_the_other_branch(case: Singular) -> None:
    x, taken = operands(case)
    _, first, _ = two_orders(lambda x: tf.where(taken, case.f(x), 3.0 * x), x)
    np.testing.assert_array_equal(first[~taken], 3.0)


@pytest.mark.parametrize("case", CASES)
def test_boolean_mask_drops_the_rest(case: Singular) -> None:
    x, taken = operands(case)
    _, first, second = two_orders(lambda x: tf.boolean_mask(case.f(x), taken), x)
    np.testing.assert_allclose(first, np.where(taken, case.first(case.good), 0.0), rtol=1e-12)
    np.testing.assert_allclose(second, np.where(taken, case.second(case.good), 0.0), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("case", CASES)
def test_tangents_of_nothing_are_nothing(case: Singular) -> None:
    """A tangent of 0 is carried as 0, and that of a masked function is its derivative."""
    x, taken = operands(case)
    with ForwardAccumulator(x, tf.constant(taken.astype(np.float64))) as acc:
        y = tf.where(taken, case.f(x), 0.0)
    np.testing.assert_allclose(acc.jvp(y).numpy(), np.where(taken, case.first(case.good), 0.0), rtol=1e-12)


@pytest.mark.parametrize(("choose", "case", "bad"), [
    (lambda y: tf.maximum(y, -1.0), FUNCTIONS["log"], 0.0),
    (lambda y: tf.minimum(y, 9.0), FUNCTIONS["reciprocal"], 0.0),
    (lambda y: tf.minimum(y, 9.0), FUNCTIONS["expm1"], 1e5),
    (lambda y: tf.clip_by_value(y, -5.0, 5.0), FUNCTIONS["log"], 0.0),
    (lambda y: tf.clip_by_value(y, -5.0, 5.0), FUNCTIONS["rsqrt"], 0.0),
    (lambda y: tf.clip_by_value(y, -1.5, 1.5), FUNCTIONS["erfinv"], 1.0),
    (lambda y: tf.maximum(y, 0.1), FUNCTIONS["sqrt"], 0.0),
    (tf.nn.relu, FUNCTIONS["log"], 0.0),
    (tf.nn.relu6, FUNCTIONS["reciprocal"], 0.0),
], ids=["maximum log", "minimum reciprocal", "minimum expm1", "clip log", "clip rsqrt", "clip erfinv", "maximum sqrt",
        "relu log", "relu6 reciprocal"])
def test_extremes_and_clipping(choose: Callable[[Any], Any], case: Singular, bad: float) -> None:
    value, first, second = two_orders(lambda x: choose(case.f(x)), tf.constant([case.good, bad], tf.float64))
    assert np.isfinite(value).all()
    np.testing.assert_allclose(first, [case.first(case.good), 0.0], rtol=1e-12)
    np.testing.assert_allclose(second, [case.second(case.good), 0.0], rtol=1e-12)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64], ids=lambda d: d.name)
def test_every_float(dtype: Any) -> None:
    x = tf.constant([0.0, -1.0, 4.0], dtype)
    _, first, second = two_orders(lambda x: tf.where(x > 0, tf.sqrt(x), 0), x)
    np.testing.assert_array_equal(first.astype(np.float64), [0.0, 0.0, 0.25])
    np.testing.assert_array_equal(second.astype(np.float64), [0.0, 0.0, -0.03125])


@pytest.mark.parametrize("f", [tf.nn.gelu, tf.nn.silu, lambda x: tf.nn.gelu(x, approximate=True)],
                         ids=["gelu", "silu", "gelu_tanh"])
def test_activations_at_infinity(f: Callable[[Any], Any]) -> None:
    x = tf.constant([0.5, -INF, INF, 1e200], tf.float64)
    value, first, _ = two_orders(lambda x: tf.where([True, False, False, False], f(x), 0.0), x)
    assert np.isfinite(value).all()
    assert first[0] > 0.5
    np.testing.assert_array_equal(first[1:], 0.0)


def test_exp_that_overflowed_is_the_exception() -> None:
    """As TensorFlow's guides print it; see docs/numerics.md."""
    _, first, _ = two_orders(lambda x: tf.where(x < 80, tf.exp(x), 0.0), numbers(1e5))
    assert np.isnan(first)


def test_what_is_taken_keeps_its_singular_gradient() -> None:
    for f, x, expected in ((tf.sqrt, 0.0, INF), (tf.math.log, 0.0, INF), (tf.math.reciprocal, 0.0, -INF),
                           (tf.exp, 1e5, INF), (tf.asin, 1.0, INF), (tf.sqrt, -1.0, NAN)):
        assert np.array_equal(two_orders(f, numbers(x))[1], expected, equal_nan=True)


def test_quotients_differentiate_truly_where_the_numerator_is_zero() -> None:
    """x / y at x = 0: the mask is on the cotangent, not on the operand."""
    x, y = tf.constant([0.0, 2.0], tf.float64), tf.constant([4.0, 4.0], tf.float64)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch([x, y])
        with tf.GradientTape() as inner:
            inner.watch([x, y])
            q = x / y
        by_x, by_y = inner.gradient(q, [x, y])
    np.testing.assert_array_equal(by_x.numpy(), 0.25)
    np.testing.assert_array_equal(by_y.numpy(), [-0.0, -0.125])
    np.testing.assert_array_equal(outer.gradient(by_y, x).numpy(), -1 / 16)
    np.testing.assert_array_equal(outer.gradient(by_y, y).numpy(), [0.0, 4 / 64])


def test_third_order_behind_a_mask() -> None:
    x = tf.constant([0.0, 4.0], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.GradientTape() as middle:
            middle.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.where(x > 0, tf.sqrt(x), 0.0)
            first = inner.gradient(y, x)
        second = middle.gradient(first, x)
    np.testing.assert_allclose(tape.gradient(second, x).numpy(), [0.0, 0.375 * 4**-2.5], rtol=1e-14)


def test_a_mask_on_the_first_gradient() -> None:
    """What is dropped is a gradient that was infinite."""
    x = tf.constant([0.0, 4.0], tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.sqrt(x)
        kept = tf.where(x > 0, inner.gradient(y, x), 0.0)
    np.testing.assert_allclose(outer.gradient(kept, x).numpy(), [0.0, -1 / 32], rtol=1e-14)
