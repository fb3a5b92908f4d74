"""Tapes in many threads at once, and what tapes leave behind: nothing."""

from __future__ import annotations

import contextvars
import gc
import math
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from leaks import memory_after
from restless import InACycle, restless

import twofold as tf
from twofold.eager import playing
from twofold.ir.recent import Recent

THREADS = 8


def together(work: Callable[[int], Any]) -> list[Any]:
    """`work(0) .. work(7)`, each in a thread of its own, all starting at once."""
    start = threading.Barrier(THREADS)

    def run(i: int) -> Any:
        start.wait()
        return work(i)
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


# -- threads ----------------------------------------------------------------------------------------
def test_separate_tapes_do_not_see_each_other() -> None:
    def work(i: int) -> list[float]:
        gradients = []
        for k in range(200):
            x = tf.constant(float(i + k))
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x * x * x
            gradients.append(float(tape.gradient(y, x)))
        return gradients
    for i, derivatives in enumerate(together(work)):
        assert derivatives == [3.0 * (i + k) ** 2 for k in range(200)]


def test_shared_variables() -> None:
    for _ in range(50):
        shared = [tf.Variable(float(j + 1)) for j in range(4)]  # new ones: nobody has seen their values

        def work(i: int, shared: list[Any] = shared) -> list[float]:
            with tf.GradientTape() as tape:
                y = shared[0] * shared[1] * shared[2] * shared[3]
            return [float(g) for g in tape.gradient(y, shared)]
        assert together(work) == [[24.0, 12.0, 8.0, 6.0]] * THREADS


def test_more_forms_than_are_remembered() -> None:
    """Plans and backward passes come and go in all threads at once."""
    def work(i: int) -> None:
        for n in range(i * 60 + 1, i * 60 + 61):
            cycles = [InACycle() for _ in range(10)]
            x = tf.Variable(tf.ones(n))
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(x[:, None] * x)
            assert np.array_equal(tape.gradient(y, x), np.full(n, 2 * n, np.float32))
            del cycles
    with restless():
        together(work)


def test_a_tape_does_not_see_other_threads() -> None:
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        elsewhere = together(lambda i: x * y)
    assert [tape.gradient(e, x) for e in elsewhere] == [None] * THREADS
    assert float(tape.gradient(y, x)) == 4.0


def test_gradients_of_one_persistent_tape_in_many_threads() -> None:
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x
        for _ in range(30):
            y = y * x
    assert {float(g) for g in together(lambda i: tape.gradient(y, x))} == {31.0 * 2.0 ** 30}


def test_second_order_and_forward_mode_in_threads() -> None:
    def work(i: int) -> tuple[float, float]:
        x = tf.constant(float(i + 1), tf.float64)
        for _ in range(30):
            with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0, tf.float64)) as acc:
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = x * x * x
                slope = tape.gradient(y, x)
        return float(slope), float(acc.jvp(slope))
    assert together(work) == [(3.0 * n * n, 6.0 * n) for n in map(float, range(1, THREADS + 1))]


def test_a_copied_context_does_not_keep_a_tape_open() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        inherited = contextvars.copy_context()
        child = inherited.run(lambda: x * y)
    late = inherited.run(lambda: x * y)
    assert float(tape.gradient(child, x)) == 27.0
    assert tape.gradient(late, x) is None


# -- memory -----------------------------------------------------------------------------------------
def training_step() -> Callable[[], Any]:
    x, w, b = tf.ones([4, 3]), tf.Variable(np.ones((3, 2), np.float32)), tf.Variable([0.5, -0.5])

    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.linalg.matmul(x, w) + b))
        for variable, g in zip((w, b), tape.gradient(loss, [w, b]), strict=True):
            variable.assign_sub(0.01 * g)
    return step


@pytest.mark.parametrize("price", [0.0, math.inf], ids=["compiled", "op by op"])
def test_training_steps_leave_nothing(price: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "_PRICE", price)
    monkeypatch.setattr(playing, "_PRICE_OF_READING", price)
    monkeypatch.setattr(playing, "_PRICE_OF_ENTRY", 0.0)
    monkeypatch.setattr(playing, "_passes", Recent(10))
    assert memory_after(training_step(), 500) < 4096
    assert any(p.program is not None for p in playing._passes.values()) == (price == 0.0)


def test_a_hundred_thousand_steps_are_flat() -> None:
    x = tf.ones([256])

    def step() -> None:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        tape.gradient(y, x)
    for _ in range(20_000):  # until the backward pass is compiled, for which LLVM may have to be loaded
        step()
    gc.collect()
    before = resident()
    for _ in range(100_000):
        step()
    gc.collect()
    assert resident() - before < 4 << 20  # a kilobyte lost in each step would be 100 megabytes


def resident() -> int:
    """Bytes of memory that the process holds."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_custom_gradients_and_function_forms_leave_nothing() -> None:
    w = tf.Variable(2.0)

    def step() -> None:
        f = tf.custom_gradient(lambda x: (x * x, lambda dy: dy * 2.0))
        g = tf.contrib.eager.gradients_function(lambda x: tf.recompute_grad(f)(x) * w)
        g(3.0)
        with tf.autodiff.ForwardAccumulator(w, tf.constant(1.0)) as acc:
            y = w * w
        acc.jvp(y)
    assert memory_after(step, 300) < 4096


def test_a_tape_takes_everything_with_it() -> None:
    x = tf.constant([1.0, 2.0])
    gc.collect()
    gc.disable()
    try:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            inner = tf.exp(x)
            y = inner * inner
        seen, held = weakref.ref(tape), weakref.ref(inner)
        del inner
        assert held() is not None
        del tape
        assert (seen(), held()) == (None, None)
        assert y.shape == (2,)
    finally:
        gc.enable()


def test_the_gradient_call_frees_what_the_tape_held() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        inner = tf.exp(x)
        y = inner * inner
    held = weakref.ref(inner)
    del inner
    assert held() is not None
    tape.gradient(y, x)
    assert held() is None


def test_values_no_rule_reads_are_not_held() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        inner = x * 2.0
        y = tf.reduce_sum(inner + 1.0)
    held = weakref.ref(inner)
    del inner
    assert held() is None
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 2.0]


def test_a_tape_dropped_while_open_stops_recording() -> None:
    x = tf.constant(3.0)

    def leave_open() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            yield x * x
    steps = leave_open()
    next(steps)
    steps.close()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0
