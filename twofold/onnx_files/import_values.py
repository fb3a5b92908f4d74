"""The values of an imported graph while it is traced.

A value is one of: an array that is known (`np.ndarray`); sizes (an object array of integers and `Dim`s with the dtype
of its elements, `Sizes`), by which shapes follow where a model computes them; a tensor; a tensor that is kept with
channels last (`ChannelsLast`), as convolutions compute, although the graph has them on axis 1; or a weight that is kept
in another order (`Turned`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

import twofold as tf
from twofold._front.api import SymbolicValueError, is_open, parts
from twofold._ops.array_creation import as_scalar
from twofold.ir.dims import Dim
from twofold.ir.dtypes import DType
from twofold.ir.errors import InvalidArgumentError

__all__ = ["ChannelsLast", "NeedsSizes", "Sizes", "Turned", "Value", "channels_last", "dims_of", "dtype_of", "int_list",
           "known_array", "open_list", "plain", "sizes_of", "tensor_of"]


class NeedsSizes(InvalidArgumentError):
    """A node must know sizes that the trace leaves open."""


class Sizes:
    """Integers of which some are `Dim`s: an object array, and the dtype that its elements have."""

    __slots__ = ("array", "dtype")

    def __init__(self, array: np.ndarray, dtype: DType) -> None:
        self.array, self.dtype = array, dtype

    def tensor(self) -> Any:
        """The tensor of them."""
        flat = [tf.cast(as_scalar(x), self.dtype) for x in self.array.ravel()]
        return tf.reshape(tf.stack(flat), self.array.shape) if flat else tf.zeros(self.array.shape, self.dtype)


class ChannelsLast:
    """A tensor of a graph that has channels on axis 1, kept with channels on the last.

    Attributes:
        kept: the tensor.
        scaled: for the result of a convolution of few weights: from a factor and an offset for each channel to what it
            is by them, made with weights by the factor; else None.
    """

    __slots__ = ("kept", "scaled")

    def __init__(self, kept: Any, scaled: Callable[[Any, Any], Any] | None = None) -> None:
        self.kept, self.scaled = kept, scaled

    def tensor(self) -> Any:
        """The tensor with channels on axis 1."""
        rank = len(self.kept.dims)
        return tf.transpose(self.kept, (0, rank - 1, *range(1, rank - 1)))


class Turned:
    """A weight that is kept with its axes in another order: axis i of what is kept is axis `perm[i]` of the weight."""

    __slots__ = ("kept", "perm")

    def __init__(self, kept: Any, perm: tuple[int, ...]) -> None:
        self.kept, self.perm = kept, perm

    @property
    def dims(self) -> tuple[Any, ...]:
        """The sizes that the weight has in the graph."""
        kept = self.kept.shape
        return tuple(kept[self.perm.index(i)] for i in range(len(self.perm)))

    @property
    def dtype(self) -> DType:
        """The dtype of its elements."""
        return self.kept.dtype

    def tensor(self) -> Any:
        """The weight as the graph has it."""
        return tf.transpose(self.kept, [self.perm.index(i) for i in range(len(self.perm))])


Value: TypeAlias = Any


def tensor_of(value: Value) -> Any:
    """A value as a tensor."""
    if value is None or isinstance(value, (tf.Tensor, list)):
        return value
    if isinstance(value, (Sizes, ChannelsLast, Turned)):
        return value.tensor()
    return tf.constant(value)


def plain(value: Value) -> Value:
    """A value that is not kept with channels last."""
    return value.tensor() if isinstance(value, ChannelsLast) else value


def channels_last(value: Value) -> Any:
    """The tensor of a value with its channels on the last axis."""
    if isinstance(value, ChannelsLast):
        return value.kept
    x = tensor_of(value)
    rank = len(x.dims)
    return tf.transpose(x, (0, *range(2, rank), 1))


def sizes_of(dims: Any, dtype: DType) -> Value:
    """Sizes as a value: an array where all are known."""
    if any(isinstance(d, Dim) for d in dims):
        array = np.empty(len(dims), object)
        array[:] = list(dims)
        return Sizes(array, dtype)
    return np.array(dims, dtype.np)


def dims_of(value: Value) -> tuple[Any, ...]:
    """The sizes of a value's axes."""
    if isinstance(value, Sizes):
        return value.array.shape
    if isinstance(value, ChannelsLast):
        n, *spatial, c = value.kept.dims
        return (n, c, *spatial)
    return value.shape if isinstance(value, np.ndarray) else value.dims


def dtype_of(value: Value) -> DType:
    """The dtype of a value's elements."""
    if isinstance(value, np.ndarray):
        return tf.as_dtype(value.dtype)
    return value.kept.dtype if isinstance(value, ChannelsLast) else value.dtype


def known_array(value: Value, what: str) -> np.ndarray:
    """The elements of a value that must be known.

    Raises:
        SymbolicValueError: only running can tell them: then the model runs op by op. NeedsSizes: they are sizes that a
            trace leaves open.
    """
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, Sizes):
        raise NeedsSizes(f"{what} depends on sizes that are not known when the model is traced")
    return np.asarray(value.numpy())


def int_list(value: Value, what: str) -> list[Any]:
    """The elements of an integer value, flat: numbers, and `Dim`s where sizes are not known.

    Raises:
        SymbolicValueError: only running can tell them.
    """
    return [x if isinstance(x, Dim) else int(x) for x in _flat(value, what)]


def _flat(value: Value, what: str) -> list[Any]:
    if isinstance(value, np.ndarray):
        return value.ravel().tolist()
    if isinstance(value, Sizes):
        return list(value.array.ravel())
    pieces = parts(value, what)
    if any(is_open(p) for p in pieces):
        raise SymbolicValueError(f"{what} is known only when the model runs")
    return pieces


def open_list(value: Value, what: str) -> list[Any]:
    """The elements of an integer value, flat: numbers, `Dim`s, and scalar tensors for what only running can tell."""
    if isinstance(value, (np.ndarray, Sizes)):
        return int_list(value, what)
    return list(parts(value, what))
