"""Running sums of cotangents: one for each value, though a value may have several names.

A branch that gives one of its operands back gives, where it is taken, that very value: whatever is computed from either
name adds to one sum. Which it is becomes known when the graph runs, so that each of the names has a sum, and those that
are one value by a condition are kept equal where it holds.

    y = x if p else z        what y's sum grows by, x's grows by where p holds, and the other way round

Tapes in traces (`eager/playing.py`) and gradients of graphs (`ir/autodiff.py`) both keep such sums. Keys are whatever
tells values apart there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from . import ops
from .grad import nothing, zeros_like

__all__ = ["Sums"]


class _Link(NamedTuple):
    """Another name: its key, what gives the condition, and whether it gets a sum where it has none yet."""

    key: Any
    holds: Callable[[], Any]
    always: bool


class Sums:
    """Sums by keys.

    Args:
        cts: the sums so far, which are changed in place.
    """

    def __init__(self, cts: dict[Any, Any]) -> None:
        self.cts = cts
        self.begins: dict[Any, Callable[[], Any]] = {}  # what sums begin with, or None
        self._links: dict[Any, list[_Link]] = {}
        self._late: dict[Any, tuple[Any, Callable[[], Any]]] = {}  # what has grown with another since it was looked at

    def join(self, name: Any, value: Any, holds: Callable[[], Any]) -> None:
        """From now on `name` is another name of `value` where a condition holds.

        Args:
            name, value: keys; `value` gets a sum where `name` has one, `name` only when something adds to it.
            holds: gives a bool scalar.
        """
        if name != value:
            self._links.setdefault(name, []).append(_Link(value, holds, True))
            self._links.setdefault(value, []).append(_Link(name, holds, False))
            for key in (name, value):
                if key in self.cts:
                    self._spread(key)

    def linked(self, key: Any) -> list[Any]:
        """The other names of `key`."""
        return [link.key for link in self._links.get(key, ())]

    def get(self, key: Any) -> Any:
        """The sum so far, or None."""
        if self._links and key in self._links:
            self._refresh(key, {key})
        return self.cts.get(key)

    def pop(self, key: Any) -> Any:
        """The sum, or None, of what has no further part in anything."""
        found = self.get(key)
        self.part(key)
        self.cts.pop(key, None)
        return found

    def add(self, key: Any, ct: Any) -> None:
        """Another contribution."""
        before = self.get(key)
        if before is None:
            before = self.begins[key]() if key in self.begins else None
            for link in self._links.get(key, ()):
                other = self.get(link.key)
                if other is not None:
                    before = ops.where(link.holds(), other, nothing(ct) if before is None else before)
        self.total(key, ct if before is None else ops.add(before, ct))

    def total(self, key: Any, ct: Any) -> None:
        """The sum is `ct` from here on."""
        self._late.pop(key, None)
        self.cts[key] = ct
        if key in self._links:
            self._spread(key)

    def part(self, name: Any) -> None:
        """`name` is a value of its own from here on."""
        for link in self._links.get(name, ()):
            self._refresh(link.key, {link.key})
        for link in self._links.pop(name, ()):
            self._links[link.key] = [other for other in self._links[link.key] if other.key != name]

    # -- names that were not looked at yet --------------------------------------------------------
    def _spread(self, key: Any, source: Any = None) -> None:
        """The sum of `key` has changed: those of its other names change when they are looked at."""
        for link in self._links[key]:
            if link.key == source or not (link.always or link.key in self.cts or link.key in self._late):
                continue
            late = self._late.get(link.key)
            if late is not None and late[0] != key:
                self._settle(link.key)
            self._late[link.key] = key, link.holds

    def _refresh(self, key: Any, seen: set[Any]) -> None:
        for link in self._links.get(key, ()):
            if link.key not in seen:
                seen.add(link.key)
                self._refresh(link.key, seen)
        self._settle(key)

    def _settle(self, key: Any) -> None:
        late = self._late.pop(key, None)
        if late is None:
            return
        source, holds = late
        ct, before = self.cts[source], self.cts.get(key)
        self.cts[key] = ops.where(holds(), ct, zeros_like(ct) if before is None else before)
        self._spread(key, source)
