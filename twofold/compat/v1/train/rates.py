"""Learning rates that follow from the number of steps: tensors of a graph, functions where ops run at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import twofold as tf
from twofold._front.api import listed, public

from ..graph import current_graph

__all__ = ["cosine_decay", "cosine_decay_restarts", "exponential_decay", "inverse_time_decay", "linear_cosine_decay",
           "natural_exp_decay", "piecewise_constant", "piecewise_constant_decay", "polynomial_decay"]


def _given(rate: Callable[[], Any]) -> Any:
    """A rate as optimizers take it: its value in a graph, the function itself where ops run at once."""
    return rate if current_graph() is None else rate()


def _of(schedule: Callable[[Any], Any], step: Any) -> Any:
    return _given(lambda: schedule(step))


@public
def exponential_decay(learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False,
                      name: str | None = None) -> Any:
    """`learning_rate * decay_rate ** (global_step / decay_steps)`.

    Args:
        learning_rate, global_step, decay_steps, decay_rate: numbers, tensors or variables.
        staircase: whether the quotient is rounded down.
        name: accepted, without effect.

    >>> import twofold as tf
    >>> rate = tf.compat.v1.train.exponential_decay(0.5, 20, 10, 0.5)
    >>> float(rate())  # a function, because ops run at once
    0.125
    """
    return _of(tf.keras.optimizers.schedules.ExponentialDecay(learning_rate, decay_steps, decay_rate, staircase),
               global_step)


@public
def piecewise_constant(x: Any, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None) -> Any:
    """The value of the piece that `x` is in; a boundary belongs to the piece before it.

    Args:
        x: a number, tensor or variable.
        boundaries: increasing numbers.
        values: one more than boundaries.
        name: accepted, without effect.
    Raises:
        ValueError: there is another number of values.
    """
    return _of(tf.keras.optimizers.schedules.PiecewiseConstantDecay(
        listed(boundaries, "boundaries"), listed(values, "values")), x)


piecewise_constant_decay = piecewise_constant


@public
def polynomial_decay(learning_rate: Any, global_step: Any, decay_steps: Any, end_learning_rate: Any = 0.0001,
                     power: float = 1.0, cycle: bool = False, name: str | None = None) -> Any:
    """From `learning_rate` to `end_learning_rate` in `decay_steps` along `(1 - global_step / decay_steps) ** power`.

    Args:
        learning_rate, global_step, decay_steps, end_learning_rate, power: numbers, tensors or variables.
        cycle: whether it goes on, over a multiple of `decay_steps`, after the end.
        name: accepted, without effect.
    """
    return _of(tf.keras.optimizers.schedules.PolynomialDecay(learning_rate, decay_steps, end_learning_rate, power,
                                                             cycle), global_step)


@public
def inverse_time_decay(learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any,
                       staircase: bool = False, name: str | None = None) -> Any:
    """`learning_rate / (1 + decay_rate * global_step / decay_steps)`; see `exponential_decay`. `name` has no effect."""
    return _of(tf.keras.optimizers.schedules.InverseTimeDecay(learning_rate, decay_steps, decay_rate, staircase),
               global_step)


@public
def natural_exp_decay(learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any,
                      staircase: bool = False, name: str | None = None) -> Any:
    """`learning_rate * exp(-decay_rate * global_step / decay_steps)`; see `exponential_decay`. `name` has no effect."""
    def rate() -> Any:
        start = tf.convert_to_tensor(learning_rate)
        part = tf.cast(global_step, start.dtype) / tf.cast(decay_steps, start.dtype)
        part = tf.floor(part) if staircase else part
        return start * tf.exp(-tf.cast(decay_rate, start.dtype) * part)
    return _given(rate)


@public
def cosine_decay(learning_rate: Any, global_step: Any, decay_steps: Any, alpha: float = 0.0,
                 name: str | None = None) -> Any:
    """From `learning_rate` to `alpha` times it in `decay_steps`, along half a cosine.

    Args:
        learning_rate, global_step, decay_steps: numbers, tensors or variables.
        alpha: what part stays.
        name: accepted, without effect.
    """
    return _of(tf.keras.optimizers.schedules.CosineDecay(learning_rate, decay_steps, alpha), global_step)


@public
def cosine_decay_restarts(learning_rate: Any, global_step: Any, first_decay_steps: Any, t_mul: float = 2.0,
                          m_mul: float = 1.0, alpha: float = 0.0, name: str | None = None) -> Any:
    """Half cosines one after another, each `t_mul` times as long and `m_mul` times as high as the one before.

    Args:
        learning_rate, global_step, first_decay_steps: numbers, tensors or variables.
        t_mul, m_mul: factors from one to the next.
        alpha: what part of the rate stays at an end.
        name: accepted, without effect.
    """
    return _of(tf.keras.optimizers.schedules.CosineDecayRestarts(learning_rate, first_decay_steps, t_mul, m_mul,
                                                                 alpha), global_step)


@public
def linear_cosine_decay(learning_rate: Any, global_step: Any, decay_steps: Any, num_periods: float = 0.5,
                        alpha: float = 0.0, beta: float = 0.001, name: str | None = None) -> Any:
    """A line to 0 in `decay_steps` plus `alpha`, times a cosine of `num_periods` periods, plus `beta`.

    Args:
        learning_rate, global_step, decay_steps: numbers, tensors or variables.
        num_periods, alpha, beta: numbers.
        name: accepted, without effect.
    """
    def rate() -> Any:
        start = tf.convert_to_tensor(learning_rate)
        whole = tf.cast(decay_steps, start.dtype)
        step = tf.minimum(tf.cast(global_step, start.dtype), whole)
        line = (whole - step) / whole
        wave = 0.5 * (1.0 + tf.cos(2.0 * math.pi * num_periods * step / whole))
        return start * ((alpha + line) * wave + beta)
    return _given(rate)
