"""`tf.gather` and `tf.gather_nd` where the tensor or the indices are ragged.

A gather along an inner axis becomes one of the values of the ragged tensor, axis by axis, and in the end one of rows
along the first axis, which may be ragged themselves.
"""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.demands import demand
from twofold._front.dispatch import implements

from .conversions import ragged_from_tensor
from .indexing import gathered_rows
from .ragged_tensor import RaggedTensor, is_ragged, ragged_or_dense, same_splits_dtype
from .row_partition import RowPartition, split_lengths

__all__ = ["gather", "gather_nd", "take"]


def take(values: Any, places: Any) -> Any:
    """Rows of a tensor, dense or ragged, at dense indices."""
    return _rows_at(values, places) if is_ragged(values) else tf.gather(values, places)


@implements(tf.gather, {"params": RaggedTensor}, {"indices": RaggedTensor})
def gather(params: Any, indices: Any, validate_indices: Any = None, axis: Any = None, batch_dims: Any = 0,
           name: Any = None) -> Any:
    """Slices of a tensor, dense or ragged, at indices that may be ragged."""
    params = ragged_or_dense(params)
    indices = ragged_or_dense(indices, hint=tf.int64 if not hasattr(indices, "dtype") else None)
    params, indices = same_splits_dtype([params, indices])
    batch = _in_range(batch_dims, indices.shape.rank, "batch_dims", also_rank=True)
    at = batch if axis is None else _in_range(axis, params.shape.rank, "axis")
    if params.shape.rank is not None and batch >= params.shape.rank:
        raise ValueError(f"batch_dims ({batch}) must be less than the rank of params ({params.shape.rank})")
    if at < batch:
        raise ValueError(f"axis ({at}) must be at least batch_dims ({batch})")
    return _gathered(params, indices, at, batch)


def _in_range(number: Any, rank: int | None, name: str, also_rank: bool = False) -> int:
    """A number of axes, or an axis, which counts from the end if it is negative."""
    at = int(number)
    if rank is None:
        if at < 0:
            raise ValueError(f"{name}={at} may only be negative if the rank is statically known.")
        return at
    if also_rank and at == rank:
        return at
    if not -rank <= at < rank:
        raise ValueError(f"{name}={at} out of bounds: expected {-rank}<={name}<{rank}")
    return at % rank


def _gathered(params: Any, indices: Any, axis: int, batch: int) -> Any:
    if not is_ragged(params) and not is_ragged(indices):
        return tf.gather(params, indices, axis=axis, batch_dims=batch)
    if batch > 0:
        return _in_batches(params, indices, axis, batch)
    if axis > 0:
        return _in_each(params, indices, axis)
    if is_ragged(indices):
        return indices.with_flat_values(take(params, indices.flat_values))
    return _rows_at(params, indices)


def _rows_at(params: Any, indices: Any) -> Any:
    """Rows of a ragged tensor at dense indices."""
    rank = indices.shape.rank
    if rank == 0:
        return params[indices]
    if rank is not None and rank > 1:
        nested = ragged_from_tensor(indices, None, None, rank - 1, params.row_splits.dtype)
        return nested.with_flat_values(_rows_at(params, nested.flat_values))
    indices = tf.cast(indices, params.row_splits.dtype)
    return gathered_rows(params, tf.gather(params.row_starts(), indices), tf.gather(params.row_limits(), indices), 1,
                         params._row_partition._uniform)


# -- the same indices for each slice ------------------------------------------------------------------------------
def _in_each(params: Any, indices: Any, axis: int) -> Any:
    """The same indices in each slice along the axes before `axis`."""
    if axis > 1:
        params = _with_rows(params, indices)
        return params.with_values(_gathered(params.values, indices, axis - 1, 0))
    if not is_ragged(params):
        chosen = tf.gather(params, indices.flat_values, axis=1)
        return _repeated(indices, params.shape[0], tf.shape(params, indices.row_splits.dtype)[0], _flat(chosen))
    starts = params.row_starts()
    flat = tf.cast(indices.flat_values if is_ragged(indices) else indices, starts.dtype)
    places = tf.reshape(starts, [-1, *[1] * flat.shape.rank]) + flat
    if not is_ragged(indices):
        return take(params.values, places)
    return _repeated(indices, params._row_partition.static_nrows, params.nrows(), take(params.values, _flat(places)))


def _with_rows(x: Any, other: Any) -> Any:
    """A tensor as a ragged one, with row splits of the dtype of another's."""
    return x if is_ragged(x) else ragged_from_tensor(x, None, None, 1, other.row_splits.dtype)


def _flat(x: Any) -> Any:
    """A tensor with its first two axes in one."""
    sizes = x.shape[:2]
    flat = tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], 0))
    return flat if None in sizes else tf.ensure_shape(flat, [sizes[0] * sizes[1], *x.shape[2:]])


def _repeated(rows: RaggedTensor, static: int | None, times: Any, flat: Any) -> RaggedTensor:
    """The rows of a ragged tensor `times` times, with other innermost values, which are as many in all."""
    count = rows._row_partition.static_nrows
    outer = RowPartition.from_uniform_row_length(
        rows.nrows() if count is None else count, nrows=times if static is None else static,
        dtype=rows.row_splits.dtype, validate=False)
    values = flat
    for partition in reversed(rows._nested_row_partitions):
        lengths = tf.tile(partition.row_lengths(), tf.reshape(times, [1]))
        values = RaggedTensor(values, RowPartition(split_lengths(lengths), None, partition._uniform))
    return RaggedTensor(values, outer)


# -- indices of its own for each slice ----------------------------------------------------------------------------
def _in_batches(params: Any, indices: Any, axis: int, batch: int) -> Any:
    """For each slice along the first `batch` axes, of which the two have the same, the indices that are there."""
    _check_batches(params, indices, batch)
    if batch > 1:
        params, indices = (_with_rows(x, y) for x, y in ((params, indices), (indices, params)))
        _check_rows(params, indices)
        return params.with_values(_gathered(params.values, indices.values, axis - 1, batch - 1))
    if axis > 1:  # each slice along the second axis has the indices of its row
        params = _with_rows(params, indices)
        of_values = take(indices, params._row_partition.value_rowids())
        return params.with_values(_gathered(params.values, of_values, axis - 1, 1))
    params = _with_rows(params, indices)
    _check_rows(params, indices)
    if not is_ragged(indices):
        return take(params.values, _beside(params.row_starts(), indices))
    rowids = tf.range(indices.nrows())
    for partition in indices._nested_row_partitions:
        rowids = tf.gather(rowids, partition.value_rowids())
    starts = tf.gather(params.row_starts(), rowids)
    return indices.with_flat_values(take(params.values, _beside(starts, indices.flat_values)))


def _beside(starts: Any, offsets: Any) -> Any:
    """Places that begin at a start for each of the first axis of `offsets`."""
    return tf.reshape(starts, [-1, *[1] * (offsets.shape.rank - 1)]) + tf.cast(offsets, starts.dtype)


def _check_batches(params: Any, indices: Any, batch: int) -> None:
    """Raise where the static sizes of batches differ, or only one of the two has rows of different lengths."""
    mine, given = params.shape[:batch], indices.shape[:batch]
    if not mine.is_compatible_with(given):
        raise ValueError(f"batch shape from indices {given} does not match params shape {params.shape}")
    for axis in range(1, batch):
        if _is_ragged_at(indices, axis) and not _is_ragged_at(params, axis) and params.shape.rank is not None:
            raise ValueError("batch shape from indices does not match params shape: a ragged axis of indices "
                             f"corresponds to a uniform axis of params (axis {axis})")


def _is_ragged_at(x: Any, axis: int) -> bool:
    return is_ragged(x) and axis <= x.ragged_rank and not x._nested_row_partitions[axis - 1].is_uniform()


def _check_rows(params: Any, indices: Any) -> None:
    rows = indices.nrows() if is_ragged(indices) else tf.shape(indices, params.row_splits.dtype)[0]
    demand(tf.equal(params.nrows(), rows), "params and indices have different numbers of batches")


# -- coordinates --------------------------------------------------------------------------------------------------
@implements(tf.gather_nd, {"params": RaggedTensor}, {"indices": RaggedTensor})
def gather_nd(params: Any, indices: Any, batch_dims: Any = 0, name: Any = None) -> Any:
    """Slices of a tensor, dense or ragged, at coordinates."""
    if not isinstance(batch_dims, int) or batch_dims != 0:
        raise ValueError("batch_dims != 0 is not supported for ragged gather yet.")
    params = ragged_or_dense(params)
    indices = ragged_or_dense(indices, hint=tf.int64)
    if is_ragged(indices):
        if indices.flat_values.shape.rank == 1:
            raise ValueError("The innermost dimension of indices may not be ragged")
        return indices.with_flat_values(gather_nd(params, indices.flat_values) if is_ragged(params)
                                        else tf.gather_nd(params, indices.flat_values))
    if not is_ragged(params):
        return tf.gather_nd(params, indices)
    depth = indices.shape[-1]
    if depth is None:
        raise ValueError("the last axis of indices must be known")
    if depth == 0:
        raise ValueError("indices of a ragged tensor need one coordinate at least")
    indices = tf.cast(indices, params.row_splits.dtype)
    if depth == 1:
        return gather(params, indices[..., 0])
    place = tf.gather(params.row_starts(), indices[..., 0]) + indices[..., 1]
    of_values = tf.concat([place[..., None], indices[..., 2:]], -1)
    return gather_nd(params.values, of_values) if is_ragged(params.values) else tf.gather_nd(params.values, of_values)
