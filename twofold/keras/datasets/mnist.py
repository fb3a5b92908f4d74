"""Handwritten digits: 70,000 images of 28x28 pixels (LeCun, Cortes, Burges, 1998)."""

from __future__ import annotations

import numpy as np

from twofold._front.api import public
from twofold._front.namespace import publish

from . import _sources

__all__ = ["load_data"]

_Pair = tuple[np.ndarray, np.ndarray]


@public
def load_data(path: str = "mnist.npz") -> tuple[_Pair, _Pair]:
    """Load the digits; the first call downloads them to `~/.keras/datasets` (11 MB).

    Args:
        path: the name of the file in the cache.
    Returns:
        `(x_train, y_train), (x_test, y_test)`: images uint8 [60000, 28, 28] and [10000, 28, 28], of 0 to 255, and
        labels uint8 [60000] and [10000].
    Raises:
        OSError: it is neither there nor to be downloaded; the message names the file and its place.
        ValueError: the checksum is wrong.
    """
    with np.load(_sources.fetch("mnist.npz", path), allow_pickle=False) as file:
        return (file["x_train"], file["y_train"]), (file["x_test"], file["y_test"])


publish(__name__)
