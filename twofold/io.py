"""`tf.io`: files, records and the examples in them, bytes as numbers, and images in files."""

from __future__ import annotations

from typing import Any

import numpy as np

from twofold._front.namespace import publish

from ._formats import gfile
from ._formats.decoding import decode_base64, decode_compressed, decode_csv, encode_base64
from ._formats.gfile import matching_files, read_file, write_file
from ._formats.image_encoding import encode_jpeg, encode_png
from ._formats.image_files import (
    decode_and_crop_jpeg,
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
    decode_webp,
    extract_jpeg_shape,
    is_jpeg,
)
from ._formats.json_example import decode_json_example
from ._formats.parsing import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    parse_example,
    parse_sequence_example,
    parse_single_example,
    parse_single_sequence_example,
)
from ._formats.tensor_proto import parse_tensor, serialize_tensor
from ._front import iteration as engine
from ._front.api import public
from ._front.hosted import hosted
from ._sparse.serialized import deserialize_many_sparse, serialize_many_sparse, serialize_sparse

__all__ = [
    "FixedLenFeature", "FixedLenSequenceFeature", "RaggedFeature", "SparseFeature", "TFRecordOptions",
    "VarLenFeature", "TFRecordWriter", "decode_and_crop_jpeg",
    "decode_base64", "decode_bmp", "decode_compressed", "decode_csv", "decode_gif", "decode_image", "decode_jpeg",
    "decode_json_example", "decode_png", "decode_raw", "decode_webp", "deserialize_many_sparse", "encode_base64",
    "encode_jpeg", "encode_png", "extract_jpeg_shape", "gfile", "is_jpeg", "match_filenames_once", "matching_files",
    "parse_example",
    "parse_sequence_example", "parse_single_example", "parse_single_sequence_example", "parse_tensor", "read_file",
    "serialize_many_sparse", "serialize_sparse", "serialize_tensor", "write_file",
]


class TFRecordOptions:
    """How a TFRecord file is written.

    Args:
        compression_type: "", "ZLIB" or "GZIP".
        compression_level: 0 (quick) to 9 (small); -1 for the usual one.
        flush_mode, input_buffer_size, output_buffer_size, window_bits, compression_method, mem_level,
            compression_strategy: accepted, without effect.

    >>> import twofold as tf
    >>> tf.io.TFRecordOptions("GZIP").compression_type
    'GZIP'
    """

    def __init__(self, compression_type: Any = None, flush_mode: Any = None, input_buffer_size: Any = None,
                 output_buffer_size: Any = None, window_bits: Any = None, compression_level: int | None = None,
                 compression_method: Any = None, mem_level: Any = None, compression_strategy: Any = None) -> None:
        from twofold.data._records import compression_of
        self.compression_type = compression_of(compression_type)
        self.compression_level = -1 if compression_level is None else int(compression_level)


@engine.guarded
class TFRecordWriter:
    """Writes a TFRecord file; a context manager.

    Args:
        path: of the file, which is written anew.
        options: a `TFRecordOptions`, or the compression type.
    Raises:
        NotFoundError: the folder does not exist. ValueError: there is no such compression.

    >>> import os, tempfile
    >>> import twofold as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "data.tfrecord")
    ...     with tf.io.TFRecordWriter(path) as writer:
    ...         writer.write(b"a record")
    ...     os.path.getsize(path) - len(b"a record")
    16
    """

    def __init__(self, path: Any, options: Any = None) -> None:
        from twofold.data._records import open_to_write, path_of
        settings = options if isinstance(options, TFRecordOptions) else TFRecordOptions(options)
        self._file = open_to_write(path_of(path), settings.compression_type, settings.compression_level)
        self._closed = False

    def write(self, record: Any) -> None:
        """Append a record.

        Args:
            record: bytes, or a string tensor that is a scalar.
        Raises:
            FailedPreconditionError: the writer is closed. TypeError: it is neither.
        """
        from twofold import errors
        from twofold.data._records import framed
        if self._closed:
            raise errors.FailedPreconditionError(None, None, "Writer not initialized or previously closed")
        if not isinstance(record, (bytes, bytearray, memoryview)):
            value = engine.array_of(record)
            if value.dtype != object or value.ndim:
                raise TypeError(f"a record is bytes; got {type(record).__name__}.")
            record = value[()]
        self._file.write(framed(bytes(record)))

    def flush(self) -> None:
        """Bring what was written to the file."""
        if not self._closed:
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if not self._closed:
            self._closed = True
            self._file.close()

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


@public
def match_filenames_once(pattern: Any, name: str | None = None) -> Any:
    """A variable of the paths that match patterns now.

    Args:
        pattern: a string scalar, or a vector of strings.
        name: of the variable.

    >>> import twofold as tf
    >>> tf.io.match_filenames_once("/no/such/*").numpy().tolist()
    []
    """
    from twofold.eager.variable import Variable
    return Variable(matching_files(pattern), trainable=False, validate_shape=False, name=name)


@public
@hosted
def decode_raw(input_bytes: Any, out_type: Any, little_endian: bool = True, fixed_length: int | None = None,
               name: str | None = None) -> Any:
    """The bytes of strings as numbers.

    Args:
        input_bytes: a string tensor; all its strings have one length, unless `fixed_length` is given.
        out_type: the dtype of the numbers.
        little_endian: the order of the bytes of a number.
        fixed_length: to how many bytes strings are cut, or filled up with zeros.
        name: accepted, without effect.
    Returns:
        A tensor of `out_type` with one more axis, over the numbers of a string.
    Raises:
        InvalidArgumentError: lengths differ, or are no multiple of the size of a number.

    >>> import twofold as tf
    >>> tf.io.decode_raw(tf.constant(b"\\x01\\x00\\x02\\x00"), tf.uint16)
    <tf.Tensor: shape=(2,), dtype=uint16, numpy=array([1, 2], dtype=uint16)>
    >>> tf.io.decode_raw([b"ab", b"c"], tf.uint8, fixed_length=2).numpy().tolist()
    [[97, 98], [99, 0]]
    """
    del name
    from twofold.ir import dtypes as dt
    from twofold.ir.errors import InvalidArgumentError
    from twofold.ir.spec import TensorSpec

    from ._front.api import one_size, tensor
    dtype = dt.as_dtype(out_type)
    order = dtype.np.newbyteorder("<" if little_endian else ">")
    length = None if fixed_length is None else one_size(fixed_length, "fixed_length")

    def decode(tensor: Any) -> list[Any]:
        strings = engine.array_of(tensor)
        flat = strings.ravel().tolist()
        if length is not None:
            flat = [s[:length].ljust(length, b"\0") for s in flat]
        sizes = {len(s) for s in flat} or {0}
        if len(sizes) > 1:
            raise InvalidArgumentError(None, "decode_raw", f"all strings must have one length; got {sorted(sizes)}.")
        size = sizes.pop()
        if size % dtype.size:
            raise InvalidArgumentError(None, "decode_raw", f"Input to DecodeRaw has length {size} that is not a "
                                                           f"multiple of {dtype.size}, the size of {dtype.name}")
        numbers = np.frombuffer(b"".join(flat), order).astype(dtype.np)
        return [engine.tensor_of(numbers.reshape(*strings.shape, size // dtype.size))]
    given = tensor(input_bytes)
    rank = given.shape.rank
    return engine.host_call(decode, "decode_raw", [given],
                            [TensorSpec(None if rank is None else [*given.shape, None], dtype)])[0]


publish(__name__)
