"""Tiles of matrix products by tensor cores: for those who ask for speed, and take the error that goes with it.

What a block of threads does is as in `gpu_tile.py`: it goes along the inner index slab by slab, from the GPU's memory
to shared memory to registers. Here each warp has a part of the tile, and multiplies it by `mma`. Numbers are in shared
memory as words of 32 bits: a float32 rounded to TF32, or two numbers of 16 bits that follow one another along the inner
index. Sums are float32, in an order that NVIDIA does not tell; `docs/numerics.md` says how far off they may be.

Threads end with parts of the tile as those of exact products do, so that all that follows is the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from twofold.ir import dtypes as dt
from twofold.ir.dims import Dim, DimLike
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from . import gpu_tile
from .gpu_tile import Lines, TilePart, TileShape
from .loop import TEAM, Cell, Pointer, TeamBuilder

__all__ = ["WarpShape", "SHAPES", "takes", "memory_of", "product", "tile_product", "shape_for"]

_WORDS = 16  # along the inner index, of a slab
_STEP = 8  # words that are multiplied at once
_APART = 8  # words between rows of a slab: threads of a warp then read from different banks
_BUSY = 64  # blocks
_TILE = (16, 8)  # rows and columns that a warp multiplies at once


class WarpShape(NamedTuple):
    """What a block of threads computes at once: `rows` by `columns`, of which each warp has `tall` by `wide`."""

    rows: int
    columns: int
    tall: int
    wide: int

    @property
    def threads(self) -> int:
        """Of a block."""
        return TEAM * (self.rows // self.tall) * (self.columns // self.wide)


SHAPES = (WarpShape(128, 128, 64, 32), WarpShape(64, 64, 32, 32))


def takes(dtype: DType) -> bool:
    """Whether tensor cores multiply numbers of a type."""
    return dtype in (dt.float32, dt.bfloat16, dt.float16)


def memory_of(b: TeamBuilder, memory: Pointer) -> tuple[Pointer, DType]:
    """An operand as lines read it, and the type in which they give it: numbers of 16 bits are their bits."""
    return (memory, dt.float32) if memory.dtype.size == 4 else (b.view(memory, dt.uint16), dt.uint32)


def tile_product(b: TeamBuilder, shape: TileShape | WarpShape, dtype: DType, compute: DType, left: Lines, right: Lines,
                 first: Scalar, end: Scalar) -> TilePart:
    """A tile of a product of numbers of `dtype`, by tensor cores where the shape is one for these; see
    `gpu_tile.product`."""
    if isinstance(shape, WarpShape):
        return product(b, shape, dtype, left, right, first, end)
    return gpu_tile.product(b, shape, compute, left, right, first, end)


def shape_for(m: DimLike, n: DimLike, batches: DimLike) -> WarpShape:
    """The tiles of a product: large ones where these keep a GPU busy."""
    large = SHAPES[0]
    if isinstance(m, Dim) or isinstance(n, Dim) or isinstance(batches, Dim):
        return SHAPES[1]
    return large if batches * -(-m // large.rows) * -(-n // large.columns) >= _BUSY else SHAPES[1]


class _WordSlabs:
    """An operand in shared memory, a slab in each half: for each word along the inner index those of all lines."""

    def __init__(self, b: TeamBuilder, lines: Lines, width: int, of: DType) -> None:
        """Args:
            width: lines of a tile.
            of: the type of the numbers.
        """
        self.b, self.lines, self.each = b, lines, 4 // of.size
        self.stride = width + _APART
        self.half = self.stride * _WORDS
        self.memory = b.shared(dt.uint32, 2 * self.half)
        self.depth = _WORDS * self.each
        self.lanes = lines.lanes
        along, lanes = lines.along, self.lanes
        across = self.depth // lanes if along else width // lanes
        count = width * across if along else _WORDS * across
        outer = b.shr(b.thread(), across.bit_length() - 1)
        inner = (b.thread() - outer * across) * lanes
        self.vectors: list[tuple[Scalar, Scalar, Any]] = []  # of this thread: line, inner index, and what is begun
        for further in range(0, count // across, b.threads // across):
            if along:
                self.vectors.append((outer + further, inner, lines.begin(outer, further)))
            else:
                self.vectors.append((inner, (outer + further) * self.each, lines.begin(inner, 0)))

    def fetch(self, k: Scalar) -> list[list[Scalar]]:
        """This thread's words of the slab at `k`: of each vector along the inner index, or of its lines; zeros where
        there is nothing."""
        b, lines = self.b, self.lines
        times = 1 if lines.along else self.each
        of = dt.float32 if self.each == 1 else dt.uint32
        cells = [[[b.local(0, of) for _ in range(self.lanes)] for _ in range(times)] for _ in self.vectors]
        whole = lines.whole(k, self.depth)
        if whole is None:
            self._elements(k, cells)
        else:
            with b.if_(whole):
                for (_, inner, begun), rows in zip(self.vectors, cells, strict=True):
                    for n, row in enumerate(rows):
                        for cell, value in zip(row, lines.vector(begun, k + inner + n), strict=True):
                            cell.set(value)
            with b.else_():
                self._elements(k, cells)
        return [self._words([[cell.get() for cell in row] for row in rows]) for rows in cells]

    def _elements(self, k: Scalar, cells: list[list[list[Cell]]]) -> None:
        for (_, inner, begun), rows in zip(self.vectors, cells, strict=True):
            for n, row in enumerate(rows):
                for lane, cell in enumerate(row):
                    self.lines.element(begun, lane, k + inner + n, cell)

    def _words(self, rows: list[list[Scalar]]) -> list[Scalar]:
        """The words that numbers become."""
        if self.each == 1:
            return [_rounded(self.b, x) for x in rows[0]]
        pairs = zip(rows[0][::2], rows[0][1::2], strict=True) if self.lines.along else zip(*rows, strict=True)
        return [low + high * (1 << 16) for low, high in pairs]

    def put(self, fetched: list[list[Scalar]], half: Scalar) -> None:
        """Writes what was fetched to half 0 or 1 of the memory."""
        b = self.b
        for (line, inner, _), words in zip(self.vectors, fetched, strict=True):
            word = b.shr(inner, self.each - 1)
            at = half * self.half + word * self.stride + line
            if self.lines.along:
                for n, value in enumerate(words):
                    b.store(self.memory, at + n * self.stride, value)
            else:
                b.store(self.memory, at, b.pack(words), aligned=len(words) > 1)

    def fragment(self, half: Scalar, first: int, line: Scalar, lines: int) -> Scalar:
        """This thread's part of the words from number `first` on of some lines from one on."""
        b, lane = self.b, self.b.lane()
        at = half * self.half + (b.and_(lane, 3) + first) * self.stride + line + b.shr(lane, 2)
        return b.pack([b.load(self.memory, at + word * self.stride + further)
                       for word in (0, 4) for further in range(0, lines, 8)])


def _rounded(b: TeamBuilder, x: Scalar) -> Scalar:
    """The bits of a float32 rounded to TF32, which has 10 bits of a fraction: to nearest, ties away from 0."""
    nearest = b.and_(b.bitcast(x, dt.uint32) + (1 << 12), 0xFFFFE000)
    return b.select(b.isnan(x), 0x7FC00000, nearest)


def product(b: TeamBuilder, shape: WarpShape, of: DType, left: Lines, right: Lines, first: Scalar,
            end: Scalar) -> TilePart:
    """Computes a tile of the product over the inner indices from `first` to `end`.

    Args:
        of: the type of the numbers.
        left, right: rows of A and columns of B, as `memory_of` gives them.
    """
    kind = {"float32": "tf32", "bfloat16": "bf16", "float16": "f16"}[of.name]
    slabs = _WordSlabs(b, left, shape.rows, of), _WordSlabs(b, right, shape.columns, of)
    warp, across = b.shr(b.thread(), TEAM.bit_length() - 1), shape.columns // shape.wide
    down = b.shr(warp, across.bit_length() - 1)
    top, side = down * shape.tall, (warp - down * across) * shape.wide
    zero = b.splat(b.const(0, dt.float32), 4)
    sums = [[b.local(zero) for _ in range(0, shape.wide, _TILE[1])] for _ in range(0, shape.tall, _TILE[0])]
    half = b.local(0)
    for slab in slabs:
        slab.put(slab.fetch(first), half.get())
    b.barrier()
    with b.for_(first, end, slabs[0].depth) as k:
        fetched, now = [slab.fetch(k + slab.depth) for slab in slabs], half.get()
        for step in range(0, _WORDS, _STEP):
            of_a = [slabs[0].fragment(now, step, top + n * _TILE[0], _TILE[0]) for n in range(len(sums))]
            of_b = [slabs[1].fragment(now, step, side + n * _TILE[1], _TILE[1]) for n in range(len(sums[0]))]
            for row, x in zip(sums, of_a, strict=True):
                for cell, y in zip(row, of_b, strict=True):
                    cell.set(b.mma(kind, x, y, cell.get()))
        half.set(1 - now)
        for slab, words in zip(slabs, fetched, strict=True):
            slab.put(words, 1 - now)
        b.barrier()
    return _part(b, sums, top, side)


def _part(b: TeamBuilder, sums: list[list[Cell]], top: Scalar, side: Scalar) -> TilePart:
    """What a thread has of the tile, whose warp's part begins at a row and a column."""
    group, place = b.shr(b.lane(), 2), b.and_(b.lane(), 3) * 2
    rows, values = [], []
    for n, row in enumerate(sums):
        for upper in (0, 1):
            rows.append(top + (n * _TILE[0] + upper * 8) + group)
            values.append([b.extract(cell.get(), 2 * upper + c) for cell in row for c in (0, 1)])
    columns = [side + (n * _TILE[1] + c) + place for n in range(len(sums[0])) for c in (0, 1)]
    return TilePart(values, rows, columns, 2)
