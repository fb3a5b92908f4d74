"""Functions that pick elements of tensors, with NumPy's names: by places, diagonals and conditions; and differences."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import listed
from twofold._ops import numpy_picking as _shared

from ..keras_ops import operation
from ..operands import numeric, same, tensor

__all__ = [
    "diagonal", "diff", "get_item", "select", "take", "take_along_axis", "tril", "triu", "unravel_index",
]


@operation("numpy", tensors="x key")
def get_item(x: Any, key: Any) -> Any:
    """`x[key]`.

    Args:
        x: a tensor.
        key: integers, slices, `None`, `...` or tensors.

    >>> import twofold as tf
    >>> tf.keras.ops.get_item([1, 2, 3], slice(1, None)).numpy().tolist()
    [2, 3]
    """
    return tensor(x)[tuple(key) if isinstance(key, list) else key]  # tuples are lists in files


@operation("numpy")
def take(x: Any, indices: Any, axis: int | None = None) -> Any:
    """Elements, or slices, at some places.

    Args:
        x: a tensor.
        indices: integers of any shape; negative ones count from the end.
        axis: along which; by default that of the flat tensor.

    >>> import twofold as tf
    >>> tf.keras.ops.take([[1, 2], [3, 4]], [0, -1], axis=1).numpy().tolist()
    [[1, 2], [3, 4]]
    """
    return _shared.taken(tensor(x), tensor(indices), axis)


@operation("numpy")
def take_along_axis(x: Any, indices: Any, axis: int | None = None) -> Any:
    """For each line along an axis, the elements at places of its own.

    Args:
        x: a tensor.
        indices: integers, of as many axes as x; the others broadcast. Negative ones count from the end.
        axis: along which; by default both are flat.
    Raises:
        ValueError: the numbers of axes differ.

    >>> import twofold as tf
    >>> tf.keras.ops.take_along_axis([[1, 2], [3, 4]], [[1], [0]], axis=1).numpy().tolist()
    [[2], [3]]
    """
    return _shared.taken_along(tensor(x), tensor(indices), axis)


@operation("numpy")
def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonals of two axes, along a last axis.

    Args:
        x: a tensor of two axes or more.
        offset: how far above the main diagonal.
        axis1, axis2: the axes.

    >>> import twofold as tf
    >>> tf.keras.ops.diagonal([[1, 2], [3, 4]], offset=1).numpy().tolist()
    [2]
    """
    return _shared.diagonal(tensor(x), offset, axis1, axis2)


@operation("numpy")
def tril(x: Any, k: int = 0) -> Any:
    """Matrices with 0 above diagonal `k`.

    >>> import twofold as tf
    >>> tf.keras.ops.tril([[1, 2], [3, 4]]).numpy().tolist()
    [[1, 0], [3, 4]]
    """
    return _shared.band(tensor(x), k, True)


@operation("numpy")
def triu(x: Any, k: int = 0) -> Any:
    """Matrices with 0 below diagonal `k`.

    >>> import twofold as tf
    >>> tf.keras.ops.triu([[1, 2], [3, 4]]).numpy().tolist()
    [[1, 2], [0, 4]]
    """
    return _shared.band(tensor(x), k, False)


@operation("numpy")
def diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    """How far each element is from the one before; whether it differs, for bools.

    Args:
        a: a tensor.
        n: how many times to take differences.
        axis: along which.
    Raises:
        ValueError: n is negative, or the tensor has no axis.

    >>> import twofold as tf
    >>> tf.keras.ops.diff([1, 4, 9]).numpy().tolist()
    [3, 5]
    """
    return _shared.differences(tensor(a), n, axis)


@operation("numpy", tensors="indices")
def unravel_index(indices: Any, shape: Any) -> Any:
    """The places along each axis of elements whose places in the flat tensor are given.

    Args:
        indices: integers; negative ones count from the end.
        shape: the shape of the tensor.
    Returns:
        A tuple of tensors, one for each axis.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.keras.ops.unravel_index([3, -1], (2, 3))]
    [[1, 1], [0, 2]]
    """
    places = tensor(indices)
    rest, parts = numeric(places), []
    for n in reversed([int(s) for s in listed(shape, "A shape")]):
        count = tf.cast(n, rest.dtype)
        parts.append(tf.math.floormod(rest, count))  # a place before the first is one from the end
        rest = tf.math.floordiv(rest, count)
    return tuple(reversed(parts))


@operation("numpy", tensors="condlist choicelist default")
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
    >>> tf.keras.ops.select([x < 3, x < 7], [x, x * 10], -1).numpy().tolist()
    [1, 50, -1]
    """
    condlist, choicelist = listed(condlist, "condlist"), listed(choicelist, "choicelist")
    if not condlist or len(condlist) != len(choicelist):
        raise ValueError(f"condlist must hold as many tensors as choicelist, one at least; got {len(condlist)} and "
                         f"{len(choicelist)}.")
    *choices, default = same(*choicelist, default)
    return _shared.selected([tensor(c, tf.bool) for c in condlist], choices, default)
