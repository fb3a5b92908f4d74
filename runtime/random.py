"""The streams of random numbers that `tf.random.set_seed` governs.

A stream is a Philox key and how many blocks have been taken from it. Draws without a seed of their own share one
stream; a draw with an op seed has a stream that the global seed, the op seed and its purpose decide. Setting the global
seed starts all of them anew. Unless it is set, the shared stream's key comes from the operating system, and streams of
op seeds use a fixed global seed. Streams belong to the process; threads may draw at once, each from its own part.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from twofold.ir import math_random

from . import locks

__all__ = ["set_seed", "take", "integer", "named_key", "fresh_key", "position", "go_back",
           "DEFAULT_SEED"]

DEFAULT_SEED = 87654321
_WORD, _HALF = (1 << 64) - 1, (1 << 32) - 1

_lock = locks.Lock()
_seed: int | None = None
_shared_key: int | None = None
_taken: dict[tuple[str, int] | None, int] = {}


def fresh_key() -> int:
    """A key from the operating system's source of randomness."""
    return int.from_bytes(os.urandom(8), "little")


def set_seed(seed: int | None) -> None:
    """Sets the global seed and starts all streams anew; None goes back to unpredictable ones."""
    global _seed, _shared_key
    with _lock:
        _seed, _shared_key = seed, None
        _taken.clear()


def take(blocks: int, seed: int | None, purpose: str, mix: Callable[..., int]) -> np.ndarray:
    """The next part of a stream, `blocks` long, as the int64 vector that draws take.

    Args:
        seed: the op seed, or None for the shared stream.
        purpose: draws with one op seed have a stream for each of these.
        mix: makes a key of integers.
    """
    global _shared_key
    name = None if seed is None else (purpose, seed)
    with _lock:
        if name is None:
            if _shared_key is None:
                _shared_key = fresh_key() if _seed is None else mix(_seed & _WORD)
            key = _shared_key
        else:
            key = named_key(name[1], purpose, mix)
        low = _taken.get(name, 0)
        _taken[name] = low + max(blocks, 0)  # a draw of a negative size is refused later, and takes nothing
    return np.array([low & _WORD, low >> 64, key], np.uint64).view(np.int64)


def position(seed: int | None, purpose: str) -> int:
    """How many blocks have been taken from a stream; see `take`."""
    return _taken.get(None if seed is None else (purpose, seed), 0)


def go_back(seed: int | None, purpose: str, before: int, blocks: int) -> None:
    """Undo the draws of a call that was refused, unless somebody else has drawn from the stream meanwhile.

    Args:
        seed, purpose: which stream it is, see `take`.
        before: its position before the call.
        blocks: how many the call has taken.
    """
    name = None if seed is None else (purpose, seed)
    with _lock:
        if _taken.get(name, 0) == before + blocks:
            _taken[name] = before


class _Word(int):
    """A uint32 with the operations of the generator."""

    def __add__(self, other: int) -> _Word:
        return _Word(int(self) + other & _HALF)

    def __mul__(self, other: int) -> _Word:
        return _Word(int(self) * other & _HALF)

    def __xor__(self, other: int) -> _Word:
        return _Word(int(self) ^ other)

    def mulhi(self, other: int) -> _Word:
        """The high half of the product."""
        return _Word(int(self) * other >> 32)


def integer(low: int, high: int, mix: Callable[..., int]) -> int:
    """The next integer in [low, high) of the shared stream: what a draw of one element gives, without a kernel.

    Args:
        mix: see `take`.
    """
    start, above, key = [int(word) & _WORD for word in take(1, None, "integer", mix)]
    halves = [_Word(word >> shift & _HALF) for word in (start, above, key) for shift in (0, 32)]
    words: Any = math_random.philox(_Word, halves[:4], halves[4:])  # type: ignore[arg-type]  # numbers, not scalars
    # The fraction of 128 bits times the span, as `codegen/kernels/random.py: integers` has it.
    first, second = [int(words[n]) | int(words[n + 1]) << 32 for n in (0, 2)]
    return low + ((first << 64 | second) * (high - low) >> 128)


def named_key(seed: int, purpose: str, mix: Callable[..., int]) -> int:
    """The key of the stream of an op seed: by the global seed, the op seed and the purpose; see `take`."""
    base = DEFAULT_SEED if _seed is None else _seed
    return mix(base & _WORD, seed & _WORD, zlib.crc32(purpose.encode()))


def _after_fork() -> None:
    """A child with an unseeded stream must not repeat its parent's numbers."""
    global _shared_key
    if _seed is None:
        _shared_key = None


os.register_at_fork(after_in_child=_after_fork)
