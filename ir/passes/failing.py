"""Which nodes may refuse their operands when a program runs.

An op that raises is part of what a program does: a division of integers by 0 is an error in both modes, whoever reads
its result. So what may fail is not dropped when nothing reads it, nor computed where the program would not.
"""

from __future__ import annotations

import numpy as np

from .. import graph as g
from .folding import has_checks

__all__ = ["may_fail", "must_stay"]

_DIVISIONS = frozenset({"floordiv", "floormod", "truncatediv", "truncatemod"})


def may_fail(node: g.Node) -> bool:
    """Whether `node` may raise for some values of its operands; of a construct, whether its regions hold such a node.

    >>> from twofold.ir.graph_text import parse
    >>> graph = parse("graph f(%0: i32[2]) { %1 = floordiv(%0, %0) : i32[2] %2 = add(%0, %0) : i32[2] return %1 }")
    >>> [may_fail(node) for node in graph.nodes]
    [True, False]
    """
    op = node.op
    if isinstance(op, g.Construct):
        return any(may_fail(inner) for region in node.regions for inner in region.nodes)
    if op.body is not None:
        return has_checks(node) and not _known_to_hold(node)
    if op.view is not None or op.reduction is not None:
        return False
    if op.name == "range":
        return not _counts(node)
    return "total" not in op.traits


def must_stay(node: g.Node) -> bool:
    """Whether `node` stays when nothing reads it: for its effect, or because it may fail."""
    return not g.is_pure(node) or may_fail(node)


def _known_to_hold(node: g.Node) -> bool:
    """Whether what an elementwise op checks of its second operand holds of a constant there."""
    second = g.constant_of(node.inputs[1]) if len(node.inputs) == 2 else None
    if second is None:
        return False
    if node.op.name in _DIVISIONS:
        return bool(np.all(second != 0))
    return node.op.name == "pow" and bool(np.all(second >= 0))


def _counts(node: g.Node) -> bool:
    """Whether a range is known to lead from its start towards its limit."""
    start, limit, delta = [g.constant_of(v) for v in node.inputs]
    if start is None or delta is None:
        return False
    if node.attrs["size"] is not None:
        return bool(delta != 0)
    return limit is not None and bool(delta != 0 and (limit - start) * delta >= 0)


