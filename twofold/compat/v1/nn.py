"""`tf.compat.v1.nn`: `tf.nn`, where TensorFlow 1's arguments differ; recurrent networks are in `rnn` and `rnn_cell`."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold import nn as _nn
from twofold._front.api import public
from twofold._front.namespace import publish

from . import rnn_cell as rnn_cell
from .building import named
from .functions import one_of
from .rnn import bidirectional_dynamic_rnn, dynamic_rnn, static_bidirectional_rnn, static_rnn

__all__ = [*_nn.__all__, "avg_pool_v2", "bidirectional_dynamic_rnn", "conv2d_backprop_filter", "conv2d_backprop_input",
           "conv3d_backprop_filter", "conv3d_backprop_filter_v2", "ctc_beam_search_decoder_v2", "ctc_loss_v2",
           "depthwise_conv2d_native", "depthwise_conv2d_native_backprop_filter",
           "depthwise_conv2d_native_backprop_input", "dynamic_rnn", "log_uniform_candidate_sampler", "max_pool_v2",
           "relu_layer", "rnn_cell", "softmax_cross_entropy_with_logits_v2", "static_bidirectional_rnn", "static_rnn",
           "uniform_candidate_sampler", "xw_plus_b"]

max_pool_v2, avg_pool_v2 = _nn.max_pool, _nn.avg_pool
ctc_loss_v2, ctc_beam_search_decoder_v2 = _nn.ctc_loss, _nn.ctc_beam_search_decoder
log_uniform_candidate_sampler = tf.random.log_uniform_candidate_sampler
uniform_candidate_sampler = tf.random.uniform_candidate_sampler


@public
def dropout(x: Any, keep_prob: Any = None, noise_shape: Any = None, seed: Any = None, name: str | None = None,
            rate: Any = None) -> Any:
    """`x` with some elements zeroed, and the others scaled up for it.

    Args:
        x: floating tensor.
        keep_prob: the part of the elements that stays, a number or a tensor; or
        rate: the part that is zeroed.
        noise_shape: as for `tf.nn.dropout`.
        seed: of the draw.
        name: of the result.
    Raises:
        ValueError: neither or both of `keep_prob` and `rate` are given.

    >>> import twofold as tf
    >>> tf.compat.v1.nn.dropout([1.0, 2.0], keep_prob=1.0).numpy().tolist()
    [1.0, 2.0]
    """
    part = one_of(rate, None if keep_prob is None else 1.0 - keep_prob, "rate", "keep_prob")
    if part is None:
        raise ValueError("dropout: give `rate`, or `keep_prob`")
    return named(_nn.dropout(x, part, noise_shape, seed), name)


@public
def softmax(logits: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Any:
    """`tf.nn.softmax`; `dim` is the older name of `axis`."""
    return named(_nn.softmax(logits, one_of(axis, dim, "axis", "dim")), name)


@public
def log_softmax(logits: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Any:
    """`tf.nn.log_softmax`; `dim` is the older name of `axis`."""
    return named(_nn.log_softmax(logits, one_of(axis, dim, "axis", "dim")), name)


def _told(sentinel: Any, what: str) -> None:
    if sentinel is not None:
        raise ValueError(f"Only call `{what}` with named arguments (labels=..., logits=..., ...). Received unnamed "
                         f"argument: {sentinel!r}")


@public
def softmax_cross_entropy_with_logits(_sentinel: Any = None, labels: Any = None, logits: Any = None, dim: Any = -1,
                                      name: str | None = None, axis: Any = None) -> Any:
    """`tf.nn.softmax_cross_entropy_with_logits`, through whose labels no gradient flows.

    Raises:
        ValueError: arguments have no names.
    """
    _told(_sentinel, "softmax_cross_entropy_with_logits")
    given = _nn.softmax_cross_entropy_with_logits(tf.stop_gradient(labels), logits, dim if axis is None else axis)
    return named(given, name)


@public
def softmax_cross_entropy_with_logits_v2(labels: Any, logits: Any, axis: Any = None, name: str | None = None,
                                         dim: Any = None) -> Any:
    """`tf.nn.softmax_cross_entropy_with_logits`; `dim` is the older name of `axis`."""
    axis = one_of(axis, dim, "axis", "dim")
    return named(_nn.softmax_cross_entropy_with_logits(labels, logits, -1 if axis is None else axis), name)


@public
def sparse_softmax_cross_entropy_with_logits(_sentinel: Any = None, labels: Any = None, logits: Any = None,
                                             name: str | None = None) -> Any:
    """`tf.nn.sparse_softmax_cross_entropy_with_logits`.

    Raises:
        ValueError: arguments have no names.
    """
    _told(_sentinel, "sparse_softmax_cross_entropy_with_logits")
    return named(_nn.sparse_softmax_cross_entropy_with_logits(labels, logits), name)


@public
def sigmoid_cross_entropy_with_logits(_sentinel: Any = None, labels: Any = None, logits: Any = None,
                                      name: str | None = None) -> Any:
    """`tf.nn.sigmoid_cross_entropy_with_logits`.

    Raises:
        ValueError: arguments have no names.
    """
    _told(_sentinel, "sigmoid_cross_entropy_with_logits")
    return named(_nn.sigmoid_cross_entropy_with_logits(labels, logits), name)


@public
def weighted_cross_entropy_with_logits(labels: Any = None, logits: Any = None, pos_weight: Any = None,
                                       name: str | None = None, targets: Any = None) -> Any:
    """`tf.nn.weighted_cross_entropy_with_logits`; `targets` is the older name of `labels`. `name` has no effect."""
    return _nn.weighted_cross_entropy_with_logits(one_of(labels, targets, "labels", "targets"), logits, pos_weight)


@public
def conv1d(value: Any = None, filters: Any = None, stride: Any = None, padding: Any = None,
           use_cudnn_on_gpu: Any = None, data_format: Any = None, name: str | None = None, input: Any = None,
           dilations: Any = None) -> Any:
    """`tf.nn.conv1d`; `value` is the older name of `input`. `use_cudnn_on_gpu` has no effect."""
    return named(_nn.conv1d(one_of(value, input, "value", "input"), filters, 1 if stride is None else stride, padding,
                            data_format or "NWC", dilations), name)


@public
def conv2d(input: Any, filter: Any = None, strides: Any = None, padding: Any = None, use_cudnn_on_gpu: bool = True,
           data_format: str = "NHWC", dilations: Any = None, name: str | None = None, filters: Any = None) -> Any:
    """`tf.nn.conv2d`; `filter` is the older name of `filters`. `use_cudnn_on_gpu` has no effect."""
    return named(_nn.conv2d(input, one_of(filters, filter, "filters", "filter"), strides, padding, data_format,
                            dilations), name)


@public
def conv2d_backprop_input(input_sizes: Any, filter: Any = None, out_backprop: Any = None, strides: Any = None,
                          padding: Any = None, use_cudnn_on_gpu: bool = True, data_format: str = "NHWC",
                          dilations: Any = (1, 1, 1, 1), name: str | None = None, filters: Any = None) -> Any:
    """The gradient of `conv2d` by its input, whose sizes are given; `filters` is another name of `filter`.

    Args:
        input_sizes: of the input, 4.
        filter: of the convolution.
        out_backprop: the gradient of its result.
        strides, padding, data_format, dilations: of the convolution.
        use_cudnn_on_gpu, name: have no effect.
        filters: instead of `filter`.
    """
    explicit = {} if isinstance(padding, str) else _explicit(padding)
    return tf.raw_ops.Conv2DBackpropInput(
        input_sizes=input_sizes, filter=one_of(filter, filters, "filter", "filters"), out_backprop=out_backprop,
        **{"strides": strides, "padding": padding, "data_format": data_format, "dilations": dilations, **explicit})


@public
def conv2d_backprop_filter(input: Any, filter_sizes: Any, out_backprop: Any, strides: Any, padding: Any,
                           use_cudnn_on_gpu: bool = True, data_format: str = "NHWC", dilations: Any = (1, 1, 1, 1),
                           name: str | None = None) -> Any:
    """The gradient of `conv2d` by its filter, whose sizes are given; see `conv2d_backprop_input`.

    `use_cudnn_on_gpu` and `name` have no effect.
    """
    explicit = {} if isinstance(padding, str) else _explicit(padding)
    return tf.raw_ops.Conv2DBackpropFilter(
        input=input, filter_sizes=filter_sizes, out_backprop=out_backprop,
        **{"strides": strides, "padding": padding, "data_format": data_format, "dilations": dilations, **explicit})


def _explicit(padding: Any) -> dict[str, Any]:
    """The arguments of raw ops for numbers of elements before and behind each axis."""
    return {"padding": "EXPLICIT", "explicit_paddings": [int(n) for pair in padding for n in pair]}


@public
def conv3d_backprop_filter(input: Any, filter_sizes: Any, out_backprop: Any, strides: Any, padding: Any,
                           data_format: str = "NDHWC", dilations: Any = (1, 1, 1, 1, 1),
                           name: str | None = None) -> Any:
    """The gradient of `conv3d` by its filter, whose sizes are given. `name` has no effect."""
    return tf.raw_ops.Conv3DBackpropFilterV2(input=input, filter_sizes=filter_sizes, out_backprop=out_backprop,
                                             strides=strides, padding=padding, data_format=data_format,
                                             dilations=dilations)


conv3d_backprop_filter_v2 = conv3d_backprop_filter


@public
def depthwise_conv2d_native_backprop_input(input_sizes: Any, filter: Any, out_backprop: Any, strides: Any, padding: Any,
                                           data_format: str = "NHWC", dilations: Any = (1, 1, 1, 1),
                                           name: str | None = None) -> Any:
    """The gradient of `depthwise_conv2d` by its input, whose sizes are given. `name` has no effect."""
    return tf.raw_ops.DepthwiseConv2dNativeBackpropInput(
        input_sizes=input_sizes, filter=filter, out_backprop=out_backprop, strides=strides, padding=padding,
        data_format=data_format, dilations=dilations)


@public
def depthwise_conv2d_native_backprop_filter(input: Any, filter_sizes: Any, out_backprop: Any, strides: Any,
                                            padding: Any, data_format: str = "NHWC",
                                            dilations: Any = (1, 1, 1, 1), name: str | None = None) -> Any:
    """The gradient of `depthwise_conv2d` by its filter, whose sizes are given. `name` has no effect."""
    return tf.raw_ops.DepthwiseConv2dNativeBackpropFilter(
        input=input, filter_sizes=filter_sizes, out_backprop=out_backprop, strides=strides, padding=padding,
        data_format=data_format, dilations=dilations)


@public
def convolution(input: Any, filter: Any = None, padding: Any = None, strides: Any = None, dilation_rate: Any = None,
                name: str | None = None, data_format: str | None = None, filters: Any = None,
                dilations: Any = None) -> Any:
    """`tf.nn.convolution`; `filter` is the older name of `filters`, `dilation_rate` that of `dilations`.

    >>> import twofold as tf
    >>> tf.compat.v1.nn.convolution(tf.ones([1, 4, 1]), tf.ones([2, 1, 1]), "VALID").shape
    TensorShape([1, 3, 1])
    """
    dilations = one_of(dilations, dilation_rate, "dilations", "dilation_rate") \
        if dilations is not None or dilation_rate is not None else None
    return named(_nn.convolution(input, one_of(filters, filter, "filters", "filter"), strides, padding, data_format,
                                 dilations), name)


@public
def conv2d_transpose(value: Any = None, filter: Any = None, output_shape: Any = None, strides: Any = None,
                     padding: str = "SAME", data_format: str = "NHWC", name: str | None = None, input: Any = None,
                     filters: Any = None, dilations: Any = None) -> Any:
    """`tf.nn.conv2d_transpose`; `value` is the older name of `input`, `filter` that of `filters`."""
    return named(_nn.conv2d_transpose(one_of(input, value, "input", "value"),
                                      one_of(filters, filter, "filters", "filter"), output_shape, strides, padding,
                                      data_format, dilations), name)


@public
def conv3d(input: Any, filter: Any = None, strides: Any = None, padding: Any = None, data_format: str = "NDHWC",
           dilations: Any = None, name: str | None = None, filters: Any = None) -> Any:
    """`tf.nn.conv3d`; `filter` is the older name of `filters`."""
    return named(_nn.conv3d(input, one_of(filters, filter, "filters", "filter"), strides, padding, data_format,
                            dilations), name)


@public
def depthwise_conv2d(input: Any, filter: Any, strides: Any, padding: Any, rate: Any = None, name: str | None = None,
                     data_format: Any = None, dilations: Any = None) -> Any:
    """`tf.nn.depthwise_conv2d`; `rate` is the older name of `dilations`."""
    return named(_nn.depthwise_conv2d(input, filter, strides, padding, data_format,
                                      one_of(dilations, rate, "dilations", "rate")), name)


depthwise_conv2d_native = depthwise_conv2d


@public
def separable_conv2d(input: Any, depthwise_filter: Any, pointwise_filter: Any, strides: Any, padding: Any,
                     rate: Any = None, name: str | None = None, data_format: Any = None, dilations: Any = None) -> Any:
    """`tf.nn.separable_conv2d`; `rate` is the older name of `dilations`."""
    return named(_nn.separable_conv2d(input, depthwise_filter, pointwise_filter, strides, padding, data_format,
                                      one_of(dilations, rate, "dilations", "rate")), name)


@public
def max_pool(value: Any = None, ksize: Any = None, strides: Any = None, padding: Any = None,
             data_format: str = "NHWC", name: str | None = None, input: Any = None) -> Any:
    """`tf.nn.max_pool` over [batch, height, width, channels]; `value` is the older name of `input`."""
    return named(_nn.max_pool2d(one_of(value, input, "value", "input"), ksize, strides, padding, data_format), name)


@public
def avg_pool(value: Any = None, ksize: Any = None, strides: Any = None, padding: Any = None,
             data_format: str = "NHWC", name: str | None = None, input: Any = None) -> Any:
    """`tf.nn.avg_pool` over [batch, height, width, channels]; `value` is the older name of `input`."""
    return named(_nn.avg_pool2d(one_of(value, input, "value", "input"), ksize, strides, padding, data_format), name)


@public
def moments(x: Any, axes: Any, shift: Any = None, name: str | None = None, keep_dims: bool | None = None,
            keepdims: bool | None = None) -> tuple[Any, Any]:
    """`tf.nn.moments`; `keep_dims` is the older name of `keepdims`. `name` has no effect."""
    return _nn.moments(x, axes, shift, bool(one_of(keepdims, keep_dims, "keepdims", "keep_dims")))


@public
def embedding_lookup(params: Any, ids: Any, partition_strategy: str = "mod", name: str | None = None,
                     validate_indices: bool = True, max_norm: Any = None) -> Any:
    """`tf.nn.embedding_lookup`; rows of several tables go round by `partition_strategy`.

    Args:
        params: a tensor [rows, ..], or a list of them.
        ids: integers.
        partition_strategy: "mod": row n is in table n % tables; "div": the rows of a table follow those before.
        max_norm: rows are scaled down to it.
        name, validate_indices: accepted, without effect.
    Raises:
        ValueError: there is no such strategy.
    """
    return _nn.embedding_lookup(*_partitioned(params, tf.convert_to_tensor(ids), partition_strategy), max_norm)


def _partitioned(params: Any, ids: Any, strategy: str) -> tuple[Any, Any]:
    """Tables and ids for lookups that take the rows of a table as following those before."""
    if strategy not in ("mod", "div"):
        raise ValueError(f"Only 'mod' and 'div' are partition strategies; got {strategy!r}")
    if not isinstance(params, (list, tuple)) or len(params) < 2 or strategy == "div":
        return params, ids
    count, rows = len(params), params[0].shape[0]
    if any(table.shape[0] != rows for table in params) or rows is None:
        raise ValueError("embedding_lookup: tables of partition strategy 'mod' must have equally many rows here")

    def placed(values: Any) -> Any:
        return tf.where(values < 0, values, values % count * rows + values // count)
    if isinstance(ids, tf.SparseTensor):
        ids = ids.with_values(placed(ids.values))
    else:
        ids = ids.with_flat_values(placed(ids.flat_values)) if isinstance(ids, tf.RaggedTensor) else placed(ids)
    return tf.concat(list(params), 0), ids


@public
def embedding_lookup_sparse(params: Any, sp_ids: Any, sp_weights: Any, partition_strategy: str = "mod",
                            name: str | None = None, combiner: str | None = None, max_norm: Any = None,
                            allow_fast_lookup: bool = False) -> Any:
    """`tf.nn.embedding_lookup_sparse`; rows of several tables go round by `partition_strategy`.

    `allow_fast_lookup` has no effect.
    """
    params, sp_ids = _partitioned(params, sp_ids, partition_strategy)
    return named(_nn.embedding_lookup_sparse(params, sp_ids, sp_weights, combiner, max_norm), name)


@public
def safe_embedding_lookup_sparse(embedding_weights: Any, sparse_ids: Any, sparse_weights: Any = None,
                                 combiner: str | None = "mean", default_id: Any = None, name: str | None = None,
                                 partition_strategy: str = "div", max_norm: Any = None,
                                 allow_fast_lookup: bool = False) -> Any:
    """`tf.nn.safe_embedding_lookup_sparse`; rows of several tables go round by `partition_strategy`.

    `allow_fast_lookup` has no effect.
    """
    tables, sparse_ids = _partitioned(embedding_weights, sparse_ids, partition_strategy)
    if default_id is not None:
        _, default_id = _partitioned(embedding_weights, tf.convert_to_tensor(default_id), partition_strategy)
    return named(_nn.safe_embedding_lookup_sparse(tables, sparse_ids, sparse_weights, combiner, default_id, max_norm),
                 name)


@public
def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None) -> Any:
    """`tf.nn.l2_normalize`; `dim` is the older name of `axis`."""
    return named(_nn.l2_normalize(x, one_of(axis, dim, "axis", "dim"), epsilon), name)


@public
def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Any:
    """`tf.matmul(x, weights) + biases`."""
    return named(tf.nn.bias_add(tf.matmul(x, weights), biases), name)


@public
def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Any:
    """`tf.nn.relu(tf.matmul(x, weights) + biases)`."""
    return named(tf.nn.relu(xw_plus_b(x, weights, biases)), name)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_nn, name)


publish(__name__)
