"""Layers that change images at random in training: flips, turns, zooms, shifts, crops, contrast and brightness.

Colours are `random_colours.py`'s; parts of images and mixtures of them `random_mixtures.py`'s.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import twofold as tf

from .. import random
from ._declared import DeclaredLayer, Shape, data_format_of, positive
from ._sampling import FILL_MODES, INTERPOLATIONS, transformed
from .preprocessing import Resizing

__all__ = ["AffineImages", "RandomBrightness", "RandomContrast", "RandomCrop", "RandomFlip", "RandomImages",
           "RandomRotation", "RandomTranslation", "RandomZoom", "factor_range", "value_pair"]


class RandomImages(DeclaredLayer):
    """A layer that draws something for each image and changes the image by it, unless `training` is false.

    Inputs are images [batch, height, width, channels] or [height, width, channels], or channels first, or a dict with
    "images", "labels" (which pass) and "segmentation_masks" (which move as the images do, by nearest pixels).
    """

    _moves_pixels = True  # whether masks change as well
    _rounds_masks = True  # whether what becomes of masks has their dtype
    _draws = True  # whether anything is random

    def __init__(self, seed: int | None, data_format: str | None, **kwargs: Any):
        super().__init__(**kwargs)
        self.data_format = data_format_of(data_format)
        if self._draws:
            self.seed = seed
            self.generator = random.SeedGenerator(seed)

    def call(self, inputs: Any, training: Any = True) -> Any:
        """The images, changed where `training`."""
        given = inputs if isinstance(inputs, Mapping) else {"images": inputs}
        unknown = sorted(set(given) - {"images", "labels", "segmentation_masks"})
        if unknown or "images" not in given:
            raise ValueError(f"{type(self).__name__} takes images, or a dict with 'images', 'labels' and "
                             f"'segmentation_masks'. Received the keys: {sorted(given)}")
        outputs = dict(given)
        images = outputs["images"] = tf.cast(given["images"], self.compute_dtype)
        if len(images.shape) not in (3, 4):
            raise ValueError(f"Expected images of rank 3 or 4. Received inputs.shape={tuple(images.shape)}")
        if training is not False and training is not None:
            laid_out = self._laid_out(images)
            self._refuse(laid_out)
            drawn = self._draw(laid_out)
            for name in ("images", "segmentation_masks") if self._moves_pixels else ("images",):
                if name in outputs:
                    outputs[name] = self._each(outputs[name], drawn, mask=name != "images")
            if "labels" in outputs and len(images.shape) == 4:  # a single image has no others to be mixed with
                outputs["labels"] = self._labelled(outputs["labels"], drawn)
        elif self._moves_pixels:
            outputs = {name: self._plain(value) if name != "labels" else value for name, value in outputs.items()}
        return outputs if isinstance(inputs, Mapping) else outputs["images"]

    def _refuse(self, images: Any) -> None:
        """Raise ValueError for images that the layer cannot change, before anything is drawn."""

    def _each(self, value: Any, drawn: Any, mask: bool) -> Any:
        kind = value.dtype
        x = self._laid_out(tf.cast(value, self.compute_dtype))
        changed = self._changed(x, drawn, mask)
        first = self.data_format == "channels_first"
        changed = tf.transpose(changed, (0, 3, 1, 2)) if first else changed
        changed = changed[0] if len(value.shape) == 3 else changed
        return tf.cast(changed, kind) if mask and self._rounds_masks else changed

    def _laid_out(self, x: Any) -> Any:
        """Images as [batch, height, width, channels]."""
        x = x if len(x.shape) == 4 else x[tf.newaxis]
        return tf.transpose(x, (0, 2, 3, 1)) if self.data_format == "channels_first" else x

    @abstractmethod
    def _draw(self, images: Any) -> Any:
        """The random numbers for a batch."""

    @abstractmethod
    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        """The images changed by the numbers drawn."""

    def _labelled(self, labels: Any, drawn: Any) -> Any:
        """The labels of changed images."""
        return labels

    def _plain(self, images: Any) -> Any:
        """Images outside of training."""
        return images

    def _uniform(self, shape: Any, low: float, high: float) -> Any:
        return random.uniform(shape, low, high, dtype="float32", seed=self.generator)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the inputs."""
        return input_shape


def factor_range(value: Any, name: str, low: float, high: float) -> tuple[float, float]:
    """A `factor` argument: two numbers, or one for the range from its negative to it, as far as that is allowed.

    Raises:
        ValueError: it is something else, or beyond the bounds.
    """
    numbers = sorted(value) if isinstance(value, (list, tuple)) else [max(-value, low), value] if isinstance(
        value, (int, float)) else []
    if len(numbers) != 2 or numbers[0] < low or numbers[1] > high or numbers[0] > numbers[1]:
        raise ValueError(f"The `{name}` argument should be a number (or a list of two numbers) in the range "
                         f"[{low}, {high}]. Received: {name}={value}")
    return float(numbers[0]), float(numbers[1])


class RandomFlip(RandomImages):
    """Every other image turned over, at random.

    Args:
        mode: "horizontal" for left and right, "vertical" for up and down, "horizontal_and_vertical" for both.
        seed: an integer, for the same choices in every run.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        kwargs: those of `Layer`.
    Inputs: images [batch, height, width, channels] or [height, width, channels]; `training=False` leaves them as they
        are. Outputs: of that shape.
    Raises:
        ValueError: there is no such mode.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.RandomFlip("horizontal", seed=1)
    >>> layer(tf.ones([2, 4, 4, 3])).shape
    TensorShape([2, 4, 4, 3])
    """

    _arguments = ("mode", "seed", "data_format")

    def __init__(self, mode: str = "horizontal_and_vertical", seed: int | None = None, data_format: str | None = None,
                 **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        if mode not in ("horizontal", "vertical", "horizontal_and_vertical"):
            raise ValueError("`mode` must be 'horizontal', 'vertical' or 'horizontal_and_vertical'. "
                             f"Received: {mode!r}")
        self.mode = mode

    def _draw(self, images: Any) -> Any:
        axes = [axis for axis, way in ((2, "horizontal"), (1, "vertical")) if way in self.mode]
        return [(axis, self._uniform((tf.shape(images)[0], 1, 1, 1), 0.0, 1.0) <= 0.5) for axis in axes]

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        for axis, chosen in drawn:
            images = tf.where(chosen, tf.reverse(images, [axis]), images)
        return images


class AffineImages(RandomImages):
    """A layer whose change is a map of places."""

    fill_mode: str
    interpolation: str
    fill_value: float

    def _fill(self, fill_mode: str, interpolation: str, fill_value: float) -> None:
        if fill_mode not in FILL_MODES:
            raise NotImplementedError(f"Unknown `fill_mode` {fill_mode}. Expected one of {FILL_MODES}.")
        if interpolation not in INTERPOLATIONS:
            raise NotImplementedError(f"Unknown `interpolation` {interpolation}. Expected one of {INTERPOLATIONS}.")
        self.fill_mode, self.interpolation, self.fill_value = fill_mode, interpolation, fill_value

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        return transformed(images, drawn, "nearest" if mask else self.interpolation, self.fill_mode, self.fill_value)

    def _sizes(self, images: Any) -> tuple[Any, Any, Any]:
        """How many images there are, and the height and width of each, as floats."""
        shape = tf.shape(images)
        return shape[0], tf.cast(shape[1], tf.float32), tf.cast(shape[2], tf.float32)


class RandomRotation(AffineImages):
    """Images turned around their middle, each by a random angle.

    Args:
        factor: the angles, as shares of a full turn: from `-factor` to `factor`, or between two numbers; positive ones
            turn to the left.
        fill_mode: "reflect", "wrap", "nearest" or "constant": what is seen beyond the edges.
        interpolation: "bilinear" or "nearest".
        seed: an integer, for the same angles in every run.
        fill_value: what is seen there with "constant".
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        kwargs: those of `Layer`.
    Inputs and outputs: as for `RandomFlip`.
    Raises:
        ValueError: the factor is not between -1 and 1. NotImplementedError: there is no such mode.

    >>> import twofold as tf
    >>> x = tf.reshape(tf.range(9.0), [1, 3, 3, 1])
    >>> turned = tf.keras.layers.RandomRotation((0.25, 0.25), interpolation="nearest")(x)
    >>> turned.numpy()[0, :, :, 0].tolist()
    [[2.0, 5.0, 8.0], [1.0, 4.0, 7.0], [0.0, 3.0, 6.0]]
    """

    _arguments = ("factor", "fill_mode", "interpolation", "seed", "fill_value", "data_format")

    def __init__(self, factor: Any, fill_mode: str = "reflect", interpolation: str = "bilinear",
                 seed: int | None = None, fill_value: float = 0.0, data_format: str | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.factor = factor_range(factor, "factor", -1.0, 1.0)
        self._fill(fill_mode, interpolation, fill_value)

    def _draw(self, images: Any) -> Any:
        count, height, width = self._sizes(images)
        angle = self._uniform((count,), *self.factor) * (2 * math.pi)
        x, y = (width - 1) / 2, (height - 1) / 2
        cos, sin = tf.cos(angle), tf.sin(angle)
        return tf.stack([cos, -sin, x - x * cos + y * sin, sin, cos, y - x * sin - y * cos], axis=1)


class RandomZoom(AffineImages):
    """Images zoomed in or out around their middle, each by a random factor.

    Args:
        height_factor: how much more of the height is seen: 0.2 for up to 20% more or less, (0.1, 0.3) for 10% to 30%
            more; negative numbers zoom in.
        width_factor: the same for the width; by default as much as the height, so that nothing is distorted.
        fill_mode, interpolation, seed, fill_value, data_format: as for `RandomRotation`.
        kwargs: those of `Layer`.
    Inputs and outputs: as for `RandomFlip`.
    Raises:
        ValueError: a factor is not between -1 and 1. NotImplementedError: there is no such mode.

    >>> import twofold as tf
    >>> x = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
    >>> tf.keras.layers.RandomZoom((-0.5, -0.5))(x).numpy()[0, 0, :, 0].tolist()
    [3.75, 4.25, 4.75, 5.25]
    """

    _arguments = ("height_factor", "width_factor", "fill_mode", "interpolation", "seed", "fill_value", "data_format")

    def __init__(self, height_factor: Any, width_factor: Any = None, fill_mode: str = "reflect",
                 interpolation: str = "bilinear", seed: int | None = None, fill_value: float = 0.0,
                 data_format: str | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.height_factor, self.width_factor = height_factor, width_factor
        self._down = factor_range(height_factor, "height_factor", -1.0, 1.0)
        self._across = None if width_factor is None else factor_range(width_factor, "width_factor", -1.0, 1.0)
        self._fill(fill_mode, interpolation, fill_value)

    def _draw(self, images: Any) -> Any:
        count, height, width = self._sizes(images)
        down = 1 + self._uniform((count,), *self._down)
        across = down if self._across is None else 1 + self._uniform((count,), *self._across)
        none = tf.zeros_like(down)
        return tf.stack([across, none, (width - 1) / 2 * (1 - across), none, down, (height - 1) / 2 * (1 - down)], 1)


class RandomTranslation(AffineImages):
    """Images shifted, each by a random share of its size.

    Args:
        height_factor: how far down: 0.2 for up to 20% of the height up or down, or two numbers; negative ones are up.
        width_factor: how far to the right, likewise.
        fill_mode, interpolation, seed, fill_value, data_format: as for `RandomRotation`.
        kwargs: those of `Layer`.
    Inputs and outputs: as for `RandomFlip`.
    Raises:
        ValueError: a factor is not between -1 and 1. NotImplementedError: there is no such mode.

    >>> import twofold as tf
    >>> x = tf.reshape(tf.range(4.0), [1, 1, 4, 1])
    >>> layer = tf.keras.layers.RandomTranslation(0.0, (0.25, 0.25), fill_mode="constant", fill_value=9.0)
    >>> layer(x).numpy().ravel().tolist()
    [9.0, 0.0, 1.0, 2.0]
    """

    _arguments = ("height_factor", "width_factor", "fill_mode", "interpolation", "seed", "fill_value", "data_format")

    def __init__(self, height_factor: Any, width_factor: Any, fill_mode: str = "reflect",
                 interpolation: str = "bilinear", seed: int | None = None, fill_value: float = 0.0,
                 data_format: str | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.height_factor, self.width_factor = height_factor, width_factor
        self._down = factor_range(height_factor, "height_factor", -1.0, 1.0)
        self._across = factor_range(width_factor, "width_factor", -1.0, 1.0)
        self._fill(fill_mode, interpolation, fill_value)

    def _draw(self, images: Any) -> Any:
        count, height, width = self._sizes(images)
        down = self._uniform((count,), *self._down) * height
        across = self._uniform((count,), *self._across) * width
        none, one = tf.zeros_like(down), tf.ones_like(down)
        return tf.stack([one, none, -across, none, one, -down], axis=1)


class RandomCrop(RandomImages):
    """A part of the images, at a random place; the middle outside of training, as far as the shape goes.

    Args:
        height, width: the size of the part. Images that are smaller are enlarged first.
        seed: an integer, for the same places in every run.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        kwargs: those of `Layer`.
    Inputs: images [batch, height, width, channels] or [height, width, channels] of known size. Outputs: likewise, of
        the size of the part.

    >>> import twofold as tf
    >>> tf.keras.layers.RandomCrop(2, 3)(tf.zeros([5, 8, 8, 1])).shape
    TensorShape([5, 2, 3, 1])
    """

    _arguments = ("height", "width", "seed", "data_format")

    def __init__(self, height: int, width: int, seed: int | None = None, data_format: str | None = None,
                 name: str | None = None, **kwargs: Any):
        super().__init__(seed, data_format, name=name, **kwargs)
        self.height, self.width = positive(height, "height"), positive(width, "width")

    def _known(self, images: Any) -> tuple[int, int]:
        height, width = images.shape[1], images.shape[2]
        if height is None or width is None:
            raise ValueError("RandomCrop requires the input to have a fully defined height and width. Received: "
                             f"images.shape={tuple(images.shape)}")
        return height, width

    def _draw(self, images: Any) -> Any:
        height, width = self._known(images)
        if height <= self.height or width <= self.width:
            return None
        return [tf.cast(self._uniform((), 0.0, float(spare + 1)), tf.int32)
                for spare in (height - self.height, width - self.width)]

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        if drawn is None:
            fit = Resizing(self.height, self.width, "nearest" if mask else "bilinear", crop_to_aspect_ratio=True,
                           data_format="channels_last", dtype=self.dtype_policy)
            return fit(images)
        for axis, start, size in zip((1, 2), drawn, (self.height, self.width), strict=True):
            # a draw may round up to the end of its range
            start = tf.minimum(start, images.shape[axis] - size)
            images = tf.gather(images, start + tf.range(size), axis=axis)
        return images

    def _plain(self, images: Any) -> Any:
        fit = Resizing(self.height, self.width, crop_to_aspect_ratio=True, data_format=self.data_format,
                       dtype=self.dtype_policy)
        return fit(images)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for images of a shape."""
        shape = list(input_shape)
        first = len(shape) - (3 if self.data_format == "channels_last" else 2)
        shape[first:first + 2] = [self.height, self.width]
        return tuple(shape)


class RandomContrast(RandomImages):
    """Images with more or less contrast, each by a random factor.

    Args:
        factor: from 1 - factor to 1 + factor times the contrast, or 1 - the first to 1 + the second of two numbers.
        value_range: the lowest and highest value of pixels, to which results are cut.
        seed: an integer, for the same factors in every run.
        kwargs: those of `Layer`, and `data_format`.
    Inputs and outputs: as for `RandomFlip`.
    Raises:
        ValueError: the factor is not between 0 and 1.

    >>> import twofold as tf
    >>> x = tf.reshape(tf.constant([100.0, 140.0]), [1, 1, 2, 1])
    >>> round(float(tf.reduce_mean(tf.keras.layers.RandomContrast(0.5)(x))))
    120
    """

    _arguments = ("factor", "value_range", "seed", "data_format")
    _moves_pixels = False

    def __init__(self, factor: Any, value_range: Any = (0, 255), seed: int | None = None,
                 data_format: str | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.factor = factor_range((factor, factor) if isinstance(factor, (int, float)) else factor, "factor", 0.0, 1.0)
        self.value_range = value_pair(value_range)

    def _draw(self, images: Any) -> Any:
        return self._uniform((tf.shape(images)[0], 1, 1, 1), 1 - self.factor[0], 1 + self.factor[1])

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        mean = tf.reduce_mean(images, axis=(1, 2), keepdims=True)
        return tf.clip_by_value((images - mean) * tf.cast(drawn, images.dtype) + mean, *self.value_range)


class RandomBrightness(RandomImages):
    """Images made brighter or darker, each by a random number.

    Args:
        factor: the numbers, as shares of the range of values: from -factor to factor, or between two numbers.
        value_range: the lowest and highest value of pixels, to which results are cut.
        seed: an integer, for the same numbers in every run.
        kwargs: those of `Layer`, and `data_format`.
    Inputs and outputs: as for `RandomFlip`.
    Raises:
        ValueError: the factor is not between -1 and 1.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.RandomBrightness((0.5, 0.5), value_range=(0.0, 1.0))
    >>> layer(tf.constant([[[[0.25], [0.75]]]])).numpy().ravel().tolist()
    [0.75, 1.0]
    """

    _arguments = ("factor", "value_range", "seed", "data_format")
    _moves_pixels = False

    def __init__(self, factor: Any, value_range: Any = (0, 255), seed: int | None = None,
                 data_format: str | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.factor = factor_range(factor, "factor", -1.0, 1.0)
        self.value_range = value_pair(value_range)

    def _draw(self, images: Any) -> Any:
        low, high = self.value_range
        return self._uniform((tf.shape(images)[0], 1, 1, 1), *self.factor) * (high - low)

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        return tf.clip_by_value(images + tf.cast(drawn, images.dtype), *self.value_range)


def value_pair(value_range: Any) -> tuple[float, float]:
    if not isinstance(value_range, (list, tuple)) or len(value_range) != 2:
        raise ValueError("The `value_range` argument should be a list of two numbers. "
                         f"Received: value_range={value_range}")
    low, high = sorted(value_range)
    return low, high
