"""Writing one graph into another: what each construct becomes when a graph is replayed inside a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from twofold.eager.tensor import wrap
from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.dims import DimLike
from twofold.ir.replay import replay, resolve
from twofold.ir.spec import TensorSpec, spec

from . import host
from .trace import current

__all__ = ["restage"]


def restage(node: g.Node, operands: list[Any], sizes: dict[str, DimLike]) -> Sequence[Any]:
    """The results of a construct in the trace that is under way; for `ir.replay.replay`."""
    trace = current()
    assert trace is not None, "a graph is staged inside of a trace only"
    if node.op is g.CONSTANT:
        return (wrap(node.attrs["value"]),)
    if node.op is g.SIZE:
        size = resolve(node.attrs["size"], sizes)
        return (trace.size(size, node.attrs["dtype"]) if isinstance(size, dm.Dim)
                else wrap(np.array(size, node.attrs["dtype"].np)),)
    if node.op is g.BIND:
        sizes[node.attrs["symbol"]] = trace.sizes_of(operands[0])[0]
        return ()
    if node.op is g.HOST and node.attrs.get("smooth"):
        specs = [TensorSpec(dm.substitute(v.dims, _known(node, sizes, trace)), v.dtype) for v in node.outputs]
        return host.differentiable(node.attrs["fn"], node.attrs["name"], operands, specs)
    if node.op is g.CALL:
        own = {name: resolve(size, sizes) for name, size in node.attrs["sizes"]}
        return replay(node.regions[0], operands, restage, own)
    specs = [spec(dm.substitute(v.dims, _known(node, sizes, trace)), v.dtype) for v in node.outputs]
    attrs = {k: resolve(v, sizes) for k, v in node.attrs.items()}
    op: Any = node.op
    return trace.construct(op, operands, attrs, specs, [_renamed(r, sizes) for r in node.regions])


def _known(node: g.Node, sizes: dict[str, DimLike], trace: Any) -> dict[str, DimLike]:
    """`sizes`, with a size of the trace for each symbol that the results of the node bring."""
    for name in sorted(dm.symbols_of([d for v in node.outputs for d in v.dims]) - sizes.keys()):
        sizes[name] = trace.fresh(name.rpartition("_")[0] or name)
    return sizes


def _renamed(region: g.Graph, sizes: dict[str, DimLike]) -> g.Graph:
    """A copy of a region in which symbols of the surrounding graph are what they are called here."""
    made = region.copy()
    for graph in [made, *[r for n in made.walk() for r in n.regions]]:
        for value in [*graph.inputs, *[v for n in graph.nodes for v in n.outputs]]:
            value.dims = dm.substitute(value.dims, sizes)
        for node in graph.nodes:
            node.attrs = {k: resolve(v, sizes) for k, v in node.attrs.items()}
    return made
