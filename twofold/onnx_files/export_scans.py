"""Scans: what keeps every step of going along an axis. Those that ONNX has no operator for are a `Scan`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import DimLike

from .export_table import meaning
from .export_writer import Ref, Writer, require_real

_CUMPROD_OPSET = 26
_LAST = (1 << 63) - 1


@meaning("cumsum")
def cumsum(w: Writer, node: g.Node, x: Ref, *, axis: int, exclusive: bool, reverse: bool) -> Ref:
    """`CumSum`; 16-bit floats in float32."""
    require_real(x.dtype)
    at = w.constant(axis % len(node.inputs[0].dims), dt.int64)
    return w.cast(w.op("CumSum", w.cast(x, x.dtype.compute), at, exclusive=int(exclusive), reverse=int(reverse)),
                  x.dtype)


@meaning("cumprod")
def cumprod(w: Writer, node: g.Node, x: Ref, *, axis: int, exclusive: bool, reverse: bool) -> Ref:
    """`CumProd` from the opset on that has it."""
    require_real(x.dtype)
    dims = node.inputs[0].dims
    at, dtype, x = axis % len(dims), x.dtype, w.cast(x, x.dtype.compute)
    if w.opset >= _CUMPROD_OPSET:
        made = w.op("CumProd", x, w.constant(at, dt.int64), exclusive=int(exclusive), reverse=int(reverse))
        return w.cast(made, dtype)

    def step(before: Ref, value: Ref) -> tuple[Ref, Ref]:
        after = w.op("Mul", before, value)
        return after, before if exclusive else after
    return w.cast(_scan(w, dims, [x], at, reverse, 1, step), dtype)


@meaning("linear_recurrence")
def linear_recurrence(w: Writer, node: g.Node, a: Ref, b: Ref, *, axis: int, reverse: bool) -> Ref:
    """y[k] = a[k] * y[k-1] + b[k]."""
    require_real(a.dtype)
    dims = node.inputs[0].dims

    def step(before: Ref, factor: Ref, term: Ref) -> tuple[Ref, Ref]:
        after = w.op("Add", w.op("Mul", factor, before), term)
        return after, after
    wide = [w.cast(v, v.dtype.compute) for v in (a, b)]
    return w.cast(_scan(w, dims, wide, axis % len(dims), reverse, 0, step), b.dtype)


@meaning("cumulative_logsumexp")
def cumulative_logsumexp(w: Writer, node: g.Node, x: Ref, *, axis: int, reverse: bool) -> Ref:
    """log(exp(before) + exp(x)), with the larger one taken out."""
    dims = node.inputs[0].dims

    def step(before: Ref, value: Ref) -> tuple[Ref, Ref]:
        largest = w.op("Max", before, value)
        infinite = w.op("IsInf", largest, dtype=dt.bool_)
        base = w.op("Where", infinite, w.constant(0, largest.dtype), largest, dtype=largest.dtype)
        total = w.op("Add", w.op("Exp", w.op("Sub", before, base)), w.op("Exp", w.op("Sub", value, base)))
        after = w.op("Add", w.op("Log", total), base)
        return after, after
    made = _scan(w, dims, [w.cast(x, x.dtype.compute)], axis % len(dims), reverse, -math.inf, step)
    return w.cast(made, x.dtype)


def _scan(w: Writer, dims: Sequence[DimLike], values: Sequence[Ref], axis: int, reverse: bool, start: float,
          step: Callable[..., tuple[Ref, Ref]]) -> Ref:
    """A `Scan` along an axis: `step(state, *slices)` gives the next state and the result for the place.

    It goes along the first axis and forward, whatever is asked for: not all runtimes know the attributes for others.
    """
    rest = [d for n, d in enumerate(dims) if n != axis]
    if 0 in dims:
        return values[0]
    dtype = values[0].dtype
    begin = w.constant(start, dtype) if not rest else w.op("Expand", w.constant(start, dtype), w.shape(rest))
    names = [Ref(w.name(f"{w.prefix}/{n}"), dtype) for n in ("state", *[f"slice_{n}" for n in range(len(values))])]
    with w.block(f"{w.prefix}/step", [(r, rest) for r in names]) as body:
        state, result = step(*names)
        body.outputs = [(r, rest) for r in w.own([state, result])]
    order = [axis, *[n for n in range(len(dims)) if n != axis]]

    def arranged(x: Ref, perm: Sequence[int]) -> Ref:
        return x if list(perm) == list(range(len(dims))) else w.op("Transpose", x, perm=list(perm))

    def turned(x: Ref) -> Ref:
        return w.op("Slice", x, w.ints([_LAST]), w.ints([-_LAST]), w.ints([0]), w.ints([-1])) if reverse else x
    given = [turned(arranged(x, order)) for x in values]
    made = w.several("Scan", [begin, *given], [dtype, dtype], body=body, num_scan_inputs=len(values))
    return arranged(turned(made[1]), [order.index(n) for n in range(len(dims))])
