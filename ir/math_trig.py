"""Circular functions and their inverses.

sin, cos and tan are accurate over the whole range of their type: `ir/math_reduction.py` brings the
angle to a double word within pi/4. Bodies take real values; `ir/math_complex.py` owns the complex ones.
"""

from __future__ import annotations

import math

from . import dtypes as dt
from .instructions import InstructionBuilder, Scalar
from .math_core import Double, divide_double, fast_two_sum, format_of, pick, poly, two_sum
from .math_reduction import reduce_angle

__all__ = ["acos", "asin", "atan", "atan2", "cos", "sin", "tan"]

# pi as a double word; halves and quarters of it follow exactly
PI = {dt.float32: (3.1415927, -8.742278e-08), dt.float64: (math.pi, 1.2246467991473532e-16)}
# (sin(r)/r - 1) / r**2 in r**2 on |r| <= 0.7856: 2**-32.5 and 2**-63.2
_SIN = {
    dt.float32: (-0.16666667, 0.008333379, -0.00019853064, 2.83251e-06),
    dt.float64: (-0.16666666666666666, 0.008333333333333042, -0.0001984126984096248, 2.7557319073994014e-06,
                 -2.5052070926985632e-08, 1.6054312228503217e-10, -7.389502227246075e-13),
}
# (cos(r) - 1 + r**2/2) / r**4 in r**2 on |r| <= 0.7856: 2**-33 and 2**-63.9
_COS = {
    dt.float32: (0.041666646, -0.001388731, 2.4432327e-05),
    dt.float64: (0.041666666666666595, -0.0013888888888873335, 2.4801587288995184e-05, -2.755731421443068e-07,
                 2.08757049748053e-09, -1.1358724566538697e-11),
}
# (asin(x)/x - 1) / x**2 in x**2 on [0, 1/2]: 2**-31.7 and 2**-59.8
_ASIN = {
    dt.float32: (0.1666666, 0.07500522, 0.044513382, 0.031838823, 0.014317267, 0.037690468),
    dt.float64: (0.1666666666666676, 0.07499999999970809, 0.044642857174647395, 0.030381942704636792,
                 0.022372215106711207, 0.01735160943857326, 0.013980855792977113, 0.011398592850666031,
                 0.010782197167433519, 0.00369853653396129, 0.021727781211094338, -0.02102939186181997,
                 0.03264850289303796),
}
# (atan(t)/t - 1) / t**2 in t**2 on |t| <= tan(pi/8): 2**-30.4 and 2**-59.4
_ATAN = {
    dt.float32: (-0.33333316, 0.19998527, -0.14244345, 0.10598729, -0.0608874),
    dt.float64: (-0.3333333333333319, 0.19999999999952184, -0.14285714280054188, 0.11111110776312033,
                 -0.09090897551595402, 0.07692056539689385, -0.06663062180485116, 0.0584758396909494,
                 -0.05037925770490166, 0.03802944812406873, -0.017868675262766663),
}


def sin_double(s: InstructionBuilder, r: Double) -> Double:
    """sin(r) as a double word, for |r| <= pi/4."""
    x, low = r
    y = x * x
    return fast_two_sum(s, x, s.fma(x * y, poly(s, y, _SIN[x.dtype]), s.fma(y * -0.5, low, low)))


def cos_double(s: InstructionBuilder, r: Double) -> Double:
    """cos(r) as a double word, for |r| <= pi/4."""
    x, low = r
    y = x * x
    h, rest = fast_two_sum(s, s.const(1.0, x.dtype), y * -0.5)
    return fast_two_sum(s, h, rest + s.fma(y * y, poly(s, y, _COS[x.dtype]), -(x * low)))


def sin_kernel(s: InstructionBuilder, r: Double) -> Scalar:
    """sin(r) for |r| <= pi/4."""
    return sin_double(s, r)[0]


def cos_kernel(s: InstructionBuilder, r: Double) -> Scalar:
    """cos(r) for |r| <= pi/4."""
    return cos_double(s, r)[0]


def _by_quadrant(s: InstructionBuilder, r: Double, q: Scalar) -> Scalar:
    """sin(r + q*pi/2)."""
    fmt = format_of(r[0])
    odd = s.ne(s.and_(q, 1), 0)
    value = s.select(odd, cos_kernel(s, r), sin_kernel(s, r))
    sign = s.shl(s.and_(q, 2), 8 * fmt.signed.size - 2)
    return s.bitcast(s.xor(s.bitcast(value, fmt.signed), sign), r[0].dtype)


def sin(s: InstructionBuilder, x: Scalar) -> Scalar:
    """Sine of an angle in radians; NaN for infinities."""
    value = _by_quadrant(s, *reduce_angle(s, x))
    value = s.select(s.isfinite(x), value, math.nan)
    return s.select(s.eq(x, 0.0), x, value)


def cos(s: InstructionBuilder, x: Scalar) -> Scalar:
    """Cosine of an angle in radians; NaN for infinities."""
    r, q = reduce_angle(s, x)
    return s.select(s.isfinite(x), _by_quadrant(s, r, q + 1), math.nan)


def tan(s: InstructionBuilder, x: Scalar) -> Scalar:
    """Tangent of an angle in radians; NaN for infinities. float32 divides in float64."""
    (r, low), q = reduce_angle(s, x)
    odd = s.ne(s.and_(q, 1), 0)
    if x.dtype is dt.float32:
        wide = s.cast(r, dt.float64) + s.cast(low, dt.float64)
        y = wide * wide
        sine = s.fma(wide * y, poly(s, y, _SIN[x.dtype]), wide)
        cosine = s.fma(y, s.fma(y, poly(s, y, _COS[x.dtype]), -0.5), 1.0)
        value = s.cast(s.select(odd, -cosine, sine) / s.select(odd, sine, cosine), x.dtype)
    else:
        (a, a_low), (b, b_low) = sin_double(s, (r, low)), cos_double(s, (r, low))
        num = s.select(odd, -b, a), s.select(odd, -b_low, a_low)
        value = divide_double(s, num, (s.select(odd, a, b), s.select(odd, a_low, b_low)))
    value = s.select(s.isfinite(x), value, math.nan)
    return s.select(s.eq(x, 0.0), x, value)


def _asin_parts(s: InstructionBuilder, x: Scalar) -> tuple[Scalar, Double]:
    """(t, (root, root_low)): asin(x) = x + t where |x| <= 1/2, else |x| is the cosine of 2*(root + root_low)."""
    size = s.abs(x)
    inner = s.le(size, 0.5)
    z = s.select(inner, x * x, s.fma(size, -0.5, 0.5))
    root = s.sqrt(z)
    root_low = s.fma(-root, root, z) / (root + root)
    root_low = s.select(s.gt(z, 0.0), root_low, 0.0)
    p = z * poly(s, z, _ASIN[x.dtype])
    return x * p, (root, s.fma(root, p, root_low))


def asin(s: InstructionBuilder, x: Scalar) -> Scalar:
    """Angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1]."""
    t, (root, root_low) = _asin_parts(s, x)
    high, low = PI[x.dtype]
    h, rest = fast_two_sum(s, s.const(high / 2, x.dtype), root * -2.0)
    outer = h + (rest + s.fma(root_low, -2.0, low / 2))
    return s.select(s.le(s.abs(x), 0.5), x + t, s.copysign(outer, x))


def acos(s: InstructionBuilder, x: Scalar) -> Scalar:
    """Angle in [0, pi] whose cosine is x; NaN outside [-1, 1]."""
    t, (root, root_low) = _asin_parts(s, x)
    high, low = PI[x.dtype]
    h, rest = fast_two_sum(s, s.const(high / 2, x.dtype), -x)
    inner = h + (rest + (low / 2 - t))
    positive = s.gt(x, 0.0)
    double = pick(s, positive, 2.0, -2.0, x.dtype)
    h, rest = fast_two_sum(s, pick(s, positive, 0.0, high, x.dtype), root * double)
    outer = h + (rest + s.fma(root_low, double, pick(s, positive, 0.0, low, x.dtype)))
    return s.select(s.le(s.abs(x), 0.5), inner, outer)


def _angle(s: InstructionBuilder, y: Scalar, x: Scalar, behind: Scalar) -> Scalar:
    """Angle of the point (x, y) with x, y >= 0 not NaN; of (-x, y) where `behind`."""
    high, low = PI[x.dtype]
    # the angle is that of (f*x, f*y): half where x + y might overflow, more where residuals would be subnormal
    small = s.lt(s.maximum(x, y), format_of(x).tiny * 2.0 ** (2 * format_of(x).mantissa))
    factor = s.select(small, 2.0 ** (2 * format_of(x).mantissa), pick(s, s.gt(y, 1.0), 0.5, 1.0, x.dtype))
    x, y = x * factor, y * factor
    # tan(3 pi/8) both ways: one product may overflow, the other underflow
    steep = s.or_(s.gt(y * 0.41421356237309503, x), s.gt(y, x * 2.414213562373095))
    middle = s.gt(y, x * 0.41421356237309503)
    total, total_low = two_sum(s, y, x)
    num = s.select(steep, -x, s.select(middle, y - x, y))
    den = s.select(steep, y, s.select(middle, total, x))
    t = s.select(s.eq(num, 0.0), s.const(0.0, x.dtype), num / den)
    # pi/4 and the rest may cancel by half, so there the quotient's error is put right.
    t_low = s.select(middle, s.fma(-t, total_low, s.fma(-t, total, y - x)) / total, 0.0)
    t_low = s.select(steep, 0.0, t_low)
    w = t * t
    v_low = s.fma(t * w, poly(s, w, _ATAN[x.dtype]), t_low)
    quarters = s.select(steep, 0.5, pick(s, middle, 0.25, 0.0, x.dtype))
    quarters = s.select(behind, 1.0 - quarters, quarters)
    t, v_low = s.select(behind, -t, t), s.select(behind, -v_low, v_low)
    h, rest = fast_two_sum(s, quarters * high, t)
    return h + (rest + s.fma(quarters, low, v_low))


def atan(s: InstructionBuilder, x: Scalar) -> Scalar:
    """Angle in [-pi/2, pi/2] whose tangent is x."""
    one = s.const(1.0, x.dtype)
    size = s.abs(x)
    steep = s.isinf(x)
    value = _angle(s, s.select(steep, one, size), s.select(steep, 0.0, one), s.const(False, dt.bool_))
    return s.copysign(value, x)


def atan2(s: InstructionBuilder, y: Scalar, x: Scalar) -> Scalar:
    """Angle in [-pi, pi] of the point (x, y), with C's rules for zeros and infinities."""
    one = s.const(1.0, x.dtype)
    both = s.and_(s.isinf(x), s.isinf(y))
    a, b = s.select(both, one, s.abs(y)), s.select(both, one, s.abs(x))
    value = s.copysign(_angle(s, a, b, s.lt(s.copysign(one, x), 0.0)), y)
    return s.select(s.or_(s.isnan(x), s.isnan(y)), math.nan, value)
