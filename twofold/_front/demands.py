"""Demands on values that only running may tell: an error at once where the values are there, else when they are."""

from __future__ import annotations

from typing import Any

import twofold as tf

__all__ = ["demand"]


def demand(condition: Any, message: str) -> None:
    """Raise unless a condition holds.

    Args:
        condition: a bool scalar tensor.
        message: what is wrong otherwise.
    Raises:
        InvalidArgumentError: it does not hold; in a trace, when the function runs.
    """
    if tf.is_symbolic_tensor(condition):
        tf.debugging.Assert(condition, [message])
    elif not bool(condition):
        raise tf.errors.InvalidArgumentError(None, None, message)
