"""Lowerings of matrix products and convolutions: the runs of library kernels that they become in plans.

Sizes may be unknown here. Where a plan needs numbers it is made for typical ones; results do not depend on it.
"""

from __future__ import annotations

import math
from typing import Any

from twofold.codegen import conv_depthwise_shapes as of_channels
from twofold.codegen import conv_grouped_shapes as grouped
from twofold.codegen import conv_inside_shapes as inside
from twofold.codegen import conv_lines_shapes as lines
from twofold.codegen import conv_narrow_shapes as narrow
from twofold.codegen import conv_shapes as shapes
from twofold.codegen import gemm_shapes as gemm
from twofold.codegen import library, structured, structured_alone, structured_draws, structured_products, target
from twofold.codegen.backend import lowering
from twofold.codegen.kernels import convolution
from twofold.codegen.kernels.windows import Geometry
from twofold.codegen.layout import Layout, NotAView, contiguous, row_span
from twofold.codegen.matrices import Matrices, matrices_of
from twofold.codegen.operands import Argument, Blocking, Library, Rows, Run, Tiles, Within, Work
from twofold.codegen.placer import Placer
from twofold.codegen.structured_windows import convolves, depthwise, place_convolution
from twofold.codegen.units import Source
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike
from twofold.ir.dtypes import DType

from . import convolutions, products, threads

__all__: list[str] = []  # importing it registers all lowerings

structured.install()
structured_products.install()
structured_alone.install()
structured_draws.install()
convolutions.install()
_OF_A = (1, 4, 5, 6, 9, 10)  # integers of a product that do not matter where B is packed
_TYPICAL = 64  # rows of a matrix of unknown size
_FEW_PIXELS = 256  # of an image, whose product then leaves vectors unfilled, so that turning it is quicker


# -- matrix products ----------------------------------------------------------------------------------
@library.plans_products
def _product_runs(p: Placer, out: g.Value, left: Source, right: Source, layout: Layout | None) -> list[Run]:
    """The runs of a product in a plan; see `Placer.product`."""
    dtype = left.base.dtype
    layout = layout or contiguous((left.layout.shape[-2], right.layout.shape[-1]))
    x = matrices_of(left, right, layout)
    if products.is_scattered(x) and not left.layout.is_dense():
        left = p.copy(left)
        x = matrices_of(left, right, layout)
    fixed, steady = p.is_fixed(right), p.is_steady(right) and not x.batch
    if not x.batch:
        p.packs(right, x.m, x.k * x.n)
    first, second = p.at(left), p.at(right)
    places = {} if left.base is right.base else {left.base: left.layout.broadcast_to((*layout.shape[:-1], x.k)),
                                                 out: layout}

    tiled = _tiles(x, dtype) if layout.is_contiguous() else None

    def runs(rows: int | None) -> list[Run]:
        plan = _planned(x, dtype, fixed, rows, steady)
        how = _rows(x, plan, dtype, places)
        if how is not None and rows is None and not (fixed or steady):
            shape = gemm.tiling(dtype)
            tiles = gemm.tiles_at_once(shape, dtype) if isinstance(x.k, Dim) else gemm.tiles_at_once(shape, dtype, x.k)
            most = tiles * shape.tall
            how = Rows(how.count, how.grain, how.steps, how.spans, how.matrices, Blocking(shape.tall, most, runs))
        return _runs(x, plan, dtype, (Within(out, 0), first, second), fixed or steady, how, tiled)

    return runs(None)


def _runs(x: Matrices, plan: products.ProductPlan, dtype: DType, places: tuple[Argument, Argument, Argument],
          fixed: bool, rows: Rows | None, tiles: Tiles | None) -> list[Run]:
    """The runs of a planned product; `places` are those of the result and of the operands."""
    out, first, second = places
    if plan.swapped:
        first, second = second, first
    runs = []
    if plan.kernel != "tall" or dm.is_exactly(plan.total, 0):
        tiles = None
    if plan.packs:  # which reads no more of A than its address
        work = Work(gemm.summed(dtype), plan.room)
        of_b = [0 if n in _OF_A else word for n, word in enumerate(plan.integers)]
        packing = _kernel(dtype, "pack_flat" if plan.kernel == "flat" else "pack_b")
        runs.append(Run(packing, [work, second, second, *of_b], plan.packs, max(plan.room // plan.packs, 1),
                        fixed=fixed))
        second = work
    weight = max(plan.work // plan.total, 1) if _number(plan.work) and _number(plan.total) and plan.total else \
        _weight(x)
    return [*runs, Run(_kernel(dtype, plan.kernel), [out, first, second, *plan.integers], plan.total, weight,
                       rows=() if rows is None else (rows,), tiles=tiles)]


def _tiles(x: Matrices, dtype: DType) -> Tiles:
    """How products with a row-major result are computed tile by tile."""
    shape = gemm.tiling(dtype)
    once = _number(x.k) and x.k <= gemm.block(dtype)
    return Tiles(dm.numel([length for length, *_ in x.batch]), x.m, x.n, shape.tall, gemm.panel_width(shape, False),
                 once, _number(x.k) and x.k < gemm.HURRIED)


def _rows(x: Matrices, plan: products.ProductPlan, dtype: DType,
          places: dict[g.Value, Layout]) -> Rows | None:
    """How products go over their rows; `places` are where those of the left operand and of the result lie."""
    if plan.kernel != "tall" or plan.swapped or not places or dm.is_exactly(plan.total, 0):
        return None
    rows, columns = plan.integers[9:11]
    spans = {value: span for value, layout in places.items()
             if (span := row_span(layout, len(layout.shape) - 1)) is not None}
    batches = dm.numel([length for length, *_ in x.batch])
    return Rows(batches * x.m, rows, dm.ceil_div(x.n, columns), spans, (batches, x.m))


# -- convolution --------------------------------------------------------------------------------------
@lowering("conv", "conv_input_grad", "conv_filter_grad", handles=convolves)
def _convolution(p: Placer) -> None:
    ways = {"conv": _forward, "conv_input_grad": _input_grad, "conv_filter_grad": _filter_grad}
    place_convolution(p, _depthwise, ways)


def _depthwise(p: Placer, w: Geometry, filters: tuple[int, ...]) -> None:
    compute, name = p.out.dtype.compute, p.node.op.name
    phases = shapes.backward(w, w.channels) if name == "conv_input_grad" else []
    if filters[-1] != w.channels or phases is None:
        depthwise(p, w, filters)
        return
    x, y = (p.dense(s, compute) for s in p.operands)
    if name == "conv_filter_grad":
        sums = p.zeros(dt.float64)
        p.change(sums, *_cut(sums, x, y, of_channels.filters(w, compute)))
        p.give(sums)
        return
    cut = of_channels.backward(w, phases, _threads()) if phases else of_channels.forward(w, _threads())
    every = name == "conv" or len(phases) == math.prod(w.strides)  # else no tap falls on some pixels
    out = p.target(compute) if every else p.zeros(compute)
    p.fill([out], *_cut(out, x, y, cut))
    p.give(out)


def _framed(p: Placer, x: Source, w: Geometry) -> tuple[Source, Geometry]:
    """Dense images, and once their padding is laid out."""
    inner = shapes.padded(w)
    if inner is None:
        return x, w
    framed = g.Value((inner.images, *inner.sizes, inner.channels), x.base.dtype)
    arguments = [framed, p.at(x), *inner.sizes, *w.sizes, *w.before, w.channels]
    lines, weight = dm.numel((inner.images, *inner.sizes[:2])), inner.sizes[2] * inner.channels // 8 + 1
    p.fill([framed], Run(p.kernel(convolution.frame, x.base.dtype), arguments, lines, weight))
    return Source(framed, contiguous(framed.dims)), inner


def _cut(out: g.Value, x: Source, b: Source, *cuts: shapes.Cut, fixed: bool = False) -> list[Run]:
    """Runs of kernels of convolutions, and what packs B for all of them before, as the first one says; `fixed` as for
    that run."""
    cut = cuts[0]
    right: Within | Work = Within(b.base, b.layout.offset + cut.b)
    runs = []
    if cut.packs is not None:
        integers, panels, size = cut.packs
        work = Work(x.base.dtype, size)
        runs.append(Run(Library(("conv", x.base.dtype.name, "panels")), [work, right, *integers], panels,
                        max(size // 8 // panels, 1), fixed=fixed))
        right = work
    return [*runs, *(_run(out, x, right, cut) for cut in cuts)]


def _run(out: g.Value, x: Source, right: Within | Work, cut: shapes.Cut) -> Run:
    """A run of a kernel of convolutions."""
    dtype, padding = x.base.dtype, not (_number(cut.work) and cut.work == 0)
    works = cut.kernel.startswith(("forward", "narrow", "grouped"))
    room: list[Work | int] = [Work(dtype, cut.work) if padding else 0] if works else []
    arguments = [Within(out, cut.out), Within(x.base, x.layout.offset + cut.x), right, *room, *cut.integers]
    return Run(Library(("conv", dtype.name, cut.kernel)), arguments, cut.total, cut.weight)


def _forward(p: Placer, w: Geometry, filters: tuple[int, ...], groups: int) -> None:
    compute, outputs = p.out.dtype.compute, filters[-1]
    x, y = p.operands[0], p.dense(p.operands[1], compute)
    if groups == 1 and shapes.is_plain(w):
        _plain(p, x, Source(y.base, y.layout.reshape((w.channels, outputs))), w)
        return
    x, out = p.dense(x, compute), p.target(compute)
    ready = _is_ready(p, w, y)
    p.fill([out], *_cut(out, x, y, *_windows(w, outputs, groups, compute, ready=ready), fixed=ready))
    p.give(out)


def _is_ready(p: Placer, w: Geometry, filters: Source) -> bool:
    """Whether filters stay the same, so that they may be packed before a loop or many runs."""
    p.packs(filters, w.places, dm.numel(filters.layout.shape))
    return p.is_fixed(filters) or p.is_steady(filters)


def _plain(p: Placer, x: Source, filters: Source, w: Geometry) -> None:
    """Each pixel by a matrix of filters: one product of all pixels, or where channels lie before the pixels, in `x` or
    in what reads the result, a product for each image, so that nothing is turned."""
    compute, rank = p.out.dtype.compute, len(p.out.dims)
    first = (0, rank - 1, *range(1, rank - 1))
    images, *places, outputs = p.out.dims
    pixels = dm.numel(places)
    turned = _pixels(x, pixels) if x.base.dtype is compute and _is_many(pixels) else None
    if turned is not None and p.out.dtype is compute and p.wanted_order() == first:
        out = g.Value((images, outputs, *places), compute)
        p.product(out, structured_products.transposed(filters), structured_products.transposed(turned),
                  contiguous((images, outputs, pixels)))
        p.give(out, contiguous(out.dims).transpose((0, *range(2, rank), 1)))
        return
    out = p.target(compute)
    if turned is not None and not x.layout.is_dense():
        p.product(out, turned, filters, contiguous((images, pixels, outputs)))
    else:
        x = p.dense(x, compute)
        p.product(out, Source(x.base, x.layout.reshape((w.places, x.layout.shape[-1]))), filters)
    p.give(out)


def _pixels(x: Source, pixels: DimLike) -> Source | None:
    """Images as matrices of pixels by channels, where either are neighbours; else None."""
    try:
        layout = x.layout.reshape((x.layout.shape[0], pixels, x.layout.shape[-1]))
    except NotAView:
        return None
    return Source(x.base, layout) if 1 in layout.strides[1:] else None


def _is_many(pixels: DimLike) -> bool:
    """Whether an image has so many pixels that its product fills vectors of them."""
    return isinstance(pixels, Dim) or pixels >= _FEW_PIXELS


def _windows(w: Geometry, outputs: int, groups: int, dtype: DType, *where: Any, ready: bool) -> list[shapes.Cut]:
    """A convolution by filters, `where` saying how they and the places lie: see `conv_shapes.forward`, also for
    `ready`."""
    lying, pixels = where or (None, None)
    operands = (w, outputs, groups, dtype, lying, pixels, _threads())
    if narrow.suits(w, outputs, groups, dtype):
        return [narrow.forward(*operands)]
    if lines.suits(w, outputs, groups, dtype):
        cut = lines.forward(*operands)
        return [cut] if shapes.padded(w) is None else [cut, shapes.forward(*operands, unless=True)]
    if inside.suits(w, outputs, groups, dtype):
        return [inside.forward(*operands), shapes.forward(*operands, unless=True)]
    return [shapes.forward(*operands, ready=ready)]


def _input_grad(p: Placer, w: Geometry, filters: tuple[int, ...], groups: int) -> None:
    compute, outputs = p.out.dtype.compute, filters[-1]
    ct, y = p.operands[0], p.dense(p.operands[1], compute)
    if groups == 1 and shapes.is_plain(w):
        turned = structured_products.transposed(Source(y.base, y.layout.reshape((w.channels, outputs))))
        _plain(p, ct, turned, w)
        return
    ct = p.dense(ct, compute)
    phases = shapes.backward(w, outputs)
    assert phases is not None  # else it would not have been placed here
    every = len(phases) == math.prod(w.strides)  # else no tap falls on some pixels
    out = p.target(compute) if every else p.zeros(compute)
    runs: list[Run] = []
    ready = _is_ready(p, w, y)
    for phase in phases:
        lying, pixels = shapes.turned(w, outputs, groups, phase), (w.sizes, phase.first, phase.strides)
        cuts = _windows(phase.geometry, w.channels, groups, compute, lying, pixels, ready=ready)
        runs += _cut(out, ct, y, *cuts, fixed=ready)
    p.fill([out], *runs)
    p.give(out)


def _filter_grad(p: Placer, w: Geometry, filters: tuple[int, ...], groups: int) -> None:
    compute, outputs = p.out.dtype.compute, filters[-1]
    x, ct = (p.dense(s, compute) for s in p.operands)
    count = shapes.shares(w, outputs, groups)
    in_groups = grouped.suits(w, outputs, groups, compute)
    if not in_groups:
        x, w = _framed(p, x, w)
    out = p.target(compute)
    single = _number(count) and count == 1
    parts = out if single else g.Value((count, *filters), compute)
    of = grouped if in_groups else lines if lines.suits_filters(w, outputs, groups, compute) else shapes
    p.fill([parts], *_cut(parts, x, ct, of.filters(w, outputs, groups, count, compute, _threads())))
    if not single:
        size = math.prod(filters)
        p.fill([out], Run(p.kernel(convolution.add_up, compute), [out, parts, count, size], size, count))
    p.give(out)


def _number(size: DimLike) -> bool:
    return not isinstance(size, Dim)


def _planned(x: Matrices, dtype: DType, often: bool = False, rows: int | None = None,
             ready: bool = False) -> products.ProductPlan:
    """The plan of a product; `often`, `rows` and `ready` as for `products.plan`."""
    flat = [x.m, x.n, x.k, *x.a, *x.b, x.ldc, *[w for d in x.batch for w in d]]
    if not any(isinstance(v, Dim) for v in flat):
        if 0 in (x.m, x.n) or any(d[0] == 0 for d in x.batch):
            return products.ProductPlan("tall", False, 0, (0,) * gemm.HEADER, 0, 0, 0)
        return products.plan(x, dtype, _threads(), often, rows, ready)
    # Units for typical sizes; the first stride of a row, and whether columns are neighbours, are known or assumed not.
    def typical(v: DimLike) -> int:
        return _TYPICAL if isinstance(v, Dim) else v

    beside = x.b[1] if _number(x.b[1]) else 2
    wide = max(typical(x.n), 2)  # a single column would be planned as a row, for another kernel
    guess = Matrices(max(typical(x.m), 2), wide, typical(x.k), (typical(x.k), 1), (wide, beside), wide)
    known = not x.batch and _number(x.n) and _number(x.k) and 0 not in (x.n, x.k)
    often, ready = often and known, ready and known
    plan = products.plan(guess, dtype, _threads(), often, ready=ready)
    shape = gemm.tiling(dtype)
    columns, mode = gemm.panel_width(shape, False) * 4, plan.integers[0]
    if _number(x.n):
        columns = plan.integers[10]
    packs, room = (plan.packs, plan.room) if (often or ready) and x.n > 1 else (0, 0)
    if mode == gemm.PACKED and not packs:
        mode = gemm.HERE
    count, rows = dm.numel([d[0] for d in x.batch]), rows or shape.tall * 4
    integers = (mode, x.m, x.n, x.k, x.ldc, *x.a, *x.b, rows, columns, len(x.batch),
                *(w for d in x.batch for w in d))
    total = count * dm.ceil_div(x.m, rows) * dm.ceil_div(x.n, columns)
    return products.ProductPlan("tall", False, total, integers, packs, room, total)


def _threads() -> int:
    """How many threads a product is planned for."""
    wanted = target.current().threads
    return threads.get_num_threads() if wanted is None else wanted


def _weight(x: Matrices) -> DimLike:
    """Simple operations of a unit of typical size."""
    shape = 56 * min(x.n, 128) if _number(x.n) else 56 * 128
    return shape * x.k // 16 + 1


def _kernel(dtype: DType, name: str) -> Library:
    return Library(("gemm", dtype.name, name))
