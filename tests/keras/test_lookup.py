"""Layers of vocabularies and hashes: as Keras's, in models, pipelines and files."""

from __future__ import annotations

import copy
import json
import pathlib
import zipfile

import numpy as np
import pytest

import twofold as tf
from twofold import keras
from twofold._formats.hashing import fingerprints, keyed

from .lookup_cases import BUCKETS, BYTES, CASES, KEY, TEXTS

layers = keras.layers
REFERENCE = json.loads((pathlib.Path(__file__).parent / "data" / "lookups.json").read_text())


def made(name, settings, data):
    layer = getattr(layers, name)(**settings)
    if data is not None:
        layer.adapt(data)
    return layer


def plain(value):
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value.decode() if isinstance(value, bytes) else value


def agrees(actual, expected):
    if expected["dtype"] == "string":
        return plain(actual.numpy().tolist()) == expected["output"]
    np.testing.assert_allclose(actual, expected["output"], rtol=1e-6)
    return actual.dtype.name == expected["dtype"]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_outputs_and_vocabularies_are_those_of_keras(number):
    name, settings, data, given = CASES[number]
    expected = REFERENCE["cases"][number]
    layer = made(name, settings, data)
    if name != "Hashing":
        assert layer.get_vocabulary() == expected["vocabulary"]
        assert layer.vocabulary_size() == len(expected["vocabulary"])
    assert agrees(layer(given), expected) and agrees(layer(tf.constant(given)), expected)
    assert agrees(tf.function(layer)(tf.constant(given)), expected)
    again = type(layer).from_config(layer.get_config())
    assert again.get_config() == layer.get_config() and agrees(again(given), expected)


def test_hashes_are_tensorflows():
    texts = np.array(BYTES, object)
    assert fingerprints(texts, BUCKETS).tolist() == REFERENCE["hashes"]["fingerprint"]
    assert keyed(texts, KEY, BUCKETS).tolist() == REFERENCE["hashes"]["keyed"]
    assert (fingerprints(texts) % np.uint64(BUCKETS)).tolist() == REFERENCE["hashes"]["fingerprint"]


def test_texts_in_pipelines_and_models(tmp_path):
    texts = tf.data.Dataset.from_tensor_slices((TEXTS, [0, 1, 0, 1, 0])).batch(2)
    layer = layers.TextVectorization(output_sequence_length=4)
    layer.adapt(texts.map(lambda text, label: text))
    numbers = [batch.numpy() for batch, _ in texts.map(lambda text, label: (layer(text), label))]
    np.testing.assert_array_equal(np.concatenate(numbers), layer(TEXTS))
    model = keras.Sequential([keras.Input((1,), dtype="string"), layer, layers.Embedding(20, 3),
                              layers.GlobalAveragePooling1D(), layers.Dense(1, activation="sigmoid")])
    model.compile("adam", "binary_crossentropy")
    rows = tf.constant([[text] for text in TEXTS])
    model.fit(rows, np.array([0, 1, 0, 1, 0]), epochs=2, verbose=0)
    model.save(tmp_path / "texts.keras")
    again = keras.models.load_model(tmp_path / "texts.keras")
    np.testing.assert_array_equal(again.predict(rows, verbose=0), model.predict(rows, verbose=0))


def test_vocabularies_beside_the_weights_are_read(tmp_path):
    layer = layers.TextVectorization(name="texts")
    layer.adapt(TEXTS)
    model = keras.Sequential([keras.Input((1,), dtype="string"), layer])
    model.save(tmp_path / "own.keras")
    # as Keras writes it: the vocabulary is no part of the config
    with zipfile.ZipFile(tmp_path / "own.keras") as own, zipfile.ZipFile(tmp_path / "keras.keras", "w") as other:
        config = json.loads(own.read("config.json"))
        assert config["config"]["layers"][1]["config"].pop("vocabulary") == layer.get_vocabulary(False)
        other.writestr("config.json", json.dumps(config))
        for name in ("metadata.json", "model.weights.h5"):
            other.writestr(name, own.read(name))
        other.writestr("assets/layers/text_vectorization/_lookup_layer/vocabulary.txt",
                       "\n".join(layer.get_vocabulary()))
    again = keras.models.load_model(tmp_path / "keras.keras")
    assert again.layers[0].get_vocabulary() == layer.get_vocabulary()


def test_the_size_of_what_a_vocabulary_decides_is_open_before_there_is_one(tmp_path):
    """As in files of Keras, which have the vocabulary beside the config: the layers behind are built for its size."""
    layer = layers.StringLookup(output_mode="multi_hot")
    assert layer.compute_output_shape((None, 3)) == (None, None)
    dense = layers.Dense(2)
    dense.build((None, 5))
    model = keras.Sequential([keras.Input((1,), dtype="string"), layer, dense])
    layer.set_vocabulary(["a", "b", "c", "d"])
    assert layer.compute_output_shape((None, 3)) == (None, 5) and model(tf.constant([["a"]])).shape == (1, 2)


def test_vocabularies_from_files_and_functions_of_users(tmp_path):
    (tmp_path / "words.txt").write_text("cat\ndog\n")
    assert layers.StringLookup(vocabulary=str(tmp_path / "words.txt"))(["dog", "ape"]).numpy().tolist() == [2, 0]

    def shouted(texts):
        return np.array([text.upper() for text in np.asarray(texts).ravel()], object)

    layer = layers.TextVectorization(standardize=shouted, vocabulary=["CAT"])
    assert layer(["cat dog"]).numpy().tolist() == [[2, 1]]


def test_adapting_again_forgets_and_steps_limit():
    layer = layers.StringLookup()
    layer.adapt(["a", "a", "b"])
    layer.adapt(["c"])
    assert layer.get_vocabulary() == ["[UNK]", "c"]
    layer.adapt(tf.data.Dataset.from_tensor_slices(["x", "y", "z"]).batch(1), steps=2)
    assert layer.get_vocabulary() == ["[UNK]", "y", "x"]


@pytest.mark.parametrize("make, said", [
    (lambda: layers.StringLookup(vocabulary=["a", "a"]), "repeated"),
    (lambda: layers.StringLookup(vocabulary=["a", ""], mask_token=""), "special tokens"),
    (lambda: layers.StringLookup(vocabulary=["a", "b"], max_tokens=2), "larger than the maximum"),
    (lambda: layers.StringLookup(vocabulary=["a"], num_oov_indices=0)(["b"]), "num_oov_indices=1"),
    (lambda: layers.StringLookup(vocabulary=["a"]).adapt(["b"]), "static vocabulary"),
    (lambda: layers.StringLookup(output_mode="tf_idf", vocabulary=["a"]), "idf_weights"),
    (lambda: layers.StringLookup(invert=True, output_mode="count"), "invert"),
    (lambda: layers.StringLookup(max_tokens=1), "max_tokens"),
    (lambda: layers.TextVectorization(vocabulary=["a"])([["a", "b"]]), "last shape dimension"),
    (lambda: layers.TextVectorization(ngrams="two"), "ngrams"),
    (lambda: layers.TextVectorization(output_mode="count", output_sequence_length=3), "output_sequence_length"),
    (lambda: layers.Hashing(0), "num_bins"),
    (lambda: layers.Hashing(3, salt="x"), "salt"),
    (lambda: layers.StringLookup(sparse=True), "Sparse"),
])
def test_bad_arguments_say_what_is_wrong(make, said):
    with pytest.raises((ValueError, tf.errors.OpError), match=said):
        make()


def test_models_with_vocabularies_are_saved(tmp_path):
    layers = tf.keras.layers
    words, numbers = layers.StringLookup(vocabulary=["a", "b"], num_oov_indices=2), layers.IntegerLookup(mask_token=0)
    numbers.adapt([5, 5, 7])
    back = layers.StringLookup(vocabulary=["a", "b"], num_oov_indices=1, invert=True)
    texts = layers.TextVectorization(output_sequence_length=4, ngrams=2)
    texts.adapt(["the cat", "The dog!"])
    counts = layers.TextVectorization(output_mode="count", vocabulary=["cat"], split="character", standardize="lower")
    module = tf.Module()
    module.layers = [words, numbers, back, layers.Hashing(9, salt=3, mask_value="a"), texts, counts]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.int32)])
    def encode(strings, integers):
        return [words(strings), numbers(integers), back(words(strings) - 1), module.layers[3](strings), texts(strings),
                counts(strings)]
    module.encode = encode
    strings, integers = tf.constant(["b", "The cat?", "", "é z"]), tf.constant([7, 5, 0, -3])
    tf.saved_model.save(module, tmp_path)
    expected = encode.python_function(strings, integers)
    for fn in (encode, tf.saved_model.load(tmp_path).encode):
        for actual, value in zip(fn(strings, integers), expected, strict=True):
            np.testing.assert_array_equal(actual, value, strict=True)
    numbers.adapt([5, 7, 7, 9, 9, 9])  # functions see the vocabulary that there is when they run
    np.testing.assert_array_equal(encode(strings, integers)[1], numbers(integers))
    again = copy.deepcopy(words)
    words.set_vocabulary(["c"])
    assert again(tf.constant(["b"])).numpy().tolist() == [3] and again.get_vocabulary()[2:] == ["a", "b"]
