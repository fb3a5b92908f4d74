"""Functions that TensorFlow 1 has under other names or with other arguments than `tf`: reductions, conversions, maths.

Arguments are renamed here and nothing else: `reduction_indices` and `dimension` are `axis`, `keep_dims` is `keepdims`,
and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.api import public

from .building import named
from .operations import Operation

__all__ = [
    "arg_max", "arg_min", "argmax", "argmin", "batch_gather", "boolean_mask", "clip_by_average_norm", "cond",
    "confusion_matrix", "count_nonzero", "cumprod", "div", "div_no_nan", "expand_dims", "floor_div", "gather",
    "log_sigmoid", "matrix_transpose", "mod", "multinomial", "norm", "random_crop", "random_shuffle", "reduce_all",
    "reduce_any", "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum",
    "reverse", "scatter_add", "scatter_max", "scatter_min", "scatter_nd_add", "scatter_nd_sub", "scatter_nd_update",
    "scatter_sub", "scatter_update", "set_random_seed", "shape", "squeeze", "to_bfloat16", "to_complex128",
    "to_complex64", "to_double", "to_float", "to_int32", "to_int64", "where",
]


def one_of(new: Any, old: Any, new_name: str, old_name: str) -> Any:
    """The value of an argument that has two names.

    Raises:
        ValueError: both were given.
    """
    if old is None:
        return new
    if new is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'")
    return old


def _reduction(name: str) -> Callable[..., Any]:
    """A reduction with the older names of its arguments."""
    def reduce(input_tensor: Any, axis: Any = None, keepdims: bool | None = None, name: str | None = None,
               reduction_indices: Any = None, keep_dims: bool | None = None) -> Any:
        axis = one_of(axis, reduction_indices, "axis", "reduction_indices")
        return named(now(input_tensor, axis, bool(one_of(keepdims, keep_dims, "keepdims", "keep_dims"))), name)
    now = getattr(tf, name)
    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = (f"`tf.{name}`; `reduction_indices` is the older name of `axis`, `keep_dims` that of `keepdims`.")
    return public(reduce)


reduce_all, reduce_any, reduce_logsumexp = map(_reduction, ("reduce_all", "reduce_any", "reduce_logsumexp"))
reduce_max, reduce_mean, reduce_min = map(_reduction, ("reduce_max", "reduce_mean", "reduce_min"))
reduce_prod, reduce_sum = map(_reduction, ("reduce_prod", "reduce_sum"))


@public
def count_nonzero(input_tensor: Any = None, axis: Any = None, keepdims: bool | None = None, dtype: Any = tf.int64,
                  name: str | None = None, reduction_indices: Any = None, keep_dims: bool | None = None,
                  input: Any = None) -> Any:
    """`tf.math.count_nonzero`, with older names of its arguments. `name` has no effect."""
    return tf.math.count_nonzero(one_of(input_tensor, input, "input_tensor", "input"),
                                 one_of(axis, reduction_indices, "axis", "reduction_indices"),
                                 bool(one_of(keepdims, keep_dims, "keepdims", "keep_dims")), dtype)


@public
def argmax(input: Any, axis: Any = None, name: str | None = None, dimension: Any = None,
           output_type: Any = tf.int64) -> Any:
    """`tf.argmax`; `dimension` is the older name of `axis`."""
    axis = one_of(axis, dimension, "axis", "dimension")
    return named(tf.argmax(input, 0 if axis is None else axis, output_type), name)


@public
def argmin(input: Any, axis: Any = None, name: str | None = None, dimension: Any = None,
           output_type: Any = tf.int64) -> Any:
    """`tf.argmin`; `dimension` is the older name of `axis`."""
    axis = one_of(axis, dimension, "axis", "dimension")
    return named(tf.argmin(input, 0 if axis is None else axis, output_type), name)


arg_max, arg_min = argmax, argmin


@public
def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Any:
    """`tf.expand_dims`; `dim` is the older name of `axis`. `name` has no effect."""
    axis = one_of(axis, dim, "axis", "dim")
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return tf.expand_dims(input, axis)


@public
def squeeze(input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Any:
    """`tf.squeeze`; `squeeze_dims` is the older name of `axis`. `name` has no effect."""
    return tf.squeeze(input, one_of(axis, squeeze_dims, "axis", "squeeze_dims"))


@public
def norm(tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: bool | None = None, name: str | None = None,
         keep_dims: bool | None = None) -> Any:
    """`tf.norm`; `keep_dims` is the older name of `keepdims`. `name` has no effect."""
    return tf.norm(tensor, ord, axis, bool(one_of(keepdims, keep_dims, "keepdims", "keep_dims")))


@public
def shape(input: Any, name: str | None = None, out_type: Any = tf.int32) -> Any:
    """`tf.shape`. `name` has no effect."""
    return tf.shape(input, out_type)


@public
def reverse(tensor: Any, axis: Any, name: str | None = None) -> Any:
    """`tf.reverse`. `name` has no effect."""
    return tf.reverse(tensor, axis)


@public
def gather(params: Any, indices: Any, validate_indices: Any = None, name: str | None = None, axis: Any = None,
           batch_dims: int = 0) -> Any:
    """`tf.gather`. `validate_indices` and `name` have no effect."""
    return tf.gather(params, indices, axis=axis, batch_dims=batch_dims)


@public
def batch_gather(params: Any, indices: Any, name: str | None = None) -> Any:
    """`tf.gather` along the last axis of `indices`, all axes before which are those of a batch.

    `name` has no effect.
    """
    indices = tf.convert_to_tensor(indices)
    return tf.gather(params, indices, axis=indices.shape.rank - 1, batch_dims=indices.shape.rank - 1)


@public
def boolean_mask(tensor: Any, mask: Any, name: str | None = "boolean_mask", axis: Any = None) -> Any:
    """`tf.boolean_mask`. `name` has no effect."""
    return tf.boolean_mask(tensor, mask, axis)


@public
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """`tf.where`; a condition of rank 1 selects whole rows of `x` and `y` where these have a higher rank.

    `name` has no effect.
    """
    if x is None or y is None:
        return tf.where(condition, x, y)
    condition, x = tf.convert_to_tensor(condition), tf.convert_to_tensor(x)
    rank = x.shape.rank
    if condition.shape.rank == 1 and rank is not None and rank > 1:
        condition = tf.reshape(condition, [-1] + [1] * (rank - 1))
    return tf.where(condition, x, y)


@public
def cond(pred: Any, true_fn: Any = None, false_fn: Any = None, strict: bool = False, name: str | None = None,
         fn1: Any = None, fn2: Any = None) -> Any:
    """`tf.cond`; `fn1` and `fn2` are older names of `true_fn` and `false_fn`. Functions may assign variables.

    Args:
        pred: a bool scalar.
        true_fn, false_fn: functions of no arguments, whose results agree; `tf.no_op()` counts as True.
        fn1, fn2: older names of the functions.
        strict, name: have no effect.
    Raises:
        TypeError: a function gives an operation that was made in it.

    >>> import twofold as tf
    >>> with tf.compat.v1.Session() as session:
    ...     v, wanted = tf.Variable(1.0), tf.compat.v1.placeholder(tf.bool, [])
    ...     add = tf.compat.v1.cond(wanted, lambda: v.assign_add(1.0), lambda: v)
    ...     session.run(v.initializer)
    ...     print(session.run(add, {wanted: True}), session.run(add, {wanted: False}), session.run(v))
    2.0 2.0 2.0
    """
    then, otherwise = one_of(true_fn, fn1, "true_fn", "fn1"), one_of(false_fn, fn2, "false_fn", "fn2")
    for which, fn in (("true_fn", then), ("false_fn", otherwise)):
        if not callable(fn):
            raise TypeError(f"{which} must be callable.")
    return tf.cond(pred, lambda: _values(then()), lambda: _values(otherwise()))


def _values(result: Any) -> Any:
    """The result of a branch, with tensors in the places of variables and of operations that do nothing."""
    def value(leaf: Any) -> Any:
        if isinstance(leaf, tf.Variable):
            return leaf.read_value()
        if isinstance(leaf, Operation):
            if leaf.updates or leaf.nodes:
                raise TypeError(f"tf.cond: {leaf!r} was made in a branch, and cannot be run from there: assign with "
                                "`Variable.assign`, or make it outside")
            return tf.constant(True)
        return leaf
    return tf.nest.map_structure(value, result)


@public
def div(x: Any, y: Any, name: str | None = None) -> Any:
    """`x / y`; of integers, rounded down. `name` has no effect."""
    x = tf.convert_to_tensor(x)
    y = tf.convert_to_tensor(y, dtype=x.dtype)
    return x // y if x.dtype.is_integer else x / y


floor_div, mod = tf.math.floordiv, tf.math.floormod
div_no_nan, cumprod = tf.math.divide_no_nan, tf.math.cumprod
log_sigmoid, matrix_transpose = tf.math.log_sigmoid, tf.linalg.matrix_transpose


@public
def confusion_matrix(labels: Any, predictions: Any, num_classes: Any = None, dtype: Any = tf.int32,
                     name: str | None = None, weights: Any = None) -> Any:
    """`tf.math.confusion_matrix`. `name` has no effect."""
    return tf.math.confusion_matrix(labels, predictions, num_classes, weights, dtype)


@public
def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Any:
    """`t` scaled down to `clip_norm` where the norm over the number of elements is larger.

    `name` has no effect.

    >>> import twofold as tf
    >>> tf.compat.v1.clip_by_average_norm([3.0, 4.0], 1.0).numpy().tolist()
    [1.2000000476837158, 1.600000023841858]
    """
    t = tf.convert_to_tensor(t)
    average = tf.norm(t) / tf.cast(tf.size(t), t.dtype)
    limit = tf.cast(clip_norm, t.dtype)
    return t * limit * tf.minimum(1.0 / average, 1.0 / limit)


# -- conversions ---------------------------------------------------------------------------------------
def _to(dtype: Any) -> Callable[..., Any]:
    def convert(x: Any, name: str | None = None) -> Any:
        return tf.cast(x, dtype)
    convert.__doc__ = f"`tf.cast(x, tf.{dtype.name})`. `name` has no effect."
    return public(convert)


to_float, to_double, to_bfloat16 = map(_to, (tf.float32, tf.float64, tf.bfloat16))
to_int32, to_int64 = map(_to, (tf.int32, tf.int64))
to_complex64, to_complex128 = map(_to, (tf.complex64, tf.complex128))


# -- randomness ----------------------------------------------------------------------------------------
@public
def set_random_seed(seed: int) -> None:
    """`tf.random.set_seed`."""
    tf.random.set_seed(seed)


random_shuffle = tf.random.shuffle


@public
def random_crop(value: Any, size: Any, seed: Any = None, name: str | None = None) -> Any:
    """`tf.image.random_crop`: a part of `value` of a size, from a place drawn at random. `name` has no effect."""
    from twofold.image import random_crop as crop
    return crop(value, size, seed)


@public
def multinomial(logits: Any, num_samples: Any, seed: Any = None, name: str | None = None,
                output_dtype: Any = None) -> Any:
    """`tf.random.categorical`. `name` has no effect."""
    return tf.random.categorical(logits, num_samples, output_dtype or tf.int64, seed)


# -- parts of variables --------------------------------------------------------------------------------
def _scattered(update: Callable[[Any, Any, Any], Any], nd: bool, what: str) -> Callable[..., Any]:
    def scatter(ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None) -> Any:
        where_ = tf.convert_to_tensor(indices)
        given = tf.convert_to_tensor(updates, dtype=ref.dtype)
        if not nd:
            rank = where_.shape.rank
            given = tf.broadcast_to(given, tf.concat([tf.shape(where_), tf.shape(ref)[1:]], 0)) if (
                given.shape.rank == 0) else given
            assert rank is not None
            where_ = tf.expand_dims(where_, -1)
        return ref.assign(update(tf.convert_to_tensor(ref), where_, given))
    scatter.__doc__ = (f"{what} a variable by index{' of several axes' if nd else ' of the first axis'}; in a graph, "
                       "what does it when it runs. `use_locking` and `name` have no effect.")
    return public(scatter)


scatter_update = _scattered(tf.tensor_scatter_nd_update, False, "Set rows of")
scatter_add = _scattered(tf.tensor_scatter_nd_add, False, "Add to rows of")
scatter_sub = _scattered(tf.tensor_scatter_nd_sub, False, "Subtract from rows of")
scatter_max = _scattered(tf.tensor_scatter_nd_max, False, "Raise to at least their updates rows of")
scatter_min = _scattered(tf.tensor_scatter_nd_min, False, "Lower to at most their updates rows of")
scatter_nd_update = _scattered(tf.tensor_scatter_nd_update, True, "Set parts of")
scatter_nd_add = _scattered(tf.tensor_scatter_nd_add, True, "Add to parts of")
scatter_nd_sub = _scattered(tf.tensor_scatter_nd_sub, True, "Subtract from parts of")
