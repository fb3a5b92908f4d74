"""60,000 colour images of 32x32 pixels in ten classes (Krizhevsky, 2009)."""

from __future__ import annotations

import numpy as np

from twofold._front.api import public
from twofold._front.namespace import publish

from . import _cifar, _sources

__all__ = ["load_data"]

_Pair = tuple[np.ndarray, np.ndarray]


@public
def load_data() -> tuple[_Pair, _Pair]:
    """Load the images; the first call downloads them to `~/.keras/datasets` (170 MB).

    The classes are airplane, automobile, bird, cat, deer, dog, frog, horse, ship and truck.

    Returns:
        `(x_train, y_train), (x_test, y_test)`: images uint8 [50000, 32, 32, 3] and [10000, 32, 32, 3], of 0 to 255, and
        labels uint8 [50000, 1] and [10000, 1].
    Raises:
        OSError: they are neither there nor to be downloaded; the message names the file and its place.
        ValueError: the checksum is wrong, or a file is damaged.
    """
    folder = _sources.fetch("cifar-10-python.tar.gz", "cifar-10-batches-py-target", extract=True)
    folder = folder / "cifar-10-batches-py"
    train = [_cifar.load_batch(folder / f"data_batch_{n}", "labels") for n in range(1, 6)]
    x_train, y_train = (np.concatenate(parts) for parts in zip(*train, strict=True))
    x_test, y_test = _cifar.load_batch(folder / "test_batch", "labels")
    return ((_cifar.images(x_train), _cifar.labels(y_train, np.uint8)),
            (_cifar.images(x_test), _cifar.labels(y_test, np.uint8)))


publish(__name__)
