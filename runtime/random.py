"""The streams of random numbers that `tf.random.set_seed` governs.

A stream is a Philox key and how many blocks have been taken from it. Draws without a seed of their own share one
stream, of which each purpose reads bits of its own: its blocks are counted together, and the key is another for each
purpose. A draw with an op seed has a stream that the global seed, the op seed and its purpose decide. Setting the
global seed starts all of them anew. Unless it is set, the shared stream's key comes from the operating system, and
streams of op seeds use a fixed global seed. Streams belong to the process; threads may draw at once, each from its own
part.

A call that is refused gives back what it drew. The latest draws are noted in order; `mark` says how many there were
when a call began, and `give_back` undoes those that the same thread has made since. Public functions do so where an
error leaves them (`leaving.py`). Draws whose results live on although the call fails are kept: by `keep`.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from twofold.ir import math_random

from . import locks

__all__ = ["set_seed", "share", "take", "turn", "integer", "named_key", "fresh_key", "mark", "give_back", "keep",
           "refusable", "count_address", "DEFAULT_SEED"]

DEFAULT_SEED = 87654321
_WORD, _HALF = (1 << 64) - 1, (1 << 32) - 1

_lock = locks.Lock()
_seed: int | None = None
_shared_key: int | None = None
_Name: TypeAlias = "tuple[str, int] | None"  # of a stream: the purpose and the op seed, or None for the shared one
_taken: dict[_Name, int] = {}
_turns: dict[str, int] = {}
_NOTED = 1024  # draws; a call that has drawn more often was not refused, but failed at its work
_notes: collections.deque[tuple[int, int, _Name, int, int]] = collections.deque(maxlen=_NOTED)
_lost = 0  # the number of the latest draw that is no longer noted
_count = ctypes.c_int64(0)  # of all draws; native code reads it
_kept = threading.local()  # `until`: the draws of this thread up to that number stay drawn


def fresh_key() -> int:
    """A key from the operating system's source of randomness."""
    return int.from_bytes(os.urandom(8), "little")


def set_seed(seed: int | None) -> None:
    """Sets the global seed and starts all streams anew; None goes back to unpredictable ones."""
    global _seed, _shared_key
    with _lock:
        _seed, _shared_key = seed, None
        _taken.clear()
        _notes.clear()


def share(key: int) -> None:
    """Has the shared stream begin with a key, such as that of other processes, until a global seed is set."""
    global _shared_key
    with _lock:
        if _seed is None:
            _shared_key = key
            _taken.clear()
            _notes.clear()


def take(blocks: int, seed: int | None, purpose: str, mix: Callable[..., int]) -> np.ndarray:
    """The next part of a stream, `blocks` long, as the int64 vector that draws take.

    Args:
        seed: the op seed, or None for the shared stream.
        purpose: draws for different ones share no bits, whether they have a seed or not.
        mix: makes a key of integers.
    """
    global _shared_key, _lost
    name = None if seed is None else (purpose, seed)
    with _lock:
        if name is None:
            if _shared_key is None:
                _shared_key = fresh_key() if _seed is None else mix(_seed & _WORD)
            key = _shared_key ^ turn(purpose, mix)
        else:
            key = named_key(name[1], purpose, mix)
        low, blocks = _taken.get(name, 0), max(blocks, 0)  # a draw of a negative size is refused later
        _taken[name] = low + blocks
        _count.value += 1
        if len(_notes) == _NOTED:
            _lost = _notes[0][0]
        _notes.append((_count.value, threading.get_ident(), name, low, blocks))
    return np.array([low & _WORD, low >> 64, key], np.uint64).view(np.int64)


def turn(purpose: str, mix: Callable[..., int]) -> int:
    """The bits that change in the shared stream's key where it is read for a purpose; see `take`."""
    bits = _turns.get(purpose)
    if bits is None:
        import zlib
        bits = _turns[purpose] = mix(zlib.crc32(purpose.encode()))
    return bits


def mark() -> int:
    """How many draws there have been: what `give_back` takes."""
    return _count.value


def count_address() -> int:
    """Where the number that `mark` gives lies, an int64."""
    return ctypes.addressof(_count)


def give_back(since: int) -> None:
    """Undo the draws that this thread has made since a mark, the latest first.

    A stream that another thread has drawn from meanwhile stays where it is, and so does everything where there were
    more draws than are noted.
    """
    if _count.value == since:
        return
    me, since = threading.get_ident(), max(since, getattr(_kept, "until", 0))
    stay = []
    with _lock:
        while _lost <= since and _notes and _notes[-1][0] > since:
            note = _notes.pop()
            _, thread, name, low, blocks = note
            if thread == me and _taken.get(name, 0) == low + blocks:
                _taken[name] = low
            elif thread != me:
                stay.append(note)
        _notes.extend(reversed(stay))


def keep() -> None:
    """Let what this thread has drawn so far stay drawn: the results live on, such as in the weights of a layer."""
    _kept.until = _count.value


@contextlib.contextmanager
def refusable() -> Iterator[None]:
    """A block that either succeeds, and keeps what was drawn in it, or fails and leaves nothing, so that all draws are
    given back."""
    since, until = mark(), getattr(_kept, "until", 0)
    try:
        yield
    except BaseException:
        _kept.until = until
        give_back(since)
        raise
    keep()


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
    """The next integer in [low, high) of the shared stream: what `tf.random.uniform` gives, without a kernel.

    Args:
        mix: see `take`.
    """
    start, above, key = [int(word) & _WORD for word in take(1, None, "uniform", mix)]
    halves = [_Word(word >> shift & _HALF) for word in (start, above, key) for shift in (0, 32)]
    words: Any = math_random.philox(_Word, halves[:4], halves[4:])  # type: ignore[arg-type]  # numbers, not scalars
    # The fraction of 128 bits times the span, as `codegen/kernels/random.py: integers` has it.
    first, second = [int(words[n]) | int(words[n + 1]) << 32 for n in (0, 2)]
    return low + ((first << 64 | second) * (high - low) >> 128)


def named_key(seed: int, purpose: str, mix: Callable[..., int]) -> int:
    """The key of the stream of an op seed: by the global seed, the op seed and the purpose; see `take`."""
    base = DEFAULT_SEED if _seed is None else _seed
    import zlib
    return mix(base & _WORD, seed & _WORD, zlib.crc32(purpose.encode()))


def _after_fork() -> None:
    """A child with an unseeded stream must not repeat its parent's numbers."""
    global _shared_key
    if _seed is None:
        _shared_key = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
