"""The worth of houses in 506 districts of Boston, by 13 properties (Harrison and Rubinfeld, 1978).

One of the properties is about race. The data are kept for programs that compare themselves on them;
`california_housing` is the better choice for others.
"""

from __future__ import annotations

import numpy as np

from twofold._front.api import public
from twofold._front.namespace import publish

from . import _sources, _tables

__all__ = ["load_data"]

_Pair = tuple[np.ndarray, np.ndarray]


@public
def load_data(path: str = "boston_housing.npz", test_split: float = 0.2, seed: int = 113) -> tuple[_Pair, _Pair]:
    """Load the districts; the first call downloads them to `~/.keras/datasets` (57 kB).

    Args:
        path: the name of the file in the cache.
        test_split: which part is for testing, in [0, 1).
        seed: of the order.
    Returns:
        `(x_train, y_train), (x_test, y_test)`: properties float64 [404, 13] and [102, 13], and median worths in
        thousands of dollars, float64 [404] and [102].
    Raises:
        OSError: they are neither there nor to be downloaded; the message names the file and its place.
        ValueError: `test_split` is not in [0, 1), or the checksum is wrong.
    """
    return _tables.split(_sources.fetch("boston_housing.npz", path), test_split, seed)


publish(__name__)
