"""Sums of parts: what lies side by side, each part among zeros, adds up to one array of the parts.

    %2 = fill(0.0) : f32[n,6]
    %3 = strided_slice_assign(%2, %0) {spec: [.., [0, 4, none]]}                %2 = constant 0.0 : f32[]
    %4 = strided_slice_assign(%2, %1) {spec: [.., [4, 6, none]]}      ->        %3 = add(%0, %2) : f32[n,4]
    %5 = add(%3, %4) : f32[n,6]                                                 %4 = add(%1, %2) : f32[n,2]
    return %5                                                                   %5 = concat(%3, %4) {axis: 1} : f32[n,6]
                                                                                return %5

That is the gradient of an array that was split, such as the gates of a recurrence. It is exact: each element is a sum
of one number and zeros, in whatever order, which is that number, and 0.0 where it is -0.0. Parts are slices along one
axis, or items of it, that are all of it together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .. import dtypes as dt
from .. import graph as g
from .. import ops
from .rewriting import Replacement, Rewriter, Table, rewrite

__all__ = ["JOINS", "join_parts"]

JOINS = Table()
_MOST = 64  # parts of an array that are looked for
_NUMBERS = dt.INTEGER | {dt.float32, dt.float64}


def join_parts(graph: g.Graph) -> bool:
    """Join parts that are added up in `graph`, in place. Returns whether anything changed."""
    return rewrite(graph, JOINS)


class _JoinedPart(NamedTuple):
    """What lies along an axis from `begin` to `end`; `value` lacks the axis where it is an item."""

    begin: int
    end: int
    axis: int
    value: g.Value
    is_item: bool


@JOINS.rule("add")
def parts_of_one(r: Rewriter, node: g.Node) -> Replacement:
    """Additions of slices among zeros that make up the whole -> concat"""
    out = node.outputs[0]
    unordered = _parts(r, out, node) if out.dtype in _NUMBERS else None
    if unordered is None:
        return None
    parts, axis = sorted(unordered, key=lambda part: part[:2]), unordered[0].axis
    ends = [0, *[part.end for part in parts]]
    if any(part.axis != axis or part.begin != end for part, end in zip(parts, ends, strict=False)):
        return None
    return r.op(ops.concat, *[_alone(r, part) for part in parts], axis=axis) if ends[-1] == out.dims[axis] else None


def _alone(r: Rewriter, part: _JoinedPart) -> g.Value:
    """A part with a zero added."""
    value = r.op(ops.expand_dims, part.value, axis=part.axis) if part.is_item else part.value
    if value.dtype.is_integer:
        return value
    return r.op(ops.add, value, r.constant(np.zeros((), value.dtype.np)))


def _parts(r: Rewriter, whole: g.Value, node: g.Node) -> list[_JoinedPart] | None:
    """The parts that additions add up, if they are nothing else."""
    parts: list[_JoinedPart] = []
    open_ = list(node.inputs)
    while open_:
        value = open_.pop()
        maker = value.node
        if maker is None or not r.same_dims(value.dims, whole.dims):
            return None
        if maker.op is ops.add:
            open_ += maker.inputs
        elif (part := _part(r, maker)) is not None:
            parts.append(part)
        else:
            return None
        if len(parts) + len(open_) > _MOST:
            return None
    return parts


def _part(r: Rewriter, node: g.Node) -> _JoinedPart | None:
    """What a node puts among zeros along one axis."""
    if node.op is not ops.strided_slice_assign or not r.is_uniform(node.inputs[0], 0.0):
        return None
    dims, value = node.outputs[0].dims, node.inputs[1]
    entries = [(axis, entry) for axis, entry in enumerate(node.attrs["spec"]) if entry != (None, None, None)]
    if len(entries) != 1 or entries[0][0] >= len(dims) or not isinstance(size := dims[entries[0][0]], int):
        return None
    (axis, entry), = entries
    is_item = isinstance(entry, int)
    if is_item:
        begin = entry % size if size else 0
        end = begin + 1
    elif isinstance(entry, tuple) and all(isinstance(e, int | None) for e in entry) and entry[2] in (None, 1):
        begin, end, _ = slice(*entry).indices(size)
    else:
        return None
    around = [d for n, d in enumerate(dims) if n != axis]
    want = around if is_item else [*around[:axis], end - begin, *around[axis:]]
    return _JoinedPart(begin, end, axis, value, is_item) if r.same_dims(value.dims, tuple(want)) else None
