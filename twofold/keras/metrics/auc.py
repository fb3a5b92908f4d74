"""The area under the curve of right and wrong answers of yes or no, over all thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import twofold as tf
from twofold._front.api import listed

from .confusion import add_counts, evenly_spread, thresholds_between
from .metric import Metric

__all__ = ["AUC"]

_CURVES = ("ROC", "PR", "PRGAIN")
_SUMMATIONS = ("interpolation", "majoring", "minoring")
_COUNTED = ("true_positives", "false_positives", "true_negatives", "false_negatives")


class AUC(Metric):
    """The area under a curve of yes-or-no predictions, by a Riemann sum over thresholds.

    Args:
        num_thresholds: at how many thresholds from 0 to 1 the curve is computed; 2 or more.
        curve: "ROC" (true positives over false positives), "PR" (precision over recall) or "PRGAIN" (their gains).
        summation_method: the height of a strip of the sum: "interpolation" for the mean of both ends (for "PR" the
            interpolation of Davis and Goadrich, 2006), "minoring" for the lower, "majoring" for the higher.
        name, dtype: as for `tf.keras.metrics.Metric`.
        thresholds: thresholds in [0, 1], in place of `num_thresholds`; 0 and 1 are added.
        multi_label: whether each label has a curve of its own, of whose areas the result is the mean.
        num_labels: how many labels there are, with `multi_label`; by default the first batch tells.
        label_weights: a weight for each label: of its area with `multi_label`, else of its predictions.
        from_logits: whether predictions are logits.
    Raises:
        ValueError: a setting is out of its range.

    >>> import twofold as tf
    >>> metric = tf.keras.metrics.AUC(num_thresholds=3)
    >>> float(metric([0, 0, 1, 1], [0, 0.5, 0.3, 0.9]))
    0.75
    """

    _direction = "up"

    def __init__(self, num_thresholds: int = 200, curve: str = "ROC", summation_method: str = "interpolation",
                 name: str | None = None, dtype: Any = None, thresholds: Sequence[float] | None = None,
                 multi_label: bool = False, num_labels: int | None = None, label_weights: Any = None,
                 from_logits: bool = False):
        super().__init__(dtype=dtype, name=name)
        self.curve = _one_of("curve", str(curve).upper(), _CURVES)
        self.summation_method = _one_of("summation_method", str(summation_method).lower(), _SUMMATIONS)
        if num_labels and not multi_label:
            raise ValueError("`num_labels` is needed only when `multi_label` is True.")
        self._given = None if thresholds is None else sorted(listed(thresholds, "thresholds"))
        self._thresholds, self._even = _thresholds(num_thresholds, self._given)
        self.num_thresholds = len(self._thresholds)
        self.multi_label, self.num_labels = multi_label, num_labels
        self.label_weights = None if label_weights is None else tf.constant(label_weights, self._dtype)
        self._from_logits = from_logits
        self._built = False
        if not multi_label or num_labels:
            self._build((self.num_thresholds, num_labels) if num_labels else (self.num_thresholds,))

    @property
    def thresholds(self) -> list[float]:
        """The thresholds, from a little below 0 to a little above 1."""
        return list(self._thresholds)

    def _build(self, shape: Sequence[int]) -> None:
        self.true_positives = self.add_variable(shape, name="true_positives")
        self.false_positives = self.add_variable(shape, name="false_positives")
        self.true_negatives = self.add_variable(shape, name="true_negatives")
        self.false_negatives = self.add_variable(shape, name="false_negatives")
        self._built = True

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Take a batch into account.

        Args:
            y_true: labels 0 and 1, [batch] or [batch, labels].
            y_pred: probabilities, or with `from_logits` logits, of the same shape.
            sample_weight: a weight for each sample, or for each prediction.
        Raises:
            ValueError: with `multi_label` there are not two axes.
        """
        y_pred = tf.convert_to_tensor(y_pred)
        if not self._built:
            if y_pred.shape.rank != 2 or y_pred.shape[1] is None:
                raise ValueError("`y_pred` must be of shape (batch, labels) when `multi_label=True`; got "
                                 f"{y_pred.shape}.")
            self._build((self.num_thresholds, y_pred.shape[1]))
        if self._from_logits:
            y_pred = tf.sigmoid(y_pred)
        add_counts({kind: getattr(self, kind) for kind in _COUNTED}, y_true, y_pred, self._thresholds, even=self._even,
                   sample_weight=sample_weight, multi_label=self.multi_label,
                   label_weights=None if self.multi_label else self.label_weights)

    def result(self) -> Any:
        """The area."""
        if self.curve == "PR" and self.summation_method == "interpolation":
            return self._over_labels(self._interpolated_precision())
        x, y = self._points()
        left, right = y[:-1], y[1:]
        if self.summation_method == "interpolation":
            heights = (left + right) / 2.0
        else:
            heights = (tf.minimum if self.summation_method == "minoring" else tf.maximum)(left, right)
        return self._over_labels((x[:-1] - x[1:]) * heights)

    def _points(self) -> tuple[Any, Any]:
        """The curve."""
        ratio = tf.math.divide_no_nan
        tp, fp, tn, fn = (tf.convert_to_tensor(getattr(self, kind)) for kind in _COUNTED)
        if self.curve == "ROC":
            return ratio(fp, fp + tn), ratio(tp, tp + fn)
        if self.curve == "PR":
            return ratio(tp, tp + fn), ratio(tp, tp + fp)
        odds, none = ratio(tp + fn, tn + fp), tf.equal(tp, 0.0)
        recall_gain = tf.where(none, tf.zeros_like(tp), 1.0 - odds * ratio(fn, tp))
        precision_gain = tf.where(none, tf.ones_like(tp), 1.0 - odds * ratio(fp, tp))
        return tf.maximum(recall_gain, 0.0), precision_gain

    def _interpolated_precision(self) -> Any:
        """The strips below the curve of precision, between whose points true and false positives grow evenly."""
        tp, fn = tf.convert_to_tensor(self.true_positives), tf.convert_to_tensor(self.false_negatives)
        positives = tp + self.false_positives
        grown = tp[:-1] - tp[1:]
        slope = tf.math.divide_no_nan(grown, tf.nn.relu(positives[:-1] - positives[1:]))
        start = tp[1:] - slope * positives[1:]
        both = tf.logical_and(positives[:-1] > 0, positives[1:] > 0)
        times = tf.where(both, tf.math.divide_no_nan(positives[:-1], tf.nn.relu(positives[1:])), tf.ones_like(start))
        return tf.math.divide_no_nan(slope * (grown + start * tf.math.log(times)), tf.nn.relu(tp[1:] + fn[1:]))

    def _over_labels(self, strips: Any) -> Any:
        """The area of strips, with several labels the weighted mean of areas."""
        if not self.multi_label:
            return tf.reduce_sum(strips)
        areas = tf.reduce_sum(strips, axis=0)
        if self.label_weights is None:
            return tf.reduce_mean(areas)
        return tf.math.divide_no_nan(tf.reduce_sum(areas * self.label_weights), tf.reduce_sum(self.label_weights))

    def get_config(self) -> dict[str, Any]:
        weights = self.label_weights
        config = {**super().get_config(), "num_thresholds": self.num_thresholds, "curve": self.curve,
                  "summation_method": self.summation_method, "multi_label": self.multi_label,
                  "num_labels": self.num_labels, "label_weights": None if weights is None else weights.numpy().tolist(),
                  "from_logits": self._from_logits}
        return config if self._given is None else {**config, "thresholds": self._given}


def _one_of(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise ValueError(f"Invalid `{name}` argument value {value!r}. Expected one of: {list(known)}.")
    return value


def _thresholds(count: int, given: list[float] | None) -> tuple[list[float], bool]:
    """All thresholds, and whether they are evenly spread."""
    least = tf.keras.config.epsilon()
    if given is not None:
        return [0.0 - least, *given, 1.0 + least], evenly_spread([0.0, *given, 1.0])
    if count <= 1:
        raise ValueError(f"Argument `num_thresholds` must be an integer > 1; got {count}.")
    return [0.0 - least, *thresholds_between(count), 1.0 + least], True
