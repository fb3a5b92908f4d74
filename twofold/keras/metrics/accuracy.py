"""How often predictions are right: functions that give 1 or 0 for each sample, and their means as metrics."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import public

from ..losses.loss import as_tensor, same_rank
from .metric import floatx
from .reduction import FunctionMetric

__all__ = ["Accuracy", "BinaryAccuracy", "CategoricalAccuracy", "SparseCategoricalAccuracy",
           "SparseTopKCategoricalAccuracy", "TopKCategoricalAccuracy", "accuracy", "binary_accuracy",
           "categorical_accuracy", "sparse_categorical_accuracy", "sparse_top_k_categorical_accuracy",
           "top_k_categorical_accuracy"]


def _matches(first: Any, second: Any) -> Any:
    return tf.cast(tf.equal(first, second), floatx())


def accuracy(y_true: Any, y_pred: Any) -> Any:
    """1 where a prediction equals its label, else 0."""
    y_pred = tf.convert_to_tensor(y_pred)
    return _matches(*same_rank(as_tensor(y_true, y_pred.dtype), y_pred))


@public
def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Any:
    """1 where a probability lies on the same side of `threshold` as its label, else 0.

    Args:
        y_true: labels 0 and 1.
        y_pred: probabilities, of the same shape.
        threshold: above it a prediction counts as 1.
    Returns:
        A float tensor of that shape.

    >>> import twofold as tf
    >>> tf.keras.metrics.binary_accuracy([[1], [1], [0]], [[0.9], [0.2], [0.1]]).numpy().ravel().tolist()
    [1.0, 0.0, 1.0]
    """
    y_true, y_pred = same_rank(tf.convert_to_tensor(y_true), tf.convert_to_tensor(y_pred))
    return _matches(y_true, tf.cast(y_pred > tf.cast(threshold, y_pred.dtype), y_true.dtype))


def _highest(y_true: Any, y_pred: Any) -> Any:
    """1 where the label is the class with the highest score, else 0; labels are numbers of classes."""
    highest = tf.argmax(y_pred, axis=-1)
    if y_true.dtype.is_integer:
        return _matches(tf.cast(y_true, tf.int64), highest)
    return _matches(y_true, tf.cast(highest, y_true.dtype))


@public
def categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """1 where the highest score is that of the label, else 0.

    Args:
        y_true: one-hot labels, [..., classes].
        y_pred: scores or probabilities, of the same shape.
    Returns:
        A float tensor of shape [...].

    >>> import twofold as tf
    >>> print(tf.keras.metrics.categorical_accuracy([[0, 0, 1], [0, 1, 0]], [[0.1, 0.9, 0.8], [0.1, 0.9, 0.0]]).numpy())
    [0. 1.]
    """
    return _highest(tf.argmax(tf.convert_to_tensor(y_true), axis=-1), tf.convert_to_tensor(y_pred))


@public
def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """1 where the highest score is that of the label, else 0.

    Args:
        y_true: numbers of classes, [...] or [..., 1].
        y_pred: scores or probabilities, [..., classes].
    Returns:
        A float tensor of shape [...].

    >>> import twofold as tf
    >>> tf.keras.metrics.sparse_categorical_accuracy([2, 1], [[0.1, 0.9, 0.8], [0.1, 0.9, 0.0]]).numpy().tolist()
    [0.0, 1.0]
    """
    y_true, y_pred = tf.convert_to_tensor(y_true), tf.convert_to_tensor(y_pred)
    if y_true.shape.rank == y_pred.shape.rank and y_true.shape[-1] == 1:
        y_true = tf.squeeze(y_true, -1)
    matches = _highest(y_true, y_pred)
    return tf.squeeze(matches, -1) if (matches.shape.rank or 0) > 1 and matches.shape[-1] == 1 else matches


@public
def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Any:
    """1 where the label is among the classes with the `k` highest scores, else 0.

    Args:
        y_true: one-hot labels, [..., classes].
        y_pred: scores or probabilities, of the same shape.
        k: how many classes count.
    Returns:
        A float tensor of shape [...].

    >>> import twofold as tf
    >>> tf.keras.metrics.top_k_categorical_accuracy([[0, 0, 1], [0, 1, 0]], [[0.1, 0.9, 0.8], [0.5, 0.2, 0.4]], k=2
    ...                                            ).numpy().tolist()
    [1.0, 0.0]
    """
    return sparse_top_k_categorical_accuracy(tf.argmax(tf.convert_to_tensor(y_true), axis=-1), y_pred, k)


@public
def sparse_top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5, from_sorted_ids: bool = False) -> Any:
    """1 where the label is among the classes with the `k` highest scores, else 0.

    Args:
        y_true: numbers of classes, [...].
        y_pred: scores or probabilities, [..., classes]; with `from_sorted_ids` numbers of classes, best first.
        k: how many classes count.
        from_sorted_ids: whether `y_pred` are classes already.
    Returns:
        A float tensor of shape [...].

    >>> import twofold as tf
    >>> tf.keras.metrics.sparse_top_k_categorical_accuracy([2, 1], [[0.1, 0.9, 0.8], [0.5, 0.2, 0.4]], k=2
    ...                                                   ).numpy().tolist()
    [1.0, 0.0]
    """
    y_pred = tf.convert_to_tensor(y_pred)
    y_true = as_tensor(y_true, y_pred.dtype if from_sorted_ids else tf.int32)
    shape = None
    if y_pred.shape.rank > 2:
        y_pred = tf.reshape(y_pred, [-1, y_pred.shape[-1]])
    if y_true.shape.rank > 1:
        shape, y_true = tf.shape(y_true), tf.reshape(y_true, [-1])
    if from_sorted_ids:
        matches = tf.reduce_any(tf.equal(tf.expand_dims(y_true, 1), y_pred[:, :k]), axis=1)
    else:
        matches = tf.math.in_top_k(y_true, y_pred, k)
    matches = tf.cast(matches, floatx())
    return matches if shape is None else tf.reshape(matches, shape)


class Accuracy(FunctionMetric):
    """How often predictions equal labels.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.

    >>> import twofold as tf
    >>> float(tf.keras.metrics.Accuracy()([1, 2, 3, 4], [0, 2, 3, 4]))
    0.75
    """

    _direction, _FUNCTION = "up", accuracy

    def __init__(self, name: str | None = "accuracy", dtype: Any = None):
        super().__init__(name, dtype)


class BinaryAccuracy(FunctionMetric):
    """How often probabilities lie on the right side of a threshold.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.
        threshold: above it a prediction counts as 1.

    >>> import twofold as tf
    >>> float(tf.keras.metrics.BinaryAccuracy()([[1], [1], [0], [0]], [[0.98], [1.0], [0.0], [0.6]]))
    0.75
    """

    _direction, _FUNCTION, _SETTINGS = "up", binary_accuracy, ("threshold",)

    def __init__(self, name: str | None = "binary_accuracy", dtype: Any = None, threshold: float = 0.5):
        super().__init__(name, dtype, threshold=threshold)


class CategoricalAccuracy(FunctionMetric):
    """How often the highest score is that of the label, with one-hot labels.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.

    >>> import twofold as tf
    >>> float(tf.keras.metrics.CategoricalAccuracy()([[0, 0, 1], [0, 1, 0]], [[0.1, 0.9, 0.8], [0.05, 0.95, 0]]))
    0.5
    """

    _direction, _FUNCTION = "up", categorical_accuracy

    def __init__(self, name: str | None = "categorical_accuracy", dtype: Any = None):
        super().__init__(name, dtype)


class SparseCategoricalAccuracy(FunctionMetric):
    """How often the highest score is that of the label, with labels that are numbers of classes.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.

    >>> import twofold as tf
    >>> float(tf.keras.metrics.SparseCategoricalAccuracy()([[2], [1]], [[0.1, 0.6, 0.3], [0.05, 0.95, 0]]))
    0.5
    """

    _direction, _FUNCTION = "up", sparse_categorical_accuracy

    def __init__(self, name: str | None = "sparse_categorical_accuracy", dtype: Any = None):
        super().__init__(name, dtype)


class TopKCategoricalAccuracy(FunctionMetric):
    """How often the label is among the `k` highest scores, with one-hot labels.

    Args:
        k: how many classes count.
        name, dtype: as for `tf.keras.metrics.Metric`.

    >>> import twofold as tf
    >>> metric = tf.keras.metrics.TopKCategoricalAccuracy(k=1)
    >>> float(metric([[0, 0, 1], [0, 1, 0]], [[0.1, 0.9, 0.8], [0.05, 0.95, 0]]))
    0.5
    """

    _direction, _FUNCTION, _SETTINGS = "up", top_k_categorical_accuracy, ("k",)

    def __init__(self, k: int = 5, name: str | None = "top_k_categorical_accuracy", dtype: Any = None):
        super().__init__(name, dtype, k=k)


class SparseTopKCategoricalAccuracy(FunctionMetric):
    """How often the label is among the `k` highest scores, with labels that are numbers of classes.

    Args:
        k: how many classes count.
        name, dtype: as for `tf.keras.metrics.Metric`.
        from_sorted_ids: whether predictions are numbers of classes, best first.

    >>> import twofold as tf
    >>> metric = tf.keras.metrics.SparseTopKCategoricalAccuracy(k=1)
    >>> float(metric([2, 1], [[0.1, 0.9, 0.8], [0.05, 0.95, 0]]))
    0.5
    """

    _direction, _FUNCTION, _SETTINGS = "up", sparse_top_k_categorical_accuracy, ("k", "from_sorted_ids")

    from_sorted_ids: bool

    def __init__(self, k: int = 5, name: str | None = "sparse_top_k_categorical_accuracy", dtype: Any = None,
                 from_sorted_ids: bool = False):
        super().__init__(name, dtype, k=k, from_sorted_ids=from_sorted_ids)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        return config if self.from_sorted_ids else {k: v for k, v in config.items() if k != "from_sorted_ids"}
