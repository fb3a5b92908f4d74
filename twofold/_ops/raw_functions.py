"""What raw ops compute that no function of the public modules does by itself (`twofold/raw_ops.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import listed, shape_arg
from twofold.image._common import batched
from twofold.image._interpolation import linear_along, nearest_along
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.errors import InvalidArgumentError, UnimplementedError
from twofold.ir.ops.random import LIKE_TENSORFLOW

from . import random_draws as draws
from .nn_windows import conv2d_backprop_filter_v2

__all__ = [
    "bias_add_grad", "broadcast_gradient_args", "conv2d", "conv2d_backprop_filter", "conv2d_backprop_input",
    "conv3d_backprop_input", "dense_bincount", "depthwise_conv2d", "in_top_k", "key_counter", "key_stream", "pads",
    "ragged_range", "ragged_to_tensor", "random_gamma_grad", "reduce_join", "resize_bilinear", "resize_nearest",
    "select", "softmax_loss", "sparse_softmax_loss", "split_texts", "stateless_full", "stateless_integers",
    "stateless_normal", "stateless_truncated", "stateless_uniform", "strided_slice_grad",
]

_PHILOX = (1, 3)  # numbers of the algorithm, and of the choice of one


# -- convolutions --------------------------------------------------------------------------------------
def pads(padding: str, explicit: Any, what: str) -> Any:
    """Padding as functions take it: the raw op has its numbers in an argument of their own, in one list."""
    if padding == "EXPLICIT":
        return [list(pair) for pair in zip(explicit[::2], explicit[1::2], strict=True)]
    if listed(explicit, "explicit_paddings"):
        raise InvalidArgumentError(f"{what}: explicit_paddings are for padding 'EXPLICIT', got {padding!r}.")
    return padding


def conv2d(input: Any, filter: Any, strides: Any, padding: Any, explicit_paddings: Any, data_format: str,
           dilations: Any) -> Any:
    """`tf.nn.conv2d`."""
    return tf.nn.conv2d(input, filter, strides, pads(padding, explicit_paddings, "Conv2D"), data_format, dilations)


def depthwise_conv2d(input: Any, filter: Any, strides: Any, padding: Any, explicit_paddings: Any, data_format: str,
                     dilations: Any) -> Any:
    """`tf.nn.depthwise_conv2d`, whose dilations are of all axes here."""
    across = listed(dilations, "dilations")[1:3] if data_format == "NHWC" else listed(dilations, "dilations")[2:4]
    around = pads(padding, explicit_paddings, "DepthwiseConv2d")
    return tf.nn.depthwise_conv2d(input, filter, listed(strides, "strides"), around, data_format, across)


def conv2d_backprop_input(input_sizes: Any, filter: Any, out_backprop: Any, strides: Any, padding: Any,
                          explicit_paddings: Any, data_format: str, dilations: Any) -> Any:
    """The gradient of a convolution for its input: a transposed convolution."""
    around = pads(padding, explicit_paddings, "Conv2DBackpropInput")
    return tf.nn.conv2d_transpose(out_backprop, filter, input_sizes, listed(strides, "strides"), around, data_format,
                                  listed(dilations, "dilations"))


def conv3d_backprop_input(input_sizes: Any, filter: Any, out_backprop: Any, strides: Any, padding: Any,
                          data_format: str, dilations: Any) -> Any:
    """The gradient of a convolution over three axes for its input."""
    return tf.nn.conv3d_transpose(out_backprop, filter, input_sizes, listed(strides, "strides"), padding, data_format,
                                  listed(dilations, "dilations"))


def conv2d_backprop_filter(input: Any, filter_sizes: Any, out_backprop: Any, strides: Any, padding: Any,
                           explicit_paddings: Any, data_format: str, dilations: Any) -> Any:
    """The gradient of a convolution for its filters."""
    like = tf.zeros(filter_sizes, tf.convert_to_tensor(input).dtype)
    return conv2d_backprop_filter_v2(input, like, out_backprop, listed(strides, "strides"), padding,
                                     explicit_paddings=explicit_paddings, data_format=data_format,
                                     dilations=listed(dilations, "dilations"))


def bias_add_grad(out_backprop: Any, data_format: str) -> Any:
    """The gradient of a bias: the sum over all axes but channels."""
    x = tf.convert_to_tensor(out_backprop)
    channels = 1 if data_format == "NCHW" else len(x.dims) - 1
    return tf.reduce_sum(x, axis=[axis for axis in range(len(x.dims)) if axis != channels])


# -- normalisation and losses --------------------------------------------------------------------------


def softmax_loss(features: Any, labels: Any) -> tuple[Any, Any]:
    """Cross entropies of a softmax with distributions, and their gradient for `features`."""
    features, labels = tf.convert_to_tensor(features), tf.convert_to_tensor(labels)
    loss = tf.nn.softmax_cross_entropy_with_logits(labels, features)
    return loss, tf.nn.softmax(features) - labels


def sparse_softmax_loss(features: Any, labels: Any) -> tuple[Any, Any]:
    """Cross entropies of a softmax with classes, and their gradient for `features`."""
    features, labels = tf.convert_to_tensor(features), tf.convert_to_tensor(labels)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, features)
    hot = tf.one_hot(labels, tf.shape(features)[-1], dtype=features.dtype)
    return loss, tf.nn.softmax(features) - hot


def in_top_k(predictions: Any, targets: Any, k: Any) -> Any:
    """`tf.nn.in_top_k`, of a number."""
    return tf.nn.in_top_k(targets, predictions, k)


# -- places --------------------------------------------------------------------------------------------
def select(condition: Any, t: Any, e: Any) -> Any:
    """Elements of one tensor or the other; a vector of conditions is for the rows of larger ones."""
    condition, t = tf.convert_to_tensor(condition), tf.convert_to_tensor(t)
    if condition.shape.rank == 1 and len(t.dims) > 1:
        condition = tf.reshape(condition, [-1, *[1] * (len(t.dims) - 1)])
    return tf.where(condition, t, e)


def strided_slice_grad(shape: Any, begin: Any, end: Any, strides: Any, dy: Any, begin_mask: int, end_mask: int,
                       ellipsis_mask: int, new_axis_mask: int, shrink_axis_mask: int) -> Any:
    """The gradient of a slice for what was sliced."""
    dy = tf.convert_to_tensor(dy)
    with tf.GradientTape() as tape:
        x = tf.zeros(shape, dy.dtype)
        tape.watch(x)
        y = tf.strided_slice(x, begin, end, strides, begin_mask, end_mask, ellipsis_mask, new_axis_mask,
                             shrink_axis_mask)
    return tape.gradient(y, x, dy)


def dense_bincount(input: Any, size: Any, weights: Any, binary_output: bool) -> Any:
    """`tf.math.bincount` with a number of bins that is given; no weights are ones."""
    input, weights = tf.convert_to_tensor(input), tf.convert_to_tensor(weights)
    axis = -1 if len(input.dims) == 2 else None
    if 0 in weights.dims or len(weights.dims) != len(input.dims):
        return tf.math.bincount(input, None, size, size, weights.dtype, axis=axis, binary_output=binary_output)
    return tf.math.bincount(input, weights, size, size, axis=axis)


# -- images --------------------------------------------------------------------------------------------
def _two(size: Any) -> tuple[Any, Any]:
    known = tf.get_static_value(tf.convert_to_tensor(size))
    return (size[0], size[1]) if known is None else (int(known[0]), int(known[1]))


def resize_bilinear(images: Any, size: Any, align_corners: bool, half_pixel_centers: bool) -> Any:
    """Images of another size, between pixels on lines; see `tf.compat.v1.image.resize_bilinear`."""
    height, width = _two(size)
    how = (align_corners, half_pixel_centers)
    return batched(images, "ResizeBilinear", lambda x: linear_along(
        linear_along(tf.cast(x, tf.float32), 2, width, *how), 1, height, *how))


def resize_nearest(images: Any, size: Any, align_corners: bool, half_pixel_centers: bool) -> Any:
    """Images of another size, of pixels as they are."""
    height, width = _two(size)
    how = (align_corners, half_pixel_centers)
    return batched(images, "ResizeNearestNeighbor", lambda x: nearest_along(
        nearest_along(x, 1, height, *how), 2, width, *how))


# -- random numbers ------------------------------------------------------------------------------------
def key_counter(seed: Any) -> tuple[Any, Any]:
    """The key and the counter of Philox that a seed stands for, uint64."""
    state = ops.bitcast(ops.random_seed_state(tf.convert_to_tensor(seed), purpose="draw", like=LIKE_TENSORFLOW),
                        dtype=dt.uint64)
    return state[2:], state[:2]


def key_stream(key: Any, counter: Any, alg: Any) -> draws.Stream:
    """The stream of a key and a counter.

    Raises:
        UnimplementedError: they are those of another algorithm than Philox.
    """
    number = tf.get_static_value(tf.convert_to_tensor(alg))
    if number is not None and int(number) not in _PHILOX:
        raise UnimplementedError(None, None, "random numbers of ThreeFry are not among those of twofold")
    state = tf.concat([tf.convert_to_tensor(counter), tf.convert_to_tensor(key)], axis=0)
    return lambda blocks: ops.bitcast(state, dtype=dt.int64)


def stateless_uniform(shape: Any, key: Any, counter: Any, alg: Any, dtype: Any) -> Any:
    """Numbers in [0, 1) of a key and a counter."""
    return draws.uniform(key_stream(key, counter, alg), shape_arg(shape), 0, None, dtype)


def stateless_normal(shape: Any, key: Any, counter: Any, alg: Any, dtype: Any) -> Any:
    """Normally distributed numbers of a key and a counter."""
    return draws.normal(key_stream(key, counter, alg), shape_arg(shape), 0, 1, dtype)


def stateless_truncated(shape: Any, key: Any, counter: Any, alg: Any, dtype: Any) -> Any:
    """Normally distributed numbers within two deviations, of a key and a counter."""
    return draws.truncated_normal(key_stream(key, counter, alg), shape_arg(shape), 0, 1, dtype)


def stateless_integers(shape: Any, key: Any, counter: Any, alg: Any, minval: Any, maxval: Any) -> Any:
    """Integers in a range, of a key and a counter."""
    low = tf.convert_to_tensor(minval)
    return draws.uniform(key_stream(key, counter, alg), shape_arg(shape), low, maxval, low.dtype)


def stateless_full(shape: Any, key: Any, counter: Any, alg: Any, dtype: Any) -> Any:
    """Integers of which every bit is random, of a key and a counter."""
    return draws.full_integers(key_stream(key, counter, alg), shape_arg(shape), dtype)


# -- texts ---------------------------------------------------------------------------------------------
def reduce_join(inputs: Any, reduction_indices: Any, keep_dims: bool, separator: str) -> Any:
    """`tf.strings.reduce_join` along axes in the order in which they are given."""
    joined = tf.convert_to_tensor(inputs)
    axes = np.asarray(tf.get_static_value(tf.convert_to_tensor(reduction_indices))).ravel().tolist()
    rank = len(joined.dims)
    for axis in [axis % rank for axis in axes]:
        joined = tf.strings.reduce_join(joined, axis, True, separator)
    return joined if keep_dims or not axes else tf.squeeze(joined, axes)


def split_texts(input: Any, sep: Any, maxsplit: int) -> tuple[Any, Any, Any]:
    """The parts of the texts of a vector, as the parts of a sparse matrix: indices, values, shape."""
    given = tf.get_static_value(tf.convert_to_tensor(sep))
    if given is None:
        raise UnimplementedError(None, None, "StringSplitV2: what is between the parts must be known")
    between = bytes(given).decode("utf-8") or None
    parts = tf.strings.split(input, between, maxsplit).to_sparse()
    return parts.indices, parts.values, parts.dense_shape


# -- ragged tensors ------------------------------------------------------------------------------------
def ragged_range(starts: Any, limits: Any, deltas: Any, out_type: Any) -> tuple[Any, Any]:
    """`tf.ragged.range`, as its parts."""
    made = tf.ragged.range(starts, limits, deltas, row_splits_dtype=out_type)
    return made.row_splits, made.flat_values


def ragged_to_tensor(shape: Any, values: Any, default_value: Any, row_partition_tensors: list[Any],
                     row_partition_types: list[Any]) -> Any:
    """A dense tensor of a ragged one, which comes as its values and what says where its rows are."""
    kinds = [kind.decode() if isinstance(kind, bytes) else kind for kind in row_partition_types]
    parts = list(row_partition_tensors)
    rows = None
    if kinds and kinds[0] == "FIRST_DIM_SIZE":
        rows, kinds, parts = tf.convert_to_tensor(parts[0]), kinds[1:], parts[1:]
    ragged: Any = tf.convert_to_tensor(values)
    for kind, part in zip(reversed(kinds), reversed(parts), strict=True):
        outermost = part is parts[0]
        if kind == "ROW_SPLITS":
            ragged = tf.RaggedTensor.from_row_splits(ragged, part, validate=False)
        elif kind == "VALUE_ROWIDS" and outermost and rows is not None:
            ragged = tf.RaggedTensor.from_value_rowids(ragged, part, tf.cast(rows, tf.convert_to_tensor(part).dtype),
                                                       validate=False)
        else:
            raise UnimplementedError(None, None, f"RaggedTensorToTensor: rows that are told by {kind} inside of others "
                                                 "are not supported")
    sizes = tf.get_static_value(tf.convert_to_tensor(shape))
    if sizes is None:
        return _of_sizes(ragged.to_tensor(default_value), tf.convert_to_tensor(shape), default_value)
    wanted = None if np.ndim(sizes) == 0 else [None if n < 0 else int(n) for n in sizes]
    return ragged.to_tensor(default_value, shape=wanted)


def _of_sizes(dense: Any, sizes: Any, default_value: Any) -> Any:
    """A tensor cut, or filled up, to sizes that only running tells; -1 stands for a size as it is."""
    now = tf.shape(dense, sizes.dtype)
    wanted = tf.where(sizes < 0, now, sizes)
    kept = tf.slice(dense, tf.zeros_like(now), tf.minimum(wanted, now))
    return tf.pad(kept, tf.stack([tf.zeros_like(now), wanted - tf.minimum(wanted, now)], axis=1),
                  constant_values=default_value)


# -- gradients -----------------------------------------------------------------------------------------
def broadcast_gradient_args(s0: Any, s1: Any) -> Any:
    """The axes along which the gradients of two operands of these shapes are added up: none where the shapes are equal.

    An axis of size 1 in both is among those of both, as in TensorFlow.
    """
    s0, s1 = tf.convert_to_tensor(s0), tf.convert_to_tensor(s1)
    rank = tf.maximum(tf.size(s0), tf.size(s1))
    a, b = [tf.concat([tf.ones([rank - tf.size(s)], s.dtype), s], 0) for s in (s0, s1)]
    differ = (tf.size(s0) != tf.size(s1)) | tf.reduce_any(a != b)
    return [tf.cast(tf.reshape(tf.where(differ & (size == 1)), [-1]), s0.dtype) for size in (a, b)]


def random_gamma_grad(alpha: Any, sample: Any) -> Any:
    """How a sample of a gamma distribution moves with its parameter, at one point of the distribution function."""
    alpha, sample = tf.convert_to_tensor(alpha), tf.convert_to_tensor(sample)
    a, x = tf.cast(alpha, tf.float64), tf.cast(sample, tf.float64)  # digits that the two factors lose
    log_density = (a - 1) * tf.math.log(x) - x - tf.math.lgamma(a)
    return tf.cast(-ops.igamma_grad_a(a, x) * tf.exp(-log_density), sample.dtype)
