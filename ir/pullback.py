"""How the gradients of constructs (`ir/linearise.py: Pullback`) inline the gradient of a region.

`ir/pullbacks.py` has those of calls, branches, functions with gradients of their own and stacks, and
`ir/loop_pullback.py` that of loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from . import dims as dm
from . import ops
from .dims import Dim, DimLike, Guard
from .dtypes import DType
from .graph import Graph, Value
from .linearise import Backward, Linearised, Mask, Starts
from .sums import Exists, Link
from .types import AnyTensor, Spec

__all__ = ["chosen", "by_flag", "guards_within", "hand_on_guards", "late_of", "number_inputs", "played", "seeds_of",
           "sizes_of", "tensors_of", "touched_by", "with_distinct", "zeros_of"]


def touched_by(connected: Mask, links: Sequence[Link], first: int) -> Mask:
    """The operands, from number `first` on, whose sums may grow: those in `connected`, and those that may be one value
    with these."""
    grow = {first + i for i, x in enumerate(connected) if x}
    while more := {i for link in links for i in link[:2] if not grow.isdisjoint(link[:2])} - grow:
        grow |= more
    return tuple([first + i in grow for i in range(len(connected))])


def played(lin: Linearised, seeded: Mask, late: Mask, starts: Starts, touched: Mask, links: Sequence[Link],
           first: int = 0, shared: Mask = ()) -> tuple[Backward, Mask]:
    """The gradient that continues those of `starts` that may grow, and which these are.

    Args:
        seeded, late: for each result, whether it has a cotangent, and whether only running tells that.
        links: among operands of which number `first` is the first input.
        shared: as for `Linearised.backward`.
    """
    started = tuple([s is not None and t and w for (s, _), t, w in zip(starts, touched, lin.wanted, strict=True)])
    joined = [(link.one - first, link.other - first) for link in links]
    back = lin.backward(seeded, started, joined, tuple([s is None or begun is not None for s, begun in starts]),
                        late, shared)
    hand_on_guards(lin, back)
    return back, started


def hand_on_guards(lin: Linearised, back: Backward) -> None:
    """Assume around the gradient of a region what it assumes of sizes that are known there."""
    for q in back.graph.guards:
        if q.symbols().isdisjoint(lin.local) and q not in lin.guards:
            dm.require(q.left, q.op, q.right)


def guards_within(lin: Linearised, back: Backward) -> list[Guard]:
    """What the gradient of a region assumes by itself."""
    return [q for q in back.graph.guards if q in lin.guards or not q.symbols().isdisjoint(lin.local)]


def seeds_of(lin: Linearised, ends: Starts) -> Mask:
    """The results that have a cotangent and may have one."""
    return tuple([ct is not None and s for (ct, _), s in zip(ends, lin.seeded, strict=True)])


def late_of(seeded: Mask, ends: Starts) -> Mask:
    """Those of the results `seeded` of which only running tells whether they have a cotangent."""
    return tuple([s and exists is not None for s, (_, exists) in zip(seeded, ends, strict=True)])


def tensors_of(seeded: Mask, late: Mask, ends: Starts, sums: Sequence[AnyTensor | None], started: Mask,
               links: Sequence[Link]) -> list[AnyTensor]:
    """What a gradient takes after its residuals; see `Backward`."""
    flags = [exists() for (_, exists), x in zip(ends, late, strict=True) if x and exists is not None]
    return [*chosen([ct for ct, _ in ends], seeded), *chosen(sums, started), *[link.holds() for link in links], *flags]


def sizes_of(value: Value, operand: Spec) -> dict[str, DimLike]:
    """The sizes of an operand for the symbols that the shape of the region's input binds."""
    return {name: size for d, size in zip(value.dims, operand.dims, strict=True)
            if isinstance(d, Dim) and (name := d.name_alone()) is not None}


def by_flag(flag: AnyTensor) -> Exists:
    """Whether something is there, as a bool scalar tells."""
    return lambda: flag


_Item = TypeVar("_Item")


def chosen(items: Iterable[_Item | None], mask: Sequence[bool]) -> list[_Item]:
    """The items where the mask is true; there none is None."""
    return [x for x, m in zip(items, mask, strict=True) if m and x is not None]


def with_distinct(region: Graph, operands: Sequence[Value], first: int = 0) -> Graph:
    """The region, reading of inputs for equal operands, from number `first` on, the first alone."""
    places: dict[Value, Value] = {}
    same = {v: places.setdefault(x, v) for v, x in zip(region.inputs[first:], operands[first:], strict=True)}
    if len(places) == len(same):
        return region
    region, copies = region.copy_with()
    same = {copies[v]: copies[by] for v, by in same.items()}
    for node in region.nodes:
        node.inputs = [same.get(v, v) for v in node.inputs]
    region.outputs = [same.get(v, v) for v in region.outputs]
    return region


def zeros_of(dtype: DType, dims: Sequence[DimLike]) -> Value:
    """Zeros in the graph that is written to."""
    return ops.fill(np.zeros((), dtype.np), shape=tuple(dims))


def number_inputs(graph: Graph) -> None:
    """Set the numbers of inputs that were put in their order."""
    for i, v in enumerate(graph.inputs):
        v.index = i
