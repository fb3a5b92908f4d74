"""`filters`, the kernel of gradients for filters: a line's elements by outputs in registers, along the places; see
`conv.py`.

Lines are covered by whole tiles, from the largest on as they fit, so that nothing beyond a line is read. The elements
of short lines are put together instead, and in the first tier those of all lines.
"""

from __future__ import annotations

import functools
from contextlib import nullcontext
from typing import NamedTuple

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from .conv_shapes import FILTERS, filter_heights, symbol
from .conv_tile import arguments, by_width, filters_tile, line_start, zeros
from .gemm_pack import pack
from .gemm_shapes import BLOCK, VECTORS, Tiling, panel_width
from .loop import Kernel, LoopBuilder, LoopFunction
from .loop_sizes import covering, parted, share

__all__ = ["filters"]

_SCATTERED = 9  # elements of short lines: less than two tiles, and few enough for offsets to stay in registers


def filters(dtype: DType, shape: Tiling, vectors: int) -> Kernel:
    """The kernel, whose tiles have at most so many vectors of columns."""
    return _Filters(dtype, shape, vectors).recorded()


class _FilterPanel(NamedTuple):
    """The operands that the tiles beside one panel of B have in common.

    rows: places, depth, where the panel lies and the step from one of its rows to the next. out: the result above it.
    columns: how many. fresh: whether the result holds nothing yet. step: from a row of what it holds to the next.
    """

    rows: tuple[Scalar, ...]
    out: Scalar
    columns: Scalar
    fresh: Scalar
    step: Scalar


class _FilterUnit(NamedTuple):
    """A unit of work: some stretches of lines by some panels of B, of one share and group.

    x, b, out: where the group's begin. stretches, panels: from the first to the one after the last.
    """

    x: Scalar
    b: Scalar
    out: Scalar
    stretches: tuple[Scalar, Scalar]
    panels: tuple[Scalar, Scalar]


class _Filters:
    """The kernel being recorded; `v` are its arguments."""

    def __init__(self, dtype: DType, shape: Tiling, vectors: int) -> None:
        self.shape, self.lanes, self.width = shape, shape.lanes, panel_width(shape, False)
        self.b = b = LoopBuilder(symbol(f"filters_{vectors}", dtype))
        self.v = arguments(b, dtype, FILTERS)
        self.pack = pack(shape, dtype)
        widths = [vectors] if shape.first_tier else list(range(1, vectors + 1))
        self.tiles = [] if shape.first_tier else [
            [(rows, filters_tile(shape, dtype, rows, wide, False)) for rows in filter_heights(shape, wide)]
            for wide in widths]
        self.together = shape.tall if shape.first_tier else _SCATTERED  # elements of short lines that a tile takes
        self.scattered = [filters_tile(shape, dtype, self.together, wide, True) for wide in widths]
        self.places, self.right = b.scratch(dt.int64, BLOCK), b.scratch(dtype, BLOCK * self.width)
        self.offsets, self.zeros = b.scratch(dt.int64, self.together), zeros(b, dtype, shape)
        self.direct = b.le(self.v.n, self.width if shape.masks else 0)
        self.height = filter_heights(shape, VECTORS)[0]

    def recorded(self) -> Kernel:
        """The finished kernel."""
        b, v = self.b, self.v
        with b.for_(b.start, b.stop) as unit:
            rest, piece = parted(b, unit, v.pieces)
            rest, split = parted(b, rest, v.splits)
            number, group = parted(b, rest, v.groups)
            of = _FilterUnit(b.at(v.x, group * v.inner), b.at(v.b, group * v.n),
                             b.at(v.out, number * v.share + group * v.n), share(b, split, v.lines * v.cuts, v.splits),
                             share(b, piece, covering(b, v.n, self.width), v.pieces))
            first, last = share(b, number, v.places, v.shares)
            end = b.select(b.lt(first, last), last, first + 1)  # a block without places writes zeros
            with b.for_(first, end, BLOCK) as begin:
                self.block(of, begin, b.minimum(last - begin, BLOCK), b.eq(begin, first))
        return b.finish()

    def block(self, of: _FilterUnit, begin: Scalar, depth: Scalar, fresh: Scalar) -> None:
        """The tiles of a unit for `depth` places from number `begin` on."""
        b, v = self.b, self.v
        with b.if_(b.gt(depth, 0)):
            self.table(begin, depth)
        with b.for_(*of.panels) as number:
            panel = self.panel(of, begin, depth, number * self.width, fresh)
            with nullcontext() if self.shape.first_tier else b.if_(b.le(v.length, _SCATTERED)):
                self.gathered(of, panel)
            if not self.shape.first_tier:
                with b.else_(), b.for_(*of.stretches) as stretch:
                    self.tiled(of, stretch, panel)

    def panel(self, of: _FilterUnit, begin: Scalar, depth: Scalar, column: Scalar, fresh: Scalar) -> _FilterPanel:
        """The panel of B from `column` on, packed if it has to be."""
        b, v = self.b, self.v
        columns, source = b.minimum(v.n - column, self.width), b.at(of.b, begin * v.ldb + column)
        right = b.at(self.right, 0)
        with b.if_(b.not_(self.direct)):
            b.invoke(self.pack, right, self.width, source, 1, v.ldb, columns, depth)
        rows = (b.at(self.places, 0), depth, b.select(self.direct, source, right),
                b.select(self.direct, v.ldb, self.width))
        return _FilterPanel(rows, b.at(of.out, column), columns, fresh, b.select(fresh, 0, v.ldo))

    def target(self, panel: _FilterPanel, row: Scalar) -> tuple[Scalar, ...]:
        """The operands of tiles for the rows of the result from `row` on."""
        out = self.b.at(panel.out, row * self.v.ldo)
        return self.b.select(panel.fresh, self.b.at(self.zeros, 0), out), panel.step, out, self.v.ldo, panel.columns

    def tiled(self, of: _FilterUnit, number: Scalar, panel: _FilterPanel) -> None:
        """The tiles of a stretch beside one panel."""
        b, v = self.b, self.v
        line, begin, end = self.stretch(number)
        x, top = b.at(of.x, line_start(b, v, line)), line * v.length

        def tiles(functions: list[tuple[int, LoopFunction]]) -> None:
            done = b.local(begin)
            for rows, function in functions:
                with b.for_(done.get(), end - (rows - 1), rows) as at:
                    b.invoke(function, b.at(x, at), *panel.rows, *self.target(panel, top + at))
                    done.set(at + rows)
        by_width(b, self.lanes, panel.columns, [functools.partial(tiles, functions) for functions in self.tiles])

    def stretch(self, number: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """The line of a stretch, and its elements from the first one to the one after the last: of whole tiles, but
        for what is left of a line."""
        b, v = self.b, self.v
        line, cut = parted(b, number, v.cuts)
        first, last = share(b, cut, covering(b, v.length, self.height), v.cuts)
        return line, first * self.height, b.minimum(last * self.height, v.length)

    def start(self, number: Scalar) -> Scalar:
        """The number of the first element of a stretch among those of all lines."""
        line, begin, _ = self.stretch(number)
        return line * self.v.length + begin

    def gathered(self, of: _FilterUnit, panel: _FilterPanel) -> None:
        """All tiles of lines whose elements are put together."""
        b = self.b
        first, end = (self.start(number) for number in of.stretches)
        with b.for_(first, end, self.together) as top:
            self.scatter(top, end)
            operands = (of.x, *panel.rows, *self.target(panel, top), b.at(self.offsets, 0), end - top)
            by_width(b, self.lanes, panel.columns, [functools.partial(b.invoke, f, *operands) for f in self.scattered])

    def scatter(self, top: Scalar, end: Scalar) -> None:
        """Fills in the offsets of the elements of lines from number `top` on; the last one's for those beyond."""
        b, v = self.b, self.v
        line, at = (b.local(x) for x in parted(b, top, v.length))
        start = b.local(line_start(b, v, line.get()))
        with b.for_(0, self.together) as n:
            b.store(self.offsets, n, start.get() + at.get())
            with b.if_(b.lt(top + n + 1, end)):
                at.set(at.get() + 1)
                with b.if_(b.eq(at.get(), v.length)):
                    at.set(0)
                    line.set(line.get() + 1)
                    start.set(line_start(b, v, line.get()))

    def table(self, begin: Scalar, depth: Scalar) -> None:
        """Fills in the offsets of `depth` places from number `begin` on."""
        b, v = self.b, self.v
        rest, first_x = parted(b, begin, v.out_x)
        rest, first_y = parted(b, rest, v.out_y)
        first_image, first_z = parted(b, rest, v.out_z)
        x, y, z, image = (b.local(at) for at in (first_x, first_y, first_z, first_image))
        at = b.local(first_x * v.x_x + first_y * v.x_y + first_z * v.x_z + first_image * v.x_n)
        with b.for_(0, depth) as n:
            b.store(self.places, n, at.get())
            at.set(at.get() + v.x_x)
            x.set(x.get() + 1)
            with b.if_(b.eq(x.get(), v.out_x)):  # on to the next line
                x.set(0)
                y.set(y.get() + 1)
                with b.if_(b.eq(y.get(), v.out_y)):
                    y.set(0)
                    z.set(z.get() + 1)
                    with b.if_(b.eq(z.get(), v.out_z)):
                        z.set(0)
                        image.set(image.get() + 1)
                at.set(y.get() * v.x_y + z.get() * v.x_z + image.get() * v.x_n)
