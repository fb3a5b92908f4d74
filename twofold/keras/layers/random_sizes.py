"""Layers of older programs that give images another height or width at random in training."""

from __future__ import annotations

from typing import Any

import twofold as tf

from .regularization import _Random

__all__ = ["RandomHeight", "RandomWidth"]


class _RandomSize(_Random):
    """What both share: `_axis` is the axis of the images that changes."""

    supports_masking = False
    _axis: int
    _arguments = ("factor", "interpolation", "seed")

    def __init__(self, factor: Any, interpolation: str = "bilinear", seed: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        low, high = factor if isinstance(factor, (tuple, list)) else (-factor, factor)
        if high < low:
            raise ValueError("`factor` argument cannot have an upper bound lesser than the lower bound. "
                             f"Received: factor={factor}")
        if low < -1.0:
            raise ValueError(f"`factor` argument must have values larger than -1. Received: factor={factor}")
        self.factor, self.interpolation, self._range = factor, interpolation, (low, high)
        self._seeds(seed, True)

    def call(self, inputs: Any, training: Any = True) -> Any:
        """The outputs for `inputs`."""
        return self._disturbed(inputs) if training else inputs

    def _disturbed(self, inputs: Any) -> Any:
        inputs = tf.cast(tf.convert_to_tensor(inputs), self.compute_dtype)
        sizes = [tf.shape(inputs)[axis] for axis in (-3, -2)]
        factor = tf.keras.random.uniform([], 1.0 + self._range[0], 1.0 + self._range[1], seed=self.seed_generator)
        changed = self._axis + 3
        sizes[changed] = tf.cast(factor * tf.cast(sizes[changed], tf.float32), tf.int32)
        return tf.cast(tf.image.resize(inputs, tf.stack(sizes), method=self.interpolation), self.compute_dtype)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the inputs, with an unknown size."""
        shape = list(input_shape)
        shape[self._axis] = None
        return tuple(shape)


class RandomHeight(_RandomSize):
    """Images resized to another height in training, one for the batch.

    Args:
        factor: by how much the height changes, as a share of it: from `-factor` to `factor`, or between two numbers.
        interpolation: a method of `tf.image.resize`.
        seed: an integer, for the same heights in every run.
        kwargs: those of `Layer`.
    Inputs: [..., height, width, channels]. Outputs: of another height; the inputs where `training` is false.
    Raises:
        ValueError: a number of the factor is below -1, or the second is below the first.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.RandomHeight((0.5, 0.5))
    >>> layer(tf.ones([1, 4, 4, 1])).shape, layer(tf.ones([1, 4, 4, 1]), training=False).shape
    (TensorShape([1, 6, 4, 1]), TensorShape([1, 4, 4, 1]))
    """

    _axis = -3


class RandomWidth(_RandomSize):
    """Images resized to another width in training, one for the batch.

    Args:
        factor: by how much the width changes, as a share of it: from `-factor` to `factor`, or between two numbers.
        interpolation: a method of `tf.image.resize`.
        seed: an integer, for the same widths in every run.
        kwargs: those of `Layer`.
    Inputs: [..., height, width, channels]. Outputs: of another width; the inputs where `training` is false.
    Raises:
        ValueError: a number of the factor is below -1, or the second is below the first.

    >>> import twofold as tf
    >>> tf.keras.layers.RandomWidth((0.5, 0.5))(tf.ones([1, 4, 4, 1])).shape
    TensorShape([1, 4, 6, 1])
    """

    _axis = -2
