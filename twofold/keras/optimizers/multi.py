"""Several optimizers for one model, each for the variables whose names fit a pattern."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import twofold as tf
from twofold._front.api import describe, listed

from ..configs import config_of
from ..serialization import deserialize_keras_object, serialize_keras_object
from .base import Optimizer
from .loss_scale import LossScaleOptimizer
from .slots import path_of

__all__ = ["MultiOptimizer", "OptimizerMap"]


class OptimizerMap(MutableMapping[str, Optimizer]):
    """Which optimizer moves which variables: a dict of patterns, and an optimizer for all others.

    Args:
        default_optimizer: the optimizer of variables that no pattern fits.
        optimizer_map: optimizers by regular expressions, which must fit the whole path of a variable.
    Raises:
        TypeError: something is no optimizer, or no dict.

    >>> import twofold as tf
    >>> by_name = tf.keras.optimizers.OptimizerMap(tf.keras.optimizers.SGD(), {".*bias": tf.keras.optimizers.Adam()})
    >>> type(by_name["dense/bias"]).__name__, type(by_name["dense/kernel"]).__name__
    ('Adam', 'SGD')
    """

    def __init__(self, default_optimizer: Optimizer, optimizer_map: dict[str, Optimizer] | None = None):
        if not isinstance(default_optimizer, Optimizer):
            raise TypeError(f"`default_optimizer` must be an optimizer; got {default_optimizer!r}.")
        if optimizer_map is not None and not isinstance(optimizer_map, dict):
            raise TypeError(f"`optimizer_map` must be a dict; got {optimizer_map!r}.")
        self._default_optimizer = default_optimizer
        self._optimizer_map: dict[str, Optimizer] = {}
        for pattern, optimizer in (optimizer_map or {}).items():
            self[pattern] = optimizer

    @property
    def default_optimizer(self) -> Optimizer:
        """The optimizer of variables that no pattern fits."""
        return self._default_optimizer

    def __getitem__(self, key: str) -> Optimizer:
        """The optimizer for a path, or of a pattern.

        Raises:
            TypeError: it is no string. ValueError: several patterns fit.
        """
        if not isinstance(key, str):
            raise TypeError(f"The path of a variable must be a string; got {describe(key)}.")
        if key in self._optimizer_map:
            return self._optimizer_map[key]
        fitting = [pattern for pattern in self._optimizer_map if re.fullmatch(pattern, key)]
        if len(fitting) > 1:
            raise ValueError(f"Several optimizers are assigned to variable {key}: by the patterns {fitting}.")
        return self._optimizer_map[fitting[0]] if fitting else self._default_optimizer

    def __setitem__(self, key: str, optimizer: Optimizer) -> None:
        if not isinstance(key, str):
            raise ValueError(f"A pattern must be a string; got {key!r}.")
        if key in self._optimizer_map:
            raise ValueError(f"{key!r} has an optimizer already: {self._optimizer_map[key]!r}.")
        _check_inner(optimizer)
        self._optimizer_map[key] = optimizer

    def __delitem__(self, key: str) -> None:
        if not isinstance(key, str) or key not in self._optimizer_map:
            raise KeyError(f"OptimizerMap: there is no pattern {key!r}.")
        del self._optimizer_map[key]

    def __len__(self) -> int:
        return len(self._optimizer_map)

    def __iter__(self) -> Iterator[str]:
        return iter(self._optimizer_map)

    def __call__(self, variable: tf.Variable) -> Optimizer:
        """The optimizer of a variable.

        Raises:
            TypeError: it is no variable.
        """
        if not isinstance(variable, tf.Variable):
            raise TypeError(f"OptimizerMap takes a variable; got {describe(variable)}.")
        return self[path_of(variable).removesuffix(":0")]

    def get_config(self) -> dict[str, Any]:
        """The optimizers, as values that JSON can hold."""
        return {"default_optimizer": serialize_keras_object(self._default_optimizer),
                "optimizer_map": serialize_keras_object(self._optimizer_map)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> OptimizerMap:
        """A map from what `get_config` gave."""
        config = config_of(config)
        return cls(*(_read(config[part], custom_objects) for part in ("default_optimizer", "optimizer_map")))


def _read(config: Any, custom_objects: Mapping[str, Any] | None) -> Any:
    if isinstance(config, (Optimizer, OptimizerMap)):
        return config
    if isinstance(config, Mapping) and "class_name" not in config:
        return {key: _read(value, custom_objects) for key, value in config.items()}
    return deserialize_keras_object(config, custom_objects=custom_objects)


def _check_inner(optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer) or isinstance(optimizer, (LossScaleOptimizer, MultiOptimizer)):
        raise ValueError(f"Each part must be an optimizer, and no LossScaleOptimizer or MultiOptimizer; got "
                         f"{optimizer!r}.")


class MultiOptimizer(Optimizer):
    """An optimizer that leaves each variable to one of several.

    Args:
        optimizer_map: an `OptimizerMap`, or a function that gives the optimizer of a variable.
        loss_scale_factor: what `scale_loss` multiplies a loss by, and gradients are divided by.
        name: by default the class's in snake case.
    Raises:
        ValueError: what is given for a variable is no optimizer, or one with a scaled loss.

    >>> import twofold as tf
    >>> by_name = tf.keras.optimizers.OptimizerMap(tf.keras.optimizers.SGD(0.5))
    >>> by_name[".*bias"] = tf.keras.optimizers.SGD(2.0)
    >>> v, w = tf.Variable(1.0, name="kernel"), tf.Variable(1.0, name="bias")
    >>> optimizer = tf.keras.optimizers.MultiOptimizer(by_name)
    >>> count = optimizer.apply_gradients([(tf.constant(1.0), v), (tf.constant(1.0), w)])
    >>> float(v), float(w)
    (0.5, -1.0)
    """

    def __init__(self, optimizer_map: Any, loss_scale_factor: float | None = None, name: str | None = None):
        super().__init__(0.0, loss_scale_factor=loss_scale_factor, name=name)
        self.optimizer_map = optimizer_map
        self._inner_optimizers: list[Optimizer] = []
        known = list(optimizer_map.values()) if hasattr(optimizer_map, "values") else []
        default = getattr(optimizer_map, "default_optimizer", None)
        for optimizer in [*known, *([] if default is None else [default])]:
            self._place(optimizer)

    def _place(self, optimizer: Optimizer) -> int:
        """The number of an optimizer among those inside."""
        for n, known in enumerate(self._inner_optimizers):
            if known is optimizer:
                return n
        _check_inner(optimizer)
        optimizer.loss_scale_factor = self.loss_scale_factor
        self._inner_optimizers.append(optimizer)
        return len(self._inner_optimizers) - 1

    def build(self, variables: Sequence[tf.Variable]) -> None:
        if self.built:
            return
        variables = listed(variables, "variables")
        self._by = {id(variable): self._place(self.optimizer_map(variable)) for variable in variables}
        for optimizer, part in zip(self._inner_optimizers, self._parts(variables), strict=True):
            if part:
                optimizer.build(part)
        super().build(variables)

    def _parts(self, variables: Sequence[tf.Variable], *beside: Sequence[Any]) -> list[list[Any]]:
        """What belongs to each of the optimizers: variables, or with `beside` rows of values."""
        parts: list[list[Any]] = [[] for _ in self._inner_optimizers]
        for row in zip(variables, *beside, strict=True):
            parts[self._by[id(row[0])]].append(row if beside else row[0])
        return parts

    @property
    def optimizers(self) -> list[Optimizer]:
        """The optimizers inside."""
        return list(self._inner_optimizers)

    @property
    def variables(self) -> list[tf.Variable]:
        """The variables of this optimizer, then those of the ones inside."""
        return [*self._variables, *(v for optimizer in self._inner_optimizers for v in optimizer.variables)]

    @property
    def learning_rate(self) -> Any:
        """None of its own: each optimizer inside has one.

        Raises:
            AttributeError: always.
        """
        raise AttributeError("A MultiOptimizer has no learning rate: those inside (`optimizers`) have.")

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        raise AttributeError("A MultiOptimizer has no learning rate: set those of `optimizers`.")

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[tf.Variable] | None = None) -> None:
        """Move each variable by its optimizer.

        Args:
            grads: a gradient for each variable, None where there is none.
            trainable_variables: the variables; by default those the optimizer was built with.
        Raises:
            ValueError: as `tf.keras.optimizers.Optimizer.apply`.

        >>> import twofold as tf
        >>> v = tf.Variable(1.0)
        >>> plain = tf.keras.optimizers.SGD(0.5)
        >>> optimizer = tf.keras.optimizers.MultiOptimizer(lambda variable: plain)
        >>> optimizer.apply([tf.constant(1.0)], [v])
        >>> float(v)
        0.5
        """
        grads = listed(grads, "grads")
        if not grads:
            return
        variables = self._variables_of(grads, trainable_variables)
        for optimizer, part in zip(self._inner_optimizers, self._parts(variables, grads), strict=True):
            if any(gradient is not None for _, gradient in part):
                optimizer.apply([gradient for _, gradient in part], [variable for variable, _ in part])
        self._iterations.assign_add(1)

    def finalize_variable_values(self, var_list: Sequence[tf.Variable]) -> None:
        """Give variables their moving averages, where an optimizer inside keeps such."""
        for optimizer, part in zip(self._inner_optimizers, self._parts(var_list), strict=True):
            if part:
                optimizer.finalize_variable_values(part)

    def get_config(self) -> dict[str, Any]:
        """The optimizers, as values that JSON can hold."""
        given = self.optimizer_map
        if isinstance(given, OptimizerMap):  # a mapping, of which configs would be dicts
            config: Any = {"module": "keras.optimizers", "class_name": "OptimizerMap", "config": given.get_config(),
                           "registered_name": None}
        else:
            config = serialize_keras_object(given)
        return {"optimizer_map": config,
                "loss_scale_factor": self.loss_scale_factor, "name": self.name}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
        """An optimizer from what `get_config` gave."""
        config = config_of(config)
        return cls(**{**config, "optimizer_map": _read(config["optimizer_map"], custom_objects)})
