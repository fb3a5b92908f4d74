"""What every kernel's PTX must be, wherever a test meets it: one definition.

No instruction may round otherwise than the processor's, which the text tells; and the assembler must take it and find
registers enough. The assembler takes its time, so texts that tests run (`gpu/`) are given to it only where
TWOFOLD_TEST_PTXAS=1 asks for that; those of `codegen/` always are.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

from twofold.codegen import loop, ptx

__all__ = ["ASSEMBLES", "LOOSE", "assembled", "clean", "faults", "written"]

ASSEMBLES = os.environ.get("TWOFOLD_TEST_PTXAS", "") == "1"
# Instructions without a rounding mode, which an assembler may contract, approximations, and those that lose subnormal
# numbers.
LOOSE = re.compile(r"\b(?:(?:add|sub|mul|mad)\.(?:f16|bf16|f32|f64)(?:x2)?|\w+\.(?:approx|full)\.\S+|\S+\.ftz\.\S+"
                   r"|call\.\S+)\b")
_MEMORY = re.compile(r"(\d+) bytes (?:stack frame|spill stores|spill loads)")


def _ptxas() -> str:
    """The assembler: that of the system, or of the package `nvidia-cuda-nvcc-cu12`."""
    path = shutil.which("ptxas")
    if path is None:
        files = metadata.files("nvidia-cuda-nvcc-cu12") or []
        path = next(str(f.locate()) for f in files if f.name == "ptxas")
        Path(path).chmod(0o755)
    return path


def assembled(text: str, folder: Path, architecture: str) -> str:
    """What the assembler says of each kernel: registers, stack and spills."""
    source = folder / "kernels.ptx"
    source.write_text(text)
    done = subprocess.run([_ptxas(), f"-arch={architecture}", "-v", source, "-o", folder / "kernels.cubin"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


def clean(table: Mapping[str, loop.Kernel], folder: Path, architecture: str = "sm_75") -> tuple[str, list[int]]:
    """The text of kernels, and the registers that a thread of each takes. Requires that no instruction is loose, that
    all assemble, and that none has a stack or spills."""
    text = ptx.text(table)
    assert LOOSE.findall(text) == []
    said = assembled(text, folder, architecture)
    assert set(_MEMORY.findall(said)) == {"0"}, said
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", said)]
    assert len(registers) == len(table)
    return text, registers


def written(table: Mapping[str, loop.Kernel], architecture: str = "sm_90") -> str:
    """The text of kernels that a test runs, which has no faults."""
    text = ptx.text(table)
    wrong = faults([text], architecture)
    assert not wrong, "\n".join(wrong)
    return text


def faults(texts: Iterable[str], architecture: str) -> list[str]:
    """What is wrong with PTX that the library wrote, in words."""
    return [fault for text in texts for fault in _faults(text, architecture)]


@functools.cache
def _faults(text: str, architecture: str) -> list[str]:
    wrong = [f"loose: {instruction}" for instruction in LOOSE.findall(text)]
    if ASSEMBLES:
        with tempfile.TemporaryDirectory() as folder:
            try:
                said = assembled(text, Path(folder), architecture)
            except AssertionError as error:
                return [*wrong, f"does not assemble: {error}\n{text}"]
        if set(_MEMORY.findall(said)) != {"0"}:
            wrong.append(f"has a stack or spills: {said}\n{text}")
    return wrong
