"""What running something again and again leaves allocated."""

from __future__ import annotations

import gc
import itertools
import tracemalloc
from collections.abc import Callable
from typing import Any


def memory_after(step: Callable[[], Any], steps: int) -> int:
    """Bytes that `steps` further steps leave allocated, when some have warmed up every cache.

    It is the least of three times: steps that leave something do so every time, a table of the process that other tests
    have filled, and that doubles meanwhile, does so once.
    """
    for _ in range(200):
        step()
    gc.collect()
    tracemalloc.start()
    try:
        allocated = []
        for count in (200, steps, steps, steps):
            for _ in range(count):
                step()
            gc.collect()
            allocated.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    return min(after - before for before, after in itertools.pairwise(allocated))
