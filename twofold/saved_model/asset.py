"""`tf.saved_model.Asset`: a file that belongs to a model."""

from __future__ import annotations

import os

from twofold.eager import convert
from twofold.eager.tensor import Tensor
from twofold.ir import dtypes as dt
from twofold.tracking import Trackable

__all__ = ["Asset"]


class Asset(Trackable):
    """A file that is saved with a model, such as a vocabulary.

    Set as an attribute of what is saved, its file is copied into the saved model. After loading, `asset_path` is the
    path of the copy, also for functions that read it.

    Args:
        path: of the file.

    >>> import os, tempfile
    >>> import twofold as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(os.path.join(folder, "words.txt"), "w") as file:
    ...         _ = file.write("one two")
    ...     model = tf.Module()
    ...     model.words = tf.saved_model.Asset(os.path.join(folder, "words.txt"))
    ...     tf.saved_model.save(model, os.path.join(folder, "model"))
    ...     loaded = tf.saved_model.load(os.path.join(folder, "model"))
    ...     with open(loaded.words.asset_path.numpy()) as file:
    ...         print(file.read())
    one two
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = convert.as_tensor(os.fspath(path), dtype=dt.string)

    @property
    def asset_path(self) -> Tensor:
        """The path of the file: a scalar of dtype string."""
        return self._path
