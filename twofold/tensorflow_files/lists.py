"""Lists of tensors, as loops of TensorFlow's fill and read them: a `tf.TensorArray`, and what is known of its items."""

from __future__ import annotations

from typing import Any

from .table import tensor

__all__ = ["TensorList", "carried"]


class TensorList:
    """A list of tensors.

    Args:
        array: the items.
        like: a list of the same kind.

    Attributes:
        array: a `tf.TensorArray`, which operations replace.
        dtype, shape: of the items.
    """

    __slots__ = ("array", "dtype", "shape")

    def __init__(self, array: Any, like: TensorList | None = None, dtype: Any = None, shape: Any = None) -> None:
        self.array: Any = array
        self.dtype: Any = dtype if like is None else like.dtype
        self.shape: Any = shape if like is None else like.shape


def carried(value: Any) -> Any:
    """A value as control flow carries it."""
    return value.array if isinstance(value, TensorList) else tensor(value)
