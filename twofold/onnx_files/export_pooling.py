"""Pooling and its gradients. Windows that hold NaN give what the runtime's maximum makes of it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir import windows
from twofold.ir.dims import DimLike

from .export_convolutions import Pads, channels_first, channels_last, padded, transposed, zeros
from .export_table import meaning
from .export_writer import Ref, Writer


def _pads(sizes: Sequence[DimLike], window: dict[str, Any]) -> Pads:
    return windows.pads(sizes, window["ksize"], window["strides"], window["dilations"], window["padding"])


def _moves(window: dict[str, Any], edges: list[int]) -> dict[str, Any]:
    return {"strides": list(window["strides"]), "pads": edges, "dilations": list(window["dilations"])}


def _attrs(window: dict[str, Any], edges: list[int]) -> dict[str, Any]:
    return {"kernel_shape": list(window["ksize"]), **_moves(window, edges)}


def _lowest(dtype: dt.DType) -> complex:
    return -math.inf if dtype.is_floating else dtype.min


@meaning("max_pool")
def max_pool(w: Writer, node: g.Node, x: Ref, **window: Any) -> Ref:
    """`MaxPool` of floats; other dtypes are the largest of slices, one for each place of the window."""
    if 0 in node.outputs[0].dims:
        return zeros(w, node)
    dims = node.inputs[0].dims
    rank = len(dims)
    if not x.dtype.is_floating:
        return _largest_slice(w, node, x, window)
    image, edges = padded(w, channels_first(w, x, rank), _pads(dims[1:-1], window), w.constant(-math.inf, x.dtype),
                          window["ksize"])
    return channels_last(w, w.op("MaxPool", image, **_attrs(window, edges)), rank)


def _largest_slice(w: Writer, node: g.Node, x: Ref, window: dict[str, Any]) -> Ref:
    dims, places = node.inputs[0].dims, node.outputs[0].dims[1:-1]
    pads = _pads(dims[1:-1], window)
    if any(side != (0, 0) for side in pads):
        amounts = [0, *[b for b, _ in pads], 0, 0, *[a for _, a in pads], 0]
        x = w.op("Pad", x, w.shape(amounts), w.constant(_lowest(x.dtype), x.dtype))
    best: Ref | None = None
    for index in itertools.product(*map(range, window["ksize"])):
        starts = [i * d for i, d in zip(index, window["dilations"], strict=True)]
        ends = [b + (p - 1) * s + 1 for b, p, s in zip(starts, places, window["strides"], strict=True)]
        seen = w.op("Slice", x, w.ints(starts), w.shape(ends), w.ints(range(1, len(dims) - 1)),
                    w.ints(window["strides"]))
        best = seen if best is None else w.op("Max", best, seen)
    assert best is not None
    return best


def _first_largest(w: Writer, node: g.Node, x: Ref, which: int, window: dict[str, Any]) -> Ref:
    """The number of each window's first largest element, in the flat order of the tensor with channels first."""
    dims = node.inputs[which].dims
    rank = len(dims)
    image = channels_first(w, w.cast(x, x.dtype.compute), rank)
    pads = _pads(dims[1:-1], window)
    moved, edges = padded(w, image, pads, w.constant(-math.inf, image.dtype), window["ksize"])
    places = w.several("MaxPool", [moved], [None, dt.int64], **_attrs(window, edges))[1]
    if moved is image:
        return places
    return _without_padding(w, places, dims, pads)


def _without_padding(w: Writer, places: Ref, dims: Sequence[DimLike], pads: Pads) -> Ref:
    """Numbers of elements of a padded tensor as those of the tensor."""
    wide = [n + b + a for n, (b, a) in zip(dims[1:-1], pads, strict=True)]
    total: Ref | None = None
    rest, step = places, w.ints([1])
    for n, big, (before, _) in reversed(list(zip(dims[1:-1], wide, pads, strict=True))):
        at = w.op("Sub", w.op("Mod", rest, w.size(big)), w.size(before))
        part = w.op("Mul", at, step)
        total = part if total is None else w.op("Add", total, part)
        rest, step = w.op("Div", rest, w.size(big)), w.op("Mul", step, w.size(n))
    assert total is not None
    return w.op("Add", total, w.op("Mul", rest, step))


@meaning("max_pool_argmax")
def max_pool_argmax(w: Writer, node: g.Node, x: Ref, **window: Any) -> Ref:
    """The number in the row-major image with channels last."""
    if 0 in node.outputs[0].dims:
        return zeros(w, node)
    dims = node.inputs[0].dims
    places = _first_largest(w, node, x, 0, window)
    pixels, channels = w.size(dm.numel(dims[1:-1])), w.size(dims[-1])
    inside = w.op("Mod", places, w.op("Mul", pixels, channels))
    pixel, channel = w.op("Mod", inside, pixels), w.op("Div", inside, pixels)
    return channels_last(w, w.op("Add", w.op("Mul", pixel, channels), channel), len(dims))


@meaning("max_pool_grad")
def max_pool_grad(w: Writer, node: g.Node, ct: Ref, x: Ref, **window: Any) -> Ref:
    """Cotangents added up where the largest elements lie."""
    if 0 in node.inputs[0].dims:
        return zeros(w, node)
    dims = node.inputs[1].dims
    rank, dtype = len(dims), x.dtype
    places = _first_largest(w, node, x, 1, window)
    given = w.reshaped(channels_first(w, w.cast(ct, dtype.compute), rank), [-1])
    none = w.op("Expand", w.constant(0, given.dtype), w.shape([dm.numel(dims)]))
    added = w.op("ScatterElements", none, w.reshaped(places, [-1]), given, axis=0, reduction="add")
    first = [dims[0], dims[-1], *dims[1:-1]]
    return w.cast(channels_last(w, w.reshaped(added, first), rank), dtype)


@meaning("max_pool_gather")
def max_pool_gather(w: Writer, node: g.Node, values: Ref, x: Ref, **window: Any) -> Ref:
    """Elements of another tensor from where the largest elements lie."""
    if 0 in node.outputs[0].dims:
        return zeros(w, node)
    rank = len(node.inputs[1].dims)
    places = _first_largest(w, node, x, 1, window)
    flat = w.reshaped(channels_first(w, values, rank), [-1])
    return channels_last(w, w.op("Gather", flat, places, axis=0), rank)


@meaning("avg_pool")
def avg_pool(w: Writer, node: g.Node, x: Ref, **window: Any) -> Ref:
    """`AveragePool`, in which padding does not count; where that does not fit, a convolution over counts."""
    if 0 in node.outputs[0].dims:
        return zeros(w, node)
    dims = node.inputs[0].dims
    rank, dtype = len(dims), x.dtype
    pads = _pads(dims[1:-1], window)
    image = channels_first(w, w.cast(x, dtype.compute), rank)
    moved, edges = padded(w, image, pads, None, window["ksize"])
    dilated = any(d != 1 for d in window["dilations"])
    if moved is image and (w.opset >= 19 or not dilated):
        attrs = _attrs(window, edges)
        if not dilated:
            del attrs["dilations"]
        return w.cast(channels_last(w, w.op("AveragePool", image, count_include_pad=0, **attrs), rank), dtype)
    put_on = pads if moved is not image else [(0, 0)] * len(pads)
    wide = [n + b + a for n, (b, a) in zip(dims[1:-1], put_on, strict=True)]
    single = w.reshaped(moved, [dm.numel((dims[0], dims[-1])), 1, *wide])
    kernel = w.constant(np.ones((1, 1, *window["ksize"])), image.dtype)
    total = w.op("Conv", single, kernel, **_moves(window, edges))
    average = w.op("Div", total, _counts(w, dims[1:-1], pads, window, image.dtype))
    places = node.outputs[0].dims
    return w.cast(channels_last(w, w.reshaped(average, [places[0], places[-1], *places[1:-1]]), rank), dtype)


def _counts(w: Writer, sizes: Sequence[DimLike], pads: Pads, window: dict[str, Any], dtype: dt.DType) -> Ref:
    """How many elements of the tensor each window holds, as [1, 1, places..]."""
    ones = w.op("Expand", w.constant(1, dtype), w.shape([1, 1, *sizes]))
    moved, edges = padded(w, ones, pads)
    return w.op("Conv", moved, w.constant(np.ones((1, 1, *window["ksize"])), dtype), **_moves(window, edges))


@meaning("avg_pool_grad")
def avg_pool_grad(w: Writer, node: g.Node, ct: Ref, *, input_shape: Sequence[DimLike], **window: Any) -> Ref:
    """Equal shares, by a transposed convolution with ones of each channel alone."""
    if 0 in node.inputs[0].dims:
        return zeros(w, node)
    rank, dtype, dims = len(input_shape) + 1, ct.dtype, node.inputs[0].dims
    sizes, places = input_shape[:-1], dims[1:-1]
    pads = _pads(sizes, window)
    image = w.reshaped(channels_first(w, w.cast(ct, dtype.compute), rank),
                       [dm.numel((dims[0], dims[-1])), 1, *places])
    shares = w.op("Div", image, _counts(w, sizes, pads, window, image.dtype))
    kernel = w.constant(np.ones((1, 1, *window["ksize"])), image.dtype)
    made = transposed(w, shares, kernel, places, sizes, window["ksize"], pads, window["strides"],
                      window["dilations"], 1)
    return w.cast(channels_last(w, w.reshaped(made, [dims[0], dims[-1], *sizes]), rank), dtype)
