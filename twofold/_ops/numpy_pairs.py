"""Functions of two tensors of one dtype, element by element, that NumPy has and `tf.math` has not, or not for bools."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import twofold as tf

from .numpy_elementwise import question

__all__ = ["added", "counted", "gcd", "heaviside", "larger", "lcm", "logs_added", "multiplied", "near", "nextafter",
           "shifted_left", "shifted_right", "smaller"]


def added(x1: Any, x2: Any) -> Any:
    """The sum; bools are joined by or."""
    return tf.logical_or(x1, x2) if x1.dtype.is_bool else tf.add(x1, x2)


def multiplied(x1: Any, x2: Any) -> Any:
    """The product; bools are joined by and."""
    return tf.logical_and(x1, x2) if x1.dtype.is_bool else tf.multiply(x1, x2)


def larger(x1: Any, x2: Any) -> Any:
    """The larger of two elements; NaN if one is."""
    return tf.logical_or(x1, x2) if x1.dtype.is_bool else tf.maximum(x1, x2)


def smaller(x1: Any, x2: Any) -> Any:
    """The smaller of two elements; NaN if one is."""
    return tf.logical_and(x1, x2) if x1.dtype.is_bool else tf.minimum(x1, x2)


def counted(compute: Callable[[Any, Any], Any], dtype: Any = tf.int32) -> Callable[[Any, Any], Any]:
    """A function for which bools are integers."""
    def function(x1: Any, x2: Any) -> Any:
        if x1.dtype.is_bool:
            x1, x2 = tf.cast(x1, dtype), tf.cast(x2, dtype)
        return compute(x1, x2)
    return function


def _exact(x: Any) -> Any:
    return x if x.dtype == tf.float64 else tf.cast(x, tf.float32)


def nextafter(x1: Any, x2: Any) -> Any:
    """The next number from `x1` on towards `x2`, of float32 for smaller dtypes."""
    return tf.cast(tf.math.nextafter(_exact(x1), _exact(x2)), x1.dtype)


def heaviside(x1: Any, x2: Any) -> Any:
    """0 where `x1` is negative, 1 where it is positive, and `x2` where it is 0."""
    return tf.where(x1 < 0, tf.zeros_like(x1), tf.where(x1 > 0, tf.ones_like(x1), x2))


def logs_added(x1: Any, x2: Any, base: float) -> Any:
    """The logarithm of the sum of powers of a base, without overflow."""
    first = x1 >= x2  # of equal operands each is one of the two, and has half of the gradient
    high, low = tf.where(first, x1, x2), tf.where(first, x2, x1)
    same = tf.logical_and(tf.equal(high, low), tf.math.is_inf(high))
    apart = tf.where(same, tf.zeros_like(high), low - high)
    factor = tf.constant(math.log(base), high.dtype)
    return high + tf.math.log1p(tf.exp(apart * factor)) / factor


def _within(x1: Any, x2: Any, shifted: Any) -> Any:
    """What a shift gives, and 0 where it moves all bits out."""
    return tf.where(x2 < tf.constant(8 * x1.dtype.size, x2.dtype), shifted, tf.zeros_like(shifted))


def shifted_left(x1: Any, x2: Any) -> Any:
    """Integers with their bits moved up; 0 where all leave."""
    return _within(x1, x2, tf.bitwise.left_shift(x1, x2))


def shifted_right(x1: Any, x2: Any) -> Any:
    """Integers with their bits moved down, the sign kept; 0 where all leave."""
    shifted = tf.bitwise.right_shift(x1, x2)
    return _within(x1, x2, shifted) if x1.dtype.is_unsigned else shifted


def near(x1: Any, x2: Any, rtol: Any, atol: Any, equal_nan: bool) -> Any:
    """Whether floating or complex numbers are no farther apart than `atol + rtol * abs(x2)`, which are tensors."""
    apart, limit = tf.abs(x1 - x2), atol + rtol * tf.abs(x2)
    close = tf.logical_or(tf.equal(x1, x2), tf.logical_and(question(tf.math.is_finite, True)(x2), apart <= limit))
    is_nan = question(tf.math.is_nan)
    return tf.logical_or(close, tf.logical_and(is_nan(x1), is_nan(x2))) if equal_nan else close


def _whole(x1: Any, x2: Any) -> tuple[Any, Any]:
    if not x1.dtype.is_integer:
        raise TypeError(f"Integers are expected; got dtypes that meet in {x1.dtype.name}.")
    zero = tf.zeros_like(x1 + x2)
    return (zero + x1, zero + x2) if x1.dtype.is_unsigned else (tf.abs(zero + x1), tf.abs(zero + x2))


def _euclid(x1: Any, x2: Any) -> Any:
    """The greatest common divisor of natural numbers: of the second and of what the first leaves over (Euclid)."""
    def step(a: Any, b: Any) -> tuple[Any, Any]:
        zero = tf.equal(b, tf.zeros((), b.dtype))
        return tf.where(zero, a, b), tf.where(zero, b, tf.math.floormod(a, tf.where(zero, tf.ones_like(b), b)))
    return tf.while_loop(lambda a, b: tf.reduce_any(tf.not_equal(b, tf.zeros((), b.dtype))), step, (x1, x2))[0]


def gcd(x1: Any, x2: Any) -> Any:
    """The greatest common divisor of two integers.

    Raises:
        TypeError: they are none.
    """
    return _euclid(*_whole(x1, x2))


def lcm(x1: Any, x2: Any) -> Any:
    """The least common multiple of two integers.

    Raises:
        TypeError: they are none.
    """
    a, b = _whole(x1, x2)
    divisor = _euclid(a, b)
    return tf.math.floordiv(a, tf.maximum(divisor, tf.ones_like(divisor))) * b
