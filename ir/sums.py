"""Running sums of cotangents: one for each value, though a value may have several names.

A branch that gives one of its operands back gives, where it is taken, that very value: whatever is computed from either
name adds to one sum. Which it is becomes known when the graph runs, so that each of the names has a sum, and those that
are one value by a condition are kept equal where it holds.

    y = x if p else z        what y's sum grows by, x's grows by where p holds, and the other way round

A contribution that a branch or a round makes is there only where that runs. Where it is not, it is -0.0, which changes
no sum, and a sum of such alone is zeros in the end.

Tapes in traces (`eager/playing.py`) and gradients of graphs (`ir/autodiff.py`) both keep such sums. Keys are whatever
tells values apart there.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from functools import reduce
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from . import ops
from .grad import nothing, refitted, scalar, unbroadcast, where_there
from .types import AnyTensor, Results, Spec

__all__ = ["Exists", "Holds", "Link", "Start", "Sums", "anyone", "both", "continued", "either", "filled", "present",
           "shared", "taken"]

Holds: TypeAlias = Callable[[], Results]  # gives a bool scalar, as ops make one: whether a condition is true
Exists: TypeAlias = Holds | None  # gives a bool scalar: whether something is there; None where that is certain
K = TypeVar("K", bound=Hashable)  # what tells one value from another: a graph's `Value`, or a tape's number of it
T = TypeVar("T", bound=AnyTensor)  # cotangents
# A sum of cotangents so far, None where there is none, and whether it has begun
Start: TypeAlias = tuple[AnyTensor | None, Exists]


class Link(NamedTuple):
    """Two places that may hold one value, and the condition under which they do."""

    one: int
    other: int
    holds: Holds


class _Late(NamedTuple):
    """An update of a sum that is due under a condition, made when the sum is next read, and whether it is there."""

    holds: Holds
    ct: Any  # of the type of the sums
    exists: Exists


class _Condition:
    """What is computed of two conditions when it is first asked for, once.

    Sums that grow in many places have conditions of hundreds of others, one within another: they are computed one by
    one, each after its own two, and not by calls within calls.
    """

    __slots__ = ("op", "parts", "value")

    def __init__(self, op: Callable[[Any, Any], Results], one: Holds, other: Holds) -> None:
        self.op, self.parts, self.value = op, (one, other), None

    def __call__(self) -> Results:
        waiting: list[_Condition] = [self]
        while waiting:
            condition = waiting[-1]
            unknown = [c for c in condition.parts if isinstance(c, _Condition) and c.value is None]
            if condition.value is None and unknown:
                waiting.append(unknown[0])
                continue
            if condition.value is None:
                one, other = condition.parts
                condition.value = condition.op(one(), other())
            waiting.pop()
        return self.value


def _and(one: Holds, other: Holds) -> Holds:
    return _Condition(ops.logical_and, one, other)


def _or(one: Holds, other: Holds) -> Holds:
    return _Condition(ops.logical_or, one, other)


def both(one: Exists, other: Exists) -> Exists:
    """Whether two things are there."""
    return other if one is None else one if other is None else _and(one, other)


def either(one: Exists, other: Exists) -> Exists:
    """Whether one of two things is there."""
    return None if one is None or other is None else _or(one, other)


def anyone(every: Sequence[Exists]) -> Exists:
    """Whether one of several things is there."""
    return reduce(either, every)


def present(ct: AnyTensor, exists: Exists) -> AnyTensor:
    """A contribution as it is added: -0.0 where it is not there."""
    return ct if exists is None else where_there(exists(), ct)


def filled(ct: T, exists: Exists) -> T:
    """A cotangent for a rule that takes zeros for one that is not there."""
    return ct if exists is None else ops.select(exists(), ct, scalar(0, ct))


def shared(ends: Sequence[Start]) -> tuple[list[Start], Exists]:
    """The cotangents of the results of one node, each with what tells whether it is there if one of them is; and what
    tells whether one is.

    Args:
        ends: the results' sums, and whether they have begun; at least one is there.
    """
    begun = [exists for ct, exists in ends if ct is not None]
    alike = all(exists is begun[0] for exists in begun)
    return [(ct, None if alike else exists) for ct, exists in ends], anyone(begun)


def taken(ct: AnyTensor | None, value: Spec, holds: Holds, exists: Exists) -> tuple[AnyTensor, Exists]:
    """The contribution of a `select`'s cotangent to one of its two values, which is there only where that value was
    taken; and what tells whether it is there.

    Args:
        ct: the cotangent of the result, which there is, since it has but one.
        value: the value, or its spec.
        holds: gives a bool scalar: whether the value was taken.
        exists: what tells whether `ct` is there.
    """
    assert ct is not None
    there = both(exists, holds)
    return present(unbroadcast(ct, value), there), there


def continued(starts: Sequence[Start], emitted: Sequence[Start], exists: Exists,
              moves: bool) -> tuple[list[AnyTensor | None], list[Exists]]:
    """Sums that a construct has continued, and whether they have begun.

    Args:
        starts: what they were before; emitted: what they are if the construct has its part, and what tells whether
            it has added to them.
        exists: what tells whether the construct has a part.
        moves: whether it only moves cotangents, so that it makes nothing of nothing.
    """
    cts: list[AnyTensor | None] = []
    begun: list[Exists] = []
    for (start, was), (total, added) in zip(starts, emitted, strict=True):
        if total is not None and exists is not None and not moves:
            total = where_there(exists(), total) if start is None else ops.select(exists(), total, start)
        cts.append(total)
        added = both(exists, added)
        begun.append(added if start is None else either(was, added))
    return cts, begun


class Sums(Generic[K, T]):
    """Sums by keys. All joins come before the first sum of what is joined grows.

    Args:
        cts: the sums so far, which are changed in place.
        spec_of: gives the spec of a key's value. Names of one value may have sizes that differ as far as is known.
    """

    def __init__(self, cts: dict[K, T], spec_of: Callable[[K], Spec]) -> None:
        self.cts, self.spec_of = cts, spec_of
        self.begins: dict[K, Callable[[], tuple[T | None, Exists]]] = {}  # what sums begin with
        self._joins: dict[K, dict[K, Holds]] = {}  # for names, the values that they may be
        self._near: dict[K, dict[K, None]] = {}  # keys that were joined directly, in the order in which they were
        self._values: dict[K, dict[K, Holds]] = {}  # for names, all values that they may be
        self._others: dict[K, dict[K, Holds]] = {}  # for keys, all that may be the same value
        self._gone: set[K] = set()  # keys whose sums were taken out by `pop`
        self.exists: dict[K, Holds] = {}  # for sums that may not have begun, whether they have
        self._late: dict[K, dict[K, _Late]] = {}  # by keys, then by what has grown since they were looked at

    def join(self, name: K, value: K, holds: Holds) -> None:
        """From now on `name` is another name of `value` where a condition holds.

        Args:
            name, value: keys; `value` gets a sum where `name` has one, `name` only when something adds to it.
            holds: gives a bool scalar.
        """
        if name != value:
            joins = self._joins.setdefault(name, {})
            joins[value] = _or(joins[value], holds) if value in joins else holds
            self._near.setdefault(name, {})[value] = None
            self._near.setdefault(value, {})[name] = None

    def is_joined(self, name: K, value: K) -> bool:
        """Whether `name` was joined to `value` itself."""
        return value in self._joins.get(name, ())

    def links(self, keys: Sequence[K | None]) -> list[Link]:
        """Which of `keys`, None for those that do not count, may be one value: first and second place, condition.

        They may be that by other names, too, which are not among them.
        """
        others = [self.same(key) if key in self._near else {} for key in (keys if self._near else ())]
        return [Link(j, i, other[key]) for i, other in enumerate(others) for j in range(i)
                if (key := keys[j]) is not None and key in other]

    def _earlier(self, key: K) -> dict[K, Holds]:
        """For each value that `key` may be a name of, directly or through other names, the condition under which it
        is."""
        values = self._values.get(key)
        if values is None:
            values = self._values[key] = {}
            for near, holds in self._joins.get(key, {}).items():
                further = {value: _and(holds, condition) for value, condition in self._earlier(near).items()}
                for value, condition in {near: holds, **further}.items():
                    values[value] = _or(values[value], condition) if value in values else condition
        return values

    def same(self, key: K) -> dict[K, Holds]:
        """For each other key that may be the same value, the condition under which it is."""
        if key not in self._others:
            conditions: dict[K, Holds] = {}
            mine = self._earlier(key)
            around, seen = [key], {key: None}
            while around:
                for other in self._near.get(around.pop(), ()):
                    if other not in seen:
                        seen[other] = None
                        around.append(other)
            del seen[key]
            for other in seen:
                theirs = self._earlier(other)
                ways = [mine[other]] if other in mine else [theirs[key]] if key in theirs else []
                ways += [_and(mine[value], theirs[value]) for value in mine if value in theirs]
                if ways:
                    conditions[other] = reduce(_or, ways)
            self._others[key] = conditions
        return self._others[key]

    def get(self, key: K) -> T | None:
        """The sum so far, or None."""
        if key in self._late:
            self._settle(key)
        return self.cts.get(key)

    def result(self, key: K) -> T | None:
        """The sum in the end, or None: zeros where nothing began it."""
        total, exists = self.begun(key)
        return None if total is None else filled(total, exists)

    def pop(self, key: K) -> tuple[T | None, Exists]:
        """Take out the sum of a key that is needed no more, or None; and what tells whether it has begun."""
        total = self.get(key)
        self.part(key)
        self.cts.pop(key, None)
        return total, self.exists.pop(key, None)

    def begun(self, key: K) -> tuple[T | None, Exists]:
        """The sum so far, or what it begins with, or None; and what tells whether it has begun."""
        total = self.get(key)
        return self._begin(key) if total is None else (total, self.exists.get(key))

    def _begin(self, key: K, without: Container[K] = ()) -> tuple[T | None, Exists]:
        """The beginning of a sum: what its other names have, but for those `without`."""
        total, exists = self.begins[key]() if key in self.begins else (None, None)
        begun: list[Exists] = [] if total is None else [exists]
        for other, holds in self.same(key).items() if key in self._near else ():
            if other in without or other in self._gone:
                continue
            ct, exists = self.get(other), self.exists.get(other)
            if ct is None and other in self.begins:
                ct, exists = self.begins[other]()
                holds = holds if exists is None else _and(holds, exists)
            if ct is not None:
                ct = refitted(ct, self.spec_of(key))
                total = ops.select(holds(), ct, nothing(ct) if total is None else total)
                begun.append(both(holds, exists))
        return total, anyone(begun) if begun else None

    def add(self, key: K, ct: T, exists: Exists = None) -> None:
        """Another contribution, which is -0.0 where it is not there, as `exists` tells."""
        before, begun = self.begun(key)
        if before is not None:
            ct, exists = ops.add(before, ct), either(begun, exists)
        self.totals({key: ct}, {key: exists})

    def totals(self, cts: Mapping[K, T], exists: Mapping[K, Exists]) -> None:
        """From here on the sums are `cts`, in which names of one value have one sum, and begun as `exists` tells."""
        for key, ct in cts.items():
            self._late.pop(key, None)
            self.exists.pop(key, None)
            if (begun := exists.get(key)) is not None:
                self.exists[key] = begun
            self.cts[key] = ct
        for key in cts:
            if key in self._near:
                self._spread(key, cts)

    def part(self, name: K) -> None:
        """`name` is a value of its own from here on."""
        if name in self._near:
            self._gone.add(name)

    # -- names that were not looked at yet --------------------------------------------------------
    def _spread(self, key: K, without: Container[K]) -> None:
        """The sum of `key` has changed: those of its other names, but for `without`, change when they are looked at."""
        mine = self._earlier(key)
        for other, holds in self.same(key).items():
            if other in without or other in self._gone or not (
                    other in mine or other in self.cts or other in self._late):
                continue
            late = self._late.setdefault(other, {})
            for source in [source for source in late if source == key or not self._reaches(source, other, key)]:
                del late[source]
            late[key] = _Late(holds, self.cts[key], self.exists.get(key))

    def _reaches(self, source: K, key: K, without: K) -> bool:
        """Whether two may be the same value by joins that leave one out: else they are only where that is it, too."""
        around, seen = [source], {source, without}
        while around:
            near = self._near[around.pop()]
            if key in near:
                return True
            around += near.keys() - seen
            seen |= near.keys()
        return False

    def _settle(self, key: K) -> None:
        late = self._late.pop(key)
        total, begun = self.cts.get(key), self.exists.pop(key, None)
        if total is None:
            total, begun = self._begin(key, late)
        for holds, ct, exists in late.values():
            here = both(holds, exists)
            begun = here if total is None else either(begun, here)
            ct = refitted(ct, self.spec_of(key))
            total = ops.select(holds(), ct, nothing(ct) if total is None else total)
        assert total is not None  # something is late, else nothing would be settled
        self.cts[key] = total
        if begun is not None:
            self.exists[key] = begun
