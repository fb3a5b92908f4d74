"""The values of sparse and ragged tensors, as sessions of `tf.compat.v1` take and give them."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import public, public_class
from twofold.ir import nest

__all__ = ["RaggedTensorValue", "SparseTensorValue", "constant_value", "fed_parts", "value_of"]


class SparseTensorValue(namedtuple("SparseTensorValue", ["indices", "values", "dense_shape"])):
    """The value of a sparse tensor, as arrays: what a session gives for one, and takes for a placeholder.

    >>> import twofold as tf
    >>> with tf.compat.v1.Session() as session:
    ...     print(session.run(tf.SparseTensor([[1]], [7.0], [3])).values)
    [7.]
    """

    __slots__ = ()


@public_class
class RaggedTensorValue:
    """The value of a ragged tensor, as arrays: what a session gives for one, and takes for a placeholder.

    Args:
        values: a NumPy array, or another `RaggedTensorValue`.
        row_splits: an int32 or int64 vector of NumPy's: where rows begin, and where the last one ends.
    Raises:
        TypeError: they are of other types.

    >>> import numpy as np
    >>> import twofold as tf
    >>> tf.compat.v1.ragged.RaggedTensorValue(np.array([1, 2, 3]), np.array([0, 1, 3])).to_list()
    [[1], [2, 3]]
    """

    def __init__(self, values: Any, row_splits: Any) -> None:
        if not (isinstance(row_splits, (np.ndarray, np.generic)) and row_splits.dtype in (np.int64, np.int32)
                and row_splits.ndim == 1):
            raise TypeError("row_splits must be a 1D int32 or int64 numpy array")
        if not isinstance(values, (np.ndarray, np.generic, RaggedTensorValue)):
            raise TypeError("values must be a numpy array or a RaggedTensorValue")
        self._values: Any = values
        self._row_splits: Any = row_splits

    @property
    def values(self) -> Any:
        """What the rows are made of."""
        return self._values

    @property
    def row_splits(self) -> Any:
        """Where rows begin, and where the last one ends."""
        return self._row_splits

    @property
    def flat_values(self) -> Any:
        """The innermost values."""
        return self._values.flat_values if isinstance(self._values, RaggedTensorValue) else self._values

    @property
    def nested_row_splits(self) -> tuple[Any, ...]:
        """The row splits of all ragged axes, the outermost first."""
        inner = self._values.nested_row_splits if isinstance(self._values, RaggedTensorValue) else ()
        return (self._row_splits, *inner)

    @property
    def dtype(self) -> Any:
        """NumPy's dtype of the values."""
        return self._values.dtype

    @property
    def ragged_rank(self) -> int:
        """How many axes are ragged."""
        return len(self.nested_row_splits)

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape, with None for ragged axes."""
        return (len(self._row_splits) - 1, None, *self._values.shape[1:])

    def to_list(self) -> list[Any]:
        """Nested lists of the values."""
        values = self._values.to_list() if isinstance(self._values, RaggedTensorValue) else self._values.tolist()
        return [values[a:b] for a, b in zip(self._row_splits[:-1], self._row_splits[1:], strict=True)]

    def __str__(self) -> str:
        return f"<tf.RaggedTensorValue {self.to_list()}>"

    def __repr__(self) -> str:
        return f"tf.RaggedTensorValue(values={self._values!r}, row_splits={self._row_splits!r})"


@public
def constant_value(pylist: Any, dtype: Any = None, ragged_rank: int | None = None, inner_shape: Any = None,
                   row_splits_dtype: Any = "int64") -> Any:
    """The `RaggedTensorValue` of a nested list, in NumPy's dtypes; an array where no axis is ragged.

    Args:
        pylist: a nested list whose scalars all have one depth.
        dtype: of the values; by default the one that NumPy gives them.
        ragged_rank, inner_shape, row_splits_dtype: see `tf.ragged.constant`.

    >>> import twofold as tf
    >>> print(tf.compat.v1.ragged.constant_value([[1, 2], [3], []]))
    <tf.RaggedTensorValue [[1, 2], [3], []]>
    """
    if dtype is None:
        dtype = np.asarray(_scalars(pylist)).dtype
        dtype = tf.string if dtype.kind in "US" else tf.as_dtype(dtype)
    with tf.init_scope():
        made = tf.ragged.constant(pylist, dtype, ragged_rank, inner_shape, row_splits_dtype=row_splits_dtype)
        return value_of(made, [t.numpy() for t in nest.flatten(made)])


def _scalars(pylist: Any) -> list[Any]:
    if isinstance(pylist, np.ndarray):
        return list(pylist.ravel())
    return [x for item in pylist for x in _scalars(item)] if isinstance(pylist, (list, tuple)) else [pylist]


# -- values --------------------------------------------------------------------------------------------------------
def value_of(tensor: Any, arrays: Sequence[Any]) -> Any:
    """The value of a tensor whose components have these values: arrays, as sessions give them."""
    if isinstance(tensor, tf.SparseTensor):
        return SparseTensorValue(*arrays)
    if not isinstance(tensor, tf.RaggedTensor):
        return nest.pack(tensor, arrays)
    value, *splits = arrays
    for one in reversed(splits):
        value = RaggedTensorValue(value, one)
    return value


def fed_parts(key: Any, value: Any) -> list[Any]:
    """The values of the components of a sparse or ragged tensor, of what is fed for it.

    Raises:
        ValueError: it is no value of such a tensor.
    """
    if isinstance(key, tf.RaggedTensor):
        ragged = isinstance(value, (RaggedTensorValue, tf.RaggedTensor))
        parts = [value.flat_values, *value.nested_row_splits] if ragged else []
    elif isinstance(value, tf.SparseTensor):
        parts = [value.indices, value.values, value.dense_shape]
    else:
        parts = list(value) if isinstance(value, (tuple, list)) else []
    if len(parts) != len(nest.flatten(key)):
        raise ValueError(f"Cannot feed {value!r} for {key!r}: it is no {type(key).__name__}Value that fits.")
    return parts
