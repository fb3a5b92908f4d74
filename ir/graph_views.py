"""Graphs for other programs: a `networkx.DiGraph` for graph algorithms, DOT for pictures, a page for browsers.

The first two show one graph with its regions as attributes of their nodes (networkx) or boxes (DOT). networkx is
imported on first need. The page also shows what the compiler makes of the graph, which a floor above knows: that floor
hands in what draws it (`draw_pages_with`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from . import dims as dm
from . import graph as g
from . import graph_def, graph_text  # noqa: F401 - show graphs, too
from .graph_literals import array_text, attr_text
from .replay import bind_sizes

if TYPE_CHECKING:
    import networkx

__all__ = ["to_networkx", "to_dot", "to_html", "in_notebook", "draw_pages_with"]

_drawers: list[tuple[Callable[..., str], Callable[[str], str]]] = []


@g.shows("networkx")
def to_networkx(graph: g.Graph) -> networkx.DiGraph:
    """The dataflow of `graph`, without what its regions hold.

    Returns:
        A DiGraph. Its nodes are `("input", i)`, the numbers of the graph's nodes in order, and `("output", i)`; each
        has the attributes `op` (a name), `loc` (a Location or None) and `node` (the Node, or the Value of an input or
        output). An edge of `kind` "data" carries `values`: pairs of the result's number and the operand's; an edge of
        `kind` "effect" leads from a node with an effect to the next one.

    >>> from twofold.ir.graph_text import parse
    >>> flow = to_networkx(parse("graph f(%0: f32[2]) { %1 = add(%0, %0) : f32[2] return %1 }"))
    >>> list(flow.edges(data="values"))
    [(('input', 0), 0, [(0, 0), (0, 1)]), (0, ('output', 0), [(0, 0)])]
    """
    import networkx as nx

    dataflow = nx.DiGraph(name=graph.name)
    origins: dict[g.Value, tuple[object, int]] = {}
    for i, value in enumerate(graph.inputs):
        dataflow.add_node(("input", i), op="input", loc=None, node=value)
        origins[value] = (("input", i), 0)
    last: int | None = None
    for number, node in enumerate(graph.nodes):
        dataflow.add_node(number, op=node.op.name, loc=node.loc, node=node)
        for place, value in enumerate(node.inputs):
            _data_edge(dataflow, origins[value], number, place)
        for value in node.outputs:
            origins[value] = (number, value.index)
        if not g.is_pure(node):
            if last is not None and not dataflow.has_edge(last, number):
                dataflow.add_edge(last, number, kind="effect", values=[])
            last = number
    for i, value in enumerate(graph.outputs):
        dataflow.add_node(("output", i), op="output", loc=None, node=value)
        _data_edge(dataflow, origins[value], ("output", i), 0)
    return dataflow


def _data_edge(dataflow: networkx.DiGraph, source: tuple[object, int], target: object, place: int) -> None:
    where, index = source
    if dataflow.has_edge(where, target):
        dataflow.edges[where, target]["values"].append((index, place))
    else:
        dataflow.add_edge(where, target, kind="data", values=[(index, place)])


@g.shows("dot")
def to_dot(graph: g.Graph) -> str:
    """The graph as DOT text: an edge carries its value's type, regions are boxes, effects are dashed.

    >>> from twofold.ir.graph_text import parse
    >>> print(to_dot(parse("graph f(%0 x: f32[2]) { %1 = exp(%0) : f32[2] return %1 }")))
    digraph f {
      rankdir=TB; node [shape=box, fontname="monospace"];
      i0 [label="x", shape=ellipse];
      n0 [label="exp"];
      i0 -> n0 [label="f32[2]"];
      o0 [label="output 0", shape=ellipse];
      n0 -> o0 [label="f32[2]"];
    }
    """
    lines = [f"digraph {_dot(graph.name)} {{", '  rankdir=TB; node [shape=box, fontname="monospace"];']
    _draw(graph, "", "  ", lines)
    return "\n".join([*lines, "}"])


def draw_pages_with(page: Callable[..., str], frame: Callable[[str], str]) -> None:
    """Hands in what makes pages: `page(graph, inputs, fast_math)`, and `frame(page)` to show one within another."""
    _drawers[:] = [(page, frame)]


@g.shows("html")
def to_html(graph: g.Graph, path: str | os.PathLike[str] | None = None, inputs: Sequence[np.ndarray] | None = None,
            fast_math: bool = False) -> str:
    """The graph as one HTML file that opens without a network: fused kernels, their memory and source lines, search.

    Args:
        graph: what to show, as it was traced; the page also shows what it is compiled to.
        path: where to write the page, if anywhere.
        inputs: an array for each input of the graph, to measure the time of each kernel; the graph is run for it some
            times. Without them there are no times.
        fast_math: whether it is compiled as `tf.function(fast_math=True)` is.
    Returns:
        The text of the page.
    Raises:
        ValueError: there are not as many inputs as the graph has, or one has another shape or dtype.

    >>> import twofold as tf
    >>> f = tf.function(lambda x: tf.reduce_sum(tf.exp(x) * 2.0)).get_concrete_function(tf.TensorSpec([3], tf.float32))
    >>> f.graph.to_html()[:15]
    '<!doctype html>'
    """
    if not _drawers:
        raise RuntimeError("pages are drawn by twofold.tracer, which has not been imported")
    if inputs is not None:
        _check(graph, inputs)
    text = _drawers[0][0](graph, inputs, fast_math)
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


@g.shows("notebook")
def in_notebook(graph: g.Graph) -> str:
    """The page of `to_html` as a part of a notebook."""
    return _drawers[0][1](to_html(graph))


def _check(graph: g.Graph, inputs: Sequence[np.ndarray]) -> None:
    if len(inputs) != len(graph.inputs):
        raise ValueError(f"graph {graph.name} has {len(graph.inputs)} inputs, {len(inputs)} arrays were given")
    sizes: dict[str, int] = {}
    for n, (value, array) in enumerate(zip(graph.inputs, inputs, strict=True)):
        fits = len(array.shape) == len(value.dims) and array.dtype == value.dtype.np
        if fits:
            bind_sizes(value.dims, array.shape, sizes)
            fits = tuple(dm.evaluate(value.dims, sizes)) == array.shape
        if not fits:
            raise ValueError(f"input {n} of graph {graph.name} is {value.spec.short()}; given was an array of dtype "
                             f"{array.dtype} and shape {array.shape}")


def _draw(graph: g.Graph, prefix: str, indent: str, lines: list[str]) -> None:
    ids: dict[g.Value, str] = {}
    for i, value in enumerate(graph.inputs):
        ids[value] = f"{prefix}i{i}"
        lines.append(f"{indent}{prefix}i{i} [label={_dot(value.name or f'input {i}', True)}, shape=ellipse];")
    last = None
    for number, node in enumerate(graph.nodes):
        name = f"{prefix}n{number}"
        lines.append(f"{indent}{name} [label={_dot(_label(node), True)}];")
        for value in node.inputs:
            lines.append(f"{indent}{ids[value]} -> {name} [label={_dot(value.spec.short(), True)}];")
        for value in node.outputs:
            ids[value] = name
        if not g.is_pure(node):
            lines += [] if last is None else [f"{indent}{last} -> {name} [style=dashed];"]
            last = name
        for k, region in enumerate(node.regions):
            lines.append(f"{indent}subgraph cluster_{name}_{k} {{ label={_dot(region.name, True)};")
            _draw(region, f"{name}_{k}_", indent + "  ", lines)
            lines.append(f"{indent}}}")
    for i, value in enumerate(graph.outputs):
        lines.append(f"{indent}{prefix}o{i} [label={_dot(f'output {i}', True)}, shape=ellipse];")
        lines.append(f"{indent}{ids[value]} -> {prefix}o{i} [label={_dot(value.spec.short(), True)}];")


def _label(node: g.Node) -> str:
    if node.op is g.CONSTANT:
        value, dtype = node.attrs["value"], node.outputs[0].dtype
        return array_text(value, dtype) if value.size <= 4 else f"constant {node.outputs[0].spec.short()}"
    defaults = {} if isinstance(node.op, g.Construct) else node.op.defaults
    shown = [f"{k}={attr_text(v)}" for k, v in node.attrs.items() if k not in defaults or v != defaults[k]]
    place = "" if node.loc is None else f"\n{node.loc}"
    return f"{node.op.name}{' ' if shown else ''}{' '.join(shown)}{place}"


def _dot(text: str, always: bool = False) -> str:
    if not always and text.isidentifier() and text.isascii():
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
