"""Layers that bend and blur images at random in training: shears, perspectives, elastic changes, Gaussian blur.

Elastic changes are those of Simard and others (2003): places move by noise that is smoothed.
"""

from __future__ import annotations

from typing import Any

import twofold as tf

from .. import random
from ._declared import numbers
from ._sampling import FILL_MODES, INTERPOLATIONS, MIRROR, sampled
from .random_images import AffineImages, RandomImages, factor_range, value_pair

__all__ = ["RandomElasticTransform", "RandomGaussianBlur", "RandomPerspective", "RandomShear"]


def _shear_range(value: Any, name: str) -> tuple[float, float]:
    """A factor of a shear: two numbers, or one for the range from its negative to it.

    Raises:
        ValueError: it is something else, or a number is not between 0 and 1.
    """
    given = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(given) == 2 and given[0] == -given[1]:
        given = [given[1]]  # a range as configs have it
    if len(given) > 2 or not all(isinstance(v, (int, float)) and 0 <= v <= 1 for v in given):
        raise ValueError("The `factor` argument should be a number (or a list of two numbers) in the range [0, 1.0]. "
                         f"Received: {name}={value}")
    low, high = sorted(given) if len(given) == 2 else (-given[0], given[0])
    return low, high


class RandomShear(AffineImages):
    """Images sheared, each by random amounts along both axes.

    Args:
        x_factor, y_factor: the amounts, as shares of the other axis: from `-factor` to `factor`, or between two
            numbers; every other image is sheared the other way.
        interpolation: "bilinear" or "nearest".
        fill_mode: "reflect", "wrap", "nearest" or "constant": what is seen beyond the edges.
        fill_value: what is seen there with "constant".
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        seed: an integer, for the same amounts in every run.
        kwargs: those of `Layer`.
    Inputs and outputs: as for `RandomFlip`.
    Raises:
        ValueError: a factor is not between 0 and 1. NotImplementedError: there is no such mode.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.RandomShear((1.0, 1.0), fill_mode="constant", interpolation="nearest", seed=1)
    >>> sorted(layer(tf.ones([1, 2, 2, 1])).numpy().ravel().tolist())
    [0.0, 1.0, 1.0, 1.0]
    """

    _arguments = ("x_factor", "y_factor", "fill_mode", "interpolation", "seed", "fill_value", "data_format")

    def __init__(self, x_factor: Any = 0.0, y_factor: Any = 0.0, interpolation: str = "bilinear",
                 fill_mode: str = "reflect", fill_value: float = 0.0, data_format: str | None = None,
                 seed: int | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.x_factor, self.y_factor = _shear_range(x_factor, "x_factor"), _shear_range(y_factor, "y_factor")
        self._fill(fill_mode, interpolation, fill_value)

    def _draw(self, images: Any) -> Any:
        count = tf.shape(images)[0]
        turned = tf.where(self._uniform((count,), 0.0, 1.0) > 0.5, -1.0, 1.0)
        y, x = (self._uniform((count,), *factor) * turned for factor in (self.y_factor, self.x_factor))
        one, zero = tf.ones_like(x), tf.zeros_like(x)
        return tf.stack([one, x, zero, y, one, zero], axis=1)


class RandomPerspective(RandomImages):
    """Images as seen from elsewhere: their corners are moved at random, straight lines stay straight.

    Args:
        factor: the chance of an image to be changed: up to the number, or between two numbers.
        scale: how far corners move, between 0 and 1: up to half of it, as shares of their places.
        interpolation: "bilinear" or "nearest".
        fill_value: what is seen beyond the edges.
        seed: an integer, for the same corners in every run.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        kwargs: those of `Layer`.
    Inputs and outputs: as for `RandomFlip`.
    Raises:
        ValueError: factor or scale is not between 0 and 1. NotImplementedError: there is no such interpolation.

    >>> import twofold as tf
    >>> x = tf.reshape(tf.range(9.0), [1, 3, 3, 1])
    >>> bool(tf.reduce_all(tf.keras.layers.RandomPerspective(1.0, scale=0.0)(x) == x))
    True
    """

    _arguments = ("factor", "scale", "interpolation", "fill_value", "seed", "data_format")

    def __init__(self, factor: Any = 1.0, scale: float = 1.0, interpolation: str = "bilinear",
                 fill_value: float = 0.0, seed: int | None = None, data_format: str | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.factor = factor_range(factor, "factor", 0.0, 1.0)
        if not isinstance(scale, (int, float)) or not 0 <= scale <= 1:
            raise ValueError(f"The `scale` argument should be a number in the range [0,1]. Received: scale={scale}")
        if interpolation not in INTERPOLATIONS:
            raise NotImplementedError(f"Unknown `interpolation` {interpolation}. Expected one of {INTERPOLATIONS}.")
        self.scale, self.interpolation, self.fill_value = scale, interpolation, fill_value

    def _draw(self, images: Any) -> Any:
        shape = tf.shape(images)
        changed = chosen(self, images, self.factor)
        moves = self._uniform((shape[0], 4, 2), -0.5 * self.scale, 0.5 * self.scale)
        height, width = (tf.cast(shape[n] - 1, tf.float32) for n in (1, 2))
        zero = tf.zeros_like(height)
        corners = tf.stack([zero, zero, width, zero, zero, height, width, height])
        corners = tf.broadcast_to(tf.reshape(corners, [1, 4, 2]), [shape[0], 4, 2])
        return changed, corners, corners + corners * moves

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        from ..ops.image import perspective_transform
        changed, corners, places = drawn
        transformed = perspective_transform(images, corners, places, "nearest" if mask else self.interpolation,
                                            self.fill_value, "channels_last")
        return tf.where(changed, tf.cast(transformed, images.dtype), images)


def chosen(layer: RandomImages, images: Any, chances: tuple[float, float]) -> Any:
    """Whether each image is changed, by a chance that is drawn as well: bools [batch, 1, 1, 1]."""
    shape = (tf.shape(images)[0], 1, 1, 1)
    chance = layer._uniform(shape, *chances)
    return layer._uniform(shape, 0.0, 1.0) < chance


class RandomGaussianBlur(RandomImages):
    """Images made blurred, at random, by one random amount for the batch.

    Args:
        factor: the chance of an image to be changed: up to the number, or between two numbers.
        kernel_size: the height and the width of the window, odd.
        sigma: the standard deviations of the weights: up to the number, or between two numbers.
        value_range: the lowest and highest value of pixels, to which results are cut.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        seed: an integer, for the same amounts in every run.
        kwargs: those of `Layer`.
    Inputs and outputs: as for `RandomFlip`; masks pass.
    Raises:
        ValueError: factor or sigma is not between 0 and 1, or the window is not of odd size.

    >>> import twofold as tf
    >>> x = tf.reshape(tf.constant([0.0, 0.0, 9.0, 0.0, 0.0]), [1, 1, 5, 1])
    >>> y = tf.keras.layers.RandomGaussianBlur((1.0, 1.0), kernel_size=3, sigma=(1.0, 1.0))(x)
    >>> bool(y[0, 0, 1, 0] > 0), float(y[0, 0, 0, 0])
    (True, 0.0)
    """

    _arguments = ("factor", "kernel_size", "sigma", "value_range", "seed", "data_format")
    _moves_pixels = False

    def __init__(self, factor: Any = 1.0, kernel_size: Any = 3, sigma: Any = 1.0, value_range: Any = (0, 255),
                 data_format: str | None = None, seed: int | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.factor = factor_range(factor, "factor", 0.0, 1.0)
        height, width = numbers(kernel_size, 2, "kernel_size")
        if height % 2 == 0 or width % 2 == 0:
            raise ValueError(f"kernel_size must be an odd number. Received: kernel_size={kernel_size}")
        self.kernel_size, self.sigma = (height, width), factor_range(sigma, "sigma", 0.0, 1.0)
        self.value_range = value_pair(value_range)

    def _draw(self, images: Any) -> Any:
        return chosen(self, images, self.factor), self._uniform((2,), *self.sigma) + 1e-6

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        from ..ops.image import gaussian_blur
        changed, sigma = drawn
        blurred = gaussian_blur(images, self.kernel_size, sigma, "channels_last")
        return tf.clip_by_value(tf.where(changed, tf.cast(blurred, images.dtype), images), *self.value_range)


class RandomElasticTransform(RandomImages):
    """Images bent as if they were on rubber: each pixel's place moves by smoothed noise.

    Args:
        factor: the chance of an image to be changed: up to the number, or between two numbers.
        scale: how far places move, drawn for the batch: up to the number, or between two numbers. At 1 the noise has a
            standard deviation of, and is smoothed over, a twentieth of the shorter side, and is multiplied by a tenth
            of the longer one.
        interpolation: "bilinear" or "nearest".
        fill_mode: "reflect", "mirror", "wrap", "nearest" or "constant": what is seen beyond the edges.
        fill_value: what is seen there with "constant".
        value_range: the lowest and highest value of pixels, to which results are cut.
        seed: an integer, for the same changes in every run.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        kwargs: those of `Layer`.
    Inputs and outputs: as for `RandomFlip`; height and width must be known.
    Raises:
        ValueError: factor or scale is not between 0 and 1. NotImplementedError: there is no such mode.

    >>> import twofold as tf
    >>> tf.keras.layers.RandomElasticTransform(seed=1)(tf.ones([2, 8, 8, 3])).shape
    TensorShape([2, 8, 8, 3])
    """

    _arguments = ("factor", "scale", "interpolation", "fill_mode", "fill_value", "value_range", "seed", "data_format")

    def __init__(self, factor: Any = 1.0, scale: Any = 1.0, interpolation: str = "bilinear",
                 fill_mode: str = "reflect", fill_value: float = 0.0, value_range: Any = (0, 255),
                 seed: int | None = None, data_format: str | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.factor = factor_range(factor, "factor", 0.0, 1.0)
        self.scale = factor_range(scale, "scale", 0.0, 1.0)
        if interpolation not in INTERPOLATIONS:
            raise NotImplementedError(f"Unknown `interpolation` {interpolation}. Expected one of {INTERPOLATIONS}.")
        if fill_mode not in (*FILL_MODES, MIRROR):
            raise NotImplementedError(f"Unknown `fill_mode` {fill_mode}. Expected one of {(*FILL_MODES, MIRROR)}.")
        self.interpolation, self.fill_mode, self.fill_value = interpolation, fill_mode, fill_value
        self.value_range = value_pair(value_range)

    def _draw(self, images: Any) -> Any:
        height, width = images.shape[1], images.shape[2]
        if height is None or width is None:
            raise ValueError("RandomElasticTransform needs images of known height and width. Received: "
                             f"images.shape={tuple(images.shape)}")
        changed = chosen(self, images, self.factor)
        scale = self._uniform((), *self.scale)
        sigma = min(height, width) * 0.05 * scale
        widest = int(min(height, width) * 0.05 * self.scale[1])
        noise = random.normal((tf.shape(images)[0], height, width, 2), dtype="float32", seed=self.generator)
        return changed, max(height, width) * 0.1 * scale * _smoothed(noise * sigma, sigma, widest)

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        changed, moves = drawn
        height, width = images.shape[1], images.shape[2]
        x = tf.range(width, dtype=tf.float32) + moves[..., 0]
        y = tf.range(height, dtype=tf.float32)[:, tf.newaxis] + moves[..., 1]
        transformed = sampled(images, x, y, "nearest" if mask else self.interpolation, self.fill_mode, self.fill_value)
        return tf.clip_by_value(tf.where(changed, transformed, images), *self.value_range)


def _smoothed(noise: Any, sigma: Any, widest: int) -> Any:
    """Noise [batch, height, width, channels] averaged by Gauss's weights, as far as 3 times the whole part of sigma.

    Args:
        sigma: a scalar tensor, whose whole part is at most `widest`.
        widest: for the size of the window, whose outer weights are zero where sigma is smaller.
    """
    away = tf.range(-3 * widest, 3 * widest + 1, dtype=tf.float32)
    weights = tf.exp(-0.5 * tf.square(away / tf.maximum(sigma, 1e-6)))
    weights = tf.where(tf.abs(away) <= 3 * tf.floor(sigma), weights, 0.0)
    weights = weights / tf.reduce_sum(weights)
    for shape in ((-1, 1, 1, 1), (1, -1, 1, 1)):
        kernel = tf.tile(tf.reshape(weights, shape), [1, 1, noise.shape[-1], 1])
        noise = tf.nn.depthwise_conv2d(noise, kernel, [1, 1, 1, 1], "SAME")
    return noise
