"""The parts of graphs that programs of TensorFlow 1 see: operations and tensors with names.

A session runs an `Operation` for its effect: assignments, calls of Python, and operations that come first. It computes
the value of a `GraphTensor`; the rank of a `Deferred` one is unknown until then.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

from twofold.ir import dims as dm
from twofold.ir.dtypes import DType
from twofold.ir.spec import TensorShape, listed
from twofold.tracer import operation
from twofold.tracer.symbolic import SymbolicTensor

from .current import session_or_default

__all__ = ["Deferred", "GraphTensor", "Operation", "deferred", "operation_of"]

_numbers = itertools.count()


class Graph(Protocol):
    """The attributes of a graph that its operations and tensors use."""

    trace: Any
    named: dict[str, Any]
    operations: dict[str, Operation]
    controlling: list[Operation]
    controls: dict[Any, tuple[Operation, ...]]

    def unique(self, name: str) -> str: ...


class Operation(operation.Operation):
    """A part of a graph that a session can run for its effect.

    Attributes:
        updates: variables and the tensors they are set to.
        after: operations that are run with it, and come first.
        initialises: whether the variables are initialised by it.
    """

    def __init__(self, graph: Graph, updates: Sequence[tuple[Any, Any]], name: str, initialises: bool = False,
                 nodes: Sequence[Any] = (), after: Sequence[Operation] = (), outputs: Sequence[Any] = (),
                 kind: str = "NoOp") -> None:
        super().__init__(graph, graph.trace, name, kind, listed(nodes, "nodes"), listed(outputs, "outputs"))
        self.updates, self.initialises = listed(updates, "updates"), initialises
        self.after = [*listed(after, "after"), *graph.controlling]
        self.number = next(_numbers)  # operations run in the order in which they were made
        graph.operations.setdefault(name, self)

    @property
    def control_inputs(self) -> list[Operation]:
        """The operations that come first."""
        return list(self.after)

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Run it in the session given, or the current one.

        Args:
            feed_dict: values by the placeholders that they stand for.
            session: the session.
        Raises:
            ValueError: there is no session.
        """
        session_or_default(session).run(self, feed_dict)


class GraphTensor(SymbolicTensor):
    """A tensor of a graph: it has a name, and a session gives its value."""

    __slots__ = ("_name",)

    _name: str
    trace: Any  # of a `tf.Graph`, which it knows as its `owner`

    @property
    def shape(self) -> TensorShape:
        """The shape; the unknown one where some size is that of a placeholder whose shape is not known."""
        veiled = self.trace.veiled
        if veiled and not veiled.isdisjoint(dm.symbols_of(self.value.dims)):
            return TensorShape(None)
        return super().shape

    @property
    def name(self) -> str:
        """The name of what computes it and the number of the result, such as "MatMul:0"."""
        return self._name

    @property
    def graph(self) -> Any:
        """The graph that it is of."""
        return self.trace.owner

    @property
    def op(self) -> Operation:
        """The operation that computes it."""
        return operation_of(self)

    def __eq__(self, other: object) -> Any:
        """Whether it is the same tensor, as TensorFlow has it for tensors of graphs; `tf.equal` compares elements."""
        return self is other

    def __ne__(self, other: object) -> Any:
        """Whether it is another tensor."""
        return self is not other

    __hash__ = object.__hash__  # what is fed is a dict by tensors

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """The value in the session given, or the current one."""
        return session_or_default(session).run(self, feed_dict)

    def _no_value(self, what: str, error: Any = None) -> NoReturn:
        raise TypeError(f"{self!r} has no value while a graph is built: {what}. A session gives it: sess.run(...)")


class Deferred(GraphTensor):
    """A tensor of unknown rank: a placeholder without a shape, or what was computed from one."""

    __slots__ = ("_dtype", "_inputs", "_make", "_output", "_python")  # whether Python is called, or was

    _dtype: DType
    _inputs: tuple[Any, ...]
    _make: Any
    _output: int
    _python: bool

    @property
    def value(self) -> Any:  # type: ignore[override]
        """Not there.

        Raises:
            ValueError: always.
        """
        return self.dims

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._dtype

    @property
    def dims(self) -> tuple[Any, ...]:
        """Not known.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"{self!r} has a shape only when it is run, and this needs it before; give the placeholder "
                         "that it comes from a shape, such as [None, 784]")

    @property
    def shape(self) -> TensorShape:
        """The unknown shape."""
        return TensorShape(None)

    @property
    def ndim(self) -> int:
        """Not known."""
        return len(self.dims)

    def set_shape(self, shape: Any) -> None:
        """Not possible.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"set_shape: {self!r} is of unknown rank; give the placeholder that it comes from a shape")


def deferred(graph: Graph, make: Callable[[Sequence[Any]], Sequence[Any]] | None, inputs: Sequence[Any],
             dtypes: Sequence[DType], name: str, python: bool = False) -> list[Deferred]:
    """Tensors that `make` computes from `inputs` when the graph runs.

    Args:
        make: None for a placeholder.
        python: whether it calls Python, whose results have a rank only then.
    """
    shared = graph.unique(name)
    tensors = []
    for n, dtype in enumerate(dtypes):
        made = Deferred.__new__(Deferred)
        made.trace, made._dtype, made._inputs, made._make, made._output = graph.trace, dtype, tuple(inputs), make, n
        made._python = python or any(isinstance(x, Deferred) and x._python for x in inputs)
        made._name = f"{shared}:{n}"
        graph.named[made._name] = made
        tensors.append(made)
    return tensors


def operation_of(tensor: GraphTensor) -> Operation:
    """The operation that computes a tensor of a graph."""
    graph = tensor.trace.owner
    name = tensor.name.rpartition(":")[0]
    known = graph.operations.get(name)
    if known is not None:
        return known
    node = None if isinstance(tensor, Deferred) else tensor.value.node
    outputs = [tensor] if node is None else [graph.trace.tensor_of(v) for v in node.outputs]
    made = Operation(graph, [], name, nodes=[] if node is None else [node], outputs=outputs,
                     kind=operation.kind_of(node))
    made.after = list(graph.controls.get(node, ()))
    return made
