"""Updates of inputs run as soon as they can: in which order, with how much memory, and with the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import twofold as tf
from twofold.codegen import epilogues, planner
from twofold.codegen.plan import Plan
from twofold.ir import passes
from twofold.runtime.calls import NodeFailure
from twofold.runtime.compiled import Native
from twofold.runtime.cpu import cpu
from twofold.tracer.traced import trace

SIZE = 257  # a matrix of so many rows and columns is as large as is worth it, and its products have no epilogues


def planned(fn: Callable[..., Any], arrays: list[np.ndarray], donate: dict[int, int]) -> Plan:
    graph = trace(fn, [tf.TensorSpec(a.shape, a.dtype) for a in arrays], "f").graph
    return planner.plan(passes.optimise(graph), cpu, donate, intact=True)


def names(plan: Plan) -> list[str]:
    return [step.kernel.name.split("/")[-1] for step in plan.steps]


def matrices(count: int, size: int = SIZE) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(size, size)).astype(np.float32) for _ in range(count)]


def chained(x: Any, a: Any, b: Any, c: Any) -> Any:
    """Three products, each for an update."""
    first = tf.matmul(x, x)
    second = tf.matmul(first, x)
    third = tf.matmul(second, x)
    slopes = tf.matmul(first, first), tf.matmul(second, first), tf.matmul(third, first)
    return [value - 0.5 * slope for value, slope in zip((a, b, c), slopes, strict=True)]


def same(plan: Plan, fn: Callable[..., Any], arrays: list[np.ndarray]) -> None:
    want = [value.numpy().tobytes() for value in fn(*map(tf.constant, arrays))]
    assert [out.tobytes() for out in Native.of(plan)([a.copy() for a in arrays], {})] == want


def test_updates_follow_what_they_read_and_need_less_memory() -> None:
    arrays = matrices(4)
    plan = planned(chained, arrays, {0: 1, 1: 2, 2: 3})
    updates = [n for n, name in enumerate(names(plan)) if "subtract" in name]
    assert len(updates) == 3 and updates[0] < len(plan.steps) - 3
    assert isinstance(plan.arena, int) and plan.arena < 6 * arrays[0].nbytes
    assert plan.donated == {0: 1, 1: 2, 2: 3}
    same(plan, chained, arrays)


def test_small_updates_run_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epilogues, "attach", lambda *arguments: None)
    arrays = matrices(4, 128)
    plan = planned(chained, arrays, {0: 1, 1: 2, 2: 3})
    assert "|" in names(plan)[-1]
    same(plan, chained, arrays)


def test_small_updates_are_epilogues_of_the_gradients() -> None:
    arrays = matrices(4, 128)
    plan = planned(chained, arrays, {0: 1, 1: 2, 2: 3})
    assert sum(step.epilogue is not None for step in plan.steps) == 3 and len(plan.steps) == 6
    assert plan.donated == {0: 1, 1: 2, 2: 3}
    same(plan, chained, arrays)


def test_an_input_is_overwritten_behind_its_last_reader() -> None:
    def fn(x: Any, a: Any) -> Any:
        slope = tf.matmul(x, x)
        last = tf.matmul(tf.matmul(x, a), a)
        other = tf.matmul(last, x)
        return a - slope, other
    arrays = matrices(2)
    plan = planned(fn, arrays, {0: 1})
    update = next(n for n, name in enumerate(names(plan)) if "subtract" in name)
    assert plan.donated == {0: 1} and update < len(plan.steps) - 1
    assert all(plan.inputs[1] not in step.memory() for step in plan.steps[update + 1:])
    same(plan, fn, arrays)


@pytest.mark.parametrize("later", [False, True])
def test_what_can_fail_is_checked_before(later: bool) -> None:
    def fn(x: Any, a: Any, numbers: Any) -> Any:
        product = tf.matmul(x, x)
        quotient = numbers // numbers
        if later:
            quotient = quotient + tf.cast(tf.matmul(product, product)[0, :4] * 0, tf.int32) // numbers
        return a - product, quotient
    arrays = [*matrices(2), np.array([1, 2, 0, 4], np.int32)]
    plan = planned(fn, arrays, {0: 1})
    given = [a.copy() for a in arrays]
    with pytest.raises(NodeFailure):
        Native.of(plan)(given, {})
    assert (given[1] == arrays[1]).all()
    arrays[2][2] = 3
    same(plan, fn, arrays)


def test_a_result_that_is_read_again_stays_where_it_is() -> None:
    def fn(x: Any, a: Any) -> Any:
        new = a - tf.matmul(x, x)
        return new, tf.matmul(new, x)
    arrays = matrices(2)
    same(planned(fn, arrays, {0: 1}), fn, arrays)


def scattered(x: Any, rows: Any, mode: str) -> Any:
    return {"add": tf.tensor_scatter_nd_add, "sub": tf.tensor_scatter_nd_sub}[mode](x, rows[:, None], tf.ones((3, 4)))


def two_tables(a: Any, b: Any, c: Any, rows: Any, others: Any) -> Any:
    """Updates of rows of two tables, and one of a dense variable between them."""
    slope = tf.gather(a, rows) * 2.0
    return (tf.tensor_scatter_nd_sub(a, rows[:, None], slope), c - tf.reduce_sum(slope),
            tf.tensor_scatter_nd_add(b, tf.stack([others, others - 1], 1), slope[:, 0]))


def by_roots(a: Any, b: Any, c: Any, rows: Any, others: Any) -> Any:
    """As of Adagrad: sums of squares are changed, then read where they were, then the table is changed."""
    squares = scattered(b, rows, "add")
    return scattered(a, rows, "sub"), c + tf.gather(squares, rows)[0, 0], squares


def by_what_was_changed(a: Any, b: Any, c: Any, rows: Any, others: Any) -> Any:
    """Indices of the second table that only the first one's new value tells."""
    first = scattered(a, rows, "add")
    return first, c, scattered(b, tf.cast(first[:3, 0], tf.int32) + others, "sub")


@pytest.mark.parametrize(("fn", "donated"), [(two_tables, 2), (by_roots, 3), (by_what_was_changed, 0)])
def test_rows_of_tables_are_changed_in_place_once_all_indices_are_checked(fn: Callable[..., Any], donated: int) -> None:
    rng = np.random.default_rng(1)
    tables = [rng.normal(size=(6, 4)).astype(np.float32) * 0.1 for _ in range(2)]
    arrays = [*tables, np.ones((), np.float32), np.array([5, 0, 5], np.int32), np.array([1, 2, 4], np.int32)]
    plan = planned(fn, arrays, {0: 0, 1: 2, 2: 1})
    assert len(plan.donated) == donated
    same(plan, fn, arrays)
    for place, wrong in ((3, 6), (4, 60)):
        given = [a.copy() for a in arrays]
        given[place][1] = wrong
        kept = [a.copy() for a in given]
        if fn is by_roots and place == 4:
            continue  # it does not read these
        with pytest.raises(NodeFailure):
            Native.of(plan)(given, {})
        assert all(np.array_equal(a, b) for a, b in zip(given, kept, strict=True))
