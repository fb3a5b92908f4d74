"""Intersection over union: how well predicted regions cover those that should be, class by class."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import twofold as tf
from twofold._front.api import ANY, ints

from ..losses.loss import as_tensor
from .metric import Metric

__all__ = ["BinaryIoU", "IoU", "MeanIoU", "OneHotIoU", "OneHotMeanIoU"]


class IoU(Metric):
    """The mean over some classes of `true positives / (true positives + false positives + false negatives)`.

    Args:
        num_classes: how many classes there are.
        target_class_ids: the classes whose mean it is; those that do not occur do not count.
        name, dtype: as for `tf.keras.metrics.Metric`; counts are int64 by default.
        ignore_class: the label that stands for no class.
        sparse_y_true: whether labels are numbers of classes, rather than a score for each.
        sparse_y_pred: whether predictions are numbers of classes, rather than a score for each.
        axis: the axis of the scores.
    Raises:
        ValueError: there is no such class.

    >>> import twofold as tf
    >>> metric = tf.keras.metrics.IoU(num_classes=2, target_class_ids=[0])
    >>> round(float(metric([0, 0, 1, 1], [0, 1, 0, 1])), 4)
    0.3333
    """

    _direction = "up"

    def __init__(self, num_classes: int, target_class_ids: Sequence[int], name: str | None = None, dtype: Any = None,
                 ignore_class: int | None = None, sparse_y_true: bool = True, sparse_y_pred: bool = True,
                 axis: int = -1):
        super().__init__(dtype=dtype or "int64", name=name)
        chosen = ints(target_class_ids, "target_class_ids", ANY)
        if max(chosen, default=-1) >= num_classes:
            raise ValueError(f"Target class id {max(chosen)} is out of range, which is [0, {num_classes}).")
        self.num_classes, self.target_class_ids = num_classes, list(chosen)
        self.ignore_class, self.axis = ignore_class, axis
        self.sparse_y_true, self.sparse_y_pred = sparse_y_true, sparse_y_pred
        self.total_cm = self.add_variable((num_classes, num_classes), dtype=self._dtype,
                                          name="total_confusion_matrix")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Take a batch into the confusion matrix.

        Args:
            y_true: labels.
            y_pred: predictions; neither counts where one is no class.
            sample_weight: a weight for each value.
        """
        y_true = self._classes(y_true, self.sparse_y_true)
        y_pred = self._classes(y_pred, self.sparse_y_pred)
        weight = self._weight(sample_weight, y_true)
        counts = tf.logical_and(self._is_class(y_true), self._is_class(y_pred))
        if self.ignore_class is not None:
            counts = tf.logical_and(counts, tf.not_equal(y_true, self.ignore_class))
        cell = tf.where(counts, y_true * self.num_classes + y_pred, tf.constant(-1, tf.int64))
        sums = tf.math.unsorted_segment_sum(weight, cell, self.num_classes**2)
        self.total_cm.assign_add(tf.reshape(sums, [self.num_classes, self.num_classes]))

    def _classes(self, values: Any, sparse: bool) -> Any:
        """Numbers of classes, in one row."""
        values = tf.convert_to_tensor(values)
        return tf.reshape(tf.cast(values if sparse else tf.argmax(values, axis=self.axis), tf.int64), [-1])

    def _is_class(self, values: Any) -> Any:
        return tf.logical_and(values >= 0, values < self.num_classes)

    def _weight(self, sample_weight: Any, like: Any) -> Any:
        dtype = tf.as_dtype(self._dtype)
        if sample_weight is None:
            return tf.ones(tf.shape(like), dtype)
        weight = tf.convert_to_tensor(sample_weight)
        if weight.dtype.is_floating and dtype.is_integer:
            warnings.warn(f"{type(self).__name__}: the weights are floats and are rounded towards 0, for the counts "
                          f"are {dtype.name}; make the metric with dtype='float32'.", stacklevel=3)
        weight = as_tensor(weight, dtype)
        return tf.broadcast_to(tf.reshape(weight, [-1]) if weight.shape.rank > 1 else weight, tf.shape(like))

    def result(self) -> Any:
        """The mean."""
        matrix = self.total_cm
        right = tf.linalg.diag_part(matrix)
        union = tf.reduce_sum(matrix, axis=0) + tf.reduce_sum(matrix, axis=1) - right
        right, union = (tf.cast(tf.gather(x, self.target_class_ids), tf.float32) for x in (right, union))
        least = tf.keras.config.epsilon()
        occurs = tf.cast(union > 1e-9, tf.float32)
        return tf.reduce_sum(occurs * right / (union + least)) / (tf.reduce_sum(occurs) + least)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **{name: getattr(self, name) for name in self._SETTINGS}}

    _SETTINGS: tuple[str, ...] = ("num_classes", "target_class_ids", "ignore_class", "sparse_y_true", "sparse_y_pred",
                                  "axis")


class BinaryIoU(IoU):
    """Intersection over union of two classes, of predictions that are probabilities.

    Args:
        target_class_ids: 0, 1 or both.
        threshold: from which on a prediction is class 1.
        name, dtype: as for `tf.keras.metrics.Metric`; counts are int64 by default.
    Raises:
        ValueError: there is no such class.

    >>> import twofold as tf
    >>> metric = tf.keras.metrics.BinaryIoU(target_class_ids=[0, 1], threshold=0.3)
    >>> round(float(metric([0, 1, 0, 1], [0.1, 0.2, 0.4, 0.7])), 4)
    0.3333
    """

    _SETTINGS = ("target_class_ids", "threshold")

    def __init__(self, target_class_ids: Sequence[int] = (0, 1), threshold: float = 0.5, name: str | None = None,
                 dtype: Any = None):
        super().__init__(2, target_class_ids, name, dtype)
        self.threshold = threshold

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Take a batch into the confusion matrix.

        Args:
            y_true: labels 0 and 1.
            y_pred: probabilities, of the same shape.
            sample_weight: a weight for each value.
        """
        super().update_state(y_true, as_tensor(y_pred, tf.float32) >= self.threshold, sample_weight)


class MeanIoU(IoU):
    """The mean over all classes of intersection over union.

    Args:
        num_classes: how many classes there are.
        name, dtype: as for `tf.keras.metrics.Metric`; counts are int64 by default.
        ignore_class: the label that stands for no class.
        sparse_y_true: whether labels are numbers of classes, rather than a score for each.
        sparse_y_pred: whether predictions are numbers of classes, rather than a score for each.
        axis: the axis of the scores.

    >>> import twofold as tf
    >>> round(float(tf.keras.metrics.MeanIoU(num_classes=2)([0, 0, 1, 1], [0, 1, 0, 1])), 4)
    0.3333
    """

    _SETTINGS: tuple[str, ...] = ("num_classes", "ignore_class", "sparse_y_true", "sparse_y_pred", "axis")

    def __init__(self, num_classes: int, name: str | None = None, dtype: Any = None, ignore_class: int | None = None,
                 sparse_y_true: bool = True, sparse_y_pred: bool = True, axis: int = -1):
        super().__init__(num_classes, range(num_classes), name, dtype, ignore_class, sparse_y_true, sparse_y_pred, axis)


class OneHotIoU(IoU):
    """The mean over some classes of intersection over union, of one-hot labels.

    Args:
        num_classes: how many classes there are.
        target_class_ids: the classes whose mean it is; those that do not occur do not count.
        name, dtype: as for `tf.keras.metrics.Metric`; counts are int64 by default.
        ignore_class: the label that stands for no class.
        sparse_y_pred: whether predictions are numbers of classes, rather than a score for each.
        axis: the axis of the scores.
    Raises:
        ValueError: there is no such class.

    >>> import twofold as tf
    >>> metric = tf.keras.metrics.OneHotIoU(num_classes=2, target_class_ids=[1])
    >>> round(float(metric([[1, 0], [0, 1]], [[0.2, 0.8], [0.3, 0.7]])), 4)
    0.5
    """

    _SETTINGS = ("num_classes", "target_class_ids", "ignore_class", "sparse_y_pred", "axis")

    def __init__(self, num_classes: int, target_class_ids: Sequence[int], name: str | None = None, dtype: Any = None,
                 ignore_class: int | None = None, sparse_y_pred: bool = False, axis: int = -1):
        super().__init__(num_classes, target_class_ids, name, dtype, ignore_class, False, sparse_y_pred, axis)


class OneHotMeanIoU(MeanIoU):
    """The mean over all classes of intersection over union, of one-hot labels.

    Args:
        num_classes: how many classes there are.
        name, dtype: as for `tf.keras.metrics.Metric`; counts are int64 by default.
        ignore_class: the label that stands for no class.
        sparse_y_pred: whether predictions are numbers of classes, rather than a score for each.
        axis: the axis of the scores.

    >>> import twofold as tf
    >>> metric = tf.keras.metrics.OneHotMeanIoU(num_classes=2)
    >>> round(float(metric([[1, 0], [0, 1]], [[0.2, 0.8], [0.3, 0.7]])), 4)
    0.25
    """

    _SETTINGS = ("num_classes", "ignore_class", "sparse_y_pred", "axis")

    def __init__(self, num_classes: int, name: str | None = None, dtype: Any = None, ignore_class: int | None = None,
                 sparse_y_pred: bool = False, axis: int = -1):
        super().__init__(num_classes, name, dtype, ignore_class, False, sparse_y_pred, axis)
