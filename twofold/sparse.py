"""`tf.sparse`: sparse tensors and functions on them."""

from __future__ import annotations

from twofold._front import mapping as _mapping  # noqa: F401  (what tf.map_fn does with sparse rows)
from twofold._front.namespace import publish
from twofold._sparse.crossing import cross, cross_hashed
from twofold._sparse.functions import (
    add,
    bincount,
    concat,
    expand_dims,
    eye,
    fill_empty_rows,
    from_dense,
    map_values,
    mask,
    maximum,
    minimum,
    reduce_max,
    reduce_sum,
    reorder,
    reset_shape,
    reshape,
    retain,
    sampled_addmm,
    segment_mean,
    segment_sqrt_n,
    segment_sum,
    slice,
    softmax,
    sparse_dense_matmul,
    split,
    to_dense,
    to_indicator,
    transpose,
)
from twofold._sparse.sparse_tensor import SparseTensor

__all__ = ["SparseTensor", "add", "bincount", "concat", "cross", "cross_hashed", "expand_dims", "eye",
           "fill_empty_rows", "from_dense", "map_values", "mask", "maximum", "minimum", "reduce_max", "reduce_sum",
           "reorder", "reset_shape", "reshape", "retain", "sampled_addmm", "segment_mean", "segment_sqrt_n",
           "segment_sum", "slice", "softmax", "sparse_dense_matmul", "split", "to_dense", "to_indicator", "transpose"]

publish(__name__)
