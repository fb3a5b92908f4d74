"""The functions that `tf.keras.backend` had before there was `tf.keras.ops`, for programs that still call them.

Each is a function of `tf` or `tf.keras.ops` under an older name, with the older parameters. New programs call those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import twofold as tf
from twofold._front.api import public

from . import _registry

__all__ = ["OLDER"]

#: the functions by their names
OLDER: dict[str, Callable[..., Any]] = {}


def _older(function: Callable[..., Any]) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = function.__name__.removeprefix("_")
    OLDER[function.__name__] = public(function)
    return function


def _floatx() -> str:
    return str(tf.keras.backend.floatx())


def _axis_reduction(name: str, function: Callable[..., Any], floats: bool = False) -> None:
    def reduce(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        x = tf.convert_to_tensor(x)
        if floats and not x.dtype.is_floating:
            x = tf.cast(x, _floatx())
        return function(x, axis=axis, keepdims=keepdims)
    reduce.__name__, reduce.__doc__ = name, f"`tf.{function.__name__}` over `axis`."
    _older(reduce)


for _name, _function, _floats in (
        ("sum", tf.reduce_sum, False), ("prod", tf.reduce_prod, False), ("max", tf.reduce_max, False),
        ("min", tf.reduce_min, False), ("mean", tf.reduce_mean, True), ("std", tf.math.reduce_std, True),
        ("var", tf.math.reduce_variance, True)):
    _axis_reduction(_name, _function, _floats)

for _name in ("abs", "cos", "exp", "round", "sign", "sin", "sqrt", "square", "tanh", "equal", "not_equal", "greater",
              "greater_equal", "less", "less_equal", "maximum", "minimum", "pow", "shape", "transpose",
              "stop_gradient", "name_scope", "cast"):
    OLDER[_name] = getattr(tf, _name)
OLDER.update(log=tf.math.log, sigmoid=tf.nn.sigmoid, softplus=tf.nn.softplus, softsign=tf.nn.softsign,
             permute_dimensions=tf.transpose, foldl=tf.foldl, foldr=tf.foldr)
for _name in ("binary_crossentropy", "categorical_crossentropy"):
    OLDER[_name] = getattr(tf.keras.ops, _name)


@_older
def map_fn(fn: Any, elems: Any, name: str | None = None, dtype: Any = None) -> Any:
    """`tf.map_fn`."""
    return tf.map_fn(fn, elems, dtype=dtype)


@_older
def _all(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return tf.reduce_all(tf.cast(x, tf.bool), axis, keepdims)


@_older
def _any(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return tf.reduce_any(tf.cast(x, tf.bool), axis, keepdims)


@_older
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = "int32") -> Any:
    """The numbers of a range, of a dtype."""
    if stop is None:
        start, stop = 0, start
    return tf.cast(tf.range(start, stop, step), dtype)


@_older
def argmax(x: Any, axis: Any = -1) -> Any:
    """`tf.argmax`."""
    return tf.argmax(x, axis)


@_older
def argmin(x: Any, axis: Any = -1) -> Any:
    """`tf.argmin`."""
    return tf.argmin(x, axis)


@_older
def backend() -> str:
    """The name of the backend, as programs that ask expect it."""
    return "tensorflow"


@_older
def batch_dot(x: Any, y: Any, axes: Any = None) -> Any:
    """Products of the items of two batches; see `tf.keras.layers.Dot`."""
    x, y = tf.convert_to_tensor(x), tf.convert_to_tensor(y)
    if axes is None:
        axes = [x.shape.rank - 1, y.shape.rank - 2 if y.shape.rank > 2 else y.shape.rank - 1]
    elif isinstance(axes, int):
        axes = [axes, axes]
    axes = [a % t.shape.rank for a, t in zip(axes, (x, y), strict=True)]
    names = "abcdefghijklm"
    left = names[:x.shape.rank]
    right = [names[0]] + list("nopqrstuvwxyz"[:y.shape.rank - 1])
    right[axes[1]] = left[axes[0]]
    kept = [c for n, c in enumerate(left) if n not in (0, axes[0])] + [
        c for n, c in enumerate(right) if n not in (0, axes[1])]
    product = tf.einsum(f"{left},{''.join(right)}->{names[0]}{''.join(kept)}", x, y)
    return product if kept else tf.expand_dims(product, 1)


@_older
def batch_flatten(x: Any) -> Any:
    """Each item of a batch as a vector."""
    x = tf.convert_to_tensor(x)
    return tf.reshape(x, [tf.shape(x)[0], -1]) if not x.shape[1:].is_fully_defined() else tf.reshape(
        x, [-1, x.shape[1:].num_elements()])


@_older
def batch_get_value(tensors: Sequence[Any]) -> list[Any]:
    """The values as NumPy arrays."""
    return [t.numpy() for t in tensors]


@_older
def batch_set_value(tuples: Sequence[tuple[Any, Any]]) -> None:
    """Assign values to variables."""
    for variable, value in tuples:
        variable.assign(tf.cast(value, variable.dtype))


@_older
def batch_normalization(x: Any, mean: Any, var: Any, beta: Any, gamma: Any, axis: int = -1, epsilon: float = 1e-3
                        ) -> Any:
    """`tf.nn.batch_normalization`, with statistics along one axis."""
    x = tf.convert_to_tensor(x)
    shape = [1] * x.shape.rank
    shape[axis] = -1
    mean, var, beta, gamma = [None if t is None else tf.reshape(t, shape) for t in (mean, var, beta, gamma)]
    return tf.nn.batch_normalization(x, mean, var, beta, gamma, epsilon)


@_older
def bias_add(x: Any, bias: Any, data_format: str | None = None) -> Any:
    """`x` plus a bias for each channel."""
    first = (data_format or tf.keras.backend.image_data_format()) == "channels_first"
    return tf.nn.bias_add(x, bias, "NCHW" if first else "NHWC")


@_older
def cast_to_floatx(x: Any) -> Any:
    """An array or tensor of the default float."""
    import numpy as np
    return tf.cast(x, _floatx()) if isinstance(x, (tf.Tensor, tf.Variable)) else np.asarray(x, dtype=_floatx())


@_older
def clip(x: Any, min_value: Any, max_value: Any) -> Any:
    """`tf.clip_by_value`; None for no bound."""
    x = tf.convert_to_tensor(x)
    low = x.dtype.min if min_value is None else min_value
    return tf.clip_by_value(x, tf.cast(low, x.dtype), tf.cast(x.dtype.max if max_value is None else max_value, x.dtype))


@_older
def concatenate(tensors: Sequence[Any], axis: int = -1) -> Any:
    """`tf.concat`."""
    return tf.concat(tensors, axis)


@_older
def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Any:
    """`tf.constant` of the default float."""
    return tf.constant(value, dtype or _floatx(), shape)


@_older
def count_params(x: Any) -> int:
    """The number of elements."""
    return int(x.shape.num_elements())


@_older
def cumsum(x: Any, axis: int = 0) -> Any:
    """`tf.cumsum`."""
    return tf.cumsum(x, axis)


@_older
def cumprod(x: Any, axis: int = 0) -> Any:
    """`tf.math.cumprod`."""
    return tf.math.cumprod(x, axis)


@_older
def dot(x: Any, y: Any) -> Any:
    """The product over the last axis of `x` and the second to last of `y`."""
    x, y = tf.convert_to_tensor(x), tf.convert_to_tensor(y)
    return tf.tensordot(x, y, [[x.shape.rank - 1], [max(y.shape.rank - 2, 0)]])


@_older
def dropout(x: Any, level: float, noise_shape: Any = None, seed: Any = None) -> Any:
    """`tf.nn.dropout`."""
    return tf.nn.dropout(x, level, noise_shape, seed)


@_older
def dtype(x: Any) -> str:
    """The name of the dtype."""
    return str(tf.as_dtype(x.dtype).name)


@_older
def elu(x: Any, alpha: float = 1.0) -> Any:
    """`tf.keras.activations.elu`."""
    return tf.keras.activations.elu(x, alpha)


@_older
def eval(x: Any) -> Any:
    """The value as a NumPy array."""
    return tf.keras.backend.get_value(x)


@_older
def expand_dims(x: Any, axis: int = -1) -> Any:
    """`tf.expand_dims`."""
    return tf.expand_dims(x, axis)


@_older
def eye(size: Any, dtype: Any = None, name: str | None = None) -> Any:
    """The identity matrix as a variable."""
    return variable(tf.eye(size, dtype=dtype or _floatx()), dtype)


@_older
def flatten(x: Any) -> Any:
    """All elements as a vector."""
    return tf.reshape(x, [-1])


@_older
def gather(reference: Any, indices: Any) -> Any:
    """`tf.gather`."""
    return tf.gather(reference, indices)


@_older
def gradients(loss: Any, variables: Any) -> Any:
    """`tf.gradients`, in a function."""
    return tf.gradients(loss, variables)


@_older
def hard_sigmoid(x: Any) -> Any:
    """`tf.keras.activations.hard_sigmoid`."""
    return tf.keras.activations.hard_sigmoid(x)


@_older
def in_top_k(predictions: Any, targets: Any, k: int) -> Any:
    """`tf.math.in_top_k`."""
    return tf.math.in_top_k(targets, predictions, k)


@_older
def int_shape(x: Any) -> tuple[Any, ...] | None:
    """The static shape as a tuple."""
    shape = tf.TensorShape(x.shape)
    return None if shape.rank is None else tuple(shape.as_list())


@_older
def is_float_dtype(dtype: Any) -> bool:
    """Whether a dtype is a float."""
    return bool(tf.as_dtype(dtype).is_floating)


@_older
def is_int_dtype(dtype: Any) -> bool:
    """Whether a dtype is an integer."""
    return bool(tf.as_dtype(dtype).is_integer)


@_older
def is_sparse(tensor: Any) -> bool:
    """Whether a tensor is sparse."""
    return isinstance(tensor, tf.SparseTensor)


@_older
def l2_normalize(x: Any, axis: Any = None) -> Any:
    """`tf.nn.l2_normalize`."""
    return tf.nn.l2_normalize(x, axis)


@_older
def moving_average_update(x: Any, value: Any, momentum: Any) -> Any:
    """Move a variable to a moving average."""
    momentum = tf.cast(momentum, x.dtype)
    return x.assign(x * momentum + tf.cast(value, x.dtype) * (1 - momentum))


@_older
def ndim(x: Any) -> Any:
    """The number of axes."""
    return tf.TensorShape(x.shape).rank


@_older
def one_hot(indices: Any, num_classes: int) -> Any:
    """`tf.one_hot`."""
    return tf.one_hot(indices, num_classes)


@_older
def ones(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A variable of ones."""
    return variable(tf.ones(shape, dtype or _floatx()), dtype)


@_older
def zeros(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A variable of zeros."""
    return variable(tf.zeros(shape, dtype or _floatx()), dtype)


@_older
def ones_like(x: Any, dtype: Any = None, name: str | None = None) -> Any:
    """`tf.ones_like`."""
    return tf.ones_like(x, dtype)


@_older
def zeros_like(x: Any, dtype: Any = None, name: str | None = None) -> Any:
    """`tf.zeros_like`."""
    return tf.zeros_like(x, dtype)


@_older
def random_bernoulli(shape: Any, p: float = 0.0, dtype: Any = None, seed: Any = None) -> Any:
    """Ones with probability `p`, else zeros."""
    return tf.cast(tf.random.uniform(shape, seed=seed) <= p, dtype or _floatx())


@_older
def random_normal(shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    """`tf.random.normal`."""
    return tf.random.normal(shape, mean, stddev, dtype or _floatx(), seed)


@_older
def random_uniform(shape: Any, minval: float = 0.0, maxval: float = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    """`tf.random.uniform`."""
    return tf.random.uniform(shape, minval, maxval, dtype or _floatx(), seed)


@_older
def truncated_normal(shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    """`tf.random.truncated_normal`."""
    return tf.random.truncated_normal(shape, mean, stddev, dtype or _floatx(), seed)


@_older
def random_normal_variable(shape: Any, mean: float, scale: float, dtype: Any = None, name: str | None = None,
                           seed: Any = None) -> Any:
    """A variable of normal draws."""
    return variable(random_normal(shape, mean, scale, dtype, seed), dtype, name)


@_older
def random_uniform_variable(shape: Any, low: float, high: float, dtype: Any = None, name: str | None = None,
                            seed: Any = None) -> Any:
    """A variable of uniform draws."""
    return variable(random_uniform(shape, low, high, dtype, seed), dtype, name)


@_older
def relu(x: Any, alpha: float = 0.0, max_value: Any = None, threshold: float = 0.0) -> Any:
    """`tf.keras.activations.relu`."""
    return tf.keras.activations.relu(x, alpha, max_value, threshold)


@_older
def repeat(x: Any, n: int) -> Any:
    """A matrix repeated along a new axis 1."""
    return tf.tile(tf.expand_dims(x, 1), [1, n, 1])


@_older
def repeat_elements(x: Any, rep: int, axis: int) -> Any:
    """`tf.repeat` along an axis."""
    return tf.repeat(x, rep, axis)


@_older
def reshape(x: Any, shape: Any) -> Any:
    """`tf.reshape`."""
    return tf.reshape(x, shape)


@_older
def reverse(x: Any, axes: Any) -> Any:
    """`tf.reverse`."""
    return tf.reverse(x, [axes] if isinstance(axes, int) else axes)


@_older
def softmax(x: Any, axis: int = -1) -> Any:
    """`tf.nn.softmax`."""
    return tf.nn.softmax(x, axis)


@_older
def sparse_categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1,
                                    ignore_class: Any = None) -> Any:
    """`tf.keras.losses.sparse_categorical_crossentropy`."""
    return tf.keras.losses.sparse_categorical_crossentropy(target, output, from_logits, ignore_class, axis)


@_older
def squeeze(x: Any, axis: int) -> Any:
    """`tf.squeeze`."""
    return tf.squeeze(x, [axis])


@_older
def stack(x: Any, axis: int = 0) -> Any:
    """`tf.stack`."""
    return tf.stack(x, axis)


@_older
def switch(condition: Any, then_expression: Any, else_expression: Any) -> Any:
    """One of two values, by a condition: a scalar, or one for each of the first axes."""
    condition = tf.cast(condition, tf.bool)
    if condition.shape.rank == 0:
        then, other = [x if callable(x) else (lambda x=x: x) for x in (then_expression, else_expression)]
        return tf.cond(condition, then, other)
    one, another = (x() if callable(x) else tf.convert_to_tensor(x) for x in (then_expression, else_expression))
    shape = tf.concat([tf.shape(condition), [1] * (one.shape.rank - condition.shape.rank)], 0)
    return tf.where(tf.reshape(condition, shape), one, another)


@_older
def tile(x: Any, n: Any) -> Any:
    """`tf.tile`."""
    return tf.tile(x, [n] if isinstance(n, int) else n)


@_older
def to_dense(tensor: Any) -> Any:
    """A sparse tensor as a dense one; any other as it is."""
    return tf.sparse.to_dense(tensor) if is_sparse(tensor) else tensor


@_older
def update(x: Any, new_x: Any) -> Any:
    """Assign to a variable."""
    return x.assign(new_x)


@_older
def update_add(x: Any, increment: Any) -> Any:
    """Add to a variable."""
    return x.assign_add(increment)


@_older
def update_sub(x: Any, decrement: Any) -> Any:
    """Subtract from a variable."""
    return x.assign_sub(decrement)


@_older
def variable(value: Any, dtype: Any = None, name: str | None = None, constraint: Any = None) -> Any:
    """A `tf.Variable` of the default float."""
    return tf.Variable(tf.cast(value, dtype or _floatx()), name=name, constraint=constraint)


def _padded(x: Any, padding: Sequence[Any], data_format: str | None) -> Any:
    first = (data_format or tf.keras.backend.image_data_format()) == "channels_first"
    sides = [list(p) for p in padding]
    return tf.pad(x, [[0, 0], [0, 0], *sides] if first else [[0, 0], *sides, [0, 0]])


@_older
def temporal_padding(x: Any, padding: Any = (1, 1)) -> Any:
    """Zeros before and behind the steps of sequences."""
    return tf.pad(x, [[0, 0], list(padding), [0, 0]])


@_older
def spatial_2d_padding(x: Any, padding: Any = ((1, 1), (1, 1)), data_format: str | None = None) -> Any:
    """Zeros around images."""
    return _padded(x, padding, data_format)


@_older
def spatial_3d_padding(x: Any, padding: Any = ((1, 1), (1, 1), (1, 1)), data_format: str | None = None) -> Any:
    """Zeros around volumes."""
    return _padded(x, padding, data_format)


@_older
def resize_images(x: Any, height_factor: int, width_factor: int, data_format: str, interpolation: str = "nearest"
                  ) -> Any:
    """Images enlarged by whole factors."""
    return tf.keras.layers.UpSampling2D((height_factor, width_factor), data_format, interpolation)(x)


@_older
def resize_volumes(x: Any, depth_factor: int, height_factor: int, width_factor: int, data_format: str) -> Any:
    """Volumes enlarged by whole factors."""
    return tf.keras.layers.UpSampling3D((depth_factor, height_factor, width_factor), data_format)(x)


def _conv(name: str, strides: Any) -> None:
    def conv(x: Any, kernel: Any, strides: Any = strides, padding: str = "valid", data_format: str | None = None,
             dilation_rate: Any = 1) -> Any:
        return tf.keras.ops.conv(x, kernel, strides, padding, data_format, dilation_rate)
    conv.__name__, conv.__doc__ = name, "`tf.keras.ops.conv`."
    _older(conv)


for _name, _strides in (("conv1d", 1), ("conv2d", (1, 1)), ("conv3d", (1, 1, 1))):
    _conv(_name, _strides)


@_older
def depthwise_conv2d(x: Any, depthwise_kernel: Any, strides: Any = (1, 1), padding: str = "valid",
                     data_format: str | None = None, dilation_rate: Any = (1, 1)) -> Any:
    """`tf.keras.ops.depthwise_conv`."""
    return tf.keras.ops.depthwise_conv(x, depthwise_kernel, strides, padding, data_format, dilation_rate)


@_older
def separable_conv2d(x: Any, depthwise_kernel: Any, pointwise_kernel: Any, strides: Any = (1, 1),
                     padding: str = "valid", data_format: str | None = None, dilation_rate: Any = (1, 1)) -> Any:
    """`tf.keras.ops.separable_conv`."""
    return tf.keras.ops.separable_conv(x, depthwise_kernel, pointwise_kernel, strides, padding, data_format,
                                       dilation_rate)


def _pool(x: Any, pool_size: Any, strides: Any, padding: str, data_format: str | None, pool_mode: str) -> Any:
    function = {"max": tf.keras.ops.max_pool, "avg": tf.keras.ops.average_pool}.get(pool_mode)
    if function is None:
        raise ValueError(f"Invalid pooling mode: {pool_mode}")
    return function(x, pool_size, strides, padding, data_format)


@_older
def pool2d(x: Any, pool_size: Any, strides: Any = (1, 1), padding: str = "valid", data_format: str | None = None,
           pool_mode: str = "max") -> Any:
    """The largest values or the means of windows of images."""
    return _pool(x, pool_size, strides, padding, data_format, pool_mode)


@_older
def pool3d(x: Any, pool_size: Any, strides: Any = (1, 1, 1), padding: str = "valid", data_format: str | None = None,
           pool_mode: str = "max") -> Any:
    """The largest values or the means of windows of volumes."""
    return _pool(x, pool_size, strides, padding, data_format, pool_mode)


_registry.provide("older_backend", OLDER)


@_older
def conv2d_transpose(x: Any, kernel: Any, output_shape: Any, strides: Any = (1, 1), padding: str = "valid",
                     data_format: str | None = None, dilation_rate: Any = (1, 1)) -> Any:
    """`tf.nn.conv2d_transpose`, or `tf.nn.atrous_conv2d_transpose` with dilations."""
    first = (data_format or tf.keras.backend.image_data_format()) == "channels_first"
    x, size = tf.convert_to_tensor(x), list(output_shape)
    if first:
        x, size = tf.transpose(x, [0, 2, 3, 1]), [size[0], size[2], size[3], size[1]]
    size = tf.stack([tf.shape(x)[0] if size[0] is None else size[0], *size[1:]])
    if tuple(dilation_rate) == (1, 1):
        made = tf.nn.conv2d_transpose(x, kernel, size, list(strides), padding.upper())
    else:
        if dilation_rate[0] != dilation_rate[1]:
            raise ValueError("Expected the 2 dimensions of the `dilation_rate` argument to be equal to each other. "
                             f"Received: dilation_rate={dilation_rate}")
        made = tf.nn.atrous_conv2d_transpose(x, kernel, size, dilation_rate[0], padding.upper())
    return tf.transpose(made, [0, 3, 1, 2]) if first else made


@_older
def binary_focal_crossentropy(target: Any, output: Any, apply_class_balancing: bool = False, alpha: float = 0.25,
                              gamma: float = 2.0, from_logits: bool = False) -> Any:
    """The binary cross entropy, less of what is right already."""
    said = tf.sigmoid(output) if from_logits else output
    right = target * said + (1 - target) * (1 - said)
    loss = tf.pow(1.0 - right, gamma) * OLDER["binary_crossentropy"](target, output, from_logits)
    return (target * alpha + (1 - target) * (1 - alpha)) * loss if apply_class_balancing else loss


@_older
def categorical_focal_crossentropy(target: Any, output: Any, alpha: float = 0.25, gamma: float = 2.0,
                                   from_logits: bool = False, axis: int = -1) -> Any:
    """The categorical cross entropy, less of what is right already."""
    target, output = tf.convert_to_tensor(target), tf.convert_to_tensor(output)
    said = tf.nn.softmax(output, axis) if from_logits else output
    said /= tf.reduce_sum(said, axis, keepdims=True)
    least = tf.keras.backend.epsilon()
    said = tf.clip_by_value(said, least, 1.0 - least)
    return tf.reduce_sum(alpha * tf.pow(1.0 - said, gamma) * -target * tf.math.log(said), axis)


@_older
def ctc_label_dense_to_sparse(labels: Any, label_lengths: Any) -> Any:
    """Labels in rows as a sparse tensor of those within the rows' lengths."""
    labels = tf.convert_to_tensor(labels)
    there = tf.sequence_mask(label_lengths, tf.shape(labels)[1])
    places = tf.where(there)
    return tf.SparseTensor(places, tf.gather_nd(labels, places), tf.shape(labels, tf.int64))


@_older
def ctc_batch_cost(y_true: Any, y_pred: Any, input_length: Any, label_length: Any) -> Any:
    """The CTC loss of probabilities, of which the last class is the blank."""
    lengths, counts = (tf.cast(tf.squeeze(n, -1), tf.int32) for n in (input_length, label_length))
    labels = ctc_label_dense_to_sparse(tf.cast(y_true, tf.int32), counts)
    logits = tf.math.log(tf.transpose(y_pred, [1, 0, 2]) + tf.keras.backend.epsilon())
    loss = tf.nn.ctc_loss(labels, logits, None, lengths, blank_index=-1)
    return tf.expand_dims(loss, 1)


@_older
def ctc_decode(y_pred: Any, input_length: Any, greedy: bool = True, beam_width: int = 100, top_paths: int = 1) -> Any:
    """Labels out of probabilities, with -1 behind them, and how likely they are."""
    logits = tf.math.log(tf.transpose(y_pred, [1, 0, 2]) + tf.keras.backend.epsilon())
    lengths = tf.cast(input_length, tf.int32)
    if greedy:
        decoded, likely = tf.nn.ctc_greedy_decoder(logits, lengths)
    else:
        decoded, likely = tf.nn.ctc_beam_search_decoder(logits, lengths, beam_width, top_paths)
    shape = tf.cast(tf.shape(y_pred)[:2], tf.int64)
    return [tf.sparse.to_dense(tf.SparseTensor(st.indices, st.values, shape), -1) for st in decoded], likely
