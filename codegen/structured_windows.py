"""Pooling, convolution as far as backends share it, and sizes inside of programs: see `placer.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike
from twofold.ir.dtypes import DType
from twofold.ir.spec import spec

from . import conv_shapes
from .backend import Backend, lowering
from .kernels import convolution, pool
from .kernels.windows import Geometry, geometry
from .layout import Layout, contiguous
from .loop import Kernel
from .operands import Run
from .placer import Placer
from .units import Source

__all__ = ["install", "convolves", "depthwise", "place_pool", "place_convolution"]


def install() -> None:
    """Does nothing: importing the module registers its lowerings."""


def _window_of(p: Placer, dims: Sequence[DimLike], places: Sequence[DimLike], window: Sequence[int]) -> Geometry:
    """The geometry of a node for input `dims` with the output `places`."""
    return geometry(dims, places, window, p.attrs)


# -- pooling ------------------------------------------------------------------------------------------
_POOLS = {"max_pool": pool.maximum, "max_pool_argmax": pool.argmax, "max_pool_gather": pool.gather,
          "max_pool_grad": pool.maximum_grad_tiled, "avg_pool": pool.average, "avg_pool_grad": pool.average_grad}


@lowering(*_POOLS)
def _pool(p: Placer) -> None:
    place_pool(p, _POOLS, _of_common_pixels, by_elements=False)


def place_pool(p: Placer, kernels: Mapping[str, Callable[..., Kernel]],
               of_common_pixels: Callable[[Placer, Geometry, Source, Source], None], by_elements: bool) -> None:
    """Places pooling or a gradient of it, as a backend does.

    Args:
        kernels: by the name of the op.
        of_common_pixels: `of_common_pixels(p, window, ct, x)` places the gradient for the largest elements where a
            pixel may be in no window, or in several.
        by_elements: whether ranges of kernels count elements, rather than places or pixels, which go over all channels
            of a window; then few taps are written out.
    """
    name, compute = p.node.op.name, p.operands[-1].base.dtype.compute
    operands = [p.dense(s, compute) for s in p.operands]
    first, last = operands[0].layout.shape, operands[-1].layout.shape
    image, places = {"max_pool_grad": (last, first), "avg_pool_grad": (p.out.dims, first)}.get(name, (last, p.out.dims))
    w = _window_of(p, image, places[1:-1], p.attrs["ksize"])
    twice = name == "max_pool_grad"  # goes over windows: to find what is largest, and to write
    if twice and not pool.is_tiled(w):
        of_common_pixels(p, w, *operands)
        return
    out = p.target(p.out.dtype.compute)
    arguments = [out, *[p.at(s) for s in operands], *w.integers]
    count, work = w.pixels if name == "avg_pool_grad" else w.places, (4 if twice else 2) * w.taps
    total, weight = (count * w.channels, work) if by_elements else (count, work * w.channels)
    written = [w.window] if twice and not by_elements and w.taps <= pool.FEW else []
    p.fill([out], Run(p.kernel(kernels[name], compute, *written), arguments, total, weight))
    p.give(out)


def _of_common_pixels(p: Placer, w: Geometry, ct: Source, x: Source) -> None:
    compute = p.out.dtype.compute
    whole = p.zeros(compute)
    tasks = w.images * dm.ceil_div(w.channels, pool.BLOCK)
    weight = 2 * w.taps * pool.BLOCK * dm.numel(w.outputs)
    p.change(whole, Run(p.kernel(pool.maximum_grad, compute), [whole, p.at(ct), p.at(x), *w.integers], tasks, weight))
    p.give(whole)


# -- convolution --------------------------------------------------------------------------------------
def convolves(node: g.Node, backend: Backend) -> bool:
    """Whether a convolution's filter and channels are known, and which taps fall on a pixel."""
    first, second = (v.dims for v in node.inputs)
    filters = node.attrs["filter_shape"] if node.op.name == "conv_filter_grad" else second
    image = (first[0], *node.attrs["input_shape"]) if node.op.name == "conv_input_grad" else first
    channels = image[-1]
    if isinstance(channels, Dim) or not dm.all_static(filters):
        return False
    filters = dm.evaluate(filters, {})
    if node.op.name != "conv_input_grad" or filters[-2] == 1 < channels:
        return True
    return conv_shapes.backward(geometry(image, first[1:-1], filters[:-2], node.attrs), filters[-1]) is not None


def place_convolution(p: Placer, of_channels: Callable[[Placer, Geometry, tuple[int, ...]], None],
                      ways: Mapping[str, Callable[[Placer, Geometry, tuple[int, ...], int], None]]) -> None:
    """Lowers a convolution or one of its gradients, as a backend does.

    Args:
        of_channels: `of_channels(p, window, filters)` lowers those whose filters take one channel each.
        ways: by the name of the op what lowers all others: `way(p, window, filters, groups)`.
    """
    x, y = p.operands
    name = p.node.op.name
    filters = tuple(p.attrs["filter_shape"]) if name == "conv_filter_grad" else y.layout.shape
    image = p.out.dims if name == "conv_input_grad" else x.layout.shape
    places = {"conv": p.out.dims, "conv_input_grad": x.layout.shape}.get(name, y.layout.shape)
    w = _window_of(p, image, places[1:-1], filters[:-2])
    if any(dm.is_exactly(d, 0) for d in (*x.layout.shape, *y.layout.shape, *p.out.dims)):
        p.give(p.zeros())
        return
    groups = w.channels // filters[-2]
    if groups > 1 and filters[-2] == 1:
        of_channels(p, w, filters)
    else:
        ways[name](p, w, filters, groups)


# -- depthwise convolution ----------------------------------------------------------------------------
def depthwise(p: Placer, w: Geometry, filters: Sequence[int]) -> None:
    """A convolution, or a gradient of one, whose filters take one channel each, for any number of outputs of each;
    `filters` is their shape."""
    compute, name = p.out.dtype.compute, p.node.op.name
    multiplier = filters[-1] // w.channels
    x, y = (p.dense(s, compute) for s in p.operands)
    if name == "conv_filter_grad":
        sums = p.zeros(dt.float64)
        kernel = p.kernel(convolution.depthwise_filter_grad, compute)
        arguments = [sums, p.at(x), p.at(y), *w.integers, w.images, multiplier]
        p.change(sums, Run(kernel, arguments, w.taps, 2 * w.places * filters[-1]))
        p.give(sums)
        return
    out = p.target(compute)
    build, total = (convolution.depthwise, w.places) if name == "conv" else (convolution.depthwise_input_grad, w.pixels)
    arguments = [out, p.at(x), p.at(y), *w.integers, multiplier]
    p.fill([out], Run(p.kernel(build, compute), arguments, total, 2 * w.taps * w.channels * multiplier))
    p.give(out)


# -- sizes --------------------------------------------------------------------------------------------
def _number(size: DimLike, dtype: DType) -> g.Value:
    """A size as a value that kernels hold themselves."""
    return g.Node(g.SIZE, (), {"size": size, "dtype": dtype}, (spec((), dtype),)).outputs[0]


@lowering("shape")
def _shape(p: Placer) -> None:
    dims = p.node.inputs[0].dims
    if not any(isinstance(d, Dim) for d in dims):
        _constant(p, np.array(dims, p.out.dtype.np))
        return
    for n, size in enumerate(dims):
        p.part(p.out, Layout((1,), (1,), n), Source(_number(size, p.out.dtype), Layout((), (), 0)))


@lowering("size")
def _size(p: Placer) -> None:
    count = dm.numel(p.node.inputs[0].dims)
    if isinstance(count, Dim):
        p.give(_number(count, p.out.dtype), Layout((), (), 0))
    else:
        _constant(p, np.array(count, p.out.dtype.np))


def _constant(p: Placer, array: np.ndarray) -> None:
    node = g.Node(g.CONSTANT, (), {"value": array}, (spec(array.shape, p.out.dtype),))
    p.give(node.outputs[0], contiguous(array.shape))
