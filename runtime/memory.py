"""Memory of results: small arrays from NumPy's allocator, large ones from a pool of blocks already paged in.

A fresh large allocation costs a page fault for every 4 KiB it touches, more than an elementwise op does. The pool
keeps blocks and hands one out again when nothing refers to it any more: a block is itself an array, every array over
it (and every view of those) keeps it as `base`, so its reference count says whether it is free. A weak reference to
the array handed out tells when that is worth looking at; blocks kept alive by views are looked at again later.

Idle bytes are bounded; the blocks idle for longest are given back first.
"""

from __future__ import annotations

import itertools
import math
import sys
import weakref
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from twofold.ir.errors import ResourceExhaustedError

from . import locks

__all__ = ["empty", "set_limit", "trim", "is_unshared", "statistics", "Statistics", "POOLED_FROM", "ALIGNMENT"]

POOLED_FROM = 256 * 1024  # bytes
ALIGNMENT = 64
_DEFAULT_LIMIT = 256 * 1024 * 1024
_LOOKED_AT = 16  # blocks with surviving views that one request looks at


class Statistics(NamedTuple):
    """Bytes of pooled memory: held by live arrays, kept for reuse, and the most that was ever held at once."""

    in_use: int
    idle: int
    peak: int


def empty(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """A new C-contiguous array with arbitrary contents, aligned to 64 bytes when large.

    Args:
        shape: its dimensions.
        dtype: its NumPy dtype.
    Raises:
        ResourceExhaustedError: there is not enough memory.

    >>> empty((2, 3), np.dtype("float32")).shape
    (2, 3)
    """
    count = math.prod(shape) * dtype.itemsize
    try:
        if count < POOLED_FROM or dtype.hasobject:
            return np.empty(shape, dtype)
        return _pool.take(count, shape, dtype)
    except (MemoryError, ValueError) as error:  # a ValueError where no memory could ever hold so much
        raise ResourceExhaustedError(None, None, f"There is not enough memory for a tensor of shape {list(shape)} and "
                                                 f"type {dtype.name}: {error}.") from None


def set_limit(count: int) -> None:
    """Sets how many idle bytes are kept for reuse; what is idle beyond that is given back at once.

    Raises:
        ValueError: `count` is negative.
    """
    if count < 0:
        raise ValueError(f"the limit of idle memory must not be negative, got {count}")
    _pool.limit = int(count)
    _pool.shrink(_pool.limit)


def trim() -> None:
    """Gives all idle blocks back to the operating system."""
    _pool.look_at_survivors(everything=True)
    _pool.shrink(0)


def statistics() -> Statistics:
    """How much pooled memory is in use and idle now, and the peak of what was in use."""
    _pool.look_at_survivors(everything=True)
    return Statistics(_pool.held - _pool.idle, _pool.idle, _pool.peak)


def is_unshared(array: np.ndarray) -> bool:
    """Whether an array has memory of its own, or a block of the pool, that no other array views, and nobody waits for
    its end but the pool."""
    leases = weakref.getweakrefs(array)
    if not array.flags.writeable or array.flags.owndata:
        return array.flags.writeable and array.base is None and not leases
    return len(leases) == 1 and type(leases[0]) is _Lease and sys.getrefcount(array.base) <= _UNSHARED + 1


class _PoolBlock:
    """One allocation: `raw` owns the memory and is the base of every array over it; `since` tells when it fell idle."""

    __slots__ = ("raw", "offset", "size", "since")

    def __init__(self, size: int):
        self.raw = np.empty(size + ALIGNMENT, np.uint8)
        self.offset = -self.raw.ctypes.data % ALIGNMENT
        self.size = size
        self.since = 0

    def is_free(self) -> bool:
        return sys.getrefcount(self.raw) <= _UNSHARED


class _Lease(weakref.ref):
    """Tells the pool when the array that was handed out with `block` is gone."""

    __slots__ = ("block",)
    block: _PoolBlock


_probe = _PoolBlock(0)
_UNSHARED = sys.getrefcount(_probe.raw)  # what `is_free` sees of a block that only the pool refers to


class _Pool:
    """Blocks by size class. A lock that its holder may take again: collecting garbage inside it can return blocks.

    A signal handler may raise between any two steps: a block may be forgotten then, or counted twice, and no more
    comes of it.
    """

    def __init__(self) -> None:
        self.limit = _DEFAULT_LIMIT
        self.held = self.idle = self.peak = 0
        self._lock = locks.RLock()
        self._clock = itertools.count()
        self._free: defaultdict[int, deque[_PoolBlock]] = defaultdict(deque)  # by size, in the order they became idle
        self._surviving: deque[_PoolBlock] = deque()
        self._leases: dict[int, _Lease] = {}  # a weak reference that nobody holds calls nobody
        self._back = self._returned  # bound once

    def take(self, count: int, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        size = _classes.get(count) or size_class(count)
        block = self._pop(size)
        if block is None:
            if self._surviving:
                self.look_at_survivors()
                block = self._pop(size)
            if block is None:
                block = self._new(size)
        array = np.ndarray(shape, dtype, block.raw, block.offset)
        lease = _Lease(array, self._back)
        lease.block = block
        self._leases[id(lease)] = lease
        return array

    def _pop(self, size: int) -> _PoolBlock | None:
        with self._lock:
            free = self._free[size]
            if not free:
                return None
            self.idle -= size
            if self.held - self.idle > self.peak:
                self.peak = self.held - self.idle
            return free.pop()

    def _new(self, size: int) -> _PoolBlock:
        try:
            block = _PoolBlock(size)
        except MemoryError:
            self.shrink(0)
            block = _PoolBlock(size)
        with self._lock:
            self.held += size
            if self.held - self.idle > self.peak:
                self.peak = self.held - self.idle
        return block

    def _returned(self, lease: _Lease) -> None:
        del self._leases[id(lease)]
        block = lease.block
        if sys.getrefcount(block.raw) <= _UNSHARED:  # `is_free`, spelt out
            self._put(block)
        else:  # views of the array outlive it
            self._surviving.append(block)

    def _put(self, block: _PoolBlock) -> None:
        with self._lock:
            block.since = next(self._clock)
            self._free[block.size].append(block)
            self.idle += block.size
            if self.idle > self.limit:
                self.shrink(self.limit)

    def look_at_survivors(self, everything: bool = False) -> None:
        """Moves blocks whose views are gone to the free ones: a few of them, or all."""
        for _ in range(len(self._surviving) if everything else min(len(self._surviving), _LOOKED_AT)):
            try:
                block = self._surviving.popleft()
            except IndexError:  # another thread took it
                return
            if block.is_free():
                self._put(block)
            else:
                self._surviving.append(block)

    def shrink(self, limit: int) -> None:
        """Gives back the blocks that have been idle for longest until at most `limit` bytes are idle."""
        while True:
            with self._lock:
                oldest = min((free[0].since, size) for size, free in self._free.items() if free) \
                    if any(self._free.values()) else None
                if oldest is None:
                    self.idle = 0
                if oldest is None or self.idle <= limit:
                    return
                size = oldest[1]
                block = self._free[size].popleft()
                self.idle -= size
                self.held -= size
            del block  # outside the lock: unmapping takes long


def size_class(count: int) -> int:
    """The size of the blocks that serve `count` bytes: eight classes an octave, so at most an eighth is unused."""
    step = max(1 << (count.bit_length() - 4), 4096)
    size = -(-count // step) * step
    if len(_classes) >= _CLASSES:
        _classes.clear()
    _classes[count] = size
    return size


_classes: dict[int, int] = {}  # of sizes that were asked for
_CLASSES = 4096


_pool = _Pool()


