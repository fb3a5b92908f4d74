"""Comparisons and logic of `tf.math`, under TensorFlow's names; `twofold/math.py` re-exports them.

The ops are in `ir/ops/comparison.py`.
"""

from __future__ import annotations

from typing import Any

from twofold._front.api import public_op
from twofold.ir import dtypes as dt
from twofold.ir import ops

__all__ = ["equal", "greater", "greater_equal", "is_finite", "is_inf", "is_nan", "less", "less_equal", "logical_and",
           "logical_not", "logical_or", "logical_xor", "not_equal"]


def any_string(*values: Any) -> bool:
    """Whether there is a string or a tensor of strings among the values."""
    return any(isinstance(v, (str, bytes)) or getattr(v, "dtype", None) is dt.string for v in values)


@public_op(ops.equal, own=True)
def equal(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether `x == y`, elementwise; NaN equals nothing.

    Args:
        x, y: tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of dtype bool and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not comparable, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.equal([1, 2, 3], 2)
    <tf.Tensor: shape=(3,), dtype=bool, numpy=array([False,  True, False])>
    """
    return ops.string_equal(x, y) if any_string(x, y) else ops.equal(x, y)


@public_op(ops.not_equal, own=True)
def not_equal(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether `x != y`, elementwise; NaN differs from everything.

    Args:
        x, y: tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of dtype bool and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not comparable, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.not_equal([1, 2, 3], 2)
    <tf.Tensor: shape=(3,), dtype=bool, numpy=array([ True, False,  True])>
    """
    return ops.logical_not(ops.string_equal(x, y)) if any_string(x, y) else ops.not_equal(x, y)


@public_op(ops.less)
def less(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether `x < y`, elementwise.

    Args:
        x, y: real tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of dtype bool and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not real, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.less([1, 2, 3], 2)
    <tf.Tensor: shape=(3,), dtype=bool, numpy=array([ True, False, False])>
    """
    return ops.less(x, y)


@public_op(ops.less_equal)
def less_equal(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether `x <= y`, elementwise.

    Args:
        x, y: real tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of dtype bool and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not real, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.less_equal([1, 2, 3], 2)
    <tf.Tensor: shape=(3,), dtype=bool, numpy=array([ True,  True, False])>
    """
    return ops.less_equal(x, y)


@public_op(ops.greater)
def greater(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether `x > y`, elementwise.

    Args:
        x, y: real tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of dtype bool and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not real, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.greater([1, 2, 3], 2)
    <tf.Tensor: shape=(3,), dtype=bool, numpy=array([False, False,  True])>
    """
    return ops.greater(x, y)


@public_op(ops.greater_equal)
def greater_equal(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether `x >= y`, elementwise.

    Args:
        x, y: real tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of dtype bool and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not real, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.greater_equal([1, 2, 3], 2)
    <tf.Tensor: shape=(3,), dtype=bool, numpy=array([False,  True,  True])>
    """
    return ops.greater_equal(x, y)


@public_op(ops.logical_and)
def logical_and(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether both `x` and `y` hold, elementwise.

    Args:
        x, y: bool tensors that broadcast together.
        name: has no effect.
    Returns:
        Tensor of dtype bool and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not bool, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.logical_and([True, True], [True, False])
    <tf.Tensor: shape=(2,), dtype=bool, numpy=array([ True, False])>
    """
    return ops.logical_and(x, y)


@public_op(ops.logical_or)
def logical_or(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether `x` or `y` holds, elementwise.

    Args:
        x, y: bool tensors that broadcast together.
        name: has no effect.
    Returns:
        Tensor of dtype bool and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not bool, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.logical_or([True, False], [False, False])
    <tf.Tensor: shape=(2,), dtype=bool, numpy=array([ True, False])>
    """
    return ops.logical_or(x, y)


@public_op(ops.logical_xor)
def logical_xor(x: Any, y: Any, name: str | None = None) -> Any:
    """Whether exactly one of `x` and `y` holds, elementwise.

    Args:
        x, y: bool tensors that broadcast together.
        name: has no effect.
    Returns:
        Tensor of dtype bool and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not bool, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.math.logical_xor([True, True], [True, False])
    <tf.Tensor: shape=(2,), dtype=bool, numpy=array([False,  True])>
    """
    return ops.logical_xor(x, y)


@public_op(ops.logical_not)
def logical_not(x: Any, name: str | None = None) -> Any:
    """Whether `x` does not hold, elementwise.

    Args:
        x: bool tensor.
        name: has no effect.
    Returns:
        Tensor of dtype bool and the shape of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not bool.

    >>> import twofold as tf
    >>> tf.logical_not([True, False])
    <tf.Tensor: shape=(2,), dtype=bool, numpy=array([False,  True])>
    """
    return ops.logical_not(x)


@public_op(ops.is_nan)
def is_nan(x: Any, name: str | None = None) -> Any:
    """Whether `x` is NaN, elementwise.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of dtype bool and the shape of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.is_nan([1.0, float('nan')])
    <tf.Tensor: shape=(2,), dtype=bool, numpy=array([False,  True])>
    """
    return ops.is_nan(x)


@public_op(ops.is_inf)
def is_inf(x: Any, name: str | None = None) -> Any:
    """Whether `x` is infinite, elementwise.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of dtype bool and the shape of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.is_inf([1.0, float('-inf')])
    <tf.Tensor: shape=(2,), dtype=bool, numpy=array([False,  True])>
    """
    return ops.is_inf(x)


@public_op(ops.is_finite)
def is_finite(x: Any, name: str | None = None) -> Any:
    """Whether `x` is neither infinite nor NaN, elementwise.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of dtype bool and the shape of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.is_finite([1.0, float('inf')])
    <tf.Tensor: shape=(2,), dtype=bool, numpy=array([ True, False])>
    """
    return ops.is_finite(x)

