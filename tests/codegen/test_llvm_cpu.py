"""Kernels through the LLVM backend against the same kernels through numba: the same memory and the same statuses."""

from __future__ import annotations

import functools
import itertools
import math
import mmap
import platform
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from kernel_backends import load, run, same, through_llvm, through_numba, values, zeros
from kernel_sample import ALL, VALUE_TYPES, assert_same, random
from llvmlite import ir

from twofold.codegen import llvm_cpu, llvm_module, llvm_ops, reduce, schedule
from twofold.codegen.kernels import equal, indexing, pool, scan, segment, softmax, sparse, tables, texts
from twofold.codegen.kernels import random as draws
from twofold.codegen.loop import Kernel, LoopBuilder
from twofold.ir import dtypes as dt
from twofold.ir import math_random, ops
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Reduction
from twofold.runtime import launch

F32, F64 = dt.float32, dt.float64


def optimised(kernel: Kernel) -> llvm.ModuleRef:
    module = ir.Module()
    llvm_cpu.emit_kernel(module, kernel, "kernel")
    return llvm_module.optimise(module)


# -- maps -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [d for d in ALL if not d.is_bool], ids=lambda d: d.name)
def test_arithmetic_of_every_dtype(dtype: DType) -> None:
    def body(s: Any, x: Any, y: Any) -> tuple[Any, ...]:
        return s.add(x, y), s.sub(x, y), s.mul(x, y), s.eq(x, y), s.select(s.ne(x, y), x, y)

    out = (dtype, dtype, dtype, dt.bool_, dtype)
    kernel = schedule.map_rows("arithmetic", body, (dtype, dtype), out, {}, "vv")
    _, memory = same(kernel, 3, 330, *(zeros(d, 333) for d in out), values(dtype, 333, 1), values(dtype, 333, 2))
    assert not memory[0][:3].any() and not memory[0][330:].any()  # what is not in the range stays


@pytest.mark.parametrize("dtype", VALUE_TYPES, ids=lambda d: d.name)
def test_conversions_between_all_value_types(dtype: DType) -> None:
    kernel = schedule.map_rows("cast", lambda s, x: tuple(s.cast(x, d) for d in VALUE_TYPES), (dtype,), VALUE_TYPES,
                               {}, "v")
    same(kernel, 0, 300, *(zeros(d, 300) for d in VALUE_TYPES), values(dtype, 300, 3))


FUNCTIONS = [ops.exp, ops.log, ops.tanh, ops.sin, ops.erf, ops.sqrt, ops.lgamma, ops.round]


# Of 16 bits, whose loads and stores differ alone, each function for one of both dtypes.
@pytest.mark.parametrize(("op", "dtype"), [(op, d) for n, op in enumerate(FUNCTIONS) for d in (
    F32, F64, (dt.float16, dt.bfloat16)[n % 2])], ids=lambda v: v.name)
def test_functions(op: Any, dtype: DType) -> None:
    kernel = schedule.map_rows(op.name, op.body, (dtype,), (dtype,), {}, "v")
    same(kernel, 0, 777, zeros(dtype, 777), values(dtype, 777, 4))


MASKS = ["vv", "vs", "sv", "gv", "vg", "ggg", "0v", "v0", "00"]


@pytest.mark.parametrize(("op", "mask"), [
    *((op, mask) for op in (ops.maximum, ops.floormod) for mask in MASKS),
    *((op, mask) for op in (ops.pow, ops.atan2) for mask in ("vs", "gv", "0v"))], ids=lambda v: getattr(v, "name", v))
def test_masks(op: Any, mask: str) -> None:
    kernel = schedule.map_rows(op.name, op.body, (F32, F32), (F32,), {}, mask)
    out = values(F32, 400, 5) if "0" in mask else zeros(F32, 400)
    strides = {"gv": [2], "vg": [2], "ggg": [2, 1, 0]}.get(mask, [])  # less 1
    same(kernel, 1, 100, out, values(F32, 400, 6), values(F32, 400, 7), *strides)


@pytest.mark.parametrize("dtype", [dt.int8, dt.int32, dt.int64, dt.uint8, dt.uint64], ids=lambda d: d.name)
def test_a_failed_check_is_reported_at_the_end(dtype: DType) -> None:
    kernel = schedule.map_rows("truncatediv", ops.truncatediv.body, (dtype, dtype), (dtype,), {}, "vv")
    x, y = values(dtype, 300, 8), np.where(values(dtype, 300, 9) == 0, 1, 3).astype(dtype.np)
    assert same(kernel, 0, 300, zeros(dtype, 300), x, y)[0] == 0
    y[200] = 0
    status, memory = same(kernel, 0, 300, zeros(dtype, 300), x, y)
    assert status == 1 and memory[0][201:].any()


def test_the_first_check_wins_whatever_failed_first() -> None:
    b = LoopBuilder("checks")
    x = b.pointer("x", F32)
    with b.for_(b.start, b.stop) as i:
        b.check(b.lt(b.load(x, i), 10.0), "large")
        b.check(b.ge(b.load(x, i), 0.0), "negative")
    kernel = b.finish()
    assert [same(kernel, 0, 3, np.array(v, np.float32))[0]
            for v in ([1, 2, 3], [1, -1, 3], [-1, 11, 3], [11, 11, 11])] == [0, 2, 1, 1]


# -- control flow ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("lo", "hi", "step"), [(0, 7, 1), (7, 0, 1), (3, 3, 1), (1, 12, 5), (9, -1, -1), (9, 0, -4),
                                                (-1, 9, -1), (-3, 4, 2)])
def test_loops_visit_what_range_visits(lo: int, hi: int, step: int) -> None:
    b = LoopBuilder("loop")
    out = b.pointer("out", dt.int64)
    count = b.local(1)
    with b.for_(b.start, b.stop, step) as i:
        b.store(out, count.get(), i)
        count.set(count.get() + 1)
    b.store(out, 0, count.get() - 1)
    _, (memory,) = same(b.finish(), lo, hi, zeros(dt.int64, 20))
    assert memory[1:1 + memory[0]].tolist() == list(range(lo, hi, step))


def test_steps_given_at_the_call() -> None:
    b = LoopBuilder("step")
    out, step = b.pointer("out", dt.int32), b.integer()
    with b.for_(b.start, b.stop, step) as i:
        b.store(out, i, b.cast(i, dt.int32))
    for step in (1, 3, 100):
        _, (memory,) = same(b.finish(), 2, 90, zeros(dt.int32, 100), step)
        assert np.flatnonzero(memory).tolist() == list(range(2, 90, step))


def test_breaks_conditions_and_variables_in_nested_loops() -> None:
    b = LoopBuilder("nest")
    out, x = b.pointer("out", F64), b.pointer("x", F64)
    best, odd = b.local(-math.inf, F64), b.local(False, dt.bool_)
    with b.for_(b.start, b.stop) as i:
        total = b.local(0.0, F64)
        with b.for_(i, b.stop) as j:
            v = b.load(x, j)
            b.break_(b.gt(total.get(), 4.0))
            with b.if_(b.gt(v, 0.0)):
                with b.if_(b.lt(v, 1.0)):
                    total.set(total.get() + v)
                    odd.set(b.not_(odd.get()))
                b.break_(b.gt(v, 3.0))
        best.set(b.maximum(best.get(), total.get()))
        b.store(out, i, b.select(odd.get(), total.get(), best.get()))
    same(b.finish(), 0, 200, zeros(F64, 200), random(F64, 200, 10))


def test_calls_and_the_first_status_that_is_not_zero() -> None:
    inner = LoopBuilder("inner")
    out = inner.pointer("out", dt.int64)
    with inner.for_(inner.start, inner.stop) as i:
        inner.check(inner.lt(i, 5), "five")
        inner.check(inner.lt(i, 3), "three")
        inner.store(out, i, i * i)
    address = through_numba(inner.finish()).address
    b = LoopBuilder("outer")
    kernel, target = b.callee(), b.integer()
    args = b.scratch(dt.int64, 1)
    b.store(args, 0, target)
    with b.for_(b.start, b.stop) as i:
        b.fail(b.call(kernel, i, i + 1, args))
    outer = through_llvm(b.finish())
    memory = np.zeros(8, np.int64)
    words = np.array([address, launch.address_of(memory)], np.int64)
    assert [outer(0, 3, launch.address_of(words)), outer(0, 8, launch.address_of(words)),
            outer(5, 8, launch.address_of(words))] == [0, 2, 1]
    assert memory.tolist() == [0, 1, 4, 9, 16, 25, 36, 49]


def test_rows_of_an_index_space() -> None:
    """`grid`: calls, memory on the stack, and a table behind the arguments."""
    row = through_numba(schedule.map_rows("add", ops.add.body, (F32, F32), (F32,), {}, "vvg"))
    x, y = random(F32, (3, 4, 10), 11), random(F32, (10, 4), 12)
    shape, outs = [3, 4], [160, 40]
    same(schedule.grid(), 7, 101, row.address, 3, 2, 10, 1, *shape, zeros(F32, 3, 4, 10), *outs, x, *outs, y, 0, 4, 3)


# -- generators -----------------------------------------------------------------------------------------------------
def reduction(op: str, dtype: DType) -> reduce.ReductionSpec:
    if op == "sum":
        kind = Reduction(lambda s, a, b: s.add(a[0], b[0]), lambda dtypes: (0,))
    else:
        kind = Reduction(lambda s, a, b: s.maximum(a[0], b[0]),
                         lambda dtypes: (-math.inf if dtypes[0].is_floating else dtypes[0].min,))
    return reduce.ReductionSpec(op, kind, (dtype,), (dtype,), {})


@pytest.mark.parametrize(("op", "dtype"), [
    *(("sum", d) for d in (dt.float16, F32, F64, dt.int8)),
    *(("max", d) for d in (dt.bfloat16, F32, dt.int64, dt.uint16))], ids=lambda v: getattr(v, "name", v))
def test_reductions(op: str, dtype: DType) -> None:
    spec, x = reduction(op, dtype), values(dtype, 10_000, 13)
    rows, columns = reduce.rows(spec, "v", False), reduce.columns(spec, "v", False)
    for count in (0, 1, 31, 33, 500, 2500):
        same(rows, 0, 4, zeros(dtype, 4), x, 0, count, 0, 1, 2500)
        same(columns, 0, 4, zeros(dtype, 4), x, 0, count, 4)
    same(reduce.rows(spec, "g", False), 0, 2, zeros(dtype, 2), x, 0, 5000 // 2, 0, 1, 1, 1)
    same(columns, 3, 90, zeros(dtype, 100), x, 0, 100, 100)
    acc = dtype.compute
    _, (parts, _) = same(reduce.rows(spec, "v", True), 0, 3, zeros(acc, 3), x, 0, 10_000, 4096, 1, 4096)
    same(reduce.tree(spec), 0, 1, zeros(dtype, 1), parts, 10_000, 3, 1)


def test_complex_sums() -> None:
    spec, x = reduction("sum", dt.complex64), random(dt.complex64, 3000, 14)
    same(reduce.rows(spec, "v", False), 0, 3, zeros(dt.complex64, 3), x, 0, 1000, 0, 1, 1000)


@pytest.mark.parametrize("name", list(scan.SCANS))
@pytest.mark.parametrize("flags", [(False, False), (True, True)])
def test_scans(name: str, flags: tuple[bool, bool]) -> None:
    ins = [values(F32, 2000, 15 + n) for n in range(2 if name == "linear_recurrence" else 1)]
    same(scan.lines(name, F32, *flags), 1, 9, zeros(F32, 2000), *ins, 200, 1)
    same(scan.tiles(name, F32, *flags), 0, 4, zeros(F32, 2000), *ins, 10, 100)


def test_gathers_and_their_bounds() -> None:
    x, indices = random(dt.uint32, (2, 20, 7), 16), np.array([3, 19, 0, 0, 5, 11], np.int32)
    kernel = indexing.gather_rows(dt.uint32, dt.int32, False, False)
    assert same(kernel, 1, 12, zeros(dt.uint32, 2, 6, 7), x, indices, 2, 20, 6, 7)[0] == 0
    indices[4] = 20
    assert same(kernel, 0, 12, zeros(dt.uint32, 2, 6, 7), x, indices, 2, 20, 6, 7)[0] == 1
    assert same(indexing.gather_rows(dt.uint32, dt.int32, True, True), 0, 6, zeros(dt.uint32, 6), x, indices, 1, 20,
                6, 1)[0] == 1


@pytest.mark.parametrize("mode", ["update", "add", "sub", "min", "max"])
def test_scatters(mode: str) -> None:
    out, updates = values(F32, 200, 17), values(F32, 300, 18)
    indices = np.random.default_rng(19).integers(0, 20, 30)
    kernel = indexing.scatter_rows(F32, dt.int64, mode)
    assert same(kernel, 2, 9, out, updates, indices, 1, 20, 30, 10)[0] == 0
    indices[7] = -1
    assert same(kernel, 0, 10, out, updates, indices, 1, 20, 30, 10)[0] == 0  # left out: a check comes before
    check = indexing.indices_within(dt.int64)
    assert [same(check, 0, stop, indices, 20, 10)[0] for stop in (7, 8)] == [0, 1]
    assert same(check, 0, 8, indices, 20, 0)[0] == 0


@pytest.mark.parametrize("in_order", [False, True])
def test_sparse_products(in_order: bool) -> None:
    """Each range of rows by itself, against sums in the order of the elements."""
    count, size, width = 5000, 7, 5
    rows = np.random.default_rng(21).integers(0, size, count)
    rows = np.sort(rows) if in_order else rows
    columns = np.random.default_rng(22).integers(0, 20, count)
    rng = np.random.default_rng(23)
    elements, dense = (rng.normal(size=n).astype(np.float32) for n in (count, 100))
    _, (flags, _) = same(sparse.ordered(dt.int64), 0, 2, zeros(dt.int64, 2), rows, count)
    assert flags.all() == in_order
    want = np.zeros((size, width), np.float32)
    for row, column, element in zip(rows, columns, elements, strict=True):
        want[row] += element * dense.reshape(20, width)[column]
    for start, stop in ((0, 7), (2, 3), (5, 7)):
        _, (out, *_) = same(sparse.product(F32, dt.int64), start, stop, zeros(F32, size, width), flags, rows, columns,
                            elements, dense, count, 2, 20, width)
        assert np.array_equal(out[start:stop], want[start:stop]) and not out[:start].any() and not out[stop:].any()


def test_elements_of_products() -> None:
    rng = np.random.default_rng(24)
    rows, columns = rng.integers(0, 6, 40), rng.integers(0, 5, 40)
    left, right = rng.normal(size=(6, 70)).astype(np.float32), rng.normal(size=(5, 70)).astype(np.float32)
    _, (out, *_) = same(sparse.dots(F32, dt.int64), 0, 40, zeros(F32, 40), rows, columns, left, right, 6, 5, 70)
    np.testing.assert_allclose(out, (left.astype(float)[rows] * right[columns]).sum(1), rtol=1e-5, atol=1e-5)


def test_places_of_equal_numbers() -> None:
    x = np.random.default_rng(25).integers(-20, 20, 300)
    want = [x.tolist().index(number) for number in x.tolist()]
    places = [same(equal.first(dt.int64), 0, 1, zeros(dt.int32, 300), zeros(dt.int32, 601), x, 300, 601)[1][0],
              same(equal.first_by_elements(dt.int64), 0, 300, zeros(dt.int32, 300), x)[1][0]]
    assert all(first.tolist() == want for first in places)


def test_hash_tables() -> None:
    """Keys that come, are looked for and go, against a dict: of few slots, so that they stand in one another's."""
    keys = np.random.default_rng(26).integers(-15, 15, 60)
    state, slots, stored, layout = zeros(dt.int64, 2), zeros(dt.int64, 128), zeros(dt.int64, 32), (63, 64 - 4)
    _, (rows, state, slots, _, stored) = same(tables.insert(dt.int64, True), 0, 60, zeros(dt.int64, 60), state, 32,
                                              slots, *layout, keys, stored)
    known = {key: row for row, key in enumerate(dict.fromkeys(keys.tolist()))}
    assert rows.tolist() == [known[key] for key in keys.tolist()] and state.tolist() == [60, len(known)]
    gone = keys[:7]
    _, (_, slots, *_) = same(tables.remove(dt.int64, True), 0, 7, zeros(dt.int64, 7), slots, *layout, gone, stored)
    wanted = np.arange(-20, 20)
    left = [-1 if key in gone else known.get(key, -1) for key in wanted.tolist()]
    find, by_vectors = tables.find(dt.int64, True, False), through_llvm(tables.find(dt.int64, True, True))
    assert same(find, 0, 40, zeros(dt.int64, 40), slots, *layout, wanted, stored)[1][0].tolist() == left
    assert run(by_vectors, 0, 40, (zeros(dt.int64, 40), slots, *layout, wanted, stored))[1][0].tolist() == left
    _, (moved, *_) = same(tables.moved(), 0, 64, zeros(dt.int64, 512), 255, 64 - 6, slots, *layout,
                          np.arange(100, 132))
    later = [row + 100 if row >= 0 else -1 for row in left]
    assert same(find, 0, 40, zeros(dt.int64, 40), moved, 255, 64 - 6, wanted, stored)[1][0].tolist() == later


@pytest.mark.parametrize("make", [texts.sip, texts.murmur])
def test_hashes_of_texts(make: Callable[[], Kernel]) -> None:
    """Of objects with two words before the text, of 0 to 80 bytes. That of FarmHash takes numba 8 seconds; what the
    hashes are is tested by TensorFlow's (tests/keras/test_lookup.py, tests/front/library_cases.py)."""
    records = np.random.default_rng(27).integers(0, 1 << 62, (81, 12))
    records[:, 0], records[:, 1] = 7, np.arange(81)
    words = [3, 4] if make is texts.sip else [5]
    _, (hashes, _) = same(make(), 0, 81, zeros(dt.uint64, 81), records.ctypes.data + 96 * np.arange(81), 0, 0, 7, 0, 1,
                          16, 0, *words)
    assert len(set(hashes.tolist())) == 81


def test_places_that_are_not_zero() -> None:
    x = np.random.default_rng(20).integers(0, 2, 10_000).astype(bool)
    _, (counts, _) = same(indexing.count_nonzero(dt.bool_), 0, 3, zeros(dt.int64, 3), x, 10_000)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    _, memory = same(indexing.coordinates(dt.bool_), 0, 3, zeros(dt.int64, int(counts.sum()), 2), starts, x, 10_000, 2,
                     100, 100)
    assert memory[0].tolist() == np.argwhere(x.reshape(100, 100)).tolist()


@pytest.mark.parametrize("kind", list(segment.COMBINE))
def test_segments(kind: str) -> None:
    data, ids = values(F32, 600, 21), np.sort(np.random.default_rng(22).integers(0, 9, 20)).astype(np.int32)
    kernel = segment.join(kind, F32, dt.int32, True, False)
    out = zeros(F32, 9, 30)
    assert same(kernel, 0, 1, out, out, data, ids, 20, 9, 30)[0] == 0
    assert same(kernel, 0, 1, out, out, data, ids[::-1].copy(), 20, 9, 30)[0] == 1


WINDOW = (1, 9, 8, 1, 4, 4, 1, 3, 2, 1, 2, 2, 1, 1, 1, 0, 0, 0, 20)  # 9 x 8 pixels, windows 3 x 2, strides 2


@pytest.mark.parametrize("make", [pool.maximum, pool.average], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [F32, F64], ids=lambda d: d.name)
def test_windows(make: Callable[[DType], Kernel], dtype: DType) -> None:
    x = values(dtype, 2 * 9 * 8 * 20, 23)
    same(make(dtype), 0, 32, zeros(dtype, 32 * 20 * 6), x, *WINDOW)


def test_gradients_of_windows() -> None:
    x, ct = values(F32, 2 * 9 * 8 * 20, 24), random(F32, 32 * 20, 25)
    same(pool.maximum_grad(F32), 0, 2 * -(-20 // pool.BLOCK), zeros(F32, x.size), ct, x, *WINDOW)
    same(pool.average_grad(F32), 0, 144, zeros(F32, x.size), ct, *WINDOW)
    same(pool.argmax(F32), 0, 32, zeros(dt.int64, 32 * 20), x, *WINDOW)


@pytest.mark.parametrize("dtype", [F32, F64], ids=lambda d: d.name)
def test_softmax_and_cross_entropy(dtype: DType) -> None:
    x = random(dtype, (5, 137), 26)
    for log in (False, True):
        same(softmax.rows(dtype, log), 1, 5, zeros(dtype, 5, 137), x, 137)
    labels = np.array([3, 0, 136, 5, 7], np.int64)
    assert same(softmax.cross_entropy(dtype, dt.int64), 0, 5, zeros(dtype, 5), x, labels, 137)[0] == 0
    labels[2] = 137
    assert same(softmax.cross_entropy(dtype, dt.int64), 0, 5, zeros(dtype, 5), x, labels, 137)[0] == 1


@pytest.mark.parametrize(("distribution", "dtype"), [(kind, d) for n, kind in enumerate(math_random.DISTRIBUTIONS)
                                                     for d in (F32, F64, (dt.float16, dt.bfloat16)[n % 2])],
                         ids=lambda v: getattr(v, "name", v))
def test_random_numbers(distribution: str, dtype: DType) -> None:
    same(draws.fill(distribution, dtype), 0, 100, zeros(dtype, 800), np.array([5, 6, 7]))


def test_random_integers_and_rejection() -> None:
    state = np.array([1, 2, 3])
    same(draws.integers(dt.int32), 0, 60, zeros(dt.int32, 400), state, np.array([10, 1000], np.uint64))
    means = np.abs(random(F64, 200, 27)).clip(0, 1e4)
    for place in (0, 30):
        same(draws.poisson(dt.int64, F64), place, 100, zeros(dt.int64, 200), state, means, 1, 1)


# -- code -----------------------------------------------------------------------------------------------------------
def gelu(s: Any, x: Any) -> Any:
    """0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
    return 0.5 * x * (1.0 + ops.tanh.body(s, inner))


def gelu_kernel() -> Kernel:
    return schedule.map_rows("gelu", gelu, (F32,), (F32,), {}, "v")


def test_gelu() -> None:
    x = values(F32, 5000, 28)
    for size in (0, 1, 5, 16, 63, 64, 65, 200, 4999):
        same(gelu_kernel(), 1, size + 1, zeros(F32, 5000), x)
    _, (out, _) = same(gelu_kernel(), 0, 5000, zeros(F32, 5000), x)
    wide = np.linspace(-4, 4, 5000).astype(np.float32)
    _, (out, _) = same(gelu_kernel(), 0, 5000, zeros(F32, 5000), wide)
    w = wide.astype(np.float64)
    np.testing.assert_allclose(out, 0.5 * w * (1 + np.tanh(np.sqrt(2 / np.pi) * (w + 0.044715 * w**3))), rtol=2e-4,
                               atol=1e-6)


def test_gelu_is_computed_in_whole_vectors() -> None:
    assert f"<{llvm_module.vector_bits() // 32} x float> @llvm.fma" in str(optimised(gelu_kernel()))


def test_loops_over_many_operands_are_vectors_without_tests_of_overlap() -> None:
    def body(s: Any, *xs: Any) -> list[Any]:
        return [functools.reduce(s.add, xs[n:]) for n in range(6)]

    text = str(optimised(schedule.map_rows("sums", body, (F32,) * 12, (F32,) * 6, {}, "v" * 12)))
    assert f"fadd <{llvm_module.vector_bits() // 32} x float>" in text
    fill = schedule.map_rows("fill", lambda s, x: s.fma(x, x, x), (F32,), (F32,), {}, "s")
    assert text.count("icmp") == str(optimised(fill)).count("icmp")  # those that count, as where nothing can overlap


def test_rounding_to_float16_stays_in_vectors_and_calls_no_library() -> None:
    add = schedule.map_rows("add", ops.add.body, (dt.float16,) * 2, (dt.float16,), {}, "vv")
    if llvm_ops.converts_half():
        assert re.search(r"fptrunc <\d+ x float> .* to <\d+ x half>", str(optimised(add)))
    signed = schedule.map_rows("signed", lambda s, x, y: s.copysign(x, s.cast(y, F32)), (F32, F64), (dt.float16,), {},
                               "vv")
    assert not re.search(r"__\w*hf2", llvm_module.assembly(optimised(signed)))
    same(signed, 0, 300, zeros(dt.float16, 300), values(F32, 300, 29), values(F64, 300, 30))


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads x86 assembly")
def test_the_main_loop_of_gelu_uses_the_widest_registers_only_and_calls_nothing() -> None:
    text = llvm_module.assembly(optimised(gelu_kernel()))
    assert not re.search(r"^\s*call", text, re.MULTILINE)
    blocks = re.split(r"^(\.LBB\w+):", text, flags=re.MULTILINE)
    loops = [body for label, body in itertools.pairwise(blocks) if re.search(rf"\bj\w+\s+{re.escape(label)}\b", body)]
    main = max(loops, key=len)
    width = {512: "zmm", 256: "ymm", 128: "xmm"}[llvm_module.vector_bits()]
    arithmetic = [line for line in main.splitlines()
                  if re.search(r"\b(v?(add|sub|mul|div)|vfn?m(add|sub)\d+)[ps]s\b", line)]
    assert len(arithmetic) >= 30
    assert all(re.search(r"(add|sub|mul|div|\d)ps\b", line) and f"%{width}" in line for line in arithmetic), arithmetic
    assert sum("divps" in line for line in arithmetic) == 4  # vectors side by side: see `llvm_cpu.py`


def test_a_sum_of_rows_keeps_its_lanes_in_vectors() -> None:
    text = str(optimised(reduce.rows(reduction("sum", F32), "v", False)))
    assert re.search(rf"fadd <{llvm_module.vector_bits() // 32} x float>", text)


def test_inlined_kernels_that_hand_memory_on_to_each_other() -> None:
    """What one call does not access twice, two calls may: x -> y, y -> x, again and again."""
    kernel = schedule.map_rows("step", lambda s, x: s.fma(x, x, 0.25), (F32,), (F32,), {}, "v")
    module = ir.Module()
    step = llvm_cpu.emit_kernel(module, kernel, "step", inline=True)
    entry = ir.Function(module, llvm_cpu.KERNEL, "there_and_back")
    b = ir.IRBuilder(entry.append_basic_block())
    before, loop, done = b.block, entry.append_basic_block(), entry.append_basic_block()
    word = ir.IntType(64)
    b.branch(loop)
    b.position_at_end(loop)
    n = b.phi(word)
    n.add_incoming(word(0), before)
    b.call(step, entry.args)
    b.call(step, [*entry.args[:2], b.gep(entry.args[2], [word(1)], source_etype=word)])
    after = b.add(n, word(1))
    n.add_incoming(after, loop)
    b.cbranch(b.icmp_signed("<", after, word(3)), loop, done)
    b.position_at_end(done)
    b.ret(word(0))
    compiled = load(module, "there_and_back")
    x, y = np.linspace(-1, 1, 100).astype(np.float32), np.zeros(100, np.float32)
    words = np.array([launch.address_of(a) for a in (y, x, y)], np.int64)
    value = x.copy()
    assert compiled(0, 100, launch.address_of(words)) == 0
    square = through_llvm(kernel)
    for _ in range(6):
        _, (value, _) = run(square, 0, 100, (np.zeros(100, np.float32), value))
    assert_same(x, value)


def test_an_inlined_kernel_leaves_no_symbol() -> None:
    module = ir.Module()
    inner = llvm_cpu.emit_kernel(module, gelu_kernel(), "inner_kernel", inline=True)
    outer = ir.Function(module, llvm_cpu.KERNEL, "outer_kernel")
    b = ir.IRBuilder(outer.append_basic_block())
    b.ret(b.call(inner, outer.args))
    assert [f.name for f in llvm_module.optimise(module).functions if not f.is_declaration] == ["outer_kernel"]


def test_modules_get_the_target_of_the_host_as_objects_and_as_text() -> None:
    module = ir.Module()
    llvm_cpu.emit_kernel(module, gelu_kernel(), "kernel")
    for given in (module, str(module)):
        text = str(llvm_module.optimise(given))
        assert re.search(r"load i64, ptr .*, align 8", text) and "unknown-unknown-unknown" not in text


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the process's size from /proc")
def test_compiling_keeps_no_memory() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    kernel = schedule.map_rows("add", ops.add.body, (F32, F32), (F32,), {}, "vv")
    before = 0
    for n in range(120):
        llvm_module.object_code(optimised(kernel))
        if n == 20:
            before = resident()
    assert resident() - before < 5 << 20  # a pass manager that stays takes 70 KB


def test_a_module_that_is_not_valid_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="expected"):
        llvm_module.optimise("define i64 @k( {")
