"""Arithmetic of `tf.math`, under TensorFlow's names; `twofold/math.py` re-exports it.

The ops are in `ir/ops/arithmetic.py`.
"""

from __future__ import annotations

from typing import Any

from twofold._front.api import public, public_op, tensor
from twofold._ops.math_comparison import any_string
from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.grad import zeros_like
from twofold.ir.spec import as_shape

__all__ = ["abs", "accumulate_n", "add", "add_n", "divide", "divide_no_nan", "floordiv", "floormod", "maximum",
           "minimum", "mod", "multiply", "multiply_no_nan", "negative", "polyval", "pow", "reciprocal",
           "reciprocal_no_nan", "rsqrt", "scalar_mul", "sign", "sqrt", "square", "squared_difference", "subtract",
           "truediv", "truncatediv", "truncatemod"]

_ADDED_AT_ONCE = 8  # a kernel is made for each number of operands up to this


@public_op(ops.add, own=True)
def add(x: Any, y: Any, name: str | None = None) -> Any:
    """Adds `x` and `y`, elementwise; integers wrap around, strings are put one behind the other.

    Args:
        x, y: numeric or string tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are bool, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.add([1, 2, 3], 10)
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([11, 12, 13], dtype=int32)>
    """
    return ops.string_add(x, y) if any_string(x, y) else ops.add(x, y)


@public_op(ops.subtract)
def subtract(x: Any, y: Any, name: str | None = None) -> Any:
    """Subtracts `y` from `x`, elementwise; integers wrap around.

    Args:
        x, y: numeric tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not numeric, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.subtract([5.0, 7.0], [1.0, 2.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([4., 5.], dtype=float32)>
    """
    return ops.subtract(x, y)


@public_op(ops.multiply)
def multiply(x: Any, y: Any, name: str | None = None) -> Any:
    """Multiplies `x` by `y`, elementwise; integers wrap around.

    Args:
        x, y: numeric tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not numeric, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.multiply([1, 2, 3], [[2], [3]])
    <tf.Tensor: shape=(2, 3), dtype=int32, numpy=
    array([[2, 4, 6],
    [3, 6, 9]], dtype=int32)>
    """
    return ops.multiply(x, y)


@public_op(ops.divide)
def divide(x: Any, y: Any, name: str | None = None) -> Any:
    """Divides `x` by `y`, elementwise, as Python's `/` does: integers give floats.

    Args:
        x, y: numeric tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape; of 8- and 16-bit integers float32, of wider ones float64.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not numeric, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.divide([7, 1], 2)
    <tf.Tensor: shape=(2,), dtype=float64, numpy=array([3.5, 0.5])>
    """
    return ops.divide(x, y)


@public_op(ops.divide)
def truediv(x: Any, y: Any, name: str | None = None) -> Any:
    """Divides `x` by `y`, elementwise, as Python's `/` does: integers give floats.

    Args:
        x, y: numeric tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape; of 8- and 16-bit integers float32, of wider ones float64.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not numeric, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.truediv(tf.constant([7, 1], tf.int8), 2)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([3.5, 0.5], dtype=float32)>
    """
    return ops.divide(x, y)


@public_op(ops.floordiv)
def floordiv(x: Any, y: Any, name: str | None = None) -> Any:
    """Divides `x` by `y`, elementwise, and rounds down, as Python's `//` does.

    Args:
        x, y: real tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not real, or shapes do not broadcast, or an integer `y`
            is 0.

    >>> import twofold as tf
    >>> tf.math.floordiv([7, -7], 2)
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([ 3, -4], dtype=int32)>
    """
    return ops.floordiv(x, y)


@public_op(ops.floormod)
def floormod(x: Any, y: Any, name: str | None = None) -> Any:
    """Remainder of `floordiv`, with the sign of `y`, as Python's `%` gives it.

    Args:
        x, y: real tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not real, or shapes do not broadcast, or an integer `y`
            is 0.

    >>> import twofold as tf
    >>> tf.math.floormod([7, -7], 3)
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>
    """
    return ops.floormod(x, y)


@public_op(ops.floormod)
def mod(x: Any, y: Any, name: str | None = None) -> Any:
    """Remainder of `floordiv`, with the sign of `y`; the same as `floormod`.

    Args:
        x, y: real tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not real, or shapes do not broadcast, or an integer `y`
            is 0.

    >>> import twofold as tf
    >>> tf.math.mod([7.5, -7.5], 2.0)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.5, 0.5], dtype=float32)>
    """
    return ops.floormod(x, y)


@public_op(ops.truncatediv)
def truncatediv(x: Any, y: Any, name: str | None = None) -> Any:
    """Divides `x` by `y`, elementwise, and rounds toward zero, as C does.

    Args:
        x, y: real tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not real, or shapes do not broadcast, or an integer `y`
            is 0.

    >>> import twofold as tf
    >>> tf.truncatediv([7, -7], 2)
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([ 3, -3], dtype=int32)>
    """
    return ops.truncatediv(x, y)


@public_op(ops.truncatemod)
def truncatemod(x: Any, y: Any, name: str | None = None) -> Any:
    """Remainder of `truncatediv`, with the sign of `x`, as C gives it.

    Args:
        x, y: real tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not real, or shapes do not broadcast, or an integer `y`
            is 0.

    >>> import twofold as tf
    >>> tf.truncatemod([7, -7], 3)
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([ 1, -1], dtype=int32)>
    """
    return ops.truncatemod(x, y)


@public_op(ops.divide_no_nan)
def divide_no_nan(x: Any, y: Any, name: str | None = None) -> Any:
    """Divides `x` by `y`, elementwise; 0 where `y` is 0, whatever `x` is there.

    Args:
        x, y: numeric tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape; of 8- and 16-bit integers float32, of wider ones float64.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not numeric, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.math.divide_no_nan([3.0, 1.0], [2.0, 0.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.5, 0. ], dtype=float32)>
    """
    return ops.divide_no_nan(x, y)


@public_op(ops.multiply_no_nan)
def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> Any:
    """Multiplies `x` by `y`, elementwise; 0 where `y` is 0, even where `x` is NaN or infinite.

    Args:
        x, y: float or complex tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not floating or complex, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.math.multiply_no_nan([3.0, float('nan')], [2.0, 0.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([6., 0.], dtype=float32)>
    """
    return ops.multiply_no_nan(x, y)


@public_op(ops.pow)
def pow(x: Any, y: Any, name: str | None = None) -> Any:
    """Raises `x` to the power of `y`, elementwise.

    NaN for a negative `x` and a fractional `y`. The gradient by `y` is 0 where `x` is not positive.

    Args:
        x, y: numeric tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not numeric, or shapes do not broadcast, or an integer
            `y` is negative.

    >>> import twofold as tf
    >>> tf.pow([2.0, 3.0], [3.0, 2.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([8., 9.], dtype=float32)>
    """
    return ops.pow(x, y)


@public_op(ops.squared_difference)
def squared_difference(x: Any, y: Any, name: str | None = None) -> Any:
    """Computes `(x - y)**2`, elementwise; of complex numbers `abs(x - y)**2`.

    Args:
        x, y: numeric tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not numeric, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.math.squared_difference([1.0, 5.0], 3.0)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([4., 4.], dtype=float32)>
    """
    return ops.squared_difference(x, y)


@public_op(ops.maximum)
def maximum(x: Any, y: Any, name: str | None = None) -> Any:
    """Larger of `x` and `y`, elementwise; NaN where either is NaN.

    The gradient goes to the larger one, to `x` where they are equal.

    Args:
        x, y: real tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not real, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.maximum([1.0, 5.0], [3.0, 2.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 5.], dtype=float32)>
    """
    return ops.maximum(x, y)


@public_op(ops.minimum)
def minimum(x: Any, y: Any, name: str | None = None) -> Any:
    """Smaller of `x` and `y`, elementwise; NaN where either is NaN.

    The gradient goes to the smaller one, to `x` where they are equal.

    Args:
        x, y: real tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not real, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.minimum([1.0, 5.0], [3.0, 2.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>
    """
    return ops.minimum(x, y)


@public_op(ops.negative)
def negative(x: Any, name: str | None = None) -> Any:
    """Negates `x`, elementwise; the most negative integer stays itself.

    Args:
        x: signed integer, float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not signed.

    >>> import twofold as tf
    >>> tf.negative([1.5, -2.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([-1.5,  2. ], dtype=float32)>
    """
    return ops.negative(x)


@public_op(ops.abs)
def abs(x: Any, name: str | None = None) -> Any:
    """Magnitude of `x`, elementwise; the most negative integer stays itself.

    Args:
        x: numeric tensor.
        name: has no effect.
    Returns:
        Tensor of the shape of `x`; of complex tensors the dtype of a part, else that of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not numeric.

    >>> import twofold as tf
    >>> tf.abs([-2, 3])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([2, 3], dtype=int32)>
    >>> tf.abs([3.0 + 4.0j])
    <tf.Tensor: shape=(1,), dtype=float64, numpy=array([5.])>
    """
    return ops.abs(x)


@public_op(ops.sign)
def sign(x: Any, name: str | None = None) -> Any:
    """Sign of `x`, elementwise: -1, 0 or 1; of complex numbers `x / abs(x)`. NaN stays NaN.

    Args:
        x: numeric tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not numeric.

    >>> import twofold as tf
    >>> tf.sign([-3.5, 0.0, 2.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([-1.,  0.,  1.], dtype=float32)>
    """
    return ops.sign(x)


@public_op(ops.square)
def square(x: Any, name: str | None = None) -> Any:
    """Multiplies `x` by itself, elementwise.

    Args:
        x: numeric tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not numeric.

    >>> import twofold as tf
    >>> tf.square([-3, 4])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([ 9, 16], dtype=int32)>
    """
    return ops.square(x)


@public_op(ops.sqrt)
def sqrt(x: Any, name: str | None = None) -> Any:
    """Square root, elementwise; NaN for negative floats.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.sqrt([4.0, 9.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 3.], dtype=float32)>
    """
    return ops.sqrt(x)


@public_op(ops.rsqrt)
def rsqrt(x: Any, name: str | None = None) -> Any:
    """Reciprocal of the square root, elementwise.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.math.rsqrt([4.0, 0.25])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.5, 2. ], dtype=float32)>
    """
    return ops.rsqrt(x)


@public_op(ops.reciprocal)
def reciprocal(x: Any, name: str | None = None) -> Any:
    """Computes `1 / x`, elementwise.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.math.reciprocal([2.0, -4.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([ 0.5 , -0.25], dtype=float32)>
    """
    return ops.reciprocal(x)


@public
def reciprocal_no_nan(x: Any, name: str | None = None) -> Any:
    """Computes `1 / x`, elementwise; 0 where `x` is 0.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.math.reciprocal_no_nan([2.0, 0.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.5, 0. ], dtype=float32)>
    """
    return ops.divide_no_nan(1, x)


@public
def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """Multiplies a tensor by a number.

    Args:
        scalar: number, or numeric tensor of rank 0 and the dtype of `x`.
        x: numeric tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        ValueError: `scalar` is not of rank 0. tf.errors.InvalidArgumentError: dtypes differ.

    >>> import twofold as tf
    >>> tf.scalar_mul(3.0, tf.constant([1.0, 2.0]))
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 6.], dtype=float32)>
    """
    x = tensor(x)
    scalar = tensor(scalar, hint=x.dtype)
    if scalar.dims:
        raise ValueError(f"scalar_mul: scalar must have rank 0; got shape {scalar.shape}.")
    return ops.multiply(scalar, x)


@public
def add_n(inputs: Any, name: str | None = None) -> Any:
    """Adds up a list of tensors, from the first to the last, without broadcasting.

    Args:
        inputs: list of numeric tensors of one dtype and shape; one tensor alone is itself.
        name: has no effect.
    Returns:
        Tensor of that dtype and shape.
    Raises:
        ValueError: the list is empty. tf.errors.InvalidArgumentError: dtypes or shapes differ.

    >>> import twofold as tf
    >>> tf.add_n([[1, 2], [3, 4], [5, 6]])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([ 9, 12], dtype=int32)>
    """
    if not isinstance(inputs, (list, tuple)):
        return ops.identity(inputs)
    if not inputs:
        raise ValueError("add_n: inputs must hold at least one tensor; got an empty list.")
    total = ops.add_n(*inputs[:_ADDED_AT_ONCE])
    for i in range(_ADDED_AT_ONCE, len(inputs), _ADDED_AT_ONCE - 1):
        total = ops.add_n(total, *inputs[i:i + _ADDED_AT_ONCE - 1])
    return total


@public
def accumulate_n(inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: str | None = None) -> Any:
    """Adds up a list of tensors, from the first to the last; the same as `add_n`.

    Args:
        inputs: list of numeric tensors of one dtype and shape.
        shape: the shape they must have; None for any.
        tensor_dtype: the dtype they must have; None for any.
        name: has no effect.
    Returns:
        Tensor of that dtype and shape.
    Raises:
        ValueError: the list is empty, or shape or dtype are not as promised. tf.errors.InvalidArgumentError: they
            differ among each other.

    >>> import twofold as tf
    >>> tf.math.accumulate_n([[1, 2], [3, 4], [5, 6]])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([ 9, 12], dtype=int32)>
    """
    total = add_n(inputs)
    if shape is not None and not total.shape.is_compatible_with(as_shape(shape)):
        raise ValueError(f"accumulate_n: inputs have shape {total.shape}; expected {as_shape(shape)}.")
    if tensor_dtype is not None and total.dtype is not dt.as_dtype(tensor_dtype):
        raise ValueError(f"accumulate_n: inputs are {total.dtype.name}; expected {dt.as_dtype(tensor_dtype).name}.")
    return total


@public
def polyval(coeffs: Any, x: Any, name: str | None = None) -> Any:
    """Value of a polynomial at `x`, elementwise, by Horner's rule.

    Args:
        coeffs: list of numbers or tensors, from the highest power down to the constant.
        x: numeric tensor.
        name: has no effect.
    Returns:
        Tensor of the dtype of `x`; zeros where there are no coefficients.
    Raises:
        ValueError: `coeffs` is not a list. tf.errors.InvalidArgumentError: dtypes differ, or shapes do not
            broadcast.

    >>> import twofold as tf
    >>> tf.math.polyval([2.0, 0.0, 1.0], [1.0, 3.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([ 3., 19.], dtype=float32)>
    """
    if not isinstance(coeffs, (list, tuple)):
        raise ValueError(f"polyval: coeffs must be a list; got {type(coeffs).__name__}.")
    x = tensor(x)
    if not coeffs:
        return zeros_like(x)
    total = tensor(coeffs[0], hint=x.dtype)
    for c in coeffs[1:]:
        total = ops.add(ops.multiply(total, x), c)
    return total

