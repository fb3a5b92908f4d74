"""Elements kept after the first time: in memory, or in a file that later processes read.

What was kept counts only when an iteration came to its end. The state of an iterator over a memory cache holds what it
has kept. A file cache is a TFRecord file of elements (`_state.py`), `FILENAME.elements`, which appears under that name
when it is whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from twofold._formats.replacing import Replacement
from twofold._front import iteration as engine

from ._files import Reader
from ._node import Node, Selection
from ._records import framed, open_to_read, path_of, read_record
from ._state import decoded, encoded
from ._stream import Run, Stream

__all__ = ["FileCache", "MemoryCache"]



class _Store:
    """The kept items of whole iterations, by whether those were over positions or elements."""

    def __init__(self) -> None:
        self.items: list[Any] | None = None


class MemoryCache(Selection):
    """The items of the first whole iteration."""

    name = "Cache"

    def __init__(self, source: Node) -> None:
        super().__init__(source)
        self.of_elements, self.of_positions = _Store(), _Store()

    def cardinality(self) -> int:
        return self.source.cardinality()

    def positions(self, run: Run) -> Stream:
        return _Kept(self.of_positions, lambda: self.source.positions(run))

    def select(self, start: Callable[[], Stream]) -> Stream:
        return _Kept(self.of_elements, start)


class _Kept(Stream):
    """Reads the kept elements, or keeps those of its input as it reads them."""

    def __init__(self, store: _Store, start: Callable[[], Stream]) -> None:
        self.store, self.start, self.at = store, start, 0
        self.whole = store.items is not None
        self.items: list[Any] = store.items if store.items is not None else []
        self.input: Stream | None = None if self.whole else start()

    def next(self) -> Any:
        if self.input is not None:
            item = self.input.next()
            if item is None:
                self._finish()
                return None
            self.items.append(item)
            self.at += 1
            return item
        if self.at >= len(self.items):
            return None
        self.at += 1
        return self.items[self.at - 1]

    def _finish(self) -> None:
        self.input, self.whole = None, True
        self.store.items = self.items

    def save(self) -> Any:
        return {"at": self.at, "items": self.items, "input": None if self.input is None else self.input.save()}

    def load(self, state: Any) -> None:
        self.at, self.items = state["at"], list(state["items"])
        self.input, self.whole = None, state["input"] is None
        if self.whole:
            self.store.items = self.items
        else:
            self.input = self.start()
            self.input.load(state["input"])


class FileCache(Node):
    """The elements of the first whole iteration, in a file."""

    name = "CacheFile"

    def __init__(self, source: Node, filename: Any) -> None:
        self.source, self.form = source, source.form
        self.filename = filename

    def settled(self, key: str, value: Any) -> Any:
        return value

    def cardinality(self) -> int:
        return self.source.cardinality()

    def start(self, run: Run) -> Stream:
        name = self.filename
        path = path_of(name if isinstance(name, (str, bytes, os.PathLike)) else engine.array_of(name)[()])
        return _Filed(path + ".elements", lambda: self.source.start(run))


class _Filed(Stream):
    """Reads the file, or writes it beside the elements of the input."""

    def __init__(self, path: str, start: Callable[[], Stream]) -> None:
        self.path, self.start, self.at = path, start, 0
        self.input: Stream | None = None
        self.file: Any = None
        if os.path.exists(path):
            self.file = self._opened()
        else:
            self.input = start()
            self._begin()

    def _opened(self) -> Reader:
        file = open_to_read(self.path)
        path = self.path
        return Reader(file, lambda: read_record(file, path))

    def _begin(self) -> None:
        os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)
        self.made = Replacement(self.path)
        self.file = self.made.file
        engine.weak_finalizer(self, self.made.close)

    def next(self) -> Any:
        if self.input is None:
            record = None if self.file is None else self.file()
            if record is None:
                self.file = None
                return None
            self.at += 1
            return decoded(record, self.path)
        item = self.input.next()
        if item is None:
            self._finish()
            return None
        self.at += 1
        if self.file is not None:
            self.file.write(framed(encoded(item)))
        return item

    def _finish(self) -> None:
        self.input = None
        if self.file is not None:
            self.made.commit()
            self.file = None

    def save(self) -> Any:
        return [self.at, None if self.input is None else self.input.save()]

    def load(self, state: Any) -> None:
        if self.input is not None:
            self.made.close()
        self.at, self.file, self.input = state[0], None, None
        if state[1] is not None:  # the first part is not in a file of this process: the rest is not kept
            self.input = self.start()
            self.input.load(state[1])
            return
        self.file = self._opened()
        for _ in range(self.at):
            self.file()
