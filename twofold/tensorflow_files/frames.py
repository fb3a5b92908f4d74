"""Loops as TensorFlow 1 has them: values enter a frame, go round in it, and exit.

A variable of a loop is a `Merge` of what an `Enter` brings and what a `NextIteration` hands on; a `Switch` by the
loop's `LoopCond` sends it into another round, or to an `Exit`. The first `Exit` that is asked for runs the loop as
`tf.while_loop`, in whose functions the nodes of the frame run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

import twofold as tf
from twofold.eager.variable import Variable

from .graphs import Node, Source
from .lists import TensorList, carried
from .table import truth
from .tensors import RESOURCE

__all__ = ["Flow", "Values", "flow_of", "loop"]


_FLOW = frozenset({"Enter", "Switch"})  # without which there are no branches and loops


@dataclass(eq=False, slots=True)
class Flow:
    """What nodes of a graph say of its branches and loops.

    Attributes:
        enters: the `Enter` nodes by the names of their frames.
        rounds: the `Switch` nodes of loops by the names of their conditions.
        merges: the names of the `Merge` nodes that join rounds of a loop.
        inside: the names of the nodes that run in branches and loops alone.
    """

    enters: dict[str, list[Node]] = field(default_factory=dict)
    rounds: dict[str, list[Node]] = field(default_factory=dict)
    merges: set[str] = field(default_factory=set)
    inside: set[str] = field(default_factory=set)

    def of_loop(self, node: Node) -> bool:
        """Whether a `Switch` or `Merge` is one of a loop."""
        return node.name in self.merges or (node.op == "Switch" and len(node.inputs) == 2
                                            and node.inputs[1].name in self.rounds)


def flow_of(nodes: Iterable[Node]) -> Flow:
    """What nodes, which come in order, say of branches and loops."""
    flow, ordered = Flow(), list(nodes)
    ops = {node.name: node.op for node in ordered}
    if _FLOW.isdisjoint(ops.values()):
        return flow
    for node in ordered:
        if node.op == "Enter":
            flow.enters.setdefault(_frame(node), []).append(node)
        elif node.op == "Switch" and len(node.inputs) == 2 and ops.get(node.inputs[1].name) == "LoopCond":
            flow.rounds.setdefault(node.inputs[1].name, []).append(node)
        elif node.op == "Merge" and any(ops.get(source.name) == "NextIteration" for source in node.inputs):
            flow.merges.add(node.name)
    depths: dict[str, int] = {}
    for node in ordered:
        depth = max([depths.get(name, 0) for name in (*[s.name for s in node.inputs], *node.after)], default=0)
        if node.op in ("Enter", "NextIteration"):
            depth = max(depth, 0) + (node.op == "Enter" or not depth)
        elif node.op == "Exit" or (node.op == "Merge" and not flow.of_loop(node)):
            depth = max(depth - 1, 0)
        elif node.op == "Switch" and not flow.of_loop(node):
            depth += 1
        depths[node.name] = depth
    flow.inside = {name for name, depth in depths.items() if depth}
    return flow


def _frame(node: Node) -> str:
    name = node.attrs.get("frame_name")
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else ""


class Values(Protocol):
    """The values of a running graph (`run.py`)."""

    nodes: dict[str, Node]
    flow: Flow

    def get(self, source: Source) -> Any:
        """A value, which runs the nodes that it needs."""

    def reach(self, sources: Sequence[Source]) -> None:
        """Run the nodes that values need, each after what it reads and waits for."""

    def put(self, name: str, outputs: Sequence[Any], places: dict[str, int]) -> None:
        """Keep the outputs of a node."""

    def branch(self) -> Values:
        """The same values, for nodes that run in a branch or a round."""


@dataclass(eq=False, slots=True)
class _Variable:
    """A variable of a loop: the nodes that it goes through."""

    switch: Node
    merge: Node
    enter: Node
    following: Source


def loop(node: Node, values: Values) -> Any:
    """The value of an `Exit`; those of the other exits of its loop are put among the values.

    Raises:
        ValueError: the nodes make no loop.
    """
    switch = values.nodes.get(node.inputs[0].name) if node.inputs else None
    if switch is None or not values.flow.of_loop(switch):
        raise ValueError(f"{node} is the end of no loop")
    condition = values.nodes[switch.inputs[1].name]
    variables = [_variable(each, values) for each in values.flow.rounds[condition.name]]
    for enter in values.flow.enters[_frame(variables[0].enter)]:
        values.put(enter.name, [_entered(enter, values.get(enter.inputs[0]))], {})
    last = _run(condition, variables, values)
    ends = {variable.switch.name: value for variable, value in zip(variables, last, strict=True)}
    for other in values.nodes.values():
        if other.op == "Exit" and other.inputs and other.inputs[0].name in ends:
            values.put(other.name, [ends[other.inputs[0].name]], {})
    return ends[switch.name]


def _entered(enter: Node, value: Any) -> Any:
    """A value as it goes round: variables of TensorFlow 1 are read before, unless rounds only read them."""
    constant = enter.attrs.get("is_constant") or enter.attrs.get("T") == RESOURCE
    return value.read_value() if isinstance(value, Variable) and not constant else value


def _variable(switch: Node, values: Values) -> _Variable:
    merge = values.nodes.get(switch.inputs[0].name)
    sources = {} if merge is None else {values.nodes[s.name].op: s for s in merge.inputs if s.name in values.nodes}
    if merge is None or {*sources} != {"Enter", "NextIteration"}:
        raise ValueError(f"{switch} has no variable of a loop")
    following = values.nodes[sources["NextIteration"].name].inputs
    if not following:
        raise ValueError(f"nothing is handed on to {merge}")
    return _Variable(switch, merge, values.nodes[sources["Enter"].name], following[0])


def _run(condition: Node, variables: Sequence[_Variable], values: Values) -> Sequence[Any]:
    """The last values of the variables."""
    first = [values.get(Source(variable.enter.name, "", 0)) for variable in variables]
    moving = [n for n, value in enumerate(first) if not isinstance(value, Variable)]
    if not moving:
        raise ValueError(f"nothing changes in the rounds of {condition}")

    def inside(given: Sequence[Any], ended: bool) -> Values:
        inner, now = values.branch(), list(first)
        for n, value in zip(moving, given, strict=True):
            now[n] = TensorList(value, first[n]) if isinstance(first[n], TensorList) else value
        for variable, value in zip(variables, now, strict=True):
            inner.put(variable.merge.name, [value, np.array(0, np.int32)], {})
            if not ended:
                inner.put(variable.switch.name, [value, value], {})
        return inner

    def goes_on(*given: Any) -> Any:
        return truth(inside(given, True).get(condition.inputs[0]))

    def one(*given: Any) -> list[Any]:
        inner = inside(given, False)
        inner.reach([variable.following for variable in variables])
        return [carried(inner.get(variables[n].following)) for n in moving]
    start = [carried(first[n]) for n in moving]
    try:
        after = tf.while_loop(goes_on, one, start)
    except ValueError:  # sizes that change from round to round: the file does not say which
        if not tf.inside_function():
            raise
        after = tf.while_loop(goes_on, one, start, shape_invariants=[
            tf.TensorShape([None for _ in value.dims]) if isinstance(value, tf.Tensor) else None for value in start])
    last = list(first)
    for n, value in zip(moving, after, strict=True):
        last[n] = TensorList(value, first[n]) if isinstance(first[n], TensorList) else value
    return last

