"""Losses as metrics: their means over all samples of all batches."""

from __future__ import annotations

from typing import Any

from ..losses import crossentropy, regression
from .reduction import FunctionMetric

__all__ = ["BinaryCrossentropy", "CategoricalCrossentropy", "CategoricalHinge", "Hinge", "KLDivergence", "Poisson",
           "SparseCategoricalCrossentropy", "SquaredHinge"]


class KLDivergence(FunctionMetric):
    """The mean of the Kullback-Leibler divergence of two distributions.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.

    >>> import twofold as tf
    >>> round(float(tf.keras.metrics.KLDivergence()([[0, 1], [0, 0]], [[0.6, 0.4], [0.4, 0.6]])), 3)
    0.458
    """

    _direction, _FUNCTION = None, regression.kl_divergence

    def __init__(self, name: str | None = "kl_divergence", dtype: Any = None):
        super().__init__(name, dtype)


class Poisson(FunctionMetric):
    """The mean of `y_pred - y_true * log(y_pred)`.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.

    >>> import twofold as tf
    >>> round(float(tf.keras.metrics.Poisson()([[0, 1], [0, 0]], [[1, 1], [0, 0]])), 3)
    0.5
    """

    _direction, _FUNCTION = None, regression.poisson

    def __init__(self, name: str | None = "poisson", dtype: Any = None):
        super().__init__(name, dtype)


class Hinge(FunctionMetric):
    """The mean of `max(1 - y_true * y_pred, 0)`, of labels -1 and 1, or 0 and 1.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.

    >>> import twofold as tf
    >>> round(float(tf.keras.metrics.Hinge()([[0, 1], [0, 0]], [[0.6, 0.4], [0.4, 0.6]])), 3)
    1.3
    """

    _direction, _FUNCTION = "down", regression.hinge

    def __init__(self, name: str | None = "hinge", dtype: Any = None):
        super().__init__(name, dtype)


class SquaredHinge(FunctionMetric):
    """The mean of `max(1 - y_true * y_pred, 0)**2`, of labels -1 and 1, or 0 and 1.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.

    >>> import twofold as tf
    >>> round(float(tf.keras.metrics.SquaredHinge()([[0, 1], [0, 0]], [[0.6, 0.4], [0.4, 0.6]])), 3)
    1.86
    """

    _direction, _FUNCTION = "down", regression.squared_hinge

    def __init__(self, name: str | None = "squared_hinge", dtype: Any = None):
        super().__init__(name, dtype)


class CategoricalHinge(FunctionMetric):
    """The mean of `max(other - right + 1, 0)`, with the highest score of the other classes.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.

    >>> import twofold as tf
    >>> round(float(tf.keras.metrics.CategoricalHinge()([[0, 1], [0, 0]], [[0.6, 0.4], [0.4, 0.6]])), 3)
    1.4
    """

    _direction, _FUNCTION = "down", regression.categorical_hinge

    def __init__(self, name: str | None = "categorical_hinge", dtype: Any = None):
        super().__init__(name, dtype)


class BinaryCrossentropy(FunctionMetric):
    """The mean cross entropy of two classes, 0 and 1.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.
        from_logits: whether predictions are logits rather than probabilities.
        label_smoothing: how far labels are moved to 0.5: by half of this.

    >>> import twofold as tf
    >>> round(float(tf.keras.metrics.BinaryCrossentropy()([[0, 1], [0, 0]], [[0.6, 0.4], [0.4, 0.6]])), 3)
    0.815
    """

    _direction, _FUNCTION = "down", crossentropy.binary_crossentropy
    _SETTINGS = ("from_logits", "label_smoothing")

    def __init__(self, name: str | None = "binary_crossentropy", dtype: Any = None, from_logits: bool = False,
                 label_smoothing: float = 0):
        super().__init__(name, dtype, from_logits=from_logits, label_smoothing=label_smoothing)


class CategoricalCrossentropy(FunctionMetric):
    """The mean cross entropy of several classes, with one-hot labels.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.
        from_logits: whether predictions are logits rather than probabilities.
        label_smoothing: which part of each label is spread over all classes.
        axis: the axis of the classes.

    >>> import twofold as tf
    >>> metric = tf.keras.metrics.CategoricalCrossentropy()
    >>> round(float(metric([[0, 1, 0], [0, 0, 1]], [[0.05, 0.95, 0], [0.1, 0.8, 0.1]])), 3)
    1.177
    """

    _direction, _FUNCTION = "down", crossentropy.categorical_crossentropy
    _SETTINGS = ("from_logits", "label_smoothing", "axis")

    def __init__(self, name: str | None = "categorical_crossentropy", dtype: Any = None, from_logits: bool = False,
                 label_smoothing: float = 0, axis: int = -1):
        super().__init__(name, dtype, from_logits=from_logits, label_smoothing=label_smoothing, axis=axis)


class SparseCategoricalCrossentropy(FunctionMetric):
    """The mean cross entropy of several classes, with labels that are their numbers.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.
        from_logits: whether predictions are logits rather than probabilities.
        ignore_class: the number that stands for no class: such samples do not count.
        axis: the axis of the classes.

    >>> import twofold as tf
    >>> round(float(tf.keras.metrics.SparseCategoricalCrossentropy()([1, 2], [[0.05, 0.95, 0], [0.1, 0.8, 0.1]])), 3)
    1.177
    """

    _direction, _FUNCTION = "down", crossentropy.sparse_categorical_crossentropy
    _SETTINGS = ("from_logits", "ignore_class", "axis")

    def __init__(self, name: str | None = "sparse_categorical_crossentropy", dtype: Any = None,
                 from_logits: bool = False, ignore_class: int | None = None, axis: int = -1):
        super().__init__(name, dtype, from_logits=from_logits, ignore_class=ignore_class, axis=axis)
