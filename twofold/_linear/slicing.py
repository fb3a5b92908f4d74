"""Parts of a batch of operators: what each was made of, cut along the axes of the batch.

The axes of a parameter's own (`LinearOperator._experimental_parameter_ndims_to_matrix_ndims`) stay whole; a parameter
with fewer axes of a batch than the operator, or axes of size 1, is the same for several of its matrices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import twofold as tf

__all__ = ["axes_of", "sliced"]


def sliced(operator: Any, slices: Any) -> Any:
    """The operator of the matrices that `slices` choose.

    Args:
        operator: a `tf.linalg.LinearOperator`.
        slices: an index, or a tuple of indices, of the axes of its batch.
    Raises:
        IndexError: there are more indices than the batch has axes.
        NotImplementedError: the class does not say which axes its parameters have.
    """
    keys = slices if isinstance(slices, tuple) else (slices,)
    taken = sum(key is not tf.newaxis and key is not Ellipsis for key in keys)
    rank = operator.batch_shape.rank
    if rank is not None and taken > rank:
        raise IndexError(f"{type(operator).__name__}: {taken} indices for a batch of {rank} "
                         f"ax{'i' if rank == 1 else 'e'}s.")
    if Ellipsis not in [key if key is Ellipsis else None for key in keys]:
        keys = (*keys, Ellipsis)
    return _cut(operator, keys, operator.batch_shape_tensor())


def _cut(operator: Any, keys: tuple[Any, ...], batch: Any) -> Any:
    """The part of an operator as if its batch had the shape `batch`."""
    axes, given = operator._experimental_parameter_ndims_to_matrix_ndims, operator.parameters
    made = {name: _part(given[name], own, keys, batch) for name, own in axes.items() if given.get(name) is not None}
    if "batch_shape" in given:
        made["batch_shape"] = _batch_of(keys, batch)
    return type(operator)(**{**given, **made})


def _part(value: Any, own: Any, keys: tuple[Any, ...], batch: Any) -> Any:
    if isinstance(value, (list, tuple)):
        counts = own if isinstance(own, (list, tuple)) else [own] * len(value)
        return [_part(v, n, keys, batch) for v, n in zip(value, counts, strict=True)]
    if hasattr(value, "_experimental_parameter_ndims_to_matrix_ndims"):
        return _cut(value, keys, batch)
    wide = tf.broadcast_to(value, tf.concat([batch, tf.shape(value)[tf.rank(value) - own:]], 0))
    return wide[(*keys, *[slice(None)] * own)]


def _batch_of(keys: tuple[Any, ...], batch: Any) -> Any:
    """The shape of what is left of a batch."""
    known = tf.get_static_value(batch)
    if known is not None and not any(map(tf.is_tensor, keys)):
        return list(np.empty(tuple(known), np.bool_)[keys].shape)
    return tf.shape(tf.zeros(batch, tf.bool)[keys])


def axes_of(operator: Any, axes: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The axes of the parameters of a class that says so.

    Raises:
        NotImplementedError: it does not.
    """
    if axes is None:
        raise NotImplementedError(f"{type(operator).__name__} does not say which axes its parameters have: "
                                  "_experimental_parameter_ndims_to_matrix_ndims must be their numbers by name.")
    return axes
