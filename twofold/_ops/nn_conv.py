"""Convolutions in every form that `tf.nn` has. Re-exported by `twofold/nn.py`.

All are `ops.conv` or, transposed, its gradient for the input. Groups follow from the shapes: a filter with a share of
the input's channels works on each share in turn.
"""

from __future__ import annotations

from typing import Any

from twofold._front.api import ints, public, tensor
from twofold._front.precision import precision_arg
from twofold._ops.nn_layout import Layout, layout, padding_arg, per_axis, refuse_both, with_channels_last
from twofold.ir import ops
from twofold.ir.dims import require_eq, require_same
from twofold.ir.errors import InvalidArgumentError, op_error

__all__ = ["convolution", "conv1d", "conv2d", "conv3d", "depthwise_conv2d", "separable_conv2d", "atrous_conv2d",
           "conv_transpose", "conv1d_transpose", "conv2d_transpose", "conv3d_transpose"]


def _conv(op: str, input: Any, filters: Any, strides: Any, padding: Any, form: Layout, dilations: Any,
          precision: Any = None) -> Any:
    x = tensor(input, hint=filters.dtype if hasattr(filters, "dims") else None)
    window = {"strides": per_axis(op, "strides", strides, form), "padding": padding_arg(op, padding, form),
              "dilations": per_axis(op, "dilations", dilations, form), **precision_arg(op, precision)}
    return with_channels_last(op, lambda y: ops.conv(y, filters, **window), x, form)


def _filters(op: str, filters: Any, rank: int) -> Any:
    filters = tensor(filters)
    if len(filters.dims) != rank:
        raise op_error(InvalidArgumentError, op, f"filters must have rank {rank}.", [("filters", filters)])
    return filters


@public
def convolution(input: Any, filters: Any, strides: Any = None, padding: Any = "VALID", data_format: Any = None,
                dilations: Any = None, name: str | None = None, *, precision: str | None = None) -> Any:
    """Convolution over one to three spatial axes, as many as `filters` has.

    Args:
        input: floating [batch, spatial.., channels], or channels second where `data_format` says so.
        filters: of the same dtype, [window.., channels / groups, outputs].
        strides, dilations: an integer, or one for each spatial axis; 1 by default.
        padding: "SAME", "VALID", or pairs (before, after).
        data_format: "NWC", "NHWC", "NDHWC" (the default), or "NCW", "NCHW", "NCDHW".
        name: has no effect.
        precision: as for `tf.matmul`.
    Returns:
        Tensor [batch, places.., outputs], laid out like `input`.
    Raises:
        ValueError: there are strides and dilations above 1. tf.errors.InvalidArgumentError: shapes, dtypes or
            attributes do not fit.

    >>> import twofold as tf
    >>> tf.nn.convolution(tf.ones([1, 4, 1]), tf.ones([2, 1, 1])).numpy().ravel().tolist()
    [2.0, 2.0, 2.0]
    """
    filters = tensor(filters)
    form = layout("convolution", data_format, len(filters.dims) - 2)
    refuse_both("convolution", strides, dilations, form)
    return _conv("convolution", input, filters, strides, padding, form, dilations, precision)


@public
def conv1d(input: Any, filters: Any, stride: Any, padding: Any, data_format: Any = "NWC", dilations: Any = None,
           name: str | None = None, *, precision: str | None = None) -> Any:
    """Convolution over one spatial axis.

    Args:
        input: floating [batch, width, channels], or [batch, channels, width].
        filters: of the same dtype, [width, channels / groups, outputs].
        stride, dilations: an integer.
        padding: "SAME", "VALID", or pairs (before, after).
        data_format: "NWC" or "NCW".
        name: has no effect.
        precision: as for `tf.matmul`.
    Returns:
        Tensor [batch, places, outputs], laid out like `input`.
    Raises:
        tf.errors.InvalidArgumentError: shapes, dtypes or attributes do not fit.

    >>> import twofold as tf
    >>> tf.nn.conv1d(tf.ones([1, 4, 1]), tf.ones([2, 1, 1]), 2, "VALID").numpy().ravel().tolist()
    [2.0, 2.0]
    """
    form = layout("conv1d", data_format, 1)
    return _conv("conv1d", input, _filters("conv1d", filters, 3), stride, padding, form, dilations, precision)


@public
def conv2d(input: Any, filters: Any, strides: Any, padding: Any, data_format: Any = "NHWC", dilations: Any = None,
           name: str | None = None, *, precision: str | None = None) -> Any:
    """Convolution over two spatial axes.

    Args:
        input: floating [batch, height, width, channels], or [batch, channels, height, width].
        filters: of the same dtype, [height, width, channels / groups, outputs].
        strides, dilations: an integer, or one for each spatial axis, or one for each axis.
        padding: "SAME", "VALID", or pairs (before, after) for each axis.
        data_format: "NHWC" or "NCHW".
        name: has no effect.
        precision: as for `tf.matmul`.
    Returns:
        Tensor [batch, places.., outputs], laid out like `input`.
    Raises:
        tf.errors.InvalidArgumentError: shapes, dtypes or attributes do not fit.

    >>> import twofold as tf
    >>> image = tf.reshape(tf.range(9.0), [1, 3, 3, 1])
    >>> tf.nn.conv2d(image, tf.ones([2, 2, 1, 1]), strides=1, padding="VALID").numpy().ravel().tolist()
    [8.0, 12.0, 20.0, 24.0]
    """
    form = layout("conv2d", data_format, 2)
    return _conv("conv2d", input, _filters("conv2d", filters, 4), strides, padding, form, dilations, precision)


@public
def conv3d(input: Any, filters: Any, strides: Any, padding: Any, data_format: Any = "NDHWC", dilations: Any = None,
           name: str | None = None, *, precision: str | None = None) -> Any:
    """Convolution over three spatial axes.

    Args:
        input: floating [batch, depth, height, width, channels], or channels second.
        filters: of the same dtype, [depth, height, width, channels / groups, outputs].
        strides, dilations: an integer, or one for each spatial axis, or one for each axis.
        padding: "SAME", "VALID", or pairs (before, after) for each axis.
        data_format: "NDHWC" or "NCDHW".
        name: has no effect.
        precision: as for `tf.matmul`.
    Returns:
        Tensor [batch, places.., outputs], laid out like `input`.
    Raises:
        tf.errors.InvalidArgumentError: shapes, dtypes or attributes do not fit.

    >>> import twofold as tf
    >>> tf.nn.conv3d(tf.ones([1, 2, 2, 2, 1]), tf.ones([2, 2, 2, 1, 1]), 1, "VALID").numpy().ravel().tolist()
    [8.0]
    """
    form = layout("conv3d", data_format, 3)
    return _conv("conv3d", input, _filters("conv3d", filters, 5), strides, padding, form, dilations, precision)


@public
def depthwise_conv2d(input: Any, filter: Any, strides: Any, padding: Any, data_format: Any = None,
                     dilations: Any = None, name: str | None = None) -> Any:
    """Convolution of each channel by itself, with as many filters a channel as `filter` has.

    Args:
        input: floating [batch, height, width, channels], or channels second.
        filter: of the same dtype, [height, width, channels, multiplier].
        strides, dilations: an integer, or one for each spatial axis, or one for each axis.
        padding: "SAME", "VALID", or pairs (before, after) for each axis.
        data_format: "NHWC" (the default) or "NCHW".
        name: has no effect.
    Returns:
        Tensor [batch, places.., channels * multiplier], laid out like `input`.
    Raises:
        tf.errors.InvalidArgumentError: shapes, dtypes or attributes do not fit.

    >>> import twofold as tf
    >>> tf.nn.depthwise_conv2d(tf.ones([1, 2, 2, 2]), tf.ones([2, 2, 2, 1]), 1, "VALID").numpy().ravel().tolist()
    [4.0, 4.0]
    """
    op = "depthwise_conv2d"
    form, filter = layout(op, data_format, 2), _filters(op, filter, 4)
    x = tensor(input, hint=filter.dtype)
    channels = x.dims[-3 if form.first else -1] if len(x.dims) >= 4 else None
    *window, depth, multiplier = filter.dims
    if channels is not None and not require_eq(channels, depth):
        raise op_error(InvalidArgumentError, op, f"filter is for {depth} channels; input has {channels}.",
                       [("input", x), ("filter", filter)])
    grouped = ops.reshape(filter, shape=(*window, 1, depth * multiplier))
    return _conv(op, x, grouped, strides, padding, form, dilations)


@public
def separable_conv2d(input: Any, depthwise_filter: Any, pointwise_filter: Any, strides: Any, padding: Any,
                     data_format: Any = None, dilations: Any = None, name: str | None = None) -> Any:
    """A depthwise convolution, whose channels a convolution with a 1 by 1 window then mixes.

    Args:
        input: floating [batch, height, width, channels], or channels second.
        depthwise_filter: of the same dtype, [height, width, channels, multiplier].
        pointwise_filter: [1, 1, channels * multiplier, outputs].
        strides, padding, dilations: of the depthwise convolution.
        data_format: "NHWC" (the default) or "NCHW".
        name: has no effect.
    Returns:
        Tensor [batch, places.., outputs], laid out like `input`.
    Raises:
        tf.errors.InvalidArgumentError: shapes, dtypes or attributes do not fit.

    >>> import twofold as tf
    >>> y = tf.nn.separable_conv2d(tf.ones([1, 2, 2, 2]), tf.ones([2, 2, 2, 1]), tf.ones([1, 1, 2, 1]), 1, "VALID")
    >>> y.numpy().ravel().tolist()
    [8.0]
    """
    pointwise = _filters("separable_conv2d", pointwise_filter, 4)
    if not require_same(pointwise.dims[:2], (1, 1)):
        raise op_error(InvalidArgumentError, "separable_conv2d", "pointwise_filter must be 1 by 1.",
                       [("pointwise_filter", pointwise)])
    deep = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return conv2d(deep, pointwise, 1, "VALID", data_format or "NHWC")


@public
def atrous_conv2d(value: Any, filters: Any, rate: Any, padding: Any, name: str | None = None) -> Any:
    """Convolution over two spatial axes with gaps: `conv2d` with `dilations=rate`.

    Args:
        value: floating [batch, height, width, channels].
        filters: of the same dtype, [height, width, channels / groups, outputs].
        rate: distance between the elements of the window.
        padding: "SAME" or "VALID".
        name: has no effect.
    Returns:
        Tensor [batch, places.., outputs].
    Raises:
        tf.errors.InvalidArgumentError: shapes, dtypes or attributes do not fit.

    >>> import twofold as tf
    >>> tf.nn.atrous_conv2d(tf.ones([1, 3, 3, 1]), tf.ones([2, 2, 1, 1]), 2, "VALID").numpy().ravel().tolist()
    [4.0]
    """
    return conv2d(value, filters, 1, padding, "NHWC", rate)


def _transposed(op: str, input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any, data_format: Any,
                dilations: Any, spatial: int, precision: Any) -> Any:
    form, filters = layout(op, data_format, spatial), _filters(op, filters, spatial + 2)
    x, target = tensor(input, hint=filters.dtype), ints(output_shape, "output_shape")
    if len(target) != spatial + 2:
        raise op_error(InvalidArgumentError, op, f"output_shape must have length {spatial + 2}; got {target}.",
                       [("input", x), ("filters", filters)])
    inside = (*target[2:], target[1]) if form.first else target[1:]
    if not require_eq(inside[-1], filters.dims[-2]):
        raise op_error(InvalidArgumentError, op, f"output_shape has {inside[-1]} channels; the filters give "
                       f"{filters.dims[-2]}.", [("input", x), ("filters", filters)])
    if x.dims and not require_eq(target[0], x.dims[0]):
        raise op_error(InvalidArgumentError, op, f"output_shape has batch {target[0]}; the input has {x.dims[0]}.",
                       [("input", x), ("filters", filters)])
    window = {"strides": per_axis(op, "strides", strides, form), "padding": padding_arg(op, padding, form),
              "dilations": per_axis(op, "dilations", dilations, form), **precision_arg(op, precision)}
    return with_channels_last(op, lambda y: ops.conv_input_grad(y, filters, input_shape=inside, **window), x, form)


@public
def conv_transpose(input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = "SAME",
                   data_format: Any = None, dilations: Any = None, name: str | None = None, *,
                   precision: str | None = None) -> Any:
    """Transposed convolution: the gradient of a convolution for its input.

    Args:
        input: floating [batch, spatial.., channels], or channels second where `data_format` says so.
        filters: of the same dtype, [window.., outputs, channels], which says how many spatial axes there are.
        output_shape: the result's shape, as several shapes give the same convolution.
        strides, dilations, padding: of that convolution.
        data_format: "NWC", "NHWC", "NDHWC" (the default), or "NCW", "NCHW", "NCDHW".
        name: has no effect.
        precision: as for `tf.matmul`.
    Returns:
        Tensor of shape `output_shape`.
    Raises:
        tf.errors.InvalidArgumentError: shapes, dtypes or attributes do not fit.

    >>> import twofold as tf
    >>> tf.nn.conv_transpose(tf.ones([1, 2, 1]), tf.ones([2, 1, 1]), [1, 4, 1], 2).numpy().ravel().tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    filters = tensor(filters)
    return _transposed("conv_transpose", input, filters, output_shape, strides, padding, data_format, dilations,
                       len(filters.dims) - 2, precision)


@public
def conv1d_transpose(input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = "SAME",
                     data_format: Any = "NWC", dilations: Any = None, name: str | None = None, *,
                     precision: str | None = None) -> Any:
    """Transposed convolution over one spatial axis.

    Args:
        input: floating [batch, width, channels], or [batch, channels, width].
        filters: of the same dtype, [width, outputs, channels].
        output_shape: the result's shape.
        strides, dilations, padding: of the convolution that this transposes.
        data_format: "NWC" or "NCW".
        name: has no effect.
        precision: as for `tf.matmul`.
    Returns:
        Tensor of shape `output_shape`.
    Raises:
        tf.errors.InvalidArgumentError: shapes, dtypes or attributes do not fit.

    >>> import twofold as tf
    >>> tf.nn.conv1d_transpose(tf.ones([1, 2, 1]), tf.ones([3, 1, 1]), [1, 4, 1], 1, "VALID").numpy().ravel().tolist()
    [1.0, 2.0, 2.0, 1.0]
    """
    return _transposed("conv1d_transpose", input, filters, output_shape, strides, padding, data_format, dilations,
                       1, precision)


@public
def conv2d_transpose(input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = "SAME",
                     data_format: Any = "NHWC", dilations: Any = None, name: str | None = None, *,
                     precision: str | None = None) -> Any:
    """Transposed convolution over two spatial axes.

    Args:
        input: floating [batch, height, width, channels], or channels second.
        filters: of the same dtype, [height, width, outputs, channels].
        output_shape: the result's shape.
        strides, dilations, padding: of the convolution that this transposes.
        data_format: "NHWC" or "NCHW".
        name: has no effect.
        precision: as for `tf.matmul`.
    Returns:
        Tensor of shape `output_shape`.
    Raises:
        tf.errors.InvalidArgumentError: shapes, dtypes or attributes do not fit.

    >>> import twofold as tf
    >>> y = tf.nn.conv2d_transpose(tf.ones([1, 1, 1, 1]), tf.ones([2, 2, 1, 1]), [1, 2, 2, 1], 2)
    >>> y.numpy().ravel().tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _transposed("conv2d_transpose", input, filters, output_shape, strides, padding, data_format, dilations,
                       2, precision)


@public
def conv3d_transpose(input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = "SAME",
                     data_format: Any = "NDHWC", dilations: Any = None, name: str | None = None, *,
                     precision: str | None = None) -> Any:
    """Transposed convolution over three spatial axes.

    Args:
        input: floating [batch, depth, height, width, channels], or channels second.
        filters: of the same dtype, [depth, height, width, outputs, channels].
        output_shape: the result's shape.
        strides, dilations, padding: of the convolution that this transposes.
        data_format: "NDHWC" or "NCDHW".
        name: has no effect.
        precision: as for `tf.matmul`.
    Returns:
        Tensor of shape `output_shape`.
    Raises:
        tf.errors.InvalidArgumentError: shapes, dtypes or attributes do not fit.

    >>> import twofold as tf
    >>> y = tf.nn.conv3d_transpose(tf.ones([1, 1, 1, 1, 1]), tf.ones([1, 1, 2, 1, 1]), [1, 1, 1, 2, 1], [1, 1, 2])
    >>> y.numpy().ravel().tolist()
    [1.0, 1.0]
    """
    return _transposed("conv3d_transpose", input, filters, output_shape, strides, padding, data_format, dilations,
                       3, precision)
