"""Name scopes: the prefix of the names of variables made within a `with` block.

The scope is per context, so that threads and tasks do not see one another's. `Variable` asks for the full name once,
when it is made. Within a graph of TensorFlow 1, a scope whose name is taken gets a number (`Trace.unique_scope`).
"""

from __future__ import annotations

import contextvars
import re

from twofold.ir.errors import describe
from twofold.ir.op import tracing

__all__ = ["full_name", "name_scope"]

_scope: contextvars.ContextVar[str] = contextvars.ContextVar("name_scope", default="")
# in graphs, as TensorFlow has it (tensorflow/python/framework/ops.py); outside of them every string is a scope
_AT_THE_ROOT = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*\Z")
_WITHIN = re.compile(r"[A-Za-z0-9_.\\/>-]*\Z")


def full_name(name: str) -> str:
    """`name` with the scope of this context before it.

    Raises:
        TypeError: it is no string.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a string; got {describe(name)}.")
    return _scope.get() + name


class name_scope:
    """A scope of names: variables made within it have its name and a slash before their own.

    Args:
        name: the scope's name. One that ends in a slash is taken as it is, and not put into the scope around it; an
            empty one leaves every scope.
    Raises:
        ValueError: the name is not a string; or, while a function is traced, not one of letters, digits and
            `_ . \\ / > -`, where the first scope begins with none of `_ \\ / > -`.

    >>> import twofold as tf
    >>> with tf.name_scope("encoder"):
    ...     v = tf.Variable(1.0, name="w")
    >>> v.name
    'encoder/w:0'
    """

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise ValueError(f"name for name_scope must be a string, not {type(name).__name__}")
        self._name = name
        self._tokens: list[contextvars.Token[str]] = []

    @property
    def name(self) -> str:
        """The name as given."""
        return self._name

    def __enter__(self) -> str:
        name = self._name
        if name and tracing() is not None and (_WITHIN if _scope.get() else _AT_THE_ROOT).match(name) is None:
            raise ValueError(f"{name!r} is not a valid {'' if _scope.get() else 'root '}scope name")
        inner = name
        if name and not name.endswith("/"):
            # Other interpreters than traces, such as the one that gradient rules run in, have no such method.
            unique = getattr(tracing(), "unique_scope", str)
            inner = f"{unique(_scope.get() + name)}/"
        self._tokens.append(_scope.set(inner))
        return inner

    def __exit__(self, *exc_info: object) -> None:
        _scope.reset(self._tokens.pop())
