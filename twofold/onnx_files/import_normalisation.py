"""ONNX ops that bring elements to a common mean and scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import twofold as tf

from .import_reductions import one_axis
from .import_table import Call, op
from .import_values import ChannelsLast, Value, channels_last, dims_of, tensor_of

__all__: list[str] = []


@op("BatchNormalization", layout=True, frozen=(3, 4))
def _batch_normalization(call: Call, x: Value, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
    """By means and variances that are given; in training by the batch's own, of which running ones are outputs."""
    if not call.attr("spatial", 1):
        raise call.fail("statistics for each place (spatial = 0) are not supported")
    if len(dims_of(x)) < 2:
        x = tensor_of(x)
    factors = [tensor_of(v) for v in (scale, bias, mean, variance)]
    rows = channels_last(x) if len(dims_of(x)) > 2 or isinstance(x, ChannelsLast) else x
    training = bool(call.attr("training_mode", 0)) or call.version < 7 and not call.attr("is_test", 0)
    if not training:
        if isinstance(x, ChannelsLast) and x.scaled is not None:
            return ChannelsLast(x.scaled(*_affine(call, *factors)))
        return _last(x, _normalised(call, rows, *factors))
    scale, bias, mean, variance = factors
    axes = tuple(range(len(rows.dims) - 1))
    own, spread = tf.reduce_mean(rows, axis=axes), tf.math.reduce_variance(rows, axis=axes)
    share = call.attr("momentum", 0.9)
    y = _normalised(call, rows, scale, bias, tf.cast(own, scale.dtype), tf.cast(spread, scale.dtype))
    running = [old * share + tf.cast(new, old.dtype) * (1 - share) for old, new in ((mean, own), (variance, spread))]
    return (_last(x, y), *running)


def _last(x: Value, y: Any) -> Value:
    return ChannelsLast(y) if len(y.dims) > 2 else y


def _affine(call: Call, scale: Any, bias: Any, mean: Any, variance: Any) -> tuple[Any, Any]:
    """One factor and one offset a channel."""
    factor = scale * tf.math.rsqrt(variance + tf.cast(call.attr("epsilon", 1e-5), variance.dtype))
    return factor, bias - mean * factor


def _normalised(call: Call, rows: Any, *factors: Any) -> Any:
    factor, offset = _affine(call, *factors)
    return rows * tf.cast(factor, rows.dtype) + tf.cast(offset, rows.dtype)


def _over(x: Any, axes: Sequence[int], epsilon: float) -> tuple[Any, Any, Any]:
    """Elements less their mean over axes, by the root of their variance; mean and the root's reciprocal."""
    mean = tf.reduce_mean(x, axis=axes, keepdims=True)
    centred = x - mean
    rate = tf.math.rsqrt(tf.reduce_mean(centred * centred, axis=axes, keepdims=True) + epsilon)
    return centred * rate, mean, rate


@op("LayerNormalization")
def _layer_normalization(call: Call, x: Any, scale: Any, bias: Any = None) -> Any:
    rank = len(x.dims)
    axis = one_axis(call, call.attr("axis", -1), rank)
    wide = _staged(call, x)
    y, mean, rate = _over(wide, tuple(range(axis, rank)), call.attr("epsilon", 1e-5))
    y = tf.cast(y, x.dtype) * scale
    return (y if bias is None else y + bias), mean, rate


def _staged(call: Call, x: Any) -> Any:
    """In the precision that statistics are computed in."""
    return tf.cast(x, tf.float32) if call.attr("stash_type", 1) == 1 and x.dtype.size < 4 else x


@op("RMSNormalization")
def _rms_normalization(call: Call, x: Any, scale: Any) -> Any:
    rank = len(x.dims)
    axes = tuple(range(one_axis(call, call.attr("axis", -1), rank), rank))
    wide = _staged(call, x)
    rate = tf.math.rsqrt(tf.reduce_mean(wide * wide, axis=axes, keepdims=True) + call.attr("epsilon", 1e-5))
    return tf.cast(tf.cast(wide * rate, x.dtype) * scale, scale.dtype)


@op("InstanceNormalization")
def _instance_normalization(call: Call, x: Any, scale: Any, bias: Any) -> Any:
    rank = len(x.dims)
    y, _, _ = _over(x, tuple(range(2, rank)), call.attr("epsilon", 1e-5))
    shape = (-1, *(1,) * (rank - 2))
    return y * tf.reshape(scale, shape) + tf.reshape(bias, shape)


@op("GroupNormalization")
def _group_normalization(call: Call, x: Any, scale: Any, bias: Any) -> Any:
    """Before version 21 there is a factor and an offset for each group, since then for each channel."""
    n, channels, *spatial = x.dims
    groups = call.need("num_groups")
    wide = _staged(call, tf.reshape(x, (n, groups, channels // groups, *spatial)))
    y, _, _ = _over(wide, tuple(range(2, len(wide.dims))), call.attr("epsilon", 1e-5))
    y = tf.cast(y, x.dtype)
    shape = (groups, 1 if call.version < 21 else channels // groups, *(1,) * len(spatial))
    return tf.reshape(y * tf.reshape(scale, shape) + tf.reshape(bias, shape), x.dims)


@op("MeanVarianceNormalization")
def _mean_variance(call: Call, x: Any) -> Any:
    axes = tuple(call.attr("axes") or (0, 2, 3))
    centred = x - tf.reduce_mean(x, axis=axes, keepdims=True)
    spread = tf.sqrt(tf.reduce_mean(x * x, axis=axes, keepdims=True)
                     - tf.square(tf.reduce_mean(x, axis=axes, keepdims=True)))
    return centred / (spread + 1e-9)


@op("LRN", layout=True)
def _lrn(call: Call, x: Value) -> Value:
    """Each element by the squares of its neighbours in other channels."""
    rows = channels_last(x)
    size = call.need("size")
    squares = rows * rows
    low, high = (size - 1) // 2, size - 1 - (size - 1) // 2
    padded = tf.pad(squares, [(0, 0)] * (len(rows.dims) - 1) + [(low, high)])
    channels = rows.dims[-1]
    total = padded[..., 0:channels]
    for i in range(1, size):
        total = total + padded[..., i:i + channels]
    base = call.attr("bias", 1.0) + call.attr("alpha", 1e-4) / size * total
    return ChannelsLast(rows / tf.pow(base, tf.constant(call.attr("beta", 0.75), rows.dtype)))
