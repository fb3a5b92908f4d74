"""Compiled kernels: built once a process, compiled once a machine.

`get` returns a callable kernel for a key, from this process, else from object code on disk (which needs no compiler),
else by compiling it and storing the result with its readable source beside it. There are two compilers, with the same
bits: `codegen/llvm_cpu.py`, and numba, given that source, where TWOFOLD_KERNELS=numba.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
import threading
from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from importlib import import_module
from typing import Any

from twofold import codegen
from twofold.codegen import apart, loop, numba_source

from . import cache, locks
from . import machine as machine_code
from .identity import Sources, processor, release
from .image import Image

__all__ = ["Compiled", "COMPILERS", "get", "make", "functions", "stored", "forget", "load", "identity", "with_vectors"]

# (start, stop, args): ctypes converts a c_void_p in half the time of a c_int64, and both are one word.
_SIGNATURE = (ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_FORMAT = 2  # raise it when the same source would compile to different code
# What compiles kernels: the modules of `codegen` that give their source its meaning, the first of which compiles, and
# the packages whose releases count.
COMPILERS = {"llvm": (("llvm_cpu", "apart", "llvm_lanes", "llvm_memory", "llvm_module", "llvm_ops", "llvm_variables",
                       "llvm_teams", "llvm_vectors", "llvm_writer", "loop", "statements", "target", "value_types"),
                      ("llvmlite",)),
             "numba": (("numba_cpu", "apart", "llvm_module", "llvm_ops", "target"), ("llvmlite", "numba"))}

_compiled: dict[Hashable, Compiled] = {}
_lock = locks.RLock()
locks.settled_before_fork(lambda: _inside("llvmlite.binding.ffi", "lib", "_lock"))
locks.settled_before_fork(lambda: _inside("numba.core.compiler_lock", "global_compiler_lock"))
locks.settled_before_fork(apart.settle)  # before the locks of compilers are taken, which such work needs
locks.settled_before_fork(lambda: _lock)


def _inside(module: str, *names: str) -> threading.RLock | None:
    """The lock of a compiler that holds for the whole process; None where it is not loaded."""
    lock: Any = sys.modules.get(module)  # at first the module, then attribute by attribute what leads to the lock
    for name in (*names, "_lock"):
        lock = getattr(lock, name, None)
    return lock if hasattr(lock, "_is_owned") else None


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
    compiled = _compiled.get(key)
    if compiled is not None:
        return compiled
    with _lock:
        compiled = _compiled.get(key)
        if compiled is None:
            compiled = _compiled[key] = make(build(), _chosen())
    return compiled


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
    key = _key_of_functions(names, depends)
    image = cache.read("kernels", key)
    if image is None:
        image = compile()
        cache.write("kernels", key, image)
    return load(names, image)


def stored(symbols: Iterable[str], depends: Iterable[object]) -> dict[str, int] | None:
    """What `functions` gives, if an earlier process has compiled it."""
    names = list(symbols)
    image = cache.read("kernels", _key_of_functions(names, depends))
    return None if image is None else load(names, image)


def forget(symbols: Iterable[str], depends: Iterable[object]) -> None:
    """Deletes what `functions` keeps on disk for later processes."""
    cache.remove("kernels", _key_of_functions(symbols, depends))


def _key_of_functions(symbols: Iterable[str], depends: Iterable[object]) -> str:
    return cache.digest("functions", *symbols, *depends, *identity())


def make(kernel: loop.Kernel, compiler: str) -> Compiled:
    """A kernel in memory, from disk or compiled now.

    Args:
        compiler: a key of COMPILERS.
    Raises:
        InternalError: its code calls something that the process does not have.
    """
    source, ending = _text(kernel)
    key = cache.digest(source, *identity(compiler))
    symbol = f"{_identifier(kernel.name)}_{key[:16]}"
    stored = cache.read("kernels", key)
    if stored is not None:
        return Compiled(kernel, load([symbol], stored)[symbol], source)
    backend = import_module(f"{codegen.__name__}.{COMPILERS[compiler][0][0]}")
    image = backend.compile_kernel(kernel, symbol)
    compiled = Compiled(kernel, load([symbol], image)[symbol], source)
    if _sources(compiler).unchanged():  # else it is unknown which of both compiled this
        cache.write("kernels", key, image, source, ending)
    return compiled


def _text(kernel: loop.Kernel) -> tuple[str, str]:
    """What a kernel is kept under, and the ending of a file with that: Python's source, where there can be one."""
    try:
        return numba_source.source(kernel), ".py"
    except NotImplementedError:
        return str(kernel), ".txt"


def with_vectors() -> bool:
    """Whether kernels may have vectors and addresses, which numba does not compile."""
    return _chosen() == "llvm"


def _chosen() -> str:
    """The compiler that TWOFOLD_KERNELS names."""
    name = os.environ.get("TWOFOLD_KERNELS", "llvm")
    if name not in COMPILERS:
        raise ValueError(f"TWOFOLD_KERNELS={name}: one of {', '.join(COMPILERS)} is expected.")
    return name


def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in name)


@functools.cache
def identity(compiler: str = "llvm") -> tuple[object, ...]:
    """All that code of kernels depends on besides their source."""
    return (_FORMAT, compiler, *_sources(compiler).digests(), sys.platform, *processor(),
            *map(release, COMPILERS[compiler][1]), platform.python_version())


def load(names: Iterable[str], image: bytes) -> dict[str, int]:
    """The addresses of functions of an object file after linking it into the process; it stays there.

    Raises:
        InternalError: the code lacks one of them, or calls something that the process does not have.
    """
    names = list(names)
    loaded = Image([image], names)
    machine_code.keep(loaded)
    return {name: loaded.address(name) for name in names}


@functools.cache
def _sources(compiler: str) -> Sources:
    """The modules that compile kernels."""
    paths = [os.path.join(os.path.dirname(codegen.__file__ or ""), f"{name}.py") for name in COMPILERS[compiler][0]]
    return Sources(lambda: paths)
