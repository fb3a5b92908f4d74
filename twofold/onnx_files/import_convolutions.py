"""ONNX ops that slide windows of weights: convolutions, transposed ones, deformable ones, `Col2Im`.

Our convolutions have channels on the last axis. Their results stay so (`ChannelsLast`) until an op needs the order of
the graph, and their weights are kept in the order of ours, if no other op reads them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import twofold as tf
from twofold.ir import ops
from twofold.ir.dims import Dim

from .import_table import Call, op
from .import_values import ChannelsLast, NeedsSizes, Turned, Value, channels_last, dims_of, int_list, tensor_of

__all__ = ["Window", "window_of"]

_FAR = 1 << 20  # the largest stride over an axis whose size is not known
_FEW = 1 << 16  # weights that are scaled sooner than what a convolution makes of them


class Window:
    """How windows slide: their sizes, steps and dilations, and pairs of padding.

    Attributes:
        size, strides, dilations: a number for each spatial axis.
        pads: pairs, one for each spatial axis.
    """

    __slots__ = ("size", "strides", "dilations", "pads")

    def __init__(self, size: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
                 pads: Sequence[tuple[Any, Any]]) -> None:
        self.size, self.strides = tuple(size), tuple(strides)
        self.dilations, self.pads = tuple(dilations), tuple(pads)

    @property
    def reach(self) -> tuple[int, ...]:
        """How far a window reaches along each axis."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.size, self.dilations, strict=True))


def window_of(call: Call, spatial: Sequence[Any], size: Sequence[int], slides: bool = True) -> Window:
    """The window of a convolution or pooling over an input with spatial sizes.

    Args:
        slides: whether it slides over the input, and does not spread what it holds.
    Raises:
        ValueError: an attribute does not fit.
    """
    count = len(spatial)
    strides, dilations = call.attr("strides") or [1] * count, call.attr("dilations") or [1] * count
    if not len(size) == len(strides) == len(dilations) == count or min([*size, *strides, *dilations], default=1) < 1:
        raise call.fail(f"windows of {list(size)}, strides {strides}, dilations {dilations} for {count} spatial axes")
    flat = call.attr("pads") or [0] * (2 * count)
    auto = call.attr("auto_pad", "NOTSET")
    made = Window(size, strides, dilations, [(0, 0)] * count)
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        made.pads = tuple(_same(d, s, k, auto == "SAME_UPPER") for d, s, k in
                          zip(spatial, strides, made.reach, strict=True))
    elif auto != "VALID":
        if len(flat) != 2 * count:
            raise call.fail(f"{len(flat)} numbers of padding for {count} spatial axes")
        made.pads = tuple(zip(flat[:count], flat[count:], strict=True))
    if slides:
        made.strides = tuple(_step(call, *axis) for axis in zip(strides, spatial, made.pads, strict=True))
    return made


def _step(call: Call, stride: int, size: Any, pads: tuple[Any, Any]) -> int:
    """A stride that leads beyond the end anyway, as the least that does."""
    if isinstance(size, int) and isinstance(sum(pads), int):
        return min(stride, max(size + sum(pads), 1))
    if stride > _FAR:
        raise call.fail(f"a stride of {stride}")
    return stride


def _same(size: Any, stride: int, reach: int, upper: bool) -> tuple[Any, Any]:
    """Padding by which there is a window for each stride; the odd element at the end, or at the front."""
    if stride == 1:
        whole: Any = reach - 1
    elif isinstance(size, Dim):
        raise NeedsSizes("for auto_pad with strides the sizes of the input must be known")
    else:
        whole = max((-(-size // stride) - 1) * stride + reach - size, 0)
    small, large = whole // 2, whole - whole // 2
    return (small, large) if upper else (large, small)


def filters_last(node: Any, rank: int) -> tuple[int, ...] | None:
    """The order [window.., in, out] from ONNX's [out, in, window..]; of transposed convolutions [window.., out, in]."""
    return (*range(2, rank), 1, 0) if rank > 2 else None


def _filters(w: Value) -> Any:
    rank = len(dims_of(w))
    return w.kept if isinstance(w, Turned) else tf.transpose(tensor_of(w), filters_last(None, rank))


@op("Conv", layout=True, turned={1: filters_last})
def _conv(call: Call, x: Value, w: Value, bias: Value = None) -> Value:
    _, channels, *spatial = dims_of(x)
    outputs, inputs, *size = dims_of(w)
    groups = call.attr("group", 1)
    if channels != inputs * groups and isinstance(channels, int):
        raise call.fail(f"{channels} channels for filters of {inputs} in {groups} groups")
    if call.attr("kernel_shape", size) != size:
        raise call.fail(f"kernel_shape is {call.attr('kernel_shape')}; the filters have {size}")
    window = window_of(call, spatial, size)
    rows, pads = channels_last(x), window.pads
    if any(p < 0 for pair in pads for p in pair):
        raise call.fail("negative padding is not supported")
    filters, by = _filters(w), None if bias is None else tensor_of(bias)

    def made(weights: Any, offset: Any) -> Any:
        y = ops.conv(rows, weights, strides=window.strides, padding=pads, dilations=window.dilations)
        return y if offset is None else y + offset

    def scaled(factor: Any, offset: Any) -> Any:
        return made(filters * factor, offset if by is None else by * factor + offset)

    few = math.prod(filters.shape.as_list()) <= _FEW if filters.shape.is_fully_defined() else False
    return ChannelsLast(made(filters, by), scaled if few else None)


@op("ConvTranspose", layout=True, turned={1: filters_last})
def _conv_transpose(call: Call, x: Value, w: Value, bias: Value = None) -> Value:
    _, channels, *spatial = dims_of(x)
    inputs, outputs, *size = dims_of(w)
    count, groups = len(spatial), call.attr("group", 1)
    if channels != inputs:
        raise call.fail(f"{channels} channels for filters of {inputs}")
    more = call.attr("output_padding") or [0] * count
    window = window_of(_without_auto(call), spatial, size, slides=False)
    sizes, pads = _transposed_sizes(call, spatial, window, more)
    y = _input_grad(channels_last(x), _filters(w), sizes, outputs * groups, window, pads)
    return ChannelsLast(y if bias is None else y + tensor_of(bias))


def _without_auto(call: Call) -> Call:
    attrs = {k: v for k, v in call.node.attrs.items() if k != "auto_pad"}
    return Call(call.node, attrs, call.run_graph)


def _transposed_sizes(call: Call, spatial: Sequence[Any], window: Window,
                      more: Sequence[int]) -> tuple[list[Any], list[tuple[Any, Any]]]:
    """The spatial sizes of the result, and how much of its ends is cut off."""
    full = [s * (d - 1) + m + k for d, s, m, k in zip(spatial, window.strides, more, window.reach, strict=True)]
    auto, wanted = call.attr("auto_pad", "NOTSET"), call.attr("output_shape")
    if wanted is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [d * s for d, s in zip(spatial, window.strides, strict=True)]
    if wanted is None:
        return [f - a - b for f, (a, b) in zip(full, window.pads, strict=True)], list(window.pads)
    wanted = wanted[-len(spatial):]
    cut = [f - o for f, o in zip(full, wanted, strict=True)]
    small = [c // 2 for c in cut]
    if auto == "SAME_UPPER":
        return list(wanted), [(s, c - s) for s, c in zip(small, cut, strict=True)]
    return list(wanted), [(c - s, s) for s, c in zip(small, cut, strict=True)]


def _input_grad(x: Any, w: Any, sizes: Sequence[Any], outputs: int, window: Window,
                cut: Sequence[tuple[Any, Any]]) -> Any:
    """A transposed convolution: what is beyond its own result, by more padding than it cuts off, is zeros."""
    beyond = [(max(-a, 0), max(-b, 0)) for a, b in cut]
    inner = [o - a - b for o, (a, b) in zip(sizes, beyond, strict=True)]
    pads = [(max(a, 0), max(b, 0)) for a, b in cut]
    y = ops.conv_input_grad(x, w, input_shape=(*inner, outputs), strides=window.strides, padding=tuple(pads),
                            dilations=window.dilations)
    return tf.pad(y, [(0, 0), *beyond, (0, 0)]) if any(p for pair in beyond for p in pair) else y


# -- columns and offsets ------------------------------------------------------------------------------
@op("Col2Im", static=(1, 2))
def _col2im(call: Call, x: Any, image: Value, block: Value) -> Any:
    """Blocks added up where they lay: the transposed convolution by filters that pick one place each."""
    sizes, size = int_list(image, "image_shape"), int_list(block, "block_shape")
    window = window_of(call, sizes, size, slides=False)
    places = [(d + a + b - k) // s + 1 for d, (a, b), k, s in
              zip(sizes, window.pads, window.reach, window.strides, strict=True)]
    count = math.prod(size)
    channels = x.dims[1] // count
    spread = tf.reshape(x, (x.dims[0] * channels, count, *places))
    picks = tf.reshape(tf.eye(count, dtype=x.dtype), (*size, 1, count))
    full = [s * (p - 1) + k for p, s, k in zip(places, window.strides, window.reach, strict=True)]
    grown = [max(f, d + a + b) for f, d, (a, b) in zip(full, sizes, window.pads, strict=True)]
    y = _input_grad(tf.transpose(spread, (0, *range(2, len(places) + 2), 1)), picks, full, 1, window,
                    [(0, 0)] * len(sizes))
    y = tf.pad(y, [(0, 0), *[(0, g - f) for g, f in zip(grown, full, strict=True)], (0, 0)])
    inside = tuple(slice(a, a + d) for (a, _), d in zip(window.pads, sizes, strict=True))
    return tf.reshape(y[(slice(None), *inside)], (x.dims[0], channels, *sizes))


@op("DeformConv")
def _deform_conv(call: Call, x: Any, w: Any, offset: Any, bias: Any = None, mask: Any = None) -> Any:
    """A convolution whose windows take their elements at places that are moved, between pixels by linear shares."""
    n, channels, height, width = x.dims
    outputs, inputs, *size = w.dims
    window = window_of(call, (height, width), size)
    shares, groups = call.attr("offset_group", 1), call.attr("group", 1)
    places = offset.dims[2:]
    moved = tf.reshape(offset, (n, shares, *size, 2, *places))
    taken = [_moved_axis(moved, i, window, places) for i in range(2)]
    samples = _between_pixels(x, taken, shares)  # [n, channels, k, k, h, w]
    if mask is not None:
        weights = tf.reshape(mask, (n, shares, 1, *size, *places))
        samples = tf.reshape(samples, (n, shares, channels // shares, *size, *places)) * weights
    rows = tf.reshape(samples, (n, groups, inputs * math.prod(size), math.prod(places)))
    filters = tf.reshape(w, (groups, outputs // groups, inputs * math.prod(size)))
    y = tf.reshape(tf.matmul(filters, rows), (n, outputs, *places))
    return y if bias is None else y + tf.reshape(bias, (outputs, 1, 1))


def _moved_axis(moved: Any, axis: int, window: Window, places: Sequence[int]) -> Any:
    """The coordinates along an axis of what the windows take: [n, shares, k, k, h, w]."""
    step = tf.cast(tf.range(places[axis]) * window.strides[axis] - window.pads[axis][0], moved.dtype)
    inner = tf.cast(tf.range(window.size[axis]) * window.dilations[axis], moved.dtype)
    ones = [1, 1]
    step_shape = [*ones, places[0], 1] if axis == 0 else [*ones, 1, places[1]]
    inner_shape = [window.size[0], 1, 1, 1] if axis == 0 else [1, window.size[1], 1, 1]
    return moved[:, :, :, :, axis] + tf.reshape(step, step_shape) + tf.reshape(inner, inner_shape)


def _between_pixels(x: Any, taken: Sequence[Any], shares: int) -> Any:
    """Elements of images at coordinates [n, shares, ..], by linear shares of their neighbours, zeros outside."""
    n, channels, height, width = x.dims
    images = tf.reshape(x, (n, shares, channels // shares, height * width))
    total: Any = 0
    lows = [tf.floor(t) for t in taken]
    for down in (0, 1):
        for right in (0, 1):
            y, z = lows[0] + down, lows[1] + right
            share = (1 - tf.abs(taken[0] - y)) * (1 - tf.abs(taken[1] - z))
            inside = tf.logical_and(tf.logical_and(y >= 0, y < height), tf.logical_and(z >= 0, z < width))
            flat = tf.cast(tf.where(inside, y * width + z, tf.zeros_like(y)), tf.int64)
            values = tf.gather(images, tf.reshape(flat, (n, shares, -1)), axis=3, batch_dims=2)
            share = tf.where(inside, share, tf.zeros_like(share))
            total = total + values * tf.reshape(share, (n, shares, 1, -1))
    return tf.reshape(total, (n, channels, *taken[0].dims[2:]))
