"""TensorFlow's numbers out of Philox's words, as scalar bodies.

What becomes of a block's four words is TensorFlow's (`tsl/lib/random/random_distributions.h` describes it): fractions
are the low bits of words, normal numbers Box and Muller's of these, with a first fraction that is not below 1e-7. In
float32 TensorFlow calls the C library for the logarithm, sine and cosine. glibc computes these in float64 with short
polynomials, whose error shows in the last place of float32 now and then; the functions here have the same degrees and
intervals, with coefficients that were fitted to what the library gives for all 2**23 fractions, so that they differ
from it for one in ten thousand (the logarithm) and one in a million (sine and cosine).

Blocks, and twofold's own numbers of them, are `ir/math_random.py`'s; `codegen/kernels/draws.py` lays draws out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from . import dtypes as dt
from .dtypes import DType
from .math_core import fast_two_sum, float_of, poly
from .math_log import log_accurate
from .math_random import Words, bits, block
from .math_trig import cos_kernel, sin_kernel
from .scalar import Scalar, ScalarBuilder

__all__ = ["uniform", "normal", "log32", "candidates", "scrambled", "DISTRIBUTIONS", "SKIP"]

SKIP = 256  # blocks that an element has for itself where draws may be rejected, and by which streams of ops move on
_LEAST = 1e-7
_DIGITS = {dt.float16: 10, dt.bfloat16: 7, dt.float32: 23, dt.float64: 52}
_SCRAMBLE = 0x3EC8F720, 0x02461E29  # the key under which seeds are mixed

# log(m) on 16 pieces of [0.699, 1.398) by 1/c and log(c) for the middle c of each, and log1p(r) of the rest, |r| < 0.03
_FIRST = 0x3F330000  # bits of the least m
_PIECES = 16
_LOG1P = (-0.4999997472349872, 0.3334567635027488, -0.2508984084249222)
# (sin(r)/r - 1) / r**2 and (cos(r) - 1) / r**2 in r**2 on |r| <= pi/4
_SIN = (-0.16666654944082157, 0.008332178172879703, -0.00019517303041082846)
_COS = (-0.4999999972510809, 0.041666623324333144, -0.0013886763794086433, 2.4390450680662493e-05)
_HALF_PI = (math.pi / 2, 6.123233995736766e-17)


def _fraction(s: ScalarBuilder, word: Scalar, digits: int) -> Scalar:
    """The low `digits` bits of a uint32 as a float32 in [0, 1)."""
    mantissa = s.shl(s.and_(word, (1 << digits) - 1), 23 - digits)
    return s.bitcast(s.or_(mantissa, 0x3F800000), dt.float32) - 1.0


def _wide_fraction(s: ScalarBuilder, high: Scalar, low: Scalar) -> Scalar:
    """The low 20 bits of a word and all of the next as a float64 in [0, 1)."""
    mantissa = s.or_(s.shl(s.cast(s.and_(high, 0xFFFFF), dt.uint64), 32), s.cast(low, dt.uint64))
    return s.bitcast(s.or_(mantissa, 0x3FF << 52), dt.float64) - 1.0


def uniform(s: ScalarBuilder, words: Words, dtype: DType) -> list[Scalar]:
    """Fractions in [0, 1) of 23 bits, of 52 (float64), 10 (float16) or 7 (bfloat16)."""
    if dtype is dt.float64:
        return [_wide_fraction(s, *words[n:n + 2]) for n in (0, 2)]
    return [_fraction(s, w, _DIGITS[dtype]) for w in words]


def normal(s: ScalarBuilder, words: Words, dtype: DType) -> list[Scalar]:
    """Standard normal numbers: of each pair of fractions the sine's first, then the cosine's."""
    if dtype is dt.float64:
        return list(_polar64(s, words))
    return [v for pair in (words[:2], words[2:]) for v in _polar32(s, pair)]


def candidates(s: ScalarBuilder, words: Words, dtype: DType) -> list[tuple[Scalar, Scalar]]:
    """Normal numbers of a block, each with whether it is within two of zero."""
    return [(v, s.lt(s.abs(v), 2.0)) for v in normal(s, words, dtype)]


def _polar32(s: ScalarBuilder, words: Words) -> tuple[Scalar, Scalar]:
    radius = s.sqrt(log32(s, s.maximum(_fraction(s, words[0], 23), _LEAST)) * -2.0)
    sine, cosine = _circle32(s, words[1])
    return sine * radius, cosine * radius


def log32(s: ScalarBuilder, u: Scalar) -> Scalar:
    """The logarithm of a normal float32, rounded from float64."""
    place = s.bitcast(u, dt.uint32) - _FIRST
    m = s.bitcast(s.bitcast(u, dt.uint32) - s.and_(place, 0xFF800000), dt.float32)
    k = s.shr(s.bitcast(place, dt.int32), 23)
    inverse, log = _piece(s, place)
    r = s.fma(s.cast(m, dt.float64), inverse, -1.0)
    first = s.fma(s.cast(k, dt.float64), math.log(2.0), log)
    value = s.fma(poly(s, r, _LOG1P), r * r, first + r)
    return s.cast(value, dt.float32)


def _piece(s: ScalarBuilder, place: Scalar) -> tuple[Scalar, Scalar]:
    """1/c and log(c) for the piece in which the bits `place` above the first m lie: one of 16, by four choices."""
    inverses, logs = (list(column) for column in zip(*map(_of_middle, range(_PIECES)), strict=True))
    for bit in range(19, 23):
        chosen = s.ne(s.and_(place, 1 << bit), 0)
        inverses, logs = (_halved(s, chosen, column) for column in (inverses, logs))
    return inverses[0], logs[0]


def _halved(s: ScalarBuilder, odd: Scalar, column: Sequence[Scalar | float]) -> list[Scalar]:
    wide = [v if isinstance(v, Scalar) else s.const(v, dt.float64) for v in column]
    return [s.select(odd, wide[n + 1], wide[n]) for n in range(0, len(wide), 2)]


def _of_middle(n: int) -> tuple[float, float]:
    ends = [_float_of_bits(_FIRST + (k << 19)) for k in (n, n + 1)]
    middle = 1.0 if ends[0] < 1.0 < ends[1] else sum(ends) / 2
    return 1.0 / middle, math.log(middle)


def _float_of_bits(value: int) -> float:
    return (1 + (value & 0x7FFFFF) / 2**23) * 2.0**((value >> 23) - 127)


def _circle32(s: ScalarBuilder, word: Scalar) -> tuple[Scalar, Scalar]:
    """Sine and cosine of the turn that a word's fraction says, whose angle is rounded to float32 before."""
    angle = s.cast(s.cast(_fraction(s, word, 23), dt.float64) * (2 * math.pi), dt.float32)
    quarter = s.bitcast(s.shr(s.and_(word, 0x7FFFFF) + (1 << 20), 21), dt.int32)
    r = s.fma(s.cast(quarter, dt.float64), -_HALF_PI[0], s.cast(angle, dt.float64))
    y = r * r
    sine, cosine = s.fma(r * y, poly(s, y, _SIN), r), s.fma(y, poly(s, y, _COS), 1.0)
    return _turned(s, s.cast(sine, dt.float32), s.cast(cosine, dt.float32), quarter)


def _turned(s: ScalarBuilder, sine: Scalar, cosine: Scalar, quarter: Scalar) -> tuple[Scalar, Scalar]:
    """Sine and cosine so many quarter turns further."""
    odd = s.ne(s.and_(quarter, 1), 0)
    sine, cosine = s.select(odd, cosine, sine), s.select(odd, -sine, cosine)
    back = s.ne(s.and_(quarter, 2), 0)
    return s.select(back, -sine, sine), s.select(back, -cosine, cosine)


def _polar64(s: ScalarBuilder, words: Words) -> tuple[Scalar, Scalar]:
    radius = s.sqrt(log_accurate(s, s.maximum(_wide_fraction(s, words[0], words[1]), _LEAST))[0] * -2.0)
    angle = _wide_fraction(s, words[2], words[3]) * (2 * math.pi)
    quarter = s.bitcast(s.shr(s.and_(words[2], 0xFFFFF) + (1 << 17), 18), dt.int32)
    k = float_of(s, s.cast(quarter, dt.int64), dt.float64)
    near = s.fma(k, -_HALF_PI[0], angle)  # exact
    r, low = fast_two_sum(s, near, k * -_HALF_PI[1])
    sine, cosine = _turned(s, sin_kernel(s, (r, low)), cos_kernel(s, (r, low)), quarter)
    return sine * radius, cosine * radius


def scrambled(s: ScalarBuilder, first: Scalar, second: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """(low, high, key) of the stream of a stateless draw, uint64, from its two seeds: a block of Philox at the place
    that they say, so that all of their bits count."""
    none = s.const(0, dt.int64)
    key = s.const(_SCRAMBLE[0] | _SCRAMBLE[1] << 32, dt.uint64)
    made, high = bits(s, block(s, first, second, key, none), dt.uint64)
    return s.const(0, dt.uint64), high, made


DISTRIBUTIONS: dict[str, Callable[[ScalarBuilder, Words, DType], list[Scalar]]] = {
    "uniform": uniform, "normal": normal}
