"""Memory of the host that GPUs copy from and to by themselves: pinned, so that a copy needs no thread of the host.

Blocks are kept by size and handed out again once the copies that they were for are done, of which an event tells.
Larger copies go through several blocks of one size, piece by piece, so that a piece is put in its place while the next
one is under way. What is copied, and in which stream, is the affair of `cuda_device.py` and `cuda_ahead.py`.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_ubyte

import numpy as np

from . import locks
from .cuda_driver import NO_TIMES, Driver

__all__ = ["PIECE", "PinnedBlock", "PinnedPool"]

PIECE = 1 << 24  # bytes of the largest blocks
_SMALLEST = 1 << 12
_MOST = 1 << 28  # bytes that are kept; if more are in use at once, there are more
_EVERY_CONTEXT = 1  # CU_MEMHOSTALLOC_PORTABLE


class PinnedBlock:
    """Some pinned memory.

    Attributes:
        address: of its first byte.
        bytes: it as an array.
        event: of the last copy that it was for.
        is_awaited: whether nobody has waited for that yet.
    """

    __slots__ = ("address", "bytes", "event", "is_awaited", "_driver")

    def __init__(self, driver: Driver, address: int, size: int) -> None:
        self.address, self.event, self._driver = address, ctypes.c_void_p(), driver
        self.bytes = np.ctypeslib.as_array((c_ubyte * size).from_address(address))
        self.is_awaited = False
        driver.cuEventCreate(ctypes.byref(self.event), NO_TIMES)

    def is_used(self, stream: ctypes.c_void_p) -> None:
        """Notes that a stream was given a copy for it."""
        self.is_awaited = True
        self._driver.cuEventRecord(self.event, stream)

    def is_free(self) -> bool:
        """Whether that copy is done."""
        if self.is_awaited and self._driver.status("cuEventQuery", self.event) == 0:
            self.is_awaited = False
        return not self.is_awaited

    def wait(self) -> int:
        """Waits for it; the driver's status."""
        status = self._driver.status("cuEventSynchronize", self.event) if self.is_awaited else 0
        self.is_awaited = False
        return status


class PinnedPool:
    """The blocks of one GPU, whose context is current wherever it is asked for something."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._lock = locks.RLock()
        self._idle: dict[int, deque[PinnedBlock]] = {}  # by size, those that were used longest ago first
        self._size = 0  # bytes of all blocks

    @contextmanager
    def block(self, size: int) -> Iterator[PinnedBlock]:
        """Memory of `size` bytes, no more than `PIECE`, which nobody else writes or reads meanwhile.

        Raises:
            ResourceExhaustedError: the system has no more such memory.
        """
        block = self.take(size)
        try:
            yield block
        finally:
            self.give_back(block)

    def take(self, size: int) -> PinnedBlock:
        """The same, for who gives it back; no copy is under way for it."""
        size = max(_SMALLEST, 1 << (size - 1).bit_length())
        with self._lock:
            idle = self._idle.get(size)
            if idle and idle[0].is_free():
                return idle.popleft()
            self._make_room(size)
            if not idle or self._size + size <= _MOST:
                return self._new(size)
            block = idle.popleft()
        block.wait()  # an error comes again with what is done next
        return block

    def give_back(self, block: PinnedBlock) -> None:
        """Takes a block back, whose last copy may be under way."""
        with self._lock:
            self._idle.setdefault(len(block.bytes), deque()).append(block)

    def _make_room(self, size: int) -> None:
        """Gives blocks of other sizes back, as far as more than `_MOST` would be kept."""
        for other, blocks in self._idle.items():
            while other != size and blocks and self._size + size > _MOST:
                block = blocks.popleft()
                self._size -= other
                block.wait()
                self._driver.status("cuEventDestroy_v2", block.event)
                self._driver.status("cuMemFreeHost", block.address)

    def _new(self, size: int) -> PinnedBlock:
        address = ctypes.c_void_p()
        self._driver.cuMemHostAlloc(ctypes.byref(address), size, _EVERY_CONTEXT)
        self._size += size
        return PinnedBlock(self._driver, address.value or 0, size)
