"""Tensors made from shapes and numbers: fills, ranges, identities, one-hot. Re-exported by `twofold/array.py`."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from twofold._front.api import ints, is_open, one_int, one_part, one_size, public, shape_arg, tensor
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.dims import Dim
from twofold.ir.errors import InvalidArgumentError
from twofold.ir.op import tracing

__all__ = ["fill", "zeros", "ones", "zeros_like", "ones_like", "range", "linspace", "eye", "one_hot", "meshgrid",
           "sequence_mask"]

_KEPT_UP_TO = 1024  # numbers that masks and one-hot vectors count with are made once up to this size


def constant_of(value: Any, dtype: dt.DType) -> Any:
    """The number `value` as a scalar tensor of `dtype`."""
    return tensor(np.array(value, dtype.np))


def as_scalar(value: Any) -> Any:
    """An integer, a size or an integer scalar as an int64 scalar: what `parts` gives, to compute with."""
    if isinstance(value, Dim):
        return tracing().size(value)
    return ops.cast(tensor(value, None if hasattr(value, "dims") else dt.int64), dtype=dt.int64)


def _filled(value: int, shape: tuple[Any, ...], dtype: dt.DType) -> Any:
    if dtype is dt.string:
        return ops.fill(tensor(b"" if not value else b"1"), shape=shape)
    return ops.fill(constant_of(value, dtype), shape=shape)


def padding_of(value: Any, dtype: dt.DType) -> Any:
    """The scalar that pads elements of `dtype`; the number 0 is the zero of any dtype, an empty text among strings."""
    if type(value) is int and value == 0:
        return tensor(b"") if dtype is dt.string else constant_of(0, dtype)
    return tensor(value, hint=dtype)


@public
def fill(dims: Any, value: Any, name: str | None = None) -> Any:
    """A tensor whose elements all have one value.

    Args:
        dims: its shape.
        value: a scalar.
        name: has no effect.
    Returns:
        A tensor of the dtype of `value`.
    Raises:
        tf.errors.InvalidArgumentError: `value` is no scalar, or a size is negative.

    >>> import twofold as tf
    >>> tf.fill([2, 3], 9).numpy().tolist()
    [[9, 9, 9], [9, 9, 9]]
    """
    return ops.fill(value, shape=shape_arg(dims))


@public
def zeros(shape: Any, dtype: Any = dt.float32, name: str | None = None) -> Any:
    """A tensor of zeros.

    Args:
        shape: its shape.
        dtype: its dtype; false for bool, and empty strings for string.
        name: has no effect.

    >>> import twofold as tf
    >>> tf.zeros([2, 2], tf.int32).numpy().tolist()
    [[0, 0], [0, 0]]
    """
    return _filled(0, shape_arg(shape), dt.as_dtype(dtype))


@public
def ones(shape: Any, dtype: Any = dt.float32, name: str | None = None) -> Any:
    """A tensor of ones.

    Args:
        shape: its shape.
        dtype: its dtype; true for bool.
        name: has no effect.

    >>> import twofold as tf
    >>> tf.ones([3]).numpy().tolist()
    [1.0, 1.0, 1.0]
    """
    return _filled(1, shape_arg(shape), dt.as_dtype(dtype))


@public
def zeros_like(input: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Zeros of the shape of a tensor.

    Args:
        input: a tensor.
        dtype: the dtype of the result; that of `input` by default.
        name: has no effect.

    >>> import twofold as tf
    >>> tf.zeros_like([[1, 2]]).numpy().tolist()
    [[0, 0]]
    """
    x = tensor(input)
    return _filled(0, x.dims, x.dtype if dtype is None else dt.as_dtype(dtype))


@public
def ones_like(input: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Ones of the shape of a tensor.

    Args:
        input: a tensor.
        dtype: the dtype of the result; that of `input` by default.
        name: has no effect.

    >>> import twofold as tf
    >>> tf.ones_like([[1, 2]]).numpy().tolist()
    [[1, 1]]
    """
    x = tensor(input)
    return _filled(1, x.dims, x.dtype if dtype is None else dt.as_dtype(dtype))


# -- ranges -------------------------------------------------------------------------------------------
def _common_dtype(given: tuple[Any, ...]) -> dt.DType:
    """The widest dtype among numbers: int32, int64, float16, bfloat16, float32, float64; or the one of all tensors."""
    order = (dt.int32, dt.int64, dt.float16, dt.bfloat16, dt.float32, dt.float64)
    dtypes = [tensor(v).dtype for v in given]
    if all(f in order for f in dtypes):
        return max(dtypes, key=order.index)
    own = {f for f, v in zip(dtypes, given, strict=True) if type(v) is not int}
    if len(own) != 1:
        raise InvalidArgumentError(f"range: start, limit and delta have dtypes {', '.join(f.name for f in dtypes)}; "
                                   "give one dtype.")
    return own.pop()


@public
def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> Any:
    """The numbers `start`, `start + delta`, ... that come before `limit`.

    Args:
        start: the first number; the limit, with a start of 0, where `limit` is None.
        limit: where to stop; it is not included itself.
        delta: the difference of neighbours, not 0.
        dtype: the dtype of the result; by default the widest of the arguments'.
        name: has no effect.
    Returns:
        A vector.
    Raises:
        tf.errors.InvalidArgumentError: `delta` is 0 or leads away from `limit`.

    >>> import twofold as tf
    >>> tf.range(3, 18, 3).numpy().tolist()
    [3, 6, 9, 12, 15]
    >>> tf.range(5).numpy().tolist()
    [0, 1, 2, 3, 4]
    """
    if limit is None:
        start, limit = 0, start
    given = (start, limit, delta)
    if dtype is None and all(type(v) is int and -(1 << 31) <= v < 1 << 31 for v in given):
        ascends = delta and (limit - start) * delta >= 0  # else the op raises
        size = len(builtins.range(start, limit, delta)) if ascends else None
        return ops.range_(*[constant_of(v, dt.int32) for v in given], size=size)
    want = _common_dtype(given) if dtype is None else dt.as_dtype(dtype)
    values = [tensor(v, hint=want) for v in given]
    return ops.range_(*[_as(v, want) for v in values], size=_count_of(given, values, want))


_LARGEST = {dt.float32: (1 << 23) - 1, dt.float64: (1 << 52) - 1}  # integers up to which floats count exactly


def _count_of(given: Sequence[Any], values: Sequence[Any], dtype: dt.DType) -> Any:
    """How many numbers a range in a trace has, where that follows from constants and sizes; else None.

    Args:
        given: the arguments, among which Python's integers are such also where the range is one of floats.
        values: these as tensors.
        dtype: of the range. Floats count in their own precision, which integers of some size are beyond.
    """
    if tracing() is None or any(v.dims for v in values):
        return None
    if not any(hasattr(v, "parts") for v in values):
        return _counted(values, dtype)
    integers = [v if type(v) is int else _integer(x, dtype) for v, x in zip(given, values, strict=True)]
    if any(v is None for v in integers):
        return None
    begin, end, step = [one_part(v, "range") for v in integers]
    if not isinstance(step, int) or step == 0 or is_open(begin) or is_open(end):
        return None
    low, high = (begin, end) if step > 0 else (end, begin)
    if not dm.decide(low, "<=", high):
        return None
    if dtype.is_floating and not _counts_exactly(low, high, dtype):
        return None
    return dm.ceil_div(high - low, abs(step))


def _integer(x: Any, dtype: dt.DType) -> Any:
    """A scalar of a range of this dtype as an integer: one that it is, or was cast from; None for no such number."""
    if x.dtype.is_integer:
        return x
    if x.dtype is not dtype:
        return None
    if hasattr(x, "parts"):
        before = tracing().before_cast(x)
        return before if before is not None and before.dtype.is_integer else None
    number = float(x)
    return int(number) if number.is_integer() else None


def _counts_exactly(low: Any, high: Any, dtype: dt.DType) -> bool:
    """Whether integers between these are exact in a float's precision, and so are quotients of them, rounded up."""
    largest = _LARGEST.get(dtype)
    return largest is not None and dm.require(-largest, "<=", low) and dm.require(high, "<=", largest)


def _counted(values: Sequence[Any], dtype: dt.DType) -> int | None:
    """How many numbers a range has whose arguments are known; None where the op will refuse them."""
    from twofold.eager.kernels.indexing import range_size  # where it is loaded, ops run at once
    from twofold.runtime.calls import KernelCheck

    if not all(v.dtype is dtype or v.dtype.is_integer for v in values):
        return None
    start, limit, delta = [np.asarray(v).astype(dtype.np)[()] for v in values]
    try:
        return range_size(start, limit, delta)
    except KernelCheck:
        return None


@public
def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: Any = 0) -> Any:
    """Evenly spaced numbers from `start` to `stop`, both included.

    Args:
        start: a tensor; integers become float64.
        stop: a tensor of the same dtype, which broadcasts with `start`.
        num: how many; one alone is `start`.
        name: has no effect.
        axis: where the new axis of size `num` is in the result.
    Returns:
        A tensor.
    Raises:
        tf.errors.InvalidArgumentError: `num` is negative.

    >>> import twofold as tf
    >>> tf.linspace(10.0, 12.0, 3).numpy().tolist()
    [10.0, 11.0, 12.0]
    """
    first = tensor(start)
    last = tensor(stop, hint=first.dtype)
    if first.dtype.is_integer:
        first, last = ops.cast(first, dtype=dt.float64), ops.cast(last, dtype=dt.float64)
    count = one_size(num, "num")
    shape = dm.broadcast_shapes(first.dims, last.dims)
    first, last = ops.broadcast_to(first, shape=shape), ops.broadcast_to(last, shape=shape)
    rank = len(shape) + 1
    at = one_int(axis, "axis", (-rank, rank))
    if not -rank <= at < rank:
        raise InvalidArgumentError(f"linspace: axis {at} is out of range; expected {-rank} <= axis < {rank}.")
    at %= rank
    return _spaced(ops.expand_dims(first, axis=(at,)), ops.expand_dims(last, axis=(at,)), count, at)


def _spaced(first: Any, last: Any, count: Any, at: int) -> Any:
    """`count` numbers from `first` to `last` along axis `at`, which has size 1 in both. The ends are exact."""
    axis = tuple(count if n == at else 1 for n in builtins.range(len(first.dims)))
    gaps = _size_as(dm.maximum(count - 1, 1), first.dtype)
    place = ops.reshape(counting(count, dt.int64), shape=axis)
    along = ops.reshape(counting(count, first.dtype), shape=axis)
    values = ops.add(first, ops.multiply(ops.divide(ops.subtract(last, first), gaps), along))
    values = ops.where(ops.equal(place, _size_as(count - 1, dt.int64)), last, values)
    return ops.where(ops.equal(place, constant_of(0, dt.int64)), first, values)


def _size_as(size: Any, dtype: dt.DType) -> Any:
    """A size as a scalar tensor."""
    return tracing().size_as(size, dtype) if isinstance(size, Dim) else constant_of(size, dtype)


@functools.lru_cache(maxsize=64)
def _kept(size: int, dtype: dt.DType) -> Any:
    return tensor(np.arange(size).astype(dtype.np))


def counting(size: Any, dtype: dt.DType) -> Any:
    """0, 1, .. size - 1."""
    if type(size) is int and size <= _KEPT_UP_TO:
        return _kept(size, dtype)
    return ops.range_(constant_of(0, dtype), _size_as(size, dtype), constant_of(1, dtype), size=size)


@public
def meshgrid(*args: Any, **kwargs: Any) -> list[Any]:
    """Coordinates of a grid: each of N vectors repeated along the other N - 1 axes.

    Args:
        *args: vectors of one dtype.
        **kwargs: `indexing`, "xy" (by default: the first two axes are exchanged) or "ij"; `name` has no effect.
    Returns:
        A list of N tensors of rank N.
    Raises:
        ValueError: `indexing` is neither. TypeError: another keyword is given.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.meshgrid([1, 2, 3], [4, 5])]
    [[[1, 2, 3], [1, 2, 3]], [[4, 4, 4], [5, 5, 5]]]
    """
    indexing = kwargs.pop("indexing", "xy")
    kwargs.pop("name", None)
    if kwargs:
        raise TypeError(f"'{next(iter(kwargs))}' is an invalid keyword argument for this function")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Argument `indexing` parameter must be either 'xy' or 'ij', got '{indexing}'")
    vectors = [ops.reshape(tensor(a), shape=(-1,)) for a in args]
    count = len(vectors)
    places = list(builtins.range(count))
    if indexing == "xy" and count > 1:
        places[:2] = 1, 0
    sizes: list[Any] = [1] * count
    for vector, place in zip(vectors, places, strict=True):
        sizes[place] = vector.dims[0]
    return [ops.broadcast_to(ops.reshape(v, shape=tuple(-1 if i == p else 1 for i in builtins.range(count))),
                             shape=tuple(sizes)) for v, p in zip(vectors, places, strict=True)]


# -- from comparisons ---------------------------------------------------------------------------------
@public
def eye(num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = dt.float32,
        name: str | None = None) -> Any:
    """An identity matrix, or a batch of them.

    Args:
        num_rows: how many rows.
        num_columns: how many columns; as many as rows by default.
        batch_shape: leading axes to repeat the matrix along.
        dtype: the dtype of the result.
        name: has no effect.
    Returns:
        A tensor of shape `batch_shape + [num_rows, num_columns]`.
    Raises:
        tf.errors.InvalidArgumentError: a size is negative.

    >>> import twofold as tf
    >>> tf.eye(2, 3).numpy().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    (rows,) = ints(num_rows, "num_rows")
    columns = rows if num_columns is None else ints(num_columns, "num_columns")[0]
    if any(isinstance(n, int) and n < 0 for n in (rows, columns)):
        raise InvalidArgumentError(f"eye: Arguments `num_rows` and `num_columns` must be non-negative integer values. "
                                   f"Received: num_rows={rows}, num_columns={columns}")
    want = dt.as_dtype(dtype)
    same = ops.equal(ops.reshape(counting(rows, dt.int64), shape=(rows, 1)), counting(columns, dt.int64))
    matrix = ops.cast(same, dtype=want)
    return matrix if batch_shape is None else ops.broadcast_to(matrix, shape=(*shape_arg(batch_shape), rows, columns))


@public
def one_hot(indices: Any, depth: Any, on_value: Any = None, off_value: Any = None, axis: Any = None, dtype: Any = None,
            name: str | None = None) -> Any:
    """Vectors that have one value at an index and another elsewhere.

    Args:
        indices: an integer tensor; where an index is outside of [0, depth) all of its vector is `off_value`.
        depth: how long the vectors are.
        on_value: the value at the index, 1 by default.
        off_value: the value elsewhere, 0 by default.
        axis: where the axis of the vectors is in the result; the last by default.
        dtype: the dtype of the result; by default that of the values, else float32.
        name: has no effect.
    Returns:
        A tensor of one rank more than `indices`.
    Raises:
        TypeError: dtypes contradict each other. tf.errors.InvalidArgumentError: `depth` is negative, `indices` are no
            integers, or `axis` is out of range.

    >>> import twofold as tf
    >>> tf.one_hot([0, 2, -1], 3).numpy().tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """
    places = tensor(indices)
    if not places.dtype.is_integer:
        raise InvalidArgumentError(f"one_hot: indices must be integers; got dtype {places.dtype.name}.")
    want = _value_dtype(on_value, off_value, dtype)
    on = tensor(1 if on_value is None else on_value, hint=want)
    off = tensor(0 if off_value is None else off_value, hint=want)
    on, off = (_as(v, want) for v in (on, off))
    (size,) = ints(depth, "depth")
    if isinstance(size, int) and size < 0:
        raise InvalidArgumentError(f"one_hot: depth must be non-negative, got: {size}")
    rank = len(places.dims) + 1
    at = -1 if axis is None else one_int(axis, "axis", (-rank, rank))
    if not -rank <= at < rank:
        raise InvalidArgumentError(f"one_hot: Expected axis to be -1 or between [0, {rank}).  But received: {at}")
    at %= rank
    if places.dtype is not dt.int32:  # depth may be more than a smaller type holds
        places = _as(places, dt.int64)
    along = tuple(size if i == at else 1 for i in builtins.range(rank))
    hit = ops.equal(ops.expand_dims(places, axis=(at,)), ops.reshape(counting(size, places.dtype), shape=along))
    return ops.where(hit, on, off)


def _as(x: Any, dtype: dt.DType) -> Any:
    return x if x.dtype is dtype else ops.cast(x, dtype=dtype)


def _value_dtype(on: Any, off: Any, dtype: Any) -> dt.DType:
    dtypes = [tensor(v).dtype for v in (on, off) if v is not None]
    if dtype is not None:
        want = dt.as_dtype(dtype)
        for have, value in zip(dtypes, [v for v in (on, off) if v is not None], strict=True):
            if have is not want and (hasattr(value, "dtype") or have.is_floating and want.is_integer):
                raise TypeError(f"dtype {have.name} of on_value or off_value does not match dtype parameter "
                                f"{want.name}")
        return want
    if len(dtypes) == 2 and dtypes[0] is not dtypes[1]:
        raise TypeError(f"dtype {dtypes[0].name} of on_value does not match dtype {dtypes[1].name} of off_value")
    return dtypes[0] if dtypes else dt.float32


@public
def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = dt.bool_, name: str | None = None) -> Any:
    """For each length as many true elements, followed by false ones.

    Args:
        lengths: an integer tensor.
        maxlen: the size of the last axis; the largest length by default.
        dtype: the dtype of the result.
        name: has no effect.
    Returns:
        A tensor of shape `lengths.shape + [maxlen]`.

    >>> import twofold as tf
    >>> tf.sequence_mask([1, 3], 4).numpy().tolist()
    [[True, False, False, False], [True, True, True, False]]
    """
    counts = tensor(lengths)
    if maxlen is None:
        least = constant_of([0], counts.dtype)
        maxlen = ops.reduce_max(ops.concat(least, ops.reshape(counts, shape=(-1,)), axis=0))
    size = one_size(maxlen, "maxlen")
    mask = ops.less(counting(size, counts.dtype), ops.expand_dims(counts, axis=(len(counts.dims),)))
    return ops.cast(mask, dtype=dt.as_dtype(dtype))
