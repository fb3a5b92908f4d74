"""The worth of houses in 20,640 districts of California, by 8 properties (Pace and Barry, 1997)."""

from __future__ import annotations

import numpy as np

from twofold._front.api import public
from twofold._front.namespace import publish

from . import _sources, _tables

__all__ = ["load_data"]

_Pair = tuple[np.ndarray, np.ndarray]


@public
def load_data(version: str = "large", path: str = "california_housing.npz", test_split: float = 0.2,
              seed: int = 113) -> tuple[_Pair, _Pair]:
    """Load the districts; the first call downloads them to `~/.keras/datasets` (1 MB).

    Args:
        version: "large" for all, "small" for 600 of them.
        path: the name of the file in the cache.
        test_split: which part is for testing, in [0, 1).
        seed: of the order.
    Returns:
        `(x_train, y_train), (x_test, y_test)`: properties float32 [n, 8], and median worths in dollars, float32 [n].
    Raises:
        OSError: they are neither there nor to be downloaded; the message names the file and its place.
        ValueError: there is no such version, `test_split` is not in [0, 1), or the checksum is wrong.
    """
    if version not in ("small", "large"):
        raise ValueError(f"`version` must be 'small' or 'large'; got {version!r}.")
    rows = 600 if version == "small" else None
    return _tables.split(_sources.fetch("california_housing.npz", path), test_split, seed, rows)


publish(__name__)
