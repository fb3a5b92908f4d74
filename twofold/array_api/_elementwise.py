"""Functions of tensors, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.api import public
from twofold._ops import numpy_elementwise as _one
from twofold._ops import numpy_pairs as _two
from twofold._ops.math_numpy import hypot as _hypot
from twofold._ops.math_numpy import log2 as _log2
from twofold._ops.math_numpy import log10 as _log10
from twofold._ops.numpy_operands import NUMBERS

from ._complex import completed
from ._rules import binary, operand, unary

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj", "copysign", "cos",
    "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater", "greater_equal", "hypot", "imag",
    "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative", "nextafter", "not_equal",
    "positive", "pow", "real", "reciprocal", "remainder", "round", "sign", "signbit", "sin", "sinh", "sqrt", "square",
    "subtract", "tan", "tanh", "trunc",
]


def _whole(compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function for which integers stay as they are."""
    return lambda x: x if x.dtype.is_integer else compute(x)


def _parts(compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of complex numbers by their parts."""
    return lambda x: tf.complex(compute(tf.math.real(x)), compute(tf.math.imag(x))) if x.dtype.is_complex else (
        compute(x))


def _logarithm(compute: Callable[[Any], Any], base: float) -> Callable[[Any], Any]:
    return lambda x: tf.math.log(x) / _one.constant(math.log(base), x) if x.dtype.is_complex else compute(x)


def _sign(x: Any) -> Any:
    if x.dtype.is_floating:
        return tf.where(tf.equal(x, 0), tf.zeros_like(x), tf.sign(x))  # which is +0 for -0, too
    if not x.dtype.is_complex:
        return _one.sign(x)
    size = tf.abs(x)
    return tf.where(tf.equal(size, 0), tf.zeros_like(x), x / tf.cast(tf.where(tf.equal(size, 0), 1, size), x.dtype))


def _bits(compute: Callable[[Any, Any], Any], plain: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x1, x2: plain(x1, x2) if x1.dtype.is_bool else compute(x1, x2)


def _copysign(x1: Any, x2: Any) -> Any:
    size = tf.abs(x1)
    return tf.where(_one.signbit(x2), -size, size)


def _remainder(x1: Any, x2: Any) -> Any:
    """What is left by division, a zero with the sign of `x2`, too."""
    left = tf.math.floormod(x1, x2)
    return tf.where(tf.equal(left, 0), _copysign(left, x2), left) if left.dtype.is_floating else left


def _negative(x: Any) -> Any:
    return tf.zeros((), x.dtype) - x if x.dtype.is_unsigned else tf.negative(x)


def _conj(x: Any) -> Any:
    return tf.math.conj(x) if x.dtype.is_complex else x


abs = unary("abs", _one.absolute, "The distance of each element from 0.", [-2, 3], "[2, 3]")
acos = unary("acos", completed("acos", tf.acos), "The angle of a cosine, from 0 to pi.", 1.0, "0.0")
acosh = unary("acosh", completed("acosh", tf.acosh), "The inverse of `cosh`, for numbers from 1.", 1.0, "0.0")
asin = unary("asin", tf.asin, "The angle of a sine, from -pi/2 to pi/2.", 0.0, "0.0")
asinh = unary("asinh", completed("asinh", tf.asinh), "The inverse of `sinh`.", 0.0, "0.0")
atan = unary("atan", tf.atan, "The angle of a tangent, from -pi/2 to pi/2.", 0.0, "0.0")
atanh = unary("atanh", completed("atanh", tf.atanh), "The inverse of `tanh`, for numbers between -1 and 1.", 0.0, "0.0")
cos = unary("cos", tf.cos, "The cosine.", 0.0, "1.0")
cosh = unary("cosh", completed("cosh", tf.cosh), "The hyperbolic cosine.", 0.0, "1.0")
sin = unary("sin", tf.sin, "The sine.", 0.0, "0.0")
sinh = unary("sinh", completed("sinh", tf.sinh), "The hyperbolic sine.", 0.0, "0.0")
tan = unary("tan", tf.tan, "The tangent.", 0.0, "0.0")
tanh = unary("tanh", completed("tanh", tf.tanh), "The hyperbolic tangent.", 0.0, "0.0")
exp = unary("exp", completed("exp", tf.exp), "The exponential function.", 0.0, "1.0")
expm1 = unary("expm1", completed("expm1", tf.math.expm1), "`exp(x) - 1`, exact for small numbers.", 0.0, "0.0")
log = unary("log", tf.math.log, "The natural logarithm.", 1.0, "0.0")
log1p = unary("log1p", tf.math.log1p, "`log(1 + x)`, exact for small numbers.", 0.0, "0.0")
log2 = unary("log2", _logarithm(_log2, 2.0), "The logarithm to base 2.", 8.0, "3.0")
log10 = unary("log10", _logarithm(_log10, 10.0), "The logarithm to base 10.", 100.0, "2.0")
sqrt = unary("sqrt", tf.sqrt, "The square root.", 9.0, "3.0")
square = unary("square", tf.square, "Each element times itself.", [-2, 3], "[4, 9]")
reciprocal = unary("reciprocal", tf.math.reciprocal, "One over each element.", 4.0, "0.25")
ceil = unary("ceil", _whole(tf.math.ceil), "The next whole number from there up.", 1.5, "2.0")
floor = unary("floor", _whole(tf.floor), "The next whole number from there down.", 1.5, "1.0")
trunc = unary("trunc", _one.trunc, "Each element without what is behind its point.", -1.5, "-1.0")
round = unary("round", _whole(_parts(tf.round)), "The nearest whole number, of two the even one.", [0.5, 1.5],
              "[0.0, 2.0]")
sign = unary("sign", _sign, "-1, 0 or 1; of complex numbers, the one of size 1 in their direction.", [-2.0, 0.0, 3.0],
             "[-1.0, 0.0, 1.0]")
signbit = unary("signbit", _one.signbit, "Whether the sign of each element is minus; so is that of -0.0.",
                [-2.0, -0.0, 0.0], "[True, True, False]")
negative = unary("negative", _negative, "Minus each element; of unsigned integers, modulo their range.", [-2, 3],
                 "[2, -3]")
positive = unary("positive", tf.identity, "The same elements.", [-2, 3], "[-2, 3]")
conj = unary("conj", _conj, "Each element with minus its imaginary part.", [1 + 2j], "[(1-2j)]")
real = unary("real", tf.math.real, "The real part of each element.", [1 + 2j], "[1.0]")
imag = unary("imag", _one.imag, "The imaginary part of each element.", [1 + 2j], "[2.0]")
isfinite = unary("isfinite", _one.question(tf.math.is_finite, True), "Whether elements are neither infinite nor NaN.",
                 '[1.0, float("nan")]', "[True, False]")
isinf = unary("isinf", _one.question(tf.math.is_inf), "Whether each element is infinite.", '[1.0, float("inf")]',
              "[False, True]")
isnan = unary("isnan", _one.question(tf.math.is_nan), "Whether each element is NaN.", '[1.0, float("nan")]',
              "[False, True]")
logical_not = unary("logical_not", tf.logical_not, "Whether each element is false.", [True, False], "[False, True]")
bitwise_invert = unary("bitwise_invert", _one.inverted, "Each integer with all its bits turned.", [0, 5], "[-1, -6]")

add = binary("add", tf.add, "The sum of two tensors.", [1, 2], 3, "[4, 5]")
subtract = binary("subtract", tf.subtract, "`x1` less `x2`.", [1, 2], 3, "[-2, -1]")
multiply = binary("multiply", tf.multiply, "The product of two tensors.", [1, 2], 3, "[3, 6]")
divide = binary("divide", tf.divide, "`x1` over `x2`, of floats.", [1.0, 3.0], 2, "[0.5, 1.5]")
floor_divide = binary("floor_divide", tf.math.floordiv, "The whole part, from there down, of `x1 / x2`.", [5, -5], 3,
                      "[1, -2]")
remainder = binary("remainder", _remainder, "What is left of `x1` by division by `x2`, with the sign of `x2`.",
                   [5, -5], 3, "[2, 1]")
pow = binary("pow", tf.pow, "`x1` to the power of `x2`.", [2, 3], 2, "[4, 9]")
maximum = binary("maximum", _two.larger, "The larger of two elements; NaN if one is.", [1, 4], 2, "[2, 4]")
minimum = binary("minimum", _two.smaller, "The smaller of two elements; NaN if one is.", [1, 4], 2, "[1, 2]")
atan2 = binary("atan2", tf.atan2, "The angle of the point at (`x2`, `x1`), from -pi to pi.", [0.0], 1.0, "[0.0]")
hypot = binary("hypot", _hypot, "The length of the hypotenuse over two sides.", [3.0], 4.0, "[5.0]")
copysign = binary("copysign", _copysign, "Numbers of the size of `x1` and the sign of `x2`.", [1.0, -2.0], -3.0,
                  "[-1.0, -2.0]")
logaddexp = binary("logaddexp", lambda x1, x2: _two.logs_added(x1, x2, math.e),
                   "The logarithm of `exp(x1) + exp(x2)`, without overflow.", [1.0], -1000.0, "[1.0]")
nextafter = binary("nextafter", _two.nextafter, "The next number from `x1` on towards `x2`.", [1.0], 1.0, "[1.0]")
equal = binary("equal", tf.equal, "Whether two elements are equal.", [1, 2], 2, "[False, True]")
not_equal = binary("not_equal", tf.not_equal, "Whether two elements differ.", [1, 2], 2, "[True, False]")
less = binary("less", tf.less, "Whether `x1` is below `x2`.", [1, 2], 2, "[True, False]")
less_equal = binary("less_equal", tf.less_equal, "Whether `x1` is not above `x2`.", [1, 3], 2, "[True, False]")
greater = binary("greater", tf.greater, "Whether `x1` is above `x2`.", [1, 3], 2, "[False, True]")
greater_equal = binary("greater_equal", tf.greater_equal, "Whether `x1` is not below `x2`.", [1, 3], 2,
                       "[False, True]")
logical_and = binary("logical_and", tf.logical_and, "Whether both are true.", [True, False], True, "[True, False]")
logical_or = binary("logical_or", tf.logical_or, "Whether one is true, or both.", [True, False], False,
                    "[True, False]")
logical_xor = binary("logical_xor", tf.math.logical_xor, "Whether one is true, but not both.", [True, False], True,
                     "[False, True]")
bitwise_and = binary("bitwise_and", _bits(tf.bitwise.bitwise_and, tf.logical_and), "The bits that are in both.", [6],
                     3, "[2]")
bitwise_or = binary("bitwise_or", _bits(tf.bitwise.bitwise_or, tf.logical_or), "The bits that are in one or both.",
                    [6], 3, "[7]")
bitwise_xor = binary("bitwise_xor", _bits(tf.bitwise.bitwise_xor, tf.not_equal),
                     "The bits that are in one but not both.", [6], 3, "[5]")
bitwise_left_shift = binary("bitwise_left_shift", _two.shifted_left, "`x1` with its bits moved up by `x2` places.",
                            [6], 3, "[48]")
bitwise_right_shift = binary("bitwise_right_shift", _two.shifted_right,
                             "`x1` with its bits moved down by `x2` places, the sign kept.", [6], 1, "[3]")


@public
def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Each element, or the nearest of two bounds where it is beyond them.

    Args:
        x: a tensor of real numbers.
        min, max: numbers or tensors of the same kind, which broadcast; None for no bound.
    Returns:
        A tensor of x's dtype.

    >>> import twofold.array_api as xp
    >>> xp.clip(xp.asarray([-2.0, 0.5, 3.0]), -1, 1).numpy().tolist()
    [-1.0, 0.5, 1.0]
    """
    x = operand(x)
    for bound, nearest in ((min, tf.maximum), (max, tf.minimum)):
        if bound is not None:
            bound = tf.constant(bound, x.dtype) if isinstance(bound, NUMBERS) else tf.cast(operand(bound), x.dtype)
            x = nearest(x, bound)
    return x
