"""Indices and slices of ragged tensors: `rt[i]`, `rt[a:b]`, `rt[:, a:b]`, `rt[..., tf.newaxis]`."""

from __future__ import annotations

from typing import Any

import numpy as np

import twofold as tf

from .conversions import ragged_range
from .ragged_tensor import PARTS, RaggedTensor
from .row_partition import RowPartition, is_known

__all__ = ["gathered_rows", "ragged_item"]


def ragged_item(rt: RaggedTensor, key: Any) -> Any:
    """A part of a ragged tensor.

    Args:
        rt: the tensor.
        key: integers, slices, `...` and `tf.newaxis`, alone or in a tuple. A ragged axis takes slices, not integers,
            unless all of its rows have one length.
    Raises:
        ValueError: an inner ragged axis is indexed, or a slice has the step 0. InvalidArgumentError: an index is out of
            range. TypeError: the key is of another kind.
    """
    keys = list(key) if isinstance(key, (list, tuple)) and not isinstance(key, str) else [key]
    return _item(rt, _without_ellipsis(keys, rt.shape.rank))


def _without_ellipsis(keys: list[Any], rank: int | None) -> list[Any]:
    at = [n for n, k in enumerate(keys) if k is Ellipsis]
    if not at:
        return keys
    if len(at) > 1:
        raise ValueError("At most one ellipsis is allowed in an index.")
    if rank is None:
        raise ValueError("Ellipsis not supported for unknown shape RaggedTensors")
    used = sum(k is not tf.newaxis and k is not Ellipsis for k in keys)
    return [*keys[:at[0]], *[slice(None)] * max(rank - used, 0), *keys[at[0] + 1:]]


def _item(x: Any, keys: list[Any]) -> Any:
    if not keys:
        return x
    if not isinstance(x, RaggedTensor):
        return x[tuple(keys)]
    first, rest = keys[0], keys[1:]
    if first is tf.newaxis:
        inner = _item(x, rest)
        return _with_new_axis(inner)
    if isinstance(first, slice):
        return _inner(_rows(x, first), rest)
    _check_index(first)
    return _item(_row(x, first), rest)


def _with_new_axis(x: Any) -> Any:
    if not isinstance(x, RaggedTensor):
        return tf.expand_dims(x, 0)
    rows = x._row_partition.static_nrows
    return RaggedTensor(x, RowPartition.from_uniform_row_length(
        x.nrows() if rows is None else rows, nrows=1, dtype=x.row_splits.dtype, validate=False))


def _check_index(index: Any) -> None:
    tensor = hasattr(index, "dtype") and hasattr(index, "shape")
    if tensor and getattr(index.shape, "rank", len(index.shape)) == 0 and tf.as_dtype(index.dtype).is_integer:
        return
    if isinstance(index, (int, np.integer)) and not isinstance(index, bool):
        return
    raise TypeError(f"Unsupported index of a RaggedTensor: {index!r}: integers, slices, `...` and tf.newaxis do.")


def _row(rt: RaggedTensor, index: Any) -> Any:
    """Row `index`: a slice of the values."""
    splits, count = rt.row_splits, rt._row_partition.static_nrows
    fixed = int(index) if not hasattr(index, "dtype") or is_known(index) else None
    if fixed is not None and count is not None:
        if not -count <= fixed < count:
            raise IndexError(f"Row key {fixed} out of bounds")
        fixed = fixed + count if fixed < 0 else fixed
        begin, end = splits[fixed], splits[fixed + 1]
    else:
        index = tf.cast(index, splits.dtype)
        index = tf.where(index < 0, index + rt.nrows(), index)
        begin, end = tf.gather(splits, index), tf.gather(splits, index + 1)
    return rt.values[begin:end]


def _rows(rt: RaggedTensor, key: slice) -> RaggedTensor:
    """The rows of a slice."""
    if key.step is not None and not hasattr(key.step, "dtype") and int(key.step) == 0:
        raise ValueError("slice step cannot be zero")
    if key.start is None and key.stop is None and key.step is None:
        return rt
    starts, limits = rt.row_starts()[key], rt.row_limits()[key]
    uniform = rt._row_partition._uniform
    if key.step is None or (isinstance(key.step, int) and key.step == 1):
        # neighbours: the values between the first row's beginning and the last row's end
        ends = tf.concat([starts[:1], limits], 0)
        splits = tf.concat([tf.zeros([1], ends.dtype), limits - tf.reduce_sum(starts[:1])], 0)
        begin, end = tf.reduce_sum(ends[:1]), tf.reduce_max(tf.concat([ends, tf.zeros([1], ends.dtype)], 0))
        return RaggedTensor(rt.values[begin:end], RowPartition(splits, None, uniform))
    return gathered_rows(rt, starts, limits, 1, uniform)


def gathered_rows(rt: RaggedTensor, starts: Any, limits: Any, step: Any, uniform: Any = None) -> RaggedTensor:
    """Rows of the values from `starts` to `limits` each, of which every `step`-th is taken."""
    places = ragged_range(starts, limits, step, starts.dtype, starts.dtype)
    partition = RowPartition(places.row_splits, places._row_partition._rowids, uniform)
    return RaggedTensor(tf.gather(rt.values, places.values), partition)


def _inner(rt: RaggedTensor, keys: list[Any]) -> Any:
    """The parts of all rows by the keys of the inner axes."""
    if not keys:
        return rt
    first, rest = keys[0], keys[1:]
    if first is tf.newaxis:
        inner = _inner(rt, rest)
        splits = tf.range(inner.nrows() + 1) if isinstance(inner, RaggedTensor) else tf.range(
            tf.shape(inner, rt.row_splits.dtype)[0] + 1)
        return RaggedTensor(inner, RowPartition(tf.cast(splits, rt.row_splits.dtype), None, 1))
    if isinstance(first, slice):
        sliced = _columns(rt, first)
        if not rest:
            return sliced
        values = sliced.values
        return sliced.with_values(_inner(values, rest) if isinstance(values, RaggedTensor) else values[
            (slice(None), *rest)])
    _check_index(first)
    length = rt.uniform_row_length
    if length is None:
        raise ValueError("Cannot index into an inner ragged dimension.")
    index = tf.cast(first, rt.row_splits.dtype)
    index = tf.where(index < 0, index + length, index)
    if is_known(index) and is_known(length) and not 0 <= int(index) < int(length):
        raise tf.errors.InvalidArgumentError(None, None, f"slice index {first} of dimension 1 out of bounds.")
    chosen = tf.gather(rt.values, rt.row_starts() + index)
    return _inner(chosen, rest) if isinstance(chosen, RaggedTensor) else (
        chosen[(slice(None), *rest)] if rest else chosen)


def _columns(rt: RaggedTensor, key: slice) -> RaggedTensor:
    """Of each row the part that a slice selects."""
    if key.start is None and key.stop is None and key.step is None:
        return rt
    dtype = rt.row_splits.dtype
    step = 1 if key.step is None else key.step
    if not hasattr(step, "dtype") and int(step) == 0:
        raise ValueError("slice step cannot be zero")
    lengths = rt._row_partition.row_lengths()
    forward = step > 0 if not hasattr(step, "dtype") else tf.cast(step, dtype) > 0
    start = _bound(key.start, lengths, forward, True, dtype)
    stop = _bound(key.stop, lengths, forward, False, dtype)
    begins = rt.row_starts()
    uniform = rt._row_partition.static_uniform_row_length
    if uniform is not None and all(k is None or isinstance(k, int) for k in (key.start, key.stop, key.step)):
        uniform = len(range(uniform)[key])
    else:
        uniform = None
    return gathered_rows(rt, begins + start, begins + stop, tf.cast(step, dtype), uniform)


def _bound(value: Any, lengths: Any, forward: Any, is_start: bool, dtype: Any) -> Any:
    """An end of a slice for rows of these lengths, as Python's `slice.indices` reads it."""
    low = tf.where(forward, tf.zeros_like(lengths), tf.zeros_like(lengths) - 1)
    high = tf.where(forward, lengths, lengths - 1)
    if value is None:
        return tf.where(forward, low, high) if is_start else tf.where(forward, high, low)
    given = tf.cast(value, dtype)
    given = tf.where(given < 0, given + lengths, given + tf.zeros_like(lengths))
    return tf.minimum(tf.maximum(given, low), high)




PARTS.provide("item", ragged_item)
