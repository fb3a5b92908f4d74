"""60,000 colour images of 32x32 pixels in a hundred classes, which form twenty groups (Krizhevsky, 2009)."""

from __future__ import annotations

import numpy as np

from twofold._front.api import public
from twofold._front.namespace import publish

from . import _cifar, _sources

__all__ = ["load_data"]

_Pair = tuple[np.ndarray, np.ndarray]


@public
def load_data(label_mode: str = "fine") -> tuple[_Pair, _Pair]:
    """Load the images; the first call downloads them to `~/.keras/datasets` (169 MB).

    Args:
        label_mode: "fine" for the hundred classes, "coarse" for the twenty groups.
    Returns:
        `(x_train, y_train), (x_test, y_test)`: images uint8 [50000, 32, 32, 3] and [10000, 32, 32, 3], of 0 to 255, and
        labels int64 [50000, 1] and [10000, 1].
    Raises:
        OSError: they are neither there nor to be downloaded; the message names the file and its place.
        ValueError: there is no such mode, the checksum is wrong, or a file is damaged.
    """
    if label_mode not in ("fine", "coarse"):
        raise ValueError(f'`label_mode` must be "fine" or "coarse"; got {label_mode!r}.')
    folder = _sources.fetch("cifar-100-python.tar.gz", "cifar-100-python-target", extract=True) / "cifar-100-python"
    (x_train, y_train), (x_test, y_test) = (_cifar.load_batch(folder / part, f"{label_mode}_labels")
                                            for part in ("train", "test"))
    return ((_cifar.images(x_train), _cifar.labels(y_train, np.int64)),
            (_cifar.images(x_test), _cifar.labels(y_test, np.int64)))


publish(__name__)
