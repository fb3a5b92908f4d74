"""Kernels on a GPU: from loop IR to functions of the driver's, kept in memory and on disk.

A kernel becomes PTX (`codegen/ptx.py`), which the driver compiles for the GPU at hand. Both texts and machine code are
kept in the folder of compiled code, under all that they depend on, so that a later process does neither again. Nothing
is launched here.
"""

from __future__ import annotations

import ctypes
import functools
from typing import NamedTuple

from twofold.codegen import ptx
from twofold.codegen.statements import Kernel
from twofold.ir.errors import InternalError

from . import cache, kernels, locks
from .cuda_device import Gpu
from .cuda_driver import CudaError

__all__ = ["LoadedKernel", "KernelResources", "function"]

_NAME = "kernel"  # of the one entry of a module
_PTX = 1  # CU_JIT_INPUT_PTX
_ERROR_LOG, _ERROR_LOG_SIZE = 5, 6  # CU_JIT_ERROR_LOG_BUFFER, _SIZE_BYTES
_LOG = 8192  # bytes
_SHARED, _LOCAL, _REGISTERS = 1, 3, 4  # CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, _LOCAL_SIZE_BYTES, _NUM_REGS
_ROUNDS = 8  # blocks for each multiprocessor from which threads take several iterations
_RESIDENT = 2048  # threads that a multiprocessor has at once
_MOST_BLOCKS = 2**31 - 1


class KernelResources(NamedTuple):
    """What a function takes: registers and bytes of local memory of a thread, bytes of shared memory of a block."""

    registers: int
    local: int
    shared: int


class LoadedKernel:
    """A kernel on one GPU, which is compiled and loaded when it is first to be launched.

    Attributes:
        kernel: what it is of.
    """

    def __init__(self, gpu: Gpu, kernel: Kernel, module: str) -> None:
        """Args:
            module: the LLVM module with its code.
        """
        self.gpu, self.kernel, self._module = gpu, kernel, module

    @functools.cached_property
    def handle(self) -> ctypes.c_void_p:
        """The driver's.

        Raises:
            InternalError: the driver refuses its code.
        """
        with _lock:
            gpu, module, handle = self.gpu, ctypes.c_void_p(), ctypes.c_void_p()
            image = _image(gpu, self.kernel, self._module)
            with gpu:
                gpu.driver.cuModuleLoadData(ctypes.byref(module), image)
                gpu.driver.cuModuleGetFunction(ctypes.byref(handle), module, _NAME.encode())
            return handle

    @functools.cached_property
    def resources(self) -> KernelResources:
        """What it takes."""
        return KernelResources(*[self._attribute(number) for number in (_REGISTERS, _LOCAL, _SHARED)])

    def shape(self, total: int) -> tuple[int, int]:
        """How many blocks run `total` iterations, and the threads of each."""
        block, iterations = ptx.threads(self.kernel)
        wanted = -(-total // iterations)
        return max(1, min(wanted, self.gpu.processors * _ROUNDS * (_RESIDENT // block), _MOST_BLOCKS)), block

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        with self.gpu:
            self.gpu.driver.cuFuncGetAttribute(ctypes.byref(value), number, self.handle)
        return value.value


_lock = locks.RLock()
_functions: dict[tuple[Gpu, str], LoadedKernel] = {}


def function(gpu: Gpu, kernel: Kernel, arguments: int) -> LoadedKernel:
    """The function of a kernel, made now or before; kernels of one text share it.

    Args:
        arguments: how many the kernel is given.
    """
    with _lock:
        module = ptx.module({_NAME: kernel}, count=arguments)
        loaded = _functions.get((gpu, module))
        if loaded is None:
            loaded = _functions[gpu, module] = LoadedKernel(gpu, kernel, module)
        return loaded


def _image(gpu: Gpu, kernel: Kernel, module: str) -> bytes:
    """The machine code of an LLVM module, from disk or compiled now."""
    base = cache.digest("ptx", module, *kernels.identity())
    text = cache.read("ptx", base)
    if text is None:
        text = ptx.assembly(module).encode()
        cache.write("ptx", base, text, str(kernel))
    key = cache.digest("cubin", base, gpu.architecture, gpu.driver.version)
    image = cache.read("cubin", key)
    if image is None:
        image = _linked(gpu, kernel, text)
        cache.write("cubin", key, image)
    return image


def _linked(gpu: Gpu, kernel: Kernel, text: bytes) -> bytes:
    """What the driver's compiler makes of PTX.

    Raises:
        InternalError: it refuses.
    """
    driver, state = gpu.driver, ctypes.c_void_p()
    image, size, log = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.create_string_buffer(_LOG)
    options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_SIZE)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG)
    with gpu:
        driver.cuLinkCreate_v2(2, options, values, ctypes.byref(state))
        try:
            driver.cuLinkAddData_v2(state, _PTX, text, len(text) + 1, kernel.name.encode(), 0, None, None)
            driver.cuLinkComplete(state, ctypes.byref(image), ctypes.byref(size))
            return ctypes.string_at(image, size.value)
        except CudaError as error:
            said = log.value.decode(errors="replace").strip()
            raise InternalError(None, kernel.name, f"the CUDA driver cannot compile the kernel {kernel.name}: {error}"
                                                   f"{': ' + said if said else ''}") from None
        finally:
            driver.cuLinkDestroy(state)
