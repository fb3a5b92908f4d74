"""Matrix products on given memory: the code of `codegen/gemm.py` loaded, calls planned.

A plan is made once for sizes, strides and a number of threads. It holds the integers that the kernels take after their
three addresses, for eager calls and compiled programs alike. Units of work are chosen in `product_units.py`; shapes,
allocation and what else a matrix product may be asked for are the callers' affair.
"""

from __future__ import annotations

import functools
import math
from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from twofold.codegen import gemm_shapes as gemm
from twofold.codegen import library
from twofold.codegen.layout import Layout
from twofold.codegen.matrices import Matrices, with_longer_rows
from twofold.ir.dtypes import DType, as_dtype

from . import generated, geometry, memory, product_units, sharing, threads
from .calls import RowCall

__all__ = ["ProductPlan", "plan", "functions", "Product"]

_FEW = 128  # rows for which packing B once more is too much


class ProductPlan(NamedTuple):
    """How to compute `Matrices`.

    kernel: `tall` or `flat`. swapped: whether A and B change places. total: the length of the kernel's range. integers:
    what it takes after the addresses of C, A and B. packs: the range of `pack_b`, run before, or 0; it takes work
    memory of `room` elements, A, B and the same integers, and the kernel the work memory instead of B. work: about how
    many simple operations it all is.
    """

    kernel: str
    swapped: bool
    total: int
    integers: tuple[int, ...]
    packs: int
    room: int
    work: int


def plan(x: Matrices, dtype: DType, count: int, often: bool = False, rows: int | None = None,
         ready: bool = False) -> ProductPlan:
    """The plan for at most `count` threads.

    Args:
        often: the same B has many products: what packing it beforehand costs is nothing.
        rows: of a unit, which then has all columns; None where that is to be chosen.
        ready: whether what packs B runs once for many calls.
    Raises:
        ValueError: there are more batch dimensions than `gemm.MAX_BATCH_RANK`.
    """
    if len(x.batch) > gemm.MAX_BATCH_RANK:
        raise ValueError(f"a product takes at most {gemm.MAX_BATCH_RANK} batch dimensions, got {len(x.batch)}")
    swapped = x.n == 1 and x.m > 1 and x.ldc == 1
    if swapped:  # a column is computed as a row
        x = x._replace(m=1, n=x.m, a=(x.b[1], x.b[0]), b=(x.a[1], x.a[0]), ldc=x.m,
                       batch=tuple((length, b, a, c) for length, a, b, c in x.batch))
    x = x._replace(a=(x.a[0] if x.m > 1 else 0, x.a[1]), b=(x.b[0], x.b[1] if x.n > 1 else 1))
    shape = gemm.tiling(dtype)
    flat = x.m == 1
    batches = math.prod(length for length, *_ in x.batch)
    multiplied = batches * x.m * x.n * x.k
    work = multiplied // (4 if flat else 16)  # one row waits for memory
    if not often:  # of many products threads may share all, though one alone is not worth it
        count = sharing.threads_for(work, count) if work >= sharing.IN_PROGRAMS else 1
    rows, columns, mode = product_units.choose(x, dtype, count, often and not swapped, rows, ready and not swapped)
    width = gemm.panel_width(shape, flat)
    size, words = (gemm.BLOCK, gemm.BLOCK) if flat else (gemm.block(dtype), gemm.words(dtype))
    panels = batches * max(-(-x.k // size), 1) * -(-x.n // width) if mode == gemm.PACKED else 0
    room = panels * words * width
    integers = (mode, x.m, x.n, x.k, x.ldc, *x.a, *x.b, rows, columns, len(x.batch),
                *(word for dim in x.batch for word in dim))
    total = batches * -(-x.m // rows) * -(-x.n // columns)
    return ProductPlan("flat" if flat else "tall", swapped, total, integers, panels, room, work)


def functions(dtype: DType) -> generated.Functions:
    """The addresses of `tall`, `flat`, `pack_b` and `small` for products of `dtype`, a real one of `Product`; see
    `codegen/gemm.py`."""
    return generated.functions("gemm", dtype)


library.provide("gemm", lambda dtype, name: functions(as_dtype(dtype))[name],
                lambda dtype, name: functions(as_dtype(dtype)).settle(name))


@functools.cache
def _function(dtype: DType, name: str) -> generated.GeneratedFunction:
    return generated.GeneratedFunction(gemm.symbol(name, dtype), functions(dtype)[name])


class _ProductCall(NamedTuple):
    """How to run products of operands with the strides `a` and `b`.

    copies: whether operands must be copied first, as their strides are not whole elements; then all else is unset.
    gathers: the same for A alone, whose rows are better in one piece: row-major as the product sees it.
    swapped: whether A and B change places. Small products hand array objects over as they are: `direct` takes the words
    of `template`, of which the last three are to be the objects' addresses. Others are run by `call`, and `packing`
    before it into work memory of `room` elements. threads: for which number it was planned, 0 where that is all one.
    """

    a: tuple[int, ...] | None = None
    b: tuple[int, ...] | None = None
    copies: bool = False
    gathers: bool = False
    swapped: bool = False
    total: int = 0
    direct: Callable[[int, int, int], int] | None = None
    template: array[int] = array("q")
    call: RowCall | None = None
    packing: RowCall | None = None
    room: int = 0
    threads: int = 0


class Product:
    """Products of arrays of given dtype and shapes, into C-contiguous results of what they are summed in.

    >>> import numpy as np
    >>> from twofold.ir import dtypes as dt
    >>> product = Product(dt.float32, (2, 3), (3, 1))
    >>> product([np.ones((2, 3), np.float32), np.ones((3, 1), np.float32)]).tolist()
    [[3.0], [3.0]]
    """

    __slots__ = ("dtype", "shape", "_a", "_b", "_flips", "_runs", "_latest", "_empty", "_type")

    def __init__(self, dtype: DType, a: tuple[int, ...], b: tuple[int, ...], flip_a: bool = False,
                 flip_b: bool = False) -> None:
        """Args:
            dtype: a float, int8, or an integer of 32 bits or more.
            a, b: shapes `[batch, m, k]` and `[batch, k, n]`; the batch dimensions broadcast.
            flip_a, flip_b: the matrices are the transposed of what the arrays hold, and so are `a` and `b`.
        """
        self.dtype, self._a, self._b, self._flips = dtype, a, b, (flip_a, flip_b)
        rows, columns = a[-1 if flip_a else -2], b[-2 if flip_b else -1]
        self.shape = (*np.broadcast_shapes(a[:-2], b[:-2]), rows, columns)
        self._type = gemm.summed(dtype).np
        small = math.prod(self.shape) * self._type.itemsize < memory.POOLED_FROM
        self._empty = np.empty if small else memory.empty
        self._runs: dict[object, _ProductCall] = {}
        self._latest = _ProductCall()  # the last one planned that is `direct`

    def __call__(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """The product of two arrays of the shapes."""
        a, b = arrays
        out = self._empty(self.shape, self._type)
        run = self._latest
        if a.strides == run.a and b.strides == run.b:  # `into`, spelt out: this runs for every small product
            words = run.template[:]
            words[-3] = id(out)
            words[-2], words[-1] = (id(b), id(a)) if run.swapped else (id(a), id(b))
            run.direct(0, run.total, words.buffer_info()[0])  # type: ignore[misc]
        else:
            self.into(out, a, b)
        return out

    def into(self, out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
        """The same into C-contiguous `out`, which overlaps neither operand."""
        key = (a.strides, b.strides)
        run = self._runs.get(key)
        if run is None or (run.threads and run.threads != threads.get_num_threads()):
            run = self._runs[key] = self._plan(*key)
            if run.direct is not None:
                self._latest = run
        if run.direct is not None:
            # The arguments are new for each call: a signal handler may run ops between writing and reading them.
            words = run.template[:]
            words[-3] = id(out)
            words[-2], words[-1] = (id(b), id(a)) if run.swapped else (id(a), id(b))
            run.direct(0, run.total, words.buffer_info()[0])
        elif run.copies:
            self.into(out, np.array(a, order="C"), np.array(b, order="C"))
        elif run.gathers:
            self.into(out, np.array(a.swapaxes(-1, -2), order="C").swapaxes(-1, -2) if self._flips[0] else
                      np.array(a, order="C"), b)
        elif run.call is not None:
            if run.swapped:
                a, b = b, a
            if run.packing is not None:
                work = memory.empty((run.room,), self._type)
                run.packing.run((work, a, b))
                b = work
            run.call.run((out, a, b))

    def _plan(self, a: tuple[int, ...], b: tuple[int, ...]) -> _ProductCall:
        if 0 in self.shape:
            return _ProductCall(a, b)
        (*batch, m, n), size = self.shape, self.dtype.size
        if any(s % size for s in (*a, *b)):
            return _ProductCall(a, b, copies=True)
        count = threads.get_num_threads()
        matrices = self._matrices(a, b, batch, m, n)
        if is_scattered(matrices) and not self._in_one_piece(a):
            return _ProductCall(a, b, gathers=True)
        planned = plan(matrices, self.dtype, count)
        if planned.work < sharing.AT_ONCE and count > 1:
            planned = plan(matrices, self.dtype, 1)
        if planned.work >= generated.AT_ONCE:
            functions(self.dtype).settle(planned.kernel)
        call = RowCall(_function(self.dtype, planned.kernel), 3, planned.total, planned.work, planned.integers,
                       None).prepare()
        if call.direct is not None and not planned.packs:
            return _ProductCall(a, b, swapped=planned.swapped, total=planned.total, direct=call.direct,
                                template=array("q", (*call.head, 0, 0, 0)))
        packing = None
        if planned.packs:
            packing = RowCall(_function(self.dtype, "pack_b"), 3, planned.packs, planned.room, planned.integers, None)
        return _ProductCall(a, b, swapped=planned.swapped, call=call, packing=packing, room=planned.room, threads=count)

    def _in_one_piece(self, a: tuple[int, ...]) -> bool:
        """Whether A is row-major without gaps, as the product sees it."""
        axes = [*range(len(a) - 2), -1, -2] if self._flips[0] else range(len(a))
        size = self.dtype.size
        return Layout(tuple([self._a[n] for n in axes]), tuple([a[n] // size for n in axes]), 0).is_dense()

    def _matrices(self, a: tuple[int, ...], b: tuple[int, ...], batch: list[int], m: int, n: int) -> Matrices:
        size, (flip_a, flip_b) = self.dtype.size, self._flips
        steps = [geometry.broadcast_strides(shape[:-2], strides[:-2], tuple(batch))
                 for shape, strides in ((self._a, a), (self._b, b))]
        of_c = tuple(math.prod(self.shape[n + 1:]) * size for n in range(len(batch)))
        dims = geometry.collapse(batch, [*steps, of_c])
        inside = [(s[-2] // size, s[-1] // size) for s in (a, b)]
        of_a, of_b = (s[::-1] if flip else s for s, flip in zip(inside, (flip_a, flip_b), strict=True))
        k = self._a[-2 if flip_a else -1]
        outer = tuple((d.length, x // size, y // size, z // size) for d in dims for x, y, z in (d.strides,))
        return with_longer_rows(Matrices(m, n, k, of_a, of_b, n, outer))


def is_scattered(x: Matrices) -> bool:
    """Whether A should be copied first, row-major: all products of a batch have the same B and few rows each, and are
    not one long product only because A's rows do not follow one another. Sizes that are not known count as few."""
    step = x.m * x.ldc
    for length, _, b, c in reversed(x.batch):
        if b != 0 or c != step:
            return False
        step = step * length
    if not x.batch or isinstance(x.m, int) and x.m > _FEW:
        return False
    return not (isinstance(x.n, int) and x.n < _FEW // 4)
