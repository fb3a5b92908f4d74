"""Numbers that the code of matrix products and its callers agree on: tile shapes, blocks, ways to read B, names.

No compiler is needed for these; the code itself is written in `gemm.py`.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from twofold.ir.dtypes import DType, bfloat16

from . import target as targets

__all__ = ["BLOCK", "DIRECT", "PACKED", "HERE", "TURNED", "HEADER", "MAX_BATCH_RANK", "VECTORS", "FLAT_VECTORS",
           "PARTS", "Tiling", "tiling", "in_pairs", "words", "panel_width", "tiles_at_once", "most_packed", "symbol"]

BLOCK = 256  # inner indices summed before they join the total; part of what results mean
VECTORS = 2  # of a tile of C, side by side
FLAT_VECTORS = 8  # the same where there is one row only
# How B is read: as it lies, packed by the unit that needs it, packed before by `pack_b`, turned in registers.
DIRECT, HERE, PACKED, TURNED = range(4)
HEADER = 15  # int64 arguments before those of the batch dimensions
MAX_BATCH_RANK = 16
# What is compiled together: most programs need no `flat`.
PARTS = {"tall": ("tall", "pack_b", "small"), "flat": ("flat",)}
_STACK = 128 << 10  # bytes of packed A on the stack


class Tiling(NamedTuple):
    """Tile shapes for a processor.

    lanes: elements of a vector: a power of two, and at least 16 bytes.
    heights: the rows that micro-kernels take, from the tallest, which must leave registers for two vectors of B.
    masks: whether masked loads are quick; without them whatever is read in vectors is packed first.
    """

    lanes: int
    heights: tuple[int, ...]
    masks: bool

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
    lanes = target.vector_bits // 8 // dtype.compute.size
    heights = (6, 4, 2)
    if target.many_registers:
        heights = (12, 8, 4) if target.registers_only else (14, 8, 4)  # with less than 4 to load to, LLVM moves sums
    return Tiling(lanes, heights, target.masks)


def in_pairs(dtype: DType) -> bool:
    """Whether panels of `dtype` hold two inner indices in each float32 word, as they are multiplied."""
    return dtype is bfloat16 and targets.current().pairs


def words(dtype: DType) -> int:
    """The words of a panel for one block of inner indices, of one row or column."""
    return BLOCK // 2 if in_pairs(dtype) else BLOCK


def panel_width(shape: Tiling, flat: bool) -> int:
    """Columns of B that one panel holds."""
    return shape.lanes * (FLAT_VECTORS if flat else VECTORS)


def tiles_at_once(shape: Tiling, dtype: DType, inner: int = BLOCK) -> int:
    """How many tiles of rows a unit of work may have in products over `inner` indices."""
    depth = min(-(-max(inner, 1) // shape.lanes) * shape.lanes, BLOCK)  # panels have room for whole vectors of indices
    return max(_STACK // (depth * shape.depth * dtype.compute.size), 1)


def most_packed(shape: Tiling, dtype: DType) -> int:
    """Elements that the panels of `tiles_at_once` tiles take at most, whatever the inner size."""
    return max(_STACK // dtype.compute.size, BLOCK * shape.depth)


def symbol(name: str, dtype: DType) -> str:
    """The symbol of the function `name` of products of `dtype` in machine code."""
    return f"gemm_{name}_{dtype.name}"
