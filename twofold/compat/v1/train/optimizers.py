"""TensorFlow 1's optimizers, with its formulas, defaults and starting values.

Sources: the descriptions of `tf.compat.v1.train.*Optimizer`, and the papers that they name: Duchi et al. 2011 (Adagrad,
with Duchi & Singer 2009 for the proximal ones), Zeiler 2012 (Adadelta), Tieleman & Hinton 2012 (RMSProp), Kingma & Ba
2015 (Adam), McMahan et al. 2013 (FTRL).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.api import public_class

from .optimizer import Optimizer

__all__ = ["AdadeltaOptimizer", "AdagradOptimizer", "AdamOptimizer", "FtrlOptimizer", "GradientDescentOptimizer",
           "MomentumOptimizer", "ProximalAdagradOptimizer", "ProximalGradientDescentOptimizer", "RMSPropOptimizer"]

Number = Callable[[Any], Any]


def _filled(value: float) -> Callable[[Any], Any]:
    return lambda variable: tf.fill(variable.shape.as_list(), tf.cast(value, variable.dtype))


@public_class
class GradientDescentOptimizer(Optimizer):
    """Plain gradient descent.

    Args:
        learning_rate: a number, a tensor, or a function of no arguments that gives one.
        use_locking: accepted, without effect.
        name: its name.

    >>> import twofold as tf
    >>> v = tf.Variable(1.0)
    >>> tf.compat.v1.train.GradientDescentOptimizer(0.1).apply_gradients([(tf.constant(2.0), v)])
    >>> round(float(v), 3)
    0.8
    """

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent"):
        super().__init__(use_locking, name)
        self._rate = learning_rate

    def _new_values(self, gradient: Any, value: Any, slots: dict[str, Any], shared: dict[str, Any],
                    number: Number) -> tuple[Any, dict[str, Any]]:
        return value - number(self._rate) * gradient, {}


@public_class
class MomentumOptimizer(Optimizer):
    """Gradient descent along a sum of gradients, of which earlier ones count less and less.

    Args:
        learning_rate, momentum: numbers, tensors or functions of no arguments.
        use_nesterov: whether the sum counts from where it leads to.
        use_locking: accepted, without effect.
        name: its name.
    """

    def __init__(self, learning_rate: Any, momentum: Any, use_locking: bool = False, name: str = "Momentum",
                 use_nesterov: bool = False):
        super().__init__(use_locking, name)
        self._rate, self._momentum, self._nesterov = learning_rate, momentum, use_nesterov

    def _slots(self) -> dict[str, Callable[[Any], Any]]:
        return {"momentum": _filled(0.0)}

    def _new_values(self, gradient: Any, value: Any, slots: dict[str, Any], shared: dict[str, Any],
                    number: Number) -> tuple[Any, dict[str, Any]]:
        rate, momentum = number(self._rate), number(self._momentum)
        total = slots["momentum"] * momentum + gradient
        step = gradient * rate + total * momentum * rate if self._nesterov else total * rate
        return value - step, {"momentum": total}


@public_class
class AdamOptimizer(Optimizer):
    """Adam.

    Args:
        learning_rate, beta1, beta2, epsilon: numbers, tensors or functions of no arguments.
        use_locking: accepted, without effect.
        name: its name.

    >>> import twofold as tf
    >>> v = tf.Variable(1.0)
    >>> tf.compat.v1.train.AdamOptimizer().apply_gradients([(tf.constant(2.0), v)])
    >>> round(float(v), 4)
    0.999
    """

    def __init__(self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-8,
                 use_locking: bool = False, name: str = "Adam"):
        super().__init__(use_locking, name)
        self._rate, self._beta1, self._beta2, self._epsilon = learning_rate, beta1, beta2, epsilon

    def _slots(self) -> dict[str, Callable[[Any], Any]]:
        return {"m": _filled(0.0), "v": _filled(0.0)}

    def _shared(self) -> dict[str, Callable[[], Any]]:
        return {"beta1_power": lambda: tf.convert_to_tensor(_now(self._beta1), tf.float32),
                "beta2_power": lambda: tf.convert_to_tensor(_now(self._beta2), tf.float32)}

    def _new_values(self, gradient: Any, value: Any, slots: dict[str, Any], shared: dict[str, Any],
                    number: Number) -> tuple[Any, dict[str, Any]]:
        power1, power2 = number(shared["beta1_power"]), number(shared["beta2_power"])
        rate = number(self._rate) * tf.sqrt(1 - power2) / (1 - power1)
        m = slots["m"] + (gradient - slots["m"]) * (1 - number(self._beta1))
        v = slots["v"] + (tf.square(gradient) - slots["v"]) * (1 - number(self._beta2))
        return value - (m * rate) / (tf.sqrt(v) + number(self._epsilon)), {"m": m, "v": v}

    def _new_shared(self, shared: dict[str, Any]) -> dict[str, Any]:
        betas = {"beta1_power": self._beta1, "beta2_power": self._beta2}
        return {key: shared[key] * tf.cast(_now(beta), shared[key].dtype) for key, beta in betas.items()}


def _now(value: Any) -> Any:
    return value() if callable(value) and not tf.is_tensor(value) else value


@public_class
class AdagradOptimizer(Optimizer):
    """Adagrad: each element's rate falls with the squares of its gradients.

    Args:
        learning_rate: a number, a tensor, or a function of no arguments.
        initial_accumulator_value: what the sums of squares start from.
        use_locking: accepted, without effect.
        name: its name.
    Raises:
        ValueError: the sums do not start from a positive number.
    """

    def __init__(self, learning_rate: Any, initial_accumulator_value: float = 0.1, use_locking: bool = False,
                 name: str = "Adagrad"):
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
        super().__init__(use_locking, name)
        self._rate, self._start = learning_rate, initial_accumulator_value

    def _slots(self) -> dict[str, Callable[[Any], Any]]:
        return {"accumulator": _filled(self._start)}

    def _new_values(self, gradient: Any, value: Any, slots: dict[str, Any], shared: dict[str, Any],
                    number: Number) -> tuple[Any, dict[str, Any]]:
        total = slots["accumulator"] + tf.square(gradient)
        return value - gradient * number(self._rate) * tf.math.rsqrt(total), {"accumulator": total}


@public_class
class AdadeltaOptimizer(Optimizer):
    """Adadelta: steps are as large as earlier ones were, in proportion to the gradients.

    Args:
        learning_rate, rho, epsilon: numbers, tensors or functions of no arguments.
        use_locking: accepted, without effect.
        name: its name.
    """

    def __init__(self, learning_rate: Any = 0.001, rho: Any = 0.95, epsilon: Any = 1e-8, use_locking: bool = False,
                 name: str = "Adadelta"):
        super().__init__(use_locking, name)
        self._rate, self._rho, self._epsilon = learning_rate, rho, epsilon

    def _slots(self) -> dict[str, Callable[[Any], Any]]:
        return {"accum": _filled(0.0), "accum_update": _filled(0.0)}

    def _new_values(self, gradient: Any, value: Any, slots: dict[str, Any], shared: dict[str, Any],
                    number: Number) -> tuple[Any, dict[str, Any]]:
        rho, epsilon = number(self._rho), number(self._epsilon)
        total = slots["accum"] * rho + tf.square(gradient) * (1 - rho)
        step = tf.sqrt(slots["accum_update"] + epsilon) * tf.math.rsqrt(total + epsilon) * gradient
        steps = slots["accum_update"] * rho + tf.square(step) * (1 - rho)
        return value - step * number(self._rate), {"accum": total, "accum_update": steps}


@public_class
class RMSPropOptimizer(Optimizer):
    """RMSProp: gradients over the root of a moving mean of their squares.

    Args:
        learning_rate, decay, momentum, epsilon: numbers, tensors or functions of no arguments.
        centered: whether the square of the gradients' mean is taken off the mean of their squares.
        use_locking: accepted, without effect.
        name: its name.
    """

    def __init__(self, learning_rate: Any, decay: Any = 0.9, momentum: Any = 0.0, epsilon: Any = 1e-10,
                 use_locking: bool = False, centered: bool = False, name: str = "RMSProp"):
        super().__init__(use_locking, name)
        self._rate, self._decay, self._momentum, self._epsilon = learning_rate, decay, momentum, epsilon
        self._centered = centered

    def _slots(self) -> dict[str, Callable[[Any], Any]]:
        means = {"mg": _filled(0.0)} if self._centered else {}
        return {"rms": _filled(1.0), **means, "momentum": _filled(0.0)}

    def _new_values(self, gradient: Any, value: Any, slots: dict[str, Any], shared: dict[str, Any],
                    number: Number) -> tuple[Any, dict[str, Any]]:
        rest = 1 - number(self._decay)
        new = {"rms": slots["rms"] + (tf.square(gradient) - slots["rms"]) * rest}
        below = new["rms"] + number(self._epsilon)
        if self._centered:
            new["mg"] = slots["mg"] + (gradient - slots["mg"]) * rest
            below = new["rms"] - tf.square(new["mg"]) + number(self._epsilon)
        new["momentum"] = slots["momentum"] * number(self._momentum) + gradient * number(self._rate) / tf.sqrt(below)
        return value - new["momentum"], new


@public_class
class FtrlOptimizer(Optimizer):
    """FTRL-proximal, which makes weights exactly 0 where the L1 penalty says so.

    Args:
        learning_rate: a number, a tensor, or a function of no arguments.
        learning_rate_power: what power of the sum of squares the rate falls with; at most 0.
        initial_accumulator_value: what the sums of squares start from.
        l1_regularization_strength, l2_regularization_strength: penalties, at least 0.
        l2_shrinkage_regularization_strength: an L2 penalty on the step rather than on the weights.
        beta: is added to the root of the sum of squares.
        accumulator_name, linear_name, use_locking: accepted, without effect.
        name: its name.
    Raises:
        ValueError: a number is out of its range.
    """

    def __init__(self, learning_rate: Any, learning_rate_power: float = -0.5, initial_accumulator_value: float = 0.1,
                 l1_regularization_strength: float = 0.0, l2_regularization_strength: float = 0.0,
                 use_locking: bool = False, name: str = "Ftrl", accumulator_name: str | None = None,
                 linear_name: str | None = None, l2_shrinkage_regularization_strength: float = 0.0,
                 beta: float | None = None):
        for what, given in (("initial_accumulator_value", initial_accumulator_value),
                            ("l1_regularization_strength", l1_regularization_strength),
                            ("l2_regularization_strength", l2_regularization_strength),
                            ("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength)):
            if given < 0.0:
                raise ValueError(f"{what} {given} needs to be positive or zero")
        if learning_rate_power > 0.0:
            raise ValueError(f"learning_rate_power {learning_rate_power} needs to be negative or zero")
        super().__init__(use_locking, name)
        self._rate, self._power, self._start = learning_rate, learning_rate_power, initial_accumulator_value
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength
        self._shrinkage, self._beta = l2_shrinkage_regularization_strength, beta or 0.0

    def _slots(self) -> dict[str, Callable[[Any], Any]]:
        return {"accum": _filled(self._start), "linear": _filled(0.0)}

    def _new_values(self, gradient: Any, value: Any, slots: dict[str, Any], shared: dict[str, Any],
                    number: Number) -> tuple[Any, dict[str, Any]]:
        rate, l1 = number(self._rate), number(self._l1)
        l2 = number(self._l2) + number(self._beta) / (2 * rate)
        total = slots["accum"] + tf.square(gradient)
        root, before = tf.pow(total, number(-self._power)), tf.pow(slots["accum"], number(-self._power))
        pull = gradient + 2 * number(self._shrinkage) * value if self._shrinkage else gradient
        linear = slots["linear"] + pull - (root - before) / rate * value
        quadratic = root / rate + 2 * l2
        new = tf.where(tf.abs(linear) > l1, (tf.sign(linear) * l1 - linear) / quadratic, tf.zeros_like(value))
        return new, {"accum": total, "linear": linear}


def _proximal(value: Any, rate: Any, l1: Any, l2: Any) -> Any:
    """A value after a step, moved towards 0 as far as the penalties want."""
    return tf.sign(value) * tf.maximum(tf.abs(value) - rate * l1, 0) / (1 + l2 * rate)


@public_class
class ProximalGradientDescentOptimizer(Optimizer):
    """Gradient descent, after which penalties pull weights towards 0 and to it.

    Args:
        learning_rate: a number, a tensor, or a function of no arguments.
        l1_regularization_strength, l2_regularization_strength: the penalties.
        use_locking: accepted, without effect.
        name: its name.
    """

    def __init__(self, learning_rate: Any, l1_regularization_strength: float = 0.0,
                 l2_regularization_strength: float = 0.0, use_locking: bool = False,
                 name: str = "ProximalGradientDescent"):
        super().__init__(use_locking, name)
        self._rate, self._l1, self._l2 = learning_rate, l1_regularization_strength, l2_regularization_strength

    def _new_values(self, gradient: Any, value: Any, slots: dict[str, Any], shared: dict[str, Any],
                    number: Number) -> tuple[Any, dict[str, Any]]:
        rate = number(self._rate)
        return _proximal(value - rate * gradient, rate, number(self._l1), number(self._l2)), {}


@public_class
class ProximalAdagradOptimizer(Optimizer):
    """Adagrad, after which penalties pull weights towards 0 and to it.

    Args:
        learning_rate: a number, a tensor, or a function of no arguments.
        initial_accumulator_value: what the sums of squares start from.
        l1_regularization_strength, l2_regularization_strength: the penalties.
        use_locking: accepted, without effect.
        name: its name.
    Raises:
        ValueError: the sums do not start from a positive number.
    """

    def __init__(self, learning_rate: Any, initial_accumulator_value: float = 0.1,
                 l1_regularization_strength: float = 0.0, l2_regularization_strength: float = 0.0,
                 use_locking: bool = False, name: str = "ProximalAdagrad"):
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
        super().__init__(use_locking, name)
        self._rate, self._start = learning_rate, initial_accumulator_value
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength

    def _slots(self) -> dict[str, Callable[[Any], Any]]:
        return {"accumulator": _filled(self._start)}

    def _new_values(self, gradient: Any, value: Any, slots: dict[str, Any], shared: dict[str, Any],
                    number: Number) -> tuple[Any, dict[str, Any]]:
        total = slots["accumulator"] + tf.square(gradient)
        rate = number(self._rate) * tf.math.rsqrt(total)
        return _proximal(value - rate * gradient, rate, number(self._l1), number(self._l2)), {"accumulator": total}
