"""Losses of sets rather than of single values: overlaps of regions, and distances between all pairs of a batch."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import public

from .. import config
from ..call_context import set_mask
from .loss import as_tensor
from .regression import floats

__all__ = ["circle", "dice", "tversky"]


@public
def dice(y_true: Any, y_pred: Any, axis: Any = None) -> Any:
    """1 minus twice the overlap over the sum of both.

    Args:
        y_true: what belongs to a region: 0 and 1, or parts.
        y_pred: probabilities, of the same shape.
        axis: the axes of a region; by default all.
    Returns:
        A float tensor without those axes.

    >>> import twofold as tf
    >>> tf.keras.losses.dice([1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0]).numpy()
    np.float32(0.5)
    """
    y_pred = floats(y_pred)
    y_true = as_tensor(y_true, y_pred.dtype)
    both = tf.reduce_sum(y_true * y_pred, axis=axis)
    whole = tf.reduce_sum(y_true, axis=axis) + tf.reduce_sum(y_pred, axis=axis)
    return 1.0 - 2.0 * both / (whole + config.epsilon())


@public
def tversky(y_true: Any, y_pred: Any, alpha: float = 0.5, beta: float = 0.5, axis: Any = None) -> Any:
    """1 minus the overlap over the overlap and weighted parts of what lies outside it (Salehi et al., 2017).

    Args:
        y_true: what belongs to a region: 0 and 1, or parts.
        y_pred: probabilities, of the same shape.
        alpha: the weight of what is in `y_true` alone.
        beta: the weight of what is in `y_pred` alone.
        axis: the axes of a region; by default all.
    Returns:
        A float tensor without those axes.

    >>> import twofold as tf
    >>> tf.keras.losses.tversky([1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0]).numpy()
    np.float32(0.5)
    """
    y_pred = floats(y_pred)
    y_true = as_tensor(y_true, y_pred.dtype)
    both = tf.reduce_sum(y_true * y_pred, axis=axis)
    missed = tf.reduce_sum((1.0 - y_pred) * y_true, axis=axis)
    added = tf.reduce_sum(y_pred * (1.0 - y_true), axis=axis)
    return 1.0 - both / (both + missed * alpha + added * beta + config.epsilon())


@public
def circle(y_true: Any, y_pred: Any, ref_labels: Any = None, ref_embeddings: Any = None,
           remove_diagonal: bool = True, gamma: float = 80.0, margin: float = 0.4) -> Any:
    """The circle loss of vectors: those with one label close together, the others apart (Sun et al., 2020).

    Args:
        y_true: labels, integers [batch] or [batch, 1].
        y_pred: vectors of length 1, [batch, size].
        ref_labels, ref_embeddings: labels and vectors to compare with; by default the same.
        remove_diagonal: whether a vector is not compared with itself.
        gamma: how sharp the loss is.
        margin: how far apart the two kinds of pairs should be.
    Returns:
        A float tensor [batch]; samples with loss 0 do not count in a mean.

    >>> import twofold as tf
    >>> vectors = tf.constant([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> print(tf.keras.losses.circle([0, 0, 1], vectors).numpy().round(3))
    [0. 0. 0.]
    """
    y_pred = floats(y_pred)
    labels = tf.reshape(as_tensor(y_true, tf.int32), [-1, 1])
    others = labels if ref_labels is None else tf.reshape(as_tensor(ref_labels, tf.int32), [-1, 1])
    vectors = y_pred if ref_embeddings is None else as_tensor(ref_embeddings, y_pred.dtype)
    distance = tf.nn.relu(1.0 - tf.matmul(y_pred, vectors, transpose_b=True))
    same = tf.equal(labels, tf.transpose(others))
    different = tf.logical_not(same)
    if remove_diagonal:
        rows, columns = tf.range(tf.shape(same)[0]), tf.range(tf.shape(same)[1])
        same = tf.logical_and(same, tf.not_equal(tf.expand_dims(rows, 1), tf.expand_dims(columns, 0)))
    close = -gamma * tf.nn.relu(margin + distance) * (margin - distance)
    apart = gamma * tf.nn.relu(1.0 + margin - distance) * (1.0 - margin - distance)
    values = tf.nn.softplus(_log_sum(close, same) + _log_sum(apart, different))
    set_mask(values, values > 0)
    return values


def _log_sum(values: Any, mask: Any) -> Any:
    """The logarithm of the sum of exp(values) along the rows, of those in the mask; -inf where there are none."""
    some = tf.reduce_any(mask, axis=1)
    least = tf.constant(-1e30, values.dtype)  # rather than -inf, of which differences are NaN
    sums = tf.reduce_logsumexp(tf.where(mask, values, least), axis=1)
    return tf.where(some, sums, tf.constant(float("-inf"), values.dtype))
