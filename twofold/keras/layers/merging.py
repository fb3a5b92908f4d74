"""Layers that make one tensor of several, and the functions that apply them.

Inputs of several dtypes meet in one first (`keras/promotion.py`), as the operands of `tf.keras.ops` do.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import twofold as tf
from twofold._front.api import listed, public

from .. import call_context
from ..composites import in_ops, is_composite
from ..operands import same
from ._declared import DeclaredLayer, Shape, from_front

__all__ = ["Add", "Average", "Concatenate", "Dot", "Maximum", "Minimum", "Multiply", "Subtract", "add", "average",
           "concatenate", "dot", "maximum", "minimum", "multiply", "subtract"]


class _Merge(DeclaredLayer):
    """What layers share that combine tensors element by element, with broadcasting."""

    supports_masking = True
    _exactly: int | None = None  # how many inputs, if it must be a number

    def build(self, input_shape: Any) -> None:
        """Check that the inputs' shapes fit together."""
        if not _are_shapes(input_shape):
            raise ValueError("A merge layer should be called on a list of inputs. "
                             f"Received: input_shape={input_shape} (not a list of shapes)")
        if self._exactly is not None and len(input_shape) != self._exactly:
            raise ValueError(f"A `{type(self).__name__}` layer should be called on exactly {self._exactly} inputs. "
                             f"Received: input_shape={input_shape}")
        self.compute_output_shape(input_shape)
        self.built = True

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        if not isinstance(inputs, (list, tuple)):
            raise ValueError(f"A merge layer should be called on a list of inputs. Received: inputs={inputs} (not a "
                             "list of tensors)")
        rank = max(len(x.shape) for x in inputs)
        if any(map(is_composite, inputs)):
            return self._of_composites([in_ops("expand_dims", x, 1) if len(x.shape) < rank else x for x in inputs])
        return self._merged([_of_rank(x, rank) for x in _met(inputs)])

    def _merged(self, inputs: list[Any]) -> Any:
        """The outputs, from inputs of one rank."""
        raise self._no_rule

    def _of_composites(self, inputs: list[Any]) -> Any:
        """The outputs, from inputs of which some are ragged or sparse."""
        return functools.reduce(functools.partial(in_ops, type(self).__name__.lower()), inputs)

    @property
    def _no_rule(self) -> Exception:
        return NotImplementedError(f"{type(self).__name__} does not say how inputs are merged.")

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of shapes."""
        shapes = [tuple(shape) for shape in input_shape]
        batches = {shape[0] for shape in shapes if shape} - {None}
        if len(batches) > 1:
            raise ValueError(f"Cannot merge tensors with different batch sizes. Received tensors with shapes {shapes}")
        merged: Shape = shapes[0][1:]
        for shape in shapes[1:]:
            merged = _together(merged, shape[1:])
        return (batches.pop() if batches else None, *merged)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Where the mask of any input lets through; None where an input has none."""
        masks = [None] if mask is None else listed(mask, "mask")
        if any(m is None for m in masks):
            return None
        merged = masks[0]
        for one in masks[1:]:
            merged = tf.logical_or(merged, one)
        return merged


def _met(inputs: Sequence[Any]) -> list[Any]:
    """The inputs in the dtype in which they meet, each with its mask."""
    inputs = listed(inputs, "inputs")
    tensors = same(*inputs)
    for before, x in zip(inputs, tensors, strict=True):
        if x is not before:
            call_context.set_mask(x, call_context.get_mask(before))
    return tensors


def _are_shapes(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and isinstance(value[0], (list, tuple, tf.TensorShape))


def _of_rank(x: Any, rank: int) -> Any:
    """`x` with axes of size 1 behind the batch."""
    for _ in range(rank - len(x.shape)):
        x = tf.expand_dims(x, 1)
    return x


def _together(a: Shape, b: Shape) -> Shape:
    """The shape to which two shapes without the batch broadcast."""
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    sizes = list(longer[:len(longer) - len(shorter)])
    for i, j in zip(longer[len(longer) - len(shorter):], shorter, strict=True):
        if None not in (i, j) and i != j and 1 not in (i, j):
            raise ValueError(f"Inputs have incompatible shapes. Received shapes {a} and {b}")
        sizes.append(j if i == 1 else i if j == 1 else None if None in (i, j) else i)
    return tuple(sizes)


class _Folded(_Merge):
    """A merge of two at a time, in which masked elements of one input leave the other's."""

    _op: Any

    def _merged(self, inputs: list[Any]) -> Any:
        total, so_far = inputs[0], _wide_mask(inputs[0])
        for x in inputs[1:]:
            mask = _wide_mask(x)
            if mask is not None:
                x = tf.where(mask, x, total)
            if so_far is not None:
                total = tf.where(so_far, total, x)
            so_far = None if mask is None or so_far is None else tf.logical_or(so_far, mask)
            total = type(self)._op(total, x)
        return total


def _wide_mask(x: Any) -> Any:
    """The mask of a tensor, for each of its elements; None if it has none."""
    mask = call_context.get_mask(x)
    return None if mask is None else tf.broadcast_to(mask[..., tf.newaxis], tf.shape(x))


class Add(_Merge):
    """The sum of tensors.

    Args:
        kwargs: those of `Layer`.
    Inputs: a list of tensors whose shapes broadcast. Outputs: one tensor.

    >>> import twofold as tf
    >>> tf.keras.layers.Add()([tf.constant([[1.0]]), tf.constant([[2.0]])]).numpy().tolist()
    [[3.0]]
    """

    def _merged(self, inputs: list[Any]) -> Any:
        total = inputs[0]
        for x in inputs[1:]:
            total = total + x
        return total


class Average(Add):
    """The average of tensors; see `Add`.

    >>> import twofold as tf
    >>> tf.keras.layers.Average()([tf.constant([[1.0]]), tf.constant([[2.0]])]).numpy().tolist()
    [[1.5]]
    """

    def _merged(self, inputs: list[Any]) -> Any:
        return super()._merged(inputs) / len(inputs)

    def _of_composites(self, inputs: list[Any]) -> Any:
        return in_ops("divide", functools.reduce(functools.partial(in_ops, "add"), inputs), float(len(inputs)))


class Subtract(_Merge):
    """The difference of two tensors; see `Add`.

    >>> import twofold as tf
    >>> tf.keras.layers.Subtract()([tf.constant([[1.0]]), tf.constant([[3.0]])]).numpy().tolist()
    [[-2.0]]
    """

    _exactly = 2

    def _merged(self, inputs: list[Any]) -> Any:
        return inputs[0] - inputs[1]


class Multiply(_Merge):
    """The product of tensors; see `Add`. Masked elements count as 1; 0 where all are masked.

    >>> import twofold as tf
    >>> tf.keras.layers.Multiply()([tf.constant([[2.0]]), tf.constant([[3.0]])]).numpy().tolist()
    [[6.0]]
    """

    def _merged(self, inputs: list[Any]) -> Any:
        masks = [_wide_mask(x) for x in inputs]
        product: Any = None
        for x, mask in zip(inputs, masks, strict=True):
            if mask is not None:
                x = tf.where(mask, x, tf.ones((), x.dtype))
            product = x if product is None else product * x
        if any(mask is None for mask in masks):
            return product
        kept = masks[0]
        for mask in masks[1:]:
            kept = tf.logical_or(kept, mask)
        return tf.where(kept, product, tf.zeros((), product.dtype))


class Maximum(_Folded):
    """The larger of tensors, element by element; see `Add`. Masked elements do not count.

    >>> import twofold as tf
    >>> tf.keras.layers.Maximum()([tf.constant([[2.0]]), tf.constant([[3.0]])]).numpy().tolist()
    [[3.0]]
    """

    _op = tf.maximum


class Minimum(_Folded):
    """The smaller of tensors, element by element; see `Add`. Masked elements do not count.

    >>> import twofold as tf
    >>> tf.keras.layers.Minimum()([tf.constant([[2.0]]), tf.constant([[3.0]])]).numpy().tolist()
    [[2.0]]
    """

    _op = tf.minimum


class Concatenate(_Merge):
    """Tensors joined along an axis.

    Args:
        axis: the axis.
        kwargs: those of `Layer`.
    Inputs: a list of tensors whose shapes differ along the axis only. Outputs: one tensor.
    Raises:
        ValueError: shapes differ elsewhere.

    >>> import twofold as tf
    >>> tf.keras.layers.Concatenate()([tf.constant([[1.0]]), tf.constant([[2.0]])]).numpy().tolist()
    [[1.0, 2.0]]
    """

    _arguments = ("axis",)

    def __init__(self, axis: int = -1, **kwargs: Any):
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        if any(map(is_composite, inputs)):
            return in_ops("concatenate", inputs, self.axis)
        return tf.concat(_met(inputs), self.axis)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of shapes."""
        shapes = [list(shape) for shape in input_shape]
        along = [shape[self.axis] for shape in shapes]
        for shape in shapes:
            shape[self.axis] = None
        sizes = shapes[0]
        for shape in shapes[1:]:
            if len(shape) != len(sizes) or any(None not in (i, j) and i != j
                                               for i, j in zip(sizes, shape, strict=True)):
                raise ValueError("A `Concatenate` layer requires inputs with matching shapes except for the "
                                 f"concatenation axis. Received: input_shape={input_shape}")
            sizes = [j if i is None else i for i, j in zip(sizes, shape, strict=True)]
        sizes[self.axis] = None if None in along else sum(along)
        return tuple(sizes)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The masks joined in the same way; an input without one is let through."""
        masks = [None] if mask is None else listed(mask, "mask")
        if all(m is None for m in masks):
            return None
        wide = []
        for x, one in zip(inputs, masks, strict=True):
            if one is None:
                one = tf.ones(tf.shape(x), tf.bool)
            elif len(one.shape) < len(x.shape):
                one = tf.broadcast_to(one[..., tf.newaxis], tf.shape(x))
            wide.append(one)
        return tf.reduce_any(tf.concat(wide, self.axis), axis=-1)


class Dot(_Merge):
    """The products of two tensors' slices, example by example, summed along an axis of each.

    Args:
        axes: the axis of both, or two; not that of the batch.
        normalize: whether slices are divided by their lengths first, so that the outputs are cosines.
        kwargs: those of `Layer`.
    Inputs: two tensors [batch, ..]. Outputs: [batch, the first's other axes, the second's], or [batch, 1].
    Raises:
        ValueError: there are not two inputs, or the sizes of the axes differ.

    >>> import twofold as tf
    >>> tf.keras.layers.Dot(axes=1)([tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 4.0]])]).numpy().tolist()
    [[11.0]]
    """

    _arguments = ("axes", "normalize")
    _exactly = 2

    def __init__(self, axes: Any, normalize: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        if not isinstance(axes, int) and (not isinstance(axes, (list, tuple)) or len(axes) != 2):
            raise ValueError(f"`axes` should be an integer or two. Received: axes={axes!r}")
        self.axes, self.normalize = axes, normalize

    def _of(self, ranks: Sequence[int]) -> tuple[int, int]:
        """The axes for inputs of these ranks, not negative."""
        given = (self.axes, self.axes) if isinstance(self.axes, int) else self.axes
        first, second = (from_front(axis, rank) for axis, rank in zip(given, ranks, strict=True))
        if 0 in (first, second):
            raise ValueError(f"Cannot perform a dot product over axis 0, the batch. Received: axes={self.axes}")
        return first, second

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        if any(map(is_composite, inputs)):
            return self._of_matrices(*inputs)
        x, y = _met(inputs)
        first, second = self._of((len(x.shape), len(y.shape)))
        if self.normalize:
            x, y = tf.math.l2_normalize(x, axis=first), tf.math.l2_normalize(y, axis=second)
        letters = "abcdefghijklmnopqrstuvw"
        left = "z" + letters[:len(x.shape) - 1]
        right = "z" + letters[len(left) - 1:len(left) + len(y.shape) - 2]
        left, right = left.replace(left[first], "y"), right.replace(right[second], "y")
        rest = (left + right[1:]).replace("y", "")
        product = f"{left},{right}->{rest}"
        if x.dtype.is_bool:
            products = tf.cast(tf.einsum(product, tf.cast(x, tf.int32), tf.cast(y, tf.int32)), tf.bool)
        else:
            products = tf.einsum(product, x, y)
        return tf.expand_dims(products, 1) if len(rest) == 1 else products

    def _of_matrices(self, x: Any, y: Any) -> Any:
        """The products of the rows of two matrices, of which one or both are sparse."""
        if self.normalize or self._of((len(x.shape), len(y.shape))) != (1, 1) or len(x.shape) + len(y.shape) != 4:
            raise ValueError("Dot of sparse tensors takes the rows of matrices, without `normalize`.")
        return in_ops("sum", in_ops("multiply", x, y), axis=1, keepdims=True)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of shapes."""
        one, other = (list(shape) for shape in input_shape)
        first, second = self._of((len(one), len(other)))
        if None not in (one[first], other[second]) and one[first] != other[second]:
            raise ValueError(f"Incompatible input shapes: axis values {one[first]} (at axis {first}) != "
                             f"{other[second]} (at axis {second}). Full input shapes: {one}, {other}")
        sizes = (*one[:first], *one[first + 1:], *other[1:second], *other[second + 1:])
        return sizes if len(sizes) > 1 else (*sizes, 1)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """None: the outputs have no mask."""
        return None


@public
def add(inputs: Any, **kwargs: Any) -> Any:
    """The sum of tensors; see `Add`.

    >>> import twofold as tf
    >>> tf.keras.layers.add([tf.constant([[1.0]]), tf.constant([[2.0]])]).numpy().tolist()
    [[3.0]]
    """
    return Add(**kwargs)(inputs)


@public
def average(inputs: Any, **kwargs: Any) -> Any:
    """The average of tensors; see `Average`.

    >>> import twofold as tf
    >>> tf.keras.layers.average([tf.constant([[1.0]]), tf.constant([[2.0]])]).numpy().tolist()
    [[1.5]]
    """
    return Average(**kwargs)(inputs)


@public
def subtract(inputs: Any, **kwargs: Any) -> Any:
    """The difference of two tensors; see `Subtract`.

    >>> import twofold as tf
    >>> tf.keras.layers.subtract([tf.constant([[1.0]]), tf.constant([[2.0]])]).numpy().tolist()
    [[-1.0]]
    """
    return Subtract(**kwargs)(inputs)


@public
def multiply(inputs: Any, **kwargs: Any) -> Any:
    """The product of tensors; see `Multiply`.

    >>> import twofold as tf
    >>> tf.keras.layers.multiply([tf.constant([[3.0]]), tf.constant([[2.0]])]).numpy().tolist()
    [[6.0]]
    """
    return Multiply(**kwargs)(inputs)


@public
def maximum(inputs: Any, **kwargs: Any) -> Any:
    """The larger of tensors, element by element; see `Maximum`.

    >>> import twofold as tf
    >>> tf.keras.layers.maximum([tf.constant([[3.0]]), tf.constant([[2.0]])]).numpy().tolist()
    [[3.0]]
    """
    return Maximum(**kwargs)(inputs)


@public
def minimum(inputs: Any, **kwargs: Any) -> Any:
    """The smaller of tensors, element by element; see `Minimum`.

    >>> import twofold as tf
    >>> tf.keras.layers.minimum([tf.constant([[3.0]]), tf.constant([[2.0]])]).numpy().tolist()
    [[2.0]]
    """
    return Minimum(**kwargs)(inputs)


@public
def concatenate(inputs: Any, axis: int = -1, **kwargs: Any) -> Any:
    """Tensors joined along an axis; see `Concatenate`.

    >>> import twofold as tf
    >>> tf.keras.layers.concatenate([tf.constant([[1.0]]), tf.constant([[2.0]])]).numpy().tolist()
    [[1.0, 2.0]]
    """
    return Concatenate(axis=axis, **kwargs)(inputs)


@public
def dot(inputs: Any, axes: Any = -1, **kwargs: Any) -> Any:
    """The products of two tensors, summed along an axis of each; see `Dot`.

    >>> import twofold as tf
    >>> tf.keras.layers.dot([tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 4.0]])], axes=1).numpy().tolist()
    [[11.0]]
    """
    return Dot(axes=axes, **kwargs)(inputs)
