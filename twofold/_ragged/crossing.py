"""Crosses: for each row of several inputs, all combinations of one value of each, as strings or as hashes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.api import one_int
from twofold._ops.string_hashes import crossed_rows

from .ragged_tensor import RaggedTensor, ragged_or_dense

__all__ = ["cross_rows", "key_of", "ragged_input"]

_HASH_KEY = 0xDECAFCAFFE  # that TensorFlow begins with


def key_of(given: Any) -> int:
    """What hashes begin with: an integer, or nothing for TensorFlow's.

    Raises:
        TypeError: it is something else.
    """
    return _HASH_KEY if given is None else operator.index(given)


def _splits_of(value: Any) -> tuple[Any, Any]:
    """The values of a ragged, sparse or dense matrix, and int64 row splits."""
    if isinstance(value, RaggedTensor):
        return value.values, tf.cast(value.row_splits, tf.int64)
    if isinstance(value, tf.SparseTensor):
        rows = RaggedTensor.from_value_rowids(value.values, value.indices[:, 0], value.dense_shape[0], validate=False)
        return rows.values, rows.row_splits
    rows, columns = tf.unstack(tf.shape(value, tf.int64))
    return tf.reshape(value, [-1]), tf.range(rows + 1) * columns


def cross_rows(inputs: Any, num_buckets: Any, hash_key: int, read: Callable[[int, Any], Any],
               separator: Any = b"_X_") -> RaggedTensor:
    """The combinations as a ragged tensor.

    Args:
        inputs: matrices with one number of rows.
        num_buckets: of hashes, 0 for all numbers; None for strings.
        hash_key: where hashes begin.
        read: gives an input, and its place, as a matrix of strings or int64.
        separator: between the parts of strings.
    Raises:
        TypeError: `inputs` is no list. ValueError: an input is no matrix. InvalidArgumentError: inputs have different
            numbers of rows, or the number of buckets is negative.
    """
    if not isinstance(inputs, (list, tuple)):
        raise TypeError("Inputs must be a list")
    count = None if num_buckets is None else one_int(num_buckets, "num_buckets")
    if count is not None and count < 0:
        raise tf.errors.InvalidArgumentError(None, None, f"num_buckets must not be negative; got {count}")
    tensors = [read(n, x) for n, x in enumerate(inputs)]
    if not tensors:
        return RaggedTensor.from_row_splits(tf.zeros([0], tf.string if count is None else tf.int64), [0])
    if any(t.shape.rank not in (None, 2) for t in tensors):
        raise tf.errors.InvalidArgumentError(None, None, "crosses only support inputs with rank=2")
    values, splits = zip(*map(_splits_of, tensors), strict=True)
    made, made_splits = crossed_rows(list(values), list(splits), count, hash_key, separator)
    splits_dtypes = {t.row_splits.dtype for t in tensors if isinstance(t, RaggedTensor)}
    splits_dtype = tf.int32 if splits_dtypes == {tf.int32} else tf.int64
    return RaggedTensor.from_row_splits(made, tf.cast(made_splits, splits_dtype), validate=False)


def ragged_input(number: int, value: Any) -> Any:
    """An input of `tf.ragged.cross`."""
    given = value if isinstance(value, tf.SparseTensor) else ragged_or_dense(value)
    if isinstance(given, RaggedTensor) and given.ragged_rank != 1:
        raise ValueError("tf.ragged.cross only supports inputs with rank=2")
    if given.dtype is tf.string:
        return given
    if not given.dtype.is_integer:
        raise ValueError(f"Unexpected dtype for inputs[{number}]: {given.dtype}")
    return tf.cast(given, tf.int64)
