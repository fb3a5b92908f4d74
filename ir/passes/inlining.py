"""Inlining: a call is replaced by the nodes of its callee.

    %1 = call(%0) {name: "square", sizes: [["m", n]]} : f32[n] {
      graph square(%0: f32[m]) {
        %1 = multiply(%0, %0) : f32[m]              ->        %1 = multiply(%0, %0) : f32[n]
        return %1
      }
    }

The callee's sizes take the caller's names, and those that it makes itself (of a `nonzero`, say) get new names; where
the caller had a name for what is an expression of these, the expression takes its place. What the callee assumed of
sizes is assumed by the caller from then on, and where operands and results have sizes of other names than inside, that
these are equal, too. `inlined` does the same for a region that is known to run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .. import dims as dm
from .. import graph as g
from .. import symbols
from ..assumptions import renamed
from ..dims import Dim, DimLike, Shape
from ..replay import bind_sizes, resolve

__all__ = ["assume_equal", "inline_calls", "inlined", "rename_results", "Names"]


class Names:
    """Gives names for sizes that a whole graph does not use; it looks at the graph when it is first asked."""

    def __init__(self, graph: g.Graph) -> None:
        self._graph = graph
        self._fresh: Callable[[], Dim] | None = None

    def __call__(self) -> Dim:
        if self._fresh is None:
            self._fresh = symbols.fresh_names(self._graph, "s")
        return self._fresh()


def inline_calls(graph: g.Graph, names: Callable[[], Dim] | None = None,
                 around: Callable[[], set[str]] = set) -> bool:
    """Replace all calls in `graph` and its regions, in place. Returns whether anything changed.

    Args:
        names: gives names for sizes that callees bring; by default such as the graph does not use.
        around: gives the sizes that are known around the graph, if it is a region.
    """
    return _inline(graph, graph, names or Names(graph), around)


def _inline(graph: g.Graph, top: g.Graph, names: Callable[[], Dim], around: Callable[[], set[str]]) -> bool:
    changed = False
    nodes: list[g.Node] = []
    replaced: dict[g.Value, g.Value] = {}

    def have() -> set[str]:
        """The sizes that are known before the node that is looked at."""
        return around().union(symbols.symbols_in(graph.inputs), *map(symbols.brought, nodes))
    for node in list(graph.nodes):
        if replaced:
            node.inputs = [replaced.get(v, v) for v in node.inputs]
        if node.op is not g.CALL:
            for region in node.regions:
                changed |= _inline(region, top, names, have)
            nodes.append(node)
            continue
        changed = True
        callee, sizes = node.regions[0].copy(), dict(node.attrs["sizes"])
        _inline(callee, callee, names, set)
        copies, results, sizes = inlined(callee, node.inputs, node.outputs, names, sizes)
        _assume(graph, top, callee, sizes)
        assume_equal(graph, [dm.substitute(v.dims, sizes) for v in callee.inputs], node.inputs)
        rename_results(graph, top, node.outputs, results, have)
        nodes += copies
        replaced.update(zip(node.outputs, results, strict=True))
    if changed:
        graph.nodes = nodes
        graph.outputs = [replaced.get(v, v) for v in graph.outputs]
    return changed


def rename_results(graph: g.Graph, top: g.Graph, before: Sequence[g.Value], after: Sequence[g.Value],
                   have: Callable[[], set[str]]) -> None:
    """Where results had sizes of names of their own that are now expressions, these take their place in `graph`.

    Args:
        top: the graph around it, whose guards may speak of the sizes.
        before, after: the results of a construct, and what stands for them.
        have: gives the sizes that are known without the construct, which stay.
    """
    names: dict[str, DimLike] = {}
    for old, new in zip(before, after, strict=True):
        for was, size in zip(old.dims, new.dims, strict=True):
            if isinstance(was, Dim) and was != size and (name := was.name_alone()) is not None:
                names.setdefault(name, size)
    if names and (names := {name: size for name, size in names.items() if name not in have()}):
        if graph is not top:
            top.guards = [*top.guards, *[renamed(q, names) for q in top.guards if not q.symbols().isdisjoint(names)]]
        symbols.rename(graph, names)
    assume_equal(graph, [dm.substitute(v.dims, names) for v in before], after)


def assume_equal(graph: g.Graph, shapes: Sequence[Shape], values: Sequence[g.Value]) -> None:
    """From here on `graph` assumes that values have these shapes, which they have, where it does not know it."""
    apart = [(dims, v.dims) for dims, v in zip(shapes, values, strict=True) if dims != v.dims]
    if not apart:
        return
    with dm.recording(dm.assumed(graph.guards)) as recorder:
        before = len(recorder)
        for a, b in apart:
            dm.require_same(a, b)
    graph.guards = [*graph.guards, *recorder[before:]]


def _assume(graph: g.Graph, top: g.Graph, callee: g.Graph, sizes: Mapping[str, DimLike]) -> None:
    """From here on `graph`, which may be a region that does not run, assumes what a callee does."""
    if not callee.guards:
        return
    with dm.recording(dm.assumed(top.guards if graph is top else [*top.guards, *graph.guards])) as recorder:
        before = len(recorder)
        for guard in callee.guards:
            new = renamed(guard, sizes)
            recorder.origin = lambda new=new: new.origin
            if not dm.require(new.left, new.op, new.right):
                raise ValueError(f"the call of {callee.name} breaks its guard {guard}")
    graph.guards = [*graph.guards, *recorder[before:]]


def inlined(region: g.Graph, operands: Sequence[g.Value], results: Sequence[g.Value], names: Callable[[], Dim],
            sizes: Mapping[str, DimLike] | None = None
            ) -> tuple[list[g.Node], list[g.Value], dict[str, DimLike]]:
    """Copies of the nodes of `region` over `operands`, the values that stand for its outputs, and what its sizes are
    among them.

    Args:
        region: a region, or a callee.
        operands: what its inputs become.
        results: the construct's results, whose sizes keep their names.
        names: gives new names for sizes that the region makes.
        sizes: what a callee's sizes are in the caller, as far as the call says; None for a region, which shares the
            names around it.
    """
    env: dict[str, DimLike] = dict(sizes or {})
    outer = frozenset() if sizes is not None else symbols.symbols_in(operands)
    for value, operand in zip(region.inputs, operands, strict=True):
        own = [d for d in value.dims if not (isinstance(d, Dim) and d.name_alone() in outer)]
        if len(own) == len(value.dims):
            bind_sizes(value.dims, operand.dims, env)
        else:
            pairs = [(d, o) for d, o in zip(value.dims, operand.dims, strict=True) if d in own]
            bind_sizes([d for d, _ in pairs], [o for _, o in pairs], env)
    made_here = _made_sizes(region) - set(env)
    for value, result in zip(region.outputs, results, strict=True):
        for d, wanted in zip(value.dims, result.dims, strict=True):
            name = d.name_alone() if isinstance(d, Dim) else None
            if name in made_here and isinstance(wanted, Dim) and wanted.name_alone() is not None:
                env.setdefault(name, wanted)
    for name in sorted(made_here):
        if name not in env:
            env[name] = names()
    copies = dict(zip(region.inputs, operands, strict=True))
    into = g.Graph()
    _copy_nodes(region, into, copies, env)
    return into.nodes, [copies[v] for v in region.outputs], env


def _made_sizes(graph: g.Graph) -> set[str]:
    """The sizes that the nodes of a graph, and its regions, bring."""
    names: set[str] = set()
    for node in graph.nodes:
        names |= symbols.brought(node)
        for region in node.regions:
            names |= _made_sizes(region)
            names |= {name for v in region.inputs for name in symbols.alone(v.dims)} - symbols.symbols_in(node.inputs)
    return names


def _copy_nodes(graph: g.Graph, into: g.Graph, copies: dict[g.Value, g.Value], env: Mapping[str, DimLike]) -> None:
    for node in graph.nodes:
        attrs = {k: resolve(v, env) for k, v in node.attrs.items()} if env else node.attrs
        if node.op is g.BIND and node.attrs["symbol"] in env:
            attrs = {"symbol": str(env[node.attrs["symbol"]])}
        regions = [_renamed(r, env) for r in node.regions]
        copy = into.add(node.op, [copies[v] for v in node.inputs], attrs, node.outputs, regions, node.loc)
        for old, new in zip(node.outputs, copy.outputs, strict=True):
            new.dims, new.name = dm.substitute(old.dims, env), old.name
            copies[old] = new


def _renamed(region: g.Graph, env: Mapping[str, DimLike]) -> g.Graph:
    """A copy of a region in which sizes have their new names."""
    new = g.Graph(region.name)
    copies = {v: new.add_input(dm.substitute(v.dims, env), v.dtype, v.name) for v in region.inputs}
    _copy_nodes(region, new, copies, env)
    new.outputs = [copies[v] for v in region.outputs]
    new.guards = [renamed(guard, env) for guard in region.guards]
    return new
