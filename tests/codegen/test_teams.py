"""Kernels whose iterations belong to teams of threads: the bits are those of one thread, and all threads come together.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import kernel_backends
import ml_dtypes  # noqa: F401  (NumPy's bfloat16)
import numpy as np
import pytest
from ptx_checks import assembled

from twofold.codegen import llvm_cpu, lockstep, loop_verify, numba_source, ptx, reduce
from twofold.codegen.kernels import softmax
from twofold.codegen.loop import TEAM, Kernel, LoopBuilder, TeamBuilder
from twofold.ir import dtypes as dt
from twofold.ir import ops  # noqa: F401  (fills the registry)
from twofold.ir.dtypes import DType
from twofold.ir.op import REGISTRY
from twofold.ir.spec import TensorSpec

DTYPES = [dt.float32, dt.float64, dt.bfloat16, dt.float16, dt.int8, dt.int64, dt.uint32, dt.bool_, dt.complex64]
COUNTS = [1, 2, 9, 16, 17, 31, 32, 33, 63, 100]
FEW = [9, 33, 100]  # for dtypes whose kernels differ in their instructions alone
REDUCTIONS = sorted(name for name, op in REGISTRY.items() if op.reduction is not None)


def some(seed: int, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype.is_complex:
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype.np)
    return (rng.normal(size=shape) * 4).astype(dtype.np) if dtype.is_floating else rng.integers(0, 7, shape).astype(
        dtype.np)


def run(kernel: Kernel, total: int, arrays: list[np.ndarray], integers: list[int]) -> int:
    """Runs a kernel over [0, total) in lockstep; the arrays come before the integers."""
    return lockstep.run(kernel, total, [*[lockstep.ByteMemory(a.reshape(-1).view(np.uint8)) for a in arrays],
                                        *integers])


def specs(name: str) -> Iterator[reduce.ReductionSpec]:
    """A reduction for all dtypes that it takes."""
    op = REGISTRY[name]
    defaults = {k: dt.int64 if v is inspect.Parameter.empty else v for k, v in op.defaults.items()}
    axis = 1 if name.startswith("arg") else (1,)
    for dtype in DTYPES:
        operands = [TensorSpec((4, 5), dtype) for _ in op.params]
        try:
            results = op.infer(op, *operands, **{**defaults, "axis": axis})
        except (TypeError, ValueError):
            continue
        outs = results if isinstance(results, tuple) else (results,)
        attrs = {k: v for k, v in defaults.items() if k not in ("axis", "keepdims")}
        assert op.reduction is not None
        yield reduce.ReductionSpec(name, op.reduction, tuple(s.dtype for s in operands),
                                   tuple(o.dtype for o in outs), attrs)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_chunks_have_the_bits_of_one_thread(name: str) -> None:
    """Whole rows, and accumulators of a chunk behind others, of neighbours and of elements apart: of every number that
    teams divide in their own way for the first dtype, of a few for the others."""
    rows = 3
    cases = list(specs(name))
    assert cases
    for spec in cases:
        for mask, partial, position in (("v", False, 0), ("g", True, 4096)):
            outs = [np.zeros(rows, d.np) for d in (spec.acc_dtypes if partial else spec.out_dtypes)]
            step = 1 if mask == "v" else 2
            kernels = [reduce.rows(spec, mask * len(spec.in_dtypes), partial, by_team) for by_team in (False, True)]
            for kernel in kernels:
                loop_verify.verify(kernel)
            for count in COUNTS[partial::2] if spec is cases[0] else FEW[partial::2]:  # of one way those between
                ins = [some(n + count, (rows, count * step), d) for n, d in enumerate(spec.in_dtypes)]
                integers = [position, position + count, 0, *[1] * len(outs), *[count * step] * len(ins),
                            *([step - 1] * len(ins) if mask == "g" else [])]
                results = []
                for kernel in kernels:
                    own = [o.copy() for o in outs]
                    assert run(kernel, rows, [*own, *ins], integers) == 0
                    results.append([o.tobytes() for o in own])
                assert results[0] == results[1], (spec, count, mask)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=str)
@pytest.mark.parametrize("log", [False, True])
def test_softmax(dtype: DType, log: bool) -> None:
    for count in COUNTS:
        x = some(count, (4, count), dtype)
        x[1, 0], x[2, -1] = np.inf, np.nan
        results = []
        for by_team in (False, True):
            out = np.zeros_like(x)
            assert run(softmax.rows(dtype, log, by_team), len(x), [out, x], [count]) == 0
            results.append(out)
        assert results[0].tobytes() == results[1].tobytes()
        wide = x[[0, 3]].astype(np.float64)
        want = wide - wide.max(1, keepdims=True)
        want -= np.log(np.exp(want).sum(1, keepdims=True))
        np.testing.assert_allclose(results[1][[0, 3]], want if log else np.exp(want), rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=str)
def test_cross_entropy_and_its_check(dtype: DType) -> None:
    for count in COUNTS:
        x, labels = some(count, (3, count), dtype), np.array([0, count - 1, count // 2], np.int32)
        results = []
        for by_team in (False, True):
            kernel, out = softmax.cross_entropy(dtype, dt.int32, by_team), np.zeros(3, dtype.np)
            assert run(kernel, 3, [out, x, labels], [count]) == 0
            results.append(out.tobytes())
            assert run(kernel, 3, [out, x, np.array([0, count, 0], np.int32)], [count]) == 1
        assert results[0] == results[1]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_what_threads_tell_one_another(dtype: DType, tmp_path: Path) -> None:
    b = TeamBuilder("tells")
    further, leading, x = (b.pointer(name, dtype) for name in ("further", "leading", "x"))
    with b.for_(b.start, b.stop) as team:
        at = team * TEAM + b.lane()
        value = b.load(x, at)
        b.store(further, at, b.further(value, 5))
        b.store(leading, at, b.leading(value))
    kernel, given = b.finish(), some(1, (3, TEAM), dtype)
    outs = [np.zeros_like(given) for _ in range(2)]
    assert run(kernel, 3, [*outs, given], []) == 0
    np.testing.assert_array_equal(outs[0], np.concatenate([given[:, 5:], given[:, -5:]], 1))
    np.testing.assert_array_equal(outs[1], np.broadcast_to(given[:, :1], given.shape))
    text = ptx.text({"tells": kernel})
    assert "shfl.sync.down" in text and "shfl.sync.idx" in text
    assembled(text, tmp_path, "sm_75")


def test_threads_that_are_elsewhere_are_missed() -> None:
    def kernel(part: str) -> Kernel:
        b = TeamBuilder("parts")
        out = b.pointer("out", dt.float32)
        with b.for_(b.start, b.stop) as team:
            here = b.lt(b.lane(), 7) if part == "threads" else b.lt(team, 1)  # some of a team, or of the teams
            with b.if_(here):
                b.store(out, team, b.further(b.cast(b.lane(), dt.float32), 1))
        return b.finish()

    out = np.zeros(2, np.float32)
    assert run(kernel("teams"), 2, [out], []) == 0
    with pytest.raises(ValueError, match="parts: further: some threads of a team are elsewhere"):
        run(kernel("threads"), 2, [out], [])


def test_what_runs_on_one_thread_has_no_team() -> None:
    b = LoopBuilder("alone")
    out = b.pointer("out", dt.int64)
    b.store(out, b.start, TeamBuilder.lane(b))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="alone: instr: there is no team"):
        loop_verify.verify(b.finish())


def reversed_by_blocks(threads: int, waits: bool = True) -> Kernel:
    """A kernel that turns each row of an array round, by way of memory that a block shares."""
    b = TeamBuilder("reversed", threads)
    out, x = b.pointer("out", dt.float32), b.pointer("x", dt.float32)
    row = b.shared(dt.float32, threads)
    with b.for_(b.start, b.stop) as team:
        at = team * threads + b.thread()
        b.store(row, b.thread(), b.load(x, at))
        if waits:
            b.barrier()
        b.store(out, at, b.load(row, threads - 1 - b.thread()))
    return b.finish()


@pytest.mark.parametrize("threads", [64, 256])
def test_what_blocks_share(threads: int, tmp_path: Path) -> None:
    kernel, given = reversed_by_blocks(threads), some(3, (5, threads), dt.float32)
    loop_verify.verify(kernel)
    out = np.zeros_like(given)
    assert run(kernel, 5, [out, given], []) == 0
    np.testing.assert_array_equal(out, given[:, ::-1])
    text = ptx.text({"reversed": kernel})
    assert "st.shared" in text and "ld.shared" in text and "bar.sync" in text
    assert f"shared0[{4 * threads}]" in text
    assembled(text, tmp_path, "sm_75")
    assert ptx.threads(kernel) == (threads, 1)
    assert f"shared0 = shared {threads} x f32" in str(kernel) and "  barrier\n" in str(kernel)


def test_threads_of_a_launch() -> None:
    for kernel, threads, iterations in ((softmax.rows(dt.float32, False), 128, 128),
                                        (softmax.rows(dt.float32, False, True), 128, 4)):
        assert ptx.threads(kernel) == (threads, iterations)


def test_races_are_found() -> None:
    x = np.ones(128, np.float32)
    with pytest.raises(ValueError, match="shared0 is read and written without a barrier between"):
        run(reversed_by_blocks(64, waits=False), 2, [np.zeros_like(x), x], [])

    def writes(place: str) -> Kernel:
        b = TeamBuilder("writes", 64)
        out, memory = b.pointer("out", dt.int64), b.shared(dt.int64, 64)
        with b.for_(b.start, b.stop):
            b.store(memory, b.and_(b.thread(), 31) if place == "shared" else b.thread(), 1)
            b.store(out, b.thread(), b.load(memory, b.thread()))
        return b.finish()

    out = np.zeros(64, np.int64)
    assert run(writes("own"), 1, [out], []) == 0 and out.all()
    with pytest.raises(ValueError, match="without a barrier between"):
        run(writes("shared"), 1, [out], [])


def test_threads_that_do_not_come_to_a_barrier_are_missed() -> None:
    b = TeamBuilder("parts", 64)
    with b.for_(b.start, b.stop), b.if_(b.lt(b.thread(), 32)):
        b.barrier()
    with pytest.raises(ValueError, match="parts: barrier: some threads of a team are elsewhere"):
        run(b.finish(), 1, [], [])


def test_blocks_are_verified() -> None:
    b = TeamBuilder("warp")
    b.barrier()
    with pytest.raises(ValueError, match="warp: barrier: there is no block of threads"):
        loop_verify.verify(b.finish())
    with pytest.raises(ValueError, match="odd: a team of 33 threads"):
        loop_verify.verify(TeamBuilder("odd", 33).finish())


def test_processors_refuse_teams() -> None:
    for kernel in (reversed_by_blocks(64), softmax.rows(dt.float32, False, True)):
        with pytest.raises(NotImplementedError, match="processors have no teams of threads"):
            llvm_cpu.compile_kernel(kernel, "alone")
        with pytest.raises(NotImplementedError, match="processors have no teams of threads"):
            numba_source.source(kernel)


def test_vectors_that_are_aligned(tmp_path: Path) -> None:
    def kernel(first: int) -> Kernel:
        b = LoopBuilder("fours")
        out, x = b.pointer("out", dt.float32), b.pointer("x", dt.float32)
        with b.for_(b.start, b.stop) as i, b.if_(b.aligned(b.at(x, 0), 16)):
            four = b.load(x, i * 4 + first, 4, aligned=True)
            turned = [b.extract(four, lane) for lane in (3, 2, 1, 0)]
            b.store(out, i * 4, b.pack(turned), aligned=True)
        return b.finish()

    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    loop_verify.verify(kernel(0))
    assert run(kernel(0), 2, [out, x], []) == 0
    np.testing.assert_array_equal(out, x.reshape(2, 4)[:, ::-1].reshape(8))
    _, (again, _) = kernel_backends.run(kernel_backends.through_llvm(kernel(0)), 0, 2, (out * 0, x))
    np.testing.assert_array_equal(again, out)
    with pytest.raises(ValueError, match="fours: x is not aligned as an access says"):
        run(kernel(1), 1, [out, x], [])
    text = ptx.text({"fours": kernel(0)})
    assert "ld.global.v4" in text and "st.global.v4" in text
    assembled(text, tmp_path, "sm_75")


def test_text_says_what_belongs_to_teams() -> None:
    text = str(softmax.rows(dt.float32, False, True))
    assert " of teams of 32 {" in text.splitlines()[0]
    assert re.search(r"= further %\d+ 16 : f32", text) and re.search(r"= leading %\d+ : f32", text)
