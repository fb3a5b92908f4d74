"""`tf.keras.regularizers`: penalties on weights and outputs that layers add to the loss, by Keras's formulas."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import twofold as tf
from twofold._front.api import public
from twofold._front.namespace import publish

from ._identifiers import Configured, read, resolve, table_of
from .serialization import serialize_keras_object

__all__ = ["L1", "L1L2", "L2", "OrthogonalRegularizer", "Regularizer", "deserialize", "get", "l1", "l1_l2", "l2",
           "orthogonal_regularizer", "serialize"]


class Regularizer(Configured):
    """The base of regularisers: a subclass has `__call__(x)`, which gives a scalar.

    >>> import twofold as tf
    >>> tf.keras.regularizers.Regularizer()(tf.constant([1.0]))
    0.0
    """

    def __call__(self, x: Any) -> Any:
        return 0.0


def _factor(value: Any, name: str) -> float:
    if not isinstance(value, (float, int)) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} must be a number that is not negative; got {value!r}.")
    return float(value)


def _absolute(x: Any, factor: float) -> Any:
    return factor * tf.reduce_sum(tf.abs(x))


def _squared(x: Any, factor: float) -> Any:
    return factor * tf.reduce_sum(tf.square(x))


class L1L2(Regularizer):
    """`l1 * sum(|x|) + l2 * sum(x**2)`.

    Args:
        l1, l2: numbers that are not negative.
    Raises:
        ValueError: one is.

    >>> import twofold as tf
    >>> float(tf.keras.regularizers.L1L2(1.0, 0.5)(tf.constant([-2.0, 1.0])))
    5.5
    """

    def __init__(self, l1: float | None = 0.0, l2: float | None = 0.0):
        self.l1 = _factor(0.0 if l1 is None else l1, "l1")
        self.l2 = _factor(0.0 if l2 is None else l2, "l2")

    def __call__(self, x: Any) -> Any:
        x = tf.convert_to_tensor(x)
        total = tf.zeros((), x.dtype)
        if self.l1:
            total += _absolute(x, self.l1)
        if self.l2:
            total += _squared(x, self.l2)
        return total

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal object, as values that JSON can hold."""
        return {"l1": self.l1, "l2": self.l2}


class L1(Regularizer):
    """`l1 * sum(|x|)`.

    Args:
        l1: a number that is not negative.
    Raises:
        ValueError: it is.

    >>> import twofold as tf
    >>> float(tf.keras.regularizers.L1(0.5)(tf.constant([-2.0, 1.0])))
    1.5
    """

    def __init__(self, l1: float | None = 0.01):
        self.l1 = _factor(0.01 if l1 is None else l1, "l1")

    def __call__(self, x: Any) -> Any:
        return _absolute(tf.convert_to_tensor(x), self.l1)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal object, as values that JSON can hold."""
        return {"l1": self.l1}


class L2(Regularizer):
    """`l2 * sum(x**2)`.

    Args:
        l2: a number that is not negative.
    Raises:
        ValueError: it is.

    >>> import twofold as tf
    >>> float(tf.keras.regularizers.L2(0.5)(tf.constant([-2.0, 1.0])))
    2.5
    """

    def __init__(self, l2: float | None = 0.01):
        self.l2 = _factor(0.01 if l2 is None else l2, "l2")

    def __call__(self, x: Any) -> Any:
        return _squared(tf.convert_to_tensor(x), self.l2)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal object, as values that JSON can hold."""
        return {"l2": self.l2}


class OrthogonalRegularizer(Regularizer):
    """`factor` times the mean magnitude of the cosines between the rows, or columns, of a matrix.

    Args:
        factor: a number that is not negative.
        mode: "rows" or "columns".
    Raises:
        ValueError: another mode or factor, or, when called, another rank than 2.

    >>> import twofold as tf
    >>> float(tf.keras.regularizers.OrthogonalRegularizer(1.0)(tf.constant([[2.0, 0.0], [3.0, 0.0]])))
    1.0
    """

    def __init__(self, factor: float = 0.01, mode: str = "rows"):
        if mode not in ("rows", "columns"):
            raise ValueError(f"mode must be 'rows' or 'columns'; got {mode!r}.")
        self.factor, self.mode = _factor(factor, "factor"), mode

    def __call__(self, x: Any) -> Any:
        x = tf.convert_to_tensor(x)
        if len(x.shape) != 2:
            raise ValueError(f"OrthogonalRegularizer takes matrices; got shape {tuple(x.shape)}.")
        rows = self.mode == "rows"
        unit = tf.math.l2_normalize(x, axis=1 if rows else 0)
        cosines = tf.matmul(unit, unit, transpose_a=not rows, transpose_b=rows)
        count = x.shape[0 if rows else 1]
        apart = tf.abs(cosines * (1.0 - tf.eye(count, dtype=x.dtype)))
        return self.factor * 0.5 * tf.reduce_sum(apart) / (count * (count - 1.0) / 2.0)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal object, as values that JSON can hold."""
        return {"factor": self.factor, "mode": self.mode}


l1, l2, l1_l2, orthogonal_regularizer = L1, L2, L1L2, OrthogonalRegularizer
_TABLE = {**table_of(Regularizer, L1, L2, L1L2, OrthogonalRegularizer), "l1_l2": L1L2}


@public
def serialize(regularizer: Any) -> Any:
    """The config of a regulariser: `{"module", "class_name", "config", "registered_name"}`.

    >>> import twofold as tf
    >>> tf.keras.regularizers.serialize(tf.keras.regularizers.L2(0.5))["config"]
    {'l2': 0.5}
    """
    return serialize_keras_object(regularizer)


@public
def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The regulariser of a config; `custom_objects` are further classes by name.

    >>> import twofold as tf
    >>> tf.keras.regularizers.deserialize({"class_name": "L1", "config": {"l1": 0.5}}).l1
    0.5
    """
    return read(config, _TABLE, custom_objects)


@public
def get(identifier: Any) -> Any:
    """The regulariser that `identifier` stands for: None (gives None), a name, a config, a class or a callable.

    Raises:
        ValueError: it stands for none.

    >>> import twofold as tf
    >>> tf.keras.regularizers.get("l2").l2
    0.01
    """
    return None if identifier is None else resolve("regularizer", identifier, _TABLE)


publish(__name__)
