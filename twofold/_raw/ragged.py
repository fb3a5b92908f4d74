"""Raw ops of ragged tensors, whose row splits and values are operands and results of their own."""

from __future__ import annotations

from typing import Any

import twofold as tf

from .declared import op
from .sparse import counts, parts, sparse_fill_empty_rows_grad

__all__ = ["ROWS"]

ROWS = ""


def _of(splits: Any, values: Any) -> Any:
    return tf.RaggedTensor.from_nested_row_splits(values, [tf.convert_to_tensor(s) for s in splits])


@op("output_nested_splits output_dense_values", lists="params_nested_splits")
def ragged_gather(params_nested_splits: Any, params_dense_values: Any, indices: Any, OUTPUT_RAGGED_RANK: int) -> Any:
    made = tf.gather(_of(params_nested_splits, params_dense_values), indices)
    return list(made.nested_row_splits)[:OUTPUT_RAGGED_RANK], made.flat_values


@op("sparse_indices sparse_values sparse_dense_shape", lists="rt_nested_splits")
def ragged_tensor_to_sparse(rt_nested_splits: Any, rt_dense_values: Any) -> Any:
    return parts(_of(rt_nested_splits, rt_dense_values).to_sparse())


@op()
def ragged_bincount(splits: Any, values: Any, size: Any, weights: Any, binary_output: bool = False) -> Any:
    rows = tf.ragged.row_splits_to_segment_ids(splits)
    return counts(rows, values, tf.shape(splits)[0] - 1, size, weights, binary_output)


@op("output_indices output_values output_dense_shape")
def ragged_count_sparse_output(splits: Any, values: Any, weights: Any, binary_output: bool, minlength: int = -1,
                               maxlength: int = -1) -> Any:
    splits, weights = tf.convert_to_tensor(splits), tf.convert_to_tensor(weights)
    rows = tf.RaggedTensor.from_row_splits(values, splits).to_sparse()
    kept = None if weights.shape[0] == 0 else tf.SparseTensor(rows.indices, weights, rows.dense_shape)
    made = tf.sparse.bincount(rows, kept, -1, None if minlength < 0 else minlength,
                              None if maxlength < 0 else maxlength, binary_output)
    return made.indices, tf.cast(made.values, weights.dtype), made.dense_shape


@op("output_value_rowids output_values empty_row_indicator reverse_index_map")
def ragged_fill_empty_rows(value_rowids: Any, values: Any, nrows: Any, default_value: Any) -> Any:
    rows, values = tf.cast(value_rowids, tf.int64), tf.convert_to_tensor(values)
    count = tf.cast(nrows, tf.int64)
    lengths = tf.math.bincount(tf.cast(rows, tf.int32), minlength=tf.cast(count, tf.int32), dtype=tf.int64)
    empty = lengths == 0
    places = tf.range(tf.size(rows, tf.int64)) + tf.gather(tf.cumsum(tf.cast(empty, tf.int64)), rows)
    filled = tf.repeat(tf.range(count), tf.maximum(lengths, 1))
    start = tf.fill(tf.shape(filled), tf.cast(default_value, values.dtype))
    return filled, tf.tensor_scatter_nd_update(start, places[:, None], values), empty, places


@op("d_values d_default_value")
def ragged_fill_empty_rows_grad(reverse_index_map: Any, grad_values: Any) -> Any:
    return sparse_fill_empty_rows_grad(reverse_index_map, grad_values)
