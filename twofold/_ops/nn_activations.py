"""Activations of `tf.nn`, under TensorFlow's names; `twofold/nn.py` re-exports them.

The ops are in `ir/ops/activations.py`; sigmoid, tanh, softplus and softsign are those of `tf.math`.
"""

from __future__ import annotations

from typing import Any

from twofold._front.api import axis_span, one_int, public, public_op, tensor
from twofold._ops.math_functions import sigmoid, softplus, softsign, tanh
from twofold.ir import dtypes as dt
from twofold.ir import ops

__all__ = ["crelu", "elu", "gelu", "leaky_relu", "relu", "relu6", "selu", "sigmoid", "silu", "softplus",
           "softsign", "swish", "tanh"]


@public_op(ops.relu)
def relu(features: Any, name: str | None = None) -> Any:
    """`features` where they are positive, else 0, elementwise; NaN stays NaN.

    The gradient at 0 is 0.

    Args:
        features: real tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `features`.
    Raises:
        tf.errors.InvalidArgumentError: `features` is not real.

    >>> import twofold as tf
    >>> tf.nn.relu([-2.0, 0.0, 3.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([0., 0., 3.], dtype=float32)>
    """
    return ops.relu(features)


@public_op(ops.relu6)
def relu6(features: Any, name: str | None = None) -> Any:
    """`features` between 0 and 6, and the nearer of the two beyond, elementwise.

    Source: Krizhevsky, "Convolutional Deep Belief Networks on CIFAR-10" (2010).

    Args:
        features: real tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `features`.
    Raises:
        tf.errors.InvalidArgumentError: `features` is not real.

    >>> import twofold as tf
    >>> tf.nn.relu6([-2.0, 3.0, 8.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([0., 3., 6.], dtype=float32)>
    """
    return ops.relu6(features)


@public
def leaky_relu(features: Any, alpha: Any = 0.2, name: str | None = None) -> Any:
    """`features` where they are positive, else `alpha * features`, elementwise.

    Source: Maas et al., "Rectifier Nonlinearities Improve Neural Network Acoustic Models" (2013).

    Args:
        features: real tensor; integers become float32.
        alpha: slope below 0: a number or a tensor of the dtype of `features`.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `features`.
    Raises:
        tf.errors.InvalidArgumentError: `features` is not real.

    >>> import twofold as tf
    >>> tf.nn.leaky_relu([-2.0, 3.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([-0.4,  3. ], dtype=float32)>
    """
    x = tensor(features)
    if x.dtype.is_integer:
        x = ops.cast(x, dtype=dt.float32)
    return ops.leaky_relu(x, alpha)


@public_op(ops.elu)
def elu(features: Any, name: str | None = None) -> Any:
    """`features` where they are positive, else `exp(features) - 1`, elementwise.

    Source: Clevert et al., "Fast and Accurate Deep Network Learning by Exponential Linear Units" (2015).

    Args:
        features: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `features`.
    Raises:
        tf.errors.InvalidArgumentError: `features` is not floating.

    >>> import twofold as tf
    >>> tf.nn.elu([-1.0, 2.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([-0.63212055,  2.        ], dtype=float32)>
    """
    return ops.elu(features)


@public_op(ops.selu)
def selu(features: Any, name: str | None = None) -> Any:
    """`scale * features` where positive, else `scale * alpha * (exp(features) - 1)`, elementwise.

    scale is 1.0507... and alpha 1.6732..., from Klambauer et al., "Self-Normalizing Neural Networks" (2017).

    Args:
        features: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `features`.
    Raises:
        tf.errors.InvalidArgumentError: `features` is not floating.

    >>> import twofold as tf
    >>> tf.nn.selu([-1.0, 2.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([-1.1113307,  2.101402 ], dtype=float32)>
    """
    return ops.selu(features)


@public_op(ops.gelu, own=True)
def gelu(features: Any, approximate: bool = False, name: str | None = None) -> Any:
    """`features` times the probability that a standard normal variable stays below them, elementwise.

    Source: Hendrycks & Gimpel, "Gaussian Error Linear Units (GELUs)" (2016).

    Args:
        features: float tensor.
        approximate: whether to use the approximation by tanh.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `features`.
    Raises:
        tf.errors.InvalidArgumentError: `features` is not floating.

    >>> import twofold as tf
    >>> tf.nn.gelu([-1.0, 2.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([-0.15865527,  1.9544997 ], dtype=float32)>
    >>> tf.nn.gelu([-1.0, 2.0], approximate=True)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([-0.158808 ,  1.9545977], dtype=float32)>
    """
    return ops.gelu_tanh(features) if approximate else ops.gelu(features)


@public_op(ops.silu, own=True)
def silu(features: Any, beta: Any = 1.0, name: str | None = None) -> Any:
    """`features * sigmoid(beta * features)`, elementwise.

    Source: Ramachandran et al., "Searching for Activation Functions" (2017).

    Args:
        features: float tensor.
        beta: factor in the sigmoid: a number or a tensor of the dtype of `features`.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `features`.
    Raises:
        tf.errors.InvalidArgumentError: `features` is not floating.

    >>> import twofold as tf
    >>> tf.nn.silu([-1.0, 2.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([-0.26894143,  1.7615942 ], dtype=float32)>
    """
    if isinstance(beta, (int, float)) and beta == 1:
        return ops.silu(features)
    x = tensor(features)
    return ops.multiply(x, ops.sigmoid(ops.multiply(x, beta)))


@public
def crelu(features: Any, axis: int = -1, name: str | None = None) -> Any:
    """`relu` of `features` and of `-features`, side by side.

    Source: Shang et al., "Understanding and Improving Convolutional Neural Networks via Concatenated Rectified
    Linear Units" (2016).

    Args:
        features: real tensor.
        axis: the axis along which the two halves are joined.
        name: has no effect.
    Returns:
        Tensor of the dtype of `features`, twice as long along `axis`.
    Raises:
        tf.errors.InvalidArgumentError: `axis` is out of range, or `features` is unsigned or not real.

    >>> import twofold as tf
    >>> tf.nn.crelu([[-1.0, 2.0]])
    <tf.Tensor: shape=(1, 4), dtype=float32, numpy=array([[0., 2., 1., 0.]], dtype=float32)>
    """
    x = tensor(features)
    return ops.relu(ops.concat(x, ops.negative(x), axis=one_int(axis, "axis", axis_span(x))))


swish = silu
