"""`Handed`: a trace in two steps, so that calls that run in parallel give the results of calls one after another.

The first step is all that calls must do in their order: draws from the streams of random numbers, and the new values of
variables with all that they are computed from. It is run by one thread at a time, and often takes no longer than moving
a counter on. The second is everything else: it depends on no other call and runs on any thread. Both are graphs of the
same nodes, so the bits are those of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from twofold.eager.executing import executable, execute
from twofold.eager.tensor import Tensor, wrap
from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir import passes
from twofold.ir.passes.inlining import inline_calls
from twofold.runtime import claims

from .traced import Traced
from .types import Structure

__all__ = ["Handed", "is_stateful"]


def is_stateful(traced: Traced) -> bool:
    """Whether the results of a call depend on the calls before it."""
    return bool(traced.updates) or any(_draws(node) for node in traced.graph.nodes)


def _draws(node: g.Node) -> bool:
    """Whether a node, or one inside of it, draws from a stream of the process."""
    return g.effect_of(node) == "random" or any(_draws(inner) for region in node.regions for inner in region.nodes)


class Handed:
    """A stateful trace in two steps.

    Attributes:
        traced: the trace as a whole.
    """

    def __init__(self, traced: Traced) -> None:
        """Raises:
            ValueError: sizes that values decide, or surrounding traces, keep it whole.
        """
        graph = traced.graph.copy()
        inline_calls(graph)
        if traced.outer is not None or any(node.op is g.BIND or _brings(node) for node in graph.walk()):
            raise ValueError("sizes that values decide cannot be split")
        self.traced, count = traced, len(graph.outputs) - len(traced.updates)
        results, updates = graph.outputs[:count], graph.outputs[count:]
        ordered = _behind(updates, [node for node in graph.nodes if _draws(node)], ())
        drawn = [v for node in graph.nodes if node in ordered and g.effect_of(node) is not None for v in node.outputs]
        free = [node for node in graph.nodes if node not in ordered and g.effect_of(node) is not None]
        first = _part(graph, ordered, (), [*updates, *drawn])
        second = _part(graph, _behind(results, free, drawn), drawn, results)
        self._first, self._second = (executable(x, improve=passes.optimise, label="passes") for x in (first, second))

    def begin(self, leaves: Sequence[Tensor]) -> list[Tensor] | None:
        """Run the first step for the tensors of a call; the tensors that the second one needs, or None where the trace
        does not accept those of the call."""
        traced = self.traced
        if traced.accepts([x.dims for x in leaves]) is None:
            return None
        with claims.claimed(traced.claim):
            inputs = [*leaves, *traced.read()]
            out = [wrap(a) for a in execute(self._first, [t._memory for t in inputs])]
            traced.commit(out[:len(traced.updates)])
        return [*inputs, *out[len(traced.updates):]]

    def finish(self, begun: Sequence[Tensor]) -> Structure:
        """The result, from the tensors that `begin` gave."""
        return self.traced.packed([wrap(a) for a in execute(self._second, [t._memory for t in begun])])


def _brings(node: g.Node) -> bool:
    """Whether the sizes of a node's results are known only when it has run."""
    before = dm.symbols_of([d for v in node.inputs for d in v.dims])
    return not node.regions and bool(dm.symbols_of([d for v in node.outputs for d in v.dims]) - before) and \
        "dynamic" in getattr(node.op, "traits", ())


def _behind(values: Sequence[g.Value], nodes: Sequence[g.Node], available: Sequence[g.Value]) -> set[g.Node]:
    """The nodes that compute `values`, `nodes` themselves, and all that these need besides `available` values."""
    present = set(available)
    behind: set[g.Node] = set()
    open_: list[g.Node | None] = [*nodes, *(v.node for v in values if v not in present)]
    while open_:
        node = open_.pop()
        if node is not None and node not in behind:
            behind.add(node)
            open_ += [v.node for v in node.inputs if v not in present]
    return behind


def _part(graph: g.Graph, nodes: set[g.Node], further: Sequence[g.Value], outputs: Sequence[g.Value]) -> g.Graph:
    """The graph of `outputs`, computed by `nodes` from the inputs of `graph` and `further` values, which are inputs."""
    part = g.Graph(graph.name)
    copies = {v: part.add_input(v.dims, v.dtype, v.name) for v in (*graph.inputs, *further)}
    for node in graph.nodes:
        if node in nodes:
            new = part.add(node.op, [copies[v] for v in node.inputs], node.attrs, node.outputs, node.regions, node.loc)
            copies.update(zip(node.outputs, new.outputs, strict=True))
    part.outputs = [copies[v] for v in outputs]
    return part
