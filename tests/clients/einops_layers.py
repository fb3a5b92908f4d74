"""Layers of einops for twofold's Keras, in the form of those in `einops/layers/` (see `einops_backend.py`)."""

from __future__ import annotations

from typing import Any

from einops.layers import RearrangeMixin, ReduceMixin
from einops.layers._einmix import _EinmixMixin

import twofold as tf


class Rearrange(RearrangeMixin, tf.keras.layers.Layer):
    """`einops.rearrange` as a layer."""

    def call(self, inputs: Any) -> Any:
        return self._apply_recipe(inputs)

    def get_config(self) -> dict[str, Any]:
        return {"pattern": self.pattern, **self.axes_lengths}


class Reduce(ReduceMixin, tf.keras.layers.Layer):
    """`einops.reduce` as a layer."""

    def call(self, inputs: Any) -> Any:
        return self._apply_recipe(inputs)

    def get_config(self) -> dict[str, Any]:
        return {"pattern": self.pattern, "reduction": self.reduction, **self.axes_lengths}


class EinMix(_EinmixMixin, tf.keras.layers.Layer):
    """A product by `einsum` with weights of its own, as a layer."""

    def _create_parameters(self, weight_shape: Any, weight_bound: float, bias_shape: Any, bias_bound: float) -> None:
        self._wanted = {"weight": (weight_shape, weight_bound), "bias": (bias_shape, bias_bound)}

    def _create_rearrange_layers(self, pre_reshape_pattern: str | None, pre_reshape_lengths: dict[str, int] | None,
                                 post_reshape_pattern: str | None, post_reshape_lengths: dict[str, int] | None) -> None:
        before, after = pre_reshape_pattern, post_reshape_pattern
        self._before = None if before is None else Rearrange(before, **(pre_reshape_lengths or {}))
        self._after = None if after is None else Rearrange(after, **(post_reshape_lengths or {}))

    def build(self, input_shape: Any) -> None:
        for name, (shape, bound) in self._wanted.items():
            initializer = tf.keras.initializers.RandomUniform(-bound, bound)
            setattr(self, name, None if shape is None else self.add_weight(shape, initializer, name=name))

    def call(self, inputs: Any) -> Any:
        x = inputs if self._before is None else self._before(inputs)
        x = tf.einsum(self.einsum_pattern, x, self.weight)
        x = x if self.bias is None else x + self.bias
        return x if self._after is None else self._after(x)

    def get_config(self) -> dict[str, Any]:
        return {"pattern": self.pattern, "weight_shape": self.weight_shape, "bias_shape": self.bias_shape,
                **self.axes_lengths}
