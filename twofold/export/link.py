"""Shared libraries from an object file: by the linker of this system, or by the optional package `ziglang`.

The linker gets the object file and nothing else: no start files, no libraries but those of C and mathematics, and
OpenMP's where work is shared with it.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .targets import Platform

__all__ = ["shared_library", "linkers"]

_ADVICE = "Object files (.o) and static libraries (.a) need no linker."
_TIME = 300  # seconds


def shared_library(code: bytes, platform: Platform, name: str, exported: Sequence[str], openmp: bool) -> bytes:
    """The shared library that holds an object file.

    Args:
        code: the object file.
        name: of the library's file.
        exported: the symbols that can be seen from outside.
        openmp: whether the code needs OpenMP.
    Raises:
        RuntimeError: there is no linker for the platform, or it failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, to = Path(folder) / "library.o", Path(folder) / name
        source.write_bytes(code)
        found = linkers(platform, source, to, exported, openmp)
        if not found:
            native = "the system has no `cc`, `gcc` or `clang`, and " if platform.is_host else ""
            raise RuntimeError(f"linking {name} for {platform.name} needs a linker: {native}the package ziglang is not "
                               f"installed (pip install 'twofold[aot]'). {_ADVICE}")
        told = ""
        for command in found:
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=_TIME, cwd=folder)
            except (OSError, subprocess.TimeoutExpired) as error:
                told += f"\n{error}"
                continue
            if done.returncode == 0 and to.exists():
                return to.read_bytes()
            told += f"\n$ {' '.join(command)}\n{done.stderr.strip()}"
        raise RuntimeError(f"{name} could not be linked for {platform.name}:{told}\n{_ADVICE}")


def linkers(platform: Platform, source: Path, to: Path, exported: Sequence[str], openmp: bool) -> list[list[str]]:
    """The commands that can link, the first choice first."""
    zig = [sys.executable, "-m", "ziglang"] if importlib.util.find_spec("ziglang") else None
    if platform.system == "wasm":
        exports = [f"--export={s}" for s in (*exported, "__heap_base")]
        return [[*zig, "wasm-ld", "--no-entry", "--strip-all", "-z", "stack-size=1048576", *exports, "-o", str(to),
                 str(source)]] if zig else []
    found = []
    if platform.is_host:
        compiler = next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
        if compiler is not None:
            found.append([compiler, *_options(platform, source, to, openmp)])
    if zig and platform.zig:
        found.append([*zig, "cc", "-target", platform.zig, *_options(platform, source, to, openmp)])
    return found


def _options(platform: Platform, source: Path, to: Path, openmp: bool) -> list[str]:
    common = ["-shared", "-o", str(to), str(source)]
    shared = ["-lgomp"] * openmp
    if platform.system == "linux":
        return [*common, "-nostartfiles", f"-Wl,-soname,{to.name}", "-Wl,-z,noexecstack", "-Wl,-z,relro", "-Wl,-s",
                "-Wl,--as-needed", *shared, "-lm", "-lc"]
    if platform.system == "macos":
        return [*common, f"-Wl,-install_name,@rpath/{to.name}", "-Wl,-x", *(["-lomp"] * openmp)]
    return [*common, "-s"]
