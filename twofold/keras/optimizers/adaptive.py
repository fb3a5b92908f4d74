"""Optimizers that divide by a sum or a mean of squared gradients: Adagrad, RMSprop, Adadelta; and Ftrl."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import twofold as tf

from .base import Optimizer
from .gradients import dense, of_values, with_squares

__all__ = ["Adadelta", "Adagrad", "Ftrl", "RMSprop"]


def _of_rows(function: Callable[..., Any], gradient: Any, *others: Any) -> Any:
    """What a function makes of a gradient and of tensors of the variable's shape: of these, the rows of slices."""
    if isinstance(gradient, tf.IndexedSlices):
        rows = [tf.gather(other, gradient.indices) for other in others]
        return of_values(lambda values: function(values, *rows), gradient)
    return function(gradient, *others)


class Adagrad(Optimizer):
    """Steps over the root of the sum of squared gradients (Duchi et al., 2011).

    `a += g**2`, and the variable moves by `-learning_rate * g / sqrt(a + epsilon)`.

    Args:
        learning_rate: a number, a schedule, or a function of no arguments.
        initial_accumulator_value: what the sums begin with.
        epsilon: keeps the division finite.
        weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum, ema_overwrite_frequency,
        loss_scale_factor, gradient_accumulation_steps, name: as for `tf.keras.optimizers.Optimizer`.
    Raises:
        ValueError: what `Optimizer` raises.

    >>> import twofold as tf
    >>> v = tf.Variable(1.0)
    >>> optimizer = tf.keras.optimizers.Adagrad(0.5, initial_accumulator_value=0.0)
    >>> count = optimizer.apply_gradients([(tf.constant(3.0), v)])
    >>> print(f"{v.numpy():.3f}")
    0.500
    """

    def __init__(self, learning_rate: Any = 0.001, initial_accumulator_value: float = 0.1, epsilon: float = 1e-7,
                 weight_decay: float | None = None, clipnorm: float | None = None, clipvalue: float | None = None,
                 global_clipnorm: float | None = None, use_ema: bool = False, ema_momentum: float = 0.99,
                 ema_overwrite_frequency: int | None = None, loss_scale_factor: float | None = None,
                 gradient_accumulation_steps: int | None = None, name: str | None = None, **kwargs: Any):
        super().__init__(learning_rate, weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum,
                         ema_overwrite_frequency, loss_scale_factor, gradient_accumulation_steps, name, **kwargs)
        self.initial_accumulator_value, self.epsilon = initial_accumulator_value, epsilon

    def build(self, variables: Sequence[tf.Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self._accumulators = self.add_optimizer_variables(variables, "accumulator",
                                                          float(self.initial_accumulator_value))

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        accumulator = self._accumulators[self._get_variable_index(variable)]
        if isinstance(gradient, tf.IndexedSlices):
            rows, values = gradient.indices, tf.cast(gradient.values, variable.dtype)
            accumulator.scatter_add(tf.IndexedSlices(tf.square(values), rows))
            step = self._rate(learning_rate, variable.dtype) * values / tf.sqrt(
                tf.gather(accumulator, rows) + self.epsilon)
            variable.scatter_sub(tf.IndexedSlices(step, rows))
            return
        gradient = tf.cast(gradient, variable.dtype)
        accumulator.assign_add(tf.square(gradient))
        variable.assign_sub(self._rate(learning_rate, variable.dtype) * gradient
                            / tf.sqrt(accumulator + self.epsilon))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "initial_accumulator_value": self.initial_accumulator_value,
                "epsilon": self.epsilon}


class RMSprop(Optimizer):
    """Steps over the root of a mean of squared gradients (Tieleman and Hinton, 2012).

    `v = rho * v + (1 - rho) * g**2`, and the step is `learning_rate * g / sqrt(v + epsilon)`; `centered` takes the
    square of a mean of gradients off v; with momentum the variable moves by `m = momentum * m + step`.

    Args:
        learning_rate: a number, a schedule, or a function of no arguments.
        rho: which part of the means stays in each step.
        momentum: which part of the momentum stays in each step.
        epsilon: keeps the division finite.
        centered: whether to divide by the root of the variance.
        weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum, ema_overwrite_frequency,
        loss_scale_factor, gradient_accumulation_steps, name: as for `tf.keras.optimizers.Optimizer`.
    Raises:
        ValueError: what `Optimizer` raises.

    >>> import twofold as tf
    >>> v = tf.Variable(1.0)
    >>> optimizer = tf.keras.optimizers.RMSprop(0.1, rho=0.75)
    >>> count = optimizer.apply_gradients([(tf.constant(3.0), v)])
    >>> print(f"{v.numpy():.3f}")
    0.800
    """

    def __init__(self, learning_rate: Any = 0.001, rho: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-7,
                 centered: bool = False, weight_decay: float | None = None, clipnorm: float | None = None,
                 clipvalue: float | None = None, global_clipnorm: float | None = None, use_ema: bool = False,
                 ema_momentum: float = 0.99, ema_overwrite_frequency: int | None = None,
                 loss_scale_factor: float | None = None, gradient_accumulation_steps: int | None = None,
                 name: str | None = None, **kwargs: Any):
        super().__init__(learning_rate, weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum,
                         ema_overwrite_frequency, loss_scale_factor, gradient_accumulation_steps, name, **kwargs)
        self.rho, self.momentum, self.epsilon, self.centered = rho, momentum, epsilon, centered

    def build(self, variables: Sequence[tf.Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self._velocities = self.add_optimizer_variables(variables, "velocity")
        self._momentums = self.add_optimizer_variables(variables, "momentum") if self.momentum > 0 else []
        self._average_gradients = (self.add_optimizer_variables(variables, "average_gradient") if self.centered
                                   else [])

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        gradient, squares = with_squares(gradient, variable.dtype)
        n, rho = self._get_variable_index(variable), self.rho
        velocity = self._velocities[n]
        velocity.assign(velocity * rho + squares * (1 - rho))
        spread = velocity + self.epsilon
        if self.centered:
            mean = self._average_gradients[n]
            mean.assign(mean * rho + gradient * (1 - rho))
            spread = velocity - tf.square(mean) + self.epsilon
        step = self._rate(learning_rate, variable.dtype) * gradient / tf.sqrt(spread)
        if self.momentum > 0:
            momentum = self._momentums[n]
            momentum.assign(momentum * self.momentum + step)
            step = momentum
        variable.assign_sub(step)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "rho": self.rho, "momentum": self.momentum, "epsilon": self.epsilon,
                "centered": self.centered}


class Adadelta(Optimizer):
    """Steps as long as the root of a mean of squared steps, over that of squared gradients (Zeiler, 2012).

    Args:
        learning_rate: a number, a schedule, or a function of no arguments; 1.0 is the paper's.
        rho: which part of the means stays in each step.
        epsilon: keeps the division finite, and begins the steps.
        weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum, ema_overwrite_frequency,
        loss_scale_factor, gradient_accumulation_steps, name: as for `tf.keras.optimizers.Optimizer`.
    Raises:
        ValueError: what `Optimizer` raises.

    >>> import twofold as tf
    >>> v = tf.Variable(1.0)
    >>> optimizer = tf.keras.optimizers.Adadelta(1.0, rho=0.0, epsilon=0.01)
    >>> count = optimizer.apply_gradients([(tf.constant(3.0), v)])
    >>> print(f"{v.numpy():.3f}")
    0.900
    """

    def __init__(self, learning_rate: Any = 0.001, rho: float = 0.95, epsilon: float = 1e-7,
                 weight_decay: float | None = None, clipnorm: float | None = None, clipvalue: float | None = None,
                 global_clipnorm: float | None = None, use_ema: bool = False, ema_momentum: float = 0.99,
                 ema_overwrite_frequency: int | None = None, loss_scale_factor: float | None = None,
                 gradient_accumulation_steps: int | None = None, name: str | None = None, **kwargs: Any):
        super().__init__(learning_rate, weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum,
                         ema_overwrite_frequency, loss_scale_factor, gradient_accumulation_steps, name, **kwargs)
        self.rho, self.epsilon = rho, epsilon

    def build(self, variables: Sequence[tf.Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self._accumulated_grads, self._accumulated_delta_vars = self.add_optimizer_variables(
            variables, ["accumulated_grad", "accumulated_delta_var"])

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        gradient = tf.cast(gradient, variable.dtype)
        n, rho = self._get_variable_index(variable), self.rho
        squares, steps = self._accumulated_grads[n], self._accumulated_delta_vars[n]
        squares.assign(squares * rho + dense(of_values(tf.square, gradient)) * (1 - rho))
        scale = tf.sqrt(steps + self.epsilon), tf.sqrt(squares + self.epsilon)
        step = _of_rows(lambda value, up, down: up * value / down, gradient, *scale)
        steps.assign(steps * rho + dense(of_values(tf.square, step)) * (1 - rho))
        variable.assign_sub(self._rate(learning_rate, variable.dtype) * dense(step))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "rho": self.rho, "epsilon": self.epsilon}


class Ftrl(Optimizer):
    """Follow the regularised leader (McMahan et al., "Ad click prediction: a view from the trenches", 2013).

    With s the sum of squared gradients, p = -learning_rate_power and l2' = l2 + beta / (2 * learning_rate):
    `linear += g' - (s_new**p - s**p) / learning_rate * w`, where g' is the gradient with 2 * shrinkage * w added; the
    variable becomes `(clip(linear, -l1, l1) - linear) / (s_new**p / learning_rate + 2 * l2')`.

    Args:
        learning_rate: a number, a schedule, or a function of no arguments.
        learning_rate_power: the power with which steps become smaller, 0 or less.
        initial_accumulator_value: what the sums of squares begin with, 0 or more.
        l1_regularization_strength, l2_regularization_strength: of the regularisation, 0 or more.
        l2_shrinkage_regularization_strength: of weight decay as a part of the gradient, 0 or more.
        beta: the paper's beta.
        weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum, ema_overwrite_frequency,
        loss_scale_factor, gradient_accumulation_steps, name: as for `tf.keras.optimizers.Optimizer`.
    Raises:
        ValueError: a setting has the wrong sign, or what `Optimizer` raises.

    >>> import twofold as tf
    >>> v = tf.Variable(0.0)
    >>> optimizer = tf.keras.optimizers.Ftrl(1.0, initial_accumulator_value=0.0)
    >>> count = optimizer.apply_gradients([(tf.constant(2.0), v)])
    >>> v.numpy()
    np.float32(-1.0)
    """

    def __init__(self, learning_rate: Any = 0.001, learning_rate_power: float = -0.5,
                 initial_accumulator_value: float = 0.1, l1_regularization_strength: float = 0.0,
                 l2_regularization_strength: float = 0.0, l2_shrinkage_regularization_strength: float = 0.0,
                 beta: float = 0.0, weight_decay: float | None = None, clipnorm: float | None = None,
                 clipvalue: float | None = None, global_clipnorm: float | None = None, use_ema: bool = False,
                 ema_momentum: float = 0.99, ema_overwrite_frequency: int | None = None,
                 loss_scale_factor: float | None = None, gradient_accumulation_steps: int | None = None,
                 name: str | None = None, **kwargs: Any):
        super().__init__(learning_rate, weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum,
                         ema_overwrite_frequency, loss_scale_factor, gradient_accumulation_steps, name, **kwargs)
        self.learning_rate_power = learning_rate_power
        self.initial_accumulator_value = initial_accumulator_value
        self.l1_regularization_strength = l1_regularization_strength
        self.l2_regularization_strength = l2_regularization_strength
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self.beta = beta
        for setting in self._SETTINGS[1:-1]:
            if getattr(self, setting) < 0:
                raise ValueError(f"`{setting}` needs to be positive or zero; got {getattr(self, setting)}.")
        if learning_rate_power > 0:
            raise ValueError(f"`learning_rate_power` needs to be negative or zero; got {learning_rate_power}.")

    _SETTINGS = ("learning_rate_power", "initial_accumulator_value", "l1_regularization_strength",
                 "l2_regularization_strength", "l2_shrinkage_regularization_strength", "beta")

    def build(self, variables: Sequence[tf.Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self._accumulators, self._linears = self.add_optimizer_variables(
            variables, ["accumulator", "linear"], [float(self.initial_accumulator_value), "zeros"])

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        rate = self._rate(learning_rate, variable.dtype)
        gradient, squared = with_squares(gradient, variable.dtype)
        n, l1, power = self._get_variable_index(variable), self.l1_regularization_strength, -self.learning_rate_power
        squares, linear = self._accumulators[n], self._linears[n]
        l2 = self.l2_regularization_strength + self.beta / (2.0 * rate)
        new_squares = squares + squared
        grown = tf.pow(new_squares, power)
        shrunk = gradient + 2 * self.l2_shrinkage_regularization_strength * variable
        linear.assign_add(shrunk - (grown - tf.pow(squares, power)) / rate * variable)
        variable.assign((tf.clip_by_value(linear, -l1, l1) - linear) / (grown / rate + 2 * l2))
        squares.assign(new_squares)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **{setting: getattr(self, setting) for setting in self._SETTINGS}}
