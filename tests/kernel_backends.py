"""Kernels through the LLVM backend beside the same kernels through numba, for the tests of either."""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from kernel_sample import assert_same, edges, random
from llvmlite import ir

from twofold.codegen import llvm_cpu, llvm_module
from twofold.codegen.loop import Kernel
from twofold.ir.dtypes import DType
from twofold.runtime import kernels, launch

Run = Callable[[int, int, Any], int]


@functools.cache
def engine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine, use_lmm=True)


def load(module: ir.Module, name: str, first: bool = False) -> Run:
    """The function `name` of a module, with the kernel ABI, in code of the first or the second tier."""
    image = llvm_module.first_tier(module)[0] if first else llvm_module.object_code(llvm_module.optimise(module))
    engine().add_object_file(llvm.ObjectFileRef.from_data(image))
    engine().finalize_object()
    word = ctypes.c_int64
    return ctypes.CFUNCTYPE(word, word, word, ctypes.c_void_p)(engine().get_function_address(name))


_numbers = itertools.count()
_last: dict[int, tuple[Kernel, Run, kernels.Compiled]] = {}


def through_llvm(kernel: Kernel) -> Run:
    """A kernel through LLVM, the tiers in turns."""
    number = next(_numbers)
    module, name = ir.Module(), f"test_llvm_cpu_{number}"
    llvm_cpu.emit_kernel(module, kernel, name)
    return load(module, name, first=number % 2 == 1)


def through_numba(kernel: Kernel) -> kernels.Compiled:
    return kernels.make(lambda: kernel, "numba")


def _both(kernel: Kernel) -> tuple[Run, kernels.Compiled]:
    """A kernel through both; the last few are not compiled again when they run with other arguments."""
    if id(kernel) not in _last:
        if len(_last) == 8:
            del _last[next(iter(_last))]
        _last[id(kernel)] = kernel, through_llvm(kernel), through_numba(kernel)
    return _last[id(kernel)][1:]


def run(compiled: Run, start: int, stop: int, args: tuple[Any, ...]) -> tuple[int, list[np.ndarray]]:
    """Runs on copies of the arrays (an array given twice stays one); returns the status and the copies."""
    copies = {id(a): a.copy(order="K") for a in args if isinstance(a, np.ndarray)}
    words = np.array([launch.address_of(copies[id(a)]) if isinstance(a, np.ndarray) else a for a in args], np.int64)
    status = compiled(start, stop, launch.address_of(words))
    return status, list(copies.values())


def same(kernel: Kernel, start: int, stop: int, *args: Any) -> tuple[int, list[np.ndarray]]:
    """The status and memory that the kernel leaves behind, the same by both backends."""
    ours, numbas = _both(kernel)
    status, memory = run(ours, start, stop, args)
    expected_status, expected = run(numbas.call, start, stop, args)
    assert status == expected_status
    for n, (got, want) in enumerate(zip(memory, expected, strict=True)):
        assert_same(got, want, (kernel.name, n))
    return status, memory


def zeros(dtype: DType, *shape: int) -> np.ndarray:
    return np.zeros(shape, dtype.np)


def values(dtype: DType, size: int, seed: int) -> np.ndarray:
    """Random elements, and all the edges where there is room."""
    x = random(dtype, size, seed)
    special = edges(dtype)[:size]
    x[:len(special)] = np.roll(special, seed)
    return x
