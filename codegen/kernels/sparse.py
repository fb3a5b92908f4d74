"""Loops of products of a sparse and a dense matrix, and of elements of a product of dense ones.

The range counts rows of the result. Where elements lie in the order of their rows, those of a range are found by a
search; else all are looked at, and those of other ranges passed over. In both ways the elements of a row are added in
the order in which they lie.
"""

from __future__ import annotations

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from ..loop import Kernel, LoopBuilder, Pointer
from .softmax import row_builder, row_lanes_of

__all__ = ["BLOCK", "dots", "ordered", "product"]

BLOCK = 4096  # elements whose order is looked at together
_HALVINGS = 64  # of a number of elements


def ordered(index: DType) -> Kernel:
    """For each block of elements whether none has a smaller row than the one before it; the range counts blocks.

    args: addresses of the answers (int64) and of the rows; the number of elements.
    """
    b = LoopBuilder(f"sparse ordered {index.short}")
    out, rows, count = b.pointer("out", dt.int64), b.pointer("rows", index), b.integer()
    with b.for_(b.start, b.stop) as block:
        falls, first = b.local(b.const(0, dt.int64)), block * BLOCK
        with b.for_(b.maximum(first, 1), b.minimum(first + BLOCK, count)) as k:
            falls.set(b.maximum(falls.get(), b.cast(b.lt(b.load(rows, k), b.load(rows, k - 1)), dt.int64)))
        b.store(out, block, b.const(1, dt.int64) - falls.get())
    return b.finish()


def product(dtype: DType, index: DType) -> Kernel:
    """`out[rows[k], :] += values[k] * dense[columns[k], :]` for every k in order, from zeros.

    args: addresses of the result, of what `ordered` has found, of rows, columns, values and the dense matrix; the
    numbers of elements, of blocks, of rows of the dense matrix, and of columns. Indices have been checked before; what
    wrong ones name is not touched.
    """
    b = LoopBuilder(f"sparse product {dtype.short} {index.short}")
    out, flags = b.pointer("out", dtype), b.pointer("flags", dt.int64)
    rows, columns = b.pointer("rows", index), b.pointer("columns", index)
    values, dense = b.pointer("values", dtype), b.pointer("dense", dtype)
    count, blocks, inner, width = (b.integer() for _ in range(4))
    with b.for_(b.start * width, b.stop * width) as i:
        b.store(out, i, b.const(0, dtype))
    in_order = b.local(b.const(1, dt.int64))
    with b.for_(0, blocks) as n:
        in_order.set(b.minimum(in_order.get(), b.load(flags, n)))
    sorted_ = b.eq(in_order.get(), 1)
    with b.for_(_first(b, rows, sorted_, count), count) as k:
        row = b.cast(b.load(rows, k), dt.int64)
        b.break_(b.and_(sorted_, b.ge(row, b.stop)))
        column = b.cast(b.load(columns, k), dt.int64)
        inside = b.and_(b.and_(b.ge(row, b.start), b.lt(row, b.stop)), b.and_(b.ge(column, 0), b.lt(column, inner)))
        with b.if_(inside):
            value, to, source = b.load(values, k), row * width, column * width
            with b.for_(0, width) as i:
                b.store(out, to + i, b.load(out, to + i) + value * b.load(dense, source + i))
    return b.finish()


def dots(dtype: DType, index: DType, by_team: bool = False) -> Kernel:
    """`sum(left[rows[k], :] * right[columns[k], :])` for each k in the range, in a chunk's order (`codegen/lanes.py`).

    args: addresses of the results, of rows, columns, and both matrices; the numbers of rows of these, and of columns.
    Indices have been checked before; for wrong ones the result is 0.

    Args:
        by_team: whether a team of threads goes over each pair of rows together.
    """
    b = row_builder(f"sparse dots {dtype.short} {index.short}", by_team)
    out, rows, columns = b.pointer("out", dtype), b.pointer("rows", index), b.pointer("columns", index)
    left, right = b.pointer("left", dtype), b.pointer("right", dtype)
    most, inner, width = (b.integer() for _ in range(3))
    lanes = row_lanes_of(b, dtype)
    with b.for_(b.start, b.stop) as k:
        row, column = (b.cast(b.load(indices, k), dt.int64) for indices in (rows, columns))
        inside = b.and_(b.and_(b.ge(row, 0), b.lt(row, most)), b.and_(b.ge(column, 0), b.lt(column, inner)))
        one, other = row * width, column * width
        total = lanes.reduced(b.select(inside, width, 0), 0.0, b.add,
                              lambda i: b.load(left, one + i) * b.load(right, other + i))
        with lanes.alone():
            b.store(out, k, total)
    return b.finish()


def _first(b: LoopBuilder, rows: Pointer, sorted_: Scalar, count: Scalar) -> Scalar:
    """The number of the first element of the range's rows, where rows lie in order; else 0."""
    low, high = b.local(b.const(0, dt.int64)), b.local(b.select(sorted_, count, 0))
    with b.for_(0, _HALVINGS):
        b.break_(b.ge(low.get(), high.get()))
        middle = b.idiv(low.get() + high.get(), 2)
        before = b.lt(b.cast(b.load(rows, middle), dt.int64), b.start)
        low.set(b.select(before, middle + 1, low.get()))
        high.set(b.select(before, high.get(), middle))
    return low.get()
