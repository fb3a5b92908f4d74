"""Eager pooling. 16-bit floats go through float32 and round once."""

from __future__ import annotations

from typing import Any

import numpy as np

from twofold.codegen.kernels import pool
from twofold.eager.kernels import register
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.runtime import memory

from .windows import Geometry, geometry, operand, run

__all__: list[str] = []


def _output_places(build: Any, arrays: list[np.ndarray], out: Any, attrs: dict[str, Any]) -> np.ndarray:
    """Runs a kernel over output places; the last operand is what the window slides over."""
    in_dtype = dt.from_numpy(arrays[-1].dtype)
    operands = [operand(a, in_dtype) for a in arrays]
    g = geometry(arrays[-1].shape, out.dims[1:-1], attrs["ksize"], attrs)
    result = memory.empty(out.dims, out.dtype.compute.np)
    run((build, in_dtype.compute), lambda: build(in_dtype.compute), g.places, [result, *operands], g.integers, _work(g))
    return result.astype(out.dtype.np, copy=False)


def _work(g: Geometry) -> int:
    return 2 * g.places * g.taps * g.channels


@register(ops.max_pool)
def _max_pool(arrays: list[np.ndarray], outs: Any, attrs: dict[str, Any]) -> np.ndarray:
    return _output_places(pool.maximum, arrays, outs[0], attrs)


@register(ops.max_pool_argmax)
def _max_pool_argmax(arrays: list[np.ndarray], outs: Any, attrs: dict[str, Any]) -> np.ndarray:
    return _output_places(pool.argmax, arrays, outs[0], attrs)


@register(ops.max_pool_gather)
def _max_pool_gather(arrays: list[np.ndarray], outs: Any, attrs: dict[str, Any]) -> np.ndarray:
    return _output_places(pool.gather, arrays, outs[0], attrs)


@register(ops.avg_pool)
def _avg_pool(arrays: list[np.ndarray], outs: Any, attrs: dict[str, Any]) -> np.ndarray:
    return _output_places(pool.average, arrays, outs[0], attrs)


@register(ops.max_pool_grad)
def _max_pool_grad(arrays: list[np.ndarray], outs: Any, attrs: dict[str, Any]) -> np.ndarray:
    dtype = outs[0].dtype
    ct, x = (operand(a, dtype) for a in arrays)
    g = geometry(x.shape, ct.shape[1:-1], attrs["ksize"], attrs)
    out = memory.empty(x.shape, dtype.compute.np)
    if pool.is_tiled(g):
        run(("max_pool_grad tiled", dtype.compute), lambda: pool.maximum_grad_tiled(dtype.compute), g.places,
            [out, ct, x], g.integers, 2 * _work(g))
        return out.astype(dtype.np, copy=False)
    out.fill(0)
    tasks = g.images * -(-g.channels // pool.BLOCK)
    run(("max_pool_grad", dtype.compute), lambda: pool.maximum_grad(dtype.compute), tasks, [out, ct, x], g.integers,
        _work(g))
    return out.astype(dtype.np, copy=False)


@register(ops.avg_pool_grad)
def _avg_pool_grad(arrays: list[np.ndarray], outs: Any, attrs: dict[str, Any]) -> np.ndarray:
    dtype, dims = outs[0].dtype, outs[0].dims
    ct = operand(arrays[0], dtype)
    g = geometry(dims, ct.shape[1:-1], attrs["ksize"], attrs)
    out = memory.empty(dims, dtype.compute.np)
    run(("avg_pool_grad", dtype.compute), lambda: pool.average_grad(dtype.compute), g.pixels, [out, ct], g.integers,
        2 * g.pixels * g.taps * g.channels)
    return out.astype(dtype.np, copy=False)
