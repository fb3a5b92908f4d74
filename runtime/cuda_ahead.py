"""Copies to a GPU that run beside its work: on a stream of their own, ahead of when they are needed.

The stream of work waits for them when what was copied is handed out (`Flight.arrive`), and not before. Memory for them
is kept apart: what is to be written by the stream of copies must wait for the work that read it last, of which an event
tells, and not for all that was handed in since.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import locks
from .cuda_device import Allocation, DeviceArray, Gpu, whole_units
from .cuda_driver import NO_TIMES

__all__ = ["Flight", "SendingStream"]


class SendingStream:
    """Sends arrays to a GPU; what memory it has for that lives as long as it."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self._lock = locks.RLock()
        self._idle: dict[int, deque[tuple[int, ctypes.c_void_p]]] = {}  # address, and when it was read last, by size
        gpu.add_keeper(self)

    def __del__(self) -> None:
        self.free()

    def send(self, arrays: Sequence[Any]) -> Flight:
        """Has arrays of the host copied, which may change as soon as this returns. Texts, and what is no array, stay.

        Raises:
            ResourceExhaustedError: there is not enough memory.
        """
        gpu, event = self.gpu, ctypes.c_void_p()
        sent: list[Any] = []
        for array in arrays:
            if not isinstance(array, np.ndarray) or array.dtype.hasobject:
                sent.append(array)
                continue
            out = DeviceArray(self._target(array.nbytes), array.shape, array.dtype)
            gpu.send(out.address, array, gpu.copies)
            sent.append(out)
        with gpu:
            gpu.driver.cuEventCreate(ctypes.byref(event), NO_TIMES)
            gpu.driver.cuEventRecord(event, gpu.copies)
        return Flight(gpu, sent, event)

    def free(self) -> None:
        """Gives the memory that no array holds back to the driver."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for blocks in idle.values():
            for address, event in blocks:
                self.gpu.free(address)  # behind the work that read it
                self.gpu.driver.status("cuEventDestroy_v2", event)

    def _target(self, size: int) -> _LandingPlace:
        """Memory that the stream of copies may write."""
        gpu, size = self.gpu, whole_units(size)
        with self._lock:
            blocks = self._idle.get(size)
            known = blocks.popleft() if blocks else None
        if known is None:
            address = gpu.new(size, gpu.copies)
        else:
            address, event = known
            with gpu:
                gpu.driver.cuStreamWaitEvent(gpu.copies, event, 0)
                gpu.driver.cuEventDestroy_v2(event)
        gpu.count(size)
        return _LandingPlace(self, address, size)

    def take_back(self, address: int, size: int) -> None:
        """Keeps memory that nothing refers to any more, until the work handed in so far has read it."""
        event, driver = ctypes.c_void_p(), self.gpu.driver
        self.gpu.make_current()
        driver.status("cuEventCreate", ctypes.byref(event), NO_TIMES)
        driver.status("cuEventRecord", event, self.gpu.stream)
        self.gpu.count(-size)
        with self._lock:
            self._idle.setdefault(size, deque()).append((address, event))


class _LandingPlace(Allocation):
    """Memory that a copy ahead has written."""

    __slots__ = ("_sender",)

    def __init__(self, sender: SendingStream, address: int, size: int) -> None:
        super().__init__(sender.gpu, address, size)
        self._sender = sender

    def __del__(self) -> None:
        self._sender.take_back(self.address, self.size)


class Flight:
    """Arrays that are on their way to a GPU."""

    __slots__ = ("_gpu", "_arrays", "_event", "__weakref__")

    def __init__(self, gpu: Gpu, arrays: Sequence[Any], event: ctypes.c_void_p) -> None:
        """Args:
            event: that the last of them has been copied.
        """
        self._gpu, self._arrays, self._event = gpu, arrays, event

    def arrive(self) -> tuple[Any, ...]:
        """The arrays, for work that is handed in from now on, which waits for them."""
        gpu, event, self._event = self._gpu, self._event, ctypes.c_void_p()
        if event:
            gpu.make_current()
            gpu.driver.status("cuStreamWaitEvent", gpu.stream, event, 0)  # an error comes again with the work
            gpu.driver.status("cuEventDestroy_v2", event)
        return tuple(self._arrays)

    def __del__(self) -> None:
        self.arrive()  # memory that was to be written is used again behind that
