"""Loops over sliding windows in three spatial axes, which the kernels of pooling and convolution share.

Fewer axes are axes of size 1. A `Window` reads 19 integers: the sizes of the input, of the output, of the window, its
strides, dilations and padding before (three each), and the number of channels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from twofold.codegen.loop import LoopBuilder, Pointer
from twofold.ir import dtypes as dt
from twofold.ir import windows
from twofold.ir.dims import Size, Sizes
from twofold.ir.instructions import ScalarLike
from twofold.ir.scalar import Scalar
from twofold.ir.types import Attrs

__all__ = ["Geometry", "geometry", "steps", "Window", "fill", "accumulate"]


class Geometry(NamedTuple):
    """A window over an input [images, sizes.., channels]; spatial axes are padded to three with ones.

    Sizes may be unknown (`ir/dims.py`).
    """

    images: Size
    sizes: Sizes
    outputs: Sizes
    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: Sizes
    channels: Size

    @property
    def integers(self) -> Sizes:
        """The arguments that `Window` reads."""
        return (*self.sizes, *self.outputs, *self.window, *self.strides, *self.dilations, *self.before, self.channels)

    @property
    def pixels(self) -> Size:
        return self.images * math.prod(self.sizes)

    @property
    def places(self) -> Size:
        return self.images * math.prod(self.outputs)

    @property
    def taps(self) -> int:
        return math.prod(self.window)

    @property
    def reach(self) -> Sizes:
        """The pixels along each axis that windows reach over, from the first window's first tap on."""
        return tuple([(o - 1) * s + (k - 1) * d + 1
                      for o, s, k, d in zip(self.outputs, self.strides, self.window, self.dilations, strict=True)])


def steps(sizes: Sizes, channels: Size) -> tuple[Size, Size, Size, Size]:
    """From one image, plane, line and pixel of row-major [images, sizes.., channels] to the next, in elements."""
    _, y, x = sizes
    return math.prod(sizes) * channels, y * x * channels, x * channels, channels


def geometry(dims: Sequence[Size], places: Sequence[Size], window: Sequence[int], attrs: Attrs) -> Geometry:
    """The geometry for input `dims` [batch, spatial.., channels] with `places` along each spatial axis."""
    strides, dilations, sizes = attrs["strides"], attrs["dilations"], dims[1:-1]
    before = tuple(p[0] for p in windows.pads(sizes, window, strides, dilations, attrs["padding"]))

    def three(values: Sequence[Size], filler: int) -> Sizes:
        return (filler,) * (3 - len(values)) + tuple(values)

    return Geometry(dims[0], three(sizes, 1), three(places, 1), three(window, 1), three(strides, 1),
                    three(dilations, 1), three(before, 0), dims[-1])


def fill(b: LoopBuilder, out: Pointer, first: Scalar, count: Scalar, value: float = 0.0) -> None:
    """Sets `count` elements of `out` from number `first` on to `value`."""
    with b.for_(0, count) as i:
        b.store(out, first + i, value)


def accumulate(b: LoopBuilder, out: Pointer, index: Scalar, value: Scalar) -> None:
    """Adds `value` to element `index` of `out`."""
    b.store(out, index, b.load(out, index) + value)


class Window:
    """The geometry of a window, as values of a kernel."""

    def __init__(self, b: LoopBuilder) -> None:
        self.b = b
        self.sizes, self.outputs, self.window, self.strides, self.dilations, self.before = (
            [b.integer() for _ in range(3)] for _ in range(6))
        self.channels = b.integer()
        self.taps_count = self.window[0] * self.window[1] * self.window[2]

    def split(self, pixel: Scalar, sizes: Sequence[Scalar]) -> tuple[Scalar, list[Scalar]]:
        """Image and coordinates of a pixel's number, row-major."""
        b, at = self.b, []
        for size in reversed(sizes):
            above = b.idiv(pixel, size)
            at.append(pixel - above * size)
            pixel = above
        return pixel, at[::-1]

    def pixel(self, image: Scalar, at: Sequence[Scalar], tap: Sequence[ScalarLike]) -> tuple[Scalar, Scalar]:
        """Whether a tap of the window of output place `at` is inside the input, and the number of the pixel there."""
        b = self.b
        inside, pixel = b.const(True, dt.bool_), image
        for axis in range(3):
            i = at[axis] * self.strides[axis] - self.before[axis] + tap[axis] * self.dilations[axis]
            inside = b.and_(inside, b.and_(b.ge(i, 0), b.lt(i, self.sizes[axis])))
            pixel = pixel * self.sizes[axis] + i
        return inside, pixel

    @contextmanager
    def taps(self, image: Scalar, at: Sequence[Scalar]) -> Iterator[tuple[Scalar, Scalar]]:
        """For the output place `at`: each tap that is inside the input, and the number of the input's pixel there."""
        b = self.b
        tap, pixel = b.const(0, dt.int64), image
        with ExitStack() as nest:
            for axis in range(3):
                k = nest.enter_context(b.for_(0, self.window[axis]))
                i = at[axis] * self.strides[axis] - self.before[axis] + k * self.dilations[axis]
                nest.enter_context(b.if_(b.and_(b.ge(i, 0), b.lt(i, self.sizes[axis]))))
                tap = tap * self.window[axis] + k
                pixel = pixel * self.sizes[axis] + i
            yield tap, pixel

    @contextmanager
    def places(self, image: Scalar, at: Sequence[Scalar],
               rising: bool = False) -> Iterator[tuple[Scalar, Scalar, list[Scalar]]]:
        """For the input pixel `at`: each tap that falls on it, and the number and coordinates of the output place. Taps
        are in rising order, or places are, which is the other way round."""
        b = self.b
        tap, place, where = b.const(0, dt.int64), image, []
        with ExitStack() as nest:
            for axis in range(3):
                taps = b.for_(self.window[axis] - 1, -1, -1) if rising else b.for_(0, self.window[axis])
                k = nest.enter_context(taps)
                moved = at[axis] + self.before[axis] - k * self.dilations[axis]
                o = b.idiv(moved, self.strides[axis])
                exact = b.eq(o * self.strides[axis], moved)
                nest.enter_context(b.if_(b.and_(b.and_(exact, b.ge(moved, 0)), b.lt(o, self.outputs[axis]))))
                tap = tap * self.window[axis] + k
                place = place * self.outputs[axis] + o
                where.append(o)
            yield tap, place, where

    def count(self, at: Sequence[Scalar]) -> Scalar:
        """How many taps of the output place `at` are inside the input; at least 1, to divide by."""
        b = self.b
        total = b.const(1, dt.int64)
        for axis in range(3):
            d = self.dilations[axis]
            first = at[axis] * self.strides[axis] - self.before[axis]
            lo = b.idiv(b.maximum(-first, 0) + (d - 1), d)
            hi = b.minimum(b.idiv(b.maximum(self.sizes[axis] - first, 0) + (d - 1), d), self.window[axis])
            total = total * b.maximum(hi - lo, 0)
        return b.maximum(total, 1)
