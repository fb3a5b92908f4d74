"""Loop-invariant code motion: what every round of a `while` would compute alike is computed once, before it.

    %2 = while(%0, %1) {carried: 1} {                         %2 = exp(%1) : f32[3]
      graph body(%0: f32[3], %1: f32[3]) {                    %3 = while(%0, %1, %2) {carried: 1} {
        %2 = exp(%1) : f32[3]                       ->          graph body(%0: f32[3], %1: f32[3], %2: f32[3]) {
        %3 = add(%0, %2) : f32[3]                                 %3 = add(%0, %2) : f32[3]
        return %3                                                 return %3

Values that are carried but never changed become operands that stay, and the loop's results of them are the operands.
Only what cannot fail is moved, because the loop may have no round. Constants, sizes and views stay where they are
read, since kernels have them for nothing; they are copied along with what is moved.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import dims as dm
from .. import graph as g
from .. import ops, symbols
from ..build import copy_node
from .failing import may_fail

__all__ = ["move_invariants"]

def move_invariants(graph: g.Graph) -> bool:
    """Move invariant code out of the loops of `graph` and its regions, in place. Returns whether anything changed."""
    changed = False
    nodes: list[g.Node] = []
    replaced: dict[g.Value, g.Value] = {}
    for node in graph.nodes:
        if replaced:
            node.inputs = [replaced.get(v, v) for v in node.inputs]
        for region in node.regions if node.op is not g.CALL else ():
            changed |= move_invariants(region)
        if node.op is g.WHILE:
            fixed = _fix_unchanged(node)
            replaced.update(fixed)
            moved = _move_out(node)
            nodes += moved
            changed |= bool(fixed) or bool(moved)
        nodes.append(node)
    graph.nodes = nodes
    if replaced:
        graph.outputs = [replaced.get(v, v) for v in graph.outputs]
    return changed


# -- carried values that never change -----------------------------------------------------------------
def _fix_unchanged(node: g.Node) -> dict[g.Value, g.Value]:
    """Turn carried values that no round changes into operands that are not carried; gives the results that they
    replace, and the operands."""
    body, count = node.regions[1], node.attrs["carried"]
    same = [i for i in range(count) if body.outputs[i] is body.inputs[i]
            and node.inputs[i].dims == node.outputs[i].dims == body.inputs[i].dims]
    if not same:
        return {}
    replaced = {node.outputs[i]: node.inputs[i] for i in same}
    changing = [i for i in range(count) if i not in set(same)]
    order = [*changing, *range(count, len(node.inputs)), *same]
    node.inputs = [node.inputs[i] for i in order]
    node.outputs = _numbered([node.outputs[i] for i in changing])
    body.outputs = [body.outputs[i] for i in changing]
    for region in node.regions:
        region.inputs = _numbered([region.inputs[i] for i in order])
    node.attrs = {**node.attrs, "carried": len(changing)}
    return replaced


def _numbered(values: list[g.Value]) -> list[g.Value]:
    for i, value in enumerate(values):
        value.index = i
    return values


# -- moving -------------------------------------------------------------------------------------------
def _move_out(node: g.Node) -> list[g.Node]:
    """The nodes to put before the loop, which takes their results as further operands."""
    outside = g.Graph()
    for region in node.regions:
        count = node.attrs["carried"]
        stay = dict(zip(region.inputs[count:], node.inputs[count:], strict=True))
        invariant = _invariant(region, node.inputs, stay)
        moving = {n for n in invariant if not _costs_nothing(n)}
        if not moving:
            continue
        handed = _read_elsewhere(region, moving)
        copies, needed = dict(stay), _cone(moving)
        for inner in invariant:
            if inner in moving or any(v in needed for v in inner.outputs):
                copy_node(outside, inner, copies)
        _hand_in(node, region, handed, copies)
        region.nodes = [n for n in region.nodes if n not in moving]
    return outside.nodes


def _invariant(region: g.Graph, operands: Sequence[g.Value], stay: dict[g.Value, g.Value]) -> list[g.Node]:
    """The nodes of a region, in order, that give the same in every round and can be moved."""
    own = {name for v in region.inputs for name in symbols.alone(v.dims)} - symbols.symbols_in(operands)
    for inner in region.nodes:
        own |= symbols.brought(inner)
    values = set(stay)
    invariant = []
    for inner in region.nodes:
        if not _movable(inner) or not all(v in values for v in inner.inputs):
            continue
        names = symbols.names_in(inner.attrs.values()) | dm.symbols_of([d for v in inner.outputs for d in v.dims])
        if names.isdisjoint(own):
            values.update(inner.outputs)
            invariant.append(inner)
    return invariant


def _movable(node: g.Node) -> bool:
    op = node.op
    if isinstance(op, g.Construct):
        return op in (g.CONSTANT, g.SIZE)
    if op.traits & {"effect", "dynamic", "random"}:
        return False
    return not may_fail(node)


def _costs_nothing(node: g.Node) -> bool:
    return isinstance(node.op, g.Construct) or node.op.view is not None or node.op is ops.shape


def _cone(moving: set[g.Node]) -> set[g.Value]:
    """The values that moved nodes read, through whatever costs nothing."""
    values: set[g.Value] = set()
    todo = [v for n in moving for v in n.inputs]
    while todo:
        value = todo.pop()
        if value not in values:
            values.add(value)
            todo += value.node.inputs if value.node is not None else ()
    return values


def _read_elsewhere(region: g.Graph, moving: set[g.Node]) -> list[g.Value]:
    """The results of moved nodes that what stays reads."""
    read = {v for n in region.nodes if n not in moving for v in n.inputs} | set(region.outputs)
    return [v for n in region.nodes if n in moving for v in n.outputs if v in read]


def _hand_in(node: g.Node, region: g.Graph, handed: list[g.Value], copies: dict[g.Value, g.Value]) -> None:
    """Give the loop further operands, and let the region read them in the place of `handed`."""
    entered = {}
    for value in handed:
        node.inputs.append(copies[value])
        for each in node.regions:
            entry = each.add_input(value.dims, value.dtype, value.name)
            if each is region:
                entered[value] = entry
    for inner in region.nodes:
        inner.inputs = [entered.get(v, v) for v in inner.inputs]
    region.outputs = [entered.get(v, v) for v in region.outputs]
