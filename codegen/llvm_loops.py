"""A counted loop as LLVM instructions, for entries of programs and for the runtime's own functions.

It stands alone, because stored machine code of the runtime is known by the files that write it
(`runtime/machine.py`). Loops of kernels are `llvm_cpu.py`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llvmlite import ir

__all__ = ["each"]

_I64 = ir.IntType(64)


@contextmanager
def each(b: ir.IRBuilder, count: ir.Value) -> Iterator[ir.Value]:
    """Writes a loop over every index below `count`, an int64; what is written meanwhile is its body."""
    before = b.block
    test, body, after = (b.append_basic_block(name) for name in ("test", "body", "after"))
    b.branch(test)
    b.position_at_end(test)
    index = b.phi(_I64)
    index.add_incoming(_I64(0), before)
    b.cbranch(b.icmp_signed("<", index, count), body, after)
    b.position_at_end(body)
    yield index
    index.add_incoming(b.add(index, _I64(1)), b.block)
    b.branch(test)
    b.position_at_end(after)
