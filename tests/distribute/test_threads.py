"""Replicas of one process, which run in threads and meet: op by op, traced together, and each by a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import twofold as tf

COUNT = 3


@pytest.fixture
def strategy() -> tf.distribute.Strategy:
    return tf.distribute.Strategy(["/cpu:0"] * COUNT)


def context() -> Any:
    return tf.distribute.get_replica_context()


def parts(strategy: Any, fn: Callable[[int], Any]) -> Any:
    return strategy.experimental_distribute_values_from_function(lambda about: fn(about.replica_id_in_sync_group))


WAYS: dict[str, Callable[[Any, Any, tuple[Any, ...]], Any]] = {
    "op by op": lambda strategy, fn, args: strategy.run(fn, args),
    "traced together": lambda strategy, fn, args: tf.function(lambda *args: strategy.run(fn, args))(*args),
    "one function": lambda strategy, fn, args: strategy.run(tf.function(fn), args),
    "each compiled": lambda strategy, fn, args: _each(strategy, tf.function(fn), args),
}


def _each(strategy: Any, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return strategy.run(lambda *args: fn(*args), args)


@pytest.mark.parametrize("way", ["op by op", "one function", "each compiled"])
@pytest.mark.parametrize("kind", ["SUM", "MEAN"])
def test_reductions(strategy: Any, way: str, kind: str) -> None:
    values = [np.float32([1.0, 1e8, n]) * np.float32(n + 1) for n in range(COUNT)]
    x = parts(strategy, lambda n: tf.constant(values[n]))
    result = WAYS[way](strategy, lambda x: context().all_reduce(kind, x * 1.0), (x,))
    total = (values[0] + values[1]) + values[2]
    wanted = total if kind == "SUM" else total / np.float32(COUNT)
    assert [r.numpy().tobytes() for r in strategy.experimental_local_results(result)] == [wanted.tobytes()] * COUNT
    assert strategy.reduce(kind, x, None).numpy().tobytes() == wanted.tobytes()


def test_reductions_of_replicas_that_are_traced_together(strategy: Any) -> None:
    def one(x: Any) -> Any:
        number = context().replica_id_in_sync_group
        return context().all_reduce("SUM", x * float(number)), number

    @tf.function
    def step(x: Any) -> Any:
        sums, numbers = strategy.run(one, (x,))
        return strategy.reduce("SUM", sums, None), [
            tf.constant(n) for n in strategy.experimental_local_results(numbers)]
    total, numbers = step(tf.constant(2.0))
    assert float(total) == COUNT * 2.0 * sum(range(COUNT)) and [int(n) for n in numbers] == list(range(COUNT))


@pytest.mark.parametrize("way", ["op by op", "one function", "each compiled"])
def test_gradients_pass(strategy: Any, way: str) -> None:
    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = context().all_reduce("SUM", x * x) * (context().replica_id_in_sync_group + 1.0)
        return tape.gradient(y, x)
    slopes = WAYS[way](strategy, slope, (parts(strategy, lambda n: tf.constant(n + 1.0)),))
    assert [float(s) for s in strategy.experimental_local_results(slopes)] == [
        2.0 * (n + 1) * 6.0 for n in range(COUNT)]


def test_joins_and_merges(strategy: Any) -> None:
    rows = parts(strategy, lambda n: tf.fill([n + 1, 2], float(n)))
    wanted = np.concatenate([np.full((n + 1, 2), n) for n in range(COUNT)])
    np.testing.assert_array_equal(strategy.gather(rows, 0), wanted)
    for way in WAYS:
        gathered = WAYS[way](strategy, lambda x: context().all_gather(x, 0), (rows,))
        assert all(np.array_equal(g, wanted) for g in strategy.experimental_local_results(gathered))

    def merged(strategy: Any, x: Any, factor: Any) -> Any:
        assert context() is None and factor == 2
        return strategy.reduce("SUM", x, None) * factor
    results = strategy.run(lambda x: context().merge_call(merged, (x[0, 0],), {"factor": 2}), (rows,))
    assert float(results) == 2.0 * sum(range(COUNT))  # one tensor for all
    assert float(strategy.reduce("MEAN", rows, 0)[0]) == np.float32(wanted.mean())


def test_the_error_of_a_replica_is_that_of_all(strategy: Any) -> None:
    def fails(x: Any) -> Any:
        if context().replica_id_in_sync_group == 1:
            raise KeyError("the second")
        return context().all_reduce("SUM", x)
    for way in WAYS:
        with pytest.raises(KeyError, match="the second"):
            WAYS[way](strategy, fails, (tf.constant(1.0),))


def test_the_error_of_a_replica_with_a_function_of_its_own_is_that_of_all(strategy: Any) -> None:
    def fails(x: Any) -> Any:
        total = context().all_reduce("SUM", x)
        tf.debugging.assert_less(context().replica_id_in_sync_group, 1, "the second")
        return total
    with pytest.raises(tf.errors.InvalidArgumentError, match="the second"):
        WAYS["each compiled"](strategy, fails, (tf.constant(1.0),))


@pytest.mark.parametrize("way", ["op by op", "each compiled"])
def test_replicas_must_come_to_the_same_reductions(strategy: Any, way: str) -> None:
    def some(x: Any) -> Any:
        return x if context().replica_id_in_sync_group == 2 else context().all_reduce("SUM", x)
    with pytest.raises(RuntimeError, match="same reductions in the same order"):
        WAYS[way](strategy, some, (tf.constant(1.0),))
    assert float(strategy.reduce("SUM", parts(strategy, lambda n: tf.constant(1.0)), None)) == COUNT  # goes on


def test_parts_of_batches(strategy: Any) -> None:
    data = tf.data.Dataset.from_tensor_slices((np.arange(7), np.arange(7) * 10)).batch(5)
    seen = [[v.numpy().tolist() for v in strategy.experimental_local_results(x)]
            for x, y in strategy.experimental_distribute_dataset(data)]
    assert seen == [[[0, 1], [2, 3], [4]], [[5], [6], []]]
    own = strategy.distribute_datasets_from_function(lambda about: tf.data.Dataset.range(COUNT * 2).batch(1))
    assert [[v.numpy().tolist() for v in strategy.experimental_local_results(x)] for x in own] == [
        [[0], [1], [2]], [[3], [4], [5]]]


def test_functions_take_and_give_values_of_replicas(strategy: Any) -> None:
    traces: list[int] = []

    @tf.function
    def doubled(x: Any, other: Any) -> Any:
        traces.append(1)
        return {"doubled": strategy.run(lambda x: x * 2.0, (x,)), "none": None, "other": [other + 1.0]}
    for start in (0.0, 10.0):
        given = parts(strategy, lambda n, start=start: tf.constant([start + n]))
        results = doubled(given, tf.constant(1.0))
        assert [float(v[0]) for v in results["doubled"].values] == [2 * (start + n) for n in range(COUNT)]
        assert isinstance(results["doubled"], tf.distribute.DistributedValues) and results["none"] is None
        outer = tf.function(lambda x: doubled(x, 1.0)["doubled"])(given)
        assert [float(v[0]) for v in outer.values] == [2 * (start + n) for n in range(COUNT)]
    assert len(traces) == 2  # once for each second argument
    assert tf.nest.flatten([given]) == [given]  # a leaf for users
    concrete = tf.function(lambda x: strategy.reduce("SUM", x, None)).get_concrete_function(given)
    assert float(concrete(given)[0]) == sum(10.0 + n for n in range(COUNT))


def test_what_is_made_in_a_trace_of_replicas_waits_for_nobody(strategy: Any) -> None:
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(2, kernel_initializer="ones")])
        optimizer = tf.keras.optimizers.SGD(0.5)
    inner = tf.function(lambda x: x + 1.0)

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(inner(x)))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables,
                                      strict=True))
        return loss
    losses = tf.function(lambda x: strategy.run(step, (x,)))(parts(strategy, lambda n: tf.fill([1, 2], float(n))))
    assert [float(v) for v in losses.values] == [4.0 * (n + 1) for n in range(COUNT)]
    kernel, bias = model.get_weights()
    assert kernel.tolist() == [[1 - 0.5 * 6.0] * 2] * 2 and bias.tolist() == [-0.5 * COUNT] * 2
