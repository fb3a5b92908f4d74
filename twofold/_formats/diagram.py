"""Boxes with lines of text and arrows between them, as an SVG picture.

Where the boxes lie is found as for the drawings of graphs, by `tracer/page/layout.py`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any
from xml.sax.saxutils import escape

from twofold.tracer.page import layout
from twofold.tracer.page.svg import curve

__all__ = ["svg_of"]

_LINE, _PAD, _CHAR = 17, 10, 7.3


def svg_of(boxes: Mapping[Any, Sequence[str]], edges: Sequence[tuple[Hashable, Hashable]], sideways: bool) -> str:
    """The text of the picture.

    Args:
        boxes: the lines of each box, the first of them bold; without edges, the boxes are shown one after another.
        edges: from which box to which.
        sideways: whether edges go from left to right; else from top to bottom.
    """
    root = layout.Box(0.0, 0.0)
    laid_out = {key: root.add(layout.Box(*_turned(_size(lines), sideways))) for key, lines in boxes.items()}
    drawn = [layout.Edge(laid_out[a], laid_out[b]) for a, b in edges]
    unseen = [] if edges else [layout.Edge(a, b) for a, b in pairwise(laid_out.values())]
    layout.lay_out(root, [*drawn, *unseen])
    segments = dict.fromkeys(segment for edge in drawn for segment in edge.segments)
    width, height = _turned((root.width, root.height), sideways)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="Helvetica, Arial, sans-serif" font-size="12">',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
        *[f'<path d="{curve(segment.points, sideways)}" fill="none" stroke="#52627a"/>' for segment in segments],
        *[_box(_turned((laid_out[key].x, laid_out[key].y), sideways), _size(lines), lines)
          for key, lines in boxes.items()],
        "</svg>"])


def _size(lines: Sequence[str]) -> tuple[float, float]:
    return max(map(len, lines)) * _CHAR + 2 * _PAD, float(len(lines) * _LINE + 2 * _PAD)


def _turned(pair: tuple[float, float], sideways: bool) -> tuple[float, float]:
    """A place or size of the layout, which runs from top to bottom, in the drawing, which may run `sideways`."""
    return pair[::-1] if sideways else pair


def _box(place: tuple[float, float], size: tuple[float, float], lines: Sequence[str]) -> str:
    x, y = place
    texts = "".join([f'<text x="{x + size[0] / 2:.1f}" y="{y + _PAD + (n + 0.75) * _LINE:.1f}" text-anchor="middle"'
                     f'{" font-weight=" + chr(34) + "bold" + chr(34) if not n else ""} fill="#1d2633">{escape(line)}'
                     "</text>" for n, line in enumerate(lines)])
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}" rx="6" fill="#f4f6fa" '
            f'stroke="#52627a"/>{texts}')
