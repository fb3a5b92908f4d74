"""Ragged and sparse tensors as Keras takes them: in functional models, element by element, row by row, as results.

What functions of `tf.keras.ops` do with them is `ops/_composites.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.dispatch import CompositeTensor

from . import _registry

__all__ = ["each", "in_mode", "in_ops", "is_composite", "joined", "rank_of_rows", "result", "rows_at", "spec_of",
           "spec_of_rows"]


def is_composite(value: Any) -> bool:
    """Whether a value is a ragged or sparse tensor, or another that is made of tensors."""
    return isinstance(value, CompositeTensor)


# -- specs --------------------------------------------------------------------------------------------------------
def rank_of_rows(shape: Sequence[int | None]) -> int:
    """How many axes of a ragged tensor are ragged ones: up to the last whose size is unknown, one at least."""
    return max([n for n, size in enumerate(shape) if n and size is None], default=1)


def spec_of(x: Any) -> Any:
    """The spec of the values of a KerasTensor; other specs as they are."""
    if getattr(x, "sparse", False):
        return tf.SparseTensorSpec(x.shape, x.dtype)
    if getattr(x, "ragged", False):
        return tf.RaggedTensorSpec(x.shape, x.dtype, rank_of_rows(x.shape))
    return x if isinstance(x, tf.TypeSpec) else tf.TensorSpec(x.shape, x.dtype)


def spec_of_rows(x: Any) -> Any:
    """The spec of a ragged or sparse tensor, and of others with another number of rows."""
    if isinstance(x, tf.SparseTensor):
        return tf.SparseTensorSpec([None, *x.shape[1:]], x.dtype)
    return tf.RaggedTensorSpec([None, *x.shape[1:]], x.dtype, x.ragged_rank, x.row_splits.dtype)


def result(shape: Any, dtype: Any, sparse: bool = False, ragged: bool = False) -> Any:
    """The spec of a layer's outputs."""
    dtype = tf.as_dtype(dtype)
    if sparse:
        return tf.SparseTensorSpec(shape, dtype)
    return tf.RaggedTensorSpec(shape, dtype, rank_of_rows(tuple(shape))) if ragged else tf.TensorSpec(shape, dtype)


# -- values -------------------------------------------------------------------------------------------------------
def each(function: Callable[[Any], Any], x: Any) -> Any:
    """A function of each element of a dense, ragged or sparse tensor; of a sparse one, of those that it has."""
    if isinstance(x, tf.RaggedTensor):
        return x.with_flat_values(function(x.flat_values))
    return x.with_values(function(x.values)) if isinstance(x, tf.SparseTensor) else function(x)


def in_mode(value: Any) -> Any:
    """A tensor, or a ragged or sparse one as it is."""
    return value if is_composite(value) else tf.convert_to_tensor(value)


def in_ops(name: str, *args: Any, **kwargs: Any) -> Any:
    """The result of a function of `tf.keras.ops`, which know ragged and sparse tensors."""
    return _registry.ask("operations")[name](*args, **kwargs)


def rows_at(x: Any, rows: Any) -> Any:
    """The rows of a ragged or sparse tensor at some places, in that order."""
    if not isinstance(x, tf.SparseTensor):
        return tf.gather(x, rows)
    indices, places = x.indices.numpy(), np.asarray(rows)
    order = np.argsort(indices[:, 0], kind="stable")
    starts = np.searchsorted(indices[order, 0], places)
    counts = np.searchsorted(indices[order, 0], places, "right") - starts
    taken = order[np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())]
    made = np.concatenate([np.repeat(np.arange(len(places)), counts)[:, np.newaxis], indices[taken, 1:]], 1)
    return tf.SparseTensor(made, tf.gather(x.values, taken), [len(places), *x.dense_shape.numpy()[1:]])


def joined(parts: Sequence[Any]) -> Any:
    """Outputs of several batches as one: an array, or a ragged or sparse tensor.

    Dense outputs whose sizes differ beyond the batch become a ragged one.
    """
    first = parts[0]
    if isinstance(first, tf.SparseTensor):
        return first if len(parts) == 1 else tf.sparse.concat(0, list(parts))
    if isinstance(first, tf.RaggedTensor):
        return first if len(parts) == 1 else tf.concat(list(parts), 0)
    if len(parts) == 1:
        return np.asarray(first)
    ragged_rank = max([n for n, sizes in enumerate(zip(*[p.shape for p in parts], strict=True)) if n and len(
        set(sizes)) > 1], default=0)
    if not ragged_rank:
        return np.concatenate(parts)
    return tf.concat([tf.RaggedTensor.from_tensor(p, ragged_rank=ragged_rank) for p in parts], 0)
