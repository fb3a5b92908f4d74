"""Locks that survive a fork, for the whole library: `Lock`, `RLock` and `Condition` as in `threading`.

A child has the thread that forked and no other. A lock that another thread held at that moment would never be given
back, so in the child every lock made here that the child's thread does not hold is new. What such a lock protects must
be sound whenever Python code can be interrupted, or is put right by a function of the module's own, which
`os.register_at_fork` calls; those that are to find nobody at work wait before the fork (`settled_before_fork`).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import TypeVar

__all__ = ["Condition", "Lock", "RLock", "settled_before_fork"]

_PATIENCE = 30.0  # seconds that a fork waits at most for each of the others' locks

_Lock = TypeVar("_Lock", bound="threading.Lock | threading.RLock")

_all: weakref.WeakSet[threading.Lock | threading.RLock] = weakref.WeakSet()
_settling: list[Callable[[], threading.RLock | None]] = []
_acquired: list[threading.RLock] = []


def Lock() -> threading.Lock:
    """A lock that its holder cannot take again. User code must not run while it is held: it might fork."""
    return _registered(threading.Lock())


def RLock() -> threading.RLock:
    """A lock that its holder may take again."""
    return _registered(threading.RLock())


def Condition(lock: threading.RLock | None = None) -> threading.Condition:
    """A condition with an `RLock` of its own, or with one that was made here."""
    return threading.Condition(RLock() if lock is None else lock)


def settled_before_fork(lock: Callable[[], threading.RLock | None]) -> None:
    """Have forks wait until nobody else holds a lock, of those who are not stuck with it.

    Args:
        lock: gives an `RLock`, or None where there is nothing to wait for. Those that are given last are taken first:
            who holds a lock of an upper floor, which is loaded later, may take one of a floor below.
    """
    _settling.append(lock)


def _registered(lock: _Lock) -> _Lock:
    _all.add(lock)
    return lock


def _before() -> None:
    for get in reversed(_settling):
        lock = get()
        if lock is not None and lock.acquire(timeout=_PATIENCE):
            _acquired.append(lock)


def _after_in_parent() -> None:
    while _acquired:
        _acquired.pop().release()


def _after_in_child() -> None:
    _after_in_parent()
    for lock in list(_all):
        if not (hasattr(lock, "_is_owned") and lock._is_owned()):
            lock._at_fork_reinit()  # type: ignore[union-attr]  # as `threading` does; no stub names it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
