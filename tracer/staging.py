"""Writing one graph into another: the constructs of a graph that is replayed inside a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from twofold.eager.tensor import Tensor, wrap
from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir import symbols
from twofold.ir.assumptions import renamed
from twofold.ir.dims import DimLike
from twofold.ir.errors import staged_at
from twofold.ir.replay import replay, resolve
from twofold.ir.spec import TensorSpec, spec

from . import host
from .trace import Trace, current
from .types import Sizes

__all__ = ["restage", "stage_graph"]


def stage_graph(graph: g.Graph, inputs: Sequence[Tensor], sizes: Sizes | None = None) -> list[Tensor]:
    """The outputs, in the trace under way, of a graph that another trace made.

    Sizes that its regions bring get names of this trace, and assumptions about them are made here, too.

    Args:
        sizes: the values of its symbols here, beside those that the shapes of `inputs` tell.
    """
    staging = _Staging()
    outputs = replay(graph, inputs, staging, sizes)
    for guard in graph.guards:
        if not guard.symbols().isdisjoint(staging.names) and guard.symbols() <= staging.sizes.keys():
            new = renamed(guard, staging.sizes)
            dm.require(new.left, new.op, new.right)
    return outputs


class _Staging:
    """Writes constructs of another trace into the one under way.

    Attributes:
        names: of sizes that regions bring, here, by their old names.
        sizes: the same, and those around the regions.
    """

    def __init__(self) -> None:
        self.names: Sizes = {}
        self.sizes: Sizes = {}

    def __call__(self, node: g.Node, operands: list[Tensor], sizes: Sizes) -> Sequence[Tensor]:
        trace = current()
        assert trace is not None, "a graph is staged inside of a trace only"
        local = sorted(_brought(node) - sizes.keys()) if node.op is not g.CALL else []
        for name in local:
            if name not in self.names:
                self.names[name] = trace.fresh(_stem(name))
        token = staged_at.set(node.loc)
        try:
            results = restage(node, operands, sizes, {name: self.names[name] for name in local})
        finally:
            staged_at.reset(token)
        self.sizes = {**self.names, **sizes}
        return results


def _brought(node: g.Node) -> set[str]:
    """The sizes that the regions of a node bring."""
    names: set[str] = set()
    for region in node.regions:
        names.update(name for v in region.inputs for name in symbols.alone(v.dims))
        for inner in region.nodes:
            names |= symbols.brought(inner)
            names |= _brought(inner) if inner.op is not g.CALL else set()
    return names


def _stem(name: str) -> str:
    return name.rpartition("_")[0] or name


def restage(node: g.Node, operands: list[Tensor], sizes: Sizes,
            local: Mapping[str, DimLike] = MappingProxyType({})) -> Sequence[Tensor]:
    """The results of a construct in the trace that is under way; for `ir.replay.replay`.

    Args:
        local: new names of the sizes that its regions bring.
    """
    trace = current()
    assert trace is not None, "a graph is staged inside of a trace only"
    if node.op is g.CONSTANT:
        return (wrap(node.attrs["value"]),)
    if node.op is g.SIZE:
        size = resolve(node.attrs["size"], sizes)
        return (trace.size(size, node.attrs["dtype"]) if isinstance(size, dm.Dim)
                else wrap(np.array(size, node.attrs["dtype"].np)),)
    if node.op is g.BIND:
        sizes[node.attrs["symbol"]] = trace.sizes_of(trace.own(operands[0]))[0]
        return ()
    if node.op is g.HOST and node.attrs.get("smooth"):
        sizes_of_node = _with_new_sizes(node, sizes, trace)
        results = [TensorSpec(dm.substitute(v.dims, sizes_of_node), v.dtype) for v in node.outputs]
        return host.differentiable(node.attrs["fn"], node.attrs["name"], operands, results)
    if node.op is g.CALL:
        own = {name: resolve(size, sizes) for name, size in node.attrs["sizes"]}
        return stage_graph(node.regions[0], operands, own)
    regions = [_renamed(r, {**sizes, **local}) for r in node.regions]
    specs = [spec(dm.substitute(v.dims, _with_new_sizes(node, sizes, trace)), v.dtype) for v in node.outputs]
    attrs = {k: resolve(v, sizes) for k, v in node.attrs.items()}
    assert isinstance(node.op, g.Construct), "ops are staged by the trace itself"
    return trace.construct(node.op, operands, attrs, specs, regions)


def _with_new_sizes(node: g.Node, sizes: Sizes, trace: Trace) -> Sizes:
    """`sizes`, with a size of the trace for each symbol that the results of the node bring."""
    for name in sorted(dm.symbols_of([d for v in node.outputs for d in v.dims]) - sizes.keys()):
        sizes[name] = trace.fresh(_stem(name))
    return sizes


def _renamed(region: g.Graph, names: Mapping[str, DimLike]) -> g.Graph:
    """A copy of a region in which sizes have their names here."""
    copy = region.copy()
    symbols.rename(copy, names)
    return copy
