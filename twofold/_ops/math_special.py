"""Special functions of `tf.math` and `tf.math.special`; `twofold/math.py` re-exports them.

Bessel functions, integrals without a closed form, incomplete gamma and beta functions, Hurwitz' zeta function. The ops
are in `ir/ops/special.py`.
"""

from __future__ import annotations

from typing import Any

from twofold._front.api import public, public_op
from twofold.ir import ops

__all__ = ["bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "bessel_j0", "bessel_j1", "bessel_k0", "bessel_k0e",
           "bessel_k1", "bessel_k1e", "bessel_y0", "bessel_y1", "betainc", "dawsn", "expint", "fresnel_cos",
           "fresnel_sin", "igamma", "igammac", "spence", "zeta"]


@public_op(ops.bessel_i0)
def bessel_i0(x: Any, name: str | None = None) -> Any:
    """The modified Bessel function of the first kind, of order 0, elementwise.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.special.bessel_i0([0.5, 1.0, 2.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([1.0634834, 1.2660658, 2.2795854], dtype=float32)>
    """
    return ops.bessel_i0(x)


@public_op(ops.bessel_i0e)
def bessel_i0e(x: Any, name: str | None = None) -> Any:
    """`exp(-abs(x)) * bessel_i0(x)`, elementwise, which does not overflow.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.special.bessel_i0e([0.5, 1.0, 100.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([0.64503527, 0.4657596 , 0.03994438], dtype=float32)>
    """
    return ops.bessel_i0e(x)


@public_op(ops.bessel_i1)
def bessel_i1(x: Any, name: str | None = None) -> Any:
    """The modified Bessel function of the first kind, of order 1, elementwise.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.special.bessel_i1([0.5, 1.0, 2.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([0.2578943, 0.5651591, 1.5906368], dtype=float32)>
    """
    return ops.bessel_i1(x)


@public_op(ops.bessel_i1e)
def bessel_i1e(x: Any, name: str | None = None) -> Any:
    """`exp(-abs(x)) * bessel_i1(x)`, elementwise, which does not overflow.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.special.bessel_i1e([0.5, 1.0, 100.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([0.1564208 , 0.20791042, 0.03974415], dtype=float32)>
    """
    return ops.bessel_i1e(x)


@public_op(ops.bessel_k0)
def bessel_k0(x: Any, name: str | None = None) -> Any:
    """The modified Bessel function of the second kind, of order 0, elementwise.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`; infinite where `x` is not above 0.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.special.bessel_k0([0.5, 1.0, 2.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([0.92441905, 0.42102444, 0.11389387], dtype=float32)>
    """
    return ops.bessel_k0(x)


@public_op(ops.bessel_k0e)
def bessel_k0e(x: Any, name: str | None = None) -> Any:
    """`exp(x) * bessel_k0(x)`, elementwise, which does not vanish.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`; infinite where `x` is not above 0.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.special.bessel_k0e([0.5, 1.0, 100.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([1.5241094 , 1.1444631 , 0.12517563], dtype=float32)>
    """
    return ops.bessel_k0e(x)


@public_op(ops.bessel_k1)
def bessel_k1(x: Any, name: str | None = None) -> Any:
    """The modified Bessel function of the second kind, of order 1, elementwise.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`; infinite where `x` is not above 0.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.special.bessel_k1([0.5, 1.0, 2.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([1.6564411 , 0.60190725, 0.13986588], dtype=float32)>
    """
    return ops.bessel_k1(x)


@public_op(ops.bessel_k1e)
def bessel_k1e(x: Any, name: str | None = None) -> Any:
    """`exp(x) * bessel_k1(x)`, elementwise, which does not vanish.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`; infinite where `x` is not above 0.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.special.bessel_k1e([0.5, 1.0, 100.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([2.7310097 , 1.6361535 , 0.12579995], dtype=float32)>
    """
    return ops.bessel_k1e(x)


@public_op(ops.bessel_j0)
def bessel_j0(x: Any, name: str | None = None) -> Any:
    """The Bessel function of the first kind, of order 0, elementwise.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.special.bessel_j0([0.5, 1.0, 2.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([0.9384698 , 0.7651977 , 0.22389078], dtype=float32)>
    """
    return ops.bessel_j0(x)


@public_op(ops.bessel_j1)
def bessel_j1(x: Any, name: str | None = None) -> Any:
    """The Bessel function of the first kind, of order 1, elementwise.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.special.bessel_j1([0.5, 1.0, 2.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([0.24226846, 0.44005057, 0.5767248 ], dtype=float32)>
    """
    return ops.bessel_j1(x)


@public_op(ops.bessel_y0)
def bessel_y0(x: Any, name: str | None = None) -> Any:
    """The Bessel function of the second kind, of order 0, elementwise.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`; `-inf` where `x` is not above 0.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.special.bessel_y0([0.5, 1.0, 2.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([-0.44451874,  0.08825696,  0.5103757 ], dtype=float32)>
    """
    return ops.bessel_y0(x)


@public_op(ops.bessel_y1)
def bessel_y1(x: Any, name: str | None = None) -> Any:
    """The Bessel function of the second kind, of order 1, elementwise.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`; `-inf` where `x` is not above 0.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.special.bessel_y1([0.5, 1.0, 2.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([-1.4714724 , -0.7812128 , -0.10703243], dtype=float32)>
    """
    return ops.bessel_y1(x)


@public_op(ops.dawsn)
def dawsn(x: Any, name: str | None = None) -> Any:
    """Dawson's integral, elementwise: `exp(-x**2)` times the integral of `exp(t**2)` from 0 to `x`.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.special.dawsn([0.5, 1.0, 2.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([0.4244364, 0.5380795, 0.3013404], dtype=float32)>
    """
    return ops.dawsn(x)


@public_op(ops.expint)
def expint(x: Any, name: str | None = None) -> Any:
    """The exponential integral Ei, elementwise: that of `exp(t) / t` from minus infinity to `x`.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`; `-inf` at 0, NaN below it.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.special.expint([0.5, 1.0, 2.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([0.4542199, 1.8951178, 4.954234 ], dtype=float32)>
    """
    return ops.expint(x)


@public_op(ops.fresnel_cos)
def fresnel_cos(x: Any, name: str | None = None) -> Any:
    """Fresnel's cosine integral, elementwise: that of `cos(pi * t**2 / 2)` from 0 to `x`.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.special.fresnel_cos([0.5, 1.0, 2.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([0.49234423, 0.7798934 , 0.4882534 ], dtype=float32)>
    """
    return ops.fresnel_cos(x)


@public_op(ops.fresnel_sin)
def fresnel_sin(x: Any, name: str | None = None) -> Any:
    """Fresnel's sine integral, elementwise: that of `sin(pi * t**2 / 2)` from 0 to `x`.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.special.fresnel_sin([0.5, 1.0, 2.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([0.06473243, 0.43825915, 0.34341568], dtype=float32)>
    """
    return ops.fresnel_sin(x)


@public_op(ops.spence)
def spence(x: Any, name: str | None = None) -> Any:
    """Spence's integral, elementwise: that of `log(t) / (1 - t)` from 1 to `x`.

    Args:
        x: float tensor.
        name: has no effect.
    Returns:
        Tensor of the shape and dtype of `x`; NaN where `x` is below 0.
    Raises:
        tf.errors.InvalidArgumentError: `x` is not floating.

    >>> import twofold as tf
    >>> tf.math.special.spence([0.5, 1.0, 2.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([ 0.5822405,  0.       , -0.822467 ], dtype=float32)>
    """
    return ops.spence(x)


@public_op(ops.igamma)
def igamma(a: Any, x: Any, name: str | None = None) -> Any:
    """The regularised lower incomplete gamma function `P(a, x)`, elementwise.

    It is differentiable by both operands.

    Args:
        a: the parameter: float32 or float64 tensor, above 0.
        x: the upper limit of the integral of `t**(a - 1) * exp(-t)`, of the dtype of `a`; from 0 on.
        name: has no effect.
    Returns:
        Tensor of the dtype of the operands and the shape to which they broadcast; NaN where there is none.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are neither float32 nor float64, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.math.igamma([0.5, 1.0, 2.0], [0.5, 1.0, 2.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([0.6826895 , 0.63212055, 0.59399414], dtype=float32)>
    """
    return ops.igamma(a, x)


@public_op(ops.igammac)
def igammac(a: Any, x: Any, name: str | None = None) -> Any:
    """The regularised upper incomplete gamma function `Q(a, x) = 1 - P(a, x)`, elementwise.

    It is differentiable by both operands.

    Args:
        a: the parameter: float32 or float64 tensor, above 0.
        x: the lower limit of the integral of `t**(a - 1) * exp(-t)`, of the dtype of `a`; from 0 on.
        name: has no effect.
    Returns:
        Tensor of the dtype of the operands and the shape to which they broadcast; NaN where there is none.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are neither float32 nor float64, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.math.igammac([0.5, 1.0, 2.0], [0.5, 1.0, 2.0])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([0.3173105 , 0.36787945, 0.40600586], dtype=float32)>
    """
    return ops.igammac(a, x)


@public
def betainc(a: Any, b: Any, x: Any, name: str | None = None) -> Any:
    """The regularised incomplete beta function `I_x(a, b)`, elementwise.

    It is differentiable by `x` alone, as in TensorFlow.

    Args:
        a, b: the parameters: float32 or float64 tensors, above 0 and finite.
        x: the upper limit of the integral of `t**(a - 1) * (1 - t)**(b - 1)`, of their dtype; from 0 to 1.
        name: has no effect.
    Returns:
        Tensor of the dtype of the operands and the shape to which they broadcast; NaN where there is none.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are neither float32 nor float64, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.math.betainc([0.5, 1.0, 2.0], [1.0, 1.0, 3.0], [0.25, 0.5, 0.5])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([0.5   , 0.5   , 0.6875], dtype=float32)>
    """
    return ops.betainc(a, b, x)


@public_op(ops.zeta)
def zeta(x: Any, q: Any, name: str | None = None) -> Any:
    """Hurwitz' zeta function, elementwise: the sum of `(q + k)**-x` over all `k >= 0`.

    It is differentiable by `q` alone, as in TensorFlow.

    Args:
        x: float32 or float64 tensor, above 1; at 1 the sum is infinite.
        q: of the dtype of `x`; above 0, or below it and not whole, for whole `x`.
        name: has no effect.
    Returns:
        Tensor of the dtype of the operands and the shape to which they broadcast; NaN where there is none.
    Raises:
        tf.errors.InvalidArgumentError: dtypes differ or are neither float32 nor float64, or shapes do not broadcast.

    >>> import twofold as tf
    >>> tf.math.zeta([2.0, 3.0, 2.0], [1.0, 1.0, 0.5])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([1.644934 , 1.2020569, 4.934802 ], dtype=float32)>
    """
    return ops.zeta(x, q)
