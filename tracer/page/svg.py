"""A drawing as an SVG picture that stands by itself, for documents and for programs that show pictures."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .scene import Item, Scene

__all__ = ["curve", "picture"]

_FILLS = {
    "elementwise": "#dcecff", "reduction": "#ffe6cf", "structured": "#d9f2e1", "view": "#eef0f3", "data": "#f3efdd",
    "input": "#e3e0fb", "output": "#fbdfe8", "python": "#ffdcdc", "control": "#e8dcf6", "random": "#d5f0f2",
    "kernel": "#e9eef7", "region": "#f1ecf8",
}
_FONT = 'font-family="system-ui, DejaVu Sans, Arial, sans-serif"'
_MARGIN = 12


def picture(scene: Scene) -> str:
    """The text of the SVG file."""
    wide, tall = scene.width + 2 * _MARGIN, scene.height + 2 * _MARGIN
    around = {item.parent for item in scene.items}
    frames = [_frame(item) for n, item in enumerate(scene.items) if n in around]
    leaves = [_leaf(item) for n, item in enumerate(scene.items) if n not in around]
    heads = [_head(item) for n, item in enumerate(scene.items) if n in around]
    edges = "".join(curve(s.points) for s in scene.segments)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" height="{tall:.0f}" '
        f'viewBox="{-_MARGIN} {-_MARGIN} {wide:.0f} {tall:.0f}">',
        f"<title>{escape(scene.name)}</title>",
        f'<rect x="{-_MARGIN}" y="{-_MARGIN}" width="{wide:.0f}" height="{tall:.0f}" fill="#ffffff"/>',
        *frames, f'<path d="{edges}" fill="none" stroke="#8692a6" stroke-width="1.2"/>', *leaves, *heads, "</svg>", ""])


def _frame(item: Item) -> str:
    dashes = ' stroke-dasharray="5 3"' if item.kind == "region" else ""
    return _rect(item, 8, "region" if item.kind == "region" else "kernel", dashes)


def _head(item: Item) -> str:
    box = item.box
    return _text(box.x + 10, box.y + 17, 12, item.title, ' font-weight="600"')


def _leaf(item: Item) -> str:
    box = item.box
    middle, centred = box.x + box.width / 2, ' text-anchor="middle"'
    parts = [_rect(item, 13 if item.kind in ("input", "output") else 6, item.color, ""),
             _text(middle, box.y + (16.5 if item.sub else box.height / 2 + 4), 12, item.title, centred)]
    if item.sub:
        parts.append(_text(middle, box.y + 31, 10, item.sub, centred + ' fill="#566074"'))
    return f"<g>{''.join(parts)}</g>"


def _rect(item: Item, corner: int, color: str, more: str) -> str:
    box = item.box
    return (f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{corner}" '
            f'fill="{_FILLS.get(color, _FILLS["kernel"])}" stroke="#7d93b8"{more}/>')


def _text(x: float, y: float, size: int, text: str, more: str) -> str:
    shown = "".join(c if c.isprintable() else "�" for c in text)
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" {_FONT}{more}>{escape(shown)}</text>'


def curve(points: list[tuple[float, float]], sideways: bool = False) -> str:
    """A path through the points of a segment, with a tip at its end.

    Args:
        sideways: whether what was laid out from top to bottom is drawn from left to right.
    """
    parts = ["M" + _place(*points[0], sideways)]
    for (x, y), (u, v) in zip(points, points[1:], strict=False):
        middle = (y + v) / 2
        parts.append("C" + " ".join(_place(*p, sideways) for p in ((x, middle), (u, middle), (u, v))))
    x, y = points[-1]
    tip = [_place(*p, sideways) for p in ((x - 3.5, y - 6), (x, y), (x + 3.5, y - 6))]
    return "".join(parts) + f"M{tip[0]}L{tip[1]}L{tip[2]}"


def _place(x: float, y: float, sideways: bool) -> str:
    return f"{y:.1f} {x:.1f}" if sideways else f"{x:.1f} {y:.1f}"
