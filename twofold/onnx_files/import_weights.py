"""Which arrays of a model become variables, how they are kept, and which inputs a trace must know.

An array of floats becomes a variable, unless a node must know its elements when the model is traced, or it is a scalar
(a constant of some formula). Running means and variances are variables that are not trained. Filters of convolutions
are kept in the order that ours have, if nothing else reads them; so are other weights that ops would turn in each call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

import twofold as tf
from twofold.eager.variable import Variable

from .import_graph import Graph, Model, Node, walk
from .import_table import Entry, find
from .import_values import Turned, Value

__all__ = ["Weights", "by_value"]

_SHAPE_ALONE = frozenset({"Shape", "Size"})  # what they give says nothing of elements
#: the ops of which single numbers are weights; others take constants of formulas
_WEIGHED = frozenset({"Add", "Gemm", "MatMul", "Conv", "ConvTranspose", "PRelu", "BatchNormalization",
                      "LayerNormalization", "RMSNormalization", "GroupNormalization", "InstanceNormalization",
                      "LinearRegressor", "LinearClassifier"})
_COEFFICIENTS = frozenset({"LinearRegressor", "LinearClassifier"})


def _entry(node: Node) -> Entry | None:
    return find(node.domain, node.op, node.version)


#: a node that reads a weight, what it means, and as which input it does
Use: TypeAlias = tuple[Node, Entry | None, int]


def _uses(graph: Graph) -> Iterator[tuple[str, Use]]:
    for node in walk(graph.nodes):
        entry = _entry(node)
        for place, name in enumerate(node.inputs):
            if name:
                yield name, (node, entry, place)


def _known_names(graph: Graph) -> set[str]:
    """The values that nodes must know when the model is traced, and all that these are computed from."""
    makers = {name: n for n in walk(graph.nodes) for name in n.outputs if name}
    todo = [name for name, (_, entry, place) in _uses(graph) if entry is not None and place in entry.static
            and _decides(entry)]
    known: set[str] = set()
    while todo:
        name = todo.pop()
        if name in known:
            continue
        known.add(name)
        maker = makers.get(name)
        if maker is not None and maker.op not in _SHAPE_ALONE:
            todo += [n for n in maker.inputs if n]
            todo += [n for v in maker.attrs.values() if isinstance(v, Graph) for n, _ in v.outputs]
    return known


def _decides(entry: Entry) -> bool:
    """Whether the static inputs of an op must be known; some are only looked at, to be quick where they are."""
    return entry.name not in ("Gather", "GatherElements", "ScatterElements", "Scatter", "If", "Loop", "Compress",
                              "Identity")


def by_value(graph: Graph) -> list[int]:
    """The inputs of a graph whose values a trace must know: integers, and short lists of numbers."""
    known = _known_names(graph)
    chosen = []
    for place, (name, spec) in enumerate(graph.inputs):
        small = spec is not None and (spec.shape.rank is None or spec.shape.rank <= 1)
        if name in known and small:
            chosen.append(place)
    return chosen


class Weights:
    """The arrays of a model, as variables or constants.

    Attributes:
        variables: by name.
    """

    def __init__(self, model: Model) -> None:
        self.variables: dict[str, Variable] = {}
        self._turned: dict[tuple[int, str], tuple[int, ...]] = {}
        self._names: dict[tuple[int, str], str] = {}
        _extract_coefficients(model.graph)
        known = _known_names(model.graph)
        uses: dict[str, list[Use]] = {}
        for name, use in _uses(model.graph):
            uses.setdefault(name, []).append(use)
        for graph in _graphs(model.graph):
            outputs = {name for name, _ in graph.outputs}
            for name in list(graph.weights):  # each array goes when its variable is there
                array = graph.weights[name]
                if _varies(array, uses.get(name, [])) and name not in known:
                    self._add(graph, name, array, uses.get(name, []) if name not in outputs else [])

    def _add(self, graph: Graph, name: str, array: np.ndarray, uses: list[Use]) -> None:
        key = (id(graph), name)
        perm = _kept_order(uses, array.ndim)
        if perm is not None:
            self._turned[key] = perm
            array = np.ascontiguousarray(array.transpose(perm))
        frozen = bool(uses) and all(entry is not None and place in entry.frozen for _, entry, place in uses)
        own = name if name not in self.variables else f"{name}_{len(self.variables)}"
        self._names[key] = own
        self.variables[own] = tf.Variable(array, trainable=not frozen, name=own)
        graph.weights[name] = np.empty(0, array.dtype)  # the variable has it

    def value(self, graph: Graph, name: str) -> Value:
        """The value of a weight of a graph."""
        own = self._names.get((id(graph), name))
        if own is None:
            return graph.weights[name]
        tensor = tf.convert_to_tensor(self.variables[own])
        perm = self._turned.get((id(graph), name))
        return tensor if perm is None else Turned(tensor, perm)


def _varies(array: np.ndarray, uses: list[Use]) -> bool:
    """Whether an array is a weight: floats with an axis; a single one where an op takes weights there."""
    if not np.ndim(array) or not tf.as_dtype(array.dtype).is_floating:
        return False
    return array.size != 1 or any(node.op in _WEIGHED and place for node, _, place in uses)


def _graphs(graph: Graph) -> Iterator[Graph]:
    yield graph
    for node in graph.nodes:
        for value in node.attrs.values():
            if isinstance(value, Graph):
                yield from _graphs(value)


def _kept_order(uses: list[Use], rank: int) -> tuple[int, ...] | None:
    """The order of axes in which a weight is kept, where all that reads it reads it so."""
    orders = set()
    for node, entry, place in uses:
        order = None if entry is None else entry.turned.get(place)
        orders.add(None if order is None else order(node, rank))
    return orders.pop() if len(orders) == 1 else None


def _extract_coefficients(graph: Graph) -> None:
    """Make weights of the coefficients that linear models have as attributes."""
    for number, node in enumerate(graph.nodes):
        if node.domain == "ai.onnx.ml" and node.op in _COEFFICIENTS and len(node.inputs) == 1:
            for what in ("coefficients", "intercepts"):
                values = node.attrs.pop(what, None)
                if values:
                    name = f"{node.name or f'{node.op}_{number}'}/{what}"
                    if name in graph.weights:
                        raise ValueError(f"the name {name!r} is there twice")
                    graph.weights[name] = np.array(values, np.float32)
                    node.inputs += (name,)
