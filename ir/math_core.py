"""The parts that mathematical bodies share: float formats, polynomials, powers of two, double-word arithmetic.

A *double word* is an unevaluated sum of two floats `(high, low)`, which carries a value to about twice
the precision. The error-free steps are Knuth's and Dekker's; see Muller et al., "Handbook of
Floating-Point Arithmetic" (2nd ed., 2018), chapters 4 and 14. Polynomial coefficients are listed from
the constant term upwards; the comment at each says on which interval and how well it fits. All were
fitted for this library (Remez exchange, coefficients rounded one by one with the rest refitted).

This module owns those helpers only; the functions are in the other `ir/math_*.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from . import dtypes as dt
from .data_class import data_class
from .dtypes import DType
from .instructions import InstructionBuilder, Scalar

__all__ = ["Double", "Fit", "Format", "divide_double", "fast_two_sum", "fitted", "float_of", "format_of", "pick",
           "poly", "pow2", "round_scaled", "scale", "split_binary", "through_double", "two_product", "two_sum"]

Double = tuple[Scalar, Scalar]


@data_class(frozen=True)
class Format:
    """The layout of a binary float: significand bits stored, exponent bias, the integers of its width."""

    mantissa: int
    bias: int
    signed: DType
    unsigned: DType

    @property
    def tiny(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def magic(self) -> float:
        """1.5 * 2**mantissa: adding it rounds to an integer that is left in the low bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def magic_bits(self) -> int:
        """The bits of `magic`."""
        return ((self.bias + self.mantissa) << self.mantissa) | (1 << (self.mantissa - 1))


_FORMATS = {dt.float32: Format(23, 127, dt.int32, dt.uint32), dt.float64: Format(52, 1023, dt.int64, dt.uint64)}


def format_of(x: Scalar) -> Format:
    """The Format of a float value. Raises TypeError for any other type."""
    parameters = _FORMATS.get(x.dtype)
    if parameters is None:
        raise TypeError(f"expected a value of float32 or float64, got {x.dtype.name}")
    return parameters


def through_double(body: Callable[..., Scalar]) -> Callable[..., Scalar]:
    """`body`, with float32 (complex64) operands computed in float64 (complex128) and the result rounded once."""
    @functools.wraps(body)
    def wrapped(s: InstructionBuilder, *operands: Scalar) -> Scalar:
        wide = [s.cast(v, dt.complex128 if v.dtype.is_complex else dt.float64) for v in operands]
        return s.cast(body(s, *wide), operands[0].dtype)
    return wrapped


def poly(s: InstructionBuilder, x: Scalar, coefficients: Sequence[float]) -> Scalar:
    """sum(c[i] * x**i), by Horner's rule with FMA."""
    total = s.const(coefficients[-1], x.dtype)
    for c in reversed(coefficients[:-1]):
        total = s.fma(total, x, c)
    return total


@data_class(frozen=True)
class Fit:
    """A polynomial for an interval, by powers of its argument moved to [-1, 1]."""

    low: float
    high: float
    coefficients: tuple[float, ...]


def fitted(s: InstructionBuilder, x: Scalar, fit: Fit) -> Scalar:
    """The value of a fit at `x`, which is of no use outside its interval."""
    width = fit.high - fit.low
    return poly(s, s.fma(x, 2.0 / width, -(fit.high + fit.low) / width), fit.coefficients)


def pick(s: InstructionBuilder, cond: Scalar, x: float, y: float, dtype: DType) -> Scalar:
    """One of two constants."""
    return s.select(cond, s.const(x, dtype), s.const(y, dtype))


def round_scaled(s: InstructionBuilder, x: Scalar, factor: float) -> tuple[Scalar, Scalar]:
    """`x * factor` rounded to an integer, as a float and as a signed integer; |x*factor| < 2**(mantissa-2)."""
    fmt = format_of(x)
    shifted = s.fma(x, factor, fmt.magic)
    return shifted - fmt.magic, s.bitcast(shifted, fmt.signed) - fmt.magic_bits


def pow2(s: InstructionBuilder, k: Scalar, dtype: DType) -> Scalar:
    """2.0**k for an integer k between the exponents of the smallest and largest normal number."""
    fmt = _FORMATS[dtype]
    return s.bitcast(s.shl(k + fmt.bias, fmt.mantissa), dtype)


def float_of(s: InstructionBuilder, k: Scalar, dtype: DType) -> Scalar:
    """A small signed integer as the float of its width, without the 64-bit conversion that few machines have."""
    if dtype is dt.float32:
        return s.cast(k, dtype)
    fmt = _FORMATS[dtype]
    return s.bitcast(k + fmt.magic_bits, dtype) - fmt.magic


def scale(s: InstructionBuilder, x: Scalar, k: Scalar) -> Scalar:
    """x * 2**k rounded once, for |k| up to twice the exponent range and x near 1: overflows and underflows right."""
    half = s.shr(k, 1)
    return x * pow2(s, half, x.dtype) * pow2(s, k - half, x.dtype)


def split_binary(s: InstructionBuilder, x: Scalar, low: float) -> tuple[Scalar, Scalar]:
    """(m, k) with x = m * 2**k and low <= m < 2*low, for positive finite x, subnormals included; k is an integer."""
    fmt = format_of(x)
    small = s.lt(x, fmt.tiny)
    bits = s.bitcast(s.select(small, x * 2.0 ** (fmt.mantissa + 1), x), fmt.signed)
    k = s.shr(bits - _bits_of(low, x.dtype), fmt.mantissa)
    m = s.bitcast(bits - s.shl(k, fmt.mantissa), x.dtype)
    return m, s.select(small, k - (fmt.mantissa + 1), k)


def _bits_of(value: float, dtype: DType) -> int:
    return int(dtype.np.type(value).view(_FORMATS[dtype].signed.np))


# -- double words -------------------------------------------------------------------------------------
def fast_two_sum(s: InstructionBuilder, a: Scalar, b: Scalar) -> Double:
    """a + b exactly, where |a| >= |b| or a is 0."""
    high = a + b
    return high, b - (high - a)


def two_sum(s: InstructionBuilder, a: Scalar, b: Scalar) -> Double:
    """a + b exactly."""
    high = a + b
    part = high - a
    return high, (a - (high - part)) + (b - part)


def two_product(s: InstructionBuilder, a: Scalar, b: Scalar) -> Double:
    """a * b exactly."""
    high = a * b
    return high, s.fma(a, b, -high)


def divide_double(s: InstructionBuilder, x: Double, y: Double) -> Scalar:
    """x / y rounded almost correctly, with one division; for quotients and 1/y in the normal range."""
    inverse = 1.0 / y[0]
    q = x[0] * inverse
    residual = s.fma(-q, y[0], x[0]) + s.fma(-q, y[1], x[1])
    return s.fma(residual, inverse, q)
