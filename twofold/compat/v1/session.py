"""`tf.compat.v1.Session`: runs parts of a graph."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import listed, mapped, public, public_class
from twofold.ir import nest
from twofold.ir.spec import TensorShape
from twofold.tracer.symbolic import SymbolicTensor

from . import mode
from .composites import fed_parts, value_of
from .current import default_session
from .graph import Graph, current_graph
from .operations import Deferred, Operation
from .runs import Run

__all__ = ["InteractiveSession", "Session", "get_default_session"]


@public
def get_default_session() -> Session | None:
    """The session of `eval` and `run` here, or None."""
    return default_session.get()


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
        token = default_session.set(self)
        try:
            yield self
        finally:
            default_session.reset(token)

    def close(self) -> None:
        """Take no more runs."""
        self._closed = True

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None, options: Any = None,
            run_metadata: Any = None) -> Any:
        """The values of the fetches.

        Args:
            fetches: tensors, variables, operations and names of tensors, in lists, tuples and dicts.
            feed_dict: values by the placeholders, or other tensors, that they stand for; for sparse and ragged ones a
                `SparseTensorValue` and a `ragged.RaggedTensorValue`, which come out for such fetches, too.
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
        fed = [pair for item in mapped(feed_dict or {}, "feed_dict").items() for pair in _parts_fed(*item)]
        keys = [self._fed(key) for key, _ in fed]
        with tf.init_scope():
            values = [_fitting(key, value) for key, (_, value) in zip(keys, fed, strict=True)]
            values_of_run = iter(self._run_of(leaves, keys)(values))
        results = iter([None if isinstance(leaf, Operation) else next(values_of_run) for leaf in leaves])
        return nest.map_structure(lambda leaf: _taken(leaf, results), fetches, expand_composites=False)

    def make_callable(self, fetches: Any, feed_list: Sequence[Any] | None = None, accept_options: bool = False) -> Any:
        """A function of the values to feed with the result of `run` for them.

        Args:
            fetches: as for `run`.
            feed_list: the tensors that its arguments are values of.
            accept_options: accepted, without effect.
        """
        keys = listed(feed_list or (), "feed_list")
        return lambda *values: self.run(fetches, dict(zip(keys, values, strict=True)))

    def _run_of(self, leaves: Sequence[Any], keys: Sequence[Any]) -> Run:
        """The run of these fetches and feeds, which the graph keeps for all sessions."""
        which = tuple(map(id, leaves)), tuple(map(id, keys))
        runs = self._graph.runs
        if which not in runs:
            runs[which] = Run(self._graph, leaves, keys)
        return runs[which]

    def _fetch(self, leaf: Any) -> Any:
        leaf = self._graph.as_graph_element(leaf)
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
        self._token = default_session.set(self)

    def close(self) -> None:
        """Take no more runs, and be the context's no more."""
        if default_session.get() is self:
            default_session.set(None)
        super().close()


def _parts_fed(key: Any, value: Any) -> list[tuple[Any, Any]]:
    """What is fed for a tensor, or for each of those that it is made of."""
    return list(zip(nest.flatten(key), fed_parts(key, value), strict=True)) if nest.is_composite(key) else [
        (key, value)]


def _taken(fetch: Any, results: Iterator[Any]) -> Any:
    """The next result, or the value of as many as the tensor is made of."""
    return value_of(fetch, [next(results) for _ in nest.flatten(fetch)]) if nest.is_composite(fetch) else next(results)


def _fitting(key: SymbolicTensor, value: Any) -> Any:
    """A value as a tensor for the tensor that it is fed to."""
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if array.dtype.kind in "US":
        array = array.astype(object)
    known = key.shape if isinstance(key, Deferred) else TensorShape([d if type(d) is int else None for d in key.dims])
    if not known.is_compatible_with(array.shape):
        raise ValueError(f"Cannot feed value of shape {array.shape} for Tensor {key.name}, which has shape "
                         f"{tuple(known.as_list())}")
    return tf.constant(array, dtype=key.dtype)
