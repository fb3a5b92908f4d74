"""Means of errors and of correlations, and the coefficient of determination."""

from __future__ import annotations

import warnings
from typing import Any

import twofold as tf
from twofold._front.api import public, same_axis

from ..keras_tensor import any_symbolic
from ..losses import regression as values
from ..losses.loss import as_tensor, same_rank
from .metric import Metric
from .reduction import FunctionMetric, Mean

__all__ = ["ConcordanceCorrelation", "CosineSimilarity", "LogCoshError", "MeanAbsoluteError",
           "MeanAbsolutePercentageError", "MeanSquaredError", "MeanSquaredLogarithmicError", "PearsonCorrelation",
           "R2Score", "RootMeanSquaredError", "concordance_correlation", "cosine_similarity", "pearson_correlation"]


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    """The cosine of the angle between two vectors: 1 for the same direction; 0 where one is zero."""
    return tf.negative(values.cosine_similarity(y_true, y_pred, axis))


@public
def pearson_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    """Pearson's correlation of two samples.

    Args:
        y_true: what should be.
        y_pred: what is, of the same shape.
        axis: the axis of the sample.
    Returns:
        A float tensor without that axis.

    >>> import twofold as tf
    >>> tf.keras.metrics.pearson_correlation([[0.0, 1.0, 2.0]], [[2.0, 4.0, 6.0]]).numpy().round(3).tolist()
    [1.0]
    """
    y_true, y_pred = values.pair(y_true, y_pred)
    axis = same_axis(axis, y_pred)
    true_mean, pred_mean = (tf.reduce_mean(x, axis=axis, keepdims=True) for x in (y_true, y_pred))
    true, pred = y_true - true_mean, y_pred - pred_mean
    spreads = [tf.sqrt(tf.reduce_mean(tf.square(x), axis=axis, keepdims=True)) for x in (true, pred)]
    return tf.reduce_mean(true / spreads[0] * (pred / spreads[1]), axis=axis)


@public
def concordance_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    """Lin's correlation of two samples, which also asks that their means and spreads agree.

    Args:
        y_true: what should be.
        y_pred: what is, of the same shape.
        axis: the axis of the sample.
    Returns:
        A float tensor without that axis.

    >>> import twofold as tf
    >>> tf.keras.metrics.concordance_correlation([[0.0, 1.0, 2.0]], [[1.0, 2.0, 3.0]]).numpy().round(3).tolist()
    [0.5709999799728394]
    """
    y_true, y_pred = values.pair(y_true, y_pred)
    axis = same_axis(axis, y_pred)
    true_mean, pred_mean = (tf.reduce_mean(x, axis=axis, keepdims=True) for x in (y_true, y_pred))
    spread = [tf.reduce_mean(tf.square(x), axis=axis, keepdims=True) for x in (y_true - true_mean, y_pred - pred_mean)]
    together = (y_true - pred_mean) * (y_pred - pred_mean)
    norm = spread[0] + spread[1] + tf.math.squared_difference(true_mean, pred_mean)
    return tf.reduce_mean(2 * together / (norm + tf.keras.config.epsilon()), axis=axis)


class MeanSquaredError(FunctionMetric):
    """The mean of squared differences.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.

    >>> import twofold as tf
    >>> round(float(tf.keras.metrics.MeanSquaredError()([[0, 1], [0, 0]], [[1, 1], [0, 0]])), 3)
    0.25
    """

    _direction, _FUNCTION = "down", values.mean_squared_error

    def __init__(self, name: str | None = "mean_squared_error", dtype: Any = None):
        super().__init__(name, dtype)


class MeanAbsoluteError(FunctionMetric):
    """The mean of absolute differences.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.

    >>> import twofold as tf
    >>> round(float(tf.keras.metrics.MeanAbsoluteError()([[0, 1], [0, 0]], [[1, 1], [0, 0]])), 3)
    0.25
    """

    _direction, _FUNCTION = "down", values.mean_absolute_error

    def __init__(self, name: str | None = "mean_absolute_error", dtype: Any = None):
        super().__init__(name, dtype)


class MeanAbsolutePercentageError(FunctionMetric):
    """100 times the mean of differences over what should be.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.

    >>> import twofold as tf
    >>> round(float(tf.keras.metrics.MeanAbsolutePercentageError()([[2.0, 4.0]], [[1.0, 5.0]])), 3)
    37.5
    """

    _direction, _FUNCTION = "down", values.mean_absolute_percentage_error

    def __init__(self, name: str | None = "mean_absolute_percentage_error", dtype: Any = None):
        super().__init__(name, dtype)


class MeanSquaredLogarithmicError(FunctionMetric):
    """The mean of squared differences of `log(y + 1)`.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.

    >>> import twofold as tf
    >>> round(float(tf.keras.metrics.MeanSquaredLogarithmicError()([[0, 1], [0, 0]], [[1, 1], [0, 0]])), 3)
    0.12
    """

    _direction, _FUNCTION = "down", values.mean_squared_logarithmic_error

    def __init__(self, name: str | None = "mean_squared_logarithmic_error", dtype: Any = None):
        super().__init__(name, dtype)


class LogCoshError(FunctionMetric):
    """The mean of `log(cosh(y_pred - y_true))`.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.

    >>> import twofold as tf
    >>> round(float(tf.keras.metrics.LogCoshError()([[0, 1], [0, 0]], [[1, 1], [0, 0]])), 3)
    0.108
    """

    _direction, _FUNCTION = "down", values.log_cosh

    def __init__(self, name: str | None = "logcosh", dtype: Any = None):
        super().__init__(name, dtype)


class CosineSimilarity(FunctionMetric):
    """The mean cosine of the angle between two vectors.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.
        axis: the axis of the vectors.

    >>> import twofold as tf
    >>> round(float(tf.keras.metrics.CosineSimilarity()([[0.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [1.0, 1.0]])), 3)
    0.5
    """

    _direction, _FUNCTION = "up", cosine_similarity
    _SETTINGS = ("axis",)

    def __init__(self, name: str | None = "cosine_similarity", dtype: Any = None, axis: int = -1):
        super().__init__(name, dtype, axis=axis)


class PearsonCorrelation(FunctionMetric):
    """The mean of Pearson's correlation.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.
        axis: the axis of the samples.

    >>> import twofold as tf
    >>> round(float(tf.keras.metrics.PearsonCorrelation()([[0.0, 1.0, 2.0]], [[2.0, 4.0, 6.0]])), 3)
    1.0
    """

    _direction, _FUNCTION = "up", pearson_correlation
    _SETTINGS = ("axis",)

    def __init__(self, name: str | None = "pearson_correlation", dtype: Any = None, axis: int = -1):
        super().__init__(name, dtype, axis=axis)


class ConcordanceCorrelation(FunctionMetric):
    """The mean of Lin's correlation.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.
        axis: the axis of the samples.

    >>> import twofold as tf
    >>> round(float(tf.keras.metrics.ConcordanceCorrelation()([[0.0, 1.0, 2.0]], [[1.0, 2.0, 3.0]])), 3)
    0.571
    """

    _direction, _FUNCTION = "up", concordance_correlation
    _SETTINGS = ("axis",)

    def __init__(self, name: str | None = "concordance_correlation", dtype: Any = None, axis: int = -1):
        super().__init__(name, dtype, axis=axis)


class RootMeanSquaredError(Mean):
    """The root of the mean of squared differences.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.

    >>> import twofold as tf
    >>> float(tf.keras.metrics.RootMeanSquaredError()([[0, 1], [0, 0]], [[1, 1], [0, 0]]))
    0.5
    """

    _direction = "down"

    def __init__(self, name: str | None = "root_mean_squared_error", dtype: Any = None):
        super().__init__(name, dtype)

    def update_state(self, y_true: Any, y_pred: Any,  # type: ignore[override]
                     sample_weight: Any = None) -> None:
        """Take a batch into the mean.

        Args:
            y_true: what should be.
            y_pred: what is, of the same shape.
            sample_weight: a weight for each sample, or for each value.
        """
        dtype = tf.as_dtype(self._dtype)
        y_true, y_pred = same_rank(as_tensor(y_true, dtype), as_tensor(y_pred, dtype))
        super().update_state(tf.math.squared_difference(y_pred, y_true), sample_weight)

    def result(self) -> Any:
        """The root of the mean."""
        return tf.sqrt(super().result())


class R2Score(Metric):
    """The coefficient of determination: 1 minus the squared errors over the squared distances from the mean.

    Args:
        class_aggregation: what becomes of the scores of several outputs: "uniform_average" for their mean,
            "variance_weighted_average", or None to keep them.
        num_regressors: how many variables the predictions are made from, to adjust the score for them; 0 for not.
        name, dtype: as for `tf.keras.metrics.Metric`.
    Raises:
        ValueError: there is no such aggregation, or `num_regressors` is negative.

    >>> import twofold as tf
    >>> round(float(tf.keras.metrics.R2Score()([[1.0], [4.0], [3.0]], [[2.0], [4.0], [4.0]])), 4)
    0.5714
    """

    _direction = "up"

    def __init__(self, class_aggregation: str | None = "uniform_average", num_regressors: int = 0,
                 name: str | None = "r2_score", dtype: Any = None):
        super().__init__(dtype=dtype, name=name)
        if class_aggregation not in (None, "uniform_average", "variance_weighted_average"):
            raise ValueError("`class_aggregation` must be None, 'uniform_average' or 'variance_weighted_average'; got "
                             f"{class_aggregation!r}.")
        if num_regressors < 0:
            raise ValueError(f"`num_regressors` must be 0 or more; got {num_regressors}.")
        self.class_aggregation, self.num_regressors = class_aggregation, num_regressors
        self.num_samples = self.add_variable((), name="num_samples")
        self._built = False

    def _build(self, y_true: Any, y_pred: Any) -> None:
        if y_true.shape.rank != 2 or y_pred.shape.rank != 2 or y_pred.shape[-1] is None:
            raise ValueError("R2Score expects inputs of shape (batch_size, output_dim); got "
                             f"y_true.shape={y_true.shape} and y_pred.shape={y_pred.shape}.")
        shape = (y_pred.shape[-1],)
        self.squared_sum = self.add_variable(shape, name="squared_sum")
        self.sum = self.add_variable(shape, name="sum")
        self.total_mse = self.add_variable(shape, name="residual")
        self.count = self.add_variable(shape, name="count")
        self._built = True

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Take a batch into account.

        Args:
            y_true: what should be, [batch, outputs].
            y_pred: what is, of the same shape.
            sample_weight: a weight for each sample, or for each value.
        Raises:
            ValueError: the shapes are others.
        """
        if any_symbolic((y_true, y_pred, sample_weight), {}):
            raise TypeError("R2Score takes batches of values; a KerasTensor has none.")
        dtype = tf.as_dtype(self._dtype)
        y_true, y_pred = same_rank(as_tensor(y_true, dtype), as_tensor(y_pred, dtype))
        if not self._built:
            self._build(y_true, y_pred)
        weight = as_tensor(1.0 if sample_weight is None else sample_weight, dtype)
        if weight.shape.rank == 1:
            weight = tf.expand_dims(weight, 1)
        weight = tf.broadcast_to(weight, tf.shape(y_true))
        weighted = y_true * weight
        error = tf.math.squared_difference(y_true, y_pred) * weight
        sums = [(self.sum, weighted), (self.squared_sum, y_true * weighted), (self.total_mse, error),
                (self.count, weight)]
        added = [(variable, tf.reduce_sum(values, axis=0)) for variable, values in sums]
        for variable, value in added:
            tf.ensure_shape(value, variable.shape)  # before the first of them moves
        for variable, value in added:
            variable.assign_add(value)
        self.num_samples.assign_add(tf.cast(tf.size(y_true), self.num_samples.dtype))

    def result(self) -> Any:
        """The score, or the scores of all outputs."""
        mean = self.sum / self.count
        total = self.squared_sum - self.sum * mean
        scores = 1 - self.total_mse / total
        scores = tf.where(tf.math.is_inf(scores), tf.zeros_like(scores), scores)
        if self.class_aggregation == "uniform_average":
            scores = tf.reduce_mean(scores)
        elif self.class_aggregation == "variance_weighted_average":
            scores = tf.reduce_sum(total * scores) / tf.reduce_sum(total)
        return self._adjusted(scores) if self.num_regressors else scores

    def _adjusted(self, scores: Any) -> Any:
        """The scores, lowered for the number of variables that predictions are made from."""
        left = tf.cast(self.num_samples, scores.dtype) - self.num_regressors - 1.0
        if tf.executing_eagerly() and left <= 0:
            warnings.warn(f"R2Score: {self.num_regressors} regressors are too many for {int(self.num_samples)} values; "
                          "the score is not adjusted.", stacklevel=3)
        enough = left > 0
        adjusted = 1.0 - (1.0 - scores) * (self.num_samples - 1.0) / tf.where(enough, left, tf.ones_like(left))
        return tf.where(enough, adjusted, scores)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "class_aggregation": self.class_aggregation,
                "num_regressors": self.num_regressors}
