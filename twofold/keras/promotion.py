"""The dtype in which values meet: the lattice of Keras 3 (that of JAX), in which Python numbers give way to tensors.

A dtype is promoted along the edges of `_UP`; several meet in their least upper bound. `int*`, `float*` and `complex*`
are the dtypes of Python numbers, which become int32, `floatx()` and complex64 if nothing else decides.
"""

from __future__ import annotations

import functools
from typing import Any

import twofold as tf
from twofold._front.api import public

from .config import floatx

__all__ = ["kind_of", "result_type"]

#: what each dtype is promoted to next
_UP = {
    "bool": ("int*",), "int*": ("uint8", "int8"),
    "uint8": ("uint16", "int16"), "uint16": ("uint32", "int32"), "uint32": ("uint64", "int64"), "uint64": ("float*",),
    "int8": ("int16",), "int16": ("int32",), "int32": ("int64",), "int64": ("float*",),
    "float*": ("float16", "bfloat16", "complex*"), "float16": ("float32",), "bfloat16": ("float32",),
    "float32": ("float64", "complex64"), "float64": ("complex128",),
    "complex*": ("complex64",), "complex64": ("complex128",), "complex128": (),
}
_PYTHON = {bool: "bool", int: "int*", float: "float*", complex: "complex*"}


@functools.cache
def _above(name: str) -> frozenset[str]:
    """A dtype and all that it can be promoted to."""
    return frozenset({name}).union(*[_above(up) for up in _UP[name]])


@functools.cache
def _join(names: frozenset[str]) -> str:
    """The least upper bound of some dtypes of the lattice."""
    unknown = sorted(names - set(_UP))
    if unknown:
        if len(names) == 1:
            return unknown[0]
        raise ValueError(f"There is no dtype in which {' and '.join(sorted(names))} meet.")
    bounds = frozenset.intersection(*[_above(name) for name in names])
    return next(name for name in bounds if bounds == _above(name))


@public
def result_type(*dtypes: Any) -> str:
    """The name of the dtype in which values of several dtypes meet.

    Args:
        dtypes: dtypes, their names, or `bool`, `int`, `float` and `complex` for Python numbers, whose size gives way.
            None is `floatx()`.
    Raises:
        ValueError: there is no such dtype, as for strings and numbers.

    >>> import twofold as tf
    >>> tf.keras.backend.result_type("int32", "float16"), tf.keras.backend.result_type("uint8", "int8")
    ('float16', 'int16')
    >>> tf.keras.backend.result_type("int64", float)
    'float32'
    """
    return _met(dtypes, floatx())


@functools.lru_cache(maxsize=4096)
def _met(dtypes: tuple[Any, ...], default: str) -> str:
    joined = _join(frozenset([default if d is None else _key(d) for d in dtypes]))
    if joined[-1] != "*":
        return joined
    return {"int*": "int32", "float*": default, "complex*": "complex64"}[joined]


def _key(dtype: Any) -> str:
    if isinstance(dtype, str) and dtype in _UP:
        return dtype
    if isinstance(dtype, type) and dtype in _PYTHON:
        return _PYTHON[dtype]
    return tf.as_dtype(dtype).name


def kind_of(value: Any) -> Any:
    """The dtype of a value for `result_type`: that of a tensor or array, the type of a Python number."""
    return getattr(value, "dtype", type(value))
