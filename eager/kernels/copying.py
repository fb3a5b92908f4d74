"""Moving elements from one array to another, whatever their strides: what eager data movement is made of."""

from __future__ import annotations

import numpy as np

from twofold.ir import dtypes as dt
from twofold.runtime import memory
from twofold.runtime.launch import MapFamily

__all__ = ["copy_into", "contiguous", "converted"]

# 16-bit floats would be widened and rounded again; as integers of their size they are moved as they are.
_PLAIN = {1: dt.uint8, 2: dt.uint16, 4: dt.uint32, 8: dt.uint64, 16: dt.complex128}
_families = {size: MapFamily("copy", lambda s, x: x, (dtype,), (dtype,)) for size, dtype in _PLAIN.items()}


def _plain(array: np.ndarray) -> np.ndarray:
    """`array` as elements of the same size that are moved without being looked at."""
    want = _PLAIN[array.itemsize].np
    return array if array.dtype == want else array.view(want)


_SMALL = 4096  # elements up to which starting a kernel takes longer than the copy


def copy_into(out: np.ndarray, x: np.ndarray) -> None:
    """`out[...] = x` for arrays of one dtype; `x` is broadcast. They must not overlap."""
    if out.size <= _SMALL or out.dtype.hasobject:
        out[...] = x
    else:
        _families[out.itemsize].into((_plain(out),), (_plain(x),))


def contiguous(x: np.ndarray) -> np.ndarray:
    """`x` itself if it is C-contiguous, else a copy that is."""
    if x.flags.c_contiguous:
        return x
    out = memory.empty(x.shape, x.dtype)
    copy_into(out, x)
    return out


def converted(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The elements of `x` as a C-contiguous array of another floating dtype, rounded once."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return x.astype(dtype, order="C")
