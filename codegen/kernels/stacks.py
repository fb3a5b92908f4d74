"""Kernels of stacks: vectors that loops write and read at a place that is counted while they run."""

from __future__ import annotations

from twofold.codegen.loop import Kernel, LoopBuilder
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType

__all__ = ["push", "pop", "OUTSIDE"]

OUTSIDE = "a stack is shorter than it was said to be."


def push(dtype: DType, add: bool) -> Kernel:
    """Writes the elements of a value to the stack, or adds them to what is there.

    args: addresses of the stack, the value and the place (an int64); the length of the stack.
    """
    b = LoopBuilder(f"push{' add' if add else ''} {dtype.short}")
    stack, value, place = b.pointer("stack", dtype), b.pointer("value", dtype), b.pointer("place", dt.int64)
    length = b.integer()
    first = b.load(place, 0)
    with b.for_(b.start, b.stop) as i:
        at = first + i
        inside = b.and_(b.ge(at, 0), b.lt(at, length))
        b.check(inside, OUTSIDE)
        with b.if_(inside):
            element = b.load(value, i)
            b.store(stack, at, b.load(stack, at) + element if add else element)
    return b.finish()


def pop(dtype: DType) -> Kernel:
    """Reads elements of the stack from a place on.

    args: addresses of the result, the stack and the place (an int64); the length of the stack.
    """
    b = LoopBuilder(f"pop {dtype.short}")
    out, stack, place = b.pointer("out", dtype), b.pointer("stack", dtype), b.pointer("place", dt.int64)
    length = b.integer()
    first = b.load(place, 0)
    with b.for_(b.start, b.stop) as i:
        at = first + i
        inside = b.and_(b.ge(at, 0), b.lt(at, length))
        b.check(inside, OUTSIDE)
        with b.if_(inside):
            b.store(out, i, b.load(stack, at))
    return b.finish()
