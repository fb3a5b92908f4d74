"""Sums and means over all samples of all batches, and metrics that are the mean of a function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import twofold as tf

from ..call_context import get_mask
from ..configs import config_of
from ..losses.loss import as_tensor, masked_weight, same_rank
from ..serialization import deserialize_keras_object, serialize_keras_object
from .metric import Metric

__all__ = ["FunctionMetric", "Mean", "MeanMetricWrapper", "Sum"]


def _per_sample(values: Any, sample_weight: Any, reduce: Callable[..., Any], dtype: str) -> tuple[Any, Any]:
    """Values as one for each sample, times the weights, and the weights as one for each sample, or None."""
    mask = get_mask(values)
    values = as_tensor(values, tf.as_dtype(dtype))
    if mask is not None:
        sample_weight = masked_weight(sample_weight, mask, values.dtype, "sum")
    if sample_weight is not None:
        values, weight = same_rank(values, as_tensor(sample_weight, values.dtype))
        rank = weight.ndim
        values = _over_axes(values, reduce, rank)
        weight = tf.broadcast_to(weight, tf.shape(values))
        values = values * weight
        sample_weight = _over_axes(weight, reduce, 1) if rank > 1 else weight
    return _over_axes(values, reduce, 1), sample_weight


def _over_axes(values: Any, reduce: Callable[..., Any], first: int) -> Any:
    """`values` reduced over all axes from `first` on."""
    return reduce(values, axis=list(range(first, values.ndim))) if values.ndim > first else values


@functools.lru_cache(maxsize=64)
def _number(value: int, dtype: str) -> Any:
    """A batch size as a tensor: the same few in each epoch."""
    with tf.init_scope():
        return tf.constant(value, dtype)


class Sum(Metric):
    """The sum of all values.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.

    >>> import twofold as tf
    >>> total = tf.keras.metrics.Sum()
    >>> total.update_state([1, 3]); total.update_state(5)
    >>> float(total.result())
    9.0
    """

    def __init__(self, name: str | None = "sum", dtype: Any = None):
        super().__init__(dtype=dtype, name=name)
        self.total = self.add_variable((), dtype=self._dtype, name="total")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Add values.

        Args:
            values: numbers.
            sample_weight: a weight for each sample, or for each value.
        """
        values, _ = _per_sample(values, sample_weight, tf.reduce_sum, self._dtype)
        self.total.assign_add(tf.reduce_sum(values))

    def result(self) -> Any:
        """The sum."""
        return tf.identity(self.total)


class Mean(Metric):
    """The weighted mean of all values.

    Args:
        name, dtype: as for `tf.keras.metrics.Metric`.

    >>> import twofold as tf
    >>> mean = tf.keras.metrics.Mean("loss")
    >>> mean(0.0); mean(5.0); float(mean.result())
    <tf.Tensor: shape=(), dtype=float32, numpy=0.0>
    <tf.Tensor: shape=(), dtype=float32, numpy=2.5>
    2.5
    >>> mean.update_state([8, 9])
    >>> float(mean.result())
    5.5
    """

    def __init__(self, name: str | None = "mean", dtype: Any = None):
        super().__init__(dtype=dtype, name=name)
        self.total = self.add_variable((), dtype=self._dtype, name="total")
        self.count = self.add_variable((), dtype=self._dtype, name="count")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Take values into the mean.

        Args:
            values: numbers; those of one sample count as their mean.
            sample_weight: a weight for each sample, or for each value.
        """
        values, weight = _per_sample(values, sample_weight, tf.reduce_mean, self._dtype)
        count: Any = 1
        if weight is not None:
            count = tf.reduce_sum(weight)
        elif values.ndim:
            size = values.shape[0]
            count = tf.cast(tf.shape(values)[0], self._dtype) if size is None else size
            values = tf.reduce_sum(values)
        self.total.assign_add(values if weight is None else tf.reduce_sum(values))
        self.count.assign_add(_number(count, self._dtype) if isinstance(count, int) else count)

    def result(self) -> Any:
        """The mean; 0 where there are no values."""
        return tf.math.divide_no_nan(self.total, self.count)


class MeanMetricWrapper(Mean):
    """The mean of a function of labels and predictions.

    Args:
        fn: a function of `y_true` and `y_pred` that gives a value for each sample.
        name, dtype: as for `tf.keras.metrics.Metric`.
        **kwargs: further arguments for `fn`.

    >>> import twofold as tf
    >>> metric = tf.keras.metrics.MeanMetricWrapper(tf.keras.losses.mean_squared_error)
    >>> float(metric([[0.0], [0.0]], [[1.0], [3.0]]))
    5.0
    """

    def __init__(self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None, **kwargs: Any):
        super().__init__(name=name, dtype=dtype)
        self._fn = fn
        self._fn_kwargs = kwargs

    def update_state(self, y_true: Any, y_pred: Any,  # type: ignore[override]
                     sample_weight: Any = None) -> None:
        """Take a batch into the mean.

        Args:
            y_true: what should be.
            y_pred: what is.
            sample_weight: a weight for each sample, or for each value of the function.
        """
        mask = get_mask(y_pred)
        values = self._fn(y_true, y_pred, **self._fn_kwargs)
        super().update_state(values, masked_weight(sample_weight, mask, tf.as_dtype(self._dtype), "sum"))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "fn": serialize_keras_object(self._fn),
                **serialize_keras_object(self._fn_kwargs)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Any:
        """A metric from what `get_config` gave, without state."""
        config = config_of(config)
        if isinstance(config.get("fn"), Mapping):
            config = {name: deserialize_keras_object(value) if isinstance(value, (Mapping, list)) else value
                      for name, value in config.items()}
        return cls(**config)


class FunctionMetric(MeanMetricWrapper):
    """The mean of one function of the package: the base of the metrics with names of their own.

    A subclass names the function, and those of its arguments that configs have.
    """

    _FUNCTION: Callable[..., Any]
    _SETTINGS: tuple[str, ...] = ()

    def __init__(self, name: str | None = None, dtype: Any = None, **settings: Any):
        super().__init__(type(self)._FUNCTION, name, dtype, **settings)
        for setting in self._SETTINGS:
            setattr(self, setting, settings[setting])

    def get_config(self) -> dict[str, Any]:
        return {**Metric.get_config(self), **{setting: getattr(self, setting) for setting in self._SETTINGS}}
