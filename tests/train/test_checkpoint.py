"""`tf.train.Checkpoint`: what is saved comes back, in another process too, in whatever order objects are made."""

import gc
import logging
import os
import subprocess
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from quick.start import python

import twofold as tf

ALL = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, np.complex64, np.complex128, np.bool_, np.int8, np.int16,
       np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


class Model(tf.Module):
    def __init__(self, scale=1.0):
        super().__init__()
        self.w = tf.Variable(np.arange(6, dtype=np.float32).reshape(2, 3) * scale)
        self.layers = [tf.Variable([1.0 * scale]), {"deep": tf.Variable([[2.0 * scale]])}]
        self.tied = self.w

    def values(self):
        return [v.numpy().tolist() for v in self.variables]


@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (1, 2, 3, 2)])
def test_every_dtype_and_rank_to_the_bit(tmp_path, shape):
    rng = np.random.default_rng(0)
    arrays = {np.dtype(t).name: rng.integers(0, 2, shape).astype(t) for t in ALL}
    arrays["float32"] = np.full(shape, np.nan, np.float32)
    arrays["float64"] = np.full(shape, -0.0)
    variables = {name: tf.Variable(a) for name, a in arrays.items()}
    variables["text"] = tf.Variable(np.full(shape, b"a\x00\xff", object))
    path = tf.train.Checkpoint(**variables).write(tmp_path / "c")
    new = {name: tf.Variable(tf.zeros_like(v) if name != "text" else np.full(shape, b"", object))
           for name, v in variables.items()}
    tf.train.Checkpoint(**new).read(path).assert_consumed()
    for name, v in variables.items():
        actual, saved = np.asarray(new[name].numpy()), np.asarray(v.numpy())
        assert new[name].dtype == v.dtype
        assert actual.tolist() == saved.tolist() if name == "text" else actual.tobytes() == saved.tobytes()


def test_save_counts_and_notes_the_latest(tmp_path):
    c = tf.train.Checkpoint(v=tf.Variable(1.0))
    assert [os.path.basename(c.save(tmp_path / "x")) for _ in range(2)] == ["x-1", "x-2"]
    assert c.save_counter.dtype == tf.int64
    assert tf.train.latest_checkpoint(tmp_path) == str(tmp_path / "x-2")
    again = tf.train.Checkpoint(v=tf.Variable(0.0))
    again.restore(tf.train.latest_checkpoint(tmp_path)).assert_consumed()
    assert os.path.basename(again.save(tmp_path / "x")) == "x-3"
    again.restore(tmp_path)
    assert int(again.save_counter) == 3


def test_values_wait_for_their_objects(tmp_path):
    model = Model()
    path = tf.train.Checkpoint(model=model, step=tf.Variable(7)).save(tmp_path / "c")
    late = tf.Module()
    c = tf.train.Checkpoint(model=late)
    status = c.restore(path)
    with pytest.raises(AssertionError, match=r"\(root\).step, \(root\).model.w"):
        status.assert_consumed()
    status.assert_existing_objects_matched()
    late.w = tf.Variable(tf.zeros([2, 3]))
    assert late.w.numpy().tolist() == model.w.numpy().tolist()
    late.layers = []
    late.layers.append(tf.Variable([0.0]))
    assert late.layers[0].numpy().tolist() == [1.0]
    inner = {}
    late.layers.append(inner)
    late.layers[1]["deep"] = tf.Variable([[0.0]])
    assert late.layers[1]["deep"].numpy().tolist() == [[2.0]]
    c.step = tf.Variable(0)
    late.tied = late.w
    status.assert_consumed()


def test_a_list_may_grow_after_the_restore(tmp_path):
    path = tf.train.Checkpoint(m=Model()).save(tmp_path / "c")
    late = tf.Module()
    late.layers = [tf.Variable([0.0])]
    tf.train.Checkpoint(m=late).restore(path)
    late.layers += [{"deep": tf.Variable([[0.0]])}]
    assert late.layers[1]["deep"].numpy().tolist() == [[2.0]]


def test_variables_made_inside_a_compiled_function_take_waiting_values(tmp_path):
    class Lazy(tf.Module):
        @tf.function
        def __call__(self, x):
            if not hasattr(self, "w"):
                self.w = tf.Variable(tf.ones([2]))
            return x * self.w

    first = Lazy()
    first(tf.constant(2.0))
    first.w.assign([5.0, 6.0])
    path = tf.train.Checkpoint(m=first).save(tmp_path / "c")
    second = Lazy()
    status = tf.train.Checkpoint(m=second).restore(path)
    assert second(tf.constant(2.0)).numpy().tolist() == [10.0, 12.0]
    status.assert_consumed()
    second.w.assign([1.0, 1.0])
    assert second(tf.constant(2.0)).numpy().tolist() == [2.0, 2.0]


def test_the_root_may_be_an_object(tmp_path):
    model = Model()
    path = tf.train.Checkpoint(model).write(tmp_path / "c")
    assert tf.train.list_variables(path)[0][0].startswith("layers/0/")
    new = Model(0.0)
    tf.train.Checkpoint(new).read(path).assert_consumed()
    assert new.values() == model.values()


def test_random_generators_go_on_where_they_were(tmp_path):
    one = tf.random.Generator.from_seed(3)
    one.normal([5])
    path = tf.train.Checkpoint(g=one).write(tmp_path / "c")
    expected = one.normal([3]).numpy()
    two = tf.random.Generator.from_seed(9)
    tf.train.Checkpoint(g=two).read(path).assert_consumed()
    assert two.normal([3]).numpy().tolist() == expected.tolist()


def test_objects_with_state_of_their_own(tmp_path):
    from twofold.tracking import Trackable

    class Counter(Trackable):
        def __init__(self):
            self.n, self.text = 0, b""

        def _saved_values(self):
            return {"n": np.int64(self.n), "text": self.text}

        def _restore_values(self, values):
            self.n, self.text = int(values["n"]), values["text"][()]

    one = Counter()
    one.n, one.text = 5, b"abc"
    path = tf.train.Checkpoint(c=one).write(tmp_path / "c")
    two = Counter()
    tf.train.Checkpoint(c=two).read(path).assert_consumed()
    assert (two.n, two.text) == (5, b"abc")


def test_objects_that_refer_to_each_other(tmp_path):
    a, b = tf.Module(), tf.Module()
    a.b, b.a, b.v = b, a, tf.Variable(4.0)
    path = tf.train.Checkpoint(a=a, b=b).write(tmp_path / "c")
    c, d = tf.Module(), tf.Module()
    c.b, d.a, d.v = d, c, tf.Variable(0.0)
    tf.train.Checkpoint(a=c, b=d).read(path).assert_consumed()
    assert float(d.v) == 4.0


def test_asserts_say_what_does_not_match(tmp_path):
    path = tf.train.Checkpoint(v=tf.Variable(1.0)).save(tmp_path / "c")
    other = tf.train.Checkpoint(w=tf.Variable(1.0))
    status = other.restore(path)
    for wrong in (status.assert_consumed, status.assert_existing_objects_matched):
        with pytest.raises(AssertionError, match="not bound to checkpointed values|Unresolved"):
            wrong()
    fresh = tf.train.Checkpoint(w=tf.Variable(1.0)).read(path)
    with pytest.raises(AssertionError, match="Nothing except the root"):
        fresh.assert_nontrivial_match()
    nothing = other.restore(None)
    nothing.expect_partial().initialize_or_restore()
    with pytest.raises(AssertionError, match="nothing is being restored"):
        nothing.assert_consumed()


def test_keys_that_are_no_strings_are_refused(tmp_path):
    module = tf.Module()
    module.layers = {0: tf.Variable(1.0)}
    with pytest.raises(ValueError, match=r"dict m.layers: .* no string, 0"):
        tf.train.Checkpoint(m=module).write(tmp_path / "c")
    module.layers = {"a": {1: [tf.Variable(1.0)], "b": tf.Variable(2.0)}}
    with pytest.raises(ValueError, match=r"dict m.layers.a: .* no string, 1"):
        tf.train.Checkpoint(m=module).write(tmp_path / "c")
    module.layers = {"a": tf.Variable(1.0), 1: "no state"}
    tf.train.Checkpoint(m=module).write(tmp_path / "c")


def test_what_nobody_took_is_told_once(tmp_path, caplog):
    path = tf.train.Checkpoint(v=tf.Variable(1.0), w=tf.Variable(2.0)).save(tmp_path / "c")
    gc.collect()
    caplog.clear()
    with caplog.at_level(logging.WARNING, "twofold"):
        tf.train.Checkpoint(v=tf.Variable(0.0)).restore(path).expect_partial()
        gc.collect()
        assert not caplog.records
        tf.train.Checkpoint(v=tf.Variable(0.0)).restore(path)
        gc.collect()
    assert ["(root).w" in r.getMessage() for r in caplog.records] == [True]


def test_errors(tmp_path):
    c = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0]))
    with pytest.raises(tf.errors.NotFoundError, match=r"nothing-1.index"):
        c.restore(tmp_path / "nothing-1")
    with pytest.raises(tf.errors.NotFoundError, match="no checkpoint in this folder"):
        c.restore(tmp_path)
    path = c.save(tmp_path / "c")
    with pytest.raises(ValueError, match=r"shape \(2,\).*shape \(3,\) and name v:0"):
        tf.train.Checkpoint(v=tf.Variable(tf.zeros([3]), name="v")).restore(path)
    with pytest.raises(tf.errors.InvalidArgumentError, match="is float32, the variable v:0 .* is float64"):
        tf.train.Checkpoint(v=tf.Variable(tf.zeros([2], tf.float64), name="v")).restore(path)
    with pytest.raises(ValueError, match="expecting v to be a trackable object"):
        tf.train.Checkpoint(v=3)
    with pytest.raises(ValueError, match="root must be"):
        tf.train.Checkpoint(3)
    with pytest.raises(ValueError, match="another child named 'w'"):
        tf.train.Checkpoint(Model(), w=tf.Variable(1))
    with pytest.raises(tf.errors.NotFoundError, match="no tensor 'x'"):
        tf.train.load_variable(path, "x")


def test_nothing_changes_before_all_values_fit(tmp_path, caplog):
    saved = tf.train.Checkpoint(a=tf.Variable(1.0), d={"b": tf.Variable([1.0])}, z=tf.Variable(1.0))
    path = saved.write(tmp_path / "c")
    a, b, z = tf.Variable(9.0), tf.Variable([9.0, 9.0]), tf.Variable(9.0)
    with caplog.at_level(logging.WARNING, "twofold"):
        with pytest.raises(ValueError, match="incompatible"):
            tf.train.Checkpoint(a=a, d={"b": b}, z=z).read(path)
        gc.collect()
    assert [v.numpy().tolist() for v in (a, b, z)] == [9.0, [9.0, 9.0], 9.0]
    assert not caplog.records


def test_large_tensors_are_hashed_side_by_side_and_hold_what_was_there(tmp_path):
    """Also while a compiled function overwrites the variables."""
    many = [tf.Variable(tf.fill([250_000], float(n))) for n in range(5)]
    step = tf.function(lambda: [v.assign_add(tf.ones([250_000])) for v in many])
    step()
    saved, over = [], threading.Event()

    def save():
        for n in range(3):
            saved.append(tf.train.Checkpoint(v=many).write(tmp_path / f"c{n}"))
        over.set()

    thread = threading.Thread(target=save)
    thread.start()
    while not over.wait(0.001):
        step()
    thread.join()
    for path in saved:
        reader = tf.train.load_checkpoint(path)
        for n in range(5):
            actual = reader.get_tensor(f"v/{n}/.ATTRIBUTES/VARIABLE_VALUE")
            assert (actual == actual[0]).all() and actual[0] >= n + 1


def test_a_second_process_restores(tmp_path):
    path = tf.train.Checkpoint(m=Model(3.0)).save(tmp_path / "c")
    code = ("import sys, twofold as tf\n"
            "m = tf.Module(); m.w = tf.Variable(tf.zeros([2, 3]))\n"
            "tf.train.Checkpoint(m=m).restore(sys.argv[1]).expect_partial()\n"
            "print(m.w.numpy().tolist())")
    told = subprocess.run(python("-c", code, path), capture_output=True, text=True, timeout=120, check=True)
    assert told.stdout.strip() == "[[0.0, 3.0, 6.0], [9.0, 12.0, 15.0]]"


def test_any_damage_is_told_and_changes_nothing(tmp_path):
    """Every byte changed in turn, and every length, of a file with numbers, strings and complex numbers."""
    def made(scale):
        return {"v": tf.Variable([scale, 2.0]), "s": tf.Variable(["a", "bc"]), "c": tf.Variable(tf.complex(scale, 1.0))}

    file = Path(tf.train.Checkpoint(**made(1.0)).write(tmp_path / "c") + ".safetensors")
    good, objects = file.read_bytes(), made(9.0)
    before = [v.numpy().tolist() for v in objects.values()]
    c = tf.train.Checkpoint(**objects)
    for at in range(len(good)):
        for bad in (good[:at] + bytes([good[at] ^ (1 << at % 8)]) + good[at + 1:], good[:at]):
            file.write_bytes(bad)
            with pytest.raises(tf.errors.DataLossError):
                c.read(tmp_path / "c")
    file.write_bytes(good + b"more")
    with pytest.raises(tf.errors.DataLossError):
        c.read(tmp_path / "c")
    assert [v.numpy().tolist() for v in objects.values()] == before


def test_hostile_descriptions_of_objects(tmp_path):
    from twofold._formats import tensor_file as _tensor_file
    tensors = {"k": np.zeros(2, np.float32)}
    good = {"format": "twofold checkpoint", "version": "1"}
    for objects in ("[]", "{}", "[1]", "[" * 100_000, "no json",
                    '[{"children": {"a": 7}, "values": {}}]', '[{"children": {"a": -1}, "values": {}}]',
                    '[{"children": {"a": true}, "values": {}}]',
                    '[{"children": {}, "values": {"VARIABLE_VALUE": "gone"}}]'):
        _tensor_file.write(tmp_path / "c.safetensors", tensors, {**good, "objects": objects})
        with pytest.raises(tf.errors.DataLossError, match="objects"):
            tf.train.load_checkpoint(tmp_path / "c")
    _tensor_file.write(tmp_path / "c.safetensors", tensors, {**good, "version": "2", "objects": "[]"})
    with pytest.raises(tf.errors.UnimplementedError, match="version 2"):
        tf.train.load_checkpoint(tmp_path / "c")


_SAVER = """
import os, random, signal, sys, time
import numpy as np
import twofold as tf
folder, trials = sys.argv[1], int(sys.argv[2])
v = tf.Variable(np.zeros(20_000, np.float32))
manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), folder, max_to_keep=2)
manager.save()
rng = random.Random(1)
for trial in range(trials):
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), folder, max_to_keep=2)
        manager.restore_or_initialize()
        os.write(writes, b"x")
        while True:
            v.assign(np.full(20_000, float(v[0]) + 1, np.float32))
            manager.save()
            os.write(writes, b"x")
    for _ in range(rng.randrange(1, 4)):  # until it has begun, or saved once or twice
        os.read(reads, 1)
    os.close(reads), os.close(writes)
    time.sleep(rng.random() * 0.004)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    latest = tf.train.latest_checkpoint(folder)
    found = tf.train.load_variable(latest, "v/.ATTRIBUTES/VARIABLE_VALUE")
    state = tf.train.get_checkpoint_state(folder)
    assert found.shape == (20_000,) and (found == found[0]).all(), (trial, latest)
    assert state.all_model_checkpoint_paths[-1] == latest
    for path in state.all_model_checkpoint_paths:
        tf.train.load_checkpoint(path)
manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), folder, max_to_keep=2)
manager.restore_or_initialize()
manager.save()
assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]  # nothing of the killed ones is left
print("survived", float(found[0]))
"""


def test_killing_a_save_never_loses_the_last_checkpoint(tmp_path):
    """120 processes, each killed at a random point of its saves."""
    told = subprocess.run(python("-c", _SAVER, str(tmp_path), "120"), capture_output=True, text=True,
                          timeout=300, check=False)
    assert told.returncode == 0, told.stderr
    word, number = told.stdout.split()
    assert word == "survived"
    assert float(number) > 8  # many saves were finished, and the next process went on from them


_STEPPER = """
import os, signal, sys
import numpy as np
import twofold as tf
folder, count = sys.argv[1], 0
files = ("train/manager.py", "train/state.py", "train/files.py", "_formats/tensor_file.py", "_formats/safetensors.py",
         "runtime/replacing.py")
v = tf.Variable(np.zeros(50, np.float32))
manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), folder, max_to_keep=1)
before = manager.save()
number = 1.0

def trace(frame, event, argument, left=[0]):
    if not frame.f_code.co_filename.endswith(files):
        return None
    if event == "line":
        left[0] += 1
        if left[0] == count:
            os.kill(os.getpid(), signal.SIGKILL)
    return trace

while True:
    count += 1
    child = os.fork()
    if child == 0:
        manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), folder, max_to_keep=1)
        manager.restore_or_initialize()
        v.assign(np.full(50, number, np.float32))
        sys.settrace(trace)
        manager.save()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    latest = tf.train.latest_checkpoint(folder)
    found = tf.train.load_variable(latest, "v/.ATTRIBUTES/VARIABLE_VALUE")
    assert (found == found[0]).all() and found[0] in (number, number - 1), (count, latest, found[0])
    assert found[0] == number or latest == before, count
    before, number = latest, float(found[0]) + 1
    if status == 0:
        assert found[0] == number - 1
        break
    assert os.WTERMSIG(status) == signal.SIGKILL, status
assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]  # the last save has cleared up
print("lines", count)
"""


def test_killing_a_save_at_each_line_never_loses_the_last_checkpoint(tmp_path):
    told = subprocess.run(python("-c", _STEPPER, str(tmp_path)), capture_output=True, text=True,
                          timeout=300, check=False)
    assert told.returncode == 0, told.stderr
    assert int(told.stdout.split()[1]) > 100
