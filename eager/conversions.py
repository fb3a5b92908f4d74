"""Conversions of the user's own types to tensors: functions that are registered, and the method `__tf_tensor__`.

`convert.py` asks here about values that are neither tensors nor of Python's and NumPy's own kinds. Of the functions
registered for a value's class or a base of it, those of lower priority numbers come first, then those registered first;
one that gives NotImplemented leaves the value to the next.
"""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable

import numpy as np

from twofold.ir.dtypes import DType
from twofold.ir.errors import user_line

from .tensor import Tensor

__all__ = ["converted", "is_convertible", "register"]

_BUILT_IN = (numbers.Number, np.ndarray, np.generic)
# priority, number, types, function
_functions: list[tuple[int, int, tuple[type, ...], Callable[..., object]]] = []


def register(base_type: object, conversion_func: Callable[..., object], priority: int = 100) -> None:
    """Add a conversion function; see `tf.register_tensor_conversion_function`."""
    types = base_type if isinstance(base_type, tuple) else (base_type,)
    if not types or not all(isinstance(t, type) for t in types):
        raise TypeError(f"Argument `base_type` must be a type or a tuple of types. Obtained: {base_type!r}")
    if any(issubclass(t, _BUILT_IN) for t in types):
        raise TypeError("Cannot register conversions for Python numeric types and NumPy scalars and arrays.")
    if not callable(conversion_func):
        raise TypeError(f"Argument `conversion_func` must be callable. Received {conversion_func!r}.")
    _functions.append((priority, len(_functions), types, conversion_func))
    _functions.sort(key=lambda entry: entry[:2])


def converted(value: object, dtype: DType | None, hint: DType | None) -> Tensor | None:
    """A value as a tensor, by a conversion that the user registered; None if there is none for it.

    Args:
        value: neither a tensor nor of a built-in kind.
        dtype: the dtype that the tensor must have.
        hint: one that it is asked to have, if it can.
    Raises:
        RuntimeError: the conversion gives no tensor, or one of another dtype than the one asked for.
    """
    for _, _, types, function in _functions:
        if isinstance(value, types):
            result = _asked(functools.partial(_by_function, function, value), dtype, hint)
            if result is not NotImplemented:
                return _checked(result, function, value, dtype)
    method = getattr(type(value), "__tf_tensor__", None)
    if method is None:
        return None
    return _checked(_asked(lambda wanted: method(value, dtype=wanted, name=None), dtype, hint), method, value, dtype)


def _by_function(function: Callable[..., object], value: object, wanted: DType | None) -> object:
    return function(value, dtype=wanted, name=None, as_ref=False)


def is_convertible(kind: type) -> bool:
    """Whether a conversion of the user's may exist for values of a type."""
    return hasattr(kind, "__tf_tensor__") or any(issubclass(kind, entry[2]) for entry in _functions)


def _asked(call: Callable[[DType | None], object], dtype: DType | None, hint: DType | None) -> object:
    """The result of a conversion for `dtype`. Where that is None it is asked for `hint` first, and for no dtype if it
    does not give the hint's."""
    if dtype is None and hint is not None:
        try:
            result = call(hint)
        except (TypeError, ValueError):
            return call(None)
        if isinstance(result, Tensor) and result.dtype is hint:
            return result
        return call(None)
    return call(dtype)


def _checked(result: object, function: object, value: object, dtype: DType | None) -> Tensor:
    """The result of a conversion as a tensor, which it must be."""
    tensor = result._read_tensor() if hasattr(result, "_read_tensor") else result
    problem = f"Conversion function {function!r} for type {type(value)} returned"
    if not isinstance(tensor, Tensor):
        raise RuntimeError(f"{problem} non-Tensor: {tensor!r}\n  {user_line()}")
    if dtype is not None and tensor.dtype is not dtype:
        raise RuntimeError(f"{problem} incompatible dtype: requested = {dtype.name}, actual = {tensor.dtype.name}\n"
                           f"  {user_line()}")
    return tensor
