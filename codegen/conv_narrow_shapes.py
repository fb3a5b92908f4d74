"""How a convolution with few outputs, or few in each group, is cut into work: what `conv_narrow.py` and its callers
agree on. Sizes may be unknown (`ir/dims.py`), but for those of the filters and the channels.

Words of a kernel's arguments, after the addresses of the result, of x, of B and of work memory, and what they mean:

- `n`: outputs of a group, of which there are `groups`. `k`: elements of a window, `inner` of them a tap.
- x has images of `size_z` by `size_y` by `size_x` pixels of `channels` elements. A place lies `stride_z` .. pixels
  after the one before along each axis, its window begins `before_z` .. pixels before it, and the taps, `taps_y` and
  `taps_x` along the last two axes, are `step_z` .. pixels apart.
- There are `out_z` by `out_y` by `out_x` places in an image, in boxes of `box_z` by `box_y` by `box_x`, of which there
  are `boxes_z` .. along each axis. That makes so many `units`, boxes of all images; the range numbers `parts`, even
  runs of units.
- `to_n` .. `to_x`: steps in the result from an image, and from a place along each axis, to the next.
- Rows of B are `ldb` apart, blocks of BLOCK rows `b_block`, and groups `b_g`.

Each part has `room` elements of work memory: channel by channel, `plane` elements each, the pixels that a box covers;
from `sums` on the results, output by output, `flat` elements each. In a plane the pixels are parted by what their
places along the axes leave when divided by the strides, so that a tap's pixels of neighbouring places are neighbours:
`plane_z` by `plane_y` by `plane_x` pixels for each remainder.
"""

from __future__ import annotations

import math

from twofold.ir import dims as dm
from twofold.ir.dims import Dim, Sizes
from twofold.ir.dtypes import DType

from .conv_shapes import NARROW, Cut, FilterSteps, as_they_lie
from .gemm_shapes import BLOCK, Tiling, tiling
from .kernels.windows import Geometry
from .kernels.windows import steps as steps_of
from .target import CACHES

__all__ = ["WORDS", "suits", "columns_of", "vectors_of", "forward"]

WORDS = ("out", "x", "b", "work", "n", "k", "inner", "groups", "size_z", "size_y", "size_x", "channels", "stride_z",
         "stride_y", "stride_x", "before_z", "before_y", "before_x", "taps_y", "taps_x", "step_z", "step_y", "step_x",
         "out_z", "out_y", "out_x", "box_z", "box_y", "box_x", "boxes_z", "boxes_y", "boxes_x", "units", "parts",
         "to_n", "to_z", "to_y", "to_x", "ldb", "b_block", "b_g", "room", "plane", "sums", "flat", "plane_z", "plane_y",
         "plane_x")

_WINDOW = 32  # elements of a window, at least: what turning takes
_MOST = 8  # vectors of places of a tile
_NEAR = CACHES.second // 2  # bytes of the pixels that a box covers
_PLACES = (96, 1024)  # of a box: what makes up for its margins, and what threads can share
_UNITS = 4  # for each thread, that are worth having
_PARTS = 8  # for each thread, at most: each needs memory


def suits(w: Geometry, outputs: int, groups: int, dtype: DType) -> bool:
    """Whether the outputs of a group fill half of a vector or less, and windows are large enough to repay turning. With
    several groups, tiles have to have just as many outputs, since the next group's results follow."""
    columns = outputs // groups
    if w.taps * w.channels < _WINDOW * groups:
        return False
    return 2 * columns <= min(tiling(dtype).lanes, 2 * NARROW[-1]) and (groups == 1 or columns in NARROW)


def columns_of(columns: int) -> int:
    """The outputs of the tiles that compute so many."""
    return next(n for n in NARROW if n >= columns)


def vectors_of(columns: int, shape: Tiling) -> int:
    """The vectors of places of a tile of so many outputs: as many as fit into registers."""
    return min((24 if shape.tall > 8 else 12) // columns, _MOST)


def forward(w: Geometry, outputs: int, groups: int, dtype: DType, filters: FilterSteps | None = None,
            pixels: tuple[Sizes, tuple[int, ...], tuple[int, ...]] | None = None, threads: int = 1) -> Cut:
    """The convolution by filters; its arguments are those of `conv_shapes.forward`."""
    sizes, first, strides = pixels or (w.outputs, (0, 0, 0), (1, 1, 1))
    lying = filters or as_they_lie(w, outputs, groups)
    shape, inner, columns, k = tiling(dtype), w.channels // groups, outputs // groups, w.taps * w.channels // groups
    rows = columns_of(columns)
    box = _box(w, (w.channels * math.prod(w.strides) + outputs) * dtype.size, threads)
    counts = [dm.ceil_div(o, b) for o, b in zip(w.outputs, box, strict=True)]
    units = w.images * math.prod(counts)
    parts = dm.minimum(units, _PARTS * threads)
    image, *steps = steps_of(sizes, outputs)
    right, packs = _filters(w, lying, columns, groups, shape, rows == columns and filters is None)
    to = (image, *(n * s for n, s in zip(strides, steps, strict=True)))
    memory = _memory(w, box, outputs, rows, shape, dtype)
    integers = (columns, k, inner, groups, *w.sizes, w.channels, *w.strides, *w.before, *w.window[1:],
                *w.dilations, *w.outputs, *box, *counts, units, parts, *to, *right, *memory)
    each = groups * math.prod(box) * (k * rows // 8 + 8)
    weight = each * dm.maximum(units, _PARTS * threads) // (_PARTS * threads) + 1
    return Cut(f"narrow_{rows}", integers, parts, weight, parts * memory[0], 0,
               sum(f * s for f, s in zip(first, steps, strict=True)), lying.first, packs)


def _box(w: Geometry, place: int, threads: int) -> tuple[int, ...]:
    """Places along each axis: whole lines if they can be, so that little is covered twice. A place has so many bytes
    in work memory."""
    if any(isinstance(o, Dim) for o in w.outputs):
        return 1, 8, 64
    images = 1 if isinstance(w.images, Dim) else w.images
    fewest, most = _PLACES
    near = min(max(_NEAR // place, fewest), most)
    room = min(max(images * math.prod(w.outputs) // (_UNITS * threads), fewest), near)
    box: list[int] = []
    for size in reversed(w.outputs):
        each = max(room // math.prod(box), 1)
        box.insert(0, -(-size // -(-size // each)))
    return tuple(box)


def _filters(w: Geometry, lying: FilterSteps, columns: int, groups: int, shape: Tiling,
             readable: bool) -> tuple[tuple[int, int, int], tuple[tuple[int, ...], int, int] | None]:
    """From a row of B, a block and a group to the next; and what packs B: nothing, where it can be read as it lies."""
    k, inner = w.taps * w.channels // groups, w.channels // groups
    if readable:
        return (lying.element, BLOCK * lying.element, lying.group), None
    blocks = -(-k // BLOCK)
    panel = (min(-(-k // shape.lanes) * shape.lanes, BLOCK) + shape.lanes) * shape.lanes
    integers = (columns, k, inner, *w.window[1:], *lying.taps, lying.element, lying.column, lying.group, shape.lanes,
                panel, 0)
    return (shape.lanes, panel, blocks * panel), (integers, groups * blocks, groups * blocks * panel)


def _memory(w: Geometry, box: tuple[int, ...], outputs: int, columns: int, shape: Tiling,
            dtype: DType) -> tuple[int, ...]:
    """The words from `room` on."""
    lanes, vectors, line = shape.lanes, vectors_of(columns, shape), CACHES.line // dtype.size
    sides = [-(-((b - 1) * s + (k - 1) * d + 1) // s)
             for b, s, k, d in zip(box, w.strides, w.window, w.dilations, strict=True)]
    _, y, x = sides

    def apart(elements: int) -> int:
        """So many elements or more: an odd number of cache lines, which spreads what lies so far apart over a cache."""
        return (-(-elements // line) | 1) * line

    plane = apart(math.prod(sides) * math.prod(w.strides) + lanes)  # packing writes whole vectors
    flat = apart(((box[0] - 1) * y + box[1] - 1) * x + box[2] + vectors * lanes)  # and so do tiles
    sums = -(-w.channels // lanes) * lanes * plane + vectors * lanes
    return sums + (outputs + NARROW[-1]) * flat + lanes, plane, sums, flat, *sides
