"""Reductions and scans of `tf.math`, under TensorFlow's names; `twofold/math.py` re-exports them.

Each joins the elements along axes of a tensor, or keeps every step of doing so. The ops are in `ir/ops/reductions.py`
and `ir/ops/scans.py`; counting into bins is `twofold/_ops/math_segments.py`'s.
"""

from __future__ import annotations

import math
from typing import Any

from twofold._front.api import axis_arg, axis_span, one_int, public, public_op, tensor
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.op import Op
from twofold.ir.ops import scans

__all__ = ["reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min", "reduce_any", "reduce_all",
           "reduce_logsumexp", "reduce_variance", "reduce_std", "reduce_euclidean_norm", "count_nonzero", "argmax",
           "argmin", "cumsum", "cumprod", "cumulative_logsumexp"]


def _reduced(op: Op, x: Any, axis: Any, keepdims: Any) -> Any:
    if axis is None and not keepdims:
        return op(x)  # attributes left out, so that a native entry may answer
    return op(x, axis=axis_arg(axis, x), keepdims=bool(keepdims))


def _axis(axis: Any, x: Any) -> int:
    """The one axis of an argument that names one."""
    return one_int(axis, "axis", axis_span(x))


@public_op(ops.reduce_sum, own=True)
def reduce_sum(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """Adds up elements along axes.

    float16 and bfloat16 are added in float32 and rounded once; integers wrap around. The order of additions depends on
    the shape alone, so results do not vary with layout or threads.

    Args:
        input_tensor: numeric tensor.
        axis: axis or axes to reduce; None for all.
        keepdims: whether reduced axes stay, with size 1.
        name: has no effect.
    Returns:
        Tensor of the same dtype.
    Raises:
        tf.errors.InvalidArgumentError: an axis is out of range or named twice, or the dtype is not numeric.

    >>> import twofold as tf
    >>> x = tf.constant([[1, 1, 1], [1, 1, 1]])
    >>> tf.reduce_sum(x).numpy().item(), tf.reduce_sum(x, 0).numpy().tolist()
    (6, [2, 2, 2])
    """
    return _reduced(ops.reduce_sum, input_tensor, axis, keepdims)


@public_op(ops.reduce_mean, own=True)
def reduce_mean(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """Mean of the elements along axes.

    Integers give integers: the sum, in 64 bits, divided toward zero.

    Args:
        input_tensor: numeric tensor.
        axis: axis or axes to reduce; None for all.
        keepdims: whether reduced axes stay, with size 1.
        name: has no effect.
    Returns:
        Tensor of the same dtype; NaN for floats where there are no elements.
    Raises:
        tf.errors.InvalidArgumentError: an axis is out of range or named twice, or the dtype is not numeric.

    >>> import twofold as tf
    >>> tf.reduce_mean([[1.0, 1.0], [2.0, 2.0]], 1).numpy().tolist()
    [1.0, 2.0]
    >>> tf.reduce_mean([1, 0, 1, 0]).numpy().item()
    0
    """
    return _reduced(ops.reduce_mean, input_tensor, axis, keepdims)


@public_op(ops.reduce_prod, own=True)
def reduce_prod(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """Multiplies elements along axes. Gradients are right also where elements are zero.

    Args:
        input_tensor: numeric tensor.
        axis: axis or axes to reduce; None for all.
        keepdims: whether reduced axes stay, with size 1.
        name: has no effect.
    Returns:
        Tensor of the same dtype; 1 where there are no elements.
    Raises:
        tf.errors.InvalidArgumentError: an axis is out of range or named twice, or the dtype is not numeric.

    >>> import twofold as tf
    >>> tf.reduce_prod([[1.0, 2.0], [3.0, 4.0]], 0).numpy().tolist()
    [3.0, 8.0]
    """
    return _reduced(ops.reduce_prod, input_tensor, axis, keepdims)


@public_op(ops.reduce_max, own=True)
def reduce_max(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """Largest of the elements along axes; NaN where one of them is. Equal elements share the gradient.

    Args:
        input_tensor: real tensor.
        axis: axis or axes to reduce; None for all.
        keepdims: whether reduced axes stay, with size 1.
        name: has no effect.
    Returns:
        Tensor of the same dtype; minus infinity, or the lowest integer, where there are no elements.
    Raises:
        tf.errors.InvalidArgumentError: an axis is out of range or named twice, or the dtype is not real.

    >>> import twofold as tf
    >>> tf.reduce_max([[1, 5], [3, 4]], axis=0).numpy().tolist()
    [3, 5]
    """
    return _reduced(ops.reduce_max, input_tensor, axis, keepdims)


@public_op(ops.reduce_min, own=True)
def reduce_min(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """Smallest of the elements along axes; NaN where one of them is. Equal elements share the gradient.

    Args:
        input_tensor: real tensor.
        axis: axis or axes to reduce; None for all.
        keepdims: whether reduced axes stay, with size 1.
        name: has no effect.
    Returns:
        Tensor of the same dtype; infinity, or the highest integer, where there are no elements.
    Raises:
        tf.errors.InvalidArgumentError: an axis is out of range or named twice, or the dtype is not real.

    >>> import twofold as tf
    >>> tf.reduce_min([[1, 5], [3, 4]], axis=0).numpy().tolist()
    [1, 4]
    """
    return _reduced(ops.reduce_min, input_tensor, axis, keepdims)


@public_op(ops.reduce_any, own=True)
def reduce_any(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """Whether any element along axes is true.

    Args:
        input_tensor: bool tensor.
        axis: axis or axes to reduce; None for all.
        keepdims: whether reduced axes stay, with size 1.
        name: has no effect.
    Returns:
        bool tensor; false where there are no elements.
    Raises:
        tf.errors.InvalidArgumentError: an axis is out of range or named twice, or the dtype is not bool.

    >>> import twofold as tf
    >>> tf.reduce_any([[True, True], [False, False]], 1).numpy().tolist()
    [True, False]
    """
    return _reduced(ops.reduce_any, input_tensor, axis, keepdims)


@public_op(ops.reduce_all, own=True)
def reduce_all(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """Whether all elements along axes are true.

    Args:
        input_tensor: bool tensor.
        axis: axis or axes to reduce; None for all.
        keepdims: whether reduced axes stay, with size 1.
        name: has no effect.
    Returns:
        bool tensor; true where there are no elements.
    Raises:
        tf.errors.InvalidArgumentError: an axis is out of range or named twice, or the dtype is not bool.

    >>> import twofold as tf
    >>> tf.reduce_all([[True, True], [True, False]], 1).numpy().tolist()
    [True, False]
    """
    return _reduced(ops.reduce_all, input_tensor, axis, keepdims)


@public_op(ops.reduce_logsumexp, own=True)
def reduce_logsumexp(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """log(sum(exp(x))) along axes, without overflow or underflow.

    Args:
        input_tensor: floating tensor.
        axis: axis or axes to reduce; None for all.
        keepdims: whether reduced axes stay, with size 1.
        name: has no effect.
    Returns:
        Tensor of the same dtype; minus infinity where all elements are. Gradients are finite there too.
    Raises:
        tf.errors.InvalidArgumentError: an axis is out of range or named twice, or the dtype is not floating.

    Source: Milakov & Gimelshein, "Online normalizer calculation for softmax" (2018): running maximum and rescaled sum.

    >>> import twofold as tf
    >>> tf.reduce_logsumexp([1000.0, 1000.0]).numpy().item()  # 1000 + log(2)
    1000.6931762695312
    """
    return _reduced(ops.reduce_logsumexp, input_tensor, axis, keepdims)


@public
def reduce_variance(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """Mean of the squared distance from the mean, along axes.

    Args:
        input_tensor: floating or complex tensor.
        axis: axis or axes to reduce; None for all.
        keepdims: whether reduced axes stay, with size 1.
        name: has no effect.
    Returns:
        Tensor of the same dtype, real where the input is complex.
    Raises:
        TypeError: the dtype is neither floating nor complex.
        tf.errors.InvalidArgumentError: an axis is out of range or named twice.

    >>> import twofold as tf
    >>> tf.math.reduce_variance([1.0, 2.0, 3.0, 4.0]).numpy().item()
    1.25
    """
    x = tensor(input_tensor)
    if not x.dtype.is_differentiable:
        raise TypeError(f"reduce_variance: input_tensor has dtype {x.dtype.name}; expected a floating or complex one.")
    axes = axis_arg(axis, x)
    apart = ops.subtract(x, ops.reduce_mean(x, axis=axes, keepdims=True))
    parts = (ops.real(apart), ops.imag(apart)) if x.dtype.is_complex else (apart,)
    variances = [ops.centred_variance(part, axis=axes, keepdims=bool(keepdims)) for part in parts]
    return ops.add(*variances) if x.dtype.is_complex else variances[0]


@public
def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """Standard deviation along axes: the square root of `tf.math.reduce_variance`; its gradient at zero is zero.

    Args:
        input_tensor: floating or complex tensor.
        axis: axis or axes to reduce; None for all.
        keepdims: whether reduced axes stay, with size 1.
        name: has no effect.
    Returns:
        Tensor of the same dtype, real where the input is complex.
    Raises:
        TypeError: the dtype is neither floating nor complex.
        tf.errors.InvalidArgumentError: an axis is out of range or named twice.

    >>> import twofold as tf
    >>> tf.math.reduce_std([[1.0, 3.0], [0.0, 8.0]], axis=1).numpy().tolist()
    [1.0, 4.0]
    """
    variance = reduce_variance(input_tensor, axis, keepdims)
    zero = tensor(0, variance.dtype)
    none = ops.equal(variance, zero)  # where the root has no derivative, and its gradient would be NaN
    return ops.where(none, zero, ops.sqrt(ops.where(none, tensor(1, variance.dtype), variance)))


@public_op(ops.reduce_euclidean_norm, own=True)
def reduce_euclidean_norm(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """Square root of the sum of squares along axes; its gradient at zero is zero.

    Args:
        input_tensor: numeric tensor.
        axis: axis or axes to reduce; None for all.
        keepdims: whether reduced axes stay, with size 1.
        name: has no effect.
    Returns:
        Tensor of the same dtype; integers are cut.
    Raises:
        tf.errors.InvalidArgumentError: an axis is out of range or named twice, or the dtype is not numeric.

    >>> import twofold as tf
    >>> tf.math.reduce_euclidean_norm([[3.0, 4.0], [6.0, 8.0]], 1).numpy().tolist()
    [5.0, 10.0]
    """
    return _reduced(ops.reduce_euclidean_norm, input_tensor, axis, keepdims)


@public
def count_nonzero(input: Any, axis: Any = None, keepdims: bool | None = None, dtype: Any = dt.int64,
                  name: str | None = None) -> Any:
    """How many elements along axes are not zero.

    Args:
        input: tensor of any dtype but string.
        axis: axis or axes to reduce; None for all.
        keepdims: whether reduced axes stay, with size 1.
        dtype: dtype of the result.
        name: has no effect.
    Returns:
        Tensor of `dtype`.
    Raises:
        tf.errors.InvalidArgumentError: an axis is out of range or named twice.

    >>> import twofold as tf
    >>> tf.math.count_nonzero([[0, 1, 0], [1, 1, 0]], axis=1).numpy().tolist()
    [1, 2]
    """
    return ops.count_nonzero(input, axis=axis_arg(axis, input), keepdims=bool(keepdims), dtype=dt.as_dtype(dtype))


@public
def argmax(input: Any, axis: Any = None, output_type: Any = None, name: str | None = None) -> Any:
    """Where along an axis the largest element is; the first of equal ones, the first NaN if there is one.

    Args:
        input: real or bool tensor.
        axis: the axis to search; None for the first.
        output_type: dtype of the result: int16, int32, int64, which it is by default, or uint16.
        name: has no effect.
    Returns:
        Indices, in the shape of `input` without that axis.
    Raises:
        tf.errors.InvalidArgumentError: the axis is out of range or empty, or a dtype is none of those.

    >>> import twofold as tf
    >>> tf.argmax([[1, 9, 3], [4, 5, 6]], axis=1).numpy().tolist()
    [1, 2]
    """
    return ops.argmax(input, axis=0 if axis is None else _axis(axis, input),
                      output_type=dt.as_dtype(output_type or dt.int64))


@public
def argmin(input: Any, axis: Any = None, output_type: Any = None, name: str | None = None) -> Any:
    """Where along an axis the smallest element is; the first of equal ones, the first NaN if there is one.

    Args:
        input: real or bool tensor.
        axis: the axis to search; None for the first.
        output_type: dtype of the result: int16, int32, int64, which it is by default, or uint16.
        name: has no effect.
    Returns:
        Indices, in the shape of `input` without that axis.
    Raises:
        tf.errors.InvalidArgumentError: the axis is out of range or empty, or a dtype is none of those.

    >>> import twofold as tf
    >>> tf.argmin([[1, 9, 3], [4, 5, 2]], axis=1).numpy().tolist()
    [0, 2]
    """
    return ops.argmin(input, axis=0 if axis is None else _axis(axis, input),
                      output_type=dt.as_dtype(output_type or dt.int64))


@public
def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Any:
    """Sums of the elements up to each one along an axis.

    Args:
        x: numeric tensor of rank 1 or more.
        axis: the axis to go along.
        exclusive: leave the element itself out of its sum.
        reverse: go from the end to the start.
        name: has no effect.
    Returns:
        Tensor like `x`.
    Raises:
        tf.errors.InvalidArgumentError: the axis is out of range, or the dtype is not numeric.

    >>> import twofold as tf
    >>> tf.cumsum([2, 4, 6, 8]).numpy().tolist()
    [2, 6, 12, 20]
    >>> tf.cumsum([2, 4, 6, 8], exclusive=True, reverse=True).numpy().tolist()
    [18, 14, 8, 0]
    """
    return ops.cumsum(x, axis=_axis(axis, x), exclusive=bool(exclusive), reverse=bool(reverse))


@public
def cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Any:
    """Products of the elements up to each one along an axis; gradients are right also at zeros.

    Args:
        x: numeric tensor of rank 1 or more.
        axis: the axis to go along.
        exclusive: leave the element itself out of its product.
        reverse: go from the end to the start.
        name: has no effect.
    Returns:
        Tensor like `x`.
    Raises:
        tf.errors.InvalidArgumentError: the axis is out of range, or the dtype is not numeric.

    >>> import twofold as tf
    >>> tf.math.cumprod([2, 3, 4]).numpy().tolist(), tf.math.cumprod([2, 3, 4], exclusive=True).numpy().tolist()
    ([2, 6, 24], [1, 2, 6])
    """
    return ops.cumprod(x, axis=_axis(axis, x), exclusive=bool(exclusive), reverse=bool(reverse))


@public
def cumulative_logsumexp(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False,
                         name: str | None = None) -> Any:
    """log(sum(exp(x))) of the elements up to each one along an axis, without overflow or underflow.

    Args:
        x: floating tensor of rank 1 or more.
        axis: the axis to go along.
        exclusive: leave the element itself out; the first result is minus infinity.
        reverse: go from the end to the start.
        name: has no effect.
    Returns:
        Tensor like `x`.
    Raises:
        tf.errors.InvalidArgumentError: the axis is out of range, or the dtype is not floating.

    >>> import twofold as tf
    >>> print(tf.math.cumulative_logsumexp([0.0, 0.0, float("-inf")]).numpy())
    [0.        0.6931472 0.6931472]
    """
    sums = ops.cumulative_logsumexp(x, axis=_axis(axis, x), reverse=bool(reverse))
    return scans.shifted(sums, _axis(axis, x), -1 if reverse else 1, -math.inf) if exclusive else sums

