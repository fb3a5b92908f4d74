"""Functions that move, join, split and repeat elements, with NumPy's semantics; the dtypes are as given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import twofold as tf
from twofold._front.api import listed

from .numpy_operands import axes_of, axis_of, shape_of

__all__ = ["at_least", "expanded", "flipped", "moved", "parts", "rolled", "swapped", "tiled", "turned"]


def expanded(x: Any, axis: Any) -> Any:
    """A tensor with axes of size 1 put in."""
    axes = (axis,) if hasattr(axis, "__index__") and not getattr(axis, "ndim", 0) else tuple(listed(axis, "axis"))
    for place in sorted(axes_of(axes, x.ndim + len(axes))):
        x = tf.expand_dims(x, place)
    return x


def swapped(x: Any, axis1: int, axis2: int) -> Any:
    """A tensor with two axes exchanged."""
    order = list(range(x.ndim))
    first, second = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    order[first], order[second] = second, first
    return tf.transpose(x, order)


def moved(x: Any, source: Any, destination: Any) -> Any:
    """A tensor with axes at other places, the others in order."""
    origin, target = axes_of(source, x.ndim), axes_of(destination, x.ndim)
    if len(origin) != len(target):
        raise ValueError(f"There are {len(origin)} axes in `source` and {len(target)} in `destination`.")
    rest = iter([n for n in range(x.ndim) if n not in origin])
    to = dict(zip(target, origin, strict=True))
    order = [to[n] if n in to else next(rest) for n in range(x.ndim)]
    return x if order == list(range(x.ndim)) else tf.transpose(x, order)


def flipped(x: Any, axis: Any) -> Any:
    """A tensor with its elements in reverse along an axis, several, or all."""
    return tf.reverse(x, list(axes_of(axis, x.ndim))) if x.ndim else x


def turned(x: Any, k: int, axes: Any) -> Any:
    """A tensor turned by quarters from one axis towards another."""
    if x.ndim < 2 or len(axes) != 2:
        raise ValueError(f"rot90 needs two axes; got axes={axes} for a tensor of rank {x.ndim}.")
    first, second = axes_of(tuple(axes), x.ndim)
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    turns = k % 4
    if turns == 1:
        return tf.transpose(tf.reverse(x, [second]), order)
    if turns == 3:
        return tf.reverse(tf.transpose(x, order), [second])
    return tf.reverse(x, [first, second]) if turns else x


def rolled(x: Any, shift: Any, axis: Any) -> Any:
    """A tensor with its elements moved on, those that leave at one end coming in at the other."""
    if axis is None:
        return tf.reshape(tf.roll(tf.reshape(x, [-1]), shift, 0), shape_of(x))
    if isinstance(axis, (list, tuple)) and isinstance(shift, int):
        shift = [shift] * len(axis)
    return tf.roll(x, shift, axis)


def at_least(x: Any, rank: int) -> Any:
    """A tensor of some axes at least: new ones come as NumPy's `atleast_2d` and `atleast_3d` put them."""
    if x.ndim == 0:
        return tf.reshape(x, [1] * rank)
    if x.ndim == 1 and rank > 1:
        x = tf.expand_dims(x, 0)
    return tf.expand_dims(x, -1) if x.ndim == 2 and rank == 3 else x


def _between(x: Any, cuts: Sequence[Any], axis: int) -> list[Any]:
    """The parts of a tensor between cuts along an axis; cuts count as the bounds of slices do."""
    ends: list[Any] = [None, *[int(c) for c in cuts], None]
    before = (slice(None),) * axis
    return [x[(*before, slice(start, stop))] for start, stop in zip(ends[:-1], ends[1:], strict=True)]


def parts(x: Any, sections: Any, axis: int) -> list[Any]:
    """The parts of a tensor along an axis: as many equal ones, or those between cuts."""
    axis = axis_of(axis, x.ndim)
    if isinstance(sections, int):
        return list(tf.split(x, sections, axis=axis))
    return _between(x, [int(c) for c in listed(sections, "indices_or_sections")], axis)


def tiled(x: Any, repeats: Any) -> Any:
    """A tensor put beside itself several times along each axis; new axes come first."""
    times = [repeats] if isinstance(repeats, int) else listed(repeats, "repeats")
    times = [1] * (x.ndim - len(times)) + times
    if len(times) > x.ndim:
        x = tf.reshape(x, [*[1] * (len(times) - x.ndim), *shape_of(x)])
    return tf.tile(x, times)
