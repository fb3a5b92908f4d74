"""How convolutions whose outputs fill one vector at most, and their gradients for filters, are cut into work: what
`conv_lines.py` and `conv_line_filters.py` and their callers agree on.

Words of a kernel's arguments, after the addresses of the result, of x and of B, and what they mean. For `lines`:

- `n`: columns of B and of the result. B is packed as for `forward` (`conv_shapes.py`), in one block; a tap has `inner`
  rows, and along the first two axes there are `taps_z` and `taps_y` taps, `step_z` and `step_y` pixels apart. If there
  are `flags`, so many numbers follow B as for `inside`.
- x has `images` images of `size_z` by `size_y` by `size_x` pixels of `channels` elements. A place lies `stride_z` and
  `stride_y` pixels after the one before along the first two axes and one along the last; its window begins `before_z`
  .. pixels before it.
- There are `out_z` by `out_y` by `out_x` places in an image; `to_n` .. `to_x` are their steps in the result. A unit is
  one of the `boxes_x` even runs of a line, of `box_n` images; the range numbers these.

Where windows reach beyond images, the kernel does nothing if a filter is infinite or no number, as `inside`.

For `line_filters`, where B is the outputs' gradient, a row of `n` columns a place:

- A window has `inner` elements of a pixel and `taps_z` and `taps_y` taps along the first two axes, `line_z` and
  `line_y` elements apart. There are `out_z` by `out_y` by `out_x` places in an image, `x_n` .. elements apart, and
  `places` in all.
- They are summed in so many `shares`, each into a result of its own, `share` elements apart. The elements of a column
  of windows are parted in `splits`; the range numbers shares and splits.
"""

from __future__ import annotations

import math

from twofold.ir.dims import Dim, Sizes
from twofold.ir.dtypes import DType

from .conv_shapes import LINES, Cut, FilterSteps, as_they_lie, evenly, packing, padded, place_weight
from .gemm_shapes import BLOCK, Tiling, tiling
from .kernels.windows import Geometry
from .kernels.windows import steps as steps_of

__all__ = ["WORDS", "FILTER_WORDS", "suits", "suits_filters", "heights", "forward", "filters"]

WORDS = ("out", "x", "b", "n", "inner", "taps_z", "taps_y", "step_z", "step_y", "images", "size_z", "size_y", "size_x",
         "channels", "stride_z", "stride_y", "before_z", "before_y", "before_x", "out_z", "out_y", "out_x", "to_n",
         "to_z", "to_y", "to_x", "boxes_x", "box_n", "flags")
FILTER_WORDS = ("out", "x", "b", "n", "inner", "taps_z", "taps_y", "line_z", "line_y", "out_z", "out_y", "out_x", "x_n",
                "x_z", "x_y", "x_x", "places", "shares", "share", "splits")
_UNITS = 16  # for each thread, at least: who begins late leaves little to wait for
_RUN = 32  # places of a line, at most, whose pixels and sums of all images stay in the nearest cache


def suits(w: Geometry, outputs: int, groups: int, dtype: DType) -> bool:
    """Whether there are images enough for the tallest tile, windows have one of the widths that there are tiles for and
    are summed in one block, of several channels, and outputs fill one vector at most."""
    if w.channels == 1 or w.taps * w.channels > BLOCK or not suits_filters(w, outputs, groups, dtype):
        return False
    assert not isinstance(w.images, Dim)
    return w.images >= heights(tiling(dtype), w.window[2])[0]


def suits_filters(w: Geometry, outputs: int, groups: int, dtype: DType) -> bool:
    """The same for the gradient for filters, which may have any images and windows."""
    if isinstance(w.images, Dim) or any(isinstance(n, Dim) for n in (*w.sizes, *w.outputs, *w.before)):
        return False
    shape, taps = tiling(dtype), w.window[2]
    if groups > 1 or outputs > shape.lanes or not (shape.masks or outputs == shape.lanes) or taps not in LINES:
        return False
    return w.strides[2] == w.dilations[2] == 1 and w.outputs[2] >= 2 * taps and heights(shape, taps)[0] > 1


def heights(shape: Tiling, taps: int) -> tuple[int, ...]:
    """The rows that tiles take, from the most on: enough sums to cover the latency of two multipliers, which leave
    registers for filters, or places, and for elements that are loaded before they are needed."""
    if shape.first_tier:
        return (1,)
    most = (20 if shape.tall > 8 else 9) // taps
    return tuple(n for n in (4, 3, 2, 1) if n <= most)


def forward(w: Geometry, outputs: int, groups: int, dtype: DType, filters: FilterSteps | None = None,
            pixels: tuple[Sizes, tuple[int, ...], tuple[int, ...]] | None = None, threads: int = 1) -> Cut:
    """The convolution by filters; its arguments are those of `conv_shapes.forward`."""
    sizes, first, strides = pixels or (w.outputs, (0, 0, 0), (1, 1, 1))
    lying, shape = filters or as_they_lie(w, outputs, groups), tiling(dtype)
    assert not isinstance(w.images, Dim) and not isinstance(w.outputs[2], Dim)
    runs, boxes = -(-w.outputs[2] // _RUN), -(-w.images // heights(shape, w.window[2])[0])
    images = -(-w.images // boxes)
    image, *steps = steps_of(sizes, outputs)
    of_b = (outputs, w.taps * w.channels, w.channels, *w.window[1:], *lying.taps, lying.element, lying.column,
            lying.group)
    packs = packing(of_b, 1, shape, padded(w) is not None)
    to = (image, *(n * s for n, s in zip(strides, steps, strict=True)))
    integers = (outputs, w.channels, *w.window[:2], *w.dilations[:2], w.images, *w.sizes, w.channels, *w.strides[:2],
                *w.before, *w.outputs, *to, runs, images, 0 if padded(w) is None else packs[1])
    units = runs * w.outputs[0] * w.outputs[1] * boxes
    weight = -(-w.outputs[2] // runs) * images * place_weight(w.taps * w.channels, outputs)
    return Cut(f"lines_{w.window[2]}", integers, units, weight, 0, 0,
               sum(f * s for f, s in zip(first, steps, strict=True)), lying.first, packs)


def filters(w: Geometry, outputs: int, groups: int, count: int, dtype: DType, threads: int = 1) -> Cut:
    """The gradient for the filters; its arguments are those of `conv_shapes.filters`."""
    x_n, *steps = steps_of(w.sizes, w.channels)
    line_z, line_y = (d * s for d, s in zip(w.dilations[:2], steps[:2], strict=True))
    to = (x_n, *(n * s for n, s in zip(w.strides, steps, strict=True)))
    size = w.taps * w.channels * outputs
    tiles = -(-math.prod(w.window[:2]) * w.channels // heights(tiling(dtype), w.window[2])[0])
    splits = min([n for n in evenly(tiles) if count * n >= _UNITS * threads], default=tiles) if threads > 1 else 1
    integers = (outputs, w.channels, *w.window[:2], line_z, line_y, *w.outputs, *to, w.places, count, size, splits)
    weight = w.places * place_weight(w.taps * w.channels, outputs) // (count * splits) + 1
    return Cut(f"line_filters_{w.window[2]}", integers, count * splits, weight)
