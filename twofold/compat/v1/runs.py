"""The runs of sessions: the part of a graph that certain fetches need, given certain feeds, as one compiled function.

Operations that must run before a fetch run with it. Assignments take effect at the end, the last for each variable, in
the order in which the operations were made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import twofold as tf
from twofold.eager.constructs import run_construct
from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir import ops
from twofold.ir.dims import Dim
from twofold.ir.errors import FailedPreconditionError, InvalidArgumentError
from twofold.ir.replay import replay
from twofold.tracer.staging import restage
from twofold.tracer.symbolic import SymbolicTensor

from .graph import Graph
from .operations import Deferred, Operation

__all__ = ["Run"]


class Run:
    """A run of certain fetches with certain feeds: one compiled function, or ops one by one where Python makes some
    values."""

    def __init__(self, graph: Graph, fetches: Sequence[Any], keys: Sequence[Any]) -> None:
        self._graph, self._keys = graph, keys
        self._kept = fetches  # kept alive, since the run is looked up by their identities
        self._wanted = [f for f in fetches if not isinstance(f, Operation)]
        need = _Need(graph, keys)
        for fetch in fetches:
            need.add(fetch)
        self._operations = need.ordered()
        updates = {id(variable): (variable, value) for o in self._operations for variable, value in o.updates}
        self._updates = list(updates.values())
        self._part = _Part(graph, need)
        python = any(isinstance(t, Deferred) and t._python for t in need.deferred)
        self._function = self._trace if python else tf.function(self._trace, autograph=False)
        self._set_now = {id(v) for o in self._operations if o.initialises for v, _ in o.updates}

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        graph = self._graph
        for variable in (*self._part.variables, *[f for f in self._wanted if isinstance(f, tf.Variable)]):
            if id(variable) in graph.uninitialised and id(variable) not in self._set_now:
                raise FailedPreconditionError(f"Attempting to use uninitialized value {variable.name[:-2]}")
        outputs = self._function(*values)
        graph.uninitialised -= {id(variable) for variable, _ in self._updates}
        return [t.numpy() for t in outputs]

    def _trace(self, *fed: Any) -> list[Any]:
        """The fetched values."""
        known: dict[Any, Any] = {}
        for key, tensor in zip(self._keys, fed, strict=True):
            known[id(key) if isinstance(key, Deferred) else key.value] = tensor
        known.update(self._part.values(known))
        values = [tf.identity(f) if isinstance(f, tf.Variable) else _value(f, known) for f in self._wanted]
        new = [_value(value, known) for _, value in self._updates]
        for (variable, _), value in zip(self._updates, new, strict=True):
            variable.assign(value)
        return values


def _not_fed(name: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"You must feed a value for placeholder tensor {name.partition(':')[0]!r}")


def _value(tensor: Any, known: dict[Any, Any]) -> Any:
    """The value that a tensor of the graph has in this run."""
    if not isinstance(tensor, SymbolicTensor):
        return tensor
    if not isinstance(tensor, Deferred):
        return known[tensor.value]
    if id(tensor) not in known:
        made = tensor._make([_value(x, known) for x in tensor._inputs])
        known[id(tensor)] = made[tensor._output]
    return known[id(tensor)]


class _Need:
    """The parts of a graph that fetches need, given the values that are fed.

    Attributes:
        values: of the graph, whose tensors are fetched or used by deferred tensors.
        reached: all values that are needed, and those that are fed.
        nodes: the nodes that are needed.
        deferred: the tensors of unknown rank that are needed.
        given: the values that are fed.
    """

    def __init__(self, graph: Graph, keys: Sequence[Any]) -> None:
        self._graph = graph
        self._sources = _sources(graph)
        self._fed = {id(k) for k in keys}
        self.given = [k.value for k in keys if not isinstance(k, Deferred)]
        self.values: dict[g.Value, None] = {}
        self.reached: set[g.Value] = set(self.given)
        self.nodes: set[g.Node] = set()
        self.deferred: list[Deferred] = []
        self._operations: dict[int, Operation] = {}
        self._seen: set[int] = set()

    def ordered(self) -> list[Operation]:
        """The operations that run, in their order."""
        return [self._operations[n] for n in sorted(self._operations)]

    def add(self, fetch: Any) -> None:
        """Add a fetch and everything that it needs."""
        pending = [fetch]
        while pending:
            item = pending.pop()
            if isinstance(item, Operation):
                pending += self._operation(item)
            elif isinstance(item, g.Node):
                pending += self._node(item)
            elif isinstance(item, g.Value):
                pending += self._value(item)
            elif isinstance(item, SymbolicTensor):
                pending += self._tensor(item)

    def _operation(self, operation: Operation) -> list[Any]:
        if operation.number in self._operations:
            return []
        self._operations[operation.number] = operation
        return [*operation.after, *operation.nodes, *[value for _, value in operation.updates]]

    def _tensor(self, tensor: SymbolicTensor) -> list[Any]:
        if id(tensor) in self._fed or id(tensor) in self._seen:
            return []
        self._seen.add(id(tensor))
        if not isinstance(tensor, Deferred):
            self.values[tensor.value] = None
            return [tensor.value]
        if tensor._make is None:
            raise _not_fed(tensor.name)
        self.deferred.append(tensor)
        return [x for x in tensor._inputs if isinstance(x, SymbolicTensor)]

    def _value(self, value: g.Value) -> list[Any]:
        if value in self.reached:
            return []
        self.reached.add(value)
        default = self._graph.defaults.get(value)
        sizes = self._behind(value.dims)
        if default is not None:
            return [default, *sizes]
        return sizes if value.node is None else [value.node, *sizes]

    def _node(self, node: g.Node) -> list[Any]:
        if node.outputs and node.outputs[0].node is not None:
            node = node.outputs[0].node  # it was replaced by a node that has residuals too
        if node in self.nodes:
            return []
        self.nodes.add(node)
        return [*node.inputs, *self._graph.controls.get(node, ()), *self._behind(tuple(node.attrs.values()))]

    def _behind(self, sized: Any) -> list[Any]:
        """The values and nodes that bind the unknown sizes in dimensions or attributes."""
        names = dm.symbols_of(_dims_in(sized))
        return [self._sources[name] for name in sorted(names) if name in self._sources]


def _dims_in(sized: Any) -> list[Dim]:
    if isinstance(sized, Dim):
        return [sized]
    if isinstance(sized, (tuple, list)):
        return [d for part in sized for d in _dims_in(part)]
    return []


def _sources(graph: Graph) -> dict[str, Any]:
    """For each unknown size the value whose shape has it, or the node that binds it."""
    whole = graph.trace.graph
    sources: dict[str, Any] = {}
    for value in whole.inputs:
        _note(value, sources)
    for node in whole.nodes:
        if node.op is g.BIND:
            sources[node.attrs["symbol"]] = node
        for value in node.outputs:
            _note(value, sources)
    return sources


def _note(value: g.Value, sources: dict[str, Any]) -> None:
    for d in value.dims or ():
        if isinstance(d, Dim) and (name := d.name_alone()) is not None:
            sources.setdefault(name, value)


class _Part:
    """The needed nodes of a graph as a graph of their own."""

    def __init__(self, graph: Graph, need: _Need) -> None:
        whole, given = graph.trace.graph, set(need.given)
        self._graph = g.Graph("session")
        self._wanted = list(need.values)
        self._given = need.given
        self._captured: list[Any] = []
        copies = {v: self._graph.add_input(v.dims, v.dtype, v.name) for v in self._given}
        captured = dict(zip(whole.inputs, graph.trace.input_sources(), strict=True))
        late = []
        for value in whole.inputs:
            if value not in need.reached or value in given:
                continue
            if value in graph.defaults:
                late.append(value)
                continue
            if captured[value] is None:
                raise _not_fed(value.name)
            copies[value] = self._graph.add_input(value.dims, value.dtype, value.name)
            self._captured.append(captured[value])
        for node in whole.nodes:
            self._defaults(graph, late, copies)
            if node in need.nodes:
                new = self._graph.add(node.op, [copies[v] for v in node.inputs], node.attrs, node.outputs, node.regions,
                                      node.loc)
                copies.update({v: c for v, c in zip(node.outputs, new.outputs, strict=True) if v not in given})
        self._defaults(graph, late, copies)
        self._graph.outputs = [copies[v] for v in self._wanted]
        self.variables = [c for c in self._captured if isinstance(c, tf.Variable)]

    def _defaults(self, graph: Graph, late: list[g.Value], copies: dict[g.Value, g.Value]) -> None:
        """Replace placeholders that are not fed by their defaults, as soon as these are computed."""
        for value in [v for v in late if graph.defaults[v] in copies]:
            late.remove(value)
            new = self._graph.add(ops.identity, [copies[graph.defaults[value]]], {}, [value])
            copies[value] = new.outputs[0]

    def values(self, known: dict[Any, Any]) -> dict[g.Value, Any]:
        """The wanted values: in the trace that is under way, or now."""
        inputs = [*[known[v] for v in self._given],
                  *[c._read_tensor() if isinstance(c, tf.Variable) else c for c in self._captured]]
        construct = run_construct if tf.executing_eagerly() else restage
        return dict(zip(self._wanted, replay(self._graph, inputs, construct), strict=True))
