"""Several datasets as one, and small steps that look at elements from outside: zip, concatenate, choose, enumerate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine

from ._devices import OnDevice
from ._node import INFINITE, UNKNOWN, Node, check, number
from ._parallel import prefetched, room_of
from ._sources import Slices
from ._stream import Draws, Orders, Positions, Rows, Run, Seeds, Stream
from ._structure import DatasetSpec, Form, compatible, merged

__all__ = ["AssertCardinality", "Choose", "Concatenate", "IgnoreErrors", "Prefetch", "Sample", "Unique", "Zip"]


class Zip(Node):
    """Structures of the elements of several datasets, as many as the shortest has."""

    name = "Zip"

    def __init__(self, structure: Any) -> None:
        datasets = engine.nest.flatten(structure)
        self.parts = [d._node for d in datasets]
        self.form = Form(engine.nest.pack(structure, [p.form.spec for p in self.parts]))

    def cardinality(self) -> int:
        counts = [p.cardinality() for p in self.parts]
        if UNKNOWN in counts:
            return UNKNOWN
        finite = [n for n in counts if n != INFINITE]
        return min(finite) if finite else INFINITE

    def rows(self) -> Rows | None:
        if not all(isinstance(p, Slices) for p in self.parts):
            return None
        rows = [p.rows() for p in self.parts]
        if any(r is None for r in rows):
            return None
        count = min(r.count for r in rows)
        return Rows([a[:count] for r in rows for a in r.arrays])

    def positions(self, run: Run) -> Stream:
        return Positions(min(p.cardinality() for p in self.parts))

    def start(self, run: Run) -> Stream:
        return _Zipped([p.start(run) for p in self.parts])


class _Zipped(Stream):
    def __init__(self, parts: list[Stream]) -> None:
        self.parts = parts
        self.over = False

    def next(self) -> Any:
        if self.over:
            return None
        values: list[Any] = []
        for part in self.parts:
            item = part.next()
            if item is None:
                self.over = True
                return None
            values += item
        return tuple(values)

    def save(self) -> Any:
        return [self.over, [p.save() for p in self.parts]]

    def load(self, state: Any) -> None:
        self.over = state[0]
        for part, saved in zip(self.parts, state[1], strict=True):
            part.load(saved)


class Concatenate(Node):
    """The elements of one dataset after those of another."""

    name = "Concatenate"

    def __init__(self, first: Node, second: Node) -> None:
        if not compatible(first.form, second.form):
            raise TypeError(f"Incompatible dataset elements:\n  {first.form.spec!r} vs.   {second.form.spec!r}")
        self.parts = [first, second]
        self.form = merged(first.form, second.form)

    def cardinality(self) -> int:
        counts = [p.cardinality() for p in self.parts]
        return INFINITE if INFINITE in counts else UNKNOWN if UNKNOWN in counts else sum(counts)

    def start(self, run: Run) -> Stream:
        return _Concatenated(self.parts, run)


class _Concatenated(Stream):
    def __init__(self, parts: list[Node], run: Run) -> None:
        self.parts, self.run, self.at = parts, run, 0
        self.input = parts[0].start(run)

    def next(self) -> Any:
        while (item := self.input.next()) is None and self.at + 1 < len(self.parts):
            self.at += 1
            self.input = self.parts[self.at].start(self.run)
        return item

    def save(self) -> Any:
        return [self.at, self.input.save()]

    def load(self, state: Any) -> None:
        self.at = state[0]
        self.input = self.parts[self.at].start(self.run)
        self.input.load(state[1])


class Choose(Node):
    """Elements of several datasets, from which one each time a dataset of numbers tells."""

    name = "DirectedInterleave"

    def __init__(self, parts: Sequence[Node], choice: Node, stop: bool) -> None:
        form = parts[0].form
        for part in parts[1:]:
            if not compatible(form, part.form):
                raise TypeError(f"All datasets must have compatible elements. Found {form.spec!r} and "
                                f"{part.form.spec!r}.")
            form = merged(form, part.form)
        self.parts, self.choice, self.stop, self.form = list(parts), choice, stop, form

    def cardinality(self) -> int:
        endless = [p.cardinality() == INFINITE for p in self.parts]
        goes_on = all(endless) if self.stop else any(endless)
        return INFINITE if goes_on and self.choice.cardinality() == INFINITE else UNKNOWN

    def start(self, run: Run) -> Stream:
        return _Chosen(self, run)


class _Chosen(Stream):
    def __init__(self, node: Choose, run: Run) -> None:
        self.node = node
        self.choice = node.choice.start(run)
        self.parts: list[Stream | None] = [p.start(run) for p in node.parts]

    def next(self) -> Any:
        while any(p is not None for p in self.parts):
            chosen = self.choice.next()
            if chosen is None:
                return None
            at = int(chosen[0])
            check(0 <= at < len(self.parts), f"Selector index out of range: {at} >= {len(self.parts)}")
            part = self.parts[at]
            if part is None:
                continue
            item = part.next()
            if item is not None:
                return item
            self.parts = [None] * len(self.parts) if self.node.stop else [
                None if i == at else p for i, p in enumerate(self.parts)]
        return None

    def save(self) -> Any:
        return [self.choice.save(), [None if p is None else p.save() for p in self.parts]]

    def load(self, state: Any) -> None:
        self.choice.load(state[0])
        for i, saved in enumerate(state[1]):
            part = self.parts[i]
            if saved is None:
                self.parts[i] = None
            elif part is not None:
                part.load(saved)


class Sample(Node):
    """Endless numbers 0 to n - 1, drawn with given weights, which may change from element to element."""

    name = "Sample"

    def __init__(self, count: int, weights: Any, seed: Any, renewed: bool) -> None:
        self.count, self.weights = count, weights
        self.orders = Orders(engine.random_seeds(None if seed is None else number(seed, "seed")), renewed)
        self.form = Form(tf.TensorSpec([], tf.int64))

    def cardinality(self) -> int:
        return INFINITE if not isinstance(self.weights, Node) else self.weights.cardinality()

    def start(self, run: Run) -> Stream:
        varying = self.weights.start(run) if isinstance(self.weights, Node) else None
        return _Sampled(self, varying, self.orders.next()[0])


class _Sampled(Stream):
    _TOGETHER = 256  # draws that are made at once

    def __init__(self, node: Sample, varying: Stream | None, seeds: Seeds) -> None:
        self.count, self.varying = node.count, varying
        self.draws = Draws(seeds)
        self.fractions, self.at, self.begun = np.empty(0), 0, self.draws.save()
        self.bounds = None if varying is not None else self._bounds(node.weights)

    @staticmethod
    def _bounds(weights: Any) -> np.ndarray:
        sums = np.cumsum(np.asarray(weights, np.float64))
        check(sums.size > 0 and sums[-1] > 0, "the weights must have a sum above zero")
        return sums / sums[-1]

    def next(self) -> Any:
        bounds = self.bounds
        if bounds is None:
            item = self.varying.next()  # type: ignore[union-attr]
            if item is None:
                return None
            bounds = self._bounds(item[0])
        if self.at == len(self.fractions):
            self._refill()
        self.at += 1
        at = int(np.searchsorted(bounds, self.fractions[self.at - 1], side="right"))
        return (np.array(min(at, self.count - 1), np.int64),)

    def _refill(self) -> None:
        """As TensorFlow has it, each two words are the seed of a stateless draw."""
        self.begun, self.at = self.draws.save(), 0
        self.fractions = engine.random_fractions(self.draws.take(2 * self._TOGETHER).reshape(-1, 2))

    def save(self) -> Any:
        return [self.begun, self.at, None if self.varying is None else self.varying.save()]

    def load(self, state: Any) -> None:
        begun, at, varying = state
        self.draws.load(begun)
        self._refill()
        self.at = at
        if self.varying is not None:
            self.varying.load(varying)


# -- one input ------------------------------------------------------------------------------------
class _Through(Stream):
    """A stream over one other."""

    def __init__(self, source: Stream) -> None:
        self.input = source

    def save(self) -> Any:
        return self.input.save()

    def load(self, state: Any) -> None:
        self.input.load(state)


class Prefetch(Node):
    """The elements, made ahead."""

    name = "Prefetch"

    def __init__(self, source: Node, size: Any) -> None:
        self.source, self.form, self.size = source, source.form, number(size, "buffer_size")
        check(engine.is_symbolic(self.size) or self.size >= -1, "buffer_size must be >= 0 or set to AUTOTUNE")

    def cardinality(self) -> int:
        return self.source.cardinality()

    def start(self, run: Run) -> Stream:
        source = self.source.start(run)
        return source if self.size == 0 else prefetched(source, self.size)

    def start_last(self, run: Run) -> Stream:
        if isinstance(self.source, OnDevice):
            return self.source.start_last(run, room_of(self.size))
        return self.start(run)


class IgnoreErrors(Node):
    """The elements whose making raises no error."""

    name = "IgnoreErrors"

    def __init__(self, source: Node, tell: Callable[[str], Any] | None) -> None:
        self.source, self.form, self.tell = source, source.form, tell

    def cardinality(self) -> int:
        return UNKNOWN

    def start(self, run: Run) -> Stream:
        return _Unfailing(self.source.start(run), self.tell)


class _Unfailing(_Through):
    def __init__(self, source: Stream, tell: Callable[[str], Any] | None) -> None:
        super().__init__(source)
        self.tell = tell

    def next(self) -> Any:
        while True:
            try:
                return self.input.next()
            except Exception as error:  # noqa: BLE001 - whatever goes wrong with an element is to be ignored
                if self.tell is not None:
                    self.tell(f"{type(error).__name__}: {error}")


class Unique(Node):
    """The elements that were not there before."""

    name = "Unique"

    def __init__(self, source: Node) -> None:
        self.source, self.form = source, source.form
        if len(self.form.flat) != 1 or isinstance(self.form.flat[0], DatasetSpec):
            raise TypeError(f"unique() takes a dataset whose elements are single tensors; got {self.form.spec!r}.")

    def cardinality(self) -> int:
        return UNKNOWN

    def start(self, run: Run) -> Stream:
        return _Distinct(self.source.start(run))


class _Distinct(_Through):
    def __init__(self, source: Stream) -> None:
        super().__init__(source)
        self.seen: dict[Any, None] = {}

    def next(self) -> Any:
        while (item := self.input.next()) is not None:
            array = item[0]
            key = (array.shape, tuple(array.ravel().tolist()) if array.dtype == object else array.tobytes())
            if key not in self.seen:
                self.seen[key] = None
                return item
        return None

    def save(self) -> Any:
        return [[list(k) for k in self.seen], self.input.save()]

    def load(self, state: Any) -> None:
        self.seen = {(tuple(shape), tuple(v) if isinstance(v, (list, tuple)) else v): None for shape, v in state[0]}
        self.input.load(state[1])


class AssertCardinality(Node):
    """The elements, and an error where there are more or fewer than was said."""

    name = "AssertCardinality"

    def __init__(self, source: Node, count: Any) -> None:
        self.source, self.form, self.count = source, source.form, number(count, "expected_cardinality")

    def cardinality(self) -> int:
        return UNKNOWN if engine.is_symbolic(self.count) else self.count

    def start(self, run: Run) -> Stream:
        return _Counted(self.source.start(run), self.count)


class _Counted(_Through):
    def __init__(self, source: Stream, count: int) -> None:
        super().__init__(source)
        self.count, self.seen, self.over = count, 0, False

    def next(self) -> Any:
        if self.over:
            return None
        item = self.input.next()
        self.over = item is None or 0 <= self.count <= self.seen
        self.seen += item is not None
        amount = "an infinite number of" if self.count == INFINITE else str(self.count)
        if item is None and self.seen != self.count:
            raise tf.errors.FailedPreconditionError(
                None, None, f"Input dataset was expected to contain {amount} elements but contained only {self.seen} "
                f"element{'' if self.seen == 1 else 's'}.")
        if item is not None and 0 <= self.count < self.seen:
            raise tf.errors.FailedPreconditionError(
                None, None, f"Input dataset was expected to contain {amount} elements but contained at least "
                f"{self.seen} element{'' if self.seen == 1 else 's'}.")
        return item

    def save(self) -> Any:
        return [self.seen, self.input.save()]

    def load(self, state: Any) -> None:
        self.seen = state[0]
        self.input.load(state[1])
