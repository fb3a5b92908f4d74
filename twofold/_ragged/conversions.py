"""Ragged tensors from dense and sparse ones and back, and axes joined into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import twofold as tf

from .ragged_tensor import PARTS, RaggedTensor, ragged_or_dense
from .row_partition import RowPartition

__all__ = ["dense_from_ragged", "merged_axes", "ragged_from_sparse", "ragged_from_tensor", "ragged_range",
           "sparse_from_ragged"]


def ragged_range(starts: Any, limits: Any, deltas: Any, dtype: Any = None, row_splits_dtype: Any = tf.int64) -> Any:
    """The numbers from `starts` up to `limits`, a row for each; see `tf.ragged.range`."""
    starts, limits, deltas = _of_one_dtype([starts, limits, deltas], dtype)
    for tensor in (starts, limits, deltas):
        if tensor.shape.rank is not None and tensor.shape.rank > 1:
            raise ValueError(f"Shape {tensor.shape} must have rank at most 1")
    size = tf.broadcast_dynamic_shape(tf.broadcast_dynamic_shape(tf.shape(starts), tf.shape(limits)), tf.shape(deltas))
    if starts.shape.rank == limits.shape.rank == deltas.shape.rank == 0:
        size = tf.constant([1])
    starts, limits, deltas = [tf.broadcast_to(t, size) for t in (starts, limits, deltas)]
    span = tf.where(deltas > 0, limits - starts, starts - limits)
    step = tf.abs(deltas)
    lengths = tf.math.ceil(span / step) if starts.dtype.is_floating else (span + step - 1) // step
    lengths = tf.cast(tf.maximum(lengths, tf.zeros_like(lengths)), row_splits_dtype)
    partition = RowPartition.from_row_lengths(lengths, validate=False)
    rowids = partition.value_rowids()
    places = tf.cast(partition.offsets_in_rows(), starts.dtype)
    values = tf.gather(starts, rowids) + places * tf.gather(deltas, rowids)
    return RaggedTensor(values, partition)


def _of_one_dtype(values: Sequence[Any], dtype: Any) -> list[Any]:
    if dtype is not None:
        return [tf.convert_to_tensor(v, dtype) if not hasattr(v, "dtype") else tf.cast(v, dtype) for v in values]
    tensors = [tf.convert_to_tensor(v) for v in values]
    ladder = [tf.int32, tf.int64, tf.float32, tf.float64]
    for tensor in tensors:
        if tensor.dtype not in ladder:
            raise TypeError(f"range takes int32, int64, float32 and float64; got {tensor.dtype.name}.")
    widest = max([t.dtype for t in tensors], key=ladder.index)
    return [tf.cast(t, widest) for t in tensors]


def ragged_from_tensor(tensor: Any, lengths: Any, padding: Any, ragged_rank: int, splits_dtype: Any) -> Any:
    """See `RaggedTensor.from_tensor`."""
    if lengths is not None and padding is not None:
        raise ValueError("Specify lengths or padding, but not both")
    if not isinstance(ragged_rank, int):
        raise TypeError(f"ragged_rank expected int, got {ragged_rank!r}")
    if ragged_rank <= 0:
        raise ValueError(f"ragged_rank must be greater than 0; got {ragged_rank}")
    if isinstance(tensor, RaggedTensor):
        return tensor
    tensor, splits_dtype = tf.convert_to_tensor(tensor), tf.as_dtype(splits_dtype)
    if tensor.shape.rank is not None and tensor.shape.rank < ragged_rank + 1:
        raise ValueError(f"Shape {tensor.shape} must have rank at least {ragged_rank + 1}")
    if isinstance(lengths, (list, tuple)) and lengths and not isinstance(lengths[0], (int, float)):
        return _by_nested_lengths(tensor, lengths, splits_dtype)
    sizes = tf.shape(tensor, out_type=splits_dtype)
    if ragged_rank > 1:
        inner = ragged_from_tensor(tf.reshape(tensor, tf.concat([[-1], tf.shape(tensor)[2:]], 0)), lengths, padding,
                                   ragged_rank - 1, splits_dtype)
        outer = RowPartition.from_uniform_row_length(_known_size(tensor, 1, sizes), nrows=sizes[0], dtype=splits_dtype,
                                                     validate=False)
        return RaggedTensor(inner, outer)
    if lengths is None and padding is None:
        flat = tf.reshape(tensor, tf.concat([[-1], tf.shape(tensor)[2:]], 0))
        if tensor.shape[0] is not None and tensor.shape[1] is not None:
            flat = tf.ensure_shape(flat, [tensor.shape[0] * tensor.shape[1], *tensor.shape[2:]])
        return RaggedTensor(flat, RowPartition.from_uniform_row_length(
            _known_size(tensor, 1, sizes), nrows=sizes[0], dtype=splits_dtype, validate=False))
    if padding is not None:
        lengths = _lengths_without(tensor, padding, splits_dtype)
    lengths = tf.convert_to_tensor(lengths, dtype_hint=splits_dtype)
    lengths = tf.cast(lengths, splits_dtype)
    lengths = tf.minimum(tf.maximum(lengths, 0), sizes[1])
    mask = tf.sequence_mask(lengths, sizes[1])
    return RaggedTensor(tf.boolean_mask(tensor, mask), RowPartition.from_row_lengths(lengths, validate=False))


def _known_size(tensor: Any, axis: int, sizes: Any) -> Any:
    return sizes[axis] if tensor.shape[axis] is None else tensor.shape[axis]


def _by_nested_lengths(tensor: Any, lengths: Sequence[Any], splits_dtype: Any) -> Any:
    """The rows of several axes, by vectors of lengths from the outside in."""
    result = ragged_from_tensor(tensor, lengths[0], None, 1, splits_dtype)
    if len(lengths) == 1:
        return result
    return RaggedTensor(_by_nested_lengths(result.values, lengths[1:], splits_dtype), result._row_partition)


def _lengths_without(tensor: Any, padding: Any, splits_dtype: Any) -> Any:
    """The length of each row without what is padding at its end."""
    padding = tf.convert_to_tensor(padding, tensor.dtype)
    if padding.shape.rank is not None and not tensor.shape[2:].is_compatible_with(padding.shape):
        raise ValueError(f"Shapes {padding.shape} and {tensor.shape[2:]} are incompatible: padding has the shape of "
                         "the inner values")
    given = tf.not_equal(tensor, padding)
    if tensor.shape.rank > 2:
        given = tf.reduce_any(given, axis=list(range(2, tensor.shape.rank)))
    if tensor.shape[1] == 0:
        return tf.zeros([tf.shape(tensor)[0]], splits_dtype)
    places = tf.range(1, tf.shape(tensor, out_type=splits_dtype)[1] + 1)
    return tf.reduce_max(tf.where(given, places, tf.zeros_like(places)), axis=1)


def dense_from_ragged(rt: Any, default_value: Any, shape: Any) -> Any:
    """See `RaggedTensor.to_tensor`: each value is put at its place in a tensor of the default."""
    flat, ranks = rt.flat_values, rt.ragged_rank
    if default_value is None:
        default = tf.zeros([], rt.dtype)
    else:
        default = tf.convert_to_tensor(default_value, rt.dtype)
        if default.shape.rank is not None and flat.shape.rank is not None and default.shape.rank > flat.shape.rank - 1:
            raise ValueError(f"default_value of shape {default.shape} does not broadcast to the inner shape "
                             f"{flat.shape[1:]}")
    shape = _with_tensors(shape)
    size = _target_size(rt, shape)
    outer, inner = size[:ranks + 1], size[ranks + 1:]
    place, inside = _places(rt, outer)
    if shape is not None and flat.shape.rank is not None and flat.shape.rank > 1:
        flat = flat[(slice(None), *[slice(None, inner[n]) for n in range(flat.shape.rank - 1)])]
    total = tf.reduce_prod(outer)
    place = tf.where(inside, place, total)  # one row more takes what lies outside
    base = tf.broadcast_to(default, tf.concat([[total + 1], inner], 0))
    if shape is not None and flat.shape.rank is not None and flat.shape.rank > 1:
        missing = inner - tf.shape(flat, out_type=inner.dtype)[1:]
        if any(n is None or (m is None or n != m) for n, m in zip(
                tf.TensorShape(shape)[ranks + 1:] if not hasattr(shape, "dtype") else flat.shape[1:],
                flat.shape[1:], strict=False)):
            pads = tf.stack([tf.zeros_like(missing), tf.maximum(missing, 0)], 1)
            flat = tf.pad(flat, tf.concat([tf.zeros([1, 2], pads.dtype), pads], 0))
    dense = tf.tensor_scatter_nd_update(base, place[:, None], flat)[:total]
    dense = tf.reshape(dense, size)
    return tf.ensure_shape(dense, _static_size(rt, shape))


def _with_tensors(shape: Any) -> Any:
    """A shape that is a sequence with tensors in it, as one tensor, in which -1 stands for what is not given."""
    if isinstance(shape, (list, tuple)) and any(hasattr(n, "dtype") for n in shape):
        return tf.stack([tf.cast(-1 if n is None else n, tf.int64) for n in shape])
    return shape


def _target_size(rt: Any, shape: Any) -> Any:
    bounding = rt.bounding_shape(out_type=tf.int64)
    if shape is None:
        return bounding
    if hasattr(shape, "dtype"):  # a tensor: negative sizes are the bounding ones
        given = tf.cast(shape, tf.int64)
        if given.shape.rank == 1 and rt.shape.rank is not None and given.shape[0] not in (None, rt.shape.rank):
            raise ValueError(f"A shape of {given.shape[0]} sizes must have rank {rt.shape.rank}")
        return tf.where(given < 0, bounding, given)
    shape = tf.TensorShape(shape)
    if shape.rank is None:
        return bounding
    if rt.shape.rank is not None and shape.rank != rt.shape.rank:
        raise ValueError(f"Shape {shape} must have rank {rt.shape.rank}")
    return tf.stack([bounding[n] if size is None else tf.constant(size, tf.int64) for n, size in enumerate(shape)])


def _static_size(rt: Any, shape: Any) -> Any:
    """What is known of the dense shape before it is computed."""
    if shape is None:
        return rt.shape
    if hasattr(shape, "dtype"):
        return _static_of_tensor(rt.shape, tf.get_static_value(shape, partial=True))
    given = tf.TensorShape(shape)
    if given.rank is None or rt.shape.rank is None:
        return rt.shape
    ragged = range(1, rt.ragged_rank + 1)
    return tf.TensorShape([g if g is not None else (None if n in ragged and s is None else s)
                           for n, (g, s) in enumerate(zip(given, rt.shape, strict=True))])


def _static_of_tensor(shape: Any, given: Any) -> Any:
    """What is known of a shape that a tensor changes, where it is not negative, whose known elements are given."""
    if given is None or shape.rank is None:
        return tf.TensorShape(None if shape.rank is None else [None] * shape.rank)
    return tf.TensorShape([None if g is None else s if g < 0 else int(g) for g, s in zip(given, shape, strict=True)])


def _places(rt: Any, outer: Any) -> tuple[Any, Any]:
    """The place of each flat value in the outer axes of a dense tensor, as if these were one; and whether it is in it.
    """
    partitions = rt._nested_row_partitions
    place = tf.range(tf.cast(partitions[0].nrows(), tf.int64))
    inside = place < outer[0]
    inner = rt
    for level in range(len(partitions)):
        rowids = inner.value_rowids()
        offset = tf.cast(inner._row_partition.offsets_in_rows(rowids), tf.int64)
        place = tf.gather(place, rowids) * outer[level + 1] + offset
        inside = tf.gather(inside, rowids) & (offset < outer[level + 1])
        inner = inner.values
    return place, inside


def merged_axes(rt: Any, outer: int, inner: int) -> Any:
    """The axes from `outer` to `inner` as one."""
    if outer == inner:
        return rt
    if not isinstance(rt, RaggedTensor):
        shape = tf.shape(rt)
        return tf.reshape(rt, tf.concat([shape[:outer], [-1], shape[inner + 1:]], 0))
    if outer == 0:
        return merged_axes(rt.values, 0, inner - 1) if inner > 1 else rt.values
    if outer > 1:
        return rt.with_values(merged_axes(rt.values, outer - 1, inner - 1))
    values = rt.values
    if isinstance(values, RaggedTensor):
        splits = tf.gather(values.row_splits, rt.row_splits)
        merged = RaggedTensor(values.values, RowPartition(splits))
    else:
        size = tf.shape(values, out_type=rt.row_splits.dtype)[1]
        flat = tf.reshape(values, tf.concat([[-1], tf.shape(values)[2:]], 0))
        merged = RaggedTensor(flat, RowPartition(rt.row_splits * size))
    return merged_axes(merged, 1, inner - 1)


def ragged_from_sparse(st: Any, splits_dtype: Any) -> Any:
    """See `RaggedTensor.from_sparse`."""
    if not (hasattr(st, "indices") and hasattr(st, "dense_shape")):
        raise TypeError(f"Expected SparseTensor, got {type(st).__name__}")
    rank = st.dense_shape.shape[0] if st.shape.rank is None else st.shape.rank
    if rank != 2:
        raise ValueError(f"rank(st_input) must be 2; got {rank}")
    rows, columns = st.indices[:, 0], st.indices[:, 1]
    partition = RowPartition.from_value_rowids(tf.cast(rows, splits_dtype), tf.cast(st.dense_shape[0], splits_dtype),
                                               validate=False)
    offsets = tf.cast(partition.offsets_in_rows(), columns.dtype)
    tf.debugging.assert_equal(columns, offsets, "SparseTensor is not right-ragged")
    return RaggedTensor(st.values, partition)


def sparse_from_ragged(rt: Any) -> Any:
    """See `RaggedTensor.to_sparse`."""
    inner = rt
    partitions = rt._nested_row_partitions
    columns = [tf.range(tf.cast(partitions[0].nrows(), tf.int64))]
    for _ in partitions:
        rowids = inner.value_rowids()
        offset = tf.cast(inner._row_partition.offsets_in_rows(rowids), tf.int64)
        columns = [*[tf.gather(c, rowids) for c in columns], offset]
        inner = inner.values
    flat = rt.flat_values
    indices = tf.stack(columns, 1)
    if flat.shape.rank is None or flat.shape.rank > 1:
        shape = tf.shape(flat, out_type=tf.int64)
        inner_size = tf.reduce_prod(shape[1:])
        grid = tf.reshape(tf.range(inner_size), [1, -1])
        inner_places = tf.stack([(grid // tf.reduce_prod(shape[n + 1:])) % shape[n] for n in range(
            1, flat.shape.rank)], 2)
        count = shape[0]
        indices = tf.concat([tf.repeat(indices, tf.fill([count], inner_size), axis=0), tf.reshape(
            tf.tile(inner_places, [count, 1, 1]), [-1, flat.shape.rank - 1])], 1)
        flat = tf.reshape(flat, [-1])
    return tf.SparseTensor(indices, flat, rt.bounding_shape(out_type=tf.int64))


def as_ragged(value: Any, ragged_rank: int) -> Any:
    """A dense or ragged tensor with at least so many partitioned axes."""
    value = ragged_or_dense(value)
    if ragged_rank == 0:
        return value
    if not isinstance(value, RaggedTensor):
        return ragged_from_tensor(value, None, None, ragged_rank, tf.int64)
    missing = ragged_rank - value.ragged_rank
    if missing <= 0:
        return value
    return value.with_flat_values(ragged_from_tensor(value.flat_values, None, None, missing, value.row_splits.dtype))


PARTS.provide("from_tensor", ragged_from_tensor)
PARTS.provide("from_sparse", ragged_from_sparse)
PARTS.provide("merged_axes", merged_axes)
PARTS.provide("to_tensor", dense_from_ragged)
PARTS.provide("to_sparse", sparse_from_ragged)
