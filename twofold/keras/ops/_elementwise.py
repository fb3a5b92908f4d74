"""Functions of one tensor, element by element, with NumPy's names.

Those that give floating numbers for all are in a table; integers and bools count as `floatx()` there. The others follow
one by one. Functions of two tensors are `_pairs.py`'s.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._ops import numpy_elementwise as _shared
from twofold._ops.math_numpy import cbrt as _cbrt
from twofold._ops.math_numpy import log2 as _log2
from twofold._ops.math_numpy import log10 as _log10

from ..keras_ops import operation
from ..operands import floating, numeric, tensor, wide

__all__ = [
    "abs", "absolute", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "bitwise_invert",
    "bitwise_not", "cbrt", "ceil", "clip", "conj", "conjugate", "copy", "cos", "cosh", "deg2rad", "exp", "exp2",
    "expm1", "fabs", "floor", "i0", "imag", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "log",
    "log10", "log1p", "log2", "logical_not", "nan_to_num", "negative", "rad2deg", "real", "reciprocal", "round",
    "sign", "signbit", "sin", "sinc", "sinh", "sqrt", "square", "tan", "tanh", "trunc", "view",
]


def _floats(name: str, compute: Callable[[Any], Any], text: str, x: float, y: str,
            prepare: Callable[[Any], Any] = floating) -> Callable[[Any], Any]:
    """A function of a floating tensor."""
    def function(x: Any) -> Any:
        return compute(prepare(x))
    integers = "`floatx()`" + (", int64 as float64" if prepare is wide else "")
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{text}

    Args:
        x: a tensor of numbers; integers and bools count as {integers}.
    Returns:
        A floating tensor of the same shape.

    >>> import twofold as tf
    >>> print("%.4f" % tf.keras.ops.{name}({x}))
    {y}
    """
    return operation("numpy")(function)


#: of I0(x) in powers of x^2 / 4, enough for |x| up to 20
_POWERS = [1 / math.factorial(k) ** 2 for k in range(45)]
#: of exp(-x) sqrt(2 pi x) I0(x) = sum of ((2k)!)^2 / (k!^3 (32 x)^k), its expansion for large x
_INVERSE = [math.factorial(2 * k) ** 2 / (math.factorial(k) ** 3 * 32.0 ** k) for k in range(21)]


def _series(coefficients: list[float], x: Any) -> Any:
    total = _shared.constant(coefficients[-1], x)
    for c in reversed(coefficients[:-1]):
        total = total * x + _shared.constant(c, x)
    return total


def _i0(x: Any) -> Any:
    """By the power series near 0 and the asymptotic one far from it (Abramowitz & Stegun 9.6.12 and 9.7.1)."""
    computed = x if x.dtype == tf.float64 else tf.cast(x, tf.float32)
    size = tf.abs(computed)
    edge = _shared.constant(20.0, size)
    near, far = tf.minimum(size, edge), tf.maximum(size, edge)
    small = _series(_POWERS, near * near / 4)
    # one factor after the other, so that none overflows before the result does
    half = tf.exp(far / 2)
    large = half * (_series(_INVERSE, 1 / far) / tf.sqrt(_shared.constant(2 * math.pi, far) * far)) * half
    return tf.cast(tf.where(size <= edge, small, large), x.dtype)


cos = _floats("cos", tf.cos, "The cosine.", 1.0, "0.5403")
cosh = _floats("cosh", tf.cosh, "The hyperbolic cosine.", 1.0, "1.5431")
sin = _floats("sin", tf.sin, "The sine.", 1.0, "0.8415")
sinh = _floats("sinh", tf.sinh, "The hyperbolic sine.", 1.0, "1.1752")
tan = _floats("tan", tf.tan, "The tangent.", 1.0, "1.5574")
tanh = _floats("tanh", tf.tanh, "The hyperbolic tangent.", 1.0, "0.7616")
arccos = _floats("arccos", tf.acos, "The angle of a cosine, from 0 to pi.", 0.5, "1.0472")
arccosh = _floats("arccosh", tf.acosh, "The inverse of `cosh`, for numbers from 1.", 2.0, "1.3170")
arcsin = _floats("arcsin", tf.asin, "The angle of a sine, from -pi/2 to pi/2.", 0.5, "0.5236")
arcsinh = _floats("arcsinh", tf.asinh, "The inverse of `sinh`.", 2.0, "1.4436")
arctan = _floats("arctan", tf.atan, "The angle of a tangent, from -pi/2 to pi/2.", 2.0, "1.1071")
arctanh = _floats("arctanh", tf.atanh, "The inverse of `tanh`, for numbers between -1 and 1.", 0.5, "0.5493")
exp = _floats("exp", tf.exp, "The exponential function.", 1.0, "2.7183")
expm1 = _floats("expm1", tf.math.expm1, "`exp(x) - 1`, exact for small numbers.", 1.0, "1.7183")
log = _floats("log", tf.math.log, "The natural logarithm.", 2.0, "0.6931")
log1p = _floats("log1p", tf.math.log1p, "`log(1 + x)`, exact for small numbers.", 1.0, "0.6931")
sqrt = _floats("sqrt", tf.sqrt, "The square root.", 2.0, "1.4142")
ceil = _floats("ceil", tf.math.ceil, "The next whole number from there up.", 1.5, "2.0000")
floor = _floats("floor", tf.floor, "The next whole number from there down.", 1.5, "1.0000")
reciprocal = _floats("reciprocal", tf.math.reciprocal, "One over each element.", 4.0, "0.2500")
exp2 = _floats("exp2", _shared.exp2, "Powers of two.", 3.0, "8.0000")
log2 = _floats("log2", _log2, "The logarithm to base 2.", 3.0, "1.5850")
log10 = _floats("log10", _log10, "The logarithm to base 10.", 2.0, "0.3010")
cbrt = _floats("cbrt", _cbrt, "The cube root, negative for negative numbers.", 27.0, "3.0000", wide)
deg2rad = _floats("deg2rad", _shared.deg2rad, "Degrees as radians.", 90.0, "1.5708", wide)
rad2deg = _floats("rad2deg", _shared.rad2deg, "Radians as degrees.", 1.0, "57.2958", wide)
sinc = _floats("sinc", _shared.sinc, "`sin(pi x) / (pi x)`, 1 at 0.", 0.5, "0.6366")
i0 = _floats("i0", _i0, "The modified Bessel function of the first kind, of order 0.", 1.0, "1.2661", wide)
fabs = _floats("fabs", tf.abs, "The distance from 0, as a floating tensor.", -2.0, "2.0000")


@operation("numpy", also="Abs")
def absolute(x: Any) -> Any:
    """The distance of each element from 0; bools stay as they are.

    >>> import twofold as tf
    >>> tf.keras.ops.absolute([-2, 3]).numpy().tolist()
    [2, 3]
    """
    return _shared.absolute(tensor(x))


abs = absolute


@operation("numpy")
def negative(x: Any) -> Any:
    """Minus each element.

    >>> import twofold as tf
    >>> tf.keras.ops.negative([-2, 3]).numpy().tolist()
    [2, -3]
    """
    return tf.negative(tensor(x))


@operation("numpy")
def square(x: Any) -> Any:
    """Each element times itself; bools count as int32.

    >>> import twofold as tf
    >>> tf.keras.ops.square([-2, 3]).numpy().tolist()
    [4, 9]
    """
    return tf.square(numeric(x))


@operation("numpy")
def sign(x: Any) -> Any:
    """-1, 0 or 1, as each element is below, at or above 0.

    >>> import twofold as tf
    >>> tf.keras.ops.sign([-2.0, 0.0, 3.0]).numpy().tolist()
    [-1.0, 0.0, 1.0]
    """
    return _shared.sign(numeric(x))


@operation("numpy")
def signbit(x: Any) -> Any:
    """Whether the sign of each element is minus; so is that of -0.0.

    >>> import twofold as tf
    >>> tf.keras.ops.signbit([-2.0, -0.0, 0.0]).numpy().tolist()
    [True, True, False]
    """
    return _shared.signbit(tensor(x))


@operation("numpy")
def trunc(x: Any) -> Any:
    """Each element without what is behind its point; integers stay as they are.

    >>> import twofold as tf
    >>> tf.keras.ops.trunc([-1.7, 1.7]).numpy().tolist()
    [-1.0, 1.0]
    """
    return _shared.trunc(tensor(x))


@operation("numpy")
def round(x: Any, decimals: int = 0) -> Any:
    """The nearest number with some decimals, halves to the even one.

    Args:
        x: a tensor of numbers.
        decimals: how many places behind the point; before it, if negative.

    >>> import twofold as tf
    >>> tf.keras.ops.round([0.5, 1.5, 2.26], decimals=0).numpy().tolist()
    [0.0, 2.0, 2.0]
    """
    x = numeric(x)
    if x.dtype.is_integer and decimals >= 0:
        return x
    return tf.cast(_shared.rounded(floating(x), decimals), x.dtype)


@operation("numpy", tensors="x")
def clip(x: Any, x_min: Any, x_max: Any) -> Any:
    """Each element, or the nearest of two bounds where it is beyond them; bools count as int32.

    Args:
        x: a tensor of numbers.
        x_min, x_max: numbers or tensors that broadcast to x's shape.
    Returns:
        A tensor of x's dtype.

    >>> import twofold as tf
    >>> tf.keras.ops.clip([-2.0, 0.5, 3.0], -1, 1).numpy().tolist()
    [-1.0, 0.5, 1.0]
    """
    x = numeric(x)
    return tf.minimum(tf.maximum(x, tensor(x_min, x.dtype)), tensor(x_max, x.dtype))


@operation("numpy")
def copy(x: Any) -> Any:
    """The same tensor.

    >>> import twofold as tf
    >>> tf.keras.ops.copy([1, 2]).numpy().tolist()
    [1, 2]
    """
    return tf.identity(tensor(x))


@operation("numpy")
def nan_to_num(x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Any:
    """NaN and infinities replaced by numbers.

    Args:
        x: a tensor.
        nan: for what is not a number.
        posinf, neginf: for the infinities; by default the largest and the smallest number of the dtype.

    >>> import twofold as tf
    >>> tf.keras.ops.nan_to_num([1.0, float("nan"), float("inf")], posinf=9).numpy().tolist()
    [1.0, 0.0, 9.0]
    """
    x = tensor(x)
    if not x.dtype.is_floating:
        return x
    high = tf.constant(x.dtype.max if posinf is None else posinf, x.dtype)
    low = tf.constant(x.dtype.min if neginf is None else neginf, x.dtype)
    x = tf.where(tf.math.is_nan(x), tensor(nan, x.dtype), x)
    infinite = tf.math.is_inf(x)
    return tf.where(infinite, tf.where(x > 0, high, low), x)


def _asked(name: str, compute: Callable[[Any], Any], text: str, answer: str,
           otherwise: bool = False) -> Callable[[Any], Any]:
    """A question about floating numbers, to which all others have one answer."""
    answered = _shared.question(compute, otherwise)

    def function(x: Any) -> Any:
        return answered(tensor(x))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{text}

    Args:
        x: a tensor.
    Returns:
        A bool tensor of the same shape.

    >>> import twofold as tf
    >>> tf.keras.ops.{name}([1.0, float("nan"), float("inf"), -float("inf")]).numpy().tolist()
    {answer}
    """
    return operation("numpy")(function)


isfinite = _asked("isfinite", tf.math.is_finite, "Whether each element is neither infinite nor NaN.",
                  "[True, False, False, False]", True)
isinf = _asked("isinf", tf.math.is_inf, "Whether each element is infinite.", "[False, False, True, True]")
isnan = _asked("isnan", tf.math.is_nan, "Whether each element is NaN.", "[False, True, False, False]")
isneginf = _asked("isneginf", _shared.negative_infinity,
                  "Whether each element is minus infinity.", "[False, False, False, True]")
isposinf = _asked("isposinf", _shared.positive_infinity,
                  "Whether each element is plus infinity.", "[False, False, True, False]")


@operation("numpy")
def isreal(x: Any) -> Any:
    """Whether each element has no imaginary part.

    >>> import twofold as tf
    >>> tf.keras.ops.isreal([1 + 0j, 1j]).numpy().tolist()
    [True, False]
    """
    return _shared.is_real(tensor(x))


@operation("numpy")
def logical_not(x: Any) -> Any:
    """Whether each element is false, or 0.

    >>> import twofold as tf
    >>> tf.keras.ops.logical_not([0, 3]).numpy().tolist()
    [True, False]
    """
    return tf.logical_not(tensor(x, tf.bool))


@operation("numpy")
def bitwise_not(x: Any) -> Any:
    """Each integer with all its bits turned.

    >>> import twofold as tf
    >>> tf.keras.ops.bitwise_not([0, 5]).numpy().tolist()
    [-1, -6]
    """
    return _shared.inverted(tensor(x))


@operation("numpy")
def bitwise_invert(x: Any) -> Any:
    """Each integer with all its bits turned.

    >>> import twofold as tf
    >>> tf.keras.ops.bitwise_invert([0, 5]).numpy().tolist()
    [-1, -6]
    """
    return _shared.inverted(tensor(x))


@operation("numpy", also="Conj")
def conjugate(x: Any) -> Any:
    """Each element with minus its imaginary part.

    >>> import twofold as tf
    >>> tf.keras.ops.conjugate([1 + 2j]).numpy().tolist()
    [(1-2j)]
    """
    return tf.math.conj(tensor(x))


conj = conjugate


@operation("numpy")
def real(x: Any) -> Any:
    """The real part of each element.

    >>> import twofold as tf
    >>> tf.keras.ops.real([1 + 2j]).numpy().tolist()
    [1.0]
    """
    return tf.math.real(tensor(x))


@operation("numpy")
def imag(x: Any) -> Any:
    """The imaginary part of each element.

    >>> import twofold as tf
    >>> tf.keras.ops.imag([1 + 2j]).numpy().tolist()
    [2.0]
    """
    return _shared.imag(tensor(x))


@operation("numpy")
def angle(x: Any) -> Any:
    """The angle of each complex number, from -pi to pi.

    >>> import twofold as tf
    >>> print("%.4f" % tf.keras.ops.angle(1j))
    1.5708
    """
    return tf.math.angle(wide(x))


@operation("numpy")
def view(x: Any, dtype: Any = None) -> Any:
    """The same bytes as elements of another dtype; the last axis grows or shrinks with their size.

    Args:
        x: a tensor.
        dtype: the other dtype; x's own by default.
    Raises:
        ValueError: the bytes of the last axis are not so many elements.

    >>> import twofold as tf
    >>> tf.keras.ops.view(tf.constant([1.0]), "int32").numpy().tolist()
    [1065353216]
    """
    x = tensor(x)
    target = x.dtype if dtype is None else tf.as_dtype(dtype)
    ratio = target.size // x.dtype.size
    if ratio <= 1:
        cast = tf.bitcast(x, target)
        return cast if ratio else tf.reshape(cast, [*tf.unstack(tf.shape(x))[:-1], -1])
    if not x.ndim or x.shape[-1] is None or x.shape[-1] % ratio:
        raise ValueError(f"The last axis of shape {x.shape} does not hold whole elements of {target.name}.")
    return tf.bitcast(tf.reshape(x, [*tf.unstack(tf.shape(x))[:-1], x.shape[-1] // ratio, ratio]), target)
