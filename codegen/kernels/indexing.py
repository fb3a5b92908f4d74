"""Loop nests that read or write at places given as data: gather, scatter, coordinates, where a condition holds.

What is out of range is neither read nor written. A gather checks its indices as it goes; those of a scatter are checked
by a kernel before it, so that memory is not written at all where one is wrong. Gathers split the rows of the result
between threads. Scatters split the elements of a slice, and each thread goes through all updates in order: so an
element gets its updates in one order, whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from twofold.codegen.loop import Kernel, LoopBuilder, Pointer
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

__all__ = ["gather_rows", "scatter_rows", "indices_within", "linear_index", "count_nonzero", "coordinates", "ramp",
           "OUT_OF_RANGE", "BLOCK", "COMBINE", "checked", "detail", "bad_index", "bad_coordinates", "bad_bounds"]

OUT_OF_RANGE = "an index is out of range"
BLOCK = 4096  # elements that a thread looks at in one go when it searches for what is not zero


def checked(b: LoopBuilder, index: Scalar, size: Scalar) -> Scalar:
    """Whether 0 <= index < size, which the kernel also reports."""
    ok = _within(b, index, size)
    b.check(ok, OUT_OF_RANGE)
    return ok


def _within(b: LoopBuilder, index: Scalar, size: Scalar) -> Scalar:
    return b.and_(b.ge(index, 0), b.lt(index, size))


def gather_rows(unit: DType, index: DType, flat: bool, single: bool, known: bool = False) -> Kernel:
    """`out[g, j, :] = x[g, indices[g // outer, j], :]`, the range counting pairs (g, j).

    args: addresses of the result, of x and of the indices, all contiguous; then `outer`, and the sizes of axis 1 of x,
    of axis 1 of the result, and of a row. Indices into rows without elements are not checked.

    Args:
        unit: element type of x, a plain one of its size.
        index: type of the indices.
        flat: there is one g.
        single: a row is one element. All indices of a run are checked before any is used then, so that neither loop
            waits for the other.
        known: the indices have been checked by a kernel before, which has ended the run if one was wrong.
    """
    b = LoopBuilder(f"gather {unit.short} {index.short}{' flat' * flat}{' single' * single}{' known' * known}")
    out, x, indices = b.pointer("out", unit), b.pointer("x", unit), b.pointer("indices", index)
    outer, size, count, row = (b.integer() for _ in range(4))

    def copy(place: Scalar, origin: Scalar | int, at: Scalar) -> None:
        picked = b.cast(b.load(indices, at), dt.int64)
        ok = _within(b, picked, size)
        if not known:
            b.check(b.or_(ok, b.eq(row, 0)), OUT_OF_RANGE)  # where there is nothing to be picked, no index is wrong
        with b.if_(ok):
            to, source = place * row, (picked + origin) * row
            with b.for_(0, row) as i:
                b.store(out, to + i, b.load(x, source + i))

    def rows(lo: Scalar, hi: Scalar, begin: Scalar | int, origin: Scalar | int, first: Scalar | int) -> None:
        """Gathers for the indices from `first` + lo to `first` + hi, to the places as far behind `begin`."""
        if not single:
            with b.for_(lo, hi) as j:
                copy(begin + j, origin, first + j)
            return
        ok = _all_within(b, indices, first + lo, first + hi, size)
        if not known:
            b.check(ok, OUT_OF_RANGE)
        with b.if_(ok), b.for_(lo, hi) as j:
            b.store(out, begin + j, b.load(x, b.cast(b.load(indices, first + j), dt.int64) + origin))

    if flat:
        rows(b.start, b.stop, 0, 0, 0)
        return b.finish()
    with b.for_(b.idiv(b.start, count), b.idiv(b.stop + (count - 1), count)) as group:
        begin = group * count
        lo, hi = b.maximum(b.start - begin, 0), b.minimum(b.stop - begin, count)
        rows(lo, hi, begin, group * size, b.idiv(group, outer) * count)
    return b.finish()


def _all_within(b: LoopBuilder, indices: Pointer, start: Scalar, stop: Scalar, size: Scalar) -> Scalar:
    """Whether all of some indices are from 0 to below `size`. As unsigned numbers negative ones are the largest, so
    that the largest index tells, and vectors of them are looked at together."""
    unsigned = dt.uint32 if indices.dtype.size == 4 else dt.uint64
    largest = b.local(b.const(0, unsigned))
    with b.for_(start, stop) as j:
        index = b.load(indices, j)
        largest.set(b.maximum(largest.get(), b.cast(index, unsigned)))
    return b.or_(b.le(stop, start), b.lt(b.cast(largest.get(), dt.uint64), b.cast(size, dt.uint64)))


def indices_within(index: DType) -> Kernel:
    """Reports indices that are not at least 0 and below a size; the range counts them.

    args: the address of the indices; the size; how many elements each names, of which there may be none: then no index
    is wrong.
    """
    b = LoopBuilder(f"indices within {index.short}")
    indices, size, row = b.pointer("indices", index), b.integer(), b.integer()
    b.check(b.or_(_all_within(b, indices, b.start, b.stop, size), b.eq(row, 0)), OUT_OF_RANGE)
    return b.finish()


COMBINE = {
    "update": lambda b, old, new: new,
    "add": lambda b, old, new: b.add(old, new),
    "sub": lambda b, old, new: b.sub(old, new),
    "min": lambda b, old, new: b.minimum(old, new),
    "max": lambda b, old, new: b.maximum(old, new),
}


def scatter_rows(dtype: DType, index: DType, mode: str) -> Kernel:
    """`out[g, indices[g // outer, j], :]` joined with `updates[g, j, :]` for every j in order.

    The range counts elements of `out[:, 0, :]`. Indices have been checked before (`indices_within`, `linear_index`);
    what a wrong one names is not touched.

    args: addresses of the result, of the updates and of the indices, all contiguous; then `outer`, and the sizes of
    axis 1 of the result, of axis 1 of the updates, and of a row.

    Args:
        dtype: element type; for "update" a plain one of its size.
        index: type of the indices.
        mode: "update", "add", "sub", "min" or "max".
    """
    b = LoopBuilder(f"scatter {mode} {dtype.short} {index.short}")
    out, updates, indices = b.pointer("out", dtype), b.pointer("updates", dtype), b.pointer("indices", index)
    outer, size, count, row = (b.integer() for _ in range(4))
    with b.for_(b.idiv(b.start, row), b.idiv(b.stop + (row - 1), row)) as group:
        begin = group * row
        lo, hi = b.maximum(b.start - begin, 0), b.minimum(b.stop - begin, row)
        first = b.idiv(group, outer) * count
        with b.for_(0, count) as j:
            picked = b.cast(b.load(indices, first + j), dt.int64)
            with b.if_(_within(b, picked, size)):
                to, source = (group * size + picked) * row, (group * count + j) * row
                with b.for_(lo, hi) as i:
                    new = b.load(updates, source + i)
                    old = new if mode == "update" else b.load(out, to + i)
                    b.store(out, to + i, COMBINE[mode](b, old, new))
    return b.finish()


def linear_index(index: DType, depth: int) -> Kernel:
    """The row-major number of the place that each row of `depth` coordinates names; the range counts rows.

    args: addresses of the numbers (int64) and the coordinates, contiguous; the sizes of the axes.
    """
    b = LoopBuilder(f"linear_index {index.short} {depth}")
    out, indices = b.pointer("out", dt.int64), b.pointer("indices", index)
    sizes = [b.integer() for _ in range(depth)]
    with b.for_(b.start, b.stop) as row:
        place: Scalar = b.const(0, dt.int64)
        for k, size in enumerate(sizes):
            part = b.cast(b.load(indices, row * depth + k), dt.int64)
            checked(b, part, size)
            place = place * size + part
        b.store(out, row, place)
    return b.finish()


def count_nonzero(dtype: DType) -> Kernel:
    """How many elements of each BLOCK are not zero; the range counts blocks.

    args: addresses of the counts (int64) and the elements, contiguous; the number of elements.
    """
    b = LoopBuilder(f"count_nonzero {dtype.short}")
    out, x, total = b.pointer("out", dt.int64), b.pointer("x", dtype), b.integer()
    with b.for_(b.start, b.stop) as block:
        count, first = b.local(0), block * BLOCK
        with b.for_(first, b.minimum(first + BLOCK, total)) as i:
            count.set(count.get() + b.cast(_is_set(b, b.load(x, i)), dt.int64))
        b.store(out, block, count.get())
    return b.finish()


def coordinates(dtype: DType) -> Kernel:
    """The coordinates of the elements that are not zero; the range counts blocks.

    args: addresses of the coordinates (int64), of the number of the first result of each block (int64) and of the
    elements, all contiguous; the number of elements; the rank; the sizes of the axes.
    """
    b = LoopBuilder(f"coordinates {dtype.short}")
    out, starts, x = b.pointer("out", dt.int64), b.pointer("starts", dt.int64), b.pointer("x", dtype)
    total, rank = b.integer(), b.integer()
    sizes = b.next_slot
    with b.for_(b.start, b.stop) as block:
        place, first = b.local(b.load(starts, block)), block * BLOCK
        with b.for_(first, b.minimum(first + BLOCK, total)) as i, b.if_(_is_set(b, b.load(x, i))):
            here, left = place.get(), b.local(i)
            with b.for_(rank - 1, -1, -1) as axis:
                size, number = b.load(b.args, axis + sizes), left.get()
                above = b.idiv(number, size)
                b.store(out, here * rank + axis, number - above * size)
                left.set(above)
            place.set(here + 1)
    return b.finish()


def _is_set(b: LoopBuilder, value: Scalar) -> Scalar:
    return value if value.dtype.is_bool else b.ne(value, 0)


def ramp(dtype: DType) -> Kernel:
    """`start + i * delta` for every i of the range.

    args: addresses of the result, of start and of delta.
    """
    b = LoopBuilder(f"range {dtype.short}")
    out, start, delta = (b.pointer(n, dtype) for n in ("out", "first", "delta"))
    first, step = b.load(start, 0), b.load(delta, 0)
    with b.for_(b.start, b.stop) as i:
        b.store(out, i, first + b.cast(i, dtype) * step)
    return b.finish()


# -- what a failed check says -------------------------------------------------------------------------
def _first(bad: np.ndarray) -> tuple[tuple[int, ...], str]:
    """The first place that is set, and how messages write it."""
    where = tuple(int(i) for i in np.unravel_index(int(bad.argmax()), bad.shape))
    return where, f"[{','.join(map(str, where))}]" if where else ""


def bad_index(indices: np.ndarray, size: int) -> str:
    """Names the first index that is not in [0, size); empty where there is none."""
    bad = np.asarray((indices < 0) | (indices >= size))
    if not bad.any():
        return ""
    where, place = _first(bad)
    return f"indices{place} = {indices[where]} is not in [0, {size})"


def bad_coordinates(indices: np.ndarray, *dims: int) -> str:
    """Names the first row of coordinates outside of a box of `dims`; empty where there is none."""
    bad = np.asarray(((indices < 0) | (indices >= np.array(dims, np.int64))).any(-1))
    if not bad.any():
        return ""
    where, place = _first(bad)
    return f"indices{place} = {indices[where].tolist()} does not index into shape {list(dims)}"


def bad_bounds(low: np.ndarray, high: np.ndarray) -> str:
    """Says that `low` is not less than `high`; nothing where it is."""
    if low < high:
        return ""
    return f"low ({int(low)}) must be less than high ({int(high)})."


_DETAILS: dict[str, Callable[..., str]] = {"index": bad_index, "coordinates": bad_coordinates, "bounds": bad_bounds}


def detail(kind: str, arrays: Sequence[np.ndarray], sizes: Sequence[int]) -> str:
    """The text of a failed check, from the operands that it was about."""
    return _DETAILS[kind](*arrays, *sizes)
