"""Loops that threads share as a whole: which they are, and that no thread meets what another one has written.

Programs run here with a fork-join that has "threads" take their parts one after the other, in the order that a test
says: the last may have gone through all rounds before the first begins, which is as far apart as threads can be.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import thread_orders

import twofold as tf
from twofold.codegen import plan_text, planner
from twofold.codegen.layout import Layout, contiguous, row_span
from twofold.codegen.plan import Plan, Shares
from twofold.ir import passes
from twofold.runtime import threads
from twofold.runtime.compiled import Native
from twofold.runtime.cpu import CPU, cpu
from twofold.tracer.traced import trace

STEPS, WIDTH = 4, 5


@pytest.fixture(autouse=True)
def all_is_shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(CPU, "shares", lambda self, work: Shares(work, 0, 1))
    monkeypatch.setattr(CPU, "shares_rounds", lambda self, works, parts: Shares(sum(works), 0, 1))
    threads.set_num_threads(4)  # for which products are planned
    yield
    threads.set_num_threads(0)


def planned(fn: Callable[..., Any], *arrays: np.ndarray) -> Plan:
    graph = trace(fn, [tf.TensorSpec(a.shape, a.dtype) for a in arrays], "f").graph
    return planner.plan(passes.optimise(graph), cpu)


def shared_loops(plan: Plan) -> int:
    return sum("loop, threads share" in line for line in plan_text.text(plan).splitlines())


def run(native: Native, arrays: Sequence[np.ndarray], order: Sequence[int]) -> list[bytes]:
    return [out.tobytes() for out in thread_orders.run(native, arrays, {}, order)]


def held_together(fn: Callable[..., Any], arrays: Sequence[np.ndarray], loops: int) -> None:
    """Holds a function to itself op by op; `loops` of it are shared by rows."""
    plan = planned(fn, *arrays)
    assert shared_loops(plan) == loops
    want = [value.numpy().tobytes() for value in tf.nest.flatten(fn(*map(tf.constant, arrays)))]
    native = Native.of(plan)
    for count in (1, 2, 3, 5):
        orders = [range(count), range(count)[::-1]] if count > 3 else itertools.permutations(range(count))
        for order in orders:
            assert run(native, arrays, tuple(order)) == want, (count, order)


def numbers(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def steps_of(body: Callable[..., Any]) -> Callable[..., Any]:
    """A function of items and a state that runs `body(i, x, h)` in each round, and keeps all states."""
    def loop(x: Any, h: Any) -> Any:
        items = tf.TensorArray(x.dtype, size=STEPS, element_shape=x.shape[1:]).unstack(x)

        def one(i: Any, h: Any, kept: Any) -> Any:
            h = body(i, items.read(i), h)
            return i + 1, h, kept.write(i, h)
        kept = tf.TensorArray(h.dtype, size=STEPS, element_shape=h.shape)
        _, h, kept = tf.while_loop(lambda i, *_: i < STEPS, one, (0, h, kept))
        return h, kept.stack()
    return loop


# -- rounds that treat rows apart -----------------------------------------------------------------------
APART: dict[str, Callable[..., Any]] = {
    "elements": lambda i, x, h: tf.tanh(h * 0.9 + x),
    "a counter": lambda i, x, h: h * tf.cast(i, h.dtype) + x,
    "a vector": lambda i, x, h: h * 0.5 + x * tf.constant(numbers(WIDTH, seed=5)),
    "of the row": lambda i, x, h: h[:, ::-1] * 0.5 + x,
    "a choice": lambda i, x, h: tf.where(x > 0, h + x, h),
    "half of a row": lambda i, x, h: tf.concat([h[:, 2:] + x[:, 2:], x[:, :2] * h[:, :2]], 1),
}


@pytest.mark.parametrize("rows", [2, 7, 32])
@pytest.mark.parametrize("name", APART)
def test_elements(name: str, rows: int) -> None:
    held_together(steps_of(APART[name]), [numbers(STEPS, rows, WIDTH), numbers(rows, WIDTH, seed=1)], 1)


@pytest.mark.parametrize("rows, dtype", [(16, np.float32), (33, np.float32), (47, np.float64)])
def test_products(rows: int, dtype: Any) -> None:
    def loop(x: Any, h: Any, first: Any, second: Any) -> Any:
        def body(i: Any, x: Any, h: Any) -> Any:
            middle = tf.matmul(h, first) + x
            return tf.tanh(tf.matmul(tf.nn.relu(middle), second, transpose_b=True) + middle)
        return steps_of(body)(x, h)

    arrays = [numbers(*shape, dtype=dtype) for shape in ((STEPS, rows, WIDTH), (rows, WIDTH), (WIDTH, WIDTH),
                                                         (WIDTH, WIDTH))]
    held_together(loop, arrays, 1)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "SimpleRNN"])
@pytest.mark.parametrize("masked", [False, True])
def test_gradients_of_recurrences(kind: str, masked: bool) -> None:
    rows = 19
    layer = getattr(tf.keras.layers, kind)(6, return_sequences=True)
    layer.build((rows, STEPS, WIDTH))
    layer.set_weights([numbers(*w.shape, seed=n) for n, w in enumerate(layer.get_weights())])

    def gradients(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.square(layer(x, mask=x[:, :, 0] > -0.5 if masked else None)))
        return [loss, *tape.gradient(loss, [x, *layer.trainable_variables])]

    x = numbers(rows, STEPS, WIDTH)
    want = [value.numpy().tobytes() for value in gradients(tf.constant(x))]
    traced = trace(gradients, [tf.TensorSpec(x.shape)], "f")
    plan = planner.plan(passes.optimise(traced.graph), cpu)
    assert shared_loops(plan) == 2
    arrays = [x, *[np.asarray(value) for value in traced.captures]]
    native = Native.of(plan)
    for order in [(0,), (0, 1), (1, 0), (2, 0, 1)]:
        assert run(native, arrays, order) == want


# -- rounds in which rows meet --------------------------------------------------------------------------
MEETING: dict[str, Callable[..., Any]] = {
    "turned over": lambda i, x, h: h[::-1] * 0.5 + x,
    "moved by one": lambda i, x, h: tf.roll(h, 1, 0) + x,
    "their sum": lambda i, x, h: h + x - tf.reduce_mean(h, 0),
    "the first": lambda i, x, h: h * 0.5 + x + h[0],
    "one element": lambda i, x, h: h * 0.5 + x + h[1, 2],
    "their products": lambda i, x, h: tf.tanh(tf.matmul(tf.matmul(h, h, transpose_b=True), x)),
    "on the right": lambda i, x, h: tf.tanh(tf.matmul(tf.constant(numbers(9, 9)), h) + x),
    "as columns": lambda i, x, h: tf.transpose(tf.matmul(tf.transpose(h), tf.constant(numbers(9, 9)))) + x,
    "in order": lambda i, x, h: tf.cumsum(h, 0) * 0.5 + x,
    "by size": lambda i, x, h: h / (1 + tf.reduce_max(tf.abs(h))) + x,
}


@pytest.mark.parametrize("name", MEETING)
def test_rows_that_meet(name: str) -> None:
    held_together(steps_of(MEETING[name]), [numbers(STEPS, 9, WIDTH), numbers(9, WIDTH, seed=1)], 0)


def test_a_loop_that_ends_where_rows_say_so() -> None:
    def loop(h: Any) -> Any:
        return tf.while_loop(lambda h: tf.reduce_sum(h) < 100.0, lambda h: (h * 1.5 + 0.25,), (h,))
    held_together(loop, [np.abs(numbers(8, WIDTH))], 0)


def test_states_that_change_places() -> None:
    def loop(a: Any, b: Any) -> Any:
        return tf.while_loop(lambda i, *_: i < 5, lambda i, a, b: (i + 1, b + 1.0, a * 0.5), (0, a, b))
    held_together(loop, [numbers(8, WIDTH), numbers(8, WIDTH, seed=1)], 1)


def test_an_array_whose_items_are_read_after_they_are_written() -> None:
    """A row of an item goes with the same row of the item before; items that are turned over meet."""
    def loop(turn: bool) -> Callable[[Any], Any]:
        def fn(x: Any) -> Any:
            def body(i: Any, kept: Any) -> Any:
                before = kept.read(i - 1)
                return i + 1, kept.write(i, (before[::-1] if turn else before) * 0.5 + x[i])
            kept = tf.TensorArray(x.dtype, size=STEPS, element_shape=x.shape[1:]).write(0, x[0])
            return tf.while_loop(lambda i, _: i < STEPS, body, (1, kept))[1].stack()
        return fn
    for turn in (False, True):
        x = numbers(STEPS, 6, WIDTH)
        held_together(loop(turn), [x], shared_loops(planned(loop(turn), x)))


def test_numbers_of_the_rounds_are_there_after_them() -> None:
    def loop(h: Any) -> Any:
        return tf.while_loop(lambda i, j, h: i < 6, lambda i, j, h: (i + 1, j * 3 + i, h + tf.cast(j, h.dtype)),
                             (0, 1, h))
    held_together(loop, [numbers(8, WIDTH)], 1)


def test_a_loop_in_a_loop() -> None:
    def fn(h: Any) -> Any:
        def outer(i: Any, h: Any) -> Any:
            _, h = tf.while_loop(lambda j, _: j < 3, lambda j, h: (j + 1, tf.sin(h) + 0.5), (0, h))
            return i + 1, h[::-1]
        return tf.while_loop(lambda i, _: i < 3, outer, (0, h))[1]
    held_together(fn, [numbers(8, WIDTH)], 1)


def test_small_rounds_are_not_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    fn = steps_of(APART["elements"])
    assert shared_loops(planned(fn, numbers(STEPS, 64, WIDTH), numbers(64, WIDTH))) == 0
    assert shared_loops(planned(fn, numbers(STEPS, 64, 1024), numbers(64, 1024))) == 1


def test_where_more_threads_can_share_steps_than_rows_they_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    fn = steps_of(APART["elements"])
    few = [numbers(STEPS, 3, 1 << 15), numbers(3, 1 << 15)]
    assert shared_loops(planned(fn, *few)) == 0
    threads.set_num_threads(3)
    assert shared_loops(planned(fn, *few)) == 1


def test_spans_of_rows() -> None:
    assert row_span(contiguous((4, 6))) == 6
    assert row_span(contiguous((4,))) == 1
    assert row_span(Layout((4, 3), (6, 1), 3)) == 6 and row_span(Layout((4, 3), (6, 1), 4)) is None
    assert row_span(Layout((4, 3), (6, -1), 2)) == 6 and row_span(Layout((4, 3), (6, -1), 1)) is None
    assert row_span(Layout((4, 3), (1, 4), 0)) is None and row_span(Layout((4, 3), (0, 1), 0)) is None
    assert row_span(Layout((4, 3), (-6, 1), 18)) is None


@pytest.mark.parametrize("count", [1, 2, 3])
def test_real_threads(count: int) -> None:
    fn = steps_of(APART["elements"])
    arrays = [tf.constant(numbers(STEPS, 64, WIDTH)), tf.constant(numbers(64, WIDTH, seed=1))]
    want = [value.numpy().tobytes() for value in fn(*arrays)]
    threads.set_num_threads(count)
    program = tf.function(fn)
    for _ in range(20):
        assert [value.numpy().tobytes() for value in program(*arrays)] == want
