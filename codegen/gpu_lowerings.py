"""Lowerings that only GPUs have: of ops whose kernels go another way there than on processors.

A backend of GPUs takes `LOWERINGS` before those of all backends. Kernels are the program's own.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike
from twofold.ir.dtypes import DType

from . import conv_shapes as shapes
from . import gpu_conv, gpu_gemm, gpu_pool, gpu_scan, gpu_scatter, gpu_sort
from .backend import Lowering, lowering
from .gpu_mma import WarpShape
from .gpu_tile import TileShape
from .kernels import convolution, equal, scan, segment
from .kernels.windows import Geometry
from .kernels.windows import steps as steps_of
from .layout import Layout
from .matrices import Matrices
from .operands import Argument, Loads, Run, Within, Work
from .placer import Placer
from .statements import Kernel
from .structured import (
    Indexed,
    place_cross_entropy,
    place_gather,
    place_order,
    place_scatter,
    place_softmax,
    place_sparse_dots,
)
from .structured_products import transposed
from .structured_windows import convolves, place_convolution, place_pool
from .units import Source

__all__ = ["LOWERINGS"]

LOWERINGS: dict[str, Lowering] = {}


# -- rows ---------------------------------------------------------------------------------------------
@lowering("softmax", "log_softmax", table=LOWERINGS)
def _softmax(p: Placer) -> None:
    place_softmax(p, by_team=True)


@lowering("sparse_cross_entropy", table=LOWERINGS)
def _cross_entropy(p: Placer) -> None:
    place_cross_entropy(p, by_team=True)


@lowering("sparse_dots", table=LOWERINGS)
def _sparse_dots(p: Placer) -> None:
    place_sparse_dots(p, by_team=True)


# -- convolution --------------------------------------------------------------------------------------
@lowering("conv", "conv_input_grad", "conv_filter_grad", handles=convolves, table=LOWERINGS)
def _convolution(p: Placer) -> None:
    ways = {"conv": _forward, "conv_input_grad": _input_grad, "conv_filter_grad": _filter_grad}
    place_convolution(p, _depthwise, ways)


def _depthwise(p: Placer, w: Geometry, filters: tuple[int, ...]) -> None:
    """Filters that take one channel each: an element of the result a thread."""
    compute, name = p.out.dtype.compute, p.node.op.name
    x, y = (p.dense(s, compute) for s in p.operands)
    build = {"conv": gpu_conv.depthwise, "conv_input_grad": gpu_conv.depthwise_input_grad}.get(
        name, gpu_conv.depthwise_filter_grad)
    out = p.target(dt.float64 if name == "conv_filter_grad" else compute)
    more: list[Argument] = [w.images] if name == "conv_filter_grad" else []
    arguments = [out, p.at(x), p.at(y), *w.integers, *more, filters[-1] // w.channels]
    work = w.places if name == "conv_filter_grad" else w.taps
    p.fill([out], Run(p.kernel(build, compute), arguments, dm.numel(out.dims), 2 * work))
    p.give(out)


def _forward(p: Placer, w: Geometry, filters: tuple[int, ...], groups: int) -> None:
    compute, outputs = p.out.dtype.compute, filters[-1]
    x, y = p.dense(p.operands[0], compute), p.dense(p.operands[1], compute)
    out = p.target(compute)
    if groups == 1 and shapes.is_plain(w):
        pixels = Source(x.base, x.layout.reshape((w.places, w.channels)))
        p.product(out, pixels, Source(y.base, y.layout.reshape((w.channels, outputs))))
    else:
        image, *steps = steps_of(w.outputs, outputs)
        matrix = (outputs, outputs // groups)  # steps from row to row, and from group to group
        p.fill([out], *_convolved(p, w, (Within(out, 0), p.at(x), p.at(y)), (image, *steps), matrix, outputs, groups,
                                  whole=True))
    p.give(out)


def _convolved(p: Placer, w: Geometry, places: tuple[Argument, Argument, Argument], steps: tuple[DimLike, ...],
               matrix: tuple[DimLike, DimLike], outputs: int, groups: int, whole: bool) -> list[Run]:
    """The runs of a convolution, `places` being those of the result, the images and the filters.

    Args:
        w: of the images.
        steps: in the result from image to image, and along each axis.
        matrix: steps in the filters from row to row and from group to group.
        whole: whether the places are all of the result, one after another.
    """
    result, images, filters = places
    compute, columns, inner = p.out.dtype.compute, outputs // groups, w.channels // groups
    k = w.taps * inner
    x = Matrices(w.places, columns, k, (k, 1), (columns, 1), columns, ((groups, 0, 0, 0),))
    shape, parts = gpu_gemm.tiles_for(p, x, compute)
    if groups > 1 or not whole:
        parts = 1
    what = compute, shape, w.window, _fills(inner, compute), parts > 1
    kernel = p.kernel(gpu_conv.forward, *what)
    total = parts * groups * dm.ceil_div(w.places, shape.rows) * -(-columns // shape.columns)
    sizes: list[Argument] = [*w.integers, w.places, groups, columns, inner, *matrix, *steps]
    weight = shape.rows * shape.columns * -(-k // parts) // 16 + 1
    rows, build = (1, w.places, outputs), functools.partial(gpu_conv.forward, *what)
    loads = _loads(shape, build, w.taps * -(-columns // shape.columns), dm.ceil_div(w.places, shape.rows))
    if parts == 1:
        tiles = gpu_gemm.held(*rows, build) if whole else None
        return [Run(kernel, [result, images, filters, *sizes], total, weight, tiles=tiles, loads=loads)]
    sums = Work(compute, parts * (w.places * columns))
    return [Run(kernel, [sums, images, filters, *sizes, parts], total, weight, loads=loads),
            gpu_gemm.join(p, result, sums, parts, rows)]


def _loads(shape: TileShape | WarpShape, build: Callable[..., Kernel], *times: DimLike) -> Loads | None:
    """What says how often each element of two operands is loaded; None where tensor cores multiply them."""
    return Loads(dict(enumerate(times, 1)), build) if isinstance(shape, TileShape) else None


def _fills(inner: int, dtype: DType) -> bool:
    """Whether channels of a group fill whole vectors."""
    return inner * dtype.size % 16 == 0


def _input_grad(p: Placer, w: Geometry, filters: tuple[int, ...], groups: int) -> None:
    """A convolution of the outputs' gradient for each of the phases that pixels have to the strides."""
    compute, outputs = p.out.dtype.compute, filters[-1]
    ct, y = p.dense(p.operands[0], compute), p.dense(p.operands[1], compute)
    if groups == 1 and shapes.is_plain(w):
        out = p.target(compute)
        pixels = Source(ct.base, ct.layout.reshape((w.places, outputs)))
        p.product(out, pixels, transposed(Source(y.base, y.layout.reshape((w.channels, outputs)))))
        p.give(out)
        return
    phases = shapes.backward(w, outputs)
    assert phases is not None  # else it would not have been placed here
    every = len(phases) == math.prod(w.strides)  # else no tap falls on some pixels
    turned = [p.dense(p.copy(_turned(y, w, outputs, groups, phase))) for phase in phases]
    out = p.target(compute) if every else p.zeros(compute)
    image, *steps = steps_of(w.sizes, w.channels)
    runs: list[Run] = []
    for phase, matrices in zip(phases, turned, strict=True):
        first = sum(f * s for f, s in zip(phase.first, steps, strict=True))
        apart = (image, *[n * s for n, s in zip(phase.strides, steps, strict=True)])
        each = w.channels // groups
        matrix = (each, phase.geometry.taps * (outputs // groups) * each)
        runs += _convolved(p, phase.geometry, (Within(out, first), p.at(ct), p.at(matrices)), apart, matrix, w.channels,
                           groups, whole=len(phases) == 1 and every)
    p.fill([out], *runs)
    p.give(out)


def _turned(y: Source, w: Geometry, outputs: int, groups: int, phase: shapes.Phase) -> Source:
    """The filters of a phase, for each group a matrix with a row for each tap and output."""
    lying = shapes.turned(w, outputs, groups, phase)
    shape = (groups, *phase.geometry.window, outputs // groups, w.channels // groups)
    strides = (lying.group, *lying.taps, lying.element, lying.column)
    return Source(y.base, Layout(shape, strides, y.layout.offset + lying.first))


def _filter_grad(p: Placer, w: Geometry, filters: tuple[int, ...], groups: int) -> None:
    """The sums of shares of the places, and these added up."""
    compute, outputs = p.out.dtype.compute, filters[-1]
    x, ct = (p.dense(s, compute) for s in p.operands)
    count = shapes.shares(w, outputs, groups)
    out = p.target(compute)
    single = dm.is_exactly(count, 1)
    parts = out if single else g.Value((count, *filters), compute)
    columns, inner = outputs // groups, filters[-2]
    shares = groups * count
    m = w.taps * inner
    x_of = Matrices(m, columns, w.places, (1, m), (outputs, 1), outputs, ((shares, 0, 0, 0),))
    shape, _ = gpu_gemm.tiles_for(p, x_of, compute, parts=False)
    what = compute, shape, w.window, _fills(inner, compute)
    kernel = p.kernel(gpu_conv.filters, *what)
    total = shares * -(-m // shape.rows) * -(-columns // shape.columns)
    weight = shape.rows * shape.columns * w.places // 16 + 1
    arguments: list[Argument] = [parts, p.at(x), p.at(ct), *w.integers, w.places, count, groups, columns, inner]
    loads = _loads(shape, functools.partial(gpu_conv.filters, *what), w.taps * -(-columns // shape.columns),
                   -(-m // shape.rows))
    p.fill([parts], Run(kernel, arguments, total, weight, loads=loads))
    if not single:
        size = math.prod(filters)
        p.fill([out], Run(p.kernel(convolution.add_up, compute), [out, parts, count, size], size, count))
    p.give(out)


# -- pooling ------------------------------------------------------------------------------------------
_POOLS = {"max_pool": gpu_pool.maximum, "max_pool_argmax": gpu_pool.argmax, "max_pool_gather": gpu_pool.gather,
          "max_pool_grad": gpu_pool.maximum_grad_tiled, "avg_pool": gpu_pool.average,
          "avg_pool_grad": gpu_pool.average_grad}


@lowering(*_POOLS, table=LOWERINGS)
def _pool(p: Placer) -> None:
    place_pool(p, _POOLS, _of_common_pixels, by_elements=True)


def _of_common_pixels(p: Placer, w: Geometry, ct: Source, x: Source) -> None:
    """Each window's winner first, for which each pixel then asks."""
    compute = p.out.dtype.compute
    out, places, weight = p.target(compute), w.places * w.channels, 2 * w.taps
    which = Work(dt.int32, places)
    p.fill([out], Run(p.kernel(gpu_pool.winners, compute), [which, p.at(x), *w.integers], places, weight),
           Run(p.kernel(gpu_pool.maximum_grad, compute), [out, p.at(ct), which, *w.integers], w.pixels * w.channels,
               weight))
    p.give(out)


# -- scans --------------------------------------------------------------------------------------------
_FEW_LINES = 1024  # up to which each has a block of threads of its own


@lowering(*scan.SCANS, table=LOWERINGS)
def _scan(p: Placer) -> None:
    name, shape = p.node.op.name, p.out.dims
    axis = p.attrs["axis"] % len(shape)
    length, inner, outer = shape[axis], dm.numel(shape[axis + 1:]), dm.numel(shape[:axis])
    how = name, p.out.dtype, bool(p.attrs.get("exclusive", False)), bool(p.attrs["reverse"])
    operands = [p.dense(s) for s in p.operands]
    arguments: list[Argument] = [p.out, *[p.at(s) for s in operands], length]
    if dm.is_exactly(inner, 1):
        together = 1 if not isinstance(outer, Dim) and outer <= _FEW_LINES else gpu_scan.TOGETHER
        kernel = p.kernel(gpu_scan.lines, *how, together)
        run = Run(kernel, [*arguments, outer], dm.ceil_div(outer, together), length * together)
    else:
        kernel = p.kernel(gpu_scan.columns, *how)
        run = Run(kernel, [*arguments, inner], outer * inner, length * p.weight(kernel))
    p.fill([p.out], run)


# -- places given as data -----------------------------------------------------------------------------
@lowering("gather", "gather_nd", table=LOWERINGS)
def _gather(p: Placer) -> None:
    place_gather(p, _gathered)


def _gathered(p: Placer, of: Indexed) -> list[Run]:
    lead, outer, size, row, count = of.sizes
    kernel = p.kernel(gpu_scatter.gather, of.unit, of.index_type)
    arguments = [of.slices, of.memory, of.index, outer, size, count, row]
    return [Run(kernel, arguments, lead * outer * count * row, 1, of.detail)]


@lowering("scatter_add", "scatter_nd", "tensor_scatter", table=LOWERINGS)
def _scatter(p: Placer) -> None:
    place_scatter(p, _scattered, checked_first=False)


def _scattered(p: Placer, of: Indexed, mode: str) -> list[Run]:
    lead, outer, size, row, count = of.sizes
    before, places = _in_order(p, of.index, of.index_type, lead, count)
    kernel = p.kernel(gpu_scatter.scatter, of.unit, of.index_type, mode, bool(before))
    arguments = [of.memory, of.slices, *places, outer, size, count, row]
    return [*before, Run(kernel, arguments, lead * outer * count * row, 2, of.detail)]


def _in_order(p: Placer, index: Argument, index_type: DType, groups: DimLike,
              count: DimLike) -> tuple[list[Run], list[Argument]]:
    """What puts the indices of each group in order, and where these and their places are then; nothing where there are
    so few that they are looked at as they lie."""
    if not isinstance(count, Dim) and count <= gpu_scatter.FEW:
        return [], [index]
    runs, keys, order = gpu_sort.sorted_runs(p, index_type, index, groups, count)
    return runs, [keys, order]


@lowering(*[f"unsorted_segment_{kind}" for kind in segment.COMBINE], table=LOWERINGS)
def _segments(p: Placer) -> None:
    kind = p.node.op.name.removeprefix("unsorted_segment_")
    data, ids = (p.dense(s) for s in p.operands)
    dtype, rows = p.out.dtype, dm.numel(ids.layout.shape)
    segments, columns = p.out.dims[0], dm.numel(p.out.dims[1:])
    before, places = _in_order(p, p.at(ids), ids.base.dtype, 1, rows)
    kernel = p.kernel(gpu_scatter.segments, kind, dtype, ids.base.dtype, bool(before))
    p.fill([p.out], Run(p.kernel(gpu_scatter.fill, kind, dtype), [p.out], dm.numel(p.out.dims), 1), *before,
           Run(kernel, [p.out, p.at(data), *places, rows, segments, columns], rows * columns, 2))


@lowering("first_equal", table=LOWERINGS)
def _first_equal(p: Placer) -> None:
    x, (count,) = p.dense(p.operands[0]), p.out.dims
    p.fill([p.out], Run(p.kernel(equal.first_by_elements, x.base.dtype), [p.out, p.at(x)], count, count))


# -- order --------------------------------------------------------------------------------------------
def _ordered(p: Placer, x: Source, descending: bool, indices: Argument | None) -> tuple[list[Run], Argument]:
    """What finds the indices that sort the rows of x, and where these are."""
    *rows, length = x.layout.shape
    runs, _, order = gpu_sort.sorted_runs(p, x.base.dtype, p.at(x), dm.numel(rows), length, descending, indices)
    return runs, order


@lowering("argsort", "sort", "top_k", table=LOWERINGS)
def _sort(p: Placer) -> None:
    place_order(p, _ordered, by_elements=True)
