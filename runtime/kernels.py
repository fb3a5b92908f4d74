"""Compiled kernels: built once a process, compiled once a machine.

`get` returns a callable kernel for a key, from this process, else from object code on disk (which needs no compiler),
else by compiling it and storing the result with its readable source beside it. There are two compilers, with the same
bits: `codegen/llvm_cpu.py`, and numba, given that source, where TWOFOLD_KERNELS=numba.

A kernel begins in the *first tier* (`tiers.py`), in code that is made in a fifth of the time. Whoever runs it has it
count what it does (`Compiled.charge`); when that is enough for better code to repay its making, the background makes
that, and later runs take it. A run that does much waits for it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
import threading
from collections.abc import Callable, Hashable, Iterable
from importlib import import_module
from typing import Any

from twofold import codegen
from twofold.codegen import apart, loop, numba_source

from . import cache, locks, tiers
from . import machine as machine_code
from .identity import Sources, processor, release
from .image import Image
from .log import log

__all__ = ["Compiled", "COMPILERS", "get", "settle", "make", "functions", "stored", "forget", "load", "identity",
           "with_vectors"]

# (start, stop, args): ctypes converts a c_void_p in half the time of a c_int64, and both are one word.
_SIGNATURE = (ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_keeping, _releasing = ctypes.PYFUNCTYPE(*_SIGNATURE), ctypes.CFUNCTYPE(*_SIGNATURE)
_BUDGET = 1 << 24  # simple operations, or so, that code of the first tier does at most before better code is made
_LEAST = _BUDGET >> 10  # what a run counts besides its work
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
locks.settled_before_fork(tiers.at_work)  # before all of these


def _inside(module: str, *names: str) -> threading.RLock | None:
    """The lock of a compiler that holds for the whole process; None where it is not loaded."""
    lock: Any = sys.modules.get(module)  # at first the module, then attribute by attribute what leads to the lock
    for name in (*names, "_lock"):
        lock = getattr(lock, name, None)
    return lock if hasattr(lock, "_is_owned") else None


class Compiled:
    """A kernel in memory.

    Attributes:
        address: of its code, an `int64 (int64 start, int64 stop, int64* args)` that gives 0 or a status.
        call: a function of these three (of the address of args) that runs it and keeps the interpreter lock.
        call_released: the same, with the interpreter lock released meanwhile.
        codes: the texts of its checks.
        source: what it is kept under on disk.
        weight: about how many simple operations an iteration does.
        is_first: whether its code is that of the first tier; if so, `address` is another one later.
    """

    is_first = False

    def __init__(self, kernel: loop.Kernel, address: int, source: str,
                 better: Callable[[], int] | None = None) -> None:
        """Args:
            better: makes the code of the second tier and gives its address, where this is that of the first.
        """
        self.name = kernel.name
        self._run(address)
        self.codes = kernel.codes
        self.source = source
        self.weight = _weight(kernel)
        self.is_first = better is not None
        self._left, self._better = _BUDGET, better
        self._waiting: list[Callable[[int], None]] = []  # see `when_best`

    def _run(self, address: int) -> None:
        """Has calls from now on run the code at an address."""
        self.address = address
        self.call, self.call_released = _keeping(address), _releasing(address)

    def charge(self, work: int) -> None:
        """Counts a run of code of the first tier, and has better code made where that is worth it.

        Args:
            work: about how many simple operations the run does. Where these are many, it is to run better code already.
        """
        if work >= tiers.AT_ONCE:
            self.settle()
        else:
            self._left -= work + _LEAST
            if self._left < 0:
                self._left = tiers.NEVER
                tiers.request(self._settle_later)

    def settle(self) -> None:
        """Sees to it that it runs code of the second tier from now on."""
        better = self._better
        if better is None:
            return
        address = better()
        with _lock:
            self._run(address)
            self.is_first, self._better = False, None
            waiting, self._waiting = self._waiting, []
        for use in waiting:
            use(address)

    def _settle_later(self) -> None:
        try:
            self.settle()
        except Exception as error:  # noqa: BLE001 - there is code, which stays
            log("cache", f"no better code: {type(error).__name__}: {error}")

    def when_best(self, use: Callable[[int], None]) -> None:
        """Calls `use` with the address of code that stays: now, or when the second tier is made."""
        with _lock:
            if self.is_first:
                self._waiting.append(use)
                return
        use(self.address)

    def __repr__(self) -> str:
        return f"<kernel {self.name} at {self.address:#x}>"


def _weight(kernel: loop.Kernel) -> int:
    return 1 + loop.instruction_count(kernel.body) // 8


def get(key: Hashable, build: Callable[[], loop.Kernel], count: int = 0) -> Compiled:
    """The compiled kernel for `key`.

    Args:
        key: stands for everything `build` depends on.
        build: makes the kernel, the same each time; called under a lock by the first thread that asks.
        count: iterations of the first run, as far as known: where that does much, there is no first tier.
    Raises:
        InternalError: its code calls something that the process does not have.
    """
    compiled = _compiled.get(key)
    if compiled is not None:
        return compiled
    with _lock:
        compiled = _compiled.get(key)
        if compiled is None:
            compiled = _compiled[key] = make(build, _chosen(), count)
    return compiled


def settle(*names: str) -> None:
    """Has all kernels of some ops that were asked for so far run code of the second tier.

    Args:
        names: what kernels' names begin with: in most cases that of the op.
    """
    for compiled in list(_compiled.values()):
        if compiled.name.split()[0] in names:
            compiled.settle()


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


def make(build: Callable[[], loop.Kernel], compiler: str, count: int = 0) -> Compiled:
    """A kernel in memory, from disk or compiled now.

    Args:
        build: makes it; called again for better code, since kernels take a hundred times the memory of what makes them.
        compiler: a key of COMPILERS.
        count: iterations of the first run.
    Raises:
        InternalError: its code calls something that the process does not have.
    """
    kernel = build()
    source, ending = _text(kernel)
    key = cache.digest(source, *identity(compiler))
    first_key = cache.digest(source, "first tier", *identity(compiler))
    symbol = f"{_identifier(kernel.name)}_{key[:16]}"

    def better() -> int:
        image = _compiled_now(build(), symbol, compiler, key, (source, ending))
        cache.remove("kernels", first_key, ending)
        return load([symbol], image)[symbol]
    image = cache.read("kernels", key)
    has_tiers = compiler == "llvm" and tiers.enabled() and count * _weight(kernel) < tiers.AT_ONCE
    if image is None and has_tiers:
        image = cache.read("kernels", first_key) or _compiled_now(kernel, symbol, compiler, first_key, (source, ending),
                                                                  first=True)
        return Compiled(kernel, load([symbol], image)[symbol], source, better)
    if image is None:
        image = _compiled_now(kernel, symbol, compiler, key, (source, ending))
    return Compiled(kernel, load([symbol], image)[symbol], source)


def _compiled_now(kernel: loop.Kernel, symbol: str, compiler: str, key: str, text: tuple[str, str],
                  **options: bool) -> bytes:
    """The object file of a kernel, which goes to disk under `key` with a text for people to read and its ending."""
    backend = import_module(f"{codegen.__name__}.{COMPILERS[compiler][0][0]}")
    image: bytes = backend.compile_kernel(kernel, symbol, **options)
    if _sources(compiler).unchanged():  # else it is unknown which of both compiled this
        cache.write("kernels", key, image, *text)
    return image


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
