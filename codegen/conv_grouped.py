"""`grouped_filters`, the kernel of gradients for filters of groups of few outputs: elements of windows by outputs in
registers, along the places; what it takes says `conv_grouped_shapes.py`.

Outputs of a group alone would fill vectors to a part, so a vector takes some neighbouring elements of a window, too:
each output stands in it once for each of them, beside one another, and the elements as a whole are repeated, which a
load does. What a group reads lies far apart in images. So the pixels of some places, with zeros around the images, are
copied for as many groups as fill a vector, and then the outputs' gradient of each block of places and each group; tiles
read both from near caches, one after another.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from .conv_grouped_shapes import MOST_PLACES, MOST_TAPS, WORDS
from .conv_shapes import symbol
from .conv_tile import arguments, by_width, each_unit, zeros
from .gemm_shapes import BLOCK, VECTORS, Tiling
from .gemm_tile import multiply_add
from .loop import BlockBuilder, FunctionBuilder, Kernel, LoopBuilder, LoopFunction
from .loop_sizes import covering, parted, quotient, share
from .value_types import address, vector

__all__ = ["grouped_filters"]


def grouped_filters(dtype: DType, shape: Tiling, repeats: int) -> Kernel:
    """The kernel, whose vectors take so many elements of a window; of two outputs or more, as is asked for."""
    name = symbol(f"grouped_filters_{repeats}", dtype)
    return _GroupedFilters(name, dtype, shape, min(repeats, shape.lanes // 2)).recorded()


def _tiles(shape: Tiling, vectors: int) -> list[tuple[int, list[int]]]:
    """By how many vectors of a tap's elements tiles take, from the most on: how many taps, from the most on."""
    if shape.first_tier:
        return [(4, [1]), (1, [1])]
    most = (24 if shape.tall > 8 else 10) // vectors
    tiles = []
    for elements in (n for n in (8, 4, 2, 1) if 2 * n <= most):
        tallest = next(taps for taps in (9, 6, 3, 2, 1) if taps * elements <= most)
        tiles.append((elements, [tallest, *(taps for taps in (3, 1) if taps < tallest)]))
    return tiles


def _tile(tiling: Tiling, dtype: DType, taps: int, elements: int, repeats: int, vectors: int) -> LoopFunction:
    """The micro-kernel `(x, places, offsets, inner, k, b, old, step, out, ldo, n)`: out = old + sums.

    Of each of k places, whose offsets into x are in `places`, it takes vectors of elements of some taps, whose offsets
    are in `offsets`. b is a panel. Rows of the result are `ldo` apart, those of a tap `inner` rows after those of the
    tap before; in what it held, they are `step` apart. n columns are written.
    """
    f, lanes = FunctionBuilder(f"grouped_{taps}x{elements}x{vectors}"), tiling.lanes
    number, memory, table = dt.int64, address(dtype), address(dt.int64)
    x, places, offsets = f.parameter("x", memory), f.parameter("places", table), f.parameter("offsets", table)
    inner, k, right = f.parameter("inner", number), f.parameter("k", number), f.parameter("b", memory)
    old, step = f.parameter("old", memory), f.parameter("step", number)
    out, ldo, n = f.parameter("out", memory), f.parameter("ldo", number), f.parameter("n", number)
    zero, at_taps = f.const(0.0, vector(dtype, lanes)), [f.load(offsets, tap) for tap in range(taps)]
    sums = [[[f.local(zero) for _ in range(vectors)] for _ in range(elements)] for _ in range(taps)]
    at_place, at_b = f.local(places), f.local(right)
    with f.for_(k, 0, -1):
        here, row = f.at(x, f.load(at_place.get(), 0)), at_b.get()
        of_b = [f.load(row, j * lanes, lanes) for j in range(vectors)]
        for at_tap, of_tap in zip(at_taps, sums, strict=True):
            pixel = f.at(here, at_tap)
            for i, cells in enumerate(of_tap):
                left = _repeated(f, pixel, i * repeats, repeats, lanes)
                for cell, of_column in zip(cells, of_b, strict=True):
                    cell.set(multiply_add(f, left, of_column, cell.get()))
        at_place.set(f.at(at_place.get(), 1))
        at_b.set(f.at(row, vectors * lanes))
    width = lanes // repeats
    masks = [f.first(n - j * lanes if j else n, width) for j in range(vectors)]
    for tap, of_tap in enumerate(sums):
        for i, cells in enumerate(of_tap):
            for element in range(repeats):
                at = inner * tap + (i * repeats + element)
                before, after = f.at(old, at * step), f.at(out, at * ldo)
                for j, (cell, mask) in enumerate(zip(cells, masks, strict=True)):
                    total = _every(f, cell.get(), element, repeats, lanes)
                    f.store(after, j * lanes, f.load(before, j * lanes, width, mask) + total, mask)
    return f.finish()


def _repeated(f: BlockBuilder, start: Scalar, index: int, count: int, lanes: int) -> Scalar:
    """`count` neighbours over and over."""
    if count == 1:
        return f.splat(f.load(start, index), lanes)
    few = f.load(start, index, count)
    return f.shuffle(few, few, [n % count for n in range(lanes)])


def _every(f: BlockBuilder, x: Scalar, first: int, step: int, lanes: int) -> Scalar:
    """The lanes of `x` from the first one on, so far apart."""
    return x if step == 1 else f.shuffle(x, x, list(range(first, lanes, step)))


class _Chunk(NamedTuple):
    """Some places, one after another.

    begin, end: the first and the one after the last. planes: of places, alike. across: the first place of a line, and
    the one after the last, that are looked at: all, but where the places are of one line. pixels: of a line that is
    copied.
    """

    begin: Scalar
    end: Scalar
    planes: tuple[Scalar, Scalar]
    across: tuple[Scalar, Scalar]
    pixels: Scalar


class _Plane(NamedTuple):
    """The places of a chunk in one plane of an image.

    image, z: which it is. lines: the first and the one after the last. row: the first line of pixels in what is copied.
    rows: how many of these there are.
    """

    image: Scalar
    z: Scalar
    lines: tuple[Scalar, Scalar]
    row: Scalar
    rows: Scalar


class _GroupedFilters:
    """The kernel being recorded; `v` are its arguments."""

    def __init__(self, name: str, dtype: DType, shape: Tiling, repeats: int) -> None:
        self.lanes, self.repeats = shape.lanes, repeats
        self.zero = vector(dtype, shape.lanes)
        self.b = b = LoopBuilder(name)
        self.v = arguments(b, dtype, WORDS)
        self.widths = list(range(1, VECTORS + 1)) if repeats == 1 else [1]
        self.tiles = {vectors: [(elements, [(taps, _tile(shape, dtype, taps, elements, repeats, vectors))
                                            for taps in of_taps]) for elements, of_taps in _tiles(shape, vectors)]
                      for vectors in self.widths}
        self.right, self.zeros = b.scratch(dtype, BLOCK * self.widths[-1] * self.lanes), zeros(b, dtype, shape)
        self.places, self.offsets = b.scratch(dt.int64, MOST_PLACES), b.scratch(dt.int64, MOST_TAPS)

    def recorded(self) -> Kernel:
        """The finished kernel."""
        b, v = self.b, self.v
        with each_unit(b, v) as (unit, _, work):
            number, run = parted(b, unit, v.runs)
            bundles = share(b, run, covering(b, v.groups, v.held), v.runs)
            begin, end = share(b, number, v.places, v.shares)
            out = b.at(v.out, number * v.share)
            with b.for_(begin, b.maximum(end, begin + 1), v.chunk) as at:  # of no places the sums are zeros
                self.chunk(self.of_places(at, b.minimum(end, at + v.chunk)), bundles, work, out, b.eq(at, begin))
        return b.finish()

    def of_places(self, begin: Scalar, end: Scalar) -> _Chunk:
        """The chunk of places from `begin` to `end`."""
        b, v = self.b, self.v
        first, x = parted(b, begin, v.out_x)
        last = quotient(b, b.maximum(end - 1, begin), v.out_x)
        single = b.eq(first, last)
        across = b.select(single, x, 0), b.select(single, x + (end - begin), v.out_x)
        planes = quotient(b, first, v.out_y), b.select(b.lt(begin, end), quotient(b, last, v.out_y) + 1, 0)
        return _Chunk(begin, end, planes, across, (across[1] - across[0] - 1) * v.stride_x + self.reach("x"))

    def reach(self, axis: str) -> Scalar:
        """The pixels that a window reaches over."""
        taps, step = (getattr(self.v, f"{name}_{axis}") for name in ("taps", "step"))
        return (taps - 1) * step + 1

    def chunk(self, of: _Chunk, bundles: tuple[Scalar, Scalar], work: Scalar, out: Scalar, fresh: Scalar) -> None:
        """What the places of a chunk add to the gradient of some bundles of groups."""
        b, v = self.b, self.v
        self.tables(of)
        with b.for_(*bundles) as bundle:
            first = bundle * v.held
            last = b.minimum(first + v.held, v.groups)
            self.cover(of, work, first * v.inner, (last - first) * v.inner)
            with b.for_(of.begin, b.maximum(of.end, of.begin + 1), BLOCK) as begin:
                depth, new = b.minimum(of.end - begin, BLOCK), b.and_(fresh, b.eq(begin, of.begin))
                with b.for_(first, last) as group:
                    self.group(group, b.at(work, (group - first) * v.inner), b.at(self.places, begin - of.begin), begin,
                               depth, b.at(out, group * v.n), new)

    # -- where pixels lie -----------------------------------------------------------------------------------------
    def planes(self, of: _Chunk, record: Callable[[_Plane], None]) -> None:
        """Records what is done for each plane of a chunk."""
        b, v = self.b, self.v
        row = b.local(0)
        first_line, last_line = quotient(b, of.begin, v.out_x), quotient(b, of.end - 1, v.out_x)
        with b.for_(*of.planes) as plane:
            image, z = parted(b, plane, v.out_z)
            top = plane * v.out_y
            lines = b.maximum(first_line - top, 0), b.minimum(last_line + 1 - top, v.out_y)
            rows = (lines[1] - lines[0] - 1) * v.stride_y + self.reach("y")
            record(_Plane(image, z, lines, row.get(), rows))
            row.set(row.get() + rows)

    def tables(self, of: _Chunk) -> None:
        """Fills in where places and taps lie in what is copied."""
        b, v = self.b, self.v
        pixel = v.held * v.inner
        line = of.pixels * pixel
        with b.for_(0, v.taps_z) as z, b.for_(0, v.taps_y) as y, b.for_(0, v.taps_x) as x:
            at = z * v.plane + y * v.step_y * line + x * v.step_x * pixel
            b.store(self.offsets, (z * v.taps_y + y) * v.taps_x + x, at)

        def fill(plane: _Plane) -> None:
            top = (plane.image * v.out_z + plane.z) * v.out_y
            with b.for_(*plane.lines) as y:
                start = (top + y) * v.out_x
                at = (plane.row + (y - plane.lines[0]) * v.stride_y) * line
                first = b.maximum(start + of.across[0], of.begin)
                with b.for_(first, b.minimum(start + of.across[1], of.end)) as place:
                    b.store(self.places, place - of.begin,
                            at + (place - start - of.across[0]) * (v.stride_x * pixel))
        self.planes(of, fill)

    def cover(self, of: _Chunk, work: Scalar, channel: Scalar, width: Scalar) -> None:
        """Copies the pixels of a chunk, `width` channels from `channel` on, with zeros around the images."""
        b, v = self.b, self.v
        pitch = v.held * v.inner
        x = of.across[0] * v.stride_x - v.before_x
        low = b.minimum(b.maximum(-x, 0), of.pixels)
        high = b.maximum(b.minimum(v.size_x - x, of.pixels), low)

        def copy(plane: _Plane) -> None:
            top = plane.lines[0] * v.stride_y - v.before_y
            with b.for_(0, v.taps_z) as tap, b.for_(0, plane.rows) as row:
                z, y = plane.z * v.stride_z - v.before_z + tap * v.step_z, top + row
                inside = [b.and_(b.ge(at, 0), b.lt(at, size)) for at, size in ((z, v.size_z), (y, v.size_y))]
                begin, end = (b.select(b.and_(*inside), at, of.pixels) for at in (low, high))
                to = b.at(work, tap * v.plane + (plane.row + row) * of.pixels * pitch)
                source = (((plane.image * v.size_z + z) * v.size_y + y) * v.size_x + x) * v.channels + channel
                with b.for_(0, width, self.lanes) as at:
                    with b.if_(b.le(at + self.lanes, width)):
                        self.line(b.at(to, at), b.at(v.x, source + at), (begin, end, of.pixels), pitch, None)
                    with b.else_():
                        mask = b.first(width - at, self.lanes)
                        self.line(b.at(to, at), b.at(v.x, source + at), (begin, end, of.pixels), pitch, mask)
        self.planes(of, copy)

    def line(self, to: Scalar, source: Scalar, pixels: tuple[Scalar, Scalar, Scalar], pitch: Scalar,
             mask: Scalar | None) -> None:
        """Copies a vector of the channels of the pixels of a line, from the first to the second; others are zeros."""
        b, (begin, end, count) = self.b, pixels
        for lo, hi in ((0, begin), (end, count)):
            with b.for_(lo, hi) as pixel:
                b.store(to, pixel * pitch, b.const(0.0, self.zero), mask)
        with b.for_(begin, end) as pixel:
            b.prefetch(source, pixel * self.v.channels + pitch)
            b.store(to, pixel * pitch, b.load(source, pixel * self.v.channels, self.lanes, mask), mask)

    # -- what is summed -------------------------------------------------------------------------------------------
    def group(self, number: Scalar, x: Scalar, places: Scalar, begin: Scalar, depth: Scalar, out: Scalar,
              fresh: Scalar) -> None:
        """What `depth` places from number `begin` on add to the gradient of a group."""
        b, v = self.b, self.v
        source = b.at(v.b, begin * v.outputs + number * v.n)

        def tiled(vectors: int) -> None:
            self.panel(source, depth, vectors)
            old = b.select(fresh, b.at(self.zeros, 0), out)
            operands = depth, b.at(self.right, 0), b.select(fresh, 0, v.outputs)
            self.tiled(vectors, x, places, old, out, operands)
        by_width(b, self.lanes, v.n, [functools.partial(tiled, vectors) for vectors in self.widths])

    def panel(self, source: Scalar, depth: Scalar, vectors: int) -> None:
        """Packs the outputs' gradient of some places, each output as often as a vector takes elements."""
        b, v, width = self.b, self.v, self.lanes // self.repeats
        masks = [b.first(v.n - j * self.lanes, width) for j in range(vectors)]
        with b.for_(0, depth) as place:
            row = b.at(source, place * v.outputs)
            for j, mask in enumerate(masks):
                b.prefetch(row, v.held * v.n + j * self.lanes)
                few = b.load(row, j * self.lanes, width, mask)
                wide = few if self.repeats == 1 else b.shuffle(few, few, [n // self.repeats for n in range(self.lanes)])
                b.store(self.right, (place * vectors + j) * self.lanes, wide)

    def tiled(self, vectors: int, x: Scalar, places: Scalar, old: Scalar, out: Scalar,
              operands: tuple[Scalar, Scalar, Scalar]) -> None:
        """The tiles of a group."""
        b, v, (depth, right, step) = self.b, self.v, operands
        count, taps, done = quotient(b, v.inner, self.repeats), v.taps_z * v.taps_y * v.taps_x, b.local(0)
        for elements, of_taps in self.tiles[vectors]:
            with b.for_(done.get(), count - (elements - 1), elements) as at:
                element, tap_done = at * self.repeats, b.local(0)
                for high, tile in of_taps:
                    with b.for_(tap_done.get(), taps - (high - 1), high) as tap:
                        row = tap * v.inner + element
                        b.invoke(tile, b.at(x, element), places, b.at(self.offsets, tap), v.inner, depth, right,
                                 b.at(old, row * step), step, b.at(out, row * v.outputs), v.outputs, v.n)
                        tap_done.set(tap + high)
                done.set(at + elements)
