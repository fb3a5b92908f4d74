"""Functions of one tensor, element by element, that NumPy has and `tf.math` has not; their dtypes are as given."""

from __future__ import annotations

import math
from typing import Any

import twofold as tf

__all__ = ["absolute", "constant", "deg2rad", "exp2", "imag", "inverted", "is_real", "negative_infinity",
           "positive_infinity", "question", "rad2deg", "rounded", "sign", "signbit", "sinc", "trunc"]


def constant(value: float, like: Any) -> Any:
    """A number in the dtype of a tensor."""
    return tf.constant(value, like.dtype)


def exp2(x: Any) -> Any:
    """Two to the power of a floating tensor."""
    return tf.pow(constant(2.0, x), x)


def deg2rad(x: Any) -> Any:
    """Degrees as radians."""
    return x * constant(math.pi / 180, x)


def rad2deg(x: Any) -> Any:
    """Radians as degrees."""
    return x * constant(180 / math.pi, x)


def sinc(x: Any) -> Any:
    """`sin(pi x) / (pi x)`, 1 at 0."""
    turned = constant(math.pi, x) * tf.where(tf.equal(x, 0), tf.ones_like(x), x)
    return tf.where(tf.equal(x, 0), tf.ones_like(x), tf.sin(turned) / turned)


def absolute(x: Any) -> Any:
    """The distance of each element from 0; bools stay as they are."""
    return x if x.dtype.is_bool else tf.abs(x)


def sign(x: Any) -> Any:
    """-1, 0 or 1, also of unsigned integers."""
    if x.dtype.is_unsigned:
        return tf.cast(tf.not_equal(x, tf.zeros((), x.dtype)), x.dtype)
    return tf.sign(x)


def signbit(x: Any) -> Any:
    """Whether the sign of each element is minus; so is that of -0.0."""
    if not x.dtype.is_floating:
        return tf.zeros_like(x, tf.bool) if x.dtype.is_bool or x.dtype.is_unsigned else x < tf.zeros((), x.dtype)
    bits = {2: tf.int16, 4: tf.int32, 8: tf.int64}[x.dtype.size]
    return tf.bitcast(x, bits) < tf.zeros((), bits)


def trunc(x: Any) -> Any:
    """Each element without what is behind its point; integers stay as they are."""
    return tf.where(x < tf.zeros((), x.dtype), tf.math.ceil(x), tf.floor(x)) if x.dtype.is_floating else x


def rounded(x: Any, decimals: int) -> Any:
    """The nearest floating number with some decimals, halves to the even one."""
    if not decimals:
        return tf.round(x)
    factor = constant(10.0 ** decimals, x)
    return tf.round(x * factor) / factor


def question(compute: Any, otherwise: bool = False) -> Any:
    """A question about floating numbers, to which all others have one answer; of complex ones about both parts."""
    def function(x: Any) -> Any:
        if x.dtype.is_complex:
            join = tf.logical_and if otherwise else tf.logical_or
            return join(compute(tf.math.real(x)), compute(tf.math.imag(x)))
        if x.dtype.is_floating:
            return compute(x)
        return tf.ones_like(x, tf.bool) if otherwise else tf.zeros_like(x, tf.bool)
    return function


def positive_infinity(x: Any) -> Any:
    """Whether each floating number is plus infinity."""
    return tf.equal(x, constant(math.inf, x))


def negative_infinity(x: Any) -> Any:
    """Whether each floating number is minus infinity."""
    return tf.equal(x, constant(-math.inf, x))


def is_real(x: Any) -> Any:
    """Whether each element has no imaginary part."""
    return tf.equal(tf.math.imag(x), 0) if x.dtype.is_complex else tf.ones_like(x, tf.bool)


def inverted(x: Any) -> Any:
    """Each integer with all its bits turned; of bools, the other one."""
    return tf.logical_not(x) if x.dtype.is_bool else tf.bitwise.invert(x)


def imag(x: Any) -> Any:
    """The imaginary part, which is 0 for real numbers."""
    return tf.math.imag(x) if x.dtype.is_complex else tf.zeros_like(x)
