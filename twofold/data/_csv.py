"""Comma-separated values: records of files as tuples of scalars."""

from __future__ import annotations

import csv
import io
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import listed

from ._files import FileNode, Reader, scalar_string
from ._records import open_to_read
from ._structure import Form

__all__ = ["CsvRecords", "inferred", "rows_of"]

_DTYPES = (tf.float32, tf.float64, tf.int32, tf.int64, tf.string)


class CsvRecords(FileNode):
    """The records of CSV files.

    Args:
        defaults: for each column that is read a dtype, where a field must be there, or the value of empty fields.
        columns: the numbers of the columns that are read, rising; None for all.
    """

    name = "Csv"

    def __init__(self, filenames: Any, defaults: Sequence[Any], compression: Any, buffer: Any, header: bool,
                 delimiter: str, quotes: bool, missing: str, columns: Sequence[int] | None) -> None:
        super().__init__(filenames, compression, buffer)
        self.header, self.delimiter, self.quotes, self.missing = bool(header), delimiter, bool(quotes), missing
        defaults = listed(defaults, "record_defaults")
        defaults = listed(defaults, "record_defaults")
        self.columns = None if columns is None else [int(c) for c in listed(columns, "select_cols")]
        if self.columns is not None and sorted(set(self.columns)) != self.columns:
            raise ValueError(f"select_cols must be rising numbers; got {self.columns}.")
        if self.columns is not None and len(self.columns) != len(defaults):
            raise ValueError(f"select_cols names {len(self.columns)} columns, record_defaults has {len(defaults)}.")
        self.fields = [_Field(i, d) for i, d in enumerate(defaults)]
        self.form = Form(tuple([tf.TensorSpec([], f.dtype) for f in self.fields]))

    def reader(self, path: str) -> Reader:
        rows = rows_of(path, self.compression, self.delimiter, self.quotes)
        if self.header:
            next(rows, None)
        return Reader(rows, lambda: self._record(next(rows, None)))

    def _record(self, row: list[str] | None) -> Any:
        if row is None:
            return None
        chosen = row
        if self.columns is not None:
            if self.columns and self.columns[-1] >= len(row):
                raise _invalid(f"Expect at least {self.columns[-1] + 1} fields in record, have {len(row)}")
            chosen = [row[c] for c in self.columns]
        if len(chosen) != len(self.fields):
            raise _invalid(f"Expect {len(self.fields)} fields but have {len(chosen)} in record")
        return tuple([field.read("" if text == self.missing else text)
                      for field, text in zip(self.fields, chosen, strict=True)])


def _invalid(message: str) -> tf.errors.InvalidArgumentError:
    return tf.errors.InvalidArgumentError(None, None, message)


class _Field:
    """How the texts of a column are read."""

    def __init__(self, number: int, default: Any) -> None:
        self.number, self.default = number, None
        self.dtype: Any = default if isinstance(default, tf.DType) else None
        if isinstance(default, type):
            self.dtype = tf.as_dtype(default)
        if self.dtype is None:
            array = np.ravel(engine.array_of(default))
            self.dtype = engine.dtype_of(array)
            self.default = array[:1].reshape(()) if array.size else None
        if self.dtype not in _DTYPES:
            raise TypeError(f"a column of CSV is float32, float64, int32, int64 or string; got {self.dtype!r}.")

    def read(self, text: str) -> np.ndarray:
        """The value of a field."""
        if not text:
            if self.default is None:
                raise _invalid(f"Field {self.number} is required but missing in record!")
            return self.default
        if self.dtype is tf.string:
            return scalar_string(text.encode("utf-8", "surrogateescape"))
        try:
            return _number(text.strip(), self.dtype)
        except (ValueError, OverflowError):
            raise _invalid(f"Field {self.number} in record is not a valid {self.dtype.name}: {text}") from None


def _number(text: str, dtype: Any) -> np.ndarray:
    if dtype.is_integer:
        return np.array(int(text), dtype.as_numpy_dtype)
    return np.array(float(text), dtype.as_numpy_dtype)


def rows_of(path: str, compression: str, delimiter: str, quotes: bool) -> Generator[list[str], None, None]:
    """The rows of a file as lists of texts; empty lines are left out."""
    file = open_to_read(path, compression)
    if not hasattr(file, "readable"):
        file = io.BytesIO(file.read())
    style: Any = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    with io.TextIOWrapper(file, "utf-8", errors="surrogateescape", newline="") as lines:
        for row in csv.reader(lines, delimiter=delimiter, quoting=style):
            if row:
                yield row


def inferred(texts: Sequence[str]) -> Any:
    """The narrowest dtype that all texts of a column can be read as: int32, int64, float32, float64 or string."""
    kinds = [_kind(t) for t in texts if t]
    for dtype in (tf.int32, tf.int64, tf.float32, tf.float64):
        if kinds and all(k <= _ORDER[dtype] for k in kinds):
            return dtype
    return tf.string if kinds else tf.int32


_ORDER = {tf.int32: 0, tf.int64: 1, tf.float32: 2, tf.float64: 3}


def _kind(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        pass
    else:
        return 0 if -(1 << 31) <= value < 1 << 31 else 1 if -(1 << 63) <= value < 1 << 63 else 4
    try:
        number = float(text)
    except ValueError:
        return 4
    return 2 if number != number or abs(number) <= 3.4028235e38 or abs(number) == float("inf") else 3
