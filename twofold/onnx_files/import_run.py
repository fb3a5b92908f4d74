"""Runs an imported graph on values: in a trace, where ops become nodes, or at once.

Nodes whose inputs are all known are computed when the graph is traced, and shapes are followed through the arithmetic
by which models compute them. An op that the table has not is run by its definition: a function of the model, or the one
that the standard gives for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._formats.node_errors import FAULTS, NodeError
from twofold.ir.dims import Dim
from twofold.ir.errors import OpError

from .import_graph import Body, Graph, Model, Node, reads_of, walk
from .import_standard import body_of
from .import_table import FOLDED, Call, Entry, TooLarge, find
from .import_values import ChannelsLast, NeedsSizes, Sizes, Value, plain, tensor_of

__all__ = ["Run"]

_STEPS = 5_000  # nodes that functions and graphs within others may become, and for each node of the file
_STEPS_EACH = 64  # more


class _Names:
    """The values of a graph by name, and behind them those of the graphs around it."""

    __slots__ = ("values", "outer")

    def __init__(self, values: dict[str, Value], outer: _Names | None) -> None:
        self.values, self.outer = values, outer

    def find(self, name: str) -> Value:
        """The value of a name."""
        names: _Names | None = self
        while names is not None:
            if name in names.values:
                return names.values[name]
            names = names.outer
        raise ValueError(f"nothing made the value {name!r}")


class Run:
    """One run of a model's graph.

    Args:
        model: the model.
        weights: for a graph and the name of a weight the value to use.
    """

    def __init__(self, model: Model, weights: Callable[[Graph, str], Value]) -> None:
        self._model, self._weights = model, weights
        self._most = self._left = _STEPS + _STEPS_EACH * sum(1 for _ in walk(model.graph.nodes))

    def graph(self, graph: Graph, given: Sequence[Value], outer: _Names | None = None) -> list[Value]:
        """The outputs of a graph for values of its inputs."""
        if len(given) != len(graph.inputs):
            raise ValueError(f"graph {graph.name!r} takes {len(graph.inputs)} inputs; {len(given)} are given")
        if outer is not None:
            self._spend(len(graph.nodes) + 1)
        values = {name: self._weights(graph, name) for name in graph.weights}
        values |= {name: value for (name, _), value in zip(graph.inputs, given, strict=True)}
        names = _Names(values, outer)
        self._nodes(graph.nodes, names, {})
        return [names.find(name) for name, _ in graph.outputs]

    def _spend(self, count: int) -> None:
        """Count nodes that functions and graphs within graphs become, which may call each other often."""
        self._left -= count
        if self._left < 0 and tf.inside_function():
            raise ValueError(f"its functions and inner graphs become more than {self._most:,} nodes")

    def _nodes(self, nodes: Sequence[Node], names: _Names, attrs: Mapping[str, Any]) -> None:
        reads = Counter(name for node in nodes for name in reads_of(node))
        for node in nodes:
            inputs = [_shared(names.find(name), reads[name]) if name else None for name in node.inputs]
            try:
                outputs = self._node(node, inputs, names, attrs)
            except NeedsSizes:
                raise
            except (NodeError, OpError, *FAULTS) as e:
                raise NodeError(node, e) from e
            for name, value in zip(node.outputs, outputs, strict=False):
                if name:
                    names.values[name] = value

    def _node(self, node: Node, inputs: list[Value], names: _Names, attrs: Mapping[str, Any]) -> Sequence[Value]:
        own = {**node.attrs, **{k: attrs[r] for k, r in node.refs.items() if r in attrs}}
        local = self._model.functions.get((node.domain, node.op))
        if local is not None:
            return self._body(local, inputs, own)
        entry = find(node.domain, node.op, node.version)
        if entry is None:
            return self._body(body_of(node, own, inputs), inputs, own)
        call = Call(node, own, lambda graph, given: self.graph(graph, given, names))
        return _results(entry, call, inputs)

    def _body(self, body: Body, inputs: list[Value], own: Mapping[str, Any]) -> list[Value]:
        self._spend(len(body.nodes))
        given = [*inputs, *[None] * (len(body.inputs) - len(inputs))]
        names = _Names(dict(zip(body.inputs, given, strict=True)), None)
        self._nodes(body.nodes, names, {**body.defaults, **own})
        return [names.values.get(name) for name in body.outputs]


def _shared(value: Value, reads: int) -> Value:
    """A value as its readers get it: where there are several, it is made once."""
    return ChannelsLast(value.kept) if isinstance(value, ChannelsLast) and value.scaled and reads > 1 else value


def _results(entry: Entry, call: Call, inputs: list[Value]) -> Sequence[Value]:
    given = [v for v in inputs if v is not None]
    known = all(isinstance(v, (np.ndarray, Sizes)) for v in given)
    if known and entry.sizes is not None and all(_integers(v) for v in given):
        made = entry.sizes(call, *[v.array if isinstance(v, Sizes) else v for v in given])
        if made is not NotImplemented:
            return [_sizes_or_array(made, _first_dtype(given))]
    if entry.folds and given and all(isinstance(v, np.ndarray) for v in given) \
            and sum(v.size for v in given) <= FOLDED:
        call.folding = True
        try:
            with tf.init_scope():
                return [_kept(v) for v in _called(entry, call, inputs)]
        except TooLarge:
            call.folding = False
    return _called(entry, call, inputs)


def _called(entry: Entry, call: Call, inputs: list[Value]) -> Sequence[Value]:
    ready = inputs if entry.layout else [v if i in entry.static and not isinstance(v, ChannelsLast) else tensor_of(v)
                                         for i, v in enumerate(inputs)]
    made = entry.run(call, *ready)
    return made if isinstance(made, tuple) else (made,)


def _kept(value: Value) -> Value:
    value = plain(value)
    return np.asarray(value.numpy()) if isinstance(value, tf.Tensor) else value


def _integers(value: Value) -> bool:
    return isinstance(value, Sizes) or (value.dtype.kind in "iub" and value.size <= 4096)


def _first_dtype(given: Sequence[Value]) -> Any:
    value = next((v for v in given if isinstance(v, Sizes)), given[0])
    return value.dtype if isinstance(value, Sizes) else tf.as_dtype(value.dtype)


def _sizes_or_array(made: Any, dtype: Any) -> Value:
    if isinstance(made, Sizes):
        made, dtype = made.array, made.dtype
    array = np.asarray(made)
    if array.dtype != object:
        return array
    if any(isinstance(x, Dim) for x in array.ravel()):
        return Sizes(array, dtype)
    return np.array(array.tolist(), dtype.np).reshape(array.shape)
