"""Functions of two tensors, element by element: their shapes broadcast, and their dtypes meet first (`_rules.py`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.api import public
from twofold._ops import numpy_pairs as _shared
from twofold._ops.math_numpy import hypot as _hypot

from ._rules import default_float, floating, same, tensor

__all__ = [
    "add", "allclose", "arctan2", "array_equal", "bitwise_and", "bitwise_or", "bitwise_xor", "clip", "divide", "divmod",
    "equal", "float_power", "floor_divide", "gcd", "greater", "greater_equal", "heaviside", "hypot", "isclose", "lcm",
    "less", "less_equal", "logaddexp", "logaddexp2", "logical_and", "logical_or", "logical_xor", "maximum", "minimum",
    "mod", "multiply", "nextafter", "not_equal", "power", "remainder", "subtract", "true_divide",
]

_Pair = Callable[[Any, Any], Any]


def _pair(name: str, compute: _Pair, text: str, x1: Any, x2: Any, y: Any, as_float: bool = False) -> _Pair:
    """A function of two tensors in the dtype in which they meet."""
    def function(x1: Any, x2: Any) -> Any:
        return compute(*(floating(x1, x2) if as_float else same(x1, x2)))
    what = "; integers and bools count as floats" if as_float else ""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{text}

    Args:
        x1, x2: tensors, arrays, numbers or lists, whose shapes broadcast{what}.

    >>> import twofold as tf
    >>> tf.experimental.numpy.{name}({x1}, {x2}).numpy().tolist()
    {y}
    """
    return public(function)


def _quotient(x1: Any, x2: Any) -> Any:
    if x1.dtype.is_bool:
        x1, x2 = tf.cast(x1, default_float()), tf.cast(x2, default_float())
    return tf.divide(x1, x2)


def _counted(compute: _Pair) -> _Pair:
    """A function for which bools are int8."""
    return _shared.counted(compute, tf.int8)


def _bits(compute: _Pair, plain: _Pair) -> _Pair:
    return lambda x1, x2: plain(x1, x2) if x1.dtype.is_bool else compute(x1, x2)


add = _pair("add", _shared.added, "The sum of two tensors; bools are joined by or.", [1, 2], 0.5, [1.5, 2.5])
subtract = _pair("subtract", tf.subtract, "`x1` less `x2`.", [1, 2], 3, [-2, -1])
multiply = _pair("multiply", _shared.multiplied, "The product of two tensors; bools are joined by and.", [1, 2], 0.5,
                 [0.5, 1.0])
divide = _pair("divide", _quotient, "`x1` over `x2`; integers count as floats.", [1, 3], 2, [0.5, 1.5])
true_divide = _pair("true_divide", _quotient, "`x1` over `x2`; the same as `divide`.", [1, 3], 2, [0.5, 1.5])
maximum = _pair("maximum", _shared.larger, "The larger of two elements; NaN if one is.", [1, 4], 2, [2, 4])
minimum = _pair("minimum", _shared.smaller, "The smaller of two elements; NaN if one is.", [1, 4], 2, [1, 2])
floor_divide = _pair("floor_divide", _counted(tf.math.floordiv), "The whole part, from there down, of `x1 / x2`.",
                     [5, -5], 3, [1, -2])
mod = _pair("mod", _counted(tf.math.floormod), "What is left of `x1` by division by `x2`, with the sign of `x2`.",
            [5, -5], 3, [2, 1])
remainder = _pair("remainder", _counted(tf.math.floormod), "What is left of `x1` by division by `x2`, as `mod`.",
                  [5, -5], 3, [2, 1])
power = _pair("power", tf.pow, "`x1` to the power of `x2`.", [2, 3], 2, [4, 9])
float_power = _pair("float_power", tf.pow, "`x1` to the power of `x2`; the same as `power`.", [2.0, 3.0], 2, [4.0, 9.0])
equal = _pair("equal", tf.equal, "Whether two elements are equal.", [1, 2], 2.0, [False, True])
not_equal = _pair("not_equal", tf.not_equal, "Whether two elements differ.", [1, 2], 2.0, [True, False])
less = _pair("less", _counted(tf.less), "Whether `x1` is below `x2`.", [1, 2], 2.0, [True, False])
less_equal = _pair("less_equal", _counted(tf.less_equal), "Whether `x1` is not above `x2`.", [1, 3], 2.0,
                   [True, False])
greater = _pair("greater", _counted(tf.greater), "Whether `x1` is above `x2`.", [1, 3], 2.0, [False, True])
greater_equal = _pair("greater_equal", _counted(tf.greater_equal), "Whether `x1` is not below `x2`.", [1, 3], 2.0,
                      [False, True])
bitwise_and = _pair("bitwise_and", _bits(tf.bitwise.bitwise_and, tf.logical_and), "The bits that are in both.", [6], 3,
                    [2])
bitwise_or = _pair("bitwise_or", _bits(tf.bitwise.bitwise_or, tf.logical_or), "The bits that are in one or both.", [6],
                   3, [7])
bitwise_xor = _pair("bitwise_xor", _bits(tf.bitwise.bitwise_xor, tf.not_equal),
                    "The bits that are in one but not both.", [6], 3, [5])
gcd = _pair("gcd", _shared.gcd, "The greatest common divisor of two integers.", [12, -8], 18, [6, 2])
lcm = _pair("lcm", _shared.lcm, "The least common multiple of two integers.", [4, -6], 6, [12, 6])
arctan2 = _pair("arctan2", tf.atan2, "The angle of the point at (`x2`, `x1`), from -pi to pi.", [0.0], [1.0], [0.0],
                True)
nextafter = _pair("nextafter", _shared.nextafter, "The next number that the dtype has from `x1` on towards `x2`.",
                  [1.0], 1.0, [1.0], True)
heaviside = _pair("heaviside", _shared.heaviside, "0 where `x1` is negative, 1 where it is positive, `x2` at 0.",
                  [-2.0, 0.0, 3.0], 0.5, [0.0, 0.5, 1.0], True)
hypot = _pair("hypot", _hypot, "The length of the hypotenuse over two sides, without overflow on the way.", [3.0], 4.0,
              [5.0], True)
logaddexp = _pair("logaddexp", lambda x1, x2: _shared.logs_added(x1, x2, math.e),
                  "The logarithm of `exp(x1) + exp(x2)`, without overflow.", [1.0], -1000.0, [1.0], True)
logaddexp2 = _pair("logaddexp2", lambda x1, x2: _shared.logs_added(x1, x2, 2.0),
                   "The logarithm to base 2 of `2**x1 + 2**x2`, without overflow.", [1000.0], 1000.0, [1001.0], True)


def _truths(name: str, compute: _Pair, text: str, y: Any) -> _Pair:
    def function(x1: Any, x2: Any) -> Any:
        return compute(tf.cast(tensor(x1), tf.bool), tf.cast(tensor(x2), tf.bool))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{text}

    Args:
        x1, x2: tensors, true where they are not 0, whose shapes broadcast.

    >>> import twofold as tf
    >>> tf.experimental.numpy.{name}([True, False], [1, 1]).numpy().tolist()
    {y}
    """
    return public(function)


logical_and = _truths("logical_and", tf.logical_and, "Whether both are true.", [True, False])
logical_or = _truths("logical_or", tf.logical_or, "Whether one is true, or both.", [True, True])
logical_xor = _truths("logical_xor", tf.math.logical_xor, "Whether one is true, but not both.", [False, True])


@public
def divmod(x1: Any, x2: Any) -> Any:
    """The whole part of a quotient, and what is left: `floor_divide` and `mod`.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.experimental.numpy.divmod([5, -5], 3)]
    [[1, -2], [2, 1]]
    """
    x1, x2 = same(x1, x2)
    return floor_divide(x1, x2), mod(x1, x2)


@public
def clip(a: Any, a_min: Any, a_max: Any) -> Any:
    """Each element, or the nearest of two bounds where it is beyond them.

    Args:
        a: a tensor of numbers.
        a_min, a_max: numbers or tensors, whose shapes broadcast with that of `a`; None for no bound.
    Raises:
        ValueError: there is no bound at all.

    >>> import twofold as tf
    >>> tf.experimental.numpy.clip([-2.0, 0.5, 3.0], -1, 1).numpy().tolist()
    [-1.0, 0.5, 1.0]
    """
    if a_min is None and a_max is None:
        raise ValueError("Not more than one of `a_min` and `a_max` may be `None`.")
    if a_min is None or a_max is None:
        return minimum(a, a_max) if a_min is None else maximum(a, a_min)
    x, low, high = same(a, a_min, a_max)
    return tf.minimum(tf.maximum(x, low), high)


@public
def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Whether two elements are nearly equal: no farther apart than `atol + rtol * abs(b)`.

    Args:
        a, b: tensors whose shapes broadcast.
        rtol, atol: numbers.
        equal_nan: whether NaN is near NaN.

    >>> import twofold as tf
    >>> tf.experimental.numpy.isclose([1.0, 2.0], [1.000001, 2.1]).numpy().tolist()
    [True, False]
    """
    a, b = same(a, b)
    if not (a.dtype.is_floating or a.dtype.is_complex):
        return tf.equal(a, b)
    size = a.dtype.real_dtype
    return _shared.near(a, b, tf.constant(rtol, size), tf.constant(atol, size), equal_nan)


@public
def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Whether all elements of two tensors are nearly equal; arguments as for `isclose`.

    >>> import twofold as tf
    >>> bool(tf.experimental.numpy.allclose([1.0, 2.0], [1.000001, 2.0]))
    True
    """
    return tf.reduce_all(isclose(a, b, rtol, atol, equal_nan))


@public
def array_equal(a1: Any, a2: Any) -> Any:
    """Whether two tensors have one shape and equal elements.

    >>> import twofold as tf
    >>> bool(tf.experimental.numpy.array_equal([1, 2], [1.0, 2.0]))
    True
    """
    a1, a2 = same(a1, a2)
    if not a1.shape.is_compatible_with(a2.shape):
        return tf.constant(False)
    if a1.shape.is_fully_defined() and a2.shape.is_fully_defined():
        return tf.reduce_all(tf.equal(a1, a2))
    alike = tf.reduce_all(tf.equal(tf.shape(a1), tf.shape(a2)))
    return tf.cond(alike, lambda: tf.reduce_all(tf.equal(a1, a2)), lambda: tf.constant(False))
