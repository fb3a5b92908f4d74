"""Functions that reduce axes: sums, extremes, means; running totals; and what they make of NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.api import public, same_axis
from twofold._ops import numpy_order as _order
from twofold._ops import numpy_reductions as _shared

from ._rules import as_dtype, default_int, floating, legacy, tensor

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "argsort", "average", "count_nonzero", "cumprod", "cumsum", "max",
    "mean", "min", "nanmean", "nanprod", "nansum", "prod", "ptp", "sort", "std", "sum", "var",
]

_Reduce = Callable[..., Any]


def _without(out: Any) -> None:
    if out is not None:
        raise ValueError("Setting out is not supported: tensors cannot be written to.")


def _total(x: Any, dtype: Any) -> Any:
    """A tensor in the dtype of its sums: that given; else small integers and bools are of the default integer."""
    if dtype is not None:
        return tf.cast(x, as_dtype(dtype))
    if x.dtype.is_bool or (x.dtype.is_integer and x.dtype.size < default_int().size):
        unsigned = tf.uint64 if legacy() else tf.uint32
        return tf.cast(x, unsigned if x.dtype.is_unsigned else default_int())
    return x


def _floats(a: Any, dtype: Any) -> Any:
    """A value in the dtype of its mean."""
    return floating(a)[0] if dtype is None else tensor(a, as_dtype(dtype))


def _reduced(compute: _Reduce, a: Any, axis: Any, keepdims: Any) -> Any:
    return compute(a, axis=same_axis(axis, a), keepdims=bool(keepdims))


# -- sums and means -------------------------------------------------------------------------------
@public
def sum(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = None) -> Any:
    """The sum.

    Args:
        a: a tensor; small integers and bools are added as the default integer.
        axis: the axis or axes to reduce; None for all.
        dtype: the dtype in which the elements are added.
        keepdims: whether reduced axes stay, of size 1.

    >>> import twofold as tf
    >>> tf.experimental.numpy.sum([[1, 5], [3, 4]], axis=1).numpy().tolist()
    [6, 7]
    """
    return _reduced(tf.reduce_sum, _total(tensor(a), dtype), axis, keepdims)


@public
def prod(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = None) -> Any:
    """The product; arguments as for `sum`.

    >>> import twofold as tf
    >>> tf.experimental.numpy.prod([[1, 5], [3, 4]], axis=1).numpy().tolist()
    [5, 12]
    """
    return _reduced(tf.reduce_prod, _total(tensor(a), dtype), axis, keepdims)


@public
def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = None) -> Any:
    """The mean.

    Args:
        a: a tensor; integers and bools count as floats.
        axis: the axis or axes to reduce; None for all.
        dtype: the dtype in which it is computed.
        out: must be None.
        keepdims: whether reduced axes stay, of size 1.
    Raises:
        ValueError: `out` is given.

    >>> import twofold as tf
    >>> tf.experimental.numpy.mean([[1, 5], [3, 4]], axis=1).numpy().tolist()
    [3.0, 3.5]
    """
    _without(out)
    return _reduced(tf.reduce_mean, _floats(a, dtype), axis, keepdims)


@public
def var(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: Any = None) -> Any:
    """The variance: the mean of squared distances from the mean.

    Args:
        a: a tensor; integers and bools count as floats.
        axis: the axis or axes to reduce; None for all.
        dtype: the dtype of the result.
        out: must be None.
        ddof: how much less than the number of elements the squares are divided by.
        keepdims: whether reduced axes stay, of size 1.
    Raises:
        ValueError: `out` is given.

    >>> import twofold as tf
    >>> tf.experimental.numpy.var([[1, 5], [3, 4]], axis=1).numpy().tolist()
    [4.0, 0.25]
    """
    _without(out)
    return _shared.variance(_floats(a, dtype), same_axis(axis, tensor(a)), bool(keepdims), ddof)


@public
def std(a: Any, axis: Any = None, keepdims: Any = None) -> Any:
    """The standard deviation: the square root of the variance.

    Args:
        a: a tensor; integers and bools count as floats.
        axis: the axis or axes to reduce; None for all.
        keepdims: whether reduced axes stay, of size 1.

    >>> import twofold as tf
    >>> tf.experimental.numpy.std([[1, 5], [3, 4]], axis=1).numpy().tolist()
    [2.0, 0.5]
    """
    return tf.sqrt(var(a, axis, keepdims=keepdims))


@public
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False) -> Any:
    """The mean of weighted elements.

    Args:
        a: a tensor.
        axis: an axis; None for all.
        weights: a tensor of a's shape, or one number for each place along the axis.
        returned: whether the sum of the weights is returned besides.
    Raises:
        ValueError: the axis is neither an integer nor None, or the weights do not fit.

    >>> import twofold as tf
    >>> tf.experimental.numpy.average([[1.0, 5.0]], axis=1, weights=[1.0, 3.0]).numpy().tolist()
    [4.0]
    """
    if axis is not None and not isinstance(axis, int):
        raise ValueError(f"The `axis` argument of average must be an integer or None; got {axis!r}.")
    x = tensor(a)
    if weights is None:
        mean_of_all = mean(x, axis)
        ones = tf.ones_like(floating(x)[0])
        return (mean_of_all, tf.broadcast_to(tf.reduce_sum(ones, axis=axis), tf.shape(mean_of_all))) if returned else (
            mean_of_all)
    x, weights = floating(x, weights)
    if weights.ndim != x.ndim:
        if axis is None or weights.ndim != 1:
            raise ValueError(f"average: weights of shape {weights.shape} do not fit shape {x.shape} and axis {axis}.")
        weights = tf.reshape(weights, [-1 if n == axis % x.ndim else 1 for n in range(x.ndim)])
    total = tf.reduce_sum(tf.broadcast_to(weights, tf.shape(x)), axis=axis)
    result = tf.reduce_sum(x * weights, axis=axis) / total
    return (result, total) if returned else result


# -- extremes and truth ---------------------------------------------------------------------------
def _extreme(name: str, compute: _Reduce, text: str, y: Any) -> Any:
    def function(a: Any, axis: Any = None, keepdims: Any = None) -> Any:
        a = tensor(a)
        return compute(a, same_axis(axis, a), bool(keepdims))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{text}

    Args:
        a: a tensor.
        axis: the axis or axes to reduce; None for all.
        keepdims: whether reduced axes stay, of size 1.

    >>> import twofold as tf
    >>> tf.experimental.numpy.{name}([[1, 5], [3, 4]], axis=1).numpy().tolist()
    {y}
    """
    return public(function)


def _aliased(name: str, plain: _Reduce, text: str, y: Any) -> Any:
    def function(a: Any, axis: Any = None, out: Any = None, keepdims: Any = None) -> Any:
        _without(out)
        return plain(a, axis, keepdims)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{text}

    Args:
        a: a tensor.
        axis: the axis or axes to reduce; None for all.
        out: must be None.
        keepdims: whether reduced axes stay, of size 1.
    Raises:
        ValueError: `out` is given.

    >>> import twofold as tf
    >>> tf.experimental.numpy.{name}([[1, 5], [3, 4]], axis=1).numpy().tolist()
    {y}
    """
    return public(function)


max = _extreme("max", _shared.largest, "The largest element.", [5, 4])
min = _extreme("min", _shared.smallest, "The smallest element.", [1, 3])
amax = _aliased("amax", max, "The largest element; the same as `max`.", [5, 4])
amin = _aliased("amin", min, "The smallest element; the same as `min`.", [1, 3])
ptp = _extreme("ptp", lambda a, *how: _shared.largest(a, *how) - _shared.smallest(a, *how),
               "How far the largest element is from the smallest.", [4, 1])
all = _extreme("all", _shared.truth(tf.reduce_all), "Whether all elements are true, or not 0.", [True, True])
any = _extreme("any", _shared.truth(tf.reduce_any), "Whether any element is true, or not 0.", [True, True])


@public
def count_nonzero(a: Any, axis: Any = None) -> Any:
    """How many elements are not 0, as int64.

    >>> import twofold as tf
    >>> tf.experimental.numpy.count_nonzero([[1, 0], [3, 4]], axis=1).numpy().tolist()
    [1, 2]
    """
    return tf.math.count_nonzero(tensor(a), axis=axis, dtype=tf.int64)


def _number(x: Any) -> Any:
    return tf.cast(x, tf.int8) if x.dtype.is_bool else x


@public
def argmax(a: Any, axis: int | None = None) -> Any:
    """The place of the largest element, the first if there are several, as int64.

    Args:
        a: a tensor.
        axis: an axis; by default places are those of the flat tensor.

    >>> import twofold as tf
    >>> tf.experimental.numpy.argmax([[1, 5], [7, 4]]).numpy().tolist()
    2
    """
    return _shared.place(tf.argmax, _number(tensor(a)), axis, False, tf.int64)


@public
def argmin(a: Any, axis: int | None = None) -> Any:
    """The place of the smallest element, the first if there are several, as int64; arguments as for `argmax`.

    >>> import twofold as tf
    >>> tf.experimental.numpy.argmin([[1, 5], [7, 4]], axis=1).numpy().tolist()
    [0, 1]
    """
    return _shared.place(tf.argmin, _number(tensor(a)), axis, False, tf.int64)


# -- running totals -------------------------------------------------------------------------------
def _running(compute: _Reduce, a: Any, axis: int | None, dtype: Any) -> Any:
    x = tensor(a)
    if dtype is not None:
        x = tf.cast(x, as_dtype(dtype))
    elif x.dtype.is_bool or (x.dtype.is_integer and x.dtype.size < default_int().size):
        x = tf.cast(x, default_int())
    return _shared.running(compute, x, axis)


@public
def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """The sums of all elements up to each.

    Args:
        a: a tensor; bools and small integers are added as the default integer.
        axis: along which; by default that of the flat tensor.
        dtype: the dtype in which they are added.

    >>> import twofold as tf
    >>> tf.experimental.numpy.cumsum([[1, 2], [3, 4]]).numpy().tolist()
    [1, 3, 6, 10]
    """
    return _running(tf.cumsum, a, axis, dtype)


@public
def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """The products of all elements up to each; arguments as for `cumsum`.

    >>> import twofold as tf
    >>> tf.experimental.numpy.cumprod([[1, 2], [3, 4]], axis=1).numpy().tolist()
    [[1, 2], [3, 12]]
    """
    return _running(tf.math.cumprod, a, axis, dtype)


# -- without NaN ----------------------------------------------------------------------------------
@public
def nansum(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """The sum of what is not NaN; arguments as for `sum`.

    >>> import twofold as tf
    >>> tf.experimental.numpy.nansum([1.0, float("nan"), 3.0]).numpy().tolist()
    4.0
    """
    return sum(_shared.filled(tensor(a), 0.0), axis, dtype, keepdims)


@public
def nanprod(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """The product of what is not NaN; arguments as for `sum`.

    >>> import twofold as tf
    >>> tf.experimental.numpy.nanprod([2.0, float("nan"), 3.0]).numpy().tolist()
    6.0
    """
    return prod(_shared.filled(tensor(a), 1.0), axis, dtype, keepdims)


@public
def nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = None) -> Any:
    """The mean of what is not NaN; arguments as for `sum`.

    >>> import twofold as tf
    >>> tf.experimental.numpy.nanmean([1.0, float("nan"), 3.0]).numpy().tolist()
    2.0
    """
    x = _floats(a, dtype)
    there = tf.cast(tf.logical_not(tf.math.is_nan(x)), x.dtype) if x.dtype.is_floating else tf.ones_like(x)
    return sum(_shared.filled(x, 0.0), axis, keepdims=keepdims) / sum(there, axis, keepdims=keepdims)


# -- order ----------------------------------------------------------------------------------------
def _kind_of_sort(kind: str, order: Any, kinds: tuple[str, ...]) -> None:
    if order is not None:
        raise ValueError("'order' argument to sort is not supported.")
    if kind not in kinds:
        raise ValueError(f"Invalid value for argument `kind`: expected one of {', '.join(kinds)}; got {kind!r}.")


@public
def sort(a: Any, axis: int | None = -1, kind: str = "quicksort", order: Any = None) -> Any:
    """The elements in rising order along an axis; of the flat tensor, if `axis` is None.

    Args:
        a: a tensor.
        axis: along which.
        kind: "quicksort".
        order: must be None.
    Raises:
        ValueError: `kind` or `order` is another.

    >>> import twofold as tf
    >>> tf.experimental.numpy.sort([3, 1, 2]).numpy().tolist()
    [1, 2, 3]
    """
    _kind_of_sort(kind, order, ("quicksort",))
    return _order.ordered_along(tensor(a), axis)


@public
def argsort(a: Any, axis: int | None = -1, kind: str = "quicksort", order: Any = None) -> Any:
    """The places of the elements in rising order, as the default integer; equal ones stay in order.

    Args:
        a: a tensor.
        axis: along which; that of the flat tensor, if None.
        kind: "quicksort" or "stable".
        order: must be None.
    Raises:
        ValueError: `kind` or `order` is another.

    >>> import twofold as tf
    >>> tf.experimental.numpy.argsort([3, 1, 2]).numpy().tolist()
    [1, 2, 0]
    """
    _kind_of_sort(kind, order, ("quicksort", "stable"))
    return tf.cast(_order.order_along(tensor(a), axis), default_int())
