"""What threads of a GPU that run in lockstep tell one another, in LLVM's instructions for NVIDIA's.

A team is a warp. Numbers go from thread to thread by words of 32 bits, whatever they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from twofold.ir.instructions import Immediate

from .loop import TEAM

__all__ = ["emit", "special_register"]

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_ALL = _I32(-1)  # of the threads, one a bit: they come to the instruction together


def emit(b: ir.IRBuilder, op: str, args: Sequence[ir.Value], const: Immediate) -> ir.Value:
    """The value of instruction `op`, one of `statements.TEAM_OPS`."""
    if op == "lane":
        return special_register(b, "laneid")
    how, which = ("down", _I32(const)) if op == "further" else ("idx", _I32(0))
    kind = ir.FunctionType(_I32, [_I32] * 4)
    shuffle = b.module.declare_intrinsic(f"llvm.nvvm.shfl.sync.{how}.i32", (), kind)
    return _by_words(b, args[0], lambda word: b.call(shuffle, [_ALL, word, which, _I32(TEAM - 1)]))


def special_register(b: ir.IRBuilder, name: str) -> ir.Value:
    """A register that tells a thread which one it is, in its block or team, or how many there are."""
    read = b.module.declare_intrinsic(f"llvm.nvvm.read.ptx.sreg.{name}", (), ir.FunctionType(_I32, []))
    return b.zext(b.call(read, []), _I64)


def _by_words(b: ir.IRBuilder, x: ir.Value, tell: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """Another thread's `x`, from its words of 32 bits, which `tell` hands on."""
    kind = x.type
    if isinstance(kind, ir.FloatType):
        return b.bitcast(tell(b.bitcast(x, _I32)), kind)
    if isinstance(kind, ir.DoubleType):
        return b.bitcast(_by_words(b, b.bitcast(x, _I64), tell), kind)
    if kind.width < _I32.width:
        return b.trunc(tell(b.zext(x, _I32)), kind)
    if kind.width == _I32.width:
        return tell(x)
    low, high = tell(b.trunc(x, _I32)), tell(b.trunc(b.lshr(x, kind(32)), _I32))
    return b.or_(b.zext(low, kind), b.shl(b.zext(high, kind), kind(32)))
