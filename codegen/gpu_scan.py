"""Scans on a GPU: a line a thread, from its first element to its last, since the order along the axis is fixed.

Where lines lie side by side, so do the threads' elements, and threads read them where they are. Where a line's own
elements are neighbours, a block of threads fetches a piece of some lines into shared memory, a thread goes along each
of these, and all of them write the results: so neighbours are read and written together in any case. States are in
registers. What a step is, is `kernels/scan.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twofold.ir.dtypes import DType
from twofold.ir.scalar import Scalar

from .kernels.scan import SCANS
from .loop import Kernel, LoopBuilder, Pointer, TeamBuilder
from .loop_sizes import parted

__all__ = ["TOGETHER", "lines", "columns"]

TOGETHER = 32  # lines that a block goes along side by side, where there are many
_THREADS = 128  # of a block
_SHARED = 16 << 10  # bytes that pieces of lines take
_AHEAD = 4  # elements of a line that a thread loads before it needs the first of them


def columns(name: str, dtype: DType, exclusive: bool, reverse: bool) -> Kernel:
    """Goes along the lines in the range, each of which has others beside it.

    args: addresses of the output and the inputs, arrays [outer, length, inner]; the length of the axis; inner. The
    range counts pairs of outer and inner.
    """
    scan = _ScanByThreads(LoopBuilder, name, dtype, "columns", exclusive, reverse)
    b, length, inner = scan.b, scan.b.integer(), scan.b.integer()
    with b.for_(b.start, b.stop) as line:
        outer, column = parted(b, line, inner)
        begin = outer * length * inner + column
        scan.begin()
        scan.go(length, lambda k: begin + k * inner, scan.ins, scan.out)
    return b.finish()


def lines(name: str, dtype: DType, exclusive: bool, reverse: bool, together: int) -> Kernel:
    """Goes along lines whose own elements are neighbours; the range counts groups of lines, of a block each.

    args: addresses of the output and the inputs; the length of a line; how many lines there are.

    Args:
        together: lines of a group, a power of 2.
    """
    scan = _ScanByThreads(lambda text: TeamBuilder(text, _THREADS), name, dtype, f"lines of {together}", exclusive,
                          reverse)
    b = scan.b
    assert isinstance(b, TeamBuilder)
    length, count, thread = b.integer(), b.integer(), b.thread()
    piece = _SHARED // (together * dtype.compute.size * len(scan.ins))  # elements of a line, a power of 2
    memory = [b.shared(dtype.compute, together * (piece + 1)) for _ in scan.ins]  # + 1: threads have banks apart
    with b.for_(b.start, b.stop) as group:
        top = group * together
        there = b.minimum(count - top, together)
        scan.begin()
        with b.for_(0, length, piece) as done:
            width = b.minimum(length - done, piece)
            first = top * length + (length - done - width if reverse else done)

            def each(move: Callable[[Scalar, Scalar], None]) -> None:
                with b.for_(thread, there * piece, _THREADS) as n:
                    line = b.shr(n, piece.bit_length() - 1)
                    k = n - line * piece
                    with b.if_(b.lt(k, width)):
                        move(first + line * length + k, line * (piece + 1) + k)

            def fetch(far: Scalar, near: Scalar) -> None:
                for m, x in zip(memory, scan.ins, strict=True):
                    b.store(m, near, b.load(x, far))

            each(fetch)
            b.barrier()
            with b.if_(b.lt(thread, there)):
                scan.go(width, lambda k: thread * (piece + 1) + k, memory, memory[0])
            b.barrier()
            each(lambda far, near: b.store(scan.out, far, b.load(memory[0], near)))
            b.barrier()
    return b.finish()


class _ScanByThreads:
    """A kernel being recorded: its output and inputs, and the states of this thread's line."""

    def __init__(self, builder: Callable[[str], LoopBuilder], name: str, dtype: DType, kind: str, exclusive: bool,
                 reverse: bool) -> None:
        self.scan, self.dtype, self.exclusive, self.reverse = SCANS[name], dtype, exclusive, reverse
        b = self.b = builder(f"{name} {dtype.short} by {kind}{' exclusive' * exclusive}{' reverse' * reverse}")
        self.out = b.pointer("out", dtype)
        self.ins = [b.pointer(f"in{n}", dtype) for n in range(2 if name == "linear_recurrence" else 1)]

    def begin(self) -> None:
        """Has the states be those before the first element."""
        self.states = [self.b.local(self.b.const(v, self.dtype)) for v in self.scan.start]

    def go(self, count: Scalar, place: Callable[[Scalar], Scalar], ins: Sequence[Pointer], out: Pointer) -> None:
        """Goes along `count` elements, number k of which is at `place(k)` of memory; some are loaded before they are
        needed."""
        def steps(first: Scalar, number: int) -> None:
            order = [first + n for n in range(number)]
            places = [place(count - 1 - k if self.reverse else k) for k in order]
            loaded = [[self.b.load(p, at) for p in ins] for at in places]
            for at, elements in zip(places, loaded, strict=True):
                self.b.store(out, at, self.advanced(elements))

        whole = self.b.shr(count, _AHEAD.bit_length() - 1) * _AHEAD
        with self.b.for_(0, whole, _AHEAD) as k:
            steps(k, _AHEAD)
        with self.b.for_(whole, count) as k:
            steps(k, 1)

    def advanced(self, elements: Sequence[Scalar]) -> Scalar:
        """Moves the states on by an element of each input; the result there."""
        b, before = self.b, [c.get() for c in self.states]
        moved = self.scan.step(b, before, elements)
        for cell, value in zip(self.states, moved, strict=True):
            cell.set(value)
        return self.scan.value(b, before if self.exclusive else moved)
