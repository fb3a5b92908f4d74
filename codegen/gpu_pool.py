"""Pooling on a GPU: a thread for each element of the result, with what it gathers in registers.

Elements, orders and bits are those of `kernels/pool.py`. There a largest element tells its window's gradient to where
it lies; here each pixel asks the windows that it is in whether it is their first largest one, in the order in which
they would tell it, so that the sums are the same.
"""

from __future__ import annotations

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from .kernels import pool
from .kernels.windows import Window
from .loop import Cell, Kernel, LoopBuilder, Pointer
from .loop_sizes import parted

__all__ = ["maximum", "average", "argmax", "gather", "winners", "maximum_grad", "maximum_grad_tiled", "average_grad"]


def maximum(dtype: DType) -> Kernel:
    """The largest element of a window, for each element of the result in the range.

    args: addresses of result and operand; the window.
    """
    b, out, (x,), w = _begun("max_pool", dtype, dtype, "x")
    with b.for_(b.start, b.stop) as i:
        image, at, channel = _placed(b, w, i)
        largest = b.local(pool.lowest(dtype), dtype)
        with w.taps(image, at) as (_, pixel):
            largest.set(b.maximum(largest.get(), b.load(x, pixel * w.channels + channel)))
        b.store(out, i, largest.get())
    return b.finish()


def average(dtype: DType) -> Kernel:
    """The average of a window, for each element of the result in the range; padding does not count.

    args: addresses of result and operand; the window.
    """
    b, out, (x,), w = _begun("avg_pool", dtype, dtype, "x")
    with b.for_(b.start, b.stop) as i:
        image, at, channel = _placed(b, w, i)
        total = b.local(0, dtype)
        with w.taps(image, at) as (_, pixel):
            total.set(total.get() + b.load(x, pixel * w.channels + channel))
        b.store(out, i, total.get() / b.cast(w.count(at), dtype))
    return b.finish()


def argmax(dtype: DType) -> Kernel:
    """The number in its image of a window's first largest element, for each element of the result in the range.

    args: addresses of the int64 result and the operand; the window.
    """
    b, out, (x,), w = _begun("max_pool_argmax", dtype, dt.int64, "x")
    span = w.sizes[0] * w.sizes[1] * w.sizes[2] * w.channels
    with b.for_(b.start, b.stop) as i:
        image, at, channel = _placed(b, w, i)
        where = _first_largest(b, w, x, image, at, channel)[1].get()
        b.store(out, i, b.select(b.lt(where, 0), 0, where - image * span))
    return b.finish()


def gather(dtype: DType) -> Kernel:
    """The element of `g` where a window of `x` has its first largest, for each element of the result in the range.

    args: addresses of the result, `g` and `x`; the window.
    """
    b, out, (g, x), w = _begun("max_pool_gather", dtype, dtype, "g", "x")
    with b.for_(b.start, b.stop) as i:
        image, at, channel = _placed(b, w, i)
        where = _first_largest(b, w, x, image, at, channel)[1].get()
        picked = b.local(0, dtype)
        with b.if_(b.ge(where, 0)):
            picked.set(b.load(g, where))
        b.store(out, i, picked.get())
    return b.finish()


def winners(dtype: DType) -> Kernel:
    """The tap of a window that holds its first largest element, for each place and channel in the range.

    args: addresses of the int32 result and the operand; the window.
    """
    b, out, (x,), w = _begun("max_pool winners", dtype, dt.int32, "x")
    with b.for_(b.start, b.stop) as i:
        image, at, channel = _placed(b, w, i)
        b.store(out, i, b.cast(_first_largest(b, w, x, image, at, channel)[0].get(), dt.int32))
    return b.finish()


def maximum_grad(dtype: DType) -> Kernel:
    """The sum of `ct` over the windows whose first largest element is a pixel's, for each element of the input in the
    range.

    args: addresses of the result, of `ct` and of what `winners` gives; the window.
    """
    b = LoopBuilder(f"max_pool_grad by elements {dtype.short}")
    out, ct, which = b.pointer("out", dtype), b.pointer("ct", dtype), b.pointer("which", dt.int32)
    w = Window(b)
    with b.for_(b.start, b.stop) as i:
        pixel, channel = parted(b, i, w.channels)
        image, at = w.split(pixel, w.sizes)
        total = b.local(0, dtype)
        with w.places(image, at, rising=True) as (tap, place, _):
            here = place * w.channels + channel
            with b.if_(b.eq(b.cast(b.load(which, here), dt.int64), tap)):
                total.set(total.get() + b.load(ct, here))
        b.store(out, i, total.get())
    return b.finish()


def maximum_grad_tiled(dtype: DType) -> Kernel:
    """`maximum_grad` where every pixel is in one window, for each place and channel in the range.

    args: addresses of the result, of `ct` and of `x`; the window.
    """
    b, out, (ct, x), w = _begun("max_pool_grad tiled", dtype, dtype, "ct", "x")
    with b.for_(b.start, b.stop) as i:
        image, at, channel = _placed(b, w, i)
        which = _first_largest(b, w, x, image, at, channel)[0].get()
        share = b.load(ct, i) + 0.0  # a sum that begins at 0, as elsewhere
        with w.taps(image, at) as (tap, pixel):
            b.store(out, pixel * w.channels + channel, b.select(b.eq(tap, which), share, 0.0))
    return b.finish()


def average_grad(dtype: DType) -> Kernel:
    """The gradient of `average` for each element of the input in the range.

    args: addresses of result and `ct`; the window.
    """
    b, out, (ct,), w = _begun("avg_pool_grad", dtype, dtype, "ct")
    with b.for_(b.start, b.stop) as i:
        pixel, channel = parted(b, i, w.channels)
        image, at = w.split(pixel, w.sizes)
        total = b.local(0, dtype)
        with w.places(image, at) as (_, place, where):
            total.set(total.get() + b.load(ct, place * w.channels + channel) / b.cast(w.count(where), dtype))
        b.store(out, i, total.get())
    return b.finish()


def _begun(name: str, dtype: DType, result: DType, *operands: str) -> tuple[LoopBuilder, Pointer, list[Pointer],
                                                                            Window]:
    """A builder, the result and the operands of a kernel, and the window."""
    b = LoopBuilder(f"{name} by elements {dtype.short}")
    out, ins = b.pointer("out", result), [b.pointer(operand, dtype) for operand in operands]
    return b, out, ins, Window(b)


def _placed(b: LoopBuilder, w: Window, number: Scalar) -> tuple[Scalar, list[Scalar], Scalar]:
    """The image, the output place and the channel of an element of a result."""
    place, channel = parted(b, number, w.channels)
    return *w.split(place, w.outputs), channel


def _first_largest(b: LoopBuilder, w: Window, x: Pointer, image: Scalar, at: list[Scalar],
                   channel: Scalar) -> tuple[Cell, Cell]:
    """The tap of a window that holds its first largest element of a channel, and the number of that element; -1 where
    the window has no pixel."""
    best, which, where = b.local(0, x.dtype), b.local(-1), b.local(-1)
    with w.taps(image, at) as (tap, pixel):
        here = pixel * w.channels + channel
        value = b.load(x, here)
        with b.if_(pool.leads(b, value, best.get(), which.get())):
            best.set(value)
            which.set(tap)
            where.set(here)
    return which, where
