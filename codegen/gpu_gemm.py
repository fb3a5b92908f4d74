"""Matrix products on a GPU: kernels of tiles, the choice among them, and the runs that a product becomes in a plan.

The bits are those of the processor's products (`gemm.py`): the order of additions is one (`gpu_tile.py`). Matrices may
have any strides; where elements are neighbours, they are loaded as vectors. 16-bit floats are widened and int8 numbers
extended as they are loaded. A product that has few tiles is parted along the inner index, a block of BLOCK indices for
each part, and the parts' sums, which a workspace holds, are added up in the order in which one tile would add them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Protocol

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from . import gpu_mma
from .gemm_shapes import BLOCK, summed
from .gpu_mma import WarpShape
from .gpu_operand import NONE, Beginnings, Elements, elements_of
from .gpu_tile import TilePart, TileShape
from .layout import Layout, contiguous
from .loop import Cell, Kernel, LoopBuilder, Pointer, TeamBuilder
from .loop_sizes import covering, parted
from .matrices import Matrices, matrices_of
from .operands import Argument, Loads, Run, Tiles, Within, Work
from .placer import Placer
from .units import Source

__all__ = ["SHAPES", "INNER", "OUTER", "APART", "Finishing", "team_builder", "MatrixLines", "kernel", "joined",
           "store_tile", "store_row", "neighbours", "takes", "choose", "tiles_for", "product_runs", "held", "join"]

# Which elements of an operand are known to be neighbours in memory: those along the inner index, those of its rows (or
# columns), or none.
INNER, OUTER, APART = "inner", "outer", "apart"
# The largest tile has as many numbers as leave registers for what is loaded meanwhile: 64 sums and 64 totals of 32 bits
# a thread. Skewed tiles are for few rows or few columns, the last ones for one column.
_SHAPES_32 = (TileShape(128, 128, 8, 8, 8), TileShape(64, 64, 8, 4, 16), TileShape(32, 32, 4, 2, 16),
              TileShape(128, 16, 4, 4, 16), TileShape(16, 128, 4, 4, 16), TileShape(128, 1, 1, 1, 16))
_SHAPES_64 = (TileShape(64, 64, 4, 4, 8), TileShape(32, 32, 4, 2, 16), TileShape(64, 16, 4, 2, 16),
              TileShape(16, 64, 2, 4, 16), TileShape(128, 1, 1, 1, 16))
# What a multiplication costs in tiles, beside the largest: smaller ones read shared memory more often.
_COSTS_32 = (1.0, 1.3, 2.2, 2.0, 2.0, 8.0)
_COSTS_64 = (1.0, 1.6, 1.6, 1.6, 6.0)
SHAPES = {4: _SHAPES_32, 8: _SHAPES_64}
_COSTS = {4: _COSTS_32, 8: _COSTS_64}
_BLOCKS = 256  # blocks of threads that keep a GPU busy


class MatrixLines:
    """Rows of A, or columns of B, of a matrix in memory (`gpu_tile.Lines`)."""

    def __init__(self, b: LoopBuilder, elements: Elements, how: str, base: Scalar, top: Scalar, count: Scalar,
                 steps: tuple[Scalar, Scalar], end: Scalar, lines: int) -> None:
        """Args:
            elements: of the operand.
            base: the element at inner index 0 of line 0.
            top: the tile's first line.
            count: how many lines there are.
            steps: from line to line, and along the inner index.
            end: of the inner indices.
            lines: of a tile.
        """
        self.b, self.elements, self.base, self.top = b, elements, base, top
        self.count, self.end = count, end
        self.step, self.step_k = steps
        self.along, self.lanes = how != OUTER, elements.lanes
        self.full: Scalar | None = None
        if how != APART:
            other = self.step if self.along else self.step_k
            near = b.eq(b.and_(other, self.lanes - 1), 0)
            self.full = b.and_(b.and_(near, elements.near(base)), b.le(top + lines, count))

    def begin(self, line: Scalar, further: int) -> tuple[Scalar, Scalar]:
        """The line, and the element at its beginning."""
        line = self.top + line  # here, not before: what is the same for all tiles would stay in registers
        at = self.base + (line if self.full is not None and not self.along else line * self.step)
        return line + further, at + self.step * further if further else at

    def whole(self, k: Scalar, depth: int) -> Scalar | None:
        """Whether the slab at `k` can be loaded by vectors."""
        return None if self.full is None else self.b.and_(self.full, self.b.le(k + depth, self.end))

    def vector(self, begun: tuple[Scalar, Scalar], k: Scalar) -> list[Scalar]:
        """Neighbours at `k`."""
        return self.elements.vector(begun[1] + (k if self.along else k * self.step_k))

    def element(self, begun: tuple[Scalar, Scalar], lane: int, k: Scalar, into: Cell) -> None:
        """One element, if the matrix has it."""
        b, (line, at) = self.b, begun
        if self.along:
            k = k + lane
        else:
            line, at = line + lane, at + (lane if self.full is not None else self.step * lane)
        with b.if_(b.and_(b.lt(line, self.count), b.lt(k, self.end))):
            step = k if self.along and self.full is not None else k * self.step_k
            into.set(self.elements.element(at + step))


class Finishing(Protocol):
    """What goes on with a product's result while threads hold it (`gpu_epilogue.py`).

    Attributes:
        kept: whether the result is stored besides.
    """

    kept: bool

    def builder(self, name: str, threads: int) -> LoopBuilder:
        """The builder of a kernel that ends so, for a team of so many threads, or for one."""

    def tile(self, part: TilePart, matrix: Scalar, corner: tuple[Scalar, Scalar], sizes: tuple[Scalar, Scalar],
             shift: Scalar | None = None) -> None:
        """Goes on with a thread's part of a tile."""

    def element(self, number: Scalar, value: Scalar) -> None:
        """Goes on with one element."""


def team_builder(name: str, threads: int, epilogue: Finishing | None, beginnings: Beginnings) -> TeamBuilder:
    """The builder of a kernel of tiles."""
    name = "".join(f"{beginning.name} then " for beginning in beginnings.values()) + name
    around = next(iter(beginnings.values()), None) if epilogue is None else epilogue
    if around is None:
        return TeamBuilder(name, threads)
    b = around.builder(name, threads)
    assert isinstance(b, TeamBuilder)
    return b


def kernel(dtype: DType, how: tuple[str, str], shape: TileShape | WarpShape, rank: int, parts: bool,
           epilogue: Finishing | None = None, beginnings: Beginnings = NONE) -> Kernel:
    """Computes a tile of a product of a batch; the range numbers products, parts of the inner index, and tiles by rows
    and columns.

    args: addresses of C, A and B; m, n, k; the stride of C from row to row, of A from row to row and along k, of B
    along k and from column to column; if it is one of parts, their number; for each batch dimension, outermost first,
    its length, and the strides of A, B and C. Of parts, C is the workspace: a dense [part, product, m, n].

    Args:
        dtype: of A and B: a float, int8, or an integer of 32 bits or more; C is of what they are summed in.
        how: of A and of B, which elements are neighbours.
        rank: how many batch dimensions there are.
        parts: whether each tile is of one block of inner indices alone.
        epilogue: what goes on with the result; its arguments follow.
        beginnings: what operands are computed from; their arguments come before an epilogue's.
    """
    by_warps = isinstance(shape, WarpShape)
    name = f"product {dtype.short} {shape.rows}x{shape.columns} {how[0]} {how[1]} {rank}{' parts' * parts}"
    b = team_builder(name + " by tensor cores" * by_warps, shape.threads, epilogue, beginnings)
    compute = summed(dtype)
    c, left, right = b.pointer("c", compute), b.pointer("a", dtype), b.pointer("b", dtype)
    m, n, k, ldc, a_m, a_k, b_k, b_n = (b.integer() for _ in range(8))
    count = b.integer() if parts else None
    batch = [[b.integer() for _ in range(4)] for _ in range(rank)]
    of_a, of_b = [elements_of(b, *(gpu_mma.memory_of(b, x) if by_warps else (x, compute)), beginnings)
                  for x in (left, right)]
    wide, high = covering(b, n, shape.columns), covering(b, m, shape.rows)
    with b.for_(b.start, b.stop) as number:
        rest, across = parted(b, number, wide)
        rest, down = parted(b, rest, high)
        first, end = b.const(0, dt.int64), k
        at_c = b.const(0, dt.int64)
        if count is not None:
            item, part = parted(b, rest, count)
            first, end = part * BLOCK, b.minimum(part * BLOCK + BLOCK, k)
            batches = b.const(1, dt.int64)
            for length, *_ in batch:
                batches = batches * length
            at_c, rest = (part * batches + item) * (m * n), item
        at_a, at_b, matrix = b.const(0, dt.int64), b.const(0, dt.int64), rest
        for length, step_a, step_b, step_c in reversed(batch):
            rest, index = parted(b, rest, length)
            at_a, at_b = at_a + index * step_a, at_b + index * step_b
            at_c = at_c if parts else at_c + index * step_c
        row, column = down * shape.rows, across * shape.columns
        of_left = MatrixLines(b, of_a, how[0], at_a, row, m, (a_m, a_k), end, shape.rows)
        of_right = MatrixLines(b, of_b, how[1], at_b, column, n, (b_n, b_k), end, shape.columns)
        part_of_tile = gpu_mma.tile_product(b, shape, dtype, compute, of_left, of_right, first, end)
        if epilogue is None or epilogue.kept:
            store_tile(b, c, part_of_tile, at_c, (row, column), (m, n), n if parts else ldc)
        if epilogue is not None:
            epilogue.tile(part_of_tile, matrix, (row, column), (m, n))
    return b.finish()


def store_tile(b: TeamBuilder, c: Pointer, part: TilePart, at: Scalar, tile: tuple[Scalar, Scalar],
               sizes: tuple[Scalar, Scalar], step: Scalar) -> None:
    """Writes a thread's part of a tile.

    Args:
        at: the element at which C begins.
        tile: the row and the column at which the tile does.
        sizes: rows and columns of C.
        step: from row to row.
    """
    (top, left), (height, width) = tile, sizes
    near = b.and_(b.aligned(b.at(c, at), c.dtype.size * part.together), b.eq(b.and_(step, part.together - 1), 0))
    for row, values in zip(part.rows, part.values, strict=True):
        line = top + row  # here, not before: what is the same for all tiles would stay in registers
        with b.if_(b.lt(line, height)):
            store_row(b, c, part, values, at + line * step, left, width, near)


def store_row(b: TeamBuilder, c: Pointer, part: TilePart, values: list[Scalar], at: Scalar, left: Scalar,
              width: Scalar, near: Scalar) -> None:
    """Writes a thread's part of a row that begins at element `at`, by vectors if it is `near`: where they are aligned.
    """
    lanes = part.together
    for first in range(0, len(values), lanes):
        column, own = left + part.columns[first], values[first:first + lanes]
        if lanes > 1:
            with b.if_(b.and_(near, b.le(column + lanes, width))):
                b.store(c, at + column, b.pack(own), aligned=True)
            with b.else_():
                _store_numbers(b, c, own, at, column, width)
        else:
            _store_numbers(b, c, own, at, column, width)


def _store_numbers(b: TeamBuilder, c: Pointer, values: list[Scalar], at: Scalar, column: Scalar, width: Scalar) -> None:
    for lane, value in enumerate(values):
        with b.if_(b.lt(column + lane, width)):
            b.store(c, at + column + lane, value)


def joined(dtype: DType, epilogue: Finishing | None = None) -> Kernel:
    """Adds up the sums of blocks, in their order and starting at +0; the range counts elements of the result.

    args: addresses of result and sums; how many blocks there are, and how many elements each of them has.

    Args:
        epilogue: what goes on with the result; its arguments follow.
    """
    name = f"joined {dtype.short}"
    b = LoopBuilder(name) if epilogue is None else epilogue.builder(name, 1)
    out, x = b.pointer("out", dtype), b.pointer("x", dtype)
    count, size = b.integer(), b.integer()
    with b.for_(b.start, b.stop) as i:
        total = b.local(0, dtype)
        with b.for_(0, count) as block:
            total.set(total.get() + b.load(x, block * size + i))
        if epilogue is None or epilogue.kept:
            b.store(out, i, total.get())
        if epilogue is not None:
            epilogue.element(i, total.get())
    return b.finish()


def product_runs(p: Placer, out: g.Value, left: Source, right: Source, layout: Layout | None) -> list[Run]:
    """The runs of a matrix product in a plan, with arguments as `Placer.product` takes them; the kernels are the
    program's own."""
    dtype, compute = left.base.dtype, summed(left.base.dtype)
    layout = layout or contiguous((left.layout.shape[-2], right.layout.shape[-1]))
    x, swapped = _columns_as_rows(matrices_of(left, right, layout))
    places: list[Argument] = [p.at(left), p.at(right)]
    if swapped:
        places.reverse()
    shape, parts = choose(x, compute.size) if swapped else tiles_for(p, x, dtype)
    if not layout.is_contiguous():
        parts = 1
    how = neighbours(x)
    what = dtype, how, shape, len(x.batch), parts > 1
    build = p.kernel(kernel, *what)
    sizes: list[Argument] = [x.m, x.n, x.k, x.ldc, *x.a, *x.b, *([parts] if parts > 1 else []),
                             *[word for dim in x.batch for word in dim]]
    total = x.batches * parts * dm.ceil_div(x.m, shape.rows) * dm.ceil_div(x.n, shape.columns)
    inner = BLOCK if parts > 1 else x.k
    weight = shape.rows * shape.columns * inner // 16 + 1
    rows, loads = (x.batches, x.m, x.n), None
    if isinstance(shape, TileShape):
        loads = Loads({1: dm.ceil_div(x.n, shape.columns), 2: dm.ceil_div(x.m, shape.rows)},
                      functools.partial(kernel, *what))
    if parts == 1:
        tiles = held(*rows, functools.partial(kernel, *what)) if layout.is_contiguous() and not swapped else None
        return [Run(build, [Within(out, layout.offset), *places, *sizes], total, weight, tiles=tiles, loads=loads)]
    size = x.batches * x.m * x.n
    sums = Work(compute, parts * size)
    return [Run(build, [sums, *places, *sizes], total, weight, loads=loads), join(p, out, sums, parts, rows)]


def held(matrices: DimLike, rows: DimLike, columns: DimLike, build: Callable[..., Kernel]) -> Tiles:
    """Tiles in registers of a result of some matrices, with what builds the kernel with an epilogue."""
    return Tiles(matrices, rows, columns, 1, 1, once=True, hurried=False, held=build)


def join(p: Placer, out: Argument, sums: Work, parts: int, sizes: tuple[DimLike, DimLike, DimLike]) -> Run:
    """The run that adds up the sums of parts; `sizes` are the matrices of the result, their rows and their columns."""
    size, how = math.prod(sizes), functools.partial(joined, sums.dtype)
    return Run(p.kernel(joined, sums.dtype), [out, sums, parts, size], size, parts, tiles=held(*sizes, how))


def neighbours(x: Matrices) -> tuple[str, str]:
    """Which elements of A and of B are neighbours."""
    def of(inner: DimLike, outer: DimLike) -> str:
        return INNER if dm.is_exactly(inner, 1) else OUTER if dm.is_exactly(outer, 1) else APART
    return of(*x.a[::-1]), of(*x.b)


def takes(shape: TileShape, how: tuple[str, str]) -> bool:
    """Whether there are kernels with such tiles for operands that lie so: where no elements are neighbours, the
    addresses of the largest tiles would take more registers than are left."""
    return APART not in how or shape is not _SHAPES_32[0]


def _columns_as_rows(x: Matrices) -> tuple[Matrices, bool]:
    """A row by a matrix as the matrix's columns by a column, and whether it was that: a column's tiles are high."""
    if not (dm.is_exactly(x.m, 1) and not dm.is_exactly(x.n, 1)):
        return x, False
    batch = tuple((length, of_b, of_a, of_c) for length, of_a, of_b, of_c in x.batch)
    return Matrices(x.n, 1, x.k, x.b[::-1], x.a[::-1], 1, batch), True


def choose(x: Matrices, size: int, parts: bool = True) -> tuple[TileShape, int]:
    """The tiles that cost least, and in how many parts along the inner index.

    Args:
        size: bytes of what is summed.
        parts: whether there may be several parts.
    """
    how = neighbours(x)
    costs = {shape: cost for shape, cost in zip(SHAPES[size], _COSTS[size], strict=True)
             if takes(shape, how)}
    m, n, k, batches = x.m, x.n, x.k, x.batches
    if isinstance(m, Dim) or isinstance(n, Dim) or isinstance(k, Dim) or isinstance(batches, Dim):
        return [s for s in costs if s is SHAPES[size][1] or _is_narrow(s, x)][-1], 1
    blocks = max(-(-k // BLOCK), 1)

    def cost(choice: tuple[TileShape, int]) -> float:
        """In multiplications of the busiest block, each as long as it takes."""
        shape, number = choice
        tiles = batches * -(-m // shape.rows) * -(-n // shape.columns) * number
        rounds = -(-tiles // _BLOCKS) if tiles > _BLOCKS else 1
        return rounds * shape.rows * shape.columns * costs[shape] * (-(-blocks // number) + (number > 1))

    return min(((shape, number) for shape in costs for number in {1, blocks if parts else 1}), key=cost)


def tiles_for(p: Placer, x: Matrices, dtype: DType, parts: bool = True) -> tuple[TileShape | WarpShape, int]:
    """The tiles of products of `dtype`, tensor cores' where the node asks for these, and in how many parts along the
    inner index; `parts` as for `choose`."""
    if gpu_mma.takes(dtype) and p.by_tensor_cores():
        return gpu_mma.shape_for(x.m, x.n, x.batches), 1
    return choose(x, summed(dtype).size, parts)


def _is_narrow(shape: TileShape, x: Matrices) -> bool:
    """Whether a skewed tile is for a product: of as few rows or columns."""
    return any(most < shape.rows + shape.columns - most and type(size) is int and size <= most
               for most, size in ((shape.rows, x.m), (shape.columns, x.n)))
