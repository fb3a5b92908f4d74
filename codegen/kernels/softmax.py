"""Softmax kernels: rows of neighbours, each normalised on its own, or judged by its label.

A row is read three times (maximum, sum of exponentials, result). The sum has the order of a chunk (`codegen/lanes.py`),
whatever the length of the row. Element types are float32 and float64; 16-bit floats are widened by the caller, as other
axes are moved last by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

from twofold.codegen import lanes
from twofold.codegen.lanes import LANES
from twofold.codegen.loop import Kernel, LoopBuilder, Pointer, TeamBuilder
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

__all__ = ["cross_entropy", "row_builder", "row_lanes_of", "rows"]

_Join: TypeAlias = Callable[[Scalar, Scalar], Scalar]


def rows(dtype: DType, log: bool, by_team: bool = False) -> Kernel:
    """Softmax, or its logarithm, of each row in the range.

    args: addresses of the result and the operand, both contiguous; the length of a row.

    Args:
        by_team: whether a team of threads goes over each row together.
    """
    b = row_builder(f"{'log_' if log else ''}softmax {dtype.short}", by_team)
    out, x = b.pointer("out", dtype), b.pointer("x", dtype)
    length = b.integer()
    row_lanes = row_lanes_of(b, dtype)
    with b.for_(b.start, b.stop) as row:
        first = row * length
        top = row_lanes.reduced(length, -math.inf, _larger(b), lambda i: b.load(x, first + i))

        def exponential(i: Scalar) -> Scalar:
            e = b.exp(b.load(x, first + i) - top)
            if not log:
                b.store(out, first + i, e)
            return e

        total = row_lanes.reduced(length, 0.0, b.add, exponential)
        with row_lanes.each(length) as i:
            at = first + i
            if log:
                b.store(out, at, b.load(x, at) - top - b.log(total))
            else:
                # 0 stays 0 where an infinite logit made the total a NaN
                e = b.load(out, at)
                b.store(out, at, b.select(b.eq(e, 0.0), e, e / total))
    return b.finish()


def cross_entropy(dtype: DType, labels: DType, by_team: bool = False) -> Kernel:
    """log(sum(exp(row))) - row[label] for each row in the range.

    args: addresses of the result, the logits and the labels, all contiguous; the length of a row.

    Args:
        by_team: as for `rows`.
    """
    b = row_builder(f"cross_entropy {dtype.short} {labels.short}", by_team)
    out, x, chosen = b.pointer("out", dtype), b.pointer("x", dtype), b.pointer("labels", labels)
    length = b.integer()
    row_lanes = row_lanes_of(b, dtype)
    with b.for_(b.start, b.stop) as row:
        first = row * length
        label = b.cast(b.load(chosen, row), dt.int64)
        valid = b.and_(b.ge(label, 0), b.lt(label, length))
        b.check(valid, "a label is outside of the valid range [0, number of classes).")
        top = row_lanes.reduced(length, -math.inf, _larger(b), lambda i: b.load(x, first + i))
        total = row_lanes.reduced(length, 0.0, b.add, lambda i: b.exp(b.load(x, first + i) - top))
        with b.if_(row_lanes.leads(valid)):
            b.store(out, row, b.log(total) - (b.load(x, first + label) - top))
    return b.finish()


class _NumbersOfLanes:
    """A number for each lane (`lanes.LaneAccumulators`)."""

    def __init__(self, b: LoopBuilder, memory: Pointer, start: float, join: _Join) -> None:
        self.b, self.memory, self.start, self.join = b, memory, start, join

    def clear(self, at: Scalar) -> None:
        self.b.store(self.memory, at, self.start)

    def get(self, at: Scalar) -> tuple[Scalar, ...]:
        return (self.b.load(self.memory, at),)

    def set(self, at: Scalar, values: Sequence[Scalar]) -> None:
        self.b.store(self.memory, at, values[0])

    def take(self, at: Scalar, x: Scalar) -> None:
        """An element joins the number of a lane."""
        self.b.store(self.memory, at, self.join(self.b.load(self.memory, at), x))

    def fold(self, at: Scalar, other: Scalar) -> None:
        self.take(at, self.b.load(self.memory, other))


class RowLanes:
    """One thread that goes over rows, with memory for all lanes, which one reduction after another uses."""

    def __init__(self, b: LoopBuilder, dtype: DType) -> None:
        self.b, self.own, self.ends = b, b.scratch(dtype, LANES), b.scratch(dtype, LANES)

    def reduced(self, count: Scalar, start: float, join: _Join, element: Callable[[Scalar], Scalar]) -> Scalar:
        """`count` elements joined in the one order (`codegen/lanes.py`)."""
        own, ends = (_NumbersOfLanes(self.b, memory, start, join) for memory in (self.own, self.ends))
        lanes.sweep(self.b, [own], [ends], count, lambda lane, i, into: into[0].take(lane, element(i)))
        return ends.get(self.b.const(0, dt.int64))[0]

    def each(self, count: Scalar) -> AbstractContextManager[Scalar]:
        """A loop over elements, each of which has the lane that it has in a reduction."""
        return self.b.for_(0, count)

    def leads(self, condition: Scalar) -> Scalar:
        """The condition, for the one thread that writes what a row gives."""
        return condition

    def alone(self) -> AbstractContextManager[object]:
        """A block for that thread."""
        return nullcontext()


class _TeamLane:
    """A thread that goes over rows with its team, and is a lane of it."""

    def __init__(self, b: TeamBuilder, dtype: DType) -> None:
        self.b, self.dtype = b, dtype

    def reduced(self, count: Scalar, start: float, join: _Join, element: Callable[[Scalar], Scalar]) -> Scalar:
        """`RowLanes.reduced`, for all threads of the team."""
        own = _NumberOfLane(self.b, self.b.const(start, self.dtype), join)
        lanes.sweep_by_team(self.b, [own], count, lambda lane, i, into: into[0].join([element(i)]))
        return self.b.leading(own.cell.get())

    def each(self, count: Scalar) -> AbstractContextManager[Scalar]:
        return self.b.for_(self.b.lane(), count, LANES)

    def leads(self, condition: Scalar) -> Scalar:
        return self.b.and_(condition, self.b.eq(self.b.lane(), 0))

    def alone(self) -> AbstractContextManager[object]:
        return self.b.if_(self.b.eq(self.b.lane(), 0))


class _NumberOfLane:
    """The number of one lane, in a register (`lanes.TeamAccumulators`)."""

    def __init__(self, b: TeamBuilder, start: Scalar, join: _Join) -> None:
        self.b, self.start, self.joined, self.cell = b, start, join, b.local(start)

    def clear(self, at: Scalar) -> None:
        self.cell.set(self.start)

    def further(self, n: int) -> Sequence[Scalar]:
        return (self.b.further(self.cell.get(), n),)

    def join(self, values: Sequence[Scalar]) -> None:
        self.cell.set(self.joined(self.cell.get(), values[0]))


def row_builder(name: str, by_team: bool) -> LoopBuilder:
    """The builder of a kernel whose rows a thread goes over, or a team of threads."""
    return TeamBuilder(f"{name} by teams") if by_team else LoopBuilder(name)


def row_lanes_of(b: LoopBuilder, dtype: DType) -> RowLanes | _TeamLane:
    """Who goes over rows in a kernel."""
    return _TeamLane(b, dtype) if isinstance(b, TeamBuilder) else RowLanes(b, dtype)


def _larger(b: LoopBuilder) -> Callable[[Scalar, Scalar], Scalar]:
    """The larger of two numbers; a NaN may be passed over, as it makes the sum of exponentials a NaN anyway."""
    return lambda largest, x: b.select(b.gt(x, largest), x, largest)
