"""Counters of loops: how many rounds a `while` has, between which numbers a carried integer runs, what an index is.

What constants and sizes tell is known: counters that grow by 1 or -1, where the test compares one of them with a
number, or several, each with a number of its own, and the loop goes on while all comparisons hold. All else is unknown:
None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from . import dims as dm
from . import dtypes as dt
from . import graph as g
from .dims import Dim, DimLike
from .op import Op

__all__ = ["Affine", "Counting", "Numbers", "affine", "counting", "node_of", "number", "numbers_of", "root",
           "surely_runs"]

_LESS = {"less": 0, "less_equal": 1}  # how many more rounds there are than the difference of the bounds
_GREATER = {"greater": 0, "greater_equal": 1}
_COUNTERS = (dt.int32, dt.int64)
_LARGE = 1 << 30  # numbers below it add up without overflow

Numbers = Mapping[g.Value, DimLike]  # inputs of a region that are known to be these numbers
_NONE: Numbers = {}


class Affine(NamedTuple):
    """The integer `value * factor + more`, for a scalar value."""

    value: g.Value
    factor: DimLike
    more: DimLike


class Counting(NamedTuple):
    """How a loop counts: its number of rounds; for the positions of carried integers that count, the least value that
    the body sees and the first that it does not reach; and their values after the loop."""

    rounds: DimLike
    ranges: dict[int, tuple[DimLike, DimLike]]
    after: dict[int, DimLike]

    def ascends(self, counter: int) -> bool:
        """Whether the counter at a position grows from round to round; else it falls."""
        return self.after[counter] == self.ranges[counter][1]


def counting(node: g.Node) -> Counting | None:
    """How the carried counters of a `while` run, where one of them ends it.

    >>> from .graph_text import parse
    >>> graph = parse('''graph f(%0: i32[]) {
    ...   %1 = constant 2 : i32[]
    ...   %2 = while(%1) {carried: 1, trips: none} : i32[] {
    ...     graph test(%0: i32[]) { %1 = constant 5 : i32[] %2 = less(%0, %1) : i1[] return %2 }
    ...     graph body(%0: i32[]) { %1 = constant 1 : i32[] %2 = add(%0, %1) : i32[] return %2 } }
    ...   return %2 }''')
    >>> counting(graph.nodes[1])
    Counting(rounds=3, ranges={0: (2, 5)}, after={0: 5})
    """
    test, body = node.regions
    known, steps = numbers_of(node), _steps(node)
    begins = {n: begin for n in steps if (begin := number(node.inputs[n])) is not None}
    limits = [_limit(condition, test, begins, steps, known) for condition in _conditions(test.outputs[0])]
    rounds = _least([None if limit is None else limit.rounds for limit in limits])
    if rounds is None:
        return None
    size = min(body.inputs[limit.counter].dtype.size for limit in limits if limit is not None)
    counters = {k: begin for k, begin in begins.items() if _fits(body.inputs[k].dtype, begin, steps[k], rounds, size)}
    return Counting(rounds, {k: (begin, begin + rounds) if steps[k] == 1 else (begin + 1 - rounds, begin + 1)
                             for k, begin in counters.items()},
                    {k: begin + steps[k] * rounds for k, begin in counters.items()})


def _steps(node: g.Node) -> dict[int, int]:
    """The position of each carried counter of a `while`, and what a round adds to it: 1 or -1."""
    body, known = node.regions[1], numbers_of(node)
    return {n: step for n in range(node.attrs["carried"])
            if (step := _step(body.inputs[n], body.outputs[n], known)) is not None}


def _conditions(value: g.Value) -> list[g.Value]:
    """The parts of a conjunction; of any other condition itself."""
    node = node_of(value)
    if node is None or node.op.name != "logical_and":
        return [value]
    return [condition for v in node.inputs for condition in _conditions(v)]


class _Limit(NamedTuple):
    """After how many rounds a condition ends a loop, and the position of the counter that it compares."""

    rounds: DimLike
    counter: int


def _limit(condition: g.Value, test: g.Graph, begins: dict[int, DimLike], steps: dict[int, int],
           known: Numbers) -> _Limit | None:
    """When a condition ends a loop; None where that is not known."""
    node = node_of(condition)
    if node is None or node.op.name not in (*_LESS, *_GREATER):
        return None
    name, (left, right) = node.op.name, node.inputs
    n = next((n for n in begins if left is test.inputs[n]), None)
    bound = number(right, known)
    if n is None or bound is None or steps[n] != (1 if name in _LESS else -1):
        return None
    rounds = bound - begins[n] + _LESS[name] if name in _LESS else begins[n] - bound + _GREATER[name]
    if not isinstance(rounds, Dim):
        return _Limit(max(rounds, 0), n)
    return _Limit(rounds, n) if dm.decide_le(0, rounds) is True else None


def _least(sizes: list[DimLike | None]) -> DimLike | None:
    """The least of some sizes; None where a size, or which of them is the least, is unknown."""
    least, *rest = sizes
    for size in rest:
        if least is None or size is None:
            return None
        if dm.decide_le(least, size) is not True:
            if dm.decide_le(size, least) is not True:
                return None
            least = size
    return least


def numbers_of(node: g.Node) -> dict[g.Value, DimLike]:
    """The inputs of the regions of a `while` that it takes from outside and that are known numbers."""
    known: dict[g.Value, DimLike] = {}
    for k in range(node.attrs["carried"], len(node.inputs)):
        value = node.inputs[k]
        if value.dtype in _COUNTERS and (size := number(value)) is not None:
            known.update((region.inputs[k], size) for region in node.regions)
    return known


def surely_runs(node: g.Node) -> bool:
    """Whether a `while` is known to have a round: by its test before the first."""
    counted = counting(node)
    if counted is not None and type(counted.rounds) is int:
        return counted.rounds > 0
    return all(_holds_first(condition, node) for condition in _conditions(node.regions[0].outputs[0]))


def _holds_first(condition: g.Value, node: g.Node) -> bool:
    """Whether a condition of the test of a `while` is known to hold before the first round."""
    comparison, test = node_of(condition), node.regions[0]
    if comparison is None or comparison.op.name not in (*_LESS, *_GREATER):
        return False
    left, right = [number(node.inputs[v.index] if v.node is None and v in test.inputs else v)
                   for v in comparison.inputs]
    if type(left) is not int or type(right) is not int:
        return False
    apart = right - left if comparison.op.name in _LESS else left - right
    return apart + {**_LESS, **_GREATER}[comparison.op.name] > 0


def _fits(dtype: dt.DType, begin: DimLike, step: int, rounds: DimLike, size: int) -> bool:
    """Whether a carried integer does not overflow before the test's counter, an integer of `size` bytes, would."""
    end = begin + step * rounds
    if isinstance(end, Dim) or isinstance(begin, Dim):
        return dtype.size >= size
    return -(1 << (8 * dtype.size - 1)) <= end < 1 << (8 * dtype.size - 1)


def _step(before: g.Value, after: g.Value, known: Numbers) -> int | None:
    """1 or -1 where a carried integer grows by that in every round."""
    if before.dtype not in _COUNTERS or before.dims != ():
        return None
    form = affine(after, known)
    if form.value is not before or not dm.is_exactly(form.factor, 1):
        return None
    return 1 if dm.is_exactly(form.more, 1) else -1 if dm.is_exactly(form.more, -1) else None


def root(value: g.Value) -> g.Value:
    """The value that a tensor of one element is a view of, through all views."""
    while (node := node_of(value)) is not None and isinstance(node.op, Op) and node.op.view is not None:
        if not all(dm.is_exactly(d, 1) for d in node.inputs[0].dims):
            return value
        value = node.inputs[0]
    return value


def node_of(value: g.Value) -> g.Node | None:
    """The node that makes a value, where that is of an op."""
    node = value.node
    return None if node is None or isinstance(node.op, g.Construct) else node


def number(value: g.Value, known: Numbers = _NONE) -> DimLike | None:
    """The number that an integer scalar is known to be: a constant, a size, a size less a constant, a counter after its
    loop, or what is known of an input; also cast to a wider dtype, or as the maximum of it alone."""
    value = _unwrapped(root(value))
    if value in known:
        return known[value]
    array = g.constant_of(value)
    if array is not None:
        return int(array.reshape(-1)[0]) if array.size == 1 and value.dtype.is_integer else None
    if value.node is not None and value.node.op is g.SIZE:
        size: DimLike = value.node.attrs["size"]
        return size
    if value.node is not None and value.node.op is g.WHILE and value.dtype in _COUNTERS:
        counted = counting(value.node)
        return None if counted is None else counted.after.get(value.index)
    node = node_of(value)
    if node is not None and node.op.name in ("shape", "strided_slice"):
        return _element_of_shape(node)
    if node is None or node.op.name not in ("add", "subtract"):
        return None
    left, right = [number(v, known) for v in node.inputs]
    if left is None or right is None:
        return None
    more = right if node.op.name == "add" else -right
    if isinstance(more, Dim):
        left, more = more, left
    whole = not isinstance(more, Dim) and -_LARGE < more <= (0 if isinstance(left, Dim) else _LARGE)
    return left + more if whole and (isinstance(left, Dim) or abs(left) < _LARGE) else None


def _unwrapped(value: g.Value) -> g.Value:
    """The integer from which a value comes by casts to wider dtypes, and by the minimum or maximum of one element."""
    while (node := node_of(value)) is not None:
        before = node.inputs[0] if node.inputs else value
        widened = node.op.name == "cast" and dt.holds_integers(value.dtype, before.dtype)
        of_one = node.op.name in ("reduce_max", "reduce_min") and all(dm.is_exactly(d, 1) for d in before.dims)
        if not widened and not of_one:
            return value
        value = root(before)
    return value


def _element_of_shape(node: g.Node) -> DimLike | None:
    """The size that `tf.shape(x)[axis]` is, or the one element of `tf.shape(x)`."""
    spec = node.attrs["spec"] if node.op.name == "strided_slice" else (0,)
    shape = node_of(node.inputs[0]) if node.op.name == "strided_slice" else node
    if shape is None or shape.op.name != "shape" or len(spec) != 1 or type(spec[0]) is not int:
        return None
    dims = shape.inputs[0].dims
    whole = node is shape and len(dims) != 1
    return dims[spec[0]] if not whole and -len(dims) <= spec[0] < len(dims) else None


def affine(value: g.Value, known: Numbers = _NONE) -> Affine:
    """An integer scalar as a multiple of another, and a number more: as if nothing overflowed."""
    value = root(value)
    node = node_of(value)
    if node is None or not value.dtype.is_integer:
        return Affine(value, 1, 0)
    if node.op.name == "cast" and node.inputs[0].dtype.is_integer and value.dtype.size >= node.inputs[0].dtype.size:
        return affine(node.inputs[0], known)
    if node.op.name in ("add", "subtract", "multiply"):
        left, right = node.inputs
        if node.op.name != "subtract" and number(left, known) is not None:
            left, right = right, left
        more = number(right, known)
        if more is not None:
            x, factor, rest = affine(left, known)
            if node.op.name == "multiply":
                return Affine(x, factor * more, rest * more)
            return Affine(x, factor, rest + more if node.op.name == "add" else rest - more)
        if node.op.name == "subtract" and (more := number(left, known)) is not None:
            x, factor, rest = affine(right, known)
            return Affine(x, -factor, more - rest)
    return Affine(value, 1, 0)
