"""Eager softmax: the axis is brought last, 16-bit floats go through float32 and round once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from twofold.codegen.kernels import softmax as generated
from twofold.eager.kernels import prepare, register
from twofold.ir import ops
from twofold.runtime import kernels, launch, memory

__all__: list[str] = []

_WORK = 16  # of an element, in simple operations


def _rows(x: np.ndarray, out_spec: Any, axis: int, log: bool) -> np.ndarray:
    dtype, result = out_spec.dtype.compute, out_spec.dtype.np
    is_last = axis in (-1, x.ndim - 1)
    operand = np.ascontiguousarray(x if is_last else np.moveaxis(x, axis, -1), dtype.np)
    out = memory.empty(operand.shape, dtype.np)
    if out.size:
        kernel = kernels.get(("softmax", dtype, log), lambda: generated.rows(dtype, log))
        length = operand.shape[-1]
        launch.run(kernel, out.size // length, (launch.address_of(out), launch.address_of(operand), length),
                   out.size * _WORK)
    if not is_last:
        out = np.moveaxis(out, -1, axis)
    return out if dtype.np is result else out.astype(result)


@register(ops.softmax)
def _softmax(arrays: list[np.ndarray], outs: Any, attrs: dict[str, Any]) -> np.ndarray:
    return _rows(arrays[0], outs[0], attrs["axis"], log=False)


@register(ops.log_softmax)
def _log_softmax(arrays: list[np.ndarray], outs: Any, attrs: dict[str, Any]) -> np.ndarray:
    return _rows(arrays[0], outs[0], attrs["axis"], log=True)


@prepare(ops.sparse_cross_entropy)
def _cross_entropy(operands: Sequence[Any], outs: Any, attrs: dict[str, Any]) -> Any:
    dtype, labels, shape = outs[0].dtype.compute, operands[1].dtype, outs[0].dims
    count, classes, result = math.prod(shape), operands[0].dims[-1], outs[0].dtype.np
    kernel = kernels.get(("cross_entropy", dtype, labels), lambda: generated.cross_entropy(dtype, labels))

    def run(arrays: list[np.ndarray]) -> np.ndarray:
        given = np.ascontiguousarray(arrays[0], dtype.np), np.ascontiguousarray(arrays[1])
        out = memory.empty(shape, dtype.np)
        if count:
            addresses = [launch.address_of(a) for a in (out, *given)]
            launch.run(kernel, count, [*addresses, classes], count * classes * _WORK)
        return out if result is dtype.np else out.astype(result)
    return run
