"""GPUs of this machine: for each its context, its streams, and its memory.

All work on a GPU goes through one stream, in the order in which threads hand it in, so that memory can be used again as
soon as nobody will hand in work on it any more: what uses it next comes behind in the stream. Memory that nothing
refers to any more is kept by its size and handed out again, the latest first, so that a loop gets the same addresses
round by round, for which graphs of the driver's have been recorded (`cuda_program.py`). New memory comes from the
driver's pool.

Copies between host and GPU go through pinned memory (`cuda_pinned.py`), those of a few bytes from the host excepted,
which the driver takes at once. Beside the stream of work there is one for copies ahead of it (`cuda_ahead.py`).

`DeviceArray` is what tensors on a GPU hold; kernels and programs are the affair of `cuda_code.py` and
`cuda_program.py`.
"""

from __future__ import annotations

import ctypes
import functools
import math
import weakref
from array import array
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np

from twofold.ir.errors import ResourceExhaustedError

from . import cuda_driver, cuda_timeline, locks
from .calls import address_of
from .cuda_driver import Driver
from .cuda_launch import Launcher
from .cuda_pinned import PIECE, PinnedPool

__all__ = ["Allocation", "DeviceArray", "Gpu", "MemoryStatistics", "array_of", "gpu", "gpus", "whole_units"]

_CAPABILITY = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
_PROCESSORS = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
_KEPT = 4  # CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
_APART = 1  # CU_STREAM_NON_BLOCKING: does not wait for the stream that others use by default
_UNIT = 256  # bytes: sizes of allocations are multiples of it, as their addresses are
_IDLE = 0.25  # of a GPU's memory that may be kept for later
_TOLD = 16  # ops that the error of a GPU names, of what was handed in last
_AT_ONCE = 1 << 16  # bytes from the host up to which the driver copies them aside, and waits for nothing


class HandedIn(Protocol):
    """Work that a GPU was given."""

    def ops(self) -> list[str]:
        """The ops that it does, each with the user's line."""


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
        copies: a stream for copies that are to run beside work.
        recording: a stream that does nothing but tell the driver what graphs are made of.
        pinned: memory of the host for copies.
        handed: the last work that was handed in since some was waited for.
    """

    def __init__(self, driver: Driver, index: int) -> None:
        self.driver, self.index = driver, index
        handle, text = ctypes.c_int(), ctypes.create_string_buffer(256)
        driver.cuDeviceGet(ctypes.byref(handle), index)
        driver.cuDeviceGetName(text, len(text), handle)
        self.handle, self.name = handle.value, text.value.decode(errors="replace")
        self.capability = (self._attribute(_CAPABILITY[0]), self._attribute(_CAPABILITY[1]))
        self.processors = self._attribute(_PROCESSORS)
        self.context, self.stream, self.copies, self.recording, self._pool = (ctypes.c_void_p() for _ in range(5))
        self.pinned = PinnedPool(driver)
        self._keepers: weakref.WeakSet[Any] = weakref.WeakSet()  # see `add_keeper`
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(self.context), self.handle)
        self.handed: deque[HandedIn] = deque(maxlen=_TOLD)
        driver.tellers.append(self._tell)
        self.lock = locks.RLock()  # of who hands in work that belongs together
        self._memory = locks.RLock()  # of the numbers below
        self._idle: dict[int, list[int]] = {}  # addresses by size
        self._in_use = self._peak = self._kept = 0
        self._copies: dict[int, tuple[weakref.ref[np.ndarray], DeviceArray]] = {}  # of arrays of the host, by identity
        with self:
            for stream in (self.stream, self.copies, self.recording):
                driver.cuStreamCreate(ctypes.byref(stream), _APART)
            driver.cuDeviceGetDefaultMemPool(ctypes.byref(self._pool), self.handle)
            total, most = ctypes.c_size_t(), ctypes.c_uint64(2**64 - 1)  # nothing goes back to the system by itself
            driver.cuDeviceTotalMem_v2(ctypes.byref(total), self.handle)
            driver.cuMemPoolSetAttribute(self._pool, _KEPT, ctypes.byref(most))
        self._most_kept = int(total.value * _IDLE)

    @functools.cached_property
    def launcher(self) -> Launcher:
        """Hands work in."""
        return Launcher(self.driver, self.context)

    @property
    def architecture(self) -> str:
        """What the code for it is named, such as "sm_90"."""
        return f"sm_{self.capability[0]}{self.capability[1]}"

    def identity(self) -> bytes:
        """The number that no other GPU of any machine has."""
        number = ctypes.create_string_buffer(16)
        self.driver.cuDeviceGetUuid_v2(number, self.handle)
        return number.raw

    def __enter__(self) -> None:
        """Has the driver's calls of this thread be about this GPU."""
        self.driver.cuCtxSetCurrent(self.context)

    def __exit__(self, *exc: object) -> None:
        """Leaves it current: each use says which it means."""

    def make_current(self) -> None:
        """The same for who could tell nobody of an error."""
        self.driver.status("cuCtxSetCurrent", self.context)

    def __repr__(self) -> str:
        return f"<GPU {self.index}: {self.name}>"

    # -- memory -----------------------------------------------------------------------------------
    def allocate(self, size: int) -> Allocation:
        """Memory of so many bytes, with arbitrary contents.

        Raises:
            ResourceExhaustedError: there is not enough.
        """
        size = whole_units(size)
        [address] = self.take([size])
        return Allocation(self, address, size)

    def take(self, sizes: Sequence[int]) -> list[int]:
        """The addresses of memory of these sizes, which are whole units, for who gives it back.

        Raises:
            ResourceExhaustedError: there is not enough.
        """
        addresses = []
        with self._memory:
            for size in sizes:
                idle = self._idle.get(size)
                if idle:
                    addresses.append(idle.pop())
                    self._kept -= size
                    self._in_use += size
                else:
                    addresses.append(0)
            if self._in_use > self._peak:
                self._peak = self._in_use
        if 0 in addresses:
            self._complete(addresses, sizes)
        return addresses

    def _complete(self, addresses: list[int], sizes: Sequence[int]) -> None:
        """Puts new memory where there is none; if there is not enough, all is given back."""
        try:
            for n, size in enumerate(sizes):
                if not addresses[n]:
                    addresses[n] = self.new(size, self.stream)
                    self.count(size)
        except BaseException:
            for address, size in zip(addresses, sizes, strict=True):
                if address:
                    self.give_back(address, size)
            raise

    def count(self, change: int) -> None:
        """Notes that arrays hold more memory, or less."""
        with self._memory:
            self._in_use += change
            self._peak = max(self._peak, self._in_use)

    def new(self, size: int, stream: ctypes.c_void_p) -> int:
        """The address of new memory, which there is from now on in a stream.

        Raises:
            ResourceExhaustedError: there is not enough.
        """
        address = ctypes.c_uint64()
        with self:
            status = self.driver.status("cuMemAllocAsync", ctypes.byref(address), size, stream)
            if status == cuda_driver.OUT_OF_MEMORY:
                self.trim()
                status = self.driver.status("cuMemAllocAsync", ctypes.byref(address), size, stream)
        if status == cuda_driver.OUT_OF_MEMORY:
            self._exhausted(size)
        if status:
            raise self.driver.error("cuMemAllocAsync", status)
        return address.value

    def give_back(self, address: int, size: int) -> None:
        """Takes memory back that nothing refers to any more."""
        with self._memory:
            self._in_use -= size
            keep = self._kept + size <= self._most_kept
            if keep:
                self._kept += size
                self._idle.setdefault(size, []).append(address)
        if not keep:
            self.free(address)

    def free(self, address: int) -> None:
        """Gives memory to the driver, behind the work that was handed in."""
        self.make_current()
        self.driver.status("cuMemFreeAsync", address, self.stream)

    def _exhausted(self, size: int) -> NoReturn:
        held = self.statistics()
        raise ResourceExhaustedError(None, None, (
            f"There is not enough memory on GPU:{self.index} ({self.name}): {size:,} bytes were asked for; tensors "
            f"hold {held.in_use:,}, {held.free:,} of {held.total:,} are free."))

    def add_keeper(self, keeper: Any) -> None:
        """Tells who keeps memory of it besides, as long as that lives: its method `free` is to give all back."""
        with self._memory:
            self._keepers.add(keeper)

    def trim(self) -> None:
        """Gives memory that no array holds back to the system, once all work is done."""
        with self._memory:
            idle, self._idle, self._kept = self._idle, {}, 0
            keepers = list(self._keepers)
        for addresses in idle.values():
            for address in addresses:
                self.free(address)
        for keeper in keepers:
            keeper.free()
        self.wait()
        with self:
            self.driver.cuMemPoolTrimTo(self._pool, 0)

    def statistics(self) -> MemoryStatistics:
        """How much memory is held and free."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        with self:
            self.driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        return MemoryStatistics(self._in_use, self._peak, total.value, free.value)

    def forget_peak(self) -> None:
        """Has the peak begin with what is held now."""
        with self._memory:
            self._peak = self._in_use

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
        self.send(out.address, array, self.stream)
        return out

    def send(self, address: int, array: np.ndarray, stream: ctypes.c_void_p) -> None:
        """Has a stream copy an array of the host to some memory; the array may be written again at once."""
        if not array.nbytes:
            return
        array = np.ascontiguousarray(array)
        if array.nbytes <= _AT_ONCE:
            with self, self.copying("copy to the GPU", array.nbytes, stream):
                self.driver.cuMemcpyHtoDAsync_v2(address, address_of(array), array.nbytes, stream)
            return
        flat = array.reshape(-1).view(np.uint8)
        with self:
            for at in range(0, flat.size, PIECE):
                size = min(PIECE, flat.size - at)
                with self.pinned.block(size) as block:
                    block.bytes[:size] = flat[at:at + size]
                    with self.copying("copy to the GPU", size, stream):
                        self.driver.cuMemcpyHtoDAsync_v2(address + at, block.address, size, stream)
                    block.is_used(stream)

    def copy_from(self, array: DeviceArray) -> np.ndarray:
        """An array of the host with the elements, after all work handed in before."""
        return self.read(array.address, array.dtype, array.shape)

    def read(self, address: int, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        """What lies in some memory, after all work handed in before.

        Raises:
            InternalError: some of that has failed.
        """
        [out] = self.read_all([(address, dtype, shape)])
        return out

    def read_all(self, places: Sequence[tuple[int, np.dtype, tuple[int, ...]]]) -> list[np.ndarray]:
        """What lies in several places, after all work handed in before, for which it waits once.

        Args:
            places: addresses, with dtypes and shapes.
        Raises:
            InternalError: some of the work has failed.
        """
        arrays = [np.empty(shape, dtype) for _, dtype, shape in places]
        sizes = [a.nbytes for a in arrays]
        total = sum(sizes)
        if total > PIECE or cuda_timeline.watching() is not None:
            with self:
                for (address, _, _), out in zip(places, arrays, strict=True):
                    self._receive(address, out.reshape(-1).view(np.uint8))
            return arrays
        self.make_current()
        block = self.pinned.take(total or 1)
        try:
            words = [word for (address, _, _), size in zip(places, sizes, strict=True) if size
                     for word in (address, size)]
            self.launcher.read(array("Q", words), block.address, self.stream)
            self.handed.clear()
            at = 0
            for out, size in zip(arrays, sizes, strict=True):
                out.reshape(-1).view(np.uint8)[:] = block.bytes[at:at + size]
                at += size
        finally:
            self.pinned.give_back(block)
        return arrays

    def _receive(self, address: int, out: np.ndarray) -> None:
        """Copies bytes to an array of the host, piece by piece: one is put there while the next is under way."""
        starts = range(0, out.size, PIECE)
        if not starts:
            return
        with ExitStack() as held:
            blocks = [held.enter_context(self.pinned.block(min(PIECE, out.size))) for _ in starts[:2]]

            def begin(number: int) -> None:
                at, block = starts[number], blocks[number % 2]
                size = min(PIECE, out.size - at)
                with self.copying("copy from the GPU", size, self.stream):
                    self.driver.cuMemcpyDtoHAsync_v2(block.address, address + at, size, self.stream)
                block.is_used(self.stream)
            begin(0)
            for number, at in enumerate(starts):
                if number + 1 < len(starts):
                    begin(number + 1)
                block = blocks[number % 2]
                self._require("cuEventSynchronize", block.wait())
                out[at:at + PIECE] = block.bytes[:min(PIECE, out.size - at)]

    def copied(self, array: DeviceArray) -> DeviceArray:
        """Another array on this GPU with the elements of one on any."""
        out = self.empty(array.shape, array.dtype)
        if array.nbytes and array.gpu is self:
            with self, self.copying("copy on the GPU", array.nbytes, self.stream):
                self.driver.cuMemcpyDtoDAsync_v2(out.address, array.address, array.nbytes, self.stream)
        elif array.nbytes:
            array.gpu.wait()
            with self, self.copying(f"copy from GPU:{array.gpu.index}", array.nbytes, self.stream):
                self.driver.cuMemcpyPeerAsync(out.address, self.context, array.address, array.gpu.context, array.nbytes,
                                              self.stream)
            self.wait()  # the other GPU may give the memory to somebody else
        return out

    def here(self, memory: Any) -> DeviceArray:
        """An array of any device as one of this GPU: itself, or a copy."""
        if isinstance(memory, DeviceArray):
            return memory if memory.gpu is self else self.copied(memory)
        kept = self._copies.get(id(memory))
        return self.copy_to(memory) if kept is None else kept[1]

    def keep(self, memory: Any) -> DeviceArray:
        """As `here`; of an array of the host the copy is kept, and serves whoever asks, for as long as the array lives.
        The array must not be written any more."""
        here, key = self.here(memory), id(memory)
        if isinstance(memory, np.ndarray) and key not in self._copies:
            self._copies[key] = weakref.ref(memory, lambda _: self._copies.pop(key, None)), here
        return here

    # -- work -------------------------------------------------------------------------------------
    def copying(self, what: str, size: int, stream: ctypes.c_void_p) -> AbstractContextManager[None]:
        """A block that hands in a copy of so many bytes on a stream."""
        timeline = cuda_timeline.watching()
        return nullcontext() if timeline is None else timeline.span(self, stream, what, size)

    def stream_name(self, stream: ctypes.c_void_p) -> str:
        """What a stream is for: one of `cuda_timeline.STREAMS`."""
        return cuda_timeline.STREAMS[stream.value == self.copies.value]

    def wait(self) -> None:
        """Waits until all work that was handed in is done.

        Raises:
            InternalError: some of it has failed, after which the driver runs nothing more in this process.
        """
        with self:
            self._require("cuStreamSynchronize", self.driver.status("cuStreamSynchronize", self.stream))

    def _require(self, function: str, status: int) -> None:
        """Raises the error of what waited for work, if that has failed."""
        if status:
            raise self.driver.error(function, status)
        self.handed.clear()

    def _tell(self) -> list[str]:
        """The ops of the work that was handed in since it was last waited for, each with the user's line."""
        told = list(dict.fromkeys(op for work in list(self.handed) for op in work.ops()))
        return told if len(told) <= _TOLD else [*told[-_TOLD:], "and others before"]

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self.driver.cuDeviceGetAttribute(ctypes.byref(value), number, self.handle)
        return value.value


def whole_units(size: int) -> int:
    """The size of the memory that is allocated for so many bytes."""
    return max(-(-size // _UNIT), 1) * _UNIT


class Allocation:
    """A piece of a GPU's memory, which goes back when nothing refers to it any more."""

    __slots__ = ("gpu", "address", "size", "__weakref__")

    def __init__(self, gpu: Gpu, address: int, size: int) -> None:
        self.gpu, self.address, self.size = gpu, address, size

    def __del__(self) -> None:
        self.gpu.give_back(self.address, self.size)


def array_of(owner: Allocation, shape: tuple[int, ...], dtype: np.dtype, size: int, nbytes: int) -> DeviceArray:
    """A `DeviceArray` at the beginning of some memory, whose elements and bytes are counted."""
    made = DeviceArray.__new__(DeviceArray)
    made.owner, made.address, made.shape, made.dtype, made.size, made.nbytes = (
        owner, owner.address, shape, dtype, size, nbytes)
    return made


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

    def leading(self, count: int) -> DeviceArray:
        """The first `count` rows, in memory of their size; itself where it has no more."""
        if count == self.shape[0]:
            return self
        return DeviceArray(self.owner, (count, *self.shape[1:]), self.dtype, self.address - self.owner.address).copy()

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
