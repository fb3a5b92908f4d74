"""Matrix products as plain loops: of integers, which wrap around, so that any order of additions gives the same bits;
and of floats in the one order of additions, for backends that have no products of their own."""

from __future__ import annotations

from twofold.codegen.loop import Kernel, LoopBuilder
from twofold.ir.dtypes import DType

__all__ = ["integers", "floats"]

_BLOCK = 256  # products that are summed before sums are (docs/numerics.md)


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


def floats(dtype: DType) -> Kernel:
    """C = A B for a batch of matrices; the range counts rows of C, of all matrices together.

    args: addresses of C, of the compute type of `dtype`, A and B, all contiguous; the rows, columns and inner size of a
    product.
    """
    b = LoopBuilder(f"matmul {dtype.short}")
    out, x, y = b.pointer("out", dtype.compute), b.pointer("a", dtype), b.pointer("b", dtype)
    m, n, k = (b.integer() for _ in range(3))
    with b.for_(b.start, b.stop) as row:
        matrix = b.idiv(row, m) * k
        with b.for_(0, n) as j:
            total = b.local(0.0, dtype.compute)
            with b.for_(0, k, _BLOCK) as block:
                part = b.local(0.0, dtype.compute)
                with b.for_(block, b.minimum(block + _BLOCK, k)) as inner:
                    part.set(b.fma(b.load(x, row * k + inner), b.load(y, (matrix + inner) * n + j), part.get()))
                total.set(total.get() + part.get())
            b.store(out, row * n + j, total.get())
    return b.finish()
