"""Threads that take turns after every few steps, and collections of garbage that let others go on."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["InACycle", "restless"]


class InACycle:
    """Garbage whose finalizer is Python code, so that a collection may let other threads go on."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        for _ in range(20):
            pass


@contextmanager
def restless() -> Iterator[None]:
    """A block in which threads take turns after a microsecond, and garbage is looked for after every 20 objects."""
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(20)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*thresholds)
