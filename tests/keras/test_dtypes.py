"""Inputs of several dtypes meet where Keras lets them meet; `data/dtypes.json` holds what Keras gives."""

from __future__ import annotations

import json

import numpy as np
import pytest
from house.tree import ROOT

import twofold as tf

from keras import dtype_cases as cases  # isort: skip

REFERENCE = json.loads((ROOT / "tests" / "keras" / "data" / "dtypes.json").read_text())


@pytest.mark.parametrize("name", cases.names())
def test_dtypes_meet(name):
    expected = REFERENCE[name]
    if expected is None:
        with pytest.raises((TypeError, tf.errors.InvalidArgumentError)):
            cases.run(tf, name)
        return
    actual = cases.run(tf, name)
    assert actual.dtype.name == expected["dtype"]
    if expected["value"] is not None:
        np.testing.assert_allclose(np.asarray(tf.cast(actual, tf.float64)), expected["value"], rtol=1e-5, atol=1e-6)


def test_masks_stay_with_inputs_that_are_cast():
    layers = tf.keras.layers
    words = tf.constant([[1, 2, 0]])
    floats = layers.Masking()(tf.constant([[[1.0], [2.0], [0.0]]]))
    whole = layers.Embedding(3, 1, mask_zero=True, embeddings_initializer="ones", dtype="float16")(words)
    out = layers.Multiply(dtype="float64")([floats, whole])
    assert out.dtype == tf.float64 and out.numpy().ravel().tolist() == [1.0, 2.0, 0.0]
    assert layers.Add(dtype="float64")([floats, whole])._keras_mask.numpy().tolist() == [[True, True, False]]


def test_models_of_mixed_inputs_are_compiled_and_saved(tmp_path):
    a, b = tf.keras.Input([2], dtype="int64"), tf.keras.Input([2])
    model = tf.keras.Model([a, b], tf.keras.layers.Dense(1)(tf.keras.layers.Concatenate()([a, b, a + b])))
    model.compile("sgd", "mse")
    x = [np.array([[1, 2], [3, 4]]), np.ones([2, 2], np.float32)]
    assert np.isfinite(model.fit(x, np.ones([2, 1]), verbose=0).history["loss"][0])
    model.save(tmp_path / "m.keras")
    again = tf.keras.models.load_model(tmp_path / "m.keras")
    assert np.array_equal(again.predict(x, verbose=0), model.predict(x, verbose=0))
