"""A fork-join whose "threads" take their parts one after the other, in an order that a test says."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from twofold.runtime import compiled
from twofold.runtime.compiled import Native

_FORK = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)
_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


def _in_order(order: Sequence[int]) -> Any:
    """A fork-join whose parts run here, as many as there are numbers in `order`."""
    def fork(kernel: int, total: int, args: int, count: int, context: int) -> int:
        run, count = _KERNEL(kernel), len(order)
        results = [run(total * n // count, total * (n + 1) // count, args) for n in order]
        return next((status for status in results if status), 0)
    return _FORK(fork)


def run(native: Native, arrays: Sequence[np.ndarray], sizes: dict[str, int], order: Sequence[int]) -> list[np.ndarray]:
    """The outputs for copies of some arrays, by as many threads as there are numbers in `order`."""
    fork, count = _in_order(order), ctypes.c_int64(len(order))
    native._table[compiled._BEFORE] = ctypes.cast(fork, ctypes.c_void_p).value or 0
    native._table[compiled._BEFORE + 2] = ctypes.addressof(count)
    return native([a.copy() for a in arrays], sizes)
