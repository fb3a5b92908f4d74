"""Windows beyond convolution and pooling: morphology, windows of uneven sizes, patches, and gradients by name.

Source: Graham, "Fractional max-pooling" (2014). `twofold/nn.py` and `twofold/__init__.py` show the functions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import ints, listed, one_int, public
from twofold._front.hosted import hosted

__all__ = ["approx_top_k", "atrous_conv2d_transpose", "conv", "conv2d_backprop_filter_v2", "conv2d_backprop_input_v2",
           "depthwise_conv2d_backprop_filter", "depthwise_conv2d_backprop_input", "dilation2d", "erosion2d",
           "extract_volume_patches", "fractional_avg_pool", "fractional_max_pool", "isotonic_regression", "pooled",
           "rising_runs"]


# -- morphology and patches -----------------------------------------------------------------------------
def _filled(x: Any, window: Sequence[int], steps: Sequence[int], apart: Sequence[int], padding: str, op: str,
            value: Any) -> Any:
    """`x` [batch, .., channels] with what windows need around it."""
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"{op}: padding must be 'SAME' or 'VALID'; got {padding!r}.")
    if padding == "VALID":
        return x
    around: list[Any] = [[0, 0]]
    for axis, (width, step, gap) in enumerate(zip(window, steps, apart, strict=True), 1):
        size = x.shape[axis] if x.shape[axis] is not None else tf.shape(x)[axis]
        needed = (-(-size // step) - 1) * step + (width - 1) * gap + 1 - size
        needed = max(needed, 0) if isinstance(needed, int) else tf.maximum(needed, 0)
        around.append([needed // 2, needed - needed // 2])
    return tf.pad(x, [*around, [0, 0]], constant_values=value)


def _taps(x: Any, window: Sequence[int], steps: Sequence[int], apart: Sequence[int]) -> list[tuple[Any, Any]]:
    """For each place of a window the place, and the elements of all windows there."""
    taps = []
    for place in itertools.product(*(range(w) for w in window)):
        cuts = [slice(None)]
        for axis, (at, width, step, gap) in enumerate(zip(place, window, steps, apart, strict=True), 1):
            size = x.shape[axis] if x.shape[axis] is not None else tf.shape(x)[axis]
            count = (size - (width - 1) * gap - 1) // step + 1
            cuts.append(slice(at * gap, at * gap + (count - 1) * step + 1, step))
        taps.append((place, x[tuple(cuts)]))
    return taps


def _inner(op: str, value: Any, what: str, rank: int) -> list[int]:
    sizes = ints(value, what)
    if len(sizes) != rank or sizes[0] != 1 or sizes[-1] != 1 or any(s < 1 for s in sizes):
        raise ValueError(f"{op}: {what} must be {rank} numbers above 0, of which the first and the last are 1; got "
                         f"{value}.")
    return list(sizes[1:-1])


@public
def dilation2d(input: Any, filters: Any, strides: Any, padding: str, data_format: str, dilations: Any,
               name: str | None = None) -> Any:
    """The largest sum of an element and the filter's in each window, channel by channel (greyscale dilation).

    Args:
        input: real [batch, height, width, channels].
        filters: of the same dtype, [height, width, channels].
        strides: four numbers, how far windows lie apart.
        padding: "VALID" or "SAME".
        data_format: "NHWC".
        dilations: four numbers, how far the elements of a window lie apart.
        name: accepted, without effect.
    Returns:
        Tensor [batch, rows, columns, channels].
    Raises:
        ValueError: another rank, layout, padding, or wrong numbers.

    >>> import twofold as tf
    >>> x = tf.reshape([1.0, 4.0, 2.0, 3.0], [1, 1, 4, 1])
    >>> ones = [1, 1, 1, 1]
    >>> tf.nn.dilation2d(x, tf.zeros([1, 2, 1]), ones, "VALID", "NHWC", ones).numpy().ravel().tolist()
    [4.0, 4.0, 3.0]
    """
    return _dilated("dilation2d", input, filters, strides, padding, data_format, dilations)


def _dilated(op: str, x: Any, filters: Any, strides: Any, padding: str, data_format: str, dilations: Any) -> Any:
    x, filters = tf.convert_to_tensor(x), tf.convert_to_tensor(filters)
    if data_format != "NHWC":
        raise ValueError(f"{op}: Data formats other than NHWC are not yet supported; got {data_format!r}.")
    if x.shape.rank != 4 or filters.shape.rank != 3 or None in filters.shape.as_list()[:2]:
        raise ValueError(f"{op}: expected an image [batch, height, width, channels] and filters [height, width, "
                         f"channels] of known size; got shapes {x.shape} and {filters.shape}.")
    window = filters.shape.as_list()[:2]
    steps, apart = _inner(op, strides, "strides", 4), _inner(op, dilations, "dilations", 4)
    x = _filled(x, window, steps, apart, padding, op, x.dtype.min)
    largest: Any = None
    for (row, column), part in _taps(x, window, steps, apart):
        total = part + filters[row, column]
        largest = total if largest is None else tf.maximum(largest, total)
    return largest


@public
def erosion2d(value: Any, filters: Any, strides: Any, padding: str, data_format: str, dilations: Any,
              name: str | None = None) -> Any:
    """The smallest difference of an element and the turned filter's in each window (greyscale erosion).

    Args:
        value: signed [batch, height, width, channels].
        filters: of the same dtype, [height, width, channels].
        strides, padding, data_format, dilations: as for `tf.nn.dilation2d`.
        name: accepted, without effect.
    Returns:
        Tensor [batch, rows, columns, channels].
    Raises:
        ValueError: another rank, layout, padding, or wrong numbers.

    >>> import twofold as tf
    >>> x = tf.reshape([1.0, 4.0, 2.0, 3.0], [1, 1, 4, 1])
    >>> ones = [1, 1, 1, 1]
    >>> tf.nn.erosion2d(x, tf.zeros([1, 2, 1]), ones, "VALID", "NHWC", ones).numpy().ravel().tolist()
    [1.0, 2.0, 2.0]
    """
    turned = tf.reverse(tf.convert_to_tensor(filters), [0, 1])
    return -_dilated("erosion2d", -tf.convert_to_tensor(value), turned, strides, padding, data_format, dilations)


@public
def extract_volume_patches(input: Any, ksizes: Any, strides: Any, padding: str, name: str | None = None) -> Any:
    """The windows of volumes, each as the channels of one place.

    Args:
        input: [batch, planes, rows, columns, channels].
        ksizes: five numbers, the windows' sizes.
        strides: five numbers, how far windows lie apart.
        padding: "VALID", or "SAME" with zeros outside.
        name: accepted, without effect.
    Returns:
        [batch, planes, rows, columns, channels of a window].
    Raises:
        ValueError: another rank or padding, or wrong numbers.

    >>> import twofold as tf
    >>> x = tf.reshape(tf.range(8.0), [1, 2, 2, 2, 1])
    >>> tf.extract_volume_patches(x, [1, 2, 2, 2, 1], [1] * 5, "VALID").numpy().ravel().tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    """
    op, x = "extract_volume_patches", tf.convert_to_tensor(input)
    if x.shape.rank != 5:
        raise ValueError(f"{op}: input must have rank 5; got shape {x.shape}.")
    window, steps = _inner(op, ksizes, "ksizes", 5), _inner(op, strides, "strides", 5)
    apart = [1, 1, 1]
    x = _filled(x, window, steps, apart, padding, op, 0)
    return tf.concat([part for _, part in _taps(x, window, steps, apart)], axis=-1)


# -- windows of uneven sizes ----------------------------------------------------------------------------
class FractionalPool(NamedTuple):
    """What pooling with a fractional ratio gives: the result, and where windows begin along each axis."""

    output: Any
    row_pooling_sequence: Any
    col_pooling_sequence: Any


def _sequence(size: int, ratio: float, pseudo: bool, seed: int | None) -> tuple[Any, int]:
    """Where windows begin, int64, with the end behind them; and the largest window."""
    count = int(size / ratio)
    least, rest = divmod(size, count)
    if not rest:
        return tf.range(0, size + 1, least, dtype=tf.int64), least
    if pseudo:
        alpha = size / count
        most = min((least + 2) / alpha - 1, (size + 1 - least) / alpha - (count - 1))
        start = tf.random.uniform([], 0.0, most, tf.float64, seed=seed)
        inner = tf.cast(tf.math.ceil(alpha * (tf.range(1, count, dtype=tf.float64) + start)), tf.int64) - 1
        return tf.concat([[tf.constant(0, tf.int64)], inner, [tf.constant(size, tf.int64)]], 0), least + 2
    widths = tf.random.shuffle(tf.constant([least + 1] * rest + [least] * (count - rest), tf.int64), seed=seed)
    return tf.concat([[tf.constant(0, tf.int64)], tf.cumsum(widths)], 0), least + 1


def _fractional(op: str, value: Any, ratio: Any, pseudo: bool, overlapping: bool, seed: Any, average: bool) -> Any:
    x = tf.convert_to_tensor(value)
    ratios = [float(r) for r in (ratio if isinstance(ratio, (list, tuple)) else [ratio])]
    ratios = [1.0, *(ratios * 2), 1.0] if len(ratios) == 1 else [1.0, *ratios, 1.0] if len(ratios) == 2 else ratios
    if len(ratios) != 4 or ratios[0] != 1 or ratios[3] != 1 or min(ratios) < 1:
        raise ValueError(f"{op}: `pooling_ratio` should be >= 1.0, for the rows and the columns. Received: "
                         f"pooling_ratio={ratio}")
    if x.shape.rank != 4 or None in x.shape.as_list()[1:3]:
        raise ValueError(f"{op}: value must be [batch, height, width, channels] of known height and width; got "
                         f"{x.shape}.")
    sequences = []
    for axis in (1, 2):
        begin, most = _sequence(x.shape[axis], ratios[axis], bool(pseudo), (seed or None))
        sequences.append(begin)
        x = pooled(x, axis, begin, most + bool(overlapping), bool(overlapping), average)
    return FractionalPool(x, *sequences)


def pooled(x: Any, axis: int, begin: Any, most: int, overlapping: bool, average: bool) -> Any:
    """The largest elements, or the means, of windows along one axis."""
    size = x.shape[axis]
    ends = tf.minimum(begin[1:] + int(overlapping), size)
    wide = [-1 if n == axis else 1 for n in range(4)]
    total: Any = None
    for n in range(most):
        place = begin[:-1] + n
        there = tf.reshape(place < ends, wide)
        part = tf.gather(x, tf.minimum(place, size - 1), axis=axis)
        part = tf.where(there, part, tf.cast(0 if average else x.dtype.min, x.dtype))
        total = part if total is None else total + part if average else tf.maximum(total, part)
    return total / tf.cast(tf.reshape(ends - begin[:-1], wide), x.dtype) if average else total


@public
def fractional_max_pool(value: Any, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False,
                        seed: Any = 0, name: str | None = None) -> FractionalPool:
    """The largest elements of windows of uneven sizes, which are drawn at random.

    Args:
        value: real [batch, height, width, channels], height and width known.
        pooling_ratio: by how much height and width become smaller, 1 or more: one number, one for each, or
            `[1, rows, columns, 1]`.
        pseudo_random: whether windows' sizes follow from one number that is drawn, or each is drawn.
        overlapping: whether neighbouring windows share the element at their border.
        seed: of the op; 0 for none.
        name: accepted, without effect.
    Returns:
        `(output, row_pooling_sequence, col_pooling_sequence)`: the result, and where windows begin, int64.
    Raises:
        ValueError: a ratio below 1, or another rank.

    >>> import twofold as tf
    >>> tf.nn.fractional_max_pool(tf.reshape(tf.range(16.0), [1, 4, 4, 1]), 2.0).output.numpy().ravel().tolist()
    [5.0, 7.0, 13.0, 15.0]
    """
    return _fractional("fractional_max_pool", value, pooling_ratio, pseudo_random, overlapping, seed, average=False)


@public
def fractional_avg_pool(value: Any, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False,
                        seed: Any = 0, name: str | None = None) -> FractionalPool:
    """The means of windows of uneven sizes, which are drawn at random.

    Args:
        value: floating [batch, height, width, channels], height and width known.
        pooling_ratio, pseudo_random, overlapping, seed: as for `tf.nn.fractional_max_pool`.
        name: accepted, without effect.
    Returns:
        `(output, row_pooling_sequence, col_pooling_sequence)`: the result, and where windows begin, int64.
    Raises:
        ValueError: a ratio below 1, or another rank.

    >>> import twofold as tf
    >>> tf.nn.fractional_avg_pool(tf.reshape(tf.range(16.0), [1, 4, 4, 1]), 2.0).output.numpy().ravel().tolist()
    [2.5, 4.5, 10.5, 12.5]
    """
    return _fractional("fractional_avg_pool", value, pooling_ratio, pseudo_random, overlapping, seed, average=True)


# -- convolutions by other names ------------------------------------------------------------------------
def _pulled(call: Callable[[Any], Any], shape: Any, ct: Any) -> Any:
    """The gradient of a linear function at `ct`, for an operand of this shape."""
    zeros = tf.zeros(shape, ct.dtype)
    with tf.GradientTape() as tape:
        tape.watch(zeros)
        y = call(zeros)
    return tape.gradient(y, zeros, output_gradients=ct)


@public
def depthwise_conv2d_backprop_input(input_sizes: Any, filter: Any, out_backprop: Any, strides: Any, padding: Any,
                                    data_format: str = "NHWC", dilations: Any = (1, 1, 1, 1),
                                    name: str | None = None) -> Any:
    """The gradient of `tf.nn.depthwise_conv2d` for its input.

    Args:
        input_sizes: the shape of the input.
        filter: [height, width, channels, multiplier].
        out_backprop: the gradient for the result.
        strides, padding, data_format, dilations: of the convolution.
        name: accepted, without effect.
    Returns:
        Tensor of the shape of the input.

    >>> import twofold as tf
    >>> ones = [1, 1, 1, 1]
    >>> ct = tf.ones([1, 1, 2, 1])
    >>> x = tf.nn.depthwise_conv2d_backprop_input([1, 1, 3, 1], tf.ones([1, 2, 1, 1]), ct, ones, "VALID")
    >>> x.numpy().ravel().tolist()
    [1.0, 2.0, 1.0]
    """
    spatial = listed(dilations, "dilations")[1:3] if data_format == "NHWC" else listed(dilations, "dilations")[2:]
    return _pulled(lambda x: tf.nn.depthwise_conv2d(x, filter, strides, padding, data_format, spatial), input_sizes,
                   tf.convert_to_tensor(out_backprop))


@public
def depthwise_conv2d_backprop_filter(input: Any, filter_sizes: Any, out_backprop: Any, strides: Any, padding: Any,
                                     data_format: str = "NHWC", dilations: Any = (1, 1, 1, 1),
                                     name: str | None = None) -> Any:
    """The gradient of `tf.nn.depthwise_conv2d` for its filters.

    Args:
        input: [batch, height, width, channels].
        filter_sizes: the shape of the filters.
        out_backprop: the gradient for the result.
        strides, padding, data_format, dilations: of the convolution.
        name: accepted, without effect.
    Returns:
        Tensor of the shape of the filters.

    >>> import twofold as tf
    >>> ones = [1, 1, 1, 1]
    >>> x = tf.reshape(tf.range(3.0), [1, 1, 3, 1])
    >>> ct = tf.ones([1, 1, 2, 1])
    >>> tf.nn.depthwise_conv2d_backprop_filter(x, [1, 2, 1, 1], ct, ones, "VALID").numpy().ravel().tolist()
    [1.0, 3.0]
    """
    spatial = listed(dilations, "dilations")[1:3] if data_format == "NHWC" else listed(dilations, "dilations")[2:]
    return _pulled(lambda f: tf.nn.depthwise_conv2d(input, f, strides, padding, data_format, spatial), filter_sizes,
                   tf.convert_to_tensor(out_backprop))


def _padding(padding: str, explicit: Any, rank: int) -> Any:
    if padding != "EXPLICIT":
        return padding
    flat = list(explicit)
    return [flat[2 * n:2 * n + 2] for n in range(rank)]


@public
def conv2d_backprop_input_v2(input: Any, filter: Any, out_backprop: Any, strides: Any, padding: str,
                             use_cudnn_on_gpu: bool = True, explicit_paddings: Any = (), data_format: str = "NHWC",
                             dilations: Any = (1, 1, 1, 1), name: str | None = None) -> Any:
    """The gradient of `tf.nn.conv2d` for its input, of which only the shape counts.

    Args:
        input: a tensor of the input's shape.
        filter: [height, width, channels, outputs].
        out_backprop: the gradient for the result.
        strides, padding, data_format, dilations: of the convolution.
        explicit_paddings: before and behind each axis, flat, if `padding` is "EXPLICIT".
        use_cudnn_on_gpu, name: accepted, without effect.
    Returns:
        Tensor of the shape of the input.

    >>> import twofold as tf
    >>> ones = [1, 1, 1, 1]
    >>> ct = tf.ones([1, 1, 2, 1])
    >>> x = tf.conv2d_backprop_input_v2(tf.zeros([1, 1, 3, 1]), tf.ones([1, 2, 1, 1]), ct, ones, "VALID")
    >>> x.numpy().ravel().tolist()
    [1.0, 2.0, 1.0]
    """
    around = _padding(padding, explicit_paddings, 4)
    return _pulled(lambda x: tf.nn.conv2d(x, filter, strides, around, data_format, dilations), tf.shape(input),
                   tf.convert_to_tensor(out_backprop))


@public
def conv2d_backprop_filter_v2(input: Any, filter: Any, out_backprop: Any, strides: Any, padding: str,
                              use_cudnn_on_gpu: bool = True, explicit_paddings: Any = (), data_format: str = "NHWC",
                              dilations: Any = (1, 1, 1, 1), name: str | None = None) -> Any:
    """The gradient of `tf.nn.conv2d` for its filters, of which only the shape counts.

    Args:
        input: [batch, height, width, channels].
        filter: a tensor of the filters' shape.
        out_backprop: the gradient for the result.
        strides, padding, data_format, dilations: of the convolution.
        explicit_paddings: before and behind each axis, flat, if `padding` is "EXPLICIT".
        use_cudnn_on_gpu, name: accepted, without effect.
    Returns:
        Tensor of the shape of the filters.

    >>> import twofold as tf
    >>> ones = [1, 1, 1, 1]
    >>> x = tf.reshape(tf.range(3.0), [1, 1, 3, 1])
    >>> ct = tf.ones([1, 1, 2, 1])
    >>> tf.conv2d_backprop_filter_v2(x, tf.zeros([1, 2, 1, 1]), ct, ones, "VALID").numpy().ravel().tolist()
    [1.0, 3.0]
    """
    around = _padding(padding, explicit_paddings, 4)
    return _pulled(lambda f: tf.nn.conv2d(input, f, strides, around, data_format, dilations), tf.shape(filter),
                   tf.convert_to_tensor(out_backprop))


@public
def conv(input: Any, filter: Any, strides: Any, padding: str, explicit_paddings: Any = (),
         data_format: str = "CHANNELS_LAST", dilations: Any = (), batch_dims: int = 1, groups: int = 1,
         name: str | None = None) -> Any:
    """Convolution over two or three spatial axes.

    Args:
        input: floating [batch, spatial.., channels], or channels second.
        filter: of the same dtype, [window.., channels / groups, outputs].
        strides: a number for each axis of the input.
        padding: "SAME", "VALID" or "EXPLICIT".
        explicit_paddings: before and behind each axis, flat, if `padding` is "EXPLICIT".
        data_format: "CHANNELS_LAST" or "CHANNELS_FIRST".
        dilations: a number for each axis of the input; none for ones.
        batch_dims: how many axes come before the spatial ones and the channels: 1.
        groups, name: accepted, without effect: numbers of channels tell the groups.
    Returns:
        Tensor [batch, spatial.., outputs], or outputs second.
    Raises:
        ValueError: another layout, or more batch axes.

    >>> import twofold as tf
    >>> tf.conv(tf.ones([1, 3, 3, 2]), tf.ones([2, 2, 2, 1]), [1, 1, 1, 1], "VALID").shape
    TensorShape([1, 2, 2, 1])
    """
    x = tf.convert_to_tensor(input)
    rank = x.shape.rank or 0
    formats = {"CHANNELS_LAST": {4: "NHWC", 5: "NDHWC"}, "CHANNELS_FIRST": {4: "NCHW", 5: "NCDHW"}}
    layout = formats.get(data_format, {}).get(rank)
    if layout is None or one_int(batch_dims, "batch_dims") != 1:
        raise ValueError(f"conv: expected an input of rank 4 or 5, data_format CHANNELS_LAST or CHANNELS_FIRST and one "
                         f"batch axis; got shape {x.shape}, {data_format!r} and batch_dims={batch_dims}.")
    call = tf.nn.conv2d if rank == 4 else tf.nn.conv3d
    ones = [1] * rank
    return call(x, filter, listed(strides, "strides"), _padding(padding, explicit_paddings, rank), layout,
                listed(dilations, "dilations") or ones)


@public
def atrous_conv2d_transpose(value: Any, filters: Any, output_shape: Any, rate: Any, padding: str,
                            name: str | None = None) -> Any:
    """The transpose of `tf.nn.atrous_conv2d`.

    Args:
        value: floating [batch, height, width, channels].
        filters: of the same dtype, [height, width, outputs, channels].
        output_shape: the shape of the result.
        rate: how far the elements of a window lie apart.
        padding: "VALID" or "SAME".
        name: accepted, without effect.
    Returns:
        Tensor of `output_shape`.
    Raises:
        ValueError: `rate` is below 1.

    >>> import twofold as tf
    >>> tf.nn.atrous_conv2d_transpose(tf.ones([1, 1, 2, 1]), tf.ones([1, 2, 1, 1]), [1, 1, 4, 1], 2, "VALID").shape
    TensorShape([1, 1, 4, 1])
    """
    apart = one_int(rate, "rate")
    if apart < 1:
        raise ValueError(f"atrous_conv2d_transpose: rate must be 1 or more; got {apart}.")
    return tf.nn.conv2d_transpose(value, filters, output_shape, 1, padding, dilations=apart)


@public
def approx_top_k(input: Any, k: int, reduction_dimension: int = -1, recall_target: float = 0.95, is_max_k: bool = True,
                 reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
                 name: str | None = None) -> Any:
    """The `k` largest or smallest elements along the last axis, and where they are: all of them.

    Args:
        input: floating tensor.
        k: how many.
        reduction_dimension: the last one.
        is_max_k: whether it is the largest.
        recall_target, reduction_input_size_override, aggregate_to_topk, name: accepted, without effect.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.approx_top_k([1.0, 3.0, 2.0], 2)]
    [[3.0, 2.0], [1, 2]]
    """
    return (tf.nn.approx_max_k if is_max_k else tf.nn.approx_min_k)(input, k, reduction_dimension)


# -- isotonic regression --------------------------------------------------------------------------------
class IsotonicRegression(NamedTuple):
    """The values that fit, and which of them are one mean."""

    output: Any
    segments: Any


@public
def isotonic_regression(inputs: Any, decreasing: bool = True, axis: int = -1) -> Any:
    """The nearest numbers that do not rise, or do not fall, along an axis.

    They are means of neighbours; the gradient is shared among these. Source: Barlow et al., "Statistical inference
    under order restrictions" (1972), by pooling adjacent violators.

    Args:
        inputs: real tensor; integers become floats.
        decreasing: whether they must not rise.
        axis: along which.
    Returns:
        `(output, segments)`: the numbers, and for each the number of its mean along the axis, int32.

    >>> import twofold as tf
    >>> output, segments = tf.nn.isotonic_regression([3.0, 1.0, 2.0, 1.0])
    >>> output.numpy().tolist(), segments.numpy().tolist()
    ([3.0, 1.5, 1.5, 1.0], [0, 1, 1, 2])
    """
    x = tf.convert_to_tensor(inputs)
    if not x.dtype.is_floating:
        x = tf.cast(x, tf.float32 if x.dtype.size <= 2 else tf.float64)
    rank, at = x.shape.rank, one_int(axis, "axis")
    if rank is None or not -rank <= at < rank:
        raise ValueError(f"isotonic_regression: axis must be one of a tensor of rank {rank}; got {at}.")
    at %= rank
    order = [n for n in range(rank) if n != at] + [at]
    back = [order.index(n) for n in range(rank)]
    x = tf.transpose(x, order)
    flat = tf.reshape(x, tf.stack([-1, tf.shape(x)[-1]]))
    runs = rising_runs(tf.stop_gradient(flat if decreasing else -flat))
    rows, count = tf.shape(flat)[0], tf.shape(flat)[1]
    numbers = tf.reshape(runs + tf.expand_dims(tf.range(rows) * count, 1), [-1])
    means = tf.math.unsorted_segment_mean(tf.reshape(flat, [-1]), numbers, rows * count)
    output = tf.reshape(tf.gather(means, numbers), tf.shape(x))
    return IsotonicRegression(tf.transpose(output, back), tf.transpose(tf.reshape(runs, tf.shape(x)), back))


@hosted
def rising_runs(x: Any) -> Any:
    """For each element of the rows the number of the mean that it is a part of, so that means do not rise; int32."""
    def pooled(*tensors: Any) -> list[Any]:
        (rows,) = (engine.array_of(t) for t in tensors)
        runs = np.array([_runs(row) for row in rows.astype(np.float64)], np.int32)
        return [engine.tensor_of(runs.reshape(rows.shape))]
    return engine.host_call(pooled, "isotonic_regression", [x], [tf.TensorSpec(x.shape, tf.int32)])[0]


def _runs(row: np.ndarray) -> list[int]:
    runs: list[tuple[float, int]] = []  # sums and counts
    for value in row.tolist():
        total, count = value, 1
        while runs and runs[-1][0] * count < total * runs[-1][1]:
            before, number = runs.pop()
            total, count = before + total, number + count
        runs.append((total, count))
    return [n for n, (_, count) in enumerate(runs) for _ in range(count)]
