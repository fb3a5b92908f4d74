"""Where the data sets are published, and the checksums that go with them."""

from __future__ import annotations

from pathlib import Path

from ..files import get_file

__all__ = ["FILES", "fetch"]

_STORE = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"
_TORONTO = "https://www.cs.toronto.edu/~kriz/"

#: the address of each file, and its checksum where one is published (SHA-256, or MD5)
FILES: dict[str, tuple[str, str | None]] = {
    "mnist.npz": (_STORE + "mnist.npz", "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1"),
    "train-labels-idx1-ubyte.gz": (_STORE + "train-labels-idx1-ubyte.gz", None),
    "train-images-idx3-ubyte.gz": (_STORE + "train-images-idx3-ubyte.gz", None),
    "t10k-labels-idx1-ubyte.gz": (_STORE + "t10k-labels-idx1-ubyte.gz", None),
    "t10k-images-idx3-ubyte.gz": (_STORE + "t10k-images-idx3-ubyte.gz", None),
    "cifar-10-python.tar.gz": (_TORONTO + "cifar-10-python.tar.gz",
                               "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"),
    "cifar-100-python.tar.gz": (_TORONTO + "cifar-100-python.tar.gz",
                                "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7"),
    "imdb.npz": (_STORE + "imdb.npz", "69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f"),
    "imdb_word_index.json": (_STORE + "imdb_word_index.json", "bfafd718b763782e994055a2d397834f"),
    "reuters.npz": (_STORE + "reuters.npz", "d6586e694ee56d7a4e65172e12b3e987c03096cb01eab99753921ef915959916"),
    "reuters_word_index.json": (_STORE + "reuters_word_index.json", "4d44cc38712099c9e383dc6e5f11a921"),
    "boston_housing.npz": (_STORE + "boston_housing.npz",
                           "f553886a1f8d56431e820c5b82552d9d95cfcb96d1e678153f8839538947dff5"),
    "california_housing.npz": (_STORE + "california_housing.npz",
                               "1a2e3a52e0398de6463aebe6f4a8da34fb21fbb6b934cf88c3425e766f2a1a6f"),
}


def fetch(file: str, name: str | None = None, folder: str = "datasets", extract: bool = False) -> Path:
    """The path of a file of a data set, which is downloaded where it is not there.

    Args:
        file: which of `FILES`.
        name: its name in the cache; by default its own.
        folder: the folder in the cache.
        extract: whether it is an archive to unpack; then the path is that of the folder.
    """
    origin, checksum = FILES[file]
    return Path(get_file(name or file, origin=origin, file_hash=checksum, cache_subdir=folder, extract=extract))
