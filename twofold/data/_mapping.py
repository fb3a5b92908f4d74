"""Steps that run a function of the user's on elements: map, filter, scan, take_while, interleave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front import iteration as engine

from ._functions import ElementFunction, dataset_of, predicate
from ._node import UNKNOWN, Node, check, number
from ._parallel import AUTOTUNE, mapped_in_parallel, prefetched
from ._sources import Tensors
from ._stream import Rows, Run, Stream
from ._structure import Form, Item

__all__ = ["Filter", "Interleave", "Map", "Scan", "TakeWhile", "settled_state"]


class Map(Node):
    """The results of a function."""

    name = "Map"

    def __init__(self, source: Node, fn: Callable[..., Any], parallel: Any = None,
                 deterministic: bool | None = None) -> None:
        self.source = source
        self.parallel = None if parallel is None else number(parallel, "num_parallel_calls")
        if self.parallel is not None and not engine.is_symbolic(self.parallel):
            check(self.parallel > 0 or self.parallel == AUTOTUNE, "num_parallel_calls must be greater than zero.")
        self.deterministic = deterministic
        self.fn = ElementFunction(fn, [source.form], "map")
        self.form = self.fn.form

    def cardinality(self) -> int:
        return self.source.cardinality()

    def rows(self) -> Rows | None:
        """The rows of the input, changed when they are gathered, where the function works on whole batches."""
        rows = self.source.rows()
        batched = None if rows is None else self.fn.over_rows()
        return None if rows is None or batched is None else _MappedRows(rows, self.fn, batched)

    def positions(self, run: Run) -> Stream:
        return self.source.positions(run)

    def start(self, run: Run) -> Stream:
        source = self.source.start(run)
        self.fn.begin()
        if self.parallel is None:
            return _Mapped(source, self.fn)
        threads = run.threads if self.parallel == AUTOTUNE else self.parallel
        ordered = run.deterministic if self.deterministic is None else self.deterministic
        return mapped_in_parallel(source, self.fn, threads, ordered, self.fn.in_steps(ordered))


class _MappedRows(Rows):
    """Rows that a function changes, single ones or whole batches."""

    def __init__(self, rows: Rows, fn: ElementFunction, batched: Callable[..., Any]) -> None:
        self.inner, self.fn, self.batched = rows, fn, batched
        self.count = rows.count

    def row(self, position: int) -> Item:
        return self.fn(self.inner.row(position))

    def gather(self, positions: Any) -> Item:
        return engine.arrays_of(self.batched(*engine.tensors_of(self.inner.gather(positions))))


class _Mapped(Stream):
    def __init__(self, source: Stream, fn: Callable[[Item], Item]) -> None:
        self.input, self.fn = source, fn

    def next(self) -> Any:
        item = self.input.next()
        return None if item is None else self.fn(item)

    def save(self) -> Any:
        return self.input.save()

    def load(self, state: Any) -> None:
        self.input.load(state)


class Filter(Node):
    """The elements for which a function says so."""

    name = "Filter"

    def __init__(self, source: Node, fn: Callable[..., Any]) -> None:
        self.source, self.form = source, source.form
        self.fn = predicate(fn, source.form, "filter")

    def cardinality(self) -> int:
        return UNKNOWN

    def start(self, run: Run) -> Stream:
        return _Filtered(self.source.start(run), self.fn)


class _Filtered(_Mapped):
    def next(self) -> Any:
        while (item := self.input.next()) is not None:
            if self.fn(item)[0]:
                return item
        return None


class TakeWhile(Node):
    """The elements before the first for which a function says no."""

    name = "TakeWhile"

    def __init__(self, source: Node, fn: Callable[..., Any]) -> None:
        self.source, self.form = source, source.form
        self.fn = predicate(fn, source.form, "take_while")

    def cardinality(self) -> int:
        return UNKNOWN

    def start(self, run: Run) -> Stream:
        return _Leading(self.source.start(run), self.fn)


class _Leading(_Mapped):
    over = False

    def next(self) -> Any:
        if self.over:
            return None
        item = self.input.next()
        self.over = item is None or not self.fn(item)[0]
        return None if self.over else item

    def save(self) -> Any:
        return [self.over, self.input.save()]

    def load(self, state: Any) -> None:
        self.over = state[0]
        self.input.load(state[1])


# -- functions with a state -----------------------------------------------------------------------
def settled_state(fn: Callable[..., Any], start: Form, element: Form, what: str,
                  state_of: Callable[[Any], Any]) -> tuple[Form, ElementFunction]:
    """The form of a state that a function hands from element to element, and the function.

    Args:
        fn: of a state and an element.
        start: the form of the first state.
        element: the form of the elements.
        what: the step.
        state_of: the part of the function's result spec that is the next state.
    Raises:
        TypeError: the function changes the structure or the dtypes of the state.
    """
    form = start
    while True:
        made = ElementFunction(fn, [form, element], what)
        state = Form(state_of(made.form.spec))
        try:
            engine.nest.assert_same_structure(form.spec, state.spec)
        except (TypeError, ValueError) as e:
            raise TypeError(f"The element structure for the new state must match the initial state. Expected "
                            f"{form.spec!r}; got {state.spec!r}.") from e
        if any(a.dtype is not b.dtype for a, b in zip(form.flat, state.flat, strict=True)):
            raise TypeError(f"The element types for the new state must match the initial state. Expected "
                            f"{form.spec!r}; got {state.spec!r}.")
        shapes = [a.shape.most_specific_compatible_shape(b.shape) for a, b in zip(form.flat, state.flat, strict=True)]
        if all(a == b.shape for a, b in zip(shapes, form.flat, strict=True)):
            return form, made
        form = Form(engine.nest.pack(form.spec, [tf.TensorSpec(s, b.dtype) for s, b in
                                                         zip(shapes, form.flat, strict=True)]))


class Scan(Node):
    """The outputs of a function of a state and an element, which also gives the next state."""

    name = "Scan"

    def __init__(self, source: Node, start: Any, fn: Callable[..., Any]) -> None:
        self.source = source
        first = Tensors(start)
        self.first = first
        self.state, self.fn = settled_state(fn, first.form, source.form, "scan", self._state)
        self.form = Form(self.fn.form.spec[1])

    @staticmethod
    def _state(spec: Any) -> Any:
        if type(spec) is not tuple or len(spec) != 2:
            raise TypeError("The scan function must return a pair comprising the new state and the output value.")
        return spec[0]

    def cardinality(self) -> int:
        return self.source.cardinality()

    def start(self, run: Run) -> Stream:
        return _Scanned(self.source.start(run), self.fn, self.first.start(run).next(), len(self.state.flat))


class _Scanned(Stream):
    def __init__(self, source: Stream, fn: ElementFunction, state: Item, size: int) -> None:
        self.input, self.fn, self.state, self.size = source, fn, state, size

    def next(self) -> Any:
        item = self.input.next()
        if item is None:
            return None
        results = self.fn((*self.state, *item))
        self.state = results[:self.size]
        return results[self.size:]

    def save(self) -> Any:
        return [self.state, self.input.save()]

    def load(self, state: Any) -> None:
        self.state = tuple(state[0])
        self.input.load(state[1])


# -- functions that give datasets -----------------------------------------------------------------
class Interleave(Node):
    """The elements of datasets that a function makes of elements, `block` of each in turn, `cycle` at a time."""

    def __init__(self, source: Node, fn: Callable[..., Any], cycle: Any = 1, block: Any = 1, parallel: Any = None,
                 deterministic: bool | None = None, name: str = "Interleave") -> None:
        self.name = name
        self.source = source
        self.cycle, self.block = number(cycle, "cycle_length"), number(block, "block_length")
        for value, what in ((self.cycle, "cycle_length"), (self.block, "block_length")):
            check(engine.is_symbolic(value) or value > 0, f"`{what}` must be > 0")
        self.parallel = None if parallel is None else number(parallel, "num_parallel_calls")
        self.deterministic = deterministic
        self.fn = dataset_of(fn, [source.form], "flat_map" if name == "FlatMap" else "interleave", "map_func")
        self.form = Form(self.fn.form.spec.element_spec)

    def cardinality(self) -> int:
        return UNKNOWN

    def start(self, run: Run) -> Stream:
        return _Interleaved(self, run)


class _Interleaved(Stream):
    """Slots of open datasets, visited in turn. A slot that is through is filled again when its turn comes."""

    def __init__(self, node: Interleave, run: Run) -> None:
        self.node, self.run = node, run
        self.input: Stream | None = node.source.start(run)
        self.slots: list[Any] = [None] * node.cycle  # (item, stream) of each
        self.at, self.given = 0, 0  # the slot whose turn it is, and how many it gave in this turn

    def _open(self, item: Item) -> Any:
        stream = self.node.fn(item)[0]._node.start(self.run)
        if self.node.parallel is not None and self.node.cycle > 1:
            stream = prefetched(stream, max(2, self.node.block))
        return [item, stream]

    def next(self) -> Any:
        idle = 0
        while idle <= len(self.slots):
            slot = self.slots[self.at]
            if slot is None and self.input is not None:
                item = self.input.next()
                if item is None:
                    self.input = None
                else:
                    slot = self.slots[self.at] = self._open(item)
            if slot is None:
                idle += 1
                self._turn()
                continue
            element = slot[1].next()
            if element is not None:
                self.given += 1
                if self.given >= self.node.block:
                    self._turn()
                return element
            idle = 0
            self.slots[self.at] = None
            self._turn()
        return None

    def _turn(self) -> None:
        self.at, self.given = (self.at + 1) % len(self.slots), 0

    def save(self) -> Any:
        return {"input": None if self.input is None else self.input.save(), "at": self.at, "given": self.given,
                "slots": [None if s is None else [s[0], s[1].save()] for s in self.slots]}

    def load(self, state: Any) -> None:
        self.at, self.given = state["at"], state["given"]
        self.input = None
        if state["input"] is not None:
            self.input = self.node.source.start(self.run)
            self.input.load(state["input"])
        self.slots = [None if s is None else self._open(tuple(s[0])) for s in state["slots"]]
        for slot, saved in zip(self.slots, state["slots"], strict=True):
            if slot is not None:
                slot[1].load(saved[1])
