"""Connectionist temporal classification: sequences of labels for longer sequences of predictions (Graves et al., 2006).

The probability of a labelling is the sum over all ways to spread it over the time steps, with blanks between; the
forward recursion adds them up in logarithms, in one loop over the time steps, and its gradient is the tape's.
"""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import public

from .loss import as_tensor
from .regression import floats

__all__ = ["ctc"]

_BLANK = 0
_IMPOSSIBLE = -1e30  # a logarithm of 0 with which one can go on computing


@public
def ctc(y_true: Any, y_pred: Any) -> Any:
    """Minus the logarithm of the probability of a sequence of labels (CTC).

    Args:
        y_true: labels, integers from 1, [batch, most labels]; 0 stands for none, and for the blank.
        y_pred: logits, [batch, time steps, classes].
    Returns:
        A float tensor [batch]; infinite where there are too few time steps for the labels.
    Raises:
        ValueError: there are not so many axes.

    >>> import twofold as tf
    >>> print(tf.keras.losses.ctc([[1]], tf.zeros([1, 2, 2])).numpy().round(4))
    [0.2877]
    """
    labels, logits = as_tensor(y_true, tf.int32), floats(y_pred)
    if labels.shape.rank != 2:
        raise ValueError(f"ctc: y_true must be of shape (batch, most labels); got {labels.shape}.")
    if logits.shape.rank != 3:
        raise ValueError(f"ctc: y_pred must be of shape (batch, time steps, classes); got {logits.shape}.")
    count = tf.reduce_sum(tf.cast(tf.not_equal(labels, _BLANK), tf.int32), axis=-1)
    extended, skips = _extended(labels, logits.dtype)
    # [time, batch, states]: what each state says at each time
    said = tf.gather(tf.nn.log_softmax(logits), extended, axis=2, batch_dims=1)
    said = tf.transpose(said, [1, 0, 2])
    last = _forward(said, skips)
    ends = tf.stack([2 * count, tf.maximum(2 * count - 1, 0)], axis=1)
    final = tf.gather(last, ends, axis=1, batch_dims=1)
    impossible = tf.constant(_IMPOSSIBLE, logits.dtype)
    blank, label = final[:, 0], tf.where(count > 0, final[:, 1], impossible)
    total = _log_add(blank, label)
    return tf.where(total > 0.1 * _IMPOSSIBLE, tf.negative(total), tf.constant(float("inf"), logits.dtype))


def _extended(labels: Any, dtype: Any) -> tuple[Any, Any]:
    """Labels with blanks around each, and the cost of coming from two states before: none, or all there is.

    The blank between two labels may be left out where they differ.
    """
    doubled = tf.stack([tf.zeros_like(labels), labels], axis=2)
    width = 2 * labels.shape[1] if labels.shape[1] is not None else 2 * tf.shape(labels)[1]
    extended = tf.pad(tf.reshape(doubled, [tf.shape(labels)[0], width]), [[0, 0], [0, 1]])
    before = tf.pad(extended, [[0, 0], [2, 0]])[:, :-2]
    allowed = tf.logical_and(tf.not_equal(extended, _BLANK), tf.not_equal(extended, before))
    return extended, tf.where(allowed, tf.zeros((), dtype), tf.constant(_IMPOSSIBLE, dtype))


def _log_add(*values: Any) -> Any:
    """The logarithm of the sum of exponentials, of finite numbers."""
    largest = values[0]
    for value in values[1:]:
        largest = tf.maximum(largest, value)
    largest = tf.stop_gradient(largest)
    return largest + tf.math.log(tf.add_n([tf.exp(value - largest) for value in values]))


def _forward(said: Any, skips: Any) -> Any:
    """The logarithms of the probabilities to be in each state after the last time step."""
    impossible = tf.constant(_IMPOSSIBLE, said.dtype)
    states = tf.range(tf.shape(said)[2])
    # one begins in the first blank or in the first label
    first = tf.where(states < 2, said[0], impossible)

    def moved(alpha: Any, n: int) -> Any:
        return tf.pad(alpha, [[0, 0], [n, 0]], constant_values=_IMPOSSIBLE)[:, :-n]

    def step(t: Any, alpha: Any) -> tuple[Any, Any]:
        skipped = tf.maximum(moved(alpha, 2) + skips, impossible)
        total = _log_add(alpha, moved(alpha, 1), skipped)
        return t + 1, tf.maximum(total + tf.gather(said, t), impossible)

    steps = tf.shape(said)[0]
    return tf.while_loop(lambda t, alpha: t < steps, step, (tf.constant(1), first))[1]
