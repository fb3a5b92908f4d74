"""Raw ops of arrays: shapes, order, counts, checks, and gradients of elementwise ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import twofold as tf
from twofold.ir.errors import InvalidArgumentError

from .declared import known, op, pulled, refuse_others
from .sparse import counts

__all__ = ["ROWS"]

ROWS = """
ApproxTopK(input, k, reduction_dimension=-1, recall_target=0.95, is_max_k=True, reduction_input_size_override=-1, \
aggregate_to_topk=True) -> values, indices = approx_top_k(input, k, reduction_dimension, recall_target, is_max_k, \
reduction_input_size_override, aggregate_to_topk)
CheckNumericsV2(tensor, message) = debugging.check_numerics(tensor, message)
ComplexAbs(x, Tout=tf.float32) = math.abs(x)
Copy(input, tensor_name='', debug_ops_spec=[]) = identity(input)
CopyHost(input, tensor_name='', debug_ops_spec=[]) = identity(input)
DebugIdentity(input, device_name='', tensor_name='', debug_urls=[], gated_grpc=False) = identity(input)
DebugIdentityV2(input, tfdbg_context_id='', op_name='', output_slot=-1, tensor_debug_mode=-1, debug_urls=[], \
circular_buffer_size=1000, tfdbg_run_id='') = identity(input)
DebugIdentityV3(input, device_name='', tensor_name='', io_of_node='', is_input=False, io_index=-1, debug_urls=[], \
gated_grpc=False) = identity(input)
DebugGradientIdentity(input) = identity(input)
DeepCopy(x) = identity(x)
LoopCond(input) = identity(input)
"""


# -- shapes and order ---------------------------------------------------------------------------------
@op()
def batch_to_space(input: Any, crops: Any, block_size: int) -> Any:
    return tf.batch_to_space(input, [block_size, block_size], crops)


@op()
def space_to_batch(input: Any, paddings: Any, block_size: int) -> Any:
    return tf.space_to_batch(input, [block_size, block_size], paddings)


@op("r0 r1")
def broadcast_gradient_args(s0: Any, s1: Any) -> Any:
    """The axes over which gradients of two operands that are broadcast are summed."""
    shapes = [tf.convert_to_tensor(s) for s in (s0, s1)]
    values = [tf.get_static_value(s) for s in shapes]
    if any(value is None for value in values):
        return _axes_of_gradients(shapes)
    with tf.init_scope():  # so that they are known as axes
        return _axes_of_gradients([tf.constant(value) for value in values])


def _axes_of_gradients(shapes: Sequence[Any]) -> tuple[Any, ...]:
    rank = tf.maximum(tf.size(shapes[0]), tf.size(shapes[1]))
    one, other = (tf.pad(s, [[rank - tf.size(s), 0]], constant_values=1) for s in shapes)
    lacking = [tf.range(rank) < rank - tf.size(s) for s in shapes]
    both = (one == 1) & (other == 1)
    axes = [(mine == 1) & ((theirs != 1) | both | missing)
            for mine, theirs, missing in ((one, other, lacking[0]), (other, one, lacking[1]))]
    return tuple([tf.cast(tf.where(kept)[:, 0], shapes[0].dtype) for kept in axes])


@op(lists="shape")
def concat_offset(concat_dim: Any, shape: Any) -> Any:
    sizes = tf.stack([tf.convert_to_tensor(s)[concat_dim] for s in shape])
    starts = tf.unstack(tf.cumsum(sizes, exclusive=True))
    places = tf.range(tf.size(shape[0])) == concat_dim
    return [tf.where(places, start, tf.zeros([], start.dtype)) for start in starts]


@op()
def const(value: Any, dtype: Any) -> Any:
    return tf.constant(value, dtype)


@op()
def data_format_dim_map(x: Any, src_format: str = "NHWC", dst_format: str = "NCHW") -> Any:
    x = tf.convert_to_tensor(x)
    places = tf.constant([dst_format.index(axis) for axis in src_format], x.dtype)
    return tf.gather(places, tf.math.floormod(x, len(src_format)))


@op()
def data_format_vec_permute(x: Any, src_format: str = "NHWC", dst_format: str = "NCHW") -> Any:
    x = tf.convert_to_tensor(x)
    rows = x.shape[0]
    axes = (src_format, dst_format) if rows == len(src_format) else tuple(
        [f.replace("N", "").replace("C", "") for f in (src_format, dst_format)])
    return tf.gather(x, [axes[0].index(axis) for axis in axes[1]])


@op()
def empty(shape: Any, dtype: Any, init: bool = False) -> Any:
    return tf.zeros(shape, dtype)


@op()
def inplace_update(x: Any, i: Any, v: Any) -> Any:
    return tf.tensor_scatter_nd_update(x, _rows(x, i), v)


@op()
def inplace_add(x: Any, i: Any, v: Any) -> Any:
    return tf.tensor_scatter_nd_add(x, _rows(x, i), v)


@op()
def inplace_sub(x: Any, i: Any, v: Any) -> Any:
    return tf.tensor_scatter_nd_sub(x, _rows(x, i), v)


def _rows(x: Any, i: Any) -> Any:
    return tf.math.floormod(tf.convert_to_tensor(i), tf.shape(x)[0])[:, None]


@op("out idx")
def list_diff(x: Any, y: Any, out_idx: Any = tf.int32) -> Any:
    x = tf.convert_to_tensor(x)
    places = tf.where(~tf.reduce_any(x[:, None] == tf.convert_to_tensor(y, x.dtype)[None, :], 1))[:, 0]
    return tf.gather(x, places), tf.cast(places, out_idx)


@op()
def mirror_pad_grad(input: Any, paddings: Any, mode: str) -> Any:
    grad, around = tf.convert_to_tensor(input), tf.convert_to_tensor(paddings)
    inside = tf.shape(grad) - tf.reduce_sum(tf.cast(around, tf.int32), 1)
    return pulled(lambda x: tf.pad(x, around, mode), [tf.zeros(inside, grad.dtype)], grad)[0]


@op()
def nth_element(input: Any, n: Any, reverse: bool = False) -> Any:
    ordered = tf.sort(input, direction="DESCENDING" if reverse else "ASCENDING")
    return tf.gather(ordered, n, axis=-1)


@op(lists="values")
def parallel_concat(values: Any, shape: Any) -> Any:
    return tf.ensure_shape(tf.concat(values, 0), shape)


@op()
def placeholder_with_default(input: Any, shape: Any) -> Any:
    return tf.ensure_shape(tf.identity(input), shape)


@op()
def reverse(tensor: Any, dims: Any) -> Any:
    return tf.reverse(tensor, [n for n, turned in enumerate(known(dims, "dims")) if turned])


@op()
def tensor_strided_slice_update(input: Any, begin: Any, end: Any, strides: Any, value: Any, begin_mask: int = 0,
                                end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0,
                                shrink_axis_mask: int = 0) -> Any:
    x = tf.convert_to_tensor(input)
    places = tf.strided_slice(tf.reshape(tf.range(tf.size(x)), tf.shape(x)), begin, end, strides, begin_mask,
                              end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    values = tf.broadcast_to(tf.convert_to_tensor(value, x.dtype), tf.shape(places))
    made = tf.tensor_scatter_nd_update(tf.reshape(x, [-1]), tf.reshape(places, [-1, 1]), tf.reshape(values, [-1]))
    return tf.reshape(made, tf.shape(x))


# -- equal elements and counts ------------------------------------------------------------------------
@op("y idx", name="UniqueV2")
def unique_v2(x: Any, axis: Any, out_idx: Any = tf.int32) -> Any:
    return _distinct(x, axis, out_idx)[:2]


@op("y idx count", name="UniqueWithCountsV2")
def unique_with_counts_v2(x: Any, axis: Any, out_idx: Any = tf.int32) -> Any:
    return _distinct(x, axis, out_idx)


def _distinct(x: Any, axis: Any, out_idx: Any) -> Any:
    """The different parts along an axis, in the order of their first places."""
    x, axes = tf.convert_to_tensor(x), known(axis, "axis").ravel().tolist()
    if len(axes) > 1:
        raise InvalidArgumentError(f"UniqueV2: axis must have one number at most; got {axes}.")
    if x.shape.rank == 1:
        return tuple(tf.unique_with_counts(x, out_idx))
    along = int(axes[0]) if axes else 0
    order = list(range(x.shape.rank))
    moved = tf.transpose(x, [order.pop(along), *order])
    sizes = tf.shape(moved)
    flat = tf.reshape(moved, [sizes[0], tf.reduce_prod(sizes[1:])])  # of no rows, -1 would say nothing
    same = tf.reduce_all(flat[:, None] == flat[None], -1)
    rows = tf.range(sizes[0], dtype=out_idx)
    first = tf.minimum(tf.reduce_min(tf.where(same, rows, rows.dtype.max), 1), rows)  # a NaN is not its own equal
    _, places, count = tf.unique_with_counts(first, out_idx)
    chosen = tf.gather(x, tf.unique(first)[0], axis=along)
    return chosen, places, count


@op()
def bucketize(input: Any, boundaries: Any) -> Any:
    x = tf.convert_to_tensor(input)
    edges = tf.constant(list(boundaries), tf.float32)
    flat = tf.cast(tf.reshape(x, [-1]), tf.float64 if x.dtype == tf.float64 else tf.float32)
    return tf.reshape(tf.searchsorted(tf.cast(edges, flat.dtype), flat, side="right"), tf.shape(x))


@op()
def bincount(arr: Any, size: Any, weights: Any) -> Any:
    flat = tf.reshape(arr, [-1])
    return counts(tf.zeros([tf.size(flat)], tf.int64), flat, 1, size, weights, False)[0]


@op(name="SegmentSumV2")
def segment_sum_v2(data: Any, segment_ids: Any, num_segments: Any) -> Any:
    return tf.math.unsorted_segment_sum(data, segment_ids, num_segments)


@op(name="SegmentProdV2")
def segment_prod_v2(data: Any, segment_ids: Any, num_segments: Any) -> Any:
    return tf.math.unsorted_segment_prod(data, segment_ids, num_segments)


@op(name="SegmentMaxV2")
def segment_max_v2(data: Any, segment_ids: Any, num_segments: Any) -> Any:
    return tf.math.unsorted_segment_max(data, segment_ids, num_segments)


@op(name="SegmentMinV2")
def segment_min_v2(data: Any, segment_ids: Any, num_segments: Any) -> Any:
    return tf.math.unsorted_segment_min(data, segment_ids, num_segments)


# -- elements -----------------------------------------------------------------------------------------
@op()
def approximate_equal(x: Any, y: Any, tolerance: float = 1e-05) -> Any:
    return tf.abs(tf.subtract(x, y)) < tolerance


@op()
def div(x: Any, y: Any) -> Any:
    x = tf.convert_to_tensor(x)
    return tf.truncatediv(x, y) if x.dtype.is_integer else tf.divide(x, y)


@op()
def mod(x: Any, y: Any) -> Any:
    return tf.truncatemod(x, y)


@op()
def inv_grad(y: Any, dy: Any) -> Any:
    return -tf.convert_to_tensor(dy) * y * y


@op()
def reciprocal_grad(y: Any, dy: Any) -> Any:
    return inv_grad(y, dy)


@op()
def sqrt_grad(y: Any, dy: Any) -> Any:
    dy = tf.convert_to_tensor(dy)
    return dy * tf.cast(0.5, dy.dtype) / y


@op()
def rsqrt_grad(y: Any, dy: Any) -> Any:
    y, dy = tf.convert_to_tensor(y), tf.convert_to_tensor(dy)
    return dy * tf.cast(-0.5, dy.dtype) * y * y * y


@op()
def softplus_grad(gradients: Any, features: Any) -> Any:
    return tf.convert_to_tensor(gradients) * tf.sigmoid(features)


@op()
def population_count(x: Any) -> Any:
    x = tf.convert_to_tensor(x)
    unsigned = tf.bitcast(x, x.dtype.name if x.dtype.is_unsigned else f"u{x.dtype.name}")
    total = tf.zeros(tf.shape(x), tf.uint8)
    one = tf.ones([], unsigned.dtype)
    for n in range(x.dtype.size * 8):
        bit = tf.bitwise.bitwise_and(tf.bitwise.right_shift(unsigned, tf.cast(n, unsigned.dtype)), one)
        total += tf.cast(bit, tf.uint8)
    return total


@op()
def to_bool(input: Any) -> Any:
    x = tf.convert_to_tensor(input)
    if x.shape.rank:
        return tf.size(x) > 0
    return tf.strings.length(x) > 0 if x.dtype == tf.string else tf.cast(x, tf.bool)


# -- control and messages -----------------------------------------------------------------------------
@op()
def no_op() -> Any:
    return None


@op()
def control_trigger() -> Any:
    return None


@op(lists="data")
def print(input: Any, data: Any, message: str = "", first_n: int = -1, summarize: int = 3) -> Any:
    refuse_others("Print", first_n=(first_n, -1))
    tf.print(message, *[tf.convert_to_tensor(x) for x in data], sep="", summarize=summarize)
    return tf.identity(input)


@op(name="PrintV2")
def print_v2(input: Any, output_stream: str = "stderr", end: str = "\n") -> Any:
    import sys
    streams = {"stderr": sys.stderr, "stdout": sys.stdout}
    tf.print(input, output_stream=streams.get(output_stream, output_stream), end=end)


@op("nearest_center_indices nearest_center_distances")
def nearest_neighbors(points: Any, centers: Any, k: Any) -> Any:
    """The nearest of some centers, by squares of distances."""
    points, centers = tf.convert_to_tensor(points), tf.convert_to_tensor(centers)
    apart = tf.reduce_sum(tf.math.squared_difference(points[:, None], centers[None]), -1)
    count = min(int(known(k, "k")), centers.shape[0] or 0)
    distances, places = tf.math.top_k(-apart, count)
    return tf.cast(places, tf.int64), -distances


@op()
def audio_spectrogram(input: Any, window_size: int, stride: int, magnitude_squared: bool = False) -> Any:
    frames = tf.signal.frame(tf.transpose(input), window_size, stride)
    waves = tf.signal.rfft(frames * tf.signal.hann_window(window_size), [1 << (window_size - 1).bit_length()])
    made = tf.abs(waves)
    return made * made if magnitude_squared else made


@op("output segments")
def isotonic_regression(input: Any, output_dtype: Any = tf.float32) -> Any:
    return tuple([tf.cast(made, dtype) for made, dtype in zip(
        tf.nn.isotonic_regression(input), (output_dtype, tf.int32), strict=True)])


# -- comparisons --------------------------------------------------------------------------------------
def _compared(compare: Any, x: Any, y: Any, incompatible_shape_error: bool, differ: bool) -> Any:
    """A comparison; of shapes that do not broadcast, if that is no error, the one result that is said for them."""
    x, y = tf.convert_to_tensor(x), tf.convert_to_tensor(y)
    pairs = zip(reversed(x.shape.as_list()), reversed(y.shape.as_list()), strict=False)
    if not incompatible_shape_error and any(None not in pair and 1 not in pair and pair[0] != pair[1]
                                            for pair in pairs):
        return tf.constant(differ)
    return compare(x, y)


@op()
def equal(x: Any, y: Any, incompatible_shape_error: bool = True) -> Any:
    return _compared(tf.equal, x, y, incompatible_shape_error, False)


@op()
def not_equal(x: Any, y: Any, incompatible_shape_error: bool = True) -> Any:
    return _compared(tf.not_equal, x, y, incompatible_shape_error, True)
