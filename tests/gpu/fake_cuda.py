"""A fake of NVIDIA's driver, `libcuda.so.1`: its functions with their C signatures, over memory that NumPy holds.

`FakeCuda()` stands where `ctypes.CDLL("libcuda.so.1")` would: each function is an attribute that ctypes can call, and
`ctypes.cast(function, ctypes.c_void_p)` is its address for native code. Kernels are run by `ptx_machine.py`.

It is as unkind as the documentation allows. Device addresses are no memory of the host; new memory holds NaN; freed
memory is never given again, and its use is an error. Work of streams is done when somebody waits for it, in an order
that the seed draws, so that a missing wait shows as wrong data. Errors are the driver's codes; those of kernels stay in
the context, as with the driver. `findings` says in words what was wrong.
"""

from __future__ import annotations

import ctypes
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
from gpu.cuda_modules import Modules
from gpu.cuda_names import SIGNATURES, CudaError
from gpu.ptx_machine import Checks

__all__ = ["FakeCuda"]


class FakeCuda:
    """The library.

    Attributes:
        findings: what was wrong, in words: of kernels with their line, of calls with their reason.
        calls: how often each function was called.
        counts: "launches", "graph_launches", "allocations", "frees", "copies", "copied_bytes", "modules".
        launches: name, grid and block of each kernel that ran, in the order in which they ran.
        texts: the PTX of the modules that were loaded.
        architecture: of the devices.

    >>> cuda, count = FakeCuda(devices=2), ctypes.c_int()
    >>> cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count)), count.value
    (0, 0, 2)
    """

    def __init__(self, devices: int = 1, memory: int = 1 << 28, architecture: tuple[int, int] = (9, 0), seed: int = 0,
                 lazy: bool = True, checks: Checks | None = None, machine: int = 0) -> None:
        """Args:
            memory: bytes of each device.
            seed: of the order in which work is done.
            lazy: whether work waits until somebody waits for it; else it is done when it is given.
            checks: what is looked for in kernels.
            machine: a number that makes the identities of devices others than those of other machines.
        """
        self._driver = driver = Modules(devices, memory, architecture, seed, lazy, checks or Checks())
        driver.machine = machine
        self.findings, self.calls, self.counts, self.launches = (
            driver.findings, driver.calls, driver.counts, driver.launches)
        self.texts, self.architecture = driver.texts, driver.architecture
        self._functions = {name: ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(self._entry(name, getattr(driver, name)))
                           for name, arguments in SIGNATURES.items()}

    def __getattr__(self, name: str) -> Any:
        """A function of the library."""
        if name.startswith("_") or name not in self._functions:
            raise AttributeError(f"the fake driver has no function {name}")
        return self._functions[name]

    def __getitem__(self, name: str) -> Any:
        """A function by its name, as `ctypes.CDLL` has them."""
        return getattr(self, name)

    def bytes_held(self, device: int = 0) -> int:
        """Bytes that are allocated on a device, and that no call has freed."""
        return self._driver.held(device)

    def handles_of(self, kind: str) -> int:
        """How many handles of a kind, such as "Event", the caller has and has not given back."""
        return sum(type(thing).__name__ == kind for thing in self._driver.handles.values())

    def pinned_bytes(self) -> int:
        """Bytes of the host that are allocated, and that no call has freed."""
        return sum(len(buffer) for buffer in self._driver.pinned.values())

    def settle(self) -> None:
        """Does all work that streams were given, as if much time went by."""
        with self._driver.lock:
            self._driver.settle()

    def peek(self, address: int, count: int, dtype: type) -> np.ndarray:
        """A copy of what memory of a device holds now, in whatever state its streams are."""
        return self._driver.memory.bytes(address, count * np.dtype(dtype).itemsize).view(dtype).copy()

    def _entry(self, name: str, function: Callable[..., None]) -> Callable[..., int]:
        """What C calls: a function that gives a code, whatever happens."""
        def entry(*args: Any) -> int:
            with self._driver.lock:
                self.calls[name] += 1
                try:
                    function(*args)
                except CudaError as error:
                    return error.code
                except Exception:  # noqa: BLE001  (nothing may go through C)
                    self.findings.append(traceback.format_exc())
                    return 999
                return 0
        return entry
