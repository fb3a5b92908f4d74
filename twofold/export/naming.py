"""Names of what an exported function takes and gives, whatever it is exported to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir import nest, symbols
from twofold.ir.assumptions import renamed
from twofold.ir.dims import Dim

__all__ = ["name_sizes", "result_names"]


def name_sizes(graph: g.Graph, inputs: Sequence[str]) -> None:
    """Gives unknown sizes names that say what they are: `n` where there is one, else the input and the axis."""
    renames: dict[str, str] = {}
    for name, value in zip(inputs, graph.inputs, strict=False):
        for axis, size in enumerate(value.dims):
            if isinstance(size, Dim) and (old := size.name_alone()) is not None:
                renames.setdefault(old, f"{name}_{axis}")
    if len(renames) == 1:
        renames = dict.fromkeys(renames, "n")
    taken = symbols.every(graph)
    names = {old: dm.symbol(new) for old, new in renames.items() if new not in taken}
    symbols.rename(graph, names)
    graph.guards = [renamed(guard, names) for guard in graph.guards]


def result_names(result: Any) -> list[str]:
    """A name for each tensor of a result: keys where there are some, else numbers."""
    if not nest.is_nested(result):
        return [] if result is None else ["output"]
    names: list[str] = []

    def walk(value: Any, name: str) -> None:
        if nest.is_nested(value):
            keys = nest.keys_of(value) if isinstance(value, Mapping) else getattr(value, "_fields", None)
            children = nest.children(value)
            for key, child in zip(keys or range(len(children)), children, strict=True):
                walk(child, f"{name}_{key}" if name else str(key))
        elif value is not None:
            names.append(name)
    walk(result, "")
    return names
