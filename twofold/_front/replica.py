"""Which replica of a strategy code runs for (`twofold/distribute`), for those who need no more than that: what draws
random numbers, losses, optimizers."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, NamedTuple

__all__ = ["Replica", "here", "scope"]


class Replica(NamedTuple):
    """A replica: its number, and how many there are."""

    number: int
    of: int


#: the replica of this context
here: ContextVar[Replica] = ContextVar("replica", default=Replica(0, 1))  # noqa: B039 - it cannot be changed
#: the strategy in whose scope this context is, or None
scope: ContextVar[Any] = ContextVar("strategy_scope", default=None)
