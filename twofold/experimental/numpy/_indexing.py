"""NumPy's square brackets on tensors: masks and arrays of integers among integers, slices, `...` and `None`.

Integers and slices are taken first, and the arrays index what they leave, as in TensorFlow. NumPy counts an integer
beside arrays as one of them: `x[0, :, [1, 2]]` has the axis of the array last here, and first in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import twofold as tf
from twofold._ops.numpy_operands import size_of
from twofold._ops.numpy_picking import counted_from_front, places

__all__ = ["index"]


class _Array(NamedTuple):
    """An array of a key: the axis of what integers and slices leave, and the places along it."""

    axis: int
    places: Any


def index(plain: Callable[[Any, Any], Any], x: Any, key: Any) -> Any:
    """`x[key]`.

    Args:
        plain: square brackets without arrays.
        x: a tensor.
        key: what stands in the brackets.
    """
    parts = [_read(part) for part in (key if isinstance(key, tuple) else (key,))]
    if not any(map(_is_array, parts)):
        return plain(x, tuple(parts))
    parts = _spelled_out(parts, x.ndim)
    rest = plain(x, tuple(_basic(parts)))
    arrays = _arrays(parts)
    if len(arrays) == 1 and arrays[0].places.ndim == 1:
        return tf.gather(rest, _from_front(rest, arrays[0]), axis=arrays[0].axis)
    return _picked(rest, arrays, _together(parts))


def _read(part: Any) -> Any:
    """A part of a key, lists and arrays as tensors, and variables as their values."""
    if isinstance(part, tf.Variable):
        return tf.convert_to_tensor(part)
    if isinstance(part, (bool, np.bool_)):
        return tf.constant(bool(part))
    if isinstance(part, (list, tuple, np.ndarray)):
        read = tf.convert_to_tensor(part)
        return tf.zeros(read.shape, tf.int32) if not read.shape.num_elements() and not read.dtype.is_bool else read
    return part


def _is_array(part: Any) -> bool:
    return isinstance(part, tf.Tensor) and (part.ndim > 0 or part.dtype.is_bool)


def _axes_taken(part: Any) -> int:
    if part is None:
        return 0
    return part.ndim if _is_array(part) and part.dtype.is_bool else 1


def _spelled_out(parts: list[Any], rank: int) -> list[Any]:
    """A key without `...`, which names all axes."""
    dots = [n for n, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    taken = sum(_axes_taken(part) for part in parts if part is not Ellipsis)
    if taken > rank:
        raise IndexError(f"too many indices: a tensor of rank {rank} was indexed with {taken}.")
    place = dots[0] if dots else len(parts)
    return [*parts[:place], *[slice(None)] * (rank - taken), *parts[place + 1:]]


def _basic(parts: list[Any]) -> list[Any]:
    """The key of integers and slices: all of each axis that an array indexes, and a new axis for a single bool."""
    key: list[Any] = []
    for part in parts:
        key += [part] if not _is_array(part) else [slice(None)] * _axes_taken(part) if part.ndim else [None]
    return key


def _arrays(parts: list[Any]) -> list[_Array]:
    """The arrays of a key; a mask is the places where it is true, one array for each of its axes."""
    arrays, axis = [], 0
    for part in parts:
        if not _is_array(part):
            axis += isinstance(part, slice) or part is None
        elif part.dtype.is_bool:
            true = tf.where(part if part.ndim else tf.reshape(part, [1]))
            arrays += [_Array(axis + n, true[:, n]) for n in range(max(part.ndim, 1))]
            axis += max(part.ndim, 1)
        elif not part.dtype.is_integer:
            raise IndexError("Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and arrays of "
                             f"integers or bools are valid indices; got dtype {part.dtype.name}.")
        else:
            arrays.append(_Array(axis, places(part)))
            axis += 1
    return arrays


def _together(parts: list[Any]) -> bool:
    """Whether no slice and no new axis is between the arrays of a key."""
    kept = [_is_array(part) for part in parts if _is_array(part) or isinstance(part, slice) or part is None]
    first, last = kept.index(True), len(kept) - 1 - kept[::-1].index(True)
    return all(kept[first:last + 1])


def _from_front(x: Any, array: _Array) -> Any:
    return counted_from_front(array.places, size_of(x, array.axis))


def _picked(x: Any, arrays: list[_Array], together: bool) -> Any:
    """The elements at the places of several arrays, which broadcast together."""
    first = tf.cast(_from_front(x, arrays[0]), tf.int64)
    indices, shape = [first], tf.shape(first)
    for array in arrays[1:]:
        indices.append(tf.cast(_from_front(x, array), tf.int64))
        shape = tf.broadcast_dynamic_shape(shape, tf.shape(indices[-1]))
    rank = max(i.ndim for i in indices)
    axes = [array.axis for array in arrays]
    rest = [n for n in range(x.ndim) if n not in axes]
    where = tf.stack([tf.broadcast_to(i, shape) for i in indices], axis=-1)
    picked = tf.gather_nd(tf.transpose(x, [*axes, *rest]), where)
    if not together:
        return picked
    before = sum(n < axes[0] for n in rest)
    return tf.transpose(picked, [*range(rank, rank + before), *range(rank), *range(rank + before, picked.ndim)])
