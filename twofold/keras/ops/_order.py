"""Functions that sort, search, count and compare sets of elements, with NumPy's names."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._ops.numpy_arrays import moved
from twofold._ops.numpy_order import contained, distinct, order_along, ordered_along, placed

from ..keras_ops import operation
from ..operands import axis_of, floating, meeting, numeric, same, size_of, tensor
from ._pairs import isclose

__all__ = [
    "allclose", "argpartition", "argsort", "bincount", "digitize", "histogram", "isin", "nonzero", "searchsorted",
    "sort", "unique",
]


@operation("numpy")
def sort(x: Any, axis: int | None = -1) -> Any:
    """The elements in rising order along an axis; of the flat tensor, if `axis` is None.

    >>> import twofold as tf
    >>> tf.keras.ops.sort([3, 1, 2]).numpy().tolist()
    [1, 2, 3]
    """
    return ordered_along(tensor(x), axis)


@operation("numpy")
def argsort(x: Any, axis: int | None = -1) -> Any:
    """The places of the elements in rising order, as int32; equal ones stay in order.

    >>> import twofold as tf
    >>> tf.keras.ops.argsort([3, 1, 2]).numpy().tolist()
    [1, 2, 0]
    """
    return order_along(tensor(x), axis)


@operation("numpy", tensors="x")
def argpartition(x: Any, kth: int, axis: int | None = -1) -> Any:
    """Places such that the element at place `kth` is where it would be in rising order: none before it is larger.

    Args:
        x: a tensor.
        kth: a place.
        axis: along which; that of the flat tensor, if None.
    Returns:
        int32 places.
    Raises:
        ValueError: there is no such place.

    >>> import twofold as tf
    >>> int(tf.keras.ops.argpartition([3, 1, 2], 0)[0])
    1
    """
    x = tensor(x)
    count = x.shape.num_elements() if axis is None else x.shape[axis]
    if count is not None and not -count <= kth < count:
        raise ValueError(f"kth ({kth}) is out of bounds for {count} elements.")
    return argsort(x, axis)


@operation("numpy", "SearchSorted", tensors="sorted_sequence values")
def searchsorted(sorted_sequence: Any, values: Any, side: str = "left") -> Any:
    """Where values would go into a sorted vector, as int32.

    Args:
        sorted_sequence: a vector in rising order.
        values: a tensor.
        side: "left" for the place before equal elements, "right" for that behind them.
    Raises:
        ValueError: the sequence is no vector.

    >>> import twofold as tf
    >>> tf.keras.ops.searchsorted([1, 3, 5], [3, 4]).numpy().tolist()
    [1, 2]
    """
    ordered, values = same(tensor(sorted_sequence), tensor(values))
    if ordered.ndim != 1:
        raise ValueError(f"`searchsorted` only supports 1-D sorted sequences. Received: shape {ordered.shape}")
    if side not in ("left", "right"):
        raise ValueError(f'side must be "left" or "right"; got {side!r}.')
    return placed(ordered, values, side)


@operation("numpy")
def digitize(x: Any, bins: Any) -> Any:
    """The numbers of the bins into which elements fall: how many of the bounds are not above each, as int32.

    Args:
        x: a tensor.
        bins: bounds in rising order.

    >>> import twofold as tf
    >>> tf.keras.ops.digitize([0.5, 1.0, 9.0], [1.0, 2.0]).numpy().tolist()
    [0, 1, 2]
    """
    return searchsorted(tensor(bins), numeric(x), "right")


@operation("numpy")
def nonzero(x: Any) -> Any:
    """The places of the elements that are not 0.

    Returns:
        A tuple of int32 vectors, one for each axis.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.keras.ops.nonzero([[0, 3], [4, 0]])]
    [[0, 1], [1, 0]]
    """
    places = tf.cast(tf.where(tf.cast(tensor(x), tf.bool)), tf.int32)
    return tuple(tf.unstack(places, axis=1))


@operation("numpy", "AllClose", tensors="x1 x2")
def allclose(x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Whether all elements of two tensors are nearly equal; arguments as for `isclose`.

    >>> import twofold as tf
    >>> bool(tf.keras.ops.allclose([1.0, 2.0], [1.000001, 2.0]))
    True
    """
    return tf.reduce_all(isclose(x1, x2, rtol, atol, equal_nan))


@operation("numpy", "IsIn", tensors="x1 x2")
def isin(x1: Any, x2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """Whether each element of a tensor is among those of another.

    Args:
        x1, x2: tensors; their dtypes meet.
        assume_unique: accepted, without effect.
        invert: whether to ask if it is not.

    >>> import twofold as tf
    >>> tf.keras.ops.isin([1, 2, 3], [3, 1]).numpy().tolist()
    [True, False, True]
    """
    x1, x2 = same(tensor(x1), tensor(x2))
    return tf.logical_not(contained(x1, x2)) if invert else contained(x1, x2)


@operation("numpy")
def bincount(x: Any, weights: Any = None, minlength: int = 0, sparse: bool = False) -> Any:
    """How often each natural number is among integers, or the sums of the weights that go with it.

    Args:
        x: integers, [n] or [rows, n], which are counted row by row.
        weights: numbers of x's shape.
        minlength: the result is as long, at least.
        sparse: whether the result is a sparse tensor.
    Returns:
        int32 counts, or sums in the dtype of x and the weights.

    >>> import twofold as tf
    >>> tf.keras.ops.bincount([1, 3, 1]).numpy().tolist()
    [0, 2, 0, 1]
    """
    x = tensor(x)
    if sparse:
        return tf.sparse.bincount(x, weights, axis=-1, minlength=minlength or None)
    whole = x if x.dtype in (tf.int32, tf.int64) else tf.cast(x, tf.int32)
    if weights is None:
        return tf.math.bincount(whole, minlength=minlength, axis=-1)
    weights = tensor(weights)
    target = tf.as_dtype(meeting(x, weights))
    computed = target if target in (tf.int32, tf.int64, tf.float32, tf.float64) else (
        tf.float32 if target.is_floating else tf.int32)
    return tf.cast(tf.math.bincount(whole, tf.cast(weights, computed), minlength=minlength, axis=-1), target)


@operation("numpy")
def histogram(x: Any, bins: int = 10, range: Any = None) -> Any:
    """How many elements fall into each of some bins of equal width.

    Args:
        x: a tensor.
        bins: how many.
        range: where the first begins and the last ends; by default at the smallest and at the largest element.
    Returns:
        The counts, in x's dtype, and the `bins + 1` bounds, floating; the last bin has its upper bound in it.
    Raises:
        ValueError: `bins` is no positive integer, or `range` is no pair of rising numbers.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.keras.ops.histogram([1.0, 2.0, 2.5, 5.0], 2)]
    [[3.0, 1.0], [1.0, 3.0, 5.0]]
    """
    if not isinstance(bins, int) or bins <= 0:
        raise ValueError(f"Argument `bins` should be a positive integer. Received: bins={bins}")
    x = numeric(x)
    flat = tf.reshape(floating(x), [-1])
    if range:
        if len(range) < 2 or range[1] < range[0]:
            raise ValueError(f"range must hold two rising numbers; got {range}.")
        low, high = (tensor(r, flat.dtype) for r in range)
    else:
        low, high = tf.reduce_min(flat), tf.reduce_max(flat)
    single = tf.equal(low, high)
    half = tf.constant(0.5, flat.dtype)
    low, high = tf.where(single, low - half, low), tf.where(single, high + half, high)
    bounds = tf.linspace(low, high, bins + 1)
    place = tf.minimum(tf.searchsorted(bounds, flat, side="right") - 1, bins - 1)
    inside = tf.logical_and(flat >= low, flat <= high)
    counts = tf.math.unsorted_segment_sum(tf.cast(inside, tf.int32), tf.where(inside, place, -1), bins)
    return tf.cast(counts, x.dtype), bounds


def _row_keys(rows: Any) -> Any:
    """A number for each row, which rises with the rows in the order of dictionaries."""
    keys = distinct(rows[:, 0])[2]
    for n in range(1, rows.shape[1]):
        column = distinct(rows[:, n])[2]
        keys = distinct(keys * tf.shape(rows)[0] + column)[2]
    return keys


def _sized(x: Any, size: int, fill: Any) -> Any:
    """The first rows of a tensor, or all of them and as many of a filling as are left."""
    x = x[:size]
    more = size - tf.shape(x)[0]
    rest = tf.concat([more[tf.newaxis], tf.shape(x)[1:]], 0)
    return tf.concat([x, tf.broadcast_to(tensor(fill, x.dtype), rest)], 0)


@operation("numpy")
def unique(x: Any, sorted: bool = True, return_index: bool = False, return_inverse: bool = False,
           return_counts: bool = False, axis: int | None = None, size: int | None = None,
           fill_value: Any = None) -> Any:
    """The distinct elements, or slices along an axis, in rising order.

    Args:
        x: a tensor; with an axis, the sizes of the others are known.
        sorted: accepted, without effect: the order always rises.
        return_index: whether to return the places where each is first.
        return_inverse: whether to return which of them each element is, in the shape of x or along the axis.
        return_counts: whether to return how often each is there.
        axis: whose slices to compare; by default elements are.
        size: how many to return: the first ones, or all and as many of `fill_value` as are left.
        fill_value: by default the first of them; places and counts are filled with 0.
    Returns:
        A tensor, or a tuple of tensors where more is to be returned.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.keras.ops.unique([3, 1, 3], return_counts=True)]
    [[1, 3], [1, 2]]
    """
    x = tensor(x)
    if axis is None:
        values, first, inverse, counts = distinct(tf.reshape(x, [-1]))
        inverse = tf.reshape(inverse, tf.shape(x))
    else:
        axis = axis_of(axis, x.ndim)
        slices = moved(x, axis, 0)
        width = 1
        for n in slices.shape[1:].as_list():
            width *= n
        rows = tf.reshape(slices, [size_of(slices, 0), width])
        _, first, inverse, counts = distinct(_row_keys(rows))
        values = tf.gather(slices, first)
    if size is not None:
        values = _sized(values, size, values[0] if fill_value is None else fill_value)
        first, counts = _sized(first, size, 0), _sized(counts, size, 0)
    values = values if axis is None else moved(values, 0, axis)
    more = [t for t, wanted in ((first, return_index), (inverse, return_inverse), (counts, return_counts)) if wanted]
    return (values, *more) if more else values


