"""Arrays in `safetensors` files: writing them, and reading them whole with a checksum.

The file is what the safetensors format says: eight bytes with the length of a JSON header, the header, the data. What
that format has no type for is spelt with what it has: a complex array as floats with a last axis of 2 (real,
imaginary); strings as `NAME#bytes` (all bytes, one after another) and `NAME#ends` (where each ends, int64). Which
arrays are of that kind the reader is told (`dtype`), so that every other file of the format can be read too.

Data is read straight into arrays of its own, and hashed on the way: no bytes are used that were not checked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType

__all__ = ["write", "read", "read_all", "restored", "row_major", "spelt", "FormatError"]

_NAMES = {dt.bool_: "BOOL", dt.int8: "I8", dt.int16: "I16", dt.int32: "I32", dt.int64: "I64", dt.uint8: "U8",
          dt.uint16: "U16", dt.uint32: "U32", dt.uint64: "U64", dt.float16: "F16", dt.bfloat16: "BF16",
          dt.float32: "F32", dt.float64: "F64", dt.float8_e5m2: "F8_E5M2", dt.float8_e4m3fn: "F8_E4M3"}
_TYPES = {name: dtype for dtype, name in _NAMES.items()}
_HEADER = 100_000_000  # bytes; the limit that the format itself has
_RANK = 64  # NumPy's limit
_ALIGN = 8


class FormatError(ValueError):
    """A file is no file of the safetensors format, or holds other arrays than are asked for."""


def spelt(name: str, array: np.ndarray, dtype: DType) -> dict[str, np.ndarray]:
    """An array as arrays of the types that the format has, by name.

    >>> list(spelt("t", np.array(["a", "bc"], object), dt.string))
    ['t#bytes', 't#ends']
    """
    if dtype is dt.string:
        parts = [s.encode() if isinstance(s, str) else bytes(s) for s in array.reshape(-1).tolist()]
        ends = np.cumsum([len(p) for p in parts], dtype=np.int64).reshape(array.shape)
        return {f"{name}#bytes": np.frombuffer(b"".join(parts), np.uint8), f"{name}#ends": ends}
    if dtype.is_complex:
        plain = np.ascontiguousarray(array, dtype.np)  # of this machine's byte order, as `view` takes it to be
        return {name: plain.view(dtype.real_dtype.np).reshape(*array.shape, 2)}
    return {name: array}


def restored(name: str, arrays: Mapping[str, np.ndarray], dtype: DType) -> np.ndarray:
    """The array of a name and dtype from the arrays of a file, read-only.

    Raises:
        FormatError: it is not there, or of another dtype.
    """
    if dtype is dt.string:
        made = _strings(_one(arrays, f"{name}#bytes", dt.uint8), _one(arrays, f"{name}#ends", dt.int64), name)
    elif dtype.is_complex:
        pairs = _one(arrays, name, dtype.real_dtype)
        if not pairs.shape or pairs.shape[-1] != 2:
            raise FormatError(f"array {name!r} of complex numbers has no last axis of 2")
        made = pairs.view(dtype.np)[..., 0]
    else:
        made = _one(arrays, name, dtype)
    made.flags.writeable = False
    return made


def _one(arrays: Mapping[str, np.ndarray], name: str, dtype: DType) -> np.ndarray:
    array = arrays.get(name)
    if array is None:
        raise FormatError(f"there is no array {name!r}")
    if dt.from_numpy(array.dtype) is not dtype:
        raise FormatError(f"array {name!r} is {array.dtype}; {dtype.name} is expected")
    return array


def _strings(data: np.ndarray, ends: np.ndarray, name: str) -> np.ndarray:
    flat = ends.reshape(-1)
    starts = np.concatenate([np.zeros(1, np.int64), flat])[:-1]
    if data.ndim != 1 or bool((flat < starts).any()) or (int(flat[-1]) if flat.size else 0) != data.size:
        raise FormatError(f"the strings of array {name!r} do not fill its bytes")
    whole = data.tobytes()
    made = np.empty(flat.shape, object)
    for n, (start, end) in enumerate(zip(starts.tolist(), flat.tolist(), strict=True)):
        made[n] = whole[start:end]
    return made.reshape(ends.shape)


class _Unhashed:
    """In the place of a checksum that nobody asks for."""

    def update(self, data: Any) -> None:
        """Nothing."""

    def hexdigest(self) -> str:
        """No text."""
        return ""


def write(file: BinaryIO, arrays: Mapping[str, np.ndarray], texts: Mapping[str, str] | None = None,
          hashed: bool = True) -> tuple[int, str]:
    """Write arrays of types that the format has, in order of their names.

    Args:
        file: open for writing bytes.
        arrays: by name.
        texts: the file's metadata.
        hashed: whether the file's checksum is wanted.
    Returns:
        How many bytes were written, and their SHA-256.
    """
    header: dict[str, Any] = {"__metadata__": dict(texts)} if texts else {}
    place = 0
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))  # so that all are aligned
    for name in order:
        array = arrays[name]
        header[name] = {"dtype": _NAMES[dt.from_numpy(array.dtype)], "shape": list(array.shape),
                        "data_offsets": [place, place + array.nbytes]}
        place += array.nbytes
    head = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    head += b" " * (-len(head) % _ALIGN)
    digest: Any = hashlib.sha256() if hashed else _Unhashed()
    count = 0
    for piece in (len(head).to_bytes(8, "little"), head, *(row_major(arrays[name]) for name in order)):
        file.write(piece)
        digest.update(piece)
        count += len(piece)
    return count, digest.hexdigest()


def row_major(array: np.ndarray) -> memoryview | bytes:
    """The bytes of an array of any strides and byte order, in row-major order and little-endian, as files hold them."""
    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return plain.reshape(-1).view(np.uint8).data if plain.size else b""


def read(file: BinaryIO, size: int) -> tuple[dict[str, np.ndarray], str]:
    """All arrays of a file, each with memory of its own.

    Args:
        file: open for reading bytes, at its start.
        size: how many bytes it has.
    Returns:
        The arrays by name, and the SHA-256 of the file.
    Raises:
        FormatError: it is no file of this format. No more memory is taken than the file has bytes.
    """
    return read_all(file, size)[:2]


def read_all(file: BinaryIO, size: int,
             hashed: bool = True) -> tuple[dict[str, np.ndarray], str, dict[str, str]]:
    """What `read` gives, and the file's metadata.

    Args:
        hashed: whether the file's checksum is wanted.
    Raises:
        FormatError: as of `read`.
    """
    digest: Any = hashlib.sha256() if hashed else _Unhashed()
    first = _exactly(file, 8, digest)
    length = int.from_bytes(first, "little")
    if length > min(_HEADER, size - 8):
        raise FormatError(f"the header is said to have {length} bytes; the file has {size}")
    entries, texts = _entries(_exactly(file, length, digest), size - 8 - length)
    arrays: dict[str, np.ndarray] = {}
    for name, dtype, shape, count in entries:
        array = np.empty(count, dtype.np)
        if array.nbytes:
            _fill(file, array, digest)
        if dtype is dt.bool_ and array.size and int(array.view(np.uint8).max()) > 1:
            raise FormatError(f"array {name!r} has a bool that is neither 0 nor 1")
        arrays[name] = array.reshape(shape)
    if file.read(1):
        raise FormatError("there is more in the file than its size")
    return arrays, digest.hexdigest(), texts


def _exactly(file: BinaryIO, count: int, digest: Any) -> bytes:
    data = file.read(count)
    if len(data) != count:
        raise FormatError("the file ends too early")
    digest.update(data)
    return data


def _fill(file: BinaryIO, array: np.ndarray, digest: Any) -> None:
    view = array.view(np.uint8).data
    done = 0
    while done < len(view):
        count = file.readinto(view[done:])  # type: ignore[attr-defined]
        if not count:
            raise FormatError("the file ends too early")
        done += count
    digest.update(view)


def _entries(head: bytes, room: int) -> tuple[list[tuple[str, DType, tuple[int, ...], int]], dict[str, str]]:
    """Name, dtype, shape and number of elements of each array, in the order of the data, which they fill; metadata."""
    try:
        header = json.loads(head.decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as e:
        raise FormatError(f"the header is no JSON: {e}") from None
    if type(header) is not dict:
        raise FormatError("the header is no JSON object")
    texts = header.pop("__metadata__", {})
    if type(texts) is not dict or not all(type(text) is str for text in texts.values()):
        raise FormatError("the metadata holds something else than text")
    entries = []
    for name, about in header.items():
        dtype, shape, (start, end) = _entry(name, about)
        count = 1
        for extent in shape:
            count *= extent
        if end - start != count * dtype.size:
            raise FormatError(f"array {name!r} has {end - start} bytes, which is no {dtype.name}{list(shape)}")
        entries.append((start, end, name, dtype, shape, count))
    entries.sort(key=lambda e: e[:2])
    place = 0
    for start, end, name, *_ in entries:
        if start != place:
            raise FormatError(f"the data of array {name!r} does not begin where the array before ends")
        place = end
    if place != room:
        raise FormatError(f"the arrays have {place} bytes; the file has {room}")
    return [(name, dtype, shape, count) for _, _, name, dtype, shape, count in entries], texts


def _entry(name: str, about: Any) -> tuple[DType, tuple[int, ...], tuple[int, int]]:
    if type(about) is not dict or set(about) != {"dtype", "shape", "data_offsets"}:
        raise FormatError(f"array {name!r} is described by something else than dtype, shape and data_offsets")
    dtype, shape, place = about["dtype"], about["shape"], about["data_offsets"]
    if type(dtype) is not str or dtype not in _TYPES:
        raise FormatError(f"array {name!r} has a type that is not known: {str(dtype)[:40]!r}")
    if not _sizes(shape) or len(shape) > _RANK or not _sizes(place) or len(place) != 2 or place[0] > place[1]:
        raise FormatError(f"array {name!r} has no shape and place")
    return _TYPES[dtype], tuple(shape), (place[0], place[1])


def _sizes(value: Any) -> bool:
    return type(value) is list and all(type(n) is int and 0 <= n < 1 << 62 for n in value)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a name is there twice")
    return fields
