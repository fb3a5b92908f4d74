"""Layers that change images by several other layers, which are drawn: RandAugment and AugMix.

RandAugment is that of Cubuk and others (2020), AugMix that of Hendrycks and others (2020), as Keras 3 has them; which
layers are used is drawn at each call, in compiled functions as well.
"""

from __future__ import annotations

from typing import Any

import twofold as tf

from .. import random
from .random_colours import (
    AutoContrast,
    Equalization,
    RandomColorDegeneration,
    RandomPosterization,
    RandomSharpness,
    Solarization,
)
from .random_images import (
    RandomBrightness,
    RandomContrast,
    RandomImages,
    RandomRotation,
    RandomTranslation,
    factor_range,
    value_pair,
)
from .random_shapes import RandomShear

__all__ = ["AugMix", "RandAugment"]

_SHAPES = ("random_shear", "random_translation", "random_rotation")
_TONES = ("random_posterization", "solarization", "auto_contrast", "equalization")
_COLOURS = ("random_brightness", "random_color_degeneration", "random_contrast", "random_sharpness")


class _Policy(RandomImages):
    """A layer that applies others, one after the other, each of which is drawn for the whole batch."""

    _names: tuple[str, ...]
    factor: tuple[float, float]
    value_range: Any
    interpolation: str
    seed: int | None

    def _make_layers(self, names: tuple[str, ...]) -> None:
        """The layers to draw from, as attributes of these names."""
        self._names = names
        common: dict[str, Any] = {"data_format": "channels_last", "dtype": self.dtype_policy}
        drawn = {**common, "seed": self.seed}
        toned, moved = {**drawn, "value_range": self.value_range}, {**drawn, "interpolation": self.interpolation}
        factor = self.factor
        make: dict[str, Any] = {
            "random_shear": lambda: RandomShear(factor, factor, **moved),
            "random_translation": lambda: RandomTranslation(factor, factor, **moved),
            "random_rotation": lambda: RandomRotation(factor, **moved),
            "random_brightness": lambda: RandomBrightness(factor, **toned),
            "random_color_degeneration": lambda: RandomColorDegeneration(factor, **toned),
            "random_contrast": lambda: RandomContrast(factor, **toned),
            "random_sharpness": lambda: RandomSharpness(factor, **toned),
            "random_posterization": lambda: RandomPosterization(max(1, int(8 * factor[1])), **toned),
            "solarization": lambda: Solarization(factor, factor, **toned),
            "auto_contrast": lambda: AutoContrast(value_range=self.value_range, **common),
            "equalization": lambda: Equalization(value_range=self.value_range, **common)}
        for name in names:
            setattr(self, name, make[name]())

    def _refuse(self, images: Any) -> None:
        for name in self._names:
            self._layer(name)._refuse(images)

    def _draws_of(self, images: Any, steps: int) -> list[Any]:
        """What each layer draws for each step: structures of tensors [steps, batch, ..]."""
        shape = tf.shape(images)
        batches = tf.broadcast_to(tf.zeros((), images.dtype), tf.concat([[steps * shape[0]], shape[1:]], 0))
        batches = tf.ensure_shape(batches, [None, *images.shape[1:]])

        def by_step(x: Any) -> Any:
            return tf.reshape(x, tf.concat([[steps, shape[0]], tf.shape(x)[1:]], 0))
        drawn = [self._layer(name)._draw(batches) for name in self._names]
        return [None if structure is None else tf.nest.map_structure(by_step, structure) for structure in drawn]

    def _layer(self, name: str) -> Any:
        return getattr(self, name)

    def _step(self, images: Any, which: Any, draws: list[Any], step: Any, mask: bool) -> Any:
        """The images changed by layer number `which`; as they are where there is none of that number."""
        def by(layer: Any, drawn: Any) -> Any:
            if mask and not layer._moves_pixels:
                return lambda: tf.identity(images)
            return lambda: layer._changed(
                images, None if drawn is None else tf.nest.map_structure(lambda x: x[step], drawn), mask)
        branches = [by(self._layer(name), drawn) for name, drawn in zip(self._names, draws, strict=True)]
        changed = tf.switch_case(which, [*branches, lambda: tf.identity(images)])
        return tf.ensure_shape(changed, images.shape)

    def _numbers(self, count: int, kinds: int) -> Any:
        return random.randint((count,), 0, kinds, seed=self.generator)


class RandAugment(_Policy):
    """Images changed by a few layers that are drawn from eleven: shears, turns, colours, contrast and others.

    Args:
        value_range: the lowest and highest value of pixels.
        num_ops: how many layers are drawn, one after the other.
        factor: how strong the changes are: up to the number, or between two numbers, of 0 to 1.
        interpolation: "bilinear" or "nearest".
        seed: an integer, for the same changes in every run.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        kwargs: those of `Layer`.
    Inputs: images of three channels as for `RandomFlip`, or a dict; masks move as the images do. Outputs: likewise.
    Raises:
        ValueError: the factor is not between 0 and 1.

    >>> import twofold as tf
    >>> tf.keras.layers.RandAugment(seed=1)(tf.ones([2, 8, 8, 3])).shape
    TensorShape([2, 8, 8, 3])
    """

    _arguments = ("value_range", "num_ops", "factor", "interpolation", "seed", "data_format")

    def __init__(self, value_range: Any = (0, 255), num_ops: int = 2, factor: Any = 0.5,
                 interpolation: str = "bilinear", seed: int | None = None, data_format: str | None = None,
                 **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.value_range, self.num_ops = value_pair(value_range), num_ops
        self.factor, self.interpolation = factor_range(factor, "factor", 0.0, 1.0), interpolation
        self._make_layers((*_SHAPES, *_COLOURS, *_TONES))

    def _draw(self, images: Any) -> Any:
        if not self.num_ops:
            return None
        return self._numbers(self.num_ops, len(self._names)), self._draws_of(images, self.num_ops)

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        if drawn is None:
            return images
        which, draws = drawn
        return tf.while_loop(lambda step, x: step < self.num_ops,
                             lambda step, x: (step + 1, self._step(x, which[step], draws, step, mask)),
                             (tf.constant(0), images))[1]


class AugMix(_Policy):
    """Images mixed with several chains of changes to them, by random weights.

    Args:
        value_range: the lowest and highest value of pixels, to which results are cut.
        num_chains: how many chains there are.
        chain_depth: how many layers a chain has at most.
        factor: how strong the changes are: up to the number, or between two numbers, of 0 to 1.
        alpha: the weights of chains follow a Dirichlet distribution of it, that of the images themselves a beta
            distribution: small numbers mix little.
        all_ops: whether brightness, colours, contrast and sharpness are among the layers.
        interpolation: "bilinear" or "nearest".
        seed: an integer, for the same changes in every run.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
        kwargs: those of `Layer`.
    Inputs: images of three channels as for `RandomFlip`, or a dict. Outputs: likewise.
    Raises:
        ValueError: the factor is not between 0 and 1.

    >>> import twofold as tf
    >>> tf.keras.layers.AugMix(num_chains=2, chain_depth=1, seed=1)(tf.ones([2, 8, 8, 3])).shape
    TensorShape([2, 8, 8, 3])
    """

    _arguments = ("value_range", "num_chains", "chain_depth", "factor", "alpha", "all_ops", "interpolation", "seed",
                  "data_format")

    def __init__(self, value_range: Any = (0, 255), num_chains: int = 3, chain_depth: int = 3, factor: Any = 0.3,
                 alpha: float = 1.0, all_ops: bool = True, interpolation: str = "bilinear", seed: int | None = None,
                 data_format: str | None = None, **kwargs: Any):
        super().__init__(seed, data_format, **kwargs)
        self.value_range, self.num_chains, self.chain_depth = value_pair(value_range), num_chains, chain_depth
        self.factor, self.interpolation = factor_range(factor, "factor", 0.0, 1.0), interpolation
        self.alpha, self.all_ops = alpha, all_ops
        self._make_layers((*_SHAPES, *_TONES, *_COLOURS) if all_ops else (*_SHAPES, *_TONES))

    def _draw(self, images: Any) -> Any:
        steps = self.num_chains * self.chain_depth
        weights = random.gamma((self.num_chains,), self.alpha, dtype="float32", seed=self.generator)
        kept = random.beta((), self.alpha, self.alpha, dtype="float32", seed=self.generator)
        which = self._numbers(steps, len(self._names) + 1)  # one number more: no layer
        return weights / tf.reduce_sum(weights), kept, which, self._draws_of(images, steps)

    def _changed(self, images: Any, drawn: Any, mask: bool) -> Any:
        weights, kept, which, draws = drawn
        depth, steps = self.chain_depth, self.num_chains * self.chain_depth
        weights, kept = tf.cast(weights, images.dtype), tf.cast(kept, images.dtype)

        def link(step: Any, current: Any, total: Any) -> Any:
            """One layer of a chain: a chain begins with the images, and its end joins the total."""
            current = tf.where(step % depth == 0, images, current)
            current = self._step(current, which[step], draws, step, mask)
            share = tf.where(step % depth == depth - 1, weights[step // depth], tf.zeros((), images.dtype))
            return step + 1, current, total + share * current
        total = tf.while_loop(lambda step, current, total: step < steps, link,
                              (tf.constant(0), images, tf.zeros_like(images)))[2]
        mixed = kept * images + (1 - kept) * total
        return mixed if mask else tf.clip_by_value(mixed, *self.value_range)
