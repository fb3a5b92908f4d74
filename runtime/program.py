"""Running a graph: native segments, and calls of Python between them.

`Executable` splits a graph into segments that run natively as one piece each, and nodes that need Python: host calls,
ops of eager kernels, effects, sizes that values decide, and control flow around any of these. Native nodes wait for
one another: as many as possible run in one segment. A graph without anything of the latter kind is a single segment.

Arrays go in and come out; what runs a node that is not native is handed in by the room that knows how.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from twofold.codegen.backend import Backend, CompiledGraph
from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir import symbols
from twofold.ir.assumptions import broken
from twofold.ir.dims import Dim
from twofold.ir.errors import InternalError, InvalidArgumentError, line_text
from twofold.ir.replay import bind_sizes

__all__ = ["Executable", "Improve", "KnownSizes", "Timeable", "pieces"]


class _Python:
    """A node that needs Python."""

    def __init__(self, node: g.Node) -> None:
        self.node = node


class _Segment:
    """Native nodes that run as one piece."""

    def __init__(self, nodes: list[g.Node]) -> None:
        self.nodes = nodes
        self.inputs: list[g.Value] = []
        self.outputs: list[g.Value] = []
        self.run: CompiledGraph | None = None


Improve = Callable[[g.Graph], g.Graph]
# The sizes that symbols stand for: numbers, but `ir/replay.py`, which graphs are also traced by, has them as Dims.
KnownSizes: TypeAlias = dict[str, Any]
Host = Callable[[g.Node, list[np.ndarray], KnownSizes], Sequence[np.ndarray]]
R = TypeVar("R", bound=CompiledGraph)


class Executable:
    """A graph that can be called with arrays.

    Attributes:
        parts: segments and nodes in the order in which they run.
        whole: what runs the graph where all of it is native.
        moves: whether the graph may run on another backend (`on`).
    """

    moves = True

    def __init__(self, graph: g.Graph, host: Host, backend: Backend, donate: dict[int, int] | None = None,
                 improve: Improve | None = None, label: str = "", sizes: Mapping[str, int] | None = None) -> None:
        """Args:
            graph: what to run.
            host: runs a node that is not native: `(node, arrays, sizes) -> arrays`; it notes sizes that the node binds.
            backend: runs what it supports of the graph.
            donate: output number -> number of an input whose memory the output may take: the caller gives that array
                away. Used where the graph is native as a whole.
            improve: passes, which work in place on a copy of the graph; they need not run where the program is found
                on disk.
            label: stands for `improve`.
            sizes: see `Backend.program`.
        """
        sizes = sizes or {}
        self.backend, self.host, self.donate = backend, host, donate or {}
        self.graph = graph
        self._origin, self._improve, self._label = graph, improve, label
        self._others: dict[Backend, Executable] = {}
        self.parts: list[_Segment | _Python] = []
        self.last: dict[int, list[g.Value]] = {}
        self._assumed: dict[int, list[dm.Guard]] = {}
        self.whole: CompiledGraph | None = backend.stored(graph, self.donate, label)
        if self.whole is not None:
            return
        origin = graph
        if improve is not None:
            graph = self.graph = improve(graph.copy())
        self.parts = _split(graph, backend)
        self.last = self._last_uses()
        self._assumed = self._assumptions()
        if _is_native(graph, self.parts):
            self.whole = backend.program(graph, self.donate, origin, label, sizes)
        else:
            for part in self.parts:
                if isinstance(part, _Segment):
                    piece = _subgraph(graph, part)
                    part.run = backend.program(piece, {}, piece, "", sizes)

    def on(self, backend: Backend, host: Host) -> Executable:
        """The same graph for another backend, whose host runs what it leaves; it gives no memory away."""
        other = self._others.get(backend)
        if other is None:
            other = Executable(self._origin, host, backend, None, self._improve, self._label)
            other = self._others.setdefault(backend, other)
        return other

    @property
    def donated(self) -> dict[int, int]:
        """Output number -> number of the input whose memory it takes."""
        return {} if self.whole is None else self.whole.donated

    def __call__(self, arrays: Sequence[np.ndarray], outer: KnownSizes | None = None) -> list[np.ndarray]:
        """The outputs for arrays of the inputs' dtypes and shapes.

        Args:
            outer: sizes of a surrounding graph.
        Raises:
            NodeFailure: a check of a compiled node failed.
        """
        sizes: KnownSizes = dict(outer or {})
        for value, array in zip(self.graph.inputs, arrays, strict=True):
            bind_sizes(value.dims, array.shape, sizes)
        if outer is not None:  # else whoever calls has tested the sizes of the inputs
            for value, array in zip(self.graph.inputs, arrays, strict=True):
                _check(value, array, sizes, None)
            self._test(-1, sizes)
        if self.whole is not None:
            return self.whole(arrays, sizes)
        values: dict[g.Value, np.ndarray] = dict(zip(self.graph.inputs, arrays, strict=True))
        for number, part in enumerate(self.parts):
            if isinstance(part, _Segment):
                results = part.run([values[v] for v in part.inputs], sizes)  # type: ignore[misc]
                outputs = part.outputs
            else:
                node = part.node
                results = list(self.host(node, [values[v] for v in node.inputs], sizes))
                outputs = node.outputs
            for value, array in zip(outputs, results, strict=True):
                values[value] = array
                bind_sizes(value.dims, array.shape, sizes)
                if not isinstance(part, _Segment):
                    _check(value, array, sizes, part.node)
            if number in self._assumed:
                self._test(number, sizes)
            for value in self.last.get(number, ()):
                values.pop(value, None)
        return [values[v] for v in self.graph.outputs]

    def _test(self, number: int, sizes: KnownSizes) -> None:
        """Check the guards on sizes that are all known once part `number` has run.

        Raises:
            InvalidArgumentError: one does not hold.
        """
        for guard in self._assumed.get(number, ()):
            if guard.symbols() <= sizes.keys() and not guard.holds(sizes):
                raise broken(guard, sizes)

    def _assumptions(self) -> dict[int, list[dm.Guard]]:
        """The guards by the number of the part after which their sizes are known; -1 for those known from the first."""
        if not self.graph.guards:
            return {}
        bound: dict[str, int] = {}
        for number, part in enumerate(self.parts):
            for node in part.nodes if isinstance(part, _Segment) else [part.node]:
                names = {node.attrs["symbol"]} if node.op is g.BIND else _brought(node, self.backend)
                for name in names:
                    bound.setdefault(name, number)
        inputs = self.graph.symbols()
        guards: dict[int, list[dm.Guard]] = {}
        for guard in self.graph.guards:
            number = max([-1 if s in inputs else bound.get(s, -1) for s in guard.symbols()], default=-1)
            guards.setdefault(number, []).append(guard)
        return guards

    def _last_uses(self) -> dict[int, list[g.Value]]:
        at: dict[g.Value, int] = {}
        for number, part in enumerate(self.parts):
            touched = [*part.inputs, *part.outputs] if isinstance(part, _Segment) else \
                [*part.node.inputs, *part.node.outputs]
            for value in touched:
                at[value] = number
        for value in self.graph.outputs:
            at.pop(value, None)
        last_uses: dict[int, list[g.Value]] = {}
        for value, number in at.items():
            last_uses.setdefault(number, []).append(value)
        return last_uses


def _check(value: g.Value, array: np.ndarray, sizes: KnownSizes, node: g.Node | None) -> None:
    """Raise InvalidArgumentError where an array has less memory than native code will take it to have.

    Shapes of graphs that are well-formed are true; of those that come from elsewhere, some cannot be proved.
    """
    size = dm.numel(dm.substitute(value.dims, sizes))
    # Of an input's sizes some may be known to the forward graph alone. Code that needs such a size cannot be called.
    if node is not None if isinstance(size, Dim) else size > array.size:
        name = "input" if node is None else node.op.name
        where = "" if node is None or node.loc is None else "\n  " + line_text(*node.loc)
        raise InvalidArgumentError(None, name, f"{name}: a value of shape {list(array.shape)} is found where "
                                   f"{value.spec.short()} is expected.{where}")


class Timeable(Executable, Generic[R]):
    """A graph whose native parts are made by a function of the caller's, such as programs that time their steps.

    Attributes:
        natives: the results of that function, in the order of the native parts of `pieces`.
    """

    moves = False

    def __init__(self, graph: g.Graph, host: Host, backend: Backend, make: Callable[[g.Graph], R]) -> None:
        """Args:
            make: from a graph of native nodes only to what runs it.
        """
        self.host, self.donate, self.graph, self.whole = host, {}, graph, None
        self.backend = backend
        self.parts = _split(graph, backend)
        self.last = self._last_uses()
        self._assumed = self._assumptions()
        self.natives: list[R] = []
        if _is_native(graph, self.parts):
            self.whole = program = make(graph)
            self.natives.append(program)
            return
        for part in self.parts:
            if isinstance(part, _Segment):
                part.run = program = make(_subgraph(graph, part))
                self.natives.append(program)


def pieces(graph: g.Graph, backend: Backend,
           origins: dict[g.Node, g.Node] | None = None) -> list[g.Graph | g.Node]:
    """The parts in which `graph` runs: graphs that are native as a whole, and nodes that Python runs, in order.

    Args:
        origins: takes the node of `graph` for each node that is new, and whose regions are the old ones.
    """
    parts = _split(graph, backend)
    if _is_native(graph, parts):
        return [graph]
    run_as: list[g.Graph | g.Node] = []
    for part in parts:
        if isinstance(part, _Python):
            run_as.append(part.node)
            continue
        piece = _subgraph(graph, part)
        run_as.append(piece)
        if origins is not None:
            origins.update(zip(piece.nodes, part.nodes, strict=True))
    return run_as


def _is_native(graph: g.Graph, parts: list[_Segment | _Python]) -> bool:
    text = any(v.dtype.kind == "s" for v in graph.inputs)  # passes through, which native code cannot do
    return len(parts) <= 1 and not any(isinstance(p, _Python) for p in parts) and not text


def _split(graph: g.Graph, backend: Backend) -> list[_Segment | _Python]:
    """The parts of a graph, in an order that respects values, sizes and effects."""
    backend.prepare()
    depth: dict[g.Value, int] = {}  # number of the part before which a value is known; native parts are odd
    bound: dict[str, int] = {}
    level_of: dict[g.Node, int] = {}
    effects = 0
    for node in graph.nodes:
        level = max((depth.get(v, 0) for v in node.inputs), default=0)
        for name in _symbols(node):
            level = max(level, bound.get(name, 0))
        if backend.supports(node):
            level |= 1
            if node.op in (g.CONSTANT, g.SIZE):
                level = 1 if node.op is g.CONSTANT else level
        else:
            level = level + 1 if level & 1 else level
            if g.effect_of(node) is not None:
                level = effects = max(level, effects)
        level_of[node] = level
        for value in node.outputs:
            depth[value] = level
        names = {node.attrs["symbol"]} if node.op is g.BIND else _brought(node, backend)
        for name in names:
            bound.setdefault(name, level + 1)
    parts: list[_Segment | _Python] = []
    for level in sorted(set(level_of.values())):
        nodes = [n for n in graph.nodes if level_of[n] == level]
        if level & 1:
            parts.append(_Segment(nodes))
        else:
            parts += [_Python(n) for n in nodes]
    _fill(graph, parts)
    return [p for p in parts if not isinstance(p, _Segment) or p.outputs]


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


def _brought(node: g.Node, backend: Backend) -> frozenset[str]:
    """The symbols that the results of a node bind."""
    if backend.supports(node):
        return frozenset()
    return dm.symbols_of([d for v in node.outputs for d in v.dims]) - dm.symbols_of(
        [d for v in node.inputs for d in v.dims])


def _fill(graph: g.Graph, parts: list[_Segment | _Python]) -> None:
    """The inputs and outputs of the segments; constants are copied into the segments that read them."""
    home = {v: p for p in parts if isinstance(p, _Segment) for n in p.nodes for v in n.outputs}
    cheap = {v for p in parts if isinstance(p, _Segment) for n in p.nodes if n.op in (g.CONSTANT, g.SIZE)
             for v in n.outputs}

    def ask(value: g.Value, part: _Segment | _Python | None) -> None:
        owner = home.get(value)
        if owner is part:
            return
        if isinstance(part, _Segment):
            if value in cheap:
                if value.node is not None and value.node not in part.nodes:
                    part.nodes.insert(0, value.node)
                return
            if value not in part.inputs:
                part.inputs.append(value)
        if owner is not None and value not in owner.outputs:
            owner.outputs.append(value)

    for part in parts:
        if isinstance(part, _Segment):
            for node in list(part.nodes):
                for value in node.inputs:
                    ask(value, part)
        else:
            for value in part.node.inputs:
                ask(value, part)
    for value in graph.outputs:
        ask(value, None)


def _subgraph(graph: g.Graph, part: _Segment) -> g.Graph:
    """The graph of a segment alone."""
    subgraph = g.Graph(graph.name)
    values = {v: subgraph.add_input(v.dims, v.dtype, v.name) for v in part.inputs}
    for node in part.nodes:
        new = subgraph.add(node.op, [values[v] for v in node.inputs], node.attrs, node.outputs, node.regions, node.loc)
        values.update(zip(node.outputs, new.outputs, strict=True))
    subgraph.outputs = [values[v] for v in part.outputs]
    return subgraph


def unexpected(node: g.Node) -> InternalError:
    """The error for a node that nothing can run."""
    return InternalError(f"{node.op.name}: no way to run it")
