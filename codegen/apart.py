"""Work that no signal may end halfway: it runs in a thread of its own, where Python handles none.

A handler of a signal, such as that of Ctrl-C, may raise between any two instructions of Python in the main thread. In
the middle of llvmlite's code that leaves an object of LLVM's that is freed, but not noted to be, or has two owners;
then it is freed again, which ends the process. So whatever makes or frees such objects goes through `apart`. The main
thread waits meanwhile, and what a handler raises ends its waiting at once; the work then comes to its end unseen. Other
threads, which are given no signals, do the work themselves. `Thread.start` is such work, too: interrupted, it may leave
the new thread waiting for ever.

The end of the process waits for work that is under way, and so do forks (`settle`), whose child would find locks that
nobody gives back.
"""

from __future__ import annotations

import _thread
import atexit
import functools
import os
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Generic, ParamSpec, TypeVar

__all__ = ["apart", "settle"]

P = ParamSpec("P")
R = TypeVar("R")

_LOOK = 0.05  # seconds between two looks at signals, besides those that wake the thread
_PATIENCE = 30.0  # seconds that a fork, and the end of the process, wait at most for each call

_working: set[_SeparateCall[Any]] = set()


def apart(function: Callable[P, R]) -> Callable[P, R]:
    """`function` as one that no signal ends: what it raises itself, it raises as ever."""
    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if threading.get_ident() != threading.main_thread().ident:
            return function(*args, **kwargs)
        separate = _SeparateCall(functools.partial(function, *args, **kwargs))
        return separate.result() if separate.start() else function(*args, **kwargs)
    return call


def settle() -> None:
    """Waits until all work is done that other threads are at: for `runtime/locks.py: settled_before_fork`."""
    for call in list(_working):
        if call.thread != threading.get_ident() and call.done.acquire(timeout=_PATIENCE):
            call.done.release()


class _SeparateCall(Generic[R]):
    """One call, in a thread of its own."""

    def __init__(self, task: Callable[[], R]) -> None:
        self.task, self.context = task, copy_context()
        self.thread = 0  # its number
        self.done = threading.Lock()  # held until there is an outcome
        self.done.acquire()
        self.outcome: R | None = None
        self.error: BaseException | None = None

    def start(self) -> bool:
        """Whether there is a thread for it: none is to be had where the process is about to end."""
        _working.add(self)
        try:
            _thread.start_new_thread(self.run, ())
        except RuntimeError:
            _working.discard(self)
            return False
        return True

    def run(self) -> None:
        self.thread = threading.get_ident()
        try:
            self.outcome = self.context.run(self.task)
        except BaseException as error:  # noqa: BLE001 (it is raised again, in the thread that asked)
            self.error = error
        finally:
            del self.task, self.context
            _working.discard(self)
            self.done.release()

    def result(self) -> R:
        while not self.done.acquire(timeout=_LOOK):  # a signal that comes before the thread sleeps does not wake it
            pass
        self.done.release()
        if self.error is not None:
            try:
                raise self.error
            finally:
                self.error = None  # which holds this frame
        return self.outcome  # type: ignore[return-value]


atexit.register(settle)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_working.clear)
