"""Convolution as a matrix product whose left operand is never laid out: kernels for all sizes and strides.

The windows of an image, one a row, make a matrix in which an element lies in the image at an offset of its row plus
an offset of its column; the columns come in *lines*, runs of neighbours in memory. So micro-kernels read the image
itself. `forward` keeps a tile of places by outputs in registers and goes along the lines. `filters`, the gradient for
the filters, keeps a tile of a line's elements by outputs and goes along the places.

The order of a sum is that of a matrix product (`gemm.py`): for `forward` over the columns of that matrix, line by
line; for `filters` over the places of a share, the shares apart. It does not depend on boxes, tiles or threads.

Which images, lines, boxes and shares there are is decided in `conv_shapes.py`, who also says what the arguments are.
"""

from __future__ import annotations

from llvmlite import ir

from twofold.ir.dtypes import DType

from . import llvm_cpu, llvm_module
from .conv_kernels import kernels
from .conv_shapes import PARTS, symbol
from .gemm_shapes import Tiling, tiling
from .llvm_writer import used_up

__all__ = ["PARTS", "symbol", "tiling", "build", "object_code"]


def build(module: ir.Module, dtype: DType, shape: Tiling, part: str) -> None:
    """Writes a kernel `(start, stop, args)` that returns 0, `forward` or `filters`; see `conv_shapes.py`.

    Args:
        module: takes the functions.
        dtype: float32 or float64.
        shape: the tile shapes of matrix products, also for another processor than the host.
        part: a key of PARTS.
    """
    for kernel in kernels(dtype, shape, part).values():
        llvm_cpu.emit_kernel(module, kernel, kernel.name, apart=False)


def object_code(dtype: DType, shape: Tiling, part: str) -> bytes:
    """The object file of `build`; as for matrix products, LLVM's optimisations would find nothing to do."""
    module = ir.Module()
    build(module, dtype, shape, part)
    return llvm_module.machine_code(used_up(module), optimised=False, quick=True, first=shape.first_tier)
