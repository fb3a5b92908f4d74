"""Reductions of columns and trees over chunks on a GPU, in lockstep: the bits of the processor's kernels."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes  # noqa: F401  (NumPy's bfloat16)
import numpy as np
import pytest
from codegen.test_teams import REDUCTIONS, run, some, specs
from ptx_checks import OLDEST, written

from twofold.codegen import gpu_reduce, loop_verify, reduce
from twofold.codegen.loop import Kernel
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType

COUNTS = [1, 2, 8, 9, 16, 17, 31, 32, 33, 100]
CHUNKS = [1, 2, 3, 5, 8, 31, 32, 33, 64, 70]
FEW_COUNTS, FEW_CHUNKS = [9, 17, 100], [3, 33, 70]  # for dtypes whose kernels differ in their instructions alone


def dtypes(spec: reduce.ReductionSpec, partial: bool) -> tuple[DType, ...]:
    return spec.acc_dtypes if partial else spec.out_dtypes


def by_processor(kernel: Kernel, results: tuple[DType, ...], ins: list[np.ndarray], total: int, outputs: int,
                 steps: list[int]) -> list[bytes]:
    """The results of a kernel that `reduce.columns` made, chunk by chunk."""
    chunks = -(-total // reduce.CHUNK)
    outs = [np.zeros((chunks, outputs), d.np) for d in results]
    for chunk in range(chunks):
        of_chunk = [np.zeros(outputs, o.dtype) for o in outs]
        integers = [chunk * reduce.CHUNK, total, *steps]
        assert run(kernel, outputs, [*of_chunk, *[x[chunk * reduce.CHUNK:] for x in ins]], integers) == 0
        for out, own in zip(outs, of_chunk, strict=True):
            out[chunk] = own
    return [o.tobytes() for o in outs]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_columns_have_the_bits_of_the_processor(name: str) -> None:
    for number, spec in enumerate(specs(name)):
        for mask, partial, outputs in (("v", False, 35), ("g", True, 3)):
            step = 1 if mask == "v" else 2
            width, operands = outputs * step, len(spec.in_dtypes)
            steps = [*[width] * operands, *([step - 1] * operands if mask == "g" else [])]
            processor = reduce.columns(spec, mask * operands, partial)
            kernel = gpu_reduce.columns(spec, mask * operands, partial)
            loop_verify.verify(kernel)
            for count in (FEW_COUNTS if number else COUNTS)[partial::2]:
                ins = [some(n + count, (count, width), d) for n, d in enumerate(spec.in_dtypes)]
                want = by_processor(processor, dtypes(spec, partial), ins, count, outputs, steps)
                outs = [np.zeros((1, outputs), d.np) for d in dtypes(spec, partial)]
                assert run(kernel, -(-outputs // gpu_reduce.COLUMNS), [*outs, *ins], [count, outputs, *steps]) == 0
                assert [o.tobytes() for o in outs] == want, (spec, count, mask)


@pytest.mark.parametrize("name", ["reduce_sum", "argmax"])
def test_columns_of_several_chunks(name: str) -> None:
    spec = next(s for s in specs(name) if s.in_dtypes[0] is dt.float32)
    total, outputs = reduce.CHUNK + 40, 33
    x = some(0, (total, outputs), dt.float32)
    want = by_processor(reduce.columns(spec, "v", True), spec.acc_dtypes, [x], total, outputs, [outputs])
    outs = [np.zeros((2, outputs), d.np) for d in spec.acc_dtypes]
    assert run(gpu_reduce.columns(spec, "v", True), 4, [*outs, x], [total, outputs, outputs]) == 0
    assert [o.tobytes() for o in outs] == want


@pytest.mark.parametrize("name", REDUCTIONS)
def test_trees_have_the_bits_of_the_processor(name: str) -> None:
    outputs = 3
    for number, spec in enumerate(specs(name)):
        kernels = [reduce.tree(spec), gpu_reduce.tree(spec), gpu_reduce.short_tree(spec)]
        for kernel in kernels:
            loop_verify.verify(kernel)
        for chunks in FEW_CHUNKS if number else CHUNKS:
            given = [some(chunks + n, (chunks, outputs), d) for n, d in enumerate(spec.acc_dtypes)]
            results = []
            for kernel in kernels if chunks <= gpu_reduce.FEW_CHUNKS else kernels[:2]:
                outs = [np.zeros(outputs, d.np) for d in spec.out_dtypes]
                assert run(kernel, outputs, [*outs, *given], [chunks * reduce.CHUNK, chunks, outputs]) == 0
                results.append([o.tobytes() for o in outs])
            assert all(r == results[0] for r in results), (spec, chunks)


@pytest.mark.parametrize("chunks", [1023, 1025, 2000])
def test_trees_over_many_chunks(chunks: int) -> None:
    spec = next(s for s in specs("reduce_sum") if s.in_dtypes[0] is dt.float32)
    acc, results = some(chunks, (chunks, 1), dt.float32), []
    for build in (reduce.tree, gpu_reduce.tree):
        out = np.zeros(1, np.float32)
        assert run(build(spec), 1, [out, acc], [chunks * reduce.CHUNK, chunks, 1]) == 0
        results.append(out.tobytes())
    assert results[0] == results[1]


BUILT: dict[str, Callable[[reduce.ReductionSpec], Kernel]] = {
    "columns": lambda spec: gpu_reduce.columns(spec, "v" * len(spec.in_dtypes), False),
    "partial": lambda spec: gpu_reduce.columns(spec, "g" * len(spec.in_dtypes), True),
    "blocks": gpu_reduce.blocks, "tree": gpu_reduce.tree, "short_tree": gpu_reduce.short_tree}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_kernels_assemble(name: str) -> None:
    """All of them for one dtype, and one of them for each of the others, in turns from reduction to reduction."""
    table: dict[str, Kernel] = {}
    for n, spec in enumerate(specs(name), REDUCTIONS.index(name)):
        for m, (kind, build) in enumerate(BUILT.items()):
            if spec.in_dtypes[0] is dt.float32 or m == n % len(BUILT):
                table[f"{kind}_{spec.in_dtypes[0].name}"] = build(spec)
    written(table, OLDEST)
