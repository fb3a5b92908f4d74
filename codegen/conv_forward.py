"""`forward`, the kernel of convolutions: places by outputs in registers, along the lines of a window; see `conv.py`.

Tiles of places that lie evenly spaced, in one line of the result, need no addresses; the others read theirs from a
table, which is filled once for a box. Lines are covered by tiles of one height, the last of which begins early enough
to be whole and leaves out what was done.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from twofold.ir.dtypes import DType

from .conv_code import BYTE, I64, POINTER, VOID, Code, ConvKernel, looped
from .conv_shapes import FORWARD, MAX_ROWS
from .gemm_shapes import BLOCK, PACKED, Tiling

__all__ = ["Forward"]

# Columns of a line that a pass takes, by the vectors of a tile: few registers in use leave room for more.
_UNROLLED = {1: (4, 1), 2: (1,)}


class Forward(ConvKernel):
    """`forward`: places by outputs."""

    def __init__(self, module: ir.Module, dtype: DType, shape: Tiling, vectors: int) -> None:
        super().__init__(module, dtype, shape, "forward", vectors, FORWARD)
        self.tiles = {vectors: {rows: self.micro(rows, vectors, False) for rows in sorted(shape.heights)}
                      for vectors in self.vectors}
        heights = [n for n in (shape.tall - 6, shape.tall - 2, shape.tall) if n > 0 and 2 * n >= shape.tall]
        self.spaced = {vectors: {rows: self.micro(rows, vectors, True) for rows in heights}
                       for vectors in self.vectors}

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
                return c.gep(from_, [c.element(places, i, I64)], source_etype=BYTE)
            if i >= 8:
                from_ = c.gep(from_, [c.shl(places, I64(3))], source_etype=BYTE)
            power, factor = next((p, i % 8 >> p) for p in (3, 2, 1, 0) if i % 8 % (1 << p) == 0)
            if factor == 0:
                return from_
            # An address takes a register times 1, 2, 4 or 8: four registers serve all rows.
            return c.gep(from_, [c.shl(odd.get(factor, places), I64(power))], source_etype=BYTE)

        def step(values: list[Any], count: int) -> list[Any]:
            at, from_, b, *sums = values
            right = []
            for _ in range(count):
                right.append(self.rows_of(c, b, vectors, masks))
                b = c.gep(b, [ldb], source_etype=BYTE)
            for i in range(rows):
                row = row_of(from_, i)
                for u in range(count):
                    left = c.spread(c.element(row, u, self.kind), self.lanes)
                    for j in range(vectors):
                        sums[i * vectors + j] = c.fma(left, right[u][j], sums[i * vectors + j])
            return [c.sub(at, I64(count)), c.at(from_, count, self.kind), b, *sums]

        def some(state: list[Any], unrolled: int) -> list[Any]:
            return looped(c, state, lambda s: c.less(I64(unrolled - 1), s[0]), functools.partial(step, count=unrolled))

        def line(values: list[Any]) -> list[Any]:
            left, lines, pos, b, *sums = values
            count = c.least(c.sub(length, pos), left)
            from_ = c.at(c.gep(x, [c.load(lines, typ=I64)], source_etype=BYTE), pos, self.kind)
            state = [count, from_, b, *sums]
            for unrolled in _UNROLLED[vectors]:
                state = some(state, unrolled)
            return [c.sub(left, count), c.at(lines, 1, I64), I64(0), *state[2:]]

        _, _, _, _, *sums = looped(c, [k, lines, pos, b, *self.zeros(rows * vectors)],
                                   lambda values: c.less(I64(0), values[0]), line)
        is_fresh = c.icmp_signed("!=", fresh, I64(0))
        finish = c.fn.append_basic_block("finish")
        for i in range(rows):
            row, after = c.fn.append_basic_block(), c.fn.append_basic_block() if spaced else finish
            c.cbranch(c.icmp_signed("<=", rest, I64(i)) if spaced else c.less(I64(i), rest), row, after)
            c.position_at_end(row)
            at = c.mul(to, I64(i)) if spaced else c.element(to, i, I64)
            self.add(c, sums[i * vectors:(i + 1) * vectors], c.gep(out, [at], source_etype=BYTE), masks, is_fresh)
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
        from_place, to_place = self.bytes(c, v.x_x), self.bytes(c, v.to_x)

        def unit(number: Any, work: Any) -> None:
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
                        from_, target = (c.gep(base, [c.element(table, row, I64)], source_etype=BYTE)
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

        def part(number: Any) -> None:
            first, last = (c.udiv(c.mul(n, v.units), v.parts) for n in (number, c.add(number, I64(1))))
            work = c.add(v.work, self.bytes(c, c.mul(number, c.mul(v.box_n, v.room))))
            c.each(first, last, I64(1), lambda n: unit(n, work))
        c.each(c.fn.args[0], c.fn.args[1], I64(1), part)
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
            looped(c, [I64(0), at, into], lambda values: c.less(values[0], size_x), place)

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
        def tiles(vectors: int) -> None:
            done = c.fn.append_basic_block()
            *lower, tallest = kernels[vectors].items()
            for rows, kernel in lower:
                this, other = c.fn.append_basic_block(), c.fn.append_basic_block()
                c.cbranch(c.icmp_signed("<=", height, I64(rows)), this, other)
                c.position_at_end(this)
                run(kernel)
                c.branch(done)
                c.position_at_end(other)
            run(tallest[1])
            c.branch(done)
            c.position_at_end(done)
        self.by_width(c, columns, tiles)
