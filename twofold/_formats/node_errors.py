"""Errors of nodes in models that others wrote: what a node that makes no sense leads to, and how it is told."""

from __future__ import annotations

from twofold.ir.errors import InvalidArgumentError, OpError

__all__ = ["FAULTS", "NodeError", "told"]

#: what nodes that make no sense lead to, beside errors of ops
FAULTS = (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError, ArithmeticError)


class NodeError(Exception):
    """A node of a model cannot be run.

    Attributes:
        node: what messages call it.
        cause: the error; of a node within another, that of the inner one.
    """

    node: str
    cause: Exception

    def __init__(self, node: object, cause: Exception) -> None:
        self.node, self.cause = (cause.node, cause.cause) if isinstance(cause, NodeError) else (str(node), cause)
        super().__init__(self.node, self.cause)

    def __str__(self) -> str:
        return f"{self.node}: {self.cause}"


def told(error: NodeError, source: str) -> Exception:
    """The error for a node: of the class that its op raised, with the node's name and that of the model."""
    cause = error.cause
    text = f"{source}: {error.node}: {str(cause)[:1000]}"
    return type(cause)(None, None, text) if isinstance(cause, OpError) else InvalidArgumentError(text)
