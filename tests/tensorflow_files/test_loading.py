"""Saved models that TensorFlow 2.21 wrote (`make_models.py`): predictions, training, state, and what is refused."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import twofold as tf

_DATA = Path(__file__).parent / "data"
_RATE = 0.1


@pytest.fixture
def unpacked(tmp_path: Path) -> Any:
    """The folder of a model, and what TensorFlow gave for it."""
    def unpack(name: str) -> tuple[str, Any]:
        folder = tmp_path / name
        with zipfile.ZipFile(_DATA / f"{name}.zip") as archive:
            archive.extractall(folder)
        with np.load(folder / "expected.npz") as kept:
            return str(folder), dict(kept)
    return unpack


def _near(given: Any, expected: np.ndarray, tolerance: float = 1e-5) -> None:
    got = np.asarray(given)
    if expected.dtype.kind == "U":
        assert np.char.decode(got.astype(bytes)).tolist() == expected.tolist()
        return
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def _losses(call: Any, variables: Any, x: Any, y: Any, steps: int = 4) -> list[float]:
    out = []
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(call(tf.constant(x)) - y))
        for variable, by in zip(variables, tape.gradient(loss, variables), strict=True):
            if by is not None:
                variable.assign_sub(_RATE * tf.convert_to_tensor(by))
        out.append(float(loss))
    return out


def test_a_module_with_several_functions(unpacked: Any, tmp_path: Path) -> None:
    folder, want = unpacked("dense")
    assert tf.saved_model.contains_saved_model(folder)
    model = tf.saved_model.load(folder)
    x = want["x"]
    _near(model(tf.constant(x)), want["call"])
    _near(model.scaled(x)["y"], want["plain"])
    _near(model.scaled(x, False, 2.0)["sum"], want["plain_sum"])
    before = int(model.count)
    _near(model.scaled(x, training=True)["y"], want["trained"])
    assert int(model.count) == before + 1
    by_hand, numbers = model.nested((3, [[1, 2]]))  # Python values become tensors
    _near(by_hand, want["nested_a"])
    _near(numbers[0], want["nested_b"])
    rows, moved = model.rows(x, 2)
    _near(rows, want["rows"])
    _near(moved, want["moved"])
    assert sorted(model.signatures) == ["both", "serving_default"]
    _near(model.signatures["serving_default"](x=x)["output_0"], want["call"])
    assert list(model.signatures["both"](x=tf.constant(x[:2]))) == ["sum", "y"]
    assert [float(v) for v in model.parts[0]] == [1.0, 2.0]
    assert float(model.parts[1]["inner"]) == 5.0
    _near(_losses(model, [model.w, model.b], x, want["y"]), want["losses"], 1e-4)
    tf.saved_model.save(model, str(tmp_path / "again"))  # as any other object
    again = tf.saved_model.load(str(tmp_path / "again"))
    _near(again(x), model(x).numpy(), 0)
    _near(again.scaled(x, training=True)["y"], model.scaled(x, training=True)["y"].numpy(), 0)


def test_calls_that_no_graph_takes_are_refused_with_all_that_are_taken(unpacked: Any) -> None:
    model = tf.saved_model.load(unpacked("dense")[0])
    with pytest.raises(ValueError, match=r"(?s)Could not find matching concrete function.*Option 4"):
        model.scaled(tf.constant([1, 2]))
    with pytest.raises(TypeError, match="by name"):
        model.signatures["both"](1, 2)


@pytest.mark.parametrize("name", ["mlp", "transformer", "recurrent"])
def test_keras_models_predict_and_train_on(unpacked: Any, name: str) -> None:
    folder, want = unpacked(name)
    model = tf.saved_model.load(folder)
    if "other" in want:  # other sizes first: the graph is traced for both
        _near(model.serve(want["x"][:2, :4]), want["other"])
    _near(model.serve(want["x"]), want["call"])
    _near(_losses(model.serve, model.trainable_variables, want["x"], want["y"]), want["losses"], 1e-4)


def test_a_convolutional_network_in_both_modes(unpacked: Any) -> None:
    folder, want = unpacked("cnn")
    model = tf.saved_model.load(folder)
    _near(model.serve(want["x"]), want["call"])
    _near(_losses(model.serve, model.trainable_variables, want["x"], want["y"]), want["losses"], 1e-4)
    _near(model.train(want["x"]), want["train"])  # dropout draws TensorFlow's numbers
    _near(model.serve(want["x"]), want["after"])  # and moving averages have moved


def test_text_becomes_numbers_by_tables(unpacked: Any) -> None:
    folder, want = unpacked("text")
    model = tf.saved_model.load(folder)
    _near(model.tokens(want["lines"]), want["tokens"])
    _near(model.numbers(["a", "x", "c"]), want["numbers"])
    _near(model.serve(want["lines"]), want["call"])


def test_tables_of_constants_of_files_and_of_what_was_put_in(unpacked: Any, tmp_path: Path) -> None:
    folder, want = unpacked("tables")
    model = tf.saved_model.load(folder)
    for given, name in zip(model.look(want["words"]), ["numbers", "lines", "seen"], strict=True):
        _near(given, want[name])
    assert model.numbers.lookup(["two", "none"]).numpy().tolist() == [2, -1]
    _near(model.insert(["one"], [2.5]), want["size"])
    _near(model.look(want["words"])[2], want["seen_after"])
    for given, name in zip(model.pieces("Some WORDS here"), ["joined", "lengths", "parts"], strict=True):
        _near(given, want[name])
    tf.saved_model.save(model, str(tmp_path / "again"))
    _near(tf.saved_model.load(str(tmp_path / "again")).look(want["words"])[1], want["lines"])


def test_loops_branches_and_gradients_that_were_saved(unpacked: Any) -> None:
    folder, want = unpacked("control")
    model = tf.saved_model.load(folder)
    x, y, row = want["x"], want["y"], want["row"]
    _near(model.powers(x, 4), want["powers"])
    _near(model.signs(row), want["signs"])
    _near(model.signs(-2 * row), want["signs_down"])
    _near(model.calls, want["calls"])
    _near(model.squares(want["rows"]), want["squares"])
    _near([model.choose(n, 4.0) for n in range(4)], want["chosen"])
    for given, name in zip(model.running(row), ["scan", "map"], strict=True):
        _near(given, want[name])
    for given, name in zip(model.drawn([3, 4]), ["uniform", "normal"], strict=True):
        _near(given, want[name], 1e-6)
    with tf.GradientTape() as tape:
        v = tf.constant(row)
        tape.watch(v)
        total = tf.reduce_sum(3.0 * model.clipped(v))
    _near(tape.gradient(total, v), want["clipped"])  # by the user's own gradient, which cuts
    _near(_losses(lambda a: model.powers(a, 3), [model.w], x, y), want["losses"], 1e-4)
    _near([model.step(x, y) for _ in range(3)], want["steps"], 1e-4)


def test_a_graph_of_tensorflow_1(unpacked: Any) -> None:
    folder, want = unpacked("version_1")
    model = tf.saved_model.load(folder)
    given = model.signatures["serving_default"](x=want["x"])
    _near(given["scores"], want["scores"])
    _near(given["names"], want["names"])
    assert [v.name for v in model.variables] == ["w:0", "b:0"]
    _near(model.prune("x:0", "scores:0")(want["x"]), want["scores"])
    with pytest.raises(tf.errors.NotFoundError, match="serve"):
        tf.saved_model.load(folder, tags="train")


def test_a_saved_model_as_a_layer(unpacked: Any) -> None:
    folder, want = unpacked("cnn")
    layer = tf.keras.layers.TFSMLayer(folder, call_endpoint="serve", call_training_endpoint="train")
    model = tf.keras.Sequential([tf.keras.Input((12, 12, 3)), layer])
    _near(model(want["x"]), want["call"])
    assert len(model.trainable_variables) == 13
    _near(_losses(model, model.trainable_variables, want["x"], want["y"]), want["losses"], 1e-4)
    _near(layer(want["x"], training=True), want["train"])
    with pytest.raises(ValueError, match="neither an attribute"):
        tf.keras.layers.TFSMLayer(folder, call_endpoint="predict")
    made = tf.keras.layers.TFSMLayer.from_config(layer.get_config())
    assert made.call_training_endpoint == "train"


def test_steps_of_optimizers_and_arguments_that_are_no_dense_tensors(unpacked: Any, tmp_path: Path) -> None:
    folder, want = unpacked("training")
    model = tf.saved_model.load(folder)
    x, y = want["x"], want["y"]
    _near([model.train(x, y) for _ in range(4)], want["steps"], 1e-4)
    means, more = model.ragged(tf.ragged.constant([[1, 2], [3]], dtype=tf.int64))
    _near(means, want["means"])
    _near(more.flat_values, want["more"])
    _near(model.sparse(tf.sparse.from_dense(x)), want["sparse"])
    _near([model.draw(), model.draw()], want["drawn"], 1e-6)
    _near(model.of_any_rank(x), want["matrix"])
    _near(model.of_any_rank(x[0]), want["vector"])
    _near(model.added(x, x[:1]), want["added"])
    assert len(model.optimizer._variables) == 4
    tf.saved_model.save(model, str(tmp_path / "again"))
    _near(tf.saved_model.load(str(tmp_path / "again")).of_any_rank(x), want["matrix"])


def test_branches_of_tensorflow_1(unpacked: Any) -> None:
    folder, want = unpacked("branches_1")
    branch = tf.saved_model.load(folder, tags=["serve", "old"]).signatures["branch"]
    x = want["x"]
    _near([branch(p=a, c=b)["y"] for a in (x, -x) for b in (True, False)], want["results"])


@pytest.mark.parametrize("name", ["loops_1", "variables_1"])
def test_loops_and_variables_of_tensorflow_1(unpacked: Any, name: str) -> None:
    folder, want = unpacked(name)
    signatures = tf.saved_model.load(folder).signatures
    for signature, call in sorted({(*key.split("/")[:2],) for key in want if "/" in key}):
        inputs = ("x", "n") if signature == "loop" else ("x",)
        made = signatures[signature](**{key: want[key] for key in inputs})
        for key, value in made.items():
            _near(value, want[f"{signature}/{call}/{key}"])


def test_steps_of_optimizers_that_are_ops(unpacked: Any) -> None:
    folder, want = unpacked("steps")
    loaded = tf.saved_model.load(folder)
    _near([loaded.step(tf.constant([1.0, -2.0])).numpy() for _ in range(2)], want["values"])
    _near(loaded.m, want["m"])
    _near(loaded.s, want["s"])
