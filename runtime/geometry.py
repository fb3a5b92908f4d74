"""How a call walks memory: from shapes and strides to the arguments of the kernels of
`codegen/schedule.py` and `codegen/reduce.py`.

A plan is made once for a combination of shapes and strides and holds all but the addresses. Dimensions of length 1
vanish and neighbours that every operand walks as one are merged, so most calls become a single row.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import NamedTuple

from twofold.codegen.reduce import CHUNK
from twofold.codegen.schedule import TILE_WIDTH, tile_shape
from twofold.codegen.target import CACHES
from twofold.ir.dtypes import DType

__all__ = ["Axis", "Grid", "MapPlan", "collapse", "ReducePlan", "broadcast_strides", "plan_map", "plan_dims",
           "TurnedPlan", "plan_turned", "Widened", "widened", "plan_reduce"]

# What a row costs to start, and an element of it by how operands move, in nanoseconds; only ratios matter.
_ROW, _UNIT, _STRIDED = 10.0, 0.15, 0.8
_ROWS, _SHORT, _WIDE = 1 << 11, 128, 512  # of short rows, so many are worth it; elements of these, and of a better one
_TILED_FROM = CACHES.nearest // 4  # elements: what fits the nearest cache needs no tiles


class Axis(NamedTuple):
    """One dimension of an index space: its length, and each operand's stride along it in bytes."""

    length: int
    strides: tuple[int, ...]


class Grid(NamedTuple):
    """How a row kernel is driven over an index space: the kernel of `codegen/schedule.py` that does it, and its
    arguments with the row kernel's address to go to [0] and the address of operand n to `slots[n]`."""

    driver: str
    args: array[int]
    slots: tuple[int, ...]


class MapPlan(NamedTuple):
    """How to call a row kernel, or its driver where there is a grid.

    `mask` has a letter per operand, outputs first. `total` is the length of the range: of the one row, or as the driver
    counts. Without a grid `steps` follow the addresses.
    """

    mask: str
    total: int
    steps: tuple[int, ...]
    grid: Grid | None


def broadcast_strides(operand_shape: tuple[int, ...], strides: tuple[int, ...], shape: tuple[int, ...]) -> list[int]:
    """The strides of an operand seen in the broadcast shape: 0 along the dimensions it is repeated in."""
    missing = len(shape) - len(operand_shape)
    own = [0 if n == 1 else s for n, s in zip(operand_shape, strides, strict=True)]
    return [0] * missing + own


def collapse(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> list[Axis]:
    """The index space with as few dimensions as walk the same memory in the same order, outermost first.

    >>> collapse((2, 1, 3), [(12, 12, 4), (0, 0, 4)])
    [Axis(length=2, strides=(12, 0)), Axis(length=3, strides=(4, 4))]
    >>> collapse((2, 3), [(12, 4), (12, 4)])
    [Axis(length=6, strides=(4, 4))]
    """
    dims: list[Axis] = []
    for length, *steps in zip(shape, *strides, strict=True):
        if length == 1:
            continue
        if dims and all(o == i * length for o, i in zip(dims[-1].strides, steps, strict=True)):
            dims[-1] = Axis(dims[-1].length * length, tuple(steps))
        else:
            dims.append(Axis(length, tuple(steps)))
    return dims


def plan_map(shape: tuple[int, ...], strides: Sequence[Sequence[int]], sizes: tuple[int, ...],
             same: Sequence[tuple[int, int]] = ()) -> MapPlan:
    """The plan for a map over a non-empty `shape`.

    Args:
        shape: the broadcast shape.
        strides: for each operand, outputs first, its strides in bytes along `shape`, multiples of its element size.
        sizes: each operand's element size.
        same: pairs (operand, output) that lie in the same memory in the same way.
    """
    return plan_dims(collapse(shape, strides), sizes, same)


class Widened(NamedTuple):
    """A map over short rows, as one over longer rows.

    dims: its index space. copies: by operand, the shape and the strides in bytes of what is to be copied to a
    C-contiguous array that takes the operand's place.
    """

    dims: list[Axis]
    copies: dict[int, tuple[tuple[int, ...], tuple[int, ...]]]


def widened(shape: tuple[int, ...], strides: Sequence[Sequence[int]], sizes: tuple[int, ...]) -> Widened | None:
    """A better way to walk where rows are short since an operand repeats a few elements, such as a bias: the operand
    written out several times over makes the rows that much longer. None where it is no better.

    >>> wide = widened((4096, 8), [(32, 4), (32, 4), (0, 4)], (4, 4, 4))
    >>> wide.dims
    [Axis(length=64, strides=(2048, 2048, 0)), Axis(length=512, strides=(4, 4, 4))]
    >>> wide.copies
    {2: ((64, 8), (0, 4))}
    """
    dims = collapse(shape, strides)
    if len(dims) < 2 or dims[-1].length > _SHORT or math.prod(shape) < _ROWS * dims[-1].length:
        return None
    *outer, column, row = dims
    times = next((m for m in range(_WIDE // row.length, 3, -1) if column.length % m == 0), 0)
    repeated = [n for n, (down, along) in enumerate(zip(column.strides, row.strides, strict=True))
                if down == 0 and along]
    whole = all(down == along * row.length for n, (down, along) in enumerate(zip(column.strides, row.strides,
                                                                                  strict=True)) if n not in repeated)
    if not times or not whole:
        return None
    copies: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
    steps = [list(d.strides) for d in (*outer, column, row)]
    steps[-2] = [s * times for s in column.strides]
    for n in repeated:
        own = [d for d in outer if d.strides[n]]
        copies[n] = ((*(d.length for d in own), times, row.length), (*(d.strides[n] for d in own), 0, row.strides[n]))
        step = sizes[n] * times * row.length
        for at in range(len(outer) - 1, -1, -1):
            if outer[at].strides[n]:
                steps[at][n] = step
                step *= outer[at].length
        steps[-1][n] = sizes[n]
    lengths = (*(d.length for d in outer), column.length // times, times * row.length)
    wider = [Axis(length, tuple(step)) for length, step in zip(lengths, steps, strict=True) if length > 1]
    return Widened(wider, copies)


def plan_dims(dims: list[Axis], sizes: tuple[int, ...], same: Sequence[tuple[int, int]] = ()) -> MapPlan:
    """`plan_map` for an index space that is collapsed; see there."""
    total = math.prod(d.length for d in dims)
    if not dims:
        return MapPlan(_with("v" * len(sizes), same), total, (), None)
    inner = min(range(len(dims)), key=lambda d: (_cost(dims[d], sizes), -d))
    row = dims.pop(inner)
    mask = _with(_mask(row, sizes), same)
    steps = tuple(s // size - 1 for s, size, m in zip(row.strides, sizes, mask, strict=True) if m == "g")
    if not dims:
        return MapPlan(mask, total, steps, None)
    down = _tiling(dims, row, total)
    if down is None:
        return MapPlan(mask, total, steps, _grid(dims, row.length, len(sizes), steps))
    column = dims.pop(down)
    # So many rows that together they fill lines of an operand that leaps in a row.
    tall = max(8, CACHES.line // max(1, min(abs(s) for s in column.strides if s)))
    count = -(-column.length // tall) * -(-row.length // TILE_WIDTH) * math.prod(d.length for d in dims)
    return MapPlan(mask, count, steps, _tiles(dims, column, tall, row, steps))


class TurnedPlan(NamedTuple):
    """How to call `schedule.map_tiles`: its mask, how many tiles there are, and the integers that follow addresses."""

    mask: str
    total: int
    integers: tuple[int, ...]


def plan_turned(shape: Sequence[int], strides: Sequence[Sequence[int]], dtypes: Sequence[DType], outputs: int,
                same: Sequence[tuple[int, int]] = ()) -> TurnedPlan | None:
    """The plan for a map in which inputs have neighbours from row to row, whose tiles are turned; None where no input
    has, or the index space has more than three dimensions.

    Args:
        shape, strides, same: as for `plan_map`.
        dtypes: of the operands, of which the first `outputs` are outputs.
    """
    from twofold.codegen import squares

    dims = collapse(shape, strides)
    if not 2 <= len(dims) <= 3 or math.prod(d.length for d in dims) < _TILED_FROM:
        return None
    *rest, row = dims
    tall, wide = CACHES.tile
    for column in rest:
        turned = [n for n in range(outputs, len(dtypes)) if squares.turnable(dtypes[n]) and n not in dict(same)
                  and column.strides[n] == dtypes[n].size and row.strides[n] not in (0, dtypes[n].size)][:squares.MOST]
        if turned and row.length >= tall and column.length >= tall // 2:
            break
    else:
        return None
    sizes = tuple(d.size for d in dtypes)
    outer = next((d for d in rest if d is not column), Axis(1, (0,) * len(sizes)))
    mask = _with("".join("t" if n in turned else m for n, m in enumerate(_mask(row, sizes))), same)
    tall, wide = tile_shape(dtypes[n] for n in turned)
    integers = [column.length, row.length]
    for n, size in enumerate(sizes):
        integers += [outer.strides[n] // size, column.strides[n] // size]
        integers += [row.strides[n] // size - 1] if mask[n] in "gt" else []
    total = -(-column.length // tall) * -(-row.length // wide) * outer.length
    return TurnedPlan(mask, total, tuple(integers))


def _tiling(dims: Sequence[Axis], row: Axis, total: int) -> int | None:
    """The dimension to pair with `row` in tiles: one along which an operand that leaps in a row moves by little."""
    if total < _TILED_FROM or row.length < 8:
        return None
    best = None
    for d, dim in enumerate(dims):
        for step, leap in zip(dim.strides, row.strides, strict=True):
            turned = abs(leap) >= CACHES.line and 0 < abs(step) < CACHES.line and dim.length >= 8
            if turned and (best is None or abs(step) < best[0]):
                best = abs(step), d
    return None if best is None else best[1]


def _grid(outer: Sequence[Axis], length: int, operands: int, integers: Sequence[int]) -> Grid:
    head = [0, operands, len(outer), length, len(integers)]
    return Grid("grid", *_table(head, outer, outer, operands, integers))


def _tiles(outer: Sequence[Axis], column: Axis, tall: int, row: Axis, integers: Sequence[int]) -> Grid:
    operands = len(row.strides)
    head = [0, operands, len(outer), column.length, tall, row.length, len(integers)]
    return Grid("tiles", *_table(head, outer, [*outer, column, row], operands, integers))


def _table(head: list[int], outer: Sequence[Axis], walked: Sequence[Axis], operands: int,
           integers: Sequence[int]) -> tuple[array[int], tuple[int, ...]]:
    """Arguments without addresses, and where the operands' addresses go."""
    table, slots = [*head, *(d.length for d in outer)], []
    for n in range(operands):
        slots.append(len(table))
        table += [0, *(d.strides[n] for d in walked)]
    return array("q", [*table, *integers]), tuple(slots)


def _mask(row: Axis, sizes: tuple[int, ...]) -> str:
    return "".join("s" if s == 0 else "v" if s == size else "g" for s, size in zip(row.strides, sizes, strict=True))


def _with(mask: str, same: Sequence[tuple[int, int]]) -> str:
    """`mask` with the output's number for each operand that is an output."""
    letters = list(mask)
    for operand, output in same:
        letters[operand] = str(output)
    return "".join(letters)


def _cost(row: Axis, sizes: tuple[int, ...]) -> float:
    """Time for an element when `row` is the innermost dimension."""
    return _ROW / row.length + (_STRIDED if "g" in _mask(row, sizes) else _UNIT)


class ReducePlan(NamedTuple):
    """How to call `reduce.rows` or `reduce.columns`, and after it `reduce.tree` where there are several chunks.

    The operands of the call are the outputs (of `chunks` > 1: accumulators, a row of them for each chunk) and the
    inputs; the number of a chunk's first element, which moves in the grid like an operand, is 0 at the start.
    """

    columns: bool
    mask: str
    chunks: int
    total: int
    integers: tuple[int, ...]
    grid: Grid | None


def plan_reduce(remaining: Sequence[int], remaining_strides: Sequence[Sequence[int]], reduced: Axis,
                sizes: tuple[int, ...], out_sizes: tuple[int, ...], acc_sizes: tuple[int, ...]) -> ReducePlan:
    """The plan for a reduction with at least one output.

    Args:
        remaining: the lengths of the dimensions that stay.
        remaining_strides: for each input, its strides in bytes along those.
        reduced: the dimension that goes, with each input's stride in bytes.
        sizes, out_sizes, acc_sizes: the element sizes of inputs, outputs and accumulators.
    """
    count, outputs = reduced.length, math.prod(remaining)
    chunks = max(1, -(-count // CHUNK))
    targets = out_sizes if chunks == 1 else acc_sizes
    # Outputs and accumulators of a chunk lie row-major; one operand in elements stands for all of them.
    places = [math.prod(remaining[d + 1:]) for d in range(len(remaining))]
    dims = [_operands(d, d.strides[0], 0, targets) for d in collapse(remaining, [places, *remaining_strides])]
    chunk = _operands(Axis(chunks, (0, *(s * CHUNK for s in reduced.strides))), outputs, CHUNK, targets)
    down = _mask(reduced, sizes)
    side_by_side = _beside(dims, down, count)
    if chunks > 1:  # neighbouring chunks follow each other; else a chunk stays in the cache for all its outputs
        dims = [chunk, *dims] if side_by_side or "g" in down else [*dims, chunk]
    inner = dims.pop() if dims else _operands(Axis(1, (0,) * (1 + len(sizes))), 0, 0, targets)
    steps = [s // size for s, size in zip(inner.strides, (*targets, *sizes, 1), strict=True)]
    falls = [s // size for s, size in zip(reduced.strides, sizes, strict=True)]
    if side_by_side:
        across = steps[len(targets):-1]
        mask = "".join("s" if s == 0 else "v" if s == 1 else "g" for s in across)
        integers = [count, *falls, *(s - 1 for s, m in zip(across, mask, strict=True) if m == "g")]
    else:
        mask = down
        integers = [count, steps[-1], *steps[:-1], *(s - 1 for s, m in zip(falls, mask, strict=True) if m == "g")]
    total = inner.length * math.prod(d.length for d in dims)
    if not dims:
        return ReducePlan(side_by_side, mask, chunks, total, (0, *integers), None)
    grid = _grid(dims, inner.length, len(inner.strides), integers)
    grid = grid._replace(slots=grid.slots[:-1])  # the chunk's first element is no memory
    return ReducePlan(side_by_side, mask, chunks, total, tuple(integers), grid)


def _operands(dim: Axis, place: int, position: int, targets: Sequence[int]) -> Axis:
    """`dim` with strides for all operands of a reduction; its first stands for the outputs and is replaced."""
    return Axis(dim.length, (*(place * size for size in targets), *dim.strides[1:], position))


def _beside(dims: Sequence[Axis], down: str, count: int) -> bool:
    """Whether outputs are better reduced side by side than one after another."""
    width = dims[-1].length if dims else 1
    return width >= 8 and ("g" in down or (count < 16 and width >= 16))
