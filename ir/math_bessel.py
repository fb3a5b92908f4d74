"""Bessel functions of the orders 0 and 1, as they are and times the exponential that tames them.

float32 is computed in float64 and rounded once. Near 0 they are power series or polynomials beside a logarithm, far
from it what is left of them without their exponential or their waves (DLMF sections 10.2, 10.8, 10.17, 10.25, 10.31 and
10.40, https://dlmf.nist.gov/10); the polynomials are in `special_tables.py`. Where J and Y cross 0 the error is small
beside the height of their waves. Bodies take real values.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from . import special_tables as tables
from .instructions import InstructionBuilder, Scalar
from .math_core import Fit, fitted, poly, through_double
from .math_exp import exp
from .math_log import log
from .math_trig import cos, sin

__all__ = ["bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "bessel_j0", "bessel_j1", "bessel_k0", "bessel_k0e",
           "bessel_k1", "bessel_k1e", "bessel_y0", "bessel_y1"]

_FAR = 8.0  # where the forms for large numbers take over, but for K: 1
_SCALE = 0.8905362089950989  # exp(Euler's constant) / 2


def _series(order: int, terms: int, weight: Callable[[int], float]) -> list[float]:
    """By powers of x**2: the factors of I_order(x) / x**order, each times a weight."""
    return [weight(k) / (2.0 ** (2 * k + order) * math.factorial(k) * math.factorial(k + order)) for k in range(terms)]


def _harmonic(k: int) -> float:
    return math.fsum(1.0 / j for j in range(1, k + 1))


_I = tuple(_series(order, 23, lambda k: 1.0) for order in (0, 1))
_K = (_series(0, 10, _harmonic), _series(1, 10, lambda k: (_harmonic(k) + _harmonic(k + 1)) / 2))


# -- I ------------------------------------------------------------------------------------------------
def _i_near(s: InstructionBuilder, size: Scalar, order: int) -> Scalar:
    value = poly(s, size * size, _I[order])
    return value * size if order else value


def _i_far(s: InstructionBuilder, size: Scalar, order: int) -> Scalar:
    """exp(-size) I(size)."""
    return fitted(s, 1.0 / size, (tables.I0_FAR, tables.I1_FAR)[order]) / s.sqrt(size)


def _i(s: InstructionBuilder, x: Scalar, order: int) -> Scalar:
    size = s.abs(x)
    # the product overflows where I does; exp(size) would before
    far = exp(s, size - _FAR) * (math.exp(_FAR) * _i_far(s, size, order))
    value = s.select(s.le(size, _FAR), _i_near(s, size, order), s.select(s.gt(size, 720.0), math.inf, far))
    return s.select(s.isnan(x), x, s.copysign(value, x) if order else value)


def _i_scaled(s: InstructionBuilder, x: Scalar, order: int) -> Scalar:
    size = s.abs(x)
    value = s.select(s.le(size, _FAR), _i_near(s, size, order) * exp(s, -size), _i_far(s, size, order))
    return s.copysign(value, x) if order else value


@through_double
def bessel_i0(s: InstructionBuilder, x: Scalar) -> Scalar:
    """The modified Bessel function of the first kind, of order 0."""
    return _i(s, x, 0)


@through_double
def bessel_i0e(s: InstructionBuilder, x: Scalar) -> Scalar:
    """exp(-|x|) I0(x)."""
    return _i_scaled(s, x, 0)


@through_double
def bessel_i1(s: InstructionBuilder, x: Scalar) -> Scalar:
    """The modified Bessel function of the first kind, of order 1."""
    return _i(s, x, 1)


@through_double
def bessel_i1e(s: InstructionBuilder, x: Scalar) -> Scalar:
    """exp(-|x|) I1(x)."""
    return _i_scaled(s, x, 1)


# -- K ------------------------------------------------------------------------------------------------
def _k_near(s: InstructionBuilder, x: Scalar, order: int) -> Scalar:
    """For 0 < x <= 1; the constant inside of the logarithm leaves a sum in which nothing cancels."""
    square, logarithm = x * x, log(s, x * _SCALE)
    rest, inner = poly(s, square, _K[order]), poly(s, square, _I[order][:10])
    return s.fma(-logarithm, inner, rest) if order == 0 else s.fma(x, s.fma(logarithm, inner, -rest), 1.0 / x)


def _k_far(s: InstructionBuilder, x: Scalar, order: int) -> Scalar:
    """exp(x) K(x)."""
    return fitted(s, 1.0 / x, (tables.K0_FAR, tables.K1_FAR)[order]) / s.sqrt(x)


def _k(s: InstructionBuilder, x: Scalar, order: int, scaled: bool) -> Scalar:
    """Infinite where x is not positive, as in TensorFlow."""
    near, far = _k_near(s, x, order), _k_far(s, x, order)
    near, far = (near * exp(s, x), far) if scaled else (near, far * exp(s, -x))
    return s.select(s.le(x, 0.0), math.inf, s.select(s.le(x, 1.0), near, far))


@through_double
def bessel_k0(s: InstructionBuilder, x: Scalar) -> Scalar:
    """The modified Bessel function of the second kind, of order 0."""
    return _k(s, x, 0, scaled=False)


@through_double
def bessel_k0e(s: InstructionBuilder, x: Scalar) -> Scalar:
    """exp(x) K0(x)."""
    return _k(s, x, 0, scaled=True)


@through_double
def bessel_k1(s: InstructionBuilder, x: Scalar) -> Scalar:
    """The modified Bessel function of the second kind, of order 1."""
    return _k(s, x, 1, scaled=False)


@through_double
def bessel_k1e(s: InstructionBuilder, x: Scalar) -> Scalar:
    """exp(x) K1(x)."""
    return _k(s, x, 1, scaled=True)


# -- J and Y ------------------------------------------------------------------------------------------
def _j_near(s: InstructionBuilder, size: Scalar, order: int) -> Scalar:
    square = size * size
    if order == 0:
        return s.fma(square, fitted(s, square, tables.J0_NEAR), 1.0)
    return size * fitted(s, square, tables.J1_NEAR)


def _waves(s: InstructionBuilder, size: Scalar, order: int, second: bool) -> Scalar:
    """J or Y as sqrt(2 / (pi x)) (P cos - Q sin) or (P sin + Q cos) of x - (order/2 + 1/4) pi, for x >= 8."""
    def part(fit: Fit) -> Scalar:
        return fitted(s, inverse * inverse, fit)
    inverse = 1.0 / size
    p, q = part((tables.P0, tables.P1)[order]), part((tables.Q0, tables.Q1)[order]) * inverse
    sine, cosine = sin(s, size), cos(s, size)
    total, difference = sine + cosine, sine - cosine
    wave, other = (total, difference) if order == 0 else (difference, -total)
    value = p * other + q * wave if second else p * wave - q * other
    return value * s.sqrt(inverse * (1.0 / math.pi))


def _j(s: InstructionBuilder, x: Scalar, order: int) -> Scalar:
    size = s.abs(x)
    value = s.select(s.le(size, _FAR), _j_near(s, size, order), _waves(s, size, order, second=False))
    # an odd function: the sign of its value is that of x, turned where the value is negative
    return s.select(s.lt(x, 0.0), -value, s.select(s.eq(x, 0.0), x, value)) if order else value


@through_double
def bessel_j0(s: InstructionBuilder, x: Scalar) -> Scalar:
    """The Bessel function of the first kind, of order 0; NaN where x is infinite."""
    return _j(s, x, 0)


@through_double
def bessel_j1(s: InstructionBuilder, x: Scalar) -> Scalar:
    """The Bessel function of the first kind, of order 1; NaN where x is infinite."""
    return _j(s, x, 1)


def _y(s: InstructionBuilder, x: Scalar, order: int) -> Scalar:
    """Minus infinity where x is not positive, as in TensorFlow."""
    product = log(s, x * _SCALE) * _j_near(s, x, order)
    square = x * x
    if order == 0:
        near = s.fma(product, 2.0 / math.pi, fitted(s, square, tables.Y0_NEAR))
    else:
        near = s.fma(product - 1.0 / x, 2.0 / math.pi, x * fitted(s, square, tables.Y1_NEAR))
    value = s.select(s.le(x, _FAR), near, _waves(s, x, order, second=True))
    return s.select(s.le(x, 0.0), -math.inf, value)


@through_double
def bessel_y0(s: InstructionBuilder, x: Scalar) -> Scalar:
    """The Bessel function of the second kind, of order 0; NaN where x is infinite."""
    return _y(s, x, 0)


@through_double
def bessel_y1(s: InstructionBuilder, x: Scalar) -> Scalar:
    """The Bessel function of the second kind, of order 1; NaN where x is infinite."""
    return _y(s, x, 1)
