"""The platforms that libraries are made for: their names, and their properties for LLVM, linkers and file names.

A target is given as `"host"`, one of the short names below, or a triple of LLVM. How wide vectors are and which
instructions there are decides the processor (`cpu`); `codegen/target.py` finds that out.
"""

from __future__ import annotations

import functools
import platform
import re
import subprocess
import sys
from dataclasses import dataclass

from twofold.codegen import target as targets

__all__ = ["Platform", "platform_of", "SHORT"]

# Short names: the triple, and what `zig cc` calls it.
SHORT = {
    "x86_64-linux": ("x86_64-unknown-linux-gnu", "x86_64-linux-gnu"),
    "aarch64-linux": ("aarch64-unknown-linux-gnu", "aarch64-linux-gnu"),
    "x86_64-windows": ("x86_64-pc-windows-gnu", "x86_64-windows-gnu"),
    "x86_64-macos": ("x86_64-apple-macosx11.0.0", "x86_64-macos.11.0"),
    "aarch64-macos": ("arm64-apple-macosx11.0.0", "aarch64-macos.11.0"),
    "wasm32": ("wasm32-unknown-unknown", "wasm32-freestanding"),
}
_SYSTEMS = {"linux": "linux", "windows": "windows", "win32": "windows", "macosx": "macos", "darwin": "macos",
            "wasm": "wasm"}
_SHARED = {"linux": ".so", "macos": ".dylib", "windows": ".dll", "wasm": ".wasm"}
_DEFAULT_CPU = {"x86_64": "x86-64", "arm64": "apple-m1", "aarch64": "generic", "wasm32": "generic"}
_WELL_KNOWN = frozenset({*_DEFAULT_CPU.values(), "x86-64-v2", "x86-64-v3", "x86-64-v4"})


@dataclass(frozen=True)
class Platform:
    """Where a library is to run.

    Attributes:
        name: as it was asked for.
        system: linux, macos, windows or wasm.
        architecture: x86_64, aarch64 or wasm32.
        zig: what `zig cc` calls it; None where it is not known.
        is_host: whether the linker of this system makes its libraries.
        target: for the code generator.
    """

    name: str
    system: str
    architecture: str
    zig: str | None
    is_host: bool
    target: targets.Target

    @property
    def shared(self) -> str:
        """The ending of shared libraries."""
        return _SHARED[self.system]

    @property
    def openmp(self) -> bool:
        """Whether libraries may share work with OpenMP."""
        return self.system in ("linux", "macos")


def platform_of(name: str, cpu: str | None, threads: int) -> Platform:
    """The platform that a user names.

    Args:
        name: "host", a key of `SHORT`, or a triple of LLVM.
        cpu: as LLVM names processors, or None for the host's own, or the oldest of the platform.
        threads: how many threads code is planned for.
    Raises:
        ValueError: there is no such platform, or no code can be generated for it.
    """
    import llvmlite.binding as llvm

    if not isinstance(name, str) or (cpu is not None and not isinstance(cpu, str)):
        raise TypeError(f"target and cpu must be text; got {name!r} and {cpu!r}.")
    is_host, features = name == "host", ""
    if is_host:
        triple, zig = llvm.get_process_triple(), None
        zig = next((z for t, z in SHORT.values() if t.split("-")[0] == triple.split("-")[0] and _system(t) == _system(
            triple)), None)
        if cpu is None:
            cpu, features = targets.host_machine()
    elif name in SHORT:
        triple, zig = SHORT[name]
    else:
        triple, zig = name, next((z for t, z in SHORT.values() if t == name), None)
    system, architecture = _system(triple), triple.split("-")[0]
    if system is None or architecture not in _DEFAULT_CPU:
        raise ValueError(f"target must be \"host\", one of {', '.join(map(repr, SHORT))}, or a triple of LLVM for one "
                         f"of these systems and processors; got {name!r}.")
    cpu = cpu or _DEFAULT_CPU[architecture]
    if system == "wasm":
        features = "+simd128,+bulk-memory,+nontrapping-fptoint,+sign-ext"
    elif not features and architecture == "x86_64":
        features = "-prefer-256-bit"
    try:
        if not (is_host and features) and not _is_known(triple, cpu):
            raise ValueError(f"LLVM knows no processor {cpu!r} of {architecture}.")
        target = targets.of(triple, cpu, features, threads)
    except RuntimeError as error:
        raise ValueError(f"LLVM generates no code for {name!r}: {error}") from None
    return Platform(name, system, "aarch64" if architecture == "arm64" else architecture, zig,
                    is_host or _is_this(system, architecture), target)


@functools.cache
def _is_known(triple: str, cpu: str) -> bool:
    """Whether LLVM knows a processor: it warns of others on the standard error of the process, so another one asks."""
    if cpu in _WELL_KNOWN or not re.fullmatch(r"[A-Za-z0-9_.+-]+", cpu):
        return cpu in _WELL_KNOWN
    code = ("import sys, llvmlite.binding as llvm\nllvm.initialize_all_targets()\n"
            "llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu=sys.argv[2])")
    done = subprocess.run([sys.executable, "-c", code, triple, cpu], capture_output=True, text=True, timeout=60)
    return done.returncode == 0 and "not a recognized processor" not in done.stderr


def _system(triple: str) -> str | None:
    parts = triple.split("-")
    if parts[0].startswith("wasm"):
        return "wasm"
    return next((_SYSTEMS[m[0]] for p in parts[1:] if (m := re.match(r"[a-z]+(?:32)?", p)) and m[0] in _SYSTEMS), None)


def _is_this(system: str, architecture: str) -> bool:
    own = {"linux": "linux", "darwin": "macos", "win32": "windows"}.get(sys.platform)
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    return own == system and machine == ("aarch64" if architecture == "arm64" else architecture)
