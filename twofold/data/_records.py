"""TFRecord files: framed, checked records; and the compressed streams that record and text files may lie in.

A record is its length (uint64), the masked CRC-32C of those eight bytes, its bytes, and their masked CRC-32C, all
little-endian: the framing that TensorFlow documents for TFRecord.
"""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from typing import Any, BinaryIO

import twofold as tf
from twofold._formats.crc32c import crc32c, masked

__all__ = ["Written", "compression_of", "framed", "open_to_read", "open_to_write", "read_record"]

_KINDS = {"": "", "NONE": "", "ZLIB": "ZLIB", "GZIP": "GZIP"}
_CHUNK = 1 << 16
_MUCH = 1 << 24


def compression_of(value: Any) -> str:
    """A `compression_type` argument: "", "ZLIB" or "GZIP".

    Raises:
        ValueError: it is something else.
    """
    kind = _KINDS.get("" if value is None else value.decode() if isinstance(value, bytes) else str(value))
    if kind is None:
        raise ValueError(f"compression_type must be '', 'ZLIB' or 'GZIP'; got {value!r}.")
    return kind


def framed(record: bytes) -> bytes:
    """The bytes of a record in a file, with its length and checksums."""
    length = struct.pack("<Q", len(record))
    return b"".join([length, _checksum(length), record, _checksum(record)])


def _checksum(data: bytes) -> bytes:
    return struct.pack("<I", masked(crc32c(data)))


def read_record(file: BinaryIO, name: str, most: int | None = None) -> bytes | None:
    """The next record of a file, or None at its end.

    Raises:
        DataLossError: the file is cut short or damaged.
    """
    head = file.read(12)
    if not head:
        return None
    if len(head) < 12 or _checksum(head[:8]) != head[8:]:
        raise _lost(name, "truncated record" if len(head) < 12 else "corrupted record: the length's checksum is wrong")
    data = _read_bytes(file, int.from_bytes(head[:8], "little") + 4)
    length = int.from_bytes(head[:8], "little")
    if len(data) < length + 4:
        raise _lost(name, "truncated record")
    record = data[:length]
    if _checksum(record) != data[length:]:
        raise _lost(name, "corrupted record: the checksum is wrong")
    return record


def _read_bytes(file: BinaryIO, count: int) -> bytes:
    """Up to `count` bytes; much memory is taken only for what is there."""
    if count <= _MUCH:
        return file.read(count)
    parts, have = [], 0
    while have < count and (part := file.read(min(_MUCH, count - have))):
        parts.append(part)
        have += len(part)
    return b"".join(parts)


def _lost(name: str, what: str) -> tf.errors.DataLossError:
    return tf.errors.DataLossError(None, None, f"{what} in {name}")


def open_to_read(path: str, compression: str = "", buffer: int | None = None) -> BinaryIO:
    """A file to read bytes from.

    Raises:
        NotFoundError: there is none.
    """
    try:
        if compression == "GZIP":
            return _Gunzipped(path, "rb")  # type: ignore[return-value]
        if compression == "ZLIB":
            return _Inflated(open(path, "rb"), path)  # type: ignore[return-value]
        return open(path, "rb", buffering=buffer if buffer and buffer > 1 else -1)
    except FileNotFoundError:
        raise tf.errors.NotFoundError(None, None, f"{path}; No such file or directory") from None
    except PermissionError:
        raise tf.errors.PermissionDeniedError(None, None, f"{path}; Permission denied") from None
    except IsADirectoryError:
        raise tf.errors.FailedPreconditionError(None, None, f"{path}; Is a directory") from None


class _Gunzipped(gzip.GzipFile):
    """A gzip file; what is damaged is a DataLossError with its name."""

    def read(self, size: int | None = -1) -> bytes:
        """Up to `size` bytes, all where it is negative."""
        return self._careful(super().read, size)

    def readline(self, size: int | None = -1) -> bytes:
        """The bytes to the end of a line."""
        return self._careful(super().readline, size)

    def _careful(self, read: Any, size: Any) -> bytes:
        try:
            return read(size)
        except (zlib.error, EOFError, gzip.BadGzipFile, struct.error) as e:
            raise _lost(str(self.name), f"corrupted gzip stream ({e})") from None


class _Inflated:
    """A zlib stream as a file that is read from start to end."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._inflate, self._ready, self._name = file, zlib.decompressobj(), b"", name

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes, all where it is negative."""
        parts, have = [self._ready], len(self._ready)
        while (size < 0 or have < size) and not self._inflate.eof:
            raw = self._file.read(_CHUNK)
            if not raw:
                break
            try:
                parts.append(self._inflate.decompress(raw))
            except zlib.error as e:
                raise _lost(self._name, f"corrupted zlib stream ({e})") from None
            have += len(parts[-1])
        data = b"".join(parts)
        cut = len(data) if size < 0 else size
        self._ready = data[cut:]
        return data[:cut]

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Written:
    """An open file that gets bytes, compressed or as they are.

    Args:
        file: open for writing bytes.
        compression: "", "ZLIB" or "GZIP".
        level: of the compression, 0 to 9; -1 for the format's default.
    """

    def __init__(self, file: BinaryIO, compression: str, level: int = -1) -> None:
        self._file = file
        self._deflate: Any = None
        if compression == "GZIP":
            self._deflate = zlib.compressobj(9 if level < 0 else level, wbits=16 + zlib.MAX_WBITS)
        elif compression == "ZLIB":
            self._deflate = zlib.compressobj(level)

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self._file.write(data if self._deflate is None else self._deflate.compress(data))

    def flush(self) -> None:
        """Bring what was written to the file."""
        if self._deflate is not None:
            self._file.write(self._deflate.flush(zlib.Z_SYNC_FLUSH))
        self._file.flush()

    def end(self) -> None:
        """End the compressed stream; the file stays open."""
        if self._deflate is not None:
            self._file.write(self._deflate.flush())
            self._deflate = None

    def close(self) -> None:
        """End the stream and close the file."""
        if not self._file.closed:
            try:
                self.end()
            finally:
                self._file.close()


def open_to_write(path: str, compression: str = "", level: int = -1) -> Written:
    """A file to write bytes to.

    Raises:
        NotFoundError: its folder does not exist.
    """
    try:
        file = open(path, "wb")  # noqa: SIM115 - the caller closes it
    except FileNotFoundError:
        raise tf.errors.NotFoundError(None, None, f"{path}; No such file or directory") from None
    return Written(file, compression, level)


def path_of(value: Any) -> str:
    """A file name: a text, bytes, or a path."""
    return os.fsdecode(value)
