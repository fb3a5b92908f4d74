"""A graph as TensorFlow lists one: nodes by name, whose operands are named, too.

Only for reading: `ir/graph.py` owns graphs, and text that can be parsed back is `ir/graph_text.py`'s.
"""

from __future__ import annotations

from .graph import CONSTANT, Graph, Node, Value, shows
from .node_def import GraphDef, NodeDef
from .types import Attrs

__all__ = ["GraphDef", "NodeDef", "graph_def"]

_KINDS = {"string_add": "add"}  # nodes are called by the operator; strings have an op of their own


@shows("definition")
def graph_def(graph: Graph) -> GraphDef:
    """The nodes of `graph` by name."""
    taken: dict[str, int] = {}
    names: dict[Value, str] = {}
    nodes: list[NodeDef] = []
    for value in graph.inputs:
        names[value] = _free(value.name or "input", taken)
        nodes.append(NodeDef(names[value], "Placeholder", [], _spec(value)))
    for node in graph.nodes:
        kind = _KINDS.get(node.op.name, node.op.name) if node.op is not CONSTANT else "Const"
        name = _free(kind, taken)
        for value in node.outputs:
            names[value] = f"{name}:{value.index}" if value.index else name
        nodes.append(NodeDef(name, kind, [names[v] for v in node.inputs], _attrs(node)))
    for value in graph.outputs:
        nodes.append(NodeDef(_free("Identity", taken), "Identity", [names[value]], _spec(value)))
    return GraphDef(nodes)


def _free(name: str, taken: dict[str, int]) -> str:
    """`name`, with a number if it is taken."""
    number = taken.get(name, 0)
    taken[name] = number + 1
    return name if not number else _free(f"{name}_{number}", taken)


def _spec(value: Value) -> Attrs:
    return {"dtype": value.dtype.name, "shape": f"[{', '.join(map(str, value.dims))}]"}


def _attrs(node: Node) -> Attrs:
    regions = {f"region_{i}": graph_def(region) for i, region in enumerate(node.regions)}
    return {**node.attrs, **regions}
