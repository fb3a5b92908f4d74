"""`tf.summary`: what is written comes back through TensorBoard's own reader."""

import gc
import io
import os
import threading
import wave

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto import config_pb2, graph_pb2, summary_pb2

import twofold as tf
from twofold._formats import png as _png


@pytest.fixture
def log(tmp_path):
    class Log:
        folder = str(tmp_path / "logs")
        writer = tf.summary.create_file_writer(str(tmp_path / "logs"))

        def read(self):
            self.writer.close()
            actual = EventAccumulator(self.folder, size_guidance={"tensors": 0})
            actual.Reload()
            return actual

        def numbers(self, tag):
            return [(e.step, e.tensor_proto.float_val[0]) for e in self.read().Tensors(tag)]
    return Log()


@pytest.mark.parametrize("compiled", [False, True])
def test_scalars_in_both_modes(log, compiled):
    def step(x, n):
        tf.summary.scalar("loss", tf.reduce_sum(x), step=n)
        with tf.name_scope("outer"):
            return tf.summary.scalar("loss", x[0] * 2.0, step=n, description="*twice*")
    step = tf.function(step, fallback=False) if compiled else step
    with log.writer.as_default():
        for n in range(3):
            assert bool(step(tf.constant([1.0, float(n)]), tf.constant(n, tf.int64)))
    assert log.numbers("loss") == [(0, 1.0), (1, 2.0), (2, 3.0)]
    assert log.numbers("outer/loss") == [(0, 2.0), (1, 2.0), (2, 2.0)]
    assert log.read().SummaryMetadata("outer/loss").summary_description == "*twice*"


@pytest.mark.parametrize("compiled", [False, True])
def test_tags_of_whatever_characters(log, compiled):
    def step(x):
        with tf.name_scope("outer"):
            tf.summary.scalar("scales[0]", x, step=1)
            with tf.summary.experimental.summary_scope("a b[1]") as (tag, scope):
                assert (tag, scope) == ("outer/a b[1]", "outer/ab1/")
    with log.writer.as_default():
        (tf.function(step, fallback=False) if compiled else step)(tf.constant(2.0))
    assert log.numbers("outer/scales[0]") == [(1, 2.0)]


def test_steps_from_the_context(log):
    step = tf.Variable(5, dtype=tf.int64)
    record = tf.function(lambda: tf.summary.scalar("x", 1.0))
    with log.writer.as_default(step=step):
        record()
        step.assign(8)
        record()
        tf.summary.scalar("x", 1.0)
    assert [at for at, _ in log.numbers("x")] == [5, 8, 8]
    with tf.summary.create_noop_writer().as_default(), pytest.raises(ValueError, match="No step set"):
        tf.summary.scalar("x", 1.0)


@pytest.mark.parametrize("compiled", [False, True])
def test_conditions(log, compiled):
    def step(n):
        with tf.summary.record_if(lambda: n % 2 == 0):
            tf.summary.scalar("even", 1.0, step=n)
        with tf.summary.record_if(False):
            tf.summary.scalar("never", 1.0, step=n)
    step = tf.function(step, fallback=False) if compiled else step
    with log.writer.as_default():
        for n in range(4):
            step(tf.constant(n, tf.int64))
        assert tf.summary.should_record_summaries()
    assert not tf.summary.should_record_summaries()
    assert [at for at, _ in log.numbers("even")] == [0, 2]
    assert "never" not in log.read().Tags()["tensors"]


def test_order_in_a_function_is_the_programs(log):
    @tf.function
    def loop(x):
        for i in tf.range(4):
            tf.summary.scalar("a", x, step=tf.cast(i, tf.int64))
            x = x * 2.0
        return x
    with log.writer.as_default():
        loop(tf.constant(1.0))
    assert log.numbers("a") == [(0, 1.0), (1, 2.0), (2, 4.0), (3, 8.0)]


def test_histograms(log):
    x = np.random.default_rng(0).standard_normal(1000)
    with log.writer.as_default(step=1):
        tf.summary.histogram("h", x, buckets=10)
        tf.summary.histogram("empty", tf.zeros([0]))
    [event] = log.read().Tensors("h")
    rows = np.frombuffer(event.tensor_proto.tensor_content, np.float64).reshape(10, 3)
    counts, edges = np.histogram(x, 10)
    assert rows[:, 2].tolist() == counts.tolist()
    np.testing.assert_allclose(rows[:, 0], edges[:-1])


def test_images_decode_to_the_same_pixels(log):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (4, 5, 7, 3), np.uint8)
    with log.writer.as_default(step=0):
        tf.summary.image("i", pixels, max_outputs=2)
        tf.summary.image("f", pixels[..., :1].astype(np.float32) / 255.0)
    strings = log.read().Tensors("i")[0].tensor_proto.string_val
    assert list(strings[:2]) == [b"7", b"5"]
    assert len(strings) == 4
    for n, data in enumerate(strings[2:]):
        assert np.array_equal(np.asarray(image.open(io.BytesIO(data))), pixels[n])
    grey = log.read().Tensors("f")[0].tensor_proto.string_val
    assert len(grey) == 5
    assert np.array_equal(np.asarray(image.open(io.BytesIO(grey[2]))), pixels[0, ..., 0])


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_of_every_kind(channels):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(channels).integers(0, 256, (6, 3, channels), np.uint8)
    actual = np.asarray(image.open(io.BytesIO(_png.encode(pixels))))
    assert np.array_equal(actual.reshape(pixels.shape), pixels)
    for bad in (pixels.astype(np.float32), pixels[:0], np.zeros((2, 2, 5), np.uint8)):
        with pytest.raises(ValueError, match="PNG"):
            _png.encode(bad)


def test_encode_png():
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (2, 3, 6, 5, 3), np.uint8)
    compiled = tf.function(tf.io.encode_png, input_signature=[tf.TensorSpec([2, None, None, None, 3], tf.uint8)])
    for files in (tf.io.encode_png(pixels), tf.io.encode_png(pixels, compression=0), compiled(pixels)):
        assert files.shape == (2, 3) and files.dtype == tf.string
        for n, file in np.ndenumerate(files.numpy()):
            assert np.array_equal(np.asarray(image.open(io.BytesIO(file))), pixels[n])
    assert tf.io.encode_png(pixels[:, :0]).shape == (2, 0)
    deep = rng.integers(0, 1 << 16, (6, 5, 1), np.uint16)
    assert np.array_equal(np.asarray(image.open(io.BytesIO(tf.io.encode_png(deep).numpy()))), deep[..., 0])
    for bad, match in ((pixels.astype(np.float32), "uint8 or uint16"), (deep[..., 0], "height, width, channels"),
                       (np.zeros((2, 2, 5), np.uint8), "1 to 4"), (pixels[..., :0, :], "pixels in it")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=match):
            tf.io.encode_png(bad)
    with pytest.raises(tf.errors.InvalidArgumentError, match="compression"):
        tf.io.encode_png(deep, compression=10)


def test_text_and_sound(log):
    tone = np.sin(np.arange(100.0) / 5)[None, :, None].astype(np.float32)
    with log.writer.as_default(step=0):
        tf.summary.text("t", "**bold**")
        tf.summary.text("table", [["a", "b"], ["c", "d"]])
        tf.summary.audio("tone", tone, 8000)
    actual = log.read()
    assert list(actual.Tensors("t")[0].tensor_proto.string_val) == [b"**bold**"]
    assert [d.size for d in actual.Tensors("table")[0].tensor_proto.tensor_shape.dim] == [2, 2]
    with wave.open(io.BytesIO(actual.Tensors("tone")[0].tensor_proto.string_val[0])) as file:
        assert (file.getframerate(), file.getnframes(), file.getnchannels()) == (8000, 100, 1)
        samples = np.frombuffer(file.readframes(100), "<i2")
    wanted = np.minimum(np.round(tone[0, :, 0] * 32768), 32767)  # as TensorFlow's files have it
    assert samples.tolist() == wanted.tolist()


def test_floats_become_the_bytes_that_tensorflow_writes(log):
    image = pytest.importorskip("PIL.Image")
    with log.writer.as_default(step=0):
        tf.summary.image("i", np.array([-1.0, 0.0, 0.25, 0.5, 0.75, 0.999, 1.0, 2.0], np.float32).reshape(1, 2, 4, 1))
        sound = np.array([-2.0, -1.0, -0.25, 0.0, 0.23840319, 0.8607957, 1.0, 2.0])
        tf.summary.audio("a", sound.reshape(1, 8, 1), 8000)
    actual = log.read()
    pixels = np.asarray(image.open(io.BytesIO(actual.Tensors("i")[0].tensor_proto.string_val[2])))
    assert pixels.ravel().tolist() == [0, 0, 63, 127, 191, 255, 255, 255]
    with wave.open(io.BytesIO(actual.Tensors("a")[0].tensor_proto.string_val[0])) as file:
        samples = np.frombuffer(file.readframes(8), "<i2")
    assert samples.tolist() == [-32768, -32768, -8192, 0, 7812, 28207, 32767, 32767]


def test_messages_made_elsewhere(log):
    made = summary_pb2.Summary()
    made.value.add(tag="raw", simple_value=3.0)
    about = tf.compat.v1.SummaryMetadata()
    assert type(about) is summary_pb2.SummaryMetadata and isinstance(made, tf.compat.v1.summary.Summary)
    about.plugin_data.plugin_name = "mine"
    with log.writer.as_default(step=2):
        tf.summary.experimental.write_raw_pb(made.SerializeToString())
        tf.summary.write("tensor", tf.constant([[1, 2]]), metadata=about)
    actual = log.read()
    assert actual.Scalars("raw")[0].value == 3.0
    assert actual.SummaryMetadata("tensor").plugin_data.plugin_name == "mine"


def test_graphs(log):
    @tf.function
    def f(x):
        if tf.reduce_sum(x) > 0.0:
            x = tf.tanh(x)
        return x + 1.0
    with log.writer.as_default():
        tf.summary.graph(f.get_concrete_function(tf.TensorSpec([None])).graph)
    names = {node.name for node in log.read().Graph().node}
    assert "x" in names
    assert any(name.startswith("cond/region_0/tanh") for name in names)


def test_traces_hold_the_functions_that_ran(log):
    f, g, h = (tf.function(fn) for fn in (lambda x: tf.tanh(x), lambda x: tf.sin(x), lambda x: tf.cos(x)))
    x = tf.constant(1.0)
    for _ in range(3):
        f(x)  # so often that native code serves it
    with log.writer.as_default(step=0):
        tf.summary.trace_on()
        f(x)
        g(x)
        g(x)
        tf.summary.trace_export("ran")
        h(x)
        with pytest.raises(ValueError, match="trace_on"):
            tf.summary.trace_export("again")
        tf.summary.trace_on()
        tf.summary.trace_off()
    [event] = log.read().Tensors("ran")
    told = config_pb2.RunMetadata.FromString(event.tensor_proto.string_val[0])
    ops = [[node.op for node in each.pre_optimization_graph.node] for each in told.function_graphs]
    assert [("tanh" in o, "sin" in o) for o in ops] == [(True, False), (False, True)]
    assert isinstance(told.partition_graphs[0], graph_pb2.GraphDef)


def test_writers_of_threads_are_their_own(log):
    seen = []
    with log.writer.as_default(step=0):
        thread = threading.Thread(target=lambda: seen.append(bool(tf.summary.scalar("x", 1.0))))
        thread.start()
        thread.join()
        assert bool(tf.summary.scalar("x", 1.0))
    assert seen == [False]


def test_a_writer_that_nobody_holds_closes_its_file(tmp_path):
    writer = tf.summary.create_file_writer(tmp_path / "logs")
    with writer.as_default(step=0):
        tf.summary.scalar("x", 1.0)
    before = threading.active_count()
    del writer
    gc.collect()
    assert threading.active_count() < before
    [name] = os.listdir(tmp_path / "logs")
    assert name.startswith("events.out.tfevents.")
    assert name.endswith(".v2")


def test_errors(log):
    with log.writer.as_default(step=0):
        with pytest.raises(ValueError, match="to be a scalar"):
            tf.summary.scalar("x", [1.0, 2.0])
        with pytest.raises(ValueError, match=r"\[count, height, width, channels\]"):
            tf.summary.image("x", tf.zeros([2, 2]))
        with pytest.raises(TypeError, match="to be text"):
            tf.summary.text("x", 3)
        with pytest.raises(ValueError, match="encoding"):
            tf.summary.audio("x", tf.zeros([1, 2, 1]), 8000, encoding="mp3")
        with pytest.raises(TypeError, match="expected a graph"):
            tf.summary.graph(3)
    log.writer.close()
    with pytest.raises(RuntimeError, match="already closed"), log.writer.as_default(step=0):
        pass
