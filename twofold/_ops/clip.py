"""Clipping by value and by norm, under TensorFlow's names.

By value is one op; by norm is composed here, so that the gradient at a norm of 0 is finite. Norms of
tensors along axes are `tf.norm`'s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from twofold._front.api import axis_arg, listed, public, tensor
from twofold._ops.math_arithmetic import add_n
from twofold.ir import dims as dm
from twofold.ir import ops

__all__ = ["clip_by_average_norm", "clip_by_global_norm", "clip_by_norm", "clip_by_value", "global_norm"]


@public
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """Moves every element into `[clip_value_min, clip_value_max]`; NaN stays NaN.

    The gradient goes to `t` where it lies within, else to the bound that took its place.

    Args:
        t: real tensor.
        clip_value_min, clip_value_max: numbers, or tensors of the dtype of `t` that broadcast to its shape.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `t`.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not real, or a bound does not broadcast to `t`.

    >>> import twofold as tf
    >>> tf.clip_by_value([-5.0, 0.5, 9.0], -1.0, 1.0)
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([-1. ,  0.5,  1. ], dtype=float32)>
    """
    return ops.clip_by_value(t, clip_value_min, clip_value_max)


def _norm(square: Any) -> Any:
    """Square root with the gradient 0 at 0."""
    positive = ops.greater(square, 0)
    return ops.where(positive, ops.sqrt(ops.where(positive, square, 1)), square)


@public
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """Scales a tensor down so that its Euclidean norm is at most `clip_norm`.

    Args:
        t: float tensor.
        clip_norm: the largest norm, positive: a number, or a tensor of the dtype of `t` that broadcasts to it.
        axes: axes along which the norm is taken; None for one norm of all elements.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `t`: `t * clip_norm / norm` where the norm is larger, else `t`.
    Raises:
        tf.errors.InvalidArgumentError: `t` is not floating, an axis is out of range, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.clip_by_norm([3.0, 4.0], 1.0)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.6, 0.8], dtype=float32)>
    """
    t = tensor(t)
    norm = _norm(ops.reduce_sum(ops.square(t), axis=axis_arg(axes, t), keepdims=True))
    return ops.divide(ops.multiply(t, clip_norm), ops.maximum(norm, clip_norm))


@public
def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Any:
    """Scales a tensor down so that its Euclidean norm divided by its number of elements is at most `clip_norm`.

    Args:
        t: float tensor.
        clip_norm: the largest average norm, positive: a number or a tensor of rank 0 and the dtype of `t`.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `t`.
    Raises:
        tf.errors.InvalidArgumentError: `t` is not floating.

    >>> import twofold as tf
    >>> from twofold._ops.clip import clip_by_average_norm
    >>> clip_by_average_norm([3.0, 4.0], 1.25)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.5, 2. ], dtype=float32)>
    """
    t = tensor(t)
    norm = ops.divide(_norm(ops.reduce_sum(ops.square(t), keepdims=True)), dm.numel(t.dims))
    return ops.divide(ops.multiply(t, clip_norm), ops.maximum(norm, clip_norm))


@public
def global_norm(t_list: Any, name: str | None = None) -> Any:
    """Euclidean norm of several tensors together: the root of the sum of all squares.

    Args:
        t_list: list of float tensors of one dtype; None stands for nothing.
        name: has no effect.
    Returns:
        Tensor of rank 0 and that dtype; None where the list holds no tensor.
    Raises:
        TypeError: `t_list` is not a list. tf.errors.InvalidArgumentError: dtypes differ or are not floating.

    >>> import twofold as tf
    >>> tf.linalg.global_norm([[3.0], None, [[4.0]]])
    <tf.Tensor: shape=(), dtype=float32, numpy=5.0>
    """
    squares = [ops.reduce_sum(ops.square(t)) for t in _listed(t_list) if t is not None]
    return _norm(add_n(squares)) if squares else None


@public
def clip_by_global_norm(t_list: Any, clip_norm: Any, use_norm: Any = None, name: str | None = None) -> Any:
    """Scales several tensors down together so that their common Euclidean norm is at most `clip_norm`.

    Args:
        t_list: list of float tensors of one dtype; None stays None.
        clip_norm: the largest norm, positive: a number or a tensor of rank 0 and that dtype.
        use_norm: their norm where it is known; None to compute it with `global_norm`.
        name: has no effect.
    Returns:
        The scaled tensors, a list; and the norm they had. Where that is infinite or NaN, all tensors are NaN.
    Raises:
        TypeError: `t_list` is not a list. tf.errors.InvalidArgumentError: dtypes differ or are not floating.

    >>> import twofold as tf
    >>> clipped, norm = tf.clip_by_global_norm([tf.constant([3.0]), None, tf.constant([4.0])], 1.0)
    >>> norm.numpy().item(), clipped[1], [round(t.numpy().item(), 6) for t in clipped if t is not None]
    (5.0, None, [0.6, 0.8])
    """
    values = _listed(t_list)
    norm = global_norm(values) if use_norm is None else tensor(use_norm)
    if norm is None:
        return values, None
    scale = ops.divide(clip_norm, ops.maximum(norm, clip_norm))
    scale = ops.where(ops.is_finite(norm), scale, math.nan)
    return [None if t is None else ops.multiply(t, scale) for t in values], norm


def _listed(t_list: Any) -> list[Any]:
    if not isinstance(t_list, Sequence) or isinstance(t_list, str):
        raise TypeError(f"t_list should be a sequence; got {type(t_list).__name__}.")
    return listed(t_list, "t_list")

