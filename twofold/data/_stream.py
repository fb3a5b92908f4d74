"""Streams, which run when a dataset is iterated over.

A stream gives items one by one, and None at the end. Items are opaque to streams that only select or reorder: elements
(tuples of leaves), or positions (ints) of rows, from which a later stream gathers whole batches at once. A stream's
state is made of None, bools, ints, floats, strings, bytes, arrays, lists, tuples and dicts (`_state.py` writes it).
A stream that an exception has left can be asked again; it goes on after what failed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from twofold._front.together import locks

__all__ = ["Draws", "Orders", "Positions", "RowItems", "Rows", "ArithmeticRows", "Run", "Stream"]


class Run:
    """The settings that the streams of one iteration share.

    Attributes:
        fuse: whether selections of rows run as arithmetic on positions.
        deterministic: whether parallel functions keep the order, unless they say themselves.
        threads: how many threads a function may use that leaves it open.
    """

    def __init__(self, fuse: bool = True, deterministic: bool = True, threads: int = 2) -> None:
        self.fuse, self.deterministic, self.threads = fuse, deterministic, threads


class Stream(ABC):
    """Items in order."""

    @abstractmethod
    def next(self) -> Any:
        """The next item, or None at the end."""

    def take(self, count: int) -> Any:
        """Up to `count` items, fewer only at the end; for positions, which cannot fail."""
        items: list[Any] = []
        while len(items) < count and (item := self.next()) is not None:
            items.append(item)
        return items

    @abstractmethod
    def save(self) -> Any:
        """The state."""

    @abstractmethod
    def load(self, state: Any) -> None:
        """Go to where the stream was whose state this is."""


class Rows:
    """Arrays with one first axis, whose rows are elements."""

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self.arrays = arrays
        self.count = arrays[0].shape[0]

    def row(self, position: int) -> tuple[np.ndarray, ...]:
        """One element."""
        return tuple([a[position, ...] for a in self.arrays])

    def gather(self, positions: Any) -> tuple[np.ndarray, ...]:
        """The elements at some positions, stacked; neighbours in order are not copied."""
        if type(positions) is range:
            return tuple([a[positions.start:positions.stop] for a in self.arrays])
        chosen = np.array(positions, np.intp)
        return tuple([a.take(chosen, axis=0) for a in self.arrays])


class ArithmeticRows(Rows):
    """The numbers of a range."""

    def __init__(self, numbers: range, dtype: Any) -> None:
        self.numbers, self.dtype = numbers, dtype
        self.count = len(numbers)

    def row(self, position: int) -> tuple[np.ndarray, ...]:
        return (np.array(self.numbers[position], self.dtype),)

    def gather(self, positions: Any) -> tuple[np.ndarray, ...]:
        numbers = self.numbers
        if type(positions) is range:
            part = numbers[positions.start:positions.stop]
            return (np.arange(part.start, part.stop, part.step, dtype=self.dtype),)
        return ((np.array(positions, np.int64) * numbers.step + numbers.start).astype(self.dtype),)


class Positions(Stream):
    """0, 1, 2, ... up to a count."""

    def __init__(self, count: int) -> None:
        self.count, self.at = count, 0

    def next(self) -> int | None:
        at = self.at
        if at >= self.count:
            return None
        self.at = at + 1
        return at

    def take(self, count: int) -> range:
        start = self.at
        self.at = min(self.count, start + count)
        return range(start, self.at)

    def save(self) -> Any:
        return self.at

    def load(self, state: Any) -> None:
        self.at = state


class RowItems(Stream):
    """The elements at the positions of another stream."""

    def __init__(self, rows: Rows, positions: Stream) -> None:
        self.row, self.positions = rows.row, positions

    def next(self) -> Any:
        position = self.positions.next()
        return None if position is None else self.row(position)

    def save(self) -> Any:
        return self.positions.save()

    def load(self, state: Any) -> None:
        self.positions.load(state)


class Draws:
    """Uniform numbers in [0, 1) by Philox, whose place can be saved.

    Args:
        key: of the stream.
    """

    BLOCK = 512

    def __init__(self, key: int) -> None:
        self.key, self.block, self.at = key, 0, 0
        self.numbers: list[float] = []

    def next(self) -> float:
        """The next number."""
        if self.at >= len(self.numbers):
            self.refill()
        self.at += 1
        return self.numbers[self.at - 1]

    def slots(self, size: int, count: int) -> list[int]:
        """`int(number * size)` for the next `count` numbers."""
        if self.at + count <= len(self.numbers):
            self.at += count
            return [int(u * size) for u in self.numbers[self.at - count:self.at]]
        return [int(self.next() * size) for _ in range(count)]

    def refill(self) -> None:
        """Draw the next block of numbers."""
        self.numbers = self._block(self.block)
        self.block, self.at = self.block + 1, 0

    def _block(self, number: int) -> list[float]:
        bits = np.random.Philox(key=self.key, counter=number << 64)
        return np.random.Generator(bits).random(self.BLOCK).tolist()

    def save(self) -> Any:
        """The state."""
        return [self.key, self.block, self.at]

    def load(self, state: Any) -> None:
        """Go on where a state was taken."""
        self.key, self.block, self.at = state
        self.numbers = self._block(self.block - 1) if self.block else []


class Orders:
    """The keys of the orders that a random step goes through, one for each time that it is iterated over.

    The step's node holds it, so that iterations know of one another; a saved iterator holds its state.

    Args:
        key: of the whole.
        renewed: whether each iteration has a key of its own.
    """

    def __init__(self, key: int, renewed: bool) -> None:
        self.key, self.renewed, self.number = key, renewed, 0
        self._lock = locks.Lock()

    def next(self) -> tuple[int, int]:
        """The key and the number of the next iteration."""
        if not self.renewed:
            return self.key, 0
        with self._lock:
            number, self.number = self.number, self.number + 1
        return self.key + (number << 64), number

    def save(self) -> Any:
        """The state."""
        return [self.key, self.number]

    def load(self, state: Any) -> None:
        """Continue the sequence that another process may have begun."""
        self.key, self.number = state
