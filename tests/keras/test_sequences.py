"""Padding of sequences, windows over time series, folders of texts."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf
from twofold import keras

pad = keras.utils.pad_sequences
windows = keras.utils.timeseries_dataset_from_array
texts_of = keras.utils.text_dataset_from_directory


@pytest.mark.parametrize("options, expected", [  # as Keras 3 gives them
    ({}, [[0, 0, 1], [0, 2, 3], [4, 5, 6], [0, 0, 0]]),
    ({"padding": "post"}, [[1, 0, 0], [2, 3, 0], [4, 5, 6], [0, 0, 0]]),
    ({"maxlen": 2}, [[0, 1], [2, 3], [5, 6], [0, 0]]),
    ({"maxlen": 2, "truncating": "post"}, [[0, 1], [2, 3], [4, 5], [0, 0]]),
    ({"maxlen": 4, "value": -1, "padding": "post"}, [[1, -1, -1, -1], [2, 3, -1, -1], [4, 5, 6, -1], [-1] * 4]),
    ({"maxlen": 0}, [[], [], [], []]),
])
def test_padding(options, expected):
    actual = pad([[1], [2, 3], [4, 5, 6], []], **options)
    assert actual.tolist() == expected and actual.dtype == np.int32
    assert keras.preprocessing.sequence.pad_sequences is pad


def test_padding_of_vectors_and_words():
    actual = pad([np.ones((1, 2)), np.ones((3, 2))], dtype="float32", value=9)
    assert actual.shape == (2, 3, 2) and actual[0].tolist() == [[9, 9], [9, 9], [1, 1]]
    assert pad([["a"], ["b", "cd"]], dtype=object, value="-").tolist() == [["-", "a"], ["b", "cd"]]
    for bad, said in (({"padding": "around"}, "Padding"), ({"truncating": "x"}, "Truncating"),
                      ({"value": "a"}, "dtype")):
        with pytest.raises(ValueError, match=said):
            pad([[1]], **bad)
    with pytest.raises(ValueError, match="non-iterable"):
        pad([[1], 2])
    with pytest.raises(ValueError, match="position 1"):
        pad([np.ones((1, 2)), np.ones((1, 3))])


def plain(dataset):
    def listed(part):
        return np.asarray(part).tolist()

    return [tuple(map(listed, e)) if isinstance(e, tuple) else listed(e) for e in dataset]


def test_windows_over_time_series():
    data, targets = np.arange(10), np.arange(10) * 10
    assert plain(windows(data, None, 3, sequence_stride=3, batch_size=2)) == [[[0, 1, 2], [3, 4, 5]], [[6, 7, 8]]]
    assert plain(windows(data, targets, 2, sampling_rate=3, sequence_stride=2, batch_size=None)) == [
        ([0, 3], 0), ([2, 5], 20), ([4, 7], 40), ([6, 9], 60)]
    assert plain(windows(data, targets[3:], 4, start_index=2, end_index=7, batch_size=9)) == [
        ([[2, 3, 4, 5], [3, 4, 5, 6]], [50, 60])]  # targets are cut like data
    assert plain(windows(np.eye(4), targets[:1], 2, batch_size=4))[0][1] == [0]
    dataset = windows(data, targets, 3, shuffle=True, seed=1, batch_size=4)
    first, again = plain(dataset), plain(dataset)
    assert first != again and sorted(x for batch, _ in first for x in batch) == [[i, i + 1, i + 2] for i in range(8)]
    assert all(y == x[0] * 10 for batch, ys in first for x, y in zip(batch, ys, strict=True))


@pytest.mark.parametrize("options, said", [
    ({"start_index": 10}, "start_index"), ({"start_index": -1}, "start_index"), ({"end_index": 11}, "end_index"),
    ({"start_index": 4, "end_index": 3}, "end_index"), ({"sampling_rate": 0}, "sampling_rate"),
    ({"sequence_stride": 20}, "sequence_stride")])
def test_windows_beyond_the_data(options, said):
    with pytest.raises(ValueError, match=said):
        windows(np.arange(10), None, 2, **options)


@pytest.fixture
def folder(tmp_path):
    for name, count in (("neg", 6), ("pos", 4)):
        (tmp_path / name).mkdir()
        for n in range(count):
            (tmp_path / name / f"{n}.txt").write_text(f"{name} {n}")
    (tmp_path / "pos" / "notes.md").write_text("no text of the data")
    return tmp_path


def test_folders_of_texts(folder, capsys):
    dataset = texts_of(folder, batch_size=4, seed=1)
    assert capsys.readouterr().out == "Found 10 files belonging to 2 classes.\n"
    assert dataset.class_names == ["neg", "pos"]
    assert dataset.element_spec == (tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.int32))
    actual = [(text, label) for texts, labels in plain(dataset) for text, label in zip(texts, labels, strict=True)]
    assert len(set(actual)) == 10 and all(text.startswith((b"neg", b"pos")[label]) for text, label in actual)
    assert [text for text, _ in actual] != sorted(text for text, _ in actual)
    ordered = texts_of(folder, label_mode="categorical", shuffle=False, batch_size=None, verbose=False, max_length=3)
    assert plain(ordered)[0] == (b"neg", [1.0, 0.0]) and plain(ordered)[-1] == (b"pos", [0.0, 1.0])
    binary = texts_of(folder, label_mode="binary", class_names=["pos", "neg"], shuffle=False, verbose=False)
    assert plain(binary)[0][1] == [[0.0]] * 4 + [[1.0]] * 6
    alone = texts_of(folder, labels=None, label_mode=None, shuffle=False, verbose=False)
    assert plain(alone)[0] == [f"{n} {i}".encode() for n, c in (("neg", 6), ("pos", 4)) for i in range(c)]
    given = texts_of(folder, labels=list(range(10)), shuffle=False, verbose=False)
    assert plain(given)[0][1] == list(range(10))


def test_parts_of_folders_do_not_overlap(folder, capsys):
    options = {"validation_split": 0.3, "seed": 7, "batch_size": None}
    train = texts_of(folder, subset="training", **options)
    assert "Using 7 files for training." in capsys.readouterr().out
    both = texts_of(folder, subset="both", **options)
    parts = [{text for text, _ in plain(part)} for part in (train, *both)]
    assert parts[0] == parts[1] and len(parts[0]) == 7 and len(parts[2]) == 3 and not parts[1] & parts[2]


@pytest.mark.parametrize("options, said", [
    ({"label_mode": "text"}, "label_mode"), ({"subset": "training"}, "subset"), ({"labels": [1]}, "lengths"),
    ({"validation_split": 0.5, "subset": "both"}, "seed"), ({"class_names": ["good"]}, "class_names"),
    ({"validation_split": 2, "subset": "both", "seed": 1}, "between 0 and 1")])
def test_folders_of_texts_check_their_arguments(folder, options, said):
    with pytest.raises(ValueError, match=said):
        texts_of(folder, **options)


def test_sounds_of_a_folder(tmp_path):
    waves = {"hum/0.wav": [[0.5], [-0.5]], "hum/1.wav": [[0.25]], "ring/0.WAV": [[-1.0], [0.0], [0.125]]}
    for name, samples in waves.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        tf.io.write_file(str(tmp_path / name), tf.audio.encode_wav(samples, 8000))
    (tmp_path / "hum" / "notes.txt").write_text("no sound")
    load = keras.utils.audio_dataset_from_directory
    (sounds, labels), = load(tmp_path, shuffle=False, verbose=False, label_mode="binary")
    assert sounds.numpy()[..., 0].tolist() == [[0.5, -0.5, 0], [0.25, 0, 0], [-1, 0, 0.125]]
    assert labels.numpy().tolist() == [[0.0], [0.0], [1.0]]
    sounds, = load(tmp_path, labels=None, shuffle=False, verbose=False, output_sequence_length=2)
    assert sounds.numpy()[..., 0].tolist() == [[0.5, -0.5], [0.25, 0], [-1, 0]]
    kept, rest = load(tmp_path, seed=1, validation_split=0.4, subset="both", verbose=False, batch_size=None)
    assert len(list(kept)) == 2 and len(list(rest)) == 1 and kept.class_names == ["hum", "ring"]
    sounds, = load(tmp_path, labels=None, shuffle=False, verbose=False, ragged=True)
    assert sounds.to_list() == [[[0.5], [-0.5]], [[0.25]], [[-1], [0], [0.125]]]
    for error, settings in ((ValueError, {"ragged": True, "output_sequence_length": 1}),
                            (ValueError, {"sampling_rate": 0}), (tf.errors.UnimplementedError, {"sampling_rate": 9})):
        with pytest.raises(error):
            load(tmp_path, **settings)
