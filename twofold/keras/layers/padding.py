"""Layers that add to, take from, or enlarge spatial axes: ZeroPadding, Cropping, UpSampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import twofold as tf

from ._declared import FirstOrLast, InputSpec, Shape, data_format_of, numbers
from ._resizing import INTERPOLATIONS, resized

__all__ = ["Cropping1D", "Cropping2D", "Cropping3D", "UpSampling1D", "UpSampling2D", "UpSampling3D", "ZeroPadding1D",
           "ZeroPadding2D", "ZeroPadding3D"]

Margins = tuple[tuple[int, int], ...]


def _margins(value: Any, rank: int, name: str) -> Margins:
    """Sizes before and after for each axis, from a number, a number for each axis, or a pair for each.

    Raises:
        ValueError: it is something else.
    """
    if rank == 1 and isinstance(value, Sequence) and not isinstance(value[0], Sequence):
        value = (value,)
    if isinstance(value, int):
        value = (value,) * rank
    fits = isinstance(value, Sequence) and len(value) == rank
    if not fits:
        raise ValueError(f"`{name}` should be an integer, {rank} integers or {rank} pairs of integers. "
                         f"Received: {name}={value!r}")
    return tuple(numbers(pair, 2, name, least=0) for pair in value)  # type: ignore[misc]


class _Margin(FirstOrLast):
    """What padding and cropping share."""

    _what: str
    _margins: Margins

    def __init__(self, margins: Any, data_format: str | None, **kwargs: Any):
        super().__init__(**kwargs)
        self._margins = _margins(margins, self.rank, self._what)
        self.data_format = "channels_last" if self.rank == 1 and data_format is None else data_format_of(data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def _argument(self, name: str) -> Any:
        if name != self._what:
            return super()._argument(name)
        return self._margins[0] if self.rank == 1 else self._margins

    def _changed(self, input_shape: Any, sign: int) -> Shape:
        shape = tuple(input_shape)
        sizes = [None if size is None else size + sign * sum(pair)
                 for size, pair in zip(self._spatial(shape), self._margins, strict=True)]
        if any(size is not None and size <= 0 for size in sizes):
            raise ValueError(f"Values in `{self._what}` should be smaller than the corresponding dimension of the "
                             f"input. Received: input_shape={shape}, {self._what}={self._margins}")
        return self._joined(shape[0], sizes, self._channels(shape))


class _ZeroPadding(_Margin):
    _what = "padding"
    _arguments = ("padding", "data_format")

    @property
    def padding(self) -> Any:
        """What is added before and after."""
        return self._argument("padding")

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        return tf.pad(inputs, self._joined((0, 0), self._margins, (0, 0)))

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        return self._changed(input_shape, 1)


class ZeroPadding1D(_ZeroPadding):
    """Zeros before and after the steps.

    Args:
        padding: how many; one number for both sides, or two.
        data_format: "channels_last" or "channels_first".
        kwargs: those of `Layer`.
    Inputs: [batch, steps, channels], or [batch, channels, steps]. Outputs: likewise.

    >>> import twofold as tf
    >>> tf.keras.layers.ZeroPadding1D((0, 2))(tf.constant([[[1.0]]])).numpy().ravel().tolist()
    [1.0, 0.0, 0.0]
    """

    rank = 1

    def __init__(self, padding: Any = 1, data_format: str | None = None, **kwargs: Any):
        super().__init__((padding, padding) if isinstance(padding, int) else padding, data_format, **kwargs)


class ZeroPadding2D(_ZeroPadding):
    """Zeros around images.

    Args:
        padding: a number for all sides, two for height and width, or two pairs ((top, bottom), (left, right)).
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        kwargs: those of `Layer`.
    Inputs: [batch, height, width, channels], or channels second. Outputs: likewise.

    >>> import twofold as tf
    >>> tf.keras.layers.ZeroPadding2D(((1, 0), (2, 2)))(tf.zeros([1, 3, 3, 1])).shape
    TensorShape([1, 4, 7, 1])
    """

    rank = 2

    def __init__(self, padding: Any = (1, 1), data_format: str | None = None, **kwargs: Any):
        super().__init__(padding, data_format, **kwargs)


class ZeroPadding3D(_ZeroPadding):
    """Zeros around volumes; arguments as for `ZeroPadding2D`, with three sizes for two.

    >>> import twofold as tf
    >>> tf.keras.layers.ZeroPadding3D(1)(tf.zeros([1, 3, 3, 3, 1])).shape
    TensorShape([1, 5, 5, 5, 1])
    """

    rank = 3

    def __init__(self, padding: Any = ((1, 1), (1, 1), (1, 1)), data_format: str | None = None, **kwargs: Any):
        super().__init__(padding, data_format, **kwargs)


class _Cropping(_Margin):
    _what = "cropping"
    _arguments: tuple[str, ...] = ("cropping", "data_format")

    @property
    def cropping(self) -> Any:
        """What is taken away before and after."""
        return self._argument("cropping")

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        self._changed(inputs.shape, -1)
        cuts = [slice(before, -after or None) for before, after in self._margins]
        return inputs[self._joined(slice(None), cuts, slice(None))]

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        return self._changed(input_shape, -1)


class Cropping1D(_Cropping):
    """Takes steps away at the beginning and at the end.

    Args:
        cropping: how many; one number for both sides, or two.
        kwargs: those of `Layer`.
    Inputs: [batch, steps, channels]. Outputs: likewise.
    Raises:
        ValueError: nothing would be left.

    >>> import twofold as tf
    >>> tf.keras.layers.Cropping1D((1, 0))(tf.constant([[[1.0], [2.0]]])).numpy().ravel().tolist()
    [2.0]
    """

    rank = 1
    _arguments = ("cropping",)

    def __init__(self, cropping: Any = (1, 1), **kwargs: Any):
        super().__init__((cropping, cropping) if isinstance(cropping, int) else cropping, "channels_last", **kwargs)


class Cropping2D(_Cropping):
    """Takes borders of images away.

    Args:
        cropping: a number for all sides, two for height and width, or two pairs ((top, bottom), (left, right)).
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        kwargs: those of `Layer`.
    Inputs: [batch, height, width, channels], or channels second. Outputs: likewise.
    Raises:
        ValueError: nothing would be left.

    >>> import twofold as tf
    >>> tf.keras.layers.Cropping2D(((1, 0), (2, 2)))(tf.zeros([1, 6, 6, 1])).shape
    TensorShape([1, 5, 2, 1])
    """

    rank = 2

    def __init__(self, cropping: Any = ((0, 0), (0, 0)), data_format: str | None = None, **kwargs: Any):
        super().__init__(cropping, data_format, **kwargs)


class Cropping3D(_Cropping):
    """Takes borders of volumes away; arguments as for `Cropping2D`, with three sizes for two.

    >>> import twofold as tf
    >>> tf.keras.layers.Cropping3D(1)(tf.zeros([1, 6, 6, 6, 1])).shape
    TensorShape([1, 4, 4, 4, 1])
    """

    rank = 3

    def __init__(self, cropping: Any = ((1, 1), (1, 1), (1, 1)), data_format: str | None = None, **kwargs: Any):
        super().__init__(cropping, data_format, **kwargs)


class _UpSampling(FirstOrLast):
    _arguments: tuple[str, ...] = ("size", "data_format")

    def __init__(self, size: Any, data_format: str | None, **kwargs: Any):
        super().__init__(**kwargs)
        self._size = numbers(size, self.rank, "size")
        self.data_format = "channels_last" if self.rank == 1 else data_format_of(data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    @property
    def size(self) -> Any:
        """The factors."""
        return self._size[0] if self.rank == 1 else self._size

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        for axis, factor in enumerate(self._size, 2 if self._first else 1):
            inputs = inputs if factor == 1 else tf.repeat(inputs, factor, axis=axis)
        return inputs

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        shape = tuple(input_shape)
        sizes = [None if size is None else size * factor
                 for size, factor in zip(self._spatial(shape), self._size, strict=True)]
        return self._joined(shape[0], sizes, self._channels(shape))


class UpSampling1D(_UpSampling):
    """Each step several times.

    Args:
        size: how often.
        kwargs: those of `Layer`.
    Inputs: [batch, steps, channels]. Outputs: [batch, steps * size, channels].

    >>> import twofold as tf
    >>> tf.keras.layers.UpSampling1D(2)(tf.constant([[[1.0], [2.0]]])).numpy().ravel().tolist()
    [1.0, 1.0, 2.0, 2.0]
    """

    rank = 1
    _arguments = ("size",)

    def __init__(self, size: Any = 2, **kwargs: Any):
        super().__init__(size, None, **kwargs)


class UpSampling2D(_UpSampling):
    """Images enlarged by whole factors.

    Args:
        size: a factor for both axes, or two.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        interpolation: "nearest", "bilinear", "bicubic", "lanczos3" or "lanczos5".
        kwargs: those of `Layer`.
    Inputs: [batch, height, width, channels], or channels second. Outputs: likewise.

    >>> import twofold as tf
    >>> tf.keras.layers.UpSampling2D((1, 2))(tf.constant([[[[1.0], [2.0]]]])).numpy().ravel().tolist()
    [1.0, 1.0, 2.0, 2.0]
    """

    rank = 2
    _arguments = ("size", "data_format", "interpolation")

    def __init__(self, size: Any = (2, 2), data_format: str | None = None, interpolation: str = "nearest",
                 **kwargs: Any):
        super().__init__(size, data_format, **kwargs)
        self.interpolation = interpolation.lower()
        if self.interpolation not in INTERPOLATIONS:
            raise ValueError(f"`interpolation` must be one of {INTERPOLATIONS}. Received: {interpolation!r}")

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        if self.interpolation == "nearest":
            return super().call(inputs)
        sizes, start = tf.shape(inputs), 2 if self._first else 1
        known = tuple(inputs.shape)
        for axis, factor in enumerate(self._size, start):
            size = sizes[axis] if known[axis] is None else known[axis]
            inputs = resized(inputs, axis, size * factor, self.interpolation)
        return inputs


class UpSampling3D(_UpSampling):
    """Volumes enlarged by whole factors, each element several times.

    Args:
        size: a factor for all three axes, or three.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        kwargs: those of `Layer`.

    >>> import twofold as tf
    >>> tf.keras.layers.UpSampling3D(2)(tf.zeros([1, 2, 2, 2, 1])).shape
    TensorShape([1, 4, 4, 4, 1])
    """

    rank = 3

    def __init__(self, size: Any = (2, 2, 2), data_format: str | None = None, **kwargs: Any):
        super().__init__(size, data_format, **kwargs)
