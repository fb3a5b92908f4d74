"""Values as tensors, sizes and axes, for functions with NumPy's names.

The modules `_ops/numpy_*.py` hold what such functions compute of tensors whose dtypes have met. How they meet is the
affair of those that give them their public names: `tf.keras.ops`, `tf.experimental.numpy` and `twofold.array_api`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import ints

__all__ = ["NUMBERS", "axes_of", "axis_of", "shape_of", "size_of", "tensor"]


class AxisError(np.exceptions.AxisError):
    """NumPy's error, whose text is what it was given: names of functions and lines are added to that."""

    __str__ = Exception.__str__


NUMBERS = (int, float, complex)  # bool is an int


def tensor(x: Any, dtype: Any = None) -> tf.Tensor:
    """A value as a tensor; of a dtype, if one is given."""
    if dtype is None:
        return tf.convert_to_tensor(x)
    target = tf.as_dtype(dtype)
    if isinstance(x, NUMBERS) and (target.is_floating or target.is_complex):
        return tf.constant(x, target)  # with all its digits, which a cast from the default dtype has not
    return tf.cast(x, target)


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
        numpy.exceptions.AxisError: there is none of that number; it is a ValueError and an IndexError.
        ChoiceNeeded: a tensor holds it that only running can tell; handled by the tracer.
    """
    number = operator.index(axis) if not isinstance(axis, (tf.Tensor, tf.Variable)) else _numbers(axis, rank)[0]
    if not -rank <= number < rank:
        raise AxisError(f"axis {axis} is out of bounds for a tensor of rank {rank}.")
    return number % rank


def _numbers(axis: Any, rank: int) -> tuple[int, ...]:
    """The axes in a tensor."""
    return ints(axis, "axis", (-rank, rank))


def axes_of(axis: Any, rank: int) -> tuple[int, ...]:
    """Axes counted from the front: those of an integer or of several, all for None."""
    if axis is None:
        return tuple(range(rank))
    if isinstance(axis, (tf.Tensor, tf.Variable)):
        axis = _numbers(axis, rank)
    given: Sequence[int] = (axis,) if not isinstance(axis, (list, tuple)) else axis
    axes = tuple([axis_of(a, rank) for a in given])
    if len(set(axes)) != len(axes):
        raise ValueError(f"Axes {axis} repeat.")
    return axes
