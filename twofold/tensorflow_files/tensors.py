"""Tensors, shapes and dtypes as TensorFlow's files have them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from twofold._formats.reading import bound
from twofold.ir import dtypes as dt
from twofold.ir.spec import TensorShape

from .messages import Message, floats, numbers

__all__ = ["RESOURCE", "VARIANT", "Room", "array_of", "dtype_of", "shape_of"]

RESOURCE, VARIANT = 20, 21  # numbers of dtypes of what is no tensor
_AXES = 254  # that a tensor may have
_REFERENCE = 100  # added to the numbers of dtypes of references to variables
#: the numbers of quantised dtypes, which are integers that know of no range here
_QUANTISED = {11: dt.int8, 12: dt.uint8, 13: dt.int32, 15: dt.int16, 16: dt.uint16}
_BITS = {19: np.float16, 14: None}  # dtypes whose values lie in half_val; None for that of ml_dtypes


class Room:
    """How many bytes may still be made of a file.

    Args:
        size: of the file.
    """

    def __init__(self, size: int) -> None:
        self._most = self._left = bound(size)

    def take(self, count: int) -> None:
        """Take `count` bytes.

        Raises:
            ValueError: there are not so many left.
        """
        self._left -= count
        if self._left < 0:
            raise ValueError(f"its constants would take more than {self._most:,} bytes")


def dtype_of(number: int) -> dt.DType:
    """The dtype of a number of `DataType`.

    Raises:
        ValueError: there is none, or it is one that is not known here.
    """
    number = number - _REFERENCE if number > _REFERENCE else number
    try:
        return _QUANTISED[number] if number in _QUANTISED else dt.as_dtype(number)
    except TypeError:
        raise ValueError(f"there is no dtype of the number {number} here") from None


def shape_of(data: Any) -> TensorShape:
    """The shape of a `TensorShapeProto`."""
    message = Message(data)
    if message.number(3):
        return TensorShape(None)
    sizes = [dim.number(1) for dim in message.messages(2)]
    if len(sizes) > _AXES or any(size < -1 for size in sizes):
        raise ValueError(f"there is no shape {sizes[:8]}")
    return TensorShape([None if size == -1 else size for size in sizes])


def array_of(data: Any, room: Room) -> np.ndarray:
    """The array of a `TensorProto`; where it has fewer values than elements, the last one is repeated.

    Raises:
        ValueError: values do not fit the shape, or there is no room.
    """
    message = Message(data)
    dtype = dtype_of(message.number(1))
    sizes = shape_of(message.bytes(2)).as_list()
    shape = [size for size in sizes if size is not None]
    if len(shape) != len(sizes):
        raise ValueError("the shape of a constant is open")
    count = math.prod(shape)
    room.take(max(count, 1) * (8 if dtype is dt.string else dtype.size))
    content = message.bytes(4)
    if len(content):
        if dtype is dt.string or len(content) != count * dtype.size:
            raise ValueError(f"a constant {dtype.name}{shape} has {len(content)} bytes")
        return np.frombuffer(content, dtype.np).reshape(shape).copy()
    values = _values(message, dtype)
    if len(values) > count:
        raise ValueError(f"a constant {dtype.name}{shape} has {len(values)} values")
    made = np.empty(count, dtype.np)
    if len(values) < count:
        made[:] = values[-1] if len(values) else (b"" if dtype is dt.string else np.zeros((), dtype.np))
    made[:len(values)] = values
    return made.reshape(shape)


def _values(message: Message, dtype: dt.DType) -> np.ndarray:
    """The single values that a constant is made of."""
    number = dtype.as_datatype_enum
    if dtype is dt.string:
        texts = [bytes(v) for v in message.all(8)]
        made = np.empty(len(texts), object)
        made[:] = texts
        return made
    if number in _BITS:
        return np.array(numbers(message.all(13)), np.uint16).view(dtype.np)
    wide = {1: (5, "f"), 2: (6, "d"), 8: (9, "f"), 18: (12, "d")}.get(number)
    if wide is not None:
        return np.frombuffer(b"".join(floats(message.all(wide[0]), wide[1])), dtype.np)
    if dtype.size == 1 and not dtype.is_integer and dtype is not dt.bool_:
        return np.frombuffer(bytes(message.bytes(18)), dtype.np)
    field = {9: 10, 10: 11, 22: 16, 23: 17}.get(number, 7)
    mask = (1 << 8 * dtype.size) - 1
    whole = np.array([value & mask for value in numbers(message.all(field))], np.uint64)
    if dtype is dt.bool_:
        return whole != 0
    return whole.astype(f"u{dtype.size}").view(dtype.np)
