"""Branches as TensorFlow 1 has them: `Switch` hands a value to one of two sides, `Merge` gives what the side made.

A `Merge` becomes `tf.cond`: what only one side needs runs in its function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import twofold as tf

from .frames import Flow, Values
from .graphs import Node, Source
from .lists import TensorList, carried
from .table import truth

__all__ = ["merged"]


def merged(node: Node, values: Values) -> Sequence[Any]:
    """What the side that a condition chooses gives, and the number of that input.

    Raises:
        ValueError: the inputs are not those of two sides of one condition.
    """
    sides: dict[int, tuple[int, Source]] = {}
    conditions = set()
    for number, source in enumerate(node.inputs):
        side, condition = _side(source, values.nodes, values.flow)
        sides[side] = number, source
        conditions.add(condition)
    if len(node.inputs) != 2 or len(conditions) != 1 or {*sides} != {0, 1}:
        raise ValueError(f"{node} does not join the two sides of a condition")
    holds = truth(values.get(conditions.pop()))
    if isinstance(holds, bool):
        number, source = sides[int(holds)]
        return [values.branch().get(source), np.array(number, np.int32)]

    lists: list[TensorList] = []

    def made(side: int) -> Any:
        number, source = sides[side]

        def run() -> list[Any]:
            value = values.branch().get(source)
            lists.extend([value] if isinstance(value, TensorList) else [])
            return [carried(value), tf.constant(number, tf.int32)]
        return run
    value, number = tf.cond(holds, made(1), made(0))
    return [TensorList(value, lists[0]) if lists else value, number]


def _side(source: Source, nodes: Mapping[str, Node], flow: Flow) -> tuple[int, Source]:
    """On which side of which condition a value is made: as its `Switch` says, past branches and loops within.

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
        if not flow.of_loop(node):
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
