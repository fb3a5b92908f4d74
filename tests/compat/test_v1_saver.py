"""`tf.compat.v1.train.Saver`: files, numbers and what is kept; TensorFlow's own files; what is refused."""

import os
from pathlib import Path

import numpy as np
import pytest

import twofold as tf
from twofold._front import tensors as _tensors

v1 = tf.compat.v1
DATA = Path(__file__).parents[1] / "train" / "data"


@pytest.fixture(autouse=True)
def nobody_asked_for_eager(monkeypatch):
    monkeypatch.setattr(_tensors, "eager_for_good", [])


def model():
    with v1.variable_scope("net"):
        w = v1.get_variable("w", initializer=np.arange(6.0, dtype=np.float32).reshape(2, 3))
        b = v1.get_variable("b", initializer=1.0)
    step = v1.train.get_or_create_global_step()
    loss = tf.reduce_sum(w * w) + b * b
    return w, b, step, v1.train.AdamOptimizer(0.1).minimize(loss, global_step=step)


def test_training_goes_on_in_another_graph(tmp_path):
    with v1.Graph().as_default(), v1.Session() as session:
        *variables, train = model()
        saver = v1.train.Saver(max_to_keep=2)
        session.run(v1.global_variables_initializer())
        for _ in range(3):
            session.run(train)
            path = saver.save(session, tmp_path / "model.ckpt", global_step=variables[2])
        paths = saver.last_checkpoints
        session.run(train)
        expected = session.run(variables)
    assert [os.path.basename(p) for p in paths] == ["model.ckpt-2", "model.ckpt-3"]
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "model.ckpt-2.safetensors", "model.ckpt-3.safetensors"]
    assert tf.train.latest_checkpoint(tmp_path) == path
    assert [name for name, _ in tf.train.list_variables(path)] == [
        "beta1_power", "beta2_power", "global_step", "net/b", "net/b/Adam", "net/b/Adam_1", "net/w", "net/w/Adam",
        "net/w/Adam_1"]
    with v1.Graph().as_default(), v1.Session() as session:
        *variables, train = model()
        v1.train.Saver().restore(session, tf.train.latest_checkpoint(tmp_path))  # nothing was initialised
        session.run(train)
        for have, want in zip(session.run(variables), expected, strict=True):
            np.testing.assert_array_equal(have, want)


def test_tensorflows_own_files():
    with v1.Graph().as_default(), v1.Session() as session:
        with v1.variable_scope("scope"):
            a = v1.get_variable("a", [40, 40])
        b = v1.get_variable("b", [], tf.int64)
        v1.train.Saver().restore(session, DATA / "names")
        assert session.run(b) == 7
        assert session.run(a).ravel().tolist() == list(range(1600))


def test_lists_and_other_names(tmp_path):
    with v1.Session() as session:
        v, w = v1.get_variable("v", initializer=[1.0, 2.0]), v1.get_variable("w", initializer=[3.0, 4.0])
        session.run(v1.global_variables_initializer())
        path = v1.train.Saver({"swapped": v}).save(session, tmp_path / "c", write_state=False)
        assert tf.train.list_variables(path) == [("swapped", [2])]
        assert not (tmp_path / "checkpoint").exists()
        v1.train.Saver({"swapped": w}).restore(session, path)
        assert session.run(w).tolist() == [1.0, 2.0]
        with pytest.raises(tf.errors.NotFoundError, match="Key v not found"):
            v1.train.Saver([v, w]).restore(session, path)


def test_nothing_changes_where_not_all_fits(tmp_path):
    with v1.Graph().as_default(), v1.Session() as session:
        v1.get_variable("a", initializer=1.0)
        v1.get_variable("b", initializer=[1.0, 2.0])
        session.run(v1.global_variables_initializer())
        path = v1.train.Saver().save(session, tmp_path / "c")
    for shape, dtype, text in (([3], tf.float32, "shapes"), ([2], tf.float64, "float32 in")):
        with v1.Graph().as_default(), v1.Session() as session:
            a = v1.get_variable("a", initializer=5.0)
            v1.get_variable("b", shape, dtype)
            session.run(v1.global_variables_initializer())
            with pytest.raises(tf.errors.InvalidArgumentError, match=text):
                v1.train.Saver().restore(session, path)
            assert session.run(a) == 5.0


def test_starting_from_a_checkpoint(tmp_path):
    with v1.Graph().as_default(), v1.Session() as session:
        with v1.variable_scope("old"):
            v1.get_variable("w", initializer=[1.0, 2.0])
        session.run(v1.global_variables_initializer())
        path = v1.train.Saver().save(session, tmp_path / "c")
    with v1.Graph().as_default(), v1.Session() as session:
        with v1.variable_scope("new"):
            w = v1.get_variable("w", [2])
        v1.train.init_from_checkpoint(path, {"old/": "new/"})
        session.run(v1.global_variables_initializer())
        assert session.run(w).tolist() == [1.0, 2.0]
        with pytest.raises(ValueError, match="not found"):
            v1.train.init_from_checkpoint(path, {"none": w})


def test_moving_averages_are_restored_into_their_variables(tmp_path):
    with v1.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", initializer=4.0)
        average = v1.train.ExponentialMovingAverage(0.5)
        with v1.control_dependencies([w.assign(0.0)]):
            update = average.apply([w])
        session.run(v1.global_variables_initializer())
        session.run(update)
        assert session.run([w, average.average(w)]) == [0.0, 2.0]
        path = v1.train.Saver().save(session, tmp_path / "c")
    with v1.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", [])
        names = v1.train.ExponentialMovingAverage(0.5).variables_to_restore()
        assert list(names) == ["w/ExponentialMovingAverage"]
        v1.train.Saver(names).restore(session, path)
        assert session.run(w) == 2.0


def test_where_ops_run_at_once(tmp_path):
    v = tf.Variable([1.0, 2.0], name="v")
    saver = v1.train.Saver([v])
    path = saver.save(None, tmp_path / "c", global_step=tf.Variable(3))
    v.assign([0.0, 0.0])
    saver.restore(None, path)
    assert v.numpy().tolist() == [1.0, 2.0]
    assert path.endswith("c-3")
    w = tf.Variable([0.0, 0.0], name="v")
    tf.train.Checkpoint(w=w).read(path)  # by its name
    assert w.numpy().tolist() == [1.0, 2.0]
    with pytest.raises(RuntimeError, match="var_list"):
        v1.train.Saver()


def test_errors(tmp_path):
    with v1.Session() as session:
        v = v1.get_variable("v", initializer=1.0)
        saver = v1.train.Saver()
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value v"):
            saver.save(session, tmp_path / "c")
        assert os.listdir(tmp_path) == []
        with pytest.raises(ValueError, match="not a valid checkpoint"):
            saver.restore(session, tmp_path / "none")
        with pytest.raises(ValueError, match="None"):
            saver.restore(session, tf.train.latest_checkpoint(tmp_path))
        session.run(v.initializer)
        path = saver.save(session, tmp_path / "c")
        file = Path(f"{path}.safetensors")
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
        with pytest.raises(tf.errors.DataLossError):
            saver.restore(session, path)
    with v1.Graph().as_default(), pytest.raises(ValueError, match="No variables to save"):
        v1.train.Saver()
