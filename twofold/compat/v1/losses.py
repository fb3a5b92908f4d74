"""`tf.compat.v1.losses`: losses as functions that give one number, the mean over what has weight."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._api import public

__all__ = ["Reduction", "absolute_difference", "mean_squared_error", "sigmoid_cross_entropy", "softmax_cross_entropy",
           "sparse_softmax_cross_entropy"]


class Reduction:
    """What becomes of the losses of the elements."""

    NONE = "none"
    SUM = "weighted_sum"
    MEAN = "weighted_mean"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"


def _reduced(losses: Any, weights: Any, reduction: str) -> Any:
    weights = tf.cast(tf.convert_to_tensor(weights), losses.dtype)
    weighted = losses * weights
    if reduction == Reduction.NONE:
        return weighted
    total = tf.reduce_sum(weighted)
    if reduction == Reduction.SUM:
        return total
    spread = weights + tf.zeros_like(losses)
    if reduction == Reduction.MEAN:
        return tf.math.divide_no_nan(total, tf.reduce_sum(spread))
    if reduction == Reduction.SUM_OVER_BATCH_SIZE:
        return total / tf.cast(tf.size(losses), losses.dtype)
    if reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
        return tf.math.divide_no_nan(total, tf.reduce_sum(tf.cast(tf.not_equal(spread, 0), losses.dtype)))
    raise ValueError(f"Invalid Reduction Key {reduction}.")


@public
def sparse_softmax_cross_entropy(labels: Any, logits: Any, weights: Any = 1.0, scope: Any = None,
                                 loss_collection: Any = None,
                                 reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS) -> Any:
    """The cross-entropy of the softmax of `logits` [.., classes] with integer `labels` [..].

    >>> import twofold as tf
    >>> round(float(tf.compat.v1.losses.sparse_softmax_cross_entropy([0], [[0.0, 0.0]])), 4)
    0.6931
    """
    return _reduced(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits), weights, reduction)


@public
def softmax_cross_entropy(onehot_labels: Any, logits: Any, weights: Any = 1.0, label_smoothing: float = 0,
                          scope: Any = None, loss_collection: Any = None,
                          reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS) -> Any:
    """The cross-entropy of the softmax of `logits` with distributions `onehot_labels`, both [.., classes]."""
    logits = tf.convert_to_tensor(logits)
    labels = tf.cast(tf.convert_to_tensor(onehot_labels), logits.dtype)
    if label_smoothing > 0:
        labels = labels * (1 - label_smoothing) + label_smoothing / tf.cast(tf.shape(labels)[-1], logits.dtype)
    return _reduced(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits), weights, reduction)


@public
def sigmoid_cross_entropy(multi_class_labels: Any, logits: Any, weights: Any = 1.0, label_smoothing: float = 0,
                          scope: Any = None, loss_collection: Any = None,
                          reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS) -> Any:
    """The cross-entropy of the sigmoid of `logits` with `multi_class_labels`, of one shape."""
    logits = tf.convert_to_tensor(logits)
    labels = tf.cast(tf.convert_to_tensor(multi_class_labels), logits.dtype)
    if label_smoothing > 0:
        labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
    return _reduced(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits), weights, reduction)


@public
def mean_squared_error(labels: Any, predictions: Any, weights: Any = 1.0, scope: Any = None,
                       loss_collection: Any = None, reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS) -> Any:
    """The mean of squared differences.

    >>> import twofold as tf
    >>> float(tf.compat.v1.losses.mean_squared_error([1.0, 2.0], [1.0, 4.0]))
    2.0
    """
    predictions = tf.convert_to_tensor(predictions)
    apart = predictions - tf.cast(tf.convert_to_tensor(labels), predictions.dtype)
    return _reduced(tf.square(apart), weights, reduction)


@public
def absolute_difference(labels: Any, predictions: Any, weights: Any = 1.0, scope: Any = None,
                        loss_collection: Any = None, reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS) -> Any:
    """The mean of absolute differences."""
    predictions = tf.convert_to_tensor(predictions)
    return _reduced(tf.abs(predictions - tf.cast(tf.convert_to_tensor(labels), predictions.dtype)), weights, reduction)
