"""Picking and writing elements: slices, gather, scatter, masks and partitions. Re-exported by `twofold/array.py`."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from twofold._front.api import axis_span, ints, is_open, listed, one_int, one_size, parts, public, shape_arg, tensor
from twofold._ops.array_creation import as_scalar, constant_of
from twofold._ops.array_creation import range as range_
from twofold._ops.array_joining import alike, concat
from twofold._ops.array_shape import reshape, shape, size
from twofold.eager import indexing
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.errors import InvalidArgumentError
from twofold.ir.op import tracing
from twofold.tracer.checks import check

__all__ = ["slice", "strided_slice", "gather", "gather_nd", "scatter_nd", "tensor_scatter_nd_update",
           "tensor_scatter_nd_add", "tensor_scatter_nd_sub", "tensor_scatter_nd_min", "tensor_scatter_nd_max",
           "boolean_mask", "where", "dynamic_partition", "dynamic_stitch"]


# -- slices -------------------------------------------------------------------------------------------
@public
def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Any:
    """A box of a tensor.

    Args:
        input_: a tensor of any dtype.
        begin: where the box begins along each axis.
        size: its size along each axis; -1 reaches to the end.
        name: has no effect.
    Returns:
        A tensor of the same rank; no data is copied.
    Raises:
        tf.errors.InvalidArgumentError: the box is not inside the tensor.

    >>> import twofold as tf
    >>> tf.slice([[1, 2, 3], [4, 5, 6]], [0, 1], [2, -1]).numpy().tolist()
    [[2, 3], [5, 6]]
    """
    if tracing() is None:
        return ops.slice_(input_, begin=ints(begin, "begin"), size=ints(size, "size"))
    x, first, sizes = tensor(input_), ints(begin, "begin"), parts(size, "size")
    if any(map(is_open, sizes)) and len(first) == len(sizes) == len(x.dims):
        sizes = [_reaching(s, d - b) if is_open(s) else s for s, d, b in zip(sizes, x.dims, first, strict=True)]
    return ops.slice_(x, begin=first, size=ints(sizes, "size"))


def _reaching(size: Any, rest: Any) -> Any:
    """A size that only running can tell, of which -1 means all the rest."""
    size = as_scalar(size)
    return ops.where(ops.equal(size, -1), as_scalar(rest), size)


@public
def strided_slice(input_: Any, begin: Any, end: Any, strides: Any = None, begin_mask: int = 0, end_mask: int = 0,
                  ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0, var: Any = None,
                  name: str | None = None) -> Any:
    """What `input_[begin[0]:end[0]:strides[0], ...]` gives in Python.

    Args:
        input_: a tensor of any dtype.
        begin, end, strides: integer vectors of one length, an entry for each item of the index; strides are 1 by
            default.
        begin_mask, end_mask: bit i set: entry i of `begin` or `end` is ignored and the slice reaches as far as it can.
        ellipsis_mask: bit i set: item i is `...`.
        new_axis_mask: bit i set: item i is a new axis of size 1.
        shrink_axis_mask: bit i set: item i is the integer `begin[i]`, and the axis goes away.
        var: has no effect.
        name: has no effect.
    Returns:
        A tensor; no data is copied.
    Raises:
        tf.errors.InvalidArgumentError: an index is out of bounds or a stride is 0. ValueError: lengths differ, or there
            are several ellipses.

    >>> import twofold as tf
    >>> tf.strided_slice([1, 2, 3, 4, 5], [1], [5], [2]).numpy().tolist()
    [2, 4]
    """
    first, last = parts(begin, "begin"), parts(end, "end")
    steps = [1] * len(first) if strides is None else parts(strides, "strides")
    if not len(first) == len(last) == len(steps):
        raise InvalidArgumentError(f"strided_slice: begin, end and strides must have one length; got {len(first)}, "
                                   f"{len(last)} and {len(steps)}.")

    def item(i: int) -> Any:
        bit = 1 << i
        if ellipsis_mask & bit:
            return Ellipsis
        if new_axis_mask & bit:
            return None
        if shrink_axis_mask & bit:
            return first[i]
        return builtins.slice(None if begin_mask & bit else first[i], None if end_mask & bit else last[i], steps[i])
    x = tensor(input_)
    key = tuple([item(i) for i in range(len(first))])
    if any(map(is_open, [*first, *last, *steps])):
        return x[key]
    return ops.strided_slice(x, spec=indexing.entries(key, len(x.dims)))


# -- gather -------------------------------------------------------------------------------------------
@public
def gather(params: Any, indices: Any, validate_indices: Any = None, axis: Any = None, batch_dims: Any = 0,
           name: str | None = None) -> Any:
    """Slices of a tensor along an axis at given indices.

    Args:
        params: a tensor of any dtype.
        indices: an integer tensor, of values in [0, size of the axis).
        validate_indices: has no effect: indices are always checked.
        axis: the axis; by default the first after the batch axes.
        batch_dims: how many leading axes `params` and `indices` share.
        name: has no effect.
    Returns:
        A tensor of shape `params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]`.
    Raises:
        tf.errors.InvalidArgumentError: an index is out of range (the message names it), or shapes do not fit.

    >>> import twofold as tf
    >>> tf.gather([10, 20, 30, 40], [3, 0]).numpy().tolist()
    [40, 10]
    >>> tf.gather([[1, 2], [3, 4]], [[1], [0]], axis=1, batch_dims=1).numpy().tolist()
    [[2], [3]]
    """
    x, places = tensor(params), tensor(indices)
    rank = len(places.dims)
    batch = one_int(batch_dims, "batch_dims", (-rank, rank + 1))
    batch = batch + rank if batch < 0 else batch
    at = batch if axis is None else one_int(axis, "axis", axis_span(x))
    return ops.gather(x, places, axis=at, batch_dims=batch)


@public
def gather_nd(params: Any, indices: Any, batch_dims: Any = 0, name: str | None = None,
              bad_indices_policy: str = "") -> Any:
    """Elements or slices of a tensor at given coordinates.

    Args:
        params: a tensor of any dtype.
        indices: an integer tensor; each vector along its last axis names the leading axes of `params` after those
            shared.
        batch_dims: how many leading axes `params` and `indices` share.
        name: has no effect.
        bad_indices_policy: "", "DEFAULT" or "ERROR": an index out of range is an error.
    Returns:
        A tensor of shape `indices.shape[:-1] + params.shape[batch_dims + indices.shape[-1]:]`.
    Raises:
        tf.errors.InvalidArgumentError: an index is out of range (the message names it), or shapes do not fit.
        NotImplementedError: another policy is asked for.

    >>> import twofold as tf
    >>> tf.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]]).numpy().tolist()
    [2, 3]
    """
    _only_errors(bad_indices_policy)
    x = tensor(params)
    return ops.gather_nd(x, tensor(indices), batch_dims=one_int(batch_dims, "batch_dims", axis_span(x)))


def _only_errors(policy: str) -> None:
    if policy not in ("", "DEFAULT", "ERROR"):
        raise NotImplementedError(f"bad_indices_policy {policy!r} is not supported: an index out of range is an error.")


# -- scatter ------------------------------------------------------------------------------------------
@public
def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None, bad_indices_policy: str = "") -> Any:
    """Zeros with values added at given coordinates.

    Args:
        indices: an integer tensor; each vector along its last axis names the leading axes of the result. Coordinates
            that occur several times add up, in order.
        updates: a tensor of numbers or bools, of shape `indices.shape[:-1] + shape[indices.shape[-1]:]`. Of bools
            for one place the result is whether any is True.
        shape: the shape of the result.
        name: has no effect.
        bad_indices_policy: "", "DEFAULT" or "ERROR": an index out of range is an error.
    Returns:
        A tensor of that shape and of the dtype of `updates`.
    Raises:
        tf.errors.InvalidArgumentError: an index is out of range (the message names it), or shapes do not fit.
        NotImplementedError: another policy is asked for.

    >>> import twofold as tf
    >>> tf.scatter_nd([[1], [3], [1]], [5, 6, 7], [5]).numpy().tolist()
    [0, 12, 0, 6, 0]
    """
    _only_errors(bad_indices_policy)
    values = tensor(updates)
    if values.dtype.is_bool:
        counts = ops.scatter_nd(tensor(indices), ops.cast(values, dtype=dt.int32), shape=shape_arg(shape))
        return ops.not_equal(counts, 0)
    return ops.scatter_nd(tensor(indices), values, shape=shape_arg(shape))


def _tensor_scatter(x: Any, indices: Any, updates: Any, mode: str) -> Any:
    x = tensor(x)
    return ops.tensor_scatter(x, tensor(indices), tensor(updates, hint=x.dtype), mode=mode)


@public
def tensor_scatter_nd_update(tensor: Any, indices: Any, updates: Any, name: str | None = None,
                             bad_indices_policy: str = "") -> Any:
    """A tensor with values replaced at given coordinates; of several for one place the last remains.

    Args:
        tensor: a tensor of any dtype.
        indices: an integer tensor; each vector along its last axis names the leading axes of `tensor`.
        updates: a tensor of shape `indices.shape[:-1] + tensor.shape[indices.shape[-1]:]`.
        name: has no effect.
        bad_indices_policy: "", "DEFAULT" or "ERROR": an index out of range is an error.
    Returns:
        A new tensor.
    Raises:
        tf.errors.InvalidArgumentError: an index is out of range (the message names it), or shapes do not fit.
        NotImplementedError: another policy is asked for.

    >>> import twofold as tf
    >>> tf.tensor_scatter_nd_update([1, 2, 3], [[0], [2]], [8, 9]).numpy().tolist()
    [8, 2, 9]
    """
    _only_errors(bad_indices_policy)
    return _tensor_scatter(tensor, indices, updates, "update")


@public
def tensor_scatter_nd_add(tensor: Any, indices: Any, updates: Any, name: str | None = None,
                          bad_indices_policy: str = "") -> Any:
    """A tensor with values added at given coordinates, in order.

    Args:
        tensor: a numeric tensor.
        indices, updates, name, bad_indices_policy: as for `tf.tensor_scatter_nd_update`.
        name: has no effect.
    Returns:
        A new tensor.
    Raises:
        tf.errors.InvalidArgumentError, NotImplementedError: as for `tf.tensor_scatter_nd_update`.

    >>> import twofold as tf
    >>> tf.tensor_scatter_nd_add([1, 2, 3], [[0], [0]], [10, 20]).numpy().tolist()
    [31, 2, 3]
    """
    _only_errors(bad_indices_policy)
    return _tensor_scatter(tensor, indices, updates, "add")


@public
def tensor_scatter_nd_sub(tensor: Any, indices: Any, updates: Any, name: str | None = None,
                          bad_indices_policy: str = "") -> Any:
    """A tensor with values subtracted at given coordinates, in order.

    Args:
        tensor: a numeric tensor.
        indices, updates, name, bad_indices_policy: as for `tf.tensor_scatter_nd_update`.
        name: has no effect.
    Returns:
        A new tensor.
    Raises:
        tf.errors.InvalidArgumentError, NotImplementedError: as for `tf.tensor_scatter_nd_update`.

    >>> import twofold as tf
    >>> tf.tensor_scatter_nd_sub([1, 2, 3], [[0], [0]], [10, 20]).numpy().tolist()
    [-29, 2, 3]
    """
    _only_errors(bad_indices_policy)
    return _tensor_scatter(tensor, indices, updates, "sub")


@public
def tensor_scatter_nd_min(tensor: Any, indices: Any, updates: Any, name: str | None = None,
                          bad_indices_policy: str = "") -> Any:
    """A tensor whose values at given coordinates are replaced where an update is smaller.

    Args:
        tensor: a real tensor.
        indices, updates, name, bad_indices_policy: as for `tf.tensor_scatter_nd_update`.
        name: has no effect.
    Returns:
        A new tensor.
    Raises:
        tf.errors.InvalidArgumentError, NotImplementedError: as for `tf.tensor_scatter_nd_update`.

    >>> import twofold as tf
    >>> tf.tensor_scatter_nd_min([5, 5, 5], [[0], [2]], [3, 8]).numpy().tolist()
    [3, 5, 5]
    """
    _only_errors(bad_indices_policy)
    return _tensor_scatter(tensor, indices, updates, "min")


@public
def tensor_scatter_nd_max(tensor: Any, indices: Any, updates: Any, name: str | None = None,
                          bad_indices_policy: str = "") -> Any:
    """A tensor whose values at given coordinates are replaced where an update is larger.

    Args:
        tensor: a real tensor.
        indices, updates, name, bad_indices_policy: as for `tf.tensor_scatter_nd_update`.
        name: has no effect.
    Returns:
        A new tensor.
    Raises:
        tf.errors.InvalidArgumentError, NotImplementedError: as for `tf.tensor_scatter_nd_update`.

    >>> import twofold as tf
    >>> tf.tensor_scatter_nd_max([5, 5, 5], [[0], [2]], [3, 8]).numpy().tolist()
    [5, 5, 8]
    """
    _only_errors(bad_indices_policy)
    return _tensor_scatter(tensor, indices, updates, "max")


# -- by condition -------------------------------------------------------------------------------------
@public
def boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: str = "boolean_mask") -> Any:
    """The slices of a tensor for which a mask is true.

    Args:
        tensor: a tensor of any dtype.
        mask: a bool tensor of rank K, at least 1, of the shape of K axes of `tensor`.
        axis: the first of these axes; 0 by default.
        name: has no effect.
    Returns:
        A tensor in which one axis takes the place of those K.
    Raises:
        ValueError: the mask is a scalar, or its shape does not fit.

    >>> import twofold as tf
    >>> tf.boolean_mask([[1, 2], [3, 4], [5, 6]], [True, False, True]).numpy().tolist()
    [[1, 2], [5, 6]]
    """
    x = _as_tensor(tensor)
    at = 0 if axis is None else one_int(axis, "axis", axis_span(x))
    return indexing.boolean_mask(x, _as_tensor(mask), at)


_as_tensor = tensor  # `tensor` is an argument's name above


@public
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """Elements of `x` where a condition holds and of `y` elsewhere; with neither, the coordinates where it holds.

    Args:
        condition: a bool tensor; a numeric one (not zero) where `x` and `y` are left out.
        x, y: tensors of one dtype; they broadcast with each other and with `condition`.
        name: has no effect.
    Returns:
        A tensor of the dtype of `x`; or int64[number of places, rank of condition], row by row.
    Raises:
        ValueError: only one of `x` and `y` is given. tf.errors.InvalidArgumentError: dtypes or shapes do not fit.

    >>> import twofold as tf
    >>> tf.where([True, False], [1, 2], 0).numpy().tolist()
    [1, 0]
    >>> tf.where([[True, False], [False, True]]).numpy().tolist()
    [[0, 0], [1, 1]]
    """
    if x is None and y is None:
        return ops.nonzero(condition)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    condition, (x, y) = _as_tensor(condition), alike([x, y])
    return _where_of_strings(condition, x, y) if x.dtype is dt.string else ops.where(condition, x, y)


def _where_of_strings(condition: Any, x: Any, y: Any) -> Any:
    """`where` of strings, which kernels do not choose between: it tells the places of those to take."""
    rows = [reshape(value, [-1]) for value in (x, y)]
    of_x, of_y = (range_(size(row, dt.int64)) for row in rows)
    places = ops.where(condition, reshape(of_x, shape(x)), reshape(of_y + size(rows[0], dt.int64), shape(y)))
    return gather(concat(rows, 0), places)


@public
def dynamic_partition(data: Any, partitions: Any, num_partitions: int, name: str | None = None) -> list[Any]:
    """The slices of a tensor sorted into several tensors.

    Args:
        data: a tensor of any dtype.
        partitions: an integer tensor whose shape begins that of `data`: where each slice goes, in
            [0, num_partitions).
        num_partitions: how many tensors there are.
        name: has no effect.
    Returns:
        A list of tensors; slices keep their order.
    Raises:
        tf.errors.InvalidArgumentError: a partition is out of range, or shapes do not fit.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.dynamic_partition([10, 20, 30], [1, 0, 1], 2)]
    [[20], [10, 30]]
    """
    x, parts = tensor(data), tensor(partitions)
    if not 0 < (num_partitions := one_size(num_partitions, "num_partitions")) <= _MOST_PARTITIONS:
        raise InvalidArgumentError(f"dynamic_partition: num_partitions must be from 1 to {_MOST_PARTITIONS}; got "
                                   f"{num_partitions}")
    if not parts.dtype.is_integer:
        raise InvalidArgumentError(f"dynamic_partition: partitions must be integers; got {parts.dtype.name}")
    rank = len(parts.dims)
    if parts.dims != x.dims[:rank] and not dm.require_same(parts.dims, x.dims[:rank]):
        raise InvalidArgumentError(f"dynamic_partition: data.shape must start with partitions.shape, got data.shape = "
                                   f"{x.shape}, partitions.shape = {parts.shape}")
    _check_partitions(parts, num_partitions)
    if not rank:
        x, parts = ops.expand_dims(x, axis=(0,)), ops.expand_dims(parts, axis=(0,))
    return [indexing.boolean_mask(x, ops.equal(parts, constant_of(i, parts.dtype))) for i in range(num_partitions)]


_MOST_PARTITIONS = 1 << 20  # of more tensors nobody can have use; each is an object


def _check_partitions(parts: Any, count: int) -> None:
    """Raise InvalidArgumentError unless all partitions are below `count`; in a trace, when the function runs."""
    if tracing() is not None:
        inside = ops.logical_and(ops.greater_equal(parts, 0), ops.less(parts, constant_of(count, parts.dtype)))
        check(ops.reduce_all(inside), f"dynamic_partition: a partition is not in [0, {count})", [parts])
        return
    numbers = np.asarray(parts)
    outside = (numbers < 0) | (numbers >= count)
    if outside.any():
        raise InvalidArgumentError(f"dynamic_partition: a partition is {numbers[outside].flat[0]}, which is not in "
                                   f"[0, {count})")


@public
def dynamic_stitch(indices: Any, data: Any, name: str | None = None) -> Any:
    """Several tensors merged into one: `result[indices[m][i, ...]] = data[m][i, ...]`.

    Args:
        indices: a list of int32 tensors.
        data: a list of tensors of one dtype; the shape of each begins with that of its indices and ends alike.
        name: has no effect.
    Returns:
        A tensor whose first axis reaches to the largest index. Of several values for one index the last remains;
        places that no index names are zero.
    Raises:
        tf.errors.InvalidArgumentError: an index is negative, or shapes do not fit.

    >>> import twofold as tf
    >>> tf.dynamic_stitch([[0, 2], [1]], [[10, 30], [20]]).numpy().tolist()
    [10, 20, 30]
    """
    places, values = [tensor(i) for i in listed(indices, "indices")], alike(data)
    if len(places) != len(values) or not places:
        raise InvalidArgumentError(f"dynamic_stitch: indices and data must be lists of one length, at least 1; got "
                                   f"{len(places)} and {len(values)}.")
    rest = values[0].dims[len(places[0].dims):]
    for i, v in zip(places, values, strict=True):
        if not dm.require_same(v.dims, (*i.dims, *rest)):
            raise InvalidArgumentError(f"dynamic_stitch: data of shape {v.shape} does not fit indices of shape "
                                       f"{i.shape}; all must end in {tuple(rest)}.")
    at = ops.concat(*[ops.reshape(i, shape=(-1, 1)) for i in places], axis=0)
    rows = ops.concat(*[ops.reshape(v, shape=(dm.numel(i.dims), *rest)) for i, v in zip(places, values, strict=True)],
                      axis=0)
    (count,) = ints(ops.add(ops.reduce_max(ops.concat(at, constant_of([[-1]], at.dtype), axis=0)), 1), "indices")
    zeros = ops.fill(tensor(b"") if rows.dtype is dt.string else constant_of(0, rows.dtype), shape=(count, *rest))
    return ops.tensor_scatter(zeros, at, rows, mode="update")
