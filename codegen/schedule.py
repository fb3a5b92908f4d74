"""Map kernels: a scalar body applied to every element, for operands laid out in any way.

A *row kernel* walks one dimension; each operand has a mask letter: `v` advances element by element, `s` stays at one
element, `g` advances by a stride, and a digit stands for the memory of that output. Contiguous calls are one row.
Everything else (broadcasting, slices, transposes, any rank) is `grid`, one kernel for all ops, which runs a row kernel
over each row of an index space. So an op needs few kernels, and a new layout seldom needs a compilation. Transposed
operands that are large and come again have a kernel of the op's own, `map_tiles`, which turns them.

How a call's shapes become these arguments is `runtime/geometry.py`'s; reductions are in `reduce.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar, ScalarBody
from twofold.ir.types import Attrs

from .loop import Kernel, LoopBuilder, Pointer
from .target import CACHES

__all__ = ["map_rows", "map_tiles", "tile_shape", "grid", "tiles", "on_objects", "results_of", "MAX_RANK",
           "MAX_OPERANDS", "TILE_WIDTH"]

MAX_RANK = 64  # outer dimensions of a grid: as many as an array of NumPy has
MAX_OPERANDS = 64
_, TILE_WIDTH = CACHES.tile  # elements of a row that `tiles` takes at once


def results_of(b: LoopBuilder, body: ScalarBody, values: Sequence[Scalar], attrs: Attrs,
               count: int) -> tuple[Scalar, ...]:
    """The results of a body recorded on `b`.

    Raises:
        TypeError: there are not `count` of them.
    """
    out = body(b, *values, **attrs)
    results = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    if len(results) != count:
        raise TypeError(f"{b.name}: the body gives {len(results)} results, expected {count}")
    return results


def map_rows(name: str, body: ScalarBody, in_dtypes: Sequence[DType], out_dtypes: Sequence[DType],
             attrs: Attrs, mask: str) -> Kernel:
    """The row kernel of `body`.

    args: addresses of the outputs, then of the inputs; then for every `g` operand in that order its stride in elements,
    less 1 (`LoopBuilder.stride`).

    Args:
        mask: a letter for every input; or for every operand, outputs first (outputs are `v` or `g`). An input that is
            the output itself must be marked so: a compiler has to assume that it overlaps it in some other way.
    """
    b = LoopBuilder(f"{name} {mask}")
    outs = [b.pointer(f"out{n}", d) for n, d in enumerate(out_dtypes)]
    ins = [b.pointer(f"in{n}", d) for n, d in enumerate(in_dtypes)]
    if len(mask) == len(ins):
        mask = "v" * len(outs) + mask
    steps = [b.stride() if letter == "g" else None for letter in mask]
    fixed = [b.load(p, 0) if letter == "s" else None for p, letter in zip(ins, mask[len(outs):], strict=True)]
    with b.for_(b.start, b.stop) as i:
        at = [i if step is None else i * step for step in steps]
        values = []
        for n, letter in enumerate(mask[len(outs):]):
            place = int(letter) if letter.isdigit() else len(outs) + n
            value = fixed[n]
            values.append(b.load((*outs, *ins)[place], at[place]) if value is None else value)
        for p, a, v in zip(outs, at, results_of(b, body, values, attrs, len(outs)), strict=False):
            b.store(p, a, v)
    return b.finish()


def map_tiles(name: str, body: ScalarBody, in_dtypes: Sequence[DType], out_dtypes: Sequence[DType],
              attrs: Attrs, mask: str) -> Kernel:
    """The kernel of `body` that walks an index space of up to three dimensions by tiles; the range counts tiles.

    args: addresses of the outputs, then of the inputs; the number of rows and the length of a row; then for each
    operand its steps in elements: along the outermost dimension, from row to row and, of `g` and `t` operands, along a
    row, that one less 1 (`LoopBuilder.stride`).

    Args:
        mask: as for `map_rows`, a letter for every operand; of an input that is `t`, neighbours lie from row to row:
            its tiles are turned in registers first (`squares.py`).
    """
    from . import squares

    b = LoopBuilder(f"{name} {mask} by tiles")
    outs = [b.pointer(f"out{n}", d) for n, d in enumerate(out_dtypes)]
    ins = [b.pointer(f"in{n}", d) for n, d in enumerate(in_dtypes)]
    height, width = b.integer(), b.integer()
    steps = [(b.integer(), b.integer(), b.stride() if letter in "gt" else None) for letter in mask]
    turned = {n: d for n, d in enumerate((*out_dtypes, *in_dtypes)) if mask[n] == "t"}
    tall, wide = tile_shape(turned.values())
    buffers = {n: b.scratch(d.compute, tall * wide) for n, d in turned.items()}
    down, across = b.idiv(height + (tall - 1), tall), b.idiv(width + (wide - 1), wide)
    with b.for_(b.start, b.stop) as tile:
        strip = b.idiv(tile, down)
        outer = b.idiv(strip, across)
        top, left = (tile - strip * down) * tall, (strip - outer * across) * wide
        bottom, right = b.minimum(top + tall, height), b.minimum(left + wide, width)
        for n, dtype in turned.items():
            beyond, _, along = steps[n]
            assert along is not None
            first = b.at((*outs, *ins)[n], outer * beyond + left * along + top)
            squares.turn(b, dtype, first, along, buffers[n], (tall, wide), right - left, bottom - top)
        with b.for_(top, bottom) as row:
            starts = [outer * beyond + row * below for beyond, below, _ in steps]
            fixed = {n: b.load(ins[n - len(outs)], starts[n]) for n, letter in enumerate(mask) if letter == "s"}
            with b.for_(left, right) as i:
                at = [start + (i if along is None else i * along)
                      for start, (_, _, along) in zip(starts, steps, strict=True)]
                places = [(buffers[n], (row - top) * wide + (i - left)) if n in turned else
                          ((*outs, *ins)[k := int(letter) if letter.isdigit() else n], at[k])
                          for n, letter in enumerate(mask)]
                values = [fixed[n] if n in fixed else b.load(*places[n]) for n in range(len(outs), len(mask))]
                for p, a, v in zip(outs, at, results_of(b, body, values, attrs, len(outs)), strict=False):
                    b.store(p, a, v)
    return b.finish()


def tile_shape(turned: Iterable[DType]) -> tuple[int, int]:
    """The rows, and the elements of a row, of the tiles of `map_tiles`, by the dtypes of operands that are turned."""
    from . import squares

    return squares.height(turned, CACHES.line), TILE_WIDTH


def grid() -> Kernel:
    """Runs a row kernel over the rows of an index space of any rank; the range counts elements.

    args: the row kernel; the number of operands, at most MAX_OPERANDS; the number of outer dimensions, 1 to
    MAX_RANK; the length of a row; the number of integers that the row kernel takes after its addresses. Then the outer
    shape, outermost first; for each operand its address and its strides in bytes along the outer dimensions; and those
    integers, at most MAX_OPERANDS.

    The status is the row kernel's first that is not 0.
    """
    b = LoopBuilder("grid")
    kernel = b.callee()
    operands, rank, length, extra = (b.integer() for _ in range(4))
    row_args = b.scratch(dt.int64, 2 * MAX_OPERANDS)
    counts = b.scratch(dt.int64, MAX_RANK)
    first = b.idiv(b.start, length)
    space = _OuterAxes(b, rank, operands, rank + 1, row_args)
    space.seek(first, counts)
    space.append_integers(extra)
    with b.for_(first, b.idiv(b.stop + (length - 1), length)) as row:
        begin = row * length
        lo, hi = b.maximum(b.start - begin, 0), b.minimum(b.stop - begin, length)
        b.fail(b.call(kernel, lo, hi, row_args))
        space.advance(counts)
    return b.finish()


def tiles() -> Kernel:
    """Runs a row kernel over an index space tile by tile; the range counts tiles.

    For operands that walk the two innermost dimensions in different orders, such as a transposed one: within a tile the
    cache lines that a row touches are still there for the next row.

    args: the row kernel; the number of operands, at most MAX_OPERANDS; the number of outer dimensions, at
    most MAX_RANK; the number of rows, and how many make a tile; the length of a row, of which a tile takes TILE_WIDTH
    elements; the number of integers that the row kernel takes after its addresses. Then the outer shape, outermost
    first; for each operand its address and its strides in bytes along the outer dimensions, from row to row, and along
    a row; and those integers, at most MAX_OPERANDS.
    """
    b = LoopBuilder("tiles")
    kernel = b.callee()
    operands, rank, height, tall, width, extra = (b.integer() for _ in range(6))
    row_args = b.scratch(dt.int64, 2 * MAX_OPERANDS)
    space = _OuterAxes(b, rank, operands, rank + 3, row_args)
    space.append_integers(extra)
    down, across = b.idiv(height + (tall - 1), tall), b.idiv(width + (TILE_WIDTH - 1), TILE_WIDTH)
    with b.for_(b.start, b.stop) as tile:
        strip = b.idiv(tile, down)
        outer = b.idiv(strip, across)
        top, left = (tile - strip * down) * tall, (strip - outer * across) * TILE_WIDTH
        space.seek(outer)
        space.move(rank, top)
        space.move(rank + 1, left)
        with b.for_(0, b.minimum(height - top, tall)):
            b.fail(b.call(kernel, 0, b.minimum(width - left, TILE_WIDTH), row_args))
            space.move(rank, b.const(1, dt.int64))
    return b.finish()


def on_objects() -> Kernel:
    """Runs a row kernel on the memory of Python objects that hold its address in a field.

    args: the row kernel; the number of objects, and of the integers that follow their addresses, each at most
    MAX_OPERANDS; the field's offset in words; 0; the integers; then the addresses of the objects, multiples of a word.
    """
    b = LoopBuilder("on_objects")
    kernel = b.callee()
    objects, integers, field = (b.integer() for _ in range(3))
    memory = b.pointer("memory", dt.int64)  # all of it: element n is the word at address 8 n
    row_args = b.scratch(dt.int64, 2 * MAX_OPERANDS)
    first = b.const(b.next_slot, dt.int64)
    with b.for_(0, objects) as n:
        word = b.shr(b.load(b.args, first + integers + n), 3)
        b.store(row_args, n, b.load(memory, word + field))
    with b.for_(0, integers) as n:
        b.store(row_args, objects + n, b.load(b.args, first + n))
    b.fail(b.call(kernel, b.start, b.stop, row_args))
    return b.finish()


class _OuterAxes:
    """The outer dimensions of a grid: keeps every operand's address in `row_args`, where a row kernel finds them.

    The table at the end of the args array holds the shape, then for each operand `pitch` words: its address and its
    strides; then the row kernel's integers.
    """

    def __init__(self, b: LoopBuilder, rank: Scalar, operands: Scalar, pitch: Scalar, row_args: Pointer) -> None:
        self.b, self.rank, self.operands, self.pitch, self.row_args = b, rank, operands, pitch, row_args
        self.table = b.const(b.next_slot, dt.int64)
        self.entries = self.table + rank

    def append_integers(self, count: Scalar) -> None:
        """Puts the row kernel's integers after the addresses."""
        b = self.b
        integers = self.entries + self.operands * self.pitch
        with b.for_(0, count) as n:
            b.store(self.row_args, self.operands + n, b.load(b.args, integers + n))

    def seek(self, position: Scalar, counts: Pointer | None = None) -> None:
        """Goes to number `position` of the space, row-major; notes the place along each dimension in `counts`."""
        b = self.b
        with b.for_(0, self.operands) as n:
            b.store(self.row_args, n, b.load(b.args, self.entries + n * self.pitch))
        left = b.local(position)
        with b.for_(self.rank - 1, -1, -1) as dim:
            here, size = left.get(), b.load(b.args, self.table + dim)
            above = b.idiv(here, size)
            count = here - above * size
            if counts is not None:
                b.store(counts, dim, count)
            self.move(dim, count)
            left.set(above)

    def advance(self, counts: Pointer) -> None:
        """Goes from the place noted in `counts` to the next; after the last comes the first."""
        b = self.b
        with b.for_(self.rank - 1, -1, -1) as dim:
            size, count = b.load(b.args, self.table + dim), b.load(counts, dim) + 1
            full = b.eq(count, size)
            b.store(counts, dim, b.select(full, 0, count))
            self.move(dim, b.select(full, 1 - size, 1))
            b.break_(b.not_(full))

    def move(self, dim: Scalar, count: Scalar) -> None:
        """`count` steps along dimension `dim` of the table."""
        b = self.b
        with b.for_(0, self.operands) as n:
            stride = b.load(b.args, self.entries + n * self.pitch + (dim + 1))
            b.store(self.row_args, n, b.load(self.row_args, n) + count * stride)
