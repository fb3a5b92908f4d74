"""Aliases among the values of a graph: a result of a branch, loop or call may be a value that exists under another
name.

Branches give back operands, loops hand on what goes in or what a round before had, calls give back arguments. This
module tells which values may be aliases, without running anything; `ir/autodiff.py` and `ir/loop_pullback.py` find out
which are.
"""

from __future__ import annotations

from . import graph as g
from .counting import surely_runs
from .graph import Node, Value

__all__ = ["carried_roots", "roots"]


def roots(value: Value, memo: dict[Value, frozenset[Value]] | None = None) -> frozenset[Value]:
    """The inputs and results of nodes that a value of a graph may be; of results that may be one, the first stands.

    Args:
        memo: the roots of other values, to which those computed here are added.
    """
    memo = {} if memo is None else memo
    if value not in memo:
        node = value.node
        if node is None or node.op not in (g.COND, g.WHILE, g.CALL):
            memo[value] = frozenset((value,))
        else:
            for result, possible in zip(node.outputs, _of_results(node, memo), strict=True):
                memo[result] = possible
    return memo[value]


def _of_results(node: Node, memo: dict[Value, frozenset[Value]]) -> list[frozenset[Value]]:
    """The roots of a construct's results."""
    possible: list[set[Value]] = [set() for _ in node.outputs]
    first = 1 if node.op is g.COND else 0
    for region in node.regions[1:] if node.op is g.WHILE else node.regions:
        inner: dict[Value, frozenset[Value]] = {}
        places = [roots(v, inner) for v in region.outputs[:len(possible)]]
        if node.op is g.WHILE:
            places = _of_rounds(places, node)
        firsts: dict[Value, Value] = {}  # of what the region makes, the first result that it is
        for k, values in enumerate(places):
            for v in values:
                if v.node is None:
                    possible[k] |= roots(node.inputs[first + v.index], memo)
                else:
                    possible[k].add(firsts.setdefault(v, node.outputs[k]))
    return [frozenset(values) for values in possible]


def _of_rounds(results: list[frozenset[Value]], node: Node) -> list[frozenset[Value]]:
    """The roots of what a loop carries after some rounds, as inputs of its body before the first and what it makes."""
    body = node.regions[1]
    count = len(results)
    reached = carried_roots(body.inputs[:count], results)
    if not surely_runs(node):
        return reached
    after: list[frozenset[Value]] = []
    for values in results:
        after.append(frozenset().union(*[reached[v.index] if v.node is None and v.index < count else {v}
                                         for v in values]))
    return after


def carried_roots(inputs: list[Value], results: list[frozenset[Value]]) -> list[frozenset[Value]]:
    """The values that each carried value of a loop may be in some round: its own input, others, and results of rounds.

    Args:
        inputs: what is carried, as inputs of the body.
        results: the roots of what they become in a round.
    """
    count = len(inputs)
    possible = [{v} for v in inputs]
    changed = True
    while changed:
        changed = False
        for k, values in enumerate(results):
            more = set().union(*[possible[v.index] if v.node is None and v.index < count else {v} for v in values])
            changed |= not more <= possible[k]
            possible[k] |= more
    return [frozenset(values) for values in possible]
