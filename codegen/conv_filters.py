"""`filters`, the kernel of gradients for filters: a line's elements by outputs in registers, along the places; see
`conv.py`.

Lines are covered by whole tiles, from the largest on as they fit, so that nothing beyond a line is read. The elements
of short lines are put together instead.
"""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import ir

from twofold.ir.dtypes import DType

from . import llvm_cpu
from .conv_code import BYTE, I64, POINTER, VOID, Code, ConvKernel, looped
from .conv_shapes import FILTERS
from .gemm_pack import pack
from .gemm_shapes import BLOCK, Tiling

__all__ = ["Filters"]

_SCATTERED = 9  # elements of short lines that a tile takes: their offsets are to stay in registers


def _heights(shape: Tiling, vectors: int) -> tuple[int, ...]:
    """Elements of a line that tiles of `filters` take: whole tiles only, so that nothing beyond a line is read."""
    room = 24 if shape.tall > 8 else 10
    most = room // vectors
    return tuple(n for n in (24, 16, 12, 8, 5, 4, 2, 1) if n <= most)


class Filters(ConvKernel):
    """`filters`: elements of a line by outputs."""

    def __init__(self, module: ir.Module, dtype: DType, shape: Tiling, vectors: int) -> None:
        super().__init__(module, dtype, shape, "filters", vectors, FILTERS)
        self.pack = llvm_cpu.emit_function(module, pack(shape, dtype))
        self.tiles = {vectors: [(rows, self.micro(rows, vectors)) for rows in _heights(shape, vectors)]
                      for vectors in self.vectors}
        self.scattered = {vectors: self.micro(_SCATTERED, vectors, True) for vectors in self.vectors}

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
            row = c.gep(x, [c.load(places, typ=I64)], source_etype=BYTE)
            right = self.rows_of(c, b, vectors, masks)
            for i in range(rows):
                at = c.gep(row, [offsets[i]], source_etype=BYTE) if scattered else c.at(row, i, self.kind)
                value = c.spread(c.load(at, typ=self.kind), self.lanes)
                for j in range(vectors):
                    sums[i * vectors + j] = c.fma(value, right[j], sums[i * vectors + j])
            return [c.sub(left, I64(1)), c.at(places, 1, I64), c.gep(b, [ldb], source_etype=BYTE), *sums]

        _, _, _, *sums = looped(c, [k, places, b, *self.zeros(rows * vectors)],
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
                with c.if_then(c.less(I64(0), depth)):
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
            some = c.select(c.less(first, last), last, c.add(first, I64(1)))  # a block without places writes zeros
            c.each(first, some, I64(BLOCK), block)
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
            self.by_width(c, columns, lambda vectors: c.call(self.scattered[vectors], call))
        c.each(c.mul(line, v.length), end, I64(_SCATTERED), tile)

    def tiled(self, c: Code, line: Any, arguments: list[Any], out: Any, columns: Any, fresh: Any) -> None:
        """All tiles of a line, from the largest on as they fit."""
        v = self.v
        x = c.gep(v.x, [self.line(c, line)], source_etype=BYTE)
        top = c.mul(line, v.length)

        def whole(pos: Any, rows: int, kernel: Any) -> Any:
            def tile(values: list[Any]) -> list[Any]:
                at, = values
                to = c.at(out, c.mul(c.add(top, at), v.ldo), self.kind)
                c.call(kernel, [c.at(x, at, self.kind), *arguments, to, v.ldo, columns, fresh])
                return [c.add(at, I64(rows))]
            return looped(c, [pos], lambda values: c.icmp_signed("<=", c.add(values[0], I64(rows)), v.length), tile)[0]

        def tiles(vectors: int) -> None:
            pos: Any = I64(0)
            for rows, kernel in self.tiles[vectors]:
                pos = whole(pos, rows, kernel)
        self.by_width(c, columns, tiles)

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
        looped(c, [I64(0), start, x, y, z, image], lambda values: c.less(values[0], depth),
               place)
