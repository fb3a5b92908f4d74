"""What the kernels of convolutions (`conv_forward.py`, `conv_filters.py`) are recorded with: tiles and arguments.

A *tile* of the result is kept in registers, rows by vectors of columns, and its sums take the products of a block in
order. What its rows are, and where their elements lie, differs: `forward_tile` has places for rows and goes along the
lines of windows; `filters_tile` has elements of lines for rows and goes along places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Value

from .gemm_shapes import Tiling
from .gemm_tile import multiply_add
from .loop import BlockBuilder, Cell, Function, FunctionBuilder, LoopBuilder
from .value_types import address, vector

__all__ = ["arguments", "quotient", "parted", "line_start", "choose", "forward_tile"]

_MEMORY = ("out", "x", "b", "work")
# Columns of a line that a pass takes, by the vectors of a tile: few registers in use leave room for more.
_UNROLLED = {1: (4, 1), 2: (1,)}


def arguments(b: LoopBuilder, dtype: DType, words: Sequence[str]) -> Any:
    """The arguments of a kernel by their names, which `conv_shapes.py` explains: memory, and integers."""
    return SimpleNamespace(**{w: b.pointer(w, dtype) if w in _MEMORY else b.integer() for w in words})


def quotient(b: BlockBuilder, x: Value, y: Value | int) -> Value:
    """x // y, of numbers that are not negative."""
    x, y = (b.bitcast(b.coerce(v, dt.int64), dt.uint64) for v in (x, y))
    return b.bitcast(b.idiv(x, y), dt.int64)


def parted(b: BlockBuilder, number: Value, size: Value) -> tuple[Value, Value]:
    """Quotient and remainder, of numbers that are not negative."""
    rest = quotient(b, number, size)
    return rest, number - rest * size


def line_start(b: BlockBuilder, v: Any, number: Value) -> Value:
    """Where line `number` of a window begins, in elements; `v` are the arguments."""
    rest, x = parted(b, number, v.lines_x)
    z, y = parted(b, rest, v.lines_y)
    return z * v.line_z + y * v.line_y + x * v.line_x


def choose(b: BlockBuilder, cases: Sequence[tuple[Value, int, Callable[[], None]]],
           otherwise: Callable[[], None]) -> None:
    """Records the first case whose value is not above its limit."""
    if not cases:
        otherwise()
        return
    (value, limit, record), *rest = cases
    with b.if_(b.le(value, limit)):
        record()
    with b.else_():
        choose(b, rest, otherwise)


class _Columns:
    """The columns of a tile: vectors, of which only the first `n` elements are there."""

    def __init__(self, f: BlockBuilder, tiling: Tiling, dtype: DType, vectors: int, n: Value) -> None:
        self.f, self.lanes, self.reads_masked = f, tiling.lanes, tiling.masks
        self.masks = [f.first(n - j * tiling.lanes, tiling.lanes) for j in range(vectors)]
        self.zero = f.const(0.0, vector(dtype, tiling.lanes))

    def sums(self, rows: int) -> list[list[Cell]]:
        """The sums of so many rows, where they begin."""
        return [[self.f.local(self.zero) for _ in self.masks] for _ in range(rows)]

    def read(self, row: Value) -> list[Value]:
        """A row of B."""
        return [self.f.load(row, j * self.lanes, self.lanes, mask if self.reads_masked else None)
                for j, mask in enumerate(self.masks)]

    def multiply(self, sums: list[Cell], left: Value, right: list[Value]) -> None:
        """Adds `left` times a row of B to the sums of a row."""
        f, left = self.f, self.f.splat(left, self.lanes)
        for cell, x in zip(sums, right, strict=True):
            cell.set(multiply_add(f, left, x, cell.get()))

    def add_up(self, sums: list[list[Cell]], outs: list[Value], fresh: Value) -> None:
        """Adds what stands in the rows of the result to sums; zeros where it is `fresh`."""
        f = self.f
        with f.if_(fresh):
            for row in sums:
                for cell in row:
                    cell.set(self.zero + cell.get())
        with f.else_():
            for row, out in zip(sums, outs, strict=True):
                for j, (cell, mask) in enumerate(zip(row, self.masks, strict=True)):
                    cell.set(f.load(out, j * self.lanes, self.lanes, mask) + cell.get())

    def write(self, sums: list[Cell], out: Value) -> None:
        """Writes a row of the result."""
        for j, (cell, mask) in enumerate(zip(sums, self.masks, strict=True)):
            self.f.store(out, j * self.lanes, cell.get(), mask)


class _Spaced:
    """Rows that lie `step` elements apart, which spares a tile reading where they are."""

    def __init__(self, f: BlockBuilder, step: Value) -> None:
        self.f, self.step = f, step

    def row(self, start: Value, number: int) -> Value:
        """The address of a row, of the first one's."""
        return self.f.at(start, self.step * number)


class _Listed:
    """Rows whose offsets, in elements, stand in a table."""

    def __init__(self, f: BlockBuilder, table: Value) -> None:
        self.f, self.table = f, table

    def row(self, start: Value, number: int) -> Value:
        """The address of a row."""
        return self.f.at(start, self.f.load(self.table, number))


def _integers(f: FunctionBuilder, *names: str) -> list[Value]:
    return [f.parameter(name, dt.int64) for name in names]


def forward_tile(tiling: Tiling, dtype: DType, rows: int, vectors: int, spaced: bool) -> Function:
    """The micro-kernel `(x, places, lines, used, some, length, k, b, ldb, out, to, rest, n, fresh)`.

    Its rows lie in `x` and in `out` at the offsets in `places` and `to`; or, if `spaced`, so many elements apart. Of
    each row it takes k elements: along `used` lines, whose offsets are in `lines`, `some` of the first and up to
    `length` of each other. Of the tile n columns are written, unless `fresh` added to what is there, and of the rows
    the first `rest`; if `spaced`, all but the first `rest`.
    """
    f = FunctionBuilder(f"conv_{'spaced_' if spaced else ''}{rows}x{vectors}")
    number, memory, table = dt.int64, address(dtype), address(dt.int64)
    x, places = f.parameter("x", memory), f.parameter("places", number if spaced else table)
    lines, used, some, length, k = f.parameter("lines", table), *_integers(f, "used", "some", "length", "k")
    right, ldb = f.parameter("b", memory), f.parameter("ldb", number)
    out, to = f.parameter("out", memory), f.parameter("to", number if spaced else table)
    rest, n, fresh = *_integers(f, "rest", "n"), f.parameter("fresh", dt.bool_)
    columns = _Columns(f, tiling, dtype, vectors, n)
    sums = columns.sums(rows)
    kind = _Spaced if spaced else _Listed
    sources, places_out = kind(f, places), kind(f, to)
    room, left, at_b = f.local(some), f.local(k), f.local(right)
    with f.for_(0, used) as line:
        count = f.minimum(room.get(), left.get())
        at_x, rest_of_line = f.local(f.at(x, f.load(lines, line))), count
        for together in _UNROLLED[vectors]:
            with f.for_(rest_of_line, together - 1, -together):
                _along(f, columns, sums, sources, at_x, at_b, ldb, together)
            rest_of_line = rest_of_line & (together - 1)
        left.set(left.get() - count)
        room.set(length)
    outs = [places_out.row(out, i) for i in range(rows)]
    columns.add_up(sums, outs, fresh)
    for i, row in enumerate(sums):
        with f.if_(f.le(rest, i) if spaced else f.gt(rest, i)):
            columns.write(row, outs[i])
    return f.finish()


def _along(f: BlockBuilder, columns: _Columns, sums: list[list[Cell]], sources: _Spaced | _Listed, at_x: Cell,
           at_b: Cell, ldb: Value, together: int) -> None:
    """Takes some elements of a line at once."""
    here, rows = at_x.get(), [at_b.get()]
    for _ in range(together):
        rows.append(f.at(rows[-1], ldb))
    right = [columns.read(row) for row in rows[:-1]]
    for i, row in enumerate(sums):
        left = sources.row(here, i)
        for u in range(together):
            columns.multiply(row, f.load(left, u), right[u])
    at_x.set(f.at(here, together))
    at_b.set(rows[-1])
