"""Cross entropies: of two classes, of several (one-hot or by number), focal ones, and a robust one.

Probabilities are kept `tf.keras.config.epsilon()` away from 0 and 1 before a logarithm; logits (`from_logits=True`)
need no such care and are the better choice.
"""

from __future__ import annotations

import warnings
from typing import Any

import twofold as tf
from twofold._front.api import public, same_axis

from .. import config
from ..call_context import set_mask
from .loss import as_tensor
from .regression import floats

__all__ = ["binary_crossentropy", "binary_focal_crossentropy", "categorical_crossentropy",
           "categorical_focal_crossentropy", "categorical_generalized_cross_entropy",
           "sparse_categorical_crossentropy"]


def _probabilities(x: Any) -> Any:
    least = config.epsilon()
    return tf.clip_by_value(x, least, 1.0 - least)


def _smoothed(y_true: Any, label_smoothing: float, target: Any) -> Any:
    return y_true * (1.0 - label_smoothing) + target if label_smoothing else y_true


def _binary(y_true: Any, y_pred: Any, label_smoothing: float) -> tuple[Any, Any]:
    """Labels and predictions of two classes as tensors of one float dtype and shape."""
    y_pred = floats(y_pred)
    y_true = as_tensor(y_true, y_pred.dtype)
    _check_shapes("binary_crossentropy", y_true, y_pred)
    return _smoothed(y_true, label_smoothing, 0.5 * label_smoothing), y_pred


def _check_shapes(name: str, y_true: Any, y_pred: Any) -> None:
    if not y_true.shape.is_compatible_with(y_pred.shape):
        raise ValueError(f"{name}: y_true and y_pred must have the same shape; got y_true.shape={y_true.shape} and "
                         f"y_pred.shape={y_pred.shape}." + _hint(name, y_true, y_pred))


def _hint(name: str, y_true: Any, y_pred: Any) -> str:
    if name.startswith("categorical") and y_true.shape.rank == (y_pred.shape.rank or 0) - 1:
        return " Labels that are numbers of classes are for sparse_categorical_crossentropy."
    return ""


@public
def binary_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0,
                        axis: Any = -1) -> Any:
    """The mean of `-y_true log(y_pred) - (1 - y_true) log(1 - y_pred)` over an axis.

    Args:
        y_true: labels from 0 to 1, [..., n].
        y_pred: probabilities, or with `from_logits` logits, of the same shape.
        from_logits: whether `y_pred` is logits.
        label_smoothing: how far labels are moved to 0.5: by half of this.
        axis: the axis of the mean.
    Returns:
        A float tensor without that axis.
    Raises:
        ValueError: the shapes differ.

    >>> import twofold as tf
    >>> print(tf.keras.losses.binary_crossentropy([[0.0, 1.0]], [[0.5, 0.5]]).numpy().round(4))
    [0.6931]
    """
    y_true, y_pred = _binary(y_true, y_pred, label_smoothing)
    return tf.reduce_mean(binary_values(y_true, y_pred, from_logits), axis=axis)


def binary_values(y_true: Any, y_pred: Any, from_logits: bool) -> Any:
    if from_logits:
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=y_true, logits=y_pred)
    y_pred = _probabilities(y_pred)
    return tf.negative(y_true * tf.math.log(y_pred) + (1.0 - y_true) * tf.math.log(1.0 - y_pred))


@public
def binary_focal_crossentropy(y_true: Any, y_pred: Any, apply_class_balancing: bool = False, alpha: float = 0.25,
                              gamma: float = 2.0, from_logits: bool = False, label_smoothing: float = 0.0,
                              axis: Any = -1) -> Any:
    """Binary cross entropy times `(1 - p)**gamma`, p the probability of the right class (Lin et al., 2018).

    Args:
        y_true: labels from 0 to 1, [..., n].
        y_pred: probabilities, or with `from_logits` logits, of the same shape.
        apply_class_balancing: whether class 1 counts `alpha` and class 0 `1 - alpha`.
        alpha: the weight of class 1.
        gamma: how much less samples count that are right already.
        from_logits: whether `y_pred` is logits.
        label_smoothing: how far labels are moved to 0.5: by half of this.
        axis: the axis of the mean.
    Returns:
        A float tensor without that axis.
    Raises:
        ValueError: the shapes differ.

    >>> import twofold as tf
    >>> print(tf.keras.losses.binary_focal_crossentropy([[1.0]], [[0.5]]).numpy().round(4))
    [0.1733]
    """
    y_true, y_pred = _binary(y_true, y_pred, label_smoothing)
    if from_logits:
        y_pred = tf.sigmoid(y_pred)
    values = binary_values(y_true, y_pred, False)
    right = y_true * y_pred + (1.0 - y_true) * (1.0 - y_pred)
    values = tf.pow(1.0 - right, gamma) * values
    if apply_class_balancing:
        values = (y_true * alpha + (1.0 - y_true) * (1.0 - alpha)) * values
    return tf.reduce_mean(values, axis=axis)


def _categorical(name: str, y_true: Any, y_pred: Any, label_smoothing: float, axis: Any) -> tuple[Any, Any]:
    """One-hot labels and predictions as tensors of one float dtype and shape."""
    if isinstance(axis, bool):
        raise ValueError(f"`axis` must be of type `int`; got {axis!r}.")
    y_pred = floats(y_pred)
    y_true = as_tensor(y_true, y_pred.dtype)
    _check_shapes(name, y_true, y_pred)
    if y_pred.shape[-1] == 1:
        warnings.warn(f"{name}: y_pred of shape {y_pred.shape} has one class only; binary_crossentropy is for two.",
                      stacklevel=3)
    if label_smoothing:
        classes = y_true.shape[-1] or tf.cast(tf.shape(y_true)[-1], y_pred.dtype)
        y_true = _smoothed(y_true, label_smoothing, label_smoothing / classes)
    return y_true, y_pred


@public
def categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0,
                             axis: int = -1) -> Any:
    """`-y_true log(y_pred)`, summed over the classes.

    Args:
        y_true: one-hot labels or probabilities, [..., classes].
        y_pred: probabilities, which are divided by their sum, or with `from_logits` logits; of the same shape.
        from_logits: whether `y_pred` is logits.
        label_smoothing: which part of each label is spread over all classes.
        axis: the axis of the classes.
    Returns:
        A float tensor without that axis.
    Raises:
        ValueError: the shapes differ.

    >>> import twofold as tf
    >>> print(tf.keras.losses.categorical_crossentropy([[0.0, 1.0]], [[0.5, 0.5]]).numpy().round(4))
    [0.6931]
    """
    y_true, y_pred = _categorical("categorical_crossentropy", y_true, y_pred, label_smoothing, axis)
    axis = same_axis(axis, y_pred)
    if from_logits:
        return tf.nn.softmax_cross_entropy_with_logits(labels=y_true, logits=y_pred, axis=axis)
    y_pred = _probabilities(y_pred / tf.reduce_sum(y_pred, axis=axis, keepdims=True))
    return tf.negative(tf.reduce_sum(y_true * tf.math.log(y_pred), axis=axis))


@public
def categorical_focal_crossentropy(y_true: Any, y_pred: Any, alpha: Any = 0.25, gamma: float = 2.0,
                                   from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1) -> Any:
    """Categorical cross entropy times `alpha * (1 - p)**gamma`, p the probability of each class (Lin et al., 2018).

    Args:
        y_true: one-hot labels or probabilities, [..., classes].
        y_pred: probabilities, which are divided by their sum, or with `from_logits` logits; of the same shape.
        alpha: a weight, or one for each class.
        gamma: how much less samples count that are right already.
        from_logits: whether `y_pred` is logits.
        label_smoothing: which part of each label is spread over all classes.
        axis: the axis of the classes.
    Returns:
        A float tensor without that axis.
    Raises:
        ValueError: the shapes differ.

    >>> import twofold as tf
    >>> print(tf.keras.losses.categorical_focal_crossentropy([[0.0, 1.0]], [[0.5, 0.5]]).numpy().round(4))
    [0.0433]
    """
    y_true, y_pred = _categorical("categorical_focal_crossentropy", y_true, y_pred, label_smoothing, axis)
    axis = same_axis(axis, y_pred)
    if from_logits:
        y_pred = tf.nn.softmax(y_pred, axis=axis)
    y_pred = _probabilities(y_pred / tf.reduce_sum(y_pred, axis=axis, keepdims=True))
    weight = tf.pow(1.0 - y_pred, gamma) * as_tensor(alpha, y_pred.dtype)
    return tf.negative(tf.reduce_sum(weight * y_true * tf.math.log(y_pred), axis=axis))


@public
def sparse_categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False,
                                    ignore_class: int | None = None, axis: int = -1) -> Any:
    """Minus the logarithm of the probability of the right class.

    Args:
        y_true: numbers of classes, of the shape of `y_pred` without the axis of the classes, or with size 1 there.
        y_pred: probabilities, which are divided by their sum, or with `from_logits` logits, [..., classes].
        from_logits: whether `y_pred` is logits.
        ignore_class: the number that stands for no class: such samples have value 0 and do not count in a mean.
        axis: the axis of the classes.
    Returns:
        A float tensor without that axis.
    Raises:
        ValueError: the shapes do not fit. tf.errors.InvalidArgumentError: there is no such class.

    >>> import twofold as tf
    >>> print(tf.keras.losses.sparse_categorical_crossentropy([1, 0], [[0.5, 0.5], [1.0, 0.0]]).numpy().round(4))
    [0.6931 0.    ]
    """
    y_pred, y_true = floats(y_pred), tf.convert_to_tensor(y_true)
    axis = same_axis(axis, y_pred)
    if axis not in (-1, y_pred.ndim - 1):
        y_pred = _axis_last(y_pred, axis)
        y_true = _axis_last(y_true, axis) if y_true.ndim == y_pred.ndim else y_true
    if y_true.ndim == y_pred.ndim and y_true.shape[-1] == 1:
        y_true = tf.squeeze(y_true, -1)
    if not y_pred.ndim or not y_true.shape.is_compatible_with(y_pred.shape[:-1]):
        raise ValueError("sparse_categorical_crossentropy: y_true must have the shape of y_pred without the axis of "
                         f"the classes; got y_true.shape={y_true.shape} and y_pred.shape={y_pred.shape}.")
    y_true = y_true if y_true.dtype.is_integer else tf.cast(y_true, tf.int64)
    valid = None
    if ignore_class is not None:
        valid = tf.not_equal(y_true, tf.cast(ignore_class, y_true.dtype))
        y_true = tf.where(valid, y_true, tf.zeros_like(y_true))
        y_pred = tf.where(tf.expand_dims(valid, -1), y_pred, tf.zeros_like(y_pred))
    logits = y_pred if from_logits else tf.math.log(_probabilities(y_pred))
    values = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y_true, logits=logits)
    if valid is not None:
        values = tf.where(valid, values, tf.zeros_like(values))
        set_mask(values, valid)
    return values


def _axis_last(x: Any, axis: int) -> Any:
    axes = list(range(x.shape.rank))
    axes.append(axes.pop(axis))
    return tf.transpose(x, axes)


@public
def categorical_generalized_cross_entropy(y_true: Any, y_pred: Any, q: float) -> Any:
    """`(1 - p**q) / q`, p the probability of the right class: less moved by wrong labels (Zhang, Sabuncu, 2018).

    Args:
        y_true: numbers of classes, [...].
        y_pred: probabilities, [..., classes].
        q: between 0, which would be cross entropy, and 1, which would be an absolute error.
    Returns:
        A float tensor of shape [...].

    >>> import twofold as tf
    >>> tf.keras.losses.categorical_generalized_cross_entropy([1], [[0.75, 0.25]], q=0.5).numpy().tolist()
    [1.0]
    """
    y_pred = floats(y_pred)
    y_true = as_tensor(y_true, tf.int64)
    if y_true.shape.rank == y_pred.shape.rank and y_true.shape[-1] == 1:
        y_true = tf.squeeze(y_true, -1)
    depth = y_pred.shape[-1]
    right = tf.reduce_sum(y_pred * tf.one_hot(y_true, tf.shape(y_pred)[-1] if depth is None else depth,
                                              dtype=y_pred.dtype), axis=-1)
    return (1.0 - tf.pow(right, q)) / q
