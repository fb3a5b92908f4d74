"""`inside`, the kernel of convolutions of several small images, which leaves out what it would multiply with padding;
its arguments are those of `conv_inside_shapes.py`.

The rows of a tile are the same place of several images. So all of them have the same taps inside, and the others are
left out; nothing has to be copied to lay zeros around the images.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import NamedTuple

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from .conv_inside_shapes import MOST_IMAGES, WORDS
from .conv_shapes import panel_size, symbol
from .conv_tile import MOST_LINES, ForwardTiles, are_zeros, arguments, taps_inside, zeros
from .gemm_shapes import BLOCK, Tiling, panel_width
from .loop import Cell, Kernel, LoopBuilder
from .loop_sizes import covering, parted, quotient, share
from .target import CACHES

__all__ = ["inside"]


def inside(dtype: DType, shape: Tiling, vectors: int) -> Kernel:
    """The kernel, whose tiles have at most so many vectors of columns."""
    return _Inside(dtype, shape, vectors).recorded()


class _InsidePlaces(NamedTuple):
    """Some places of a line, of some images.

    images, along: how many. corner: the pixel at which the window of the first place begins, along each axis. source,
    target: where that pixel, and the result of that place, lie in the first image. taps: those inside along the first
    two axes, from the first to the one after the last. height: the images that a tile takes.
    """

    images: Scalar
    along: Scalar
    corner: tuple[Scalar, Scalar, Scalar]
    source: Scalar
    target: Scalar
    taps: tuple[tuple[Scalar, Scalar], tuple[Scalar, Scalar]]
    height: Scalar


class _InsideBlock(NamedTuple):
    """What of a block of a window's elements lies inside.

    begin, depth: where the block begins, and how many elements it has. across: the taps along a line that `lines` holds
    those for, as one number. used: how many lines these are. some: the elements of the first. total: of all.
    """

    begin: Scalar
    depth: Scalar
    across: Cell
    used: Cell
    some: Cell
    total: Cell


class _Inside:
    """The kernel being recorded; `v` are its arguments."""

    def __init__(self, dtype: DType, shape: Tiling, vectors: int) -> None:
        self.dtype, self.width, self.size = dtype, panel_width(shape, False), panel_size(shape)
        self.line = CACHES.line // dtype.size
        self.b = b = LoopBuilder(symbol(f"inside_{vectors}", dtype))
        self.v = v = arguments(b, dtype, WORDS)
        self.tiles = ForwardTiles(b, dtype, shape, vectors, skips=True)
        self.lines, self.zeros = b.scratch(dt.int64, 2 * MOST_LINES), zeros(b, dtype, shape)
        self.from_x, self.to = (b.scratch(dt.int64, MOST_IMAGES + shape.tall) for _ in range(2))
        self.blocks, self.panels = covering(b, v.k, BLOCK), covering(b, v.n, self.width)
        self.image = v.size_z * v.size_y * v.size_x * v.channels

    def recorded(self) -> Kernel:
        """The finished kernel."""
        b, v = self.b, self.v
        finite = are_zeros(b, self.dtype, b.at(v.b, v.flags * self.size), v.flags)
        with b.for_(b.start, b.select(finite, b.stop, b.start)) as unit:
            rest, piece = parted(b, unit, v.pieces)
            number, group = parted(b, rest, v.groups)
            places, panels = self.places(number, group), share(b, piece, self.panels, v.pieces)
            self.table(places.images)
            filters = b.at(v.b, group * self.blocks * self.panels * self.size)
            with b.for_(0, self.blocks) as index:
                begin = index * BLOCK
                block = _InsideBlock(begin, b.minimum(v.k - begin, BLOCK), *(b.local(n) for n in (-1, 0, 0, 0)))
                with b.for_(*panels) as panel:
                    self.panel(places, block, panel, b.at(filters, (index * self.panels + panel) * self.size))
        return b.finish()

    def places(self, number: Scalar, group: Scalar) -> _InsidePlaces:
        """The places of a box, for a group."""
        b, v = self.b, self.v
        rest, run = parted(b, number, v.boxes_x)
        rest, y = parted(b, rest, v.out_y)
        box, z = parted(b, rest, v.out_z)
        x, n = run * v.box_x, box * v.box_n
        corner = z * v.stride_z - v.before_z, y * v.stride_y - v.before_y, x * v.stride_x - v.before_x
        pixel = (corner[0] * v.size_y + corner[1]) * v.size_x + corner[2]
        images = b.minimum(v.images - n, v.box_n)
        taps = (taps_inside(b, corner[0], v.taps_z, v.step_z, v.size_z),
                taps_inside(b, corner[1], v.taps_y, v.step_y, v.size_y))
        return _InsidePlaces(images, b.minimum(v.out_x - x, v.box_x), corner,
                             b.at(v.x, n * self.image + pixel * v.channels + group * v.inner),
                             b.at(v.out, group * v.to_g + n * v.to_n + z * v.to_z + y * v.to_y + x * v.to_x), taps,
                             self.tiles.height(images))

    def table(self, images: Scalar) -> None:
        """Fills in how far images are from the first. The last is repeated to fill a tile."""
        b = self.b
        with b.for_(0, images + (self.tiles.tall - 1)) as n:
            for table, step in ((self.from_x, self.image), (self.to, self.v.to_n)):
                b.store(table, n, b.minimum(n, images - 1) * step)

    def panel(self, of: _InsidePlaces, block: _InsideBlock, number: Scalar, right: Scalar) -> None:
        """The tiles of a box beside a panel of B."""
        b, v = self.b, self.v
        column = number * self.width
        columns, fresh = b.minimum(v.n - column, self.width), b.eq(block.begin, 0)
        mask = b.select(fresh, b.const(0, dt.int64), -1)
        ahead, lines = b.local(b.at(right, self.size)), covering(b, b.const(self.size, dt.int64), of.along * self.line)
        with b.for_(0, of.along) as place:
            with b.for_(0, lines):  # of the next panel, which comes from a shared cache
                b.prefetch(ahead.get(), 0)
                ahead.set(b.at(ahead.get(), self.line))
            first, last = taps_inside(b, of.corner[2] + place * v.stride_x, v.taps_x, v.step_x, v.size_x)
            across = first * (v.taps_x + 1) + last
            with b.if_(b.ne(across, block.across.get())):
                self.inside(of, block, (first, last))
                block.across.set(across)
            source = b.at(of.source, place * (v.stride_x * v.channels))
            target = b.at(of.target, place * v.to_x + column)
            middle = (b.at(self.lines, 0), block.used.get(), block.some.get(), v.inner, block.total.get(), right,
                      self.width)
            old = b.select(fresh, b.at(self.zeros, 0), target)
            with b.if_(b.or_(b.lt(0, block.used.get()), fresh)):  # else there is nothing to add
                if self.tiles.spaced[0]:
                    with b.if_(b.le(of.height, of.images)), b.for_(0, of.images, of.height) as at:
                        begin = b.minimum(at, of.images - of.height)
                        here = b.at(target, begin * v.to_n)
                        self.tiles.invoke(self.tiles.spaced, of.height, columns,
                                          (b.at(source, begin * self.image), self.image, *middle,
                                           b.select(fresh, old, here), mask, here, v.to_n, at - begin, columns))
                with b.else_() if self.tiles.spaced[0] else nullcontext(), b.for_(0, of.images, self.tiles.tall) as at:
                    count = b.minimum(of.images - at, self.tiles.tall)
                    self.tiles.invoke(self.tiles.listed, count, columns,
                                      (source, b.at(self.from_x, at), *middle, old, mask, target, b.at(self.to, at),
                                       count, columns))

    def inside(self, of: _InsidePlaces, block: _InsideBlock, across: tuple[Scalar, Scalar]) -> None:
        """Fills in the lines of a block that lie inside."""
        b, v = self.b, self.v
        end = block.begin + block.depth
        for cell in (block.used, block.some, block.total):
            cell.set(0)
        with b.for_(quotient(b, block.begin, v.inner), covering(b, end, v.inner)) as tap:
            rest, x = parted(b, tap, v.taps_x)
            z, y = parted(b, rest, v.taps_y)
            within = [b.and_(b.le(first, at), b.lt(at, last))
                      for at, (first, last) in zip((z, y, x), (*of.taps, across), strict=True)]
            with b.if_(b.and_(within[0], b.and_(within[1], within[2]))):
                top = tap * v.inner
                first, last = b.maximum(top, block.begin), b.minimum(top + v.inner, end)
                pixel = (z * v.step_z * v.size_y + y * v.step_y) * v.size_x + x * v.step_x
                used = block.used.get()
                b.store(self.lines, used, pixel * v.channels + (first - top))
                b.store(self.lines, used + MOST_LINES, first - block.begin)
                block.some.set(b.select(b.eq(used, 0), last - first, block.some.get()))
                block.total.set(block.total.get() + (last - first))
                block.used.set(used + 1)
