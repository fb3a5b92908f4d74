"""The page that a guide's test follows."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
from collections.abc import Iterator

import numpy as np
import pytest
from guides.page import Page
from local_server import serving
from sklearn.datasets import load_digits

import twofold as tf
from twofold._front import tensors as _tensors
from twofold.keras.datasets import _sources


@pytest.fixture
def page() -> Iterator[Page]:
    """A fresh page; random numbers are the same in every run, and a call for eager execution ends with the page."""
    tf.random.set_seed(20)
    before = list(_tensors.eager_for_good)
    _tensors.eager_for_good.clear()
    yield Page()
    _tensors.eager_for_good[:] = before


@pytest.fixture(scope="session")
def small_mnist() -> bytes:
    """A file like MNIST's with 800 digits of scikit-learn, each pixel three by three, in a frame of two."""
    images, digits = load_digits(return_X_y=True)
    images = np.kron(images.reshape(-1, 8, 8), np.ones((1, 3, 3))) * 15.9
    images = np.pad(images, [(0, 0), (2, 2), (2, 2)]).astype(np.uint8)
    digits = digits.astype(np.uint8)
    file = io.BytesIO()
    np.savez(file, x_train=images[:640], y_train=digits[:640], x_test=images[640:800], y_test=digits[640:800])
    return file.getvalue()


@pytest.fixture(scope="session")
def small_mnist_files(small_mnist: bytes) -> dict[str, bytes]:
    """The same as the four files of MNIST's own site, by name."""
    arrays = np.load(io.BytesIO(small_mnist))

    def idx(array: np.ndarray) -> bytes:
        head = struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
        return gzip.compress(head + array.tobytes(), mtime=0)

    return {f"{name}-{kind}-ubyte.gz": idx(arrays[key])
            for name, kind, key in (("train", "images-idx3", "x_train"), ("train", "labels-idx1", "y_train"),
                                    ("t10k", "images-idx3", "x_test"), ("t10k", "labels-idx1", "y_test"))}


@pytest.fixture
def mnist(small_mnist: bytes, small_mnist_files: dict[str, bytes], tmp_path, monkeypatch) -> Iterator[list[str]]:
    """Lets a server on this machine give the small files where MNIST is published; the paths that it is asked for."""
    folder = tmp_path / "served"
    folder.mkdir()
    for name, content in {"mnist.npz": small_mnist, **small_mnist_files}.items():
        (folder / name).write_bytes(content)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(folder) as (address, asked):
        monkeypatch.setitem(_sources.FILES, "mnist.npz",
                            (address + "mnist.npz", hashlib.sha256(small_mnist).hexdigest()))
        yield asked


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in; pictures are drawn, and not shown."""
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("MPLBACKEND", "agg")
    return place
