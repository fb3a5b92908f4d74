"""ONNX ops that go along axes: reductions, arguments of extremes, cumulative sums, softmax and its like."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import twofold as tf

from .import_table import Call, on_sizes, op
from .import_values import ChannelsLast, Value, dims_of, int_list, tensor_of

__all__ = ["axes_of", "one_axis"]


def one_axis(call: Call, axis: Any, rank: int) -> int:
    """An axis counted from 0.

    Raises:
        ValueError: there is no such axis.
    """
    number = int(axis)
    if not -rank <= number < max(rank, 1):
        raise call.fail(f"axis {number} of a tensor of {rank} axes")
    return number % rank if rank else 0


def axes_of(call: Call, axes: Value, rank: int) -> tuple[int, ...] | None:
    """Axes from an input, or from the attribute of older versions; None where they are left out."""
    given = call.attr("axes") if axes is None else int_list(axes, "axes")
    return None if given is None else tuple(one_axis(call, a, rank) for a in given)


def _reduction(name: str, fn: Callable[..., Any], whole: bool = True) -> None:
    """Register a reduction.

    Args:
        fn: from a tensor, axes and whether they are kept to the result.
        whole: whether it gives for no axes what it is of one element, as all do but for plain sums, maxima, ...
    """
    @op(name, static=(1,), layout=True)
    def run(call: Call, x: Value, axes: Value = None) -> Value:
        rank = len(dims_of(x))
        which = axes_of(call, axes, rank)
        keep = bool(call.attr("keepdims", 1))
        if not which:
            if call.attr("noop_with_empty_axes", 0):
                return fn(tensor_of(x), (), True) if whole else x
            which = tuple(range(rank))
        if isinstance(x, ChannelsLast) and not {0, 1} & {*which}:
            return _spatial(fn, x, which, keep)
        return fn(tensor_of(x), which, keep)


def _spatial(fn: Callable[..., Any], x: ChannelsLast, which: Sequence[int], keep: bool) -> Value:
    """A reduction over axes that are neither batch nor channels, where channels are last."""
    made = fn(x.kept, tuple(a - 1 for a in which), keep)
    rank = len(made.dims)
    return ChannelsLast(made) if keep else tf.transpose(made, (0, rank - 1, *range(1, rank - 1)))


def _exact(x: Any, axes: Sequence[int], keep: bool, fn: Callable[..., Any]) -> Any:
    return fn(x, axis=axes, keepdims=keep) if axes else x


def _maximum(fn: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Any, axes: Sequence[int], keep: bool) -> Any:
        if x.dtype == tf.bool:
            return tf.cast(_exact(tf.cast(x, tf.uint8), axes, keep, fn), tf.bool)
        return _exact(x, axes, keep, fn)
    return run


def _in_floats(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction that is computed in float64 for integers."""
    def run(x: Any, axes: Sequence[int], keep: bool) -> Any:
        if x.dtype.is_floating:
            return fn(x, axes, keep)
        return tf.cast(fn(tf.cast(x, tf.float64), axes, keep), x.dtype)
    return run


def _sum(x: Any, axes: Sequence[int], keep: bool) -> Any:
    return _exact(x, axes, keep, tf.reduce_sum)


_reduction("ReduceSum", _sum, whole=False)
_reduction("ReduceProd", lambda x, a, k: _exact(x, a, k, tf.reduce_prod), whole=False)
_reduction("ReduceMax", _maximum(tf.reduce_max), whole=False)
_reduction("ReduceMin", _maximum(tf.reduce_min), whole=False)
_reduction("ReduceMean", _in_floats(lambda x, a, k: _exact(x, a, k, tf.reduce_mean)), whole=False)
_reduction("ReduceL1", lambda x, a, k: _sum(tf.abs(x), a, k))
_reduction("ReduceL2", _in_floats(lambda x, a, k: tf.sqrt(_sum(x * x, a, k))))
_reduction("ReduceSumSquare", lambda x, a, k: _sum(x * x, a, k))
_reduction("ReduceLogSum", _in_floats(lambda x, a, k: tf.math.log(_sum(x, a, k))))
_reduction("ReduceLogSumExp", _in_floats(lambda x, a, k: _exact(x, a, k, tf.reduce_logsumexp)))


@on_sizes("ReduceProd")
def _product_of_sizes(call: Call, x: np.ndarray, axes: np.ndarray | None = None) -> Any:
    if x.ndim != 1 or x.dtype != object:
        return NotImplemented
    made = np.empty((1,) if call.attr("keepdims", 1) else (), object)
    made[...] = math.prod(x.tolist())
    return made


def _first_place(call: Call, x: Any, fn: Callable[..., Any]) -> Any:
    """Where the extreme is, the first or the last."""
    if x.dtype == tf.bool:
        x = tf.cast(x, tf.uint8)
    axis = one_axis(call, call.attr("axis", 0), len(x.dims))
    if call.attr("select_last_index", 0):
        last = tf.cast(tf.shape(x)[axis] - 1, tf.int64)
        place = last - fn(tf.reverse(x, [axis]), axis=axis)
    else:
        place = fn(x, axis=axis)
    return tf.expand_dims(place, axis) if call.attr("keepdims", 1) else place


@op("ArgMax")
def _argmax(call: Call, x: Any) -> Any:
    return _first_place(call, x, tf.argmax)


@op("ArgMin")
def _argmin(call: Call, x: Any) -> Any:
    return _first_place(call, x, tf.argmin)


def _cumulative(call: Call, x: Any, axis: Value, fn: Callable[..., Any]) -> Any:
    where = one_axis(call, int_list(axis, "axis")[0], len(x.dims))
    return fn(x, axis=where, exclusive=bool(call.attr("exclusive", 0)), reverse=bool(call.attr("reverse", 0)))


@op("CumSum", static=(1,))
def _cumsum(call: Call, x: Any, axis: Value) -> Any:
    return _cumulative(call, x, axis, tf.cumsum)


@op("CumProd", static=(1,))
def _cumprod(call: Call, x: Any, axis: Value) -> Any:
    return _cumulative(call, x, axis, tf.math.cumprod)


# -- softmax and its like -----------------------------------------------------------------------------
def _along(call: Call, x: Any, fn: Callable[[Any, int], Any], flat: bool) -> Any:
    """A function of rows along an axis; before version 13, of all axes from it on together."""
    rank = len(x.dims)
    axis = one_axis(call, call.attr("axis", 1 if flat else -1), rank)
    if not flat:
        return fn(x, axis)
    lines = tf.reshape(x, (math.prod(x.dims[:axis]), math.prod(x.dims[axis:])))
    return tf.reshape(fn(lines, 1), x.dims)


def _hard(x: Any, axis: int) -> Any:
    return tf.one_hot(tf.argmax(x, axis=axis), x.dims[axis], axis=axis, dtype=x.dtype)


def _by_version(name: str, fn: Callable[[Any, int], Any]) -> None:
    op(name, since=13)(lambda call, x: _along(call, x, fn, False))
    op(name)(lambda call, x: _along(call, x, fn, True))


_by_version("Softmax", lambda x, axis: tf.nn.softmax(x, axis=axis))
_by_version("LogSoftmax", lambda x, axis: tf.nn.log_softmax(x, axis=axis))
_by_version("Hardmax", _hard)


@op("LpNormalization")
def _lp_normalised(call: Call, x: Any) -> Any:
    """Rows of zeros stay zeros."""
    axis = one_axis(call, call.attr("axis", -1), len(x.dims))
    if call.attr("p", 2) == 1:
        size = tf.reduce_sum(tf.abs(x), axis=axis, keepdims=True)
    else:
        size = tf.sqrt(tf.reduce_sum(x * x, axis=axis, keepdims=True))
    return tf.math.divide_no_nan(x, size)


@op("TopK", since=10, static=(1,))
def _top_k(call: Call, x: Any, k: Value) -> Any:
    count = int_list(k, "k")[0]
    rank = len(x.dims)
    axis = one_axis(call, call.attr("axis", -1), rank)
    order = [*(i for i in range(rank) if i != axis), axis]
    back = [order.index(i) for i in range(rank)]
    lines = tf.transpose(x, order)
    if call.attr("largest", 1):
        values, places = tf.math.top_k(lines, count)
        places = tf.cast(places, tf.int64)
    else:
        places = tf.cast(tf.argsort(lines, axis=-1, stable=True)[..., :count], tf.int64)
        values = tf.gather(lines, places, axis=-1, batch_dims=rank - 1)
    return tf.transpose(values, back), tf.transpose(places, back)


@op("TopK")
def _older_top_k(call: Call, x: Any) -> Any:
    return _top_k(call, x, np.array([call.need("k")], np.int64))
