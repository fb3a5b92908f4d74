"""`KerasTensor`: what stands for a tensor while a functional model is put together.

It has a shape and a dtype, and remembers the call that made it. Calling a layer on one, or using it in an operator or
a function of `tf`, gives others; `functional.py` makes a model of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import twofold as tf

__all__ = ["KerasTensor", "any_symbolic"]


class History(NamedTuple):
    """Which call made a KerasTensor, and which of its results it is."""

    operation: Any
    node_index: int
    tensor_index: int


class KerasTensor:
    """A tensor of a functional model: a shape and a dtype without a value.

    Args:
        shape: with None for sizes that are unknown.
        dtype: the element type.
        name: for messages.

    >>> import twofold as tf
    >>> x = tf.keras.Input((3,))
    >>> x.shape, x.dtype
    (TensorShape([None, 3]), tf.float32)
    """

    __array_priority__ = 1000

    def __init__(self, shape: Any, dtype: Any = "float32", name: str | None = None):
        self._shape = tf.TensorShape(shape)
        self._dtype = tf.as_dtype(dtype)
        self.name = name or "keras_tensor"
        self._keras_history: History | None = None

    @property
    def shape(self) -> tf.TensorShape:
        """The shape, None for sizes that are unknown."""
        return self._shape

    @property
    def dtype(self) -> tf.DType:
        """The element type."""
        return self._dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._shape)

    def get_shape(self) -> tf.TensorShape:
        """The shape; the same as `.shape`."""
        return self._shape

    def __repr__(self) -> str:
        return f"<KerasTensor shape={tuple(self.shape)}, dtype={self.dtype.name}, name={self.name}>"


def any_symbolic(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether there is a KerasTensor among arguments."""
    for value in args:
        if type(value) is KerasTensor or (tf.nest.is_nested(value) and _within(value)):
            return True
    return bool(kwargs) and any(type(v) is KerasTensor or (tf.nest.is_nested(v) and _within(v))
                                for v in kwargs.values())


def _within(value: Any) -> bool:
    return any(type(v) is KerasTensor for v in tf.nest.flatten(value))
