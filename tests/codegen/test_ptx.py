"""Kernels as PTX: their text, and that faults of it are seen. All scalar bodies: `gpu/test_ptx_machine.py`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ptx_checks
import pytest
from gpu import devices
from ptx_checks import LOOSE, assembled

from twofold.codegen import loop, ptx, schedule
from twofold.ir import dtypes as dt
from twofold.ir import ops  # noqa: F401  (fills the registry)
from twofold.ir.dtypes import DType
from twofold.ir.op import REGISTRY, Op
from twofold.ir.spec import TensorSpec

DTYPES = [dt.float32, dt.float64, dt.bfloat16, dt.float16, dt.int8, dt.int64, dt.uint32, dt.bool_, dt.complex64]
ATTRIBUTES: dict[str, Any] = {"dtype": dt.float32, "order": 2}  # of those that have no default
ARCHITECTURES = ["sm_75", "sm_90", "sm_100"]


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
    assert LOOSE.findall("mul.f32 %f1, %f2, %f3;  add.rn.f32 %f1, %f2, %f3;  mul.rn.ftz.f32 x;  div.approx.f32 y;"
                         "  add.f32x2 z;  div.full.f32 y;") == [
        "mul.f32", "mul.rn.ftz.f32", "div.approx.f32", "add.f32x2", "div.full.f32"]


STACK = """.version 6.3
.target sm_75
.address_size 64
.visible .entry turned(.param .u64 .ptr .global .align 8 out, .param .u64 n)
{
    .reg .b64 %rd<6>;
    .local .align 8 .b8 own[64];
    ld.param.b64 %rd1, [out];
    ld.param.b64 %rd2, [n];
    mov.u64 %rd3, own;
    add.s64 %rd4, %rd3, %rd2;
    st.local.b64 [%rd4], %rd2;
    ld.local.b64 %rd5, [%rd3];
    st.global.b64 [%rd1], %rd5;
    ret;
}
"""


def test_faults_of_what_a_gpu_runs_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of a test that has loaded such text, or at the end of its module."""
    monkeypatch.setattr(ptx_checks, "waiting", {})
    assert ptx_checks.faults(["mul.f32 a; cvt.ftz.f32.f16 b;"], "sm_90") == ["loose: mul.f32", "loose: cvt.ftz.f32.f16"]
    ptx_checks.waiting.clear()
    monkeypatch.setattr(devices, "HARDWARE", False)
    with pytest.raises(AssertionError, match="loose: mul.f32"), devices.device() as fake:
        fake.texts.add("mul.f32 a; // " + "in a test")
    ptx_checks.waiting.clear()
    fine = [ptx.text({"kernel": kernel}) for kernel in some_kernels().values()]
    assert ptx_checks.faults(fine, "sm_90") == ptx_checks.refused() == []
    for text, fault in ((STACK, "has a stack or spills: "), (STACK.replace("add.s64", "add.s63"), "does not assemble")):
        assert ptx_checks.faults([*fine[:2], text + "// once", fine[2] + "// again"], "sm_90") == []
        told, = ptx_checks.refused()
        assert told.startswith(fault)
        assert "run by tests/codegen/test_ptx.py::test_faults_of_what_a_gpu_runs_are_seen" in told
        assert ptx_checks.refused() == []


def test_kernels_assemble_together() -> None:
    """Under the names that they have in texts of their own, whose kernels are counted."""
    texts = [ptx.text({"kernel": kernel}) for kernel in some_kernels().values()]
    one, other = ptx_checks.together([*texts, STACK])
    assert one.count(".visible .entry") == len(texts)
    assert other.count(".entry") == 1
