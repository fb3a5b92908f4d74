"""Pooling kernels, channels last: each pixel's channels are neighbours.

Averages add the taps of a window in row-major order. The first largest element of a window wins, and a NaN counts as
larger than any number. Element types are those that compute as themselves; 16-bit floats are widened by the caller.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from twofold.codegen.loop import Kernel, LoopBuilder, Pointer
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from .windows import Geometry, Window, accumulate, fill

__all__ = ["lowest", "leads", "maximum", "argmax", "gather", "maximum_grad", "maximum_grad_tiled", "is_tiled",
           "average", "average_grad", "BLOCK", "FEW"]

BLOCK = 32  # channels that a search for the largest element takes at a time
FEW = 9  # taps of a window that are written out, at most


def lowest(dtype: DType) -> float | int:
    """What a search for the largest element begins with."""
    return -math.inf if dtype.is_floating else dtype.min


def leads(b: LoopBuilder, value: Scalar, best: Scalar, which: Scalar) -> Scalar:
    """Whether `value` is the first largest so far, after `best` at tap `which`, -1 where there was none."""
    return b.or_(_larger(b, value, best), b.lt(which, 0))


def _larger(b: LoopBuilder, value: Scalar, best: Scalar) -> Scalar:
    """Whether `value` counts as larger than `best`, which comes before it."""
    return b.and_(b.not_(b.ge(best, value)), b.not_(b.isnan(best)))


def maximum(dtype: DType) -> Kernel:
    """Maxima for each output place in the range.

    args: addresses of result and operand; the window (`Window`).
    """
    b = LoopBuilder(f"max_pool {dtype.short}")
    out, x = b.pointer("out", dtype), b.pointer("x", dtype)
    w = Window(b)
    with b.for_(b.start, b.stop) as r:
        image, at = w.split(r, w.outputs)
        first = r * w.channels
        fill(b, out, first, w.channels, lowest(dtype))
        with w.taps(image, at) as (_, pixel), b.for_(0, w.channels) as c:
            b.store(out, first + c, b.maximum(b.load(out, first + c), b.load(x, pixel * w.channels + c)))
    return b.finish()


class _Winners:
    """Which tap of a window holds its first largest element, for up to BLOCK neighbouring channels at a time."""

    def __init__(self, b: LoopBuilder, w: Window, x: Pointer) -> None:
        self.b, self.w, self.x = b, w, x
        self.best, self.which = b.scratch(x.dtype, BLOCK), b.scratch(dt.int32, BLOCK)

    @contextmanager
    def of(self, r: Scalar, image: Scalar, at: list[Scalar], left: Scalar, width: Scalar,
           ) -> Iterator[tuple[Scalar, Scalar, Scalar]]:
        """For output place `r`, and each tap and channel from `left` on: the numbers of the pixel's and of the place's
        element, and whether the former is the first largest of the latter's window."""
        b, w = self.b, self.w
        with b.for_(0, width) as c:
            b.store(self.which, c, -1)
        with w.taps(image, at) as (tap, pixel), b.for_(0, width) as c:
            value, best = b.load(self.x, pixel * w.channels + left + c), b.load(self.best, c)
            which = b.load(self.which, c)
            wins = leads(b, value, best, which)
            b.store(self.best, c, b.select(wins, value, best))
            b.store(self.which, c, b.select(wins, b.cast(tap, dt.int32), which))
        with w.taps(image, at) as (tap, pixel), b.for_(0, width) as c:
            wins = b.eq(b.load(self.which, c), b.cast(tap, dt.int32))
            yield pixel * w.channels + left + c, r * w.channels + left + c, wins

    @contextmanager
    def blocks(self, r: Scalar) -> Iterator[tuple[Scalar, Scalar, list[Scalar], Scalar, Scalar]]:
        """The blocks of channels of output place `r`: it, its image, where it lies, the first channel, how many."""
        b, w = self.b, self.w
        image, at = w.split(r, w.outputs)
        with b.for_(0, w.channels, BLOCK) as left:
            yield r, image, at, left, b.minimum(w.channels - left, BLOCK)


def argmax(dtype: DType) -> Kernel:
    """The number in its image of each window's first largest element, for output places in the range.

    args: addresses of the int64 result and the operand; the window.
    """
    b = LoopBuilder(f"max_pool_argmax {dtype.short}")
    out, x = b.pointer("out", dt.int64), b.pointer("x", dtype)
    w = Window(b)
    winners = _Winners(b, w, x)
    span = w.sizes[0] * w.sizes[1] * w.sizes[2] * w.channels
    with b.for_(b.start, b.stop) as r:
        fill(b, out, r * w.channels, w.channels)
        with winners.blocks(r) as block, winners.of(*block) as (here, place, wins):
            b.store(out, place, b.select(wins, here - block[1] * span, b.load(out, place)))
    return b.finish()


def gather(dtype: DType) -> Kernel:
    """The element of `g` where each window of `x` has its first largest, for output places in the range.

    args: addresses of the result, `g` and `x`; the window.
    """
    b = LoopBuilder(f"max_pool_gather {dtype.short}")
    out, g, x = b.pointer("out", dtype), b.pointer("g", dtype), b.pointer("x", dtype)
    w = Window(b)
    winners = _Winners(b, w, x)
    with b.for_(b.start, b.stop) as r:
        fill(b, out, r * w.channels, w.channels)
        with winners.blocks(r) as block, winners.of(*block) as (here, place, wins):
            b.store(out, place, b.select(wins, b.load(g, here), b.load(out, place)))
    return b.finish()


def maximum_grad(dtype: DType) -> Kernel:
    """Adds `ct` up at the first largest elements; the range counts blocks of BLOCK channels of every image.

    args: addresses of the result, which holds zeros, of `ct` and of `x`; the window.
    """
    b = LoopBuilder(f"max_pool_grad {dtype.short}")
    out, ct, x = b.pointer("out", dtype), b.pointer("ct", dtype), b.pointer("x", dtype)
    w = Window(b)
    winners = _Winners(b, w, x)
    blocks = b.idiv(w.channels + (BLOCK - 1), BLOCK)
    places = w.outputs[0] * w.outputs[1] * w.outputs[2]
    with b.for_(b.start, b.stop) as task:
        image = b.idiv(task, blocks)
        left = (task - image * blocks) * BLOCK
        width = b.minimum(w.channels - left, BLOCK)
        with b.for_(image * places, (image + 1) * places) as r:
            _, at = w.split(r, w.outputs)
            with winners.of(r, image, at, left, width) as (here, place, wins):
                accumulate(b, out, here, b.select(wins, b.load(ct, place), 0.0))
    return b.finish()


def is_tiled(w: Geometry) -> bool:
    """Whether every pixel is in one window."""
    whole = [dm.decide_eq(o * s, size) is True for o, s, size in zip(w.outputs, w.strides, w.sizes, strict=True)]
    return all(whole) and w.strides == w.window and w.before == (0, 0, 0) and w.dilations == (1, 1, 1)


def maximum_grad_tiled(dtype: DType, window: Sequence[int] | None = None) -> Kernel:
    """`maximum_grad` where every pixel is in one window, for output places in the range.

    args: addresses of the result, of `ct` and of `x`; the window.

    Args:
        window: its taps along each axis, where they are few, at most `FEW`, and known.
    """
    b = LoopBuilder(f"max_pool_grad tiled {dtype.short}")
    out, ct, x = b.pointer("out", dtype), b.pointer("ct", dtype), b.pointer("x", dtype)
    w = Window(b)
    if window is not None:
        which = b.scratch(dt.int32, BLOCK)
        with b.for_(b.start, b.stop) as r:
            image, at = w.split(r, w.outputs)
            pixels = [w.pixel(image, at, tap)[1] * w.channels for tap in itertools.product(*map(range, window))]
            with b.for_(0, w.channels, BLOCK) as left:
                rest = w.channels - left
                places = which, [pixel + left for pixel in pixels], r * w.channels + left
                with b.if_(b.le(BLOCK, rest)):
                    _tell_winners(b, (out, ct, x), *places, BLOCK)
                with b.else_():
                    _tell_winners(b, (out, ct, x), *places, rest)
        return b.finish()
    winners = _Winners(b, w, x)
    with b.for_(b.start, b.stop) as r, winners.blocks(r) as block, winners.of(*block) as (here, place, wins):
        b.store(out, here, b.select(wins, b.load(ct, place) + 0.0, 0.0))  # a sum that begins at 0, as elsewhere
    return b.finish()


def _tell_winners(b: LoopBuilder, memory: tuple[Pointer, Pointer, Pointer], which: Pointer, pixels: Sequence[Scalar],
                  place: Scalar, count: Scalar | int) -> None:
    """Writes the gradient of `count` neighbouring elements of a place to the first largest of each one's window, and
    zeros to the others; `pixels` are where these begin. Taps are written out, and loops write one pixel each, so that
    all become vectors."""
    out, ct, x = memory
    with b.for_(0, count) as c:
        best, tap = b.load(x, pixels[0] + c), b.const(0, dt.int32)
        for n, pixel in enumerate(pixels[1:], start=1):
            value = b.load(x, pixel + c)
            wins = _larger(b, value, best)
            best, tap = b.select(wins, value, best), b.select(wins, b.const(n, dt.int32), tap)
        b.store(which, c, tap)
    for n, pixel in enumerate(pixels):
        with b.for_(0, count) as c:
            wins = b.eq(b.load(which, c), b.const(n, dt.int32))
            b.store(out, pixel + c, b.select(wins, b.load(ct, place + c) + 0.0, 0.0))  # a sum that begins at 0


def average(dtype: DType) -> Kernel:
    """Averages for each output place in the range; padding does not count.

    args: addresses of result and operand; the window.
    """
    b = LoopBuilder(f"avg_pool {dtype.short}")
    out, x = b.pointer("out", dtype), b.pointer("x", dtype)
    w = Window(b)
    with b.for_(b.start, b.stop) as r:
        image, at = w.split(r, w.outputs)
        first, taps = r * w.channels, b.local(b.const(0, dt.int64))
        fill(b, out, first, w.channels)
        with w.taps(image, at) as (_, pixel):
            taps.set(taps.get() + 1)
            with b.for_(0, w.channels) as c:
                accumulate(b, out, first + c, b.load(x, pixel * w.channels + c))
        count = b.cast(b.maximum(taps.get(), 1), dtype)
        with b.for_(0, w.channels) as c:
            b.store(out, first + c, b.load(out, first + c) / count)
    return b.finish()


def average_grad(dtype: DType) -> Kernel:
    """The gradient of `average` for each input pixel in the range.

    args: addresses of result and `ct`; the window.
    """
    b = LoopBuilder(f"avg_pool_grad {dtype.short}")
    out, ct = b.pointer("out", dtype), b.pointer("ct", dtype)
    w = Window(b)
    with b.for_(b.start, b.stop) as r:
        image, at = w.split(r, w.sizes)
        first = r * w.channels
        fill(b, out, first, w.channels)
        with w.places(image, at) as (_, place, where):
            count = b.cast(w.count(where), dtype)
            with b.for_(0, w.channels) as c:
                share = b.load(ct, place * w.channels + c) / count
                accumulate(b, out, first + c, share)
    return b.finish()
