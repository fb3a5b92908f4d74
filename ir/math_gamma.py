"""The gamma function's logarithm and that logarithm's derivative.

float32 is computed in float64 and rounded once. Near zeros of the functions other than 1 and 2 (of
lgamma) and 1.4616... (of digamma) the error is small beside the terms that cancel, not beside the
result. Sources: reflection, recurrence and Stirling's series, DLMF sections 5.5 and 5.11
(https://dlmf.nist.gov/5); polynomials between. Bodies take real values.
"""

from __future__ import annotations

import math

from .instructions import InstructionBuilder, Scalar
from .math_core import Double, fast_two_sum, pick, poly, through_double, two_product, two_sum
from .math_log import log, log_double
from .math_trig import PI, cos_kernel, sin_kernel

__all__ = ["digamma", "lgamma"]

# Where Stirling's series takes over.
_LARGE = 8.0
# lgamma(2 + v)/v on |v| <= 1/2: 2**-55.8
_LGAMMA = (0.42278433509846713, 0.32246703342411337, -0.06735230105319495, 0.020580808427755073, -0.007385551029000953,
           0.002890510332425739, -0.0011927538986708497, 0.0005096694810828897, -0.00022315501755535675,
           9.945812255644047e-05, -4.4923356704283776e-05, 2.0502259794807664e-05, -9.458171863797202e-06,
           4.398777339082282e-06, -1.9693674209612296e-06, 8.885048145613575e-07, -5.863659109890104e-07,
           3.0786234960337116e-07)
# (lgamma(x) - (x - 1/2) log(x) + x - log(2 pi)/2) * x in 1/x**2 for x >= 8, error over 8x: 2**-67.5
_STIRLING = (0.08333333333333333, -0.002777777777766725, 0.0007936507860018387, -0.0005952357540396662,
             0.0008413806719238739, -0.0018857614823322437, 0.004974026745549122)
# digamma(3/2 + v) / (3/2 + v - zero) on |v| <= 1/2: 2**-52.9
_DIGAMMA = (0.9510558760318328, -0.4236274212814562, 0.24054248424082122, -0.1484049230551295, 0.09498872444851819,
            -0.061922133171014734, 0.04076083415117967, -0.026975800676270326, 0.017907243403952604,
            -0.011908135041575368, 0.007927082590691272, -0.005281022403088403, 0.003517727786313696,
            -0.0023368029552473927, 0.001563951488095301, -0.0010804834635770853, 0.0006980458974216931,
            -0.0003490603702020633, 0.0002755084151190161, -0.000383283387410171, 0.00022055039945942487)
# (log(x) - 1/(2x) - digamma(x)) * x**2 in 1/x**2 for x >= 8, error over 2x**2: 2**-65.7
_DIGAMMA_LARGE = (0.08333333333333316, -0.008333333333046316, 0.003968253806271756, -0.004166623281692135,
                  0.007569505340652394, -0.020590218131442843, 0.06155851051735053)
# The zero of digamma, log(2 pi)/2 and log(pi) as double words
_ZERO = (1.4616321449683622, 9.549995429965697e-17)
_HALF_LOG_2PI = (0.9189385332046728, -3.8782941580672414e-17)
_LOG_PI = (1.1447298858494002, 1.0265951162707826e-17)


def _pi_times(s: InstructionBuilder, t: Scalar) -> Double:
    pi, pi_low = PI[t.dtype]
    high, low = two_product(s, t, s.const(pi, t.dtype))
    return high, s.fma(t, pi_low, low)


def _sin_cos_pi(s: InstructionBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """(sin, cos) of pi*(x - rint(x)); where that is beyond a quarter turn, of its complement, swapped back."""
    t = x - s.rint(x)
    size = s.abs(t)
    swap = s.gt(size, 0.25)
    r = _pi_times(s, s.select(swap, 0.5 - size, size))
    sine, cosine = sin_kernel(s, r), cos_kernel(s, r)
    return s.copysign(s.select(swap, cosine, sine), t), s.select(swap, sine, cosine)


def stirling_rest(s: InstructionBuilder, x: Scalar) -> Scalar:
    """lgamma(x) - (x - 1/2) log(x) + x - log(2 pi)/2 for x >= 8, or a little less."""
    inverse = 1.0 / x
    return inverse * poly(s, inverse * inverse, _STIRLING)


def _lgamma_positive(s: InstructionBuilder, x: Scalar) -> Double:
    """lgamma(x) as a double word for 0 < x < infinity."""
    large = s.ge(x, _LARGE)
    # lgamma(x) = lgamma(2 + v) + log((x-1)(x-2)...(2+v)); for j = 1 and 0 with x and x(x+1) divided out
    j = s.floor(s.select(large, 0.0, x) + 0.5)
    v = x - j
    one = s.const(1.0, x.dtype)
    above, above_low = two_sum(s, x, one)
    product, product_low = two_product(s, x, above)
    product = s.select(s.eq(j, 0.0), product, s.select(s.eq(j, 1.0), x, one))
    product_low = s.select(s.eq(j, 0.0), s.fma(x, above_low, product_low), 0.0)
    for i in range(1, int(_LARGE) - 1):
        product = product * s.select(s.ge(j, i + 2.0), x - float(i), one)
    log_high, log_low = log_double(s, s.select(large, x, product))
    log_low = log_low + s.select(large, 0.0, product_low / product)
    sign = pick(s, s.lt(j, 2.0), -1.0, 1.0, x.dtype)
    near, near_low = two_sum(s, log_high * sign, v * poly(s, v, _LGAMMA))
    near_low = s.fma(log_low, sign, near_low)
    far = _stirling(s, x, (log_high, log_low))
    return s.select(large, far[0], near), s.select(large, far[1], near_low)


def _stirling(s: InstructionBuilder, x: Scalar, log_x: Double) -> Double:
    factor = x - 0.5
    p, p_low = two_product(s, factor, log_x[0])
    p_low = s.fma(factor, log_x[1], p_low)
    h, low = fast_two_sum(s, p, -x)
    inverse = 1.0 / x
    series = s.fma(inverse, poly(s, inverse * inverse, _STIRLING), _HALF_LOG_2PI[0])
    return h, low + (p_low + series)


@through_double
def lgamma(s: InstructionBuilder, x: Scalar) -> Scalar:
    """log(|gamma(x)|); infinite at 0, -1, -2, ..."""
    size = s.abs(x)
    h, low = _lgamma_positive(s, size)
    positive = s.select(s.lt(size, 2.5e305), h + low, s.select(s.lt(size, 2.55e305), h, size * 710.0))
    # gamma(x) gamma(-x) = -pi / (x sin(pi x))
    sine, _ = _sin_cos_pi(s, size)
    log_high, log_low = log_double(s, s.abs(sine) * size)
    a, a_low = two_sum(s, s.const(_LOG_PI[0], x.dtype), -log_high)
    b, b_low = two_sum(s, a, -h)
    negative = b + (b_low + (a_low + (_LOG_PI[1] - log_low - low)))
    negative = s.select(s.lt(size, 1e-20), -log(s, size), negative)
    negative = s.select(s.eq(s.rint(x), x), math.inf, negative)
    value = s.select(s.gt(x, 0.0), positive, negative)
    return s.select(s.isnan(x), x, s.select(s.isinf(x), math.inf, value))


def _digamma_positive(s: InstructionBuilder, x: Scalar) -> Scalar:
    """digamma(x) for 0 < x < infinity."""
    large = s.ge(x, _LARGE)
    # digamma(x) = digamma(u) + 1/(x-1) + ... + 1/u with u in [1, 2); for x < 1, digamma(x+1) - 1/x
    j = s.floor(s.select(large, 1.0, x))
    shift = s.maximum(j - 1.0, 0.0)
    small = s.lt(x, 1.0)
    u = s.select(small, x + 1.0, x - shift)
    num = pick(s, small, -1.0, 0.0, x.dtype)
    den = s.select(small, x, 1.0)
    for i in range(1, int(_LARGE) - 1):
        term = x - float(i)
        taken = s.ge(shift, float(i))
        num = s.select(taken, s.fma(num, term, den), num)
        den = s.select(taken, den * term, den)
    near = s.fma((u - _ZERO[0]) - _ZERO[1], poly(s, u - 1.5, _DIGAMMA), num / den)
    inverse = 1.0 / x
    y = inverse * inverse
    far = log(s, x) - s.fma(y, poly(s, y, _DIGAMMA_LARGE), inverse * 0.5)
    return s.select(large, far, near)


@through_double
def digamma(s: InstructionBuilder, x: Scalar) -> Scalar:
    """Derivative of lgamma; NaN at -1, -2, ..., and at 0 infinite with the other sign than the zero's."""
    mirrored = s.lt(x, 0.0)
    value = _digamma_positive(s, s.select(mirrored, 1.0 - x, x))
    sine, cosine = _sin_cos_pi(s, x)
    value = s.select(mirrored, value - math.pi * cosine / sine, value)
    undefined = s.and_(mirrored, s.eq(s.rint(x), x))
    value = s.select(s.eq(x, 0.0), s.copysign(s.const(math.inf, x.dtype), -x), value)
    return s.select(undefined, math.nan, value)
