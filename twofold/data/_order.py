"""Nodes that choose elements and their order: take, skip, shard, repeat, shuffle. None of these looks at elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold._front import iteration as engine

from ._node import INFINITE, UNKNOWN, Node, Selection, check, number
from ._stream import Draws, Orders, Stream

__all__ = ["HINT", "Repeat", "Shard", "Shuffle", "Skip", "Take"]


class Take(Selection):
    """The first `count` elements; all of them where it is negative."""

    name = "Take"

    def __init__(self, source: Node, count: Any) -> None:
        super().__init__(source)
        self.count = number(count, "count")

    def cardinality(self) -> int:
        n = self.source.cardinality()
        if engine.is_symbolic(self.count) or n == UNKNOWN or self.count < 0:
            return UNKNOWN if engine.is_symbolic(self.count) else n
        return self.count if n == INFINITE else min(n, self.count)

    def select(self, start: Callable[[], Stream]) -> Stream:
        return start() if self.count < 0 else _Taken(start, self.count)


class _Taken(Stream):
    """Up to `count` items; the input goes when they are through."""

    def __init__(self, start: Callable[[], Stream], count: int) -> None:
        self.input: Stream | None = start() if count else None
        self.start, self.left = start, count

    def next(self) -> Any:
        if self.input is None:
            return None
        item = self.input.next()
        self.left -= 1
        if item is None or not self.left:
            self.input = None
        return item

    def take(self, count: int) -> Any:
        if self.input is None:
            return []
        wanted = min(count, self.left)
        items = self.input.take(wanted)
        self.left -= len(items)
        if len(items) < wanted or not self.left:
            self.input = None
        return items

    def save(self) -> Any:
        return None if self.input is None else [self.left, self.input.save()]

    def load(self, state: Any) -> None:
        self.input = None
        if state is not None:
            self.input = self.start()
            self.left = state[0]
            self.input.load(state[1])


class Skip(Selection):
    """All but the first `count` elements; none where it is negative."""

    name = "Skip"

    def __init__(self, source: Node, count: Any) -> None:
        super().__init__(source)
        self.count = number(count, "count")

    def cardinality(self) -> int:
        n = self.source.cardinality()
        if n < 0 or engine.is_symbolic(self.count):
            return n if n < 0 else UNKNOWN
        return 0 if self.count < 0 else max(0, n - self.count)

    def select(self, start: Callable[[], Stream]) -> Stream:
        return _Taken(start, 0) if self.count < 0 else _Skipped(start(), self.count)


class _Skipped(Stream):
    def __init__(self, input_: Stream, count: int) -> None:
        self.input, self.left = input_, count

    def _skip(self) -> bool:
        while self.left:
            self.left -= 1
            if self.input.next() is None:
                self.left = 0
                return False
        return True

    def next(self) -> Any:
        return self.input.next() if not self.left or self._skip() else None

    def take(self, count: int) -> Any:
        if self.left:
            self.input.take(self.left)
            self.left = 0
        return self.input.take(count)

    def save(self) -> Any:
        return [self.left, self.input.save()]

    def load(self, state: Any) -> None:
        self.left = state[0]
        self.input.load(state[1])


HINT = -1  # a shard that `tf.distribute` fills in


class Shard(Selection):
    """Every `count`-th element from number `index` on."""

    name = "Shard"

    def __init__(self, source: Node, count: Any, index: Any) -> None:
        super().__init__(source)
        self.count, self.index = number(count, "num_shards"), number(index, "index")
        if not engine.is_symbolic(self.count) and not self.count == self.index == HINT:
            check(self.count > 0, f"Number of shards must be greater than zero (currently num_shards = {self.count}).")
            check(engine.is_symbolic(self.index) or 0 <= self.index < self.count,
                  f"Index must be between 0 and {self.count - 1} (currently index = {self.index}).")

    def cardinality(self) -> int:
        n = self.source.cardinality()
        if n < 0 or engine.is_symbolic(self.count) or engine.is_symbolic(self.index) or self.count == HINT:
            return n if n < 0 else UNKNOWN
        return n // self.count + (self.index < n % self.count)

    def select(self, start: Callable[[], Stream]) -> Stream:
        if self.count == self.index == HINT:  # one worker reads all
            return start()
        check(self.count > 0 and 0 <= self.index < self.count,
              f"Index must be between 0 and {self.count - 1} (currently index = {self.index}).")
        return _Sharded(start(), self.count, self.index)


class _Sharded(Stream):
    def __init__(self, input_: Stream, count: int, index: int) -> None:
        self.input, self.count, self.before = input_, count, index

    def next(self) -> Any:
        while self.before:
            if self.input.next() is None:
                return None
            self.before -= 1
        item = self.input.next()
        self.before = self.count - 1
        return item

    def save(self) -> Any:
        return [self.before, self.input.save()]

    def load(self, state: Any) -> None:
        self.before = state[0]
        self.input.load(state[1])


class Repeat(Selection):
    """The elements `count` times over, for ever where it is negative."""

    name = "Repeat"

    def __init__(self, source: Node, count: Any) -> None:
        super().__init__(source)
        self.count = -1 if count is None else number(count, "count")

    def cardinality(self) -> int:
        if engine.is_symbolic(self.count):
            return UNKNOWN
        n = self.source.cardinality()
        if self.count == 0 or n == 0:
            return 0
        if self.count < 0:
            return INFINITE
        return n if n < 0 else n * self.count

    def select(self, start: Callable[[], Stream]) -> Stream:
        return _Repeated(start, self.count)


class _Repeated(Stream):
    """Starts the input again and again; an input without any item ends it."""

    def __init__(self, start: Callable[[], Stream], count: int) -> None:
        self.start, self.left = start, count
        self.input: Stream | None = None
        self.any = False  # whether this round has had an item

    def _begin(self) -> bool:
        if not self.left:
            return False
        self.left -= self.left > 0
        self.input, self.any = self.start(), False
        return True

    def next(self) -> Any:
        while self.input is not None or self._begin():
            item = self.input.next()  # type: ignore[union-attr]
            if item is not None:
                self.any = True
                return item
            self._over()
        return None

    def _over(self) -> None:
        self.input = None
        if not self.any:
            self.left = 0

    def take(self, count: int) -> Any:
        items: Any = []
        while len(items) < count and (self.input is not None or self._begin()):
            wanted = count - len(items)
            more = self.input.take(wanted)  # type: ignore[union-attr]
            self.any |= len(more) > 0
            items = [*items, *more] if len(items) else more
            if len(more) < wanted:
                self._over()
        return items

    def save(self) -> Any:
        return [self.left, self.any, None if self.input is None else self.input.save()]

    def load(self, state: Any) -> None:
        self.left, self.any, inner = state
        self.input = None
        if inner is not None:
            self.input = self.start()
            self.input.load(inner)


class Shuffle(Selection):
    """Elements drawn at random from a buffer of the next `size` ones."""

    name = "Shuffle"

    def __init__(self, source: Node, size: Any, seed: Any = None, renewed: bool = True) -> None:
        super().__init__(source)
        self.size = number(size, "buffer_size")
        if not engine.is_symbolic(self.size):
            self._check(self.size)
        self.orders = Orders(engine.random_seeds(None if seed is None else number(seed, "seed")), renewed)

    @staticmethod
    def _check(size: int) -> None:
        check(size > 0 or size == UNKNOWN, "buffer_size must be greater than zero or UNKNOWN_CARDINALITY")

    def cardinality(self) -> int:
        return self.source.cardinality()

    def select(self, start: Callable[[], Stream]) -> Stream:
        self._check(self.size)
        return _Shuffled(start(), self.size, self.orders)


class _Shuffled(Stream):
    """A buffer of items: each round it is filled up, and one of its items, drawn at random, goes out.

    The order is TensorFlow's: the buffer is a ring, in which the oldest item takes the place of the one that goes.
    """

    def __init__(self, input_: Stream, size: int, orders: Orders) -> None:
        self.input: Stream | None = input_
        self.again = input_
        self.size, self.orders = size, orders
        self.buffer: list[Any] = []  # the ring, whose length stays once it was full
        self.first, self.count = 0, 0  # the place of the oldest item, and how many there are
        seeds, self.number = orders.next()
        self.draws = Draws(seeds)

    def _fill(self) -> None:
        size, source = self.size, self.input
        while source is not None and (self.count < size or size < 0):
            item = source.next()
            if item is None:
                self.input = source = None
            elif self.count == len(self.buffer):
                self.buffer.append(item)
                self.count += 1
            else:
                self.buffer[(self.first + self.count) % len(self.buffer)] = item
                self.count += 1

    def next(self) -> Any:
        if self.input is not None:
            self._fill()
        return self._out(self.draws.next() % self.count) if self.count else None

    def _out(self, number: int) -> Any:
        """The item so many places after the oldest, in whose place that one goes."""
        buffer, first = self.buffer, self.first
        place = (first + number) % len(buffer)
        item, buffer[place] = buffer[place], buffer[first]
        buffer[first] = None
        self.first = (first + 1) % len(buffer)
        self.count -= 1
        return item

    def take(self, count: int) -> Any:
        """As `next`, `count` times over; only positions are pulled ahead, which cannot fail."""
        items: list[Any] = []
        while len(items) < count:
            self._fill_at_once()
            wanted = count - len(items)
            if self.input is None:
                if not self.count:
                    break
                items += [self._out(self.draws.next() % self.count) for _ in range(min(wanted, self.count))]
                continue
            fresh = self.input.take(wanted)
            self._replace(fresh, items)
            if len(fresh) < wanted:
                self.input = None
        return items

    def _fill_at_once(self) -> None:
        while self.input is not None and (self.size < 0 or self.count < self.size):
            if self.count < len(self.buffer):
                self._fill()
                continue
            wanted = self.size - self.count if self.size > 0 else 1 << 16
            more = self.input.take(wanted)
            self.buffer.extend(more)
            self.count += len(more)
            if len(more) < wanted:
                self.input = None

    def _replace(self, fresh: Any, drawn: list[Any]) -> None:
        """Draw an item for each fresh one, which becomes the youngest of the full buffer."""
        buffer, first, size = self.buffer, self.first, len(self.buffer)
        for slot, item in zip(self.draws.slots(size, len(fresh)), fresh, strict=True):
            place = first + slot
            if place >= size:
                place -= size
            drawn.append(buffer[place])
            buffer[place] = buffer[first]
            buffer[first] = item
            first = first + 1 if first + 1 < size else 0
        self.first = first

    def save(self) -> Any:
        items = [self.buffer[(self.first + n) % len(self.buffer)] for n in range(self.count)]
        return {"input": None if self.input is None else self.input.save(), "buffer": items,
                "draws": self.draws.save(), "number": self.number, "seeds": list(self.orders.seeds)}

    def load(self, state: Any) -> None:
        self.buffer, self.number = list(state["buffer"]), state["number"]
        self.first, self.count = 0, len(self.buffer)
        self.draws.load(state["draws"])
        self.orders.load([state.get("seeds"), self.number + 1])
        self.input = None
        if state["input"] is not None:
            self.input = self.again
            self.input.load(state["input"])
