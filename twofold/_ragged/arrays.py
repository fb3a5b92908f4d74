"""Functions that put ragged tensors together and take them apart: concat, stack, tile, masks and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.demands import demand
from twofold._front.dispatch import Holds, implements

from .conversions import as_ragged, dense_from_ragged, ragged_from_tensor
from .elementwise import aligned, must_have_same_rows
from .gathering import gather, take
from .ragged_tensor import PARTS, RaggedTensor, is_ragged, ragged_or_dense, same_splits_dtype
from .row_partition import RowPartition, split_lengths

__all__ = ["boolean_mask", "concat", "expand_dims", "ragged_stack", "reverse", "stack", "tile"]

_HELD = Holds(RaggedTensor)


# -- joining ------------------------------------------------------------------------------------------------------
@implements(tf.concat, {"values": _HELD})
def concat(values: Any, axis: Any, name: Any = "concat") -> Any:
    """Tensors one behind the other along an axis, of which some are ragged."""
    tensors = values if isinstance(values, (list, tuple)) else [values]
    return _joined([ragged_or_dense(t, hint=_dtype(tensors)) for t in tensors], int(axis), stacked=False)


@implements(tf.stack, {"values": _HELD})
def stack(values: Any, axis: Any = 0, name: Any = "stack") -> Any:
    """Tensors side by side along a new axis, of which some are ragged."""
    tensors = [values] if is_ragged(values) else values
    return _joined([ragged_or_dense(t, hint=_dtype(tensors)) for t in tensors], int(axis), stacked=True)


def ragged_stack(values: Sequence[Any], axis: int = 0) -> Any:
    """See `tf.ragged.stack`."""
    if len(values) == 1 and not is_ragged(values[0]):
        only = tf.expand_dims(tf.convert_to_tensor(values[0]), axis)
        return only if only.shape.rank < 2 else RaggedTensor.from_tensor(only)
    return stack(values, axis)


def _dtype(tensors: Sequence[Any]) -> Any:
    return next((t.dtype for t in tensors if hasattr(t, "dtype")), None)


def _joined(tensors: list[Any], axis: int, stacked: bool) -> Any:
    if not tensors:
        raise ValueError("rt_inputs may not be empty.")
    ranks: set[Any] = {t.shape.rank for t in tensors} - {None}
    if len(ranks) > 1:
        raise ValueError(f"all tensors must have the same rank; got {sorted(ranks)}")
    if not ranks:
        raise ValueError("the rank of tensors that are joined must be known")
    rank = ranks.pop()
    most = rank + int(stacked)
    if not -most <= axis < most:
        raise ValueError(f"axis={axis} out of bounds: expected {-most}<=axis<{most}")
    axis %= most
    if stacked:
        tensors = [expand_dims(t, axis) if is_ragged(t) else tf.expand_dims(t, axis) for t in tensors]
        rank += 1
    if rank == 1:
        return tf.concat(tensors, 0)
    if len(tensors) == 1:
        return tensors[0]
    levels = max([t.ragged_rank for t in tensors if is_ragged(t)] + [min(max(axis, 1), rank - 1)])
    parts = same_splits_dtype([as_ragged(t, levels) for t in tensors])
    return _concat(parts, axis)


def _concat(parts: Sequence[Any], axis: int) -> Any:
    if not is_ragged(parts[0]):
        return tf.concat(parts, axis)
    if axis == 0:
        return _concat_rows(parts)
    if axis == 1:
        return _concat_in_rows(parts)
    first = parts[0]
    for other in parts[1:]:
        must_have_same_rows(first, other, "Inputs must have identical ragged splits")
    return RaggedTensor(_concat([p.values for p in parts], axis - 1), first._row_partition)


def _concat_rows(parts: Sequence[Any]) -> Any:
    values = _concat([p.values for p in parts], 0)
    splits, total = [parts[0].row_splits], parts[0].row_splits[-1]
    for part in parts[1:]:
        splits.append(part.row_splits[1:] + total)
        total = total + part.row_splits[-1]
    lengths = {p._row_partition.static_uniform_row_length for p in parts}
    uniform = lengths.pop() if len(lengths) == 1 else None
    return RaggedTensor(values, RowPartition(tf.concat(splits, 0), None, uniform))


def _concat_in_rows(parts: Sequence[Any]) -> Any:
    """Row `n` of the result is row `n` of each part, one behind the other."""
    counts = [p.nrows() for p in parts]
    for count in counts[1:]:
        demand(tf.equal(count, counts[0]), "Input tensors have incompatible shapes: different numbers of rows")
    count = counts[0]
    rows = _concat_rows(parts)
    order = tf.reshape(tf.transpose(tf.reshape(tf.range(count * len(parts)), [len(parts), count])), [-1])
    turned = gather(rows, order)
    lengths = [p._row_partition.static_uniform_row_length for p in parts]
    uniform = None if any(n is None for n in lengths) else sum(lengths)
    splits = turned.row_splits[::len(parts)]
    known_rows = next((p._row_partition.static_nrows for p in parts if p._row_partition.static_nrows is not None), None)
    if known_rows is not None:
        splits = tf.ensure_shape(splits, [known_rows + 1])
    return RaggedTensor(turned.values, RowPartition(splits, None, uniform))


@implements(tf.expand_dims, {"input": RaggedTensor})
def expand_dims(input: Any, axis: Any, name: Any = None) -> Any:
    """A ragged tensor with a new axis of size 1."""
    rank = input.shape.rank
    axis = int(axis)
    if rank is not None:
        if not -rank - 1 <= axis <= rank:
            raise ValueError(f"axis={axis} out of bounds: expected {-rank - 1}<=axis<{rank + 1}")
        axis %= rank + 1
    if axis == 0:
        rows = input._row_partition.static_nrows
        return RaggedTensor(input, RowPartition.from_uniform_row_length(
            input.nrows() if rows is None else rows, nrows=1, dtype=input.row_splits.dtype, validate=False))
    if axis == 1:
        splits = tf.range(input.nrows() + 1)
        if input._row_partition.static_nrows is not None:
            splits = tf.ensure_shape(splits, [input._row_partition.static_nrows + 1])
        return RaggedTensor(input, RowPartition(splits, None, 1))
    values = input.values
    return RaggedTensor(expand_dims(values, axis - 1) if is_ragged(values) else tf.expand_dims(values, axis - 1),
                        input._row_partition)


@implements(tf.squeeze, {"input": RaggedTensor})
def squeeze(input: Any, axis: Any = None, name: Any = None) -> Any:
    """A ragged tensor without some axes of size 1."""
    if axis is None:
        raise ValueError("Ragged.squeeze must have an axis argument.")
    rank = input.shape.rank
    axes = sorted({int(a) % rank for a in (axis if isinstance(axis, (list, tuple)) else [axis])}, reverse=True)
    result = input
    for one in axes:
        result = _squeezed(result, one)
    return result


def _squeezed(x: Any, axis: int) -> Any:
    if not is_ragged(x):
        return tf.squeeze(x, [axis])
    if axis == 0:
        demand(tf.equal(x.nrows(), 1), "Ragged.squeeze cannot squeeze axis 0: it has more rows than one")
        return x.values
    if axis == 1:
        demand(tf.reduce_all(tf.equal(x._row_partition.row_lengths(), 1)),
              "Ragged.squeeze cannot squeeze axis 1: not all rows have one value")
        return x.values
    return x.with_values(_squeezed(x.values, axis - 1))


@implements(tf.tile, {"input": RaggedTensor})
def tile(input: Any, multiples: Any, name: Any = None) -> Any:
    """A ragged tensor repeated along its axes."""
    multiples = tf.cast(tf.convert_to_tensor(multiples, dtype_hint=tf.int64), input.row_splits.dtype)
    if multiples.shape.rank not in (None, 1) or multiples.shape[0] not in (None, input.shape.rank):
        raise ValueError(f"multiples must have one element for each axis; got shape {multiples.shape}")
    return _tiled(input, multiples)


def _tiled(x: Any, multiples: Any) -> Any:
    if not is_ragged(x):
        return tf.tile(x, tf.cast(multiples, tf.int32))
    one = tf.ones([1], multiples.dtype)
    values = _tiled(x.values, tf.concat([one, multiples[2:]], 0))
    x = RaggedTensor(values, x._row_partition)
    lengths = x._row_partition.row_lengths()
    partition = RowPartition(split_lengths(lengths * multiples[1]))
    rowids = partition.value_rowids()
    offsets = partition.offsets_in_rows(rowids)
    places = tf.gather(x.row_starts(), rowids) + offsets % tf.maximum(tf.gather(lengths, rowids), 1)
    x = RaggedTensor(take(x.values, places), partition)
    return gather(x, tf.tile(tf.range(x.nrows()), multiples[:1]))


# -- taking -------------------------------------------------------------------------------------------------------
def boolean_mask(data: Any, mask: Any, name: Any = None) -> Any:
    """See `tf.ragged.boolean_mask`."""
    mask = ragged_or_dense(mask, tf.bool if not hasattr(mask, "dtype") else None)
    if mask.dtype is not tf.bool:
        raise TypeError(f"Argument `mask` must have dtype bool; got {mask.dtype.name}.")
    data = ragged_or_dense(data)
    if mask.shape.rank is None:
        raise ValueError("mask.shape.ndims must be known statically.")
    if mask.shape.rank == 0:
        raise ValueError("mask cannot be scalar.")
    if mask.shape.rank == 1:
        return take(data, tf.where(mask)[:, 0]) if is_ragged(data) else tf.boolean_mask(data, mask)
    mask, data = same_splits_dtype([as_ragged(mask, mask.shape.rank - 1), as_ragged(data, mask.shape.rank - 1)])
    must_have_same_rows(mask, data, "data and mask have different rows")
    inner = boolean_mask(data.values, mask.values)
    if is_ragged(mask.values):
        return RaggedTensor(inner, data._row_partition)
    kept = tf.math.unsorted_segment_sum(tf.cast(mask.values, mask.row_splits.dtype), mask.value_rowids(), mask.nrows())
    return RaggedTensor(inner, RowPartition(split_lengths(kept)))


implements(tf.boolean_mask, {"tensor": RaggedTensor}, {"mask": RaggedTensor})(
    lambda tensor, mask, axis=None, name="boolean_mask": boolean_mask(tensor, mask))


@implements(tf.where, {"condition": RaggedTensor}, {"x": RaggedTensor}, {"y": RaggedTensor})
def where(condition: Any, x: Any = None, y: Any = None, name: Any = None) -> Any:
    """Values of one tensor or the other; or where a ragged condition is true."""
    if (x is None) != (y is None):
        raise ValueError("x and y must both be non-None or both be None.")
    if x is None:
        places = condition.to_sparse()
        return tf.boolean_mask(places.indices, tf.cast(places.values, tf.bool))
    hint = getattr(x, "dtype", getattr(y, "dtype", None))
    rows, flats = aligned([condition, ragged_or_dense(x, hint=hint), ragged_or_dense(y, hint=hint)])
    return rows.with_flat_values(tf.where(*flats))


@implements(tf.reverse, {"tensor": RaggedTensor})
def reverse(tensor: Any, axis: Any, name: Any = None) -> Any:
    """A ragged tensor with some axes in the opposite order."""
    axes = [int(a) for a in np.ravel(axis if isinstance(axis, (list, tuple, int)) else tf.get_static_value(axis))]
    rank = tensor.shape.rank
    for one in axes:
        if not -rank <= one < rank:
            raise ValueError(f"axis={one} out of bounds: expected {-rank}<=axis<{rank}")
    return _reversed(tensor, {a % rank for a in axes})


def _reversed(x: Any, axes: set[int]) -> Any:
    if not axes:
        return x
    if not is_ragged(x):
        return tf.reverse(x, sorted(axes))
    values = _reversed(x.values, {a - 1 for a in axes if a > 1})
    if 1 in axes:
        rowids = x.value_rowids()
        places = tf.range(tf.shape(rowids, out_type=rowids.dtype)[0])
        mirrored = tf.gather(x.row_starts(), rowids) + tf.gather(x.row_limits(), rowids) - 1 - places
        values = take(values, mirrored)
    x = RaggedTensor(values, x._row_partition)
    return x[::-1] if 0 in axes else x


@implements(tf.split, {"value": RaggedTensor})
def split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: Any = None, name: Any = "split") -> Any:
    """Parts of a ragged tensor along an axis that is not ragged."""
    at = int(axis) % value.shape.rank
    if at > 0:
        size = value.shape[at]
        if size is None:
            raise ValueError("split of a ragged tensor is along an axis of one size")
        total = size
    else:
        total = value._row_partition.static_nrows
    if isinstance(num_or_size_splits, int):
        if total is None or total % num_or_size_splits:
            raise ValueError(f"{num_or_size_splits} parts do not divide the size {total}")
        sizes: list[Any] = [total // num_or_size_splits] * num_or_size_splits
    else:
        sizes = [int(n) for n in num_or_size_splits]
        if total is not None and sum(sizes) != total:
            raise tf.errors.InvalidArgumentError(None, None, f"the sizes {sizes} do not add up to {total}")
    parts, begin = [], 0
    for size in sizes:
        parts.append(value[(*[slice(None)] * at, slice(begin, begin + size))])
        begin += size
    return parts


# -- sizes --------------------------------------------------------------------------------------------------------
@implements(tf.size, {"input": RaggedTensor})
def size(input: Any, out_type: Any = tf.int32, name: Any = None) -> Any:
    """The number of values."""
    return tf.size(input.flat_values, out_type)


@implements(tf.rank, {"input": RaggedTensor})
def rank(input: Any, name: Any = None) -> Any:
    """The number of axes."""
    return tf.constant(input.shape.rank) if input.shape.rank is not None else tf.rank(
        input.flat_values) + input.ragged_rank


# -- others -------------------------------------------------------------------------------------------------------
@implements(tf.one_hot, {"indices": RaggedTensor})
def one_hot(indices: Any, depth: Any, on_value: Any = None, off_value: Any = None, axis: Any = None, dtype: Any = None,
            name: Any = None) -> Any:
    """One-hot vectors of ragged indices, along a new last axis."""
    rank = indices.shape.rank
    if axis is not None and int(axis) not in (-1, rank):
        raise ValueError("one_hot of ragged indices has its new axis at the end")
    return indices.with_flat_values(tf.one_hot(indices.flat_values, depth, on_value, off_value, dtype=dtype))


@implements(tf.nn.embedding_lookup, {"ids": RaggedTensor})
def embedding_lookup(params: Any, ids: Any, max_norm: Any = None, name: Any = None) -> Any:
    """The rows of a table at ragged ids."""
    return ids.with_flat_values(tf.nn.embedding_lookup(params, ids.flat_values, max_norm))


@implements(tf.matmul, {"a": RaggedTensor}, {"b": RaggedTensor})
def matmul(a: Any, b: Any, transpose_a: Any = False, transpose_b: Any = False, adjoint_a: Any = False,
           adjoint_b: Any = False, a_is_sparse: Any = False, b_is_sparse: Any = False, output_type: Any = None,
           grad_a: Any = False, grad_b: Any = False, name: Any = None) -> Any:
    """Products of matrices of which each batch has its own sizes; the operands' rows are padded for them."""
    a, b = ragged_or_dense(a), ragged_or_dense(b)
    if a.shape.rank is not None and a.shape.rank < 3:
        raise ValueError("matmul of ragged tensors takes batches of matrices, of rank 3 or more")
    dense_a = dense_from_ragged(a, None, None) if is_ragged(a) else a
    dense_b = dense_from_ragged(b, None, None) if is_ragged(b) else b
    product = tf.matmul(dense_a, dense_b, transpose_a, transpose_b, adjoint_a, adjoint_b)
    rank = a.shape.rank
    rows = _lengths_at(a, rank - 1 if transpose_a or adjoint_a else rank - 2)
    columns = _lengths_at(b, rank - 2 if transpose_b or adjoint_b else rank - 1)
    if rank != 3:
        raise ValueError("matmul of ragged tensors takes tensors of rank 3")
    if rows is None and columns is None:
        return product
    if rows is None:
        rows = tf.fill(tf.shape(product)[:1], tf.shape(product, tf.int64)[1])
    result = ragged_from_tensor(product, rows, None, 1, tf.int64)
    if columns is None:
        return result
    each = tf.gather(columns, result.value_rowids())
    return result.with_values(ragged_from_tensor(result.values, each, None, 1, tf.int64))


def _lengths_at(x: Any, axis: int) -> Any:
    """The lengths of a batch's matrices along an axis; None where they all have one."""
    if not is_ragged(x) or axis > x.ragged_rank or x.shape[axis] is not None:
        return None
    lengths = x.row_lengths(axis)
    if is_ragged(lengths):
        lengths = tf.reduce_max(lengths, axis=1)
    return tf.cast(tf.maximum(lengths, tf.zeros_like(lengths)), tf.int64)


@implements(tf.dynamic_partition, {"data": RaggedTensor}, {"partitions": RaggedTensor})
def dynamic_partition(data: Any, partitions: Any, num_partitions: Any, name: Any = None) -> Any:
    """The rows of a ragged tensor in several tensors, by the number of each row."""
    if is_ragged(partitions):
        raise ValueError("the partitions of a ragged tensor's rows are a vector")
    partitions = tf.convert_to_tensor(partitions)
    return [gather(data, tf.where(tf.equal(partitions, n))[:, 0]) for n in range(int(num_partitions))]


@implements(tf.strings.join, {"inputs": _HELD})
def join(inputs: Any, separator: Any = "", name: Any = None) -> Any:
    """Strings of several tensors one behind the other."""
    rows, flats = aligned([ragged_or_dense(x) for x in inputs])
    return rows.with_flat_values(tf.strings.join(flats, separator))


@implements(tf.strings.reduce_join, {"inputs": RaggedTensor})
def reduce_join(inputs: Any, axis: Any = None, keepdims: Any = False, separator: Any = "", name: Any = None) -> Any:
    """The strings of rows one behind the other."""
    rank = inputs.shape.rank
    axes = list(range(rank)) if axis is None else [int(a) % rank for a in (
        axis if isinstance(axis, (list, tuple)) else [axis])]
    result = inputs
    for one in sorted(axes, reverse=True):
        result = _joined_strings(result, one, separator)
        if keepdims:
            result = expand_dims(result, one) if is_ragged(result) else tf.expand_dims(result, one)
    return result


def _joined_strings(x: Any, axis: int, separator: Any) -> Any:
    if not is_ragged(x):
        return tf.strings.reduce_join(x, axis, separator=separator)
    if axis > 1:
        return x.with_values(_joined_strings(x.values, axis - 1, separator))
    if axis == 0 or is_ragged(x.values):
        raise ValueError("reduce_join of a ragged tensor is over its last ragged axis")
    return tf.strings.unsorted_segment_join(x.values, x.value_rowids(), x.nrows(), separator)


@implements(tf.math.bincount, {"arr": RaggedTensor})
def bincount(arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: Any = tf.int32,
             name: Any = None, axis: Any = None, binary_output: Any = False) -> Any:
    """How often each number stands in the rows."""
    if weights is not None or binary_output or axis not in (None, 0, -1, 1):
        raise ValueError("bincount of a ragged tensor takes no weights and counts rows or all values")
    if axis in (None, 0):
        return tf.math.bincount(arr.flat_values, None, minlength, maxlength, dtype)
    size = tf.reduce_max(tf.concat([arr.flat_values + 1, [tf.constant(minlength or 0, arr.dtype)]], 0))
    if maxlength is not None:
        size = tf.minimum(size, tf.cast(maxlength, arr.dtype))
    inside = arr.flat_values < size
    rows = tf.cast(arr.value_rowids(), tf.int64) * tf.cast(size, tf.int64) + tf.cast(arr.flat_values, tf.int64)
    total = tf.cast(arr.nrows(), tf.int64) * tf.cast(size, tf.int64)
    counts = tf.math.unsorted_segment_sum(tf.cast(inside, dtype), tf.where(inside, rows, -1), total)
    return tf.reshape(counts, [tf.cast(arr.nrows(), tf.int64), tf.cast(size, tf.int64)])


PARTS.provide("stack", ragged_stack)
