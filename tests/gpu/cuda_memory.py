"""The fake driver's functions on devices, contexts, memory and copies."""

from __future__ import annotations

import ctypes
from ctypes import c_int, c_size_t, c_uint64, c_void_p

import numpy as np
from gpu.cuda_names import POINTER_ATTRIBUTES, POOL_ATTRIBUTES, CudaError, device_attributes, put
from gpu.cuda_state import Context, Pool, State, host_bytes
from gpu.cuda_work import Stream
from gpu.ptx_machine import PtxError
from gpu.ptx_memory import device_of

__all__ = ["Devices", "Transfers"]

VERSION = 12040  # of the driver: CUDA 12.4, PTX 8.4


class Devices(State):
    """Devices, contexts, and what is allocated."""

    # -- devices and contexts ---------------------------------------------------------------------
    def cuInit(self, flags: int) -> None:
        if flags:
            raise CudaError(1)
        if not self.contexts:
            raise CudaError(100)
        self.ready = True

    def cuDriverGetVersion(self, out: int) -> None:
        put(out, c_int, VERSION)

    def cuDeviceGetCount(self, out: int) -> None:
        if not self.ready:
            raise CudaError(3)
        put(out, c_int, len(self.contexts))

    def cuDeviceGet(self, out: int, ordinal: int) -> None:
        put(out, c_int, self.device(ordinal))

    def cuDeviceGetName(self, out: int, length: int, device: int) -> None:
        name = f"Fake GPU {self.device(device)}".encode()[:length - 1] + b"\0"
        ctypes.memmove(out, name, len(name))

    def cuDeviceGetAttribute(self, out: int, attribute: int, device: int) -> None:
        self.device(device)
        known = device_attributes(self.architecture)
        if attribute not in known:
            raise self.refuse(1, f"the device attribute {attribute} is not part of the fake driver")
        put(out, c_int, known[attribute])

    def cuDeviceTotalMem_v2(self, out: int, device: int) -> None:
        self.device(device)
        put(out, c_size_t, self.total)

    def cuDeviceGetUuid_v2(self, out: int, device: int) -> None:
        ctypes.memmove(out, b"of machine %4d" % self.machine + bytes([self.device(device)]), 16)

    def cuDeviceCanAccessPeer(self, out: int, device: int, peer: int) -> None:
        put(out, c_int, int(self.device(device) != self.device(peer)))

    def cuDevicePrimaryCtxRetain(self, out: int, device: int) -> None:
        context = self.contexts[self.device(device)]
        put(out, c_void_p, context.handle)
        context.users += 1

    def cuDevicePrimaryCtxRelease_v2(self, device: int) -> None:
        context = self.contexts[self.device(device)]
        if not context.users:
            raise CudaError(201)
        context.users -= 1
        if not context.users:
            self._reset(context)

    def _reset(self, context: Context) -> None:
        """Nobody holds the context: its work is done, and its memory is gone."""
        self.schedule.finish([s.last for s in self.streams if s.device == context.device])
        for piece in self.memory.pieces:
            if device_of(piece.start) == context.device and not piece.freed:
                self.memory.free(piece.start)
        for number, thing in list(self.handles.items()):  # streams, modules and their kernels
            if getattr(thing, "device", -1) == context.device and thing not in (context, *self.pools):
                del self.handles[number]
        context.error = context.plain = 0
        pool = self.pools[context.device]
        pool.used = pool.reserved = 0

    def cuCtxSetCurrent(self, handle: int | None) -> None:
        if not self.ready:
            raise CudaError(3)
        self.local.context = self.get(handle, Context) if handle else None

    def cuCtxGetCurrent(self, out: int) -> None:
        if not self.ready:
            raise CudaError(3)
        context = getattr(self.local, "context", None)
        put(out, c_void_p, context.handle if context is not None else 0)

    def cuCtxSynchronize(self) -> None:
        context = self.context()
        self.safe("cuCtxSynchronize")
        self.wait(context.device, [s.last for s in self.streams if s.device == context.device])

    def cuCtxEnablePeerAccess(self, handle: int, flags: int) -> None:
        context, peer = self.context(), self.get(handle, Context)
        if flags or peer is context:
            raise CudaError(1)
        if peer.device in context.peers:
            raise CudaError(704)
        context.peers.add(peer.device)

    # -- memory of devices ------------------------------------------------------------------------
    def held(self, device: int) -> int:
        """Bytes of a device that are allocated."""
        return self.contexts[device].plain + self.pools[device].used

    def _new_memory(self, device: int, size: int, name: str) -> int:
        if not size:
            raise CudaError(1)
        if self.held(device) + size > self.total:
            raise CudaError(2)
        self.counts["allocations"] += 1
        return self.memory.allocate(size, name, device=device)

    def cuMemGetInfo_v2(self, free: int, total: int) -> None:
        device = self.context().device
        pool = self.pools[device]
        put(free, c_size_t, self.total - self.contexts[device].plain - max(pool.reserved, pool.used))
        put(total, c_size_t, self.total)

    def cuMemAlloc_v2(self, out: int, size: int) -> None:
        context = self.context()
        self.safe("cuMemAlloc")
        put(out, c_uint64, self._new_memory(context.device, size, "cuMemAlloc"))
        context.plain += size

    def cuMemFree_v2(self, address: int) -> None:
        self.safe("cuMemFree")
        context = self.context()
        if not address:
            return
        try:
            piece = self.memory.known(address)
            pooled = piece.name == "cuMemAllocAsync"
            if piece.start in self.doomed:
                raise PtxError("freed memory", f"{piece} is freed twice")
            if pooled:  # as the documentation of the function says, what uses it is waited for
                self.schedule.finish([s.last for s in self.streams if s.device == context.device])
            self.memory.free(address)
        except PtxError as error:
            raise self.refuse(1, str(error)) from None
        self.counts["frees"] += 1
        if pooled:
            self.pools[device_of(address)].count(-piece.size)
        else:
            self.contexts[device_of(address)].plain -= piece.size

    def cuMemAllocAsync(self, out: int, size: int, handle: int | None) -> None:
        stream = self.stream(handle)
        if stream.capture is not None:
            raise self.refuse(801, "memory that a graph allocates is not part of the fake driver")
        address = self._new_memory(stream.device, size, "cuMemAllocAsync")
        self.pools[stream.device].count(size)
        piece = self.memory.known(address)
        piece.born = False

        def born() -> None:
            piece.born = True
        self.give(stream, born)
        put(out, c_uint64, address)

    def cuMemFreeAsync(self, address: int, handle: int | None) -> None:
        stream = self.stream(handle)
        if stream.capture is not None:
            raise self.refuse(801, "memory that a graph frees is not part of the fake driver")
        self.in_range(address, 1)
        piece = self.memory.known(address)
        if piece.start != address or piece.name != "cuMemAllocAsync":
            raise self.refuse(1, f"{address:#x} is not the beginning of memory of a pool: {piece}")
        self.doomed.add(address)
        self.counts["frees"] += 1
        self.pools[device_of(address)].count(-piece.size)

        def free() -> None:
            self.memory.piece(address)  # which must be there in the order of the streams
            self.memory.free(address)
            self.doomed.discard(address)
        self.give(stream, free)

    # -- pools ------------------------------------------------------------------------------------
    def cuDeviceGetDefaultMemPool(self, out: int, device: int) -> None:
        put(out, c_void_p, self.pool_handles[self.device(device)])

    def cuMemPoolSetAttribute(self, handle: int, attribute: int, value: int) -> None:
        pool = self.get(handle, Pool)
        if attribute not in (1, 2, 3, 4, 6, 8) or not value:
            raise CudaError(1)
        number = POOL_ATTRIBUTES[attribute].from_address(value).value
        if attribute in (6, 8):
            if number:
                raise CudaError(1)  # the marks can only be set back
            pool.most_reserved, pool.most_used = ((pool.reserved, pool.most_used) if attribute == 6 else
                                                  (pool.most_reserved, pool.used))
        else:
            pool.settings[attribute] = number

    def cuMemPoolGetAttribute(self, handle: int, attribute: int, out: int) -> None:
        pool = self.get(handle, Pool)
        values = {**pool.settings, 5: pool.reserved, 6: pool.most_reserved, 7: pool.used, 8: pool.most_used}
        if attribute not in values:
            raise CudaError(1)
        put(out, POOL_ATTRIBUTES[attribute], values[attribute])

    def cuMemPoolTrimTo(self, handle: int, size: int) -> None:
        pool = self.get(handle, Pool)
        pool.reserved = max(pool.used, min(pool.reserved, size))

    # -- memory of the host -----------------------------------------------------------------------
    def cuMemHostAlloc(self, out: int, size: int, flags: int) -> None:
        self.context()
        self.safe("cuMemHostAlloc")
        if not size or flags & ~7:
            raise CudaError(1)
        buffer = np.full(size + 4096, 0xFB, np.uint8)
        start = -(-buffer.ctypes.data // 4096) * 4096
        at = start - buffer.ctypes.data
        self.pinned[start] = buffer[at:at + size]
        put(out, c_void_p, start)

    def cuMemFreeHost(self, address: int) -> None:
        self.context()
        self.safe("cuMemFreeHost")
        if address not in self.pinned:
            raise self.refuse(1, f"{address or 0:#x} is no host memory of the driver")
        del self.pinned[address]

    def cuPointerGetAttribute(self, out: int, attribute: int, address: int) -> None:
        self.context()
        if self.pinned_at(address, 1):
            start = max(s for s in self.pinned if s <= address)
            values = {2: 1, 3: address, 4: address, 8: 0, 9: 0, 11: start, 12: len(self.pinned[start])}
        else:
            try:
                piece, device = self.memory.known(address), device_of(address)
            except PtxError:
                raise CudaError(1) from None
            values = {1: self.contexts[device].handle, 2: 2, 3: address, 8: 0, 9: device, 11: piece.start,
                      12: piece.size}
        if attribute not in values:
            raise CudaError(1)
        put(out, POINTER_ATTRIBUTES[attribute], values[attribute])


class Transfers(Devices):
    """Copies, and memory that is set."""

    def _count(self, size: int) -> None:
        self.counts["copies"] += 1
        self.counts["copied_bytes"] += size

    def _host(self, address: int, size: int, pinned: bool) -> np.ndarray:
        """Bytes of the host, when a copy comes to them."""
        if pinned and not self.pinned_at(address, size):
            raise PtxError("freed memory", f"{size} bytes of the host at {address:#x} are copied, and were freed")
        return host_bytes(address, size)

    def _to_device(self, stream: Stream, to: int, source: int, size: int) -> None:
        """A copy from the host: pageable memory is read now, pinned memory when the stream comes to it."""
        self.in_range(to, size)
        self.of_host(source)
        self._count(size)
        pinned = self.pinned_at(source, size)
        if pinned or stream.capture is not None:
            def copy() -> None:
                self.memory.bytes(to, size)[:] = self._host(source, size, pinned)
        else:
            staged = host_bytes(source, size).copy()

            def copy() -> None:
                self.memory.bytes(to, size)[:] = staged
        self.give(stream, copy)

    def _to_host(self, stream: Stream, to: int, source: int, size: int, wait: bool) -> None:
        self.in_range(source, size)
        self.of_host(to)
        self._count(size)
        pinned = self.pinned_at(to, size)

        def copy() -> None:
            self._host(to, size, pinned)[:] = self.memory.bytes(source, size)
        work = self.give(stream, copy)
        if (wait or not pinned) and work is not None:
            self.wait(stream.device, [work])

    def cuMemcpyHtoD_v2(self, to: int, source: int, size: int) -> None:
        stream = self.stream(None)
        self.safe("cuMemcpyHtoD")
        if size:
            self.wait(stream.device, [stream.last])
            self.of_host(source)
            pinned = self.pinned_at(source, size)
            self._to_device(stream, to, source, size)
            if pinned:  # else it may return while the device still copies from a staging buffer
                self.wait(stream.device, [stream.last])

    def cuMemcpyDtoH_v2(self, to: int, source: int, size: int) -> None:
        stream = self.stream(None)
        self.safe("cuMemcpyDtoH")
        if size:
            self._to_host(stream, to, source, size, True)

    def cuMemcpyHtoDAsync_v2(self, to: int, source: int, size: int, handle: int | None) -> None:
        stream = self.stream(handle)
        if size:
            self._to_device(stream, to, source, size)

    def cuMemcpyDtoHAsync_v2(self, to: int, source: int, size: int, handle: int | None) -> None:
        stream = self.stream(handle)
        if size:
            self._to_host(stream, to, source, size, False)

    def cuMemcpyDtoDAsync_v2(self, to: int, source: int, size: int, handle: int | None) -> None:
        stream = self.stream(handle)
        if size:
            self._between(stream, to, source, size, set())

    def cuMemcpyPeerAsync(self, to: int, to_context: int, source: int, source_context: int, size: int,
                          handle: int | None) -> None:
        stream = self.stream(handle)
        places = [(to, self.get(to_context, Context)), (source, self.get(source_context, Context))]
        if any(size and device_of(address) != context.device for address, context in places):
            raise self.refuse(1, "an address is not of the context that is named beside it")
        if size:
            self._between(stream, to, source, size, {c.device for _, c in places})

    def _between(self, stream: Stream, to: int, source: int, size: int, reached: set[int]) -> None:
        self.in_range(to, size)
        self.in_range(source, size)
        self._count(size)
        if abs(to - source) < size:
            raise self.refuse(1, f"a copy of {size} bytes from {source:#x} to {to:#x} overlaps")

        def copy() -> None:
            self.memory.reachable = (self.memory.reachable or set()) | reached
            self.memory.bytes(to, size)[:] = self.memory.bytes(source, size)
        self.give(stream, copy)

    def cuMemsetD8Async(self, to: int, value: int, count: int, handle: int | None) -> None:
        self._set(self.stream(handle), to, np.full(1, value, np.uint8), count)

    def cuMemsetD32Async(self, to: int, value: int, count: int, handle: int | None) -> None:
        if to % 4:
            raise self.refuse(1, f"{to:#x} is not aligned")
        self._set(self.stream(handle), to, np.full(1, value, np.uint32), count)

    def _set(self, stream: Stream, to: int, value: np.ndarray, count: int) -> None:
        if not count:
            return
        size = count * value.itemsize
        self.in_range(to, size)
        self.give(stream, lambda: np.copyto(self.memory.bytes(to, size), np.tile(value.view(np.uint8), count)))
