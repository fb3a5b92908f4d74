"""What a staged `for` walks over: ranges, tensors along their first axis, and `enumerate` and `zip` of them.

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
from twofold.ir import graph as g
from twofold.ir.dims import maximum

from .contents import content
from .symbolic import SymbolicTensor
from .trace import current

__all__ = ["Sequence", "RangeOf", "Enumerated", "Zipped", "sequence", "is_staged_iterable"]

STAGED = "__staged_sequence__"  # the method of classes above this room that a staged `for` walks over; gives a Sequence


class Sequence(ABC):
    """Items that a loop takes one by one. `start` is the first place; places are integer tensors.

    Attributes:
        trips: how many items there are, where that is known as a size; else None.
    """

    start: Any = 0
    trips: Any = None

    @abstractmethod
    def more(self, place: Any) -> Any:
        """Whether there is an item at `place`."""

    @abstractmethod
    def item(self, place: Any) -> Any:
        """The item at `place`."""

    @abstractmethod
    def count(self) -> Any:
        """How many items there are."""

    def after(self, place: Any) -> Any:
        """The place after `place`."""
        return place + 1

    def enumerated(self, first: Any) -> Sequence:
        """`enumerate(items, first)`."""
        return Enumerated(self, first)

    def zipped(self, others: list[Any]) -> Sequence:
        """`zip(items, *others)`."""
        return Zipped([self, *others])


class RangeOf(Sequence):
    """`range(start, limit, delta)` of integers that may be tensors; places are the numbers themselves."""

    def __init__(self, start: Any, limit: Any, delta: Any) -> None:
        self.start, self.limit, self.delta = start, limit, delta
        self.trips = _count(start, limit, delta)
        self._rising = _number(delta)

    def more(self, place: Any) -> Any:
        if self._rising is not None:
            return ops.less(place, self.limit) if self._rising > 0 else ops.greater(place, self.limit)
        zero = convert.as_tensor(0, place.dtype)
        rising = ops.greater(self.delta, zero)
        return ops.where(rising, ops.less(place, self.limit), ops.greater(place, self.limit))

    def item(self, place: Any) -> Any:
        return place

    def after(self, place: Any) -> Any:
        return ops.add(place, self.delta)

    def at(self, index: Any) -> Any:
        """The item number `index`."""
        return ops.add(self.start, ops.multiply(ops.cast(index, dtype=self.start.dtype), self.delta))

    def count(self) -> Any:
        """How many items there are, an int64 scalar."""
        numbers = ops.range_(self.start, self.limit, self.delta)
        return ops.size(numbers, out_type=dt.int64)


class _Rows(Sequence):
    """A tensor along its first axis."""

    def __init__(self, tensor: Any) -> None:
        if not tensor.dims:
            raise TypeError(f"Cannot iterate over a scalar tensor.\n  {errors.user_line()}")
        self.tensor = tensor
        self.start = convert.as_tensor(0, dt.int64)
        self.trips = tensor.dims[0]

    def count(self) -> Any:
        return self.trips if isinstance(self.trips, int) else current().size(self.trips)  # type: ignore[union-attr]

    def more(self, place: Any) -> Any:
        return ops.less(place, self.count())

    def item(self, place: Any) -> Any:
        return ops.gather(self.tensor, place)

    at = item


class Enumerated(Sequence):
    """`enumerate(items, first)`."""

    def __init__(self, items: Any, first: Any = 0) -> None:
        self.items, self.first = items, first
        self.start = convert.as_tensor(0, dt.int64)
        self.trips = items.trips

    def more(self, place: Any) -> Any:
        return ops.less(place, self.items.count())

    def item(self, place: Any) -> Any:
        return ops.add(ops.cast(place, dtype=dt.int32), self.first), self.items.at(place)

    def count(self) -> Any:
        return self.items.count()

    at = item


class Zipped(Sequence):
    """`zip(*items)`."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items
        self.start = convert.as_tensor(0, dt.int64)
        sizes = [i.trips for i in items if i.trips is not None]
        self.trips = min(sizes) if sizes and all(isinstance(s, int) for s in sizes) else sizes[0] if sizes else None

    def count(self) -> Any:
        counts = [i.count() for i in self.items]
        least = counts[0]
        for other in counts[1:]:
            least = ops.minimum(convert.as_tensor(least, dt.int64), convert.as_tensor(other, dt.int64))
        return least

    def more(self, place: Any) -> Any:
        return ops.less(place, self.count())

    def item(self, place: Any) -> Any:
        return tuple([i.at(place) for i in self.items])

    at = item


def is_staged_iterable(value: Any) -> bool:
    """Whether a loop over `value` is staged: a traced tensor, or something made of one."""
    if isinstance(value, (SymbolicTensor, Sequence)):
        return True
    return current() is not None and (isinstance(value, (Tensor, Variable)) or hasattr(type(value), STAGED))


def sequence(value: Any) -> Any:
    """`value` as a Sequence; None for what Python iterates over."""
    if isinstance(value, Sequence):
        return value
    if isinstance(value, Variable):
        value = value._read_tensor()
    if not isinstance(value, Tensor):
        return getattr(value, STAGED)() if hasattr(type(value), STAGED) else None
    if isinstance(value, SymbolicTensor):
        node = value.value.node
        if node is not None and getattr(node.op, "name", "") == "range" and value.dtype.is_integer:
            return RangeOf(*[_again(v, value.trace) for v in node.inputs])
    return _Rows(value)


def _again(value: g.Value, trace: Any) -> Any:
    from .symbolic import symbolic
    return symbolic(value, trace)


def _number(value: Any) -> Any:
    if isinstance(value, SymbolicTensor):
        known = content(value.value, value.trace)
        number = None if known is None else known.item()
        return number if isinstance(number, int) else None
    return int(value)


def _count(start: Any, limit: Any, delta: Any) -> Any:
    """How many numbers a range has, where it follows from sizes."""
    step = _number(delta)
    ends = []
    for value in (start, limit):
        if isinstance(value, SymbolicTensor):
            known = content(value.value, value.trace)
            if known is None:
                return None
            ends.append(known.item())
        else:
            ends.append(int(value))
    if not step:
        return None
    distance = ends[1] - ends[0] if step > 0 else ends[0] - ends[1]
    count = -(-distance // builtins.abs(step))
    return max(count, 0) if isinstance(count, int) else maximum(count, 0)


