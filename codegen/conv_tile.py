"""The parts that kernels of convolutions (`conv_forward.py`, `conv_filters.py`) are recorded with: tiles, arguments.

A *tile* of the result is kept in registers, rows by vectors of columns, and its sums take the products of a block in
order. What its rows are, and where their elements lie, differs: `forward_tile` has places for rows and goes along the
lines of windows; `filters_tile` has elements of lines for rows and goes along places.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.instructions import ScalarLike
from twofold.ir.scalar import Scalar

from .conv_shapes import forward_heights
from .gemm_shapes import BLOCK, Tiling, panel_width
from .gemm_tile import multiply_add, row_at, while_below
from .loop import BlockBuilder, Cell, FunctionBuilder, LoopBuilder, LoopFunction, Pointer
from .loop_sizes import choose, covering, parted, share
from .value_types import address, vector

__all__ = ["Arguments", "arguments", "each_unit", "zeros", "line_start", "by_width", "taps_inside", "are_zeros",
           "ForwardTiles", "forward_tile", "filters_tile", "MOST_LINES"]

MOST_LINES = BLOCK + 1  # of a window, that a block of its elements lies in
_MEMORY = ("out", "x", "b", "work")
# Columns of a line that a pass takes, by the vectors of a tile: few registers in use leave room for more.
_UNROLLED = {1: (4, 1), 2: (1,)}


class Arguments(SimpleNamespace):
    """The arguments of a kernel by their names, which `conv_shapes.py` explains: memory, and integers."""

    out: Pointer
    x: Pointer
    b: Pointer
    work: Pointer

    def __getattr__(self, name: str) -> Scalar:
        raise AttributeError(f"the kernel has no argument {name}")


def arguments(b: LoopBuilder, dtype: DType, words: Sequence[str]) -> Arguments:
    """The next arguments of a kernel."""
    return Arguments(**{w: b.pointer(w, dtype) if w in _MEMORY else b.integer() for w in words})


@contextmanager
def each_unit(b: LoopBuilder, v: Arguments) -> Iterator[tuple[Scalar, Scalar, Scalar]]:
    """Records what is done for each unit of the parts that the range numbers: the unit, the first one of its part, and
    the work memory of that."""
    with b.for_(b.start, b.stop) as part:
        first, last = share(b, part, v.units, v.parts)
        work = b.at(v.work, part * v.room)
        with b.for_(first, last) as unit:
            yield unit, first, work


def zeros(b: BlockBuilder, dtype: DType, shape: Tiling) -> Pointer:
    """A row of zeros as wide as a panel, with which a new result begins."""
    row = b.scratch(dtype, panel_width(shape, False))
    for n in range(0, row.size, shape.lanes):
        b.store(row, n, b.const(0.0, vector(dtype, shape.lanes)))
    return row


def line_start(b: BlockBuilder, v: Arguments, number: Scalar) -> Scalar:
    """Where line `number` of a window begins, in elements; `v` are the arguments."""
    rest, x = parted(b, number, v.lines_x)
    z, y = parted(b, rest, v.lines_y)
    return z * v.line_z + y * v.line_y + x * v.line_x


def by_width(b: BlockBuilder, lanes: int, columns: Scalar, records: Sequence[Callable[[], None]]) -> None:
    """Records what depends on how many vectors so many columns take: `records`, for one vector and more."""
    *narrow, widest = [(columns, (n + 1) * lanes, record) for n, record in enumerate(records)]
    choose(b, narrow, widest[2])


def taps_inside(b: BlockBuilder, first: Scalar, taps: Scalar, step: Scalar, size: Scalar) -> tuple[Scalar, Scalar]:
    """The taps inside of an image of a window that begins at pixel `first`, along an axis: from the first to the one
    after the last."""
    begin = b.minimum(covering(b, b.maximum(-first, 0), step), taps)
    return begin, b.maximum(b.minimum(covering(b, b.maximum(size - first, 0), step), taps), begin)


def are_zeros(b: BlockBuilder, dtype: DType, numbers: Scalar, count: Scalar) -> Scalar:
    """Whether some numbers, each of which is 0 or NaN, are all 0."""
    total = b.local(0.0, dtype)
    with b.for_(0, count) as n:
        total.set(total.get() + b.load(numbers, n))
    return b.eq(total.get(), 0.0)


class ForwardTiles:
    """The micro-kernels `forward_tile` of all heights, of at most so many vectors."""

    def __init__(self, b: BlockBuilder, dtype: DType, shape: Tiling, vectors: int, skips: bool = False) -> None:
        self.b, self.lanes, self.tall = b, shape.lanes, shape.tall
        widths = [vectors] if shape.first_tier else list(range(1, vectors + 1))
        heights, even = forward_heights(shape)
        self.listed, self.spaced = [
            [{rows: forward_tile(shape, dtype, rows, wide, spaced, skips) for rows in of} for wide in widths]
            for of, spaced in ((heights, False), (even, True))]

    def invoke(self, functions: list[dict[int, LoopFunction]], height: Scalar, columns: Scalar,
               operands: tuple[ScalarLike, ...]) -> None:
        """Invokes the one of `listed` or `spaced` that does the least for a tile of so many rows and columns."""
        b = self.b

        def of_width(of_heights: dict[int, LoopFunction]) -> None:
            *lower, tallest = [(height, rows, functools.partial(b.invoke, function, *operands))
                               for rows, function in of_heights.items()]
            choose(b, lower, tallest[2])

        by_width(b, self.lanes, columns, [functools.partial(of_width, of_heights) for of_heights in functions])

    def height(self, length: Scalar) -> Scalar:
        """The tiles that part evenly spaced rows evenly: how many of these one takes, if that many there are."""
        b = self.b
        even = covering(b, length, covering(b, length, self.tall))
        height = b.const(self.tall, dt.int64)
        for rows in sorted(self.spaced[0], reverse=True)[1:]:
            height = b.select(b.le(even, rows), rows, height)
        return height


class _Columns:
    """The columns of a tile: vectors, of which only the first `n` elements are there."""

    def __init__(self, f: BlockBuilder, tiling: Tiling, dtype: DType, vectors: int, n: Scalar) -> None:
        self.f, self.lanes, self.reads_masked = f, tiling.lanes, tiling.masks
        self.masks = [f.first(n - j * tiling.lanes if j else n, tiling.lanes) for j in range(vectors)]
        self.zero = f.const(0.0, vector(dtype, tiling.lanes))

    def sums(self, rows: int) -> list[list[Cell]]:
        """The sums of so many rows, where they begin."""
        return [[self.f.local(self.zero) for _ in self.masks] for _ in range(rows)]

    def read(self, row: Scalar) -> list[Scalar]:
        """A row of B."""
        return [self.f.load(row, j * self.lanes, self.lanes, mask if self.reads_masked else None)
                for j, mask in enumerate(self.masks)]

    def multiply(self, sums: list[Cell], left: Scalar, right: list[Scalar]) -> None:
        """Adds `left` times a row of B to the sums of a row."""
        f, left = self.f, self.f.splat(left, self.lanes)
        for cell, x in zip(sums, right, strict=True):
            cell.set(multiply_add(f, left, x, cell.get()))

    def add(self, sums: list[Cell], old: Scalar, out: Scalar) -> None:
        """Writes old + sums to a row of the result."""
        for j, (cell, mask) in enumerate(zip(sums, self.masks, strict=True)):
            before = self.f.load(old, j * self.lanes, self.lanes, mask)
            self.f.store(out, j * self.lanes, before + cell.get(), mask)


class _Spaced:
    """Rows of a tile that lie `step` elements apart, which spares it reading offsets."""

    def __init__(self, f: BlockBuilder, step: Scalar, rows: int) -> None:
        self.f, self.step, self.rows = f, step, rows

    def offset(self, number: int) -> Scalar:
        """Where a row lies, in elements."""
        return self.step * number

    def addresses(self, first: Scalar) -> Iterator[Scalar]:
        """Where each row lies, the first one at `first`. Every other address is the one before the last and two steps:
        so a loop keeps one register for all of them, and not one for each multiple of a step. All are written before
        the first is read: between the sums, they keep NEON's tiles from staying in registers."""
        pairs = [first]
        while 2 * len(pairs) < self.rows:
            pairs.append(self.f.at(pairs[-1], self.step * 2))
        return iter([self.f.at(pairs[i // 2], self.step) if i % 2 else pairs[i // 2] for i in range(self.rows)])


class _Listed:
    """Rows of a tile whose offsets, in elements, stand in a table."""

    def __init__(self, f: BlockBuilder, table: Scalar, rows: int) -> None:
        self.f, self.table, self.rows = f, table, rows

    def offset(self, number: int) -> Scalar:
        """Where a row lies, in elements."""
        return self.f.load(self.table, number)

    def addresses(self, first: Scalar) -> Iterator[Scalar]:
        """Where each row lies, with offsets from `first`; each is computed when it is asked for, since there are not
        registers for all."""
        for i in range(self.rows):
            yield self.f.at(first, self.offset(i))


def _integers(f: FunctionBuilder, *names: str) -> list[Scalar]:
    return [f.parameter(name, dt.int64) for name in names]


def forward_tile(tiling: Tiling, dtype: DType, rows: int, vectors: int, spaced: bool,
                 skips: bool = False) -> LoopFunction:
    """The micro-kernel `(x, places, lines, used, some, length, k, b, ldb, old, mask, out, to, rest, n, next, step)`.

    It writes old + sums to `out`. Its rows lie in `x` and in `out` at the offsets in `places` and `to`; or, if
    `spaced`, so many elements apart; in `old` as in `out` where `mask` is -1, or all at `old` where it is 0. Of each
    row it takes k elements: along `used` lines, whose offsets are in `lines`, `some` of the first and up to `length` of
    each other. Of the tile n columns are written, and of the rows the first `rest`; if `spaced`, all but the first
    `rest`. For each element that it takes, memory from `next` on is fetched that later tiles read, `step` elements
    further each time; but not by tiles of one vector, which need all loads that there are. If it `skips` rows of B, the
    row at which a line begins stands in `lines`, MOST_LINES after its offset, and it takes neither `next` nor `step`.
    """
    f = FunctionBuilder(f"conv_{'spaced_' if spaced else ''}{rows}x{vectors}")
    number, memory, table = dt.int64, address(dtype), address(dt.int64)
    x, places = f.parameter("x", memory), f.parameter("places", number if spaced else table)
    lines, used, some, length, k = f.parameter("lines", table), *_integers(f, "used", "some", "length", "k")
    right, ldb = f.parameter("b", memory), f.parameter("ldb", number)
    old, mask = f.parameter("old", memory), f.parameter("mask", number)
    out, to = f.parameter("out", memory), f.parameter("to", number if spaced else table)
    rest, n = _integers(f, "rest", "n")
    ahead = None if skips else (f.local(f.parameter("next", memory)), f.parameter("step", number))
    columns = _Columns(f, tiling, dtype, vectors, n)
    sums = columns.sums(rows)
    rows_of = _Spaced if spaced else _Listed
    reads, writes = rows_of(f, places, rows), rows_of(f, to, rows)
    room, left, at_b = f.local(some), f.local(k), f.local(right)
    with f.for_(0, used) as line:
        count = f.minimum(room.get(), left.get())
        if skips:
            at_b.set(f.at(right, f.load(lines, line + MOST_LINES) * ldb))
        at_x, rest_of_line = f.local(f.at(x, f.load(lines, line))), count
        for together in _UNROLLED[vectors]:
            with f.for_(rest_of_line, together - 1, -together):
                _along(f, columns, sums, reads, at_x, at_b, ldb, together)
                if ahead is not None and vectors > 1:
                    _fetch(f, *ahead, together)
            rest_of_line = rest_of_line & (together - 1)
        left.set(left.get() - count)
        room.set(length)
    for i, row in enumerate(sums):
        with f.if_(f.le(rest, i) if spaced else f.gt(rest, i)):
            offset = writes.offset(i)
            columns.add(row, f.at(old, offset & mask), f.at(out, offset))
    return f.finish()


def _along(f: BlockBuilder, columns: _Columns, sums: list[list[Cell]], reads: _Spaced | _Listed, at_x: Cell, at_b: Cell,
           ldb: Scalar, together: int) -> None:
    """Takes some elements of a line at once, of all rows."""
    here, rows = at_x.get(), [at_b.get()]
    for _ in range(together):
        rows.append(f.at(rows[-1], ldb))
    right = [columns.read(row) for row in rows[:-1]]
    for row, left in zip(sums, reads.addresses(here), strict=True):
        for u in range(together):
            columns.multiply(row, f.load(left, u), right[u])
    at_x.set(f.at(here, together))
    at_b.set(rows[-1])


def _fetch(f: BlockBuilder, at: Cell, step: Scalar, together: int) -> None:
    """Fetches what later tiles read, for some elements of a line."""
    for _ in range(together):
        f.prefetch(at.get(), 0)
        at.set(f.at(at.get(), step))


def filters_tile(tiling: Tiling, dtype: DType, rows: int, vectors: int, scattered: bool) -> LoopFunction:
    """The micro-kernel `(x, places, k, b, ldb, old, step, out, ldo, n)` for `rows` neighbours in `x`: out = old + sums.

    `places` holds k offsets into `x`. n columns are written. Where the rows are `scattered`, two more arguments are
    `(offsets, m)`: where they are in `x`, and how many of them are written.
    """
    f = FunctionBuilder(f"filters_{'scattered_' if scattered else ''}{rows}x{vectors}")
    number, memory, table = dt.int64, address(dtype), address(dt.int64)
    x, places, k = f.parameter("x", memory), f.parameter("places", table), f.parameter("k", number)
    right, ldb = f.parameter("b", memory), f.parameter("ldb", number)
    old, step = f.parameter("old", memory), f.parameter("step", number)
    out, ldo, n = f.parameter("out", memory), *_integers(f, "ldo", "n")
    columns = _Columns(f, tiling, dtype, vectors, n)
    sums = columns.sums(rows)
    offsets: Sequence[Scalar | int] = range(rows)
    if scattered:
        listed, m = f.parameter("offsets", table), f.parameter("m", number)
        offsets = [f.load(listed, i) for i in range(rows)]
    at_place, at_b = f.local(places), f.local(right)
    with f.for_(k, 0, -1):
        here, row_of_b = f.at(x, f.load(at_place.get(), 0)), columns.read(at_b.get())
        for row, offset in zip(sums, offsets, strict=True):
            columns.multiply(row, f.load(here, offset), row_of_b)
        at_place.set(f.at(at_place.get(), 1))
        at_b.set(f.at(at_b.get(), ldb))
    for i in while_below(f, rows, m) if scattered else range(rows):
        columns.add(sums[i], row_at(f, old, step, i), row_at(f, out, ldo, i))
    return f.finish()
