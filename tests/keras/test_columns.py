"""Columns of tables as data: objects that are no arrays and convert to one, as those of pandas do."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf
from twofold import keras

layers = keras.layers


class Column:
    """A column with labels: indexing is by label, as in pandas, so only `__array__` gives the values in order."""

    def __init__(self, values, dtype=None):
        self.values = np.asarray(values, dtype)
        self.dtype, self.shape, self.ndim = self.values.dtype, self.values.shape, self.values.ndim

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return iter(self.values.tolist())

    def __getitem__(self, key):
        raise KeyError(key)


class Table(Column):
    """A table: iteration gives names, and there is no one dtype."""

    def __init__(self, values):
        super().__init__(values)
        del self.dtype

    def __iter__(self):
        return iter("abc"[:self.shape[1]])


KINDS = ["int64", "int32", "int8", "uint8", "float32", "float64", "bool"]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_inputs_of_functional_models(kind):
    first = keras.Input([1], name="first", dtype="int64" if "int" in kind else "float32")
    second = keras.Input([1], name="second")
    model = keras.Model({"first": first, "second": second},
                        layers.Dense(1)(layers.Concatenate()([first, second])))
    model.compile("sgd", "mse")
    data = {"first": Column([1, 0, 1], kind), "second": Column([0.5, 1.5, 2.5])}
    plain = {name: np.asarray(column)[:, None] for name, column in data.items()}
    np.testing.assert_allclose(model(data), model({n: tf.constant(v) for n, v in plain.items()}), rtol=1e-6)
    np.testing.assert_allclose(model.predict(data, verbose=0), model.predict(plain, verbose=0), rtol=1e-6)
    labels = Column([1, 2, 3], "int64")
    assert model.evaluate(data, labels, verbose=0) == model.evaluate(plain, np.array([1, 2, 3]), verbose=0)
    assert np.isfinite(model.fit(data, labels, verbose=0).history["loss"][0])
    assert np.isfinite(model.train_on_batch(data, labels))


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_tensors_and_data_sets(kind):
    column = Column([1, 0, 1], kind)
    for made in (tf.convert_to_tensor(column), tf.constant(column)):
        assert made.dtype.name == kind and made.numpy().tolist() == column.values.tolist()
    assert tf.data.Dataset.from_tensor_slices({"c": column}).element_spec["c"].dtype.name == kind
    assert tf.cast(column, tf.float32).numpy().tolist() == [1.0, 0.0, 1.0]


def test_tables_are_inputs_of_layers_and_statistics():
    table, values = Table([[1.0, 2.0], [3.0, 5.0]]), np.array([[1.0, 2.0], [3.0, 5.0]])
    layer = layers.Dense(1)
    np.testing.assert_allclose(layer(table), layer(tf.constant(values)), rtol=1e-6)
    model = keras.Sequential([layers.Dense(1)])
    model.compile("sgd", "mse")
    assert np.isfinite(model.fit(table, Table([[1.0], [2.0]]), verbose=0).history["loss"][0])
    statistics = layers.Normalization()
    statistics.adapt(table)
    np.testing.assert_allclose(statistics.mean, values.mean(0, keepdims=True), rtol=1e-6)
    whole = layers.Normalization(axis=None)
    whole.adapt(Column([1, 2, 3]))
    np.testing.assert_allclose(np.ravel(whole.mean), [2.0])
