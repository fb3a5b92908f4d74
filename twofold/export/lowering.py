"""Changes to graphs before they are compiled for programs without Python.

A range that only counts the rounds of a loop becomes an assertion about its ends. The streams of random draws that
`tf.random.set_seed` governs become variables: they begin where they are when the library is made, and each draw moves
them on, each op with seeds its own. What only Python can do is refused, with the user's line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from twofold.eager.variable import Variable
from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir import ops, symbols
from twofold.ir.build import Builder
from twofold.ir.dims import Dim
from twofold.ir.errors import InvalidArgumentError, UnimplementedError, line_text
from twofold.ir.op import use_interpreter
from twofold.ir.ops.random import mix
from twofold.runtime import random as runtime_random
from twofold.runtime.cpu import cpu

__all__ = ["Streams", "check_counting", "require_native"]

_ENDS = "a range must lead from start towards limit, by a delta that is not 0"


_SHARED = ""  # the purpose for which the variable of the shared stream has its key
_Key: TypeAlias = tuple[Any, ...]  # of a stream: its seed and purpose, or what tells the draws of an op with seeds


class Streams:
    """The streams that a library draws from, as variables."""

    def __init__(self) -> None:
        self._variables: dict[_Key, Variable] = {}

    def lower(self, graph: g.Graph) -> list[Variable]:
        """Lets `graph` take its draws from further inputs and give the streams, moved on, as further results.

        Returns:
            The variables that stand for these inputs and, in the same order, results. Draws inside of loops and
            branches stay what they are.
        """
        streams: dict[_Key, g.Value] = {}
        for node in list(graph.nodes):
            if node.op not in (ops.random_state, ops.random_op_state):
                continue
            key = self._key(node)
            if key not in streams:
                spec = node.outputs[0]
                streams[key] = graph.add_input(spec.dims, spec.dtype, self._variables[key].name)
            before, at = streams[key], graph.nodes.index(node)
            read, own = _written(lambda now=before, n=node: _read_for(now, n.attrs), node)
            made, skipped = _written(lambda now=before, n=node: ops.random_skip(now, n.inputs[0]), node)
            graph.nodes[at:at + 1] = read + made
            _replace(graph, node.outputs[0], own)
            streams[key] = skipped
        graph.outputs += list(streams.values())
        return [self._variables[key] for key in streams]

    def _key(self, node: g.Node) -> _Key:
        attrs = node.attrs
        if node.op is ops.random_op_state:
            key: _Key = (attrs["seeds"], attrs["kind"], attrs["place"])
        else:
            key = (attrs["seed"], _SHARED if attrs["seed"] is None else attrs["purpose"])
        if key not in self._variables:
            now, name = _now(node.op, key)
            self._variables[key] = Variable(now, name=name or f"random_{len(self._variables)}", trainable=False,
                                            dtype="int64")
        return key


def _now(op: Any, key: _Key) -> tuple[np.ndarray, str]:
    """Where a stream is now, and a name for its variable; none for those of ops, of which there may be many."""
    if op is ops.random_op_state:
        seeds, kind, place = key
        return runtime_random.take_seeded(0, tuple(seeds), kind, tuple(place)), ""
    seed, purpose = key
    return runtime_random.take(0, seed, purpose, mix), "random" if seed is None else f"random_{purpose}_{seed}"


def _read_for(stream: Any, attrs: Mapping[str, Any]) -> Any:
    """A stream as a draw reads it: of the shared one, which the library counts in one variable, its purpose's bits."""
    if attrs.get("seed", 0) is not None:
        return stream
    turn = runtime_random.turn(_SHARED, mix) ^ runtime_random.turn(attrs["purpose"], mix)
    return ops.bitwise_xor(stream, np.array([0, 0, turn], np.uint64).view(np.int64))


def _written(build: Any, like: g.Node) -> tuple[list[g.Node], g.Value]:
    """The nodes that `build` writes, and its result; their line is that of `like`."""
    scratch = g.Graph()
    builder = Builder(scratch)
    builder.loc = like.loc
    with use_interpreter(builder):
        result = build()
    return scratch.nodes, result


def _replace(graph: g.Graph, old: g.Value, new: g.Value) -> None:
    for node in graph.nodes:
        node.inputs = [new if v is old else v for v in node.inputs]
    graph.outputs = [new if v is old else v for v in graph.outputs]


def check_counting(graph: g.Graph) -> None:
    """Replaces ranges that nothing reads by assertions about their ends, in place."""
    for node in list(graph.nodes):
        for region in node.regions:
            check_counting(region)
        if isinstance(node.op, g.Construct) or node.op is not ops.range or node.attrs["size"] is not None:
            continue
        at, names = graph.nodes.index(node), symbols.brought(node)
        read = any(v in node.outputs for n in graph.nodes for v in n.inputs) or node.outputs[0] in graph.outputs
        spoken = any(names & guard.symbols() for guard in graph.guards)
        rest = graph.nodes[:at] + graph.nodes[at + 1:]
        graph.nodes, before = rest, graph.nodes
        if read or spoken or names & symbols.used(graph):
            graph.nodes = before
            continue
        made, holds = _written(lambda n=node: _leads(*n.inputs), node)
        attrs = {"message": _ENDS, "summarize": None, "error": InvalidArgumentError}
        graph.nodes[at:at] = [*made, g.Node(g.ASSERT, (holds,), attrs, (), (), node.loc)]


def _leads(start: Any, limit: Any, delta: Any) -> Any:
    up = ops.logical_and(ops.greater(delta, 0), ops.less_equal(start, limit))
    down = ops.logical_and(ops.less(delta, 0), ops.greater_equal(start, limit))
    return ops.logical_or(up, down)


def require_native(graph: g.Graph, name: str, sizes: Mapping[str, Any]) -> None:
    """Makes sure that native code can run all of `graph`.

    Args:
        name: of the function.
        sizes: what is known of sizes besides those of the inputs.
    Raises:
        UnimplementedError: it cannot; the error names the op and the user's line.
    """
    cpu.prepare()
    for value in (*graph.inputs, *graph.outputs):
        if value.dtype.name == "string":
            raise UnimplementedError(None, None, f"{name} cannot be exported: it takes or gives text.")
    for node in graph.nodes:
        if not cpu.supports(node):
            raise UnimplementedError(None, node.op.name, _refused(node, name))
    known = graph.symbols() | sizes.keys()
    for node in graph.nodes:
        if not dm.symbols_of([d for v in node.outputs for d in v.dims]) <= known:
            raise UnimplementedError(None, node.op.name, _refused(node, name))


def _has_open_sizes(node: g.Node) -> bool:
    return any(isinstance(d, Dim) for v in (*node.inputs, *node.outputs) for d in v.dims)


def _refused(node: g.Node, name: str) -> str:
    inner = next((n for r in node.regions for n in r.walk() if not n.regions and not cpu.supports(n)), None)
    around, node = node, inner or node
    where = "" if node.loc is None else f"\n  {line_text(*node.loc)}"
    if "exchange" in getattr(node.op, "traits", ()):
        why = "it exchanges tensors with other replicas, and a library runs alone"
    elif node is around and node.regions:
        why = "sizes of what it carries change while it runs, and memory is planned before a call"
    elif node.op is g.BIND or "dynamic" in getattr(node.op, "traits", ()):
        why = "the size of its result depends on values, and memory is planned before a call"
    elif node.op is g.HOST:
        why = f"it calls Python ({node.attrs.get('name') or 'a function'})"
    elif any(v.dtype.name == "string" for v in (*node.inputs, *node.outputs)):
        why = "it works on text"
    elif g.effect_of(node) == "random":
        why = "it draws from a stream that all calls share, inside of a loop or branch; draw before it, or use " \
              "tf.random.stateless_* or a tf.random.Generator"
    elif cpu.lowering(node.op.name) is not None and _has_open_sizes(node):
        why = "it is not compiled for sizes that the signature leaves open; give all of them"
    else:
        why = "it runs in Python"
    return f"{name} cannot be exported: {node.op.name}: {why}.{where}"
