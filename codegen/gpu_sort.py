"""Sorting on a GPU: a stable merge sort of the keys of each row, and of the indices they had.

A block of threads sorts a tile of TILE keys in shared memory; then pairs of sorted runs are merged, twice as long in
each pass, until a row is one run. Merging is cut evenly by merge paths (Green, McColl and Bader, 2012): which of two
runs' keys are among the first n of what comes of them is found by bisection, so that each block makes a tile of the
result, and each thread in it a few neighbours.

Keys are compared as on processors (`kernels/order.py`): NaN comes behind everything else, and before it where the
largest comes first; equal keys keep their order.
"""

from __future__ import annotations

from collections.abc import Callable

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir.dims import Dim, DimLike
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from .kernels.order import precedes
from .loop import Cell, Kernel, LoopBuilder, Pointer, TeamBuilder
from .loop_sizes import covering, parted
from .operands import Argument, Run, Work
from .placer import Placer

__all__ = ["TILE", "tiles", "merge", "sorted_runs"]

_THREADS = 128  # of a block
_EACH = 8  # keys of a thread
TILE = _THREADS * _EACH  # keys that a block sorts, or makes of two runs
_MOST = 2**31  # keys of a row: indices are int32
_WORK = 64  # of a key in a pass, in simple operations


class _Tile:
    """Keys and indices that a block of threads has: a tile in shared memory, of which each thread makes a part."""

    def __init__(self, b: TeamBuilder, dtype: DType, descending: bool) -> None:
        self.b, self.dtype, self.descending = b, dtype, descending
        self.keys, self.indices = b.shared(dtype.compute, TILE), b.shared(dt.int32, TILE)
        self.first = b.thread() * _EACH  # this thread's place in the tile

    def own(self) -> list[tuple[Cell, Cell]]:
        """Cells for the keys and indices of this thread."""
        return [(self.b.local(self.b.const(0, self.dtype)), self.b.local(0, dt.int32)) for _ in range(_EACH)]

    def put(self, own: list[tuple[Cell, Cell]]) -> None:
        """Writes what this thread has to its place in shared memory, when all have read what was there."""
        b = self.b
        b.barrier()
        for n, (key, index) in enumerate(own):
            b.store(self.keys, self.first + n, key.get())
            b.store(self.indices, self.first + n, index.get())
        b.barrier()

    def merged(self, own: list[tuple[Cell, Cell]], begin: Scalar, middle: Scalar, end: Scalar) -> None:
        """Sets this thread's part of what comes of merging [begin, middle) and [middle, end), sorted runs of the tile;
        its place is not before `begin`."""
        b = self.b
        along = b.minimum(self.first - begin, end - begin)
        taken = self.split(lambda n: b.load(self.keys, begin + n), lambda n: b.load(self.keys, middle + n), along,
                           middle - begin, end - middle)
        left, right = b.local(begin + taken), b.local(middle + along - taken)
        for key, index in own:
            i, j = left.get(), right.get()
            of_left, of_right = (b.load(self.keys, b.minimum(n, TILE - 1)) for n in (i, j))
            later = b.or_(b.ge(i, middle), precedes(b, of_right, of_left, self.descending))
            takes_right = b.and_(b.lt(j, end), later)
            key.set(b.select(takes_right, of_right, of_left))
            index.set(b.load(self.indices, b.minimum(b.select(takes_right, j, i), TILE - 1)))
            step = b.cast(takes_right, dt.int64)
            right.set(j + step)
            left.set(i + (1 - step))

    def split(self, left: Callable[[Scalar], Scalar], right: Callable[[Scalar], Scalar], along: Scalar, lefts: Scalar,
              rights: Scalar) -> Scalar:
        """How many of the first `along` keys of two merged runs come from the left one.

        Args:
            left, right: give the key with a number of each run.
            lefts, rights: how many keys they have.
        """
        b = self.b
        low, high = b.local(b.maximum(along - rights, 0)), b.local(b.minimum(along, lefts))
        with b.for_(0, _MOST.bit_length()):
            b.break_(b.ge(low.get(), high.get()))
            middle = b.shr(low.get() + high.get(), 1)
            with b.if_(precedes(b, right(along - 1 - middle), left(middle), self.descending)):
                high.set(middle)
            with b.else_():
                low.set(middle + 1)
        return low.get()


def tiles(dtype: DType, descending: bool) -> Kernel:
    """Sorts each tile of each row; the range numbers rows, and in each of them tiles.

    args: addresses of the sorted keys, of their indices in the row, and of the keys; the length of a row.
    """
    b = TeamBuilder(f"sort tiles {dtype.short}{' descending' * descending}", _THREADS)
    keys, indices, x = b.pointer("keys", dtype), b.pointer("indices", dt.int32), b.pointer("x", dtype)
    length = b.integer()
    tile, count = _Tile(b, dtype, descending), covering(b, length, TILE)
    with b.for_(b.start, b.stop) as number:
        row, part = parted(b, number, count)
        first = part * TILE
        size = b.minimum(length - first, TILE)
        begin = row * length + first
        with b.for_(b.thread(), size, _THREADS) as n:
            b.store(tile.keys, n, b.load(x, begin + n))
        b.barrier()
        own = tile.own()
        for place, (key, index) in enumerate(own):
            with b.if_(b.lt(tile.first + place, size)):
                key.set(b.load(tile.keys, tile.first + place))
            index.set(b.cast(first + tile.first + place, dt.int32))
        _sort_own(b, own, size - tile.first, descending)
        tile.put(own)
        width = b.local(_EACH)
        with b.for_(0, (TILE // _EACH).bit_length() - 1):
            run = width.get()
            pair = b.and_(tile.first, -2 * run)
            begins, middle, end = (b.minimum(n, size) for n in (pair, pair + run, pair + 2 * run))
            tile.merged(own, begins, middle, end)
            tile.put(own)
            width.set(run * 2)
        _give(tile, keys, indices, begin, size)
    return b.finish()


def _sort_own(b: LoopBuilder, own: list[tuple[Cell, Cell]], size: Scalar, descending: bool) -> None:
    """Sorts the first `size` of a thread's keys: neighbours change places, by turns, until none would."""
    for turn in range(len(own)):
        for n in range(turn % 2, len(own) - 1, 2):
            (key, index), (next_key, next_index) = own[n:n + 2]
            first, second = key.get(), next_key.get()
            with b.if_(b.and_(b.lt(n + 1, size), precedes(b, second, first, descending))):
                key.set(second)
                next_key.set(first)
                before = index.get()
                index.set(next_index.get())
                next_index.set(before)


def _give(tile: _Tile, keys: Pointer, indices: Pointer, begin: Scalar, size: Scalar) -> None:
    """Writes the first `size` keys of a tile, and their indices."""
    b = tile.b
    with b.for_(b.thread(), size, _THREADS) as n:
        b.store(keys, begin + n, b.load(tile.keys, n))
        b.store(indices, begin + n, b.load(tile.indices, n))


def merge(dtype: DType, descending: bool) -> Kernel:
    """Merges pairs of sorted runs of each row; the range numbers rows, and in each of them tiles of what comes of it.

    args: addresses of the merged keys and their indices, and of the keys and indices; the length of a row; that of a
    run, a multiple of TILE.
    """
    b = TeamBuilder(f"sort merge {dtype.short}{' descending' * descending}", _THREADS)
    keys, indices = b.pointer("keys", dtype), b.pointer("indices", dt.int32)
    old_keys, old_indices = b.pointer("old_keys", dtype), b.pointer("old_indices", dt.int32)
    length, run = b.integer(), b.integer()
    tile, count = _Tile(b, dtype, descending), covering(b, length, TILE)
    with b.for_(b.start, b.stop) as number:
        row, part = parted(b, number, count)
        base, first = row * length, part * TILE
        size = b.minimum(length - first, TILE)
        pair = b.and_(first, -(run * 2))
        middle, end = b.minimum(pair + run, length), b.minimum(pair + run * 2, length)
        along = first - pair + b.and_(b.lane(), 1) * size  # where the tile begins, or ends for every second thread
        taken = tile.split(lambda n: b.load(old_keys, base + pair + n), lambda n: b.load(old_keys, base + middle + n),
                           along, middle - pair, end - middle)
        before = b.leading(taken)
        lefts = b.leading(b.further(taken, 1)) - before
        left, right = base + pair + before, base + middle + (first - pair - before)
        with b.for_(b.thread(), size, _THREADS) as n:
            at = b.select(b.lt(n, lefts), left + n, right + (n - lefts))
            b.store(tile.keys, n, b.load(old_keys, at))
            b.store(tile.indices, n, b.load(old_indices, at))
        b.barrier()
        own = tile.own()
        tile.merged(own, b.const(0, dt.int64), lefts, size)
        tile.put(own)
        _give(tile, keys, indices, base + first, size)
    return b.finish()


def sorted_runs(p: Placer, dtype: DType, x: Argument, rows: DimLike, length: DimLike, descending: bool = False,
                indices: Argument | None = None) -> tuple[list[Run], Work, Argument]:
    """The runs that sort rows of keys, and where the keys and their indices are afterwards.

    Args:
        dtype: of the keys at `x`.
        indices: where they are to be; by default in memory of the step's own.
    """
    size = rows * length
    result: tuple[Work, Argument] = Work(dtype, size), Work(dt.int32, size) if indices is None else indices
    widths = [TILE << n for n in range((_MOST // TILE).bit_length() // 2 * 2)]  # of the runs that passes merge
    if not isinstance(length, Dim):
        widths = [width for width in widths if width < length]
    there, other = result, (Work(dtype, size), Work(dt.int32, size)) if widths else result
    if len(widths) % 2:
        there, other = other, there
    total = rows * dm.ceil_div(length, TILE)
    runs = [Run(p.kernel(tiles, dtype, descending), [*there, x, length], total, TILE * _WORK)]
    for n, width in enumerate(widths):
        # Where the length is not known, passes are left out by pairs, so that the result is where it is wanted.
        needed = dm.minimum(dm.maximum(length - widths[n // 2 * 2], 0), 1)
        runs.append(Run(p.kernel(merge, dtype, descending), [*other, *there, length, width], total * needed,
                        TILE * _WORK))
        there, other = other, there
    return runs, *result
