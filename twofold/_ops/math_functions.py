"""Functions of one number of `tf.math`, under TensorFlow's names; `twofold/math.py` re-exports them.

Rounding, exponentials, trigonometry, error and gamma functions. The ops are in `ir/ops/math.py` and
`ir/ops/activations.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from twofold._front.api import public, public_op, tensor
from twofold.ir import ops
from twofold.ir.ops.math import MOST_ORDERS
from twofold.tracer.symbolic import SymbolicTensor

__all__ = ["acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "cos", "cosh", "digamma", "erf",
           "erfc", "erfcinv", "erfinv", "exp", "expm1", "floor", "lgamma", "log", "log1p", "log_sigmoid", "ndtri",
           "nextafter", "polygamma", "rint", "round", "sigmoid", "sin", "sinh", "softplus", "softsign", "tan", "tanh",
           "xdivy", "xlog1py", "xlogy"]


@public_op(ops.floor)
def floor(x: Any, name: str | None = None) -> Any:
    """Largest whole number that is not above `x`, elementwise.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.floor([1.7, -1.2])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([ 1., -2.], dtype=float32)>
    """
    return ops.floor(x)


@public_op(ops.ceil)
def ceil(x: Any, name: str | None = None) -> Any:
    """Smallest whole number that is not below `x`, elementwise.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.ceil([1.2, -1.7])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([ 2., -1.], dtype=float32)>
    """
    return ops.ceil(x)


@public_op(ops.round)
def round(x: Any, name: str | None = None) -> Any:
    """Nearest whole number, elementwise; halves go to the even one. Integers are themselves.

    Args:
        x: real tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not real.

    >>> import twofold as tf
    >>> tf.round([0.5, 1.5, -2.7])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([ 0.,  2., -3.], dtype=float32)>
    """
    return ops.round(x)


@public_op(ops.rint)
def rint(x: Any, name: str | None = None) -> Any:
    """Nearest whole number, elementwise; halves go to the even one.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.rint([0.5, 1.5, -2.7])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([ 0.,  2., -3.], dtype=float32)>
    """
    return ops.rint(x)


@public_op(ops.nextafter)
def nextafter(x1: Any, x2: Any, name: str | None = None) -> Any:
    """The float next to `x1` in the direction of `x2`, elementwise.

    Args:
        x1, x2: float32 or float64 tensors of one dtype that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are others, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.math.nextafter(1.0, 2.0).numpy().item()
    1.0000001192092896
    """
    return ops.nextafter(x1, x2)


@public_op(ops.exp)
def exp(x: Any, name: str | None = None) -> Any:
    """e to the power of `x`, elementwise.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.exp([0.0, 1.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.       , 2.7182817], dtype=float32)>
    """
    return ops.exp(x)


@public_op(ops.expm1)
def expm1(x: Any, name: str | None = None) -> Any:
    """`exp(x) - 1`, elementwise, exact for small `x` too.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.math.expm1([0.0, 1e-8])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.e+00, 1.e-08], dtype=float32)>
    """
    return ops.expm1(x)


@public_op(ops.log)
def log(x: Any, name: str | None = None) -> Any:
    """Natural logarithm, elementwise; -inf at 0, NaN for negative floats.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.math.log([1.0, 10.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 2.3025851], dtype=float32)>
    """
    return ops.log(x)


@public_op(ops.log1p)
def log1p(x: Any, name: str | None = None) -> Any:
    """`log(1 + x)`, elementwise, exact for small `x` too.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.math.log1p([0.0, 1e-8])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.e+00, 1.e-08], dtype=float32)>
    """
    return ops.log1p(x)


@public_op(ops.sigmoid)
def sigmoid(x: Any, name: str | None = None) -> Any:
    """`1 / (1 + exp(-x))`, elementwise.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.sigmoid([0.0, 2.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.5      , 0.8807971], dtype=float32)>
    """
    return ops.sigmoid(x)


@public_op(ops.log_sigmoid)
def log_sigmoid(x: Any, name: str | None = None) -> Any:
    """`log(sigmoid(x))`, elementwise, without overflow.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.log_sigmoid([0.0, -100.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([  -0.6931472, -100.       ], dtype=float32)>
    """
    return ops.log_sigmoid(x)


@public_op(ops.softplus)
def softplus(features: Any, name: str | None = None) -> Any:
    """`log(1 + exp(features))`, elementwise, without overflow.

    Args:
        features: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `features`.
    Raises:
        tf.errors.InvalidArgumentError: `features` is not floating.

    >>> import twofold as tf
    >>> tf.math.softplus([0.0, 100.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([  0.6931472, 100.       ], dtype=float32)>
    """
    return ops.softplus(features)


@public_op(ops.softsign)
def softsign(features: Any, name: str | None = None) -> Any:
    """`features / (1 + abs(features))`, elementwise.

    Args:
        features: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `features`.
    Raises:
        tf.errors.InvalidArgumentError: `features` is not floating.

    >>> import twofold as tf
    >>> tf.math.softsign([1.0, -3.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([ 0.5 , -0.75], dtype=float32)>
    """
    return ops.softsign(features)


@public_op(ops.xlogy)
def xlogy(x: Any, y: Any, name: str | None = None) -> Any:
    """`x * log(y)`, elementwise; 0 where `x` is 0.

    Args:
        x, y: float or complex tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not floating or complex, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.math.xlogy([0.0, 2.0], [0.0, 1.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0., 0.], dtype=float32)>
    """
    return ops.xlogy(x, y)


@public_op(ops.xlog1py)
def xlog1py(x: Any, y: Any, name: str | None = None) -> Any:
    """`x * log1p(y)`, elementwise; 0 where `x` is 0.

    Args:
        x, y: float or complex tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not floating or complex, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.math.xlog1py([0.0, 2.0], [-1.0, 1.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 1.3862944], dtype=float32)>
    """
    return ops.xlog1py(x, y)


@public_op(ops.xdivy)
def xdivy(x: Any, y: Any, name: str | None = None) -> Any:
    """`x / y`, elementwise; 0 where `x` is 0.

    Args:
        x, y: float or complex tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not floating or complex, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.math.xdivy([0.0, 2.0], [0.0, 4.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0. , 0.5], dtype=float32)>
    """
    return ops.xdivy(x, y)


@public_op(ops.sin)
def sin(x: Any, name: str | None = None) -> Any:
    """Sine, elementwise, of radians.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.sin([0.0, 1.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.        , 0.84147096], dtype=float32)>
    """
    return ops.sin(x)


@public_op(ops.cos)
def cos(x: Any, name: str | None = None) -> Any:
    """Cosine, elementwise, of radians.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.cos([0.0, 1.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.        , 0.54030234], dtype=float32)>
    """
    return ops.cos(x)


@public_op(ops.tan)
def tan(x: Any, name: str | None = None) -> Any:
    """Tangent, elementwise, of radians.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.tan([0.0, 1.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 1.5574077], dtype=float32)>
    """
    return ops.tan(x)


@public_op(ops.asin)
def asin(x: Any, name: str | None = None) -> Any:
    """Inverse sine, elementwise, in radians; NaN for floats beyond -1 and 1.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.asin([0.0, 1.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 1.5707964], dtype=float32)>
    """
    return ops.asin(x)


@public_op(ops.acos)
def acos(x: Any, name: str | None = None) -> Any:
    """Inverse cosine, elementwise, in radians; NaN for floats beyond -1 and 1.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.acos([0.0, 1.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.5707964, 0.       ], dtype=float32)>
    """
    return ops.acos(x)


@public_op(ops.atan)
def atan(x: Any, name: str | None = None) -> Any:
    """Inverse tangent, elementwise, in radians.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.atan([0.0, 1.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 0.7853982], dtype=float32)>
    """
    return ops.atan(x)


@public_op(ops.atan2)
def atan2(y: Any, x: Any, name: str | None = None) -> Any:
    """Angle of the point (x, y) seen from the origin, elementwise, between -pi and pi.

    The gradient at the origin is 0.

    Args:
        y, x: float tensors of one dtype (a Python number adopts it) that broadcast together.
        name: has no effect.
    Returns:
        Tensor of that dtype and the broadcast shape.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are not floating, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.atan2([1.0, -1.0], [1.0, 0.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([ 0.7853982, -1.5707964], dtype=float32)>
    """
    return ops.atan2(y, x)


@public_op(ops.sinh)
def sinh(x: Any, name: str | None = None) -> Any:
    """Hyperbolic sine, elementwise.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.sinh([0.0, 1.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 1.1752012], dtype=float32)>
    """
    return ops.sinh(x)


@public_op(ops.cosh)
def cosh(x: Any, name: str | None = None) -> Any:
    """Hyperbolic cosine, elementwise.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.cosh([0.0, 1.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.       , 1.5430806], dtype=float32)>
    """
    return ops.cosh(x)


@public_op(ops.tanh)
def tanh(x: Any, name: str | None = None) -> Any:
    """Hyperbolic tangent, elementwise.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.tanh([0.0, 1.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 0.7615942], dtype=float32)>
    """
    return ops.tanh(x)


@public_op(ops.asinh)
def asinh(x: Any, name: str | None = None) -> Any:
    """Inverse hyperbolic sine, elementwise.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.asinh([0.0, 1.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 0.8813736], dtype=float32)>
    """
    return ops.asinh(x)


@public_op(ops.acosh)
def acosh(x: Any, name: str | None = None) -> Any:
    """Inverse hyperbolic cosine, elementwise; NaN for floats below 1.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.acosh([1.0, 2.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.      , 1.316958], dtype=float32)>
    """
    return ops.acosh(x)


@public_op(ops.atanh)
def atanh(x: Any, name: str | None = None) -> Any:
    """Inverse hyperbolic tangent, elementwise; infinite at -1 and 1, NaN for floats beyond.

    Args:
        x: float or complex tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating or complex.

    >>> import twofold as tf
    >>> tf.atanh([0.0, 0.5])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.        , 0.54930615], dtype=float32)>
    """
    return ops.atanh(x)


@public_op(ops.erf)
def erf(x: Any, name: str | None = None) -> Any:
    """Error function, elementwise: the integral of `2/sqrt(pi) * exp(-t**2)` from 0 to `x`.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.erf([0.0, 1.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 0.8427008], dtype=float32)>
    """
    return ops.erf(x)


@public_op(ops.erfc)
def erfc(x: Any, name: str | None = None) -> Any:
    """`1 - erf(x)`, elementwise, exact where that is small.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.erfc([0.0, 5.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.0000000e+00, 1.5374598e-12], dtype=float32)>
    """
    return ops.erfc(x)


@public_op(ops.erfinv)
def erfinv(x: Any, name: str | None = None) -> Any:
    """The number whose `erf` is `x`, elementwise; NaN beyond -1 and 1.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.erfinv([0.0, 0.5])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.        , 0.47693628], dtype=float32)>
    """
    return ops.erfinv(x)


@public
def erfcinv(x: Any, name: str | None = None) -> Any:
    """The number whose `erfc` is `x`, elementwise; NaN below 0 and beyond 2.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.erfcinv([0.5, 1.5])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([ 0.47693625, -0.47693625], dtype=float32)>
    """
    return ops.multiply(ops.ndtri(ops.multiply(x, 0.5)), -math.sqrt(0.5))


@public_op(ops.ndtri)
def ndtri(x: Any, name: str | None = None) -> Any:
    """The number that a standard normal variable stays below with probability `x`, elementwise.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.ndtri([0.5, 0.975])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 1.9599644], dtype=float32)>
    """
    return ops.ndtri(x)


@public_op(ops.lgamma)
def lgamma(x: Any, name: str | None = None) -> Any:
    """Logarithm of the magnitude of the gamma function, elementwise; infinite at 0, -1, -2, ...

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.lgamma([1.0, 5.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 3.1780539], dtype=float32)>
    """
    return ops.lgamma(x)


@public_op(ops.digamma)
def digamma(x: Any, name: str | None = None) -> Any:
    """Derivative of `lgamma`, elementwise; NaN at -1, -2, ...

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.digamma([1.0, 2.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([-0.5772157 ,  0.42278433], dtype=float32)>
    """
    return ops.digamma(x)


def _is_order(number: float) -> bool:
    """Whether there is a derivative of this number."""
    return number == number and 0 <= number <= MOST_ORDERS and number == int(number)


@public
def polygamma(a: Any, x: Any, name: str | None = None) -> Any:
    """Derivative number `a` of `digamma`, elementwise.

    Infinite or NaN at 0, -1, -2, ...

    Args:
        a: which derivative: a whole number from 0 to 170; or a tensor of them, whose elements that are none give NaN.
            Not differentiable.
        x: float tensor, of the dtype of `a` if that is a tensor, and of a shape that broadcasts with it.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`, broadcast with `a`.
    Raises:
        ValueError: `a` is one number, but not one of these.
        tf.errors.InvalidArgumentError: `x` is not floating, dtypes differ, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.math.polygamma(1, [1.0, 2.0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.644934  , 0.64493406], dtype=float32)>
    """
    order = a
    if not isinstance(a, (int, float, np.integer, np.floating)):
        orders = tensor(a, hint=getattr(x, "dtype", None))
        x = tensor(x, hint=orders.dtype)
        if orders.dims or isinstance(orders, SymbolicTensor) or orders.dtype is not x.dtype:
            return ops.polygamma_of(orders, x)
        order = orders.numpy().item()
        if not _is_order(order):
            return ops.polygamma_of(orders, x)  # NaN, as in a compiled function
    if not _is_order(order):
        raise ValueError(f"polygamma: a must be a whole number from 0 to {MOST_ORDERS}; got {order}.")
    return ops.digamma(x) if order == 0 else ops.polygamma(x, order=int(order))

