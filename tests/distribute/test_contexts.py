"""Strategies of one process: where code runs, and what strategies of one replica do."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import twofold as tf
from twofold.distribute import _strategy, _transport

distribute = tf.distribute


def test_outside_of_any_scope() -> None:
    strategy = distribute.get_strategy()
    assert not distribute.has_strategy() and not distribute.in_cross_replica_context()
    context = distribute.get_replica_context()
    assert context.strategy is strategy and strategy.num_replicas_in_sync == 1
    assert strategy.run(lambda x: x + 1, (2,)) == 3
    assert float(context.all_reduce("MEAN", tf.constant(2.0))) == 2.0
    assert context.merge_call(lambda strategy, x: x * 2, (4,)) == 8
    with strategy.scope():
        assert not distribute.has_strategy()


def test_scopes_and_replicas() -> None:
    strategy = distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        assert distribute.has_strategy() and distribute.get_strategy() is strategy
        assert distribute.in_cross_replica_context() and distribute.get_replica_context() is None
        w = tf.Variable(2.0)
        with strategy.scope():
            assert distribute.in_cross_replica_context()
        with pytest.raises(RuntimeError, match="within that of another one"), \
                distribute.OneDeviceStrategy("/cpu:0").scope():
            pass

    def inside(x: Any) -> Any:
        context: Any = distribute.get_replica_context()
        assert context.strategy is strategy and context.devices[0].endswith("/device:CPU:0")
        assert (context.replica_id_in_sync_group, context.num_replicas_in_sync) == (0, 1)
        with pytest.raises(RuntimeError, match="scope in what strategy.run calls"), strategy.scope():
            pass
        with pytest.raises(RuntimeError, match="run must not be called"):
            strategy.run(inside, (x,))
        with pytest.raises(RuntimeError, match="outside of what strategy.run calls"):
            strategy.reduce("SUM", x, None)
        return context.merge_call(lambda strategy, y: (distribute.in_cross_replica_context(), y * w), (x,))
    for run in (strategy.run, tf.function(lambda fn, args: strategy.run(fn, args))):
        merged, product = run(inside, (tf.constant(3.0),))
        assert merged and float(product) == 6.0
    assert not distribute.has_strategy()


def test_a_strategy_can_hold_without_a_block() -> None:
    strategy = distribute.OneDeviceStrategy("/cpu:0")
    distribute.experimental_set_strategy(strategy)
    try:
        assert distribute.get_strategy() is strategy
    finally:
        distribute.experimental_set_strategy(None)
    assert not distribute.has_strategy()
    with strategy.scope(), pytest.raises(RuntimeError, match="inside of a strategy's scope"):
        distribute.experimental_set_strategy(None)


@pytest.mark.parametrize(("kind", "reduce"), [("SUM", np.sum), ("MEAN", np.mean), (distribute.ReduceOp.SUM, np.sum),
                                              ("mean", np.mean)])
def test_reductions_along_an_axis(kind: Any, reduce: Any) -> None:
    strategy = distribute.OneDeviceStrategy("/cpu:0")
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(strategy.reduce(kind, tf.constant(x), axis=0).numpy(), reduce(x, 0))
    value = strategy.reduce(kind, {"a": tf.constant(x), "b": (tf.constant(1.0),)}, axis=None)
    np.testing.assert_array_equal(value["a"].numpy(), x)
    with pytest.raises(ValueError, match="must be a tf.distribute.ReduceOp"):
        strategy.reduce("MAX", tf.constant(x), None)


def test_values_of_replicas() -> None:
    strategy = distribute.OneDeviceStrategy("/cpu:0")
    assert strategy.experimental_local_results("x") == ("x",)
    assert strategy.gather(tf.constant([[1, 2]]), 1).numpy().tolist() == [[1, 2]]
    with pytest.raises(ValueError, match="scalar cannot be gathered"):
        strategy.gather(tf.constant(1), 0)
    about = strategy.experimental_distribute_values_from_function(lambda context: context.replica_id_in_sync_group)
    assert about == 0 and copy.deepcopy(strategy) is strategy
    aggregation = tf.VariableAggregation
    assert distribute.ReduceOp.from_variable_aggregation(aggregation.MEAN) is distribute.ReduceOp.MEAN
    with pytest.raises(ValueError, match="Could not convert"):
        distribute.ReduceOp.from_variable_aggregation(aggregation.NONE)


def test_datasets() -> None:
    strategy = distribute.OneDeviceStrategy("/cpu:0")
    data = tf.data.Dataset.range(5).batch(2)
    assert [b.numpy().tolist() for b in strategy.experimental_distribute_dataset(data)] == [[0, 1], [2, 3], [4]]
    seen: list[Any] = []
    made = strategy.distribute_datasets_from_function(lambda about: [seen.append(about), data][1])
    assert [b.numpy().tolist() for b in made] == [[0, 1], [2, 3], [4]] and seen[0].num_input_pipelines == 1
    with pytest.raises(ValueError, match="not divisible"):
        distribute.InputContext(1, 0, 4).get_per_replica_batch_size(6)


def test_processes_have_as_many_devices() -> None:
    class Two(_transport.Group):
        def gather(self, value: np.ndarray) -> list[np.ndarray]:
            return [value, value + 1]
    with pytest.raises(ValueError, match=r"as many devices; their numbers are \[1, 2\]"):
        _strategy._check_alike(Two(), 1)


def test_what_is_refused() -> None:
    for refused in (distribute.ParameterServerStrategy, distribute.experimental.TPUStrategy):
        with pytest.raises(tf.errors.UnimplementedError, match="MultiWorkerMirroredStrategy"):
            refused()
    with pytest.raises(ValueError, match="bytes_per_pack"):
        distribute.experimental.CommunicationOptions(bytes_per_pack=-1)


def test_models_know_their_strategy() -> None:
    strategy = distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
    assert model.distribute_strategy is strategy
    x, y = np.ones((8, 2), np.float32), np.zeros((8, 1), np.float32)
    history = model.fit(x, y, epochs=2, verbose=0)
    assert history.history["loss"][1] < history.history["loss"][0]
    assert model.predict(x, verbose=0).shape == (8, 1)
