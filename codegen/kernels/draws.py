"""Loops of TensorFlow's random draws: which block of a stream each number comes from, and what becomes of it.

Uniform and normal numbers take a stream's blocks one after another. Where draws may be rejected, each element (each
group of those that a block gives, for truncated normal numbers) has `SKIP` blocks for itself. What becomes of words is
in `ir/math_draws.py`; twofold's own draws are in `random.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from twofold.ir import dtypes as dt
from twofold.ir import math_draws as md
from twofold.ir import math_random as mr
from twofold.ir.dtypes import DType
from twofold.ir.math_draws import SKIP
from twofold.ir.scalar import Scalar

from ..loop import Cell, Kernel, LoopBuilder
from .random import BAD_BOUNDS, Stream

__all__ = ["fill", "accepted", "integers", "ends", "seeded", "permutation", "place_in_order", "gamma", "poisson",
           "binomial"]

_ATTEMPTS = 128
_SMALL = 10.0  # means below this are counted, the others rejected from a hat
_COUNTED = 42  # blocks of a binomial number that is counted
# log(k!) less its approximation by Stirling, for k from 0 to 9
_STIRLING = (0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
             0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287)


def fill(distribution: str, dtype: DType, apart: int = 1) -> Kernel:
    """Fills groups, each from one block, with numbers of a distribution that has no parameters.

    args: addresses of the result, which has room for whole groups, and of the stream.

    Args:
        apart: how many blocks lie from one group to the next.
    """
    b = LoopBuilder(f"draw {distribution} {dtype.short} {apart}")
    out = b.pointer("out", dtype)
    stream = Stream(b)
    draw = md.DISTRIBUTIONS[distribution]
    with b.for_(b.start, b.stop) as i:
        values = draw(b, stream.words(i if apart == 1 else i * apart), dtype)
        for n, v in enumerate(values):
            b.store(out, i * len(values) + n, v)
    return b.finish()


def accepted(dtype: DType, apart: int) -> Kernel:
    """Draws those groups of normal numbers again, number by number, of which some are not within two of zero.

    args: addresses of the result, which holds the groups' first normal numbers, and of the stream.
    """
    each = mr.per_block(dtype)
    b = LoopBuilder(f"draw accepted {dtype.short} {apart}")
    out = b.pointer("out", dtype)
    stream = Stream(b)
    with b.for_(b.start, b.stop) as i:
        within = [b.lt(b.abs(b.load(out, i * each + n)), 2.0) for n in range(each)]
        fine = within[0]
        for other in within[1:]:
            fine = b.and_(fine, other)
        with b.if_(b.not_(fine)):
            count = b.local(0, dt.int64)
            with b.for_(0, _ATTEMPTS // 2) as attempt:
                for value, inside in md.candidates(b, stream.words(i * apart + attempt), dtype):
                    with b.if_(b.and_(inside, b.lt(count.get(), each))):
                        b.store(out, i * each + count.get(), value)
                        count.set(count.get() + 1)
                b.break_(b.ge(count.get(), each))
    return b.finish()


def integers(dtype: DType) -> Kernel:
    """Integers in [low, low + span): the remainder of a word, of two for 64 bits.

    args: addresses of the result, which has room for whole blocks, of the stream and of what `ends` makes.
    """
    b = LoopBuilder(f"draw integers {dtype.short}")
    out = b.pointer("out", dtype)
    stream = Stream(b)
    bounds = b.pointer("bounds", dt.uint64)
    low, span, inverse = [b.load(bounds, n) for n in range(3)]
    with b.for_(b.start, b.stop) as i:
        words = stream.words(i)
        if dtype.size == 8:
            rests = [b.irem(w, span) for w in mr.bits(b, words, dt.uint64)]
        else:  # Lemire, Kaser & Kurz, "Faster remainder by direct computation" (2019)
            rests = [b.mulhi(b.cast(w, dt.uint64) * inverse, span) for w in words]
        for n, rest in enumerate(rests):
            b.store(out, i * len(rests) + n, b.cast(low + rest, dtype))
    return b.finish()


def ends(dtype: DType) -> Kernel:
    """(low, span, 2**64 / span rounded up) for the bounds low and high; the range is one.

    args: addresses of the result, of low and of high.
    """
    b = LoopBuilder(f"draw ends {dtype.short}")
    out, low, high = b.pointer("out", dt.uint64), b.pointer("low", dtype), b.pointer("high", dtype)
    with b.for_(b.start, b.stop) as i:
        first, end = b.load(low, i), b.load(high, i)
        b.check(b.lt(first, end), BAD_BOUNDS)
        wide = b.cast(first, dt.uint64)
        span = b.cast(end, dt.uint64) - wide
        for n, value in enumerate((wide, span, b.idiv(b.const((1 << 64) - 1, dt.uint64), span) + 1)):
            b.store(out, i * 3 + n, value)
    return b.finish()


def seeded(dtype: DType) -> Kernel:
    """The stream of a stateless draw's seed; the range is one.

    args: addresses of the result, and of the seed, two of `dtype`.
    """
    b = LoopBuilder(f"draw seed {dtype.short}")
    out, seed = b.pointer("out", dt.int64), b.pointer("seed", dtype)
    with b.for_(b.start, b.stop):
        first, second = [b.bitcast(b.cast(b.load(seed, n), dt.int64), dt.uint64) for n in range(2)]
        for n, word in enumerate(md.scrambled(b, first, second)):
            b.store(out, n, b.bitcast(word, dt.int64))
    return b.finish()


def permutation(dtype: DType) -> Kernel:
    """The numbers from 0 on in random order: Fisher and Yates's exchanges, a word for each; the range is one.

    args: addresses of the result and of the stream; how many numbers.
    """
    b = LoopBuilder(f"draw permutation {dtype.short}")
    out = b.pointer("out", dtype)
    stream = Stream(b)
    count = b.integer()
    with b.for_(b.start, b.stop):
        with b.for_(0, count) as i:
            b.store(out, i, b.cast(i, dtype))
        with b.for_(0, b.idiv(count + 2, b.const(4, dt.int64))) as block:
            for n, word in enumerate(stream.words(block)):
                i = block * 4 + n
                with b.if_(b.lt(i, count - 1)):
                    other = i + b.cast(b.irem(word, b.cast(count - i, dt.uint32)), dt.int64)
                    here, there = b.load(out, i), b.load(out, other)
                    b.store(out, i, there)
                    b.store(out, other, here)
    return b.finish()


# Simon's constants (Beaulieu et al., "The Simon and Speck families of lightweight block ciphers", 2013)
_SIMON_C, _SIMON_Z = 0xFFFFFFFC, 0x7369F885192C0EF5
_ROUNDS = 4
_KEY = 498247692  # the first word of the key; the seed is the others
_LEAST_BITS = 16


def place_in_order(dtype: DType, seed: DType) -> Kernel:
    """Where indices go in an order of [0, most]: a block cipher of as many bits as `most` has, again and again until
    the number is in range (Black & Rogaway, "Ciphers with arbitrary finite domains", 2002). The cipher is Simon with
    four rounds.

    args: addresses of the result, of the indices, of the largest ones, and of seeds, two each; strides of the three.
    """
    b = LoopBuilder(f"draw place {dtype.short} {seed.short}")
    out, index, most, seeds = (b.pointer("out", dtype), b.pointer("index", dtype), b.pointer("most", dtype),
                               b.pointer("seed", seed))
    strides = [b.integer() for _ in range(3)]
    with b.for_(b.start, b.stop) as i:
        top = b.cast(b.load(most, i * strides[1]), dt.uint64)
        place = b.local(b.cast(b.load(index, i * strides[0]), dt.uint64))
        words = [b.and_(b.cast(b.load(seeds, i * strides[2] + n), dt.uint64), 0xFFFFFFFF) for n in range(2)]
        half = _half_bits(b, top)
        mask = b.shl(b.const(1, dt.uint64), half) - 1
        keys = _round_keys(b, [b.const(_KEY, dt.uint64), *words], half, mask)
        with b.for_(0, (1 << 62)):
            place.set(_enciphered(b, place.get(), keys, half, mask))
            b.break_(b.le(place.get(), top))
        b.store(out, i, b.cast(b.select(b.eq(top, 0), 0, place.get()), dtype))
    return b.finish()


def _half_bits(b: LoopBuilder, top: Scalar) -> Scalar:
    """Half of the number of bits of a block: the logarithm of `top` rounded up, made even, 16 at least."""
    size: Scalar = b.const(_LEAST_BITS, dt.uint64)
    for bits in range(_LEAST_BITS, 64, 2):
        size = b.select(b.gt(top, 1 << bits), bits + 2, size)
    return b.shr(size, 1)


def _turned_left(b: LoopBuilder, x: Scalar, by: int, half: Scalar, mask: Scalar) -> Scalar:
    return b.and_(b.or_(b.shl(x, by), b.shr(x, half - by)), mask)


def _turned_right(b: LoopBuilder, x: Scalar, by: int, half: Scalar, mask: Scalar) -> Scalar:
    return b.and_(b.or_(b.shr(x, by), b.shl(x, half - by)), mask)


def _round_keys(b: LoopBuilder, key: list[Scalar], half: Scalar, mask: Scalar) -> list[Scalar]:
    keys = [b.and_(k, mask) for k in key]
    for n in range(len(keys), _ROUNDS):
        turned = [_turned_right(b, keys[n - 1], by, half, mask) for by in (3, 4)]
        keys.append(b.and_(keys[n - 3] ^ turned[0] ^ turned[1] ^ (_SIMON_C ^ (_SIMON_Z >> (n - len(key)) & 1)), mask))
    return keys


def _enciphered(b: LoopBuilder, place: Scalar, keys: list[Scalar], half: Scalar, mask: Scalar) -> Scalar:
    def mixed(x: Scalar) -> Scalar:
        one, eight, two = (_turned_left(b, x, by, half, mask) for by in (1, 8, 2))
        return b.xor(b.and_(one, eight), two)
    left, right = b.and_(b.shr(place, half), mask), b.and_(place, mask)
    for n in range(0, _ROUNDS, 2):
        left = left ^ mixed(right) ^ keys[n]
        right = right ^ mixed(left) ^ keys[n + 1]
    return b.or_(b.shl(left, half), right)


# -- draws with parameters ----------------------------------------------------------------------------
class _Draw:
    """The blocks of one element's draw, and uniform numbers of them, of each block the last first."""

    def __init__(self, b: LoopBuilder, stream: Stream, first: Scalar) -> None:
        self.b, self.stream, self.first = b, stream, first

    def uniform(self, block: Scalar | int) -> list[Scalar]:
        """The numbers of a block of the element's own, in the order in which they are taken."""
        return md.uniform(self.b, self.stream.words(self.first + block), dt.float64)[::-1]


def _drawn(name: str, dtype: DType, params: tuple[DType, ...],
           draw: Callable[[LoopBuilder, Callable[[int], _Draw], Cell, list[Scalar]], None]) -> Kernel:
    """A kernel that draws element by element. TensorFlow numbers the elements by parameter first.

    args: addresses of the result, of the stream, and of each parameter; each parameter's stride, 0 or 1; how many
    parameters there are, and how many draws for each.
    """
    b = LoopBuilder(f"draw {name} {dtype.short}")
    out = b.pointer("out", dtype)
    stream = Stream(b)
    pointers = [b.pointer(f"param{n}", d) for n, d in enumerate(params)]
    strides = [b.integer() for _ in params]
    kinds, times = b.integer(), b.integer()
    with b.for_(b.start, b.stop) as i:
        values = [b.cast(b.load(p, i * s), dt.float64) for p, s in zip(pointers, strides, strict=True)]
        result = b.local(math.nan, dt.float64)
        number = b.irem(i, kinds) * times + b.idiv(i, kinds)
        draw(b, lambda apart: _Draw(b, stream, number * apart), result, values)
        b.store(out, i, b.cast(result.get(), dtype))
    return b.finish()


def gamma(dtype: DType, param: DType) -> Kernel:
    """Gamma numbers of scale 1 by shape: Marsaglia & Tsang, "A simple method for generating gamma variables" (ACM TOMS
    26, 2000), with their quick test; a uniform number to the power 1/alpha for shapes below 1, the logarithm of one for
    shape 1."""
    return _drawn(f"gamma {param.short}", dtype, (param,), _draw_gamma)


class _Queue:
    """Numbers that blocks give several at a time, taken one by one, the last of a block first."""

    def __init__(self, b: LoopBuilder, used: Cell, block: Callable[[Scalar], list[Scalar]]) -> None:
        self.b, self.used, self.block = b, used, block
        self.kept, self.next = b.local(0.0, dt.float64), b.local(0.0, dt.float64)
        self.left = b.local(0, dt.int64)

    def take(self) -> Scalar:
        """The next number; a new block where the last is empty."""
        b = self.b
        with b.if_(b.gt(self.left.get(), 0)):
            self.next.set(self.kept.get())
            self.left.set(0)
        with b.else_():
            first, second = self.block(self.used.get())
            self.used.set(self.used.get() + 1)
            self.next.set(second)
            self.kept.set(first)
            self.left.set(1)
        return self.next.get()


def _draw_gamma(b: LoopBuilder, blocks: Callable[[int], _Draw], result: Cell, params: list[Scalar]) -> None:
    (alpha,), own = params, blocks(SKIP)
    with b.if_(b.eq(alpha, 1.0)):
        result.set(-b.log1p(-own.uniform(0)[0]))
    small = b.lt(alpha, 1.0)
    d = alpha + b.select(small, 2.0 / 3, b.const(-1.0 / 3, dt.float64))
    c = (1.0 / 3) / b.sqrt(d)
    used = b.local(0, dt.int64)
    normals = _Queue(b, used, lambda n: md.normal(b, own.stream.words(own.first + n), dt.float64))
    units = _Queue(b, used, lambda n: own.uniform(n)[::-1])
    with b.if_(b.and_(b.gt(alpha, 0.0), b.ne(alpha, 1.0))), b.for_(0, _ATTEMPTS):
        x = normals.take()
        root = 1.0 + c * x
        done = b.local(False, dt.bool_)
        with b.if_(b.gt(root, 0.0)):
            v, u = root * root * root, units.take()
            quick = b.lt(u, 1.0 - (x * x * 0.0331) * (x * x))
            fits = b.lt(b.log(u), 0.5 * x * x + d * (1.0 - v + b.log(v)))
            with b.if_(b.or_(quick, fits)):
                result.set(d * v)
                done.set(True)
        with b.if_(b.and_(done.get(), small)):
            result.set(result.get() * b.pow(units.take(), 1.0 / alpha))
        b.break_(done.get())


def poisson(dtype: DType, param: DType) -> Kernel:
    """Poisson numbers by mean: for means below 10 how many uniform numbers have a product above exp(-mean) (Knuth, "The
    art of computer programming", vol. 2), above it Hoermann's transformed rejection PTRS (1993)."""
    return _drawn(f"poisson {param.short}", dtype, (param,), _draw_poisson)


def _draw_poisson(b: LoopBuilder, blocks: Callable[[int], _Draw], result: Cell, params: list[Scalar]) -> None:
    (mean,), own = params, blocks(SKIP)
    with b.if_(b.and_(b.ge(mean, 0.0), b.lt(mean, _SMALL))):
        _count_product(b, own, b.exp(-mean), result)
    with b.if_(b.and_(b.ge(mean, _SMALL), b.lt(mean, math.inf))):
        log_mean = b.log(mean)
        spread = 0.931 + 2.53 * b.sqrt(mean)
        slope = -0.059 + 0.02483 * spread
        scale = 1.1239 + 1.1328 / (spread - 3.4)
        _hat(b, own, result, lambda u, edge: (2.0 * slope / edge + spread) * u + mean + 0.43,
             0.9277 - 3.6224 / (spread - 2.0),
             lambda k, edge, v: b.or_(b.lt(k, 0.0), b.and_(b.lt(edge, 0.013), b.gt(v, edge))),
             lambda k, edge, v: b.le(b.log(v * scale / (slope / (edge * edge) + spread)),
                                     -mean + k * log_mean - b.lgamma(k + 1.0)))


def _count_product(b: LoopBuilder, own: _Draw, least: Scalar, result: Cell) -> None:
    """How many numbers have a product above `least`."""
    product, k, done = b.local(1.0, dt.float64), b.local(0.0, dt.float64), b.local(False, dt.bool_)
    with b.for_(0, _ATTEMPTS) as block:
        for u in own.uniform(block):
            with b.if_(b.not_(done.get())):
                product.set(product.get() * u)
                done.set(b.le(product.get(), least))
                k.set(k.get() + b.select(done.get(), b.const(0.0, dt.float64), 1.0))
        b.break_(done.get())
    result.set(k.get())


def _hat(b: LoopBuilder, own: _Draw, result: Cell, place: Callable[[Scalar, Scalar], Scalar], quick: Scalar,
         refused: Callable[[Scalar, Scalar, Scalar], Scalar], fits: Callable[[Scalar, Scalar, Scalar], Scalar]) -> None:
    """Hoermann's transformed rejection from pairs of uniform numbers, with a quick way to accept."""
    with b.for_(0, _ATTEMPTS) as block:
        u, v = own.uniform(block)
        u = u - 0.5
        edge = 0.5 - b.abs(u)
        k = b.floor(place(u, edge))
        fine = b.or_(b.and_(b.ge(edge, 0.07), b.le(v, quick)),
                     b.and_(b.not_(refused(k, edge, v)), fits(k, edge, v)))
        with b.if_(fine):
            result.set(k)
        b.break_(fine)


def binomial(dtype: DType, counts: DType, probs: DType) -> Kernel:
    """Binomial numbers by count and probability: geometric numbers added up to the count where the mean is below 10,
    above it Hoermann's transformed rejection BTRS (J. Stat. Comput. Simul. 46, 1993). A probability above one half
    counts the failures."""
    return _drawn(f"binomial {counts.short} {probs.short}", dtype, (counts, probs),
                  lambda b, blocks, result, params: _draw_binomial(b, blocks, result, params, probs))


def _draw_binomial(b: LoopBuilder, blocks: Callable[[int], _Draw], result: Cell, params: list[Scalar],
                   given: DType) -> None:
    count, prob = params
    turned = b.gt(prob, 0.5)
    # TensorFlow takes the failures' probability and the mean in the parameters' own type
    narrow = dt.float64 if given is dt.float64 else dt.float32
    p = b.select(turned, b.cast(1.0 - b.cast(prob, narrow), dt.float64), prob)
    mean = b.cast(b.cast(count, narrow) * b.cast(p, narrow), dt.float64)
    valid = b.and_(b.and_(b.gt(prob, 0.0), b.lt(prob, 1.0)), b.and_(b.gt(count, 0.0), b.lt(count, math.inf)))
    with b.if_(b.and_(valid, b.lt(mean, _SMALL))):
        _count_geometric(b, blocks(_COUNTED), count, p, result)
    with b.if_(b.and_(valid, b.ge(mean, _SMALL))):
        _draw_btrs(b, blocks(SKIP), count, p, result)
    with b.if_(b.and_(valid, turned)):
        result.set(count - result.get())
    certain = b.or_(b.eq(prob, 0.0), b.or_(b.eq(prob, 1.0), b.eq(count, 0.0)))
    with b.if_(b.and_(certain, b.and_(b.and_(b.ge(prob, 0.0), b.le(prob, 1.0)),
                                      b.and_(b.ge(count, 0.0), b.lt(count, math.inf))))):
        result.set(b.select(b.eq(prob, 0.0), 0.0, count))


def _count_geometric(b: LoopBuilder, own: _Draw, count: Scalar, p: Scalar, result: Cell) -> None:
    total, k, done = b.local(0.0, dt.float64), b.local(0.0, dt.float64), b.local(False, dt.bool_)
    log_failure = b.log1p(-p)
    with b.for_(0, _ATTEMPTS) as block:
        for u in own.uniform(block):
            with b.if_(b.not_(done.get())):
                total.set(total.get() + b.ceil(b.log(u) / log_failure))
                done.set(b.gt(total.get(), count))
                k.set(k.get() + b.select(done.get(), b.const(0.0, dt.float64), 1.0))
        b.break_(done.get())
    result.set(k.get())


def _draw_btrs(b: LoopBuilder, own: _Draw, count: Scalar, p: Scalar, result: Cell) -> None:
    deviation = b.sqrt(count * p * (1.0 - p))
    spread = 1.15 + 2.53 * deviation
    slope = -0.0873 + 0.0248 * spread + 0.01 * p
    odds = p / (1.0 - p)
    scale = (2.83 + 5.1 / spread) * deviation
    mode = b.floor((count + 1.0) * p)
    centre = (mode + 0.5) * b.log((mode + 1.0) / (odds * (count - mode + 1.0)))
    tails = _tail(b, mode) + _tail(b, count - mode)

    def fits(k: Scalar, edge: Scalar, v: Scalar) -> Scalar:
        bound = centre + (count + 1.0) * b.log((count - mode + 1.0) / (count - k + 1.0)) \
            + (k + 0.5) * b.log(odds * (count - k + 1.0) / (k + 1.0)) + tails - _tail(b, k) - _tail(b, count - k)
        return b.le(b.log(v * scale / (slope / (edge * edge) + spread)), bound)
    base = count * p + 0.5
    _hat(b, own, result, lambda u, edge: (2.0 * slope / edge + spread) * u + base, 0.92 - 4.2 / spread,
         lambda k, edge, v: b.or_(b.lt(k, 0.0), b.gt(k, count)), fits)


def _tail(b: LoopBuilder, k: Scalar) -> Scalar:
    """log(k!) less Stirling's approximation."""
    more = k + 1.0
    square = more * more
    value = (1.0 / 12 - (1.0 / 360 - (1.0 / 1260) / square) / square) / more
    for n, known in enumerate(_STIRLING):
        value = b.select(b.eq(k, float(n)), known, value)
    return value
