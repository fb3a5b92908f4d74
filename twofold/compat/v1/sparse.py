"""`tf.compat.v1.sparse`: the names of `tf.sparse`, and sparse tensors of graphs."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.namespace import publish

from . import sparse_functions as _functions
from .composite_placeholders import sparse_placeholder as placeholder

__all__ = ["add", "concat", "matmul", "merge", "placeholder", "reduce_max", "reduce_max_sparse", "reduce_sum",
           "reduce_sum_sparse", "segment_mean", "segment_sqrt_n", "segment_sum", "split"]

add, concat, merge, split = (_functions.sparse_add, _functions.sparse_concat, _functions.sparse_merge,
                             _functions.sparse_split)
matmul = tf.sparse.sparse_dense_matmul
reduce_max, reduce_max_sparse = _functions.sparse_reduce_max, _functions.sparse_reduce_max_sparse
reduce_sum, reduce_sum_sparse = _functions.sparse_reduce_sum, _functions.sparse_reduce_sum_sparse
segment_mean, segment_sqrt_n = _functions.sparse_segment_mean, _functions.sparse_segment_sqrt_n
segment_sum = _functions.sparse_segment_sum


def __getattr__(name: str) -> Any:
    return getattr(tf.sparse, name)


publish(__name__)
