"""Branches as TensorFlow 1 has them: `Switch` hands a value to one of two sides, `Merge` gives what the side made.

A `Merge` becomes `tf.cond`: what only one side needs runs in its function.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

import twofold as tf

from .graphs import Node, Source
from .table import tensor, truth

__all__ = ["in_branches", "merged"]


class Values(Protocol):
    """The values of a running graph (`run.py`)."""

    nodes: dict[str, Node]

    def get(self, source: Source) -> Any:
        """A value, which runs the node that makes it."""

    def branch(self) -> Values:
        """The same values, for nodes that run in a branch."""


def in_branches(nodes: Iterable[Node]) -> frozenset[str]:
    """The names of the nodes that depend on a `Switch` without a `Merge` between; nodes come in order."""
    depths: dict[str, int] = {}
    for node in nodes:
        depth = max([depths.get(name, 0) for name in (*[s.name for s in node.inputs], *node.after)], default=0)
        depths[node.name] = depth + 1 if node.op == "Switch" else max(depth - 1, 0) if node.op == "Merge" else depth
    return frozenset(name for name, depth in depths.items() if depth)


def merged(node: Node, values: Values) -> Sequence[Any]:
    """What the side that a condition chooses gives, and the number of that input.

    Raises:
        ValueError: the inputs are not those of two sides of one condition.
    """
    sides: dict[int, tuple[int, Source]] = {}
    conditions = set()
    for number, source in enumerate(node.inputs):
        side, condition = _side(source, values.nodes)
        sides[side] = number, source
        conditions.add(condition)
    if len(node.inputs) != 2 or len(conditions) != 1 or {*sides} != {0, 1}:
        raise ValueError(f"{node} does not join the two sides of a condition")
    holds = truth(values.get(conditions.pop()))
    if isinstance(holds, bool):
        number, source = sides[int(holds)]
        return [values.branch().get(source), np.array(number, np.int32)]

    def made(side: int) -> Any:
        number, source = sides[side]
        return lambda: [tensor(values.branch().get(source)), tf.constant(number, tf.int32)]
    return list(tf.cond(holds, made(1), made(0)))


def _side(source: Source, nodes: Mapping[str, Node]) -> tuple[int, Source]:
    """On which side of which condition a value is made: as its `Switch` says, past those of branches within.

    Raises:
        ValueError: on none.
    """
    open_, seen = [(source, 0)], set[tuple[str, int]]()
    while open_:
        source, depth = open_.pop()
        node = nodes.get(source.name)
        if node is None or (source.name, depth) in seen:
            continue
        seen.add((source.name, depth))
        if node.op == "Switch" and not depth:
            return source.number, _origin(node.inputs[1], nodes)
        depth += (node.op == "Merge") - (node.op == "Switch")
        open_ += [(each, depth) for each in (*node.inputs, *[Source(name, "", _pivot(name, nodes))
                                                             for name in node.after])]
    raise ValueError(f"{source} is made on no side of a condition")


def _origin(source: Source, nodes: Mapping[str, Node]) -> Source:
    """Where a value comes from that nodes hand on as it is."""
    for _ in range(len(nodes)):
        node = nodes.get(source.name)
        if node is None or node.op != "Identity" or not node.inputs:
            break
        source = node.inputs[0]
    return source


def _pivot(name: str, nodes: Mapping[str, Node]) -> int:
    """For a node that others wait for: the side of the `Switch` that it hands on."""
    node = nodes.get(name)
    return node.inputs[0].number if node is not None and node.op == "Identity" and node.inputs else 0
