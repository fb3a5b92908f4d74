"""Where the gradients of rounds read what a loop carries: each value in one place, whichever round reads it.

Rounds may hand a value on, under its name or another one. Gradients that will be differentiated read it where the
cotangents of all that is read join one sum, which the gradient of the loop goes on with:

    an operand      where the value comes from before the loop
    a result        where it is there after the loop
    a stack's item  elsewhere: that of the last round that begins with the value, of the first of the names that it has
                    there. With that round the sum begins when the rounds are gone through last to first.

Values have identities (`ir/loop_pullback.py: LoopPullback._named`), which tell in a round what place each is in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from . import dtypes as dt
from . import graph as g
from . import ops
from .build import Builder, one_of
from .dims import Dim, DimLike
from .graph import Graph, Value
from .linearise import STAYS, fits
from .spec import spec
from .types import AnyTensor, Operand, Spec

__all__ = ["Past", "Pasts", "ValuePlace", "Places", "ValueReader"]

_FIRST: Operand = np.array(0, np.int64)  # the place of the first round's item, which nobody reads on a stack


class Past(NamedTuple):
    """What a carried value was and is, as values of the body of the loop over the rounds.

    Attributes:
        stack: what it was before each round.
        last: the result.
        starts: where the items of the stack are, for each round; None where all have one size.
        size: how many elements an item has, where all have one size, with those before it.
        like: the value before a round.
    """

    stack: Value
    last: Value
    starts: Value | None
    size: DimLike
    like: Value

    def start(self, b: Builder, round_: Operand) -> AnyTensor:
        """Where the item of a round begins."""
        if self.starts is None:
            return ops.multiply(round_, self.size)
        return b.construct(g.POP, (self.starts, b.value(round_)), {"dims": ()}, (spec((), dt.int64),))[0]


class ValuePlace(NamedTuple):
    """Where a value is, as int64 scalars: the number of an operand, then those of results, then those of stacks, and
    which round's item; 0 for what is on no stack."""

    which: Operand
    round_: Operand


def _item_or(b: Builder, outer: Value, is_outer: AnyTensor, stack: Value, start: AnyTensor, like: Value,
            lead: int, result: Spec | None = None) -> Value:
    """An item of a stack, or where `is_outer` another value, which is that very value for gradients.

    Args:
        start: where the item begins; where it is not read, a place at which nothing is read.
        like: of the item's shape and dtype. lead: how many elements stand before it.
        result: the spec of what comes out, where its sizes may not be those of the item.
    """
    then, otherwise = Graph("known"), Graph("past")
    operands = (outer, stack, b.value(ops.add(start, lead)))
    for region in (then, otherwise):
        for v in operands:
            region.add_input(v.dims, v.dtype)
    then.outputs = [then.inputs[0]]
    attrs = {"dims": like.dims, "past": True, "told": lead}
    otherwise.outputs = otherwise.add(g.POP, otherwise.inputs[1:], attrs, (like,)).outputs
    return b.construct(g.COND, (b.value(is_outer), *operands), {"past": STAYS}, (result or like,),
                       [then, otherwise])[0]


class Places:
    """The places of the values that a loop carries.

    Args:
        carried: the numbers of what is carried and may be found in several places.
        operands: how many operands there are. count: how many values are carried.
        may_be: whether two of those that are carried may be one value, in whatever rounds.
    """

    def __init__(self, carried: Sequence[int], operands: int, count: int, may_be: Callable[[int, int], bool]) -> None:
        self.carried, self.operands, self.count, self.may_be = carried, operands, count, may_be

    def after_all(self, identities: Mapping[int, AnyTensor]) -> dict[int, ValuePlace]:
        """Where the results are."""
        places: dict[int, ValuePlace] = {}
        for i in self.carried:
            places[i] = self._placed(i, identities, ValuePlace(np.array(self.operands + i, np.int64), _FIRST), [
                (identities[h], places[h]) for h in places if self.may_be(i, h)])
        return places

    def before(self, round_: Operand, identities: Mapping[int, AnyTensor], later: Mapping[int, AnyTensor],
               after: Mapping[int, ValuePlace]) -> dict[int, ValuePlace]:
        """Where the values are that a round begins with.

        Args:
            identities: theirs. later: those of what is there after the round, which is in the places `after`.
        """
        places: dict[int, ValuePlace] = {}
        for i in self.carried:
            own = ValuePlace(np.array(self.operands + self.count + i, np.int64), round_)
            others = [(identities[h], places[h]) for h in places if self.may_be(i, h)]
            others += [(later[h], after[h]) for h in self.carried if self.may_be(i, h)]
            places[i] = self._placed(i, identities, own, others)
        return places

    def _placed(self, i: int, identities: Mapping[int, AnyTensor], own: ValuePlace,
                others: Sequence[tuple[AnyTensor, ValuePlace]]) -> ValuePlace:
        """The place of a value: an operand's, that of the one of `others` which it is, or its own."""
        identity, (which, round_) = identities[i], own
        for other, place in others:
            same = ops.equal(identity, other)
            which, round_ = ops.where(same, place.which, which), ops.where(same, place.round_, round_)
        outside = ops.less(identity, self.operands)
        return ValuePlace(ops.where(outside, identity, which), ops.where(outside, _FIRST, round_))


class Pasts(NamedTuple):
    """What the loop over the rounds knows of what the loop carried, as values of its body.

    Attributes:
        places: of those values that rounds may hand on.
        pasts: by their numbers, those that rules read, and all of `places`.
        first: by the numbers of operands, what these are.
        later: the identities and places of what there was after the round.
        total: the number of rounds; None where there are no pasts.
    """

    places: Places
    pasts: dict[int, Past]
    first: dict[int, Value]
    later: dict[int, tuple[Value, ValuePlace]]
    total: Value | None

    def before(self, round_: AnyTensor, identities: Mapping[int, Value]) -> dict[int, ValuePlace]:
        """The places of what a round begins with, which has the given identities."""
        return self.places.before(round_, identities, {i: identity for i, (identity, _) in self.later.items()},
                                  {i: place for i, (_, place) in self.later.items()})

    def read(self, b: Builder, like: Value, i: int, round_: Value, is_next: bool) -> Value:
        """The value that a carried one, which no round hands on, had before a round, or with `is_next` after it."""
        past, outer, place = self.pasts[i], self.first[i], round_
        is_outer: AnyTensor = ops.equal(round_, 0)
        if is_next:  # what the last round made is not on the stack: the place is one that is, wherever it is read
            assert self.total is not None  # there are pasts
            outer, after = past.last, ops.add(round_, 1)
            is_outer = ops.equal(after, self.total)
            place = b.value(ops.where(is_outer, _FIRST, after))
        return _item_or(b, outer, is_outer, past.stack, past.start(b, place), like, 1)


class ValueReader:
    """Reads values in a round, each once, under whatever names.

    Args:
        b: writes the round.
        places: those of the loop.
        pasts: what each of the values was and is.
        operands: by the numbers of operands, those that the values may be.
        fresh: gives names for sizes.
    """

    def __init__(self, b: Builder, places: Places, pasts: Mapping[int, Past], operands: Mapping[int, Value],
                 fresh: Callable[[], Dim]) -> None:
        self.b, self.places, self.pasts, self.operands, self.fresh = b, places, pasts, operands, fresh
        self.had: list[tuple[int, ValuePlace, Value]] = []  # what was read

    def read(self, i: int, place: ValuePlace, like: Value, first: Sequence[int]) -> Value:
        """The value that carried value `i` is, or was, from its place.

        Args:
            like: of its shape and dtype.
            first: the operands that it may be.
        """
        of, which = self.places, place.which
        ways = [(of.operands + j, past.last) for j, past in self.pasts.items() if of.may_be(i, j)]
        ways = [(n, v) for n, v in [*[(n, self.operands[n]) for n in first], *ways] if fits(v, like)]
        value = ways[0][1] if ways else self.pasts[i].last
        for n, other in ways[1:]:
            value = one_of(self.b, self.b.value(ops.equal(which, n)), other, value, self.loose(like))
        elsewhere: AnyTensor | None = None
        for j, there, other in self.had:
            if of.may_be(i, j) and fits(other, like):
                same = ops.logical_and(ops.equal(which, there.which), ops.equal(place.round_, there.round_))
                value = one_of(self.b, self.b.value(same), other, value, self.loose(like))
                elsewhere = same if elsewhere is None else ops.logical_or(elsewhere, same)
        stacks = [j for j, past in self.pasts.items() if j != i and of.may_be(i, j) and fits(past.like, like)]
        for j in [*stacks, i]:
            past = self.pasts[j]
            outer = ops.not_equal(which, of.operands + of.count + j)
            outer = outer if elsewhere is None else ops.logical_or(outer, elsewhere)
            start = past.start(self.b, ops.where(outer, _FIRST, place.round_))
            result = like if j == i else self.loose(like)
            value = _item_or(self.b, value, outer, past.stack, start, like, 1, result)
        self.had.append((i, place, value))
        return value

    def loose(self, like: Spec) -> Spec:
        """The spec of what is `like` or something of other sizes, which is not read then."""
        return spec(tuple([self.fresh() if isinstance(d, Dim) else d for d in like.dims]), like.dtype)
