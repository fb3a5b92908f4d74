"""Loops of scans: one step after another along an axis, lines beside each other.

Owns what a step is for each scan, in scalar instructions, and the loops around it. The operands are contiguous arrays
seen as [outer, length, inner]; a line is one pair of outer and inner. Lines with inner neighbours go side by side, so
that steps vectorise over them. The order along the axis is that of the elements, whatever the layout and the number of
threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from twofold.ir import dtypes as dt
from twofold.ir.data_class import data_class
from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar, ScalarBuilder

from ..loop import Kernel, LoopBuilder

__all__ = ["TILE", "SCANS", "Scan", "lines", "tiles"]

TILE = 64  # lines that go side by side


@data_class(frozen=True, eq=False)
class Scan:
    """A scan: states, how an element moves them on, and the result that they give.

    Attributes:
        start: the states before the first element, Python numbers.
        step: `step(s, states, elements)`, the states after one more element of each operand.
        result: `result(s, states)`, by default the first state.
    """

    start: tuple[float, ...]
    step: Callable[..., tuple[Scalar, ...]]
    result: Callable[..., Scalar] | None = None

    def value(self, s: ScalarBuilder, states: Sequence[Scalar]) -> Scalar:
        return states[0] if self.result is None else self.result(s, states)


def _logsumexp_step(s: ScalarBuilder, states: Sequence[Scalar], xs: Sequence[Scalar]) -> tuple[Scalar, Scalar]:
    """States (m, t) stand for t * exp(m), m the largest element so far."""
    (m, t), (x,) = states, xs
    ratio = s.exp(s.select(s.eq(m, x), 0.0, -s.abs(m - x)))
    return s.maximum(m, x), s.select(s.ge(m, x), t + ratio, s.fma(t, ratio, 1.0))


SCANS = {
    "cumsum": Scan((0,), lambda s, states, xs: (states[0] + xs[0],)),
    "cumprod": Scan((1,), lambda s, states, xs: (states[0] * xs[0],)),
    "linear_recurrence": Scan((0,), lambda s, states, xs: (states[0] * xs[0] + xs[1],)),
    "cumulative_logsumexp": Scan((-math.inf, 0.0), _logsumexp_step, lambda s, states: states[0] + s.log(states[1])),
}


class _ScanKernel:
    """A kernel being recorded, of output, inputs, the length of the axis, and how many lines lie side by side."""

    def __init__(self, name: str, kind: str, dtype: DType, exclusive: bool, reverse: bool) -> None:
        self.step, self.exclusive, self.reverse = SCANS[name], exclusive, reverse
        flags = "".join(word for word, on in ((" exclusive", exclusive), (" reverse", reverse)) if on)
        b = self.b = LoopBuilder(f"{name} {dtype.short} {kind}{flags}")
        self.dtype = dtype
        self.out = b.pointer("out", dtype)
        self.ins = [b.pointer(f"in{n}", dtype) for n in range(2 if name == "linear_recurrence" else 1)]
        self.length, self.inner = b.integer(), b.integer()

    def place(self, k: Scalar) -> Scalar:
        """Where along the axis step number `k` is."""
        return self.length - 1 - k if self.reverse else k

    def advance(self, states: Sequence[Scalar], at: Scalar) -> tuple[Scalar, ...]:
        """Takes the elements at `at` in, stores the result there, and gives the states after it."""
        b, step = self.b, self.step
        moved = step.step(b, states, [b.load(p, at) for p in self.ins])
        b.store(self.out, at, step.value(b, states if self.exclusive else moved))
        return moved


def lines(name: str, dtype: DType, exclusive: bool, reverse: bool) -> Kernel:
    """Goes along the lines in the range, one after another; lines are contiguous (inner is 1).

    args: addresses of the output and the inputs; the length of the axis; 1.
    """
    f = _ScanKernel(name, "lines", dtype, exclusive, reverse)
    b = f.b
    with b.for_(b.start, b.stop) as line:
        base = line * f.length
        cells = [b.local(b.const(v, dtype)) for v in f.step.start]
        with b.for_(0, f.length) as k:
            moved = f.advance([c.get() for c in cells], base + f.place(k))
            for cell, value in zip(cells, moved, strict=True):
                cell.set(value)
    return b.finish()


def tiles(name: str, dtype: DType, exclusive: bool, reverse: bool) -> Kernel:
    """Goes along the lines of each tile in the range side by side.

    args: addresses of the output and the inputs; the length of the axis; inner. Tile number t is of outer
    t // ceil(inner / TILE).
    """
    f = _ScanKernel(name, "tiles", dtype, exclusive, reverse)
    b = f.b
    states = [b.scratch(dtype.compute, TILE) for _ in f.step.start]
    across = b.idiv(f.inner + (TILE - 1), b.const(TILE, dt.int64))
    with b.for_(b.start, b.stop) as tile:
        outer = b.idiv(tile, across)
        left = (tile - outer * across) * TILE
        width = b.minimum(f.inner - left, TILE)
        with b.for_(0, width) as c:
            for p, number in zip(states, f.step.start, strict=True):
                b.store(p, c, number)
        with b.for_(0, f.length) as k:
            base = (outer * f.length + f.place(k)) * f.inner + left
            with b.for_(0, width) as c:
                moved = f.advance([b.load(p, c) for p in states], base + c)
                for p, v in zip(states, moved, strict=True):
                    b.store(p, c, v)
    return b.finish()
