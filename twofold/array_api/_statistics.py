"""Functions that reduce axes, and running totals."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import public, same_axis
from twofold._ops import numpy_reductions as _shared
from twofold._ops.numpy_operands import axis_of

from ._rules import default_int, operand

__all__ = ["all", "any", "cumulative_prod", "cumulative_sum", "max", "mean", "min", "prod", "std", "sum", "var"]


def _total(x: Any, dtype: Any) -> Any:
    """A tensor in the dtype of its sums: small integers are of the default one."""
    if dtype is not None:
        return tf.cast(x, dtype)
    if x.dtype.is_bool or (x.dtype.is_integer and x.dtype.size < 4):
        return tf.cast(x, tf.uint32 if x.dtype.is_unsigned else default_int)
    return x


@public
def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The sum.

    Args:
        x: a tensor; integers below 32 bits are added as int32 or uint32.
        axis: the axis or axes to reduce; None for all.
        dtype: the dtype in which the elements are added.
        keepdims: whether reduced axes stay, of size 1.

    >>> import twofold.array_api as xp
    >>> int(xp.sum(xp.asarray([1, 2, 3])))
    6
    """
    x = operand(x)
    return tf.reduce_sum(_total(x, dtype), axis=same_axis(axis, x), keepdims=keepdims)


@public
def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The product; arguments as for `sum`.

    >>> import twofold.array_api as xp
    >>> int(xp.prod(xp.asarray([1, 2, 3])))
    6
    """
    x = operand(x)
    return tf.reduce_prod(_total(x, dtype), axis=same_axis(axis, x), keepdims=keepdims)


@public
def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The largest element.

    >>> import twofold.array_api as xp
    >>> int(xp.max(xp.asarray([1, 2, 3])))
    3
    """
    x = operand(x)
    return _shared.largest(x, same_axis(axis, x), keepdims)


@public
def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The smallest element.

    >>> import twofold.array_api as xp
    >>> int(xp.min(xp.asarray([1, 2, 3])))
    1
    """
    x = operand(x)
    return _shared.smallest(x, same_axis(axis, x), keepdims)


@public
def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The mean.

    >>> import twofold.array_api as xp
    >>> float(xp.mean(xp.asarray([1.0, 2.0, 3.0])))
    2.0
    """
    x = operand(x)
    return tf.reduce_mean(x, axis=same_axis(axis, x), keepdims=keepdims)


@public
def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The variance: the mean of squared distances from the mean.

    Args:
        x: a floating tensor.
        axis: the axis or axes to reduce; None for all.
        correction: how much less than the number of elements the squares are divided by.
        keepdims: whether reduced axes stay, of size 1.

    >>> import twofold.array_api as xp
    >>> float(xp.var(xp.asarray([1.0, 2.0, 3.0]), correction=1))
    1.0
    """
    x = operand(x)
    return _shared.variance(x, same_axis(axis, x), keepdims, correction)


@public
def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The standard deviation: the square root of the variance; arguments as for `var`.

    >>> import twofold.array_api as xp
    >>> float(xp.std(xp.asarray([1.0, 2.0, 3.0]), correction=1))
    1.0
    """
    return tf.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


@public
def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether all elements are true, or not 0.

    >>> import twofold.array_api as xp
    >>> bool(xp.all(xp.asarray([1, 0])))
    False
    """
    x = operand(x)
    return _shared.truth(tf.reduce_all)(x, same_axis(axis, x), keepdims)


@public
def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether any element is true, or not 0.

    >>> import twofold.array_api as xp
    >>> bool(xp.any(xp.asarray([1, 0])))
    True
    """
    x = operand(x)
    return _shared.truth(tf.reduce_any)(x, same_axis(axis, x), keepdims)


def _cumulative(compute: Any, x: Any, axis: int | None, dtype: Any, first: int | None) -> Any:
    x = operand(x)
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"An axis must be named for a tensor of rank {x.ndim}.")
        axis = 0
    axis = axis_of(axis, x.ndim)
    totals = compute(_total(x, dtype), axis=axis)
    if first is None:
        return totals
    sizes = [1 if n == axis else x.shape[n] for n in range(x.ndim)]
    return tf.concat([tf.fill(sizes, tf.cast(first, totals.dtype)), totals], axis)


@public
def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """The sums of all elements up to each.

    Args:
        x: a tensor.
        axis: along which; a vector needs none.
        dtype: the dtype in which the elements are added.
        include_initial: whether the sum of none is there, too.

    >>> import twofold.array_api as xp
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True).numpy().tolist()
    [0, 1, 3, 6]
    """
    return _cumulative(tf.cumsum, x, axis, dtype, 0 if include_initial else None)


@public
def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """The products of all elements up to each; arguments as for `cumulative_sum`.

    >>> import twofold.array_api as xp
    >>> xp.cumulative_prod(xp.asarray([1, 2, 3])).numpy().tolist()
    [1, 2, 6]
    """
    return _cumulative(tf.math.cumprod, x, axis, dtype, 1 if include_initial else None)
