"""Functions of neural networks (`tf.keras.ops.nn`) that are no activations: those are `_activations.py`'s.

Windows (convolutions and pooling), normalisation, losses of one sample, encodings, attention.
"""

from __future__ import annotations

from typing import Any

import twofold as tf

from ..config import epsilon as default_epsilon
from ..config import floatx
from ..keras_ops import operation
from ..layers._declared import data_format_of, numbers, padding_of
from ..layers.convolution import spread_size
from ..layers.depthwise import by_channel
from ..layers.pooling import reduced_parts
from ..losses import crossentropy
from ..losses.temporal import ctc
from ._activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_shrink,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_shrink,
    softmax,
    softplus,
    softsign,
    sparse_plus,
    sparse_sigmoid,
    sparsemax,
    squareplus,
    swish,
    tanh_shrink,
    threshold,
)
from ._values import axes_of, axis_of, floating, same, shape_of, tensor

__all__ = [
    "adaptive_average_pool", "adaptive_max_pool", "average_pool", "batch_normalization", "binary_crossentropy",
    "categorical_crossentropy", "conv", "conv_transpose", "ctc_loss", "depth_to_space", "depthwise_conv",
    "dot_product_attention", "fold", "layer_normalization", "max_pool", "moments", "multi_hot", "normalize", "one_hot",
    "polar", "psnr", "rms_normalization", "separable_conv", "space_to_depth", "sparse_categorical_crossentropy",
    "unfold", "celu", "elu", "gelu", "glu", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
    "leaky_relu", "log_sigmoid", "log_softmax", "relu", "relu6", "selu", "sigmoid", "silu", "soft_shrink", "softmax",
    "softplus", "softsign", "sparse_plus", "sparse_sigmoid", "sparsemax", "squareplus", "swish", "tanh_shrink",
    "threshold",
]


# -- windows --------------------------------------------------------------------------------------
def _first(data_format: str | None) -> bool:
    return data_format_of(data_format) == "channels_first"


def _layout(rank: int, first: bool) -> str:
    spatial = "DHW"[3 - rank:]
    return f"NC{spatial}" if first else f"N{spatial}C"


def _pool(inputs: Any, kind: str, pool_size: Any, strides: Any, padding: str, data_format: str | None) -> Any:
    x = tensor(inputs)
    rank, first = x.ndim - 2, _first(data_format)
    size = numbers(pool_size, rank, "pool_size")
    steps = size if strides is None else numbers(strides, rank, "strides")
    return tf.nn.pool(x, size, kind, steps, padding_of(padding).upper(), _layout(rank, first))


@operation("nn", tensors="inputs")
def max_pool(inputs: Any, pool_size: Any, strides: Any = None, padding: str = "valid",
             data_format: str | None = None) -> Any:
    """The largest element of each window, over all axes but those of batch and channels.

    Args:
        inputs: [batch, *spatial, channels], or channels second; one to three spatial axes.
        pool_size: the size of the window, an integer or one for each axis.
        strides: how far windows are from each other; as their size by default.
        padding: "valid" or "same".
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".

    >>> import twofold as tf
    >>> tf.keras.ops.max_pool([[[1.0], [5.0], [2.0], [3.0]]], 2).numpy().tolist()
    [[[5.0], [3.0]]]
    """
    return _pool(inputs, "MAX", pool_size, strides, padding, data_format)


@operation("nn", tensors="inputs")
def average_pool(inputs: Any, pool_size: Any, strides: Any = None, padding: str = "valid",
                 data_format: str | None = None) -> Any:
    """The average of each window, padding left out; arguments as for `max_pool`.

    >>> import twofold as tf
    >>> tf.keras.ops.average_pool([[[1.0], [5.0], [2.0], [3.0]]], 2).numpy().tolist()
    [[[3.0], [2.5]]]
    """
    return _pool(inputs, "AVG", pool_size, strides, padding, data_format)


def _adaptive(inputs: Any, output_size: Any, data_format: str | None, reduce: Any) -> Any:
    x = tensor(inputs)
    sizes = numbers(output_size, x.ndim - 2, "output_size")
    for axis, parts in enumerate(sizes, 2 if _first(data_format) else 1):
        x = reduced_parts(x, axis, parts, reduce)
    return x


@operation("nn", tensors="inputs")
def adaptive_max_pool(inputs: Any, output_size: Any, data_format: str | None = None) -> Any:
    """The largest elements of a given number of parts of each spatial axis, which overlap where sizes do not divide.

    Args:
        inputs: [batch, *spatial, channels], or channels second; spatial sizes must be known.
        output_size: how many parts, an integer or one for each axis.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".

    >>> import twofold as tf
    >>> tf.keras.ops.adaptive_max_pool([[[1.0], [5.0], [2.0]]], 2).numpy().tolist()
    [[[5.0], [5.0]]]
    """
    return _adaptive(inputs, output_size, data_format, tf.reduce_max)


@operation("nn", tensors="inputs")
def adaptive_average_pool(inputs: Any, output_size: Any, data_format: str | None = None) -> Any:
    """The averages of a given number of parts of each spatial axis; arguments as for `adaptive_max_pool`.

    >>> import twofold as tf
    >>> tf.keras.ops.adaptive_average_pool([[[1.0], [5.0], [2.0]]], 2).numpy().tolist()
    [[[3.0], [3.5]]]
    """
    return _adaptive(inputs, output_size, data_format, tf.reduce_mean)


@operation("nn")
def conv(inputs: Any, kernel: Any, strides: Any = 1, padding: str = "valid", data_format: str | None = None,
         dilation_rate: Any = 1) -> Any:
    """A convolution over one to three spatial axes.

    Args:
        inputs: floating [batch, *spatial, channels], or channels second.
        kernel: [*window, channels or those of a group, outputs].
        strides, dilation_rate: an integer, or one for each axis.
        padding: "valid" or "same".
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".

    >>> import twofold as tf
    >>> tf.keras.ops.conv([[[1.0], [5.0], [2.0]]], [[[1.0]], [[1.0]]]).numpy().tolist()
    [[[6.0], [7.0]]]
    """
    x, kernel = same(inputs, kernel, at_least=float)
    rank = kernel.ndim - 2
    return tf.nn.convolution(x, kernel, numbers(strides, rank, "strides"), padding_of(padding).upper(),
                             _layout(rank, _first(data_format)), numbers(dilation_rate, rank, "dilation_rate"))


@operation("nn")
def depthwise_conv(inputs: Any, kernel: Any, strides: Any = 1, padding: str = "valid", data_format: str | None = None,
                   dilation_rate: Any = 1) -> Any:
    """A convolution of each channel by itself, over one or two spatial axes; other arguments as for `conv`.

    Args:
        kernel: [*window, channels, outputs of each].

    >>> import twofold as tf
    >>> tf.keras.ops.depthwise_conv([[[1.0, 0.0], [5.0, 3.0]]], tf.ones([2, 2, 1])).numpy().tolist()
    [[[6.0, 3.0]]]
    """
    x, kernel = same(inputs, kernel, at_least=float)
    rank = kernel.ndim - 2
    if rank not in (1, 2):
        raise ValueError(f"depthwise_conv has one or two spatial axes; got a kernel of shape {kernel.shape}.")
    return by_channel(x, kernel, numbers(strides, rank, "strides"), padding_of(padding), _first(data_format),
                      numbers(dilation_rate, rank, "dilation_rate"))


@operation("nn")
def separable_conv(inputs: Any, depthwise_kernel: Any, pointwise_kernel: Any, strides: Any = 1,
                   padding: str = "valid", data_format: str | None = None, dilation_rate: Any = 1) -> Any:
    """A convolution of each channel by itself, and a product that mixes them; arguments as for `depthwise_conv`.

    Args:
        pointwise_kernel: [1, channels * outputs of each, outputs], with a 1 for each spatial axis.

    >>> import twofold as tf
    >>> x = tf.constant([[[1.0, 0.0], [5.0, 3.0]]])
    >>> tf.keras.ops.separable_conv(x, tf.ones([2, 2, 1]), tf.ones([1, 2, 1])).numpy().tolist()
    [[[9.0]]]
    """
    apart = depthwise_conv(inputs, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return conv(apart, pointwise_kernel, 1, "valid", data_format)


@operation("nn")
def conv_transpose(inputs: Any, kernel: Any, strides: Any = 1, padding: str = "valid", output_padding: Any = None,
                   data_format: str | None = None, dilation_rate: Any = 1) -> Any:
    """A convolution with the roles of inputs and outputs exchanged; other arguments as for `conv`.

    Args:
        kernel: [*window, outputs, channels].
        output_padding: how much is added to the outputs' size; None for the size that makes the inputs' of them.

    >>> import twofold as tf
    >>> tf.keras.ops.conv_transpose([[[1.0], [5.0]]], tf.ones([2, 1, 1]), 2).numpy().tolist()
    [[[1.0], [1.0], [5.0], [5.0]]]
    """
    x, kernel = same(inputs, kernel, at_least=float)
    rank, first, mode = kernel.ndim - 2, _first(data_format), padding_of(padding)
    steps, apart = numbers(strides, rank, "strides"), numbers(dilation_rate, rank, "dilation_rate")
    extra = (None,) * rank if output_padding is None else numbers(output_padding, rank, "output_padding", 0)
    sizes = shape_of(x)
    here = sizes[2:] if first else sizes[1:-1]
    spatial = [spread_size(here[n], kernel.shape[n], steps[n], mode, extra[n], apart[n]) for n in range(rank)]
    outputs = kernel.shape[-2]
    full = [sizes[0], outputs, *spatial] if first else [sizes[0], *spatial, outputs]
    return tf.nn.conv_transpose(x, kernel, full, steps, mode.upper(), _layout(rank, first), apart)


def _blocks(x: Any, block_size: int, data_format: str, move: Any) -> Any:
    x = tensor(x)
    if not _first(data_format):
        return move(x, block_size)
    return tf.transpose(move(tf.transpose(x, [0, 2, 3, 1]), block_size), [0, 3, 1, 2])


@operation("nn", tensors="x")
def depth_to_space(x: Any, block_size: int, data_format: str = "channels_last") -> Any:
    """Images with channels laid out as blocks of pixels.

    Args:
        x: [batch, height, width, channels], or channels second.
        block_size: the blocks' height and width.
        data_format: "channels_last" or "channels_first".

    >>> import twofold as tf
    >>> tf.keras.ops.depth_to_space([[[[1, 2, 3, 4]]]], 2).numpy().tolist()
    [[[[1], [2]], [[3], [4]]]]
    """
    return _blocks(x, block_size, data_format, tf.nn.depth_to_space)


@operation("nn", tensors="x")
def space_to_depth(x: Any, block_size: int, data_format: str = "channels_last") -> Any:
    """Images with blocks of pixels laid out as channels; arguments as for `depth_to_space`.

    >>> import twofold as tf
    >>> tf.keras.ops.space_to_depth([[[[1], [2]], [[3], [4]]]], 2).numpy().tolist()
    [[[[1, 2, 3, 4]]]]
    """
    return _blocks(x, block_size, data_format, tf.nn.space_to_depth)


def _window_places(sizes: Any, kernel: Any, dilation: Any, stride: Any) -> tuple[list[list[int]], list[int]]:
    """For each place of a window, the element of a flat image that it is on at each position; and their numbers."""
    places = [(size - (k - 1) * d - 1) // s + 1 for size, k, d, s in zip(sizes, kernel, dilation, stride, strict=True)]
    rows = [[(i * dilation[0] + y * stride[0]) * sizes[1] + j * dilation[1] + x * stride[1]
             for y in range(places[0]) for x in range(places[1])]
            for i in range(kernel[0]) for j in range(kernel[1])]
    return rows, places


@operation("nn", tensors="x")
def unfold(x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """The windows of images, each as a column.

    Args:
        x: [batch, channels, height, width]; the last three sizes are known.
        kernel_size, dilation, stride: of the windows: an integer, or one for each axis.
        padding: how many zeros are around the image.
    Returns:
        [batch, channels * elements of a window, windows].

    >>> import twofold as tf
    >>> tf.keras.ops.unfold([[[[1, 2], [3, 4]]]], (1, 2)).numpy().tolist()
    [[[1, 3], [2, 4]]]
    """
    x = tensor(x)
    kernel, apart, steps = (numbers(v, 2, "unfold") for v in (kernel_size, dilation, stride))
    around = numbers(padding, 2, "padding", 0)
    x = tf.pad(x, [[0, 0], [0, 0], [around[0]] * 2, [around[1]] * 2])
    rows, places = _window_places(x.shape[2:].as_list(), kernel, apart, steps)
    flat = tf.reshape(x, [-1, x.shape[1], x.shape[2] * x.shape[3]])
    return tf.reshape(tf.gather(flat, rows, axis=2), [-1, x.shape[1] * len(rows), places[0] * places[1]])


@operation("nn", tensors="x")
def fold(x: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Images put together from windows, which are added where they overlap: what `unfold` takes apart.

    Args:
        x: [batch, channels * elements of a window, windows].
        output_size: the height and width of the images.
        kernel_size, dilation, padding, stride: as for `unfold`.
    Returns:
        [batch, channels, height, width].

    >>> import twofold as tf
    >>> tf.keras.ops.fold([[[1, 3], [2, 4]]], (2, 2), (1, 2)).numpy().tolist()
    [[[[1, 2], [3, 4]]]]
    """
    x = tensor(x)
    size, kernel, apart, steps = (numbers(v, 2, "fold") for v in (output_size, kernel_size, dilation, stride))
    around = numbers(padding, 2, "padding", 0)
    whole = [n + 2 * p for n, p in zip(size, around, strict=True)]
    rows, _ = _window_places(whole, kernel, apart, steps)
    channels = x.shape[1] // len(rows)
    elements = tf.reshape(x, [-1, channels, len(rows) * len(rows[0])])
    flat = [place for row in rows for place in row]
    # segments are of the first axis
    total = tf.math.unsorted_segment_sum(tf.transpose(elements, [2, 0, 1]), flat, whole[0] * whole[1])
    image = tf.reshape(tf.transpose(total, [1, 2, 0]), [-1, channels, *whole])
    return image[:, :, around[0]:whole[0] - around[0], around[1]:whole[1] - around[1]]


# -- normalisation --------------------------------------------------------------------------------
@operation("nn", tensors="x")
def moments(x: Any, axes: Any, keepdims: bool = False, synchronized: bool = False) -> Any:
    """The means and the variances over axes.

    Args:
        x: a floating tensor; float16 is computed as float32.
        axes: an integer or several.
        keepdims: whether reduced axes stay, of size 1.
        synchronized: must be False: there is one device.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.keras.ops.moments([1.0, 3.0], 0)]
    [2.0, 1.0]
    """
    if synchronized:
        raise ValueError("Argument synchronized=True is not supported: there is one device.")
    x = floating(x)
    wide = tf.cast(x, tf.float32) if x.dtype.size < 4 else x
    mean, variance = tf.nn.moments(wide, list(axes_of(axes, x.ndim)), keepdims=keepdims)
    return tf.cast(mean, x.dtype), tf.cast(variance, x.dtype)


def _along(value: Any, axes: tuple[int, ...], x: Any) -> Any:
    """A value for places along axes, with axes of size 1 where the tensor has others."""
    if value is None:
        return None
    sizes = dict(zip(axes, shape_of(tensor(value)), strict=True))
    return tf.reshape(tensor(value, x.dtype), [sizes.get(n, 1) for n in range(x.ndim)])


@operation("nn", "BatchNorm", tensors="x mean variance offset scale")
def batch_normalization(x: Any, mean: Any, variance: Any, axis: int, offset: Any = None, scale: Any = None,
                        epsilon: float = 1e-3) -> Any:
    """`(x - mean) / sqrt(variance + epsilon) * scale + offset`, with one of each for each place along an axis.

    >>> import twofold as tf
    >>> tf.keras.ops.batch_normalization([[3.0]], [1.0], [4.0], -1, epsilon=0.0).numpy().tolist()
    [[1.0]]
    """
    x = floating(x)
    where = (axis_of(axis, x.ndim),)
    mean, variance, offset, scale = (_along(v, where, x) for v in (mean, variance, offset, scale))
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, epsilon)


@operation("nn", "LayerNorm", tensors="x gamma beta")
def layer_normalization(x: Any, gamma: Any = None, beta: Any = None, axis: Any = -1,
                        epsilon: float | None = None) -> Any:
    """A tensor brought to mean 0 and variance 1 along axes, then scaled and moved.

    Args:
        x: a floating tensor; float16 is computed as float32.
        gamma, beta: factors and summands, of the sizes of the axes.
        axis: an integer or several.
        epsilon: added to the variance; `tf.keras.config.epsilon()` by default.

    >>> import twofold as tf
    >>> tf.keras.ops.layer_normalization([[1.0, 3.0]]).numpy().round(3).tolist()
    [[-1.0, 1.0]]
    """
    x = floating(x)
    wide = tf.cast(x, tf.float32) if x.dtype.size < 4 else x
    axes = tuple(sorted(axes_of(axis, x.ndim)))
    found = tf.nn.layer_normalization(wide, _along(gamma, axes, wide), _along(beta, axes, wide), axes,
                                      default_epsilon() if epsilon is None else epsilon)
    return tf.cast(found, x.dtype)


@operation("nn", "RMSNorm", tensors="x scale")
def rms_normalization(x: Any, scale: Any = None, axis: Any = -1, epsilon: float | None = None) -> Any:
    """A tensor divided by the root of its mean square along axes, then scaled.

    Args:
        x: a floating tensor; float16 is computed as float32.
        scale: factors, of the sizes of the axes.
        axis: an integer or several.
        epsilon: added to the mean square; `tf.keras.config.epsilon()` by default.

    >>> import twofold as tf
    >>> tf.keras.ops.rms_normalization([[3.0, 3.0]]).numpy().round(3).tolist()
    [[1.0, 1.0]]
    """
    x = floating(x)
    wide = tf.cast(x, tf.float32) if x.dtype.size < 4 else x
    axes = tuple(sorted(axes_of(axis, x.ndim)))
    more = tensor(default_epsilon() if epsilon is None else epsilon, wide.dtype)
    root = tf.math.rsqrt(tf.reduce_mean(tf.square(wide), axis=list(axes), keepdims=True) + more)
    factor = _along(scale, axes, wide)
    return tf.cast(wide * root if factor is None else wide * root * factor, x.dtype)


@operation("nn")
def normalize(x: Any, axis: Any = -1, order: Any = 2, epsilon: float | None = None) -> Any:
    """A tensor divided by its norm along an axis.

    Args:
        x: a tensor.
        axis: along which.
        order: of the norm, a number.
        epsilon: what the norm is at least; `tf.keras.config.epsilon()` by default.
    Raises:
        ValueError: the order is no positive integer.

    >>> import twofold as tf
    >>> tf.keras.ops.normalize([[3.0, 4.0]]).numpy().round(3).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """
    if not isinstance(order, int) or order < 1:
        raise ValueError(f"Argument `order` must be an int >= 1. Received: order={order}")
    x = floating(x)
    least = tensor(default_epsilon() if epsilon is None else epsilon, x.dtype)
    if order == 2:
        squares = tf.reduce_sum(tf.square(x), axis=axis, keepdims=True)
        return x * tf.math.rsqrt(tf.maximum(squares, tf.square(least)))
    return x / tf.maximum(tf.norm(x, order, axis=axis, keepdims=True), least)


# -- losses and encodings -------------------------------------------------------------------------
def _outcome(target: Any, output: Any) -> tuple[Any, Any]:
    output = floating(output)
    return tensor(target, output.dtype), output


@operation("nn")
def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Any:
    """`-target log(output) - (1 - target) log(1 - output)` of each element.

    Args:
        target: labels from 0 to 1.
        output: probabilities, or with `from_logits` logits, of the same shape.
    Raises:
        ValueError: the shapes differ.

    >>> import twofold as tf
    >>> print(tf.keras.ops.binary_crossentropy([0.0, 1.0], [0.5, 0.5]).numpy().round(4))
    [0.6931 0.6931]
    """
    target, output = _outcome(target, output)
    return crossentropy.binary_values(target, output, from_logits)


@operation("nn")
def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    """`-target log(output)`, summed over the classes.

    Args:
        target: one-hot labels or probabilities.
        output: probabilities, which are divided by their sum, or with `from_logits` logits, of the same shape.
        axis: the axis of the classes.
    Raises:
        ValueError: the shapes differ.

    >>> import twofold as tf
    >>> print(tf.keras.ops.categorical_crossentropy([[0.0, 1.0]], [[0.5, 0.5]]).numpy().round(4))
    [0.6931]
    """
    return crossentropy.categorical_crossentropy(*_outcome(target, output), from_logits, axis=axis)


@operation("nn")
def sparse_categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    """Minus the logarithm of the probability of the right class.

    Args:
        target: numbers of classes, of the shape of `output` without the axis of the classes, or with size 1 there.
        output: probabilities, which are divided by their sum, or with `from_logits` logits.
        axis: the axis of the classes.
    Raises:
        ValueError: the shapes do not fit.

    >>> import twofold as tf
    >>> print(tf.keras.ops.sparse_categorical_crossentropy([1], [[0.5, 0.5]]).numpy().round(4))
    [0.6931]
    """
    return crossentropy.sparse_categorical_crossentropy(tensor(target), floating(output), from_logits, axis=axis)


@operation("nn", "CTCLoss", tensors="target output target_length output_length")
def ctc_loss(target: Any, output: Any, target_length: Any, output_length: Any, mask_index: int = 0) -> Any:
    """Minus the logarithm of the probability of a sequence of labels for a longer sequence of predictions (CTC).

    Args:
        target: labels, integers [batch, most labels].
        output: logits [batch, steps, classes].
        target_length, output_length: how many of them count, integers [batch].
        mask_index: the class of the blank.
    Returns:
        A floating tensor [batch].

    >>> import twofold as tf
    >>> print(tf.keras.ops.ctc_loss([[1]], tf.zeros([1, 2, 2]), [1], [2]).numpy().round(4))
    [0.2877]
    """
    labels, logits = tensor(target, tf.int32), floating(output)
    classes = logits.shape[2]
    if mask_index:  # the blank comes first
        logits = tf.gather(logits, [mask_index, *[n for n in range(classes) if n != mask_index]], axis=2)
        labels = tf.where(labels < mask_index, labels + 1, labels)
    counted = tf.range(tf.shape(labels)[1]) < tf.expand_dims(tensor(target_length, tf.int32), -1)
    labels = tf.where(counted, labels, tf.zeros_like(labels))
    # behind the end there is nothing but blanks, which cost nothing
    there = tf.range(tf.shape(logits)[1]) < tf.expand_dims(tensor(output_length, tf.int32), -1)
    blank = tf.cast(tf.where(tf.equal(tf.range(classes), 0), 0.0, -1e30), logits.dtype)
    return ctc(labels, tf.where(tf.expand_dims(there, -1), logits, blank))


def _dense(sparse: bool) -> None:
    if sparse:
        raise ValueError("Tensors are dense; `sparse` must be False.")


@operation("nn", tensors="x")
def one_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> Any:
    """For each integer a vector of zeros, with a one at its place; of zeros alone, if it has none.

    Args:
        x: integers.
        num_classes: how long the vectors are.
        axis: their axis in the result.
        dtype: `floatx()` by default.
        sparse: must be False.

    >>> import twofold as tf
    >>> tf.keras.ops.one_hot([1, 0], 2).numpy().tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    _dense(sparse)
    x = tensor(x, tf.int64)
    target = tf.as_dtype(floatx() if dtype is None else dtype)
    if target.is_bool:
        return tf.one_hot(x, num_classes, axis=axis, on_value=True, off_value=False, dtype=target)
    return tf.one_hot(x, num_classes, axis=axis, dtype=target)


@operation("nn", tensors="inputs")
def multi_hot(inputs: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> Any:
    """For the integers along the last axis one vector of zeros, with ones at their places.

    Args:
        inputs: integers [n] or [batch, n].
        num_classes: how long the vectors are.
        axis: their axis.
        dtype: `floatx()` by default.
        sparse: must be False.

    >>> import twofold as tf
    >>> tf.keras.ops.multi_hot([0, 2], 3).numpy().tolist()
    [1.0, 0.0, 1.0]
    """
    _dense(sparse)
    x = tensor(inputs)
    return tf.reduce_max(one_hot(x, num_classes, axis, dtype), axis=1 if x.ndim > 1 else 0)


@operation("nn", "PSNR", tensors="x1 x2")
def psnr(x1: Any, x2: Any, max_val: Any) -> Any:
    """The ratio in decibels of a signal's peak to the error of another (peak signal-to-noise ratio), over all elements.

    Args:
        x1, x2: tensors of one shape.
        max_val: the largest value that there may be.
    Raises:
        ValueError: the shapes differ.

    >>> import twofold as tf
    >>> print("%.4f" % tf.keras.ops.psnr([1.0, 2.0], [1.0, 3.0], 10.0))
    23.0103
    """
    x1, x2 = same(x1, x2, at_least=float)
    if not x1.shape.is_compatible_with(x2.shape):
        raise ValueError(f"Input shapes {x1.shape} and {x2.shape} must match for PSNR calculation. ")
    error = tf.reduce_mean(tf.square(x1 - x2))
    ten = tf.math.log(tf.cast(10, error.dtype))
    return (20 * tf.math.log(tensor(max_val, error.dtype)) - 10 * tf.math.log(error)) / ten


@operation("nn", tensors="abs_ angle")
def polar(abs_: Any, angle: Any) -> Any:
    """Complex numbers of given size and angle.

    >>> import twofold as tf
    >>> tf.keras.ops.polar([2.0], [0.0]).numpy().tolist()
    [(2+0j)]
    """
    size, angle = same(abs_, angle, at_least=float)
    return tf.complex(size * tf.cos(angle), size * tf.sin(angle))


@operation("nn", tensors="query key value bias mask scale")
def dot_product_attention(query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, scale: Any = None,
                          is_causal: bool = False, flash_attention: bool | None = None,
                          attn_logits_soft_cap: float | None = None) -> Any:
    """For each query, the average of values weighted by the softmax of its products with the keys, in each head.

    Args:
        query: floating [batch, queries, heads, size].
        key, value: [batch, keys, heads or a divisor of them, size].
        bias: added to the scores [batch, heads, queries, keys]; it broadcasts.
        mask: bools of that shape, where a key is seen.
        scale: the factor of the scores; one over the root of the size by default.
        is_causal: whether a query sees no key behind it.
        flash_attention: must not be True: there is one way to compute.
        attn_logits_soft_cap: a bound to which the scores are squeezed by tanh.
    Returns:
        [batch, queries, heads, size].
    Raises:
        ValueError: the tensors are not of rank 4, or `flash_attention` is True.

    >>> import twofold as tf
    >>> x = tf.ones([1, 3, 2, 4])
    >>> tf.keras.ops.dot_product_attention(x, x, x).shape
    TensorShape([1, 3, 2, 4])
    """
    if flash_attention:
        raise ValueError("Flash attention is not supported; `flash_attention` must be None or False.")
    query, key, value = same(query, key, value, at_least=float)
    if {query.ndim, key.ndim, value.ndim} != {4}:
        raise ValueError("`dot_product_attention` only supports 4D inputs. Received: "
                         f"query.shape={query.shape}, key.shape={key.shape}, value.shape={value.shape}.")
    groups = query.shape[2] // key.shape[2]
    if groups > 1:
        key, value = tf.repeat(key, groups, axis=2), tf.repeat(value, groups, axis=2)
    wide = tf.float32 if query.dtype.size < 4 else query.dtype
    factor = tensor(query.shape[3] ** -0.5 if scale is None else scale, wide)
    scores = tf.cast(tf.einsum("bthd,bshd->bhts", query, key), wide) * factor
    if attn_logits_soft_cap is not None:
        cap = tensor(attn_logits_soft_cap, wide)
        scores = tf.tanh(scores / cap) * cap
    if bias is not None:
        scores = scores + tensor(bias, wide)
    seen = None if mask is None else tensor(mask, tf.bool)
    if is_causal:
        rows, columns = tf.range(tf.shape(scores)[2]), tf.range(tf.shape(scores)[3])
        before = rows[:, tf.newaxis] >= columns
        seen = before if seen is None else tf.logical_and(seen, before)
    if seen is not None:
        scores = tf.where(seen, scores, tf.constant(0.7 * wide.min, wide))
    return tf.einsum("bhts,bshd->bthd", tf.cast(tf.nn.softmax(scores), query.dtype), value)


