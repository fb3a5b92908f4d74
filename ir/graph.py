"""The graph IR: SSA values, nodes, and regions for control flow.

A graph is a list of nodes in program order. It is pure: variables enter as values and leave as values, and what must
happen in order (a call of Python, a draw from a random stream, an assertion) is a node with an effect, which passes
neither drop nor reorder. A node is an op of the registry, or one of the constructs below.

    graph      inputs, nodes, outputs; unknown sizes are symbols (`ir/dims.py`), bound by the shapes of the inputs
    node       op or construct, operands, attributes, results, regions, the user's line
    region     a graph of its own whose inputs are exactly the operands that its construct hands to it: nothing of
               the surrounding graph is visible inside, except the symbols of its dimensions

This module owns the structure. The text form is `ir/graph_text.py`, checking `ir/verify.py`, running a graph op by op
`ir/replay.py`, transformations `ir/passes/`, gradients `ir/autodiff.py`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from . import dtypes as dt
from .dims import Dim, DimLike, Guard, Shape
from .dtypes import DType
from .op import Op
from .spec import TensorSpec, spec
from .types import Attrs, Spec

if TYPE_CHECKING:
    import networkx

    from .node_def import GraphDef, NodeDef

__all__ = ["Value", "Node", "Graph", "Location", "Construct", "CONSTRUCTS", "CONSTANT", "SIZE", "BIND", "COND",
           "WHILE", "CALL", "HOST", "ASSERT", "CUSTOM", "PUSH", "POP", "effect_of", "is_pure",
           "constant_of", "complete", "shows"]


class Location(NamedTuple):
    """A place in the user's source."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file.rpartition('/')[2]}:{self.line}"


class Construct:
    """A kind of node that is no op: it has regions, an effect, or a meaning outside of values.

    Attributes:
        name: as IR text spells it; no op has it.
        effect: None, or what orders it: nodes of one effect keep their order and are never dropped.
    """

    def __init__(self, name: str, doc: str, effect: str | None = None, regions: int = 0) -> None:
        self.name, self.__doc__, self.effect, self.regions = name, doc, effect, regions
        CONSTRUCTS[name] = self

    def __repr__(self) -> str:
        return f"<construct {self.name}>"


CONSTRUCTS: dict[str, Construct] = {}

CONSTANT = Construct("constant", "constant() {value: a read-only array} -> its value.")
SIZE = Construct("size_of", "size_of() {size: a Dim, dtype: int32 or int64} -> the number, a scalar.")
BIND = Construct("bind", "bind(x) {symbol: a name}: the size `symbol` is the value of the integer scalar x; negative "
                         "is an error. Everything that uses the symbol comes later.", effect="bind")
COND = Construct("cond", "cond(predicate, *operands) regions (then, otherwise), both over operands: the results of "
                         "one of them.", regions=2)
WHILE = Construct("while", "while(*values) {carried: n, trips: a Dim, int or None} regions (test, body), both over all "
                           "values: test gives a bool scalar, body the next of the first n values; results: the last "
                           "of them. `trips`, where known, is at least the number of rounds.", regions=2)
CALL = Construct("call", "call(*operands) {name, sizes: ((symbol, Dim), ...)} region (callee): the callee's results; "
                         "sizes gives the callee's symbols in terms of the caller's.", regions=1)
HOST = Construct("host", "host(*operands) {fn: called with tensors, gives tensors of the results' dtypes and shapes; "
                         "name} -> the results.", effect="host")
ASSERT = Construct("assert", "assert(condition, *data) {message, summarize, error}: an error with the message and the "
                             "data unless the bool scalar holds.", effect="host")

CUSTOM = Construct("custom", "custom(*results, *inputs, *captured) {results: n, inputs: m, given: a bool for each of "
                             "the inputs} region (backward): its results are the first n operands. Their gradient is "
                             "the region's alone: from a cotangent for each result, the inputs and what is captured "
                             "it gives one for each input that is `given`, and none to other operands.", regions=1)
PUSH = Construct("push", "push(stack, value, at) {add: bool} -> the stack, a vector, with the elements of `value` "
                         "in row-major order from number `at` (int64) on; with `add` they are added to what is there. "
                         "A stack that is too short grows, at least doubling, by zeros. Nothing else reads the operand "
                         "`stack` afterwards, so that what a push made may be written in place. With `told` n, in "
                         "cotangents of the stack the element number `at - n` tells whether the item has one.")
POP = Construct("pop", "pop(stack, at) {dims} -> the elements of the stack from number `at` on, in the shape `dims`; "
                       "`told` as for push. With `begins` others read the item, too: its cotangent begins with what is "
                       "there in that of the stack, in whose place it is put.")


class Value:
    """One SSA value: a result of a node, or an input of a graph. A spec, as shape rules take it."""

    __slots__ = ("dims", "dtype", "node", "index", "name")

    def __init__(self, dims: Sequence[DimLike], dtype: DType, node: Node | None = None, index: int = 0,
                 name: str = "") -> None:
        self.dims: Shape = tuple(dims)
        self.dtype = dtype
        self.node = node
        self.index = index
        self.name = name

    @property
    def spec(self) -> TensorSpec:
        """Shape and dtype."""
        return TensorSpec(self.dims, self.dtype)

    def __repr__(self) -> str:
        of = "input" if self.node is None else self.node.op.name
        return f"<value {self.dtype.short}[{','.join(map(str, self.dims))}] of {of}>"


class Node:
    """One operation: `outputs = op(inputs; attrs) regions`."""

    __slots__ = ("op", "inputs", "attrs", "outputs", "regions", "loc")

    def __init__(self, op: Op | Construct, inputs: Sequence[Value], attrs: Attrs,
                 specs: Sequence[Spec], regions: Sequence[Graph] = (), loc: Location | None = None) -> None:
        """Args:
            specs: one for each result.
        """
        self.op = op
        self.inputs = list(inputs)
        self.attrs = attrs
        self.regions = tuple(regions)
        self.loc = loc
        self.outputs = [Value(s.dims, s.dtype, self, i) for i, s in enumerate(specs)]

    def __repr__(self) -> str:
        return f"<node {self.op.name}>"


class Graph:
    """A function of tensors: inputs, nodes in order, outputs."""

    __slots__ = ("name", "inputs", "nodes", "outputs", "guards", "derived")

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self.inputs: list[Value] = []
        self.nodes: list[Node] = []
        self.outputs: list[Value] = []
        self.guards: list[Guard] = []  # what was assumed of unknown sizes
        self.derived: dict[Hashable, Any] = {}  # graphs derived from this one and kept with it, such as its gradient

    def add_input(self, dims: Sequence[DimLike], dtype: DType, name: str = "") -> Value:
        """A new input, after those there are."""
        value = Value(dims, dtype, None, len(self.inputs), name)
        self.inputs.append(value)
        return value

    def add(self, op: Op | Construct, inputs: Sequence[Value], attrs: Attrs, specs: Sequence[Spec],
            regions: Sequence[Graph] = (), loc: Location | None = None) -> Node:
        """Appends a node; its operands must be inputs of this graph or results of nodes before."""
        node = Node(op, inputs, attrs, specs, regions, loc)
        self.nodes.append(node)
        return node

    def constant(self, array: np.ndarray, loc: Location | None = None) -> Value:
        """A new constant with the value of `array`, which must not change afterwards."""
        dtype = dt.from_numpy(array.dtype)
        return self.add(CONSTANT, (), {"value": array}, (spec(array.shape, dtype),), (), loc).outputs[0]

    def walk(self) -> Iterator[Node]:
        """All nodes, those in regions after the node that they belong to."""
        for node in self.nodes:
            yield node
            for region in node.regions:
                yield from region.walk()

    def uses(self) -> dict[Value, list[Node | None]]:
        """Who reads each value: nodes of this graph, in order, and None for the graph's outputs."""
        readers: dict[Value, list[Node | None]] = {}
        for node in self.nodes:
            for value in node.inputs:
                readers.setdefault(value, []).append(node)
        for value in self.outputs:
            readers.setdefault(value, []).append(None)
        return readers

    def symbols(self) -> frozenset[str]:
        """The names of the sizes that the shapes of the inputs bind."""
        return frozenset().union(*[d.symbols() for v in self.inputs for d in v.dims if isinstance(d, Dim)])

    def copy(self) -> Graph:
        """A graph of new nodes and values; regions are copied too, attributes are shared."""
        return self.copy_with()[0]

    def copy_with(self) -> tuple[Graph, dict[Value, Value]]:
        """A copy, and the new value for each old one of this graph (not of its regions)."""
        new = Graph(self.name)
        copies: dict[Value, Value] = {v: new.add_input(v.dims, v.dtype, v.name) for v in self.inputs}
        for node in self.nodes:
            copy = new.add(node.op, [copies[v] for v in node.inputs], node.attrs, node.outputs,
                           [r.copy() for r in node.regions], node.loc)
            for old, out in zip(node.outputs, copy.outputs, strict=True):
                out.name = old.name
                copies[old] = out
        new.outputs = [copies[v] for v in self.outputs]
        new.guards = list(self.guards)
        return new, copies

    def to_networkx(self) -> networkx.DiGraph:
        """The dataflow as a `networkx.DiGraph`; see `graph_views.to_networkx`."""
        return _SHOWN["networkx"](self)

    def to_dot(self) -> str:
        """The graph in the language of Graphviz; see `graph_views.to_dot`."""
        return str(_SHOWN["dot"](self))

    def to_html(self, path: str | os.PathLike[str] | None = None, inputs: Sequence[np.ndarray] | None = None,
                fast_math: bool = False) -> str:
        """The graph as a page to look around in; see `graph_views.to_html`."""
        return str(_SHOWN["html"](self, path, inputs, fast_math))

    def _repr_html_(self) -> str:
        return str(_SHOWN["notebook"](self))

    def get_operations(self) -> list[NodeDef]:
        """The nodes by name, in program order: inputs first, results last; each has `name`, `type` and `inputs`."""
        return self.as_graph_def().node

    def get_operation_by_name(self, name: str) -> NodeDef:
        """The node of a name.

        Raises:
            KeyError: there is none.
        """
        for node in self.get_operations():
            if node.name == name:
                return node
        raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")

    def as_graph_def(self) -> GraphDef:
        """The nodes by name, as TensorFlow lists them; see `graph_def.graph_def`."""
        definition: GraphDef = _SHOWN["definition"](self)
        return definition

    def __str__(self) -> str:
        return str(_SHOWN["text"](self))

    def __repr__(self) -> str:
        return f"<graph {self.name}: {len(self.inputs)} inputs, {len(self.nodes)} nodes, {len(self.outputs)} outputs>"


_SHOWN: dict[str, Callable[..., Any]] = {}  # form -> (graph, ...) -> the graph in that form
_Show = TypeVar("_Show", bound=Callable[..., Any])


def shows(form: str) -> Callable[[_Show], _Show]:
    """Makes the decorated function the one that shows graphs in a form: "text" (`graph_text.py`), "definition"
    (`graph_def.py`), "networkx", "dot", "html" or "notebook" (`graph_views.py`)."""
    def add(show: _Show) -> _Show:
        _SHOWN[form] = show
        return show
    return add


def effect_of(node: Node) -> str | None:
    """The effect by which `node` is ordered: its own, or "host" where a region holds a node with an effect."""
    if isinstance(node.op, Construct):
        if node.op.effect is not None:
            return node.op.effect
        if any(effect_of(inner) is not None for region in node.regions for inner in region.nodes):
            return "host"
        return None
    if "effect" not in node.op.traits:
        return None
    return "host" if "exchange" in node.op.traits else "random"


def is_pure(node: Node) -> bool:
    """Whether `node` may be dropped when nothing reads it, merged with an equal one, and moved."""
    return effect_of(node) is None


def constant_of(value: Value) -> np.ndarray | None:
    """The array of a constant; None for any other value."""
    node = value.node
    return node.attrs["value"] if node is not None and node.op is CONSTANT else None


def complete(op: Op, attrs: Attrs) -> Attrs:
    """All attributes of an op in the order of its declaration.

    Raises:
        TypeError: there is one too many, or one is missing.
    """
    full = {**op.defaults, **attrs}
    if len(full) != len(op.defaults):
        raise TypeError(f"{op.name}: unexpected attributes {sorted(set(full) - set(op.defaults))}")
    for name, value in full.items():
        if value is inspect.Parameter.empty:
            raise TypeError(f"{op.name}: attribute {name!r} is missing")
    return full
