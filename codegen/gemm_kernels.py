"""The kernels of matrix products in loop IR: which panels and tiles make up a unit of work, and in which order.

What they take and what they mean says `gemm.py`; micro-kernels are `gemm_tile.py`'s, packing is `gemm_pack.py`'s.
"""

from __future__ import annotations

import abc
import functools
from typing import NamedTuple

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.instructions import ScalarLike
from twofold.ir.scalar import Scalar

from .gemm_pack import HIGHEST, beginnings, dots, pack
from .gemm_shapes import (
    BLOCK,
    DIRECT,
    EPILOGUE_WORDS,
    FINISHED,
    FLAT_VECTORS,
    HEADER,
    HERE,
    PACKED,
    TILE_WORDS,
    TURNED,
    VECTORS,
    Tiling,
    block,
    most_packed,
    panel_width,
    square,
    summed,
    symbol,
    tiles_at_once,
    together,
    words,
)
from .gemm_tile import micro
from .loop import Kernel, LoopBuilder, LoopFunction, Pointer
from .loop_sizes import choose, covering, quotient
from .statements import Callee
from .target import CACHES
from .value_types import address, vector

__all__ = ["ProductKernel", "ProductPanel", "Unit", "UnitRows", "kernels", "pack_b", "pack_flat", "small"]

_FEW = 2  # panels of B for which packing such rows does not repay


def kernels(dtype: DType, shape: Tiling, part: str) -> dict[str, Kernel]:
    """The kernels of a key of PARTS, by name."""
    if part == "flat":
        packing = pack(shape, dtype)
        return {"flat": _Flat(dtype, shape, packing).recorded(), "pack_flat": pack_flat(dtype, shape, packing)}
    held = together(dtype)
    packing = pack(shape, dtype, held)
    begin = beginnings(shape) if held == 4 else None
    tall = _Tall(dtype, shape, packing, begin).recorded()
    return {"tall": tall, "pack_b": pack_b(dtype, shape, packing, begin), "small": small(dtype, shape, tall)}


def _pack_panel(b: LoopBuilder, packing: LoopFunction, begin: LoopFunction | None, panel: Scalar, width: int,
                *what: Scalar) -> None:
    """Packs a panel of B from what `pack` takes after the width."""
    if begin is None:
        b.invoke(packing, panel, width, *what)
        return
    first = b.at(panel, width)
    b.invoke(packing, first, width, *what, b.const(0, dt.int32))
    b.invoke(begin, first, width, what[-1])


def pack_b(dtype: DType, shape: Tiling, packing: LoopFunction, begin: LoopFunction | None) -> Kernel:
    """Packs B for PACKED."""
    return _packs("pack_b", dtype, packing, begin, panel_width(shape, False), block(dtype), words(dtype))


def pack_flat(dtype: DType, shape: Tiling, packing: LoopFunction) -> Kernel:
    """The same for products of one row, whose panels are wider."""
    return _packs("pack_flat", dtype, packing, None, panel_width(shape, True), BLOCK, BLOCK)


def _packs(name: str, dtype: DType, packing: LoopFunction, begin: LoopFunction | None, width: int, size: int,
           held: int) -> Kernel:
    """The kernel that packs panels of a width: blocks of `size` inner indices, each of which takes `held` words of a
    column."""
    b = LoopBuilder(symbol(name, dtype))
    x = _Operands(b, dtype)
    count, panels = _blocks(b, x.k, size), covering(b, x.n, width)
    with b.for_(b.start, b.stop) as number:
        of_batch = quotient(b, number, panels)
        batch = quotient(b, of_batch, count)
        column, first = (number - of_batch * panels) * width, (of_batch - batch * count) * size
        _, at_b, _ = x.seek(batch)
        source = b.at(x.b, at_b + (first * x.b_k + column * x.b_n))
        _pack_panel(b, packing, begin, b.at(x.c, number * (held * width)), width, source, x.b_n, x.b_k,
                    b.minimum(x.n - column, width), b.minimum(x.k - first, size))
    return b.finish()


def small(dtype: DType, shape: Tiling, tall: Kernel) -> Kernel:
    """All of one small product, by `tall`."""
    b = LoopBuilder(symbol("small", dtype))
    words = b.scratch(dt.int64, HEADER)
    out, left, right, m, n, k = (b.integer() for _ in range(6))
    rows = tiles_at_once(shape, dtype) * shape.tall
    mode = DIRECT if shape.masks and summed(dtype) is dtype else HERE  # B is too small to be worth packing
    words_of_call: tuple[Scalar | int, ...] = (out, left, right, mode, m, n, k, n, k, 1, n, 1, rows, n, 0)
    for i, word in enumerate(words_of_call):
        b.store(words, i, word)
    b.fail(b.call(tall, 0, covering(b, m, rows), words))
    return b.finish()


def _blocks(b: LoopBuilder, k: Scalar, block: int) -> Scalar:
    """How many blocks of the inner dimension there are; one where it is empty, so that C is written."""
    return b.select(b.eq(k, 0), 1, covering(b, k, block))


class _Operands:
    """The arguments of `tall`, `flat` and `pack_b`."""

    def __init__(self, b: LoopBuilder, dtype: DType) -> None:
        self.builder = b
        self.c, self.a, self.b = b.pointer("c", summed(dtype)), b.pointer("a", dtype), b.pointer("b", dtype)
        how, self.m, self.n, self.k, self.ldc = (b.integer() for _ in range(5))
        self.mode, self.finished = b.and_(how, FINISHED - 1), b.ne(b.and_(how, FINISHED), 0)
        self.a_m, self.a_k, self.b_k, self.b_n = (b.integer() for _ in range(4))
        self.rows, self.columns, self.rank = (b.integer() for _ in range(3))

    def seek(self, batch: Scalar) -> list[Scalar]:
        """The offsets of A, B and C for product number `batch`."""
        b = self.builder
        number, offsets = b.local(batch), [b.local(0) for _ in range(3)]
        with b.for_(self.rank - 1, -1, -1) as dim:
            length, *steps = (b.load(b.args, dim * 4 + (HEADER + n)) for n in range(4))
            rest = quotient(b, number.get(), length)
            index = number.get() - rest * length
            for offset, step in zip(offsets, steps, strict=True):
                offset.set(offset.get() + index * step)
            number.set(rest)
        return [offset.get() for offset in offsets]


class Unit(NamedTuple):
    """A unit of work: some rows and columns of one product of the batch.

    out: C above it. a: its rows of A. at_b: the offset of the product's B. batch: the product's number. top: its first
    row. edge, end: its columns. rows: how many. below: the rows of A that are needed after it.
    """

    out: Scalar
    a: Scalar
    at_b: Scalar
    batch: Scalar
    top: Scalar
    edge: Scalar
    end: Scalar
    rows: Scalar
    below: Scalar


class UnitRows(NamedTuple):
    """The rows of a unit, for one block of the inner dimension.

    source: where they lie. depth: of the block. fresh: whether it is the first one. last: whether it is the last one.
    after: where the block lies that is needed next.
    """

    source: Scalar
    depth: Scalar
    fresh: Scalar
    last: Scalar
    after: Scalar


class ProductPanel(NamedTuple):
    """A panel of B.

    source: where it lies in B. base: where it is read. ldb: from one inner index to the next. column: its first one.
    columns: how many. out: C above it.
    """

    source: Scalar
    base: Scalar
    ldb: Scalar
    column: Scalar
    columns: Scalar
    out: Scalar


class ProductKernel(abc.ABC):
    """A kernel that computes units of products, being recorded."""

    def __init__(self, dtype: DType, shape: Tiling, packing: LoopFunction, begin: LoopFunction | None,
                 name: str) -> None:
        self.dtype, self.shape, self.compute, self.packing, self.begin = dtype, shape, summed(dtype), packing, begin
        self.b = LoopBuilder(symbol(name, dtype))
        self.x = _Operands(self.b, dtype)
        self.plain = self.compute is dtype  # read as it lies
        self.held = together(dtype) if name != "flat" else 1
        self.block_size = block(dtype) if self.held > 1 else BLOCK
        self.block_words = words(dtype) if self.held > 1 else BLOCK  # of a panel, for one column
        self.width = panel_width(shape, name == "flat")
        self.zeros: Pointer
        self.left: Scalar  # packed rows of A
        self.right: Scalar  # a packed panel of B

    def recorded(self) -> Kernel:
        """The finished kernel."""
        b = self.b
        self.zeros = b.scratch(self.compute, self.width)
        for n in range(0, self.width, self.shape.lanes):
            b.store(self.zeros, n, b.const(0.0, vector(self.compute, self.shape.lanes)))
        self.sizes()
        need, most = self.room_for_rows()
        panel = b.select(self.here, self.block_words * self.width, b.const(0, dt.int64))
        with b.room(self.compute, need + panel, most + self.block_words * self.width) as self.left:
            self.right = b.at(self.left, need)
            with b.for_(b.start, b.select(self.empty, b.start, b.stop)) as number:
                self.unit(number)
        return b.finish()

    def sizes(self) -> None:
        """Computes what is the same for all units."""
        b, x = self.b, self.x
        self.count = _blocks(b, x.k, self.block_size)
        self.empty = b.eq(x.m * x.n, 0)  # C has no elements: nothing to do
        self.row_units, self.column_units = (
            quotient(b, size + (unit - 1), b.select(self.empty, 1, unit))
            for size, unit in ((x.m, x.rows), (x.n, x.columns)))
        self.panels = covering(b, x.n, self.width)
        self.size_of_b = self.panels * self.count * (self.block_words * self.width)  # of one packed B
        self.direct, self.here, self.packed = (b.eq(x.mode, mode) for mode in (DIRECT, HERE, PACKED))

    # -- epilogues, of products of any height ----------------------------------------------------------------------
    def prepare_epilogue(self) -> None:
        """Makes ready what an epilogue needs, where there is one."""
        b, x = self.b, self.x
        self.own_tile = b.scratch(self.compute, self.shape.tall * self.width)  # where C has no memory
        self.nowhere = b.and_(x.finished, b.eq(x.ldc, 0))
        self.words_of_tile = b.scratch(dt.int64, EPILOGUE_WORDS)
        self.behind = x.rank * 4 + HEADER
        with b.if_(x.finished), b.for_(0, b.load(b.args, self.behind + 1)) as n:
            b.store(self.words_of_tile, n + TILE_WORDS, b.load(b.args, self.behind + 2 + n))

    def tile_of_c(self, panel: ProductPanel, row: Scalar) -> tuple[Scalar, Scalar]:
        """Where the tile of C lies that begins at a row, and the distance of its rows."""
        b, x = self.b, self.x
        return (b.select(self.nowhere, b.at(self.own_tile, 0), b.at(panel.out, row * x.ldc)),
                b.select(self.nowhere, self.width, x.ldc))

    def finish(self, unit: Unit, of: UnitRows, panel: ProductPanel, tile: tuple[Scalar, Scalar], row: Scalar,
               height: Scalar) -> None:
        """Runs the epilogue on a tile, `tile_of_c`, whose sums are complete, if there is one."""
        b, (place, ldc) = self.b, tile
        with b.if_(b.and_(self.x.finished, of.last)):
            b.store(b.view(self.words_of_tile, address(self.compute)), 0, place)
            for n, word in enumerate((ldc, unit.batch, unit.top + row, panel.column, panel.columns), start=1):
                b.store(self.words_of_tile, n, word)
            b.call(Callee(b.load(b.args, self.behind)), 0, height, self.words_of_tile)

    # -- what differs ----------------------------------------------------------------------------------------------
    @abc.abstractmethod
    def room_for_rows(self) -> tuple[Scalar, int]:
        """Elements of A that are packed at once: in this run, and at most."""

    def below(self, a: Scalar, top: Scalar, rows: Scalar, batch: Scalar) -> Scalar:
        """The rows of A that are needed after those at `a`, where that is told ahead."""
        return a

    @abc.abstractmethod
    def rows(self, unit: Unit, of: UnitRows) -> None:
        """Packs the rows of a unit."""

    @abc.abstractmethod
    def columns(self, unit: Unit, of: UnitRows, panel: ProductPanel) -> None:
        """Computes C beside a panel."""

    def unit(self, number: Scalar) -> None:
        """One unit of work."""
        b, x = self.b, self.x
        of_batch = quotient(b, number, self.column_units)
        batch = quotient(b, of_batch, self.row_units)
        top, edge = (of_batch - batch * self.row_units) * x.rows, (number - of_batch * self.column_units) * x.columns
        at_a, at_b, at_c = x.seek(batch)
        a, rows = b.at(x.a, at_a + top * x.a_m), b.minimum(x.m - top, x.rows)
        below = self.below(a, top, rows, batch)
        unit = Unit(b.at(x.c, at_c + top * x.ldc), a, at_b, batch, top, edge, b.minimum(edge + x.columns, x.n), rows,
                     below)
        with b.for_(0, self.count) as index:
            self.block(unit, index)

    def block(self, unit: Unit, index: Scalar) -> None:
        """One block of the inner dimension."""
        b, x = self.b, self.x
        first = index * self.block_size
        here = b.at(unit.a, first * x.a_k)
        last = b.eq(index + 1, self.count)
        after = b.select(last, unit.below, b.at(here, x.a_k * self.block_size))
        of = UnitRows(here, b.minimum(x.k - first, self.block_size), b.eq(index, 0), last, after)
        self.rows(unit, of)
        source = b.at(x.b, unit.at_b + first * x.b_k)
        ready = unit.batch * self.size_of_b + index * self.panels * (self.block_words * self.width)
        packed = b.at(b.view(x.b, self.compute), ready)
        with b.for_(unit.edge, unit.end, self.width) as column:
            self.columns(unit, of, self.panel(unit, of, column, source, packed))

    def panel(self, unit: Unit, of: UnitRows, column: Scalar, source: Scalar, packed: Scalar) -> ProductPanel:
        """A panel of B, packed here if it has to be."""
        b, x = self.b, self.x
        from_, before = b.at(source, column * x.b_n), b.at(packed, column * self.block_words)
        columns = b.minimum(unit.end - column, self.width)
        with b.if_(self.here):
            _pack_panel(b, self.packing, self.begin, self.right, self.width, from_, x.b_n, x.b_k, columns, of.depth)
        base, ldb = b.select(self.packed, before, self.right), b.const(self.width, dt.int64)
        if self.held == 4:
            base = b.at(base, self.width)
        if self.plain:
            base, ldb = b.select(self.direct, from_, base), b.select(self.direct, x.b_k, ldb)
        return ProductPanel(from_, base, ldb, column, columns, b.at(unit.out, column))


class _Flat(ProductKernel):
    """Products of one row."""

    def __init__(self, dtype: DType, shape: Tiling, packing: LoopFunction) -> None:
        super().__init__(dtype, shape, packing, None, "flat")
        self.strip = micro(shape, self.compute, 1, FLAT_VECTORS)
        self.dots = dots(shape, dtype, FLAT_VECTORS)

    def room_for_rows(self) -> tuple[Scalar, int]:
        return self.b.const(BLOCK, dt.int64), BLOCK

    def rows(self, unit: Unit, of: UnitRows) -> None:
        """The row becomes a column of a panel, all of it neighbours."""
        self.b.invoke(self.packing, self.left, BLOCK, of.source, self.x.a_k, 0, of.depth, 1)

    def columns(self, unit: Unit, of: UnitRows, panel: ProductPanel) -> None:
        b, x = self.b, self.x
        old = b.select(of.fresh, b.at(self.zeros, 0), panel.out)
        with b.if_(b.eq(x.mode, TURNED)):
            b.invoke(self.dots, self.left, panel.source, x.b_n, old, panel.out, of.depth, panel.columns)
        with b.else_():
            b.invoke(self.strip, self.left, 1, 1, panel.base, panel.ldb, old, 0, panel.out, 0, of.depth, 1,
                     panel.columns, panel.base)


class _Tall(ProductKernel):
    """Products of any height."""

    def __init__(self, dtype: DType, shape: Tiling, packing: LoopFunction, begin: LoopFunction | None) -> None:
        super().__init__(dtype, shape, packing, begin, "tall")
        self.tiles = {rows: micro(shape, self.compute, rows, VECTORS, held=self.held) for rows in shape.heights}
        self.narrow = micro(shape, self.compute, shape.tall, 1, held=self.held)
        self.whole = micro(shape, self.compute, shape.tall, VECTORS, packed=True, held=self.held)

    def sizes(self) -> None:
        super().sizes()
        b, x = self.b, self.x
        self.prepare_epilogue()
        self.scattered = b.not_(b.or_(b.eq(x.a_m, 1), b.eq(x.a_k, 1)))
        whole = square(self.shape, self.dtype)  # packing turns squares, which may reach beyond the last inner index
        depth = b.minimum(b.and_(x.k + (whole - 1), -whole), self.block_size)
        self.panel_size = self.words(depth) * self.shape.depth
        # Micro-kernels read A as it lies where rows or inner indices are neighbours. But rows that far apart share few
        # places of the first cache, so that packing them repays when several panels read them.
        self.lies: Scalar | None = None
        if self.plain:
            clash = b.eq(b.and_(x.a_m, CACHES.clash // self.dtype.size - 1), 0)
            packs = b.and_(clash, b.lt(_FEW * self.width, x.columns))
            self.lies = b.and_(b.not_(self.packed), b.or_(b.eq(x.a_m, 1), b.and_(b.eq(x.a_k, 1), b.not_(packs))))

    def words(self, depth: Scalar) -> Scalar:
        """The words of a panel for so many inner indices, of one row."""
        return (depth + (self.held - 1)) >> self.held.bit_length() - 1 if self.held > 1 else depth

    def room_for_rows(self) -> tuple[Scalar, int]:
        tiles = covering(self.b, self.b.minimum(self.x.m, self.x.rows), self.shape.tall)
        return tiles * self.panel_size, most_packed(self.shape, self.dtype)

    def below(self, a: Scalar, top: Scalar, rows: Scalar, batch: Scalar) -> Scalar:
        b, x = self.b, self.x
        follows, _, _ = x.seek(batch + 1)
        return b.select(b.lt(top + rows, x.m), b.at(a, rows * x.a_m), b.at(x.a, follows))

    def packed_at(self, row: Scalar) -> Scalar:
        """Where the packed tile from `row` on lies."""
        return self.b.at(self.left, quotient(self.b, row, self.shape.tall) * self.panel_size)

    def is_whole(self, height: Scalar, narrow: Scalar) -> Scalar:
        """Whether a micro-kernel reads just so many rows, in `narrow` panels or others."""
        b = self.b
        low = functools.reduce(b.or_, [b.eq(height, h) for h in self.shape.heights[1:]])
        return b.or_(b.eq(height, self.shape.tall), b.and_(low, b.not_(narrow)))

    def rows(self, unit: Unit, of: UnitRows) -> None:
        """Packs tile after tile of A; if it is read as it lies only the last one, where that is not whole."""
        b, x, tile = self.b, self.x, self.shape.tall
        start: Scalar | int = 0
        rest = b.and_(unit.end - unit.edge, self.width - 1)
        narrow = b.and_(b.lt(0, rest), b.le(rest, self.shape.lanes))
        if self.lies is not None:
            whole = quotient(b, unit.rows, tile) * tile
            whole = b.select(self.is_whole(unit.rows - whole, narrow), unit.rows, whole)
            start = b.select(self.lies, whole, 0)
        with b.for_(start, unit.rows, tile) as row:
            panel, height = self.packed_at(row), b.minimum(unit.rows - row, tile)
            self.clear(panel, height, narrow, of.depth)
            source = b.at(of.source, row * x.a_m)
            flipped = [b.const(HIGHEST, dt.int32)] if self.held == 4 else []
            b.invoke(self.packing, panel, self.shape.depth, source, x.a_m, x.a_k, height, of.depth, *flipped)

    def clear(self, panel: Scalar, height: Scalar, narrow: Scalar, depth: Scalar) -> None:
        """Makes rows of a panel 0 that packing leaves as they are, and micro-kernels read (a narrow one all of them):
        arithmetic on what happens to lie there, such as subnormal numbers, may take a hundred times as long."""
        b, lanes, width = self.b, self.shape.lanes, self.shape.depth
        zero = b.const(0.0, vector(self.compute, lanes))
        cases = [(b.and_(b.lt(height, self.shape.tall), self.scattered), 0),
                 (b.and_(narrow, b.le(height, width - lanes)), lanes)]
        for partial, first in cases if width > lanes else cases[:1]:
            with b.if_(partial), b.for_(0, self.words(depth)) as t:
                for n in range(first, width, lanes):
                    b.store(panel, t * width + n, zero)

    def columns(self, unit: Unit, of: UnitRows, panel: ProductPanel) -> None:
        """The tiles of C beside one panel of B."""
        b = self.b
        step = b.select(self.packed, self.block_words * self.width, b.const(0, dt.int64))
        if self.plain:
            step = b.select(self.direct, self.width, step)
        following = b.at(panel.base, step)
        share = self.share(unit, of, panel)
        with b.for_(0, unit.rows, self.shape.tall) as row:
            height = b.minimum(unit.rows - row, self.shape.tall)
            out, ldc = self.tile_of_c(panel, row)
            old, ldo = b.select(of.fresh, b.at(self.zeros, 0), out), b.select(of.fresh, 0, ldc)
            self.fetch(of, row, height, *share)
            a, a_m, a_k = self.tile_of_a(of, panel, row, height)
            arguments = (a, a_m, a_k, panel.base, panel.ldb, old, ldo, out, ldc, self.words(of.depth), height,
                         panel.columns, following)
            cases = [(panel.columns, self.shape.lanes, self.narrow)]
            cases += [(height, rows, self.tiles[rows]) for rows in sorted(self.shape.heights)[:-1]]
            invokes = [(value, limit, functools.partial(b.invoke, function, *arguments))
                       for value, limit, function in cases]
            with b.if_(b.and_(self.packed, b.and_(b.eq(height, self.shape.tall), b.eq(panel.columns, self.width)))):
                b.invoke(self.whole, *arguments)
            with b.else_():
                choose(b, invokes, functools.partial(b.invoke, self.tiles[self.shape.tall], *arguments))
            self.finish(unit, of, panel, (out, ldc), row, height)

    def tile_of_a(self, of: UnitRows, panel: ProductPanel, row: Scalar,
                  height: Scalar) -> tuple[Scalar, ScalarLike, ScalarLike]:
        """Where a tile of A is read, and the strides from row to row and along the inner dimension."""
        b, x = self.b, self.x
        packed = self.packed_at(row)
        if self.lies is None:
            return packed, 1, self.shape.depth
        lies = b.and_(self.lies, self.is_whole(height, b.le(panel.columns, self.shape.lanes)))
        return (b.select(lies, b.at(of.source, row * x.a_m), packed), b.select(lies, x.a_m, 1),
                b.select(lies, x.a_k, self.shape.depth))

    def share(self, unit: Unit, of: UnitRows, panel: ProductPanel) -> tuple[Scalar, Scalar]:
        """The first of the inner indices of the next block of A that are fetched during one panel, and how many."""
        b = self.b
        panels = covering(b, unit.end - unit.edge, self.width)
        number, count = quotient(b, panel.column - unit.edge, self.width), covering(b, of.depth, panels)
        return number * count, count

    def fetch(self, of: UnitRows, row: Scalar, height: Scalar, first: Scalar, count: Scalar) -> None:
        """Fetches what a panel and the tile from `row` on have of the next block of A."""
        b, x = self.b, self.x
        start = b.at(of.after, row * x.a_m + first * x.a_k)
        with b.if_(b.eq(x.a_k, 1)), b.for_(0, height) as r:
            from_ = b.at(start, r * x.a_m)
            with b.for_(0, count, CACHES.line // self.dtype.size) as t:
                b.prefetch(from_, t)
        with b.if_(b.eq(x.a_m, 1)), b.for_(0, count) as t:
            b.prefetch(start, t * x.a_k)
