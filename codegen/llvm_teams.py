"""What threads of a GPU that run in lockstep tell one another, in LLVM's instructions for NVIDIA's.

Numbers go from thread to thread of a warp by words of 32 bits, whatever they are; from thread to thread of a block
through memory that they share. Here is, too, how the threads of a block, or of a launch, share the iterations of a
kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from llvmlite import ir

from twofold.ir.instructions import Immediate

from . import llvm_ops
from .loop import TEAM
from .statements import SHARED_ALIGNMENT, Kernel, Pointer

__all__ = ["BlockAround", "address_of", "barrier", "each", "emit", "iterate", "reported", "shared", "special_register"]

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_SHARED = 3  # the address space of what blocks share
_PART = 1  # the number of the barrier at which some threads of a block wait; all of them wait at number 0
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


class BlockAround(NamedTuple):
    """The block whose threads share a kernel's iterations: how many it has, and its memory for what teams share."""

    threads: int
    room: ir.GlobalVariable | None


def barrier(b: ir.IRBuilder, threads: int | None = None) -> None:
    """Has the threads of a block wait for one another, or so many of them, the first ones."""
    if threads is None:
        wait = b.module.declare_intrinsic("llvm.nvvm.barrier.cta.sync.aligned.all", (),
                                          ir.FunctionType(ir.VoidType(), [_I32]))
        b.call(wait, [_I32(0)])
        return
    wait = b.module.declare_intrinsic("llvm.nvvm.barrier.cta.sync.aligned.count", (),
                                      ir.FunctionType(ir.VoidType(), [_I32, _I32]))
    b.call(wait, [_I32(_PART), _I32(threads)])


def shared(module: ir.Module, memory: Pointer, name: str) -> ir.GlobalVariable:
    """Memory that a block shares, a new symbol of a module."""
    kind = ir.ArrayType(llvm_ops.llvm_type(memory.dtype, memory=True), memory.size)
    symbol = ir.GlobalVariable(module, kind, name, addrspace=_SHARED)
    symbol.linkage, symbol.align, symbol.initializer = "internal", SHARED_ALIGNMENT, ir.Constant(kind, ir.Undefined)
    return symbol


def address_of(b: ir.IRBuilder, symbol: ir.GlobalVariable, offset: int = 0) -> ir.Value:
    """The address of a byte of memory that a block shares."""
    start = b.addrspacecast(symbol, ir.PointerType())
    return b.gep(start, [_I64(offset)], source_etype=ir.IntType(8)) if offset else start


@contextmanager
def each(b: ir.IRBuilder, first: ir.Value, step: ir.Value, total: ir.Value) -> Iterator[ir.Value]:
    """Writes a loop over the numbers from `first` on that are below `total`."""
    before, loop, done = b.block, b.append_basic_block("loop"), b.append_basic_block("done")
    b.cbranch(b.icmp_signed("<", first, total), loop, done)
    b.position_at_end(loop)
    number = b.phi(_I64)
    number.add_incoming(first, before)
    yield number
    following = b.add(number, step)
    number.add_incoming(following, b.block)
    b.cbranch(b.icmp_signed("<", following, total), loop, done)
    b.position_at_end(done)


def iterate(b: ir.IRBuilder, kernel: Kernel, threads: int, total: ir.Value, run: Callable[[ir.Value], None]) -> None:
    """Has the threads of a block run the iterations of a kernel below `total`, each of which `run` writes.

    Args:
        threads: of the block.
    """
    thread, team = special_register(b, "tid.x"), kernel.team
    if team <= TEAM:
        first = b.udiv(thread, _I64(team)) if team > 1 else thread
        with each(b, first, _I64(threads // team), total) as iteration:
            run(iteration)
        return
    with b.if_then(b.icmp_unsigned("<", thread, _I64(team))), each(b, _I64(0), _I64(1), total) as iteration:
        run(iteration)


def reported(b: ir.IRBuilder, result: ir.Value, status: ir.Value) -> None:
    """Writes down the result of an iteration whose checks may have failed, where its kernel has a status word."""
    with b.if_then(b.icmp_unsigned("!=", result, _I64(0)), likely=False):
        b.atomic_rmw("umin", status, b.sub(result, _I64(1)), "monotonic")


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
