"""Scaling a loss so that small gradients survive in float16 (Micikevicius et al., "Mixed precision training", 2018)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import twofold as tf
from twofold._front.api import listed

from ..configs import config_of
from ..scalars import number
from ..serialization import deserialize_keras_object, serialize_keras_object
from .base import Optimizer, when
from .gradients import without_missing

__all__ = ["LossScaleOptimizer"]

_INNER_ONLY = ("weight_decay", "clipnorm", "global_clipnorm", "clipvalue", "use_ema", "ema_overwrite_frequency",
               "loss_scale_factor", "gradient_accumulation_steps")


class LossScaleOptimizer(Optimizer):
    """An optimizer around another, which scales the loss by a factor that it looks for.

    Where a gradient is infinite or NaN, nothing moves and the scale is halved; after `dynamic_growth_steps` updates in
    a row it is doubled.

    Args:
        inner_optimizer: the optimizer that moves the variables.
        initial_scale: the scale at first.
        dynamic_growth_steps: after how many updates in a row the scale is doubled.
        name: by default the class's in snake case.
        **kwargs: `dynamic=True`, which has no effect.
    Raises:
        ValueError: an argument belongs to the inner optimizer, or is unknown.

    >>> import twofold as tf
    >>> v = tf.Variable(1.0)
    >>> optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.5), initial_scale=8.0)
    >>> with tf.GradientTape() as tape:
    ...     loss = optimizer.scale_loss(v * v)
    >>> count = optimizer.apply_gradients([(tape.gradient(loss, v), v)])
    >>> v.numpy()
    np.float32(0.0)
    """

    def __init__(self, inner_optimizer: Optimizer, initial_scale: float = 2.0**15, dynamic_growth_steps: int = 2000,
                 name: str | None = None, **kwargs: Any):
        if not kwargs.pop("dynamic", True):
            raise ValueError("LossScaleOptimizer has no `dynamic=False`: set `loss_scale_factor` on the optimizer.")
        for setting in _INNER_ONLY:
            if kwargs.pop(setting, None):
                raise ValueError(f"LossScaleOptimizer has no `{setting}`: set it on the `inner_optimizer`.")
        kwargs.pop("ema_momentum", None)  # of no use without `use_ema`
        super().__init__(0.0, name=name, **kwargs)
        self.inner_optimizer = inner_optimizer
        self.initial_scale = initial_scale
        self.dynamic_growth_steps = dynamic_growth_steps
        # made here rather than in `build`: a function may be traced from `scale_loss` on before there are gradients
        self.step_counter = self.add_variable((), dtype=tf.int64, name="step_counter")
        self.dynamic_scale = self.add_variable((), float(initial_scale), tf.float32, name="dynamic_scale")
        inner_optimizer.loss_scale_factor = None

    def build(self, variables: Sequence[tf.Variable]) -> None:
        if self.built:
            return
        self.inner_optimizer.build(variables)
        super().build(variables)

    @property
    def variables(self) -> list[tf.Variable]:
        """The variables of this optimizer, then those of the one inside."""
        return [*self._variables, *self.inner_optimizer.variables]

    @property
    def learning_rate(self) -> Any:
        """The learning rate of the optimizer inside."""
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self.inner_optimizer.learning_rate = value

    lr = learning_rate

    @property
    def iterations(self) -> Any:
        """How many updates there were in which variables moved."""
        return self.inner_optimizer.iterations

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[tf.Variable] | None = None) -> None:
        """Move variables by gradients of a scaled loss, where all of them are finite.

        Args:
            grads: a gradient for each variable, None where there is none.
            trainable_variables: the variables; by default those the optimizer was built with.
        Raises:
            ValueError: as `tf.keras.optimizers.Optimizer.apply`.

        >>> import twofold as tf
        >>> optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.5), initial_scale=8.0)
        >>> v = tf.Variable(1.0)
        >>> optimizer.apply([tf.constant(float("inf"))], [v])
        >>> v.numpy(), optimizer.dynamic_scale.numpy()
        (np.float32(1.0), np.float32(4.0))
        """
        grads = listed(grads, "grads")
        if not grads:
            return
        variables = self._variables_of(grads, trainable_variables)
        grads, variables = without_missing(grads, variables, slices=False)
        when(tf.reduce_all(tf.stack([tf.reduce_all(tf.math.is_finite(gradient)) for gradient in grads])),
             lambda: self._move(grads, variables), self._lower)

    def _move(self, grads: Sequence[Any], variables: Sequence[tf.Variable]) -> None:
        scale = self.dynamic_scale
        self.inner_optimizer.apply([gradient / number(scale, gradient.dtype) for gradient in grads], variables)
        enough = tf.equal(self.step_counter, self.dynamic_growth_steps - 1)
        scale.assign(tf.where(enough, scale * 2.0, scale))
        self.step_counter.assign(tf.where(enough, tf.zeros_like(self.step_counter), self.step_counter + 1))

    def _lower(self) -> None:
        self.step_counter.assign(0)
        self.dynamic_scale.assign(self.dynamic_scale * 0.5)

    def scale_loss(self, loss: Any) -> Any:
        """The loss times the scale; take gradients of it, and give them to `apply_gradients`.

        >>> import twofold as tf
        >>> optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(), initial_scale=8.0)
        >>> optimizer.scale_loss(tf.constant(2.0)).numpy()
        np.float32(16.0)
        """
        loss = tf.convert_to_tensor(loss)
        return loss * number(self.dynamic_scale, loss.dtype)

    def get_scaled_loss(self, loss: Any) -> Any:
        """The older name of `scale_loss`."""
        return self.scale_loss(loss)

    def finalize_variable_values(self, var_list: Sequence[tf.Variable]) -> None:
        """Give variables their moving averages, where the optimizer inside keeps such."""
        self.inner_optimizer.finalize_variable_values(var_list)

    def get_config(self) -> dict[str, Any]:
        """The settings, with those of the optimizer inside."""
        return {"name": self.name, "inner_optimizer": serialize_keras_object(self.inner_optimizer),
                "initial_scale": self.initial_scale, "dynamic_growth_steps": self.dynamic_growth_steps}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
        """An optimizer from what `get_config` gave."""
        config = config_of(config)
        inner = config.pop("inner_optimizer")
        if isinstance(inner, Mapping):
            inner = deserialize_keras_object(inner, custom_objects=custom_objects)
        return cls(inner, **config)
