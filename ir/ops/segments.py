"""Segment ops: reductions of rows that belong together by a number of their own, and counting into bins.

Rows of a segment meet in the order in which they lie; sums of 16-bit floats are made in float32 and rounded once. Loops
are in `codegen/kernels/segment.py`. Means and histograms are composed in `twofold/_ops/math_segments.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .. import dims as dm
from .. import dtypes as dt
from .. import grad, ops, rules
from ..dtypes import DType
from ..errors import InvalidArgumentError
from ..op import Op, primitive
from ..spec import spec
from ..types import AnyTensor, Attr, Cotangents, ShapeRule, Spec
from .scans import shifted

__all__ = ["segment_sum", "segment_prod", "segment_max", "segment_min", "unsorted_segment_sum",
           "unsorted_segment_prod", "unsorted_segment_max", "unsorted_segment_min", "bincount"]

_IDS = frozenset({dt.int32, dt.int64})


# -- shapes -------------------------------------------------------------------------------------------
def _sorted_infer(dtypes: Collection[DType]) -> ShapeRule:
    def rule(op: Op, data: Spec, segment_ids: Spec) -> Spec:
        operands = (data, segment_ids)
        rules.require_dtype(op, operands, 0, dtypes)
        rules.require_dtype(op, operands, 1, _IDS)
        rules.require_rank(op, operands, 0, 1)
        rules.require_rank(op, operands, 1, 1, 1)
        _require_prefix(op, operands)
        return spec((dm.symbol("segments"), *data.dims[1:]), data.dtype)
    return rule


def _unsorted_infer(dtypes: Collection[DType]) -> ShapeRule:
    def rule(op: Op, data: Spec, segment_ids: Spec, *, num_segments: int) -> Spec:
        operands = (data, segment_ids)
        rules.require_dtype(op, operands, 0, dtypes)
        rules.require_dtype(op, operands, 1, _IDS)
        _require_prefix(op, operands)
        if dm.decide(num_segments, "<", 0):
            raise rules.fail(op, operands, f"num_segments is {num_segments}; expected 0 or more.", InvalidArgumentError)
        return spec((num_segments, *data.dims[len(segment_ids.dims):]), data.dtype)
    return rule


def _require_prefix(op: Op, operands: Sequence[Spec]) -> None:
    data, ids = operands
    head = data.dims[:len(ids.dims)]
    if len(head) < len(ids.dims) or not all(dm.require_eq(a, b) for a, b in zip(head, ids.dims, strict=True)):
        raise rules.fail(op, operands, "the shape of data must start with that of segment_ids.")


# -- gradients ----------------------------------------------------------------------------------------
def _rows_of(values: AnyTensor, ids: AnyTensor) -> AnyTensor:
    """For each id the row of `values` that it names; zeros for a negative one."""
    if dm.decide_eq(values.dims[0], 0):
        return ops.fill(grad.scalar(0, like=values), shape=(*ids.dims, *values.dims[1:]))
    zero = grad.scalar(0, like=ids)
    rows = ops.gather(values, ops.maximum(ids, zero), axis=0)
    belongs = ops.greater_equal(ids, zero)
    belongs = ops.reshape(belongs, shape=(*ids.dims, *[1] * (len(rows.dims) - len(ids.dims))))
    return ops.where(belongs, rows, grad.scalar(0, like=rows))


def _sum_vjp(ct: AnyTensor, out: Spec, data: Spec, ids: AnyTensor, **attrs: Attr) -> Cotangents:
    return _rows_of(ct, ids), None


def _extreme_vjp(ct: AnyTensor, out: AnyTensor, data: AnyTensor, ids: AnyTensor, **attrs: Attr) -> Cotangents:
    """Elements equal to the result share its gradient."""
    wins = ops.equal(data, _rows_of(out, ids))
    count = ops.unsorted_segment_sum(ops.cast(wins, dtype=data.dtype), ids, num_segments=out.dims[0])
    share = ops.divide(ct, ops.maximum(count, grad.scalar(1, like=data)))
    return ops.where(wins, _rows_of(share, ids), grad.scalar(0, like=data)), None


def _prod_vjp(ct: AnyTensor, out: Spec, data: AnyTensor, ids: AnyTensor, **attrs: Attr) -> Cotangents:
    return lambda: ops.multiply(_rows_of(ct, ids), grad.conj(_others(data, ids))), None


def _others(data: AnyTensor, ids: AnyTensor) -> AnyTensor:
    """For each element the product of the others of its segment, without division: elements may be zero.

    With rows ordered by segment, what comes before a row and what comes after it are linear recurrences that start
    anew with each segment.
    """
    count = dm.numel(ids.dims)
    rest = data.dims[len(ids.dims):]
    flat = ops.reshape(ids, shape=(count,))
    order = ops.argsort(flat)
    rows = ops.gather(ops.reshape(data, shape=(count, *rest)), order, axis=0)
    flat = ops.gather(flat, order, axis=0)
    sides = []
    for step in (1, -1):
        start = ops.not_equal(flat, shifted(flat, 0, step, -1))
        # the place that `shifted` leaves free starts a segment, even where its id is -1: those rows count for nothing
        start = ops.broadcast_to(ops.reshape(start, shape=(count, *[1] * len(rest))), shape=rows.dims)
        zeros, ones = grad.zeros_like(rows), grad.ones_like(rows)
        factor = ops.where(start, zeros, shifted(rows, 0, step))
        sides.append(ops.linear_recurrence(factor, ops.where(start, ones, zeros), axis=0, reverse=step < 0))
    product = ops.gather(ops.multiply(*sides), ops.argsort(order), axis=0)
    return ops.reshape(product, shape=data.dims)


# -- sorted ids ---------------------------------------------------------------------------------------
@primitive(infer=_sorted_infer(dt.NUMERIC), vjp=_sum_vjp, saves=("segment_ids",), lower="segment", traits=("dynamic",))
def segment_sum(data: AnyTensor, segment_ids: AnyTensor) -> AnyTensor:
    """Sums of rows by segment.

    Args:
        data: numeric tensor.
        segment_ids: int32 or int64, one for each row of `data`; not negative, and never falling.
    Returns:
        As many rows as the last id plus one; zero where a segment has none.
    Raises:
        InvalidArgumentError: ids fall or are negative. ShapeError: their number is not that of the rows.
    """


@primitive(infer=_sorted_infer(dt.NUMERIC), vjp=_prod_vjp, saves=("data", "segment_ids"), lower="segment",
           traits=("dynamic",))
def segment_prod(data: AnyTensor, segment_ids: AnyTensor) -> AnyTensor:
    """Products of rows by segment.

    Args:
        data: numeric tensor.
        segment_ids: int32 or int64, one for each row of `data`; not negative, and never falling.
    Returns:
        As many rows as the last id plus one; one where a segment has none.
    Raises:
        InvalidArgumentError: ids fall or are negative. ShapeError: their number is not that of the rows.
    Gradient: right also where elements are zero.
    """


@primitive(infer=_sorted_infer(dt.REAL), vjp=_extreme_vjp, saves=("data", "segment_ids", "out"), lower="segment",
           traits=("dynamic",))
def segment_max(data: AnyTensor, segment_ids: AnyTensor) -> AnyTensor:
    """Largest elements of rows by segment; NaN where one is.

    Args:
        data: real tensor.
        segment_ids: int32 or int64, one for each row of `data`; not negative, and never falling.
    Returns:
        As many rows as the last id plus one; zero where a segment has none.
    Raises:
        InvalidArgumentError: ids fall or are negative. ShapeError: their number is not that of the rows.
    Gradient: shared equally by the elements that equal the result.
    """


@primitive(infer=_sorted_infer(dt.REAL), vjp=_extreme_vjp, saves=("data", "segment_ids", "out"), lower="segment",
           traits=("dynamic",))
def segment_min(data: AnyTensor, segment_ids: AnyTensor) -> AnyTensor:
    """Smallest elements of rows by segment; NaN where one is.

    Args:
        data: real tensor.
        segment_ids: int32 or int64, one for each row of `data`; not negative, and never falling.
    Returns:
        As many rows as the last id plus one; zero where a segment has none.
    Raises:
        InvalidArgumentError: ids fall or are negative. ShapeError: their number is not that of the rows.
    Gradient: shared equally by the elements that equal the result.
    """


# -- ids in any order ---------------------------------------------------------------------------------
@primitive(infer=_unsorted_infer(dt.NUMERIC), vjp=_sum_vjp, saves=("segment_ids",), lower="segment")
def unsorted_segment_sum(data: AnyTensor, segment_ids: AnyTensor, *, num_segments: int) -> AnyTensor:
    """Sums of rows by segment, with ids in any order.

    Args:
        data: numeric tensor, its shape starting with that of `segment_ids`.
        segment_ids: int32 or int64, below `num_segments`; rows with negative ones are dropped.
        num_segments: how many segments there are.
    Returns:
        Tensor of shape `[num_segments] + data.shape[segment_ids.rank:]`; zero where a segment has no rows.
    Raises:
        InvalidArgumentError: an id is too large. ShapeError: the shapes do not fit.
    """


@primitive(infer=_unsorted_infer(dt.NUMERIC), vjp=_prod_vjp, saves=("data", "segment_ids"), lower="segment")
def unsorted_segment_prod(data: AnyTensor, segment_ids: AnyTensor, *, num_segments: int) -> AnyTensor:
    """Products of rows by segment, with ids in any order.

    Args:
        data: numeric tensor, its shape starting with that of `segment_ids`.
        segment_ids: int32 or int64, below `num_segments`; rows with negative ones are dropped.
        num_segments: how many segments there are.
    Returns:
        Tensor of shape `[num_segments] + data.shape[segment_ids.rank:]`; one where a segment has no rows.
    Raises:
        InvalidArgumentError: an id is too large. ShapeError: the shapes do not fit.
    Gradient: right also where elements are zero.
    """


@primitive(infer=_unsorted_infer(dt.REAL), vjp=_extreme_vjp, saves=("data", "segment_ids", "out"), lower="segment")
def unsorted_segment_max(data: AnyTensor, segment_ids: AnyTensor, *, num_segments: int) -> AnyTensor:
    """Largest elements of rows by segment, with ids in any order; NaN where one is.

    Args:
        data: real tensor, its shape starting with that of `segment_ids`.
        segment_ids: int32 or int64, below `num_segments`; rows with negative ones are dropped.
        num_segments: how many segments there are.
    Returns:
        Tensor of shape `[num_segments] + data.shape[segment_ids.rank:]`; the lowest finite number of the dtype where a
        segment has no rows.
    Raises:
        InvalidArgumentError: an id is too large. ShapeError: the shapes do not fit.
    Gradient: shared equally by the elements that equal the result.
    """


@primitive(infer=_unsorted_infer(dt.REAL), vjp=_extreme_vjp, saves=("data", "segment_ids", "out"), lower="segment")
def unsorted_segment_min(data: AnyTensor, segment_ids: AnyTensor, *, num_segments: int) -> AnyTensor:
    """Smallest elements of rows by segment, with ids in any order; NaN where one is.

    Args:
        data: real tensor, its shape starting with that of `segment_ids`.
        segment_ids: int32 or int64, below `num_segments`; rows with negative ones are dropped.
        num_segments: how many segments there are.
    Returns:
        Tensor of shape `[num_segments] + data.shape[segment_ids.rank:]`; the highest finite number of the dtype where a
        segment has no rows.
    Raises:
        InvalidArgumentError: an id is too large. ShapeError: the shapes do not fit.
    Gradient: shared equally by the elements that equal the result.
    """


# -- bins ---------------------------------------------------------------------------------------------
def _bincount_infer(op: Op, values: Spec, weights: Spec, *, minlength: int, maxlength: int | None) -> Spec:
    operands = (values, weights)
    rules.require_dtype(op, operands, 0, dt.INTEGER)
    rules.require_dtype(op, operands, 1, dt.REAL)
    rank = rules.require_rank(op, operands, 0, 1, 2)
    same = len(weights.dims) == rank and all(map(dm.require_eq, values.dims, weights.dims))
    if not same:
        raise rules.fail(op, operands, "weights must have the shape of values.")
    if dm.decide(minlength, "<", 0) or (maxlength is not None and dm.decide(maxlength, "<", 0)):
        raise rules.fail(op, operands, f"minlength ({minlength}) and maxlength ({maxlength}) must not be negative.",
                         InvalidArgumentError)
    return spec((*values.dims[:-1], dm.symbol("bins")), weights.dtype)


def _bincount_vjp(ct: AnyTensor, out: Spec, values: AnyTensor, weights: Spec, **attrs: Attr) -> Cotangents:
    """Each weight gets the cotangent of its bin; those left out find the zero that is put after the last bin."""
    rank = len(values.dims)
    bins = ops.pad(ct, grad.scalar(0, like=ct), paddings=((0, 0),) * (rank - 1) + ((0, 1),))
    places = ops.cast(values, dtype=dt.int64)
    places = ops.minimum(places, grad.scalar(out.dims[rank - 1], like=places))
    return None, ops.gather(bins, places, axis=rank - 1, batch_dims=rank - 1)


@primitive(infer=_bincount_infer, vjp=_bincount_vjp, saves=("values",), lower="segment", traits=("dynamic",))
def bincount(values: AnyTensor, weights: AnyTensor, *, minlength: int = 0, maxlength: int | None = None) -> AnyTensor:
    """Sums of weights by value, along the last axis.

    Args:
        values: integers, not negative, of rank 1, or 2 for a row of bins each.
        weights: real tensor of that shape.
        minlength: the least number of bins.
        maxlength: the most; larger values are left out. None for no bound.
    Returns:
        As many bins as the largest value plus one, within the bounds.
    Raises:
        InvalidArgumentError: a value is negative. ShapeError: the shapes do not fit.
    """
