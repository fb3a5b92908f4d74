"""Raw ops of strings and of records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import twofold as tf
from twofold._ops.string_joining import ngrams_of_rows

from .declared import known, op, rank_of
from .sparse import parts

__all__ = ["ROWS"]

ROWS = """
DecodePaddedRaw(input_bytes, fixed_length, out_type, little_endian=True) \
= io.decode_raw(input_bytes, out_type, little_endian, fixed_length)
StringFormat(*inputs, template='%s', placeholder='%s', summarize=3) \
= strings.format(template, inputs, placeholder, summarize)
"""


# -- strings ------------------------------------------------------------------------------------------
@op("indices values shape")
def string_split(input: Any, delimiter: Any, skip_empty: bool = True) -> Any:
    """By any of the delimiter's characters; between all bytes, where it has none."""
    cut = bytes(known(delimiter, "delimiter")).decode()
    if not cut:
        rows = tf.strings.bytes_split(input)
    else:
        any_of = "".join([f"\\x{ord(c):02x}" for c in cut])
        texts = tf.strings.regex_replace(input, f"[{any_of}]", cut[0].replace("\\", "\\\\"))
        rows = tf.strings.split(texts, cut[0])
    return parts((tf.ragged.boolean_mask(rows, tf.strings.length(rows) > 0) if skip_empty else rows).to_sparse())




@op("ngrams ngrams_splits", name="StringNGrams")
def string_n_grams(data: Any, data_splits: Any, separator: Any, ngram_widths: Sequence[int], left_pad: Any,
                   right_pad: Any, pad_width: int, preserve_short_sequences: bool) -> Any:
    splits = tf.convert_to_tensor(data_splits)
    pads = (left_pad, right_pad) if pad_width else None
    made, lengths = ngrams_of_rows(tf.convert_to_tensor(data), splits, [
        list(ngram_widths), separator, pads, pad_width if pad_width > 0 else None, preserve_short_sequences])
    return made, tf.cast(tf.concat([[0], tf.cumsum(lengths)], 0), splits.dtype)


@op()
def sharded_filename(basename: Any, shard: Any, num_shards: Any) -> Any:
    return tf.strings.join([basename, "-", _five(shard), "-of-", _five(num_shards)])


@op()
def sharded_filespec(basename: Any, num_shards: Any) -> Any:
    return tf.strings.join([basename, "-?????-of-", _five(num_shards)])


def _five(number: Any) -> Any:
    return tf.strings.as_string(number, width=5, fill="0")


# -- characters ---------------------------------------------------------------------------------------
@op("row_splits char_values")
def unicode_decode(input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533,
                   replace_control_characters: bool = False, Tsplits: Any = tf.int64) -> Any:
    made = tf.strings.unicode_decode(tf.reshape(input, [-1]), input_encoding, errors, replacement_char,
                                     replace_control_characters)
    return tf.cast(made.row_splits, Tsplits), made.values


@op("row_splits char_values char_to_byte_starts")
def unicode_decode_with_offsets(input: Any, input_encoding: str, errors: str = "replace",
                                replacement_char: int = 65533, replace_control_characters: bool = False,
                                Tsplits: Any = tf.int64) -> Any:
    made, starts = tf.strings.unicode_decode_with_offsets(tf.reshape(input, [-1]), input_encoding, errors,
                                                          replacement_char, replace_control_characters)
    return tf.cast(made.row_splits, Tsplits), made.values, starts.values


@op()
def unicode_encode(input_values: Any, input_splits: Any, output_encoding: str, errors: str = "replace",
                   replacement_char: int = 65533) -> Any:
    rows = tf.RaggedTensor.from_row_splits(tf.convert_to_tensor(input_values), input_splits)
    return tf.strings.unicode_encode(rows, output_encoding, errors, replacement_char)


# -- records ------------------------------------------------------------------------------------------
@op(name="DecodeCSV", lists="record_defaults")
def decode_csv(records: Any, record_defaults: Sequence[Any], field_delim: str = ",", use_quote_delim: bool = True,
               na_value: str = "", select_cols: Sequence[int] = []) -> Any:  # TensorFlow's default
    return tf.io.decode_csv(records, record_defaults, field_delim, use_quote_delim, na_value, select_cols or None)


@op("sparse_indices sparse_values sparse_shapes dense_values", lists="sparse_keys dense_keys dense_defaults")
def parse_example(serialized: Any, names: Any, sparse_keys: Any, dense_keys: Any, dense_defaults: Sequence[Any],
                  sparse_types: Sequence[Any], dense_shapes: Sequence[Any]) -> Any:
    features = _features(sparse_keys, sparse_types, dense_keys, dense_defaults, dense_shapes)
    return _laid_out(tf.io.parse_example(serialized, features), sparse_keys, dense_keys)


@op("sparse_indices sparse_values sparse_shapes dense_values", lists="dense_defaults")
def parse_single_example(serialized: Any, dense_defaults: Sequence[Any], num_sparse: int, sparse_keys: Any,
                         dense_keys: Any, sparse_types: Sequence[Any], dense_shapes: Sequence[Any]) -> Any:
    features = _features(sparse_keys, sparse_types, dense_keys, dense_defaults, dense_shapes)
    return _laid_out(tf.io.parse_single_example(serialized, features), sparse_keys, dense_keys)


@op("sparse_indices sparse_values sparse_shapes dense_values ragged_values ragged_row_splits",
    name="ParseExampleV2", lists="dense_defaults")
def parse_example_v2(serialized: Any, names: Any, sparse_keys: Any, dense_keys: Any, ragged_keys: Any,
                     dense_defaults: Sequence[Any], num_sparse: int, sparse_types: Sequence[Any],
                     ragged_value_types: Sequence[Any], ragged_split_types: Sequence[Any],
                     dense_shapes: Sequence[Any]) -> Any:
    features = _features(sparse_keys, sparse_types, dense_keys, dense_defaults, dense_shapes)
    for key, value, splits in zip(_texts(ragged_keys), ragged_value_types, ragged_split_types, strict=True):
        features[key] = tf.io.RaggedFeature(value, row_splits_dtype=tf.as_dtype(splits))
    serialized = tf.convert_to_tensor(serialized)
    parse = tf.io.parse_example if rank_of(serialized) else tf.io.parse_single_example
    made = parse(serialized, features)
    rows = [made[key] for key in _texts(ragged_keys)]
    return *_laid_out(made, sparse_keys, dense_keys), [r.values for r in rows], [r.row_splits for r in rows]


def _texts(keys: Any) -> list[str]:
    given = known(tf.convert_to_tensor(keys, tf.string), "keys").ravel().tolist() if len(keys) else []
    return [key.decode() for key in given]


def _features(sparse_keys: Any, sparse_types: Any, dense_keys: Any, defaults: Any, shapes: Any) -> dict[str, Any]:
    features: dict[str, Any] = {key: tf.io.VarLenFeature(dtype)
                                for key, dtype in zip(_texts(sparse_keys), sparse_types, strict=True)}
    for key, default, shape in zip(_texts(dense_keys), defaults, shapes, strict=True):
        default, shape = tf.convert_to_tensor(default), tf.TensorShape(shape)
        given = known(default, "a default")
        if shape.rank and shape[0] is None:
            features[key] = tf.io.FixedLenSequenceFeature(shape[1:], default.dtype, allow_missing=True,
                                                          default_value=given if given.size else None)
        else:
            features[key] = tf.io.FixedLenFeature(shape, default.dtype, given if given.size else None)
    return features


def _laid_out(made: dict[str, Any], sparse_keys: Any, dense_keys: Any) -> Any:
    sparse = [parts(made[key]) for key in _texts(sparse_keys)]
    indices, values, shapes = ([part[n] for part in sparse] for n in range(3))
    return indices, values, shapes, [made[key] for key in _texts(dense_keys)]
