"""Ops whose results have sizes that values decide, on backends with memory of their own.

A program computes results of the largest size that there may be, and how much of them counts: the one number that the
host reads. One program, made of ops, serves all sizes of an operand. What is not here runs on the host
(`executing.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir import ops
from twofold.ir.build import Builder
from twofold.ir.dtypes import DType
from twofold.ir.op import Op, use_interpreter
from twofold.ir.types import AnyTensor, Attrs

__all__ = ["computes", "made"]

_LINE = 1024  # elements that are added up one after another


def made(op: Op, dtype: DType, rank: int, attrs: Attrs) -> tuple[g.Graph, Sequence[bool]] | None:
    """The graph that computes an op of one operand with elements, whose last output is how many rows of results count;
    and for each result whether it has more. None where there is none."""
    if op is ops.unique and dtype in dt.REAL | dt.BOOL:
        return _graph(_unique, dtype, rank, attrs["out_idx"]), (True, False, True)
    if op is ops.nonzero and rank and dtype is not dt.string:
        return _graph(_nonzero, dtype, rank), (True,)
    return None


def computes(node: g.Node) -> bool:
    """Whether backends with memory of their own compute what a node gives."""
    op = node.op
    return isinstance(op, Op) and len(node.inputs) == 1 and made(
        op, node.inputs[0].dtype, len(node.inputs[0].dims), node.attrs) is not None


@lru_cache(256)
def _graph(write: Callable[..., Sequence[AnyTensor]], dtype: DType, rank: int, *more: Any) -> g.Graph:
    graph = g.Graph(write.__name__)
    x = graph.add_input([dm.symbol(f"n{axis}") for axis in range(rank)], dtype)
    with use_interpreter(Builder(graph)), dm.recording():
        graph.outputs = list(write(x, *more))  # type: ignore[arg-type]  # values, as the builder gives
    return graph


def _prefix_sums(flags: AnyTensor) -> AnyTensor:
    """How many are true up to each element of a vector: along lines side by side, then over the lines' totals."""
    n, = flags.dims
    lines = dm.ceil_div(n, _LINE)
    padded = ops.pad(ops.cast(flags, dtype=dt.int32), 0, paddings=((0, lines * _LINE - n),))
    sums = ops.cumsum(ops.reshape(padded, shape=(lines, _LINE)), axis=1)
    before = ops.cumsum(ops.slice_(sums, begin=(0, _LINE - 1), size=(lines, 1)), axis=0, exclusive=True)
    return ops.slice_(ops.reshape(ops.add(sums, before), shape=(lines * _LINE,)), begin=(0,), size=(n,))


def _flagged_first(flags: AnyTensor) -> AnyTensor:
    """The places of all elements of a vector: first those that are true, then the others, each in their order."""
    return ops.argsort(ops.logical_not(flags))


def _unique(x: AnyTensor, out_idx: DType) -> Sequence[AnyTensor]:
    """Equal elements are neighbours once they are in order, where the first is the one that came first."""
    n, = x.dims
    order = ops.argsort(x)
    inverse = ops.argsort(order)  # for each element its place in order
    ordered = ops.gather(x, order)
    ahead, behind = (ops.slice_(ordered, begin=(begin,), size=(n - 1,)) for begin in (0, 1))
    begins = ops.pad(ops.not_equal(ahead, behind), True, paddings=((1, 0),))  # a run of equal ones, in order
    run = ops.subtract(_prefix_sums(begins), 1)  # of each place in order
    count = ops.add(ops.slice_(run, begin=(n - 1,), size=(1,)), 1)
    places = _flagged_first(begins)  # where runs begin
    is_first = ops.gather(begins, inverse)  # of its value, for each element
    rank = ops.subtract(_prefix_sums(is_first), 1)
    firsts = _flagged_first(is_first)
    run_of = ops.gather(run, inverse)  # each element's
    index = ops.gather(rank, ops.gather(order, ops.gather(places, run_of)))
    which = ops.gather(run_of, firsts)  # the runs as they first appear
    last = ops.greater_equal(ops.add(which, 1), count)
    end = ops.gather(places, ops.select(last, which, ops.add(which, 1)))
    length = ops.select(last, ops.cast(ops.size(x), dtype=dt.int32), end)
    counts = ops.subtract(length, ops.gather(places, which))
    return (ops.gather(x, firsts), ops.cast(index, dtype=out_idx), ops.cast(counts, dtype=out_idx), count)


def _nonzero(x: AnyTensor) -> Sequence[AnyTensor]:
    n = dm.numel(x.dims)
    flags = ops.reshape(x if x.dtype.is_bool else ops.not_equal(x, 0), shape=(n,))
    places = ops.cast(_flagged_first(flags), dtype=dt.int64)
    columns: list[AnyTensor] = []
    for axis, size in enumerate(x.dims):
        step = dm.numel(x.dims[axis + 1:])
        coordinate = ops.floormod(ops.floordiv(places, step), size)
        columns.append(ops.reshape(coordinate, shape=(n, 1)))
    return ops.concat(*columns, axis=1), ops.reduce_sum(ops.cast(flags, dtype=dt.int32), axis=None)
