"""Graphs of ONNX files as plain data, checked: what is used is there, nothing depends on itself.

In: the messages of a model. Out: `Model`, whose graphs have their nodes in an order in which they can run. What the
nodes mean is for the tables of ops (`import_table.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from twofold.ir.spec import TensorSpec

from .import_tensors import ExternalData, Room, array_of, dtype_of, sparse_array

__all__ = ["Body", "Graph", "Model", "Node", "Reader", "domain_of", "reads_of", "walk"]

_DEEP = 40  # graphs within graphs
_LONG = 1 << 14  # bytes of a node's message that is kept
_FLOAT, _INT, _STRING, _TENSOR, _GRAPH, _FLOATS, _INTS, _STRINGS = 1, 2, 3, 4, 5, 6, 7, 8  # AttributeProto types
_SPARSE = 11


@dataclass(eq=False, slots=True)
class Node:
    """One application of an op.

    Attributes:
        op: its name.
        domain: "" for ONNX's own ops.
        version: of its domain that the model asks for.
        name: for messages.
        inputs, outputs: names of values; "" for those that are left out.
        attrs: plain values, arrays and graphs by name.
        refs: attributes that are those of the function around, by name.
        written: the message that it was made of, unless that is large.
    """

    op: str
    domain: str
    version: int
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: dict[str, Any]
    refs: dict[str, str]
    written: bytes

    def __str__(self) -> str:
        return f"{self.domain + '::' if self.domain else ''}{self.op}" + (f" {self.name!r}" if self.name else "")


@dataclass(eq=False, slots=True)
class Graph:
    """Nodes in an order in which they can run.

    Attributes:
        name: for messages.
        inputs: name and spec of each input that is no weight; None where a spec is not told.
        outputs: the same of outputs.
        weights: arrays by name.
        nodes: the nodes.
        dims: the sizes of each input: a number, the name of a dimension, or None.
    """

    name: str
    inputs: list[tuple[str, TensorSpec | None]]
    outputs: list[tuple[str, TensorSpec | None]]
    weights: dict[str, np.ndarray]
    nodes: list[Node]
    dims: list[tuple[int | str | None, ...] | None] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Body:
    """A function of a model, or of the standard: an op that is made of others."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    defaults: dict[str, Any]
    nodes: list[Node]


@dataclass(eq=False, slots=True)
class Model:
    """What a file holds.

    Attributes:
        graph: the main graph.
        functions: by domain and name.
        versions: of the sets of ops, by domain.
        room: how many bytes may still be made of the file.
    """

    graph: Graph
    functions: dict[tuple[str, str], Body]
    versions: dict[str, int]
    room: Room


def walk(nodes: Iterable[Node]) -> Iterator[Node]:
    """All nodes, and those of the graphs within them."""
    for node in nodes:
        yield node
        for value in node.attrs.values():
            if isinstance(value, Graph):
                yield from walk(value.nodes)


def domain_of(name: str) -> str:
    return "" if name == "ai.onnx" else name


class Reader:
    """Reads the messages of one model.

    Args:
        versions: of the sets of ops, by domain.
        external: the files beside it.
        room: what may be made of it.
    """

    def __init__(self, versions: Mapping[str, int], external: ExternalData, room: Room) -> None:
        self._versions, self._external, self._room = versions, external, room

    def graph(self, proto: Any, outer: frozenset[str] = frozenset(), depth: int = 0) -> Graph:
        """A graph.

        Args:
            proto: the message.
            outer: the names that graphs around it have.
            depth: how many there are.
        Raises:
            ValueError: it is not well formed.
        """
        if depth > _DEEP:
            raise ValueError(f"graphs lie more than {_DEEP} deep within one another")
        weights = {t.name: array_of(t, self._external, self._room) for t in proto.initializer}
        weights |= {t.values.name: sparse_array(t, self._external, self._room) for t in proto.sparse_initializer}
        given = [v for v in proto.input if v.name not in weights]
        names = [v.name for v in given]
        if len({*names}) != len(names) or "" in names or "" in weights:
            raise ValueError(f"graph {proto.name!r}: its inputs have no names of their own: {names}")
        nodes = self.nodes(proto.node, {*names, *weights}, outer, depth, proto.name)
        known = {*names, *weights, *(o for n in nodes for o in n.outputs)} | outer
        lost = [v.name for v in proto.output if v.name not in known or not v.name]
        if lost:
            raise ValueError(f"graph {proto.name!r}: nothing makes its outputs {lost}")
        specs = [_spec(v) for v in given]
        return Graph(proto.name, [(v.name, s[0]) for v, s in zip(given, specs, strict=True)],
                     [(v.name, _spec(v)[0]) for v in proto.output], weights, nodes, [s[1] for s in specs])

    def function(self, proto: Any, whole: bool = True) -> Body:
        """A function.

        Args:
            whole: whether it must make all of its outputs; the standard's leave out what nobody asks for.
        Raises:
            ValueError: it is not well formed.
        """
        reader = Reader({**self._versions, **{domain_of(o.domain): o.version for o in proto.opset_import}},
                        self._external, self._room)
        nodes = reader.nodes(proto.node, {*proto.input}, frozenset(), 0, proto.name)
        made = {*proto.input, *(o for n in nodes for o in n.outputs)}
        if whole and not {*proto.output} <= made:
            raise ValueError(f"function {proto.name!r}: nothing makes its outputs {sorted({*proto.output} - made)}")
        defaults = {a.name: reader._attribute(a, frozenset(), 0) for a in proto.attribute_proto}
        return Body(proto.name, tuple(proto.input), tuple(proto.output), defaults, nodes)

    def nodes(self, protos: Iterable[Any], given: set[str], outer: frozenset[str], depth: int,
              where: str) -> list[Node]:
        """Nodes in an order in which they can run.

        Raises:
            ValueError: a value is made twice or not at all, or depends on itself.
        """
        protos = list(protos)
        made = set(given)
        for proto in protos:
            for name in filter(None, proto.output):
                if name in made:
                    raise ValueError(f"graph {where!r}: the value {name!r} is made twice")
                made.add(name)
        visible = frozenset(made | outer)
        nodes = [self._node(p, visible, depth) for p in protos]
        wanted = [reads_of(n) for n in nodes]
        lost = sorted({name for names in wanted for name in names} - visible)
        if lost:
            raise ValueError(f"graph {where!r}: nothing makes {lost[:8]}, which nodes read")
        return _in_order(nodes, wanted, given | outer, where)

    def _node(self, proto: Any, visible: frozenset[str], depth: int) -> Node:
        domain = domain_of(proto.domain)
        attrs = {a.name: self._attribute(a, visible, depth) for a in proto.attribute if not a.ref_attr_name}
        refs = {a.name: a.ref_attr_name for a in proto.attribute if a.ref_attr_name}
        written = proto.SerializeToString() if proto.ByteSize() <= _LONG else b""
        return Node(proto.op_type, domain, self._versions.get(domain, 0), proto.name, tuple(proto.input),
                    tuple(proto.output), attrs, refs, written)

    def _attribute(self, a: Any, visible: frozenset[str], depth: int) -> Any:
        if a.type == _FLOAT:
            return a.f
        if a.type == _INT:
            return a.i
        if a.type == _STRING:
            return a.s.decode("utf-8", "replace")
        if a.type in (_FLOATS, _INTS):
            return list(a.floats if a.type == _FLOATS else a.ints)
        if a.type == _STRINGS:
            return [s.decode("utf-8", "replace") for s in a.strings]
        if a.type == _TENSOR:
            return array_of(a.t, self._external, self._room)
        if a.type == _SPARSE:
            return sparse_array(a.sparse_tensor, self._external, self._room)
        if a.type == _GRAPH:
            return self.graph(a.g, visible, depth + 1)
        raise ValueError(f"attribute {a.name[:80]!r} is of type {a.type}, which is not read")


def reads_of(node: Node) -> set[str]:
    """The names that a node reads, those of the graphs within it included, as far as these do not make them."""
    names = {n for n in node.inputs if n}
    for value in node.attrs.values():
        if isinstance(value, Graph):
            own = {*(n for n, _ in value.inputs), *value.weights, *(o for n in value.nodes for o in n.outputs)}
            inner = {name for n in value.nodes for name in reads_of(n)} | {n for n, _ in value.outputs}
            names |= inner - own
    return names


def _in_order(nodes: list[Node], wanted: list[set[str]], given: set[str] | frozenset[str], where: str) -> list[Node]:
    """The nodes sorted so that each comes after what it reads; those that are sorted stay as they are."""
    makers = {name: i for i, n in enumerate(nodes) for name in n.outputs if name}
    waits = [{makers[name] for name in names if name in makers and name not in given} for names in wanted]
    readers: dict[int, list[int]] = {}
    for i, before in enumerate(waits):
        for j in before:
            readers.setdefault(j, []).append(i)
    open_ = [len(w) for w in waits]
    if all(j < i for i, before in enumerate(waits) for j in before):
        return nodes
    ready = [i for i, count in enumerate(open_) if not count]
    order: list[int] = []
    for i in ready:
        order.append(i)
        for j in readers.get(i, ()):
            open_[j] -= 1
            if not open_[j]:
                ready.append(j)
    if len(order) != len(nodes):
        stuck = [str(nodes[i]) for i in range(len(nodes)) if open_[i]]
        raise ValueError(f"graph {where!r}: nodes depend on themselves: {', '.join(stuck[:4])}")
    return [nodes[i] for i in order]


def _spec(value: Any) -> tuple[TensorSpec | None, tuple[int | str | None, ...] | None]:
    """What is told of an input or output: its spec, and its sizes, some of which may be names."""
    if value.type.WhichOneof("value") != "tensor_type" or not value.type.tensor_type.elem_type:
        return None, None
    kind = value.type.tensor_type
    dtype = dtype_of(kind.elem_type, f"value {value.name!r}")
    if not kind.HasField("shape"):
        return TensorSpec(None, dtype, value.name), None
    sizes: list[int | str | None] = []
    for d in kind.shape.dim:
        which = d.WhichOneof("value")
        sizes.append(d.dim_value if which == "dim_value" and d.dim_value >= 0 else d.dim_param or None)
    if len(sizes) > 32:
        raise ValueError(f"value {value.name!r} has {len(sizes)} axes")
    return TensorSpec([s if isinstance(s, int) else None for s in sizes], dtype, value.name), tuple(sizes)
