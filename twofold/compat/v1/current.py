"""The session of `eval` and `run` in a context: what tensors and operations are run in that are given none."""

from __future__ import annotations

import contextvars
from typing import Any

__all__ = ["default_session", "session_or_default"]

default_session: contextvars.ContextVar[Any] = contextvars.ContextVar("v1_session", default=None)


def session_or_default(session: Any) -> Any:
    """The session given, or that of the context.

    Raises:
        ValueError: there is none.
    """
    chosen = default_session.get() if session is None else session
    if chosen is None:
        raise ValueError("Cannot run this: no default session is registered. Use `with sess.as_default()` or pass an "
                         "explicit session")
    return chosen
