"""The standard normal distribution function, and the two activations that are a number times a probability.

gelu is `x * P(X <= x)`, silu `x * sigmoid(x)`. Far to the left both are products of a tiny probability, which
underflows before the product does, so the power of two is put on last. The distribution function comes from
`erfc`, never from `1 + erf`, which cancels there, and from the square of `x` as a double word, because exp
multiplies an error of its argument by the argument. Bodies take real values. Sources: the definitions, DLMF 7.2
(https://dlmf.nist.gov/7.2) and Hendrycks & Gimpel, "Gaussian Error Linear Units" (2016).
"""

from __future__ import annotations

import math

from . import dtypes as dt
from .instructions import InstructionBuilder, Scalar
from .math_core import Double, poly, pow2, scale, two_product
from .math_erf import erf_inner, erfc_over_exp
from .math_exp import SIGMOID_LOW, clamp, exp_double, sigmoid_parts

__all__ = ["gelu", "gelu_slope", "silu", "silu_slope"]

_INV_ROOT_2PI = 1 / math.sqrt(2 * math.pi)
# (P(X <= x) - 1/2) / x in x**2 on [0, 1]: 2**-25.1, as near as float32 comes to 1/sqrt(2 pi)
_CENTRE = (0.3989423, -0.06649092, 0.00997768, -0.0011983123, 0.00012699996, -1.3004332e-05)
# exp(x**2 / 2) * P(X <= -x) / t in t = 1 / (1 + 3/8 x), for x in [1, 15]: 2**-28.6
_RATIO = (0.14959961, 0.14971396, 0.12716104, 0.09653272, -0.012189204, 0.10864223, -0.25710922, 0.18312585,
          -0.04550318)
# Beyond these, x * P(X <= -x) is below half the smallest number.
_FAR = {dt.float32: 15.0, dt.float64: 39.0}


def _tail(s: InstructionBuilder, x: Scalar) -> tuple[Double, Scalar, Scalar]:
    """((e, e_low), r, k) with exp(-x**2 / 2) = (e + e_low) * 2**k and P(X <= -|x|) = e * r * 2**k.

    For float32 and |x| < 1, r does not count: `_centre` is nearer there.
    """
    size = clamp(s, s.abs(x), 0.0, _FAR[x.dtype])
    y, y_low = two_product(s, size, size * -0.5)
    e, k = exp_double(s, (y, y_low))
    if x.dtype is dt.float32:
        t = 1.0 / s.fma(size, 0.375, 1.0)
        return e, t * poly(s, t, _RATIO), k
    z = size * math.sqrt(0.5)
    # below 1/2 the quotient is P / e, with P from the power series
    near = (0.5 - 0.5 * erf_inner(s, z)) / (e[0] * pow2(s, s.maximum(k, -2), x.dtype))
    return e, s.select(s.lt(z, 0.5), near, 0.5 * erfc_over_exp(s, z)), k


def _centre(s: InstructionBuilder, x: Scalar) -> Scalar:
    """P(X <= x) for |x| < 1, float32."""
    return s.fma(x, poly(s, x * x, _CENTRE), 0.5)


def _limits(s: InstructionBuilder, x: Scalar, value: Scalar, right: Scalar | float) -> Scalar:
    """`value` where the exponential counts; else 0 on the left, `right` on the right, NaN for NaN and -inf."""
    far = s.select(s.lt(x, 0.0), x * 0.0, s.select(s.isnan(x), x, right))
    return s.select(s.lt(s.abs(x), _FAR[x.dtype]), value, far)


def gelu(s: InstructionBuilder, x: Scalar) -> Scalar:
    """x times the probability that a standard normal variable stays below it."""
    (e, e_low), r, k = _tail(s, x)
    left = scale(s, x * s.fma(e_low, r, e * r), k)
    right = s.fma(-x, e * r * pow2(s, s.maximum(k, _floor(x)), x.dtype), x)
    value = s.select(s.lt(x, 0.0), left, right)
    if x.dtype is dt.float32:
        value = s.select(s.lt(s.abs(x), 1.0), x * _centre(s, x), value)
    return _limits(s, x, value, x)


def gelu_slope(s: InstructionBuilder, x: Scalar) -> Scalar:
    """The derivative of gelu: the probability, and x times the density."""
    (e, _), r, k = _tail(s, x)
    power = pow2(s, s.maximum(k, _floor(x)), x.dtype)
    left = scale(s, e * s.fma(x, _INV_ROOT_2PI, r), k)
    right = s.fma(e * s.fma(x, _INV_ROOT_2PI, -r), power, 1.0)
    value = s.select(s.lt(x, 0.0), left, right)
    if x.dtype is dt.float32:
        density = e * power * _INV_ROOT_2PI
        value = s.select(s.lt(s.abs(x), 1.0), s.fma(x, density, _centre(s, x)), value)
    return _limits(s, x, value, 1.0)


def _floor(x: Scalar) -> int:
    """An exponent at which a term no longer counts beside 1."""
    return -100 if x.dtype is dt.float32 else -1000


def silu(s: InstructionBuilder, x: Scalar) -> Scalar:
    """x / (1 + e**-x)."""
    q, k = sigmoid_parts(s, x)
    return s.select(s.lt(x, SIGMOID_LOW[x.dtype]), x * 0.0, scale(s, x * q, k))


def silu_slope(s: InstructionBuilder, x: Scalar) -> Scalar:
    """The derivative of silu, p * (1 + x * (1 - p)) with p = sigmoid(x)."""
    q, k = sigmoid_parts(s, x)
    rest = 1.0 - q * pow2(s, s.maximum(k, _floor(x)), x.dtype)
    # far to the right the rest is 0, and infinity times 0 no number
    near = s.select(s.gt(x, -SIGMOID_LOW[x.dtype]), 0.0, x)
    value = scale(s, q * s.fma(near, rest, 1.0), k)
    return s.select(s.lt(x, SIGMOID_LOW[x.dtype]), x * 0.0, value)
