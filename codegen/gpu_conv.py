"""Convolutions and their gradients on a GPU: kernels that compute them as products, a tile at a time.

Windows of images are the rows, or for the gradient of filters the columns, of a matrix that is nowhere laid out: its
elements are fetched from the images as tiles need them, zeros where a window reaches beyond an image (`gpu_tile.py`).
The order of additions is that of every convolution (`docs/numerics.md`). Where every channel has filters of its own, a
thread computes one element of the result.

Which runs an op becomes is `gpu_lowerings.py`'s affair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from .gemm_shapes import BLOCK
from .gpu_gemm import OUTER, Finishing, MatrixLines, store_row, store_tile, team_builder
from .gpu_mma import WarpShape, tile_product
from .gpu_operand import NONE, Beginnings, Elements, elements_of
from .gpu_tile import TilePart, TileShape
from .kernels.windows import Window
from .loop import Cell, Kernel, LoopBuilder, Pointer, TeamBuilder
from .loop_sizes import covering, parted, share

__all__ = ["forward", "filters", "depthwise", "depthwise_input_grad", "depthwise_filter_grad"]

_OUTSIDE = -(1 << 40)  # a coordinate that is in no image


class _Begun(NamedTuple):
    """A window's place, or a tap's: where its image or its channel begins, and its coordinates in the image. Of what
    there is not, the first coordinate is in no image."""

    base: Scalar
    at: tuple[Scalar, ...]
    line: Scalar


class _ImageLines:
    """Elements of images under windows, as lines of a product.

    `window` is how many taps there are along each axis; `inner` channels of each pixel, from `base` on, are seen.
    """

    def __init__(self, b: TeamBuilder, elements: Elements, w: Window, window: Sequence[int], inner: Scalar,
                 base: Scalar, vectors: bool) -> None:
        self.b, self.elements, self.w, self.window, self.inner, self.base = b, elements, w, window, inner, base
        self.lanes = elements.lanes
        self.near: Scalar | None = None
        if vectors:
            self.near = elements.near(base)

    def over(self, top: Scalar, count: Scalar, end: Scalar) -> None:
        """Says of which lines a tile is: from line `top` on, of `count` in all, of inner indices below `end`."""
        self.top, self.count, self.end = top, count, end

    def whole(self, k: Scalar, depth: int) -> Scalar | None:
        """Whether the slab at `k` can be loaded by vectors."""
        return None if self.near is None else self.b.and_(self.near, self.b.le(k + depth, self.end))

    def tap(self, k: Scalar) -> tuple[list[Scalar], Scalar]:
        """The distance of an element of a window from its first tap, along each axis, and its channel."""
        b = self.b
        tap, channel = parted(b, k, self.inner)
        distances = []
        for axis in (2, 1, 0):
            if axis:
                whole = b.bitcast(b.idiv(b.bitcast(tap, dt.uint64), self.window[axis]), dt.int64)
                tap, number = whole, tap - whole * self.window[axis]
            else:
                number = tap
            distances.append(number * self.w.dilations[axis])
        return distances[::-1], channel

    def place(self, number: Scalar) -> tuple[Scalar, list[Scalar]]:
        """The first element of a place's image, and the pixel of its first tap."""
        at = []
        for axis in (2, 1, 0):
            number, o = parted(self.b, number, self.w.outputs[axis])
            at.append(o * self.w.strides[axis] - self.w.before[axis])
        z, y, x = self.w.sizes
        return self.base + number * (z * y * x * self.w.channels), at[::-1]

    def pixel(self, begun: _Begun, moved: Sequence[Scalar], base: Scalar) -> tuple[Scalar, Scalar]:
        """The first element of a pixel so far from what is begun, and whether it is in the image."""
        b = self.b
        inside, number = b.const(True, dt.bool_), b.const(0, dt.int64)
        for start, by, size in zip(begun.at, moved, self.w.sizes, strict=True):
            i = start + by
            inside = b.and_(inside, b.and_(b.ge(i, 0), b.lt(i, size)))
            number = number * size + i
        return base + number * self.w.channels, inside

    def loaded(self, at: Scalar, inside: Scalar) -> list[Scalar]:
        """A vector, or zeros outside of the image."""
        b = self.b
        cells = [b.local(0, self.elements.compute) for _ in range(self.lanes)]
        with b.if_(inside):
            for cell, value in zip(cells, self.elements.vector(at), strict=True):
                cell.set(value)
        return [cell.get() for cell in cells]


class _WindowLines(_ImageLines):
    """Windows, one a line, by the elements of a window (`gpu_tile.Lines`)."""

    along = True

    def begin(self, line: Scalar, further: int) -> _Begun:
        """Where the window of a line begins."""
        number = self.top + line + further
        base, (z, y, x) = self.place(number)
        return _Begun(base, (self.b.select(self.b.lt(number, self.count), z, _OUTSIDE), y, x), number)

    def vector(self, begun: _Begun, k: Scalar) -> list[Scalar]:
        """Neighbouring channels of a tap."""
        moved, channel = self.tap(k)
        at, inside = self.pixel(begun, moved, begun.base + channel)
        return self.loaded(at, inside)

    def element(self, begun: _Begun, lane: int, k: Scalar, into: Cell) -> None:
        """One element, if there is one and it is no padding."""
        b = self.b
        with b.if_(b.lt(k + lane, self.end)):
            moved, channel = self.tap(k + lane)
            at, inside = self.pixel(begun, moved, begun.base + channel)
            with b.if_(inside):
                into.set(self.elements.element(at))


class _TapLines(_ImageLines):
    """The elements of windows, one a line, by the numbers of the windows (`gpu_tile.Lines`)."""

    along = False

    def begin(self, line: Scalar, further: int) -> _Begun:
        """How far the tap of a line is from the first."""
        number = self.top + line + further
        return self._of(number)

    def _of(self, number: Scalar) -> _Begun:
        (z, y, x), channel = self.tap(number)
        return _Begun(channel, (self.b.select(self.b.lt(number, self.count), z, _OUTSIDE), y, x), number)

    def vector(self, begun: _Begun, k: Scalar) -> list[Scalar]:
        """Neighbouring channels of a tap, in window `k`."""
        base, start = self.place(k)
        at, inside = self.pixel(begun, start, base + begun.base)
        return self.loaded(at, inside)

    def element(self, begun: _Begun, lane: int, k: Scalar, into: Cell) -> None:
        """One element, if there is one and it is no padding."""
        b = self.b
        with b.if_(b.lt(k, self.end)):
            base, start = self.place(k)
            own = self._of(begun.line + lane)
            at, inside = self.pixel(own, start, base + own.base)
            with b.if_(inside):
                into.set(self.elements.element(at))


def forward(dtype: DType, shape: TileShape | WarpShape, window: tuple[int, ...], vectors: bool, parts: bool,
            epilogue: Finishing | None = None, beginnings: Beginnings = NONE) -> Kernel:
    """Convolves images by filters, a tile of places by outputs at a time; the range numbers groups, parts of the
    windows' elements, and tiles by places and outputs.

    args: addresses of the result, the images and the filters, for each group a matrix that has the elements of a window
    as rows; what `Window` reads; how many windows and groups there are; outputs and channels of a group; the steps in
    the filters from row to row and from group to group; in the result from image to image and along each axis; if it is
    one of parts, their number, and the result is a dense [part, place, output], of one group.

    Args:
        dtype: float32 or float64.
        window: its sizes.
        vectors: whether channels of a tap can be loaded by vectors: they and those of a group fill whole ones.
        parts: whether each tile is of one block of a window's elements alone.
        epilogue: what goes on with the result; its arguments follow.
        beginnings: what operands are computed from; their arguments come before an epilogue's.
    """
    name = f"convolution {dtype.short} {shape.rows}x{shape.columns} {window} {vectors}{' parts' * parts}"
    name += " by tensor cores" * isinstance(shape, WarpShape)
    b = team_builder(name, shape.threads, epilogue, beginnings)
    out, x, f = b.pointer("out", dtype), b.pointer("x", dtype), b.pointer("f", dtype)
    w = Window(b)
    places, groups, columns, inner, step_f, group_f = (b.integer() for _ in range(6))
    steps = [b.integer() for _ in range(4)]
    count = b.integer() if parts else None
    of_x, of_f = (elements_of(b, operand, dtype, beginnings) for operand in (x, f))
    elements = inner * (window[0] * window[1] * window[2])
    wide, high = covering(b, columns, shape.columns), covering(b, places, shape.rows)
    with b.for_(b.start, b.stop) as number:
        rest, across = parted(b, number, wide)
        rest, down = parted(b, rest, high)
        row, column = down * shape.rows, across * shape.columns
        first, end, group = b.const(0, dt.int64), elements, rest
        if count is not None:
            first, end = rest * BLOCK, b.minimum(rest * BLOCK + BLOCK, elements)
            group = b.const(0, dt.int64)
        of_windows = _WindowLines(b, of_x, w, window, inner, group * inner, vectors)
        of_windows.over(row, places, end)
        of_filters = MatrixLines(b, of_f, OUTER, group * group_f, column, columns, (b.const(1, dt.int64), step_f), end,
                                 shape.columns)
        part = tile_product(b, shape, dtype, dtype, of_windows, of_filters, first, end)
        if parts:
            store_tile(b, out, part, rest * (places * columns), (row, column), (places, columns), columns)
        elif epilogue is None or epilogue.kept:
            _store_places(b, out, part, group * columns, w, steps, (row, column), (places, columns))
        if epilogue is not None:
            epilogue.tile(part, b.const(0, dt.int64), (row, column), (places, columns), group * columns)
    return b.finish()


def _store_places(b: TeamBuilder, out: Pointer, part: TilePart, base: Scalar, w: Window, steps: Sequence[Scalar],
                  tile: tuple[Scalar, Scalar], sizes: tuple[Scalar, Scalar]) -> None:
    """Writes a thread's part of a tile, whose rows are places: `steps` are those from image to image and along each
    axis; all else is as for `store_tile`."""
    (top, left), (height, width) = tile, sizes
    near = b.aligned(b.at(out, base), out.dtype.size * part.together)
    for step in steps:
        near = b.and_(near, b.eq(b.and_(step, part.together - 1), 0))
    for row, values in zip(part.rows, part.values, strict=True):
        place = top + row
        with b.if_(b.lt(place, height)):
            at = base
            for axis in (2, 1, 0):
                place, o = parted(b, place, w.outputs[axis])
                at = at + o * steps[axis + 1]
            store_row(b, out, part, values, at + place * steps[0], left, width, near)


def filters(dtype: DType, shape: TileShape | WarpShape, window: tuple[int, ...], vectors: bool,
            beginnings: Beginnings = NONE) -> Kernel:
    """The gradient for filters, a tile of a window's elements by outputs at a time; the range numbers shares, groups,
    and tiles by elements and outputs.

    args: addresses of the result, [share, tap, channel of a group, output], of the images and of the outputs' gradient;
    what `Window` reads; how many windows, shares and groups there are; outputs and channels of a group.

    Args:
        dtype, window, vectors, beginnings: as for `forward`.
    """
    name = f"convolution filters {dtype.short} {shape.rows}x{shape.columns} {window} {vectors}"
    name += " by tensor cores" * isinstance(shape, WarpShape)
    b = team_builder(name, shape.threads, None, beginnings)
    out, x, y = b.pointer("out", dtype), b.pointer("x", dtype), b.pointer("y", dtype)
    w = Window(b)
    places, shares, groups, columns, inner = (b.integer() for _ in range(5))
    of_x, of_y = (elements_of(b, operand, dtype, beginnings) for operand in (x, y))
    elements, outputs = inner * (window[0] * window[1] * window[2]), groups * columns
    wide, high = covering(b, columns, shape.columns), covering(b, elements, shape.rows)
    with b.for_(b.start, b.stop) as number:
        rest, across = parted(b, number, wide)
        rest, down = parted(b, rest, high)
        own, group = parted(b, rest, groups)
        row, column = down * shape.rows, across * shape.columns
        first, end = share(b, own, places, shares)
        of_windows = _TapLines(b, of_x, w, window, inner, group * inner, vectors)
        of_windows.over(row, elements, end)
        of_outputs = MatrixLines(b, of_y, OUTER, group * columns, column, columns, (b.const(1, dt.int64), outputs), end,
                                 shape.columns)
        part = tile_product(b, shape, dtype, dtype, of_windows, of_outputs, first, end)
        store_tile(b, out, part, own * (elements * outputs) + group * columns, (row, column), (elements, columns),
                   outputs)
    return b.finish()


def depthwise(dtype: DType) -> Kernel:
    """Depthwise convolution for each element of the result in the range.

    args: as of `convolution.depthwise`: addresses of the result, the input and the filters [taps, channels,
    multiplier]; the window; the multiplier.
    """
    b = LoopBuilder(f"depthwise by elements {dtype.short}")
    out, x, f = b.pointer("out", dtype), b.pointer("x", dtype), b.pointer("w", dtype)
    w = Window(b)
    multiplier = b.integer()
    width = w.channels * multiplier
    with b.for_(b.start, b.stop) as i:
        place, o = parted(b, i, width)
        channel, _ = parted(b, o, multiplier)
        image, at = w.split(place, w.outputs)
        total = b.local(0, dtype)
        with w.taps(image, at) as (tap, pixel):
            total.set(total.get() + b.load(x, pixel * w.channels + channel) * b.load(f, tap * width + o))
        b.store(out, i, total.get())
    return b.finish()


def depthwise_input_grad(dtype: DType) -> Kernel:
    """The gradient of `depthwise` for each element of the input in the range.

    args: addresses of the result, `ct` and the filters; the window; the multiplier.
    """
    b = LoopBuilder(f"depthwise_input_grad by elements {dtype.short}")
    out, ct, f = b.pointer("out", dtype), b.pointer("ct", dtype), b.pointer("w", dtype)
    w = Window(b)
    multiplier = b.integer()
    width = w.channels * multiplier
    with b.for_(b.start, b.stop) as i:
        pixel, channel = parted(b, i, w.channels)
        image, at = w.split(pixel, w.sizes)
        total = b.local(0, dtype)
        with w.places(image, at) as (tap, place, _), b.for_(0, multiplier) as m:
            o = channel * multiplier + m
            total.set(total.get() + b.load(ct, place * width + o) * b.load(f, tap * width + o))
        b.store(out, i, total.get())
    return b.finish()


def depthwise_filter_grad(dtype: DType) -> Kernel:
    """The gradient of `depthwise` for its filters, added up in float64; the range counts their elements.

    args: addresses of the float64 result, the input and `ct`; the window; the number of images; the multiplier.
    """
    b = LoopBuilder(f"depthwise_filter_grad by elements {dtype.short}")
    out, x, ct = b.pointer("out", dt.float64), b.pointer("x", dtype), b.pointer("ct", dtype)
    w = Window(b)
    images, multiplier = b.integer(), b.integer()
    width = w.channels * multiplier
    with b.for_(b.start, b.stop) as i:
        tap, o = parted(b, i, width)
        channel, _ = parted(b, o, multiplier)
        _, k = w.split(tap, w.window)
        total = b.local(0.0, dt.float64)
        with b.for_(0, images * w.outputs[0] * w.outputs[1] * w.outputs[2]) as r:
            image, at = w.split(r, w.outputs)
            inside, pixel = w.pixel(image, at, k)
            with b.if_(inside):
                value = b.cast(b.load(x, pixel * w.channels + channel), dt.float64)
                total.set(total.get() + value * b.cast(b.load(ct, r * width + o), dt.float64))
        b.store(out, i, total.get())
    return b.finish()
