"""The order in which the elements of a chunk are reduced: lanes take them in turn, and meet by halving.

Of LANES accumulators, each takes every LANES-th element, in rising order; then the upper half joins the lower, and so
on, until one is left. Upper halves that took nothing are left out. This order is part of what results mean
(`docs/numerics.md`). One thread has all lanes, and its loops over them become vectors; of a team of threads (a GPU's)
each is a lane.

What an accumulator is, and how it takes an element, is `reduce.py`'s and the row kernels'; over which memory elements
lie is their affair, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, TypeVar

from twofold.ir import dtypes as dt
from twofold.ir.instructions import ScalarLike
from twofold.ir.scalar import Scalar

from .loop import TEAM, LoopBuilder, TeamBuilder

__all__ = ["LANES", "LaneAccumulators", "Take", "TeamAccumulators", "sweep", "sweep_by_team"]

LANES = TEAM
_ROWS = 4  # of lanes that a thread of a team takes at once


class LaneAccumulators(Protocol):
    """The accumulators of one reduction, by lane, in memory of the thread."""

    def clear(self, at: Scalar) -> None:
        """Makes one as it is before it has taken anything."""

    def get(self, at: Scalar) -> tuple[Scalar, ...]:
        """The values of one."""

    def set(self, at: Scalar, values: Sequence[Scalar]) -> None:
        """Replaces them."""

    def fold(self, at: Scalar, other: Scalar) -> None:
        """One joins another, which is left as it is."""


class TeamAccumulators(Protocol):
    """The accumulator of one reduction that a thread of a team has: that of the lane which it is."""

    def clear(self, at: Scalar) -> None:
        """Makes it as it is before it has taken anything."""

    def further(self, n: int) -> Sequence[Scalar]:
        """The values of the accumulator `n` lanes further on."""

    def join(self, values: Sequence[Scalar]) -> None:
        """Another accumulator, of these values, joins it."""


A = TypeVar("A", bound=LaneAccumulators)
T = TypeVar("T", bound=TeamAccumulators)


Accumulating = TypeVar("Accumulating")
Take: TypeAlias = Callable[[Scalar, Scalar, Sequence[Accumulating]], None]  # as `sweep` says


def sweep(b: LoopBuilder, lanes: Sequence[A], ends: Sequence[A], count: ScalarLike,
          take: Callable[[Scalar, Scalar, Sequence[A]], None],
          block: Callable[[Scalar, Sequence[A]], None] | None = None) -> None:
    """Reduces a chunk on one thread, for several reductions at once; leaves the accumulators in `ends` at 0.

    `lanes` are only ever indexed by loops of constant length, so that a compiler can keep them in registers; the
    elements that fill no whole row of lanes go to `ends`.

    Args:
        lanes, ends: for each reduction, accumulators of LANES lanes.
        count: how many elements; what is known not to happen is not written.
        take: `take(lane, i, into)` has a lane of each of some accumulators take element number i of the chunk.
        block: `block(i, into)` does that for the LANES elements from number i on; by default they are taken one by one.
    """
    known = count if isinstance(count, int) else None
    size = b.coerce(count, dt.int64)
    with b.for_(0, LANES) as lane:
        for own in (ends if known is not None and known < LANES else lanes):
            own.clear(lane)
    whole: Scalar | int = b.shr(size, LANES.bit_length() - 1) * LANES if known is None else known // LANES * LANES
    if known is None or whole:
        with b.for_(0, whole, LANES) as first:
            if block is not None:
                block(first, lanes)
            else:
                with b.for_(0, LANES) as lane:
                    take(lane, first + lane, lanes)
        with b.for_(0, LANES) as lane:
            for own, end in zip(lanes, ends, strict=True):
                end.set(lane, own.get(lane))
    if known is None or known > whole:
        with b.for_(0, size - whole if known is None else known - whole) as lane:
            take(lane, whole + lane, ends)
    _halve(b, ends, count)


def _halve(b: LoopBuilder, ends: Sequence[LaneAccumulators], count: ScalarLike) -> None:
    """The upper half of the lanes joins the lower, until one is left."""
    half = LANES // 2
    while half:
        if isinstance(count, int):
            if count > half:
                _fold(b, ends, half)
        else:
            with b.if_(b.gt(count, half)):  # lanes from `half` on hold nothing otherwise
                _fold(b, ends, half)
        half //= 2


def _fold(b: LoopBuilder, ends: Sequence[LaneAccumulators], half: int) -> None:
    with b.for_(0, half) as lane:
        for end in ends:
            end.fold(lane, lane + half)


def sweep_by_team(b: TeamBuilder, lanes: Sequence[T], count: ScalarLike, take: Take[T]) -> None:
    """The same by a team: leaves the accumulators in those of its first thread.

    Args:
        lanes: for each reduction, the accumulator of this thread.
        count, take: as for `sweep`; the same for all threads of the team.
    """
    lane, size = b.lane(), b.coerce(count, dt.int64)
    for own in lanes:
        own.clear(lane)
    whole, together = (b.shr(size, n.bit_length() - 1) * n for n in (LANES, _ROWS * LANES))
    with b.for_(0, together, _ROWS * LANES) as first:  # so that several loads are under way
        for row in range(_ROWS):
            take(lane, first + row * LANES + lane, lanes)
    with b.for_(together, whole, LANES) as first:
        take(lane, first + lane, lanes)
    with b.if_(b.lt(whole + lane, size)):
        take(lane, whole + lane, lanes)
    half = LANES // 2
    while half:
        further = [own.further(half) for own in lanes]
        with b.if_(b.gt(size, half)):
            for own, values in zip(lanes, further, strict=True):
                own.join(values)
        half //= 2
