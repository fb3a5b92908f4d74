"""The parts in which a graph runs: native segments, nodes that Python runs, and exchanges that run beside them.

Native nodes wait for one another: as many as possible run in one segment. An op that replicas compute together (its
trait is "exchange") has two places, a begin and an end. It begins as soon as its operands are there: what they need
comes first, and is a segment of its own where work is left for the time of the exchange. It ends where nothing but what
needs its results is left. Exchanges begin in the order of the graph, which is the same in all processes.
"""

from __future__ import annotations

from typing import TypeAlias

from twofold.codegen.backend import Backend, CompiledGraph
from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir import symbols
from twofold.ir.dims import Dim

__all__ = ["Begin", "End", "Part", "PythonNode", "Segment", "brought", "is_exchange", "split", "subgraph"]


class Segment:
    """Native nodes that run as one piece."""

    def __init__(self, nodes: list[g.Node]) -> None:
        self.nodes = nodes
        self.inputs: list[g.Value] = []
        self.outputs: list[g.Value] = []
        self.run: CompiledGraph | None = None


class PythonNode:
    """A node that needs Python."""

    def __init__(self, node: g.Node) -> None:
        self.node, self.nodes = node, [node]
        self.inputs, self.outputs = node.inputs, node.outputs


class Begin:
    """Where an exchange begins."""

    def __init__(self, node: g.Node) -> None:
        self.node = node
        self.nodes: list[g.Node] = []  # it makes no values
        self.inputs, self.outputs = node.inputs, list[g.Value]()


class End:
    """Where its results are waited for."""

    def __init__(self, node: g.Node) -> None:
        self.node, self.nodes = node, [node]
        self.inputs, self.outputs = list[g.Value](), node.outputs


Part: TypeAlias = Segment | PythonNode | Begin | End
_Level: TypeAlias = tuple[int, int]  # how many exchanges are waited for before, one after the other; place after them


def is_exchange(node: g.Node) -> bool:
    """Whether a node begins and ends at different places."""
    return not isinstance(node.op, g.Construct) and "exchange" in node.op.traits


def split(graph: g.Graph, backend: Backend) -> list[Part]:
    """The parts of a graph, in an order that respects values, sizes and effects."""
    backend.prepare()
    at: dict[_Level, list[g.Node]] = {}
    for node, level in _levels(graph, backend).items():
        at.setdefault(level, []).append(node)
    parts: list[Part] = []
    begun: list[g.Node] = []
    waits = 0
    for level in sorted({(w, number + number % 2) for w, number in at}):  # of Python's nodes, after native ones
        if level[0] > waits:
            parts, begun, waits = [*parts, *map(End, begun)], [], level[0]
        singles = at.get(level, [])
        parts += _around(at.get((level[0], level[1] - 1), []), singles)
        begun += filter(is_exchange, singles)
    parts += map(End, begun)
    _fill(graph, parts)
    return [p for p in parts if not isinstance(p, Segment) or p.outputs]


def _levels(graph: g.Graph, backend: Backend) -> dict[g.Node, _Level]:
    """The level of each node, at least those of what it needs; native ones are odd."""
    depth: dict[g.Value, _Level] = {}  # level at which a value is known
    bound: dict[str, _Level] = {}
    level_of: dict[g.Node, _Level] = {}
    start = effects = (0, 0)
    for node in graph.nodes:
        waits, number = max([start, *[depth.get(v, start) for v in node.inputs],
                             *[bound.get(name, start) for name in _symbols(node)]])
        if node.op is g.CONSTANT and backend.supports(node):
            level = (0, 1)
        elif backend.supports(node):
            level = (waits, number | 1)
        else:
            level = (waits, number + number % 2)
            if g.effect_of(node) is not None:
                level = effects = max(level, effects)
        level_of[node] = level
        known, sized = (level, (level[0], level[1] + 1))
        if is_exchange(node):
            known = sized = (level[0] + 1, 0)
        depth.update(dict.fromkeys(node.outputs, known))
        names = {node.attrs["symbol"]} if node.op is g.BIND else brought(node, backend)
        for name in names:
            bound.setdefault(name, sized)
    return level_of


def _around(natives: list[g.Node], singles: list[g.Node]) -> list[Part]:
    """Native nodes, and nodes of Python that none of them needs, as parts: what an exchange needs comes before it, and
    all else after it."""
    if not any(map(is_exchange, singles)):
        return [*([Segment(natives)] if natives else []), *map(PythonNode, singles)]
    made_by = {v: node for node in natives for v in node.outputs}
    left = dict.fromkeys(natives)
    parts: list[Part] = []
    last: Segment | None = None
    for single in [*singles, None]:
        behind = set(left) if single is None else _behind(single, made_by, left)
        nodes = [node for node in left if node in behind]
        left = {node: None for node in left if node not in behind}
        if nodes and last is not None and not any(map(_takes_time, nodes)):
            last.nodes += nodes
        elif nodes:
            last = Segment(nodes)
            parts.append(last)
        if single is not None:
            parts.append(Begin(single) if is_exchange(single) else PythonNode(single))
    return parts


def _behind(single: g.Node, made_by: dict[g.Value, g.Node], left: dict[g.Node, None]) -> set[g.Node]:
    """Those of the nodes `left` that a node needs."""
    behind: set[g.Node] = set()
    open_ = list(single.inputs)
    while open_:
        node = made_by.get(open_.pop())
        if node in left and node not in behind:
            behind.add(node)
            open_ += node.inputs
    return behind


def _takes_time(node: g.Node) -> bool:
    """Whether a node may be worth a segment beside an exchange."""
    return isinstance(node.op, g.Construct) and bool(node.regions) or not isinstance(node.op, g.Construct) and (
        node.op.lower is not None or node.op.reduction is not None)


def _symbols(node: g.Node) -> frozenset[str]:
    symbols_read = dm.symbols_of([d for v in (*node.inputs, *node.outputs) for d in v.dims])
    if isinstance(node.op, g.Construct) or "dynamic" in node.op.traits:
        symbols_read = dm.symbols_of([d for v in node.inputs for d in v.dims])
    if node.op is not g.CALL:  # regions see the sizes around them; a callee only those that it is given
        for region in node.regions:
            symbols_read |= symbols.used(region)
    return symbols_read | _in_attrs(tuple(node.attrs.values()))


def _in_attrs(attrs: tuple[object, ...]) -> frozenset[str]:
    names: frozenset[str] = frozenset()
    for a in attrs:
        if isinstance(a, Dim):
            names |= a.symbols()
        elif type(a) is tuple:
            names |= _in_attrs(a)
    return names


def brought(node: g.Node, backend: Backend) -> frozenset[str]:
    """The symbols that the results of a node bind."""
    if backend.supports(node):
        return frozenset()
    return dm.symbols_of([d for v in node.outputs for d in v.dims]) - dm.symbols_of(
        [d for v in node.inputs for d in v.dims])


def _fill(graph: g.Graph, parts: list[Part]) -> None:
    """The inputs and outputs of the segments; constants are copied into the segments that read them."""
    home = {v: p for p in parts if isinstance(p, Segment) for n in p.nodes for v in n.outputs}
    cheap = {v for p in parts if isinstance(p, Segment) for n in p.nodes if n.op in (g.CONSTANT, g.SIZE)
             for v in n.outputs}

    def ask(value: g.Value, part: Part | None) -> None:
        owner = home.get(value)
        if owner is part:
            return
        if isinstance(part, Segment):
            if value in cheap:
                if value.node is not None and value.node not in part.nodes:
                    part.nodes.insert(0, value.node)
                return
            if value not in part.inputs:
                part.inputs.append(value)
        if owner is not None and value not in owner.outputs:
            owner.outputs.append(value)

    for part in parts:
        if isinstance(part, Segment):
            for node in list(part.nodes):
                for value in node.inputs:
                    ask(value, part)
        else:
            for value in part.inputs:
                ask(value, part)
    for value in graph.outputs:
        ask(value, None)


def subgraph(graph: g.Graph, part: Segment) -> g.Graph:
    """The graph of a segment alone."""
    subgraph = g.Graph(graph.name)
    values = {v: subgraph.add_input(v.dims, v.dtype, v.name) for v in part.inputs}
    for node in part.nodes:
        new = subgraph.add(node.op, [values[v] for v in node.inputs], node.attrs, node.outputs, node.regions, node.loc)
        values.update(zip(node.outputs, new.outputs, strict=True))
    subgraph.outputs = [values[v] for v in part.outputs]
    return subgraph
