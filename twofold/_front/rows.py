"""Rows of values along their first axis, of tensors as of values that are made of tensors; also in traces.

What rows a value has, and how rows are put together, the specs of the classes say (`ir/type_spec.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold.ir import nest

from .demands import demand

__all__ = ["joined", "of_rows", "reader_of", "stacked", "without_rows"]


def reader_of(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The number of rows of a value, an integer if it is known, and a function that gives the row of a number."""
    if nest.is_composite(value):
        return value.__composite_spec__._reader(value)
    if value.shape.rank == 0:
        raise ValueError("map_fn: elements in elems must be 1+ dimensional Tensors, not scalars")
    return value.shape[0] if value.shape[0] is not None else tf.shape(value)[0], value.__getitem__


def stacked(spec: Any, *values: Any) -> Any:
    """Values of one spec along a new first axis."""
    return spec._stacked(values) if nest.is_composite(spec) else tf.stack(list(values))


def without_rows(spec: Any) -> Any:
    """A value without rows, whose rows would be of a spec."""
    if nest.is_composite(spec):
        return spec._without_rows()
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


def of_rows(spec: Any) -> Any:
    """The spec of values whose rows are of a spec."""
    if nest.is_composite(spec):
        return spec._batched(None)
    return tf.TensorSpec(None if spec.shape.rank is None else [None, *spec.shape], spec.dtype)
