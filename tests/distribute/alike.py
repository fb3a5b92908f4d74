"""Two processes in one: a group whose other process has what this one has, and does it at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import twofold as tf
from twofold.distribute import _collective, _line, _transport
from twofold.ir import groups

__all__ = ["Twins", "strategy_of"]


class Twins(_transport.Group):
    """The group.

    Attributes:
        told: what was exchanged, and what tests add.
        before: called before each sum.
        texts_of_other: what the other process comes to; what this one does by default.
    """

    size, concurrent = 2, True

    def __init__(self) -> None:
        self.told: list[str] = []
        self.threads: set[str] = set()
        self.before: Callable[[], None] = lambda: None
        self.other: str | None = None

    def sum(self, rows: np.ndarray, add: _transport.Add) -> np.ndarray:
        """Each row, twice."""
        self.threads.add(threading.current_thread().name)
        self.before()
        total = rows[0]
        for row in [*rows[1:], *rows]:
            total = add(total, row)
        self.told.append(f"sum of {rows.shape[1]}")
        return total

    def gather(self, value: np.ndarray) -> list[np.ndarray]:
        """The value, twice."""
        return [value, value]

    def marks(self, mark: bytes, is_urgent: Callable[[], bool]) -> list[bytes]:
        """The mark, twice."""
        return [mark, mark if self.other is None else b"other"]

    def texts(self, text: str) -> list[str]:
        """The text, and the other's."""
        return [text, self.other or text]


@contextmanager
def strategy_of(group: _transport.Group, **options: Any) -> Iterator[tf.distribute.Strategy]:
    """A strategy of the group's processes, of which this is one, for a block."""
    before = dict(groups._groups)
    strategy = tf.distribute.Strategy(["/cpu:0"], _line.of(group))
    strategy._pack = options.get("bytes_per_pack", strategy._pack)
    try:
        assert _collective.PROCESSES in groups._groups
        yield strategy
    finally:
        groups._groups.clear()
        groups._groups.update(before)
