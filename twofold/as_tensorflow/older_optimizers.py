"""`tf_keras.optimizers`: those of twofold's Keras, but for the class that users derive from, as it is in Keras 2.

Its first argument is the name; a learning rate is made by the class derived from it, if it has one.
"""

from __future__ import annotations

from typing import Any

import twofold as tf

__all__ = ["Optimizer"]

_Today = tf.keras.optimizers.Optimizer


class _AnyOptimizer(type(_Today)):  # type: ignore[misc]  # whatever metaclass it has
    """Each optimizer is one of `Optimizer`, though it does not derive from it."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Today) if cls is Optimizer else type.__instancecheck__(cls, instance)


class Optimizer(_Today, metaclass=_AnyOptimizer):  # type: ignore[misc,valid-type]
    """The base of GPflow's natural gradients, and of others written for Keras 2."""

    def __init__(self, name: str, *args: Any, jit_compile: bool = True, **kwargs: Any) -> None:
        super().__init__(0.0, *args, name=name, **kwargs)

    def _build_learning_rate(self, learning_rate: Any) -> Any:
        return self._as_rate(learning_rate)
