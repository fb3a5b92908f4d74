"""Running a graph: native segments, and calls of Python between them.

`Executable` splits a graph (`parts.py`) into segments that run natively as one piece each, nodes that need Python (host
calls, ops of eager kernels, effects, sizes that values decide, and control flow around any of these), and begins and
ends of exchanges with other replicas. A graph without anything of the latter kinds is a single segment. One that only
begins with calls of Python which may run before variables are read, such as those that take the next element of a
pipeline, is these and the `rest`, whose outputs are those of the graph.

Arrays go in and come out; what runs a node that is not native is handed in by the room that knows how.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from twofold.codegen.backend import Backend, CompiledGraph
from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.assumptions import broken
from twofold.ir.dims import Dim
from twofold.ir.errors import InternalError, InvalidArgumentError, line_text
from twofold.ir.replay import bind_sizes

from .parts import Begin, End, Part, PythonNode, Segment, brought, split, subgraph

__all__ = ["Begin", "End", "Executable", "Improve", "KnownSizes", "Timeable", "pieces"]


Improve = Callable[[g.Graph], g.Graph]
# The sizes that symbols stand for: numbers, but `ir/replay.py`, which graphs are also traced by, has them as Dims.
KnownSizes: TypeAlias = dict[str, Any]
R = TypeVar("R", bound=CompiledGraph)


class PythonHost(Protocol):
    """Runs nodes that are not native."""

    def __call__(self, node: g.Node, arrays: list[np.ndarray], sizes: KnownSizes) -> Sequence[np.ndarray]:
        """The results of a node; it notes sizes that the node binds."""

    def begin(self, node: g.Node, arrays: list[np.ndarray], sizes: KnownSizes) -> Callable[[], Sequence[np.ndarray]]:
        """Begins an exchange; what is given waits for its results."""


class Executable:
    """A graph that can be called with arrays.

    Attributes:
        parts: segments and nodes in the order in which they run.
        whole: what runs the graph where all of it is native.
        first, rest: the calls of Python that come first and may run before variables are read, and what is native as a
            whole after them, if that is all; else none and None.
        rest_inputs: the values of `graph` that `rest` takes: results of these calls, then inputs.
        moves: whether the graph may run on another backend (`on`).
    """

    moves = True

    def __init__(self, graph: g.Graph, host: PythonHost, backend: Backend, donate: dict[int, int] | None = None,
                 improve: Improve | None = None, label: str = "", sizes: Mapping[str, int] | None = None) -> None:
        """Args:
            graph: what to run.
            host: runs nodes that are not native.
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
        self.parts: list[Part] = []
        self.last: dict[int, list[g.Value]] = {}
        self.first: list[g.Node] = []
        self.rest: Executable | None = None
        self.rest_inputs: list[g.Value] = []
        self._assumed: dict[int, list[dm.Guard]] = {}
        self.whole: CompiledGraph | None = backend.stored(
            graph, self.donate, label, lambda: graph if improve is None else improve(graph.copy()))
        if self.whole is not None:
            return
        origin = graph
        if improve is not None:
            graph = self.graph = improve(graph.copy())
        self.parts = split(graph, backend)
        self.last = self._last_uses()
        self._assumed = self._assumptions()
        if _is_native(graph, self.parts):
            self.whole = backend.program(graph, self.donate, origin, label, sizes)
        elif self.parts and (rest := self._after_python()) is not None:
            self._split_off(rest, sizes)
        else:
            for part in self.parts:
                if isinstance(part, Segment):
                    piece = subgraph(graph, part)
                    part.run = backend.program(piece, {}, piece, "", sizes)

    def on(self, backend: Backend, host: PythonHost) -> Executable:
        """The same graph for another backend, whose host runs what it leaves; it gives no memory away."""
        other = self._others.get(backend)
        if other is None:
            other = Executable(self._origin, host, backend, None, self._improve, self._label)
            other = self._others.setdefault(backend, other)
        return other

    def _after_python(self) -> Segment | None:
        """The one segment behind calls of Python that may run before variables are read, if that is all; it gives what
        the graph gives."""
        *first, rest = self.parts
        early = all(isinstance(part, PythonNode) and getattr(part.node.attrs.get("fn"), "before_variables", False)
                    for part in first)
        whole = isinstance(rest, Segment) and rest.outputs == self.graph.outputs and not self._assumed
        return rest if first and early and whole and isinstance(rest, Segment) else None

    def _split_off(self, rest: Segment, sizes: Mapping[str, int]) -> None:
        """Makes the program of what comes after Python's calls, which may take memory that is given away."""
        self.first = [part.node for part in self.parts if isinstance(part, PythonNode)]
        numbers = {value: n for n, value in enumerate(self.graph.inputs)}
        rest.inputs.sort(key=lambda value: numbers.get(value, -1))
        self.rest_inputs = rest.inputs
        read = {value for node in self.first for value in node.inputs}
        own = {value: n for n, value in enumerate(rest.inputs) if value in numbers and value not in read}
        donate = {out: own[value] for out, n in self.donate.items() if (value := self.graph.inputs[n]) in own}
        piece = subgraph(self.graph, rest)
        self.rest = Executable(piece, self.host, self.backend, donate, sizes=sizes)
        rest.run = self.rest.whole
        assert rest.run is not None  # a segment is native

    @property
    def donated(self) -> dict[int, int]:
        """Output number -> number of the input whose memory it takes."""
        if self.rest is not None:
            return {out: self.graph.inputs.index(self.rest_inputs[n]) for out, n in self.rest.donated.items()}
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
        begun: dict[g.Node, Callable[[], Sequence[np.ndarray]]] = {}
        for number, part in enumerate(self.parts):
            results = self._results(part, [values[v] for v in part.inputs], sizes, begun)
            for value, array in zip(part.outputs, results, strict=True):
                values[value] = array
                bind_sizes(value.dims, array.shape, sizes)
                if not isinstance(part, Segment):
                    _check(value, array, sizes, part.node)
            if number in self._assumed:
                self._test(number, sizes)
            for value in self.last.get(number, ()):
                values.pop(value, None)
        return [values[v] for v in self.graph.outputs]

    def _results(self, part: Part, arrays: list[np.ndarray], sizes: KnownSizes,
                 begun: dict[g.Node, Callable[[], Sequence[np.ndarray]]]) -> Sequence[np.ndarray]:
        """What a part gives: nothing where it begins what another one ends."""
        if isinstance(part, Segment):
            return part.run(arrays, sizes)  # type: ignore[misc]
        if isinstance(part, End):
            return begun.pop(part.node)()
        if isinstance(part, PythonNode):
            return self.host(part.node, arrays, sizes)
        begun[part.node] = self.host.begin(part.node, arrays, sizes)
        return ()

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
            for node in part.nodes:
                names = {node.attrs["symbol"]} if node.op is g.BIND else brought(node, self.backend)
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
            for value in (*part.inputs, *part.outputs):
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

    def __init__(self, graph: g.Graph, host: PythonHost, backend: Backend, make: Callable[[g.Graph], R]) -> None:
        """Args:
            make: from a graph of native nodes only to what runs it.
        """
        self.host, self.donate, self.graph, self.whole = host, {}, graph, None
        self.backend = backend
        self.first, self.rest, self.rest_inputs = [], None, []
        self.parts = split(graph, backend)
        self.last = self._last_uses()
        self._assumed = self._assumptions()
        self.natives: list[R] = []
        if _is_native(graph, self.parts):
            self.whole = program = make(graph)
            self.natives.append(program)
            return
        for part in self.parts:
            if isinstance(part, Segment):
                part.run = program = make(subgraph(graph, part))
                self.natives.append(program)


def pieces(graph: g.Graph, backend: Backend,
           origins: dict[g.Node, g.Node] | None = None) -> list[g.Graph | g.Node | Begin | End]:
    """The parts in which `graph` runs, in order: graphs that are native as a whole, nodes that Python runs, and where
    exchanges begin and end.

    Args:
        origins: takes the node of `graph` for each node that is new, and whose regions are the old ones.
    """
    parts = split(graph, backend)
    if _is_native(graph, parts):
        return [graph]
    run_as: list[g.Graph | g.Node | Begin | End] = []
    for part in parts:
        if not isinstance(part, Segment):
            run_as.append(part.node if isinstance(part, PythonNode) else part)
            continue
        piece = subgraph(graph, part)
        run_as.append(piece)
        if origins is not None:
            origins.update(zip(piece.nodes, part.nodes, strict=True))
    return run_as


def _is_native(graph: g.Graph, parts: list[Part]) -> bool:
    text = any(v.dtype.kind == "s" for v in graph.inputs)  # passes through, which native code cannot do
    return len(parts) <= 1 and all(isinstance(p, Segment) for p in parts) and not text


def unexpected(node: g.Node) -> InternalError:
    """The error for a node that nothing can run."""
    return InternalError(f"{node.op.name}: no way to run it")
