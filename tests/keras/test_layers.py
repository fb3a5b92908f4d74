"""Layers give what Keras gives: outputs, gradients, state, weights in order, shapes and configs.

The cases are in `layer_cases.py`, and Keras's results in `data/layers.npz`, which `make_layer_reference.py` wrote. All
cases run op by op; those marked so run in a `tf.function` too, for batches and steps of unknown number.
"""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest
from house.tree import ROOT

import twofold as tf

from keras import layer_cases as cases  # isort: skip


def _reference():
    with np.load(ROOT / "tests" / "keras" / "data" / "layers.npz", allow_pickle=False) as file:
        numbers, about = file["numbers"], json.loads(file["about"].tobytes())
    actual, at = {}, 0
    assert about["order"] == list(cases.CASES)
    about = about["cases"]
    for name in cases.CASES:
        arrays = []
        for shape in [*[s for s, _ in about[name]["outputs"]], *about[name]["gradients"], *about[name]["states"]]:
            arrays.append(numbers[at:at + int(np.prod(shape))].reshape(shape))
            at += arrays[-1].size
        actual[name] = (arrays, about[name])
    assert at == numbers.size
    return actual


REFERENCE = _reference()
COMPILED = [name for name, case in cases.CASES.items() if case.compiled]


def near(actual, expected, scale):
    """Equal but for float32's rounding, of numbers or of the sums behind them, which are of size `scale`."""
    actual = np.asarray(tf.cast(tf.convert_to_tensor(actual), tf.float32), np.float64)
    expected = np.asarray(expected, np.float64)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=2e-6 * scale)


@functools.cache
def made(name):
    case = cases.CASES[name]
    layer, inputs = case.make(tf.keras.layers), [tf.constant(x) for x in case.inputs]
    case.call(layer, *inputs)
    return layer, inputs


def built(name):
    """The layer of a case with its weights, and its inputs."""
    layer, inputs = made(name)
    reset(layer)
    return layer, inputs


def reset(layer):
    for number, variable in enumerate(layer.weights):
        if variable.dtype.is_floating:
            variable.assign(cases.weight(number, tuple(variable.shape), variable.name))
    if getattr(layer, "stateful", False):
        layer.reset_state()


def measure(layer, case, inputs):
    """Outputs and gradients."""
    watched = [x for x in inputs if x.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(watched)
        outputs = tf.nest.flatten(case.call(layer, *inputs))
        losses = [tf.reduce_sum(tf.cast(y, tf.float32) * cases.wave(90 + n, *np.shape(expected)))
                  for n, (y, expected) in enumerate(zip(outputs, measure.expected, strict=True))]
        total = tf.add_n([*losses, *[tf.cast(loss, tf.float32) for loss in layer.losses]])
    sources = [*watched, *layer.trainable_variables]
    return outputs, tape.gradient(total, sources, unconnected_gradients="zero")


def check(layer, actual, arrays, about):
    outputs, gradients = actual
    states = [v for v in layer.non_trainable_weights if v.dtype.is_floating]
    values = [*outputs, *gradients, *states]
    assert len(values) == len(arrays)
    scale = max(float(np.abs(x).max(initial=1.0)) for x in arrays)
    for value, expected in zip(values, arrays, strict=True):
        assert tuple(value.shape) == expected.shape
        near(value, expected, scale)
    assert [y.dtype.name for y in outputs] == [dtype for _, dtype in about["outputs"]]


@pytest.mark.parametrize("name", cases.CASES)
def test_outputs_gradients_and_state(name):
    arrays, about = REFERENCE[name]
    case = cases.CASES[name]
    layer, inputs = built(name)
    measure.expected = arrays[:len(about["outputs"])]
    check(layer, measure(layer, case, inputs), arrays, about)


@pytest.mark.parametrize("name", COMPILED)
def test_in_a_function_of_unknown_sizes(name):
    arrays, about = REFERENCE[name]
    case = cases.CASES[name]
    layer, inputs = built(name)
    measure.expected = arrays[:len(about["outputs"])]
    specs = [tf.TensorSpec([None, *x.shape[1:]], x.dtype) for x in inputs]
    step = tf.function(lambda *given: measure(layer, case, list(given)), input_signature=specs, fallback=False)
    check(layer, step(*inputs), arrays, about)


@pytest.mark.parametrize("name", cases.CASES)
def test_weights_in_order(name):
    layer, _ = built(name)
    trained = {id(v) for v in layer.trainable_weights}
    actual = [[v.name.rpartition("/")[2].partition(":")[0], list(v.shape), id(v) in trained] for v in layer.weights]
    assert actual == REFERENCE[name][1]["weights"]


@pytest.mark.parametrize("name", cases.CASES)
def test_output_shape(name):
    expected = REFERENCE[name][1]["shape"]
    layer, inputs = built(name)
    if expected is not None:
        actual = json.loads(json.dumps(layer.compute_output_shape((None, *inputs[0].shape[1:]))))
        # Keras's EinsumDense does not know the sizes that its `output_shape` leaves open
        assert known_where(actual, expected) == expected


def known_where(actual, expected):
    """A shape, or shapes, without the sizes that another leaves open."""
    if isinstance(actual, list) and isinstance(expected, list) and len(actual) == len(expected):
        return [known_where(f, e) for f, e in zip(actual, expected, strict=True)]
    return expected if expected is None else actual


def plain_config(value):
    """A config without what differs by design.

    These are the names of objects, what Keras has for its quantisation or has given up, a seed that it forgets to
    write, and dtypes, of which Keras writes some as names.
    """
    if isinstance(value, dict):
        if value.get("class_name") == "DTypePolicy":
            return value["config"]["name"]
        without = {"name", "registered_name", "build_config", "quantization_config", "rms_scaling", "seed"}
        return {k: plain_config(v) for k, v in value.items() if k not in without}
    if isinstance(value, float):
        return float(np.float32(value))  # Keras keeps some numbers as tensors
    return [plain_config(v) for v in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("name", cases.CASES)
def test_config(name):
    layer = cases.CASES[name].make(tf.keras.layers)
    ours = json.loads(json.dumps(tf.keras.layers.serialize(layer)))
    assert plain_config(ours["config"]) == plain_config(REFERENCE[name][1]["config"])


@pytest.mark.parametrize("name", cases.CASES)
def test_a_config_makes_an_equal_layer(name):
    """Whose outputs are the same, once it has the same weights; from our config, and from Keras's."""
    case = cases.CASES[name]
    layer, inputs = built(name)
    config = json.loads(json.dumps(tf.keras.layers.serialize(layer)))
    for made in (config, {**config, "config": REFERENCE[name][1]["config"]}):
        made.pop("build_config", None)
        again = tf.keras.layers.deserialize(made)
        assert type(again) is type(layer)
        case.call(again, *inputs)
        reset(again)
        reset(layer)
        for actual, expected in zip(tf.nest.flatten(case.call(again, *inputs)),
                                   tf.nest.flatten(case.call(layer, *inputs)), strict=True):
            np.testing.assert_array_equal(actual, expected)


def test_a_model_with_operations_of_keras():
    """Such as those by which masks are made: Keras writes them as nodes of the model."""
    reference = json.loads((ROOT / "tests" / "keras" / "data" / "operations.json").read_text())
    model = tf.keras.models.model_from_json(json.dumps(reference["config"]))
    for number, variable in enumerate(model.weights):
        variable.assign(cases.weight(number, tuple(variable.shape), variable.name))
    inputs = [tf.constant(x) for x in cases.operation_inputs()]
    again = tf.keras.models.model_from_json(model.to_json())
    again.set_weights(model.get_weights())
    for one in (model, again, tf.function(model)):
        for actual, expected in zip(one(inputs), reference["outputs"], strict=True):
            np.testing.assert_allclose(np.ravel(actual), expected, rtol=1e-5, atol=1e-6)
    written = {(layer["module"], layer["class_name"]) for layer in json.loads(model.to_json())["config"]["layers"]}
    assert written >= {("keras.src.ops.numpy", "NotEqual"), ("keras.src.ops.numpy", "Any"), ("keras.layers", "LSTM")}
