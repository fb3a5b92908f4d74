"""Vectors as LLVM has them: loads and stores of neighbours, also under a mask, and what puts lanes together.

The arithmetic on lanes is that on numbers (`llvm_ops.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from llvmlite import ir

from . import target as targets
from .llvm_ops import Lanes, integer

__all__ = ["load", "store", "splat", "first", "shuffle", "extract", "pack", "aligned", "add_pairs", "add_quads",
           "prefetch"]

_I1, _I32, _I64, _POINTER, _VOID = ir.IntType(1), ir.IntType(32), ir.IntType(64), ir.PointerType(), ir.VoidType()


def load(b: ir.IRBuilder, address: ir.Value, kind: Lanes, size: int, mask: ir.Value | None = None) -> ir.Value:
    """The vector of `kind` at `address`, aligned to `size` bytes; 0 in lanes that `mask` leaves out."""
    if mask is None:
        return b.load(address, typ=kind, align=size)
    fn = _masked(b, "load", kind, kind, [_POINTER, _I32, mask.type, kind])
    return b.call(fn, [address, _I32(size), mask, ir.Constant(kind, None)])


def store(b: ir.IRBuilder, value: ir.Value, address: ir.Value, size: int,
          mask: ir.Value | None = None) -> ir.Instruction:
    """Stores the lanes of `value` that `mask` has; gives the instruction."""
    if mask is None:
        return b.store(value, address, align=size)
    fn = _masked(b, "store", value.type, _VOID, [value.type, _POINTER, _I32, mask.type])
    return b.call(fn, [value, address, _I32(size), mask])


def splat(b: ir.IRBuilder, x: ir.Value, lanes: int) -> ir.Value:
    """The vector with `x` in all lanes."""
    kind = Lanes(x.type, lanes)
    if isinstance(x, ir.Constant):
        return ir.Constant(kind, x.constant)
    if targets.current().granules and isinstance(x.type, (ir.FloatType, ir.DoubleType)):
        # SVE repeats a number from memory for nothing: LLVM sees that of integers alone.
        bits = ir.IntType(32 if isinstance(x.type, ir.FloatType) else 64)
        return b.bitcast(splat(b, b.bitcast(x, bits), lanes), kind)
    one = b.insert_element(ir.Constant(kind, ir.Undefined), x, _I32(0))
    return b.shuffle_vector(one, one, _zeros(lanes))


@functools.cache
def _zeros(lanes: int) -> ir.Constant:
    return ir.Constant(Lanes(_I32, lanes), None)


def shuffle(b: ir.IRBuilder, x: ir.Value, y: ir.Value, picked: Sequence[int]) -> ir.Value:
    """The given lanes of `x`, and of `y` after them."""
    return b.shuffle_vector(x, y, ir.Constant(ir.VectorType(_I32, len(picked)), list(picked)))


def extract(b: ir.IRBuilder, x: ir.Value, lane: int) -> ir.Value:
    """A lane of a vector."""
    return b.extract_element(x, _I32(lane))


def pack(b: ir.IRBuilder, values: Sequence[ir.Value]) -> ir.Value:
    """The vector of some numbers."""
    whole: ir.Value = ir.Constant(Lanes(values[0].type, len(values)), ir.Undefined)
    for lane, value in enumerate(values):
        whole = b.insert_element(whole, value, _I32(lane))
    return whole


def aligned(b: ir.IRBuilder, address: ir.Value, size: int) -> ir.Value:
    """Whether an address is a multiple of `size` bytes."""
    return b.icmp_unsigned("==", b.and_(b.ptrtoint(address, _I64), integer(size - 1)), integer(0))


class _BFloat(ir.Type):
    """LLVM's own bfloat16, which only an intrinsic of x86 asks for here: values of it are float32 elsewhere."""

    def _to_string(self) -> str:
        return "bfloat"


_BFLOAT = _BFloat()


def add_pairs(b: ir.IRBuilder, x: ir.Value, y: ir.Value, total: ir.Value) -> ir.Value:
    """`total` and the products of the pairs of bfloat16 numbers that the lanes of `x` and `y` hold."""
    lanes = total.type.count
    pairs = ir.VectorType(_BFLOAT, 2 * lanes)
    fn = _declared(b, f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}",
                   ir.FunctionType(total.type, [total.type, pairs, pairs]))
    return b.call(fn, [total, b.bitcast(x, pairs), b.bitcast(y, pairs)])


def add_quads(b: ir.IRBuilder, x: ir.Value, y: ir.Value, total: ir.Value) -> ir.Value:
    """`total` and the products of the four unsigned bytes in each lane of `x` with the signed ones of `y`."""
    kind = total.type
    fn = _declared(b, f"llvm.x86.avx512.vpdpbusd.{32 * kind.count}", ir.FunctionType(kind, [kind] * 3))
    return b.call(fn, [total, x, y])


def first(b: ir.IRBuilder, count: ir.Value, lanes: int) -> ir.Value:
    """The mask of the first `count` lanes: none for a negative number, all for a large one."""
    low = b.select(b.icmp_signed("<", count, integer(lanes)), count, integer(lanes))
    count = b.select(b.icmp_signed("<", count, integer(0)), integer(0), low)
    if targets.current().granules:  # a comparison gives a mask as SVE has it
        numbers = ir.Constant(Lanes(_I32, lanes), list(range(lanes)))
        return b.icmp_signed(">", splat(b, b.trunc(count, _I32), lanes), numbers)
    bits = b.sub(b.shl(integer(1), count), integer(1))
    if lanes == 64:  # by as many places no word is moved
        bits = b.select(b.icmp_signed("==", count, integer(lanes)), integer(-1), bits)
    return b.bitcast(b.trunc(bits, ir.IntType(lanes)), Lanes(_I1, lanes))


def prefetch(b: ir.IRBuilder, address: ir.Value, write: bool) -> None:
    """Asks the second cache for the line at `address`, or the first if it is to be written."""
    fn = _declared(b, "llvm.prefetch.p0", ir.FunctionType(_VOID, [_POINTER, _I32, _I32, _I32]))
    b.call(fn, [address, _I32(int(write)), _I32(3 if write else 2), _I32(1)])


def _masked(b: ir.IRBuilder, what: str, kind: ir.VectorType, result: ir.Type, arguments: list[ir.Type]) -> ir.Function:
    # a vector that a shuffle gave is none of our `Lanes`, which would know its name
    name = f"llvm.masked.{what}.v{kind.count}{kind.element.intrinsic_name}.p0"
    return _declared(b, name, ir.FunctionType(result, arguments))


def _declared(b: ir.IRBuilder, name: str, kind: ir.FunctionType) -> ir.Function:
    return b.module.globals.get(name) or ir.Function(b.module, kind, name)
