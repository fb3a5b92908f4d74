"""Diagonals and bands of matrices. Re-exported by `twofold/linalg.py` under the same names.

A diagonal is a slice of the matrix laid out flat, whose step is the number of columns and one: so reading one copies
nothing where the matrix is contiguous, and everything is differentiable as slices are.
"""

from __future__ import annotations

from typing import Any

from twofold._api import ints, public, tensor
from twofold._array_creation import constant_of, counting, padding_of
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.errors import InvalidArgumentError

__all__ = ["diag", "diag_part", "set_diag", "tensor_diag", "tensor_diag_part", "band_part"]

_ALIGNMENTS = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


# -- where diagonals lie ------------------------------------------------------------------------------
def _length(rows: Any, columns: Any, k: int) -> Any:
    """The length of diagonal `k`: 0 the main one, above it positive."""
    return dm.minimum(rows + min(0, k), columns - max(0, k))


def _longest(rows: Any, columns: Any, low: int, high: int) -> Any:
    return dm.minimum(rows + min(high, 0), columns - max(low, 0))


def _slice(rows: Any, columns: Any, k: int) -> tuple[Any, Any, Any]:
    """Diagonal `k` as a slice of the flat matrix."""
    first, step = max(0, -k) * columns + max(0, k), columns + 1
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


def _bounds(op: str, k: Any) -> tuple[int, int]:
    found = ints(k, "k")
    low, high = found[0], found[-1]
    if len(found) not in (1, 2) or low > high:
        raise InvalidArgumentError(f"{op}: k must be an integer or a pair of them, the lower first; got {k!r}.")
    return low, high


def _require_inside(op: str, rows: Any, columns: Any, low: int, high: int) -> None:
    for k in (low, high):
        if k != 0 and not (dm.require(-k, "<", rows) and dm.require(k, "<", columns)):
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
    if len(values.dims) < 1 + several or (several and values.dims[-2] != high - low + 1):
        raise InvalidArgumentError(f"diag: diagonal of shape {values.shape} does not hold {high - low + 1} diagonals.")
    rows: Any
    columns: Any
    rows, columns = _matrix_size(values.dims[-1], low, high, *ints(num_rows, "num_rows"), *ints(num_cols, "num_cols"))
    batch = values.dims[:-2] if several else values.dims[:-1]
    padding = padding_of(padding_value, values.dtype)
    flat = ops.fill(padding, shape=(*batch, rows * columns))
    return ops.reshape(_with_diagonals(flat, values, rows, columns, low, high, align), shape=(*batch, rows, columns))


def _matrix_size(longest: dm.DimLike, low: int, high: int, rows: dm.DimLike,
                 columns: dm.DimLike) -> tuple[dm.DimLike, dm.DimLike]:
    least_rows, least_columns = longest - min(high, 0), longest + max(low, 0)
    if rows == -1 and columns == -1:
        rows = columns = dm.maximum(least_rows, least_columns)
    rows = least_rows if rows == -1 else rows
    columns = least_columns if columns == -1 else columns
    if (dm.decide(rows, "<", least_rows) or dm.decide(columns, "<", least_columns)
            or (dm.decide(rows, "!=", least_rows) and dm.decide(columns, "!=", least_columns))):
        raise InvalidArgumentError(f"diag: diagonals of length {longest} do not fit a matrix of shape [{rows}, "
                                   f"{columns}]; one of at least [{least_rows}, {least_columns}], with equality for "
                                   "one of the two, is needed.")
    return rows, columns


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
        num_lower: how many diagonals below the main one stay; all where it is negative.
        num_upper: how many above stay; all where it is negative.
        name: has no effect.
    Returns:
        A tensor of the same shape.
    Raises:
        tf.errors.InvalidArgumentError: the rank is less than 2.

    >>> import twofold as tf
    >>> tf.linalg.band_part([[1, 2], [3, 4]], 0, -1).numpy().tolist()
    [[1, 2], [0, 4]]
    """
    x = _matrix("band_part", input)
    rows, columns = x.dims[-2:]
    (lower,), (upper,) = ints(num_lower, "num_lower"), ints(num_upper, "num_upper")
    above = ops.subtract(counting(columns, dt.int64), ops.reshape(counting(rows, dt.int64), shape=(rows, 1)))
    keep = None
    if lower >= 0:
        keep = ops.greater_equal(above, constant_of(-lower, dt.int64))
    if upper >= 0:
        inside = ops.less_equal(above, constant_of(upper, dt.int64))
        keep = inside if keep is None else ops.logical_and(keep, inside)
    return x if keep is None else ops.where(keep, x, constant_of(0, x.dtype))
