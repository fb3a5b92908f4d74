"""Shapes as layers see them: tuples with None for sizes that are unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import twofold as tf
from twofold._front.api import SymbolicValueError, describe, listed

__all__ = ["InputShape", "as_shape", "shapes_of"]


class InputShape(tuple):
    """A tuple of sizes, None where one is unknown, that also answers to the methods of a `tf.TensorShape`."""

    __slots__ = ()

    def as_list(self) -> list[int | None]:
        """The sizes as a list."""
        return list(self)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self)

    @property
    def ndims(self) -> int:
        """The number of dimensions."""
        return len(self)

    def is_fully_defined(self) -> bool:
        """Whether all sizes are known."""
        return None not in self

    def num_elements(self) -> int | None:
        """The product of the sizes; None if one is unknown."""
        return tf.TensorShape(self).num_elements()

    def __getitem__(self, key: Any) -> Any:
        taken = tuple.__getitem__(self, key)
        return InputShape(taken) if isinstance(key, slice) else taken


def as_shape(value: Any) -> Any:
    """A shape, or a structure of shapes, as files or users give it: lists of sizes are shapes.

    Raises:
        TypeError: it is none. InvalidArgumentError: it has no end.
    """
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {k: as_shape(v) for k, v in value.items()}
    try:
        items = listed(value, "A shape")
    except TypeError:
        raise TypeError(f"A shape must be a list or tuple of integers and None; got {describe(value)}.") from None
    if not isinstance(value, tf.TensorShape) and any(
            isinstance(v, (list, tuple, Mapping, tf.TensorShape)) for v in items):
        return [as_shape(v) for v in items]
    try:
        return InputShape([None if d is None else int(d) for d in items])
    except SymbolicValueError:  # a trace does not know it
        raise
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"A shape must hold integers and None; got {describe(value)}.") from None


def shapes_of(value: Any) -> Any:
    """The shapes of tensors in structures; None for objects without a shape."""
    return tf.nest.map_structure(_shape, value)


def _shape(value: Any) -> Any:
    shape = getattr(value, "shape", None)
    return None if shape is None or getattr(shape, "rank", 0) is None else InputShape(shape)
