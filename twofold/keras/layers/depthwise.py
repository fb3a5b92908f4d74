"""Convolutions that treat each channel by itself, and those that mix the channels afterwards."""

from __future__ import annotations

from typing import Any

import twofold as tf

from ._declared import Shape, positive
from .convolution import _Windowed

__all__ = ["DepthwiseConv1D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D", "SeparableConvolution1D",
           "SeparableConvolution2D"]


def by_channel(x: Any, kernel: Any, strides: tuple[int, ...], padding: str, first: bool,
               dilation_rate: tuple[int, ...]) -> Any:
    """The convolution of each channel by itself, over the one or two axes that there are strides for.

    Args:
        x: signals or images; `first` tells whether their channels come second.
        kernel: [*window, channels, outputs of each].
        padding: "valid" or "same".
    """
    if len(strides) == 1:  # a signal is an image of one row
        axis = 2 if first else 1
        outputs = by_channel(tf.expand_dims(x, axis), tf.expand_dims(kernel, 0), strides * 2, padding, first,
                           (1, *dilation_rate))
        return tf.squeeze(outputs, axis)
    everywhere = (1, 1, *strides) if first else (1, *strides, 1)
    return tf.nn.depthwise_conv2d(x, kernel, everywhere, padding.upper(), "NCHW" if first else "NHWC", dilation_rate)


class _ByChannel(_Windowed):
    """The convolution of each channel by itself, in one or two spatial axes."""

    depth_multiplier: int

    def _each_channel(self, inputs: Any, kernel: Any) -> Any:
        return by_channel(inputs, kernel, self.strides, self.padding, self._first, self.dilation_rate)


class _Depthwise(_ByChannel):
    """What depthwise convolutions of both ranks share."""

    _arguments = ("kernel_size", "strides", "padding", "depth_multiplier", "data_format", "dilation_rate",
                  "activation", "use_bias", "depthwise_initializer", "bias_initializer", "depthwise_regularizer",
                  "bias_regularizer", "activity_regularizer", "depthwise_constraint", "bias_constraint")

    def __init__(self, kernel_size: Any, strides: Any = 1, padding: str = "valid", depth_multiplier: int = 1,
                 data_format: str | None = None, dilation_rate: Any = 1, activation: Any = None, use_bias: bool = True,
                 depthwise_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 depthwise_regularizer: Any = None, bias_regularizer: Any = None, activity_regularizer: Any = None,
                 depthwise_constraint: Any = None, bias_constraint: Any = None, **kwargs: Any):
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self._window(kernel_size, strides, padding, data_format, dilation_rate)
        self.depth_multiplier, self.use_bias = positive(depth_multiplier, "depth_multiplier"), use_bias
        self._take(activation=activation, depthwise_initializer=depthwise_initializer,
                   bias_initializer=bias_initializer, depthwise_regularizer=depthwise_regularizer,
                   bias_regularizer=bias_regularizer, depthwise_constraint=depthwise_constraint,
                   bias_constraint=bias_constraint)

    def build(self, input_shape: Any) -> None:
        """Make the kernel and the bias."""
        channels = self._known_channels(input_shape)
        self._places(input_shape)
        self.kernel = self._weight("kernel", (*self.kernel_size, channels, self.depth_multiplier), "depthwise")
        self.bias = self._weight("bias", (channels * self.depth_multiplier,)) if self.use_bias else None
        self.built = True

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        return self._finished(self._each_channel(inputs, self.kernel))

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        channels = self._channels(tuple(input_shape)) * self.depth_multiplier
        return self._joined(input_shape[0], self._places(input_shape), channels)


class DepthwiseConv1D(_Depthwise):
    """Convolution of each channel by itself, over one axis.

    Args:
        kernel_size, strides, dilation_rate: integers.
        padding: "valid" or "same".
        depth_multiplier: how many outputs each channel has.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        activation, use_bias, bias_initializer, bias_regularizer, activity_regularizer, bias_constraint: as for `Dense`.
        depthwise_initializer, depthwise_regularizer, depthwise_constraint: likewise, for the kernel.
        kwargs: those of `Layer`.
    Inputs: floating [batch, steps, channels], or [batch, channels, steps]. Outputs: likewise.
    Weights: kernel [kernel_size, channels, depth_multiplier], bias [channels * depth_multiplier].

    >>> import twofold as tf
    >>> layer = tf.keras.layers.DepthwiseConv1D(2, depthwise_initializer="ones")
    >>> layer(tf.constant([[[1.0, 10.0], [2.0, 20.0]]])).numpy().ravel().tolist()
    [3.0, 30.0]
    """

    rank = 1


class DepthwiseConv2D(_Depthwise):
    """Convolution of each channel by itself, over two axes; arguments as for `DepthwiseConv1D`, with two sizes for one.

    Inputs: floating [batch, height, width, channels], or channels second. Outputs: likewise.
    Weights: kernel [height, width, channels, depth_multiplier], bias [channels * depth_multiplier].

    >>> import twofold as tf
    >>> tf.keras.layers.DepthwiseConv2D(3, depth_multiplier=2)(tf.zeros([1, 5, 5, 4])).shape
    TensorShape([1, 3, 3, 8])
    """

    rank = 2


class _Separable(_ByChannel):
    """What separable convolutions of both ranks share."""

    _arguments = ("filters", "kernel_size", "strides", "padding", "data_format", "dilation_rate", "depth_multiplier",
                  "activation", "use_bias", "depthwise_initializer", "pointwise_initializer", "bias_initializer",
                  "depthwise_regularizer", "pointwise_regularizer", "bias_regularizer", "activity_regularizer",
                  "depthwise_constraint", "pointwise_constraint", "bias_constraint")

    def __init__(self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
                 data_format: str | None = None, dilation_rate: Any = 1, depth_multiplier: int = 1,
                 activation: Any = None, use_bias: bool = True, depthwise_initializer: Any = "glorot_uniform",
                 pointwise_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 depthwise_regularizer: Any = None, pointwise_regularizer: Any = None, bias_regularizer: Any = None,
                 activity_regularizer: Any = None, depthwise_constraint: Any = None, pointwise_constraint: Any = None,
                 bias_constraint: Any = None, **kwargs: Any):
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self._window(kernel_size, strides, padding, data_format, dilation_rate)
        self.filters, self.use_bias = positive(filters, "filters"), use_bias
        self.depth_multiplier = positive(depth_multiplier, "depth_multiplier")
        self._take(activation=activation, depthwise_initializer=depthwise_initializer,
                   pointwise_initializer=pointwise_initializer, bias_initializer=bias_initializer,
                   depthwise_regularizer=depthwise_regularizer, pointwise_regularizer=pointwise_regularizer,
                   bias_regularizer=bias_regularizer, depthwise_constraint=depthwise_constraint,
                   pointwise_constraint=pointwise_constraint, bias_constraint=bias_constraint)

    def build(self, input_shape: Any) -> None:
        """Make the kernels and the bias."""
        channels = self._known_channels(input_shape)
        self._places(input_shape)
        mixed = channels * self.depth_multiplier
        self.depthwise_kernel = self._weight("depthwise_kernel", (*self.kernel_size, channels, self.depth_multiplier),
                                             "depthwise")
        self.pointwise_kernel = self._weight("pointwise_kernel", (*(1,) * self.rank, mixed, self.filters), "pointwise")
        self.bias = self._weight("bias", (self.filters,)) if self.use_bias else None
        self.built = True

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        apart = self._each_channel(inputs, self.depthwise_kernel)
        return self._finished(tf.nn.convolution(apart, self.pointwise_kernel, 1, "VALID", self._layout()))

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        return self._joined(input_shape[0], self._places(input_shape), self.filters)


class SeparableConv1D(_Separable):
    """Convolution of each channel by itself over one axis, then a mix of the channels at each place.

    Args:
        filters: how many channels the outputs have.
        kernel_size, strides, dilation_rate: integers.
        padding: "valid" or "same".
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        depth_multiplier: how many values are made of each channel before they are mixed.
        activation, use_bias, bias_initializer, bias_regularizer, activity_regularizer, bias_constraint: as for `Dense`.
        depthwise_initializer, pointwise_initializer, depthwise_regularizer, pointwise_regularizer,
        depthwise_constraint, pointwise_constraint: likewise, for the two kernels.
        kwargs: those of `Layer`.
    Inputs: floating [batch, steps, channels], or [batch, channels, steps]. Outputs: likewise.
    Weights: depthwise_kernel [kernel_size, channels, depth_multiplier], pointwise_kernel [1, channels *
    depth_multiplier, filters], bias [filters].

    >>> import twofold as tf
    >>> tf.keras.layers.SeparableConv1D(4, 3, padding="same")(tf.zeros([1, 8, 2])).shape
    TensorShape([1, 8, 4])
    """

    rank = 1


class SeparableConv2D(_Separable):
    """Convolution of each channel by itself over two axes, then a mix of the channels at each place.

    The arguments are those of `SeparableConv1D`, with two sizes for one.

    Inputs: floating [batch, height, width, channels], or channels second. Outputs: likewise.
    Weights: depthwise_kernel [height, width, channels, depth_multiplier], pointwise_kernel [1, 1, channels *
    depth_multiplier, filters], bias [filters].

    >>> import twofold as tf
    >>> tf.keras.layers.SeparableConv2D(4, 3)(tf.zeros([1, 5, 5, 2])).shape
    TensorShape([1, 3, 3, 4])
    """

    rank = 2


SeparableConvolution1D, SeparableConvolution2D = SeparableConv1D, SeparableConv2D
