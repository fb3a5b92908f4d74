"""tf.bitwise: operations on the bits of integers. The ops are in `ir/ops/bitwise.py`."""

from __future__ import annotations

from typing import Any

from twofold._front.api import public_op
from twofold._front.namespace import publish
from twofold.ir import ops

__all__ = ["bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"]


@public_op(ops.bitwise_and)
def bitwise_and(x: Any, y: Any, name: str | None = None) -> Any:
    """Bits set in both `x` and `y`, elementwise.

    Args:
        x, y: integer tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not integer, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.bitwise.bitwise_and([0b1100], 0b1010)
    <tf.Tensor: shape=(1,), dtype=int32, numpy=array([8], dtype=int32)>
    """
    return ops.bitwise_and(x, y)


@public_op(ops.bitwise_or)
def bitwise_or(x: Any, y: Any, name: str | None = None) -> Any:
    """Bits set in `x` or `y`, elementwise.

    Args:
        x, y: integer tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not integer, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.bitwise.bitwise_or([0b1100], 0b1010)
    <tf.Tensor: shape=(1,), dtype=int32, numpy=array([14], dtype=int32)>
    """
    return ops.bitwise_or(x, y)


@public_op(ops.bitwise_xor)
def bitwise_xor(x: Any, y: Any, name: str | None = None) -> Any:
    """Bits set in exactly one of `x` and `y`, elementwise.

    Args:
        x, y: integer tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not integer, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.bitwise.bitwise_xor([0b1100], 0b1010)
    <tf.Tensor: shape=(1,), dtype=int32, numpy=array([6], dtype=int32)>
    """
    return ops.bitwise_xor(x, y)


@public_op(ops.invert)
def invert(x: Any, name: str | None = None) -> Any:
    """Bits that are not set in `x`, elementwise.

    Args:
        x: integer tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not integer.

    >>> import twofold as tf
    >>> tf.bitwise.invert([0, 7])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([-1, -8], dtype=int32)>
    """
    return ops.invert(x)


@public_op(ops.left_shift)
def left_shift(x: Any, y: Any, name: str | None = None) -> Any:
    """Moves the bits of `x` up by `y` places, elementwise; `y` counts modulo the width.

    Args:
        x, y: integer tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not integer, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.bitwise.left_shift([1, 3], [4, 1])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([16,  6], dtype=int32)>
    """
    return ops.left_shift(x, y)


@public_op(ops.right_shift)
def right_shift(x: Any, y: Any, name: str | None = None) -> Any:
    """Moves the bits of `x` down by `y` places, elementwise; signed numbers keep their sign.

    `y` counts modulo the width.

    Args:
        x, y: integer tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not integer, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.bitwise.right_shift([-8, 9], 1)
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([-4,  4], dtype=int32)>
    """
    return ops.right_shift(x, y)


publish(__name__)
