"""Writes `data/ops.npz`: what Keras 3 gives for the calls of `ops_cases.py` and `ops_shape_cases.py`.

Also `data/ops_signatures.json`, the names of its functions with their parameters, and `data/exchange/ops_model.keras`,
a model of many of them, with inputs and outputs in `ops_model.npz`.

Run it with a Python that has TensorFlow and Keras 3: `python tests/keras/make_ops_reference.py`. The tests read what it
wrote and need neither.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pathlib
import sys
import types

import keras
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent


def cases_module(name):
    """A module of cases, in a package of another name than Keras's."""
    package = sys.modules.setdefault("cases", types.ModuleType("cases"))
    package.__path__ = [str(HERE)]
    return importlib.import_module(f"cases.{name}")


def given(value):
    if type(value).__name__ == "Half":
        return keras.ops.cast(value.values, "bfloat16")
    if isinstance(value, np.ndarray):
        return keras.ops.convert_to_tensor(value)
    if isinstance(value, list):
        return [given(v) for v in value]
    return tuple(given(v) for v in value) if isinstance(value, tuple) else value


def flat(value):
    return [x for v in value for x in flat(v)] if isinstance(value, (list, tuple)) else [value]


def signatures():
    """For each function its parameters: `name`, or `name=default`."""
    actual = {}
    for prefix, module in (("", keras.ops), ("image.", keras.ops.image)):
        for name in dir(module):
            function = getattr(module, name)
            if not name.startswith("_") and callable(function):
                actual[prefix + name] = [str(p) for p in inspect.signature(function).parameters.values()]
    return actual


def classes():
    """For each operation its module, class, the settings of its config, and what it is called with."""
    actual = {}
    for name in ("numpy", "nn", "core", "math", "linalg", "image"):
        module = importlib.import_module(f"keras.src.ops.{name}")
        for cls, value in vars(module).items():
            if inspect.isclass(value) and issubclass(value, keras.Operation) and value.__module__ == module.__name__:
                settings = [p for p in inspect.signature(value.__init__).parameters if p not in ("self", "name")]
                called = [p for p in inspect.signature(value.call).parameters if p != "self"]
                actual[f"{name}.{cls}"] = [settings, called]
    return actual


def model():
    ops = keras.ops
    x, n = keras.Input((4, 6), name="x"), keras.Input((4,), dtype="int32", name="n")
    y = ops.add(ops.matmul(x, ops.transpose(x, (0, 2, 1))), n[..., None])
    z = ops.concatenate([ops.sum(y, axis=1, keepdims=True), ops.max(y, axis=1, keepdims=True)], axis=1)
    w = ops.where(ops.greater(x, 0), ops.clip(x, -1.0, 0.5), ops.logaddexp(x, 0.25))
    values, places = ops.top_k(ops.reshape(w, (-1, 24)), 3)
    outputs = [
        ops.softmax(z, axis=-1), ops.einsum("bij,bkj->bik", w, x), values, ops.cast(places, "float32"),
        ops.stack(ops.split(x, 3, axis=-1)[1:], axis=1), ops.get_item(x, (slice(None), 1, slice(0, None, 2))),
        ops.one_hot(ops.argmax(x, axis=-1), 6), ops.squeeze(ops.expand_dims(ops.norm(x, axis=-1), -1), -1),
        ops.slice(y, (0, 1, 0), (2, 2, 3)), ops.layer_normalization(x), ops.gelu(x), ops.leaky_relu(x, 0.3),
        ops.moveaxis(ops.unstack(x, axis=1)[2], 0, 0), ops.take(x, ops.convert_to_tensor([0, 2]), axis=1),
        ops.moments(x, axes=[1])[1], ops.std(x, axis=(1, 2)), ops.quantile(x, 0.3, axis=1), ops.cumsum(n, axis=1),
        ops.pad(x, ((0, 0), (1, 1), (0, 2)), constant_values=1.5), ops.rfft(x)[0], ops.divide(n, 2),
        ops.image.resize(ops.expand_dims(x, -1), (3, 5)), ops.max_pool(x, 2), ops.rms_normalization(x, axis=1),
        ops.batch_normalization(x, ops.zeros(6), ops.ones(6), -1), ops.logical_and(n > 1, n < 5),
        ops.segment_sum(ops.ravel(n), ops.convert_to_tensor([0, 1] * 4), num_segments=2)]
    return keras.Model([x, n], outputs, name="ops_model")


def save_model():
    made, rng = model(), np.random.RandomState(3)
    given = [rng.uniform(-2, 2, (2, 4, 6)).astype("float32"), rng.randint(0, 7, (2, 4)).astype("int32")]
    actual = made([keras.ops.convert_to_tensor(g) for g in given])
    made.save(HERE / "data" / "exchange" / "ops_model.keras")
    np.savez_compressed(HERE / "data" / "exchange" / "ops_model.npz", **{f"in{n}": g for n, g in enumerate(given)},
                        **{f"out{n}": np.asarray(y) for n, y in enumerate(actual)})


def main():
    told = {"parameters": signatures(), "classes": classes()}
    (HERE / "data" / "ops_signatures.json").write_text(json.dumps(told) + "\n")
    save_model()
    cases, more = cases_module("ops_cases"), cases_module("ops_shape_cases")
    values, kinds, refused = [], {}, []
    for case in [*cases.dtype_cases(), *more.setting_cases()]:
        name, args, kwargs = case
        key = cases.key(case)
        if key in kinds:
            continue
        function = keras.ops
        for part in name.split("."):
            function = getattr(function, part)
        try:
            actual = flat(function(*[given(a) for a in args], **{k: v if isinstance(v, (tuple, list)) else given(v)
                                                                 for k, v in kwargs.items()}))
        except Exception as error:  # noqa: BLE001 - Keras with TensorFlow does not have it for these dtypes
            refused.append((name, cases.described((args, kwargs))[:60], str(error)[:60].replace("\n", " ")))
            continue
        kinds[key] = []
        for x in actual:
            kind = keras.backend.standardize_dtype(x.dtype) if hasattr(x, "dtype") else type(x).__name__
            array = np.asarray(keras.ops.cast(x, "float32") if kind == "bfloat16" else x)
            kinds[key].append([kind, list(array.shape)])
            parts = [array.real, array.imag] if np.iscomplexobj(array) else [array]
            values += [part.astype(np.float64).ravel() for part in parts]
    np.savez_compressed(HERE / "data" / "ops.npz", kinds=np.array(json.dumps(kinds)), values=np.concatenate(values))
    for line in refused:
        print("left out:", *line)


if __name__ == "__main__":
    main()
