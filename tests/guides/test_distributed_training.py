"""What the guide to distributed training shows: strategies, `fit` under one, loops of one's own, several processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from distribute import mpi
from guides.page import Page

import twofold as tf


@pytest.fixture
def guide(page: Page) -> Iterator[Page]:
    """The page on a processor that counts as two devices."""
    page.run("""
import numpy as np
import tensorflow as tf

processor = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()] * 2)
""")
    yield page
    cpu, = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()])


def test_there_is_a_strategy_for_each_set_of_devices(guide: Page) -> None:
    guide.run("""
distribute = tf.distribute
one = distribute.OneDeviceStrategy(device="/cpu:0")
all_devices = distribute.MirroredStrategy()
chosen = distribute.MirroredStrategy(devices=["/cpu:1"])
with_a_way = distribute.MirroredStrategy(cross_device_ops=distribute.HierarchicalCopyAllReduce())
central = distribute.experimental.CentralStorageStrategy()
options = distribute.experimental.CommunicationOptions(
    implementation=distribute.experimental.CommunicationImplementation.NCCL)
workers = distribute.MultiWorkerMirroredStrategy(communication_options=options)
""")
    guide.shows("print([s.num_replicas_in_sync for s in (one, all_devices, chosen, with_a_way, central, workers)])",
                "[1, 2, 1, 2, 2, 2]")
    guide.shows("distribute.get_strategy().num_replicas_in_sync", "1")
    for refused in ("ParameterServerStrategy", "TPUStrategy"):
        with pytest.raises(tf.errors.UnimplementedError):
            guide.run(f"distribute.{refused}()")


def test_fit_evaluate_and_predict_need_a_scope_alone(guide: Page) -> None:
    guide.run("""
mirrored = tf.distribute.MirroredStrategy()
with mirrored.scope():
  model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,), kernel_initializer="zeros",
                                                     kernel_regularizer=tf.keras.regularizers.L2(1e-3))])
  model.compile(loss="mse", optimizer="sgd")
pairs = tf.data.Dataset.from_tensors(([2.0], [3.0])).repeat(40).batch(10)
model.fit(pairs, epochs=2, verbose=0)
loss = model.evaluate(pairs, verbose=0)
arrays = model.fit(np.ones([12, 1]), np.ones([12, 1]), batch_size=8, epochs=1, verbose=0).history["loss"]
""")
    w, b = 0.0, 0.0
    for _ in range(8):  # steps of gradient descent on ten equal rows
        error = 2 * w + b - 3
        w, b = w - 0.01 * (4 * error + 2e-3 * w), b - 0.01 * 2 * error
    np.testing.assert_allclose(guide.names["loss"], (2 * w + b - 3) ** 2 + 1e-3 * w * w, rtol=1e-5)
    guide.shows("model.predict(np.ones([3, 1]), verbose=0).shape", "(3, 1)")


def test_batches_and_learning_rates_grow_with_the_replicas(guide: Page) -> None:
    guide.shows("""
mirrored = tf.distribute.MirroredStrategy()
of_a_replica, rates = 5, {5: 0.1, 10: 0.15}
of_all = of_a_replica * mirrored.num_replicas_in_sync
data = tf.data.Dataset.range(23).batch(of_all)
print(of_all, rates[of_all], [[len(part) for part in x.values] for x in mirrored.experimental_distribute_dataset(data)])
""", "10 0.15 [[5, 5], [5, 5], [2, 1]]")


LOOP = """
with strategy.scope():
  model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,), kernel_initializer="zeros",
                                                     kernel_regularizer=tf.keras.regularizers.L2(1e-3))])
  optimizer = tf.keras.optimizers.SGD(0.5)
  of_each = tf.keras.losses.BinaryCrossentropy(from_logits=True, reduction=tf.keras.losses.Reduction.NONE)
  right = tf.keras.metrics.BinaryAccuracy(threshold=0.0)
x = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
y = (x[:, :1] > x[:, 1:]).astype(np.float32)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
traces = []

def step(inputs):
  features, labels = inputs
  with tf.GradientTape() as tape:
    logits = model(features, training=True)
    loss = tf.nn.compute_average_loss(of_each(labels, logits), global_batch_size=8)
    loss += tf.nn.scale_regularization_loss(tf.add_n(model.losses))
  gradients = tape.gradient(loss, model.trainable_variables)
  optimizer.apply_gradients(zip(gradients, model.trainable_variables))
  right.update_state(labels, logits)
  return loss

@tf.function
def step_of_all(inputs):
  traces.append(1)
  return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, args=(inputs,)), axis=None)

losses = [float(step_of_all(batch)) for batch in strategy.experimental_distribute_dataset(data)]
accuracy = float(right.result())
"""


def expected() -> tuple[list[float], np.ndarray]:
    """The losses of a loop's steps, and the weights after them, by NumPy in float64."""
    x = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32).astype(np.float64)
    y = x[:, 0] > x[:, 1]
    w, b, losses = np.zeros(2), 0.0, []
    for at in range(0, 20, 8):
        rows, labels = x[at:at + 8], y[at:at + 8].astype(np.float64)
        logits = rows @ w + b
        losses.append(np.sum(np.logaddexp(0, logits) - labels * logits) / 8 + 1e-3 * (w @ w))
        error = (1 / (1 + np.exp(-logits)) - labels) / 8
        w, b = w - 0.5 * (rows.T @ error + 2e-3 * w), b - 0.5 * error.sum()
    return losses, np.append(w, b)


def test_a_loop_of_ones_own(guide: Page) -> None:
    guide.run("strategy = tf.distribute.MirroredStrategy()\n" + LOOP)
    losses, weights = expected()
    np.testing.assert_allclose(guide.names["losses"], losses, rtol=1e-5)
    learned = np.concatenate([w.ravel() for w in guide.names["model"].get_weights()])
    np.testing.assert_allclose(learned, weights, rtol=1e-4)
    assert len(guide.names["traces"]) <= 3  # not one for each batch


def test_iterators_are_asked_outside_and_inside_of_functions(guide: Page) -> None:
    guide.run("""
strategy = tf.distribute.MirroredStrategy()
data = strategy.experimental_distribute_dataset(tf.data.Dataset.range(12, output_type=tf.float32).batch(4))

def total(x):
  return strategy.reduce("SUM", strategy.run(tf.reduce_sum, args=(x,)), axis=None)

@tf.function
def some(iterator, count):
  all = 0.0
  for _ in tf.range(count):
    all += total(next(iterator))
  return all

@tf.function
def everything(data):
  all = 0.0
  for x in data:
    all += total(x)
  return all

iterator = iter(data)
first = total(next(iterator))
""")
    guide.shows("print(first.numpy(), some(iterator, tf.constant(2)).numpy(), everything(data).numpy())",
                "6.0 60.0 66.0")
    guide.shows("tf.function(lambda x: strategy.run(lambda x: x * 2.0, args=(x,)))(next(iter(data))).values[1].numpy()",
                "array([4., 6.], dtype=float32)")


def test_the_same_loop_in_several_processes(tmp_path: Path) -> None:
    told = mpi.told(LOOP + """
weights = [float(x) for w in model.get_weights() for x in w.ravel()]
tell({"losses": losses, "accuracy": accuracy, "weights": weights})
""", 2, tmp_path)
    losses, weights = expected()
    assert told[0] == told[1]
    np.testing.assert_allclose(told[0]["losses"], losses, rtol=1e-5)
    np.testing.assert_allclose(told[0]["weights"], weights, rtol=1e-4)
    assert 0.5 < told[0]["accuracy"] <= 1.0


def test_tf_config_names_the_processes(guide: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", json.dumps({
        "cluster": {"worker": ["host1:port", "host2:port"], "ps": ["host3:port"]},
        "task": {"type": "worker", "index": 1}}))
    guide.shows("""
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
print(resolver.task_type, resolver.task_id, resolver.cluster_spec().as_dict())
""", "worker 1 {'ps': ['host3:port'], 'worker': ['host1:port', 'host2:port']}")
