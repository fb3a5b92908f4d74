"""What fills tables: keys and values from tensors, and from the lines of a text file."""

from __future__ import annotations

import abc
import os
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import one_int, tensor
from twofold.ir.dtypes import DType
from twofold.ir.errors import InvalidArgumentError

__all__ = ["Initializer", "KeyValueTensorInitializer", "TextFileIndex", "TextFileInitializer"]


class Initializer(abc.ABC):
    """Gives the keys and values of a table.

    Args:
        key_dtype, value_dtype: their dtypes.
    """

    def __init__(self, key_dtype: DType, value_dtype: DType) -> None:
        self._dtypes = key_dtype, value_dtype

    @property
    def key_dtype(self) -> DType:
        """The dtype of keys."""
        return self._dtypes[0]

    @property
    def value_dtype(self) -> DType:
        """The dtype of values."""
        return self._dtypes[1]

    def initialize(self, table: Any) -> None:
        """Fill a table that has nothing yet; tables do so when they are made."""
        table._contents.fill(*self.pairs())

    @abc.abstractmethod
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The keys, and a value for each."""


class KeyValueTensorInitializer(Initializer):
    """Keys and values from tensors.

    Args:
        keys, values: tensors of one shape, or what converts to them.
        key_dtype, value_dtype: to which they are converted; their own by default.
        name: accepted, without effect.

    >>> import twofold as tf
    >>> pairs = tf.lookup.KeyValueTensorInitializer([1, 2], ["one", "two"], key_dtype=tf.int64)
    >>> tf.lookup.StaticHashTable(pairs, "?").lookup(tf.constant([2, 3], tf.int64)).numpy().tolist()
    [b'two', b'?']
    """

    def __init__(self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None,
                 name: str | None = None) -> None:
        self._keys, self._values = tensor(keys, key_dtype), tensor(values, value_dtype)
        super().__init__(self._keys.dtype, self._values.dtype)

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The keys, and a value for each."""
        return engine.array_of(self._keys), engine.array_of(self._values)


class TextFileIndex:
    """What `tf.lookup.TextFileInitializer` takes from a line, where it is no column of it."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TextFileInitializer(Initializer):
    """Keys and values from the lines of a text file.

    Args:
        filename: of the file; a string scalar.
        key_dtype, value_dtype: string, int64, or for values also another integer or float.
        key_index, value_index: where they are in a line: the number of a column, from 0; or `tf.lookup.TextFileIndex`'s
            WHOLE_LINE or LINE_NUMBER.
        vocab_size: how many lines are taken; all by default.
        delimiter: between columns, one character.
        name: accepted, without effect.
        value_index_offset: added to line numbers.
    Raises:
        ValueError: there is no name, or a dtype cannot hold what is asked for. NotFoundError: there is no such file.
        InvalidArgumentError: a line is empty, or has no such column, or something that is no number.

    >>> import os, tempfile
    >>> import twofold as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "terms.txt")
    ...     tf.io.write_file(path, "emerson 10\\nlake 20\\n")
    ...     lines = tf.lookup.TextFileInitializer(path, tf.string, 0, tf.int64, 1, delimiter=" ")
    ...     table = tf.lookup.StaticHashTable(lines, -1)
    >>> table.lookup(tf.constant(["lake", "palmer"])).numpy().tolist()
    [20, -1]
    """

    def __init__(self, filename: Any, key_dtype: Any, key_index: int, value_dtype: Any, value_index: int,
                 vocab_size: int | None = None, delimiter: str = "\t", name: str | None = None,
                 value_index_offset: int = 0) -> None:
        if not tf.is_tensor(filename) and not filename:
            raise ValueError("`filename` argument required for tf.lookup.TextFileInitializer")
        super().__init__(tf.as_dtype(key_dtype), tf.as_dtype(value_dtype))
        self._columns = one_int(key_index, "key_index"), one_int(value_index, "value_index")
        for what, column, dtype in zip(("key", "value"), self._columns, self._dtypes, strict=True):
            _check_column(what, column, dtype)
        if vocab_size is not None and one_int(vocab_size, "vocab_size") <= 0:
            raise ValueError(f"`vocab_size` should be > 0, received: {vocab_size}")
        if len(delimiter) != 1:
            raise InvalidArgumentError(None, "TextFileInitializer",
                                       f"delimiter should be only 1 char; got {delimiter!r}")
        self._most, self._delimiter = vocab_size, delimiter.encode()
        self._offset = one_int(value_index_offset, "value_index_offset")
        self._path = os.fsdecode(engine.array_of(filename, tf.string).item()) if tf.is_tensor(
            filename) else os.fspath(filename)

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The keys, and a value for each."""
        contents = engine.array_of(tf.io.read_file(self._path)).item()
        lines = contents.split(b"\n")
        lines = lines[:-1] if lines[-1] == b"" else lines
        if self._most is not None:
            if len(lines) < self._most:
                raise InvalidArgumentError(None, "TextFileInitializer", f"Invalid vocab_size in {self._path}: expected "
                                                                        f"{self._most} but got {len(lines)}")
            lines = lines[:self._most]
        lines = [line.rstrip(b"\r") for line in lines]
        if b"" in lines:
            raise InvalidArgumentError(None, "TextFileInitializer", f"Invalid content in {self._path}: empty line "
                                                                    f"found at position {lines.index(b'')}.")
        keys, values = (self._column(lines, column, dtype)
                        for column, dtype in zip(self._columns, self._dtypes, strict=True))
        return keys, values + self._offset if self._columns[1] == TextFileIndex.LINE_NUMBER else values

    def _column(self, lines: list[bytes], column: int, dtype: DType) -> np.ndarray:
        if column == TextFileIndex.LINE_NUMBER:
            return np.arange(len(lines), dtype=np.int64)
        texts = lines
        if column != TextFileIndex.WHOLE_LINE:
            rows = [line.split(self._delimiter) for line in lines]
            short = next((n for n, row in enumerate(rows) if len(row) <= column), None)
            if short is not None:
                raise InvalidArgumentError(
                    None, "TextFileInitializer", f"Invalid number of columns in {self._path} line {short} "
                    f"({lines[short]!r}): expected at least {column + 1} got {len(rows[short])}")
            texts = [row[column] for row in rows]
        if dtype is tf.string:
            made = np.empty(len(texts), object)
            made[:] = texts
            return made
        return engine.array_of(tf.strings.to_number(texts, dtype)) if texts else np.empty(0, dtype.as_numpy_dtype)


def _check_column(what: str, column: int, dtype: DType) -> None:
    if column < -2:
        raise ValueError(f"`{what}_index` should be >= -2, received: {column}.")
    if column == TextFileIndex.LINE_NUMBER and dtype is not tf.int64:
        raise ValueError(f"`{what}_dtype` must be int64 if `{what}_index` is {column}, received: {dtype}")
    if column == TextFileIndex.WHOLE_LINE and not dtype.is_integer and dtype is not tf.string:
        raise ValueError(f"`{what}_dtype` should be either integer or string for `{what}_index` {column}, received: "
                         f"{dtype}")
