"""Kernels as PTX: all scalar bodies assemble, and no instruction may round otherwise than the processor's."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from twofold.codegen import loop, ptx, schedule
from twofold.ir import dtypes as dt
from twofold.ir import ops  # noqa: F401  (fills the registry)
from twofold.ir.dtypes import DType
from twofold.ir.op import REGISTRY, Op
from twofold.ir.spec import TensorSpec

DTYPES = [dt.float32, dt.float64, dt.bfloat16, dt.float16, dt.int8, dt.int64, dt.uint32, dt.bool_, dt.complex64]
ATTRIBUTES: dict[str, Any] = {"dtype": dt.float32, "order": 2}  # of those that have no default
ARCHITECTURES = ["sm_75", "sm_90", "sm_100"]
# Instructions without a rounding mode, which an assembler may contract, and approximations.
LOOSE = re.compile(r"\b(?:(?:add|sub|mul|mad)\.(?:f16|bf16|f32|f64)|\w+\.approx\.\S+|\S+\.ftz\.\S+|call\.\S+)\b")


def ptxas() -> str:
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
    done = subprocess.run([ptxas(), f"-arch={architecture}", "-v", source, "-o", folder / "kernels.cubin"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


def clean(table: dict[str, loop.Kernel], folder: Path, architecture: str = "sm_75") -> tuple[str, list[int]]:
    """The text of kernels, and the registers that a thread of each takes. Requires that no instruction is loose, that
    all assemble, and that none has a stack or spills."""
    text = ptx.text(table)
    assert LOOSE.findall(text) == []
    said = assembled(text, folder, architecture)
    assert set(re.findall(r"(\d+) bytes (?:stack frame|spill stores|spill loads)", said)) == {"0"}
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", said)]
    assert len(registers) == len(table)
    return text, registers


def operands(op: Op, dtype: DType) -> Iterator[list[TensorSpec]]:
    """Operands of a dtype, and with a condition before them."""
    count = 2 if op.variadic else len(op.params)
    for first in (dtype, dt.bool_):
        yield [TensorSpec((4, 5), first if n == 0 else dtype) for n in range(count)]


def kernels(op: Op) -> dict[str, loop.Kernel]:
    """The op's kernels over neighbours, by name: for each dtype that its shape rule takes."""
    attrs = {name: ATTRIBUTES[name] if value is inspect.Parameter.empty else value
             for name, value in op.defaults.items()}
    body = op.body
    by_name: dict[str, loop.Kernel] = {}
    assert body is not None
    for dtype in DTYPES:
        for specs in operands(op, dtype):
            try:
                results = op.infer(op, *specs, **attrs)
            except (TypeError, ValueError):
                continue
            outs = results if isinstance(results, tuple) else (results,)
            by_name[f"{op.name}_{dtype.name}"] = schedule.map_rows(
                op.name, body, [s.dtype for s in specs], [o.dtype for o in outs], attrs, "v" * len(specs))
            break
    return by_name


WITH_BODIES = sorted(name for name, op in REGISTRY.items() if op.body is not None)


@pytest.mark.parametrize("name", WITH_BODIES)
def test_scalar_bodies(name: str, tmp_path: Path) -> None:
    table = kernels(REGISTRY[name])
    assert table
    text, _ = clean(table, tmp_path)
    assert text.count(".visible .entry") == len(table)


def some_kernels() -> dict[str, loop.Kernel]:
    return {key: kernel for name in ("add", "gelu", "floordiv") for key, kernel in kernels(REGISTRY[name]).items()}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_architectures(architecture: str, tmp_path: Path) -> None:
    """Text for the oldest serves all."""
    assembled(ptx.text(some_kernels()), tmp_path, architecture)


def test_checks_leave_the_least_status() -> None:
    text = ptx.text({"floordiv": kernels(REGISTRY["floordiv"])["floordiv_int64"]})
    assert re.search(r"\b(?:atom|red)\.", text)
    assert not re.search(r"\b(?:atom|red)\.", ptx.text({"add": kernels(REGISTRY["add"])["add_int64"]}))


def test_arguments_keep_their_order() -> None:
    add = REGISTRY["add"].body
    assert add is not None
    strided: Sequence[bool] = ptx.parameters(schedule.map_rows(
        "add", add, [dt.float32] * 2, [dt.float32], {}, "gv"))
    assert list(strided) == [True, True, True, False]


def test_what_is_loose_is_seen() -> None:
    assert LOOSE.findall("mul.f32 %f1, %f2, %f3;  add.rn.f32 %f1, %f2, %f3;  mul.rn.ftz.f32 x;  div.approx.f32 y;") == [
        "mul.f32", "mul.rn.ftz.f32", "div.approx.f32"]
