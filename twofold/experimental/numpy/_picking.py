"""Functions that pick elements: by places, diagonals and conditions; and differences."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import listed, public
from twofold._ops import numpy_picking as _shared
from twofold._ops.numpy_operands import size_of

from ._rules import same, tensor

__all__ = [
    "compress", "diagonal", "diff", "nonzero", "select", "take", "take_along_axis", "tril", "triu", "where",
]


@public
def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "clip") -> Any:
    """Elements, or slices, at some places.

    Args:
        a: a tensor.
        indices: integers of any shape.
        axis: along which; by default that of the flat tensor.
        out: must be None.
        mode: what places outside are: the nearest inside with "clip", counted on from the other end with "wrap".
    Raises:
        ValueError: the mode is another, or `out` is given.

    >>> import twofold as tf
    >>> tf.experimental.numpy.take([[1, 2], [3, 4]], [0, 9], axis=1).numpy().tolist()
    [[1, 2], [3, 4]]
    """
    if out is not None:
        raise ValueError("out argument is not supported in take.")
    if mode not in ("raise", "clip", "wrap"):
        raise ValueError(f"Invalid mode '{mode}' for take")
    if mode == "raise":
        raise ValueError("The 'raise' mode to take is not supported.")
    a, places = tensor(a), _shared.places(tensor(indices))
    if axis is None:
        a, axis = tf.reshape(a, [-1]), 0
    count = tf.cast(size_of(a, axis), places.dtype)
    places = tf.clip_by_value(places, 0, count - 1) if mode == "clip" else tf.math.floormod(places, count)
    return tf.gather(a, places, axis=axis)


@public
def take_along_axis(arr: Any, indices: Any, axis: int | None) -> Any:
    """For each line along an axis, the elements at places of its own.

    Args:
        arr: a tensor.
        indices: integers, of as many axes as arr; the others broadcast. Negative ones count from the end.
        axis: along which; of None both are flat.
    Raises:
        ValueError: the numbers of axes differ.

    >>> import twofold as tf
    >>> tf.experimental.numpy.take_along_axis([[1, 2], [3, 4]], [[1], [0]], axis=1).numpy().tolist()
    [[2], [3]]
    """
    return _shared.taken_along(tensor(arr), tensor(indices), axis)


@public
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Elements of `x` where a condition is true, and of `y` where it is not.

    Args:
        condition: a tensor, true where it is not 0.
        x, y: tensors or numbers; all three broadcast. Without them the result is `nonzero(condition)`.
    Raises:
        ValueError: one of x and y is given, and the other is not.

    >>> import twofold as tf
    >>> tf.experimental.numpy.where([True, False], [1, 2], 0.5).numpy().tolist()
    [1.0, 0.5]
    """
    condition = tf.cast(tensor(condition), tf.bool)
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("Both x and y must be ndarrays, or both must be None.")
    return tf.where(condition, *same(x, y))


@public
def nonzero(a: Any) -> list[Any]:
    """The places of the elements that are not 0.

    Returns:
        A list of int64 vectors, one for each axis.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.experimental.numpy.nonzero([[0, 3], [4, 0]])]
    [[0, 1], [1, 0]]
    """
    flags = tf.cast(tensor(a), tf.bool)
    return tf.unstack(tf.where(flags if flags.ndim else tf.reshape(flags, [1])), axis=1)


@public
def compress(condition: Any, a: Any, axis: int | None = None) -> Any:
    """The slices along an axis for which a condition is true; those beyond its end are left out.

    Args:
        condition: bools, a vector.
        a: a tensor.
        axis: along which; by default that of the flat tensor.

    >>> import twofold as tf
    >>> tf.experimental.numpy.compress([True, False, True], [1, 2, 3]).numpy().tolist()
    [1, 3]
    """
    condition, a = tf.cast(tensor(condition), tf.bool), tensor(a)
    if condition.ndim != 1:
        raise ValueError("condition must be a 1-d array.")
    if axis is None:
        a, axis = tf.reshape(a, [-1]), 0
    return tf.gather(a, tf.where(condition)[:, 0], axis=axis)


@public
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Elements of the first choice whose condition is true, and a default where none is.

    Args:
        condlist: bool tensors.
        choicelist: as many tensors; their dtypes, and that of the default, meet.
        default: a tensor or a number.
    Raises:
        ValueError: there are not as many choices as conditions, or none.

    >>> import twofold as tf
    >>> x = tf.constant([1, 5, 9])
    >>> tf.experimental.numpy.select([x < 3, x < 7], [x, x * 10], -1).numpy().tolist()
    [1, 50, -1]
    """
    conditions, choices = listed(condlist, "condlist"), listed(choicelist, "choicelist")
    if not conditions or len(conditions) != len(choices):
        raise ValueError(f"condlist must hold as many tensors as choicelist, one at least; got {len(conditions)} and "
                         f"{len(choices)}.")
    *choices, default = same(*choices, default)
    return _shared.selected([tf.cast(tensor(c), tf.bool) for c in conditions], choices, default)


@public
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonals of two axes, along a last axis.

    Args:
        a: a tensor of two axes or more.
        offset: how far above the main diagonal.
        axis1, axis2: the axes.

    >>> import twofold as tf
    >>> tf.experimental.numpy.diagonal([[1, 2], [3, 4]], offset=1).numpy().tolist()
    [2]
    """
    return _shared.diagonal(tensor(a), offset, axis1, axis2)


@public
def tril(m: Any, k: int = 0) -> Any:
    """Matrices with 0 above diagonal `k`.

    >>> import twofold as tf
    >>> tf.experimental.numpy.tril([[1, 2], [3, 4]]).numpy().tolist()
    [[1, 0], [3, 4]]
    """
    return _shared.band(tensor(m), k, True)


@public
def triu(m: Any, k: int = 0) -> Any:
    """Matrices with 0 below diagonal `k`.

    >>> import twofold as tf
    >>> tf.experimental.numpy.triu([[1, 2], [3, 4]]).numpy().tolist()
    [[1, 2], [0, 4]]
    """
    return _shared.band(tensor(m), k, False)


@public
def diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    """How far each element is from the one before; whether it differs, for bools.

    Args:
        a: a tensor.
        n: how many times to take differences.
        axis: along which.
    Raises:
        ValueError: n is negative, or the tensor has no axis.

    >>> import twofold as tf
    >>> tf.experimental.numpy.diff([1, 4, 9]).numpy().tolist()
    [3, 5]
    """
    return _shared.differences(tensor(a), n, axis)
