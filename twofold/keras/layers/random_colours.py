"""Layers that change the colours of images, most of them at random in training, by Keras 3's formulas.

Contrast and brightness alone are `random_images.py`'s.
"""

from __future__ import annotations

from typing import Any

import twofold as tf

from .. import config
from .random_images import RandomBrightness, RandomContrast, RandomImages, factor_range, value_pair

__all__ = ["AutoContrast", "Equalization", "RandomColorDegeneration", "RandomColorJitter", "RandomGrayscale",
           "RandomHue", "RandomInvert", "RandomPosterization", "RandomSaturation", "RandomSharpness", "Solarization"]

_BYTES = (0, 255)


class _Colours(RandomImages):
    """A layer that changes colours and moves nothing."""

    _moves_pixels = False

    value_range: Any
    _takes: tuple[int, ...] = ()  # how many channels images may have; any number where there is none

    def _each_drawn(self, images: Any, low: float, high: float) -> Any:
        """A number for each image, [batch, 1, 1, 1]."""
        return tf.cast(self._uniform((tf.shape(images)[0], 1, 1, 1), low, high), self.compute_dtype)

    def _chosen(self, images: Any, chances: tuple[float, float]) -> Any:
        """Whether each image is changed, by a chance that is drawn as well."""
        chance = self._each_drawn(images, *chances)
        return self._each_drawn(images, 0.0, 1.0) < chance

    def _refuse(self, images: Any) -> None:
        channels = images.shape[-1]
        if self._takes and channels is not None and channels not in self._takes:
            raise ValueError(f"Expected images of {' or '.join(map(str, self._takes))} channels. Received "
                             f"inputs.shape={tuple(images.shape)}")


def _between(images: Any, old: Any, new: Any) -> Any:
    """Values of a range in another."""
    if tuple(old) == tuple(new):
        return images
    return (images - old[0]) / (old[1] - old[0]) * (new[1] - new[0]) + new[0]


def _grey(images: Any) -> Any:
    return images if images.shape[-1] == 1 else tf.image.rgb_to_grayscale(images)


class RandomHue(_Colours):
    """Images whose hues are turned, each by a random angle.

    Args:
        factor: the angles, as shares of half a turn, to either side: from 0 to `factor`, or between two numbers.
        value_range: the lowest and highest value of pixels.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        seed: an integer, for the same angles in every run.
        kwargs: those of `Layer`.
    Inputs: RGB images [batch, height, width, 3] or [height, width, 3], or a dict with such "images"; `training=False`
        leaves them as they are. Outputs: of that shape.
    Raises:
        ValueError: the factor is not between 0 and 1.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.RandomHue((1.0, 1.0))
    >>> layer([[[[255.0, 0.0, 0.0]]]]).numpy().ravel().tolist()
    [0.0, 255.0, 255.0]
    """

    _arguments = ("factor", "value_range", "seed", "data_format")

    _takes = (3,)

    def __init__(self, factor: Any, value_range: Any = (0, 255), data_format: str | None = None,
                 seed: int | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.factor = factor_range(factor, "factor", 0.0, 1.0)
        self.value_range = value_pair(value_range)

    def _draw(self, images: Any) -> Any:
        side = tf.where(self._each_drawn(images, 0.0, 1.0) > 0.5, -1.0, 1.0)
        return tf.cast(side, self.compute_dtype) * self._each_drawn(images, *self.factor) * 0.5

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        hue, saturation, value = tf.unstack(tf.image.rgb_to_hsv(_between(images, self.value_range, (0, 1))), axis=-1)
        hue = hue + drawn[..., 0]
        hue = tf.where(hue > 1, hue - 1, hue)
        hue = tf.where(hue < 0, hue + 1, hue)
        changed = tf.image.hsv_to_rgb(tf.stack([hue, saturation, value], axis=-1))
        return _between(tf.clip_by_value(changed, 0, 1), (0, 1), self.value_range)


class RandomSaturation(_Colours):
    """Images with stronger or weaker colours, each by a random factor.

    Args:
        factor: from -factor to factor, or between two numbers f; saturations are multiplied by f / (1 - f), so that 0
            and less makes images grey, 0.5 leaves them as they are, and 1 has all the colour that there is.
        value_range: the lowest and highest value of pixels.
        data_format, seed, kwargs: as for `RandomHue`.
    Inputs and outputs: as for `RandomHue`.
    Raises:
        ValueError: the factor is not between -1 and 1.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.RandomSaturation((0.0, 0.0))
    >>> layer([[[[200.0, 100.0, 0.0]]]]).numpy().ravel().tolist()
    [200.0, 200.0, 200.0]
    """

    _arguments = ("factor", "value_range", "seed", "data_format")

    _takes = (3,)

    def __init__(self, factor: Any, value_range: Any = (0, 255), data_format: str | None = None,
                 seed: int | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.factor = factor_range(factor, "factor", -1.0, 1.0)
        self.value_range = value_pair(value_range)

    def _draw(self, images: Any) -> Any:
        factor = self._each_drawn(images, *self.factor)
        return factor / (1 - factor + config.epsilon())

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        hue, saturation, value = tf.unstack(tf.image.rgb_to_hsv(images), axis=-1)
        saturation = tf.clip_by_value(saturation * drawn[..., 0], *self.value_range)
        return tf.image.hsv_to_rgb(tf.stack([hue, saturation, value], axis=-1))


class RandomGrayscale(_Colours):
    """Some images without colours, at random.

    Args:
        factor: the share of images that become grey, 0 to 1.
        data_format, seed, kwargs: as for `RandomHue`.
    Inputs and outputs: as for `RandomHue`.
    Raises:
        ValueError: the factor is not between 0 and 1.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.RandomGrayscale(1.0)
    >>> [round(v) for v in layer([[[[200.0, 100.0, 0.0]]]]).numpy().ravel().tolist()]
    [118, 118, 118]
    """

    _arguments = ("factor", "seed", "data_format")

    _takes = (1, 3)

    def __init__(self, factor: float = 0.5, data_format: str | None = None, seed: int | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        if not 0 <= factor <= 1:
            raise ValueError(f"`factor` should be between 0 and 1. Received: factor={factor}")
        self.factor = factor

    def _draw(self, images: Any) -> Any:
        return self._each_drawn(images, 0.0, 1.0) < self.factor

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        return tf.where(drawn, _grey(images), images)


class RandomColorDegeneration(_Colours):
    """Images mixed with what they are without colours, each by a random share.

    Args:
        factor: the share of grey: from -factor to factor, or between two numbers; 1 leaves no colours.
        value_range: the lowest and highest value of pixels, to which results are cut.
        data_format, seed, kwargs: as for `RandomHue`.
    Inputs and outputs: as for `RandomHue`.
    Raises:
        ValueError: the factor is not between -1 and 1.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.RandomColorDegeneration((0.0, 0.0))
    >>> layer([[[[200.0, 100.0, 0.0]]]]).numpy().ravel().tolist()
    [200.0, 100.0, 0.0]
    """

    _arguments = ("factor", "value_range", "seed", "data_format")

    _takes = (1, 3)

    def __init__(self, factor: Any, value_range: Any = (0, 255), data_format: str | None = None,
                 seed: int | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.factor = factor_range(factor, "factor", -1.0, 1.0)
        self.value_range = value_pair(value_range)

    def _draw(self, images: Any) -> Any:
        return self._each_drawn(images, *self.factor)

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        return tf.clip_by_value(images + drawn * (_grey(images) - images), *self.value_range)


class RandomColorJitter(_Colours):
    """Images with other brightness, contrast, saturation and hue, in this order, each by random factors.

    Args:
        value_range: the lowest and highest value of pixels.
        brightness_factor, contrast_factor, saturation_factor, hue_factor: those of `RandomBrightness`,
            `RandomContrast`, `RandomSaturation` and `RandomHue`; what has none stays as it is.
        seed, data_format, kwargs: as for `RandomHue`.
    Inputs and outputs: as for `RandomHue`.
    Raises:
        ValueError: a factor is out of its range.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.RandomColorJitter(brightness_factor=(0.2, 0.2), saturation_factor=(0.0, 0.0))
    >>> layer([[[[149.0, 100.0, 0.0]]]]).numpy().ravel().tolist()
    [200.0, 200.0, 200.0]
    """

    _arguments = ("value_range", "brightness_factor", "contrast_factor", "saturation_factor", "hue_factor", "seed",
                  "data_format")

    def __init__(self, value_range: Any = (0, 255), brightness_factor: Any = None, contrast_factor: Any = None,
                 saturation_factor: Any = None, hue_factor: Any = None, seed: int | None = None,
                 data_format: str | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.value_range = value_pair(value_range)
        self.brightness_factor, self.contrast_factor = brightness_factor, contrast_factor
        self.saturation_factor, self.hue_factor = saturation_factor, hue_factor
        kinds = ((RandomBrightness, brightness_factor), (RandomContrast, contrast_factor),
                 (RandomSaturation, saturation_factor), (RandomHue, hue_factor))
        self._changes = [kind(factor, self.value_range, seed=seed, dtype=self.dtype_policy) for kind, factor in kinds
                       if factor is not None]
        for part in self._changes:
            part.generator = self.generator  # one stream, or all would draw the same numbers

    def _refuse(self, images: Any) -> None:
        for part in self._changes:
            part._refuse(images)

    def _draw(self, images: Any) -> Any:
        return [part._draw(images) for part in self._changes]

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        for part, numbers in zip(self._changes, drawn, strict=True):
            images = part._changed(images, numbers, mask)
        return images


class RandomPosterization(_Colours):
    """Images with fewer bits for each value, by a random number of bits.

    Args:
        factor: how many bits are kept, 1 to 8: from 1 to `factor - 1`, or from the first of two numbers to one less
            than the second; two equal ones are that number.
        value_range: the lowest and highest value of pixels.
        data_format, seed, kwargs: as for `RandomHue`.
    Inputs and outputs: as for `RandomHue`, with any number of channels.
    Raises:
        ValueError: the factor is not between 1 and 8.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.RandomPosterization((3, 3))
    >>> layer([[[[0.0], [31.0], [32.0], [255.0]]]]).numpy().ravel().tolist()
    [0.0, 0.0, 32.0, 224.0]
    """

    _arguments = ("factor", "value_range", "seed", "data_format")

    def __init__(self, factor: Any, value_range: Any = (0, 255), data_format: str | None = None,
                 seed: int | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        low, high = factor_range(factor, "factor", 1, 8)
        self.factor = (int(low), int(high))
        self.value_range = value_pair(value_range)

    def _draw(self, images: Any) -> Any:
        shape = (tf.shape(images)[0], 1, 1, 1)
        low, high = self.factor
        if low == high:
            return tf.fill(shape, tf.constant(8 - low, tf.uint8))
        # a draw may round up to the end of its range
        bits = tf.minimum(tf.floor(self._uniform(shape, float(low), float(high))), float(high - 1))
        return tf.cast(8.0 - bits, tf.uint8)

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        values = tf.cast(_between(images, self.value_range, _BYTES), tf.uint8)
        kept = tf.bitwise.left_shift(tf.bitwise.right_shift(values, drawn), drawn)
        return _between(tf.cast(kept, images.dtype), _BYTES, self.value_range)


class Solarization(_Colours):
    """Images with a number added to all values, and those that are not below a threshold turned over.

    Args:
        addition_factor: the number, as a share of 255: from 0 to it, or from the first of two numbers (which is not
            multiplied by 255, as in Keras) to the second.
        threshold_factor: the threshold, likewise.
        value_range: the lowest and highest value of pixels.
        seed, kwargs: as for `RandomHue`; `data_format` among them.
    Inputs and outputs: as for `RandomHue`, with any number of channels.
    Raises:
        ValueError: a factor is not between 0 and 1.

    >>> import twofold as tf
    >>> tf.keras.layers.Solarization()([[[[0.0], [55.0]]]]).numpy().ravel().tolist()
    [255.0, 200.0]
    """

    _arguments = ("addition_factor", "threshold_factor", "value_range", "seed", "data_format")

    def __init__(self, addition_factor: Any = 0.0, threshold_factor: Any = 0.0, value_range: Any = (0, 255),
                 seed: int | None = None, data_format: str | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.addition_factor = factor_range(addition_factor, "addition_factor", 0.0, 1.0)
        self.threshold_factor = factor_range(threshold_factor, "threshold_factor", 0.0, 1.0)
        self.value_range = value_pair(value_range)

    def _draw(self, images: Any) -> Any:
        return [self._each_drawn(images, low, high * 255) for low, high in (self.addition_factor,
                                                                            self.threshold_factor)]

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        addition, threshold = drawn
        changed = tf.clip_by_value(_between(images, self.value_range, _BYTES) + addition, 0, 255)
        return _between(tf.where(changed < threshold, changed, 255 - changed), _BYTES, self.value_range)


class RandomInvert(_Colours):
    """Some images with their values turned over, at random.

    Args:
        factor: the chance of an image, which is drawn for each: from 0 to `factor`, or between two numbers.
        value_range: the lowest and highest value of pixels.
        seed, data_format, kwargs: as for `RandomHue`.
    Inputs and outputs: as for `RandomHue`, with any number of channels.
    Raises:
        ValueError: the factor is not between 0 and 1.

    >>> import twofold as tf
    >>> tf.keras.layers.RandomInvert((1.0, 1.0))([[[[0.0], [55.0]]]]).numpy().ravel().tolist()
    [255.0, 200.0]
    """

    _arguments = ("factor", "value_range", "seed", "data_format")

    def __init__(self, factor: Any = 1.0, value_range: Any = (0, 255), seed: int | None = None,
                 data_format: str | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.factor = factor_range(factor, "factor", 0.0, 1.0)
        self.value_range = value_pair(value_range)

    def _draw(self, images: Any) -> Any:
        return self._chosen(images, self.factor)

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        return tf.where(drawn, self.value_range[1] - images, images)


class RandomSharpness(_Colours):
    """Images made sharper or softer, each by a random factor.

    Args:
        factor: from 0 to `factor`, or between two numbers: 0 gives a smoothed image, 0.5 the image itself, 1 one that
            is as much sharper.
        value_range: the lowest and highest value of pixels, to which results are cut.
        data_format, seed, kwargs: as for `RandomHue`.
    Inputs and outputs: as for `RandomHue`, with any number of channels.
    Raises:
        ValueError: the factor is not between 0 and 1.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.RandomSharpness((0.0, 0.0))
    >>> layer([[[[0.0], [26.0], [0.0]]]]).numpy().ravel().tolist()
    [2.0, 10.0, 2.0]
    """

    _arguments = ("factor", "value_range", "seed", "data_format")

    def __init__(self, factor: Any, value_range: Any = (0, 255), data_format: str | None = None,
                 seed: int | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.factor = factor_range(factor, "factor", 0.0, 1.0)
        self.value_range = value_pair(value_range)

    def _draw(self, images: Any) -> Any:
        return self._each_drawn(images, *self.factor) * 2

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        near, middle = 1 / 13, 5 / 13
        kernel = tf.constant([[near] * 3, [near, middle, near], [near] * 3], images.dtype)
        kernel = tf.tile(kernel[:, :, tf.newaxis, tf.newaxis], [1, 1, images.shape[-1], 1])
        smooth = tf.nn.depthwise_conv2d(images, kernel, [1, 1, 1, 1], "SAME")
        return tf.clip_by_value(images + (1 - drawn) * (smooth - images), *self.value_range)


class AutoContrast(_Colours):
    """Images whose values are stretched to the whole range, each channel of each image for itself, always.

    Args:
        value_range: the lowest and highest value of pixels.
        kwargs: those of `Layer`, and `data_format`.
    Inputs and outputs: as for `RandomHue`, with any number of channels; channels of a single value stay.

    >>> import twofold as tf
    >>> tf.keras.layers.AutoContrast()([[[[100.0], [110.0], [150.0]]]]).numpy().ravel().tolist()
    [0.0, 51.0, 255.0]
    """

    _arguments = ("value_range", "data_format")
    _draws = False

    def __init__(self, value_range: Any = (0, 255), data_format: str | None = None, **kwargs: Any):
        super().__init__(None, data_format, **kwargs)
        self.value_range = value_pair(value_range)

    def call(self, inputs: Any, training: Any = True) -> Any:
        """The images, stretched."""
        return super().call(inputs, training=True)

    def _draw(self, images: Any) -> Any:
        return None

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        values = _between(images, self.value_range, _BYTES)
        low = tf.reduce_min(values, axis=(1, 2), keepdims=True)
        high = tf.reduce_max(values, axis=(1, 2), keepdims=True)
        flat = high == low
        scale = 255 / tf.where(flat, tf.ones_like(high), high - low)
        changed = _between(tf.clip_by_value(values * scale + -low * scale, 0, 255), _BYTES, self.value_range)
        return tf.where(flat, images, changed)


class Equalization(_Colours):
    """Images whose values are spread so that all are about as frequent, each channel for itself, in training.

    The frequencies are those in the whole batch, as in Keras.

    Args:
        value_range: the lowest and highest value of pixels.
        bins: how many values are told apart.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        kwargs: those of `Layer`.
    Inputs and outputs: as for `RandomHue`, with any number of channels; results are whole numbers of 255 steps.

    >>> import twofold as tf
    >>> tf.keras.layers.Equalization()([[[[10.0], [11.0], [12.0], [200.0]]]]).numpy().ravel().tolist()
    [0.0, 85.0, 170.0, 255.0]
    """

    _arguments = ("value_range", "bins", "data_format")
    _draws = False

    def __init__(self, value_range: Any = (0, 255), bins: int = 256, data_format: str | None = None, **kwargs: Any):
        super().__init__(None, data_format, **kwargs)
        self.value_range, self.bins = value_pair(value_range), bins

    def _draw(self, images: Any) -> Any:
        return None

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        values = _between(images, self.value_range, _BYTES)
        channels = [self._equalized(channel) for channel in tf.unstack(values, axis=-1)]
        return _between(tf.stack(channels, axis=-1), _BYTES, self.value_range)

    def _equalized(self, channel: Any) -> Any:
        last = self.bins - 1
        wide = tf.cast(channel, tf.float32)
        counted = tf.clip_by_value(tf.cast(wide * last / 255.0, tf.int32), 0, last)
        counts = tf.math.unsorted_segment_sum(tf.ones_like(tf.reshape(counted, [-1])), tf.reshape(counted, [-1]),
                                              self.bins)
        below = tf.cumsum(counts)
        first = tf.reduce_min(tf.where(below > 0, below, below[-1]))
        # in float64 as TensorFlow divides integers
        spread = tf.cast(tf.maximum(below[-1] - first, 1), tf.float64)
        table = tf.clip_by_value(tf.round(tf.cast((below - first) * 255, tf.float64) / spread), 0, 255)
        places = tf.cast(tf.clip_by_value(wide / 255.0 * last, 0, last), tf.int32)
        changed = tf.cast(tf.gather(table, places), channel.dtype)
        return tf.where(tf.math.count_nonzero(counts) <= 1, channel, changed)
