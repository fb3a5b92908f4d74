"""Tensors of ONNX files as arrays, read under bounds: a tensor holds no more than its bytes do.

Data may lie in files beside the model (`ExternalData`); these are opened only inside of the model's folder.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from twofold._formats.reading import bound, opened
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType

from .types import DTYPES, ELEMENT_NAMES

__all__ = ["ExternalData", "Room", "array_of", "dtype_of", "sparse_array"]

_RANK = 32  # what arrays here may have at most
_EXTERNAL = 1  # TensorProto.DataLocation

# the fields of a TensorProto that hold single elements, by dtype; all that are not named lie in `int32_data`
_FIELDS = {dt.float32: "float_data", dt.complex64: "float_data", dt.float64: "double_data",
           dt.complex128: "double_data", dt.int64: "int64_data", dt.uint32: "uint64_data", dt.uint64: "uint64_data"}


class Room:
    """How many bytes a file may still become, counted down by what is made of it.

    Args:
        size: of the file, in bytes.
    """

    def __init__(self, size: int) -> None:
        self.all = self.left = bound(size)

    def spend(self, count: int, what: str) -> None:
        """Take `count` bytes.

        Raises:
            ValueError: there are not so many left.
        """
        if count > self.left:
            raise ValueError(f"{what} takes {count:,} bytes; a file of this size may become {self.all:,}")
        self.left -= count


class ExternalData:
    """The files beside a model that hold elements of its tensors.

    Args:
        folder: of the model; None where it was given as bytes.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def read(self, about: dict[str, str], want: int) -> bytes:
        """The bytes of one tensor, `want` in number.

        Raises:
            ValueError: the file is not inside of the folder, or has not so many bytes.
        """
        if self._folder is None:
            raise ValueError("its tensors lie in files beside it: give the path of the model, not its bytes")
        where = about.get("location", "")
        path = (self._folder / where).resolve()
        if not where or os.path.isabs(where) or not path.is_relative_to(self._folder.resolve()):
            raise ValueError(f"external data {where[:200]!r} is not inside of the model's folder")
        start, length = _number(about, "offset", 0), _number(about, "length", want)
        if length != want:
            raise ValueError(f"external data of {length:,} bytes; the shape of the tensor asks for {want:,}")
        with opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            if start + want > size:
                raise ValueError(f"external data {where[:200]!r} ends at {size:,} bytes; {start + want:,} are expected")
            file.seek(start)
            return file.read(want)


def _number(about: dict[str, str], name: str, default: int) -> int:
    text = about.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ValueError(f"external data with {name} {text[:40]!r}")
    return int(text)


def dtype_of(number: int, what: str) -> DType:
    """The dtype for the number of an element type.

    Raises:
        ValueError: there is none here.
    """
    dtype = DTYPES.get(number)
    if dtype is None:
        raise ValueError(f"{what} has elements of {ELEMENT_NAMES.get(number, f'type {number}')}, for which there is no "
                         "dtype")
    return dtype


def array_of(proto: Any, external: ExternalData, room: Room) -> np.ndarray:
    """The array of a `TensorProto`, with memory of its own.

    Raises:
        ValueError: its parts do not fit together, or it is larger than the file can hold.
    """
    what = f"tensor {proto.name[:80]!r}"
    dtype = dtype_of(proto.data_type, what)
    shape = tuple(proto.dims)
    if len(shape) > _RANK or any(d < 0 for d in shape):
        raise ValueError(f"{what} has shape {list(shape)[:_RANK + 1]}")
    count = math.prod(shape)
    if proto.data_location == _EXTERNAL:
        room.left += count * dtype.size  # the file beside has them: reading compares with its size
        room.all += count * dtype.size
        raw: Any = external.read({e.key: e.value for e in proto.external_data}, count * dtype.size)
        return _of_bytes(raw, dtype, shape)
    if dtype is dt.string:
        return _strings(proto, shape, count, what)
    if proto.HasField("raw_data"):
        if len(proto.raw_data) != count * dtype.size:
            raise ValueError(f"{what} has {len(proto.raw_data)} bytes, which is no {dtype.name}{list(shape)}")
        room.spend(count * dtype.size, what)
        return _of_bytes(proto.raw_data, dtype, shape)
    return _of_elements(proto, dtype, shape, count, what)


def _of_bytes(raw: bytes, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    if dtype is dt.bool_:
        return np.frombuffer(raw, np.uint8).reshape(shape) != 0
    return np.frombuffer(raw, dtype.np.newbyteorder("<")).astype(dtype.np).reshape(shape)


def _strings(proto: Any, shape: tuple[int, ...], count: int, what: str) -> np.ndarray:
    if len(proto.string_data) != count:
        raise ValueError(f"{what} has {len(proto.string_data)} strings, which is no string{list(shape)}")
    made = np.empty(count, object)
    made[:] = list(proto.string_data)
    return made.reshape(shape)


def _of_elements(proto: Any, dtype: DType, shape: tuple[int, ...], count: int, what: str) -> np.ndarray:
    """Elements one by one; those of 16-bit floats are their bits, complex ones are pairs."""
    given = getattr(proto, _FIELDS.get(dtype, "int32_data"))
    if len(given) != count * (2 if dtype.is_complex else 1):
        raise ValueError(f"{what} has {len(given)} elements, which is no {dtype.name}{list(shape)}")
    if dtype.is_complex:
        return np.array(given, dtype.real_dtype.np).view(dtype.np).reshape(shape)
    if dtype in (dt.float16, dt.bfloat16):
        return np.array(given, np.int64).astype(np.uint16).view(dtype.np).reshape(shape)
    wide = np.array(given, np.uint64 if dtype is dt.uint64 else None if dtype.is_floating else np.int64)
    return _converter(dtype)(wide).reshape(shape)


def _converter(dtype: DType) -> Callable[[np.ndarray], np.ndarray]:
    return (lambda a: a != 0) if dtype is dt.bool_ else lambda a: a.astype(dtype.np)


def sparse_array(proto: Any, external: ExternalData, room: Room) -> np.ndarray:
    """The array of a `SparseTensorProto`, with its zeros.

    Raises:
        ValueError: its parts do not fit together, or it is larger than the file may become.
    """
    values, places = array_of(proto.values, external, room), array_of(proto.indices, external, room)
    shape = tuple(proto.dims)
    what = f"sparse tensor {proto.values.name[:80]!r}"
    if len(shape) > _RANK or any(d < 0 for d in shape) or values.ndim != 1 or places.dtype != np.int64:
        raise ValueError(f"{what} has shape {list(shape)[:_RANK + 1]}, values of rank {values.ndim} and indices of "
                         f"{places.dtype}")
    room.spend(math.prod(shape) * values.dtype.itemsize, what)
    if places.shape == (len(values), len(shape)):
        inside = ((places >= 0) & (places < np.array(shape))).all()
        flat = np.ravel_multi_index(tuple(places.T), shape) if inside and len(shape) else places.reshape(-1)
    else:
        flat = places
    if flat.shape != values.shape or ((flat < 0) | (flat >= math.prod(shape))).any():
        raise ValueError(f"{what} has indices that do not fit its shape or its values")
    made = np.zeros(math.prod(shape), values.dtype)
    made[flat] = values
    return made.reshape(shape)
