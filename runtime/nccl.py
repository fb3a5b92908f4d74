"""NVIDIA's NCCL: the functions of `libnccl.so.2` that move bytes between the GPUs of several processes, and no others.

The library is that of the system, or of the package `nvidia-nccl-cu12` where one is installed. It is loaded when
somebody asks for it, and once. `use` puts another library in its place, as tests do that have no GPU.

Functions and constants are those of the NCCL API (https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api.html),
from version 2.7 on, which is the first to have `ncclSend` and `ncclRecv`.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint64, c_void_p
from typing import Any

from twofold.ir.errors import UnavailableError

from . import locks

__all__ = ["Communicator", "Nccl", "UniqueId", "nccl", "use", "why_missing"]

_LIBRARY = "libnccl.so.2"
_OLDEST = 2700
_UINT8 = 1  # ncclUint8
_IN_PROGRESS = 7  # ncclInProgress: no error
_HINT = ("The processes cannot exchange tensors any more: end the program, and start it again; TWOFOLD_NCCL=0 has "
         "exchanges go by way of the host.")


class UniqueId(ctypes.Structure):
    """`ncclUniqueId`: what the processes of one communicator know it by."""

    _fields_ = [("internal", ctypes.c_ubyte * 128)]


# Each function's argument types; all but `ncclGetErrorString` give a status. Addresses of a GPU's memory are integers.
_ADDRESS, _HANDLE = c_uint64, c_void_p
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "ncclGetVersion": (POINTER(c_int),),
    "ncclGetUniqueId": (POINTER(UniqueId),),
    "ncclCommInitRank": (POINTER(_HANDLE), c_int, UniqueId, c_int),
    "ncclCommDestroy": (_HANDLE,),
    "ncclCommAbort": (_HANDLE,),
    "ncclCommGetAsyncError": (_HANDLE, POINTER(c_int)),
    "ncclGroupStart": (),
    "ncclGroupEnd": (),
    "ncclSend": (_ADDRESS, c_size_t, c_int, c_int, _HANDLE, _HANDLE),
    "ncclRecv": (_ADDRESS, c_size_t, c_int, c_int, _HANDLE, _HANDLE),
    "ncclAllGather": (_ADDRESS, _ADDRESS, c_size_t, c_int, _HANDLE, _HANDLE),
}


class Nccl:
    """The functions of a library, by name: `nccl.call("ncclGroupStart")` raises where the status is not 0.

    Attributes:
        version: such as 22005 for 2.20.5.
    """

    def __init__(self, library: object) -> None:
        """Args:
            library: has the functions as attributes.
        Raises:
            AttributeError: it lacks one of them. UnavailableError: it is too old, or does not work.
        """
        self._library = library  # whose functions are called by their addresses
        self._functions = {name: ctypes.CFUNCTYPE(c_int, *types)(self._address(name))
                           for name, types in _SIGNATURES.items()}
        self._text = ctypes.CFUNCTYPE(c_char_p, c_int)(self._address("ncclGetErrorString"))
        number = c_int()
        self.call("ncclGetVersion", ctypes.byref(number))
        self.version = number.value
        if self.version < _OLDEST:
            raise UnavailableError(None, None, f"libnccl is of version {self.version}, before 2.7")

    def call(self, name: str, *args: object) -> None:
        """Calls a function.

        Raises:
            UnavailableError: it has failed.
        """
        status = self._functions[name](*args)
        if status not in (0, _IN_PROGRESS):
            raise self.error(name, status)

    def error(self, name: str, status: int) -> UnavailableError:
        """The error for a status of the function `name`."""
        text = (self._text(status) or b"unknown").decode(errors="replace")
        return UnavailableError(None, None, f"NCCL has failed: {name}: {text} ({status}). {_HINT}")

    def unique_id(self) -> bytes:
        """What a new communicator is known by."""
        made = UniqueId()
        self.call("ncclGetUniqueId", ctypes.byref(made))
        return bytes(made)

    def _address(self, name: str) -> int:
        return ctypes.cast(getattr(self._library, name), c_void_p).value or 0


class Communicator:
    """Processes, each with a GPU of its own, which is current in the thread that makes this.

    Args:
        unique: the same for all of them, who come here at the same time.
    """

    def __init__(self, nccl: Nccl, unique: bytes, size: int, rank: int) -> None:
        self._nccl, self.size, self._handle = nccl, size, c_void_p()
        nccl.call("ncclCommInitRank", ctypes.byref(self._handle), size, UniqueId.from_buffer_copy(unique), rank)

    def exchange(self, sent: int, received: int, part: int, stream: c_void_p) -> None:
        """Has a stream send a part of memory to each process, and receive one of each, in the order of their numbers.

        Args:
            sent, received: addresses of as many parts as there are processes.
            part: bytes of each.
        """
        with _grouped(self._nccl):
            for peer in range(self.size):
                at = peer * part
                self._nccl.call("ncclSend", sent + at, part, _UINT8, peer, self._handle, stream)
                self._nccl.call("ncclRecv", received + at, part, _UINT8, peer, self._handle, stream)

    def gather(self, sent: int, received: int, part: int, stream: c_void_p) -> None:
        """Has a stream receive a part of each process, in the order of their numbers."""
        self._nccl.call("ncclAllGather", sent, received, part, _UINT8, self._handle, stream)

    def check(self) -> None:
        """Asks whether what streams were given goes well.

        Raises:
            UnavailableError: it does not.
        """
        status = c_int()
        self._nccl.call("ncclCommGetAsyncError", self._handle, ctypes.byref(status))
        if status.value not in (0, _IN_PROGRESS):
            raise self._nccl.error("ncclCommGetAsyncError", status.value)

    def abort(self) -> None:
        """Ends it at once, with what streams were given."""
        self._end("ncclCommAbort")

    def close(self) -> None:
        """Ends it when all is done; all processes do."""
        self._end("ncclCommDestroy")

    def _end(self, how: str) -> None:
        handle, self._handle = self._handle, c_void_p()
        if handle:
            self._nccl.call(how, handle)


@contextmanager
def _grouped(nccl: Nccl) -> Iterator[None]:
    """A block whose calls are handed in together."""
    nccl.call("ncclGroupStart")
    try:
        yield
    except BaseException:
        with suppress(UnavailableError):  # the first error says what was wrong
            nccl.call("ncclGroupEnd")
        raise
    nccl.call("ncclGroupEnd")


_lock = locks.RLock()
_loaded: Nccl | None = None
_why: str | None = None  # there is none, once that is known


def nccl() -> Nccl | None:
    """The library; None where there is none (`why_missing`)."""
    global _loaded, _why
    with _lock:
        if _loaded is None and _why is None:
            try:
                _loaded = Nccl(ctypes.CDLL(_file()))
            except (OSError, AttributeError, ValueError, UnavailableError) as error:
                _why = str(error)
        return _loaded


def why_missing() -> str:
    """Why there is no library."""
    return "" if nccl() is not None else _why or ""


def use(library: object | None) -> None:
    """Takes another library from now on; None for that of the machine, when it is next asked for."""
    global _loaded, _why
    with _lock:
        _loaded, _why = None if library is None else Nccl(library), None


def _file() -> str:
    """Where the library is: in the package, or wherever the system has it."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        path = os.path.join(folder, "nccl", "lib", _LIBRARY)
        if os.path.exists(path):
            return path
    return _LIBRARY
