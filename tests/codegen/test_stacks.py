"""Stacks of loops inside of programs: a loop's gradient is one native program, equal to eager's bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import twofold as tf
from twofold.ir import passes
from twofold.runtime.cpu import cpu
from twofold.tracer.traced import trace


def gradient(x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.while_loop(lambda i, v: i < 7, lambda i, v: (i + 1, tf.tanh(v * 1.1 + x) * v),
                          [tf.constant(0), tf.ones_like(x) * 0.5], maximum_iterations=7)[1]
        loss = tf.reduce_sum(y)
    return tape.gradient(loss, x)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex128],
                         ids=lambda d: d.name)
def test_gradients_of_loops(dtype: Any) -> None:
    x = tf.cast(tf.constant([0.3, -0.5, 0.9]), dtype)
    assert tf.function(gradient)(x).numpy().tobytes() == gradient(x).numpy().tobytes()


def test_the_gradient_of_a_counted_loop_is_native() -> None:
    def counted(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.map_fn(lambda row: tf.exp(row) * row, x)
            loss = tf.reduce_sum(y * y)
        return tape.gradient(loss, x)
    graph = passes.optimise(trace(counted, [tf.TensorSpec([6, 4])]).graph)
    assert all(cpu.supports(node) for node in graph.nodes)
    assert {"push", "pop"} <= {inner.op.name for inner in graph.walk()}
    x = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    np.testing.assert_array_equal(tf.function(counted)(tf.constant(x)), counted(tf.constant(x)))
