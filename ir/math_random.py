"""Random numbers as scalar bodies: counter in, numbers out.

Philox4x32-10 of Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011): a block of four
32-bit words is a bijective function of a 128-bit counter under a 64-bit key, so any part of a stream can be drawn by
itself, in any order and on any number of threads, with the same numbers.

A stream is `(low, high, key)`, three 64-bit integers: counter and key. This module owns the blocks and how words become
uniform and normal numbers; how draws are laid out over elements is in `codegen/kernels/random.py`, who holds streams in
`runtime/random.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from . import dtypes as dt
from .dtypes import DType
from .math_trig import cos_kernel, sin_kernel
from .scalar import Scalar, ScalarBuilder

__all__ = ["philox", "block", "bits", "uniform", "normal", "truncated_normal", "per_block", "unit", "DISTRIBUTIONS",
           "MULTIPLIERS", "WEYL", "ROUNDS"]

MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10
_BELOW_MINUS_2 = 0.022750131948179207  # of a standard normal variable
_WITHIN_2 = 0.9544997361036416

Words = Sequence[Scalar]


def philox(s: ScalarBuilder, counter: Words, key: Words) -> tuple[Scalar, ...]:
    """Four random words from a counter of four and a key of two, all uint32."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        high0, low0 = s.mulhi(c0, MULTIPLIERS[0]), c0 * MULTIPLIERS[0]
        high1, low1 = s.mulhi(c2, MULTIPLIERS[1]), c2 * MULTIPLIERS[1]
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + WEYL[0], k1 + WEYL[1]
    return c0, c1, c2, c3


def block(s: ScalarBuilder, low: Scalar, high: Scalar, key: Scalar, offset: Scalar,
          attempt: Scalar | int = 0) -> tuple[Scalar, ...]:
    """The words of block number `offset` (int64) of a stream (uint64s).

    Args:
        attempt: draws that may be rejected take their further numbers 2**64 blocks away from each other.
    """
    offset = s.cast(offset, dt.uint64)
    place = low + offset
    carry = s.cast(s.lt(place, low), dt.uint64)
    high = high + carry + (s.cast(attempt, dt.uint64) if isinstance(attempt, Scalar) else attempt)
    halves = [s.cast(v, dt.uint32) for x in (place, high, key) for v in (s.and_(x, 0xFFFFFFFF), s.shr(x, 32))]
    return philox(s, halves[:4], halves[4:])


def per_block(dtype: DType) -> int:
    """How many uniform or normal numbers of `dtype` a block gives."""
    return 2 if dtype.size == 8 else 4


def _pairs(s: ScalarBuilder, words: Words) -> list[Scalar]:
    wide = [s.cast(w, dt.uint64) for w in words]
    return [s.or_(wide[0], s.shl(wide[1], 32)), s.or_(wide[2], s.shl(wide[3], 32))]


def bits(s: ScalarBuilder, words: Words, dtype: DType) -> list[Scalar]:
    """The words as integers of `dtype`, which has 32 or 64 bits."""
    return [s.cast(w, dtype) for w in (words if dtype.size == 4 else _pairs(s, words))]


def unit(s: ScalarBuilder, word: Scalar) -> Scalar:
    """A float64 in (0, 1) from a uint64: 53 bits, centred in their interval."""
    return (s.cast(s.bitcast(s.shr(word, 11), dt.int64), dt.float64) + 0.5) * 2.0**-53


_DIGITS = {dt.float16: 11, dt.bfloat16: 8, dt.float32: 24, dt.float64: 53}


def uniform(s: ScalarBuilder, words: Words, dtype: DType) -> list[Scalar]:
    """Numbers in [0, 1): multiples of 2**-24, of 2**-53 (float64), 2**-11 (float16) or 2**-8 (bfloat16)."""
    digits = _DIGITS[dtype]
    if dtype is dt.float64:
        return [s.cast(s.bitcast(s.shr(p, 11), dt.int64), dtype) * 2.0**-53 for p in _pairs(s, words)]
    return [s.cast(s.bitcast(s.shr(w, 32 - digits), dt.int32), dt.float32) * 2.0**-digits for w in words]


def normal(s: ScalarBuilder, words: Words, dtype: DType) -> list[Scalar]:
    """Standard normal numbers: Box & Muller, "A note on the generation of random normal deviates" (1958).

    The angle is brought within pi/4 of an axis by its bits, so that no reduction is needed.
    """
    pairs = [words] if dtype is dt.float64 else [words[:2], words[2:]]
    return [v for pair in pairs for v in (_polar64 if dtype is dt.float64 else _polar32)(s, pair)]


def _polar32(s: ScalarBuilder, words: Words) -> tuple[Scalar, Scalar]:
    # 2**-33 keeps the logarithm's operand above 0; the largest number this gives is 6.76
    u = s.fma(_float32(s, words[0]), 2.0**-32, 2.0**-33)
    angle = s.cast(s.bitcast(s.shl(words[1], 2), dt.int32), dt.float32) * (math.pi * 2.0**-33)
    return _turned(s, u, angle, s.bitcast(s.shr(words[1], 30), dt.int32))


def _float32(s: ScalarBuilder, word: Scalar) -> Scalar:
    """A uint32 as float32, from its halves: signed conversions are the fast ones. Rounds once."""
    high, low = (s.cast(s.bitcast(v, dt.int32), dt.float32) for v in (s.shr(word, 16), s.and_(word, 0xFFFF)))
    return s.fma(high, 65536.0, low)


def _polar64(s: ScalarBuilder, words: Words) -> tuple[Scalar, Scalar]:
    first, second = _pairs(s, words)
    angle = s.cast(s.bitcast(s.shl(second, 2), dt.int64), dt.float64) * (math.pi * 2.0**-65)
    return _turned(s, unit(s, first), angle, s.bitcast(s.shr(second, 62), dt.int64))


def _turned(s: ScalarBuilder, u: Scalar, angle: Scalar, quarter: Scalar) -> tuple[Scalar, Scalar]:
    """sqrt(-2 log u) times cosine and sine of `angle` and so many quarter turns."""
    radius = s.sqrt(s.log(u) * -2.0)
    zero = s.const(0.0, angle.dtype)
    x, y = cos_kernel(s, (angle, zero)) * radius, sin_kernel(s, (angle, zero)) * radius
    odd = s.ne(s.and_(quarter, 1), 0)
    x, y = s.select(odd, -y, x), s.select(odd, x, y)
    back = s.ge(quarter, 2)
    return s.select(back, -x, x), s.select(back, -y, y)


def truncated_normal(s: ScalarBuilder, words: Words, dtype: DType) -> list[Scalar]:
    """Standard normal numbers within two of zero, by the inverse of their distribution function."""
    if dtype is dt.float64:
        units = [unit(s, p) for p in _pairs(s, words)]
    else:
        units = [s.fma(s.cast(s.bitcast(s.shr(w, 8), dt.int32), dt.float32), 2.0**-24, 2.0**-25) for w in words]
    values = [s.ndtri(s.fma(u, _WITHIN_2, _BELOW_MINUS_2)) for u in units]
    return [s.minimum(s.maximum(v, -2.0), 2.0) for v in values]


DISTRIBUTIONS: dict[str, Callable[[ScalarBuilder, Words, DType], list[Scalar]]] = {
    "bits": bits, "uniform": uniform, "normal": normal, "truncated_normal": truncated_normal}
