"""Raw ops of windows: convolutions by other names, pooling, and their gradients."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._ops.nn_windows import pooled
from twofold._ops.raw_functions import resize_bilinear

from .declared import known, op, pulled

__all__ = ["ROWS"]

ROWS = """
DepthwiseConv2dNativeBackpropFilter(input, filter_sizes, out_backprop, strides, padding, explicit_paddings=[], \
data_format='NHWC', dilations=[1, 1, 1, 1]) = nn.depthwise_conv2d_backprop_filter(input, filter_sizes, out_backprop, \
strides, padding, data_format, dilations)
DepthwiseConv2dNativeBackpropInput(input_sizes, filter, out_backprop, strides, padding, explicit_paddings=[], \
data_format='NHWC', dilations=[1, 1, 1, 1]) = nn.depthwise_conv2d_backprop_input(input_sizes, filter, out_backprop, \
strides, padding, data_format, dilations)
"""


# -- convolutions -------------------------------------------------------------------------------------
def _pads(padding: str, explicit: Any) -> Any:
    if padding != "EXPLICIT":
        return padding
    return [list(pair) for pair in zip(explicit[::2], explicit[1::2], strict=True)]


@op()
def max_pool(input: Any, ksize: Any, strides: Any, padding: str, explicit_paddings: Any = [],  # noqa: B006
             data_format: str = "NHWC") -> Any:
    return tf.nn.max_pool2d(input, ksize, strides, _pads(padding, explicit_paddings), data_format)


@op(name="Conv3DBackpropFilterV2")
def conv3d_backprop_filter_v2(input: Any, filter_sizes: Any, out_backprop: Any, strides: Any, padding: str,
                              data_format: str = "NDHWC",
                              dilations: Any = [1, 1, 1, 1, 1]) -> Any:  # noqa: B006
    ct = tf.convert_to_tensor(out_backprop)
    return pulled(lambda w: tf.nn.conv3d(input, w, strides, padding, data_format, dilations),
                  [tf.zeros(filter_sizes, ct.dtype)], ct)[0]


@op(name="Dilation2D")
def dilation2d(input: Any, filter: Any, strides: Any, rates: Any, padding: str) -> Any:
    return tf.nn.dilation2d(input, filter, strides, padding, "NHWC", rates)


@op(name="Dilation2DBackpropInput")
def dilation2d_backprop_input(input: Any, filter: Any, out_backprop: Any, strides: Any, rates: Any,
                              padding: str) -> Any:
    return pulled(lambda x: dilation2d(x, filter, strides, rates, padding), [input],
                  tf.convert_to_tensor(out_backprop))[0]


@op(name="Dilation2DBackpropFilter")
def dilation2d_backprop_filter(input: Any, filter: Any, out_backprop: Any, strides: Any, rates: Any,
                               padding: str) -> Any:
    return pulled(lambda w: dilation2d(input, w, strides, rates, padding), [filter],
                  tf.convert_to_tensor(out_backprop))[0]


@op(name="FusedPadConv2D")
def fused_pad_conv2d(input: Any, paddings: Any, filter: Any, mode: str, strides: Any, padding: str) -> Any:
    return tf.nn.conv2d(tf.pad(input, paddings, mode), filter, strides, padding)


@op(name="FusedResizeAndPadConv2D")
def fused_resize_and_pad_conv2d(input: Any, size: Any, paddings: Any, filter: Any, mode: str, strides: Any,
                                padding: str, resize_align_corners: bool = False) -> Any:
    resized = resize_bilinear(input, size, resize_align_corners, False)
    return fused_pad_conv2d(resized, paddings, filter, mode, strides, padding)


# -- pooling ------------------------------------------------------------------------------------------
@op()
def avg_pool_grad(orig_input_shape: Any, grad: Any, ksize: Any, strides: Any, padding: str,
                  data_format: str = "NHWC") -> Any:
    ct = tf.convert_to_tensor(grad)
    return pulled(lambda x: tf.nn.avg_pool2d(x, ksize, strides, padding, data_format),
                  [tf.zeros(orig_input_shape, ct.dtype)], ct)[0]


@op(name="AvgPool3DGrad")
def avg_pool3d_grad(orig_input_shape: Any, grad: Any, ksize: Any, strides: Any, padding: str,
                    data_format: str = "NDHWC") -> Any:
    ct = tf.convert_to_tensor(grad)
    return pulled(lambda x: tf.nn.avg_pool3d(x, ksize, strides, padding, data_format),
                  [tf.zeros(orig_input_shape, ct.dtype)], ct)[0]


@op()
def max_pool_grad(orig_input: Any, orig_output: Any, grad: Any, ksize: Any, strides: Any, padding: str,
                  explicit_paddings: Any = [], data_format: str = "NHWC") -> Any:  # noqa: B006
    return pulled(lambda x: tf.nn.max_pool2d(x, ksize, strides, _pads(padding, explicit_paddings), data_format),
                  [orig_input], tf.convert_to_tensor(grad))[0]


@op(name="MaxPoolGradV2")
def max_pool_grad_v2(orig_input: Any, orig_output: Any, grad: Any, ksize: Any, strides: Any, padding: str,
                     data_format: str = "NHWC") -> Any:
    return max_pool_grad(orig_input, orig_output, grad, ksize, strides, padding, [], data_format)


@op(name="MaxPool3DGrad")
def max_pool3d_grad(orig_input: Any, orig_output: Any, grad: Any, ksize: Any, strides: Any, padding: str,
                    data_format: str = "NDHWC") -> Any:
    return pulled(lambda x: tf.nn.max_pool3d(x, ksize, strides, padding, data_format), [orig_input],
                  tf.convert_to_tensor(grad))[0]


def _second(pool: Any, orig_input: Any, grad: Any) -> Any:
    """The gradient of the gradient of a pool, for the cotangent that it is given: of the largest elements their own."""
    x = tf.convert_to_tensor(orig_input)
    zeros = tf.zeros(tf.shape(pool(x)), x.dtype)
    return pulled(lambda ct: pulled(pool, [x], ct)[0], [zeros], tf.convert_to_tensor(grad))[0]


@op()
def max_pool_grad_grad(orig_input: Any, orig_output: Any, grad: Any, ksize: Any, strides: Any, padding: str,
                       data_format: str = "NHWC") -> Any:
    return _second(lambda x: tf.nn.max_pool2d(x, ksize, strides, padding, data_format), orig_input, grad)


@op(name="MaxPoolGradGradV2")
def max_pool_grad_grad_v2(orig_input: Any, orig_output: Any, grad: Any, ksize: Any, strides: Any, padding: str,
                          data_format: str = "NHWC") -> Any:
    return max_pool_grad_grad(orig_input, orig_output, grad, ksize, strides, padding, data_format)


@op(name="MaxPool3DGradGrad")
def max_pool3d_grad_grad(orig_input: Any, orig_output: Any, grad: Any, ksize: Any, strides: Any, padding: str,
                         data_format: str = "NDHWC") -> Any:
    return _second(lambda x: tf.nn.max_pool3d(x, ksize, strides, padding, data_format), orig_input, grad)


def _fractional(rows: Any, columns: Any, overlapping: bool, average: bool) -> Any:
    """A pool by where its windows begin."""
    begins = [tf.cast(x, tf.int32) for x in (rows, columns)]

    def pool(x: Any) -> Any:
        for axis, begin in zip((1, 2), begins, strict=True):
            widest = int(known(tf.reduce_max(begin[1:] - begin[:-1]), "a pooling sequence"))
            x = pooled(x, axis, begin, widest + int(overlapping), overlapping, average)
        return x
    return pool


@op()
def fractional_max_pool_grad(orig_input: Any, orig_output: Any, out_backprop: Any, row_pooling_sequence: Any,
                             col_pooling_sequence: Any, overlapping: bool = False) -> Any:
    pool = _fractional(row_pooling_sequence, col_pooling_sequence, overlapping, average=False)
    return pulled(pool, [orig_input], tf.convert_to_tensor(out_backprop))[0]


@op()
def fractional_avg_pool_grad(orig_input_tensor_shape: Any, out_backprop: Any, row_pooling_sequence: Any,
                             col_pooling_sequence: Any, overlapping: bool = False) -> Any:
    pool = _fractional(row_pooling_sequence, col_pooling_sequence, overlapping, average=True)
    ct = tf.convert_to_tensor(out_backprop)
    return pulled(pool, [tf.zeros(orig_input_tensor_shape, ct.dtype)], ct)[0]


@op()
def max_pool_grad_with_argmax(input: Any, grad: Any, argmax: Any, ksize: Any, strides: Any, padding: str,
                              include_batch_in_index: bool = False) -> Any:
    ct, places, shape = tf.convert_to_tensor(grad), tf.cast(argmax, tf.int64), tf.shape(input, tf.int64)
    if not include_batch_in_index:
        size = tf.reduce_prod(shape[1:])
        places += tf.reshape(tf.range(shape[0]) * size, [-1, 1, 1, 1])
    made = tf.scatter_nd(tf.reshape(places, [-1, 1]), tf.reshape(ct, [-1]), [tf.reduce_prod(shape)])
    return tf.reshape(made, shape)
