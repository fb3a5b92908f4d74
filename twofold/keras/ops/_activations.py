"""The activations of `tf.keras.activations` as functions of `tf.keras.ops`: of any numbers, and of KerasTensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import twofold as tf

from .. import activations
from ..keras_ops import operation
from ..operands import floating, shape_of

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "leaky_relu",
    "log_sigmoid", "log_softmax", "relu", "relu6", "selu", "sigmoid", "silu", "soft_shrink", "softmax", "softplus",
    "softsign", "sparse_plus", "sparse_sigmoid", "sparsemax", "squareplus", "swish", "tanh_shrink", "threshold",
]


def _of_numbers(activation: Callable[..., Any], tensors: str | None = None, also: str = "") -> Callable[..., Any]:
    """An activation whose integers count as `floatx()`."""
    @functools.wraps(activation)
    def function(x: Any, *args: Any, **kwargs: Any) -> Any:
        return activation(floating(x), *args, **kwargs)
    function.__doc__ = (activation.__doc__ or "").replace("tf.keras.activations", "tf.keras.ops")
    return operation("nn", tensors=tensors, also=also)(function)


celu = _of_numbers(activations.celu)
elu = _of_numbers(activations.elu)
glu = _of_numbers(activations.glu)
hard_shrink = _of_numbers(activations.hard_shrink)
hard_sigmoid = _of_numbers(activations.hard_sigmoid)
hard_silu = hard_swish = _of_numbers(activations.hard_silu, also="HardSwish")
hard_tanh = _of_numbers(activations.hard_tanh)
leaky_relu = _of_numbers(activations.leaky_relu)
log_sigmoid = _of_numbers(activations.log_sigmoid)
relu6 = _of_numbers(activations.relu6)
selu = _of_numbers(activations.selu)
sigmoid = _of_numbers(activations.sigmoid)
silu = swish = _of_numbers(activations.silu, also="Swish")
soft_shrink = _of_numbers(activations.soft_shrink)
softplus = _of_numbers(activations.softplus)
softsign = _of_numbers(activations.softsign)
sparse_plus = _of_numbers(activations.sparse_plus)
sparse_sigmoid = _of_numbers(activations.sparse_sigmoid)
sparsemax = _of_numbers(activations.sparsemax)
squareplus = _of_numbers(activations.squareplus)
tanh_shrink = _of_numbers(activations.tanh_shrink)
threshold = _of_numbers(activations.threshold, tensors="x")


@operation("nn")
def relu(x: Any) -> Any:
    """`x` where it is positive, else 0.

    >>> import twofold as tf
    >>> tf.keras.ops.relu([-1.0, 2.0]).numpy().tolist()
    [0.0, 2.0]
    """
    return tf.nn.relu(x)


@operation("nn")
def gelu(x: Any, approximate: bool = True) -> Any:
    """`x` times the probability that a standard normal variable is below it.

    Args:
        x: a tensor.
        approximate: whether to use an approximation by tanh.

    >>> import twofold as tf
    >>> tf.keras.ops.gelu([0.0, 100.0]).numpy().tolist()
    [0.0, 100.0]
    """
    return activations.gelu(floating(x), approximate)


def _over_all(function: Callable[..., Any], x: Any, axis: Any) -> Any:
    if axis is not None:
        return function(x, axis=axis)
    return tf.reshape(function(tf.reshape(x, [-1]), axis=-1), shape_of(x))


@operation("nn")
def softmax(x: Any, axis: Any = -1) -> Any:
    """exp(x) over its sum along an axis, along several together, or with None over all.

    >>> import twofold as tf
    >>> tf.keras.ops.softmax([[1.0, 1.0]]).numpy().tolist()
    [[0.5, 0.5]]
    """
    return _over_all(activations.softmax, floating(x), axis)


@operation("nn")
def log_softmax(x: Any, axis: Any = -1) -> Any:
    """The logarithm of `softmax`, without overflow.

    >>> import twofold as tf
    >>> tf.keras.ops.log_softmax([[1000.0, 0.0]]).numpy().tolist()
    [[0.0, -1000.0]]
    """
    return _over_all(activations.log_softmax, floating(x), axis)
