"""Reduction of an angle modulo pi/2, over the whole range of float32 and float64, without branches.

Up to a bound, Cody and Waite's: k = round(x * 2/pi), and x - k*(pi/2) in three pieces of pi/2, exactly
where it matters. Beyond it, Payne and Hanek's ("Radian reduction for trigonometric functions", ACM
SIGNUM Newsletter 18, 1983): x = m * 2**e with an integer m, of which only those bits of 2/pi count
that leave the product smaller than 4; they are picked out of constant words by a barrel shifter, which
takes the place of a table. Both are computed for every element and one is selected.

This module owns the reduction; the functions of an angle are in `ir/math_trig.py`.
"""

from __future__ import annotations

from . import dtypes as dt
from .data_class import data_class
from .instructions import InstructionBuilder, Scalar
from .math_core import Double, fast_two_sum, float_of, format_of, round_scaled, two_product, two_sum

__all__ = ["reduce_angle"]

_TWO_OVER_PI = 0.6366197723675814
# pi/2 as a sum of three floats
_HALF_PI = {
    dt.float32: (1.5707964, -4.371139e-08, -1.7151245e-15),
    dt.float64: (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}
# The first bits of 2/pi after the binary point (OEIS A060294).
_TWO_OVER_PI_BITS = int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424DD2E006492EEA09D1921C"
    "FE1DEB1CB129A73EE88235F52EBB4484E99C7026B45F7E413991D639835339F49C845F8BBDF9283B1FF897FFDE05980F"
    "EF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5F17B3D0739F78A5292EA6BFB5FB11F8D5D08"
    "56033046FC7B6BAB",
    16)
_BIT_COUNT = 1216


@data_class(frozen=True)
class _Words:
    """How the bits of 2/pi are cut into words: leading zero bits, count of words, and the bound of use."""

    padding: int
    count: int
    bound: float

    def words(self, width: int) -> list[int]:
        total = self.count * width
        bits = _TWO_OVER_PI_BITS >> (_BIT_COUNT + self.padding - total)
        return [(bits >> (total - width * (i + 1))) & ((1 << width) - 1) for i in range(self.count)]


_WORDS = {dt.float32: _Words(8, 7, 2.0**17), dt.float64: _Words(52, 19, 2.0**30)}


def reduce_angle(s: InstructionBuilder, x: Scalar) -> tuple[Double, Scalar]:
    """((r, r_low), q) with x = q*(pi/2) + r + r_low modulo 2 pi and |r| <= pi/4, nearly; q is a signed integer.

    Where x is not finite the result means nothing.
    """
    (near, near_low), near_q = _reduce_moderate(s, x)
    (far, far_low), far_q = _reduce_huge(s, x)
    huge = s.ge(s.abs(x), _WORDS[x.dtype].bound)
    r = s.select(huge, far, near), s.select(huge, far_low, near_low)
    return r, s.select(huge, far_q, near_q)


def _reduce_moderate(s: InstructionBuilder, x: Scalar) -> tuple[Double, Scalar]:
    first, second, third = _HALF_PI[x.dtype]
    k, q = round_scaled(s, x, _TWO_OVER_PI)
    r = s.fma(k, -first, x)  # exact: the result is below 1 and a multiple of x's last bit or 2**-mantissa
    p, p_low = two_product(s, k, s.const(second, x.dtype))
    r, r_low = two_sum(s, r, -p)
    return fast_two_sum(s, r, r_low - s.fma(k, third, p_low)), q


def _reduce_huge(s: InstructionBuilder, x: Scalar) -> tuple[Double, Scalar]:
    fmt, plan = format_of(x), _WORDS[x.dtype]
    width = 8 * fmt.unsigned.size
    bits = s.bitcast(s.abs(x), fmt.unsigned)
    hidden = 1 << fmt.mantissa
    m = s.or_(s.and_(bits, hidden - 1), hidden)
    # x = m * 2**e; the bit of 2/pi that gives 2 when multiplied by 2**e has the index e - 2
    index = s.shr(bits, fmt.mantissa) - (fmt.bias + fmt.mantissa + 2 - plan.padding)
    w = _window(s, [s.const(v, fmt.unsigned) for v in plan.words(width)], index, width)
    high, mid = _product(s, m, w)
    quarter = s.shr(high + (1 << (width - 3)), width - 2)
    frac = s.bitcast(s.or_(s.shl(high, 2), s.shr(mid, width - 2)), fmt.signed)
    turn, turn_low = _fraction(s, frac, s.shl(mid, 2), x)
    p, p_low = two_product(s, turn, s.const(_HALF_PI[x.dtype][0], x.dtype))
    p_low = s.fma(turn, _HALF_PI[x.dtype][1], s.fma(turn_low, _HALF_PI[x.dtype][0], p_low))
    r, r_low = fast_two_sum(s, p, p_low)
    negative = s.lt(x, 0.0)
    q = s.bitcast(quarter, fmt.signed)
    return (s.select(negative, -r, r), s.select(negative, -r_low, r_low)), s.select(negative, -q, q)


def _window(s: InstructionBuilder, words: list[Scalar], index: Scalar, width: int) -> list[Scalar]:
    """Three words of `words`, read as one string of bits, from bit `index` on."""
    step = 1 << ((len(words) - 4).bit_length() - 1)
    word = s.shr(index, width.bit_length() - 1)
    while step:
        taken = s.ne(s.and_(word, step), 0)
        keep = 3 + step
        words = [s.select(taken, words[i + step], words[i]) for i in range(min(keep, len(words) - step))]
        step //= 2
    count = s.and_(index, width - 1)
    rest = (width - 1) - count
    # two shifts for the second word, since a shift by the whole width is none
    return [s.or_(s.shl(words[i], count), s.shr(s.shr(words[i + 1], 1), rest)) for i in range(3)]


def _product(s: InstructionBuilder, m: Scalar, w: list[Scalar]) -> tuple[Scalar, Scalar]:
    """The upper two words of m * w, modulo three words."""
    high = m * w[0] + _mulhi(s, m, w[1])
    middle = m * w[1]
    mid = middle + _mulhi(s, m, w[2])
    carry = s.select(s.lt(mid, middle), s.const(1, m.dtype), s.const(0, m.dtype))
    return high + carry, mid


def _mulhi(s: InstructionBuilder, x: Scalar, y: Scalar) -> Scalar:
    """High half of a product; for uint64 from 32-bit halves, which vectorise where a 128-bit product does not."""
    if x.dtype is dt.uint32:
        return s.mulhi(x, y)
    low = 0xFFFFFFFF
    x1, x0, y1, y0 = s.shr(x, 32), s.and_(x, low), s.shr(y, 32), s.and_(y, low)
    middle = x1 * y0 + s.shr(x0 * y0, 32)
    other = x0 * y1 + s.and_(middle, low)
    return x1 * y1 + s.shr(middle, 32) + s.shr(other, 32)


def _fraction(s: InstructionBuilder, high: Scalar, low: Scalar, x: Scalar) -> Double:
    """A signed word and an unsigned one below it, as a double word within [-1/2, 1/2)."""
    signed = high.dtype
    if x.dtype is dt.float32:
        a = s.cast(s.shr(high, 8), x.dtype) * 2.0**-24
        b = s.cast(s.or_(s.shl(s.and_(high, 0xFF), 23), s.bitcast(s.shr(low, 9), signed)), x.dtype) * 2.0**-55
        return fast_two_sum(s, a, b)
    a = float_of(s, s.shr(high, 12), x.dtype) * 2.0**-52
    b = s.or_(s.shl(s.and_(high, 0xFFF), 39), s.bitcast(s.shr(low, 25), signed))
    c = s.bitcast(s.and_(low, (1 << 25) - 1), signed)
    b, b_low = fast_two_sum(s, float_of(s, b, x.dtype) * 2.0**-103, float_of(s, c, x.dtype) * 2.0**-128)
    a, a_low = fast_two_sum(s, a, b)
    return a, a_low + b_low
