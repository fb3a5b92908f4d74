"""How machine code gets into memory: pages of its own that are filled and then made executable, or an engine of LLVM's.

Whoever asks keeps what holds the memory for as long as the code may run.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from twofold.codegen.apart import apart

from . import objects, system

if TYPE_CHECKING:
    from llvmlite import binding

__all__ = ["executable", "linked"]


def executable(size: int, fill: Callable[[bytearray, int], None]) -> tuple[mmap.mmap, int]:
    """Memory with code in it, read-only and executable: what holds it, and its address.

    Args:
        size: bytes.
        fill: writes the code, given a buffer and the address that it will have.
    Raises:
        OSError: the system allows no such pages.
    """
    area = mmap.mmap(-1, size)
    view = (ctypes.c_char * size).from_buffer(area)
    base = ctypes.addressof(view)
    content = bytearray(size)
    fill(content, base)
    area[:] = bytes(content)
    if _mprotect()(base, size, mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        raise OSError(ctypes.get_errno(), "code pages cannot be made executable")
    system.flush_instructions(base, size)
    return area, base


@functools.cache
def _mprotect() -> Callable[[int, int, int], int]:
    """The C function that makes pages executable: (address, bytes, protection) -> 0 where it did."""
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return protect


@apart
def linked(data: Sequence[bytes], what: str) -> binding.ExecutionEngine:
    """An engine of LLVM's that has linked object files; its `get_function_address` tells where functions are.

    Args:
        data: the object files, which may call each other's functions.
        what: what it is, for the error.
    Raises:
        InternalError: the code calls something that the process does not have.
    """
    import llvmlite.binding as llvm

    objects.require(data, what)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine, use_lmm=True)
    for file in data:
        engine.add_object_file(llvm.ObjectFileRef.from_data(file))
    engine.finalize_object()
    return engine
