"""What graphs need before they are compiled for other programs than this process: assertions as checks of native code,
and errors, with the user's line, for what only Python can do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from twofold.codegen import program
from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.errors import UnimplementedError, line_text
from twofold.runtime import lowerings

__all__ = ["lower", "asserts", "require_native"]

lowerings.install()


def lower(graph: g.Graph, name: str) -> None:
    """Brings `graph` into the form that is compiled, in place."""


@contextmanager
def asserts() -> Iterator[None]:
    """Inside of the block, programs check assertions."""
    yield


def require_native(graph: g.Graph, name: str, sizes: Mapping[str, Any]) -> None:
    """Makes sure that native code can run all of `graph`.

    Args:
        name: of the function.
        sizes: what is known of sizes besides those of the inputs.
    Raises:
        UnimplementedError: it cannot; the error names the op and the user's line.
    """
    for node in graph.nodes:
        if not program.is_native(node):
            raise UnimplementedError(None, node.op.name, _refused(node, name))
    known = graph.symbols() | sizes.keys()
    for node in graph.nodes:
        if not dm.symbols_of([d for v in node.outputs for d in v.dims]) <= known:
            raise UnimplementedError(None, node.op.name, _refused(node, name))


def _refused(node: g.Node, name: str) -> str:
    inner = next((n for r in node.regions for n in r.walk() if not n.regions and not program.is_native(n)), None)
    node = inner or node
    where = "" if node.loc is None else f"\n  {line_text(*node.loc)}"
    text = any(v.dtype.name == "string" for v in (*node.inputs, *node.outputs))
    if node.op is g.BIND or "dynamic" in getattr(node.op, "traits", ()):
        why = "the size of its result depends on values, and memory is planned before a call"
    elif node.op is g.HOST:
        why = f"it calls Python ({node.attrs.get('name', 'a function')})"
    elif text:
        why = "it works on text"
    elif g.effect_of(node) == "random":
        why = "it draws from a random stream of Python's; use tf.random.stateless_* with a seed that is an argument"
    else:
        why = "it runs in Python"
    return f"{name} cannot be exported: {node.op.name}: {why}.{where}"
