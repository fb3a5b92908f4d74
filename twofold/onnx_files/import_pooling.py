"""ONNX ops that reduce windows, or whole images, to one element each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold.ir import ops
from twofold.ir.dims import Dim

from .import_convolutions import Window, window_of
from .import_table import Call, op
from .import_values import ChannelsLast, NeedsSizes, Value, channels_last, dims_of, int_list, tensor_of

__all__: list[str] = []


def _window(call: Call, spatial: Sequence[Any]) -> tuple[Window, list[int]]:
    """The window of a pooling, and how many elements the last windows reach beyond the padding, where the number of
    windows is rounded up."""
    window = window_of(call, spatial, call.need("kernel_shape"))
    more = [0] * len(spatial)
    if call.attr("ceil_mode", 0):
        for i, d in enumerate(spatial):
            if isinstance(d, Dim):
                raise NeedsSizes(f"{call.node}: with ceil_mode the sizes of its input must be known")
            (low, high), stride, reach = window.pads[i], window.strides[i], window.reach[i]
            count = -(-(d + low + high - reach) // stride) + 1
            if (count - 1) * stride >= d + low:  # a window begins inside
                count -= 1
            more[i] = max((count - 1) * stride + reach - d - low - high, 0)
    return window, more


def _attrs(window: Window, pads: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
    return {"ksize": window.size, "strides": window.strides, "padding": tuple(pads), "dilations": window.dilations}


def _with(pads: Sequence[tuple[Any, Any]], more: Sequence[int]) -> list[tuple[Any, Any]]:
    return [(a, b + m) for (a, b), m in zip(pads, more, strict=True)]


def _fits(window: Window, pads: Sequence[tuple[Any, Any]]) -> bool:
    """Whether no window lies in the padding alone."""
    return all(max(pair) < k for pair, k in zip(pads, window.reach, strict=True))


@op("MaxPool", layout=True)
def _max_pool(call: Call, x: Value) -> Any:
    window, more = _window(call, dims_of(x)[2:])
    if call.wants(1):
        return _with_places(call, tensor_of(x), window, more)
    pads, rows = _with(window.pads, more), channels_last(x)
    if not _fits(window, pads):
        rows = tf.pad(rows, [(0, 0), *pads, (0, 0)], constant_values=rows.dtype.min)
        pads = [(0, 0)] * len(pads)
    return ChannelsLast(ops.max_pool(rows, **_attrs(window, pads)))


def _with_places(call: Call, x: Any, window: Window, more: Sequence[int]) -> Any:
    """Maxima, and the places in the whole tensor where each was first."""
    n, channels, *spatial = x.dims
    if any(isinstance(d, Dim) for d in spatial):
        raise NeedsSizes(f"{call.node}: for indices the sizes of its input must be known")
    places, inside, sizes = _places(window, spatial, more)
    rows = tf.reshape(x, (n, channels, math.prod(spatial)))
    taken = tf.gather(rows, tf.constant(places.reshape(-1)), axis=2)
    taken = tf.reshape(taken, (n, channels, *places.shape))
    lowest = tf.constant(x.dtype.min if x.dtype.is_integer else -math.inf, x.dtype)
    taken = tf.where(tf.constant(inside), taken, lowest)
    which = tf.argmax(taken, axis=-1)
    y = tf.reduce_max(taken, axis=-1)
    numbers = _numbers(spatial, bool(call.attr("storage_order", 0)))[places]
    flat = tf.gather(tf.broadcast_to(tf.constant(numbers), (n, channels, *numbers.shape)), which, axis=3, batch_dims=3)
    base = tf.reshape(tf.range(n * channels, dtype=tf.int64) * math.prod(spatial), (n, channels, 1))
    shape = (n, channels, *sizes)
    return tf.reshape(y, shape), tf.reshape(flat + base, shape)


def _places(window: Window, spatial: Sequence[int], more: Sequence[int]) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """For each window the row-major places of its elements, which of them are inside, and how many windows there
    are along each axis."""
    each = []
    for d, (low, high), s, k, dilation, extra in zip(spatial, window.pads, window.strides, window.size,
                                                     window.dilations, more, strict=True):
        count = (d + low + high + extra - (k - 1) * dilation - 1) // s + 1
        each.append(np.arange(count)[:, None] * s - low + np.arange(k)[None, :] * dilation)
    sizes = [len(e) for e in each]
    places, inside = np.zeros((1, 1), np.int64), np.ones((1, 1), bool)
    for d, e in zip(spatial, each, strict=True):
        good = (e >= 0) & (e < d)
        places = (places[:, None, :, None] * d + np.where(good, e, 0)[None, :, None, :])
        inside = inside[:, None, :, None] & good[None, :, None, :]
        places = places.reshape(places.shape[0] * places.shape[1], -1)
        inside = inside.reshape(places.shape)
    return places, inside, sizes


def _numbers(spatial: Sequence[int], by_columns: bool) -> np.ndarray:
    """What each place of an image is called: its number in row-major order, or column-major."""
    numbers = np.arange(math.prod(spatial), dtype=np.int64)
    if not by_columns:
        return numbers
    return numbers.reshape(spatial[::-1]).transpose(*range(len(spatial))[::-1]).reshape(-1)


@op("AveragePool", layout=True)
def _average_pool(call: Call, x: Value) -> Any:
    """Padding counts where `count_include_pad` says so; what is beyond it never does."""
    window, more = _window(call, dims_of(x)[2:])
    return ChannelsLast(_averages(channels_last(x), window, more, bool(call.attr("count_include_pad", 0))))


def _averages(rows: Any, window: Window, more: Sequence[int], whole: bool) -> Any:
    pads = _with(window.pads, more)
    if whole or not _fits(window, pads):
        rows = tf.pad(rows, [(0, 0), *window.pads, (0, 0)])
        pads = [(0, m) for m in more]
    return ops.avg_pool(rows, **_attrs(window, pads))


@op("LpPool", layout=True)
def _lp_pool(call: Call, x: Value) -> Any:
    """Roots of sums of powers; an average is a sum by the size of the window."""
    window, more = _window(call, dims_of(x)[2:])
    power = float(call.attr("p", 2))
    rows = _power(channels_last(x), power)
    rows = tf.pad(rows, [(0, 0), *_with(window.pads, more), (0, 0)])
    sums = ops.avg_pool(rows, **_attrs(window, [(0, 0)] * len(more))) * float(math.prod(window.size))
    return ChannelsLast(_root(sums, power))


def _power(x: Any, power: float) -> Any:
    return x * x if power == 2 else tf.abs(x) if power == 1 else tf.pow(tf.abs(x), tf.constant(power, x.dtype))


def _root(x: Any, power: float) -> Any:
    return tf.sqrt(x) if power == 2 else x if power == 1 else tf.pow(x, tf.constant(1 / power, x.dtype))


def _global(name: str, fn: Callable[[Call, Any, Sequence[int]], Any]) -> None:
    @op(name, layout=True)
    def run(call: Call, x: Value) -> Value:
        rank = len(dims_of(x))
        if isinstance(x, ChannelsLast):
            return ChannelsLast(fn(call, x.kept, tuple(range(1, rank - 1))))
        return fn(call, tensor_of(x), tuple(range(2, rank)))


_global("GlobalAveragePool", lambda call, x, axes: tf.reduce_mean(x, axis=axes, keepdims=True))
_global("GlobalMaxPool", lambda call, x, axes: tf.reduce_max(x, axis=axes, keepdims=True))
_global("GlobalLpPool", lambda call, x, axes: _root(
    tf.reduce_sum(_power(x, float(call.attr("p", 2))), axis=axes, keepdims=True), float(call.attr("p", 2))))


@op("MaxUnpool", static=(2,))
def _max_unpool(call: Call, x: Any, places: Any, shape: Value = None) -> Any:
    """Maxima put back where they came from, among zeros."""
    n, channels, *spatial = x.dims
    window = window_of(call, spatial, call.need("kernel_shape"), slides=False)
    own = [(d - 1) * s - a - b + k for d, s, (a, b), k in
           zip(spatial, window.strides, window.pads, window.size, strict=True)]
    flat = tf.reshape(places, (-1, 1))
    y = tf.scatter_nd(flat, tf.reshape(x, (-1,)), (n * channels * math.prod(own),))
    y = tf.reshape(y, (n, channels, *own))
    if shape is None:
        return y
    return tf.pad(y, [(0, want - have) for want, have in zip(int_list(shape, "output_shape"), (n, channels, *own),
                                                             strict=True)])


@op("MaxRoiPool")
def _max_roi_pool(call: Call, x: Any, rois: Any) -> Any:
    """The maximum of each cell of a grid over each region; cells without a pixel give 0."""
    n, channels, height, width = x.dims
    rows, columns = call.need("pooled_shape")
    scaled = tf.round(rois[:, 1:] * call.attr("spatial_scale", 1.0))
    images = tf.gather(x, tf.cast(rois[:, 0], tf.int64))
    inside = [_cells(scaled[:, 1], scaled[:, 3], rows, height), _cells(scaled[:, 0], scaled[:, 2], columns, width)]
    cells = []
    for r, c in itertools.product(range(rows), range(columns)):
        both = tf.logical_and(inside[0][:, r, :, None], inside[1][:, c, None, :])[:, None]
        best = tf.reduce_max(tf.where(both, images, tf.constant(-math.inf, x.dtype)), axis=(2, 3))
        cells.append(tf.where(tf.reduce_any(both, axis=(2, 3)), best, tf.zeros_like(best)))
    return tf.reshape(tf.stack(cells, axis=-1), (rois.dims[0], channels, rows, columns))


def _cells(first: Any, last: Any, count: int, size: Any) -> Any:
    """Which places along an axis belong to which cell of each region: [regions, cells, places]."""
    step = tf.maximum(last - first + 1, tf.ones_like(first))[:, None] / count
    numbers = tf.cast(tf.range(count), first.dtype)
    low = tf.floor(numbers * step) + first[:, None]
    high = tf.math.ceil((numbers + 1) * step) + first[:, None]
    places = tf.cast(tf.range(size), first.dtype)
    return tf.logical_and(places >= low[..., None], places < high[..., None])


