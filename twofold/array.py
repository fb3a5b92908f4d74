"""Shapes, data movement and indexing: TensorFlow's top-level functions on arrays of elements.

The functions are in private modules, one theme each; this one is where they are found.
"""

from __future__ import annotations

from twofold._ops.array_blocks import batch_to_space, depth_to_space, space_to_batch, space_to_batch_nd, space_to_depth
from twofold._ops.array_creation import (
    eye,
    fill,
    linspace,
    meshgrid,
    one_hot,
    ones,
    ones_like,
    range,
    sequence_mask,
    zeros,
    zeros_like,
)
from twofold._ops.array_indexing import (
    boolean_mask,
    dynamic_partition,
    dynamic_stitch,
    gather,
    gather_nd,
    scatter_nd,
    slice,
    strided_slice,
    tensor_scatter_nd_add,
    tensor_scatter_nd_max,
    tensor_scatter_nd_min,
    tensor_scatter_nd_sub,
    tensor_scatter_nd_update,
    where,
)
from twofold._ops.array_joining import concat, pad, reverse, roll, split, stack, unstack
from twofold._ops.array_loops import foldl, foldr, map_fn, scan, vectorized_map
from twofold._ops.array_shape import (
    broadcast_dynamic_shape,
    broadcast_static_shape,
    broadcast_to,
    ensure_shape,
    expand_dims,
    rank,
    repeat,
    reshape,
    shape,
    shape_n,
    size,
    squeeze,
    tile,
    transpose,
)

#: in an index: a new axis of size one
newaxis = None

__all__ = [
    "batch_to_space", "boolean_mask", "broadcast_dynamic_shape", "broadcast_static_shape", "broadcast_to", "concat",
    "depth_to_space", "dynamic_partition", "dynamic_stitch", "ensure_shape", "expand_dims", "eye", "fill", "foldl",
    "foldr", "gather", "gather_nd", "linspace", "map_fn", "meshgrid", "newaxis", "one_hot", "ones", "ones_like",
    "pad", "range", "rank", "repeat", "reshape", "reverse", "roll", "scan", "scatter_nd", "sequence_mask", "shape",
    "shape_n", "size", "slice", "space_to_batch", "space_to_batch_nd", "space_to_depth", "split", "squeeze",
    "stack", "strided_slice", "tensor_scatter_nd_add", "tensor_scatter_nd_max", "tensor_scatter_nd_min",
    "tensor_scatter_nd_sub", "tensor_scatter_nd_update", "tile", "transpose", "unstack", "vectorized_map", "where",
    "zeros", "zeros_like"]
