"""Graphs that are built first and run later by a session, as TensorFlow 1 had them.

While a graph is current, its trace is the interpreter: ops become nodes of a graph of ours. A session runs what is
fetched: the nodes that it needs are written into a `tf.function`, which compiles them, for the shapes that are fed.
What depends on a placeholder of unknown rank has no shape before that; such results are *deferred*: they remember what
to do, and do it inside that function.

A variable has its value in itself, not in a session, and counts as uninitialised until an initialiser has run. What is
built under `control_dependencies` reads variables as the operations that come first leave them.
"""

from __future__ import annotations

import contextlib
import contextvars
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold.eager import naming
from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable, created
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir import ops
from twofold.ir.dtypes import DType
from twofold.ir.errors import OpError
from twofold.ir.op import Op, apply
from twofold.ir.spec import listed, spec
from twofold.tracer.contents import truths
from twofold.tracer.operation import title
from twofold.tracer.symbolic import SymbolicTensor
from twofold.tracer.trace import Trace

from .operations import Deferred, GraphTensor, Operation, deferred

__all__ = ["Graph", "current_graph"]

_current: contextvars.ContextVar[Graph | None] = contextvars.ContextVar("v1_graph", default=None)
_TRIED_RANKS = (2, 1, 0, 4, 3, 5)


def current_graph() -> Graph | None:
    """The graph that ops of this context go to; None where they run at once."""
    return _current.get()


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
        self.named: dict[str, Any] = {}
        self.operations: dict[str, Operation] = {}
        self.controlling: list[Operation] = []  # operations that must run before whatever is added now
        self.controls: dict[Any, tuple[Operation, ...]] = {}  # a node -> the operations that must run before it
        self.trace = _GraphTrace(self)
        self.variables: list[Any] = []
        self.local_variables: list[Any] = []
        self.initial: dict[int, Any] = {}  # id of a variable -> its initial value, or a function of it
        self.uninitialised: set[int] = set()
        self.collections: dict[str, list[Any]] = {}
        self.names: Any = None  # the variables by name, for `get_variable`
        self.runs: dict[Any, Any] = {}  # fetches and feeds -> the compiled `Run`
        self.defaults: dict[Any, Any] = {}  # values of placeholders that need not be fed
        self._taken: dict[str, int] = {}

    @contextlib.contextmanager
    def as_default(self) -> Iterator[Graph]:
        """A block whose ops go to this graph."""
        token, told = _current.set(self), created.set((*created.get(), self._adopt))
        try:
            with self.trace.active():
                yield self
        finally:
            created.reset(told)
            _current.reset(token)

    def _adopt(self, variable: Any) -> None:
        """Note a variable that was made outside of the trace, as layers and optimizers make theirs."""
        if current_graph() is self:
            self.note(variable, variable._value)

    def note(self, variable: Any, start: Any) -> None:
        """Add a variable to this graph, with its initial value."""
        variable._name = self.unique(variable._name)
        variable._graph = weakref.ref(self)
        self.variables.append(variable)
        self.initial[id(variable)] = start

    @contextlib.contextmanager
    def control_dependencies(self, control_inputs: Sequence[Any] | None) -> Iterator[None]:
        """A block whose operations run after others, and see the values these assign to variables.

        Args:
            control_inputs: operations and tensors; None leaves those of the blocks around it.
        """
        trace, before = self.trace, self.controlling
        first = [] if control_inputs is None else [
            self.as_operation(x) for x in listed(control_inputs, "control_inputs") if x is not None]
        self.controlling = [] if control_inputs is None else [*before, *first]
        kept = [(s, s.tensor) for s in trace.variables.values()]
        if control_inputs is None:
            for state, _ in kept:
                state.tensor = trace.entered[id(state.variable)]
        for variable, value in _updates(first):
            trace._state(variable).tensor = value if isinstance(value, SymbolicTensor) else trace.constant_of(value)
        try:
            yield
        finally:
            self.controlling = before
            known = {id(s) for s, _ in kept}
            for state in trace.variables.values():
                if id(state) not in known:
                    state.tensor = trace.entered[id(state.variable)]
            for state, tensor in kept:
                state.tensor = tensor

    def as_operation(self, value: Any) -> Operation:
        """The operation that a tensor, variable or operation stands for.

        Raises:
            TypeError: it is none of them.
        """
        if isinstance(value, Operation):
            return value
        if isinstance(value, GraphTensor):
            return value.op
        if isinstance(value, (Tensor, Variable)):
            return Operation(self, [], self.unique("NoOp"))
        raise TypeError(f"{value!r} is no operation or tensor of a graph")

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

    # -- names ------------------------------------------------------------------------------------
    def unique(self, name: str) -> str:
        """`name`, with a number behind it where it is taken."""
        number = self._taken.get(name, 0)
        self._taken[name] = number + 1
        return name if not number else self.unique(f"{name}_{number}")

    def scoped(self, name: str) -> str:
        """A name of its own for `name` in the scope of names here."""
        return self.unique(naming.full_name(name))

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """`name`, with a number behind it where it is taken.

        Args:
            name: the name.
            mark_as_used: whether it is taken from now on.
        """
        if mark_as_used:
            return self.scoped(name)
        kept = dict(self._taken)
        try:
            return self.scoped(name)
        finally:
            self._taken = kept

    def get_tensor_by_name(self, name: str) -> Any:
        """The tensor of a name such as "x:0".

        Raises:
            KeyError: there is none.
        """
        if name in self.named:
            return self.named[name]
        for variable in self.variables:
            if variable.name == name:
                return variable
        raise KeyError(f"The name {name!r} refers to a Tensor which does not exist in the graph.")

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of a name such as "x".

        Raises:
            KeyError: there is none.
        """
        operation = self.operations.get(name)
        if operation is None and f"{name}:0" in self.named:
            operation = self.named[f"{name}:0"].op
        if operation is None:
            raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")
        return operation

    def get_operations(self) -> list[Operation]:
        """The operations of the graph, those that tensors come of among them."""
        for tensor in list(self.named.values()):
            self.operations.setdefault(tensor.name.rpartition(":")[0], tensor.op)
        return sorted(self.operations.values(), key=lambda operation: operation.number)

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        """The tensor or operation of a name; a tensor or operation itself.

        Args:
            obj: a name, a tensor or an operation.
            allow_tensor, allow_operation: whether it may stand for a tensor, and for an operation.
        Raises:
            KeyError: there is none of that name.
            ValueError: the name, or both are excluded, or stands for what is not allowed.
            TypeError: a tensor or operation is given that is not allowed.

        >>> import twofold as tf
        >>> graph = tf.compat.v1.Graph()
        >>> with graph.as_default():
        ...     x = tf.compat.v1.placeholder(tf.float32, [2])
        >>> graph.as_graph_element(x.name) is x
        True
        """
        kinds = [kind for kind, allowed in (("Tensor", allow_tensor), ("Operation", allow_operation)) if allowed]
        if not kinds:
            raise ValueError("allow_tensor and allow_operation can't both be False.")
        if isinstance(obj, str):
            if ("Tensor" if ":" in obj else "Operation") not in kinds:
                raise ValueError(f"Name {obj!r} appears to refer to a{'' if ':' in obj else 'n'} "
                                 f"{'Tensor' if ':' in obj else 'Operation'}, not a {kinds[0]}.")
            return self.get_tensor_by_name(obj) if ":" in obj else self.get_operation_by_name(obj)
        for kind, classes in (("Tensor", (Tensor, Variable)), ("Operation", Operation)):
            if isinstance(obj, classes) and kind not in kinds:
                raise TypeError(f"Can not convert a{'n' if kind == 'Operation' else ''} {kind} into a {kinds[0]}.")
        return obj

    # -- collections ------------------------------------------------------------------------------
    def add_to_collection(self, name: str, value: Any) -> None:
        """Put a value into a collection."""
        self.collections.setdefault(name, []).append(value)

    def get_collection_ref(self, name: str) -> list[Any]:
        """A collection itself, which may be changed."""
        return self.collections.setdefault(name, [])

    def get_collection(self, name: str, scope: str | None = None) -> list[Any]:
        """The values of a collection.

        Args:
            name: of the collection.
            scope: gives those alone whose name begins with it.
        """
        return [v for v in self.collections.get(name, ())
                if scope is None or str(getattr(v, "name", "")).startswith(scope)]

    def get_all_collection_keys(self) -> list[str]:
        """The names of the collections that have something in them."""
        return [name for name, values in self.collections.items() if values]

    def clear_collection(self, name: str) -> None:
        """Take everything out of a collection."""
        self.collections.pop(name, None)

    def finalize(self) -> None:
        """Accepted, without effect."""


def _updates(operations: Sequence[Operation]) -> list[tuple[Any, Any]]:
    """What operations, and those that come before them, set variables to; the last for each."""
    reached: dict[int, Operation] = {}
    pending = list(operations)
    while pending:
        operation = pending.pop()
        if operation.number in reached:
            continue
        reached[operation.number] = operation
        pending += operation.after
        pending += [c for node in operation.nodes for c in operation.graph.controls.get(node, ())]
    last = {id(v): (v, value) for number in sorted(reached) for v, value in reached[number].updates}
    return list(last.values())


class _Made(list):
    """The variables made in a graph: each that is appended is noted in the graph with its initial value."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def append(self, variable: Any) -> None:
        super().append(variable)
        graph = self._graph
        graph.note(variable, graph.trace.starts)
        graph.uninitialised.add(id(variable))


class _Nodes(g.Graph):
    """A graph that notes for each node the operations that must run before it."""

    def __init__(self, owner: Graph) -> None:
        super().__init__("graph")
        self._owner = owner

    def add(self, op: Any, *args: Any, **kwargs: Any) -> g.Node:
        """A new node, which runs after the control inputs of the block that is open."""
        node = super().add(op, *args, **kwargs)
        if self._owner.controlling and op is not g.CONSTANT:
            self._owner.controls[node] = tuple(self._owner.controlling)
        return node


class _GraphTrace(Trace):
    """The trace of a graph that is built outside of any function."""

    def __init__(self, owner: Graph) -> None:
        super().__init__("graph")
        self.graph = _Nodes(owner)
        self.owner = owner
        self.created = _Made(owner)
        self.sequential = False
        self.starts: Any = None
        self.fed: set[g.Value] = set()
        self.veiled: set[str] = set()  # the sizes of placeholders whose shape, the rank included, is not to be seen
        self.entered: dict[int, SymbolicTensor] = {}  # id of a variable -> its value when a run begins
        self._tensors: dict[g.Value, GraphTensor] = {}

    def unique_scope(self, name: str) -> str:
        """A scope by a name, with a number behind it where it is taken."""
        return self.owner.unique(name)

    def placeholder(self, dims: Sequence[Any], dtype: DType, name: str) -> SymbolicTensor:
        """An input that is fed."""
        value = self.graph.add_input(dims, dtype, name)
        self.fed.add(value)
        return self._named(value, f"{name}:0")

    @property
    def public_graph(self) -> Graph:
        """The graph as users see it."""
        return self.owner

    def veil(self, rank: int) -> list[Any]:
        """New sizes that nobody sees: tensors that have one have an unknown shape."""
        sizes = [self.fresh("p") for _ in range(rank)]
        self.veiled |= dm.symbols_of(sizes)
        return sizes

    def input(self, dims: Sequence[Any], dtype: Any, name: str = "") -> SymbolicTensor:
        """A new input of the graph: the value of a variable, or a tensor from outside."""
        made = self._named(self.graph.add_input(dims, dtype, name), f"{self.owner.unique(f'{name}/read')}:0")
        self.input_tensors.append(made)
        return made

    def _named(self, value: g.Value, name: str) -> GraphTensor:
        made: GraphTensor = GraphTensor.__new__(GraphTensor)
        made.value, made.trace, made._name = value, self, name
        self.owner.named[name] = self._tensors[value] = made
        return made

    def tensor_of(self, value: g.Value) -> GraphTensor:
        """The tensor of a value of the graph."""
        tensor = self._tensors.get(value)
        if tensor is None:
            title = "Const" if value.node is not None else value.name or "input"
            tensor = self._named(value, f"{self.owner.unique(title)}:0")
        return tensor

    def constant_of(self, tensor: Any) -> GraphTensor:
        """A tensor with a value as one of the graph."""
        return self.tensor_of(self.lift(tensor))

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
            results = apply(op, tuple(tensors), attrs)
            return results if isinstance(results, tuple) else (results,)
        results = deferred(self.owner, make, inputs, dtypes, naming.full_name(title(op.name)))
        return results[0] if len(results) == 1 else tuple(results)

    def add(self, op: Any, values: Sequence[g.Value], attrs: dict[str, Any], specs: Sequence[Any],
            regions: Sequence[g.Graph] = ()) -> tuple[SymbolicTensor, ...]:
        """A node, whose results have names."""
        outputs = super().add(op, values, attrs, specs, regions)
        return self.name_all(outputs, title(op.name))

    def name_all(self, outputs: Sequence[SymbolicTensor], name: str) -> tuple[SymbolicTensor, ...]:
        """Tensors of a graph in the place of those of a trace."""
        shared = self.owner.scoped(name)
        return tuple([self._named(output.value, f"{shared}:{n}") for n, output in enumerate(outputs)])

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
        return self.assigned(variable, tensor)

    def assigned_within(self, variable: Any, tensor: Any) -> None:
        """A construct assigned: whoever runs it assigns."""
        if self.sequential:
            super().assigned_within(variable, tensor)
            return
        self._state(variable)
        owner, node = self.owner, tensor.value.node
        operation = Operation(owner, [(variable, tensor)], owner.scoped("Assign"), kind="Assign")
        owner.controls[node] = (*owner.controls.get(node, ()), operation)

    def assigned(self, variable: Any, tensor: Tensor) -> GraphTensor:
        """The value that an assignment gives a variable; whoever needs it assigns."""
        owner = self.owner
        value = tensor if isinstance(tensor, SymbolicTensor) else self.constant_of(tensor)
        name = owner.scoped("Assign")
        with tf.name_scope(""):
            given = ops.identity(value)
        made = self._named(given.value, f"{name}:0")
        operation = Operation(owner, [(variable, value)], name, kind="Assign", outputs=[made])
        owner.controls[given.value.node] = (*owner.controls.get(given.value.node, ()), operation)
        return made

    def after(self, control_inputs: Any) -> contextlib.AbstractContextManager[Any]:
        """A block whose operations come after others."""
        return self.owner.control_dependencies(control_inputs)

    def effects_since(self, count: int, name: str) -> Operation:
        """The operation of the nodes that were added after the first `count`."""
        return Operation(self.owner, [], self.owner.scoped(name), nodes=self.graph.nodes[count:], kind=name)

    def decided(self, test: SymbolicTensor) -> SymbolicTensor | bool:
        """Whether an assertion holds, where constants tell it; else its condition."""
        known = truths(test.value, self) if test.trace is self else None
        return test if known is None else bool(known)

    def inlined(self, call: g.Node | None, nodes: Sequence[g.Node]) -> None:
        """What came before a call comes before each node in its place, and each brings the effects of all."""
        owner = self.owner
        first = owner.controls.get(call, ())
        effects = [node for node in nodes if g.effect_of(node) == "host"]
        if effects:
            first = (*first, Operation(owner, [], owner.unique("Call"), nodes=effects))
        if first:
            owner.controls.update({node: (*owner.controls.get(node, ()), *first) for node in nodes})

    def differentiated(self) -> None:
        """What came before constructs comes before those in their places now."""
        controls = self.owner.controls
        for node in [n for n in controls if n.outputs and n.outputs[0].node is not n]:
            controls[node.outputs[0].node] = controls.pop(node)

    def initial_value(self, value: Any, dtype: Any) -> Tensor:
        """The first value of a variable, which is computed again when an initialiser runs."""
        start = super().initial_value(value, dtype)
        self.starts = value if isinstance(value, SymbolicTensor) or callable(value) else start
        return start


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
                inferred = op.infer(op, *specs, **g.complete(op, attrs))
        except (OpError, ValueError, TypeError, IndexError) as e:
            told = e
            continue
        return [s.dtype for s in (inferred if isinstance(inferred, tuple) else (inferred,))]
    raise told if told is not None else ValueError(f"{op.name}: no rank fits")


def _tried(x: Any, rank: int, dtype: Any) -> Any:
    if isinstance(x, Deferred):
        return spec((2,) * rank, x.dtype)
    if isinstance(x, Tensor):
        return spec(x.dims, x.dtype)
    array = np.asarray(x)
    own = dtype if dtype is not None and array.dtype.kind in "bif" else dt.from_numpy(array.dtype)
    return spec(array.shape, own)
