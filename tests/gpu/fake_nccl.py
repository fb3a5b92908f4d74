"""A fake of NVIDIA's NCCL, `libnccl.so.2`: its functions with their C signatures, over the memory and streams of a fake
driver (`fake_cuda.py`). Between processes, bytes go by MPI; with a group of twins (`distribute/alike.py`) each other
process has what this one has.

`FakeNccl(cuda)` stands where `ctypes.CDLL("libnccl.so.2")` would. `findings` of the driver says what was wrong.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import c_char_p, c_int, c_size_t, c_uint64, c_void_p
from typing import Any

from gpu.cuda_names import put
from gpu.fake_cuda import FakeCuda

from twofold.runtime.nccl import UniqueId

__all__ = ["FakeNccl"]

_P, _N, _Q, _I = c_void_p, c_size_t, c_uint64, c_int
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "ncclGetVersion": (_P,), "ncclGetUniqueId": (_P,), "ncclCommInitRank": (_P, _I, UniqueId, _I),
    "ncclCommDestroy": (_P,), "ncclCommAbort": (_P,), "ncclCommGetAsyncError": (_P, _P), "ncclGroupStart": (),
    "ncclGroupEnd": (), "ncclSend": (_Q, _N, _I, _I, _P, _P), "ncclRecv": (_Q, _N, _I, _I, _P, _P),
    "ncclAllGather": (_Q, _Q, _N, _I, _P, _P)}
_TEXTS = {1: b"unhandled cuda error", 2: b"unhandled system error", 4: b"invalid argument", 5: b"invalid usage",
          6: b"remote process exited or there was a network error"}
_COMMUNICATOR = 0x4E434331
_UNIQUE = bytes(range(1, 129))


class FakeNccl:
    """The library.

    Attributes:
        told: what was done: "init", "abort", "destroy", "exchange of N", "gather of N" (bytes of a part).
        failing: statuses by the name of the function that is to give them.
        lost: whether other processes never come; then `ncclCommGetAsyncError` says so.
    """

    def __init__(self, cuda: FakeCuda, communicator: Any = None, version: int = 22005) -> None:
        """Args:
            communicator: of mpi4py, which nobody else uses; None for twins.
        """
        self.told: list[str] = []
        self.failing: dict[str, int] = {}
        self.lost = False
        self._driver, self._mpi, self._version = cuda._driver, communicator, version
        self._size, self._depth, self._open = 0, 0, False
        self._group: list[tuple[str, int, int, int, int]] = []  # what, address, bytes, peer, stream
        self._functions = {name: ctypes.CFUNCTYPE(c_int, *arguments)(self._entry(name))
                           for name, arguments in _SIGNATURES.items()}
        self.ncclGetErrorString = ctypes.CFUNCTYPE(c_void_p, c_int)(
            lambda status: ctypes.cast(c_char_p(_TEXTS.get(status, b"unknown")), c_void_p).value)

    def __getattr__(self, name: str) -> Any:
        """A function of the library."""
        if name.startswith("_") or name not in self._functions:
            raise AttributeError(f"the fake of NCCL has no function {name}")
        return self._functions[name]

    def _entry(self, name: str) -> Callable[..., int]:
        """What C calls."""
        def entry(*args: Any) -> int:
            if name in self.failing:
                return self.failing[name]
            try:
                return getattr(self, f"_{name[4:]}")(*args) or 0
            except Exception as error:  # noqa: BLE001  (nothing may go through C)
                return self._refuse(f"{name}: {error!r}")
        return entry

    def _refuse(self, text: str) -> int:
        self._driver.findings.append(text)
        return 4

    # -- communicators ----------------------------------------------------------------------------
    def _GetVersion(self, out: int) -> None:
        put(out, c_int, self._version)

    def _GetUniqueId(self, out: int) -> None:
        ctypes.memmove(out, _UNIQUE, len(_UNIQUE))

    def _CommInitRank(self, out: int, size: int, unique: UniqueId, rank: int) -> int | None:
        self._driver.context()  # which must be current
        if bytes(unique) != _UNIQUE or not 0 <= rank < size:
            return self._refuse("the unique id is another, or the rank is none")
        if self._mpi is not None and (self._mpi.Get_size(), self._mpi.Get_rank()) != (size, rank):
            return self._refuse("ranks are not those of MPI")
        self._size, self._rank, self._open = size, rank, True
        self.told.append("init")
        put(out, c_void_p, _COMMUNICATOR)
        return None

    def _CommDestroy(self, handle: int) -> int | None:
        return self._ended(handle, "destroy")

    def _CommAbort(self, handle: int) -> int | None:
        self.lost = False  # what waits for others ends
        return self._ended(handle, "abort")

    def _ended(self, handle: int, how: str) -> int | None:
        if not self._open or handle != _COMMUNICATOR or self._depth:
            return self._refuse("no communicator, or in a group")
        self._open = False
        self.told.append(how)
        return None

    def _CommGetAsyncError(self, handle: int, out: int) -> int | None:
        if not self._open or handle != _COMMUNICATOR:
            return self._refuse("no communicator")
        put(out, c_int, 6 if self.lost else 0)
        return None

    # -- moving bytes -----------------------------------------------------------------------------
    def _GroupStart(self) -> None:
        self._depth += 1

    def _GroupEnd(self) -> int | None:
        if not self._depth:
            return self._refuse("a group ends that has not begun")
        self._depth -= 1
        if self._depth:
            return None
        calls, self._group = self._group, []
        peers = list(range(self._size))
        sends, receives = ([c for c in calls if c[0] == kind] for kind in ("send", "receive"))
        if [c[3] for c in sends] != peers or [c[3] for c in receives] != peers or len({c[4] for c in calls}) != 1:
            return self._refuse("a group is no exchange of all with all on one stream")
        self.told.append(f"exchange of {sends[0][2]}")

        def move() -> None:
            parts = [self._bytes(c).tobytes() for c in sends]
            for call, part in zip(receives, self._exchanged(parts), strict=True):
                self._bytes(call)[:] = bytearray(part)
        self._give(calls[0][4], move)
        return None

    def _Send(self, address: int, count: int, dtype: int, peer: int, handle: int, stream: int) -> int | None:
        return self._grouped("send", address, count, dtype, peer, handle, stream)

    def _Recv(self, address: int, count: int, dtype: int, peer: int, handle: int, stream: int) -> int | None:
        return self._grouped("receive", address, count, dtype, peer, handle, stream)

    def _grouped(self, kind: str, address: int, count: int, dtype: int, peer: int, handle: int,
                 stream: int) -> int | None:
        self._check(handle, dtype, (address, count))
        if not self._depth:
            return self._refuse(f"{kind} outside of a group")
        self._group.append((kind, address, count, peer, stream))
        return None

    def _AllGather(self, sent: int, received: int, count: int, dtype: int, handle: int, stream: int) -> None:
        self._check(handle, dtype, (sent, count), (received, count * self._size))
        if sent < received + count * self._size and received < sent + count and \
                sent != received + count * self._rank:
            raise ValueError("memory that is sent is received into")
        self.told.append(f"gather of {count}")

        def move() -> None:
            part = self._driver.memory.bytes(sent, count).tobytes()
            parts = self._exchanged([part] * self._size)
            self._driver.memory.bytes(received, count * self._size)[:] = bytearray(b"".join(parts))
        self._give(stream, move)

    def _check(self, handle: int, dtype: int, *ranges: tuple[int, int]) -> None:
        """Refuses what is no communicator, no bytes, or no memory of a device."""
        if not self._open or handle != _COMMUNICATOR or dtype not in (0, 1):
            raise ValueError("no communicator, or no dtype of one byte")
        for address, size in ranges:
            if not size or address % 16:
                raise ValueError("no bytes, or no place for quick copies")
            self._driver.in_range(address, size)

    def _bytes(self, call: tuple[str, int, int, int, int]) -> Any:
        return self._driver.memory.bytes(call[1], call[2])

    def _give(self, stream: int, move: Callable[[], None]) -> None:
        with self._driver.lock:
            self._driver.give(self._driver.stream(stream), lambda: None if self.lost else move())

    def _exchanged(self, parts: Sequence[bytes]) -> list[bytes]:
        """For each process what it has for this one."""
        if self._mpi is None:
            return list(parts)
        received: list[bytes] = self._mpi.alltoall(list(parts))
        return received
