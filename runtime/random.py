"""The streams of random numbers that `tf.random.set_seed` governs.

A stream is a Philox key and a counter, of which blocks have been taken. There are two kinds.

A draw with seeds has TensorFlow's stream: the key is the global seed, the upper half of the counter the op's, and how
far it has come is kept for each op. Alone, calls of a kind with the same seeds are one op; in a function each place is
one, in each trace anew. An op without a seed of its own gets one where there is a global seed: alone from Python's
generator under that seed, in a function by counting (`tracer/trace.py`). Without a global seed, op seeds use a fixed
one.

A draw without any seed takes a part of one shared stream, whose key comes from the operating system; each purpose reads
bits of its own. Under a global seed that decides the key, what is drawn in Python goes on using it (`integer`).

Setting the global seed starts all of them anew. Streams belong to the process; threads may draw at once, each from its
own part.

A call that is refused gives back what it drew. The latest draws are noted in order; `mark` says how many there were
when a call began, and `give_back` undoes those that the same thread has made since. Public functions do so where an
error leaves them (`leaving.py`). Draws whose results live on although the call fails are kept: by `keep`.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np

from twofold.ir import math_words

from . import locks

__all__ = ["set_seed", "share", "take", "take_seeded", "op_seeds", "new_owner", "turn", "integer", "named_key",
           "begin_anew", "fresh_key", "mark", "give_back", "keep", "refusable", "count_address", "seeding",
           "DEFAULT_SEED"]

DEFAULT_SEED = 87654321
_WORD = (1 << 64) - 1

_lock = locks.Lock()
_seed: int | None = None
_shared_key: int | None = None
# of a stream: the purpose and the op seed, or what is drawn, both seeds and the op's place; None for the shared one
_Name: TypeAlias = "tuple[str, int] | tuple[str, Seeds, tuple[int, ...]] | None"
Seeds: TypeAlias = tuple[int, int]
_LARGEST = (1 << 31) - 1  # of seeds of ops
_OP_SEED: _Name = ("an op's seed", 0)  # what is noted of one that was drawn
_taken: dict[_Name, int] = {}
_turns: dict[str, int] = {}
_NOTED = 1024  # draws; a call that has drawn more often was not refused, but failed at its work
_notes: collections.deque[tuple[int, int, _Name, int, int]] = collections.deque(maxlen=_NOTED)
_lost = 0  # the number of the latest draw that is no longer noted
_drawn: Any = None  # Python's generator of op seeds, once one was asked for
_returned: list[int] = []  # op seeds that refused calls gave back, the next one last
_op_seeds = 0  # how many op seeds are out
_seedings = 0  # how often the global seed was set
_owners = itertools.count(1)
_count = ctypes.c_int64(0)  # of all draws; native code reads it
_kept = threading.local()  # `until`: the draws of this thread up to that number stay drawn


def fresh_key() -> int:
    """A key from the operating system's source of randomness."""
    return int.from_bytes(os.urandom(8), "little")


def set_seed(seed: int | None) -> None:
    """Sets the global seed and starts all streams anew; None goes back to unpredictable ones."""
    global _seed, _shared_key, _drawn, _seedings
    with _lock:
        _seed, _shared_key, _drawn = seed, None, None
        _seedings += 1
        _taken.clear()
        _notes.clear()
        _returned.clear()


def seeding() -> tuple[int, bool]:
    """How often the global seed was set, and whether there is one."""
    return _seedings, _seed is not None


def new_owner() -> int:
    """A number for a trace, with which the places of its draws begin."""
    return next(_owners)


def op_seeds(seed: int | None, count: Callable[[], int] | None = None) -> Seeds | None:
    """The two seeds of a draw, TensorFlow's; None where there is neither a global nor an op seed.

    Args:
        seed: the op's own.
        count: gives the op seed of a draw in a function; by default one is drawn.
    """
    if _seed is None:
        return None if seed is None else (DEFAULT_SEED, seed % _LARGEST)
    if seed is None:
        seed = _draw_op_seed() if count is None else count()
    seeds = _seed % _LARGEST, seed % _LARGEST
    return (0, _LARGEST) if seeds == (0, 0) else seeds


def _draw_op_seed() -> int:
    global _drawn, _op_seeds
    with _lock:
        _op_seeds += 1
        if _returned:
            seed = _returned.pop()
        else:
            if _drawn is None:
                import random
                _drawn = random.Random(_seed)
            seed = _drawn.randint(0, _LARGEST)
        _note(_OP_SEED, seed, 0)
    return int(seed)


def take_seeded(blocks: int, seeds: Seeds, kind: str, place: tuple[int, ...]) -> np.ndarray:
    """The next part of the stream of an op with seeds, as the int64 vector that draws take.

    Args:
        blocks: how many.
        kind: what is drawn, which tells ops apart that have the same seeds; empty for an op that draws once.
        place: where the op is in functions; empty outside of them.
    """
    name = (kind, seeds, place)
    with _lock:
        low = _taken.get(name, 0)
        if kind:
            _taken[name] = low + max(blocks, 0)
            _note(name, low, max(blocks, 0))
    counter = low + (seeds[1] << 64)
    return np.array([counter & _WORD, counter >> 64 & _WORD, seeds[0]], np.uint64).view(np.int64)


def begin_anew(draws: Iterable[tuple[str, Seeds, tuple[int, ...]]]) -> None:
    """Has the streams of ops with seeds start at their beginnings.

    Args:
        draws: what the ops draw, their seeds and places; see `take_seeded`.
    """
    with _lock:
        for name in draws:
            _taken.pop(name, None)


def _note(name: _Name, low: int, blocks: int) -> None:
    """Remember a draw, under the lock."""
    global _lost
    _count.value += 1
    if len(_notes) == _NOTED:
        _lost = _notes[0][0]
    _notes.append((_count.value, threading.get_ident(), name, low, blocks))


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
    global _shared_key
    name: _Name = None if seed is None else (purpose, seed)
    with _lock:
        if seed is None:
            if _shared_key is None:
                _shared_key = fresh_key() if _seed is None else mix(_seed & _WORD)
            key = _shared_key ^ turn(purpose, mix)
        else:
            key = named_key(seed, purpose, mix)
        low, blocks = _taken.get(name, 0), max(blocks, 0)  # a draw of a negative size is refused later
        _taken[name] = low + blocks
        _note(name, low, blocks)
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
    global _op_seeds
    if _count.value == since:
        return
    me, since = threading.get_ident(), max(since, getattr(_kept, "until", 0))
    stay = []
    with _lock:
        while _lost <= since and _notes and _notes[-1][0] > since:
            note = _notes.pop()
            _, thread, name, low, blocks = note
            if thread == me and name == _OP_SEED:
                _returned.append(low)
                _op_seeds -= 1
            elif thread == me and _taken.get(name, 0) == low + blocks:
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


def integer(low: int, high: int, mix: Callable[..., int]) -> int:
    """The next integer in [low, high) of the shared stream, without a kernel.

    Args:
        mix: see `take`.
    """
    start, above, key = [int(word) & _WORD for word in take(1, None, "uniform", mix)]
    words = math_words.block(start, above, key)
    # the fraction of 128 bits times the span, as `codegen/kernels/random.py: integers` has it
    first, second = [words[n] | words[n + 1] << 32 for n in (0, 2)]
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
