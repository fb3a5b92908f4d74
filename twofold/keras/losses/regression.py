"""Losses of numbers: squared, absolute and relative errors, hinges, and distances of distributions.

Each function takes what should be and what is, two tensors of one shape, and gives a value for each sample: a mean, or
a sum, over the last axis.
"""

from __future__ import annotations

import math
from typing import Any

import twofold as tf
from twofold._front.api import public, same_axis

from .. import config
from ..scalars import number
from .loss import as_tensor, same_rank

__all__ = ["categorical_hinge", "cosine_similarity", "floats", "hinge", "huber", "kl_divergence", "log_cosh",
           "mean_absolute_error", "mean_absolute_percentage_error", "mean_squared_error",
           "mean_squared_logarithmic_error", "pair", "poisson", "squared_hinge"]


def floats(value: Any) -> Any:
    """A tensor of floats; integers become `tf.keras.config.floatx()`."""
    value = tf.convert_to_tensor(value)
    return value if value.dtype.is_floating else tf.cast(value, config.floatx())


def pair(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Labels and predictions as float tensors of one dtype and rank."""
    y_pred = floats(y_pred)
    return same_rank(as_tensor(y_true, y_pred.dtype), y_pred)


@public
def mean_squared_error(y_true: Any, y_pred: Any) -> Any:
    """The mean of squared differences over the last axis.

    Args:
        y_true: what should be, [..., n].
        y_pred: what is, of the same shape.
    Returns:
        A float tensor of shape [...].

    >>> import twofold as tf
    >>> tf.keras.losses.mean_squared_error([[0.0, 1.0]], [[1.0, 3.0]]).numpy().tolist()
    [2.5]
    """
    y_true, y_pred = pair(y_true, y_pred)
    return tf.reduce_mean(tf.math.squared_difference(y_true, y_pred), axis=-1)


@public
def mean_absolute_error(y_true: Any, y_pred: Any) -> Any:
    """The mean of absolute differences over the last axis.

    Args:
        y_true: what should be, [..., n].
        y_pred: what is, of the same shape.
    Returns:
        A float tensor of shape [...].

    >>> import twofold as tf
    >>> tf.keras.losses.mean_absolute_error([[0.0, 1.0]], [[1.0, 3.0]]).numpy().tolist()
    [1.5]
    """
    y_true, y_pred = pair(y_true, y_pred)
    return tf.reduce_mean(tf.abs(y_true - y_pred), axis=-1)


@public
def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Any:
    """100 times the mean of `|y_true - y_pred| / max(|y_true|, epsilon)` over the last axis.

    Args:
        y_true: what should be, [..., n].
        y_pred: what is, of the same shape.
    Returns:
        A float tensor of shape [...].

    >>> import twofold as tf
    >>> tf.keras.losses.mean_absolute_percentage_error([[2.0, 4.0]], [[1.0, 5.0]]).numpy().tolist()
    [37.5]
    """
    y_true, y_pred = pair(y_true, y_pred)
    relative = tf.abs((y_true - y_pred) / tf.maximum(tf.abs(y_true), config.epsilon()))
    return 100.0 * tf.reduce_mean(relative, axis=-1)


@public
def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Any:
    """The mean of `(log(y_true + 1) - log(y_pred + 1))**2` over the last axis; negative values count as epsilon.

    Args:
        y_true: what should be, [..., n].
        y_pred: what is, of the same shape.
    Returns:
        A float tensor of shape [...].

    >>> import twofold as tf
    >>> print(tf.keras.losses.mean_squared_logarithmic_error([[0.0, 1.0]], [[0.0, 3.0]]).numpy().round(4))
    [0.2402]
    """
    y_true, y_pred = pair(y_true, y_pred)
    least = config.epsilon()
    logs = [tf.math.log(tf.maximum(y, least) + 1.0) for y in (y_pred, y_true)]
    return tf.reduce_mean(tf.math.squared_difference(*logs), axis=-1)


@public
def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    """Minus the cosine of the angle between two vectors: -1 for the same direction; 0 where one is zero.

    Args:
        y_true: what should be.
        y_pred: what is, of the same shape.
        axis: the axis of the vectors.
    Returns:
        A float tensor without that axis.

    >>> import twofold as tf
    >>> tf.keras.losses.cosine_similarity([[0.0, 1.0]], [[0.0, 2.0]]).numpy().tolist()
    [-1.0]
    """
    y_true, y_pred = pair(y_true, y_pred)
    axis = same_axis(axis, y_pred)
    return tf.negative(tf.reduce_sum(_direction(y_true, axis) * _direction(y_pred, axis), axis=axis))


def _direction(x: Any, axis: int) -> Any:
    """Vectors of length 1, and 0 for those of almost no length."""
    squares = tf.reduce_sum(tf.square(x), axis=axis, keepdims=True)
    return x * tf.math.rsqrt(tf.maximum(squares, config.epsilon() ** 2))


@public
def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> Any:
    """The mean over the last axis of half the square of a small error, and of a line for one beyond `delta`.

    Args:
        y_true: what should be, [..., n].
        y_pred: what is, of the same shape.
        delta: where the line begins.
    Returns:
        A float tensor of shape [...].

    >>> import twofold as tf
    >>> tf.keras.losses.huber([[0.0, 0.0]], [[1.0, 3.0]]).numpy().tolist()
    [1.5]
    """
    y_true, y_pred = pair(y_true, y_pred)
    error = y_pred - y_true
    size = tf.abs(error)
    delta = number(delta, y_pred.dtype)
    return tf.reduce_mean(tf.where(size <= delta, 0.5 * tf.square(error), delta * size - 0.5 * tf.square(delta)),
                          axis=-1)


@public
def log_cosh(y_true: Any, y_pred: Any) -> Any:
    """The mean of `log(cosh(y_pred - y_true))` over the last axis, without overflow.

    Args:
        y_true: what should be, [..., n].
        y_pred: what is, of the same shape.
    Returns:
        A float tensor of shape [...].

    >>> import twofold as tf
    >>> print(tf.keras.losses.log_cosh([[0.0, 0.0]], [[0.0, 1000.0]]).numpy().round(3))
    [499.653]
    """
    y_true, y_pred = pair(y_true, y_pred)
    error = y_pred - y_true
    return tf.reduce_mean(error + tf.nn.softplus(error * -2.0) - math.log(2.0), axis=-1)


@public
def kl_divergence(y_true: Any, y_pred: Any) -> Any:
    """The Kullback-Leibler divergence: `y_true * log(y_true / y_pred)`, summed over the last axis.

    Args:
        y_true: probabilities that should be, [..., n]; those below epsilon count as epsilon.
        y_pred: probabilities that are, of the same shape.
    Returns:
        A float tensor of shape [...].

    >>> import twofold as tf
    >>> print(tf.keras.losses.kl_divergence([[0.5, 0.5]], [[0.25, 0.75]]).numpy().round(4))
    [0.1438]
    """
    y_true, y_pred = pair(y_true, y_pred)
    least = config.epsilon()
    y_true, y_pred = tf.clip_by_value(y_true, least, 1.0), tf.clip_by_value(y_pred, least, 1.0)
    return tf.reduce_sum(y_true * tf.math.log(y_true / y_pred), axis=-1)


@public
def poisson(y_true: Any, y_pred: Any) -> Any:
    """The mean of `y_pred - y_true * log(y_pred + epsilon)` over the last axis.

    Args:
        y_true: counts, [..., n].
        y_pred: expected counts, of the same shape.
    Returns:
        A float tensor of shape [...].

    >>> import twofold as tf
    >>> print(tf.keras.losses.poisson([[1.0, 0.0]], [[1.0, 3.0]]).numpy().round(4))
    [2.]
    """
    y_true, y_pred = pair(y_true, y_pred)
    return tf.reduce_mean(y_pred - y_true * tf.math.log(y_pred + config.epsilon()), axis=-1)


def _signs(y_true: Any) -> Any:
    """Labels of 0 and 1 as -1 and 1; others as they are."""
    binary = tf.reduce_all(tf.logical_or(tf.equal(y_true, 0.0), tf.equal(y_true, 1.0)))
    return tf.where(binary, 2.0 * y_true - 1.0, y_true)


@public
def hinge(y_true: Any, y_pred: Any) -> Any:
    """The mean of `max(1 - y_true * y_pred, 0)` over the last axis.

    Args:
        y_true: labels -1 and 1, or 0 and 1, [..., n].
        y_pred: scores, of the same shape.
    Returns:
        A float tensor of shape [...].

    >>> import twofold as tf
    >>> tf.keras.losses.hinge([[-1.0, 1.0]], [[-2.0, 0.0]]).numpy().tolist()
    [0.5]
    """
    y_true, y_pred = pair(y_true, y_pred)
    return tf.reduce_mean(tf.nn.relu(1.0 - _signs(y_true) * y_pred), axis=-1)


@public
def squared_hinge(y_true: Any, y_pred: Any) -> Any:
    """The mean of `max(1 - y_true * y_pred, 0)**2` over the last axis.

    Args:
        y_true: labels -1 and 1, or 0 and 1, [..., n].
        y_pred: scores, of the same shape.
    Returns:
        A float tensor of shape [...].

    >>> import twofold as tf
    >>> tf.keras.losses.squared_hinge([[-1.0, 1.0]], [[-2.0, -1.0]]).numpy().tolist()
    [2.0]
    """
    y_true, y_pred = pair(y_true, y_pred)
    return tf.reduce_mean(tf.square(tf.nn.relu(1.0 - _signs(y_true) * y_pred)), axis=-1)


@public
def categorical_hinge(y_true: Any, y_pred: Any) -> Any:
    """`max(other - right + 1, 0)`, with the score of the right class and the highest of the others.

    Args:
        y_true: one-hot labels, [..., classes].
        y_pred: scores, of the same shape.
    Returns:
        A float tensor of shape [...].

    >>> import twofold as tf
    >>> tf.keras.losses.categorical_hinge([[0.0, 1.0]], [[0.5, 0.75]]).numpy().tolist()
    [0.75]
    """
    y_true, y_pred = pair(y_true, y_pred)
    right = tf.reduce_sum(y_true * y_pred, axis=-1)
    other = tf.reduce_max((1.0 - y_true) * y_pred, axis=-1)
    return tf.nn.relu(other - right + 1.0)
