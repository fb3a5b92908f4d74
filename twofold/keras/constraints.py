"""`tf.keras.constraints`: functions that an optimiser applies to a weight after each update, by Keras's formulas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import twofold as tf
from twofold._front.api import public
from twofold._front.namespace import publish

from . import config
from ._identifiers import Configured, read, resolve, table_of
from .serialization import serialize_keras_object

__all__ = ["Constraint", "MaxNorm", "MinMaxNorm", "NonNeg", "UnitNorm", "deserialize", "get", "max_norm",
           "min_max_norm", "non_neg", "serialize", "unit_norm"]


class Constraint(Configured):
    """The base of constraints, and the one that changes nothing: a subclass has `__call__(w)`.

    >>> import twofold as tf
    >>> tf.keras.constraints.Constraint()(tf.constant([-1.0])).numpy().tolist()
    [-1.0]
    """

    def __call__(self, w: Any) -> Any:
        return w


def _norms(w: Any, axis: Any) -> Any:
    return tf.sqrt(tf.reduce_sum(tf.square(w), axis=axis, keepdims=True))


def _epsilon() -> float:
    return config.epsilon()


class MaxNorm(Constraint):
    """Vectors that are longer than `max_value` are shortened to it.

    Args:
        max_value: the greatest length.
        axis: the axis or axes along which vectors lie: 0 for the inputs of a unit in a `Dense` kernel.

    >>> import twofold as tf
    >>> tf.keras.constraints.MaxNorm(1.0)(tf.constant([[3.0], [4.0]])).numpy().round(4).tolist()
    [[0.6000000238418579], [0.800000011920929]]
    """

    def __init__(self, max_value: float = 2, axis: Any = 0):
        self.max_value, self.axis = max_value, axis

    def __call__(self, w: Any) -> Any:
        w = tf.convert_to_tensor(w)
        norms = _norms(w, self.axis)
        return w * (tf.clip_by_value(norms, 0, self.max_value) / (_epsilon() + norms))

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal object, as values that JSON can hold."""
        return {"max_value": self.max_value, "axis": self.axis}


class NonNeg(Constraint):
    """Negative numbers become 0.

    >>> import twofold as tf
    >>> tf.keras.constraints.NonNeg()(tf.constant([-1.0, 2.0])).numpy().tolist()
    [0.0, 2.0]
    """

    def __call__(self, w: Any) -> Any:
        w = tf.convert_to_tensor(w)
        return tf.maximum(w, tf.zeros((), w.dtype))


class UnitNorm(Constraint):
    """Vectors get length 1.

    Args:
        axis: the axis or axes along which vectors lie.

    >>> import twofold as tf
    >>> tf.keras.constraints.UnitNorm()(tf.constant([[3.0], [4.0]])).numpy().round(4).tolist()
    [[0.6000000238418579], [0.800000011920929]]
    """

    def __init__(self, axis: Any = 0):
        self.axis = axis

    def __call__(self, w: Any) -> Any:
        w = tf.convert_to_tensor(w)
        return w / (_epsilon() + _norms(w, self.axis))

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal object, as values that JSON can hold."""
        return {"axis": self.axis}


class MinMaxNorm(Constraint):
    """The lengths of vectors are moved towards [min_value, max_value].

    Args:
        min_value, max_value: the least and the greatest length.
        rate: how much of the way a length goes: 1 for all of it.
        axis: the axis or axes along which vectors lie.

    >>> import twofold as tf
    >>> tf.keras.constraints.MinMaxNorm(0.0, 1.0, 0.5)(tf.constant([[2.0]])).numpy().round(4).tolist()
    [[1.5]]
    """

    def __init__(self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: Any = 0):
        self.min_value, self.max_value, self.rate, self.axis = min_value, max_value, rate, axis

    def __call__(self, w: Any) -> Any:
        w = tf.convert_to_tensor(w)
        norms = _norms(w, self.axis)
        desired = self.rate * tf.clip_by_value(norms, self.min_value, self.max_value) + (1 - self.rate) * norms
        return w * (desired / (_epsilon() + norms))

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal object, as values that JSON can hold."""
        return {"min_value": self.min_value, "max_value": self.max_value, "rate": self.rate, "axis": self.axis}


max_norm, min_max_norm, non_neg, unit_norm = MaxNorm, MinMaxNorm, NonNeg, UnitNorm
_TABLE = table_of(Constraint, MaxNorm, MinMaxNorm, NonNeg, UnitNorm)


@public
def serialize(constraint: Any) -> Any:
    """The config of a constraint: `{"module", "class_name", "config", "registered_name"}`.

    >>> import twofold as tf
    >>> tf.keras.constraints.serialize(tf.keras.constraints.UnitNorm(1))["config"]
    {'axis': 1}
    """
    return serialize_keras_object(constraint)


@public
def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The constraint of a config; `custom_objects` are further classes by name.

    >>> import twofold as tf
    >>> tf.keras.constraints.deserialize({"class_name": "MaxNorm", "config": {"max_value": 3}}).max_value
    3
    """
    return read(config, _TABLE, custom_objects)


@public
def get(identifier: Any) -> Any:
    """The constraint that `identifier` stands for: None (gives None), a name, a config, a class or a callable.

    Raises:
        ValueError: it stands for none.

    >>> import twofold as tf
    >>> type(tf.keras.constraints.get("non_neg")).__name__
    'NonNeg'
    """
    return None if identifier is None else resolve("constraint", identifier, _TABLE)


publish(__name__)
