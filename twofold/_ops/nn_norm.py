"""Means and variances, normalisation by them, biases and embeddings. Re-exported by `twofold/nn.py`.

All are composites of ops, so derivatives of any order follow.
"""

from __future__ import annotations

from typing import Any

from twofold._front.api import axis_arg, one_int, one_number, public, tensor
from twofold._ops.clip import clip_by_norm
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import grad, ops
from twofold.ir.errors import InvalidArgumentError, op_error

__all__ = ["moments", "weighted_moments", "sufficient_statistics", "normalize_moments", "batch_normalization",
           "fused_batch_norm", "layer_normalization", "local_response_normalization", "lrn", "bias_add",
           "embedding_lookup"]


def _widened(x: Any) -> Any:
    """`x`, 16-bit floats as float32."""
    return ops.cast(x, dtype=dt.float32) if x.dtype.size == 2 and x.dtype.is_floating else x


def _narrowed(x: Any, dtype: Any) -> Any:
    return x if x.dtype is dtype else ops.cast(x, dtype=dtype)


@public
def moments(x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None) -> tuple[Any, Any]:
    """Mean and variance along axes; the variance is that of the population, without Bessel's correction.

    Args:
        x: floating tensor; 16-bit floats are computed in float32.
        axes: axis or axes.
        shift: has no effect; the variance is computed from the differences to the mean, less what its rounding adds.
        keepdims: whether reduced axes stay, with size 1.
        name: has no effect.
    Returns:
        The pair (mean, variance), of the dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: an axis does not exist, or another dtype.

    >>> import twofold as tf
    >>> mean, variance = tf.nn.moments(tf.constant([1.0, 3.0]), axes=[0])
    >>> mean.numpy().item(), variance.numpy().item()
    (2.0, 1.0)
    """
    x = tensor(x)
    y, over = _widened(x), axis_arg(axes, x)
    mean = ops.reduce_mean(y, axis=over, keepdims=True)
    variance = ops.centred_variance(ops.subtract(y, mean), axis=over, keepdims=bool(keepdims))
    if not keepdims:
        mean = ops.reshape(mean, shape=variance.dims)
    return _narrowed(mean, x.dtype), _narrowed(variance, x.dtype)


@public
def weighted_moments(x: Any, axes: Any, frequency_weights: Any, keepdims: bool = False,
                     name: str | None = None) -> tuple[Any, Any]:
    """Mean and variance along axes, of elements that count as often as their weights say.

    Args:
        x: floating tensor; 16-bit floats are computed in float32.
        axes: axis or axes.
        frequency_weights: weights of a shape that broadcasts with that of `x`.
        keepdims: whether reduced axes stay, with size 1.
        name: has no effect.
    Returns:
        The pair (mean, variance), of the dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: an axis does not exist, shapes do not broadcast, or another dtype.

    >>> import twofold as tf
    >>> mean, variance = tf.nn.weighted_moments(tf.constant([1.0, 5.0]), [0], tf.constant([3.0, 1.0]))
    >>> mean.numpy().item(), variance.numpy().item()
    (2.0, 3.0)
    """
    x = tensor(x)
    y, over = _widened(x), axis_arg(axes, x)
    weights = _narrowed(tensor(frequency_weights, hint=y.dtype), y.dtype)
    shape = dm.broadcast_shapes(y.dims, weights.dims)
    total = ops.reduce_sum(ops.broadcast_to(weights, shape=shape), axis=over, keepdims=True)

    def mean_of(values: Any) -> Any:
        return ops.divide(ops.reduce_sum(ops.multiply(weights, values), axis=over, keepdims=True), total)
    mean = mean_of(y)
    variance = mean_of(ops.squared_difference(y, mean))
    if not keepdims:
        rank = len(shape)
        gone = tuple(range(rank)) if over is None else tuple(a % rank for a in over)
        kept = tuple(d for i, d in enumerate(mean.dims) if i not in gone)
        mean, variance = ops.reshape(mean, shape=kept), ops.reshape(variance, shape=kept)
    return _narrowed(mean, x.dtype), _narrowed(variance, x.dtype)


@public
def sufficient_statistics(x: Any, axes: Any, shift: Any = None, keepdims: bool = False,
                          name: str | None = None) -> tuple[Any, Any, Any, Any]:
    """What `normalize_moments` needs: count, sum, sum of squares along axes, and the shift.

    Args:
        x: floating tensor.
        axes: axis or axes.
        shift: a value near the mean, subtracted first so that squares do not cancel; or None.
        keepdims: whether reduced axes stay, with size 1.
        name: has no effect.
    Returns:
        (count, sum, sum of squares, shift); the count is a scalar of the dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: an axis does not exist, or another dtype.

    >>> import twofold as tf
    >>> [s.numpy().item() for s in tf.nn.sufficient_statistics(tf.constant([1.0, 3.0]), [0])[:3]]
    [2.0, 4.0, 10.0]
    """
    x = tensor(x)
    over = axis_arg(axes, x)
    rank = len(x.dims)
    sizes = x.dims if over is None else [x.dims[a % rank] for a in over]
    y = x if shift is None else ops.subtract(x, shift)
    total = ops.reduce_sum(y, axis=over, keepdims=bool(keepdims))
    squares = ops.reduce_sum(ops.square(y), axis=over, keepdims=bool(keepdims))
    return tensor(grad.scalar(dm.numel(sizes), x)), total, squares, shift


@public
def normalize_moments(counts: Any, mean_ss: Any, variance_ss: Any, shift: Any,
                      name: str | None = None) -> tuple[Any, Any]:
    """Mean and variance from `sufficient_statistics`.

    Args:
        counts: number of elements.
        mean_ss: their sum, less the shift of each.
        variance_ss: the sum of the squares of that.
        shift: what was subtracted, or None.
        name: has no effect.
    Returns:
        The pair (mean, variance).
    Raises:
        tf.errors.InvalidArgumentError: shapes or dtypes do not fit.

    >>> import twofold as tf
    >>> statistics = tf.nn.sufficient_statistics(tf.constant([1.0, 3.0]), [0])
    >>> [m.numpy().item() for m in tf.nn.normalize_moments(*statistics)]
    [2.0, 1.0]
    """
    shifted = ops.divide(mean_ss, counts)
    variance = ops.subtract(ops.divide(variance_ss, counts), ops.square(shifted))
    return shifted if shift is None else ops.add(shifted, shift), variance


@public
def batch_normalization(x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any,
                        name: str | None = None) -> Any:
    """scale * (x - mean) / sqrt(variance + epsilon) + offset.

    Args:
        x: floating tensor.
        mean, variance: of the same dtype; shapes broadcast.
        offset, scale: likewise, or None.
        variance_epsilon: what keeps the root away from 0.
        name: has no effect.
    Returns:
        Tensor like `x`.
    Raises:
        tf.errors.InvalidArgumentError: shapes or dtypes do not fit.

    >>> import twofold as tf
    >>> tf.nn.batch_normalization(tf.constant([1.0, 3.0]), 2.0, 1.0, None, None, 0.0).numpy().tolist()
    [-1.0, 1.0]
    """
    x = tensor(x)
    factor = ops.rsqrt(ops.add(tensor(variance, hint=x.dtype), variance_epsilon))
    if scale is not None:
        factor = ops.multiply(factor, scale)
    shifted = ops.multiply(ops.subtract(x, mean), factor)
    return shifted if offset is None else ops.add(shifted, offset)


def _channel_axis(op: str, x: Any, data_format: Any) -> int:
    """The axis of channels: 1 for formats such as "NCHW", else the last."""
    if data_format is None or data_format[-1:] == "C":
        return len(x.dims) - 1
    if data_format[:2] == "NC":
        return 1
    raise InvalidArgumentError(f"{op}: data_format must be None, 'N..C' or 'NC..'; got {data_format!r}.")


def _along(v: Any, axis: int, rank: int) -> Any:
    """A vector as a factor along `axis`."""
    return v if axis == rank - 1 else ops.reshape(v, shape=(*v.dims, *(1,) * (rank - 1 - axis)))


@public
def fused_batch_norm(x: Any, scale: Any, offset: Any, mean: Any = None, variance: Any = None, epsilon: float = 0.001,
                     data_format: str = "NHWC", is_training: bool = True, name: str | None = None,
                     exponential_avg_factor: float = 1.0) -> tuple[Any, Any, Any]:
    """Batch normalisation of images or volumes over all axes but channels, with moving statistics.

    Args:
        x: floating [batch, height, width, channels] or [batch, depth, height, width, channels], or channels second.
        scale, offset: [channels], float32 for 16-bit `x`.
        mean, variance: [channels]; the statistics to use when not training, to move when training.
        epsilon: added to the variance.
        data_format: "NHWC" or "NCHW"; "NDHWC" or "NCDHW" for volumes.
        is_training: whether to use the batch's own mean and variance.
        name: has no effect.
        exponential_avg_factor: weight of the batch's statistics in those returned.
    Returns:
        (y, mean, variance): when training the latter are the batch's, with Bessel's correction, mixed into those given.
    Raises:
        tf.errors.InvalidArgumentError: shapes or dtypes do not fit, or statistics are missing.

    >>> import twofold as tf
    >>> x = tf.reshape(tf.constant([1.0, 3.0]), [2, 1, 1, 1])
    >>> y, mean, variance = tf.nn.fused_batch_norm(x, tf.ones([1]), tf.zeros([1]), epsilon=0.0)
    >>> y.numpy().ravel().tolist(), mean.numpy().tolist(), variance.numpy().tolist()
    ([-1.0, 1.0], [2.0], [2.0])
    """
    op, x = "fused_batch_norm", tensor(x)
    rank = len(x.dims)
    if rank not in (4, 5):
        raise op_error(InvalidArgumentError, op, "x must have rank 4 or 5.", [("x", x)])
    axis, wide = _channel_axis(op, x, data_format), _widened(x)
    over = tuple(i for i in range(rank) if i != axis)
    if not is_training:
        if mean is None or variance is None:
            raise InvalidArgumentError(f"{op}: mean and variance must be given when is_training is False.")
        used = new = tensor(mean, hint=wide.dtype), tensor(variance, hint=wide.dtype)
    else:
        used = moments(wide, over)
        count, one = grad.scalar(dm.numel(x.dims[i] for i in over), wide), grad.scalar(1, wide)
        bessel = ops.divide(count, ops.maximum(ops.subtract(count, one), one))
        new = used[0], ops.multiply(used[1], bessel)
        if exponential_avg_factor != 1.0:
            new = tuple(_mixed(old, own, exponential_avg_factor)
                        for old, own in zip((mean, variance), new, strict=True))
    center, spread, shift, factor = (_along(_narrowed(tensor(v, hint=wide.dtype), wide.dtype), axis, rank)
                                     for v in (*used, offset, scale))
    return _narrowed(batch_normalization(wide, center, spread, shift, factor, epsilon), x.dtype), *new


def _mixed(old: Any, own: Any, factor: float) -> Any:
    if old is None:
        raise InvalidArgumentError("fused_batch_norm: exponential_avg_factor other than 1 needs mean and variance.")
    return ops.add(ops.multiply(old, grad.scalar(1 - factor, own)), ops.multiply(own, grad.scalar(factor, own)))


@public
def layer_normalization(x: Any, scale: Any = None, offset: Any = None, axis: Any = -1, epsilon: float = 0.001,
                        name: str | None = None) -> Any:
    """Each example normalised by its own mean and variance along axes (Ba, Kiros & Hinton 2016).

    Args:
        x: floating tensor; 16-bit floats are computed in float32.
        scale, offset: tensors of shapes that broadcast, or None.
        axis: axis or axes of mean and variance.
        epsilon: added to the variance.
        name: has no effect.
    Returns:
        Tensor like `x`.
    Raises:
        tf.errors.InvalidArgumentError: an axis does not exist, shapes or dtypes do not fit.

    >>> import twofold as tf
    >>> tf.nn.layer_normalization(tf.constant([[1.0, 3.0], [10.0, 30.0]]), epsilon=0.0).numpy().tolist()
    [[-1.0, 1.0], [-1.0, 1.0]]
    """
    x = tensor(x)
    wide = _widened(x)
    mean, variance = moments(wide, axis_arg(axis, x), keepdims=True)
    shift, factor = (None if v is None else _narrowed(tensor(v, hint=wide.dtype), wide.dtype) for v in (offset, scale))
    return _narrowed(batch_normalization(wide, mean, variance, shift, factor, epsilon), x.dtype)


@public
def local_response_normalization(input: Any, depth_radius: Any = 5, bias: Any = 1, alpha: Any = 1, beta: Any = 0.5,
                                 name: str | None = None) -> Any:
    """input / (bias + alpha * sum of squares of neighbouring channels) ** beta (Krizhevsky et al. 2012).

    Args:
        input: floating [batch, height, width, channels].
        depth_radius: how many channels on either side count as neighbours.
        bias, alpha, beta: numbers.
        name: has no effect.
    Returns:
        Tensor like `input`.
    Raises:
        tf.errors.InvalidArgumentError: the rank is not 4, or another dtype. TypeError: a setting is no number.

    >>> import twofold as tf
    >>> y = tf.nn.local_response_normalization(tf.constant([[[[3.0, 4.0]]]]), 1, 0, 1, 0.5)
    >>> y.numpy().round(2).ravel().tolist()
    [0.6000000238418579, 0.800000011920929]
    """
    x, radius = tensor(input), one_int(depth_radius, "depth_radius")
    bias, alpha, beta = one_number(bias, "bias"), one_number(alpha, "alpha"), one_number(beta, "beta")
    if len(x.dims) != 4 or radius < 0:
        raise op_error(InvalidArgumentError, "local_response_normalization",
                       "input must have rank 4 and depth_radius be 0 or more.",
                       [("input", x), ("depth_radius", depth_radius)])
    rows = ops.reshape(ops.square(x), shape=(dm.numel(x.dims[:-1]), x.dims[-1], 1))
    ones = ops.fill(grad.scalar(1, x), shape=(2 * radius + 1, 1, 1))
    sums = ops.conv(rows, ones, strides=(1,), dilations=(1,), padding=((radius, radius),))
    base = ops.add(ops.multiply(ops.reshape(sums, shape=x.dims), grad.scalar(alpha, x)), grad.scalar(bias, x))
    return ops.multiply(x, ops.pow(base, grad.scalar(-beta, x)))


lrn = local_response_normalization


@public
def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Any:
    """`value` plus a number for each channel.

    Args:
        value: numeric tensor of rank 2 or more.
        bias: of the same dtype, [channels].
        data_format: None or "N..C" for channels last, "NC.." for channels second.
        name: has no effect.
    Returns:
        Tensor like `value`.
    Raises:
        tf.errors.InvalidArgumentError: ranks or sizes do not fit, or dtypes differ.

    >>> import twofold as tf
    >>> tf.nn.bias_add(tf.constant([[1, 2], [3, 4]]), tf.constant([10, 20])).numpy().tolist()
    [[11, 22], [13, 24]]
    """
    value = tensor(value, hint=bias.dtype if hasattr(bias, "dims") else None)
    bias = tensor(bias, hint=value.dtype)
    operands = [("value", value), ("bias", bias)]
    if len(bias.dims) != 1 or len(value.dims) < 2:
        raise op_error(InvalidArgumentError, "bias_add", "expected bias of rank 1 and value of rank 2 or more.",
                       operands)
    axis = _channel_axis("bias_add", value, data_format)
    if not dm.require_eq(value.dims[axis], bias.dims[0]):
        raise op_error(InvalidArgumentError, "bias_add", f"value has {value.dims[axis]} channels and bias "
                       f"{bias.dims[0]}.", operands)
    return ops.add(value, _along(bias, axis, len(value.dims)))


@public
def embedding_lookup(params: Any, ids: Any, max_norm: Any = None, name: str | None = None) -> Any:
    """The rows of `params` that `ids` names.

    Args:
        params: tensor [rows, ..]; or a list of them, the rows of the next following those of the one before.
        ids: integers in [0, rows).
        max_norm: the length to which longer rows are shortened.
        name: has no effect.
    Returns:
        Tensor of shape `ids.shape + params.shape[1:]`.
    Raises:
        tf.errors.InvalidArgumentError: an id is out of range, or is not an integer.

    >>> import twofold as tf
    >>> tf.nn.embedding_lookup(tf.constant([[1, 2], [3, 4]]), [1, 1]).numpy().tolist()
    [[3, 4], [3, 4]]
    """
    if isinstance(params, (list, tuple)) and params and len(getattr(params[0], "shape", ())):
        params = params[0] if len(params) == 1 else ops.concat(*params, axis=0)
    ids = tensor(ids)
    rows = ops.gather(params, ids, axis=0)
    if max_norm is None:
        return rows
    axes = list(range(len(ids.dims), len(rows.dims)))
    return clip_by_norm(rows, max_norm, axes)
