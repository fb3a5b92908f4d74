"""Functions of windows of images and signals: pooling, convolutions, blocks of pixels, columns of windows."""

from __future__ import annotations

import math
from typing import Any

import twofold as tf

from ..keras_ops import operation
from ..layers._declared import data_format_of, numbers, padding_of
from ..layers.convolution import spread_size
from ..layers.depthwise import by_channel
from ..layers.pooling import part_counts, reduced_parts
from ..operands import same, shape_of, tensor

__all__ = [
    "adaptive_average_pool", "adaptive_max_pool", "average_pool", "conv", "conv_transpose", "depth_to_space",
    "depthwise_conv", "fold", "max_pool", "separable_conv", "space_to_depth", "unfold",
]


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
    for axis, parts in enumerate(part_counts(output_size, x.ndim - 2), 2 if _first(data_format) else 1):
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


def _window_counts(sizes: Any, kernel: Any, dilation: Any, stride: Any) -> list[int]:
    """How many windows there are along each axis."""
    return [max((size - (k - 1) * d - 1) // s + 1, 0)
            for size, k, d, s in zip(sizes, kernel, dilation, stride, strict=True)]


def _window_places(sizes: Any, kernel: Any, dilation: Any, stride: Any) -> tuple[list[list[int]], list[int]]:
    """For each place of a window, the element of a flat image that it is on at each position; and their numbers."""
    places = _window_counts(sizes, kernel, dilation, stride)
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
    Raises:
        ValueError: no window fits into an image.

    >>> import twofold as tf
    >>> tf.keras.ops.unfold([[[[1, 2], [3, 4]]]], (1, 2)).numpy().tolist()
    [[[1, 3], [2, 4]]]
    """
    x = tensor(x)
    kernel, apart, steps = (numbers(v, 2, name) for v, name in (
        (kernel_size, "kernel_size"), (dilation, "dilation"), (stride, "stride")))
    around = numbers(padding, 2, "padding", 0)
    x = tf.pad(x, [[0, 0], [0, 0], [around[0]] * 2, [around[1]] * 2])
    sizes = x.shape[2:].as_list()
    if 0 in _window_counts(sizes, kernel, apart, steps):
        raise ValueError(f"windows of kernel_size={kernel_size!r} and dilation={dilation!r} do not fit into padded "
                         f"images of sizes {sizes}.")
    rows, places = _window_places(sizes, kernel, apart, steps)
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
    Raises:
        ValueError: there are not as many windows as these sizes give.

    >>> import twofold as tf
    >>> tf.keras.ops.fold([[[1, 3], [2, 4]]], (2, 2), (1, 2)).numpy().tolist()
    [[[[1, 2], [3, 4]]]]
    """
    x = tensor(x)
    size, kernel, apart, steps = (numbers(v, 2, name) for v, name in (
        (output_size, "output_size"), (kernel_size, "kernel_size"), (dilation, "dilation"), (stride, "stride")))
    around = numbers(padding, 2, "padding", 0)
    whole = [n + 2 * p for n, p in zip(size, around, strict=True)]
    count = math.prod(_window_counts(whole, kernel, apart, steps))
    if x.shape.rank != 3 or x.shape[2] not in (None, count):
        raise ValueError(f"x must be [batch, channels * elements of a window, windows] with {count} windows; got shape "
                         f"{x.shape}.")
    rows, _ = _window_places(whole, kernel, apart, steps)
    channels = x.shape[1] // len(rows)
    elements = tf.reshape(x, [-1, channels, len(rows) * len(rows[0])])
    flat = [place for row in rows for place in row]
    # segments are of the first axis
    total = tf.math.unsorted_segment_sum(tf.transpose(elements, [2, 0, 1]), flat, whole[0] * whole[1])
    image = tf.reshape(tf.transpose(total, [1, 2, 0]), [-1, channels, *whole])
    return image[:, :, around[0]:whole[0] - around[0], around[1]:whole[1] - around[1]]
