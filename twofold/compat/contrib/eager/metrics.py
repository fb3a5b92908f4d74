"""`tfe.metrics`: Keras's metrics with the older dtype, float64."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.namespace import publish

__all__ = ["Accuracy", "Mean"]


class Mean(tf.keras.metrics.Mean):
    """The mean of all values that it was called with.

    Args:
        name: its name.
        dtype: of the result.
        use_global_variables: accepted, without effect.

    >>> import twofold.contrib.eager as tfe
    >>> mean = tfe.metrics.Mean("loss")
    >>> _ = mean(0), mean(5)
    >>> mean.result()
    <tf.Tensor: shape=(), dtype=float64, numpy=2.5>
    """

    def __init__(self, name: str = "mean", dtype: Any = tf.float64, use_global_variables: bool = False):
        super().__init__(name=name, dtype=dtype)


class Accuracy(tf.keras.metrics.Accuracy):
    """How often predictions equal labels.

    Args:
        name: its name.
        dtype: of the result.

    >>> import twofold.contrib.eager as tfe
    >>> accuracy = tfe.metrics.Accuracy()
    >>> _ = accuracy([1, 2], [1, 3])
    >>> float(accuracy.result())
    0.5
    """

    def __init__(self, name: str = "accuracy", dtype: Any = tf.float64):
        super().__init__(name=name, dtype=dtype)


publish(__name__)
