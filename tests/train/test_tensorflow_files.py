"""Reading checkpoints that TensorFlow wrote (tests/train/data/README.md says how), whole and damaged."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import twofold as tf

DATA = Path(__file__).parent / "data"


class Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.zeros([2, 3]))
        self.layers = [tf.Variable([0, 0, 0]), tf.Variable([False, False])]
        self.d = {"a": tf.Variable(tf.zeros([2], tf.bfloat16)), "b": tf.Variable(0, dtype=tf.int64)}
        self.s = tf.Variable(["", "", ""])


def test_objects():
    m = Model()
    c = tf.train.Checkpoint(model=m)
    c.restore(DATA / "objects").assert_consumed()
    assert m.w.numpy().tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert m.layers[0].numpy().tolist() == [1, 2, 3]
    assert m.layers[1].numpy().tolist() == [True, False]
    assert m.d["a"].numpy().astype(float).tolist() == [1.5, 2.5]
    assert int(m.d["b"]) == 3
    assert m.s.numpy().tolist() == [b"ab", b"", b"xyz"]
    assert int(c.save_counter) == 1


def test_names():
    a, b = tf.Variable(tf.zeros([40, 40]), name="scope/a"), tf.Variable(0, dtype=tf.int64, name="b")
    tf.train.Checkpoint(x=a, y=b).restore(DATA / "names").assert_consumed()
    assert a.numpy().tolist() == np.arange(1600.0).reshape(40, 40).tolist()
    assert int(b) == 7


def test_reader():
    assert tf.train.list_variables(DATA / "names") == [("b", []), ("scope/a", [40, 40])]
    reader = tf.train.load_checkpoint(DATA / "objects")
    assert reader.get_variable_to_dtype_map()["model/d/a/.ATTRIBUTES/VARIABLE_VALUE"] == tf.bfloat16
    assert tf.train.load_variable(DATA / "names", "b") == 7
    assert "scope/a (float32) [40, 40]" in tf.train.load_checkpoint(DATA / "names").debug_string()


def test_several_files_and_tensors_in_slices():
    m = tf.Module()
    m.w, m.h, m.s = tf.Variable(tf.zeros([20, 15])), tf.Variable(tf.zeros([100], tf.bfloat16)), tf.Variable([""] * 3)
    tf.train.Checkpoint(model=m).read(DATA / "shards").assert_consumed()
    assert m.w.numpy().tolist() == np.arange(300.0).reshape(20, 15).tolist()
    assert m.h.numpy().astype(int).tolist() == list(range(100))
    assert m.s.numpy().tolist() == [b"ab" * 20, b"", b"xyz"]
    assert ("model/w/.ATTRIBUTES/VARIABLE_VALUE", [20, 15]) in tf.train.list_variables(DATA / "shards")


def test_partitioned_variables():
    assert tf.train.list_variables(DATA / "parts") == [("p/w", [200, 4])]
    w = tf.Variable(tf.zeros([200, 4]), name="p/w")
    tf.train.Checkpoint(w=w).read(DATA / "parts").assert_consumed()
    assert w.numpy().tolist() == np.arange(800.0).reshape(200, 4).tolist()


def test_states_of_iterators_are_left_alone():
    v = tf.Variable(0.0)
    tf.train.Checkpoint(v=v).read(DATA / "iterator").expect_partial()
    assert float(v) == 3.0
    assert tf.train.list_variables(DATA / "iterator") == [("v/.ATTRIBUTES/VARIABLE_VALUE", [])]
    v.assign(0.0)
    both = tf.train.Checkpoint(v=v, it=iter(tf.data.Dataset.range(10)))
    with pytest.raises(tf.errors.UnimplementedError, match=r"it/.ATTRIBUTES/ITERATOR"):
        both.read(DATA / "iterator")
    assert float(v) == 0.0  # nothing changes before all of it fits


def keras_models():
    """The models of the checkpoint `keras`, as its README entry describes them."""
    layers = tf.keras.layers
    inputs = tf.keras.Input((4, 4, 1))
    x = layers.BatchNormalization()(layers.Conv2D(2, 3, activation="relu")(inputs)) * 2.0
    model = tf.keras.Model(inputs, layers.Dense(3)(layers.Flatten()(x)))
    model.compile(tf.keras.optimizers.Adam(1e-2), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model, tf.keras.Sequential([layers.Embedding(7, 3), layers.LSTM(2), layers.Dense(2)])


@pytest.mark.parametrize("built", [False, True])
def test_models_and_optimizers_of_keras(built):
    """They go on as TensorFlow's do: with the moments of Adam, and where weights are made after the restore."""
    wanted = np.load(DATA / "keras.npz")
    model, words = keras_models()
    if built:
        words(wanted["w"])
        model.optimizer.build(model.trainable_variables)
    status = tf.train.Checkpoint(model=model, words=words).read(DATA / "keras")
    np.testing.assert_allclose(model.predict(wanted["x"], verbose=0), wanted["before"], atol=2e-6)
    np.testing.assert_allclose(words(wanted["w"]), wanted["told"], atol=1e-6)
    model.fit(wanted["x"], wanted["y"], batch_size=4, epochs=1, verbose=0, shuffle=False)
    np.testing.assert_allclose(model.predict(wanted["x"], verbose=0), wanted["after"], atol=2e-5)
    assert int(model.optimizer.iterations) == 6
    with pytest.raises(AssertionError, match="seed_generator_state"):  # which TensorFlow does not save
        status.assert_consumed()


def test_damage_found_late_changes_nothing(tmp_path):
    prefix = copied(tmp_path)
    data = tmp_path / "objects.data-00000-of-00001"
    m = Model()
    values = data.read_bytes()
    at = values.index(np.arange(6, dtype=np.float32).tobytes())  # of `w`, which others come before
    data.write_bytes(values[:at] + b"\x01" + values[at + 1:])
    with pytest.raises(tf.errors.DataLossError, match="model/w"):
        tf.train.Checkpoint(model=m).restore(prefix)
    assert [np.any(v.numpy() != np.zeros_like(v.numpy())) for v in m.variables if v.dtype != tf.string] == [False] * 5


def copied(folder, name="objects"):
    for file in DATA.glob(f"{name}.*"):
        shutil.copy(file, folder)
    return folder / name


def everything(prefix):
    reader = tf.train.load_checkpoint(prefix)
    values = {key: np.asarray(reader.get_tensor(key)).tolist() for key in reader.get_variable_to_shape_map()}
    return values, reader.nodes


@pytest.mark.parametrize("name", ["objects.index", "objects.data-00000-of-00001", "shards.index",
                                  "shards.data-00001-of-00003"])
def test_any_damage_is_told(tmp_path, name):
    """Every byte changed in turn, and every length: a clear error, or, where the byte says nothing, the same values."""
    prefix = copied(tmp_path, name.partition(".")[0])
    whole = everything(prefix)
    good = (tmp_path / name).read_bytes()
    told = 0
    for at in range(len(good)):
        for bad in (good[:at] + bytes([good[at] ^ (1 << at % 8)]) + good[at + 1:], good[:at]):
            (tmp_path / name).write_bytes(bad)
            try:
                assert everything(prefix) == whole
            except (tf.errors.DataLossError, tf.errors.NotFoundError, tf.errors.UnimplementedError):
                told += 1
    assert told > 1.9 * len(good)


def test_a_missing_part(tmp_path):
    prefix = copied(tmp_path)
    (tmp_path / "objects.data-00000-of-00001").unlink()
    with pytest.raises(tf.errors.NotFoundError, match="data-00000-of-00001: no such file"):
        tf.train.Checkpoint(model=Model()).restore(prefix)
