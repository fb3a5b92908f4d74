"""Which replica of a strategy code runs for (`twofold/distribute`), for those who need no more than that: what draws
random numbers, losses, optimizers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, NamedTuple

__all__ = ["Replica", "alike", "assigning_alike", "here", "own", "reading_own", "scope"]


class Replica(NamedTuple):
    """A replica: its number, and how many there are."""

    number: int
    of: int


#: the replica of this context
here: ContextVar[Replica] = ContextVar("replica", default=Replica(0, 1))  # noqa: B039 - it cannot be changed
#: the strategy in whose scope this context is, or None
scope: ContextVar[Any] = ContextVar("strategy_scope", default=None)
#: see `assigning_alike`
alike: ContextVar[bool] = ContextVar("assigned_alike", default=False)
#: see `reading_own`
own: ContextVar[bool] = ContextVar("read_own", default=False)


def assigning_alike() -> AbstractContextManager[None]:
    """A block in which what a replica assigns is its own affair, as what all assign alike after gradients were summed:
    it is not reduced over replicas. Where there is one, the block costs nothing."""
    return _ALONE if here.get().of == 1 else _assigning_alike()


@contextmanager
def _assigning_alike() -> Iterator[None]:
    token = alike.set(True)
    try:
        yield
    finally:
        alike.reset(token)


_ALONE = nullcontext()


@contextmanager
def reading_own() -> Iterator[None]:
    """A block, or a function, that one process may run without the others: what it reads outside of replicas is joined
    over those of this process alone."""
    token = own.set(True)
    try:
        yield
    finally:
        own.reset(token)
