"""`Builder`: the interpreter that writes ops into a graph, for code made of ops that has graph values as operands.

Gradient rules and rewrites are made of ops; with a builder as the current interpreter they append nodes. Python
numbers, arrays and sizes among the operands become nodes, with the dtypes that eager execution gives them. Values of
other graphs are translated by `lift`, which whoever builds hands in.

Tracing Python functions is the tracer's: it has captures, variables and recorders, which this has not.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence

import numpy as np

from twofold.ir.dims import DimLike
from twofold.ir.types import Attrs, Operand, Spec

from . import dtypes as dt
from . import graph as g
from . import ops, symbols
from .dims import Dim
from .dtypes import DType
from .graph import Construct, Graph, Location, Node, Value
from .op import Op
from .spec import spec

__all__ = ["Builder", "copy_node", "one_of", "sides_of", "splice"]

_SMALL = 64  # bytes up to which equal constants are made once
_RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


class Builder:
    """Appends to `graph`; `use_interpreter(builder)` makes ops go there.

    Args:
        graph: what is written.
        lift: gives the value of `graph` that stands for one that may be of another graph.

    >>> from twofold.ir import dtypes, graph, ops
    >>> from twofold.ir.op import use_interpreter
    >>> f = graph.Graph("f")
    >>> x = f.add_input((3,), dtypes.float32)
    >>> with use_interpreter(Builder(f)):
    ...     f.outputs = [ops.multiply(x, 2.0)]
    >>> [node.op.name for node in f.nodes]
    ['constant', 'multiply']
    """

    def __init__(self, graph: Graph, lift: Callable[[Value], Value] | None = None) -> None:
        self.graph = graph
        self.loc: Location | None = None  # the line that new nodes are given
        self.lift = lift or (lambda value: value)
        self._constants: dict[tuple[np.dtype, tuple[int, ...], bytes], Value] = {}

    def apply(self, op: Op, inputs: tuple[Operand, ...], attrs: Attrs) -> Value | tuple[Value, ...]:
        """Append `op`; see `ir.op.apply`."""
        if not op.variadic and len(inputs) != len(op.params):
            raise TypeError(f"{op.name}: takes {len(op.params)} operands ({', '.join(op.params)}); got {len(inputs)}")
        values = self._operands(op, inputs)
        attrs = g.complete(op, attrs)
        inferred = op.infer(op, *values, **attrs)
        if isinstance(inferred, tuple):
            return tuple(self.graph.add(op, values, attrs, inferred, (), self.loc).outputs)
        return self.graph.add(op, values, attrs, (inferred,), (), self.loc).outputs[0]

    def construct(self, op: Construct, operands: Sequence[Value], attrs: Attrs, specs: Sequence[Spec],
                  regions: Sequence[Graph] = ()) -> tuple[Value, ...]:
        """Append a construct; its results."""
        return tuple(self.graph.add(op, [self.lift(v) for v in operands], attrs, specs, regions, self.loc).outputs)

    def inline(self, graph: Graph, inputs: Sequence[Value]) -> list[Value]:
        """Append the nodes of `graph`; see `splice`."""
        return splice(self, graph, inputs)

    def constant(self, array: np.ndarray) -> Value:
        """The value of `array`; small equal ones are one node."""
        if array.nbytes > _SMALL:
            return self.graph.constant(array, self.loc)
        key = (array.dtype, array.shape, array.tobytes())
        value = self._constants.get(key)
        if value is None:
            value = self._constants[key] = self.graph.constant(array, self.loc)
        return value

    def size(self, size: DimLike, dtype: DType = dt.int64) -> Value:
        """A size as an integer scalar."""
        if not isinstance(size, Dim):
            return self.constant(np.array(size, dtype.np))
        return self.construct(g.SIZE, (), {"size": size, "dtype": dtype}, (spec((), dtype),))[0]

    def value(self, x: Operand, hint: DType | None = None) -> Value:
        """`x` (a value, size, Python number or array) as a value of the graph; numbers take `hint` where they can."""
        if isinstance(x, Value):
            return self.lift(x)
        if isinstance(x, Dim):
            size = self.size(x)
            if hint in (None, dt.int64):
                return size
            return self.graph.add(ops.cast, (size,), {"dtype": hint}, (spec((), hint),), (), self.loc).outputs[0]
        return self.constant(_array(x, hint))

    def _operands(self, op: Op, inputs: tuple[Operand, ...]) -> list[Value]:
        hint, match = None, op.match
        for i, x in enumerate(inputs):
            if isinstance(x, Value) and (match is None or i in match):
                hint = x.dtype
                break
        return [self.value(x, hint if match is None or i in match else None) for i, x in enumerate(inputs)]


def _array(x: Operand, hint: DType | None) -> np.ndarray:
    """A number or array as eager execution reads it: see `eager/convert.py` for the rule."""
    array = np.asarray(x)
    if type(x) is float and hint is None:
        array = array.astype(np.float32)
    elif type(x) is int and hint is None and -(1 << 31) <= x < 1 << 31:
        array = array.astype(np.int32)
    if hint is not None and array.dtype != hint.np and _RANK[dt.from_numpy(array.dtype).kind] <= _RANK[hint.kind]:
        array = array.astype(hint.np)
    return array


def one_of(b: Builder, condition: Value, then: Value, otherwise: Value, like: Spec) -> Value:
    """The one of two values that a condition tells, which is that very value for gradients."""
    return b.graph.add(g.COND, [condition, then, otherwise], {}, (like,), sides_of(then, otherwise), b.loc).outputs[0]


def sides_of(then: Spec, otherwise: Spec) -> tuple[Graph, Graph]:
    """The regions of a branch that gives one of its two operands back."""
    regions = (Graph("then"), Graph("else"))
    for number, region in enumerate(regions):
        for like in (then, otherwise):
            region.add_input(like.dims, like.dtype)
        region.outputs = [region.inputs[number]]
    return regions


def splice(builder: Builder, graph: Graph, inputs: Sequence[Value]) -> list[Value]:
    """Append the nodes of `graph`, with `inputs` in the place of its inputs; the values that stand for its outputs.

    Symbols keep their names: those that the inputs of `graph` bind must be bound where it is written to, and those
    that it binds with nodes and that are bound there already must be the same sizes.
    """
    copies: dict[Value, Value] = dict(zip(graph.inputs, [builder.lift(v) for v in inputs], strict=True))
    bound = symbols.bound(builder.graph) if any(node.op is g.BIND for node in graph.nodes) else ()
    for node in graph.nodes:
        if node.op is g.BIND and node.attrs["symbol"] in bound:
            continue
        copy_node(builder.graph, node, copies)
    return [copies[v] for v in graph.outputs]


def copy_node(into: Graph, node: Node, copies: MutableMapping[Value, Value]) -> Node:
    """Append a copy of `node` whose operands are looked up in `copies`, which its results join."""
    copy = into.add(node.op, [copies[v] for v in node.inputs], node.attrs, node.outputs,
                    [r.copy() for r in node.regions], node.loc)
    for old, out in zip(node.outputs, copy.outputs, strict=True):
        out.name = old.name
        copies[old] = out
    return copy
