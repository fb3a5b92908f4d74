"""Functions of single elements, run on whole batches where that provably gives the same.

A traced function qualifies when every op between its arguments and its results works element by element, cannot fail,
and has operands of the rank of its result (constants may have less): then a further first axis changes nothing, and
each element of a result has the same bits, since kernels do not depend on shapes. The graph is written again over
batches; the user's Python does not run again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.eager.tensor import wrap
from twofold.ir import graph as g
from twofold.ir.dims import Dim
from twofold.ir.op import Op, apply
from twofold.ir.spec import TensorSpec

from .function import function

__all__ = ["over_rows"]

_MAY_FAIL = ("div", "mod", "pow")  # parts of the names of ops that check integers


def over_rows(concrete: Any) -> Callable[..., Any] | None:
    """A function of batches that applies a function of elements to each row; None where the two cannot be proved equal.

    Args:
        concrete: a concrete function that gives a tuple of tensors.
    """
    graph = concrete.graph
    if concrete.captured_inputs or not _works_by_rows(graph):
        return None

    def batched(*tensors: Any) -> tuple[Any, ...]:
        return _written_again(graph, tensors)
    batched.__name__ = graph.name
    made = function(batched, autograph=False, fallback=False)
    batch_function: Callable[..., Any] = made.get_concrete_function(
        *[TensorSpec([None, *v.dims], v.dtype) for v in graph.inputs])
    return batch_function


def _written_again(graph: g.Graph, tensors: Sequence[Any]) -> tuple[Any, ...]:
    """The outputs of the graph for batches of its inputs, whose shapes its own do not describe."""
    known: dict[g.Value, Any] = dict(zip(graph.inputs, tensors, strict=True))
    for node in graph.nodes:
        if isinstance(node.op, Op):
            made = apply(node.op, tuple([known[v] for v in node.inputs]), node.attrs)
            results = made if isinstance(made, tuple) else (made,)
        else:
            results = (wrap(node.attrs["value"]),)
        known.update(zip(node.outputs, results, strict=True))
    return tuple([known[v] for v in graph.outputs])


def _works_by_rows(graph: g.Graph) -> bool:
    if any(isinstance(d, Dim) for v in graph.inputs for d in v.dims):
        return False
    rows = set(graph.inputs)  # the values that differ from element to element
    for node in graph.nodes:
        if node.op is g.CONSTANT:
            continue
        if not isinstance(node.op, Op) or not g.is_pure(node):
            return False
        varying = [v for v in node.inputs if v in rows]
        if not varying:
            continue
        if not _is_elementwise(node, varying):
            return False
        rows.update(node.outputs)
    return bool(graph.outputs) and all(v in rows for v in graph.outputs)


def _is_elementwise(node: g.Node, varying: list[g.Value]) -> bool:
    op = node.op
    if op.body is None or len(node.outputs) != 1:  # type: ignore[union-attr]
        return False
    if varying[0].dtype.is_integer and any(part in op.name for part in _MAY_FAIL):
        return False
    rank = len(node.outputs[0].dims)
    return all(len(v.dims) == rank for v in varying)
