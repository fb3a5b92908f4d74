"""Loops that look for equal integers."""

from __future__ import annotations

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType

from ..loop import Kernel, LoopBuilder

__all__ = ["first", "first_by_elements"]

_FACTOR = 0x9E3779B97F4A7C15  # odd, with bits in no pattern: multiples of what lies close together lie far apart


def first(dtype: DType) -> Kernel:
    """For each number the place of the first that equals it, by a table of the places of those that are new.

    args: addresses of the places (int32), of the table (int32) and of the numbers; how many there are, and the size of
    the table, which is larger. The range is of length 1.
    """
    b = LoopBuilder(f"first equal {dtype.short}")
    out, table, x = b.pointer("out", dt.int32), b.pointer("table", dt.int32), b.pointer("x", dtype)
    count, size = b.integer(), b.integer()
    with b.for_(b.start, b.stop):
        with b.for_(0, size) as n:
            b.store(table, n, b.const(-1, dt.int32))
        with b.for_(0, count) as k:
            number = b.load(x, k)
            mixed = b.cast(number, dt.uint64) * b.const(_FACTOR, dt.uint64)
            high = b.cast(b.shr(mixed, b.const(33, dt.uint64)), dt.int64)
            at = b.local(high - b.idiv(high, size) * size)
            with b.for_(0, size):
                there = b.load(table, at.get())
                place = b.select(b.lt(there, 0), b.cast(k, dt.int32), there)
                equal = b.eq(b.load(x, b.cast(place, dt.int64)), number)
                with b.if_(equal):
                    b.store(table, at.get(), place)
                    b.store(out, k, place)
                b.break_(equal)
                at.set(b.select(b.eq(at.get() + 1, size), 0, at.get() + 1))
    return b.finish()


def first_by_elements(dtype: DType) -> Kernel:
    """The same without a table: for each number in the range those before it are looked at.

    args: addresses of the places (int32) and of the numbers.
    """
    b = LoopBuilder(f"first equal by elements {dtype.short}")
    out, x = b.pointer("out", dt.int32), b.pointer("x", dtype)
    with b.for_(b.start, b.stop) as k:
        number, place = b.load(x, k), b.local(b.const(0, dt.int64))
        with b.for_(0, k) as n:
            b.break_(b.eq(b.load(x, n), number))
            place.set(n + 1)
        b.store(out, k, b.cast(place.get(), dt.int32))
    return b.finish()
