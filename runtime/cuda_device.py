"""GPUs of this machine: for each its context, its one stream of work, and its memory.

All work on a GPU goes through one stream, in the order in which threads hand it in, so that memory can be given back as
soon as nobody will hand in work on it any more: what uses it next comes behind in the stream. Memory comes from the
driver's pool, which keeps what is given back.

`DeviceArray` is what tensors on a GPU hold; kernels and programs are the affair of `cuda_code.py` and
`cuda_program.py`.
"""

from __future__ import annotations

import ctypes
import functools
import math
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from twofold.ir.errors import InternalError, ResourceExhaustedError

from . import cuda_driver, locks
from .calls import address_of
from .cuda_driver import CudaError, Driver

__all__ = ["Allocation", "DeviceArray", "Gpu", "MemoryStatistics", "gpu", "gpus"]

_CAPABILITY = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
_PROCESSORS = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
_KEPT, _USED, _MOST_USED = 4, 7, 8  # CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, _USED_MEM_CURRENT, _USED_MEM_HIGH
_APART = 1  # CU_STREAM_NON_BLOCKING: does not wait for the stream that others use by default
_AT_LEAST = 1  # bytes of an allocation: the driver refuses none


class MemoryStatistics(NamedTuple):
    """Bytes of a GPU: held by arrays now, the most that were, and what the GPU has and has free."""

    in_use: int
    peak: int
    total: int
    free: int


class Gpu:
    """One GPU.

    Attributes:
        index: its number, from 0.
        name: what its maker calls it.
        capability: such as (9, 0).
        processors: how many multiprocessors it has.
        context, stream: the driver's handles.
        recording: a stream that does nothing but tell the driver what graphs are made of.
    """

    def __init__(self, driver: Driver, index: int) -> None:
        self.driver, self.index = driver, index
        handle, text = ctypes.c_int(), ctypes.create_string_buffer(256)
        driver.cuDeviceGet(ctypes.byref(handle), index)
        driver.cuDeviceGetName(text, len(text), handle)
        self.handle, self.name = handle.value, text.value.decode(errors="replace")
        self.capability = (self._attribute(_CAPABILITY[0]), self._attribute(_CAPABILITY[1]))
        self.processors = self._attribute(_PROCESSORS)
        self.context, self.stream, self.recording, self._pool = (ctypes.c_void_p() for _ in range(4))
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(self.context), self.handle)
        self.lock = locks.RLock()  # of who hands in work that belongs together
        self._current = threading.local()
        with self:
            for stream in (self.stream, self.recording):
                driver.cuStreamCreate(ctypes.byref(stream), _APART)
            driver.cuDeviceGetDefaultMemPool(ctypes.byref(self._pool), self.handle)
            most = ctypes.c_uint64(2**64 - 1)  # nothing goes back to the system by itself
            driver.cuMemPoolSetAttribute(self._pool, _KEPT, ctypes.byref(most))

    @property
    def architecture(self) -> str:
        """What the code for it is named, such as "sm_90"."""
        return f"sm_{self.capability[0]}{self.capability[1]}"

    def __enter__(self) -> None:
        """Has the driver's calls of this thread be about this GPU."""
        self.driver.cuCtxSetCurrent(self.context)

    def __exit__(self, *exc: object) -> None:
        """Leaves it current: each use says which it means."""

    def __repr__(self) -> str:
        return f"<GPU {self.index}: {self.name}>"

    # -- memory -----------------------------------------------------------------------------------
    def allocate(self, size: int) -> Allocation:
        """Memory of so many bytes, with arbitrary contents.

        Raises:
            ResourceExhaustedError: there is not enough.
        """
        address = ctypes.c_uint64()
        with self:
            size = max(size, _AT_LEAST)
            status = self.driver.status("cuMemAllocAsync", ctypes.byref(address), size, self.stream)
            if status == cuda_driver.OUT_OF_MEMORY:
                self.trim()
                status = self.driver.status("cuMemAllocAsync", ctypes.byref(address), size, self.stream)
            if status == cuda_driver.OUT_OF_MEMORY:
                self._exhausted(size)
            if status:
                raise CudaError(status, self.driver.explained("cuMemAllocAsync", status))
        return Allocation(self, address.value, size)

    def _exhausted(self, size: int) -> NoReturn:
        held = self.statistics()
        raise ResourceExhaustedError(None, None, (
            f"There is not enough memory on GPU:{self.index} ({self.name}): {size:,} bytes were asked for; tensors "
            f"hold {held.in_use:,}, {held.free:,} of {held.total:,} are free."))

    def trim(self) -> None:
        """Gives memory that no array holds back to the system, once all work is done."""
        self.wait()
        with self:
            self.driver.cuMemPoolTrimTo(self._pool, 0)

    def statistics(self) -> MemoryStatistics:
        """How much memory is held and free."""
        used, peak, free, total = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_size_t()
        with self:
            self.driver.cuMemPoolGetAttribute(self._pool, _USED, ctypes.byref(used))
            self.driver.cuMemPoolGetAttribute(self._pool, _MOST_USED, ctypes.byref(peak))
            self.driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        return MemoryStatistics(used.value, peak.value, total.value, free.value)

    def forget_peak(self) -> None:
        """Has the peak begin with what is held now."""
        with self:
            self.driver.cuMemPoolSetAttribute(self._pool, _MOST_USED, ctypes.byref(ctypes.c_uint64(0)))

    # -- arrays -----------------------------------------------------------------------------------
    def empty(self, shape: Sequence[int], dtype: np.dtype) -> DeviceArray:
        """An array with arbitrary contents."""
        return DeviceArray(self.allocate(math.prod(shape) * dtype.itemsize), shape, dtype)

    def copy_to(self, array: np.ndarray) -> DeviceArray:
        """A copy of an array of the host.

        Raises:
            TypeError: its elements are Python objects.
        """
        if array.dtype.hasobject:
            raise TypeError(f"tensors of {array.dtype.name}s stay on the host, and cannot lie on GPU:{self.index}")
        out = self.empty(array.shape, array.dtype)
        array = np.ascontiguousarray(array)
        if array.nbytes:
            with self:  # pageable memory of the host may be written again at once: the driver has copied it by then
                self.driver.cuMemcpyHtoDAsync_v2(out.address, address_of(array), array.nbytes, self.stream)
        return out

    def copy_from(self, array: DeviceArray) -> np.ndarray:
        """An array of the host with the elements, after all work handed in before."""
        out = np.empty(array.shape, array.dtype)
        if out.nbytes:
            with self:
                self.driver.cuMemcpyDtoHAsync_v2(address_of(out), array.address, out.nbytes, self.stream)
        self.wait()
        return out

    def copied(self, array: DeviceArray) -> DeviceArray:
        """Another array on this GPU with the elements of one on any."""
        out = self.empty(array.shape, array.dtype)
        if array.nbytes and array.gpu is self:
            with self:
                self.driver.cuMemcpyDtoDAsync_v2(out.address, array.address, array.nbytes, self.stream)
        elif array.nbytes:
            array.gpu.wait()
            with self:
                self.driver.cuMemcpyPeerAsync(out.address, self.context, array.address, array.gpu.context, array.nbytes,
                                              self.stream)
            self.wait()  # the other GPU may give the memory to somebody else
        return out

    def here(self, memory: Any) -> DeviceArray:
        """An array of any device as one of this GPU: itself, or a copy."""
        if isinstance(memory, DeviceArray):
            return memory if memory.gpu is self else self.copied(memory)
        return self.copy_to(memory)

    # -- work -------------------------------------------------------------------------------------
    def wait(self) -> None:
        """Waits until all work that was handed in is done.

        Raises:
            InternalError: some of it has failed, after which the driver runs nothing more in this process.
        """
        with self:
            status = self.driver.status("cuStreamSynchronize", self.stream)
        if status:
            raise InternalError(None, None, f"GPU:{self.index} ({self.name}) has failed: "
                                            f"{self.driver.explained('cuStreamSynchronize', status)}. "
                                            "The driver runs nothing more in this process.")

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self.driver.cuDeviceGetAttribute(ctypes.byref(value), number, self.handle)
        return value.value


class Allocation:
    """A piece of a GPU's memory, which goes back when nothing refers to it any more."""

    __slots__ = ("gpu", "address", "size", "__weakref__")

    def __init__(self, gpu: Gpu, address: int, size: int) -> None:
        self.gpu, self.address, self.size = gpu, address, size

    def __del__(self) -> None:
        gpu = self.gpu
        gpu.driver.status("cuCtxSetCurrent", gpu.context)  # nobody could catch an error here
        gpu.driver.status("cuMemFreeAsync", self.address, gpu.stream)


class DeviceArray:
    """A row-major array in a GPU's memory, with an array's names for what it is.

    Its elements are on the host by `copy_from` of its GPU. Like a tensor it is never written once others have it.
    """

    __slots__ = ("owner", "address", "shape", "dtype", "size", "nbytes", "__weakref__")

    def __init__(self, owner: Allocation, shape: Sequence[int], dtype: np.dtype, offset: int = 0) -> None:
        """Args:
            owner: the memory it is in, from byte `offset` on.
        """
        self.owner, self.address = owner, owner.address + offset
        self.shape, self.dtype = tuple([int(n) for n in shape]), dtype
        self.size = math.prod(self.shape)
        self.nbytes = self.size * dtype.itemsize

    @property
    def gpu(self) -> Gpu:
        """The GPU in whose memory it is."""
        return self.owner.gpu

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def reshape(self, shape: Sequence[int]) -> DeviceArray:
        """The same memory with another shape, of as many elements."""
        return DeviceArray(self.owner, shape, self.dtype, self.address - self.owner.address)

    def copy(self) -> DeviceArray:
        """Another array with the same elements."""
        return self.gpu.copied(self)

    def __repr__(self) -> str:
        return f"<array of {self.dtype.name}{list(self.shape)} on GPU:{self.gpu.index}>"


@functools.lru_cache(8)
def _of(driver: Driver) -> list[Gpu]:
    return [Gpu(driver, n) for n in range(driver.count)]


def gpus() -> list[Gpu]:
    """The GPUs of this machine, in the driver's order; none where there is no driver."""
    driver = cuda_driver.driver()
    return [] if driver is None else _of(driver)


def gpu(index: int) -> Gpu | None:
    """GPU number `index`; None where there is none."""
    known = gpus()
    return known[index] if 0 <= index < len(known) else None
