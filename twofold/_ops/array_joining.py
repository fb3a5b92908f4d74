"""Putting tensors together and taking them apart: concat, stack, split, pad. Re-exported by `twofold/array.py`."""

from __future__ import annotations

import functools
from typing import Any

from twofold._front.api import (
    SymbolicValueError,
    axis_span,
    ints,
    is_open,
    listed,
    numbered,
    one_int,
    one_size,
    parts,
    public,
    tensor,
    user_line,
)
from twofold._ops.array_creation import as_scalar, counting, padding_of
from twofold._ops.array_shape import one_axis
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.dims import Dim
from twofold.ir.errors import InvalidArgumentError

__all__ = ["concat", "stack", "unstack", "split", "pad", "reverse", "roll"]


def alike(values: Any) -> list[Any]:
    """Tensors of one dtype: that of the first tensor among the values, which numbers and arrays take."""
    given = listed(values, "values")
    like = next((v.dtype for v in given if hasattr(v, "dims") or hasattr(v, "_read_tensor")), None)
    if like is None and given:
        like = tensor(given[0]).dtype
    return [tensor(v, hint=like) for v in given]


@public
def concat(values: Any, axis: Any, name: str = "concat") -> Any:
    """Tensors joined along an axis that they have.

    Args:
        values: a list of tensors of one dtype, whose shapes differ along `axis` at most; or one tensor.
        axis: the axis.
        name: has no effect.
    Returns:
        A tensor.
    Raises:
        tf.errors.InvalidArgumentError: shapes or dtypes do not fit, or `axis` is out of range.

    >>> import twofold as tf
    >>> tf.concat([[[1, 2]], [[3, 4], [5, 6]]], 0).numpy().tolist()
    [[1, 2], [3, 4], [5, 6]]
    """
    at = one_int(axis, "axis", axis_span(values[0] if isinstance(values, (list, tuple)) and values else values))
    if not isinstance(values, (list, tuple)):
        return tensor(values)
    return ops.concat(*alike(values), axis=at)


@public
def stack(values: Any, axis: Any = 0, name: str = "stack") -> Any:
    """Tensors of one shape joined along a new axis.

    Args:
        values: a list of tensors of one shape and dtype, or a tensor whose rows are stacked.
        axis: where the new axis is in the result.
        name: has no effect.
    Returns:
        A tensor of one rank more.
    Raises:
        tf.errors.InvalidArgumentError: shapes or dtypes differ. ValueError: `axis` is out of range.

    >>> import twofold as tf
    >>> tf.stack([[1, 4], [2, 5], [3, 6]], axis=1).numpy().tolist()
    [[1, 2, 3], [4, 5, 6]]
    """
    parts = alike(values if isinstance(values, (list, tuple)) else unstack(values))
    if not parts:
        raise InvalidArgumentError("stack: there is nothing to stack.")
    rank = len(parts[0].dims) + 1
    at = one_int(axis, "axis", (-rank, rank))
    if not -rank <= at < rank:
        raise InvalidArgumentError(f"stack: Argument `axis` = {at} not in range [{-rank}, {rank})")
    for n, part in enumerate(parts):
        if part.dims != parts[0].dims and not dm.require_same(part.dims, parts[0].dims):
            raise InvalidArgumentError(f"stack: Shapes of all inputs must match: values[0].shape = {parts[0].shape} "
                                       f"!= values[{n}].shape = {part.shape}")
    return ops.concat(*[ops.expand_dims(p, axis=(at % rank,)) for p in parts], axis=at % rank)


@public
def unstack(value: Any, num: int | None = None, axis: Any = 0, name: str = "unstack") -> list[Any]:
    """The slices of a tensor along an axis, as a list of tensors without that axis.

    Args:
        value: a tensor of rank 1 or more.
        num: how many there are; found from the shape by default.
        axis: the axis.
        name: has no effect.
    Returns:
        A list of tensors; no data is copied.
    Raises:
        ValueError: `num` is not the size of the axis, or `axis` is out of range.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.unstack([[1, 2], [3, 4]], axis=1)]
    [[1, 3], [2, 4]]
    """
    x = tensor(value)
    at = one_axis(axis, len(x.dims))
    count = x.dims[at] if num is None else int(num)
    if num is not None and isinstance(x.dims[at], Dim):
        dm.require(x.dims[at], "==", count)
    elif count != x.dims[at]:
        raise InvalidArgumentError(f"unstack: num is {count}, but axis {at} has size {x.dims[at]}.")
    if isinstance(count, Dim):
        raise SymbolicValueError(f"unstack: the size of axis {at} must be known when tf.function traces, or num given."
                                 f"\n  {user_line()}")
    whole = ((None, None, None),) * at
    return [ops.strided_slice(x, spec=(*whole, i)) for i in numbered(count, "unstack")]


@public
def split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split") -> list[Any]:
    """A tensor cut in pieces along an axis.

    Args:
        value: a tensor of rank 1 or more.
        num_or_size_splits: how many equal pieces, or a list of their sizes, of which one may be -1 and is found from
            the others.
        axis: the axis.
        num: the number of sizes; has no effect.
        name: has no effect.
    Returns:
        A list of tensors; no data is copied.
    Raises:
        tf.errors.InvalidArgumentError: the axis does not divide equally, or the sizes do not add up to it.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.split([1, 2, 3, 4, 5], [2, -1])]
    [[1, 2], [3, 4, 5]]
    """
    x = tensor(value)
    at = one_axis(axis, len(x.dims))
    length = x.dims[at]
    many = isinstance(num_or_size_splits, (list, tuple)) or len(getattr(num_or_size_splits, "shape", ())) > 0
    if many:
        sizes = _given_sizes(parts(num_or_size_splits, "num_or_size_splits"), length)
    else:
        sizes = _equal_sizes(one_int(num_or_size_splits, "num_or_size_splits"), length, at)
    whole, begin, pieces = ((None, None, None),) * at, 0, []
    for size in sizes:
        pieces.append(ops.strided_slice(x, spec=(*whole, (begin, begin + size, None))))
        begin = begin + size
    return pieces


def _equal_sizes(count: Any, length: Any, axis: int) -> tuple[Any, ...]:
    if count < 1:
        raise InvalidArgumentError(f"split: the number of pieces must be at least 1; got {count}.")
    if not dm.require_eq(length % count, 0):
        raise InvalidArgumentError(f"split: Number of ways to split should evenly divide the split dimension, but got "
                                   f"split_dim {axis} (size = {length}) and num_split {count}")
    return (length // count,) * len(numbered(count, "split"))


def _given_sizes(sizes: list[Any], length: Any) -> tuple[Any, ...]:
    if any(map(is_open, sizes)):
        return _late_sizes(sizes, length)
    known = sum(s for s in sizes if s != -1)
    unknown = sum(s == -1 for s in sizes)
    if unknown > 1 or any(isinstance(s, int) and s < -1 for s in sizes):
        raise InvalidArgumentError(f"split: sizes must not be negative, and one at most may be -1; got {list(sizes)}.")
    if not dm.require(known, "<=" if unknown else "==", length):
        raise InvalidArgumentError(f"split: the sizes {list(sizes)} do not add up to {length}, the size of the axis.")
    return tuple(length - known if s == -1 else s for s in sizes)


def _late_sizes(sizes: list[Any], length: Any) -> tuple[Any, ...]:
    """The sizes of a split where some are known only when it runs; one may be -1, which takes the rest."""
    if any(type(s) is int and s == -1 for s in sizes):
        known = sum((one_size(s, "num_or_size_splits") for s in sizes if not (type(s) is int and s == -1)), 0)
        if not dm.require(known, "<=", length):
            raise InvalidArgumentError(f"split: the sizes do not add up to {length}, the size of the axis.")
        return tuple(length - known if type(s) is int and s == -1 else one_size(s, "num_or_size_splits") for s in sizes)
    each = [as_scalar(s) for s in sizes]
    known = functools.reduce(ops.add, [ops.maximum(e, 0) for e in each])
    rest = ops.subtract(as_scalar(length), known)
    resolved = tuple(one_size(ops.where(ops.equal(e, -1), rest, e), "num_or_size_splits") if is_open(s) else s
                     for s, e in zip(sizes, each, strict=True))
    if not dm.require(sum(resolved, 0), "==", length):
        raise InvalidArgumentError(f"split: the sizes do not add up to {length}, the size of the axis.")
    return resolved


# -- padding ------------------------------------------------------------------------------------------
@public
def pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: str | None = None) -> Any:
    """A tensor with elements added around it.

    Args:
        tensor: a tensor of any dtype.
        paddings: for each axis how many elements come before and after it.
        mode: "CONSTANT"; "REFLECT" repeats the tensor as in a mirror that leaves out the edge; "SYMMETRIC" as in one
            that repeats it. Upper or lower case.
        constant_values: the scalar that "CONSTANT" adds.
        name: has no effect.
    Returns:
        A tensor of the same dtype.
    Raises:
        tf.errors.InvalidArgumentError: paddings are negative, not one pair for each axis, or larger than what can be
            mirrored. ValueError: the mode is none of these.

    >>> import twofold as tf
    >>> tf.pad([1, 2, 3], [[1, 2]]).numpy().tolist()
    [0, 1, 2, 3, 0, 0]
    >>> tf.pad([1, 2, 3], [[2, 0]], "REFLECT").numpy().tolist()
    [3, 2, 1, 2, 3]
    """
    how = mode.upper() if isinstance(mode, str) else mode
    if how not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
        raise ValueError(f"Value of argument `mode` expected to be one of 'CONSTANT', 'REFLECT', or 'SYMMETRIC'. "
                         f"Received `mode` = {mode!r}")
    x = _as_tensor(tensor)
    around = _paddings(paddings)
    if how == "CONSTANT":
        return ops.pad(x, padding_of(constant_values, x.dtype), paddings=around)
    if len(around) != len(x.dims):
        raise InvalidArgumentError(f"pad: paddings must be {len(x.dims)} pairs, one for each axis; got {len(around)}.")
    for axis, (before, after) in enumerate(around):
        x = _mirrored(x, axis, before, after, 1 if how == "REFLECT" else 0)
    return x


_as_tensor = tensor  # `tensor` is an argument's name above


def _paddings(paddings: Any) -> tuple[tuple[Any, ...], ...]:
    if isinstance(paddings, (list, tuple)):
        return tuple(ints(p, "paddings") for p in paddings)
    rows = _as_tensor(paddings)
    flat = ints(rows, "paddings")
    return tuple([flat[2 * i:2 * i + 2] for i in range(len(flat) // 2)]) if len(rows.dims) == 2 else (flat,)


def _mirrored(x: Any, axis: int, before: Any, after: Any, edge: int) -> Any:
    """`x` with its mirror image on both sides of an axis; `edge` elements at the mirror are left out."""
    length = x.dims[axis]
    if not all(dm.require(n, ">=", 0) and dm.require(n, "<=", length - edge) for n in (before, after)):
        raise InvalidArgumentError(f"pad: paddings must be between 0 and {length - edge} along axis {axis}, which has "
                                   f"size {length}; got {before} and {after}.")
    whole, parts = ((None, None, None),) * axis, [x]
    if dm.decide(before, "==", 0) is not True:
        parts.insert(0, _turned(x, whole, edge, edge + before, axis))
    if dm.decide(after, "==", 0) is not True:
        parts.append(_turned(x, whole, length - edge - after, length - edge, axis))
    return ops.concat(*parts, axis=axis) if len(parts) > 1 else x


def _turned(x: Any, whole: tuple[Any, ...], begin: Any, end: Any, axis: int) -> Any:
    return ops.reverse(ops.strided_slice(x, spec=(*whole, (begin, end, None))), axis=(axis,))


# -- order --------------------------------------------------------------------------------------------
@public
def reverse(tensor: Any, axis: Any, name: str | None = None) -> Any:
    """A tensor with the order of elements reversed along axes.

    Args:
        tensor: a tensor of any dtype.
        axis: a list of axes.
        name: has no effect.
    Returns:
        A tensor of the same shape; no data is copied.
    Raises:
        tf.errors.InvalidArgumentError: an axis is out of range or named twice.

    >>> import twofold as tf
    >>> tf.reverse([[1, 2], [3, 4]], [1]).numpy().tolist()
    [[2, 1], [4, 3]]
    """
    return ops.reverse(tensor, axis=ints(axis, "axis", axis_span(tensor)))


@public
def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Any:
    """A tensor whose elements have moved along axes; what leaves at one end comes in at the other.

    Args:
        input: a tensor of rank 1 or more.
        shift: by how many places, for each of the axes; negative numbers move toward the start.
        axis: the axis or axes; shifts of one named several times add up.
        name: has no effect.
    Returns:
        A tensor of the same shape.
    Raises:
        tf.errors.InvalidArgumentError: an axis is out of range, or there is not one shift for each.

    >>> import twofold as tf
    >>> tf.roll([0, 1, 2, 3, 4], shift=2, axis=0).numpy().tolist()
    [3, 4, 0, 1, 2]
    """
    x = tensor(input)
    shifts, axes = parts(shift, "shift"), ints(axis, "axis", axis_span(x))
    if len(shifts) != len(axes):
        raise InvalidArgumentError(f"roll: shift and axis must have the same size; got {len(shifts)} and {len(axes)}.")
    for by, at in zip(shifts, axes, strict=True):
        x = _rolled(x, by, one_axis(at, len(x.dims)))
    return x


def _rolled(x: Any, by: Any, axis: int) -> Any:
    length = x.dims[axis]
    if isinstance(length, Dim) or not isinstance(by, int):
        return _rolled_late(x, by, axis)
    return _moved(x, by % length, axis) if length else ops.identity(x)


def _rolled_late(x: Any, by: Any, axis: int) -> Any:
    """`x` moved by what only running can tell, or along an axis of unknown size."""
    length = x.dims[axis]
    places = ops.subtract(counting(length, dt.int64), as_scalar(by))
    return ops.gather(x, ops.floormod(places, ops.maximum(as_scalar(length), 1)), axis=axis)


def _moved(x: Any, by: Any, axis: int) -> Any:
    length = x.dims[axis]
    before, after = (0,) * axis, x.dims[axis + 1:]
    rest = (0,) * len(after)
    head = ops.slice_(x, begin=(*before, 0, *rest), size=(*x.dims[:axis], length - by, *after))
    tail = ops.slice_(x, begin=(*before, length - by, *rest), size=(*x.dims[:axis], by, *after))
    return ops.concat(tail, head, axis=axis)
