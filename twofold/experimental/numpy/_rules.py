"""The dtype in which values meet in `tf.experimental.numpy`: NumPy's rules, or those of the modes "all" and "safe".

"legacy" is `np.result_type`: Python's numbers give way to tensors of their kind, integers and floats meet in a dtype
that holds both. "all" keeps the dtype of floating tensors beside integers, and Python's numbers, and tensors that were
made of them without a dtype, are weak: they give way. "safe" is "all" where that loses nothing, and an error elsewhere.
The mode is one for the process, as `experimental_enable_numpy_behavior` sets it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import twofold as tf
from twofold._front.weak import is_weak, weak
from twofold.ir.spec import as_numpy

__all__ = ["Kind", "MODES", "as_dtype", "default_float", "default_int", "float_kind", "floating", "joined", "kind_of",
           "legacy", "meeting", "mode", "promoted", "same", "set_mode", "tensor"]

MODES = ("legacy", "off", "all", "safe")
_PYTHON = (bool, int, float, complex)


class _Settings:
    """The process's mode, and whether Python's floats are float32 in "legacy"."""

    mode = "legacy"
    prefer_float32 = False


class Kind(NamedTuple):
    """A dtype, and whether it gives way to others."""

    dtype: tf.DType
    weak: bool = False


def set_mode(name: str, prefer_float32: bool) -> None:
    """Set the rules for the process."""
    _Settings.mode, _Settings.prefer_float32 = name, prefer_float32


def mode() -> tuple[str, bool]:
    """The mode, and whether Python's floats are float32."""
    return _Settings.mode, _Settings.prefer_float32


def legacy() -> bool:
    """Whether NumPy's rules hold."""
    return _Settings.mode in ("legacy", "off")


def default_float() -> tf.DType:
    """The dtype of `float`, and in which integers are computed where the result is floating."""
    return tf.float64 if legacy() else tf.float32


def default_int() -> tf.DType:
    """The dtype of `int`."""
    return tf.int64 if legacy() else tf.int32


def as_dtype(dtype: Any) -> tf.DType:
    """A dtype that a user gave: a name, one of NumPy's or ours, or `float`, `int`, `complex`, `bool`."""
    named = {"float": float, "int": int, "complex": complex}.get(dtype, dtype) if isinstance(dtype, str) else dtype
    if named is float:
        return default_float()
    if named is int:
        return default_int()
    if named is complex:
        return tf.complex128
    return tf.as_dtype(named)


# -- what values are ------------------------------------------------------------------------------
def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def kind_of(value: Any) -> Any:
    """The kind of a tensor, array or dtype; a Python number itself.

    Raises:
        TypeError: it is none of these.
    """
    if isinstance(value, (tf.Tensor, tf.Variable)):
        return Kind(value.dtype, is_weak(value))
    if type(value) in _PYTHON:
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return Kind(tf.as_dtype(value.dtype))
    if isinstance(value, (str, bytes)) and not isinstance(value, np.generic):
        try:
            return Kind(as_dtype(value))
        except TypeError:
            return Kind(tf.string)
    if isinstance(value, (tf.DType, np.dtype, type)):
        return Kind(as_dtype(value))
    if hasattr(value, "__array__"):
        return Kind(tf.as_dtype(np.asarray(value).dtype))
    return Kind(tf.convert_to_tensor(value).dtype)


def meeting(*values: Any) -> Kind:
    """The kind in which values meet: tensors, arrays, dtypes, Python numbers, and lists of these.

    Raises:
        TypeError: there is none, or "safe" forbids it.
    """
    kinds = [kind_of(leaf) for value in values for leaf in _leaves(value)]
    if not kinds:
        return Kind(default_float())
    if legacy():
        return _numpys(kinds)
    return functools.reduce(_join, map(_pythons, kinds))


def _numpys(kinds: list[Any]) -> Kind:
    dtypes = {k.dtype for k in kinds if isinstance(k, Kind)}
    if len(dtypes) == 1 and all(isinstance(k, Kind) for k in kinds):
        return Kind(dtypes.pop())
    given = [k.dtype.as_numpy_dtype if isinstance(k, Kind) else _preferred(k) for k in kinds]
    return Kind(tf.as_dtype(np.result_type(*given)))


def _preferred(number: Any) -> Any:
    if _Settings.prefer_float32 and isinstance(number, (float, complex)):
        return np.float32(0) if isinstance(number, float) else np.complex64(0)
    return number


def _pythons(kind: Any) -> Kind:
    """A Python number as a weak kind; bools are not weak."""
    if isinstance(kind, Kind):
        return kind
    if isinstance(kind, bool):
        return Kind(tf.bool)
    if isinstance(kind, int):
        return Kind(tf.int32, True)
    return Kind(tf.float32 if isinstance(kind, float) else tf.complex128, True)


# -- the rules of "all" and "safe" ----------------------------------------------------------------
_SIGNED = {1: tf.int8, 2: tf.int16, 4: tf.int32, 8: tf.int64}


def _class(dtype: tf.DType) -> int:
    """0 for bools, 1 for integers, 2 for floats, 3 for complex numbers."""
    if dtype.is_bool:
        return 0
    return 1 if dtype.is_integer else 2 if dtype.is_floating else 3


def _join(x: Kind, y: Kind) -> Kind:
    """The kind in which two meet; in "safe" nothing may be lost.

    Raises:
        TypeError: "safe" forbids it, or there is none.
    """
    met = joined(x, y)
    if _Settings.mode == "safe" and not (_keeps(x, y, met) or _keeps(y, x, met)):
        raise TypeError(f"In promotion mode PromoMode.SAFE, implicit dtype promotion between ({x.dtype!r}, weak="
                        f"{x.weak}) and ({y.dtype!r}, weak={y.weak}) is disallowed. You need to explicitly specify the "
                        "dtype in your op, or relax your dtype promotion rules (such as from SAFE mode to ALL mode).")
    return met


def _keeps(x: Kind, y: Kind, met: Kind) -> bool:
    """Whether two meet in the dtype of the first, which holds all values of the other, or to which the other gives
    way."""
    gives_way = y.weak and _class(y.dtype) <= _class(x.dtype)
    return met.dtype == x.dtype and (gives_way or _holds(x.dtype, y.dtype))


def _holds(wide: tf.DType, narrow: tf.DType) -> bool:
    if narrow.is_integer and narrow.size == 8:  # NumPy has them safe in float64, which has 53 bits
        return wide.is_integer and np.can_cast(narrow.as_numpy_dtype, wide.as_numpy_dtype)
    return bool(np.can_cast(narrow.as_numpy_dtype, wide.as_numpy_dtype, "safe"))


def joined(x: Kind, y: Kind) -> Kind:
    """The kind in which two meet by the rules of "all".

    Raises:
        TypeError: there is none, as for strings and numbers.
    """
    if x.dtype == y.dtype:
        return Kind(x.dtype, x.weak and y.weak)
    if tf.string in (x.dtype, y.dtype):
        raise TypeError(f"There is no dtype in which {x.dtype.name} and {y.dtype.name} meet.")
    low, high = sorted((x, y), key=lambda k: (_class(k.dtype), k.weak))
    rank, other = _class(high.dtype), _class(low.dtype)
    if other != rank:
        if high.weak and not low.weak and other:  # a number of a higher kind than the tensor
            return _raised(low, high)
        if rank == 3 and low.dtype == tf.float64 and not low.weak:
            return Kind(tf.complex128)
        return high
    if low.weak != high.weak:
        return low if high.weak else high
    if rank == 1 and _has_no_integer(low.dtype, high.dtype):
        return Kind(tf.float64, True)
    return Kind(_wider(low.dtype, high.dtype, rank), low.weak)


def _raised(tensor_kind: Kind, number: Kind) -> Kind:
    """Where a weak number meets a tensor of a lower kind: integers with floats in weak float64, floats with complex
    numbers in that of the floats' size."""
    if _class(number.dtype) == 2:
        return Kind(tf.float64, True)
    if tensor_kind.dtype.is_integer:
        return Kind(tf.complex128, True)
    return Kind(tf.complex128 if tensor_kind.dtype == tf.float64 else tf.complex64)


def _has_no_integer(x: tf.DType, y: tf.DType) -> bool:
    """Whether no integer holds the values of both: uint64 and a signed one."""
    return x.is_unsigned != y.is_unsigned and tf.uint64 in (x, y)


def _wider(x: tf.DType, y: tf.DType, rank: int) -> tf.DType:
    if rank == 1 and x.is_unsigned != y.is_unsigned:
        unsigned, signed = (x, y) if x.is_unsigned else (y, x)
        return signed if signed.size > unsigned.size else _SIGNED[2 * unsigned.size]
    if x.size == y.size:  # float16 and bfloat16
        return tf.float32
    return x if x.size > y.size else y


# -- values as tensors ----------------------------------------------------------------------------
def tensor(value: Any, dtype: Any = None) -> tf.Tensor:
    """A value as a tensor, of a dtype or of that which the rules give it."""
    if isinstance(value, (tf.Tensor, tf.Variable)):
        read = tf.convert_to_tensor(value)
        return read if dtype is None or read.dtype == dtype else tf.cast(read, dtype)
    kind = meeting(value) if dtype is None else Kind(dtype)
    return weak(_made(value, kind.dtype)) if kind.weak else _made(value, kind.dtype)


def _made(value: Any, dtype: tf.DType) -> tf.Tensor:
    if dtype == tf.string or any(isinstance(leaf, (tf.Tensor, tf.Variable)) for leaf in _leaves(value)):
        made = _stacked(value, dtype)
        return made if made.dtype == dtype else tf.cast(made, dtype)
    array = value if isinstance(value, np.ndarray) else as_numpy(value)
    if not array.size and not isinstance(value, np.ndarray):
        array = array.astype(dtype.as_numpy_dtype)
    made = tf.constant(array)
    return made if made.dtype == dtype else tf.cast(made, dtype)


def _stacked(value: Any, dtype: tf.DType) -> tf.Tensor:
    """A list with tensors in it."""
    if isinstance(value, (list, tuple)) and dtype != tf.string:
        return tf.stack([tensor(item, dtype) for item in value])
    return tf.convert_to_tensor(value)


def same(*values: Any) -> list[Any]:
    """Values as tensors of the dtype in which they meet."""
    return promoted(values, meeting(*values))


def promoted(values: Any, kind: Kind) -> list[Any]:
    """Values as tensors of a kind."""
    made = [tensor(x, kind.dtype) for x in values]
    return [weak(x) for x in made] if kind.weak else made


def float_kind(kind: Kind) -> Kind:
    """A kind of floating or complex numbers: that of integers and bools is the default float."""
    return kind if _class(kind.dtype) > 1 else Kind(default_float(), kind.weak)


def floating(*values: Any) -> list[Any]:
    """Values as floating or complex tensors of the dtype in which they meet."""
    return promoted(values, float_kind(meeting(*values)))
