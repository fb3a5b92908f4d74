"""Moving averages of variables and tensors, which are kept in variables of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import twofold as tf
from twofold._front.api import listed, public_class

from .. import variables as own
from ..graph import current_graph
from ..keys import GraphKeys
from ..operations import Operation
from .optimizer import make_variable

__all__ = ["ExponentialMovingAverage"]


@public_class
class ExponentialMovingAverage(tf.Module):
    """Averages in which earlier values count less and less: `average = decay * average + (1 - decay) * value`.

    Args:
        decay: what part of an average stays, a number or tensor.
        num_updates: a count of steps; the decay is at most (1 + num_updates) / (10 + num_updates).
        zero_debias: whether averages of tensors, which start from 0, are corrected for that.
        name: the names of averages end in it.

    >>> import twofold as tf
    >>> v = tf.Variable(1.0)
    >>> averages = tf.train.ExponentialMovingAverage(decay=0.5)
    >>> averages.apply([v])
    >>> _ = v.assign(3.0)
    >>> averages.apply([v])
    >>> averages.average(v).numpy().item()
    2.0
    """

    def __init__(self, decay: Any, num_updates: Any = None, zero_debias: bool = False,
                 name: str = "ExponentialMovingAverage"):
        super().__init__(name=name)
        self._decay, self._num_updates, self._zero_debias = decay, num_updates, zero_debias
        self._averages: dict[str, Any] = {}
        self._keys: dict[int, str] = {}  # id of what is averaged -> its key among the averages
        self._averaged: list[Any] = []
        self._sums: dict[str, Any] = {}  # where zero is corrected for: the averages before that, and counts of steps

    def apply(self, var_list: Sequence[Any] | None = None) -> Any:
        """Take the values of variables and tensors into their averages, which are made where there are none.

        Args:
            var_list: variables and tensors of float dtype; by default the trainable variables of the graph.
        Returns:
            In a graph, what does it when it runs.
        Raises:
            TypeError: one is not of float dtype.
        """
        given = own.trainable_variables() if var_list is None else listed(var_list, "var_list")
        updates: list[tuple[Any, Any]] = []
        for value in given:
            if not value.dtype.is_floating:
                raise TypeError(f"The variables must be half, float, or double: {value!r}")
            self._make(value)
            updates += self._updates(value)
        graph = current_graph()
        if graph is not None:
            return Operation(graph, updates, graph.scoped(self.name))
        for variable, new in updates:
            variable.assign(new)
        return None

    def _make(self, value: Any) -> None:
        if id(value) in self._keys:
            return
        graph, is_variable = current_graph(), isinstance(value, tf.Variable)
        key, name = str(len(self._averaged)), self.average_name(value)
        self._averaged.append(value)
        if is_variable and graph is not None:
            graph.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, value)

        def start() -> Any:
            if not is_variable:
                return tf.zeros(value.shape.as_list(), value.dtype)
            return value.initialized_value() if graph is not None else value.read_value()
        self._averages[key] = make_variable(start, name)
        if self._zero_debias and not is_variable:
            self._sums[f"{key}/biased"] = make_variable(start, f"{name}/biased")
            self._sums[f"{key}/local_step"] = make_variable(lambda: tf.zeros([], value.dtype), f"{name}/local_step")
        self._keys[id(value)] = key

    def _updates(self, value: Any) -> list[tuple[Any, Any]]:
        key, now = self._keys[id(value)], tf.convert_to_tensor(value)
        decay = tf.cast(self._decay, now.dtype)
        if self._num_updates is not None:
            count = tf.cast(self._num_updates, now.dtype)
            decay = tf.minimum(decay, (1.0 + count) / (10.0 + count))
        average = self._averages[key]
        if f"{key}/biased" not in self._sums:
            return [(average, average - (average - now) * (1.0 - decay))]
        biased, step = self._sums[f"{key}/biased"], self._sums[f"{key}/local_step"]
        total, count = biased - (biased - now) * (1.0 - decay), step + 1.0
        return [(biased, total), (step, count), (average, total / (1.0 - tf.pow(decay, count)))]

    def average(self, var: Any) -> Any:
        """The variable that holds an average; None where none is kept.

        Args:
            var: the variable or tensor that is averaged.
        """
        key = self._keys.get(id(var))
        return None if key is None else self._averages[key]

    def average_name(self, var: Any) -> str:
        """The name of an average, as checkpoints have it.

        Args:
            var: the variable or tensor that is averaged.
        """
        known = self.average(var)
        if known is not None:
            return str(known.name[:-2])
        name = getattr(var, "name", "") if isinstance(var, tf.Variable) or not tf.executing_eagerly() else "Tensor"
        return f"{str(name).rpartition(':')[0] or name}/{self.name}"

    def variables_to_restore(self, moving_avg_variables: Sequence[Any] | None = None) -> dict[str, Any]:
        """For a saver: variables by the names of their averages, where there are such, else by their own.

        Args:
            moving_avg_variables: which have averages; by default the trainable ones, and those that averages are of.
        """
        averaged = listed(moving_avg_variables, "moving_avg_variables") if moving_avg_variables is not None else [
            *own.trainable_variables(), *own.moving_average_variables()]
        by_name = {self.average_name(v): v for v in averaged}
        taken = {id(v) for v in averaged}
        hidden = set(by_name)
        by_name.update({v.name[:-2]: v for v in own.global_variables()
                        if id(v) not in taken and v.name[:-2] not in hidden})
        return by_name
