"""`tf.summary.experimental`: the step of a context, and summaries made elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import twofold as tf
from twofold._front.api import block, describe, public
from twofold._front.namespace import publish

from . import ops
from .writer import steps

__all__ = ["get_step", "set_step", "summary_scope", "write_raw_pb"]


@public
def get_step() -> Any:
    """The step that summaries take where they are given none; None where there is none.

    >>> import twofold as tf
    >>> tf.summary.experimental.set_step(3)
    >>> tf.summary.experimental.get_step()
    3
    >>> tf.summary.experimental.set_step(None)
    """
    return steps.get()


@public
def set_step(step: Any) -> None:
    """Say which step summaries take where they are given none.

    Args:
        step: an integer, or a variable, which is read when a summary is written; None for none.

    >>> import twofold as tf
    >>> tf.summary.experimental.set_step(None)
    """
    steps.set(step)


@block
def summary_scope(name: str, default_name: str = "summary", values: Any = None) -> Iterator[tuple[str, str]]:
    """A name scope for a summary.

    `values` has no effect.

    Returns:
        The tag and the scope.

    >>> import twofold as tf
    >>> with tf.name_scope("a"), tf.summary.experimental.summary_scope("b") as (tag, scope):
    ...     print(tag, scope)
    a/b a/b/
    """
    name = name or default_name
    tag = ops.tag_of(name)
    with tf.name_scope(re.sub(r"[^-_/.A-Za-z0-9]", "", name) or default_name) as scope:
        yield tag, scope


@public
def write_raw_pb(tensor: Any, step: Any = None, name: str | None = None) -> Any:
    """Write a `Summary` message that was made elsewhere.

    Args:
        tensor: its bytes.
        step: an integer, tensor or variable; by default the context's.
        name: accepted, without effect.
    Returns:
        A bool tensor: whether it was written.
    Raises:
        TypeError: it is no bytes.

    >>> import twofold as tf
    >>> bool(tf.summary.experimental.write_raw_pb(b"", step=1))  # without a writer
    False
    """
    if tf.is_tensor(tensor):
        tensor = tensor.numpy()
    if not isinstance(tensor, (bytes, bytearray, memoryview)):  # of an integer or iterable Python makes other bytes
        raise TypeError(f"tensor must be the bytes of a message; got {describe(tensor)}.")
    return ops.raw(bytes(tensor), step)


publish(__name__)
