"""Learning rates that change with the number of updates (`tf.keras.optimizers.schedules`).

A schedule is called with the number of updates so far, a scalar of any integer or float dtype, and gives a scalar of
the dtype of its first learning rate (float32 for Python numbers). All are made of ops, so they compile with the update.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import twofold as tf
from twofold._front.api import public
from twofold._front.namespace import publish

from .._identifiers import Configured
from ..scalars import number
from ..serialization import deserialize_keras_object, serialize_keras_object

__all__ = ["CosineDecay", "CosineDecayRestarts", "ExponentialDecay", "InverseTimeDecay", "LearningRateSchedule",
           "PiecewiseConstantDecay", "PolynomialDecay", "deserialize", "serialize"]


class LearningRateSchedule(Configured):
    """The base of schedules; a new one overrides `__call__` and `get_config`.

    >>> import twofold as tf
    >>> class Halving(tf.keras.optimizers.schedules.LearningRateSchedule):
    ...     def __call__(self, step):
    ...         return tf.pow(0.5, tf.cast(step, tf.float32))
    >>> tf.keras.optimizers.SGD(Halving()).learning_rate.numpy()
    np.float32(1.0)
    """

    @abstractmethod
    def __call__(self, step: Any) -> Any:
        """The learning rate after `step` updates.

        Args:
            step: a scalar.
        Returns:
            A scalar tensor.
        """
        raise NotImplementedError(f"Learning rate schedule '{type(self).__name__}' must override "
                                  "`__call__(self, step)`.")

    @abstractmethod
    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal schedule."""
        raise NotImplementedError(f"Learning rate schedule '{type(self).__name__}' must override `get_config()` in "
                                  "order to be serializable.")


class _Decay(LearningRateSchedule):
    """A schedule with a first learning rate, whose arguments are its attributes."""

    _ARGUMENTS: tuple[str, ...] = ()

    def __init__(self, initial_learning_rate: Any, decay_steps: Any, name: str, steps_name: str = "decay_steps"):
        if decay_steps <= 0:
            raise ValueError(f"Argument `{steps_name}` must be > 0; got {decay_steps}.")
        self.initial_learning_rate = initial_learning_rate
        self.name = name

    def _first(self, step: Any) -> tuple[Any, Any]:
        """The first learning rate, and the step in its dtype."""
        first = tf.convert_to_tensor(self.initial_learning_rate)
        return first, tf.cast(step, first.dtype)

    def get_config(self) -> dict[str, Any]:
        return {"initial_learning_rate": self.initial_learning_rate,
                **{name: getattr(self, name) for name in self._ARGUMENTS}, "name": self.name}


class ExponentialDecay(_Decay):
    """`initial_learning_rate * decay_rate ** (step / decay_steps)`.

    Args:
        initial_learning_rate: the learning rate at first.
        decay_steps: in how many steps it is multiplied by `decay_rate`; positive.
        decay_rate: the factor.
        staircase: whether the exponent is rounded down, so that the rate falls in steps.
        name: has no effect.
    Raises:
        ValueError: `decay_steps` is not positive.

    >>> import twofold as tf
    >>> tf.keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)(20).numpy()
    np.float32(0.025)
    """

    _ARGUMENTS = ("decay_steps", "decay_rate", "staircase")

    def __init__(self, initial_learning_rate: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False,
                 name: str = "ExponentialDecay"):
        super().__init__(initial_learning_rate, decay_steps, name)
        self.decay_steps, self.decay_rate, self.staircase = decay_steps, decay_rate, staircase

    def __call__(self, step: Any) -> Any:
        first, step = self._first(step)
        part = step / number(self.decay_steps, step.dtype)
        return first * tf.pow(number(self.decay_rate, step.dtype), tf.floor(part) if self.staircase else part)


class InverseTimeDecay(_Decay):
    """`initial_learning_rate / (1 + decay_rate * step / decay_steps)`.

    Args:
        initial_learning_rate: the learning rate at first.
        decay_steps: how many steps count as one; positive.
        decay_rate: how fast it falls.
        staircase: whether `step / decay_steps` is rounded down, so that the rate falls in steps.
        name: has no effect.
    Raises:
        ValueError: `decay_steps` is not positive.

    >>> import twofold as tf
    >>> tf.keras.optimizers.schedules.InverseTimeDecay(0.5, 1, 0.5)(2).numpy()
    np.float32(0.25)
    """

    _ARGUMENTS = ("decay_steps", "decay_rate", "staircase")

    def __init__(self, initial_learning_rate: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False,
                 name: str = "InverseTimeDecay"):
        super().__init__(initial_learning_rate, decay_steps, name)
        self.decay_steps, self.decay_rate, self.staircase = decay_steps, decay_rate, staircase

    def __call__(self, step: Any) -> Any:
        first, step = self._first(step)
        part = step / number(self.decay_steps, step.dtype)
        return first / (1 + number(self.decay_rate, step.dtype) * (tf.floor(part) if self.staircase else part))


class PolynomialDecay(_Decay):
    """From `initial_learning_rate` to `end_learning_rate` as `(1 - step / decay_steps) ** power`, and there it stays.

    Args:
        initial_learning_rate: the learning rate at first.
        decay_steps: how many steps the way takes; positive.
        end_learning_rate: the learning rate at the end.
        power: of the polynomial; 1 is a straight line.
        cycle: whether the way begins anew each time it ends, from where a longer way would be.
        name: has no effect.
    Raises:
        ValueError: `decay_steps` is not positive.

    >>> import twofold as tf
    >>> tf.keras.optimizers.schedules.PolynomialDecay(1.0, 10, end_learning_rate=0.0)(5).numpy()
    np.float32(0.5)
    """

    _ARGUMENTS = ("decay_steps", "end_learning_rate", "power", "cycle")

    def __init__(self, initial_learning_rate: Any, decay_steps: Any, end_learning_rate: Any = 0.0001,
                 power: Any = 1.0, cycle: bool = False, name: str = "PolynomialDecay"):
        super().__init__(initial_learning_rate, decay_steps, name)
        self.decay_steps, self.end_learning_rate, self.power, self.cycle = decay_steps, end_learning_rate, power, cycle

    def __call__(self, step: Any) -> Any:
        first, step = self._first(step)
        steps, end = number(self.decay_steps, step.dtype), number(self.end_learning_rate, step.dtype)
        if self.cycle:
            steps = steps * tf.where(tf.equal(step, 0), tf.ones_like(step), tf.math.ceil(step / steps))
        else:
            step = tf.minimum(step, steps)
        return (first - end) * tf.pow(1 - step / steps, number(self.power, step.dtype)) + end


class PiecewiseConstantDecay(LearningRateSchedule):
    """`values[i]` up to and with step `boundaries[i]`, and `values[-1]` after the last.

    Args:
        boundaries: steps, increasing.
        values: learning rates, one more than boundaries.
        name: has no effect.
    Raises:
        ValueError: there are not as many as that, or no boundaries.

    >>> import twofold as tf
    >>> schedule = tf.keras.optimizers.schedules.PiecewiseConstantDecay([2, 4], [1.0, 0.5, 0.25])
    >>> [float(schedule(step)) for step in (0, 2, 3, 5)]
    [1.0, 1.0, 0.5, 0.25]
    """

    def __init__(self, boundaries: Sequence[Any], values: Sequence[Any], name: str = "PiecewiseConstant"):
        if len(boundaries) != len(values) - 1 or not boundaries:
            raise ValueError("There must be one boundary or more, and one value more than boundaries; got "
                             f"boundaries={boundaries} of length {len(boundaries)} and values={values} of length "
                             f"{len(values)}.")
        self.boundaries, self.values, self.name = boundaries, values, name

    def __call__(self, step: Any) -> Any:
        step = tf.convert_to_tensor(step)
        rate = tf.convert_to_tensor(self.values[-1])
        for boundary, value in zip(reversed(self.boundaries), reversed(self.values[:-1]), strict=True):
            rate = tf.where(step <= number(boundary, step.dtype), number(value, rate.dtype), rate)
        return rate

    def get_config(self) -> dict[str, Any]:
        return {"boundaries": self.boundaries, "values": self.values, "name": self.name}


class CosineDecay(_Decay):
    """Half a cosine from the learning rate down to `alpha` times it (Loshchilov and Hutter, 2017), after a warm-up.

    Args:
        initial_learning_rate: the learning rate at first.
        decay_steps: how many steps the way down takes; positive.
        alpha: what part of the learning rate is left at the end.
        name: has no effect.
        warmup_target: the learning rate at the end of the warm-up, from which the way down begins; None for no
            warm-up.
        warmup_steps: over how many steps the rate first rises from `initial_learning_rate` to `warmup_target`.
    Raises:
        ValueError: `decay_steps` is not positive.

    >>> import twofold as tf
    >>> schedule = tf.keras.optimizers.schedules.CosineDecay(0.0, 10, warmup_target=1.0, warmup_steps=4)
    >>> [round(float(schedule(step)), 3) for step in (0, 2, 4, 9, 14)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """

    _ARGUMENTS = ("decay_steps", "alpha", "warmup_target", "warmup_steps")

    def __init__(self, initial_learning_rate: Any, decay_steps: Any, alpha: float = 0.0, name: str = "CosineDecay",
                 warmup_target: Any = None, warmup_steps: Any = 0):
        super().__init__(initial_learning_rate, decay_steps, name)
        self.decay_steps, self.alpha = decay_steps, alpha
        self.warmup_target, self.warmup_steps = warmup_target, warmup_steps

    def __call__(self, step: Any) -> Any:
        first, step = self._first(step)
        steps = number(self.decay_steps, step.dtype)
        if self.warmup_target is None:
            return self._down(tf.minimum(step, steps), steps, first)
        target, warmup = number(self.warmup_target, step.dtype), number(self.warmup_steps, step.dtype)
        step = tf.minimum(step, steps + warmup)
        down = self._down(step - warmup, steps, target)
        if not self.warmup_steps:
            return down
        return tf.where(step < warmup, (target - first) * (step / warmup) + first, down)

    def _down(self, step: Any, steps: Any, start: Any) -> Any:
        cosine = 0.5 * (1.0 + tf.cos(number(math.pi, step.dtype) * (step / steps)))
        return start * ((1 - self.alpha) * cosine + self.alpha)


class CosineDecayRestarts(_Decay):
    """Half cosines one after another, each longer and lower than the one before (Loshchilov and Hutter, 2017).

    Args:
        initial_learning_rate: the learning rate at first.
        first_decay_steps: how many steps the first takes; positive.
        t_mul: how much longer each is than the one before.
        m_mul: how much higher each begins than the one before.
        alpha: what part of the first learning rate is left at the end of each.
        name: has no effect.
    Raises:
        ValueError: `first_decay_steps` is not positive.

    >>> import twofold as tf
    >>> schedule = tf.keras.optimizers.schedules.CosineDecayRestarts(1.0, 10, t_mul=1.0, m_mul=0.5)
    >>> [round(float(schedule(step)), 3) for step in (0, 5, 10, 15)]
    [1.0, 0.5, 0.5, 0.25]
    """

    _ARGUMENTS = ("first_decay_steps", "t_mul", "m_mul", "alpha")

    def __init__(self, initial_learning_rate: Any, first_decay_steps: Any, t_mul: Any = 2.0, m_mul: Any = 1.0,
                 alpha: float = 0.0, name: str = "SGDRDecay"):
        super().__init__(initial_learning_rate, first_decay_steps, name, "first_decay_steps")
        self.first_decay_steps, self.t_mul, self.m_mul, self.alpha = first_decay_steps, t_mul, m_mul, alpha

    def __call__(self, step: Any) -> Any:
        first, step = self._first(step)
        restarts, part = self._place(step / number(self.first_decay_steps, step.dtype))
        height = tf.pow(number(self.m_mul, step.dtype), restarts)
        cosine = 0.5 * height * (1.0 + tf.cos(number(math.pi, step.dtype) * part))
        return first * ((1 - self.alpha) * cosine + self.alpha)

    def _place(self, done: Any) -> tuple[Any, Any]:
        """How many restarts there were when `done` first lengths have passed, and which part of the next has."""
        if self.t_mul == 1.0:
            restarts = tf.floor(done)
            return restarts, done - restarts
        times = number(self.t_mul, done.dtype)
        restarts = tf.floor(tf.math.log(1.0 - done * (1.0 - times)) / tf.math.log(times))
        before = (1.0 - tf.pow(times, restarts)) / (1.0 - times)
        return restarts, (done - before) / tf.pow(times, restarts)


@public
def serialize(learning_rate_schedule: LearningRateSchedule) -> dict[str, Any]:
    """A schedule as values that JSON can hold.

    >>> import twofold as tf
    >>> schedules = tf.keras.optimizers.schedules
    >>> schedules.serialize(schedules.ExponentialDecay(0.1, 10, 0.5))["class_name"]
    'ExponentialDecay'
    """
    return serialize_keras_object(learning_rate_schedule)


@public
def deserialize(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The schedule of a config that `serialize` gave.

    Args:
        config: the config.
        custom_objects: names in it that are the user's own, with what they stand for.
    Raises:
        ValueError: a name is not known.

    >>> import twofold as tf
    >>> schedules = tf.keras.optimizers.schedules
    >>> schedules.deserialize(schedules.serialize(schedules.ExponentialDecay(0.1, 10, 0.5))).decay_rate
    0.5
    """
    known = {name: globals()[name] for name in __all__ if name[0].isupper()}
    return deserialize_keras_object(config, custom_objects=custom_objects, module_objects=known)


publish(__name__)
