"""Control flow whose way is known: the branch that is taken takes the place of its `cond`.

    %1 = constant true : i1[]
    %2 = cond(%1, %0) : f32[3] {
      graph then(%0: f32[3]) {                      ->        %1 = exp(%0) : f32[3]
        %1 = exp(%0) : f32[3]
        return %1
      }
      graph otherwise(...) { ... }
    }

A `while` whose test gives a constant false is its first values. A result of a `cond` that is the same operand in both
branches is that operand.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import dims as dm
from .. import graph as g
from .. import symbols
from ..assumptions import renamed
from .inlining import Names, assume_equal, inlined, rename_results

__all__ = ["take_known_branches"]


def take_known_branches(graph: g.Graph) -> bool:
    """Resolve what is known in `graph` and its regions, in place. Returns whether anything changed."""
    return _take(graph, graph, Names(graph), set)


def _take(graph: g.Graph, top: g.Graph, names: Names, around: Callable[[], set[str]]) -> bool:
    changed = False
    nodes: list[g.Node] = []
    replaced: dict[g.Value, g.Value] = {}

    def have() -> set[str]:
        """The sizes that are known before the node that is looked at."""
        return around().union(symbols.symbols_in(graph.inputs), *map(symbols.brought, nodes))
    for node in graph.nodes:
        if replaced:
            node.inputs = [replaced.get(v, v) for v in node.inputs]
        for region in node.regions:
            changed |= _take(region, top, names, have)
        if node.op is g.COND and (holds := g.constant_of(node.inputs[0])) is not None:
            region = node.regions[not holds]
            copies, results, sizes = inlined(region, node.inputs[1:], node.outputs, names)
            graph.guards = [*graph.guards, *[renamed(guard, sizes) for guard in region.guards]]
            assume_equal(graph, [dm.substitute(v.dims, sizes) for v in region.inputs], node.inputs[1:])
            rename_results(graph, top, node.outputs, results, have)
            nodes += copies
            replaced.update(zip(node.outputs, results, strict=True))
            continue
        if node.op is g.WHILE and _never_runs(node):
            replaced.update(zip(node.outputs, node.inputs, strict=False))
            continue
        if node.op is g.COND:
            replaced.update(_passed_through(node))
        nodes.append(node)
    if replaced:
        graph.nodes = nodes
        graph.outputs = [replaced.get(v, v) for v in graph.outputs]
    return changed or bool(replaced)


def _never_runs(node: g.Node) -> bool:
    holds = g.constant_of(node.regions[0].outputs[0])
    same = all(a.dims == b.dims for a, b in zip(node.outputs, node.inputs, strict=False))
    return holds is not None and not holds and same


def _passed_through(node: g.Node) -> dict[g.Value, g.Value]:
    """The results that are one operand whichever branch is taken, and that operand; the results are read no more."""
    operands = {}
    then, otherwise = node.regions
    for result, a, b in zip(node.outputs, then.outputs, otherwise.outputs, strict=True):
        if a.node is None and b.node is None and a.index == b.index:
            operand = node.inputs[1 + a.index]
            if operand.dims == result.dims:
                operands[result] = operand
    return operands
