"""Softmax kernels: rows of neighbours, each normalised on its own, or judged by its label.

A row is read three times (maximum, sum of exponentials, result). The sum has one order: LANES accumulators take the
elements in turn and meet by halving, whatever the length of the row. Element types are float32 and float64; 16-bit
floats are widened by the caller, as other axes are moved last by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from twofold.codegen.loop import Kernel, LoopBuilder
from twofold.codegen.reduce import LANES
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

__all__ = ["rows", "cross_entropy"]


def rows(dtype: DType, log: bool) -> Kernel:
    """Softmax, or its logarithm, of each row in the range.

    args: addresses of the result and the operand, both contiguous; the length of a row.
    """
    b = LoopBuilder(f"{'log_' if log else ''}softmax {dtype.short}")
    out, x = b.pointer("out", dtype), b.pointer("x", dtype)
    length = b.integer()
    lanes = _RowLanes(b, dtype)
    with b.for_(b.start, b.stop) as row:
        first = row * length
        top = _reduced(b, lanes, length, -math.inf, _larger(b), lambda i: b.load(x, first + i))

        def exponential(i: Scalar) -> Scalar:
            e = b.exp(b.load(x, first + i) - top)
            if not log:
                b.store(out, first + i, e)
            return e

        total = _reduced(b, lanes, length, 0.0, b.add, exponential)
        with b.for_(0, length) as i:
            at = first + i
            if log:
                b.store(out, at, b.load(x, at) - top - b.log(total))
            else:
                # 0 stays 0 where an infinite logit made the total a NaN
                e = b.load(out, at)
                b.store(out, at, b.select(b.eq(e, 0.0), e, e / total))
    return b.finish()


def cross_entropy(dtype: DType, labels: DType) -> Kernel:
    """log(sum(exp(row))) - row[label] for each row in the range.

    args: addresses of the result, the logits and the labels, all contiguous; the length of a row.
    """
    b = LoopBuilder(f"cross_entropy {dtype.short} {labels.short}")
    out, x, chosen = b.pointer("out", dtype), b.pointer("x", dtype), b.pointer("labels", labels)
    length = b.integer()
    lanes = _RowLanes(b, dtype)
    with b.for_(b.start, b.stop) as row:
        first = row * length
        label = b.cast(b.load(chosen, row), dt.int64)
        valid = b.and_(b.ge(label, 0), b.lt(label, length))
        b.check(valid, "a label is outside of the valid range [0, number of classes).")
        top = _reduced(b, lanes, length, -math.inf, _larger(b), lambda i: b.load(x, first + i))
        total = _reduced(b, lanes, length, 0.0, b.add, lambda i: b.exp(b.load(x, first + i) - top))
        with b.if_(valid):
            b.store(out, row, b.log(total) - (b.load(x, first + label) - top))
    return b.finish()


class _RowLanes:
    """Accumulators of a row. `own` is only indexed by loops of constant length, so that it stays in registers."""

    def __init__(self, b: LoopBuilder, dtype: DType) -> None:
        self.own, self.ends = b.scratch(dtype, LANES), b.scratch(dtype, LANES)


def _reduced(b: LoopBuilder, lanes: _RowLanes, count: Scalar, start: float, join: Callable[[Scalar, Scalar], Scalar],
             element: Callable[[Scalar], Scalar]) -> Scalar:
    """`count` elements joined in the order of the module's head. Loops over whole rows of lanes become vectors."""
    own, ends = lanes.own, lanes.ends
    with b.for_(0, LANES) as lane:
        b.store(own, lane, start)
    whole = b.shr(count, LANES.bit_length() - 1) * LANES
    with b.for_(0, whole, LANES) as block, b.for_(0, LANES) as lane:
        b.store(own, lane, join(b.load(own, lane), element(block + lane)))
    with b.for_(0, LANES) as lane:
        b.store(ends, lane, b.load(own, lane))
    with b.for_(0, count - whole) as lane:
        b.store(ends, lane, join(b.load(ends, lane), element(whole + lane)))
    half = LANES // 2
    while half:
        with b.for_(0, half) as lane:
            b.store(ends, lane, join(b.load(ends, lane), b.load(ends, lane + half)))
        half //= 2
    return b.load(ends, 0)


def _larger(b: LoopBuilder) -> Callable[[Scalar, Scalar], Scalar]:
    """The larger of two numbers; a NaN may be passed over, as it makes the sum of exponentials a NaN anyway."""
    return lambda largest, x: b.select(b.gt(x, largest), x, largest)
