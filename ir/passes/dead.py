"""Dead code elimination: what nothing reads goes, unless it has an effect or may fail.

    %1 = exp(%0) : f32[n]
    %2 = sin(%0) : f32[n]                   ->        %1 = sin(%0) : f32[n]
    return %2                                         return %1

Of a `cond` the results that nothing reads go, of a `while` the carried values that no other needs, of both the
operands that no region reads. Inputs of the graph itself stay: they are its signature. What brings a size (a
`nonzero`) stays while the size is spoken of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .. import dims as dm
from .. import graph as g
from .. import symbols
from ..dims import DimLike
from .failing import must_stay

__all__ = ["remove_dead"]


def remove_dead(graph: g.Graph) -> bool:
    """Remove dead code from `graph` and its regions, in place. Returns whether anything changed."""
    sizes = _Sizes(graph)
    live: set[g.Value] = set(graph.outputs)
    needed: list[g.Node] = []  # from the last to the first
    changed = False
    for node in reversed(graph.nodes):
        if not _needed(node, live) and not sizes.needs(node):
            changed = True
            continue
        if node.regions:
            prune = _PRUNE.get(node.op)  # type: ignore[arg-type]
            if prune is not None:
                changed |= prune(node, [i for i, v in enumerate(node.outputs) if v in live or sizes.needs_any(v.dims)])
            elif node.op is not g.CALL:
                changed |= _prune_inside(node)
        live.update(node.inputs)
        sizes.read(node)
        needed.append(node)
    if len(needed) != len(graph.nodes):
        graph.nodes = needed[::-1]
    return changed


def _needed(node: g.Node, live: set[g.Value]) -> bool:
    for value in node.outputs:
        if value in live:
            return True
    return must_stay(node)


class _Sizes:
    """The sizes that a graph speaks of; they are collected only if some node brings one."""

    def __init__(self, graph: g.Graph) -> None:
        self.brought = {id(node): names for node in graph.nodes if (names := symbols.brought(node))}
        self.live: set[str] = set()
        if self.brought:
            for guard in graph.guards:
                self.live |= guard.symbols()

    def needs(self, node: g.Node) -> bool:
        return bool(self.brought) and not self.live.isdisjoint(self.brought.get(id(node), ()))

    def needs_any(self, dims: Iterable[DimLike]) -> bool:
        return bool(self.brought) and not self.live.isdisjoint(symbols.alone(dims))

    def read(self, node: g.Node) -> None:
        if not self.brought:
            return
        symbols.collect(tuple(node.attrs.values()), self.live)
        for value in node.outputs:
            symbols.collect(value.dims, self.live)
        for region in node.regions:
            self.live |= symbols.used(region)


# -- control flow -------------------------------------------------------------------------------------
def _prune_inside(node: g.Node) -> bool:
    changed = [remove_dead(region) for region in node.regions]
    return any(changed)


def _prune_cond(node: g.Node, live: list[int]) -> bool:
    changed = len(live) < len(node.outputs)
    if changed:
        node.outputs = _numbered([node.outputs[i] for i in live])
        for region in node.regions:
            region.outputs = [region.outputs[i] for i in live]
    changed |= _prune_inside(node)
    return _drop_operands(node, 1, []) or changed


def _prune_while(node: g.Node, live: list[int]) -> bool:
    test, body = node.regions
    count = node.attrs["carried"]
    needed = set(live) | {i for i in range(count) if _binds(node, i, 0)}
    needed |= {v.index for v in _reads(test, test.outputs)} & set(range(count))
    while True:
        more = {v.index for v in _reads(body, [body.outputs[i] for i in sorted(needed)])} & set(range(count)) - needed
        if not more:
            break
        needed |= more
    changed = len(needed) < count
    if changed:
        order = sorted(needed)
        node.outputs = _numbered([node.outputs[i] for i in order])
        body.outputs = [body.outputs[i] for i in order]
        _keep_operands(node, 0, [*order, *range(count, len(node.inputs))])
        node.attrs = {**node.attrs, "carried": len(order)}
    changed |= _prune_inside(node)
    return _drop_operands(node, 0, range(node.attrs["carried"])) or changed


def _reads(region: g.Graph, outputs: Iterable[g.Value]) -> list[g.Value]:
    """The inputs of a region that these outputs of it, and what stays anyway, depend on."""
    live, sizes = set(outputs), _Sizes(region)
    for node in reversed(region.nodes):
        if _needed(node, live) or sizes.needs(node):
            live.update(node.inputs)
            sizes.read(node)
    return [v for v in region.inputs if v in live]


def _drop_operands(node: g.Node, first: int, stay: Iterable[int]) -> bool:
    """Take away operands from number `first` on that no region reads; those of the regions' inputs in `stay` stay."""
    fixed = set(stay)
    read = set(fixed)
    for region in node.regions:
        used = {v for inner in region.nodes for v in inner.inputs} | set(region.outputs)
        read |= {i for i, v in enumerate(region.inputs) if v in used}
    read |= {i for i in range(len(node.inputs) - first) if i not in read and _binds(node, i, first)}
    if len(read) == len(node.inputs) - first:
        return False
    _keep_operands(node, first, sorted(read))
    return True


def _binds(node: g.Node, index: int, first: int) -> bool:
    """Whether a region's input gives a name to a size that its operand does not have by that name."""
    names = dm.symbols_of(node.inputs[first + index].dims)
    return any(name not in names for region in node.regions for name in symbols.alone(region.inputs[index].dims))


def _keep_operands(node: g.Node, first: int, order: list[int]) -> None:
    node.inputs = [*node.inputs[:first], *[node.inputs[first + i] for i in order]]
    for region in node.regions:
        region.inputs = _numbered([region.inputs[i] for i in order])


def _numbered(values: list[g.Value]) -> list[g.Value]:
    for i, value in enumerate(values):
        value.index = i
    return values


_PRUNE: dict[g.Construct, Callable[[g.Node, list[int]], bool]] = {g.COND: _prune_cond, g.WHILE: _prune_while}
