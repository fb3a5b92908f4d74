"""What is known of a `while` before it is lowered: how counters run, and which carried values rounds write in place.

An array that a loop fills is a carried value of which every round replaces one item. A round may then write the item
into the array's own memory; and where the rounds' items make up the whole array, nothing of what it was before is ever
seen, so that it need not be there. How memory is named at run time is `slots.py`'s affair.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike

__all__ = ["Affine", "Loop", "analyse", "number", "root"]


class Affine(NamedTuple):
    """The integer `value * factor + more`, for a scalar value."""

    value: g.Value
    factor: DimLike
    more: DimLike


@dataclass(eq=False, slots=True)
class Loop:
    """A `while`, as its body sees it.

    Attributes:
        ranges: inputs of the body that count -> the least they are, and the first number that they do not reach.
        writers: number of a carried value that rounds write in place -> the node that writes the item.
        filled: those of them of which all items are written.
        fixed: inputs of the body that are the same in every round.
    """

    ranges: dict[g.Value, tuple[DimLike, DimLike]] = field(default_factory=dict)
    writers: dict[int, g.Node] = field(default_factory=dict)
    filled: set[int] = field(default_factory=set)
    fixed: set[g.Value] = field(default_factory=set)

    def place(self, index: g.Value) -> Affine:
        """A scalar integer in terms of a counter that cannot overflow, or of itself."""
        index = root(index)
        counted = self._from_the_end(index)
        found = _affine(index if counted is None else counted)
        return found if found.value in self.ranges else Affine(index, 1, 0)

    def _from_the_end(self, index: g.Value) -> g.Value | None:
        """The x of `where(x < 0, x + n, x)`, with which indices count from the end too, if it is never negative."""
        node = _op(index)
        test = _op(node.inputs[0]) if node is not None and node.op.name == "where" else None
        if test is None or test.op.name != "less" or test.inputs[0] is not node.inputs[2] or \
                not _is(number(test.inputs[1]), 0):
            return None
        x: g.Value = node.inputs[2]
        value, factor, more = _affine(x)
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


def analyse(node: g.Node) -> Loop:
    """What is known of a `while`."""
    test, body = node.regions
    count = node.attrs["carried"]
    loop = Loop(fixed=set(body.inputs[count:]))
    _find_ranges(node, loop)
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
        place = loop.place(item.place)
        if place.value in loop.ranges and place.factor in (item.step, -item.step):
            first, last = loop.ends(place) if place.factor == item.step else loop.ends(place)[::-1]
            if first == 0 and last + item.step == out.dims[0]:
                loop.filled.add(n)
    return loop


class Written(NamedTuple):
    """An item that a node writes: the scalar that names its place, how much that grows from an item to the next, and
    the number of the operand that is the item."""

    place: g.Value
    step: DimLike
    operand: int


def written(node: g.Node) -> Written | None:
    """What a node replaces in its first operand, where that is one item and all of it is replaced."""
    if node.op is g.PUSH:
        same = not node.attrs["add"] and node.inputs[0].dims == node.outputs[0].dims
        return Written(node.inputs[2], dm.numel(node.inputs[1].dims), 1) if same else None
    if not isinstance(node.op, g.Construct) and node.op.name == "tensor_scatter" and node.attrs["mode"] == "update":
        one = all(_is(d, 1) for d in node.inputs[1].dims)
        return Written(node.inputs[1], 1, 2) if one else None
    return None


def _is(size: Any, value: int) -> bool:
    return type(size) is int and size == value


# -- counting -----------------------------------------------------------------------------------------
_LESS = {"less": 0, "less_equal": 1}  # how many more rounds there are than the difference of the bounds
_GREATER = {"greater": 0, "greater_equal": 1}
_COUNTERS = (dt.int32, dt.int64)
_LARGE = 1 << 30  # numbers below it add up without overflow


def _find_ranges(node: g.Node, loop: Loop) -> None:
    """Notes how the carried counters of a loop run, where one of them ends it."""
    test, body = node.regions
    count = node.attrs["carried"]
    steps = {n: step for n in range(count) if (step := _step(body.inputs[n], body.outputs[n])) is not None}
    begins = {n: begin for n in steps if (begin := number(node.inputs[n])) is not None}
    condition = test.outputs[0].node
    if condition is None or isinstance(condition.op, g.Construct):
        return
    name = condition.op.name
    if name not in _LESS and name not in _GREATER:
        return
    left, right = condition.inputs
    n = next((n for n in begins if left is test.inputs[n]), None)
    bound = _outer(right, node, count)
    if n is None or bound is None or steps[n] != (1 if name in _LESS else -1):
        return
    rounds = bound - begins[n] + _LESS[name] if name in _LESS else begins[n] - bound + _GREATER[name]
    if not isinstance(rounds, Dim):
        rounds = max(rounds, 0)
    elif dm.decide_le(0, rounds) is not True:
        return
    for k, begin in begins.items():
        ahead = steps[k] == 1
        loop.ranges[body.inputs[k]] = (begin, begin + rounds) if ahead else (begin + 1 - rounds, begin + 1)


def _step(before: g.Value, after: g.Value) -> int | None:
    """1 or -1 where a carried integer grows by that in every round."""
    if before.dtype not in _COUNTERS or before.dims != ():
        return None
    found = _affine(after)
    if found.value is not before or not _is(found.factor, 1):
        return None
    return 1 if _is(found.more, 1) else -1 if _is(found.more, -1) else None


def _outer(value: g.Value, node: g.Node, count: int) -> DimLike | None:
    """The number that a value of the test is, where that can be told before the loop."""
    test = node.regions[0]
    if value.node is None and value.index >= count and test.inputs[value.index] is value:
        value = node.inputs[value.index]
    return number(value)


def root(value: g.Value) -> g.Value:
    """The value of which a tensor of one element is a mere view."""
    while (node := _op(value)) is not None and node.op.view is not None and all(_is(d, 1) for d in node.inputs[0].dims):
        value = node.inputs[0]
    return value


def _op(value: g.Value) -> Any:
    """The node of an op that makes a value."""
    node = value.node
    return None if node is None or isinstance(node.op, g.Construct) else node


def number(value: g.Value) -> DimLike | None:
    """The number that an integer scalar is known to be: a constant, a size, or a size less a constant."""
    value = root(value)
    array = g.constant_of(value)
    if array is not None:
        return int(array.reshape(-1)[0]) if array.size == 1 and value.dtype.is_integer else None
    if value.node is not None and value.node.op is g.SIZE:
        size: DimLike = value.node.attrs["size"]
        return size
    node = _op(value)
    if node is None or node.op.name not in ("add", "subtract"):
        return None
    left, right = map(number, node.inputs)
    if left is None or right is None:
        return None
    more = right if node.op.name == "add" else -right
    if isinstance(more, Dim):
        left, more = more, left
    whole = not isinstance(more, Dim) and -_LARGE < more <= (0 if isinstance(left, Dim) else _LARGE)
    return left + more if whole and (isinstance(left, Dim) or abs(left) < _LARGE) else None


def _affine(value: g.Value) -> Affine:
    """An integer scalar as a multiple of another, and a number more: as if nothing overflowed."""
    value = root(value)
    node = _op(value)
    if node is None or not value.dtype.is_integer:
        return Affine(value, 1, 0)
    if node.op.name == "cast" and node.inputs[0].dtype.is_integer and value.dtype.size >= node.inputs[0].dtype.size:
        return _affine(node.inputs[0])
    if node.op.name in ("add", "subtract", "multiply"):
        left, right = node.inputs
        if node.op.name != "subtract" and number(left) is not None:
            left, right = right, left
        more = number(right)
        if more is not None:
            x, factor, rest = _affine(left)
            if node.op.name == "multiply":
                return Affine(x, factor * more, rest * more)
            return Affine(x, factor, rest + more if node.op.name == "add" else rest - more)
        if node.op.name == "subtract" and (more := number(left)) is not None:
            x, factor, rest = _affine(right)
            return Affine(x, -factor, more - rest)
    return Affine(value, 1, 0)
