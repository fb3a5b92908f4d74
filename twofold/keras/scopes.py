"""Blocks and wrappers around layers: names, devices, and activations that are computed again for gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.api import public

__all__ = ["device", "name_scope", "remat"]

name_scope = tf.name_scope


@public
def device(device_name: str) -> Any:
    """A block whose ops run on a device.

    Args:
        device_name: such as "cpu:0" or "gpu:0".

    >>> import twofold as tf
    >>> with tf.keras.device("cpu:0"):
    ...     print(tf.constant(1.0).device)
    /job:localhost/replica:0/task:0/device:CPU:0
    """
    return tf.device(device_name)


@public
def remat(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose inner values gradients compute again instead of keeping them; `tf.recompute_grad`.

    Args:
        f: a function of tensors, or a layer.

    >>> import twofold as tf
    >>> x = tf.constant(2.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = tf.keras.remat(lambda x: tf.exp(x) * x)(x)
    >>> f"{tape.gradient(y, x).numpy():.3f}"
    '22.167'
    """
    made: Callable[..., Any] = tf.recompute_grad(f)
    return made
