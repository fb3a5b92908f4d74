"""Whether a graph treats the rows of its inputs apart, so that requests can be joined along axis 0.

In: a graph and how many of its inputs are arguments. Out: yes, or no where that is not certain. A value is *apart* if
one of its sizes is the number of rows, no other speaks of that number, and what lies at a place along that axis, its
rows' axis, is made of that row of the arguments; it is *free* if it depends on no argument; all else is *mixed*. The
result is yes if all outputs are apart, along their first axes.

Loops are gone through until the classes of what they carry stay as they are: a loop that runs as often as a free value
says, such as a recurrence over the steps of sequences, keeps rows apart if its body does; a branch, if its condition is
free. Random numbers, and ops that this module does not know, give mixed values; effects make the answer no.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir import passes, symbols
from twofold.ir.dims import Dim
from twofold.ir.graph import Graph, Node, Value
from twofold.ir.op import Op

__all__ = ["rows_apart"]

_FREE, _MIXED = -1, -2  # classes of values, beside the axis of the rows of one that is apart


class _Effect(Exception):
    """A node does more than give a value, or nothing is known of it."""


def rows_apart(graph: Graph, arguments: int) -> bool:
    """Whether each row of each output is made of that row of the first `arguments` inputs alone."""
    first = [_symbol(value.dims[0]) if value.dims else None for value in graph.inputs[:arguments]]
    if not first or None in first:
        return False
    graph = passes.optimise(graph.copy())  # where sizes are sizes, not elements of shapes
    rows = _Rows({name for name in first if name is not None})
    inputs = [rows.axis_of(value) if n < arguments else _FREE for n, value in enumerate(graph.inputs)]
    try:
        outputs = rows.through(graph, inputs)
    except _Effect:
        return False
    return bool(outputs) and all(kind == 0 for kind in outputs)


def _symbol(size: Any) -> str | None:
    return size.name_alone() if isinstance(size, Dim) else None


class _Rows:
    """The classes of values, where `symbols` are the number of rows."""

    def __init__(self, symbols: set[str]) -> None:
        self.symbols = symbols
        self.classes: dict[Value, int] = {}

    def through(self, graph: Graph, inputs: Sequence[int]) -> list[int]:
        """The classes of the outputs of a graph for those of its inputs."""
        self.classes.update(zip(graph.inputs, inputs, strict=True))
        for node in graph.nodes:
            self.classes.update(zip(node.outputs, self._classes_of(node), strict=True))
        return [self.classes[value] for value in graph.outputs]

    def axis_of(self, value: Value) -> int:
        """The one axis whose size is the number of rows; mixed where there is none, or other sizes speak of it."""
        axes = [axis for axis, size in enumerate(value.dims) if _symbol(size) in self.symbols]
        others = [size for axis, size in enumerate(value.dims) if axis not in axes]
        return axes[0] if len(axes) == 1 and not dm.symbols_of(others) & self.symbols else _MIXED

    def is_apart(self, value: Value) -> bool:
        """Whether it is known to be apart."""
        return self.classes[value] >= 0

    def is_free(self, value: Value) -> bool:
        """Whether it depends on no argument."""
        return self.classes[value] == _FREE

    def speaks_of_rows(self, node: Node) -> bool:
        """Whether an attribute depends on the number of rows."""
        return not self.symbols.isdisjoint(symbols.names_in(node.attrs.values()))

    def repeats(self, value: Value, out: Value) -> bool:
        """Whether a value that is broadcast to one in rows is the same for all of them."""
        place = len(value.dims) - (len(out.dims) - self.axis_of(out))
        return place < 0 or value.dims[place] == 1

    def lines_up(self, value: Value, out: Value) -> bool:
        """Whether the rows of a value that is broadcast are those of what it is broadcast to."""
        return len(value.dims) - self.classes[value] == len(out.dims) - self.axis_of(out)

    # -- nodes ------------------------------------------------------------------------------------
    def _classes_of(self, node: Node) -> list[int]:
        if "effect" in getattr(node.op, "traits", ()) or getattr(node.op, "effect", None):
            raise _Effect
        if isinstance(node.op, Op):
            return [self._class_of(node, value) for value in node.outputs]
        if node.op is g.WHILE:
            return self._loop(node)
        if node.op is g.COND:
            return self._branch(node)
        if node.op is g.CUSTOM:
            return [self.classes[value] for value in node.inputs[:len(node.outputs)]]
        if node.op in (g.CONSTANT, g.SIZE):
            return [_MIXED if self.speaks_of_rows(node) else _FREE]
        if node.op is g.BIND and self.is_free(node.inputs[0]):
            return []
        raise _Effect

    def _class_of(self, node: Node, out: Value) -> int:
        op, axis = node.op, self.axis_of(out)
        assert isinstance(op, Op)
        kinds = {self.classes[value] for value in node.inputs}
        if _MIXED in kinds:
            return _MIXED
        if kinds - {_FREE}:
            return axis if all(self.axis_of(v) >= 0 for v in node.outputs) and self._keeps(op, node) else _MIXED
        if not any(dm.symbols_of(value.dims) & self.symbols for value in node.outputs):
            return _FREE if "random" not in op.traits and not self.speaks_of_rows(node) else _MIXED
        copies = op.name in ("fill", "broadcast_to") and axis >= 0
        return axis if copies and all(self.repeats(value, out) for value in node.inputs) else _MIXED

    def _keeps(self, op: Op, node: Node) -> bool:
        """Whether an op whose results are in rows makes each of that row of its operands."""
        if "elementwise" in op.traits:
            return _broadcast(self, node)
        rule = _RULES.get(op.name)
        return "reduction" in op.traits or (rule is not None and rule(self, node))

    # -- control flow -----------------------------------------------------------------------------
    def _loop(self, node: Node) -> list[int]:
        test, body = node.regions
        count = node.attrs["carried"]
        kinds = [self.classes[value] for value in node.inputs]
        while True:
            after = self.through(body, kinds)
            joined = [*map(_joined, kinds, after), *kinds[count:]]
            if joined == kinds:
                break
            kinds = joined
        return kinds[:count] if self.through(test, kinds) == [_FREE] else [_MIXED] * count

    def _branch(self, node: Node) -> list[int]:
        inputs = [self.classes[value] for value in node.inputs[1:]]
        sides = [self.through(region, inputs) for region in node.regions]
        free = self.is_free(node.inputs[0])
        return [_joined(*kinds) if free else _MIXED for kinds in zip(*sides, strict=True)]


def _joined(one: int, other: int) -> int:
    """The class of a value that is of one or of another."""
    return one if one == other else _MIXED


# -- rules: the results of a node are in rows ----------------------------------------------------------
def _broadcast(rows: _Rows, node: Node) -> bool:
    """Elements meet those of their rows, or what is the same for all rows."""
    out = node.outputs[0]
    return all(rows.lines_up(value, out) if rows.is_apart(value) else rows.repeats(value, out) for value in node.inputs)


def _always(rows: _Rows, node: Node) -> bool:
    """Sizes tell: where rows were mixed, no size would be their number."""
    return True


def _same_before(rows: _Rows, node: Node) -> bool:
    """As many elements are before a row as there were, so that rows stay together."""
    [value], [out] = node.inputs, node.outputs
    before, after = value.dims[:rows.classes[value]], out.dims[:rows.axis_of(out)]
    return dm.decide_eq(dm.numel(before), dm.numel(after)) is True


def _stacked(rows: _Rows, node: Node) -> bool:
    """Rows are the first axis, and what they meet is the same for all of them."""
    return rows.classes[node.inputs[0]] == 0 and all(map(rows.is_free, node.inputs[1:]))


def _padded(rows: _Rows, node: Node) -> bool:
    return rows.is_apart(node.inputs[0]) and all(map(rows.is_free, node.inputs[1:]))


def _joins(rows: _Rows, node: Node) -> bool:
    kinds = {rows.classes[value] for value in node.inputs}
    return len(kinds) == 1 and min(kinds) >= 0 and _other_axis(rows, node)


def _other_axis(rows: _Rows, node: Node) -> bool:
    """It goes along another axis than that of the rows."""
    axis = node.attrs.get("axis", node.op.defaults.get("axis") if isinstance(node.op, Op) else None)
    value = node.inputs[0]
    return isinstance(axis, int) and axis % len(value.dims) != rows.classes[value]


def _last_axis(rows: _Rows, node: Node) -> bool:
    return rows.classes[node.inputs[0]] != len(node.inputs[0].dims) - 1


def _not_reversed(rows: _Rows, node: Node) -> bool:
    axes = node.attrs.get("axis", ())
    value = node.inputs[0]
    return all(a % len(value.dims) != rows.classes[value] for a in ([axes] if isinstance(axes, int) else axes))


def _sliced_elsewhere(rows: _Rows, node: Node) -> bool:
    """A slice that takes the axis of the rows as it is, at places that do not depend on their number."""
    spec = node.attrs["spec"]
    if Ellipsis in spec or rows.speaks_of_rows(node):
        return len(spec) == 1 and spec[0] is Ellipsis
    taken = [entry for entry in spec if entry is not None]  # None is a new axis
    axis = rows.classes[node.inputs[0]]
    if axis >= len(taken):
        return True
    return isinstance(taken[axis], (tuple, list)) and all(part is None for part in taken[axis])


def _product(rows: _Rows, node: Node) -> bool:
    """Rows on the left, or stacks of matrices, of which a row is one."""
    left, right = node.inputs
    if rows.is_apart(left) and not rows.is_apart(right):
        return True
    out = node.outputs[0]
    stacks = [rows.lines_up(value, out) and rows.classes[value] < len(value.dims) - 2 if rows.is_apart(value)
              else rows.repeats(value, out) for value in node.inputs]
    return all(stacks)


def _gather(rows: _Rows, node: Node) -> bool:
    """Rows of a table for the indices of a row, or elements within a row at the same places for all."""
    table, indices = node.inputs
    if node.attrs.get("batch_dims", 0):
        return False
    if not rows.is_apart(table):
        return node.attrs.get("axis", 0) == 0
    return rows.is_free(indices) and _other_axis(rows, node)


def _scattered(rows: _Rows, node: Node) -> bool:
    """Updates at the same places for all rows, along other axes."""
    base, indices, updates = node.inputs
    depth = indices.dims[-1]
    return rows.is_free(indices) and isinstance(depth, int) and rows.classes[base] >= depth and rows.is_apart(updates)


_RULES: dict[str, Callable[[_Rows, Node], bool]] = {
    **dict.fromkeys(("expand_dims", "squeeze", "transpose", "identity", "stop_gradient", "bitcast"), _always),
    **dict.fromkeys(("conv", "avg_pool", "max_pool"), _stacked),
    **dict.fromkeys(("softmax", "log_softmax", "cumsum", "cumprod", "cumulative_logsumexp"), _other_axis),
    **dict.fromkeys(("sort", "argsort", "top_k"), _last_axis),
    "reshape": _same_before, "broadcast_to": _broadcast, "pad": _padded, "concat": _joins, "reverse": _not_reversed,
    "strided_slice": _sliced_elsewhere, "matmul": _product, "gather": _gather, "tensor_scatter": _scattered,
}
