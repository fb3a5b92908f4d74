"""Adam and its kin: steps along a mean of gradients, scaled by a mean of their squares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import twofold as tf
from twofold._front.api import listed

from .base import Optimizer
from .gradients import dense, of_values, with_squares

__all__ = ["Adam", "AdamW", "Adamax", "Lamb", "Nadam", "ScheduleFreeAdamW"]


class _Moments(Optimizer):
    """The base of Adam's kin: two decay rates, and a mean of gradients (and of their squares) for each variable."""

    _slots: tuple[str, ...] = ("momentum", "velocity")

    def __init__(self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7,
                 weight_decay: float | None = None, clipnorm: float | None = None, clipvalue: float | None = None,
                 global_clipnorm: float | None = None, use_ema: bool = False, ema_momentum: float = 0.99,
                 ema_overwrite_frequency: int | None = None, loss_scale_factor: float | None = None,
                 gradient_accumulation_steps: int | None = None, name: str | None = None, **kwargs: Any):
        super().__init__(learning_rate, weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum,
                         ema_overwrite_frequency, loss_scale_factor, gradient_accumulation_steps, name, **kwargs)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

    def build(self, variables: Sequence[tf.Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self._momentums, self._velocities = self.add_optimizer_variables(variables, self._slots)

    def _power(self, beta: float, dtype: tf.DType) -> Any:
        """`beta` to the number of this update."""
        return self._once(f"power {beta}", dtype, lambda: tf.pow(tf.constant(beta, dtype), self._step(dtype)))

    def _means(self, gradient: Any, variable: tf.Variable) -> tuple[Any, Any]:
        """The means for a variable, with `gradient` taken in."""
        gradient, squares = with_squares(gradient, variable.dtype)
        n = self._get_variable_index(variable)
        m, v = self._momentums[n], self._velocities[n]
        m.assign_add((gradient - m) * (1 - self.beta_1))
        v.assign_add((squares - v) * (1 - self.beta_2))
        return m, v

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "beta_1": self.beta_1, "beta_2": self.beta_2, "epsilon": self.epsilon}


class Adam(_Moments):
    """Adam (Kingma and Ba, 2014): steps along the mean of gradients, over the root of the mean of their squares.

    In update t: `m += (g - m) * (1 - beta_1)`, `v += (g**2 - v) * (1 - beta_2)`, and the variable moves by
    `-learning_rate * sqrt(1 - beta_2**t) / (1 - beta_1**t) * m / (sqrt(v) + epsilon)`.

    Args:
        learning_rate: a number, a schedule, or a function of no arguments.
        beta_1, beta_2: which parts of the means of gradients and of their squares stay in each step.
        epsilon: keeps the division finite.
        amsgrad: whether to divide by the largest v so far (Reddi et al., 2018).
        weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum, ema_overwrite_frequency,
        loss_scale_factor, gradient_accumulation_steps, name: as for `tf.keras.optimizers.Optimizer`.
    Raises:
        ValueError: what `Optimizer` raises.

    >>> import twofold as tf
    >>> v = tf.Variable(10.0)
    >>> count = tf.keras.optimizers.Adam(learning_rate=0.1).minimize(lambda: v * v / 2.0, [v])
    >>> print(f"{v.numpy():.3f}")
    9.900
    """

    def __init__(self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7,
                 amsgrad: bool = False, weight_decay: float | None = None, clipnorm: float | None = None,
                 clipvalue: float | None = None, global_clipnorm: float | None = None, use_ema: bool = False,
                 ema_momentum: float = 0.99, ema_overwrite_frequency: int | None = None,
                 loss_scale_factor: float | None = None, gradient_accumulation_steps: int | None = None,
                 name: str | None = None, **kwargs: Any):
        super().__init__(learning_rate, beta_1, beta_2, epsilon, weight_decay, clipnorm, clipvalue, global_clipnorm,
                         use_ema, ema_momentum, ema_overwrite_frequency, loss_scale_factor,
                         gradient_accumulation_steps, name, **kwargs)
        self.amsgrad = amsgrad

    def build(self, variables: Sequence[tf.Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        if self.amsgrad:
            self._velocity_hats = self.add_optimizer_variables(variables, "velocity_hat")

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        dtype = variable.dtype
        m, v = self._means(gradient, variable)
        if self.amsgrad:
            largest = self._velocity_hats[self._get_variable_index(variable)]
            largest.assign(tf.maximum(largest, v))
            v = largest
        alpha = self._for_all("alpha", dtype, lambda wide: self._alpha(learning_rate, wide))
        variable.assign_sub(m * alpha / (tf.sqrt(v) + self.epsilon))

    def _alpha(self, learning_rate: Any, dtype: tf.DType) -> Any:
        """The learning rate, made up for means that began at 0."""
        unbiased = tf.sqrt(1 - self._power(self.beta_2, dtype)) / (1 - self._power(self.beta_1, dtype))
        return self._rate(learning_rate, dtype) * unbiased

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "amsgrad": self.amsgrad}


class AdamW(Adam):
    """Adam with weight decay that is no part of the gradient (Loshchilov and Hutter, 2019).

    Args:
        learning_rate: a number, a schedule, or a function of no arguments.
        weight_decay: what part of a variable, times the learning rate, is taken off it before each update.
        beta_1, beta_2, epsilon, amsgrad: as for `Adam`.
        clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum, ema_overwrite_frequency, loss_scale_factor,
        gradient_accumulation_steps, name: as for `tf.keras.optimizers.Optimizer`.
    Raises:
        ValueError: `weight_decay` is None, or what `Optimizer` raises.

    >>> import twofold as tf
    >>> v = tf.Variable(10.0)
    >>> optimizer = tf.keras.optimizers.AdamW(learning_rate=0.1, weight_decay=0.5)
    >>> count = optimizer.apply_gradients([(tf.constant(0.0), v)])
    >>> v.numpy()
    np.float32(9.5)
    """

    def __init__(self, learning_rate: Any = 0.001, weight_decay: float | None = 0.004, beta_1: float = 0.9,
                 beta_2: float = 0.999, epsilon: float = 1e-7, amsgrad: bool = False, clipnorm: float | None = None,
                 clipvalue: float | None = None, global_clipnorm: float | None = None, use_ema: bool = False,
                 ema_momentum: float = 0.99, ema_overwrite_frequency: int | None = None,
                 loss_scale_factor: float | None = None, gradient_accumulation_steps: int | None = None,
                 name: str | None = None, **kwargs: Any):
        if weight_decay is None:
            raise ValueError("Argument `weight_decay` must be a float; got None. `Adam` is the one without it.")
        super().__init__(learning_rate, beta_1, beta_2, epsilon, amsgrad, weight_decay, clipnorm, clipvalue,
                         global_clipnorm, use_ema, ema_momentum, ema_overwrite_frequency, loss_scale_factor,
                         gradient_accumulation_steps, name, **kwargs)


class Adamax(_Moments):
    """Adam with the largest gradient so far in place of the mean of squares (Kingma and Ba, 2014, section 7).

    In update t: `m += (g - m) * (1 - beta_1)`, `u = max(beta_2 * u, |g|)`, and the variable moves by
    `-learning_rate * m / ((1 - beta_1**t) * (u + epsilon))`.

    Args:
        learning_rate: a number, a schedule, or a function of no arguments.
        beta_1, beta_2: which parts of the mean and of the largest gradient stay in each step.
        epsilon: keeps the division finite.
        weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum, ema_overwrite_frequency,
        loss_scale_factor, gradient_accumulation_steps, name: as for `tf.keras.optimizers.Optimizer`.
    Raises:
        ValueError: what `Optimizer` raises.

    >>> import twofold as tf
    >>> v = tf.Variable(1.0)
    >>> count = tf.keras.optimizers.Adamax(0.5).apply_gradients([(tf.constant(3.0), v)])
    >>> print(f"{v.numpy():.3f}")
    0.500
    """

    _slots = ("momentum", "norm")

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        dtype = variable.dtype
        gradient = tf.cast(gradient, dtype)
        n = self._get_variable_index(variable)
        m, u = self._momentums[n], self._velocities[n]
        m.assign_add((dense(gradient) - m) * (1 - self.beta_1))
        u.assign(tf.maximum(u * self.beta_2, dense(of_values(tf.abs, gradient))))
        unbiased = self._for_all("unbiased", dtype, lambda wide: 1 - self._power(self.beta_1, wide))
        variable.assign_sub(self._rate(learning_rate, dtype) * m / (unbiased * (u + self.epsilon)))


class Nadam(_Moments):
    """Adam with Nesterov's momentum (Dozat, 2015): the step looks ahead along the mean of gradients.

    Args:
        learning_rate: a number, a schedule, or a function of no arguments.
        beta_1, beta_2: which parts of the means of gradients and of their squares stay in each step.
        epsilon: keeps the division finite.
        weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum, ema_overwrite_frequency,
        loss_scale_factor, gradient_accumulation_steps, name: as for `tf.keras.optimizers.Optimizer`.
    Raises:
        ValueError: what `Optimizer` raises.

    >>> import twofold as tf
    >>> v = tf.Variable(10.0)
    >>> count = tf.keras.optimizers.Nadam(learning_rate=0.1).minimize(lambda: v * v / 2.0, [v])
    >>> print(f"{v.numpy():.2f}")
    9.89
    """

    _DECAY = 0.96

    def build(self, variables: Sequence[tf.Variable]) -> None:
        if self.built:
            return
        variables = listed(variables, "variables")
        super().build(variables)
        dtype = variables[0].dtype if variables else None
        if dtype is not None and dtype.size < 4:
            dtype = tf.float32
        self._u_product = self.add_variable((), 1.0, dtype, name="u_product")

    def _momentum(self, step: Any) -> Any:
        """The momentum in an update, which grows to beta_1."""
        return self.beta_1 * (1.0 - 0.5 * tf.pow(tf.constant(self._DECAY, step.dtype), step))

    def _backend_update_step(self, grads: Sequence[Any], variables: Sequence[tf.Variable], learning_rate: Any) -> None:
        dtype = self._u_product.dtype
        grown = 1.0 - 0.5 * tf.pow(tf.constant(self._DECAY, dtype), self._step(dtype))
        self._u_product.assign(self._u_product * self.beta_1 * grown)
        super()._backend_update_step(grads, variables, learning_rate)

    def _ahead(self, dtype: tf.DType) -> tuple[Any, Any]:
        """The weights of the mean and of this update's gradient in the step."""
        return self._once("ahead", dtype, lambda: self._looked_ahead(dtype))

    def _looked_ahead(self, dtype: tf.DType) -> tuple[Any, Any]:
        now, then = self._momentum(self._step(dtype)), self._momentum(tf.cast(self.iterations + 2, dtype))
        product = tf.cast(self._u_product, dtype)
        return then / (1 - product * then), (1 - now) / (1 - product)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        dtype = variable.dtype
        m, v = self._means(gradient, variable)
        of_mean = self._for_all("of mean", dtype, lambda wide: self._ahead(wide)[0])
        of_gradient = self._for_all("of gradient", dtype, lambda wide: self._ahead(wide)[1])
        unbiased = self._for_all("unbiased", dtype, lambda wide: 1 - self._power(self.beta_2, wide))
        looked = (of_mean * m + of_gradient * dense(tf.cast(gradient, dtype))) * self._rate(learning_rate, dtype)
        variable.assign_sub(looked / (tf.sqrt(v / unbiased) + self.epsilon))


class Lamb(_Moments):
    """Adam with a step as long, layer by layer, as the learning rate times the weights (You et al., 2019).

    Args:
        learning_rate: a number, a schedule, or a function of no arguments.
        beta_1, beta_2: which parts of the means of gradients and of their squares stay in each step.
        epsilon: keeps the division finite.
        weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum, ema_overwrite_frequency,
        loss_scale_factor, gradient_accumulation_steps, name: as for `tf.keras.optimizers.Optimizer`.
    Raises:
        ValueError: what `Optimizer` raises.

    >>> import twofold as tf
    >>> v = tf.Variable([3.0, 4.0])
    >>> count = tf.keras.optimizers.Lamb(0.1).apply_gradients([(tf.constant([1.0, 0.0]), v)])
    >>> v.numpy().round(3).tolist()
    [2.5, 4.0]
    """

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        dtype = variable.dtype
        m, v = self._means(gradient, variable)
        mean = m / self._for_all("unbiased 1", dtype, lambda wide: 1.0 - self._power(self.beta_1, wide))
        square = v / self._for_all("unbiased 2", dtype, lambda wide: 1.0 - self._power(self.beta_2, wide))
        step = mean / (tf.sqrt(square) + self.epsilon)
        length = tf.sqrt(tf.reduce_sum(tf.square(variable)))
        step_length = tf.sqrt(tf.reduce_sum(tf.square(step)))
        one = tf.ones((), dtype)
        ratio = tf.where((length > 0) & (step_length > 0), length / tf.where(step_length > 0, step_length, one), one)
        variable.assign_sub(ratio * self._rate(learning_rate, dtype) * step)


class ScheduleFreeAdamW(_Moments):
    """Adam with a mean of all weights so far in place of a schedule (Defazio et al., "The road less scheduled", 2024).

    The slot `momentum` holds the weights that Adam moves; the variables are between those and their mean. The formulas
    are the paper's; Keras 3 computes the mean of earlier weights from a slot that it has already changed.

    Args:
        learning_rate: a number, a schedule, or a function of no arguments.
        beta_1: how close the variables are to the mean, in (0, 1].
        beta_2: which part of the mean of squared gradients stays in each step.
        epsilon: keeps the division finite.
        warmup_steps: over how many steps the learning rate first rises from 0.
        weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum, ema_overwrite_frequency,
        loss_scale_factor, gradient_accumulation_steps, name: as for `tf.keras.optimizers.Optimizer`.
    Raises:
        ValueError: what `Optimizer` raises.

    >>> import twofold as tf
    >>> v = tf.Variable(1.0)
    >>> optimizer = tf.keras.optimizers.ScheduleFreeAdamW(0.5)
    >>> count = optimizer.apply_gradients([(tf.constant(3.0), v)])
    >>> print(f"{v.numpy():.3f}")
    0.500
    """

    def __init__(self, learning_rate: Any = 0.0025, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-8,
                 warmup_steps: int = 0, weight_decay: float | None = None, clipnorm: float | None = None,
                 clipvalue: float | None = None, global_clipnorm: float | None = None, use_ema: bool = False,
                 ema_momentum: float = 0.99, ema_overwrite_frequency: int | None = None,
                 loss_scale_factor: float | None = None, gradient_accumulation_steps: int | None = None,
                 name: str | None = None, **kwargs: Any):
        super().__init__(learning_rate, beta_1, beta_2, epsilon, weight_decay, clipnorm, clipvalue, global_clipnorm,
                         use_ema, ema_momentum, ema_overwrite_frequency, loss_scale_factor,
                         gradient_accumulation_steps, name, **kwargs)
        self.warmup_steps = warmup_steps

    def add_variable_from_reference(self, reference_variable: tf.Variable, name: str | None = None,
                                    initializer: Any = "zeros") -> Any:
        """Make a variable of the shape and dtype of another; the slot `momentum` begins with its value."""
        if name == "momentum":
            def initializer(shape: Any, dtype: Any) -> Any:
                return tf.identity(reference_variable)
        return super().add_variable_from_reference(reference_variable, name, initializer)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        dtype = variable.dtype
        gradient, squares = with_squares(gradient, dtype)
        n = self._get_variable_index(variable)
        moved, v = self._momentums[n], self._velocities[n]
        before = tf.identity(moved)
        v.assign_add((squares - v) * (1 - self.beta_2))
        unbiased = self._for_all("unbiased", dtype, lambda wide: 1 - self._power(self.beta_2, wide))
        rate = self._once("warmed rate", dtype, lambda: self._warmed(learning_rate, dtype))
        moved.assign_sub(rate * gradient / (tf.sqrt(v / unbiased) + self.epsilon))
        weight = self._for_all("weight", dtype, lambda wide: 1.0 / self._step(wide))
        mean = (variable - (1 - self.beta_1) * before) / self.beta_1
        mean = (1 - weight) * mean + weight * moved
        variable.assign((1 - self.beta_1) * moved + self.beta_1 * mean)

    def _warmed(self, learning_rate: Any, dtype: tf.DType) -> Any:
        rate = self._rate(learning_rate, dtype)
        return rate * tf.minimum(self._step(dtype) / self.warmup_steps, 1.0) if self.warmup_steps > 0 else rate

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "warmup_steps": self.warmup_steps}
