"""A graph as TensorFlow lists one: nodes by name, whose operands are named, too.

Only for reading: `ir/graph.py` owns graphs, and text that can be parsed back is `ir/graph_text.py`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .graph import CONSTANT, Graph, Node, Value

__all__ = ["GraphDef", "NodeDef", "graph_def"]


@dataclass
class NodeDef:
    """One node.

    Attributes:
        name: one that no other node of its graph has.
        op: what it does: an op of the graph, "Placeholder" for an input, "Const", or "Identity" for a result.
        input: the names of what it reads; result number n > 0 of a node is "name:n".
        attr: attributes of the op; for control flow "region_0" and so on are the graphs that it runs.
    """

    name: str
    op: str
    input: list[str] = field(default_factory=list)
    attr: dict[str, Any] = field(default_factory=dict)

    @property
    def type(self) -> str:
        """What it does; the same as `op`."""
        return self.op

    @property
    def inputs(self) -> list[str]:
        """What it reads; the same as `input`."""
        return self.input

    def __str__(self) -> str:
        lines = [f'  name: "{self.name}"', f'  op: "{self.op}"', *[f'  input: "{name}"' for name in self.input]]
        for key, value in self.attr.items():
            lines += ["  attr {", f'    key: "{key}"', *_indented(f"value: {value}"), "  }"]
        return "\n".join(["node {", *lines, "}"])


@dataclass
class GraphDef:
    """A graph: its nodes in program order, inputs first and results last."""

    node: list[NodeDef]

    def __str__(self) -> str:
        return "\n".join(map(str, self.node))


def graph_def(graph: Graph) -> GraphDef:
    """The nodes of `graph` by name."""
    taken: dict[str, int] = {}
    names: dict[Value, str] = {}
    found: list[NodeDef] = []
    for value in graph.inputs:
        names[value] = _free(value.name or "input", taken)
        found.append(NodeDef(names[value], "Placeholder", [], _spec(value)))
    for node in graph.nodes:
        kind = "Const" if node.op is CONSTANT else node.op.name
        name = _free(kind, taken)
        for value in node.outputs:
            names[value] = f"{name}:{value.index}" if value.index else name
        found.append(NodeDef(name, kind, [names[v] for v in node.inputs], _attrs(node)))
    for value in graph.outputs:
        found.append(NodeDef(_free("Identity", taken), "Identity", [names[value]], _spec(value)))
    return GraphDef(found)


def _free(name: str, taken: dict[str, int]) -> str:
    """`name`, with a number if it is taken."""
    number = taken.get(name, 0)
    taken[name] = number + 1
    return name if not number else _free(f"{name}_{number}", taken)


def _spec(value: Value) -> dict[str, Any]:
    return {"dtype": value.dtype.name, "shape": f"[{', '.join(map(str, value.dims))}]"}


def _attrs(node: Node) -> dict[str, Any]:
    regions = {f"region_{i}": graph_def(region) for i, region in enumerate(node.regions)}
    return {**node.attrs, **regions}


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.splitlines()]
