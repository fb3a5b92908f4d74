"""How the gradient for the filters of a convolution in groups of few outputs is cut into work: what `conv_grouped.py`
and its callers agree on. How many images there are may be unknown (`ir/dims.py`).

Words of a kernel's arguments, after the addresses of the result, of x, of B, the outputs' gradient, and of work memory,
and what they mean:

- `n`: outputs of a group, of which there are `groups`; `inner`: its channels. B and the result have rows of `outputs`.
- x has images of `size_z` by `size_y` by `size_x` pixels of `channels` elements. A place lies `stride_z` .. pixels
  after the one before along each axis, its window begins `before_z` .. pixels before it, and the `taps_z` .. taps are
  `step_z` .. pixels apart.
- There are `out_z` by `out_y` by `out_x` places in an image, `places` in all. They are summed in so many `shares`, each
  into a result of its own, `share` elements apart.
- `held` groups are copied together, as many as fill a vector; such bundles of groups are parted in `runs`. Shares and
  runs make `units`; the range numbers `parts`, even runs of units.

Each part has `room` elements of work memory, for the pixels that `chunk` places, whole blocks, and `held` groups read:
for each tap along the first axis `plane` elements.
"""

from __future__ import annotations

from twofold.ir.dims import Dim, Size
from twofold.ir.dtypes import DType

from .conv_shapes import REPEATS, Cut, evenly
from .gemm_shapes import BLOCK, VECTORS, Tiling, tiling
from .kernels.windows import Geometry
from .target import CACHES

__all__ = ["WORDS", "MOST_PLACES", "MOST_TAPS", "suits", "filters"]

WORDS = ("out", "x", "b", "work", "n", "outputs", "inner", "groups", "size_z", "size_y", "size_x", "channels",
         "stride_z", "stride_y", "stride_x", "before_z", "before_y", "before_x", "step_z", "step_y", "step_x", "taps_z",
         "taps_y", "taps_x", "out_z", "out_y", "out_x", "places", "shares", "share", "held", "runs", "units", "parts",
         "chunk", "room", "plane")

_NEAR = CACHES.second // 8  # bytes of pixels that are copied at once
_MOST = CACHES.second  # the same where a single block of places reads more
_BLOCKS = 4  # of a chunk, at most: what makes up for the lines that two chunks have in common
MOST_PLACES, MOST_TAPS = _BLOCKS * BLOCK, 1024  # whose offsets the kernel has room for
_UNITS = 4  # for each thread, at least, if there are as many
_PARTS = 4  # for each thread, at most: each needs memory


def suits(w: Geometry, outputs: int, groups: int, dtype: DType) -> bool:
    """Whether there are groups, of two vectors of outputs or less, and what a block of places reads stays near."""
    columns, known = outputs // groups, not any(isinstance(n, Dim) for n in (*w.sizes, *w.outputs, *w.before))
    if groups == 1 or w.taps > MOST_TAPS or not known or columns > VECTORS * tiling(dtype).lanes:
        return False
    return _room(w, groups, _held(w, groups, dtype), BLOCK) * dtype.size <= _MOST


def _repeats(columns: int, inner: int, shape: Tiling) -> int:
    """How many neighbours of x a vector takes, with so many outputs each."""
    most = max(shape.lanes // max(columns, 2), 1)
    return max(n for n in REPEATS if n <= most and inner % n == 0)


def filters(w: Geometry, outputs: int, groups: int, count: Size, dtype: DType, threads: int = 1) -> Cut:
    """The gradient for the filters; its arguments are those of `conv_shapes.filters`, but of images as they are."""
    inner, columns, shape = w.channels // groups, outputs // groups, tiling(dtype)
    repeats = _repeats(columns, inner, shape)
    held = _held(w, groups, dtype)
    chunk = max(n for n in range(1, _BLOCKS + 1)
                if n == 1 or _room(w, groups, held, n * BLOCK) * dtype.size <= _NEAR) * BLOCK
    room = _room(w, groups, held, chunk)
    bundles = -(-groups // held)
    known = 1 if isinstance(count, Dim) else count
    runs = _runs(bundles, known, threads)
    units = count * runs
    parts = units if isinstance(units, Dim) else min(units, _PARTS * threads)
    integers = (columns, outputs, inner, groups, *w.sizes, w.channels, *w.strides, *w.before, *w.dilations, *w.window,
                *w.outputs, w.places, count, w.taps * inner * outputs, held, runs, units, parts, chunk, room,
                room // w.window[0])
    each = w.taps * inner * -(-columns * repeats // shape.lanes) // repeats + 8
    weight = groups * w.places * 2 * each // (1 if isinstance(parts, Dim) else parts) + 1
    return Cut(f"grouped_filters_{repeats}", integers, parts, weight, parts * room)


def _runs(bundles: int, shares: int, threads: int) -> int:
    """Into how many runs bundles fall: as few as make enough units, and even ones, for all threads."""
    even = [runs for runs in evenly(bundles)
            if shares * runs >= _UNITS * threads and shares * runs % threads == 0]
    return min(even or [bundles])


def _held(w: Geometry, groups: int, dtype: DType) -> int:
    """How many groups are copied together."""
    inner, lanes = w.channels // groups, tiling(dtype).lanes
    return min(lanes // inner, groups) if lanes % inner == 0 else 1


def _room(w: Geometry, groups: int, held: int, chunk: int) -> int:
    """Elements of work memory that the pixels of some places take."""
    _, out_y, out_x = w.outputs
    lines = 1 if out_x >= chunk + 1 else -(-(chunk - 1) // out_x) + 1
    planes = min(lines, -(-(lines - 1) // out_y) + 1)
    reaches = w._replace(outputs=(1, 1, 1)).reach
    rows = (lines - planes) * w.strides[1] + planes * reaches[1]
    across = (min(out_x, chunk) - 1) * w.strides[2] + reaches[2]
    line = CACHES.line // 4  # whole ones, of any dtype
    return w.window[0] * -(-rows * across * held * (w.channels // groups) // line) * line
