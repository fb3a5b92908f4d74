"""Reductions of ragged tensors: sums, means, extrema and so on, over ragged axes by segments of the values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.dispatch import implements

from .ragged_tensor import RaggedTensor, is_ragged
from .row_partition import RowPartition, split_lengths

__all__ = ["reduced"]

_RAGGED = {"input_tensor": RaggedTensor}


def _segments(function: Callable[..., Any], data: Any, ids: Any, count: Any) -> Any:
    """Rows of `data` with one id joined by a function; ragged rows are joined value by value, from their beginnings."""
    if not is_ragged(data):
        return function(data, ids, count)
    lengths = tf.math.unsorted_segment_max(data._row_partition.row_lengths(), ids, count)
    splits = split_lengths(tf.maximum(lengths, tf.zeros_like(lengths)))
    rowids = data.value_rowids()
    offsets = data._row_partition.offsets_in_rows(rowids)
    inner_ids = tf.gather(tf.gather(splits, tf.cast(ids, splits.dtype)), rowids) + offsets
    return RaggedTensor(_segments(function, data.values, inner_ids, splits[-1]), RowPartition(splits))


def reduced(dense: Callable[..., Any], segment: Callable[..., Any], rt: Any, axis: Any, keepdims: Any) -> Any:
    """A reduction of a ragged tensor.

    Args:
        dense: the function of dense tensors, called with a tensor and an axis.
        segment: the function of segments, called with data, ids and their number.
        rt: the tensor.
        axis: one axis, several, or None for all.
        keepdims: whether reduced axes stay, with the size 1.
    """
    if not is_ragged(rt):
        return dense(rt, axis, keepdims)
    if axis is None:
        flat = dense(rt.flat_values, None, False)
        return tf.reshape(flat, [1] * rt.shape.rank) if keepdims else flat
    axes = _axes(axis, rt.shape.rank)
    if not axes:
        return rt
    for one in sorted(axes, reverse=True):
        rt = _over_one(dense, segment, rt, one, bool(keepdims))
    return rt


def _axes(axis: Any, rank: int | None) -> list[int]:
    if hasattr(axis, "dtype"):
        fixed = tf.get_static_value(axis)
        if fixed is None:
            raise ValueError("axis must be known at graph construction time.")
        axis = fixed.tolist()
    given = [int(a) for a in axis] if isinstance(axis, (list, tuple)) else [int(axis)]
    if rank is None:
        return given
    for a in given:
        if not -rank <= a < rank:
            raise ValueError(f"axis={a} out of bounds: expected {-rank}<=axis<{rank}")
    return sorted({a % rank for a in given})


def _over_one(dense: Callable[..., Any], segment: Callable[..., Any], rt: Any, axis: int, keepdims: bool) -> Any:
    if not is_ragged(rt):
        return dense(rt, axis, keepdims)
    if axis > 1:
        return rt.with_values(_over_one(dense, segment, rt.values, axis - 1, keepdims))
    rowids = rt.value_rowids()
    if axis == 1:
        result = _segments(segment, rt.values, rowids, rt.nrows())
    else:
        lengths = rt._row_partition.row_lengths()
        longest = tf.reduce_max(tf.concat([lengths, tf.zeros([1], lengths.dtype)], 0))
        offsets = rt._row_partition.offsets_in_rows(rowids)
        result = _segments(segment, rt.values, offsets, longest)
    return tf.expand_dims(result, axis) if keepdims else result


def _dense(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, axis, keepdims: function(x, axis=axis, keepdims=keepdims)


@implements(tf.reduce_sum, _RAGGED)
def reduce_sum(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: Any = None) -> Any:
    """The sums of rows."""
    return reduced(_dense(tf.reduce_sum), tf.math.unsorted_segment_sum, input_tensor, axis, keepdims)


@implements(tf.reduce_prod, _RAGGED)
def reduce_prod(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: Any = None) -> Any:
    """The products of rows."""
    return reduced(_dense(tf.reduce_prod), tf.math.unsorted_segment_prod, input_tensor, axis, keepdims)


@implements(tf.reduce_max, _RAGGED)
def reduce_max(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: Any = None) -> Any:
    """The largest values of rows."""
    return reduced(_dense(tf.reduce_max), tf.math.unsorted_segment_max, input_tensor, axis, keepdims)


@implements(tf.reduce_min, _RAGGED)
def reduce_min(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: Any = None) -> Any:
    """The smallest values of rows."""
    return reduced(_dense(tf.reduce_min), tf.math.unsorted_segment_min, input_tensor, axis, keepdims)


@implements(tf.reduce_mean, _RAGGED)
def reduce_mean(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: Any = None) -> Any:
    """The means of rows: NaN for rows without values."""
    total = reduce_sum(input_tensor, axis, keepdims)
    count = reduce_sum(input_tensor.with_flat_values(tf.ones_like(input_tensor.flat_values)), axis, keepdims)
    return tf.truediv(total, count)


@implements(tf.math.reduce_variance, _RAGGED)
def reduce_variance(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: Any = None) -> Any:
    """The variances of rows."""
    mean_of_squares = reduce_mean(tf.square(input_tensor), axis, keepdims)
    square_of_mean = tf.square(reduce_mean(input_tensor, axis, keepdims))
    difference = mean_of_squares - square_of_mean
    return tf.maximum(difference, tf.zeros([], difference.dtype))


@implements(tf.math.reduce_std, _RAGGED)
def reduce_std(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: Any = None) -> Any:
    """The standard deviations of rows."""
    return tf.sqrt(reduce_variance(input_tensor, axis, keepdims))


@implements(tf.reduce_all, _RAGGED)
def reduce_all(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: Any = None) -> Any:
    """Whether all values of rows are true."""
    return tf.cast(reduce_prod(tf.cast(input_tensor, tf.int32), axis, keepdims), tf.bool)


@implements(tf.reduce_any, _RAGGED)
def reduce_any(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: Any = None) -> Any:
    """Whether some value of rows is true."""
    return tf.cast(reduce_sum(tf.cast(input_tensor, tf.int32), axis, keepdims), tf.bool)


@implements(tf.nn.softmax, {"logits": RaggedTensor})
def softmax(logits: Any, axis: Any = None, name: Any = None) -> Any:
    """The softmax of each row, over the last axis."""
    rank = logits.shape.rank
    last = -1 if axis is None else int(axis)
    if last not in (-1, rank - 1):
        raise ValueError(f"softmax of a ragged tensor is over the last axis; got axis={axis}")
    if logits.flat_values.shape.rank != 1:
        return logits.with_flat_values(tf.nn.softmax(logits.flat_values))
    shifted = tf.exp(logits - reduce_max(logits, rank - 1, True))
    return shifted / reduce_sum(shifted, rank - 1, True)
