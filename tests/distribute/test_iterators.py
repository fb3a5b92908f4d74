"""Datasets whose elements have a part for each replica: their specs, optionals, parts of composite values; and what
functions in functions find of variables that each replica has for itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from distribute.cpus import logical_cpus

import twofold as tf


@pytest.fixture
def strategy() -> Iterator[tf.distribute.MirroredStrategy]:
    with logical_cpus(2):
        yield tf.distribute.MirroredStrategy()


def lists(element: Any) -> Any:
    return tf.nest.map_structure(lambda x: [v.numpy().tolist() for v in x.values], element)


def test_specs_and_optionals(strategy: Any) -> None:
    data = strategy.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices((tf.range(7.0), tf.range(7))).batch(4))
    iterator = iter(data)
    assert repr(data.element_spec[0]) == "PerReplicaSpec({0}, {0})".format(
        "TensorSpec(shape=(None,), dtype=tf.float32, name=None)")  # as in TensorFlow
    assert iterator.element_spec == data.element_spec
    first = iterator.get_next_as_optional()
    assert isinstance(first, tf.experimental.Optional) and first.has_value()
    assert lists(first.get_value()) == ([[0.0, 1.0], [2.0, 3.0]], [[0, 1], [2, 3]])
    assert lists(next(iterator))[1] == [[4, 5], [6]] and not iterator.get_next_as_optional().has_value()
    own = strategy.distribute_datasets_from_function(lambda about: tf.data.Dataset.range(8).batch(2))
    assert str(own.element_spec) == repr(tf.type_spec_from_value(next(iter(own)))).replace("(2,)", "(None,)")

    @tf.function
    def total(iterator: Any) -> Any:
        result = 0.0
        for _ in tf.range(3):
            element = iterator.get_next_as_optional()
            if element.has_value():
                x, _ = element.get_value()
                result += strategy.reduce("SUM", strategy.run(lambda x: tf.reduce_sum(x) * 2.0, (x,)), None)
        return result
    assert float(total(iter(data))) == 42.0


def test_parts_of_composite_values(strategy: Any) -> None:
    ragged = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3], [4, 5, 6]])).batch(3)
    parts, = strategy.experimental_distribute_dataset(ragged)
    assert [part.to_list() for part in parts.values] == [[[1], [2, 3]], [[4, 5, 6]]]
    sparse = tf.data.Dataset.from_tensor_slices(tf.sparse.from_dense([[1, 0], [0, 2], [3, 4]])).batch(3)
    parts, = strategy.experimental_distribute_dataset(sparse)
    assert [tf.sparse.to_dense(part).numpy().tolist() for part in parts.values] == [[[1, 0], [0, 2]], [[3, 4]]]


def test_functions_in_functions_count_in_replicas(strategy: Any) -> None:
    with strategy.scope():
        seen = tf.Variable(0.0, synchronization=tf.VariableSynchronization.ON_READ,
                           aggregation=tf.VariableAggregation.SUM)
    assert not seen.trainable

    @tf.function
    def step(x: Any) -> Any:
        return strategy.run(lambda x: [seen.assign_add(tf.reduce_sum(x)), seen.read_value()][1], (x,))

    @tf.function
    def outer(iterator: Any) -> Any:
        return step(next(iterator))
    iterator = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.range(8, output_type=tf.float32).batch(4)))
    assert lists(outer(iterator)) == [1.0, 5.0] and float(seen) == 6.0
    assert lists(outer(iterator)) == [10.0, 18.0] and float(seen) == 28.0


def test_what_replicas_have_of_one_strategy(strategy: Any) -> None:
    one, plain = tf.distribute.MirroredStrategy(["CPU:0"]), tf.Variable(1.0)
    with one.scope():
        v = tf.Variable(2.0)
    assert isinstance(v, tf.distribute.DistributedValues) and len(v.values) == 1
    assert one.extended.variable_created_in_scope(v) and not strategy.extended.variable_created_in_scope(v)
    assert tf.distribute.get_strategy().extended.variable_created_in_scope(plain)
    assert one.extended.value_container(v.values[0]) is v is one.extended.update(v, lambda copy: copy.assign_add(1.0))
    with one.scope(), pytest.raises(ValueError, match="created in this"), one.extended.colocate_vars_with(plain):
        pass
    with pytest.raises(RuntimeError, match="inside"), one.extended.colocate_vars_with(v):
        pass
    with pytest.raises(ValueError, match="made in the scope"):
        strategy.extended.update(plain, lambda copy: copy)
    with strategy.scope(), pytest.raises(ValueError, match="non-floating"):
        tf.Variable(1, aggregation=tf.VariableAggregation.MEAN)
    with pytest.raises(ValueError, match="one structure"):
        strategy.run(lambda: [1] * (1 + tf.distribute.get_replica_context().replica_id_in_sync_group))
