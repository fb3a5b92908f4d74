"""Conversions of the user's own types to tensors: functions that are registered, and the method `__tf_tensor__`.

`convert.py` asks here about values that are neither tensors nor of Python's and NumPy's own kinds. Of the functions
registered for a value's class or a base of it, those of lower priority numbers come first, then those registered first;
one that gives NotImplemented leaves the value to the next.
"""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from twofold.ir.dtypes import DType
from twofold.ir.errors import user_line

from .tensor import Tensor

__all__ = ["converted", "known", "register"]

_BUILT_IN = (numbers.Number, np.ndarray, np.generic)
_functions: list[tuple[int, int, Any, Callable[..., Any]]] = []  # priority, number, types, function


def register(base_type: Any, conversion_func: Callable[..., Any], priority: int = 100) -> None:
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


def converted(value: Any, dtype: DType | None, hint: DType | None) -> Any:
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
            made = _asked(functools.partial(_by_function, function, value), dtype, hint)
            if made is not NotImplemented:
                return _checked(made, function, value, dtype)
    method = getattr(type(value), "__tf_tensor__", None)
    if method is None:
        return None
    return _checked(_asked(lambda wanted: method(value, dtype=wanted, name=None), dtype, hint), method, value, dtype)


def _by_function(function: Callable[..., Any], value: Any, wanted: DType | None) -> Any:
    return function(value, dtype=wanted, name=None, as_ref=False)


def known(value: Any) -> bool:
    """Whether a conversion of the user's may exist for a value."""
    return hasattr(type(value), "__tf_tensor__") or any(isinstance(value, entry[2]) for entry in _functions)


def _asked(call: Callable[[DType | None], Any], dtype: DType | None, hint: DType | None) -> Any:
    """The result of a conversion for `dtype`. Where that is None it is asked for `hint` first, and for no dtype if it
    does not give the hint's."""
    if dtype is None and hint is not None:
        try:
            made = call(hint)
        except (TypeError, ValueError):
            return call(None)
        if isinstance(made, Tensor) and made.dtype is hint:
            return made
        return call(None)
    return call(dtype)


def _checked(made: Any, function: Any, value: Any, dtype: DType | None) -> Tensor:
    made = made._read_tensor() if hasattr(made, "_read_tensor") else made
    told = f"Conversion function {function!r} for type {type(value)} returned"
    if not isinstance(made, Tensor):
        raise RuntimeError(f"{told} non-Tensor: {made!r}\n  {user_line()}")
    if dtype is not None and made.dtype is not dtype:
        raise RuntimeError(f"{told} incompatible dtype: requested = {dtype.name}, actual = {made.dtype.name}\n"
                           f"  {user_line()}")
    return made
