"""Sorting and what rests on it: order, top k, distinct values, search in sorted rows.

NumPy does the comparing: these are host ops, but for `first_equal`, which compiled training steps run. NaN sorts behind
everything else, as in NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .. import dims as dm
from .. import dtypes as dt
from .. import grad, ops, rules
from ..dtypes import DType
from ..errors import DTypeError, InvalidArgumentError
from ..op import Op, primitive
from ..spec import spec
from ..types import AnyTensor, Cotangents, Spec

__all__ = ["sort", "argsort", "top_k", "unique", "first_equal", "searchsorted", "invert_permutation"]

_INDEX = frozenset({dt.int32, dt.int64})


def _comparable(a: np.ndarray) -> np.ndarray:
    """`a`, with bfloat16 as float32: NumPy knows only of its own types where NaN belongs."""
    return a.astype(np.float32) if a.dtype == dt.bfloat16.np else a


def _order(a: np.ndarray, descending: bool) -> np.ndarray:
    """The indices that sort the last axis; of equal elements the first comes first in either direction."""
    a = _comparable(a)
    if not descending:
        return np.argsort(a, axis=-1, kind="stable")
    order = np.argsort(a[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    return a.shape[-1] - 1 - order


def _along_last(values: AnyTensor, indices: AnyTensor) -> AnyTensor:
    """`values[..., indices]`, row by row."""
    last = len(indices.dims) - 1
    return ops.gather(values, indices, axis=last, batch_dims=last)


# -- order --------------------------------------------------------------------------------------------
def _argsort_infer(op: Op, x: Spec, *, descending: bool) -> Spec:
    rules.require_dtype(op, (x,), 0, dt.REAL | dt.BOOL)
    rules.require_rank(op, (x,), 0, 1)
    return spec(x.dims, dt.int32)


@primitive(infer=_argsort_infer, vjp=None, host=lambda a, descending: _order(a, descending), traits=("total",))
def argsort(x: AnyTensor, *, descending: bool = False) -> AnyTensor:
    """The indices that sort the last axis of `x`; equal elements keep their order.

    Args:
        x: real or bool tensor of rank 1 or more.
        descending: largest first.
    Returns:
        int32 indices, of the shape of `x`.
    Raises:
        ShapeError: `x` is a scalar. DTypeError: `x` is complex.
    """


def _sort_host(a: np.ndarray, descending: bool) -> np.ndarray:
    """Sorts values alone, which is quicker than by indices. Zeros of both signs, and NaN of different bits, are equal
    to one another, and come in the order in which they lay: those of a row are neighbours."""
    comparable = _comparable(a)
    values = np.sort(comparable, axis=-1).astype(a.dtype, copy=False)
    if descending:
        values = values[..., ::-1].copy()
    if a.dtype.kind not in "biu":
        for before, now in ((comparable == 0, values == 0), (comparable != comparable, values != values)):
            if now.any():
                values[now] = a[before]
    return values


def _sort_infer(op: Op, x: Spec, *, descending: bool) -> Spec:
    _argsort_infer(op, x, descending=descending)
    return spec(x.dims, x.dtype)


def _sort_vjp(ct: AnyTensor, out: Spec, x: AnyTensor, *, descending: bool) -> Cotangents:
    """Each cotangent goes back to where its element came from."""
    return _along_last(ct, ops.argsort(ops.argsort(x, descending=descending)))


@primitive(infer=_sort_infer, vjp=_sort_vjp, saves=("x",), host=_sort_host, traits=("total",))
def sort(x: AnyTensor, *, descending: bool = False) -> AnyTensor:
    """The last axis of `x` sorted.

    Args:
        x: real or bool tensor of rank 1 or more.
        descending: largest first.
    Returns:
        Tensor like `x`.
    Raises:
        ShapeError: `x` is a scalar. DTypeError: `x` is complex.
    Gradient: of equal elements the first comes first.
    """


# -- the largest --------------------------------------------------------------------------------------
def _top_k_host(a: np.ndarray, k: int, index_type: DType) -> tuple[np.ndarray, np.ndarray]:
    """All are sorted where k is a good part of them, or NaN is among the largest; else the largest are picked out
    first, of those that equal the smallest one picked the first."""
    n = a.shape[-1]
    if 0 < 8 * k < n and a.dtype.kind in "iuf":
        rows = a.reshape(-1, n)
        largest = np.partition(rows, n - k, axis=-1)[:, n - k:]
        if a.dtype.kind != "f" or not np.isnan(largest).any():
            places = np.nonzero(_largest(rows, largest[:, :1], k))[1].reshape(*a.shape[:-1], k)
            picked = np.take_along_axis(a, places, -1)
            order = _order(picked, True)
            return np.take_along_axis(picked, order, -1), np.take_along_axis(places, order, -1)
    order = _order(a, True)[..., :k]
    return np.take_along_axis(a, order, -1), order


def _largest(rows: np.ndarray, bound: np.ndarray, k: int) -> np.ndarray:
    """Which are the `k` largest of each row, of which `bound` is the smallest."""
    taken = rows >= bound
    ties = np.count_nonzero(taken, axis=-1) > k
    if ties.any():
        above, equal = rows[ties] > bound[ties], rows[ties] == bound[ties]
        missing = k - np.count_nonzero(above, axis=-1)[:, None]
        taken[ties] = above | equal & (np.cumsum(equal, axis=-1) <= missing)
    return taken


def _top_k_infer(op: Op, x: Spec, *, k: int, index_type: DType) -> tuple[Spec, Spec]:
    rules.require_dtype(op, (x,), 0, dt.REAL)
    rules.require_rank(op, (x,), 0, 1)
    if index_type not in _INDEX:
        raise rules.fail(op, (x,), f"index_type is {index_type.name}; expected int32 or int64.", DTypeError)
    if dm.decide(k, "<", 0):
        raise rules.fail(op, (x,), f"k is {k}; expected 0 or more.", InvalidArgumentError)
    if not dm.require(k, "<=", x.dims[-1]):
        raise rules.fail(op, (x,), f"input must have at least k columns: k is {k}, the last axis has size "
                         f"{x.dims[-1]}.", InvalidArgumentError)
    dims = (*x.dims[:-1], k)
    return spec(dims, x.dtype), spec(dims, index_type)


def _top_k_vjp(ct: Sequence[AnyTensor | None], out: Sequence[AnyTensor], x: Spec, *, k: int,
               index_type: DType) -> Cotangents:
    last = len(x.dims) - 1
    if ct[0] is None:
        return None
    return ops.scatter_add(grad.zeros_like(x), out[1], ct[0], axis=last, batch_dims=last)


@primitive(infer=_top_k_infer, vjp=_top_k_vjp, saves=("out",), host=_top_k_host)
def top_k(x: AnyTensor, *, k: int, index_type: DType = dt.int32) -> tuple[AnyTensor, AnyTensor]:
    """The `k` largest elements of the last axis, largest first, and their indices.

    Args:
        x: real tensor of rank 1 or more.
        k: how many.
        index_type: int32 or int64.
    Returns:
        Values and indices, of shape `x.shape[:-1] + [k]`; of equal elements the first comes first, and NaN before all.
    Raises:
        InvalidArgumentError: there are fewer than `k` elements. ShapeError: `x` is a scalar.
    """


# -- distinct values ----------------------------------------------------------------------------------
_OF_SIZE = 4  # a table may have that many places for each element


def _unique_host(a: np.ndarray, out_idx: DType) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Integers that lie close together are looked up in a table, others are sorted."""
    if a.dtype.kind in "iu" and a.size and int(a.max()) - int(a.min()) < _OF_SIZE * a.size:
        return _unique_by_table(a)
    _, first, inverse, counts = np.unique(_comparable(a), return_index=True, return_inverse=True, return_counts=True,
                                          equal_nan=False)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return a[first[order]], rank[inverse.reshape(-1)], counts[order]


def _unique_by_table(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    low = a.min()
    place = (a - low if a.dtype.kind == "u" else a.astype(np.int64) - int(low)).astype(np.intp)
    first = np.full(int(place.max()) + 1, -1, np.intp)
    first[place[::-1]] = np.arange(a.size - 1, -1, -1)  # of equal places the last one written stays, the first element
    firsts = np.sort(first[first >= 0])
    values = a[firsts]
    rank = first  # of a value, by its place
    rank[place[firsts]] = np.arange(len(firsts))
    return values, rank[place], np.bincount(rank[place], minlength=len(firsts))


def _unique_infer(op: Op, x: Spec, *, out_idx: DType) -> tuple[Spec, Spec, Spec]:
    rules.require_dtype(op, (x,), 0, dt.ALL | {dt.string})
    rules.require_rank(op, (x,), 0, 1, 1)
    if out_idx not in _INDEX:
        raise rules.fail(op, (x,), f"out_idx is {out_idx.name}; expected int32 or int64.", DTypeError)
    count = dm.symbol("distinct")
    return spec((count,), x.dtype), spec(x.dims, out_idx), spec((count,), out_idx)


@primitive(infer=_unique_infer, vjp=None, host=_unique_host, traits=("dynamic", "total"))
def unique(x: AnyTensor, *, out_idx: DType = dt.int32) -> tuple[AnyTensor, AnyTensor, AnyTensor]:
    """The distinct values of a vector in order of first appearance.

    Args:
        x: vector.
        out_idx: int32 or int64, for the other results.
    Returns:
        The values; for each element of `x` the index of its value; how often each value appears.
    Raises:
        ShapeError: `x` is no vector.
    """


def _first_infer(op: Op, x: Spec) -> Spec:
    rules.require_dtype(op, (x,), 0, _INDEX)
    rules.require_rank(op, (x,), 0, 1, 1)
    return spec(x.dims, dt.int32)


@primitive(infer=_first_infer, vjp=None, lower="equal", traits=("total",))
def first_equal(x: AnyTensor) -> AnyTensor:
    """For each number the place of the first that equals it.

    Args:
        x: int32 or int64 vector.
    Returns:
        int32 vector of the same size.
    """


# -- search -------------------------------------------------------------------------------------------
def _search_host(rows: np.ndarray, values: np.ndarray, side: str, out_type: DType) -> np.ndarray:
    flat, wanted = (_comparable(a).reshape(math.prod(a.shape[:-1]), a.shape[-1]) for a in (rows, values))
    places = [np.searchsorted(r, v, side=side) for r, v in zip(flat, wanted, strict=True)]  # type: ignore[call-overload]
    return np.array(places, out_type.np).reshape(values.shape)


def _search_infer(op: Op, rows: Spec, values: Spec, *, side: str, out_type: DType) -> Spec:
    operands = (rows, values)
    rules.same_dtype(op, operands)
    rules.require_dtype(op, operands, 0, dt.REAL)
    rank = rules.require_rank(op, operands, 0, 1)
    if len(values.dims) != rank or not all(map(dm.require_eq, rows.dims[:-1], values.dims[:-1])):
        raise rules.fail(op, operands, "the operands' leading dimensions must agree.")
    if side not in ("left", "right"):
        raise rules.fail(op, operands, f"side is {side!r}; expected 'left' or 'right'.", InvalidArgumentError)
    if out_type not in _INDEX:
        raise rules.fail(op, operands, f"out_type is {out_type.name}; expected int32 or int64.", DTypeError)
    return spec(values.dims, out_type)


@primitive(infer=_search_infer, vjp=None, host=_search_host, match=(0, 1), traits=("total",))
def searchsorted(sorted_sequence: AnyTensor, values: AnyTensor, *, side: str = "left",
                 out_type: DType = dt.int32) -> AnyTensor:
    """Where `values` would go in sorted rows so that these stay sorted.

    Args:
        sorted_sequence: real tensor, each row of its last axis sorted.
        values: tensor of the same dtype and leading dimensions.
        side: "left" of equal elements, or "right".
        out_type: int32 or int64.
    Returns:
        Indices, of the shape of `values`.
    Raises:
        ShapeError: leading dimensions differ. DTypeError: dtypes differ. InvalidArgumentError: no such side.
    """


def _invert_host(a: np.ndarray) -> np.ndarray:
    if not np.array_equal(np.sort(a), np.arange(a.size)):
        raise InvalidArgumentError(f"invert_permutation: x must hold each number from 0 to {a.size - 1} once.")
    out = np.empty_like(a)
    out[a] = np.arange(a.size)
    return out


def _invert_infer(op: Op, x: Spec) -> Spec:
    rules.require_dtype(op, (x,), 0, _INDEX)
    rules.require_rank(op, (x,), 0, 1, 1)
    return spec(x.dims, x.dtype)


@primitive(infer=_invert_infer, vjp=None, host=_invert_host)
def invert_permutation(x: AnyTensor) -> AnyTensor:
    """The permutation that undoes `x`: y[x[i]] = i.

    Args:
        x: int32 or int64 vector that holds each number below its size once.
    Returns:
        Tensor like `x`.
    Raises:
        InvalidArgumentError: `x` is no permutation. ShapeError: `x` is no vector.
    """
