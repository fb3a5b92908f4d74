"""Sequences that a staged `for` walks over: ranges, tensors along their first axis, and `enumerate` and `zip` of them.

Datasets and iterators give sequences of their own (`STAGED`).
"""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from typing import Any

from twofold.eager import convert
from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable
from twofold.ir import dtypes as dt
from twofold.ir import errors, ops
from twofold.ir.dims import DimLike, maximum

from .contents import content
from .symbolic import SymbolicTensor, symbolic
from .trace import current
from .types import PythonValue, Structure

__all__ = ["StagedSequence", "RangeOf", "Enumerated", "Zipped", "sequence", "is_staged_iterable"]

STAGED = "__staged_sequence__"  # the method of classes above this room that a staged `for` walks over; gives a sequence


class StagedSequence(ABC):
    """Items that a loop takes one by one. `start` is the first place; places are integer tensors.

    Attributes:
        trips: how many items there are, where that is known as a size; else None.
    """

    start: Any = 0  # a tensor or a number; of a dataset, a property that makes the iterator
    trips: DimLike | None = None

    @abstractmethod
    def more(self, place: Tensor) -> Tensor:
        """Whether there is an item at `place`."""

    @abstractmethod
    def item(self, place: Tensor) -> Structure:
        """The item at `place`."""

    @abstractmethod
    def count(self) -> Tensor | int:
        """How many items there are."""

    def at(self, index: Tensor) -> Structure:
        """The item number `index`, an integer tensor; a sequence whose places are no numbers has another way to it."""
        return self.item(index)

    def after(self, place: Tensor) -> Tensor:
        """The place after `place`."""
        return place + 1

    def enumerated(self, first: Tensor | int) -> StagedSequence:
        """`enumerate(items, first)`."""
        return Enumerated(self, first)

    def zipped(self, others: list[StagedSequence]) -> StagedSequence:
        """`zip(items, *others)`."""
        return Zipped([self, *others])


class RangeOf(StagedSequence):
    """`range(start, limit, delta)` of integers that may be tensors; places are the numbers themselves."""

    start: Tensor

    def __init__(self, start: Tensor, limit: Tensor, delta: Tensor) -> None:
        self.start, self.limit, self.delta = start, limit, delta
        self.trips = _count(start, limit, delta)
        self._rising = _number(delta)

    def more(self, place: Tensor) -> Tensor:
        if self._rising is not None:
            return ops.less(place, self.limit) if self._rising > 0 else ops.greater(place, self.limit)
        zero = convert.as_tensor(0, place.dtype)
        rising = ops.greater(self.delta, zero)
        return ops.where(rising, ops.less(place, self.limit), ops.greater(place, self.limit))

    def item(self, place: Tensor) -> Structure:
        return place

    def after(self, place: Tensor) -> Tensor:
        return ops.add(place, self.delta)

    def at(self, index: Tensor) -> Tensor:
        """The item number `index`."""
        return ops.add(self.start, ops.multiply(ops.cast(index, dtype=self.start.dtype), self.delta))

    def count(self) -> Tensor | int:
        """How many items there are, an int64 scalar."""
        numbers = ops.range_(self.start, self.limit, self.delta)
        return ops.size(numbers, out_type=dt.int64)


class _TensorItems(StagedSequence):
    """A tensor along its first axis."""

    def __init__(self, tensor: Tensor) -> None:
        if not tensor.dims:
            raise TypeError(f"Cannot iterate over a scalar tensor.\n  {errors.user_line()}")
        self.tensor = tensor
        self.start = convert.as_tensor(0, dt.int64)
        self.trips = self.size = tensor.dims[0]

    def count(self) -> Tensor | int:
        if isinstance(self.size, int):
            return self.size
        trace = current()
        assert trace is not None, "an unknown size is of a trace"
        return trace.size(self.size)

    def more(self, place: Tensor) -> Tensor:
        return ops.less(place, self.count())

    def item(self, place: Tensor) -> Structure:
        return ops.gather(self.tensor, place)


class Enumerated(StagedSequence):
    """`enumerate(items, first)`."""

    def __init__(self, items: StagedSequence, first: Tensor | int = 0) -> None:
        self.items, self.first = items, first
        self.start = convert.as_tensor(0, dt.int64)
        self.trips = items.trips

    def more(self, place: Tensor) -> Tensor:
        return ops.less(place, self.items.count())

    def item(self, place: Tensor) -> Structure:
        return ops.add(ops.cast(place, dtype=dt.int32), self.first), self.items.at(place)

    def count(self) -> Tensor | int:
        return self.items.count()


class Zipped(StagedSequence):
    """`zip(*items)`."""

    def __init__(self, items: list[StagedSequence]) -> None:
        self.items = items
        self.start = convert.as_tensor(0, dt.int64)
        sizes = [i.trips for i in items if i.trips is not None]
        numbers = [s for s in sizes if isinstance(s, int)]
        self.trips = min(numbers) if numbers and len(numbers) == len(sizes) else sizes[0] if sizes else None

    def count(self) -> Tensor | int:
        counts = [i.count() for i in self.items]
        least = counts[0]
        for other in counts[1:]:
            least = ops.minimum(convert.as_tensor(least, dt.int64), convert.as_tensor(other, dt.int64))
        return least

    def more(self, place: Tensor) -> Tensor:
        return ops.less(place, self.count())

    def item(self, place: Tensor) -> Structure:
        return tuple([i.at(place) for i in self.items])


def is_staged_iterable(value: PythonValue) -> bool:
    """Whether a loop over `value` is staged: a traced tensor, or something made of one."""
    if isinstance(value, (SymbolicTensor, StagedSequence)):
        return True
    return current() is not None and (isinstance(value, (Tensor, Variable)) or hasattr(type(value), STAGED))


def sequence(value: PythonValue) -> StagedSequence | None:
    """`value` as a staged sequence; None where Python iterates over it."""
    if isinstance(value, StagedSequence):
        return value
    if isinstance(value, Variable):
        value = value._read_tensor()
    if not isinstance(value, Tensor):
        return getattr(value, STAGED)() if hasattr(type(value), STAGED) else None
    if isinstance(value, SymbolicTensor):
        node = value.value.node
        if node is not None and getattr(node.op, "name", "") == "range" and value.dtype.is_integer:
            return RangeOf(*[symbolic(v, value.trace) for v in node.inputs])
    return _TensorItems(value)


def _number(value: Tensor | int) -> int | None:
    """The integer that a scalar is, where that is known."""
    if isinstance(value, SymbolicTensor):
        elements = content(value.value, value.trace)
        number = None if elements is None else elements.item()
        return number if isinstance(number, int) else None
    return int(value)


def _count(start: Tensor, limit: Tensor, delta: Tensor) -> DimLike | None:
    """How many numbers a range has, where it follows from sizes."""
    step = _number(delta)
    ends = []
    for value in (start, limit):
        if isinstance(value, SymbolicTensor):
            elements = content(value.value, value.trace)
            if elements is None:
                return None
            ends.append(elements.item())
        else:
            ends.append(int(value))
    if not step:
        return None
    distance = ends[1] - ends[0] if step > 0 else ends[0] - ends[1]
    count = -(-distance // builtins.abs(step))
    return max(count, 0) if isinstance(count, int) else maximum(count, 0)


