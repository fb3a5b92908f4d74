"""Normal numbers between bounds, as TensorFlow draws them: one after another, each from where the one before stopped.

How many numbers of the stream one takes depends on chance, so a draw is made by one thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from twofold.ir import dtypes as dt
from twofold.ir import math_draws as md
from twofold.ir.data_class import data_class
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from ..loop import Cell, LoopBuilder, Pointer
from ..statements import Kernel
from .random import Stream

__all__ = ["cut_normal", "BAD_PARAMETERS"]

BAD_PARAMETERS = "stddevs must be positive, minvals less than maxvals, and one of the two finite."
_MOST = 1000  # blocks for a number, of which each is accepted about one time in two
_WIDE = 1.3  # deviations within the bounds from which on normal numbers are drawn


@data_class()
class _Between:
    """The numbers of one distribution: where they go, the bounds in deviations, and how far the stream has come."""

    b: LoopBuilder
    dtype: DType
    stream: Stream
    block: Cell
    count: Cell
    samples: Scalar
    low: Scalar
    high: Scalar
    put: Callable[[Scalar], None]

    def words(self) -> tuple[Scalar, ...]:
        """The next block."""
        words = self.stream.words(self.block.get())
        self.block.set(self.block.get() + 1)
        return words

    def offer(self, value: Scalar, fits: Scalar) -> None:
        """Take a number if it fits and some are still wanted."""
        b = self.b
        with b.if_(b.and_(fits, b.lt(self.count.get(), self.samples))):
            self.put(value)
            self.count.set(self.count.get() + 1)

    def until_done(self, attempt: Callable[[], None]) -> None:
        """Go on until there are enough numbers."""
        with self.b.for_(0, self.samples * _MOST):
            self.b.break_(self.b.ge(self.count.get(), self.samples))
            attempt()


def cut_normal(dtype: DType) -> Kernel:
    """Normal numbers between bounds; the range is one.

    args: addresses of the result, of the stream, and of means, deviations, least and largest numbers; each parameter's
    stride, 0 or 1; how many distributions there are, and how many draws of each.
    """
    b = LoopBuilder(f"draw cut normal {dtype.short}")
    out = b.pointer("out", dtype)
    stream = Stream(b)
    pointers = [b.pointer(name, dtype) for name in ("mean", "deviation", "low", "high")]
    strides = [b.integer() for _ in pointers]
    kinds, samples = b.integer(), b.integer()
    with b.for_(b.start, b.stop):
        block = b.local(0, dt.int64)
        with b.for_(0, kinds) as kind:
            params = [b.load(p, kind * s) for p, s in zip(pointers, strides, strict=True)]
            _draw(b, dtype, stream, block, params, (out, kind, kinds, samples))
    return b.finish()


def _draw(b: LoopBuilder, dtype: DType, stream: Stream, block: Cell, params: list[Scalar],
          place: tuple[Pointer, Scalar, Scalar, Scalar]) -> None:
    (mean, deviation, least, largest), (out, kind, kinds, samples) = params, place
    valid = b.and_(b.and_(b.gt(deviation, 0.0), b.lt(least, largest)), b.or_(b.isfinite(least), b.isfinite(largest)))
    b.check(valid, BAD_PARAMETERS)
    # a bound on one side is the lower one, and so is the one nearer to the mean
    turned = b.or_(b.eq(least, -math.inf), b.lt(largest, mean))
    deviation = b.select(turned, -deviation, deviation)
    low = (b.select(turned, largest, least) - mean) / deviation
    high = (b.select(turned, least, largest) - mean) / deviation
    count = b.local(0, dt.int64)

    def put(value: Scalar) -> None:
        b.store(out, count.get() * kinds + kind, value * deviation + mean)
    with b.for_(0, samples) as n:  # what is left where parameters are not valid
        b.store(out, n * kinds + kind, b.const(math.nan, mean.dtype))
    drawing = _Between(b, mean.dtype, stream, block, count, samples, low, high, put)
    wide = b.or_(b.and_(b.lt(low, -_WIDE), b.ge(high, 0.0)), b.and_(b.gt(high, _WIDE), b.le(low, 0.0)))
    root = b.sqrt(low * low + 4.0)
    narrow = b.lt(high - low, 2.0 * b.exp(0.5 + (low * (low - root)) / 4.0) / (low + root))
    with b.if_(b.and_(valid, wide)):
        drawing.until_done(lambda: _normal(drawing))
    with b.if_(b.and_(valid, b.and_(b.not_(wide), narrow))):
        drawing.until_done(lambda: _uniform(drawing))
    with b.if_(b.and_(valid, b.not_(b.or_(wide, narrow)))):
        drawing.until_done(lambda: _exponential(drawing, (low + root) / 2.0))


def _normal(d: _Between) -> None:
    for value in md.normal(d.b, d.words(), d.dtype):
        d.offer(value, d.b.and_(d.b.ge(value, d.low), d.b.le(value, d.high)))


def _uniform(d: _Between) -> None:
    b, width = d.b, d.high - d.low
    top = b.select(b.lt(d.low, 0.0), b.const(0.0, d.dtype), d.low * d.low)
    values = [u * width + d.low for u in md.uniform(b, d.words(), d.dtype)]
    for value, u in zip(values, md.uniform(b, d.words(), d.dtype), strict=True):
        d.offer(value, b.le(u, b.exp((top - value * value) / 2.0)))


def _exponential(d: _Between, rate: Scalar) -> None:
    b, numbers = d.b, md.uniform(d.b, d.words(), d.dtype)
    for n in range(0, len(numbers), 2):
        log = md.log32(b, numbers[n]) if d.dtype is dt.float32 else b.log(numbers[n])
        value = b.select(b.eq(numbers[n], 0.0), math.inf, -log / rate + d.low)
        x = b.select(b.lt(d.low, rate), rate - value, d.low - rate)
        d.offer(value, b.and_(b.le(numbers[n + 1], b.exp(-x * x / 2.0)), b.lt(value, d.high)))
