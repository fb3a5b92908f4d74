"""Powers and roots: pow for floats and integers, hypot, rsqrt, cbrt.

Bodies take real values; `ir/math_complex.py` owns the complex ones.
"""

from __future__ import annotations

import math

from . import dtypes as dt
from .instructions import InstructionBuilder, Scalar
from .math_core import (
    float_of,
    format_of,
    pick,
    poly,
    pow2,
    scale,
    split_binary,
    two_product,
    two_sum,
)
from .math_exp import EXP_RANGE, clamp, exp_double, exp_short
from .math_log import log_accurate, log_short

__all__ = ["cbrt", "hypot", "pow", "rsqrt"]

def _power(s: InstructionBuilder, x: Scalar, y: Scalar) -> Scalar:
    """x**y for x >= 0 where neither is NaN and the rules for 0 and infinity follow from exp(y*log(x))."""
    limit = s.select(s.eq(x, 0.0), -math.inf, x)
    inside = s.and_(s.gt(x, 0.0), s.lt(x, math.inf))
    h, low = log_accurate(s, x)
    h, low = s.select(inside, h, limit), s.select(inside, low, 0.0)
    p, p_low = two_product(s, y, h)
    p_low = s.fma(y, low, p_low)
    p_low = s.select(s.lt(s.abs(p), 1000.0), p_low, 0.0)
    (value, _), k = exp_double(s, (clamp(s, p, *EXP_RANGE[x.dtype]), p_low))
    return scale(s, value, k)


def _power_short(s: InstructionBuilder, x: Scalar, y: Scalar) -> Scalar:
    """_power for operands that are float32 numbers held in float64, good enough to round to float32."""
    limit = s.select(s.eq(x, 0.0), -math.inf, x)
    inside = s.and_(s.gt(x, 0.0), s.lt(x, math.inf))
    return exp_short(s, y * s.select(inside, log_short(s, x), limit))


def _is_odd(s: InstructionBuilder, y: Scalar) -> Scalar:
    """Whether y is an odd integer."""
    half = y * 0.5
    return s.and_(s.eq(s.rint(y), y), s.ne(s.rint(half), half))


def pow(s: InstructionBuilder, x: Scalar, y: Scalar) -> Scalar:
    """x**y with C's rules for special values; integers multiply and wrap (the exponent must not be negative)."""
    if x.dtype.is_integer:
        return _integer_power(s, x, y)
    one = s.const(1.0, x.dtype)
    size = s.abs(x)
    if x.dtype is dt.float32:
        value = s.cast(_power_short(s, s.cast(size, dt.float64), s.cast(y, dt.float64)), x.dtype)
    else:
        value = _power(s, size, y)
    value = s.select(s.and_(_is_odd(s, y), s.lt(s.copysign(one, x), 0.0)), -value, value)
    # a negative number to a power that is not an integer; infinite exponents count as even integers
    undefined = s.and_(s.and_(s.lt(x, 0.0), s.gt(x, -math.inf)), s.ne(s.rint(y), y))
    value = s.select(s.or_(undefined, s.or_(s.isnan(x), s.isnan(y))), math.nan, value)
    # the powers that programs spell most are their products: exact rounding, and passes may write them so
    value = s.select(s.eq(y, 2.0), x * x, s.select(s.eq(y, 1.0), x, value))
    unit = s.or_(s.or_(s.eq(y, 0.0), s.eq(x, 1.0)), s.and_(s.eq(x, -1.0), s.isinf(y)))
    return s.select(unit, one, value)


def _integer_power(s: InstructionBuilder, x: Scalar, y: Scalar) -> Scalar:
    """Repeated squaring over every bit of the exponent."""
    result = s.const(1, x.dtype)
    for bit in range(8 * x.dtype.size - (not x.dtype.is_unsigned)):
        taken = s.ne(s.and_(y, 1 << bit), 0)
        result = s.select(taken, result * x, result)
        x = x * x
    return result


def rsqrt(s: InstructionBuilder, x: Scalar) -> Scalar:
    """1 / sqrt(x), with the rounding of the root put right."""
    fmt = format_of(x)
    # where the root's residual would be subnormal, x is a power of four larger
    small = s.lt(x, fmt.tiny * 2.0 ** (fmt.mantissa + 3))
    shift = 2 * (fmt.mantissa + 3)
    scaled = x * pick(s, small, 2.0**shift, 1.0, x.dtype)
    root = s.sqrt(scaled)
    value = 1.0 / root
    # x = root**2 + residual, so 1/sqrt(x) = 1/root - residual / (2 root**3)
    residual = s.fma(-root, root, scaled) * (value * value)
    fixed = s.fma(s.fma(-root, value, 1.0) - residual * 0.5, value, value)
    usual = s.and_(s.gt(x, 0.0), s.lt(x, math.inf))
    return s.select(usual, fixed, value) * pick(s, small, 2.0 ** (shift // 2), 1.0, x.dtype)


def hypot(s: InstructionBuilder, x: Scalar, y: Scalar) -> Scalar:
    """sqrt(x**2 + y**2) without undue overflow or underflow; infinite if either is, else NaN if either is.

    float64 corrects the root of the scaled sum by fused multiply-adds: Borges, "Algorithm 1014: An Improved Algorithm
    for hypot(x,y)", ACM TOMS 47 (2021).
    """
    if x.dtype is dt.float32:
        a, b = s.cast(x, dt.float64), s.cast(y, dt.float64)
        value = s.cast(s.sqrt(s.fma(a, a, b * b)), x.dtype)
    else:
        value = _hypot64(s, s.abs(x), s.abs(y))
    return s.select(s.or_(s.isinf(x), s.isinf(y)), math.inf, value)


def _hypot64(s: InstructionBuilder, x: Scalar, y: Scalar) -> Scalar:
    big = s.maximum(x, y)
    large, small = s.gt(big, 2.0**500), s.lt(big, 2.0**-400)
    factor = s.select(large, 2.0**-600, pick(s, small, 2.0**600, 1.0, x.dtype))
    back = s.select(large, 2.0**600, pick(s, small, 2.0**-600, 1.0, x.dtype))
    a, b = x * factor, y * factor
    # the sum of squares as a double word, and one step of Heron's rule on its rounded root
    p, p_low = two_product(s, a, a)
    q, q_low = two_product(s, b, b)
    total, rest = two_sum(s, p, q)
    root = s.sqrt(total)
    residual = s.fma(-root, root, total) + (rest + (p_low + q_low))
    fixed = root + residual / (root + root)
    return s.select(s.gt(root, 0.0), fixed, root) * back


# cbrt(m) on [1, 2): relative 2**-16.7
_CBRT = (0.50697945160897589, 0.7181536283457825, -0.30061112952961443, 0.086091103223830313, -0.010603847795408871)


def cbrt(s: InstructionBuilder, x: Scalar) -> Scalar:
    """Cube root, of the sign of x.

    x = m * 2**(3q + j): a polynomial in m times 2**(j/3), a step of Halley's rule, and for float64 one of Newton's
    whose residual is exact to twice the precision, so that little more than the last rounding is left. After Kahan,
    "Computing a Real Cube Root" (1991).
    """
    short = x.dtype is dt.float32
    wide = s.cast(x, dt.float64)
    size = s.abs(wide)
    m, k = split_binary(s, size, 1.0)
    third = s.floor(s.fma(float_of(s, k, wide.dtype), 1.0 / 3.0, 1.0 / 6.0))
    k_third = s.bitcast(third + format_of(wide).magic, dt.int64) - format_of(wide).magic_bits
    j = k - k_third * 3
    a = m * pow2(s, j, wide.dtype)
    root = s.select(s.eq(j, 0), 1.0, pick(s, s.eq(j, 1), 2.0 ** (1 / 3), 2.0 ** (2 / 3), wide.dtype))
    y = poly(s, m, _CBRT) * root
    cube = y * y * y
    y = y * ((cube + (a + a)) / (cube + cube + a))
    if not short:
        square, square_low = two_product(s, y, y)
        cube, cube_low = two_product(s, square, y)
        y = y - ((cube - a) + s.fma(square_low, y, cube_low)) / (square * 3.0)
    value = s.copysign(s.cast(y * pow2(s, k_third, wide.dtype), x.dtype), x)
    return s.select(s.and_(s.ne(x, 0.0), s.lt(s.abs(x), math.inf)), value, x)
