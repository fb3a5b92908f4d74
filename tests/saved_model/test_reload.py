"""A saved model in another process, which knows none of the classes: every function gives the same bits."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from saved_model import cases

import twofold as tf

# Loads the model and runs calls that are data; what `cases` does with the model itself, without `cases`.
LOADER = '''
import collections, json, sys
import numpy as np
import twofold as tf

def value(data):
    if isinstance(data, dict) and "array" in data:
        return tf.constant(np.frombuffer(bytes.fromhex(data["array"]), data["dtype"]).reshape(data["shape"]))
    if isinstance(data, dict):
        return collections.namedtuple(data["type"], list(data["fields"]))(*map(value, data["fields"].values()))
    return data

def bits(leaf):
    if leaf is None:
        return b"none"
    array = np.asarray(leaf)
    data = b"|".join(array.reshape(-1).tolist()) if array.dtype == object else array.tobytes()
    return f"{leaf.dtype.name}{array.shape}".encode() + data

model = tf.saved_model.load(sys.argv[1])
found = {}
for name, calls in json.load(open(sys.argv[2])).items():
    found[name] = []
    for args, kwargs in calls:
        result = getattr(model, name)(*map(value, args), **kwargs)
        found[name] += [bits(leaf).hex() for leaf in tf.nest.flatten(result)]
assert not [name for name in sys.modules if "cases" in name]
nested = model.nested(*[value(a) for a in json.load(open(sys.argv[2]))["nested"][0][0]])
json.dump({"results": found, "structure": repr(tf.nest.map_structure(lambda t: None if t is None else 0, nested)),
    "variables": [[v.name, bits(v).hex()] for v in model.variables]}, sys.stdout)
'''


def as_data(value):
    """An argument as JSON."""
    if hasattr(value, "_fields"):
        return {"type": type(value).__name__, "fields": {k: as_data(v) for k, v in value._asdict().items()}}
    if isinstance(value, cases.Both):
        return {"type": "Both", "fields": {"one": as_data(value.one), "two": as_data(value.two)}}
    if isinstance(value, str):
        return value
    array = np.asarray(value)
    return {"array": array.tobytes().hex(), "dtype": array.dtype.name, "shape": array.shape}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model, the folder that it was saved in before anything ran it again, and what it gave afterwards."""
    model = cases.Everything()
    cases.run(model)
    folder = tmp_path_factory.mktemp("saved") / "model"
    tf.saved_model.save(model, folder)
    return model, folder, cases.run(model)


def test_results_are_the_same_bits_in_another_process(saved, tmp_path):
    model, folder, expected = saved
    calls = {name: [([as_data(a) for a in args], kwargs) for args, kwargs in made()]
             for name, made in cases.CALLS.items()}
    (tmp_path / "calls.json").write_text(json.dumps(calls))
    done = subprocess.run([sys.executable, "-W", "error", "-c", LOADER, folder, tmp_path / "calls.json"],
                          capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    actual = json.loads(done.stdout)
    assert {name: [bytes.fromhex(b) for b in results] for name, results in actual["results"].items()} == expected
    assert actual["structure"] == "(Point(x=0, y=0), Both(one=0, two=0), {'k': [0, ()]}, None)"
    assert [[v.name, cases.bits(v).hex()] for v in model.variables] == actual["variables"]


def test_gradients_are_the_same_bits(saved):
    model, folder, _ = saved
    loaded = tf.saved_model.load(folder)
    for one, two in zip(model.variables, loaded.variables, strict=True):
        one.assign(two)
    assert cases.gradients(loaded) == cases.gradients(model)


def test_loaded_functions_are_staged_in_others(saved):
    _, folder, _ = saved
    loaded = tf.saved_model.load(folder)
    x = tf.constant(cases.some(4, 3))

    @tf.function
    def outer(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(loaded.loop(x, tf.constant(2))[0])
        return y, tape.gradient(y, loaded.w)

    with tf.GradientTape() as tape:
        expected = tf.reduce_sum(loaded.loop(x, tf.constant(2))[0])
    y, by_w = outer(x)
    assert cases.bits(y) == cases.bits(expected)
    assert np.allclose(by_w, tape.gradient(expected, loaded.w), atol=1e-6)


def test_variables_that_grow(saved):
    _, folder, _ = saved
    loaded = tf.saved_model.load(folder)
    assert loaded.open.shape == tf.TensorShape([None])
    for n in (3, 5):
        assert loaded.grow(tf.ones([n])).numpy().tolist() == [n] == list(loaded.open.numpy().shape)


def test_sizes_that_were_open_stay_open(saved):
    _, folder, _ = saved
    loop = tf.saved_model.load(folder).loop.get_concrete_function()
    assert loop.structured_input_signature[0][0].shape == tf.TensorShape([None, 3])
    assert [str(d) for d in loop.graph.inputs[0].dims] == ["d0_0", "3"]
    assert loop.structured_outputs[0].shape == tf.TensorShape([None, 4])


def test_errors_show_the_line_of_source(tmp_path):
    model = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def positive(x):
        tf.debugging.assert_positive(x)  # this very line
        return x
    model.positive = positive
    tf.saved_model.save(model, tmp_path / "m")
    loaded = tf.saved_model.load(tmp_path / "m")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"At test_reload.py:\d+ in positive\(\): "
                                                            r"tf.debugging.assert_positive\(x\)  # this very line"):
        loaded.positive(tf.constant([-1.0]))


def test_prints_stay(tmp_path, capsys):
    model = tf.Module()

    @tf.function
    def told(x):
        if x > 0:
            tf.print("x:", x, {"twice": [x, x]}, output_stream=sys.stdout, sep="|", end="!\n")
        return x
    model.told = told
    told(tf.constant(1.0))
    capsys.readouterr()
    tf.saved_model.save(model, tmp_path / "m")
    tf.saved_model.load(tmp_path / "m").told(tf.constant(2.5))
    assert capsys.readouterr().out == "x:|2.5|{'twice': [2.5, 2.5]}!\n"


def test_loaded_models_train_on(saved):
    _, folder, _ = saved
    loaded = tf.saved_model.load(folder)
    x, target = tf.constant(cases.some(8, 3)), tf.constant(cases.some(8, 4, seed=9)) * 0.3
    first = loaded.step(x, target).numpy()
    for _ in range(20):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((loaded.loop(x, tf.constant(1))[0] - target) ** 2)
        variables = [v for v in loaded.trainable_variables if v is loaded.w]
        loaded.w.assign_sub(0.2 * tape.gradient(loss, variables)[0])
    assert loaded.step(x, target).numpy() < first


def test_loaded_functions_are_decorated_again(tmp_path):
    """As a lambda around them would be: their Python is no more, so that they are called as they are."""
    module = tf.Module()
    module.w = tf.Variable(2.0)
    module.f = tf.function(lambda x, k=2: x * module.w * k)
    x = tf.constant([1.0, 2.0])
    wanted = [module.f(x).numpy().tolist(), module.f(x, k=3).numpy().tolist()]
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    again = tf.function(loaded.f)
    assert [again(x).numpy().tolist(), again(x, 3).numpy().tolist()] == wanted == [[4.0, 8.0], [6.0, 12.0]]
    with tf.GradientTape() as tape:
        y = again(x)
    assert tape.gradient(y, loaded.w).numpy() == 6.0
    narrow = tf.function(loaded.f, input_signature=[tf.TensorSpec([2], tf.float32)])
    assert narrow.get_concrete_function()(x).numpy().tolist() == [4.0, 8.0]


def test_each_loaded_model_draws_from_the_beginning(tmp_path):
    """Places of draws that were saved are not those of other traces of the process."""
    model = tf.Module()
    model.draw = tf.function(lambda: tf.random.uniform([2], seed=5), input_signature=[])
    first, second = (model.draw().numpy().tolist() for _ in range(2))
    tf.saved_model.save(model, tmp_path / "model")
    one, other = (tf.saved_model.load(tmp_path / "model") for _ in range(2))
    assert [one.draw().numpy().tolist() for _ in range(2)] == [first, second]
    assert other.draw().numpy().tolist() == first
    assert model.draw().numpy().tolist() not in (first, second)
