"""The graph of a model's layers as SVG, without other programs."""

from __future__ import annotations

from typing import Any

from .._formats import diagram

__all__ = ["svg_of"]


def svg_of(model: Any, labelled: list[tuple[Any, str]], rankdir: str = "TB") -> str:
    """A picture of a model.

    Args:
        model: the model.
        labelled: its layers with the lines of their boxes, which are parted by a backslash and an n.
        rankdir: "TB" for top to bottom, "LR" for left to right.
    """
    graph = model.__dict__.get("_graph")
    boxes = {id(layer): text.split("\\n") for layer, text in labelled}
    pairs = [] if graph is None else [(id(x._node.operation), id(node.operation))
                                      for node in graph.nodes for x in node.inputs]
    edges = [(a, b) for a, b in dict.fromkeys(pairs) if a != b and a in boxes and b in boxes]
    return diagram.svg_of(boxes, edges, rankdir == "LR")
