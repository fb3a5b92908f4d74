"""Instructions that are written at once against llvmlite's own builder: LLVM makes the same code of both."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from llvmlite import ir

from twofold.codegen import conv_kernels, gemm_kernels, gemm_shapes, llvm_cpu, llvm_module, schedule
from twofold.codegen.llvm_writer import TextBuilder
from twofold.codegen.loop import Kernel
from twofold.ir import dtypes as dt
from twofold.ir import ops


def mapped(name: str, dtypes: list[dt.DType], out: dt.DType, mask: str) -> Callable[[], list[Kernel]]:
    op = getattr(ops, name)
    return lambda: [schedule.map_rows(name, op.body, tuple(dtypes), (out,), {}, mask)]


KERNELS: dict[str, Callable[[], list[Kernel]]] = {
    "tanh": mapped("tanh", [dt.float32], dt.float32, "v"),
    "pow": mapped("pow", [dt.float64, dt.float64], dt.float64, "vg"),
    "half": mapped("maximum", [dt.float16, dt.float16], dt.float16, "vs"),
    "bfloat16": mapped("multiply", [dt.bfloat16, dt.bfloat16], dt.bfloat16, "vv"),
    "complex": mapped("multiply", [dt.complex64, dt.complex64], dt.complex64, "vv"),
    "division": mapped("truncatediv", [dt.int32, dt.int32], dt.int32, "vv"),
    "unsigned": mapped("floordiv", [dt.uint8, dt.uint8], dt.uint8, "vv"),
    "compare": mapped("less", [dt.float32, dt.float32], dt.bool_, "vv"),
    "product": lambda: list(gemm_kernels.kernels(dt.float32, gemm_shapes.tiling(dt.float32), "tall").values()),
    "product of int8": lambda: list(gemm_kernels.kernels(dt.int8, gemm_shapes.tiling(dt.int8), "tall").values()),
    "product of bfloat16": lambda: list(
        gemm_kernels.kernels(dt.bfloat16, gemm_shapes.tiling(dt.bfloat16), "flat").values()),
    "convolution": lambda: list(
        conv_kernels.kernels(dt.float64, gemm_shapes.tiling(dt.float64), "forward_1").values()),
}


def code(kernels: list[Kernel], apart: bool) -> bytes:
    module = ir.Module()
    for kernel in kernels:
        llvm_cpu.emit_kernel(module, kernel, f"kernel_{kernels.index(kernel)}" if len(kernels) == 1 else kernel.name,
                             apart=apart, heap=True)
    return llvm_module.object_code(llvm_module.optimise(module))


@pytest.mark.parametrize(("name", "apart"), [(name, n % 2 == 1) for n, name in enumerate(KERNELS)])
def test_code_is_the_same(name: str, apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In turns where memory may overlap and where it is apart."""
    written = code(KERNELS[name](), apart)
    monkeypatch.setattr(llvm_cpu, "TextBuilder", ir.IRBuilder)
    assert code(KERNELS[name](), apart) == written


def test_operands_of_different_types_are_refused() -> None:
    fn = ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), [ir.IntType(32), ir.IntType(64)]), "f")
    b = TextBuilder(fn.append_basic_block())
    with pytest.raises(ValueError, match="add of i32 and i64"):
        b.add(*fn.args)


@pytest.mark.parametrize("likely", [True, False])
def test_branches_say_which_way_is_likely(likely: bool) -> None:
    fn = ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), [ir.IntType(1)]), "f")
    b = TextBuilder(fn.append_basic_block())
    with b.if_then(fn.args[0], likely=likely):
        b.ret_void()
    b.ret_void()
    weights = "i32 99, i32 1" if likely else "i32 1, i32 99"
    assert f'"branch_weights", {weights}' in str(fn.module) and ", !prof !" in str(fn)
    llvm_module.verified(fn.module)
