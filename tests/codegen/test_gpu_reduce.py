"""Reductions of columns and trees over chunks on a GPU, in lockstep: the bits of the processor's kernels."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes  # noqa: F401  (NumPy's bfloat16)
import numpy as np
import pytest
from codegen.test_teams import REDUCTIONS, run, some, specs
from ptx_checks import clean

from twofold.codegen import gpu_reduce, loop_verify, reduce
from twofold.codegen.loop import Kernel
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType

COUNTS = [1, 2, 8, 9, 16, 17, 31, 32, 33, 100]
CHUNKS = [1, 2, 3, 5, 8, 31, 32, 33, 64, 70]


def dtypes(spec: reduce.ReductionSpec, partial: bool) -> tuple[DType, ...]:
    return spec.acc_dtypes if partial else spec.out_dtypes


def by_processor(spec: reduce.ReductionSpec, mask: str, partial: bool, ins: list[np.ndarray], total: int, outputs: int,
                 steps: list[int]) -> list[bytes]:
    """The results of `reduce.columns`, chunk by chunk."""
    chunks = -(-total // reduce.CHUNK)
    outs = [np.zeros((chunks, outputs), d.np) for d in dtypes(spec, partial)]
    kernel = reduce.columns(spec, mask, partial)
    for chunk in range(chunks):
        of_chunk = [np.zeros(outputs, o.dtype) for o in outs]
        integers = [chunk * reduce.CHUNK, total, *steps]
        assert run(kernel, outputs, [*of_chunk, *[x[chunk * reduce.CHUNK:] for x in ins]], integers) == 0
        for out, own in zip(outs, of_chunk, strict=True):
            out[chunk] = own
    return [o.tobytes() for o in outs]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_columns_have_the_bits_of_the_processor(name: str) -> None:
    for spec in specs(name):
        for count in COUNTS:
            for mask, partial, outputs in (("v", False, 35), ("g", True, 3)):
                step = 1 if mask == "v" else 2
                width = outputs * step
                ins = [some(n + count, (count, width), d) for n, d in enumerate(spec.in_dtypes)]
                steps = [*[width] * len(ins), *([step - 1] * len(ins) if mask == "g" else [])]
                want = by_processor(spec, mask * len(ins), partial, ins, count, outputs, steps)
                kernel = gpu_reduce.columns(spec, mask * len(ins), partial)
                loop_verify.verify(kernel)
                outs = [np.zeros((1, outputs), d.np) for d in dtypes(spec, partial)]
                assert run(kernel, -(-outputs // gpu_reduce.COLUMNS), [*outs, *ins], [count, outputs, *steps]) == 0
                assert [o.tobytes() for o in outs] == want, (spec, count, mask)


@pytest.mark.parametrize("name", ["reduce_sum", "argmax"])
def test_columns_of_several_chunks(name: str) -> None:
    spec = next(s for s in specs(name) if s.in_dtypes[0] is dt.float32)
    total, outputs = reduce.CHUNK + 40, 33
    x = some(0, (total, outputs), dt.float32)
    want = by_processor(spec, "v", True, [x], total, outputs, [outputs])
    outs = [np.zeros((2, outputs), d.np) for d in spec.acc_dtypes]
    assert run(gpu_reduce.columns(spec, "v", True), 4, [*outs, x], [total, outputs, outputs]) == 0
    assert [o.tobytes() for o in outs] == want


@pytest.mark.parametrize("name", REDUCTIONS)
def test_trees_have_the_bits_of_the_processor(name: str) -> None:
    outputs = 3
    for spec in specs(name):
        for chunks in CHUNKS:
            given = [some(chunks + n, (chunks, outputs), d) for n, d in enumerate(spec.acc_dtypes)]
            results = []
            kernels = [reduce.tree(spec), gpu_reduce.tree(spec)]
            if chunks <= gpu_reduce.FEW_CHUNKS:
                kernels.append(gpu_reduce.short_tree(spec))
            for kernel in kernels:
                loop_verify.verify(kernel)
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


@pytest.mark.parametrize("name", REDUCTIONS)
def test_kernels_assemble(name: str, tmp_path: Path) -> None:
    table: dict[str, Kernel] = {}
    for spec in specs(name):
        kind = spec.in_dtypes[0].name
        table |= {f"columns_{kind}": gpu_reduce.columns(spec, "v" * len(spec.in_dtypes), False),
                  f"partial_{kind}": gpu_reduce.columns(spec, "g" * len(spec.in_dtypes), True),
                  f"blocks_{kind}": gpu_reduce.blocks(spec), f"tree_{kind}": gpu_reduce.tree(spec),
                  f"short_tree_{kind}": gpu_reduce.short_tree(spec)}
    clean(table, tmp_path)
