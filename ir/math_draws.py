"""TensorFlow's numbers out of Philox's words, as scalar bodies.

What becomes of a block's four words is TensorFlow's (`tsl/lib/random/random_distributions.h` describes it): fractions
are the low bits of words, normal numbers Box and Muller's of these, with a first fraction that is not below 1e-7. In
float32 TensorFlow calls the C library for the logarithm, sine and cosine. glibc has those of Arm's optimized routines
(https://github.com/ARM-software/optimized-routines, `logf` and `sincosf`, MIT licence): float64 inside, short
polynomials, and a table of 16 pieces for the logarithm. The functions here are these algorithms with their published
constants, in the order of operations in which glibc computes them on processors with FMA, so that all 2**23 fractions
give its bits.

Blocks, and twofold's own numbers of them, are `ir/math_random.py`'s; `codegen/kernels/draws.py` lays draws out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from . import dtypes as dt
from .dtypes import DType
from .math_core import fast_two_sum, float_of
from .math_log import log_accurate
from .math_random import Words, bits, block
from .math_trig import cos_kernel, sin_kernel
from .scalar import Scalar, ScalarBuilder

__all__ = ["uniform", "normal", "log32", "candidates", "scrambled", "DISTRIBUTIONS", "SKIP"]

SKIP = 256  # blocks that an element has for itself where draws may be rejected, and by which streams of ops move on
_LEAST = 1e-7
_DIGITS = {dt.float16: 10, dt.bfloat16: 7, dt.float32: 23, dt.float64: 52}
_SCRAMBLE = 0x3EC8F720, 0x02461E29  # the key under which seeds are mixed

# log(m) on 16 pieces of [0.699, 1.398): 1/c and log(c) of a c near the middle of each, and log1p(r) of the rest
_FIRST = 0x3F330000  # bits of the least m
_PIECES = tuple((float.fromhex(inverse), float.fromhex(log)) for inverse, log in (
    ("0x1.661ec79f8f3bep+0", "-0x1.57bf7808caadep-2"), ("0x1.571ed4aaf883dp+0", "-0x1.2bef0a7c06ddbp-2"),
    ("0x1.49539f0f010bp+0", "-0x1.01eae7f513a67p-2"), ("0x1.3c995b0b80385p+0", "-0x1.b31d8a68224e9p-3"),
    ("0x1.30d190c8864a5p+0", "-0x1.6574f0ac07758p-3"), ("0x1.25e227b0b8eap+0", "-0x1.1aa2bc79c81p-3"),
    ("0x1.1bb4a4a1a343fp+0", "-0x1.a4e76ce8c0e5ep-4"), ("0x1.12358f08ae5bap+0", "-0x1.1973c5a611cccp-4"),
    ("0x1.0953f419900a7p+0", "-0x1.252f438e10c1ep-5"), ("0x1p+0", "0x0p+0"),
    ("0x1.e608cfd9a47acp-1", "0x1.aa5aa5df25984p-5"), ("0x1.ca4b31f026aap-1", "0x1.c5e53aa362eb4p-4"),
    ("0x1.b2036576afce6p-1", "0x1.526e57720db08p-3"), ("0x1.9c2d163a1aa2dp-1", "0x1.bc2860d22477p-3"),
    ("0x1.886e6037841edp-1", "0x1.1058bc8a07ee1p-2"), ("0x1.767dcf5534862p-1", "0x1.4043057b6ee09p-2")))
_LOG1P = tuple(map(float.fromhex, ("-0x1.ffffef20a4123p-2", "0x1.5575b0be00b6ap-2", "-0x1.00ea348b88334p-2")))
# sin(r) and cos(r) on |r| <= pi/4: coefficients of r**3, r**5, r**7 and of r**2, r**4, r**6, r**8
_SIN = tuple(map(float.fromhex, ("-0x1.555545995a603p-3", "0x1.1107605230bc4p-7", "-0x1.994eb3774cf24p-13")))
_COS = tuple(map(float.fromhex, ("-0x1.ffffffd0c621cp-2", "0x1.55553e1068f19p-5", "-0x1.6c087e89a359dp-10",
                                 "0x1.99343027bf8c3p-16")))
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
    """The logarithm of a normal float32, rounded from float64: `logf` of the C library."""
    place = s.bitcast(u, dt.uint32) - _FIRST
    m = s.bitcast(s.bitcast(u, dt.uint32) - s.and_(place, 0xFF800000), dt.float32)
    k = s.shr(s.bitcast(place, dt.int32), 23)
    inverse, log = _piece(s, place)
    r = s.fma(s.cast(m, dt.float64), inverse, -1.0)
    first = s.fma(s.cast(k, dt.float64), math.log(2.0), log)
    square = r * r
    rest = s.fma(square, _LOG1P[2], s.fma(r, _LOG1P[1], _LOG1P[0]))
    return s.cast(s.fma(rest, square, first + r), dt.float32)


def _piece(s: ScalarBuilder, place: Scalar) -> tuple[Scalar, Scalar]:
    """1/c and log(c) for the piece in which the bits `place` above the first m lie: one of 16, by four choices."""
    inverses, logs = (list(column) for column in zip(*_PIECES, strict=True))
    for bit in range(19, 23):
        chosen = s.ne(s.and_(place, 1 << bit), 0)
        inverses, logs = (_halved(s, chosen, column) for column in (inverses, logs))
    return inverses[0], logs[0]


def _halved(s: ScalarBuilder, odd: Scalar, column: Sequence[Scalar | float]) -> list[Scalar]:
    wide = [v if isinstance(v, Scalar) else s.const(v, dt.float64) for v in column]
    return [s.select(odd, wide[n + 1], wide[n]) for n in range(0, len(wide), 2)]


def _circle32(s: ScalarBuilder, word: Scalar) -> tuple[Scalar, Scalar]:
    """Sine and cosine of the turn that a word's fraction says, whose angle is rounded to float32 before: `sincosf`."""
    angle = s.cast(s.cast(_fraction(s, word, 23), dt.float64) * (2 * math.pi), dt.float32)
    quarter = s.bitcast(s.shr(s.and_(word, 0x7FFFFF) + (1 << 20), 21), dt.int32)
    r = s.fma(s.cast(quarter, dt.float64), -_HALF_PI[0], s.cast(angle, dt.float64))
    square = r * r
    cube, fourth = square * r, square * square
    sine = s.fma(cube * square, s.fma(square, _SIN[2], _SIN[1]), s.fma(cube, _SIN[0], r))
    low = s.fma(fourth, _COS[1], s.fma(square, _COS[0], 1.0))
    cosine = s.fma(fourth * square, s.fma(square, _COS[3], _COS[2]), low)
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
