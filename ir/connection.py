"""Whether results of a graph depend on what is watched, as a tape would find it: by what ran, not by what might.

A branch that is not taken, and a round that does not run, connect nothing. What a result depends on whatever runs, the
graph tells (`connections_of`); where only running tells, `staged` makes the construct again, with a bool as a further
result. A connection is True, False, None where nobody asked, or a bool scalar.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import dtypes as dt
from . import graph as g
from . import ops
from .build import Builder
from .counting import surely_runs
from .graph import Graph, Node, Value
from .linearise import FLOWS
from .op import use_interpreter
from .spec import spec

__all__ = ["connections_of", "of_outputs", "staged"]

_BOOL = spec((), dt.bool_)
_NESTED = (g.COND, g.WHILE, g.CALL)


# -- what the graph tells -----------------------------------------------------------------------------
def connections_of(node: Node, operands: Sequence[bool | None]) -> list[bool | None]:
    """For each result of a node whether it is connected, None where only running tells.

    Args:
        operands: the same for the operands.
    """
    smooth = [v.dtype.is_differentiable for v in node.outputs]
    connected: Sequence[bool | None]
    if node.op is g.COND:
        sides = [of_outputs(region, operands[1:]) for region in node.regions]
        connected = [a if a is b else None for a, b in zip(*sides, strict=True)]
    elif node.op is g.WHILE:
        connected = _rounds(node, operands)[1]
    elif node.op is g.CALL:
        connected = of_outputs(node.regions[0], operands)
    elif node.op in FLOWS:
        surely, maybe = [FLOWS[node.op].forward(node, tuple([x is True or (x is None and m) for x in operands]))
                         for m in (False, True)]
        connected = [True if s else None if m else False for s, m in zip(surely, maybe, strict=True)]
    else:
        one = not isinstance(node.op, g.Construct) and node.op.vjp is not None
        connected = [one and (True if True in operands else None if None in operands else False)] * len(smooth)
    return [s and x for s, x in zip(smooth, connected, strict=True)]


def of_outputs(graph: Graph, inputs: Sequence[bool | None]) -> list[bool | None]:
    """The same of a graph's outputs, from what holds for its inputs."""
    connected: dict[Value, bool | None] = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        connected.update(zip(node.outputs, connections_of(node, [connected[v] for v in node.inputs]), strict=True))
    return [connected[v] for v in graph.outputs]


def _rounds(node: Node, operands: Sequence[bool | None]) -> tuple[list[bool | None], list[bool | None]]:
    """Of a loop, whether its variables are connected before some round, and after the last."""
    body, count = node.regions[1], node.attrs["carried"]
    before = list(operands[:count])
    while True:
        after = of_outputs(body, [*before, *operands[count:]])
        more = [a if a is b else None for a, b in zip(before, after, strict=True)]
        if more == before:
            return before, after if surely_runs(node) else before
        before = more


# -- what running tells -------------------------------------------------------------------------------
def staged(builder: Builder, node: Node, operands: Sequence[bool | Value]) -> tuple[Node, list[bool | Value]]:
    """A construct, appended again with what tells whether its results are connected; that for each result.

    Its results are taken over. A loop has further carried values, which stand after the others.

    Args:
        operands: for each operand whether it is connected, a bool or a bool scalar.
    """
    certain = [x if isinstance(x, bool) else None for x in operands]
    connected = connections_of(node, certain)
    asked = [k for k, x in enumerate(connected) if x is None]
    if node.op not in _NESTED or not asked:  # a construct without regions, of which any operand may tell
        any_of = _either(builder, [x for x in operands if isinstance(x, Value)]) if asked else False
        builder.graph.nodes.append(node)
        return node, [any_of if x is None else x for x in connected]
    extended = (_loop if node.op is g.WHILE else _sides)(builder, node, list(operands), asked)
    for k, value in enumerate(node.outputs):
        extended.outputs[k] = value
        value.node = extended
    flags = dict(zip(asked, extended.outputs[len(node.outputs):], strict=False))
    return extended, [flags[k] if x is None else x for k, x in enumerate(connected)]


def _either(builder: Builder, flags: Sequence[Value]) -> Value:
    total = flags[0]
    with use_interpreter(builder):
        for flag in flags[1:]:
            total = ops.logical_or(total, flag)
    return total


def _sides(builder: Builder, node: Node, operands: list[bool | Value], asked: Sequence[int]) -> Node:
    """A branch, or a call, which is one side alone."""
    first = 1 if node.op is g.COND else 0
    flags = list(dict.fromkeys([x for x in operands if isinstance(x, Value)]))
    regions = []
    for region in node.regions:
        region, _ = region.copy_with()
        own: dict[bool | Value, Value] = {flag: region.add_input((), dt.bool_) for flag in flags}
        region.outputs += _extended(region, [own.get(x, x) for x in operands[first:]], len(flags), asked)
        regions.append(region)
    return builder.graph.add(node.op, [*node.inputs, *flags], node.attrs,
                             [*node.outputs, *[_BOOL] * len(asked)], regions, node.loc)


def _loop(builder: Builder, node: Node, operands: list[bool | Value], asked: Sequence[int]) -> Node:
    """A loop, which carries what tells whether its variables are connected."""
    test, body = [region.copy_with()[0] for region in node.regions]
    count = node.attrs["carried"]
    before = _rounds(node, [x if isinstance(x, bool) else None for x in operands])[0]
    # Those that are asked for come first, as results in their order.
    every = [*asked, *[k for k, x in enumerate(before) if x is None and k not in asked]]
    flags = list(dict.fromkeys([x for x in operands[count:] if isinstance(x, Value)]))
    own: dict[bool | Value, Value] = {flag: body.add_input((), dt.bool_) for flag in flags}
    carried = {k: Value((), dt.bool_) for k in every}
    inner: list[bool | Value] = [carried[k] if k in carried else before[k] is True for k in range(count)]
    inner += [own.get(x, x) for x in operands[count:]]
    results = _extended(body, inner, len(flags), every)
    body.outputs += results
    body.inputs[count:count] = carried.values()
    test.inputs[count:count] = [Value((), dt.bool_) for _ in every]
    for _ in flags:
        test.add_input((), dt.bool_)
    for region in (test, body):
        for i, v in enumerate(region.inputs):
            v.index = i
    starts = [x if isinstance(x, Value) else builder.constant(np.array(x)) for x in (operands[k] for k in every)]
    attrs = {**node.attrs, "carried": count + len(every)}
    return builder.graph.add(g.WHILE, [*node.inputs[:count], *starts, *node.inputs[count:], *flags], attrs,
                             [*node.outputs, *[_BOOL] * len(every)], [test, body], node.loc)


def _extended(region: Graph, flags_of_inputs: Sequence[bool | Value], more: int, asked: Sequence[int]) -> list[Value]:
    """Bool scalars of a region that tell whether its outputs `asked` are connected; nodes for them are added.

    Args:
        flags_of_inputs: for its inputs, but for the last `more`, whether they are.
    """
    inputs = region.inputs[:len(region.inputs) - more]
    by_value: dict[Value, bool | Value] = dict(zip(inputs, flags_of_inputs, strict=True))
    nodes, region.nodes = region.nodes, []
    builder = Builder(region)
    for node in nodes:
        flags = [by_value[v] for v in node.inputs]
        certain = connections_of(node, [x if isinstance(x, bool) else None for x in flags])
        if None in certain:
            extended, connected = staged(builder, node, flags)
        else:
            extended, connected = node, [x is True for x in certain]
            region.nodes.append(node)
        by_value.update(zip(extended.outputs, connected, strict=False))
        by_value.update(dict.fromkeys(extended.outputs[len(connected):], False))
    return [x if isinstance(x := by_value[region.outputs[k]], Value) else builder.constant(np.array(x)) for k in asked]
