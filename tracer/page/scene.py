"""The contents of a graph's drawing: boxes for nodes, kernels and regions, edges for values, and the texts that a click
shows.

In: a graph, and the kernels that some of its nodes belong to. Out: a `Scene`: items with texts and coordinates, as
plain data that `html.py` and `svg.py` write down. Scalars that are constants are no boxes of their own: they are told
with what reads them.
"""

from __future__ import annotations

import linecache
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from twofold.ir import graph as g
from twofold.ir.graph_literals import array_text
from twofold.ir.graph_text import lines_of

from ..kernels import PlannedKernel, amount
from . import layout

__all__ = ["Item", "Scene", "scene_of", "duration"]

_WIDEST = 30  # letters of a box
_TITLE, _SUB = 7.3, 6.1  # widths of letters of the two lines
_TALL, _FLAT = 40.0, 26.0
_HEADER = 24.0
_LONG = 4000  # letters of a text that a panel shows


@dataclass(eq=False)
class Item:
    """One box.

    Attributes:
        kind: "node", "input", "output", "kernel" or "region".
        color: of what sort it is, for its color.
        title, sub: its two lines.
        parent: the number of the item around it, or None.
        facts: lines of the panel, as (name, text) pairs.
        operands: of a node, `(number of the item that makes it or None, text)` each.
        code: text in the letters of code: the node's line, a kernel's loops.
        where: the user's lines, `(place, function, the line itself)` each.
        members: the items of a kernel's nodes.
        seconds: the time of a kernel, where that was measured.
    """

    kind: str
    color: str
    title: str
    sub: str = ""
    parent: int | None = None
    facts: list[tuple[str, str]] = field(default_factory=list)
    operands: list[tuple[int | None, str]] = field(default_factory=list)
    code: str = ""
    where: list[tuple[str, str, str]] = field(default_factory=list)
    members: list[int] = field(default_factory=list)
    seconds: float | None = None
    box: layout.Box = field(default_factory=lambda: layout.Box(0.0, 0.0))


@dataclass(eq=False)
class Scene:
    """A drawing: items in an order in which those around others come first, and edges as `(from, to, segments)`."""

    name: str
    items: list[Item]
    edges: list[tuple[int, int, list[int]]]
    segments: list[layout.EdgeSegment]
    width: float
    height: float


def scene_of(graph: g.Graph, kernels: Sequence[PlannedKernel] = (),
             spent: Mapping[g.Node, float] | None = None) -> Scene:
    """The drawing of `graph`, with its nodes in the boxes of `kernels`; `spent` are seconds that single nodes took."""
    return _SceneBuilder(graph, kernels, spent or {}).scene()


class _SceneBuilder:
    def __init__(self, graph: g.Graph, kernels: Sequence[PlannedKernel], spent: Mapping[g.Node, float]) -> None:
        self.graph, self.kernels, self.spent = graph, kernels, spent
        self.items: list[Item] = []
        self.number: dict[Hashable, int] = {}  # of the item of a node, a region, a kernel, or an input
        self.links: list[tuple[int, int]] = []
        self.home = {node: kernel for kernel in kernels for node in kernel.nodes}
        self.root = layout.Box(0.0, 0.0)

    def scene(self) -> Scene:
        self.region(self.graph, None, self.root)
        for kernel in self.kernels:
            if kernel in self.number:
                self.items[self.number[kernel]].members = [self.number[n] for n in kernel.nodes if n in self.number]
        links = list(dict.fromkeys(self.links))
        edges = [layout.Edge(self.items[a].box, self.items[b].box) for a, b in links]
        layout.lay_out(self.root, edges)
        segments = list(dict.fromkeys(segment for edge in edges for segment in edge.segments))
        at = {segment: n for n, segment in enumerate(segments)}
        ends = [(a, b, [at[s] for s in edge.segments]) for (a, b), edge in zip(links, edges, strict=True)]
        return Scene(self.graph.name, self.items, ends, segments, self.root.width, self.root.height)

    def add(self, item: Item, key: Hashable, around: layout.Box, parent: int | None) -> int:
        item.parent = parent
        number = self.number[key] = len(self.items)
        self.items.append(item)
        around.add(item.box)
        return number

    # -- one graph --------------------------------------------------------------------------------
    def region(self, graph: g.Graph, parent: int | None, around: layout.Box) -> None:
        """Adds what `graph` holds to the box `around` it."""
        names, lines = lines_of(graph)
        makers: dict[g.Value, int | None] = {}
        homes = self.homes(graph)
        for n, value in enumerate(graph.inputs):
            item = Item("input", "input", value.name or f"input {n}", value.spec.short())
            item.facts = [("value", names[value]), ("type", value.spec.short())]
            makers[value] = self.add(_sized(item), value, around, parent)
        for node in graph.nodes:
            kernel = homes.get(node)
            inside, box = parent, around
            if kernel is not None:
                inside = self.kernel(kernel, around, parent)
                box = self.items[inside].box
            self.node(node, names, lines[node], makers, box, inside)
        for n, value in enumerate(graph.outputs):
            item = Item("output", "output", f"output {n}", value.spec.short())
            item.facts = [("value", names[value]), ("type", value.spec.short())]
            maker = makers.get(value)
            item.operands = [(maker, _operand(value, names))]
            number = self.add(_sized(item), (graph, n), around, parent)
            if maker is not None:
                self.links.append((maker, number))

    def homes(self, graph: g.Graph) -> dict[g.Node, PlannedKernel]:
        """The kernel in whose box each node stands; a view stands with what reads it, or else with what it views."""
        homes = {node: self.home[node] for node in graph.nodes if node in self.home}
        if not homes:
            return homes
        users = graph.uses()
        for node in reversed(graph.nodes):
            if node in homes or not _silent(node):
                continue
            readers = {homes.get(u) if u is not None else None for v in node.outputs for u in users.get(v, ())}
            before = {homes.get(v.node) for v in node.inputs if v.node is not None}
            [only] = readers if len(readers) == 1 else [None]
            shared = [k for k in readers & before if k is not None]
            kernel = shared[0] if shared else only
            if kernel is not None:
                homes[node] = kernel
        return homes

    def kernel(self, kernel: PlannedKernel, around: layout.Box, parent: int | None) -> int:
        if kernel in self.number:
            return self.number[kernel]
        traffic = kernel.reads + kernel.writes
        item = Item("kernel", "kernel", kernel.title, f"kernel {kernel.number}", seconds=kernel.seconds)
        item.facts = [("runs over", str(kernel.runs)), ("reads", amount(kernel.reads)),
                      ("writes", amount(kernel.writes))]
        if kernel.seconds is not None:
            item.facts.insert(0, ("time", duration(kernel.seconds)))
            if isinstance(traffic, int) and kernel.seconds > 0:
                item.facts.append(("bandwidth", f"{traffic / kernel.seconds / 1e9:.2f} GB/s"))
        item.facts += [("in a loop at", str(loop.loc or "an unknown line")) for loop in kernel.loops]
        item.facts += [("not fused further", text) for text in kernel.because]
        item.where = [place(loc) for loc in kernel.lines]
        item.code = _cut(kernel.code)
        letters = len(item.title) * _TITLE + (88 if kernel.seconds is not None else 30)
        item.box = layout.Box(letters, 0.0, _HEADER)
        return self.add(item, kernel, around, parent)

    def node(self, node: g.Node, names: dict[g.Value, str], line: str, makers: dict[g.Value, int | None],
             around: layout.Box, parent: int | None) -> None:
        if _is_scalar(node):
            makers[node.outputs[0]] = None
            return
        results = ", ".join(v.spec.short() for v in node.outputs)
        item = Item("region" if node.regions else "node", _color(node), node.op.name, results)
        item.code = _cut(line)
        item.facts = [("result", f"{names[v]}: {v.spec.short()}, {v.dtype.name}") for v in node.outputs]
        if node in self.spent:
            item.facts.insert(0, ("time", duration(self.spent[node])))
        if (effect := g.effect_of(node)) is not None:
            item.facts.append(("order", f"runs in order with all of effect '{effect}'"))
        if node.op is g.HOST:
            item.title = f"Python: {node.attrs['name']}"
        item.operands = [(makers.get(v), _operand(v, names)) for v in node.inputs]
        item.where = [] if node.loc is None else [place(node.loc)]
        if node.regions:
            item.box = layout.Box(len(item.title) * _TITLE + 30, 0.0, _HEADER)
        else:
            _sized(item)
        number = self.add(item, node, around, parent)
        self.links += [(maker, number) for v in node.inputs if (maker := makers.get(v)) is not None]
        for v in node.outputs:
            makers[v] = number
        for region in node.regions:
            part = Item("region", "region", region.name)
            part.box = layout.Box(len(region.name) * _TITLE + 30, 0.0, _HEADER)
            self.region(region, self.add(part, region, item.box, number), part.box)


def place(loc: g.Location) -> tuple[str, str, str]:
    """A place in the user's source: where, in which function, and the line itself where the file is at hand."""
    line = linecache.getline(loc.file, loc.line).strip()
    return str(loc), loc.function, line[:300]


def duration(seconds: float) -> str:
    """A time for people."""
    if seconds < 1e-6:
        return f"{seconds * 1e9:.0f} ns"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.{1 if seconds < 1e-4 else 0}f} µs"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _silent(node: g.Node) -> bool:
    """Whether no kernel runs for a node: data, and views."""
    return node.op in (g.CONSTANT, g.SIZE) or (not isinstance(node.op, g.Construct) and node.op.view is not None)


def _is_scalar(node: g.Node) -> bool:
    return node.op is g.CONSTANT and node.attrs["value"].size <= 1


def _operand(value: g.Value, names: dict[g.Value, str]) -> str:
    text = f"{names[value]}: {value.spec.short()}"
    array = g.constant_of(value)
    return f"{text} = {array_text(array, value.dtype)}" if array is not None and array.size == 1 else text


_CONSTRUCTS = {g.CONSTANT: "data", g.SIZE: "data", g.BIND: "data", g.HOST: "python", g.ASSERT: "python"}


def _color(node: g.Node) -> str:
    op = node.op
    if isinstance(op, g.Construct):
        return _CONSTRUCTS.get(op, "control")
    if "random" in op.traits:
        return "random"
    if op.view is not None:
        return "view"
    if op.body is not None:
        return "elementwise"
    if op.reduction is not None:
        return "reduction"
    return "structured" if op.lower is not None else "python" if op.host is not None else "structured"


def _sized(item: Item) -> Item:
    item.title, item.sub = _short(item.title), _short(item.sub)
    wide = max(len(item.title) * _TITLE, len(item.sub) * _SUB) + 20
    item.box = layout.Box(max(wide, 60.0), _TALL if item.sub else _FLAT)
    return item


def _short(text: str) -> str:
    return text if len(text) <= _WIDEST else text[:_WIDEST - 1] + "…"


def _cut(text: str) -> str:
    return text if len(text) <= _LONG else text[:_LONG] + " ..."
