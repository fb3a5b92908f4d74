"""`tf.keras.preprocessing`: its modules against Keras's results (`make_preprocessing_reference.py`)."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

from twofold import keras

from .preprocessing_cases import SETTINGS, results

preprocessing = keras.preprocessing
text, sequence = preprocessing.text, preprocessing.sequence


@pytest.fixture(scope="module")
def found():
    return json.loads(json.dumps(results(text, sequence), default=int))


@pytest.mark.parametrize("name", [*SETTINGS, "sequences", "hashes", "words", "pairs", "kept pairs", "chances",
                                  "windows"])
def test_results_are_those_of_keras(name, found):
    known = json.loads((pathlib.Path(__file__).parent / "data" / "preprocessing.json").read_text())
    assert set(known) == set(found)
    if name in SETTINGS:
        assert found[name][:5] == known[name][:5]
        np.testing.assert_allclose(found[name][5:], known[name][5:], rtol=1e-12)
    elif name in ("sequences", "chances"):
        np.testing.assert_allclose(found[name], known[name], rtol=1e-12)
    else:
        assert found[name] == known[name]


def test_names_are_where_tensorflow_has_them():
    assert preprocessing.image.load_img is keras.utils.load_img
    assert preprocessing.image_dataset_from_directory is keras.utils.image_dataset_from_directory
    assert preprocessing.text_dataset_from_directory is keras.utils.text_dataset_from_directory
    assert sequence.pad_sequences is keras.utils.pad_sequences


def test_words_that_an_analyzer_finds():
    made = text.Tokenizer(analyzer=lambda t: t.split("-"))
    made.fit_on_texts(["a-B", "B-c"])
    assert made.word_index == {"B": 1, "a": 2, "c": 3} and made.texts_to_sequences(["c-a"]) == [[3, 2]]
    first, other = text.one_hot("x y", 40, analyzer=lambda t: ["y", "y"])
    assert first == other == hash("y") % 39 + 1


def test_what_cannot_be():
    made = text.Tokenizer()
    for call in (lambda: made.sequences_to_matrix([[1]]), lambda: text.Tokenizer(5).sequences_to_matrix([[1]], "tfidf"),
                 lambda: text.Tokenizer(5).sequences_to_matrix([[1]], "sum"), lambda: text.tokenizer_from_json("{}"),
                 lambda: sequence.TimeseriesGenerator([1, 2], [1], 1),
                 lambda: sequence.TimeseriesGenerator([1, 2], [1, 2], 2)):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError):
        text.Tokenizer(words=3)


def test_windows_for_a_model():
    series = np.arange(12, dtype=np.float32)
    windows = sequence.TimeseriesGenerator(series, series * 2, 3, batch_size=4)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    assert len(model.fit(windows, epochs=2, verbose=0).epoch) == 2
    assert json.loads(windows.to_json())["config"]["end_index"] == 11
    drawn = sequence.TimeseriesGenerator(series, series, 3, shuffle=True, batch_size=50)[0]
    assert drawn[0].shape == (50, 3) and (drawn[0][:, -1] + 1 == drawn[1]).all() and len(set(drawn[1])) > 5


def test_statistics_have_axes_for_the_inputs_they_are_for():
    x = np.arange(24.0).reshape(2, 3, 4)
    for axis, shape in ((-1, (1, 1, 4)), (1, (1, 3, 1)), ((1, 2), (1, 3, 4)), (None, (1, 1, 1))):
        layer = keras.layers.Normalization(axis=axis)
        layer.adapt(x)
        others = tuple(n for n, size in enumerate(shape) if size == 1)
        np.testing.assert_allclose(layer.mean, x.mean(axis=others, keepdims=True), rtol=1e-6)
        np.testing.assert_allclose(layer.variance, x.var(axis=others, keepdims=True), rtol=1e-6)
    given = keras.layers.Normalization(mean=3.0, variance=2.0)
    assert given.mean is None
    given.build([None, 3])
    assert given.mean.numpy().tolist() == [[3.0, 3.0, 3.0]]
