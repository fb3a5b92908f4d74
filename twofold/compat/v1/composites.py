"""Sparse and ragged tensors of graphs: their placeholders, and their values as sessions take and give them."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import public, public_class
from twofold.ir import nest

from .building import placeholder, placeholder_with_default
from .graph import current_graph

__all__ = ["RaggedTensorValue", "SparseTensorValue", "constant_value", "fed_parts", "ragged_placeholder",
           "sparse_placeholder", "value_of"]


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


# -- placeholders --------------------------------------------------------------------------------------------------
def _needs_graph(name: str) -> None:
    if current_graph() is None:
        raise RuntimeError(f"`{name}` is not compatible with eager execution.")


@public
def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Any:
    """A sparse tensor whose value is fed when the graph runs.

    Args:
        dtype: of its values.
        shape: its shape, with None for sizes that are not known, or a vector of sizes; without it the rank is not known
            either, and only functions of matrices take it.
        name: its name, from which those of its tensors come.
    Returns:
        A `tf.SparseTensor`. What is fed for it is a `SparseTensorValue`, or a tuple of its arrays.
    Raises:
        RuntimeError: ops run at once.

    >>> import twofold as tf
    >>> v1 = tf.compat.v1
    >>> with v1.Session() as session:
    ...     x = v1.sparse_placeholder(tf.float32, [None, 3])
    ...     value = v1.SparseTensorValue([[0, 1]], [7.0], [2, 3])
    ...     print(session.run(tf.sparse.reduce_sum(x, axis=1), feed_dict={x: value}))
    [7. 0.]
    """
    _needs_graph("sparse_placeholder")
    names = [None if name is None else f"{name}/{part}" for part in ("shape", "values", "indices")]
    if shape is None:
        rank, static = None, None
        sizes = placeholder(tf.int64, [None], names[0])
    else:
        sizes, static = _sizes(shape)
        rank = sizes.shape[0]
        sizes = placeholder_with_default(sizes, sizes.shape, names[0])
    values = placeholder(dtype, [None], names[1])
    made = tf.SparseTensor(placeholder(tf.int64, [None, rank], names[2]), values, sizes)
    if static is not None:
        made.set_shape(static)
    return made


def _sizes(shape: Any) -> tuple[Any, Any]:
    """A shape as a vector, -1 where a size is not known; and as a static shape."""
    if isinstance(shape, tf.Tensor):
        known = tf.get_static_value(shape)
        static = [None] * shape.shape[0] if known is None else [None if n < 0 else int(n) for n in known]
        return tf.cast(shape, tf.int64), tf.TensorShape(static)
    sizes = [-1 if n is None else int(n) for n in tuple(shape)]
    return tf.constant(sizes, tf.int64, [len(sizes)]), tf.TensorShape([None if n < 0 else n for n in sizes])


@public
def ragged_placeholder(dtype: Any, ragged_rank: int, value_shape: Any = None, name: str | None = None) -> Any:
    """A ragged tensor whose value is fed when the graph runs.

    Args:
        dtype: of its values.
        ragged_rank: how many axes are ragged; for 0 a dense placeholder comes out.
        value_shape: the shape of the values inside of the ragged axes; by default they are scalars.
        name: its name, from which those of its tensors come.
    Returns:
        A `tf.RaggedTensor`. What is fed for it is a `RaggedTensorValue`.
    Raises:
        RuntimeError: ops run at once.

    >>> import twofold as tf
    >>> v1 = tf.compat.v1
    >>> with v1.Session() as session:
    ...     x = v1.ragged.placeholder(tf.int32, 1)
    ...     print(session.run(x + 1, feed_dict={x: v1.ragged.constant_value([[1, 2], []])}))
    <tf.RaggedTensorValue [[2, 3], []]>
    """
    _needs_graph("ragged.placeholder")
    if ragged_rank == 0:
        return placeholder(dtype, value_shape, name)
    title = "RaggedPlaceholder" if name is None else name
    inner = tf.TensorShape([None]).concatenate(tf.TensorShape(() if value_shape is None else value_shape))
    made = placeholder(dtype, inner, f"{title}/flat_values")
    splits = [placeholder(tf.int64, [None], f"{title}/row_splits_{n}") for n in range(ragged_rank)]
    for one in reversed(splits):
        made = tf.RaggedTensor.from_row_splits(made, one, validate=False)
    return made


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
