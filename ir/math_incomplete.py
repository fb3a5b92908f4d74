"""The incomplete gamma function's two ratios with their derivatives by the first parameter, and the incomplete beta
function's.

All is computed in float64, and rounded once for float32. DLMF sections 8.7 (the series), 8.9 (the continued fraction),
8.12 (the expansion for large parameters; Temme, "A set of algorithms for the incomplete gamma functions", Prob. Eng.
Inform. Sci. 8, 1994) and 8.17; https://dlmf.nist.gov/8. Series and fractions have as many terms as the slowest point of
their part of the plane needs. Bodies take real values.

A derivative is that of the formula that gives the value: the formulas take `Number`s, which are scalars, or scalars
with a slope.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias, TypeVar

from . import dtypes as dt
from . import special_tables as tables
from .instructions import InstructionBuilder, Scalar
from .math_core import Double, fitted, pick, poly, two_product, two_sum
from .math_erf import erf_inner, erfc_over_exp
from .math_exp import exp, expm1
from .math_gamma import digamma, stirling_rest
from .math_log import log, log_double

__all__ = ["betainc", "igamma", "igamma_grad_a", "igammac"]

_LARGE = 25.0  # parameters for which Temme's expansion serves
_WIDE = 1.25  # where the continued fraction begins, for small parameters
_SERIES = 80
_FRACTION = 72
_SMALL_SERIES = 20
_BETA_FRACTION = 200


class Dual:
    """A scalar with its derivative by one parameter."""

    def __init__(self, value: Scalar, slope: Scalar) -> None:
        self.value, self.slope = value, slope

    def __add__(self, o: Number | float) -> Dual:
        return Dual(self.value + o.value, self.slope + o.slope) if isinstance(o, Dual) else \
            Dual(self.value + o, self.slope)

    __radd__ = __add__

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.slope)

    def __sub__(self, o: Number | float) -> Dual:
        return self + -o

    def __rsub__(self, o: Scalar | float) -> Dual:
        return -self + o

    def __mul__(self, o: Number | float) -> Dual:
        if isinstance(o, Dual):
            return Dual(self.value * o.value, self.slope * o.value + self.value * o.slope)
        return Dual(self.value * o, self.slope * o)

    __rmul__ = __mul__

    def __truediv__(self, o: Number | float) -> Dual:
        if not isinstance(o, Dual):
            return Dual(self.value / o, self.slope / o)
        quotient = self.value / o.value
        return Dual(quotient, (self.slope - quotient * o.slope) / o.value)

    def __rtruediv__(self, o: Scalar | float) -> Dual:
        quotient = o / self.value
        return Dual(quotient, -quotient * self.slope / self.value)


Number: TypeAlias = Scalar | Dual
N = TypeVar("N", Scalar, Dual)


def _value(x: Number) -> Scalar:
    return x.value if isinstance(x, Dual) else x


def _quotient(x: Scalar, y: N) -> N:
    """x / y; scalars do not know of numbers with a slope."""
    return y.__rtruediv__(x)


def _select(s: InstructionBuilder, cond: Scalar, x: N, y: N) -> N:
    if isinstance(x, Dual):
        assert isinstance(y, Dual)
        return Dual(s.select(cond, x.value, y.value), s.select(cond, x.slope, y.slope))
    return s.select(cond, x, y)


def _poly(s: InstructionBuilder, x: N, coefficients: Sequence[float]) -> N:
    if not isinstance(x, Dual):
        return poly(s, x, coefficients)
    slopes = [k * c for k, c in enumerate(coefficients)][1:] or [0.0]
    return Dual(poly(s, x.value, coefficients), poly(s, x.value, slopes) * x.slope)


def _repeat(s: InstructionBuilder, count: int, step, *values: N) -> tuple[N, ...]:  # type: ignore[no-untyped-def]
    """`s.repeat` for numbers of either kind."""
    if not isinstance(values[0], Dual):
        return s.repeat(count, step, *values)

    def flat(numbers):  # type: ignore[no-untyped-def]
        return [part for n in numbers for part in (n.value, n.slope)]

    def paired(parts):  # type: ignore[no-untyped-def]
        return tuple([Dual(v, d) for v, d in zip(parts[::2], parts[1::2], strict=True)])
    return paired(s.repeat(count, lambda n, *parts: flat(step(n, *paired(parts))), *flat(values)))


# -- what the gamma function contributes ---------------------------------------------------------------
def _reciprocal_gamma(s: InstructionBuilder, a: Scalar) -> Scalar:
    """1 / gamma(1 + a) for 0 <= a < 8."""
    whole = s.floor(a)
    part = a - whole
    product = s.const(1.0, a.dtype)
    for k in range(1, 8):
        product = s.select(s.ge(whole, float(k)), product * (part + float(k)), product)
    return fitted(s, part, tables.RECIPROCAL_GAMMA) / product


def _gamma_over_power(s: InstructionBuilder, a: Scalar) -> Scalar:
    """gamma(1 + a) / (a/e)**a for a > 0."""
    far = s.sqrt(a * (2 * math.pi)) * exp(s, stirling_rest(s, a))
    low = s.minimum(a, 8.0)
    near = exp(s, low - low * log(s, low)) / _reciprocal_gamma(s, low)
    return s.select(s.lt(a, 8.0), near, far)


def _times_log(s: InstructionBuilder, a: Scalar, x: Double) -> Double:
    """a log(x/a) in two words, as sums of such terms may cancel."""
    ratio = x[0] / a
    residual = (s.fma(-ratio, a, x[0]) + x[1]) / a
    log_high, log_low = log_double(s, ratio)
    high, low = two_product(s, a, log_high)
    return high, s.fma(a, log_low + residual / ratio, low)


def _power_of_ratio(s: InstructionBuilder, a: Scalar, x: Scalar) -> Scalar:
    """(x/a)**a exp(a - x)."""
    return _exp_of_sum(s, _times_log(s, a, (x, s.const(0.0, x.dtype))), two_sum(s, a, -x))


def _exp_of_sum(s: InstructionBuilder, x: Double, y: Double) -> Scalar:
    high, low = two_sum(s, x[0], y[0])
    size = exp(s, high)
    return s.fma(size, low + (x[1] + y[1]), size)


# -- the incomplete gamma function --------------------------------------------------------------------
def _by_series(s: InstructionBuilder, a: N, x: Scalar, density: N) -> N:
    """P, where x is small beside a, or small."""
    def step(n: Scalar, term: N, total: N) -> tuple[N, N]:
        term = term * _quotient(x, a + (n + 1.0))
        return term, total + term
    one = a * 0.0 + 1.0
    _, total = _repeat(s, _SERIES, step, one, one)
    return density * total


def _by_fraction(s: InstructionBuilder, a: N, x: Scalar, density: N) -> N:
    """Q, where x is large beside a and not small, from the innermost fraction outwards (DLMF 8.9.2 contracted)."""
    def step(n: Scalar, below: N) -> tuple[N]:
        k = float(_FRACTION) - n
        return (-a + (x + (k * 2.0 - 1.0)) + (a - k) * k / below,)
    (below,) = _repeat(s, _FRACTION, step, -a + (x + (2.0 * _FRACTION + 1.0)))
    return density * a / below


def _by_expansion(s: InstructionBuilder, a: N, x: Scalar, power: N) -> tuple[N, N]:
    """P and Q for a >= 25 and x between a/2 and 2a; `power` is (x/a)**a exp(a - x), which is exp(-y**2)."""
    distance = (-a + x) / a
    # eta**2 / 2 = distance - log(1 + distance), without cancellation; the logarithm is 2 atanh(d / (2 + d))
    inverse = 1.0 / (distance + 2.0)
    t = distance * inverse
    bend = inverse - t * inverse * inverse * 2.0 * _poly(s, t * t, [1.0 / (2 * k + 3) for k in range(18)])
    eta = distance * _sqrt(s, bend * 2.0)
    inner = 1.0 / a
    rows = [_poly(s, eta, row) for row in tables.TEMME]
    total = rows[-1]
    for row in rows[-2::-1]:
        total = total * inner + row
    rest = power * total / _sqrt(s, a * (2 * math.pi))
    tail = _half_erfc(s, eta * _sqrt(s, a * 0.5), power)
    above = s.gt(_value(distance), 0.0)
    return (_select(s, above, 1.0 - tail, tail) - rest, _select(s, above, tail, 1.0 - tail) + rest)


def _sqrt(s: InstructionBuilder, x: N) -> N:
    if not isinstance(x, Dual):
        return s.sqrt(x)
    root = s.sqrt(x.value)
    return Dual(root, x.slope * 0.5 / root)


def _half_erfc(s: InstructionBuilder, y: N, power: N) -> N:
    """erfc(|y|) / 2 with exp(-y**2) given, which is more precise than a function of y can be."""
    size = s.abs(_value(y))
    value = s.select(s.lt(size, 0.5), 0.5 - erf_inner(s, size) * 0.5, _value(power) * erfc_over_exp(s, size) * 0.5)
    if not isinstance(y, Dual):
        return value
    slope = _value(power) * y.slope * (-1 / math.sqrt(math.pi))
    return Dual(value, s.select(s.lt(y.value, 0.0), -slope, slope))


def _small_complement(s: InstructionBuilder, a: Scalar, x: Scalar) -> Scalar:
    """Q for a < 1 and x < 1.25, where 1 - P would cancel (DLMF 8.7.3 without its 1)."""
    a = s.minimum(a, 1.0)
    exponent = s.fma(a, log(s, x), -(a * (1.0 - a) * fitted(s, a, tables.LOG_GAMMA)))
    power = expm1(s, exponent)

    def step(n: Scalar, term: Scalar, total: Scalar) -> tuple[Scalar, Scalar]:
        term = term * (-x / (n + 1.0))
        return term, total + term / (a + (n + 1.0))
    _, total = s.repeat(_SMALL_SERIES, step, s.const(1.0, x.dtype), s.const(0.0, x.dtype))
    return -power - (power + 1.0) * a * total


def _ratios(s: InstructionBuilder, a: N, x: Scalar, power: N, density: N) -> tuple[N, N]:
    """P and Q for a > 0 and x > 0, both finite.

    Args:
        power: (x/a)**a exp(a - x); density: x**a exp(-x) / gamma(1 + a).
    """
    at = _value(a)
    middle = s.and_(s.ge(at, _LARGE), s.and_(s.ge(x, at * 0.5), s.le(x, at * 2.0)))
    low = s.or_(s.le(x, at), s.lt(x, _WIDE))
    p, q = _by_series(s, a, x, density), _by_fraction(s, a, x, density)
    near_p, near_q = _by_expansion(s, a, x, power)
    return (_select(s, middle, near_p, _select(s, low, p, 1.0 - q)),
            _select(s, middle, near_q, _select(s, low, 1.0 - p, q)))


def _limits(s: InstructionBuilder, a: Scalar, x: Scalar, value: Scalar, at_zero: float, at_infinity: float) -> Scalar:
    """What P and Q are where an operand is 0, infinite or of no meaning; a is infinite like x is 0."""
    value = s.select(s.or_(s.eq(x, 0.0), s.eq(a, math.inf)), at_zero, value)
    value = s.select(s.eq(x, math.inf), s.select(s.eq(a, math.inf), math.nan, s.const(at_infinity, x.dtype)), value)
    wrong = s.or_(s.le(a, 0.0), s.lt(x, 0.0))
    return s.select(s.or_(wrong, s.or_(s.isnan(a), s.isnan(x))), math.nan, value)


def igamma(s: InstructionBuilder, a: Scalar, x: Scalar) -> Scalar:
    """P(a, x): the share of gamma(a) that its integral has up to x."""
    b, y = s.cast(a, dt.float64), s.cast(x, dt.float64)
    power = _power_of_ratio(s, b, y)
    value, _ = _ratios(s, b, y, power, power / _gamma_over_power(s, b))
    return s.cast(_limits(s, b, y, value, 0.0, 1.0), a.dtype)


def igammac(s: InstructionBuilder, a: Scalar, x: Scalar) -> Scalar:
    """Q(a, x) = 1 - P(a, x)."""
    b, y = s.cast(a, dt.float64), s.cast(x, dt.float64)
    power = _power_of_ratio(s, b, y)
    _, value = _ratios(s, b, y, power, power / _gamma_over_power(s, b))
    small = s.and_(s.lt(b, 1.0), s.lt(y, _WIDE))
    value = s.select(small, _small_complement(s, b, y), value)
    return s.cast(_limits(s, b, y, value, 1.0, 0.0), a.dtype)


def igamma_grad_a(s: InstructionBuilder, a: Scalar, x: Scalar) -> Scalar:
    """The derivative of P(a, x) by a."""
    b, y = s.cast(a, dt.float64), s.cast(x, dt.float64)
    power = _power_of_ratio(s, b, y)
    density = power / _gamma_over_power(s, b)
    p, _ = _ratios(s, Dual(b, s.const(1.0, dt.float64)), y, Dual(power, power * log(s, y / b)),
                   Dual(density, density * (log(s, y) - digamma(s, b + 1.0))))
    return s.cast(_limits(s, b, y, p.slope, 0.0, 0.0), a.dtype)


# -- the incomplete beta function ---------------------------------------------------------------------
def _beta_density(s: InstructionBuilder, a: Scalar, b: Scalar, x: Scalar, y: Double) -> Scalar:
    """x**a y**b / (a B(a, b)) with y = 1 - x: powers of how far x and y are from where they are largest."""
    both, both_low = two_sum(s, a, b)
    first, first_low = two_product(s, x, both)
    second, second_low = two_product(s, y[0], both)
    powers = _exp_of_sum(s, _times_log(s, a, (first, s.fma(x, both_low, first_low))),
                         _times_log(s, b, (second, s.fma(y[0], both_low, s.fma(y[1], both, second_low)))))
    whole = _gamma_over_power(s, both) / (_gamma_over_power(s, a) * _gamma_over_power(s, b))
    return powers * whole * (b / both)


def _beta_fraction(s: InstructionBuilder, a: Scalar, b: Scalar, x: Scalar) -> Scalar:
    """The continued fraction of DLMF 8.17.22, from the innermost fraction outwards."""
    def step(n: Scalar, below: Scalar) -> tuple[Scalar]:
        m = float(_BETA_FRACTION) - n
        at = s.fma(m, 2.0, a)
        even = m * (b - m) * x / ((at - 1.0) * at)
        odd = (a + m) * (a + b + m) * x / (at * (at + 1.0))
        return (1.0 + even / (1.0 - odd / below),)
    (below,) = s.repeat(_BETA_FRACTION, step, s.const(1.0, x.dtype))
    return 1.0 / (1.0 - (a + b) * x / (a + 1.0) / below)


def betainc(s: InstructionBuilder, a: Scalar, b: Scalar, x: Scalar) -> Scalar:
    """I_x(a, b): the share of B(a, b) that its integral has up to x."""
    dtype = x.dtype
    a, b, x = (s.cast(v, dt.float64) for v in (a, b, x))
    # where b is small so is the value, but for x close to 1, and 1 less a part would cancel
    close = s.gt(x, pick(s, s.lt(b, 0.05), 0.997, 0.9, dt.float64))
    turned = s.and_(s.gt(x * (a + b + 2.0), a + 1.0), s.or_(s.gt(b, 1.0), close))
    y, y_low = two_sum(s, s.const(1.0, dt.float64), -x)
    density = _beta_density(s, a, b, x, (y, y_low))
    first, second, at = s.select(turned, b, a), s.select(turned, a, b), s.select(turned, y, x)
    part = density * s.select(turned, a / b, 1.0) * _beta_fraction(s, first, second, at)
    value = s.select(turned, 1.0 - part, part)
    value = s.select(s.eq(x, 0.0), 0.0, s.select(s.eq(x, 1.0), 1.0, value))
    outside = s.or_(s.lt(x, 0.0), s.gt(x, 1.0))
    wrong = s.or_(s.or_(s.le(a, 0.0), s.le(b, 0.0)), s.or_(s.eq(a, math.inf), s.eq(b, math.inf)))
    missing = s.or_(s.or_(s.isnan(a), s.isnan(b)), s.isnan(x))
    return s.cast(s.select(s.or_(s.or_(outside, wrong), missing), math.nan, value), dtype)
