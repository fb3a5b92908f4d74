"""The TensorBoard callback: what it writes comes back through TensorBoard's own reader."""

from __future__ import annotations

import gzip
import io
import json

import numpy as np
import pytest
from google.protobuf import text_format
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto import config_pb2, graph_pb2
from tensorboard.plugins import projector
from tensorboard.plugins.graph import keras_util
from tensorboard.util.tensor_util import make_ndarray

import twofold as tf
from twofold import keras

layers = keras.layers
X = np.random.RandomState(0).rand(16, 3).astype(np.float32)
Y = X.sum(1, keepdims=True)


def model_of(**compiled):
    model = keras.Sequential([keras.Input((3,)), layers.Dense(2, name="first"), layers.Dense(1, name="second")])
    model.compile(**{"optimizer": keras.optimizers.SGD(0.125), "loss": "mse", "metrics": ["mae"], **compiled})
    return model


def fit(model, board, **options):
    return model.fit(X, Y, **{"verbose": 0, "shuffle": False, "batch_size": 4, "callbacks": [board], **options}).history


def read(folder):
    actual = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    actual.Reload()
    return actual


def numbers(folder, tag):
    return [(e.step, pytest.approx(float(make_ndarray(e.tensor_proto)))) for e in read(folder).Tensors(tag)]


def tags(folder):
    return set(read(folder).Tags()["tensors"])


def test_values_of_epochs(tmp_path):
    history = fit(model_of(), keras.callbacks.TensorBoard(tmp_path), epochs=3, validation_data=(X, Y))
    for name in ("loss", "mae"):
        assert numbers(tmp_path / "train", f"epoch_{name}") == list(enumerate(history[name]))
        assert numbers(tmp_path / "validation", f"epoch_{name}") == list(enumerate(history[f"val_{name}"]))
        assert numbers(tmp_path / "validation", f"evaluation_{name}_vs_iterations") == list(
            zip([4, 8, 12], history[f"val_{name}"], strict=True))
    assert numbers(tmp_path / "train", "epoch_learning_rate") == [(n, 0.125) for n in range(3)]
    assert not any(tag.startswith("batch") for tag in tags(tmp_path / "train"))


@pytest.mark.parametrize(("freq", "steps"), [("batch", range(1, 9)), (3, [3, 6])])
def test_values_of_batches(tmp_path, freq, steps):
    losses = []
    note = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: losses.append(logs["loss"]))
    fit(model_of(), keras.callbacks.TensorBoard(tmp_path, update_freq=freq), epochs=2)
    fit(model_of(), note, epochs=2)
    assert [step for step, _ in numbers(tmp_path / "train", "batch_loss")] == list(steps)
    board = keras.callbacks.TensorBoard(tmp_path / "same", update_freq=freq)
    losses.clear()
    model_of().fit(X, Y, verbose=0, shuffle=False, batch_size=4, epochs=2, callbacks=[board, note])
    assert numbers(tmp_path / "same" / "train", "batch_loss") == [(n, losses[n - 1]) for n in steps]


def test_steps_per_second(tmp_path):
    fit(model_of(), keras.callbacks.TensorBoard(tmp_path, write_steps_per_second=True, update_freq=1), epochs=2)
    for tag, count in (("epoch_steps_per_second", 2), ("batch_steps_per_second", 8)):
        speeds = [float(make_ndarray(e.tensor_proto)) for e in read(tmp_path / "train").Tensors(tag)]
        assert len(speeds) == count and all(0 < speed < 1e6 for speed in speeds)


def test_histograms_and_images_of_weights(tmp_path):
    model = keras.Sequential([keras.Input((8, 8, 1)), layers.Conv2D(5, 3, name="conv"),
                              layers.GlobalAveragePooling2D(), layers.Dense(2, name="dense")])
    model.compile("sgd", "mse")
    board = keras.callbacks.TensorBoard(tmp_path, histogram_freq=2, write_images=True)
    model.fit(np.ones((4, 8, 8, 1), np.float32), np.ones((4, 2), np.float32), epochs=3, verbose=0, callbacks=[board])
    actual = read(tmp_path / "train")
    kinds = {tag for tag in actual.Tags()["tensors"] if tag.endswith(("/histogram", "/image"))}
    assert kinds == {f"{name}/{kind}" for name in ("conv/kernel", "conv/bias", "dense/kernel", "dense/bias")
                     for kind in ("histogram", "image")}
    events = actual.Tensors("dense/kernel/histogram")
    assert [e.step for e in events] == [0, 2]
    buckets = make_ndarray(events[-1].tensor_proto)
    kernel = model.get_layer("dense").get_weights()[0]
    assert buckets[:, 2].sum() == kernel.size
    assert (buckets[0, 0], buckets[-1, 1]) == pytest.approx((kernel.min(), kernel.max()))
    sizes = {tag: [int(x) for x in make_ndarray(actual.Tensors(tag)[0].tensor_proto)[:2]]
             for tag in kinds if tag.endswith("image")}  # width, height
    assert sizes == {"conv/kernel/image": [3, 3], "conv/bias/image": [1, 5], "dense/kernel/image": [5, 2],
                     "dense/bias/image": [1, 2]}
    assert len(make_ndarray(actual.Tensors("conv/kernel/image")[0].tensor_proto)) == 2 + 3  # three images at most


def test_the_model_and_the_graph_of_its_step(tmp_path):
    model = model_of()
    fit(model, keras.callbacks.TensorBoard(tmp_path))
    actual = read(tmp_path / "train")
    event = actual.Tensors("keras")[0]
    assert actual.SummaryMetadata("keras").plugin_data.plugin_name == "graph_keras_model"
    assert json.loads(make_ndarray(event.tensor_proto).item()) == json.loads(model.to_json())
    drawn = keras_util.keras_model_to_graph_def(json.loads(make_ndarray(event.tensor_proto).item()))
    assert [node.name.split("/", 1)[1] for node in drawn.node][-2:] == ["first", "second"]
    assert list(drawn.node[-1].input) == [drawn.node[-2].name]
    graph = graph_pb2.GraphDef.FromString(actual.Graph().SerializeToString())
    assert [node.op for node in graph.node].count("matmul") >= 3  # forwards and backwards
    fit(model_of(), keras.callbacks.TensorBoard(tmp_path / "none", write_graph=False))
    assert tags(tmp_path / "none" / "train") == {"epoch_loss", "epoch_mae", "epoch_learning_rate"}
    with pytest.raises(ValueError, match="no graph"):
        read(tmp_path / "none" / "train").Graph()


@pytest.mark.parametrize(("batches", "last"), [(2, 2), ((2, 3), 3), ("2,3", 3)])
def test_a_profile_of_batches(tmp_path, batches, last):
    fit(model_of(), keras.callbacks.TensorBoard(tmp_path, profile_batch=batches))
    (file,) = (tmp_path / "train" / "plugins" / "profile").glob("*/*.trace.json.gz")
    with gzip.open(file, "rt") as trace:
        events = json.load(trace)["traceEvents"]
    calls = [e for e in events if e.get("name", "").startswith("train_step")]
    assert len(calls) == last - 1
    event = read(tmp_path / "train").Tensors(f"batch_{last}")[0]
    told = config_pb2.RunMetadata.FromString(make_ndarray(event.tensor_proto).item())
    assert event.step == last and len(told.function_graphs) == 1
    tf.profiler.experimental.start(str(tmp_path))  # ours is over
    tf.profiler.experimental.stop(save=False)


def test_a_profile_of_somebody_else_is_left_alone(tmp_path):
    tf.profiler.experimental.start(str(tmp_path / "own"))
    with pytest.warns(UserWarning, match="no profile of batch 1"):
        fit(model_of(), keras.callbacks.TensorBoard(tmp_path, profile_batch=1))
    tf.profiler.experimental.stop()
    assert (tmp_path / "own" / "plugins").exists() and not (tmp_path / "train" / "plugins").exists()


@pytest.mark.parametrize("wrong", [-1, (3, 2), (1, 2, 3), 1.5, None])
def test_profiles_of_no_batches(wrong):
    with pytest.raises(ValueError, match="profile_batch must be"):
        keras.callbacks.TensorBoard(profile_batch=wrong)


class Telling(keras.Model):
    """A model that writes summaries of its own."""

    def __init__(self):
        super().__init__(name="telling")
        self.dense = layers.Dense(1)

    def call(self, x):
        tf.summary.scalar("mean", tf.reduce_mean(x))
        return self.dense(x)


@pytest.mark.parametrize("count", [1, 2])
def test_summaries_of_the_models_own(tmp_path, count):
    model = Telling()
    model.compile("sgd", "mse", steps_per_execution=count)
    means = [float(X[n:n + 4].mean()) for n in range(0, 16, 4)]
    board = keras.callbacks.TensorBoard(tmp_path / "a", update_freq=2 // count)
    for n in range(2):  # a second training, with a file of its own, by the same compiled step
        board.log_dir = str(tmp_path / "ab"[n])
        fit(model, board, epochs=1, validation_data=(X[:4], Y[:4]), validation_batch_size=2)
    traces = model.make_train_function().compiled.experimental_get_tracing_count()
    assert traces == 0  # without a writer, there is another step, which has not been needed yet
    for name in "ab":
        got = [value for _, value in numbers(tmp_path / name / "train", "telling/mean")]
        assert got == (means if count == 2 else means[1::2])
    fit(model, keras.callbacks.History())  # writes nothing, and needs no file
    assert len(numbers(tmp_path / "b" / "train", "telling/mean")) == len(got)
    assert "telling/mean" in tags(tmp_path / "b" / "validation")


def test_summaries_of_an_evaluation(tmp_path):
    model = Telling()
    model.compile("sgd", "mse", metrics=["mae"])
    fit(model, keras.callbacks.History())
    actual = model.evaluate(X, Y, verbose=0, callbacks=[keras.callbacks.TensorBoard(tmp_path, update_freq=1)])
    assert numbers(tmp_path / "validation", "evaluation_mae_vs_iterations") == [(4, actual[1])]
    assert numbers(tmp_path / "validation", "telling/mean") == [(1, float(X.mean()))]


def test_tables_for_the_projector(tmp_path):
    model = keras.Sequential([keras.Input((4,), dtype="int32"), layers.Embedding(5, 2, name="words"),
                              layers.Flatten(), layers.Dense(1)])
    model.compile("sgd", "mse")
    board = keras.callbacks.TensorBoard(tmp_path, embeddings_freq=1, embeddings_metadata={"words": "words.tsv"})
    model.fit(np.arange(8).reshape(2, 4) % 5, np.ones((2, 1)), epochs=2, verbose=0, callbacks=[board])
    config = text_format.Parse((tmp_path / "projector_config.pbtxt").read_text(), projector.ProjectorConfig())
    (entry,) = config.embeddings
    assert (entry.tensor_name, entry.metadata_path, list(entry.tensor_shape)) == ("words", "words.tsv", [5, 2])
    table = np.loadtxt(io.StringIO((tmp_path / entry.tensor_path).read_text()), delimiter="\t", dtype=np.float32)
    assert np.array_equal(table, model.get_layer("words").get_weights()[0])
    board = keras.callbacks.TensorBoard(tmp_path, embeddings_freq=1, embeddings_metadata={"other": "a"})
    with pytest.raises(ValueError, match="Unrecognized `Embedding` layer names"):
        model.fit(np.zeros((2, 4)), np.ones((2, 1)), verbose=0, callbacks=[board])
