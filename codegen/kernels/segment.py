"""Loops of segment ops: rows join the row of the result that their id names, in the order in which they lie.

Columns are independent: a kernel's range counts tiles of them. Operands are contiguous, data [rows, inner], the result
[segments, inner]; results of 16-bit floats gather in float32 memory and are rounded once at the end.
"""

from __future__ import annotations

from collections.abc import Callable

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from ..loop import Kernel, LoopBuilder

__all__ = ["TILE", "COMBINE", "empty_value", "check_id", "join"]

TILE = 256  # columns

COMBINE: dict[str, Callable[..., Scalar]] = {
    "sum": lambda s, a, b: a + b,
    "prod": lambda s, a, b: a * b,
    "max": lambda s, a, b: s.maximum(a, b),
    "min": lambda s, a, b: s.minimum(a, b),
}


def empty_value(kind: str, dtype: DType, ordered: bool) -> float:
    """The elements of a segment without rows: for extremes 0 with ordered ids, else the dtype's own last number."""
    if kind in ("sum", "prod"):
        return int(kind == "prod")
    return 0 if ordered else dtype.min if kind == "max" else dtype.max


def check_id(b: LoopBuilder, number: Scalar, segments: Scalar) -> None:
    """Requires an id to name a segment, or none by being negative."""
    b.check(b.lt(number, segments), "a segment id is not less than num_segments.")


def join(kind: str, dtype: DType, id_dtype: DType, ordered: bool, drop_above: bool) -> Kernel:
    """Joins the rows of all segments, for each tile of columns in the range.

    args: addresses of the result, of the memory in which it gathers (the result itself but for 16-bit floats), of data
    and ids; the numbers of rows, of segments and of columns.

    Args:
        ordered: ids must not fall nor be negative; else rows with negative ids are dropped.
        drop_above: rows with ids past the last segment are dropped as well, instead of failing.
    """
    flags = ("ordered" if ordered else "any", "drop" if drop_above else "check")
    b = LoopBuilder(f"segment {kind} {dtype.short} {id_dtype.short} {' '.join(flags)}")
    out, acc = b.pointer("out", dtype), b.pointer("acc", dtype.compute)
    data, ids = b.pointer("data", dtype), b.pointer("ids", id_dtype)
    rows, segments, inner = b.integer(), b.integer(), b.integer()
    blank = b.const(empty_value(kind, dtype, ordered), dtype)
    with b.for_(b.start, b.stop) as tile:
        left = tile * TILE
        width = b.minimum(inner - left, TILE)
        with b.for_(0, segments) as n, b.for_(0, width) as c:
            b.store(acc, n * inner + left + c, blank)
        last = b.local(-1)
        with b.for_(0, rows) as r:
            number = b.cast(b.load(ids, r), dt.int64)
            inside = b.and_(b.ge(number, 0), b.lt(number, segments))
            if ordered:
                b.check(b.and_(inside, b.ge(number, last.get())),
                        "segment_ids must not be negative, nor fall from one row to the next.")
            elif not drop_above:
                check_id(b, number, segments)
            fresh = b.gt(number, last.get())
            with b.if_(inside), b.for_(0, width) as c:
                at, x = number * inner + left + c, b.load(data, r * inner + left + c)
                joined = COMBINE[kind](b, b.load(acc, at), x)
                b.store(acc, at, b.select(fresh, x, joined) if ordered else joined)
            last.set(number)
        if dtype.compute is not dtype:
            with b.for_(0, segments) as n, b.for_(0, width) as c:
                at = n * inner + left + c
                b.store(out, at, b.load(acc, at))
    return b.finish()
