"""Which unknown sizes a graph speaks of, and which of them it binds.

A symbol is bound by a dimension of an input that is the symbol alone, by a `bind` node, or by a result that is the
symbol alone of an op whose sizes depend on values, or of a construct. All others come from the surrounding graph.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping

from . import dims as dm
from . import graph as g
from .assumptions import renamed
from .dims import Dim, DimLike
from .graph import Graph, Node, Value
from .replay import resolve
from .types import Attr

__all__ = ["alone", "bound", "brought", "collect", "every", "names_in", "used", "fresh_names", "needed", "rename",
           "symbols_in", "unbound"]


def alone(dims: Iterable[DimLike]) -> Iterator[str]:
    """The symbols that are a dimension by themselves."""
    for d in dims:
        if isinstance(d, Dim) and (name := d.name_alone()) is not None:
            yield name


def brought(node: Node) -> set[str]:
    """The symbols that a node binds, or may bind, in the sizes of its results; those of its operands are bound
    already."""
    if node.op is g.BIND:
        return {node.attrs["symbol"]}
    if not isinstance(node.op, g.Construct) and "dynamic" not in node.op.traits:
        return set()
    names = {name for v in node.outputs for name in alone(v.dims)}
    return names - {name for v in node.inputs for name in dm.symbols_of(v.dims)} if names else names


def bound(graph: Graph) -> set[str]:
    """The symbols that a graph binds by itself."""
    names = {name for v in graph.inputs for name in alone(v.dims)}
    for node in graph.nodes:
        names |= brought(node)
    return names


def used(graph: Graph) -> set[str]:
    """The symbols that a graph speaks of; of its regions, only what they do not bind themselves."""
    names: set[str] = set()
    for v in graph.inputs:
        collect(v.dims, names)
    for node in graph.nodes:
        for v in node.outputs:
            collect(v.dims, names)
        _needed(node, names)
    return names


def unbound(graph: Graph, have: Iterable[str]) -> set[str]:
    """The symbols that a graph needs before it binds them, beside those in `have` and the shapes of its inputs."""
    available, unbound_names = set(have), set[str]()
    for node in graph.nodes:
        names: set[str] = set()
        _needed(node, names)
        unbound_names |= names - available
        available |= brought(node)
        names = set()
        for v in node.outputs:
            collect(v.dims, names)
        unbound_names |= names - available
    return unbound_names


def needed(graph: Graph) -> set[str]:
    """The symbols without which nodes of a graph cannot run, whether the graph binds them before or not."""
    names: set[str] = set()
    for node in graph.nodes:
        _needed(node, names)
    return names


def _needed(node: Node, names: set[str]) -> None:
    """Adds the symbols that a node needs in order to run."""
    for attr in node.attrs.values():
        if isinstance(attr, (Dim, tuple)):
            collect((attr,), names)
    for region in node.regions if node.op is not g.CALL else ():
        names |= used(region) - bound(region) | unbound(region, {n for v in region.inputs for n in alone(v.dims)})


def names_in(items: Iterable[Attr]) -> frozenset[str]:
    """The symbols in sizes and attributes, in tuples too."""
    names: set[str] = set()
    collect(items, names)
    return frozenset(names)


def collect(items: Iterable[Attr], names: set[str]) -> None:
    """Adds the symbols in sizes, in tuples too, to `names`."""
    for item in items:
        if isinstance(item, Dim):
            names |= item.symbols()
        elif isinstance(item, tuple):
            collect(item, names)


def fresh_names(graph: Graph, stem: str = "r") -> Callable[[], Dim]:
    """A function that gives sizes under names that `graph`, its regions and their guards do not use."""
    taken = every(graph)
    numbers = itertools.count()

    def fresh() -> Dim:
        while (name := f"{stem}_{next(numbers)}") in taken:
            pass
        return dm.symbol(name)
    return fresh


def every(graph: Graph) -> set[str]:
    """All names of symbols that a graph and its regions use, also where only a guard still speaks of them: a new
    symbol of such a name would be under that guard."""
    names = used(graph) | bound(graph)
    for guard in graph.guards:
        names |= guard.symbols()
    for node in graph.nodes:
        for region in node.regions:
            names |= every(region)
    return names


def symbols_in(values: Iterable[Value]) -> frozenset[str]:
    """The symbols in the dimensions of values."""
    return frozenset().union(*[dm.symbols_of(v.dims) for v in values])


def rename(graph: Graph, names: Mapping[str, DimLike]) -> None:
    """Give symbols of a graph and of its regions other names, or sizes; callees have names of their own."""
    graph.guards = [renamed(guard, names) for guard in graph.guards]
    for value in graph.inputs:
        value.dims = dm.substitute(value.dims, names)
    for node in graph.nodes:
        for value in node.outputs:
            value.dims = dm.substitute(value.dims, names)
        node.attrs = {k: resolve(v, names) for k, v in node.attrs.items()}
        if node.op is g.BIND and node.attrs["symbol"] in names:
            node.attrs["symbol"] = str(names[node.attrs["symbol"]])
        for region in node.regions if node.op is not g.CALL else ():
            rename(region, names)
