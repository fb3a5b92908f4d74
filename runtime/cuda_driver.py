"""NVIDIA's driver: the functions of `libcuda.so.1` that are used, typed, each with its status turned into an error.

The library comes with every driver, so that nothing needs to be installed to run on a GPU. It is loaded when somebody
asks for GPUs, and once. `use` puts another library in its place, as tests do that have no GPU.

What memory, code and streams are made of these functions is the affair of `cuda_device.py` and what stands on it. The
functions and constants are those of NVIDIA's CUDA Driver API, version 12.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable
from ctypes import POINTER, c_char, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from typing import Any

from twofold.ir.errors import FailedPreconditionError, InternalError, OpError, ResourceExhaustedError

from . import locks

__all__ = ["CudaError", "Driver", "NO_TIMES", "OUT_OF_MEMORY", "driver", "use", "why_missing"]

OUT_OF_MEMORY = 2
NO_TIMES = 2  # CU_EVENT_DISABLE_TIMING: of an event that tells only that something is done
_LIBRARY = "libcuda.so.1"
# Statuses after which a context gives no others: of errors that kernels made, of the memory's hardware, of timeouts.
_LASTING = frozenset({214, 220, 226, 700, 702, 710, *range(714, 720)})
_FORKED = ("This process was forked from one that uses GPUs: their memory and the driver's state are those of the "
           "parent process. Start processes that use GPUs by the spawn method, such as "
           "multiprocessing.get_context('spawn').")
_drivers: weakref.WeakSet[Driver] = weakref.WeakSet()


def _lost(*args: object) -> int:
    """Stands for a function of the driver where it must not be called; the status is none of the driver's."""
    return -1


# Each function's argument types; all give a status. Handles and host addresses are pointers, addresses of a GPU's
# memory integers.
_ADDRESS, _HANDLE = c_uint64, c_void_p
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (POINTER(c_char), c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDeviceGetUuid_v2": (c_void_p, c_int),
    "cuDeviceTotalMem_v2": (POINTER(c_size_t), c_int),
    "cuDeviceGetDefaultMemPool": (POINTER(_HANDLE), c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(_HANDLE), c_int),
    "cuCtxSetCurrent": (_HANDLE,),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuMemAllocAsync": (POINTER(_ADDRESS), c_size_t, _HANDLE),
    "cuMemFreeAsync": (_ADDRESS, _HANDLE),
    "cuPointerGetAttribute": (c_void_p, c_int, _ADDRESS),
    "cuMemPoolSetAttribute": (_HANDLE, c_int, c_void_p),
    "cuMemPoolTrimTo": (_HANDLE, c_size_t),
    "cuMemcpyHtoDAsync_v2": (_ADDRESS, c_void_p, c_size_t, _HANDLE),
    "cuMemcpyDtoHAsync_v2": (c_void_p, _ADDRESS, c_size_t, _HANDLE),
    "cuMemcpyDtoDAsync_v2": (_ADDRESS, _ADDRESS, c_size_t, _HANDLE),
    "cuMemcpyPeerAsync": (_ADDRESS, _HANDLE, _ADDRESS, _HANDLE, c_size_t, _HANDLE),
    "cuMemHostAlloc": (POINTER(c_void_p), c_size_t, c_uint),
    "cuMemFreeHost": (c_void_p,),
    "cuMemsetD8Async": (_ADDRESS, c_ubyte, c_size_t, _HANDLE),
    "cuStreamCreate": (POINTER(_HANDLE), c_uint),
    "cuStreamSynchronize": (_HANDLE,),
    "cuStreamWaitEvent": (_HANDLE, _HANDLE, c_uint),
    "cuStreamBeginCapture_v2": (_HANDLE, c_int),
    "cuStreamEndCapture": (_HANDLE, POINTER(_HANDLE)),
    "cuEventCreate": (POINTER(_HANDLE), c_uint),
    "cuEventDestroy_v2": (_HANDLE,),
    "cuEventRecord": (_HANDLE, _HANDLE),
    "cuEventQuery": (_HANDLE,),
    "cuEventSynchronize": (_HANDLE,),
    "cuEventElapsedTime": (POINTER(c_float), _HANDLE, _HANDLE),
    "cuModuleLoadData": (POINTER(_HANDLE), c_char_p),
    "cuModuleGetFunction": (POINTER(_HANDLE), _HANDLE, c_char_p),
    "cuFuncGetAttribute": (POINTER(c_int), c_int, _HANDLE),
    "cuLaunchKernel": (_HANDLE, *[c_uint] * 7, _HANDLE, c_void_p, c_void_p),
    "cuLinkCreate_v2": (c_uint, POINTER(c_int), POINTER(c_void_p), POINTER(_HANDLE)),
    "cuLinkAddData_v2": (_HANDLE, c_int, c_char_p, c_size_t, c_char_p, c_uint, POINTER(c_int), POINTER(c_void_p)),
    "cuLinkComplete": (_HANDLE, POINTER(c_void_p), POINTER(c_size_t)),
    "cuLinkDestroy": (_HANDLE,),
    "cuGraphInstantiateWithFlags": (POINTER(_HANDLE), _HANDLE, c_uint64),
    "cuGraphLaunch": (_HANDLE, _HANDLE),
    "cuGraphExecDestroy": (_HANDLE,),
    "cuGraphDestroy": (_HANDLE,),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
}


class CudaError(InternalError):
    """A function of the driver has failed; `status` is what it gave."""

    def __init__(self, text: str, status: int = 0, op: str | None = None) -> None:
        super().__init__(None, op, text)
        self.status = status

    def __reduce__(self) -> tuple[object, ...]:
        return CudaError, (self.message, self.status), vars(self)


class Driver:
    """The functions of a library, by name: `driver.cuMemFreeAsync(address, stream)` raises where the status is not 0.

    Attributes:
        version: of the driver, such as 12040 for 12.4.
        count: how many GPUs there are.
        tellers: who says what was handed in last, for errors of which the driver does not say what they come from.
        lost: whether this process was forked from the one that has the GPUs.
    """

    def __init__(self, library: object) -> None:
        """Args:
            library: has the functions as attributes.
        Raises:
            AttributeError: it lacks one of them. CudaError: it finds no GPU that works.
        """
        self.tellers: list[Callable[[], list[str]]] = []
        self.lost = False
        self._library = library  # whose functions are called by their addresses: it must live as long as whoever does
        self._status = {name: _typed(self.address(name), types) for name, types in _SIGNATURES.items()}
        for name, function in self._status.items():
            setattr(self, name, self._checked(name, function))
        self.cuInit(0)
        self.version, self.count = (self._number(name) for name in ("cuDriverGetVersion", "cuDeviceGetCount"))
        _drivers.add(self)

    def __getattr__(self, name: str) -> Callable[..., None]:  # which type checkers need for the functions
        raise AttributeError(f"the CUDA driver has no function {name}")

    def status(self, name: str, *args: object) -> int:
        """What the function `name` gives, whatever that is."""
        result: int = self._status[name](*args)
        return result

    def address(self, name: str) -> int:
        """The address of the function `name`, for machine code."""
        return ctypes.cast(getattr(self._library, name), c_void_p).value or 0

    def error(self, name: str, status: int) -> OpError:
        """The error for a status of the function `name` that is not 0."""
        if self.lost:
            return self.forked()
        text = self.explained(name, status)
        if status == OUT_OF_MEMORY:
            return ResourceExhaustedError(None, None, text)
        if status not in _LASTING:
            return CudaError(text, status)
        told = list(dict.fromkeys(one for tell in self.tellers for one in tell()))
        where = f" What was handed in last: {'; '.join(told)}." if told else ""
        return CudaError(f"A GPU has failed, and the driver runs nothing more in this process: {text}.{where}", status,
                         told[0].partition(" ")[0].rstrip(",") if len(told) == 1 else None)

    def forked(self) -> FailedPreconditionError:
        """The error for a call in a process that was forked from the one that has the GPUs."""
        return FailedPreconditionError(None, None, _FORKED)

    def lose(self) -> None:
        """Has all calls fail, in a process that was forked: the driver's state is that of its parent."""
        self.lost = True
        for name in self._status:
            self._status[name] = _lost
            setattr(self, name, self._checked(name, _lost))

    def explained(self, name: str, status: int) -> str:
        """A status of the function `name` in words."""
        texts = []
        for ask in ("cuGetErrorName", "cuGetErrorString"):
            text = c_char_p()
            self._status[ask](status, ctypes.byref(text))
            texts.append((text.value or b"unknown").decode(errors="replace"))
        return f"{name}: {texts[0]}: {texts[1]}"

    def _checked(self, name: str, function: Callable[..., int]) -> Callable[..., None]:
        def call(*args: object) -> None:
            status = function(*args)
            if status:
                raise self.error(name, status)
        return call

    def _number(self, name: str) -> int:
        number = c_int()
        getattr(self, name)(ctypes.byref(number))
        return number.value


def _typed(address: int, types: tuple[Any, ...]) -> Callable[..., int]:
    """The function at an address, with an interpreter's lock that is given up meanwhile."""
    return ctypes.CFUNCTYPE(c_int, *types)(address)


_lock = locks.RLock()
_loaded: Driver | None = None
_why: str | None = None  # there is none, once that is known


def driver() -> Driver | None:
    """The driver of this machine; None where there is none, or no GPU (`why_missing`)."""
    global _loaded, _why
    if _loaded is None and _why is None:
        with _lock:
            if _loaded is None and _why is None:
                try:
                    _loaded = Driver(ctypes.CDLL(_LIBRARY))
                except (OSError, AttributeError, CudaError) as error:
                    _why = str(error)
    return _loaded


def why_missing() -> str:
    """Why there is no GPU."""
    return "" if driver() is not None else _why or ""


def use(library: object | None) -> None:
    """Takes another library for the driver from now on; None for that of the machine, when it is next asked for.

    What was made with the one before must not be used any more.
    """
    global _loaded, _why
    with _lock:
        _loaded, _why = None if library is None else Driver(library), None


def _after_fork() -> None:
    for each in list(_drivers):
        each.lose()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
