"""Members of variables for programs that build graphs and run them in sessions: `initializer`, `op`, `eval`, `load`.

Graphs and sessions are made above (`twofold.compat.v1`), which puts itself into `front` when it is loaded. Without it
there are no sessions, and these methods say so.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from .tensor import NumpyValue, Tensor

__all__ = ["SessionMethods", "front"]

OfGraph: TypeAlias = Any  # of `twofold.compat.v1`, a room above: a graph, an operation

#: the object that answers for graphs and sessions; None until `twofold.compat.v1` is loaded
front: list[OfGraph] = []


class SessionMethods:
    """The part of `tf.Variable` that belongs to graphs and sessions."""

    __slots__ = ()

    @property
    def op(self) -> OfGraph:
        """The operation of the variable in a graph, which has its name."""
        return _front("op").operation_of(self)

    @property
    def graph(self) -> OfGraph:
        """The graph that the variable was made in."""
        return _front("graph").graph_of(self)

    @property
    def initializer(self) -> OfGraph:
        """The operation that gives the variable its first value; None where it has that, since ops ran at once."""
        return _front("initializer").initializer_of(self)

    def initialized_value(self) -> Tensor:
        """The value, or the first value where none was given yet.

        Raises:
            RuntimeError: it was not made in a graph.
        """
        return _front("initialized_value").initialized_value_of(self)

    def eval(self, session: object = None) -> NumpyValue:
        """The value as a NumPy array.

        Args:
            session: the session to run; by default the current one.
        Raises:
            ValueError: there is none.
        """
        return _front("eval").value_in(self, session)

    def load(self, value: object, session: object = None) -> None:
        """Set the value from outside of the graph.

        Args:
            value: of the variable's dtype and shape.
            session: the session that the value is for; by default the current one.
        Raises:
            ValueError: there is no session, or the value does not fit.
        """
        _front("load").load_into(self, value, session)


def _front(what: str) -> OfGraph:
    if not front:
        raise RuntimeError(f"tf.Variable.{what} is not supported when eager execution is enabled: it belongs to the "
                           "graphs of tf.compat.v1")
    return front[0]
