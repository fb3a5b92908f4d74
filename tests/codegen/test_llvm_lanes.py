"""Loops of known length that become instructions on vectors, against the same kernels through numba."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from kernel_backends import load, run, same, values, zeros
from kernel_sample import VALUE_TYPES
from llvmlite import ir

from twofold.codegen import llvm_cpu
from twofold.codegen.loop import Kernel, LoopBuilder
from twofold.ir import dtypes as dt

F32, F64, I64 = dt.float32, dt.float64, dt.int64
COUNTS = (1, 2, 3, 5, 8, 10, 16, 31, 32)
ROWS = 4


def text_of(kernel: Kernel, **options: Any) -> str:
    module = ir.Module()
    llvm_cpu.emit_kernel(module, kernel, "kernel", **options)
    return str(module)


def loops(text: str) -> int:
    return text.count(" phi ")


def row_kernel(name: str, count: int, body: Any, *dtypes: Any) -> Kernel:
    """A kernel whose rows are loops of `count` rounds; `body(b, pointers, base, i)` is a round."""
    b = LoopBuilder(name)
    pointers = [b.pointer(f"p{n}", d) for n, d in enumerate(dtypes)]
    with b.for_(b.start, b.stop) as row:
        base = row * count
        with b.for_(0, count) as i:
            body(b, pointers, base, i)
    return b.finish()


# -- what becomes vectors -------------------------------------------------------------------------
@pytest.mark.parametrize(("count", "dtype"), [(count, d) for d in VALUE_TYPES for count in (
    COUNTS if d in (F32, dt.uint8) else (3, 16, 31))], ids=lambda v: getattr(v, "name", v))
def test_maps_of_every_length_and_type(dtype: Any, count: int) -> None:
    def body(b: Any, p: Any, base: Any, i: Any) -> None:
        x, y = b.load(p[2], base + i), b.load(p[3], i)
        b.store(p[0], base + i, b.select(b.lt(x, y), b.add(x, y), b.mul(b.sub(x, y), x)))
        b.store(p[1], base + i, b.and_(b.ne(x, y), b.le(y, x)))

    kernel = row_kernel("map", count, body, dtype, dt.bool_, dtype, dtype)
    size = ROWS * count
    same(kernel, 1, ROWS, zeros(dtype, size), zeros(dt.bool_, size), values(dtype, size, 1), values(dtype, count, 2))


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("dtype", [F32, F64], ids=lambda d: d.name)
def test_functions_of_floats(dtype: Any, count: int) -> None:
    integer = dt.int32 if dtype is F32 else I64

    def body(b: Any, p: Any, base: Any, i: Any) -> None:
        x = b.load(p[2], base + i)
        n = b.cast(b.rint(x), integer)
        bits = b.shr(b.add(b.shl(b.bitcast(x, integer), 1), n), 3)
        fused = b.fma(x, x, b.copysign(b.sqrt(b.abs(x)), b.neg(x)))
        b.store(p[0], base + i, b.add(b.sub(b.floor(x), b.ceil(x)), b.mul(b.trunc(x), fused)))
        b.store(p[1], base + i, b.xor(bits, b.or_(b.not_(n), b.cast(i, integer))))

    kernel = row_kernel("functions", count, body, dtype, integer, dtype)
    size = ROWS * count
    same(kernel, 0, ROWS, zeros(dtype, size), zeros(integer, size), values(dtype, size, 3))
    if count > 1:
        assert loops(text_of(kernel)) == 1  # over the rows alone


@pytest.mark.parametrize("count", [10, 32])
def test_a_tree_in_scratch_memory(count: int) -> None:
    b = LoopBuilder("tree")
    out, x = b.pointer("out", F32), b.pointer("x", F32)
    held = b.scratch(F32, 32)
    with b.for_(b.start, b.stop) as row:
        with b.for_(0, 32) as i:
            b.store(held, i, 0.0)
        with b.for_(0, count) as i:
            b.store(held, i, b.add(b.load(held, i), b.load(x, row * count + i)))
        for half in (16, 8, 4, 2, 1):
            with b.for_(0, half) as i:
                b.store(held, i, b.add(b.load(held, i), b.load(held, i + half)))
        b.store(out, row, b.load(held, 0))
    kernel = b.finish()
    same(kernel, 0, ROWS, zeros(F32, ROWS), values(F32, ROWS * count, 4))
    assert loops(text_of(kernel)) == 1


def test_the_index_as_a_number() -> None:
    def body(b: Any, p: Any, base: Any, i: Any) -> None:
        b.store(p[0], base + i, b.cast(i + base, F32) * 0.5)

    kernel = row_kernel("indices", 12, body, F32)
    _, (out,) = same(kernel, 0, 3, zeros(F32, 36))
    np.testing.assert_array_equal(out, np.arange(36) * np.float32(0.5))


# -- what stays a loop ----------------------------------------------------------------------------
@pytest.mark.parametrize("distance", [-3, -1, 1, 7])
def test_rounds_that_read_what_others_write(distance: int) -> None:
    def body(b: Any, p: Any, base: Any, i: Any) -> None:
        b.store(p[0], i + 8, b.add(b.load(p[0], i + 8 + distance), 1.0))

    kernel = row_kernel("carried", 8, body, F32)
    assert loops(text_of(kernel)) == 2
    same(kernel, 0, 1, values(F32, 32, 5))


def test_rounds_whose_places_are_not_known_to_differ() -> None:
    b = LoopBuilder("unknown")
    x, other = b.pointer("x", F32), b.integer()
    with b.for_(0, 8) as i:
        b.store(x, i, b.load(x, i + other) + 1.0)
    kernel = b.finish()
    assert loops(text_of(kernel)) == 1
    for distance in (0, 1, 3, 8):
        same(kernel, 0, 1, values(F32, 32, 6), distance)


def test_rounds_that_write_one_place_gather_or_go_backwards() -> None:
    def one(b: Any, p: Any, base: Any, i: Any) -> None:
        b.store(p[0], base, b.load(p[1], base + i))

    def gather(b: Any, p: Any, base: Any, i: Any) -> None:
        b.store(p[0], base + i, b.load(p[1], i * 2))

    def backwards(b: Any, p: Any, base: Any, i: Any) -> None:
        b.store(p[0], base + i, b.load(p[1], b.sub(7, i)))

    for body in (one, gather, backwards):
        kernel = row_kernel("places", 8, body, F32, F32)
        assert loops(text_of(kernel)) == 2
        same(kernel, 0, 2, zeros(F32, 16), values(F32, 16, 7))


def test_half_floats_and_divisions_of_integers_stay_loops() -> None:
    def halves(b: Any, p: Any, base: Any, i: Any) -> None:
        b.store(p[0], base + i, b.load(p[1], base + i) * 3.0)

    def divided(b: Any, p: Any, base: Any, i: Any) -> None:
        b.store(p[0], base + i, b.idiv(b.load(p[1], base + i), b.load(p[1], i)))

    for body, dtype in ((halves, dt.float16), (halves, dt.bfloat16), (divided, dt.int32)):
        kernel = row_kernel("others", 8, body, dtype, dtype)
        assert loops(text_of(kernel)) == 2
        same(kernel, 0, 2, zeros(dtype, 16), values(dtype, 16, 8))


# -- what is known beforehand ---------------------------------------------------------------------
def sized() -> Kernel:
    """Rows of an unknown length, first in blocks of four."""
    b = LoopBuilder("sized")
    out, x, n = b.pointer("out", F32), b.pointer("x", F32), b.integer()
    with b.for_(b.start, b.stop) as row:
        blocks = b.idiv(n, 4) * 4
        with b.for_(0, blocks, 4) as first, b.for_(0, 4) as i:
            b.store(out, row * n + first + i, b.load(x, row * n + first + i) + 1.0)
        with b.if_(b.gt(n, blocks)), b.for_(blocks, n) as i:
            b.store(out, row * n + i, b.load(x, row * n + i) - 1.0)
    return b.finish()


_numbers = itertools.count()


@pytest.mark.parametrize("size", [1, 3, 4, 8, 11])
@pytest.mark.parametrize("alone", [False, True])
def test_arguments_that_never_change(size: int, alone: bool) -> None:
    kernel, rows = sized(), 1 if alone else 3
    module, name = ir.Module(), f"test_llvm_lanes_{next(_numbers)}"
    llvm_cpu.emit_kernel(module, kernel, name, alone=alone, numbers={2: size})
    x = values(F32, rows * size, 9)
    status, memory = run(load(module, name), 0, rows, (zeros(F32, rows * size), x, -1))  # -1: not looked at
    _, expected = same(kernel, 0, rows, zeros(F32, rows * size), x, size)
    assert status == 0
    np.testing.assert_array_equal(memory[0], expected[0])
    assert loops(text_of(kernel, alone=alone, numbers={2: size})) <= 2
