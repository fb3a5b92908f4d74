"""The two tiers of a program's code, and how a program gets from the first to the second.

Code of the *first tier* is made at little cost and runs at a fraction of the speed; that of the second is LLVM's best,
and takes several times as long to make. A program whose runs do little begins in the first. It counts what its calls
do, and when that is enough for better code to repay its making, a thread in the background makes it of the same
instructions, so that results are the same to the bit. The next call then runs it; calls that are at work end in the
code in which they began, which stays for as long as the program does.

`TWOFOLD_TIERS=0` has everything made in the second tier at once, as is a program whose one run does much, and as all
are elsewhere than on x86-64. Which code that is and where it lies is the affair of `codegen/llvm_module.py` and
`compiled.py`.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from twofold.codegen import target as targets
from twofold.codegen.apart import apart
from twofold.ir.dims import Dim, DimLike

from . import locks

__all__ = ["AT_ONCE", "LEAST", "NEVER", "at_work", "budget", "charge", "enabled", "request", "wait"]

AT_ONCE = 1 << 22  # simple operations of a run from which the first tier is left out
NEVER = 1 << 62  # what calls of a program may count for which no better code is to be made
_BUDGET, _OF_BYTE = 1 << 24, 1 << 11  # what others may: at least, and for each byte of what code is made of
LEAST = _BUDGET >> 6  # what a call counts besides its work
_MOST = _BUDGET >> 2  # what it counts of its work, such as that of loops, which is unknown
_AFTER_FORK = 0.2  # seconds until a child does what its parent left to be done
_NICE = 5  # of the thread in the background: programs go before it


def enabled() -> bool:
    """Whether there is a first tier: on x86-64, but not with TWOFOLD_TIERS=0."""
    return targets.architecture() == "x86_64" and os.environ.get("TWOFOLD_TIERS", "1") != "0"


def charge(work: DimLike, own: DimLike) -> int:
    """What a call counts; where only a call tells its work, what it counts besides that, negated.

    Args:
        work, own: see `description.py: Description`.
    """
    if isinstance(work, Dim):
        return -LEAST
    return min(int(work), _MOST if isinstance(own, Dim) else int(own)) + LEAST


def budget(modules: Iterable[bytes]) -> int:
    """What calls may count until better code repays its making.

    Args:
        modules: what it is made of.
    """
    return max(_BUDGET, _OF_BYTE * sum(map(len, modules)))


class _Background:
    """The thread that makes better code, which lives while there is some to be made.

    Attributes:
        waiting: what is to be done, and when at the earliest, by the clock `time.monotonic`.
        hurried: whether somebody waits for all of it now.
    """

    def __init__(self) -> None:
        self.waiting: list[tuple[float, Callable[[], None]]] = []
        self.thread: threading.Thread | None = None
        self.changed = locks.Condition()
        self.working = locks.RLock()  # held while code is made: before a fork, that is waited for
        self.closed = self.hurried = False

    def add(self, task: Callable[[], None], delay: float) -> None:
        """Has something done, after some seconds; nothing where the process is about to end, or has no more
        threads."""
        with self.changed:
            if not self.closed:
                self.waiting.append((time.monotonic() + delay, task))
                self.start()

    def start(self) -> None:
        """Starts the thread, where there is none, or tells it of what is new."""
        self.changed.notify_all()
        if self.thread is None:
            self.thread = threading.Thread(target=self.run, name="twofold-tiers", daemon=True)
            try:
                apart(self.thread.start)()
            except RuntimeError:
                self.thread = None

    def finish(self) -> None:
        """Waits until all is done, and has it begin at once."""
        with self.changed:
            self.hurried = True
            if self.waiting:
                self.start()
            self.changed.wait_for(lambda: self.thread is None)
            self.hurried = False

    def until(self, done: Callable[[], bool]) -> None:
        """Waits until something is done, or all is."""
        with self.changed:
            self.changed.wait_for(lambda: self.thread is None or done())

    def is_due(self) -> bool:
        """Waits until it is time for something; False where there is nothing, and the thread ends."""
        with self.changed:
            while self.waiting:
                left = min(due for due, _ in self.waiting) - time.monotonic()
                if left <= 0 or self.hurried:
                    return True
                self.changed.wait(left)
            self.thread, self.hurried = None, False
            self.changed.notify_all()
            return False

    def next(self) -> Callable[[], None]:
        """What is to be done next."""
        with self.changed:
            if not self.waiting:  # as the process is about to end
                return lambda: None
            first = min(self.waiting, key=lambda entry: entry[0])
            self.waiting.remove(first)
            return first[1]

    def run(self) -> None:
        """Does what is to be done."""
        with suppress(AttributeError, OSError):  # systems on which threads have no priorities of their own
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        while self.is_due():
            with self.working:  # a child of a fork finds in `waiting` whatever has not been begun
                self.next()()
            with self.changed:
                self.changed.notify_all()

    def close(self) -> None:
        """Ends the thread, before the interpreter takes apart what it needs."""
        with self.changed:
            self.closed = True
            self.waiting.clear()
            self.changed.notify_all()
            thread = self.thread
        if thread is not None:
            thread.join()

    def begin(self) -> None:
        """In the child of a fork there is no thread: where something is to be done, it gets one of its own, which
        leaves it time to run another program instead."""
        with self.changed:
            self.thread, self.hurried = None, False
            if self.waiting and not self.closed:
                later = time.monotonic() + _AFTER_FORK
                self.waiting = [(max(due, later), task) for due, task in self.waiting]
                self.start()


_background = _Background()
atexit.register(_background.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_background.begin)


def at_work() -> threading.RLock:
    """The lock that is held while code is made; who waits for it may hold none of those that compilers need."""
    return _background.working


def request(task: Callable[[], None], delay: float = 0.0) -> None:
    """Has the background make better code.

    Args:
        task: makes it, and raises nothing.
        delay: seconds until then, unless somebody waits for it.
    """
    _background.add(task, delay)


def wait(done: Callable[[], bool] | None = None) -> None:
    """Waits until all better code is made that was asked for.

    Args:
        done: tells that what the caller waits for is made, of what was asked for without a delay; by default all is.
    """
    if done is None:
        _background.finish()
    else:
        _background.until(done)
