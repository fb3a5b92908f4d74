"""What each PTX instruction without memory, control or other threads gives: NumPy functions over all threads.

`rule` finds an opcode in the table at the end; what is not there, such as an instruction that approximates, flushes
subnormal numbers or leaves its rounding open, is unknown. Registers are bits; a `Rule` names the types under which it
reads its operands and writes its result. The meaning is that of NVIDIA's document of PTX, not of the library's own IR.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

__all__ = ["DTYPES", "GENERIC", "Rule", "rule"]

Function = Callable[..., np.ndarray]

DTYPES: dict[str, np.dtype] = {
    **{f"{kind}{bits}": np.dtype(f"{letter}{bits // 8}") for kind, letter in (("s", "i"), ("u", "u"), ("b", "u"))
       for bits in (8, 16, 32, 64)},
    "f16": np.dtype(np.float16), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64),
    "bf16": np.dtype(np.uint16), "pred": np.dtype(np.bool_),
}
GENERIC = {"global": 0, "const": 0, "shared": 1 << 60, "local": 1 << 61}  # where each space lies in the generic one


class Rule(NamedTuple):
    """A function, the types of its operands, and the type of its result."""

    function: Function
    sources: Sequence[str]
    result: str


# -- integers -----------------------------------------------------------------------------------------
def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(f"{x.dtype.kind}{2 * x.dtype.itemsize}")


def _mul_wide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return _wide(x) * _wide(y)


def _mul_hi(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    bits = 8 * x.dtype.itemsize
    if bits < 64:
        return (_mul_wide(x, y) >> bits).astype(x.dtype)
    a, b, half, low = x.view(np.uint64), y.view(np.uint64), np.uint64(32), np.uint64(0xFFFFFFFF)
    a1, a0, b1, b0 = a >> half, a & low, b >> half, b & low
    middle = a1 * b0 + ((a0 * b0) >> half)
    other = a0 * b1 + (middle & low)
    high = a1 * b1 + (middle >> half) + (other >> half)
    if x.dtype.kind == "i":
        high = high - np.where(x < 0, b, np.uint64(0)) - np.where(y < 0, a, np.uint64(0))
    return high.view(x.dtype)


def _div(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Rounded toward zero; by zero it gives ones, as the machines do."""
    if x.dtype.kind == "u":
        return np.where(y == 0, ~x.dtype.type(0), x // np.where(y == 0, y.dtype.type(1), y))
    safe = np.where((y == 0) | (y == -1), y.dtype.type(1), y)
    quotient = x // safe
    quotient = quotient + ((quotient * safe != x) & ((x < 0) != (safe < 0)))
    return np.where(y == 0, x.dtype.type(-1), np.where(y == -1, np.negative(x), quotient)).astype(x.dtype)


def _rem(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(y == 0, x, x - _div(x, y) * y)


def _shl(x: np.ndarray, count: np.ndarray) -> np.ndarray:
    bits = 8 * x.dtype.itemsize
    return np.where(count >= bits, x.dtype.type(0), x << (count & (bits - 1)).astype(x.dtype))


def _shr(x: np.ndarray, count: np.ndarray) -> np.ndarray:
    bits = 8 * x.dtype.itemsize
    most = x >> np.minimum(count, bits - 1).astype(x.dtype)
    return most if x.dtype.kind == "i" else np.where(count >= bits, x.dtype.type(0), most)


def _bfe(x: np.ndarray, position: np.ndarray, length: np.ndarray) -> np.ndarray:
    """A field, with its own sign (signed types) or zeros in all bits that the field or the source does not have."""
    bits, raw = 8 * x.dtype.itemsize, x.view(f"u{x.dtype.itemsize}")
    position, length = position & np.uint32(0xFF), length & np.uint32(0xFF)
    one, ones = raw.dtype.type(1), np.full_like(raw, ~raw.dtype.type(0))
    valid = ~_shl(ones, length) & _shr(ones, position)
    field = _shr(raw, position) & valid
    if x.dtype.kind == "i":
        last = np.minimum(position + np.maximum(length, 1) - 1, bits - 1).astype(np.uint32)
        negative = (length != 0) & (_shr(raw, last) & one != 0)
        field = np.where(negative, field | ~valid, field)
    return field.view(x.dtype)


def _bfi(a: np.ndarray, b: np.ndarray, position: np.ndarray, length: np.ndarray) -> np.ndarray:
    one = a.dtype.type(1)
    position, length = position & np.uint32(0xFF), length & np.uint32(0xFF)
    mask = _shl(np.where(length >= 8 * a.dtype.itemsize, ~a.dtype.type(0), _shl(np.broadcast_to(
        one, length.shape), length) - one), position)
    return (b & ~mask) | (_shl(a, position) & mask)


def _prmt(a: np.ndarray, b: np.ndarray, selector: np.ndarray) -> np.ndarray:
    both = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
    result = np.zeros(np.broadcast_shapes(both.shape, selector.shape), np.uint64)
    for n in range(4):
        choice = (selector >> np.uint32(4 * n)).astype(np.uint64)
        byte = (both >> ((choice & np.uint64(7)) * np.uint64(8))) & np.uint64(0xFF)
        signs = np.where(byte & np.uint64(0x80), np.uint64(0xFF), np.uint64(0))
        byte = np.where(choice & np.uint64(8), signs, byte)
        result |= byte << np.uint64(8 * n)
    return result.astype(np.uint32)


def _clz(x: np.ndarray) -> np.ndarray:
    bits = 8 * x.dtype.itemsize
    for shift in (1, 2, 4, 8, 16, 32)[:bits.bit_length() - 1]:
        x = x | (x >> x.dtype.type(shift))
    return np.bitwise_count(~x).astype(np.uint32)


def _brev(x: np.ndarray) -> np.ndarray:
    swapped = np.packbits(np.unpackbits(np.ascontiguousarray(x).view(np.uint8)).reshape(-1, 8)[:, ::-1], axis=1)
    return swapped.reshape(-1).view(x.dtype).byteswap()


def _funnel(direction: str, mode: str) -> Function:
    def shift(a: np.ndarray, b: np.ndarray, count: np.ndarray) -> np.ndarray:
        both = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
        by = (count & np.uint32(31) if mode == "wrap" else np.minimum(count, np.uint32(32))).astype(np.uint64)
        moved = both << by >> np.uint64(32) if direction == "l" else both >> by
        return moved.astype(np.uint32)
    return shift


def _lop3(a: np.ndarray, b: np.ndarray, c: np.ndarray, table: np.ndarray) -> np.ndarray:
    result, number = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), np.uint32), int(table[0])
    for n in range(8):
        if number >> n & 1:
            result |= (a if n & 4 else ~a) & (b if n & 2 else ~b) & (c if n & 1 else ~c)
    return result


def _dp4a(first: str, second: str) -> Function:
    def dot(a: np.ndarray, b: np.ndarray, total: np.ndarray) -> np.ndarray:
        for shift in (0, 8, 16, 24):
            parts = [(x >> np.uint32(shift)).astype(np.uint8).view(DTYPES[f"{kind[0]}8"]).astype(np.int32)
                     for x, kind in ((a, first), (b, second))]
            total = total + (parts[0] * parts[1]).view(np.uint32)
        return total
    return dot


# -- floats -------------------------------------------------------------------------------------------
def _widened(x: np.ndarray, kind: str) -> np.ndarray:
    return (x.astype(np.uint32) << np.uint32(16)).view(np.float32) if kind == "bf16" else x


def _odd_single(x: np.ndarray) -> np.ndarray:
    """float32 toward zero of float64, with the last bit set where it is not exact: rounds once more without harm."""
    near = x.astype(np.float32)
    bits = near.view(np.uint32) - (np.abs(near.astype(np.float64)) > np.abs(x)).astype(np.uint32)
    lost = np.isfinite(x) & (bits.view(np.float32).astype(np.float64) != x)
    return (bits | lost.astype(np.uint32)).view(np.float32)


def _narrowed(x: np.ndarray, kind: str) -> np.ndarray:
    """A float of a narrower type, rounded to nearest, ties to even."""
    if kind != "bf16":
        return x.astype(DTYPES[kind])
    bits = (_odd_single(x) if x.dtype == np.float64 else x.astype(np.float32)).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(x), np.uint16(0x7FFF), rounded.astype(np.uint16))


def _arithmetic(function: Function, kind: str) -> Function:
    if kind != "bf16":
        return function
    return lambda *args: _narrowed(function(*[_widened(a, kind) for a in args]), kind)


_LOOP = """
define void @fma_{t}({t}* %a, i64 %as, {t}* %b, i64 %bs, {t}* %c, i64 %cs, {t}* %out, i64 %n) {{
entry: br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %ai = mul i64 %i, %as
  %bi = mul i64 %i, %bs
  %ci = mul i64 %i, %cs
  %ap = getelementptr {t}, {t}* %a, i64 %ai
  %bp = getelementptr {t}, {t}* %b, i64 %bi
  %cp = getelementptr {t}, {t}* %c, i64 %ci
  %op = getelementptr {t}, {t}* %out, i64 %i
  %av = load {t}, {t}* %ap
  %bv = load {t}, {t}* %bp
  %cv = load {t}, {t}* %cp
  %r = call {t} @llvm.fma.{s}({t} %av, {t} %bv, {t} %cv)
  store {t} %r, {t}* %op
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end
end: ret void
}}
declare {t} @llvm.fma.{s}({t}, {t}, {t})
"""


class _Fma:
    """The processor's own fused multiply-add (or that of its C library), over arrays: NumPy has none."""

    def __init__(self) -> None:
        from llvmlite import binding
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        pointer = "ptr" if binding.llvm_version_info[0] >= 17 else "{t}*"
        loop = _LOOP.replace("{t}*", pointer)
        text = "".join(loop.format(t=t, s=s) for t, s in (("float", "f32"), ("double", "f64")))
        machine = binding.Target.from_default_triple().create_target_machine(
            cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=2)
        self.engine = binding.create_mcjit_compiler(binding.parse_assembly(text), machine)
        self.engine.finalize_object()
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p, ctypes.c_int64] * 4)
        self.calls = {np.dtype(d): kind(self.engine.get_function_address(f"fma_{t}"))
                      for d, t in ((np.float32, "float"), (np.float64, "double"))}

    def __call__(self, *args: np.ndarray) -> np.ndarray:
        count = max(len(a) for a in args)
        args = tuple(np.ascontiguousarray(a) for a in args)
        out = np.empty(count, args[0].dtype)
        words = [w for a in args for w in (a.ctypes.data, int(len(a) > 1))]
        if count:
            self.calls[out.dtype](*words, out.ctypes.data, count)
        return out


@cache
def _compiled_fma() -> _Fma:
    return _Fma()


def _fma(kind: str) -> Function:
    if kind in ("f32", "f64"):
        return lambda a, b, c: _compiled_fma()(a, b, c)

    def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        """The product of two such floats is exact in float64; the sum is rounded to odd, then once."""
        x, y, z = (_widened(v, kind).astype(np.float64) for v in (a, b, c))
        product = x * y
        total = product + z
        part = total - product
        error = (product - (total - part)) + (z - part)
        even = (total.view(np.int64) & 1) == 0
        move = np.isfinite(total) & (error != 0) & even
        return _narrowed(np.where(move, np.nextafter(total, np.copysign(np.inf, error)), total), kind)
    return fused


def _least(kind: str, nan: bool, most: bool) -> Function:
    """min or max: a NaN gives way to a number, or not; -0 is less than 0."""
    def choose(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        x, y = _widened(a, kind), _widened(b, kind)
        first = (x > y) | ((x == y) & ~np.signbit(x)) if most else (x < y) | ((x == y) & np.signbit(x))
        missing = np.isnan(x) & ~np.isnan(y)
        if nan:
            return np.where(first | np.isnan(x), a, b)
        return np.where((first | np.isnan(y)) & ~missing, a, b)
    return choose


def _sign(kind: str) -> Any:
    """The bit of the sign, of the unsigned type of the same size."""
    dtype = np.dtype(f"u{DTYPES[kind].itemsize}").type
    return dtype(1) << dtype(8 * DTYPES[kind].itemsize - 1)


def _testp(what: str, kind: str) -> Function:
    tiny = np.finfo(DTYPES[kind]).smallest_normal
    tests: dict[str, Function] = {
        "finite": np.isfinite, "infinite": np.isinf, "number": lambda x: ~np.isnan(x), "notanumber": np.isnan,
        "normal": lambda x: np.isfinite(x) & (np.abs(x) >= tiny),
        "subnormal": lambda x: (np.abs(x) < tiny) & (x != 0)}
    return tests[what]


# -- comparisons --------------------------------------------------------------------------------------
_ORDERED = {"eq": np.equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
_UNSIGNED = {"lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal}


def _comparison(what: str, kind: str) -> Function:
    if "f" not in kind:
        return {**_ORDERED, **_UNSIGNED, "ne": np.not_equal}[what]

    def unordered(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.isnan(a) | np.isnan(b)

    def compare(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        x, y = _widened(a, kind), _widened(b, kind)
        if what in ("nan", "num"):
            return unordered(x, y) == (what == "nan")
        if what == "ne":
            return (x != y) & ~unordered(x, y)
        if what == "neu":
            return x != y
        return _ORDERED[what](x, y) if what in _ORDERED else _ORDERED[what[:-1]](x, y) | unordered(x, y)
    return compare


# -- conversion ---------------------------------------------------------------------------------------
_WHOLE: dict[str, Function] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _to_integer(x: np.ndarray, source: str, out: np.dtype, rounding: str) -> np.ndarray:
    """What lies outside of the range becomes its end; what NaN becomes depends on the types."""
    whole, info = _WHOLE[rounding](_widened(x, source).astype(np.float64)), np.iinfo(out)
    above, below, nan = whole >= 2.0 ** (info.bits - (out.kind == "i")), whole < float(info.min), np.isnan(whole)
    result = np.where(above | below | nan, 0.0, whole).astype(out)
    result = np.where(above, out.type(info.max), np.where(below, out.type(info.min), result))
    bits = 0 if source != "f64" and info.bits < 64 else 1 << info.bits - 1
    return np.where(nan, np.array([bits], f"u{out.itemsize}").view(out), result)


def _directed(near: np.ndarray, x: np.ndarray, rounding: str) -> np.ndarray:
    """A nearest float, moved to the neighbour that another rounding of `x` gives."""
    exact, found = x.astype(np.longdouble), near.astype(np.longdouble)
    if rounding == "rz":
        return np.where(np.abs(found) > np.abs(exact), np.nextafter(near, near.dtype.type(0)), near)
    if rounding == "rm":
        return np.where(found > exact, np.nextafter(near, near.dtype.type(-np.inf)), near)
    if rounding == "rp":
        return np.where(found < exact, np.nextafter(near, near.dtype.type(np.inf)), near)
    return near


def _to_float(x: np.ndarray, source: str, result: str, rounding: str) -> np.ndarray:
    x = _widened(x, source)
    if x.dtype.kind in "iu" and result in ("f16", "bf16"):  # beyond what fits, all are infinite; then it is exact
        x = np.clip(x, -(1 << 50) if x.dtype.itemsize == 8 and x.dtype.kind == "i" else None,
                    1 << 50 if x.dtype.itemsize == 8 else None).astype(np.float64)
    if rounding in _WHOLE:
        x = _WHOLE[rounding](x)
    elif rounding not in ("", "rn") and result != "bf16":
        return _directed(x.astype(DTYPES[result]), x, rounding)
    return _narrowed(x, result)


def _conversion(rounding: str, sat: bool, result: str, source: str) -> Function:
    out = DTYPES[result]

    def integers(x: np.ndarray) -> np.ndarray:
        if sat:
            info, own = np.iinfo(out), np.iinfo(x.dtype)
            x = np.clip(x, max(info.min, own.min), min(info.max, own.max))
        return x.astype(out)

    def floats(x: np.ndarray) -> np.ndarray:
        y = _to_float(x, source, result, rounding)
        return np.where(np.isnan(y), out.type(0), np.clip(y, out.type(0), out.type(1))) if sat else y

    if "f" in result:
        return floats
    return (lambda x: _to_integer(x, source, out, rounding)) if "f" in source else integers


# -- the table ----------------------------------------------------------------------------------------
_INT, _BITS, _FLOAT = r"([su](?:16|32|64))", r"(b16|b32|b64)", r"(f16|bf16|f32|f64)"
_ANY = r"([subf](?:8|16|32|64)|bf16)"


def _same(function: Function, count: int) -> Callable[..., Rule]:
    return lambda kind: Rule(function, [kind] * count, kind)


def _unsigned(function: Function, count: int) -> Callable[..., Rule]:
    """Of functions that give the same bits for signed and unsigned numbers."""
    return lambda kind: Rule(function, [f"u{kind[1:]}"] * count, f"u{kind[1:]}")


def _logic(name: str, kind: str) -> Rule:
    function = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[name]
    return Rule(function, [kind] * 2, kind)


def _mad(half: str, kind: str) -> Rule:
    wide = f"{kind[0]}{2 * int(kind[1:])}" if half == "wide" else kind
    products: dict[str, Function] = {"lo": np.multiply, "hi": _mul_hi, "wide": _mul_wide}
    product = products[half]
    return Rule(lambda a, b, c: product(a, b) + c, [kind, kind, wide], wide)


def _setp(what: str, join: str | None, kind: str) -> Rule:
    compare = _comparison(what, kind)
    if join is None:
        return Rule(compare, [kind] * 2, "pred")
    combine = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[join]
    return Rule(lambda a, b, c: combine(compare(a, b), c), [kind, kind, "pred"], "pred")


def _float(name: str, kind: str) -> Rule:
    function = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[name]
    return Rule(_arithmetic(function, kind), [kind] * 2, kind)


def _mixed(name: str, kind: str) -> Rule:
    """A sum of a narrow float and a float32, which newer GPUs have."""
    function = {"add": np.add, "sub": np.subtract}[name]
    return Rule(lambda a, b: function(_single(a, kind), b), [kind, "f32"], "f32")


def _mixed_fma(kind: str) -> Rule:
    return Rule(lambda a, b, c: _compiled_fma()(_single(a, kind), _single(b, kind), c), [kind, kind, "f32"], "f32")


def _single(x: np.ndarray, kind: str) -> np.ndarray:
    return _widened(x, kind).astype(np.float32)


def _signs(name: str, kind: str) -> Rule:
    sign, bits = _sign(kind), f"b{8 * DTYPES[kind].itemsize}"
    return Rule((lambda x: x ^ sign) if name == "neg" else (lambda x: x & ~sign), [bits], bits)


def _copysign(kind: str) -> Rule:
    sign, bits = _sign(kind), f"b{kind[1:]}"
    return Rule(lambda a, b: (a & sign) | (b & ~sign), [bits] * 2, bits)


def _cvta(to: str | None, space: str) -> Rule:
    base = np.uint64(GENERIC[space])
    return Rule((lambda x: x - base) if to else (lambda x: x + base), ["u64"], "u64")


def _select(a: np.ndarray, b: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    return np.where(chosen, a, b)


def _integer_extreme(name: str, kind: str) -> Rule:
    function: Function = np.minimum if name == "min" else np.maximum
    return Rule(function, [kind] * 2, kind)


_TABLE: list[tuple[str, Callable[..., Rule]]] = [
    (r"mov\.([subf](?:16|32|64)|pred)", _same(lambda x: x, 1)),
    (rf"add\.{_INT}", _unsigned(np.add, 2)),
    (rf"sub\.{_INT}", _unsigned(np.subtract, 2)),
    (rf"mul\.lo\.{_INT}", _unsigned(np.multiply, 2)),
    (rf"mul\.hi\.{_INT}", _same(_mul_hi, 2)),
    (r"mul\.wide\.([su](?:16|32))", lambda t: Rule(_mul_wide, [t] * 2, f"{t[0]}{2 * int(t[1:])}")),
    (rf"mad\.(lo|hi)\.{_INT}", _mad),
    (r"mad\.(wide)\.([su](?:16|32))", _mad),
    (rf"div\.{_INT}", _same(_div, 2)),
    (rf"rem\.{_INT}", _same(_rem, 2)),
    (r"neg\.(s16|s32|s64)", _unsigned(np.negative, 1)),
    (r"abs\.(s16|s32|s64)", _same(np.absolute, 1)),
    (rf"(min|max)\.{_INT}", _integer_extreme),
    (r"(and|or|xor)\.(b16|b32|b64|pred)", _logic),
    (r"not\.(b16|b32|b64|pred)", _same(np.invert, 1)),
    (rf"cnot\.{_BITS}", lambda t: Rule(lambda x: (x == 0).astype(x.dtype), [t], t)),
    (rf"shl\.{_BITS}", lambda t: Rule(_shl, [t, "u32"], t)),
    (r"shr\.([sub](?:16|32|64))", lambda t: Rule(_shr, [t, "u32"], t)),
    (r"bfe\.([su](?:32|64))", lambda t: Rule(_bfe, [t, "u32", "u32"], t)),
    (r"bfi\.(b32|b64)", lambda t: Rule(_bfi, [t, t, "u32", "u32"], t)),
    (r"prmt\.b32", lambda: Rule(_prmt, ["b32"] * 3, "b32")),
    (r"popc\.(b32|b64)", lambda t: Rule(lambda x: np.bitwise_count(x).astype(np.uint32), [t], "u32")),
    (r"clz\.(b32|b64)", lambda t: Rule(_clz, [t], "u32")),
    (r"brev\.(b32|b64)", _same(_brev, 1)),
    (r"shf\.(l|r)\.(wrap|clamp)\.b32", lambda side, mode: Rule(_funnel(side, mode), ["b32"] * 3, "b32")),
    (r"lop3\.b32", lambda: Rule(_lop3, ["b32"] * 4, "b32")),
    (r"dp4a\.([su]32)\.([su]32)", lambda a, b: Rule(_dp4a(a, b), ["b32"] * 3, "b32")),
    (r"selp\.([subf](?:16|32|64))", lambda t: Rule(_select, [t, t, "pred"], t)),
    (rf"setp\.(\w+)(?:\.(and|or|xor))?\.{_ANY}", _setp),
    (rf"(add|sub|mul)\.rn\.{_FLOAT}", _float),
    (r"(div)\.rn\.(f32|f64)", _float),
    (r"(add|sub)\.rn\.f32\.(f16|bf16)", _mixed),
    (r"fma\.rn\.f32\.(f16|bf16)", _mixed_fma),
    (rf"fma\.rn\.{_FLOAT}", lambda t: Rule(_fma(t), [t] * 3, t)),
    (r"sqrt\.rn\.(f32|f64)", _same(np.sqrt, 1)),
    (r"rcp\.rn\.(f32|f64)", _same(np.reciprocal, 1)),
    (rf"(neg|abs)\.{_FLOAT}", _signs),
    (rf"(min|max)(\.NaN)?\.{_FLOAT}", lambda name, nan, t: Rule(_least(t, bool(nan), name == "max"), [t] * 2, t)),
    (r"copysign\.(f32|f64)", _copysign),
    (r"testp\.(\w+)\.(f32|f64)", lambda what, t: Rule(_testp(what, t), [t], "pred")),
    (rf"cvt(?:\.(rn|rz|rm|rp|rni|rzi|rmi|rpi))?(\.sat)?\.{_ANY}\.{_ANY}",
     lambda rounding, sat, to, of: Rule(_conversion(rounding or "", bool(sat), to, of), [of], to)),
    (r"cvta(\.to)?\.(global|const|shared|local)\.u64", _cvta),
]


@lru_cache(maxsize=4096)
def rule(opcode: str) -> Rule | None:
    """The rule of an opcode, if it is in the table."""
    for pattern, make in _TABLE:
        found = re.fullmatch(pattern, opcode)
        if found is not None:
            return make(*found.groups())
    return None
