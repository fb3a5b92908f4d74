"""F scores: harmonic means of precision and recall, for each class or together."""

from __future__ import annotations

from typing import Any

import twofold as tf

from ..losses.loss import as_tensor
from .metric import Metric

__all__ = ["F1Score", "FBetaScore"]


class FBetaScore(Metric):
    """`(1 + beta**2) * precision * recall / (beta**2 * precision + recall)`.

    Args:
        average: what becomes of the scores of the classes: None keeps them, "macro" is their mean, "weighted" their
            mean by how many samples are of each class, and "micro" is one score of all predictions.
        beta: how much more recall counts than precision; positive.
        threshold: above it a prediction is yes, in (0, 1]; by default the highest prediction of a sample is.
        name, dtype: as for `tf.keras.metrics.Metric`.
    Raises:
        ValueError: a setting is out of its range.

    >>> import twofold as tf
    >>> metric = tf.keras.metrics.FBetaScore(beta=2.0, threshold=0.5)
    >>> scores = metric([[1, 1, 1], [1, 0, 0], [1, 1, 0]], [[0.2, 0.6, 0.7], [0.2, 0.6, 0.6], [0.6, 0.8, 0.0]])
    >>> print(scores.numpy().round(4))
    [0.3846 0.9091 0.8333]
    """

    _direction = "up"

    def __init__(self, average: str | None = None, beta: float = 1.0, threshold: float | None = None,
                 name: str | None = "fbeta_score", dtype: Any = None):
        super().__init__(dtype=dtype, name=name)
        if average not in (None, "micro", "macro", "weighted"):
            raise ValueError(f"`average` must be None, 'micro', 'macro' or 'weighted'; got {average!r}.")
        if not isinstance(beta, float) or beta <= 0.0:
            raise ValueError(f"`beta` must be a float above 0; got {beta!r}.")
        if threshold is not None and not (isinstance(threshold, float) and 0.0 < threshold <= 1.0):
            raise ValueError(f"`threshold` must be a float above 0 and up to 1; got {threshold!r}.")
        self.average, self.beta, self.threshold = average, beta, threshold
        self._built = False

    def _build(self, y_true: Any, y_pred: Any) -> None:
        if y_pred.shape[-1] is None:
            raise ValueError(f"{type(self).__name__} must know how many classes there are; got "
                             f"y_pred.shape={y_pred.shape}.")
        shape = () if self.average == "micro" else (y_pred.shape[-1],)
        self.true_positives = self.add_variable(shape, dtype=self._dtype, name="true_positives")
        self.false_positives = self.add_variable(shape, dtype=self._dtype, name="false_positives")
        self.false_negatives = self.add_variable(shape, dtype=self._dtype, name="false_negatives")
        self.intermediate_weights = self.add_variable(shape, dtype=self._dtype, name="intermediate_weights")
        self._built = True

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Take a batch into account.

        Args:
            y_true: one-hot labels, or several for each sample, [batch, classes].
            y_pred: probabilities, of the same shape.
            sample_weight: a weight for each sample.
        Raises:
            ValueError: there are not two axes.
        """
        dtype = tf.as_dtype(self._dtype)
        y_true, y_pred = as_tensor(y_true, dtype), as_tensor(y_pred, dtype)
        if y_pred.shape.rank != 2 or y_true.shape.rank != 2:
            raise ValueError(f"{type(self).__name__} expects inputs of shape (batch_size, output_dim); got "
                             f"y_true.shape={y_true.shape} and y_pred.shape={y_pred.shape}.")
        if not self._built:
            self._build(y_true, y_pred)
        if self.threshold is None:
            highest = tf.reduce_max(y_pred, axis=-1, keepdims=True)
            said = tf.logical_and(y_pred >= highest, tf.abs(y_pred) > 1e-9)
        else:
            said = y_pred > self.threshold
        said = tf.cast(said, dtype)
        weight = None if sample_weight is None else tf.expand_dims(as_tensor(sample_weight, dtype), 1)

        def total(values: Any) -> Any:
            values = values if weight is None else values * weight
            return tf.reduce_sum(values, axis=None if self.average == "micro" else 0)

        totals = [total(values) for values in (said * y_true, said * (1 - y_true), (1 - said) * y_true, y_true)]
        variables = (self.true_positives, self.false_positives, self.false_negatives, self.intermediate_weights)
        for variable, value in zip(variables, totals, strict=True):  # once all of them are right
            variable.assign_add(value)

    def result(self) -> Any:
        """The score, or the scores of all classes."""
        least = tf.keras.config.epsilon()
        right = self.true_positives
        precision = right / (right + self.false_positives + least)
        recall = right / (right + self.false_negatives + least)
        scores = precision * recall / (self.beta**2 * precision + recall + least) * (1 + self.beta**2)
        if self.average == "weighted":
            return tf.reduce_sum(scores * (self.intermediate_weights
                                           / (tf.reduce_sum(self.intermediate_weights) + least)))
        return scores if self.average is None else tf.reduce_mean(scores)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "average": self.average, "beta": self.beta, "threshold": self.threshold}


class F1Score(FBetaScore):
    """The harmonic mean of precision and recall.

    Args:
        average: what becomes of the scores of the classes: None keeps them, "macro" is their mean, "weighted" their
            mean by how many samples are of each class, and "micro" is one score of all predictions.
        threshold: above it a prediction is yes, in (0, 1]; by default the highest prediction of a sample is.
        name, dtype: as for `tf.keras.metrics.Metric`.
    Raises:
        ValueError: a setting is out of its range.

    >>> import twofold as tf
    >>> metric = tf.keras.metrics.F1Score(threshold=0.5)
    >>> scores = metric([[1, 1, 1], [1, 0, 0], [1, 1, 0]], [[0.2, 0.6, 0.7], [0.2, 0.6, 0.6], [0.6, 0.8, 0.0]])
    >>> print(scores.numpy().round(4))
    [0.5    0.8    0.6667]
    """

    def __init__(self, average: str | None = None, threshold: float | None = None, name: str | None = "f1_score",
                 dtype: Any = None):
        super().__init__(average, 1.0, threshold, name, dtype)

    def get_config(self) -> dict[str, Any]:
        return {key: value for key, value in super().get_config().items() if key != "beta"}
