"""Guards for the assumptions of a loaded graph about its sizes, which are checked when it runs.

Where the sizes of a value have one name outside of a region and another inside, a trace knows that they are equal; a
graph from a file may only pretend to. Such pairs become guards: those of
input sizes are tested by each call, the others as soon as the sizes are there, before native code relies on them. What
can be seen to be wrong is refused. The same goes for what called graphs assume.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.assumptions import renamed
from twofold.ir.dims import Dim, Guard
from twofold.ir.symbols import bound

__all__ = ["make_explicit"]


class _Scope:
    """A graph, and the sizes that can be named in it."""

    def __init__(self, graph: g.Graph, outer: _Scope | None, given: Mapping[str, Any] | None = None) -> None:
        """Args:
            outer: of the surrounding graph; None where nothing of it can be named.
            given: sizes that are handed in by name.
        """
        self.graph, self.outer = graph, outer
        self.visible: set[str] = bound(graph) | set(given or ()) | (set() if outer is None else outer.visible)

    def require(self, left: Any, right: Any, op: str = "==") -> None:
        """Note how two sizes compare, here and around, wherever they can be named.

        Raises:
            ValueError: it is known that they do not.
        """
        known = dm.decide(left, op, right)
        if known is False:
            raise ValueError(f"{left} {op} {right} is relied on inside a region of {self.graph.name}, and is not true")
        if known is None:
            self.note(Guard(left, op, right))

    def note(self, guard: Guard) -> None:
        """Add a guard here and around, wherever its sizes can be named."""
        scope: _Scope | None = self
        while scope is not None:
            if guard.symbols() <= scope.visible and guard not in scope.graph.guards:
                scope.graph.guards.append(guard)
            scope = scope.outer


def make_explicit(graph: g.Graph) -> None:
    """Add to the guards of a graph, and of the regions in it, what else they rely on.

    Raises:
        ValueError: something that is relied on cannot be true.
    """
    _walk(_Scope(graph, None))


def _walk(scope: _Scope) -> None:
    known = {name for v in scope.graph.inputs for name in dm.symbols_of(v.dims)}
    known |= set() if scope.outer is None else scope.outer.visible
    for node in scope.graph.nodes:
        if node.op is g.CALL:
            _call(scope, node, known)
        else:
            for operands, region in _regions(node):
                stacks = _stacks(region)
                for _, inner, a, b in _sizes(operands, region.inputs):
                    if dm.symbols_of((b,)) <= scope.visible:
                        scope.require(a, b, ">=" if inner in stacks else "==")
            for region in node.regions:
                _walk(_Scope(region, scope))
                for guard in list(region.guards):
                    if guard.symbols() <= scope.visible:
                        scope.require(guard.left, guard.right, guard.op)
        known |= dm.symbols_of([d for v in node.outputs for d in v.dims])


def _regions(node: g.Node) -> Iterator[tuple[Sequence[g.Value], g.Graph]]:
    """The regions of a node, each with the operands of its inputs."""
    if node.op is g.CUSTOM:
        if "error" not in node.attrs:
            yield [*node.outputs, *node.inputs[node.attrs["results"]:]], node.regions[0]
        return
    for region in node.regions:
        yield node.inputs[1:] if node.op is g.COND else node.inputs, region


def _stacks(graph: g.Graph) -> set[g.Value]:
    """The values of a graph that serve as stacks and as nothing else: those may have more elements than they say."""
    used: dict[g.Value, bool] = {}
    for node in graph.nodes:
        first = 1 if node.op is g.COND else 0
        inner: set[int] = set()
        for region in node.regions if node.op in (g.COND, g.WHILE) else ():
            stacks = _stacks(region)
            inner |= {n + first for n, v in enumerate(region.inputs) if v in stacks}
        for n, value in enumerate(node.inputs):
            serves = n == 0 if node.op in (g.PUSH, g.POP) else n in inner
            used[value] = used.get(value, True) and serves
    return {value for value, serves in used.items() if serves}


def _sizes(values: Sequence[g.Value],
           others: Sequence[g.Value]) -> Iterator[tuple[g.Value, g.Value, Any, Any]]:
    """Values, the values that stand for them inside a region, and the sizes of both along each axis."""
    if len(values) != len(others):
        raise ValueError(f"a region takes {len(others)} values; there are {len(values)}")
    for value, other in zip(values, others, strict=True):
        if value.dtype is not other.dtype or len(value.dims) != len(other.dims):
            raise ValueError(f"{value.spec.short()} is handed to a region as {other.spec.short()}")
        for a, b in zip(value.dims, other.dims, strict=True):
            yield value, other, a, b


def _call(scope: _Scope, node: g.Node, known: set[str]) -> None:
    """The assumptions of a called graph, in the caller's sizes."""
    callee, sizes = node.regions[0], dict(node.attrs["sizes"])
    _walk(_Scope(callee, None, sizes))
    for guard in callee.guards:
        if guard.symbols() <= sizes.keys():
            named = renamed(guard, sizes)
            scope.require(named.left, named.right, named.op)
    for _, _, a, b in _sizes(callee.outputs, node.outputs):
        inside = dm.substitute((a,), sizes)[0]
        if not isinstance(a, Dim) or a.symbols() <= sizes.keys():
            if not _is_new(b, known):
                scope.require(b, inside)
        elif not _is_new(b, known):
            raise ValueError(f"a result of {callee.name} has the size {a}, which is said to be {b}")


def _is_new(size: Any, known: set[str]) -> bool:
    """Whether a size is a name of its own."""
    return isinstance(size, Dim) and size.name_alone() is not None and size.name_alone() not in known
