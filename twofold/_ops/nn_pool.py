"""Pooling in every form that `tf.nn` has. Re-exported by `twofold/nn.py`."""

from __future__ import annotations

from typing import Any

from twofold._front.api import public, tensor
from twofold._ops.nn_layout import layout, padding_arg, per_axis, refuse_both, with_channels_last
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.errors import InvalidArgumentError

__all__ = ["pool", "max_pool", "max_pool1d", "max_pool2d", "max_pool3d", "avg_pool", "avg_pool1d", "avg_pool2d",
           "avg_pool3d", "max_pool_with_argmax"]


def _pool(op: str, kind: Any, input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any, spatial: int | None,
          dilations: Any = None) -> Any:
    x = tensor(input)
    form = layout(op, data_format, len(x.dims) - 2 if spatial is None else spatial)
    window = {"ksize": per_axis(op, "ksize", ksize, form), "strides": per_axis(op, "strides", strides, form),
              "padding": padding_arg(op, padding, form), "dilations": per_axis(op, "dilations", dilations, form)}
    return with_channels_last(op, lambda y: kind(y, **window), x, form)


@public
def pool(input: Any, window_shape: Any, pooling_type: str, strides: Any = None, padding: Any = "VALID",
         data_format: Any = None, dilations: Any = None, name: str | None = None) -> Any:
    """Maxima or averages of sliding windows, with gaps if wanted.

    Args:
        input: floating [batch, spatial.., channels], with one to three spatial axes; or channels second.
        window_shape: an integer for each spatial axis, or one for all.
        pooling_type: "MAX" or "AVG".
        strides, dilations: an integer for each spatial axis, or one for all; 1 by default.
        padding: "SAME", "VALID" or pairs; never part of a maximum or an average.
        data_format: as for `tf.nn.convolution`.
        name: has no effect.
    Returns:
        Tensor [batch, places.., channels], laid out like `input`.
    Raises:
        ValueError: there are strides and dilations above 1. tf.errors.InvalidArgumentError: shape, dtype or
            attributes do not fit.

    >>> import twofold as tf
    >>> tf.nn.pool(tf.reshape(tf.range(4.0), [1, 4, 1]), [2], "AVG").numpy().ravel().tolist()
    [0.5, 1.5, 2.5]
    """
    kinds = {"MAX": ops.max_pool, "AVG": ops.avg_pool}
    if pooling_type not in kinds:
        raise InvalidArgumentError(f"pool: pooling_type must be 'MAX' or 'AVG'; got {pooling_type!r}.")
    refuse_both("pool", strides, dilations, layout("pool", data_format, len(tensor(input).dims) - 2))
    return _pool("pool", kinds[pooling_type], input, window_shape, strides, padding, data_format, None, dilations)


@public
def max_pool(input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any = None,
             name: str | None = None) -> Any:
    """The largest element of each window, over one to three spatial axes.

    Args:
        input: real [batch, spatial.., channels], or channels second.
        ksize, strides: an integer, or one for each spatial axis, or one for each axis.
        padding: "SAME", "VALID", or pairs (before, after); never a maximum.
        data_format: as for `tf.nn.convolution`.
        name: has no effect.
    Returns:
        Tensor [batch, places.., channels], laid out like `input`. The gradient goes to the first largest element.
    Raises:
        tf.errors.InvalidArgumentError: shape, dtype or attributes do not fit.

    >>> import twofold as tf
    >>> tf.nn.max_pool(tf.reshape(tf.range(4.0), [1, 2, 2, 1]), 2, 2, "VALID").numpy().ravel().tolist()
    [3.0]
    """
    return _pool("max_pool", ops.max_pool, input, ksize, strides, padding, data_format, None)


@public
def avg_pool(input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any = None,
             name: str | None = None) -> Any:
    """The average of each window, over one to three spatial axes; padding does not count.

    Args:
        input: floating [batch, spatial.., channels], or channels second.
        ksize, strides: an integer, or one for each spatial axis, or one for each axis.
        padding: "SAME", "VALID", or pairs (before, after).
        data_format: as for `tf.nn.convolution`.
        name: has no effect.
    Returns:
        Tensor [batch, places.., channels], laid out like `input`.
    Raises:
        tf.errors.InvalidArgumentError: shape, dtype or attributes do not fit.

    >>> import twofold as tf
    >>> tf.nn.avg_pool(tf.reshape(tf.range(4.0), [1, 2, 2, 1]), 2, 2, "VALID").numpy().ravel().tolist()
    [1.5]
    """
    return _pool("avg_pool", ops.avg_pool, input, ksize, strides, padding, data_format, None)


@public
def max_pool1d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any = "NWC",
               name: str | None = None) -> Any:
    """The largest element of each window, over one spatial axis.

    Args:
        input: real tensor of rank 3: batch, 1 spatial, channels; or channels second.
        ksize, strides: an integer, or one for each spatial axis, or one for each axis.
        padding: "SAME", "VALID", or pairs (before, after).
        data_format: "NWC" or "NCW".
        name: has no effect.
    Returns:
        Tensor laid out like `input`; see `tf.nn.max_pool`.
    Raises:
        tf.errors.InvalidArgumentError: shape, dtype or attributes do not fit.

    >>> import twofold as tf
    >>> tf.nn.max_pool1d(tf.reshape(tf.range(4.0), [1, 4, 1]), 4, 4, "VALID").numpy().ravel().tolist()
    [3.0]
    """
    return _pool("max_pool1d", ops.max_pool, input, ksize, strides, padding, data_format, 1)


@public
def max_pool2d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any = "NHWC",
               name: str | None = None) -> Any:
    """The largest element of each window, over two spatial axes.

    Args:
        input: real tensor of rank 4: batch, 2 spatial, channels; or channels second.
        ksize, strides: an integer, or one for each spatial axis, or one for each axis.
        padding: "SAME", "VALID", or pairs (before, after).
        data_format: "NHWC" or "NCHW".
        name: has no effect.
    Returns:
        Tensor laid out like `input`; see `tf.nn.max_pool`.
    Raises:
        tf.errors.InvalidArgumentError: shape, dtype or attributes do not fit.

    >>> import twofold as tf
    >>> tf.nn.max_pool2d(tf.reshape(tf.range(4.0), [1, 2, 2, 1]), 2, 2, "VALID").numpy().ravel().tolist()
    [3.0]
    """
    return _pool("max_pool2d", ops.max_pool, input, ksize, strides, padding, data_format, 2)


@public
def max_pool3d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any = "NDHWC",
               name: str | None = None) -> Any:
    """The largest element of each window, over three spatial axes.

    Args:
        input: real tensor of rank 5: batch, 3 spatial, channels; or channels second.
        ksize, strides: an integer, or one for each spatial axis, or one for each axis.
        padding: "SAME", "VALID", or pairs (before, after).
        data_format: "NDHWC" or "NCDHW".
        name: has no effect.
    Returns:
        Tensor laid out like `input`; see `tf.nn.max_pool`.
    Raises:
        tf.errors.InvalidArgumentError: shape, dtype or attributes do not fit.

    >>> import twofold as tf
    >>> tf.nn.max_pool3d(tf.reshape(tf.range(4.0), [1, 1, 2, 2, 1]), [1, 2, 2], 1, "VALID").numpy().ravel().tolist()
    [3.0]
    """
    return _pool("max_pool3d", ops.max_pool, input, ksize, strides, padding, data_format, 3)


@public
def avg_pool1d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any = "NWC",
               name: str | None = None) -> Any:
    """The average of each window, over one spatial axis.

    Args:
        input: floating tensor of rank 3: batch, 1 spatial, channels; or channels second.
        ksize, strides: an integer, or one for each spatial axis, or one for each axis.
        padding: "SAME", "VALID", or pairs (before, after).
        data_format: "NWC" or "NCW".
        name: has no effect.
    Returns:
        Tensor laid out like `input`; see `tf.nn.avg_pool`.
    Raises:
        tf.errors.InvalidArgumentError: shape, dtype or attributes do not fit.

    >>> import twofold as tf
    >>> tf.nn.avg_pool1d(tf.reshape(tf.range(4.0), [1, 4, 1]), 4, 4, "VALID").numpy().ravel().tolist()
    [1.5]
    """
    return _pool("avg_pool1d", ops.avg_pool, input, ksize, strides, padding, data_format, 1)


@public
def avg_pool2d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any = "NHWC",
               name: str | None = None) -> Any:
    """The average of each window, over two spatial axes.

    Args:
        input: floating tensor of rank 4: batch, 2 spatial, channels; or channels second.
        ksize, strides: an integer, or one for each spatial axis, or one for each axis.
        padding: "SAME", "VALID", or pairs (before, after).
        data_format: "NHWC" or "NCHW".
        name: has no effect.
    Returns:
        Tensor laid out like `input`; see `tf.nn.avg_pool`.
    Raises:
        tf.errors.InvalidArgumentError: shape, dtype or attributes do not fit.

    >>> import twofold as tf
    >>> tf.nn.avg_pool2d(tf.reshape(tf.range(4.0), [1, 2, 2, 1]), 2, 2, "VALID").numpy().ravel().tolist()
    [1.5]
    """
    return _pool("avg_pool2d", ops.avg_pool, input, ksize, strides, padding, data_format, 2)


@public
def avg_pool3d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any = "NDHWC",
               name: str | None = None) -> Any:
    """The average of each window, over three spatial axes.

    Args:
        input: floating tensor of rank 5: batch, 3 spatial, channels; or channels second.
        ksize, strides: an integer, or one for each spatial axis, or one for each axis.
        padding: "SAME", "VALID", or pairs (before, after).
        data_format: "NDHWC" or "NCDHW".
        name: has no effect.
    Returns:
        Tensor laid out like `input`; see `tf.nn.avg_pool`.
    Raises:
        tf.errors.InvalidArgumentError: shape, dtype or attributes do not fit.

    >>> import twofold as tf
    >>> tf.nn.avg_pool3d(tf.reshape(tf.range(4.0), [1, 1, 2, 2, 1]), [1, 2, 2], 1, "VALID").numpy().ravel().tolist()
    [1.5]
    """
    return _pool("avg_pool3d", ops.avg_pool, input, ksize, strides, padding, data_format, 3)


@public
def max_pool_with_argmax(input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any = "NHWC",
                         output_dtype: Any = dt.int64, include_batch_in_index: bool = False,
                         name: str | None = None) -> tuple[Any, Any]:
    """The largest element of each window, and where it lies.

    Args:
        input: floating [batch, height, width, channels].
        ksize, strides: an integer, or one for each spatial axis, or one for each axis.
        padding: "SAME", "VALID", or pairs (before, after).
        data_format: "NHWC".
        output_dtype: int32 or int64, for the places.
        include_batch_in_index: whether places count from the start of the batch, else of each image.
        name: has no effect.
    Returns:
        A pair of tensors [batch, places.., channels]: maxima, and (row * width + column) * channels + channel.
    Raises:
        tf.errors.InvalidArgumentError: shape, dtype or attributes do not fit.

    >>> import twofold as tf
    >>> image = tf.reshape(tf.constant([1.0, 4.0, 3.0, 2.0]), [1, 2, 2, 1])
    >>> [t.numpy().item() for t in tf.nn.max_pool_with_argmax(image, 2, 2, "VALID")]
    [4.0, 1]
    """
    op = "max_pool_with_argmax"
    if data_format != "NHWC":
        raise InvalidArgumentError(f"{op}: data_format must be 'NHWC'; got {data_format!r}.")
    x = tensor(input)
    values = _pool(op, ops.max_pool, x, ksize, strides, padding, data_format, 2)
    places = _pool(op, ops.max_pool_argmax, x, ksize, strides, padding, data_format, 2)
    if include_batch_in_index:
        images = ops.cast(ops.range(0, x.dims[0], 1, size=x.dims[0]), dtype=dt.int64)
        first = ops.multiply(images, dm.numel(x.dims[1:]))
        places = ops.add(places, ops.reshape(first, shape=(x.dims[0], 1, 1, 1)))
    return values, ops.cast(places, dtype=dt.as_dtype(output_dtype))
