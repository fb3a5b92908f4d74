"""Each instruction of the scalar IR as LLVM instructions, through llvmlite's builder.

Every CPU backend writes its arithmetic with `emit` (numba kernels wrap it in intrinsics), so that one instruction has
one meaning and one set of bits everywhere. Also here: the conversions between 16-bit floats in memory and the float32
values that kernels compute with.

No instruction carries fast-math flags, and none may be contracted.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TypeAlias

from llvmlite import ir

from twofold.ir.dtypes import DType

from . import target as targets
from .value_types import Address, Vector

__all__ = ["llvm_type", "Lanes", "integer", "emit", "widen", "narrow", "converts_half"]

_I1, _I16, _I32, _I64 = (ir.IntType(n) for n in (1, 16, 32, 64))
_HALF, _FLOAT, _DOUBLE, _POINTER = ir.HalfType(), ir.FloatType(), ir.DoubleType(), ir.PointerType()
_Values: TypeAlias = tuple[ir.Value, ...]
# Writes one kind of instruction: (builder, operands, their dtype, the result's) -> the value.
_Rule: TypeAlias = Callable[[ir.IRBuilder, _Values, DType, DType], ir.Value]


@functools.cache
def llvm_type(dtype: DType, memory: bool = False) -> ir.Type:
    """The LLVM type of a value of `dtype`, or of an element in `memory` (bool is a byte, 16-bit floats are words).

    Floats of 8 bits, which are moved alone, are bytes in both.
    """
    if isinstance(dtype, Vector):
        return Lanes(llvm_type(dtype.element), dtype.lanes)
    if isinstance(dtype, Address):
        return _POINTER
    if dtype.is_bool:
        return ir.IntType(8) if memory else _I1
    if dtype.is_floating:
        return {1: ir.IntType(8), 2: _I16 if memory else _FLOAT, 4: _FLOAT, 8: _DOUBLE}[dtype.size]
    if dtype.is_integer:
        return ir.IntType(8 * dtype.size)
    raise TypeError(f"{dtype.name} is not a scalar type of kernels")


@functools.lru_cache(1 << 12)
def integer(value: int) -> ir.Constant:
    """A constant of 64 bits."""
    return ir.Constant(_I64, value)


class Lanes(ir.VectorType):
    """A vector, with its part of an intrinsic's name, and a short text for a number that is in all lanes."""

    @property
    def intrinsic_name(self) -> str:
        return f"v{self.count}{self.element.intrinsic_name}"

    def format_constant(self, value: Sequence[ir.Constant]) -> str:
        if all(v is value[0] for v in value):
            return f"splat ({value[0]})"
        return super().format_constant(value)


def _as_wide(kind: ir.Type, x: ir.Value) -> ir.Type:
    """`kind`, or a vector of it where `x` is one; a vector stays what it is."""
    return Lanes(kind, x.type.count) if isinstance(x.type, ir.VectorType) and not isinstance(kind, Lanes) else kind


def emit(b: ir.IRBuilder, op: str, args: _Values, dtype: DType, out: DType) -> ir.Value:
    """The value of instruction `op`.

    Args:
        b: where to write.
        op: a name of `ir.scalar.INSTRUCTIONS`, constants and complex numbers apart.
        args: LLVM values of the operands: numbers, or all of them vectors, but where a comment below says otherwise.
        dtype: their type; of a select, the type of the values chosen from.
        out: the type of the result.
    """
    if op in _COMPARE:
        return _compare(b, op, args, dtype)
    return _EMIT[op](b, args, dtype, out)


def _intrinsic(b: ir.IRBuilder, name: str, result: ir.Type, args: _Values, over: tuple[ir.Type, ...]) -> ir.Value:
    # What shuffles and comparisons give is a vector of llvmlite's own, which has no part in a name.
    named = tuple([Lanes(t.element, t.count) if isinstance(t, ir.VectorType) else t for t in over])
    fn = b.module.declare_intrinsic(name, named, ir.FunctionType(result, [a.type for a in args]))
    return b.call(fn, args)


def _by_kind(on_float: str, on_integer: str) -> _Rule:
    """An instruction with one builder method for floats and one for integers."""
    return lambda b, args, dtype, out: getattr(b, on_float if dtype.is_floating else on_integer)(*args)


def _plain(method: str) -> _Rule:
    return lambda b, args, dtype, out: getattr(b, method)(*args)


def _float_intrinsic(name: str) -> _Rule:
    return lambda b, args, dtype, out: _intrinsic(b, name, args[0].type, args, (args[0].type,))


_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _compare(b: ir.IRBuilder, op: str, args: _Values, dtype: DType) -> ir.Value:
    if dtype.is_floating:
        compare = b.fcmp_unordered if op == "ne" else b.fcmp_ordered  # NaN differs from everything
    else:
        compare = b.icmp_signed if dtype.kind == "i" else b.icmp_unsigned
    return compare(_COMPARE[op], *args)


def _safe_divisor(b: ir.IRBuilder, x: ir.Value, y: ir.Value, dtype: DType) -> tuple[ir.Value, ir.Value]:
    """`y`, or 1 where dividing by it would trap; and whether it is 0."""
    traps = is_zero = b.icmp_unsigned("==", y, y.type(0))
    if dtype.kind == "i":
        least = x.type(-(1 << (8 * dtype.size - 1)))
        overflows = b.and_(b.icmp_unsigned("==", x, least), b.icmp_unsigned("==", y, y.type(-1)))
        traps = b.or_(traps, overflows)
    return b.select(traps, y.type(1), y), is_zero


def _idiv(b: ir.IRBuilder, args: _Values, dtype: DType, out: DType) -> ir.Value:
    x, y = args
    if isinstance(y, ir.Constant) and y.constant not in (0, -1) and not isinstance(y.type, ir.VectorType):
        return (b.udiv if dtype.is_unsigned else b.sdiv)(x, y)
    divisor, is_zero = _safe_divisor(b, x, y, dtype)
    return b.select(is_zero, y.type(0), (b.udiv if dtype.is_unsigned else b.sdiv)(x, divisor))


def _irem(b: ir.IRBuilder, args: _Values, dtype: DType, out: DType) -> ir.Value:
    x, y = args
    return (b.urem if dtype.is_unsigned else b.srem)(x, _safe_divisor(b, x, y, dtype)[0])


def _neg(b: ir.IRBuilder, args: _Values, dtype: DType, out: DType) -> ir.Value:
    return b.fneg(args[0]) if dtype.is_floating else b.sub(args[0].type(0), args[0])


def _abs(b: ir.IRBuilder, args: _Values, dtype: DType, out: DType) -> ir.Value:
    x = args[0]
    if dtype.is_floating:
        return _intrinsic(b, "llvm.fabs", x.type, args, (x.type,))
    return x if dtype.kind != "i" else b.select(b.icmp_signed("<", x, x.type(0)), b.sub(x.type(0), x), x)


def _not(b: ir.IRBuilder, args: _Values, dtype: DType, out: DType) -> ir.Value:
    return b.xor(args[0], args[0].type(-1))


def _is_within(x: ir.Value, limit: int) -> bool:
    """Whether all numbers of a constant are at least 0 and below `limit`."""
    if not isinstance(x, ir.Constant):
        return False
    numbers = [v.constant for v in x.constant] if isinstance(x.type, ir.VectorType) else [x.constant]
    return all(0 <= n < limit for n in numbers)


def _shift(method_signed: str, method_unsigned: str) -> _Rule:
    def shift(b: ir.IRBuilder, args: _Values, dtype: DType, out: DType) -> ir.Value:
        x, count = args
        if not _is_within(count, 8 * dtype.size):
            count = b.and_(count, count.type(8 * dtype.size - 1))
        return getattr(b, method_signed if dtype.kind == "i" else method_unsigned)(x, count)
    return shift


def _mulhi(b: ir.IRBuilder, args: _Values, dtype: DType, out: DType) -> ir.Value:
    bits = 8 * dtype.size
    if bits == 64 and not targets.current().wide:
        return _mulhi_by_halves(b, *args)
    wide = ir.IntType(2 * bits)
    product = b.mul(b.zext(args[0], wide), b.zext(args[1], wide))
    return b.trunc(b.lshr(product, wide(bits)), args[0].type)


def _mulhi_by_halves(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """The high word of the product of two unsigned 64-bit integers, from products of 32-bit halves."""
    half, mask = _I64(32), _I64(0xFFFFFFFF)
    (xl, xh), (yl, yh) = ((b.and_(v, mask), b.lshr(v, half)) for v in (x, y))
    low = b.lshr(b.mul(xl, yl), half)
    first = b.add(b.mul(xh, yl), low)
    second = b.add(b.mul(xl, yh), b.and_(first, mask))
    return b.add(b.mul(xh, yh), b.add(b.lshr(first, half), b.lshr(second, half)))


def _fma(b: ir.IRBuilder, args: _Values, dtype: DType, out: DType) -> ir.Value:
    x, y, z = args
    if targets.current().fused:
        return _intrinsic(b, "llvm.fma", x.type, args, (x.type,))
    if isinstance(x.type, ir.VectorType):
        return _lane_by_lane(b, lambda *lanes: _fma(b, lanes, dtype, out), x, y, z)
    return _fma_by_double(b, x, y, z) if x.type == _FLOAT else _fma_by_parts(b, x, y, z)


def _lane_by_lane(b: ir.IRBuilder, f: Callable[..., ir.Value], *vectors: ir.Value) -> ir.Value:
    """The vector of the results of `f` on the lanes of some vectors, one lane after another."""
    lanes = [f(*[b.extract_element(v, _I32(n)) for v in vectors]) for n in range(vectors[0].type.count)]
    vector = ir.Constant(Lanes(lanes[0].type, len(lanes)), ir.Undefined)
    for n, lane in enumerate(lanes):
        vector = b.insert_element(vector, lane, _I32(n))
    return vector


def _fma_by_double(b: ir.IRBuilder, x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
    """x y + z of float32, rounded once: the product is exact as a float64, and the sum is rounded to odd first."""
    product = b.fmul(b.fpext(x, _DOUBLE), b.fpext(y, _DOUBLE))
    total, lost = _two_sum(b, product, b.fpext(z, _DOUBLE))
    bits, less = b.bitcast(total, _I64), b.bitcast(lost, _I64)
    beyond = b.lshr(b.xor(bits, less), _I64(63))  # the sum was rounded away from 0
    odd = b.bitcast(b.or_(b.sub(bits, beyond), _I64(1)), _DOUBLE)
    return b.fptrunc(b.select(b.fcmp_ordered("!=", lost, _DOUBLE(0)), odd, total), _FLOAT)


def _fma_by_parts(b: ir.IRBuilder, x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
    """x y + z of float64, from exact parts: exact where the result is, else rounded nearly as if once.

    Dekker, "A floating-point technique for extending the available precision", Numerische Mathematik 18, 1971.
    """
    product = b.fmul(x, y)
    (xh, xl), (yh, yl) = _halves(b, x), _halves(b, y)
    rest = b.fsub(b.fmul(xh, yh), product)
    rest = b.fadd(b.fadd(rest, b.fmul(xh, yl)), b.fmul(xl, yh))
    rest = b.fadd(rest, b.fmul(xl, yl))
    total, lost = _two_sum(b, product, z)
    exact = b.fadd(total, b.fadd(lost, rest))
    return b.select(b.fcmp_unordered("uno", exact, exact), total, exact)  # NaN: the parts of large numbers overflow


def _halves(b: ir.IRBuilder, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Two numbers of 26 bits whose sum is `x`."""
    scaled = b.fmul(x, _DOUBLE(134217729.0))
    high = b.fsub(scaled, b.fsub(scaled, x))
    return high, b.fsub(x, high)


def _two_sum(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The sum, and what rounding it lost."""
    total = b.fadd(x, y)
    part = b.fsub(total, x)
    return total, b.fadd(b.fsub(x, b.fsub(total, part)), b.fsub(y, part))


def _cast(b: ir.IRBuilder, args: _Values, dtype: DType, out: DType) -> ir.Value:
    x, to = args[0], _as_wide(llvm_type(out), args[0])
    if x.type == to:
        return x
    if dtype.is_floating and out.is_floating:
        return b.fpext(x, to) if out.size > dtype.size else b.fptrunc(x, to)
    if out.is_floating:
        return b.sitofp(x, to) if dtype.kind == "i" else b.uitofp(x, to)
    if dtype.is_floating:
        if targets.current().saturates:
            name = "llvm.fptoui.sat" if out.is_unsigned else "llvm.fptosi.sat"
            return _intrinsic(b, name, to, args, (to, x.type))
        return _saturated(b, x, to, out)
    if out.size < dtype.size or out.is_bool:
        return b.trunc(x, to)
    return b.sext(x, to) if dtype.kind == "i" else b.zext(x, to)


def _saturated(b: ir.IRBuilder, x: ir.Value, to: ir.Type, out: DType) -> ir.Value:
    """What the saturating intrinsic gives, for processors without such an instruction: LLVM would take one element of a
    vector after the other."""
    bits = 8 * out.size
    low, high = (0.0, 2.0**bits) if out.is_unsigned else (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1))
    small, large = b.fcmp_ordered("<", x, x.type(low)), b.fcmp_ordered(">=", x, x.type(high))
    inside = b.and_(b.fcmp_ordered(">=", x, x.type(low)), b.fcmp_ordered("<", x, x.type(high)))
    inner = b.select(inside, x, x.type(0.0))
    value = b.fptoui(inner, to) if out.is_unsigned else b.fptosi(inner, to)
    return b.select(large, to(out.max), b.select(small, to(out.min), value))


def _bitcast(b: ir.IRBuilder, args: _Values, dtype: DType, out: DType) -> ir.Value:
    to = _as_wide(llvm_type(out), args[0])
    return args[0] if args[0].type == to else b.bitcast(args[0], to)


_EMIT: dict[str, _Rule] = {
    "add": _by_kind("fadd", "add"), "sub": _by_kind("fsub", "sub"), "mul": _by_kind("fmul", "mul"),
    "div": _plain("fdiv"), "idiv": _idiv, "irem": _irem, "neg": _neg, "abs": _abs, "mulhi": _mulhi,
    "and": _plain("and_"), "or": _plain("or_"), "xor": _plain("xor"), "not": _not,
    "shl": _shift("shl", "shl"), "shr": _shift("ashr", "lshr"),
    "select": _plain("select"), "cast": _cast, "bitcast": _bitcast,
    "fma": _fma, "sqrt": _float_intrinsic("llvm.sqrt"),
    "floor": _float_intrinsic("llvm.floor"), "ceil": _float_intrinsic("llvm.ceil"),
    "trunc": _float_intrinsic("llvm.trunc"), "rint": _float_intrinsic("llvm.rint"),
    "copysign": _float_intrinsic("llvm.copysign"),
}


# -- 16-bit floats --------------------------------------------------------------------------------------------------
def widen(b: ir.IRBuilder, bits: ir.Value, dtype: DType) -> ir.Value:
    """The float32 that the 16 `bits` of a float16 or bfloat16 stand for, or those of a vector."""
    word, half, wide = (_as_wide(kind, bits) for kind in (_I32, _HALF, _FLOAT))
    if dtype.name == "bfloat16":
        return b.bitcast(b.shl(b.zext(bits, word), word(16)), wide)
    if converts_half():
        return b.fpext(b.bitcast(bits, half), wide)
    if isinstance(bits.type, ir.VectorType):
        return _lane_by_lane(b, lambda lane: half_to_float(b, lane), bits)
    return half_to_float(b, bits)


def narrow(b: ir.IRBuilder, x: ir.Value, dtype: DType) -> ir.Value:
    """The 16 bits of `x` (float32 or float64) rounded once to `dtype`, to nearest, ties to even; NaN stays NaN.
    Of a vector, lane by lane."""
    if isinstance(x.type, ir.VectorType):
        return _lane_by_lane(b, lambda lane: narrow(b, lane, dtype), x)
    if x.type == _DOUBLE:
        x = _round_to_odd(b, x)
    if dtype.name == "float16":
        return b.bitcast(b.fptrunc(_settled(b, x), _HALF), _I16) if converts_half() else float_to_half(b, x)
    bits = b.bitcast(x, _I32)
    odd = b.and_(b.lshr(bits, _I32(16)), _I32(1))
    rounded = b.lshr(b.add(bits, b.add(odd, _I32(0x7FFF))), _I32(16))
    quiet = b.or_(b.lshr(bits, _I32(16)), _I32(0x40))
    return b.trunc(b.select(b.fcmp_unordered("uno", x, x), quiet, rounded), _I16)


def _settled(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """`x`, a float32, as a value that LLVM moves no rounding to float16 past: the lesser of it and a number that is
    infinity already as a float16.

    It would put the rounding of copysign(x, y) on the operands: where `y` was a float64, x86 has no instruction that
    makes it a float16, and the code would call a library function that no process needs to have. (llvm.canonicalize,
    the identity meant for this, keeps a loop from becoming vectors.)
    """
    bound = x.type(2.0**17)
    return b.select(b.fcmp_ordered(">", x, bound), bound, x)  # NaN stays


def converts_half() -> bool:
    """Whether the target converts float16 itself; where it does not, LLVM would call a library."""
    return targets.current().half


_MAGNITUDE = 0x7FFFFFFF
_REBIAS = 127 - 15  # between the exponents of float32 and float16


def half_to_float(b: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    """The float32 of 16 `bits` of a float16, by integer arithmetic and one exact product."""
    wide = b.zext(bits, _I32)
    sign = b.shl(b.and_(wide, _I32(0x8000)), _I32(16))
    moved = b.shl(b.and_(wide, _I32(0x7FFF)), _I32(13))
    # A product with a power of two sets the exponent right for normal and subnormal numbers alike.
    finite = b.bitcast(b.fmul(b.bitcast(moved, _FLOAT), _FLOAT(2.0**_REBIAS)), _I32)
    special = b.icmp_unsigned(">=", moved, _I32(0x1F << 23))  # the highest exponent: infinity and NaN
    return b.bitcast(b.or_(b.select(special, b.or_(moved, _I32(0xFF << 23)), finite), sign), _FLOAT)


def float_to_half(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """The 16 bits of float32 `x` rounded to float16, to nearest, ties to even, by integer arithmetic."""
    bits = b.bitcast(x, _I32)
    size = b.and_(bits, _I32(_MAGNITUDE))
    odd = b.and_(b.lshr(size, _I32(13)), _I32(1))
    normal = b.lshr(b.add(size, b.sub(odd, _I32((_REBIAS << 23) - 0xFFF))), _I32(13))
    # Added to a number whose last bit is worth 2**-24, a subnormal result is rounded by the addition itself.
    magic = 0.5
    aligned = b.bitcast(b.fadd(b.bitcast(size, _FLOAT), _FLOAT(magic)), _I32)
    small = b.sub(aligned, b.bitcast(_FLOAT(magic), _I32))
    finite = b.select(b.icmp_unsigned("<", size, _I32((_REBIAS + 1) << 23)), small, normal)
    special = b.select(b.icmp_unsigned(">", size, _I32(0xFF << 23)), _I32(0x7E00), _I32(0x7C00))
    result = b.select(b.icmp_unsigned(">=", size, _I32((127 + 16) << 23)), special, finite)
    sign = b.lshr(b.and_(bits, _I32(0x80000000)), _I32(16))
    return b.trunc(b.or_(result, sign), _I16)


def _round_to_odd(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """`x` as a float32 whose last bit tells that digits were lost, so that rounding it again rounds `x` rightly.

    Boldo and Melquiond, "When double rounding is odd", IMACS 2005.
    """
    near = b.fptrunc(x, _FLOAT)
    back, bits = b.fpext(near, _DOUBLE), b.bitcast(near, _I32)
    sizes = [_intrinsic(b, "llvm.fabs", _DOUBLE, (v,), (_DOUBLE,)) for v in (back, x)]
    beyond = b.fcmp_ordered(">", *sizes)
    toward_zero = b.sub(bits, b.zext(beyond, _I32))
    sticky = b.zext(b.fcmp_unordered("!=", back, x), _I32)
    return b.bitcast(b.or_(toward_zero, sticky), _FLOAT)
