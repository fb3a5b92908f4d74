"""Streams, which run when a dataset is iterated over.

A stream gives items one by one, and None at the end. Items are opaque to streams that only select or reorder: elements
(tuples of leaves), or positions (ints) of rows, from which a later stream gathers whole batches at once. A stream's
state is made of None, bools, ints, floats, strings, bytes, arrays, lists, tuples and dicts (`_state.py` writes it).
A stream that an exception has left can be asked again; it goes on after what failed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np

from twofold._front import iteration as engine
from twofold._front.together import locks

__all__ = ["Draws", "Orders", "Positions", "RowItems", "Rows", "ArithmeticRows", "Run", "Seeds", "Stream"]


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


Seeds: TypeAlias = tuple[int, int]


def _seeds_of(kept: Any) -> Seeds:
    """Seeds as a state keeps them.

    Raises:
        ValueError: an older version kept it, whose random numbers were others.
    """
    if not isinstance(kept, (list, tuple)) or len(kept) != 2:
        raise ValueError("The iterator was saved by an older version, whose random orders cannot be continued; "
                         "begin the iteration again.")
    return int(kept[0]), int(kept[1])


class Draws:
    """Random words of 32 bits, TensorFlow's for two seeds, whose place can be saved.

    Args:
        seeds: of the stream.
    """

    BLOCK = 2048

    def __init__(self, seeds: Seeds) -> None:
        self.seeds, self.block, self.at = seeds, 0, 0
        self.words = np.empty(0, np.uint32)

    def take(self, count: int) -> np.ndarray:
        """The next `count` words."""
        parts = []
        while count > 0:
            if self.at == len(self.words):
                self._refill()
            part = self.words[self.at:self.at + count]
            self.at += len(part)
            count -= len(part)
            parts.append(part)
        return parts[0] if len(parts) == 1 else np.concatenate([self.words[:0], *parts])

    def next(self) -> int:
        """The next word."""
        if self.at == len(self.words):
            self._refill()
        self.at += 1
        return int(self.words[self.at - 1])

    def fraction(self) -> float:
        """The next word as a number in [0, 1)."""
        return self.next() / 2.0**32

    def slots(self, size: int, count: int) -> list[int]:
        """The next `count` words, each as a number below `size`."""
        return [int(slot) for slot in self.take(count) % np.uint32(size)]

    def _refill(self) -> None:
        self.words = self._block(self.block)
        self.block, self.at = self.block + 1, 0

    def _block(self, number: int) -> np.ndarray:
        return engine.random_words(self.seeds, number * (self.BLOCK // 4), self.BLOCK // 4)

    def save(self) -> Any:
        """The state."""
        return [list(self.seeds), self.block, self.at]

    def load(self, state: Any) -> None:
        """Go on where a state was taken."""
        self.seeds, self.block, self.at = _seeds_of(state[0]), state[1], state[2]
        self.words = self._block(self.block - 1) if self.block else self.words[:0]


class Orders:
    """The seeds of the orders that a random step goes through, two for each time that it is iterated over.

    The step's node holds it, so that iterations know of one another; a saved iterator holds its state.

    Args:
        seeds: of the whole.
        renewed: whether each iteration has seeds of its own: the next two words of the stream of `seeds`.
    """

    def __init__(self, seeds: Seeds, renewed: bool) -> None:
        self.seeds, self.renewed, self.number = seeds, renewed, 0
        self._lock = locks.Lock()

    def next(self) -> tuple[Seeds, int]:
        """The seeds and the number of the next iteration."""
        if not self.renewed:
            return self.seeds, 0
        with self._lock:
            number, self.number = self.number, self.number + 1
        words = engine.random_words(self.seeds, number // 2, 1)[2 * (number % 2):]
        return (int(words[0]), int(words[1])), number

    def save(self) -> Any:
        """The state."""
        return [list(self.seeds), self.number]

    def load(self, state: Any) -> None:
        """Continue the sequence that another process may have begun."""
        self.seeds, self.number = _seeds_of(state[0]), state[1]
