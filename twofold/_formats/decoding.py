"""Encodings of bytes in strings: base64 for URLs, compressed bytes, records of comma-separated values."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from twofold._front import iteration as engine
from twofold._front.api import ints, listed, public, tensor
from twofold._front.hosted import hosted
from twofold._front.texts import each_text, same_shape
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.errors import DataLossError, InvalidArgumentError, ResourceExhaustedError

from .reading import bound

__all__ = ["decode_base64", "decode_compressed", "decode_csv", "encode_base64"]


# -- base64 -------------------------------------------------------------------------------------------
@public
@hosted
def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Any:
    """Strings in the base64 that URLs and names of files may hold, with "-" and "_".

    Args:
        input: strings.
        pad: whether "=" fills the last group of four.
        name: accepted, without effect.

    >>> import twofold as tf
    >>> tf.io.encode_base64(["a", "ab"], pad=True).numpy().tolist()
    [b'YQ==', b'YWI=']
    """
    return each_text(lambda text: base64.urlsafe_b64encode(text).rstrip(b"" if pad else b"="), input, "EncodeBase64")


@public
@hosted
def decode_base64(input: Any, name: str | None = None) -> Any:
    """The strings that `encode_base64` made others of, padded or not.

    Args:
        input: strings.
        name: accepted, without effect.
    Raises:
        InvalidArgumentError: a string is not such.

    >>> import twofold as tf
    >>> tf.io.decode_base64(["YQ==", "YWI"]).numpy().tolist()
    [b'a', b'ab']
    """
    return each_text(_from_base64, input, "DecodeBase64")


def _from_base64(text: bytes) -> bytes:
    plain = text.rstrip(b"=") if len(text) % 4 == 0 and len(text) - len(text.rstrip(b"=")) <= 2 else text
    if len(plain) % 4 == 1:
        raise InvalidArgumentError(None, "DecodeBase64", "Base64 string length cannot be 1 modulo 4.")
    try:
        if any(sign in plain for sign in b"+/="):
            raise binascii.Error
        return base64.b64decode(plain + b"=" * (-len(plain) % 4), b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise InvalidArgumentError(None, "DecodeBase64", "Invalid character found in base64.") from None


# -- compression --------------------------------------------------------------------------------------
_WINDOW = {"ZLIB": 15, "GZIP": 31}


@public
@hosted
def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Any:
    """Strings that were compressed.

    What a string is inflated to may take 64 times its size, at least 16 MiB.

    Args:
        bytes: strings.
        compression_type: "", "ZLIB" or "GZIP".
        name: accepted, without effect.
    Raises:
        InvalidArgumentError: there is no such compression. DataLossError: a string is damaged.
        ResourceExhaustedError: it is inflated to more than it may.

    >>> import gzip
    >>> import twofold as tf
    >>> tf.io.decode_compressed([gzip.compress(b"hello")], "GZIP").numpy().tolist()
    [b'hello']
    """
    if compression_type not in ("", *_WINDOW):
        raise InvalidArgumentError(None, "DecodeCompressed", "Only ZLIB, GZIP or NONE are supported compressions; got "
                                                             f"{compression_type!r}")
    window = _WINDOW.get(compression_type)
    return each_text(lambda text: text if window is None else _inflated(text, window), bytes, "DecodeCompressed")


def _inflated(text: bytes, window: int) -> bytes:
    """All that is compressed in a text; what was cut off, as far as it goes."""
    most, made, rest = bound(len(text)), b"", text
    while rest:
        stream = zlib.decompressobj(window)
        try:
            made += stream.decompress(rest, most - len(made) + 1)
        except zlib.error as e:
            raise DataLossError(None, "DecodeCompressed", f"inflate() failed: {e}") from None
        if len(made) > most:
            raise ResourceExhaustedError(None, "DecodeCompressed",
                                         f"{len(text)} bytes are inflated to more than {most}.")
        rest = stream.unused_data if window == _WINDOW["GZIP"] else b""
    return made


# -- comma-separated values ---------------------------------------------------------------------------
_COLUMNS = (dt.float32, dt.float64, dt.int32, dt.int64, dt.string)


@public
@hosted
def decode_csv(records: Any, record_defaults: Sequence[Any], field_delim: str = ",", use_quote_delim: bool = True,
               na_value: str = "", select_cols: Sequence[int] | None = None, name: str | None = None) -> Any:
    """The columns of records of comma-separated values.

    Args:
        records: strings, a record each.
        record_defaults: for each column a tensor of its dtype: the value of empty fields; without elements where a
            field must not be empty.
        field_delim: between fields, one character.
        use_quote_delim: whether fields may stand in double quotes.
        na_value: what else counts as empty.
        select_cols: the numbers of the columns that are read, rising; all by default.
        name: accepted, without effect.
    Returns:
        A list of tensors, one for each column, of the shape of `records`.
    Raises:
        InvalidArgumentError: a record has fewer or more fields, or a field is no number or missing.
        ValueError: columns do not rise, or there is another number of them.

    >>> import twofold as tf
    >>> number, word = tf.io.decode_csv(["1,a", ',"b,c"'], [tf.constant([-1]), ""])
    >>> number.numpy().tolist(), word.numpy().tolist()
    ([1, -1], [b'a', b'b,c'])
    """
    given = tensor(records, dt.string)
    columns = [_Column(n, default) for n, default in enumerate(listed(record_defaults, "record_defaults"))]
    chosen = None if select_cols is None else [int(n) for n in ints(select_cols, "select_cols", (0, 1 << 31))]
    if chosen is not None and sorted({n for n in chosen if n >= 0}) != chosen:
        raise ValueError("select_cols is not strictly increasing.")
    if chosen is not None and len(chosen) != len(columns):
        raise ValueError("Length of select_cols and record_defaults do not match.")
    delimiter = field_delim.encode()
    if len(delimiter) != 1:
        raise _wrong("field_delim should be only 1 char")
    style = _Style(delimiter, bool(use_quote_delim), chosen)

    def decode(texts: Any) -> list[Any]:
        array = engine.array_of(texts)
        rows = [style.fields(text) for text in array.ravel().tolist()]
        for number, row in enumerate(rows):
            if len(row) != len(columns):
                raise _wrong(f"Expect {len(columns)} fields but have {len(row)} in record {number}")
        return [engine.tensor_of(column.read([row[n] for row in rows], na_value.encode()).reshape(array.shape))
                for n, column in enumerate(columns)]
    return engine.host_call(decode, "DecodeCSV", [given], [same_shape(given, c.dtype) for c in columns])


def _wrong(problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, "DecodeCSV", problem)


class _Column:
    """How the fields of a column are read."""

    def __init__(self, number: int, default: Any) -> None:
        array = engine.array_of(tensor(default)).ravel()
        self.number, self.dtype = number, engine.dtype_of(array)
        if self.dtype not in _COLUMNS:
            raise _wrong(f"column {number} must be one of {', '.join(d.name for d in _COLUMNS)}; got {self.dtype.name}")
        if array.size > 1:
            raise _wrong(f"There should only be 1 default per field but field {number} has {array.size}")
        self.default = array[0] if array.size else None

    def read(self, texts: list[bytes], missing: bytes) -> np.ndarray:
        """The values of the fields of all records."""
        made = np.empty(len(texts), self.dtype.np)
        for record, text in enumerate(texts):
            if not text or text == missing:
                if self.default is None:
                    raise _wrong(f"Field {self.number} is required but missing in record {record}!")
                made[record] = self.default
            elif self.dtype is dt.string:
                made[record] = text
            else:
                try:
                    made[record] = _number(text, self.dtype)
                except (ValueError, OverflowError):
                    raise _wrong(f"Field {self.number} in record {record} is not a valid {self.dtype.name}: "
                                 f"{text.decode(errors='replace')}") from None
        return made


def _number(text: bytes, dtype: DType) -> float:
    if b"_" in text:
        raise ValueError(text)
    return int(text) if dtype.is_integer else float(text)


class _Style:
    """How the fields of a record are told apart."""

    def __init__(self, delimiter: bytes, quotes: bool, chosen: list[int] | None) -> None:
        self.delimiter, self.quotes, self.chosen = delimiter, quotes, chosen

    def fields(self, text: bytes) -> list[bytes]:
        """The fields of a record, of those that are read; fewer where there are no more."""
        plain = not (b"\n" in text or b"\r" in text or self.quotes and b'"' in text)
        every = (text.split(self.delimiter) if text else []) if plain else self._apart(text)
        return every if self.chosen is None else [every[n] for n in self.chosen if n < len(every)]

    def _apart(self, text: bytes) -> list[bytes]:
        most = len(text) if self.chosen is None else self.chosen[-1] + 1
        made: list[bytes] = []
        at = 0
        while at < len(text) and len(made) < most:
            if text[at:at + 1] in (b"\n", b"\r"):
                at += 1
                continue
            quoted = self.quotes and text[at:at + 1] == b'"'
            field, at = self._quoted(text, at + 1) if quoted else self._unquoted(text, at)
            made.append(field)
        if len(made) < most and text.endswith(self.delimiter):
            made.append(b"")
        return made

    def _unquoted(self, text: bytes, at: int) -> tuple[bytes, int]:
        end = text.find(self.delimiter, at)
        end = len(text) if end < 0 else end
        field = text[at:end]
        if b"\n" in field or b"\r" in field or self.quotes and b'"' in field:
            raise _wrong("Unquoted fields cannot have quotes/CRLFs inside")
        return field, end + 1

    def _quoted(self, text: bytes, at: int) -> tuple[bytes, int]:
        pieces = []
        while True:
            end = text.find(b'"', at)
            if end < 0:
                raise _wrong("Quoted field has to end with quote followed by delim or end")
            pieces.append(text[at:end])
            after = text[end + 1:end + 2]
            if after in (b"", self.delimiter):
                return b'"'.join(pieces), end + 2
            if after != b'"':
                raise _wrong("Quote inside a string has to be escaped by another quote")
            at = end + 2
