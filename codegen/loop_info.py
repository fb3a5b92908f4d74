"""Facts about a `while` before it is lowered: how counters run, and which carried values rounds write in place.

An array that a loop fills is a carried value of which every round replaces one item. A round may then write the item
into the array's own memory; and where the rounds' items make up the whole array, nothing of what it was before is ever
seen, so that it need not be there. How memory is named at run time is `slots.py`'s affair.
"""

from __future__ import annotations

from typing import NamedTuple

from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.counting import Affine, Numbers, affine, counting, node_of, number, numbers_of, root
from twofold.ir.data_class import data_class, field
from twofold.ir.dims import DimLike

__all__ = ["Affine", "LoopInfo", "Stretch", "Written", "analyse", "root", "written"]


class Stretch(NamedTuple):
    """Places along the first axis of an array, of which each round of a loop writes the next, or the one before."""

    begin: DimLike
    end: DimLike
    ascends: bool


@data_class(eq=False)
class LoopInfo:
    """A `while`, as its body sees it.

    Attributes:
        ranges: inputs of the body that count -> the least they are, and the first number that they do not reach.
        writers: number of a carried value that rounds write in place -> the node that writes the item.
        stretches: number of such a value -> the places that the rounds write, all of which are known to be there, where
            they are neighbours.
        filled: those of them of which all items are written.
        fixed: inputs of the body that are the same in every round.
        known: those of them that are known numbers.
    """

    ranges: dict[g.Value, tuple[DimLike, DimLike]] = field(default_factory=dict)
    writers: dict[int, g.Node] = field(default_factory=dict)
    stretches: dict[int, Stretch] = field(default_factory=dict)
    filled: set[int] = field(default_factory=set)
    fixed: set[g.Value] = field(default_factory=set)
    known: Numbers = field(default_factory=dict)

    def place(self, index: g.Value) -> Affine:
        """A scalar integer in terms of a counter that cannot overflow, or of itself."""
        index = root(index)
        counted = self._from_the_end(index)
        place = affine(index if counted is None else counted, self.known)
        return place if place.value in self.ranges else Affine(index, 1, 0)

    def _from_the_end(self, index: g.Value) -> g.Value | None:
        """The x of `where(x < 0, x + n, x)`, with which indices count from the end too, if it is never negative."""
        node = node_of(index)
        if node is None or node.op.name != "where":
            return None
        test = node_of(node.inputs[0])
        if test is None or test.op.name != "less" or test.inputs[0] is not node.inputs[2] or \
                number(test.inputs[1], self.known) != 0:
            return None
        x = node.inputs[2]
        value, factor, more = affine(x, self.known)
        low, _ = self.ranges.get(value, (-1, 0))
        up = dm.decide_le(0, factor) is True and dm.decide_le(0, low * factor + more) is True
        return x if up else None

    def within(self, place: Affine, last: DimLike) -> bool:
        """Whether a place is known to be between 0 and `last`."""
        if place.value not in self.ranges:
            return False
        first, end = self.ends(place)
        if dm.decide_le(0, place.factor) is not True:
            if dm.decide_le(place.factor, 0) is not True:
                return False
            first, end = end, first
        return dm.decide_le(0, first) is True and dm.decide_le(end, last) is True

    def ends(self, place: Affine) -> tuple[DimLike, DimLike]:
        """The places of the least and the greatest number of a counter."""
        low, end = self.ranges[place.value]
        return low * place.factor + place.more, (end - 1) * place.factor + place.more


def analyse(node: g.Node) -> LoopInfo:
    """The `LoopInfo` of a `while`."""
    test, body = node.regions
    count = node.attrs["carried"]
    loop = LoopInfo(fixed=set(body.inputs[count:]), known=numbers_of(node))
    counted = counting(node)
    if counted is not None:
        loop.ranges = {body.inputs[n]: bounds for n, bounds in counted.ranges.items()}
    uses = body.uses()
    for n in range(count):
        out = body.outputs[n]
        writer = out.node
        if writer is None or uses.get(body.inputs[n]) != [writer] or uses[out] != [None]:
            continue
        item = written(writer)
        if item is None or writer.inputs[0] is not body.inputs[n] or out.dims != body.inputs[n].dims:
            continue
        loop.writers[n] = writer
        place, size = loop.place(item.place), out.dims[0]
        if counted is None or place.factor not in (item.step, -item.step) or not loop.within(place, size - item.step):
            continue
        first, last = loop.ends(place) if place.factor == item.step else loop.ends(place)[::-1]
        ascends = counted.ascends(place.value.index) == (place.factor == item.step)
        loop.stretches[n] = stretch = Stretch(first, last + item.step, ascends)
        if (stretch.begin, stretch.end) == (0, size):
            loop.filled.add(n)
    return loop


class Written(NamedTuple):
    """An item that a node writes: the scalar that names its place, how much that grows from an item to the next, and
    the number of the operand that is the item."""

    place: g.Value
    step: DimLike
    operand: int


def written(node: g.Node) -> Written | None:
    """The item that a node replaces in its first operand, where that is one item and all of it is replaced."""
    if node.op is g.PUSH:
        same = not node.attrs["add"] and node.inputs[0].dims == node.outputs[0].dims
        return Written(node.inputs[2], dm.numel(node.inputs[1].dims), 1) if same else None
    if not isinstance(node.op, g.Construct) and node.op.name == "tensor_scatter" and node.attrs["mode"] == "update":
        one = all(dm.is_exactly(d, 1) for d in node.inputs[1].dims)
        return Written(node.inputs[1], 1, 2) if one else None
    return None
