"""What threads of a GPU that run in lockstep tell one another, in LLVM's instructions for NVIDIA's.

Numbers go from thread to thread of a warp by words of 32 bits, whatever they are; from thread to thread of a block
through memory that they share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from twofold.ir.instructions import Immediate

from . import llvm_ops
from .loop import TEAM
from .statements import Pointer

__all__ = ["emit", "barrier", "shared", "special_register"]

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_SHARED, _ALIGNED = 3, 16  # the address space of what blocks share, and its alignment
_ALL = _I32(-1)  # of the threads, one a bit: they come to the instruction together


def emit(b: ir.IRBuilder, op: str, args: Sequence[ir.Value], const: Immediate) -> ir.Value:
    """The value of instruction `op`, one of `statements.TEAM_OPS`."""
    if op == "mma":
        return _mma(b, str(const), *args)
    if op in ("lane", "thread"):
        return special_register(b, "laneid" if op == "lane" else "tid.x")
    how, which = ("down", _I32(const)) if op == "further" else ("idx", _I32(0))
    kind = ir.FunctionType(_I32, [_I32] * 4)
    shuffle = b.module.declare_intrinsic(f"llvm.nvvm.shfl.sync.{how}.i32", (), kind)
    return _by_words(b, args[0], lambda word: b.call(shuffle, [_ALL, word, which, _I32(TEAM - 1)]))


def _mma(b: ir.IRBuilder, of: str, *fragments: ir.Value) -> ir.Value:
    """A product by a tensor core, of fragments that are vectors here and registers there."""
    name, word = {"tf32": ("m16n8k8.row.col.tf32", _I32), "bf16": ("m16n8k16.row.col.bf16", _I32),
                  "f16": ("m16n8k16.row.col.f32.f32", ir.VectorType(ir.HalfType(), 2))}[of]
    lanes = [b.extract_element(x, _I32(n)) for x in fragments for n in range(x.type.count)]
    words = [b.bitcast(lane, word) if lane.type == _I32 and word != _I32 else lane for lane in lanes]
    result = ir.LiteralStructType([ir.FloatType()] * 4)
    multiply = b.module.declare_intrinsic(f"llvm.nvvm.mma.{name}", (), ir.FunctionType(result, [w.type for w in words]))
    sums = b.call(multiply, words)
    out = ir.Constant(fragments[2].type, ir.Undefined)
    for n in range(4):
        out = b.insert_element(out, b.extract_value(sums, n), _I32(n))
    return out


def barrier(b: ir.IRBuilder) -> None:
    """Has the threads of a block wait for one another."""
    wait = b.module.declare_intrinsic("llvm.nvvm.barrier.cta.sync.aligned.all", (),
                                      ir.FunctionType(ir.VoidType(), [_I32]))
    b.call(wait, [_I32(0)])


def shared(b: ir.IRBuilder, memory: Pointer, name: str) -> ir.Value:
    """The address of memory that a block shares, a new symbol of the module."""
    kind = ir.ArrayType(llvm_ops.llvm_type(memory.dtype, memory=True), memory.size)
    symbol = ir.GlobalVariable(b.module, kind, name, addrspace=_SHARED)
    symbol.linkage, symbol.align, symbol.initializer = "internal", _ALIGNED, ir.Constant(kind, ir.Undefined)
    return b.addrspacecast(symbol, ir.PointerType())


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
