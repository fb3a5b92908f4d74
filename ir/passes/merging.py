"""Common subexpression elimination: of equal pure nodes the first one stays.

    %1 = exp(%0) : f32[n]
    %2 = exp(%0) : f32[n]                   ->        %1 = exp(%0) : f32[n]
    %3 = add(%1, %2) : f32[n]                         %2 = add(%1, %1) : f32[n]

Equal are the op, the attributes (-0.0 is not 0.0) and the operands, in either order where the op does not mind; for
constants the bits; for control flow also the text of the regions. Nodes with effects, and those that bring sizes of
their own, stay. In regions the same is done for themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from .. import graph as g
from .. import ops, symbols
from ..graph_text import text
from ..types import Attr

__all__ = ["merge_equal"]

_BYTES = 4096  # of a constant up to which it is compared by its bits
_EITHER_ORDER = {ops.add, ops.multiply, ops.equal, ops.not_equal, ops.logical_and, ops.logical_or, ops.logical_xor,
                 ops.bitwise_and, ops.bitwise_or, ops.bitwise_xor}
_LEFT_ALONE = frozenset({"effect", "dynamic"})


def merge_equal(graph: g.Graph) -> bool:
    """Merge equal nodes of `graph` and of its regions, in place. Returns whether anything changed."""
    seen: dict[Hashable, g.Node] = {}
    replaced: dict[g.Value, g.Value] = {}
    merged: list[g.Node] = []
    changed = False
    for node in graph.nodes:
        if replaced:
            node.inputs = [replaced.get(v, v) for v in node.inputs]
        for region in node.regions:
            changed |= merge_equal(region)
        key = _key(node)
        if key is None:
            merged.append(node)
            continue
        first = seen.setdefault(key, node)
        if first is node:
            merged.append(node)
        else:
            replaced.update(zip(node.outputs, first.outputs, strict=True))
    if not replaced:
        return changed
    graph.nodes = merged
    graph.outputs = [replaced.get(v, v) for v in graph.outputs]
    return True


def _key(node: g.Node) -> Hashable:
    """The key that equal nodes share; None for one that stays by itself."""
    op = node.op
    if isinstance(op, g.Construct):
        make = _CONSTRUCTS.get(op)
        return None if make is None else make(node)
    if op.traits & _LEFT_ALONE:
        return None
    inputs = node.inputs
    if len(inputs) == 2 and op in _EITHER_ORDER and not inputs[0].dtype.is_complex and id(inputs[0]) > id(inputs[1]):
        inputs = inputs[::-1]
    if not node.attrs:
        return (op, *inputs)
    return (op, *inputs, *[_attr_key(v) for v in node.attrs.values()])


def _attr_key(attr: Attr) -> Hashable:
    kind = type(attr)
    if kind is tuple:
        return (kind, *[_attr_key(v) for v in attr])
    return (kind, repr(attr)) if kind in (bool, float, complex) else attr


def _constant_key(node: g.Node) -> Hashable:
    array = node.attrs["value"]
    if array.dtype == object or array.nbytes > _BYTES:
        return (node.op, id(array))
    return (node.op, array.dtype, array.shape, array.tobytes())


def _control_key(node: g.Node) -> Hashable:
    if not g.is_pure(node) or symbols.brought(node):
        return None
    results = tuple([(v.dtype, v.dims) for v in node.outputs])
    attrs = tuple([_attr_key(v) for v in node.attrs.values()])
    return (node.op, *node.inputs, results, attrs, *[text(region, locations=False) for region in node.regions])


_CONSTRUCTS: dict[g.Construct, Callable[[g.Node], Hashable]] = {
    g.CONSTANT: _constant_key, g.COND: _control_key, g.WHILE: _control_key, g.CALL: _control_key,
    g.SIZE: lambda node: (node.op, node.attrs["size"], node.attrs["dtype"]),
}
