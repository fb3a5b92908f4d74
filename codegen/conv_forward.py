"""`forward`, the kernel of convolutions: places by outputs in registers, along the lines of a window; see `conv.py`.

Tiles of places that lie evenly spaced, in one line of the result, need no addresses; the others read theirs from a
table, which is filled once for boxes of one size. Lines are covered by tiles of one height, the last of which begins
early enough to be whole and leaves out what was done.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import nullcontext
from typing import NamedTuple

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.instructions import ScalarLike
from twofold.ir.scalar import Scalar

from .conv_shapes import FORWARD, MAX_ROWS, PANELS, panel_size, symbol
from .conv_tile import MOST_LINES, Arguments, ForwardTiles, are_zeros, arguments, line_start, zeros
from .gemm_pack import pack
from .gemm_shapes import BLOCK, HERE, PACKED, Tiling, panel_width
from .loop import BlockBuilder, Cell, Kernel, LoopBuilder, LoopFunction
from .loop_sizes import covering, parted, quotient, share
from .target import CACHES
from .value_types import vector

__all__ = ["forward", "panels"]


def forward(dtype: DType, shape: Tiling, vectors: int) -> Kernel:
    """The kernel, whose tiles have at most so many vectors of columns."""
    return _Forward(dtype, shape, vectors).recorded()


def panels(dtype: DType, shape: Tiling, vectors: int) -> Kernel:
    """The kernel that packs filters before, panel by panel."""
    b = LoopBuilder(symbol("panels", dtype))
    v, packing = arguments(b, dtype, PANELS), pack(shape, dtype)
    blocks, count = covering(b, v.k, BLOCK), covering(b, v.n, v.width)
    with b.for_(b.start, b.stop) as number:
        rest, panel = parted(b, number, count)
        group, block = parted(b, rest, blocks)
        begin = block * BLOCK
        depth, column, to = b.minimum(v.k - begin, BLOCK), panel * v.width, b.at(v.out, number * v.size)
        _pack_panel(b, v, packing, to, b.at(v.b, group * v.b_g), begin, depth, column, v.width)
        with b.if_(b.ne(v.flags, 0)):
            columns = b.minimum(v.n - column, v.width)
            b.store(v.out, v.flags + number, _times_zero(b, dtype, shape.lanes, to, v.width, depth, columns))
    return b.finish()


def _times_zero(b: BlockBuilder, dtype: DType, lanes: int, panel: Scalar, width: Scalar, depth: Scalar,
                columns: Scalar) -> Scalar:
    """The sum of a panel's elements times 0, which tells whether all are finite."""
    zero = b.const(0.0, vector(dtype, lanes))
    total = b.local(zero)
    with b.for_(0, depth) as row, b.for_(0, columns, lanes) as column:
        elements = b.load(panel, row * width + column, lanes, b.first(columns - column, lanes))
        total.set(elements * zero + total.get())
    lane_sums = [b.extract(total.get(), lane) for lane in range(lanes)]
    return functools.reduce(lambda x, y: x + y, lane_sums)


def _pack_panel(b: BlockBuilder, v: Arguments, packing: LoopFunction, to: Scalar, filters: Scalar, begin: Scalar,
                depth: Scalar, column: Scalar, width: Scalar | int) -> None:
    """Packs `depth` rows of a group's filters from `begin` on, tap by tap: a panel from `column` on."""
    end, columns = begin + depth, b.minimum(v.n - column, width)
    with b.for_(quotient(b, begin, v.inner), covering(b, end, v.inner)) as tap:
        top = tap * v.inner
        first, last = b.maximum(begin - top, 0), b.minimum(end - top, v.inner)
        rest, x = parted(b, tap, v.taps_x)
        z, y = parted(b, rest, v.taps_y)
        at = z * v.b_z + y * v.b_y + x * v.b_x + first * v.b_k + column * v.b_n
        b.invoke(packing, b.at(to, (top + first - begin) * width), width, b.at(filters, at), v.b_n, v.b_k, columns,
                 last - first)


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


class _Fetched(NamedTuple):
    """What tiles fetch for later ones.

    at: where the next tile begins. step: elements to what it fetches next, for each element that it takes. of_tile: to
    where the one after it begins.
    """

    at: Cell
    step: Scalar
    of_tile: Scalar


class _Forward:
    """The kernel being recorded; `v` are its arguments."""

    def __init__(self, dtype: DType, shape: Tiling, vectors: int) -> None:
        self.shape, self.lanes, self.width = shape, shape.lanes, panel_width(shape, False)
        self.dtype, self.zero = dtype, vector(dtype, shape.lanes)
        self.b = b = LoopBuilder(symbol(f"forward_{vectors}", dtype))
        self.v = arguments(b, dtype, FORWARD)
        self.tiles = ForwardTiles(b, dtype, shape, vectors)
        self.places, self.to = (b.scratch(dt.int64, MAX_ROWS + shape.tall) for _ in range(2))
        self.lines, self.zeros = b.scratch(dt.int64, MOST_LINES), zeros(b, dtype, shape)
        self.blocks, self.panels = covering(b, self.v.k, BLOCK), covering(b, self.v.n, self.width)
        self.packed, self.here = b.eq(self.v.mode, PACKED), b.eq(self.v.mode, HERE)
        self.pack, self.right = pack(shape, dtype), b.scratch(dtype, panel_size(shape))

    def recorded(self) -> Kernel:
        """The finished kernel."""
        b, v = self.b, self.v
        listed = [b.local(-1) for _ in range(4)]
        flags = v.unless * panel_size(self.shape)
        left = b.or_(b.eq(v.unless, 0), b.not_(are_zeros(b, self.dtype, b.at(v.b, flags), v.unless)))
        with b.for_(b.start, b.select(left, b.stop, b.start)) as part:
            first, last = share(b, part, v.units, v.parts)
            work, done = b.at(v.work, part * v.room), b.local(-1)
            with b.for_(first, last) as unit:
                self.unit(unit, work, done, listed)
        return b.finish()

    def unit(self, number: Scalar, work: Scalar, done: Cell, listed: list[Cell]) -> None:
        """Some panels of columns of a group and box; `done` is the number of the box whose windows are ready, `listed`
        the sizes of the box whose places are in the tables."""
        b, v = self.b, self.v
        rest, piece = parted(b, number, v.pieces)
        number, group = parted(b, rest, v.groups)
        rest, x = parted(b, number, v.boxes_x)
        rest, y = parted(b, rest, v.boxes_y)
        n, z = parted(b, rest, v.boxes_z)
        at = [n * v.box_n, z * v.box_z, y * v.box_y, x * v.box_x]
        sizes = [b.minimum(count - first, size) for count, first, size in zip(
            (v.images, v.out_z, v.out_y, v.out_x), at, (v.box_n, v.box_z, v.box_y, v.box_x), strict=True)]
        run = quotient(b, group, v.held)  # of groups that are copied together
        first, copy = run * v.held, number * v.groups + run
        with b.if_(b.ne(copy, done.get())):
            with b.if_(b.gt(v.room, 0)):
                self.cover(sizes[0], at, work, first)
            differ = functools.reduce(b.or_, [b.ne(size, cell.get()) for size, cell in zip(sizes, listed, strict=True)])
            with b.if_(differ):  # most boxes have one size
                self.table(sizes)
                for size, cell in zip(sizes, listed, strict=True):
                    cell.set(size)
            done.set(copy)
        box = self.box(sizes, at, group, b.at(work, -first * v.x_g))
        filters = b.at(v.b, b.select(self.packed, group * self.blocks * self.panels * panel_size(self.shape),
                                     group * v.b_g))
        first, last = share(b, piece, self.panels, v.pieces)
        with b.for_(0, self.blocks) as index:
            block = self.block(index)
            with b.for_(first, last) as panel:
                self.panel(box, block, panel, filters)

    def box(self, sizes: list[Scalar], at: list[Scalar], group: Scalar, work: Scalar) -> _PlaceBox:
        """The box of some sizes whose first place lies `at` so many images and places, for a group."""
        b, v = self.b, self.v
        inside = b.at(v.x, _offset(at, (v.x_n, v.x_z, v.x_y, v.x_x)))
        source = b.at(b.select(b.gt(v.room, 0), work, inside), group * v.x_g)
        target = b.at(v.out, group * v.to_g + _offset(at, (v.to_n, v.to_z, v.to_y, v.to_x)))
        rows = functools.reduce(lambda x, y: x * y, sizes)
        return _PlaceBox(sizes, rows, source, target, self.tiles.height(sizes[3]))

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

    def panel(self, box: _PlaceBox, block: _WindowBlock, number: Scalar, filters: Scalar) -> None:
        """The tiles of a box beside one panel of B."""
        b, v = self.b, self.v
        column = number * self.width
        here = b.at(self.right, 0)
        with b.if_(self.here):
            _pack_panel(b, v, self.pack, here, filters, block.begin, block.depth, column, self.width)
        before = b.at(filters, (block.number * self.panels + number) * panel_size(self.shape))
        lying = b.at(filters, block.begin * v.b_k + column)
        right = b.select(self.packed, before, b.select(self.here, here, lying))
        step = b.select(b.or_(self.packed, self.here), self.width, v.b_k)
        middle = (b.at(self.lines, 0), block.lines, block.some, v.length, block.depth, right, step)
        columns, out = b.minimum(v.n - column, self.width), b.at(box.target, column)
        fresh = b.eq(block.number, 0)
        mask = b.select(fresh, b.const(0, dt.int64), -1)
        length, height, zeros = box.sizes[3], box.height, b.at(self.zeros, 0)
        next_panel = self.fetched(box, block, lying, right)
        if not self.shape.first_tier:
            with b.if_(b.le(height, length)), b.for_(0, box.rows, length) as line, b.for_(0, length, height) as at:
                # The last tile begins early enough to be whole, and leaves out what was done.
                begin = b.minimum(at, length - height)
                row = line + begin
                source, target = b.at(box.source, b.load(self.places, row)), b.at(out, b.load(self.to, row))
                self.tiles.invoke(self.tiles.spaced, height, columns,
                                  (source, v.x_x, *middle, b.select(fresh, zeros, target), mask, target, v.to_x,
                                   at - begin, columns, next_panel.at.get(), next_panel.step))
                next_panel.at.set(b.at(next_panel.at.get(), next_panel.of_tile))
        with nullcontext() if self.shape.first_tier else b.else_(), b.for_(0, box.rows, self.shape.tall) as row:
            count = b.minimum(box.rows - row, self.shape.tall)
            self.tiles.invoke(self.tiles.listed, count, columns,
                              (box.source, b.at(self.places, row), *middle, b.select(fresh, zeros, out), mask, out,
                               b.at(self.to, row), count, columns, next_panel.at.get(), next_panel.step))
            next_panel.at.set(b.at(next_panel.at.get(), next_panel.of_tile))

    def fetched(self, box: _PlaceBox, block: _WindowBlock, lying: Scalar, right: Scalar) -> _Fetched:
        """What is fetched of the next panel during the tiles of one, which lies at `right`: packed, an even share for
        each tile; to be packed, a line of each of its rows, where these lie evenly spaced; else nothing."""
        b, v = self.b, self.v
        rows = b.and_(self.here, b.and_(b.eq(v.inner, v.k), b.eq(v.b_n, 1)))
        share = covering(b, b.const(self.width, dt.int64), covering(b, box.rows, self.shape.tall))
        nothing, line = (b.const(n, dt.int64) for n in (0, CACHES.line // self.dtype.size))

        def choose(packed: Scalar, by_rows: Scalar, otherwise: Scalar) -> Scalar:
            return b.select(self.packed, packed, b.select(rows, by_rows, otherwise))

        first = choose(b.at(right, panel_size(self.shape)), b.at(lying, self.width), right)
        return _Fetched(b.local(first), choose(share, v.b_k, nothing), choose(block.depth * share, line, nothing))

    # -- boxes ----------------------------------------------------------------------------------------------------
    def cover(self, images: Scalar, first: list[Scalar], work: Scalar, group: Scalar) -> None:
        """Copies what the windows of a box cover, with zeros around the images: all channels, or those of some groups
        from `group` on."""
        b, v = self.b, self.v
        z, y, x = (at * stride - before for at, stride, before in zip(
            first[1:], (v.stride_z, v.stride_y, v.stride_x), (v.before_z, v.before_y, v.before_x), strict=True))
        low = b.minimum(b.maximum(-x, 0), v.cover_x)
        high = b.maximum(b.minimum(v.size_x - x, v.cover_x), low)
        with b.for_(0, images) as n, b.for_(0, v.cover_z) as i, b.for_(0, v.cover_y) as j:
            at_z, at_y = z + i, y + j
            within = [b.and_(b.ge(at, 0), b.lt(at, size)) for at, size in ((at_z, v.size_z), (at_y, v.size_y))]
            valid = b.and_(*within)
            begin, end = (b.select(valid, at, v.cover_x) for at in (low, high))
            to = b.at(work, ((n * v.cover_z + i) * v.cover_y + j) * v.cover_x * v.together)
            row = ((first[0] + n) * v.size_z + at_z) * v.size_y + at_y
            source = b.at(v.x, (row * v.size_x + x) * v.channels)
            if self.shape.first_tier:
                self.pixels(to, source, (begin, end), group)
                return
            for lo, hi, pixels in ((0, begin, None), (begin, end, source), (end, v.cover_x, None)):
                with b.if_(b.eq(v.together, v.channels)):
                    self.stretch(to, lo * v.channels, hi * v.channels, pixels)
                with b.else_():
                    self.apart(to, lo, hi, pixels, group)

    def pixels(self, to: Scalar, source: Scalar, inside: tuple[Scalar, Scalar], group: Scalar) -> None:
        """Fills a line of pixels one by one, `inside` with those of `source`, else with zeros: all channels, or those
        of some groups from `group` on."""
        b, v = self.b, self.v
        whole = b.eq(v.together, v.channels)
        count = b.select(whole, 1, b.minimum(v.groups - group, v.held))
        first = b.select(whole, 0, group * v.together)
        with b.for_(0, count) as number, b.for_(0, v.cover_x) as pixel, b.for_(0, v.together, self.lanes) as n:
            valid = b.and_(b.ge(pixel, inside[0]), b.lt(pixel, inside[1]))
            left = v.together - n
            at = pixel * v.channels + first + number * v.together + n
            elements = b.load(source, at, self.lanes, b.first(b.select(valid, left, 0), self.lanes))
            b.store(to, number * v.x_g + pixel * v.together + n, elements, b.first(left, self.lanes))

    def apart(self, to: Scalar, begin: ScalarLike, end: Scalar, source: Scalar | None, group: Scalar) -> None:
        """Fills pixels of groups from `group` on, which lie apart, with those of `source`, or with zeros."""
        b, v = self.b, self.v
        # What is read next is fetched meanwhile: the next groups of the box, or the first ones of the box below.
        below = v.box_y * v.stride_y * v.size_x * v.channels - group * v.together
        ahead = b.select(b.lt(group + v.held, v.groups), v.held * v.together, below)
        count = b.minimum(v.groups - group, v.held)
        with b.for_(0, v.together, self.lanes) as n, b.for_(begin, end) as pixel:
            at_to = b.local(b.at(to, pixel * v.together + n))
            at_source = b.local(b.at(to if source is None else source, pixel * v.channels + group * v.together + n))
            with b.for_(count, 0, -1):
                if source is None:
                    b.store(at_to.get(), 0, b.const(0.0, self.zero))
                else:
                    b.prefetch(at_source.get(), ahead)
                    b.store(at_to.get(), 0, b.load(at_source.get(), 0, self.lanes))
                at_to.set(b.at(at_to.get(), v.x_g))
                at_source.set(b.at(at_source.get(), v.together))

    def stretch(self, to: Scalar, begin: ScalarLike, end: ScalarLike, source: Scalar | None) -> None:
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

    def table(self, sizes: Sequence[Scalar]) -> None:
        """Fills in the offsets of a box's places. The last is repeated to fill a tile."""
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


def _offset(at: Sequence[Scalar], steps: Sequence[Scalar]) -> Scalar:
    """The offset of a place from the first one."""
    return functools.reduce(lambda x, y: x + y, [index * step for index, step in zip(at, steps, strict=True)])
