"""Kernels of one form: one takes what differs as arguments, and gives the same results."""

from __future__ import annotations

import re

import numpy as np
import pytest

import twofold as tf
from twofold.codegen import alike, plan, program
from twofold.codegen.loop import Kernel, LoopBuilder
from twofold.ir import dtypes as dt
from twofold.ir import passes
from twofold.runtime.cpu import cpu

PLAIN = alike.Ranges(False, False)


def scaled(width: int, offset: int, times: int = 3) -> Kernel:
    """x[i * width + offset] * times for each i, as a kernel."""
    b = LoopBuilder(f"scaled {width} {offset}")
    out, x = b.pointer("out", dt.float32), b.pointer("x", dt.float32)
    with b.for_(b.start, b.stop) as i:
        b.store(out, i, b.load(x, i * width + offset) * float(times))
    return b.finish()


def rounds(count: int) -> Kernel:
    """Sums of `count` neighbours: the length of a loop."""
    b = LoopBuilder("rounds")
    out, x = b.pointer("out", dt.float32), b.pointer("x", dt.float32)
    with b.for_(b.start, b.stop) as i:
        total = b.local(0.0, dt.float32)
        with b.for_(0, count) as k:
            total.set(total.get() + b.load(x, i + k))
        b.store(out, i, total.get())
    return b.finish()


def divided(rows: int, deep: bool) -> Kernel:
    """Copies tiles of a matrix of `rows` rows: a division for each tile, or for each row of one."""
    b = LoopBuilder("divided")
    out, x = b.pointer("out", dt.float32), b.pointer("x", dt.float32)
    with b.for_(b.start, b.stop) as tile:
        above = tile if deep else b.idiv(tile, rows)
        with b.for_(above, above + b.load(b.args, 2)) as row:
            first = b.idiv(row, rows) if deep else row
            with b.for_(first, first + b.load(b.args, 3)) as i:
                b.store(out, i, b.load(x, i))
    return b.finish()


def of(*kernels: Kernel) -> list[alike.Shared]:
    return alike.shared([alike.Candidate(kernel, PLAIN, 2, {}) for kernel in kernels])


def test_what_differs_is_an_argument() -> None:
    one, two, three = of(scaled(4, 100), scaled(4, 200), scaled(4, 300))
    assert one.kernel is two.kernel is three.kernel
    assert one.slots == two.slots and list(one.slots.values()) == [2]
    assert [s.values for s in (one, two, three)] == [(99,), (199,), (299,)]


def test_numbers_that_differ_alike_are_one_argument_and_others_are_several() -> None:
    same = of(*[scaled(n, n) for n in (5, 6, 7)])
    assert [s.values for s in same] == [(4,), (5,), (6,)]
    mixed = of(scaled(5, 5), scaled(5, 6), scaled(6, 7))  # of the first, one constant stands at both places
    assert mixed[0].kernel is mixed[1].kernel is mixed[2].kernel
    assert [s.values for s in mixed] == [(4, 4), (4, 5), (5, 6)]


@pytest.mark.parametrize("kernels", [
    [scaled(4, 100), scaled(4, 100)],  # the same
    [scaled(4, 100, 2), scaled(4, 200, 3), scaled(4, 300, 4)],  # other floats
    [rounds(3), rounds(4), rounds(5)],  # lengths of loops
    [divided(3, True), divided(4, True)],  # divisors for a row
])
def test_others_stay_apart(kernels: list[Kernel]) -> None:
    assert [(s.kernel, s.slots, s.values) for s in of(*kernels)] == [(k, {}, ()) for k in kernels]


def test_what_else_code_depends_on_tells_kernels_apart() -> None:
    kernels = [scaled(4, 100), scaled(4, 200), scaled(4, 300)]
    ranges = [PLAIN, alike.Ranges(True, False), alike.Ranges(True, True)]
    shared = alike.shared([alike.Candidate(k, r, 2, {}) for k, r in zip(kernels, ranges, strict=True)])
    assert [s.kernel for s in shared] == kernels


def test_divisors_for_a_tile_are_arguments() -> None:
    one, two = of(divided(30, False), divided(40, False))
    assert one.kernel is two.kernel and (one.values, two.values) == ((29,), (39,))


def known(*numbers: dict[int, int]) -> list[dict[int, int]]:
    """The arguments that stay known where one kernel has these as known arguments."""
    kernel = scaled(4, 100)
    return [dict(s.numbers) for s in alike.shared([alike.Candidate(kernel, PLAIN, 5, n) for n in numbers])]


def test_known_arguments_that_differ_are_arguments_where_they_are_large() -> None:
    assert known({2: 3, 3: 64}, {2: 3, 3: 96}) == [{2: 3}] * 2
    assert known({2: 3, 3: 64}, {2: 5, 3: 64}) == [{2: 3, 3: 64}, {2: 5, 3: 64}]  # windows of 3 and of 5
    assert known({2: 64, 3: 64}, {2: 64}) == [{2: 64, 3: 64}, {2: 64}]  # what only one knows
    assert known({2: 64}) == [{2: 64}]


def test_known_arguments_stay_apart_where_constants_cannot_be_shared() -> None:
    lengths = [alike.Candidate(rounds(n), PLAIN, 3, {2: size}) for n, size in ((3, 64), (3, 96), (4, 64))]
    assert [dict(s.numbers) for s in alike.shared(lengths)] == [{}, {}, {2: 64}]


def cut(x: tf.Tensor) -> tf.Tensor:
    """Kernels that differ in where they read and how wide the rows are, and maps that run together."""
    parts = [tf.tanh(x[:, n * 9:n * 9 + 5 + n]) * 2.0 for n in range(8)]
    sums = [tf.reduce_sum(x[n:, 3:60 + n] * x[n, 3:60 + n], 0) for n in range(6)]
    wide = [tf.exp(tf.pad(x[:, n:n + 40 + 4 * n], [[0, 0], [n, 0]])) for n in range(5)]
    return tf.concat([tf.reshape(p, [-1]) for p in (*parts, *sums, *wide)], 0)


@pytest.mark.parametrize("rows", [70, 3000, None])
def test_results_are_those_of_the_ops(rows: int | None) -> None:
    x = tf.constant(np.random.default_rng(0).normal(size=(rows or 70, 120)).astype(np.float32))
    fn = tf.function(cut, input_signature=[tf.TensorSpec([rows, 120])])
    assert fn(x).numpy().tobytes() == cut(x).numpy().tobytes()


def test_a_program_has_fewer_kernels_than_steps() -> None:
    graph = passes.optimise(tf.function(cut).get_concrete_function(tf.TensorSpec([70, 120])).graph.copy())
    made = program.compile_graph(graph, cpu, "entry")
    kernels = re.findall(r'^define internal i64 @"entry_k', made.module, re.M)
    assert len(kernels) < sum(len(getattr(step.kernel, "parts", [step])) for step in made.plan.steps) - 4


def pooled(x: tf.Tensor) -> tf.Tensor:
    """Pooling of several channels, and transposes of several sizes."""
    pools = [tf.nn.max_pool2d(x[..., :n], 3, 2, "SAME") for n in (16, 24, 32)]
    turned = [tf.transpose(tf.reshape(x, [n, -1])) * 2.0 for n in (16, 24, 32)]
    return tf.concat([tf.reshape(p, [-1]) for p in (*pools, *turned)], 0)


def test_kernels_of_other_channels_and_sizes_are_one() -> None:
    x = tf.constant(np.random.default_rng(1).normal(size=(2, 24, 24, 32)).astype(np.float32))
    fn = tf.function(pooled)
    assert fn(x).numpy().tobytes() == pooled(x).numpy().tobytes()
    made = program.compile_graph(passes.optimise(fn.get_concrete_function(x).graph.copy()), cpu, "entry")
    named = [part.kernel.name for step in made.plan.steps for part in plan.parts_of(step)]
    assert named.count("max_pool f32") == 3
    written = re.findall(r'^define internal i64 @"entry_k(\d+)', made.module, re.M)
    pools = [n for n, step in enumerate(made.plan.steps) if step.kernel.name == "max_pool f32"]
    assert len({str(n) for n in pools} & set(written)) == 1
