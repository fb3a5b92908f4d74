"""Dawson's, the exponential and Fresnel's integrals, Spence's function, and Hurwitz' zeta function.

float32 is computed in float64 and rounded once. The forms for parts of the line are those of DLMF sections 6.6 and
6.12, 7.5 to 7.12, 25.11 and 25.12 (https://dlmf.nist.gov); the polynomials are in `special_tables.py`. Where the
exponential integral crosses 0 the error is small beside the terms that cancel. Bodies take real values.
"""

from __future__ import annotations

import math

from . import dtypes as dt
from . import special_tables as tables
from .instructions import InstructionBuilder, Scalar
from .math_core import fitted, poly, through_double, two_product, two_sum
from .math_exp import exp
from .math_gamma import _sin_cos_pi
from .math_log import log, log1p
from .math_polygamma import _bernoulli
from .math_pow import pow

__all__ = ["dawsn", "expint", "fresnel_cos", "fresnel_sin", "spence", "zeta"]


@through_double
def dawsn(s: InstructionBuilder, x: Scalar) -> Scalar:
    """exp(-x**2) times the integral of exp(t**2) from 0 to x."""
    size = s.abs(x)
    inverse = 1.0 / size
    value = fitted(s, inverse * inverse, tables.DAWSON_FAR)
    for fit in (tables.DAWSON_3, tables.DAWSON_2, tables.DAWSON_1):
        value = s.select(s.le(size, fit.high), fitted(s, size, fit), value)
    near = size * fitted(s, size * size, tables.DAWSON_0)
    return s.copysign(s.select(s.le(size, tables.DAWSON_1.low), near, value * inverse), x)


@through_double
def expint(s: InstructionBuilder, x: Scalar) -> Scalar:
    """The integral of exp(t)/t from minus infinity to x, around 0; NaN where x is negative, as in TensorFlow."""
    near = s.fma(x, fitted(s, x, tables.EXPINT_0), log(s, x * math.exp(0.5772156649015329)))
    inverse = 1.0 / x
    factor = fitted(s, inverse, tables.EXPINT_FAR)
    for fit in (tables.EXPINT_3, tables.EXPINT_2, tables.EXPINT_1):
        factor = s.select(s.ge(inverse, fit.low), fitted(s, inverse, fit), factor)
    far = s.select(s.gt(x, 720.0), math.inf, exp(s, x - 8.0) * (math.exp(8.0) * factor * inverse))
    value = s.select(s.le(x, 3.0), near, far)
    return s.select(s.lt(x, 0.0), math.nan, s.select(s.eq(x, 0.0), -math.inf, value))


# -- Fresnel ------------------------------------------------------------------------------------------
def _half_square_waves(s: InstructionBuilder, size: Scalar) -> tuple[Scalar, Scalar]:
    """(sin, cos) of pi x**2 / 2, of which whole turns are taken off before anything is rounded."""
    square, low = two_product(s, size, size)
    half = square * 0.5
    turns = s.rint(half)
    sine, cosine = _sin_cos_pi(s, s.fma(low, 0.5, half - turns))
    odd = s.ne(turns, s.rint(turns * 0.5) * 2.0)
    return s.select(odd, -sine, sine), s.select(odd, -cosine, cosine)


def _fresnel(s: InstructionBuilder, x: Scalar, sine_integral: bool) -> Scalar:
    size = s.abs(x)
    square = size * size
    near = fitted(s, square * square, tables.FRESNEL_S if sine_integral else tables.FRESNEL_C)
    near = near * (size * square if sine_integral else size)
    inverse = 1.0 / size
    v = inverse * inverse
    f, g = fitted(s, v, tables.FRESNEL_F) * inverse, fitted(s, v, tables.FRESNEL_G) * (inverse * v)
    sine, cosine = _half_square_waves(s, size)
    far = 0.5 - (f * cosine + g * sine) if sine_integral else 0.5 + (f * sine - g * cosine)
    value = s.select(s.le(size, 2.0), near, s.select(s.gt(size, 1e17), 0.5, far))
    return s.select(s.isnan(x), x, s.copysign(value, x))


@through_double
def fresnel_sin(s: InstructionBuilder, x: Scalar) -> Scalar:
    """The integral of sin(pi t**2 / 2) from 0 to x."""
    return _fresnel(s, x, sine_integral=True)


@through_double
def fresnel_cos(s: InstructionBuilder, x: Scalar) -> Scalar:
    """The integral of cos(pi t**2 / 2) from 0 to x."""
    return _fresnel(s, x, sine_integral=False)


# -- Spence -------------------------------------------------------------------------------------------
def _dilogarithm(s: InstructionBuilder, u: Scalar) -> Scalar:
    """Li2(1 - exp(-u)) for |u| <= log(4): the series of u / (exp(u) - 1), integrated."""
    numbers = _bernoulli(29)
    square = u * u
    series = poly(s, square, [float(numbers[2 * k] / math.factorial(2 * k + 1)) for k in range(1, 15)])
    return s.fma(u * square, series, s.fma(square, -0.25, u))


@through_double
def spence(s: InstructionBuilder, x: Scalar) -> Scalar:
    """The integral of log(t) / (1 - t) from 1 to x; NaN where x is negative."""
    logarithm = log(s, x)
    small, large = s.lt(x, 0.25), s.gt(x, 4.0)
    near_zero = log1p(s, -x)
    value = _dilogarithm(s, s.select(small, -near_zero, s.select(large, 0.0, 0.0 - logarithm)))
    # Li2(1 - x) = pi**2/6 - log(x) log(1 - x) - Li2(x)
    reflected = s.fma(-logarithm, near_zero, math.pi ** 2 / 6 - value)
    # Li2(1 - x) = -Li2(1 - 1/x) - log(x)**2 / 2, where Li2(1 - 1/x) is reflected in turn
    inverse = 1.0 / x
    far_log = log1p(s, -inverse)
    inner = s.fma(logarithm, far_log, math.pi ** 2 / 6) - _dilogarithm(s, s.select(large, -far_log, 0.0))
    far = s.fma(logarithm * logarithm, -0.5, -inner)
    value = s.select(small, reflected, s.select(large, far, value))
    value = s.select(s.eq(x, 0.0), math.pi ** 2 / 6, s.select(s.eq(x, math.inf), -math.inf, value))
    return s.select(s.lt(x, 0.0), math.nan, value)


# -- zeta ---------------------------------------------------------------------------------------------
_DIRECT = 10  # terms before Euler's and Maclaurin's formula
_MACLAURIN = 12  # its terms


def _hurwitz(s: InstructionBuilder, x: Scalar, q: Scalar) -> Scalar:
    """The sum of (q + k)**-x over k >= 0, for x > 1 and q > 0: ten terms, and the integral of the others corrected."""
    def term(k: Scalar, total: Scalar) -> tuple[Scalar]:
        at, low = two_sum(s, q, k)
        power = pow(s, at, -x)
        return (total + s.fma(power, -x * (low / at), power),)
    (total,) = s.repeat(_DIRECT, term, s.const(0.0, x.dtype))
    w = q + float(_DIRECT)
    last = pow(s, w, -x)
    inverse = 1.0 / w
    factor, rest, numbers = last * x * inverse, last * 0.5, _bernoulli(2 * _MACLAURIN + 1)
    for k in range(1, _MACLAURIN + 1):
        rest = s.fma(factor, float(numbers[2 * k] / math.factorial(2 * k)), rest)
        # beyond the largest numbers for which the factor is not 0
        rise = s.minimum(x, 1e15)
        factor = factor * ((rise + (2.0 * k - 1.0)) * inverse) * ((rise + 2.0 * k) * inverse)
    return total + s.fma(last / (x - 1.0), w, rest)


def zeta(s: InstructionBuilder, x: Scalar, q: Scalar) -> Scalar:
    """Hurwitz' zeta function: the sum of (q + k)**-x over k >= 0.

    Below 0, where x must be whole: the terms on both sides of 0 are sums of this kind, of which the last is taken off
    again that is beyond q.
    """
    wide, at = s.cast(x, dt.float64), s.cast(q, dt.float64)
    whole, even = s.eq(s.rint(wide), wide), s.eq(s.rint(wide * 0.5) * 2.0, wide)
    below = s.le(at, 0.0)
    part = at - s.floor(at)

    def side(n: Scalar, total: Scalar) -> tuple[Scalar]:
        first, second = s.eq(n, 0.0), s.eq(n, 1.0)
        begin = s.select(first, s.select(below, part, at), s.select(below, s.select(second, 1.0 - part, 1.0 - at), 1.0))
        sign = s.select(s.and_(below, s.eq(second, even)), s.const(1.0, dt.float64), -1.0)
        weight = s.select(first, 1.0, s.select(below, sign, 0.0))
        value = _hurwitz(s, wide, begin)
        return (s.select(s.eq(weight, 0.0), total, s.fma(weight, value, total)),)

    (value,) = s.repeat(3, side, s.const(0.0, dt.float64))
    pole = s.select(even, s.const(math.inf, dt.float64), math.nan)
    value = s.select(below, s.select(s.eq(s.rint(at), at), pole, s.select(whole, value, math.nan)), value)
    value = s.select(s.eq(wide, 1.0), math.inf, s.select(s.lt(wide, 1.0), math.nan, value))
    return s.cast(s.select(s.or_(s.isnan(wide), s.isnan(at)), math.nan, value), x.dtype)
