"""How dtypes meet by the array API standard, and what its functions take: tensors, and Python numbers beside them.

Integers meet in integers and floats in floats, as tables of the standard say; a Python number takes the dtype of the
tensor beside it. Where the standard leaves it open, integers beside floats are of the float's dtype, and an integer
tensor beside a Python float is float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.api import public
from twofold._ops.numpy_operands import NUMBERS
from twofold.experimental.numpy._rules import Kind
from twofold.experimental.numpy._rules import joined as _join

__all__ = ["binary", "default_complex", "default_float", "default_int", "joined", "on", "operand",
           "operands", "unary"]

default_float, default_int, default_complex = tf.float32, tf.int32, tf.complex64
_DEFAULTS = {bool: tf.bool, int: default_int, float: default_float, complex: default_complex}


def joined(*dtypes: tf.DType) -> tf.DType:
    """The dtype in which dtypes meet.

    Raises:
        TypeError: there is none, as for uint64 and int64.
    """
    kind = Kind(dtypes[0])
    for dtype in dtypes[1:]:
        kind = _join(kind, Kind(dtype))
        if kind.weak:
            raise TypeError(f"There is no dtype in which {', '.join(d.name for d in dtypes)} meet.")
    return kind.dtype


def _beside(number: Any, dtype: tf.DType) -> tf.DType:
    """The dtype of a Python number beside a tensor of a dtype, where that holds numbers of its kind."""
    own = _DEFAULTS[type(number)]
    if own.is_bool or dtype.is_complex or dtype.is_floating and not own.is_complex:
        return dtype
    if own.is_complex and dtype.is_floating:
        return tf.complex128 if dtype.size == 8 else tf.complex64
    return dtype if own.is_integer and dtype.is_integer else own


def operand(x: Any) -> tf.Tensor:
    """An argument that must be a tensor, as one.

    Raises:
        TypeError: it is none.
    """
    if isinstance(x, tf.Variable):
        return tf.convert_to_tensor(x)
    if not isinstance(x, tf.Tensor):
        raise TypeError(f"Expected a tensor; got {type(x).__name__}. twofold.array_api.asarray makes one.")
    return x


def operands(*values: Any) -> list[tf.Tensor]:
    """Tensors and Python numbers as tensors of the dtype in which they meet.

    Raises:
        TypeError: there is no tensor among them, or no such dtype.
    """
    dtypes = [operand(x).dtype for x in values if not isinstance(x, NUMBERS)]
    if not dtypes:
        raise TypeError("One operand at least must be a tensor.")
    dtype = joined(*dtypes)
    for number in values:
        if isinstance(number, NUMBERS):
            dtype = _beside(number, dtype)
    return [tf.constant(x, dtype) if isinstance(x, NUMBERS) else tf.cast(operand(x), dtype) for x in values]


def on(device: Any, make: Callable[[], Any]) -> Any:
    """What a function makes, on a device; None is the one that is asked for anyway."""
    if device is None:
        return make()
    with tf.device(device):
        return tf.identity(make())


def unary(name: str, compute: Callable[[Any], Any], text: str, x: Any, y: str) -> Any:
    """A function of one tensor."""
    def function(x: Any, /) -> Any:
        return compute(operand(x))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{text}

    >>> import twofold.array_api as xp
    >>> xp.{name}(xp.asarray({x})).numpy().tolist()
    {y}
    """
    return public(function)


def binary(name: str, compute: Callable[[Any, Any], Any], text: str, x1: Any, x2: Any, y: str) -> Any:
    """A function of two tensors, or of one and a Python number, whose shapes broadcast and whose dtypes meet."""
    def function(x1: Any, x2: Any, /) -> Any:
        return compute(*operands(x1, x2))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{text}

    >>> import twofold.array_api as xp
    >>> xp.{name}(xp.asarray({x1}), {x2}).numpy().tolist()
    {y}
    """
    return public(function)
