"""`tf.compat.v1.Session`: runs parts of a graph."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._api import public_class
from twofold.eager.constructs import run_construct
from twofold.ir import graph as g
from twofold.ir import nest
from twofold.ir.errors import FailedPreconditionError, InvalidArgumentError
from twofold.ir.replay import replay
from twofold.tracer.staging import restage
from twofold.tracer.symbolic import SymbolicTensor

from . import mode
from .graph import Assigned, Deferred, Graph, Operation, current_graph

__all__ = ["InteractiveSession", "Session", "session_or_default"]

_default: contextvars.ContextVar[Session | None] = contextvars.ContextVar("v1_session", default=None)


def session_or_default(session: Any) -> Session:
    """The session given, or that of the context.

    Raises:
        ValueError: there is none.
    """
    found = _default.get() if session is None else session
    if found is None:
        raise ValueError("Cannot run this: no default session is registered. Use `with sess.as_default()` or pass an "
                         "explicit session")
    return found


@public_class
class Session:
    """Runs parts of a graph. As a context it makes its graph current, and itself the session of `eval` and `run`.

    Args:
        target, config: accepted, without effect.
        graph: the graph; by default the current one, or a new one where ops run at once.
    Raises:
        RuntimeError: eager execution was asked for.

    >>> import twofold as tf
    >>> with tf.compat.v1.Session() as session:
    ...     x = tf.compat.v1.placeholder(tf.float32, [None, 2])
    ...     y = tf.reduce_sum(x * x, axis=1)
    ...     print(session.run(y, feed_dict={x: [[1.0, 2.0], [3.0, 4.0]]}))
    [ 5. 25.]
    """

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None):
        mode.refuse_eager("tf.Session")
        self._graph = graph if graph is not None else current_graph() or Graph()
        self._runs: dict[Any, Any] = {}
        self._stack: list[contextlib.ExitStack] = []
        self._closed = False

    @property
    def graph(self) -> Graph:
        """The graph that is run."""
        return self._graph

    def __enter__(self) -> Session:
        stack = contextlib.ExitStack()
        stack.enter_context(self.as_default())
        if current_graph() is not self._graph:
            stack.enter_context(self._graph.as_default())
        self._stack.append(stack)
        return self

    def __exit__(self, *details: Any) -> None:
        self._stack.pop().__exit__(*details)
        self.close()

    @contextlib.contextmanager
    def as_default(self) -> Any:
        """A block in which this is the session of `eval` and `run`."""
        token = _default.set(self)
        try:
            yield self
        finally:
            _default.reset(token)

    def close(self) -> None:
        """Take no more runs."""
        self._closed = True

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None, options: Any = None,
            run_metadata: Any = None) -> Any:
        """The values of what is fetched.

        Args:
            fetches: tensors, variables, operations and names of tensors, in lists, tuples and dicts.
            feed_dict: values by the placeholders, or other tensors, that they stand for.
            options, run_metadata: accepted, without effect.
        Returns:
            The same structure of NumPy arrays and scalars; None for an operation.
        Raises:
            RuntimeError: the session is closed.
            FailedPreconditionError: a variable has no value yet.
            InvalidArgumentError: a placeholder is not fed.
            ValueError: a value does not fit what it is fed to.
        """
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        leaves = [self._fetch(leaf) for leaf in nest.flatten(fetches)]
        keys = [self._fed(key) for key in (feed_dict or {})]
        with tf.init_scope():
            values = [_fitting(key, value) for key, value in zip(keys, (feed_dict or {}).values(), strict=True)]
            which = tuple(map(id, leaves)), tuple(map(id, keys))
            if which not in self._runs:
                self._runs[which] = _Run(self._graph, leaves, keys)
            found = iter(self._runs[which](values))
        results = [None if isinstance(leaf, Operation) else next(found) for leaf in leaves]
        return nest.pack(fetches, results)

    def _fetch(self, leaf: Any) -> Any:
        leaf = self._graph.get_tensor_by_name(leaf) if isinstance(leaf, str) else leaf
        if not isinstance(leaf, (tf.Tensor, Operation, tf.Variable)):
            raise TypeError(f"Fetch argument {leaf!r} has invalid type {type(leaf).__name__}, must be a string, a "
                            "tensor of the graph, a variable or an operation")
        if isinstance(leaf, SymbolicTensor) and leaf.trace is not self._graph.trace:
            raise ValueError(f"Fetch argument {leaf!r} cannot be interpreted as a Tensor: it is not of this graph")
        return leaf

    def _fed(self, key: Any) -> Any:
        key = self._graph.get_tensor_by_name(key) if isinstance(key, str) else key
        if not isinstance(key, SymbolicTensor) or key.trace is not self._graph.trace:
            raise TypeError(f"Cannot interpret feed_dict key as Tensor: {key!r} is not of this graph")
        return key


@public_class
class InteractiveSession(Session):
    """A session that is the context's own from the start, for consoles.

    >>> import twofold as tf
    >>> graph = tf.compat.v1.Graph()
    >>> with graph.as_default():
    ...     session = tf.compat.v1.InteractiveSession()
    ...     print((tf.constant(2.0) * 3.0).eval())
    ...     session.close()
    6.0
    """

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None):
        super().__init__(target, graph, config)
        self._token = _default.set(self)

    def close(self) -> None:
        """Take no more runs, and be the context's no more."""
        if _default.get() is self:
            _default.set(None)
        super().close()


def _fitting(key: SymbolicTensor, value: Any) -> Any:
    """A value as a tensor for the tensor that it is fed to."""
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if array.dtype.kind in "US":
        array = array.astype(object)
    if not key.shape.is_compatible_with(array.shape):
        raise ValueError(f"Cannot feed value of shape {array.shape} for Tensor {key.name}, which has shape "
                         f"{tuple(key.shape.as_list())}")
    return tf.constant(array, dtype=key.dtype)


class _Run:
    """What a session does for certain fetches and feeds: one compiled function, or ops one by one around Python."""

    def __init__(self, graph: Graph, fetches: Sequence[Any], keys: Sequence[Any]) -> None:
        self._graph, self._keys = graph, keys
        self._wanted = [f for f in fetches if not isinstance(f, Operation)]
        self._operations = [f.operation if isinstance(f, Assigned) else f for f in fetches
                            if isinstance(f, (Operation, Assigned))]
        updates = [u for operation in self._operations for u in operation.updates]
        self._updates = list({id(variable): (variable, value) for variable, value in updates}.values())
        self._kept = fetches  # their identities are what the run is found by
        static = [*self._wanted, *[value for _, value in self._updates]]
        self._part = _Part(graph, _static(static, keys), [k for k in keys if not isinstance(k, Deferred)])
        python = any(isinstance(t, Deferred) and t._python for t in static)
        self._function = self._trace if python else tf.function(self._trace, autograph=False)

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        graph = self._graph
        set_now = {id(v) for operation in self._operations if operation.initialises for v, _ in operation.updates}
        for variable in (*self._part.variables, *[f for f in self._wanted if isinstance(f, tf.Variable)]):
            if id(variable) in graph.uninitialised and id(variable) not in set_now:
                raise FailedPreconditionError(f"Attempting to use uninitialized value {variable.name[:-2]}")
        found = self._function(*values)
        graph.uninitialised -= {id(variable) for variable, _ in self._updates}
        return [t.numpy() for t in found]

    def _trace(self, *fed: Any) -> list[Any]:
        """The fetched values."""
        known: dict[Any, Any] = {}
        for key, tensor in zip(self._keys, fed, strict=True):
            known[id(key) if isinstance(key, Deferred) else key.value] = tensor
        known.update(self._part.values(known))
        values = [tf.identity(f) if isinstance(f, tf.Variable) else _value(f, known) for f in self._wanted]
        new = [_value(value, known) for _, value in self._updates]
        for (variable, _), value in zip(self._updates, new, strict=True):
            variable.assign(value)
        return values


def _static(tensors: Sequence[Any], keys: Sequence[Any]) -> list[g.Value]:
    """The values of the graph that tensors come down to; those behind deferred ones, too."""
    fed, found, pending, seen = {id(k) for k in keys}, [], list(tensors), set()
    while pending:
        tensor = pending.pop()
        if id(tensor) in fed or id(tensor) in seen:
            continue
        seen.add(id(tensor))
        if isinstance(tensor, Deferred):
            if tensor._make is None:
                raise _not_fed(tensor.name)
            pending += [x for x in tensor._inputs if isinstance(x, SymbolicTensor)]
        elif isinstance(tensor, SymbolicTensor):
            found.append(tensor.value)
    return found


def _not_fed(name: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"You must feed a value for placeholder tensor {name.partition(':')[0]!r}")


def _value(tensor: Any, known: dict[Any, Any]) -> Any:
    """The tensor that stands for one of the graph."""
    if not isinstance(tensor, SymbolicTensor):
        return tensor
    if not isinstance(tensor, Deferred):
        return known[tensor.value]
    if id(tensor) not in known:
        made = tensor._make([_value(x, known) for x in tensor._inputs])
        known[id(tensor)] = made[tensor._output]
    return known[id(tensor)]


class _Part:
    """The nodes of a graph that certain values need, given others, as a graph of its own."""

    def __init__(self, graph: Graph, wanted: Sequence[g.Value], keys: Sequence[Any]) -> None:
        whole = graph.trace.graph
        given = {key.value for key in keys}
        needed, nodes, pending = set(given), set(), [v for v in wanted if v not in given]
        while pending:
            value = pending.pop()
            if value in needed:
                continue
            needed.add(value)
            if value.node is not None:
                nodes.add(value.node)
                pending += value.node.inputs
        self._graph = g.Graph("session")
        self._wanted = list(dict.fromkeys(wanted))
        self._given = [key.value for key in keys]
        copies = {v: self._graph.add_input(v.dims, v.dtype, v.name) for v in self._given}
        self._captured = []
        captured = dict(zip(whole.inputs, graph.trace.input_sources(), strict=True))
        for value in whole.inputs:
            if value in needed and value not in given:
                if captured[value] is None:
                    raise _not_fed(value.name)
                copies[value] = self._graph.add_input(value.dims, value.dtype, value.name)
                self._captured.append(captured[value])
        for node in whole.nodes:
            if node in nodes:
                new = self._graph.add(node.op, [copies[v] for v in node.inputs], node.attrs, node.outputs, node.regions,
                                      node.loc)
                copies.update({v: c for v, c in zip(node.outputs, new.outputs, strict=True) if v not in given})
        self._graph.outputs = [copies[v] for v in self._wanted]
        self.variables = [c for c in self._captured if isinstance(c, tf.Variable)]

    def values(self, known: dict[Any, Any]) -> dict[g.Value, Any]:
        """The wanted values: in the trace that is under way, or now."""
        inputs = [*[known[v] for v in self._given],
                  *[c._read_tensor() if isinstance(c, tf.Variable) else c for c in self._captured]]
        construct = run_construct if tf.executing_eagerly() else restage
        return dict(zip(self._wanted, replay(self._graph, inputs, construct), strict=True))
