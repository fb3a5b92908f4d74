"""`tf.ragged`: ragged tensors from nested lists, ranges and segments, and functions that only they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front import mapping as _mapping  # noqa: F401  (what tf.map_fn does with ragged rows)
from twofold._front.api import public
from twofold._front.namespace import publish
from twofold._ragged import reductions as _reductions  # noqa: F401  (what reductions do with ragged tensors)
from twofold._ragged import shape as _shape  # noqa: F401  (what tf.shape gives for them)
from twofold._ragged import texts as _texts  # noqa: F401  (what functions of strings do with them)
from twofold._ragged.arrays import boolean_mask as _boolean_mask
from twofold._ragged.arrays import ragged_stack as _ragged_stack
from twofold._ragged.constants import ragged_constant as _ragged_constant
from twofold._ragged.conversions import ragged_range as _ragged_range
from twofold._ragged.crossing import cross_rows as _cross_rows
from twofold._ragged.crossing import key_of as _key_of
from twofold._ragged.crossing import ragged_input as _ragged_input
from twofold._ragged.elementwise import aligned as _aligned
from twofold._ragged.ragged_tensor import RaggedTensor as _RaggedTensor
from twofold.ir import nest as _nest

__all__ = ["boolean_mask", "constant", "cross", "cross_hashed", "map_flat_values", "range", "row_splits_to_segment_ids",
           "segment_ids_to_row_splits", "stack", "stack_dynamic_partitions"]


@public
def constant(pylist: Any, dtype: Any = None, ragged_rank: int | None = None, inner_shape: Any = None,
             name: str | None = None, row_splits_dtype: Any = tf.int64) -> Any:
    """A ragged tensor of nested Python lists.

    Args:
        pylist: a nested list whose scalars all have one depth.
        dtype: of the values; by default that of `tf.constant`.
        ragged_rank: how many axes after the first are ragged; by default all.
        inner_shape: the shape of the values inside of the ragged axes; by default what follows from the list.
        name: has no effect.
        row_splits_dtype: int64 or int32.
    Returns:
        A `tf.RaggedTensor`; a tensor for a list of scalars, and for a scalar.
    Raises:
        ValueError: the scalars have several depths, or the arguments do not fit the list.

    >>> import twofold as tf
    >>> tf.ragged.constant([[1, 2], [3], []])
    <tf.RaggedTensor [[1, 2], [3], []]>
    """
    return _ragged_constant(pylist, dtype, ragged_rank, inner_shape, row_splits_dtype)


@public
def range(starts: Any, limits: Any = None, deltas: Any = 1, dtype: Any = None, name: str | None = None,
          row_splits_dtype: Any = tf.int64) -> Any:
    """The numbers of several ranges, a row for each.

    Args:
        starts: where each begins, or, without `limits`, where each ends.
        limits: where each ends; vectors or scalars, which broadcast.
        deltas: the steps.
        dtype: of the values; by default that of the arguments.
        name: has no effect.
        row_splits_dtype: int64 or int32.

    >>> import twofold as tf
    >>> tf.ragged.range([3, 5, 2])
    <tf.RaggedTensor [[0, 1, 2], [0, 1, 2, 3, 4], [0, 1]]>
    """
    if limits is None:
        starts, limits = 0, starts
    return _ragged_range(starts, limits, deltas, dtype, tf.as_dtype(row_splits_dtype))


@public
def stack(values: Any, axis: int = 0, name: str | None = None) -> Any:
    """Tensors side by side along a new axis, as a ragged tensor: they may have different sizes.

    Args:
        values: dense and ragged tensors of one rank and dtype.
        axis: the new axis.
        name: has no effect.

    >>> import twofold as tf
    >>> tf.ragged.stack([tf.constant([1, 2]), tf.constant([3])])
    <tf.RaggedTensor [[1, 2], [3]]>
    """
    return _ragged_stack(values if isinstance(values, (list, tuple)) else [values], axis)


@public
def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """The values where a mask is true, in the rows in which they were.

    Args:
        data: a dense or ragged tensor.
        mask: a bool tensor, dense or ragged, with the first axes of `data`.
        name: has no effect.
    Returns:
        A ragged tensor, or for a mask of rank 1 what `data` is.
    Raises:
        TypeError: the mask is not bool. ValueError: it is a scalar. InvalidArgumentError: rows differ.

    >>> import twofold as tf
    >>> tf.ragged.boolean_mask([[1, 2, 3], [4, 5, 6]], [[True, False, True], [False, False, True]])
    <tf.RaggedTensor [[1, 3], [6]]>
    """
    return _boolean_mask(data, mask)


@public
def cross(inputs: Any, name: str | None = None) -> Any:
    """For each row of several inputs, all combinations of one value of each, joined by "_X_".

    Args:
        inputs: a list of ragged, sparse or dense matrices of strings or integers, with one number of rows.
        name: has no effect.
    Returns:
        A ragged tensor of strings; the values of the last input change first.
    Raises:
        TypeError: `inputs` is no list. ValueError: an input is no matrix of strings or integers. InvalidArgumentError:
            the numbers of rows differ.

    >>> import twofold as tf
    >>> tf.ragged.cross([tf.ragged.constant([["a"], ["b", "c"]]), tf.ragged.constant([["d"], ["e"]])])
    <tf.RaggedTensor [[b'a_X_d'], [b'b_X_e', b'c_X_e']]>
    """
    return _cross_rows(inputs, None, _key_of(None), _ragged_input)


@public
def cross_hashed(inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None) -> Any:
    """For each row of several inputs, the hashes of all combinations of one value of each.

    Args:
        inputs: a list of ragged, sparse or dense matrices of strings or integers, with one number of rows.
        num_buckets: how many buckets there are; 0 for the hashes as they are.
        hash_key: a number that the hashes begin with; one of TensorFlow's by default.
        name: has no effect.
    Returns:
        A ragged tensor of int64, TensorFlow's numbers; the values of the last input change first.
    Raises:
        As `tf.ragged.cross`.

    >>> import twofold as tf
    >>> tf.ragged.cross_hashed([tf.ragged.constant([["a"], ["b", "c"]]), tf.ragged.constant([["d"], ["e"]]),
    ...                         tf.ragged.constant([["f"], ["g"]])], num_buckets=100)
    <tf.RaggedTensor [[78], [66, 74]]>
    """
    return _cross_rows(inputs, num_buckets, _key_of(hash_key), _ragged_input)


@public
def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A function of the flat values of ragged tensors, with the rows that these have.

    Args:
        op: takes tensors in the places of ragged ones, and gives one of as many values.
        args, kwargs: its arguments, in which there are ragged tensors of the same rows.
    Raises:
        ValueError: it gives another number of values. InvalidArgumentError: the rows differ.

    >>> import twofold as tf
    >>> tf.ragged.map_flat_values(lambda x: x * 10, tf.ragged.constant([[1, 2], [3]]))
    <tf.RaggedTensor [[10, 20], [30]]>
    """
    leaves = _nest.flatten([args, kwargs], expand_composites=False)
    ragged = [x for x in leaves if isinstance(x, _RaggedTensor)]
    if not ragged:
        return op(*args, **kwargs)
    if len({r.ragged_rank for r in ragged}) > 1:
        raise ValueError("map_flat_values: ragged tensors must have the same ragged_rank; tf.ragged.constant and "
                         "tf.RaggedTensor.from_tensor take a ragged_rank.")
    rows, flats = _aligned(ragged)
    values = iter(flats)
    args, kwargs = _nest.pack([args, kwargs], [next(values) if isinstance(x, _RaggedTensor) else x for x in leaves],
                              expand_composites=False)
    result = tf.convert_to_tensor(op(*args, **kwargs))
    have, want = result.shape[:1], rows.flat_values.shape[:1]
    if result.shape.rank == 0 or not have.is_compatible_with(want):
        raise ValueError("tf.ragged.map_flat_values requires that the output of `op` have the same outer-dimension "
                         f"size as flat_values of any ragged inputs. (output shape: {result.shape}; expected outer "
                         f"dimension size: {want[0]})")
    return rows.with_flat_values(result)


@public
def row_splits_to_segment_ids(splits: Any, name: str | None = None, out_type: Any = None) -> Any:
    """The row of each value, for row splits.

    Args:
        splits: an integer vector that begins with 0 and does not decrease.
        name: has no effect.
        out_type: the result's dtype; by default that of the splits.

    >>> import twofold as tf
    >>> tf.ragged.row_splits_to_segment_ids([0, 3, 3, 5]).numpy().tolist()
    [0, 0, 0, 2, 2]
    """
    ids = tf.experimental.RowPartition.from_row_splits(splits, validate=False).value_rowids()
    return ids if out_type is None else tf.cast(ids, out_type)


@public
def segment_ids_to_row_splits(segment_ids: Any, num_segments: Any = None, out_type: Any = None,
                              name: str | None = None) -> Any:
    """Row splits, for the row of each value.

    Args:
        segment_ids: an integer vector that does not decrease.
        num_segments: the number of rows; by default one more than the last with a value.
        out_type: the result's dtype.
        name: has no effect.

    >>> import twofold as tf
    >>> tf.ragged.segment_ids_to_row_splits([0, 0, 0, 2, 2]).numpy().tolist()
    [0, 3, 3, 5]
    """
    partition = tf.experimental.RowPartition.from_value_rowids(segment_ids, num_segments, validate=False)
    return partition.row_splits() if out_type is None else tf.cast(partition.row_splits(), out_type)


@public
def stack_dynamic_partitions(data: Any, partitions: Any, num_partitions: Any, name: str | None = None) -> Any:
    """The slices of a tensor by the number that each has, a row for each number.

    Args:
        data: a dense or ragged tensor.
        partitions: integers from 0 to `num_partitions`, for the first axes of `data`.
        num_partitions: how many rows there are.
        name: has no effect.

    >>> import twofold as tf
    >>> tf.ragged.stack_dynamic_partitions(["a", "b", "c", "d"], [3, 0, 3, 1], 4)
    <tf.RaggedTensor [[b'b'], [b'd'], [], [b'a', b'c']]>
    """
    if isinstance(partitions, _RaggedTensor):
        if not isinstance(data, _RaggedTensor):
            data = _RaggedTensor.from_tensor(data, ragged_rank=partitions.ragged_rank)
        return stack_dynamic_partitions(data.values, partitions.values, num_partitions)
    partitions = tf.convert_to_tensor(partitions, dtype_hint=tf.int64)
    data = data if isinstance(data, _RaggedTensor) else tf.convert_to_tensor(data)
    while partitions.shape.rank > 1:
        data = data.values if isinstance(data, _RaggedTensor) else tf.reshape(
            data, tf.concat([[-1], tf.shape(data)[2:]], 0))
        partitions = tf.reshape(partitions, tf.concat([[-1], tf.shape(partitions)[2:]], 0))
    order = tf.argsort(partitions, stable=True)
    return _RaggedTensor.from_value_rowids(tf.gather(data, order), tf.gather(partitions, order), num_partitions)


publish(__name__)
