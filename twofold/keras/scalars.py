"""Hyperparameters beside tensors: numbers in the dtype that is computed in.

`tf.cast(0.1, tf.float64)` is 0.10000000149: a Python number alone is a float32 before it is cast. What layers, losses
and optimizers are configured with must not lose digits that way, so it goes through here.
"""

from __future__ import annotations

from typing import Any

import twofold as tf

__all__ = ["number"]


def number(value: Any, dtype: Any) -> Any:
    """A hyperparameter as a tensor of `dtype`.

    Args:
        value: a Python number, a list of them or a NumPy array, each digit of which counts; or a tensor or variable,
            which is cast.
        dtype: of the tensor.

    >>> import twofold as tf
    >>> from twofold.keras.scalars import number
    >>> number(0.1, tf.float64).numpy().item(), number(tf.constant(2), tf.float32).numpy().item()
    (0.1, 2.0)
    """
    if isinstance(value, (tf.Tensor, tf.Variable)) or hasattr(value, "sizes"):
        return tf.cast(value, dtype)
    dtype = tf.as_dtype(dtype)
    if dtype.is_integer or dtype.is_bool:
        return tf.cast(value, dtype)
    return tf.constant(value, dtype)
