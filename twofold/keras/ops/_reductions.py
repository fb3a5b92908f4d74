"""Functions that reduce axes: sums, extremes, means, quantiles, and what they make of NaN; and running totals.

All take `axis` (an integer, several, or None for all axes) and `keepdims`, as NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.api import same_axis
from twofold._ops.numpy_reductions import filled, largest, place, running, smallest, truth

from ..keras_ops import operation
from ..operands import axes_of, axis_of, floating, numeric, same, size_of, tensor
from ..promotion import result_type

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "cumprod", "cumsum", "max", "mean",
    "median", "min", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin",
    "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "percentile", "prod", "ptp", "quantile",
    "std", "sum", "trapezoid", "var",
]

_Reduce = Callable[..., Any]


def _reduction(name: str, compute: _Reduce, text: str, sample: str, y: str) -> _Reduce:
    """A function of a tensor that reduces axes."""
    def function(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        x = tensor(x)
        return compute(x, same_axis(axis, x), keepdims)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{text}

    Args:
        x: a tensor.
        axis: the axis or axes to reduce; None for all.
        keepdims: whether reduced axes stay, of size 1.

    >>> import twofold as tf
    >>> tf.keras.ops.{name}({sample}, axis=1).numpy().tolist()
    {y}
    """
    return operation("numpy")(function)


def _total(x: Any) -> Any:
    """A tensor in the dtype of its sums: small integers and bools become int32 or uint32."""
    if x.dtype.is_bool or (x.dtype.is_integer and x.dtype.size < 4):
        return tf.cast(x, tf.uint32 if x.dtype.is_unsigned else tf.int32)
    return x


def _sum(x: Any, axis: Any, keepdims: bool) -> Any:
    return tf.reduce_sum(_total(x), axis=axis, keepdims=keepdims)


def _mean(x: Any, axis: Any, keepdims: bool) -> Any:
    computed = floating(x)
    half = computed.dtype.size < 4 and computed.dtype.is_floating
    average = tf.reduce_mean(tf.cast(computed, tf.float32) if half else computed, axis=axis, keepdims=keepdims)
    return tf.cast(average, computed.dtype)


def _var(x: Any, axis: Any, keepdims: bool) -> Any:
    x = floating(x)
    target = tf.float32 if x.dtype.size < 4 else x.dtype
    variance = tf.math.reduce_variance(tf.cast(x, target), axis=axis, keepdims=keepdims)
    return tf.cast(variance, variance.dtype if x.dtype.is_complex else x.dtype)


def _std(x: Any, axis: Any, keepdims: bool) -> Any:
    x = floating(x)
    target = tf.float32 if x.dtype.size < 4 else x.dtype
    deviation = tf.math.reduce_std(tf.cast(x, target), axis=axis, keepdims=keepdims)
    return tf.cast(deviation, deviation.dtype if x.dtype.is_complex else x.dtype)


def _ptp(x: Any, axis: Any, keepdims: bool) -> Any:
    return largest(x, axis, keepdims) - smallest(x, axis, keepdims)


# -- without NaN ----------------------------------------------------------------------------------
def _nan_mean(x: Any, axis: Any, keepdims: bool) -> Any:
    x = floating(x)
    return _sum(filled(x, 0.0), axis, keepdims) / _counted(x, axis, keepdims)


def _counted(x: Any, axis: Any, keepdims: bool) -> Any:
    there = tf.cast(tf.logical_not(tf.math.is_nan(x)), x.dtype)
    return tf.reduce_sum(there, axis=axis, keepdims=keepdims)


def _nan_var(x: Any, axis: Any, keepdims: bool) -> Any:
    x = floating(x)
    apart = tf.where(tf.math.is_nan(x), tf.zeros((), x.dtype), x - _nan_mean(x, axis, True))
    return tf.reduce_sum(tf.square(apart), axis=axis, keepdims=keepdims) / _counted(x, axis, keepdims)


def _nan_extreme(reduce: _Reduce, sign: float) -> _Reduce:
    """An extreme of the elements that are not NaN; NaN where all are."""
    def compute(x: Any, axis: Any, keepdims: bool) -> Any:
        extreme = reduce(filled(x, sign * float("inf")), axis, keepdims)
        if not x.dtype.is_floating:
            return extreme
        none = tf.reduce_all(tf.math.is_nan(x), axis=axis, keepdims=keepdims)
        return tf.where(none, tf.constant(float("nan"), x.dtype), extreme)
    return compute


_X, _NAN = "[[1, 5], [3, 4]]", '[[1.0, float("nan")], [3.0, 4.0]]'
sum = _reduction("sum", _sum, "The sum. Integers below 32 bits, and bools, are added as int32 or uint32.", _X, "[6, 7]")
mean = _reduction("mean", _mean, "The mean; integers count as `floatx()`.", _X, "[3.0, 3.5]")
var = _reduction("var", _var, "The variance: the mean of squared distances from the mean.", _X, "[4.0, 0.25]")
std = _reduction("std", _std, "The standard deviation: the square root of the variance.", _X, "[2.0, 0.5]")
amax = _reduction("amax", largest, "The largest element; the same as `max`.", _X, "[5, 4]")
amin = _reduction("amin", smallest, "The smallest element; the same as `min`.", _X, "[1, 3]")
ptp = _reduction("ptp", _ptp, "How far the largest element is from the smallest.", _X, "[4, 1]")
all = _reduction("all", truth(tf.reduce_all), "Whether all elements are true, or not 0.", _X, "[True, True]")
any = _reduction("any", truth(tf.reduce_any), "Whether any element is true, or not 0.", _X, "[True, True]")
nansum = _reduction("nansum", lambda x, *a: _sum(filled(x, 0.0), *a), "The sum of what is not NaN.", _NAN,
                    "[1.0, 7.0]")
nanprod = _reduction("nanprod", lambda x, *a: _prod(filled(x, 1.0), *a), "The product of what is not NaN.", _NAN,
                     "[1.0, 12.0]")
nanmean = _reduction("nanmean", _nan_mean, "The mean of what is not NaN.", _NAN, "[1.0, 3.5]")
nanvar = _reduction("nanvar", _nan_var, "The variance of what is not NaN.", _NAN, "[0.0, 0.25]")
nanstd = _reduction("nanstd", lambda *a: tf.sqrt(_nan_var(*a)), "The standard deviation of what is not NaN.", _NAN,
                    "[0.0, 0.5]")
nanmax = _reduction("nanmax", _nan_extreme(largest, -1.0), "The largest element that is not NaN.", _NAN, "[1.0, 4.0]")
nanmin = _reduction("nanmin", _nan_extreme(smallest, 1.0), "The smallest element that is not NaN.", _NAN,
                    "[1.0, 3.0]")


def _with_initial(x: Any, initial: Any, join: Callable[[Any, Any], Any]) -> Any:
    return x if initial is None else join(x, tensor(initial, x.dtype))


@operation("numpy")
def max(x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Any:
    """The largest element.

    Args:
        x: a tensor.
        axis: the axis or axes to reduce; None for all.
        keepdims: whether reduced axes stay, of size 1.
        initial: a number that counts as one more element.

    >>> import twofold as tf
    >>> tf.keras.ops.max([[1, 5], [3, 4]], axis=1).numpy().tolist()
    [5, 4]
    """
    return _with_initial(largest(tensor(x), axis, keepdims), initial, tf.maximum)


@operation("numpy")
def min(x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Any:
    """The smallest element.

    Args:
        x: a tensor.
        axis: the axis or axes to reduce; None for all.
        keepdims: whether reduced axes stay, of size 1.
        initial: a number that counts as one more element.

    >>> import twofold as tf
    >>> tf.keras.ops.min([[1, 5], [3, 4]], axis=1).numpy().tolist()
    [1, 3]
    """
    return _with_initial(smallest(tensor(x), axis, keepdims), initial, tf.minimum)


def _prod(x: Any, axis: Any, keepdims: bool) -> Any:
    return tf.reduce_prod(_total(x), axis=axis, keepdims=keepdims)


@operation("numpy")
def prod(x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
    """The product. Integers below 32 bits, and bools, are multiplied as int32 or uint32.

    Args:
        x: a tensor.
        axis: the axis or axes to reduce; None for all.
        keepdims: whether reduced axes stay, of size 1.
        dtype: the dtype of the result.

    >>> import twofold as tf
    >>> tf.keras.ops.prod([[1, 5], [3, 4]], axis=1).numpy().tolist()
    [5, 12]
    """
    x = tensor(x)
    return tf.reduce_prod(_total(x) if dtype is None else tf.cast(x, dtype), axis=axis, keepdims=keepdims)


@operation("numpy", tensors="x weights")
def average(x: Any, axis: Any = None, weights: Any = None) -> Any:
    """The mean of weighted elements.

    Args:
        x: a tensor.
        axis: the axis or axes to reduce; None for all.
        weights: a tensor of x's shape, or one number for each place along one axis.

    >>> import twofold as tf
    >>> tf.keras.ops.average([[1.0, 5.0]], axis=1, weights=[1.0, 3.0]).numpy().tolist()
    [4.0]
    """
    if weights is None:
        return _mean(tensor(x), axis, False)
    x, weights = same(x, weights, at_least=float)
    if axis is not None and x.ndim != weights.ndim:
        weights = tf.reshape(weights, [-1 if n == axis_of(axis, x.ndim) else 1 for n in range(x.ndim)])
        return tf.reduce_sum(x * weights, axis=axis) / tf.reduce_sum(weights)
    return tf.reduce_sum(x * weights, axis=axis) / tf.reduce_sum(weights, axis=axis)


@operation("numpy")
def count_nonzero(x: Any, axis: Any = None) -> Any:
    """How many elements are not 0, as int32.

    >>> import twofold as tf
    >>> tf.keras.ops.count_nonzero([[1, 0], [3, 4]], axis=1).numpy().tolist()
    [1, 2]
    """
    return tf.math.count_nonzero(tensor(x), axis=axis, dtype=tf.int32)


def _place(find: _Reduce, x: Any, axis: int | None, keepdims: bool) -> Any:
    """The place of an extreme, as int32: along an axis, or among all elements."""
    return place(find, numeric(x), axis, keepdims, tf.int32)


@operation("numpy")
def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """The place of the largest element, the first if there are several, as int32.

    Args:
        x: a tensor.
        axis: an axis; by default places are those of the flat tensor.
        keepdims: whether reduced axes stay, of size 1.

    >>> import twofold as tf
    >>> tf.keras.ops.argmax([[1, 5], [7, 4]]).numpy().tolist()
    2
    """
    return _place(tf.argmax, x, axis, keepdims)


@operation("numpy")
def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """The place of the smallest element, the first if there are several, as int32; arguments as for `argmax`.

    >>> import twofold as tf
    >>> tf.keras.ops.argmin([[1, 5], [7, 4]], axis=1).numpy().tolist()
    [0, 1]
    """
    return _place(tf.argmin, x, axis, keepdims)


def _place_of_number(find: _Reduce, fill: float, x: Any, axis: int | None, keepdims: bool) -> Any:
    position = _place(find, filled(x, fill), axis, keepdims)
    if not x.dtype.is_floating:
        return position
    none = tf.reduce_all(tf.math.is_nan(x), axis=axis, keepdims=keepdims)
    return tf.where(none, tf.constant(-1), position)


@operation("numpy")
def nanargmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """The place of the largest element that is not NaN; -1 where all are. Arguments as for `argmax`.

    >>> import twofold as tf
    >>> tf.keras.ops.nanargmax([1.0, float("nan"), 3.0]).numpy().tolist()
    2
    """
    return _place_of_number(tf.argmax, -float("inf"), tensor(x), axis, keepdims)


@operation("numpy")
def nanargmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """The place of the smallest element that is not NaN; -1 where all are. Arguments as for `argmax`.

    >>> import twofold as tf
    >>> tf.keras.ops.nanargmin([float("nan"), 3.0, 1.0]).numpy().tolist()
    2
    """
    return _place_of_number(tf.argmin, float("inf"), tensor(x), axis, keepdims)


def _running(compute: _Reduce, x: Any, axis: int | None, dtype: Any) -> Any:
    return running(compute, numeric(tensor(x) if dtype is None else tensor(x, dtype)), axis)


@operation("numpy")
def cumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """The sums of all elements up to each.

    Args:
        x: a tensor; bools count as int32.
        axis: along which; by default that of the flat tensor.
        dtype: the dtype in which they are added; x's by default.

    >>> import twofold as tf
    >>> tf.keras.ops.cumsum([[1, 2], [3, 4]]).numpy().tolist()
    [1, 3, 6, 10]
    """
    return _running(tf.cumsum, x, axis, dtype)


@operation("numpy")
def cumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """The products of all elements up to each; arguments as for `cumsum`.

    >>> import twofold as tf
    >>> tf.keras.ops.cumprod([[1, 2], [3, 4]], axis=1).numpy().tolist()
    [[1, 2], [3, 12]]
    """
    return _running(tf.math.cumprod, x, axis, dtype)


@operation("numpy")
def nancumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """The sums of all elements up to each, NaN as 0; arguments as for `cumsum`.

    >>> import twofold as tf
    >>> tf.keras.ops.nancumsum([1.0, float("nan"), 3.0]).numpy().tolist()
    [1.0, 1.0, 4.0]
    """
    return _running(tf.cumsum, filled(tensor(x), 0.0), axis, dtype)


@operation("numpy")
def nancumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """The products of all elements up to each, NaN as 1; arguments as for `cumsum`.

    >>> import twofold as tf
    >>> tf.keras.ops.nancumprod([2.0, float("nan"), 3.0]).numpy().tolist()
    [2.0, 2.0, 6.0]
    """
    return _running(tf.math.cumprod, filled(tensor(x), 1.0), axis, dtype)


# -- quantiles ------------------------------------------------------------------------------------
_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def _between(rows: Any, place: Any, method: str) -> Any:
    """Elements of sorted rows [..., n] at places [..., q] that may be between two."""
    low, high = tf.floor(place), tf.math.ceil(place)
    if method == "nearest":
        low = high = tf.round(place)
    at_low = tf.gather(rows, tf.cast(low, tf.int32), axis=-1, batch_dims=rows.ndim - 1)
    if method in ("lower", "nearest"):
        return at_low
    at_high = tf.gather(rows, tf.cast(high, tf.int32), axis=-1, batch_dims=rows.ndim - 1)
    if method == "higher":
        return at_high
    if method == "midpoint":
        half = tf.constant(0.5, rows.dtype)
        return at_low * half + at_high * half
    return at_low + (at_high - at_low) * tf.cast(place - low, rows.dtype)


def _quantile(x: Any, q: Any, axis: Any, method: str, keepdims: bool, skip: bool) -> Any:
    if method not in _METHODS:
        raise ValueError(f"Invalid method: {method!r}. Expected one of {', '.join(_METHODS)}.")
    x, q = floating(x), tensor(q, tf.float64)
    axes = axes_of(axis, x.ndim)
    kept = [n for n in range(x.ndim) if n not in axes]
    sizes = [size_of(x, n) for n in kept]
    rows = tf.reshape(tf.transpose(x, [*kept, *axes]), [*sizes, -1] if kept else [-1])
    bad = tf.math.is_nan(rows)
    count = tf.reduce_sum(tf.cast(tf.logical_not(bad), tf.float64), axis=-1, keepdims=True)
    infinity = tf.constant(float("inf"), rows.dtype)
    last = count - 1 if skip else tf.ones_like(count) * tf.cast(size_of(rows, -1) - 1, tf.float64)
    quantiles = _between(tf.sort(tf.where(bad, infinity, rows)), tf.maximum(last, 0) * tf.reshape(q, [-1]), method)
    none = tf.equal(count, 0) if skip else tf.reduce_any(bad, axis=-1, keepdims=True)
    quantiles = tf.where(none, tf.constant(float("nan"), rows.dtype), quantiles)
    quantiles = tf.transpose(quantiles, [quantiles.ndim - 1, *range(quantiles.ndim - 1)])
    shape = [1 if n in axes else size_of(x, n) for n in range(x.ndim)] if keepdims else sizes
    return tf.reshape(quantiles, [*q.shape.as_list(), *shape])


@operation("numpy")
def quantile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Any:
    """The elements below which given shares of all elements are.

    Args:
        x: a tensor; integers count as `floatx()`.
        q: shares between 0 and 1, a number or a tensor; its axes come first in the result.
        axis: the axis or axes to reduce; None for all.
        method: where a place is between two elements: "linear", "lower", "higher", "midpoint" or "nearest".
        keepdims: whether reduced axes stay, of size 1.
    Raises:
        ValueError: the method is another.

    >>> import twofold as tf
    >>> tf.keras.ops.quantile([1.0, 2.0, 3.0, 4.0], [0.0, 0.5]).numpy().tolist()
    [1.0, 2.5]
    """
    return _quantile(x, q, axis, method, keepdims, False)


@operation("numpy")
def nanquantile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Any:
    """Quantiles of the elements that are not NaN; arguments as for `quantile`.

    >>> import twofold as tf
    >>> tf.keras.ops.nanquantile([1.0, float("nan"), 2.0], 0.5).numpy().tolist()
    1.5
    """
    return _quantile(x, q, axis, method, keepdims, True)


def _hundredths(q: Any) -> Any:
    return tensor(q, tf.float64) / 100


@operation("numpy")
def percentile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Any:
    """The elements below which given hundredths of all elements are; other arguments as for `quantile`.

    >>> import twofold as tf
    >>> tf.keras.ops.percentile([1.0, 2.0, 3.0, 4.0], 50).numpy().tolist()
    2.5
    """
    return _quantile(x, _hundredths(q), axis, method, keepdims, False)


@operation("numpy")
def nanpercentile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Any:
    """Percentiles of the elements that are not NaN; arguments as for `percentile`.

    >>> import twofold as tf
    >>> tf.keras.ops.nanpercentile([1.0, float("nan"), 2.0], 50).numpy().tolist()
    1.5
    """
    return _quantile(x, _hundredths(q), axis, method, keepdims, True)


@operation("numpy")
def median(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The middle of the sorted elements, or the mean of the two in the middle.

    >>> import twofold as tf
    >>> tf.keras.ops.median([[1, 5], [3, 4]], axis=1).numpy().tolist()
    [3.0, 3.5]
    """
    return _quantile(x, 0.5, axis, "midpoint", keepdims, False)


@operation("numpy")
def nanmedian(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The median of the elements that are not NaN.

    >>> import twofold as tf
    >>> tf.keras.ops.nanmedian([1.0, float("nan"), 2.0]).numpy().tolist()
    1.5
    """
    return _quantile(x, 0.5, axis, "midpoint", keepdims, True)


@operation("numpy")
def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    """The integral of samples by the trapezoidal rule.

    Args:
        y: samples.
        x: where they are; by default each `dx` from the one before.
        dx: a number.
        axis: along which.

    >>> import twofold as tf
    >>> tf.keras.ops.trapezoid([1.0, 2.0, 3.0], dx=2.0).numpy().tolist()
    8.0
    """
    y = floating(y)
    axis = axis_of(axis, y.ndim)
    y = tf.transpose(y, [*[n for n in range(y.ndim) if n != axis], axis])
    if x is None:
        steps = tensor(dx, y.dtype)
    else:
        x = tensor(x)
        if x.ndim > 1:
            x = tf.transpose(x, [*[n for n in range(x.ndim) if n != axis], axis])
        y, x = same(y, x, at_least=result_type(float))
        steps = x[..., 1:] - x[..., :-1]
    return tf.reduce_sum((y[..., 1:] + y[..., :-1]) / 2 * steps, axis=-1)
