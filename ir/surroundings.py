"""What blocks around a call say, by which the same Python computes something else: as those of mixed layers do.

It is known by names. Whoever keeps what a call did, to take it for later calls, keeps what was `around` it beside it;
whoever repeats a call does so in `again`. Native code that looks at arguments alone must be left out in such blocks:
`tells` says whom to tell of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

__all__ = ["Around", "again", "around", "said", "tells", "within"]

Around: TypeAlias = tuple[tuple[str, Hashable], ...]  # names and values, in the order of the names

_around: ContextVar[Around] = ContextVar("twofold_surroundings", default=())
around: Callable[[], Around] = _around.get
_told: list[Callable[[int], None]] = []


def tells(tell: Callable[[int], None]) -> None:
    """Hands in what is told of blocks: 1 where one begins, -1 where it ends."""
    _told.append(tell)


def said(name: str) -> Any:
    """What the blocks around say under a name; None where they say nothing."""
    held = _around.get()
    return dict(held).get(name) if held else None


@contextmanager
def again(what: Around) -> Iterator[None]:
    """A block around which is what was around another call."""
    token = _around.set(what)
    for tell in _told:
        tell(1)
    try:
        yield
    finally:
        for tell in _told:
            tell(-1)
        _around.reset(token)


def within(**values: Hashable) -> AbstractContextManager[None]:
    """A block that says these values, beside what is said around it."""
    return again(tuple(sorted({**dict(_around.get()), **values}.items())))
