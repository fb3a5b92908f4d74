"""Functions that shape, move, join, split and repeat elements."""

from __future__ import annotations

from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import listed, numbered, public
from twofold._ops import numpy_arrays as _shared
from twofold._ops.numpy_operands import axes_of

from ._rules import meeting, promoted, tensor

__all__ = [
    "append", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_to", "concatenate", "copy",
    "dsplit", "dstack", "expand_dims", "flatten", "flip", "fliplr", "flipud", "hsplit", "hstack", "ix_", "meshgrid",
    "moveaxis", "ndim", "pad", "ravel", "repeat", "reshape", "roll", "rot90", "shape", "size", "split", "squeeze",
    "stack", "swapaxes", "tile", "transpose", "vsplit", "vstack",
]


def _tensors(values: Any) -> list[Any]:
    """The items of a list as tensors of the dtype in which they meet."""
    items = listed(values, "arrays")
    return promoted(items, meeting(*items))


# -- shapes ---------------------------------------------------------------------------------------
@public
def shape(a: Any) -> Any:
    """The shape of a value.

    >>> import twofold as tf
    >>> tf.experimental.numpy.shape([[1, 2]])
    TensorShape([1, 2])
    """
    return tensor(a).shape


@public
def ndim(a: Any) -> int:
    """The number of axes of a value.

    >>> import twofold as tf
    >>> tf.experimental.numpy.ndim([[1, 2]])
    2
    """
    return tensor(a).ndim


@public
def size(x: Any, axis: Any = None) -> Any:
    """The number of elements: an integer of NumPy's, or a tensor in a trace that does not know it.

    Args:
        x: a value.
        axis: must be None.
    Raises:
        NotImplementedError: an axis is given.

    >>> import twofold as tf
    >>> int(tf.experimental.numpy.size([[1, 2]]))
    2
    """
    if axis is not None:
        raise NotImplementedError("size: axis is not supported; take shape(x)[axis].")
    x = tensor(x)
    count = x.shape.num_elements()
    return tf.size(x, out_type=tf.int64) if count is None else np.int64(count)


@public
def reshape(a: Any, newshape: Any, order: str = "C") -> Any:
    """The same elements in another shape.

    Args:
        a: a tensor.
        newshape: a size or several; one may be -1 and is what is left.
        order: "C", where the last axis runs first, or "F", where the first one does.
    Raises:
        ValueError: the order is another.

    >>> import twofold as tf
    >>> tf.experimental.numpy.reshape([1, 2, 3, 4], (2, -1), order="F").numpy().tolist()
    [[1, 3], [2, 4]]
    """
    if order not in ("C", "F"):
        raise ValueError(f"Unsupported order argument {order}; it must be \"C\" or \"F\".")
    a = tensor(a)
    sizes = [newshape] if isinstance(newshape, int) else newshape
    if order == "C":
        return tf.reshape(a, sizes)
    turned = tf.reshape(tf.transpose(a), tf.reverse(tf.convert_to_tensor(sizes), [0]))
    return tf.transpose(turned)


@public
def ravel(a: Any) -> Any:
    """All elements along one axis.

    >>> import twofold as tf
    >>> tf.experimental.numpy.ravel([[1, 2], [3, 4]]).numpy().tolist()
    [1, 2, 3, 4]
    """
    return tf.reshape(tensor(a), [-1])


@public
def flatten(a: Any, order: str = "C") -> Any:
    """All elements along one axis.

    Args:
        a: a tensor.
        order: "C", where the last axis runs first, or "F", where the first one does.
    Raises:
        ValueError: the order is another.

    >>> import twofold as tf
    >>> tf.experimental.numpy.flatten([[1, 2], [3, 4]], order="F").numpy().tolist()
    [1, 3, 2, 4]
    """
    return reshape(a, [-1], order)


@public
def broadcast_to(array: Any, shape: Any) -> Any:
    """A tensor repeated to a shape.

    >>> import twofold as tf
    >>> tf.experimental.numpy.broadcast_to([1, 2], (2, 2)).numpy().tolist()
    [[1, 2], [1, 2]]
    """
    return tf.broadcast_to(tensor(array), [shape] if isinstance(shape, int) else shape)


@public
def broadcast_arrays(*args: Any, **kwargs: Any) -> list[Any]:
    """Tensors repeated to the shape in which all broadcast.

    Args:
        args: tensors.
        kwargs: `subok=False`, as in NumPy, and no other.
    Returns:
        A list of tensors.
    Raises:
        ValueError: another argument is given.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.experimental.numpy.broadcast_arrays([1, 2], 3)]
    [[1, 2], [3, 3]]
    """
    if kwargs.pop("subok", False) or kwargs:
        raise ValueError("broadcast_arrays: subok=True and further arguments are not supported.")
    tensors = [tensor(x) for x in args]
    if not tensors:
        return []
    shape = tf.shape(tensors[0])
    for x in tensors[1:]:
        shape = tf.broadcast_dynamic_shape(shape, tf.shape(x))
    return [tf.broadcast_to(x, shape) for x in tensors]


@public
def expand_dims(a: Any, axis: Any) -> Any:
    """A tensor with axes of size 1 put in.

    Args:
        a: a tensor.
        axis: where the new axis, or each of several, is in the result.

    >>> import twofold as tf
    >>> tf.experimental.numpy.expand_dims([1, 2], 0).shape
    TensorShape([1, 2])
    """
    return _shared.expanded(tensor(a), axis)


@public
def squeeze(a: Any, axis: Any = None) -> Any:
    """A tensor without its axes of size 1, or without those given.

    >>> import twofold as tf
    >>> tf.experimental.numpy.squeeze([[1, 2]]).numpy().tolist()
    [1, 2]
    """
    a = tensor(a)
    return tf.squeeze(a, None if axis is None else list(axes_of(axis, a.ndim)))


@public
def transpose(a: Any, axes: Any = None) -> Any:
    """A tensor with its axes in another order; turned around by default.

    >>> import twofold as tf
    >>> tf.experimental.numpy.transpose([[1, 2], [3, 4]]).numpy().tolist()
    [[1, 3], [2, 4]]
    """
    a = tensor(a)
    return tf.transpose(a, None if axes is None else list(axes_of(tuple(listed(axes, "axes")), a.ndim)))


@public
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """A tensor with two axes exchanged.

    >>> import twofold as tf
    >>> tf.experimental.numpy.swapaxes([[1, 2]], 0, 1).numpy().tolist()
    [[1], [2]]
    """
    return _shared.swapped(tensor(a), axis1, axis2)


@public
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """A tensor with some axes at other places, and the others in the order in which they were.

    Args:
        a: a tensor.
        source, destination: an axis, or as many of one as of the other.
    Raises:
        ValueError: an axis repeats, or the numbers of axes differ.

    >>> import twofold as tf
    >>> tf.experimental.numpy.moveaxis(tf.zeros([2, 3, 4]), 0, -1).shape
    TensorShape([3, 4, 2])
    """
    return _shared.moved(tensor(a), source, destination)


@public
def flip(m: Any, axis: Any = None) -> Any:
    """A tensor with its elements in reverse along an axis, several, or all.

    >>> import twofold as tf
    >>> tf.experimental.numpy.flip([[1, 2], [3, 4]]).numpy().tolist()
    [[4, 3], [2, 1]]
    """
    return _shared.flipped(tensor(m), axis)


@public
def flipud(m: Any) -> Any:
    """A tensor with its elements in reverse along axis 0.

    >>> import twofold as tf
    >>> tf.experimental.numpy.flipud([[1, 2], [3, 4]]).numpy().tolist()
    [[3, 4], [1, 2]]
    """
    return _shared.flipped(tensor(m), 0)


@public
def fliplr(m: Any) -> Any:
    """A tensor with its elements in reverse along axis 1.

    >>> import twofold as tf
    >>> tf.experimental.numpy.fliplr([[1, 2], [3, 4]]).numpy().tolist()
    [[2, 1], [4, 3]]
    """
    return _shared.flipped(tensor(m), 1)


@public
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """A tensor turned by quarters from one axis towards another.

    Args:
        m: a tensor of two axes or more.
        k: how many quarters.
        axes: the two axes.
    Raises:
        ValueError: there are fewer axes, or the two are the same.

    >>> import twofold as tf
    >>> tf.experimental.numpy.rot90([[1, 2], [3, 4]]).numpy().tolist()
    [[2, 4], [1, 3]]
    """
    return _shared.turned(tensor(m), k, axes)


@public
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """A tensor with its elements moved on, those that leave at one end coming in at the other.

    Args:
        a: a tensor.
        shift: by how many places; one number for each axis.
        axis: an axis or several; by default elements move along the flat tensor.

    >>> import twofold as tf
    >>> tf.experimental.numpy.roll([1, 2, 3], 1).numpy().tolist()
    [3, 1, 2]
    """
    return _shared.rolled(tensor(a), shift, axis)


@public
def copy(a: Any) -> Any:
    """A value as a tensor of its own.

    >>> import twofold as tf
    >>> tf.experimental.numpy.copy([1, 2]).numpy().tolist()
    [1, 2]
    """
    return tf.identity(tensor(a))


# -- joining and splitting ------------------------------------------------------------------------
@public
def concatenate(arys: Any, axis: int | None = 0) -> Any:
    """Tensors one after the other along an axis, or flat where it is None; their dtypes meet.

    >>> import twofold as tf
    >>> tf.experimental.numpy.concatenate([[1], [2.5]]).numpy().tolist()
    [1.0, 2.5]
    """
    parts = _tensors(arys)
    if axis is None:
        return tf.concat([tf.reshape(x, [-1]) for x in parts], 0)
    return tf.concat(parts, axis)


@public
def stack(arrays: Any, axis: int = 0) -> Any:
    """Tensors side by side along a new axis; their dtypes meet.

    >>> import twofold as tf
    >>> tf.experimental.numpy.stack([[1, 2], [3, 4]], axis=1).numpy().tolist()
    [[1, 3], [2, 4]]
    """
    return tf.stack(_tensors(arrays), axis)


@public
def hstack(tup: Any) -> Any:
    """Tensors one after the other along axis 1, or along the only axis; their dtypes meet.

    >>> import twofold as tf
    >>> tf.experimental.numpy.hstack([[1, 2], [3]]).numpy().tolist()
    [1, 2, 3]
    """
    parts = [_shared.at_least(x, 1) for x in _tensors(tup)]
    return tf.concat(parts, 0 if parts[0].ndim == 1 else 1)


@public
def vstack(tup: Any) -> Any:
    """Tensors one above the other, along axis 0; vectors are rows.

    >>> import twofold as tf
    >>> tf.experimental.numpy.vstack([[1, 2], [3, 4]]).numpy().tolist()
    [[1, 2], [3, 4]]
    """
    return tf.concat([_shared.at_least(x, 2) for x in _tensors(tup)], 0)


@public
def dstack(tup: Any) -> Any:
    """Tensors one behind the other, along axis 2; vectors are rows.

    >>> import twofold as tf
    >>> tf.experimental.numpy.dstack([[1, 2], [3, 4]]).numpy().tolist()
    [[[1, 3], [2, 4]]]
    """
    return tf.concat([_shared.at_least(x, 3) for x in _tensors(tup)], 2)


@public
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """One tensor after another, along an axis or both flat; their dtypes meet.

    >>> import twofold as tf
    >>> tf.experimental.numpy.append([1, 2], [[3]]).numpy().tolist()
    [1, 2, 3]
    """
    return concatenate([arr, values], axis)


def _at_least(rank: int, arys: tuple[Any, ...]) -> Any:
    tensors = [_shared.at_least(tensor(x), rank) for x in arys]
    return tensors[0] if len(tensors) == 1 else tensors


@public
def atleast_1d(*arys: Any) -> Any:
    """Tensors of one axis at least; a list of them, if there are several.

    >>> import twofold as tf
    >>> tf.experimental.numpy.atleast_1d(3).numpy().tolist()
    [3]
    """
    return _at_least(1, arys)


@public
def atleast_2d(*arys: Any) -> Any:
    """Tensors of two axes at least; a list of them, if there are several.

    >>> import twofold as tf
    >>> tf.experimental.numpy.atleast_2d([1, 2]).numpy().tolist()
    [[1, 2]]
    """
    return _at_least(2, arys)


@public
def atleast_3d(*arys: Any) -> Any:
    """Tensors of three axes at least; a list of them, if there are several.

    >>> import twofold as tf
    >>> tf.experimental.numpy.atleast_3d([1, 2]).shape
    TensorShape([1, 2, 1])
    """
    return _at_least(3, arys)


@public
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """A tensor in parts along an axis.

    Args:
        ary: a tensor.
        indices_or_sections: the number of equal parts, or where to cut.
        axis: along which.
    Returns:
        A list of tensors.

    >>> import twofold as tf
    >>> [part.numpy().tolist() for part in tf.experimental.numpy.split([1, 2, 3, 4], [1, 3])]
    [[1], [2, 3], [4]]
    """
    return _shared.parts(tensor(ary), indices_or_sections, axis)


@public
def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """A tensor in parts along axis 1, or along the only axis; arguments as for `split`.

    >>> import twofold as tf
    >>> [part.numpy().tolist() for part in tf.experimental.numpy.hsplit([[1, 2]], 2)]
    [[[1]], [[2]]]
    """
    ary = tensor(ary)
    return _shared.parts(ary, indices_or_sections, 0 if ary.ndim == 1 else 1)


@public
def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """A tensor in parts along axis 0; arguments as for `split`.

    >>> import twofold as tf
    >>> [part.numpy().tolist() for part in tf.experimental.numpy.vsplit([[1], [2]], 2)]
    [[[1]], [[2]]]
    """
    return _shared.parts(tensor(ary), indices_or_sections, 0)


@public
def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """A tensor in parts along axis 2; arguments as for `split`.

    >>> import twofold as tf
    >>> [part.numpy().tolist() for part in tf.experimental.numpy.dsplit([[[1, 2]]], 2)]
    [[[[1]]], [[[2]]]]
    """
    return _shared.parts(tensor(ary), indices_or_sections, 2)


# -- repeating ------------------------------------------------------------------------------------
@public
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """A tensor with each element several times.

    Args:
        a: a tensor.
        repeats: how many times; one number for all, or one for each place along the axis.
        axis: along which; by default that of the flat tensor.

    >>> import twofold as tf
    >>> tf.experimental.numpy.repeat([1, 2], [1, 2]).numpy().tolist()
    [1, 2, 2]
    """
    return tf.repeat(tensor(a), repeats, axis=axis)


@public
def tile(a: Any, reps: Any) -> Any:
    """A tensor put beside itself several times along each axis; new axes come first.

    >>> import twofold as tf
    >>> tf.experimental.numpy.tile([1, 2], (2, 2)).numpy().tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    return _shared.tiled(tensor(a), reps)


@public
def meshgrid(*xi: Any, **kwargs: Any) -> list[Any]:
    """The coordinates of the points of a grid.

    Args:
        xi: the places along each axis.
        kwargs: `indexing`: "xy", where the first axis goes across, or "ij"; `sparse=False` and `copy=True`.
    Returns:
        A list of tensors, one for each axis.
    Raises:
        ValueError: `sparse` is true, or `copy` is not. TypeError: there are further arguments.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.experimental.numpy.meshgrid([1, 2], [3])]
    [[[1, 2]], [[3, 3]]]
    """
    if kwargs.pop("sparse", False):
        raise ValueError("Function `meshgrid` does not support returning sparse arrays yet. Received: sparse=True")
    if not kwargs.pop("copy", True):
        raise ValueError("Function `meshgrid` only supports copy=True. Received: copy=False")
    indexing = kwargs.pop("indexing", "xy")
    if kwargs:
        raise TypeError(f"meshgrid: unknown arguments {', '.join(kwargs)}.")
    return list(tf.meshgrid(*[tf.reshape(tensor(x), [-1]) for x in xi], indexing=indexing))


@public
def ix_(*args: Any) -> list[Any]:
    """Vectors along axes of their own, which index the grid of their combinations; of bools, where they are true.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.experimental.numpy.ix_([0, 1], [2])]
    [[[0], [1]], [[2]]]
    """
    result = []
    for n in numbered(len(args), "ix_"):
        x = tensor(args[n])
        if x.ndim != 1:
            raise ValueError(f"Arguments must be 1-d, got arg {x.shape} of rank {x.ndim}.")
        if x.dtype.is_bool:
            x = tf.where(x)[:, 0]
        result.append(tf.reshape(x, [-1 if k == n else 1 for k in range(len(args))]))
    return result


@public
def pad(array: Any, pad_width: Any, mode: str, **kwargs: Any) -> Any:
    """A tensor with more elements before and after along its axes.

    Args:
        array: a tensor.
        pad_width: `(before, after)` for each axis; one pair, or one number, for all.
        mode: "constant", "reflect" (without the edge) or "symmetric" (with it).
        kwargs: `constant_values`: the number to put there with "constant", 0 by default.
    Raises:
        ValueError: the mode is another.

    >>> import twofold as tf
    >>> tf.experimental.numpy.pad([1, 2], [[1, 1]], "constant").numpy().tolist()
    [0, 1, 2, 0]
    """
    value = kwargs.pop("constant_values", 0)
    if kwargs:
        raise TypeError(f"pad: unknown arguments {', '.join(kwargs)}.")
    if mode not in ("constant", "reflect", "symmetric"):
        raise ValueError(f"Unsupported padding mode: {mode}")
    x = tensor(array)
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)) if not isinstance(pad_width, tf.Tensor) else pad_width
    return tf.pad(x, widths, mode.upper(), constant_values=tensor(value, x.dtype))
