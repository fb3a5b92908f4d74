"""Philox's words in Python, for what draws few of them or has no kernels: seeds, and orders of datasets.

Many blocks are made by the body of `ir/math_random.py` on arrays of uint32; one alone, which takes NumPy longer than
Python, by integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import math_random

__all__ = ["block", "blocks", "first_fractions", "scrambled"]

_HALF, _WORD = (1 << 32) - 1, (1 << 64) - 1
_SCRAMBLE = 0x3EC8F720, 0x02461E29  # as in `math_draws.py`


class _Arrays:
    """The one instruction of Philox that arrays have no operator for."""

    @staticmethod
    def mulhi(x: np.ndarray, y: int) -> np.ndarray:
        return (x.astype(np.uint64) * np.uint64(y) >> np.uint64(32)).astype(np.uint32)


def _halves(x: np.ndarray) -> list[np.ndarray]:
    return [(x & np.uint64(_HALF)).astype(np.uint32), (x >> np.uint64(32)).astype(np.uint32)]


def _philox(counter: list[np.ndarray], key: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    arrays: Any = _Arrays
    made: Any = math_random.philox(arrays, counter, key)  # type: ignore[arg-type]  # arrays, not scalars
    return tuple(made)


def block(low: int, high: int, key: int) -> tuple[int, int, int, int]:
    """The words of the block at a counter of two 64-bit halves, under a key of 64 bits."""
    c0, c1, c2, c3 = low & _HALF, low >> 32 & _HALF, high & _HALF, high >> 32 & _HALF
    k0, k1 = key & _HALF, key >> 32 & _HALF
    for _ in range(math_random.ROUNDS):
        p, q = c0 * math_random.MULTIPLIERS[0], c2 * math_random.MULTIPLIERS[1]
        c0, c1, c2, c3 = q >> 32 ^ c1 ^ k0, q & _HALF, p >> 32 ^ c3 ^ k1, p & _HALF
        k0, k1 = k0 + math_random.WEYL[0] & _HALF, k1 + math_random.WEYL[1] & _HALF
    return c0, c1, c2, c3


def blocks(low: int, high: int, key: int, start: int, count: int) -> np.ndarray:
    """The words of `count` blocks of a stream from number `start` on, uint32 [count, 4]; the integers are of 64 bits,
    and no carry passes on to `high` between the blocks."""
    first = low + (high << 64) + start
    places = np.uint64(first & _WORD) + np.arange(count, dtype=np.uint64)
    above, keys = (np.full(1, x & _WORD, np.uint64) for x in (first >> 64, key))
    return np.stack(np.broadcast_arrays(*_philox(_halves(places) + _halves(above), _halves(keys))), axis=1)


def _mixed(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, ...]:
    """The block that seeds (uint64) are mixed to: see `math_draws.scrambled`."""
    return _philox(_halves(first) + _halves(second), [np.full(1, k, np.uint32) for k in _SCRAMBLE])


def scrambled(first: int, second: int) -> tuple[int, int, int]:
    """(low, high, key) of the stream of a stateless draw, from its two seeds of 64 bits."""
    words = block(first, second, _SCRAMBLE[0] | _SCRAMBLE[1] << 32)
    return 0, words[2] | words[3] << 32, words[0] | words[1] << 32


def first_fractions(seeds: np.ndarray) -> np.ndarray:
    """The first float64 in [0, 1) of the stateless draw for each of many seeds, rows of two integers."""
    mixed = _mixed(*[np.ascontiguousarray(column).astype(np.uint64) for column in seeds.T])
    none = np.zeros_like(mixed[0])
    high, low, *_ = _philox([none, none, *mixed[2:]], list(mixed[:2]))
    mantissa = (high & np.uint32(0xFFFFF)).astype(np.uint64) << np.uint64(32) | low
    return (mantissa | np.uint64(0x3FF << 52)).view(np.float64) - 1.0
