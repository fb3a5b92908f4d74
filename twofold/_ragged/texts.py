"""What functions of strings do with ragged tensors, beyond those that go element by element."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._formats.unicode import Policy, checked_encoding
from twofold._front.dispatch import implements
from twofold._ops.string_joining import ngrams_of_rows
from twofold._ops.string_unicode import encode_ragged_rows

from .ragged_tensor import RaggedTensor, is_ragged

__all__ = ["ngrams", "split", "unicode_encode"]

_INPUT = {"input": RaggedTensor}


@implements(tf.strings.split, _INPUT)
def split(input: Any, sep: Any = None, maxsplit: int = -1, name: Any = None) -> Any:
    """The parts of strings, a row for each."""
    return input.with_flat_values(tf.strings.split(input.flat_values, sep, maxsplit))


@implements(tf.strings.unicode_decode, _INPUT)
def unicode_decode(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The code points of strings, a row for each."""
    return input.with_flat_values(tf.strings.unicode_decode(input.flat_values, *args, **kwargs))


@implements(tf.strings.unicode_split, _INPUT)
def unicode_split(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The characters of strings, a row for each."""
    return input.with_flat_values(tf.strings.unicode_split(input.flat_values, *args, **kwargs))


@implements(tf.strings.unicode_decode_with_offsets, _INPUT)
def unicode_decode_with_offsets(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The code points of strings and their places, a row for each."""
    both = tf.strings.unicode_decode_with_offsets(input.flat_values, *args, **kwargs)
    return tuple([input.with_flat_values(part) for part in both])


@implements(tf.strings.unicode_split_with_offsets, _INPUT)
def unicode_split_with_offsets(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The characters of strings and their places, a row for each."""
    both = tf.strings.unicode_split_with_offsets(input.flat_values, *args, **kwargs)
    return tuple([input.with_flat_values(part) for part in both])


@implements(tf.strings.unicode_encode, _INPUT)
def unicode_encode(input: Any, output_encoding: Any, errors: Any = "replace", replacement_char: int = 65533,
                   name: Any = None) -> Any:
    """Strings of rows of code points."""
    what = "UnicodeEncode"
    policy = Policy(errors, int(replacement_char), False, what).checked()
    if is_ragged(input.values):
        return input.with_values(unicode_encode(input.values, output_encoding, errors, replacement_char))
    if input.values.shape.rank != 1:
        return input.with_values(tf.strings.unicode_encode(input.values, output_encoding, errors, replacement_char))
    values, splits = tf.convert_to_tensor(input.values, tf.int32), tf.convert_to_tensor(input.row_splits)
    return encode_ragged_rows(values, splits, checked_encoding(output_encoding, what), list(policy))


@implements(tf.strings.ngrams, {"data": RaggedTensor})
def ngrams(data: Any, ngram_width: Any, separator: Any = " ", pad_values: Any = None, padding_width: Any = None,
           preserve_short_sequences: bool = False, name: Any = None) -> Any:
    """Words that stand side by side in rows, joined."""
    settings = [ngram_width, separator, pad_values, padding_width, preserve_short_sequences]
    if is_ragged(data.values):
        return data.with_values(ngrams(data.values, *settings))
    if data.values.shape.rank != 1:
        return data.with_values(tf.strings.ngrams(data.values, *settings))
    flat, lengths = ngrams_of_rows(data.values, data.row_splits, settings)
    return RaggedTensor.from_row_lengths(flat, lengths, validate=False)
