"""How loops count: rounds and ranges of counters against Python's own counting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import twofold as tf
from twofold.codegen import loop_info
from twofold.ir import graph as g
from twofold.ir import ops, passes
from twofold.ir.build import Builder
from twofold.ir.counting import counting, number, surely_runs
from twofold.ir.dim_expr import symbol
from twofold.ir.op import use_interpreter
from twofold.ir.spec import TensorSpec
from twofold.runtime.cpu import cpu
from twofold.tracer.traced import trace


def loop_of(fn: Callable[..., Any], *specs: Any) -> g.Node:
    graph = trace(fn, list(specs)).graph
    return next(node for node in graph.nodes if node.op is g.WHILE)


def seen(start: int, test: Callable[[Any], Any], step: int) -> list[int]:
    starts = []
    while test(start):
        starts.append(start)
        start += step
    return starts


@pytest.mark.parametrize("start, step", [(0, 1), (3, 1), (9, 1), (9, -1), (5, -1), (0, -1)])
@pytest.mark.parametrize("test", [lambda i: i < 9, lambda i: i <= 9, lambda i: i > 0, lambda i: i >= 0],
                         ids=["less", "less_equal", "greater", "greater_equal"])
@pytest.mark.parametrize("dtype", [tf.int32, tf.int64], ids=lambda d: d.name)
def test_rounds_and_ranges(start: int, step: int, test: Callable[[Any], Any], dtype: Any) -> None:
    def fn(x: Any) -> Any:
        first = (tf.constant(start, dtype), tf.constant(7, tf.int32), x)
        return tf.while_loop(lambda i, *_: test(i), lambda i, k, v: (i + step, k - 1, v * 2), first)[2]

    endless = (step > 0) == bool(test(10**6))
    counts = counting(loop_of(fn, tf.TensorSpec([2])))
    if endless:
        assert counts is None
        return
    want = seen(start, test, step)
    assert counts is not None and counts.rounds == len(want)
    low, end = counts.ranges[0]
    assert list(range(low, end)) == sorted(want)
    assert counts.ranges[1] == (8 - len(want), 8)


@pytest.mark.parametrize("fn", [
    lambda x: tf.while_loop(lambda i, _: i < 9, lambda i, v: (i + 2, v * 2), (0, x)),
    lambda x: tf.while_loop(lambda i, v: (i < 9) & (v[0] < 1), lambda i, v: (i + 1, v * 2), (0, x)),
    lambda x: tf.while_loop(lambda i, v: v[0] < i, lambda i, v: (i + 1, v * 2), (0.0, x)),
    lambda x: tf.while_loop(lambda i, _: i < 9, lambda i, v: (i + 1, v * 2), (tf.cast(x[0], tf.int32), x)),
    lambda x: tf.while_loop(lambda i, _: i < 9, lambda i, v: (i + 1, v * 2), (tf.constant(0, tf.int8), x)),
], ids=["by two", "two conditions", "floats", "unknown start", "small integers"])
def test_what_is_not_counted(fn: Callable[[Any], Any]) -> None:
    assert counting(loop_of(fn, tf.TensorSpec([2]))) is None


@pytest.mark.parametrize("most, limit", [(9, 5), (5, 9), (0, 3), (4, 4)])
def test_loops_of_several_conditions_end_with_the_first(most: int, limit: int) -> None:
    def fn(x: Any) -> Any:
        return tf.while_loop(lambda i, _: i < limit, lambda i, v: (i + 1, v * 2), (1, x),
                             maximum_iterations=tf.reduce_max(tf.constant([most])))[1]
    counts, node = counting(loop_of(fn, tf.TensorSpec([2]))), loop_of(fn, tf.TensorSpec([2]))
    rounds = len(seen(1, lambda i: i < limit and i <= most, 1))
    assert counts is not None and counts.rounds == rounds
    assert counts.ranges == {0: (0, rounds), 1: (1, 1 + rounds)} and surely_runs(node) == (rounds > 0)


def test_loops_over_several_sizes() -> None:
    def fn(x: Any, y: Any) -> Any:
        first = (tf.constant(0, tf.int64), tf.constant(0), x)

        def test(i: Any, k: Any, v: Any) -> Any:
            return (i < tf.shape(x, tf.int64)[0]) & (k < tf.shape(y)[0])
        return tf.while_loop(test, lambda i, k, v: (i + 1, k + 1, v * 2), first)[2]
    size = symbol("n")
    specs = [TensorSpec((d,), tf.float32) for d in (size, size + 1, symbol("m"))]
    assert counting(loop_of(fn, specs[1], specs[0])).rounds == size  # type: ignore[union-attr]
    assert counting(loop_of(fn, specs[0], specs[2])) is None  # which of the two is less


def test_counters_that_overflow_are_not_counted() -> None:
    def fn(x: Any) -> Any:
        first = (tf.constant(0, tf.int64), tf.constant(2**31 - 3, tf.int32), tf.constant(-(2**31) + 9, tf.int32), x)
        return tf.while_loop(lambda i, *_: i < 5, lambda i, k, m, v: (i + 1, k + 1, m - 1, v), first)[3]
    counts = counting(loop_of(fn, tf.TensorSpec([2])))
    assert counts is not None and counts.ranges == {0: (0, 5), 2: (-(2**31) + 5, -(2**31) + 10)}


def test_numbers_that_graphs_are_known_to_hold() -> None:
    graph = g.Graph("f")
    size = symbol("n")
    x = graph.add_input((size,), tf.float32)
    assert number(x) is None
    last = graph.add(g.SIZE, (), {"size": size, "dtype": tf.int32}, (TensorSpec((), tf.int32),)).outputs[0]
    with use_interpreter(Builder(graph)):
        assert number(ops.subtract(last, 1)) == size - 1
        assert number(ops.add(last, 1)) is None  # which may overflow
        assert number(ops.add(ops.subtract(5, 2), 3)) == 6
        assert number(ops.strided_slice(ops.shape(x), spec=(0,))) == size
        assert number(ops.strided_slice(ops.shape(graph.add_input((3, 5), tf.float32)), spec=(-1,))) == 5
        assert number(ops.shape(graph.add_input((3, 5), tf.float32))) is None
    assert number(graph.constant(np.array(4, np.int64))) == 4
    with use_interpreter(Builder(graph)):
        four, large = graph.constant(np.array(4, np.int32)), graph.constant(np.array(1 << 40, np.int64))
        assert number(ops.cast(ops.reduce_max(four), dtype=tf.int64)) == 4
        assert number(ops.reduce_max(graph.constant(np.array([4, 5])))) is None
        assert number(ops.cast(large, dtype=tf.int32)) is None
    assert number(graph.constant(np.array([[4]], np.int32))) == 4
    assert number(graph.constant(np.array(4.0))) is None


def test_loops_over_ranges_of_unknown_size_are_counted() -> None:
    """Their steps and bounds come from outside."""
    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def fn(x: Any) -> Any:
        n, kept = tf.shape(x)[0], tf.TensorArray(tf.float32, tf.shape(x)[0])
        for i in tf.range(n):
            kept = kept.write(n - 1 - i, x[i] * 2.0)
        return kept.stack()
    graph = passes.optimise(fn.get_concrete_function().graph.copy())
    loop = next(node for node in graph.nodes if node.op is g.WHILE)
    size = graph.inputs[0].dims[0]
    counts, info = counting(loop), loop_info.analyse(loop)
    assert counts is not None and counts.rounds == size and set(counts.ranges.values()) == {(0, size)}
    [stretch] = info.stretches.values()
    assert stretch == (0, size, False) and len(info.filled) == 1


def recurrence(x: Any, most: int | None) -> Any:
    """A loop that says nothing of how many rounds it has, but for how many there are at most."""
    def body(i: Any, h: Any) -> Any:
        return i + 1, tf.tanh(h * 0.9 + x[i])
    return tf.while_loop(lambda i, _: i < 5, body, (0, tf.zeros([3])), maximum_iterations=most)[1]


@pytest.mark.parametrize("most", [None, 5])
def test_gradients_of_counted_loops_are_native(most: int | None) -> None:
    def gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(recurrence(x, most) ** 2)
        return tape.gradient(y, x)
    traced = tf.function(gradient)
    x = tf.constant(np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32))
    got = traced(x).numpy()
    assert got.tobytes() == gradient(x).numpy().tobytes()
    graph = passes.optimise(traced.get_concrete_function(tf.TensorSpec([5, 3])).graph.copy())
    assert all(cpu.supports(node) for node in graph.nodes)
    h, slopes, wide = np.zeros(3), [], x.numpy().astype(np.float64)
    for t in range(5):
        h = np.tanh(h * 0.9 + wide[t])
        slopes.append(1 - h * h)
    want, ct = np.zeros((5, 3)), 2 * h
    for t in reversed(range(5)):
        want[t] = ct * slopes[t]
        ct = want[t] * 0.9
    np.testing.assert_allclose(got, want, rtol=1e-5)
