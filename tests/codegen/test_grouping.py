"""What is fused with what: counted in programs, and equal to the ops run one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import twofold as tf
from twofold.codegen import planner
from twofold.eager.constructs import run_graph
from twofold.eager.executing import executable, execute
from twofold.eager.tensor import wrap
from twofold.runtime.cpu import cpu
from twofold.tracer.traced import trace

RNG = np.random.default_rng(3)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def steps(fn: Callable[..., Any], *arrays: np.ndarray) -> list[str]:
    """The kernels of `fn`, whose compiled results must be those of its ops."""
    traced = trace(fn, [tf.TensorSpec(a.shape, a.dtype) for a in arrays])
    expected = run_graph(traced.graph, [wrap(a) for a in arrays])
    outputs = execute(executable(traced.graph), list(arrays))
    for a, b in zip(expected, outputs, strict=True):
        np.testing.assert_array_equal(a.numpy().view(np.uint32), np.asarray(b).view(np.uint32))
    return [step.kernel.name for step in planner.plan(traced.graph, cpu).steps]


def test_a_softmax_written_out_is_one_kernel() -> None:
    def softmax(x: Any) -> Any:
        e = tf.exp(x - tf.reduce_max(x, axis=-1, keepdims=True))
        return e / tf.reduce_sum(e, axis=-1, keepdims=True)
    assert len(steps(softmax, normal(20, 30))) == 1


def test_a_layer_norm_written_out_is_one_kernel() -> None:
    def layer_norm(x: Any) -> Any:
        d = x - tf.reduce_mean(x, axis=-1, keepdims=True)
        return d * tf.math.rsqrt(tf.reduce_mean(tf.square(d), axis=-1, keepdims=True) + 1e-5)
    assert len(steps(layer_norm, normal(20, 30))) == 1


def test_operands_made_apart_are_one_kernel() -> None:
    assert len(steps(lambda x, y: tf.exp(x) * tf.tanh(y), normal(50), normal(50))) == 1


def test_a_shared_constant_joins_nothing() -> None:
    """Each of many vectors is scaled alone: one kernel serves all, where one for all of them would be compiled."""
    vectors = [normal(40) for _ in range(6)]
    names = steps(lambda *xs: [tf.math.rsqrt(x * x + 1e-3) for x in xs], *vectors)
    assert {name for step in names for name in step.split(" | ")} == {"multiply_add_rsqrt"}


def test_an_update_waits_for_its_rate() -> None:
    """The rate is a scalar that is computed after what it scales."""
    def update(p: Any, g: Any) -> Any:
        m = 0.9 * p + 0.1 * g
        rate = tf.sqrt(tf.reduce_sum(g))
        return m, p - rate * m
    assert len(steps(update, normal(300), np.abs(normal(300)))) <= 3


def test_a_kernel_that_moves_takes_over_another() -> None:
    """What limits the first operand: the second is made apart, the third by a product, behind which the kernel goes."""
    def limited(x: Any, y: Any, z: Any) -> Any:
        low, value = tf.tanh(x), tf.exp(y)
        return tf.clip_by_value(value, low, tf.matmul(z, z))
    assert len(steps(limited, *[normal(8, 8) for _ in range(3)])) == 2


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_updates_of_many_variables_are_one_kernel(threads: int) -> None:
    sizes = (5000, 70000, 3, 800, 64)

    def update(*tensors: Any) -> Any:
        half = len(tensors) // 2
        return [p - 0.1 * tf.tanh(g) for p, g in zip(tensors[:half], tensors[half:], strict=True)]
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    try:
        names = steps(update, *[normal(n) for n in sizes], *[normal(n) for n in sizes])
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(0)
    assert len(names) == 1 and names[0].count("|") == len(sizes) - 1


def test_what_one_map_writes_another_does_not_read_beside_it() -> None:
    def chained(x: Any) -> Any:
        y = tf.exp(x)
        return y, tf.reshape(tf.transpose(y), [-1]) + 1.0
    assert not any("|" in name for name in steps(chained, normal(90, 80)))


@pytest.mark.parametrize("turned", [
    lambda w: w + tf.transpose(w), lambda w: tf.transpose(w) - w, lambda w: w * w[::-1], lambda w: w[:, ::-1] + w,
    lambda w: tf.where(w > 0.0, w, tf.transpose(w)), lambda w: (w + 1.0) * tf.transpose(w + 1.0),
    lambda w: w + tf.broadcast_to(w[:1], w.shape), lambda w: w - tf.roll(w, 1, 0),
    lambda w: (w + tf.transpose(w)) * tf.transpose(w * 2.0 + tf.transpose(w)), lambda w: w + tf.reshape(w, [-1])[:6],
])
def test_what_is_read_in_its_order_and_in_another_is_in_memory(turned: Callable[[Any], Any]) -> None:
    """One kernel cannot have the value of the place and of another: what makes it must have run before."""
    for made in (lambda x: 2.0 * x, tf.exp, lambda x: tf.where(x > 0.0, x, tf.exp(x)), lambda x: tf.sin(x) + x):
        steps(lambda x, made=made: turned(made(x)), normal(6, 6))


def test_long_chains_are_split_and_equal() -> None:
    def chain(x: Any) -> Any:
        for _ in range(500):
            x = x * 0.999 + 0.01
        return x
    assert 2 <= len(steps(chain, normal(10))) <= 5
