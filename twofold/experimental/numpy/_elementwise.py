"""Functions of one tensor, element by element; in a table, with what each does with integers and bools."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.api import public
from twofold._ops import numpy_elementwise as _shared
from twofold._ops.math_numpy import cbrt as _cbrt
from twofold._ops.math_numpy import log2 as _log2
from twofold._ops.math_numpy import log10 as _log10

from ._rules import default_float, float_kind, meeting, promoted, tensor

__all__ = [
    "abs", "absolute", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "around", "bitwise_not",
    "cbrt", "ceil", "conj", "conjugate", "cos", "cosh", "deg2rad", "exp", "exp2", "expm1", "fabs", "fix", "floor",
    "imag", "iscomplex", "iscomplexobj", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "isrealobj",
    "log", "log10", "log1p", "log2", "logical_not", "negative", "positive", "rad2deg", "real", "reciprocal", "round",
    "sign", "signbit", "sin", "sinc", "sinh", "sqrt", "square", "tan", "tanh",
]


def floats(x: Any) -> Any:
    """A value as a floating tensor: integers and bools are of the default float."""
    return promoted([x], float_kind(meeting(x)))[0]


def _function(name: str, compute: Callable[[Any], Any], text: str, x: Any, y: str, as_float: bool) -> Any:
    """A function of one tensor."""
    def function(x: Any) -> Any:
        return compute(floats(x) if as_float else tensor(x))
    what = "; integers and bools count as floats" if as_float else ""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{text}

    Args:
        x: a tensor, array, number or list{what}.

    >>> import twofold as tf
    >>> tf.experimental.numpy.{name}({x}).numpy().tolist()
    {y}
    """
    return public(function)


def _floats(name: str, compute: Callable[[Any], Any], text: str, x: Any, y: str) -> Any:
    return _function(name, compute, text, x, y, True)


def _any(name: str, compute: Callable[[Any], Any], text: str, x: Any, y: str) -> Any:
    return _function(name, compute, text, x, y, False)


def _reciprocal(x: Any) -> Any:
    return tf.math.reciprocal(x) if not x.dtype.is_integer else tf.math.floordiv(tf.ones_like(x), x)


def _logarithm(compute: Callable[[Any], Any], base: float) -> Callable[[Any], Any]:
    """A logarithm that is an op for real numbers."""
    return lambda x: tf.math.log(x) / _shared.constant(math.log(base), x) if x.dtype.is_complex else compute(x)


cos = _floats("cos", tf.cos, "The cosine.", 0, "1.0")
cosh = _floats("cosh", tf.cosh, "The hyperbolic cosine.", 0, "1.0")
sin = _floats("sin", tf.sin, "The sine.", 0, "0.0")
sinh = _floats("sinh", tf.sinh, "The hyperbolic sine.", 0, "0.0")
tan = _floats("tan", tf.tan, "The tangent.", 0, "0.0")
tanh = _floats("tanh", tf.tanh, "The hyperbolic tangent.", 0, "0.0")
arccos = _floats("arccos", tf.acos, "The angle of a cosine, from 0 to pi.", 1, "0.0")
arccosh = _floats("arccosh", tf.acosh, "The inverse of `cosh`, for numbers from 1.", 1, "0.0")
arcsin = _floats("arcsin", tf.asin, "The angle of a sine, from -pi/2 to pi/2.", 0, "0.0")
arcsinh = _floats("arcsinh", tf.asinh, "The inverse of `sinh`.", 0, "0.0")
arctan = _floats("arctan", tf.atan, "The angle of a tangent, from -pi/2 to pi/2.", 0, "0.0")
arctanh = _floats("arctanh", tf.atanh, "The inverse of `tanh`, for numbers between -1 and 1.", 0, "0.0")
exp = _floats("exp", tf.exp, "The exponential function.", 0, "1.0")
exp2 = _floats("exp2", _shared.exp2, "Powers of two.", 3, "8.0")
expm1 = _floats("expm1", tf.math.expm1, "`exp(x) - 1`, exact for small numbers.", 0, "0.0")
log = _floats("log", tf.math.log, "The natural logarithm.", 1, "0.0")
log1p = _floats("log1p", tf.math.log1p, "`log(1 + x)`, exact for small numbers.", 0, "0.0")
log2 = _floats("log2", _logarithm(_log2, 2.0), "The logarithm to base 2.", 8, "3.0")
log10 = _floats("log10", _logarithm(_log10, 10.0), "The logarithm to base 10.", 100, "2.0")
sqrt = _floats("sqrt", tf.sqrt, "The square root.", 9, "3.0")
cbrt = _floats("cbrt", _cbrt, "The cube root, negative for negative numbers.", -27, "-3.0")
ceil = _floats("ceil", tf.math.ceil, "The next whole number from there up.", 1.5, "2.0")
floor = _floats("floor", tf.floor, "The next whole number from there down.", 1.5, "1.0")
fix = _floats("fix", _shared.trunc, "Each element without what is behind its point.", -1.5, "-1.0")
deg2rad = _floats("deg2rad", _shared.deg2rad, "Degrees as radians.", 0, "0.0")
rad2deg = _floats("rad2deg", _shared.rad2deg, "Radians as degrees.", 0, "0.0")
sinc = _floats("sinc", _shared.sinc, "`sin(pi x) / (pi x)`, 1 at 0.", 0, "1.0")
fabs = _floats("fabs", tf.abs, "The distance from 0, as a floating tensor.", -2, "2.0")
isfinite = _any("isfinite", _shared.question(tf.math.is_finite, True),
                "Whether each element is neither infinite nor NaN.", '[1.0, float("nan")]', "[True, False]")
isinf = _any("isinf", _shared.question(tf.math.is_inf), "Whether each element is infinite.", '[1.0, float("inf")]',
             "[False, True]")
isnan = _any("isnan", _shared.question(tf.math.is_nan), "Whether each element is NaN.", '[1.0, float("nan")]',
             "[False, True]")
isneginf = _any("isneginf", _shared.question(_shared.negative_infinity), "Whether each element is minus infinity.",
                '[-float("inf"), float("inf")]', "[True, False]")
isposinf = _any("isposinf", _shared.question(_shared.positive_infinity), "Whether each element is plus infinity.",
                '[-float("inf"), float("inf")]', "[False, True]")
isreal = _any("isreal", _shared.is_real, "Whether each element has no imaginary part.", "[1 + 0j, 1j]",
              "[True, False]")
iscomplex = _any("iscomplex", lambda x: tf.logical_not(_shared.is_real(x)),
                 "Whether each element has an imaginary part.", "[1 + 0j, 1j]", "[False, True]")
abs = _any("abs", _shared.absolute, "The distance of each element from 0; bools stay as they are.", [-2, 3], "[2, 3]")
absolute = _any("absolute", _shared.absolute, "The distance of each element from 0; the same as `abs`.", [-2, 3],
                "[2, 3]")
negative = _any("negative", tf.negative, "Minus each element.", [-2, 3], "[2, -3]")
positive = _any("positive", tf.identity, "The same elements.", [-2, 3], "[-2, 3]")
reciprocal = _any("reciprocal", _reciprocal, "One over each element, of integers its whole part.", [4.0, 0.5],
                  "[0.25, 2.0]")
square = _any("square", tf.square, "Each element times itself.", [-2, 3], "[4, 9]")
bitwise_not = _any("bitwise_not", _shared.inverted, "Each integer with all its bits turned; of bools, the other one.",
                   [0, 5], "[-1, -6]")
conj = _any("conj", tf.math.conj, "Each element with minus its imaginary part.", [1 + 2j], "[(1-2j)]")
conjugate = _any("conjugate", tf.math.conj, "Each element with minus its imaginary part; the same as `conj`.", [1 + 2j],
                 "[(1-2j)]")
real = _any("real", tf.math.real, "The real part of each element.", [1 + 2j], "[1.0]")
imag = _any("imag", _shared.imag, "The imaginary part of each element.", [1 + 2j], "[2.0]")
signbit = _any("signbit", _shared.signbit, "Whether the sign of each element is minus; so is that of -0.0.",
               [-2.0, -0.0, 0.0], "[True, True, False]")


@public
def logical_not(x: Any) -> Any:
    """Whether each element is 0 or false.

    >>> import twofold as tf
    >>> tf.experimental.numpy.logical_not([0, 3]).numpy().tolist()
    [True, False]
    """
    return tf.logical_not(tf.cast(tensor(x), tf.bool))


@public
def sign(x: Any, out: Any = None, where: Any = None, **kwargs: Any) -> Any:
    """-1, 0 or 1, as each element is below, at or above 0.

    Args:
        x: a tensor of numbers.
        out, where, kwargs: must be left out.
    Raises:
        ValueError: one of them is given.

    >>> import twofold as tf
    >>> tf.experimental.numpy.sign([-2.0, 0.0, 3.0]).numpy().tolist()
    [-1.0, 0.0, 1.0]
    """
    for name, given in (("out", out), ("where", where), *kwargs.items()):
        if given is not None:
            raise ValueError(f"sign: {name} is not supported; tensors cannot be written to.")
    x = tensor(x)
    return _shared.sign(tf.cast(x, default_float()) if x.dtype.is_bool else x)


@public
def angle(z: Any, deg: bool = False) -> Any:
    """The angle of each complex number, from -pi to pi.

    Args:
        z: a tensor of numbers.
        deg: whether in degrees.

    >>> import twofold as tf
    >>> tf.experimental.numpy.angle([1.0, -1.0], deg=True).numpy().tolist()
    [0.0, 180.0]
    """
    angles = tf.math.angle(floats(z))
    return angles * _shared.constant(180 / math.pi, angles) if deg else angles


@public
def round(a: Any, decimals: int = 0) -> Any:
    """The nearest number with some decimals, halves to the even one.

    Args:
        a: a tensor of numbers.
        decimals: how many places behind the point; before it, if negative.

    >>> import twofold as tf
    >>> tf.experimental.numpy.round([0.5, 1.5, 2.26], 1).numpy().tolist()
    [0.5, 1.5, 2.3]
    """
    x = tensor(a)
    if x.dtype.is_integer and decimals >= 0:
        return x
    return tf.cast(_shared.rounded(floats(x), decimals), x.dtype if not x.dtype.is_bool else default_float())


@public
def around(a: Any, decimals: int = 0) -> Any:
    """The nearest number with some decimals; the same as `round`.

    >>> import twofold as tf
    >>> tf.experimental.numpy.around([0.5, 1.5]).numpy().tolist()
    [0.0, 2.0]
    """
    return round(a, decimals)


@public
def iscomplexobj(x: Any) -> bool:
    """Whether the dtype of a value is one of complex numbers.

    >>> import twofold as tf
    >>> tf.experimental.numpy.iscomplexobj(1 + 0j)
    True
    """
    return tensor(x).dtype.is_complex


@public
def isrealobj(x: Any) -> bool:
    """Whether the dtype of a value is none of complex numbers.

    >>> import twofold as tf
    >>> tf.experimental.numpy.isrealobj(1.0)
    True
    """
    return not iscomplexobj(x)
