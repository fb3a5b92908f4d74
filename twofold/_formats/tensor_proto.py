"""Tensors as bytes: `tf.io.serialize_tensor` and `tf.io.parse_tensor`, in the form of TensorFlow's `TensorProto`.

Fields: 1 the number of the dtype, 2 the shape (sizes are field 1 of its fields 2), 4 the elements in row-major order,
little-endian; 8 strings, one after another. Inside of sparse tensors strings are field 4, too: their lengths, and their
bytes.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from twofold import errors
from twofold._formats import safetensors as _safetensors
from twofold._front import iteration as engine
from twofold.ir import dtypes as dt
from twofold.ir.spec import TensorSpec

from .._front.api import public, tensor
from .._front.hosted import hosted
from .wire import field, fields, number, varint

__all__ = ["parse_tensor", "read", "serialize_tensor", "written"]

_tensor = tensor  # an argument has the name


def written(array: np.ndarray, together: bool = False) -> bytes:
    """An array as a `TensorProto`.

    Args:
        together: whether strings are in one field.
    """
    kind = dt.from_numpy(array.dtype)
    sizes = b"".join(field(2, b"\x08" + number(size) if size else b"") for size in array.shape)
    head = b"\x08" + number(kind.as_datatype_enum) + field(2, sizes)
    if kind is dt.string and not together:
        return head + b"".join(field(8, bytes(text)) for text in array.ravel().tolist())
    if kind is dt.string:
        texts = array.ravel().tolist()
        content = b"".join([*[number(len(text)) for text in texts], *texts])
    else:
        content = bytes(_safetensors.row_major(array))
    return head + (field(4, content) if content else b"")


def read(data: bytes, wanted: dt.DType) -> np.ndarray:
    """The array of a `TensorProto`.

    Raises:
        InvalidArgumentError: it is damaged, of another dtype, or in a form of single values.
    """
    kind, content = 0, b""
    sizes: list[int] = []
    texts: list[bytes] = []
    try:
        for tag, value in fields(data):
            if tag == 1:
                kind = int(value)
            elif tag == 2:
                sizes = [int(dict(fields(d)).get(1, 0)) for n, d in fields(value) if n == 2]
            elif tag == 4:
                content = value
            elif tag == 8:
                texts.append(value)
            else:
                raise ValueError(f"field {tag}, of single values, is not read")
        dtype = dt.as_dtype(kind)
        if dtype is dt.string and content:
            texts = _parted(content, math.prod(sizes))
    except (ValueError, IndexError, TypeError, struct.error) as e:
        raise errors.InvalidArgumentError(None, "ParseTensor", f"Could not parse tensor: {e}") from None
    if dtype is not wanted:
        raise errors.InvalidArgumentError(None, "ParseTensor", "Type mismatch between parsed tensor "
                                          f"({dtype.name}) and dtype ({wanted.name})")
    count = math.prod(sizes)
    if dtype is dt.string and len(texts) == count:
        out = np.empty(count, object)
        out[:] = texts
        return out.reshape(sizes)
    if dtype is dt.string or len(content) != count * dtype.size:
        raise errors.InvalidArgumentError(None, "ParseTensor", f"Could not parse tensor: shape {sizes} of {dtype.name} "
                                          f"does not fit {len(texts) or len(content)} values or bytes")
    return np.frombuffer(content, dtype.np).reshape(sizes).copy()


def _parted(content: bytes, count: int) -> list[bytes]:
    """The strings of one field.

    Raises:
        ValueError, IndexError: there are not so many.
    """
    at, lengths = 0, []
    for _ in range(count):
        size, at = varint(content, at)
        lengths.append(size)
    if at + sum(lengths) != len(content):
        raise ValueError("the lengths of strings do not fit")
    texts = []
    for size in lengths:
        texts.append(content[at:at + size])
        at += size
    return texts


@public
@hosted
def serialize_tensor(tensor: Any, name: str | None = None) -> Any:
    """A tensor as bytes: a string scalar that holds TensorFlow's `TensorProto`.

    Args:
        tensor: of any dtype.
        name: has no effect.

    >>> import twofold as tf
    >>> data = tf.io.serialize_tensor([[1.0, 2.0]])
    >>> tf.io.parse_tensor(data, tf.float32).numpy().tolist()
    [[1.0, 2.0]]
    """
    def serialize(given: Any) -> list[Any]:
        array = np.empty((), object)
        array[()] = written(engine.array_of(given))
        return [engine.tensor_of(array)]
    return engine.host_call(serialize, "SerializeTensor", [_tensor(tensor)], [TensorSpec((), dt.string)])[0]


@public
@hosted
def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Any:
    """The tensor that bytes hold; see `serialize_tensor`.

    Args:
        serialized: a string scalar.
        out_type: the dtype of the tensor.
        name: has no effect.
    Returns:
        The tensor. In a function its rank is not known before `tf.ensure_shape` or `set_shape`.
    Raises:
        InvalidArgumentError: the bytes hold none, or one of another dtype.
    """
    wanted = dt.as_dtype(out_type)

    def parse(given: Any) -> list[Any]:
        return [engine.tensor_of(read(engine.array_of(given).item(), wanted))]
    return engine.host_call(parse, "ParseTensor", [_tensor(serialized)], [TensorSpec(None, wanted)])[0]
