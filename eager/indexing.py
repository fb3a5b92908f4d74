"""Python's square brackets on tensors: integers, slices, `...`, `tf.newaxis`, scalar tensors and boolean masks.

A key becomes the `spec` of the op `strided_slice`. Keys of plain integers and slices that no tape watches take a
shorter way with the same result. As in TensorFlow, a list is a tuple of indices, and arrays of integers are no keys:
those go through `tf.gather`.
"""

from __future__ import annotations

import operator
from typing import TypeAlias

import numpy as np

from twofold.ir import ops
from twofold.ir.dims import Dim, DimLike, require_same
from twofold.ir.types import Operand

from . import dynamic_indexing
from .record import active
from .tensor import Tensor, wrap
from .types import Key, Readable

__all__ = ["index", "entries", "boolean_mask", "strided_slice_assign"]

# A slice, an index, or None for a new axis: what a key is for the op `strided_slice`.
SliceEntry: TypeAlias = tuple[DimLike | None, DimLike | None, DimLike | None] | DimLike | None

_ELLIPSIS = type(Ellipsis)
_PLAIN = frozenset({int, slice, type(None)})


def index(tensor: Tensor, key: Key) -> Tensor:
    """`tensor[key]`.

    Raises:
        InvalidArgumentError: an index is out of bounds, a step is 0, or there are more indices than axes.
        TypeError: the key holds something that is no index.
        ValueError: a boolean mask does not fit.
    """
    if type(tensor) is Tensor and not active.get():
        element = _plain(tensor._memory, key)
        if element is not None:
            return wrap(element)
    if _is_mask(key):
        return boolean_mask(tensor, key)
    key = _as_tuple(key)
    if dynamic_indexing.is_late(tensor, key):
        return dynamic_indexing.index(tensor, key)
    return ops.strided_slice(tensor, spec=entries(key, len(tensor.dims)))


def _plain(array: np.ndarray, key: Key) -> np.ndarray | None:
    """`array[key]` for a key of plain integers and slices that is right; None leaves it to the general way."""
    kind = type(key)
    try:
        if kind in _PLAIN:
            return array[key, ...]
        if kind is tuple:
            kinds = set(map(type, key))
            if kinds <= _PLAIN:
                return array[(*key, ...)]
            if _ELLIPSIS in kinds and kinds - {_ELLIPSIS} <= _PLAIN:
                return array[key]
    except (IndexError, ValueError, TypeError):
        pass
    return None


def _as_tuple(key: Key) -> Key:
    return tuple(key) if isinstance(key, list) else key


def _is_mask(key: Key) -> bool:
    return isinstance(key, (bool, np.bool_)) or getattr(getattr(key, "dtype", None), "name", "") == "bool"


def entries(key: Key, rank: int) -> tuple[SliceEntry, ...]:
    """A key as the `spec` of a strided slice of a tensor of `rank`.

    Raises:
        TypeError: the key holds something that is no index.
        ValueError: it holds several ellipses.
    """
    parts = key if isinstance(key, tuple) else (key,)
    out: list[SliceEntry] = []
    rest: int | None = None
    for part in parts:
        if type(part) is _ELLIPSIS:
            if rest is not None:
                raise ValueError("Multiple ellipses in slice spec not allowed")
            rest = len(out)
        else:
            out.append(_entry(part))
    if rest is None or rest == len(out):
        return tuple(out)
    missing = rank - sum(e is not None for e in out)
    return (*out[:rest], *[(None, None, None)] * missing, *out[rest:])


def _entry(part: Key) -> SliceEntry:
    if part is None or isinstance(part, Dim):
        return part
    if isinstance(part, slice):
        return (_bound(part.start), _bound(part.stop), _bound(part.step))
    return _integer(part)


def _bound(value: Key) -> DimLike | None:
    return value if value is None or isinstance(value, Dim) else _integer(value)


def _integer(value: Key) -> int:
    shape = getattr(value, "shape", ())
    if not isinstance(value, (bool, np.bool_, list, tuple)) and not (shape and len(shape)):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise TypeError("Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 "
                    f"tensors are valid indices, got {value!r}")


def boolean_mask(tensor: Tensor, mask: Key, axis: int = 0) -> Tensor:
    """The slices of `tensor` for which `mask`, laid along the axes from `axis` on, is true.

    Args:
        tensor: any tensor.
        mask: booleans, rank at least 1, of the shape of those axes.
        axis: the first axis that the mask covers.
    Raises:
        ValueError: the mask is a scalar or its shape does not fit.
    """
    flags: Readable = mask if isinstance(mask, Tensor) or hasattr(mask, "dims") else wrap(np.array(mask, np.bool_))
    rank = len(flags.dims)
    if not rank:
        raise ValueError("mask cannot be scalar.")
    axis = axis + len(tensor.dims) if axis < 0 else axis
    covered = tensor.dims[axis:axis + rank]
    if covered != flags.dims and not require_same(covered, flags.dims):
        raise ValueError(f"Shapes {tuple(covered)} and {tuple(flags.dims)} are incompatible")
    count = 1
    for size in covered:
        count = count * size
    rows = ops.reshape(tensor, shape=(*tensor.dims[:axis], count, *tensor.dims[axis + rank:]))
    places = ops.strided_slice(ops.nonzero(ops.reshape(flags, shape=(count,))), spec=((None, None, None), 0))
    return ops.gather(rows, places, axis=axis)


def strided_slice_assign(tensor: Tensor, key: Key, value: Operand) -> Tensor:
    """A copy of `tensor` in which `tensor[key]` is `value`, broadcast to that shape.

    Raises:
        InvalidArgumentError, TypeError, ValueError: as for `index`, or `value` does not fit.
    """
    key = _as_tuple(key)
    if dynamic_indexing.is_late(tensor, key):
        return dynamic_indexing.assign(tensor, key, value)
    return ops.strided_slice_assign(tensor, value, spec=entries(key, len(tensor.dims)))
