"""What operations and merging layers do with their operands: tensors of the dtype in which they meet.

Tensors of values, sizes and axes, which know no dtypes, are `_ops/numpy_operands.py`'s.
"""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._ops.numpy_operands import NUMBERS, axes_of, axis_of, shape_of, size_of, tensor

from .promotion import kind_of, result_type

__all__ = ["axes_of", "axis_of", "floating", "meeting", "numeric", "same", "shape_of", "size_of", "tensor", "wide"]

_Tensor = tf.Tensor


def _leaf(x: Any) -> Any:
    return x if isinstance(x, NUMBERS) else tf.convert_to_tensor(x)


def same(*values: Any, at_least: Any = None) -> list[Any]:
    """Values as tensors of the dtype in which they meet.

    Args:
        values: tensors, arrays, lists or numbers; the dtypes of Python numbers give way to the others.
        at_least: `float` or a dtype to meet besides.
    """
    if _met(values, at_least):
        return list(values)
    leaves = [_leaf(x) for x in values]
    dtype = meeting(*leaves, at_least=at_least)
    return [tensor(x, dtype) for x in leaves]


def _met(values: tuple[Any, ...], at_least: Any) -> bool:
    """Whether values are tensors of the dtype in which they meet: the usual case, in which there is nothing to do."""
    if not isinstance(values[0], _Tensor):
        return False
    dtype = values[0].dtype
    if at_least is not None and (at_least is not float or not (dtype.is_floating or dtype.is_complex)):
        return False
    return all(isinstance(value, _Tensor) and value.dtype is dtype for value in values)


def meeting(*values: Any, at_least: Any = None) -> str:
    """The name of the dtype in which values meet."""
    kinds = [kind_of(x) for x in values]
    return result_type(*kinds) if at_least is None else result_type(*kinds, at_least)


def floating(x: Any) -> tf.Tensor:
    """A value as a floating or complex tensor: integers and bools become `floatx()`."""
    if not isinstance(x, _Tensor):
        x = tensor(x)
    return x if x.dtype.is_floating or x.dtype.is_complex else tf.cast(x, result_type(float))


def wide(x: Any) -> tf.Tensor:
    """A value as a floating tensor, int64 as float64."""
    x = tensor(x)
    return tf.cast(x, tf.float64) if x.dtype == tf.int64 else floating(x)


def numeric(x: Any) -> tf.Tensor:
    """A value as a tensor of numbers: bools become int32."""
    x = tensor(x)
    return tf.cast(x, tf.int32) if x.dtype.is_bool else x
