"""Every format that keeps values, with every dtype, layout and size that a value can have.

A value is an array in memory of any strides: a filled tensor has stride 0, a slice of a matrix a stride of its row. The
expected value is NumPy's copy of it, made before it is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import twofold as tf
from twofold._formats import safetensors as _safetensors
from twofold._formats import tensor_file as _tensor_file

NUMBERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
           "float32", "float64", "complex64", "complex128"]
DTYPES = [*NUMBERS, "string"]


def matrix(dtype: str) -> tf.Tensor:
    """Values of a dtype, of which neighbours differ."""
    if dtype == "string":
        texts = np.array([f"{n}" * (n % 5) for n in range(12 * 20)], object)
        return tf.reshape(tf.constant(texts), [12, 20])
    counted = (np.arange(12 * 20).reshape(12, 20) * 7) % 120
    if dtype.startswith("complex"):
        counted = counted - 1j * counted[::-1]
    return tf.constant(counted.astype(tf.as_dtype(dtype).as_numpy_dtype))


LAYOUTS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "contiguous": lambda m: m,
    "scalar": lambda m: m[3, 4],
    "empty": lambda m: m[:0],
    "empty last axis": lambda m: m[:, :0],
    "transposed": lambda m: tf.transpose(m),
    "reversed": lambda m: m[::-1, ::-1],
    "column": lambda m: m[:, 3],
    "every other": lambda m: m[1::2, ::3],
    "filled": lambda m: tf.fill([3000], m[2, 3]),
    "filled matrix": lambda m: tf.fill([70, 90], m[2, 3]),
    "zeros": lambda m: tf.zeros([5000], m.dtype),
    "ones": lambda m: tf.ones([5000], m.dtype) if m.dtype != tf.string else tf.fill([5000], "a"),
    "broadcast row": lambda m: tf.broadcast_to(m[1], [30, 20]),
    "broadcast column": lambda m: tf.broadcast_to(m[:, :1], [12, 30]),
    "rank 6": lambda m: tf.transpose(tf.reshape(m, [2, 3, 2, 2, 5, 2]), [5, 3, 1, 0, 2, 4]),
}


def variables(dtype: str) -> dict[str, tf.Variable]:
    """A variable of each layout, whose value has the layout: an assignment takes a tensor as it lies in memory."""
    made = {}
    for name, layout in LAYOUTS.items():
        value = layout(matrix(dtype))
        made[name.replace(" ", "_")] = variable = tf.Variable(value, name=name.replace(" ", "_"))
        variable.assign(value)
    if dtype not in ("string", "bfloat16"):
        made["big_endian"] = tf.Variable(np.asarray(matrix(dtype)).astype(tf.as_dtype(dtype).as_numpy_dtype().dtype
                                                                          .newbyteorder(">")), name="big_endian")
    return made


def blank(like: dict[str, tf.Variable]) -> dict[str, tf.Variable]:
    return {name: tf.Variable(np.zeros(v.shape, v.dtype.as_numpy_dtype) if v.dtype != tf.string else
                              np.full(v.shape, b"", object), name=name, dtype=v.dtype) for name, v in like.items()}


class Holder(tf.Module):
    """What a saved model holds."""

    def __init__(self, held: dict[str, tf.Variable]) -> None:
        super().__init__()
        for name, variable in held.items():
            setattr(self, name, variable)


class Weights(tf.keras.layers.Layer):
    """A layer whose weights have the shapes and dtypes of variables."""

    def __init__(self, held: dict[str, tf.Variable]) -> None:
        super().__init__(name="weights")
        self.held = {name: self.add_weight(name=name, shape=v.shape, dtype=v.dtype.name, initializer="zeros")
                     for name, v in held.items()}

    def call(self, x: Any) -> Any:
        return x

    def get_config(self) -> dict[str, Any]:
        raise AssertionError("is made anew by the function below")


def keras_model(held: dict[str, tf.Variable]) -> tuple[Any, dict[str, Any]]:
    layer = Weights(held)
    model = tf.keras.Sequential([tf.keras.layers.Input((1,)), layer])
    model.compile("sgd", "mse")
    return model, layer.held


# Each takes the variables and an empty folder, writes them, and gives what it reads by name.
def by_write(held: dict[str, tf.Variable], folder: Path) -> dict[str, Any]:
    path = tf.train.Checkpoint(**held).write(str(folder / "c"))
    actual = blank(held)
    tf.train.Checkpoint(**actual).read(path).assert_consumed()
    return actual


def by_save(held: dict[str, tf.Variable], folder: Path) -> dict[str, Any]:
    path = tf.train.Checkpoint(**held).save(str(folder / "c"))
    actual = blank(held)
    tf.train.Checkpoint(**actual).restore(path).assert_consumed()
    return actual


def by_manager(held: dict[str, tf.Variable], folder: Path) -> dict[str, Any]:
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(**held), str(folder), 1)
    manager.save()
    actual = blank(held)
    tf.train.Checkpoint(**actual).restore(tf.train.latest_checkpoint(str(folder))).assert_consumed()
    return actual


def by_reader(held: dict[str, tf.Variable], folder: Path) -> dict[str, Any]:
    path = tf.train.Checkpoint(**held).write(str(folder / "c"))
    reader = tf.train.load_checkpoint(path)
    return {name: reader.get_tensor(f"{name}/.ATTRIBUTES/VARIABLE_VALUE") for name in held}


def by_saver(held: dict[str, tf.Variable], folder: Path) -> dict[str, Any]:
    path = tf.compat.v1.train.Saver(held).save(None, str(folder / "c"))
    actual = blank(held)
    tf.compat.v1.train.Saver(actual).restore(None, path)
    return actual


def by_saved_model(held: dict[str, tf.Variable], folder: Path) -> dict[str, Any]:
    tf.saved_model.save(Holder(held), str(folder))
    loaded = tf.saved_model.load(str(folder))
    return {name: getattr(loaded, name) for name in held}


def by_captured_constant(held: dict[str, tf.Variable], folder: Path) -> dict[str, Any]:
    values = {name: v.read_value() for name, v in held.items()}
    module = tf.Module()
    module.call = tf.function(lambda: {name: tf.identity(value) for name, value in values.items()}, input_signature=[])
    tf.saved_model.save(module, str(folder))
    return dict(tf.saved_model.load(str(folder)).call())


def by_keras(ending: str) -> Callable[[dict[str, tf.Variable], Path], dict[str, Any]]:
    def exchange(held: dict[str, tf.Variable], folder: Path) -> dict[str, Any]:
        model, weights = keras_model(held)
        for name, variable in held.items():
            weights[name].assign(variable.read_value())
        path = str(folder / f"m{ending}")
        other, actual = keras_model(held)
        if ending == ".weights.h5":
            model.save_weights(path)
        else:
            Weights.get_config = lambda self: {}  # type: ignore[method-assign]
            model.save(path)
        other.load_weights(path)
        return actual
    return exchange


def by_backup(held: dict[str, tf.Variable], folder: Path) -> dict[str, Any]:
    model, weights = keras_model(held)
    for name, variable in held.items():
        weights[name].assign(variable.read_value())
    callback = tf.keras.callbacks.BackupAndRestore(str(folder))
    callback.set_model(model)
    model.optimizer.build(model.trainable_variables)
    callback.on_epoch_end(0)
    other, actual = keras_model(held)
    other.optimizer.build(other.trainable_variables)
    callback.set_model(other)
    callback.on_train_begin()
    return actual


def elements(held: dict[str, tf.Variable]) -> Any:
    """A dataset of one element, which holds all values as they lie in memory."""
    values = {name: v.read_value() for name, v in held.items()}
    return tf.data.Dataset.from_tensors(0).map(lambda _: {name: tf.identity(v) for name, v in values.items()})


def by_dataset(held: dict[str, tf.Variable], folder: Path) -> dict[str, Any]:
    elements(held).save(str(folder))
    return next(iter(tf.data.Dataset.load(str(folder))))


def by_cache(held: dict[str, tf.Variable], folder: Path) -> dict[str, Any]:
    list(elements(held).cache(str(folder / "c")))
    return next(iter(elements(held).cache(str(folder / "c"))))


def by_tensor_proto(held: dict[str, tf.Variable], folder: Path) -> dict[str, Any]:
    path = str(folder / "r")
    with tf.io.TFRecordWriter(path) as out:
        for v in held.values():
            out.write(tf.io.serialize_tensor(v).numpy())
    records = list(tf.data.TFRecordDataset(path))
    return {name: tf.io.parse_tensor(r, held[name].dtype) for name, r in zip(held, records, strict=True)}


def by_safetensors(held: dict[str, tf.Variable], folder: Path) -> dict[str, Any]:
    arrays: dict[str, np.ndarray] = {}
    for name, v in held.items():
        arrays.update(_safetensors.spelt(name, np.asarray(v.read_value()), v.dtype))
    with open(folder / "s", "wb") as out:
        _safetensors.write(out, arrays)
    with open(folder / "s", "rb") as file:
        actual, _ = _safetensors.read(file, os.path.getsize(folder / "s"))
    return {name: _safetensors.restored(name, actual, v.dtype) for name, v in held.items()}


FORMATS = {
    "Checkpoint.write": (by_write, DTYPES), "Checkpoint.save": (by_save, DTYPES),
    "CheckpointManager": (by_manager, DTYPES), "CheckpointReader": (by_reader, DTYPES), "Saver": (by_saver, DTYPES),
    "saved_model": (by_saved_model, DTYPES), "saved_model constants": (by_captured_constant, DTYPES),
    ".keras": (by_keras(".keras"), NUMBERS), ".weights.h5": (by_keras(".weights.h5"), NUMBERS),
    ".h5": (by_keras(".h5"), NUMBERS), "BackupAndRestore": (by_backup, NUMBERS),
    "Dataset.save": (by_dataset, DTYPES), "Dataset.cache": (by_cache, DTYPES),
    "serialize_tensor": (by_tensor_proto, DTYPES), "safetensors": (by_safetensors, DTYPES),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMATS)
def test_every_value_is_read_as_it_was_written(form: str, dtype: str, tmp_path: Path) -> None:
    exchange, dtypes = FORMATS[form]
    if dtype not in dtypes:
        return
    held = variables(dtype)
    expected = {name: np.array(v.read_value()) for name, v in held.items()}
    actual = exchange(held, tmp_path)
    assert set(actual) >= set(expected)
    for name, array in expected.items():
        value = actual[name]
        read = np.asarray(value.read_value() if isinstance(value, tf.Variable) else value,
                          object if dtype == "string" else None)
        assert tf.as_dtype(read.dtype) == tf.as_dtype(array.dtype), name
        np.testing.assert_array_equal(read, array, err_msg=name, strict=True)


@pytest.mark.parametrize("code", ["i2", "u4", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_arrays_of_the_other_byte_order_are_written_in_this_one(code: str, tmp_path: Path) -> None:
    array = (np.arange(60).reshape(6, 10) * 3).astype(f">{code}")
    filled = np.broadcast_to(array[0, 1], 9)
    _tensor_file.write(tmp_path / "t", {"whole": array, "column": array[:, 1], "filled": filled}, {})
    actual, _ = _tensor_file.read(tmp_path / "t")
    np.testing.assert_array_equal(actual["whole"], array.astype(code), strict=True)
    np.testing.assert_array_equal(actual["column"], array[:, 1].astype(code), strict=True)
    np.testing.assert_array_equal(actual["filled"], np.full(9, 3, code), strict=True)
