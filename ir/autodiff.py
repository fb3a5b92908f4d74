"""Gradients of graphs: from a graph, one that also gives what its gradient reads, and one that computes the gradient.

    vjp(f)    forward: the results of f, then residuals        backward: residuals, cotangents -> cotangents

Rules are those of the ops (`ir/ops`), applied in the order in which a tape plays them, and cotangents add up in the
tape's order, so that the numbers are the tape's to the bit. A residual is what a rule reads; what one or two cheap
instructions give from other residuals is computed again. Both graphs are ordinary ones: differentiating them gives
higher orders. How the graphs are made is `ir/linearise.py`'s affair, control flow `ir/pullbacks.py`'s; the rules of
single ops stand beside the ops.

For `f(x, y) = sum(exp(x) * y)` with both wanted:

    forward(x, y):          e = exp(x); p = multiply(e, y); s = reduce_sum(p); return s, e
    backward(y, e, ct):     c = broadcast_to(ct); gx = c * y * e; gy = c * e; return gx, gy
"""

from __future__ import annotations

from collections.abc import Sequence

from . import graph as g
from . import pullbacks  # noqa: F401 - fills the tables of constructs
from .graph import Graph
from .linearise import Backward, Linearised, Scope, reached, reaching, scope_of
from .passes.inlining import inline_calls

__all__ = ["Backward", "Linearised", "Scope", "scope_of", "vjp", "reached", "reaching"]


def vjp(graph: Graph, wanted: Sequence[bool], seeded: Sequence[bool] | None = None,
        whole: bool = False) -> Linearised:
    """The gradient of `graph`.

    Args:
        graph: a function of tensors; it stays as it is.
        wanted: for each input, whether its cotangent is wanted; only floats and complex numbers have one.
        seeded: for each output, whether it has a cotangent; by default all that can have one.
        whole: whether the gradient will be differentiated, too; see `Scope`.

    >>> from twofold.ir import dtypes, graph, ops
    >>> from twofold.ir.build import Builder
    >>> from twofold.ir.op import use_interpreter
    >>> f = graph.Graph("f")
    >>> x = f.add_input((3,), dtypes.float32)
    >>> with use_interpreter(Builder(f)):
    ...     f.outputs = [ops.exp(x)]
    >>> both = vjp(f, [True])
    >>> len(both.forward.outputs), both.sources, len(both.backward().graph.inputs)
    (1, [0], 2)
    """
    seeds = tuple([v.dtype.is_differentiable for v in graph.outputs]) if seeded is None else tuple(seeded)
    if any(node.op is g.CALL for node in graph.walk()):  # a call is the ops that it runs, in their order
        graph = graph.copy()
        inline_calls(graph)
    return Linearised(graph, tuple(wanted), seeds, scope_of(graph, whole))
