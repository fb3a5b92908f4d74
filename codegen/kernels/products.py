"""Matrix products of integers, which wrap around, so that any order of additions gives the same bits.

Those of floats are `codegen/gemm.py`'s.
"""

from __future__ import annotations

from twofold.codegen.loop import Kernel, LoopBuilder
from twofold.ir.dtypes import DType

__all__ = ["integers"]


def integers(dtype: DType) -> Kernel:
    """C = A B for a batch of matrices; the range counts rows of C, of all matrices together.

    args: addresses of C, A and B, all contiguous; the rows, columns and inner size of a product.
    """
    b = LoopBuilder(f"matmul {dtype.short}")
    out, x, y = b.pointer("out", dtype), b.pointer("a", dtype), b.pointer("b", dtype)
    m, n, k = (b.integer() for _ in range(3))
    with b.for_(b.start, b.stop) as row:
        first = row * n
        matrix = b.idiv(row, m) * k
        with b.for_(0, n) as j:
            b.store(out, first + j, 0)
        with b.for_(0, k) as inner:
            left, begin = b.load(x, row * k + inner), (matrix + inner) * n
            with b.for_(0, n) as j:
                b.store(out, first + j, b.load(out, first + j) + left * b.load(y, begin + j))
    return b.finish()
