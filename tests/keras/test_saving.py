"""Models as files: there and back, to and from Keras 3, and what must not be loaded."""

from __future__ import annotations

import io
import json
import pathlib
import zipfile

import h5py
import numpy as np
import pytest

import twofold as tf
from twofold import keras

from .layer_cases import CASES

layers = keras.layers
EXCHANGE = pathlib.Path(__file__).parent / "data" / "exchange"
NAMES = ("image_model", "text_model", "attention_model", "operator_model", "grouped_model")


@pytest.fixture(autouse=True)
def fresh_names():
    keras.backend.clear_session()


def small():
    model = keras.Sequential([keras.Input((3,)), layers.Dense(4, "relu"), layers.BatchNormalization(),
                              layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    x = np.random.RandomState(0).rand(16, 3).astype(np.float32)
    y = x.sum(1, keepdims=True)
    model.fit(x, y, epochs=2, verbose=0, shuffle=False)
    return model, x, y


def outputs(model, stored):
    given = [stored[f"in{n}"] for n in range(len([k for k in stored.files if k.startswith("in")]))]
    actual = model.predict(given if len(given) > 1 else given[0], verbose=0)
    return actual if isinstance(actual, list) else [actual]


def paths(data):
    """The data sets of an HDF5 file by path."""
    actual = {}
    with h5py.File(io.BytesIO(data)) as f:
        f.visititems(lambda name, node: actual.__setitem__(name, np.asarray(node)) if isinstance(
            node, h5py.Dataset) else None)
    return actual


@pytest.mark.parametrize("ending", [".keras", ".h5"])
def test_training_goes_on_after_a_file_as_if_there_was_none(tmp_path, ending):
    model, x, y = small()
    file = tmp_path / f"model{ending}"
    model.save(file)
    again = keras.models.load_model(file)
    assert again.name == model.name and np.array_equal(again.predict(x, verbose=0), model.predict(x, verbose=0))
    assert int(again.optimizer.iterations) == int(model.optimizer.iterations) == 2
    for one in (model, again):
        one.fit(x, y, epochs=2, verbose=0, shuffle=False)
    assert all(np.array_equal(a, b) for a, b in zip(model.get_weights(), again.get_weights(), strict=True))
    assert again.evaluate(x, y, verbose=0) == model.evaluate(x, y, verbose=0)


@pytest.mark.parametrize("ending", [".keras", ".h5"])
@pytest.mark.parametrize("name", NAMES)
def test_models_of_keras_are_read(name, ending):
    model = keras.models.load_model(EXCHANGE / f"{name}{ending}")
    with np.load(EXCHANGE / f"{name}.npz") as stored:
        for n, actual in enumerate(outputs(model, stored)):
            assert np.allclose(actual, stored[f"out{n}"], atol=2e-6), (name, n)
    if name == "image_model":
        assert int(model.optimizer.iterations) == 2
        assert type(model.optimizer).__name__ == "Adam"
        assert model.evaluate(np.zeros((2, 6, 6, 1)), np.zeros((2, 2)), verbose=0, return_dict=True).keys() == {
            "loss", "mae"}


def test_what_keras_writes_on_twofold_is_what_it_writes_on_tensorflow():
    """`grouped_on_twofold.keras` was read and written by the genuine Keras on twofold as its TensorFlow."""
    model = keras.models.load_model(EXCHANGE / "grouped_on_twofold.keras")
    with np.load(EXCHANGE / "grouped_model.npz") as stored:
        for n, actual in enumerate(outputs(model, stored)):
            assert np.allclose(actual, stored[f"out{n}"], atol=2e-6), n
    want, have = (paths(zipfile.ZipFile(EXCHANGE / f"{name}.keras").read("model.weights.h5"))
                  for name in ("grouped_model", "grouped_on_twofold"))
    assert want.keys() == have.keys() and all(np.array_equal(have[k], want[k]) for k in want)


def described(config):
    """A config without what says nothing: neutral options, numbers of shared objects, shapes that were built for."""
    neutral = {"shared_object_id", "build_config", "compile_config", "build_input_shape", "dtype", "registered_name",
               "quantization_config", "synchronized", "renorm", "renorm_clipping", "renorm_momentum", "optional",
               "input_axes", "output_axes", "ragged", "sparse", "lora_rank", "lora_alpha", "use_gate",
               "flash_attention", "zero_output_for_mask", "rms_scaling", "weights", "mask", "build_input"}
    if isinstance(config, dict):
        return {k: described(v) for k, v in config.items() if k not in neutral}
    return [described(v) for v in config] if isinstance(config, list) else config


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_what_keras_writes(name, tmp_path):
    model = keras.models.load_model(EXCHANGE / f"{name}.keras")
    model.save(tmp_path / "again.keras")
    with zipfile.ZipFile(EXCHANGE / f"{name}.keras") as theirs, zipfile.ZipFile(tmp_path / "again.keras") as ours:
        assert sorted(ours.namelist()) == sorted(theirs.namelist())
        assert json.loads(ours.read("metadata.json")).keys() == json.loads(theirs.read("metadata.json")).keys()
        want, have = paths(theirs.read("model.weights.h5")), paths(ours.read("model.weights.h5"))
        their_config, our_config = json.loads(theirs.read("config.json")), json.loads(ours.read("config.json"))
    beyond = set(have) - set(want)  # the states of random generators, which Keras leaves out
    assert set(want) <= set(have) and all("/seed_generator/vars/" in path for path in beyond)
    assert all(np.array_equal(have[k], want[k]) for k in want)
    assert described(our_config) == described(their_config)


def test_weights_alone(tmp_path):
    model, x, _ = small()
    model.save_weights(tmp_path / "w.weights.h5")
    other, _, _ = small()
    other.set_weights([w * 0 for w in other.get_weights()])
    other.load_weights(tmp_path / "w.weights.h5")
    assert np.array_equal(other(x), model(x))
    with pytest.raises(ValueError, match="must end in `.weights.h5`"):
        model.save_weights(tmp_path / "w.h5")
    with pytest.raises(FileExistsError):
        model.save_weights(tmp_path / "w.weights.h5", overwrite=False)


def test_subclasses_keep_their_weights_by_attribute(tmp_path):
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.blocks = [layers.Dense(3), layers.Dense(2)]
            self.scale = self.add_weight(name="scale", shape=(), initializer="ones")

        def call(self, x):
            for block in self.blocks:
                x = block(x)
            return x * self.scale

    model, other = Net(), Net()
    x = np.ones((1, 4), np.float32)
    model(x), other(x)
    model.save_weights(tmp_path / "n.weights.h5")
    assert sorted(paths((tmp_path / "n.weights.h5").read_bytes())) == [
        "blocks/dense/vars/0", "blocks/dense/vars/1", "blocks/dense_1/vars/0", "blocks/dense_1/vars/1", "vars/0"]
    other.load_weights(tmp_path / "n.weights.h5")
    assert np.array_equal(other(x), model(x))


def test_layers_of_subclasses_are_numbered_where_keras_numbers_them(tmp_path):
    """Keras walks attributes by name, of which `layers` is one: what comes behind it lies there."""
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.steps, self.norm, self.heads = [layers.Dense(3)], layers.BatchNormalization(), {"a": layers.Dense(2)}

        def call(self, x):
            return self.heads["a"](self.norm(self.steps[0](x)))

    model, other, older = Net(), Net(), Net()
    x = np.ones((1, 4), np.float32)
    model(x), other(x), older(x)
    model.save_weights(tmp_path / "n.weights.h5")
    have = paths((tmp_path / "n.weights.h5").read_bytes())
    assert {name.partition("/vars")[0] for name in have} == {"heads/dense", "layers/batch_normalization",
                                                             "layers/dense"}
    other.load_weights(tmp_path / "n.weights.h5")
    assert np.array_equal(other(x), model(x))
    with h5py.File(tmp_path / "n.weights.h5", "a") as file:  # as earlier versions wrote it
        file.move("layers/dense", "steps/dense")
        file.move("layers/batch_normalization", "norm")
        del file["layers"]
    older.load_weights(tmp_path / "n.weights.h5")
    assert np.array_equal(older(x), model(x))


def test_weights_that_do_not_fit_change_nothing(tmp_path):
    model, _, _ = small()
    model.save_weights(tmp_path / "w.weights.h5")
    other = keras.Sequential([keras.Input((3,)), layers.Dense(4), layers.BatchNormalization(), layers.Dense(2)])
    before = other.get_weights()
    with pytest.raises(ValueError, match=r"dense_\d/kernel.*\(4, 2\).*\(4, 1\)"):
        other.load_weights(tmp_path / "w.weights.h5")
    assert all(np.array_equal(a, b) for a, b in zip(before, other.get_weights(), strict=True))
    with pytest.warns(UserWarning, match="Skipped"):
        other.load_weights(tmp_path / "w.weights.h5", skip_mismatch=True)
    assert np.array_equal(other.get_weights()[0], model.get_weights()[0])
    with pytest.raises(ValueError, match="has not been built yet"):
        keras.Sequential([layers.Dense(1)]).load_weights(tmp_path / "w.weights.h5")


def rewritten(source, target, change):
    """A copy of an archive with another config."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "config.json":
                config = json.loads(data)
                change(config)
                data = json.dumps(config).encode()
            new.writestr(name, data)
    return target


HOSTILE = [
    {"module": "os", "class_name": "system", "config": "true", "registered_name": "system"},
    {"module": "subprocess", "class_name": "Popen", "config": {"args": ["true"]}, "registered_name": None},
    {"module": "keras.layers", "class_name": "__import__", "config": {}, "registered_name": None},
    {"module": "twofold.keras.saving", "class_name": "open", "config": {}, "registered_name": None},
    {"module": "builtins", "class_name": "function", "config": "eval", "registered_name": "function"},
    {"class_name": "__lambda__", "config": {"value": ["gASVAAAA", None, None]}},
    {"module": "keras.layers", "class_name": "Lambda", "registered_name": None, "config": {
        "name": "bad", "function": {"class_name": "__lambda__", "config": {"code": "4wAA", "defaults": None}}}},
    {"module": "keras.src.models.functional", "class_name": "Functional", "registered_name": "os>system",
     "config": {"name": "x", "layers": [], "input_layers": [["a", 0, 0]], "output_layers": [["a", 0, 0]]}},
]


@pytest.mark.parametrize("place", ["root", "layer", "activation"])
@pytest.mark.parametrize("config", HOSTILE, ids=lambda c: c["class_name"])
def test_files_that_name_code_are_refused(tmp_path, config, place, monkeypatch):
    model, _, _ = small()
    model.save(tmp_path / "good.keras")

    def change(actual):
        if place == "root":
            actual.clear()
            actual.update(config)
        elif place == "layer":
            actual["config"]["layers"][1] = config
        else:
            actual["config"]["layers"][1]["config"]["activation"] = config

    bad = rewritten(tmp_path / "good.keras", tmp_path / "bad.keras", change)
    monkeypatch.setattr("os.system", lambda *a: pytest.fail("it was run"))
    monkeypatch.setattr("subprocess.Popen", lambda *a, **k: pytest.fail("it was run"))
    with pytest.raises((ValueError, TypeError)):
        keras.models.load_model(bad)


def test_objects_of_ones_own(tmp_path):
    @keras.saving.register_keras_serializable("tests")
    def halved(x):
        return x / 2

    class Scaled(layers.Layer):
        def __init__(self, factor=2.0, **kwargs):
            super().__init__(**kwargs)
            self.factor = factor

        def call(self, x):
            return self.factor * x

        def get_config(self):
            return {**super().get_config(), "factor": self.factor}

    model = keras.Sequential([keras.Input((2,)), layers.Dense(2, activation=halved), Scaled(3.0)])
    model.save(tmp_path / "own.keras")
    x = np.ones((1, 2), np.float32)
    with pytest.raises(ValueError, match="Could not locate class 'Scaled'"):
        keras.models.load_model(tmp_path / "own.keras")
    again = keras.models.load_model(tmp_path / "own.keras", custom_objects={"Scaled": Scaled})
    assert np.array_equal(again(x), model(x)) and again.layers[0].activation is halved
    with zipfile.ZipFile(tmp_path / "own.keras") as file:  # in the form that Keras reads
        assert json.loads(file.read("config.json"))["config"]["layers"][1]["config"]["activation"] == {
            "module": "builtins", "class_name": "function", "config": "tests>halved", "registered_name": "function"}
    with keras.saving.custom_object_scope({"Scaled": Scaled}):
        assert keras.models.load_model(tmp_path / "own.keras").layers[1].factor == 3.0


def test_a_save_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    model, _, _ = small()
    file = tmp_path / "m.keras"
    model.save(file)
    old = file.read_bytes()

    def fails(*args):
        raise OSError("no space")

    monkeypatch.setattr("twofold.keras.saving_h5.write_weights", fails)
    with pytest.raises(OSError, match="no space"):
        model.save(file)
    assert file.read_bytes() == old and [p.name for p in tmp_path.iterdir()] == ["m.keras"]


def test_names_of_files_are_checked(tmp_path):
    model, _, _ = small()
    with pytest.raises(ValueError, match="Invalid filepath extension"):
        model.save(tmp_path / "model")
    with pytest.raises(FileNotFoundError):
        keras.models.load_model(tmp_path / "none.keras")
    (tmp_path / "text.keras").write_text("hello")
    with pytest.raises(ValueError, match="neither"):
        keras.models.load_model(tmp_path / "text.keras")
    with zipfile.ZipFile(tmp_path / "zip.keras", "w") as z:
        z.writestr("other", "x")
    with pytest.raises(ValueError, match=r"has no config\.json"):
        keras.models.load_model(tmp_path / "zip.keras")


def test_without_h5py_the_error_names_the_extra(tmp_path, monkeypatch):
    model, _, _ = small()
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(ImportError, match=r"pip install twofold\[h5\]"):
        model.save(tmp_path / "m.keras")
    assert tf.executing_eagerly()


@pytest.mark.parametrize("name", [n for n, case in CASES.items() if not n.endswith(" stateful")])
def test_every_layer_comes_back_from_a_file(name, tmp_path):
    case = CASES[name]
    given = [keras.Input(x.shape[1:], batch_size=x.shape[0], dtype=str(x.dtype)) for x in case.inputs]
    model = keras.Model(given, case.call(case.make(layers), *given))
    model.save(tmp_path / "layer.keras")
    again = keras.models.load_model(tmp_path / "layer.keras")
    assert again.get_config() == model.get_config()
    for actual, expected in zip(tf.nest.flatten(again(list(case.inputs))), tf.nest.flatten(model(list(case.inputs))),
                               strict=True):
        np.testing.assert_array_equal(actual, expected)


class Held(layers.Layer):
    """Layers in a dict, and in a list within it."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.parts = {"one": layers.Dense(2), "more": [layers.Dense(3), (layers.Dense(4), layers.Dense(5))]}

    def call(self, inputs):
        return self.parts["more"][1][1](self.parts["more"][1][0](self.parts["more"][0](self.parts["one"](inputs))))


def test_layers_in_lists_within_dicts_are_saved(tmp_path):
    entry = keras.Input((3,))
    model, other = (keras.Model(entry, Held()(entry)) for _ in range(2))
    model.save_weights(tmp_path / "held.weights.h5")
    names = set(paths((tmp_path / "held.weights.h5").read_bytes()))
    assert {f"layers/held/parts/{path}/vars/0" for path in (  # as Keras 3 names them
        "dense", "container/dense", "container/container/dense", "container/container/dense_1")} <= names
    other.load_weights(tmp_path / "held.weights.h5")
    assert all(np.array_equal(a, b) for a, b in zip(model.get_weights(), other.get_weights(), strict=True))
