"""`tf.compat.v1.train`: the optimizers of TensorFlow 1, and the global step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import twofold as tf
from twofold._api import public, public_class
from twofold.train import Checkpoint, CheckpointManager, latest_checkpoint, list_variables, load_checkpoint

from . import building
from .graph import current_graph

__all__ = [
    "AdagradOptimizer", "AdamOptimizer", "Checkpoint", "CheckpointManager", "GradientDescentOptimizer",
    "MomentumOptimizer", "Optimizer", "RMSPropOptimizer", "create_global_step", "exponential_decay", "get_global_step",
    "get_or_create_global_step", "global_step", "latest_checkpoint", "list_variables", "load_checkpoint",
]

_eager_step: list[Any] = []


@public
def get_global_step(graph: Any = None) -> Any:
    """The variable that counts steps, or None where none was made."""
    found = graph or current_graph()
    steps = _eager_step if found is None else found.collections.get(building.GraphKeys.GLOBAL_STEP, [])
    return steps[0] if steps else None


@public
def create_global_step(graph: Any = None) -> Any:
    """Make the variable that counts steps.

    Raises:
        ValueError: there is one.
    """
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    made = tf.Variable(0, dtype=tf.int64, trainable=False, name="global_step")
    found = graph or current_graph()
    (_eager_step if found is None else found.collections.setdefault(building.GraphKeys.GLOBAL_STEP, [])).append(made)
    return made


@public
def get_or_create_global_step(graph: Any = None) -> Any:
    """The variable that counts steps: one of the process, or of the graph.

    >>> import twofold as tf
    >>> step = tf.compat.v1.train.get_or_create_global_step()
    >>> step is tf.compat.v1.train.get_or_create_global_step(), step.dtype
    (True, tf.int64)
    """
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


@public
def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The number of steps that a variable says."""
    return int(global_step_tensor if current_graph() is None else sess.run(global_step_tensor))


@public_class
class Optimizer(tf.Module):
    """The base of TensorFlow 1's optimizers, which call Keras's for their formulas.

    Args:
        use_locking: accepted, without effect.
        name: its name.
    """

    def __init__(self, use_locking: bool = False, name: str = "Optimizer", keras: Any = None):
        super().__init__(name=name)
        self._keras = keras

    def get_name(self) -> str:
        """The name."""
        return self.name

    def variables(self) -> list[Any]:  # type: ignore[override]
        """The variables that it keeps."""
        return list(self._keras.variables)

    def compute_gradients(self, loss: Any, var_list: Any = None, grad_loss: Any = None, **ignored: Any) -> list[Any]:
        """The gradients of a loss, as pairs of a gradient and a variable.

        Args:
            loss: a tensor of the current graph; where ops run at once, a function of no arguments.
            var_list: the variables; by default all that are trainable.
            grad_loss: the cotangent of the loss.
            ignored: accepted, without effect.
        Raises:
            RuntimeError: ops run at once, and the loss is no function.
        """
        if callable(loss):
            with tf.GradientTape() as tape:
                value = loss()
            variables = list(var_list) if var_list is not None else list(tape.watched_variables())
            return list(zip(tape.gradient(value, variables, grad_loss), variables, strict=True))
        if current_graph() is None:
            raise RuntimeError("`loss` passed to Optimizer.compute_gradients should be a function when eager execution "
                               "is enabled.")
        variables = list(var_list) if var_list is not None else building.trainable_variables()
        return list(zip(building.gradients(loss, variables, grad_loss), variables, strict=True))

    def apply_gradients(self, grads_and_vars: Iterable[Any], global_step: Any = None, name: str | None = None) -> Any:
        """Update variables.

        Args:
            grads_and_vars: pairs of a gradient and a variable.
            global_step: a variable that is increased by one.
            name: accepted, without effect.
        Returns:
            In a graph, what does it when it runs.
        Raises:
            ValueError: no variable has a gradient.
        """
        pairs = [(g, v) for g, v in grads_and_vars if g is not None]
        if not pairs:
            raise ValueError("No gradients provided for any variable, check your graph for ops that do not support "
                             "gradients.")
        graph = current_graph()
        if graph is None:
            self._update(pairs, global_step)
            return None
        with graph.grouped(self.name) as operation:
            self._update(pairs, global_step)
        return operation()

    def _update(self, pairs: list[Any], global_step: Any) -> None:
        self._keras.apply_gradients(pairs)
        if global_step is not None:
            global_step.assign_add(tf.ones([], global_step.dtype))

    def minimize(self, loss: Any, global_step: Any = None, var_list: Any = None, grad_loss: Any = None,
                 name: str | None = None, **ignored: Any) -> Any:
        """Compute the gradients of a loss, and update variables; see `compute_gradients` and `apply_gradients`."""
        return self.apply_gradients(self.compute_gradients(loss, var_list, grad_loss), global_step, name)


def _rate(learning_rate: Any) -> Any:
    return learning_rate if not callable(learning_rate) else learning_rate()


@public_class
class GradientDescentOptimizer(Optimizer):
    """Plain gradient descent.

    Args:
        learning_rate: a number or a tensor.
        use_locking: accepted, without effect.
        name: its name.

    >>> import twofold as tf
    >>> v = tf.Variable(1.0)
    >>> tf.compat.v1.train.GradientDescentOptimizer(0.1).apply_gradients([(tf.constant(2.0), v)])
    >>> round(float(v), 3)
    0.8
    """

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent"):
        super().__init__(use_locking, name, tf.keras.optimizers.SGD(_rate(learning_rate)))


@public_class
class MomentumOptimizer(Optimizer):
    """Gradient descent with momentum.

    Args:
        learning_rate, momentum: numbers.
        use_nesterov: whether gradients are taken ahead.
        use_locking: accepted, without effect.
        name: its name.
    """

    def __init__(self, learning_rate: Any, momentum: Any, use_locking: bool = False, name: str = "Momentum",
                 use_nesterov: bool = False):
        super().__init__(use_locking, name, tf.keras.optimizers.SGD(_rate(learning_rate), momentum=momentum,
                                                                    nesterov=use_nesterov))


@public_class
class AdamOptimizer(Optimizer):
    """Adam.

    Args:
        learning_rate, beta1, beta2, epsilon: its numbers.
        use_locking: accepted, without effect.
        name: its name.

    >>> import twofold as tf
    >>> v = tf.Variable(1.0)
    >>> tf.compat.v1.train.AdamOptimizer().apply_gradients([(tf.constant(2.0), v)])
    >>> round(float(v), 4)
    0.999
    """

    def __init__(self, learning_rate: Any = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 use_locking: bool = False, name: str = "Adam"):
        super().__init__(use_locking, name, tf.keras.optimizers.Adam(_rate(learning_rate), beta1, beta2, epsilon))


@public_class
class AdagradOptimizer(Optimizer):
    """Adagrad.

    Args:
        learning_rate, initial_accumulator_value: its numbers.
        use_locking: accepted, without effect.
        name: its name.
    """

    def __init__(self, learning_rate: Any, initial_accumulator_value: float = 0.1, use_locking: bool = False,
                 name: str = "Adagrad"):
        keras = tf.keras.optimizers.Adagrad(_rate(learning_rate), initial_accumulator_value)
        super().__init__(use_locking, name, keras)


@public_class
class RMSPropOptimizer(Optimizer):
    """RMSProp.

    Args:
        learning_rate, decay, momentum, epsilon: its numbers.
        centered: whether the gradients' mean is taken off.
        use_locking: accepted, without effect.
        name: its name.
    """

    def __init__(self, learning_rate: Any, decay: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-10,
                 use_locking: bool = False, centered: bool = False, name: str = "RMSProp"):
        super().__init__(use_locking, name, tf.keras.optimizers.RMSprop(_rate(learning_rate), decay, momentum, epsilon,
                                                                        centered))


@public
def exponential_decay(learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False,
                      name: str | None = None) -> Any:
    """A learning rate that falls by a factor every so many steps; where ops run at once, a function that gives it."""
    schedule = tf.keras.optimizers.schedules.ExponentialDecay(learning_rate, decay_steps, decay_rate, staircase)
    give: Callable[[], Any] = lambda: schedule(global_step)  # noqa: E731
    return give if current_graph() is None else give()
