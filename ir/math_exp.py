"""Exponentials and what is made of them: exp, exp2, expm1, the hyperbolic and the logistic functions.

All are native in the type of their argument: x = k*ln2 + r with |r| <= ln2/2, a polynomial for exp(r),
and 2**k put together from bits. Bodies take real values; `ir/math_complex.py` owns the complex ones.
Accuracies are the largest errors that tests/ir/test_scalar_math.py sees; its table holds the bounds.
"""

from __future__ import annotations

import math

from . import dtypes as dt
from .instructions import InstructionBuilder, Scalar
from .math_core import Double, divide_double, fast_two_sum, format_of, poly, pow2, round_scaled, scale, two_sum

__all__ = ["exp", "exp2", "expm1", "sinh", "cosh", "tanh", "sigmoid", "softplus", "log_sigmoid"]

# (high, low) with high + low = ln 2 to twice the precision
_LN2 = {dt.float32: (0.6931472, -1.9046542e-09), dt.float64: (math.log(2.0), 2.3190468138462996e-17)}
# (exp(r) - 1 - r) / r**2 on |r| <= 0.3468, relative to exp(r): 2**-28.2 and 2**-63.6
_EXP = {
    dt.float32: (0.49999994, 0.16666517, 0.041668102, 0.008369203, 0.0013839084),
    dt.float64: (0.5, 0.16666666666666688, 0.041666666666666824, 0.008333333333313894, 0.00138888888887784,
                 0.00019841269903357364, 2.48015875568249e-05, 2.755722870505879e-06, 2.755707129877331e-07,
                 2.5113922018665325e-08, 2.0976159466610242e-09),
}
# the same relative to exp(r) - 1: 2**-28.2 and 2**-61.6
_EXPM1 = {
    dt.float32: (0.5, 0.16666636, 0.04166651, 0.008341511, 0.001393054, 0.0001504492),
    dt.float64: (0.5, 0.16666666666666677, 0.041666666666666685, 0.008333333333321806, 0.001388888888889449,
                 0.00019841269885312242, 2.4801587275992504e-05, 2.7557245179244975e-06, 2.7557333086182175e-07,
                 2.510867965453759e-08, 2.0892554998510145e-09),
}
# (2**r - 1) / r on |r| <= 0.5: 2**-32.5 and 2**-57.7
_EXP2 = {
    dt.float32: (0.6931472, 0.2402265, 0.05550405, 0.009618088, 0.0013337967, 0.00015451715, 1.4322701e-05),
    dt.float64: (0.6931471805599453, 0.24022650695909997, 0.05550410866482376, 0.009618129107670757,
                 0.0013333558145900253, 0.00015403530315092015, 1.5252734317967517e-05, 1.321554995179247e-06,
                 1.0177863369104599e-07, 7.031806147131201e-09, 4.484269430066313e-10, 5.711256073770324e-11),
}
# (tanh(x)/x - 1) / x**2 in x**2 on [0, 1]: 2**-27.7
_TANH = (-0.33333296, 0.13332346, -0.053879846, 0.021486672, -0.007945991, 0.002301193, -0.00035838006)
# (sinh(x)/x - 1) / x**2 in x**2 on [0, 1]: 2**-31.6 and 2**-61.8
_SINH = {
    dt.float32: (0.16666667, 0.0083333105, 0.00019842896, 2.7822132e-06),
    dt.float64: (0.16666666666666669, 0.008333333333332912, 0.00019841269841593402, 2.755731910676249e-06,
                 2.505213099720165e-08, 1.605665933677875e-10, 7.776593398331177e-13),
}
# (2*atanh(t)/t - 2) / t**2 in t**2 on [0, 1/9], error times t**2: 2**-32 and 2**-63.5
_ATANH = {
    dt.float32: (0.66666675, 0.3999895, 0.28615215, 0.21443816, 0.24245657),
    dt.float64: (0.6666666666666667, 0.3999999999999536, 0.2857142857233887, 0.22222222136518105, 0.18181822779346118,
                 0.15384462206665292, 0.13336643902109108, 0.11717604851145699, 0.10961996414394448,
                 0.0703264425708819, 0.16407111337984107),
}
# (exp(r) - 1 - r) / r**2 on |r| <= 0.3468 in float64, for results rounded to float32: 2**-32.6
_EXP_SHORT = (0.5000000067826887, 0.16666663833441356, 0.04166628606328906,
              0.008333677687166032, 0.0013946029385682106, 0.00019811491078429146)
# Beyond these exp is 0 (or below half the smallest number) and infinite.
EXP_RANGE = {dt.float32: (-104.0, 89.0), dt.float64: (-746.0, 710.0)}
# Below these x * sigmoid(x) is below half the smallest number.
SIGMOID_LOW = {dt.float32: -109.0, dt.float64: -753.0}


def clamp(s: InstructionBuilder, x: Scalar, low: float, high: float) -> Scalar:
    """x within [low, high]; NaN stays NaN."""
    x = s.select(s.lt(x, low), low, x)
    return s.select(s.gt(x, high), high, x)


def reduce_exp(s: InstructionBuilder, x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """(r, r_low, k) with x = k*ln2 + r + r_low, k a signed integer."""
    high, low = _LN2[x.dtype]
    k, k_int = round_scaled(s, x, 1.0 / math.log(2.0))
    first = s.fma(k, -high, x)  # exact
    tail = k * low
    r = first - tail
    return r, (first - r) - tail, k_int


def exp_parts(s: InstructionBuilder, x: Scalar) -> tuple[Double, Scalar]:
    """((h, l), k) with exp(x) = (h + l) * 2**k, h in [0.7, 1.42]; x must be within the range of exp."""
    high, low = _LN2[x.dtype]
    k, k_int = round_scaled(s, x, 1.0 / math.log(2.0))
    first = s.fma(k, -high, x)  # exact, so adding it last leaves one rounding for r and exp(r) - 1 together
    r = s.fma(k, -low, first)
    p = first + s.fma(k, -low, r * r * poly(s, r, _EXP[x.dtype]))
    return fast_two_sum(s, s.const(1.0, x.dtype), p), k_int


def exp_double(s: InstructionBuilder, x: Double) -> tuple[Double, Scalar]:
    """As exp_parts for a double word, h rounded almost correctly."""
    r, r_low, k = reduce_exp(s, x[0])
    r, r_low = two_sum(s, r, r_low + x[1])
    p, p_low = fast_two_sum(s, r, s.fma(r * r, poly(s, r, _EXP[r.dtype]), r_low))
    h, low = fast_two_sum(s, s.const(1.0, r.dtype), p)
    return fast_two_sum(s, h, low + p_low), k


def exp_short(s: InstructionBuilder, x: Scalar) -> Scalar:
    """exp(x) in float64 to a relative error of 2**-32, 0 and infinity far beyond the range of float32."""
    x = clamp(s, x, -200.0, 200.0)
    k, k_int = round_scaled(s, x, 1.0 / math.log(2.0))
    r = s.fma(k, -math.log(2.0), x)
    return s.fma(r * r, poly(s, r, _EXP_SHORT), r + 1.0) * pow2(s, k_int, x.dtype)


def exp(s: InstructionBuilder, x: Scalar) -> Scalar:
    """e**x."""
    low, high = EXP_RANGE[x.dtype]
    (h, _), k = exp_parts(s, clamp(s, x, low, high))
    # Where masks made x so low, vector units leave lanes out that would be slow: the product is too small for a number.
    return s.select(s.lt(x, low), 0.0, scale(s, h, k))


def exp2(s: InstructionBuilder, x: Scalar) -> Scalar:
    """2**x; exact for integers."""
    bias = format_of(x).bias
    x = clamp(s, x, -bias - 53.0, bias + 2.0)
    k, k_int = round_scaled(s, x, 1.0)
    r = x - k
    return scale(s, s.fma(r, poly(s, r, _EXP2[x.dtype]), 1.0), k_int)


def _expm1_double(s: InstructionBuilder, x: Scalar) -> tuple[Double, Scalar]:
    """((h, l), k) with expm1(x) = (h + l) * 2**k, for -40 <= x within the range of exp."""
    r, r_low, k = reduce_exp(s, x)
    p, p_low = fast_two_sum(s, r, s.fma(r * r, poly(s, r, _EXPM1[x.dtype]), r_low))
    # (1 + p) * 2**k - 1 = (p + (1 - 2**-k)) * 2**k
    inverse = pow2(s, s.maximum(-k, 1 - format_of(x).bias), x.dtype)
    offset, offset_low = fast_two_sum(s, s.const(1.0, x.dtype), -inverse)
    h, low = fast_two_sum(s, offset, p)
    return (h, low + (p_low + offset_low)), k


def expm1(s: InstructionBuilder, x: Scalar) -> Scalar:
    """e**x - 1 without cancellation near 0."""
    (h, low), k = _expm1_double(s, clamp(s, x, -40.0, EXP_RANGE[x.dtype][1]))
    return s.copysign(scale(s, h + low, k), x)


def _half_exp(s: InstructionBuilder, x: Scalar) -> Scalar:
    """exp(x)/2 for x >= 0, finite a little beyond the overflow of exp."""
    (h, _), k = exp_parts(s, clamp(s, x, 0.0, EXP_RANGE[x.dtype][1] + 1.0))
    return scale(s, h, k - 1)


def cosh(s: InstructionBuilder, x: Scalar) -> Scalar:
    """(e**x + e**-x) / 2."""
    half = _half_exp(s, s.abs(x))
    return half + 0.25 / half


def sinh(s: InstructionBuilder, x: Scalar) -> Scalar:
    """(e**x - e**-x) / 2: an odd polynomial below 1, the definition above."""
    half = _half_exp(s, s.abs(x))
    y = x * x
    small = s.fma(x * y, poly(s, y, _SINH[x.dtype]), x)
    return s.select(s.lt(s.abs(x), 1.0), small, s.copysign(half - 0.25 / half, x))


def tanh(s: InstructionBuilder, x: Scalar) -> Scalar:
    """Hyperbolic tangent: t/(t + 2) with t = expm1(2|x|); float32 below 1 by a polynomial, above by exp."""
    size = s.abs(x)
    if x.dtype is dt.float64:
        (h, low), k = _expm1_double(s, clamp(s, size + size, 0.0, 40.0))
        power = pow2(s, k, x.dtype)
        t, t_low = h * power, low * power
        den, den_low = two_sum(s, t, s.const(2.0, x.dtype))
        return s.copysign(divide_double(s, (t, t_low), (den, den_low + t_low)), x)
    y = x * x
    small = s.fma(x * y, poly(s, y, _TANH), x)
    (h, _), k = exp_parts(s, clamp(s, size + size, 0.0, 20.0))
    large = 1.0 - 2.0 / s.fma(h, pow2(s, k, x.dtype), 1.0)
    return s.copysign(s.select(s.lt(size, 1.0), small, large), x)


def sigmoid_parts(s: InstructionBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """(q, k) with q * 2**k = 1 / (1 + e**-x), from e = exp(-|x|) as a double word and one corrected division."""
    (h, low), k = exp_parts(s, clamp(s, -s.abs(x), SIGMOID_LOW[x.dtype], 0.0))
    # 2**k is normal except where e no longer counts beside 1
    power = pow2(s, s.maximum(k, 1 - format_of(x).bias), x.dtype)
    den, den_low = fast_two_sum(s, s.const(1.0, x.dtype), h * power)
    positive = s.ge(x, 0.0)
    num = s.select(positive, 1.0, h), s.select(positive, 0.0, low)
    q = divide_double(s, num, (den, s.fma(low, power, den_low)))
    return q, s.select(positive, s.const(0, k.dtype), k)


def sigmoid(s: InstructionBuilder, x: Scalar) -> Scalar:
    """1 / (1 + e**-x)."""
    return scale(s, *sigmoid_parts(s, x))


def softplus(s: InstructionBuilder, x: Scalar) -> Scalar:
    """log(1 + e**x) = max(x, 0) + log1p(exp(-|x|))."""
    e = exp(s, -s.abs(x))
    # log1p(e) = 2 atanh(t) with t = e/(2 + e); 2t = e - t*e
    t = e / (e + 2.0)
    w = t * t
    log1p = s.fma(-t, s.fma(-w, poly(s, w, _ATANH[x.dtype]), e), e)
    return s.maximum(x, 0.0) + log1p


def log_sigmoid(s: InstructionBuilder, x: Scalar) -> Scalar:
    """log(sigmoid(x)) = -softplus(-x)."""
    return -softplus(s, -x)
