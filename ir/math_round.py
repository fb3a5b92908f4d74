"""Division with a remainder, rounding, signs and neighbours: the exact functions.

Division follows TensorFlow: `floordiv` and `floormod` have Python's rule for signs, `truncatediv` and
`truncatemod` have C's. A zero integer divisor gives what `idiv` and `irem` give; ops that raise for it
add the check themselves.
"""

from __future__ import annotations

import math

from . import dtypes as dt
from .instructions import InstructionBuilder, Scalar
from .math_core import format_of

__all__ = ["floordiv", "floormod", "nextafter", "round", "sign", "truncatediv", "truncatemod"]

# Bits of the quotient that one step of the remainder settles, three less than a float64 holds.
_STEP_BITS = 50
# A float32 quotient stays below 2**278; 20 steps are exact for float64 quotients below 2**980.
_STEPS = {dt.float32: 6, dt.float64: 20}


def truncatediv(s: InstructionBuilder, x: Scalar, y: Scalar) -> Scalar:
    """x / y rounded toward zero."""
    return s.idiv(x, y) if x.dtype.is_integer else s.trunc(x / y)


def floordiv(s: InstructionBuilder, x: Scalar, y: Scalar) -> Scalar:
    """x / y rounded down; for floats the quotient is rounded before."""
    if not x.dtype.is_integer:
        return s.floor(x / y)
    quotient = s.idiv(x, y)
    if x.dtype.is_unsigned:
        return quotient
    return s.select(_signs_differ(s, s.irem(x, y), y), quotient - 1, quotient)


def floormod(s: InstructionBuilder, x: Scalar, y: Scalar) -> Scalar:
    """Remainder of x / y with the sign of y."""
    rest = truncatemod(s, x, y)
    if x.dtype.is_unsigned:
        return rest
    return s.select(_signs_differ(s, rest, y), rest + y, rest)


def _signs_differ(s: InstructionBuilder, rest: Scalar, y: Scalar) -> Scalar:
    return s.and_(s.ne(rest, 0), s.xor(s.lt(rest, 0), s.lt(y, 0)))


def truncatemod(s: InstructionBuilder, x: Scalar, y: Scalar) -> Scalar:
    """Remainder of x / y with the sign of x, exact.

    For float64 the quotient must stay below 2**980 and |y| be at least 2**-1000, or y be infinite;
    beyond, the result is NaN. x or y NaN, x infinite and y zero give NaN.
    """
    if x.dtype.is_integer:
        return s.irem(x, y)
    size, divisor = s.cast(s.abs(x), dt.float64), s.cast(s.abs(y), dt.float64)
    inverse = 1.0 / divisor
    rest = size
    for _ in range(_STEPS[x.dtype]):
        rest = _reduce(s, rest, divisor, inverse)
    rest = s.select(s.lt(rest, 0.0), rest + divisor, rest)
    usual = s.and_(s.ge(divisor, 2.0**-1000), s.lt(size * inverse, 2.0**980))
    rest = s.select(usual, rest, math.nan)
    # a smaller dividend is its own remainder; NaN compares false
    rest = s.select(s.lt(size, divisor), size, rest)
    return s.copysign(s.cast(rest, x.dtype), x)


def _reduce(s: InstructionBuilder, rest: Scalar, divisor: Scalar, inverse: Scalar) -> Scalar:
    """rest less the multiple of divisor that a quotient rounded to an integer and to 50 bits gives.

    The difference is at most 0.63 units of the quotient's last bit times divisor, so it fits a float and
    FMA gives it exactly. It may be negative.
    """
    guess = rest * inverse
    dropped = 53 - _STEP_BITS
    bits = s.bitcast(guess, dt.int64) + (1 << (dropped - 1))
    cut = s.bitcast(s.and_(bits, -1 << dropped), dt.float64)
    quotient = s.select(s.lt(s.abs(guess), 2.0**_STEP_BITS), s.rint(guess), cut)
    return s.fma(-quotient, divisor, rest)


def round(s: InstructionBuilder, x: Scalar) -> Scalar:
    """Nearest integer, ties to even; integers are themselves."""
    return x if x.dtype.is_integer else s.rint(x)


def sign(s: InstructionBuilder, x: Scalar) -> Scalar:
    """-1, 0 or 1; a float zero and NaN are themselves."""
    one = s.const(1, x.dtype)
    if x.dtype.is_unsigned:
        return s.select(s.ne(x, 0), one, x)
    return s.select(s.gt(x, 0), one, s.select(s.lt(x, 0), s.const(-1, x.dtype), x))


def nextafter(s: InstructionBuilder, x: Scalar, y: Scalar) -> Scalar:
    """The float next to x towards y; y where they are equal, NaN where either is NaN."""
    fmt = format_of(x)
    bits = s.bitcast(x, fmt.signed)
    one = s.const(1, fmt.signed)
    # away from zero counts the bits up, towards it down
    outward = s.not_(s.xor(s.lt(x, y), s.gt(x, 0.0)))
    moved = s.bitcast(bits + s.select(outward, one, -one), x.dtype)
    smallest = s.copysign(s.bitcast(one, x.dtype), y)
    value = s.select(s.eq(x, 0.0), smallest, moved)
    value = s.select(s.eq(x, y), y, value)
    return s.select(s.or_(s.isnan(x), s.isnan(y)), math.nan, value)
