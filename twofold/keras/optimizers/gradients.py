"""The preparation of gradients for an update: missing ones are left out, long ones are clipped.

Of a variable of which rows were read the gradient is `tf.IndexedSlices`, which may have several slices for one row. As
in Keras on TensorFlow, what is not linear is done to each slice, and what comes out is added up.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import twofold as tf

from ..scalars import number

__all__ = ["clip_by_global_norm", "clip_by_norm", "dense", "of_values", "summed_over_replicas", "with_squares",
           "without_missing"]


def without_missing(grads: Sequence[Any], variables: Sequence[tf.Variable], slices: bool
                    ) -> tuple[list[Any], list[tf.Variable]]:
    """Gradients as tensors with their variables, without the pairs whose gradient is None; warns of those.

    Args:
        grads: a gradient for each variable, or None.
        variables: the variables.
        slices: whether `tf.IndexedSlices` stay as they are.

    Raises:
        ValueError: all of them are None, or a gradient has not its variable's shape.
    """
    kept: list[Any] = []
    moved, missing = [], []
    for gradient, variable in zip(grads, variables, strict=True):
        if gradient is None:
            missing.append(variable.name)
            continue
        if isinstance(gradient, tf.IndexedSlices) and slices and variable.shape.is_compatible_with(gradient.shape):
            kept.append(gradient)
            moved.append(variable)
            continue
        if not isinstance(gradient, tf.Tensor):
            gradient = tf.convert_to_tensor(gradient)
        if gradient.dims != variable.dims and not gradient.shape.is_compatible_with(variable.shape):
            raise ValueError(f"The gradient for variable {variable.name} has shape {gradient.shape}; expected the "
                             f"variable's shape {variable.shape}.")
        kept.append(gradient)
        moved.append(variable)
    if not kept:
        raise ValueError(f"No gradients provided for any variable: {', '.join(missing)}.")
    if missing:
        warnings.warn(f"Gradients do not exist for variables {missing} when minimizing the loss. If you are using "
                      "`model.compile()`, did you forget to provide a `loss` argument?", stacklevel=4)
    return kept, moved


def summed_over_replicas(grads: Sequence[Any]) -> list[Any]:
    """Gradients, summed over the replicas of the strategy in which this is called (`tf.distribute`)."""
    grads = [tf.convert_to_tensor(g) if isinstance(g, tf.IndexedSlices) else g for g in grads]
    there = [n for n, gradient in enumerate(grads) if gradient is not None]
    context: Any = tf.distribute.get_replica_context()
    whole = list(grads)
    for n, total in zip(there, context.all_reduce(tf.distribute.ReduceOp.SUM, [grads[n] for n in there]), strict=True):
        whole[n] = total
    return whole


def of_values(function: Callable[[Any], Any], gradient: Any) -> Any:
    """A gradient of which each value, or each slice, is what a function makes of it."""
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(function(gradient.values), gradient.indices, gradient.dense_shape)
    return function(gradient)


def dense(gradient: Any) -> Any:
    """A gradient as a tensor of the variable's shape: slices for one row are added up."""
    return tf.convert_to_tensor(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient


def with_squares(gradient: Any, dtype: tf.DType) -> tuple[Any, Any]:
    """A gradient and its squares as dense tensors of a dtype; where there are slices, the sums of their squares."""
    gradient = tf.cast(gradient, dtype)
    return dense(gradient), dense(of_values(tf.square, gradient))


def _length(gradient: Any) -> Any:
    """The sum of the squares of what a gradient holds."""
    return tf.reduce_sum(tf.square(gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient))


def clip_by_norm(gradient: Any, norm: float) -> Any:
    """The gradient, scaled down to Euclidean length `norm` where it is longer."""
    divisor = tf.maximum(tf.sqrt(_length(gradient)), norm)
    return of_values(lambda values: values * norm / divisor, gradient)


def clip_by_global_norm(grads: Sequence[Any], norm: float) -> list[Any]:
    """Gradients, all scaled down by one factor where their common length is more than `norm`.

    Where the length is infinite or NaN, all become NaN, so that it is seen. As in Keras, what comes out is dense.
    """
    length = tf.sqrt(tf.add_n([_length(gradient) for gradient in grads]))
    scale = norm * tf.minimum(1.0 / length, 1.0 / norm) + (length - length)
    return [dense(gradient) * number(scale, gradient.dtype) for gradient in grads]
