"""Running sums of cotangents: one for each value, though a value may have several names.

A branch that gives one of its operands back gives, where it is taken, that very value: whatever is computed from either
name adds to one sum. Which it is becomes known when the graph runs, so that each of the names has a sum, and those that
are one value by a condition are kept equal where it holds.

    y = x if p else z        what y's sum grows by, x's grows by where p holds, and the other way round

Tapes in traces (`eager/playing.py`) and gradients of graphs (`ir/autodiff.py`) both keep such sums. Keys are whatever
tells values apart there.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache, reduce
from typing import Any, NamedTuple

from . import ops
from .grad import nothing, zeros_like

__all__ = ["Link", "Sums"]


class Link(NamedTuple):
    """Two places that may hold one value, and what gives the condition."""

    one: int
    other: int
    holds: Callable[[], Any]


class _Link(NamedTuple):
    """Another name: its key, what gives the condition, and whether it gets a sum where it has none yet."""

    key: Any
    holds: Callable[[], Any]
    always: bool


def _both(one: Callable[[], Any], other: Callable[[], Any]) -> Callable[[], Any]:
    return cache(lambda: ops.logical_and(one(), other()))


def _either(one: Callable[[], Any], other: Callable[[], Any]) -> Callable[[], Any]:
    return cache(lambda: ops.logical_or(one(), other()))


class Sums:
    """Sums by keys.

    Args:
        cts: the sums so far, which are changed in place.
    """

    def __init__(self, cts: dict[Any, Any]) -> None:
        self.cts = cts
        self.begins: dict[Any, Callable[[], Any]] = {}  # what sums begin with, or None
        self._links: dict[Any, list[_Link]] = {}
        self._values: dict[Any, dict[Any, Callable[[], Any]]] = {}  # for names, what they may be names of
        self._begins: dict[Any, Callable[[], Any]] = {}  # for sums that only joins began, whether these hold
        self._late: dict[Any, dict[Any, Callable[[], Any]]] = {}  # with which names one has grown since

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

    def links(self, keys: Sequence[Any]) -> list[Link]:
        """Which of `keys`, None for those that do not count, may be one value: first and second place, condition.

        They may be that by other names, too, which are not among them.
        """
        found: list[Link] = []
        ways = [self._earlier(key) if key in self._links else {} for key in (keys if self._links else ())]
        for i, one in enumerate(ways):
            for j, other in enumerate(ways[:i]):
                holds = [one[keys[j]]] if keys[j] in one else [other[keys[i]]] if keys[i] in other else []
                holds += [_both(one[key], other[key]) for key in one if key in other]
                if holds:
                    found.append(Link(j, i, reduce(_either, holds)))
        return found

    def _earlier(self, key: Any) -> dict[Any, Callable[[], Any]]:
        """For each value that `key` may be a name of, at once or by other names, what tells whether it is."""
        known = self._values.get(key)
        if known is None:
            known = self._values[key] = {}
            for link in self._links.get(key, ()):
                if link.always:
                    further = {value: _both(link.holds, holds) for value, holds in self._earlier(link.key).items()}
                    for value, holds in {link.key: link.holds, **further}.items():
                        known[value] = _either(known[value], holds) if value in known else holds
        return known

    def get(self, key: Any) -> Any:
        """The sum so far, or None."""
        if self._links and key in self._links:
            self._refresh(key, {key})
        return self.cts.get(key)

    def result(self, key: Any) -> Any:
        """The sum in the end, or None: zeros where nothing began it."""
        total = self.get(key)
        return ops.where(self._begins[key](), total, zeros_like(total)) if key in self._begins else total

    def pop(self, key: Any) -> Any:
        """The sum, or None, of what has no further part in anything."""
        found = self.get(key)
        self.part(key)
        self.cts.pop(key, None)
        return found

    def begun(self, key: Any) -> Any:
        """The sum so far, or what it begins with, or None."""
        total = self.get(key)
        return self._begin(key, frozenset((key,))) if total is None else total

    def _begin(self, key: Any, seen: frozenset[Any]) -> Any:
        """What a sum begins with, or None: what its other names have, but for those `seen` already."""
        total = self.begins[key]() if key in self.begins else None
        for link in self._links.get(key, ()):
            if link.key in seen:
                continue
            other = self.get(link.key)
            if other is None:
                other = self._begin(link.key, seen | {link.key})
            if other is not None:
                total = ops.where(link.holds(), other, nothing(other) if total is None else total)
        return total

    def add(self, key: Any, ct: Any) -> None:
        """Another contribution."""
        before = self.begun(key)
        self.totals({key: ct if before is None else ops.add(before, ct)})

    def totals(self, cts: Mapping[Any, Any]) -> None:
        """From here on the sums are `cts`, in which names of one value have one sum."""
        for key, ct in cts.items():
            self._late.pop(key, None)
            self._begins.pop(key, None)
            self.cts[key] = ct
        for key in cts:
            if key in self._links:
                self._spread(key, cts)

    def part(self, name: Any) -> None:
        """`name` is a value of its own from here on."""
        for link in self._links.get(name, ()):
            self._refresh(link.key, {link.key})
        for link in self._links.pop(name, ()):
            self._links[link.key] = [other for other in self._links[link.key] if other.key != name]

    # -- names that were not looked at yet --------------------------------------------------------
    def _spread(self, key: Any, known: Container[Any] = ()) -> None:
        """The sum of `key` has changed: those of its other names, but for `known`, change when they are looked at."""
        for link in self._links[key]:
            if link.key not in known and (link.always or link.key in self.cts or link.key in self._late):
                self._late.setdefault(link.key, {})[key] = link.holds

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
        total = self.cts.get(key)
        if total is None:
            total = self._begin(key, frozenset((key, *late)))
        for source, holds in late.items():
            ct = self.cts[source]
            if total is None:  # it begins only where the condition holds
                begins = self._begins.get(source)
                self._begins[key] = holds if begins is None else _both(holds, begins)
            elif key in self._begins:
                self._begins[key] = _either(self._begins[key], holds)
            total = ops.where(holds(), ct, nothing(ct) if total is None else total)
        self.cts[key] = total
        self._spread(key, late)
