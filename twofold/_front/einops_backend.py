"""The backends of einops for our tensors: those that have values or are traced, and those of functional models.

`einops.py` makes backends of these classes, where a program imports einops.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable

__all__ = ["KerasTensors", "Tensors"]


class Tensors:
    """The functions that einops is made of, for tensors and variables.

    Sizes are numbers where they are known; those that are not are scalars, which shapes are computed from.
    """

    framework_name = "twofold"

    def is_appropriate_type(self, tensor: Any) -> bool:
        """Whether something is a tensor or a variable."""
        return isinstance(tensor, (Tensor, Variable))

    def from_numpy(self, x: np.ndarray) -> Any:
        """An array as a tensor."""
        return tf.convert_to_tensor(x)

    def to_numpy(self, x: Any) -> np.ndarray:
        """The value of a tensor."""
        return x.numpy()

    def arange(self, start: int, stop: int) -> Any:
        """Integers from one to before another."""
        return tf.range(start, stop)

    def shape(self, x: Any) -> tuple[Any, ...]:
        """The sizes; scalars for those that are not known before the function runs."""
        known = tuple(x.shape)
        if None not in known:
            return known
        sizes = tf.shape(x)
        return tuple([sizes[i] if size is None else size for i, size in enumerate(known)])

    def reshape(self, x: Any, shape: Sequence[Any]) -> Any:
        """The same elements in another shape."""
        return tf.reshape(x, list(shape))

    def transpose(self, x: Any, axes: Sequence[int]) -> Any:
        """Axes in another order."""
        return tf.transpose(x, list(axes))

    def reduce(self, x: Any, operation: str, axes: Sequence[int]) -> Any:
        """A reduction over axes: min, max, sum, mean, prod, any or all."""
        return getattr(tf, "reduce_" + operation)(x, axis=list(axes))

    def stack_on_zeroth_dimension(self, tensors: list[Any]) -> Any:
        """Tensors of one shape as the entries of one."""
        return tf.stack(tensors)

    def add_axis(self, x: Any, new_position: int) -> Any:
        """Another axis of size 1."""
        return tf.expand_dims(x, new_position)

    def add_axes(self, x: Any, n_axes: int, pos2len: Mapping[int, Any]) -> Any:
        """Axes along which everything is repeated.

        Args:
            n_axes: how many the result has.
            pos2len: the sizes of the new ones by their place in it.
        """
        for position in sorted(pos2len):
            x = self.add_axis(x, position)
        return tf.broadcast_to(x, [pos2len.get(i, size) for i, size in enumerate(self.shape(x))])

    def tile(self, x: Any, repeats: Sequence[Any]) -> Any:
        """Everything repeated along each axis."""
        return tf.tile(x, list(repeats))

    def concat(self, tensors: Sequence[Any], axis: int) -> Any:
        """Tensors one after another along an axis."""
        return tf.concat(list(tensors), axis=axis)

    def is_float_type(self, x: Any) -> bool:
        """Whether elements are floats, so that they have a mean."""
        return x.dtype.is_floating

    def einsum(self, pattern: str, *x: Any) -> Any:
        """A sum of products by a pattern of letters."""
        return tf.einsum(pattern, *x)


class KerasTensors:
    """The same for the tensors of functional models, by operations of Keras.

    A size that the model does not know is a placeholder, and one size of a new shape may be what remains.
    """

    framework_name = "twofold.keras.keras_tensor"  # a module: einops asks only once it is loaded

    def is_appropriate_type(self, tensor: Any) -> bool:
        """Whether something is a tensor of a functional model."""
        return isinstance(tensor, sys.modules[self.framework_name].KerasTensor)

    def create_symbol(self, shape: Sequence[Any]) -> Any:
        """The input of a model; None stands for sizes that are not known."""
        return tf.keras.Input(batch_shape=tuple(shape))

    def eval_symbol(self, symbol: Any, symbol_value_pairs: Sequence[tuple[Any, Any]]) -> Any:
        """The value of a tensor of a model, for values of its inputs."""
        inputs, values = zip(*symbol_value_pairs, strict=True)
        return tf.keras.Model(list(inputs), symbol).predict_on_batch(list(values))

    def shape(self, x: Any) -> tuple[Any, ...]:
        """The sizes, and placeholders for those that are not known."""
        from einops._backends import UnknownSize
        return tuple([UnknownSize() if size is None else size for size in x.shape])

    def reshape(self, x: Any, shape: Sequence[Any]) -> Any:
        """The same elements in another shape.

        Raises:
            EinopsError: it has several sizes that are not known.
        """
        from einops import EinopsError
        from einops._backends import UnknownSize
        sizes = tuple([-1 if isinstance(size, UnknownSize) else size for size in shape])
        if sizes.count(-1) > 1:
            raise EinopsError("a functional model does not know several sizes here: use einops.layers.keras, or "
                              "tf.keras.ops.rearrange")
        return tf.keras.ops.reshape(x, sizes)

    def transpose(self, x: Any, axes: Sequence[int]) -> Any:
        """Axes in another order."""
        return tf.keras.ops.transpose(x, tuple(axes))

    def reduce(self, x: Any, operation: str, axes: Sequence[int]) -> Any:
        """A reduction over axes: min, max, sum, mean, prod, any or all."""
        return getattr(tf.keras.ops, operation)(x, axis=tuple(axes))

    def stack_on_zeroth_dimension(self, tensors: list[Any]) -> Any:
        """Tensors of one shape as the entries of one."""
        return tf.keras.ops.stack(tensors)

    def add_axis(self, x: Any, new_position: int) -> Any:
        """Another axis of size 1."""
        return tf.keras.ops.expand_dims(x, new_position)

    def tile(self, x: Any, repeats: Sequence[Any]) -> Any:
        """Everything repeated along each axis."""
        return tf.keras.ops.tile(x, tuple(repeats))

    def concat(self, tensors: Sequence[Any], axis: int) -> Any:
        """Tensors one after another along an axis."""
        return tf.keras.ops.concatenate(list(tensors), axis=axis)

    def is_float_type(self, x: Any) -> bool:
        """Whether elements are floats, so that they have a mean."""
        return x.dtype.is_floating

    def layers(self) -> Any:
        """The module of layers, which einops has for Keras."""
        from einops.layers import keras
        return keras

    def einsum(self, pattern: str, *x: Any) -> Any:
        """A sum of products by a pattern of letters."""
        return tf.keras.ops.einsum(pattern, *x)
