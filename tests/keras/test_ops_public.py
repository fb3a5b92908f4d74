"""The names of `tf.keras.ops` and their parameters are Keras 3's; loops and branches; models of functions as files."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from house.tree import ROOT

import twofold as tf
from twofold import keras
from twofold.keras.keras_ops import operation_class

ops = keras.ops
DATA = ROOT / "tests" / "keras" / "data"
_STORED = json.loads((DATA / "ops_signatures.json").read_text())
SIGNATURES, CLASSES = _STORED["parameters"], _STORED["classes"]
#: what there is none of
ABSENT = {"image.elastic_transform"}
#: operations of Keras that are no layers here: of functions that there are not, and what others are made of
WITHOUT_LAYER = {"ElasticTransform", "SegmentReduction"}
#: settings of Keras that functions do not have
BEYOND: set[tuple[str, str]] = {("LayerNorm", "rms_scaling")}
#: Keras's have `**kwargs` for older names
NARROWER = {"layer_normalization", "multi_hot"}
MODES = [pytest.param(lambda fn: fn, id="eager"), pytest.param(lambda fn: tf.function(fn, fallback=False),
                                                               id="function")]


@pytest.fixture(autouse=True)
def fresh_names():
    keras.backend.clear_session()


def ours():
    return {**{name: getattr(ops, name) for name in ops.__all__ if not inspect.ismodule(getattr(ops, name))},
            **{f"image.{name}": getattr(ops.image, name) for name in ops.image.__all__}}


def test_names_are_those_of_keras():
    assert set(SIGNATURES) - set(ours()) == ABSENT
    assert set(ours()) - set(SIGNATURES) == set()
    with pytest.raises(AttributeError, match="elastic_transform"):
        _ = ops.elastic_transform
    for module in (ops.numpy, ops.nn, ops.linalg):
        assert all(getattr(module, name) is getattr(ops, name) for name in module.__all__)


@pytest.mark.parametrize("name", sorted(set(SIGNATURES) - ABSENT - NARROWER))
def test_parameters_are_those_of_keras(name):
    actual = inspect.signature(ours()[name]).parameters.values()
    assert [str(p.replace(annotation=p.empty)) for p in actual] == SIGNATURES[name]


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_layers_have_the_settings_of_keras(name):
    """What is in the config of an operation, and what it is called with, is the same in files of both."""
    module, cls = name.split(".")
    actual = operation_class(f"keras.src.ops.{module}", cls)
    if cls in WITHOUT_LAYER:
        assert actual is None
        return
    settings, called = CLASSES[name]
    plain = [p for p in settings if p != "kwargs" and (cls, p) not in BEYOND]
    kinds = actual._operation.signature.parameters
    tensors = actual._operation.tensors
    assert list(tensors) == [p for p in called if p != "kwargs"]
    assert {p for p in kinds if p not in tensors and p != "kwargs"} == set(plain)


def test_import_is_lazy():
    code = "import sys, twofold.keras; print('twofold.keras.ops' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


# -- dtypes ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(("dtypes", "expected"), [
    (("int32", "float16"), "float16"), (("uint8", "int8"), "int16"), (("uint32", "int8"), "int64"),
    (("float16", "bfloat16"), "float32"), (("bool", int), "int32"), (("uint8", int), "uint8"),
    (("int64", float), "float32"), ((int, float), "float32"), (("float16", float), "float16"),
    (("int64", "uint64"), "float32"), (("float32", "float64", "int8"), "float64"), ((bool,), "bool"),
    (("bool", "bool"), "bool"), (("float32", complex), "complex64"), (("float64", "complex64"), "complex128"),
    ((None, "int32"), "float32")])
def test_result_type(dtypes, expected):
    assert keras.backend.result_type(*dtypes) == expected
    assert keras.backend.result_type(*reversed(dtypes)) == expected


def test_floatx_is_the_dtype_of_numbers():
    keras.config.set_floatx("float64")
    try:
        assert ops.sin([1, 2]).dtype == ops.zeros(2).dtype == ops.add(tf.constant([1]), 0.5).dtype == tf.float64
        assert float(ops.log([3])[0]) == np.log(3.0)
    finally:
        keras.config.set_floatx("float32")
    with pytest.raises(ValueError, match="meet"):
        keras.backend.result_type("string", "int32")


def test_what_arguments_may_be():
    variable = tf.Variable([1.0, 4.0])
    for x in (variable, np.array([1.0, 4.0], np.float32), [1.0, 4.0], (1, 4.0), tf.constant([1.0, 4.0])):
        assert ops.sqrt(x).numpy().tolist() == [1.0, 2.0] and ops.sqrt(x).dtype == tf.float32
        assert ops.add(x, x).numpy().tolist() == [2.0, 8.0]
    assert ops.shape(np.zeros((2, 3))) == (2, 3) and ops.dtype(variable) == "float32"
    assert ops.convert_to_numpy(variable).tolist() == [1.0, 4.0]
    for wrong in (lambda: ops.take_along_axis([1, 2], [[1]], 0), lambda: ops.gcd(1.5, 2), lambda: ops.diff(3),
                  lambda: ops.norm([1.0], "fro", axis=0), lambda: ops.quantile([1.0], 0.5, method="other"),
                  lambda: ops.one_hot([1], 2, axis=0, sparse=True),
                  lambda: ops.moveaxis([[1]], (0, 1), 0), lambda: ops.stft(np.ones(9), 8, 2, 4)):
        with pytest.raises((ValueError, TypeError)):
            wrong()


def test_unknown_sizes():
    @tf.function(input_signature=[tf.TensorSpec([None, 4])], fallback=False)
    def run(x):
        rows, columns = ops.shape(x)
        assert columns == 4 and tf.is_tensor(rows)
        return (ops.ravel(x), ops.reshape(x, (rows * 2, 2)), ops.take(x, [-1], axis=0), ops.quantile(x, 0.5, axis=0),
                ops.tril(x), ops.take_along_axis(x, ops.argsort(x, axis=0), axis=0), ops.size(x),
                ops.logsumexp(x), ops.roll(x, 1), ops.unique(x), ops.histogram(ops.ravel(x), 3)[0])
    for n in (2, 5):
        x = np.random.RandomState(n).rand(n, 4).astype(np.float32)
        actual = [y.numpy() for y in run(x)]
        expected = [x.ravel(), x.reshape(-1, 2), x[-1:], np.quantile(x, 0.5, axis=0), np.tril(x), np.sort(x, 0),
                    np.int32(x.size), np.log(np.exp(x).sum()), np.roll(x, 1), np.unique(x), np.histogram(x, 3)[0]]
        for y, z in zip(actual, expected, strict=True):
            np.testing.assert_allclose(y, z, rtol=1e-6)


def test_patterns_of_axes():
    x = np.arange(120).reshape(2, 3, 4, 5)
    cases = [("a b ... -> ... (b a)", x.transpose(2, 3, 1, 0).reshape(4, 5, 6), {}),
             ("a b c d -> a 1 d (b c)", x.transpose(0, 3, 1, 2).reshape(2, 1, 5, 12), {}),
             ("a b (c e) d -> a (d e) () b c",
              x.reshape(2, 3, 2, 2, 5).transpose(0, 4, 3, 1, 2).reshape(2, 10, 1, 3, 2), {"e": 2}),
             ("... -> (...)", x.ravel(), {})]
    for pattern, expected, sizes in cases:
        np.testing.assert_array_equal(ops.rearrange(x, pattern, **sizes), expected)
    again = ops.rearrange(ops.rearrange(x, "a b c d -> (a b) (d c)"), "(a b) (d c) -> a b c d", a=2, c=4)
    np.testing.assert_array_equal(again, x)
    for wrong, sizes in (("a b c d", {}), ("a b c -> a b c", {}), ("a b c d -> a b c e", {}), ("a b c a -> a b c", {}),
                         ("a b c (d e) -> a b c d e", {}), ("a b c (d e) -> a b c d e", {"d": 2}),
                         ("a b c (d -> a b c d", {}), ("a b c d -> a b c d", {"f": 2}), ("a b c ? -> a b c ?", {}),
                         ("a 1 c d -> a c d", {})):
        with pytest.raises(ValueError, match="rearrange"):
            ops.rearrange(x, wrong, **sizes)


# -- control --------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", MODES)
def test_branches(mode):
    @mode
    def run(x):
        branches = [lambda v: v + 1, lambda v: v * 10, lambda v: v - 1]
        return (ops.cond(ops.sum(x) > 3, lambda: x * 2, lambda: x), ops.switch(ops.size(x) - 2, branches, x),
                ops.switch(7, branches, x), ops.switch(-7, branches, x))
    actual = [y.numpy().tolist() for y in run(tf.constant([1.0, 2.0, 3.0]))]
    assert actual == [[2.0, 4.0, 6.0], [10.0, 20.0, 30.0], [0.0, 1.0, 2.0], [2.0, 3.0, 4.0]]


@pytest.mark.parametrize("mode", MODES)
def test_loops(mode):
    @mode
    def run(xs):
        n, total = ops.while_loop(lambda n, total: total < 20, lambda n, total: (n + 1, total + n), (0, 0))
        single = ops.while_loop(lambda v: v < 50.0, lambda v: v * 3, 2.0)
        stopped = ops.while_loop(lambda v: v < 50.0, lambda v: v * 3, [2.0], maximum_iterations=2)[0]
        power = ops.fori_loop(1, 5, lambda i, v: v * ops.cast(i, "float32"), 1.0)
        last, sums = ops.scan(lambda c, x: (c + x, {"sum": c + x, "big": c > 3}), tf.zeros(2), xs)
        end, falling = ops.scan(lambda c, x: (c + x, c), tf.zeros(2), xs, reverse=True)
        counted, nothing = ops.scan(lambda c, _: (c * 2, None), tf.constant(1), length=5)
        assert nothing is None
        mapped = ops.map(lambda pair: (pair[0] + pair[1], ops.sum(pair[0]) > 2), (xs, xs * 10))
        return (n, total, single, stopped, power, last, sums["sum"], sums["big"], end, falling, counted, *mapped,
                ops.vectorized_map(lambda v: ops.dot(v, v), xs))
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    sums = x.cumsum(0)
    before = x[::-1].cumsum(0)[::-1] - x
    expected = [7, 21, 54.0, 18.0, 24.0, x.sum(0), sums, sums - x > 3, x.sum(0), before, 32, 11 * x, x.sum(1) > 2,
                (x * x).sum(1)]
    for actual, wanted in zip(run(tf.constant(x)), expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize("count", range(1, 10))
def test_associative_scan(count):
    x = np.random.RandomState(count).randint(-4, 5, (2, count, 3))
    near = [np.cumsum(x, 1), np.cumprod(x, 1)]
    actual = ops.associative_scan(lambda a, b: (a[0] + b[0], a[1] * b[1]), (tf.constant(x), tf.constant(x)), axis=1)
    for y, z in zip(actual, near, strict=True):
        np.testing.assert_array_equal(y, z)
    back = ops.associative_scan(tf.add, tf.constant(x), reverse=True, axis=1)
    np.testing.assert_array_equal(back, np.cumsum(x[:, ::-1], 1)[:, ::-1])


@pytest.mark.parametrize("mode", MODES)
def test_derivatives_along_directions(mode):
    @mode
    def run(x, v):
        return ops.jvp(lambda x: (ops.sin(x), ops.sum(x * x)), (x,), (v,))
    x, v = np.array([0.3, 0.7]), np.array([1.0, -2.0])
    outputs, changes = run(tf.constant(x), tf.constant(v))
    np.testing.assert_allclose(outputs[0], np.sin(x))
    np.testing.assert_allclose(changes[0], np.cos(x) * v, rtol=1e-14)
    np.testing.assert_allclose(changes[1], (2 * x * v).sum(), rtol=1e-14)


def test_functions_of_functions():
    @ops.custom_gradient
    def halved(x):
        return x * 1.0, lambda upstream: upstream * 0.5
    x = tf.constant([3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = halved(x) * ops.stop_gradient(x)
    assert y.numpy().tolist() == [9.0] and tape.gradient(y, x).numpy().tolist() == [1.5]
    table = ops.vectorize(lambda a, b, scale=1: ops.cond(a > b, lambda: a * scale, lambda: b), excluded={"scale"})
    actual = table(np.array([[1.0], [4.0]], np.float32), np.array([2.0, 3.0], np.float32), scale=10)
    assert actual.numpy().tolist() == [[2.0, 3.0], [40.0, 40.0]]


# -- models ---------------------------------------------------------------------------------------
def stored():
    with np.load(DATA / "exchange" / "ops_model.npz") as actual:
        inputs = [actual[f"in{n}"] for n in range(2)]
        return inputs, [actual[f"out{n}"] for n in range(len(actual.files) - 2)]


def layers_of(path):
    with zipfile.ZipFile(path) as file:
        return json.loads(file.read("config.json"))["config"]["layers"]


def test_a_model_of_keras_is_read_and_written_again(tmp_path):
    path = DATA / "exchange" / "ops_model.keras"
    model = keras.models.load_model(path)
    inputs, expected = stored()
    actual = model([tf.constant(x) for x in inputs])
    for n, (x, y) in enumerate(zip(actual, expected, strict=True)):
        assert x.dtype.as_numpy_dtype == y.dtype, n
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-5, err_msg=str(n))
    model.save(tmp_path / "again.keras")
    for mine, theirs in zip(layers_of(tmp_path / "again.keras"), layers_of(path), strict=True):
        if theirs["module"].startswith("keras.src.ops"):
            quiet = {"sparse": False, "synchronized": False, "rms_scaling": False}  # options that say nothing
            given = {k: v for k, v in theirs["config"].items() if k not in quiet or v != quiet[k]}
            assert (mine["module"], mine["class_name"], mine["config"]) == (
                theirs["module"], theirs["class_name"], given)
            assert mine["inbound_nodes"] == theirs["inbound_nodes"], theirs["class_name"]


def doubled(x):
    return x * 2


def test_models_are_saved(tmp_path):
    x = keras.Input((4, 6), name="x")
    y = ops.relu(ops.add(keras.layers.Dense(6)(x), ops.mean(x, axis=-1, keepdims=True)))
    scaled = ops.multiply(ops.reshape(y, (-1, 24)), np.linspace(0, 1, 24, dtype=np.float32))
    model = keras.Model(x, [scaled, ops.clip(y, ops.min(y), 0.5), ops.vectorized_map(doubled, y)])
    given = tf.constant(np.random.RandomState(0).rand(2, 4, 6).astype(np.float32))
    model.save(tmp_path / "model.keras")
    with keras.saving.custom_object_scope({"doubled": doubled}):
        again = keras.models.load_model(tmp_path / "model.keras")
    for actual, wanted in zip(again(given), model(given), strict=True):
        np.testing.assert_array_equal(actual, wanted)
    assert [layer.name for layer in again.layers] == [layer.name for layer in model.layers]
    assert {"add", "mean", "relu", "reshape", "clip"} <= {layer.name for layer in model.layers}


def test_models_train():
    x = keras.Input((3,))
    y = ops.squeeze(ops.matmul(ops.tanh(keras.layers.Dense(8)(x)), ops.ones((8, 1))), -1)
    model = keras.Model(x, y)
    model.compile(keras.optimizers.Adam(0.05), "mse")
    given = np.random.RandomState(0).rand(64, 3).astype(np.float32)
    history = model.fit(given, given.sum(1), epochs=20, verbose=0).history["loss"]
    assert history[-1] < 0.1 * history[0]
