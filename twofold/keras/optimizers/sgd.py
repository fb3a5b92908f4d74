"""Gradient descent, with momentum; and Lion, which goes by the signs of a momentum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import twofold as tf

from .base import Optimizer
from .gradients import dense

__all__ = ["Lion", "SGD"]


class SGD(Optimizer):
    """Gradient descent, with momentum (Polyak) or Nesterov's.

    `velocity = momentum * velocity - learning_rate * g`, and the variable moves by the velocity; with `nesterov` by
    `momentum * velocity - learning_rate * g`. Without momentum it moves by `-learning_rate * g`.

    Args:
        learning_rate: a number, a schedule, or a function of no arguments.
        momentum: which part of the velocity stays in each step, in [0, 1].
        nesterov: whether to look ahead along the velocity.
        weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum, ema_overwrite_frequency,
        loss_scale_factor, gradient_accumulation_steps, name: as for `tf.keras.optimizers.Optimizer`.
    Raises:
        ValueError: `momentum` is not in [0, 1], or what `Optimizer` raises.

    >>> import twofold as tf
    >>> v = tf.Variable(1.0)
    >>> optimizer = tf.keras.optimizers.SGD(learning_rate=0.1, momentum=0.9)
    >>> for _ in range(2): count = optimizer.apply_gradients([(tf.constant(1.0), v)])
    >>> print(f"{v.numpy():.3f}")
    0.710
    """

    def __init__(self, learning_rate: Any = 0.01, momentum: float = 0.0, nesterov: bool = False,
                 weight_decay: float | None = None, clipnorm: float | None = None, clipvalue: float | None = None,
                 global_clipnorm: float | None = None, use_ema: bool = False, ema_momentum: float = 0.99,
                 ema_overwrite_frequency: int | None = None, loss_scale_factor: float | None = None,
                 gradient_accumulation_steps: int | None = None, name: str | None = None, **kwargs: Any):
        super().__init__(learning_rate, weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum,
                         ema_overwrite_frequency, loss_scale_factor, gradient_accumulation_steps, name, **kwargs)
        if not isinstance(momentum, (int, float)) or not 0 <= momentum <= 1:
            raise ValueError(f"`momentum` must be a float between [0, 1]; got {momentum!r}.")
        self.momentum = momentum
        self.nesterov = nesterov

    def build(self, variables: Sequence[tf.Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self.momentums = self.add_optimizer_variables(variables, "momentum") if self.momentum else []

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        if isinstance(gradient, tf.IndexedSlices) and not self.momentum:
            values = tf.cast(gradient.values, variable.dtype) * self._rate(learning_rate, variable.dtype)
            variable.scatter_sub(tf.IndexedSlices(values, gradient.indices))
            return
        gradient = tf.cast(dense(gradient), variable.dtype)
        step = gradient * self._rate(learning_rate, variable.dtype)
        if not self.momentum:
            variable.assign_sub(step)
            return
        velocity = self.momentums[self._get_variable_index(variable)]
        velocity.assign(velocity * self.momentum - step)
        variable.assign_add(velocity * self.momentum - step if self.nesterov else velocity)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "momentum": self.momentum, "nesterov": self.nesterov}


class Lion(Optimizer):
    """Descent by the signs of a momentum (Chen et al., "Symbolic discovery of optimization algorithms", 2023).

    The variable moves by `-learning_rate * sign(beta_1 * m + (1 - beta_1) * g)`; then
    `m = beta_2 * m + (1 - beta_2) * g`.

    Args:
        learning_rate: a number, a schedule, or a function of no arguments.
        beta_1: the weight of the momentum in a step, in (0, 1].
        beta_2: which part of the momentum stays.
        weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum, ema_overwrite_frequency,
        loss_scale_factor, gradient_accumulation_steps, name: as for `tf.keras.optimizers.Optimizer`.
    Raises:
        ValueError: `beta_1` is not in (0, 1], or what `Optimizer` raises.

    >>> import twofold as tf
    >>> v = tf.Variable([1.0, 1.0])
    >>> count = tf.keras.optimizers.Lion(0.5).apply_gradients([(tf.constant([3.0, -0.1]), v)])
    >>> v.numpy().tolist()
    [0.5, 1.5]
    """

    def __init__(self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.99,
                 weight_decay: float | None = None, clipnorm: float | None = None, clipvalue: float | None = None,
                 global_clipnorm: float | None = None, use_ema: bool = False, ema_momentum: float = 0.99,
                 ema_overwrite_frequency: int | None = None, loss_scale_factor: float | None = None,
                 gradient_accumulation_steps: int | None = None, name: str | None = None, **kwargs: Any):
        super().__init__(learning_rate, weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum,
                         ema_overwrite_frequency, loss_scale_factor, gradient_accumulation_steps, name, **kwargs)
        if not 0 < beta_1 <= 1:
            raise ValueError(f"`beta_1` must be in (0, 1], or only the signs of gradients count; got {beta_1}.")
        self.beta_1, self.beta_2 = beta_1, beta_2

    def build(self, variables: Sequence[tf.Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self._momentums = self.add_optimizer_variables(variables, "momentum")

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        gradient = tf.cast(dense(gradient), variable.dtype)
        m = self._momentums[self._get_variable_index(variable)]
        direction = tf.sign(m * self.beta_1 + gradient * (1.0 - self.beta_1))
        variable.assign_sub(self._rate(learning_rate, variable.dtype) * direction)
        m.assign(m * self.beta_2 + gradient * (1.0 - self.beta_2))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "beta_1": self.beta_1, "beta_2": self.beta_2}
