"""How a convolution and its gradients are cut into the work of kernels: what `conv.py` and its callers agree on.

A `Cut` is one run of a kernel: its integers, its range, how much work that is. Sizes may be unknown (`ir/dims.py`), but
for those of the filters. What it takes of operands is said by each function. Every tap of a window lies in memory at
the same offset from it: where windows reach beyond an image, what they cover is copied, with zeros around it. `forward`
does that box by box, into work memory; for `filters` it is done before, with whole images (`padded`).

Words of a kernel's arguments, after the addresses of the result, of x and of B, and what they mean:

- `n`: columns of B and of the result. `ldb`: elements from one row of B to the next.
- `length`, `lines`: a window's elements come in lines of neighbours; `lines_y`, `lines_x`: how many lie along the last
  two axes; `line_z`, `line_y`, `line_x`: how far they are apart, in elements, as all steps are.
- `out_z`, `out_y`, `out_x`: places along each axis; `x_n`, `x_z`, `x_y`, `x_x`: the step in x from an image, and from a
  place along each axis, to the next.

`forward` takes B, the filters, DIRECT, HERE or PACKED as matrix products do (`mode`). Of the `k` rows `inner` belong to
a tap, `b_k` apart; taps are `b_z` .. `b_x` apart along each axis, `taps_y` and `taps_x` of them along the last two;
columns are `b_n` apart. x has `groups` of channels `x_g` apart, the result `to_g`, and B `b_g`. `to_n` .. `to_x` are
steps in the result; then how many `images` there are; and boxes of places, of `box_n` images by `box_z` by `box_y` by
`box_x`, `boxes_z` .. of them along each axis. The columns are parted in `pieces`. That makes so many `units`, boxes,
groups and pieces; the range numbers `parts`, even runs of units. `place_n` is what `x_n` is, but in what is copied of
x, if it is, and so are `x_z` .. `x_x` and `x_g`. If it is, `work` is not 0 but the address of work memory, of which
each part takes `room` elements; `cover_z` .. are the pixels of an image that a box covers, `size_z` .. an image's,
`before_z` .. those of padding before, `stride_z` .. those from one window to the next. Of the `channels` of a pixel,
`together` lie beside each other in what is copied: all, or a group's, and then `held` groups are copied at once.

`panels` packs B into the result; its range numbers groups, blocks of BLOCK rows, and panels of `width` columns, each of
which takes `size` elements: for PACKED, `panel_size`. If `flags` is not 0, a number for each panel is written from that
element on: 0 where all of its elements are finite, else NaN. `forward` does nothing where `unless` is not 0, and that
many such numbers, behind as many panels, are all 0.

`filters` takes B, the outputs' gradient, a row a place, `places` of them; `ldo`: elements from one row of the result to
the next; in how many `shares` the places are summed, each into a result of its own, `share` elements apart. x has
`groups` of `inner` channels, and B and the result so many times n columns. A line is parted in `cuts`, which makes
stretches; these are parted in `splits`, the columns in `pieces`. Its range numbers shares, groups, splits and pieces.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

from twofold.ir import dims as dm
from twofold.ir.dims import Dim, Size, Sizes
from twofold.ir.dtypes import DType

from .gemm_shapes import BLOCK, DIRECT, HERE, PACKED, VECTORS, Tiling, panel_width, tiling
from .kernels.windows import Geometry
from .kernels.windows import steps as steps_of
from .target import CACHES

__all__ = ["PANELS", "FORWARD", "FILTERS", "KERNELS", "PARTS", "WIDER", "NARROW", "LINES", "REPEATS", "MAX_ROWS", "Cut",
           "Phase", "FilterSteps", "symbol", "is_plain", "padded", "as_they_lie", "turned", "panel_size", "packing",
           "pieces", "forward", "forward_heights", "backward", "filters", "filter_heights", "shares", "evenly",
           "place_weight"]

_WINDOW = ("length", "lines_y", "lines_x", "line_z", "line_y", "line_x", "out_z", "out_y", "out_x",
           "x_n", "x_z", "x_y", "x_x")
_FILTERS = ("n", "k", "inner", "taps_y", "taps_x", "b_z", "b_y", "b_x", "b_k", "b_n", "b_g")
PANELS = ("out", "b", *_FILTERS, "width", "size", "flags")
FORWARD = ("out", "x", "b", "work", "mode", *_FILTERS, *_WINDOW, "groups", "held", "x_g", "to_g", "to_n", "to_z",
           "to_y", "to_x", "images", "box_n", "box_z", "box_y", "box_x", "boxes_z", "boxes_y", "boxes_x", "pieces",
           "units", "parts", "place_n", "room", "cover_z", "cover_y", "cover_x", "size_z", "size_y", "size_x",
           "before_z", "before_y", "before_x", "stride_z", "stride_y", "stride_x", "channels", "together", "unless")
FILTERS = ("out", "x", "b", "n", "ldb", "lines", *_WINDOW, "places", "ldo", "shares", "groups", "splits", "pieces",
           "cuts", "share", "inner")
NARROW = (1, 2, 3, 4, 6, 8)  # outputs that tiles of `conv_narrow.py` have
LINES = (3, 5)  # taps along a line that tiles of `conv_lines.py` have
REPEATS = (1, 2, 4, 8)  # elements of a window that vectors of `conv_grouped.py` take
# Kernels by how many vectors of columns their tiles have at most, one of which suffices for few outputs; or how many
# columns, taps along a line, or elements of a window in a vector.
KERNELS = {**{f"{name}_{vectors}": (name, vectors) for name in ("forward", "filters") for vectors in (1, VECTORS)},
           f"inside_{VECTORS}": ("inside", VECTORS),
           **{name: (name, VECTORS) for name in ("panels", "depthwise", "depthwise_phases", "depthwise_filters")},
           **{f"narrow_{columns}": ("narrow", columns) for columns in NARROW},
           **{f"{name}_{taps}": (name, taps) for name in ("lines", "line_filters") for taps in LINES},
           **{f"grouped_filters_{repeats}": ("grouped_filters", repeats) for repeats in REPEATS}}
PARTS = {name: (name,) for name in KERNELS}
# Those for few outputs, and those for many, which take few too.
WIDER = {f"{name}_1": f"{name}_{VECTORS}" for name in ("forward", "filters")}
MAX_ROWS = 1024  # places of a box

_LARGE = CACHES.second // 4  # elements of filters that take more than the near caches
_LINE = CACHES.places  # places of a line that a box has at most: several lines share what their windows cover
_NEAR = CACHES.second // 2  # bytes that windows of a box cover, which several panels read
_NEARER = CACHES.second // 8  # the same of some groups
_BESIDE = 512  # bytes of a pixel that are copied together
_HIGH = 98  # places of a box by which much of filters is read, at least
_FEW = 2  # boxes that pack filters themselves
_PARTS = 64  # of all boxes, at most: each may need memory
_SELDOM = 16  # runs of `forward`, of which another kernel leaves it one
_UNITS = 32  # boxes, or shares, that are worth having
_TILES = 10  # of a stretch, at most
# What units of `filters` cost, in cycles for each place: finding it, and packing a row of a panel.
_PLACE, _PACKING = 8, 8
_TRAFFIC = 6  # bytes of images and gradients that a thread gets in a cycle
_MANY = 16  # units for each thread, of which it does not matter whether they come out even
_IDLE = 0.1  # of a unit: how long a thread waits until the last one is done
_SHARE = 1 << 11  # places of a share, at least
_HELD = 1 << 20  # elements of all shares together, unless one has more


def symbol(name: str, dtype: DType) -> str:
    """The symbol of a kernel for `dtype` in machine code."""
    return f"conv_{name}_{dtype.name}"


class Cut(NamedTuple):
    """A run of a kernel.

    Attributes:
        kernel: its name. total: its range. weight: simple operations of an iteration.
        integers: its arguments after the addresses of result, x and B, and for `forward` of work memory.
        work: how many elements of work memory it needs; 0 where the address is to be 0.
        x, out, b: where these begin, in elements.
        packs: the integers and the range of the kernel `panels`, run before on B, and how many elements it fills; None
            where B is not packed before.
    """

    kernel: str
    integers: Sizes
    total: Size
    weight: Size
    work: Size = 0
    x: Size = 0
    out: Size = 0
    b: Size = 0
    packs: tuple[tuple[int, ...], int, int] | None = None


class Phase(NamedTuple):
    """The pixels of an input's gradient that the same taps fall on: a convolution of the outputs' gradient.

    window: for each axis the taps, last first, as slices' start, count and step. geometry: that convolution's, with the
    outputs' gradient as input. first, strides: the pixels, along each axis.
    """

    window: tuple[tuple[int, int, int], ...]
    geometry: Geometry
    first: tuple[int, ...]
    strides: tuple[int, ...]


def is_plain(w: Geometry) -> bool:
    """Whether the windows are the pixels themselves."""
    return w.taps == 1 and w.sizes == w.outputs and w.strides == (1, 1, 1) and w.before == (0, 0, 0)


def padded(w: Geometry) -> Geometry | None:
    """The geometry once padding is laid out; None where no window reaches beyond the image."""
    reaches = w.reach
    inside = [dm.decide_le(0, -b) is True and dm.decide_le(r - b, size) is True
              for b, r, size in zip(w.before, reaches, w.sizes, strict=True)]
    return None if all(inside) else w._replace(sizes=reaches, before=(0, 0, 0))


def _window(w: Geometry, images: Geometry, groups: int) -> tuple[Sizes, int, int, Size]:
    """The words of a window over `w`, which is of `images` or of what is copied of them; how many lines it has, their
    length, and where the first one begins."""
    image = steps_of(images.sizes, images.channels)[0]
    _, *steps = steps_of(w.sizes, w.channels)
    lines, length = w.window, w.channels // groups
    if w.dilations[2] == 1 and groups == 1:  # neighbours' channels are neighbours
        lines, length = (*w.window[:2], 1), length * w.window[2]
    begin = sum(-b * s for b, s in zip(w.before, steps, strict=True))
    words = (length, *lines[1:], *(d * s for d, s in zip(w.dilations, steps, strict=True)), *w.outputs,
             image, *(n * s for n, s in zip(w.strides, steps, strict=True)))
    return words, math.prod(lines), length, begin


class FilterSteps(NamedTuple):
    """How filters lie in memory that `forward` takes: steps, in elements, from one to the next.

    first: where they begin. taps: along each axis. element, column: along a tap's elements, and from output to output.
    group: from one group's to the next.
    """

    first: int
    taps: tuple[int, int, int]
    element: int
    column: int
    group: int


def as_they_lie(w: Geometry, outputs: int, groups: int) -> FilterSteps:
    """Filters [taps, channels / groups, outputs], for the convolution."""
    return FilterSteps(0, steps_of(w.window, w.channels // groups * outputs)[1:], outputs, 1, outputs // groups)


def turned(w: Geometry, outputs: int, groups: int, phase: Phase) -> FilterSteps:
    """The same filters for a phase of the gradient for the input, whose outputs are the input's channels."""
    _, *steps = steps_of(w.window, w.channels // groups * outputs)
    first = sum(start * step for (start, _, _), step in zip(phase.window, steps, strict=True))
    z, y, x = (by * step for (_, _, by), step in zip(phase.window, steps, strict=True))
    return FilterSteps(first, (z, y, x), 1, outputs, outputs // groups)


def forward_heights(shape: Tiling) -> tuple[list[int], list[int]]:
    """The places of tiles that read their addresses, and of those whose places are evenly spaced, of which the first
    tier has none."""
    if shape.first_tier:
        return [shape.tall], []
    even = [n for n in (shape.tall - 6, shape.tall - 2, shape.tall) if n > 0 and 2 * n >= shape.tall]
    return sorted(shape.heights), even


def panel_size(shape: Tiling) -> int:
    """Elements of a packed panel of filters: packing turns squares, which may reach beyond the last row."""
    return (BLOCK + shape.lanes) * panel_width(shape, False)


def forward(w: Geometry, outputs: int, groups: int, dtype: DType, filters: FilterSteps | None = None,
            pixels: tuple[Sizes, tuple[int, ...], tuple[int, ...]] | None = None, threads: int = 1,
            unless: bool = False, ready: bool = False) -> Cut:
    """The convolution by filters.

    Args:
        w: of the images.
        outputs: channels of the result.
        filters: how they lie; [taps, channels / groups, outputs], where it is None.
        pixels: of the result: how many along each axis, and which of them the places are: the first, and the strides.
            Every one, where it is None.
        threads: how many there are.
        unless: whether it is left to the kernel `inside` where filters are finite (`conv_inside_shapes.py`).
        ready: whether packed filters are there already, however few boxes read them.
    """
    sizes, first, strides = pixels or (w.outputs, (0, 0, 0), (1, 1, 1))
    lying = filters or as_they_lie(w, outputs, groups)
    inner, columns = w.channels // groups, outputs // groups
    to_image, *steps = steps_of(sizes, outputs)
    copies = padded(w) is not None
    shape = tiling(dtype)
    # What is copied lies group by group, pixels beside each other, where a group's channels are whole vectors.
    apart = groups if copies and inner % shape.lanes == 0 else 1
    held = min(max(_BESIDE // (inner * dtype.size), 1), groups) if apart > 1 else groups
    images, *box = _box(w, w.taps * inner * columns, held * inner * dtype.size, -(-groups // held), threads)
    cover = w._replace(outputs=tuple(box)).reach
    seen = w._replace(sizes=cover, before=(0, 0, 0), channels=w.channels // apart) if copies else w
    words, lines, length, begin = _window(seen, w, groups // apart)
    image = math.prod(cover) * seen.channels
    room = images * image * min(held, apart) if copies else 0
    k = lines * length
    panels = -(-columns // panel_width(shape, False))
    boxes = [dm.ceil_div(o, b) for o, b in zip(w.outputs, box, strict=True)]
    count = dm.ceil_div(w.images, images) * math.prod(boxes)
    mode = PACKED if unless else _mode(panels, count, filters is None and shape.masks, ready)
    rows = (k, inner, *w.window[1:]) if filters else (k, k, 1, 1)  # one step from each row to the next
    of_b = (columns, *rows, *lying.taps, lying.element, lying.column, lying.group)
    packs = packing(of_b, groups * -(-k // BLOCK) * panels, shape, unless) if mode == PACKED else None
    parting = pieces(count * groups, panels, threads)
    units = count * groups * parting
    parts = dm.minimum(units, _PARTS)
    if copies and not isinstance(count, Dim) and not isinstance(parts, Dim) and count < parts:
        # those of a box in few parts, each of which copies it
        parts = min(parts, count * -(-4 * threads // count))
    place = image if copies else words[_WINDOW.index("x_n")]
    copied = (room, *cover, *w.sizes, *w.before, *w.strides, w.channels, seen.channels) if copies else (0,) * 15
    to = (groups, held, images * image if apart > 1 else inner, columns, to_image,
          *(n * s for n, s in zip(strides, steps, strict=True)))
    flags = packs[1] if unless and packs else 0
    integers = (mode, *of_b, *words, *to, w.images, images, *box, *boxes, parting, units, parts, place, *copied, flags)
    width = -(-panels // parting) * panel_width(shape, False) if parting > 1 else columns
    each = images * math.prod(box) * place_weight(k, width)
    weight = each * dm.maximum(units, _PARTS) // _PARTS + 1  # units over parts, without dividing by an unknown size
    if unless:
        weight = weight // _SELDOM + 1
    begin_out = sum(f * s for f, s in zip(first, steps, strict=True))
    return Cut(_kernel("forward", columns, shape), integers, parts, weight, parts * room, begin, begin_out,
               lying.first, packs)


def packing(of_b: tuple[int, ...], panels: int, shape: Tiling, checked: bool) -> tuple[tuple[int, ...], int, int]:
    """What packs filters before: see `Cut.packs`. If `checked`, a flag follows for each panel."""
    elements = panels * panel_size(shape)
    integers = (*of_b, panel_width(shape, False), panel_size(shape), elements * checked)
    return integers, panels, elements + panels * checked


def _mode(panels: int, boxes: Size, readable: bool, ready: bool) -> int:
    """How filters are read: as they lie if they can be and are near, being narrow; packed by the boxes themselves if
    these are few; else packed before."""
    if readable and panels == 1:
        return DIRECT
    return HERE if not ready and not isinstance(boxes, Dim) and boxes <= _FEW else PACKED


def pieces(units: Size, panels: int, threads: int) -> int:
    """In how many pieces columns are parted: as few as make units enough, and even ones, for all threads."""
    if isinstance(units, Dim) or units >= _MANY * threads:
        return 1
    even = [pieces for pieces in evenly(panels) if units * pieces % threads == 0]
    return min(even or [panels])


def _kernel(name: str, columns: int, shape: Tiling) -> str:
    return f"{name}_{1 if columns <= shape.lanes else VECTORS}"


def place_weight(window: int, columns: int) -> int:
    """Simple operations of a place: for its products, and for walking there."""
    return 2 * window * -(-columns // 16) + 16


def _box(w: Geometry, filters: int, pixel: int, runs: int, threads: int) -> tuple[int, ...]:
    """Images, and places along each axis, of a box: enough boxes to share out, of many places each, and evenly cut,
    that cover little enough to stay near. Where there are many elements of `filters`, boxes are large, so that they
    are read few times; where one thread takes all boxes, fewer will do, which have fewer pixels in common. A pixel has
    so many bytes."""
    if any(isinstance(o, Dim) for o in w.outputs):
        return 1, 1, 8, 64
    images = 1 if isinstance(w.images, Dim) else w.images
    near = _NEAR if runs == 1 else _NEARER
    near = min(max(near // (pixel * math.prod(w.strides)), _HIGH), MAX_ROWS)
    units = _UNITS if threads > 1 else _UNITS // 2
    room = near if filters > _LARGE else min(max(images * math.prod(w.outputs) * runs // units, 56), near)
    box: list[int] = []
    for size in (*reversed(w.outputs), images):
        most = max(room // math.prod(box), 1) if box else min(room, _LINE)
        box.insert(0, -(-size // -(-size // most)))
    return tuple(box)


def backward(w: Geometry, outputs: int) -> list[Phase] | None:
    """The gradient for the input, in phases; those that no tap falls on are left out. None where it depends on sizes
    that are unknown which taps fall on a pixel.

    Args:
        w: of the convolution.
        outputs: its channels.
    """
    axes = []
    for size, places, k, s, d, before in zip(w.sizes, w.outputs, w.window, w.strides, w.dilations, w.before,
                                             strict=True):
        if s > 1 and isinstance(before, Dim):
            return None
        phases = []
        on: dict[int, list[int]] = {}  # the taps that fall on each phase, of which there may be far fewer than phases
        for t in range(k):
            on.setdefault(0 if s == 1 else (t * d - before) % s, []).append(t)
        for first, taps in sorted(on.items()):
            if not (isinstance(size, Dim) or first < size):
                continue
            apart = taps[1] - taps[0] if len(taps) > 1 else s // math.gcd(s, d)
            begin = (first + before - taps[-1] * d) // s  # exact
            count = dm.ceil_div(size - first, s)
            phases.append(((taps[-1], len(taps), -apart), places, count, len(taps), apart * d // s, -begin, first, s))
        axes.append(phases)
    combined = []
    for chosen in itertools.product(*axes):
        slices, sizes, counts, window, dilations, befores, firsts, strides = zip(*chosen, strict=True)
        geometry = Geometry(w.images, sizes, counts, window, (1, 1, 1), dilations, befores, outputs)
        combined.append(Phase(slices, geometry, firsts, strides))
    return combined


def shares(w: Geometry, outputs: int, groups: int) -> Size:
    """In how many shares the places are summed for the gradient of filters; part of what results mean."""
    most = min(_HELD // (w.taps * w.channels // groups * outputs), _UNITS // 2)
    return dm.maximum(dm.minimum(w.places // _SHARE, most) // 4 * 4, 1)  # by fours: they part evenly among threads


def filter_heights(shape: Tiling, vectors: int) -> tuple[int, ...]:
    """Elements of a line that tiles of the kernel `filters` take: whole tiles only, so that nothing beyond a line is
    read."""
    if shape.first_tier:
        return shape.heights
    most = (24 if shape.tall > 8 else 10) // vectors
    return tuple(n for n in (24, 16, 12, 8, 5, 4, 2, 1) if n <= most)


def filters(w: Geometry, outputs: int, groups: int, count: Size, dtype: DType, threads: int = 1) -> Cut:
    """The gradient for the filters, [shares, taps, channels / groups, outputs] in memory, in `count` shares.

    Args:
        w: of images whose padding is laid out.
        outputs: channels of the outputs' gradient, which is row-major.
        threads: how many there are.
    """
    inner, columns, shape = w.channels // groups, outputs // groups, tiling(dtype)
    words, lines, length, begin = _window(w, w, groups)
    known = 1 if isinstance(count, Dim) else count
    cuts, splits, pieces = _filter_units(dtype, lines, length, inner, columns, known * groups, threads)
    integers = (columns, outputs, lines, *words, w.places, outputs, count, groups, splits, pieces, cuts,
                lines * length * outputs, inner)
    units = count * groups * splits * pieces
    weight = groups * w.places * place_weight(lines * length, columns) // dm.maximum(units, 1) + 1
    return Cut(_kernel("filters", columns, shape), integers, units, weight, 0, begin)


def _filter_units(dtype: DType, lines: int, length: int, channels: int, columns: int, apart: int,
                  threads: int) -> tuple[int, int, int]:
    """Cuts, splits and pieces, as cost least.

    Args:
        apart: how many results there are, of shares and groups.
    """
    shape = tiling(dtype)
    height, panels = filter_heights(shape, VECTORS)[0], -(-columns // panel_width(shape, False))
    tiles = -(-length // height)
    cuts = max(-(-tiles // _TILES), min(tiles // 2, -(-threads // (apart * lines))), 1)

    def cost(unit: tuple[int, int]) -> float:
        """In cycles for each place, of the thread that has most to do."""
        high, wide = -(-lines * cuts // unit[0]) * tiles / cuts, -(-panels // unit[1])
        each = _PLACE + high * wide * height + wide * _PACKING
        each += (min(high * height, channels) + wide * shape.lanes * VECTORS) * dtype.size / _TRAFFIC
        if high * height * wide * shape.lanes * VECTORS * dtype.size > CACHES.second:
            each += high * wide
        return each * (-(-apart * unit[0] * unit[1] // threads) + _IDLE)

    splits, pieces = min(itertools.product(evenly(lines * cuts), evenly(panels)), key=cost)
    return cuts, splits, pieces


def evenly(count: int) -> list[int]:
    """Into how many parts so many things fall, parts of one size as far as they go."""
    return sorted({-(-count // each) for each in range(1, count + 1)})
