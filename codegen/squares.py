"""Tiles of an operand turned in registers, square by square of vectors, so that loops read rows of neighbours.

A loop that walks an operand across its rows fetches a line for every element. A square takes as many vectors as a
vector has lanes, each from a line of its own, all of which it uses, and leaves its columns as vectors. How a square is
turned is the affair of `gemm_pack.py`, by which panels of matrix products are made; which operands are turned decides
who walks them.
"""

from __future__ import annotations

from collections.abc import Iterable

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from .gemm_pack import SquareSource
from .gemm_shapes import tiling
from .loop import BlockBuilder, Pointer

__all__ = ["MOST", "turnable", "height", "turn"]

MOST = 3  # operands whose tiles are on the stack at once, 8 KiB each


def turnable(dtype: DType) -> bool:
    """Whether there are squares of `dtype`."""
    return not dtype.is_complex and dtype.compute.size >= dt.int32.size


def height(dtypes: Iterable[DType], line: int) -> int:
    """Rows of a tile to be turned: so many that they take two lines of each column."""
    return 2 * line // max(dtype.compute.size for dtype in dtypes)


def turn(b: BlockBuilder, dtype: DType, source: Scalar, step: Scalar, target: Pointer, tile: tuple[int, int],
         across: Scalar, down: Scalar) -> None:
    """target[y * wide + x] = source[x * step + y] for x below `across` and y below `down`.

    The rest of each row of whole vectors of the target, and rows up to whole vectors of them, may hold anything then.

    Args:
        dtype: of the source; the target is of what that is computed in.
        source: the address of the first element.
        step: elements from column to column of the source.
        tile: rows, and elements of a row, that the target has room for: `tall` and `wide`, multiples of any vector's.
    """
    tall, wide = tile
    shape = tiling(dtype)
    matrix = SquareSource(b, shape, source, step, b.const(1, dt.int64), across, down)
    whole = down if shape.masks else down & -shape.lanes
    with b.for_(0, across, shape.lanes) as x:
        rows = matrix.rows(x)
        with b.for_(0, whole, shape.lanes) as y:
            for row in rows:  # of the tile below, as so many lines at once are more than a processor foresees
                b.prefetch(row, y + tall)
            columns = matrix.columns(rows, y, down - y if shape.masks else None)
            for n, column in enumerate(columns):
                b.store(target, (y + n) * wide + x, column)
    if not shape.masks:
        _rest(b, matrix, target, wide, whole)


def _rest(b: BlockBuilder, matrix: SquareSource, target: Pointer, wide: int, first: Scalar) -> None:
    """The rows from `first` on, an element at a time."""
    with b.for_(first, matrix.k) as y, b.for_(0, matrix.m) as x:
        b.store(target, y * wide + x, matrix.load(matrix.start, x * matrix.s + y, lanes=0))
