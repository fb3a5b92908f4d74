"""Functions of two tensors, element by element, with NumPy's names and rules of broadcasting.

The tensors meet in a dtype first (`keras/promotion.py`); a Python number takes that of the tensor beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._ops import numpy_pairs as _shared
from twofold._ops.math_numpy import hypot as _hypot
from twofold._ops.numpy_pairs import added as _added
from twofold._ops.numpy_pairs import counted as _counted
from twofold._ops.numpy_pairs import larger as _larger
from twofold._ops.numpy_pairs import multiplied as _multiplied
from twofold._ops.numpy_pairs import nextafter as _nextafter
from twofold._ops.numpy_pairs import smaller as _smaller

from ..keras_ops import operation
from ..operands import floating, meeting, same, tensor, wide

__all__ = [
    "add", "arctan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "divide", "divide_no_nan", "equal", "floor_divide", "fmax", "fmin", "fmod", "gcd", "greater", "greater_equal",
    "heaviside", "hypot", "isclose", "lcm", "ldexp", "left_shift", "less", "less_equal", "logaddexp", "logaddexp2",
    "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "mod", "multiply", "nextafter", "not_equal",
    "power", "right_shift", "subtract", "true_divide", "where",
]


def _pair(name: str, compute: Callable[[Any, Any], Any], text: str, x1: Any, x2: Any, y: Any,
          at_least: Any = None, gives_way: bool = True) -> Callable[[Any, Any], Any]:
    """A function of two tensors in the dtype in which they meet; in a few, the dtypes of numbers do not give way."""
    def function(x1: Any, x2: Any) -> Any:
        return compute(*(same(x1, x2, at_least=at_least) if gives_way else
                         same(tensor(x1), tensor(x2), at_least=at_least)))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{text}

    Args:
        x1, x2: tensors or numbers; their shapes broadcast, and their dtypes meet.

    >>> import twofold as tf
    >>> tf.keras.ops.{name}({x1}, {x2}).numpy().tolist()
    {y}
    """
    return operation("numpy")(function)


add = _pair("add", _added, "The sum of two tensors; bools are joined by or.", [1, 2], 0.5, [1.5, 2.5])
subtract = _pair("subtract", _counted(tf.subtract), "`x1` less `x2`; bools count as int32.", [1, 2], 3, [-2, -1])
multiply = _pair("multiply", _multiplied, "The product of two tensors, element by element; bools are joined by and.",
                 [1, 2], 0.5, [0.5, 1.0])
maximum = _pair("maximum", _larger, "The larger of two elements; NaN if one is.", [1, 4], 2, [2, 4])
minimum = _pair("minimum", _smaller, "The smaller of two elements; NaN if one is.", [1, 4], 2, [1, 2])
mod = _pair("mod", _counted(tf.math.floormod), "What is left of `x1` by division by `x2`, with the sign of `x2`.",
            [5, -5], 3, [2, 1], gives_way=False)
fmod = _pair("fmod", _counted(tf.truncatemod), "What is left of `x1` by division by `x2`, with the sign of `x1`.",
             [5, -5], 3, [2, -2])
floor_divide = _pair("floor_divide", _counted(tf.math.floordiv), "The whole part, from there down, of `x1 / x2`.",
                     [5, -5], 3, [1, -2])
equal = _pair("equal", tf.equal, "Whether two elements are equal.", [1, 2], 2.0, [False, True])
not_equal = _pair("not_equal", tf.not_equal, "Whether two elements differ.", [1, 2], 2.0, [True, False])
less = _pair("less", _counted(tf.less), "Whether `x1` is below `x2`.", [1, 2], 2.0, [True, False])
less_equal = _pair("less_equal", _counted(tf.less_equal), "Whether `x1` is not above `x2`.", [1, 3], 2.0,
                   [True, False])
greater = _pair("greater", _counted(tf.greater), "Whether `x1` is above `x2`.", [1, 3], 2.0, [False, True])
greater_equal = _pair("greater_equal", _counted(tf.greater_equal), "Whether `x1` is not below `x2`.", [1, 3], 2.0,
                      [False, True])
divide = _pair("divide", tf.divide, "`x1` over `x2`, floating; integers count as `floatx()`.", [1, 3], 2, [0.5, 1.5],
               float)
true_divide = _pair("true_divide", tf.divide, "`x1` over `x2`, floating; the same as `divide`.", [1, 3], 2,
                    [0.5, 1.5], float)
divide_no_nan = _pair("divide_no_nan", tf.math.divide_no_nan, "`x1` over `x2`, and 0 where `x2` is 0.", [1, 3], [2, 0],
                      [0.5, 0.0], float)
arctan2 = _pair("arctan2", tf.atan2, "The angle of the point at (`x2`, `x1`), from -pi to pi.", [0.0, 0.0],
                [1.0, 2.0], [0.0, 0.0], float, False)
nextafter = _pair("nextafter", _nextafter, "The next number that the dtype has from `x1` on towards `x2`.", [1.0], 1.0,
                  [1.0], float)


def _between(name: str, compute: Callable[[Any, Any], Any], plain: Callable[[Any, Any], Any], text: str,
             y: Any) -> Callable[[Any, Any], Any]:
    """A function of the bits of two integers, or of two bools."""
    def compute_all(x1: Any, x2: Any) -> Any:
        return plain(x1, x2) if x1.dtype.is_bool else compute(x1, x2)

    def function(x: Any, y: Any) -> Any:
        return compute_all(*same(x, y))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{text}

    Args:
        x, y: tensors of integers or bools; their shapes broadcast, and their dtypes meet.

    >>> import twofold as tf
    >>> tf.keras.ops.{name}([6], [3]).numpy().tolist()
    {y}
    """
    return operation("numpy")(function)


def _logical(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: compute(tf.cast(x, tf.int32), tf.cast(y, tf.int32))  # shifts of bools are of 0 and 1


bitwise_and = _between("bitwise_and", tf.bitwise.bitwise_and, tf.logical_and, "The bits that are in both.", [2])
bitwise_or = _between("bitwise_or", tf.bitwise.bitwise_or, tf.logical_or, "The bits that are in one or both.", [7])
bitwise_xor = _between("bitwise_xor", tf.bitwise.bitwise_xor, tf.not_equal, "The bits that are in one but not both.",
                       [5])
bitwise_left_shift = _between("bitwise_left_shift", tf.bitwise.left_shift, _logical(tf.bitwise.left_shift),
                              "`x` with its bits moved up by `y` places.", [48])
left_shift = _between("left_shift", tf.bitwise.left_shift, _logical(tf.bitwise.left_shift),
                      "`x` with its bits moved up by `y` places.", [48])
bitwise_right_shift = _between("bitwise_right_shift", tf.bitwise.right_shift, _logical(tf.bitwise.right_shift),
                               "`x` with its bits moved down by `y` places, the sign kept.", [0])
right_shift = _between("right_shift", tf.bitwise.right_shift, _logical(tf.bitwise.right_shift),
                       "`x` with its bits moved down by `y` places, the sign kept.", [0])


def _truths(name: str, compute: Callable[[Any, Any], Any], text: str, y: Any) -> Callable[[Any, Any], Any]:
    def function(x1: Any, x2: Any) -> Any:
        return compute(tensor(x1, tf.bool), tensor(x2, tf.bool))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{text}

    Args:
        x1, x2: tensors, true where they are not 0; their shapes broadcast.

    >>> import twofold as tf
    >>> tf.keras.ops.{name}([True, False], [1, 1]).numpy().tolist()
    {y}
    """
    return operation("numpy")(function)


logical_and = _truths("logical_and", tf.logical_and, "Whether both are true.", [True, False])
logical_or = _truths("logical_or", tf.logical_or, "Whether one is true, or both.", [True, True])
logical_xor = _truths("logical_xor", tf.math.logical_xor, "Whether one is true, but not both.", [False, True])


@operation("numpy")
def power(x1: Any, x2: Any) -> Any:
    """`x1` to the power of `x2`; bools count as int32.

    Args:
        x1, x2: tensors or numbers; their shapes broadcast, and their dtypes meet.

    >>> import twofold as tf
    >>> tf.keras.ops.power([2, 3], 2).numpy().tolist()
    [4, 9]
    """
    return _counted(tf.pow)(*same(x1, x2))


@operation("numpy", tensors="condition x1 x2")
def where(condition: Any, x1: Any = None, x2: Any = None) -> Any:
    """Elements of `x1` where a condition is true, and of `x2` where it is not.

    Args:
        condition: a tensor, true where it is not 0.
        x1, x2: tensors or numbers; all three broadcast. Without them the result is `nonzero(condition)`.
    Raises:
        ValueError: one of x1 and x2 is given, and the other is not.

    >>> import twofold as tf
    >>> tf.keras.ops.where([True, False], [1, 2], 0.5).numpy().tolist()
    [1.0, 0.5]
    """
    condition = tensor(condition, tf.bool)
    if x1 is None and x2 is None:
        return tuple(tf.unstack(tf.cast(tf.where(condition), tf.int32), axis=1))
    if x1 is None or x2 is None:
        raise ValueError("`x1` and `x2` either both should be `None` or both should have non-None value.")
    return tf.where(condition, *same(x1, x2))


def _not_nan(compute: Callable[[Any, Any], Any], x1: Any, x2: Any) -> Any:
    x1, x2 = same(x1, x2)
    if not x1.dtype.is_floating:
        return compute(x1, x2)
    result = compute(x1, x2)
    return tf.where(tf.math.is_nan(x1), x2 + tf.zeros_like(result), tf.where(tf.math.is_nan(x2), x1, result))


@operation("numpy")
def fmax(x1: Any, x2: Any) -> Any:
    """The larger of two elements; where one is NaN, the other.

    >>> import twofold as tf
    >>> tf.keras.ops.fmax([1.0, float("nan")], 0.5).numpy().tolist()
    [1.0, 0.5]
    """
    return _not_nan(_larger, x1, x2)


@operation("numpy")
def fmin(x1: Any, x2: Any) -> Any:
    """The smaller of two elements; where one is NaN, the other.

    >>> import twofold as tf
    >>> tf.keras.ops.fmin([1.0, float("nan")], 0.5).numpy().tolist()
    [0.5, 0.5]
    """
    return _not_nan(_smaller, x1, x2)


@operation("numpy")
def heaviside(x1: Any, x2: Any) -> Any:
    """0 where `x1` is negative, 1 where it is positive, and `x2` where it is 0.

    >>> import twofold as tf
    >>> tf.keras.ops.heaviside([-2.0, 0.0, 3.0], 0.5).numpy().tolist()
    [0.0, 0.5, 1.0]
    """
    return _shared.heaviside(*(wide(x) for x in same(tensor(x1), tensor(x2))))


@operation("numpy")
def hypot(x1: Any, x2: Any) -> Any:
    """The length of the hypotenuse over two sides, without overflow on the way.

    >>> import twofold as tf
    >>> tf.keras.ops.hypot([3.0], [4.0]).numpy().tolist()
    [5.0]
    """
    return _hypot(*(wide(x) for x in same(tensor(x1), tensor(x2))))


@operation("numpy")
def ldexp(x1: Any, x2: Any) -> Any:
    """`x1` times two to the power of `x2`.

    Args:
        x1: a tensor of numbers.
        x2: a tensor of integers.
    Raises:
        TypeError: x2 holds others.

    >>> import twofold as tf
    >>> tf.keras.ops.ldexp([0.5, 3.0], [1, 2]).numpy().tolist()
    [1.0, 12.0]
    """
    x1, x2 = tensor(x1), tensor(x2)
    if not x2.dtype.is_integer:
        raise TypeError(f"ldexp exponent must be an integer type. Received: x2 dtype={x2.dtype.name}")
    target = meeting(x1, x2, at_least=float)
    x1, x2 = tf.cast(x1, target), tf.cast(x2, target)
    return x1 * tf.pow(tf.constant(2, target), x2)


@operation("numpy")
def logaddexp(x1: Any, x2: Any) -> Any:
    """The logarithm of `exp(x1) + exp(x2)`, without overflow.

    >>> import twofold as tf
    >>> print("%.2f" % tf.keras.ops.logaddexp(1000.0, 1000.0))
    1000.69
    """
    x1, x2 = same(tensor(x1), tensor(x2), at_least=float)
    return _shared.logs_added(x1, x2, math.e)


@operation("numpy")
def logaddexp2(x1: Any, x2: Any) -> Any:
    """The logarithm to base 2 of `2**x1 + 2**x2`, without overflow.

    >>> import twofold as tf
    >>> print("%.1f" % tf.keras.ops.logaddexp2(1000.0, 1000.0))
    1001.0
    """
    x1, x2 = same(tensor(x1), tensor(x2), at_least=float)
    return _shared.logs_added(x1, x2, 2.0)


@operation("numpy", tensors="x1 x2 rtol atol")
def isclose(x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Whether two elements are nearly equal: no farther apart than `atol + rtol * abs(x2)`.

    Args:
        x1, x2: tensors whose shapes broadcast.
        rtol, atol: numbers.
        equal_nan: whether NaN is near NaN.

    >>> import twofold as tf
    >>> tf.keras.ops.isclose([1.0, 2.0], [1.000001, 2.1]).numpy().tolist()
    [True, False]
    """
    x1, x2 = same(x1, x2)
    if not x1.dtype.is_floating:
        x1, x2 = floating(x1), floating(x2)
    return _shared.near(x1, x2, tensor(rtol, x1.dtype), tensor(atol, x1.dtype), equal_nan)


@operation("numpy")
def gcd(x1: Any, x2: Any) -> Any:
    """The greatest common divisor of two integers.

    Raises:
        TypeError: there are others than integers.

    >>> import twofold as tf
    >>> tf.keras.ops.gcd([12, -8], [18, 0]).numpy().tolist()
    [6, 8]
    """
    return _shared.gcd(*same(x1, x2))


@operation("numpy")
def lcm(x1: Any, x2: Any) -> Any:
    """The least common multiple of two integers.

    Raises:
        TypeError: there are others than integers.

    >>> import twofold as tf
    >>> tf.keras.ops.lcm([4, -6], [6, 0]).numpy().tolist()
    [12, 0]
    """
    return _shared.lcm(*same(x1, x2))
