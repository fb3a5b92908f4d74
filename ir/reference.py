"""The NumPy handler of scalar bodies: the oracle that kernels are tested against.

`evaluate` interprets every instruction over whole arrays and gives, bit for bit, what the hardware
instruction gives (NaN payloads and signs aside: IEEE 754 leaves them open). float32 values are
computed in float32. The two instructions that NumPy lacks are built here from exact steps:

* `fma`. float32: the product is exact in float64; the float64 sum is rounded to odd, after which
  rounding to float32 is the only rounding (Boldo & Melquiond, "Emulation of a FMA and correctly
  rounded sums", IEEE Trans. Computers 57, 2008). float64: the same paper's algorithm from
  error-free products and sums, where neither overflow nor underflow can touch an intermediate;
  elsewhere exact rational arithmetic.
* `mulhi`. The double-width product, for uint64 from 32-bit halves.

This module owns the meaning of the instructions in NumPy; loops and memory are `codegen/loop.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .scalar import Instr, ScalarFunction

__all__ = ["apply", "checks", "evaluate", "operation"]


def evaluate(fn: ScalarFunction, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Apply a scalar body to every element of the broadcast operands.

    Args:
        fn: a recorded body.
        *arrays: one array per parameter, of that parameter's dtype (16-bit floats are given as float32).
    Returns:
        One array per result, of the broadcast shape.
    Raises:
        TypeError: the number of operands or an operand's dtype is not the body's.

    >>> from twofold.ir import dtypes, scalar
    >>> double = scalar.build(lambda s, x: s.add(x, x), (dtypes.float32,))
    >>> evaluate(double, np.array([1, 2], np.float32))[0].tolist()
    [2.0, 4.0]
    """
    env, shape = _run(fn, arrays)
    return tuple(np.array(np.broadcast_to(env[r.id], shape)) for r in fn.results)


def checks(fn: ScalarFunction, *arrays: np.ndarray) -> list[tuple[np.ndarray, str]]:
    """For each check of the body: the elements where it holds, and its code."""
    env, shape = _run(fn, arrays)
    return [(np.broadcast_to(env[cond.id], shape), code) for cond, code in fn.checks]


def _run(fn: ScalarFunction, arrays: tuple[np.ndarray, ...]) -> tuple[dict[int, np.ndarray], tuple[int, ...]]:
    env, shape = _bind(fn, arrays)
    with np.errstate(all="ignore"):
        for instr in fn.instrs:
            env[instr.out.id] = apply(instr, env)
    return env, shape


def _bind(fn: ScalarFunction, arrays: tuple[np.ndarray, ...]) -> tuple[dict[int, np.ndarray], tuple[int, ...]]:
    if len(arrays) != len(fn.params):
        raise TypeError(f"{fn.name}: expected {len(fn.params)} operands, got {len(arrays)}")
    values = [np.asarray(a) for a in arrays]
    for param, value in zip(fn.params, values, strict=True):
        if value.dtype != param.dtype.np:
            raise TypeError(f"{fn.name}: expected an operand of {param.dtype.name}, got {value.dtype}")
    shape = np.broadcast_shapes(*(v.shape for v in values))
    return {p.id: v for p, v in zip(fn.params, values, strict=True)}, shape


def operation(instr: Instr) -> Callable[..., np.ndarray]:
    """What an instruction makes of the arrays that are its operands, for who runs it many times."""
    out = instr.out.dtype.np
    if instr.op == "const":
        value = np.asarray(instr.const, out)
        return lambda: value
    convert = _CONVERSIONS.get(instr.op)
    if convert is not None:
        return lambda *args: np.asarray(convert(args, out), out)
    handler = _HANDLERS[instr.op]
    return lambda *args: np.asarray(handler(*args), out)


def apply(instr: Instr, env: dict[int, np.ndarray]) -> np.ndarray:
    """The result of one instruction; `env` has the values of its operands by their numbers."""
    return operation(instr)(*[env[a.id] for a in instr.args])


# -- integers -----------------------------------------------------------------------------------------
def _safe_divisor(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`y` with 1 where x/y would trap, and where that is."""
    trap = y == 0
    if x.dtype.kind == "i":
        trap = trap | ((y == -1) & (x == np.iinfo(x.dtype).min))
    return np.where(trap, y.dtype.type(1), y), trap


def _idiv(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    safe, _ = _safe_divisor(x, y)
    quotient = x // safe
    if x.dtype.kind == "i":  # from floor to truncation
        quotient = quotient + ((quotient * safe != x) & ((x < 0) != (safe < 0))).astype(x.dtype)
    return np.where(y == 0, x.dtype.type(0), quotient)


def _irem(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    safe, trap = _safe_divisor(x, y)
    return np.where(trap, x.dtype.type(0), np.fmod(x, safe))


def _shift(ufunc: np.ufunc) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    def apply(x: np.ndarray, count: np.ndarray) -> np.ndarray:
        return ufunc(x, count & count.dtype.type(8 * x.dtype.itemsize - 1))
    return apply


def _mulhi(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype == np.uint32:
        return ((x.astype(np.uint64) * y.astype(np.uint64)) >> np.uint64(32)).astype(np.uint32)
    if x.dtype != np.uint64:
        raise TypeError(f"mulhi: expected uint32 or uint64, got {x.dtype}")
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    x1, x0, y1, y0 = x >> half, x & low, y >> half, y & low
    middle = x1 * y0 + ((x0 * y0) >> half)
    other = x0 * y1 + (middle & low)
    return x1 * y1 + (middle >> half) + (other >> half)


# -- conversion ---------------------------------------------------------------------------------------
def _cast(args: tuple[np.ndarray, ...], out: np.dtype) -> np.ndarray:
    (x,) = args
    if x.dtype.kind != "f" or out.kind not in "iu":
        return x.astype(out)
    info = np.iinfo(out)
    whole = np.trunc(x)
    # 2**bits is exact in every float type, where max itself may not be
    above = whole >= np.asarray(2.0 ** (info.bits - (out.kind == "i")), x.dtype)
    below = whole < np.asarray(float(info.min), x.dtype)
    inside = np.where(above | below | np.isnan(x), x.dtype.type(0), whole).astype(out)
    return np.where(above, out.type(info.max), np.where(below, out.type(info.min), inside))


def _bitcast(args: tuple[np.ndarray, ...], out: np.dtype) -> np.ndarray:
    return np.ascontiguousarray(args[0]).reshape(args[0].shape).view(out)


def _complex(args: tuple[np.ndarray, ...], out: np.dtype) -> np.ndarray:
    re, im = np.broadcast_arrays(*args)
    result = np.empty(re.shape, out)  # re + 1j*im would turn an infinite part into NaN
    result.real, result.imag = re, im
    return result


# -- fused multiply-add -------------------------------------------------------------------------------
_LEAST_NORMAL = np.finfo(np.float32).smallest_normal


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a + b and its rounding error, exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a * b and its rounding error, exactly, for float64 (Dekker's product, Veltkamp's split)."""
    a_hi, a_lo = _split(a)
    b_hi, b_lo = _split(b)
    product = a * b
    return product, a_lo * b_lo - (((product - a_hi * b_hi) - a_lo * b_hi) - a_hi * b_lo)


def _split(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaled = a * np.float64(134217729.0)  # 2**27 + 1
    high = scaled - (scaled - a)
    return high, a - high


def _odd_sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a + b in float64; where that is inexact, of the two neighbours the one with an odd significand."""
    total, error = _two_sum(a, b)
    total = np.asarray(total)
    even = (total.view(np.int64) & 1) == 0
    move = np.isfinite(total) & (error != 0) & even
    return np.where(move, np.nextafter(total, np.copysign(np.inf, error)), total)


def _fma(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    if x.dtype != np.float32:
        return _fma64(*np.broadcast_arrays(x, y, z))
    product, other = np.multiply(x, y, dtype=np.float64), np.asarray(z, np.float64)
    total = np.asarray(product + other)
    # Rounding twice goes wrong only where the first result is in the middle between two numbers of float32: where the
    # bits that the second takes away are 1000...; subnormal numbers lose more bits, and are looked at as a whole.
    middle = (total.view(np.int64) & 0x1FFFFFFF) == 0x10000000
    small = np.abs(total) < _LEAST_NORMAL
    if np.count_nonzero(small):
        middle |= small & (total != 0)
    if np.count_nonzero(middle):
        total = _odd_sum(product, other)
    return total.astype(np.float32)


def add_pairs(x: np.ndarray, y: np.ndarray, total: np.ndarray) -> np.ndarray:
    """`add_pairs` of the loop IR (`codegen/statements.py`), of float32 arrays."""
    def flushed(v: np.ndarray) -> np.ndarray:
        return np.where(np.abs(v) < _LEAST_NORMAL, np.copysign(np.float32(0), v), v)

    def halves(v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        bits = np.ascontiguousarray(v).view(np.uint32)
        high, low = bits & np.uint32(0xFFFF0000), bits << np.uint32(16)
        return flushed(high.view(np.float32)), flushed(low.view(np.float32))

    for a, b in zip(halves(x), halves(y), strict=True):
        total = flushed(_fma(a, b, flushed(total)))
    return total


def add_quads(x: np.ndarray, y: np.ndarray, total: np.ndarray) -> np.ndarray:
    """`add_quads` of the loop IR (`codegen/statements.py`), of int32 arrays."""
    for place in (0, 8, 16, 24):
        total = total + (x >> place & 0xFF) * (y << 24 - place >> 24)
    return total


def _fma64(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    product = x * y
    high, low = _two_product(x, y)
    mid, mid_low = _two_sum(z, low)
    top, top_low = _two_sum(high, mid)
    result = np.asarray(top + _odd_sum(mid_low, top_low))
    # An exact zero has the sign that the plain sum gives; so have NaN and infinity.
    plain = product + z
    special = ~(np.isfinite(x) & np.isfinite(y) & np.isfinite(z)) | (x == 0) | (y == 0)
    result = np.where(special | ((result == 0) & (plain == 0)), plain, result)
    unsafe = ~special & ~_comfortable(x, y, z)
    if unsafe.any():
        triples = zip(x[unsafe].tolist(), y[unsafe].tolist(), z[unsafe].tolist(), strict=True)
        result[unsafe] = [_fma_exact(*t) for t in triples]
    return result


def _comfortable(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Where every intermediate of the error-free algorithm is far from overflow and underflow."""
    product, size = np.abs(x * y), np.abs(z)
    def within(v: np.ndarray, low: int, high: int) -> np.ndarray:
        return (v > 2.0**low) & (v < 2.0**high)
    return (within(np.abs(x), -1000, 990) & within(np.abs(y), -1000, 990) & within(product, -800, 1000)
            & ((size == 0) | within(size, -800, 1000)))


def _fma_exact(x: float, y: float, z: float) -> float:
    from fractions import Fraction
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        # x*y is not zero here, so z is not either and the sum is an exact cancellation
        return 0.0
    try:
        return exact.numerator / exact.denominator  # integer division in Python rounds correctly
    except OverflowError:
        return np.inf if exact > 0 else -np.inf


_HANDLERS: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "idiv": _idiv, "irem": _irem,
    "neg": np.negative, "abs": np.absolute,
    "fma": _fma, "sqrt": np.sqrt,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "copysign": np.copysign,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.bitwise_not,
    "shl": _shift(np.left_shift), "shr": _shift(np.right_shift), "mulhi": _mulhi,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "select": np.where,
    "real": np.real, "imag": np.imag,
}
_CONVERSIONS: dict[str, Callable[[tuple[np.ndarray, ...], np.dtype], np.ndarray]] = {
    "cast": _cast, "bitcast": _bitcast, "complex": _complex,
}
