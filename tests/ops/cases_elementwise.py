"""Cases of the elementwise family: arithmetic, comparison, functions, activations, conversion, clipping."""

from __future__ import annotations

import math

import numpy as np
import scipy.special as sc
from ops.case import SPECIAL, Bad, Case

import twofold as tf
from twofold._ops.clip import clip_by_average_norm
from twofold.ir import dtypes as dt

INVALID = tf.errors.InvalidArgumentError
INEXACT = dt.FLOATING | dt.COMPLEX
WIDE = frozenset({dt.float32, dt.float64})
PAIR = [[(3, 4), (4,)], [(2, 1, 3), (4, 1)], [(3,), ()], [(1,), (0,)]]
ONE = [(3, 4)]
INF, NAN = math.inf, math.nan


def quotient(dtype):
    return dtype if not dtype.is_integer else dt.float32 if dtype.size <= 2 else dt.float64


def not_zero(low, high):
    """Whole numbers without 0: integers of any sign, and floats whose quotients are far from whole."""
    def draw(rng, shape):
        return rng.integers(low, high, shape, endpoint=True) * rng.choice([-1.0, 1.0], shape)
    return draw


def away(low, high):
    """Numbers of both signs, their size between `low` and `high`."""
    return lambda rng, shape: rng.uniform(low, high, shape) * rng.choice([-1.0, 1.0], shape)


def exactly(function):
    """NumPy's `function` rounded once: in float64 it is the C library's, each of which errs elsewhere."""
    return lambda *x: function(*(a.astype(np.longdouble) for a in x)).astype(np.float64)


def wide(x):
    return x.astype(np.float64) if x.dtype.kind in "iu" else x


# -- arithmetic ---------------------------------------------------------------------------------------
def truncated(x, y):
    return np.trunc(x / y) if x.dtype.kind == "f" else (x - np.fmod(x, y)) // y


def floormod(x, y):
    """Python's remainder, but a zero keeps the sign of x, as in TensorFlow."""
    rest = np.fmod(x, y)
    return np.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)


def squared_difference(x, y):
    d = x - y
    return (d * np.conj(d)) if d.dtype.kind == "c" else d * d


def complex_sign(x):
    return np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x)))


def no_nan(x, y):
    y = wide(y)
    return np.where(y == 0, 0, wide(x) / np.where(y == 0, 1, y))


ARITHMETIC = [
    Case("add", "math.add", PAIR, np.add, dt.NUMERIC, special=SPECIAL),
    Case("subtract", "math.subtract", PAIR, np.subtract, dt.NUMERIC, special=SPECIAL),
    Case("multiply", "math.multiply", PAIR, np.multiply, dt.NUMERIC, ulps=0, atol=16, special=SPECIAL),
    Case("divide", "math.divide", PAIR, lambda x, y: wide(x) / wide(y), dt.NUMERIC, domain=[(-6, 6), away(1, 6)],
         result=quotient, ulps=3, special=SPECIAL),
    Case("divide", "math.divide", PAIR, np.divide, dt.COMPLEX, domain=[(-6, 6), (0.4, 3)], ulps=3),
    Case("divide", "math.truediv", PAIR, lambda x, y: wide(x) / wide(y), dt.REAL, domain=[(-6, 6), not_zero(1, 6)],
         result=quotient),
    Case("floordiv", "math.floordiv", PAIR, lambda x, y: np.floor(x / y) if x.dtype.kind == "f" else x // y, dt.REAL,
         domain=[(-90, 90), not_zero(1, 7)], grad=False, special=SPECIAL),
    Case("floormod", "math.floormod", PAIR, floormod, dt.REAL, domain=[(-90, 90), not_zero(1, 7)], special=SPECIAL,
         grad_domain=[(0.1, 0.6), (0.7, 0.9)], half_ulps=1),
    Case("floormod", "math.mod", PAIR, floormod, dt.REAL, domain=[(-90, 90), not_zero(1, 7)],
         grad_domain=[(1.5, 1.6), (0.7, 0.71)], half_ulps=1),
    Case("truncatediv", "math.truncatediv", PAIR, truncated, dt.REAL, domain=[(-90, 90), not_zero(1, 7)], grad=False,
         special=SPECIAL),
    Case("truncatemod", "math.truncatemod", PAIR, np.fmod, dt.REAL, domain=[(-90, 90), not_zero(1, 7)],
         grad_domain=[(-1.6, -1.5), (0.7, 0.71)], special=SPECIAL),
    Case("divide_no_nan", "math.divide_no_nan", PAIR, no_nan, dt.NUMERIC, domain=[(-6, 6), (-3, 3)], result=quotient,
         grad_domain=[(-6, 6), away(1, 3)], ulps=3),
    Case("divide_no_nan", "math.divide_no_nan", [(2,), (2,)], lambda x, y: np.zeros_like(x),
         domain=[lambda rng, shape: np.array([INF, NAN]), (0, 0)], elementwise=False, grad=False, id="by zero"),
    Case("divide_no_nan", "math.divide_no_nan", PAIR, np.divide, dt.COMPLEX, domain=[(-6, 6), (0.4, 3)], ulps=3),
    Case("multiply_no_nan", "math.multiply_no_nan", PAIR, lambda x, y: np.where(y == 0, 0, x * np.where(y == 0, 0, y)),
         INEXACT, atol=16),
    Case("multiply_no_nan", "math.multiply_no_nan", [(2,), (2,)], lambda x, y: np.zeros_like(x),
         dt.float32, domain=[lambda rng, shape: np.array([INF, NAN]), (0, 0)], elementwise=False, grad=False,
         id="zero times nan"),
    Case("masked_multiply", "ops.masked_multiply", PAIR, np.multiply, INEXACT, atol=16),
    Case("masked_multiply", "ops.masked_multiply", [(4,), (4,)], lambda x, y: np.zeros_like(x), dt.float32,
         domain=[lambda rng, shape: np.array([INF, 0, NAN, 0]), lambda rng, shape: np.array([0, INF, 0, NAN])],
         elementwise=False, grad=False, id="zero times nan"),
    Case("masked_divide", "ops.masked_divide", PAIR, np.divide, INEXACT, domain=[away(0.4, 6), away(0.4, 3)], ulps=3),
    Case("masked_divide", "ops.masked_divide", [(3,), (3,)], lambda x, y: np.zeros_like(x), dt.float32,
         domain=[(0, 0), lambda rng, shape: np.array([0, NAN, INF])], elementwise=False, grad=False, id="zero by zero"),
    Case("pow", "math.pow", PAIR, np.power, dt.REAL, domain=[(0, 3), (0, 3)], ulps=1,
         grad_domain=[(0.3, 3), away(0.3, 3)], special=(*SPECIAL, 1.0, -1.0, 2.0, -3.0, 0.5)),
    Case("pow", "math.pow", PAIR, np.power, dt.COMPLEX, domain=[(0.3, 2), (-2, 2)], ulps=16),
    Case("pow_derivative", "ops.pow_derivative", PAIR, lambda x, y: y * np.power(x, y - 1), dt.FLOATING,
         domain=[(0.3, 3), away(0.3, 3)], ulps=3, half_ulps=1),
    Case("squared_difference", "math.squared_difference", PAIR, squared_difference, dt.NUMERIC, ulps=2, atol=2,
         special=SPECIAL),
    Case("maximum", "math.maximum", PAIR, np.maximum, dt.REAL, special=(1.0, INF, -INF, NAN)),
    Case("minimum", "math.minimum", PAIR, np.minimum, dt.REAL, special=(1.0, INF, -INF, NAN)),
    Case("negative", "math.negative", ONE, np.negative, dt.SIGNED | INEXACT, special=SPECIAL),
    Case("abs", "math.abs", ONE, np.abs, dt.NUMERIC, ulps=1, special=SPECIAL, grad_domain=away(0.2, 3)),
    Case("sign", "math.sign", ONE, lambda x: np.where(x == 0, x, np.sign(x)), dt.REAL, special=SPECIAL,
         grad_domain=away(0.2, 3)),
    Case("sign", "math.sign", ONE, complex_sign, dt.COMPLEX, ulps=4),
    Case("square", "math.square", ONE, np.square, dt.NUMERIC, ulps=0, atol=16, special=SPECIAL),
    Case("abs", "math.abs", ONE, np.abs, dt.COMPLEX, ulps=2, domain=(-3, -0.2)),
    Case("reciprocal", "math.reciprocal", ONE, lambda x: 1 / x, dt.COMPLEX, domain=(0.3, 3), ulps=3),
    Case("sqrt", "math.sqrt", ONE, np.sqrt, INEXACT, domain=(0.1, 9), ulps=2, special=SPECIAL),
    Case("cbrt", "keras.ops.cbrt", ONE, exactly(np.cbrt), special=SPECIAL, grad_domain=away(0.4, 6), half_ulps=1),
    Case("hypot", "keras.ops.hypot", PAIR, exactly(np.hypot), special=SPECIAL, half_ulps=1),
    Case("rsqrt", "math.rsqrt", ONE, lambda x: 1 / np.sqrt(x), INEXACT, domain=(0.1, 9), ulps=3,
         special=(0.0, INF, NAN, -1.0)),
    Case("reciprocal", "math.reciprocal", ONE, lambda x: 1 / x, INEXACT, domain=away(0.2, 4), ulps=3, special=SPECIAL),
    Case("divide_no_nan", "math.reciprocal_no_nan", ONE, lambda x: np.where(x == 0, 0, 1 / np.where(x == 0, 1, x)),
         INEXACT,
         domain=away(0.2, 4), ulps=3, elementwise=False),
    Case("multiply", "math.scalar_mul", [(), (3, 4)], np.multiply, dt.NUMERIC, atol=16, elementwise=False),
    Case("add_n", lambda *v: tf.math.add_n(v), [[(2, 3)] * 3, [(2,)], [()] * 2], lambda *v: sum(v[1:], v[0]), dt.REAL,
         ulps=1, atol=4, elementwise=False, id="add_n"),
    Case("add_n", lambda *v: tf.math.accumulate_n(v, shape=[2], tensor_dtype=tf.float64), [(2,)] * 20,
         lambda *v: sum(v[1:], v[0]), dt.float64, atol=16, elementwise=False, id="twenty"),
    Case(("multiply", "add"), lambda a, b, x: tf.math.polyval([a, b, 1.0], x), [(), (), (3, 4)],
         lambda a, b, x: (a * x + b) * x + 1, WIDE, atol=64, elementwise=False, id="polyval"),
    Case("clip_by_value", lambda x, low, high: tf.clip_by_value(x, low, high), [[(3, 4), (), (4,)], [(3,), (3,), ()]],
         lambda x, low, high: np.maximum(np.minimum(x, high), low), dt.REAL, domain=[(-5, 5), (-2, -1), (1, 2)],
         special=(0.5, INF, -INF, NAN), special_ops=(0,), elementwise=False, id="clip_by_value"),
]

# -- comparison, logic and bits -----------------------------------------------------------------------
COMPARISON = [
    Case(name, f"math.{name}", PAIR, oracle, dtypes, domain=(-2, 2), grad=False, special=SPECIAL)
    for name, oracle, dtypes in (
        ("equal", np.equal, dt.ALL), ("not_equal", np.not_equal, dt.ALL), ("less", np.less, dt.REAL),
        ("less_equal", np.less_equal, dt.REAL), ("greater", np.greater, dt.REAL),
        ("greater_equal", np.greater_equal, dt.REAL))
] + [
    Case(name, f"math.{name}", PAIR, getattr(np, name), dt.bool_, grad=False)
    for name in ("logical_and", "logical_or", "logical_xor")
] + [
    Case("logical_not", "math.logical_not", ONE, np.logical_not, dt.bool_, grad=False),
    Case("is_nan", "math.is_nan", ONE, np.isnan, grad=False, special=SPECIAL),
    Case("is_inf", "math.is_inf", ONE, np.isinf, grad=False, special=SPECIAL),
    Case("is_finite", "math.is_finite", ONE, np.isfinite, grad=False, special=SPECIAL),
    Case("bitwise_and", "bitwise.bitwise_and", PAIR, np.bitwise_and, dt.INTEGER, domain=(-100, 100), grad=False),
    Case("bitwise_or", "bitwise.bitwise_or", PAIR, np.bitwise_or, dt.INTEGER, domain=(-100, 100), grad=False),
    Case("bitwise_xor", "bitwise.bitwise_xor", PAIR, np.bitwise_xor, dt.INTEGER, domain=(-100, 100), grad=False),
    Case("invert", "bitwise.invert", ONE, np.invert, dt.INTEGER, domain=(-100, 100), grad=False),
    Case("left_shift", "bitwise.left_shift", PAIR, np.left_shift, dt.INTEGER, domain=[(-100, 100), (0, 7)], grad=False),
    Case("right_shift", "bitwise.right_shift", PAIR, np.right_shift, dt.INTEGER, domain=[(-100, 100), (0, 7)],
         grad=False),
]


# -- functions of one number --------------------------------------------------------------------------
def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def log_sigmoid(x):
    return -np.logaddexp(0, -x)


def one(name, oracle, dtypes=INEXACT, **rest):
    rest.setdefault("ulps", 2)
    rest.setdefault("special", SPECIAL)
    return Case(name, f"math.{name}", ONE, oracle, dtypes, **rest)


def orders(rng, shape):
    """Whole numbers, as floats."""
    return rng.integers(0, 5, shape).astype(np.float64)


UNIT, OUTSIDE = (-0.95, 0.95), (*SPECIAL, 1.0, -1.0, 2.0)
FUNCTIONS = [
    Case("floor", "math.floor", ONE, np.floor, grad=False, special=(*SPECIAL, -0.5)),
    Case("ceil", "math.ceil", ONE, np.ceil, grad=False, special=(*SPECIAL, -0.5)),
    Case("rint", "math.rint", ONE, np.rint, grad=False, special=(*SPECIAL, 0.5, 1.5, -0.5)),
    Case("round", "math.round", ONE, np.round, dt.REAL, grad=False, special=(*SPECIAL, 0.5, 1.5, -0.5)),
    Case("nextafter", "math.nextafter", PAIR, np.nextafter, dt.float64, grad=(0,), special=SPECIAL),
    one("exp", np.exp, special=(*SPECIAL, 90.0, -800.0)),
    Case("masked_exp", "ops.masked_exp", ONE, np.exp, INEXACT, ulps=2, special=(*SPECIAL, 90.0, -800.0)),
    one("expm1", np.expm1),
    one("log", np.log, domain=(0.1, 9), special=(*SPECIAL, 1.0, -1.0)),
    Case("log2", "keras.ops.log2", ONE, np.log2, domain=(0.1, 9), ulps=1, special=(*SPECIAL, 1.0, -1.0)),
    Case("log10", "keras.ops.log10", ONE, np.log10, domain=(0.1, 9), ulps=1, special=(*SPECIAL, 1.0, -1.0)),
    one("log1p", np.log1p, domain=(-0.8, 9), special=(*SPECIAL, -1.0, -2.0)),
    one("sigmoid", sigmoid, ulps=3, special=(0.0, INF, -INF, NAN, 100.0)),
    Case("sigmoid_grad", "ops.sigmoid_grad", [(3, 4)] * 2, lambda g, y: g * np.conj(y * (1 - y)), INEXACT,
         domain=[(-3, 3), (0.1, 0.9)], ulps=4, atol=4),
    one("log_sigmoid", log_sigmoid, dt.FLOATING, special=(0.0, INF, NAN, 100.0)),
    one("softplus", lambda x: np.logaddexp(0, x), dt.FLOATING, special=(0.0, -INF, NAN, 100.0)),
    one("softsign", lambda x: x / (1 + np.abs(x)), dt.FLOATING, grad_domain=away(0.2, 3),
        special=(0.0, -0.0, NAN, 100.0)),
    Case("softsign_grad", "ops.softsign_grad", [(3, 4)] * 2, lambda g, x: g / (1 + np.abs(x)) ** 2,
         grad_domain=[(-3, 3), away(0.2, 3)], ulps=3),
    one("sin", np.sin), one("cos", np.cos), one("tan", np.tan, domain=(-1.3, 1.3)),
    one("asin", np.arcsin, domain=UNIT, special=OUTSIDE), one("acos", np.arccos, domain=UNIT, special=OUTSIDE),
    one("atan", np.arctan, complex_grad=True), one("sinh", np.sinh), one("cosh", np.cosh),
    one("tanh", np.tanh, dt.FLOATING), one("tanh", np.tanh, dt.COMPLEX, ulps=4),
    Case("tanh_grad", "ops.tanh_grad", [(3, 4)] * 2, lambda g, y: g * np.conj(1 - y * y), INEXACT,
         domain=[(-3, 3), (-0.9, 0.9)], ulps=4, atol=4),
    one("asinh", np.arcsinh), one("acosh", np.arccosh, domain=(1.2, 9), special=OUTSIDE),
    one("atanh", np.arctanh, domain=UNIT, special=OUTSIDE),
    Case("atan2", "math.atan2", PAIR, np.arctan2, ulps=2, special=SPECIAL),
    one("erf", sc.erf, dt.FLOATING), one("erfc", sc.erfc, dt.FLOATING, ulps=3),
    one("erfinv", lambda x: np.copysign(sc.erfinv(x), x), dt.FLOATING, domain=UNIT, special=OUTSIDE, ulps=3),
    one("ndtri", sc.ndtri, dt.FLOATING, domain=(0.02, 0.98), special=(0.0, 1.0, -1.0, 2.0, NAN), ulps=4, atol=2),
    Case("ndtri", "math.erfcinv", ONE, sc.erfcinv, domain=(0.05, 1.95), ulps=5, atol=2, half_ulps=2, elementwise=False),
    one("lgamma", lambda x: np.where(x == -INF, INF, sc.gammaln(x)), dt.FLOATING, domain=(0.2, 9),
        special=(*SPECIAL, -1.0), ulps=3, atol=2),
    one("digamma", sc.digamma, dt.FLOATING, domain=(0.2, 9), special=(INF, NAN, -1.0), ulps=3, atol=4),
    Case("polygamma", lambda x: tf.math.polygamma(1, x), ONE, lambda x: sc.polygamma(1, x), domain=(0.2, 9), ulps=4,
         special=(INF, NAN, 0.0), id="trigamma"),
    Case("polygamma", lambda x: tf.math.polygamma(2, x), ONE, lambda x: sc.polygamma(2, x), domain=(0.2, 9), ulps=4,
         grad_domain=(1, 4), id="tetragamma"),
    Case("polygamma_of", "math.polygamma", PAIR, sc.polygamma, domain=[orders, (0.4, 9)], ulps=6, atol=4, half_ulps=2,
         grad=(1,), grad_domain=[orders, (1, 4)], elementwise=False),
    Case("xlogy", "math.xlogy", PAIR, lambda x, y: np.where(x == 0, 0, x * np.log(y)), INEXACT,
         domain=[(-3, 3), (0.2, 4)], ulps=3, atol=2,
         special=(0.0, 1.0, INF, NAN)),
    Case("xlog1py", "math.xlog1py", PAIR, lambda x, y: np.where(x == 0, 0, x * np.log1p(y)), INEXACT,
         domain=[(-3, 3), (-0.7, 4)], ulps=3, atol=2, special=(0.0, 1.0, INF, NAN)),
    Case("xdivy", "math.xdivy", PAIR, lambda x, y: np.where(x == 0, 0, x / y), INEXACT, domain=[(-3, 3), away(0.3, 3)],
         ulps=3, special=(0.0, 1.0, INF, NAN)),
    Case("xdivy", "math.xdivy", PAIR, np.divide, dt.COMPLEX, domain=[(-3, 3), (0.3, 3)], ulps=3),
]


# -- activations --------------------------------------------------------------------------------------
ALPHA, SCALE = 1.6732632423543772, 1.0507009873554805


def gelu(x):
    return x * sc.ndtr(x)


def gelu_slope(x):
    return sc.ndtr(x) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def gelu_tanh(x):
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu_tanh_slope(x):
    t = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    return (1 + t) / 2 + x / 2 * (1 - t * t) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)


def silu_slope(x):
    return sigmoid(x) * (1 + x * (1 - sigmoid(x)))


def act(name, oracle, dtypes=dt.FLOATING, **rest):
    return Case(rest.pop("ops", name), f"nn.{name}", ONE, oracle, dtypes, **rest)


def slope(name, oracle, **rest):
    """The gradient op `name`: a cotangent times a slope."""
    return Case(name, f"ops.{name}", [(3, 4)] * 2, lambda g, x: g * oracle(x), **rest)


KINK = away(0.2, 5)
ACTIVATIONS = [
    act("relu", lambda x: np.maximum(x, 0), dt.REAL, grad_domain=KINK, special=(0.0, INF, -INF, NAN)),
    act("relu6", lambda x: np.clip(x, 0, 6), dt.REAL, domain=(-3, 9), grad_domain=KINK, special=(0.0, INF, -INF, NAN)),
    slope("relu_grad", lambda y: (y > 0) * 1.0, grad_domain=KINK),
    slope("relu6_grad", lambda y: ((y > 0) & (y < 6)) * 1.0, domain=(-3, 9), grad_domain=KINK),
    act("leaky_relu", lambda x: np.where(x > 0, x, x * 0.25), kwargs={"alpha": 0.25},
        oracle_kwargs={}, grad_domain=KINK, special=(0.0, INF, -INF, NAN)),
    Case("leaky_relu", "nn.leaky_relu", [(3, 4), ()], lambda x, a: np.where(x > 0, x, a * x), grad_domain=KINK,
         id="alpha"),
    Case("leaky_relu_grad", "ops.leaky_relu_grad", [(3, 4), (3, 4), ()], lambda g, x, a: np.where(x > 0, g, a * g),
         grad_domain=KINK),
    act("elu", lambda x: np.where(x > 0, x, np.expm1(x)), ulps=2, grad_domain=KINK, special=SPECIAL),
    act("selu", lambda x: SCALE * np.where(x > 0, x, ALPHA * np.expm1(x)), ulps=3, grad_domain=KINK, special=SPECIAL),
    slope("elu_grad", lambda y: np.where(y < 0, y + 1, 1), domain=[(-3, 3), (-0.9, 3)], grad_domain=[(-3, 3), (0.2, 3)],
          ulps=2),
    slope("selu_grad", lambda y: np.where(y < 0, y + SCALE * ALPHA, SCALE), domain=[(-3, 3), (-0.9, 3)],
          grad_domain=[(-3, 3), (-0.9, -0.1)], ulps=2),
    act("gelu", gelu, ulps=3, atol=4, half_ulps=1),
    Case("gelu_tanh", lambda x: tf.nn.gelu(x, approximate=True), ONE, gelu_tanh, ulps=3, atol=4, half_ulps=1,
         id="gelu_tanh"),
    slope("gelu_grad", gelu_slope, ulps=3, atol=8),
    slope("gelu_tanh_grad", gelu_tanh_slope, ulps=3, atol=8),
    act("silu", lambda x: x * sigmoid(x), ulps=3),
    slope("silu_grad", silu_slope, ulps=4, atol=4),
    Case(("sigmoid", "multiply"), lambda x: tf.nn.swish(x, beta=2.0), ONE, lambda x: x * sigmoid(2 * x), WIDE, ulps=4,
         elementwise=False, id="swish beta"),
    Case("relu", "nn.crelu", [(3, 4)], lambda x: np.maximum(np.concatenate([x, -x], -1), 0), grad_domain=KINK,
         elementwise=False, id="crelu"),
]


# -- complex parts and conversion ---------------------------------------------------------------------
def saturated(x, dtype):
    """`x` within the limits of `dtype`, toward zero, NaN as 0."""
    info = np.iinfo(dtype)
    x = np.trunc(np.nan_to_num(x, nan=0.0, posinf=INF, neginf=-INF)) if x.dtype.kind == "f" else x
    return np.array([min(max(v, info.min), info.max) for v in x.ravel().tolist()], object).reshape(x.shape).astype(
        object).astype(dtype) if x.size else x.astype(dtype)


def cast_oracle(target):
    def oracle(x):
        if target.is_bool:
            return x != 0
        if target.is_complex:
            return x.astype(np.complex128)
        x = x.real if x.dtype.kind == "c" else x
        if target.is_integer and x.dtype.kind == "f":
            return saturated(x, target.np)
        return x.astype(target.np).astype(np.float64) if target.is_floating else x.astype(target.np)
    return oracle


def cast_cases(target):
    """Casts to `target`. Finite differences of float64 need a result as precise; what is not has none to compare."""
    exact = target in (dt.float64, dt.complex128)
    fine = frozenset({dt.float64, dt.complex128})
    rest = {"domain": (-100, 100), "result": target, "elementwise": False, "second": "linear",
            "id": f"cast to {target.name}"}
    tested = dt.ALL - {target} if exact or not target.is_differentiable else dt.ALL - {target} - fine
    oracle = cast_oracle(target)
    yield Case("cast", lambda x: tf.cast(x, target), ONE, oracle, tested, grad=target.is_differentiable, **rest)
    if tested != dt.ALL - {target}:
        yield Case("cast", lambda x: tf.cast(tf.stop_gradient(x), target), ONE, oracle, fine, grad=False, **rest)


CONVERSION = [
    *(case for target in sorted(dt.ALL, key=lambda d: d.index) for case in cast_cases(target)),
    *(Case("cast", lambda x, target=target: tf.cast(x, target), [(7,)], cast_oracle(target),
           WIDE, domain=lambda rng, shape: np.array([INF, -INF, NAN, 1e20, -1e20, 300.7, -0.9]), result=target,
           grad=False,
           elementwise=False, layouts="one layout does", id=f"saturating to {target.name}")
      for target in sorted(dt.INTEGER, key=lambda d: d.index)),
    *(Case("clip_by_value", lambda x, target=target: tf.saturate_cast(x, target), [(6,)],
           lambda x, target=target: saturated(x, target.np), (dt.float32, dt.int32, dt.int64),
           domain=lambda rng, shape: np.array([-4e4, 300, -129, 255, 1e9, -7]), result=target, grad=False,
           elementwise=False,
           id=f"saturate_cast to {target.name}")
      for target in (dt.int8, dt.uint8, dt.uint16)),
    *(Case("convert_small", lambda x, small=small: tf.cast(tf.cast(x, small), tf.float32), [(6,)],
           lambda x, small=small: x.astype(small.np).astype(np.float64), (dt.float32, dt.int32), result=dt.float32,
           grad=False, id=f"small {small.name}") for small in sorted(dt.SMALL, key=lambda d: d.index)),
    Case("bitcast", lambda x: tf.bitcast(x, tf.int16), ONE, None, dt.float32, result=dt.int16, grad=False,
         id="bitcast"),
    *(Case("reinterpret", lambda x, to=to: tf.bitcast(x, to), ONE,
           lambda x, have=have, to=to: x.astype(have.np).view(to.np), have, result=to, grad=False,
           id=f"bits of {have.name} as {to.name}")
      for have, to in ((dt.float32, dt.int32), (dt.int32, dt.float32), (dt.float64, dt.uint64), (dt.int64, dt.float64),
                       (dt.int8, dt.uint8), (dt.uint16, dt.int16))),
    Case("where", lambda x, y: tf.where(tf.constant([True, False, True]), x, y), [(2, 3), (3,)],
         lambda x, y: np.where([True, False, True], x, y), dt.ALL, elementwise=False, id="where"),
    Case("where", "where", [[(3, 1), (3, 4), (4,)], [(4,), (), ()]], np.where, dt.FLOATING,
         dtypes_per_operand=[dt.bool_, None, None], elementwise=False, id="where condition"),
    Case("select", "ops.select", [[(), (3, 4), (4,)], [(), (), ()], [(), (2,), (2,)]], np.where, dt.ALL,
         dtypes_per_operand=[dt.bool_, None, None], elementwise=False),
    Case("identity", "identity", ONE, lambda x: x, dt.ALL, elementwise=False),
    Case("stop_gradient", "stop_gradient", ONE, lambda x: x, dt.ALL, grad=False, elementwise=False),
    Case("complex", "complex", PAIR, lambda x, y: x + 1j * y, WIDE,
         result=lambda d: dt.complex64 if d is dt.float32 else dt.complex128),
    Case("real", "math.real", ONE, np.real, dt.COMPLEX, result=lambda d: d.real_dtype),
    Case("imag", "math.imag", ONE, np.imag, dt.COMPLEX, result=lambda d: d.real_dtype),
    Case("conj", "math.conj", ONE, np.conj, dt.COMPLEX),
    Case("angle", "math.angle", ONE, np.angle, dt.FLOATING, grad_domain=away(0.3, 3), half_ulps=1, ulps=1),
    Case("angle", "math.angle", ONE, np.angle, dt.COMPLEX, grad_domain=(0.3, 3), ulps=2,
         result=lambda d: d.real_dtype),
]


# -- clipping by norm ---------------------------------------------------------------------------------
def clipped(x, norm, limit):
    return x * limit / np.maximum(norm, limit)


def globally_clipped(x, y):
    norm = np.sqrt((x * x).sum() + (y * y).sum())
    return clipped(x, norm, 1.5), clipped(y, norm, 1.5), norm


CLIPPING = [
    Case("maximum", lambda x: tf.clip_by_norm(x, 2.0), [[(3, 4)], [()]],
         lambda x: clipped(x, np.sqrt((x * x).sum()), 2.0), WIDE, ulps=6, elementwise=False, id="clip_by_norm"),
    Case("maximum", lambda x, c: tf.clip_by_norm(x, c, axes=[-1]), [(3, 4), (3, 1)],
         lambda x, c: clipped(x, np.sqrt((x * x).sum(-1, keepdims=True)), c), WIDE, domain=[(-3, 3), (1, 2)], ulps=6,
         elementwise=False, id="clip_by_norm axes"),
    Case("maximum", lambda x: clip_by_average_norm(x, 0.25), ONE,
         lambda x: clipped(x, np.sqrt((x * x).sum()) / x.size, 0.25), WIDE, ulps=6, elementwise=False,
         id="clip_by_average_norm"),
    Case("maximum", lambda x, y: tf.clip_by_global_norm([x, y], 1.5), [(3, 4), (2,)], globally_clipped, WIDE, ulps=6,
         elementwise=False, id="clip_by_global_norm"),
]

CASES = [*ARITHMETIC, *COMPARISON, *FUNCTIONS, *ACTIVATIONS, *CONVERSION, *CLIPPING]


# -- errors -------------------------------------------------------------------------------------------
F, G, N, B = tf.constant([1.0, 2.0]), tf.constant([1.0, 2.0, 3.0]), tf.constant([1, 2]), tf.constant([True, False])
D = tf.constant([1.0, 2.0], tf.float64)
ERRORS = [
    *(Bad(f"{name}: dtypes", lambda fn=fn: fn(F, D), INVALID, "float32 and float64") for name, fn in (
        ("add", tf.add), ("pow", tf.pow), ("less", tf.less), ("equal", tf.equal), ("maximum", tf.maximum),
        ("atan2", tf.atan2))),
    *(Bad(f"{name}: shapes", lambda fn=fn: fn(F, G), INVALID,
          rf"{name}: Incompatible shapes: \[2\] and \[3\] do not broadcast")
      for name, fn in (("subtract", tf.subtract), ("multiply", tf.multiply), ("divide", tf.divide),
      ("minimum", tf.minimum))),
    Bad("add: bool", lambda: tf.add(B, B), INVALID, "add: x has dtype bool; expected"),
    Bad("exp: integer", lambda: tf.exp(N), INVALID, "exp: x has dtype int32; expected"),
    Bad("less: complex", lambda: tf.less(tf.complex(1.0, 2.0), 1.0), INVALID, "less: x has dtype complex64"),
    Bad("logical_and: float", lambda: tf.logical_and(F, F), INVALID, "logical_and: x has dtype float32"),
    Bad("bitwise_and: float", lambda: tf.bitwise.bitwise_and(F, F), INVALID, "bitwise_and: x has dtype float32"),
    Bad("negative: unsigned", lambda: tf.negative(tf.constant([1], tf.uint8)), INVALID, "negative: x has dtype uint8"),
    Bad("complex: half", lambda: tf.complex(tf.cast(F, tf.float16), tf.cast(F, tf.float16)), INVALID,
        "complex: real has"),
    *(Bad(f"{name}: zero", lambda fn=fn: fn(N, tf.constant([1, 0])), INVALID, "Integer division by zero") for name,
          fn in (
        ("floordiv", tf.math.floordiv), ("floormod", tf.math.floormod), ("truncatediv", tf.truncatediv),
        ("truncatemod", tf.truncatemod))),
    Bad("pow: negative", lambda: tf.pow(N, -1), INVALID, "Integers to negative integer powers are not allowed"),
    Bad("where: condition", lambda: tf.where(F, F, F), INVALID, "where: condition has dtype float32; expected bool"),
    Bad("where: branches", lambda: tf.where(B, F, N), INVALID, "float32 and int32"),
    Bad("cast: string", lambda: tf.cast("a", tf.int32), INVALID, "cast: x has dtype string"),
    Bad("cast: to string", lambda: tf.cast(F, tf.string), INVALID, "cast: cannot convert to string"),
    Bad("cast: no dtype", lambda: tf.cast(F, "float31"), TypeError, "float31"),
    Bad("bitcast: size", lambda: tf.bitcast(tf.constant([1, 2, 3], tf.uint8), tf.int32), INVALID, "must have size 4"),
    Bad("clip_by_value: bounds", lambda: tf.clip_by_value(F[:1], F, 3.0), INVALID,
        "bounds must broadcast to the shape"),
    Bad("add_n: shapes", lambda: tf.add_n([F, G]), INVALID, "add_n: shapes differ"),
    Bad("add_n: nothing", lambda: tf.add_n([]), ValueError, "add_n: inputs must hold at least one"),
    Bad("accumulate_n: shape", lambda: tf.math.accumulate_n([F], shape=[3]), ValueError, "expected"),
    Bad("scalar_mul: rank", lambda: tf.scalar_mul(F, F), ValueError, "scalar_mul: scalar must have rank 0"),
    Bad("polygamma: order", lambda: tf.math.polygamma(0.5, F), ValueError, "polygamma: a must be a whole number"),
    Bad("clip_by_global_norm: no list", lambda: tf.clip_by_global_norm(F, 1.0), TypeError,
        "t_list should be a sequence"),
]
