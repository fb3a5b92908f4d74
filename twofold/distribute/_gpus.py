"""Exchanges of what lies on GPUs, one in each process: NCCL moves the bytes, kernels of ours add, in the replicas'
order.

The way of sums is that of `_transport.py`: packs up to 32 KB are gathered whole, larger ones are cut into as many parts
as there are processes. All of it is work on a stream of its own, beside what the GPU computes. The thread that makes
exchanges (`_line.py`) waits for it, so that an error is seen, and memory goes back when nobody uses it any more.

Processes agree once whether they exchange so (`_why_not`), and tell at each exchange whether they have it on their GPU:
what one of them has elsewhere goes by way of the host in all.
"""

from __future__ import annotations

import ctypes
import functools
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from twofold.eager import executing
from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir import ops
from twofold.ir.build import Builder
from twofold.ir.dtypes import from_numpy
from twofold.ir.errors import UnavailableError
from twofold.ir.op import use_interpreter
from twofold.runtime import cuda, nccl
from twofold.runtime.cuda_device import DeviceArray, Gpu, whole_units
from twofold.runtime.cuda_driver import NO_TIMES
from twofold.runtime.log import log

from ._transport import PATIENCE, SMALL, SOON, Group, give_way

__all__ = ["Gpus", "Packed"]

_HOST, _NEW, _READY = range(3)  # what a process offers: its host, a GPU that others do not know, the one they know
_NOT_READY = 600  # CUDA_ERROR_NOT_READY


class Packed:
    """Arrays of a GPU that are to be exchanged, and memory for their sums, if there are to be any.

    Made by who hands in the GPU's work: the arrays are those that this work makes, and the memory is free after it.
    """

    def __init__(self, arrays: Sequence[DeviceArray], are_summed: bool) -> None:
        self.gpu, self.arrays = arrays[0].gpu, arrays
        self.results = [self.gpu.empty(a.shape, a.dtype) for a in arrays] if are_summed else []
        self._ready = _recorded(self.gpu, self.gpu.stream)

    def on_host(self) -> list[np.ndarray]:
        """The arrays as ones of the host."""
        return [cuda.copy_from(a) for a in self.arrays]

    def follow(self, stream: ctypes.c_void_p) -> None:
        """Has a stream wait for the arrays and the memory."""
        self.gpu.driver.cuStreamWaitEvent(stream, self._ready, 0)

    def __del__(self) -> None:
        ready = getattr(self, "_ready", None)
        if ready:
            self.gpu.make_current()
            self.gpu.driver.status("cuEventDestroy_v2", ready)


class Gpus:
    """The GPUs of a line's processes, as this process knows them."""

    def __init__(self) -> None:
        self._gpu: Gpu | None = None  # what was agreed is about it
        self._why = ""  # exchanges go by way of the host
        self._beside: cuda.CUDA | None = None
        self._communicator: nccl.Communicator | None = None

    def offer(self, arrays: Sequence[Any]) -> int:
        """What this process tells the others about an exchange: 0 where it is to go by way of the host."""
        if not all(isinstance(a, DeviceArray) for a in arrays) or not sum(a.nbytes for a in arrays):
            return _HOST
        gpu = arrays[0].gpu
        if any(a.gpu is not gpu for a in arrays):
            return _HOST
        if gpu is not self._gpu:
            return _NEW
        return _HOST if self._why else _READY

    def meet(self, group: Group, gpu: Gpu, offers: Sequence[int]) -> bool:
        """Whether all processes make this exchange on their GPUs, which they agree about where that is new.

        Raises:
            UnavailableError: NCCL does not connect them.
        """
        if _HOST in offers:
            return False
        if _NEW in offers:
            self._agree(group, gpu)
        return not self._why

    def packed(self, arrays: Sequence[DeviceArray], are_summed: bool = False) -> Packed:
        """Arrays that are to be exchanged; see `Packed`."""
        return Packed(arrays, are_summed)

    def sum(self, packed: Packed, group: Group) -> list[DeviceArray]:
        """The sums of the arrays of all processes, those of the first process first.

        Raises:
            UnavailableError: NCCL has failed. Nothing can be exchanged after that.
        """
        with self._all_or_none():
            self._sum(packed)
            self._wait()
        return packed.results

    def gather(self, packed: Packed, group: Group) -> list[Callable[[], list[DeviceArray]]]:
        """For each array what gives copies of those of all processes, in their order, on its GPU.

        Raises:
            UnavailableError: as for `sum`.
        """
        own = np.array([n for a in packed.arrays for n in a.shape], np.int64)
        with self._all_or_none():
            parts = self._gather(packed, [_shaped(packed.arrays, row.tolist()) for row in group.gather(own)])
            self._wait()
        return [functools.partial(_copies, packed.gpu, of_all) for of_all in zip(*parts, strict=True)]

    def close(self) -> None:
        """Ends the connection, as all processes do."""
        communicator, self._communicator = self._communicator, None
        if communicator is not None and self._beside is not None:
            with self._beside.gpu:
                communicator.close()

    def free(self) -> None:
        """Gives memory that is kept for exchanges back to the driver."""
        if self._beside is not None:
            self._beside.gpu.trim()

    # -- agreeing ---------------------------------------------------------------------------------
    def _agree(self, group: Group, gpu: Gpu) -> None:
        self.close()
        texts = group.texts(json.dumps(_told(gpu)))
        self._gpu, self._why = gpu, _why_not(list(map(json.loads, texts)))
        if self._why:
            log("device", f"sums of processes go by way of the host: {self._why}")
            return
        self._connect(group, gpu)

    def _connect(self, group: Group, gpu: Gpu) -> None:
        library = nccl.nccl()
        assert library is not None
        if self._beside is None or self._beside.gpu.driver is not gpu.driver or self._beside.gpu.index != gpu.index:
            self._beside = cuda.CUDA(Gpu(gpu.driver, gpu.index), False)  # with a stream and memory of its own
            gpu.add_keeper(self)
        unique: Any = b""
        if group.rank == 0:
            try:
                unique = library.unique_id()
            except UnavailableError as error:
                unique = error.message
        unique = group.broadcast(unique)
        if isinstance(unique, str):
            raise UnavailableError(None, None, unique)
        with self._beside.gpu:
            self._communicator = nccl.Communicator(library, unique, group.size, group.rank)
        log("device", f"sums of processes go from GPU to GPU, by NCCL {library.version}")

    # -- exchanging -------------------------------------------------------------------------------
    def _sum(self, packed: Packed) -> None:
        """Hands everything in."""
        assert self._beside is not None and self._communicator is not None
        gpu, processes, dtype = self._beside.gpu, self._communicator, packed.arrays[0].dtype
        sizes = [a.nbytes for a in packed.arrays]
        total, starts = sum(sizes), _starts(sizes)
        parts = 1 if total <= SMALL else processes.size
        part = whole_units(-(-total // parts))  # bytes
        sent, received = (gpu.empty((count * part // dtype.itemsize,), dtype) for count in (parts, processes.size))
        with gpu:
            packed.follow(gpu.stream)
            _copy(gpu, packed.arrays, [sent.address + at for at in starts])
            move = processes.gather if parts == 1 else processes.exchange
            move(sent.address, received.address, part, gpu.stream)
        summed = self._added(received, processes.size)
        with gpu:
            if parts > 1:
                processes.gather(summed.address, sent.address, part, gpu.stream)  # which nobody needs any more
                summed = sent
            _copy(gpu, [_at(summed, like, at) for like, at in zip(packed.arrays, starts, strict=True)],
                  [a.address for a in packed.results])

    def _gather(self, packed: Packed, shapes: Sequence[Sequence[tuple[int, ...]]]) -> list[list[DeviceArray]]:
        """Hands everything in; gives the arrays of each process, which have these shapes."""
        assert self._beside is not None and self._communicator is not None
        gpu, processes = self._beside.gpu, self._communicator
        sizes = [[math.prod(shape) * a.dtype.itemsize for shape, a in zip(row, packed.arrays, strict=True)]
                 for row in shapes]
        part = whole_units(max(map(sum, sizes)))
        sent, received = (gpu.empty((count * part,), np.dtype(np.uint8)) for count in (1, processes.size))
        with gpu:
            packed.follow(gpu.stream)
            _copy(gpu, packed.arrays, [sent.address + at for at in _starts([a.nbytes for a in packed.arrays])])
            processes.gather(sent.address, received.address, part, gpu.stream)
        return [[DeviceArray(received.owner, shape, a.dtype, n * part + at)
                 for shape, a, at in zip(row, packed.arrays, _starts(size), strict=True)]
                for n, (row, size) in enumerate(zip(shapes, sizes, strict=True))]

    def _added(self, parts: DeviceArray, count: int) -> DeviceArray:
        """The sum of parts of equal sizes, the first ones first."""
        assert self._beside is not None
        size = parts.size // count
        rows = [DeviceArray(parts.owner, (size,), parts.dtype, n * size * parts.dtype.itemsize) for n in range(count)]
        add = _adding(self._beside, parts.dtype)

        def added(a: DeviceArray, b: DeviceArray) -> DeviceArray:
            made: Any = executing.execute_on(add, [a, b])  # type: ignore[list-item]  # memory of the backend
            return made[0]
        return functools.reduce(added, rows)

    def _wait(self) -> None:
        """Waits for what was handed in, and looks after the other processes meanwhile.

        Raises:
            UnavailableError: one of them is lost. InternalError: work on the GPU has failed.
        """
        assert self._beside is not None and self._communicator is not None
        gpu, looks = self._beside.gpu, 0
        done = _recorded(gpu, gpu.stream)
        try:
            while status := gpu.driver.status("cuEventQuery", done):
                if status != _NOT_READY:
                    raise gpu.driver.error("cuEventQuery", status)
                self._communicator.check()
                looks += 1
                give_way() if looks < SOON else time.sleep(PATIENCE)
        finally:
            gpu.driver.status("cuEventDestroy_v2", done)
        gpu.handed.clear()

    @contextmanager
    def _all_or_none(self) -> Iterator[None]:
        """A block whose error ends the connection."""
        try:
            yield
        except BaseException:
            self._abort()
            raise

    def _abort(self) -> None:
        """Ends what is under way on the GPU: others may never come to it."""
        communicator, self._communicator = self._communicator, None
        if communicator is None or self._beside is None:
            return
        gpu = self._beside.gpu
        gpu.make_current()
        with suppress(UnavailableError):  # the first error says what was wrong
            communicator.abort()
        gpu.driver.status("cuStreamSynchronize", gpu.stream)  # until which memory is used


def _told(gpu: Gpu) -> dict[str, Any]:
    """What a process tells the others about itself, before they exchange anything from GPU to GPU."""
    if os.environ.get("TWOFOLD_NCCL", "") == "0":
        return {"why": "TWOFOLD_NCCL=0"}
    library = nccl.nccl()
    if library is None:
        return {"why": f"there is no NCCL ({nccl.why_missing()})"}
    return {"why": "", "gpu": gpu.identity().hex(), "version": library.version}


def _why_not(told: Sequence[dict[str, Any]]) -> str:
    """Why processes do not exchange from GPU to GPU, from what they all told: the same text in each."""
    for number, one in enumerate(told):
        if one["why"]:
            return f"process {number}: {one['why']}"
        first = next(n for n, other in enumerate(told) if other.get("gpu") == one["gpu"])
        if first != number:
            return f"processes {first} and {number} share a GPU"
        if one["version"] != told[0]["version"]:
            return f"processes 0 and {number} have NCCL {told[0]['version']} and {one['version']}"
    return ""


def _recorded(gpu: Gpu, stream: ctypes.c_void_p) -> ctypes.c_void_p:
    """An event behind all that a stream was given."""
    event = ctypes.c_void_p()
    with gpu:
        gpu.driver.cuEventCreate(ctypes.byref(event), NO_TIMES)
        gpu.driver.cuEventRecord(event, stream)
    return event


def _copies(gpu: Gpu, arrays: Sequence[DeviceArray]) -> list[DeviceArray]:
    """Copies of arrays that are done, on a GPU; the memory of these may be used again then."""
    copies = [gpu.empty(a.shape, a.dtype) for a in arrays]
    with gpu:
        _copy(gpu, arrays, [copy.address for copy in copies])
    gpu.wait()
    return copies


def _starts(sizes: Sequence[int]) -> list[int]:
    """At which byte of a pack each array begins."""
    return [sum(sizes[:n]) for n in range(len(sizes))]


def _shaped(arrays: Sequence[DeviceArray], sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """The shapes of arrays of the ranks of these, whose sizes were told one after another."""
    starts = _starts([a.ndim for a in arrays])
    return [tuple(sizes[at:at + a.ndim]) for a, at in zip(arrays, starts, strict=True)]


def _at(pack: DeviceArray, like: DeviceArray, start: int) -> DeviceArray:
    """An array in a pack."""
    return DeviceArray(pack.owner, like.shape, like.dtype, pack.address - pack.owner.address + start)


def _copy(gpu: Gpu, arrays: Sequence[DeviceArray], to: Sequence[int]) -> None:
    """Has a GPU's stream copy arrays to some addresses."""
    for array, address in zip(arrays, to, strict=True):
        if array.nbytes:
            gpu.driver.cuMemcpyDtoDAsync_v2(address, array.address, array.nbytes, gpu.stream)


@functools.lru_cache(64)
def _adding(backend: cuda.CUDA, dtype: np.dtype) -> Any:
    """The program that adds two vectors."""
    graph = g.Graph("add")
    size = dm.symbol("n")
    values = [graph.add_input((size,), from_numpy(dtype)) for _ in range(2)]
    with use_interpreter(Builder(graph)), dm.recording():
        graph.outputs = [ops.add(*values)]
    return executing.executable(graph, backend=backend)
