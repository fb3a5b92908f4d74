"""`line_filters`, the kernel of gradients for filters whose outputs fill one vector at most; its arguments are those of
`conv_lines_shapes.py`.

As in `conv_lines.py`, an element of a pixel is loaded once for all taps along a line: it is multiplied with the
outputs' gradient of as many neighbouring places, which move on from register to register. The rows of a tile are
elements of a column of a window: channels of its lines. A block of places is a few *runs* along lines, and only where
these begin stands in a table. Each sum takes the places in their order.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from .conv_lines_shapes import FILTER_WORDS, heights
from .conv_shapes import symbol
from .conv_tile import arguments, zeros
from .gemm_shapes import BLOCK, Tiling
from .gemm_tile import multiply_add
from .loop import Cell, FunctionBuilder, Kernel, LoopBuilder, LoopFunction
from .loop_sizes import covering, parted, share
from .value_types import address, vector

__all__ = ["line_filters"]


def line_filters(dtype: DType, shape: Tiling, taps: int) -> Kernel:
    """The kernel for windows with so many taps along a line."""
    return _LineFilters(dtype, shape, taps).recorded()


class _PlaceBlock(NamedTuple):
    """A block of places: how many runs it has, where the outputs' gradient of the first place lies, where the result
    does, and whether that holds nothing yet."""

    runs: Scalar
    b: Scalar
    out: Scalar
    fresh: Scalar


class _LineFilters:
    """The kernel being recorded; `v` are its arguments."""

    def __init__(self, dtype: DType, shape: Tiling, taps: int) -> None:
        self.taps = taps
        self.b = b = LoopBuilder(symbol(f"line_filters_{taps}", dtype))
        self.v = v = arguments(b, dtype, FILTER_WORDS)
        self.tiles = [(rows, _LineFiltersTile(shape, dtype, rows, taps).recorded()) for rows in heights(shape, taps)]
        self.tall = self.tiles[0][0]
        self.runs, self.zeros = b.scratch(dt.int64, 2 * BLOCK), zeros(b, dtype, shape)
        self.offsets, self.to = (b.scratch(dt.int64, self.tall) for _ in range(2))
        self.elements = v.taps_z * v.taps_y * v.inner

    def recorded(self) -> Kernel:
        """The finished kernel."""
        b, v = self.b, self.v
        with b.for_(b.start, b.stop) as unit:
            number, split = parted(b, unit, v.splits)
            first, last = share(b, number, v.places, v.shares)
            tiles = share(b, split, covering(b, self.elements, self.tall), v.splits)
            with b.for_(first, last, BLOCK) as begin:
                runs = self.table(begin, b.minimum(last - begin, BLOCK))
                block = _PlaceBlock(runs, b.at(v.b, begin * v.n), b.at(v.out, number * v.share), b.eq(begin, first))
                with b.for_(*tiles) as tile:
                    self.tile(block, tile * self.tall)
        return b.finish()

    def table(self, begin: Scalar, count: Scalar) -> Scalar:
        """Fills in the runs of so many places from number `begin` on: where its first pixel lies, and how many places
        it has. Gives their number."""
        b, v = self.b, self.v
        rest, first_x = parted(b, begin, v.out_x)
        rest, first_y = parted(b, rest, v.out_y)
        first_n, first_z = parted(b, rest, v.out_z)
        n, z, y, x, left, runs = (b.local(at) for at in (first_n, first_z, first_y, first_x, count, 0))
        with b.for_(0, BLOCK):
            b.break_(b.le(left.get(), 0))
            along = b.minimum(v.out_x - x.get(), left.get())
            at = n.get() * v.x_n + z.get() * v.x_z + y.get() * v.x_y + x.get() * v.x_x
            b.store(self.runs, runs.get() * 2, at)
            b.store(self.runs, runs.get() * 2 + 1, along)
            for cell, value in ((runs, runs.get() + 1), (left, left.get() - along), (x, 0), (y, y.get() + 1)):
                cell.set(value)
            for cell, size, above in ((y, v.out_y, z), (z, v.out_z, n)):
                with b.if_(b.eq(cell.get(), size)):
                    cell.set(0)
                    above.set(above.get() + 1)
        return runs.get()

    def tile(self, block: _PlaceBlock, first: Scalar) -> None:
        """The tiles of the elements from number `first` on, as many as the tallest one takes."""
        b = self.b
        self.list_elements(first)
        rest = b.minimum(self.elements - first, self.tall)
        done = b.local(0)
        for rows, tile in self.tiles:
            with b.for_(done.get(), rest - (rows - 1), rows) as at:
                self.invoke(tile, block, at)
                done.set(at + rows)

    def list_elements(self, first: Scalar) -> None:
        """Fills in where the elements from number `first` on lie in x and in the result."""
        b, v = self.b, self.v
        with b.for_(0, b.minimum(self.elements - first, self.tall)) as n:
            line, channel = parted(b, first + n, v.inner)
            z, y = parted(b, line, v.taps_y)
            b.store(self.offsets, n, z * v.line_z + y * v.line_y + channel)
            b.store(self.to, n, (line * self.taps * v.inner + channel) * v.n)

    def invoke(self, tile: LoopFunction, block: _PlaceBlock, at: Scalar) -> None:
        """Runs a tile of the elements that are listed from `at` on."""
        b, v = self.b, self.v
        b.invoke(tile, b.at(v.x, 0), v.x_x, b.at(self.runs, 0), block.runs, block.b,
                 b.at(self.offsets, at), b.select(block.fresh, b.at(self.zeros, 0), block.out),
                 b.select(block.fresh, b.const(0, dt.int64), -1), block.out, b.at(self.to, at), v.inner * v.n, v.n)


class _LineFiltersTile:
    """The micro-kernel `(x, x_x, runs, count, b, offsets, old, mask, out, to, tap, n)`: out = old + sums.

    There are `count` runs of places, whose gradients lie in `b` one after another; pixels are `x_x` apart. Its rows lie
    in `x` at the `offsets` from the pixels, and in `out` at those in `to`, those of the next tap `tap` further on; in
    `old` as in `out` where `mask` is -1, or all at `old` where it is 0. There are `n` columns.
    """

    def __init__(self, shape: Tiling, dtype: DType, rows: int, taps: int) -> None:
        self.taps, self.lanes = taps, shape.lanes
        self.f = f = FunctionBuilder(f"line_filters_{rows}x{taps}")
        number = functools.partial(f.parameter, dtype=dt.int64)
        memory = functools.partial(f.parameter, dtype=address(dtype))
        table = functools.partial(f.parameter, dtype=address(dt.int64))
        self.x, self.x_x, runs, self.count, b = memory("x"), number("x_x"), table("runs"), number("count"), memory("b")
        offsets, self.old, self.mask, self.out = table("offsets"), memory("old"), number("mask"), memory("out")
        to, self.tap, self.n = table("to"), number("tap"), number("n")
        self.columns = f.first(self.n, self.lanes)
        self.offsets, self.to = ([f.load(of, row) for row in range(rows)] for of in (offsets, to))
        self.runs, self.at_b = f.local(runs), f.local(b)
        zero = f.const(0.0, vector(dtype, self.lanes))
        self.sums = [[f.local(zero) for _ in range(taps)] for _ in range(rows)]
        self.held = [f.local(zero) for _ in range(taps - 1)]  # gradients of the places before, the last one first

    def recorded(self) -> LoopFunction:
        """The finished function."""
        f = self.f
        with f.for_(self.count, 0, -1):
            run = self.runs.get()
            pixel, length = f.local(f.at(self.x, f.load(run, 0))), f.load(run, 1)
            self.runs.set(f.at(run, 2))
            with f.if_(f.le(self.taps - 1, length)):
                self.along(pixel, length)
            with f.else_(), f.for_(length, 0, -1):
                self.multiply_place(pixel)
        for to, sums in zip(self.to, self.sums, strict=True):
            for tap, cell in enumerate(sums):
                at = to + self.tap * tap
                old = f.load(f.at(self.old, at & self.mask), 0, self.lanes, self.columns)
                f.store(f.at(self.out, at), 0, old + cell.get(), self.columns)
        return f.finish()

    def along(self, pixel: Cell, length: Scalar) -> None:
        """Goes along the pixels of a run of places, which are as many as registers hold at least."""
        before: list[Scalar] = []
        for _ in range(self.taps - 1):
            before.insert(0, self.gradient())
            self.multiply_pixel(pixel, 0, before)
        self.hold(before)
        with self.f.for_(length - (self.taps - 1), 0, -1):
            places = [self.gradient(), *[cell.get() for cell in self.held]]
            self.multiply_pixel(pixel, 0, places)
            self.hold(places[:-1])
        last = [cell.get() for cell in self.held]
        for tap in range(1, self.taps):
            self.multiply_pixel(pixel, tap, last[:self.taps - tap])

    def gradient(self) -> Scalar:
        """That of the next place."""
        here = self.at_b.get()
        self.at_b.set(self.f.at(here, self.n))
        return self.f.load(here, 0, self.lanes, self.columns)

    def hold(self, places: Sequence[Scalar]) -> None:
        """Keeps the gradients of places for the next pixels."""
        for cell, place in zip(self.held, places, strict=True):
            cell.set(place)

    def multiply_pixel(self, pixel: Cell, first: int, places: Sequence[Scalar]) -> None:
        """Adds the products of a pixel with places, for which it is under one tap after the other, from `first` on."""
        f, here = self.f, pixel.get()
        for offset, sums in zip(self.offsets, self.sums, strict=True):
            left = f.splat(f.load(here, offset), self.lanes)
            for cell, place in zip(sums[first:first + len(places)], places, strict=True):
                cell.set(multiply_add(f, left, place, cell.get()))
        pixel.set(f.at(here, self.x_x))

    def multiply_place(self, pixel: Cell) -> None:
        """Adds the products of a place with the pixels of its window, of which the first is given."""
        f, here, place = self.f, pixel.get(), self.gradient()
        for tap in range(self.taps):
            for offset, sums in zip(self.offsets, self.sums, strict=True):
                left = f.splat(f.load(f.at(here, self.x_x * tap), offset), self.lanes)
                sums[tap].set(multiply_add(f, left, place, sums[tap].get()))
        pixel.set(f.at(here, self.x_x))
