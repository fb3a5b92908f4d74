"""Runs the functions of a file on values: in a trace, where ops become nodes, or at once.

Nodes whose inputs are all known are computed when the graph is traced, since axes and shapes come from such nodes.
Every op that only computes is `tf.raw_ops`' of its name; the others are the table's (`table.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import twofold as tf
from twofold._formats import node_errors
from twofold._formats.node_errors import NodeError
from twofold.eager.variable import Variable
from twofold.ir.errors import OpError, UnimplementedError

from .frames import Flow, flow_of, loop
from .graphs import Body, Called, Gradient, Library, Node, Placeholder, Source
from .switches import merged
from .table import Call, Entry, find

__all__ = ["FAULTS", "Run", "lacking", "plain_attribute"]

#: what nodes that make no sense lead to, beside errors of ops
FAULTS = (*node_errors.FAULTS, MemoryError, AssertionError)

_DEEP = 64  # calls of functions within one another
_STEPS = 200_000  # nodes that the functions which a function calls may become
_FOLDED = 4096  # elements up to which values are computed when a graph is traced
_AXES = 32  # elements of a shape
#: nodes that run others: what joins the sides of a condition, and what leaves a loop
_JOINS = frozenset({"Merge", "Exit"})
#: attributes that Python's functions call otherwise than the ops in files do
_CALLED = {"squeeze_dims": "axis"}
#: raw ops that are never computed in advance
_RUNS = frozenset({"Assert", "CheckNumerics", "ReadFile", "WriteFile", "MatchingFiles", "Timestamp", "Print",
                   "PrintV2", "EnsureShape"})


class Values:
    """The values of a running graph by the nodes that made them.

    Args:
        nodes: of the graph, each of which runs when a value of it is first asked for.
        run: gives the outputs of a node, and for each named output where it begins.
    """

    __slots__ = ("_made", "nodes", "_run", "flow")

    def __init__(self, nodes: dict[str, Node], run: Callable[[Node, Values], tuple[Sequence[Any], dict[str, int]]],
                 flow: Flow, made: Mapping[str, tuple[Sequence[Any], dict[str, int]]] | None = None) -> None:
        self._made = dict(made or {})
        self.nodes, self._run, self.flow = nodes, run, flow

    def branch(self) -> Values:
        """The same values, for nodes that run in a branch or a round: what these make is known there alone."""
        return Values(self.nodes, self._run, self.flow, self._made)

    def put(self, name: str, outputs: Sequence[Any], places: dict[str, int]) -> None:
        """Keep the outputs of a node."""
        self._made[name] = outputs, places

    def make(self, node: Node) -> None:
        """Run a node, unless it has run."""
        if node.name not in self._made:
            self._made[node.name] = self._run(node, self)

    def reach(self, sources: Sequence[Source]) -> None:
        """Run the nodes that values need, each after what it reads and waits for.

        Of a condition only what joins its sides is run here, of a loop only what leaves it: these run the others.
        """
        seen, open_ = set[str](), [(source.name, False) for source in reversed(sources)]
        while open_:
            name, ready = open_.pop()
            if ready:
                self.make(self.nodes[name])
            elif name in self.nodes and name not in self._made and name not in seen:
                seen.add(name)
                node = self.nodes[name]
                open_.append((name, True))
                if node.op not in _JOINS:
                    open_ += [(each, False) for each in (*[s.name for s in node.inputs], *node.after)]

    def get(self, source: Source) -> Any:
        """A value.

        Raises:
            ValueError: nothing makes it.
        """
        if source.name not in self._made:
            self.reach([source])
        if source.name not in self._made:
            raise ValueError(f"nothing makes {source}")
        outputs, places = self._made[source.name]
        number = places.get(source.output, 0) + source.number
        if number >= len(outputs):
            raise ValueError(f"nothing makes {source}")
        return outputs[number]


class Run:
    """One run of functions of a library.

    Args:
        library: the functions.
        ready: values of nodes of the graph itself that are not to be run, such as variables, by name.
    """

    def __init__(self, library: Library, ready: dict[str, Any] | None = None) -> None:
        self._library, self._ready = library, ready or {}
        self._depth, self._left = 0, _STEPS
        self._outermost: Body | None = None
        self._resizes: bool | None = None

    def body(self, called: Called) -> Body:
        """The function of the library that an attribute names."""
        return self._library.body(called.name)

    def function(self, called: Called, given: Sequence[Any]) -> list[Any]:
        """The outputs of a function for values of its arguments.

        Raises:
            ValueError: there are more or fewer values than arguments, or functions call each other without an end.
        """
        body = self._library.body(called.name)
        self._outermost = self._outermost or body
        assert body.signature is not None
        attrs = {**body.signature.defaults, **body.attrs, **called.attrs}
        values = Values({node.name: node for node in body.nodes}, partial(self._node, around=attrs),
                        flow_of(body.nodes))
        rest = list(given)
        for argument in body.signature.inputs:
            count = _count(argument, attrs)
            if len(rest) < count:
                raise ValueError(f"function {body.name!r} takes {len(body.inputs)} arguments; {len(given)} are given")
            values.put(argument.name, rest[:count], {argument.name: 0})
            rest = rest[count:]
        if rest:
            raise ValueError(f"function {body.name!r} takes {len(body.inputs)} arguments; {len(given)} are given")
        if self._depth >= _DEEP:
            raise ValueError(f"functions call each other more than {_DEEP} deep")
        self._depth += 1
        try:
            self._make(_needed(body), values)
        finally:
            self._depth -= 1
        return [values.get(source) for source in body.outputs]

    def graph(self, body: Body, given: dict[str, list[Any]]) -> list[Any]:
        """The outputs of the graph itself for the values of some nodes."""
        values = Values({node.name: node for node in body.nodes}, partial(self._node, around={}),
                        flow_of(body.nodes))
        ready = {**{name: [value] for name, value in self._ready.items()}, **given}
        for name, outputs in ready.items():
            values.put(name, outputs, {})
        self._make(_needed(body, {*ready}), values)
        return [values.get(source) for source in body.outputs]

    def _make(self, nodes: Sequence[Node], values: Values) -> None:
        """Run nodes, which come in order, but for those that branches and loops run."""
        for node in nodes:
            if node.name not in values.flow.inside:
                values.make(node)

    def resizes(self) -> bool:
        """Whether an item is written behind the end of a list, which makes it longer."""
        if self._resizes is None:
            nodes = _reached(self._library, [self._outermost] if self._outermost else [])
            self._resizes = any(node.attrs.get("resize_if_index_out_of_bounds") for node in nodes)
        return self._resizes

    def gradient(self, name: str) -> Gradient | None:
        """The gradient of the user's own that nodes name so; None where there is none."""
        return self._library.own_gradients.get(name)

    def _node(self, node: Node, values: Values, around: dict[str, Any]) -> tuple[Sequence[Any], dict[str, int]]:
        """The outputs of a node, and where each named one begins."""
        self._left -= 1
        if self._left < 0:
            raise ValueError(f"functions become more than {_STEPS:,} nodes")
        if node.op in _JOINS:
            return (merged(node, values), {}) if node.op == "Merge" else ([loop(node, values)], {})
        inputs = [values.get(source) for source in node.inputs]
        try:
            return self._ran(node, inputs, values, around)
        except (NodeError, OpError, *FAULTS) as e:
            raise NodeError(node, e) from e

    def _ran(self, node: Node, inputs: list[Any], values: Values, around: dict[str, Any],
             ) -> tuple[Sequence[Any], dict[str, int]]:
        attrs = {name: around[value.name] if isinstance(value, Placeholder) else value
                 for name, value in node.attrs.items()}
        if node.op in self._library:
            return self.function(Called(node.op, attrs), inputs), self._places(node.op, attrs)
        entry = find(node.op)
        if entry is None:
            raise UnimplementedError(None, None, f"the op {node.op} is not among those of twofold")
        given = entry.given(inputs, attrs)
        outputs = _raw(entry, node.op, given, attrs) if entry.raw else entry.run(
            Call(node, attrs, self, values.get), **given)
        return [_known(value) for value in _flat(outputs)], _begins(outputs, entry.outputs)

    def _places(self, name: str, attrs: dict[str, Any]) -> dict[str, int]:
        """Where each output of a function of the library begins."""
        signature = self._library.body(name).signature
        assert signature is not None
        places, at = {}, 0
        for argument in signature.outputs:
            places[argument.name] = at
            at += _count(argument, {**signature.defaults, **attrs})
        return places


def _count(argument: Any, attrs: dict[str, Any]) -> int:
    """How many tensors an argument is."""
    if argument.types:
        return len(attrs[argument.types])
    count = attrs[argument.count] if argument.count else 1
    if not isinstance(count, int) or not 0 <= count <= _STEPS:
        raise ValueError(f"its argument {argument.name!r} would be {count!r} tensors")
    return count


def _needed(body: Body, stop: Collection[str] = ()) -> list[Node]:
    """The nodes that results depend on, and those that do more than give results."""
    nodes = {node.name: node for node in body.nodes}
    wanted, open_ = set[str](), [*[source.name for source in body.outputs], *body.ends]
    while open_:
        name = open_.pop()
        if name in wanted or name not in nodes or name in stop:
            continue
        wanted.add(name)
        open_ += [*[source.name for source in nodes[name].inputs], *nodes[name].after]
    return [node for node in body.nodes if node.name in wanted]


# -- ops that only compute -----------------------------------------------------------------------------
def _raw(entry: Entry, name: str, given: dict[str, Any], own: dict[str, Any]) -> Any:
    """What a raw op gives."""
    names = {*entry.inputs, *entry.defaults}
    attrs = {_CALLED.get(k, k): plain_attribute(v) for k, v in own.items()}
    attrs = {k: v for k, v in attrs.items() if k in names and k not in given}
    values = [v for value in given.values() for v in (value if isinstance(value, list) else [value])]
    folds = bool(values) and name not in _RUNS and all(isinstance(v, np.ndarray) for v in values) and (
        sum(v.size for v in values) <= _FOLDED)
    if not entry.assigns:
        given = {k: [_read(v) for v in value] if isinstance(value, list) else _read(value)
                 for k, value in given.items()}
    if not folds:
        return entry.run(**given, **attrs)
    with tf.init_scope():
        made = _flat(entry.run(**given, **attrs))
        return [_array(v) if tf.size(v) <= _FOLDED else v for v in made]


def _read(value: Any) -> Any:
    """A value as ops take it: variables are read where they are used, and texts are tensors."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return tf.constant(value)
    return value.read_value() if isinstance(value, Variable) else value


def _array(value: Any) -> np.ndarray:
    array = np.asarray(value.numpy(), object) if value.dtype is tf.string else np.asarray(value.numpy())
    return array


def _flat(result: Any) -> Sequence[Any]:
    """What a raw op gives, as a list of its outputs."""
    if result is None:
        return []
    return [v for part in result for v in _flat(part)] if isinstance(result, (list, tuple)) else [result]


def _begins(result: Any, names: Sequence[str]) -> dict[str, int]:
    """Where each named output begins among all, of which some are several tensors."""
    places, at = {}, 0
    for name, part in zip(names, result if names else (), strict=False):
        places[name] = at
        at += len(_flat(part))
    return places


def _known(value: Any) -> Any:
    """A value as an array, where it is a small integer tensor whose elements follow from shapes that are known."""
    if not isinstance(value, tf.Tensor) or not value.dtype.is_integer:
        return value
    if len(value.dims) > 1 or any(not isinstance(size, int) or size > _AXES for size in value.dims):
        return value
    static = tf.get_static_value(value)
    return value if static is None else np.asarray(static)


def plain_attribute(value: Any) -> Any:
    """An attribute as a raw op takes it: texts are no bytes."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return [plain_attribute(v) for v in value] if isinstance(value, list) else value


# -- what functions are made of ------------------------------------------------------------------------
def _reached(library: Library, bodies: Iterable[Body], stop: Collection[str] = ()) -> Iterator[Node]:
    """The nodes of some functions, and of those that they call."""
    seen, open_ = set[str](), list(bodies)
    while open_:
        body = open_.pop()
        for node in _needed(body, () if body.name else stop):
            yield node
            named = [called.name for called in _attributes(node)] + [node.op]
            for name in named:
                if name in library and name not in seen:
                    seen.add(name)
                    open_.append(library.body(name))


def lacking(library: Library, bodies: Iterable[Body], stop: Collection[str] = ()) -> list[str]:
    """The ops of some functions, and of those that they call, that are not here, sorted, each with one of its nodes.

    Args:
        stop: nodes of the file's own graph whose values are known.
    """
    used: dict[str, str] = {}
    for node in _reached(library, bodies, stop):
        used.setdefault(node.op, node.name)
    return [f"{op} (node {name!r})" for op, name in sorted(used.items()) if op not in library and find(op) is None]


def _attributes(node: Node) -> list[Called]:
    """The functions that a node names."""
    flat = [v for value in node.attrs.values() for v in (value if isinstance(value, list) else [value])]
    return [value for value in flat if isinstance(value, Called)]
