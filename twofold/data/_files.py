"""Elements from files: lines, records of a fixed length, TFRecords, and the names of files."""

from __future__ import annotations

import glob
import os
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine

from ._node import UNKNOWN, Node, check
from ._records import compression_of, open_to_read, path_of, read_record
from ._sources import Slices
from ._stream import Run, Stream
from ._structure import Form

__all__ = ["FileNode", "FixedLengthRecords", "Reader", "Records", "TextLines", "matching_files", "scalar_string"]


def scalar_string(value: bytes) -> np.ndarray:
    """A string as a leaf."""
    made = np.empty((), object)
    made[()] = value
    return made


class Reader:
    """An open file and what gives its records; the file is closed at its end, after an error, or when this goes.

    Args:
        file: the file.
        read: gives the next record, or None at the end.
    """

    def __init__(self, file: Any, read: Callable[[], Any]) -> None:
        self._file, self._read = file, read

    def __call__(self) -> Any:
        """The next record, or None."""
        try:
            record = self._read()
        except BaseException:
            self._file.close()
            raise
        if record is None:
            self._file.close()
        return record

    def __del__(self) -> None:
        self._file.close()


class FileNode(Node):
    """The records of files, one file after another.

    Args:
        filenames: a string tensor of any shape, a list of names, or a node whose elements are names.
        compression: "", "ZLIB" or "GZIP".
        buffer: how many bytes are read at once; None leaves it open.
    """

    def __init__(self, filenames: Any, compression: Any, buffer: Any) -> None:
        self.names = filenames if isinstance(filenames, Node) else names_of(filenames)
        self.compression = compression_of(compression)
        self.buffer = None if buffer is None else int(buffer)
        self.form = Form(tf.TensorSpec([], tf.string))

    def settled(self, key: str, value: Any) -> Any:
        return value

    def cardinality(self) -> int:
        return UNKNOWN

    def start(self, run: Run) -> Stream:
        return _FileStream(self, self.names if isinstance(self.names, Node) else Slices(tf.reshape(self.names, [-1])),
                           run)

    @abstractmethod
    def reader(self, path: str) -> Reader:
        """What reads the records of a file."""


def names_of(filenames: Any) -> Any:
    """An argument that names files, as a string tensor."""
    def text(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [text(v) for v in value]
        return value.__fspath__() if hasattr(value, "__fspath__") else value
    tensor = tf.convert_to_tensor(text(filenames))
    if tensor.dtype is not tf.string:
        raise TypeError(f"The `filenames` argument must contain `tf.string` elements. Got `{tensor.dtype!r}` elements.")
    return tensor


class _FileStream(Stream):
    """A file at a time. What fails to open is passed over when the stream is asked again."""

    def __init__(self, node: FileNode, names: Node, run: Run) -> None:
        self.node = node
        self.names = names.start(run)
        self.path: str | None = None
        self.read: Reader | None = None
        self.count = 0

    def next(self) -> Any:
        while True:
            if self.read is None and not self._open():
                return None
            read = self.read
            self.read = None  # until the record is read: after an error the next file follows
            record = read()  # type: ignore[misc]
            if record is not None:
                self.read = read
                self.count += 1
                return record if type(record) is tuple else (scalar_string(record),)

    def _open(self) -> bool:
        item = self.names.next()
        if item is None:
            return False
        self.path, self.count = path_of(item[0][()]), 0
        self.read = self.node.reader(self.path)
        return True

    def save(self) -> Any:
        return [self.names.save(), None if self.read is None else self.path, self.count]

    def load(self, state: Any) -> None:
        self.names.load(state[0])
        self.path, self.read, self.count = state[1], None, 0
        if self.path is not None:
            self.read = self.node.reader(self.path)
            while self.count < state[2]:
                self.read()
                self.count += 1


class TextLines(FileNode):
    """The lines of text files without their ends."""

    name = "TextLine"

    def reader(self, path: str) -> Reader:
        file = open_to_read(path, self.compression, self.buffer)
        lines = _lines(file)
        return Reader(file, lambda: next(lines, None))


def _lines(file: Any) -> Any:
    if not hasattr(file, "__iter__"):
        rest = b""
        while chunk := file.read(1 << 16):
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                yield line.removesuffix(b"\r")
        if rest:
            yield rest.removesuffix(b"\r")
        return
    for line in file:
        yield line.removesuffix(b"\n").removesuffix(b"\r")


class Records(FileNode):
    """The records of TFRecord files."""

    name = "TFRecord"

    def reader(self, path: str) -> Reader:
        file = open_to_read(path, self.compression, self.buffer)
        return Reader(file, lambda: read_record(file, path))


class FixedLengthRecords(FileNode):
    """Records of one length, between a header and a footer."""

    name = "FixedLengthRecord"

    def __init__(self, filenames: Any, length: int, header: int, footer: int, compression: Any, buffer: Any) -> None:
        super().__init__(filenames, compression, buffer)
        self.length, self.header, self.footer = int(length), int(header or 0), int(footer or 0)
        check(self.length > 0, f"Expected record_bytes > 0, got {length}.")
        check(self.header >= 0 and self.footer >= 0, "header_bytes and footer_bytes must not be negative.")

    def reader(self, path: str) -> Reader:
        file = open_to_read(path, self.compression, self.buffer)
        if not self.compression:
            excess = (os.path.getsize(path) - self.header - self.footer) % self.length
            if excess:
                file.close()
                raise _excess(path, self.length, excess)
        return Reader(file, _fixed(file, self, path))


def _excess(path: str, length: int, count: int) -> tf.errors.InvalidArgumentError:
    return tf.errors.InvalidArgumentError(None, None, f"Excess bytes in {path}: the part between header and footer is "
                                                      f"no multiple of {length} bytes; {count} are left over.")


def _fixed(file: Any, node: FixedLengthRecords, path: str) -> Callable[[], Any]:
    """Reads records while more than the footer is left."""
    ready = b""
    file.read(node.header)

    def read() -> Any:
        nonlocal ready
        wanted = node.length + node.footer
        while len(ready) < wanted:
            more = file.read(max(1 << 16, wanted) if node.footer else wanted - len(ready))
            if not more:
                break
            ready += more
        left = len(ready) - node.footer
        if left <= 0:
            return None
        if left < node.length:
            raise _excess(path, node.length, left)
        record, ready = ready[:node.length], ready[node.length:]
        return record
    return read


def matching_files(patterns: Any) -> list[bytes]:
    """The names of the files that fit any of some glob patterns, sorted.

    Raises:
        InvalidArgumentError: there is none.
    """
    given = [path_of(p) for p in np.ravel(engine.array_of(names_of(patterns))).tolist()]
    names = sorted({name.encode() for pattern in given for name in glob.glob(pattern)})
    check(bool(names), f"No files matched pattern: {', '.join(given)}")
    return names
