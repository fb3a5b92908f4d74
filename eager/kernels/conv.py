"""Eager convolution: padding laid out, groups and phases run one by one, by what `runtime/convolutions.py` prepares.

A window of one element is a matrix product; depthwise filters have loops of their own. 16-bit floats go through float32
and round once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from twofold.codegen import conv_shapes as shapes
from twofold.codegen.kernels import convolution
from twofold.eager.kernels import prepare
from twofold.ir import ops
from twofold.ir.dtypes import DType
from twofold.runtime import convolutions, memory

from .copying import contiguous
from .matmul import product
from .windows import Geometry, geometry, operand, run

__all__: list[str] = []

_Run = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _driver(make: Callable[[Any, Any, Any, dict[str, Any]], _Run]) -> Callable[..., Any]:
    """Convolutions that are empty, and operands and results in another dtype than is computed in."""
    def prepared(operands: Any, outs: Any, attrs: dict[str, Any]) -> Callable[[list[np.ndarray]], np.ndarray]:
        dtype, dims = outs[0].dtype, outs[0].dims
        first, second = operands
        if 0 in (*first.dims, *second.dims, *dims):
            return lambda arrays: np.zeros(dims, dtype.np)
        found = make(first.dims, second.dims, outs[0], attrs)

        def run(arrays: list[np.ndarray]) -> np.ndarray:
            return found(*[operand(a, dtype) for a in arrays]).astype(dtype.np, copy=False)
        return run
    return prepared


def _same(x: np.ndarray) -> np.ndarray:
    return x


def _framed(w: Geometry, dtype: DType) -> tuple[Geometry, Callable[[np.ndarray], np.ndarray]]:
    """The geometry of images whose padding is laid out, and what does that to contiguous images."""
    inner = shapes.padded(w)
    if inner is None:
        return w, _same

    def frame(x: np.ndarray) -> np.ndarray:
        out = memory.empty((inner.images, *inner.sizes, inner.channels), x.dtype)
        lines = inner.images * inner.sizes[0] * inner.sizes[1]
        integers = (*inner.sizes, *w.sizes, *w.before, w.channels)
        run(("frame", dtype), lambda: convolution.frame(dtype), lines, [out, x], integers, out.size)
        return out
    return inner, frame


def _is_depthwise(filters: tuple[int, ...], groups: int) -> bool:
    return groups > 1 and filters[-2] == 1


@prepare(ops.conv)
@_driver
def _conv(x: Any, filters: Any, out: Any, attrs: dict[str, Any]) -> _Run:
    w, compute, outputs = geometry(x, out.dims[1:-1], filters[:-2], attrs), out.dtype.compute, filters[-1]
    groups = x[-1] // filters[-2]
    if _is_depthwise(filters, groups):
        return _depthwise(convolution.depthwise, w.places, out.dims, filters, w, compute)
    if groups == 1 and shapes.is_plain(w):
        return lambda x, f: product(x.reshape(w.places, -1), f.reshape(-1, outputs)).reshape(out.dims)
    w, frame = _framed(w, compute) if groups > 1 else (w, _same)
    steps = [convolutions.prepared(shapes.forward(w, outputs, group, groups, compute), compute)
            for group in range(groups)]

    def call(x: np.ndarray, f: np.ndarray) -> np.ndarray:
        result, x = memory.empty(out.dims, compute.np), frame(x)
        for step in steps:
            step(result, x, f)
        return result
    return call


@prepare(ops.conv_input_grad)
@_driver
def _input_grad(ct: Any, filters: Any, out: Any, attrs: dict[str, Any]) -> _Run:
    w, compute, outputs = geometry(out.dims, ct[1:-1], filters[:-2], attrs), out.dtype.compute, filters[-1]
    groups = w.channels // filters[-2]
    if _is_depthwise(filters, groups):
        return _depthwise(convolution.depthwise_input_grad, w.pixels, out.dims, filters, w, compute)
    if groups == 1 and shapes.is_plain(w):
        return lambda ct, f: product(ct.reshape(w.places, -1), f.reshape(-1, outputs).T).reshape(out.dims)
    phases = shapes.backward(w, outputs)
    assert phases is not None  # sizes are known
    steps = [_phase(p, w, groups, compute) for p in phases]
    every = len(phases) == math.prod(w.strides)  # else no tap falls on some pixels
    shape = (*w.window, filters[-2], groups, outputs // groups)

    def call(ct: np.ndarray, f: np.ndarray) -> np.ndarray:
        result = memory.empty(out.dims, compute.np)
        if not every:
            result.fill(0)
        f = f.reshape(shape).transpose(0, 1, 2, 5, 4, 3)
        for step in steps:
            step(result, ct, f)
        return result
    return call


def _phase(phase: shapes.Phase, w: Geometry, groups: int, dtype: DType) -> Callable[..., None]:
    """What computes the pixels of a phase: a function of the result, the outputs' gradient and transposed filters."""
    inner, frame = _framed(phase.geometry, dtype) if groups > 1 else (phase.geometry, _same)
    pixels = (w.sizes, phase.first, phase.strides)
    steps = [convolutions.prepared(shapes.forward(inner, w.channels, group, groups, dtype, pixels), dtype)
            for group in range(groups)]

    def call(out: np.ndarray, ct: np.ndarray, f: np.ndarray) -> None:
        ct, f = frame(ct), contiguous(f[phase.taps])
        for step in steps:
            step(out, ct, f)
    return call


@prepare(ops.conv_filter_grad)
@_driver
def _filter_grad(x: Any, ct: Any, out: Any, attrs: dict[str, Any]) -> _Run:
    w, compute, outputs = geometry(x, ct[1:-1], out.dims[:-2], attrs), out.dtype.compute, out.dims[-1]
    groups = x[-1] // out.dims[-2]
    if _is_depthwise(out.dims, groups):
        return _depthwise_filter_grad(out.dims, w, compute)
    count = shapes.shares(w, outputs, groups)
    w, frame = _framed(w, compute)
    steps = [convolutions.prepared(shapes.filters(w, outputs, group, groups, count, compute), compute)
            for group in range(groups)]

    def call(x: np.ndarray, ct: np.ndarray) -> np.ndarray:
        shares, x = memory.empty((count, *out.dims), compute.np), frame(x)
        for step in steps:
            step(shares, x, ct)
        if count == 1:
            return shares[0]
        result = memory.empty(out.dims, compute.np)
        run(("add_up", compute), lambda: convolution.add_up(compute), result.size, [result, shares],
            (count, result.size), shares.size)
        return result
    return call


def _depthwise(build: Any, total: int, dims: tuple[int, ...], filters: tuple[int, ...], w: Geometry,
               dtype: DType) -> _Run:
    multiplier = filters[-1] // w.channels
    single = multiplier == 1
    integers = (*w.integers, *(() if single else (multiplier,)))

    def call(x: np.ndarray, f: np.ndarray) -> np.ndarray:
        result = memory.empty(dims, dtype.np)
        run((build, dtype, single), lambda: build(dtype, single), total, [result, x, f], integers,
            2 * total * w.taps * w.channels * multiplier)
        return result
    return call


def _depthwise_filter_grad(dims: tuple[int, ...], w: Geometry, dtype: DType) -> _Run:
    multiplier = dims[-1] // w.channels
    single = multiplier == 1
    integers = (*w.integers, w.images, *(() if single else (multiplier,)))

    def call(x: np.ndarray, ct: np.ndarray) -> np.ndarray:
        sums = np.zeros(dims, np.float64)
        run(("depthwise_filter_grad", dtype, single), lambda: convolution.depthwise_filter_grad(dtype, single), w.taps,
            [sums, x, ct], integers, 2 * w.places * w.taps * dims[-1])
        return sums
    return call
