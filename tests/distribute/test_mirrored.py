"""`MirroredStrategy`: a copy of each variable for each replica of this process, and what becomes of assignments."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distribute import mpi
from distribute.cpus import logical_cpus

import twofold as tf

COUNT = 3


@pytest.fixture
def strategy() -> Iterator[tf.distribute.MirroredStrategy]:
    with logical_cpus(COUNT):
        yield tf.distribute.MirroredStrategy()


def number() -> Any:
    context: Any = tf.distribute.get_replica_context()
    return tf.constant(float(context.replica_id_in_sync_group))


def values(strategy: Any, variable: Any) -> list[float]:
    """What each replica reads."""
    return [float(v) for v in strategy.experimental_local_results(strategy.run(lambda: variable.read_value()))]


def variable(strategy: Any, value: float, **options: Any) -> Any:
    with strategy.scope():
        return tf.Variable(value, **options)


WRITE, READ = tf.VariableSynchronization.ON_WRITE, tf.VariableSynchronization.ON_READ
NONE, SUM, MEAN, FIRST = (tf.VariableAggregation[name] for name in ("NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("aggregation", "assigned", "added"), [(SUM, 3.0, 13.0), (MEAN, 1.0, 11.0),
                                                                (FIRST, 0.0, 10.0)])
def test_assignments_in_replicas(strategy: Any, aggregation: Any, assigned: float, added: float,
                                 compiled: bool) -> None:
    v = variable(strategy, 10.0, aggregation=aggregation)

    def add() -> None:
        v.assign_add(number())

    def assign() -> None:
        v.assign(number())
    strategy.run(tf.function(add) if compiled else add)
    assert values(strategy, v) == [added] * COUNT and float(v) == added
    strategy.run(tf.function(assign) if compiled else assign)
    assert values(strategy, v) == [assigned] * COUNT
    v.assign(4.0)
    assert values(strategy, v) == [4.0] * COUNT and float(v.assign_sub(1.0)) == 3.0
    assert values(strategy, v) == [3.0] * COUNT


def test_without_an_aggregation_each_replica_assigns_its_own(strategy: Any) -> None:
    v = variable(strategy, 1.0)
    strategy.run(lambda: v.assign(number()))
    assert values(strategy, v) == [0.0, 1.0, 2.0] and float(v) == 0.0
    v.assign_add(1.0)
    assert values(strategy, v) == [1.0, 2.0, 3.0]
    assert values(strategy, v.assign(2.0)) == [2.0] * COUNT


@pytest.mark.parametrize(("aggregation", "joined", "reset"), [(SUM, 6.0, [5.0, 0.0, 0.0]), (MEAN, 2.0, [5.0] * 3)])
def test_variables_that_are_joined_when_they_are_read(strategy: Any, aggregation: Any, joined: float,
                                                      reset: list[float]) -> None:
    v = variable(strategy, 0.0, synchronization=READ, aggregation=aggregation)
    strategy.run(lambda: v.assign_add(number() + 1.0))
    assert values(strategy, v) == [1.0, 2.0, 3.0] and float(v) == joined == v.numpy() == float(v + 0.0)
    v.assign(5.0)
    assert values(strategy, v) == reset and float(v) == 5.0


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_are_those_of_the_replica(strategy: Any, compiled: bool) -> None:
    v = variable(strategy, 2.0)

    def slope() -> Any:
        with tf.GradientTape() as tape:
            y = v * v * (number() + 1.0)
        assert tape.watched_variables() == (v,)
        return tape.gradient(y, v)
    slopes = strategy.run(tf.function(slope) if compiled else slope)
    assert [float(s) for s in strategy.experimental_local_results(slopes)] == [4.0, 8.0, 12.0]
    assert isinstance(v, tf.Variable)


def test_checkpoints(strategy: Any, tmp_path: Path) -> None:
    v = variable(strategy, 2.0)
    seen = variable(strategy, 0.0, synchronization=READ, aggregation=SUM)
    strategy.run(lambda: seen.assign_add(number()))
    path = tf.train.Checkpoint(v=v, seen=seen).save(str(tmp_path / "c"))
    v.assign(7.0), seen.assign(7.0)
    tf.train.Checkpoint(v=v, seen=seen).restore(path)
    assert values(strategy, v) == [2.0] * COUNT and float(seen) == 3.0
    plain = tf.Variable(0.0)
    tf.train.Checkpoint(seen=plain).restore(path).expect_partial()
    assert float(plain) == 3.0


def test_copies_and_wrong_values(strategy: Any) -> None:
    v = variable(strategy, 2.0)
    other = copy.deepcopy(v)
    v.assign(3.0)
    assert values(strategy, other) == [2.0] * COUNT and values(strategy, v) == [3.0] * COUNT
    with strategy.scope():
        optimizer = tf.keras.optimizers.Adam()
        optimizer.build([v])
    assert len(copy.deepcopy(optimizer).variables) == len(optimizer.variables)
    for wrong in (lambda: v.assign_add(tf.constant(1)), lambda: v.assign_add([1.0, 2.0])):
        with pytest.raises((tf.errors.InvalidArgumentError, TypeError, ValueError)):
            wrong()
    assert values(strategy, v) == [3.0] * COUNT


def test_layers_in_replicas(strategy: Any) -> None:
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.BatchNormalization(momentum=0.0),
                                     tf.keras.layers.Dropout(0.5, seed=1)])
    x = tf.random.normal([6, 5])
    outputs = strategy.experimental_local_results(strategy.run(lambda: model(x, training=True)))
    assert len({o.numpy().tobytes() for o in outputs}) == COUNT  # each drops its own
    means = strategy.experimental_local_results(strategy.run(lambda k: (
        model.layers[1].moving_mean.assign(tf.ones([4]) * k), model.layers[1].moving_mean.read_value())[1],
        (strategy.experimental_distribute_values_from_function(lambda about: about.replica_id_in_sync_group + 1.0),)))
    assert [float(m[0]) for m in means] == [1.0, 2.0, 3.0]
    assert model.layers[1].moving_mean.numpy().tolist() == [2.0] * 4


def test_devices_must_differ(strategy: Any) -> None:
    assert strategy.num_replicas_in_sync == COUNT
    assert [name[-5:] for name in tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:2"]).extended.worker_devices] == [
        "CPU:0", "CPU:2"]
    with tf.distribute.get_strategy().extended.colocate_vars_with(tf.Variable(1.0)):
        assert tf.Variable(2.0).numpy() == 2.0
    with pytest.raises(ValueError, match="devices must differ"):
        tf.distribute.MirroredStrategy(["/cpu:0", "CPU:0"])
    with pytest.raises(ValueError, match="Only a CPU"):
        tf.config.set_logical_device_configuration("GPU:0", [tf.config.LogicalDeviceConfiguration()])


ASSIGNING = """
kinds = tf.VariableAggregation
def number():
    return tf.constant(tf.distribute.get_replica_context().replica_id_in_sync_group + 1.0)
def every(variable):  # what all replicas read
    return strategy.gather(strategy.run(lambda: tf.reshape(variable.read_value(), [1])), 0).numpy().tolist()
seen = {}
with strategy.scope():
    plain = tf.Variable(1.0)
    written = {kind.name: tf.Variable(10.0, aggregation=kind)
               for kind in (kinds.SUM, kinds.MEAN, kinds.ONLY_FIRST_REPLICA)}
    read = {kind.name: tf.Variable(0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=kind)
            for kind in (kinds.SUM, kinds.MEAN)}
    metric = tf.keras.metrics.Mean()
    norm = tf.keras.layers.BatchNormalization(momentum=0.0)
for run in (strategy.run, tf.function(strategy.run)):
    run(lambda: [plain.assign(number()), None][1])
    seen.setdefault("none", []).append(every(plain))
    for name, v in written.items():
        for method in ("assign_add", "assign_sub", "assign"):
            run(lambda: [getattr(v, method)(number() * 0.1), None][1])
            seen.setdefault(name, []).append((every(v), float(v)))
    for name, v in read.items():
        run(lambda: [v.assign_add(number() * 0.1), None][1])
        seen.setdefault("read " + name, []).append((every(v), float(v), v.numpy().item(), float(v * 2.0)))
        v.assign(v + 1.0)
        seen["read " + name].append((every(v), float(v), float(tf.function(lambda: v + 0.0)())))
    run(lambda: [metric.update_state(number()), None][1])
    seen.setdefault("metric", []).append(float(metric.result()))
metric.reset_state()
seen["metric"].append(float(metric.result()))
strategy.run(lambda: norm(tf.fill([2, 3], number()), training=True))
seen["mean"] = norm.moving_mean.numpy().tolist()
own = [w.tolist() for w in norm.get_weights()]  # what the others need not do
tell(seen)
"""


def test_assignments_are_the_same_in_threads_and_processes(tmp_path: Path) -> None:
    threads, = mpi.told(MIRRORED.replace("* 4", "* 2") + ASSIGNING, 1, tmp_path / "threads")
    assert threads["none"] == [[1.0, 2.0]] * 2 and threads["metric"] == [1.5, 1.5, 0.0] and threads["mean"] == [1.5] * 3
    assert mpi.told(ASSIGNING, 2, tmp_path / "processes") == [threads] * 2


MIRRORED = """
cpu, = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
strategy = tf.distribute.MirroredStrategy()
"""
BOTH = MIRRORED.replace("* 4", "* 2").replace("MirroredStrategy", "MultiWorkerMirroredStrategy")
TRAINING = """
tf.random.set_seed(1)
np.random.seed(1)
x = np.random.default_rng(0).normal(size=(70, 6)).astype(np.float32)
y = (x.sum(1) > 0).astype(np.int64)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(8, "relu", kernel_regularizer="l2"),
                                 tf.keras.layers.BatchNormalization(), tf.keras.layers.Dropout(0.3),
                                 tf.keras.layers.Dense(2)])
    model.compile(tf.keras.optimizers.Adam(0.01), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"])
history = model.fit(x, y, batch_size=16, epochs=3, validation_data=(x[:31], y[:31]), verbose=0, steps_per_epoch=None)
tail = model.fit(x[:18], y[:18], batch_size=16, epochs=1, shuffle=False, verbose=0)  # two rows for four replicas
tell({"history": history.history, "tail": tail.history, "weights": [w.tolist() for w in model.get_weights()],
      "outputs": model.predict(x[:33], batch_size=16, verbose=0).tolist()})
"""


def test_replicas_of_one_process_have_the_bits_of_processes(tmp_path: Path) -> None:
    threads, = mpi.told(MIRRORED + TRAINING, 1, tmp_path / "threads")
    processes = mpi.told(TRAINING, 4, tmp_path / "processes")
    both = mpi.told(BOTH + TRAINING, 2, tmp_path / "both")
    for one in [*processes, *both]:
        assert one["weights"] == threads["weights"] and one["outputs"] == threads["outputs"]
        for kind in ("history", "tail"):
            for name, wanted in threads[kind].items():
                np.testing.assert_allclose(one[kind][name], wanted, rtol=1e-6)
