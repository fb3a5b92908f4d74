"""Ragged and sparse tensors in models: training, prediction, functional graphs, files, and what layers learn of them.

What single layers and operations give is recorded with TensorFlow's values (`tests/composites/recorded/keras.json`).
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import twofold as tf

layers, ops = tf.keras.layers, tf.keras.ops
ROWS = [[1, 2], [3], [4, 5, 6], [], [2, 2], [1], [5, 4], [3, 3, 3], [1, 6], [2]]
LENGTHS = np.array([[len(row)] for row in ROWS], np.float32)
DENSE = np.random.RandomState(0).rand(10, 6).astype(np.float32) * (np.random.RandomState(1).rand(10, 6) < 0.4)
TARGETS = DENSE @ np.arange(6, dtype=np.float32)[:, None] - 1


def ragged() -> tf.RaggedTensor:
    return tf.ragged.constant(ROWS, dtype=tf.int64)


def of_sparse_rows() -> tf.keras.Model:
    x = tf.keras.Input((6,), sparse=True)
    model = tf.keras.Model(x, layers.Dense(1, kernel_initializer="ones")(x))
    model.compile("sgd", "mse")
    return model


def of_ragged_rows() -> tf.keras.Model:
    x = tf.keras.Input((None,), dtype="int64", ragged=True)
    sums = layers.Lambda(lambda rows: tf.reduce_sum(rows, axis=1))(layers.Embedding(8, 3, "ones")(x))
    model = tf.keras.Model(x, layers.Dense(1, kernel_initializer="ones")(sums))
    model.compile("sgd", "mse")
    return model


def dataset(*arrays: Any) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(arrays).batch(4)


def losses_by_hand(epochs: int) -> list[float]:
    """The losses of a linear model by gradient descent with batches of 4."""
    w, b, means = np.ones((6, 1), np.float32), np.zeros(1, np.float32), []
    for _ in range(epochs):
        seen = []
        for at in range(0, 10, 4):
            x, error = DENSE[at:at + 4], DENSE[at:at + 4] @ w + b - TARGETS[at:at + 4]
            seen.append((np.mean(error ** 2), len(x)))
            w = w - 0.01 * 2 * x.T @ error / len(x)
            b = b - 0.01 * 2 * error.mean()
        means.append(sum(loss * count for loss, count in seen) / 10)
    return means


@pytest.mark.parametrize("form", ["arrays", "dataset", "arrays of a dense input"])
def test_training_on_sparse_rows(form: str) -> None:
    rows, model = tf.sparse.from_dense(DENSE), of_sparse_rows()
    if form == "arrays of a dense input":
        model = tf.keras.Sequential([tf.keras.Input((6,)), layers.Dense(1, kernel_initializer="ones")])
        model.compile("sgd", "mse")
    data = (dataset(rows, TARGETS),) if form == "dataset" else (rows, TARGETS)
    history = model.fit(*data, batch_size=None if form == "dataset" else 4, epochs=2, shuffle=False, verbose=0)
    assert np.allclose(history.history["loss"], losses_by_hand(2), rtol=1e-5)
    w, b = model.get_weights()
    assert np.allclose(model.predict(rows, batch_size=4, verbose=0), DENSE @ w + b, rtol=1e-5)


def test_sparse_rows_in_any_order() -> None:
    """Shuffled, a part for validation, and a batch at once."""
    rows = tf.sparse.from_dense(DENSE)
    history = of_sparse_rows().fit(rows, TARGETS, batch_size=4, validation_split=0.3, verbose=0)
    error = DENSE[7:].sum(1, keepdims=True) - TARGETS[7:]
    assert history.history["val_loss"][0] == pytest.approx(np.mean(error ** 2), rel=0.5)  # after some steps
    first = DENSE.sum(1, keepdims=True) - TARGETS
    assert of_sparse_rows().train_on_batch(rows, TARGETS) == pytest.approx(np.mean(first ** 2), rel=1e-5)
    assert of_sparse_rows().evaluate(rows, TARGETS, batch_size=3, verbose=0) == pytest.approx(np.mean(first ** 2))


@pytest.mark.parametrize("form", ["arrays", "dataset"])
def test_training_on_ragged_rows(form: str) -> None:
    model = of_ragged_rows()
    data = (dataset(ragged(), LENGTHS),) if form == "dataset" else (ragged(), LENGTHS)
    history = model.fit(*data, batch_size=None if form == "dataset" else 4, epochs=2, shuffle=False, verbose=0)
    assert np.allclose(history.history["loss"], [10.23950, 1.96048], atol=1e-5)  # TensorFlow's


def test_several_inputs_and_several_batches_in_one_program() -> None:
    def losses(steps: int) -> list[float]:
        inputs = {"s": tf.keras.Input((6,), sparse=True, name="s"),
                  "r": tf.keras.Input((None,), dtype="int64", ragged=True, name="r")}
        parts = [layers.Dense(2, kernel_initializer="ones")(inputs["s"]),
                 layers.GlobalMaxPooling1D()(layers.Embedding(8, 2, "ones")(inputs["r"]))]
        model = tf.keras.Model(inputs, layers.Dense(1, kernel_initializer="ones")(layers.Concatenate()(parts)))
        model.compile("sgd", "mse", steps_per_execution=steps)
        rows = tf.ragged.constant([row or [0] for row in ROWS], dtype=tf.int64)
        return model.fit({"s": tf.sparse.from_dense(DENSE), "r": rows}, TARGETS, epochs=2, batch_size=4,
                         shuffle=False, verbose=0).history["loss"]
    assert losses(2) == losses(1)


def test_predictions_are_ragged_where_outputs_are() -> None:
    x = tf.keras.Input((None,), dtype="int64", ragged=True)
    model = tf.keras.Model(x, layers.Embedding(8, 2, lambda shape, dtype: tf.reshape(tf.range(16.0), shape))(x))
    assert model.output.ragged
    assert model.output_shape == (None, None, 2)
    want = [[[2.0 * n, 2.0 * n + 1] for n in row] for row in ROWS]
    assert model.predict(ragged(), batch_size=4, verbose=0).to_list() == want
    assert model.predict_on_batch(ragged()).to_list() == want
    model.compile(steps_per_execution=2)
    assert model.predict(ragged(), batch_size=3, verbose=0).to_list() == want


def test_predictions_of_different_sizes_become_a_ragged_tensor() -> None:
    model = tf.keras.Sequential([layers.Lambda(lambda x: x * 2)])
    batches = [tf.constant([[1.0, 2.0]]), tf.constant([[3.0], [4.0]])]
    assert model.predict(iter(batches), verbose=0).to_list() == [[2.0, 4.0], [6.0], [8.0]]


def test_operations_of_functional_models_know_sparse_and_ragged_tensors() -> None:
    x = tf.keras.Input((6,), sparse=True)
    doubled, cosines = ops.multiply(x, 2.0), ops.cos(x)
    assert (doubled.sparse, doubled.shape, cosines.sparse) == (True, (None, 6), False)
    model = tf.keras.Model(x, [doubled, cosines])
    first, second = model(tf.sparse.from_dense(DENSE))
    assert np.array_equal(tf.sparse.to_dense(first), DENSE * 2)
    assert np.allclose(second, np.cos(DENSE))
    words = layers.StringLookup(vocabulary=["a", "b"])(tf.keras.Input((None,), dtype="string", ragged=True))
    assert (words.ragged, words.dtype) == (True, tf.int64)
    hot = layers.CategoryEncoding(4, "multi_hot", sparse=True)(tf.keras.Input((3,), dtype="int64"))
    assert (hot.sparse, hot.shape) == (True, (None, 4))


def test_texts_to_ragged_rows_within_a_model() -> None:
    model = tf.keras.Sequential([tf.keras.Input((), dtype="string"),
                                 layers.TextVectorization(vocabulary=["a", "b"], ragged=True),
                                 layers.Embedding(4, 1, lambda shape, dtype: tf.reshape(tf.range(4.0), shape)),
                                 layers.GlobalAveragePooling1D()])
    assert model.predict(tf.constant(["a b", "c", "a a a b"]), verbose=0).tolist() == [[2.5], [1.0], [2.25]]


@pytest.mark.parametrize("standardize", ["lower", lambda texts: tf.strings.upper(texts)], ids=["name", "function"])
def test_a_split_of_ones_own_gives_ragged_rows(standardize: Any) -> None:
    layer = layers.TextVectorization(vocabulary=["a", "A"], ragged=True, output_sequence_length=3,
                                     standardize=standardize, split=lambda texts: tf.strings.split(texts, ","))
    number = 2 if standardize == "lower" else 3
    assert layer(tf.constant(["a,b", "", "a,a,c,a"])).to_list() == [[number, 1], [], [number, number, 1]]


def test_layers_learn_of_ragged_and_sparse_data() -> None:
    words = tf.ragged.constant([["a", "b"], ["b", "c", "b"]])
    sparse = tf.SparseTensor([[0, 0], [1, 1], [1, 2]], ["a", "b", "b"], [2, 3])
    for data, want in ((words, ["b", "c", "a"]), (tf.data.Dataset.from_tensors(words), ["b", "c", "a"]),
                       (sparse, ["b", "a"])):
        layer = layers.StringLookup()
        layer.adapt(data)
        assert layer.get_vocabulary() == ["[UNK]", *want]
    weighted = layers.StringLookup(output_mode="tf_idf")
    weighted.adapt(words)
    assert np.allclose(weighted(words), [[0.0, 0.5108, 0.0, 0.6931], [0.0, 1.0217, 0.6931, 0.0]], atol=1e-4)  # Keras's
    bins = layers.Discretization(num_bins=2)
    bins.adapt(tf.ragged.constant([[1.0], [2.0, 3.0, 4.0]]))
    assert bins.bin_boundaries == [2.5]


def test_weights_of_words_in_sparse_vectors() -> None:
    layer = layers.StringLookup(vocabulary=["a", "b"], output_mode="tf_idf", idf_weights=[0.5, 0.25], sparse=True)
    made = tf.sparse.to_dense(layer(tf.constant([["a", "a", "q"], ["b", "a", "b"]])))
    assert made.numpy().tolist() == [[0.375, 1.0, 0.0], [0.0, 0.5, 0.5]]


def test_models_are_saved_with_what_their_inputs_are(tmp_path: Path) -> None:
    model = of_sparse_rows()
    model.save(tmp_path / "model.keras")
    for made in (tf.keras.models.load_model(tmp_path / "model.keras"), copy.deepcopy(model),
                 tf.keras.models.clone_model(model)):
        assert made.inputs[0].sparse
        assert made.predict(tf.sparse.from_dense(DENSE), verbose=0).shape == (10, 1)
    model.export(str(tmp_path / "exported"))
    served = tf.saved_model.load(str(tmp_path / "exported")).serve
    for count in (3, 10):
        rows = tf.sparse.from_dense(DENSE[:count])
        assert np.array_equal(served(rows), model(rows))
    again = tf.keras.Model.from_config(of_ragged_embedding().get_config())
    assert again.inputs[0].ragged
    config = layers.TextVectorization(ragged=True, vocabulary=["a"]).get_config()
    assert layers.TextVectorization.from_config(config)(tf.constant(["a", ""])).to_list() == [[2], []]


def of_ragged_embedding() -> tf.keras.Model:
    x = tf.keras.Input((None,), dtype="int64", ragged=True)
    return tf.keras.Model(x, layers.Embedding(8, 2)(x))


def test_what_layers_refuse() -> None:
    with pytest.raises(ValueError, match="sparse"):
        layers.Hashing(3, sparse=True)
    with pytest.raises(ValueError, match="ragged"):
        layers.TextVectorization(ragged=True, output_mode="count")
    with pytest.raises(TypeError, match="sparse"):
        ops.power(tf.sparse.from_dense(DENSE), 2.0)
    with pytest.raises(TypeError, match="one-hot"):
        layers.CategoryEncoding(4, "one_hot")(tf.SparseTensor([[0, 0]], [1], [1, 2]))
