"""The base class of the gradients of constructs, and how they inline the gradient of a region.

`ir/pullbacks.py` has those of calls, branches, functions with gradients of their own and stacks, and
`ir/loop_pullback.py` that of loops.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import dims as dm
from . import ops
from .dims import Dim
from .graph import Graph, Node, Value
from .linearise import Backward, Linearised, Mask
from .sums import Exists, Link

__all__ = ["Cts", "Pullback", "Starts", "chosen", "given_by", "number_inputs", "played", "seeds_of", "told_sizes",
           "touched_by", "with_distinct", "zeros_of"]

Cts = Sequence[Any]
Starts = Sequence[tuple[Any, Exists]]


class Pullback(ABC):
    """A construct in a forward graph, and its gradient.

    Attributes:
        node: the construct, with residuals among its results.
        count: how many results it has without them.
        joined: results that are another value where a condition of the graph is true, or where it is false. Whoever
            emits the gradient adds their cotangents to that value's (`ir/sums.py`).
        popped: results that come from a stack, the stack, and where they were: their cotangents begin with what is
            there in the stack's, which takes the sum in its place.
        moves: whether the gradient only moves cotangents.
    """

    node: Node
    count: int
    joined: Sequence[tuple[Value, Value, Value, bool]] = ()
    popped: Sequence[tuple[Value, Value, Value]] = ()
    moves = False

    @property
    def outputs(self) -> list[Value]:
        """The results that it had before."""
        return self.node.outputs[:self.count]

    @abstractmethod
    def emit(self, b: Any, cts: Cts, starts: Starts, links: Sequence[Link]) -> list[tuple[Any, Exists]]:
        """Append the gradient.

        Args:
            b: a `Builder`, or what has its `construct`, `lift` and `inline`.
            cts: a cotangent or None for each of the first `count` results.
            starts: for each operand of `node`, what its cotangent is so far, or None, and what tells whether it has
                begun; of an operand that is there twice, at its first place alone.
            links: which operands may be one value; the sums of those that are, are one.
        Returns:
            For each operand None, or its cotangent, which continues what it was so far, and what tells whether anything
            was added (unless the cotangent had surely begun); of an operand that is there twice, at its first place
            alone. What has not begun is -0.0.
        """


def touched_by(given: Mask, links: Sequence[Link], first: int) -> Mask:
    """The operands, from number `first` on, whose sums may grow: those in `given`, and those that may be one value with
    these."""
    grow = {first + i for i, x in enumerate(given) if x}
    while more := {i for link in links for i in link[:2] if not grow.isdisjoint(link[:2])} - grow:
        grow |= more
    return tuple([first + i in grow for i in range(len(given))])


def played(lin: Linearised, seeded: Mask, starts: Starts, touched: Mask, links: Sequence[Link],
           first: int = 0) -> tuple[Backward, Mask]:
    """The gradient that continues those of `starts` that may grow, and which these are.

    Args:
        links: among operands of which number `first` is the first input.
    """
    started = tuple([s is not None and t and w for (s, _), t, w in zip(starts, touched, lin.wanted, strict=True)])
    joined = [(link.one - first, link.other - first) for link in links]
    back = lin.backward(seeded, started, joined, tuple([s is None or begun is not None for s, begun in starts]))
    for q in back.graph.guards:
        if q.symbols().isdisjoint(lin.local):
            dm.require(q.left, q.op, q.right)
    return back, started


def seeds_of(lin: Linearised, cts: Cts) -> Mask:
    return tuple([ct is not None and s for ct, s in zip(cts, lin.seeded, strict=True)])


def told_sizes(value: Value, operand: Any) -> dict[str, Any]:
    """The sizes of an operand for the symbols that the shape of the region's input binds."""
    return {name: size for d, size in zip(value.dims, operand.dims, strict=True)
            if isinstance(d, Dim) and (name := d.name_alone()) is not None}


def given_by(flag: Any) -> Exists:
    """What tells by a bool scalar."""
    return lambda: flag


def chosen(items: Sequence[Any], mask: Sequence[bool]) -> list[Any]:
    return [x for x, m in zip(items, mask, strict=True) if m]


def with_distinct(region: Graph, operands: Sequence[Value], first: int = 0) -> Graph:
    """The region, reading of inputs for equal operands, from number `first` on, the first alone."""
    places: dict[Value, Value] = {}
    same = {v: places.setdefault(x, v) for v, x in zip(region.inputs[first:], operands[first:], strict=True)}
    if len(places) == len(same):
        return region
    region, known = region.copy_with()
    same = {known[v]: known[by] for v, by in same.items()}
    for node in region.nodes:
        node.inputs = [same.get(v, v) for v in node.inputs]
    region.outputs = [same.get(v, v) for v in region.outputs]
    return region


def zeros_of(dtype: Any, dims: Sequence[Any]) -> Any:
    return ops.fill(np.zeros((), dtype.np), shape=tuple(dims))


def number_inputs(graph: Graph) -> None:
    for i, v in enumerate(graph.inputs):
        v.index = i
