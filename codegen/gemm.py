"""The matrix product C = A B: one function for all sizes, strides and batches, for eager calls and compiled programs.

The order of a sum is fixed. The inner index k is split in blocks of BLOCK. Within a block an element's sum starts at
+0 and takes its products in rising order of k, each by one fused multiply-add; the sums of the blocks are added up in
their order, starting at +0. That holds in every path below, so that the bits of an element depend on its row of A and
its column of B alone: not on the other sizes, strides, the place in C, the tiles, or the number of threads.

float32 and float64 are computed in themselves: small matrices as they lie, larger ones, and those whose rows crowd few
places of a cache, from panels that are packed before (`runtime/product_units.py` weighs the costs); float16 and
bfloat16 are widened while they are packed, and C is then float32; so is int8, and C is int32. Blocking follows Goto and
van de Geijn, "Anatomy of high-performance matrix multiplication", ACM Transactions on Mathematical Software 34, 2008.
Micro-kernels are in `gemm_tile.py`, packing in `gemm_pack.py`, what puts them together in `gemm_kernels.py`, all in
loop IR; how large a unit of work is, and everything about loading, is `runtime/products.py`'s.
"""

from __future__ import annotations

from llvmlite import ir

from twofold.ir.dtypes import DType

from . import gemm_first, gemm_kernels, llvm_cpu, llvm_module
from .gemm_shapes import (
    BLOCK,
    DIRECT,
    EPILOGUE_WORDS,
    FINISHED,
    HEADER,
    HERE,
    MAX_BATCH_RANK,
    PACKED,
    PARTS,
    TILE_WORDS,
    TURNED,
    Tiling,
    panel_width,
    symbol,
    tiles_at_once,
    tiling,
)
from .llvm_writer import used_up

__all__ = ["BLOCK", "DIRECT", "PACKED", "HERE", "TURNED", "FINISHED", "HEADER", "MAX_BATCH_RANK", "TILE_WORDS",
           "EPILOGUE_WORDS", "Tiling", "tiling", "panel_width", "tiles_at_once", "PARTS", "symbol", "build",
           "object_code"]


def build(module: ir.Module, dtype: DType, shape: Tiling, part: str, heap: bool = False) -> None:
    """Writes `tall`, `pack_b` and `small`, or `flat` and `pack_flat` (see `symbol`): kernels `(start, stop, args)` that
    return 0.

    `tall` and `flat` compute units of work: a unit is some rows and columns of one product of the batch, and the range
    numbers them by batch, rows, columns. `flat` is for products of one row. args: the addresses of C, A and B (or of
    what `pack_b` or `pack_flat` made of B); how B is read (`tall`: DIRECT, HERE, PACKED; `flat`: these and TURNED); M,
    N, K; the strides, in elements, of C from row to row, of A from row to row and along k, of B along k and from column
    to column; rows and columns of a unit, the rows at most `tiles_at_once` (of K) tallest tiles, columns whole panels;
    how many batch dimensions follow, at most MAX_BATCH_RANK. For each of them, outermost first: its length, and in
    elements the strides of A and of B (0 to repeat them), and of C. B is read DIRECT only where its columns are
    neighbours, it is summed in its own dtype and `shape.masks`; TURNED where neighbours along k lie beside each other
    and `shape.masks`.

    An *epilogue* is a kernel that goes on with the elements of C, tile by tile, while they are near. `tall` has one
    where FINISHED is added to how B is read. Behind the batch dimensions there are then its address, how many words
    follow, and these. Once the sums of a tile are complete, it runs over the tile's rows, from 0 on, with these args:
    the address of the tile, and in elements the distance of its rows; the number of the product in the batch; the row
    and the column of the product at which the tile begins; how many columns it has; then the words that were given.
    They are EPILOGUE_WORDS at most. Where the stride of C is 0 then, C has no memory: a tile lies in memory of `tall`'s
    own, and what the epilogue leaves is all. That is for sums of one block alone.

    `pack_b` packs B for PACKED, with the same args but for the work memory instead of C and in place of A. Its range
    numbers batch, block of k, and panel; each takes `words` * panel_width elements of what is summed. `pack_flat` does
    so for `flat`, in BLOCK * panel_width elements. Neither looks at what the args say of A and of C.

    `small` takes the addresses of C, A and B, all C-contiguous, and M, N and K, none of them 0, and computes all of one
    product whatever its range.

    Args:
        module: takes the functions.
        dtype: of A and B: a float, int8, or an integer of 32 bits or more.
        shape: the tile shapes, also for another processor than the host.
        part: a key of PARTS.
        heap: whether more than a little memory for packed operands comes from C's `malloc`, so that threads with small
            stacks can run it; if not, it is on the stack.
    """
    kernels = gemm_first.kernels if shape.first_tier else gemm_kernels.kernels
    for kernel in kernels(dtype, shape, part).values():
        llvm_cpu.emit_kernel(module, kernel, kernel.name, apart=False, heap=heap)


def object_code(dtype: DType, shape: Tiling, part: str) -> bytes:
    """The object file of `build`.

    It needs none of LLVM's optimisations: the module is written as they would leave it, and they take three times as
    long as making machine code. That of the first tier is made without LLVM's care, too.
    """
    module = ir.Module()
    build(module, dtype, shape, part, heap=True)
    return llvm_module.machine_code(used_up(module), optimised=False, quick=True, first=shape.first_tier)
