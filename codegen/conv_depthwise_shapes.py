"""How a depthwise convolution and its gradients are cut into the work of kernels: what `conv_depthwise.py` and its
callers agree on. Sizes may be unknown (`ir/dims.py`), but for those of the filters and the channels.

Words of a kernel's arguments, after addresses: x has images of `size_z` by `size_y` by `size_x` pixels of `channels`
elements. A place lies `stride_z` .. after the one before along each axis, and its window begins `before_z` .. pixels
before it; the `taps_z` .. taps of that are `step_z` .. pixels apart, which may be negative.

`depthwise` takes B, the filters, tap by tap `b_z` .. elements apart from `first_b` on, and `to_n` .. `to_x`, the steps
in the result from an image, and from a place along each axis, to the next, from `first_out` on. A line of `places_x`
places is parted in `runs`; the range numbers `lines`, of all images, and runs. `depthwise_phases` takes several such,
which give different pixels of one result: how many, and the words of each. The range numbers the lines of all; so what
several of them read is near, and what lies beside each other in the result is written at one time.

`depthwise_filters` takes B, the outputs' gradient, row-major, and adds to the result, which is of float64, tap by tap;
its range numbers vectors of channels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from twofold.ir import dims as dm
from twofold.ir.dims import Dim, Size, Sizes
from twofold.ir.dtypes import DType

from .conv_shapes import Cut, Phase
from .gemm_shapes import tiling
from .kernels.windows import Geometry
from .kernels.windows import steps as steps_of

__all__ = ["DEPTHWISE", "FILTERS", "forward", "backward", "filters"]

_PLACES = ("channels", "places_z", "places_y", "places_x", "size_z", "size_y", "size_x", "stride_z", "stride_y",
           "stride_x", "before_z", "before_y", "before_x", "step_z", "step_y", "step_x", "taps_z", "taps_y", "taps_x")
DEPTHWISE = (*_PLACES, "b_z", "b_y", "b_x", "first_b", "to_n", "to_z", "to_y", "to_x", "first_out", "lines", "runs")
FILTERS = ("out", "x", "b", *_PLACES, "images")

_RUNS = 8  # for each thread
_LONG = 16  # places of a run, at least


def forward(w: Geometry, threads: int) -> Cut:
    """The convolution by filters [taps, channels]."""
    return _cut([(w, (*steps_of(w.window, w.channels)[1:], 0), (*steps_of(w.outputs, w.channels), 0))], threads)


def backward(w: Geometry, phases: Sequence[Phase], threads: int) -> Cut:
    """The gradient for the input, in phases, whose taps are taken first to last: the places go backwards."""
    (_, *taps), (image, *pixels), parts = steps_of(w.window, w.channels), steps_of(w.sizes, w.channels), []
    for phase in phases:
        of = phase.geometry
        before = tuple(b - (k - 1) * d for b, k, d in zip(of.before, of.window, of.dilations, strict=True))
        turned = of._replace(before=before, dilations=tuple(-d for d in of.dilations))
        first = sum((start + (count - 1) * step) * apart
                    for (start, count, step), apart in zip(phase.window, taps, strict=True))
        steps = tuple(-step * apart for (_, _, step), apart in zip(phase.window, taps, strict=True))
        to = tuple(s * apart for s, apart in zip(phase.strides, pixels, strict=True))
        out = sum(f * a for f, a in zip(phase.first, pixels, strict=True))
        parts.append((turned, (*steps, first), (image, *to, out)))
    return _cut(parts, threads)


def _cut(parts: Sequence[tuple[Geometry, Sizes, Sizes]], threads: int) -> Cut:
    """Convolutions: of each the words from `b_z` to `first_b`, and those from `to_n` to `first_out`."""
    words: list[Size] = []
    total: Size = 0
    weight: Size = 16
    for w, filters, to in parts:
        lines, along = w.images * math.prod(w.outputs[:2]), w.outputs[2]
        runs: Size = 1
        if not isinstance(lines, Dim) and not isinstance(along, Dim):
            runs = max(min(-(-_RUNS * threads // max(lines, 1)), along // _LONG), 1)
        words += [*_places(w), *filters, *to, lines, runs]
        total = dm.maximum(total, lines * runs)
        weight += 2 * w.taps * -(-w.channels // 8) * (dm.ceil_div(along, runs) if runs != 1 else along) + 16
    if len(parts) == 1:
        return Cut("depthwise", tuple(words), total, weight)
    return Cut("depthwise_phases", (len(parts), *words), total, weight)


def _places(w: Geometry) -> Sizes:
    return (w.channels, *w.outputs, *w.sizes, *w.strides, *w.before, *w.dilations, *w.window)


def filters(w: Geometry, dtype: DType) -> Cut:
    """The gradient for the filters, [taps, channels]."""
    vectors = -(-w.channels // tiling(dtype).lanes)
    return Cut("depthwise_filters", (*_places(w), w.images), vectors, 4 * w.taps * w.places + 16)
