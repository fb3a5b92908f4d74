"""Placeholders of sparse and ragged tensors."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import public

from .building import placeholder, placeholder_with_default
from .graph import current_graph

__all__ = ["ragged_placeholder", "sparse_placeholder"]


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
