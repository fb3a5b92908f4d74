"""Eager gather and scatter of strings, which are Python objects and so no kernel's affair."""

from __future__ import annotations

import math

import numpy as np

from twofold.codegen.kernels.indexing import bad_coordinates, bad_index
from twofold.eager.kernels import Outs, register
from twofold.ir import ops
from twofold.ir.types import Attrs
from twofold.runtime.calls import KernelCheck

__all__: list[str] = []


@register(ops.gather, strings=True)
def _gather(arrays: list[np.ndarray], outs: Outs, attrs: Attrs) -> np.ndarray:
    x, indices = arrays
    axis, batch = attrs["axis"] % x.ndim, attrs["batch_dims"] % (indices.ndim + 1)
    size = x.shape[axis]
    if not math.prod(outs[0].dims):
        return np.empty(outs[0].dims, object)  # where there is nothing to be picked, no index is wrong
    _refuse(bad_index(indices, size))
    lead, outer = math.prod(x.shape[:batch]), math.prod(x.shape[batch:axis])
    rows = x.reshape(lead, outer, size, math.prod(x.shape[axis + 1:]))
    wanted = indices.reshape(lead, math.prod(indices.shape[batch:]))
    return np.take_along_axis(rows, wanted[:, None, :, None], axis=2).reshape(outs[0].dims)


@register(ops.gather_nd, strings=True)
def _gather_nd(arrays: list[np.ndarray], outs: Outs, attrs: Attrs) -> np.ndarray:
    x, indices = arrays
    batch = attrs["batch_dims"] % max(indices.ndim, 1)
    inner = batch + indices.shape[-1]
    _refuse(bad_coordinates(indices, *x.shape[batch:inner]))
    lead = math.prod(x.shape[:batch])
    rows, wanted = x.reshape(lead, *x.shape[batch:]), indices.reshape(lead, -1, indices.shape[-1])
    if not indices.shape[-1]:  # each row of no coordinates names everything
        return np.broadcast_to(rows[:, None], (lead, wanted.shape[1], *rows.shape[1:])).reshape(outs[0].dims)
    number = np.arange(lead)[:, None]
    return rows[(number, *np.moveaxis(wanted, -1, 0))].reshape(outs[0].dims)


@register(ops.tensor_scatter, strings=True)
def _tensor_scatter(arrays: list[np.ndarray], outs: Outs, attrs: Attrs) -> np.ndarray:
    x, indices, updates = arrays
    depth = indices.shape[-1]
    _refuse(bad_coordinates(indices, *x.shape[:depth]))
    result = x.copy()
    places, values = indices.reshape(-1, depth), updates.reshape(-1, *x.shape[depth:])
    for place, value in zip(places, values, strict=True):
        result[tuple(place)] = value
    return result


def _refuse(problem: str) -> None:
    if problem:
        raise KernelCheck(problem)
