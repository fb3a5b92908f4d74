"""The platforms that libraries are made for: their names, and their properties for LLVM, linkers and file names.

A target is given as `"host"`, one of the short names below, or a triple of LLVM. How wide vectors are and which
instructions there are decides the processor (`cpu`); `codegen/target.py` finds that out.
"""

from __future__ import annotations

import functools
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
_TRIPLES = frozenset(triple for triple, _ in SHORT.values())
_SYSTEMS = {"linux": "linux", "windows": "windows", "win32": "windows", "macosx": "macos", "darwin": "macos"}
_SHARED = {"linux": ".so", "macos": ".dylib", "windows": ".dll", "wasm": ".wasm"}
_DEFAULT_CPU = {"x86_64": "x86-64", "arm64": "apple-m1", "aarch64": "generic", "wasm32": "generic"}
# Processors that every LLVM has.
_LEVELS = {"x86_64": ("x86-64-v2", "x86-64-v3", "x86-64-v4")}
_FEATURES = {"x86_64": "-prefer-256-bit", "wasm32": "+simd128,+bulk-memory,+nontrapping-fptoint,+sign-ext"}
_WORKERS = ",+atomics,+mutable-globals"  # what instances that share a memory need
# How object files of the systems begin; those of Linux have 64-bit addresses.
_MAGIC = {"linux": b"\x7fELF\x02", "macos": b"\xcf\xfa\xed\xfe", "windows": b"\x64\x86", "wasm": b"\0asm"}
_TEXT = re.compile(r"[A-Za-z0-9_.+-]{1,200}")  # of triples and of names of processors
# What another process does with a target before this one: what LLVM cannot do ends the process.
_TRIAL = """
import sys, llvmlite.binding as llvm
triple, cpu, features, text = sys.argv[1:]
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
machine = llvm.Target.from_triple(triple).create_target_machine(
    cpu=cpu, features=features, opt=3, reloc="pic", codemodel="default")
sys.stdout.buffer.write(machine.emit_object(llvm.parse_assembly(text)))
"""


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
    is_host, is_own = name == "host", name == "host" and cpu is None
    if is_host:
        triple = llvm.get_process_triple()
        zig = next((z for t, z in SHORT.values() if _kind(t) == _kind(triple)), None)
    elif name in SHORT:
        triple, zig = SHORT[name]
    else:
        triple, zig = name, next((z for t, z in SHORT.values() if t == name), None)
    system, architecture = _kind(triple)
    if (system, architecture) not in map(_kind, _TRIPLES) or not _TEXT.fullmatch(triple):
        raise ValueError(f"target must be \"host\", one of {', '.join(map(repr, SHORT))}, or a triple of LLVM for one "
                         f"of these systems and processors; got {_short(name)}.")
    first = triple.split("-")[0]
    if is_own:
        cpu, features = targets.host_machine()
    else:
        cpu = _DEFAULT_CPU[first] if cpu is None else cpu
        features = _FEATURES.get(first, "") + (_WORKERS if system == "wasm" and threads > 1 else "")
    try:
        if not is_own and not (triple in _TRIPLES and cpu in (_DEFAULT_CPU[first], *_LEVELS.get(first, ()))):
            _try(triple, cpu, features)
        target = targets.of(triple, cpu, features, threads)
    except RuntimeError as error:
        raise ValueError(f"LLVM generates no code for {name!r}: {error}") from None
    return Platform(name, system, architecture, zig, is_host or _is_this(system, architecture), target)


def _try(triple: str, cpu: str, features: str) -> None:
    """Has another process make code for a target: LLVM warns of a processor that it does not know on the standard
    error, and ends the process where it has no code for what was asked.

    Raises:
        ValueError: it could not, or what it made is none of the system's object files. RuntimeError: there was no
            other process.
    """
    system, architecture = _kind(triple)
    if not _TEXT.fullmatch(cpu):
        raise ValueError(f"LLVM knows no processor {_short(cpu)} of {architecture}.")
    code, said = _trial(triple, cpu, features)
    if "not a recognized processor" in said or "Available CPUs" in said:  # the second is its answer to "help"
        raise ValueError(f"LLVM knows no processor {cpu!r} of {architecture}.")
    if not code.startswith(_MAGIC[system]):
        reason = next((f" ({m[1]})" for m in [re.search(r"LLVM ERROR: (.*)", said)] if m), "")
        raise ValueError(f"LLVM makes no object files of {system} for the target {triple!r} and the processor {cpu!r}"
                         f"{reason}.")


@functools.cache
def _trial(triple: str, cpu: str, features: str) -> tuple[bytes, str]:
    """An object file, nothing where there is none, and what LLVM said."""
    job = [sys.executable, "-c", _TRIAL, triple, cpu, features, targets.probe(triple)]
    try:
        done = subprocess.run(job, capture_output=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeError(f"a trial in another process failed ({error})") from None
    return b"" if done.returncode else done.stdout, done.stderr.decode(errors="replace")


def _short(text: str) -> str:
    return repr(text if len(text) <= 200 else text[:200] + "...")


def _kind(triple: str) -> tuple[str, str]:
    """The system and the architecture of a triple; either is empty where it is none of ours."""
    first, *parts = triple.split("-")
    architecture = "aarch64" if first == "arm64" else first
    if first == "wasm32":
        return "wasm", architecture
    words = [m[0] for p in parts if (m := re.match(r"[a-z]+(?:32)?", p))]
    return next((_SYSTEMS[w] for w in words if w in _SYSTEMS), ""), architecture


def _is_this(system: str, architecture: str) -> bool:
    own = {"linux": "linux", "darwin": "macos", "win32": "windows"}.get(sys.platform)
    return (own, targets.architecture()) == (system, architecture)
