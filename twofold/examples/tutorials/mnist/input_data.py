"""MNIST from its four published files, in batches without end; new programs take `tf.keras.datasets.mnist`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twofold.keras.datasets.fashion_mnist import _read_idx
from twofold.keras.files import get_file

__all__ = ["DataSet", "Datasets", "read_data_sets"]

_SOURCE = "https://storage.googleapis.com/cvdf-datasets/mnist/"
_FILES = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
          "t10k-labels-idx1-ubyte.gz")


class DataSet:
    """Images with their labels.

    Args:
        images, labels: as many of the one as of the other.
        seed: makes the order of the batches repeatable.
    Raises:
        ValueError: their numbers differ.

    >>> import numpy as np
    >>> from twofold.examples.tutorials.mnist.input_data import DataSet
    >>> data = DataSet(np.zeros([5, 784], np.float32), np.arange(5))
    >>> images, labels = data.next_batch(3)
    >>> images.shape, data.epochs_completed
    ((3, 784), 0)
    """

    def __init__(self, images: np.ndarray, labels: np.ndarray, seed: int | None = None):
        if len(images) != len(labels):
            raise ValueError(f"There must be as many images as labels; got {len(images)} and {len(labels)}.")
        self.images, self.labels = images, labels
        self.epochs_completed = 0
        self._rng = np.random.default_rng(seed)
        self._order: np.ndarray | None = None
        self._at = 0

    @property
    def num_examples(self) -> int:
        """How many images there are."""
        return len(self.images)

    def next_batch(self, batch_size: int, shuffle: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """The next images and labels; after the last ones, the first of a new order.

        Args:
            batch_size: how many, at most all.
            shuffle: whether the order of each epoch is a new one.
        Returns:
            Images and labels; a batch at the end of an epoch takes its rest from the next one.
        Raises:
            ValueError: there are not so many.
        """
        if not 0 < batch_size <= self.num_examples:
            raise ValueError(f"batch_size must be from 1 to {self.num_examples}, the number of images; got "
                             f"{batch_size}.")
        if self._order is None:
            self._order = self._new_order(shuffle)
        rows = self._order[self._at:self._at + batch_size]
        self._at += len(rows)
        if len(rows) < batch_size:
            self.epochs_completed += 1
            self._order = self._new_order(shuffle)
            self._at = batch_size - len(rows)
            rows = np.concatenate([rows, self._order[:self._at]])
        return self.images[rows], self.labels[rows]

    def _new_order(self, shuffle: bool) -> np.ndarray:
        return self._rng.permutation(self.num_examples) if shuffle else np.arange(self.num_examples)


class Datasets(NamedTuple):
    """The three parts."""

    train: DataSet
    validation: DataSet
    test: DataSet


def read_data_sets(train_dir: str | os.PathLike[str], one_hot: bool = False, dtype: Any = np.float32,
                   reshape: bool = True, validation_size: int = 5000, seed: int | None = None,
                   source_url: str = _SOURCE) -> Datasets:
    """Load MNIST from a folder; files that are not there are downloaded to it (11 MB).

    Args:
        train_dir: the folder.
        one_hot: whether labels are rows of ten with a one at the digit, float64, instead of numbers, uint8.
        dtype: float32 for pixels from 0 to 1, uint8 for pixels as they are.
        reshape: whether images are rows of 784 pixels, instead of [28, 28, 1].
        validation_size: how many of the training images, the first ones, are kept apart.
        seed: makes the order of the batches repeatable.
        source_url: where the files are downloaded from.
    Returns:
        `train`, `validation` and `test`.
    Raises:
        OSError: a file is neither there nor to be downloaded; the message names it.
        ValueError: a file is damaged, or there are not so many images to keep apart.
    """
    dtype = np.dtype(getattr(dtype, "as_numpy_dtype", dtype))
    if dtype not in (np.float32, np.uint8):
        raise ValueError(f"Images are float32 or uint8; got {dtype}.")
    folder = Path(train_dir).resolve()
    arrays = [_read_idx(Path(get_file(name, origin=source_url + name, cache_dir=folder, cache_subdir="")))
              for name in _FILES]
    x, y, test_x, test_y = arrays
    if not 0 <= validation_size <= len(x):
        raise ValueError(f"validation_size must be from 0 to {len(x)}, the number of images; got {validation_size}.")

    def part(images: np.ndarray, digits: np.ndarray) -> DataSet:
        images = images.reshape(len(images), -1) if reshape else images[..., None]
        images = images / np.float32(255) if dtype == np.float32 else images
        return DataSet(images, np.eye(10)[digits] if one_hot else digits, seed)

    return Datasets(part(x[validation_size:], y[validation_size:]), part(x[:validation_size], y[:validation_size]),
                    part(test_x, test_y))
