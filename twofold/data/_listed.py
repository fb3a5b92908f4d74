"""A dataset of items that are there already: a window, or a group."""

from __future__ import annotations

from typing import Any

from ._node import Node
from ._stream import Run, Stream
from ._structure import Form, Item

__all__ = ["Listed"]


class Listed(Node):
    """Items that are there already: a window, or a group."""

    name = "Window"

    def __init__(self, items: list[Item], form: Form) -> None:
        self.items, self.form = _Kept(items), form

    def cardinality(self) -> int:
        return len(self.items.items)

    def start(self, run: Run) -> Stream:
        return _List(self.items.items)


class _Kept:
    """Items in a box, which the search for traced tensors does not open."""

    def __init__(self, items: list[Item]) -> None:
        self.items = items


class _List(Stream):
    def __init__(self, items: list[Item]) -> None:
        self.items, self.at = items, 0

    def next(self) -> Any:
        if self.at >= len(self.items):
            return None
        self.at += 1
        return self.items[self.at - 1]

    def save(self) -> Any:
        return self.at

    def load(self, state: Any) -> None:
        self.at = state
