"""Diagonals and bands of matrices. Re-exported by `twofold/linalg.py` under the same names.

A diagonal is a slice of the matrix laid out flat, whose step is the number of columns and one: so reading one copies
nothing where the matrix is contiguous, and everything is differentiable as slices are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from twofold._front.api import ints, is_open, one_part, one_size, parts, public, tensor
from twofold._ops.array_creation import as_scalar, constant_of, counting, padding_of
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.errors import InvalidArgumentError
from twofold.tracer.checks import check

__all__ = ["diag", "diag_part", "set_diag", "tensor_diag", "tensor_diag_part", "band_part"]

_ALIGNMENTS = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


# -- where diagonals lie ------------------------------------------------------------------------------
class _Place(NamedTuple):
    """A diagonal of which only running can tell how far it lies above the main one, or below; one of them is 0."""

    above: Any
    below: Any


def _above(k: Any) -> Any:
    """How far diagonal `k` lies above the main one; 0 for those below."""
    return k.above if isinstance(k, _Place) else max(0, k)


def _below(k: Any) -> Any:
    return k.below if isinstance(k, _Place) else max(0, -k)


def _length(rows: Any, columns: Any, k: Any) -> Any:
    """The length of diagonal `k`: 0 the main one, above it positive."""
    return dm.minimum(rows - _below(k), columns - _above(k))


def _longest(rows: Any, columns: Any, low: Any, high: Any) -> Any:
    return dm.minimum(rows - _below(high), columns - _above(low))


def _slice(rows: Any, columns: Any, k: Any) -> tuple[Any, Any, Any]:
    """Diagonal `k` as a slice of the flat matrix."""
    first, step = _below(k) * columns + _above(k), columns + 1
    return (first, first + _length(rows, columns, k) * step - columns, step)


def _read(flat: Any, rows: Any, columns: Any, k: int) -> Any:
    """Diagonal `k` of flat matrices."""
    lead = flat.dims[:-1]
    if not isinstance(columns, dm.Dim):
        return ops.strided_slice(flat, spec=_last(lead, _slice(rows, columns, k)))
    # No slice has a step of unknown size: in rows that are longer by one, the diagonal is the first column.
    first, length = _slice(rows, columns, k)[0], _length(rows, columns, k)
    longer = ops.pad(flat, constant_of(0, flat.dtype), paddings=(*[(0, 0)] * len(lead), (0, columns)))
    part = ops.slice_(longer, begin=(*[0] * len(lead), first), size=(*lead, length * (columns + 1)))
    turned = ops.reshape(part, shape=(*lead, length, columns + 1))
    return ops.strided_slice(turned, spec=(*_last(lead, (None, None, None)), 0))


def _written(flat: Any, values: Any, rows: Any, columns: Any, k: int) -> Any:
    """Flat matrices with diagonal `k` replaced."""
    lead = flat.dims[:-1]
    if not isinstance(columns, dm.Dim):
        return ops.strided_slice_assign(flat, values, spec=_last(lead, _slice(rows, columns, k)))
    inside = ops.fill(constant_of(True, dt.bool_), shape=(_length(rows, columns, k),))
    return ops.where(_spread(inside, rows, columns, k), _spread(values, rows, columns, k), flat)


def _spread(values: Any, rows: Any, columns: Any, k: int) -> Any:
    """Flat matrices with `values` on diagonal `k`, and zeros: what `_read` takes, given back."""
    *lead, length = values.dims
    first, zero, still = _slice(rows, columns, k)[0], constant_of(0, values.dtype), [(0, 0)] * len(lead)
    turned = ops.pad(ops.expand_dims(values, axis=(-1,)), zero, paddings=(*still, (0, 0), (0, columns)))
    part = ops.reshape(turned, shape=(*lead, length * (columns + 1)))
    rest = (rows + 1) * columns - first - length * (columns + 1)
    longer = ops.pad(part, zero, paddings=(*still, (first, rest)))
    return ops.slice_(longer, begin=(0,) * (len(lead) + 1), size=(*lead, rows * columns))


def _bounds(op: str, k: Any) -> tuple[Any, Any]:
    """The lowest and the highest diagonal that `k` names; one object where it names one."""
    numbers = parts(k, "k")
    if len(numbers) == 1 and not isinstance(numbers[0], int):
        value = as_scalar(numbers[0])
        place = _Place(one_size(ops.maximum(value, 0), "k"), one_size(ops.maximum(ops.negative(value), 0), "k"))
        return place, place
    low, high = numbers[0], numbers[-1]
    if not all(isinstance(n, int) for n in numbers):
        low, high = ints(k, "k", (-(1 << 63), 1 << 63))
    if len(numbers) not in (1, 2) or low > high:
        raise InvalidArgumentError(f"{op}: k must be an integer or a pair of them, the lower first; got {k!r}.")
    return low, high


def _require_inside(op: str, rows: Any, columns: Any, low: Any, high: Any) -> None:
    for k in (low, high):
        if k != 0 and not all(dm.require(n, "<=", dm.maximum(size - 1, 0))
                              for n, size in ((_below(k), rows), (_above(k), columns))):
            raise InvalidArgumentError(f"{op}: diagonal {k} is not in a matrix of shape [{rows}, {columns}].")


def _margin(align: str, k: int, length: int, longest: int) -> tuple[int, int]:
    """How much a diagonal is padded on the left and on the right to have the length of the longest."""
    if align not in _ALIGNMENTS:
        raise InvalidArgumentError(f"align must be one of {', '.join(_ALIGNMENTS)}; got {align!r}.")
    above, below = align.split("_")
    to_left = (k >= 0 and above == "LEFT") or (k <= 0 and below == "LEFT")
    return (0, longest - length) if to_left else (longest - length, 0)


def _matrix(op: str, value: Any) -> Any:
    x = tensor(value)
    if len(x.dims) < 2:
        raise InvalidArgumentError(f"{op}: input must be at least 2-dim, received shape: {x.shape}")
    return x


def _flat(x: Any) -> Any:
    return ops.reshape(x, shape=(*x.dims[:-2], x.dims[-2] * x.dims[-1]))


def _last(batch: tuple[Any, ...], part: Any) -> tuple[Any, ...]:
    """The spec of a slice of the last axis."""
    return (*[(None, None, None)] * len(batch), part)


# -- public -------------------------------------------------------------------------------------------
@public
def diag_part(input: Any, name: str = "diag_part", k: Any = 0, padding_value: Any = 0,
              align: str = "RIGHT_LEFT") -> Any:
    """The diagonal, or several, of each matrix of a batch.

    Args:
        input: a tensor of shape [..., rows, columns].
        name: has no effect.
        k: which: 0 the main diagonal, above it positive, below it negative; or a pair, the lowest and the highest.
        padding_value: what fills up shorter diagonals.
        align: on which side those above and those below the main diagonal lie: "RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT"
            or "RIGHT_RIGHT".
    Returns:
        A tensor of shape [..., length]; for a pair [..., number of diagonals, length], the highest first.
    Raises:
        tf.errors.InvalidArgumentError: the rank is less than 2, a diagonal is not in the matrix, or `align` is none of
            these.

    >>> import twofold as tf
    >>> tf.linalg.diag_part([[1, 2, 3], [4, 5, 6]]).numpy().tolist()
    [1, 5]
    >>> tf.linalg.diag_part([[1, 2, 3], [4, 5, 6]], k=(-1, 1)).numpy().tolist()
    [[2, 6], [1, 5], [4, 0]]
    """
    x = _matrix("diag_part", input)
    low, high = _bounds("diag_part", k)
    *batch, rows, columns = x.dims
    _require_inside("diag_part", rows, columns, low, high)
    flat, lead = _flat(x), tuple(batch)
    if low == high:
        return _read(flat, rows, columns, low)
    longest = _longest(rows, columns, low, high)
    padding = padding_of(padding_value, x.dtype)
    parts = []
    for d in range(high, low - 1, -1):
        part = _read(flat, rows, columns, d)
        around = (*[(0, 0)] * len(lead), _margin(align, d, _length(rows, columns, d), longest))
        parts.append(ops.expand_dims(ops.pad(part, padding, paddings=around), axis=(-2,)))
    return ops.concat(*parts, axis=-2)


def _with_diagonals(flat: Any, values: Any, rows: Any, columns: Any, low: int, high: int, align: str) -> Any:
    """The flat matrices with diagonals `low` to `high` replaced by the rows of `values`."""
    lead = flat.dims[:-1]
    if low == high:
        return _written(flat, values, rows, columns, low)
    longest = _longest(rows, columns, low, high)
    for row, d in enumerate(range(high, low - 1, -1)):
        length = _length(rows, columns, d)
        before, _ = _margin(align, d, length, longest)
        part = ops.strided_slice(values, spec=(*_last(lead, row), (before, before + length, None)))
        flat = _written(flat, part, rows, columns, d)
    return flat


@public
def set_diag(input: Any, diagonal: Any, name: str = "set_diag", k: Any = 0, align: str = "RIGHT_LEFT") -> Any:
    """Matrices with a diagonal, or several, replaced.

    Args:
        input: a tensor of shape [..., rows, columns].
        diagonal: what `tf.linalg.diag_part(input, k=k)` has the shape of.
        name: has no effect.
        k, align: as for `tf.linalg.diag_part`.
    Returns:
        A tensor of the shape of `input`.
    Raises:
        tf.errors.InvalidArgumentError: shapes or dtypes do not fit, or a diagonal is not in the matrix.

    >>> import twofold as tf
    >>> tf.linalg.set_diag([[1, 2], [3, 4]], [8, 9]).numpy().tolist()
    [[8, 2], [3, 9]]
    """
    x = _matrix("set_diag", input)
    values = tensor(diagonal, hint=x.dtype)
    low, high = _bounds("set_diag", k)
    *batch, rows, columns = x.dims
    _require_inside("set_diag", rows, columns, low, high)
    several = (high - low + 1,) if low != high else ()
    want = (*batch, *several, _longest(rows, columns, low, high))
    if not dm.require_same(values.dims, want):
        raise InvalidArgumentError(f"set_diag: diagonal has shape {values.shape}; expected {want}.")
    return ops.reshape(_with_diagonals(_flat(x), values, rows, columns, low, high, align), shape=x.dims)


@public
def diag(diagonal: Any, name: str = "diag", k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0,
         align: str = "RIGHT_LEFT") -> Any:
    """Matrices with given diagonals.

    Args:
        diagonal: a tensor of shape [..., length], or [..., number of diagonals, length] where `k` is a pair.
        name: has no effect.
        k, align: as for `tf.linalg.diag_part`.
        num_rows, num_cols: the size of the matrices; -1 for as small as possible, and square where both are -1.
        padding_value: what is elsewhere.
    Returns:
        A tensor of shape [..., num_rows, num_cols].
    Raises:
        tf.errors.InvalidArgumentError: the diagonals do not fit a matrix of that size.

    >>> import twofold as tf
    >>> tf.linalg.diag([1, 2]).numpy().tolist()
    [[1, 0], [0, 2]]
    """
    values = tensor(diagonal)
    low, high = _bounds("diag", k)
    several = low != high
    if len(values.dims) < 1 + several or (several and not dm.require_eq(values.dims[-2], high - low + 1)):
        raise InvalidArgumentError(f"diag: diagonal of shape {values.shape} does not hold "
                                   f"{high - low + 1 if several else 1} diagonals.")
    rows, columns = _matrix_size(values.dims[-1], low, high, one_part(num_rows, "num_rows"),
                                 one_part(num_cols, "num_cols"))
    batch = values.dims[:-2] if several else values.dims[:-1]
    padding = padding_of(padding_value, values.dtype)
    flat = ops.fill(padding, shape=(*batch, rows * columns))
    return ops.reshape(_with_diagonals(flat, values, rows, columns, low, high, align), shape=(*batch, rows, columns))


def _matrix_size(longest: Any, low: Any, high: Any, rows: Any, columns: Any) -> tuple[Any, Any]:
    least_rows, least_columns = longest + _below(high), longest + _above(low)
    if is_open(rows) or is_open(columns):
        rows, columns = _late_size(rows, columns, least_rows, least_columns)
    if _is_left(rows) and _is_left(columns):
        rows = columns = dm.maximum(least_rows, least_columns)
    rows = least_rows if _is_left(rows) else rows
    columns = least_columns if _is_left(columns) else columns
    if any(isinstance(n, dm.Dim) for n in (rows, columns)):
        _check_fit(rows, columns, least_rows, least_columns)
    if (dm.decide(rows, "<", least_rows) or dm.decide(columns, "<", least_columns)
            or (dm.decide(rows, "!=", least_rows) and dm.decide(columns, "!=", least_columns))):
        raise InvalidArgumentError(f"diag: diagonals of length {longest} do not fit a matrix of shape [{rows}, "
                                   f"{columns}]; one of at least [{least_rows}, {least_columns}], with equality for "
                                   "one of the two, is needed.")
    return rows, columns


def _check_fit(rows: Any, columns: Any, least_rows: Any, least_columns: Any) -> None:
    """Test when the function runs what `_matrix_size` requires of sizes."""
    if rows == least_rows and columns == least_columns or rows == columns == dm.maximum(least_rows, least_columns):
        return
    down, across = ops.subtract(as_scalar(rows), as_scalar(least_rows)), ops.subtract(
        as_scalar(columns), as_scalar(least_columns))
    check(ops.equal(ops.minimum(down, across), 0), "diag: the diagonals do not fit a matrix of that size.",
          [as_scalar(rows), as_scalar(columns)])


def _is_left(size: Any) -> bool:
    return type(size) is int and size == -1


def _late_size(rows: Any, columns: Any, least_rows: Any, least_columns: Any) -> tuple[Any, Any]:
    """The size of the matrices where the requested one is known only when it runs."""
    down, across = as_scalar(rows), as_scalar(columns)
    least = as_scalar(least_rows), as_scalar(least_columns)
    larger, neither = ops.maximum(*least), ops.logical_and(ops.equal(down, -1), ops.equal(across, -1))
    down = ops.where(neither, larger, ops.where(ops.equal(down, -1), least[0], down))
    across = ops.where(neither, larger, ops.where(ops.equal(across, -1), least[1], across))
    return one_size(down, "num_rows"), one_size(across, "num_cols")


@public
def tensor_diag(diagonal: Any, name: str | None = None) -> Any:
    """A tensor of twice the rank with the values on its generalised diagonal, and zeros elsewhere.

    Args:
        diagonal: a numeric tensor of shape [d1, .., dk].
        name: has no effect.
    Returns:
        A tensor of shape [d1, .., dk, d1, .., dk].

    >>> import twofold as tf
    >>> tf.linalg.tensor_diag([1, 2]).numpy().tolist()
    [[1, 0], [0, 2]]
    """
    x = tensor(diagonal)
    flat = ops.reshape(x, shape=(-1,)) if 0 not in x.dims else ops.reshape(x, shape=(0,))
    size = flat.dims[0]
    zeros = ops.fill(constant_of(0, x.dtype), shape=(size * size,))
    return ops.reshape(_with_diagonals(zeros, flat, size, size, 0, 0, _ALIGNMENTS[0]), shape=(*x.dims, *x.dims))


@public
def tensor_diag_part(input: Any, name: str | None = None) -> Any:
    """The generalised diagonal of a tensor whose shape is one shape twice.

    Args:
        input: a tensor of shape [d1, .., dk, d1, .., dk].
        name: has no effect.
    Returns:
        A tensor of shape [d1, .., dk].
    Raises:
        tf.errors.InvalidArgumentError: the shape is no other one twice.

    >>> import twofold as tf
    >>> tf.linalg.tensor_diag_part([[1, 2], [3, 4]]).numpy().tolist()
    [1, 4]
    """
    x = tensor(input)
    half = len(x.dims) // 2
    if not half or not dm.require_same(x.dims[:half], x.dims[half:]):
        raise InvalidArgumentError(f"tensor_diag_part: input must have the shape [d1, .., dk, d1, .., dk]; got "
                                   f"{x.shape}.")
    size = 1
    for d in x.dims[:half]:
        size = size * d
    flat = ops.reshape(x, shape=(size * size,))
    return ops.reshape(_read(flat, size, size, 0), shape=x.dims[:half])


@public
def band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Any:
    """Matrices with everything outside of a band around the main diagonal set to zero.

    Args:
        input: a tensor of shape [..., rows, columns].
        num_lower: how many diagonals below the main one stay, at most as many as there are rows; all where it is
            negative.
        num_upper: how many above stay, at most as many as there are columns; all where it is negative.
        name: has no effect.
    Returns:
        A tensor of the same shape.
    Raises:
        tf.errors.InvalidArgumentError: the rank is less than 2, or a number is too large.

    >>> import twofold as tf
    >>> tf.linalg.band_part([[1, 2], [3, 4]], 0, -1).numpy().tolist()
    [[1, 2], [0, 4]]
    """
    x = _matrix("band_part", input)
    rows, columns = x.dims[-2:]
    lower = _within(one_part(num_lower, "num_lower"), rows, "num_lower", "rows")
    upper = _within(one_part(num_upper, "num_upper"), columns, "num_upper", "columns")
    above = ops.subtract(counting(columns, dt.int64), ops.reshape(counting(rows, dt.int64), shape=(rows, 1)))
    keep = None
    if not (isinstance(lower, int) and lower < 0):
        keep = _least(above, lower)
    if not (isinstance(upper, int) and upper < 0):
        inside = _most(above, upper)
        keep = inside if keep is None else ops.logical_and(keep, inside)
    return x if keep is None else ops.where(keep, x, constant_of(0, x.dtype))


def _within(number: Any, size: Any, name: str, what: str) -> Any:
    """A number of diagonals, which is at most the number of rows or columns."""
    text = f"band_part: {name} must be negative or at most the number of {what}"
    if is_open(number):
        check(ops.less_equal(as_scalar(number), as_scalar(size)), f"{text}.", [number, as_scalar(size)])
    elif not dm.require(number, "<=", size):
        raise InvalidArgumentError(f"{text}, {size}; got {number}.")
    return number


def _least(above: Any, lower: Any) -> Any:
    """Where diagonals are at most `lower` below the main one; a negative number, which running tells, is no limit."""
    if isinstance(lower, int):
        return ops.greater_equal(above, constant_of(-lower, dt.int64))
    limit = as_scalar(lower)
    inside = ops.greater_equal(above, ops.negative(limit))
    return ops.logical_or(inside, ops.less(limit, 0)) if is_open(lower) else inside


def _most(above: Any, upper: Any) -> Any:
    """Where diagonals are at most `upper` above the main one; as `_least`."""
    if isinstance(upper, int):
        return ops.less_equal(above, constant_of(upper, dt.int64))
    limit = as_scalar(upper)
    inside = ops.less_equal(above, limit)
    return ops.logical_or(inside, ops.less(limit, 0)) if is_open(upper) else inside
