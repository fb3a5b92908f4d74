"""Photographs of clothes: 70,000 images of 28x28 pixels in ten classes (Xiao, Rasul, Vollgraf, 2017)."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from twofold._formats.reading import reads
from twofold._front.api import public
from twofold._front.namespace import publish

from . import _sources

__all__ = ["load_data"]

_Pair = tuple[np.ndarray, np.ndarray]


@public
def load_data() -> tuple[_Pair, _Pair]:
    """Load the clothes; the first call downloads them to `~/.keras/datasets/fashion-mnist` (30 MB).

    The classes are T-shirt, trouser, pullover, dress, coat, sandal, shirt, sneaker, bag and ankle boot.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: images uint8 [60000, 28, 28] and [10000, 28, 28], of 0 to 255, and
        labels uint8 [60000] and [10000].
    Raises:
        OSError: they are neither there nor to be downloaded; the message names the file and its place.
        ValueError: a file is damaged.
    """
    arrays = [_read_idx(_sources.fetch(f"{part}-ubyte.gz", folder="datasets/fashion-mnist"))
              for part in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")]
    return (arrays[0], arrays[1]), (arrays[2], arrays[3])


def _read_idx(path: Path) -> np.ndarray:
    """An array of bytes in the IDX format: two zeros, the type, the rank, the sizes, and then the values."""
    with reads(path), gzip.open(path, "rb") as file:
        data = file.read()
    if data[:3] != b"\x00\x00\x08":
        raise ValueError(f"{path} is no IDX file of bytes.")
    rank = data[3]
    shape = np.frombuffer(data, ">u4", count=rank, offset=4).astype(np.int64)
    if len(data) - 4 - 4 * rank != shape.prod():
        raise ValueError(f"{path} is damaged: it has not the {shape.prod()} values that its head promises.")
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


publish(__name__)
