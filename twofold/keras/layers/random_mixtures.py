"""Layers that mix images of a batch, or take parts of them away, at random in training.

MixUp is that of Zhang and others (2018), CutMix that of Yun and others (2019), random erasing that of Zhong and others
(2020), all as Keras 3 has them.
"""

from __future__ import annotations

from typing import Any

import twofold as tf

from .. import random
from .random_images import RandomImages, factor_range, value_pair

__all__ = ["CutMix", "MixUp", "RandomErasing"]


class _Boxes(RandomImages):
    """A layer that draws a box for each image."""

    def _span(self, size: Any, share: Any) -> Any:
        """Where the boxes lie along an axis of a size, of which they take shares [batch]: which pixels, [batch, size],
        and how long they are."""
        length = share * tf.cast(size, tf.float32)
        start = self._uniform(tf.shape(share), 0.0, 1.0) * (tf.cast(size, tf.float32) - length)
        place = tf.cast(tf.range(size), tf.float32)
        end = start + length
        return (place >= start[:, tf.newaxis]) & (place < end[:, tf.newaxis]), end - start

    def _box(self, images: Any, down: Any, across: Any) -> tuple[Any, Any]:
        """Boxes of shares of the height and width: the pixels in them, [batch, height, width, 1], and their areas as
        shares of the image."""
        shape = tf.shape(images)
        columns, width = self._span(shape[2], across)
        rows, height = self._span(shape[1], down)
        area = width * height / tf.cast(shape[1] * shape[2], tf.float32)
        return rows[:, :, tf.newaxis, tf.newaxis] & columns[:, tf.newaxis, :, tf.newaxis], area

    def _order(self, images: Any) -> Any:
        """A partner for each image."""
        return random.shuffle(tf.range(tf.shape(images)[0]), seed=self.generator)


def _mixed(values: Any, order: Any, weight: Any) -> Any:
    """Values and those of their partners, by weights [batch]."""
    weight = tf.cast(tf.reshape(weight, [-1] + [1] * (len(values.shape) - 1)), values.dtype)
    return weight * values + (1 - weight) * tf.gather(values, order)


class MixUp(_Boxes):
    """Images mixed with others of their batch, and their labels alike.

    Args:
        alpha: the weights follow a beta distribution of `alpha` and `alpha`: small numbers mix little.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        seed: an integer, for the same mixtures in every run.
        kwargs: those of `Layer`.
    Inputs: images [batch, height, width, channels], or a dict with such "images", "labels" [batch, ..] and
        "segmentation_masks"; `training=False` leaves them as they are. Outputs: likewise; labels and masks are floats.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.MixUp(seed=1)
    >>> mixed = layer({"images": tf.ones([4, 2, 2, 3]), "labels": tf.eye(4)})
    >>> tf.reduce_sum(mixed["labels"], axis=1).numpy().round(4).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    _arguments = ("alpha", "seed", "data_format")
    _rounds_masks = False

    def __init__(self, alpha: float = 0.2, data_format: str | None = None, seed: int | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.alpha = alpha

    def _draw(self, images: Any) -> Any:
        return self._order(images), _beta(self, images, self.alpha)

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        return _mixed(images, *drawn)

    def _labelled(self, labels: Any, drawn: Any) -> Any:
        return _mixed_labels(labels, *drawn)


def _beta(layer: Any, images: Any, alpha: Any) -> Any:
    """A number of a beta distribution for each image; where both of its parts vanish, it is 1."""
    count = tf.shape(images)[0]
    parts = [random.gamma((count,), alpha, dtype="float32", seed=layer.generator) for _ in range(2)]
    whole = parts[0] + parts[1]
    return tf.where(whole > 0, parts[0] / tf.where(whole > 0, whole, tf.ones_like(whole)), tf.ones_like(whole))


def _mixed_labels(labels: Any, order: Any, weight: Any) -> Any:
    labels = tf.convert_to_tensor(labels)
    labels = labels if labels.dtype.is_floating else tf.cast(labels, tf.float32)
    return _mixed(labels, order, weight)


class CutMix(_Boxes):
    """Images with a box out of others of their batch, and their labels mixed by its area.

    Args:
        factor: from 0 to `factor`, or between two numbers: the parameter of the beta distribution that the areas
            follow.
        seed: an integer, for the same boxes in every run.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        kwargs: those of `Layer`.
    Inputs and outputs: as for `MixUp`, but masks keep their dtype.
    Raises:
        ValueError: the factor is not between 0 and 1.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.CutMix(seed=1)
    >>> images = tf.reshape(tf.repeat(tf.range(4.0), 4), [4, 2, 2, 1])
    >>> set(layer(images).numpy().ravel().tolist()) <= {0.0, 1.0, 2.0, 3.0}
    True
    """

    _arguments = ("factor", "seed", "data_format")

    def __init__(self, factor: Any = 1.0, seed: int | None = None, data_format: str | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.factor = factor_range(factor, "factor", 0.0, 1.0)

    def _draw(self, images: Any) -> Any:
        alpha = self._uniform((), *self.factor) + 1e-6
        side = tf.sqrt(1 - _beta(self, images, alpha))
        inside, area = self._box(images, side, side)
        return self._order(images), 1 - area, inside

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        order, _, inside = drawn
        return tf.where(inside, tf.gather(images, order), images)

    def _labelled(self, labels: Any, drawn: Any) -> Any:
        return _mixed_labels(labels, *drawn[:2])


class RandomErasing(_Boxes):
    """Images with a box of something else, at random.

    Args:
        factor: the chance of an image, which is drawn for each: from 0 to `factor`, or between two numbers.
        scale: the square of the box's share of a side: from 0 to `scale`, or between two numbers.
        fill_value: what is in the box: a number, three numbers, or None for noise.
        value_range: the lowest and highest value of pixels, to which the box's are cut.
        seed: an integer, for the same boxes in every run.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        kwargs: those of `Layer`.
    Inputs: images [batch, height, width, channels] or [height, width, channels], or a dict with such "images";
        `training=False` leaves them as they are. Outputs: of that shape.
    Raises:
        ValueError: `factor` or `scale` is not between 0 and 1, or `fill_value` is neither.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.RandomErasing((1.0, 1.0), scale=(1.0, 1.0), fill_value=7)
    >>> layer(tf.zeros([1, 1, 2, 1])).numpy().ravel().tolist()
    [7.0, 7.0]
    """

    _arguments = ("factor", "scale", "fill_value", "value_range", "seed", "data_format")
    _moves_pixels = False

    def __init__(self, factor: Any = 1.0, scale: Any = (0.02, 0.33), fill_value: Any = None,
                 value_range: Any = (0, 255), seed: int | None = None, data_format: str | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.factor = factor_range(factor, "factor", 0.0, 1.0)
        self.scale = factor_range(scale, "scale", 0.0, 1.0)
        self.value_range = value_pair(value_range)
        several = isinstance(fill_value, (list, tuple))
        if not (fill_value is None or isinstance(fill_value, (int, float)) or (several and len(fill_value) == 3)):
            raise ValueError("The `fill_value` argument should be a number (or a list of three numbers). "
                             f"Received: fill_value={fill_value}")
        self.fill_value = tuple(fill_value) if several else fill_value

    def _draw(self, images: Any) -> Any:
        count = tf.shape(images)[0]
        sides = [tf.sqrt(self._uniform((count,), *self.scale)) for _ in range(2)]
        inside, _ = self._box(images, *sides)
        chance = self._uniform((count, 1, 1, 1), *self.factor)
        chosen = self._uniform((count, 1, 1, 1), 0.0, 1.0) < chance
        fill = self.fill_value
        if fill is None:
            fill = random.normal(tf.shape(images), dtype="float32", seed=self.generator) * self.value_range[1]
        fill = tf.clip_by_value(tf.cast(fill, tf.float32), *self.value_range)
        return inside & chosen, tf.cast(fill, images.dtype)

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        return tf.where(drawn[0], drawn[1], images)
