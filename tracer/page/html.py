"""A graph as one HTML file that opens without a network: zoom, pan, search, and a panel about what is clicked.

Everything is inline, and the file's own policy lets it load nothing and run nothing but its own script. Texts of the
graph are data to the script, which shows them as text only; no name can become markup.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

from .scene import Item, Scene

__all__ = ["ProgramMemory", "View", "page", "in_notebook", "digest", "markup"]

_HEIGHT = 640  # pixels that a page takes in a notebook


@dataclass
class ProgramMemory:
    """The memory between the kernels of one program.

    Attributes:
        steps: how many kernels run.
        arena: bytes, or None where open sizes decide.
        blocks: name, size in words, first and last step, bytes and place of each; None where open sizes decide.
    """

    steps: int
    arena: int | None
    blocks: list[tuple[str, str, int, int, int | None, int | None]]


@dataclass
class View:
    """One drawing of a page.

    Attributes:
        label: the button that shows it.
        title, note: the texts of the panel while nothing is selected.
        facts: numbers about the whole, as (name, text) pairs.
        memory: of each program.
    """

    label: str
    scene: Scene
    title: str
    note: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    memory: list[ProgramMemory] = field(default_factory=list)


def page(title: str, about: str, views: Sequence[View]) -> str:
    """The text of the file.

    Args:
        title: of the page.
        about: a line under it.
        views: the first is shown.
    """
    style, script = _part("page.css"), _part("page.js")
    policy = (f"default-src 'none'; style-src '{digest(style)}'; script-src '{digest(script)}'; base-uri 'none'; "
              "form-action 'none'")
    codes: dict[str, int] = {}
    shown = [_view(v, codes) for v in views]
    data = json.dumps({"views": shown, "codes": list(codes)}, ensure_ascii=True, separators=(",", ":"))
    return Template(_part("page.html")).substitute(
        title=markup(title), about=markup(about), policy=policy, style=style, script=script,
        data=data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def in_notebook(text: str) -> str:
    """A page inside of another, apart from its styles and scripts."""
    return (f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(text, quote=True)}" title="graph" '
            f'style="width:100%;height:{_HEIGHT}px;border:1px solid #8886;border-radius:6px"></iframe>')


def markup(text: str) -> str:
    """A text as it stands in HTML, in ASCII, so that a page means the same whatever is thought of its encoding."""
    return html.escape(text).encode("ascii", "xmlcharrefreplace").decode()


@functools.cache
def _part(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """How a page's policy names a script or a style that it may use."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _view(view: View, codes: dict[str, int]) -> dict[str, object]:
    scene = view.scene
    number = {item.box: n for n, item in enumerate(scene.items)}
    segments = [[number[s.source], number.get(s.within), [round(v, 1) for point in s.points for v in point]]
                for s in scene.segments]
    return {"label": view.label, "title": view.title, "note": view.note, "facts": view.facts,
            "memory": [dataclasses.asdict(m) for m in view.memory],
            "w": round(scene.width), "h": round(scene.height), "items": [_item(i, codes) for i in scene.items],
            "edges": scene.edges, "segments": segments}


def _item(item: Item, codes: dict[str, int]) -> dict[str, object]:
    """The data of an item for the page's script; texts that many items share are collected in `codes`."""
    box = item.box
    fields: dict[str, object] = {
        "k": item.kind, "c": item.color, "t": item.title, "s": item.sub, "p": item.parent, "x": round(box.x, 1),
        "y": round(box.y, 1), "w": round(box.width, 1), "h": round(box.height, 1)}
    if box.header:
        fields["hd"] = box.header
    if item.seconds is not None:
        fields["us"] = round(item.seconds * 1e6, 3)
    if item.code:
        fields["code"] = codes.setdefault(item.code, len(codes))
    for key, value in (("f", item.facts), ("o", item.operands), ("at", item.where), ("m", item.members)):
        if value:
            fields[key] = value
    return fields
