"""Compiled kernels: built once a process, compiled once a machine.

`get` returns a callable kernel for a key, from this process, else from object code on disk (which needs neither numba
nor a compiler), else by compiling it and storing the result with its readable source beside it.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from twofold.codegen import loop, numba_source

from . import cache, locks
from . import machine as machine_code
from .identity import processor, release
from .image import Image

__all__ = ["Compiled", "get", "functions", "load", "identity"]

# (start, stop, args): ctypes converts a c_void_p in half the time of a c_int64, and both are one word.
_SIGNATURE = (ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_FORMAT = 1  # raise it when the same source would compile to different code

_compiled: dict[Hashable, Compiled] = {}
_lock = locks.RLock()
locks.settled_before_fork(lambda: _lock)
locks.settled_before_fork(lambda: _inside("numba.core.compiler_lock", "global_compiler_lock"))
locks.settled_before_fork(lambda: _inside("llvmlite.binding.ffi", "lib", "_lock"))


def _inside(module: str, *names: str) -> Any:
    """The lock of a compiler that holds for the whole process; None where it is not loaded."""
    found: Any = sys.modules.get(module)
    for name in (*names, "_lock"):
        found = getattr(found, name, None)
    return found if hasattr(found, "_is_owned") else None


class Compiled:
    """A kernel in memory: `address` of `int64 (int64 start, int64 stop, int64* args)`, and its check `codes`."""

    def __init__(self, kernel: loop.Kernel, address: int, source: str) -> None:
        self.name = kernel.name
        self.address = address
        self.codes = kernel.codes
        self.source = source
        self.weight = 1 + loop.instruction_count(kernel.body) // 8  # work of an iteration; 1 for a simple op

    @cached_property
    def call(self) -> Callable[[int, int, int], int]:
        """The kernel as a function of (start, stop, address of args) that keeps the interpreter lock."""
        return ctypes.PYFUNCTYPE(*_SIGNATURE)(self.address)

    @cached_property
    def call_released(self) -> Callable[[int, int, int], int]:
        """The same, with the interpreter lock released meanwhile."""
        return ctypes.CFUNCTYPE(*_SIGNATURE)(self.address)

    def __repr__(self) -> str:
        return f"<kernel {self.name} at {self.address:#x}>"


def get(key: Hashable, build: Callable[[], loop.Kernel]) -> Compiled:
    """The compiled kernel for `key`.

    Args:
        key: stands for everything `build` depends on.
        build: makes the kernel; called once, under a lock, by the first thread that asks.
    Raises:
        InternalError: its code calls something that the process does not have.
    """
    found = _compiled.get(key)
    if found is not None:
        return found
    with _lock:
        found = _compiled.get(key)
        if found is None:
            found = _compiled[key] = _make(build())
    return found


def functions(symbols: Iterable[str], depends: Iterable[object], compile: Callable[[], bytes]) -> dict[str, int]:
    """The addresses of functions of an object file, compiled now or by an earlier process.

    Args:
        symbols: the functions' names, which no other object file of this process defines.
        depends: all that the file depends on, beside the processor and the version of LLVM. Whoever calls sees to it
            that only one thread asks for a file.
        compile: makes the file.
    Raises:
        InternalError: its code calls something that the process does not have.
    """
    names = list(symbols)
    key = cache.digest("functions", *names, *depends, *identity())
    image = cache.read("kernels", key)
    if image is None:
        image = compile()
        cache.write("kernels", key, image)
    return load(names, image)


def _make(kernel: loop.Kernel) -> Compiled:
    source = numba_source.source(kernel)
    key = cache.digest(source, *identity())
    stored = cache.read("kernels", key)
    if stored is not None:
        name, _, image = stored.partition(b"\n")
        symbol = name.decode()
        return Compiled(kernel, load([symbol], image)[symbol], source)
    from twofold.codegen import numba_cpu
    image, symbol = numba_cpu.compile_source(source, f"{_identifier(kernel.name)}_{key[:16]}")
    compiled = Compiled(kernel, load([symbol], image)[symbol], source)
    if _backend() == backend():  # else its text changed on disk, and which of both compiled this is unknown
        cache.write("kernels", key, symbol.encode() + b"\n" + image, source, ".py")
    return compiled


def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in name)


@functools.cache
def backend() -> str:
    """The text, as first found, of the modules that give kernel source its meaning."""
    return _backend()


@functools.cache
def identity() -> tuple[Any, ...]:
    """What code of kernels depends on besides their source."""
    return (_FORMAT, backend(), sys.platform, *processor(), release("llvmlite"), release("numba"),
            platform.python_version())


def load(names: Iterable[str], image: bytes) -> dict[str, int]:
    """The addresses of functions of an object file after linking it into the process; it stays there.

    Raises:
        InternalError: the code lacks one of them, or calls something that the process does not have.
    """
    names = list(names)
    loaded = Image(image, names)
    machine_code.keep(loaded)
    return {name: loaded.address(name) for name in names}


def _backend() -> str:
    """The text of the modules that give kernel source its meaning."""
    here = Path(numba_source.__file__).parent
    names = ("llvm_ops.py", "llvm_module.py", "numba_cpu.py", "target.py")
    return cache.digest(*((here / name).read_bytes() for name in names))
