"""Counting right and wrong answers of yes or no, at one threshold or at many, and what is computed from the counts.

`add_counts` does the counting for all metrics of the kind. Where thresholds are evenly spread over [0, 1], each
prediction is put in the bucket between two of them, and sums over buckets give the counts of all thresholds at once;
else each prediction is compared with each threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import twofold as tf

from ..losses.loss import as_tensor, same_rank
from .metric import Metric

__all__ = ["FalseNegatives", "FalsePositives", "Precision", "PrecisionAtRecall", "Recall", "RecallAtPrecision",
           "SensitivityAtSpecificity", "SpecificityAtSensitivity", "TrueNegatives", "TruePositives", "add_counts",
           "evenly_spread"]

_LEAST = -1e10  # what scores that do not count become

#: the counts there are, by the names of their variables: is the label yes, and is the prediction
_KINDS = {"true_positives": (True, True), "false_positives": (False, True), "false_negatives": (True, False),
          "true_negatives": (False, False)}


def evenly_spread(thresholds: Sequence[float]) -> bool:
    """Whether thresholds go from 0 to 1 in equal steps, three or more of them."""
    n = len(thresholds)
    return n >= 3 and bool(np.allclose(thresholds, np.arange(n, dtype=np.float32) / (n - 1),
                                       atol=tf.keras.config.epsilon()))


def add_counts(variables: dict[str, tf.Variable], y_true: Any, y_pred: Any, thresholds: Sequence[float], *,
               even: bool, sample_weight: Any = None, top_k: int | None = None, class_id: int | None = None,
               multi_label: bool = False, label_weights: Any = None) -> None:
    """Add the counts of a batch to variables.

    Args:
        variables: the variables, by the names in `_KINDS`; of shape [thresholds], or with `multi_label` [thresholds,
            labels].
        y_true: labels, 0 for no and others for yes.
        y_pred: predictions, of the same shape or but for a last axis of size 1.
        thresholds: above each a prediction is yes.
        even: whether they are evenly spread over [0, 1].
        sample_weight: a weight for each sample, or for each prediction.
        top_k: how many of the highest predictions of a sample count; the others are no.
        class_id: the one class that counts.
        multi_label: whether each label has counts of its own.
        label_weights: a weight for each label.
    Raises:
        ValueError: `class_id` is given for predictions that are one number for each sample.
    """
    dtype = next(iter(variables.values())).dtype
    y_pred, y_true = same_rank(as_tensor(y_pred, dtype), as_tensor(y_true, dtype))
    weight = None
    if sample_weight is not None:
        weight = tf.expand_dims(as_tensor(sample_weight, dtype), -1)
        _, weight = same_rank(y_true, weight, expand_rank_1=False)
    if top_k is not None:
        y_pred = _highest_only(y_pred, top_k)
    if class_id is not None:
        if y_pred.shape.rank == 1:
            raise ValueError("When class_id is given, y_pred must be of shape (samples, classes); got "
                             f"{y_pred.shape}.")
        y_true, y_pred = y_true[..., class_id : class_id + 1], y_pred[..., class_id : class_id + 1]
    if label_weights is not None:
        label_weights = as_tensor(label_weights, dtype)
        weight = label_weights if weight is None else weight * label_weights
    if weight is None:
        weight = tf.ones((), dtype)
    weight = tf.broadcast_to(weight, tf.shape(y_pred))
    yes = tf.cast(tf.not_equal(y_true, 0), dtype)
    count = _in_buckets if even else _by_comparing
    counts = count(variables, tf.broadcast_to(yes, tf.shape(y_pred)), y_pred, weight, thresholds, multi_label)
    for kind, variable in variables.items():
        variable.assign_add(counts[kind])


def _highest_only(y_pred: Any, k: int) -> Any:
    """Predictions of which all but the `k` highest of a sample are very low."""
    _, places = tf.math.top_k(y_pred, k)
    mask = tf.reduce_sum(tf.one_hot(places, y_pred.shape[-1], dtype=y_pred.dtype), axis=-2)
    return y_pred * mask + _LEAST * (1 - mask)


def _in_buckets(kinds: Any, yes: Any, y_pred: Any, weight: Any, thresholds: Sequence[float],
                multi_label: bool) -> dict[str, Any]:
    n = len(thresholds)
    labels = y_pred.shape[-1] if multi_label else 1
    y_pred = tf.clip_by_value(y_pred, 0.0, 1.0)
    bucket = tf.cast(tf.math.ceil(y_pred * float(n - 1)), tf.int32) - 1  # -1: above no threshold
    if thresholds[0] < 0.0:
        bucket = tf.maximum(bucket, 0)
    if multi_label:
        bucket = tf.where(bucket < 0, bucket, bucket + n * tf.range(labels))
    bucket = tf.reshape(bucket, [-1])

    def above(values: Any) -> Any:
        """The sums of values above each threshold."""
        sums = tf.math.unsorted_segment_sum(tf.reshape(values, [-1]), bucket, n * labels)
        sums = tf.cumsum(tf.reshape(sums, [labels, n]), axis=1, reverse=True)
        return tf.transpose(sums) if multi_label else tf.reshape(sums, [n])

    right, wrong = yes * weight, (1.0 - yes) * weight
    counts = {"true_positives": above(right), "false_positives": above(wrong)}
    axis = 0 if multi_label else None
    if "false_negatives" in kinds:
        counts["false_negatives"] = tf.reduce_sum(right, axis=axis) - counts["true_positives"]
    if "true_negatives" in kinds:
        counts["true_negatives"] = tf.reduce_sum(wrong, axis=axis) - counts["false_positives"]
    return counts


def _by_comparing(kinds: Any, yes: Any, y_pred: Any, weight: Any, thresholds: Sequence[float],
                  multi_label: bool) -> dict[str, Any]:
    shape = [1, -1, y_pred.shape[-1]] if multi_label else [1, -1]
    is_yes = tf.reshape(yes, shape) > 0
    weight = tf.reshape(weight, shape)
    limits = tf.reshape(tf.constant(list(thresholds), y_pred.dtype), [-1, *([1] * (len(shape) - 1))])
    said = tf.reshape(y_pred, shape) > limits
    zero = tf.zeros((), weight.dtype)

    def total(of_yes: bool, of_said: bool) -> Any:
        both = tf.logical_and(is_yes if of_yes else tf.logical_not(is_yes), said if of_said else tf.logical_not(said))
        return tf.reduce_sum(tf.where(both, weight, zero), axis=1)

    return {kind: total(*_KINDS[kind]) for kind in kinds}


def _as_list(thresholds: Any, default: float) -> list[float]:
    """Thresholds as a list.

    Raises:
        ValueError: one is not in [0, 1].
    """
    if thresholds is None:
        return [default]
    listed = list(thresholds) if isinstance(thresholds, (list, tuple, np.ndarray)) else [thresholds]
    wrong = [t for t in listed if t is None or not 0 <= t <= 1]
    if wrong:
        raise ValueError(f"Threshold values must be in [0, 1]; got {wrong}.")
    return listed


_MOST_THRESHOLDS = 1 << 24


def thresholds_between(count: int) -> list[float]:
    """`count` evenly spread thresholds, without 0 and 1, the first and the last.

    Raises:
        ValueError: there are more than memory can count at.
    """
    if count > _MOST_THRESHOLDS:
        raise ValueError(f"Argument `num_thresholds` must be at most {_MOST_THRESHOLDS}; got {count}.")
    return [(i + 1) * 1.0 / (count - 1) for i in range(count - 2)]


class _Counts(Metric):
    """A metric of some counts at thresholds, with a class or the highest predictions alone where that is asked for."""

    _COUNTED: tuple[str, ...] = ()

    true_positives: Any
    false_positives: Any
    true_negatives: Any
    false_negatives: Any

    def __init__(self, thresholds: Any, top_k: int | None, class_id: int | None, name: str | None, dtype: Any):
        super().__init__(dtype=dtype, name=name)
        self.init_thresholds, self.top_k, self.class_id = thresholds, top_k, class_id
        self.thresholds = _as_list(thresholds, 0.5 if top_k is None else _LEAST)
        self._even = evenly_spread(self.thresholds)
        for kind in self._COUNTED:
            setattr(self, kind, self.add_variable((len(self.thresholds),), name=kind))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Count a batch.

        Args:
            y_true: labels, 0 for no and others for yes.
            y_pred: predictions, of the same shape.
            sample_weight: a weight for each sample, or for each prediction.
        """
        add_counts({kind: getattr(self, kind) for kind in self._COUNTED}, y_true, y_pred, self.thresholds,
                   even=self._even, sample_weight=sample_weight, top_k=self.top_k, class_id=self.class_id)

    def _one_or_all(self, values: Any) -> Any:
        """The value of the one threshold, or those of all."""
        return values[0] if len(self.thresholds) == 1 else tf.identity(values)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "thresholds": self.init_thresholds, "top_k": self.top_k,
                "class_id": self.class_id}


class _Count(_Counts):
    """A metric that is a count."""

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: Any = None):
        Metric.__init__(self, dtype=dtype, name=name)
        self.init_thresholds, self.top_k, self.class_id = thresholds, None, None
        self.thresholds = _as_list(thresholds, 0.5)
        self._even = evenly_spread(self.thresholds)
        self.accumulator = self.add_variable((len(self.thresholds),), name="accumulator")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Count a batch.

        Args:
            y_true: labels, 0 for no and others for yes.
            y_pred: predictions, of the same shape.
            sample_weight: a weight for each sample, or for each prediction.
        """
        add_counts({self._COUNTED[0]: self.accumulator}, y_true, y_pred, self.thresholds, even=self._even,
                   sample_weight=sample_weight)

    def result(self) -> Any:
        """The count, or those at all thresholds."""
        return self._one_or_all(self.accumulator)

    def get_config(self) -> dict[str, Any]:
        return {**Metric.get_config(self), "thresholds": self.init_thresholds}


def _ratio(part: Any, other: Any) -> Any:
    """`part / (part + other)`, and 0 where both are 0."""
    return tf.math.divide_no_nan(part, part + other)


class TruePositives(_Count):
    """How often yes is predicted and right.

    Args:
        thresholds: a number in [0, 1] above which a prediction is yes, or a list of such; 0.5 by default.
        name, dtype: as for `tf.keras.metrics.Metric`.
    Raises:
        ValueError: a threshold is not in [0, 1].

    >>> import twofold as tf
    >>> float(tf.keras.metrics.TruePositives()([0, 1, 0, 1], [0.1, 0.8, 0.6, 0.9]))
    2.0
    """

    _COUNTED = ("true_positives",)


class FalsePositives(_Count):
    """How often yes is predicted and wrong.

    Args:
        thresholds: a number in [0, 1] above which a prediction is yes, or a list of such; 0.5 by default.
        name, dtype: as for `tf.keras.metrics.Metric`.
    Raises:
        ValueError: a threshold is not in [0, 1].

    >>> import twofold as tf
    >>> float(tf.keras.metrics.FalsePositives()([0, 1, 0, 1], [0.1, 0.8, 0.6, 0.9]))
    1.0
    """

    _COUNTED = ("false_positives",)


class TrueNegatives(_Count):
    """How often no is predicted and right.

    Args:
        thresholds: a number in [0, 1] above which a prediction is yes, or a list of such; 0.5 by default.
        name, dtype: as for `tf.keras.metrics.Metric`.
    Raises:
        ValueError: a threshold is not in [0, 1].

    >>> import twofold as tf
    >>> float(tf.keras.metrics.TrueNegatives()([0, 1, 0, 1], [0.1, 0.8, 0.6, 0.9]))
    1.0
    """

    _COUNTED = ("true_negatives",)


class FalseNegatives(_Count):
    """How often no is predicted and wrong.

    Args:
        thresholds: a number in [0, 1] above which a prediction is yes, or a list of such; 0.5 by default.
        name, dtype: as for `tf.keras.metrics.Metric`.
    Raises:
        ValueError: a threshold is not in [0, 1].

    >>> import twofold as tf
    >>> float(tf.keras.metrics.FalseNegatives()([0, 1, 0, 1], [0.1, 0.8, 0.6, 0.9]))
    0.0
    """

    _COUNTED = ("false_negatives",)


class Precision(_Counts):
    """Which part of what is predicted as yes is right.

    Args:
        thresholds: a number in [0, 1] above which a prediction is yes, or a list of such; 0.5 by default.
        top_k: how many of the highest predictions of a sample are yes; then there is no threshold by default.
        class_id: the one class that counts; by default all.
        name, dtype: as for `tf.keras.metrics.Metric`.
    Raises:
        ValueError: a threshold is not in [0, 1].

    >>> import twofold as tf
    >>> round(float(tf.keras.metrics.Precision()([0, 1, 0, 1], [0.1, 0.8, 0.6, 0.9])), 4)
    0.6667
    """

    _direction, _COUNTED = "up", ("true_positives", "false_positives")

    def __init__(self, thresholds: Any = None, top_k: int | None = None, class_id: int | None = None,
                 name: str | None = None, dtype: Any = None):
        super().__init__(thresholds, top_k, class_id, name, dtype)

    def result(self) -> Any:
        """The part, or those at all thresholds."""
        return self._one_or_all(_ratio(self.true_positives, self.false_positives))


class Recall(_Counts):
    """Which part of what is yes is predicted so.

    Args:
        thresholds: a number in [0, 1] above which a prediction is yes, or a list of such; 0.5 by default.
        top_k: how many of the highest predictions of a sample are yes; then there is no threshold by default.
        class_id: the one class that counts; by default all.
        name, dtype: as for `tf.keras.metrics.Metric`.
    Raises:
        ValueError: a threshold is not in [0, 1].

    >>> import twofold as tf
    >>> round(float(tf.keras.metrics.Recall()([0, 1, 0, 1], [0.1, 0.8, 0.6, 0.9])), 4)
    1.0
    """

    _direction, _COUNTED = "up", ("true_positives", "false_negatives")

    def __init__(self, thresholds: Any = None, top_k: int | None = None, class_id: int | None = None,
                 name: str | None = None, dtype: Any = None):
        super().__init__(thresholds, top_k, class_id, name, dtype)

    def result(self) -> Any:
        """The part, or those at all thresholds."""
        return self._one_or_all(_ratio(self.true_positives, self.false_negatives))


class _AtConstraint(_Counts):
    """The best value of one ratio at the thresholds where another is large enough."""

    _direction, _COUNTED = "up", ("true_positives", "false_positives", "true_negatives", "false_negatives")
    _CONSTRAINT = ""

    def __init__(self, value: float, num_thresholds: int, class_id: int | None, name: str | None, dtype: Any):
        if not 0 <= value <= 1:
            raise ValueError(f"Argument `{self._CONSTRAINT}` must be in the range [0, 1]; got {value}.")
        if num_thresholds <= 0:
            raise ValueError(f"Argument `num_thresholds` must be an integer > 0; got {num_thresholds}.")
        inner = thresholds_between(num_thresholds)
        super().__init__([0.5] if num_thresholds == 1 else [0.0, *inner, 1.0], None, class_id, name, dtype)
        self._even = num_thresholds > 1
        self.value, self.num_thresholds = value, num_thresholds
        setattr(self, self._CONSTRAINT, value)

    def _ratios(self) -> dict[str, Any]:
        tp, fp = self.true_positives, self.false_positives
        tn, fn = self.true_negatives, self.false_negatives
        return {"recall": _ratio(tp, fn), "precision": _ratio(tp, fp), "sensitivity": _ratio(tp, fn),
                "specificity": _ratio(tn, fp)}

    _WANTED = ""

    def result(self) -> Any:
        """The best value; 0 where the other is nowhere large enough."""
        ratios = self._ratios()
        wanted, constrained = ratios[self._WANTED], ratios[self._CONSTRAINT]
        return tf.reduce_max(tf.where(constrained >= self.value, wanted, tf.zeros_like(wanted)))

    def get_config(self) -> dict[str, Any]:
        return {**Metric.get_config(self), "class_id": self.class_id, "num_thresholds": self.num_thresholds,
                self._CONSTRAINT: self.value}


class SensitivityAtSpecificity(_AtConstraint):
    """The best sensitivity at a threshold where the specificity is at least a value.

    Sensitivity is the part of yes that is predicted so, specificity that of no.

    Args:
        specificity: the value, in [0, 1].
        num_thresholds: at how many thresholds from 0 to 1 they are computed.
        class_id: the one class that counts; by default all.
        name, dtype: as for `tf.keras.metrics.Metric`.
    Raises:
        ValueError: the value is not in [0, 1], or there are no thresholds.

    >>> import twofold as tf
    >>> metric = tf.keras.metrics.SensitivityAtSpecificity(0.5)
    >>> round(float(metric([0, 0, 0, 1, 1], [0.0, 0.3, 0.8, 0.3, 0.8])), 4)
    0.5
    """

    _WANTED, _CONSTRAINT = "sensitivity", "specificity"

    def __init__(self, specificity: float, num_thresholds: int = 200, class_id: int | None = None,
                 name: str | None = None, dtype: Any = None):
        super().__init__(specificity, num_thresholds, class_id, name, dtype)


class SpecificityAtSensitivity(_AtConstraint):
    """The best specificity at a threshold where the sensitivity is at least a value.

    Sensitivity is the part of yes that is predicted so, specificity that of no.

    Args:
        sensitivity: the value, in [0, 1].
        num_thresholds: at how many thresholds from 0 to 1 they are computed.
        class_id: the one class that counts; by default all.
        name, dtype: as for `tf.keras.metrics.Metric`.
    Raises:
        ValueError: the value is not in [0, 1], or there are no thresholds.

    >>> import twofold as tf
    >>> metric = tf.keras.metrics.SpecificityAtSensitivity(0.5)
    >>> round(float(metric([0, 0, 0, 1, 1], [0.0, 0.3, 0.8, 0.3, 0.8])), 4)
    0.6667
    """

    _WANTED, _CONSTRAINT = "specificity", "sensitivity"

    def __init__(self, sensitivity: float, num_thresholds: int = 200, class_id: int | None = None,
                 name: str | None = None, dtype: Any = None):
        super().__init__(sensitivity, num_thresholds, class_id, name, dtype)


class PrecisionAtRecall(_AtConstraint):
    """The best precision at a threshold where the recall is at least a value.

    Precision is the part of predicted yes that is right, recall the part of yes that is predicted so.

    Args:
        recall: the value, in [0, 1].
        num_thresholds: at how many thresholds from 0 to 1 they are computed.
        class_id: the one class that counts; by default all.
        name, dtype: as for `tf.keras.metrics.Metric`.
    Raises:
        ValueError: the value is not in [0, 1], or there are no thresholds.

    >>> import twofold as tf
    >>> metric = tf.keras.metrics.PrecisionAtRecall(0.5)
    >>> round(float(metric([0, 0, 0, 1, 1], [0.0, 0.3, 0.8, 0.3, 0.8])), 4)
    0.5
    """

    _WANTED, _CONSTRAINT = "precision", "recall"

    def __init__(self, recall: float, num_thresholds: int = 200, class_id: int | None = None,
                 name: str | None = None, dtype: Any = None):
        super().__init__(recall, num_thresholds, class_id, name, dtype)


class RecallAtPrecision(_AtConstraint):
    """The best recall at a threshold where the precision is at least a value.

    Precision is the part of predicted yes that is right, recall the part of yes that is predicted so.

    Args:
        precision: the value, in [0, 1].
        num_thresholds: at how many thresholds from 0 to 1 they are computed.
        class_id: the one class that counts; by default all.
        name, dtype: as for `tf.keras.metrics.Metric`.
    Raises:
        ValueError: the value is not in [0, 1], or there are no thresholds.

    >>> import twofold as tf
    >>> metric = tf.keras.metrics.RecallAtPrecision(0.5)
    >>> round(float(metric([0, 0, 0, 1, 1], [0.0, 0.3, 0.8, 0.3, 0.8])), 4)
    1.0
    """

    _WANTED, _CONSTRAINT = "recall", "precision"

    def __init__(self, precision: float, num_thresholds: int = 200, class_id: int | None = None,
                 name: str | None = None, dtype: Any = None):
        super().__init__(precision, num_thresholds, class_id, name, dtype)
