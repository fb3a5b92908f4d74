"""Optimizers for which a weight matrix is more than its elements: Adafactor and Muon."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import twofold as tf
from twofold._front.api import listed

from .base import Optimizer
from .gradients import with_squares
from .slots import path_of

__all__ = ["Adafactor", "Muon"]


class Adafactor(Optimizer):
    """Steps over the root of means of squared gradients, of which a matrix keeps one for each row and column alone.

    Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost", 2018.

    Args:
        learning_rate: a number, a schedule, or a function of no arguments.
        beta_2_decay: the power of the step with which means become longer.
        epsilon_1: is added to squared gradients.
        epsilon_2: the least length of weights by which steps are measured.
        clip_threshold: steps longer than this, on the average of their elements, are scaled down.
        relative_step: whether the learning rate is at most one over the root of the number of steps.
        weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum, ema_overwrite_frequency,
        loss_scale_factor, gradient_accumulation_steps, name: as for `tf.keras.optimizers.Optimizer`.
    Raises:
        ValueError: what `Optimizer` raises.

    >>> import twofold as tf
    >>> v = tf.Variable([[1.0, 2.0]])
    >>> count = tf.keras.optimizers.Adafactor(0.5).apply_gradients([(tf.constant([[1.0, 1.0]]), v)])
    >>> print(v.numpy().round(3))
    [[0.209 1.209]]
    """

    def __init__(self, learning_rate: Any = 0.001, beta_2_decay: float = -0.8, epsilon_1: float = 1e-30,
                 epsilon_2: float = 0.001, clip_threshold: float = 1.0, relative_step: bool = True,
                 weight_decay: float | None = None, clipnorm: float | None = None, clipvalue: float | None = None,
                 global_clipnorm: float | None = None, use_ema: bool = False, ema_momentum: float = 0.99,
                 ema_overwrite_frequency: int | None = None, loss_scale_factor: float | None = None,
                 gradient_accumulation_steps: int | None = None, name: str | None = None, **kwargs: Any):
        super().__init__(learning_rate, weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum,
                         ema_overwrite_frequency, loss_scale_factor, gradient_accumulation_steps, name, **kwargs)
        self.beta_2_decay, self.epsilon_1, self.epsilon_2 = beta_2_decay, epsilon_1, epsilon_2
        self.clip_threshold, self.relative_step = clip_threshold, relative_step

    def build(self, variables: Sequence[tf.Variable]) -> None:
        if self.built:
            return
        variables = listed(variables, "variables")
        super().build(variables)
        rows, columns, wholes = [], [], []
        for variable in variables:
            name, shape = path_of(variable).removesuffix(":0"), list(variable.dims)
            if len(shape) < 2:  # Keras keeps unused numbers here, and stored states have them
                rows.append(self.add_variable((), dtype=tf.int32, name=name))
                columns.append(self.add_variable((), dtype=tf.int32, name=name))
            else:
                rows.append(self.add_variable(shape[:-1], dtype=variable.dtype, name=name))
                columns.append(self.add_variable(shape[:-2] + shape[-1:], dtype=variable.dtype, name=name))
            wholes.append(self.add_variable_from_reference(variable, "velocity"))
        self._r, self._c, self._v = rows, columns, wholes

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        dtype = variable.dtype
        gradient, squares = with_squares(gradient, dtype)
        rate = self._once("relative rate", dtype, lambda: self._relative_rate(learning_rate, dtype))
        kept = self._for_all("kept", dtype, lambda wide: 1.0 - tf.pow(self._step(wide), self.beta_2_decay))
        n = self._get_variable_index(variable)
        square, whole = squares + self.epsilon_1, self._v[n]
        if len(variable.dims) < 2:
            whole.assign(kept * whole + (1 - kept) * square)
        else:
            row, column = self._r[n], self._c[n]
            row.assign(kept * row + (1 - kept) * tf.reduce_mean(square, axis=-1))
            column.assign(kept * column + (1 - kept) * tf.reduce_mean(square, axis=-2))
            part = row / tf.reduce_mean(row, axis=-1, keepdims=True)
            whole.assign(tf.expand_dims(part, -1) * tf.expand_dims(column, -2))
        length = tf.maximum(_root_mean_square(variable), self.epsilon_2)
        step = gradient / tf.sqrt(whole)
        step = step / tf.maximum(_root_mean_square(step) / self.clip_threshold, 1.0)
        variable.assign_sub(length * rate * step)

    def _relative_rate(self, learning_rate: Any, dtype: tf.DType) -> Any:
        return tf.minimum(self._rate(learning_rate, dtype), 1.0 / tf.sqrt(self._step(dtype)))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "beta_2_decay": self.beta_2_decay, "epsilon_1": self.epsilon_1,
                "epsilon_2": self.epsilon_2, "clip_threshold": self.clip_threshold,
                "relative_step": self.relative_step}


def _root_mean_square(x: Any) -> Any:
    return tf.sqrt(tf.reduce_mean(tf.square(x)))


class Muon(Optimizer):
    """Momentum whose matrices are made orthogonal before they become steps (Jordan, 2024; Liu et al., 2025).

    A few steps of Newton and Schulz bring the singular values of a matrix close to 1. Variables that are no matrices,
    embeddings, and those of excluded layers are moved by AdamW.

    Args:
        learning_rate: a number, a schedule, or a function of no arguments.
        adam_beta_1, adam_beta_2, epsilon: of AdamW.
        adam_weight_decay: what part of variables moved by AdamW, times the learning rate, is taken off them.
        weight_decay: the same for matrices.
        clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum, ema_overwrite_frequency, loss_scale_factor,
        gradient_accumulation_steps, name: as for `tf.keras.optimizers.Optimizer`.
        exclude_layers: patterns; variables in whose name one is found are moved by AdamW.
        exclude_embeddings: whether those with "embedding" in their name are.
        muon_a, muon_b, muon_c: the polynomial of the iteration, `a x + b x^3 + c x^5`.
        adam_lr_ratio: the learning rate of AdamW over that of matrices.
        momentum: which part of the momentum stays in each step.
        ns_steps: how often the polynomial is applied.
        nesterov: whether to look ahead along the momentum.
        rms_rate: the typical size of an element of a step, as AdamW's; None for steps as they are.
    Raises:
        ValueError: what `Optimizer` raises.

    >>> import twofold as tf
    >>> v = tf.Variable([[1.0, 0.0], [0.0, 1.0]])
    >>> optimizer = tf.keras.optimizers.Muon(0.1, weight_decay=None, rms_rate=None)
    >>> count = optimizer.apply_gradients([(tf.constant([[9.0, 0.0], [0.0, 9.0]]), v)])
    >>> v.numpy().diagonal() < 0.95
    array([ True,  True])
    """

    _SETTINGS = ("adam_beta_1", "adam_beta_2", "epsilon", "exclude_layers", "muon_a", "muon_b", "muon_c",
                 "adam_lr_ratio", "momentum", "ns_steps", "nesterov", "exclude_embeddings", "adam_weight_decay",
                 "rms_rate")

    def __init__(self, learning_rate: Any = 0.001, adam_beta_1: float = 0.9, adam_beta_2: float = 0.999,
                 adam_weight_decay: float | None = 0.004, epsilon: float = 1e-7, weight_decay: float | None = 0.004,
                 clipnorm: float | None = None, clipvalue: float | None = None, global_clipnorm: float | None = None,
                 use_ema: bool = False, ema_momentum: float = 0.99, ema_overwrite_frequency: int | None = None,
                 loss_scale_factor: float | None = None, gradient_accumulation_steps: int | None = None,
                 name: str | None = None, exclude_layers: Sequence[str] | None = None,
                 exclude_embeddings: bool = True, muon_a: float = 3.4445, muon_b: float = -4.775,
                 muon_c: float = 2.0315, adam_lr_ratio: float = 1, momentum: float = 0.95, ns_steps: int = 5,
                 nesterov: bool = True, rms_rate: float | None = 0.2, **kwargs: Any):
        super().__init__(learning_rate, weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema, ema_momentum,
                         ema_overwrite_frequency, loss_scale_factor, gradient_accumulation_steps, name, **kwargs)
        self.adam_beta_1, self.adam_beta_2, self.epsilon = adam_beta_1, adam_beta_2, epsilon
        self.adam_weight_decay, self.adam_lr_ratio = adam_weight_decay, adam_lr_ratio
        self.muon_a, self.muon_b, self.muon_c, self.ns_steps = muon_a, muon_b, muon_c, ns_steps
        self.momentum, self.nesterov, self.rms_rate = momentum, nesterov, rms_rate
        self.exclude_layers = listed(exclude_layers or (), "exclude_layers")
        self.exclude_embeddings = exclude_embeddings

    def _by_adam(self, variable: tf.Variable) -> bool:
        """Whether a variable is moved by AdamW."""
        path = path_of(variable)
        return (len(variable.dims) != 2 or (self.exclude_embeddings and "embedding" in path.lower())
                or any(re.search(pattern, path) for pattern in self.exclude_layers))

    def build(self, variables: Sequence[tf.Variable]) -> None:
        if self.built:
            return
        variables = listed(variables, "variables")
        super().build(variables)
        momentums, velocities = [], []
        for variable in variables:
            momentums.append(self.add_variable_from_reference(variable, "momentum"))
            velocities.append(self.add_variable_from_reference(variable, "velocity") if self._by_adam(variable)
                              else None)
        self.momentums, self.adam_velocities = momentums, velocities

    def _decay_of(self, variable: tf.Variable) -> float | None:
        if not self._use_weight_decay(variable):
            return None
        return self.adam_weight_decay if self._by_adam(variable) else self.weight_decay

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        gradient, squares = with_squares(gradient, variable.dtype)
        n = self._get_variable_index(variable)
        m, v = self.momentums[n], self.adam_velocities[n]
        rate = self._rate(learning_rate, variable.dtype)
        if v is not None:
            self._adam_step(gradient, squares, variable, rate, m, v)
            return
        m.assign(m * self.momentum + gradient)
        step = rate * self._orthogonal(gradient + m * self.momentum if self.nesterov else m)
        if self.rms_rate is not None:
            step = step * (math.sqrt(max(variable.dims)) * self.rms_rate)
        variable.assign_sub(step)

    def _orthogonal(self, x: Any) -> Any:
        """A matrix with the singular vectors of `x`, and singular values close to 1."""
        tall = x.shape[0] > x.shape[1]
        if tall:
            x = tf.transpose(x)
        x = x / (tf.sqrt(tf.reduce_sum(tf.square(x))) + 1e-7)
        for _ in range(self.ns_steps):
            square = tf.matmul(x, x, transpose_b=True)
            x = self.muon_a * x + tf.matmul(self.muon_b * square + tf.matmul(self.muon_c * square, square), x)
        return tf.transpose(x) if tall else x

    def _adam_step(self, gradient: Any, squares: Any, variable: Any, rate: Any, m: Any, v: Any) -> None:
        dtype = variable.dtype
        m.assign_add((gradient - m) * (1 - self.adam_beta_1))
        v.assign_add((squares - v) * (1 - self.adam_beta_2))
        unbiased = self._for_all("unbiased", dtype, self._unbiased)
        variable.assign_sub(m * (rate * self.adam_lr_ratio * unbiased) / (tf.sqrt(v) + self.epsilon))

    def _unbiased(self, dtype: tf.DType) -> Any:
        step = self._step(dtype)
        return (tf.sqrt(1 - tf.pow(tf.constant(self.adam_beta_2, dtype), step))
                / (1 - tf.pow(tf.constant(self.adam_beta_1, dtype), step)))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **{setting: getattr(self, setting) for setting in self._SETTINGS}}
