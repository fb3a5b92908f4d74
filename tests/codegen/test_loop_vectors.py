"""Vectors, masks, addresses, functions and local memory of the loop IR: their text, what is well formed, and what they
do, by NumPy in lockstep and by LLVM with and without its optimisations."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from kernel_backends import engine, run, values, zeros
from kernel_sample import assert_same
from llvmlite import ir

from twofold.codegen import llvm_cpu, llvm_module, lockstep, numba_source
from twofold.codegen import target as targets
from twofold.codegen.loop import BlockBuilder, FunctionBuilder, Kernel, LoopBuilder, LoopFunction, Pointer
from twofold.codegen.loop_verify import verify
from twofold.codegen.statements import At, Break, Get, If, Invoke, Load, Set, Store
from twofold.codegen.value_types import address, vector
from twofold.ir import dtypes as dt
from twofold.ir import reference
from twofold.ir.data_class import replace
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Instr

F32, I64 = dt.float32, dt.int64
NUMBERS = [dt.float32, dt.float64, dt.float16, dt.bfloat16, dt.int32, dt.uint8]
_counter = itertools.count()
_last: list[tuple[Kernel, bool, bool, Any]] = []


def machine_code(kernel: Kernel, optimised: bool, heap: bool) -> Any:
    """The code of a kernel; that of the last one is not made again when it runs with other arguments."""
    if _last and _last[0][0] is not kernel:
        _last.clear()
    for _, *how, code in _last:
        if how == [optimised, heap]:
            return code
    code = compiled(kernel, optimised, heap)
    _last.append((kernel, optimised, heap, code))
    return code


def compiled(kernel: Kernel, optimised: bool, heap: bool) -> Any:
    module, name = ir.Module(), f"test_loop_vectors_{next(_counter)}"
    llvm_cpu.emit_kernel(module, kernel, name, apart=False, heap=heap)
    made = (llvm_module.optimise if optimised else llvm_module.verified)(module)
    engine().add_object_file(llvm.ObjectFileRef.from_data(llvm_module.object_code(made)))
    engine().finalize_object()
    word = ctypes.c_int64
    return ctypes.CFUNCTYPE(word, word, word, ctypes.c_void_p)(engine().get_function_address(name))


def agree(kernel: Kernel, total: int, *args: Any) -> list[np.ndarray]:
    """The memory that a kernel leaves behind over [0, total), the same in all ways to run it."""
    verify(kernel)
    known = {id(a): a.copy() for a in args if isinstance(a, np.ndarray)}
    given = [lockstep.ByteMemory(known[id(a)].reshape(-1).view(np.uint8)) if isinstance(a, np.ndarray) else a
             for a in args]
    status = lockstep.run(kernel, total, given)
    for optimised, heap in ((False, True), (False, False), (True, True)):
        other, memory = run(machine_code(kernel, optimised, heap), 0, total, args)
        assert other == status
        for n, (got, want) in enumerate(zip(memory, known.values(), strict=True)):
            assert_same(got, want, (kernel.name, n, optimised, heap))
    return list(known.values())


def pairs_of(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Words of two bfloat16 numbers each, the first in the high bits."""
    high, low = (x.astype(np.float32).view(np.uint32) >> 16 for x in (first, second))
    return (high << 16 | low).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_products_of_pairs_are_added_one_after_another(lanes: int) -> None:
    b = LoopBuilder("k")
    x, y, z = (b.pointer(name, F32) for name in "xyz")
    with b.for_(b.start, b.stop) as i:
        at = i * lanes
        b.store(z, at, b.add_pairs(b.load(x, at, lanes), b.load(y, at, lanes), b.load(z, at, lanes)))
    kernel = b.finish()
    verify(kernel)
    assert f"add_pairs %2 %3 %4 : f32x{lanes}" in str(kernel)
    # Numbers of 8 bits, and sums so small that float64 holds them exactly before each rounding.
    rng, total = np.random.default_rng(0), 64 // lanes
    of_x, of_y = rng.integers(-255, 256, (2, 64)) / 16.0, rng.integers(-255, 256, (2, 64)) / 4096.0
    start = rng.normal(size=64).astype(np.float32)
    once = (of_x[0] * of_y[0] + start).astype(np.float32)
    expected = (of_x[1] * of_y[1] + once).astype(np.float32)
    memory = [pairs_of(*of_x), pairs_of(*of_y), start.copy()]
    held = [lockstep.ByteMemory(m.view(np.uint8)) for m in memory]
    assert lockstep.run(kernel, total, held) == 0
    assert_same(memory[2], expected, lanes)
    if targets.host().pairs:
        assert_same(agree(kernel, total, pairs_of(*of_x), pairs_of(*of_y), start)[2], expected, lanes)


def test_products_of_pairs_at_the_ends_of_the_range() -> None:
    tiny, huge, inf, nan = 2.0**-130, 2.0**127, np.inf, np.nan
    x0 = np.array([tiny, 2.0**-70, huge, inf, inf, 0, nan, -1, 1, 2.0**-64, -0.0, 3, 1, 1, 1, 1])
    y0 = np.array([1, 2.0**-70, 2, 1, 0, 5, 1, 1, 1, 2.0**-62, 1, 2, 1, 1, 1, 1])
    x1, y1 = np.array([0, 0, huge, -inf, 0, 0, 0, 1, -1, 0, 0, 1, 0, 0, 0, 0]), np.full(16, 4.0)
    start = np.array([0, 0, 0, 0, 0, -0.0, 0, 0, 0, 0, -0.0, tiny, 1e-40, 1, inf, nan], np.float32)
    expected = np.array([0, 0, inf, nan, nan, 0, nan, 3, -3, 2.0**-126, 0, 10, 1, 2, inf, nan], np.float32)
    with np.errstate(all="ignore"):
        got = reference.add_pairs(pairs_of(x0, x1), pairs_of(y0, y1), start)
    np.testing.assert_array_equal(got, expected)
    if targets.host().pairs:
        b = LoopBuilder("k")
        x, y, z = (b.pointer(name, F32) for name in "xyz")
        b.store(z, 0, b.add_pairs(b.load(x, 0, 16), b.load(y, 0, 16), b.load(z, 0, 16)))
        _, memory = run(machine_code(b.finish(), True, True), 0, 1, (pairs_of(x0, x1), pairs_of(y0, y1), start))
        np.testing.assert_array_equal(memory[2], expected)


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_products_of_quads_are_exact_and_wrap_around(lanes: int) -> None:
    b = LoopBuilder("k")
    x, y, z = (b.pointer(name, dt.int32) for name in "xyz")
    with b.for_(b.start, b.stop) as i:
        at = i * lanes
        b.store(z, at, b.add_quads(b.load(x, at, lanes), b.load(y, at, lanes), b.load(z, at, lanes)))
    kernel = b.finish()
    verify(kernel)
    assert f"add_quads %2 %3 %4 : i32x{lanes}" in str(kernel)
    rng, total = np.random.default_rng(0), 64 // lanes
    of_x, of_y = rng.integers(0, 256, (64, 4), np.uint8), rng.integers(-128, 128, (64, 4), np.int8)
    of_x[0], of_y[0] = 255, -128
    start = rng.integers(-(1 << 31), 1 << 31, 64).astype(np.int32)
    start[0] = -(1 << 31)
    products = (of_x.astype(np.int64) * of_y.astype(np.int64)).sum(1)
    expected = (products + start).astype(np.int32)
    arrays = [of_x.view(np.int32).reshape(-1), of_y.view(np.int32).reshape(-1), start]
    memory = [a.copy() for a in arrays]
    assert lockstep.run(kernel, total, [lockstep.ByteMemory(m.view(np.uint8)) for m in memory]) == 0
    assert_same(memory[2], expected, lanes)
    if targets.host().quads:
        assert_same(agree(kernel, total, *arrays)[2], expected, lanes)


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_the_bytes_of_vectors_are_words(lanes: int) -> None:
    """A vector of bytes under a mask, of all numbers of bytes up to the last, is one of a quarter of the lanes."""
    b = LoopBuilder("k")
    x, y = b.pointer("x", dt.int8), b.pointer("y", dt.int32)
    with b.for_(b.start, b.stop) as count:
        read = b.load(x, 0, 4 * lanes, b.first(count - 1, 4 * lanes))
        b.store(y, count * lanes, b.bitcast(read, vector(dt.int32, lanes)))
    values = np.random.default_rng(0).integers(-128, 128, 4 * lanes, np.int8)
    total = 4 * lanes + 3
    got = agree(b.finish(), total, values, np.zeros(total * lanes, np.int32))[1].view(np.int8).reshape(total, -1)
    for count in range(total):
        held = max(min(count - 1, 4 * lanes), 0)
        np.testing.assert_array_equal(got[count], [*values[:held], *[0] * (4 * lanes - held)])


# -- text -----------------------------------------------------------------------------------------------------------
def scaled() -> LoopFunction:
    """x = (x reversed) * factor on the first n of 4 elements, ahead of which a line is fetched."""
    b = FunctionBuilder("scaled")
    x, n, factor = b.parameter("x", address(F32)), b.parameter("n", I64), b.parameter("factor", F32)
    b.prefetch(x, 64)
    b.prefetch(x, n, write=True)
    mask = b.first(n, 4)
    held = b.load(b.at(x, 0), 0, 4, mask)
    b.store(x, 0, b.shuffle(held, held, [3, 2, 1, 0]) * b.splat(factor, 4), mask)
    return b.finish()


def test_text_of_functions_rooms_and_calls() -> None:
    b = LoopBuilder("k")
    x, n = b.pointer("x", F32), b.integer()
    words = b.scratch(I64, 1)
    function = scaled()
    with b.room(F32, n, 100) as room:
        with b.if_(b.lt(n, 3)):
            b.invoke(function, room, n, 2.0)
        with b.else_():
            b.invoke(function, b.at(x, n), 4, 0.5)
        total = b.local(b.const(0.0, vector(F32, 4)))
        with b.for_(0, n) as i:
            total.set(b.fma(total.get(), total.get(), b.load(room, i, 4)))
        b.store(x, 0, b.select(b.lt(total.get(), 1.0), total.get(), 0.0))
    inner = LoopBuilder("inner").finish()
    b.fail(b.call(inner, 0, 1, words))
    kernel = b.finish()
    verify(kernel)
    assert str(function) == """\
function scaled(x: f32*, n: i64, factor: f32) {
  prefetch x[64]
  prefetch x[n] to write
  %0 = first n : i1x4
  %1 = at x[0]
  %2 = load %1[0] where %0 : f32x4
  %3 = shuffle %2 %2 [3, 2, 1, 0] : f32x4
  %4 = splat factor : f32x4
  %5 = mul %3 %4 : f32x4
  store x[0] where %0 = %5
}"""
    assert str(kernel) == """\
kernel k(start, stop, x: f32* = args[0]) {
  scratch0 = scratch 1 x i64
  %0 = args[1]
  room %1 = %0 x f32, at most 100 {
    %2 = lt %0 3 : i1
    if %2 {
      invoke scaled(%1, %0, 2.0)
    } else {
      %3 = at x[%0]
      invoke scaled(%3, 4, 0.5)
    }
    var0 = 0.0
    for %4 in 0..%0 {
      %5 = var0
      %6 = var0
      %7 = load %1[%4] : f32x4
      %8 = fma %5 %6 %7 : f32x4
      var0 = %8
    }
    %9 = var0
    %10 = lt %9 1.0 : i1x4
    %11 = var0
    %12 = select %10 %11 0.0 : f32x4
    store x[0] = %12
  }
  %13 = call inner(0, 1, scratch0)
  fail %13
}"""
    with pytest.raises(NotImplementedError, match="k: numba has no"):
        numba_source.source(kernel)


def test_equal_addresses_are_recorded_once() -> None:
    b = LoopBuilder("k")
    x = b.pointer("x", F32)
    assert b.at(x, 3) is b.at(x, 3)
    assert b.at(b.at(x, 3), 0) is b.at(b.at(x, 3), 0)
    assert b.at(x, 3) is not b.at(b.pointer("y", F32), 3)


# -- meaning --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda d: d.name)
def test_loads_and_stores_under_masks(dtype: DType, lanes: int) -> None:
    b = LoopBuilder("masked")
    out, x, count = b.pointer("out", dtype), b.pointer("x", dtype), b.pointer("count", I64)
    with b.for_(b.start, b.stop) as i:
        mask = b.first(b.load(count, i), lanes)
        b.store(out, i * lanes, b.load(x, i * lanes, lanes, mask))
        b.store(out, (b.stop + i) * lanes, b.load(x, i * lanes, lanes), mask)
    counts = np.array([-5, 0, 1, lanes - 1, lanes, lanes + 1, 2, 1 << 40])
    kernel = b.finish()
    for split in range(8):  # stop is part of the addresses, so one iteration at a time
        agree(kernel, 1, zeros(dtype, 2 * lanes), values(dtype, lanes, split), counts[split:])


@pytest.mark.parametrize(("half", "fused"), [(True, True), (False, False)])
@pytest.mark.parametrize("dtype", NUMBERS[:4], ids=lambda d: d.name)
def test_arithmetic_of_vectors(dtype: DType, half: bool, fused: bool) -> None:
    b = LoopBuilder("arithmetic")
    out, x, y = b.pointer("out", dtype.compute), b.pointer("x", dtype), b.pointer("y", dtype)
    with b.for_(b.start, b.stop) as i:
        u, v = b.load(x, i * 8, 8), b.load(y, i * 8, 8)
        if fused or dtype is not dt.float64:  # whose emulation is not exact everywhere
            u = b.fma(u, v, u)
        b.store(out, i * 8, b.select(b.lt(u, v), u - v * 2.0, b.select(b.gt(i, 3), b.abs(u), v)))
    with targets.use(replace(targets.host(), half=half, fused=fused)):
        agree(b.finish(), 8, zeros(dtype.compute, 64), values(dtype, 64, 1), values(dtype, 64, 2))


def test_vectors_rounded_to_halves_and_bools() -> None:
    for dtype in (dt.float16, dt.bfloat16):
        b = LoopBuilder("rounded")
        out, positive, x = b.pointer("out", dtype), b.pointer("positive", dt.bool_), b.pointer("x", F32)
        with b.for_(b.start, b.stop) as i:
            v = b.load(x, i * 4, 4)
            b.store(out, i * 4, v)
            b.store(positive, i * 4, b.and_(b.gt(v, 0.0), b.load(positive, i * 4, 4)))
        agree(b.finish(), 8, zeros(dtype, 32), np.arange(32) % 3 > 0, values(F32, 32, 3))


def test_cells_of_vectors_and_addresses_through_loops_conditions_and_breaks() -> None:
    b = LoopBuilder("cells")
    out, x, n = b.pointer("out", F32), b.pointer("x", F32), b.integer()
    with b.for_(b.start, b.stop) as i:
        sums = [b.local(b.const(0.0, vector(F32, 4))) for _ in range(3)]
        here, last = b.local(b.at(x, i)), b.local(-1)
        with b.for_(0, n) as j:
            v = b.load(here.get(), 0, 4)
            with b.if_(b.lt(j, 3)):
                sums[0].set(sums[0].get() + v)
                with b.if_(b.eq(j, 1)):
                    sums[2].set(v)
            with b.else_():
                inner = b.local(v)
                with b.for_(0, j) as k:
                    inner.set(inner.get() * 0.5)
                    b.break_(b.gt(k, i))
                    sums[2].set(inner.get())
                sums[1].set(sums[1].get() + inner.get())
            here.set(b.at(here.get(), 1))
            b.break_(b.eq(j, i + 2))
            last.set(j)
        for r, cell in enumerate(sums):
            b.store(out, (i * 4 + r) * 4, cell.get())
        b.store(out, (i * 4 + 3) * 4, b.splat(b.cast(last.get(), F32), 4))
    kernel = b.finish()
    for n in (0, 1, 2, 9):
        agree(kernel, 6, zeros(F32, 96), values(F32, 20, 5), n)


def test_functions_rooms_and_kernels_of_a_module() -> None:
    callee = LoopBuilder("callee_of_rooms")
    into = callee.pointer("into", F32)
    with callee.for_(callee.start, callee.stop) as i:
        callee.check(callee.lt(i, 4), "large")
        callee.store(into, i, callee.load(into, i) * 3.0)
    inner, function = callee.finish(), scaled()
    b = LoopBuilder("outer")
    x, word, n = b.pointer("x", F32), b.integer(), b.integer()
    args = b.scratch(I64, 1)
    b.store(args, 0, word)
    with b.room(F32, n * 2, 20000) as left:
        right = b.at(left, n)
        with b.for_(0, n) as i:
            b.store(left, i, b.load(x, i))
            b.store(right, i, 0.25)
        with b.for_(0, n - 3, 4) as i:
            b.invoke(function, b.select(b.lt(i, 8), b.at(left, i), b.at(right, i)), n - i - 4, 2.0)
        with b.for_(0, n) as i:
            b.store(x, i, b.load(left, i) + b.load(right, i))
    b.fail(b.call(inner, 0, n, args))
    kernel = b.finish()
    verify(kernel)
    for n in (3, 4, 17, 9000):
        results = []
        for heap in (None, True, False):
            memory = values(F32, 9000, 6)
            if heap is None:
                given = lockstep.ByteMemory(memory.view(np.uint8))
                status = _with_address(kernel, given, n)
            else:
                words = np.array([memory.ctypes.data, memory.ctypes.data, n], np.int64)
                status = machine_code(kernel, False, heap)(0, 1, words.ctypes.data)
            assert status == (0 if n < 5 else 1)
            results.append(memory)
        assert_same(results[0], results[1], n)
        assert_same(results[0], results[2], n)


def _with_address(kernel: Kernel, memory: lockstep.ByteMemory, n: int) -> int:
    """The status of a run in lockstep whose second argument is the first one's address: the first memory's there."""
    return lockstep.run(kernel, 1, [memory, 1 << 40, n])


def test_reading_outside_of_memory_is_an_error_unless_masked_out() -> None:
    b = LoopBuilder("beyond")
    x, n = b.pointer("x", F32), b.integer()
    with b.for_(b.start, b.stop) as i:
        v = b.load(b.at(x, i), 2, 4, b.first(n, 4))
        b.store(x, i, v, b.first(1, 4))
    kernel = b.finish()
    assert lockstep.run(kernel, 3, [lockstep.ByteMemory(np.zeros(24, np.uint8)), 2]) == 0
    with pytest.raises(IndexError, match=r"memory\[2\.\.2\] lies outside of memory"):
        lockstep.run(kernel, 3, [lockstep.ByteMemory(np.zeros(24, np.uint8)), 3])


# -- what is well formed --------------------------------------------------------------------------------------------
def _unknown_value(b: LoopBuilder, x: Pointer) -> None:
    with b.if_(b.lt(b.stop, 3)):
        inside = b.load(x, 0)
    b.store(x, 1, inside)


def _cell_of_two_types(b: LoopBuilder, x: Pointer) -> None:
    b.append(Set(0, b.load(x, 0)))
    b.append(Set(0, b.load(x, 0, 4)))


def _cell_set_in_one_branch(b: LoopBuilder, x: Pointer) -> None:
    with b.if_(b.lt(b.stop, 3)):
        b.local(1)
    out = b.new(I64)
    b.append(Get(out, 0))
    b.store(x, out, 1.0)


def _wide_mask(b: LoopBuilder, x: Pointer) -> None:
    b.store(x, 0, b.load(x, 0, 4, b.first(2, 8)))


def _mixed_lanes(b: LoopBuilder, x: Pointer) -> None:
    u, v = b.load(x, 0, 4), b.load(x, 0, 8)
    out = b.new(u.dtype)
    b.append(Instr("add", (u, v), out))
    b.store(x, 0, out)


def _shuffle_beyond(b: LoopBuilder, x: Pointer) -> None:
    v = b.load(x, 0, 2)
    b.store(x, 0, b.shuffle(v, v, [0, 4]))


def _address_of_another_type(b: LoopBuilder, x: Pointer) -> None:
    out = b.new(address(dt.float64))
    b.append(At(out, x, b.start))
    b.store(out, 0, b.const(1.0, dt.float64))


def _break_outside(b: LoopBuilder, x: Pointer) -> None:
    b.append(If(b.lt(b.stop, 3), [Break(b.lt(b.stop, 3))]))


def _room_in_a_loop(b: LoopBuilder, x: Pointer) -> None:
    with b.for_(0, 3) as i, b.room(F32, i, 3) as room:
        b.store(room, 0, 1.0)


def _wrong_arguments(b: LoopBuilder, x: Pointer) -> None:
    b.append(Invoke(scaled(), (b.at(x, 0), b.start)))


def _foreign_scratch(b: LoopBuilder, x: Pointer) -> None:
    b.append(Store(Pointer("scratch3", F32, None, 4), b.start, b.load(x, 0)))


def _type_of_memory(b: LoopBuilder, x: Pointer) -> None:
    out = b.new(dt.float64)
    b.append(Load(out, x, b.start))
    b.append(Store(Pointer("y", dt.float64, 0), b.start, out))


@pytest.mark.parametrize(("wrong", "text"), [
    (_unknown_value, "store: a value is used where it is not made yet, or not seen"),
    (_cell_of_two_types, "set: a cell changes its type"),
    (_cell_set_in_one_branch, "get: a cell is not set, or of another type"),
    (_wide_mask, "load: a mask with other lanes than the vector"),
    (_mixed_lanes, "instr: add of other types than its result"),
    (_shuffle_beyond, "instr: shuffle of other types than its result"),
    (_address_of_another_type, "at: an address of another type"),
    (_break_outside, "break: there is no loop around"),
    (_room_in_a_loop, "room: a room in a loop would need new memory in each round"),
    (_wrong_arguments, "invoke: not what scaled takes"),
    (_foreign_scratch, "store: no memory is called 'scratch3'"),
    (_type_of_memory, "load: another type than the memory's"),
], ids=lambda x: getattr(x, "__name__", ""))
def test_what_is_not_well_formed(wrong: Callable[[LoopBuilder, Pointer], None], text: str) -> None:
    b = LoopBuilder("k")
    wrong(b, b.pointer("x", F32))
    with pytest.raises(ValueError, match=f"^k: {text}$"):
        verify(b.finish())


def test_functions_have_no_checks_and_do_not_run_themselves() -> None:
    b = FunctionBuilder("f")
    n = b.parameter("n", I64)
    b.check(b.lt(n, 3), "three")
    with pytest.raises(ValueError, match="f: check: functions have none"):
        verify(b.finish())
    b = FunctionBuilder("f")
    again = b.finish()
    again.body.append(Invoke(again, ()))
    with pytest.raises(ValueError, match="f: runs itself"):
        verify(again)


def test_wrong_use_of_the_builder_is_an_error() -> None:
    b: BlockBuilder = LoopBuilder("k")
    with pytest.raises(ValueError, match="k: else_ without an if_"), b.else_():
        pass
    with pytest.raises(TypeError, match="expected a pointer or an address, got i64"):
        b.load(b.const(3, I64), 0)
    with pytest.raises(TypeError, match=r"k: scaled takes f32\* as x, got i64"):
        b.invoke(scaled(), b.const(3, I64), 1, 2.0)
    with pytest.raises(ValueError, match="no vectors of 0 x f32"):
        vector(F32, 0)
    with pytest.raises(ValueError, match="no vectors of 4 x bf16"):
        vector(dt.bfloat16, 4)
