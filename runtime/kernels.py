"""Compiled kernels: built once a process, compiled once a machine.

`get` returns a callable kernel for a key, from this process, else from object code on disk (which needs neither numba
nor a compiler), else by compiling it and storing the result with its readable source beside it.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
import threading
from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from twofold.codegen import loop, numba_source

from . import cache, objects
from . import machine as machine_code

__all__ = ["Compiled", "get", "functions"]

# (start, stop, args): ctypes converts a c_void_p in half the time of a c_int64, and both are one word.
_SIGNATURE = (ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_FORMAT = 1  # raise it when the same source would compile to different code

_compiled: dict[Hashable, Compiled] = {}
_lock = threading.RLock()


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
        depends: all that the file depends on, beside the processor and the version of LLVM.
        compile: makes the file.
    Raises:
        InternalError: its code calls something that the process does not have.
    """
    names = list(symbols)
    with _lock:
        key = cache.digest("functions", *names, *depends, *engine().identity)
        image = cache.read("kernels", key)
        if image is None:
            image = compile()
            cache.write("kernels", key, image)
        first = engine().load(names[0], image)
        return {names[0]: first} | {name: engine().address(name) for name in names[1:]}


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()  # another thread of the parent may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _make(kernel: loop.Kernel) -> Compiled:
    source = numba_source.source(kernel)
    key = cache.digest(source, *engine().identity)
    stored = cache.read("kernels", key)
    if stored is not None:
        name, _, image = stored.partition(b"\n")
        return Compiled(kernel, engine().load(name.decode(), image), source)
    from twofold.codegen import numba_cpu
    image, symbol = numba_cpu.compile_source(source, f"{_identifier(kernel.name)}_{key[:16]}")
    compiled = Compiled(kernel, engine().load(symbol, image), source)
    if _backend() == engine().backend:  # else its text changed on disk, and which of both compiled this is unknown
        cache.write("kernels", key, symbol.encode() + b"\n" + image, source, ".py")
    return compiled


def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in name)


class _Engine:
    """LLVM's linker of object code, and what the code it takes depends on."""

    def __init__(self) -> None:
        import llvmlite
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine()
        self._llvm = llvm
        # llvmlite's memory manager keeps the sections of an object together: further than 2 GiB apart, an
        # instruction could not reach its constants.
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine, use_lmm=True)
        machine_code.keep(self._engine)
        self.backend = _backend()
        self.identity: tuple[Any, ...] = (
            _FORMAT, self.backend, llvm.get_process_triple(), llvm.get_host_cpu_name(),
            llvm.get_host_cpu_features().flatten(), llvmlite.__version__, _numba_version(), platform.python_version())

    def load(self, symbol: str, image: bytes) -> int:
        """The address of `symbol` after linking `image` into the process; it stays there.

        Raises:
            InternalError: the code calls something that the process does not have.
        """
        objects.require(image, symbol)
        self._engine.add_object_file(self._llvm.ObjectFileRef.from_data(image))
        self._engine.finalize_object()
        return self.address(symbol)

    def address(self, symbol: str) -> int:
        """The address of a function of what was loaded."""
        address = self._engine.get_function_address(symbol)
        if not address:
            raise RuntimeError(f"the object code lacks {symbol}")
        return address


_engine_made: _Engine | None = None


def engine() -> _Engine:
    """The linker of this process."""
    global _engine_made
    if _engine_made is None:
        _engine_made = _Engine()
    return _engine_made


def _backend() -> str:
    """The text of the modules that give kernel source its meaning."""
    here = Path(numba_source.__file__).parent
    names = ("llvm_ops.py", "llvm_module.py", "numba_cpu.py", "target.py")
    return cache.digest(*((here / name).read_bytes() for name in names))


def _numba_version() -> str:
    """What tells releases of numba apart, found without importing it."""
    found = importlib.util.find_spec("numba")
    if found is None or found.origin is None:
        raise ImportError("numba is needed to compile kernels")
    return cache.digest(Path(found.origin).with_name("_version.py").read_bytes())
