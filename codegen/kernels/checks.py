"""Conditions on values as kernels: they compute nothing and report what does not hold."""

from __future__ import annotations

from twofold.codegen.loop import Kernel, LoopBuilder
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType

__all__ = ["holds", "within"]


def holds(message: str) -> Kernel:
    """Reports `message` unless a bool is true.

    args: the address of the bool; the range is of length 1.
    """
    b = LoopBuilder(f"assert {message}")
    condition = b.pointer("condition", dt.bool_)
    with b.for_(b.start, b.stop) as i:
        b.check(b.load(condition, i), message)
    return b.finish()


def within(index: DType, message: str) -> Kernel:
    """Reports `message` unless an index is at least 0 and below a limit, or names nothing.

    args: the address of the index; the limit; how many elements it names. The range is of length 1.
    """
    b = LoopBuilder(f"within {index.short}")
    place = b.pointer("index", index)
    limit, row = b.integer(), b.integer()
    with b.for_(b.start, b.stop) as i:
        number = b.cast(b.load(place, i), dt.int64)
        b.check(b.or_(b.and_(b.ge(number, 0), b.lt(number, limit)), b.eq(row, 0)), message)
    return b.finish()
