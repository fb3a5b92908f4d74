"""Shared libraries from an object file: by the linker of this system, or by those of the optional package `ziglang`.

The linker gets the object file and nothing else: no start files, no libraries but those of C and mathematics, and
OpenMP's where work is shared with it. For Linux and Windows, ziglang's LLD runs by itself, and what it must know of the
system's libraries is their names; for macOS ziglang's own linker knows them.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from twofold.codegen import target as targets
from twofold.runtime import objects

from .targets import Platform

__all__ = ["shared_library", "can_link", "PROBE"]

_ADVICE = "Object files (.o) and static libraries (.a) need no linker."
_TIME = 300  # seconds
_MEMORY = frozenset({"memcpy", "memset", "memmove"})  # of the C library, which every process has
_OPENMP = frozenset({"GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads"})
# What touches the pages of a large frame one by one, in rax bytes below the stack pointer: Windows adds a page to a
# stack when the one above it has been touched. All registers stay as they are.
PROBE = """
.text
___chkstk_ms:
 pushq %rcx
 pushq %rax
 leaq 24(%rsp), %rcx
 cmpq $4096, %rax
 jb 2f
1:
 subq $4096, %rcx
 orq $0, (%rcx)
 subq $4096, %rax
 cmpq $4096, %rax
 ja 1b
2:
 subq %rax, %rcx
 orq $0, (%rcx)
 popq %rax
 popq %rcx
 retq
"""


class _Job:
    """One library to link.

    Attributes:
        source, to: the object file, and the library to write.
        exported: the symbols that can be seen from outside.
        undefined: the symbols that the object file needs.
        workers: whether instances of a WebAssembly library share memory that they import.
    """

    def __init__(self, folder: Path, code: bytes, platform: Platform, name: str, exported: Sequence[str],
                 workers: bool = False) -> None:
        self.folder, self.platform, self.exported, self.workers = folder, platform, list(exported), workers
        self.source, self.to = folder / "library.o", folder / name
        self.source.write_bytes(code)
        self.undefined = frozenset(objects.undefined(code))
        self.openmp = not self.undefined.isdisjoint(_OPENMP)

    def run(self, *command: str) -> None:
        """Runs a linker.

        Raises:
            RuntimeError: it failed.
        """
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_TIME, cwd=self.folder)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RuntimeError(str(error)) from None
        if done.returncode:
            raise RuntimeError(f"$ {' '.join(command)}\n{done.stderr.strip()}")


def shared_library(code: bytes, platform: Platform, name: str, exported: Sequence[str],
                   workers: bool = False) -> bytes:
    """The shared library that holds an object file.

    Args:
        code: the object file.
        name: of the library's file.
        exported: the symbols that can be seen from outside.
        workers: whether instances of a WebAssembly library share memory that they import.
    Raises:
        RuntimeError: there is no linker for the platform, or it failed.
    """
    linkers = _linkers(platform)
    if not linkers:
        native = "the system has no `cc`, `gcc` or `clang`, and " if platform.is_host else ""
        raise RuntimeError(f"linking {name} for {platform.name} needs a linker: {native}the package ziglang is not "
                           f"installed (pip install 'twofold[aot]'). {_ADVICE}")
    told = []
    for link in linkers:
        with tempfile.TemporaryDirectory() as folder:
            job = _Job(Path(folder), code, platform, name, exported, workers)
            try:
                link(job)
                return job.to.read_bytes()
            except (RuntimeError, OSError) as error:
                told.append(str(error))
    raise RuntimeError("\n".join([f"{name} could not be linked for {platform.name}.", *told, _ADVICE]))


def can_link(platform: Platform) -> bool:
    """Whether there is a linker for the platform."""
    return bool(_linkers(platform))


def _linkers(platform: Platform) -> list[Callable[[_Job], None]]:
    """The functions that can link for a platform, the first choice first."""
    linkers: list[Callable[[_Job], None]] = []
    if platform.is_host and platform.system != "windows" and _compiler() is not None:
        linkers.append(_system)
    if importlib.util.find_spec("ziglang") is not None:
        windows = _windows if targets.assembles_x86() else _by_zig
        linkers += {"linux": [_linux], "windows": [windows], "wasm": [_wasm],
                    "macos": [_macos, _by_zig]}[platform.system]
    return linkers


def _compiler() -> str | None:
    return next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)


def _zig(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "ziglang", *arguments]


def _system(job: _Job) -> None:
    """The compiler of the host as a linker."""
    common = [_compiler() or "cc", "-shared", "-o", str(job.to), str(job.source)]
    if job.platform.system == "macos":
        job.run(*common, f"-Wl,-install_name,@rpath/{job.to.name}", "-Wl,-x", *["-lomp"] * job.openmp)
        return
    job.run(*common, "-nostartfiles", f"-Wl,-soname,{job.to.name}", "-Wl,-z,noexecstack", "-Wl,-z,relro", "-Wl,-s",
            "-Wl,--as-needed", *["-l:libgomp.so.1"] * job.openmp, "-lm", "-lc")


def _linux(job: _Job) -> None:
    lld = _zig("ld.lld", "-m", {"x86_64": "elf_x86_64", "aarch64": "aarch64linux"}[job.platform.architecture])
    needed = []
    if job.openmp:
        needed.append("libgomp.so.1")
    if job.undefined - _MEMORY - _OPENMP:
        needed.append("libm.so.6")
    for name in needed:  # an empty library of the name: all that is recorded of it
        job.run(*lld, "-shared", "-soname", name, "-o", str(job.folder / name), "--just-symbols", str(job.source))
    job.run(*lld, "-shared", "-soname", job.to.name, "-z", "noexecstack", "-z", "relro", "-s", "--build-id=none", "-o",
            str(job.to), str(job.source), *[str(job.folder / name) for name in needed])


def _windows(job: _Job) -> None:
    definitions = job.folder / "ucrtbase.def"
    names = sorted(_MEMORY | {"floor", "floorf", "ceil", "ceilf", "trunc", "truncf", "rint", "rintf", "fma", "fmaf",
                              "fmod", "fmodf"})
    definitions.write_text("\n".join(["LIBRARY ucrtbase.dll", "EXPORTS", *names, ""]))
    imports = job.folder / "ucrtbase.lib"
    job.run(*_zig("dlltool", "-m", "i386:x86-64", "-d", str(definitions), "-l", str(imports)))
    job.run(*_zig("lld-link", "/dll", "/noentry", "/machine:x64", "/nodefaultlib", "/dynamicbase", "/nxcompat",
                  "/Brepro", f"/out:{job.to}", f"/implib:{job.folder / 'unused.lib'}",
                  *[f"/export:{s}" for s in job.exported], str(job.source), str(imports)))


def _wasm(job: _Job) -> None:
    exports = [f"--export={s}" for s in (*job.exported, "__heap_base", *["__stack_pointer"] * job.workers)]
    memory = ["--shared-memory", "--import-memory", f"--max-memory={1 << 32}"] * job.workers
    job.run(*_zig("wasm-ld", "--no-entry", "--strip-all", "-z", "stack-size=1048576", *memory, *exports, "-o",
                  str(job.to), str(job.source)))


def _macos(job: _Job) -> None:
    """Without a compiler's runtime, which the system's library has: to build one takes ziglang ten seconds."""
    job.run(*_zig("build-lib", "-dynamic", "-target", job.platform.zig or "", "-fno-compiler-rt", "-fno-ubsan-rt",
                  "-fstrip", "-OReleaseSmall", "-install_name", f"@rpath/{job.to.name}", "--name", job.to.stem,
                  str(job.source), f"-femit-bin={job.to}", "-lc", *["-lomp"] * job.openmp))


def _by_zig(job: _Job) -> None:
    """What ziglang does with an object file by default."""
    macos = [f"-Wl,-install_name,@rpath/{job.to.name}", "-Wl,-x", *["-lomp"] * job.openmp]
    job.run(*_zig("cc", "-target", job.platform.zig or "", "-shared", "-o", str(job.to), str(job.source),
                  *(macos if job.platform.system == "macos" else ["-s"])))
