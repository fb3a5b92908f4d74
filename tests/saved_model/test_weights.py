"""The arrays of saved models are files of the safetensors format: its own library reads them, and we read its files."""

from __future__ import annotations

import hashlib
import io

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save
from saved_model.cases import DTYPES
from saved_model.hostile import data_of

import twofold as tf
from twofold._formats import safetensors as weights


def test_the_library_reads_what_is_saved(tmp_path):
    model = tf.Module()
    model.of = {d.name: tf.Variable(tf.cast(tf.constant([[1.0, 0.0, 3.25]]), d)) for d in DTYPES}
    model.words = tf.Variable([[b"one", b""], [b"", b"four"]])
    model.empty = tf.Variable(tf.zeros([0, 4]))
    model.inner = {"a/b": {"%#": tf.Variable(2.0)}}
    tf.saved_model.save(model, tmp_path)
    names = {}
    with safe_open(data_of(tmp_path) / "weights.safetensors", framework="numpy") as file:
        for name in file.keys():  # noqa: SIM118 - the library's object is no dict
            names[name.removeprefix("variables/")] = file.get_slice(name).get_dtype()
            if "bfloat16" not in name:
                assert file.get_tensor(name).shape == tuple(file.get_slice(name).get_shape())
        assert file.get_tensor("variables/of/float32").tolist() == [[1.0, 0.0, 3.25]]
        assert file.get_tensor("variables/of/complex64").tolist() == [[[1.0, 0.0], [0.0, 0.0], [3.25, 0.0]]]
        assert file.get_tensor("variables/words#bytes").tobytes() == b"onefour"
        assert file.get_tensor("variables/words#ends").tolist() == [[3, 3], [3, 7]]
        assert file.get_tensor("variables/empty").shape == (0, 4)
    assert names["of/bfloat16"] == "BF16" and names["of/bool"] == "BOOL" and names["of/uint64"] == "U64"
    assert "inner/a%2fb/%25%23" in names
    loaded = tf.saved_model.load(tmp_path)
    assert loaded.inner["a/b"]["%#"].numpy() == 2.0 and loaded.words.numpy().tolist() == [[b"one", b""], [b"", b"four"]]
    for name, variable in model.of.items():
        assert loaded.of[name].numpy().tobytes() == variable.numpy().tobytes() and loaded.of[name].dtype == name


def test_we_read_what_the_library_writes():
    given = {"b": np.arange(6, dtype=np.float64).reshape(2, 3), "a": np.array([True, False]), "c": np.array(3, "i2")}
    data = save(given, {"note": "metadata is allowed"})
    actual, digest = weights.read(io.BytesIO(data), len(data))
    assert digest == hashlib.sha256(data).hexdigest() and set(actual) == set(given)
    for name, array in given.items():
        assert actual[name].dtype == array.dtype and np.array_equal(actual[name], array)


def test_arrays_have_memory_of_their_own_and_are_aligned():
    file = io.BytesIO()
    given = {f"a{n}": np.full(n + 1, n, dtype) for n, dtype in enumerate([np.int8, np.float64, np.uint16, np.float32])}
    size, digest = weights.write(file, given)
    assert size == len(file.getvalue()) and digest == hashlib.sha256(file.getvalue()).hexdigest()
    file.seek(0)
    actual, _ = weights.read(file, size)
    assert all(a.flags.aligned and a.flags.owndata or a.base.flags.owndata for a in actual.values())


@pytest.mark.parametrize("ends, text", [([3, 2], "do not fill"), ([1, 3], "do not fill"), ([-1, 2], "do not fill")])
def test_strings_fill_their_bytes(ends, text):
    arrays = {"s#bytes": np.frombuffer(b"ab", np.uint8), "s#ends": np.array(ends, np.int64)}
    with pytest.raises(weights.FormatError, match=text):
        weights.restored("s", arrays, tf.string)
