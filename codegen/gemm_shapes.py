"""Numbers that the code of matrix products and its callers agree on: tile shapes, blocks, ways to read B, names.

No compiler is needed for these; the code itself is written in `gemm.py`.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from twofold.ir.dtypes import DType, bfloat16, int8, int32

from . import target as targets

__all__ = ["BLOCK", "DIRECT", "PACKED", "HERE", "TURNED", "FINISHED", "MODE", "ROW", "HEADER", "MAX_BATCH_RANK",
           "TILE_WORDS", "EPILOGUE_WORDS", "HURRIED", "VECTORS", "FLAT_VECTORS", "PARTS", "Tiling", "tiling", "summed",
           "together", "block", "square", "words", "first_tier", "panel_width", "tiles_at_once", "most_packed",
           "symbol"]

BLOCK = 256  # inner indices summed before they join the total; part of what results mean
VECTORS = 2  # of a tile of C, side by side
FLAT_VECTORS = 8  # the same where there is one row only
# How B is read: as it lies, packed by the unit that needs it, packed before by `pack_b`, turned in registers.
DIRECT, HERE, PACKED, TURNED = range(4)
FINISHED = 4  # added to how B is read, where an epilogue follows
MODE, ROW = 3, 7  # the arguments that say how B is read, and the stride of C from row to row
HEADER = 15  # int64 arguments before those of the batch dimensions
MAX_BATCH_RANK = 16
TILE_WORDS = 6  # args of an epilogue that tell of the tile, before its own
EPILOGUE_WORDS = 256  # args that an epilogue has at most
# What is compiled together: most programs need no `flat`.
PARTS = {"tall": ("tall", "pack_b", "small"), "flat": ("flat", "pack_flat")}
_FIRST_HEIGHT = 4  # rows of a tile in the first tier
HURRIED = 100  # inner indices below which C is not there by itself when it is to be written
_STACK = 128 << 10  # bytes of packed A on the stack


class Tiling(NamedTuple):
    """Tile shapes for a processor.

    lanes: elements of a vector: a power of two, and at least 16 bytes.
    heights: the rows that micro-kernels take, from the tallest, which must leave registers for two vectors of B.
    masks: whether masked loads are quick; without them whatever is read in vectors is packed first.
    first_tier: whether code is to be made quickly, rather than to be quick: tiles are of few kinds, and panels are
        packed an element at a time where they cannot be copied.
    """

    lanes: int
    heights: tuple[int, ...]
    masks: bool
    first_tier: bool = False

    @property
    def tall(self) -> int:
        """Rows of the tallest tile."""
        return self.heights[0]

    @property
    def depth(self) -> int:
        """Elements of a panel of A for one inner index: the rows of the tallest tile, in whole vectors."""
        return -(-self.tall // self.lanes) * self.lanes


def tiling(dtype: DType) -> Tiling:
    """The tile shapes of the current target for products of `dtype`."""
    return _tiling(dtype, targets.current())


@functools.cache
def _tiling(dtype: DType, target: targets.Target) -> Tiling:
    lanes = target.vector_bits // 8 // summed(dtype).size
    heights = (6, 4, 2)
    if target.many_registers:
        heights = (12, 8, 4) if target.registers_only else (14, 8, 4)  # with less than 4 to load to, LLVM moves sums
    return Tiling(lanes, heights, target.masks)


def summed(dtype: DType) -> DType:
    """What products of `dtype` are summed in, which C is of."""
    return int32 if dtype is int8 else dtype.compute


def together(dtype: DType) -> int:
    """How many inner indices a word of a panel of `dtype` holds, as they are multiplied: 1, pairs, or quads."""
    target = targets.current()
    return 2 if dtype is bfloat16 and target.pairs else 4 if dtype is int8 and target.quads else 1


def block(dtype: DType) -> int:
    """Inner indices that are summed before they join the total. Sums of quads wrap around, so that any number will do:
    it is what fills panels of BLOCK words."""
    return 4 * BLOCK if together(dtype) == 4 else BLOCK


def words(dtype: DType) -> int:
    """The words of a panel of B for one block of inner indices, of one column; quads follow what sums begin with."""
    held = together(dtype)
    return block(dtype) // held + (held == 4)


def square(shape: Tiling, dtype: DType) -> int:
    """Inner indices of the squares that packing turns: panels of A have room for whole ones."""
    held = together(dtype)
    return shape.lanes * (held if held == 4 else 1)


def first_tier(shape: Tiling) -> Tiling:
    """The tile shapes of the first tier of kernels, which may run in place of those of `shape`."""
    return Tiling(shape.lanes, (_FIRST_HEIGHT, 1), shape.masks, first_tier=True)


def panel_width(shape: Tiling, flat: bool) -> int:
    """Columns of B that one panel holds."""
    return shape.lanes * (FLAT_VECTORS if flat else VECTORS)


def tiles_at_once(shape: Tiling, dtype: DType, inner: int = 4 * BLOCK) -> int:
    """How many tiles of rows a unit of work may have in products over `inner` indices."""
    whole = square(shape, dtype)
    depth = min(-(-max(inner, 1) // whole) * whole, block(dtype)) // (whole // shape.lanes)
    return max(_STACK // (depth * shape.depth * summed(dtype).size), 1)


def most_packed(shape: Tiling, dtype: DType) -> int:
    """Elements that the panels of `tiles_at_once` tiles take at most, whatever the inner size."""
    return max(_STACK // summed(dtype).size, BLOCK * shape.depth)


def symbol(name: str, dtype: DType) -> str:
    """The symbol of the function `name` of products of `dtype` in machine code."""
    return f"gemm_{name}_{dtype.name}"
