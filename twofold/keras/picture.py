"""The graph of a model's layers as SVG, without other programs: layers in rows by their distance from the inputs."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

__all__ = ["svg_of"]

_GAP, _LINE, _PAD, _CHAR = 36, 17, 10, 7.3


def svg_of(model: Any, labelled: list[tuple[Any, str]], rankdir: str = "TB") -> str:
    """A picture of a model.

    Args:
        model: the model.
        labelled: its layers with the lines of their boxes, which are parted by a backslash and an n.
        rankdir: "TB" for top to bottom, "LR" for left to right.
    """
    graph = model.__dict__.get("_graph")
    edges = [] if graph is None else list(dict.fromkeys(
        [(id(x._node.operation), id(node.operation)) for node in graph.nodes for x in node.inputs]))
    lines = {id(layer): text.split("\\n") for layer, text in labelled}
    rows = _rows(list(lines), edges)
    sizes = {key: (max(map(len, text)) * _CHAR + 2 * _PAD, float(len(text) * _LINE + 2 * _PAD))
             for key, text in lines.items()}
    places, width, height = _placed(rows, sizes, rankdir == "LR")
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
             f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="Helvetica, Arial, sans-serif" font-size="12">',
             '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
             'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#52627a"/></marker></defs>',
             f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>']
    parts += [_edge(places[a], sizes[a], places[b], sizes[b], rankdir == "LR") for a, b in edges
              if a in places and b in places]
    parts += [_box(places[key], sizes[key], text) for key, text in lines.items()]
    return "\n".join([*parts, "</svg>"])


def _rows(keys: list[int], edges: list[tuple[int, int]]) -> list[list[int]]:
    """The layers in rows, each below all that lead to it."""
    depth = dict.fromkeys(keys, 0)
    for _ in keys:
        changed = False
        for a, b in edges:
            if a in depth and b in depth and a != b and depth[b] < depth[a] + 1 <= len(keys):
                depth[b] = depth[a] + 1
                changed = True
        if not changed:
            break
    if not edges:
        depth = {key: n for n, key in enumerate(keys)}
    rows: list[list[int]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for key in keys:
        rows[depth[key]].append(key)
    return [row for row in rows if row]


def _placed(rows: list[list[int]], sizes: dict[int, tuple[float, float]],
            sideways: bool) -> tuple[dict[int, tuple[float, float]], float, float]:
    """The corner of each box, and the size of the picture."""
    across, along = (1, 0) if sideways else (0, 1)
    spans = [sum(sizes[k][across] for k in row) + _GAP * (len(row) - 1) for row in rows]
    widest = max(spans, default=0.0)
    places: dict[int, tuple[float, float]] = {}
    position = float(_GAP)
    for row, span in zip(rows, spans, strict=True):
        start = _GAP + (widest - span) / 2
        for key in row:
            places[key] = (position, start) if sideways else (start, position)
            start += sizes[key][across] + _GAP
        position += max(sizes[k][along] for k in row) + _GAP
    extent = widest + 2 * _GAP
    return (places, position, extent) if sideways else (places, extent, position)


def _edge(a: tuple[float, float], a_size: tuple[float, float], b: tuple[float, float], b_size: tuple[float, float],
          sideways: bool) -> str:
    if sideways:
        x1, y1, x2, y2 = a[0] + a_size[0], a[1] + a_size[1] / 2, b[0], b[1] + b_size[1] / 2
        path = f"M{x1:.1f} {y1:.1f} C{(x1 + x2) / 2:.1f} {y1:.1f} {(x1 + x2) / 2:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    else:
        x1, y1, x2, y2 = a[0] + a_size[0] / 2, a[1] + a_size[1], b[0] + b_size[0] / 2, b[1]
        path = f"M{x1:.1f} {y1:.1f} C{x1:.1f} {(y1 + y2) / 2:.1f} {x2:.1f} {(y1 + y2) / 2:.1f} {x2:.1f} {y2:.1f}"
    return f'<path d="{path}" fill="none" stroke="#52627a" marker-end="url(#tip)"/>'


def _box(place: tuple[float, float], size: tuple[float, float], lines: list[str]) -> str:
    x, y = place
    texts = "".join([f'<text x="{x + size[0] / 2:.1f}" y="{y + _PAD + (n + 0.75) * _LINE:.1f}" text-anchor="middle"'
                     f'{" font-weight=" + chr(34) + "bold" + chr(34) if not n else ""} fill="#1d2633">{escape(line)}'
                     "</text>" for n, line in enumerate(lines)])
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}" rx="6" fill="#f4f6fa" '
            f'stroke="#52627a"/>{texts}')
