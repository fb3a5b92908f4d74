"""Rows along the first axis of a tensor or composite value: how to read them one by one, and to put them together.

Here is what that means for tensors; the specs of composite classes say it for theirs (`ir/type_spec.py`). All of it
works in traces, where the number of rows may be a tensor. `mapping.py` maps functions over rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold.ir import nest

from .demands import demand

__all__ = ["joined", "batched_spec", "row_reader", "stacked", "empty_batch"]


def row_reader(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """How many rows a value has, an integer if it is known, else a scalar tensor; and a function that gives the row of
    a number, which may be a scalar tensor, too.

    Raises:
        ValueError: the value is a scalar.
    """
    if nest.is_composite(value):
        return value.__composite_spec__._row_reader(value)
    if value.shape.rank == 0:
        raise ValueError("map_fn: elements in elems must be 1+ dimensional Tensors, not scalars")
    return value.shape[0] if value.shape[0] is not None else tf.shape(value)[0], value.__getitem__


def stacked(spec: Any, *values: Any) -> Any:
    """Values of one spec, stacked along a new first axis."""
    return spec._stacked(values) if nest.is_composite(spec) else tf.stack(list(values))


def empty_batch(spec: Any) -> Any:
    """A batch without rows, with which batches of rows of a spec can be joined; unknown sizes of rows are 0 in it."""
    if nest.is_composite(spec):
        return spec._empty_batch()
    sizes = [] if spec.shape.rank is None else [n or 0 for n in spec.shape]
    return tf.zeros([0, *sizes], spec.dtype)


def joined(spec: Any, rows: Any, more: Any) -> Any:
    """The rows, of a spec, of one value and behind them those of another."""
    if nest.is_composite(spec):
        return spec._joined(rows, more)
    if not more.shape[1:].is_fully_defined():  # rows of a size that only the first one says
        count, sizes = tf.shape(rows)[:1], tf.shape(more)[1:]
        demand(tf.equal(count[0], 0) | tf.reduce_all(tf.equal(tf.shape(rows)[1:], sizes)),
               "results of different shapes cannot be stacked")
        rows = tf.reshape(rows, tf.concat([count, sizes], 0))
    return tf.concat([rows, more], 0)


def batched_spec(spec: Any) -> Any:
    """The spec of batches of any number of rows of a spec."""
    if nest.is_composite(spec):
        return spec._batched(None)
    return tf.TensorSpec(None if spec.shape.rank is None else [None, *spec.shape], spec.dtype)
