"""The base of losses, and how the values of a batch become one.

Which value a sample has is for the functions in `regression.py`, `crossentropy.py`, `overlap.py` and `temporal.py`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import twofold as tf
from twofold._front import replica

from .. import dtype_policies
from ..call_context import get_mask
from ..configs import config_of
from ..naming import auto_name
from ..serialization import deserialize_keras_object, serialize_keras_object

__all__ = ["Loss", "LossFunctionWrapper", "Reduction", "as_tensor", "masked_weight", "of_one_replica",
           "reduce_weighted", "same_rank"]


class Reduction:
    """The names of the ways in which the values of a batch become one.

    >>> import twofold as tf
    >>> loss = tf.keras.losses.MeanSquaredError(reduction=tf.keras.losses.Reduction.SUM)
    >>> loss([[0.0], [1.0]], [[1.0], [3.0]]).numpy()
    np.float32(5.0)
    """

    AUTO = "auto"
    NONE = "none"
    SUM = "sum"
    SUM_OVER_BATCH_SIZE = "sum_over_batch_size"

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All of them."""
        return cls.AUTO, cls.NONE, cls.SUM, cls.SUM_OVER_BATCH_SIZE


_MEANS = ("sum_over_batch_size", "mean", "mean_with_sample_weight")
_REDUCTIONS = (*_MEANS, "sum", "none", None)


class Loss:
    """The base of losses: calling one gives a number for a batch; a new one overrides `call`.

    Args:
        name: its name, by default the class's in snake case.
        reduction: what becomes of the values of a batch: "sum_over_batch_size" or "mean" divide their sum by their
            number, "mean_with_sample_weight" by the sum of the weights, "sum" adds them up, "none" or None keeps them.
        dtype: the dtype in which it is computed, or a policy; `tf.keras.config.floatx()` by default.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> class Cubic(tf.keras.losses.Loss):
    ...     def call(self, y_true, y_pred):
    ...         return tf.reduce_mean(tf.abs(y_true - y_pred) ** 3, axis=-1)
    >>> Cubic()([[0.0, 0.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 3.0]]).numpy()
    np.float32(2.5)
    """

    _converts_labels = True  # whether y_true becomes of the loss's dtype before `call`

    def __init__(self, name: str | None = None, reduction: str | None = "sum_over_batch_size", dtype: Any = None):
        if reduction == Reduction.AUTO:
            reduction = "sum_over_batch_size"
        if reduction not in _REDUCTIONS:
            raise ValueError(f"Invalid value for argument `reduction`. Expected one of {_REDUCTIONS}; got "
                             f"{reduction!r}.")
        self.name = name or auto_name(type(self))
        self.reduction = reduction
        self._dtype = dtype_policies.get(dtype or tf.keras.config.floatx()).compute_dtype

    @property
    def dtype(self) -> str:
        """The name of the dtype in which it is computed."""
        return self._dtype

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """The loss of a batch.

        Args:
            y_true: what should be: a tensor, or a structure of such.
            y_pred: what is, of the same structure.
            sample_weight: a number for each sample, or for each value that `call` gives.
        Returns:
            A scalar, or with reduction "none" a value for each sample.
        """
        dtype = tf.as_dtype(self._dtype)
        mask = get_mask(y_pred)
        y_pred = _each(y_pred, lambda value: as_tensor(value, dtype))
        y_true = _each(y_true, lambda value: as_tensor(value, dtype if self._converts_labels else None))
        values = self.call(y_true, y_pred)
        own = get_mask(values)
        if mask is not None and own is not None:
            mask = tf.logical_and(mask, own)
        return reduce_weighted(values, sample_weight, own if mask is None else mask, self.reduction, dtype)

    @abstractmethod
    def call(self, y_true: Any, y_pred: Any) -> Any:
        """The value of each sample; each loss has its own.

        Args:
            y_true, y_pred: tensors of the loss's dtype.
        Returns:
            A tensor whose first axis is the batch.
        """
        raise NotImplementedError(f"{type(self).__name__} must override `call(self, y_true, y_pred)`.")

    def get_config(self) -> dict[str, Any]:
        """The settings, as values that JSON can hold."""
        return {"name": self.name, "reduction": self.reduction}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Loss:
        """A loss from what `get_config` gave."""
        return cls(**config_of(config))


class LossFunctionWrapper(Loss):
    """A function of labels and predictions as a loss.

    Args:
        fn: a function of `y_true` and `y_pred` that gives a value for each sample.
        reduction, name, dtype: as for `tf.keras.losses.Loss`.
        **kwargs: further arguments for `fn`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> loss = tf.keras.losses.LossFunctionWrapper(tf.keras.losses.huber, delta=0.5)
    >>> loss([[0.0, 0.0]], [[2.0, 0.0]]).numpy()
    np.float32(0.4375)
    """

    #: the arguments of `fn` that configs have; None for a wrapper, whose config has the function itself
    _SETTINGS: tuple[str, ...] | None = None

    def __init__(self, fn: Callable[..., Any], reduction: str | None = "sum_over_batch_size", name: str | None = None,
                 dtype: Any = None, **kwargs: Any):
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        self.fn = fn
        self._fn_kwargs = kwargs
        for setting in self._SETTINGS or ():
            setattr(self, setting, kwargs[setting])

    def call(self, y_true: Any, y_pred: Any) -> Any:
        if hasattr(y_pred, "shape") and hasattr(y_true, "shape"):
            y_true, y_pred = same_rank(y_true, y_pred)
        return self.fn(y_true, y_pred, **self._fn_kwargs)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        if self._SETTINGS is not None:
            return {**config, **{setting: getattr(self, setting) for setting in self._SETTINGS}}
        return {**config, "fn": serialize_keras_object(self.fn), **serialize_keras_object(self._fn_kwargs)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Loss:
        """A loss from what `get_config` gave."""
        config = config_of(config)
        if isinstance(config.get("fn"), Mapping):
            config = {name: deserialize_keras_object(value) if isinstance(value, (Mapping, list)) else value
                      for name, value in config.items()}
        return cls(**config)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}({getattr(self.fn, '__name__', self.fn)}, kwargs={self._fn_kwargs})>"


def _each(value: Any, convert: Callable[[Any], Any]) -> Any:
    """A tensor of `value`; of each leaf, where it is a structure of tensors or arrays."""
    if isinstance(value, tf.Tensor):
        return convert(value)
    if isinstance(value, Mapping) or (isinstance(value, (list, tuple)) and any(hasattr(v, "shape") for v in value)):
        return tf.nest.map_structure(convert, value)
    return convert(value)


def as_tensor(value: Any, dtype: Any = None) -> Any:
    """A tensor, converted to `dtype`; without one, that of `value`."""
    if not hasattr(value, "shape") and dtype is not None and dtype.is_floating:
        try:
            return tf.convert_to_tensor(value, dtype)  # not by way of float32
        except (TypeError, ValueError):
            pass
    value = tf.convert_to_tensor(value)
    return value if dtype is None or value.dtype == dtype else tf.cast(value, dtype)


def same_rank(first: Any, second: Any, expand_rank_1: bool = True) -> tuple[Any, Any]:
    """Two tensors, of which one loses or gets a last axis of size 1 where that makes their ranks the same.

    Args:
        first, second: tensors.
        expand_rank_1: whether a vector beside a column becomes a column, rather than the column a vector.
    """
    ranks = first.ndim, second.ndim
    if ranks[0] == ranks[1]:
        return first, second
    if ranks[0] == ranks[1] + 1 and first.shape[-1] == 1:
        if ranks[1] == 1 and expand_rank_1:
            return first, tf.expand_dims(second, -1)
        return tf.squeeze(first, -1), second
    if ranks[1] == ranks[0] + 1 and second.shape[-1] == 1:
        if ranks[0] == 1 and expand_rank_1:
            return tf.expand_dims(first, -1), second
        return first, tf.squeeze(second, -1)
    return first, second


def masked_weight(sample_weight: Any, mask: Any, dtype: Any, reduction: str | None) -> Any:
    """The weights with those of masked samples 0.

    Args:
        sample_weight: weights, or None.
        mask: which samples count, or None.
        dtype: the dtype of the result.
        reduction: where it divides by the number of values, weights grow so that it is by the number of those that
            count.
    """
    if mask is None:
        return sample_weight
    counts = tf.cast(mask, dtype)
    if reduction in ("mean", "sum_over_batch_size"):
        counts = counts * tf.math.divide_no_nan(tf.cast(tf.size(counts), dtype), tf.reduce_sum(counts))
    if sample_weight is None:
        return counts
    counts, weight = same_rank(counts, as_tensor(sample_weight, dtype))
    return weight * counts


def reduce_weighted(values: Any, sample_weight: Any, mask: Any, reduction: str | None, dtype: Any) -> Any:
    """What becomes of the values of a batch: weighted, masked, and reduced to one number."""
    values = as_tensor(values, dtype)
    weight = masked_weight(sample_weight, mask, values.dtype, reduction)
    if weight is not None:
        values, weight = same_rank(values, as_tensor(weight, values.dtype))
        values = values * weight
    size = values.shape.num_elements()
    if reduction in (None, "none") or values.ndim == 0 or (values.ndim == 1 and size == 0):
        return values
    if reduction == "sum":
        return tf.reduce_sum(values)
    if reduction == "mean_with_sample_weight" and weight is not None:
        return of_one_replica(tf.math.divide_no_nan(tf.reduce_sum(values), tf.reduce_sum(weight)))
    if size:
        return of_one_replica(tf.reduce_mean(values))
    return of_one_replica(tf.math.divide_no_nan(tf.reduce_sum(values), tf.cast(tf.size(values), values.dtype)))


def of_one_replica(mean: Any) -> Any:
    """A replica's part of the mean of a loss (`tf.distribute`): gradients are summed over replicas."""
    count = replica.here.get().of
    return mean if count == 1 else mean / tf.constant(count, mean.dtype)
