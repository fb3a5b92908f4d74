"""Eager sums of ordered segments and bincount: the last id, or the largest value, says how many there are."""

from __future__ import annotations

import math

import numpy as np

from twofold.codegen.kernels import segment
from twofold.eager.kernels import Driver, Outs, register
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.types import Attrs
from twofold.runtime import kernels, launch
from twofold.runtime.cpu import cpu

__all__: list[str] = []


def _join(kind: str, data: np.ndarray, ids: np.ndarray, count: int, ordered: bool = False,
          drop_above: bool = False) -> np.ndarray:
    """The rows of `data` joined by `ids`, into `count` segments."""
    inner = data.shape[ids.ndim:]
    dtype, id_dtype, columns = dt.from_numpy(data.dtype), dt.from_numpy(ids.dtype), math.prod(inner)
    out = cpu.empty((count, *inner), data.dtype)
    acc = out if dtype.compute is dtype else cpu.empty(out.shape, dtype.compute.np)
    data, ids = np.ascontiguousarray(data), np.ascontiguousarray(ids)
    compiled = kernels.get((segment.join, kind, dtype, id_dtype, ordered, drop_above),
                           lambda: segment.join(kind, dtype, id_dtype, ordered, drop_above))
    args = [*map(launch.address_of, (out, acc, data, ids)), ids.size, count, columns]
    tiles = -(-columns // segment.TILE) or int(ordered)  # the order of ids is looked at where there are no columns, too
    launch.run(compiled, tiles, args, (data.size + out.size) * compiled.weight)
    return out


def _ordered(kind: str) -> Driver:
    def join(arrays: list[np.ndarray], outs: Outs, attrs: Attrs) -> np.ndarray:
        data, ids = arrays
        return _join(kind, data, ids, max(int(ids[-1]) + 1, 0) if ids.size else 0, ordered=True)
    return join


for _kind in segment.COMBINE:
    register(getattr(ops, f"segment_{_kind}"))(_ordered(_kind))


@register(ops.bincount)
def _bincount(arrays: list[np.ndarray], outs: Outs, attrs: Attrs) -> np.ndarray:
    values, weights = arrays
    if values.size and values.min() < 0:
        raise launch.KernelCheck("values must not be negative.")
    size = max(int(values.max()) + 1 if values.size else 0, attrs["minlength"])
    if attrs["maxlength"] is not None:
        size = min(size, attrs["maxlength"])
    if values.ndim == 1:
        return _join("sum", weights, values, size, drop_above=True)
    places = values.astype(np.int64)
    places = np.where(places < size, places + size * np.arange(len(places))[:, None], -1)
    return _join("sum", weights, places, size * len(places)).reshape(len(places), size)
