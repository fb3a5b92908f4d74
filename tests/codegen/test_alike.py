"""Kernels of one form: one takes what differs as arguments, and gives the same results."""

from __future__ import annotations

import re

import numpy as np
import pytest

import twofold as tf
from twofold.codegen import alike, program
from twofold.codegen.loop import Kernel, LoopBuilder
from twofold.ir import dtypes as dt
from twofold.ir import passes


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


def of(*kernels: Kernel, rest: str = "") -> list[alike.Shared]:
    return alike.shared([(kernel, rest, 2) for kernel in kernels])


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
    [scaled(4, 100), scaled(4, 200)],  # too few
    [scaled(4, 100), scaled(4, 100), scaled(4, 200)],
    [scaled(4, 100, 2), scaled(4, 200, 3), scaled(4, 300, 4)],  # other floats
    [rounds(3), rounds(4), rounds(5)],  # lengths of loops
])
def test_others_stay_apart(kernels: list[Kernel]) -> None:
    assert [(s.kernel, s.slots, s.values) for s in of(*kernels)] == [(k, {}, ()) for k in kernels]


def test_what_else_code_depends_on_tells_kernels_apart() -> None:
    kernels = [scaled(4, 100), scaled(4, 200), scaled(4, 300)]
    found = alike.shared([(k, n, 2) for n, k in enumerate(kernels)])
    assert [s.kernel for s in found] == kernels


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
    graph = passes.run(tf.function(cut).get_concrete_function(tf.TensorSpec([70, 120])).graph.copy())
    made = program.compile_graph(graph, "entry")
    kernels = re.findall(r'^define internal i64 @"entry_k', made.module, re.M)
    assert len(kernels) < sum(len(getattr(step.kernel, "parts", [step])) for step in made.plan.steps) - 4
