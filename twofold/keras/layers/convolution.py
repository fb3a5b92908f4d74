"""Convolutions over one to three spatial axes, and the same with the roles of inputs and outputs exchanged."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import twofold as tf

from ._declared import (
    FirstOrLast,
    InputSpec,
    Shape,
    data_format_of,
    numbers,
    padding_of,
    positive,
    window_sizes,
)

__all__ = ["Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "Convolution1D",
           "Convolution1DTranspose", "Convolution2D", "Convolution2DTranspose", "Convolution3D",
           "Convolution3DTranspose"]

_OPTIONS = ("activation", "use_bias", "kernel_initializer", "bias_initializer", "kernel_regularizer",
            "bias_regularizer", "activity_regularizer", "kernel_constraint", "bias_constraint")


def spread_size(size: Any, window: int, stride: int, padding: str, extra: int | None, dilation: int) -> Any:
    """The output size of a transposed convolution; `extra` is its output padding, None for the one that suits
    `padding`."""
    reach = (window - 1) * dilation + 1
    if padding == "same":
        return size * stride if extra is None else (size - 1) * stride + reach % 2 + extra
    return (size - 1) * stride + reach + (max(stride - reach, 0) if extra is None else extra)


class _Windowed(FirstOrLast):
    """The base of layers with a sliding window: its size, strides, padding and dilation."""

    _paddings: tuple[str, ...] = ()

    def _window(self, kernel_size: Any, strides: Any, padding: Any, data_format: Any, dilation_rate: Any) -> None:
        """Read and check the arguments of the window."""
        self.kernel_size = numbers(kernel_size, self.rank, "kernel_size")
        self.strides = numbers(strides, self.rank, "strides")
        self.dilation_rate = numbers(dilation_rate, self.rank, "dilation_rate")
        self.padding = padding_of(padding, *self._paddings)
        self.data_format = data_format_of(data_format)
        if self.padding == "causal" and self._first:
            raise ValueError("When using `padding='causal'`, `data_format` must be 'channels_last'.")
        self.input_spec = InputSpec(min_ndim=self.rank + 2)

    def _known_channels(self, input_shape: Shape) -> int:
        """The number of the inputs' channels; from now on inputs must have it.

        Raises:
            ValueError: it is unknown.
        """
        channels = self._channels(input_shape)
        if channels is None:
            raise ValueError("The channel dimension of the inputs should be defined. The input_shape received is "
                             f"{tuple(input_shape)}.")
        self.input_spec = InputSpec(min_ndim=self.rank + 2, axes={1 if self._first else -1: channels})
        return channels

    def _places(self, input_shape: Shape) -> Shape:
        return window_sizes(self._spatial(input_shape), self.kernel_size, self.strides, self.padding,
                            self.dilation_rate)

    def _padded(self, inputs: Any) -> Any:
        """Inputs with zeros before them, so that the outputs at a step depend on no later one."""
        if self.padding != "causal":
            return inputs
        return tf.pad(inputs, [[0, 0], [self.dilation_rate[0] * (self.kernel_size[0] - 1), 0], [0, 0]])

    def _finished(self, outputs: Any) -> Any:
        if self.use_bias:
            outputs = self._with_bias(outputs, self.bias)
        return self.activation(outputs)

    use_bias: bool
    bias: Any


class _Conv(_Windowed):
    """What convolutions of every rank share."""

    _checkpoint_names = MappingProxyType({"_kernel": "kernel"})
    _arguments = ("filters", "kernel_size", "strides", "padding", "data_format", "dilation_rate", "groups", *_OPTIONS)

    def __init__(self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
                 data_format: str | None = None, dilation_rate: Any = 1, groups: int = 1, activation: Any = None,
                 use_bias: bool = True, kernel_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 kernel_regularizer: Any = None, bias_regularizer: Any = None, activity_regularizer: Any = None,
                 kernel_constraint: Any = None, bias_constraint: Any = None, **kwargs: Any):
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self._window(kernel_size, strides, padding, data_format, dilation_rate)
        self.filters, self.groups = positive(filters, "filters"), positive(groups, "groups")
        if self.filters % self.groups:
            raise ValueError("The number of filters must be evenly divisible by the number of groups. Received: "
                             f"groups={groups}, filters={filters}.")
        self.use_bias = use_bias
        self._take(activation=activation, kernel_initializer=kernel_initializer, bias_initializer=bias_initializer,
                   kernel_regularizer=kernel_regularizer, bias_regularizer=bias_regularizer,
                   kernel_constraint=kernel_constraint, bias_constraint=bias_constraint)

    def build(self, input_shape: Any) -> None:
        """Make the kernel and the bias."""
        channels = self._known_channels(input_shape)
        if channels % self.groups:
            raise ValueError("The number of input channels must be evenly divisible by the number of groups. Received "
                             f"groups={self.groups}, but the input has {channels} channels.")
        self._places(input_shape)
        self.kernel = self._weight("kernel", (*self.kernel_size, channels // self.groups, self.filters))
        self.bias = self._weight("bias", (self.filters,)) if self.use_bias else None
        self.built = True

    def convolution_op(self, inputs: Any, kernel: Any) -> Any:
        """The convolution alone; layers with another one override it."""
        padding = "VALID" if self.padding == "causal" else self.padding.upper()
        return tf.nn.convolution(inputs, kernel, self.strides, padding, self._layout(), self.dilation_rate)

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        return self._finished(self.convolution_op(self._padded(inputs), self.kernel))

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        return self._joined(input_shape[0], self._places(input_shape), self.filters)


class Conv1D(_Conv):
    """Convolution over one axis, such as time.

    Args:
        filters: how many channels the outputs have.
        kernel_size, strides, dilation_rate: integers. Strides and dilation cannot both be above 1 in TensorFlow; here
            they can.
        padding: "valid", "same", or "causal": outputs depend on no later inputs.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        groups: in how many groups the channels are convolved apart.
        activation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
        activity_regularizer, kernel_constraint, bias_constraint: as for `Dense`.
        kwargs: those of `Layer`.
    Inputs: floating [batch, steps, channels], or [batch, channels, steps]. Outputs: likewise, with `filters` channels.
    Weights: kernel [kernel_size, channels / groups, filters], bias [filters].
    Raises:
        ValueError: an argument is out of range, or the inputs do not fit.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.Conv1D(1, 2, padding="causal", kernel_initializer="ones")
    >>> layer(tf.constant([[[1.0], [2.0], [3.0]]])).numpy().ravel().tolist()
    [1.0, 3.0, 5.0]
    """

    rank = 1
    _paddings = ("causal",)


class Conv2D(_Conv):
    """Convolution over two axes, such as those of images.

    Args:
        filters: how many channels the outputs have.
        kernel_size, strides, dilation_rate: an integer or two.
        padding: "valid" or "same".
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        groups: in how many groups the channels are convolved apart.
        activation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
        activity_regularizer, kernel_constraint, bias_constraint: as for `Dense`.
        kwargs: those of `Layer`.
    Inputs: floating [batch, height, width, channels], or channels second. Outputs: likewise, with `filters` channels.
    Weights: kernel [height, width, channels / groups, filters], bias [filters].
    Raises:
        ValueError: an argument is out of range, or the inputs do not fit.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.Conv2D(8, 3, padding="same", activation="relu")
    >>> layer(tf.zeros([1, 5, 5, 2])).shape, layer.kernel.shape
    (TensorShape([1, 5, 5, 8]), TensorShape([3, 3, 2, 8]))
    """

    rank = 2


class Conv3D(_Conv):
    """Convolution over three axes, such as those of volumes; arguments as for `Conv2D`, with three sizes for two.

    Inputs: floating [batch, depth, height, width, channels], or channels second. Outputs: likewise.
    Weights: kernel [depth, height, width, channels / groups, filters], bias [filters].

    >>> import twofold as tf
    >>> tf.keras.layers.Conv3D(8, 3)(tf.zeros([1, 5, 5, 5, 2])).shape
    TensorShape([1, 3, 3, 3, 8])
    """

    rank = 3


class _ConvTranspose(_Windowed):
    """What transposed convolutions of every rank share."""

    _arguments = ("filters", "kernel_size", "strides", "padding", "data_format", "dilation_rate", *_OPTIONS,
                  "output_padding")

    def __init__(self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
                 output_padding: Any = None, data_format: str | None = None, dilation_rate: Any = 1,
                 activation: Any = None, use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
                 bias_initializer: Any = "zeros", kernel_regularizer: Any = None, bias_regularizer: Any = None,
                 activity_regularizer: Any = None, kernel_constraint: Any = None, bias_constraint: Any = None,
                 **kwargs: Any):
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self._window(kernel_size, strides, padding, data_format, dilation_rate)
        self.filters, self.use_bias = positive(filters, "filters"), use_bias
        self.output_padding = None if output_padding is None else numbers(output_padding, self.rank, "output_padding",
                                                                          least=0)
        if self.output_padding and any(p >= s for p, s in zip(self.output_padding, self.strides, strict=True)):
            raise ValueError(f"Strides must be greater than output padding. Received strides={self.strides}, "
                             f"output_padding={self.output_padding}.")
        self._take(activation=activation, kernel_initializer=kernel_initializer, bias_initializer=bias_initializer,
                   kernel_regularizer=kernel_regularizer, bias_regularizer=bias_regularizer,
                   kernel_constraint=kernel_constraint, bias_constraint=bias_constraint)

    def build(self, input_shape: Any) -> None:
        """Make the kernel and the bias."""
        channels = self._known_channels(input_shape)
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={1 if self._first else -1: channels})
        self.kernel = self._weight("kernel", (*self.kernel_size, self.filters, channels))
        self.bias = self._weight("bias", (self.filters,)) if self.use_bias else None
        self.built = True

    def _spread(self, axis: int, size: Any) -> Any:
        """The size of the outputs along a spatial axis; None where it is unknown."""
        extra = None if self.output_padding is None else self.output_padding[axis]
        return None if size is None else spread_size(size, self.kernel_size[axis], self.strides[axis], self.padding,
                                                     extra, self.dilation_rate[axis])

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        known, sizes = tuple(inputs.shape), tf.shape(inputs)
        here = tuple(sizes[axis] if size is None else size for axis, size in enumerate(known))
        spatial = [self._spread(axis, size) for axis, size in enumerate(self._spatial(here))]
        outputs = tf.nn.conv_transpose(inputs, self.kernel, self._joined(here[0], spatial, self.filters), self.strides,
                                       self.padding.upper(), self._layout(), self.dilation_rate)
        return self._finished(outputs)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        spatial = [self._spread(axis, size) for axis, size in enumerate(self._spatial(tuple(input_shape)))]
        return self._joined(input_shape[0], spatial, self.filters)


class Conv1DTranspose(_ConvTranspose):
    """The transpose of a convolution over one axis: it spreads inputs out by the strides.

    Args:
        filters: how many channels the outputs have.
        kernel_size, strides, dilation_rate: integers.
        padding: "valid" or "same".
        output_padding: how much is added to the outputs' size, less than the strides; None for the size that makes
            `strides` times the inputs' with "same".
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        activation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
        activity_regularizer, kernel_constraint, bias_constraint: as for `Dense`.
        kwargs: those of `Layer`.
    Inputs: floating [batch, steps, channels], or [batch, channels, steps]. Outputs: likewise, with `filters` channels.
    Weights: kernel [kernel_size, filters, channels], bias [filters].
    Raises:
        ValueError: an argument is out of range, or the inputs do not fit.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.Conv1DTranspose(1, 2, strides=2, kernel_initializer="ones")
    >>> layer(tf.constant([[[1.0], [2.0]]])).numpy().ravel().tolist()
    [1.0, 1.0, 2.0, 2.0]
    """

    rank = 1


class Conv2DTranspose(_ConvTranspose):
    """The transpose of a convolution over two axes; arguments as for `Conv1DTranspose`, with two sizes for one.

    Inputs: floating [batch, height, width, channels], or channels second. Outputs: likewise, with `filters` channels.
    Weights: kernel [height, width, filters, channels], bias [filters].

    >>> import twofold as tf
    >>> tf.keras.layers.Conv2DTranspose(4, 3, strides=2, padding="same")(tf.zeros([1, 5, 5, 2])).shape
    TensorShape([1, 10, 10, 4])
    """

    rank = 2


class Conv3DTranspose(_ConvTranspose):
    """The transpose of a convolution over three axes; arguments as for `Conv1DTranspose`, with three sizes for one.

    Inputs: floating [batch, depth, height, width, channels], or channels second. Outputs: likewise.
    Weights: kernel [depth, height, width, filters, channels], bias [filters].

    >>> import twofold as tf
    >>> tf.keras.layers.Conv3DTranspose(4, 3, strides=2)(tf.zeros([1, 2, 2, 2, 3])).shape
    TensorShape([1, 5, 5, 5, 4])
    """

    rank = 3

    def __init__(self, filters: int, kernel_size: Any, strides: Any = (1, 1, 1), padding: str = "valid",
                 data_format: str | None = None, output_padding: Any = None, *args: Any, **kwargs: Any):
        super().__init__(filters, kernel_size, strides, padding, output_padding, data_format, *args, **kwargs)


Convolution1D, Convolution2D, Convolution3D = Conv1D, Conv2D, Conv3D
Convolution1DTranspose, Convolution2DTranspose = Conv1DTranspose, Conv2DTranspose
Convolution3DTranspose = Conv3DTranspose
