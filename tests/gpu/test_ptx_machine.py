"""The machine that runs PTX: what kernels of the library give in it, and that it sees what is wrong with a program."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest
from codegen.test_ptx import WITH_BODIES, kernels
from codegen.test_teams import REDUCTIONS, some, specs
from gpu.ptx_machine import Loaded, Memory, load
from gpu.test_ptx_ops import integers
from ptx_checks import OLDEST, written

from twofold.codegen import gpu_gemm, gpu_mma, lockstep, ptx, reduce
from twofold.codegen.kernels import softmax
from twofold.codegen.loop import Kernel
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.op import REGISTRY

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 88.0, -104.0, 1e-3, 0.99]


def given(dtype: np.dtype, count: int, seed: int) -> np.ndarray:
    """Special values and random ones of many sizes, in some order."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "c":
        half = np.dtype(f"f{dtype.itemsize // 2}")
        return np.stack([given(half, count, seed + n) for n in (0, 1)], 1).view(dtype)[:, 0]
    if dtype.kind == "b":
        return rng.integers(0, 2, count).astype(bool)
    if dtype.kind in "iu":
        return integers(dtype, count, rng)
    ends = ml_dtypes.finfo(dtype)
    special = [*SPECIAL, float(ends.max), float(ends.tiny), -float(ends.max), float(ends.smallest_subnormal) * 3]
    sizes = rng.normal(size=count) * 2.0 ** rng.integers(-12, 8, count)
    return rng.permutation(np.concatenate([special, sizes]))[:count].astype(dtype)


def memory_types(kernel: Kernel) -> list[np.dtype]:
    """The types of what the kernel's arguments point to, in their order."""
    return [p.dtype.np for p in sorted((p for p in kernel.pointers if p.slot is not None), key=lambda p: p.slot or 0)]


def alike(found: np.ndarray, wanted: np.ndarray) -> bool:
    """Whether the bits are equal, of NaN aside."""
    if found.dtype.kind in "iub":
        return found.tobytes() == wanted.tobytes()
    if found.dtype.kind == "c":
        found, wanted = (a.view(f"f{a.itemsize // 2}") for a in (found, wanted))
    bits = np.dtype(f"u{found.dtype.itemsize}")
    return bool(((found.view(bits) == wanted.view(bits)) | (np.isnan(found) & np.isnan(wanted))).all())


def in_machine(machine: Loaded, name: str, arrays: Sequence[np.ndarray], integers: Sequence[int], total: int,
               grid: int, block: int) -> tuple[int, list[np.ndarray]]:
    """The status of a kernel's entry, and what its arrays are then."""
    memory = machine.memory
    at = [memory.allocate(a.nbytes, "array", a.tobytes()) for a in arrays]
    status = memory.allocate(8, "status", b"\xff" * 8)
    machine.launch(name, (grid, 1, 1), (block, 1, 1), machine.packed(name, [total, status, *at, *integers]))
    after = [memory.bytes(start, a.nbytes).view(a.dtype).reshape(a.shape) for start, a in zip(at, arrays, strict=True)]
    return int(memory.bytes(status, 8).view(np.int64)[0]) + 1, after


def in_lockstep(kernel: Kernel, arrays: Sequence[np.ndarray], integers: Sequence[int],
                total: int) -> tuple[int, list[np.ndarray]]:
    own = [a.copy() for a in arrays]
    status = lockstep.run(kernel, total, [*[lockstep.ByteMemory(a.reshape(-1).view(np.uint8)) for a in own], *integers])
    return status, own


@pytest.mark.parametrize("name", WITH_BODIES)
def test_scalar_bodies(name: str) -> None:
    """The bits of the loop IR's own meaning, for all types, in blocks that do not divide the range."""
    table = kernels(REGISTRY[name])
    text = written(table, OLDEST)
    assert text.count(".visible .entry") == len(table) > 0
    machine = load(text, Memory())
    for number, (key, kernel) in enumerate(table.items()):
        types, count = memory_types(kernel), 77
        arrays = [given(t, count, number + n) for n, t in enumerate(types)]
        status, wanted = in_lockstep(kernel, arrays, [], count)
        found_status, found = in_machine(machine, key, arrays, [], count, 2, 32)
        assert found_status == status, key
        if not status:
            for n, (one, other) in enumerate(zip(found, wanted, strict=True)):
                assert alike(one, other), (key, n, arrays[n][one != other], one[one != other], other[one != other])


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_by_teams(name: str) -> None:
    """The bits of one thread: whole rows, and accumulators of a chunk behind others."""
    rows = 3
    cases = [(spec, partial) for n, spec in enumerate(specs(name))
             for partial in ((False, True) if spec.in_dtypes[0] is dt.float32 else (n % 2 == 0,))]
    table = {f"k{n}": reduce.rows(spec, "v" * len(spec.in_dtypes), partial, True) for n, (spec, partial) in
             enumerate(cases)}
    machine = load(written(table, OLDEST), Memory())
    for key, (spec, partial) in zip(table, cases, strict=True):
        alone = reduce.rows(spec, "v" * len(spec.in_dtypes), partial, False)
        for count in (1, 31, 70):
            outs = [np.zeros(rows, d.np) for d in (spec.acc_dtypes if partial else spec.out_dtypes)]
            ins = [some(n + count, (rows, count), d) for n, d in enumerate(spec.in_dtypes)]
            position = 4096 * partial
            integers = [position, position + count, 0, *[1] * len(outs), *[count] * len(ins)]
            status, wanted = in_lockstep(alone, [*outs, *ins], integers, rows)
            found_status, found = in_machine(machine, key, [*outs, *ins], integers, rows, 2, 64)
            assert found_status == status == 0
            assert all(alike(a, b) for a, b in zip(found, wanted, strict=True)), (key, spec, count)


@pytest.mark.parametrize("dtype", [dt.float32, dt.bfloat16, dt.float16], ids=lambda d: d.name)
def test_products_by_tensor_cores(dtype: DType) -> None:
    """The machine takes fragments apart by NVIDIA's document, so that they must be where that says they are."""
    kernel = gpu_gemm.kernel(dtype, (gpu_gemm.INNER, gpu_gemm.OUTER), gpu_mma.SHAPES[1], 0, False)
    m, n, k = 70, 24, 50
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=size).astype(dtype.np) for size in ((m, k), (k, n)))
    status, (c, *_) = in_machine(load(written({"product": kernel}), Memory()), "product",
                                 [np.zeros((m, n), np.float32), a, b], [m, n, k, n, k, 1, n], 2, 2,
                                 ptx.threads(kernel).block)
    assert status == 0
    x, y = a.astype(np.float64), b.astype(np.float64)
    far = (2.0 ** -10 * (dtype is dt.float32) + k * 2.0 ** -23) * (np.abs(x) @ np.abs(y))
    assert (np.abs(c - x @ y) <= far).all()


def softmax_kernels(by_team: bool) -> dict[str, Kernel]:
    table = {}
    for dtype in (dt.float32, dt.float64):
        for log in (False, True):
            table[f"softmax_{dtype.name}_{log}"] = softmax.rows(dtype, log, by_team)
        table[f"cross_{dtype.name}"] = softmax.cross_entropy(dtype, dt.int32, by_team)
    return table


def test_softmax_by_teams() -> None:
    teams, alone = softmax_kernels(True), softmax_kernels(False)
    machine = load(written(teams, OLDEST), Memory())
    for key, kernel in alone.items():
        dtype = memory_types(kernel)[0]
        for count in (1, 17, 70):
            x = np.random.default_rng(count).normal(size=(4, count)).astype(dtype)
            x[1, 0], x[2, -1] = np.inf, np.nan
            arrays = [np.zeros_like(x), x]
            if key.startswith("cross"):
                arrays = [np.zeros(4, dtype), x, np.array([0, count - 1, count // 2, count], np.int32)]
            status, wanted = in_lockstep(kernel, arrays, [count], 4)
            found_status, found = in_machine(machine, key, arrays, [count], 4, 1, 96)
            assert found_status == status == int(key.startswith("cross"))
            assert alike(found[0][:3], wanted[0][:3]), (key, count)
