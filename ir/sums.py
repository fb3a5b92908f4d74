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


class _Late(NamedTuple):
    """An update of a sum that is due under a condition, and made when the sum is next read."""

    holds: Callable[[], Any]
    ct: Any


def _both(one: Callable[[], Any], other: Callable[[], Any]) -> Callable[[], Any]:
    return cache(lambda: ops.logical_and(one(), other()))


def _either(one: Callable[[], Any], other: Callable[[], Any]) -> Callable[[], Any]:
    return cache(lambda: ops.logical_or(one(), other()))


class Sums:
    """Sums by keys. All joins come before the first sum of what is joined grows.

    Args:
        cts: the sums so far, which are changed in place.
    """

    def __init__(self, cts: dict[Any, Any]) -> None:
        self.cts = cts
        self.begins: dict[Any, Callable[[], Any]] = {}  # what sums begin with, or None
        self._joins: dict[Any, dict[Any, Callable[[], Any]]] = {}  # for names, the values that they may be
        self._near: dict[Any, set[Any]] = {}  # keys that were joined directly
        self._values: dict[Any, dict[Any, Callable[[], Any]]] = {}  # for names, all values that they may be
        self._others: dict[Any, dict[Any, Callable[[], Any]]] = {}  # for keys, all that may be the same value
        self._gone: set[Any] = set()  # keys whose sums were taken out by `pop`
        self._begins: dict[Any, Callable[[], Any]] = {}  # for sums that only joins began, whether these hold
        self._late: dict[Any, dict[Any, _Late]] = {}  # by keys, then by what has grown since they were looked at

    def join(self, name: Any, value: Any, holds: Callable[[], Any]) -> None:
        """From now on `name` is another name of `value` where a condition holds.

        Args:
            name, value: keys; `value` gets a sum where `name` has one, `name` only when something adds to it.
            holds: gives a bool scalar.
        """
        if name != value:
            joins = self._joins.setdefault(name, {})
            joins[value] = _either(joins[value], holds) if value in joins else holds
            self._near.setdefault(name, set()).add(value)
            self._near.setdefault(value, set()).add(name)

    def links(self, keys: Sequence[Any]) -> list[Link]:
        """Which of `keys`, None for those that do not count, may be one value: first and second place, condition.

        They may be that by other names, too, which are not among them.
        """
        others = [self._same(key) if key in self._near else {} for key in (keys if self._near else ())]
        return [Link(j, i, other[keys[j]]) for i, other in enumerate(others) for j in range(i) if keys[j] in other]

    def _earlier(self, key: Any) -> dict[Any, Callable[[], Any]]:
        """For each value that `key` may be a name of, directly or through other names, the condition under which it
        is."""
        known = self._values.get(key)
        if known is None:
            known = self._values[key] = {}
            for near, holds in self._joins.get(key, {}).items():
                further = {value: _both(holds, told) for value, told in self._earlier(near).items()}
                for value, told in {near: holds, **further}.items():
                    known[value] = _either(known[value], told) if value in known else told
        return known

    def _same(self, key: Any) -> dict[Any, Callable[[], Any]]:
        """For each other key that may be the same value, the condition under which it is."""
        if key not in self._others:
            conditions: dict[Any, Callable[[], Any]] = {}
            mine = self._earlier(key)
            around, seen = [key], {key}
            while around:
                for other in self._near.get(around.pop(), ()):
                    if other not in seen:
                        seen.add(other)
                        around.append(other)
            for other in seen - {key}:
                theirs = self._earlier(other)
                ways = [mine[other]] if other in mine else [theirs[key]] if key in theirs else []
                ways += [_both(mine[value], theirs[value]) for value in mine if value in theirs]
                if ways:
                    conditions[other] = reduce(_either, ways)
            self._others[key] = conditions
        return self._others[key]

    def get(self, key: Any) -> Any:
        """The sum so far, or None."""
        if key in self._late:
            self._settle(key)
        return self.cts.get(key)

    def result(self, key: Any) -> Any:
        """The sum in the end, or None: zeros where nothing began it."""
        total = self.get(key)
        return ops.where(self._begins[key](), total, zeros_like(total)) if key in self._begins else total

    def pop(self, key: Any) -> Any:
        """Take out the sum of a key that is needed no more; None where there is none."""
        total = self.get(key)
        self.part(key)
        self.cts.pop(key, None)
        return total

    def begun(self, key: Any) -> Any:
        """The sum so far, or what it begins with, or None."""
        total = self.get(key)
        return self._begin(key) if total is None else total

    def _begin(self, key: Any, known: Container[Any] = ()) -> Any:
        """What a sum begins with, or None: what its other names have, but for those `known`."""
        total = self.begins[key]() if key in self.begins else None
        for other, holds in self._same(key).items() if key in self._near else ():
            if other in known or other in self._gone:
                continue
            ct = self.get(other)
            if ct is not None:
                total = ops.where(holds(), ct, nothing(ct) if total is None else total)
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
            if key in self._near:
                self._spread(key, cts)

    def part(self, name: Any) -> None:
        """`name` is a value of its own from here on."""
        if name in self._near:
            self._gone.add(name)

    # -- names that were not looked at yet --------------------------------------------------------
    def _spread(self, key: Any, known: Container[Any]) -> None:
        """The sum of `key` has changed: those of its other names, but for `known`, change when they are looked at."""
        mine = self._earlier(key)
        for other, holds in self._same(key).items():
            if other in known or other in self._gone or not (other in mine or other in self.cts or other in self._late):
                continue
            late = self._late.setdefault(other, {})
            for source in [source for source in late if source == key or not self._reaches(source, other, key)]:
                del late[source]
            late[key] = _Late(holds, self.cts[key])

    def _reaches(self, source: Any, key: Any, without: Any) -> bool:
        """Whether two may be the same value by joins that leave one out: else they are only where that is it, too."""
        around, seen = [source], {source, without}
        while around:
            near = self._near[around.pop()]
            if key in near:
                return True
            around += near - seen
            seen |= near
        return False

    def _settle(self, key: Any) -> None:
        late = self._late.pop(key)
        total = self.cts.get(key)
        if total is None:
            total = self._begin(key, late)
        for source, (holds, ct) in late.items():
            if total is None:  # it begins only where the condition holds
                begins = self._begins.get(source)
                self._begins[key] = holds if begins is None else _both(holds, begins)
            elif key in self._begins:
                self._begins[key] = _either(self._begins[key], holds)
            total = ops.where(holds(), ct, nothing(ct) if total is None else total)
        self.cts[key] = total
