"""What the housing data sets share: a table of numbers, shuffled and split in two."""

from __future__ import annotations

from pathlib import Path

import numpy as np

__all__ = ["split"]

_Pair = tuple[np.ndarray, np.ndarray]


def split(path: Path, test_split: float, seed: int, rows: int | None = None) -> tuple[_Pair, _Pair]:
    """The first rows of the table in a `.npz` file in a new order, in two parts.

    Raises:
        ValueError: `test_split` is not in [0, 1).
    """
    if not 0 <= test_split < 1:
        raise ValueError(f"`test_split` must be 0 or more and below 1; got {test_split}.")
    with np.load(path, allow_pickle=False) as file:
        x, y = file["x"][:rows], file["y"][:rows]
    order = np.arange(len(x))
    np.random.RandomState(seed).shuffle(order)
    x, y = x[order], y[order]
    n = int(len(x) * (1 - test_split))
    return (x[:n], y[:n]), (x[n:], y[n:])
