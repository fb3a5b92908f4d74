"""The kernels of depthwise convolutions, where every channel has filters of its own; what they take says
`conv_depthwise_shapes.py`.

There is no product of matrices in them: a vector holds neighbouring channels of one place. `depthwise` keeps the sums
of some places of a line while it goes along the taps, in rising order, leaving out what lies beyond the image; products
are rounded before they are added. `depthwise_filters` keeps those of some taps while it goes along the places of a
line, in float64.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from .conv_depthwise_shapes import DEPTHWISE, FILTERS
from .conv_shapes import symbol
from .conv_tile import Arguments, arguments, taps_inside
from .gemm_shapes import Tiling
from .gemm_tile import multiply_add
from .loop import Cell, Kernel, LoopBuilder
from .loop_sizes import covering, parted, share
from .value_types import vector

__all__ = ["depthwise", "depthwise_phases", "depthwise_filters"]

_AHEAD = 96  # places by which pixels are fetched before they are read
_TOGETHER = 3  # taps of a line that are taken at once
_LINES = 2  # lines of taps that the gradient for filters takes at once, where there are many registers


def depthwise(dtype: DType, shape: Tiling, vectors: int) -> Kernel:
    """The convolution, or a gradient for its input that is one."""
    return _Depthwise("depthwise", dtype, shape).recorded()


def depthwise_phases(dtype: DType, shape: Tiling, vectors: int) -> Kernel:
    """The gradient for the input in several phases."""
    return _Depthwise("depthwise_phases", dtype, shape).in_phases()


def depthwise_filters(dtype: DType, shape: Tiling, vectors: int) -> Kernel:
    """The gradient for the filters."""
    return _DepthwiseFilters(dtype, shape).recorded()


def _by_channels(b: LoopBuilder, v: Arguments, first: Scalar, lanes: int,
                 record: Callable[[Scalar | None], None]) -> None:
    """Records what is done for the vector of channels from `first` on: with a mask where it is not whole."""
    with b.if_(b.le(first + lanes, v.channels)):
        record(None)
    with b.else_():
        record(b.first(v.channels - first, lanes))


class _Line(NamedTuple):
    """A line of places.

    image: where its image begins. out: where its results do. places: the first of them and the one after the last.
    corner: the pixel at which its windows begin along the other axes. taps: the first one and the one after the last
    along each of these.
    """

    image: Scalar
    out: Scalar
    places: tuple[Scalar, Scalar]
    corner: tuple[Scalar, Scalar]
    taps: tuple[tuple[Scalar, Scalar], tuple[Scalar, Scalar]]


class _DepthwiseTile(NamedTuple):
    """Some places of a line.

    x, filters, out: where the first of their taps lies, and the first result. along: how many taps of a line they have.
    steps, outs: how far the places are from the first one, in x and in the result.
    """

    x: Scalar
    filters: Scalar
    out: Scalar
    along: Scalar
    steps: list[Scalar]
    outs: list[Scalar]


class _Depthwise:
    """The kernel being recorded; `v` are its arguments."""

    def __init__(self, name: str, dtype: DType, shape: Tiling) -> None:
        self.lanes, self.zero = shape.lanes, vector(dtype, shape.lanes)
        self.sums = 8 if shape.tall > 8 else 4  # that a tile has
        self.b = b = LoopBuilder(symbol(name, dtype))
        self.memory = arguments(b, dtype, ("out", "x", "b"))
        self.v: Arguments  # of the phase at hand

    def recorded(self) -> Kernel:
        """The finished kernel."""
        b = self.b
        self.begin(Arguments(**{word: b.integer() for word in DEPTHWISE}))
        with b.for_(b.start, b.stop) as number:
            self.run(number)
        return b.finish()

    def in_phases(self) -> Kernel:
        """The same for several phases, of which the words follow their number."""
        b, phases = self.b, self.b.integer()
        first = len(vars(self.memory)) + 1
        with b.for_(b.start, b.stop) as number, b.for_(0, phases) as phase:
            at = first + phase * len(DEPTHWISE)
            self.begin(Arguments(**{word: b.load(b.args, at + n) for n, word in enumerate(DEPTHWISE)}))
            with b.if_(b.lt(number, self.v.lines * self.v.runs)):
                self.run(number)
        return b.finish()

    def begin(self, v: Arguments) -> None:
        """Takes the words of a phase."""
        self.v = v
        self.next_x, self.next_y = v.step_x * v.channels, v.step_y * v.size_x * v.channels  # from tap to tap
        self.next_z = v.step_z * v.size_y * v.size_x * v.channels

    def run(self, number: Scalar) -> None:
        """A run of places of a line."""
        b, v = self.b, self.v
        rest, run = parted(b, number, v.runs)
        plane, y = parted(b, rest, v.places_y)
        image, z = parted(b, plane, v.places_z)
        corner = z * v.stride_z - v.before_z, y * v.stride_y - v.before_y
        taps = self.taps(corner[0], v.step_z, v.taps_z, v.size_z), self.taps(corner[1], v.step_y, v.taps_y, v.size_y)
        self.line(_Line(b.at(self.memory.x, image * (v.size_z * v.size_y * v.size_x * v.channels)),
                        b.at(self.memory.out, v.first_out + image * v.to_n + z * v.to_z + y * v.to_y),
                        share(b, run, v.places_x, v.runs), corner, taps))

    def taps(self, first: Scalar, step: Scalar, count: Scalar, size: Scalar) -> tuple[Scalar, Scalar]:
        """The taps inside of an image of a window that begins at pixel `first`."""
        b = self.b
        down = b.lt(step, 0)
        low, apart = first + b.select(down, (count - 1) * step, 0), b.select(down, -step, step)
        begin = b.minimum(covering(b, b.maximum(-low, 0), apart), count)
        end = b.maximum(b.minimum(covering(b, b.maximum(size - low, 0), apart), count), begin)
        return b.select(down, count - end, begin), b.select(down, count - begin, end)

    def line(self, line: _Line) -> None:
        """The results of a line: of the places whose windows lie inside along it several at once."""
        b, v = self.b, self.v
        first, last = line.places
        reach = (v.taps_x - 1) * v.step_x
        low = covering(b, b.maximum(v.before_x - b.minimum(reach, 0), 0), v.stride_x)
        high = covering(b, b.maximum(v.size_x + v.before_x - b.maximum(reach, 0), 0), v.stride_x)
        begin = b.minimum(b.maximum(low, first), last)
        end = b.maximum(b.minimum(high, last), begin)
        for lo, hi in ((first, begin), (end, last)):
            with b.for_(lo, hi) as place:
                taps = self.taps(place * v.stride_x - v.before_x, v.step_x, v.taps_x, v.size_x)
                self.place(line, place, taps)
        whole, done = (b.const(0, dt.int64), v.taps_x), b.local(begin)
        for count in (self.sums, self.sums // 2):
            with b.for_(done.get(), end - (count - 1), count) as place:
                self.tile(line, place, whole, count)
                done.set(place + count)
        with b.for_(done.get(), end) as place:
            self.place(line, place, whole)

    def place(self, line: _Line, place: Scalar, taps: tuple[Scalar, Scalar]) -> None:
        """The results of one place: of several vectors of channels at once."""
        b, v, many = self.b, self.v, self.sums // 2
        of, done = self.operands(line, place, taps, 1), b.local(0)
        with b.for_(0, v.channels - (many * self.lanes - 1), many * self.lanes) as channel:
            self.vectors(line, of, many, channel, None)
            done.set(channel + many * self.lanes)
        with b.for_(done.get(), v.channels, self.lanes) as channel:
            _by_channels(b, v, channel, self.lanes, functools.partial(self.vectors, line, of, 1, channel))

    def tile(self, line: _Line, place: Scalar, taps: tuple[Scalar, Scalar], places: int) -> None:
        """The results of some places, all of whose windows have the same taps inside."""
        b, v = self.b, self.v
        of = self.operands(line, place, taps, places)
        with b.for_(0, v.channels, self.lanes) as channel:
            _by_channels(b, v, channel, self.lanes, functools.partial(self.vectors, line, of, 1, channel))

    def operands(self, line: _Line, place: Scalar, taps: tuple[Scalar, Scalar], places: int) -> _DepthwiseTile:
        """The operands of a tile from `place` on."""
        b, v = self.b, self.v
        apart = v.stride_x * v.channels
        (first_z, _), (first_y, _) = line.taps
        pixel = place * v.stride_x - v.before_x + taps[0] * v.step_x
        row = (line.corner[0] + first_z * v.step_z) * v.size_y + line.corner[1] + first_y * v.step_y
        return _DepthwiseTile(b.at(line.image, (row * v.size_x + pixel) * v.channels),
                              b.at(self.memory.b, v.first_b + first_z * v.b_z + first_y * v.b_y + taps[0] * v.b_x),
                              b.at(line.out, place * v.to_x), taps[1] - taps[0], [apart * n for n in range(places)],
                              [v.to_x * n for n in range(places)])

    def vectors(self, line: _Line, of: _DepthwiseTile, count: int, channel: Scalar, mask: Scalar | None) -> None:
        """So many vectors from `channel` on of a tile."""
        b, v = self.b, self.v
        (first_z, last_z), (first_y, last_y) = line.taps
        sums = [[b.local(b.const(0.0, self.zero)) for _ in range(count)] for _ in of.steps]
        plane_x, plane_b = b.local(b.at(of.x, channel)), b.local(b.at(of.filters, channel))
        with b.for_(last_z - first_z, 0, -1):
            row_x, row_b = b.local(plane_x.get()), b.local(plane_b.get())
            with b.for_(last_y - first_y, 0, -1):
                with b.if_(b.eq(of.along, _TOGETHER)):
                    for n in range(_TOGETHER):
                        self.tap(of, sums, b.at(row_x.get(), self.next_x * n), b.at(row_b.get(), v.b_x * n), mask)
                with b.else_():
                    at_x, at_b = b.local(row_x.get()), b.local(row_b.get())
                    with b.for_(of.along, 0, -1):
                        self.tap(of, sums, at_x.get(), at_b.get(), mask)
                        at_x.set(b.at(at_x.get(), self.next_x))
                        at_b.set(b.at(at_b.get(), v.b_x))
                row_x.set(b.at(row_x.get(), self.next_y))
                row_b.set(b.at(row_b.get(), v.b_y))
            plane_x.set(b.at(plane_x.get(), self.next_z))
            plane_b.set(b.at(plane_b.get(), v.b_z))
        out = b.at(of.out, channel)
        for row, step in zip(sums, of.outs, strict=True):
            for n, cell in enumerate(row):
                b.store(out, step + n * self.lanes, cell.get(), mask)

    def tap(self, of: _DepthwiseTile, sums: list[list[Cell]], x: Scalar, filters: Scalar, mask: Scalar | None) -> None:
        """Adds the products of a tap."""
        b, lanes = self.b, self.lanes
        weights = [b.load(filters, n * lanes, lanes, mask) for n in range(len(sums[0]))]
        for cells, step in zip(sums, of.steps, strict=True):
            for n, cell in enumerate(cells):
                cell.set(cell.get() + b.load(x, step + n * lanes, lanes, mask) * weights[n])


class _TapRange(NamedTuple):
    """Some taps of a line: how far their pixels are from the places, and the places that have them inside, for each the
    first and the one after the last."""

    numbers: list[Scalar]
    starts: list[Scalar]
    lows: list[Scalar]
    highs: list[Scalar]


class _FilterLines(NamedTuple):
    """Some lines of pixels, beside a line of places, for a vector of channels.

    x: where each line of pixels begins; ct: where the outputs' gradient does. out: for each of the lines the result for
    the first tap. mask: of the channels, where they are not all there.
    """

    x: list[Scalar]
    ct: Scalar
    out: list[Scalar]
    mask: Scalar | None


class _DepthwiseFilters:
    """The kernel being recorded; `v` are its arguments."""

    def __init__(self, dtype: DType, shape: Tiling) -> None:
        self.lanes = shape.lanes
        self.rows = _LINES if shape.tall > 8 and not shape.first_tier else 1
        self.exact = dtype is not dt.float64  # whether products are, in float64
        self.b = b = LoopBuilder(symbol("depthwise_filters", dtype))
        self.out = b.pointer("out", dt.float64)
        self.v = arguments(b, dtype, FILTERS[1:])

    def recorded(self) -> Kernel:
        """The finished kernel."""
        b, v = self.b, self.v
        done = b.local(0)
        for count in (_TOGETHER, 1):
            with b.for_(done.get(), v.taps_x - (count - 1), count) as tap:
                self.places(self.taps(tap, count))
                done.set(tap + count)
        return b.finish()

    def taps(self, first: Scalar, count: int) -> _TapRange:
        """So many taps of a line from the first of them on."""
        b, v = self.b, self.v
        numbers = [first + n for n in range(count)]
        starts = [number * v.step_x - v.before_x for number in numbers]
        lows = [b.minimum(covering(b, b.maximum(-at, 0), v.stride_x), v.places_x) for at in starts]
        highs = [b.maximum(b.minimum(covering(b, b.maximum(v.size_x - at, 0), v.stride_x), v.places_x), low)
                 for at, low in zip(starts, lows, strict=True)]
        return _TapRange(numbers, starts, lows, highs)

    def places(self, taps: _TapRange) -> None:
        """What all places add to the gradient of some taps of every line of them."""
        b, v = self.b, self.v
        rows = self.rows if len(taps.numbers) > 1 else 1
        with b.for_(0, v.images * v.places_z * v.places_y) as line:
            plane, y = parted(b, line, v.places_y)
            image, z = parted(b, plane, v.places_z)
            corner_z, corner_y = z * v.stride_z - v.before_z, y * v.stride_y - v.before_y
            ct = b.at(v.b, line * v.places_x * v.channels)

            first, last = taps_inside(b, corner_y, v.taps_y, v.step_y, v.size_y)
            with b.for_(*taps_inside(b, corner_z, v.taps_z, v.step_z, v.size_z)) as k:
                plane, done = (image * v.size_z + corner_z + k * v.step_z) * v.size_y, b.local(first)
                for count in (rows, 1)[:rows]:
                    with b.for_(done.get(), last - (count - 1), count) as j:
                        x = b.at(v.x, (plane + corner_y + j * v.step_y) * v.size_x * v.channels)
                        self.lines(taps, count, x, ct, b.at(self.out, (k * v.taps_y + j) * v.taps_x * v.channels))
                        done.set(j + count)

    def lines(self, taps: _TapRange, count: int, x: Scalar, ct: Scalar, out: Scalar) -> None:
        """What a line of places adds to the gradient of so many lines of taps, from those at `x` and `out` on."""
        b, v = self.b, self.v
        next_x, next_out = v.step_y * v.size_x * v.channels, v.taps_x * v.channels
        with b.for_(b.start, b.stop) as number:
            at = number * self.lanes
            pixels, outs = ([b.at(start, step * n + at) for n in range(count)]
                            for start, step in ((x, next_x), (out, next_out)))
            _by_channels(b, v, at, self.lanes,
                         lambda mask: self.line(taps, _FilterLines(pixels, b.at(ct, at), outs, mask)))

    def line(self, taps: _TapRange, of: _FilterLines) -> None:
        """What a line of places adds: first those beside the edge of the image, where some taps are beyond it."""
        b, many = self.b, len(taps.numbers)
        outs = [number * self.v.channels for number in taps.numbers]
        sums = [[b.local(b.load(out, at, self.lanes, of.mask)) for at in outs] for out in of.out]

        def some(first: int, last: int, low: Scalar, high: Scalar) -> None:
            self.along(of, [row[first:last] for row in sums], taps.starts[first:last], low, high)

        lows, highs = taps.lows, taps.highs
        if many == 1:
            some(0, 1, lows[0], highs[0])
        else:
            with b.if_(b.le(lows[0], highs[-1])):  # there are places that have all taps inside
                for n in range(many - 1, 0, -1):
                    some(n, many, lows[n], lows[n - 1])
                self.middle(of, sums, taps.starts, lows[0], highs[-1])
                for n in range(many - 1, 0, -1):
                    some(0, n, highs[n], highs[n - 1])
            with b.else_():
                for n in range(many):
                    some(n, n + 1, lows[n], highs[n])
        for row, out in zip(sums, of.out, strict=True):
            for cell, at in zip(row, outs, strict=True):
                b.store(out, at, cell.get(), of.mask)

    def middle(self, of: _FilterLines, sums: list[list[Cell]], starts: list[Scalar], low: Scalar, high: Scalar) -> None:
        """Adds to sums the products of places `low` to `high`, all of whose taps are inside: a pixel that is one of the
        next place, too, is read once."""
        b, v = self.b, self.v
        with b.if_(b.lt(low, high)):
            with b.if_(b.eq(v.stride_x, v.step_x)):
                self.rolling(of, sums, starts, low, high, len(starts) - 1)
            with b.else_():
                with b.if_(b.eq(v.stride_x, v.step_x * 2)):
                    self.rolling(of, sums, starts, low, high, len(starts) - 2)
                with b.else_():
                    self.along(of, sums, starts, low, high)

    def along(self, of: _FilterLines, sums: list[list[Cell]], starts: list[Scalar], low: Scalar, high: Scalar) -> None:
        """The same for taps that lie `starts` pixels after the places, each read for itself."""
        self.rolling(of, sums, starts, low, high, 0)

    def rolling(self, of: _FilterLines, sums: list[list[Cell]], starts: list[Scalar], low: Scalar, high: Scalar,
                held: int) -> None:
        """The same where the first `held` pixels of a place are the last of the place before; of none, there may be no
        places."""
        b, v = self.b, self.v
        apart, steps = v.stride_x * v.channels, [at * v.channels for at in starts]
        at_x = [b.local(b.at(x, low * apart)) for x in of.x]
        at_ct = b.local(b.at(of.ct, low * v.channels))
        kept = [[b.local(self.wide(of, at.get(), step)) for step in steps[:held]] for at in at_x]
        with b.for_(high - low, 0, -1):
            if held:
                self.fetch(at_x, at_ct, steps[held:], apart)
            gradient = self.wide(of, at_ct.get(), 0)
            for at, row, cells in zip(at_x, kept, sums, strict=True):
                pixels = [*[cell.get() for cell in row], *[self.wide(of, at.get(), step) for step in steps[held:]]]
                for cell, pixel in zip(cells, pixels, strict=True):
                    cell.set(self.added(pixel, gradient, cell.get()))
                for cell, pixel in zip(row, pixels[len(pixels) - held:], strict=True):
                    cell.set(pixel)
                at.set(b.at(at.get(), apart))
            at_ct.set(b.at(at_ct.get(), v.channels))

    def fetch(self, at_x: list[Cell], at_ct: Cell, steps: list[Scalar], apart: Scalar) -> None:
        """Asks for what later places read first: of the lines of pixels the last, which no line before has read."""
        b = self.b
        b.prefetch(at_ct.get(), self.v.channels * _AHEAD)
        for step in steps:
            b.prefetch(at_x[-1].get(), apart * _AHEAD + step)

    def added(self, pixel: Scalar, gradient: Scalar, total: Scalar) -> Scalar:
        """The total and a product. Where products are exact, a fused multiply-add rounds what an addition does."""
        return multiply_add(self.b, pixel, gradient, total) if self.exact else total + pixel * gradient

    def wide(self, of: _FilterLines, address: Scalar, index: Scalar | int) -> Scalar:
        """The channels of a pixel in float64."""
        return self.b.cast(self.b.load(address, index, self.lanes, of.mask), dt.float64)
