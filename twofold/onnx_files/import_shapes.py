"""ONNX ops on shapes, and those that arrange elements in others: reshapes, transposes, joins, splits, padding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold.ir.dims import Dim, decide_eq

from .import_reductions import axes_of, one_axis
from .import_table import Call, on_sizes, op
from .import_tensors import dtype_of as dtype_of_number
from .import_values import (
    ChannelsLast,
    Sizes,
    Value,
    channels_last,
    dims_of,
    dtype_of,
    int_list,
    known_array,
    open_list,
    sizes_of,
    tensor_of,
)

__all__: list[str] = []

# -- constants and shapes -----------------------------------------------------------------------------
@op("Constant")
def _constant(call: Call) -> Value:
    for name, kind in (("value", None), ("sparse_value", None), ("value_float", np.float32), ("value_int", np.int64),
                       ("value_floats", np.float32), ("value_ints", np.int64)):
        value = call.attr(name)
        if value is not None:
            return np.asarray(value) if kind is None else np.array(value, kind)
    text = call.attr("value_string", call.attr("value_strings"))
    if text is None:
        raise call.fail("it has no value")
    return np.array(text, object)


@op("ConstantOfShape", static=(0,))
def _constant_of_shape(call: Call, shape: Value) -> Any:
    value = call.attr("value", np.zeros(1, np.float32))
    if value.size != 1:
        raise call.fail(f"its value has {value.size} elements")
    sizes = int_list(shape, "shape")
    if all(type(s) is int and s >= 0 for s in sizes) and math.prod(sizes) <= 4096:
        return np.full(sizes, value.reshape(()), value.dtype)
    return tf.fill(call.makes(sizes), tf.constant(value.reshape(())))


@op("Shape", layout=True)
def _shape(call: Call, x: Value) -> Value:
    dims = dims_of(x)
    return sizes_of(dims[call.attr("start", 0):call.attr("end", len(dims))], tf.int64)


@op("Size", layout=True)
def _size(call: Call, x: Value) -> Value:
    count = math.prod(dims_of(x))
    if isinstance(count, Dim):
        made = np.empty((), object)
        made[()] = count
        return Sizes(made, tf.int64)
    return np.array(count, np.int64)


@op("Range", static=(0, 1, 2))
def _range(call: Call, start: Value, limit: Value, delta: Value) -> Any:
    if isinstance(start, np.ndarray) and isinstance(delta, np.ndarray) and isinstance(limit, np.ndarray):
        a, b, step = (float(v.item()) if v.dtype.kind == "f" else int(v.item()) for v in (start, limit, delta))
        if step == 0:
            raise call.fail("its step is 0")
        count = max(math.ceil((b - a) / step), 0)
        call.makes((count,))
        if count <= 4096 and start.dtype.kind in "iu":
            return (start.reshape(()) + np.arange(count) * delta.reshape(())).astype(start.dtype)
        steps = tf.cast(tf.range(count), dtype_of(start))
        return tf.constant(start.reshape(())) + steps * tf.constant(delta.reshape(()))
    parts = [v if isinstance(v, tf.Tensor) else tensor_of(v) for v in (start, limit, delta)]
    return tf.range(*[tf.reshape(p, ()) for p in parts])


@op("EyeLike")
def _eye_like(call: Call, x: Any) -> Any:
    dtype = dtype_of_number(call.attr("dtype"), "the result") if call.attr("dtype") else x.dtype
    if len(x.dims) != 2:
        raise call.fail(f"it takes a matrix; got {len(x.dims)} axes")
    rows, columns = (tf.range(d, dtype=tf.int64) for d in x.dims)
    return tf.cast(tf.equal(rows[:, None] + call.attr("k", 0), columns), dtype)


# -- reshapes -----------------------------------------------------------------------------------------
@op("Reshape", since=5, static=(1,))
def _reshape(call: Call, x: Any, shape: Value) -> Any:
    return _reshaped(call, x, open_list(shape, "shape"))


@op("Reshape")
def _older_reshape(call: Call, x: Any) -> Any:
    return _reshaped(call, x, call.need("shape"))


def _reshaped(call: Call, x: Any, sizes: Sequence[Any]) -> Any:
    """A size of 0 is that of the operand's axis, unless zeros are allowed."""
    zero = bool(call.attr("allowzero", 0))
    if sum(type(s) is int and s == 0 for s in sizes) and not zero:
        if any(type(s) is int and s == 0 and i >= len(x.dims) for i, s in enumerate(sizes)):
            raise call.fail(f"shape {list(sizes)} copies the size of an axis that is not there")
        sizes = [x.dims[i] if type(s) is int and s == 0 else s for i, s in enumerate(sizes)]
    return tf.reshape(x, _with_rest(x, sizes))


def _with_rest(x: Any, sizes: Sequence[Any]) -> list[Any]:
    """Sizes with the one that is -1 replaced, where what is left of the others shows it."""
    if not any(type(s) is int and s == -1 for s in sizes) or any(isinstance(s, tf.Tensor) for s in sizes):
        return list(sizes)
    rest: Any = list(x.dims)
    for s in sizes:
        match = next((i for i, d in enumerate(rest) if decide_eq(d, s)), None)
        if type(s) is int and s == -1:
            continue
        if match is None:
            return list(sizes)
        del rest[match]
    return [math.prod(rest) if type(s) is int and s == -1 else s for s in sizes]


@op("Flatten", layout=True)
def _flatten(call: Call, x: Value) -> Any:
    dims = dims_of(x)
    axis = call.attr("axis", 1)
    axis = len(dims) if axis == len(dims) else one_axis(call, axis, len(dims))
    return tf.reshape(tensor_of(x), (math.prod(dims[:axis]), math.prod(dims[axis:])))


@op("Squeeze", static=(1,), layout=True)
def _squeeze(call: Call, x: Value, axes: Value = None) -> Any:
    x = tensor_of(x)
    which = axes_of(call, axes, len(x.dims))
    return tf.squeeze(x, axis=which) if which or which is None else x


@op("Unsqueeze", static=(1,))
def _unsqueeze(call: Call, x: Any, axes: Value = None) -> Any:
    given = call.need("axes") if axes is None else int_list(axes, "axes")
    rank = len(x.dims) + len(given)
    which = {one_axis(call, a, rank) for a in given}
    if len(which) != len(given):
        raise call.fail(f"axes {given} name one twice")
    rest = iter(x.dims)
    return tf.reshape(x, [1 if i in which else next(rest) for i in range(rank)])


@op("Transpose", layout=True)
def _transpose(call: Call, x: Value) -> Any:
    rank = len(dims_of(x))
    perm = call.attr("perm") or list(range(rank))[::-1]
    if sorted(perm) != list(range(rank)):
        raise call.fail(f"{perm} is no order of {rank} axes")
    if isinstance(x, ChannelsLast):
        places = [0, rank - 1, *range(1, rank - 1)]
        return tf.transpose(x.kept, [places[p] for p in perm])
    return tf.transpose(tensor_of(x), perm)


@op("Expand", static=(1,))
def _expand(call: Call, x: Any, shape: Value) -> Any:
    """Broadcasting both ways: a size of 1 leaves the operand's."""
    sizes = int_list(shape, "shape")
    rank = max(len(sizes), len(x.dims))
    have, want = (1,) * (rank - len(x.dims)) + tuple(x.dims), [1] * (rank - len(sizes)) + sizes
    to = [h if type(w) is int and w == 1 or decide_eq(h, w) else w for h, w in zip(have, want, strict=True)]
    return tf.broadcast_to(x, call.makes(to))


@op("Tile", since=6, static=(1,))
def _tile(call: Call, x: Any, repeats: Value) -> Any:
    counts = int_list(repeats, "repeats")
    call.makes([d * c for d, c in zip(x.dims, counts, strict=True)])
    return tf.tile(x, counts)


@op("Tile", static=(1, 2))
def _older_tile(call: Call, x: Any, tiles: Value, axis: Value) -> Any:
    where = one_axis(call, int_list(axis, "axis")[0], len(x.dims))
    return _tile(call, x, np.array([int_list(tiles, "tiles")[0] if i == where else 1 for i in range(len(x.dims))]))


# -- joins and splits ---------------------------------------------------------------------------------
@op("Concat", layout=True)
def _concat(call: Call, *values: Value) -> Value:
    rank = len(dims_of(values[0]))
    axis = one_axis(call, call.attr("axis", 1), rank)
    if any(isinstance(v, ChannelsLast) for v in values):
        places = [0, rank - 1, *range(1, rank - 1)]
        return ChannelsLast(tf.concat([channels_last(v) for v in values], places[axis]))
    return tf.concat([tensor_of(v) for v in values], axis)


@op("Split", static=(1,))
def _split(call: Call, x: Any, sizes: Value = None) -> Any:
    axis = one_axis(call, call.attr("axis", 0), len(x.dims))
    given = call.attr("split") if sizes is None else int_list(sizes, "split")
    if not given:
        count = call.attr("num_outputs", len(call.node.outputs))
        whole = x.dims[axis]
        piece = (whole + count - 1) // count
        given = [piece] * (count - 1) + [whole - piece * (count - 1)]
        if isinstance(whole, int):
            given = [max(min(piece, whole - piece * i), 0) for i in range(count)]
    return tuple(tf.split(x, given, axis=axis)) if len(given) > 1 else (x,)


@op("SpaceToDepth")
def _space_to_depth(call: Call, x: Any) -> Any:
    n, c, h, w = x.dims
    b = call.need("blocksize")
    parts = tf.reshape(x, (n, c, h // b, b, w // b, b))
    order = (0, 3, 5, 1, 2, 4) if call.attr("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return tf.reshape(tf.transpose(parts, order), (n, b * b * c, h // b, w // b))


@op("DepthToSpace")
def _depth_to_space(call: Call, x: Any) -> Any:
    n, c, h, w = x.dims
    b = call.need("blocksize")
    if call.attr("mode", "DCR") == "DCR":
        parts = tf.transpose(tf.reshape(x, (n, b, b, c // (b * b), h, w)), (0, 3, 4, 1, 5, 2))
    else:
        parts = tf.transpose(tf.reshape(x, (n, c // (b * b), b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return tf.reshape(parts, (n, c // (b * b), h * b, w * b))


# -- padding ------------------------------------------------------------------------------------------
@op("Pad", since=11, static=(1, 3))
def _pad(call: Call, x: Any, pads: Value, value: Any = None, axes: Value = None) -> Any:
    rank = len(x.dims)
    which = range(rank) if axes is None else [one_axis(call, a, rank) for a in int_list(axes, "axes")]
    return _padded(call, x, int_list(pads, "pads"), list(which), value)


@op("Pad")
def _older_pad(call: Call, x: Any) -> Any:
    value = tf.constant(call.attr("value", 0.0), x.dtype)
    return _padded(call, x, call.attr("pads", call.attr("paddings")), list(range(len(x.dims))), value)


def _padded(call: Call, x: Any, pads: Sequence[Any], axes: Sequence[int], value: Any) -> Any:
    """Negative padding takes elements away."""
    rank, count = len(x.dims), len(axes)
    if len(pads) != 2 * count:
        raise call.fail(f"{len(pads)} numbers of elements to pad with for {count} axes")
    before, after = [0] * rank, [0] * rank
    for place, axis in enumerate(axes):
        before[axis], after[axis] = pads[place], pads[place + count]
    for axis in range(rank):
        low, high = before[axis], after[axis]
        if type(low) is int and low < 0 or type(high) is int and high < 0:
            x = _cut(x, axis, min(low, 0), min(high, 0))
            before[axis], after[axis] = max(low, 0), max(high, 0)
    mode = call.attr("mode", "constant")
    call.makes([d + b + a for d, b, a in zip(x.dims, before, after, strict=True)])
    if mode == "constant":
        fill = tf.zeros((), x.dtype) if value is None else tf.reshape(value, ())
        return tf.pad(x, list(zip(before, after, strict=True)), constant_values=fill)
    return _mirrored(call, x, before, after, mode)


def _cut(x: Any, axis: int, low: int, high: int) -> Any:
    key = [slice(None)] * axis + [slice(-low, high or None)]
    return x[tuple(key)]


def _mirrored(call: Call, x: Any, before: Sequence[Any], after: Sequence[Any], mode: str) -> Any:
    """The elements at places beyond the ends: those of the edge, or of the tensor mirrored or repeated, as often as
    need be."""
    for axis, (low, high) in enumerate(zip(before, after, strict=True)):
        if type(low) is int and type(high) is int and low == high == 0:
            continue
        size = x.dims[axis]
        places = tf.range(size + low + high, dtype=tf.int64) - tf.cast(_scalar(low), tf.int64)
        whole = tf.cast(_scalar(size), tf.int64)
        if mode == "edge":
            places = tf.clip_by_value(places, tf.zeros((), tf.int64), whole - 1)
        elif mode == "wrap":
            places = tf.math.floormod(places, whole)
        elif mode == "reflect":
            period = tf.maximum(2 * (whole - 1), tf.ones((), tf.int64))
            around = tf.math.floormod(places, period)
            places = tf.minimum(around, period - around) if not (type(size) is int and size == 1) else around * 0
        else:
            raise call.fail(f"there is no mode {mode!r}")
        x = tf.gather(x, places, axis=axis)
    return x


def _scalar(size: Any) -> Any:
    return tensor_of(sizes_of((size,), tf.int64))[0]


@op("CenterCropPad", static=(1,))
def _center_crop_pad(call: Call, x: Any, shape: Value) -> Any:
    rank = len(x.dims)
    axes = [one_axis(call, a, rank) for a in call.attr("axes") or range(rank)]
    for axis, want in zip(axes, [int(v) for v in known_array(shape, "shape").ravel()], strict=True):
        have = x.dims[axis]
        if have > want:
            start = (have - want) // 2
            x = x[(slice(None),) * axis + (slice(start, start + want),)]
        elif have < want:
            low = (want - have) // 2
            x = tf.pad(x, [(low, want - have - low) if i == axis else (0, 0) for i in range(rank)])
    return x


@op("Trilu", static=(1,))
def _trilu(call: Call, x: Any, k: Value = None) -> Any:
    shift = 0 if k is None else int_list(k, "k")[0]
    rows, columns = (tf.range(d, dtype=tf.int64) for d in x.dims[-2:])
    distance = columns - rows[:, None] - tf.cast(_scalar(shift), tf.int64)
    return tf.where(distance >= 0 if call.attr("upper", 1) else distance <= 0, x, tf.zeros_like(x))


# -- on sizes -----------------------------------------------------------------------------------------
@on_sizes("Reshape")
def _reshaped_sizes(call: Call, x: np.ndarray, shape: np.ndarray | None = None) -> Any:
    if x.dtype != object or shape is not None and shape.dtype == object:
        return NotImplemented
    to = call.need("shape") if shape is None else shape.tolist()
    return x.reshape([x.shape[i] if s == 0 and i < x.ndim else s for i, s in enumerate(to)])


@on_sizes("Squeeze")
def _squeezed_sizes(call: Call, x: np.ndarray, axes: np.ndarray | None = None) -> Any:
    which = axes_of(call, axes, x.ndim)
    return x.squeeze() if which is None else x.squeeze(tuple(which))


@on_sizes("Unsqueeze")
def _unsqueezed_sizes(call: Call, x: np.ndarray, axes: np.ndarray | None = None) -> Any:
    given = call.need("axes") if axes is None else axes.tolist()
    rank = x.ndim + len(given)
    return np.expand_dims(x, tuple(one_axis(call, a, rank) for a in given))


@on_sizes("Concat")
def _joined_sizes(call: Call, *values: np.ndarray) -> Any:
    if all(v.dtype != object for v in values):
        return NotImplemented
    return np.concatenate(values, axis=call.attr("axis", 1))


@on_sizes("Expand")
def _expanded_sizes(call: Call, x: np.ndarray, shape: np.ndarray) -> Any:
    if x.dtype != object or shape.dtype == object or math.prod(shape.tolist()) > 4096:
        return NotImplemented
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(shape.tolist())))


