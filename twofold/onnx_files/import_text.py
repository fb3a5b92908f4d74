"""ONNX's ops on text, and `TfIdfVectorizer`: how often rows hold sequences of items that are known."""

from __future__ import annotations

from typing import Any

import numpy as np

import twofold as tf

from .import_table import Call, op
from .words import padded_parts, words_left

__all__: list[str] = []


def _strings(call: Call, x: Any) -> Any:
    if x.dtype != tf.string:
        raise call.fail(f"it takes strings; got {x.dtype.name}")
    return x


@op("StringConcat", folds=False)
def _concatenated(call: Call, x: Any, y: Any) -> Any:
    return tf.add(_strings(call, x), _strings(call, y))


@op("RegexFullMatch", folds=False)
def _matched(call: Call, x: Any) -> Any:
    return tf.strings.regex_full_match(_strings(call, x), call.need("pattern"))


@op("StringSplit", folds=False)
def _split(call: Call, x: Any) -> Any:
    return tuple(padded_parts(_strings(call, x), call.attr("delimiter", ""), call.attr("maxsplit", -1)))


@op("StringNormalizer", folds=False)
def _normalized(call: Call, x: Any) -> Any:
    change = call.attr("case_change_action", "NONE")
    if change not in ("NONE", "LOWER", "UPPER"):
        raise call.fail(f"there is no change of case {change!r}")
    if len(x.dims) not in (1, 2) or len(x.dims) == 2 and x.dims[0] != 1:
        raise call.fail(f"it takes strings of shape [C] or [1, C]; got {list(x.dims)}")
    return words_left(_strings(call, x), call.attr("stopwords", []), bool(call.attr("is_case_sensitive", 0)), change)


def _grams(call: Call) -> list[np.ndarray]:
    """The known sequences by their length, from 1 on: [number, length]."""
    pool = call.attr("pool_int64s")
    items = np.array(pool if pool else call.need("pool_strings"), np.int64 if pool else object)
    starts = [*call.need("ngram_counts"), len(items)]
    made = []
    for length, (start, end) in enumerate(zip(starts, starts[1:], strict=False), 1):
        if not 0 <= start <= end <= len(items) or (end - start) % length:
            raise call.fail(f"ngram_counts {starts[:-1]} do not fit {len(items)} items")
        made.append(items[start:end].reshape(-1, length))
    return made


def _occurrences(x: Any, grams: np.ndarray, step: int) -> Any:
    """How often each row has each sequence, with items `step` apart: [rows, sequences]."""
    length = grams.shape[1]
    count = x.dims[1] - (length - 1) * step
    if count <= 0:
        return tf.zeros((x.dims[0], len(grams)), tf.float32)
    there: Any = None
    for i in range(length):
        same = tf.equal(x[:, i * step:i * step + count, None], tf.constant(grams[:, i]))
        there = same if there is None else tf.logical_and(there, same)
    return tf.reduce_sum(tf.cast(there, tf.float32), axis=1)


@op("TfIdfVectorizer", folds=False)
def _tfidf(call: Call, x: Any) -> Any:
    rows = x if len(x.dims) == 2 else tf.reshape(x, (1, -1))
    if rows.dtype == tf.int32:
        rows = tf.cast(rows, tf.int64)
    least, most = call.need("min_gram_length"), call.need("max_gram_length")
    counts = []
    for length, grams in enumerate(_grams(call), 1):
        steps = range(1, call.need("max_skip_count") + 2) if length > 1 else [1]
        each = [_occurrences(rows, grams, s) for s in steps] if least <= length <= most else []
        counts.append(sum(each[1:], each[0]) if each else tf.zeros((rows.dims[0], len(grams)), tf.float32))
    columns = np.array(call.need("ngram_indexes"), np.int64)
    every = tf.concat(counts, axis=1)
    places = np.zeros((len(columns), int(columns.max()) + 1), np.float32)
    places[np.arange(len(columns)), columns] = 1
    y = _weighed(call, tf.matmul(every, tf.constant(places)))
    return y if len(x.dims) == 2 else y[0]


def _weighed(call: Call, counts: Any) -> Any:
    mode, weights = call.need("mode"), call.attr("weights")
    if mode not in ("TF", "IDF", "TFIDF"):
        raise call.fail(f"there is no mode {mode!r}")
    y = counts if mode != "IDF" else tf.cast(counts > 0, tf.float32)
    return y * tf.constant(weights, tf.float32) if weights and mode != "TF" else y
