"""What a compiled function says of its memory, and the memory it really takes."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf
from twofold.runtime import memory, native


def test_buffers_lie_in_the_arena_and_do_not_meet():
    @tf.function
    def f(x, w):
        for _ in range(6):
            x = tf.tanh(tf.matmul(x, w))
        return tf.reduce_sum(x)

    shape = tf.TensorSpec([64, 64], tf.float32)
    plan = f.get_concrete_function(shape, shape).memory_plan()
    assert len(plan.buffers) >= 6 and plan.outputs == 4 and plan.arena == plan.live
    assert plan.peak == plan.arena + plan.outputs
    for n, a in enumerate(plan.buffers):
        assert a.offset >= 0 and a.offset + a.size <= plan.arena
        for b in plan.buffers[n + 1:]:
            apart = a.last < b.first or b.last < a.first
            assert apart or a.offset + a.size <= b.offset or b.offset + b.size <= a.offset
    # Six products of one size: two lie in memory at one time, and what products work with.
    assert plan.arena < 6 * 64 * 64 * 4
    assert "steps" in str(plan)


def test_variables_that_are_written_over_take_no_memory():
    v = tf.Variable(np.zeros((100, 10), np.float32))
    f = tf.function(lambda x: (v.assign_sub(x), None)[1])
    plan = f.get_concrete_function(tf.TensorSpec([100, 10], tf.float32)).memory_plan()
    assert plan.in_place == 4000 and plan.outputs == 0


def test_unknown_sizes_are_asked_for():
    f = tf.function(lambda x: tf.reduce_sum(tf.matmul(x, x, transpose_a=True), axis=0))
    concrete = f.get_concrete_function(tf.TensorSpec([None, 8], tf.float64))
    name = concrete.inputs[0].dims[0].name_alone()
    with pytest.raises(ValueError, match=name):
        concrete.memory_plan()
    plan = concrete.memory_plan(**{name: 100})
    assert plan.outputs == 64 and plan.arena >= 8 * 8 * 8


def test_parts_that_python_runs_between_have_no_plan():
    @tf.function
    def f(x):
        tf.print("x", output_stream="file:///dev/null")
        return tf.exp(x) + 1

    with pytest.raises(ValueError, match="Python runs"):
        f.get_concrete_function(tf.TensorSpec([3], tf.float32)).memory_plan()


@pytest.mark.skipif(not native.available(), reason="results would pass through Python")
def test_training_takes_no_more_memory_with_every_step():
    w = tf.Variable(np.zeros((512, 512), np.float32))
    m = tf.Variable(np.zeros((512, 512), np.float32))

    @tf.function
    def step(g):
        m.assign(m * 0.9 + g)
        w.assign_sub(m * 0.1)

    g = tf.ones((512, 512))
    for _ in range(3):
        step(g)
    before = memory.statistics().in_use
    places = {v._value._array.__array_interface__["data"][0] for v in (w, m)}
    for _ in range(20):
        step(g)
    assert memory.statistics().in_use <= before
    assert {v._value._array.__array_interface__["data"][0] for v in (w, m)} == places
    want_m = want_w = np.float32(0)
    for _ in range(23):
        want_m = np.float32(want_m * np.float32(0.9)) + np.float32(1)
        want_w = want_w - np.float32(want_m * np.float32(0.1))
    assert (m.numpy() == want_m).all() and (w.numpy() == want_w).all()
