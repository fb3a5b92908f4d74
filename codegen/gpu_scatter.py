"""Gathers, scatters and segments on a GPU: a thread for each element of what is moved or joined.

An element of the result is joined with its updates in the order in which they lie. So one thread does it: that of the
first update with its index, for each element of a row. It finds the others right behind in a stable order of the
indices (`gpu_sort.py`), or, where there are few, by looking at all of them. Threads of all other updates have nothing
to do. Results are those of `kernels/indexing.py` and `kernels/segment.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from twofold.ir import dtypes as dt
from twofold.ir.data_class import data_class
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from .kernels import indexing, segment
from .loop import Cell, Kernel, LoopBuilder, Pointer
from .loop_sizes import parted

__all__ = ["FEW", "gather", "scatter", "segments", "fill"]

FEW = 64  # updates of a group up to which a thread looks at all of their indices


def gather(unit: DType, index: DType) -> Kernel:
    """`out[g, j, i] = x[g, indices[g // outer, j], i]` for each element of the result in the range.

    args: addresses of the result, of x and of the indices, all contiguous; then `outer`, and the sizes of axis 1 of x,
    of axis 1 of the result, and of a row.

    Args:
        unit: element type of x, a plain one of its size.
        index: type of the indices.
    """
    b = LoopBuilder(f"gather by elements {unit.short} {index.short}")
    out, x, indices = b.pointer("out", unit), b.pointer("x", unit), b.pointer("indices", index)
    outer, size, count, row = (b.integer() for _ in range(4))
    with b.for_(b.start, b.stop) as number:
        rest, i = parted(b, number, row)
        group, j = parted(b, rest, count)
        picked = b.cast(b.load(indices, parted(b, group, outer)[0] * count + j), dt.int64)
        with b.if_(indexing.checked(b, picked, size)):
            b.store(out, number, b.load(x, (group * size + picked) * row + i))
    return b.finish()


@data_class(frozen=True, eq=False)
class _Updates:
    """The updates of a group, as a kernel finds them: `indices` of `count` in each group of their own, in the order in
    which they lie; or in that of the indices, and `order` says where they lay."""

    indices: Pointer
    order: Pointer | None
    count: Scalar

    def index(self, b: LoopBuilder, at: Scalar) -> Scalar:
        """The index at a place."""
        return b.cast(b.load(self.indices, at), dt.int64)

    @contextmanager
    def first(self, b: LoopBuilder, base: Scalar, n: Scalar, index: Scalar) -> Iterator[None]:
        """A block that runs where update number `n` of the group whose indices begin at `base` is the first with its
        index."""
        earlier = b.local(False, dt.bool_)
        with b.for_(0 if self.order is None else b.maximum(n - 1, 0), n) as m:
            earlier.set(b.or_(earlier.get(), b.eq(self.index(b, base + m), index)))
            b.break_(earlier.get())
        with b.if_(b.not_(earlier.get())):
            yield

    def each(self, b: LoopBuilder, base: Scalar, n: Scalar, index: Scalar, take: Callable[[Scalar], None]) -> None:
        """Has `take` take the place in its group of each update with that index, from number `n` on, the first one."""
        with b.for_(n, self.count) as m:
            same = b.eq(self.index(b, base + m), index)
            if self.order is None:
                with b.if_(same):
                    take(m)
            else:
                b.break_(b.not_(same))
                take(b.cast(b.load(self.order, base + m), dt.int64))


def _updates(b: LoopBuilder, index: DType, ordered: bool) -> tuple[Pointer, Pointer | None]:
    """The pointers to the indices, and to where updates lay."""
    return b.pointer("indices", index), b.pointer("order", dt.int32) if ordered else None


def _name(name: str, kind: str, dtype: DType, index: DType, ordered: bool) -> str:
    return f"{name} {kind} by {'ordered' if ordered else 'few'} {dtype.short} {index.short}"


def scatter(dtype: DType, index: DType, mode: str, ordered: bool) -> Kernel:
    """`out[g, indices[g // outer, j], i]` joined with `updates[g, j, i]` for every j in order; the range counts these.

    args: addresses of the result, of the updates and of the indices, all contiguous, and, of indices in order, of where
    they lay (int32); then `outer`, and the sizes of axis 1 of the result, of axis 1 of the updates, and of a row.

    Args:
        dtype: element type; for "update" a plain one of its size.
        index: type of the indices.
        mode: "update", "add", "sub", "min" or "max".
        ordered: whether each group's indices are in order.
    """
    b = LoopBuilder(_name("scatter", mode, dtype, index, ordered))
    out, updates = b.pointer("out", dtype), b.pointer("updates", dtype)
    pointers = _updates(b, index, ordered)
    outer, size, count, row = (b.integer() for _ in range(4))
    there, combine = _Updates(*pointers, count), indexing.COMBINE[mode]
    with b.for_(b.start, b.stop) as number:
        rest, i = parted(b, number, row)
        group, n = parted(b, rest, count)
        base = parted(b, group, outer)[0] * count
        picked = there.index(b, base + n)
        with b.if_(indexing.checked(b, picked, size)), there.first(b, base, n, picked):
            to = (group * size + picked) * row + i
            acc = b.local(b.const(0, dtype) if mode == "update" else b.load(out, to))
            there.each(b, base, n, picked, lambda j: _join(b, acc, combine, b.load(
                updates, (group * count + j) * row + i)))
            b.store(out, to, acc.get())
    return b.finish()


def _join(b: LoopBuilder, acc: Cell, combine: Callable[..., Scalar], value: Scalar) -> None:
    acc.set(combine(b, acc.get(), value))


def segments(kind: str, dtype: DType, index: DType, ordered: bool) -> Kernel:
    """Joins the rows of data into the rows of the result that their ids name; the range counts elements of data. Rows
    with negative ids are dropped, and segments without rows are left as they are.

    args: addresses of the result, of data and of the ids, and, of ids in order, of where their rows lay (int32); the
    numbers of rows, of segments and of columns.

    Args:
        kind: what joins elements, of `segment.COMBINE`.
        ordered: whether the ids are in order.
    """
    b = LoopBuilder(_name("segment", kind, dtype, index, ordered))
    out, data = b.pointer("out", dtype), b.pointer("data", dtype)
    pointers = _updates(b, index, ordered)
    rows, count, inner = b.integer(), b.integer(), b.integer()
    there, start = _Updates(*pointers, rows), b.const(0, dt.int64)
    blank = b.const(segment.empty_value(kind, dtype, False), dtype)
    with b.for_(b.start, b.stop) as number:
        n, column = parted(b, number, inner)
        own = there.index(b, n)
        segment.check_id(b, own, count)
        with b.if_(b.and_(b.ge(own, 0), b.lt(own, count))), there.first(b, start, n, own):
            acc = b.local(blank)
            there.each(b, start, n, own, lambda row: _join(b, acc, segment.COMBINE[kind], b.load(
                data, row * inner + column)))
            b.store(out, own * inner + column, acc.get())
    return b.finish()


def fill(kind: str, dtype: DType) -> Kernel:
    """Has each element of the result in the range be that of a segment without rows. args: the address of the result.
    """
    b = LoopBuilder(f"segment {kind} empty {dtype.short}")
    out, blank = b.pointer("out", dtype), b.const(segment.empty_value(kind, dtype, False), dtype)
    with b.for_(b.start, b.stop) as i:
        b.store(out, i, blank)
    return b.finish()
