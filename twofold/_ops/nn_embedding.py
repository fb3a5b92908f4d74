"""Rows of tables at sparse or ragged ids, combined row by row: `tf.nn.embedding_lookup_sparse` and its like.

No step has a size that values decide: an id that does not count goes to segment -1, which sums leave out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import twofold as tf
from twofold._front.api import public
from twofold._sparse.functions import combined_rows, last_segment
from twofold._sparse.sparse_tensor import linear

__all__ = ["embedding_lookup_sparse", "safe_embedding_lookup_sparse"]

_COMBINERS = ("mean", "sqrtn", "sum")


class _Ids(NamedTuple):
    """Ids to be looked up, and where their rows go."""

    ids: Any
    segments: Any  # of each id
    weights: Any  # of each id, or None
    outer: Any  # the sizes of the axes before the last
    static: Any  # those that are known


def _read(ids: Any, weights: Any, nested: bool) -> _Ids:
    """Sparse or ragged ids and weights.

    Args:
        nested: whether all axes but the last one count, and not the first one alone.
    Raises:
        TypeError: they are of other classes. ValueError: they do not fit each other.
    """
    if weights is not None and type(weights) is not type(ids):
        raise TypeError(f"sp_weights must be either None or of the same type as sp_ids, got {type(weights)}")
    if weights is not None and not tf.TensorShape(ids.shape).is_compatible_with(weights.shape):
        raise ValueError(f"Shapes {ids.shape} and {weights.shape} are not compatible")
    if isinstance(ids, tf.SparseTensor):
        segments = linear(ids.indices[:, :-1], ids.dense_shape) if nested else ids.indices[:, 0]
        return _Ids(ids.values, segments, None if weights is None else weights.values, ids.dense_shape[:-1],
                    ids.shape[:-1])
    if not isinstance(ids, tf.RaggedTensor):
        raise TypeError(f"sp_ids must be SparseTensor or RaggedTensor, got {type(ids)}")
    if ids.ragged_rank != 1 or ids.flat_values.shape.rank != 1:
        raise ValueError(f"ragged ids must have rank 2; got shape {ids.shape}")
    return _Ids(ids.flat_values, tf.cast(ids.value_rowids(), tf.int64), None if weights is None else
                weights.flat_values, tf.cast(ids.nrows(), tf.int64)[tf.newaxis], ids.shape[:1])


def _looked_up(params: Any, read: _Ids, count: Any, combiner: str, max_norm: Any) -> Any:
    """The rows of each segment, combined."""
    rows = tf.nn.embedding_lookup(params, read.ids, max_norm)
    if read.weights is None:
        return combined_rows(rows, read.segments, count, combiner)
    dtype = rows.dtype
    rows = tf.cast(rows, tf.float32) if dtype in (tf.float16, tf.bfloat16) else rows
    weights = tf.reshape(tf.cast(read.weights, rows.dtype), [-1] + [1] * (rows.shape.rank - 1))
    sums = tf.math.unsorted_segment_sum(rows * weights, read.segments, count)
    if combiner == "mean":
        sums = tf.math.divide_no_nan(sums, tf.math.unsorted_segment_sum(weights, read.segments, count))
    elif combiner == "sqrtn":
        squares = tf.math.unsorted_segment_sum(tf.square(weights), read.segments, count)
        sums = tf.math.divide_no_nan(sums, tf.sqrt(squares))
    return tf.cast(sums, dtype)


def _combiner(given: Any) -> str:
    combiner = "mean" if given is None else given
    if combiner not in _COMBINERS:
        raise ValueError(f"combiner must be one of 'mean', 'sqrtn' or 'sum', got {combiner}")
    return combiner


@public
def embedding_lookup_sparse(params: Any, sp_ids: Any, sp_weights: Any, combiner: str | None = None,
                            max_norm: Any = None, name: str | None = None, allow_fast_lookup: bool = False) -> Any:
    """The rows of a table that each row of sparse or ragged ids names, combined into one.

    Args:
        params: a tensor [rows, ..], or a list of them, the rows of the next following those of the one before.
        sp_ids: a sparse tensor of ids in row-major order, or a ragged matrix of them.
        sp_weights: a tensor like it, with the weight of each id; or None.
        combiner: "mean": weighted sums over the sums of weights; "sqrtn": over the root of the sum of their squares;
            "sum". The mean by default.
        max_norm: the length to which longer rows are shortened before.
        name, allow_fast_lookup: accepted, without effect.
    Returns:
        A tensor with as many rows as the last one with an id demands; 0 where a row has none. The gradient for a
        variable is a `tf.IndexedSlices`.
    Raises:
        TypeError: ids or weights are dense. ValueError: there is no such combiner.
        tf.errors.InvalidArgumentError: an id is out of range.

    >>> import twofold as tf
    >>> table = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> tf.nn.embedding_lookup_sparse(table, tf.ragged.constant([[0, 1], [2]]), None, combiner="sum").numpy().tolist()
    [[4.0, 6.0], [5.0, 6.0]]
    """
    combiner, read = _combiner(combiner), _read(sp_ids, sp_weights, nested=False)
    return _looked_up(params, read, last_segment(read.segments), combiner, max_norm)


@public
def safe_embedding_lookup_sparse(embedding_weights: Any, sparse_ids: Any, sparse_weights: Any = None,
                                 combiner: str | None = "mean", default_id: Any = None, max_norm: Any = None,
                                 name: str | None = None, allow_fast_lookup: bool = False) -> Any:
    """`tf.nn.embedding_lookup_sparse` of ids some of which do not count, and rows some of which are empty.

    Args:
        embedding_weights: a tensor [rows, ..], or a list of them, the rows of the next following those of the one
            before.
        sparse_ids: a sparse tensor of ids in row-major order, or a ragged matrix of them. Negative ones do not count.
        sparse_weights: a tensor like it, of the table's dtype, with the weight of each id; or None. But for sums, ids
            with weights that are not positive do not count.
        combiner: "mean", "sqrtn" or "sum".
        default_id: the id of rows without one; such rows are 0 by default.
        max_norm: the length to which longer rows are shortened before.
        name, allow_fast_lookup: accepted, without effect.
    Returns:
        A tensor with the ids' axes but the last one, and those of a table's row.
    Raises:
        TypeError: ids or weights are dense. ValueError: there is no such combiner, or no table, or the table has
            another dtype than the weights.
        tf.errors.InvalidArgumentError: an id is out of range.

    >>> import twofold as tf
    >>> table = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> tf.nn.safe_embedding_lookup_sparse(table, tf.ragged.constant([[0, -1], [], [1, 2]])).numpy().tolist()
    [[1.0, 2.0], [0.0, 0.0], [4.0, 5.0]]
    """
    tables = embedding_weights if isinstance(embedding_weights, (list, tuple)) else [embedding_weights]
    if embedding_weights is None or not tables:
        raise ValueError(f"Missing embedding_weights {embedding_weights}.")
    combiner, read = _combiner(combiner), _read(sparse_ids, sparse_weights, nested=True)
    dtype = None if read.weights is None else read.weights.dtype
    tables = [t if isinstance(t, tf.Variable) and dtype in (None, t.dtype) else tf.convert_to_tensor(t, dtype)
              for t in tables]
    counts = read.ids >= 0
    if read.weights is not None and combiner != "sum":
        counts &= read.weights > 0
    segments = tf.where(counts, read.segments, tf.constant(-1, tf.int64))
    read = read._replace(ids=tf.where(counts, read.ids, tf.zeros_like(read.ids)), segments=segments)
    rows = tf.reduce_prod(read.outer)
    if default_id is not None:
        read = _filled(read, rows, default_id)
    combined = _looked_up(tables, read, rows, combiner, max_norm)
    made = tf.reshape(combined, tf.concat([read.outer, tf.shape(combined, tf.int64)[1:]], 0))
    return tf.ensure_shape(made, read.static.concatenate(combined.shape[1:]))


def _filled(read: _Ids, rows: Any, default_id: Any) -> _Ids:
    """Ids with one more for each row, which counts where there is no other."""
    used = tf.math.unsorted_segment_sum(tf.ones_like(read.segments), read.segments, rows)
    more = tf.where(used > 0, tf.constant(-1, tf.int64), tf.range(rows))
    ids = tf.concat([read.ids, tf.fill([rows], tf.cast(default_id, read.ids.dtype))], 0)
    weights = read.weights
    if weights is not None:
        weights = tf.concat([weights, tf.ones([rows], weights.dtype)], 0)
    return read._replace(ids=ids, segments=tf.concat([read.segments, more], 0), weights=weights)
