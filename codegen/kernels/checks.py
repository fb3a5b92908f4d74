"""A condition on values as a kernel: it computes nothing and reports what does not hold."""

from __future__ import annotations

from twofold.codegen.loop import Kernel, LoopBuilder
from twofold.ir import dtypes as dt

__all__ = ["holds"]


def holds(message: str) -> Kernel:
    """Reports `message` unless a bool is true.

    args: the address of the bool; the range is of length 1.
    """
    b = LoopBuilder(f"assert {message}")
    condition = b.pointer("condition", dt.bool_)
    with b.for_(b.start, b.stop) as i:
        b.check(b.load(condition, i), message)
    return b.finish()
