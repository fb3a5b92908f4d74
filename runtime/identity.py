"""What machine code depends on besides its source: the kind of processor, the releases of the packages that compile it,
and the modules of ours that say what it is.

Told from files and from the system, so that a process that finds all its code on disk loads no compiler.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import platform
import sys
from collections.abc import Callable, Iterable
from typing import Any

from twofold.codegen.target import described, sve_bits

__all__ = ["processor", "release", "digest", "sha256", "Sources"]

# Where SHA-256 is: in the interpreter itself (from Python 3.12 on, and before), else in `hashlib`, which loads OpenSSL,
# and that takes longer than all that is hashed when a process starts.
_HASHES = ("_sha2", "_sha256", "hashlib")
_LONG = 1 << 20  # bytes from which on OpenSSL's instructions for it are worth their loading
_OPEN = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def sha256(*parts: bytes) -> bytes:
    """The SHA-256 of some bytes, one part behind the other."""
    best = max(map(len, parts)) > _LONG or "hashlib" in sys.modules
    hashed = _hash_module("hashlib" if best else "").sha256()
    for part in parts:
        hashed.update(part)
    return hashed.digest()


@functools.cache
def _hash_module(name: str) -> Any:
    """The module of this name, or the first of `_HASHES` that there is."""
    for each in (name,) if name else _HASHES:
        with contextlib.suppress(ImportError):
            return importlib.import_module(each)
    raise ImportError("this Python has no SHA-256")


def digest(source: bytes) -> str:
    """The SHA-256 of a text, in hexadecimal."""
    return sha256(source).hex()


@functools.cache
def release(package: str) -> str:
    """A text that tells releases of a compiler's package apart, read without importing it.

    Raises:
        ImportError: it is not installed.
    """
    import importlib.util
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ImportError(f"{package} is needed to compile kernels and functions")
    return digest(_read(os.path.join(os.path.dirname(spec.origin), "_version.py"))[1])


@functools.cache
def processor() -> tuple[str, ...]:
    """Texts that tell kinds of processors apart; LLVM is asked only where the system does not say."""
    if described():
        return platform.machine(), str(sve_bits()), *described()
    import llvmlite.binding as llvm
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


class Sources:
    """Source files on which code depends, as they were when they were first read.

    A process runs the modules that it imported: where a file was changed before, nobody knows which of both its code
    came of, so that this code must not be kept for others. Files are looked at again where something was imported since
    the last look, as there are some hundred, and no other change of theirs reaches the process.
    """

    def __init__(self, paths: Callable[[], Iterable[str]]) -> None:
        """Args:
            paths: the files that there are now, in one order.
        """
        self._paths = paths
        self._imported = -1  # how many modules there were when the files were last seen to be unchanged

    @functools.cached_property
    def _first(self) -> tuple[list[tuple[int | str, ...]], list[str]]:
        """The states of the files at the first call, and the digest of each."""
        files = [_read(path) for path in self._paths()]
        return [state for state, _ in files], [digest(text) for _, text in files]

    def digests(self) -> list[str]:
        """The digest of each file at the first call."""
        return self._first[1]

    def unchanged(self) -> bool:
        """Whether all modules were imported while the files were the same as at the first call; only where one was
        written since are they read."""
        states, digests = self._first
        imported = len(sys.modules)
        if imported == self._imported:
            return True
        try:
            paths = list(self._paths())
            same = [_state(path, os.stat(path)) for path in paths] == states or \
                [digest(_read(path)[1]) for path in paths] == digests
        except OSError:  # one is gone
            return False
        if same:
            self._imported = imported
        return same


def _state(path: str, status: os.stat_result) -> tuple[int | str, ...]:
    """What changes where a file is written or another takes its place."""
    return path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _read(path: str) -> tuple[tuple[int | str, ...], bytes]:
    """The state and the contents of a file."""
    handle = os.open(path, _OPEN)
    try:
        status = os.fstat(handle)
        text = b""
        while piece := os.read(handle, status.st_size + 1):
            text += piece
    finally:
        os.close(handle)
    return _state(path, status), text
