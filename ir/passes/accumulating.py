"""Sums of items in loops: what adds a whole array of zeros but for one item to an array adds the item alone.

    graph body(%0: f32[9,3], ..) {                            graph body(%0: f32[9,3], ..) {
      %1 = fill(0.0) : f32[9,3]
      %2 = scatter_add(%1, %i, %x) : f32[9,3]       ->          %2 = scatter_add(%0, %i, %x) : f32[9,3]
      %3 = add(%0, %2) : f32[9,3]
      return .., %3                                             return .., %2

That is the gradient of reading an item in every round, which would take as long as the array for every item of it.

Where the array begins as zeros, of either sign, and there is at least one round, this is exact: adding +0.0 changes no
number but -0.0, to +0.0, so that the first round leaves no -0.0 in the array, and no sum of +0.0 and another number is
-0.0. So the array may begin as +0.0, and needs no adding of zeros. Several updates of one place would be added up in
another order: there is one.
"""

from __future__ import annotations

import numpy as np

from .. import dims as dm
from .. import dtypes as dt
from .. import graph as g
from .. import ops
from ..build import Builder
from ..counting import counting
from ..op import use_interpreter

__all__ = ["add_items"]

_EXACT = (dt.float32, dt.float64)  # what adds in its own type


def add_items(graph: g.Graph) -> bool:
    """Let the loops of `graph` and its regions add items, in place. Returns whether anything changed."""
    changed = False
    for node in list(graph.nodes):
        for region in node.regions if node.op is not g.CALL else ():
            changed |= add_items(region)
        if node.op is g.WHILE:
            changed |= _in_loop(graph, node)
    return changed


def _in_loop(graph: g.Graph, node: g.Node) -> bool:
    body = node.regions[1]
    candidates = [n for n in range(node.attrs["carried"])
                  if node.inputs[n].dtype in _EXACT and _zero(node.inputs[n]) is not None and _is_sum(body.outputs[n])]
    if not candidates:
        return False
    counted = counting(node)
    if counted is None or dm.decide_le(1, counted.rounds) is not True:
        return False
    uses = body.uses()
    changed = False
    for n in candidates:
        sums = _sums(body, n, uses)
        if sums:
            _rewrite(body, n, sums)
            if np.signbit(_zero(node.inputs[n])):  # type: ignore[arg-type]
                node.inputs[n] = _zeros(graph, node, node.inputs[n])
            changed = True
    return changed


def _is_sum(value: g.Value) -> bool:
    return value.node is not None and value.node.op is ops.add


def _zero(value: g.Value) -> np.ndarray | None:
    """The zero that fills an array."""
    node = value.node
    array = g.constant_of(node.inputs[0]) if node is not None and node.op is ops.fill else None
    return array if array is not None and array.dtype.kind == "f" and array == 0 else None


def _sums(body: g.Graph, n: int, uses: dict[g.Value, list[g.Node | None]]) -> list[tuple[g.Node, g.Node]]:
    """The additions that make up carried value `n`, from the last, each with the scatter that it adds; none unless all
    are of that kind."""
    additions: list[tuple[g.Node, g.Node]] = []
    value = body.outputs[n]
    while value is not body.inputs[n]:
        node = value.node
        if node is None or node.op is not ops.add or len(uses[value]) != 1:
            return []
        pair = next(((x, y) for x, y in (node.inputs, node.inputs[::-1]) if _is_item(y, uses)), None)
        if pair is None or pair[0].dims != value.dims or pair[1].dims != value.dims:
            return []
        assert pair[1].node is not None
        additions.append((node, pair[1].node))
        value = pair[0]
    return additions if len(uses[value]) == 1 else []


def _is_item(value: g.Value, uses: dict[g.Value, list[g.Node | None]]) -> bool:
    """Whether a value is one item among zeros, which is read here only."""
    node = value.node
    if node is None or node.op is not ops.scatter_add or len(uses[value]) != 1:
        return False
    base, indices, _ = node.inputs
    zero = _zero(base)
    return zero is not None and not np.signbit(zero) and all(dm.is_exactly(d, 1) for d in indices.dims)


def _rewrite(body: g.Graph, n: int, sums: list[tuple[g.Node, g.Node]]) -> None:
    """Put scatters in the place of additions."""
    total = body.inputs[n]
    for node, scatter in reversed(sums):
        scattered = g.Node(scatter.op, [total, *scatter.inputs[1:]], scatter.attrs, node.outputs, (), scatter.loc)
        body.nodes[body.nodes.index(node)] = scattered
        body.nodes.remove(scatter)
        total = scattered.outputs[0]
    body.outputs[n] = total


def _zeros(graph: g.Graph, node: g.Node, like: g.Value) -> g.Value:
    """An array of +0.0 before the loop."""
    zeros = g.Graph()
    with use_interpreter(Builder(zeros)):
        value: g.Value = ops.fill(np.zeros((), like.dtype.np), shape=like.dims)
    at = graph.nodes.index(node)
    graph.nodes[at:at] = zeros.nodes
    return value
