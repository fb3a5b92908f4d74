"""How a convolution of several small images is cut into work, so that what it would multiply with padding is left out:
what `conv_inside.py` and its callers agree on.

Words of a kernel's arguments, after the addresses of the result, of x and of B, and what they mean:

- `n`, `k`, `inner`, `taps_y`, `taps_x`, `groups`, `to_g`, `to_n` .. `to_x`, `pieces`: as for `forward`
  (`conv_shapes.py`); B is packed as for that, and `flags` numbers follow it.
- x has `images` images of `size_z` by `size_y` by `size_x` pixels of `channels` elements. A place lies `stride_z` ..
  pixels after the one before along each axis, its window begins `before_z` .. pixels before it, and the taps are
  `step_z` .. pixels apart, of which there are `taps_z` along the first axis.
- There are `out_z` by `out_y` by `out_x` places in an image, in boxes of `box_x` of a line and `box_n` images, of which
  there are `boxes_x` along a line. The range numbers boxes, groups and pieces.

Zeros of the padding change no sum, unless what they are multiplied with is infinite or no number. The kernel does
nothing if a filter is; then `forward`, which runs behind it, does all, and else nothing.
"""

from __future__ import annotations

import math

from twofold.ir.dims import Dim, Sizes
from twofold.ir.dtypes import DType

from .conv_shapes import Cut, FilterSteps, as_they_lie, forward_heights, packing, padded, place_weight
from .conv_shapes import pieces as pieces_of
from .gemm_shapes import BLOCK, VECTORS, Tiling, panel_width, tiling
from .kernels.windows import Geometry
from .kernels.windows import steps as steps_of

__all__ = ["WORDS", "MOST_IMAGES", "suits", "forward"]

WORDS = ("out", "x", "b", "n", "k", "inner", "taps_z", "taps_y", "taps_x", "size_z", "size_y", "size_x", "channels",
         "stride_z", "stride_y", "stride_x", "before_z", "before_y", "before_x", "step_z", "step_y", "step_x", "out_z",
         "out_y", "out_x", "images", "box_n", "box_x", "boxes_x", "groups", "to_g", "to_n", "to_z", "to_y", "to_x",
         "pieces", "flags")
MOST_IMAGES = 16  # of a box, whose places beside each other are the rows of tiles
_FEWEST = 8
_PLACES = 14  # of a line, in a box
_WORTH = 0.93  # of the products, at most, that are not those of padding
_COPY = 1.5  # multiply-adds of a vector that copying an element, to lay zeros around images, takes the other kernel


def suits(w: Geometry, outputs: int, groups: int, dtype: DType) -> bool:
    """Whether there are several images, padding is worth leaving out, with what copying images takes, and tiles of few
    rows, as images part them, have two vectors of outputs: sums of one alone would wait for each other."""
    if isinstance(w.images, Dim) or any(isinstance(n, Dim) for n in (*w.sizes, *w.outputs, *w.before)):
        return False
    shape = tiling(dtype)
    if w.images < _FEWEST or outputs // groups <= shape.lanes or padded(w) is None:
        return False
    inside = math.prod(_inside(*axis) for axis in zip(w.sizes, w.outputs, w.window, w.strides, w.dilations, w.before,
                                                      strict=True))
    taken = _rows(w.images, _images(w.images, shape), shape)
    vectors = -(-outputs // (groups * shape.lanes))
    copy = _COPY if w.channels // groups >= shape.lanes else 0  # leaving out taps makes short lines of few channels
    return inside * taken * vectors <= _WORTH * math.prod(w.outputs) * w.images * (w.taps * vectors + copy)


def _images(count: int, shape: Tiling) -> int:
    """Of so many images, how many a box has: as many as tiles of all boxes have the fewest rows with."""
    return min(range(MOST_IMAGES, _FEWEST - 1, -1), key=lambda images: _rows(count, images, shape))


def _rows(count: int, images: int, shape: Tiling) -> int:
    """The rows that tiles have for a place of all images, so many of which are in a box."""
    return count // images * _rows_of_box(images, shape) + _rows_of_box(count % images, shape)


def _rows_of_box(images: int, shape: Tiling) -> int:
    """The same for a box: evenly spaced tiles, if there are such, which may overlap; or else those that fit best."""
    listed, spaced = forward_heights(shape)
    tiles = -(-images // shape.tall)
    height = next((n for n in spaced if n * tiles >= images), shape.tall)
    if height <= images:
        return -(-images // height) * height
    return next((n for n in listed if n >= images), 0) if images else 0


def _inside(size: int, places: int, taps: int, stride: int, step: int, before: int) -> int:
    """How many taps of all places along an axis lie inside of the image."""
    count = 0
    for tap in range(taps):
        first = tap * step - before  # the pixel of place 0
        begin = min(max(-(first // stride), 0), places)
        count += max(min(-((first - size) // stride), places) - begin, 0)
    return count


def forward(w: Geometry, outputs: int, groups: int, dtype: DType, filters: FilterSteps | None = None,
            pixels: tuple[Sizes, tuple[int, ...], tuple[int, ...]] | None = None, threads: int = 1) -> Cut:
    """The convolution by filters; its arguments are those of `conv_shapes.forward`."""
    sizes, first, strides = pixels or (w.outputs, (0, 0, 0), (1, 1, 1))
    lying, shape = filters or as_they_lie(w, outputs, groups), tiling(dtype)
    inner, columns = w.channels // groups, outputs // groups
    k, panels = w.taps * inner, -(-columns // panel_width(shape, False))
    assert not isinstance(w.images, Dim) and not isinstance(w.outputs[2], Dim)
    images = min(_images(w.images, shape), w.images)
    lines = -(-w.outputs[2] // _PLACES)
    across = -(-w.outputs[2] // lines)
    boxes = -(-w.images // images) * math.prod(w.outputs[:2]) * lines
    pieces = pieces_of(boxes * groups, panels, threads)
    image, *steps = steps_of(sizes, outputs)
    of_b = (columns, k, inner, *w.window[1:], *lying.taps, lying.element, lying.column, lying.group)
    packs = packing(of_b, groups * -(-k // BLOCK) * panels, shape, True)
    to = (columns, image, *(n * s for n, s in zip(strides, steps, strict=True)))
    integers = (columns, k, inner, *w.window, *w.sizes, w.channels, *w.strides, *w.before, *w.dilations, *w.outputs,
                w.images, images, across, lines, groups, *to, pieces, packs[1])
    weight = images * across * place_weight(k, columns // pieces)
    return Cut(f"inside_{VECTORS}", integers, boxes * groups * pieces, weight, 0, 0,
               sum(f * s for f, s in zip(first, steps, strict=True)), lying.first, packs)
