"""Panels for the matrix product: packing, of a matrix with any strides, in loop IR.

Elements that lie beside each other are copied as vectors; where they are neighbours along the inner dimension, squares
of vectors are turned in registers; anything else goes one by one. 16-bit floats and int8 are widened on the way; where
products are taken in pairs, two neighbours along the inner dimension then become one word of two bfloat16 numbers, the
first in its high bits, since it is multiplied first. Products of one row use what was turned at once (`dots`), since no
other row would read the panel.

Where int8 is multiplied in quads, four neighbours become one word of bytes. The instruction takes one operand as
unsigned: that is A, each number plus 128. What this adds to a sum, 128 times the sum of a column of B, is taken away at
its beginning, which stands before the column.

What reads the panels is in `gemm_tile.py`, who asks for them in `gemm.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.instructions import ScalarLike
from twofold.ir.scalar import Scalar

from .gemm_shapes import Tiling, summed
from .gemm_tile import multiply_add, while_below
from .loop import BlockBuilder, FunctionBuilder, LoopFunction, Pointer
from .value_types import address, lane_type, lanes_of, like, vector

__all__ = ["pack", "beginnings", "dots", "SquareSource", "HIGHEST"]

HIGHEST = -0x7F7F7F80  # a word of four bytes of 128


def pack(tiling: Tiling, dtype: DType, held: int = 1) -> LoopFunction:
    """The function `(panel, width, source, s, t, m, k)`: panel[t', s'] = source[s' s + t' t] for s' < m and t' < k.

    A panel has `width` elements for one inner index t', whole vectors; those from m on may hold anything. It has room
    for whole vectors of inner indices, too.

    Args:
        dtype: of the source. The panel holds what its products are summed in.
        held: of 2 or 4, the panel holds words of so many inner indices instead, t' counting those; what follows the
            last one is 0. Of 4, a last parameter says which bits of words are flipped: `HIGHEST` for A, none for B.
    """
    f = FunctionBuilder("pack")
    panel, width = f.parameter("panel", address(summed(dtype))), f.parameter("width", dt.int64)
    source = SquareSource(f, tiling, f.parameter("source", address(dtype)),
                          *[f.parameter(name, dt.int64) for name in ("s", "t", "m", "k")])
    packing = _Packing(source, panel, width, held, f.parameter("flipped", dt.int32) if held == 4 else None)
    with f.if_(f.eq(source.s, 1)):
        packing.copy()
    with f.else_():
        if not tiling.first_tier:
            with f.if_(f.eq(source.t, 1)):
                packing.transpose()
        with nullcontext() if tiling.first_tier else f.else_():
            packing.one_by_one(0)
    return f.finish()


def beginnings(tiling: Tiling) -> LoopFunction:
    """The function `(panel, width, k)`: what sums begin with, before a panel of B for `k` inner indices in quads."""
    f, lanes = FunctionBuilder("beginnings"), tiling.lanes
    panel, (width, k) = f.parameter("panel", address(dt.int32)), (f.parameter(n, dt.int64) for n in ("width", "k"))
    kind = vector(dt.int32, lanes)
    ones, zero = f.const(HIGHEST, kind), f.const(0, kind)
    with f.for_(0, width, lanes) as first:
        total = f.local(zero)
        with f.for_(0, (k + 3) >> 2) as row:
            total.set(f.add_quads(ones, f.load(panel, row * width + first, lanes), total.get()))
        f.store(panel, first - width, zero - total.get())
    return f.finish()


def dots(tiling: Tiling, dtype: DType, groups: int) -> LoopFunction:
    """The function `(a, b, s, old, c, k, n)`: C = old + a B for one row, as a micro-kernel does it.

    For a B whose inner indices are neighbours, and its columns `s` apart: squares of it are turned in registers, as in
    packing, and used at once.

    Args:
        dtype: of B; a and C are of what its products are summed in.
        groups: vectors that C may have at most. Their sums wait for each other's products no more than must be.
    """
    f, lanes, compute = FunctionBuilder("dots"), tiling.lanes, summed(dtype)
    a, b, s = f.parameter("a", address(compute)), f.parameter("b", address(dtype)), f.parameter("s", dt.int64)
    old, c = f.parameter("old", address(compute)), f.parameter("c", address(compute))
    k, n = f.parameter("k", dt.int64), f.parameter("n", dt.int64)
    source = SquareSource(f, tiling, b, s, f.const(1, dt.int64), n, k)
    sums = f.scratch(compute, groups * lanes)
    with f.for_(0, n, lanes) as first:
        f.store(sums, first, f.const(0.0, vector(compute, lanes)))
    pairs, whole = f.and_(n, -2 * lanes), f.and_(k, -lanes)
    with f.for_(0, pairs, 2 * lanes) as first:
        _add_pairs(f, source, sums, a, first, whole)
    with f.for_(0, k, lanes) as t, f.for_(f.select(f.lt(t, whole), pairs, 0), n, lanes) as first:
        _add_square(f, source, sums, a, t, first)
    with f.for_(0, n, lanes) as first:
        mask = f.first(n - first, lanes)
        f.store(c, first, f.load(old, first, lanes, mask) + f.load(sums, first, lanes), mask)
    return f.finish()


def _add_pairs(f: BlockBuilder, source: SquareSource, sums: Pointer, a: Scalar, first: Scalar, end: Scalar) -> None:
    """Adds the products of the inner indices below `end`, all in whole squares, to the sums of two vectors of columns.

    In a vector's sum each product waits for the one before: the other vector's fill that time, and more vectors would
    not fit into registers.
    """
    lanes = source.lanes
    rows = [source.s * r for r in range(lanes)]
    starts = [f.local(f.at(source.start, (first + g) * source.s)) for g in (0, lanes)]
    totals = [f.local(f.load(sums, first + g, lanes)) for g in (0, lanes)]
    with f.for_(0, end, lanes) as t:
        for start, total in zip(starts, totals, strict=True):
            columns = _transposed(f, [source.load(start.get(), row) for row in rows])
            for i, column in enumerate(columns):
                total.set(multiply_add(f, f.splat(f.load(a, t + i), lanes), column, total.get()))
            start.set(f.at(start.get(), lanes))
    for g, total in zip((0, lanes), totals, strict=True):
        f.store(sums, first + g, total.get())


def _add_square(f: BlockBuilder, source: SquareSource, sums: Pointer, a: Scalar, t: Scalar, first: Scalar) -> None:
    """Adds the products of the inner indices from `t` on to the sums of a vector of columns."""
    lanes, left = source.lanes, source.k - t
    columns = source.columns(source.rows(first), t, left)
    total = f.local(f.load(sums, first, lanes))
    for i in while_below(f, lanes, left):
        total.set(multiply_add(f, f.splat(f.load(a, t + i), lanes), columns[i], total.get()))
    f.store(sums, first, total.get())


class SquareSource:
    """A matrix that is read in squares: its elements lie `s` apart, and `t` along the inner dimension."""

    def __init__(self, f: BlockBuilder, tiling: Tiling, start: Scalar, s: Scalar, t: Scalar, m: Scalar,
                 k: Scalar) -> None:
        self.f, self.tiling, self.lanes = f, tiling, tiling.lanes
        self.start, self.s, self.t, self.m, self.k = start, s, t, m, k

    def load(self, start: Scalar, index: ScalarLike, mask: Scalar | None = None, lanes: int | None = None) -> Scalar:
        """A vector of neighbours, or with 0 `lanes` one element, as it is summed."""
        value = self.f.load(start, index, self.lanes if lanes is None else lanes, mask)
        return self.f.cast(value, like(dt.int32, value.dtype)) if lane_type(value.dtype) is dt.int8 else value

    def rows(self, s: Scalar) -> list[Scalar]:
        """The addresses of a vector's rows from `s` on; those beyond the edge repeat the last one."""
        f = self.f
        last = self.m - 1
        return [f.at(self.start, f.minimum(s + r, last) * self.s) for r in range(self.lanes)]

    def columns(self, rows: list[Scalar], t: Scalar, left: Scalar | None = None) -> list[Scalar]:
        """Vectors along the rows, for inner indices from `t`, of which there may be only `left`."""
        f = self.f
        mask = None if left is None else f.first(left, self.lanes)
        return _transposed(f, [self.load(row, t, mask) for row in rows])


class _Packing:
    """The ways to fill a panel, being recorded; what the names mean, `pack` says."""

    def __init__(self, source: SquareSource, panel: Scalar, width: Scalar, held: int, flipped: Scalar | None) -> None:
        self.source, self.f, self.lanes, self.panel, self.width = source, source.f, source.lanes, panel, width
        self.step = held  # inner indices of an element of the panel
        self.places = held.bit_length() - 1
        self.flipped = flipped  # bits of words of four

    def each(self, start: Scalar | int) -> Iterator[tuple[Scalar, list[Scalar]]]:
        """For each element of the panel along the inner dimension from index `start` on: its number, and its indices,
        of which the last element may have fewer."""
        f, x = self.f, self.source
        if self.step == 1:
            with f.for_(start, x.k) as t:
                yield t, [t]
            return
        end = x.k >> self.places
        with f.for_(start >> self.places, end) as number:
            yield number, [number * self.step + n for n in range(self.step)]
        for rest in range(1, self.step):
            with f.if_(f.eq(x.k & self.step - 1, rest)):
                yield end, [x.k - n for n in range(rest, 0, -1)]

    def joined(self, values: list[Scalar]) -> Scalar:
        """An element of the panel: a number, or the word of some bfloat16 numbers or integers that were widened."""
        if self.step == 4:
            return self.quad(values)
        if len(values) == 1:
            return values[0]
        f, (first, second) = self.f, values
        low = f.shr(f.bitcast(second, dt.uint32), 16)
        return f.bitcast(f.bitcast(first, dt.uint32) | low, first.dtype)

    def quad(self, values: list[Scalar]) -> Scalar:
        """The word of up to four integers, the first in its low bits; zeros follow the last."""
        f = self.f
        word = values[0] & 0xFF
        for n, value in enumerate(values[1:], 1):
            word = word | f.shl(value if n == 3 else value & 0xFF, 8 * n)
        return self.flip(word)

    def flip(self, word: Scalar) -> Scalar:
        """A word, or a vector of them, as panels of A or of B have it."""
        f, lanes = self.f, lanes_of(word.dtype)
        assert self.flipped is not None
        return word ^ (f.splat(self.flipped, lanes) if lanes else self.flipped)

    def copy(self) -> None:
        """Neighbours stay neighbours."""
        f, lanes, x = self.f, self.lanes, self.source
        whole = x.m & -lanes
        edge, has_edge = f.first(x.m - whole, lanes), f.lt(whole, x.m)
        for number, indices in self.each(0):
            starts, row = [f.at(x.start, t * x.t) for t in indices], number * self.width
            with f.for_(0, whole, lanes) as s:
                f.store(self.panel, row + s, self.joined([x.load(start, s) for start in starts]))
            with f.if_(has_edge):
                f.store(self.panel, row + whole, self.joined([x.load(start, whole, edge) for start in starts]))

    def transpose(self) -> None:
        """Squares of vectors are turned in registers."""
        f, x = self.f, self.source
        if self.step == 4:
            self.transpose_quads()
            return
        whole = x.k & -self.lanes
        with f.for_(0, x.m, self.lanes) as s:
            rows = x.rows(s)
            with f.for_(0, x.k if x.tiling.masks else whole, self.lanes) as t:
                self.square(rows, s, t)
        if not x.tiling.masks:
            self.one_by_one(whole)

    def transpose_quads(self) -> None:
        """The same where four neighbours along the inner dimension are a word already."""
        f, x, indices = self.f, self.source, 4 * self.lanes
        whole = x.k & -indices
        with f.for_(0, x.m, self.lanes) as s:
            rows = x.rows(s)
            with f.for_(0, whole, indices) as t:
                self.square_of_quads(rows, s, t, None)
            if x.tiling.masks:
                with f.if_(f.lt(whole, x.k)):
                    self.square_of_quads(rows, s, whole, f.first(x.k - whole, indices))
        if not x.tiling.masks:
            self.one_by_one(whole)

    def square_of_quads(self, rows: list[Scalar], s: Scalar, t: Scalar, mask: Scalar | None) -> None:
        """Turns one square of words; zeros may follow the last inner index."""
        f, kind = self.f, vector(dt.int32, self.lanes)
        words = [f.bitcast(f.load(row, t, 4 * self.lanes, mask), kind) for row in rows]
        for n, word in enumerate(_transposed(f, words)):
            f.store(self.panel, ((t >> 2) + n) * self.width + s, self.flip(word))

    def square(self, rows: list[Scalar], s: Scalar, t: Scalar) -> None:
        """Turns one square. Where vectors have masks, zeros may follow the last inner index."""
        f, x = self.f, self.source
        columns = x.columns(rows, t, x.k - t if x.tiling.masks else None)
        first = t >> 1 if self.step == 2 else t
        for n in range(len(columns) // self.step):
            joined = self.joined(columns[n * self.step:(n + 1) * self.step])
            f.store(self.panel, (first + n) * self.width + s, joined)

    def one_by_one(self, start: Scalar | int) -> None:
        """Whatever the strides, from inner index `start`."""
        f, x = self.f, self.source
        for number, indices in self.each(start):
            with f.for_(0, x.m) as s:
                values = [x.load(x.start, s * x.s + t * x.t, lanes=0) for t in indices]
                f.store(self.panel, number * self.width + s, self.joined(values))


def _transposed(f: BlockBuilder, rows: list[Scalar]) -> list[Scalar]:
    """The columns of a square of vectors: first within quarters of 16 bytes, then the quarters."""
    lanes, quarter = len(rows), 16 // rows[0].dtype.size
    groups = [_within_quarters(f, rows[g:g + quarter]) for g in range(0, lanes, quarter)]
    columns = [_quarters(f, [group[n] for group in groups], lanes) for n in range(quarter)]
    return [columns[n % quarter][n // quarter] for n in range(lanes)]


def _within_quarters(f: BlockBuilder, rows: list[Scalar]) -> list[Scalar]:
    """Result n holds, in quarter q, element n of the quarters q of all rows."""
    quarter, lanes = len(rows), lanes_of(rows[0].dtype)

    def interleaved(x: Scalar, y: Scalar, unit: int, high: bool) -> Scalar:
        picked: list[int] = []
        for start in range(0, lanes, quarter):
            half = start + (quarter // 2 if high else 0)
            for n in range(half, half + quarter // 2, unit):
                picked += [*range(n, n + unit), *range(lanes + n, lanes + n + unit)]
        return f.shuffle(x, y, picked)

    if quarter == 2:
        return [interleaved(rows[0], rows[1], 1, high) for high in (False, True)]
    pairs = [[interleaved(rows[n], rows[n + 1], 1, high) for n in (0, 2)] for high in (False, True)]
    return [interleaved(x, y, 2, high) for x, y in pairs for high in (False, True)]


def _quarters(f: BlockBuilder, rows: list[Scalar], lanes: int) -> list[Scalar]:
    """The square of quarters, transposed."""
    count = len(rows)
    quarter = lanes // count

    def picked(x: Scalar, y: Scalar, of_x: list[int], of_y: list[int]) -> Scalar:
        starts = [q * quarter for q in of_x] + [lanes + q * quarter for q in of_y]
        return f.shuffle(x, y, [s + n for s in starts for n in range(quarter)])

    if count == 1:
        return rows
    if count == 2:
        return [picked(rows[0], rows[1], [n], [n]) for n in range(2)]
    low = [picked(rows[n], rows[n + 1], [0, 1], [0, 1]) for n in (0, 2)]
    high = [picked(rows[n], rows[n + 1], [2, 3], [2, 3]) for n in (0, 2)]
    return [picked(x, y, [n, n + 2], [n, n + 2]) for x, y in (low, high) for n in (0, 1)]
