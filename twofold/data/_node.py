"""Nodes: the steps that a dataset is made of. A node knows the form and number of its elements and starts streams of
them.

Inside a trace a node may hold tensors that have no value yet; `tensors_in` finds them and `bound` gives the node with
values in their places when the function runs.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front import iteration as engine

from ._stream import Orders, RowItems, Rows, Run, Stream
from ._structure import Form
from ._value import DatasetValue, dataset_from, is_dataset

__all__ = ["INFINITE", "UNKNOWN", "Capturing", "Node", "Selection", "bound", "check", "number", "tensors_in"]

INFINITE = -1
UNKNOWN = -2


class Capturing:
    """Part of a node that reads tensors of a surrounding trace."""

    captured: list[Any]


class Node(ABC):
    """One step of a pipeline.

    Attributes:
        name: the kind of step, for `repr` and errors.
        form: of its elements.
    """

    name = "Variant"
    form: Form

    @abstractmethod
    def cardinality(self) -> int:
        """How many elements there are, INFINITE or UNKNOWN."""

    @abstractmethod
    def start(self, run: Run) -> Stream:
        """A new stream of items."""

    def start_last(self, run: Run) -> Stream:
        """A new stream of items for whoever iterates: what leaves them on a GPU is asked for here alone."""
        return self.start(run)

    def rows(self) -> Rows | None:
        """The rows that the elements are a selection of; None where elements are computed."""
        return None

    def positions(self, run: Run) -> Stream:
        """A new stream of positions in `rows()`."""
        raise TypeError(f"{self.name} has no rows")

    def settle(self) -> None:
        """Turn attributes that are tensors with values into the Python values that the node keeps; called on a bound
        copy."""
        for key, value in list(vars(self).items()):
            if isinstance(value, tf.Tensor) and not engine.is_symbolic(value):
                setattr(self, key, self.settled(key, value))

    def settled(self, key: str, value: Any) -> Any:
        """The attribute `key` of a bound copy, from the tensor that stood for it: numbers by default."""
        return number(value, key)

    def resolved(self) -> Node:
        """The node itself, or the one bound to it if it is a placeholder."""
        return self

    def inputs(self) -> list[Node]:
        """The nodes that this one reads."""
        nodes = [v for v in vars(self).values() if isinstance(v, Node)]
        for value in vars(self).values():
            if isinstance(value, (list, tuple)):
                nodes += [v for v in value if isinstance(v, Node)]
        return nodes

    def steps(self) -> list[str]:
        """The kinds of this node and those below it."""
        return [self.name, *[name for node in self.inputs() for name in node.steps()]]

    def random_steps(self) -> list[Orders]:
        """The sequences of orders of this node and those below it, in a fixed order."""
        own = [v for v in vars(self).values() if isinstance(v, Orders)]
        return own + [o for node in self.inputs() for o in node.random_steps()]


class Selection(Node):
    """A step that selects or repeats or reorders elements without a look at them."""

    def __init__(self, source: Node) -> None:
        self.source = source
        self.form = source.form

    @abstractmethod
    def select(self, start: Callable[[], Stream]) -> Stream:
        """The stream over what `start` gives."""

    def rows(self) -> Rows | None:
        return self.source.rows()

    def positions(self, run: Run) -> Stream:
        return self.select(lambda: self.source.positions(run))

    def start(self, run: Run) -> Stream:
        rows = self.rows() if run.fuse else None
        if rows is not None:
            return RowItems(rows, self.positions(run))
        return self.select(lambda: self.source.start(run))


# -- values that may be symbolic ------------------------------------------------------------------
def number(value: Any, what: str) -> Any:
    """An integer argument: an int, or a traced scalar.

    Raises:
        TypeError: it is no integer.
    """
    if engine.is_symbolic(value):
        if not value.dtype.is_integer or value.shape.rank != 0:
            raise TypeError(f"{what} must be an integer scalar; got {value!r}.")
        return value
    if isinstance(value, int):
        return int(value)
    array = engine.array_of(value)
    if array.dtype.kind not in "iu" or array.ndim:
        raise TypeError(f"{what} must be an integer; got {value!r}.")
    return int(array)


def check(condition: bool, message: str) -> None:
    """Raise InvalidArgumentError with `message` unless `condition`."""
    if not condition:
        raise tf.errors.InvalidArgumentError(None, None, message)


def tensors_in(value: Any, tensors: list[Any] | None = None) -> list[Any]:
    """The symbolic tensors in a node and the nodes below it, in a fixed order."""
    tensors = [] if tensors is None else tensors
    if engine.is_symbolic(value):
        tensors.append(value)
    elif isinstance(value, Node):
        for part in vars(value).values():
            tensors_in(part, tensors)
    elif is_dataset(value):
        tensors_in(value._node, tensors)
    elif isinstance(value, Capturing):
        tensors_in(value.captured, tensors)
    elif isinstance(value, (list, tuple)):
        for part in value:
            tensors_in(part, tensors)
    return tensors


_whole: set[type] = set()  # of values that hold no tensors of a trace


def bound(value: Any, given: Any) -> Any:
    """`value` with the next of the iterator `given` in the place of each of `tensors_in`."""
    kind = type(value)
    if kind in _whole:
        return value
    if not issubclass(kind, (Node, DatasetValue, Capturing, list, tuple, tf.Tensor)):
        _whole.add(kind)
        return value
    if engine.is_symbolic(value):
        return next(given)
    if isinstance(value, Node):
        return _bound_node(value, given)
    if is_dataset(value):
        node = _bound_node(value._node, given)
        return value if node is value._node else dataset_from(node)
    if isinstance(value, Capturing) and value.captured:
        made = copy.copy(value)
        made.captured = bound(value.captured, given)
        return made
    if isinstance(value, (list, tuple)) and value:
        parts = [bound(part, given) for part in value]
        if any(a is not b for a, b in zip(parts, value, strict=True)):
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def _bound_node(node: Node, given: Any) -> Node:
    changed = {}
    for key, part in vars(node).items():
        replacement = bound(part, given)
        if replacement is not part:
            changed[key] = replacement
    made = node
    if changed:
        made = object.__new__(type(node))
        vars(made).update(vars(node))
        vars(made).update(changed)
        made.settle()
    return made.resolved()
