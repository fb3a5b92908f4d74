"""Kernels of convolution beside its two big ones (`codegen/conv.py`): padding, shares added up, depthwise filters.

Depthwise filters have too few products in common for a matrix product. With one output for each channel
`codegen/conv_depthwise.py` has their loops; those here take any number of outputs.
"""

from __future__ import annotations

from twofold.codegen.loop import Kernel, LoopBuilder
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType

from .windows import Window, accumulate, fill

__all__ = ["frame", "add_up", "depthwise", "depthwise_input_grad", "depthwise_filter_grad"]


def frame(dtype: DType) -> Kernel:
    """Copies images with zeros around them, and without what lies beyond; the range counts lines of the results.

    args: addresses of result and operand; the sizes of a result and of an image, and how many zeros come before along
    each axis (three each, fewer than none to leave pixels out); the number of channels.
    """
    b = LoopBuilder(f"frame {dtype.short}")
    out, x = b.pointer("out", dtype), b.pointer("x", dtype)
    sizes, inner, before = ([b.integer() for _ in range(3)] for _ in range(3))
    channels = b.integer()
    length = sizes[2] * channels
    with b.for_(b.start, b.stop) as r:
        plane = b.idiv(r, sizes[1])
        y = r - plane * sizes[1] - before[1]
        image = b.idiv(plane, sizes[0])
        z = plane - image * sizes[0] - before[0]
        inside = b.and_(b.and_(b.ge(z, 0), b.lt(z, inner[0])), b.and_(b.ge(y, 0), b.lt(y, inner[1])))
        first = b.minimum(b.maximum(before[2], 0), sizes[2]) * channels
        last = b.maximum(b.minimum(before[2] + inner[2], sizes[2]) * channels, first)
        first = b.select(inside, first, length)
        last = b.select(inside, last, length)
        source = (((image * inner[0] + z) * inner[1] + y) * inner[2] - before[2]) * channels
        fill(b, out, r * length, first)
        with b.for_(first, last) as i:
            b.store(out, r * length + i, b.load(x, source + i))
        fill(b, out, r * length + last, length - last)
    return b.finish()


def add_up(dtype: DType) -> Kernel:
    """Adds up shares one after another; the range counts elements of the result.

    args: addresses of result and shares; how many shares there are, and how many elements each of them has.
    """
    b = LoopBuilder(f"add_up {dtype.short}")
    out, x = b.pointer("out", dtype), b.pointer("x", dtype)
    count, size = b.integer(), b.integer()
    with b.for_(b.start, b.stop) as i:
        b.store(out, i, b.load(x, i))
    with b.for_(1, count) as share, b.for_(b.start, b.stop) as i:
        b.store(out, i, b.load(out, i) + b.load(x, share * size + i))
    return b.finish()


def depthwise(dtype: DType) -> Kernel:
    """Depthwise convolution for each output place in the range.

    args: addresses of the result, the input and the filters [taps, channels, multiplier]; the window; the
    multiplier.
    """
    b = LoopBuilder(f"depthwise {dtype.short}")
    out, x, f = b.pointer("out", dtype), b.pointer("x", dtype), b.pointer("w", dtype)
    w = Window(b)
    multiplier = b.integer()
    width = w.channels * multiplier
    with b.for_(b.start, b.stop) as r:
        image, at = w.split(r, w.outputs)
        first = r * width
        fill(b, out, first, width)
        with w.taps(image, at) as (tap, pixel), b.for_(0, w.channels) as c:
            value = b.load(x, pixel * w.channels + c)
            with b.for_(0, multiplier) as m:
                o = c * multiplier + m
                accumulate(b, out, first + o, value * b.load(f, tap * width + o))
    return b.finish()


def depthwise_input_grad(dtype: DType) -> Kernel:
    """The gradient of `depthwise` for each input pixel in the range.

    args: addresses of the result, `ct` and the filters; the window; the multiplier.
    """
    b = LoopBuilder(f"depthwise_input_grad {dtype.short}")
    out, ct, f = b.pointer("out", dtype), b.pointer("ct", dtype), b.pointer("w", dtype)
    w = Window(b)
    multiplier = b.integer()
    width = w.channels * multiplier
    with b.for_(b.start, b.stop) as r:
        image, at = w.split(r, w.sizes)
        first = r * w.channels
        fill(b, out, first, w.channels)
        with w.places(image, at) as (tap, place, _), b.for_(0, w.channels) as c, b.for_(0, multiplier) as m:
            o = c * multiplier + m
            value = b.load(ct, place * width + o) * b.load(f, tap * width + o)
            accumulate(b, out, first + c, value)
    return b.finish()


def depthwise_filter_grad(dtype: DType) -> Kernel:
    """The gradient of `depthwise` for its filters, added up in float64; the range counts taps.

    args: addresses of the float64 result, which holds zeros, of the input and of `ct`; the window; the number of
    images; the multiplier.
    """
    b = LoopBuilder(f"depthwise_filter_grad {dtype.short}")
    out, x, ct = b.pointer("out", dt.float64), b.pointer("x", dtype), b.pointer("ct", dtype)
    w = Window(b)
    images = b.integer()
    multiplier = b.integer()
    width = w.channels * multiplier
    with b.for_(b.start, b.stop) as tap:
        _, k = w.split(tap, w.window)
        with b.for_(0, images * w.outputs[0] * w.outputs[1] * w.outputs[2]) as r:
            image, at = w.split(r, w.outputs)
            inside, pixel = w.pixel(image, at, k)
            with b.if_(inside), b.for_(0, w.channels) as c:
                value = b.cast(b.load(x, pixel * w.channels + c), dt.float64)
                with b.for_(0, multiplier) as m:
                    o = c * multiplier + m
                    product = value * b.cast(b.load(ct, r * width + o), dt.float64)
                    accumulate(b, out, tap * width + o, product)
    return b.finish()
