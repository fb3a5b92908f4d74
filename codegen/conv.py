"""Convolution as a matrix product whose left operand is never laid out: LLVM functions for all sizes and strides.

The windows of an image, one a row, make a matrix in which an element lies in the image at an offset of its row plus
an offset of its column; the columns come in *lines*, runs of neighbours in memory. So micro-kernels read the image
itself. `forward` keeps a tile of places by outputs in registers and goes along the lines. `filters`, the gradient for
the filters, keeps a tile of a line's elements by outputs and goes along the places.

The order of a sum is that of a matrix product (`gemm.py`): for `forward` over the columns of that matrix, line by
line; for `filters` over the places of a share, the shares apart. It does not depend on boxes, tiles or threads.

Which images, lines, boxes and shares there are is decided in `conv_shapes.py`, who also says what the arguments are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from twofold.ir.dtypes import DType

from . import llvm_module, llvm_ops
from .conv_shapes import FILTERS, FORWARD, MAX_ROWS, PARTS, symbol
from .gemm_pack import pack
from .gemm_shapes import BLOCK, PACKED, VECTORS, Tiling, panel_width, tiling
from .gemm_tile import I64, POINTER, VOID, Code, size_of

__all__ = ["PARTS", "symbol", "tiling", "build", "object_code"]

# Columns of a line that a pass takes, by the vectors of a tile: few registers in use leave room for more.
_UNROLLED = {1: (4, 1), 2: (1,)}
_SCATTERED = 9  # elements of short lines that a tile of `filters` takes: their offsets are to stay in registers
_I8 = ir.IntType(8)


def build(module: ir.Module, dtype: DType, shape: Tiling, part: str) -> None:
    """Writes a kernel `(start, stop, args)` that returns 0, `forward` or `filters`; see `conv_shapes.py`.

    Args:
        module: takes the functions.
        dtype: float32 or float64.
        shape: the tile shapes of matrix products, also for another processor than the host.
        part: a key of PARTS.
    """
    {"forward": _Forward, "filters": _Filters}[part](module, dtype, shape).write()


def object_code(dtype: DType, shape: Tiling, part: str) -> bytes:
    """The object file of `build`; as for matrix products, LLVM's optimisations would find nothing to do."""
    module = ir.Module()
    build(module, dtype, shape, part)
    return llvm_module.object_code(llvm_module.verified(module))


def _heights(shape: Tiling, vectors: int) -> tuple[int, ...]:
    """Elements of a line that tiles of `filters` take: whole tiles only, so that nothing beyond a line is read."""
    room = 24 if shape.tall > 8 else 10
    most = room // vectors
    return tuple(n for n in (24, 16, 12, 8, 5, 4, 2, 1) if n <= most)


class _Kernel:
    """A kernel being written: its arguments, and what both have in common."""

    def __init__(self, module: ir.Module, dtype: DType, shape: Tiling, name: str, words: tuple[str, ...]) -> None:
        self.module, self.dtype, self.shape = module, dtype, shape
        self.kind, self.lanes = llvm_ops.llvm_type(dtype), shape.lanes
        self.size = size_of(self.kind)
        self.width = panel_width(shape, False)
        self.vector = ir.VectorType(self.kind, self.lanes)
        self.name, self.words = name, words

    def begin(self) -> Code:
        """The function, its arguments loaded into attributes of this object's `v`."""
        c = Code(self.module, symbol(self.name, self.dtype), I64, [I64, I64, POINTER], internal=False)
        loaded = {word: c.element(c.fn.args[2], n, I64) for n, word in enumerate(self.words)}
        for name in ("out", "x", "b"):
            loaded[name] = c.inttoptr(loaded[name], POINTER)
        self.v: Any = type("Arguments", (), loaded)
        return c

    def bytes(self, c: Code, elements: Any) -> Any:
        return c.mul(elements, I64(self.size))

    def line(self, c: Code, number: Any) -> Any:
        """Where line `number` of a window begins, in bytes."""
        v = self.v
        rest = c.udiv(number, v.lines_x)
        z = c.udiv(rest, v.lines_y)
        x, y = c.sub(number, c.mul(rest, v.lines_x)), c.sub(rest, c.mul(z, v.lines_y))
        return self.bytes(c, c.add(c.add(c.mul(z, v.line_z), c.mul(y, v.line_y)), c.mul(x, v.line_x)))

    def masks(self, c: Code, n: Any, vectors: int) -> list[Any]:
        return [c.mask(c.sub(n, I64(j * self.lanes)), self.lanes) for j in range(vectors)]

    def rows_of(self, c: Code, address: Any, vectors: int, masks: list[Any]) -> list[Any]:
        """The vectors of B at `address`."""
        return [c.vector(c.at(address, j * self.lanes, self.kind), self.vector,
                         masks[j] if self.shape.masks else None) for j in range(vectors)]

    def add(self, c: Code, sums: list[Any], out: Any, masks: list[Any], fresh: Any) -> None:
        """Adds sums to a row of the result, which holds nothing yet where `fresh`, an i1, says so."""
        here, before, after = c.block, c.fn.append_basic_block(), c.fn.append_basic_block()
        c.cbranch(fresh, after, before)
        c.position_at_end(before)
        olds = [c.vector(c.at(out, j * self.lanes, self.kind), self.vector, masks[j]) for j in range(len(sums))]
        before = c.block
        c.branch(after)
        c.position_at_end(after)
        held = [c.phi(self.vector) for _ in olds]
        for phi, old in zip(held, olds, strict=True):
            phi.add_incoming(ir.Constant(self.vector, None), here)
            phi.add_incoming(old, before)
        for j, (phi, sum_) in enumerate(zip(held, sums, strict=True)):
            c.put(c.fadd(phi, sum_), c.at(out, j * self.lanes, self.kind), masks[j])

    def zeros(self, count: int) -> list[Any]:
        return [ir.Constant(self.vector, None)] * count


def _while(c: Code, start: list[Any], more: Callable[[list[Any]], Any],
           body: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """Replaces values by `body(values)` while `more(values)`."""
    before, test, inside, after = c.block, *(c.fn.append_basic_block() for _ in range(3))
    c.branch(test)
    c.position_at_end(test)
    phis = [c.phi(value.type) for value in start]
    for phi, value in zip(phis, start, strict=True):
        phi.add_incoming(value, before)
    c.cbranch(more(phis), inside, after)
    c.position_at_end(inside)
    for phi, value in zip(phis, body(phis), strict=True):
        phi.add_incoming(value, c.block)
    c.branch(test)
    c.position_at_end(after)
    return phis


class _Forward(_Kernel):
    """`forward`: places by outputs."""

    def __init__(self, module: ir.Module, dtype: DType, shape: Tiling) -> None:
        super().__init__(module, dtype, shape, "forward", FORWARD)
        self.tiles = {vectors: {rows: self.micro(rows, vectors, False) for rows in sorted(shape.heights)}
                      for vectors in range(1, VECTORS + 1)}
        heights = [n for n in (shape.tall - 6, shape.tall - 2, shape.tall) if n > 0 and 2 * n >= shape.tall]
        self.spaced = {vectors: {rows: self.micro(rows, vectors, True) for rows in heights}
                       for vectors in range(1, VECTORS + 1)}

    def micro(self, rows: int, vectors: int, spaced: bool) -> ir.Function:
        """The micro-kernel `(x, places, lines, pos, length, k, B, ldb, out, to, rest, n, fresh)`.

        Its rows lie in `x` and in `out` at the byte offsets in `places` and `to`; or, if `spaced`, that many bytes
        apart, which spares it reading their addresses. `lines` are the lines' offsets; the first begins at element
        `pos`. Of the tile n columns are written, unless `fresh` added to what is there, and of the rows the first
        `rest`; if `spaced`, all but the first `rest`.
        """
        tables = [I64 if spaced else POINTER] * 2
        c = Code(self.module, f"conv_{'spaced_' if spaced else ''}{rows}x{vectors}", VOID,
                 [POINTER, tables[0], POINTER, I64, I64, I64, POINTER, I64, POINTER, tables[1], I64, I64, I64])
        x, places, lines, pos, length, k, b, ldb, out, to, rest, n, fresh = c.fn.args
        masks = self.masks(c, n, vectors)
        ldb = self.bytes(c, ldb)
        odd = {n: c.mul(places, I64(n)) for n in (3, 5, 7)} if spaced else {}

        def row_of(from_: Any, i: int) -> Any:
            if not spaced:
                return c.gep(from_, [c.element(places, i, I64)], source_etype=_I8)
            if i >= 8:
                from_ = c.gep(from_, [c.shl(places, I64(3))], source_etype=_I8)
            power, factor = next((p, i % 8 >> p) for p in (3, 2, 1, 0) if i % 8 % (1 << p) == 0)
            if factor == 0:
                return from_
            # An address takes a register times 1, 2, 4 or 8: four registers serve all rows.
            return c.gep(from_, [c.shl(odd.get(factor, places), I64(power))], source_etype=_I8)

        def step(values: list[Any], count: int) -> list[Any]:
            at, from_, b, *sums = values
            right = []
            for _ in range(count):
                right.append(self.rows_of(c, b, vectors, masks))
                b = c.gep(b, [ldb], source_etype=_I8)
            for i in range(rows):
                row = row_of(from_, i)
                for u in range(count):
                    left = c.spread(c.element(row, u, self.kind), self.lanes)
                    for j in range(vectors):
                        sums[i * vectors + j] = c.fma(left, right[u][j], sums[i * vectors + j])
            return [c.sub(at, I64(count)), c.at(from_, count, self.kind), b, *sums]

        def line(values: list[Any]) -> list[Any]:
            left, lines, pos, b, *sums = values
            count = c.least(c.sub(length, pos), left)
            from_ = c.at(c.gep(x, [c.load(lines, typ=I64)], source_etype=_I8), pos, self.kind)
            state = [count, from_, b, *sums]
            for unrolled in _UNROLLED[vectors]:
                state = _while(c, state, lambda s, u=unrolled: c.less(I64(u - 1), s[0]),
                               functools.partial(step, count=unrolled))
            return [c.sub(left, count), c.at(lines, 1, I64), I64(0), *state[2:]]

        _, _, _, _, *sums = _while(c, [k, lines, pos, b, *self.zeros(rows * vectors)],
                                   lambda values: c.less(I64(0), values[0]), line)
        is_fresh = c.icmp_signed("!=", fresh, I64(0))
        finish = c.fn.append_basic_block("finish")
        for i in range(rows):
            row, after = c.fn.append_basic_block(), c.fn.append_basic_block() if spaced else finish
            c.cbranch(c.icmp_signed("<=", rest, I64(i)) if spaced else c.less(I64(i), rest), row, after)
            c.position_at_end(row)
            at = c.mul(to, I64(i)) if spaced else c.element(to, i, I64)
            self.add(c, sums[i * vectors:(i + 1) * vectors], c.gep(out, [at], source_etype=_I8), masks, is_fresh)
            if spaced:
                c.branch(after)
                c.position_at_end(after)
        c.branch(finish)
        c.position_at_end(finish)
        c.ret_void()
        return c.fn

    def write(self) -> None:
        c = self.begin()
        v = self.v
        places, to = c.room(I64, MAX_ROWS + self.shape.tall), c.room(I64, MAX_ROWS + self.shape.tall)
        lines = c.room(I64, BLOCK + 1)
        count = c.add(c.udiv(c.sub(v.k, I64(1)), I64(BLOCK)), I64(1))
        panels = c.add(c.udiv(c.sub(v.n, I64(1)), I64(self.width)), I64(1))
        packed = c.icmp_signed("==", v.mode, I64(PACKED))
        work = c.add(v.work, self.bytes(c, c.mul(c.fn.args[0], c.mul(v.box_n, v.room))))
        from_place, to_place = self.bytes(c, v.x_x), self.bytes(c, v.to_x)

        def unit(number: Any) -> None:
            rest, piece = self.parted(c, number, v.pieces)
            rest, x = self.parted(c, rest, v.boxes_x)
            rest, y = self.parted(c, rest, v.boxes_y)
            n, z = self.parted(c, rest, v.boxes_z)
            box = (v.box_n, v.box_z, v.box_y, v.box_x)
            first = [c.mul(at, size) for at, size in zip((n, z, y, x), box, strict=True)]
            sizes = [c.least(c.sub(all_, at), size) for all_, at, size in
                     zip((v.images, v.out_z, v.out_y, v.out_x), first, box, strict=True)]
            inside = self.offset(c, v.x, first, (v.x_n, v.x_z, v.x_y, v.x_x))
            source = self.covered(c, sizes[0], first, work, inside)
            target = self.offset(c, v.out, first, (v.to_n, v.to_z, v.to_y, v.to_x))
            rows = self.table(c, places, to, sizes)
            height = self.height(c, sizes[3])
            first_panel, last_panel = (c.udiv(c.mul(n, panels), v.pieces) for n in (piece, c.add(piece, I64(1))))

            def block(index: Any) -> None:
                begin = c.mul(index, I64(BLOCK))
                depth = c.least(c.sub(v.k, begin), I64(BLOCK))
                line, pos = self.parted(c, begin, v.length)
                used = c.add(c.udiv(c.sub(c.add(pos, depth), I64(1)), v.length), I64(1))
                c.each(I64(0), used, I64(1),
                       lambda i: c.store(self.line(c, c.add(line, i)), c.at(lines, i, I64)))
                fresh = c.zext(c.icmp_signed("==", index, I64(0)), I64)

                def panel(number: Any) -> None:
                    column = c.mul(number, I64(self.width))
                    before = c.mul(c.add(c.mul(index, panels), number), I64(BLOCK * self.width))
                    direct = c.add(c.mul(begin, v.ldb), column)
                    right = c.at(v.b, c.select(packed, before, direct), self.kind)
                    ldb = c.select(packed, I64(self.width), v.ldb)
                    columns = c.least(c.sub(v.n, column), I64(self.width))
                    out = c.at(target, column, self.kind)

                    middle = [lines, pos, v.length, depth, right, ldb]

                    def tile(row: Any) -> None:
                        height = c.least(c.sub(rows, row), I64(self.shape.tall))
                        arguments = [source, c.at(places, row, I64), *middle, out, c.at(to, row, I64), height, columns,
                                     fresh]
                        self.choose(c, self.tiles, columns, height, lambda kernel: c.call(kernel, arguments))

                    def stretch(first: Any, at: Any) -> None:
                        # The last tile begins early enough to be whole, and leaves out what was done.
                        begin = c.least(at, c.sub(sizes[3], height))
                        row = c.add(first, begin)
                        from_, target = (c.gep(base, [c.element(table, row, I64)], source_etype=_I8)
                                         for base, table in ((source, places), (out, to)))
                        arguments = [from_, from_place, *middle, target, to_place, c.sub(at, begin), columns, fresh]
                        self.choose(c, self.spaced, columns, height, lambda kernel: c.call(kernel, arguments))

                    with c.if_else(c.icmp_signed("<=", height, sizes[3])) as (straight, other):
                        with straight:
                            c.each(I64(0), rows, sizes[3], lambda first: c.each(
                                I64(0), sizes[3], height, lambda at: stretch(first, at)))
                        with other:
                            c.each(I64(0), rows, I64(self.shape.tall), tile)
                c.each(first_panel, last_panel, I64(1), panel)
            c.each(I64(0), count, I64(1), block)
        c.each(c.fn.args[0], c.fn.args[1], I64(1), unit)
        c.ret(I64(0))

    def covered(self, c: Code, images: Any, first: list[Any], work: Any, inside: Any) -> Any:
        """Where the windows of a box lie: `inside` of the images, or in `work` after a copy with zeros around it."""
        v = self.v
        here, copy, done = c.block, c.fn.append_basic_block(), c.fn.append_basic_block()
        c.cbranch(c.icmp_signed("==", v.work, I64(0)), done, copy)
        c.position_at_end(copy)
        strides, befores = (v.stride_z, v.stride_y, v.stride_x), (v.before_z, v.before_y, v.before_x)
        z, y, x = (c.sub(c.mul(at, stride), before)
                   for at, stride, before in zip(first[1:], strides, befores, strict=True))
        low = c.least(c.most(c.sub(I64(0), x), I64(0)), v.cover_x)
        high = c.most(c.least(c.sub(v.size_x, x), v.cover_x), low)
        target = c.inttoptr(work, POINTER)

        def line(n: Any, i: Any, j: Any) -> None:
            at_z, at_y = c.add(z, i), c.add(y, j)
            valid = functools.reduce(c.and_, [c.icmp_unsigned("<", at, size) for at, size in
                                              ((at_z, v.size_z), (at_y, v.size_y))])
            begin, end = (c.mul(c.select(valid, at, v.cover_x), v.channels) for at in (low, high))
            to_row = c.add(c.mul(c.add(c.mul(n, v.cover_z), i), v.cover_y), j)
            to = c.at(target, c.mul(c.mul(to_row, v.cover_x), v.channels), self.kind)
            row = c.add(c.mul(c.add(c.mul(c.add(first[0], n), v.size_z), at_z), v.size_y), at_y)
            from_ = c.at(v.x, c.mul(c.add(c.mul(row, v.size_x), x), v.channels), self.kind)
            self.stretch(c, to, I64(0), begin, None)
            self.stretch(c, to, begin, end, from_)
            self.stretch(c, to, end, c.mul(v.cover_x, v.channels), None)

        c.each(I64(0), images, I64(1), lambda n: c.each(I64(0), v.cover_z, I64(1), lambda i: c.each(
            I64(0), v.cover_y, I64(1), lambda j: line(n, i, j))))
        copied = c.block
        c.branch(done)
        c.position_at_end(done)
        found = c.phi(POINTER)
        found.add_incoming(inside, here)
        found.add_incoming(target, copied)
        return found

    def stretch(self, c: Code, to: Any, begin: Any, end: Any, from_: Any) -> None:
        """Fills elements of `to` with those of `from_`, or with zeros."""
        def piece(at: Any) -> None:
            left = c.sub(end, at)
            mask = c.mask(left, self.lanes)
            with c.if_else(c.less(left, I64(self.lanes))) as (edge, whole):
                with edge:
                    self.move(c, to, at, from_, mask)
                with whole:
                    self.move(c, to, at, from_, None)
        c.each(begin, end, I64(self.lanes), piece)

    def move(self, c: Code, to: Any, at: Any, from_: Any, mask: Any) -> None:
        none = ir.Constant(self.vector, None)
        value = none if from_ is None else c.vector(c.at(from_, at, self.kind), self.vector, mask)
        c.put(value, c.at(to, at, self.kind), mask)

    def parted(self, c: Code, number: Any, size: Any) -> tuple[Any, Any]:
        """Quotient and remainder."""
        rest = c.udiv(number, size)
        return rest, c.sub(number, c.mul(rest, size))

    def offset(self, c: Code, base: Any, first: list[Any], steps: tuple[Any, ...]) -> Any:
        at = functools.reduce(c.add, [c.mul(index, step) for index, step in zip(first, steps, strict=True)])
        return c.at(base, at, self.kind)

    def table(self, c: Code, places: Any, to: Any, sizes: list[Any]) -> Any:
        """Fills in the offsets of a box's places; how many there are. The last is repeated to fill a tile."""
        v = self.v
        (n_x, n_to), (z_x, z_to), (y_x, y_to), (x_x, x_to) = (
            tuple(self.bytes(c, step) for step in steps)
            for steps in ((v.place_n, v.to_n), (v.x_z, v.to_z), (v.x_y, v.to_y), (v.x_x, v.to_x)))
        size_n, size_z, size_y, size_x = sizes

        def line(n: Any, z: Any, y: Any) -> None:
            first = c.mul(c.add(c.mul(c.add(c.mul(n, size_z), z), size_y), y), size_x)
            at = c.add(c.add(c.mul(n, n_x), c.mul(z, z_x)), c.mul(y, y_x))
            into = c.add(c.add(c.mul(n, n_to), c.mul(z, z_to)), c.mul(y, y_to))

            def place(values: list[Any]) -> list[Any]:
                x, at, into = values
                n = c.add(first, x)
                c.store(at, c.at(places, n, I64))
                c.store(into, c.at(to, n, I64))
                return [c.add(x, I64(1)), c.add(at, x_x), c.add(into, x_to)]
            _while(c, [I64(0), at, into], lambda values: c.less(values[0], size_x), place)

        c.each(I64(0), size_n, I64(1), lambda n: c.each(I64(0), size_z, I64(1), lambda z: c.each(
            I64(0), size_y, I64(1), lambda y: line(n, z, y))))
        rows = c.mul(c.mul(c.mul(size_n, size_z), size_y), size_x)
        last = c.sub(rows, I64(1))
        for table in (places, to):
            held = c.element(table, last, I64)
            for n in range(self.shape.tall - 1):
                c.store(held, c.at(table, c.add(rows, I64(n)), I64))
        return rows

    def height(self, c: Code, length: Any) -> Any:
        """The tiles that part a line of places evenly: how many of these one takes, if that many there are."""
        tall = self.shape.tall
        count = c.udiv(c.add(length, I64(tall - 1)), I64(tall))
        even = c.udiv(c.add(length, c.sub(count, I64(1))), count)
        found: Any = I64(tall)
        for rows in sorted(self.spaced[1], reverse=True)[1:]:
            found = c.select(c.icmp_signed("<=", even, I64(rows)), I64(rows), found)
        return found

    def choose(self, c: Code, kernels: dict[int, dict[int, ir.Function]], columns: Any, height: Any,
               run: Callable[[ir.Function], None]) -> None:
        """The micro-kernel that does the least for a tile at an edge."""
        done = c.fn.append_basic_block()
        for vectors, tiles in kernels.items():
            fits, wider = c.fn.append_basic_block(), c.fn.append_basic_block()
            c.cbranch(c.icmp_signed("<=", columns, I64(vectors * self.lanes)), fits, wider)
            c.position_at_end(fits)
            for rows, kernel in tiles.items():
                this, other = c.fn.append_basic_block(), c.fn.append_basic_block()
                c.cbranch(c.icmp_signed("<=", height, I64(rows)), this, other)
                c.position_at_end(this)
                run(kernel)
                c.branch(done)
                c.position_at_end(other)
            c.branch(done)  # no tile is taller
            c.position_at_end(wider)
        c.branch(done)  # and no panel wider
        c.position_at_end(done)


class _Filters(_Kernel):
    """`filters`: elements of a line by outputs."""

    def __init__(self, module: ir.Module, dtype: DType, shape: Tiling) -> None:
        super().__init__(module, dtype, shape, "filters", FILTERS)
        self.pack = pack(module, shape, dtype)
        self.tiles = {vectors: [(rows, self.micro(rows, vectors)) for rows in _heights(shape, vectors)]
                      for vectors in range(1, VECTORS + 1)}
        self.scattered = {vectors: self.micro(_SCATTERED, vectors, True) for vectors in range(1, VECTORS + 1)}

    def micro(self, rows: int, vectors: int, scattered: bool = False) -> ir.Function:
        """The micro-kernel `(x, places, k, B, ldb, out, ldo, n, fresh)` for `rows` neighbours in `x`.

        `places` holds k byte offsets into `x`. n columns are written; unless `fresh`, what they hold is added to.
        Where they are `scattered`, two more arguments are `(offsets, m)`: where the rows are in `x`, in bytes, and how
        many of them are written.
        """
        c = Code(self.module, f"filters_{'scattered_' if scattered else ''}{rows}x{vectors}", VOID,
                 [POINTER, POINTER, I64, POINTER, I64, POINTER, I64, I64, I64, *([POINTER, I64] if scattered else [])])
        x, places, k, b, ldb, out, ldo, n, fresh, *more = c.fn.args
        masks = self.masks(c, n, vectors)
        ldb = self.bytes(c, ldb)
        offsets = [c.element(more[0], i, I64) for i in range(rows)] if scattered else []

        def place(values: list[Any]) -> list[Any]:
            left, places, b, *sums = values
            row = c.gep(x, [c.load(places, typ=I64)], source_etype=_I8)
            right = self.rows_of(c, b, vectors, masks)
            for i in range(rows):
                at = c.gep(row, [offsets[i]], source_etype=_I8) if scattered else c.at(row, i, self.kind)
                value = c.spread(c.load(at, typ=self.kind), self.lanes)
                for j in range(vectors):
                    sums[i * vectors + j] = c.fma(value, right[j], sums[i * vectors + j])
            return [c.sub(left, I64(1)), c.at(places, 1, I64), c.gep(b, [ldb], source_etype=_I8), *sums]

        _, _, _, *sums = _while(c, [k, places, b, *self.zeros(rows * vectors)],
                                lambda values: c.less(I64(0), values[0]), place)
        is_fresh = c.icmp_signed("!=", fresh, I64(0))
        done = c.fn.append_basic_block("done")
        for i in range(rows):
            if scattered:
                row = c.fn.append_basic_block()
                c.cbranch(c.less(I64(i), more[1]), row, done)
                c.position_at_end(row)
            target = c.at(out, c.mul(ldo, I64(i)), self.kind)
            self.add(c, sums[i * vectors:(i + 1) * vectors], target, masks, is_fresh)
        c.branch(done)
        c.position_at_end(done)
        c.ret_void()
        return c.fn

    def write(self) -> None:
        c = self.begin()
        v = self.v
        places, right = c.room(I64, BLOCK), c.room(self.kind, BLOCK * self.width)
        offsets = c.room(I64, _SCATTERED)
        direct = c.icmp_signed("<=", v.n, I64(self.width if self.shape.masks else 0))

        def unit(number: Any) -> None:
            share = c.udiv(number, v.splits)
            split = c.sub(number, c.mul(share, v.splits))
            line, last_line = (c.udiv(c.mul(n, v.lines), v.splits) for n in (split, c.add(split, I64(1))))
            first, last = (c.udiv(c.mul(n, v.places), v.shares) for n in (share, c.add(share, I64(1))))
            out = c.at(v.out, c.mul(share, v.share), self.kind)

            def block(begin: Any) -> None:
                depth = c.least(c.sub(last, begin), I64(BLOCK))
                self.table(c, places, begin, depth)
                fresh = c.zext(c.icmp_signed("==", begin, first), I64)

                def panel(column: Any) -> None:
                    columns = c.least(c.sub(v.n, column), I64(self.width))
                    from_ = c.at(v.b, c.add(c.mul(begin, v.ldb), column), self.kind)
                    with c.if_then(c.not_(direct)):
                        c.call(self.pack, [right, I64(self.width), from_, I64(1), v.ldb, columns, depth])
                    rows = c.select(direct, from_, right)
                    ldb = c.select(direct, v.ldb, I64(self.width))
                    arguments = [places, depth, rows, ldb]
                    to = c.at(out, column, self.kind)
                    with c.if_else(c.icmp_signed("<=", v.length, I64(_SCATTERED))) as (short, long):
                        with short:
                            self.gathered(c, line, last_line, arguments, to, columns, fresh, offsets)
                        with long:
                            c.each(line, last_line, I64(1),
                                   lambda n: self.tiled(c, n, arguments, to, columns, fresh))
                c.each(I64(0), v.n, I64(self.width), panel)
            c.each(first, last, I64(BLOCK), block)
        c.each(c.fn.args[0], c.fn.args[1], I64(1), unit)
        c.ret(I64(0))

    def gathered(self, c: Code, line: Any, last: Any, arguments: list[Any], out: Any, columns: Any, fresh: Any,
                 offsets: Any) -> None:
        """All tiles of short lines, whose elements are put together."""
        v = self.v
        end = c.mul(last, v.length)

        def tile(first: Any) -> None:
            def element(n: Any) -> None:
                number = c.least(c.add(first, n), c.sub(end, I64(1)))
                line = c.udiv(number, v.length)
                at = c.sub(number, c.mul(line, v.length))
                c.store(c.add(self.line(c, line), self.bytes(c, at)), c.at(offsets, n, I64))
            c.each(I64(0), I64(_SCATTERED), I64(1), element)
            call = [v.x, *arguments, c.at(out, c.mul(first, v.ldo), self.kind), v.ldo, columns, fresh, offsets,
                    c.sub(end, first)]
            with c.if_else(c.icmp_signed("<=", columns, I64(self.lanes))) as (narrow, wide):
                for vectors, part in zip(range(1, VECTORS + 1), (narrow, wide), strict=True):
                    with part:
                        c.call(self.scattered[vectors], call)
        c.each(c.mul(line, v.length), end, I64(_SCATTERED), tile)

    def tiled(self, c: Code, line: Any, arguments: list[Any], out: Any, columns: Any, fresh: Any) -> None:
        """All tiles of a line, from the largest on as they fit."""
        v = self.v
        x = c.gep(v.x, [self.line(c, line)], source_etype=_I8)
        top = c.mul(line, v.length)
        narrow, wide, done = (c.fn.append_basic_block() for _ in range(3))
        c.cbranch(c.icmp_signed("<=", columns, I64(self.lanes)), narrow, wide)
        for vectors, block in zip(range(1, VECTORS + 1), (narrow, wide), strict=True):
            c.position_at_end(block)
            pos: Any = I64(0)
            for rows, kernel in self.tiles[vectors]:
                def tile(values: list[Any], kernel: Any = kernel, rows: int = rows) -> list[Any]:
                    at, = values
                    to = c.at(out, c.mul(c.add(top, at), v.ldo), self.kind)
                    c.call(kernel, [c.at(x, at, self.kind), *arguments, to, v.ldo, columns, fresh])
                    return [c.add(at, I64(rows))]
                pos, = _while(c, [pos], lambda values, rows=rows: c.icmp_signed(
                    "<=", c.add(values[0], I64(rows)), v.length), tile)
            c.branch(done)
        c.position_at_end(done)

    def table(self, c: Code, places: Any, begin: Any, depth: Any) -> None:
        """Fills in the offsets of `depth` places from number `begin` on."""
        v = self.v
        of_line = c.udiv(begin, v.out_x)
        x = c.sub(begin, c.mul(of_line, v.out_x))
        of_plane = c.udiv(of_line, v.out_y)
        y = c.sub(of_line, c.mul(of_plane, v.out_y))
        image = c.udiv(of_plane, v.out_z)
        z = c.sub(of_plane, c.mul(image, v.out_z))
        step_x, step_y, step_z, step_n = (self.bytes(c, s) for s in (v.x_x, v.x_y, v.x_z, v.x_n))

        def sum_of(*pairs: tuple[Any, Any]) -> Any:
            return functools.reduce(c.add, [c.mul(n, step) for n, step in pairs])

        def place(values: list[Any]) -> list[Any]:
            n, at, x, y, z, image = values
            c.store(at, c.at(places, n, I64))
            over = c.icmp_signed("==", c.add(x, I64(1)), v.out_x)
            here = c.block
            turn, after = c.fn.append_basic_block(), c.fn.append_basic_block()
            straight = [c.add(at, step_x), c.add(x, I64(1)), y, z, image]
            c.cbranch(over, turn, after)
            c.position_at_end(turn)
            y2 = c.add(y, I64(1))
            over_y = c.icmp_signed("==", y2, v.out_y)
            y2, z2 = c.select(over_y, I64(0), y2), c.add(z, c.zext(over_y, I64))
            over_z = c.icmp_signed("==", z2, v.out_z)
            z2, image2 = c.select(over_z, I64(0), z2), c.add(image, c.zext(over_z, I64))
            turned = [sum_of((y2, step_y), (z2, step_z), (image2, step_n)), I64(0), y2, z2, image2]
            there = c.block
            c.branch(after)
            c.position_at_end(after)
            merged = []
            for a, b in zip(straight, turned, strict=True):
                phi = c.phi(I64)
                phi.add_incoming(a, here)
                phi.add_incoming(b, there)
                merged.append(phi)
            at, x, y, z, image = merged
            return [c.add(n, I64(1)), at, x, y, z, image]

        start = sum_of((x, step_x), (y, step_y), (z, step_z), (image, step_n))
        _while(c, [I64(0), start, x, y, z, image], lambda values: c.less(values[0], depth),
               place)
