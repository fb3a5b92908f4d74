"""Graphs that are built first and run later by a session, as TensorFlow 1 had them.

While a graph is current, its trace is the interpreter: ops become nodes of a graph of ours. A session runs what is
fetched: the nodes that it needs are written into a `tf.function`, which compiles them, for the shapes that are fed.
What depends on a placeholder of unknown rank has no shape before that; such results are *deferred*: they remember what
to do, and do it inside that function.

A variable has its value in itself, not in a session, and counts as uninitialised until an initialiser has run.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from twofold.eager.tape import GradientTape
from twofold.eager.tensor import Tensor
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dtypes import DType
from twofold.ir.errors import OpError
from twofold.ir.op import Op, apply
from twofold.ir.spec import TensorShape, spec
from twofold.tracer.symbolic import SymbolicTensor
from twofold.tracer.trace import Trace

__all__ = ["Deferred", "Graph", "Operation", "current_graph", "deferred"]

_current: contextvars.ContextVar[Graph | None] = contextvars.ContextVar("v1_graph", default=None)
_NAMES = {"matmul": "MatMul", "multiply": "Mul", "subtract": "Sub", "reduce_sum": "Sum", "reduce_mean": "Mean",
          "reduce_max": "Max", "reduce_min": "Min", "divide": "RealDiv", "negative": "Neg"}  # TensorFlow's own
_TRIED_RANKS = (2, 1, 0, 4, 3, 5)


def current_graph() -> Graph | None:
    """The graph that ops of this context go to; None where they run at once."""
    return _current.get()


class Operation:
    """What a session can run for its effect: assignments, or nothing.

    Attributes:
        updates: variables and the tensors they are set to.
        initialises: whether the variables are initialised by it.
    """

    def __init__(self, graph: Graph, updates: Sequence[tuple[Any, Any]], name: str, initialises: bool = False) -> None:
        self.graph, self.updates, self.name, self.initialises = graph, list(updates), name, initialises

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Run it in the session given, or the current one."""
        from .session import session_or_default
        session_or_default(session).run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Operation {self.name!r}>"


class GraphTensor(SymbolicTensor):
    """A tensor of a graph: it has a name, and a session gives its value."""

    __slots__ = ("_name",)

    _name: str

    @property
    def name(self) -> str:
        """The name of what computes it and the number of the result, such as "MatMul:0"."""
        return self._name

    __hash__ = object.__hash__  # what is fed is a dict by tensors

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """The value in the session given, or the current one."""
        from .session import session_or_default
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


def deferred(graph: Graph, make: Callable[[Sequence[Any]], Sequence[Any]], inputs: Sequence[Any],
             dtypes: Sequence[DType], name: str, python: bool = False) -> list[Deferred]:
    """Tensors that `make` computes from `inputs` when the graph runs.

    Args:
        python: whether it calls Python, whose results have a rank only then.
    """
    shared = graph.unique(name)
    found = []
    for n, dtype in enumerate(dtypes):
        made = Deferred.__new__(Deferred)
        made.trace, made._dtype, made._inputs, made._make, made._output = graph.trace, dtype, tuple(inputs), make, n
        made._python = python or any(isinstance(x, Deferred) and x._python for x in inputs)
        made._name = f"{shared}:{n}"
        graph.named[made._name] = made
        found.append(made)
    return found


class Graph:
    """A graph under construction.

    >>> import twofold as tf
    >>> graph = tf.compat.v1.Graph()
    >>> with graph.as_default():
    ...     x = tf.constant([[2.0]])
    ...     y = tf.matmul(x, x)
    >>> print(y)
    Tensor("MatMul:0", shape=(1, 1), dtype=float32)
    >>> with tf.compat.v1.Session(graph=graph) as session:
    ...     print(session.run(y))
    [[4.]]
    """

    def __init__(self) -> None:
        self.trace = _GraphTrace(self)
        self.tape = GradientTape(persistent=True)
        self.named: dict[str, Any] = {}
        self.variables: list[Any] = []
        self.initial: dict[int, Any] = {}  # id of a variable -> what it starts from, or a function that gives it
        self.uninitialised: set[int] = set()
        self.collections: dict[str, list[Any]] = {}
        self.store: dict[str, Any] = {}  # variables of `get_variable`
        self._taken: dict[str, int] = {}

    @contextlib.contextmanager
    def as_default(self) -> Iterator[Graph]:
        """A block whose ops go to this graph."""
        token = _current.set(self)
        try:
            with self.trace.active():
                if self.tape._recording:
                    yield self
                else:
                    with self.tape:
                        yield self
        finally:
            _current.reset(token)

    @contextlib.contextmanager
    def grouped(self, name: str) -> Iterator[Callable[[], Operation]]:
        """A block in which assignments take effect one after another; it gives a function that makes one operation.

        Outside of it, what reads a variable has the value from before the run, whatever is assigned in the run.
        """
        before = {id(s.variable): s.tensor for s in self.trace.variables.values()}
        self.trace.sequential = True
        updates: list[tuple[Any, Any]] = []
        try:
            yield lambda: Operation(self, updates, self.unique(name))
        finally:
            self.trace.sequential = False
            for state in self.trace.variables.values():
                if state.assigned:
                    updates.append((state.variable, state.tensor))
                    state.assigned = False
                    state.tensor = before.get(id(state.variable), self.trace.entered[id(state.variable)])

    def unique(self, name: str) -> str:
        """`name`, with a number behind it where it is taken."""
        number = self._taken.get(name, 0)
        self._taken[name] = number + 1
        return name if not number else self.unique(f"{name}_{number}")

    def get_tensor_by_name(self, name: str) -> Any:
        """The tensor of a name such as "x:0".

        Raises:
            KeyError: there is none.
        """
        if name not in self.named:
            raise KeyError(f"The name {name!r} refers to a Tensor which does not exist in the graph.")
        return self.named[name]

    def finalize(self) -> None:
        """Accepted, without effect."""


class _Made(list):
    """The variables made in a graph: each is noted with what it starts from."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def append(self, variable: Any) -> None:
        super().append(variable)
        graph = self._graph
        graph.variables.append(variable)
        graph.initial[id(variable)] = graph.trace.starts
        graph.uninitialised.add(id(variable))


class _GraphTrace(Trace):
    """The trace of a graph that is built outside of any function."""

    def __init__(self, owner: Graph) -> None:
        super().__init__("graph")
        self.owner = owner
        self.made = _Made(owner)
        self.sequential = False
        self.starts: Any = None
        self.fed: set[g.Value] = set()
        self.entered: dict[int, SymbolicTensor] = {}  # id of a variable -> its value when a run begins

    def placeholder(self, dims: Sequence[Any], dtype: DType, name: str) -> SymbolicTensor:
        """An input that is fed."""
        value = self.graph.add_input(dims, dtype, name)
        self.fed.add(value)
        made = GraphTensor.__new__(GraphTensor)
        made.value, made.trace, made._name = value, self, f"{name}:0"
        self.owner.named[made._name] = made
        if dtype.is_differentiable:
            self.owner.tape.watch(made)
        return made

    def input_sources(self) -> list[Any]:
        """For each input of the graph the variable or tensor that it stands for; None for one that is fed."""
        captured = iter(self.captured)
        return [None if value in self.fed else next(captured) for value in self.graph.inputs]

    def apply(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Stage an op, or defer it where the rank of an operand is not known."""
        if not any(isinstance(x, Deferred) for x in inputs):
            return super().apply(op, inputs, attrs)
        dtypes = _dtypes_of(op, inputs, attrs)

        def make(tensors: Sequence[Any]) -> Sequence[Any]:
            found = apply(op, tuple(tensors), attrs)
            return found if isinstance(found, tuple) else (found,)
        found = deferred(self.owner, make, inputs, dtypes, _title(op.name))
        return found[0] if len(found) == 1 else tuple(found)

    def add(self, op: Any, values: Sequence[g.Value], attrs: dict[str, Any], specs: Sequence[Any],
            regions: Sequence[g.Graph] = ()) -> tuple[SymbolicTensor, ...]:
        """A node, whose results have names."""
        outputs = super().add(op, values, attrs, specs, regions)
        return self.name_all(outputs, _title(op.name))

    def name_all(self, outputs: Sequence[SymbolicTensor], name: str) -> tuple[SymbolicTensor, ...]:
        """Tensors of a graph in the place of those of a trace."""
        shared = self.owner.unique(name)
        found = []
        for n, output in enumerate(outputs):
            made = GraphTensor.__new__(GraphTensor)
            made.value, made.trace, made._name = output.value, self, f"{shared}:{n}"
            self.owner.named[made._name] = made
            found.append(made)
        return tuple(found)

    def _state(self, variable: Any) -> Any:
        state = super()._state(variable)
        self.entered.setdefault(id(variable), state.tensor)
        return state

    def assign_variable(self, variable: Any, tensor: Tensor) -> Any:
        """Inside of a group the variable has the value from here on; elsewhere an operation comes of it."""
        if self.sequential:
            super().assign_variable(variable, tensor)
            return None
        self._state(variable)
        return Assigned.of(self, variable, tensor)

    def initial_value(self, value: Any, dtype: Any) -> Tensor:
        """The first value of a variable, which is computed again when an initialiser runs."""
        start = super().initial_value(value, dtype)
        self.starts = value if isinstance(value, SymbolicTensor) or callable(value) else start
        return start


class Assigned(GraphTensor):
    """The value that an assignment gives a variable; running it assigns."""

    __slots__ = ("operation",)

    operation: Operation

    @classmethod
    def of(cls, trace: _GraphTrace, variable: Any, tensor: Tensor) -> Assigned:
        """What stands for the assignment of `tensor` to `variable`."""
        made = cls.__new__(cls)
        made.value, made.trace = trace.lift(tensor), trace
        made._name = f"{trace.owner.unique('Assign')}:0"
        made.operation = Operation(trace.owner, [(variable, made)], made._name[:-2])
        return made


def _title(name: str) -> str:
    """The name of an op as TensorFlow writes it."""
    return _NAMES.get(name) or "".join(part.capitalize() for part in name.split("_"))


def _dtypes_of(op: Op, inputs: Sequence[Any], attrs: dict[str, Any]) -> list[DType]:
    """The dtypes of an op's results, by trying ranks for the operands whose rank is not known.

    Raises:
        OpError: the op takes none of them.
    """
    known = next((x.dtype for x in inputs if isinstance(x, Tensor)), None)
    told: Exception | None = None
    for rank in _TRIED_RANKS:
        specs = [_tried(x, rank, known) for x in inputs]
        try:
            with dm.recording():
                found = op.infer(op, *specs, **g.complete(op, attrs))
        except (OpError, ValueError, TypeError, IndexError) as e:
            told = e
            continue
        return [s.dtype for s in (found if isinstance(found, tuple) else (found,))]
    raise told if told is not None else ValueError(f"{op.name}: no rank fits")


def _tried(x: Any, rank: int, dtype: Any) -> Any:
    if isinstance(x, Deferred):
        return spec((2,) * rank, x.dtype)
    if isinstance(x, Tensor):
        return spec(x.dims, x.dtype)
    array = np.asarray(x)
    own = dtype if dtype is not None and array.dtype.kind in "bif" else dt.from_numpy(array.dtype)
    return spec(array.shape, own)
