"""Panels for the matrix product: packing, of a matrix with any strides, as LLVM functions.

Elements that lie beside each other are copied as vectors; where they are neighbours along the inner dimension, squares
of vectors are turned in registers; anything else goes one by one. 16-bit floats are widened on the way. Products of one
row use what was turned at once (`dots`), since no other row would read the panel.

What reads the panels is in `gemm_tile.py`, who asks for them in `gemm.py`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from twofold.ir.dtypes import DType

from . import llvm_ops
from .gemm_shapes import Tiling
from .gemm_tile import I32, I64, POINTER, VOID, Code, size_of

__all__ = ["pack", "dots"]


def pack(module: ir.Module, tiling: Tiling, dtype: DType) -> ir.Function:
    """The function `(panel, width, source, s, t, m, k)`: panel[t', s'] = source[s' s + t' t] for s' < m and t' < k.

    A panel has `width` elements for one inner index t', whole vectors; those from m on may hold anything.

    Args:
        module: takes the function.
        dtype: of the source. The panel holds what it computes in.
    """
    c = Code(module, "pack", VOID, [POINTER, I64, POINTER, *[I64] * 4])
    panel, width, *source = c.fn.args
    p = _Packing(c, tiling, dtype, panel, width, *source)
    beside, along, either = (c.fn.append_basic_block(n) for n in ("beside", "along", "either"))
    other = c.fn.append_basic_block("other")
    c.cbranch(c.icmp_signed("==", p.s, I64(1)), beside, other)
    c.position_at_end(other)
    c.cbranch(c.icmp_signed("==", p.t, I64(1)), along, either)
    for block, write in ((beside, p.copy), (along, p.transpose), (either, lambda: p.one_by_one(I64(0)))):
        c.position_at_end(block)
        write()
        c.ret_void()
    return c.fn


def dots(module: ir.Module, tiling: Tiling, dtype: DType, groups: int) -> ir.Function:
    """The function `(a, B, s, old, C, k, n)`: C = old + a B for one row, as a micro-kernel does it.

    For a B whose inner indices are neighbours, and its columns `s` apart: squares of it are turned in registers, as in
    packing, and used at once.

    Args:
        module: takes the function.
        dtype: of B; a and C are of what it computes in.
        groups: vectors that C may have at most. Their sums wait for each other's products no more than must be.
    """
    lanes, kind = tiling.lanes, llvm_ops.llvm_type(dtype)
    vector = ir.VectorType(kind, lanes)
    c = Code(module, "dots", VOID, [POINTER, POINTER, I64, POINTER, POINTER, I64, I64])
    a, b, step, old, out, k, n = c.fn.args
    p = _Packing(c, tiling, dtype, None, None, b, step, I64(1), n, k)
    sums = c.room(kind, groups * lanes)
    c.each(I64(0), n, I64(lanes), lambda s: c.put(ir.Constant(vector, None), c.at(sums, s, kind)))

    def square(t: Any, s: Any) -> None:
        left, at = c.sub(k, t), c.at(sums, s, kind)
        columns = p.columns(p.rows(s), t, left)
        done, sum_ = c.fn.append_basic_block(), c.vector(at, vector)
        ends = [(sum_, c.block)]
        for i, column in enumerate(columns):
            more = c.fn.append_basic_block()
            c.cbranch(c.less(I64(i), left), more, done)
            c.position_at_end(more)
            sum_ = c.fma(c.spread(c.element(a, c.add(t, I64(i)), kind), lanes), column, sum_)
            ends.append((sum_, more))
        c.branch(done)
        c.position_at_end(done)
        last = c.phi(vector)
        for value, block in ends:
            last.add_incoming(value, block)
        c.put(last, at)

    def finish(s: Any) -> None:
        mask = c.mask(c.sub(n, s), lanes)
        c.put(c.fadd(c.vector(c.at(old, s, kind), vector, mask), c.vector(c.at(sums, s, kind), vector)),
              c.at(out, s, kind), mask)

    c.each(I64(0), k, I64(lanes), lambda t: c.each(I64(0), n, I64(lanes), lambda s: square(t, s)))
    c.each(I64(0), n, I64(lanes), finish)
    c.ret_void()
    return c.fn


class _Packing:
    """The body of a function that reads a matrix for a panel, being written; what they are, `pack` says."""

    def __init__(self, c: Code, tiling: Tiling, dtype: DType, panel: Any, width: Any, source: Any, s: Any, t: Any,
                 m: Any, k: Any) -> None:
        self.c, self.tiling, self.dtype, self.lanes = c, tiling, dtype, tiling.lanes
        self.kind, self.memory = llvm_ops.llvm_type(dtype), llvm_ops.llvm_type(dtype, memory=True)
        self.panel, self.width, self.source, self.s, self.t, self.m, self.k = panel, width, source, s, t, m, k

    def widened(self, x: Any) -> Any:
        """What is computed with, of a vector or element as it lies in memory."""
        c = self.c
        if self.memory == self.kind:
            return x
        if not isinstance(x.type, ir.VectorType):
            return llvm_ops.widen(c, x, self.dtype)
        if self.dtype.name == "float16" and llvm_ops.converts_half():
            half = c.bitcast(x, ir.VectorType(ir.HalfType(), self.lanes))
            return c.fpext(half, ir.VectorType(self.kind, self.lanes))
        wide = ir.Constant(ir.VectorType(self.kind, self.lanes), ir.Undefined)
        for lane in range(self.lanes):
            value = llvm_ops.widen(c, c.extract_element(x, I32(lane)), self.dtype)
            wide = c.insert_element(wide, value, I32(lane))
        return wide

    def read(self, address: Any, mask: Any = None) -> Any:
        return self.widened(self.c.vector(address, ir.VectorType(self.memory, self.lanes), mask))

    def place(self, t: Any, s: Any) -> Any:
        return self.c.at(self.panel, self.c.add(self.c.mul(t, self.width), s), self.kind)

    def copy(self) -> None:
        """Neighbours stay neighbours."""
        c = self.c
        whole = c.and_(self.m, I64(-self.lanes))
        edge = c.mask(c.sub(self.m, whole), self.lanes)

        def row(t: Any) -> None:
            start = c.at(self.source, c.mul(t, self.t), self.memory)
            c.each(I64(0), whole, I64(self.lanes),
                   lambda s: c.put(self.read(c.at(start, s, self.memory)), self.place(t, s)))
            with c.if_then(c.less(whole, self.m)):
                c.put(self.read(c.at(start, whole, self.memory), edge), self.place(t, whole))
        c.each(I64(0), self.k, I64(1), row)

    def transpose(self) -> None:
        """Squares of vectors are turned in registers."""
        c, lanes = self.c, self.lanes
        masks = self.tiling.masks
        whole = c.and_(self.k, I64(-lanes))

        def rows_from(s: Any) -> None:
            rows = self.rows(s)

            def square(t: Any) -> None:
                left = c.sub(self.k, t)
                columns = self.columns(rows, t, left if masks else None)
                places = [self.place(c.add(t, I64(n)), s) for n in range(lanes)]
                if not masks:
                    for column, place in zip(columns, places, strict=True):
                        c.put(column, place)
                    return
                with c.if_else(c.less(left, I64(lanes))) as (edge, inside):
                    with edge:
                        done = c.fn.append_basic_block()
                        for n, (column, place) in enumerate(zip(columns, places, strict=True)):
                            store = c.fn.append_basic_block()
                            c.cbranch(c.less(I64(n), left), store, done)
                            c.position_at_end(store)
                            c.put(column, place)
                        c.branch(done)
                        c.position_at_end(done)
                    with inside:
                        for column, place in zip(columns, places, strict=True):
                            c.put(column, place)

            c.each(I64(0), self.k if masks else whole, I64(lanes), square)

        c.each(I64(0), self.m, I64(lanes), rows_from)
        if not masks:
            self.one_by_one(whole)

    def rows(self, s: Any) -> list[Any]:
        """The addresses of a vector's rows from `s` on, of a matrix whose inner indices are neighbours."""
        c = self.c
        last = c.sub(self.m, I64(1))
        # Rows beyond the edge repeat the last one.
        return [c.at(self.source, c.mul(c.least(c.add(s, I64(r)), last), self.s), self.memory)
                for r in range(self.lanes)]

    def columns(self, rows: list[Any], t: Any, left: Any = None) -> list[Any]:
        """Vectors along the rows, for inner indices from `t`, of which there may be only `left`."""
        c = self.c
        mask = None if left is None else c.mask(left, self.lanes)
        return _transposed(c, [self.read(c.at(row, t, self.memory), mask) for row in rows])

    def one_by_one(self, start: Any) -> None:
        """Whatever the strides, from inner index `start`."""
        c = self.c

        def element(t: Any, s: Any) -> None:
            index = c.add(c.mul(s, self.s), c.mul(t, self.t))
            c.store(self.widened(c.element(self.source, index, self.memory)), self.place(t, s))
        c.each(start, self.k, I64(1), lambda t: c.each(I64(0), self.m, I64(1), lambda s: element(t, s)))


def _transposed(c: Code, rows: list[Any]) -> list[Any]:
    """The columns of a square of vectors: first within quarters of 16 bytes, then the quarters."""
    lanes, quarter = len(rows), 16 // size_of(rows[0].type.element)
    groups = [_within_quarters(c, rows[g:g + quarter], quarter) for g in range(0, lanes, quarter)]
    columns = [_quarters(c, [group[n] for group in groups], quarter) for n in range(quarter)]
    return [columns[n % quarter][n // quarter] for n in range(lanes)]


def _within_quarters(c: Code, rows: list[Any], quarter: int) -> list[Any]:
    """Result n holds, in quarter q, element n of the quarters q of all rows."""
    lanes = rows[0].type.count

    def interleaved(x: Any, y: Any, unit: int, high: bool) -> Any:
        picked: list[int] = []
        for start in range(0, lanes, quarter):
            half = start + (quarter // 2 if high else 0)
            for n in range(half, half + quarter // 2, unit):
                picked += [*range(n, n + unit), *range(lanes + n, lanes + n + unit)]
        return c.shuffle(x, y, picked)

    if quarter == 2:
        return [interleaved(rows[0], rows[1], 1, high) for high in (False, True)]
    pairs = [[interleaved(rows[n], rows[n + 1], 1, high) for n in (0, 2)] for high in (False, True)]
    return [interleaved(x, y, 2, high) for x, y in pairs for high in (False, True)]


def _quarters(c: Code, rows: list[Any], quarter: int) -> list[Any]:
    """The square of quarters, transposed."""
    count, lanes = len(rows), rows[0].type.count

    def picked(x: Any, y: Any, of_x: list[int], of_y: list[int]) -> Any:
        starts = [q * quarter for q in of_x] + [lanes + q * quarter for q in of_y]
        return c.shuffle(x, y, [s + n for s in starts for n in range(quarter)])

    if count == 1:
        return rows
    if count == 2:
        return [picked(rows[0], rows[1], [n], [n]) for n in range(2)]
    low = [picked(rows[n], rows[n + 1], [0, 1], [0, 1]) for n in (0, 2)]
    high = [picked(rows[n], rows[n + 1], [2, 3], [2, 3]) for n in (0, 2)]
    return [picked(x, y, [n, n + 2], [n, n + 2]) for x, y in (low, high) for n in (0, 1)]
