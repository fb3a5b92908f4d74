"""Which mode a process is in: eager by default, eager because it was asked for, or graphs.

Ops run at once from the start. `enable_eager_execution` is remembered, because TensorFlow 1's graphs and sessions are
refused after it; `disable_eager_execution` makes a default graph current for good in the thread that calls it.
"""

from __future__ import annotations

import contextlib
import weakref
from typing import Any

from twofold._front.api import public
from twofold._front.tensors import eager_for_good
from twofold.tracer.trace import current

from .graph import Graph, current_graph

__all__ = ["builds_graphs", "default_graph", "disable_eager_execution", "graph_at_hand", "graph_of", "graph_with",
           "refuse_eager", "reset_default_graph"]

_open: contextlib.ExitStack | None = None


def builds_graphs() -> bool:
    """Whether there is a default graph for good."""
    return _open is not None


def refuse_eager(what: str) -> None:
    """Raise RuntimeError where eager execution was asked for."""
    if eager_for_good:
        raise RuntimeError(f"{what}() is not compatible with eager execution, which was enabled by "
                           "tf.enable_eager_execution().")


@public
def disable_eager_execution() -> None:
    """Build graphs from now on, in this thread, to be run by a session.

    Raises:
        RuntimeError: eager execution was asked for.
    """
    global _open
    refuse_eager("tf.disable_eager_execution")
    if _open is None:
        _open = contextlib.ExitStack()
        _open.enter_context(Graph().as_default())


_elsewhere: weakref.WeakKeyDictionary[Any, Graph] = weakref.WeakKeyDictionary()  # by the traces that are under way
_outside: list[Graph] = []


def graph_at_hand() -> Graph:
    """The current graph; else one that belongs to the trace under way, or to nothing."""
    graph, trace = current_graph(), current()
    if graph is not None:
        return graph
    if trace is not None:
        return _elsewhere.setdefault(trace, Graph())
    if not _outside:
        _outside.append(Graph())
    return _outside[0]


def default_graph() -> Graph:
    """The current graph.

    Raises:
        RuntimeError: ops run at once.
    """
    graph = current_graph()
    if graph is None:
        raise RuntimeError("There is no default graph: ops run at once. Use `with tf.compat.v1.Graph().as_default()`, "
                           "or tf.compat.v1.disable_eager_execution() at the start of the program.")
    return graph


def graph_with(variable: Any) -> Graph | None:
    """The graph that a variable was made in, or that has taken it up; None if there is none."""
    graph = current_graph()
    if graph is not None and id(variable) in graph.initial:
        return graph
    reference = getattr(variable, "_graph", None)
    return None if reference is None else reference()


def graph_of(variable: Any) -> Graph:
    """The graph that a variable was made in.

    Raises:
        RuntimeError: it was made where ops run at once.
    """
    graph = graph_with(variable)
    if graph is None:
        raise RuntimeError(f"{variable.name} was not made in a graph: ops ran at once")
    return graph


@public
def reset_default_graph() -> None:
    """Begin a new default graph."""
    global _open
    if _open is not None:
        _open.close()
        _open = contextlib.ExitStack()
        _open.enter_context(Graph().as_default())
