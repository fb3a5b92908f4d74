"""Whether a graph treats the rows of its inputs apart, so that requests can be joined along axis 0.

In: a graph and how many of its inputs are arguments. Out: yes, or no where that is not certain. A value is *apart* if
its first size is the number of rows, no other size speaks of that number, and each of its rows is made of that row of
the arguments; it is *free* if it depends on no argument; all else is *mixed*. The result is yes if all outputs are
apart. Loops, branches, random numbers and ops that this module does not know give mixed values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold.ir import dims as dm
from twofold.ir.dims import Dim
from twofold.ir.graph import Graph, Node, Value
from twofold.ir.op import Op

__all__ = ["rows_apart"]

_FREE, _APART, _MIXED = range(3)


def rows_apart(graph: Graph, arguments: int) -> bool:
    """Whether each row of each output is made of that row of the first `arguments` inputs alone."""
    first = [_first_symbol(value.dims) for value in graph.inputs[:arguments]]
    if not first or None in first:
        return False
    return _Rows({name for name in first if name is not None}).all_apart(graph, arguments)


def _first_symbol(dims: tuple[Any, ...]) -> str | None:
    return dims[0].name_alone() if dims and isinstance(dims[0], Dim) else None


class _Rows:
    def __init__(self, symbols: set[str]) -> None:
        self.symbols = symbols
        self.classes: dict[Value, int] = {}

    def all_apart(self, graph: Graph, arguments: int) -> bool:
        for number, value in enumerate(graph.inputs):
            self.classes[value] = _FREE if number >= arguments else _APART if self._in_rows(value) else _MIXED
        for node in graph.nodes:
            if node.regions or "effect" in getattr(node.op, "traits", ()) or getattr(node.op, "effect", None):
                return False
            kind = self._class_of(node)
            self.classes.update(dict.fromkeys(node.outputs, kind))
        return bool(graph.outputs) and all(self.classes[value] == _APART for value in graph.outputs)

    def _in_rows(self, value: Value) -> bool:
        """Whether the first size, and no other, is the number of rows."""
        return _first_symbol(value.dims) in self.symbols and not dm.symbols_of(value.dims[1:]) & self.symbols

    def _class_of(self, node: Node) -> int:
        op = node.op
        if not isinstance(op, Op):
            return _FREE if op.name == "constant" else _MIXED
        classes = {self.classes[value] for value in node.inputs}
        if _MIXED in classes:
            return _MIXED
        if _APART in classes:
            return _APART if all(map(self._in_rows, node.outputs)) and self._keeps(op, node) else _MIXED
        if not any(dm.symbols_of(value.dims) & self.symbols for value in node.outputs):
            return _FREE if "random" not in op.traits and not self._speaks_of_rows(node) else _MIXED
        repeats = op.name in ("fill", "broadcast_to") and all(map(self._in_rows, node.outputs)) and all(
            len(value.dims) < len(node.outputs[0].dims) or value.dims[0] == 1 for value in node.inputs)
        return _APART if repeats else _MIXED  # copies of one row

    def _speaks_of_rows(self, node: Node) -> bool:
        """Whether an attribute depends on the number of rows."""
        text = " ".join(map(str, node.attrs.values()))
        return any(name in text for name in self.symbols)

    def _keeps(self, op: Op, node: Node) -> bool:
        """Whether an op whose results are in rows makes each of that row of its operands."""
        if "elementwise" in op.traits:
            rank = len(node.outputs[0].dims)
            return all(len(value.dims) == rank if self._is_apart(value) else
                       len(value.dims) < rank or value.dims[0] == 1 for value in node.inputs)
        rule = _RULES.get(op.name)
        return "reduction" in op.traits or (rule is not None and rule(self, node))

    def _is_apart(self, value: Value) -> bool:
        return self.classes[value] == _APART


def _always(rows: _Rows, node: Node) -> bool:
    """Sizes tell: where rows were mixed, the first size would not be their number."""
    return True


def _first_only(rows: _Rows, node: Node) -> bool:
    """The first operand is in rows, and what it meets is the same for all of them."""
    return rows._is_apart(node.inputs[0]) and not any(map(rows._is_apart, node.inputs[1:]))


def _all_apart(rows: _Rows, node: Node) -> bool:
    return all(map(rows._is_apart, node.inputs)) and _other_axis(rows, node)


def _other_axis(rows: _Rows, node: Node) -> bool:
    """It goes along another axis than the first."""
    axis = node.attrs.get("axis", node.op.defaults.get("axis") if isinstance(node.op, Op) else None)
    rank = len(node.inputs[0].dims)
    return isinstance(axis, int) and axis % rank != 0


def _last_axis(rows: _Rows, node: Node) -> bool:
    return len(node.inputs[0].dims) > 1


def _not_reversed(rows: _Rows, node: Node) -> bool:
    axes = node.attrs.get("axis", ())
    rank = len(node.inputs[0].dims)
    return all(axis % rank != 0 for axis in ([axes] if isinstance(axes, int) else axes))


def _whole_first_axis(rows: _Rows, node: Node) -> bool:
    """A slice that takes the first axis as it is."""
    spec = node.attrs["spec"]
    return not spec or (isinstance(spec[0], (tuple, list)) and all(part is None for part in spec[0])) or (
        spec[0] is Ellipsis and len(spec) == 1)


def _product(rows: _Rows, node: Node) -> bool:
    """Rows on the left, or both operands stacks of matrices, of which a row is one."""
    left, right = node.inputs
    ranks = len(left.dims), len(right.dims)
    rank = len(node.outputs[0].dims)
    if rank == 2:
        return rows._is_apart(left) and not rows._is_apart(right)
    return all(own == rank if rows._is_apart(value) else own < rank or value.dims[0] == 1
               for value, own in zip(node.inputs, ranks, strict=True))


def _gather(rows: _Rows, node: Node) -> bool:
    """Rows of a table for the indices of a row, or elements within a row at the same places for all."""
    table, indices = node.inputs
    if not rows._is_apart(table):
        return node.attrs.get("axis", 0) == 0 and not node.attrs.get("batch_dims", 0)
    return not rows._is_apart(indices) and not node.attrs.get("batch_dims", 0) and _other_axis(rows, node)


_RULES: dict[str, Callable[[_Rows, Node], bool]] = {
    **dict.fromkeys(("reshape", "expand_dims", "squeeze", "transpose", "identity", "stop_gradient", "broadcast_to",
                     "bitcast", "avg_pool", "max_pool"), _always),
    **dict.fromkeys(("conv", "pad"), _first_only),
    **dict.fromkeys(("softmax", "log_softmax", "cumsum", "cumprod", "cumulative_logsumexp"), _other_axis),
    **dict.fromkeys(("sort", "argsort", "top_k"), _last_axis),
    "concat": _all_apart, "reverse": _not_reversed, "strided_slice": _whole_first_axis, "matmul": _product,
    "gather": _gather,
}
