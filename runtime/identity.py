"""What machine code depends on besides its source: the kind of processor, and the releases of the packages that compile
it.

Told from files and from the system, so that a process that finds all its code on disk loads no compiler.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import platform
from pathlib import Path

__all__ = ["processor", "release", "digest"]


def digest(source: bytes) -> str:
    """The SHA-256 of a text."""
    return hashlib.sha256(source).hexdigest()


@functools.cache
def release(package: str) -> str:
    """A text that tells releases of a compiler's package apart, read without importing it.

    Raises:
        ImportError: it is not installed.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ImportError(f"{package} is needed to compile kernels and functions")
    return digest(Path(spec.origin).with_name("_version.py").read_bytes())


@functools.cache
def processor() -> tuple[str, ...]:
    """Texts that tell kinds of processors apart; LLVM is asked only where the system does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0].splitlines()
    except OSError:
        lines = []
    wanted = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features", "CPU part")
    description = tuple([line for line in lines if line.partition(":")[0].strip() in wanted])
    if description:
        return (platform.machine(), *description)
    import llvmlite.binding as llvm
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
