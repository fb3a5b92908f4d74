"""Tiles of matrix products on a GPU: what a block of threads does to compute one, whatever the matrices are made of.

A tile of C = A B is some rows by some columns, of which each thread has a part in registers. The block goes along the
inner index slab by slab: while it multiplies one slab, which lies in shared memory, each thread fetches its share of
the next one from the GPU's memory, and then puts it into the other half of the shared memory. Operands are fetched by
vectors where they lie so that whole ones can be.

The order of additions is that of every product (`docs/numerics.md`): blocks of BLOCK inner indices, in each of which a
sum starts at +0 and takes products by fused multiply-add in rising order; the blocks' sums are added up in their order,
starting at +0. Beyond the last inner index both operands are +0. Such a product changes no sum but -0, and that only to
+0, which makes no difference once it has joined a total.

What the operands are is said by `Lines`, such as the matrices of `gpu_gemm.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from .gemm_shapes import BLOCK
from .loop import Cell, Pointer, TeamBuilder

__all__ = ["TileShape", "Lines", "TilePart", "product", "multiply_add"]


class TileShape(NamedTuple):
    """What a block of threads computes at once: `rows` by `columns` of C, of which each thread has `tall` by `wide`, in
    slabs of `depth` inner indices, which divide a block."""

    rows: int
    columns: int
    tall: int
    wide: int
    depth: int

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.rows // self.tall * (self.columns // self.wide)


class Lines(Protocol):
    """One operand of a product: rows of A or columns of B, each with an element for every inner index.

    Attributes:
        along: whether elements of a line are neighbours in memory, rather than those of neighbouring lines.
        lanes: of the vectors that are fetched.
    """

    along: bool
    lanes: int

    def begin(self, line: Scalar, further: int) -> Any:
        """What is the same for all inner indices, for a vector that begins so much further on than a line, which is
        counted from the tile's first."""

    def whole(self, k: Scalar, depth: int) -> Scalar | None:
        """Whether all vectors of the slab at `k` can be loaded as such, for all threads alike; None if never."""

    def vector(self, begun: Any, k: Scalar) -> list[Scalar]:
        """A vector at `k` where `whole` holds, as it is multiplied."""

    def element(self, begun: Any, lane: int, k: Scalar, into: Cell) -> None:
        """Sets `into`, which is 0, to a lane of a vector, if there is an element."""


class TilePart(NamedTuple):
    """The part of a tile that a thread has: `values[i][j]`, of row `rows[i]` and column `columns[j]` of the tile.
    Columns come in groups of `together` neighbours, the first of which is a multiple of that."""

    values: list[list[Scalar]]
    rows: list[Scalar]
    columns: list[Scalar]
    together: int


def multiply_add(b: TeamBuilder, x: Scalar, y: Scalar, z: Scalar) -> Scalar:
    """x y + z, rounded once; integers wrap around."""
    return b.fma(x, y, z) if x.dtype.is_floating else x * y + z


class _Slabs:
    """An operand in shared memory, a slab in each half: elements of neighbouring lines side by side."""

    def __init__(self, b: TeamBuilder, lines: Lines, compute: DType, width: int, depth: int, taken: int) -> None:
        """Args:
            width: lines of a tile.
            taken: neighbouring lines that a thread reads as a vector.
        """
        self.b, self.lines, self.compute, self.depth = b, lines, compute, depth
        self.stride = width + (max(taken, 1) if lines.along else 0)  # so that neighbours along k lie in other banks
        self.half = self.stride * depth
        self.memory = b.shared(compute, 2 * self.half)
        self.lanes = min(lines.lanes, depth if lines.along else width)
        across = (depth if lines.along else width) // self.lanes
        self.count = width * depth // self.lanes
        self.vectors: list[tuple[Scalar, Scalar, Any]] = []  # of this thread: line, inner index, and what is begun
        outer = b.shr(b.thread(), across.bit_length() - 1)
        inner = (b.thread() - outer * across) * self.lanes
        for further in range(0, self.count // across, b.threads // across):
            if lines.along:
                self.vectors.append((outer + further, inner, lines.begin(outer, further)))
            else:
                self.vectors.append((inner, outer + further, lines.begin(inner, 0)))

    def fetch(self, k: Scalar) -> list[list[Cell]]:
        """This thread's share of the slab at `k`, zeros where there is nothing."""
        b = self.b
        cells = [[b.local(0, self.compute) for _ in range(self.lanes)] for _ in self.vectors]
        if self.count < b.threads:
            with b.if_(b.lt(b.thread(), self.count)):
                self._fetch(k, cells)
        else:
            self._fetch(k, cells)
        return cells

    def _fetch(self, k: Scalar, cells: list[list[Cell]]) -> None:
        b, lines = self.b, self.lines
        whole = lines.whole(k, self.depth) if self.lanes == lines.lanes else None
        if whole is None:
            self._elements(k, cells)
            return
        with b.if_(whole):
            for (_, inner, begun), own in zip(self.vectors, cells, strict=True):
                for cell, value in zip(own, lines.vector(begun, k + inner), strict=True):
                    cell.set(value)
        with b.else_():
            self._elements(k, cells)

    def _elements(self, k: Scalar, cells: list[list[Cell]]) -> None:
        for (_, inner, begun), own in zip(self.vectors, cells, strict=True):
            for lane, cell in enumerate(own):
                self.lines.element(begun, lane, k + inner, cell)

    def put(self, cells: list[list[Cell]], half: Scalar) -> None:
        """Writes what was fetched to half 0 or 1 of the memory."""
        b = self.b
        if self.count < b.threads:
            with b.if_(b.lt(b.thread(), self.count)):
                self._put(cells, half)
        else:
            self._put(cells, half)

    def _put(self, cells: list[list[Cell]], half: Scalar) -> None:
        b = self.b
        for (line, inner, _), own in zip(self.vectors, cells, strict=True):
            at, values = half * self.half + inner * self.stride + line, [c.get() for c in own]
            if self.lines.along:
                for lane, value in enumerate(values):
                    b.store(self.memory, at + lane * self.stride, value)
            else:
                _store(b, self.memory, at, values)

    def take(self, half: Scalar, index: int, places: Sequence[Scalar], together: int) -> list[Scalar]:
        """The elements of an inner index of the slab that belong to this thread's rows or columns."""
        b, row = self.b, half * self.half + index * self.stride
        taken: list[Scalar] = []
        for place in places[::together]:
            if together == 1:
                taken.append(b.load(self.memory, row + place))
            else:
                vector = b.load(self.memory, row + place, together, aligned=True)
                taken += [b.extract(vector, lane) for lane in range(together)]
        return taken


def _store(b: TeamBuilder, memory: Pointer, at: Scalar, values: Sequence[Scalar]) -> None:
    """Writes neighbours."""
    if len(values) == 1:
        b.store(memory, at, values[0])
    else:
        b.store(memory, at, b.pack(values), aligned=True)


def _places(b: TeamBuilder, thread: Scalar, across: int, count: int, together: int) -> list[Scalar]:
    """The rows or columns of a thread, `count` of `across`: groups of neighbours, one in each part of the tile."""
    parts = count // together
    return [thread * together + (part * (across // parts) + n) for part in range(parts) for n in range(together)]


def product(b: TeamBuilder, shape: TileShape, compute: DType, left: Lines, right: Lines, first: Scalar,
            end: Scalar) -> TilePart:
    """Computes a tile of the product over the inner indices from `first`, where a block begins, to `end`.

    Args:
        compute: what is summed.
        left, right: rows of A and columns of B.
    """
    most = 16 // compute.size
    together = min(most, shape.tall), min(most, shape.wide)
    across = shape.columns // shape.wide
    down = b.shr(b.thread(), across.bit_length() - 1)
    rows = _places(b, down, shape.rows, shape.tall, together[0])
    columns = _places(b, b.thread() - down * across, shape.columns, shape.wide, together[1])
    slabs = (_Slabs(b, left, compute, shape.rows, shape.depth, together[0]),
             _Slabs(b, right, compute, shape.columns, shape.depth, together[1]))
    totals = [[b.local(0, compute) for _ in columns] for _ in rows]
    half = b.local(0)
    for slab in slabs:
        slab.put(slab.fetch(first), half.get())
    b.barrier()
    with b.for_(first, end, BLOCK) as block:
        sums = [[b.local(0, compute) for _ in columns] for _ in rows]
        with b.for_(block, b.minimum(block + BLOCK, end), shape.depth) as k:
            fetched, now = [slab.fetch(k + shape.depth) for slab in slabs], half.get()
            for index in range(shape.depth):
                of_a, of_b = (slab.take(now, index, places, n)
                              for slab, places, n in zip(slabs, (rows, columns), together, strict=True))
                _add_products(b, sums, of_a, of_b)
            half.set(1 - now)
            for slab, cells in zip(slabs, fetched, strict=True):
                slab.put(cells, 1 - now)
            b.barrier()
        _each(totals, sums, lambda total, x: total.set(total.get() + x.get()))
    return TilePart([[cell.get() for cell in row] for row in totals], rows, columns, together[1])


def _add_products(b: TeamBuilder, sums: list[list[Cell]], of_a: list[Scalar], of_b: list[Scalar]) -> None:
    for row, x in zip(sums, of_a, strict=True):
        for cell, y in zip(row, of_b, strict=True):
            cell.set(multiply_add(b, x, y, cell.get()))


def _each(xs: list[list[Cell]], ys: list[list[Cell]], run: Callable[[Cell, Cell], None]) -> None:
    for row, others in zip(xs, ys, strict=True):
        for x, y in zip(row, others, strict=True):
            run(x, y)

