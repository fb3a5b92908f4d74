"""What a fake driver knows: devices, contexts, handles, host memory; and how it tells errors.

The functions of the driver are methods of the classes that build on this one (`cuda_memory.py`, `cuda_streams.py`,
`cuda_modules.py`), put together in `fake_cuda.py`.
"""

from __future__ import annotations

import ctypes
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from gpu.cuda_names import CudaError
from gpu.cuda_work import Capture, Node, Schedule, Stream, Work, captured
from gpu.ptx_machine import Checks, Memory, PtxError
from gpu.ptx_memory import device_of

__all__ = ["Context", "Pool", "State", "host_bytes"]

T = TypeVar("T")
_CODES = {"illegal address": 700, "freed memory": 700, "misaligned address": 716, "resources": 701, "barrier": 702,
          "endless": 702, "illegal instruction": 715}  # by the kind of what the machine finds; else 719


@dataclass(eq=False)
class Pool:
    """The memory pool of a device."""

    device: int
    settings: dict[int, int] = field(default_factory=lambda: {1: 1, 2: 1, 3: 1, 4: 0})
    used: int = 0
    most_used: int = 0
    reserved: int = 0
    most_reserved: int = 0

    def count(self, change: int) -> None:
        """Bytes are allocated, or freed."""
        self.used += change
        self.reserved = max(self.reserved, self.used)
        self.most_used, self.most_reserved = max(self.most_used, self.used), max(self.most_reserved, self.reserved)


@dataclass(eq=False)
class Context:
    """The primary context of a device: an error in it stays."""

    device: int
    handle: int
    legacy: Stream
    users: int = 0
    error: int = 0
    peers: set[int] = field(default_factory=set)
    plain: int = 0  # bytes of `cuMemAlloc`


class State:
    """Devices and all that belongs to them."""

    def __init__(self, devices: int, memory: int, architecture: tuple[int, int], seed: int, lazy: bool,
                 checks: Checks) -> None:
        self.architecture, self.total, self.checks, self.seed = architecture, memory, checks, seed
        self.lock = threading.RLock()
        self.machine = 0  # which the identities of devices tell
        self.calls: Counter[str] = Counter()  # of the driver's functions, by name
        self.counts: Counter[str] = Counter()  # launches, graph_launches, allocations, frees, copies, copied_bytes
        self.launches: list[tuple[str, tuple[int, int, int], tuple[int, int, int]]] = []  # as kernels begin
        self.findings: list[str] = []  # what was wrong, in words
        self.texts: set[str] = set()  # of modules
        self.memory = Memory()
        self.schedule = Schedule(seed, lazy)
        self.handles: dict[int, Any] = {}
        self.next_handle = 0x10000
        self.ready = False
        self.local = threading.local()
        self.pinned: dict[int, Any] = {}  # buffers by address
        self.doomed: set[int] = set()  # memory that streams will free
        self.streams: list[Stream] = []
        self.pools = [Pool(d) for d in range(devices)]
        self.pool_handles = [self.new(p) for p in self.pools]
        self.contexts: list[Context] = []
        for d in range(devices):
            context = Context(d, 0, Stream(d, legacy=True))
            context.handle = self.new(context)
            self.contexts.append(context)
            self.streams.append(context.legacy)

    # -- handles and errors -----------------------------------------------------------------------
    def new(self, thing: object) -> int:
        """A handle of something."""
        self.next_handle += 16
        self.handles[self.next_handle] = thing
        return self.next_handle

    def get(self, handle: int | None, kind: type[T]) -> T:
        """What a handle stands for.

        Raises:
            CudaError: of an invalid handle.
        """
        thing = self.handles.get(handle or 0)
        if not isinstance(thing, kind):
            self.findings.append(f"{handle} is no handle of a {kind.__name__}")
            raise CudaError(400)
        return thing

    def drop(self, handle: int | None, kind: type[T]) -> T:
        """Ends a handle."""
        thing = self.get(handle, kind)
        del self.handles[handle or 0]
        return thing

    def refuse(self, code: int, text: str) -> CudaError:
        """An error, whose reason is kept."""
        self.findings.append(text)
        return CudaError(code)

    def device(self, number: int) -> int:
        """A device, if there is one of that number."""
        if not self.ready:
            raise CudaError(3)
        if not 0 <= number < len(self.contexts):
            raise CudaError(101)
        return number

    def context(self) -> Context:
        """The context that is current in this thread, if no kernel has ruined it."""
        if not self.ready:
            raise CudaError(3)
        if getattr(self.local, "calling", False):
            raise self.refuse(800, "a host function calls the driver")
        context = getattr(self.local, "context", None)
        if context is None:
            raise self.refuse(201, "no context is current in this thread")
        if context.error:
            raise CudaError(context.error)
        return context

    def failed(self, device: int, error: PtxError) -> None:
        """A device finds an error: the context is ruined."""
        self.findings.append(str(error))
        self.contexts[device].error = _CODES.get(error.kind, 719)

    # -- streams ----------------------------------------------------------------------------------
    def stream(self, handle: int | None) -> Stream:
        """A stream, of the current context."""
        context = self.context()
        if handle in (None, 0, 1):
            for stream in self.streams:
                if stream.capture is not None and stream.blocking and stream.device == context.device:
                    stream.capture.valid = False
                    raise self.refuse(906, "the legacy stream is used while a blocking stream is captured")
            return context.legacy
        if handle == 2:
            raise self.refuse(801, "the stream of each thread is not part of the fake driver")
        stream = self.get(handle, Stream)
        if stream.device != context.device:
            raise self.refuse(400, f"a stream of device {stream.device} is used in the context of {context.device}")
        return stream

    def give(self, stream: Stream, action: Callable[[], None] | None, needs: Iterable[Work | None] = (),
             node: Node | None = None) -> Work | None:
        """Gives work to a stream, or adds a node to the graph that the stream captures."""
        device = stream.device
        if stream.capture is not None:
            captured(stream.capture, stream, node or Node(0, action, None, []))
            return None

        def run() -> None:
            if not self.contexts[device].error and action is not None:
                self.memory.reachable = {device} | self.contexts[device].peers
                try:
                    action()
                except PtxError as error:
                    self.failed(device, error)
                except Exception:  # noqa: BLE001  (a defect of the fake, which shall not pass for a result)
                    self.failed(device, PtxError("defect of the fake driver", traceback.format_exc()))
                finally:
                    self.memory.reachable = None
        self.streams = [s for s in self.streams if s.alive or (s.last is not None and not s.last.done)]
        return self.schedule.add(stream, self.streams, run, needs)

    def wait(self, device: int, works: Iterable[Work | None]) -> None:
        """Waits for work, and tells what went wrong in it."""
        self.schedule.finish(works)
        if self.contexts[device].error:
            raise CudaError(self.contexts[device].error)

    def settle(self) -> None:
        """Does all work that is left."""
        self.schedule.finish([s.last for s in self.streams])

    def safe(self, what: str) -> None:
        """Refuses what may make a capture wait; captures under way are spoiled by it."""
        for capture in self.captures():
            own = capture.thread == threading.get_ident()
            if capture.mode == 0 or (capture.mode == 1 and own):
                capture.valid = False
                raise self.refuse(900, f"{what} while a stream is captured")

    def captures(self) -> set[Capture]:
        """The captures under way."""
        return {s.capture for s in self.streams if s.capture is not None}

    # -- memory -----------------------------------------------------------------------------------
    def in_range(self, address: int, size: int) -> None:
        """Refuses what is no range of memory of a device, whether the streams have come to its allocation or not."""
        try:
            piece = self.memory.known(address)
        except PtxError as error:
            raise self.refuse(1, str(error)) from None
        if piece.start in self.doomed or address + size > piece.start + piece.size:
            raise self.refuse(1, f"{size} bytes at {address:#x} run over the end of {piece}, or it is freed before")

    def of_host(self, address: int | None) -> None:
        """Refuses what can be no address of the host."""
        if not address or device_of(address) >= 0:
            raise self.refuse(1, f"{address or 0:#x} is no memory of the host")

    def pinned_at(self, address: int, size: int) -> bool:
        """Whether host memory was allocated by the driver."""
        return any(start <= address and address + size <= start + len(buffer) for start, buffer in self.pinned.items())


def host_bytes(address: int, size: int) -> np.ndarray:
    """Bytes of the host."""
    return np.ctypeslib.as_array((ctypes.c_ubyte * size).from_address(address)) if size else np.empty(0, np.uint8)
