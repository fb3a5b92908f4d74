"""Programs traced for given arrays, whose "threads" take their parts one after the other, in an order that a test
says; and the comparison of their results by bits."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import twofold as tf
from twofold.codegen.plan import Shares
from twofold.runtime import compiled, threads
from twofold.runtime.compiled import Native
from twofold.runtime.cpu import CPU
from twofold.tracer.traced import Traced, trace

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


def traced_for(fn: Callable[..., Any], arrays: Sequence[np.ndarray],
               shapes: Sequence[Sequence[int | None]] | None = None) -> Traced:
    """The trace of a function for arrays like these, or for other shapes, of which sizes may be unknown."""
    return trace(fn, [tf.TensorSpec(a.shape if shapes is None else shapes[n], a.dtype) for n, a in enumerate(arrays)],
                 "f")


@contextmanager
def three_share_all(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Plans that are made inside are for three threads, which share even small steps."""
    monkeypatch.setattr(CPU, "shares", lambda self, work: Shares(work, 0, 1))
    threads.set_num_threads(3)
    yield
    threads.set_num_threads(0)


def same_bits(got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> None:
    """Requires arrays to be equal to the bit, but for which NaN a NaN is."""
    assert [(g.shape, g.dtype) for g in got] == [(w.shape, w.dtype) for w in want]
    for g, w in zip(got, want, strict=True):
        if g.dtype.kind not in "iub":
            g, w = (np.where(np.isnan(x), np.array(np.nan, x.dtype), x) for x in (g, w))
        assert g.tobytes() == w.tobytes()
