"""Eager nonzero and range: the size of the result is counted first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from twofold.codegen.kernels import indexing as generated
from twofold.eager.kernels import Outs, register
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.types import Attrs
from twofold.runtime import kernels, launch
from twofold.runtime.cpu import cpu
from twofold.runtime.launch import KernelCheck, address_of, contiguous

__all__: list[str] = []


@register(ops.nonzero)
def _nonzero(arrays: list[np.ndarray], outs: Outs, attrs: Attrs) -> np.ndarray:
    x = contiguous(arrays[0])
    dtype, int64 = dt.from_numpy(x.dtype), np.dtype(np.int64)
    blocks = -(-x.size // generated.BLOCK)
    counts = cpu.empty((blocks + 1,), int64)
    counting = kernels.get(("count_nonzero", dtype), lambda: generated.count_nonzero(dtype))
    launch.run(counting, blocks, [address_of(counts), address_of(x), x.size], x.size)
    counts[blocks] = 0
    ends = np.cumsum(counts)
    starts, total = ends - counts, int(ends[-1])
    out = cpu.empty((total, x.ndim), int64)
    if out.size:
        filling = kernels.get(("coordinates", dtype), lambda: generated.coordinates(dtype))
        launch.run(filling, blocks, [address_of(out), address_of(starts), address_of(x), x.size, x.ndim, *x.shape],
                   x.size + out.size)
    return out


@register(ops.range, where=lambda attrs: attrs["size"] is None)
def _range(arrays: list[np.ndarray], outs: Outs, attrs: Attrs) -> np.ndarray:
    start, limit, delta = arrays
    size = range_size(start[()], limit[()], delta[()])
    dtype = outs[0].dtype
    out = cpu.empty((size,), dtype.np)
    kernel = kernels.get((generated.ramp, dtype), lambda: generated.ramp(dtype))
    launch.run(kernel, size, [address_of(out), address_of(start), address_of(delta)], size)
    return out


def range_size(start: Any, limit: Any, delta: Any) -> int:
    """How many numbers `start, start + delta, ..` come before `limit`, all NumPy scalars; floats decide in their own
    precision."""
    if delta == 0:
        raise KernelCheck(f"Requires delta != 0: {delta}")
    if (start > limit) if delta > 0 else (start < limit):
        order, sign = ("<=", ">") if delta > 0 else (">=", "<")
        raise KernelCheck(f"Requires start {order} limit when delta {sign} 0: {start}/{limit}")
    if isinstance(delta, np.integer):
        return -(-(int(limit) - int(start)) // int(delta))
    count = (limit - start) / delta
    if not np.isfinite(count):
        raise KernelCheck(f"a range from {start} to {limit} by {delta} has no size")
    return math.ceil(abs(count))
