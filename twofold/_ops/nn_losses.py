"""Softmax, its logarithm, and losses computed from logits. Re-exported by `twofold/nn.py`.

Losses take logits rather than probabilities, so that neither overflow nor the logarithm of a rounded 0 can occur.
"""

from __future__ import annotations

import math
from typing import Any

from twofold._front.api import axis_span, one_int, public, tensor
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import grad, ops
from twofold.ir.errors import DTypeError, InvalidArgumentError, op_error

__all__ = ["softmax", "log_softmax", "softmax_cross_entropy_with_logits", "sparse_softmax_cross_entropy_with_logits",
           "sigmoid_cross_entropy_with_logits", "weighted_cross_entropy_with_logits", "log_poisson_loss", "l2_loss",
           "zero_fraction"]


def _axis(axis: Any, x: Any) -> int:
    return -1 if axis is None else one_int(axis, "axis", axis_span(x))


@public
def softmax(logits: Any, axis: Any = None, name: str | None = None) -> Any:
    """exp(logits) / sum(exp(logits)) along an axis; positive, with sum 1. Nothing overflows.

    Args:
        logits: floating tensor of rank 1 or more.
        axis: the axis; the last by default.
        name: has no effect.
    Returns:
        Tensor like `logits`.
    Raises:
        tf.errors.InvalidArgumentError: no such axis, a scalar, or another dtype.

    >>> import twofold as tf
    >>> tf.nn.softmax(tf.constant([0.0, 0.0])).numpy().tolist()
    [0.5, 0.5]
    """
    return ops.softmax(logits, axis=_axis(axis, logits))


@public
def log_softmax(logits: Any, axis: Any = None, name: str | None = None) -> Any:
    """logits - log(sum(exp(logits))) along an axis. Nothing overflows.

    Args:
        logits: floating tensor of rank 1 or more.
        axis: the axis; the last by default.
        name: has no effect.
    Returns:
        Tensor like `logits`.
    Raises:
        tf.errors.InvalidArgumentError: no such axis, a scalar, or another dtype.

    >>> import twofold as tf
    >>> tf.nn.log_softmax(tf.constant([0.0, 1000.0])).numpy().tolist()
    [-1000.0, 0.0]
    """
    return ops.log_softmax(logits, axis=_axis(axis, logits))


def _two(op: str, first: str, a: Any, second: str, b: Any) -> tuple[Any, Any]:
    """Two operands as tensors of one dtype and shape."""
    if a is None or b is None:
        raise InvalidArgumentError(f"{op}: both {first} and {second} must be given.")
    a = tensor(a, hint=b.dtype if hasattr(b, "dims") else None)
    b = tensor(b, hint=a.dtype)
    if a.dtype is not b.dtype:
        raise op_error(DTypeError, op, f"dtypes differ: {a.dtype.name} and {b.dtype.name}.", [(first, a), (second, b)])
    if len(a.dims) != len(b.dims) or not all(dm.require_eq(m, n) for m, n in zip(a.dims, b.dims, strict=True)):
        raise op_error(InvalidArgumentError, op, f"{first} and {second} must have the same shape.",
                       [(first, a), (second, b)])
    return a, b


@public
def softmax_cross_entropy_with_logits(labels: Any, logits: Any, axis: Any = -1, name: str | None = None) -> Any:
    """-sum(labels * log_softmax(logits)) along an axis.

    Args:
        labels: floating; probabilities of the classes, which should add up to 1.
        logits: of the same dtype and a shape that fits by broadcasting.
        axis: the axis of the classes.
        name: has no effect.
    Returns:
        Tensor of that shape without `axis`. Gradients go to both operands.
    Raises:
        tf.errors.InvalidArgumentError: shapes or dtypes do not fit, or no such axis.

    >>> import twofold as tf
    >>> loss = tf.nn.softmax_cross_entropy_with_logits(labels=[[0.0, 1.0]], logits=[[0.0, 0.0]])
    >>> loss.numpy().round(4).tolist()
    [0.6930999755859375]
    """
    axis = _axis(axis, logits)
    logits = tensor(logits, hint=labels.dtype if hasattr(labels, "dims") else None)
    products = ops.multiply(labels, ops.log_softmax(logits, axis=axis))
    return ops.negative(ops.reduce_sum(products, axis=(axis,), keepdims=False))


@public
def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Any:
    """The negative log probability of the right class.

    Args:
        labels: integers in [0, classes), of the shape of `logits` without its last axis.
        logits: floating [.., classes].
        name: has no effect.
    Returns:
        Tensor of the shape of `labels` and the dtype of `logits`.
    Raises:
        tf.errors.InvalidArgumentError: a label is out of range, shapes do not fit, or dtypes are others.

    >>> import twofold as tf
    >>> loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1], logits=[[0.0, 0.0]])
    >>> loss.numpy().round(4).tolist()
    [0.6930999755859375]
    """
    labels, logits = tensor(labels), tensor(logits)
    operands = [("labels", labels), ("logits", logits)]
    op = "sparse_softmax_cross_entropy_with_logits"
    if not labels.dtype.is_integer:
        raise op_error(DTypeError, op, f"labels must be integers; got {labels.dtype.name}.", operands)
    rows, rank = logits.dims[:-1], len(logits.dims)
    fits = labels.dims == rows or len(labels.dims) == rank - 1 and all(map(dm.require_eq, labels.dims, rows))
    if not rank or not fits:
        raise op_error(InvalidArgumentError, op, "labels must have the shape of logits without the last axis.",
                       operands)
    return ops.sparse_cross_entropy(logits, labels)


def _log_one_plus_exp_of_minus_abs(x: Any, positive: Any) -> Any:
    return ops.log1p(ops.exp(ops.where(positive, ops.negative(x), x)))


@public
def sigmoid_cross_entropy_with_logits(labels: Any = None, logits: Any = None, name: str | None = None) -> Any:
    """The cross entropy of independent yes-or-no classes: -z log sigmoid(x) - (1 - z) log(1 - sigmoid(x)).

    Computed as max(x, 0) - x z + log(1 + exp(-|x|)), which neither overflows nor cancels.

    Args:
        labels: floating, probabilities.
        logits: of the same dtype and shape.
        name: has no effect.
    Returns:
        Tensor of the same shape.
    Raises:
        tf.errors.InvalidArgumentError: shapes or dtypes differ.

    >>> import twofold as tf
    >>> loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=[1.0, 0.0], logits=[1000.0, 1000.0])
    >>> loss.numpy().tolist()
    [0.0, 1000.0]
    """
    z, x = _two("sigmoid_cross_entropy_with_logits", "labels", labels, "logits", logits)
    positive = ops.greater_equal(x, grad.scalar(0, x))
    upper = ops.where(positive, x, grad.scalar(0, x))
    return ops.add(ops.subtract(upper, ops.multiply(x, z)), _log_one_plus_exp_of_minus_abs(x, positive))


@public
def weighted_cross_entropy_with_logits(labels: Any, logits: Any, pos_weight: Any, name: str | None = None) -> Any:
    """Sigmoid cross entropy in which yes counts `pos_weight` times: -q z log sigmoid(x) - (1 - z) log(1 - sigmoid(x)).

    Args:
        labels: floating, probabilities.
        logits: of the same dtype and shape.
        pos_weight: the weight q.
        name: has no effect.
    Returns:
        Tensor of the same shape.
    Raises:
        tf.errors.InvalidArgumentError: shapes or dtypes differ.

    >>> import twofold as tf
    >>> loss = tf.nn.weighted_cross_entropy_with_logits(tf.constant([1.0]), tf.constant([-100.0]), 2.0)
    >>> loss.numpy().tolist()
    [200.0]
    """
    z, x = _two("weighted_cross_entropy_with_logits", "labels", labels, "logits", logits)
    positive = ops.greater_equal(x, grad.scalar(0, x))
    one = grad.scalar(1, x)
    weight = ops.add(ops.multiply(ops.subtract(pos_weight, one), z), one)
    upper = ops.where(positive, grad.scalar(0, x), ops.negative(x))
    soft = ops.add(_log_one_plus_exp_of_minus_abs(x, positive), upper)
    return ops.add(ops.multiply(ops.subtract(one, z), x), ops.multiply(weight, soft))


@public
def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None) -> Any:
    """The negative log likelihood of Poisson counts: exp(c) - z c, and with the full loss Stirling's log z!.

    Args:
        targets: floating, the counts z.
        log_input: of the same dtype and shape, the logarithms c of the rates.
        compute_full_loss: whether to add z log z - z + log(2 pi z) / 2 where z > 1; it does not depend on `log_input`.
        name: has no effect.
    Returns:
        Tensor of the same shape.
    Raises:
        tf.errors.InvalidArgumentError: shapes or dtypes differ.

    >>> import twofold as tf
    >>> tf.nn.log_poisson_loss(tf.constant([2.0]), tf.constant([0.0])).numpy().tolist()
    [1.0]
    """
    z, c = _two("log_poisson_loss", "targets", targets, "log_input", log_input)
    loss = ops.subtract(ops.exp(c), ops.multiply(c, z))
    if not compute_full_loss:
        return loss
    one, half = grad.scalar(1, z), grad.scalar(0.5, z)
    counts = ops.logical_or(ops.less(z, grad.scalar(0, z)), ops.greater(z, one))
    safe = ops.where(counts, z, one)
    stirling = ops.add(ops.subtract(ops.multiply(safe, ops.log(safe)), safe),
                       ops.multiply(half, ops.log(ops.multiply(grad.scalar(2 * math.pi, z), safe))))
    return ops.add(loss, ops.where(counts, stirling, grad.scalar(0, z)))


@public
def l2_loss(t: Any, name: str | None = None) -> Any:
    """sum(t**2) / 2.

    Args:
        t: floating tensor.
        name: has no effect.
    Returns:
        Scalar of the same dtype.
    Raises:
        tf.errors.InvalidArgumentError: another dtype.

    >>> import twofold as tf
    >>> tf.nn.l2_loss(tf.constant([3.0, 4.0])).numpy().item()
    12.5
    """
    t = tensor(t)
    if not t.dtype.is_floating:
        raise op_error(DTypeError, "l2_loss", f"t must be floating; got {t.dtype.name}.", [("t", t)])
    return ops.multiply(ops.reduce_sum(ops.square(t)), grad.scalar(0.5, t))


@public
def zero_fraction(value: Any, name: str | None = None) -> Any:
    """Which share of the elements is zero.

    Args:
        value: numeric tensor.
        name: has no effect.
    Returns:
        float32 scalar; NaN for an empty tensor.
    Raises:
        tf.errors.InvalidArgumentError: another dtype.

    >>> import twofold as tf
    >>> tf.nn.zero_fraction(tf.constant([0.0, 1.0, 0.0, 2.0])).numpy().item()
    0.5
    """
    value = tensor(value)
    zeros = ops.cast(ops.equal(value, grad.scalar(0, value)), dtype=dt.float32)
    return ops.reduce_mean(zeros)
