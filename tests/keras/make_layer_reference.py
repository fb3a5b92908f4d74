"""Write `data/layers.npz`: what Keras gives for the cases in `layer_cases.py`.

Runs in an environment of its own, with TensorFlow 2.21 and its Keras 3; no test needs it.

    python tests/keras/make_layer_reference.py [--only NAME ...]

With `--only` the cases of these names are run and the others are kept as they are in the file.

It also writes `data/operations.json`: the config of a model with operations and masks, and its output.

The file of layers holds two arrays: all numbers, one case after another, and a JSON text that says for each case the
shapes of its outputs, gradients and states after the call, its weights and its config.
"""

from __future__ import annotations

import argparse
import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

HERE = Path(__file__).parent
sys.path = [p for p in sys.path if Path(p or ".").resolve() not in (HERE, HERE.parent)]
# this folder has the name of the library: its modules are found under another
_package = types.ModuleType("reference")
_package.__path__ = [str(HERE)]
sys.modules["reference"] = _package

import keras  # noqa: E402
from reference import layer_cases as cases  # noqa: E402


def config_of(layer: Any) -> Any:
    """The config as JSON values."""
    return json.loads(json.dumps(keras.saving.serialize_keras_object(layer)["config"]))


def run(case: cases.Case) -> tuple[list[np.ndarray], dict[str, Any]]:
    """The numbers of a case, and what they are."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(1)
    layer = case.make(keras.layers)
    config = config_of(layer)
    inputs = [tf.constant(x) for x in case.inputs]
    case.call(layer, *inputs)  # makes the weights
    for number, variable in enumerate(layer.weights):
        if variable.dtype != "int32":
            variable.assign(cases.weight(number, tuple(variable.shape), variable.name))
    if hasattr(layer, "reset_state") and getattr(layer, "stateful", False):
        layer.reset_state()
    watched = [x for x in inputs if x.dtype.is_floating]
    trained = [v.value for v in layer.trainable_variables]
    with tf.GradientTape() as tape:
        tape.watch(watched)
        outputs = tf.nest.flatten(case.call(layer, *inputs))
        total = tf.add_n([tf.reduce_sum(tf.cast(y, tf.float32) * cases.wave(90 + n, *y.shape))
                          for n, y in enumerate(outputs)])
        total += tf.add_n([tf.cast(loss, tf.float32) for loss in layer.losses] or [0.0])
    gradients = tape.gradient(total, [*watched, *trained], unconnected_gradients="zero")
    gradients = [tf.convert_to_tensor(g) for g in gradients]
    states = [v for v in layer.non_trainable_weights if v.dtype != "int32"]
    actual = [*outputs, *gradients, *states]
    about = {
        "outputs": [[list(y.shape), y.dtype.name] for y in outputs], "gradients": [list(g.shape) for g in gradients],
        "states": [list(v.shape) for v in states], "config": config,
        "weights": [[v.name, list(v.shape), v.trainable] for v in layer.weights],
        "shape": json.loads(json.dumps(output_shape(layer, case)))}
    return [np.asarray(tf.cast(x, tf.float32)).ravel() for x in actual], about


def output_shape(layer: Any, case: cases.Case) -> Any:
    """What the layer says about its outputs, for cases of one input."""
    if case.call not in (cases.plain, cases.training, cases.inference) or len(case.inputs) != 1:
        return None
    return layer.compute_output_shape((None, *case.inputs[0].shape[1:]))


def operations() -> dict[str, Any]:
    """A functional model with Keras's operations in it: some written by the user, some by masks."""
    ops = keras.ops
    words, x = keras.Input((4,), dtype="int32"), keras.Input((4, 3))
    h = keras.layers.LSTM(3, return_sequences=True)(keras.layers.Embedding(5, 3, mask_zero=True)(words))
    h = keras.layers.Add()([h, keras.layers.GRU(3, return_sequences=True)(keras.layers.Masking()(x))])
    y = ops.concatenate([ops.mean(ops.tanh(x * 2.0 - 1.0), axis=1), keras.layers.GlobalAveragePooling1D()(h)], axis=-1)
    y = ops.where(y > 0.0, ops.sqrt(ops.abs(y)), ops.exp(ops.minimum(y, 0.5)) / 3.0)
    y = ops.reshape(ops.softmax(ops.expand_dims(y, 1), axis=-1), (-1, 2, 3))
    model = keras.Model([words, x], [y, ops.sum(ops.square(y), axis=(1, 2), keepdims=True)])
    for number, variable in enumerate(model.weights):
        variable.assign(cases.weight(number, tuple(variable.shape), variable.name))
    actual = model([tf.constant(v) for v in cases.operation_inputs()])
    return {"config": json.loads(model.to_json()),
            "outputs": [[float(f"{v:.8g}") for v in np.ravel(y)] for y in actual]}


def kept(target: Path) -> dict[str, tuple[list[np.ndarray], dict[str, Any]]]:
    """The cases of the file: the numbers of each, and what they are."""
    with np.load(target, allow_pickle=False) as file:
        numbers, about = file["numbers"], json.loads(file["about"].tobytes())
    actual, at = {}, 0
    for name in about["order"]:
        one = about["cases"][name]
        shapes = [*[s for s, _ in one["outputs"]], *one["gradients"], *one["states"]]
        end = at + sum(int(np.prod(shape)) for shape in shapes)
        actual[name] = [numbers[at:end]], one
        at = end
    return actual


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", metavar="NAME", help="names of cases; all by default")
    only = parser.parse_args().only
    unknown = sorted(set(only or ()) - set(cases.CASES))
    if unknown:
        parser.error(f"there are no cases of these names: {', '.join(unknown)}")
    target = HERE / "data" / "layers.npz"
    before = kept(target) if only is not None else {}
    if only is None:
        text = json.dumps(operations(), separators=(",", ":"), sort_keys=True)
        (HERE / "data" / "operations.json").write_text(text + "\n")
    numbers, about = [], {}
    for name, case in cases.CASES.items():
        actual, about[name] = before[name] if name in before and name not in (only or ()) else run(case)
        numbers += actual
    text = json.dumps({"order": list(about), "cases": about}, separators=(",", ":"), sort_keys=True).encode()
    np.savez_compressed(target, numbers=np.concatenate(numbers).astype(np.float32),
                        about=np.frombuffer(text, np.uint8))
    print(f"{len(about)} cases, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
