"""The micro-kernel of the matrix product, in loop IR.

A *micro-kernel* keeps a tile of C in registers, `rows` by `vectors` vectors, and runs over one block of the inner
dimension. It reads rows of A and columns of B as they lie, where one of their strides is 1, or *panels*: for each inner
index, neighbouring rows of A (or columns of B) side by side.

Panels are made by `gemm_pack.py`; how tiles make up a product, and in which order a sum is taken, is `gemm.py`'s.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from . import target as targets
from .gemm_shapes import HURRIED, Tiling, panel_width
from .loop import BlockBuilder, Cell, FunctionBuilder, LoopFunction
from .target import CACHES
from .value_types import address, lanes_of, vector

__all__ = ["micro", "multiply_add", "row_at", "while_below"]

_AHEAD = 8  # inner indices by which a packed A is fetched before it is read
_APART = 4096  # bytes between rows of C from which it never is: each row is on a page of its own


def multiply_add(b: BlockBuilder, x: Scalar, y: Scalar, z: Scalar) -> Scalar:
    """x y + z. Of floats it is rounded once; where the target has no instruction for that, the product is rounded too.
    Integers wrap around."""
    return b.fma(x, y, z) if x.dtype.is_floating and targets.current().fused else x * y + z


def micro(tiling: Tiling, dtype: DType, rows: int, vectors: int, packed: bool = False,
          held: int = 1) -> LoopFunction:
    """The micro-kernel `(a, a_m, a_k, b, ldb, old, ldo, c, ldc, k, m, n, next)`: C = old + A B on a tile.

    The sum over k is taken in order. `next` is where the B of a later call begins, which is fetched meanwhile.

    Args:
        dtype: of what is summed: a float or an integer of 32 bits or more.
        rows, vectors: the largest tile. It reads that many rows of A, and writes the first m rows and n columns.
        packed: whether A and B are panels, and the tile is whole: then strides and masks are not looked at, so that
            every address of the loop is a constant distance from two that move.
        held: how many inner indices an element of A and B holds (`gemm_pack.py`): 2 numbers of bfloat16, or 4 of int8,
            whose sums begin with the row before B. k counts elements.
    """
    f, memory, number = FunctionBuilder(f"micro_{rows}x{vectors}{'_packed' * packed}"), address(dtype), dt.int64
    a, a_m, a_k = f.parameter("a", memory), f.parameter("a_m", number), f.parameter("a_k", number)
    right, ldb = f.parameter("b", memory), f.parameter("ldb", number)
    old, ldo = f.parameter("old", memory), f.parameter("ldo", number)
    c, ldc = f.parameter("c", memory), f.parameter("ldc", number)
    k, m, n = f.parameter("k", number), f.parameter("m", number), f.parameter("n", number)
    ahead = f.parameter("next", memory)
    masks: list[Scalar | None] = [None] * vectors if packed else [
        f.first(n - j * tiling.lanes if j else n, tiling.lanes) for j in range(vectors)]
    if rows == tiling.tall and vectors > 1:
        with f.if_(f.or_(f.lt(k, HURRIED), f.le(_APART // dtype.size, ldc))):
            for i in range(rows):
                for j in _lines(tiling, dtype, vectors):
                    f.prefetch(row_at(f, c, ldc, i), j, write=True)
    zero = f.const(0.0, vector(dtype, tiling.lanes))
    starts = [zero] * vectors
    if held == 4:
        before = f.at(right, -panel_width(tiling, False))
        starts = [f.load(before, j * tiling.lanes, tiling.lanes) for j in range(vectors)]
    sums = [[f.local(start) for start in starts] for _ in range(rows)]
    one: Callable[[Scalar, Scalar, Scalar], Scalar] = functools.partial(multiply_add, f)
    add = {1: one, 2: f.add_pairs, 4: f.add_quads}[held]
    places: list[Scalar | int] = list(range(rows)) if packed else [0, *[a_m * i for i in range(1, rows)]]
    beyond = tiling.depth * _AHEAD if packed else a_m * (2 * rows - 1)
    steps = (tiling.depth, vectors * tiling.lanes) if packed else (a_k, ldb)
    at_a, at_b, at_next = f.local(a), f.local(right), f.local(ahead)
    with f.for_(k, 0, -1):  # what counts down takes one register
        row = at_b.get()
        of_b = [f.load(row, j * tiling.lanes, tiling.lanes, masks[j] if tiling.masks else None) for j in range(vectors)]
        for j in _lines(tiling, dtype, vectors):
            f.prefetch(at_next.get(), j)
        column = at_a.get()
        if rows > 1:  # where rows are neighbours, the next tile's
            f.prefetch(column, beyond)
        for i, of_a in enumerate(_repeated(f, tiling, column, places, packed)):
            for j, cell in enumerate(sums[i]):
                cell.set(add(of_a, of_b[j], cell.get()))
        for at, step in zip((at_a, at_b, at_next), (*steps, steps[1]), strict=True):
            at.set(f.at(at.get(), step))
    for i in range(rows) if packed else while_below(f, rows, m):
        _add(f, sums[i], row_at(f, old, ldo, i), row_at(f, c, ldc, i), masks)
    return f.finish()


def _repeated(f: BlockBuilder, tiling: Tiling, column: Scalar, places: Sequence[Scalar | int],
              packed: bool) -> Iterator[Scalar]:
    """The elements of a column of A, each in all lanes of a vector. Where multiply-add takes a lane for all, and
    neighbours lie in a panel, they are loaded as vectors."""
    if not (packed and targets.current().by_lane):
        yield from (f.splat(f.load(column, place), tiling.lanes) for place in places)
        return
    for first in range(0, len(places), tiling.lanes):
        together = f.load(column, first, tiling.lanes)
        for lane in range(min(tiling.lanes, len(places) - first)):
            yield f.shuffle(together, together, [lane] * tiling.lanes)


def while_below(f: BlockBuilder, most: int, end: Scalar) -> Iterator[int]:
    """0, 1, ... below `most`; what is recorded for a number runs where it is below `end`, inside of what is for the
    number before, so that the first one that is not ends it all."""
    with ExitStack() as conditions:
        for number in range(most):
            conditions.enter_context(f.if_(f.lt(f.const(number, dt.int64), end)))
            yield number


def row_at(f: BlockBuilder, start: Scalar, stride: Scalar, number: int) -> Scalar:
    """Where a row begins."""
    return f.at(start, stride * number) if number else start


def _lines(tiling: Tiling, dtype: DType, vectors: int) -> range:
    """The elements of a row of vectors at which cache lines begin."""
    return range(0, vectors * tiling.lanes, CACHES.line // dtype.size)


def _add(f: BlockBuilder, sums: list[Cell], old: Scalar, out: Scalar, masks: Sequence[Scalar | None]) -> None:
    """Writes old + sums to a row of C."""
    for j, (cell, mask) in enumerate(zip(sums, masks, strict=True)):
        total = cell.get()
        lanes = lanes_of(total.dtype)
        f.store(out, j * lanes, f.load(old, j * lanes, lanes, mask) + total, mask)
