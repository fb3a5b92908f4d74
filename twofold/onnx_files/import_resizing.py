"""ONNX ops that sample images between pixels: `Resize`, `Upsample`, `GridSample`, `RoiAlign`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold.ir.dims import Dim

from .import_reductions import one_axis
from .import_table import Call, op
from .import_values import NeedsSizes, Value, int_list, known_array

__all__: list[str] = []

_LARGE = 1 << 22  # places along an axis of a result
_TAPS = 8  # elements of a weighted sum up to which they are gathered one by one


# -- one axis -----------------------------------------------------------------------------------------
class _Axis:
    """How an axis is resized: the sizes, the scale, and the part of the axis that is looked at."""

    __slots__ = ("size", "to", "scale", "roi")

    def __init__(self, size: int, to: int, scale: float, roi: tuple[float, float]) -> None:
        self.size, self.to, self.scale, self.roi = size, to, scale, roi


def _source(call: Call, axis: _Axis, mode: str) -> np.ndarray:
    """The place in the input for each place of the result, in pixels."""
    places, whole = np.arange(axis.to, dtype=np.float64), axis.scale * axis.size
    if mode == "align_corners":
        return places * 0 if whole == 1 else places * (axis.size - 1) / (whole - 1)
    if mode == "asymmetric":
        return places / axis.scale
    if mode == "tf_crop_and_resize":
        low, high = axis.roi
        last = axis.size - 1
        inner = places * 0 + (high - low) * last / 2 if whole == 1 else places * (high - low) * last / (whole - 1)
        return inner + low * last
    centred = (places + 0.5) / axis.scale - 0.5
    if mode == "pytorch_half_pixel":
        return places * 0 - 0.5 if whole == 1 else centred
    if mode == "half_pixel_symmetric":
        return centred + axis.size / 2 * (1 - axis.to / whole)
    if mode not in ("half_pixel", "tf_half_pixel_for_nn"):
        raise call.fail(f"there is no coordinate_transformation_mode {mode!r}")
    return centred


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    """Keys's kernel."""
    x = np.abs(x)
    near, far = ((a + 2) * x - (a + 3)) * x * x + 1, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _kernel(call: Call, mode: str, scale: float) -> tuple[int, Callable[[np.ndarray], np.ndarray]]:
    """How many elements a kernel reaches to either side, and its weights by distance."""
    narrow = min(scale, 1.0) if call.attr("antialias", 0) else 1.0
    if mode == "linear":
        return math.ceil(1 / narrow), lambda x: np.clip(1 - np.abs(x * narrow), 0, 1)
    a = call.attr("cubic_coeff_a", -0.75)
    return math.ceil(2 / narrow), lambda x: _cubic(x * narrow, a)


def _taps(call: Call, axis: _Axis, mode: str, where: str) -> tuple[np.ndarray, np.ndarray]:
    """For each place of the result the places that it is made of, and their weights: [places, taps]."""
    x = _source(call, axis, where)
    floor = np.floor(x)
    # what is whole counts as the right one of two neighbours
    left = np.where(x == floor, floor - 1, floor).astype(np.int64)
    ratio = x - left
    if mode == "nearest":
        right = _right_one(call, ratio)
        places, weights = (left + right)[:, None], np.ones((axis.to, 1))
    else:
        reach, kernel = _kernel(call, mode, axis.scale)
        offsets = np.arange(1 - reach, reach + 1)
        places, weights = left[:, None] + offsets, kernel(offsets - ratio[:, None])
        if call.attr("antialias", 0):
            weights = weights / weights.sum(axis=1, keepdims=True)
    if call.attr("exclude_outside", 0):
        weights = np.where((places < 0) | (places >= axis.size), 0.0, weights)
        total = weights.sum(axis=1, keepdims=True)
        weights = weights / np.where(total == 0, 1.0, total)
    return np.clip(places, 0, axis.size - 1), weights


def _right_one(call: Call, ratio: np.ndarray) -> np.ndarray:
    how = call.attr("nearest_mode", "round_prefer_floor") if call.version >= 11 else "floor"
    chosen = {"round_prefer_floor": ratio > 0.5, "round_prefer_ceil": ratio >= 0.5, "floor": ratio >= 1,
              "ceil": ratio > 0}
    if how not in chosen:
        raise call.fail(f"there is no nearest_mode {how!r}")
    return chosen[how].astype(np.int64)


def _applied(x: Any, axis: int, places: np.ndarray, weights: np.ndarray) -> Any:
    """Weighted sums of elements along an axis."""
    if weights.shape[1] == 1:
        return tf.gather(x, tf.constant(places[:, 0]), axis=axis)
    shape = [1] * len(x.dims)
    shape[axis] = len(places)
    if weights.shape[1] > _TAPS:
        dense = np.zeros((len(places), x.dims[axis]))
        np.add.at(dense, (np.arange(len(places))[:, None], places), weights)
        order = [i for i in range(len(x.dims)) if i != axis]
        y = tf.tensordot(x, tf.constant(dense, x.dtype), [[axis], [1]])
        return tf.transpose(y, [len(order) if i == axis else order.index(i) for i in range(len(x.dims))])
    total: Any = 0
    for column in range(weights.shape[1]):
        share = tf.constant(weights[:, column].reshape(shape), x.dtype)
        total = total + tf.gather(x, tf.constant(places[:, column]), axis=axis) * share
    return total


# -- Resize -------------------------------------------------------------------------------------------
def _scaled(call: Call, x: Any, scales: Sequence[float] | None, sizes: Sequence[Any] | None, roi: Sequence[float],
            axes: Sequence[int]) -> Any:
    mode, where = call.attr("mode", "nearest"), call.attr("coordinate_transformation_mode", "half_pixel")
    if call.version < 11:
        where = "asymmetric"
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    if mode not in ("nearest", "linear", "cubic"):
        raise call.fail(f"there is no mode {mode!r}")
    if sizes is None and _whole(call, x, scales, axes, mode, where):
        return _repeated(x, scales, axes)
    if any(isinstance(x.dims[a], Dim) for a in axes) and _changes(x, scales, sizes, axes):
        raise NeedsSizes(f"{call.node}: the sizes of its input must be known")
    lines = _axes(call, x, scales, sizes, roi, axes)
    wide = x if mode == "nearest" or x.dtype.is_floating else tf.cast(x, tf.float32)
    outside = []
    for axis, line in zip(axes, lines, strict=True):
        if line is None:
            continue
        if where == "tf_crop_and_resize":
            at = _source(call, line, where)
            outside.append((axis, (at < 0) | (at > line.size - 1)))
        wide = _applied(wide, axis, *_taps(call, line, mode, where))
    for axis, mask in outside:
        if mask.any():
            shape = [len(mask) if i == axis else 1 for i in range(len(x.dims))]
            wide = tf.where(tf.constant(mask.reshape(shape)),
                            tf.constant(call.attr("extrapolation_value", 0.0), wide.dtype), wide)
    return wide if wide.dtype == x.dtype else tf.saturate_cast(tf.round(wide), x.dtype)


def _whole(call: Call, x: Any, scales: Sequence[float] | None, axes: Sequence[int], mode: str, where: str) -> bool:
    """Whether elements are repeated a whole number of times, for which sizes need not be known."""
    if mode != "nearest" or scales is None or any(s < 1 or s != int(s) for s in scales):
        return False
    floors = call.version < 11 or call.attr("nearest_mode", "round_prefer_floor") == "floor"
    return where == "asymmetric" and floors or where == "half_pixel" and call.attr(
        "nearest_mode", "round_prefer_floor") in ("round_prefer_floor", "round_prefer_ceil")


def _repeated(x: Any, scales: Any, axes: Sequence[int]) -> Any:
    for axis, scale in zip(axes, scales, strict=True):
        if scale != 1:
            dims = x.dims
            x = tf.broadcast_to(tf.expand_dims(x, axis + 1), (*dims[:axis + 1], int(scale), *dims[axis + 1:]))
            x = tf.reshape(x, (*dims[:axis], dims[axis] * int(scale), *dims[axis + 1:]))
    return x


def _changes(x: Any, scales: Sequence[float] | None, sizes: Sequence[Any] | None, axes: Sequence[int]) -> bool:
    if scales is not None:
        return any(isinstance(x.dims[a], Dim) and s != 1 for a, s in zip(axes, scales, strict=True))
    return any(isinstance(x.dims[a], Dim) and x.dims[a] != s for a, s in zip(axes, sizes or (), strict=True))


def _axes(call: Call, x: Any, scales: Sequence[float] | None, sizes: Sequence[Any] | None, roi: Sequence[float],
          axes: Sequence[int]) -> list[_Axis | None]:
    """How each axis is resized; None for those that stay as they are."""
    have = [x.dims[a] for a in axes]
    if sizes is not None:
        factors = [t / h if h else 1.0 for t, h in zip(sizes, have, strict=True) if not isinstance(h, Dim)]
        to = list(sizes)
        policy = call.attr("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            one = min(factors) if policy == "not_larger" else max(factors)
            factors, to = [one] * len(axes), [int(one * h + 0.5) for h in have]
        by: Sequence[float] = factors
        if len(factors) != len(axes):
            rest = iter(factors)
            by = [1.0 if isinstance(h, Dim) else next(rest) for h in have]
    else:
        by = list(scales or ())
        to = [h if isinstance(h, Dim) else int(math.floor(s * h)) for s, h in zip(by, have, strict=True)]
    made: list[_Axis | None] = []
    for i, (h, t, s) in enumerate(zip(have, to, by, strict=True)):
        part = (roi[i], roi[i + len(axes)]) if len(roi) == 2 * len(axes) else (0.0, 1.0)
        if isinstance(h, Dim) or t == h and math.isclose(s, 1.0) and part == (0.0, 1.0):
            made.append(None)
            continue
        if not 0 <= t <= _LARGE or s <= 0 or h < 1:
            raise call.fail(f"an axis of {h} would have {t}")
        made.append(_Axis(h, t, s, part))
    return made


@op("Resize", since=11, static=(1, 2, 3))
def _resize(call: Call, x: Any, roi: Value = None, scales: Value = None, sizes: Value = None) -> Any:
    rank = len(x.dims)
    axes = [one_axis(call, a, rank) for a in call.attr("axes") or range(rank)]
    part = [] if roi is None else known_array(roi, "roi").ravel().tolist()
    by = None if scales is None else _float_list(scales)
    to = None if sizes is None else int_list(sizes, "sizes")
    if not by and not to:
        raise call.fail("it has neither scales nor sizes")
    return _scaled(call, x, by or None, to if not by else None, part, axes)


def _float_list(scales: Value) -> list[float]:
    return [float(s) for s in known_array(scales, "scales").ravel()]


@op("Resize", "Upsample", since=9, static=(1,))
def _older_resize(call: Call, x: Any, scales: Value) -> Any:
    return _scaled(call, x, _float_list(scales), None, [], list(range(len(x.dims))))


@op("Upsample")
def _oldest_upsample(call: Call, x: Any) -> Any:
    scales = call.attr("scales") or [1.0, 1.0, call.attr("height_scale", 1.0), call.attr("width_scale", 1.0)]
    return _scaled(call, x, scales, None, [], list(range(len(x.dims))))


# -- GridSample ---------------------------------------------------------------------------------------
#: the pixels along an axis that a place is made of: their indices, their weights, and whether they are inside
Taps = list[tuple[Any, Any, Any]]


def _reflected(x: Any, low: float, high: float) -> Any:
    """Places beyond the borders mirrored at them until they are within."""
    span = high - low
    if span <= 0:
        return tf.zeros_like(x) + low
    beyond = tf.math.floormod(tf.abs(x - low), tf.constant(2 * span, x.dtype))
    return low + tf.where(beyond > span, 2 * span - beyond, beyond)


def _grid_taps(call: Call, place: Any, size: int, mode: str) -> Taps:
    """See `Taps`; `place` is where along the axis, from -1 to 1."""
    corners, padding = bool(call.attr("align_corners", 0)), call.attr("padding_mode", "zeros")
    x = (place + 1) / 2 * (size - 1) if corners else ((place + 1) * size - 1) / 2
    low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
    x = tf.round(x) if mode == "nearest" else x
    if padding == "border":
        x = tf.where(tf.logical_or(x < low, x > high), tf.clip_by_value(x, 0.0, size - 1.0), x)
    elif padding == "reflection":
        x = tf.where(tf.logical_or(x < low, x > high), _reflected(x, low, high), x)
    first = tf.floor(x)
    ratio = x - first
    if mode == "nearest":
        pairs: list[tuple[Any, Any]] = [(x, tf.ones_like(x))]
    elif mode == "linear":
        pairs = [(first, 1 - ratio), (first + 1, ratio)]
    else:
        pairs = [(first + i, _keys(ratio - i, i)) for i in (-1, 0, 1, 2)]
    return [_looked_up(p, w, size, padding, low, high) for p, w in pairs]


def _keys(x: Any, i: int) -> Any:
    """Keys's kernel at a distance whose size the number of the tap tells."""
    a, d = -0.75, tf.abs(x)
    return ((a + 2) * d - (a + 3)) * d * d + 1 if i in (0, 1) else ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


def _looked_up(pixel: Any, weight: Any, size: int, padding: str, low: float, high: float) -> tuple[Any, Any, Any]:
    inside = tf.logical_and(pixel >= 0, pixel < size)
    if padding == "reflection":
        pixel = tf.where(inside, pixel, tf.math.floor(_reflected(pixel, low, high)))
    index = tf.cast(tf.clip_by_value(pixel, 0.0, size - 1.0), tf.int64)
    return index, weight, inside if padding == "zeros" else None


@op("AffineGrid", static=(1,))
def _affine_grid(call: Call, theta: Any, size: Value) -> Any:
    """The places, from -1 to 1, of a grid of pixels, moved by a matrix for each example."""
    n, _, *spatial = int_list(size, "size")
    count, corners = len(spatial), bool(call.attr("align_corners", 0))
    lines = []
    for i, d in enumerate(spatial):
        places = tf.cast(tf.range(d), theta.dtype)
        line = places * 2 / max(d - 1, 1) - 1 if corners else (places * 2 + 1) / d - 1
        lines.append(tf.broadcast_to(tf.reshape(line, [-1 if j == i else 1 for j in range(count)]), spatial))
    ones = tf.ones(spatial, theta.dtype)
    points = tf.reshape(tf.stack([*lines[::-1], ones], axis=-1), (math.prod(spatial), count + 1))
    return tf.reshape(tf.matmul(points, theta, transpose_b=True), (n, *spatial, count))


@op("GridSample")
def _grid_sample(call: Call, x: Any, grid: Any) -> Any:
    n, channels, *spatial = x.dims
    if any(isinstance(d, Dim) for d in spatial):
        raise NeedsSizes(f"{call.node}: the sizes of its input must be known")
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(call.attr("mode", "linear"), call.attr("mode", "linear"))
    count, places = len(spatial), grid.dims[1:-1]
    points = tf.cast(tf.reshape(grid, (n, math.prod(places), count)), tf.float32 if x.dtype.size < 8 else x.dtype)
    each = [_grid_taps(call, points[:, :, count - 1 - i], spatial[i], mode) for i in range(count)]
    rows = tf.reshape(x, (n, channels, math.prod(spatial)))
    total: Any = 0
    for taps in itertools.product(*each):
        flat: Any = 0
        weight: Any = 1
        for (index, share, inside), d in zip(taps, spatial, strict=True):
            flat = flat * d + index
            weight = weight * (share if inside is None else tf.where(inside, share, tf.zeros_like(share)))
        values = tf.gather(rows, tf.broadcast_to(flat[:, None], (n, channels, flat.dims[1])), axis=2, batch_dims=2)
        total = total + values * tf.cast(weight, x.dtype)[:, None]
    return tf.reshape(total, (n, channels, *places))


# -- RoiAlign -----------------------------------------------------------------------------------------
@op("RoiAlign")
def _roi_align(call: Call, x: Any, rois: Any, which: Any) -> Any:
    n, channels, height, width = x.dims
    rows, columns = call.attr("output_height", 1), call.attr("output_width", 1)
    half = call.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel" and call.version >= 16
    scaled = rois * call.attr("spatial_scale", 1.0) - (0.5 if half else 0.0)
    down = _roi_taps(call, scaled[:, 1], scaled[:, 3], rows, height, half)
    right = _roi_taps(call, scaled[:, 0], scaled[:, 2], columns, width, half)
    images = tf.gather(tf.reshape(x, (n, channels, height * width)), which)
    return _pooled(call, images, down, right, (rois.dims[0], channels, rows, columns), width)


def _roi_taps(call: Call, low: Any, high: Any, cells: int, size: int, half: bool) -> tuple[Any, ...]:
    """Along an axis, for [regions, cells, samples]: two pixels, the share of the second, and which samples count."""
    if isinstance(size, Dim):
        raise NeedsSizes(f"{call.node}: the sizes of its input must be known")
    span = high - low if half else tf.maximum(high - low, tf.ones_like(low))
    step = span / cells
    ratio = call.attr("sampling_ratio", 0)
    most = ratio if ratio > 0 else max(math.ceil(size / cells) + 1, 1)
    count = tf.zeros_like(step) + ratio if ratio > 0 else tf.math.ceil(span / cells)
    cell = tf.reshape(tf.cast(tf.range(cells), low.dtype), (1, cells, 1))
    sample = tf.reshape(tf.cast(tf.range(most), low.dtype), (1, 1, most))
    wide, counts = (tf.reshape(v, (-1, 1, 1)) for v in (step, count))
    at = tf.reshape(low, (-1, 1, 1)) + cell * wide + (sample + 0.5) * wide / counts
    good = tf.logical_and(at >= -1.0, at <= float(size))
    at = tf.clip_by_value(at, 0.0, size - 1.0)
    first = tf.minimum(tf.floor(at), tf.constant(max(size - 1.0, 0.0), low.dtype))
    second = tf.minimum(first + 1, tf.constant(size - 1.0, low.dtype))
    used = tf.broadcast_to(sample < counts, at.dims)
    return tf.cast(first, tf.int64), tf.cast(second, tf.int64), at - first, good, used, count


def _pooled(call: Call, images: Any, down: tuple[Any, ...], right: tuple[Any, ...], shape: Sequence[Any],
            width: int) -> Any:
    regions, channels, rows, columns = shape
    shares = []
    for i, j in itertools.product((0, 1), (0, 1)):
        flat = down[i][:, :, :, None, None] * width + right[j][:, None, None]
        ys = (down[2] if i else 1 - down[2])[:, :, :, None, None]
        xs = (right[2] if j else 1 - right[2])[:, None, None]
        good = tf.logical_and(down[3][:, :, :, None, None], right[3][:, None, None])
        weight = tf.where(good, ys * xs, tf.zeros((), ys.dtype))
        values = tf.gather(images, tf.broadcast_to(tf.reshape(flat, (regions, 1, -1)), (regions, channels, math.prod(
            flat.dims[1:]))), axis=2, batch_dims=2)
        shares.append(tf.reshape(values, (regions, channels, *flat.dims[1:])) * tf.expand_dims(weight, 1))
    used = tf.expand_dims(tf.logical_and(down[4][:, :, :, None, None], right[4][:, None, None]), 1)
    if call.attr("mode", "avg") == "max":
        best = tf.maximum(tf.maximum(shares[0], shares[1]), tf.maximum(shares[2], shares[3]))
        return tf.reduce_max(tf.where(used, best, tf.constant(-math.inf, best.dtype)), axis=(3, 5))
    total = tf.where(used, shares[0] + shares[1] + shares[2] + shares[3], tf.zeros((), images.dtype))
    counts = tf.maximum(down[5] * right[5], tf.ones_like(down[5]))
    return tf.reduce_sum(total, axis=(3, 5)) / tf.reshape(counts, (-1, 1, 1, 1))
