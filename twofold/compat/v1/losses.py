"""`tf.compat.v1.losses`: losses as functions whose result is one number, by default the mean over the samples with a
weight.

Each goes into a collection of the graph, LOSSES by default, from which `get_total_loss` adds them up.
"""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import public
from twofold._front.namespace import publish

from .graph import current_graph
from .keys import GraphKeys

__all__ = ["Reduction", "absolute_difference", "add_loss", "compute_weighted_loss", "cosine_distance", "get_losses",
           "get_regularization_loss", "get_regularization_losses", "get_total_loss", "hinge_loss", "huber_loss",
           "log_loss", "mean_pairwise_squared_error", "mean_squared_error", "sigmoid_cross_entropy",
           "softmax_cross_entropy", "sparse_softmax_cross_entropy"]


class Reduction:
    """What becomes of the losses of the elements."""

    NONE = "none"
    SUM = "weighted_sum"
    MEAN = "weighted_mean"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All of them."""
        return (cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_BY_NONZERO_WEIGHTS)

    @classmethod
    def validate(cls, key: str) -> None:
        """Raise ValueError unless it is one of them."""
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key {key}.")


_MEAN = Reduction.SUM_BY_NONZERO_WEIGHTS


@public
def compute_weighted_loss(losses: Any, weights: Any = 1.0, scope: Any = None,
                          loss_collection: Any = GraphKeys.LOSSES, reduction: str = _MEAN) -> Any:
    """One number of the losses of elements.

    Args:
        losses: floating tensor.
        weights: a number, or a tensor whose shape fits that of `losses`.
        loss_collection: where it is put; None for nowhere.
        reduction: one of `Reduction`.
        scope: accepted, without effect.
    Returns:
        A scalar; a tensor of the shape of `losses` for `Reduction.NONE`.
    Raises:
        ValueError: there is no such reduction.

    >>> import twofold as tf
    >>> float(tf.compat.v1.losses.compute_weighted_loss([1.0, 5.0], [1.0, 0.0]))
    1.0
    """
    Reduction.validate(reduction)
    losses = tf.convert_to_tensor(losses)
    kind = losses.dtype
    wide = tf.cast(losses, tf.float32) if kind.size < 4 else losses
    loss = tf.cast(_reduced(wide, weights, reduction), kind)
    add_loss(loss, loss_collection)
    return loss


def _reduced(losses: Any, weights: Any, reduction: str) -> Any:
    weights = tf.cast(tf.convert_to_tensor(weights), losses.dtype)
    if weights.shape.rank == losses.shape.rank - 1 and weights.shape.rank:
        weights = tf.expand_dims(weights, -1)
    elif weights.shape.rank == losses.shape.rank + 1 and weights.shape[-1] == 1:
        weights = tf.squeeze(weights, [-1])
    weighted = losses * weights
    if reduction == Reduction.NONE:
        return weighted
    total = tf.reduce_sum(weighted)
    if reduction == Reduction.SUM:
        return total
    if reduction == Reduction.SUM_OVER_BATCH_SIZE:
        return total / tf.cast(tf.size(losses), losses.dtype)
    spread = weights + tf.zeros_like(losses)
    if reduction == Reduction.MEAN:
        return tf.math.divide_no_nan(total, tf.reduce_sum(spread))
    return tf.math.divide_no_nan(total, tf.reduce_sum(tf.cast(tf.not_equal(spread, 0), losses.dtype)))


def _both(labels: Any, predictions: Any) -> tuple[Any, Any]:
    """Labels and predictions as tensors of one floating dtype."""
    if labels is None or predictions is None:
        raise ValueError("labels and predictions must not be None.")
    predictions = tf.convert_to_tensor(predictions)
    if not predictions.dtype.is_floating:
        predictions = tf.cast(predictions, tf.float32)
    labels = tf.cast(tf.convert_to_tensor(labels), predictions.dtype)
    if not labels.shape.is_compatible_with(predictions.shape):
        raise ValueError(f"Shapes {labels.shape} and {predictions.shape} are incompatible")
    return labels, predictions


@public
def sparse_softmax_cross_entropy(labels: Any, logits: Any, weights: Any = 1.0, scope: Any = None,
                                 loss_collection: Any = GraphKeys.LOSSES, reduction: str = _MEAN) -> Any:
    """The cross-entropy of the softmax of `logits` [.., classes] with integer `labels` [..], or [.., 1].

    >>> import twofold as tf
    >>> round(float(tf.compat.v1.losses.sparse_softmax_cross_entropy([0], [[0.0, 0.0]])), 4)
    0.6931
    """
    labels, logits = tf.convert_to_tensor(labels), tf.convert_to_tensor(logits)
    if labels.shape.rank == logits.shape.rank and labels.shape[-1] == 1:
        labels = tf.squeeze(labels, [-1])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


@public
def softmax_cross_entropy(onehot_labels: Any, logits: Any, weights: Any = 1.0, label_smoothing: float = 0,
                          scope: Any = None, loss_collection: Any = GraphKeys.LOSSES, reduction: str = _MEAN) -> Any:
    """The cross-entropy of the softmax of `logits` with distributions `onehot_labels`, both [.., classes]."""
    labels, logits = _both(onehot_labels, logits)
    if label_smoothing > 0:
        labels = labels * (1 - label_smoothing) + label_smoothing / tf.cast(tf.shape(labels)[-1], logits.dtype)
    losses = tf.nn.softmax_cross_entropy_with_logits(labels=tf.stop_gradient(labels), logits=logits)
    return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


@public
def sigmoid_cross_entropy(multi_class_labels: Any, logits: Any, weights: Any = 1.0, label_smoothing: float = 0,
                          scope: Any = None, loss_collection: Any = GraphKeys.LOSSES, reduction: str = _MEAN) -> Any:
    """The cross-entropy of the sigmoid of `logits` with `multi_class_labels`, of one shape."""
    labels, logits = _both(multi_class_labels, logits)
    if label_smoothing > 0:
        labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


@public
def mean_squared_error(labels: Any, predictions: Any, weights: Any = 1.0, scope: Any = None,
                       loss_collection: Any = GraphKeys.LOSSES, reduction: str = _MEAN) -> Any:
    """The mean of squared differences.

    >>> import twofold as tf
    >>> float(tf.compat.v1.losses.mean_squared_error([1.0, 2.0], [1.0, 4.0]))
    2.0
    """
    labels, predictions = _both(labels, predictions)
    return compute_weighted_loss(tf.square(predictions - labels), weights, scope, loss_collection, reduction)


@public
def absolute_difference(labels: Any, predictions: Any, weights: Any = 1.0, scope: Any = None,
                        loss_collection: Any = GraphKeys.LOSSES, reduction: str = _MEAN) -> Any:
    """The mean of absolute differences."""
    labels, predictions = _both(labels, predictions)
    return compute_weighted_loss(tf.abs(predictions - labels), weights, scope, loss_collection, reduction)


@public
def huber_loss(labels: Any, predictions: Any, weights: Any = 1.0, delta: float = 1.0, scope: Any = None,
               loss_collection: Any = GraphKeys.LOSSES, reduction: str = _MEAN) -> Any:
    """The mean of half the squares of differences up to `delta`, and of a line beyond."""
    labels, predictions = _both(labels, predictions)
    error = tf.abs(predictions - labels)
    near = tf.minimum(error, delta)
    return compute_weighted_loss(0.5 * near * near + delta * (error - near), weights, scope, loss_collection,
                                 reduction)


@public
def log_loss(labels: Any, predictions: Any, weights: Any = 1.0, epsilon: float = 1e-7, scope: Any = None,
             loss_collection: Any = GraphKeys.LOSSES, reduction: str = _MEAN) -> Any:
    """The mean of the cross-entropies of probabilities `predictions` with `labels`."""
    labels, predictions = _both(labels, predictions)
    losses = -labels * tf.math.log(predictions + epsilon) - (1 - labels) * tf.math.log(1 - predictions + epsilon)
    return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


@public
def hinge_loss(labels: Any, logits: Any, weights: Any = 1.0, scope: Any = None,
               loss_collection: Any = GraphKeys.LOSSES, reduction: str = _MEAN) -> Any:
    """The mean of `max(0, 1 - logits)`, or `max(0, 1 + logits)` where the label is 0."""
    labels, logits = _both(labels, logits)
    return compute_weighted_loss(tf.nn.relu(1 - (2 * labels - 1) * logits), weights, scope, loss_collection, reduction)


@public
def cosine_distance(labels: Any, predictions: Any, axis: Any = None, weights: Any = 1.0, scope: Any = None,
                    loss_collection: Any = GraphKeys.LOSSES, reduction: str = _MEAN, dim: Any = None) -> Any:
    """The mean of 1 minus the products of vectors of length 1 along `axis`, whose older name is `dim`."""
    axis = dim if axis is None else axis
    if axis is None:
        raise ValueError("You must specify argument `axis`.")
    labels, predictions = _both(labels, predictions)
    losses = 1 - tf.reduce_sum(predictions * labels, axis=axis, keepdims=True)
    return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


@public
def mean_pairwise_squared_error(labels: Any, predictions: Any, weights: Any = 1.0, scope: Any = None,
                                loss_collection: Any = GraphKeys.LOSSES) -> Any:
    """For each row, the mean over pairs of its elements of squared differences of differences; their weighted sum.

    Args:
        labels, predictions: [batch, ..].
        weights: a number, or [batch].
        loss_collection: where it is put; None for nowhere.
        scope: accepted, without effect.
    """
    labels, predictions = _both(labels, predictions)
    apart = tf.reshape(predictions - labels, [tf.shape(labels)[0], -1])
    weights = tf.cast(tf.convert_to_tensor(weights), apart.dtype)
    weights = tf.broadcast_to(tf.reshape(weights, [-1]), [tf.shape(apart)[0]])
    count = tf.cast(tf.shape(apart)[1], apart.dtype)
    squares, sums = tf.reduce_sum(apart * apart, 1), tf.reduce_sum(apart, 1)
    pairs = 2 * (tf.math.divide_no_nan(squares, count - 1)
                 - tf.math.divide_no_nan(tf.square(sums), count * (count - 1)))
    loss = tf.reduce_sum(pairs * weights)
    add_loss(loss, loss_collection)
    return loss


# -- collections ---------------------------------------------------------------------------------------
@public
def add_loss(loss: Any, loss_collection: Any = GraphKeys.LOSSES) -> None:
    """Put a loss into a collection of the current graph; nothing happens where ops run at once."""
    graph = current_graph()
    if graph is not None and loss_collection:
        graph.add_to_collection(loss_collection, loss)


@public
def get_losses(scope: str | None = None, loss_collection: Any = GraphKeys.LOSSES) -> list[Any]:
    """The losses of a collection of the current graph.

    Args:
        scope: gives those alone whose name begins with it.
        loss_collection: the collection.
    """
    graph = current_graph()
    return [] if graph is None else graph.get_collection(loss_collection, scope)


@public
def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """The losses of the regularizers of variables in the current graph."""
    return get_losses(scope, GraphKeys.REGULARIZATION_LOSSES)


@public
def get_regularization_loss(scope: str | None = None, name: str | None = "total_regularization_loss") -> Any:
    """The sum of the losses of regularizers; 0 where there are none. `name` has no effect."""
    losses = get_regularization_losses(scope)
    return tf.add_n(losses) if losses else tf.constant(0.0)


@public
def get_total_loss(add_regularization_losses: bool = True, name: str | None = "total_loss",
                   scope: str | None = None) -> Any:
    """The sum of all losses of the current graph.

    Args:
        add_regularization_losses: whether those of regularizers count.
        name: accepted, without effect.
        scope: takes those alone whose name begins with it.
    Raises:
        ValueError: there are none.
    """
    losses = [*get_losses(scope), *(get_regularization_losses(scope) if add_regularization_losses else [])]
    if not losses:
        raise ValueError("There are no losses: tf.losses puts them into the graph that is current then")
    return tf.add_n(losses)


publish(__name__)
