"""`tf.compat.v1.metrics`: metrics as a value and the operation that takes a batch in, over local variables.

`tf.compat.v1.local_variables_initializer()` starts them anew. They belong to graphs; where ops run at once, the
metrics are `tf.keras.metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import twofold as tf
from twofold._front.api import public
from twofold._front.namespace import publish

from .building import add_to_collections, control_dependencies
from .graph import current_graph
from .keys import GraphKeys
from .variables import Variable, variable_scope

__all__ = ["accuracy", "auc", "false_negatives", "false_positives", "mean", "mean_absolute_error", "mean_iou",
           "mean_per_class_accuracy", "mean_relative_error", "mean_squared_error", "mean_tensor", "percentage_below",
           "precision", "recall", "root_mean_squared_error", "true_negatives", "true_positives"]

_Pair = tuple[Any, Any]


def _graph(what: str) -> None:
    if current_graph() is None:
        raise RuntimeError(f"tf.metrics.{what} is not supported when eager execution is enabled.")


def _local(name: str, shape: Sequence[int] = (), dtype: Any = tf.float32) -> Any:
    return Variable(lambda: tf.zeros(list(shape), dtype), trainable=False, name=name,
                    collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES])


def _finished(value: Any, update: Any, metrics_collections: Any, updates_collections: Any) -> _Pair:
    if metrics_collections:
        add_to_collections(metrics_collections, value)
    if updates_collections:
        add_to_collections(updates_collections, update)
    return value, update


def _added(what: str, name: str | None, amounts: dict[str, Any], value_of: Callable[..., Any],
           metrics_collections: Any, updates_collections: Any) -> _Pair:
    """A metric made of sums: local variables to which `amounts` are added, and `value_of` these."""
    with variable_scope(name, what):
        sums = [_local(key, amount.shape.as_list(), amount.dtype) for key, amount in amounts.items()]
        value = value_of(*[tf.convert_to_tensor(v) for v in sums])
        steps = [v.assign_add(amount) for v, amount in zip(sums, amounts.values(), strict=True)]
        with control_dependencies(steps):
            update = value_of(*[v.read_value() for v in sums])
    return _finished(value, update, metrics_collections, updates_collections)


def _weighted(values: Any, weights: Any) -> tuple[Any, Any]:
    """Values times weights, and the weights of all, as float32."""
    values = tf.cast(values, tf.float32)
    if weights is None:
        return values, tf.ones_like(values)
    weights = tf.cast(weights, tf.float32)
    if weights.shape.rank is not None and values.shape.rank is not None and 0 < weights.shape.rank < values.shape.rank:
        weights = tf.reshape(weights, [-1] + [1] * (values.shape.rank - 1))
    spread = weights + tf.zeros_like(values)
    return values * spread, spread


@public
def mean(values: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None,
         name: str | None = None) -> _Pair:
    """The weighted mean of all values so far.

    Args:
        values: numeric tensor.
        weights: a number, or a tensor that fits it.
        metrics_collections, updates_collections: where the value and the operation are put.
        name: of the scope of the variables.
    Returns:
        The value, a scalar tensor, and a tensor that takes this batch in and gives the value then.
    Raises:
        RuntimeError: ops run at once.

    >>> import twofold as tf
    >>> v1 = tf.compat.v1
    >>> with v1.Session() as session:
    ...     x = v1.placeholder(tf.float32, [None])
    ...     value, update = v1.metrics.mean(x)
    ...     session.run(v1.local_variables_initializer())
    ...     print(session.run(update, {x: [1.0, 2.0]}), session.run(update, {x: [6.0]}), session.run(value))
    1.5 3.0 3.0
    """
    _graph("mean")
    total, count = _weighted(values, weights)
    return _added("mean", name, {"total": tf.reduce_sum(total), "count": tf.reduce_sum(count)},
                  tf.math.divide_no_nan, metrics_collections, updates_collections)


@public
def mean_tensor(values: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None,
                name: str | None = None) -> _Pair:
    """The weighted mean of each element over all tensors so far; see `mean`."""
    _graph("mean_tensor")
    total, count = _weighted(values, weights)
    return _added("mean", name, {"total_tensor": total, "count_tensor": count}, tf.math.divide_no_nan,
                  metrics_collections, updates_collections)


def _mean_of(what: str, values: Any, weights: Any, metrics: Any, updates: Any, name: str | None,
             finish: Callable[[Any], Any] | None = None) -> _Pair:
    _graph(what)
    total, count = _weighted(values, weights)

    def value_of(total: Any, count: Any) -> Any:
        value = tf.math.divide_no_nan(total, count)
        return value if finish is None else finish(value)
    return _added(what, name, {"total": tf.reduce_sum(total), "count": tf.reduce_sum(count)}, value_of, metrics,
                  updates)


def _apart(labels: Any, predictions: Any) -> Any:
    return tf.cast(predictions, tf.float32) - tf.cast(labels, tf.float32)


@public
def accuracy(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
             updates_collections: Any = None, name: str | None = None) -> _Pair:
    """How often predictions are the labels; see `mean`."""
    labels, predictions = tf.convert_to_tensor(labels), tf.convert_to_tensor(predictions)
    if labels.shape.rank == predictions.shape.rank + 1 and labels.shape[-1] == 1:
        labels = tf.squeeze(labels, [-1])
    same = tf.equal(tf.cast(labels, predictions.dtype), predictions)
    return _mean_of("accuracy", same, weights, metrics_collections, updates_collections, name)


@public
def mean_absolute_error(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
                        updates_collections: Any = None, name: str | None = None) -> _Pair:
    """The mean of absolute differences; see `mean`."""
    return _mean_of("mean_absolute_error", tf.abs(_apart(labels, predictions)), weights, metrics_collections,
                    updates_collections, name)


@public
def mean_squared_error(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
                       updates_collections: Any = None, name: str | None = None) -> _Pair:
    """The mean of squared differences; see `mean`."""
    return _mean_of("mean_squared_error", tf.square(_apart(labels, predictions)), weights, metrics_collections,
                    updates_collections, name)


@public
def root_mean_squared_error(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
                            updates_collections: Any = None, name: str | None = None) -> _Pair:
    """The root of the mean of squared differences; see `mean`."""
    return _mean_of("root_mean_squared_error", tf.square(_apart(labels, predictions)), weights, metrics_collections,
                    updates_collections, name, tf.sqrt)


@public
def mean_relative_error(labels: Any, predictions: Any, normalizer: Any, weights: Any = None,
                        metrics_collections: Any = None, updates_collections: Any = None,
                        name: str | None = None) -> _Pair:
    """The mean of absolute differences over `normalizer`, and 0 where that is 0; see `mean`."""
    part = tf.math.divide_no_nan(tf.abs(_apart(labels, predictions)), tf.cast(normalizer, tf.float32))
    return _mean_of("mean_relative_error", part, weights, metrics_collections, updates_collections, name)


@public
def percentage_below(values: Any, threshold: Any, weights: Any = None, metrics_collections: Any = None,
                     updates_collections: Any = None, name: str | None = None) -> _Pair:
    """What part of the values is below a threshold; see `mean`."""
    values = tf.convert_to_tensor(values)
    return _mean_of("percentage_below_threshold", values < tf.cast(threshold, values.dtype), weights,
                    metrics_collections, updates_collections, name)


# -- counts of outcomes --------------------------------------------------------------------------------
def _outcomes(labels: Any, predictions: Any, weights: Any, label: bool, prediction: bool) -> Any:
    """The weight of those with such a label and such a prediction."""
    is_label, is_told = tf.cast(labels, tf.bool), tf.cast(predictions, tf.bool)
    hit = tf.logical_and(tf.equal(is_label, label), tf.equal(is_told, prediction))
    return tf.reduce_sum(_weighted(hit, weights)[0])


def _count(what: str, label: bool, prediction: bool) -> Callable[..., _Pair]:
    def count(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
              updates_collections: Any = None, name: str | None = None) -> _Pair:
        _graph(what)
        amount = _outcomes(labels, predictions, weights, label, prediction)
        return _added(what, name, {"count": amount}, lambda total: total, metrics_collections, updates_collections)
    count.__name__ = count.__qualname__ = what
    count.__doc__ = f"The weight of {what.replace('_', ' ')} so far; see `mean`."
    return public(count)


true_positives, false_positives = _count("true_positives", True, True), _count("false_positives", False, True)
true_negatives, false_negatives = _count("true_negatives", False, False), _count("false_negatives", True, False)


def _share(what: str, label: bool, prediction: bool) -> Callable[..., _Pair]:
    """True positives among themselves and those with such a label and prediction."""
    def share(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
              updates_collections: Any = None, name: str | None = None) -> _Pair:
        _graph(what)
        amounts = {"true_positives": _outcomes(labels, predictions, weights, True, True),
                   "others": _outcomes(labels, predictions, weights, label, prediction)}
        return _added(what, name, amounts, lambda hit, other: tf.math.divide_no_nan(hit, hit + other),
                      metrics_collections, updates_collections)
    share.__name__ = share.__qualname__ = what
    share.__doc__ = f"The {what} of predictions so far; see `mean`."
    return public(share)


precision, recall = _share("precision", False, True), _share("recall", True, False)


@public
def auc(labels: Any, predictions: Any, weights: Any = None, num_thresholds: int = 200,
        metrics_collections: Any = None, updates_collections: Any = None, curve: str = "ROC",
        name: str | None = None, summation_method: str = "trapezoidal") -> _Pair:
    """The area under the curve of true over false positive rates, by trapezoids between thresholds; see `mean`.

    Args:
        labels: true or false.
        predictions: in [0, 1].
        num_thresholds: how many thresholds, evenly spaced; the first is below 0, the last above 1.
        weights, metrics_collections, updates_collections, name: as for `mean`.
        curve: "ROC".
        summation_method: "trapezoidal".
    Raises:
        ValueError: another curve or sum is asked for; those are in `tf.keras.metrics.AUC`.
    """
    _graph("auc")
    if curve != "ROC" or summation_method != "trapezoidal":
        raise ValueError("tf.metrics.auc: curve is 'ROC' and summation_method 'trapezoidal' here; see "
                         "tf.keras.metrics.AUC")
    inner = [(i + 1) / (num_thresholds - 1) for i in range(num_thresholds - 2)]
    thresholds = tf.constant([-1e-7, *inner, 1.0 + 1e-7], tf.float32)[:, tf.newaxis]
    flat = tf.reshape(tf.cast(predictions, tf.float32), [1, -1])
    is_label = tf.reshape(tf.cast(labels, tf.bool), [1, -1])
    weight = tf.ones_like(flat) if weights is None else tf.reshape(
        tf.cast(weights, tf.float32) + tf.zeros_like(tf.cast(predictions, tf.float32)), [1, -1])
    above = flat > thresholds

    def summed(mask: Any) -> Any:
        return tf.reduce_sum(tf.where(mask, weight, tf.zeros_like(weight)), 1)
    amounts = {
        "true_positives": summed(tf.logical_and(above, is_label)),
        "false_positives": summed(tf.logical_and(above, tf.logical_not(is_label))),
        "false_negatives": summed(tf.logical_and(tf.logical_not(above), is_label)),
        "true_negatives": summed(tf.logical_and(tf.logical_not(above), tf.logical_not(is_label)))}

    def area(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        hits = (tp + 1e-6) / (tp + fn + 1e-6)
        alarms = fp / (fp + tn + 1e-6)
        return tf.reduce_sum((alarms[:-1] - alarms[1:]) * (hits[:-1] + hits[1:]) / 2.0)
    return _added("auc", name, amounts, area, metrics_collections, updates_collections)


# -- classes -------------------------------------------------------------------------------------------
def _by_class(what: str, labels: Any, predictions: Any, num_classes: int, weights: Any, value_of: Callable[[Any], Any],
              name: str | None, metrics: Any, updates: Any) -> _Pair:
    _graph(what)
    flat = tf.reshape(tf.cast(labels, tf.int64), [-1]), tf.reshape(tf.cast(predictions, tf.int64), [-1])
    weight = None if weights is None else tf.cast(tf.reshape(weights, [-1]), tf.float32)
    matrix = tf.math.confusion_matrix(*flat, num_classes, weight, tf.float32)
    return _added(what, name, {"total_confusion_matrix": matrix}, value_of, metrics, updates)


@public
def mean_iou(labels: Any, predictions: Any, num_classes: int, weights: Any = None, metrics_collections: Any = None,
             updates_collections: Any = None, name: str | None = None) -> _Pair:
    """The mean over classes of intersection over union; the update gives the matrix of counts; see `mean`."""
    def value_of(matrix: Any) -> Any:
        hit = tf.linalg.diag_part(matrix)
        union = tf.reduce_sum(matrix, 0) + tf.reduce_sum(matrix, 1) - hit
        there = tf.reduce_sum(tf.cast(union > 0, tf.float32))
        return tf.math.divide_no_nan(tf.reduce_sum(tf.math.divide_no_nan(hit, union)), there)
    return _by_class("mean_iou", labels, predictions, num_classes, weights, value_of, name, metrics_collections,
                     updates_collections)


@public
def mean_per_class_accuracy(labels: Any, predictions: Any, num_classes: int, weights: Any = None,
                            metrics_collections: Any = None, updates_collections: Any = None,
                            name: str | None = None) -> _Pair:
    """The mean over classes of how often predictions are the label; see `mean`."""
    def value_of(matrix: Any) -> Any:
        return tf.reduce_mean(tf.math.divide_no_nan(tf.linalg.diag_part(matrix), tf.reduce_sum(matrix, 1)))
    return _by_class("mean_accuracy", labels, predictions, num_classes, weights, value_of, name, metrics_collections,
                     updates_collections)


publish(__name__)
