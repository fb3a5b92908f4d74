"""The loop IR: what the builder records, its text, and the errors of wrong use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from twofold.codegen import numba_source
from twofold.codegen.loop import Kernel, LoopBuilder, instruction_count
from twofold.ir import dtypes as dt
from twofold.ir import scalar
from twofold.runtime import kernels, launch


def recorded(body: Callable[[LoopBuilder], Any]) -> Kernel:
    b = LoopBuilder("k")
    body(b)
    return b.finish()


def lines(kernel: Kernel) -> list[str]:
    return [line.strip() for line in str(kernel).splitlines()[1:-1]]


def execute(kernel: Kernel, key: str, start: int, stop: int, *args: Any) -> int:
    words = [launch.address_of(a) if isinstance(a, np.ndarray) else a for a in args]
    buffer = np.array(words, np.int64)
    compiled = kernels.get(("test_loop", key), lambda: kernel)
    return compiled.call(start, stop, launch.address_of(buffer))


def test_text_and_source_of_a_kernel_with_everything() -> None:
    def body(b: LoopBuilder) -> None:
        out, x = b.pointer("out", dt.bfloat16), b.pointer("x", dt.bool_)
        n = b.integer()
        kept = b.scratch(dt.float32, 4)
        best = b.local(0.5, dt.float32)
        with b.for_(b.start, b.stop, 2) as i:
            v = b.select(b.load(x, i), best.get(), 1.0)
            with b.if_(b.lt(i, n)):
                best.set(v)
            b.store(kept, b.and_(i, 3), v)
            b.check(b.ge(v, 0), "negative")
            b.break_(b.gt(best.get(), 2))
        with b.for_(n, -1, -1) as j:
            b.store(out, j, b.load(kept, 0))

    kernel = recorded(body)
    assert str(kernel) == """\
kernel k(start, stop, out: bf16* = args[0], x: i1* = args[1]) {
  scratch0 = scratch 4 x f32
  %0 = args[2]
  var0 = 0.5
  for %1 in start..stop by 2 {
    %2 = load x[%1]
    %3 = var0
    %4 = select %2 %3 1.0 : f32
    %5 = lt %1 %0 : i1
    if %5 {
      var0 = %4
    }
    %6 = and %1 3 : i64
    store scratch0[%6] = %4
    %7 = ge %4 0.0 : i1
    check 0 %7
    %8 = var0
    %9 = gt %8 2.0 : i1
    break if %9
  }
  for %10 in %0..-1 by -1 {
    %11 = load scratch0[0]
    store out[%10] = %11
  }
  check 0 is 'negative'
}"""
    assert numba_source.source(kernel) == """\
# k
import numpy as np
k0 = np.float32(0.5)
k1 = np.float32(1.0)
k2 = np.float32(0.0)
k3 = np.float32(2.0)


def kernel(start, stop, args):
    out = pointer_u16(args[0])
    x = pointer_u8(args[1])
    scratch0 = scratch_f32(4)
    failed0 = False
    v0 = args[2]
    var0 = k0
    i0 = start
    while i0 < stop:
        v1 = x[i0] != 0
        v2 = var0
        v3 = select(v1, v2, k1)
        v4 = i0 < v0
        if v4:
            var0 = v3
        v5 = and_(i0, 3)
        scratch0[v5] = v3
        v6 = v3 >= k2
        failed0 = or_(failed0, not_(v6))
        v7 = var0
        v8 = v7 > k3
        if v8:
            break
        i0 = i0 + 2
    i1 = v0
    while i1 > -1:
        v9 = scratch0[0]
        out[i1] = narrow_bf16(v9)
        i1 = i1 + -1
    if failed0:
        return 1  # negative
    return 0
"""
    out, x = np.zeros(3, np.uint16), np.array([1, 0, 1, 1, 0, 0, 1], bool)
    assert execute(kernel, "all", 0, 7, out, x, 2) == 0
    assert out.view(dt.bfloat16.np).tolist() == [1.0, 1.0, 1.0]  # i=4 was the last to write place 0
    assert recorded(body).__str__() == str(kernel)


def test_equal_values_are_recorded_once_but_not_across_blocks() -> None:
    def body(b: LoopBuilder) -> None:
        out = b.pointer("out", dt.int64)
        with b.for_(b.start, b.stop) as i:
            b.store(out, i, b.stop * 3)
        b.store(out, 0, b.stop * 3 + b.stop * 3)
        with b.if_(b.gt(b.stop, 0)):
            b.store(out, 1, b.stop * 3)

    assert lines(recorded(body)) == [
        "for %0 in start..stop {", "%1 = mul stop 3 : i64", "store out[%0] = %1", "}",
        "%2 = mul stop 3 : i64", "%3 = add %2 %2 : i64", "store out[0] = %3",
        "%4 = gt stop 0 : i1", "if %4 {", "store out[1] = %2", "}"]


def test_dead_values_and_empty_blocks_go() -> None:
    def body(b: LoopBuilder) -> None:
        out, x = b.pointer("out", dt.float32), b.pointer("x", dt.float32)
        b.integer()
        unused = b.load(x, 0) * 3
        with b.for_(0, 5) as i:
            b.load(x, i) + unused
        b.store(out, 0, b.load(x, 1))

    kernel = recorded(body)
    assert lines(kernel) == ["%0 = load x[1]", "store out[0] = %0"]
    assert instruction_count(kernel.body) == 0


def test_a_cell_is_read_where_get_stands() -> None:
    def body(b: LoopBuilder) -> None:
        out = b.pointer("out", dt.int64)
        cell = b.local(1)
        before = cell.get()
        cell.set(before + 1)
        b.store(out, 0, before)
        b.store(out, 1, cell.get())

    out = np.zeros(2, np.int64)
    assert execute(recorded(body), "cell", 0, 1, out) == 0
    assert out.tolist() == [1, 2]


def test_complex_values_are_pairs_in_the_kernel() -> None:
    def body(b: LoopBuilder) -> None:
        out, x = b.pointer("out", dt.complex64), b.pointer("x", dt.complex64)
        kept = b.scratch(dt.complex64, 8)
        total = b.local(0j, dt.complex64)
        with b.for_(b.start, b.stop) as i:
            v = b.load(x, i)
            total.set(b.select(b.ne(v, 0), total.get() + v * v, total.get()))
            b.store(kept, i, total.get())
        b.store(out, 0, b.load(kept, b.stop - 1))

    kernel = recorded(body)
    assert "c64" not in str(kernel).split("{", 1)[1] and "complex" not in str(kernel)
    out, x = np.zeros(1, np.complex64), np.array([1 + 2j, 0, 3 - 1j], np.complex64)
    assert execute(kernel, "complex", 0, 3, out, x) == 0
    assert out[0] == (x * x).sum()


def test_inline_records_a_function_with_its_checks() -> None:
    def body(s: Any, x: Any, y: Any) -> tuple[Any, Any]:
        s.check(s.ne(s.imag(y), 0), "real")
        return s.add(s.real(x), 1.5), s.select(s.eq(x, y), y, s.mul(x, y))

    fn = scalar.build(body, (dt.complex128, dt.complex128))

    def kernel(b: LoopBuilder) -> None:
        part, out = b.pointer("part", dt.float64), b.pointer("out", dt.complex128)
        x = b.pointer("x", dt.complex128)
        with b.for_(b.start, b.stop) as i:
            first, second = b.inline(fn, b.load(x, i), b.load(x, i + 1))
            b.store(part, i, first)
            b.store(out, i, second)

    x = np.array([1 + 2j, 1 + 2j, 3 - 1j, 4], np.complex128)
    part, out = np.zeros(3), np.zeros(3, np.complex128)
    built = recorded(kernel)
    assert built.codes == ("real",)
    assert execute(built, "inline", 0, 2, part, out, x) == 0
    assert execute(built, "inline", 0, 3, part, out, x) == 1
    assert part.tolist() == [2.5, 2.5, 4.5]
    assert out.tolist() == [x[1], x[1] * x[2], x[2] * x[3]]


def test_break_leaves_the_innermost_loop_only() -> None:
    def body(b: LoopBuilder) -> None:
        out = b.pointer("out", dt.int64)
        with b.for_(0, 4) as i, b.for_(0, 10) as j:
            b.break_(b.eq(j, i))
            b.store(out, i, b.load(out, i) + 1)

    out = np.zeros(4, np.int64)
    assert execute(recorded(body), "break", 0, 1, out) == 0
    assert out.tolist() == [0, 1, 2, 3]


def test_call_runs_another_kernel_and_fail_reports_its_status() -> None:
    def callee(b: LoopBuilder) -> None:
        out = b.pointer("out", dt.int64)
        with b.for_(b.start, b.stop) as i:
            b.check(b.lt(i, 5), "five")
            b.check(b.lt(i, 3), "three")
            b.store(out, i, i * i)

    def caller(b: LoopBuilder) -> None:
        kernel, target = b.callee(), b.integer()
        args = b.scratch(dt.int64, 1)
        b.store(args, 0, target)
        with b.for_(b.start, b.stop) as i:
            b.fail(b.call(kernel, i, i + 1, args))

    address = kernels.get("test_loop callee", lambda: recorded(callee)).address
    out = np.zeros(8, np.int64)
    kernel = recorded(caller)
    target = launch.address_of(out)
    assert execute(kernel, "call", 0, 3, address, target) == 0
    assert out.tolist() == [0, 1, 4, 0, 0, 0, 0, 0]
    assert execute(kernel, "call", 0, 8, address, target) == 2  # element 3 fails first, with the second check
    assert execute(kernel, "call", 5, 8, address, target) == 1


def test_wrong_use_is_an_error() -> None:
    b = LoopBuilder("k")
    x, half = b.pointer("x", dt.float32), b.pointer("h", dt.float16)
    with pytest.raises(TypeError, match=r"k: cannot store f64 to f32 x"):
        b.store(x, 0, b.const(1, dt.float64))
    b.store(half, 0, b.const(1, dt.float64))  # narrowed once
    with pytest.raises(TypeError, match=r"k: cannot store i32 to f16 h"):
        b.store(half, 0, b.const(1, dt.int32))
    with pytest.raises(TypeError, match="a cell of i64 cannot take f32"):
        b.local(0).set(b.load(x, 0))
    with pytest.raises(ValueError, match="outside of a loop"):
        b.break_(b.const(True, dt.bool_))
    with b.for_(0, 1):
        with pytest.raises(ValueError, match="top of a kernel"):
            b.integer()
        with pytest.raises(ValueError, match="inside a block"):
            b.finish()


def test_infinite_and_negative_constants_in_source() -> None:
    def body(b: LoopBuilder) -> None:
        out = b.pointer("out", dt.float64)
        for n, v in enumerate([float("inf"), float("-inf"), float("nan"), -0.0, -1.5]):
            b.store(out, n, b.const(v, dt.float64))

    out = np.zeros(5)
    assert execute(recorded(body), "constants", 0, 1, out) == 0
    assert out[:2].tolist() == [np.inf, -np.inf] and np.isnan(out[2]) and np.signbit(out[3]) and out[4] == -1.5
