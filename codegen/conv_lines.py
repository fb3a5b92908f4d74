"""`lines`, the kernel of convolutions of several images whose outputs fill one vector at most; its arguments are those
of `conv_lines_shapes.py`.

A tile with one vector of outputs loads an element of a pixel for each multiply-add, which is all that a processor can
load. So the rows of a tile are the same line of several images, and each row keeps the sums of as many neighbouring
places as a window has taps along the line. The element of a pixel is loaded once for all of them, times as many rows of
filters, which serve all images. From pixel to pixel the sums move on by one place: a sum meets its taps in their order.

All rows have the same lines of a window inside of their images, and pixels outside are left out, so that nothing has to
be copied to lay zeros around the images.
"""

from __future__ import annotations

import functools

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from .conv_lines_shapes import WORDS, heights
from .conv_shapes import panel_size, symbol
from .conv_tile import are_zeros, arguments, taps_inside, zeros
from .gemm_shapes import Tiling, panel_width
from .gemm_tile import multiply_add, row_at
from .loop import FunctionBuilder, Kernel, LoopBuilder, LoopFunction
from .loop_sizes import parted, share
from .value_types import address, vector

__all__ = ["lines"]


def lines(dtype: DType, shape: Tiling, taps: int) -> Kernel:
    """The kernel for windows with so many taps along a line."""
    return _ForwardLines(dtype, shape, taps).recorded()


class _ForwardLines:
    """The kernel being recorded; `v` are its arguments."""

    def __init__(self, dtype: DType, shape: Tiling, taps: int) -> None:
        self.dtype, self.taps = dtype, taps
        self.width, self.size = panel_width(shape, False), panel_size(shape)
        self.b = b = LoopBuilder(symbol(f"lines_{taps}", dtype))
        self.v = arguments(b, dtype, WORDS)
        self.zeros = zeros(b, dtype, shape)
        self.tiles = [(rows, _LineTile(shape, dtype, rows, taps).recorded()) for rows in heights(shape, taps)]
        self.image = self.v.size_z * self.v.size_y * self.v.size_x * self.v.channels

    def recorded(self) -> Kernel:
        """The finished kernel."""
        b, v = self.b, self.v
        finite = are_zeros(b, self.dtype, b.at(v.b, v.flags * self.size), v.flags)
        with b.for_(b.start, b.select(finite, b.stop, b.start)) as unit:
            rest, run = parted(b, unit, v.boxes_x)
            rest, y = parted(b, rest, v.out_y)
            box, z = parted(b, rest, v.out_z)
            first = box * v.box_n
            end = first + b.minimum(v.images - first, v.box_n)
            done = b.local(first)
            for rows, tile in self.tiles:
                with b.for_(done.get(), end - (rows - 1), rows) as n:
                    self.run(tile, n, (z, y), share(b, run, v.out_x, v.boxes_x))
                    done.set(n + rows)
        return b.finish()

    def run(self, tile: LoopFunction, n: Scalar, line: tuple[Scalar, Scalar], places: tuple[Scalar, Scalar]) -> None:
        """Some places of a line, from the first to the one after the last, of the images from number `n` on."""
        b, v = self.b, self.v
        (z, y), (first, last) = line, places
        corner = z * v.stride_z - v.before_z, y * v.stride_y - v.before_y
        x = b.at(v.x, n * self.image + (corner[0] * v.size_y + corner[1]) * v.size_x * v.channels)
        out = b.at(v.out, n * v.to_n + z * v.to_z + y * v.to_y + first * v.to_x)
        fresh = b.local(b.const(True, dt.bool_))

        def invoke(at_z: Scalar | int, at_y: Scalar | int, inner: Scalar | int) -> None:
            begins = fresh.get()
            old = (b.select(begins, b.at(self.zeros, 0), out), b.select(begins, 0, v.to_n),
                   b.select(begins, 0, v.to_x))
            pixels = b.at(x, (at_z * v.step_z * v.size_y + at_y * v.step_y) * v.size_x * v.channels)
            filters = b.at(v.b, (at_z * v.taps_y + at_y) * (v.inner * (self.taps * self.width)))
            b.invoke(tile, pixels, self.image, v.channels, first - v.before_x, v.size_x, inner, filters,
                     v.inner * self.width, *old, out, v.to_n, v.to_x, last - first, v.n)

        with b.for_(*taps_inside(b, corner[0], v.taps_z, v.step_z, v.size_z)) as at_z, \
                b.for_(*taps_inside(b, corner[1], v.taps_y, v.step_y, v.size_y)) as at_y:
            invoke(at_z, at_y, v.inner)
            fresh.set(b.const(False, dt.bool_))
        with b.if_(fresh.get()):  # no line of the window lies inside
            invoke(b.const(0, dt.int64), b.const(0, dt.int64), 0)


class _LineTile:
    """The micro-kernel `(x, x_n, x_x, first, size, inner, b, tap, old, old_n, old_x, out, to_n, to_x, run, n)`.

    It goes along a run of places and writes old + products with one line of filters to `out`. The lines of pixels begin
    at `x`, those of each image `x_n` after the one's before, its pixels, of which there are `size`, `x_x` apart. The
    window of the first place begins at pixel `first`. Of each pixel it takes `inner` elements; the filters of a tap lie
    `tap` elements after those of the tap before. `n` columns are written.
    """

    def __init__(self, shape: Tiling, dtype: DType, rows: int, taps: int) -> None:
        self.rows, self.taps, self.lanes, self.width = rows, taps, shape.lanes, panel_width(shape, False)
        self.f = f = FunctionBuilder(f"lines_{rows}x{taps}")
        number = functools.partial(f.parameter, dtype=dt.int64)
        memory = functools.partial(f.parameter, dtype=address(dtype))
        self.x, self.x_n, self.x_x, self.first, self.pixels = memory("x"), *map(number, ("x_n", "x_x", "first", "size"))
        self.inner, self.filters, self.tap = number("inner"), memory("b"), number("tap")
        old, self.old_n, self.old_x = memory("old"), number("old_n"), number("old_x")
        out, self.to_n, self.to_x = memory("out"), number("to_n"), number("to_x")
        self.run, self.mask = number("run"), f.first(number("n"), self.lanes)
        self.old, self.out, self.pixel = f.local(old), f.local(out), f.local(self.first)
        zero = f.const(0.0, vector(dtype, self.lanes))
        self.sums = [[f.local(zero) for _ in range(taps)] for _ in range(rows)]  # of the place that comes last first

    def recorded(self) -> LoopFunction:
        """The finished function."""
        for tap in range(1, self.taps):
            self.enter()
            self.multiply(range(tap))
            self.move_on()
        with self.f.for_(self.run - (self.taps - 1), 0, -1):
            self.enter()
            self.multiply(range(self.taps))
            self.leave()
            self.move_on()
        for tap in range(1, self.taps):
            self.multiply(range(tap, self.taps))
            self.leave()
            self.move_on()
        return self.f.finish()

    def enter(self) -> None:
        """Begins the sums of one more place."""
        here = self.old.get()
        for row, sums in enumerate(self.sums):
            sums[0].set(self.f.load(row_at(self.f, here, self.old_n, row), 0, self.lanes, self.mask))
        self.old.set(self.f.at(here, self.old_x))

    def multiply(self, taps: range) -> None:
        """Adds the products of a pixel and some taps, if it is one of the images."""
        f, pixel = self.f, self.pixel.get()
        count = f.select(f.and_(f.le(0, pixel), f.lt(pixel, self.pixels)), self.inner, 0)
        at_x, at_b = f.local(f.at(self.x, pixel * self.x_x)), f.local(self.filters)
        with f.for_(count, 0, -1):
            here, right = at_x.get(), at_b.get()
            of_taps = [f.load(row_at(f, right, self.tap, tap), 0, self.lanes) for tap in taps]
            for row, sums in enumerate(self.sums):
                left = f.splat(f.load(row_at(f, here, self.x_n, row), 0), self.lanes)
                for tap, filters in zip(taps, of_taps, strict=True):
                    sums[tap].set(multiply_add(f, left, filters, sums[tap].get()))
            at_x.set(f.at(here, 1))
            at_b.set(f.at(right, self.width))
        self.pixel.set(pixel + 1)

    def leave(self) -> None:
        """Writes the sums of the place that has had all taps."""
        here = self.out.get()
        for row, sums in enumerate(self.sums):
            self.f.store(row_at(self.f, here, self.to_n, row), 0, sums[-1].get(), self.mask)
        self.out.set(self.f.at(here, self.to_x))

    def move_on(self) -> None:
        """Has each place be the one before."""
        for sums in self.sums:
            for cell, value in zip(sums[:0:-1], [cell.get() for cell in sums[-2::-1]], strict=True):
                cell.set(value)
