"""Functions that move, join, split and repeat elements, with NumPy's names; those that pick are in `_picking.py`."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import listed, numbered
from twofold._ops.numpy_arrays import at_least, expanded, flipped, moved, parts, rolled, swapped, tiled, turned

from ..keras_ops import operation
from ..operands import axes_of, axis_of, same, tensor

__all__ = [
    "append", "array_split", "broadcast_to", "concatenate", "dsplit", "dstack", "expand_dims", "flip", "fliplr",
    "flipud", "hsplit", "hstack", "meshgrid", "moveaxis", "ndim", "pad", "ravel", "repeat", "reshape", "roll",
    "rot90", "size", "split", "squeeze", "stack", "swapaxes", "tile", "transpose", "vsplit", "vstack",
]


# -- shapes ---------------------------------------------------------------------------------------
@operation("numpy")
def ndim(x: Any) -> Any:
    """The number of axes.

    >>> import twofold as tf
    >>> tf.keras.ops.ndim([[1, 2]])
    2
    """
    return tensor(x).ndim


@operation("numpy")
def size(x: Any) -> Any:
    """The number of elements, as an int32 scalar.

    >>> import twofold as tf
    >>> tf.keras.ops.size([[1, 2]]).numpy().tolist()
    2
    """
    return tf.size(tensor(x))


@operation("numpy", tensors="x")
def reshape(x: Any, newshape: Any) -> Any:
    """The same elements in another shape.

    Args:
        x: a tensor.
        newshape: sizes; one may be -1 and is what is left. None, in a model, is an unknown size.

    >>> import twofold as tf
    >>> tf.keras.ops.reshape([1, 2, 3, 4], (2, -1)).numpy().tolist()
    [[1, 2], [3, 4]]
    """
    if isinstance(newshape, (list, tuple)):
        newshape = [-1 if n is None else n for n in newshape]
    return tf.reshape(tensor(x), newshape)


@operation("numpy")
def ravel(x: Any) -> Any:
    """All elements along one axis.

    >>> import twofold as tf
    >>> tf.keras.ops.ravel([[1, 2], [3, 4]]).numpy().tolist()
    [1, 2, 3, 4]
    """
    return tf.reshape(tensor(x), [-1])


@operation("numpy", tensors="x")
def broadcast_to(x: Any, shape: Any) -> Any:
    """A tensor repeated to a shape.

    >>> import twofold as tf
    >>> tf.keras.ops.broadcast_to([1, 2], (2, 2)).numpy().tolist()
    [[1, 2], [1, 2]]
    """
    return tf.broadcast_to(tensor(x), shape)


@operation("numpy", tensors="x")
def expand_dims(x: Any, axis: Any) -> Any:
    """A tensor with axes of size 1 put in.

    Args:
        x: a tensor.
        axis: where the new axis, or each of several, is in the result.

    >>> import twofold as tf
    >>> tf.keras.ops.expand_dims([1, 2], (0, -1)).shape
    TensorShape([1, 2, 1])
    """
    return expanded(tensor(x), axis)


@operation("numpy")
def squeeze(x: Any, axis: Any = None) -> Any:
    """A tensor without its axes of size 1, or without those given.

    >>> import twofold as tf
    >>> tf.keras.ops.squeeze([[1, 2]]).numpy().tolist()
    [1, 2]
    """
    return tf.squeeze(tensor(x), None if axis is None else list(axes_of(axis, tensor(x).ndim)))


@operation("numpy")
def transpose(x: Any, axes: Any = None) -> Any:
    """A tensor with its axes in another order; turned around by default.

    >>> import twofold as tf
    >>> tf.keras.ops.transpose([[1, 2], [3, 4]]).numpy().tolist()
    [[1, 3], [2, 4]]
    """
    x = tensor(x)
    return tf.transpose(x, axes if axes is None else list(axes_of(tuple(listed(axes, "axes")), x.ndim)))


@operation("numpy", tensors="x")
def swapaxes(x: Any, axis1: int, axis2: int) -> Any:
    """A tensor with two axes exchanged.

    >>> import twofold as tf
    >>> tf.keras.ops.swapaxes([[1, 2]], 0, 1).numpy().tolist()
    [[1], [2]]
    """
    return swapped(tensor(x), axis1, axis2)


@operation("numpy", tensors="x")
def moveaxis(x: Any, source: Any, destination: Any) -> Any:
    """A tensor with some axes at other places, and the others in the order in which they were.

    Args:
        x: a tensor.
        source, destination: an axis, or as many of one as of the other.
    Raises:
        ValueError: an axis repeats, or the numbers of axes differ.

    >>> import twofold as tf
    >>> tf.keras.ops.moveaxis(tf.zeros([2, 3, 4]), 0, -1).shape
    TensorShape([3, 4, 2])
    """
    return moved(tensor(x), source, destination)


@operation("numpy")
def flip(x: Any, axis: Any = None) -> Any:
    """A tensor with its elements in reverse along an axis, several, or all.

    >>> import twofold as tf
    >>> tf.keras.ops.flip([[1, 2], [3, 4]]).numpy().tolist()
    [[4, 3], [2, 1]]
    """
    return flipped(tensor(x), axis)


@operation("numpy")
def fliplr(x: Any) -> Any:
    """A tensor with its elements in reverse along axis 1.

    >>> import twofold as tf
    >>> tf.keras.ops.fliplr([[1, 2], [3, 4]]).numpy().tolist()
    [[2, 1], [4, 3]]
    """
    return tf.reverse(tensor(x), [1])


@operation("numpy")
def flipud(x: Any) -> Any:
    """A tensor with its elements in reverse along axis 0.

    >>> import twofold as tf
    >>> tf.keras.ops.flipud([[1, 2], [3, 4]]).numpy().tolist()
    [[3, 4], [1, 2]]
    """
    return tf.reverse(tensor(x), [0])


@operation("numpy")
def rot90(array: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """A tensor turned by quarters from one axis towards another.

    Args:
        array: a tensor of two axes or more.
        k: how many quarters.
        axes: the two axes.
    Raises:
        ValueError: there are fewer axes, or the two are the same.

    >>> import twofold as tf
    >>> tf.keras.ops.rot90([[1, 2], [3, 4]]).numpy().tolist()
    [[2, 4], [1, 3]]
    """
    return turned(tensor(array), k, axes)


@operation("numpy", tensors="x")
def roll(x: Any, shift: Any, axis: Any = None) -> Any:
    """A tensor with its elements moved on, those that leave at one end coming in at the other.

    Args:
        x: a tensor.
        shift: by how many places; one number for each axis.
        axis: an axis or several; by default elements move along the flat tensor.

    >>> import twofold as tf
    >>> tf.keras.ops.roll([1, 2, 3], 1).numpy().tolist()
    [3, 1, 2]
    """
    return rolled(tensor(x), shift, axis)


# -- joining and splitting ------------------------------------------------------------------------
@operation("numpy")
def concatenate(xs: Any, axis: int = 0) -> Any:
    """Tensors one after the other along an axis; their dtypes meet.

    >>> import twofold as tf
    >>> tf.keras.ops.concatenate([[1], [2.5]]).numpy().tolist()
    [1.0, 2.5]
    """
    return tf.concat(same(*[tensor(x) for x in listed(xs, "xs")]), axis)


@operation("numpy")
def stack(x: Any, axis: int = 0) -> Any:
    """Tensors side by side along a new axis; their dtypes meet.

    >>> import twofold as tf
    >>> tf.keras.ops.stack([[1, 2], [3, 4]], axis=1).numpy().tolist()
    [[1, 3], [2, 4]]
    """
    return tf.stack(same(*[tensor(each) for each in listed(x, "x")]), axis)


@operation("numpy")
def hstack(xs: Any) -> Any:
    """Tensors one after the other along axis 1, or along the only axis; their dtypes meet.

    >>> import twofold as tf
    >>> tf.keras.ops.hstack([[1, 2], [3]]).numpy().tolist()
    [1, 2, 3]
    """
    parts = [at_least(tensor(x), 1) for x in listed(xs, "xs")]
    return tf.concat(same(*parts), 0 if parts[0].ndim == 1 else 1)


@operation("numpy")
def vstack(xs: Any) -> Any:
    """Tensors one above the other, along axis 0; vectors are rows.

    >>> import twofold as tf
    >>> tf.keras.ops.vstack([[1, 2], [3, 4]]).numpy().tolist()
    [[1, 2], [3, 4]]
    """
    return tf.concat(same(*[at_least(tensor(x), 2) for x in listed(xs, "xs")]), 0)


@operation("numpy")
def dstack(xs: Any) -> Any:
    """Tensors one behind the other, along axis 2; vectors are rows.

    >>> import twofold as tf
    >>> tf.keras.ops.dstack([[1, 2], [3, 4]]).numpy().tolist()
    [[[1, 3], [2, 4]]]
    """
    return tf.concat(same(*[at_least(tensor(x), 3) for x in listed(xs, "xs")]), 2)


@operation("numpy")
def append(x1: Any, x2: Any, axis: int | None = None) -> Any:
    """One tensor after another, along an axis or both flat; their dtypes meet.

    >>> import twofold as tf
    >>> tf.keras.ops.append([1, 2], [[3]]).numpy().tolist()
    [1, 2, 3]
    """
    x1, x2 = same(tensor(x1), tensor(x2))
    if axis is None:
        return tf.concat([tf.reshape(x1, [-1]), tf.reshape(x2, [-1])], 0)
    return tf.concat([x1, x2], axis)


@operation("numpy", tensors="x")
def split(x: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """A tensor in parts along an axis.

    Args:
        x: a tensor.
        indices_or_sections: the number of equal parts, or where to cut.
        axis: along which.
    Returns:
        A list of tensors.

    >>> import twofold as tf
    >>> [part.numpy().tolist() for part in tf.keras.ops.split([1, 2, 3, 4], [1, 3])]
    [[1], [2, 3], [4]]
    """
    return parts(tensor(x), indices_or_sections, axis)


@operation("numpy", tensors="x")
def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """A tensor in parts along an axis, the first ones larger by one where the size does not divide.

    Args:
        x: a tensor, whose size along the axis is known.
        indices_or_sections: the number of parts, or where to cut.
        axis: along which.
    Returns:
        A list of tensors.

    >>> import twofold as tf
    >>> [part.numpy().tolist() for part in tf.keras.ops.array_split([1, 2, 3], 2)]
    [[1, 2], [3]]
    """
    if not isinstance(indices_or_sections, int):
        return parts(tensor(x), indices_or_sections, axis)
    x = tensor(x)
    axis, count = axis_of(axis, x.ndim), indices_or_sections
    if x.shape[axis] is None:
        raise ValueError(f"array_split needs a known size along axis {axis}; got shape {x.shape}.")
    each, more = divmod(x.shape[axis], count)
    return list(tf.split(x, [each + (n < more) for n in numbered(count, "array_split")], axis=axis))


@operation("numpy", tensors="x")
def hsplit(x: Any, indices_or_sections: Any) -> Any:
    """A tensor in parts along axis 1, or along the only axis; arguments as for `split`.

    >>> import twofold as tf
    >>> [part.numpy().tolist() for part in tf.keras.ops.hsplit([[1, 2]], 2)]
    [[[1]], [[2]]]
    """
    x = tensor(x)
    return parts(tensor(x), indices_or_sections, 0 if x.ndim == 1 else 1)


@operation("numpy", tensors="x")
def vsplit(x: Any, indices_or_sections: Any) -> Any:
    """A tensor in parts along axis 0; arguments as for `split`.

    >>> import twofold as tf
    >>> [part.numpy().tolist() for part in tf.keras.ops.vsplit([[1], [2]], 2)]
    [[[1]], [[2]]]
    """
    return parts(tensor(x), indices_or_sections, 0)


@operation("numpy", tensors="x")
def dsplit(x: Any, indices_or_sections: Any) -> Any:
    """A tensor in parts along axis 2; arguments as for `split`.

    >>> import twofold as tf
    >>> [part.numpy().tolist() for part in tf.keras.ops.dsplit([[[1, 2]]], 2)]
    [[[[1]]], [[[2]]]]
    """
    return parts(tensor(x), indices_or_sections, 2)


@operation("numpy", tensors="x")
def repeat(x: Any, repeats: Any, axis: int | None = None) -> Any:
    """A tensor with each element several times.

    Args:
        x: a tensor.
        repeats: how many times; one number for all, or one for each place along the axis.
        axis: along which; by default that of the flat tensor.

    >>> import twofold as tf
    >>> tf.keras.ops.repeat([1, 2], [1, 2]).numpy().tolist()
    [1, 2, 2]
    """
    return tf.repeat(tensor(x), repeats, axis=axis)


@operation("numpy", tensors="x")
def tile(x: Any, repeats: Any) -> Any:
    """A tensor put beside itself several times along each axis; new axes come first.

    >>> import twofold as tf
    >>> tf.keras.ops.tile([1, 2], (2, 2)).numpy().tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    return tiled(tensor(x), repeats)


@operation("numpy")
def meshgrid(*x: Any, indexing: str = "xy") -> Any:
    """The coordinates of the points of a grid.

    Args:
        x: the places along each axis.
        indexing: "xy", where the first axis goes across, or "ij".
    Returns:
        A list of tensors, one for each axis.
    Raises:
        ValueError: `indexing` is another.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.keras.ops.meshgrid([1, 2], [3])]
    [[[1, 2]], [[3, 3]]]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f'indexing must be "xy" or "ij"; got {indexing!r}.')
    return list(tf.meshgrid(*[tf.reshape(tensor(each), [-1]) for each in x], indexing=indexing))


_MODES = ("constant", "reflect", "symmetric")


@operation("numpy", tensors="x constant_values")
def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = None) -> Any:
    """A tensor with more elements before and after along its axes.

    Args:
        x: a tensor.
        pad_width: how many before and after, `(before, after)` for each axis; one pair, or one number, for all.
        mode: "constant", "reflect" (without the edge) or "symmetric" (with it).
        constant_values: the number to put there with "constant"; 0 by default.
    Raises:
        ValueError: the mode is another, or a value is given with it.

    >>> import twofold as tf
    >>> tf.keras.ops.pad([1, 2], 1).numpy().tolist()
    [0, 1, 2, 0]
    """
    x = tensor(x)
    if mode not in _MODES:
        raise ValueError(f"pad: mode must be one of {', '.join(_MODES)}; got {mode!r}.")
    if constant_values is not None and mode != "constant":
        raise ValueError("Argument `constant_values` can only be provided when `mode == 'constant'`. "
                         f"Received: mode={mode}")
    widths = [[pad_width, pad_width]] if isinstance(pad_width, int) else pad_width
    if not isinstance(widths, tf.Tensor):
        widths = [list(w) if isinstance(w, (list, tuple)) else w for w in listed(widths, "pad_width")]
        if len(widths) == 2 and all(isinstance(w, int) for w in widths):
            widths = [widths]
        widths = [[w[0], w[-1]] for w in widths]
        if len(widths) == 1:
            widths = widths * x.ndim
    value = tensor(0 if constant_values is None else constant_values, x.dtype)
    return tf.pad(x, widths, mode.upper(), constant_values=value)
