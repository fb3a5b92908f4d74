"""Structured ops that programs run through library kernels: what the eager drivers plan, planned for programs.

Sizes may be unknown here. Where a plan needs numbers it is made for typical ones; results do not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from twofold.codegen import gemm_shapes as gemm
from twofold.codegen import target
from twofold.codegen.fusion import Source
from twofold.codegen.kernels import im2col
from twofold.codegen.kernels import products as integer_products
from twofold.codegen.kernels.windows import Geometry
from twofold.codegen.layout import Layout, contiguous, merged
from twofold.codegen.library import Library, Run, Within, Work
from twofold.codegen.structured import Placer, lowering
from twofold.codegen.structured_windows import depthwise, window_of
from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike

from . import products, threads

__all__: list[str] = []  # importing it registers the lowerings

_TYPICAL = 64  # rows of a matrix of unknown size


# -- matrix products ----------------------------------------------------------------------------------
@lowering("matmul", handles=lambda node: len(node.outputs[0].dims) <= gemm.MAX_BATCH_RANK)
def _matmul(p: Placer) -> None:
    dtype, attrs = p.out.dtype, p.attrs
    a, b = (_transposed(s) if attrs[f"transpose_{name}"] or attrs[f"adjoint_{name}"] else s
            for s, name in zip(p.operands, "ab", strict=True))
    if dtype.is_integer:
        _integer_product(p, a, b)
    elif dtype.is_complex:
        _complex_product(p, a, b)
    else:
        out = p.target(dtype.compute)
        p.run([out], *product(p, out, 0, a, b, p.out.dims[:-2]))
        p.give(out)


def _transposed(source: Source) -> Source:
    return Source(source.base, _turned(source.layout))


def _turned(layout: Layout) -> Layout:
    rank = len(layout.shape)
    return layout.transpose((*range(rank - 2), rank - 1, rank - 2))


def product(p: Placer, out: g.Value, begin: DimLike, left: Source, right: Source,
            batch: Sequence[DimLike] = ()) -> list[Run]:
    """The runs that put the products of two sources of real floats into `out`, row-major from element `begin` on.

    Sources have any strides, and broadcast to `batch`; `out` is of their compute type.
    """
    dtype = left.base.dtype
    left, right = p.in_memory(left), p.in_memory(right)
    m, n = left.layout.shape[-2], right.layout.shape[-1]
    a = left.layout.broadcast_to((*batch, *left.layout.shape[-2:]))
    b = right.layout.broadcast_to((*batch, *right.layout.shape[-2:]))
    dims = merged(batch, [a.strides[:-2], b.strides[:-2]])
    x = products.merged(products.Matrices(m, n, a.shape[-1], a.strides[-2:], b.strides[-2:], n,
                                          tuple((d, *s) for d, s in dims), m * n))
    found = _planned(x, dtype)
    first, second = p.at(left), p.at(right)
    if found.swapped:
        first, second = second, first
    target: Any = Within(out, begin)
    runs = []
    if found.packs:
        work = Work(dtype.compute, found.room)
        runs.append(Run(_kernel(dtype, "pack_b"), [work, first, second, *found.integers], found.packs,
                        max(found.room // 8 // found.packs, 1)))
        second = work  # type: ignore[assignment]
    weight = max(found.work // found.total, 1) if _number(found.work) and _number(found.total) and found.total else \
        _weight(x)
    return [*runs, Run(_kernel(dtype, found.kernel), [target, first, second, *found.integers], found.total, weight)]


def _complex_product(p: Placer, a: Source, b: Source) -> None:
    """Four real products of the parts, as eager execution adds them up."""
    half = p.out.dtype.real_dtype
    flips = [p.attrs["adjoint_a"], p.attrs["adjoint_b"]]
    parts = [(p.copy(s, half, lambda e, x: e.real(x)),
              p.copy(s, half, (lambda e, x: -e.imag(x)) if flip else (lambda e, x: e.imag(x))))
             for s, flip in zip((a, b), flips, strict=True)]
    made = []
    for i, j in ((0, 0), (1, 1), (0, 1), (1, 0)):
        out = g.Value(p.out.dims, half)
        p.run([out], *product(p, out, 0, parts[0][i], parts[1][j], p.out.dims[:-2]))
        made.append(Source(out, contiguous(out.dims)))
    p.item(made, p.out, lambda e, rr, ii, ri, ir: e.complex(rr - ii, ri + ir))


def _integer_product(p: Placer, a: Source, b: Source) -> None:
    *batch, m, n = p.out.dims
    a, b = (p.dense(Source(s.base, s.layout.broadcast_to((*batch, *s.layout.shape[-2:])))) for s in (a, b))
    inner = a.layout.shape[-1]
    arguments = [p.out, p.at(a), p.at(b), m, n, inner]
    p.run([p.out], Run(integer_products.integers(p.out.dtype), arguments, dm.numel(p.out.dims[:-1]), n * inner + 1))


# -- convolution --------------------------------------------------------------------------------------
_LAID_OUT = 32 << 20  # as for eager execution: where gradients of filters are added up from shares, they are the same


def _convolves(node: g.Node) -> bool:
    """Whether the filter and the channels are known, and for a gradient of filters how the images are shared out."""
    first, second = (v.dims for v in node.inputs)
    filters = node.attrs["filter_shape"] if node.op.name == "conv_filter_grad" else second
    channels = node.attrs["input_shape"][-1] if node.op.name == "conv_input_grad" else first[-1]
    if any(isinstance(d, Dim) for d in (*filters, channels)):
        return False
    shares = node.op.name == "conv_filter_grad" and not (filters[-2] == 1 and channels > 1)
    return not (shares and any(isinstance(d, Dim) for d in (*first, *second)))


@lowering("conv", "conv_input_grad", "conv_filter_grad", handles=_convolves)
def _convolution(p: Placer) -> None:
    x, y = p.operands
    name = p.node.op.name
    filters = tuple(p.attrs["filter_shape"]) if name == "conv_filter_grad" else y.layout.shape
    image = p.out.dims if name == "conv_input_grad" else x.layout.shape
    places = {"conv": p.out.dims, "conv_input_grad": x.layout.shape}.get(name, y.layout.shape)
    w = window_of(p, image, places[1:-1], filters[:-2])
    if any(_number(d) and d == 0 for d in (*x.layout.shape, *y.layout.shape, *p.out.dims)):
        p.give(p.zeros())
        return
    groups = w.channels // filters[-2]
    if groups > 1 and filters[-2] == 1:
        depthwise(p, w, filters)
    else:
        {"conv": _forward, "conv_input_grad": _input_grad}.get(name, _filter_grad)(p, w, filters, groups)


def _is_plain(w: Geometry) -> bool:
    """Whether the windows are the pixels themselves."""
    return w.taps == 1 and w.sizes == w.outputs and w.strides == (1, 1, 1) and w.before == (0, 0, 0)


def _portions(w: Geometry, itemsize: int) -> list[tuple[DimLike, Geometry]]:
    """The images in portions whose windows fit the limit, by the number of the first; all of them where their number
    is not known."""
    one = math.prod(w.outputs) * w.taps * w.channels * itemsize
    if not (_number(one) and _number(w.images)):
        return [(0, w)]
    step = max(_LAID_OUT // max(one, 1), 1)
    return [(first, w._replace(images=min(step, w.images - first))) for first in range(0, w.images, step)]


def _patches(p: Placer, x: Source, first: DimLike, w: Geometry) -> Source:
    """The windows of images from number `first` on as rows: [places, taps * channels]."""
    offset = x.layout.offset + first * math.prod(w.sizes) * w.channels
    if _is_plain(w):
        return Source(x.base, Layout((w.places, w.channels), (w.channels, 1), offset))
    columns = g.Value((w.places, w.taps * w.channels), x.base.dtype)
    p.run([columns], Run(im2col.patches(x.base.dtype), [columns, Within(x.base, offset), *w.integers], w.places,
                         w.taps * w.channels))
    return Source(columns, contiguous(columns.dims))


def _grouped(p: Placer, columns: Source, w: Geometry, groups: int) -> Source:
    """[places, taps * channels] as [groups, places, taps * channels of the group]."""
    share = w.channels // groups
    split = columns.layout.reshape((w.places, w.taps, groups, share)).transpose((2, 0, 1, 3))
    dense = p.dense(Source(columns.base, split))
    return Source(dense.base, dense.layout.reshape((groups, w.places, w.taps * share)))


def _filter_matrices(y: Source, groups: int) -> Source:
    """Filters as [groups, taps * channels of the group, outputs of the group]."""
    shape = y.layout.shape
    split = y.layout.reshape((math.prod(shape[:-1]), groups, shape[-1] // groups))
    return Source(y.base, split.transpose((1, 0, 2)))


def _output_matrices(ct: Source, w: Geometry, groups: int) -> Source:
    """Outputs as [groups, places, outputs of the group]."""
    split = ct.layout.reshape((w.places, groups, ct.layout.shape[-1] // groups))
    return Source(ct.base, split.transpose((1, 0, 2)))


class _EachImage(NamedTuple):
    """The product of an image as arguments of a kernel that runs it (`im2col._Product`), and what runs before."""

    before: list[Run]
    arguments: list[Any]
    weight: Any


def _has_images(w: Geometry) -> bool:
    """Whether to go image by image: there are several, and windows that are laid out."""
    return not _is_plain(w) and (not _number(w.images) or w.images > 1)


def _each_image(p: Placer, w: Geometry, steps: tuple[int, int], matrix: Source, places: list[Any]) -> _EachImage:
    """A product [places, inner] by `matrix` for every image.

    Args:
        steps: the strides of the left operand. places: where C and A lie.
    """
    dtype, count = matrix.base.dtype, math.prod(w.outputs)
    inner, n = matrix.layout.shape
    x = products.Matrices(count, n, inner, steps, matrix.layout.strides, n, (), 0)
    found = _planned(x, dtype)
    if found.swapped or found.kernel != "tall":
        found = _tall(x, dtype)
    right: Any = p.at(matrix)
    before = []
    if found.packs:
        work = Work(dtype, found.room)
        before.append(Run(_kernel(dtype, "pack_b"), [work, right, right, *found.integers], found.packs,
                          max(found.room // 8 // found.packs, 1)))
        right = work
    arguments = [_kernel(dtype, "tall"), places[0], places[1], right, count * steps[0], count * n, found.total,
                 len(found.integers), *found.integers]
    return _EachImage(before, arguments, count * inner * (1 + n // 16))


def _forward(p: Placer, w: Geometry, filters: Any, groups: int) -> None:
    compute = p.out.dtype.compute
    x, y = (p.dense(s, compute) for s in p.operands)
    out, channels = p.target(compute), filters[-1]
    if groups > 1:
        grouped = g.Value((groups, w.places, channels // groups), compute)
        columns = _grouped(p, _patches(p, x, 0, w), w, groups)
        p.run([grouped], *product(p, grouped, 0, columns, _filter_matrices(y, groups), (groups,)))
        layout = contiguous(grouped.dims).transpose((1, 0, 2))
        p.give(p.copy(Source(grouped, layout)).base)
        return
    matrix = Source(y.base, y.layout.reshape((w.taps * w.channels, channels)))
    if _has_images(w):
        laid = Work(compute, w.places * w.taps * w.channels)
        each = _each_image(p, w, (w.taps * w.channels, 1), matrix, [out, laid])
        p.run([out], *each.before, Run(im2col.convolve(compute), [laid, p.at(x), *w.integers, *each.arguments],
                                       w.images, each.weight))
        p.give(out)
        return
    runs: list[Run] = []
    for first, part in _portions(w, compute.size):
        columns = _patches(p, x, first, part)
        runs += product(p, out, first * math.prod(w.outputs) * channels, columns, matrix)
    p.run([out], *runs)
    p.give(out)


def _input_grad(p: Placer, w: Geometry, filters: Any, groups: int) -> None:
    compute = p.out.dtype.compute
    ct, y = (p.dense(s, compute) for s in p.operands)
    out, row = p.target(compute), w.taps * w.channels
    if groups > 1:
        split = g.Value((groups, w.places, row // groups), compute)
        matrices = _transposed(_filter_matrices(y, groups))
        p.run([split], *product(p, split, 0, _output_matrices(ct, w, groups), matrices, (groups,)))
        share = w.channels // groups
        layout = contiguous(split.dims).reshape((groups, w.places, w.taps, share)).transpose((1, 2, 0, 3))
        columns = p.dense(Source(split, layout))
        p.run([out], _unpatches(p, out, 0, columns, w))
        p.give(out)
        return
    matrix = _transposed(Source(y.base, y.layout.reshape((row, filters[-1]))))
    if _has_images(w):
        laid = Work(compute, w.places * row)
        each = _each_image(p, w, (filters[-1], 1), matrix, [laid, p.at(ct)])
        p.run([out], *each.before, Run(im2col.convolve_back(compute), [out, laid, *w.integers, *each.arguments],
                                       w.images, each.weight))
        p.give(out)
        return
    runs: list[Run] = []
    for first, part in _portions(w, compute.size):
        offset = ct.layout.offset + first * math.prod(w.outputs) * filters[-1]
        rows = Source(ct.base, Layout((part.places, filters[-1]), (filters[-1], 1), offset))
        if _is_plain(part):
            runs += product(p, out, first * math.prod(w.sizes) * w.channels, rows, matrix)
            continue
        patches = g.Value((part.places, row), compute)
        p.run([patches], *product(p, patches, 0, rows, matrix))
        runs.append(_unpatches(p, out, first, Source(patches, contiguous(patches.dims)), part))
    p.run([out], *runs)
    p.give(out)


def _unpatches(p: Placer, out: g.Value, first: DimLike, columns: Source, w: Geometry) -> Run:
    """Adds rows up to images, from number `first` on."""
    target = Within(out, first * math.prod(w.sizes) * w.channels)
    return Run(im2col.unpatches(out.dtype), [target, p.at(columns), *w.integers], w.pixels, w.taps * w.channels)


def _filter_grad(p: Placer, w: Geometry, filters: Any, groups: int) -> None:
    compute = p.out.dtype.compute
    x, ct = (p.dense(s, compute) for s in p.operands)
    shares: list[Source] = []
    for first, part in _portions(w, compute.size):
        offset = ct.layout.offset + first * math.prod(w.outputs) * filters[-1]
        rows = Source(ct.base, Layout((part.places, filters[-1]), (filters[-1], 1), offset))
        columns = _patches(p, x, first, part)
        if groups == 1:
            made = g.Value((w.taps * w.channels, filters[-1]), compute)
            p.run([made], *product(p, made, 0, _transposed(columns), rows))
            shares.append(Source(made, contiguous(made.dims).reshape(filters)))
        else:
            made = g.Value((groups, w.taps * filters[-2], filters[-1] // groups), compute)
            left = _transposed(_grouped(p, columns, part, groups))
            p.run([made], *product(p, made, 0, left, _output_matrices(rows, part, groups), (groups,)))
            turned = p.dense(Source(made, contiguous(made.dims).transpose((1, 0, 2))))
            shares.append(Source(turned.base, turned.layout.reshape(filters)))
    total = shares[0]
    for share in shares[1:]:
        total = p.item([total, share], g.Value(filters, compute), lambda s, a, b: a + b)
    p.give(total.base, total.layout)


def _number(size: Any) -> bool:
    return not isinstance(size, Dim)


def _planned(x: products.Matrices, dtype: Any) -> products.Plan:
    flat = [x.m, x.n, x.k, *x.a, *x.b, x.ldc, x.c_batch, *[w for d in x.batch for w in d]]
    if not any(isinstance(v, Dim) for v in flat):
        if 0 in (x.m, x.n) or any(d[0] == 0 for d in x.batch):
            return products.Plan("tall", False, 0, (0,) * gemm.HEADER, 0, 0, 0)
        return products.plan(x, dtype, _threads())
    # Units for typical sizes; the first stride of a row, and whether columns are neighbours, are known or assumed not.
    def typical(v: Any) -> int:
        return _TYPICAL if isinstance(v, Dim) else v

    beside = x.b[1] if _number(x.b[1]) else 2
    wide = max(typical(x.n), 2)  # a single column would be planned as a row, for another kernel
    guess = products.Matrices(max(typical(x.m), 2), wide, typical(x.k), (typical(x.k), 1), (wide, beside), wide)
    made = products.plan(guess, dtype, _threads())
    shape = gemm.tiling(dtype)
    rows, columns, mode = shape.tall * 4, gemm.panel_width(shape, False) * 4, made.integers[0]
    if _number(x.n):
        columns = made.integers[10]
    if mode == gemm.PACKED:
        mode = gemm.HERE
    count = dm.numel([d[0] for d in x.batch])
    integers = (mode, x.m, x.n, x.k, x.ldc, *x.a, *x.b, rows, columns, x.c_batch, len(x.batch),
                *(w for d in x.batch for w in d))
    total = count * dm.ceil_div(x.m, rows) * dm.ceil_div(x.n, columns)
    return products.Plan("tall", False, total, integers, 0, 0, total)  # type: ignore[arg-type]


def _threads() -> int:
    """How many threads a product is planned for."""
    wanted = target.current().threads
    return threads.get_num_threads() if wanted is None else wanted


def _tall(x: products.Matrices, dtype: Any) -> products.Plan:
    """A plan for `tall` whatever the sizes are, of units of one tile."""
    shape = gemm.tiling(dtype)
    rows, columns = shape.tall, gemm.panel_width(shape, False)
    integers = (gemm.HERE, x.m, x.n, x.k, x.ldc, *x.a, *x.b, rows, columns, x.c_batch, 0)
    total = dm.ceil_div(x.m, rows) * dm.ceil_div(x.n, columns)
    return products.Plan("tall", False, total, integers, 0, 0, total)  # type: ignore[arg-type]


def _weight(x: products.Matrices) -> Any:
    """Simple operations of a unit of typical size."""
    shape = 56 * min(x.n, 128) if _number(x.n) else 56 * 128
    return shape * x.k // 16 + 1


def _kernel(dtype: Any, name: str) -> Library:
    return Library(("gemm", dtype.name, name))
