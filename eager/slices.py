"""Gradients of variables of which only rows were read: `IndexedSlices`, whose size is that of what was read.

The gradient of the rows that `gather` gave is computed in the place of the variable's: the slices are it, and the
variable's gradient of its own size is never made. Where something else reads the variable, too, its gradient is dense.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import grad, ops
from twofold.ir.dims import Dim

from . import playing
from .indexed_slices import IndexedSlices
from .playing import Entry
from .tensor import Tensor, wrap
from .types import Readable

__all__ = ["gathered", "gradients"]

#: what was gathered of a variable: for each time the number of the result, its spec, and the indices
Gathered: TypeAlias = list[tuple[int, Any, Tensor]]


def gathered(entries: Sequence[Entry], sources: Sequence[Readable], numbers: Sequence[Sequence[int]],
             cts: Mapping[int, Tensor]) -> dict[int, Gathered]:
    """For those sources, by their places, of which rows were gathered and nothing else was read: what was gathered.

    Args:
        entries: of the tape.
        sources: of a gradient.
        numbers: of the tensors that each was read as.
        cts: of the targets, by their numbers.
    """
    for entry in entries:  # first, since most gradients are of programs that gather nothing
        if entry[0] is ops.gather:
            break
    else:
        return {}
    owners = {n: place for place, (source, ns) in enumerate(zip(sources, numbers, strict=True))
              if type(source) is not Tensor and not isinstance(source, Tensor) for n in ns}
    whole = {owners[n] for n in cts if n in owners}
    parts: dict[int, Gathered] = {}
    for op, attrs, ins, outs, inputs, outputs in entries:
        for at, n in enumerate(ins):
            place = owners.get(n)
            if place is None:
                continue
            if op is ops.gather and at == 0 and outs[0] and not attrs.get("axis") and not attrs.get("batch_dims") and (
                    not any(isinstance(d, Dim) for d in inputs[0].dims)):
                parts.setdefault(place, []).append((outs[0], outputs[0], inputs[1]))
            else:
                whole.add(place)
    return {place: part for place, part in parts.items() if place not in whole}


def gradients(entries: Any, sources: Sequence[Readable], numbers: Sequence[Sequence[int]], cts: dict[int, Tensor],
              parts: Mapping[int, Gathered], free: bool) -> list[Any]:
    """The gradients of sources, with `IndexedSlices` for those of which rows were gathered (`gathered`)."""
    wanted = [[] if place in parts else ns for place, ns in enumerate(numbers)]
    results = [result for part in parts.values() for result, _, _ in part]
    totals = playing.gradients(entries, [*wanted, *[[n] for n in results]], cts, free=free)
    specs = [*sources, *[spec for part in parts.values() for _, spec, _ in part]]
    dense = [grad.zeros_like(specs[n]) if total is playing.NOTHING else total for n, total in enumerate(totals)]
    rows = iter(dense[len(sources):])
    for place, part in parts.items():
        # a part's rows are taken from the iterator one by one, and no more than its own
        pairs = [(ct, indices) for (_, _, indices), ct in zip(part, rows, strict=False) if ct is not None]
        dense[place] = _slices(sources[place], pairs) if pairs else None
    return dense[:len(sources)]


def _slices(source: Readable, pairs: Sequence[tuple[Tensor, Tensor]]) -> IndexedSlices:
    dims = source.dims
    values = [ops.reshape(ct, shape=(dm.numel(indices.dims), *dims[1:])) for ct, indices in pairs]
    places = [ops.reshape(indices, shape=(dm.numel(indices.dims),)) for _, indices in pairs]
    if len(pairs) == 1:
        return IndexedSlices(values[0], places[0], wrap(np.array(dims, np.int32)))
    if any(p.dtype is not places[0].dtype for p in places):
        places = [ops.cast(p, dtype=dt.int64) for p in places]
    return IndexedSlices(ops.concat(*values, axis=0), ops.concat(*places, axis=0), wrap(np.array(dims, np.int32)))
