"""Pooling: the largest element or the average of windows, of everything, or of a given number of parts."""

from __future__ import annotations

from typing import Any

import numpy as np

import twofold as tf

from ..composites import is_composite
from ..operands import floating
from ._declared import FirstOrLast, InputSpec, Shape, data_format_of, numbers, padding_of, window_sizes

__all__ = [
    "AdaptiveAveragePooling1D", "AdaptiveAveragePooling2D", "AdaptiveAveragePooling3D", "AdaptiveMaxPooling1D",
    "AdaptiveMaxPooling2D", "AdaptiveMaxPooling3D", "AveragePooling1D", "AveragePooling2D", "AveragePooling3D",
    "AvgPool1D", "AvgPool2D", "AvgPool3D", "GlobalAveragePooling1D", "GlobalAveragePooling2D",
    "GlobalAveragePooling3D", "GlobalAvgPool1D", "GlobalAvgPool2D", "GlobalAvgPool3D", "GlobalMaxPool1D",
    "GlobalMaxPool2D", "GlobalMaxPool3D", "GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D",
    "MaxPool1D", "MaxPool2D", "MaxPool3D", "MaxPooling1D", "MaxPooling2D", "MaxPooling3D",
]


class _Pooling(FirstOrLast):
    """What poolings of windows share."""

    _arguments = ("pool_size", "padding", "strides", "data_format")
    _kind: str

    def __init__(self, pool_size: Any, strides: Any = None, padding: str = "valid", data_format: str | None = None,
                 name: str | None = None, **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.pool_size = numbers(pool_size, self.rank, "pool_size")
        self.strides = self.pool_size if strides is None else numbers(strides, self.rank, "strides")
        self.padding, self.data_format = padding_of(padding), data_format_of(data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        return tf.nn.pool(inputs, self.pool_size, self._kind, self.strides, self.padding.upper(), self._layout())

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        input_shape = tuple(input_shape)
        places = window_sizes(self._spatial(input_shape), self.pool_size, self.strides, self.padding, (1,) * self.rank)
        return self._joined(input_shape[0], places, self._channels(input_shape))


class MaxPooling1D(_Pooling):
    """The largest element of each window, over one axis.

    Args:
        pool_size: the size of the window.
        strides: how far windows are apart; the window's size by default.
        padding: "valid" or "same".
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        name: the layer's name.
        kwargs: those of `Layer`.
    Inputs: [batch, steps, channels], or [batch, channels, steps]. Outputs: likewise.

    >>> import twofold as tf
    >>> tf.keras.layers.MaxPooling1D(2)(tf.constant([[[1.0], [3.0], [2.0], [0.0]]])).numpy().ravel().tolist()
    [3.0, 2.0]
    """

    rank, _kind = 1, "MAX"

    def __init__(self, pool_size: Any = 2, strides: Any = None, padding: str = "valid", data_format: str | None = None,
                 name: str | None = None, **kwargs: Any):
        super().__init__(pool_size, strides, padding, data_format, name, **kwargs)


class MaxPooling2D(_Pooling):
    """The largest element of each window, over two axes; arguments as for `MaxPooling1D`, with two sizes for one.

    Inputs: [batch, height, width, channels], or channels second. Outputs: likewise.

    >>> import twofold as tf
    >>> tf.keras.layers.MaxPool2D((2, 2), strides=2)(tf.zeros([1, 5, 4, 3])).shape
    TensorShape([1, 2, 2, 3])
    """

    rank, _kind = 2, "MAX"

    def __init__(self, pool_size: Any = (2, 2), strides: Any = None, padding: str = "valid",
                 data_format: str | None = None, name: str | None = None, **kwargs: Any):
        super().__init__(pool_size, strides, padding, data_format, name, **kwargs)


class MaxPooling3D(_Pooling):
    """The largest element of each window, over three axes; arguments as for `MaxPooling1D`, with three sizes for one.

    Inputs: [batch, depth, height, width, channels], or channels second. Outputs: likewise.

    >>> import twofold as tf
    >>> tf.keras.layers.MaxPooling3D()(tf.zeros([1, 4, 4, 4, 3])).shape
    TensorShape([1, 2, 2, 2, 3])
    """

    rank, _kind = 3, "MAX"

    def __init__(self, pool_size: Any = (2, 2, 2), strides: Any = None, padding: str = "valid",
                 data_format: str | None = None, name: str | None = None, **kwargs: Any):
        super().__init__(pool_size, strides, padding, data_format, name, **kwargs)


class AveragePooling1D(_Pooling):
    """The average of each window, over one axis; padding does not count. Arguments as for `MaxPooling1D`.

    >>> import twofold as tf
    >>> tf.keras.layers.AveragePooling1D(2)(tf.constant([[[1.0], [3.0], [2.0], [0.0]]])).numpy().ravel().tolist()
    [2.0, 1.0]
    """

    rank, _kind = 1, "AVG"


class AveragePooling2D(_Pooling):
    """The average of each window, over two axes; padding does not count. Arguments as for `MaxPooling2D`.

    >>> import twofold as tf
    >>> tf.keras.layers.AveragePooling2D(2, padding="same")(tf.zeros([1, 5, 4, 3])).shape
    TensorShape([1, 3, 2, 3])
    """

    rank, _kind = 2, "AVG"

    def __init__(self, pool_size: Any = (2, 2), strides: Any = None, padding: str = "valid",
                 data_format: str | None = None, name: str | None = None, **kwargs: Any):
        super().__init__(pool_size, strides, padding, data_format, name, **kwargs)


class AveragePooling3D(_Pooling):
    """The average of each window, over three axes; padding does not count. Arguments as for `MaxPooling3D`.

    >>> import twofold as tf
    >>> tf.keras.layers.AveragePooling3D(2)(tf.zeros([1, 4, 4, 4, 3])).shape
    TensorShape([1, 2, 2, 2, 3])
    """

    rank, _kind = 3, "AVG"

    def __init__(self, pool_size: Any = (2, 2, 2), strides: Any = None, padding: str = "valid",
                 data_format: str | None = None, name: str | None = None, **kwargs: Any):
        super().__init__(pool_size, strides, padding, data_format, name, **kwargs)


class _Global(FirstOrLast):
    """What poolings of everything share."""

    _arguments = ("data_format", "keepdims")

    def __init__(self, data_format: str | None = None, keepdims: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.data_format, self.keepdims = data_format_of(data_format), keepdims
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def _axes(self) -> tuple[int, ...]:
        start = 2 if self._first else 1
        return tuple(range(start, start + self.rank))

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        kept = (1,) * self.rank if self.keepdims else ()
        return self._joined(input_shape[0], kept, self._channels(tuple(input_shape)))


class _GlobalMax(_Global):
    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        return tf.reduce_max(inputs, axis=self._axes(), keepdims=self.keepdims)


class _GlobalAverage(_Global):
    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        x = inputs if is_composite(inputs) else floating(inputs)
        return tf.reduce_mean(x, axis=self._axes(), keepdims=self.keepdims)


class GlobalMaxPooling1D(_GlobalMax):
    """The largest element of each channel, over one axis.

    Args:
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        keepdims: whether the axis stays, with size 1.
        kwargs: those of `Layer`.
    Inputs: [batch, steps, channels], or [batch, channels, steps]. Outputs: [batch, channels].

    >>> import twofold as tf
    >>> tf.keras.layers.GlobalMaxPooling1D()(tf.constant([[[1.0], [3.0]]])).numpy().tolist()
    [[3.0]]
    """

    rank = 1


class GlobalMaxPooling2D(_GlobalMax):
    """The largest element of each channel, over two axes; arguments as for `GlobalMaxPooling1D`.

    >>> import twofold as tf
    >>> tf.keras.layers.GlobalMaxPooling2D()(tf.zeros([2, 4, 4, 3])).shape
    TensorShape([2, 3])
    """

    rank = 2


class GlobalMaxPooling3D(_GlobalMax):
    """The largest element of each channel, over three axes; arguments as for `GlobalMaxPooling1D`.

    >>> import twofold as tf
    >>> tf.keras.layers.GlobalMaxPooling3D(keepdims=True)(tf.zeros([2, 4, 4, 4, 3])).shape
    TensorShape([2, 1, 1, 1, 3])
    """

    rank = 3


class GlobalAveragePooling1D(_GlobalAverage):
    """The average of each channel over one axis; steps that a mask leaves out do not count.

    Args:
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        keepdims: whether the axis stays, with size 1.
        kwargs: those of `Layer`.
    Inputs: [batch, steps, channels], or [batch, channels, steps], and a `mask` [batch, steps] if there is one.
    Outputs: [batch, channels].

    >>> import twofold as tf
    >>> layer = tf.keras.layers.GlobalAveragePooling1D()
    >>> layer(tf.constant([[[1.0], [3.0]]]), mask=tf.constant([[True, False]])).numpy().tolist()
    [[1.0]]
    """

    rank = 1
    supports_masking = True

    def call(self, inputs: Any, mask: Any = None) -> Any:
        """The outputs for `inputs`."""
        if mask is None:
            return super().call(inputs)
        steps = self._axes()[0]
        weights = tf.expand_dims(tf.cast(mask, inputs.dtype), 1 if self._first else 2)
        total = tf.reduce_sum(inputs * weights, axis=steps, keepdims=self.keepdims)
        return total / tf.reduce_sum(weights, axis=steps, keepdims=self.keepdims)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """None: the steps are gone."""
        return None


class GlobalAveragePooling2D(_GlobalAverage):
    """The average of each channel over two axes; arguments as for `GlobalMaxPooling1D`.

    >>> import twofold as tf
    >>> tf.keras.layers.GlobalAveragePooling2D()(tf.ones([1, 4, 4, 3])).numpy().tolist()
    [[1.0, 1.0, 1.0]]
    """

    rank = 2


class GlobalAveragePooling3D(_GlobalAverage):
    """The average of each channel over three axes; arguments as for `GlobalMaxPooling1D`.

    >>> import twofold as tf
    >>> tf.keras.layers.GlobalAveragePooling3D()(tf.zeros([2, 4, 4, 4, 3])).shape
    TensorShape([2, 3])
    """

    rank = 3


_MOST_PARTS = 1 << 20


def part_counts(output_size: Any, rank: int) -> tuple[int, ...]:
    """How many parts an adaptive pooling makes of each axis.

    Raises:
        ValueError: there are not as many numbers as axes, or more parts than can be meant.
    """
    counts = numbers(output_size, rank, "output_size")
    if max(counts, default=0) > _MOST_PARTS:
        raise ValueError(f"The `output_size` argument must be at most {_MOST_PARTS}; more parts cannot be meant. "
                         f"Received output_size={output_size!r}")
    return counts


def reduced_parts(x: Any, axis: int, parts: int, reduce: Any) -> Any:
    """A tensor with an axis in the place of which are some parts of it, each reduced.

    Parts of the same length, of which there are two, are reduced together, so that the number of ops does not grow with
    that of the parts.

    Raises:
        ValueError: the size of the axis is unknown.
    """
    size = x.shape[axis]
    if size is None:
        raise ValueError(f"Adaptive pooling needs inputs whose pooled sizes are known; got {tuple(x.shape)}.")
    if size % parts == 0:
        shape = tf.shape(x)
        split = tf.reshape(x, tf.concat([shape[:axis], [parts, size // parts], shape[axis + 1:]], 0))
        return reduce(split, axis=axis + 1)
    number = np.arange(parts)
    low, high = number * size // parts, -(-(number + 1) * size // parts)
    pieces, order = [], []
    for length in np.unique(high - low):
        chosen = np.flatnonzero(high - low == length)
        pieces.append(reduce(tf.gather(x, low[chosen, None] + np.arange(length), axis=axis), axis=axis + 1))
        order.append(chosen)
    return tf.gather(tf.concat(pieces, axis), np.argsort(np.concatenate(order)), axis=axis)


class _Adaptive(FirstOrLast):
    """What poolings into a given number of parts share: part i of n is from floor(i/n) to ceil((i+1)/n) of an axis."""

    _arguments = ("output_size", "data_format")
    _reduce: Any

    def __init__(self, output_size: Any, data_format: str | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.output_size = part_counts(output_size, self.rank)
        self.data_format = data_format_of(data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`; sizes of the pooled axes must be known."""
        start = 2 if self._first else 1
        for axis, parts in enumerate(self.output_size, start):
            inputs = reduced_parts(inputs, axis, parts, type(self)._reduce)
        return inputs

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        return self._joined(input_shape[0], self.output_size, self._channels(tuple(input_shape)))


class _AdaptiveAverage(_Adaptive):
    _reduce = tf.reduce_mean


class _AdaptiveMax(_Adaptive):
    _reduce = tf.reduce_max


class AdaptiveAveragePooling1D(_AdaptiveAverage):
    """The averages of a given number of parts of an axis, which overlap where sizes do not divide.

    Args:
        output_size: how many parts.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        kwargs: those of `Layer`.
    Inputs: [batch, steps, channels], or [batch, channels, steps]. Outputs: likewise.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.AdaptiveAveragePooling1D(2)
    >>> layer(tf.constant([[[1.0], [2.0], [6.0]]])).numpy().ravel().tolist()
    [1.5, 4.0]
    """

    rank = 1


class AdaptiveAveragePooling2D(_AdaptiveAverage):
    """The averages of a given number of parts of two axes; arguments as for `AdaptiveAveragePooling1D`.

    >>> import twofold as tf
    >>> tf.keras.layers.AdaptiveAveragePooling2D((2, 3))(tf.zeros([1, 7, 6, 4])).shape
    TensorShape([1, 2, 3, 4])
    """

    rank = 2


class AdaptiveAveragePooling3D(_AdaptiveAverage):
    """The averages of a given number of parts of three axes; arguments as for `AdaptiveAveragePooling1D`.

    >>> import twofold as tf
    >>> tf.keras.layers.AdaptiveAveragePooling3D(2)(tf.zeros([1, 4, 4, 5, 3])).shape
    TensorShape([1, 2, 2, 2, 3])
    """

    rank = 3


class AdaptiveMaxPooling1D(_AdaptiveMax):
    """The largest elements of a given number of parts of an axis; arguments as for `AdaptiveAveragePooling1D`.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.AdaptiveMaxPooling1D(2)
    >>> layer(tf.constant([[[1.0], [2.0], [6.0]]])).numpy().ravel().tolist()
    [2.0, 6.0]
    """

    rank = 1


class AdaptiveMaxPooling2D(_AdaptiveMax):
    """The largest elements of a given number of parts of two axes; arguments as for `AdaptiveAveragePooling1D`.

    >>> import twofold as tf
    >>> tf.keras.layers.AdaptiveMaxPooling2D((2, 3))(tf.zeros([1, 7, 6, 4])).shape
    TensorShape([1, 2, 3, 4])
    """

    rank = 2


class AdaptiveMaxPooling3D(_AdaptiveMax):
    """The largest elements of a given number of parts of three axes; arguments as for `AdaptiveAveragePooling1D`.

    >>> import twofold as tf
    >>> tf.keras.layers.AdaptiveMaxPooling3D(2)(tf.zeros([1, 4, 4, 5, 3])).shape
    TensorShape([1, 2, 2, 2, 3])
    """

    rank = 3


MaxPool1D, MaxPool2D, MaxPool3D = MaxPooling1D, MaxPooling2D, MaxPooling3D
AvgPool1D, AvgPool2D, AvgPool3D = AveragePooling1D, AveragePooling2D, AveragePooling3D
GlobalMaxPool1D, GlobalMaxPool2D, GlobalMaxPool3D = GlobalMaxPooling1D, GlobalMaxPooling2D, GlobalMaxPooling3D
GlobalAvgPool1D, GlobalAvgPool2D = GlobalAveragePooling1D, GlobalAveragePooling2D
GlobalAvgPool3D = GlobalAveragePooling3D
