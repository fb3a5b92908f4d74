"""What is packed once for many calls: the same results as before, whatever is assigned in between, within bounds."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import twofold as tf
from twofold.codegen import plan_text, planner
from twofold.ir.graph_text import parse
from twofold.runtime import packed, tiers
from twofold.runtime.compiled import Native
from twofold.runtime.cpu import cpu
from twofold.tracer.function import Function

SIZE, COLUMNS = 160, 400
X = np.random.default_rng(0).integers(-8, 9, (9, SIZE)).astype(np.float32)  # products of such numbers are exact
W = np.random.default_rng(1).integers(-8, 9, (COLUMNS, SIZE)).astype(np.float32)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TWOFOLD_TIERS", "0")
    monkeypatch.setattr(packed, "_BUDGET", 1)
    monkeypatch.setattr(packed, "_FEWEST", 1)
    yield
    tiers.wait()


def product(x: tf.Tensor, w: tf.Tensor | tf.Variable) -> tf.Tensor:
    """x times the transposed w: of columns whose elements are neighbours, no processor reads several as they lie."""
    return tf.matmul(x, w, transpose_b=True)


def native(function: Function) -> Native:
    """The program of a function's one trace."""
    (program,) = [trace.runner.program.whole for family in function._families.values() for trace in family.traces]
    assert isinstance(program, Native)
    return program


def settled(function: Function, *args: Any) -> packed.PackedOperands:
    """What a function keeps after some calls."""
    for _ in range(6):
        function(*args)
        tiers.wait()
    kept = native(function)._kept
    assert kept is not None
    return kept


def test_plans_have_what_stays_the_same_packed_before() -> None:
    graph = parse("""
graph f(%0: f32[9,160], %1: f32[400,160], %2: f32[1,5,5,64], %3: f32[3,3,64,64]) {
  %4 = matmul(%0, %1) {transpose_b: true} : f32[9,400]
  %5 = conv(%2, %3) {dilations: [1,1], padding: [[1,1],[1,1]], strides: [1,1]} : f32[1,5,5,64]
  return %4, %5
}""")
    plain = planner.plan(graph, cpu)
    assert list(plain.worth_packing) == [1, 3] and not plain.packings
    plan = planner.plan(graph, cpu, steady=[1])
    assert [packing.input for packing in plan.packings] == [1]
    text = plan_text.text(plan)
    assert "packed before of input 1" in text and "pack_b" not in text
    text = plan_text.text(planner.plan(graph, cpu, steady=[1, 3]))
    assert "panels" not in text and "packed before of input 3" in text


def test_results_follow_assignments_of_whole_values_and_of_parts() -> None:
    w = tf.Variable(W)
    f = tf.function(lambda x: product(x, w))
    kept = settled(f, tf.constant(X))
    assert kept.bytes >= W.nbytes
    value = W.copy()

    def check() -> None:
        for _ in range(2):
            np.testing.assert_array_equal(f(tf.constant(X)), X @ value.T)
    check()
    w.assign(value := value[::-1].copy())
    check()
    assert native(f)._kept is not kept
    settled(f, tf.constant(X))
    w[3].assign(np.ones(SIZE, np.float32))
    value[3] = 1
    check()
    settled(f, tf.constant(X))
    w.assign_add(tf.ones_like(w))
    value += 1
    check()
    settled(f, tf.constant(X))
    w.scatter_nd_update([[0, 0]], [7.0])
    value[0, 0] = 7
    check()


def test_values_that_training_overwrites_in_place() -> None:
    w = tf.Variable(W)
    f = tf.function(lambda x: product(x, w))
    step = tf.function(lambda: w.assign_add(tf.ones_like(w)))
    value = W.copy()
    for calls in (6, 1, 2, 6, 1):
        for _ in range(calls):
            np.testing.assert_array_equal(f(tf.constant(X)), X @ value.T)
            tiers.wait()
        for _ in range(3):
            step()
            value += 1
        np.testing.assert_array_equal(f(tf.constant(X)), X @ value.T)


def test_what_was_packed_is_dropped_with_the_value_it_was_packed_of() -> None:
    w = tf.Variable(W)
    f = tf.function(lambda x: product(x, w))
    kept = weakref.ref(settled(f, tf.constant(X)))
    w.assign(W + 1)
    f(tf.constant(X))
    tiers.wait()
    assert kept() is None


def test_values_that_change_each_time_are_not_packed() -> None:
    f = tf.function(lambda x, w: product(x, w))
    for n in range(8):
        np.testing.assert_array_equal(f(tf.constant(X), tf.constant(W + n)), X @ (W + n).T)
        tiers.wait()
    keeper = native(f)._keeper
    assert native(f)._kept is None and keeper is not None
    assert keeper.budget() > packed._budget(native(f).charge, native(f).about.work)  # it looks less and less often
    w = tf.constant(W)
    for _ in range(200):  # a tensor that is handed in again and again stays the same
        f(tf.constant(X), w)
        tiers.wait()
        if native(f)._kept is not None:
            break
    assert native(f)._kept is not None
    np.testing.assert_array_equal(f(tf.constant(X), w), X @ W.T)
    np.testing.assert_array_equal(f(tf.constant(X), tf.constant(W + 1)), X @ (W + 1).T)


def _conv() -> tuple[Callable[..., Any], np.ndarray]:
    filters = tf.Variable(np.random.default_rng(2).standard_normal((3, 3, 64, 80)).astype(np.float32))
    image = np.random.default_rng(3).standard_normal((1, 7, 6, 64)).astype(np.float32)
    return lambda x: tf.nn.relu(tf.nn.conv2d(x, filters, 1, "SAME")), image


def _many_images() -> tuple[Callable[..., Any], np.ndarray]:  # whose padding is left out where filters are finite
    f, image = _conv()
    return f, np.repeat(image, 9, axis=0) * np.arange(9, dtype=np.float32).reshape(9, 1, 1, 1)


def _gradient() -> tuple[Callable[..., Any], np.ndarray]:
    filters = tf.Variable(np.random.default_rng(2).standard_normal((3, 3, 64, 64)).astype(np.float32))
    ct = np.random.default_rng(3).standard_normal((1, 4, 4, 64)).astype(np.float32)
    return lambda x: tf.nn.conv2d_transpose(x, filters, [1, 8, 8, 64], 2), ct


def _recurrent() -> tuple[Callable[..., Any], np.ndarray]:
    w = tf.Variable(np.random.default_rng(4).standard_normal((130, 130)).astype(np.float32) / 12)

    def f(x: Any) -> Any:
        return tf.while_loop(lambda i, _: i < 5, lambda i, h: (i + 1, tf.tanh(h @ w)), (0, x))[1]
    return f, np.random.default_rng(5).standard_normal((6, 130)).astype(np.float32)


def _row() -> tuple[Callable[..., Any], np.ndarray]:
    w = tf.Variable(np.random.default_rng(4).standard_normal((300, 150)).astype(np.float32))
    return lambda x: x @ w, np.random.default_rng(5).standard_normal((1, 300)).astype(np.float32)


def _rows_of_pieces() -> tuple[Callable[..., Any], np.ndarray]:  # a product of one row in each round, by halves
    w = tf.Variable(np.random.default_rng(4).standard_normal((2, 130, 130)).astype(np.float32) / 12)

    def rounds(x: Any, piece: Any) -> Any:
        return tf.while_loop(lambda i, _: i < 5, lambda i, h: (i + 1, tf.tanh(h @ piece)), (0, x))[1]
    row = np.random.default_rng(5).standard_normal((1, 130)).astype(np.float32)
    return lambda x: rounds(x, w[0]) + rounds(x, w[1]), row


def _in_a_branch() -> tuple[Callable[..., Any], np.ndarray]:
    w = tf.Variable(W)
    return lambda x: tf.cond(tf.reduce_sum(x) > 1e9, lambda: product(x + 1.0, w), lambda: product(x, w)), X


def _transposed() -> tuple[Callable[..., Any], np.ndarray]:
    w = tf.Variable(np.random.default_rng(4).standard_normal((140, 130)).astype(np.float32))
    return lambda x: tf.matmul(x, w, transpose_b=True) + 1.0, X[:, :130].copy()


@pytest.mark.parametrize("case", [_conv, _many_images, _gradient, _recurrent, _row, _rows_of_pieces, _in_a_branch,
                                  _transposed])
def test_bits_are_those_of_the_ops_one_by_one(case: Callable[[], tuple[Callable[..., Any], np.ndarray]]) -> None:
    python, given = case()
    x = tf.constant(given)
    f = tf.function(python)
    before = f(x).numpy().tobytes()
    kept = settled(f, x)
    assert f(x).numpy().tobytes() == before == tf.convert_to_tensor(python(x)).numpy().tobytes()
    (trace,) = [trace for family in f._families.values() for trace in family.traces]
    inputs = [x.numpy(), *[tensor._array for tensor in trace.read()]]
    assert kept.serves(inputs) and native(f)(inputs, {})[0].tobytes() == before  # by way of Python


def test_sizes_may_be_unknown() -> None:
    w = tf.Variable(W)
    f = tf.function(lambda x: product(x, w), input_signature=[tf.TensorSpec([None, SIZE])])
    settled(f, tf.constant(X))
    for rows in (1, 4, 9):
        np.testing.assert_array_equal(f(tf.constant(X[:rows])), X[:rows] @ W.T)


def test_a_program_from_disk_is_planned_again() -> None:
    x, w = tf.constant(X), tf.Variable(W)
    first = tf.function(lambda x: product(x, w) - 3.0)
    first(x)
    second = tf.function(lambda x: product(x, w) - 3.0)
    settled(second, x)
    assert native(second).cached
    third = tf.function(lambda x: product(x, w) - 3.0)
    assert settled(third, x).program.cached
    np.testing.assert_array_equal(third(x), X @ W.T - 3)


def test_a_check_that_fails_is_told_as_before() -> None:
    w = tf.Variable(W)
    f = tf.function(lambda x, i: tf.gather(product(x, w), i))
    settled(f, tf.constant(X), tf.constant([1]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="9"):
        f(tf.constant(X), tf.constant([9]))
    np.testing.assert_array_equal(f(tf.constant(X), tf.constant([2])), (X @ W.T)[2:3])


def test_threads_see_one_value_or_another() -> None:
    w = tf.Variable(W)
    f = tf.function(lambda x: product(x, w))
    settled(f, tf.constant(X))
    expected = [(X @ (W + n).T).tobytes() for n in range(2)]
    over, wrong = threading.Event(), []

    def calls() -> None:
        while not over.is_set():
            if (bits := f(tf.constant(X)).numpy().tobytes()) not in expected:
                wrong.append(bits)
    threads = [threading.Thread(target=calls) for _ in range(2)]
    for thread in threads:
        thread.start()
    for n in range(60):
        w.assign(W + n % 2)
        if n % 10 == 0:
            tiers.wait()
    over.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    x, variables = tf.constant(X), [tf.Variable(W), tf.Variable(W + 1), tf.Variable(W + 2)]
    first = tf.function(lambda x: product(x, variables[0]))
    monkeypatch.setattr(packed, "MOST", 0)  # of all, what was made last remains
    settled(first, x)
    second = tf.function(lambda x: product(x, variables[1]))
    settled(second, x)
    assert native(first)._kept is None
    np.testing.assert_array_equal(first(x), X @ W.T)
    monkeypatch.setattr(packed, "MOST_OF_PROGRAM", 0)
    third = tf.function(lambda x: product(x, variables[2]))
    for _ in range(6):
        np.testing.assert_array_equal(third(x), X @ (W + 2).T)
        tiers.wait()
    assert native(third)._kept is None


def test_it_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOFOLD_PACKED", "0")
    w = tf.Variable(W)
    f = tf.function(lambda x: product(x, w))
    f(tf.constant(X))
    assert native(f)._keeper is None
