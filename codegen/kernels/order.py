"""Loops that sort rows, for programs without NumPy: a stable merge sort of indices, from runs of one element upwards.

NaN comes behind everything else, and before it where the largest comes first; equal elements keep their order.
"""

from __future__ import annotations

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from ..loop import Kernel, LoopBuilder, Pointer
from ..loop_sizes import parted

__all__ = ["precedes", "argsort", "pick"]

_DOUBLINGS = 32  # rows have fewer than 2**31 elements: an index is an int32


def precedes(b: LoopBuilder, x: Scalar, y: Scalar, descending: bool) -> Scalar:
    """Whether `x` must come before `y`."""
    if x.dtype.is_bool:
        x, y = b.cast(x, dt.int32), b.cast(y, dt.int32)
    first = b.gt(x, y) if descending else b.lt(x, y)
    if not x.dtype.is_floating:
        return first
    if descending:
        x, y = y, x
    return b.or_(first, b.and_(b.eq(x, x), b.ne(y, y)))


def argsort(dtype: DType, descending: bool) -> Kernel:
    """The indices that sort each row, the range counting rows.

    args: addresses of the result and of work memory of its size, both int32, and of x; the length of a row.
    """
    b = LoopBuilder(f"argsort {dtype.short}{' descending' * descending}")
    out, work, x = b.pointer("out", dt.int32), b.pointer("work", dt.int32), b.pointer("x", dtype)
    n = b.integer()
    with b.for_(b.start, b.stop) as row:
        base = row * n
        with b.for_(0, n) as i:
            b.store(out, base + i, b.cast(i, dt.int32))
        width = b.local(b.const(1, dt.int64))
        with b.for_(0, _DOUBLINGS):
            run = width.get()
            b.break_(b.ge(run, n))
            with b.for_(0, n, run * 2) as start:
                _merge(b, out, work, x, base, start, b.minimum(start + run, n), b.minimum(start + run * 2, n), n,
                       descending)
            with b.for_(0, n) as i:
                b.store(out, base + i, b.load(work, base + i))
            width.set(run * 2)
    return b.finish()


def _merge(b: LoopBuilder, out: Pointer, work: Pointer, x: Pointer, base: Scalar, start: Scalar, middle: Scalar,
           end: Scalar, n: Scalar, descending: bool) -> None:
    """Merges two runs of sorted indices, [start, middle) and [middle, end), into work memory."""
    left, right = b.local(start), b.local(middle)
    with b.for_(start, end) as place:
        i, j = left.get(), right.get()
        first = b.cast(b.load(out, base + i), dt.int64)
        second = b.cast(b.load(out, base + b.minimum(j, n - 1)), dt.int64)
        later = precedes(b, b.load(x, base + second), b.load(x, base + first), descending)
        takes_right = b.and_(b.lt(j, end), b.or_(b.ge(i, middle), later))
        chosen = b.select(takes_right, second, first)
        b.store(work, base + place, b.cast(chosen, dt.int32))
        step = b.cast(takes_right, dt.int64)
        right.set(j + step)
        left.set(i + (1 - step))


def pick(unit: DType, index: DType | None, by_elements: bool) -> Kernel:
    """The elements of each row in the order of indices, up to a count.

    args: addresses of the elements, of where the indices go if they are wanted, of x and of the indices; how many of a
    row are picked; the length of a row.

    Args:
        unit: a plain type of the elements' size.
        index: the dtype of the indices that are wanted besides.
        by_elements: whether the range counts what is picked, rather than rows.
    """
    b = LoopBuilder(f"pick {'by elements ' * by_elements}{unit.short} {index.short if index else ''}")
    out = b.pointer("out", unit)
    places = b.pointer("places", index) if index is not None else None
    x, order = b.pointer("x", unit), b.pointer("order", dt.int32)
    count, length = b.integer(), b.integer()

    def move(number: Scalar, row: Scalar, n: Scalar) -> None:
        place = b.load(order, row * length + n)
        b.store(out, number, b.load(x, row * length + b.cast(place, dt.int64)))
        if places is not None:
            b.store(places, number, b.cast(place, places.dtype))

    if by_elements:
        with b.for_(b.start, b.stop) as number:
            move(number, *parted(b, number, count))
    else:
        with b.for_(b.start, b.stop) as row, b.for_(0, count) as n:
            move(row * count + n, row, n)
    return b.finish()
