"""Ops that take or replace a box of elements: slices of any step, reversal, and writing to a slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike
from twofold.ir.ops.slicing import selected, span

from .export_table import meaning
from .export_writer import Ref, Writer

_LAST, _FIRST = np.iinfo(np.int64).max, np.iinfo(np.int64).min  # beyond either end, which ONNX clamps


@meaning("slice")
def slice_(w: Writer, node: g.Node, x: Ref, *, begin: Sequence[DimLike], size: Sequence[DimLike]) -> Ref:
    """A box."""
    dims = node.inputs[0].dims
    ends = [d if type(s) is int and s == -1 else b + s for b, s, d in zip(begin, size, dims, strict=True)]
    cut = [(axis, b, e, 1) for axis, (b, e, d) in enumerate(zip(begin, ends, dims, strict=True))
           if (b, e) != (0, d)]
    return _sliced(w, x, cut)


@meaning("reverse")
def reverse(w: Writer, node: g.Node, x: Ref, *, axis: Sequence[int]) -> Ref:
    """From the last to the first along each axis."""
    rank = len(node.inputs[0].dims)
    return _sliced(w, x, [(a % rank, _LAST, _FIRST, -1) for a in axis])


@meaning("strided_slice")
def strided_slice(w: Writer, node: g.Node, x: Ref, *, spec: Any) -> Ref:
    """A Python-like index: ranges are one `Slice`, and the result gets the axes that it has."""
    cut = _cuts(spec)
    sliced = _sliced(w, x, cut)
    if any(not isinstance(e, tuple) for e in spec):
        return w.reshaped(sliced, node.outputs[0].dims)
    return sliced


def _cuts(spec: Sequence[Any]) -> list[tuple[int, Any, Any, int]]:
    """(axis, start, stop, step) of each axis that is not whole."""
    cut, axis = [], 0
    for entry in spec:
        if entry is None:
            continue
        if isinstance(entry, tuple):
            start, stop, step = entry
            step = 1 if step is None else step
            if (start, stop, step) != (None, None, 1):
                low = (0 if step > 0 else _LAST) if start is None else start
                high = (_LAST if step > 0 else _FIRST) if stop is None else stop
                cut.append((axis, low, high, step))
        else:
            last = type(entry) is int and entry == -1
            cut.append((axis, entry, _LAST if last else entry + 1, 1))
        axis += 1
    return cut


def _sliced(w: Writer, x: Ref, cut: Sequence[tuple[int, Any, Any, int]]) -> Ref:
    if not cut:
        return x
    axes, starts, stops, steps = [list(part) for part in zip(*cut, strict=True)]
    plain = all(step == 1 for step in steps)
    return w.op("Slice", x, w.shape(starts), w.shape(stops), w.ints(axes), None if plain else w.ints(steps))


@meaning("strided_slice_assign")
def assign(w: Writer, node: g.Node, x: Ref, value: Ref, *, spec: Any) -> Ref:
    """What is before the slice, the value, and what is behind it; where more than one axis is cut, the value scattered
    to the numbers of the slice's elements."""
    run = _run(node.inputs[0].dims, spec)
    if run is None:
        return _scattered(w, node, x, value, spec)
    axis, start, stop, size = run
    dims = list(node.inputs[0].dims)
    dims[axis] = stop - start
    kept = [isinstance(entry, tuple) for entry in spec] + [True] * (len(dims) - len(spec))
    target = [d for d, stays in zip(dims, kept, strict=True) if stays]
    part = w.op("Expand", value, w.shape(target))
    if len(target) != len(dims):
        part = w.reshaped(part, dims)
    parts = [_sliced(w, x, [(axis, 0, start, 1)])] if start else []
    parts += [part, *([_sliced(w, x, [(axis, stop, size, 1)])] if stop < size else [])]
    return part if len(parts) == 1 else w.op("Concat", *parts, axis=axis)


def _run(dims: Sequence[DimLike], spec: Sequence[Any]) -> tuple[int, int, int, int] | None:
    """(axis, start, stop, size) where a slice is a run of neighbours along one axis, at known places; else None."""
    if None in spec:
        return None
    whole = ((None, None, None), (None, None, 1))
    cut = [(axis, entry, dims[axis]) for axis, entry in enumerate(spec) if entry not in whole]
    if len(cut) != 1:
        return None
    [(axis, entry, size)] = cut
    bounds = entry if isinstance(entry, tuple) else (entry,)
    if isinstance(size, Dim) or any(isinstance(v, Dim) for v in bounds):
        return None
    places = range(size)[slice(*entry)] if isinstance(entry, tuple) else range(entry % size, entry % size + 1)
    return (axis, places.start, places.stop, size) if places.step == 1 and len(places) else None


def _scattered(w: Writer, node: g.Node, x: Ref, value: Ref, spec: Any) -> Ref:
    dims = node.inputs[0].dims
    if not dims:
        return w.op("Reshape", value, w.ints([]))
    taken = [entry for entry in spec if entry is not None]
    whole = [(None, None, None)] * (len(dims) - len(taken))
    ranges = [_places(w, size, entry) for size, entry in zip(dims, [*taken, *whole], strict=True)]
    value = w.op("Expand", value, w.shape(selected(dims, spec)))
    counts = [r[1] for r in ranges]
    columns = []
    for axis, (numbers, _) in enumerate(ranges):
        along = [c if a == axis else 1 for a, c in enumerate(counts)]
        column = w.op("Expand", w.reshaped(numbers, along), w.shape(counts))
        columns.append(w.op("Unsqueeze", column, w.ints([len(counts)])))
    indices = columns[0] if len(columns) == 1 else w.op("Concat", *columns, axis=-1)
    return w.op("ScatterND", x, indices, w.reshaped(value, counts))


def _places(w: Writer, size: DimLike, entry: Any) -> tuple[Ref, DimLike]:
    """The numbers of the elements that an entry of a slice takes of an axis, and how many they are."""
    if not isinstance(entry, tuple):
        if isinstance(entry, Dim):
            return w.size(entry), 1
        return w.size(entry if entry >= 0 else size + entry), 1
    count = span(size, *entry)
    numbers = w.op("Range", w.constant(0, dt.int64), w.scalar_size(size), w.constant(1, dt.int64))
    return _sliced(w, numbers, [(0, *c[1:]) for c in _cuts([entry])]), count
