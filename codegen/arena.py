"""Where values lie in the scratch memory of a program: by when they live, so that memory is used again.

Blocks of known size are placed one after another at the lowest place that is free while they live: largest first (as in
Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020), then in other orders for as long
as more is needed than what lives at one time. Blocks of unknown size share a place with
blocks of the same size that live at other times.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence

from twofold.ir.data_class import data_class
from twofold.ir.dims import Dim, DimLike, ceil_div

from .operands import Memory

__all__ = ["Block", "Arena", "plan", "bound", "ALIGNED"]

ALIGNED = 64  # bytes: a cache line, and the widest vector


@data_class(eq=False)
class Block:
    """Memory of `size` bytes that is needed from step `first` to step `last`, both included."""

    owner: Memory
    size: DimLike
    first: int
    last: int

    def meets(self, other: Block) -> bool:
        """Whether both live at one time."""
        return self.first <= other.last and other.first <= self.last


@data_class(eq=False)
class Arena:
    """The place of each owner, in bytes from the beginning, and how many bytes there are.

    sums: how places follow from each other: (a place, bytes there, the next place), in order.
    """

    offsets: dict[Memory, DimLike]
    size: DimLike
    sums: list[tuple[DimLike, DimLike, DimLike]]


def plan(blocks: Sequence[Block]) -> Arena:
    """The layout of `blocks`."""
    offsets: dict[Memory, DimLike] = {}
    total: DimLike = _place_known([b for b in blocks if not isinstance(b.size, Dim)], offsets)
    slots: list[tuple[DimLike, DimLike, list[Block]]] = []
    sums: list[tuple[DimLike, DimLike, DimLike]] = []
    for block in blocks:
        if not isinstance(block.size, Dim):
            continue
        for size, at, users in slots:
            if size == block.size and not any(block.meets(u) for u in users):
                users.append(block)
                offsets[block.owner] = at
                break
        else:
            slots.append((block.size, total, [block]))
            offsets[block.owner] = total
            size = _rounded(block.size)
            sums.append((total, size, total + size))
            total = sums[-1][2]
    return Arena(offsets, total, sums)


def _rounded(size: DimLike) -> DimLike:
    return ceil_div(size, ALIGNED) * ALIGNED


def bound(blocks: Sequence[Block]) -> int:
    """The most bytes of known size that live at one time: no layout needs less."""
    change: dict[int, int] = {}
    for block in blocks:
        size = int(_rounded(block.size))  # type: ignore[arg-type]
        change[block.first] = change.get(block.first, 0) + size
        change[block.last + 1] = change.get(block.last + 1, 0) - size
    live = most = 0
    for step in sorted(change):
        live += change[step]
        most = max(most, live)
    return most


_Placement = tuple[int, list[Block], dict[Memory, int]]  # bytes, the order of placing, places
_ORDERS: tuple[Callable[[Block], tuple[DimLike, ...]], ...] = (
    lambda b: (-b.size, b.first),
    lambda b: (b.first - b.last, -b.size),
    lambda b: (b.first, -b.size),
    lambda b: (-b.last, -b.size),
    lambda b: (-b.size * (b.last - b.first + 1), b.first),
)
_MANY = 400  # blocks from which only one order is tried
_TRIES = 200


def _place_known(blocks: Sequence[Block], offsets: dict[Memory, DimLike]) -> int:
    """Places blocks of known size: tries several orders until one needs no more than `bound`, and takes the best."""
    least = bound(blocks)
    best: _Placement | None = None
    for order in _ORDERS if len(blocks) <= _MANY else _ORDERS[:1]:
        placement = _placed(sorted(blocks, key=order))
        if best is None or placement[0] < best[0]:
            best = placement
        if best[0] == least:
            break
    assert best is not None
    if best[0] > least and len(blocks) <= _MANY:
        best = _improved(best, least)
    offsets.update(best[2])
    return best[0]


def _improved(best: _Placement, least: int) -> _Placement:
    """A local search for a better placement: the block that lies highest, or another one in turn, is placed first."""
    now = best
    for n in range(_TRIES):
        end, order, at = now
        high = [b for b in order if at[b.owner] + _rounded(b.size) == end]
        chosen = high[n // 2 % len(high)] if n % 2 == 0 else order[n * 7919 % len(order)]
        now = _placed([chosen, *[b for b in order if b is not chosen]])
        if now[0] < best[0]:
            best = now
            if best[0] == least:
                break
        elif now[0] > best[0] + best[0] // 8:
            now = best
    return best


def _placed(blocks: list[Block]) -> _Placement:
    """Each block at the lowest place that is free while it lives, in this order: bytes, the order, and places."""
    placed: list[tuple[int, int, Block]] = []  # by place
    offsets: dict[Memory, int] = {}
    end = 0
    for block in blocks:
        size = int(_rounded(block.size))  # type: ignore[arg-type]
        at = 0
        for start, stop, other in placed:
            if other.first <= block.last and block.first <= other.last:
                if at + size <= start:
                    break
                at = max(at, stop)
        bisect.insort(placed, (at, at + size, block), key=lambda p: p[0])
        offsets[block.owner] = at
        end = max(end, at + size)
    return end, blocks, offsets
