"""Shapes: reading them, and arranging a tensor's elements in another. Re-exported by `twofold/array.py`.

Nothing here moves data, except `repeat` and `tile`, and `reshape` of what is not laid out row by row.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from twofold._front.api import (
    axis_arg,
    axis_span,
    ints,
    is_open,
    listed,
    one_int,
    one_size,
    parts,
    public,
    shape_arg,
    tensor,
)
from twofold._ops.array_creation import as_scalar, counting
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.errors import InvalidArgumentError
from twofold.ir.op import tracing
from twofold.ir.spec import TensorShape, as_shape
from twofold.tracer import choices
from twofold.tracer.checks import check

__all__ = ["reshape", "transpose", "expand_dims", "squeeze", "broadcast_to", "broadcast_static_shape",
           "broadcast_dynamic_shape", "shape", "shape_n", "size", "rank", "ensure_shape", "tile", "repeat"]


def one_axis(axis: Any, rank: int, what: str = "axis") -> int:
    """An axis argument as a number from 0.

    Raises:
        InvalidArgumentError: it is out of range.
    """
    number = one_int(axis, what, (-rank, rank))
    if not -rank <= number < rank:
        raise InvalidArgumentError(f"{what} {number} is out of range; expected {-rank} <= {what} < {rank}.")
    return number % rank


@public
def reshape(tensor: Any, shape: Any, name: str | None = None) -> Any:
    """The elements of a tensor, in row-major order, in another shape.

    Args:
        tensor: a tensor of any dtype.
        shape: the new shape; one size may be -1 and is found from the others.
        name: has no effect.
    Returns:
        A tensor of that shape.
    Raises:
        tf.errors.InvalidArgumentError: the number of elements differs.

    >>> import twofold as tf
    >>> tf.reshape([[1, 2, 3], [4, 5, 6]], [3, -1]).numpy().tolist()
    [[1, 2], [3, 4], [5, 6]]
    """
    if tracing() is None or isinstance(shape, TensorShape):
        return ops.reshape(tensor, shape=shape_arg(shape))
    sizes = parts(shape, "shape")
    if any(map(is_open, sizes)) and not any(type(s) is int and s == -1 for s in sizes):
        sizes = _inferred(tensor, sizes)
    return ops.reshape(tensor, shape=shape_arg(sizes))


def _inferred(x: Any, sizes: Sequence[Any]) -> list[Any]:
    """The sizes of a reshape, with the one found from the others in the place of a -1 that only running can tell."""
    each = [ops.cast(s if is_open(s) else as_scalar(s), dtype=dt.int64) for s in sizes]
    product = functools.reduce(ops.multiply, each)
    rest = ops.floordiv(ops.size(x, out_type=dt.int64), ops.maximum(ops.negative(product), 1))
    return [ops.where(ops.equal(e, -1), rest, e) if is_open(s) else s for s, e in zip(sizes, each, strict=True)]


@public
def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: str = "transpose") -> Any:
    """A tensor with its axes in another order.

    Args:
        a: a tensor of any dtype.
        perm: axis i of the result is axis `perm[i]` of `a`; None reverses the axes.
        conjugate: whether to take complex conjugates too.
        name: has no effect.
    Returns:
        A tensor of the same dtype.
    Raises:
        tf.errors.InvalidArgumentError: `perm` is no permutation of the axes.

    >>> import twofold as tf
    >>> tf.transpose([[1, 2, 3], [4, 5, 6]]).numpy().tolist()
    [[1, 4], [2, 5], [3, 6]]
    """
    turned = ops.transpose(a, perm=None) if perm is None else _transposed(a, perm)
    return ops.conj(turned) if conjugate and turned.dtype.is_complex else turned


@public
def expand_dims(input: Any, axis: Any, name: str | None = None) -> Any:
    """A tensor with a new axis of size 1.

    Args:
        input: a tensor of any dtype.
        axis: where the new axis is in the result; negative numbers count from its end.
        name: has no effect.
    Returns:
        A tensor of one rank more.
    Raises:
        tf.errors.InvalidArgumentError: `axis` is out of range.

    >>> import twofold as tf
    >>> tf.expand_dims(tf.zeros([2, 3]), -1).shape
    TensorShape([2, 3, 1])
    """
    return ops.expand_dims(input, axis=ints(axis, "axis", axis_span(input, 1)))


@public
def squeeze(input: Any, axis: Any = None, name: str | None = None) -> Any:
    """A tensor without axes of size 1.

    Args:
        input: a tensor of any dtype.
        axis: the axis or axes to remove; None (or no axes) for all of size 1.
        name: has no effect.
    Returns:
        A tensor of the remaining axes.
    Raises:
        tf.errors.InvalidArgumentError: an axis is out of range or not of size 1.

    >>> import twofold as tf
    >>> tf.squeeze(tf.zeros([1, 2, 1, 3]), axis=2).shape
    TensorShape([1, 2, 3])
    """
    axes = axis_arg(axis, input)
    if not axes:
        x = tensor(input)
        axes = tuple([i for i, d in enumerate(x.dims) if not dm.require(d, "!=", 1)])
        return ops.squeeze(x, axis=axes) if axes else ops.identity(x)
    return ops.squeeze(input, axis=axes)


@public
def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Any:
    """A tensor repeated along new leading axes and along axes of size 1.

    Args:
        input: a tensor of any dtype.
        shape: the shape of the result; -1 keeps the size of an axis.
        name: has no effect.
    Returns:
        A tensor of that shape; no data is copied.
    Raises:
        tf.errors.InvalidArgumentError: the tensor does not broadcast to `shape`.

    >>> import twofold as tf
    >>> tf.broadcast_to([1, 2, 3], [2, 3]).numpy().tolist()
    [[1, 2, 3], [1, 2, 3]]
    """
    x, sizes = tensor(input), shape_arg(shape)
    missing = len(sizes) - len(x.dims)
    kept = [x.dims[i - missing] if type(s) is int and s == -1 and i >= missing else s for i, s in enumerate(sizes)]
    return ops.broadcast_to(x, shape=tuple(kept))


@public
def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The shape that two known shapes broadcast to.

    Args:
        shape_x, shape_y: what `tf.TensorShape` takes. A size of None stays None unless the other decides.
    Returns:
        A `tf.TensorShape`.
    Raises:
        ValueError: they do not broadcast.

    >>> import twofold as tf
    >>> tf.broadcast_static_shape(tf.TensorShape([1, 3]), tf.TensorShape([5, 1]))
    TensorShape([5, 3])
    """
    x, y = as_shape(shape_x), as_shape(shape_y)
    if x.rank is None or y.rank is None:
        return TensorShape(None)
    rank = max(x.rank, y.rank)
    pairs = zip([1] * (rank - x.rank) + x.as_list(), [1] * (rank - y.rank) + y.as_list(), strict=True)
    return TensorShape([_static_dim(a, b, x, y) for a, b in pairs])


def _static_dim(a: int | None, b: int | None, x: TensorShape, y: TensorShape) -> int | None:
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if a is None or b is None:
        return b if a is None else a
    raise ValueError(f"Incompatible shapes for broadcasting: {x} and {y}")


@public
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Any:
    """The shape that two shapes given as vectors broadcast to, as an integer vector.

    Args:
        shape_x, shape_y: integer vectors.
    Returns:
        An integer vector, int32 unless an argument is int64.
    Raises:
        tf.errors.InvalidArgumentError: they do not broadcast. TypeError: one holds no integers.

    >>> import twofold as tf
    >>> tf.broadcast_dynamic_shape([1, 2, 3], [5, 1, 3]).numpy().tolist()
    [5, 2, 3]
    """
    x, y = [tensor(np.zeros(0, np.int32) if isinstance(s, (list, tuple)) and not s else s) for s in (shape_x, shape_y)]
    if not (x.dtype.is_integer and y.dtype.is_integer):
        raise TypeError(f"broadcast_dynamic_shape: shapes hold integers; got {x.dtype.name} and {y.dtype.name}.")
    dtype = dt.int64 if dt.int64 in (x.dtype, y.dtype) else dt.int32
    if any(hasattr(v, "known_elements") and v.known_elements() is None for v in (x, y)):
        return _joined_late(ops.cast(x, dtype=dtype), ops.cast(y, dtype=dtype))
    try:
        joined = dm.broadcast_shapes(ints(x), ints(y))
    except dm.BroadcastError as e:
        raise InvalidArgumentError(f"broadcast_dynamic_shape: {e}") from None
    return tensor(np.array(joined, dtype.np))


def _joined_late(x: Any, y: Any) -> Any:
    """The shape that two shapes of known rank broadcast to, of which only running can tell the sizes."""
    if 0 in (x.dims[0], y.dims[0]):  # that of a scalar, beside which the rank of the other need not be known
        return x if y.dims[0] == 0 else y
    rank = max(x.dims[0], y.dims[0])
    one = ops.cast(as_scalar(1), dtype=x.dtype)
    x, y = (ops.pad(v, one, paddings=((rank - v.dims[0], 0),)) for v in (x, y))
    fits = ops.logical_or(ops.equal(x, y), ops.logical_or(ops.equal(x, one), ops.equal(y, one)))
    check(ops.reduce_all(fits), "broadcast_dynamic_shape: the shapes do not broadcast.", [x, y])
    return ops.where(ops.equal(x, one), y, x)


# -- shapes as data -----------------------------------------------------------------------------------
@public
def shape(input: Any, out_type: Any = None, name: str | None = None) -> Any:
    """The sizes of a tensor's axes, as a vector.

    Args:
        input: a tensor.
        out_type: `tf.int32` (by default) or `tf.int64`.
        name: has no effect.
    Returns:
        An integer vector.

    >>> import twofold as tf
    >>> tf.shape(tf.zeros([2, 3])).numpy().tolist()
    [2, 3]
    """
    return ops.shape(input, out_type=dt.int32 if out_type is None else dt.as_dtype(out_type))


@public
def shape_n(input: Any, out_type: Any = dt.int32, name: str | None = None) -> list[Any]:
    """The shape of each of several tensors.

    Args:
        input: a list of tensors.
        out_type: `tf.int32` or `tf.int64`.
        name: has no effect.
    Returns:
        A list of integer vectors.

    >>> import twofold as tf
    >>> [s.numpy().tolist() for s in tf.shape_n([tf.zeros([2]), tf.zeros([1, 3])])]
    [[2], [1, 3]]
    """
    return [ops.shape(x, out_type=dt.as_dtype(out_type)) for x in listed(input, "input")]


@public
def size(input: Any, out_type: Any = None, name: str | None = None) -> Any:
    """The number of elements of a tensor.

    Args:
        input: a tensor.
        out_type: `tf.int32` (by default) or `tf.int64`.
        name: has no effect.
    Returns:
        An integer scalar.

    >>> import twofold as tf
    >>> int(tf.size(tf.zeros([2, 3])))
    6
    """
    return ops.size(input, out_type=dt.int32 if out_type is None else dt.as_dtype(out_type))


@public
def rank(input: Any, name: str | None = None) -> Any:
    """The number of axes of a tensor, as an int32 scalar.

    Args:
        input: a tensor.
        name: has no effect.

    >>> import twofold as tf
    >>> int(tf.rank(tf.zeros([2, 3])))
    2
    """
    return tensor(np.array(len(tensor(input).dims), np.int32))


@public
def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Any:
    """A tensor itself, once its shape is known to be compatible with the one given.

    Args:
        x: a tensor.
        shape: what `tf.TensorShape` takes, with None for sizes that do not matter.
        name: has no effect.
    Returns:
        `x`.
    Raises:
        tf.errors.InvalidArgumentError: it has another shape.

    >>> import twofold as tf
    >>> tf.ensure_shape(tf.zeros([2, 3]), [None, 3]).shape
    TensorShape([2, 3])
    """
    x, wanted = tensor(x), as_shape(shape)
    if not x.shape.is_compatible_with(wanted):
        raise InvalidArgumentError(f"ensure_shape: Shape of tensor {x.shape} is not compatible with expected shape "
                                   f"{wanted}.")
    if not hasattr(x, "set_shape") or wanted.dims is None:
        return x
    x.set_shape(wanted)  # in a trace: what only running can tell is tested then
    known = tuple([have if want is None else want for have, want in zip(x.dims, wanted.dims, strict=True)])
    return x if known == tuple(x.dims) else ops.reshape(x, shape=known)


def _transposed(a: Any, perm: Any) -> Any:
    if tracing() is None:
        return ops.transpose(a, perm=ints(perm, "perm"))
    places = parts(perm, "perm")
    if any(is_open(p) or isinstance(p, dm.Dim) for p in places):
        return _transposed_late(tensor(a), places)
    return ops.transpose(a, perm=tuple(places))


def _transposed_late(x: Any, perm: Sequence[Any]) -> Any:
    """`x` with its axes in an order that only running can tell: one axis after the other is brought to its place."""
    rank = len(x.dims)
    if len(perm) != rank:
        raise InvalidArgumentError(f"transpose: perm must have {rank} entries, one for each axis; got {len(perm)}.")
    wanted = [ops.cast(p if is_open(p) else as_scalar(p), dtype=dt.int64) for p in perm]
    wanted = [ops.where(ops.less(p, 0), ops.add(p, rank), p) for p in wanted]
    order = list(range(rank))  # the axis of `x` that lies at each place now; a number, or a tensor
    for place in range(rank - 1):
        at = [ops.equal(wanted[place], as_scalar(o)) for o in order]
        check(functools.reduce(ops.logical_or, at[place:]), "transpose: perm is no permutation of the axes.", [*wanted])
        where = functools.reduce(lambda chosen, j: ops.where(at[j], as_scalar(j), chosen), range(place, rank),
                                 as_scalar(place))
        x = choices.chosen(where, range(place, rank), functools.partial(_exchanged, x, place), "transpose")
        order = [_at_place(order, i, place, where) for i in range(rank)]
    if rank:
        check(ops.equal(wanted[-1], as_scalar(order[-1])), "transpose: perm is no permutation of the axes.", [*wanted])
    return x


def _exchanged(x: Any, place: int, other: int) -> Any:
    perm = list(range(len(x.dims)))
    perm[place], perm[other] = other, place
    return ops.transpose(x, perm=tuple(perm))


def _at_place(order: list[Any], i: int, place: int, where: Any) -> Any:
    """Element `i` of `order` after elements `place` and `where` were exchanged; `where` may be a tensor."""
    if i < place:
        return order[i]
    if i > place:
        return ops.where(ops.equal(where, i), as_scalar(order[place]), as_scalar(order[i]))
    return functools.reduce(lambda chosen, j: ops.where(ops.equal(where, j), as_scalar(order[j]), chosen),
                            range(place, len(order)), as_scalar(0))


# -- repetition ---------------------------------------------------------------------------------------
@public
def tile(input: Any, multiples: Any, name: str | None = None) -> Any:
    """A tensor repeated as a whole along its axes.

    Args:
        input: a tensor of any dtype.
        multiples: how many times along each axis.
        name: has no effect.
    Returns:
        A tensor whose axis i has size `input.shape[i] * multiples[i]`.
    Raises:
        tf.errors.InvalidArgumentError: there is not one multiple for each axis, or one is negative.

    >>> import twofold as tf
    >>> tf.tile([1, 2], [3]).numpy().tolist()
    [1, 2, 1, 2, 1, 2]
    """
    x, times = tensor(input), shape_arg(multiples)
    dims = x.dims
    if len(times) != len(dims):
        raise InvalidArgumentError(f"tile: Expected multiples argument to be a vector of length {len(dims)} but got "
                                   f"length {len(times)}.")
    for t in times:
        if isinstance(t, int) and t < 0:
            raise InvalidArgumentError(f"tile: Expected multiples to be non-negative; got {list(times)}.")
    apart = ops.reshape(x, shape=tuple(n for d in dims for n in (1, d)))
    repeated = ops.broadcast_to(apart, shape=tuple(n for d, t in zip(dims, times, strict=True) for n in (t, d)))
    return ops.reshape(repeated, shape=tuple(d * t for d, t in zip(dims, times, strict=True)))


@public
def repeat(input: Any, repeats: Any, axis: Any = None, name: str | None = None) -> Any:
    """A tensor with each slice along an axis repeated.

    Args:
        input: a tensor of any dtype.
        repeats: how many times: a number for all slices, or a vector with one for each, where a negative one leaves the
            slice out.
        axis: the axis; None for the flattened tensor.
        name: has no effect.
    Returns:
        A tensor of the same rank, or a vector where `axis` is None.
    Raises:
        tf.errors.InvalidArgumentError: the number for all slices is negative, or there is not one for each.

    >>> import twofold as tf
    >>> tf.repeat([[1, 2], [3, 4]], repeats=[1, 2], axis=0).numpy().tolist()
    [[1, 2], [3, 4], [3, 4]]
    """
    x = tensor(input)
    repeats = repeats._read_tensor() if hasattr(repeats, "_read_tensor") else repeats
    if axis is None:
        x, axis = ops.reshape(x, shape=(-1,)), 0
    at = one_axis(axis, len(x.dims))
    length = x.dims[at]
    if _is_late_vector(repeats):
        return _repeated_late(x, ops.cast(tensor(repeats), dtype=dt.int64), at)
    counts = ints(repeats, "repeats")
    if len(counts) == 1:
        if isinstance(counts[0], int) and counts[0] < 0:
            raise InvalidArgumentError(f"repeat: repeats must not be negative; got {counts[0]}.")
        return _repeat_all(x, counts[0], at)
    if len(counts) != length:
        raise InvalidArgumentError(f"repeat: repeats has {len(counts)} entries; axis {at} has size {length}.")
    places = np.repeat(np.arange(length, dtype=np.int64), np.maximum(np.array(counts, np.int64), 0))
    return ops.gather(x, places, axis=at)


def _is_late_vector(repeats: Any) -> bool:
    """Whether `repeats` gives a number for each slice, of which only running can tell some."""
    if isinstance(repeats, (list, tuple)):
        return len(repeats) > 1 and any(is_open(p) or isinstance(p, dm.Dim) for p in parts(repeats, "repeats"))
    if not hasattr(repeats, "known_elements") or not repeats.dims or repeats.dims == (1,):
        return False
    return repeats.known_elements() is None


def _repeated_late(x: Any, counts: Any, at: int) -> Any:
    if len(counts.dims) != 1 or not dm.require_eq(counts.dims[0], x.dims[at]):
        raise InvalidArgumentError(f"repeat: repeats has shape {counts.shape}; axis {at} has size {x.dims[at]}.")
    counts = ops.maximum(counts, 0)
    ends = ops.cumsum(counts, axis=0)
    total = one_size(ops.reduce_sum(counts), "repeats")
    places = ops.searchsorted(ends, counting(total, dt.int64), side="right", out_type=dt.int64)
    return ops.gather(x, places, axis=at)


def _repeat_all(x: Any, times: Any, at: int) -> Any:
    dims = x.dims
    apart = ops.expand_dims(x, axis=(at + 1,))
    repeated = ops.broadcast_to(apart, shape=(*dims[:at + 1], times, *dims[at + 1:]))
    return ops.reshape(repeated, shape=(*dims[:at], dims[at] * times, *dims[at + 1:]))
