"""Graphs of TensorFlow's as plain data: nodes in an order in which they can run, and the functions of a library.

In: messages. Out: `Body`s, whose nodes name the values that they read. What the nodes mean is the table's (`table.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .messages import Message, numbers
from .tensors import RESOURCE, VARIANT, Room, array_of, dtype_of, shape_of

__all__ = ["Argument", "Body", "Called", "Gradient", "Library", "Node", "Placeholder", "Signature", "Source", "body_of",
           "library_of"]

_DEEP = 32  # messages within attributes
#: control flow of references to variables, which is that of other values
_REFERENCES = {f"Ref{op}": op for op in ("Switch", "Merge", "Enter", "Exit", "NextIteration")}


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a function: its name, and what says how many tensors it is.

    Attributes:
        name: of the argument.
        count: the attribute with their number; "" for one tensor.
        types: the attribute with a dtype for each; "" for one tensor.
    """

    name: str
    count: str
    types: str


@dataclass(frozen=True, slots=True)
class Signature:
    """The signature of a function of the library.

    Attributes:
        name: of the function.
        inputs, outputs: its arguments.
        defaults: of attributes.
    """

    name: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    defaults: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Called:
    """An attribute that is a function of the library, and its own attributes."""

    name: str
    attrs: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Placeholder:
    """An attribute that is one of the function around, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value comes from: a node's or an argument's name, one of its outputs ("" where they are counted through),
    and a number."""

    name: str
    output: str
    number: int

    def __str__(self) -> str:
        return ":".join([part for part in (self.name, self.output, str(self.number)) if part])


@dataclass(eq=False, slots=True)
class Node:
    """One application of an op.

    Attributes:
        name: of the node.
        op: of its op.
        inputs: where its operands come from.
        after: the names of nodes that run before it.
        attrs: plain values, arrays, dtypes, shapes, functions.
    """

    name: str
    op: str
    inputs: tuple[Source, ...]
    after: tuple[str, ...]
    attrs: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.op} {self.name!r}"


@dataclass(eq=False, slots=True)
class Body:
    """A graph, or a function of the library.

    Attributes:
        name: of the function; "" for the graph itself.
        inputs: names of its arguments.
        nodes: in an order in which they can run.
        outputs: the values that it gives.
        signature: of a function.
        attrs: of a function.
        ends: nodes that run although nobody may read their results.
    """

    name: str
    inputs: tuple[str, ...]
    nodes: list[Node]
    outputs: tuple[Source, ...]
    signature: Signature | None = None
    attrs: dict[str, Any] = field(default_factory=dict)
    ends: frozenset[str] = frozenset()

    def passed(self) -> dict[int, int]:
        """The outputs that are arguments as they came: the number of the argument for that of the output."""
        places = {name: number for number, name in enumerate(self.inputs)}
        nodes = {node.name: node for node in self.nodes}
        unchanged = {}
        for number, source in enumerate(self.outputs):
            for _ in range(len(nodes)):
                node = nodes.get(source.name)
                if node is None or node.op != "Identity" or not node.inputs:
                    break
                source = node.inputs[0]
            if source.name in places:
                unchanged[number] = places[source.name]
        return unchanged


@dataclass(frozen=True, slots=True)
class Gradient:
    """A gradient of the user's own.

    Attributes:
        name: of the function of the library, which takes the gradients of the results, then its captures.
        absent: for each input of a node whether there is no gradient for it.
        captures: gives what it reads besides: values, and a `Source` for what the graph of the node has.
    """

    name: str
    absent: tuple[bool, ...]
    captures: Callable[[], list[Any]]


class Library:
    """The functions of a file, each read when it is first asked for.

    Args:
        functions: their messages by name.
        room: what may be made of the file.
        gradients: the names of functions that are gradients, by the names that nodes have for them.

    Attributes:
        own_gradients: those that can be run, likewise.
    """

    def __init__(self, functions: dict[str, Any], room: Room, gradients: dict[str, str]) -> None:
        self._messages, self._bodies = functions, dict[str, Body]()
        self.room, self.gradients = room, gradients
        self.own_gradients: dict[str, Gradient] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._messages

    def body(self, name: str) -> Body:
        """The function of a name.

        Raises:
            ValueError: there is none, or it is not well formed.
        """
        made = self._bodies.get(name)
        if made is None:
            if name not in self._messages:
                raise ValueError(f"there is no function {name[:80]!r}")
            made = self._bodies[name] = _function_of(self._messages[name], self)
        return made


def library_of(message: Message, room: Room) -> Library:
    """The functions of a `FunctionDefLibrary`."""
    functions = {}
    for data in message.all(1):
        functions[Message(Message(data).bytes(1)).text(1)] = data
    gradients = {entry.text(2): entry.text(1) for entry in message.messages(3)}
    return Library(functions, room, gradients)


def _signature_of(data: Any, room: Room) -> Signature:
    """The signature that an `OpDef` says."""
    message = Message(data)
    defaults = {}
    for attr in message.messages(4):
        if 3 in attr:
            defaults[attr.text(1)] = _attribute(attr.bytes(3), room)
    return Signature(message.text(1), tuple([_argument(a) for a in message.messages(2)]),
              tuple([_argument(a) for a in message.messages(3)]), defaults)


def _argument(message: Message) -> Argument:
    return Argument(message.text(1), message.text(5), message.text(6))


def body_of(nodes: Iterable[Any], outputs: Sequence[Source], room: Room) -> Body:
    """The graph of a file's own nodes."""
    return Body("", (), _in_order([_node(data, room) for data in nodes], frozenset(), ""), tuple(outputs))


def _function_of(data: Any, library: Library) -> Body:
    message = Message(data)
    room = library.room
    signature = _signature_of(message.bytes(1), room)
    inputs = tuple([argument.name for argument in signature.inputs])
    if len({*inputs}) != len(inputs):
        raise ValueError(f"function {signature.name!r}: its arguments have no names of their own")
    nodes = _in_order([_node(node, room) for node in message.all(3)], frozenset(inputs), signature.name)
    given = message.map_of_texts(4)
    outputs = []
    for argument in signature.outputs:
        if argument.name not in given:
            raise ValueError(f"function {signature.name!r}: nothing makes its output {argument.name!r}")
        outputs.append(_source(given[argument.name]))
    known = {*inputs, *[node.name for node in nodes]}
    lost = [str(source) for source in outputs if source.name not in known]
    if lost:
        raise ValueError(f"function {signature.name!r}: nothing makes {lost[:4]}")
    attrs = {name: _attribute(value, room) for name, value in message.map(5).items()}
    ends = frozenset(message.map_of_texts(6).values()) & known
    return Body(signature.name, inputs, nodes, tuple(outputs), signature, attrs, ends)


def _node(data: Any, room: Room) -> Node:
    message = Message(data)
    names = message.texts(3)
    attrs = {name: _attribute(value, room) for name, value in message.map(5).items()}
    op, inputs = message.text(2), tuple([_source(n) for n in names if not n.startswith("^")])
    after = tuple([n[1:] for n in names if n.startswith("^")])
    return Node(message.text(1), _REFERENCES.get(op, op), inputs, after, attrs)


def _source(name: str) -> Source:
    """`node`, `node:1` in graphs; `argument`, `node:output:1` in functions."""
    parts = name.split(":")
    if len(parts) > 3 or not parts[0]:
        raise ValueError(f"{name[:80]!r} names no value")
    number = parts[-1] if len(parts) > 1 else "0"
    if not number.isdecimal() or len(number) > 6:
        raise ValueError(f"{name[:80]!r} names no value")
    return Source(parts[0], parts[1] if len(parts) == 3 else "", int(number))


def _in_order(nodes: list[Node], given: frozenset[str], where: str) -> list[Node]:
    """The nodes sorted so that each comes after what it reads and waits for, the first of a file first."""
    numbers_ = {node.name: number for number, node in enumerate(nodes)}
    if len(numbers_) != len(nodes) or not given.isdisjoint(numbers_):
        raise ValueError(f"graph {where!r}: two nodes have one name")
    readers: dict[int, list[int]] = {}
    open_ = []
    for number, node in enumerate(nodes):
        before = {name for name in (*[s.name for s in node.inputs], *node.after) if name not in given}
        lost = before - numbers_.keys()
        if lost:
            raise ValueError(f"graph {where!r}: nothing makes {sorted(lost)[:4]}, which {node} reads")
        if node.op == "NextIteration":
            before = set()
        open_.append(len(before))
        for name in before:
            readers.setdefault(numbers_[name], []).append(number)
    ready = [number for number, count in enumerate(open_) if not count]
    for number in ready:
        for reader in readers.get(number, ()):
            open_[reader] -= 1
            if not open_[reader]:
                ready.append(reader)
    if len(ready) != len(nodes):
        stuck = [str(node) for node, count in zip(nodes, open_, strict=True) if count]
        raise ValueError(f"graph {where!r}: nodes depend on themselves: {', '.join(stuck[:4])}")
    return [nodes[number] for number in ready]


# -- attributes ----------------------------------------------------------------------------------------
def _attribute(data: Any, room: Room, depth: int = 0) -> Any:
    """The value of an `AttrValue`; None for one that is not set."""
    if depth > _DEEP:
        raise ValueError(f"attributes lie more than {_DEEP} deep within one another")
    message = Message(data)
    if 1 in message:
        return _list(message.message(1), room, depth)
    if 2 in message:
        return bytes(message.bytes(2))
    if 3 in message:
        return message.number(3)
    if 4 in message:
        return message.real(4)
    if 5 in message:
        return bool(message.number(5))
    if 6 in message:
        return _dtype(message.number(6))
    if 7 in message:
        return shape_of(message.bytes(7))
    if 8 in message:
        return _tensor(message.bytes(8), room)
    if 9 in message:
        return Placeholder(message.text(9))
    if 10 in message:
        return _called(message.message(10), room, depth)
    return None


def _list(message: Message, room: Room, depth: int) -> list[Any]:
    if 3 in message:
        return list(numbers(message.all(3)))
    if 4 in message:
        return np.frombuffer(b"".join(_floats(message.all(4))), np.float32).tolist()
    if 5 in message:
        return [bool(n) for n in numbers(message.all(5))]
    if 6 in message:
        return [_dtype(n) for n in numbers(message.all(6))]
    return [*[bytes(v) for v in message.all(2)], *[shape_of(v) for v in message.all(7)],
            *[_tensor(v, room) for v in message.all(8)], *[_called(Message(v), room, depth) for v in message.all(9)]]


def _floats(values: list[Any]) -> list[bytes]:
    return [value.to_bytes(4, "little") if isinstance(value, int) else bytes(value) for value in values]


def _called(message: Message, room: Room, depth: int) -> Called:
    attrs = {name: _attribute(value, room, depth + 1) for name, value in message.map(2).items()}
    return Called(message.text(1), attrs)


def _dtype(number: int) -> Any:
    """A dtype; for what is no tensor its number, and for those that are not known here, too."""
    if number in (0, RESOURCE, VARIANT):
        return number
    try:
        return dtype_of(number)
    except ValueError:
        return number


def _tensor(data: Any, room: Room) -> Any:
    """An array; for a constant of a dtype that is not known here its bytes: who reads it tells."""
    number = Message(data).number(1)
    return array_of(data, room) if not isinstance(_dtype(number), int) else bytes(data)


