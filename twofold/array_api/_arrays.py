"""Functions that move, join and pick elements, sort and search."""

from __future__ import annotations

from typing import Any, NamedTuple

import twofold as tf
from twofold._front.api import listed, public
from twofold._ops import numpy_arrays as _shared
from twofold._ops import numpy_order as _order
from twofold._ops import numpy_picking as _picking
from twofold._ops import numpy_reductions as _reductions
from twofold._ops.numpy_operands import NUMBERS, axes_of, axis_of

from ._rules import default_int, operand, operands

__all__ = [
    "argmax", "argmin", "argsort", "broadcast_arrays", "broadcast_to", "broadcast_shapes", "concat", "count_nonzero",
    "diff", "expand_dims", "flip", "isin", "moveaxis", "nonzero", "permute_dims", "repeat", "reshape", "roll",
    "searchsorted", "sort", "squeeze", "stack", "take", "take_along_axis", "tile", "unique_all", "unique_counts",
    "unique_inverse", "unique_values", "unstack", "where",
]


# -- shapes ---------------------------------------------------------------------------------------
@public
def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape in which several shapes broadcast.

    Raises:
        ValueError: they do not.

    >>> import twofold.array_api as xp
    >>> xp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    result = tf.TensorShape([])
    for shape in shapes:
        result = tf.broadcast_static_shape(result, tf.TensorShape(shape))
    return tuple([size for size in result.as_list() if size is not None])


@public
def broadcast_to(x: Any, /, shape: Any) -> Any:
    """A tensor repeated to a shape.

    >>> import twofold.array_api as xp
    >>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2)).numpy().tolist()
    [[1, 2], [1, 2]]
    """
    return tf.broadcast_to(operand(x), shape)


@public
def broadcast_arrays(*arrays: Any) -> list[Any]:
    """Tensors repeated to the shape in which all broadcast.

    >>> import twofold.array_api as xp
    >>> [t.numpy().tolist() for t in xp.broadcast_arrays(xp.asarray([1, 2]), xp.asarray(3))]
    [[1, 2], [3, 3]]
    """
    tensors = [operand(x) for x in arrays]
    shape = tf.constant([], tf.int32)
    for x in tensors:
        shape = tf.broadcast_dynamic_shape(shape, tf.shape(x))
    return [tf.broadcast_to(x, shape) for x in tensors]


@public
def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Any:
    """The same elements in another shape.

    Args:
        x: a tensor.
        shape: sizes; one may be -1 and is what is left.
        copy: accepted, without effect: tensors never change.

    >>> import twofold.array_api as xp
    >>> xp.reshape(xp.asarray([1, 2, 3, 4]), (2, -1)).numpy().tolist()
    [[1, 2], [3, 4]]
    """
    del copy
    return tf.reshape(operand(x), shape)


@public
def expand_dims(x: Any, /, axis: Any) -> Any:
    """A tensor with an axis of size 1 put in, or one for each of several.

    >>> import twofold.array_api as xp
    >>> xp.expand_dims(xp.asarray([1, 2]), axis=0).shape
    TensorShape([1, 2])
    """
    return _shared.expanded(operand(x), axis)


@public
def squeeze(x: Any, /, axis: Any) -> Any:
    """A tensor without axes of size 1.

    Raises:
        ValueError: one of them has another size.

    >>> import twofold.array_api as xp
    >>> xp.squeeze(xp.asarray([[1, 2]]), axis=0).shape
    TensorShape([2])
    """
    x = operand(x)
    axes = axes_of(axis, x.ndim)
    if any(x.shape[n] not in (1, None) for n in axes):
        raise ValueError(f"squeeze: not all of the axes {axis} of shape {x.shape} have size 1.")
    return tf.squeeze(x, list(axes)) if axes else x


@public
def permute_dims(x: Any, /, axes: Any) -> Any:
    """A tensor with its axes in another order.

    >>> import twofold.array_api as xp
    >>> xp.permute_dims(xp.asarray([[1, 2], [3, 4]]), (1, 0)).numpy().tolist()
    [[1, 3], [2, 4]]
    """
    x = operand(x)
    return tf.transpose(x, list(axes_of(tuple(listed(axes, "axes")), x.ndim)))


@public
def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
    """A tensor with some axes at other places, and the others in the order in which they were.

    >>> import twofold.array_api as xp
    >>> xp.moveaxis(xp.zeros((2, 3, 4)), 0, -1).shape
    TensorShape([3, 4, 2])
    """
    return _shared.moved(operand(x), source, destination)


@public
def flip(x: Any, /, *, axis: Any = None) -> Any:
    """A tensor with its elements in reverse along an axis, several, or all.

    >>> import twofold.array_api as xp
    >>> xp.flip(xp.asarray([1, 2])).numpy().tolist()
    [2, 1]
    """
    return _shared.flipped(operand(x), axis)


@public
def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    """A tensor with its elements moved on, those that leave at one end coming in at the other.

    >>> import twofold.array_api as xp
    >>> xp.roll(xp.asarray([1, 2, 3]), 1).numpy().tolist()
    [3, 1, 2]
    """
    return _shared.rolled(operand(x), shift, axis)


@public
def tile(x: Any, repetitions: Any, /) -> Any:
    """A tensor put beside itself several times along each axis; new axes come first.

    >>> import twofold.array_api as xp
    >>> xp.tile(xp.asarray([1, 2]), (2,)).numpy().tolist()
    [1, 2, 1, 2]
    """
    return _shared.tiled(operand(x), repetitions)


@public
def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Any:
    """A tensor with each element several times.

    Args:
        x: a tensor.
        repeats: how many times; one number for all, or one for each place along the axis.
        axis: along which; by default that of the flat tensor.

    >>> import twofold.array_api as xp
    >>> xp.repeat(xp.asarray([1, 2]), 2).numpy().tolist()
    [1, 1, 2, 2]
    """
    return tf.repeat(operand(x), repeats, axis=axis)


# -- joining --------------------------------------------------------------------------------------
@public
def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """Tensors one after the other along an axis, or flat where it is None; their dtypes meet.

    >>> import twofold.array_api as xp
    >>> xp.concat([xp.asarray([1]), xp.asarray([2])]).numpy().tolist()
    [1, 2]
    """
    parts = operands(*listed(arrays, "arrays"))
    return tf.concat([tf.reshape(x, [-1]) for x in parts], 0) if axis is None else tf.concat(parts, axis)


@public
def stack(arrays: Any, /, *, axis: int = 0) -> Any:
    """Tensors side by side along a new axis; their dtypes meet.

    >>> import twofold.array_api as xp
    >>> xp.stack([xp.asarray(1), xp.asarray(2)]).numpy().tolist()
    [1, 2]
    """
    return tf.stack(operands(*listed(arrays, "arrays")), axis)


@public
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The slices of a tensor along an axis.

    >>> import twofold.array_api as xp
    >>> [int(t) for t in xp.unstack(xp.asarray([1, 2]))]
    [1, 2]
    """
    return tuple(tf.unstack(operand(x), axis=axis))


# -- picking --------------------------------------------------------------------------------------
@public
def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """Slices at some places along an axis, which a vector need not name.

    >>> import twofold.array_api as xp
    >>> xp.take(xp.asarray([5, 6, 7]), xp.asarray([2, 0])).numpy().tolist()
    [7, 5]
    """
    x = operand(x)
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: an axis must be named for a tensor of rank {x.ndim}.")
    return _picking.taken(x, operand(indices), 0 if axis is None else axis)


@public
def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """For each line along an axis, the elements at places of its own.

    >>> import twofold.array_api as xp
    >>> xp.take_along_axis(xp.asarray([[1, 2], [3, 4]]), xp.asarray([[1], [0]])).numpy().tolist()
    [[2], [3]]
    """
    return _picking.taken_along(operand(x), operand(indices), axis)


@public
def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """Elements of `x1` where a condition is true, and of `x2` where it is not; their dtypes meet.

    >>> import twofold.array_api as xp
    >>> xp.where(xp.asarray([True, False]), xp.asarray([1, 2]), 0).numpy().tolist()
    [1, 0]
    """
    if isinstance(x1, NUMBERS) and isinstance(x2, NUMBERS):
        x1 = tf.constant(x1, max((type(x1), type(x2)), key=[bool, int, float, complex].index))
    x1, x2 = operands(x1, x2)
    return tf.where(operand(condition), x1, x2)


@public
def nonzero(x: Any, /) -> tuple[Any, ...]:
    """The places of the elements that are not 0, one tensor for each axis.

    Raises:
        ValueError: the tensor has no axis.

    >>> import twofold.array_api as xp
    >>> [t.numpy().tolist() for t in xp.nonzero(xp.asarray([[0, 3], [4, 0]]))]
    [[0, 1], [1, 0]]
    """
    x = operand(x)
    if not x.ndim:
        raise ValueError("nonzero: a tensor without axes has no places.")
    return tuple(tf.unstack(tf.cast(tf.where(tf.cast(x, tf.bool)), default_int), axis=1))


@public
def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """How far each element is from the one before.

    Args:
        x: a tensor.
        axis: along which.
        n: how many times to take differences.
        prepend, append: tensors to put before and after x along the axis first.

    >>> import twofold.array_api as xp
    >>> xp.diff(xp.asarray([1, 4, 9])).numpy().tolist()
    [3, 5]
    """
    parts = [operand(part) for part in (prepend, x, append) if part is not None]
    return _picking.differences(concat(parts, axis=axis) if len(parts) > 1 else parts[0], n, axis)


# -- searching and sorting ------------------------------------------------------------------------
@public
def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """The place of the largest element, the first if there are several, as int32.

    >>> import twofold.array_api as xp
    >>> int(xp.argmax(xp.asarray([1, 5, 4])))
    1
    """
    return _reductions.place(tf.argmax, operand(x), axis, keepdims, default_int)


@public
def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """The place of the smallest element, the first if there are several, as int32.

    >>> import twofold.array_api as xp
    >>> int(xp.argmin(xp.asarray([1, 5, 4])))
    0
    """
    return _reductions.place(tf.argmin, operand(x), axis, keepdims, default_int)


@public
def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """How many elements are not 0, as int32.

    >>> import twofold.array_api as xp
    >>> int(xp.count_nonzero(xp.asarray([1, 0, 4])))
    2
    """
    return tf.math.count_nonzero(operand(x), axis=axis, keepdims=keepdims, dtype=default_int)


@public
def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """Where values would go into a sorted vector, as int32.

    Args:
        x1: a vector.
        x2: values, a tensor or a number.
        side: "left" for the place before equal elements, "right" for that behind them.
        sorter: the places that sort x1; by default it is sorted.

    >>> import twofold.array_api as xp
    >>> xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([3, 4])).numpy().tolist()
    [1, 2]
    """
    ordered, values = operands(x1, x2)
    return _order.placed(ordered if sorter is None else _picking.taken(ordered, operand(sorter), 0), values, side)


@public
def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Any:
    """Whether each element of a tensor is among those of another.

    >>> import twofold.array_api as xp
    >>> xp.isin(xp.asarray([1, 2, 3]), xp.asarray([3, 1])).numpy().tolist()
    [True, False, True]
    """
    contained = _order.contained(*operands(x1, x2))
    return tf.logical_not(contained) if invert else contained


@public
def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The elements in rising or falling order along an axis.

    Args:
        x: a tensor.
        axis: along which.
        descending: whether the order falls.
        stable: accepted, without effect: equal elements always stay in order.

    >>> import twofold.array_api as xp
    >>> xp.sort(xp.asarray([3, 1, 2]), descending=True).numpy().tolist()
    [3, 2, 1]
    """
    del stable
    ordered = _order.ordered_along(operand(x), axis)
    return _shared.flipped(ordered, axis) if descending else ordered


@public
def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The places of the elements in rising or falling order, as int32.

    Args:
        x: a tensor.
        axis: along which.
        descending: whether the order falls.
        stable: accepted, without effect: equal elements always stay in order.

    >>> import twofold.array_api as xp
    >>> xp.argsort(xp.asarray([3, 1, 2])).numpy().tolist()
    [1, 2, 0]
    """
    del stable
    x = operand(x)
    if not descending:
        return _order.order_along(x, axis)
    axis = axis_of(axis, x.ndim)
    places = _order.order_along(_shared.flipped(x, axis), axis)
    last = tf.shape(x)[axis] - 1
    return _shared.flipped(last - places, axis)


# -- sets -----------------------------------------------------------------------------------------
class UniqueAll(NamedTuple):
    """Distinct elements, the first place of each, which of them each element is, and how often each is there."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """Distinct elements, and how often each is there."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """Distinct elements, and which of them each element is."""

    values: Any
    inverse_indices: Any


@public
def unique_all(x: Any, /) -> UniqueAll:
    """The distinct elements in rising order, with places and counts; each NaN is distinct.

    >>> import twofold.array_api as xp
    >>> [t.numpy().tolist() for t in xp.unique_all(xp.asarray([3, 1, 3]))]
    [[1, 3], [1, 0], [1, 0, 1], [1, 2]]
    """
    x = operand(x)
    values, first, inverse, counts = _order.distinct(tf.reshape(x, [-1]))
    return UniqueAll(values, first, tf.reshape(inverse, tf.shape(x)), counts)


@public
def unique_counts(x: Any, /) -> UniqueCounts:
    """The distinct elements in rising order, and how often each is there.

    >>> import twofold.array_api as xp
    >>> [t.numpy().tolist() for t in xp.unique_counts(xp.asarray([3, 1, 3]))]
    [[1, 3], [1, 2]]
    """
    every = unique_all(x)
    return UniqueCounts(every.values, every.counts)


@public
def unique_inverse(x: Any, /) -> UniqueInverse:
    """The distinct elements in rising order, and which of them each element is.

    >>> import twofold.array_api as xp
    >>> [t.numpy().tolist() for t in xp.unique_inverse(xp.asarray([3, 1, 3]))]
    [[1, 3], [1, 0, 1]]
    """
    every = unique_all(x)
    return UniqueInverse(every.values, every.inverse_indices)


@public
def unique_values(x: Any, /) -> Any:
    """The distinct elements in rising order.

    >>> import twofold.array_api as xp
    >>> xp.unique_values(xp.asarray([3, 1, 3])).numpy().tolist()
    [1, 3]
    """
    return unique_all(x).values
