"""The instructions of scalar bodies, typed SSA values, and the builder that records them.

Rounding is the instruction's own: nothing here is contracted or reassociated, and a fused multiply-add happens only
where a body says `fma`. A value is bool, an integer, float32, float64 or complex. The 16-bit floats exist in memory
only: a load gives float32, a store rounds once (`DType.compute`).

Mathematical functions are made of these (`ir/math_*.py`); what bodies of ops are, and how they are recorded, is
`ir/scalar.py`'s affair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from . import dtypes as dt
from .data_class import data_class, field
from .dtypes import DType

__all__ = ["INSTRUCTIONS", "Scalar", "ScalarLike", "Instr", "InstructionBuilder"]

# name -> (operand count, kind of result): "same" as the operands, "bool", or "given" by the instruction.
INSTRUCTIONS = {
    "const": (0, "given"),
    "add": (2, "same"), "sub": (2, "same"), "mul": (2, "same"),
    "div": (2, "same"),        # floats only
    "idiv": (2, "same"),       # integers: toward zero; x/0 is 0 and min/-1 is min, never a trap
    "irem": (2, "same"),       # integers: sign of the dividend; x%0 is 0
    "neg": (1, "same"), "abs": (1, "same"),
    "fma": (3, "same"),        # floats only, one rounding
    "sqrt": (1, "same"),       # correctly rounded
    "floor": (1, "same"), "ceil": (1, "same"), "trunc": (1, "same"), "rint": (1, "same"),
    "copysign": (2, "same"),
    "and": (2, "same"), "or": (2, "same"), "xor": (2, "same"), "not": (1, "same"),  # bool and integers
    "shl": (2, "same"), "shr": (2, "same"),  # count taken modulo the width; shr keeps the sign of signed
    "mulhi": (2, "same"),      # high half of the product, uint32 and uint64
    "eq": (2, "bool"), "ne": (2, "bool"), "lt": (2, "bool"), "le": (2, "bool"), "gt": (2, "bool"), "ge": (2, "bool"),
    "select": (3, "select"),   # (bool, T, T) -> T
    "cast": (1, "given"),      # value conversion; float to integer truncates and saturates, NaN gives 0
    "bitcast": (1, "given"),   # same width
    "complex": (2, "given"), "real": (1, "given"), "imag": (1, "given"),
}
_INT64 = 1 << 63


@data_class(eq=False)
class Scalar:
    """One SSA value of a scalar body; Python operators record instructions.

    In loop IR it may stand for several lanes, on which instructions act each by itself (`codegen/value_types.py`).
    """

    builder: InstructionBuilder = field(repr=False)
    id: int
    dtype: DType

    def __add__(self, o: ScalarLike) -> Scalar:
        return self.builder.add(self, o)

    def __radd__(self, o: ScalarLike) -> Scalar:
        return self.builder.add(o, self)

    def __sub__(self, o: ScalarLike) -> Scalar:
        return self.builder.sub(self, o)

    def __rsub__(self, o: ScalarLike) -> Scalar:
        return self.builder.sub(o, self)

    def __mul__(self, o: ScalarLike) -> Scalar:
        return self.builder.mul(self, o)

    def __rmul__(self, o: ScalarLike) -> Scalar:
        return self.builder.mul(o, self)

    def __truediv__(self, o: ScalarLike) -> Scalar:
        return self.builder.div(self, o)

    def __rtruediv__(self, o: ScalarLike) -> Scalar:
        return self.builder.div(o, self)

    def __neg__(self) -> Scalar:
        return self.builder.neg(self)

    def __and__(self, o: ScalarLike) -> Scalar:
        return self.builder.and_(self, o)

    def __or__(self, o: ScalarLike) -> Scalar:
        return self.builder.or_(self, o)

    def __xor__(self, o: ScalarLike) -> Scalar:
        return self.builder.xor(self, o)

    def __invert__(self) -> Scalar:
        return self.builder.not_(self)

    def __lshift__(self, o: ScalarLike) -> Scalar:
        return self.builder.shl(self, o)

    def __rshift__(self, o: ScalarLike) -> Scalar:
        return self.builder.shr(self, o)

    def __lt__(self, o: ScalarLike) -> Scalar:
        return self.builder.lt(self, o)

    def __le__(self, o: ScalarLike) -> Scalar:
        return self.builder.le(self, o)

    def __gt__(self, o: ScalarLike) -> Scalar:
        return self.builder.gt(self, o)

    def __ge__(self, o: ScalarLike) -> Scalar:
        return self.builder.ge(self, o)

    def __bool__(self) -> bool:
        raise TypeError("a scalar body cannot branch on a value: use s.select")


ScalarLike: TypeAlias = Scalar | complex  # or a Python number, which stands for a constant
Immediate: TypeAlias = Any  # a number, a sequence of lanes or None: the instruction tells which


@data_class(eq=False)
class Instr:
    """`out = op args`, with what it says beside its operands: the number of a constant, or the lanes of a shuffle."""

    op: str
    args: tuple[Scalar, ...]
    out: Scalar
    const: Immediate = None


class InstructionBuilder:
    """Records instructions; equal pure instructions are recorded once."""

    def __init__(self) -> None:
        self.instrs: list[Instr] = []
        self.checks: list[tuple[Scalar, str]] = []
        self._memo: dict[tuple[object, ...], Scalar] = {}
        self._parts: dict[int, tuple[Scalar, Scalar]] = {}
        self._next = 0

    # -- values -----------------------------------------------------------------------------------
    def new(self, dtype: DType) -> Scalar:
        """A fresh value with no instruction: a parameter, a loop index or a load."""
        value = Scalar(self, self._next, dtype)
        self._next += 1
        return value

    def const(self, value: complex, dtype: DType) -> Scalar:
        """The constant `value` of type `dtype` (rounded to it once, here)."""
        dtype = dtype.compute
        if dtype is dt.int64 and type(value) is int and -_INT64 <= value < _INT64:  # most of all
            return self._emit("const", (), dtype, value)
        if dtype.is_complex:
            value = complex(value)
            return self.complex(self.const(value.real, dtype.real_dtype), self.const(value.imag, dtype.real_dtype))
        value = dtype.np.type(value).item()
        return self._emit("const", (), dtype, value)

    def coerce(self, value: ScalarLike, dtype: DType) -> Scalar:
        """`value` itself, or a Python number as a constant of `dtype`."""
        return value if isinstance(value, Scalar) else self.const(value, dtype)

    def _pair(self, x: ScalarLike, y: ScalarLike) -> tuple[Scalar, Scalar]:
        """Two operands of which one is a value of the body, and the other perhaps a number."""
        like = x if isinstance(x, Scalar) else y
        if not isinstance(like, Scalar):
            raise TypeError("one operand must be a value of the body")
        return self.coerce(x, like.dtype), self.coerce(y, like.dtype)

    def _emit(self, op: str, args: tuple[Scalar, ...], dtype: DType, const: Immediate = None) -> Scalar:
        # repr tells 0.0 from -0.0 and keeps NaN equal to itself, which a dictionary of floats does not.
        key = (op, tuple([a.id for a in args]), id(dtype), repr(const) if op == "const" else const)
        recorded = self._memo.get(key)
        if recorded is not None:
            return recorded
        out = self.new(dtype)
        self._append(Instr(op, args, out, const))
        self._memo[key] = out
        return out

    def _append(self, instr: Instr) -> None:
        self.instrs.append(instr)

    def _binary(self, op: str, x: ScalarLike, y: ScalarLike, result: DType | None = None) -> Scalar:
        like = x if isinstance(x, Scalar) else y
        if not isinstance(like, Scalar):
            raise _of_numbers(op)
        x, y = self.coerce(x, like.dtype), self.coerce(y, like.dtype)
        if x.dtype is not y.dtype:
            raise TypeError(f"{op}: operands are {x.dtype.short} and {y.dtype.short}; cast one of them")
        return self._emit(op, (x, y), result or x.dtype)

    # -- arithmetic -------------------------------------------------------------------------------
    def add(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        return self._arithmetic("add", _complex_add, x, y)

    def sub(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        return self._arithmetic("sub", _complex_sub, x, y)

    def mul(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        return self._arithmetic("mul", _complex_mul, x, y)

    def div(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        """Floating or complex division. Integers have `idiv`, so that rounding is always spelt out."""
        return self._arithmetic("div", _complex_div, x, y)

    def _arithmetic(self, op: str, rule: Callable[..., Scalar], x: ScalarLike, y: ScalarLike,
                    result: DType | None = None) -> Scalar:
        """One instruction, or for complex operands real ones, so that every backend rounds alike."""
        like = x if isinstance(x, Scalar) else y
        if not isinstance(like, Scalar):
            raise _of_numbers(op)
        if not like.dtype.is_complex:
            return self._binary(op, x, y, result)
        x, y = self.coerce(x, like.dtype), self.coerce(y, like.dtype)
        return rule(self, self.real(x), self.imag(x), self.real(y), self.imag(y))

    def idiv(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        return self._binary("idiv", x, y)

    def irem(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        return self._binary("irem", x, y)

    def neg(self, x: Scalar) -> Scalar:
        if x.dtype.is_complex:
            return self.complex(self.neg(self.real(x)), self.neg(self.imag(x)))
        return self._emit("neg", (x,), x.dtype)

    def abs(self, x: Scalar) -> Scalar:
        """Magnitude of a real value; the most negative integer stays itself."""
        return self._emit("abs", (x,), x.dtype)

    def fma(self, x: ScalarLike, y: ScalarLike, z: ScalarLike) -> Scalar:
        """x*y + z with one rounding."""
        like = next(v for v in (x, y, z) if isinstance(v, Scalar))
        args = tuple([self.coerce(v, like.dtype) for v in (x, y, z)])
        return self._emit("fma", args, like.dtype)

    def sqrt(self, x: Scalar) -> Scalar:
        return self._emit("sqrt", (x,), x.dtype)

    def floor(self, x: Scalar) -> Scalar:
        return self._emit("floor", (x,), x.dtype)

    def ceil(self, x: Scalar) -> Scalar:
        return self._emit("ceil", (x,), x.dtype)

    def trunc(self, x: Scalar) -> Scalar:
        return self._emit("trunc", (x,), x.dtype)

    def rint(self, x: Scalar) -> Scalar:
        """Nearest integer, ties to even."""
        return self._emit("rint", (x,), x.dtype)

    def copysign(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        return self._binary("copysign", x, y)

    # -- bits -------------------------------------------------------------------------------------
    def and_(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        return self._binary("and", x, y)

    def or_(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        return self._binary("or", x, y)

    def xor(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        return self._binary("xor", x, y)

    def not_(self, x: Scalar) -> Scalar:
        return self._emit("not", (x,), x.dtype)

    def shl(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        return self._binary("shl", x, y)

    def shr(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        return self._binary("shr", x, y)

    def mulhi(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        return self._binary("mulhi", x, y)

    # -- comparison and choice --------------------------------------------------------------------
    def eq(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        return self._arithmetic("eq", _complex_eq, x, y, dt.bool_)

    def ne(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        return self._arithmetic("ne", _complex_ne, x, y, dt.bool_)

    def lt(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        return self._binary("lt", x, y, dt.bool_)

    def le(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        return self._binary("le", x, y, dt.bool_)

    def gt(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        return self._binary("gt", x, y, dt.bool_)

    def ge(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        return self._binary("ge", x, y, dt.bool_)

    def select(self, cond: Scalar, x: ScalarLike, y: ScalarLike) -> Scalar:
        """`x` where `cond` holds, else `y`; both are always evaluated."""
        x, y = self._pair(x, y)
        if x.dtype is not y.dtype or cond.dtype is not dt.bool_:
            raise TypeError(f"select: got {cond.dtype.short}, {x.dtype.short}, {y.dtype.short}; expected i1, T, T")
        return self._emit("select", (cond, x, y), x.dtype)

    def isnan(self, x: Scalar) -> Scalar:
        if x.dtype.is_complex:
            return self.or_(self.isnan(self.real(x)), self.isnan(self.imag(x)))
        return self.ne(x, x)

    def isinf(self, x: Scalar) -> Scalar:
        return self.eq(self.abs(x), math.inf)

    def isfinite(self, x: Scalar) -> Scalar:
        return self.lt(self.abs(x), math.inf)

    def minimum(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        """Smaller of two, NaN where either is NaN, x where they compare equal."""
        x, y = self._pair(x, y)
        wins = self.le(x, y)
        return self.select(wins if not x.dtype.is_floating else self.or_(wins, self.isnan(x)), x, y)

    def maximum(self, x: ScalarLike, y: ScalarLike) -> Scalar:
        """Larger of two, NaN where either is NaN, x where they compare equal."""
        x, y = self._pair(x, y)
        wins = self.ge(x, y)
        return self.select(wins if not x.dtype.is_floating else self.or_(wins, self.isnan(x)), x, y)

    # -- repetition -------------------------------------------------------------------------------
    def repeat(self, count: int, step: Callable[..., Sequence[Scalar]], *values: Scalar) -> tuple[Scalar, ...]:
        """What `count` rounds of `values = step(round, *values)` come to; rounds are floats from 0 on.

        Here the rounds are recorded one after another; a builder that has loops records one.
        """
        for n in range(count):
            values = tuple(step(self.const(n, values[0].dtype), *values))
        return values

    # -- conversion -------------------------------------------------------------------------------
    def cast(self, x: Scalar, dtype: DType) -> Scalar:
        """`x` converted to `dtype`; to a 16-bit float it stays float32 until it is stored."""
        dtype = dtype.compute
        if x.dtype is dtype:
            return x
        if dtype.is_complex:
            return self.complex(self.cast(self.real(x), dtype.real_dtype), self.cast(self.imag(x), dtype.real_dtype))
        if x.dtype.is_complex:  # to bool: either part is non-zero; to a real type: the real part
            return self.ne(x, 0) if dtype.is_bool else self.cast(self.real(x), dtype)
        if dtype.is_bool:
            return self.ne(x, 0)
        return self._emit("cast", (x,), dtype)

    def bitcast(self, x: Scalar, dtype: DType) -> Scalar:
        """The bits of `x` read as `dtype` of the same width."""
        return x if x.dtype is dtype else self._emit("bitcast", (x,), dtype)

    def complex(self, re: Scalar, im: Scalar) -> Scalar:
        dtype = dt.complex64 if re.dtype is dt.float32 else dt.complex128
        im = self.coerce(im, re.dtype)
        out = self._emit("complex", (re, im), dtype)
        self._parts[out.id] = (re, im)
        return out

    def real(self, x: Scalar) -> Scalar:
        return self._part("real", x) if x.dtype.is_complex else x

    def imag(self, x: Scalar) -> Scalar:
        return self._part("imag", x) if x.dtype.is_complex else self.const(0, x.dtype)

    def _part(self, part: str, x: Scalar) -> Scalar:
        parts = self._parts.get(x.id)  # the part of a value made here from its parts is that part
        if parts is not None:
            return parts[part == "imag"]
        return self._emit(part, (x,), x.dtype.real_dtype)

    def check(self, cond: Scalar, code: str) -> None:
        """Require `cond`; where it is false the op raises InvalidArgumentError with `code`'s text."""
        self.checks.append((cond, code))


def _of_numbers(op: str) -> TypeError:
    return TypeError(f"{op}: one operand must be a value of the body")


def _complex_add(s: InstructionBuilder, a: Scalar, b: Scalar, c: Scalar, d: Scalar) -> Scalar:
    return s.complex(a + c, b + d)


def _complex_sub(s: InstructionBuilder, a: Scalar, b: Scalar, c: Scalar, d: Scalar) -> Scalar:
    return s.complex(a - c, b - d)


def _complex_mul(s: InstructionBuilder, a: Scalar, b: Scalar, c: Scalar, d: Scalar) -> Scalar:
    return s.complex(a * c - b * d, a * d + b * c)


def _complex_div(s: InstructionBuilder, a: Scalar, b: Scalar, c: Scalar, d: Scalar) -> Scalar:
    """(a+bi)/(c+di) without overflow in c*c+d*d: Smith, "Algorithm 116", CACM 5 (1962), branch-free."""
    by_real = s.ge(s.abs(c), s.abs(d))
    big, small = s.select(by_real, c, d), s.select(by_real, d, c)
    ratio = s.select(s.eq(big, 0), s.const(0, big.dtype), small / big)
    den = big + small * ratio
    re = s.select(by_real, a + b * ratio, a * ratio + b)
    im = s.select(by_real, b - a * ratio, b * ratio - a)
    return s.complex(re / den, im / den)


def _complex_eq(s: InstructionBuilder, a: Scalar, b: Scalar, c: Scalar, d: Scalar) -> Scalar:
    return s.and_(s.eq(a, c), s.eq(b, d))


def _complex_ne(s: InstructionBuilder, a: Scalar, b: Scalar, c: Scalar, d: Scalar) -> Scalar:
    return s.or_(s.ne(a, c), s.ne(b, d))
