"""The matrix product C = A B: one function for all sizes, strides and batches, for eager calls and compiled programs.

The order of a sum is fixed. The inner index k is split in blocks of BLOCK. Within a block an element's sum starts at
+0 and takes its products in rising order of k, each by one fused multiply-add; the sums of the blocks are added up in
their order, starting at +0. That holds in every path below, so that the bits of an element depend on its row of A and
its column of B alone: not on the other sizes, strides, the place in C, the tiles, or the number of threads.

float32 and float64 are computed in themselves, mostly as they lie, since reading ahead costs less than packing; float16
and bfloat16 are widened while they are packed, and C is then float32. Blocking follows Goto and van de Geijn, "Anatomy
of high-performance matrix multiplication", ACM Transactions on Mathematical Software 34, 2008. Micro-kernels are in
`gemm_tile.py`, packing in `gemm_pack.py`; how large a unit of work is, and everything about loading, is
`runtime/products.py`'s.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir

from twofold.ir.dtypes import DType

from . import llvm_module, llvm_ops
from .gemm_pack import dots, pack
from .gemm_shapes import (
    BLOCK,
    DIRECT,
    FLAT_VECTORS,
    HEADER,
    HERE,
    MAX_BATCH_RANK,
    PACKED,
    PARTS,
    TURNED,
    VECTORS,
    Tiling,
    panel_width,
    symbol,
    tiles_at_once,
    tiling,
)
from .gemm_tile import I64, LINE, POINTER, Code, micro

__all__ = ["BLOCK", "DIRECT", "PACKED", "HERE", "TURNED", "HEADER", "MAX_BATCH_RANK", "Tiling", "tiling",
           "panel_width", "tiles_at_once", "PARTS", "symbol", "build", "object_code"]

_CLASH = 2048  # bytes: rows that are multiples of it apart crowd the first cache
_FEW = 2  # panels of B for which packing such rows does not repay
_ON_STACK = 32 << 10  # bytes of packed operands: more comes from the heap, so that threads may have small stacks


def build(module: ir.Module, dtype: DType, shape: Tiling, part: str, heap: bool = False) -> None:
    """Writes `tall`, `pack_b` and `small`, or `flat` (see `symbol`): kernels `(start, stop, args)` that return 0.

    `tall` and `flat` compute units of work: a unit is some rows and columns of one product of the batch, and the range
    numbers them by batch, rows, columns. `flat` is for products of one row. args: the addresses of C, A and B (or of
    what `pack_b` made of B); how B is read (`tall`: DIRECT, HERE, PACKED; `flat`: DIRECT, HERE, TURNED); M, N, K; the
    strides, in elements, of C from row to row, of A from row to row and along k, of B along k and from column to
    column; rows and columns of a unit, the rows at most `tiles_at_once` (of K) tallest tiles, columns whole panels; how
    many batch dimensions follow, at most MAX_BATCH_RANK. For each of them, outermost first: its length, and in elements
    the strides of A and of B (0 to repeat them), and of C. B is read DIRECT only where
    its columns are neighbours, it is not of 16-bit floats and `shape.masks`; TURNED where neighbours along k lie beside
    each other and `shape.masks`.

    `pack_b` packs B for PACKED, with the same args but for the work memory instead of C and in place of A. Its range
    numbers batch, block of k, and panel; each takes BLOCK * panel_width elements of the compute dtype.

    `small` takes the addresses of C, A and B, all C-contiguous, and M, N and K, none of them 0, and computes all of one
    product whatever its range.

    Args:
        module: takes the functions.
        dtype: a floating dtype, of A and B.
        shape: the tile shapes, also for another processor than the host.
        part: a key of PARTS.
        heap: whether more than a little memory for packed operands comes from C's `malloc`, so that threads with small
            stacks can run it; if not, it is on the stack.
    """
    parts = _Parts(module, dtype, shape, part == "flat", heap)
    parts.product()
    if part == "tall":
        parts.pack_b()
        parts.small()


def object_code(dtype: DType, shape: Tiling, part: str) -> bytes:
    """The object file of `build`.

    It needs none of LLVM's optimisations: the module is written as they would leave it, and they take three times as
    long as making machine code.
    """
    module = ir.Module()
    build(module, dtype, shape, part, heap=True)
    return llvm_module.object_code(llvm_module.verified(module))


class _Call:
    """The arguments of a call, loaded."""

    def __init__(self, c: Code) -> None:
        start, stop, args = c.fn.args
        self.start, self.stop, self.args = start, stop, args
        words = [c.element(args, n, I64) for n in range(HEADER)]
        self.c, self.a, self.b = (c.inttoptr(w, POINTER) for w in words[:3])
        self.mode, self.m, self.n, self.k, self.ldc, self.a_m, self.a_k, self.b_k, self.b_n = words[3:12]
        self.rows, self.columns, self.rank = words[12:HEADER]

    def seek(self, c: Code, batch: Any) -> tuple[Any, Any, Any]:
        """The offsets of A, B and C for product number `batch`."""
        before, test, inside, after = c.block, *(c.fn.append_basic_block() for _ in range(3))
        c.branch(test)
        c.position_at_end(test)
        left, number, *offsets = phis = [c.phi(I64) for _ in range(5)]
        c.cbranch(c.less(I64(0), left), inside, after)
        c.position_at_end(inside)
        dim = c.sub(left, I64(1))
        base = c.add(I64(HEADER), c.mul(dim, I64(4)))
        length, *steps = (c.element(self.args, c.add(base, I64(n)), I64) for n in range(4))
        rest = c.udiv(number, length)
        index = c.sub(number, c.mul(rest, length))
        following = (dim, rest, *(c.add(at, c.mul(index, step)) for at, step in zip(offsets, steps, strict=True)))
        for phi, first, value in zip(phis, (self.rank, batch, *[I64(0)] * 3), following, strict=True):
            phi.add_incoming(first, before)
            phi.add_incoming(value, c.block)
        c.branch(test)
        c.position_at_end(after)
        return offsets[0], offsets[1], offsets[2]


class _Rows(NamedTuple):
    """The rows of a unit, for one block of the inner dimension.

    packed: where they are to be packed. source: where they lie. lies: whether whole tiles are read as they lie there.
    rows: how many. depth: of the block. fresh: whether it is the first one. after: where the block lies that is needed
    next.
    """

    packed: Any
    source: Any
    lies: Any
    rows: Any
    depth: Any
    fresh: Any
    after: Any


class _Panel(NamedTuple):
    """A panel of B.

    base: where it lies. ldb: from one inner index to the next. columns: how many. out: C above it. after: the panel
    that is read next. first, count: the inner indices of the next block of A that are fetched meanwhile.
    """

    base: Any
    ldb: Any
    columns: Any
    out: Any
    after: Any
    first: Any
    count: Any


class _Parts:
    """The functions of a module that share tiles and packing."""

    def __init__(self, module: ir.Module, dtype: DType, shape: Tiling, flat: bool, heap: bool) -> None:
        self.module, self.dtype, self.shape, self.flat, self.heap = module, dtype, shape, flat, heap
        self.kernels: dict[str, ir.Function] = {}
        self.kind, self.memory = llvm_ops.llvm_type(dtype), llvm_ops.llvm_type(dtype, memory=True)
        self.width = panel_width(shape, flat)
        self.pack = pack(module, shape, dtype)
        make = functools.partial(micro, module, shape, dtype.compute)
        if flat:
            self.strip = make(1, FLAT_VECTORS)
            self.dots = dots(module, shape, dtype, FLAT_VECTORS)
        else:
            self.tiles = {rows: make(rows, VECTORS) for rows in shape.heights}
            self.narrow = make(shape.tall, 1)

    def kernel(self, name: str) -> tuple[Code, _Call]:
        c = Code(self.module, symbol(name, self.dtype), I64, [I64, I64, POINTER], internal=False)
        return c, _Call(c)

    def blocks(self, c: Code, k: Any) -> Any:
        """How many blocks of the inner dimension there are; one where it is empty, so that C is written."""
        count = c.udiv(c.add(k, I64(BLOCK - 1)), I64(BLOCK))
        return c.select(c.icmp_signed("==", count, I64(0)), I64(1), count)

    def panels(self, c: Code, n: Any, width: int) -> Any:
        return c.udiv(c.add(n, I64(width - 1)), I64(width))

    def product(self) -> None:
        """The kernel for products of any height, or of one row."""
        flat, width = self.flat, self.width
        c, call = self.kernel("flat" if flat else "tall")
        room = 1 if flat else tiles_at_once(self.shape, self.dtype) * self.shape.depth
        packed_b = c.select(c.icmp_signed("==", call.mode, I64(HERE)), I64(BLOCK * width), I64(0))
        if flat:
            need = I64(BLOCK)
        else:
            high = c.least(call.m, call.rows)
            need = c.mul(c.udiv(c.add(high, I64(self.shape.tall - 1)), I64(self.shape.tall)), self.panel_size(c, call))
        left, done = self.memory_for(c, I64(BLOCK * room), need, packed_b)
        right = c.at(left, need if self.heap else I64(BLOCK * room), self.kind)
        zeros = c.room(self.kind, width)
        none = ir.Constant(ir.VectorType(self.kind, self.shape.lanes), None)
        for n in range(0, width, self.shape.lanes):
            c.put(none, c.at(zeros, n, self.kind))
        count = self.blocks(c, call.k)
        empty = c.icmp_signed("==", c.mul(call.m, call.n), I64(0))  # C has no elements: nothing to do
        row_units, column_units = (c.udiv(c.add(size, c.sub(unit, I64(1))), c.select(empty, I64(1), unit))
                                   for size, unit in ((call.m, call.rows), (call.n, call.columns)))
        panels = self.panels(c, call.n, width)
        size = c.mul(c.mul(panels, count), I64(BLOCK * width))  # of one packed B
        # Micro-kernels read A as it lies where rows or inner indices are neighbours. But rows that far apart share few
        # places of the first cache, so that packing them repays when several panels read them.
        lies = ir.Constant(ir.IntType(1), 0)
        if self.memory == self.kind:
            beside, along = (c.icmp_signed("==", step, I64(1)) for step in (call.a_m, call.a_k))
            clash = c.icmp_signed("==", c.urem(call.a_m, I64(_CLASH // self.dtype.size)), I64(0))
            packs = c.and_(clash, c.less(I64(_FEW * width), call.columns))
            lies = c.or_(beside, c.and_(along, c.not_(packs)))

        def unit(number: Any) -> None:
            of_batch = c.udiv(number, column_units)
            batch = c.udiv(of_batch, row_units)
            top = c.mul(c.sub(of_batch, c.mul(batch, row_units)), call.rows)
            edge = c.mul(c.sub(number, c.mul(of_batch, column_units)), call.columns)
            at_a, at_b, at_c = call.seek(c, batch)
            out = c.at(call.c, c.add(at_c, c.mul(top, call.ldc)), self.kind)
            a = c.at(call.a, c.add(at_a, c.mul(top, call.a_m)), self.memory)
            rows = c.least(c.sub(call.m, top), call.rows)
            end = c.least(c.add(edge, call.columns), call.n)
            follows, _, _ = call.seek(c, c.add(batch, I64(1)))
            below = c.select(c.less(c.add(top, rows), call.m), c.at(a, c.mul(rows, call.a_m), self.memory),
                             c.at(call.a, follows, self.memory))

            def block(index: Any) -> None:
                first = c.mul(index, I64(BLOCK))
                depth = c.least(c.sub(call.k, first), I64(BLOCK))
                here = c.at(a, c.mul(first, call.a_k), self.memory)
                fresh = c.icmp_signed("==", index, I64(0))
                if flat:  # one row: a column of a panel, all of it neighbours
                    c.call(self.pack, [left, I64(BLOCK), here, call.a_k, I64(0), depth, I64(1)])
                else:
                    last = c.icmp_signed("==", c.add(index, I64(1)), count)
                    after = c.select(last, below, c.at(here, c.mul(I64(BLOCK), call.a_k), self.memory))
                    block_of_a = _Rows(left, here, lies, rows, depth, fresh, after)
                    self.pack_rows(c, call, block_of_a, c.sub(end, edge))
                source = c.at(call.b, c.add(at_b, c.mul(first, call.b_k)), self.memory)
                packed = c.add(c.mul(batch, size), c.mul(c.mul(index, panels), I64(BLOCK * width)))

                def panel(column: Any) -> None:
                    from_ = c.at(source, c.mul(column, call.b_n), self.memory)
                    before = c.at(call.b, c.add(packed, c.mul(column, I64(BLOCK))), self.kind)
                    columns = c.least(c.sub(end, column), I64(width))
                    with c.if_then(c.icmp_signed("==", call.mode, I64(HERE))):
                        c.call(self.pack, [right, I64(width), from_, call.b_n, call.b_k, columns, depth])
                    direct, ready = (c.icmp_signed("==", call.mode, I64(mode)) for mode in (DIRECT, PACKED))
                    base = c.select(direct, from_, c.select(ready, before, right))
                    ldb = c.select(direct, call.b_k, I64(width))
                    to = c.at(out, column, self.kind)
                    if not flat:
                        step = c.select(direct, I64(width), c.select(ready, I64(BLOCK * width), I64(0)))
                        following, share = c.at(base, step, self.kind), self.share(c, edge, column, end, depth)
                        self.column(c, call, block_of_a, _Panel(base, ldb, columns, to, following, *share), zeros)
                        return
                    old = c.select(fresh, zeros, to)
                    with c.if_else(c.icmp_signed("==", call.mode, I64(TURNED))) as (turned, other):
                        with turned:
                            c.call(self.dots, [left, from_, call.b_n, old, to, depth, columns])
                        with other:
                            c.call(self.strip, [left, I64(1), I64(1), base, ldb, old, I64(0), to, I64(0), depth, I64(1),
                                                columns, base])
                c.each(edge, end, I64(width), panel)
            c.each(I64(0), count, I64(1), block)
        c.each(call.start, c.select(empty, call.start, call.stop), I64(1), unit)
        done()
        c.ret(I64(0))
        self.kernels[c.fn.name] = c.fn

    def memory_for(self, c: Code, most: Any, left: Any, right: Any) -> tuple[Any, Callable[[], None]]:
        """Memory for packed operands, on a cache line of its own, and what gives it back.

        Args:
            most: elements of A that can be packed at most.
            left, right: elements of A and B that are packed in this call.
        """
        size = I64(self.dtype.compute.size)
        if not self.heap:
            return c.room(self.kind, most.constant + BLOCK * self.width), lambda: None
        need = c.add(c.mul(c.add(left, right), size), I64(LINE))
        much = c.less(I64(_ON_STACK), need)
        allocate, free = (self.module.globals.get(name) or ir.Function(self.module, ir.FunctionType(*kind), name)
                          for name, kind in (("malloc", (POINTER, [I64])), ("free", (ir.VoidType(), [POINTER]))))
        with c.if_else(much) as (large, small):
            with large:
                held = c.call(allocate, [need])
                from_large = c.block
            with small:
                local = c.alloca(ir.IntType(8), need)
                local = c.inttoptr(c.ptrtoint(local, I64), POINTER)
                from_small = c.block
        start = c.phi(POINTER)
        start.add_incoming(held, from_large)
        start.add_incoming(local, from_small)
        missing = c.fn.append_basic_block("missing")
        rest = c.fn.append_basic_block("rest")
        c.cbranch(c.icmp_unsigned("==", start, ir.Constant(POINTER, None)), missing, rest)
        c.position_at_end(missing)
        c.ret(I64(1))
        c.position_at_end(rest)
        begin = c.and_(c.add(c.ptrtoint(start, I64), I64(LINE - 1)), I64(-LINE))

        def done() -> None:
            with c.if_then(much):
                c.call(free, [start])
        return c.inttoptr(begin, POINTER), done

    def share(self, c: Code, edge: Any, column: Any, end: Any, depth: Any) -> tuple[Any, Any]:
        """The first of the inner indices of the next block of A that are fetched during one panel, and how many."""
        panels, number = self.panels(c, c.sub(end, edge), self.width), c.udiv(c.sub(column, edge), I64(self.width))
        count = c.udiv(c.add(depth, c.sub(panels, I64(1))), panels)
        return c.mul(number, count), count

    def panel_of(self, c: Code, call: _Call, a: _Rows, row: Any) -> Any:
        """Where the packed tile from `row` on lies."""
        return c.at(a.packed, c.mul(c.udiv(row, I64(self.shape.tall)), self.panel_size(c, call)), self.kind)

    def panel_size(self, c: Code, call: _Call) -> Any:
        return c.mul(c.least(call.k, I64(BLOCK)), I64(self.shape.depth))

    def is_whole(self, c: Code, height: Any, narrow: Any) -> Any:
        """Whether a micro-kernel reads just so many rows, in `narrow` panels or others."""
        low = functools.reduce(c.or_, [c.icmp_signed("==", height, I64(h)) for h in self.shape.heights[1:]])
        return c.or_(c.icmp_signed("==", height, I64(self.shape.tall)), c.and_(low, c.not_(narrow)))

    def pack_rows(self, c: Code, call: _Call, a: _Rows, columns: Any) -> None:
        """Packs tile after tile of A; if it is read as it lies only the last one, where that is not whole."""
        tall = self.shape.tall

        def tile(row: Any) -> None:
            height = c.least(c.sub(a.rows, row), I64(tall))
            c.call(self.pack, [self.panel_of(c, call, a, row), I64(self.shape.depth),
                               c.at(a.source, c.mul(row, call.a_m), self.memory), call.a_m, call.a_k, height, a.depth])

        whole = c.mul(c.udiv(a.rows, I64(tall)), I64(tall))
        rest = c.urem(columns, I64(self.width))
        narrow = c.and_(c.less(I64(0), rest), c.icmp_signed("<=", rest, I64(self.shape.lanes)))
        whole = c.select(self.is_whole(c, c.sub(a.rows, whole), narrow), a.rows, whole)
        c.each(c.select(a.lies, whole, I64(0)), a.rows, I64(tall), tile)

    def column(self, c: Code, call: _Call, a: _Rows, b: _Panel, zeros: Any) -> None:
        """The tiles of C beside one panel of B."""
        tall = self.shape.tall

        def tile(row: Any) -> None:
            height = c.least(c.sub(a.rows, row), I64(tall))
            whole = self.is_whole(c, height, c.icmp_signed("<=", b.columns, I64(self.shape.lanes)))
            here, packed = c.at(a.source, c.mul(row, call.a_m), self.memory), self.panel_of(c, call, a, row)
            to = c.at(b.out, c.mul(row, call.ldc), self.kind)
            old, step = c.select(a.fresh, zeros, to), c.select(a.fresh, I64(0), call.ldc)
            self.fetch(c, call, a, b, row, height)
            lies = c.and_(a.lies, whole)
            from_, a_m, a_k = (c.select(lies, x, y) for x, y in (
                (here, packed), (call.a_m, I64(1)), (call.a_k, I64(self.shape.depth))))
            self.choose(c, b.columns, height, lambda kernel: c.call(kernel, [
                from_, a_m, a_k, b.base, b.ldb, old, step, to, call.ldc, a.depth, height, b.columns, b.after]))
        c.each(I64(0), a.rows, I64(tall), tile)

    def fetch(self, c: Code, call: _Call, a: _Rows, b: _Panel, row: Any, height: Any) -> None:
        """Fetches what the share of panel `b` and the tile from `row` on have of the next block of A."""
        line = LINE // self.dtype.size
        start = c.at(a.after, c.add(c.mul(row, call.a_m), c.mul(b.first, call.a_k)), self.memory)

        def along(r: Any) -> None:
            from_ = c.at(start, c.mul(r, call.a_m), self.memory)
            c.each(I64(0), b.count, I64(line), lambda t: c.fetch(c.at(from_, t, self.memory)))

        with c.if_then(c.icmp_signed("==", call.a_k, I64(1))):
            c.each(I64(0), height, I64(1), along)
        with c.if_then(c.icmp_signed("==", call.a_m, I64(1))):
            c.each(I64(0), b.count, I64(1), lambda t: c.fetch(c.at(start, c.mul(t, call.a_k), self.memory)))

    def choose(self, c: Code, columns: Any, height: Any, run: Callable[[ir.Function], None]) -> None:
        """The micro-kernel that does the least for a tile at an edge."""
        done = c.fn.append_basic_block()

        def case(condition: Any, kernel: ir.Function) -> None:
            this, other = c.fn.append_basic_block(), c.fn.append_basic_block()
            c.cbranch(condition, this, other)
            c.position_at_end(this)
            run(kernel)
            c.branch(done)
            c.position_at_end(other)

        case(c.icmp_signed("<=", columns, I64(self.shape.lanes)), self.narrow)
        for rows in sorted(self.shape.heights)[:-1]:
            case(c.icmp_signed("<=", height, I64(rows)), self.tiles[rows])
        run(self.tiles[self.shape.tall])
        c.branch(done)
        c.position_at_end(done)

    def pack_b(self) -> None:
        c, call = self.kernel("pack_b")
        count, panels = self.blocks(c, call.k), self.panels(c, call.n, self.width)

        def piece(number: Any) -> None:
            of_batch = c.udiv(number, panels)
            batch = c.udiv(of_batch, count)
            column = c.mul(c.sub(number, c.mul(of_batch, panels)), I64(self.width))
            first = c.mul(c.sub(of_batch, c.mul(batch, count)), I64(BLOCK))
            _, at_b, _ = call.seek(c, batch)
            index = c.add(at_b, c.add(c.mul(first, call.b_k), c.mul(column, call.b_n)))
            to = c.at(call.c, c.mul(number, I64(BLOCK * self.width)), self.kind)
            c.call(self.pack, [to, I64(self.width), c.at(call.b, index, self.memory), call.b_n, call.b_k,
                               c.least(c.sub(call.n, column), I64(self.width)),
                               c.least(c.sub(call.k, first), I64(BLOCK))])
        c.each(call.start, call.stop, I64(1), piece)
        c.ret(I64(0))

    def small(self) -> None:
        c = Code(self.module, symbol("small", self.dtype), I64, [I64, I64, POINTER], internal=False)
        words = c.room(I64, HEADER)
        out, a, b, m, n, k = (c.element(c.fn.args[2], i, I64) for i in range(6))
        rows = I64(tiles_at_once(self.shape, self.dtype) * self.shape.tall)
        mode: Any = I64(HERE)
        if self.shape.masks and self.dtype.compute == self.dtype:  # few rows are not worth packing B
            mode = c.select(c.less(I64(2 * self.shape.tall), m), mode, I64(DIRECT))
        one, zero = I64(1), I64(0)
        for i, word in enumerate((out, a, b, mode, m, n, k, n, k, one, n, one, rows, n, zero)):
            c.store(word, c.at(words, i, I64))
        units = c.udiv(c.add(m, c.sub(rows, one)), rows)
        c.ret(c.call(self.kernels[symbol("tall", self.dtype)], [zero, units, words]))
