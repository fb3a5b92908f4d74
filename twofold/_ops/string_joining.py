"""Strings of several others: `tf.strings.ngrams` and `unsorted_segment_join`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from twofold._front import iteration as engine
from twofold._front.api import ints, one_int, one_size, public, tensor
from twofold._front.hosted import hosted
from twofold._front.texts import objects, texts
from twofold.ir import dtypes as dt
from twofold.ir.errors import InvalidArgumentError
from twofold.ir.spec import TensorSpec

__all__ = ["ngrams", "unsorted_segment_join"]


class _Windows(NamedTuple):
    """How many words go together, and what is around them."""

    widths: tuple[int, ...]
    separator: bytes
    pads: tuple[bytes, bytes] | None
    padding: int | None
    keeps_short: bool

    def padding_of(self, width: int) -> int:
        """How many pads there are at each end."""
        if self.pads is None:
            return 0
        return width - 1 if self.padding is None else min(self.padding, width - 1)

    def count(self, length: Any) -> Any:
        """How many strings a row of words gives, in a tensor whose rows have one length."""
        if length == 0:
            return 0
        made = sum(max(0, length + 2 * self.padding_of(w) - w + 1) for w in self.widths)
        return 1 if self.keeps_short and not made else made

    def of(self, words: list[bytes]) -> list[bytes]:
        """The strings of a row of words."""
        made = []
        for width in self.widths:
            padded = self._padded(words, self.padding_of(width))
            made += [self.separator.join(padded[n:n + width]) for n in range(len(padded) - width + 1)]
        if self.keeps_short and words and not made:
            made.append(self.separator.join(self._padded(words, (self.padding or 0) if self.pads else 0)))
        return made

    def _padded(self, words: list[bytes], count: int) -> list[bytes]:
        left, right = self.pads or (b"", b"")
        return [left] * count + words + [right] * count


def _windows(ngram_width: Any, separator: Any, pad_values: Any, padding_width: Any, keeps_short: Any) -> _Windows:
    widths = tuple(int(w) for w in ints(ngram_width, "ngram_width", (1, 1 << 31)))
    if not widths or min(widths) < 1:
        raise ValueError(f"All ngram_widths must be greater than 0. Got {ngram_width}")
    if padding_width is not None and pad_values is None:
        raise ValueError("pad_values must be provided if padding_width is set.")
    padding = None if padding_width is None else one_int(padding_width, "padding_width")
    if padding is not None and padding < 1:
        raise ValueError("padding_width must be greater than 0.")
    pads = None
    if pad_values is not None:
        both = (pad_values, pad_values) if isinstance(pad_values, (str, bytes)) else tuple(pad_values)
        if len(both) != 2 or not all(isinstance(p, (str, bytes)) for p in both):
            raise TypeError(f"pad_values must be a string, or a pair of strings; got {pad_values!r}")
        pads = (_bytes(both[0]), _bytes(both[1]))
    return _Windows(widths, _bytes(separator), pads, padding, bool(keeps_short))


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


@public
@hosted
def ngrams(data: Any, ngram_width: Any, separator: str = " ", pad_values: Any = None, padding_width: int | None = None,
           preserve_short_sequences: bool = False, name: str | None = None) -> Any:
    """Words that stand side by side, joined.

    Args:
        data: strings [.., words].
        ngram_width: how many words go together; several numbers for all of them, one after another.
        separator: between words.
        pad_values: what stands before and behind the words, a string or a pair of them; nothing by default.
        padding_width: how often, at most one less than there are words together, which is the default.
        preserve_short_sequences: whether rows that are too short give all their words as one string.
        name: accepted, without effect.
    Returns:
        Strings [.., those of a row].
    Raises:
        ValueError: data is a scalar, or numbers are not positive.

    >>> import twofold as tf
    >>> tf.strings.ngrams(["A", "B", "C", "D"], 2).numpy().tolist()
    [b'A B', b'B C', b'C D']
    """
    windows = _windows(ngram_width, separator, pad_values, padding_width, preserve_short_sequences)
    given = texts(data, "StringNGrams")
    if given.shape.rank == 0:
        raise ValueError("Data must have rank>0")
    words = given.shape[-1]

    def join_rows(strings: Any) -> list[Any]:
        array = engine.array_of(strings)
        outer = array.shape[:-1]
        rows = [windows.of(row) if row else [] for row in array.reshape(int(np.prod(outer)), array.shape[-1]).tolist()]
        return [engine.tensor_of(objects((*outer, windows.count(array.shape[-1])), sum(rows, [])))]
    shape = [*given.shape[:-1].as_list(), None if words is None else windows.count(words)]
    return engine.host_call(join_rows, "StringNGrams", [given], [TensorSpec(shape, given.dtype)])[0]


@hosted
def ngrams_of_rows(values: Any, splits: Any, windows: Any) -> Any:
    """The n-grams of ragged rows: all, one behind another, and how many each row has.

    Args:
        values: strings.
        splits: where rows begin and end in them.
        windows: a list of the arguments of `ngrams` after the first.
    """
    how = _windows(*windows)

    def join_rows(strings: Any, limits: Any) -> list[Any]:
        flat, ends = engine.array_of(strings).tolist(), engine.array_of(limits).tolist()
        rows = [how.of(flat[start:end]) if flat else [] for start, end in zip(ends, ends[1:], strict=False)]
        joined = [text for row in rows for text in row]
        return [engine.tensor_of(objects([len(joined)], joined)),
                engine.tensor_of(np.array([len(row) for row in rows], np.int64))]
    return tuple(engine.host_call(join_rows, "StringNGrams", [values, splits], [
        TensorSpec([None], dt.string), TensorSpec([None], dt.int64)]))


@public
@hosted
def unsorted_segment_join(inputs: Any, segment_ids: Any, num_segments: Any, separator: str = "",
                          name: str | None = None) -> Any:
    """Strings of one segment one behind another.

    Args:
        inputs: strings.
        segment_ids: the segment of each entry of the first axes, integers.
        num_segments: how many segments there are.
        separator: between strings.
        name: accepted, without effect.
    Returns:
        Strings [num_segments, ..]; empty ones for segments without any.
    Raises:
        InvalidArgumentError: a segment is none, or shapes do not fit.

    >>> import twofold as tf
    >>> tf.strings.unsorted_segment_join(["this", "a", "test", "is"], [0, 1, 0, 1], 2, separator=":").numpy().tolist()
    [b'this:test', b'a:is']
    """
    given, segments, between = texts(inputs, "UnsortedSegmentJoin"), tensor(segment_ids), _bytes(separator)
    count = one_size(num_segments, "num_segments")
    rank = segments.shape.rank
    if not segments.dtype.is_integer:
        raise InvalidArgumentError(None, "UnsortedSegmentJoin",
                                   f"segment_ids must be integers; got {segments.dtype.name}")
    if not given.shape[:rank].is_compatible_with(segments.shape):
        raise InvalidArgumentError(None, "UnsortedSegmentJoin", f"segment_ids of shape {segments.shape} are none for "
                                                                f"inputs of shape {given.shape}")

    def join(strings: Any, numbers: Any) -> list[Any]:
        array, ids = engine.array_of(strings), engine.array_of(numbers).ravel()
        if ids.size and not (ids.min() >= 0 and ids.max() < count):
            raise InvalidArgumentError(None, "UnsortedSegmentJoin", "segment_ids are not allowed to exceed "
                                                                    "num_segments or to have negative values.")
        inner = array.shape[rank:]
        rows = array.reshape(ids.size, int(np.prod(inner))).tolist()
        columns: list[list[list[bytes]]] = [[[] for _ in range(int(np.prod(inner)))] for _ in range(count)]
        for number, row in zip(ids.tolist(), rows, strict=True):
            for words, word in zip(columns[number], row, strict=True):
                words.append(word)
        joined = [between.join(words) for segment in columns for words in segment]
        return [engine.tensor_of(objects((count, *inner), joined))]
    return engine.host_call(join, "UnsortedSegmentJoin", [given, segments],
                            [TensorSpec([count, *given.shape[rank:].as_list()], given.dtype)])[0]
