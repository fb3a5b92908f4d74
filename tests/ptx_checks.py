"""What every kernel's PTX must be, wherever a test meets it: one definition.

No instruction may round otherwise than the processor's, which the text tells; and the assembler must take it and find
registers enough. The assembler takes a while to start, so texts that tests run (`gpu/`) wait for the end of their
module (`conftest.py`), and all that have waited are given to it together.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from twofold.codegen import loop, ptx

__all__ = ["LOOSE", "OLDEST", "assembled", "clean", "faults", "refused", "together", "waiting", "written"]

OLDEST = "sm_75"  # the architecture for which the library writes what serves all
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


def clean(table: Mapping[str, loop.Kernel], folder: Path, architecture: str = OLDEST) -> tuple[str, list[int]]:
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
    """What is wrong with texts of the library as they stand; the assembler sees them at the end of the module."""
    texts = list(texts)
    for text in texts:
        if (text, architecture) not in _assembled:
            waiting.setdefault((text, architecture), os.environ.get("PYTEST_CURRENT_TEST", "no test"))
    return [fault for text in texts for fault in _loose(text)]


@functools.cache
def _loose(text: str) -> list[str]:
    return [f"loose: {instruction}" for instruction in LOOSE.findall(text)]


# -- texts of many tests --------------------------------------------------------------------------
waiting: dict[tuple[str, str], str] = {}  # texts for an architecture that are not assembled yet, by which test
_assembled: set[tuple[str, str]] = set()
_ENTRY = re.compile(r"(\.entry\s+)([\w$]+)")
_HEAD = ".address_size 64"


def refused() -> list[str]:
    """What the assembler has against the texts that wait, which wait no longer."""
    now = dict(waiting)
    waiting.clear()
    _assembled.update(now)
    wrong = []
    for architecture in sorted({architecture for _, architecture in now}):
        texts = [text for text, its in now if its == architecture]
        if any(_misassembled(text, architecture) for text in together(texts)):
            told = [(_misassembled(text, architecture), now[text, architecture], text) for text in texts]
            wrong += [f"{fault}, run by {test}\n{text}" for fault, test, text in told if fault]
    return wrong


def together(texts: Sequence[str]) -> list[str]:
    """The kernels of several texts in one for each head (version and target), under names of their own."""
    bodies: dict[str, list[str]] = {}
    for n, text in enumerate(texts):
        head, _, body = text.partition(_HEAD)
        bodies.setdefault(head + _HEAD, []).append(_ENTRY.sub(rf"\g<1>t{n}_\g<2>", body))
    return [head + "".join(of_head) for head, of_head in bodies.items()]


def _misassembled(text: str, architecture: str) -> str:
    """Why a text cannot stay, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            said = assembled(text, Path(folder), architecture)
        except AssertionError as error:
            return f"does not assemble: {error}"
    return "" if set(_MEMORY.findall(said)) == {"0"} else f"has a stack or spills: {said}"
