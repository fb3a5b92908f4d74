"""Conversion at the top level of `tf`: cast, bitcast, complex, identity, stop_gradient.

The ops are in `ir/ops/casting.py` and `ir/ops/complex_parts.py`; `tf.where` is among the indexing functions.
"""

from __future__ import annotations

from typing import Any

from twofold._front.api import public, public_op, tensor
from twofold.eager.indexed_slices import IndexedSlices
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.ops.casting import can_reinterpret

__all__ = ["bitcast", "cast", "complex", "identity", "saturate_cast", "stop_gradient"]


@public
def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """Converts a tensor to another dtype, elementwise.

    Floats become integers toward zero; what is out of range becomes the nearest limit, NaN becomes 0. Integers wrap
    around in narrower ones. Complex numbers lose their imaginary part. What is not 0 becomes True.

    Args:
        x: tensor of any dtype but string, or `tf.IndexedSlices`, whose slices are converted.
        dtype: the dtype of the result, any but string.
        name: has no effect.
    Returns:
        Tensor of that dtype and the shape of `x`; `x` itself if it has the dtype already.
    Raises:
        TypeError: `dtype` names no dtype. tf.errors.InvalidArgumentError: one of the dtypes is string.

    >>> import twofold as tf
    >>> tf.cast([1.8, -2.2], tf.int32)
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([ 1, -2], dtype=int32)>
    """
    want = dt.as_dtype(dtype)
    if type(x) is IndexedSlices:
        return x if x.dtype is want else IndexedSlices(cast(x.values, want), x.indices, x.dense_shape)
    x = tensor(x)
    if x.dtype is want:
        return x
    return ops.convert_small(x, dtype=want) if want in dt.SMALL or x.dtype in dt.SMALL else ops.cast(x, dtype=want)


@public
def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Any:
    """Converts a tensor to another dtype, elementwise; what does not fit becomes the nearest finite value that does.

    Args:
        value: numeric tensor; complex ones lose their imaginary part unless `dtype` is complex.
        dtype: the dtype of the result.
        name: has no effect.
    Returns:
        Tensor of that dtype and the shape of `value`.
    Raises:
        TypeError: `dtype` names no dtype. tf.errors.InvalidArgumentError: `value` is not numeric.

    >>> import twofold as tf
    >>> tf.saturate_cast([-3, 200, 300], tf.uint8)
    <tf.Tensor: shape=(3,), dtype=uint8, numpy=array([  0, 200, 255], dtype=uint8)>
    """
    want = dt.as_dtype(dtype)
    x = tensor(value)
    if x.dtype.is_complex and not want.is_complex:
        x = ops.real(x)
    if x.dtype.kind not in "iuf" or want.kind not in "iuf":
        return x if x.dtype is want else ops.cast(x, dtype=want)
    have = x.dtype
    number = float if have.is_floating else int
    low, high = max(number(have.min), number(want.min)), min(number(have.max), number(want.max))
    # a float holds the limits of wide integers only rounded; the cast itself saturates there
    if low > have.min or high < have.max:
        x = ops.clip_by_value(x, low, high)
    return x if have is want else ops.cast(x, dtype=want)


@public
def bitcast(input: Any, type: Any, name: str | None = None) -> Any:
    """Reads the bits of a tensor as another dtype.

    An element that is wider than one of `type` becomes an axis of them at the end, low bits first; elements that are
    narrower are joined along the last axis.

    Args:
        input: numeric tensor.
        type: the dtype to read it as.
        name: has no effect.
    Returns:
        Tensor of that dtype.
    Raises:
        TypeError: `type` names no dtype. tf.errors.InvalidArgumentError: a dtype is not numeric, or the last axis has
            not the size that makes up one element.

    >>> import twofold as tf
    >>> tf.bitcast([1.0], tf.int32)
    <tf.Tensor: shape=(1,), dtype=int32, numpy=array([1065353216], dtype=int32)>
    >>> tf.bitcast([1.0], tf.uint8).numpy().tolist()
    [[0, 0, 128, 63]]
    """
    input, dtype = tensor(input), dt.as_dtype(type)
    return (ops.reinterpret if can_reinterpret(input.dtype, dtype) else ops.bitcast)(input, dtype=dtype)


@public_op(ops.complex)
def complex(real: Any, imag: Any, name: str | None = None) -> Any:
    """Joins real and imaginary parts to complex numbers, elementwise.

    Args:
        real, imag: float32 or float64 tensors of one dtype that broadcast together.
        name: has no effect.
    Returns:
        Tensor of dtype complex64 or complex128.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are others, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.complex([2.25, 3.25], 4.75)
    <tf.Tensor: shape=(2,), dtype=complex64, numpy=array([2.25+4.75j, 3.25+4.75j], dtype=complex64)>
    """
    return ops.complex(real, imag)


@public
def identity(input: Any, name: str | None = None) -> Any:
    """The same values as a tensor of their own.

    Args:
        input: tensor, variable, or what converts to a tensor.
        name: has no effect.
    Returns:
        Tensor of the shape, dtype and values of `input`; of a variable the value it has now.

    >>> import twofold as tf
    >>> v = tf.Variable(1.0)
    >>> before = tf.identity(v)
    >>> before.numpy().item(), v.assign_add(2.0).numpy().item(), before.numpy().item()
    (1.0, 3.0, 1.0)
    """
    return ops.identity(input)


@public
def stop_gradient(input: Any, name: str | None = None) -> Any:
    """The same values, through which no gradient passes.

    Args:
        input: tensor, variable, or what converts to a tensor.
        name: has no effect.
    Returns:
        Tensor of the shape, dtype and values of `input`; for gradients a constant.

    >>> import twofold as tf
    >>> x = tf.constant(3.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * tf.stop_gradient(x)
    >>> tape.gradient(y, x)
    <tf.Tensor: shape=(), dtype=float32, numpy=3.0>
    """
    return ops.stop_gradient(input)

