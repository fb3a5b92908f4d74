"""`narrow`, the kernel of convolutions with few outputs, or few in each group: outputs by places in registers; what it
takes says `conv_narrow_shapes.py`.

Vectors of outputs would be filled to a part. So lanes are places here. What a box of places covers is copied to work
memory channel by channel, with zeros around the images; there the pixels that neighbouring places have at a tap are
neighbours, and lines follow each other, so that places are numbered through a box: of those in the margin between two
lines the results are not looked at. Results are put together output by output, too, and turned back at the end.
"""

from __future__ import annotations

from typing import NamedTuple

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from .conv_narrow_shapes import WORDS, vectors_of
from .conv_shapes import symbol
from .conv_tile import arguments, each_unit
from .gemm_pack import SquareSource, pack
from .gemm_shapes import BLOCK, Tiling
from .gemm_tile import multiply_add, while_below
from .loop import FunctionBuilder, Kernel, LoopBuilder, LoopFunction
from .loop_sizes import covering, parted
from .value_types import address, vector

__all__ = ["narrow"]


def narrow(dtype: DType, shape: Tiling, columns: int) -> Kernel:
    """The kernel, whose tiles have so many outputs."""
    return _Narrow(dtype, shape, columns).recorded()


def _tile(tiling: Tiling, dtype: DType, columns: int, vectors: int) -> LoopFunction:
    """The micro-kernel `(x, plane, lines, used, some, length, k, b, ldb, out, ldo, fresh)`: out = old + sums.

    Of each place it takes k elements: along `used` taps, whose offsets are in `lines`, `some` of the first and up to
    `length` of each other, `plane` apart. What `out` held before counts as 0 if `fresh` is not 0.
    """
    f, lanes = FunctionBuilder(f"narrow_{columns}x{vectors}"), tiling.lanes
    number, memory = dt.int64, address(dtype)
    x, plane, lines = f.parameter("x", memory), f.parameter("plane", number), f.parameter("lines", address(number))
    used, some, length, k = (f.parameter(name, number) for name in ("used", "some", "length", "k"))
    right, ldb = f.parameter("b", memory), f.parameter("ldb", number)
    out, ldo, fresh = f.parameter("out", memory), f.parameter("ldo", number), f.parameter("fresh", number)
    zero = f.const(0.0, vector(dtype, lanes))
    sums = [[f.local(zero) for _ in range(vectors)] for _ in range(columns)]
    room, left, at_b = f.local(some), f.local(k), f.local(right)
    with f.for_(0, used) as line:
        count = f.minimum(room.get(), left.get())
        at_x = f.local(f.at(x, f.load(lines, line)))
        with f.for_(count, 0, -1):
            here, row = at_x.get(), at_b.get()
            if columns <= vectors:  # the fewer stay in registers, the others come one by one
                weights = [f.splat(f.load(row, n), lanes) for n in range(columns)]
                for j in range(vectors):
                    pixels = f.load(here, j * lanes, lanes)
                    for weight, cells in zip(weights, sums, strict=True):
                        cells[j].set(multiply_add(f, pixels, weight, cells[j].get()))
            else:
                of_x = [f.load(here, j * lanes, lanes) for j in range(vectors)]
                for n, cells in enumerate(sums):
                    weight = f.splat(f.load(row, n), lanes)
                    for cell, pixels in zip(cells, of_x, strict=True):
                        cell.set(multiply_add(f, pixels, weight, cell.get()))
            at_x.set(f.at(here, plane))
            at_b.set(f.at(row, ldb))
        left.set(left.get() - count)
        room.set(length)
    new = f.ne(fresh, 0)
    for n, row_of_sums in enumerate(sums):
        to = f.at(out, ldo * n) if n else out
        for j, cell in enumerate(row_of_sums):
            f.store(to, j * lanes, f.select(new, zero, f.load(to, j * lanes, lanes)) + cell.get())
    return f.finish()


def _turn(tiling: Tiling, dtype: DType) -> LoopFunction:
    """The function `(out, to, source, s, m, k)`: out[t to + s'] = source[s' s + t] for s' < m and t < k."""
    f, lanes = FunctionBuilder("turn"), tiling.lanes
    out, to = f.parameter("out", address(dtype)), f.parameter("to", dt.int64)
    start, s = f.parameter("source", address(dtype)), f.parameter("s", dt.int64)
    m, k = f.parameter("m", dt.int64), f.parameter("k", dt.int64)
    source = SquareSource(f, tiling, start, s, f.const(1, dt.int64), m, k)
    with f.for_(0, k, lanes) as t, f.for_(0, m, lanes) as first:
        columns, mask = source.columns(source.rows(first), t), f.first(m - first, lanes)
        for i in while_below(f, lanes, k - t):
            f.store(f.at(out, (t + i) * to), first, columns[i], mask)
    return f.finish()


class _NarrowBox(NamedTuple):
    """A box of places.

    first, sizes: where it begins among the places of an image, along each axis, and how many they are. image, out:
    where the image, and the first result, lie. inputs, outputs: the same in work memory.
    """

    first: list[Scalar]
    sizes: list[Scalar]
    image: Scalar
    out: Scalar
    inputs: Scalar
    outputs: Scalar


class _Narrow:
    """The kernel being recorded; `v` are its arguments."""

    def __init__(self, dtype: DType, shape: Tiling, columns: int) -> None:
        self.shape, self.lanes, self.zero = shape, shape.lanes, vector(dtype, shape.lanes)
        self.b = b = LoopBuilder(symbol(f"narrow_{columns}", dtype))
        self.v = v = arguments(b, dtype, WORDS)
        most = vectors_of(columns, shape)
        self.tiles = {n: _tile(shape, dtype, columns, n) for n in sorted({most, -(-most // 2)}, reverse=True)}
        self.pack, self.turn = pack(shape, dtype), _turn(shape, dtype)
        self.lines, self.blocks = b.scratch(dt.int64, BLOCK + 1), covering(b, v.k, BLOCK)
        self.strides, self.steps = (v.stride_z, v.stride_y, v.stride_x), (v.step_z, v.step_y, v.step_x)
        self.sides = (v.plane_z, v.plane_y, v.plane_x)

    def recorded(self) -> Kernel:
        """The finished kernel."""
        b, v = self.b, self.v
        with each_unit(b, v) as (unit, first, work):
            box = self.box(unit, work)
            self.cover(box)
            with b.for_(0, self.blocks) as block:
                self.block(box, block, b.or_(b.eq(unit, first), b.lt(1, self.blocks)))
            self.give(box)
        return b.finish()

    def box(self, number: Scalar, work: Scalar) -> _NarrowBox:
        """The box of a unit."""
        b, v = self.b, self.v
        rest, x = parted(b, number, v.boxes_x)
        rest, y = parted(b, rest, v.boxes_y)
        image, z = parted(b, rest, v.boxes_z)
        first = [z * v.box_z, y * v.box_y, x * v.box_x]
        sizes = [b.minimum(count - at, size) for count, at, size in zip(
            (v.out_z, v.out_y, v.out_x), first, (v.box_z, v.box_y, v.box_x), strict=True)]
        out = image * v.to_n + first[0] * v.to_z + first[1] * v.to_y + first[2] * v.to_x
        pixels = b.at(v.x, image * (v.size_z * v.size_y * v.size_x * v.channels))
        return _NarrowBox(first, sizes, pixels, b.at(v.out, out), work, b.at(work, v.sums))

    # -- what is covered ------------------------------------------------------------------------------------------
    def cover(self, box: _NarrowBox) -> None:
        """Copies the pixels of a box channel by channel, line by line in rising order: packing writes whole vectors,
        whose ends are written once more."""
        b, v = self.b, self.v
        z, y, x = (at * stride - before for at, stride, before in zip(
            box.first, self.strides, (v.before_z, v.before_y, v.before_x), strict=True))
        lines_z, lines_y = (side - most + size for side, most, size in zip(
            self.sides, (v.box_z, v.box_y), box.sizes, strict=False))
        with b.for_(0, v.stride_z) as rest_z, b.for_(0, v.stride_y) as rest_y, b.for_(0, v.stride_x) as rest_x:
            rest = (rest_z * v.stride_y + rest_y) * v.stride_x + rest_x
            with b.for_(0, lines_z) as i, b.for_(0, lines_y) as j:
                at_z, at_y = z + rest_z + i * v.stride_z, y + rest_y + j * v.stride_y
                inside = [b.and_(b.ge(at, 0), b.lt(at, size)) for at, size in ((at_z, v.size_z), (at_y, v.size_y))]
                to = b.at(box.inputs, ((rest * v.plane_z + i) * v.plane_y + j) * v.plane_x)
                row = b.at(box.image, (at_z * v.size_y + at_y) * v.size_x * v.channels)
                self.line(to, row, x + rest_x, b.and_(*inside), v.channels)

    def line(self, to: Scalar, row: Scalar, x: Scalar, inside: Scalar, channels: Scalar) -> None:
        """Copies of a line of an image every so many pixels from x on, with zeros beyond it."""
        b, v = self.b, self.v
        low = b.minimum(covering(b, b.maximum(-x, 0), v.stride_x), v.plane_x)
        high = b.maximum(b.minimum(covering(b, b.maximum(v.size_x - x, 0), v.stride_x), v.plane_x), low)
        begin, end = (b.select(inside, at, v.plane_x) for at in (low, high))
        self.clear(to, 0, begin, channels)
        with b.if_(b.lt(begin, end)):
            source = b.at(row, (x + begin * v.stride_x) * v.channels)
            b.invoke(self.pack, b.at(to, begin), v.plane, source, v.stride_x * v.channels, 1, end - begin, channels)
        self.clear(to, end, v.plane_x, channels)

    def clear(self, to: Scalar, begin: Scalar | int, end: Scalar, channels: Scalar) -> None:
        """Fills elements of a line with zeros, in so many channels."""
        b, v = self.b, self.v
        with b.for_(begin, end, self.lanes) as at:
            mask = b.first(end - at, self.lanes)
            with b.for_(0, channels) as channel:
                b.store(b.at(to, channel * v.plane), at, b.const(0.0, self.zero), mask)

    # -- what is summed -------------------------------------------------------------------------------------------
    def block(self, box: _NarrowBox, number: Scalar, is_new: Scalar) -> None:
        """Adds the products of a block of a window's elements; `is_new` unless its table is filled in."""
        b, v = self.b, self.v
        begin = number * BLOCK
        depth = b.minimum(v.k - begin, BLOCK)
        tap, pos = parted(b, begin, v.inner)
        used = covering(b, pos + depth, v.inner)
        with b.if_(is_new):
            with b.for_(0, used) as i:
                b.store(self.lines, i, self.tap(tap + i))
            b.store(self.lines, 0, b.load(self.lines, 0) + pos * v.plane)
        size_z, size_y, size_x = box.sizes
        places = ((size_z - 1) * v.plane_y + size_y - 1) * v.plane_x + size_x
        with b.for_(0, v.groups) as group:
            of_b = b.at(v.b, group * v.b_g + number * v.b_block)
            x, out = b.at(box.inputs, group * v.inner * v.plane), b.at(box.outputs, group * v.n * v.flat)
            done = b.local(0)
            for vectors, tile in self.tiles.items():
                # The last tile goes on beyond the last place; the largest one is for what the smaller would take two.
                least = min(self.tiles) * self.lanes if len(self.tiles) > 1 and vectors != min(self.tiles) else 0
                with b.for_(done.get(), places - least, vectors * self.lanes) as at:
                    b.invoke(tile, b.at(x, at), v.plane, b.at(self.lines, 0), used, v.inner - pos, v.inner, depth, of_b,
                             v.ldb, b.at(out, at), v.flat, b.select(b.eq(number, 0), b.const(1, dt.int64), 0))
                    done.set(at + vectors * self.lanes)

    def tap(self, number: Scalar) -> Scalar:
        """The offset in a plane of a tap's pixels from those of the first."""
        b, v = self.b, self.v
        rest, x = parted(b, number, v.taps_x)
        z, y = parted(b, rest, v.taps_y)
        remainder, pixel = b.const(0, dt.int64), b.const(0, dt.int64)
        for at, step, stride, side in zip((z, y, x), self.steps, self.strides, self.sides, strict=True):
            whole, rest = parted(b, at * step, stride)
            remainder, pixel = remainder * stride + rest, pixel * side + whole
        return remainder * (v.plane_z * v.plane_y * v.plane_x) + pixel

    def give(self, box: _NarrowBox) -> None:
        """Writes the results of a box, line by line."""
        b, v = self.b, self.v
        size_z, size_y, size_x = box.sizes
        with b.for_(0, size_z) as z, b.for_(0, size_y) as y:
            b.invoke(self.turn, b.at(box.out, z * v.to_z + y * v.to_y), v.to_x,
                     b.at(box.outputs, (z * v.plane_y + y) * v.plane_x), v.flat, v.groups * v.n, size_x)
