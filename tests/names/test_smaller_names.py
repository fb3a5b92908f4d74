"""Names that are there for programs that use them: parts of devices, logs instead of bars, Keras's older functions."""

import logging

import numpy as np
import pytest

import twofold as tf

K = tf.keras.backend
LABELS = np.float32([[1, 0, 0], [0, 0, 1]])
SAID = np.float32([[.7, .2, .1], [.3, .3, .4]])


def test_device_specs_are_written_and_read_as_tensorflow_does():
    spec = tf.DeviceSpec
    assert spec(job="w", task=1, device_type="gpu", device_index=0).to_string() == "/job:w/task:1/device:GPU:0"
    assert spec(device_type="GPU").to_string() == "/device:GPU:*" and spec().to_string() == ""
    for text, written in (("/job:ps/replica:0/task:2/CPU:*", "/job:ps/replica:0/task:2/device:CPU:*"),
                          ("/cpu:0", "/device:CPU:0"), ("/device:XYZ:1", "/device:XYZ:1"), ("", "")):
        assert spec.from_string(text).to_string() == written
    merged = spec(job="a", task=3).make_merged_spec(spec(job="b", device_type="CPU"))
    assert merged.to_string() == "/job:b/task:3/device:CPU:*" and merged.replace(task=None, job="a").job == "a"
    assert spec(job="a") == spec.from_string("/job:a") != spec(job="b") and len({spec(job="a"), spec(job="a")}) == 1
    for wrong, words in (("/foo:bar", "Unknown attribute 'foo'"), ("/CPU:0/GPU:1", "Multiple device types")):
        with pytest.raises(ValueError, match=words):
            spec.from_string(wrong)
    with tf.device(spec(job="localhost", device_type="CPU", device_index=0)):
        assert tf.constant(1.0).device.endswith("CPU:0")


def test_progress_is_logged_where_interactive_logging_is_off(capsys, caplog):
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    tf.keras.utils.disable_interactive_logging()
    try:
        with caplog.at_level(logging.INFO, "twofold"):
            model.fit(np.ones((4, 2)), np.ones((4, 1)), epochs=2)
        assert not tf.keras.config.is_interactive_logging_enabled()
    finally:
        tf.keras.config.enable_interactive_logging()
    lines = [record.getMessage() for record in caplog.records if record.name == "twofold"]
    assert [line for line in lines if line.startswith("Epoch")] == ["Epoch 1/2", "Epoch 2/2"]
    assert sum("loss: " in line for line in lines) == 2 and capsys.readouterr().out == ""


def test_older_functions_of_keras_give_what_keras_gives():
    def close(actual, wanted):
        np.testing.assert_allclose(actual.numpy(), wanted, atol=6e-6)
    close(K.binary_focal_crossentropy(LABELS, SAID), [[.0321, .00893, .00105], [.0321, .0321, .32986]])
    close(K.binary_focal_crossentropy(LABELS, SAID, True, from_logits=True), [
        [.0111, .18097, .15387], [.21144, .21144, .02066]])
    close(K.categorical_focal_crossentropy(LABELS, SAID), [.00803, .08247])
    close(K.categorical_focal_crossentropy(LABELS, SAID, from_logits=True), [.05516, .10714])
    x, filters = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2), np.ones((2, 2, 3, 2), np.float32)
    assert K.conv2d_transpose(x, filters, (1, 3, 3, 3)).numpy()[0, ..., 0].tolist() == [
        [1, 6, 5], [10, 28, 18], [9, 22, 13]]
    assert K.conv2d_transpose(x.transpose(0, 3, 1, 2), filters, (None, 3, 3, 3), data_format="channels_first").numpy()[
        0, 0, 1].tolist() == [10, 28, 18]
    labels = K.ctc_label_dense_to_sparse(np.int32([[1, 2], [3, 0]]), np.int32([2, 1]))
    assert labels.indices.numpy().tolist() == [[0, 0], [0, 1], [1, 0]] and labels.values.numpy().tolist() == [1, 2, 3]
    said = np.float32(np.random.default_rng(0).random((2, 4, 3)))
    said /= said.sum(-1, keepdims=True)
    close(K.ctc_batch_cost(np.int32([[0, 1], [1, 0]]), said, np.int32([[4], [3]]), np.int32([[2], [1]])),
          [[1.74489], [1.42021]])
    beams = {"greedy": False, "beam_width": 5}
    for settings, likely in (({}, [[2.61937], [1.81581]]), (beams, [[-1.4202], [-1.0878]])):
        (decoded,), scores = K.ctc_decode(said, np.int32([4, 3]), **settings)
        assert decoded.numpy().tolist() == [[0, 1, 0, -1], [0, 1, -1, -1]]
        close(scores, likely)


def test_sources_of_symbolic_tensors_and_views_of_objects():
    one, two, far = (tf.keras.Input((2,)) for _ in range(3))
    made = tf.keras.layers.Dense(1)(one + two) * one
    assert [t is s for t, s in zip(tf.keras.utils.get_source_inputs(made), (one, two), strict=True)] == [True, True]
    assert tf.keras.utils.get_source_inputs(far)[0] is far and tf.keras.utils.get_source_inputs(3) == 3
    model = tf.keras.Model([one, two], made)
    view = tf.train.TrackableView(model)
    assert {id(v) for v in model.variables} <= {id(x) for x in view.descendants()} and view.root is model


@pytest.mark.parametrize("label", [None, "y"])
def test_batches_of_features_of_examples(tmp_path, label):
    def number(n):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[n]))
    with tf.io.TFRecordWriter(str(tmp_path / "a")) as writer:
        for n in range(3):
            writer.write(tf.train.Example(features=tf.train.Features(
                feature={"x": number(n), "y": number(-n)})).SerializeToString())
    features = {name: tf.io.FixedLenFeature([], tf.int64) for name in "xy"}
    dataset = tf.data.experimental.make_batched_features_dataset(
        str(tmp_path / "*"), 2, features, label_key=label, num_epochs=2, shuffle=False)
    batches = list(dataset.as_numpy_iterator())
    inputs = [batch[0] if label else batch for batch in batches]
    assert [batch["x"].tolist() for batch in inputs] == [[0, 1], [2, 0], [1, 2]] and ("y" in inputs[0]) == (not label)
    if label:
        assert batches[1][1].tolist() == [-2, 0]
