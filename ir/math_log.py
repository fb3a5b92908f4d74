"""Logarithms, the inverse hyperbolic functions and powers.

x = 2**k * m with sqrt(1/2) <= m < sqrt(2) and f = m - 1 exactly; log(m) = f - c, where the correction
c is small beside f, so that the rounding of c hardly shows. float32 takes c from a polynomial in f,
float64 from one in (f/(2+f))**2, the series of 2*atanh. Bodies take real values; `ir/math_complex.py`
owns the complex ones.
"""

from __future__ import annotations

import math

from . import dtypes as dt
from .instructions import InstructionBuilder, Scalar
from .math_core import (
    Double,
    fast_two_sum,
    float_of,
    format_of,
    pick,
    poly,
    pow2,
    split_binary,
    through_double,
    two_product,
    two_sum,
)

__all__ = ["acosh", "asinh", "atanh", "log", "log10", "log1p", "log2"]

SQRT_HALF = math.sqrt(0.5)
# (high, low): high has so few bits that its product with any exponent is exact
LN2 = {dt.float32: (0.693145751953125, 1.4286068e-06),
        dt.float64: (0.6931471805601177, -1.7239444525614835e-13)}
_LOG10_2 = {dt.float32: (0.301025390625, 4.605039e-06),
            dt.float64: (0.3010299956640665, -8.532344317057107e-14)}
# 1/ln 2 and 1/ln 10 as double words
_LOG2_E = {dt.float32: (1.442695, 1.925963e-08),
           dt.float64: (1.4426950408889634, 2.0355273740931033e-17)}
_LOG10_E = {dt.float32: (0.4342945, -1.010305e-08),
            dt.float64: (0.4342944819032518, 1.098319650216765e-17)}
# (log1p(f) - f + f**2/2) / f**3 on [sqrt(1/2) - 1, sqrt(2) - 1], relative to log1p(f): 2**-27.3
_LOG32 = (0.3333333, -0.25000823, 0.2000126, -0.16623344, 0.14201075, -0.13159584, 0.12765709, -0.076410174)
# (2*atanh(t)/t - 2) / t**2 in t**2 on [0, 0.02944], error times t**2: 2**-65.6
_ATANH64 = (0.6666666666666666, 0.40000000000004926, 0.2857142856940978, 0.22222222607237777, 0.18181778330038895,
            0.15386990075425525, 0.13252118676387173, 0.13235055904592863)
# The same for results rounded to float32: 2**-36.6
_ATANH_SHORT = (0.6666666564507215, 0.4000033529030786, 0.2853730168499295, 0.2358228985891992)

# 2/3 = high + low
_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
# ((2*atanh(t)/t - 2) / t**2 - 2/3) / t**2 in t**2 on [0, 0.02944], error times t**4 / 2: 2**-66.3
_ATANH_LONG = (0.40000000000002256, 0.2857142857009958, 0.22222222519926083, 0.18181784366600803, 0.15386757364024772,
          0.13256816821773107, 0.13196338478365305)


def correction(s: InstructionBuilder, f: Scalar) -> Scalar:
    """f - log(1 + f) for f in [sqrt(1/2) - 1, sqrt(2) - 1]."""
    if f.dtype is dt.float32:
        return f * f * s.fma(-f, poly(s, f, _LOG32), 0.5)
    t = f / (f + 2.0)
    w = t * t
    return t * s.fma(-w, poly(s, w, _ATANH64), f)


def split_log(s: InstructionBuilder, x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """(f, c, k) with log(x) = k*ln2 + f - c for positive finite x, k as a float."""
    m, k = split_binary(s, x, SQRT_HALF)
    f = m - 1.0
    return f, correction(s, f), float_of(s, k, x.dtype)


def _specials(s: InstructionBuilder, x: Scalar, value: Scalar, pole: float = 0.0) -> Scalar:
    """`value` between the pole and infinity, else the limits of a logarithm, or NaN."""
    edge = s.select(s.eq(x, pole), -math.inf, s.select(s.lt(x, pole), math.nan, x))
    return s.select(s.and_(s.gt(x, pole), s.lt(x, math.inf)), value, edge)


def log_double(s: InstructionBuilder, x: Scalar) -> Double:
    """log(x) as a double word good to a few units in 2**-60 (2**-29 for float32), for positive finite x."""
    f, c, k = split_log(s, x)
    high, low = LN2[x.dtype]
    h, rest = fast_two_sum(s, k * high, f)
    return fast_two_sum(s, h, rest + s.fma(k, low, -c))


def _log_parts(s: InstructionBuilder, x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """(h, low, k) with log(x) = k*ln2 + h + low for positive finite float64, to a relative error near 2**-65.

    log(m) = 2*atanh(t) with t = f/(2 + f) a double word.
    """
    m, k = split_binary(s, x, SQRT_HALF)
    f = m - 1.0
    den, den_low = fast_two_sum(s, s.const(2.0, x.dtype), f)
    inverse = 1.0 / den
    q = f * inverse
    t, t_low = fast_two_sum(s, q, s.fma(-q, den_low, s.fma(-q, den, f)) * inverse)
    w, w_low = two_product(s, t, t)
    w_low = s.fma(t + t, t_low, w_low)
    # c = t*w*(2/3 + w*P(w)), log(m) = 2t + c
    p = poly(s, w, _ATANH_LONG)
    wp, wp_low = two_product(s, w, p)
    a, a_low = fast_two_sum(s, s.const(_TWO_THIRDS[0], x.dtype), wp)
    a_low = a_low + (_TWO_THIRDS[1] + s.fma(w_low, p, wp_low))
    b, b_low = _times(s, (w, w_low), (a, a_low))
    c, c_low = _times(s, (t, t_low), (b, b_low))
    h, low = fast_two_sum(s, t + t, c)
    return h, low + (t_low + t_low + c_low), float_of(s, k, x.dtype)


def log_accurate(s: InstructionBuilder, x: Scalar) -> Double:
    """log(x) as a double word for positive finite float64, to a relative error near 2**-65."""
    h, low, k = _log_parts(s, x)
    h, rest = fast_two_sum(s, k * LN2[x.dtype][0], h)
    return fast_two_sum(s, h, rest + s.fma(k, LN2[x.dtype][1], low))


def _times(s: InstructionBuilder, x: Double, y: Double) -> Double:
    p, low = two_product(s, x[0], y[0])
    return p, s.fma(x[1], y[0], s.fma(x[0], y[1], low))


def log_short(s: InstructionBuilder, x: Scalar) -> Scalar:
    """log(x) for positive finite float64 to a relative error of 2**-36."""
    m, k = split_binary(s, x, SQRT_HALF)
    f = m - 1.0
    t = f / (f + 2.0)
    w = t * t
    c = t * s.fma(-w, poly(s, w, _ATANH_SHORT), f)
    return s.fma(float_of(s, k, x.dtype), math.log(2.0), f - c)


def log(s: InstructionBuilder, x: Scalar) -> Scalar:
    """Natural logarithm."""
    return _specials(s, x, log_double(s, x)[0])


def _log_base(s: InstructionBuilder, x: Scalar, unit: tuple[float, float] | None,
             factor: tuple[float, float]) -> Scalar:
    """k*unit + log(m)*factor, for the logarithms of other bases; `unit` is (high, low) or None for 1."""
    if x.dtype is dt.float64:
        a, b, k = _log_parts(s, x)
    else:
        f, c, k = split_log(s, x)
        a, b = fast_two_sum(s, f, -c)
    p = a * factor[0]
    p_low = s.fma(a, factor[0], -p) + s.fma(a, factor[1], b * factor[0])
    h, rest = fast_two_sum(s, k if unit is None else k * unit[0], p)
    rest = rest + (p_low if unit is None else s.fma(k, unit[1], p_low))
    return _specials(s, x, h + rest)


def log2(s: InstructionBuilder, x: Scalar) -> Scalar:
    """Logarithm to base 2; exact for powers of two."""
    return _log_base(s, x, None, _LOG2_E[x.dtype])


def log10(s: InstructionBuilder, x: Scalar) -> Scalar:
    """Logarithm to base 10."""
    return _log_base(s, x, _LOG10_2[x.dtype], _LOG10_E[x.dtype])


def log1p(s: InstructionBuilder, x: Scalar) -> Scalar:
    """log(1 + x) without cancellation near 0."""
    u, u_low = two_sum(s, s.const(1.0, x.dtype), x)
    m, k = split_binary(s, u, SQRT_HALF)
    near = s.eq(k, 0)
    f = s.select(near, x, m - 1.0)
    # Away from 0 the rounding of 1 + x is a small relative error of the argument, put right to first order.
    rest = s.select(near, 0.0, u_low * pow2(s, s.maximum(-k, 1 - format_of(x).bias), x.dtype))
    rest = rest * s.fma(f, f - 1.0, 1.0)
    k = float_of(s, k, x.dtype)
    high, low = LN2[x.dtype]
    h, h_low = fast_two_sum(s, k * high, f)
    value = h + (h_low + (rest + s.fma(k, low, -correction(s, f))))
    value = s.select(s.lt(s.abs(x), format_of(x).tiny), x, value)
    return _specials(s, x, value, -1.0)


# Beyond this x*x + 1 is x*x, and the inverse hyperbolic functions are log(2x).
_HUGE = 2.0**54


def _log1p_scaled(s: InstructionBuilder, t: Scalar, x: Scalar) -> Scalar:
    """log1p(t), or log(2x) for huge x."""
    huge = s.gt(x, _HUGE)
    return log1p(s, s.select(huge, x, t)) + pick(s, huge, math.log(2.0), 0.0, x.dtype)


@through_double
def asinh(s: InstructionBuilder, x: Scalar) -> Scalar:
    """Inverse hyperbolic sine: log1p(|x| + x**2 / (1 + sqrt(1 + x**2))) with the sign of x."""
    size = s.abs(x)
    y = x * x
    t = size + y / (s.sqrt(y + 1.0) + 1.0)
    return s.copysign(_log1p_scaled(s, t, size), x)


@through_double
def acosh(s: InstructionBuilder, x: Scalar) -> Scalar:
    """Inverse hyperbolic cosine, NaN below 1: log1p(t + sqrt(t*(t + 2))) with t = x - 1."""
    t = x - 1.0
    value = _log1p_scaled(s, t + s.sqrt(t * (t + 2.0)), x)
    return s.select(s.lt(x, 1.0), math.nan, value)


def atanh(s: InstructionBuilder, x: Scalar) -> Scalar:
    """Inverse hyperbolic tangent: log1p(2|x| / (1 - |x|)) / 2 with the sign of x, NaN outside [-1, 1].

    The sign is put on after rounding: copysign of a float64 that is stored as a float16 is more than LLVM can lower.
    """
    return s.copysign(_atanh_positive(s, s.abs(x)), x)


@through_double
def _atanh_positive(s: InstructionBuilder, x: Scalar) -> Scalar:
    twice = x + x
    t = s.select(s.lt(x, 0.5), s.fma(twice, x / (1.0 - x), twice), twice / (1.0 - x))
    return log1p(s, t) * 0.5
