"""The derivatives of digamma, of any order that is known when the body is recorded.

float32 is computed in float64 and rounded once. The asymptotic series beyond 12 + n, the recurrence below
it, the reflection formula for negative numbers: DLMF sections 5.11 and 5.15 (https://dlmf.nist.gov/5.15).
Near their zeros at negative numbers the error is small beside the terms that cancel. Bodies take real values.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from . import dtypes as dt
from .instructions import InstructionBuilder, Scalar
from .math_core import poly
from .math_gamma import _sin_cos_pi

if TYPE_CHECKING:
    from fractions import Fraction

__all__ = ["polygamma"]

_TERMS = 10  # of the asymptotic series; the first one left out is below 2**-58 of the sum


def _bernoulli(count: int) -> list[Fraction]:
    """B(0) to B(count - 1), by their defining recurrence."""
    from fractions import Fraction
    numbers = [Fraction(1)]
    for m in range(1, count):
        numbers.append(-sum(math.comb(m + 1, k) * b for k, b in enumerate(numbers)) / Fraction(m + 1))
    return numbers


def _cotangent(order: int) -> list[int]:
    """P with (d/dx)**order of cot(x) = P(cot(x)), from the constant term upwards: d cot = -(1 + cot**2)."""
    p = [0, 1]
    for _ in range(order):
        slope = [i * c for i, c in enumerate(p)][1:]
        p = [-(a + b) for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    return p


def _power(x: Scalar, n: int) -> Scalar:
    value = x
    for _ in range(n - 1):
        value = value * x
    return value


def _size_positive(s: InstructionBuilder, x: Scalar, n: int) -> Scalar:
    """abs(polygamma) for x > 0: a sum of positive terms."""
    steps = 12 + n
    large = s.ge(x, float(steps))
    below = s.const(0.0, x.dtype)
    for k in range(steps):
        below = below + 1.0 / _power(x + float(k), n + 1)
    u = s.select(large, x, x + float(steps))
    numbers = _bernoulli(2 * _TERMS + 1)
    # times u**n / (n-1)!
    series = [float(numbers[2 * k] * math.comb(2 * k + n - 1, 2 * k)) for k in range(_TERMS + 1)]
    inverse = 1.0 / u
    above = poly(s, inverse * inverse, series) + inverse * (0.5 * n)
    above = above * _power(inverse, n) * float(math.factorial(n - 1))
    return s.select(large, above, below * float(math.factorial(n)) + above)


def polygamma(s: InstructionBuilder, x: Scalar, *, order: int) -> Scalar:
    """Derivative number `order` >= 1 of digamma; at 0, -1, ... infinite, or NaN where the sign is undecided."""
    wide = s.cast(x, dt.float64)
    mirrored = s.le(wide, 0.0)
    size = _size_positive(s, s.select(mirrored, 1.0 - wide, wide), order)
    sign = 1.0 if order % 2 else -1.0
    sine, cosine = _sin_cos_pi(s, wide)
    turned = poly(s, cosine / sine, [float(c) for c in _cotangent(order)]) * -(math.pi ** (order + 1))
    # polygamma(x) = -pi (d/dx)**n cot(pi x) + (-1)**n polygamma(1 - x)
    value = s.select(mirrored, turned - size, size * sign)
    if order % 2 == 0:
        pole = s.and_(s.lt(wide, 0.0), s.eq(s.rint(wide), wide))
        value = s.select(pole, math.nan, value)
    return s.cast(value, x.dtype)
