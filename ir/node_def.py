"""The parts of a graph definition: nodes by name, as TensorFlow lists them. `ir/graph_def.py` makes one."""

from __future__ import annotations

from .data_class import data_class, field
from .types import Attrs

__all__ = ["GraphDef", "NodeDef"]


@data_class()
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
    attr: Attrs = field(default_factory=dict)

    @property
    def type(self) -> str:
        """The name of its op; the same as `op`."""
        return self.op

    @property
    def inputs(self) -> list[str]:
        """The names of its operands; the same as `input`."""
        return self.input

    def __str__(self) -> str:
        lines = [f'  name: "{self.name}"', f'  op: "{self.op}"', *[f'  input: "{name}"' for name in self.input]]
        for key, value in self.attr.items():
            lines += ["  attr {", f'    key: "{key}"', *_indented(f"value: {value}"), "  }"]
        return "\n".join(["node {", *lines, "}"])


@data_class()
class GraphDef:
    """A graph: its nodes in program order, inputs first and results last."""

    node: list[NodeDef]

    def __str__(self) -> str:
        return "\n".join(map(str, self.node))


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.splitlines()]
