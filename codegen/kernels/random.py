"""Loops of random draws: each element's numbers come from a place in the stream that its own number decides.

So results do not depend on how a range is split over threads. The distributions that take whole blocks are in
`ir/math_random.py`; those that search or reject (gamma, Poisson, binomial) are written here, in float64.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable

from twofold.ir import dtypes as dt
from twofold.ir import math_random as mr
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from ..loop import Cell, Kernel, LoopBuilder

__all__ = ["Stream", "fill", "integers", "bounds", "skip", "seeded", "BAD_BOUNDS", "gamma", "poisson", "binomial"]

BAD_BOUNDS = "low must be less than high."
_ATTEMPTS = 128  # a draw is rejected less than one time in two
_SMALL = 10.0  # means below this are searched, the others rejected from a hat


class Stream:
    """A stream in memory: three int64, low and high part of the counter, and the key."""

    def __init__(self, b: LoopBuilder) -> None:
        state = b.pointer("state", dt.int64)
        self.b = b
        self.low, self.high, self.key = [b.bitcast(b.load(state, i), dt.uint64) for i in range(3)]

    def words(self, offset: Scalar, attempt: Scalar | int = 0) -> tuple[Scalar, ...]:
        return mr.block(self.b, self.low, self.high, self.key, offset, attempt)

    def wide(self, offset: Scalar, attempt: Scalar | int = 0) -> list[Scalar]:
        """A block as two uint64."""
        return mr.bits(self.b, self.words(offset, attempt), dt.uint64)

    def units(self, offset: Scalar, attempt: Scalar | int = 0) -> list[Scalar]:
        """A block as two float64 in (0, 1)."""
        return [mr.unit(self.b, w) for w in self.wide(offset, attempt)]


def fill(distribution: str, dtype: DType) -> Kernel:
    """Fills whole blocks with numbers of a distribution that has no parameters.

    args: addresses of the result, which has room for whole blocks, and of the stream.
    """
    b = LoopBuilder(f"random {distribution} {dtype.short}")
    out = b.pointer("out", dtype)
    stream = Stream(b)
    draw = mr.DISTRIBUTIONS[distribution]
    with b.for_(b.start, b.stop) as i:
        values = draw(b, stream.words(i), dtype)
        for n, v in enumerate(values):
            b.store(out, i * len(values) + n, v)
    return b.finish()


def integers(dtype: DType) -> Kernel:
    """Integers in [low, low + span), `span` 0 standing for all of them.

    args: addresses of the result, of the stream and of (low, span) in memory of uint64.

    A random fraction of 128 bits is multiplied by the span (Lemire, "Fast random integer generation in an interval",
    2019, without the rejection): no number's probability is off by more than 2**-64 of it times the span.
    """
    b = LoopBuilder(f"random integers {dtype.short}")
    out = b.pointer("out", dtype)
    stream = Stream(b)
    bounds = b.pointer("bounds", dt.uint64)
    low, span = b.load(bounds, 0), b.load(bounds, 1)
    with b.for_(b.start, b.stop) as i:
        first, second = stream.wide(i)
        middle = first * span
        carry = b.lt(middle + b.mulhi(second, span), middle)
        scaled = b.mulhi(first, span) + b.cast(carry, dt.uint64)
        b.store(out, i, b.cast(low + b.select(b.eq(span, 0), first, scaled), dtype))
    return b.finish()


def bounds(dtype: DType) -> Kernel:
    """The (low, span) that `integers` takes, for the bounds low and high; the range is one.

    args: addresses of the result, of low and of high.
    """
    b = LoopBuilder(f"random bounds {dtype.short}")
    out, low, high = b.pointer("out", dt.uint64), b.pointer("low", dtype), b.pointer("high", dtype)
    with b.for_(b.start, b.stop) as i:
        first, end = b.load(low, i), b.load(high, i)
        b.check(b.lt(first, end), BAD_BOUNDS)
        wide = b.cast(first, dt.uint64)
        b.store(out, i * 2, wide)
        b.store(out, i * 2 + 1, b.cast(end, dt.uint64) - wide)
    return b.finish()


def skip(dtype: DType) -> Kernel:
    """A stream moved on; the range is one.

    args: addresses of the result, of the stream, and of the number of blocks, of `dtype`.
    """
    b = LoopBuilder(f"random skip {dtype.short}")
    out = b.pointer("out", dt.int64)
    stream = Stream(b)
    blocks = b.pointer("blocks", dtype)
    with b.for_(b.start, b.stop) as i:
        count = b.cast(b.load(blocks, i), dt.int64)
        low = stream.low + b.bitcast(count, dt.uint64)
        carry = b.cast(b.lt(low, stream.low), dt.uint64) - b.cast(b.lt(count, 0), dt.uint64)
        for n, word in enumerate((low, stream.high + carry, stream.key)):
            b.store(out, n, b.bitcast(word, dt.int64))
    return b.finish()


def seeded(dtype: DType, purpose: str) -> Kernel:
    """The stream of a seed (`ir/ops/random.py: random_seed_state`); the range is one.

    args: addresses of the result, and of the seed, two of `dtype`.
    """
    b = LoopBuilder(f"random seed {dtype.short} {purpose}")
    out, seed = b.pointer("out", dt.int64), b.pointer("seed", dtype)
    with b.for_(b.start, b.stop):
        words = [b.bitcast(b.cast(b.load(seed, n), dt.int64), dt.uint64) for n in range(2)]
        z: Scalar = b.const(0, dt.uint64)
        for word in (*words, b.const(zlib.crc32(purpose.encode()), dt.uint64)):
            z = _mixed(b, z, word)
        b.store(out, 0, b.const(0, dt.int64))
        for n in (1, 2):
            b.store(out, n, b.bitcast(_mixed(b, z, b.const(n, dt.uint64)), dt.int64))
    return b.finish()


def _mixed(b: LoopBuilder, z: Scalar, seed: Scalar) -> Scalar:
    """A step of `ir.ops.random.mix`."""
    z = z + seed + 0x9E3779B97F4A7C15
    z = b.xor(z, b.shr(z, 30)) * 0xBF58476D1CE4E5B9
    z = b.xor(z, b.shr(z, 27)) * 0x94D049BB133111EB
    return b.xor(z, b.shr(z, 31))


def _searched(name: str, dtype: DType, params: tuple[DType, ...],
              draw: Callable[[LoopBuilder, Stream, Scalar, Cell, list[Scalar]], None]) -> Kernel:
    """A kernel that draws element by element.

    args: addresses of the result, of the stream, and of each parameter; each parameter's stride, 0 or 1.
    """
    b = LoopBuilder(f"random {name} {dtype.short}")
    out = b.pointer("out", dtype)
    stream = Stream(b)
    pointers = [b.pointer(f"param{n}", d) for n, d in enumerate(params)]
    strides = [b.integer() for _ in params]
    with b.for_(b.start, b.stop) as i:
        values = [b.cast(b.load(p, i * s), dt.float64) for p, s in zip(pointers, strides, strict=True)]
        result = b.local(math.nan, dt.float64)
        draw(b, stream, i, result, values)
        b.store(out, i, b.cast(result.get(), dtype))
    return b.finish()


def gamma(dtype: DType, param: DType) -> Kernel:
    """Gamma numbers of scale 1 by shape: Marsaglia & Tsang, "A simple method for generating gamma variables" (ACM TOMS
    26, 2000), with their power of a uniform number for shapes below 1. Each attempt takes two blocks of its own."""
    return _searched("gamma", dtype, (param,), _draw_gamma)


def _draw_gamma(b: LoopBuilder, stream: Stream, i: Scalar, result: Cell, params: list[Scalar]) -> None:
    (alpha,) = params
    small = b.lt(alpha, 1.0)
    d = b.select(small, alpha + 1.0, alpha) - 1.0 / 3.0
    c = 1.0 / b.sqrt(d * 9.0)
    with b.if_(b.gt(alpha, 0.0)), b.for_(0, _ATTEMPTS) as attempt:
        x = mr.normal(b, stream.words(i, attempt * 2), dt.float64)[0]
        u, boost = stream.units(i, attempt * 2 + 1)
        root = 1.0 + c * x
        fine = b.gt(root, 0.0)
        v = root * root * root
        fine = b.and_(fine, b.lt(b.log(u), x * x * 0.5 + d * (1.0 - v + b.log(v))))
        power = b.exp(b.log(boost) / alpha)
        with b.if_(fine):
            result.set(d * v * b.select(small, power, 1.0))
        b.break_(fine)


def poisson(dtype: DType, param: DType) -> Kernel:
    """Poisson numbers by mean: sequential search from 0 for means below 10, above it Hoermann's transformed rejection
    PTRS ("The transformed rejection method for generating Poisson random variables", 1993)."""
    return _searched("poisson", dtype, (param,), _draw_poisson)


def _draw_poisson(b: LoopBuilder, stream: Stream, i: Scalar, result: Cell, params: list[Scalar]) -> None:
    (mean,) = params
    with b.if_(b.and_(b.ge(mean, 0.0), b.lt(mean, _SMALL))):
        _search(b, stream.units(i)[0], b.exp(-mean), lambda k: mean / k, result)
    with b.if_(b.and_(b.ge(mean, _SMALL), b.lt(mean, math.inf))):
        log_mean = b.log(mean)
        spread, base = 0.931 + 2.53 * b.sqrt(mean), mean + 0.43
        _reject(b, stream, i, result, spread, base, 0.9277 - 3.6224 / (spread - 2.0),
                -0.059 + 0.02483 * spread, b.log(1.1239 + 1.1328 / (spread - 3.4)), b.const(math.inf, dt.float64),
                lambda k: k * log_mean - mean - b.lgamma(k + 1.0),
                lambda edge, v: b.and_(b.lt(edge, 0.013), b.gt(v, edge)))


def binomial(dtype: DType, counts: DType, probs: DType) -> Kernel:
    """Binomial numbers by count and probability: sequential search where the mean is below 10, above it Hoermann's
    transformed rejection BTRS ("The generation of binomial random variates", J. Stat. Comput. Simul. 46, 1993). A
    probability above one half counts the failures."""
    return _searched("binomial", dtype, (counts, probs), _draw_binomial)


def _draw_binomial(b: LoopBuilder, stream: Stream, i: Scalar, result: Cell, params: list[Scalar]) -> None:
    count, prob = params
    turned = b.gt(prob, 0.5)
    p = b.select(turned, 1.0 - prob, prob)
    valid = b.and_(b.and_(b.ge(prob, 0.0), b.le(prob, 1.0)), b.and_(b.ge(count, 0.0), b.lt(count, math.inf)))
    mean, odds = count * p, p / (1.0 - p)
    with b.if_(b.and_(valid, b.lt(mean, _SMALL))):
        _search(b, stream.units(i)[0], b.exp(count * b.log1p(-p)), lambda k: odds * (count - k + 1.0) / k, result)
        result.set(b.minimum(result.get(), count))  # past `count` only where probabilities add up to less than 1
    with b.if_(b.and_(valid, b.ge(mean, _SMALL))):
        deviation = b.sqrt(mean * (1.0 - p))
        spread = 1.15 + 2.53 * deviation
        slope = -0.0873 + 0.0248 * spread + 0.01 * p
        mode = b.floor((count + 1.0) * p)
        log_odds = b.log(odds)
        top = b.lgamma(mode + 1.0) + b.lgamma(count - mode + 1.0)
        _reject(b, stream, i, result, spread, mean + 0.5, 0.92 - 4.2 / spread, slope,
                b.log((2.83 + 5.1 / spread) * deviation), count,
                lambda k: top - b.lgamma(k + 1.0) - b.lgamma(count - k + 1.0) + (k - mode) * log_odds)
    with b.if_(b.and_(valid, turned)):
        result.set(count - result.get())


def _search(b: LoopBuilder, u: Scalar, first: Scalar, ratio: Callable[[Scalar], Scalar], result: Cell) -> None:
    """The smallest k whose cumulative probability exceeds `u`; `ratio(k)` is P(k) / P(k - 1)."""
    prob, total, k = b.local(first), b.local(first), b.local(0.0, dt.float64)
    with b.for_(0, _ATTEMPTS):
        b.break_(b.not_(b.ge(u, total.get())))
        k.set(k.get() + 1.0)
        prob.set(prob.get() * ratio(k.get()))
        total.set(total.get() + prob.get())
    result.set(k.get())


def _reject(b: LoopBuilder, stream: Stream, i: Scalar, result: Cell, spread: Scalar, base: Scalar, quick: Scalar,
            slope: Scalar, log_scale: Scalar, most: Scalar, log_density: Callable[[Scalar], Scalar],
            refused: Callable[[Scalar, Scalar], Scalar] | None = None) -> None:
    """Hoermann's transformed rejection: k = floor((2 a / (0.5 - |u|) + b) u + c), with a quick way to accept."""
    with b.for_(0, _ATTEMPTS) as attempt:
        u, v = stream.units(i, attempt)
        u = u - 0.5
        edge = 0.5 - b.abs(u)
        k = b.floor((2.0 * slope / edge + spread) * u + base)
        inside = b.and_(b.ge(k, 0.0), b.le(k, most))
        safe = b.select(inside, k, 0.0)
        height = b.log(v) + log_scale - b.log(slope / (edge * edge) + spread)
        fits = b.le(height, log_density(safe))
        if refused is not None:
            fits = b.and_(fits, b.not_(refused(edge, v)))
        fine = b.or_(b.and_(b.ge(edge, 0.07), b.le(v, quick)), fits)
        fine = b.and_(fine, inside)
        with b.if_(fine):
            result.set(k)
        b.break_(fine)
