"""Layers that arrange elements anew: Flatten, Reshape, Permute, RepeatVector."""

from __future__ import annotations

import math
from typing import Any

import twofold as tf
from twofold._front.api import listed

from ..composites import in_ops
from ._declared import DeclaredLayer, FirstOrLast, InputSpec, Shape, data_format_of, positive

__all__ = ["Flatten", "Permute", "RepeatVector", "Reshape"]


class Flatten(FirstOrLast):
    """All axes but the batch's as one.

    Args:
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first"; the latter is flattened as
            if the channels were last.
        kwargs: those of `Layer`.
    Inputs: [batch, ..]. Outputs: [batch, elements].

    >>> import twofold as tf
    >>> tf.keras.layers.Flatten()(tf.zeros([2, 3, 4])).shape
    TensorShape([2, 12])
    """

    _arguments = ("data_format",)

    def __init__(self, data_format: str | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.data_format = data_format_of(data_format)
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        rank = len(inputs.shape)
        if isinstance(inputs, tf.SparseTensor):
            size = None if None in inputs.shape[1:] else math.prod(inputs.shape[1:])
            return in_ops("reshape", inputs, (-1 if inputs.shape[0] is None else inputs.shape[0],
                                              -1 if size is None else size))
        if self._first and rank > 2:
            inputs = tf.transpose(inputs, (0, *range(2, rank), 1))
        known = tuple(inputs.shape)[1:]
        if None not in known:
            return tf.reshape(inputs, (-1 if math.prod(known) else tf.shape(inputs)[0], math.prod(known)))
        return tf.reshape(inputs, (tf.shape(inputs)[0], -1))

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        rest = tuple(input_shape)[1:]
        return (input_shape[0], None if None in rest else math.prod(rest))


class Reshape(DeclaredLayer):
    """The elements of each example in another shape.

    Args:
        target_shape: the shape without the batch; one size may be -1, for what is left.
        kwargs: those of `Layer`.
    Inputs: [batch, ..]. Outputs: [batch, *target_shape].
    Raises:
        ValueError: there is more than one -1, or the numbers of elements differ.

    >>> import twofold as tf
    >>> tf.keras.layers.Reshape((3, -1))(tf.zeros([2, 12])).shape
    TensorShape([2, 3, 4])
    """

    _arguments = ("target_shape",)

    def __init__(self, target_shape: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.target_shape = tuple(listed(target_shape, "target_shape"))
        if sum(size == -1 for size in self.target_shape) > 1 or any(size < -1 for size in self.target_shape):
            raise ValueError("`target_shape` must hold sizes, of which one may be -1. "
                             f"Received: target_shape={self.target_shape}")

    def _sizes(self, rest: Shape) -> Shape:
        """The sizes of the outputs without the batch; None where one is unknown."""
        target, total = self.target_shape, None if None in rest else math.prod(rest)
        if -1 not in target:
            fits = total is None or total == math.prod(target)
            left: int | None = 0
        else:
            others = math.prod(size for size in target if size != -1)
            fits = total is None or (others and total % others == 0)
            left = None if total is None or not others else total // others
        if not fits:
            raise ValueError(f"The total size of the tensor must be unchanged. Received: input_shape={rest}, "
                             f"target_shape={target}")
        return tuple(left if size == -1 else size for size in target)

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        sizes = self._sizes(tuple(inputs.shape)[1:])
        if isinstance(inputs, tf.SparseTensor):
            return in_ops("reshape", inputs, (-1 if inputs.shape[0] is None else inputs.shape[0], *sizes))
        return tf.reshape(inputs, (tf.shape(inputs)[0], *(-1 if size is None else size for size in sizes)))

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        return (input_shape[0], *self._sizes(tuple(input_shape)[1:]))


class Permute(DeclaredLayer):
    """The axes but the batch's in another order.

    Args:
        dims: the order: axis i of the outputs is axis `dims[i - 1]` of the inputs, where the batch is axis 0.
        kwargs: those of `Layer`.
    Raises:
        ValueError: `dims` does not hold the numbers from 1 on, each once.

    >>> import twofold as tf
    >>> tf.keras.layers.Permute((2, 1))(tf.zeros([2, 3, 4])).shape
    TensorShape([2, 4, 3])
    """

    _arguments = ("dims",)

    def __init__(self, dims: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.dims = tuple(listed(dims, "dims"))
        if sorted(self.dims) != list(range(1, len(self.dims) + 1)):
            raise ValueError("Invalid permutation argument `dims` for Permute layer. The set of indices in `dims` must "
                             f"be consecutive and start from 1. Received dims={dims}")
        self.input_spec = InputSpec(ndim=len(self.dims) + 1)

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        if isinstance(inputs, tf.SparseTensor):
            return tf.sparse.transpose(inputs, (0, *self.dims))
        return tf.transpose(inputs, (0, *self.dims))

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        return (input_shape[0], *(input_shape[axis] for axis in self.dims))


class RepeatVector(DeclaredLayer):
    """Each example's vector `n` times, along a new axis.

    Args:
        n: how often.
        kwargs: those of `Layer`.
    Inputs: [batch, features]. Outputs: [batch, n, features].

    >>> import twofold as tf
    >>> tf.keras.layers.RepeatVector(2)(tf.constant([[1.0, 2.0]])).numpy().tolist()
    [[[1.0, 2.0], [1.0, 2.0]]]
    """

    _arguments = ("n",)

    def __init__(self, n: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.n = positive(n, "n")
        self.input_spec = InputSpec(ndim=2)

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        return tf.tile(inputs[:, tf.newaxis], (1, self.n, 1))

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        return (input_shape[0], self.n, input_shape[1])
