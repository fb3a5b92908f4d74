"""Square brackets whose indices are known only when a traced function runs: `x[i]`, `x[a:b]` with tensors `i, a, b`.

The part of a key that is known stays a strided slice; each axis with an unknown index is gathered. Values are those of
eager execution, and an index out of bounds is the error of `gather`. The same goes for known indices of an axis of
unknown size in a branch or loop: whether they are out of bounds matters only if that part runs.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.dims import Dim, DimLike, decide, numel
from twofold.ir.op import tracing
from twofold.ir.types import Operand

from . import convert
from .tensor import Tensor
from .types import Key

__all__ = ["is_dynamic", "is_late", "index", "assign"]

_FULL = slice(None)


def is_dynamic(key: Key) -> bool:
    """Whether a key holds an integer tensor whose value is not known yet."""
    for part in key if isinstance(key, tuple) else (key,):
        bounds = (part.start, part.stop, part.step) if isinstance(part, slice) else (part,)
        if any(_unknown(b) for b in bounds):
            return True
    return False


def is_late(tensor: Tensor, key: Key) -> bool:
    """Whether the indices of `tensor[key]` can only be checked when the traced function runs: one is unknown, or may be
    out of bounds."""
    if tracing() is None:
        return False
    return is_dynamic(key) or any(_doubtful(tensor, key if isinstance(key, tuple) else (key,)))


def _doubtful(tensor: Tensor, parts: Sequence[Key]) -> list[bool]:
    """For each part of a key, whether it is an index that may be out of bounds, in a region that may not run."""
    doubtful = [False] * len(parts)
    if getattr(tracing(), "parent", None) is None:
        return doubtful
    rest = sum(p is not None and p is not Ellipsis for p in parts)
    axis = 0
    for n, part in enumerate(parts):
        if part is Ellipsis:
            axis = len(tensor.dims) - rest
        elif part is not None:
            if type(part) is int and axis < len(tensor.dims):
                size = tensor.dims[axis]
                doubtful[n] = isinstance(size, Dim) and decide(part if part >= 0 else -part - 1, "<", size) is None
            axis, rest = axis + 1, rest - 1
    return doubtful


def _unknown(value: Key) -> bool:
    if not hasattr(value, "sizes") or value.dims or not value.dtype.is_integer:
        return False
    try:
        operator.index(value)
    except TypeError:
        return True
    return False


def index(tensor: Tensor, key: Key) -> Tensor:
    """`tensor[key]` for a dynamic key."""
    parts = list(key) if isinstance(key, tuple) else [key]
    taken = sum(p is not None and p is not Ellipsis for p in parts)
    missing = len(tensor.dims) - taken
    if Ellipsis in [p if p is Ellipsis else None for p in parts]:
        place = next(n for n, p in enumerate(parts) if p is Ellipsis)
        parts[place:place + 1] = [_FULL] * missing
    static, late, axis = [], [], 0
    for part, doubtful in zip(parts, _doubtful(tensor, parts), strict=True):
        if doubtful or is_dynamic(part):
            late.append((axis, part))
            static.append(_FULL)
        else:
            static.append(part)
        if part is None or isinstance(part, slice) or doubtful or is_dynamic(part):
            axis += 1
    result = tensor[tuple(static)]
    for axis, part in reversed(late):
        result = _along(result, axis, part)
    return result


def assign(tensor: Tensor, key: Key, value: Operand) -> Tensor:
    """A copy of `tensor` in which `tensor[key]`, for a dynamic key, is `value`, broadcast to that shape."""
    if not isinstance(key, (tuple, slice)):  # one item
        place = _counted(key, ops.cast(_size(tensor.dims[0]), dtype=dt.int64))
        item = ops.broadcast_to(value, shape=(1, *tensor.dims[1:]))
        return ops.tensor_scatter(tensor, ops.reshape(place, shape=(1, 1)), item, mode="update")
    count = ops.cast(_size(numel(tensor.dims)), dtype=dt.int64)
    numbers = index(ops.reshape(ops.range_(_long(0), count, _long(1)), shape=tuple(tensor.dims)), key)
    part = ops.broadcast_to(value, shape=tuple(numbers.dims))
    flat = ops.tensor_scatter(ops.reshape(tensor, shape=(-1,)), ops.reshape(numbers, shape=(-1, 1)),
                              ops.reshape(part, shape=(-1,)), mode="update")
    return ops.reshape(flat, shape=tuple(tensor.dims))


def _along(x: Tensor, axis: int, part: Key) -> Tensor:
    size = ops.cast(_size(x.dims[axis]), dtype=dt.int64)
    if not isinstance(part, slice):
        place = _counted(part, size)
        if any(dm.is_exactly(d, 0) for n, d in enumerate(x.dims) if n != axis):  # which a gather does not check
            place = ops.gather(ops.range_(_long(0), size, _long(1)), place, axis=0)
        return ops.gather(x, place, axis=axis)
    if _unknown(part.step):
        return _stepped(x, axis, part, size)
    step = 1 if part.step is None else operator.index(part.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (_long(0), size) if step > 0 else (_long(-1), ops.subtract(size, _long(1)))
    start = (low if step > 0 else high) if part.start is None else _clamped(part.start, size, low, high)
    stop = (high if step > 0 else low) if part.stop is None else _clamped(part.stop, size, low, high)
    stop = ops.maximum(stop, start) if step > 0 else ops.minimum(stop, start)
    return ops.gather(x, ops.range_(start, stop, _long(step)), axis=axis)


def _stepped(x: Tensor, axis: int, part: slice, size: Tensor) -> Tensor:
    """A slice whose step, and so its direction, is not known; a step of 0 is the error of `range`."""
    step = _long(part.step)
    upwards = ops.greater(step, _long(0))
    low = ops.where(upwards, _long(0), _long(-1))
    high = ops.where(upwards, size, ops.subtract(size, _long(1)))
    start = ops.where(upwards, low, high) if part.start is None else _clamped(part.start, size, low, high)
    stop = ops.where(upwards, high, low) if part.stop is None else _clamped(part.stop, size, low, high)
    stop = ops.where(upwards, ops.maximum(stop, start), ops.minimum(stop, start))
    return ops.gather(x, ops.range_(start, stop, step), axis=axis)


def _size(size: DimLike) -> Tensor:
    if isinstance(size, Dim):
        return tracing().size(size)
    return _long(size)


def _long(value: Key) -> Tensor:
    return ops.cast(convert.as_tensor(value), dtype=dt.int64) if hasattr(value, "dims") else convert.as_tensor(
        operator.index(value), dt.int64)


def _counted(value: Key, size: Tensor) -> Tensor:
    """An index counted from the beginning of an axis of `size`."""
    place = _long(value)
    return ops.where(ops.less(place, _long(0)), ops.add(place, size), place)


def _clamped(value: Key, size: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return ops.minimum(ops.maximum(_counted(value, size), low), high)
