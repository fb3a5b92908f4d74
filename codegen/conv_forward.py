"""`forward`, the kernel of convolutions: places by outputs in registers, along the lines of a window; see `conv.py`.

Tiles of places that lie evenly spaced, in one line of the result, need no addresses; the others read theirs from a
table, which is filled once for a box. Lines are covered by tiles of one height, the last of which begins early enough
to be whole and leaves out what was done.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.instructions import ScalarLike
from twofold.ir.scalar import Scalar

from .conv_shapes import FORWARD, MAX_ROWS, symbol
from .conv_tile import arguments, by_width, forward_tile, line_start, zeros
from .gemm_shapes import BLOCK, PACKED, Tiling, panel_width
from .loop import Kernel, LoopBuilder, LoopFunction
from .loop_sizes import choose, covering, parted, share
from .value_types import vector

__all__ = ["forward"]


def forward(dtype: DType, shape: Tiling, vectors: int) -> Kernel:
    """The kernel, whose tiles have at most so many vectors of columns."""
    return _Forward(dtype, shape, vectors).recorded()


class _PlaceBox(NamedTuple):
    """A box of places.

    sizes: how many images, and places along each axis. rows: how many places. source, target: where the windows and the
    results of the first one lie. height: the places of a line that a tile takes.
    """

    sizes: list[Scalar]
    rows: Scalar
    source: Scalar
    target: Scalar
    height: Scalar


class _WindowBlock(NamedTuple):
    """A block of a window's elements.

    number: which it is. begin: its first element. depth: how many. lines: in how many lines they lie. some: how many of
    them in the first one.
    """

    number: Scalar
    begin: Scalar
    depth: Scalar
    lines: Scalar
    some: Scalar


class _Forward:
    """The kernel being recorded; `v` are its arguments."""

    def __init__(self, dtype: DType, shape: Tiling, vectors: int) -> None:
        self.shape, self.lanes, self.width = shape, shape.lanes, panel_width(shape, False)
        self.zero = vector(dtype, shape.lanes)
        self.b = b = LoopBuilder(symbol(f"forward_{vectors}", dtype))
        self.v = arguments(b, dtype, FORWARD)
        self.tiles = [{rows: forward_tile(shape, dtype, rows, wide, False) for rows in sorted(shape.heights)}
                      for wide in range(1, vectors + 1)]
        heights = [n for n in (shape.tall - 6, shape.tall - 2, shape.tall) if n > 0 and 2 * n >= shape.tall]
        self.spaced = [{rows: forward_tile(shape, dtype, rows, wide, True) for rows in heights}
                       for wide in range(1, vectors + 1)]
        self.places, self.to = (b.scratch(dt.int64, MAX_ROWS + shape.tall) for _ in range(2))
        self.lines, self.zeros = b.scratch(dt.int64, BLOCK + 1), zeros(b, dtype, shape)
        self.blocks, self.panels = covering(b, self.v.k, BLOCK), covering(b, self.v.n, self.width)
        self.packed = b.eq(self.v.mode, PACKED)

    def recorded(self) -> Kernel:
        """The finished kernel."""
        b, v = self.b, self.v
        with b.for_(b.start, b.stop) as part:
            first, last = share(b, part, v.units, v.parts)
            work = b.at(v.work, part * v.box_n * v.room)
            with b.for_(first, last) as unit:
                self.unit(unit, work)
        return b.finish()

    def unit(self, number: Scalar, work: Scalar) -> None:
        """Some panels of columns of one box."""
        b, v = self.b, self.v
        rest, piece = parted(b, number, v.pieces)
        rest, x = parted(b, rest, v.boxes_x)
        rest, y = parted(b, rest, v.boxes_y)
        n, z = parted(b, rest, v.boxes_z)
        box = self.box([n * v.box_n, z * v.box_z, y * v.box_y, x * v.box_x], work)
        first, last = share(b, piece, self.panels, v.pieces)
        with b.for_(0, self.blocks) as index:
            block = self.block(index)
            with b.for_(first, last) as panel:
                self.panel(box, block, panel)

    def box(self, first: list[Scalar], work: Scalar) -> _PlaceBox:
        """The box whose first place lies at `first`."""
        b, v = self.b, self.v
        sizes = [b.minimum(count - at, size) for count, at, size in zip(
            (v.images, v.out_z, v.out_y, v.out_x), first, (v.box_n, v.box_z, v.box_y, v.box_x), strict=True)]
        source = self.covered(sizes[0], first, work, b.at(v.x, _offset(first, (v.x_n, v.x_z, v.x_y, v.x_x))))
        target = b.at(v.out, _offset(first, (v.to_n, v.to_z, v.to_y, v.to_x)))
        return _PlaceBox(sizes, self.table(sizes), source, target, self.height(sizes[3]))

    def block(self, index: Scalar) -> _WindowBlock:
        """A block of elements, the offsets of whose lines are filled in."""
        b, v = self.b, self.v
        begin = index * BLOCK
        depth = b.minimum(v.k - begin, BLOCK)
        line, pos = parted(b, begin, v.length)
        lines = covering(b, pos + depth, v.length)
        with b.for_(0, lines) as i:
            b.store(self.lines, i, line_start(b, v, line + i))
        b.store(self.lines, 0, b.load(self.lines, 0) + pos)
        return _WindowBlock(index, begin, depth, lines, v.length - pos)

    def panel(self, box: _PlaceBox, block: _WindowBlock, number: Scalar) -> None:
        """The tiles of a box beside one panel of B."""
        b, v = self.b, self.v
        column = number * self.width
        right = b.select(self.packed, b.at(v.b, (block.number * self.panels + number) * (BLOCK * self.width)),
                         b.at(v.b, block.begin * v.ldb + column))
        middle = (b.at(self.lines, 0), block.lines, block.some, v.length, block.depth, right,
                  b.select(self.packed, self.width, v.ldb))
        columns, out = b.minimum(v.n - column, self.width), b.at(box.target, column)
        fresh = b.eq(block.number, 0)
        mask = b.select(fresh, b.const(0, dt.int64), -1)
        length, height, zeros = box.sizes[3], box.height, b.at(self.zeros, 0)
        with b.if_(b.le(height, length)), b.for_(0, box.rows, length) as line, b.for_(0, length, height) as at:
            # The last tile begins early enough to be whole, and leaves out what was done.
            begin = b.minimum(at, length - height)
            row = line + begin
            source, target = b.at(box.source, b.load(self.places, row)), b.at(out, b.load(self.to, row))
            self.tile(self.spaced, height, columns,
                      (source, v.x_x, *middle, b.select(fresh, zeros, target), mask, target, v.to_x, at - begin,
                       columns))
        with b.else_(), b.for_(0, box.rows, self.shape.tall) as row:
            count = b.minimum(box.rows - row, self.shape.tall)
            self.tile(self.tiles, count, columns,
                      (box.source, b.at(self.places, row), *middle, b.select(fresh, zeros, out), mask, out,
                       b.at(self.to, row), count, columns))

    def tile(self, functions: list[dict[int, LoopFunction]], height: Scalar, columns: Scalar,
             operands: tuple[ScalarLike, ...]) -> None:
        """Invokes the micro-kernel that does the least for a tile of so many rows and columns."""
        b = self.b

        def of_width(of_heights: dict[int, LoopFunction]) -> None:
            *lower, tallest = [(height, rows, functools.partial(b.invoke, function, *operands))
                               for rows, function in of_heights.items()]
            choose(b, lower, tallest[2])

        by_width(b, self.lanes, columns, [functools.partial(of_width, of_heights) for of_heights in functions])

    # -- boxes ----------------------------------------------------------------------------------------------------
    def covered(self, images: Scalar, first: list[Scalar], work: Scalar, inside: Scalar) -> Scalar:
        """Where the windows of a box lie: `inside` of the images, or in `work` after a copy with zeros around it."""
        b, v = self.b, self.v
        source = b.local(inside)
        with b.if_(b.gt(v.room, 0)):
            source.set(work)
            z, y, x = (at * stride - before for at, stride, before in zip(
                first[1:], (v.stride_z, v.stride_y, v.stride_x), (v.before_z, v.before_y, v.before_x), strict=True))
            low = b.minimum(b.maximum(-x, 0), v.cover_x)
            high = b.maximum(b.minimum(v.size_x - x, v.cover_x), low)
            with b.for_(0, images) as n, b.for_(0, v.cover_z) as i, b.for_(0, v.cover_y) as j:
                at_z, at_y = z + i, y + j
                within = [b.and_(b.ge(at, 0), b.lt(at, size)) for at, size in ((at_z, v.size_z), (at_y, v.size_y))]
                valid = b.and_(*within)
                begin, end = (b.select(valid, at, v.cover_x) * v.channels for at in (low, high))
                to = b.at(work, ((n * v.cover_z + i) * v.cover_y + j) * v.cover_x * v.channels)
                row = ((first[0] + n) * v.size_z + at_z) * v.size_y + at_y
                self.stretch(to, 0, begin, None)
                self.stretch(to, begin, end, b.at(v.x, (row * v.size_x + x) * v.channels))
                self.stretch(to, end, v.cover_x * v.channels, None)
        return source.get()

    def stretch(self, to: Scalar, begin: ScalarLike, end: Scalar, source: Scalar | None) -> None:
        """Fills elements of `to` with those of `source`, or with zeros."""
        b = self.b

        def move(at: Scalar, mask: Scalar | None) -> None:
            elements = b.const(0.0, self.zero) if source is None else b.load(source, at, self.lanes, mask)
            b.store(to, at, elements, mask)

        with b.for_(begin, end, self.lanes) as at:
            with b.if_(b.lt(end - at, self.lanes)):
                move(at, b.first(end - at, self.lanes))
            with b.else_():
                move(at, None)

    def table(self, sizes: Sequence[Scalar]) -> Scalar:
        """Fills in the offsets of a box's places; how many there are. The last is repeated to fill a tile."""
        b, v = self.b, self.v
        size_n, size_z, size_y, size_x = sizes
        with b.for_(0, size_n) as n, b.for_(0, size_z) as z, b.for_(0, size_y) as y:
            first = ((n * size_z + z) * size_y + y) * size_x
            at = _offset((n, z, y), (v.place_n, v.x_z, v.x_y))
            to = _offset((n, z, y), (v.to_n, v.to_z, v.to_y))
            with b.for_(0, size_x) as x:
                b.store(self.places, first + x, at + x * v.x_x)
                b.store(self.to, first + x, to + x * v.to_x)
        rows = size_n * size_z * size_y * size_x
        for table in (self.places, self.to):
            last = b.load(table, rows - 1)
            for beyond in range(self.shape.tall - 1):
                b.store(table, rows + beyond, last)
        return rows

    def height(self, length: Scalar) -> Scalar:
        """The tiles that part a line of places evenly: how many of these one takes, if that many there are."""
        b, tall = self.b, self.shape.tall
        count = covering(b, length, tall)
        even = covering(b, length, count)
        height = b.const(tall, dt.int64)
        for rows in sorted(self.spaced[0], reverse=True)[1:]:
            height = b.select(b.le(even, rows), rows, height)
        return height


def _offset(at: Sequence[Scalar], steps: Sequence[Scalar]) -> Scalar:
    """The offset of a place from the first one."""
    return functools.reduce(lambda x, y: x + y, [index * step for index, step in zip(at, steps, strict=True)])
