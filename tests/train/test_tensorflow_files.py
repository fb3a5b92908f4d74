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


def copied(folder):
    for file in DATA.glob("objects.*"):
        shutil.copy(file, folder)
    return folder / "objects"


def everything(prefix):
    reader = tf.train.load_checkpoint(prefix)
    values = {key: np.asarray(reader.get_tensor(key)).tolist() for key in reader.get_variable_to_shape_map()}
    return values, reader.nodes


@pytest.mark.parametrize("name", ["objects.index", "objects.data-00000-of-00001"])
def test_any_damage_is_told(tmp_path, name):
    """Every byte changed in turn, and every length: a clear error, or, where the byte says nothing, the same values."""
    prefix = copied(tmp_path)
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
