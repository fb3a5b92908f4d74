"""Integers as vectors of 0 and 1, or of counts: what layers and operations do that encode categories.

Integers come in dense, ragged or sparse tensors, vectors in dense or sparse ones.
"""

from __future__ import annotations

from typing import Any

import twofold as tf

from .composites import is_composite

__all__ = ["encoded", "sparse_if"]


def encoded(inputs: Any, depth: int, mode: str, dtype: Any, weights: Any = None, sparse: bool = False,
            squeezed: bool = True) -> Any:
    """Integers as one-hot vectors, or their sums or maxima along the last axis; others than 0 to `depth - 1` are left
    out.

    Args:
        inputs: a dense, ragged or sparse tensor; of a sparse one the integers that it has count.
        depth: the length of vectors.
        mode: "one_hot", "multi_hot" or "count".
        dtype: of the vectors.
        weights: what each integer counts for, like `inputs`.
        sparse: whether the result is sparse.
        squeezed: whether a last axis of size 1 is left out of one-hot vectors.
    Raises:
        TypeError: one-hot vectors of a sparse tensor are asked for.
    """
    if mode == "one_hot":
        if squeezed and not is_composite(inputs) and len(inputs.shape) > 1 and inputs.shape[-1] == 1:
            inputs = tf.squeeze(inputs, -1)
        return _one_hot(inputs, depth, dtype, sparse)
    if sparse or is_composite(inputs):
        return _counted(inputs, depth, mode == "multi_hot", dtype, weights, sparse)
    single = len(inputs.shape) == 0
    hot = tf.one_hot(tf.cast(inputs, tf.int64), depth, dtype=dtype)
    if single:
        return hot
    if mode == "multi_hot":
        return tf.reduce_max(hot, axis=-2)
    if weights is not None:
        hot = hot * tf.cast(weights, dtype)[..., tf.newaxis]
    return tf.reduce_sum(hot, axis=-2)


def _one_hot(inputs: Any, depth: int, dtype: Any, sparse: bool) -> Any:
    """A vector for each integer."""
    if isinstance(inputs, tf.SparseTensor):
        raise TypeError("A sparse tensor has no one-hot vectors: use tf.sparse.to_dense, or another `output_mode`.")
    if isinstance(inputs, tf.RaggedTensor):
        return inputs.with_flat_values(_one_hot(inputs.flat_values, depth, dtype, sparse=False))
    inputs = tf.cast(inputs, tf.int64)
    if not sparse:
        return tf.one_hot(inputs, depth, dtype=dtype)
    places = tf.where((inputs >= 0) & (inputs < depth))
    indices = tf.concat([places, tf.gather_nd(inputs, places)[:, tf.newaxis]], 1)
    shape = tf.concat([tf.shape(inputs, tf.int64), [depth]], 0)
    made = tf.SparseTensor(indices, tf.ones(tf.shape(places)[:1], dtype), shape)
    made.set_shape([*inputs.shape, depth])
    return made


def _counted(inputs: Any, depth: int, binary: bool, dtype: Any, weights: Any, sparse: bool) -> Any:
    """A vector for each row of integers, or one for a vector or scalar of them."""
    if isinstance(inputs, tf.RaggedTensor) and inputs.ragged_rank > 1:
        return inputs.with_values(_counted(inputs.values, depth, binary, dtype, None if weights is None else
                                           weights.values, sparse=False))
    rank = len(inputs.shape)
    if rank < 2:
        inputs = tf.reshape(inputs, [1, -1])
        weights = None if weights is None else tf.reshape(weights, [1, -1])
    rows, values, count = _rows_of(inputs)
    amounts = None if weights is None else tf.cast(_rows_of(weights)[1], dtype)
    values = tf.cast(values, tf.int64)
    inside = (values >= 0) & (values < depth)
    if not sparse:
        ones = tf.ones_like(values, dtype) if amounts is None else amounts
        at = tf.where(inside, rows * depth + values, tf.constant(-1, tf.int64))
        sums = tf.reshape(tf.math.unsorted_segment_sum(ones, at, count * depth), [-1, depth])
        sums = tf.minimum(sums, tf.ones((), dtype)) if binary else sums
        return tf.ensure_shape(sums, [inputs.shape[0], depth])
    kept = tf.RaggedTensor.from_value_rowids(tf.boolean_mask(values, inside), tf.boolean_mask(rows, inside), count,
                                             validate=False)
    amounts = None if amounts is None else kept.with_values(tf.boolean_mask(amounts, inside))
    made = tf.sparse.bincount(kept, amounts, axis=-1, minlength=depth, maxlength=depth, binary_output=binary)
    made = tf.cast(made, dtype)
    made.set_shape([inputs.shape[0], depth])
    return tf.sparse.reshape(made, [depth]) if rank < 2 else made


def _rows_of(x: Any) -> tuple[Any, Any, Any]:
    """Of a matrix the row of each value, the values, and how many rows there are.

    Raises:
        ValueError: it is no matrix.
    """
    if len(x.shape) != 2:
        raise ValueError(f"Counts in sparse or ragged form take matrices of integers. Received: shape {x.shape}")
    if isinstance(x, tf.SparseTensor):
        return x.indices[:, 0], x.values, x.dense_shape[0]
    rows = x if isinstance(x, tf.RaggedTensor) else tf.RaggedTensor.from_tensor(x)
    return tf.cast(rows.value_rowids(), tf.int64), rows.values, tf.cast(rows.nrows(), tf.int64)


def sparse_if(sparse: bool, output_mode: str) -> bool:
    """Whether outputs are sparse.

    Raises:
        ValueError: places of integers are to be sparse.
    """
    if sparse and output_mode == "int":
        raise ValueError("`sparse` may only be true if `output_mode` is 'one_hot', 'multi_hot', 'count' or 'tf_idf'. "
                         f"Received: sparse={sparse} and output_mode={output_mode}")
    return bool(sparse)
