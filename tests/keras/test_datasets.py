"""The loaders of data sets, from a server on this machine with small files in the real formats."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import pickle
import socket
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest
from local_server import serving

import twofold as tf
from twofold.keras.datasets import _sources


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A folder whose files a server gives under the addresses of the data sets, with the requests it got."""
    folder = tmp_path / "served"
    folder.mkdir()
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(folder) as (address, asked):
        def put(name, data):
            """Serve a file in place of a published one."""
            (folder / name).write_bytes(data)
            if name in _sources.FILES:
                old = _sources.FILES[name][1]
                made = None if old is None else hashlib.sha256(data) if len(old) == 64 else hashlib.md5(data)
                monkeypatch.setitem(_sources.FILES, name, (address + name, made and made.hexdigest()))
            return address + name

        put.asked, put.home = asked, tmp_path / "home"
        yield put


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def digits(n, seed):
    return np.random.default_rng(seed).integers(0, 256, (n, 28, 28), np.uint8), np.arange(n, dtype=np.uint8) % 10


def lists(n, seed):
    rng = np.random.default_rng(seed)
    actual = np.empty(n, object)
    for i in range(n):
        actual[i] = rng.integers(1, [90, 400, 80000][i % 3], 3 + i).tolist()
    return actual


# -- the format of CIFAR's batches, as Python 2 wrote it --------------------------------------------
def python2(value):
    """A value in protocol 2, with the byte strings that Python 2 had."""
    if isinstance(value, bytes):
        return b"U" + bytes([len(value)]) + value if len(value) < 256 else b"T" + struct.pack("<i", len(value)) + value
    if isinstance(value, int):
        return b"K" + bytes([value]) if value < 256 else b"M" + struct.pack("<H", value)
    if isinstance(value, list):
        return b"]q\x05(" + b"".join(map(python2, value)) + b"e"
    if isinstance(value, dict):
        return b"}q\x01(" + b"".join(python2(k) + python2(v) for k, v in value.items()) + b"u"
    head = b"cnumpy.core.multiarray\n_reconstruct\nq\x02cnumpy\nndarray\nq\x03K\x00\x85U\x01b\x87Rq\x04(K\x01"
    shape = b"".join(map(python2, value.shape)) + b"\x86"
    dtype = b"cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01\x87Rq\x07(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    return head + shape + dtype + b"\x89" + python2(value.tobytes()) + b"tb"


def batch(n, seed, **labels):
    images = np.random.default_rng(seed).integers(0, 256, (n, 3072), np.uint8)
    actual = {b"batch_label": b"testing batch", b"data": images, b"filenames": [b"a.png"] * n,
             **{key.encode(): value for key, value in labels.items()}}
    return images, b"\x80\x02" + python2(actual) + b"."


def tar(**files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def test_the_python_2_form_is_what_pickle_reads():
    images, data = batch(2, 1, labels=[3, 4])
    actual = pickle.loads(data, encoding="bytes")
    assert actual[b"labels"] == [3, 4]
    assert np.array_equal(actual[b"data"], images)


# -- loaders ----------------------------------------------------------------------------------------
def test_mnist(served, capsys):
    train, test = digits(7, 1), digits(3, 2)
    data = npz(x_train=train[0], y_train=train[1], x_test=test[0], y_test=test[1])
    address = served("mnist.npz", data)
    for _ in range(2):
        (x_train, y_train), (x_test, y_test) = tf.keras.datasets.mnist.load_data()
        assert np.array_equal(x_train, train[0])
        assert np.array_equal(y_train, train[1])
        assert np.array_equal(x_test, test[0])
        assert np.array_equal(y_test, test[1])
    assert (served.home / "datasets" / "mnist.npz").read_bytes() == data
    assert served.asked == ["/mnist.npz"], "the second call uses the cache"
    told = capsys.readouterr().out
    assert told.startswith(f"Downloading data from {address}\n{len(data)}/{len(data)} ")


def test_fashion_mnist(served):
    arrays = {"train-images-idx3": digits(5, 1)[0], "train-labels-idx1": digits(5, 1)[1],
              "t10k-images-idx3": digits(2, 2)[0], "t10k-labels-idx1": digits(2, 2)[1]}
    for name, array in arrays.items():
        head = b"\x00\x00\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
        served(f"{name}-ubyte.gz", gzip.compress(head + array.tobytes()))
    actual = tf.keras.datasets.fashion_mnist.load_data()
    for array, wanted in zip((*actual[0], *actual[1]), arrays.values(), strict=True):
        assert np.array_equal(array, wanted)
    assert (served.home / "datasets" / "fashion-mnist" / "t10k-labels-idx1-ubyte.gz").is_file()


def test_cifar10(served):
    parts = {f"data_batch_{n}": batch(2, n, labels=[n, 9 - n]) for n in range(1, 6)}
    parts["test_batch"] = batch(3, 6, labels=[0, 1, 2])
    served("cifar-10-python.tar.gz", tar(**{f"cifar-10-batches-py/{k}": v[1] for k, v in parts.items()}))
    (x_train, y_train), (x_test, y_test) = tf.keras.datasets.cifar10.load_data()
    assert x_train.shape == (10, 32, 32, 3)
    assert x_test.shape == (3, 32, 32, 3)
    assert y_train.ravel().tolist() == [1, 8, 2, 7, 3, 6, 4, 5, 5, 4]
    assert y_test.shape == (3, 1)
    assert {a.dtype.name for a in (x_train, y_train, x_test, y_test)} == {"uint8"}
    assert np.array_equal(x_train[2], parts["data_batch_2"][0][0].reshape(3, 32, 32).transpose(1, 2, 0))
    again = tf.keras.datasets.cifar10.load_data()
    assert np.array_equal(again[0][0], x_train)
    assert len(served.asked) == 1


def test_cifar100(served):
    parts = {name: batch(3, n, fine_labels=[99, n, 5], coarse_labels=[19, n, 1])
             for n, name in enumerate(("train", "test"))}
    served("cifar-100-python.tar.gz", tar(**{f"cifar-100-python/{k}": v[1] for k, v in parts.items()}))
    tf.keras.config.set_image_data_format("channels_first")
    try:
        (x_train, y_train), (_, y_test) = tf.keras.datasets.cifar100.load_data()
    finally:
        tf.keras.config.set_image_data_format("channels_last")
    assert np.array_equal(x_train, parts["train"][0].reshape(3, 3, 32, 32))
    assert (y_train.ravel().tolist(), y_test.ravel().tolist()) == ([99, 0, 5], [99, 1, 5])
    coarse = tf.keras.datasets.cifar100.load_data(label_mode="coarse")
    assert coarse[0][1].ravel().tolist() == [19, 0, 1]
    with pytest.raises(ValueError, match="label_mode"):
        tf.keras.datasets.cifar100.load_data(label_mode="middle")


def test_imdb(served):
    train, test = lists(8, 1), lists(5, 2)
    served("imdb.npz", npz(x_train=train, y_train=np.arange(8) % 2, x_test=test, y_test=np.arange(5) % 2))
    (x_train, y_train), (x_test, y_test) = tf.keras.datasets.imdb.load_data()
    order = np.arange(8)
    rng = np.random.RandomState(113)
    rng.shuffle(order)
    last = max(max(text) for text in [*train, *test]) + 3
    expected = [[1, *(w + 3 if w + 3 < last else 2 for w in train[i])] for i in order]
    assert list(x_train) == expected
    assert y_train.tolist() == (order % 2).tolist()
    assert len(x_test) == len(y_test) == 5
    (limited, labels), _ = tf.keras.datasets.imdb.load_data(num_words=50, skip_top=5, maxlen=8, start_char=None,
                                                            oov_char=None, index_from=0)
    kept = [i for i in order if len(train[i]) < 8]
    assert list(limited) == [[w for w in train[i] if 5 <= w < 50] for i in kept]
    assert labels.tolist() == [i % 2 for i in kept]
    with pytest.raises(ValueError, match="maxlen=2"):
        tf.keras.datasets.imdb.load_data(maxlen=2)


def test_word_indices(served):
    for module in (tf.keras.datasets.imdb, tf.keras.datasets.reuters):
        name = f"{module.__name__.rsplit('.')[-1]}_word_index.json"
        served(name, json.dumps({"the": 1, "naïve": 2}).encode())
        assert module.get_word_index() == {"the": 1, "naïve": 2}


def test_reuters(served):
    x, y = lists(10, 1), np.arange(10) % 46
    served("reuters.npz", npz(x=x, y=y))
    (x_train, y_train), (x_test, y_test) = tf.keras.datasets.reuters.load_data(num_words=100)
    assert (len(x_train), len(x_test)) == (8, 2)
    order = np.arange(10)
    np.random.RandomState(113).shuffle(order)
    assert [*y_train, *y_test] == list(order)
    assert x_train[0] == [1, *(w + 3 if w + 3 < 100 else 2 for w in x[order[0]])]
    assert len(tf.keras.datasets.reuters.get_label_names()) == 46


@pytest.mark.parametrize("name", ["boston_housing", "california_housing"])
def test_housing(served, name):
    x, y = np.random.default_rng(1).normal(size=(20, 4)), np.arange(20.0)
    served(f"{name}.npz", npz(x=x, y=y))
    load = getattr(tf.keras.datasets, name).load_data
    (x_train, y_train), (x_test, y_test) = load(test_split=0.25, seed=5)
    order = np.arange(20)
    np.random.RandomState(5).shuffle(order)
    assert np.array_equal(np.concatenate([y_train, y_test]), y[order])
    assert np.array_equal(x_train, x[order][:15])
    assert len(x_test) == 5
    with pytest.raises(ValueError, match="test_split"):
        load(test_split=1.0)


# -- what can go wrong ------------------------------------------------------------------------------
def test_a_wrong_checksum_leaves_nothing(served):
    address = served("mnist.npz", npz(x_train=np.zeros(1)))
    _sources.FILES["mnist.npz"] = (address, "0" * 64)
    with pytest.raises(ValueError, match="Incomplete or corrupted.*0000"):
        tf.keras.datasets.mnist.load_data()
    assert list((served.home / "datasets").iterdir()) == []


def test_a_damaged_file_in_the_cache_is_replaced(served):
    train = digits(2, 1)
    served("mnist.npz", npz(x_train=train[0], y_train=train[1], x_test=train[0], y_test=train[1]))
    (served.home / "datasets").mkdir(parents=True)
    (served.home / "datasets" / "mnist.npz").write_bytes(b"half of it")
    assert np.array_equal(tf.keras.datasets.mnist.load_data()[0][0], train[0])


def test_offline(tmp_path, monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/mnist.npz"
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setitem(_sources.FILES, "mnist.npz", (address, "0" * 64))
    with pytest.raises(OSError, match=r"Cannot download mnist\.npz from http.*there yourself: ") as caught:
        tf.keras.datasets.mnist.load_data()
    assert str(tmp_path / "datasets" / "mnist.npz") in str(caught.value)
    assert list((tmp_path / "datasets").iterdir()) == []


def test_not_found(served):
    address = served("mnist.npz", b"")
    with pytest.raises(OSError, match="404"):
        tf.keras.utils.get_file("gone.txt", origin=address.replace("mnist.npz", "gone.txt"))


def test_names_in_files_are_never_called(served, tmp_path):
    victim = tmp_path / "victim"

    class Attack:
        def __reduce__(self):
            return os.mkdir, (str(victim),)

    objects = np.empty(1, object)
    objects[0] = Attack()
    served("imdb.npz", npz(x_train=objects, y_train=np.zeros(1), x_test=objects, y_test=np.zeros(1)))
    with pytest.raises(ValueError, match=r"names \w+\.mkdir"):
        tf.keras.datasets.imdb.load_data()
    assert not victim.exists()
    np.load(io.BytesIO(npz(a=objects)), allow_pickle=True)["a"]  # what the attack would have done
    assert victim.exists()


def test_archives_stay_in_their_folder(served):
    outside = tar(**{"../../outside.txt": b"x"})
    with pytest.raises(ValueError, match="cannot be unpacked"):
        tf.keras.utils.get_file("bad", origin=served("bad.tar.gz", outside), extract=True)
    assert not list(served.home.rglob("outside.txt"))
    assert not (served.home / "datasets" / "bad").exists()


def test_get_file_names(served):
    get_file = tf.keras.utils.get_file
    plain = get_file(origin=served("notes.txt", b"one"))
    assert plain == str(served.home / "datasets" / "notes.txt")
    folder = get_file("photos", origin=served("photos.tgz", tar(**{"photos/a.txt": b"a"})), untar=True)
    assert folder == str(served.home / "datasets" / "photos")
    assert (served.home / "datasets" / "photos" / "photos" / "a.txt").read_bytes() == b"a"
    served("notes.txt", b"two")
    origin = served("notes.txt", b"two")
    assert Path(get_file(origin=origin)).read_text() == "one"
    assert Path(get_file(origin=origin, force_download=True)).read_text() == "two"
    assert Path(get_file(origin=origin, md5_hash=hashlib.md5(b"two").hexdigest())).read_text() == "two"
    with pytest.raises(ValueError, match="without folders"):
        get_file("a/b.txt", origin=origin)
    with pytest.raises(ValueError, match="origin"):
        get_file("a.txt")
