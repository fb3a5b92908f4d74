"""What operations and merging layers do with their operands: tensors of the dtype in which they meet, sizes, axes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import twofold as tf

from .promotion import kind_of, result_type

__all__ = ["axes_of", "axis_of", "floating", "meeting", "numeric", "same", "shape_of", "size_of", "tensor", "wide"]

_NUMBERS = (int, float, complex)  # bool is an int
_Tensor = tf.Tensor


def tensor(x: Any, dtype: Any = None) -> tf.Tensor:
    """A value as a tensor; of a dtype, if one is given."""
    if dtype is None:
        return tf.convert_to_tensor(x)
    target = tf.as_dtype(dtype)
    if isinstance(x, _NUMBERS) and (target.is_floating or target.is_complex):
        return tf.constant(x, target)  # with all its digits, which a cast from the default dtype has not
    return tf.cast(x, target)


def _leaf(x: Any) -> Any:
    return x if isinstance(x, _NUMBERS) else tf.convert_to_tensor(x)


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


def size_of(x: tf.Tensor, axis: int) -> Any:
    """The size of an axis: an integer, or a scalar tensor in a trace that does not know it."""
    size = x.shape[axis]
    return tf.shape(x)[axis] if size is None else size


def shape_of(x: tf.Tensor) -> tuple[Any, ...]:
    """The sizes of all axes, as `size_of` gives them."""
    return tuple([size_of(x, n) for n in range(x.ndim)])


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front.

    Raises:
        ValueError: there is none of that number.
    """
    number = operator.index(axis)
    if not -rank <= number < rank:
        raise ValueError(f"axis {axis} is out of bounds for a tensor of rank {rank}.")
    return number % rank


def axes_of(axis: Any, rank: int) -> tuple[int, ...]:
    """Axes counted from the front: those of an integer or of several, all for None."""
    if axis is None:
        return tuple(range(rank))
    given: Sequence[int] = (axis,) if not isinstance(axis, (list, tuple)) else axis
    axes = tuple([axis_of(a, rank) for a in given])
    if len(set(axes)) != len(axes):
        raise ValueError(f"Axes {axis} repeat.")
    return axes
