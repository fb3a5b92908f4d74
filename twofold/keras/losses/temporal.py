"""Connectionist temporal classification: sequences of labels for longer sequences of predictions (Graves et al., 2006).

`twofold/_ops/nn_ctc.py` computes it.
"""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import public
from twofold._ops.nn_ctc import labelling_loss

from .loss import as_tensor
from .regression import floats

__all__ = ["ctc"]

_BLANK = 0


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
    return labelling_loss(labels, count, logits, None, _BLANK)
