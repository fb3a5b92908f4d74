"""How view ops see memory: arrays and symbolic layouts behind the same few operations.

A view op is written once with `.reshape`, `.transpose`, indexing, and `broadcast_to` from here; NumPy arrays take
all of them, and so does the layout that a compiler keeps for a value in place of its data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from .dims import Shape

__all__ = ["Strided", "broadcast_to"]

_SMALL = 1024  # elements up to which a copy costs less than every later walk over strides of 0


class Strided(Protocol):
    """An array or the symbolic layout of a value: view ops are written with its operations alone."""

    @property
    def shape(self) -> Shape: ...

    def transpose(self, perm: Sequence[int] | None, /) -> Strided: ...

    def reshape(self, shape: Shape, /) -> Strided: ...

    def broadcast_to(self, shape: Shape, /) -> Strided: ...

    def __getitem__(self, key: tuple[object, ...], /) -> Strided: ...  # slices, sizes, None and `...`


def broadcast_to(value: np.ndarray | Strided, shape: tuple[Any, ...]) -> np.ndarray | Strided:
    """`value` repeated to `shape`: strides are 0 along the axes it is repeated in, except in small arrays.

    Args:
        value: an array, or a layout with a method of this name.
        shape: a shape that `value` broadcasts to; of numbers alone where it is an array.

    >>> broadcast_to(np.array([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    if isinstance(value, np.ndarray):
        if math.prod(shape) > _SMALL:
            return np.broadcast_to(value, shape)
        out = np.empty(shape, value.dtype)
        out[...] = value
        return out
    return value.broadcast_to(shape)
